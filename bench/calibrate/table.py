"""One table of a calibration run, as data and as Markdown; and the error of a simulated share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table, the sentence that says what it shows, and how many repetitions it took."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    finding: str
    repetitions: int
    seed: int

    def markdown(self) -> str:
        lines = [
            f"## {self.title}",
            "",
            self.finding,
            "",
            "| " + " | ".join(self.header) + " |",
            "|" + "---|" * len(self.header),
            *("| " + " | ".join(row) + " |" for row in self.rows),
            "",
            f"Repetitions: {self.repetitions}; seed {self.seed}.",
        ]
        return "\n".join(lines) + "\n"


def monte_carlo_error(rate: float, repetitions: int) -> float:
    """The standard error of a share that is simulated this often."""
    return sqrt(rate * (1 - rate) / repetitions)


def allowed(rate: float, repetitions: int) -> float:
    """An error rate and three Monte Carlo errors."""
    return rate + 3 * monte_carlo_error(rate, repetitions)
