"""What every answer provides, and the blocks it is made of, before any format."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from passhat.dataclass import dataclass
from passhat.messages import listed, plural
from passhat.records.trial import how_chosen, how_read
from passhat.reporters.formatting import both_intervals, run_marks, safe_text

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Difference
    from passhat.analysis.comparing.trends import RunVerdict
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.run_answer import MoreRuns
    from passhat.analysis.reports.evidence import Provenance
    from passhat.analysis.reports.parts import Metric
    from passhat.drawing.figure import Figure
    from passhat.records import Trials
    from passhat.records.transcript import Transcripts
    from passhat.reporters.formatting import TerminalStyle
    from passhat.reporters.page_parts import PageTranscripts
    from passhat.reporters.test_cases import ReportedCase, TestSuite
    from passhat.stats.estimate import Interval, Scope

SCREEN_LINES, SCREEN_WIDTH = 15, 80
"""The first screen, on a terminal that has no more columns."""

RESULTS = "RESULTS"
"""The placeholder in suggested commands where the caller did not name its results."""

Records = Sequence[Mapping[str, object]]
"""Rows of a CSV file; every row has the same keys."""

Facts = Sequence[tuple[str, str]]
"""A number and what it means."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """How to show an answer; answers and formats ignore the options that they have no use for.

    `ink` is set where text goes to a terminal. `results` is what suggested commands read, or None
    if nothing was stored; with `narrowed`, it holds more systems than the answer. `against` is what
    gates compare them with. `command` is the command that gave the answer, to which one that asks
    for more of it adds; `store` are the words by which a command finds a run of another store than
    the usual one. `verbose` shows
    everything; None leaves the choice to the format: a terminal gets one screen. On the page of a
    report, `explanation` says why its runs fail. `verdict` is what is said of the stored run that
    the answer is about: the same sentence on every screen and page.
    `more_runs` adds runs to the stored run that is reported. `scope` is what the first sentence
    judges, these tasks (the default) or similar ones. `all_tasks` lists every task, `wider_than`
    those whose interval is wider; `most_rows` is how many rows of a list were asked for. `wording`
    rewrites notes on arguments (`family`) for the caller (--family). `line_count` counts the
    lines of blocks on a terminal of 80 columns: a format that shows one screen lays it out.
    """

    ink: TerminalStyle | None = None
    results: str | None = RESULTS
    against: str | None = None
    command: str | None = None
    store: str = ""
    more_runs: MoreRuns | None = None
    verbose: bool | None = None
    all_tasks: bool = False
    wider_than: float | None = None
    most_rows: int | None = None
    narrowed: bool = False
    explain: bool = False
    scope: Scope | None = None
    every_task_follows: bool = False
    figure: str | None = None
    transcripts: Transcripts | PageTranscripts | None = None
    trials: Trials | None = None
    first_trial: int = 0
    explanation: Explanation | None = None
    verdict: RunVerdict | None = None
    wording: Callable[[str], str] = str
    line_count: Callable[[Sequence[Block]], int] = len

    @property
    def brief(self) -> bool:
        """Whether one screen is wanted rather than everything."""
        return self.ink is not None if self.verbose is None else not self.verbose


class Answer(ABC, Generic[Result]):
    """A result and how it is told: what it says (`blocks`), its data, rows, figures, test cases.

    Each kind of answer is a subclass, and every format is made from these methods alone. The table
    in `rendering` lists which kinds have data, figures and test cases.
    """

    name: ClassVar[str]
    template: ClassVar[str] = "answer.html"
    several: ClassVar[bool] = False
    """Whether the result is a sequence, as commands have them."""

    def __init__(self, result: Result) -> None:
        self.result = result

    @abstractmethod
    def title(self) -> str:
        """What a page with this answer is called."""

    @abstractmethod
    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What the answer says."""

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The answer in `SCREEN_LINES`: what a terminal shows unless everything is asked for."""
        return self.blocks(options)

    @abstractmethod
    def rows(self) -> Records:
        """The rows of a CSV file or a data frame, unrounded."""

    def data(self) -> Any:
        """The answer as JSON; its first key names the schema."""
        raise NotImplementedError(f"a {self.name} has no JSON")

    def figures(self) -> Mapping[str, Figure]:
        """Pictures by name, the one that says most first."""
        return {}

    def not_drawn(self) -> Mapping[str, str]:
        """Why pictures that this kind of answer may have are missing, by their names."""
        return {}

    def glance(self) -> Figure | None:
        """The one picture beside a first look at the answer, if it has any."""
        return next(iter(self.figures().values()), None)

    def cases(self) -> Sequence[TestSuite]:
        """The answer as test cases, for CI systems."""
        raise NotImplementedError(f"a {self.name} has no test cases")

    def page(self, options: DisplayOptions) -> Mapping[str, Any] | None:
        """The values of `template`; None leaves it to the page to lay out blocks and figures."""
        return None

    def chip(self) -> StatusLabel | None:
        """The verdict in a few words."""
        return None

    def facts(self) -> Facts:
        """A few numbers for a first look, each with its meaning."""
        return ()

    def methods(self) -> str | None:
        """How the numbers were made, for a paper."""
        return None

    def agents(self) -> Sequence[str]:
        """The agents whose table a paper shows, which tell it from other tables of its kind."""
        return ()

    def caption(self) -> str | None:
        """What the main table shows, for a paper: a description, where a headline is a verdict."""
        return None

    def paper_table(self) -> Table | None:
        """The main table for a paper, where it is not the one that a screen shows."""
        return None

    def provenance(self) -> Provenance | None:
        """What the answer was made from, where the result says so."""
        return getattr(self.result, "provenance", None)

    def all_blocks(self, options: DisplayOptions) -> list[Block]:
        """What the answer says, then how its inputs were read.

        One screen says only what passhat chose for the reader.
        """
        blocks, earlier = self.worded_blocks(options), verdict_text(options.verdict)
        if options.brief:
            at = len(blocks) - isinstance(blocks[-1] if blocks else None, Hints)
            around = added_remarks(self.provenance(), options)
            whole: list[Block] = [*blocks[:at], *around[0], *blocks[at:], *around[1]]
            listed = options.all_tasks or options.wider_than is not None
            return whole if listed else fitted(whole, options.line_count)
        lines = reading_lines(self.provenance())
        read_as = [Paragraph("Read as", f"{options.wording(line)}.") for line in lines]
        return [*blocks, *paragraphs("Earlier", earlier), *read_as]

    def worded_blocks(self, options: DisplayOptions) -> list[Block]:
        """What the answer says, its sentences on arguments in the words of the caller."""
        blocks = self.screen(options) if options.brief else self.blocks(options)
        return [_worded(block, options.wording) for block in blocks]

    def on_page(self, options: DisplayOptions) -> list[Block]:
        """What a page says that has no template of its own, beside its figures."""
        return self.worded_blocks(options)

    def test_suites(self) -> list[TestSuite]:
        """The test cases, in text that every format can write."""
        from passhat.reporters.test_cases import encodable_suites

        return encodable_suites(self.cases())

    def test_cases(self) -> list[tuple[TestSuite, ReportedCase]]:
        """Every test case with its suite."""
        return [(suite, case) for suite in self.test_suites() for case in suite.cases]


def added_remarks(
    provenance: Provenance | None, options: DisplayOptions
) -> tuple[list[Remark], list[Remark]]:
    """What one screen adds to an answer before its commands, and after them."""
    judged = verdict_text(options.verdict)
    agents = () if options.verdict is None else options.verdict.agents
    first = all(agent.movement == "first" for agent in agents)
    earlier = [Remark(judged, apart=True)] if judged and not first else []
    return earlier, [Remark(text) for text in reading_choices(provenance)]


def has_room(
    firm: Sequence[Block], notes: Sequence[Remark], line_count: Callable[[Sequence[Block]], int]
) -> bool:
    """Whether blocks fit on one screen, and beside them that some of the `notes` are left out."""
    left_out = any(note.note for note in notes)
    return line_count(firm) + left_out <= SCREEN_LINES


def has_long_command(block: Block, line_count: Callable[[Sequence[Block]], int]) -> bool:
    """Whether a command that follows takes more than a line."""
    if not isinstance(block, Hints):
        return False
    return line_count([replace(block, apart=False)]) > len(block.steps)


def fitted(blocks: Sequence[Block], line_count: Callable[[Sequence[Block]], int]) -> list[Block]:
    """Blocks of one screen; where they are too many, sentences that stand apart close up.

    Where that is not enough, commands that take more than a line go first, the last notes are left
    to -v, and then the other commands that follow.
    """
    kept, left_out = list(blocks), 0
    while line_count(kept) + bool(left_out) > SCREEN_LINES:
        around = [(i, block) for i, block in enumerate(kept) if isinstance(block, Remark | Hints)]
        notes = [i for i, block in around if isinstance(block, Remark) and block.note]
        apart = [(i, block) for i, block in around if block.apart]
        long = [i for i, block in around if has_long_command(block, line_count)]
        if apart:
            at, last = apart[-1]
            kept[at] = replace(last, apart=False)
        elif long:
            del kept[long[-1]]
        elif notes:
            left_out += 1
            del kept[notes[-1]]
        elif hints := [i for i, block in around if isinstance(block, Hints)]:
            del kept[hints[-1]]
        else:
            break
    if left_out:
        more = "1 note" if left_out == 1 else f"{left_out:,} notes"
        at = next((i for i, block in enumerate(kept) if isinstance(block, Hints)), len(kept))
        kept.insert(at, Remark(f"{more} more: -v"))
    return kept


def verdict_text(verdict: RunVerdict | None) -> str:
    """The run that a verdict is on, and its sentence; nothing if there is none."""
    sentence = "" if verdict is None else verdict.sentence
    return f"Run {verdict.run}. {sentence}" if verdict is not None and sentence else ""


def verdict_tile(verdict: RunVerdict) -> ChangeTile | None:
    """The verdict on a run as a page shows it beside the numbers; None if the run has none."""
    if not verdict.agents:
        return None
    order = ("fell", "rose", "steady", "first")
    worst = min(verdict.agents, key=lambda agent: order.index(agent.movement))
    chip = movement_label(worst.movement, worst.words)
    return ChangeTile(title="Against earlier runs", chip=chip, text=verdict.sentence)


def _worded(block: Block, wording: Callable[[str], str]) -> Block:
    if wording is str:
        return block
    if isinstance(block, Headline | Paragraph | Remark):
        return replace(block, text=wording(block.text))
    if isinstance(block, Steps):
        steps = tuple(replace(step, text=wording(step.text)) for step in block.steps)
        return replace(block, steps=steps)
    if isinstance(block, Judged):
        return replace(block, sentence=wording(block.sentence))
    return block


_MOST_LINES = 4


def reading_lines(provenance: Provenance | None, *, folders: bool = True) -> list[str]:
    """How files and frames were read; one line for all inputs that were read the same way.

    A page is passed around: it names files without their `folders`.
    """
    sources = (
        [] if provenance is None else [source for source in provenance.sources if source.read_as]
    )
    named: dict[str, list[str]] = {}
    for source in sources:
        named.setdefault(how_read(source).removeprefix("read as: "), []).append(
            source.name if folders else file_name(source.name)
        )
    several = len(sources) > 1
    lines = [f"{listed(names, _MOST_LINES)}: {how}" if several else how
             for how, names in named.items()]  # fmt: skip
    if len(lines) > _MOST_LINES:
        rest = plural(len(lines) - _MOST_LINES, "more input")
        return [*lines[:_MOST_LINES], f"and {rest}: `render_json` says how each was read"]
    return lines


def file_name(path: str) -> str:
    r"""A path without its folders.

    >>> file_name("/home/ann/logs/monday/"), file_name(r"C:\\logs\\monday.json")
    ('monday', 'monday.json')
    """
    return re.split(r"[/\\]", path.rstrip("/"))[-1]


def reading_choices(provenance: Provenance | None) -> list[str]:
    """What passhat chose as it read: a scorer, columns of other names, rows left out."""
    sources = [] if provenance is None else provenance.sources
    chosen = list(dict.fromkeys(line for source in sources if (line := how_chosen(source))))
    more = plural(len(chosen) - 1, "other input")
    return chosen if len(chosen) < 2 else [f"{chosen[0]} And so on for {more}: -v."]


# What an answer is made of, before any format: sentences, tables, pictures, next steps.


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence."""

    text: str


