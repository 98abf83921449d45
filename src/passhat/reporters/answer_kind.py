"""What every kind of answer provides: blocks, data, rows, figures. All formats are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.dataclass import dataclass
from passhat.messages import listed, plural
from passhat.records.trial import how_read
from passhat.reporters.blocks import Block, Chip, Headline, Paragraph, Steps

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.run_answer import MoreRuns
    from passhat.analysis.reports.evidence import Provenance
    from passhat.drawing.figure import Figure
    from passhat.records import Trials
    from passhat.records.transcript import Transcripts
    from passhat.reporters.baseline_words import ChangeTile
    from passhat.reporters.page_transcripts import PageTranscripts
    from passhat.reporters.terminal_style import Ink
    from passhat.reporters.test_cases import ReportedCase, TestSuite

RESULTS = "RESULTS"
"""The placeholder in suggested commands where the caller did not name its results."""

Records = Sequence[Mapping[str, object]]
"""Rows of a CSV file; every row has the same keys."""


Facts = Sequence[tuple[str, str]]
"""A number and what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayOptions:
    """How to show an answer; answers and formats ignore the options that they have no use for.

    `ink` is set where text goes to a terminal. `results` is what suggested commands read, or None
    if nothing was stored; with `narrowed`, it holds more systems than the answer. `verbose` shows
    everything; None leaves the choice to the format: a terminal gets one screen. On the page of a
    report, `explanation` says why its runs fail and `change` how it differs from a baseline.
    `more_runs` adds runs to the stored run that is reported. `wording` rewrites notes on arguments
    (`family`) for the caller (--family).
    """

    ink: Ink | None = None
    results: str | None = RESULTS
    more_runs: MoreRuns | None = None
    verbose: bool | None = None
    all_tasks: bool = False
    narrowed: bool = False
    explain: bool = False
    every_task_follows: bool = False
    figure: str | None = None
    transcripts: Transcripts | PageTranscripts | None = None
    trials: Trials | None = None
    first_trial: int = 0
    explanation: Explanation | None = None
    change: ChangeTile | None = None
    wording: Callable[[str], str] = str

    @property
    def brief(self) -> bool:
        """Whether one screen is wanted rather than everything."""
        return self.ink is not None if self.verbose is None else not self.verbose


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """One kind of answer: what it says (`blocks`), its data, rows, figures and test cases.

    If a part is None, the formats that need it are not available. `page` returns the values of
    `template`, for an answer that has its own page. With `several`, all parts take a sequence of
    answers, as commands have them. `chip` is the verdict in a few words, and `facts` are a few
    numbers for a first look, each with its meaning.
    """

    name: str
    blocks: Callable[[Any, DisplayOptions], list[Block]]
    data: Callable[[Any], Any] | None = None
    rows: Callable[[Any], Records] | None = None
    figures: Callable[[Any], Mapping[str, Figure]] | None = None
    cases: Callable[[Any], Sequence[TestSuite]] | None = None
    page: Callable[[Any, DisplayOptions], Mapping[str, Any]] | None = None
    template: str = "report.html"
    several: bool = False
    methods: Callable[[Any], str | None] | None = None
    provenance: Callable[[Any], Provenance | None] = lambda _: None
    title: Callable[[Any], str] = lambda _: ""
    chip: Callable[[Any], Chip | None] = lambda _: None
    facts: Callable[[Any], Facts] = lambda _: ()

    def all_blocks(self, answer: Any, options: DisplayOptions) -> list[Block]:
        """What an answer says, then how its inputs were read."""
        lines = reading_lines(self.provenance(answer))
        read_as = [Paragraph("Read as", f"{options.wording(line)}.") for line in lines]
        return [*self.worded_blocks(answer, options), *read_as]

    def worded_blocks(self, answer: Any, options: DisplayOptions) -> list[Block]:
        """What an answer says, its sentences on arguments in the words of the caller."""
        return [_worded(block, options.wording) for block in self.blocks(answer, options)]

    def test_suites(self, answer: Any) -> list[TestSuite]:
        """The test cases of an answer, in text that every format can write."""
        from passhat.reporters.test_cases import encodable_suites

        assert self.cases is not None, "the table of formats says so"
        return encodable_suites(self.cases(answer))

    def test_cases(self, answer: Any) -> list[tuple[TestSuite, ReportedCase]]:
        """Every test case of an answer with its suite."""
        return [(suite, case) for suite in self.test_suites(answer) for case in suite.cases]


def _worded(block: Block, wording: Callable[[str], str]) -> Block:
    if wording is str:
        return block
    if isinstance(block, Headline | Paragraph):
        return replace(block, text=wording(block.text))
    if isinstance(block, Steps):
        steps = tuple(replace(step, text=wording(step.text)) for step in block.steps)
        return replace(block, steps=steps)
    return block


_MOST_LINES = 4


def reading_lines(provenance: Provenance | None) -> list[str]:
    """How files and frames were read; one line for all inputs that were read the same way."""
    sources = [] if provenance is None else [one for one in provenance.sources if one.read_as]
    named: dict[str, list[str]] = {}
    for source in sources:
        named.setdefault(how_read(source).removeprefix("read as: "), []).append(source.name)
    several = len(sources) > 1
    lines = [f"{listed(names, _MOST_LINES)}: {how}" if several else how
             for how, names in named.items()]  # fmt: skip
    if len(lines) > _MOST_LINES:
        rest = plural(len(lines) - _MOST_LINES, "more input")
        return [*lines[:_MOST_LINES], f"and {rest}: `render_json` says how each was read"]
    return lines
