"""What an answer is made of, before any format: sentences, tables, pictures, next steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from passhat.dataclass import dataclass
from passhat.reporters.numbers import both_intervals
from passhat.reporters.text_bars import run_marks

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Difference
    from passhat.analysis.reports.parts import Metric
    from passhat.drawing.figure import Figure
    from passhat.stats.estimate import Interval


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence."""

    text: str


Tone = Literal["good", "bad", "open", "none"]
"""What a verdict means for the reader: good news, bad news, undecided, or none of these."""

WORD_TONES: Mapping[str, Tone] = {"PASS": "good", "FAIL": "bad", "UNDECIDED": "open"}
"""What the word of a verdict means for the reader."""

_SIGNS: Mapping[Tone, str] = {"good": "✓", "bad": "✕", "open": "~", "none": "?"}


@dataclass(frozen=True, slots=True)
class Chip:
    """The verdict in two or three words; a sign says the same as its colour."""

    words: str
    tone: Tone

    @property
    def sign(self) -> str:
        return _SIGNS[self.tone]


@dataclass(frozen=True, slots=True)
class Section:
    """Where a part of the answer begins: its name, and a few words about it."""

    title: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence behind a short label."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line that other programs read, never wrapped, and what it means."""

    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The word on a gate, its sentence, and how sure it is."""

    word: str
    sentence: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value between its intervals, on the scale of its column; drawn on terminals only."""

    value: float | None
    inner: Interval | None = None
    outer: Interval | None = None

    @classmethod
    def of(cls, found: Metric | Difference | None) -> Bar:
        """A number with its intervals in both scopes: this suite inside tasks like these."""
        inner, outer = both_intervals(found)
        return cls(value=None if found is None else found.value, inner=inner, outer=outer)


@dataclass(frozen=True, slots=True)
class Marks:
    """The runs of a task in order, as P, F and E; as text, a mark each."""

    sequence: str

    def __str__(self) -> str:
        return run_marks(self.sequence)


@dataclass(frozen=True, slots=True)
class HeadingRow:
    """A row that is one text: a heading inside a table."""

    text: str


Cell = str | Bar | Marks

SHORTEST_HEADING = 9
"""What a name above a column keeps if it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a header; the first column is text and to the left, the others to the right.

    `scale` is the range of the column of bars, if there is one, with its two ends as text. If a
    name would have to be cut on a terminal, bars are left out, then the columns in `spare`, in
    order; then a first column of sentences, `wrapped`, continues on further lines. `cut` has the
    columns whose headings or texts may be shortened, each with the width that it keeps.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...] | HeadingRow, ...]
    left: tuple[int, ...] = (0,)
    spare: tuple[int, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    ends: tuple[str, str] = ("0", "100")
    wrapped: bool = False

    @property
    def cells(self) -> list[tuple[Cell, ...]]:
        """The rows without the headings between them."""
        return [row for row in self.rows if not isinstance(row, HeadingRow)]

    @property
    def written_columns(self) -> list[int]:
        """The columns that hold text or marks; bars are drawn on terminals only."""
        drawn = self.columns_of(Bar)
        return [i for i in range(len(self.header)) if i not in drawn]

    def columns_of(self, kind: type) -> list[int]:
        """The columns that hold cells of a kind, by the first row."""
        first = next((row for row in self.rows if not isinstance(row, HeadingRow)), ())
        return [i for i, cell in enumerate(first) if isinstance(cell, kind)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """How many of all belong to each of a few kinds, as a bar on a terminal."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NextStep:
    """One thing to do; a command is kept apart from words, which may hold what others wrote."""

    text: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do next, numbered."""

    title: str
    steps: tuple[NextStep, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: characters on a terminal, SVG on a page."""

    figure: Figure


Block = Headline | Section | Paragraph | Line | Judged | Table | Shares | Steps | Picture


def paragraphs(label: str, *texts: str | None) -> list[Block]:
    """A paragraph for each text that there is."""
    return [Paragraph(label, text) for text in texts if text]