Tone = Literal["good", "bad", "open", "none"]
"""What a verdict means for the reader: good news, bad news, undecided, or none of these."""

WORD_TONES: Mapping[str, Tone] = {
    "PASS": "good",
    "FAIL": "bad",
    "UNDECIDED": "open",
    "ERROR": "bad",
}
"""What the word of a verdict means for the reader."""

_SIGNS: Mapping[Tone, str] = {"good": "✓", "bad": "✕", "open": "~", "none": "?"}


_MOVES: Mapping[str, tuple[Tone, str]] = {"fell": ("bad", "▼"), "rose": ("good", "▲")}


@dataclass(frozen=True, slots=True)
class StatusLabel:
    """The verdict in two or three words; a sign says the same as its colour."""

    words: str
    tone: Tone
    sign: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sign", self.sign or _SIGNS[self.tone])


def movement_label(movement: str, words: str) -> StatusLabel:
    """How an agent moved, with the same sign wherever it is said.

    >>> movement_label("fell", "Fell on 4 Nov").sign
    '▼'
    """
    tone, sign = _MOVES.get(movement, ("none", "=" if words == "No change shown" else ""))
    return StatusLabel(words, tone, sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTile:
    """What changed: against what, by how much, whether that is more than noise; how to see more."""

    title: str
    size: str = ""
    chip: StatusLabel | None = None
    text: str = ""
    command: str = ""
    link: str = ""


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
class Remark:
    """A sentence under what it is about, or `apart` from it.

    A `note` is left to -v where a screen has no room for it.
    """

    text: str
    apart: bool = False
    note: bool = False


@dataclass(frozen=True, slots=True)
class Hints:
    """At most two commands that follow, on one line where there is room."""

    steps: tuple[NextStep, ...]
    apart: bool = False


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
    details: tuple[str | NextStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value between its intervals, on the scale of its column; drawn on terminals only."""

    value: float | None
    inner: Interval | None = None
    outer: Interval | None = None

    @classmethod
    def of(cls, metric: Metric | Difference | None) -> Bar:
        """A number with its intervals in both scopes: this suite inside tasks like these."""
        inner, outer = both_intervals(metric)
        return cls(value=None if metric is None else metric.value, inner=inner, outer=outer)


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
    order. `cut` has the columns whose headings or texts may be shortened, each with the width that
    it keeps; columns of sentences that are `wrapped` continue on further lines instead.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...] | HeadingRow, ...]
    left: tuple[int, ...] = (0,)
    spare: tuple[int, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    ends: tuple[str, str] = ("0", "100")
    wrapped: tuple[int, ...] = ()

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


def advise(text: str, command: str) -> NextStep:
    r"""A step by a command, or by its words alone where showing the command would change it.

    >>> str(advise("Keep it so", "passhat gate r.csv"))
    'Keep it so: passhat gate r.csv'
    >>> str(advise("Keep it so", "passhat gate 'a\x1bb.csv'"))
    'Keep it so.'
    """
    return NextStep(text, command) if safe_text(command) == command else NextStep(f"{text}.")


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do next, numbered."""

    title: str
    steps: tuple[NextStep, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: characters on a terminal, SVG on a page."""

    figure: Figure


Block = (
    Headline
    | Section
    | Paragraph
    | Remark
    | Hints
    | Line
    | Judged
    | Table
    | Shares
    | Steps
    | Picture
)


def paragraphs(label: str, *texts: str | None) -> list[Block]:
    """A paragraph for each text that there is."""
    return [Paragraph(label, text) for text in texts if text]
