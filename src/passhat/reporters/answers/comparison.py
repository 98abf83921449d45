"""A comparison of two systems: who is better, by how much, on which tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from passhat.analysis.comparing.comparison import Comparison, Difference, TaskDifference
from passhat.messages import listed, plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Facts, Records
from passhat.reporters.answers.comparison_data import (
    MOST_TASKS,
    called,
    comparison_object,
    differing_table,
    differing_tasks,
    legend,
    stated,
    verdict,
)
from passhat.reporters.baseline_words import ANSWER_CHIPS
from passhat.reporters.blocks import (
    SHORTEST_HEADING,
    Bar,
    Block,
    Chip,
    Headline,
    NextStep,
    Paragraph,
    Steps,
    Table,
    paragraphs,
)
from passhat.reporters.noise_words import noise_sentence
from passhat.reporters.numbers import (
    both_intervals,
    end_cells,
    points,
    scope_cells,
    signed_points,
    signed_span,
)
from passhat.reporters.safe_text import short
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.paired import PairedDifference

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

SENSIBLE_RUNS = 1_000
"""More runs of each task and system than this are not advised: few would pay for them."""


def comparison_blocks(comparison: Comparison, options: DisplayOptions) -> list[Block]:
    """The verdict, the differences in both scopes, the tasks that differ, what would settle it."""
    blocks: list[Block] = [Headline(verdict(comparison)), _difference_table(comparison)]
    blocks += paragraphs("Starred", _partial_note(comparison))
    blocks += paragraphs("Shown", _shown(comparison))
    if isinstance(comparison.seeded, Estimate):
        blocks.append(Paragraph("Re-runs", _seeds_sentence(comparison, comparison.seeded)))
    if not isinstance(comparison.noise, Unavailable):
        blocks.append(Paragraph("Width", noise_sentence(comparison.noise, systems=2)))
    blocks.append(Paragraph("Tasks", _tasks_sentence(comparison, options.every_task_follows)))
    if rows := differing_tasks(comparison)[:MOST_TASKS]:
        blocks.append(differing_table(comparison, rows))
        blocks += [Paragraph("Read", text) for text in legend(comparison, rows)]
    alone = (comparison.only_first, comparison.only_second)
    for owner, names in zip(called(comparison), alone, strict=True):
        if names:
            blocks.append(Paragraph("Left out", _unshared(owner, names)))
    blocks += [Paragraph("Note", f"{note}.") for note in comparison.notes]
    if steps := _steps(comparison, options.every_task_follows):
        blocks.append(Steps("Next", tuple(map(NextStep, steps))))
    return blocks


def _difference_table(comparison: Comparison) -> Table:
    found = _distinct(comparison)
    reach = max([0.05, *(abs(end) for one in found for end in _ends(one))])
    return Table(
        header=("in %", *called(comparison), "diff.", "this suite", "tasks like these", ""),
        rows=tuple(_difference_row(one, starred=_is_partial(comparison, one)) for one in found),
        left=(0, 4, 5),
        cut=((1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        scale=(-reach, reach),
        ends=(signed_points(-reach), signed_points(reach)),
    )


def _is_partial(comparison: Comparison, one: Difference) -> bool:
    """Whether some of the shared tasks have too few runs for it."""
    tasks = _tasks_of(one)
    return tasks is not None and tasks < len(comparison.tasks)


def _tasks_of(one: Difference) -> int | None:
    number = stated(one)
    return None if isinstance(number, Unavailable) else number.tasks


def _partial_note(comparison: Comparison) -> str | None:
    """What the stars in the table mean; None if there are none."""
    total = plural(len(comparison.tasks), "shared task")
    partial = [one for one in _distinct(comparison) if _is_partial(comparison, one)]
    parts = []
    for count, alike in groupby(partial, key=_tasks_of):
        names = [one.name for one in alike]
        which = f"{names[0]} is" if len(names) == 1 else f"{names[0]} to {names[-1]} are"
        parts.append(f"{which} over {count:,} of {total}")
    return f"* {', '.join(parts)}; the others have fewer runs." if parts else None


def _difference_row(one: Difference, *, starred: bool) -> tuple[str | Bar, ...]:
    return (
        one.name.replace("_", " ") + " *" * starred,
        points(one.first, digits=1),
        points(one.second, digits=1),
        signed_points(one.value, digits=1),
        *(signed_span(interval) or "-" for interval in both_intervals(one)),
        Bar.of(one),
    )


def _shown(comparison: Comparison) -> str:
    """What each scope decides, metric by metric."""
    texts = [_shown_in(comparison, scope) for scope in (THIS_SUITE, TASKS_LIKE_THESE)]
    first, _ = called(comparison)
    if texts[0] == texts[1]:
        return f"{first}: {texts[0]}, for this suite and for tasks like these."
    return f"{first}: {texts[0]} for this suite; {texts[1]} for tasks like these."


def _shown_in(comparison: Comparison, scope: Scope) -> str:
    answers: dict[str, list[str]] = {}
    for one in _distinct(comparison):
        answer = one.answer(scope, comparison.margin) or "not known"
        answers.setdefault(answer, []).append(one.name.replace("_", " "))
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
    found = comparison.differences
    alone = found.get("pass^1")
    score = found["mean_score"]
    same = alone is not None and (alone.first, alone.second) == (score.first, score.second)
    return [one for one in found.values() if not (same and one.name == "mean_score")]


def _ends(one: Difference) -> list[float]:
    return [end for bounds in both_intervals(one) if bounds for end in (bounds.low, bounds.high)]


def _tasks_sentence(comparison: Comparison, every_task_follows: bool) -> str:
    tasks = comparison.tasks
    answers = Counter(task.answer for task in tasks)
    flips = Counter(task.flip for task in tasks)
    text = (
        f"Of {plural(len(tasks), 'shared task')}, {called(comparison)[0]} is shown better on "
        f"{answers['better']} and worse on {answers['worse']}"
    )
    if answers["unevaluable"] == len(tasks):
        text += f" (too few runs to test any: {comparison.runs_to_test} of each are needed)"
    gained = plural(flips["gained"], "task")
    text = f"{text}. {gained} flipped to mostly passing, {flips['lost']} to mostly failing."
    return f"{text}{_listed_tasks(comparison, every_task_follows)}"


def _listed_tasks(comparison: Comparison, every_task_follows: bool) -> str:
    """Which tasks the table lists, where it leaves some out."""
    found = len(differing_tasks(comparison))
    if found == len(comparison.tasks):
        return ""
    said_below = every_task_follows or found > MOST_TASKS
    where = "" if said_below else "; `render_json` lists all tasks"
    if found:
        return f" Listed are tasks shown to differ, and flipped ones unless both p are 1{where}."
    flipped = any(task.flip for task in comparison.tasks)
    return f" None is listed, as both p of each are 1{where}." if flipped else ""


def _unshared(owner: str, names: tuple[str, ...]) -> str:
    shown = listed(names, 5, show=short)
    return f"Only {owner} ran {plural(len(names), 'task')}, left out: {shown}."


def _steps(comparison: Comparison, every_task_follows: bool) -> list[str]:
    most_runs = 2 * SENSIBLE_RUNS * len(comparison.tasks)
    steps = [
        text
        for scope in (THIS_SUITE, TASKS_LIKE_THESE)
        if (text := _needed(comparison.headline, scope, most_runs)) is not None
    ]
    hidden = len(differing_tasks(comparison)) - MOST_TASKS
    if hidden > 0 and not every_task_follows:
        more = plural(hidden, "more task flipped or differs", "more tasks flipped or differ")
        steps.append(f"{more}: `render_json` lists every task.")
    return steps


def _needed(difference: Difference, scope: Scope, most_runs: int) -> str | None:
    """How many more runs or tasks would settle it; runs only up to a number that one would buy."""
    number = difference.this_suite if scope == THIS_SUITE else difference.tasks_like_these
    if not isinstance(number, PairedDifference) or number.answer != "undecided":
        return None
    if number.needed is None:
        if number.margin is not None:
            return f"For {scope}, look at other tasks: on these the two hardly differ."
        return f"For {scope}, state a margin: `margin=0.05` lets it end in 'equivalent'."
    ways = []
    if number.needed.more_runs is not None and number.needed.more_runs <= most_runs:
        ways.append(f"{plural(number.needed.more_runs, 'more run')} in all")
    if number.needed.more_tasks is not None:
        ways.append(plural(number.needed.more_tasks, "more task"))
    if not ways:
        return f"For {scope}, no sensible number of runs on these tasks would settle it."
    ways_said = " or ".join(ways)
    return f"For {scope}, about {ways_said} would settle it 4 times in 5, if the difference holds."


def comparison_rows(comparison: Comparison) -> Records:
    """A row a number, then a row a task: the first system minus the second."""
    suite = [_suite_record(one) for one in comparison.differences.values()]
    return [*suite, *map(_task_record, comparison.tasks)]


def _suite_record(one: Difference) -> dict[str, object]:
    return {
        "task": "",
        "number": one.name,
        "first": one.first,
        "second": one.second,
        "difference": one.value,
        **scope_cells(one),
        "answer": one.answer(THIS_SUITE),
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


def _figures(comparison: Comparison) -> Mapping[str, Figure]:
    from passhat.analysis.comparing.plots import plot_differences

    return {"differences": plot_differences(comparison)}


def _title(comparison: Comparison) -> str:
    first, second = called(comparison)
    return f"{chip(comparison).words}: {first} against {second}"


def chip(comparison: Comparison) -> Chip:
    """The verdict on the first of the two systems."""
    answer = comparison.headline.answer(THIS_SUITE, comparison.margin)
    return _CHIPS.get(answer or "", Chip("Not settled yet", "open"))


def _facts(comparison: Comparison) -> Facts:
    """The difference, and how many tasks flipped each way."""
    lead = comparison.headline
    flips = [task.flip for task in comparison.tasks]
    facts = []
    if lead.value is not None:
        name = "mean score" if lead.name == "mean_score" else lead.name
        here = signed_span(both_intervals(lead)[0])
        bounds = here and f", this suite {here}"
        size = f"{signed_points(lead.value, digits=1)} points"
        facts.append((size, f"difference in {name}{bounds}"))
    facts.append((plural(flips.count("lost"), "task"), "flipped to mostly failing"))
    facts.append((plural(flips.count("gained"), "task"), "flipped to mostly passing"))
    return facts


_CHIPS = {**ANSWER_CHIPS, "equivalent": Chip("Equivalent", "good")}

KIND = AnswerKind(
    name="comparison",
    blocks=comparison_blocks,
    data=comparison_object,
    rows=comparison_rows,
    figures=_figures,
    provenance=lambda comparison: comparison.provenance,
    title=_title,
    chip=chip,
    facts=_facts,
)
