"""Two systems compared (who is better, by how much, on which tasks), and a change under review."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from passhat.analysis.comparing.comparison import (
    Comparison,
    Difference,
    TaskDifference,
    as_people_compare,
)
from passhat.analysis.gates.run_answer import ChangeReview
from passhat.analysis.reports.judged import CorrectedDifference
from passhat.analysis.reports.unsettled import SENSIBLE_RUNS
from passhat.dataclass import dataclass, replace
from passhat.messages import capitalised, listed, plural
from passhat.records.trial import ALIKE_NAMES, NaturalKey, counts_trials, natural_key
from passhat.reporters.answer import (
    SHORTEST_HEADING,
    Answer,
    Bar,
    Block,
    Cell,
    DisplayOptions,
    Facts,
    HeadingRow,
    Headline,
    Hints,
    Marks,
    NextStep,
    Paragraph,
    Records,
    Remark,
    Section,
    StatusLabel,
    Steps,
    Table,
    added_remarks,
    has_room,
    paragraphs,
    verdict_text,
)
from passhat.reporters.answers.report_blocks import task_counts_table, task_table
from passhat.reporters.data import (
    IntervalObject,
    JsonShape,
    NumberObject,
    UnavailableObject,
    interval_object,
    number_object,
    to_json,
)
from passhat.reporters.formatting import (
    LONGEST_NAME,
    both_intervals,
    end_cells,
    interval_of,
    metric_label,
    percent,
    points,
    scope_cells,
    short,
    shorten_apart,
    signed_points,
    signed_span,
)
from passhat.reporters.headline import not_for_others, overview, scope_words
from passhat.reporters.next_steps import advise
from passhat.reporters.wording import cost, noise_sentence, noise_shape, p_value
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
    error_level,
)
from passhat.stats.paired import Answer as PairedAnswer
from passhat.stats.paired import Needed, PairedDifference, PairedTest
from passhat.stats.variance import NoiseSources

if TYPE_CHECKING:
    from passhat.analysis.reports.evidence import Provenance
    from passhat.drawing.figure import Figure
    from passhat.records.transcript import Transcripts
    from passhat.reporters.answers.report_page import RunLink, TranscriptLinks
    from passhat.reporters.page_parts import PageTranscripts
    from passhat.reporters.test_cases import TestSuite

MOST_TASKS = 10
"""Tasks that a table or a comment lists; the page lists all."""
MOST_FILES = 5
"""Files that decide about a change, as a comment lists them."""

SENSIBLE_TASKS = 10
"""More new tasks than so many times those there are, few would write to prove a difference."""

_CHIPS = {
    "better": StatusLabel("Better", "good"),
    "worse": StatusLabel("Worse", "bad"),
    "equivalent": StatusLabel("Equivalent", "good"),
}

_INCOMPARABLE = StatusLabel("Cannot be compared", "none")

_ROUNDING = 1e-9  # how far two ways to compute one rate may differ
_P_VALUES = (
    "Both p values allow for the number of tasks tested. Of the tasks with p (Holm) below 0.05, "
    "the chance that any does not really differ is at most 5%; of those with p (BH) below 0.05, "
    "about 5% may not really differ."
)


class ComparisonAnswer(Answer[Comparison]):
    """Two systems, on the tasks that both ran."""

    name = "comparison"
    template = "comparison.html"

    @property
    def shown(self) -> Comparison:
        """What people read: corrected differences first, where both agents have labels."""
        return as_people_compare(self.result)

    def title(self) -> str:
        first, second = called(self.result)
        return f"{self.chip().words}: {first} against {second}"

    def chip(self) -> StatusLabel:
        """The verdict on the first of the two systems."""
        comparison = self.shown
        answer = comparison.headline.answer(THIS_SUITE, comparison.margin)
        if comparison.headline.value is None:
            return _INCOMPARABLE
        return _CHIPS.get(answer or "", StatusLabel("No clear difference", "open"))

    def facts(self) -> Facts:
        """The difference, and how many tasks flipped each way."""
        comparison = self.shown
        lead = comparison.headline
        flips = [task.flip for task in comparison.tasks]
        facts = []
        if lead.value is not None:
            name = metric_word(comparison, lead)
            here = signed_span(both_intervals(lead)[0])
            bounds = here and f", these tasks {here}"
            size = f"{signed_points(lead.value, digits=1)} points"
            facts.append((size, f"difference in {name}{bounds}"))
        if not comparison.provenance.stopped_early:
            facts.append((plural(flips.count("lost"), "task"), "flipped to mostly failing"))
            facts.append((plural(flips.count("gained"), "task"), "flipped to mostly passing"))
        return facts

    def agents(self) -> Sequence[str]:
        return called(self.result)

    def caption(self) -> str:
        """Who is compared on what, and what the brackets are."""
        comparison = self.shown
        first, second = called(comparison)
        level = f"{100 * comparison.provenance.options.confidence:g}%"
        return (
            f"{first} and {second} on {plural(len(comparison.tasks), 'shared task')}, in percent, "
            f"and their difference in points. Brackets are {level} confidence intervals of the "
            "difference: for these tasks, if they were run again, and for similar tasks."
        )

    def paper_table(self) -> Table | None:
        """The differences, with a p value for each scope."""
        table = _difference_table(self.shown)
        numbers = [(shown.this_suite, shown.tasks_like_these) for shown in _distinct(self.shown)]
        rows = (
            (*row[:5], _p_cell(here), row[5], _p_cell(there))
            for row, (here, there) in zip(table.rows, numbers, strict=True)
            if not isinstance(row, HeadingRow)
        )
        header = (*table.header[:5], "p", "similar tasks", "p")
        return Table(header=header, rows=tuple(rows), left=(0, 4, 6))

    def methods(self) -> str:
        """How the difference was found, in sentences that a reviewer can check."""
        from passhat.reporters.answers.report import RELIABILITY

        comparison, origin = self.shown, self.shown.provenance
        head = comparison.headline
        scopes = [(THIS_SUITE, head.this_suite), (TASKS_LIKE_THESE, head.tasks_like_these)]
        intervals = [
            f"{scope_words(scope)} ({number.method}; {metric_word(comparison, head)}: "
            f"{p_value(number.p_value)})"
            for scope, number in scopes
            if isinstance(number, PairedDifference)
        ]
        tests = _named_tests(comparison)
        counted = "counted as failures" if origin.options.errors == "fail" else "left out"
        shared = plural(len(comparison.tasks), "task")
        made_from = f"seed {origin.options.seed}, fingerprint {origin.input_sha256[:12]}"
        parts = (
            f"We compared {' and '.join(called(comparison))} on the {shared} that both ran.",
            "Differences are rounded last.",
            RELIABILITY,
            f"The intervals are for {' and for '.join(intervals)}." if intervals else "",
            f"Tests by name, on pass@1: {tests}" if tests else "",
            f"Trials that errored were {counted}.",
            f"Computed with passhat {origin.versions['passhat']} ({made_from}).",
        )
        return " ".join(filter(None, parts))

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The verdict, both scopes, the tasks that differ, and what would settle it."""
        comparison = self.shown
        answer = verdict(comparison, scope=options.scope)
        known = any(number.value is not None for number in comparison.differences.values())
        blocks: list[Block] = [
            Headline(answer),
            *([_difference_table(comparison)] if known else []),
        ]
        blocks += paragraphs("Starred", _partial_note(comparison))
        blocks += paragraphs("Shown", _shown(comparison) if known else None)
        if isinstance(comparison.seeded, Estimate):
            blocks.append(Paragraph("Re-runs", _seeds_sentence(comparison, comparison.seeded)))
        if not isinstance(comparison.noise, Unavailable):
            blocks.append(Paragraph("Width", noise_sentence(comparison.noise, systems=2)))
        blocks += paragraphs("p", _tests_of_p(comparison))
        blocks += paragraphs("By name", _named_tests(comparison) if known else None)
        if comparison.provenance.stopped_early:
            blocks.append(_counts_table(comparison))
        else:
            sentence = _tasks_sentence(comparison, options.every_task_follows)
            blocks.append(Paragraph("Tasks", sentence))
        if rows := differing_tasks(comparison)[:MOST_TASKS]:
            blocks.append(differing_table(comparison, rows))
            blocks += [Paragraph("Read", text) for text in legend(comparison, rows)]
        alone = (comparison.only_first, comparison.only_second)
        for owner, names in zip(called(comparison), alone, strict=True):
            if names:
                tasks = f"{plural(len(names), 'task')}, left out: {listed(names, 5, show=short)}"
                blocks.append(Paragraph("Left out", f"Only {owner} ran {tasks}."))
        blocks += [Paragraph("Note", f"{note}.") for note in comparison.notes]
        if steps := _steps(comparison, options.every_task_follows):
            blocks.append(Steps("Next", tuple(map(NextStep, steps))))
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The verdict, the difference at a few k, and which tasks changed."""
        comparison = self.shown
        names = called(comparison)
        every = [number for number in _distinct(comparison) if number.value is not None]
        middle = [number for number in every[1:-1] if number.name == "pass^3"] or every[-2:-1]
        shown = every if len(every) <= MOST_NUMBERS else [every[0], *middle, every[-1]]
        table = Table(
            header=("", *names, "diff", "these tasks", "similar tasks"),
            rows=tuple(_screen_row(comparison, number) for number in shown),
            left=(0, 4, 5),
            cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        )
        texts = [_partial_note(comparison), _left_out(comparison)]
        above: list[Block] = [
            Headline(verdict(comparison, scope=options.scope)),
            *([table] if shown else []),
            *(Remark(text) for text in texts if text),
        ]
        notes = [
            Remark(f"Note: {note}.", note=ALIKE_NAMES not in note and not counts_trials(note))
            for note in comparison.notes
        ]
        scope = options.scope or THIS_SUITE
        settling = _decided_at(comparison, scope), _needed(comparison, scope)
        below: list[Block] = [Remark(text) for text in settling if text is not None]
        if options.results is not None:
            command = options.command or f"passhat compare {options.results}"
            below.append(Hints((advise("All tasks", f"{command} -v"),)))
        earlier, read = added_remarks(self.provenance(), options)
        around = [*above, *(remark for remark in notes if not remark.note), *below, *earlier, *read]
        if comparison.provenance.stopped_early:
            return [*above, *notes, *below]
        flips = [_flips_sentence(comparison, most) for most in range(MOST_FLIPS, 0, -1)]
        fitting = (
            text for text in flips if has_room([*around, Remark(text)], notes, options.line_count)
        )
        return [*above, *notes, Remark(next(fitting, flips[-1]), apart=True), *below]

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """The answer at each k, what would decide it, and the tasks that moved, worse first."""
        return comparison_page(self.shown, options)

    def rows(self) -> Records:
        """A row a number, then a row a task: the first system minus the second."""
        suite = map(_suite_record, self.result.differences.values())
        return [*suite, *map(_task_record, self.result.tasks)]

    def data(self) -> dict[str, Any]:
        return COMPARISON(self.result)

    def figures(self) -> Mapping[str, Figure]:
        from passhat.analysis.comparing.plots import plot_differences

        return {"differences": plot_differences(self.result)}


MOST_NUMBERS = 3
"""Numbers on the first screen: one trial, and the longest streaks."""

MOST_FLIPS = 3
"""Tasks that changed, by name, on the first screen."""


def _screen_row(comparison: Comparison, difference: Difference) -> tuple[str, ...]:
    return (
        metric_word(comparison, difference) + " *" * _is_partial(comparison, difference),
        percent(difference.first, digits=1),
        percent(difference.second, digits=1),
        signed_points(difference.value, digits=1),
        *(signed_span(interval) or "-" for interval in both_intervals(difference)),
    )


def metric_word(comparison: Comparison, number: Difference) -> str:
    """What a number is called: scores that are all 0 or 1 have the pass rate as their mean."""
    if number.name == "mean_score":
        return "pass@1" if comparison.scores_are_passes else "mean score"
    return metric_label(number.name)


def _left_out(comparison: Comparison) -> str | None:
    """Tasks of one agent only."""
    alone = zip(called(comparison), (comparison.only_first, comparison.only_second), strict=True)
    texts = [f"{plural(len(tasks), 'task')} that only {who} ran" for who, tasks in alone if tasks]
    return f"Left out: {' and '.join(texts)}." if texts else None


def _tests_of_p(comparison: Comparison) -> str | None:
    """Which tests the p of the number that is judged come from, for both kinds of tasks."""
    asked = comparison.headline
    texts = []
    for number in (asked.this_suite, asked.tasks_like_these):
        if isinstance(number, PairedDifference) and _p_beside(number):
            tests = " and ".join(filter(None, (number.method, number.exact_method)))
            larger = ", the larger of the two" if number.exact_method else ""
            where = scope_words(number.scope)
            texts.append(f"{p_value(number.p_value)} for {where} ({tests}{larger})")
    name = metric_word(comparison, asked)
    return f"Of {name}: {'; '.join(texts)}. Two-sided." if texts else None


def _named_tests(comparison: Comparison) -> str | None:
    """The tests that tables ask for by name, and why the interval beside them may say otherwise."""
    tests = [test for test in comparison.named_tests if isinstance(test, PairedTest)]
    if not tests:
        return None
    texts = [
        f"{test.method}, {'t' if test.method == 'paired t' else 'W'} = {test.statistic:.4g}, "
        f"{p_value(test.p_value)}"
        for test in tests
    ]
    return (
        f"{'; '.join(texts)} ({plural(len(comparison.tasks), 'shared task')}, each by its mean "
        "score). With few tasks they err more often than they say; the intervals above do not."
    )


def _flips_sentence(comparison: Comparison, most: int) -> str:
    """Which tasks went from mostly failing to mostly passing or back, and what is significant.

    At most so many of each are named.
    """
    tasks = comparison.tasks
    gained, lost = (
        sorted((t for t in tasks if t.flip == way), key=lambda t: -abs(t.difference))
        for way in ("gained", "lost")
    )
    if not gained and not lost:
        text = f"None of {plural(len(tasks), 'task')} went from mostly failing to mostly passing "
        text += "or back."
    else:
        up, down = "mostly failing to mostly passing", "mostly passing to mostly failing"
        more, way, fewer = (gained, up, lost) if len(gained) >= len(lost) else (lost, down, gained)
        other = f"{len(fewer):,}" if fewer else "none"
        text = f"{len(more):,} of {plural(len(tasks), 'task')} went from {way}, {other} the other "
        text += f"way: {listed(_moved([*more, *fewer]), most)}."
    shown = [task for task in tasks if task.answer in ("better", "worse")]
    if shown:
        named = listed(_moved(shown), most)
        return f"{text} Significant by {'itself' if len(shown) == 1 else 'themselves'}: {named}."
    if all(task.answer == "unevaluable" for task in tasks):
        return f"{text} Too few trials to test single tasks."
    return f"{text} No single task's change is significant."


def _moved(tasks: Sequence[TaskDifference]) -> list[str]:
    names = shorten_apart([task.name for task in tasks], LONGEST_NAME)
    return [
        f"{name} {'/'.join(map(str, task.second))} to {'/'.join(map(str, task.first))}"
        for name, task in zip(names, tasks, strict=True)
    ]


def _difference_table(comparison: Comparison) -> Table:
    numbers = _distinct(comparison)
    bounds = [interval for number in numbers for interval in both_intervals(number) if interval]
    reach = max([0.05, *(abs(end) for ends in bounds for end in (ends.low, ends.high))])
    return Table(
        header=("in %", *called(comparison), "diff.", "these tasks", "similar tasks", ""),
        rows=tuple(
            _difference_row(number, starred=_is_partial(comparison, number)) for number in numbers
        ),
        left=(0, 4, 5),
        cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        scale=(-reach, reach),
        ends=(signed_points(-reach), signed_points(reach)),
    )


def _is_partial(comparison: Comparison, difference: Difference) -> bool:
    """Whether some of the shared tasks have too few runs for it."""
    tasks = _tasks_of(difference)
    return tasks is not None and tasks < len(comparison.tasks)


def _tasks_of(difference: Difference) -> int | None:
    number = stated(difference)
    return None if isinstance(number, Unavailable) else number.tasks


def _partial_note(comparison: Comparison) -> str | None:
    """What the stars in the table mean; None if there are none."""
    total = plural(len(comparison.tasks), "shared task")
    partial = [number for number in _distinct(comparison) if _is_partial(comparison, number)]
    parts = []
    for count, alike in groupby(partial, key=_tasks_of):
        names = [metric_label(number.name) for number in alike]
        which = f"{names[0]} is" if len(names) == 1 else f"{names[0]} to {names[-1]} are"
        parts.append(f"{which} over {count:,} of {total}")
    return f"* {', '.join(parts)}; the others have fewer trials." if parts else None


def _difference_row(difference: Difference, *, starred: bool) -> tuple[str | Bar, ...]:
    return (
        metric_label(difference.name) + " *" * starred,
        points(difference.first, digits=1),
        points(difference.second, digits=1),
        signed_points(difference.value, digits=1),
        *(signed_span(interval) or "-" for interval in both_intervals(difference)),
        Bar.of(difference),
    )


def _shown(comparison: Comparison) -> str:
    """What each scope decides, metric by metric."""
    texts = [_shown_in(comparison, scope) for scope in (THIS_SUITE, TASKS_LIKE_THESE)]
    first, _ = called(comparison)
    if texts[0] == texts[1]:
        return f"{first}: {texts[0]}, for these tasks and for similar ones."
    return f"{first}: {texts[0]} for these tasks; {texts[1]} for similar tasks."


def _shown_in(comparison: Comparison, scope: Scope) -> str:
    answers: dict[str, list[str]] = {}
    for number in _distinct(comparison):
        answer = number.answer(scope, comparison.margin) or "not known"
        answers.setdefault(answer, []).append(metric_label(number.name))
    if len(answers) == 1:
        return f"{next(iter(answers))} by every number"
    return " and ".join(f"{answer} by {', '.join(names)}" for answer, names in answers.items())


def _seeds_sentence(comparison: Comparison, seeded: Estimate) -> str:
    """What is left of the difference once re-runs may move both sides."""
    what = "the difference" if comparison.headline.name == "mean_score" else "that of the mean"
    added = "With the spread between re-runs (one seed each) added"
    text = f"{added}, {what} is {signed_span(seeded.interval)}"
    open_ = seeded.interval is not None and 0 in seeded.interval
    if open_ and comparison.mean_score.answer(THIS_SUITE) in ("better", "worse"):
        return f"{text}: another set of re-runs might reverse it."
    return f"{text}."


def _distinct(comparison: Comparison) -> list[Difference]:
    """Every difference; the mean score only if it is more than the pass rate again."""
    numbers = comparison.differences
    again = "pass^1" in numbers and comparison.scores_are_passes
    return [number for number in numbers.values() if not (again and number.name == "mean_score")]


def _tasks_sentence(comparison: Comparison, every_task_follows: bool) -> str:
    tasks = comparison.tasks
    answers = Counter(task.answer for task in tasks)
    flips = Counter(task.flip for task in tasks)
    text = (
        f"Of {plural(len(tasks), 'shared task')}, {called(comparison)[0]} is shown better on "
        f"{answers['better']} and worse on {answers['worse']}"
    )
    if answers["unevaluable"] == len(tasks):
        text += f" (too few trials to test any: {comparison.runs_to_test} of each are needed)"
    gained = plural(flips["gained"], "task")
    text = f"{text}. {gained} flipped to mostly passing, {flips['lost']} to mostly failing."
    return f"{text}{_listed_tasks(comparison, every_task_follows)}"


def _listed_tasks(comparison: Comparison, every_task_follows: bool) -> str:
    """Which tasks the table lists, where it leaves some out."""
    count = len(differing_tasks(comparison))
    if count == len(comparison.tasks):
        return ""
    said_below = every_task_follows or count > MOST_TASKS
    where = "" if said_below else "; `render_json` lists all tasks"
    if count:
        return f" Listed are tasks shown to differ, and flipped ones unless both p are 1{where}."
    flipped = any(task.flip for task in comparison.tasks)
    return f" None is listed, as both p of each are 1{where}." if flipped else ""


def _steps(comparison: Comparison, every_task_follows: bool) -> list[str]:
    scopes = (THIS_SUITE, TASKS_LIKE_THESE)
    steps = [text for scope in scopes if (text := _needed(comparison, scope)) is not None]
    hidden = len(differing_tasks(comparison)) - MOST_TASKS
    if hidden > 0 and not every_task_follows:
        more = plural(hidden, "more task flipped or differs", "more tasks flipped or differ")
        steps.append(f"{more}: `render_json` lists every task.")
    return steps


def _decided_at(comparison: Comparison, scope: Scope) -> str | None:
    """That the longest streak decides what the number that was asked for leaves open."""
    asked, longest = comparison.headline, [*comparison.differences.values()][-1]
    decided = longest.answer(scope, comparison.margin) in ("better", "worse")
    if not decided or longest.value is None or asked.answer(scope) != "undecided":
        return None
    ahead = called(comparison)[longest.value < 0]
    name = metric_word(comparison, longest)
    return (
        f"At {name} {ahead} is ahead for {scope_words(scope)}: to ask about {name} instead, say "
        f"`ks={name.removeprefix('pass^')}`."
    )


def _needed(comparison: Comparison, scope: Scope) -> str | None:
    """How many more trials or tasks would decide it: the numbers that JSON has."""
    difference = comparison.headline
    number = difference.this_suite if scope == THIS_SUITE else difference.tasks_like_these
    if not isinstance(number, PairedDifference) or number.answer != "undecided":
        return None
    where = scope_words(scope)
    if number.needed is None:
        if number.margin is not None:
            return f"For {where}, look at other tasks: on these the two hardly differ."
        return f"For {where}, state a margin: `margin=0.05` lets it end in 'equivalent'."
    tasks, often = len(comparison.tasks), "4 times in 5, if the difference holds"
    if ways := _ways_to_decide(number.needed, tasks):
        return f"For {where}, about {' or '.join(ways)} would decide it {often}."
    what = "trials of these tasks" if number.needed.more_tasks is None else "trials or tasks"
    none = f"For {where}, no sensible number of {what} would decide it"
    ways = _ways_to_decide(number.needed, tasks, sensible=False)
    return f"{none}: it takes about {' or '.join(ways)}." if ways else f"{none}."


def _ways_to_decide(needed: Needed, tasks: int, *, sensible: bool = True) -> list[str]:
    """What would decide a comparison of so many tasks; if `sensible`, without what is too much."""
    ways = []
    most_runs, most_tasks = 2 * SENSIBLE_RUNS * tasks, SENSIBLE_TASKS * tasks
    runs, more = needed.more_runs, needed.more_tasks
    if runs is not None and (runs <= most_runs or not sensible):
        ways.append(f"{plural(runs, 'more trial')} in all")
    if more is not None and (more <= most_tasks or not sensible):
        ways.append(plural(more, "more task"))
    return ways


def _suite_record(difference: Difference) -> dict[str, object]:
    return {
        "task": "",
        "number": difference.name,
        "first": difference.first,
        "second": difference.second,
        "difference": difference.value,
        **scope_cells(difference),
        "answer": difference.answer(THIS_SUITE),
        "p_holm": None,
        "flip": "",
    }


def _task_record(task: TaskDifference) -> dict[str, object]:
    return {
        "task": task.name,
        "number": "pass^1",
        "first": task.first[0] / task.first[1],
        "second": task.second[0] / task.second[1],
        "difference": task.difference,
        **end_cells("this_suite", task.interval),
        **end_cells("tasks_like_these", None),
        "answer": task.answer,
        "p_holm": task.p_holm,
        "flip": task.flip or "",
    }


# The JSON of a comparison, and the sentence that opens it.


class ScopedDifference(TypedDict):
    """A difference in one scope: its interval, and what follows from it."""

    low: float | None
    high: float | None
    verdict: PairedAnswer | None
    method: str
    confidence: float
    tasks: int | None
    p_value: NotRequired[float]
    standard_error: NotRequired[float]
    needed: NotRequired[Needed | None]
    notes: NotRequired[list[str]]


class DifferenceObject(TypedDict):
    """One metric of the first system minus the second, in both scopes."""

    first: float | None
    second: float | None
    value: float | None
    this_suite: ScopedDifference | UnavailableObject
    tasks_like_these: ScopedDifference | UnavailableObject
    corrected: NotRequired[CorrectedDifferenceObject]


class CorrectedDifferenceObject(TypedDict):
    """The same as people would have graded both, from so many labels of each."""

    first: float | None
    second: float | None
    value: float | None
    this_suite: IntervalObject | None
    tasks_like_these: IntervalObject | None
    labels: list[int]
    method: NotRequired[str]
    reason: NotRequired[str]


def verdict(comparison: Comparison, *, scope: Scope | None = None) -> str:
    """Which of the two is better, in one sentence, by what was asked for."""
    corrected = comparison.headline.corrected
    if corrected is not None and comparison.headline.this_suite is corrected.this_suite:
        labels = plural(sum(corrected.labels), "label")
        return f"{_verdict(comparison, scope)} Corrected with {labels} of people."
    return _verdict(comparison, scope)


def _verdict(comparison: Comparison, scope: Scope | None) -> str:
    if scope == TASKS_LIKE_THESE:
        similar = {
            name: replace(own, this_suite=own.tasks_like_these)
            for name, own in comparison.differences.items()
        }
        return f"For similar tasks: {_verdict(replace(comparison, differences=similar), None)}"
    first, second = called(comparison)
    asked = comparison.headline
    name = metric_word(comparison, asked)
    here, there = (
        asked.answer(scope, comparison.margin) for scope in (THIS_SUITE, TASKS_LIKE_THESE)
    )
    number = stated(asked)
    if isinstance(number, Unavailable):
        text = f"{first} and {second} cannot be compared by {name}: {number.reason}"
        return f"{text}{_mean_beside(comparison)}."
    bounds = signed_span(number.interval)
    answer = here or there
    if answer == "undecided":
        ahead = first if number.value > 0 else second
        by = f"{ahead} is {points(abs(number.value), digits=1)} points ahead"
        lead = by if number.value else "they are level"
        text = f"{lead} {signed_span(_ahead_by(number))} at {name}"
        return f"No clear difference: {text}{_mean_beside(comparison, mirrored=number.value < 0)}."
    if answer == "equivalent":
        margin = points(comparison.margin or 0.0)
        text = f"{first} and {second} are equivalent to within {margin} points at {name} {bounds}"
        return f"{text}{_mean_beside(comparison)}."
    levels = f"{percent(asked.first, digits=1)} against {percent(asked.second, digits=1)}"
    size = f"{signed_points(number.value, digits=1)} points"
    limit = "" if there == answer else f"; {not_for_others(len(comparison.tasks))}"
    where = scope_words(THIS_SUITE if here else TASKS_LIKE_THESE)
    p = _p_beside(number).replace(")", f" for {where})")
    text = f"{name} is {levels}, {size}{p}"
    return f"{first} is {answer} than {second}: {text}{_mean_beside(comparison)}{limit}."


def _ahead_by(number: PairedDifference | Estimate) -> Interval | None:
    """The interval of the lead: the difference seen from the side of the one that is ahead."""
    bounds = number.interval
    if bounds is None or number.value >= 0:
        return bounds
    return Interval(-bounds.high, -bounds.low)


def _p_cell(number: PairedDifference | Estimate | Unavailable) -> str:
    beside = "" if isinstance(number, Unavailable) else _p_beside(number)
    return beside.strip(" ()").removeprefix("p").removeprefix(" = ").strip() or "-"


def _p_beside(number: PairedDifference | Estimate) -> str:
    """The p-value, where it says the same as the interval beside it."""
    if not isinstance(number, PairedDifference) or number.interval is None:
        return ""
    p, limit = number.p_value, error_level(number.confidence)
    if (p < limit) != (0 not in number.interval):
        return ""
    return f" ({p_value(p, limit)})"


def stated(difference: Difference) -> PairedDifference | Estimate | Unavailable:
    """The difference for this suite or, if that is unknown, for tasks like these."""
    here = difference.this_suite
    return difference.tasks_like_these if isinstance(here, Unavailable) else here


def _mean_beside(comparison: Comparison, *, mirrored: bool = False) -> str:
    """The mean beside what was asked for, if it is another number.

    `mirrored` where the sentence is about the lead of the second.
    """
    mean = stated(comparison.mean_score)
    same = comparison.headline.value == comparison.mean_score.value
    if isinstance(mean, Unavailable) or same:
        return ""
    name = metric_word(comparison, comparison.mean_score)
    value, bounds = mean.value, mean.interval
    if mirrored:
        value, bounds = -value, bounds and Interval(-bounds.high, -bounds.low)
    return f" ({name} {signed_points(value, digits=1)} {signed_span(bounds)})"


def called(comparison: Comparison) -> tuple[str, str]:
    """What the two are called in sentences: cut if they are long, and never alike."""
    names = _where_they_differ(comparison.first, comparison.second)
    first, second = shorten_apart(names, LONGEST_NAME)
    return (first, second) if first != second else (f"{first} (first)", f"{second} (second)")


_FROM = re.compile(r"(.+) \((.+)\)")


def _where_they_differ(first: str, second: str) -> tuple[str, str]:
    """One agent in two files goes by the shortest part of the paths that differs.

    >>> _where_they_differ("agent (runs/new.jsonl)", "agent (runs/old.jsonl)")
    ('new', 'old')
    """
    here, other = _FROM.fullmatch(first), _FROM.fullmatch(second)
    if here is None or other is None or here[1] != other[1]:
        return first, second
    left, right = PurePath(here[2]), PurePath(other[2])
    if left.stem != right.stem:
        return left.stem, right.stem
    if left.name != right.name:
        return left.name, right.name
    return first, second


def _differences(comparison: Comparison) -> dict[str, DifferenceObject]:
    objects: dict[str, DifferenceObject] = {}
    for name, difference in comparison.differences.items():
        objects[name] = {
            "first": difference.first,
            "second": difference.second,
            "value": difference.value,
            "this_suite": _scoped(difference, THIS_SUITE, comparison.margin),
            "tasks_like_these": _scoped(difference, TASKS_LIKE_THESE, comparison.margin),
        }
        if difference.corrected is not None:
            objects[name]["corrected"] = _corrected_object(difference.corrected)
    return objects


def _corrected_verdict(comparison: Comparison) -> str:
    return verdict(as_people_compare(comparison))


def _leniency(comparison: Comparison) -> NumberObject | None:
    return None if comparison.leniency is None else number_object(comparison.leniency)


def _corrected_object(corrected: CorrectedDifference) -> CorrectedDifferenceObject:
    number = corrected.this_suite
    shown: CorrectedDifferenceObject = {
        "first": corrected.first,
        "second": corrected.second,
        "value": number.value if isinstance(number, Estimate) else None,
        "this_suite": interval_object(interval_of(number)),
        "tasks_like_these": interval_object(interval_of(corrected.tasks_like_these)),
        "labels": list(corrected.labels),
    }
    if isinstance(number, Estimate):
        shown["method"] = number.method
    else:
        shown["reason"] = number.reason
    return shown


def _noise_of_two(noise: NoiseSources) -> str:
    return noise_sentence(noise, systems=2)


def _scoped(
    difference: Difference, scope: Scope, margin: float | None
) -> ScopedDifference | UnavailableObject:
    number = difference.this_suite if scope == THIS_SUITE else difference.tasks_like_these
    if isinstance(number, Unavailable):
        return {"value": None, "reason": number.reason}
    names = ["method", "confidence", "tasks"]
    if isinstance(number, PairedDifference):
        names += ["p_value", "standard_error", "needed", "notes"]
    ends, verdict = end_cells("", number.interval), difference.answer(scope, margin)
    shown = {**ends, "verdict": verdict, **{name: to_json(getattr(number, name)) for name in names}}
    return cast(ScopedDifference, shown)


COMPARISON = JsonShape(
    "comparison",
    Comparison,
    "Two agents on the tasks that both ran.",
    "schema verdict first second margin differences leniency seeded noise tasks only_first "
    "only_second provenance notes",
    verdict=_corrected_verdict,
    differences=_differences,
    leniency=_leniency,
    parts=[noise_shape(_noise_of_two)],
)


def differing_tasks(comparison: Comparison) -> list[TaskDifference]:
    """The tasks that are shown to differ, or flipped and may differ; the most telling first.

    A flip with an adjusted p of 1 says no more than the count of flips does. None are shown where
    gates ended a run early: tests are for a fixed number of trials.
    """
    if comparison.provenance.stopped_early:
        return []
    tasks = [
        task
        for task in comparison.tasks
        if task.answer in ("better", "worse") or (task.flip and min(_p_values(task)) < "1")
    ]
    return sorted(tasks, key=_most_telling)


def _counts_table(comparison: Comparison) -> Table:
    """What passed of each task on both sides, those that moved most first."""
    return Table(
        header=("task", *called(comparison)),
        rows=tuple(
            (task.name, *(f"{passed}/{runs}" for passed, runs in (task.first, task.second)))
            for task in by_movement(comparison.tasks)[:MOST_TASKS]
        ),
        left=(0,),
        cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
    )


def differing_table(comparison: Comparison, rows: Sequence[TaskDifference]) -> Table:
    """A row a task: both sides, their difference, and what the tests say."""
    partial = any(abs(task.difference - task.rate_difference) > _ROUNDING for task in rows)
    what = "score diff." if partial else "diff."
    return Table(
        header=("task", *called(comparison), what, "", "", "p (Holm)", "p (BH)"),
        rows=tuple(
            (
                task.name,
                f"{task.first[0]}/{task.first[1]}",
                f"{task.second[0]}/{task.second[1]}",
                signed_points(task.difference),
                signed_span(task.interval, digits=0),
                Bar(value=task.difference, inner=task.interval),
                *_p_values(task),
            )
            for task in rows
        ),
        left=(0, 4),
        spare=(7,),
        cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        scale=(-1, 1),
        ends=("-100", "+100"),
    )


def legend(comparison: Comparison, rows: Sequence[TaskDifference]) -> list[str]:
    """What the p values are, why a task has none, and why an interval may disagree with them."""
    level = comparison.provenance.options.confidence
    tested = any(task.answer != "unevaluable" for task in rows)
    texts = [_P_VALUES] if tested else []
    if any(task.answer == "unevaluable" for task in rows):
        texts.append(
            "A dash means that a task has too few trials to be tested among so many, even if its "
            "interval excludes 0."
        )
    if any(_is_open(task, level) for task in rows):
        texts.append(
            "Each interval is of one task by itself; the p values allow for all tasks that were "
            "looked at, so that one may leave out 0 where the other shows nothing."
        )
    return texts


def _most_telling(task: TaskDifference) -> tuple[bool, float, float, float, NaturalKey]:
    """Those that could be tested first, the surest of them on top."""
    untested = task.answer == "unevaluable"
    return (
        untested,
        1.0 if untested else task.p_holm,
        1.0 if untested else task.p_screening,
        -abs(task.difference),
        natural_key(task.name),
    )


def _p_values(task: TaskDifference) -> tuple[str, str]:
    if task.answer == "unevaluable":
        return "-", "-"
    return f"{task.p_holm:.3f}", f"{task.p_screening:.3f}"


def _is_open(task: TaskDifference, confidence: float) -> bool:
    tested = task.answer != "unevaluable"
    return tested and 0 not in task.interval and task.p_holm > 1 - confidence


# The page of a comparison: the difference on a line with zero in its middle, then tasks that moved.

_REACHES = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def comparison_page(comparison: Comparison, options: DisplayOptions) -> Mapping[str, Any]:
    """The values of the template."""
    from passhat.reporters.page_parts import PageTranscripts

    fitted = options.transcripts
    if not isinstance(fitted, PageTranscripts):
        fitted = fit_compared(comparison, fitted or {})
    links = _links(comparison, fitted, options)
    numbers = comparison_numbers(comparison, options.scope)
    asked = comparison.headline.name
    k = 1 if asked == "mean_score" else int(asked.removeprefix("pass^"))
    means = asked == "mean_score" and not any(number["k"] for number in numbers[:1])
    by_k = [] if means else [number for number in numbers if number["k"]]
    none = {"k": 0, "answer": verdict(comparison), "chip": _INCOMPARABLE}
    shown = next((number for number in by_k if number["k"] == k), [*numbers, none][0])
    return {
        "headline": shown["answer"],
        "chip": shown["chip"],
        "names": called(comparison),
        "agents": (comparison.second, comparison.first),
        "numbers": numbers,
        "shown": shown,
        "ks": [number["k"] for number in by_k] if len(by_k) > 1 and shown in by_k else [],
        "counts": _counts(comparison),
        "decide": _what_decides(comparison, options),
        "moves": task_moves(comparison, links),
        "tests": [
            *paragraphs("p", _tests_of_p(comparison)),
            *paragraphs("By name", _named_tests(comparison) if numbers else None),
            *_task_tests(comparison),
        ],
        "notes": _page_notes(comparison),
        "transcripts": links,
        "blocks": fitted.blocks,
        "left_out": fitted.left_out_note,
        "cut": fitted.cut_note,
        "verdict": options.verdict,
    }


def fit_compared(comparison: Comparison, transcripts: Transcripts) -> PageTranscripts:
    """The transcripts that fit on the page: those of tasks that moved most come first."""
    from passhat.reporters.page_parts import fit_in_order

    places = {task.name: place for place, task in enumerate(by_movement(comparison.tasks))}
    sides = {comparison.first, comparison.second}
    asked = [key for key in transcripts if key[0] in sides and key[1] in places]
    return fit_in_order(sorted(asked, key=lambda key: (places[key[1]], key)), transcripts)


def by_movement(tasks: Sequence[TaskDifference]) -> list[TaskDifference]:
    """Those that moved most first, in either direction."""
    return sorted(tasks, key=lambda task: (-abs(task.difference), natural_key(task.name)))


def _links(
    comparison: Comparison, fitted: PageTranscripts, options: DisplayOptions
) -> TranscriptLinks:
    """The trials of each side with their transcripts, each beside one of the other side."""
    from passhat.reporters.answers.report_page import transcript_links
    from passhat.reporters.page_parts import from_sequences, trial_outcomes

    sides = (comparison.first, comparison.second)
    letters = {
        (side, task): letters[i]
        for task, letters in comparison.sequences.items()
        for i, side in enumerate(sides)
    }
    known = options.trials
    outcomes = from_sequences(letters, fitted.texts) if known is None else trial_outcomes(known)
    links = transcript_links(fitted, outcomes, several=True, first_trial=options.first_trial)
    others = dict(zip(sides, reversed(sides), strict=True))
    return {
        (side, task): replace(runs, beside=other.first, beside_agent=others[side])
        if (other := links.get((others[side], task)))
        else runs
        for (side, task), runs in links.items()
    }


def comparison_numbers(comparison: Comparison, scope: Scope | None = None) -> list[dict[str, Any]]:
    """Each number with its difference, on one scale; `k` is 0 for a mean of partial scores."""
    known = [number for number in _distinct(comparison) if number.value is not None]
    ends = [e for number in known for interval in both_intervals(number) if interval
            for e in (interval.low, interval.high)]  # fmt: skip
    most = max(
        [abs(end) for end in ends] + [abs(number.value or 0.0) for number in known], default=0.0
    )
    reach = next((number for number in _REACHES if number >= most), 1.0)
    numbers = []
    for number in known:
        k = 0 if number.name == "mean_score" else int(number.name.removeprefix("pass^"))
        asked = comparison if number.name == comparison.headline.name else _about(comparison, k)
        answer = asked.headline.answer(scope or THIS_SUITE, asked.margin)
        numbers.append(
            {
                "k": k,
                "name": metric_word(comparison, number) + " *" * _is_partial(comparison, number),
                "answer": verdict(asked, scope=scope),
                "chip": _CHIPS.get(answer or "", StatusLabel("No clear difference", "open")),
                "first": percent(number.first, digits=1),
                "second": percent(number.second, digits=1),
                "size": signed_points(number.value, digits=1),
                "spans": [signed_span(interval) or "-" for interval in both_intervals(number)],
                "at": _place(number.value or 0.0, reach),
                "bars": [
                    interval and (_place(interval.low, reach), _place(interval.high, reach))
                    for interval in both_intervals(number)
                ],
                "reach": reach,
            }
        )
    return numbers


def _place(difference: float, reach: float) -> float:
    """Where a difference is on the line from -reach to reach, in percent of its length."""
    return round(50 + 50 * difference / reach, 2)


def _about(comparison: Comparison, k: int) -> Comparison:
    """The comparison as if pass^k had been asked for, or the mean score with k = 0."""
    made = comparison.provenance
    asked = replace(made, options=replace(made.options, ks=(k,) if k else ()))
    return replace(comparison, provenance=asked)


def _counts(comparison: Comparison) -> str:
    """What was compared, and which of the two is drawn how."""
    first, second = called(comparison)
    tasks = plural(len(comparison.tasks), "shared task")
    trials = {trials for task in comparison.tasks for _, trials in (task.first, task.second)}
    each = f", {plural(trials.pop(), 'trial')} each" if len(trials) == 1 else ""
    minus = f"every difference is {first} minus {second}"
    return f"{tasks}{each}. Filled is {first}, hollow {second}; {minus}."


def _what_decides(comparison: Comparison, options: DisplayOptions) -> Mapping[str, Any]:
    """What it would take to decide, whether that is worth it, and what narrows the interval."""
    noise = comparison.noise
    facts, texts = [], _steps(comparison, every_task_follows=True)
    if not isinstance(noise, Unavailable):
        texts.append(noise_sentence(noise, systems=2))
        for share, what in ((noise.twice_the_runs, "trials"), (noise.twice_the_tasks, noise.unit)):
            of = f"of the interval for similar tasks, with twice the {what}"
            facts.append((f"\N{MINUS SIGN}{percent(1 - share)}", of))
    numbers = (comparison.headline.this_suite, comparison.headline.tasks_like_these)
    open_ = [
        number
        for number in numbers
        if isinstance(number, PairedDifference) and number.answer == "undecided"
    ]
    title = "What the answer rests on"
    if open_:
        title = "What would decide it"
        needs = [number.needed for number in open_ if number.needed is not None]
        if not needs:
            title = "What the answer rests on"
        elif not any(_ways_to_decide(needed, len(comparison.tasks)) for needed in needs):
            title = "Do not buy more: the difference is too small to be worth proving"
    if isinstance(comparison.seeded, Estimate):
        texts.append(_seeds_sentence(comparison, comparison.seeded))
    return {"title": title, "texts": list(map(options.wording, texts)), "facts": facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMove:
    """A task from the second agent to the first: passes, a dumbbell, and the trials of both."""

    task: TaskDifference
    before: float
    after: float
    counts: str
    request: str
    marks: tuple[Sequence[RunLink | str], ...]
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMoves:
    """Tasks that moved alike, under one heading."""

    title: str
    text: str
    rows: Sequence[TaskMove]
    is_open: bool


def task_moves(comparison: Comparison, links: TranscriptLinks) -> list[TaskMoves]:
    """Worse first, then better, then those that moved a little; the last ones did not move.

    A task got worse or better if it flipped, or if its own test shows it.
    """
    first, second = called(comparison)
    far, near = list[TaskDifference](), list[TaskDifference]()
    for task in comparison.tasks:
        (far if task.flip or task.answer in ("better", "worse") else near).append(task)
    worse = [task for task in far if task.difference < 0]
    better = [task for task in far if task.difference >= 0]
    moved = [task for task in near if abs(task.difference) > _ROUNDING]
    still = [task for task in near if abs(task.difference) <= _ROUNDING]
    always = sum(t.first[0] == t.first[1] and t.second[0] == t.second[1] for t in still)
    never = sum(not t.first[0] and not t.second[0] for t in still)
    ends = ((always, "passed every trial of both"), (never, "passed none of either"))
    kept = ", ".join(f"{count:,} {what}" for count, what in ends if count)
    kept += "." if kept else ""
    flips = all(task.flip for task in far)
    proof = _proof(comparison, far)
    mostly = "Mostly passing with {} and mostly failing with {}. " if flips else ""
    groups = (
        (worse, "got worse", mostly.format(second, first) + proof, True),
        # It is on all that moved this far, and said once.
        (better, "got better", mostly.format(first, second) + proof * (not worse), True),
        (moved, "moved by less", "Within noise, task by task.", False),
        (still, "did not move", kept, False),
    )
    return [
        TaskMoves(
            title=f"{plural(len(tasks), 'task')} {what}",
            text=text.strip(),
            rows=[_move(comparison, task, links) for task in by_movement(tasks)],
            is_open=is_open,
        )
        for tasks, what, text, is_open in groups
        if tasks
    ]


def _proof(comparison: Comparison, far: Sequence[TaskDifference]) -> str:
    """How many of the tasks are shown to differ by themselves, or why none is."""
    shown = sum(task.answer in ("better", "worse") for task in far)
    if shown:
        of = f"{shown:,} of the {plural(len(far), 'task')} that moved this far"
        return f"{of} {'is' if shown == 1 else 'are'} significant alone."
    if all(task.answer == "unevaluable" for task in comparison.tasks):
        return (
            f"None is significant by itself: that takes {comparison.runs_to_test} trials of each."
        )
    return "None is significant by itself."


def _move(comparison: Comparison, task: TaskDifference, links: TranscriptLinks) -> TaskMove:
    sides = comparison.second, comparison.first
    letters = comparison.sequences.get(task.name, ("", ""))[::-1]
    linked = [links.get((side, task.name)) for side in sides]
    (was, out_of), (now, of_now) = task.second, task.first
    same = out_of == of_now
    marks = tuple(
        list(runs.marks) if runs else [own] for runs, own in zip(linked, letters, strict=True)
    )
    opened = linked[1] or linked[0]
    return TaskMove(
        task=task,
        before=was / out_of,
        after=now / of_now,
        counts=f"{was} \N{RIGHTWARDS ARROW} {now} of {of_now}"
        if same
        else f"{was}/{out_of} \N{RIGHTWARDS ARROW} {now}/{of_now}",
        request=next((runs.request for runs in linked if runs and runs.request), ""),
        marks=marks,
        href=opened.leads_to if opened else "",
    )


MOST_TESTED = 300
"""Tasks whose tests the page lists; the JSON has them all."""


def _task_tests(comparison: Comparison) -> list[Block]:
    """What each number decides, and the test of every task that flipped or differs."""
    rows = differing_tasks(comparison)[:MOST_TESTED]
    blocks: list[Block] = [Paragraph("Shown", _shown(comparison))]
    blocks.append(Paragraph("Tasks", _tasks_sentence(comparison, every_task_follows=True)))
    if rows:
        blocks.append(differing_table(comparison, rows))
    return [*blocks, *(Paragraph("Read", text) for text in legend(comparison, rows))]


def _page_notes(comparison: Comparison) -> list[str]:
    texts = [_partial_note(comparison), _left_out(comparison)]
    notes = [f"{capitalised(note)}." for note in comparison.notes]
    return [*(text for text in texts if text), *notes]


class ChangeAnswer(Answer[ChangeReview]):
    """A change as its reviewer reads it."""

    name = "change"

    def title(self) -> str:
        outcome = overview(self.result.report.as_read)
        return f"{self.result.status}: {outcome}" if self.result.status else outcome

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What a reviewer reads, the most important first."""
        review = replace(self.result, report=self.result.report.as_read)
        verdicts, outcome = review.verdicts, overview(review.report)
        blocks: list[Block] = [Headline(outcome if verdicts is None else verdicts.sentence)]
        from passhat.reporters.answers.verdicts import judged

        blocks += [judged(verdict) for verdict in review.judged]
        if review.edits:
            blocks.append(Paragraph("Note", _edits_sentence(review.edits)))
        for name, comparison in review.comparisons.items():
            whose = f" of {name}" if len(review.report.systems) > 1 else ""
            blocks.append(Section(f"Before and after{whose}", f"against {review.baseline}"))
            blocks += _before_and_after(comparison)
        if not review.comparisons and verdicts is not None:
            blocks.append(Paragraph("Report", outcome))
        blocks += _worst(review)
        blocks += paragraphs("Earlier", verdict_text(review.run_verdict))
        if review.explanation is not None:
            from passhat.reporters.answers.explanation import verdict as cause_sentence

            blocks.append(Paragraph("Why", cause_sentence(review.explanation)))
        blocks += paragraphs("Cost", *map(cost, review.report.systems))
        if review.informational:
            blocks.append(Paragraph("Note", "For information only: it does not fail the change."))
        return blocks

    def rows(self) -> Records:
        """The rows of each comparison, with the name of its system."""
        return [
            {"system": name, **row}
            for name, comparison in self.result.comparisons.items()
            for row in ComparisonAnswer(comparison).rows()
        ]

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import gate_suite, task_suites

        review = self.result
        gates = [] if review.verdicts is None else [gate_suite(review.verdicts)]
        return [*task_suites(review.report), *gates]

    def provenance(self) -> Provenance | None:
        return self.result.report.provenance


