"""One table of a calibration run, as data and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table, the sentence that says what it shows, and how many repetitions it took."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    finding: str
    repetitions: int
    seed: int

    @classmethod
    def of(
        cls,
        title: str,
        header: Sequence[str],
        rows: Sequence[tuple[str, ...]],
        finding: str,
        repetitions: int,
        seed: int,
    ) -> Table:
        """A table from its parts, in the order in which they are read."""
        return cls(
            title=title,
            header=tuple(header),
            rows=tuple(rows),
            finding=finding,
            repetitions=repetitions,
            seed=seed,
        )

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Table:
        """A table that was kept: lists are tuples again."""
        rows = tuple(tuple(row) for row in stored["rows"])
        return cls(**(stored | {"header": tuple(stored["header"]), "rows": rows}))

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
