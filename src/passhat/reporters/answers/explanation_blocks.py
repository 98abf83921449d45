"""Why runs fail: what goes together with failing, what went wrong, and which ways runs took."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from passhat.analysis.explaining.causes import Cause, Example
from passhat.analysis.explaining.explain import ERROR, EXIT, LOGGED, STOP, Category, Explanation
from passhat.messages import listed, plural
from passhat.records.transcript import TranscriptKey
from passhat.records.trial import run_number
from passhat.reporters.answer_kind import DisplayOptions
from passhat.reporters.answers.explanation_ways import way_blocks
from passhat.reporters.blocks import (
    Bar,
    Block,
    Headline,
    NextStep,
    Paragraph,
    Section,
    Steps,
    Table,
)
from passhat.reporters.next_steps import advise, only
from passhat.reporters.numbers import percent, points, span
from passhat.reporters.safe_text import short, shorten_apart

MOST_CATEGORIES = 12
"""Categories with a row of their own; the others are counted together."""

LONGEST_EXAMPLE = 20
"""Columns of the task in an example: the table has to fit a terminal of 80."""

_SELF_EVIDENT, _MOST_RUNS = (ERROR, EXIT, STOP), 0.5
"""Endings that answer the question by themselves, from this share of the failed runs on."""

MOST_EXAMPLES = 3
"""Commands that are advised."""

FEW_RUNS = (
    "With 5 runs of one task no cause can be named; 20 runs find a strong one 9 times in 10, and "
    "so do 5 runs of each of 5 tasks that share it."
)
"""By simulation: docs/explanation/calibration.md."""


def explanation_blocks(explanation: Explanation, options: DisplayOptions) -> list[Block]:
    """The answer first, then the causes, what went wrong, the ways, the suite, and how to look."""
    blocks: list[Block] = [Headline(verdict(explanation)), *_findings(explanation)]
    blocks += way_blocks(explanation)
    steps = next_commands(explanation, options.results)
    return [*blocks, Steps("Next", tuple(steps))] if steps else blocks


def why_section(explanation: Explanation) -> list[Block]:
    """The same findings as a part of another answer."""
    short_answer = Paragraph("In short", verdict(explanation))
    return [Section("Why runs fail"), short_answer, *_findings(explanation)]


def verdict(explanation: Explanation) -> str:
    """Why runs fail, in one sentence."""
    counts = explanation.counts
    if explanation.causes:
        return _named(explanation.causes)
    if counts.failed + counts.errored == 0:
        return "No run failed: there is nothing to explain."
    if counts.without_transcript == counts.runs:
        return "Why runs fail is not known: the results hold no transcripts to compare."
    if not counts.mixed_tasks:
        return "No task both passed and failed: there is nothing to compare failing runs with."
    if not explanation.could_name:
        return "Too few runs to name a cause: even a perfect one would look like luck."
    first = explanation.categories[0] if explanation.categories else None
    if first is not None and first.kind in _SELF_EVIDENT and first.share.value >= _MOST_RUNS:
        failed = plural(counts.failed + counts.errored, "run")
        said = f"{category_words(first)}, in {first.count:,} of {failed} that did not pass"
        return f"The runs say it themselves: {said}. Nothing in their calls goes together with it."
    return "Nothing in the calls goes together with failing: luck, or a cause they do not show."


def place(key: TranscriptKey, explanation: Explanation) -> str:
    """A run by its task and number, and its system if there are several."""
    system, task, trial = key
    run = f"task {short(task)} {run_number(trial, explanation.first_trial)}"
    return f"{short(system)}, {run}" if len(explanation.systems) > 1 else run


def category_words(category: Category) -> str:
    """What went wrong in the runs of a category."""
    argument = f" ({category.arguments[0]})" if category.arguments else ""
    colon = "" if category.kind == EXIT else ":"
    return f"{category.kind}{colon} {category.what}{argument}"


def _findings(explanation: Explanation) -> list[Block]:
    """What was compared, the causes, and what went wrong."""
    blocks: list[Block] = [Paragraph("Compared", compared_words(explanation))]
    blocks += [
        Paragraph(str(i), _cause_words(cause, explanation))
        for i, cause in enumerate(explanation.causes, 1)
    ]
    if explanation.causes or explanation.counts.mixed_tasks:
        blocks.append(Paragraph("Mind", caution(explanation)))
    return [*blocks, *category_tables(explanation)]


def category_tables(explanation: Explanation) -> list[Table]:
    """What went wrong; if the log says so itself, also how runs differ from passing ones."""
    first, tables = explanation.first_trial, []
    if explanation.categories:
        tables.append(_categories(explanation.categories, "what went wrong", first))
    # If the log itself says of some run what went wrong, its difference is news.
    logged = any(one.kind in LOGGED for one in explanation.categories)
    if logged and explanation.divergences:
        title = "first difference from passing runs"
        tables.append(_categories(explanation.divergences, title, first))
    return tables


def _named(causes: Sequence[Cause]) -> str:
    first = causes[0]
    if first.words.startswith("never "):
        head = f"Runs that {first.words} fail more often"
    elif first.test == "features":
        head = f"Failing runs more often {first.words}"
    else:
        head = f"Failing runs depart from passing ones in their calls of {first.tool}"
    more = [cause.tool or cause.words for cause in causes[1:]]
    also = f". Also linked to failing: {listed(more, 3, show=short)}" if more else ""
    return f"{head}{also}."


def compared_words(explanation: Explanation) -> str:
    """Which runs were compared, and which could not be."""
    counts = explanation.counts
    texts = []
    if counts.mixed_tasks:
        one = counts.mixed_tasks == 1
        which = f"{counts.mixed_tasks:,} of {plural(counts.tasks, 'task')}"
        who = "The task" if counts.tasks == 1 else which
        head = f"{who} both {'passes and fails: its' if one else 'pass and fail: their'}"
        verb = "was" if counts.failing == 1 else "were"
        texts.append(
            f"{head} {plural(counts.failing, 'failing run')} {verb} compared with the "
            f"{plural(counts.passing, 'passing one')}{', task by task' * (not one)}."
        )
    if counts.never_passed_tasks:
        verb = "passes" if counts.never_passed_tasks == 1 else "pass"
        texts.append(
            f"{plural(counts.never_passed_tasks, 'task')} never {verb} "
            f"({plural(counts.never_passed_runs, 'run')}): nothing to compare with."
        )
    if counts.errored:
        texts.append(f"{plural(counts.errored, 'run')} errored: neither a pass nor a failure.")
    if counts.without_transcript:
        texts.append(f"{plural(counts.without_transcript, 'run')} left no transcript.")
    return " ".join(texts) or f"All {plural(counts.runs, 'run')} passed."


def _cause_words(cause: Cause, explanation: Explanation) -> str:
    said = f"{cause.sentence} p = {cause.p:.2g}. "
    return said + (f"{cause.detail} " if cause.detail else "") + _read(cause.example, explanation)


def _read(example: Example, explanation: Explanation) -> str:
    where = "" if example.call is None else f", call {example.call + 1}"
    return (
        f"Read {place(example.failing, explanation)}{where}, beside "
        f"{run_number(example.passing[2], explanation.first_trial)}, which passed."
    )


def caution(explanation: Explanation) -> str:
    """What a named cause means, or why none is named."""
    chance = percent(explanation.alpha)
    if explanation.causes:
        return (
            "This goes together with failing; it need not be the cause. If failing were pure "
            f"luck, anything would be named with a chance of {chance} at most."
        )
    return FEW_RUNS


def _categories(categories: Sequence[Category], title: str, first_trial: int) -> Table:
    shown = categories[:MOST_CATEGORIES]
    tasks_named = shorten_apart([one.example[1] for one in shown], LONGEST_EXAMPLE)
    rows: list[tuple[str | Bar, ...]] = [
        (
            category_words(one),
            f"{one.count:,}",
            points(one.share.value),
            span(one.share.interval, digits=0),
            f"{len(one.tasks):,}",
            f"{task} {run_number(one.example[2], first_trial)}",
            Bar(value=one.share.value, inner=one.share.interval),
        )
        for one, task in zip(shown, tasks_named, strict=True)
    ]
    if rest := categories[MOST_CATEGORIES:]:
        count = sum(one.count for one in rest)
        tasks = len({task for one in rest for task in one.tasks})
        total = sum(one.count for one in categories)
        rows.append(
            (
                f"{len(rest):,} other kinds",
                f"{count:,}",
                points(count / total),
                "",
                f"{tasks:,}",
                "",
                Bar(value=count / total),
            )
        )
    return Table(
        header=(title, "runs", "%", "", "tasks", "example", ""),
        rows=tuple(rows),
        left=(0, 3, 5),
        spare=(3,),
        wrapped=True,
    )


def next_commands(explanation: Explanation, results: str | None) -> list[NextStep]:
    """Commands that put a failing run beside the passing one to read it with."""
    if results is None:
        return []
    examples = [cause.example for cause in explanation.causes] or list(explanation.partings)
    return [
        advise(
            f"See where {place(one.failing, explanation)} first differs from a run that passed",
            _diff_command(one, results, explanation),
        )
        for one in examples[:MOST_EXAMPLES]
    ]


def _diff_command(example: Example, results: str, explanation: Explanation) -> str:
    system, task, trial = example.failing
    chosen = f" {only(system)}" if len(explanation.systems) > 1 else ""
    numbers = [one - explanation.first_trial + 1 for one in (trial, example.passing[2])]
    # What begins like an option is none after two dashes.
    dashes = "-- " if task.startswith("-") else ""
    words = f"{dashes}{shlex.quote(task)} {numbers[0]} {numbers[1]}"
    return f"passhat diff {results}{chosen} {words}"