def _edits_sentence(files: Sequence[str]) -> str:
    listed = ", ".join(files[:MOST_FILES])
    more = f" and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else ""
    return (
        f"This change edits what decides about it: {listed}{more}. Read that part before you trust "
        "the verdict."
    )


def _before_and_after(compared: Comparison) -> list[Block]:
    comparison = as_people_compare(compared)
    rows = tuple(
        _change_row(number)
        for number in comparison.differences.values()
        if number.value is not None
        and not (number.name == "mean_score" and comparison.scores_are_passes)
    )
    header = ("in %", "before", "after", "change", "these tasks", "similar tasks")
    table: Block = Table(header=header, rows=rows)
    blocks = [table if rows else Paragraph("", verdict(comparison))]
    moved = by_movement(differing_tasks(comparison))
    for got, there in (
        ("worse", [task for task in moved if task.difference < 0]),
        ("better", [task for task in moved if task.difference >= 0]),
    ):
        if there:
            what = f"{plural(len(there), 'task')} got {got}"
            heads = (what, "before", "after", "trials before", "trials after")
            counts = tuple(_moved_row(comparison, task) for task in there[:MOST_TASKS])
            blocks.append(Table(header=heads, rows=counts, left=(0, 3, 4)))
    return blocks


def _moved_row(comparison: Comparison, task: TaskDifference) -> tuple[Cell, ...]:
    """How often a task passed before and after, then a few trials of each as marks."""
    letters = comparison.sequences.get(task.name, ("", ""))[::-1]
    marks = (Marks(own if len(own) <= MOST_TASKS else "") for own in letters)
    return (task.name, *(f"{passed}/{of}" for passed, of in (task.second, task.first)), *marks)


def _change_row(difference: Difference) -> tuple[str, ...]:
    return (
        metric_label(difference.name),
        percent(difference.second, digits=1),
        percent(difference.first, digits=1),
        signed_points(difference.value, digits=1),
        *(signed_span(interval) or "-" for interval in both_intervals(difference)),
    )


def _worst(review: ChangeReview) -> Iterator[Block]:
    from passhat.reporters.page_parts import page_rows

    several = len(review.report.systems) > 1 and not review.comparisons
    if several and not any(system.counts_only for system in review.report.systems):
        from passhat.reporters.answers.report_blocks import most_reliable_first, systems_table

        ranked = {system.name: system for system in most_reliable_first(review.report.systems)}
        yield systems_table(ranked, "in %")
        return
    for system in review.report.systems:
        # By rate: a few trials leave most tasks undecided, also those that never pass.
        failing = page_rows(system.tasks.failing())[:MOST_TASKS]
        if failing and system.name not in review.comparisons:
            yield Section(f"Least reliable tasks of {system.name}")
            yield task_counts_table(failing) if system.counts_only else task_table(failing)
