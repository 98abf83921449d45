"""The ways that runs took, and what results say of their suite, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.analysis.explaining.explain import Explanation
from passhat.analysis.explaining.trajectories import NOTHING, ToolMatrix, Trajectories
from passhat.messages import listed, plural
from passhat.records.trial import run_number
from passhat.reporters.blocks import Bar, Block, Paragraph, Section, Table
from passhat.reporters.numbers import amount, interval_of, percent, points, span, value_of
from passhat.reporters.safe_text import short
from passhat.stats.estimate import Estimate

MOST_TOOLS = 8
"""Rows and columns of a matrix of tools; the tools that are mistaken most often."""

_MOST_NAMES = 6
_COST_WORDS = {"tokens": "tokens", "cost": "cost", "seconds": "seconds", "tool_calls": "tool calls"}

_FEW_TASKS = 1 / 3
"""Share of the tasks that both pass and fail up to which "half of the variation" is news."""

# Landis and Koch (1977), table 2: the largest kappa of each word.
_KAPPA_WORDS = (
    (0.0, "no better than chance"),
    (0.2, "hardly better than chance"),
    (0.4, "fairly better than chance"),
    (0.6, "moderately better than chance"),
    (0.8, "substantially better than chance"),
    (1.0, "almost perfectly"),
)


def way_blocks(explanation: Explanation) -> list[Block]:
    """How alike runs are, what they repeat and mend, which tool for which, cost, and the suite."""
    ways = explanation.trajectories
    alike = _likeness(ways)
    blocks: list[Block] = [alike] if alike.rows else []
    if ways.behaviours:
        blocks.append(_behaviours(ways))
    if ways.matrix.tools:
        blocks.append(_matrix(ways.matrix))
    costs = [Paragraph("Cost", text) for text in _cost_words(ways)]
    if blocks:
        blocks.insert(0, Section("Which paths the runs took"))
    elif costs:
        blocks.append(Section("What the runs took"))
    blocks += costs
    review = list(_review(explanation)) if explanation.counts.tasks > 1 else []
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
                points(value_of(number)),
                span(interval_of(number), digits=0),
                Bar(value=value_of(number), inner=interval_of(number)),
            )
            for words, number in numbers.items()
            if isinstance(number, Estimate)
        ),
        left=(0, 2),
    )


def _behaviours(ways: Trajectories) -> Table:
    return Table(
        header=("along the way", "runs", "%", "", "passed %", "", ""),
        rows=tuple(
            (
                one.words,
                f"{one.runs:,}",
                points(one.share.value),
                span(one.share.interval, digits=0),
                points(one.pass_rate.value),
                span(one.pass_rate.interval, digits=0),
                Bar(value=one.pass_rate.value, inner=one.pass_rate.interval),
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
    what = "expected; called" if matrix.given else "passing run called; failing run called"
    return Table(header=(what, *map(str, range(1, len(tools))), "none"), rows=tuple(rows))


def _cost_words(ways: Trajectories) -> Iterator[str]:
    for split in ways.splits:
        if split.passing is None or split.failing is None:
            continue
        name, spent = _COST_WORDS[split.name], f"{percent(split.failing_share)} of all"
        failing, passing = amount(split.failing), amount(split.passing)
        if split.name == "cost":
            both = f"A failing run cost ${failing} on average, a passing one ${passing}"
            yield f"{both}; {spent} the money went into runs that did not pass."
        else:
            both = f"A failing run took {failing} {name} on average, a passing one {passing}"
            yield f"{both}; {spent} {name} went into runs that did not pass."


def _review(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """What the suite's owner should look at."""
    review, mixed = explanation.review, explanation.counts.mixed_tasks
    systems, first_trial = len(explanation.systems), explanation.first_trial
    for tasks, where, alone in (
        (review.always_pass, "every", "too easy to show where this agent fails"),
        (review.never_pass, "no", "too hard for this agent, or wrong"),
    ):
        if tasks:
            names = listed(tasks, _MOST_NAMES, show=short)
            verb = "passes" if len(tasks) == 1 else "pass"
            why = alone if systems == 1 else f"so no difference between these {systems} agents"
            yield "Suite", f"{plural(len(tasks), 'task')} {verb} in {where} run, {why}: {names}."
    if review.duplicates:
        pairs = [f"{short(one.first)} and {short(one.second)}" for one in review.duplicates]
        verb = "asks" if len(pairs) == 1 else "ask"
        texts = f"{plural(len(pairs), 'pair')} of tasks {verb} for nearly the same"
        yield "Suite", f"{texts}: {listed(pairs, _MOST_NAMES)}."
    if review.lucky and len(review.lucky) <= _FEW_TASKS * mixed:
        names = listed([short(one.task) for one in review.lucky], _MOST_NAMES)
        held = percent(sum(one.share for one in review.lucky))
        come = f"comes from {plural(len(review.lucky), 'task')}"
        yield "Suite", f"{held} of the variation between runs of one task {come}: {names}."
    for pair in review.graders[:_MOST_NAMES]:
        kappa = "" if pair.kappa is None else f", {_kappa_words(pair.kappa)}"
        texts = f"{short(pair.first)} and {short(pair.second)} agree in "
        texts += f"{percent(pair.agreement.value)} of {plural(pair.agreement.runs or 0, 'run')}"
        number = run_number(pair.example[2], first_trial)
        read = f"read task {short(pair.example[1])} {number}"
        yield "Graders", f"{texts}{kappa}; {read}."


def _kappa_words(kappa: float) -> str:
    """Agreement beyond chance in words."""
    words = next(words for most, words in _KAPPA_WORDS if kappa <= most + 1e-9)
    return f"{words} (kappa {kappa:.2f})"
