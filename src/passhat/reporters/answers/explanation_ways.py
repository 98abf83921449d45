"""The ways that runs took, and what results say of their suite, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.analysis.explaining.explain import Explanation
from passhat.analysis.explaining.suite_review import SuiteReview
from passhat.analysis.explaining.tool_matrix import NOTHING, ToolMatrix
from passhat.analysis.explaining.trajectories import Trajectories
from passhat.messages import listed, plural
from passhat.reporters.blocks import Bar, Block, Paragraph, Section, Table
from passhat.reporters.numbers import amount, interval_of, percent, points, span, value_of
from passhat.reporters.wording import short
from passhat.stats.estimate import Estimate

MOST_TOOLS = 8
"""Rows and columns of a matrix of tools; the tools that are mistaken most often."""

_MOST_NAMES = 6
_COST_WORDS = {"tokens": "tokens", "cost": "cost", "seconds": "seconds", "tool_calls": "tool calls"}


def way_blocks(explanation: Explanation) -> list[Block]:
    """How alike runs are, what they repeat and mend, which tool for which, cost, and the suite."""
    ways = explanation.trajectories
    blocks: list[Block] = []
    if isinstance(ways.tools, Estimate):
        blocks.append(_likeness(ways))
    if ways.behaviours:
        blocks.append(_behaviours(ways))
    if ways.matrix.tools:
        blocks.append(_matrix(ways.matrix))
    blocks += [Paragraph("Cost", text) for text in _cost_words(ways)]
    if blocks:
        blocks.insert(0, Section("Which ways the runs took"))
    review = list(_review(explanation.review)) if explanation.counts.tasks > 1 else []
    if review:
        blocks.append(Section("What to look at in the suite"))
    return blocks + [Paragraph(label, text) for label, text in review]


def _likeness(ways: Trajectories) -> Table:
    numbers = {
        "which tools they call": ways.tools,
        "the order of their calls": ways.order,
        "taking the very same path": ways.path,
        **{_COST_WORDS[name]: number for name, number in ways.costs.items()},
    }
    return Table(
        header=("two runs of a task are alike in", "%", "", ""),
        rows=tuple(
            (
                words,
                "-" if (value := value_of(number)) is None else points(value),
                span(interval_of(number), digits=0),
                Bar(value=value, inner=interval_of(number)),
            )
            for words, number in numbers.items()
        ),
        left=(0, 2),
    )


def _behaviours(ways: Trajectories) -> Table:
    return Table(
        header=("along the way", "runs", "%", "", "passed %", ""),
        rows=tuple(
            (
                one.words,
                f"{one.runs:,}",
                points(one.share.value),
                span(one.share.interval, digits=0),
                points(one.pass_rate.value),
                span(one.pass_rate.interval, digits=0),
            )
            for one in ways.behaviours
        ),
        left=(0, 3, 5),
        spare=(3,),
    )


def _matrix(matrix: ToolMatrix) -> Table:
    """Expected tools down, chosen tools across by number: names would not fit beside each other."""
    tools = (*matrix.tools[:MOST_TOOLS], NOTHING)
    rows = [
        (
            f"{i} {short(expected)}" if expected else "no call",
            *(f"{matrix.counts.get((expected, chosen), 0) or ''}" for chosen in tools),
        )
        for i, expected in enumerate(tools, 1)
    ]
    what = "expected" if matrix.given else "passing run called"
    return Table(
        header=(f"{what}; failing run called", *map(str, range(1, len(tools))), "none"),
        rows=tuple(rows),
    )


def _cost_words(ways: Trajectories) -> Iterator[str]:
    for split in ways.splits:
        if split.passing is None or split.failing is None:
            continue
        name = _COST_WORDS[split.name]
        yield (
            f"A failing run took {amount(split.failing)} {name} on average, a passing one "
            f"{amount(split.passing)}; {percent(split.failing_share)} of all {name} went into "
            "runs that did not pass."
        )


def _review(review: SuiteReview) -> Iterator[tuple[str, str]]:
    """What the suite's owner should look at."""
    for tasks, verb in ((review.always_pass, "always"), (review.never_pass, "never")):
        if tasks:
            passes = "passes" if len(tasks) == 1 else "pass"
            names = listed(tasks, _MOST_NAMES, show=short)
            told = f"{plural(len(tasks), 'task')} {verb} {passes}, in every run of every system"
            yield "Suite", f"{told}, and so tell nothing apart: {names}."
    if review.duplicates:
        pairs = [f"{short(one.first)} and {short(one.second)}" for one in review.duplicates]
        told = f"{plural(len(pairs), 'pair')} of tasks ask for nearly the same"
        yield "Suite", f"{told}: {listed(pairs, _MOST_NAMES)}."
    if review.lucky:
        names = listed([short(one.task) for one in review.lucky], _MOST_NAMES)
        held = sum(one.share for one in review.lucky)
        verb = "holds" if len(review.lucky) == 1 else "hold"
        told = f"{plural(len(review.lucky), 'task')} {verb} {percent(held)} of the luck of the runs"
        yield "Suite", f"{told}: {names}."
    for pair in review.graders[:_MOST_NAMES]:
        kappa = "" if pair.kappa is None else f" (kappa {pair.kappa:.2f})"
        told = f"{short(pair.first)} and {short(pair.second)} agree in "
        told += f"{percent(pair.agreement.value)} of {plural(pair.agreement.runs or 0, 'run')}"
        read = f"read task {short(pair.example[1])}, trial {pair.example[2]}"
        yield "Graders", f"{told}{kappa}; {read}."
