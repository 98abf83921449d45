"""One table of a calibration run, as data and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table, the sentence that says what it shows, and how many repetitions it took."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
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
