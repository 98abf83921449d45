"""A plan in blocks."""

from __future__ import annotations

from passhat.analysis.planning.budgets import Budget
from passhat.analysis.planning.plan import Assumptions, Plan
from passhat.messages import plural
from passhat.reporters.blocks import (
    Block,
    Headline,
    Paragraph,
    Table,
    blocks_markdown,
    blocks_text,
)
from passhat.reporters.ink import Ink
from passhat.reporters.numbers import amount, percent
from passhat.stats.estimate import Interval, Unavailable

_ANY = Interval(0.0, 1.0)
"""Of an ICC: nothing is known of it."""


def render_plan(plan: Plan, ink: Ink | None = None) -> str:
    """The plan as text for a terminal."""
    return blocks_text(plan_blocks(plan), ink)


def render_plan_markdown(plan: Plan) -> str:
    """The plan as Markdown."""
    return blocks_markdown(plan_blocks(plan))


def plan_blocks(plan: Plan) -> list[Block]:
    """What the target takes, what each design shows, and what else was asked."""
    blocks: list[Block] = [Headline(verdict(plan)), _designs(plan)]
    blocks.append(Paragraph("Assumed", _assumed(plan)))
    blocks += [Paragraph("But", f"{note[:1].upper()}{note[1:]}.") for note in plan.notes]
    blocks.append(Paragraph("Floor", _floor(plan)))
    blocks += [Paragraph("Budget", _budget(plan, budget)) for budget in plan.budgets]
    if plan.chosen.best_runs is not None:
        blocks.append(Paragraph("Split", _split(plan)))
    blocks.append(Paragraph("Compare", _comparing(plan)))
    certified = ", ".join(f"{runs} show {percent(goal)}" for goal, runs in plan.zero_failures)
    blocks.append(Paragraph("Certify", f"Runs of one task without a failure: {certified}."))
    text = f"One task's pass rate to {_points(plan.chosen.target or 0.0)}: "
    blocks.append(Paragraph("One", text + f"{plural(plan.one_task_runs, 'run')}."))
    return blocks


def verdict(plan: Plan) -> str:
    """What the wanted precision takes, in one sentence."""
    chosen = plan.chosen
    target = _points(chosen.target or 0.0)
    runs = chosen.runs_this_suite or 1
    these, each = (
        (f"these {chosen.tasks:,} tasks", "each") if chosen.tasks > 1 else ("this task", "it")
    )
    text = f"To know the mean of {these} to {target}, run {each} {_times(runs)}"
    if chosen.tasks_needed is None:
        return f"{text}."
    more = f"take {plural(chosen.tasks_needed, 'task')} at {plural(chosen.runs, 'run')} each"
    return f"{text}; to know it for tasks like these, {more}."


def _designs(plan: Plan) -> Table:
    return Table(
        header=("runs of each task", "runs in all", "this suite", "tasks like these", ""),
        rows=tuple(
            (
                f"{design.runs:,}",
                f"{design.runs * design.tasks:,}",
                _points(design.this_suite),
                _points(design.tasks_like_these),
                _mark(plan, design.runs),
            )
            for design in plan.designs
        ),
        left=(4,),
    )


def _mark(plan: Plan, runs: int) -> str:
    if runs == (plan.chosen.runs_this_suite or 1):
        return "<- enough"
    return "<- this design" if runs == plan.chosen.runs else ""


def _assumed(plan: Plan) -> str:
    base = plan.assumptions
    bounds = base.icc_interval
    open_ = bounds is None or bounds.low == bounds.high or bounds == _ANY
    known = "" if open_ or bounds is None else f" [{bounds.low:.2f}, {bounds.high:.2f}]"
    share = f"{percent(base.icc)} of the spread between tasks (ICC {base.icc:.2f}{known})"
    level = f"Intervals at {percent(plan.confidence)} confidence."
    return f"A mean of {percent(base.rate)}, with {share}: {_origin(base)}. {level}"


def _origin(base: Assumptions) -> str:
    """Where the mean and the ICC come from: what was not measured is not called so."""
    bounds = base.icc_interval
    if not base.measured:
        return "a guess before any run"
    mean = "given" if base.rate_given else "measured"
    if bounds is None:
        return f"the mean is {mean}, the ICC a guess"
    if bounds.low == bounds.high:
        return f"the mean is {mean}, the ICC given"
    if bounds == _ANY:
        return f"the mean is {mean}, the ICC assumed: these trials leave it open from 0 to 1"
    return "the mean is given, the ICC measured" if base.rate_given else "measured on these trials"


def _floor(plan: Plan) -> str:
    chosen = plan.chosen
    base, found = plan.assumptions, chosen.runs_tasks_like_these
    if base.measured and isinstance(found, Unavailable):
        reason = f"{found.reason[:1].upper()}{found.reason[1:]}"
        return f"{reason}; only more tasks do better. The table takes the ICC as {base.icc:.2f}."
    return (
        f"No number of runs on {plural(chosen.tasks, 'task')} gets below {_points(chosen.floor)} "
        "for tasks like these; only more tasks do."
    )


def _budget(plan: Plan, budget: Budget) -> str:
    start = f"{amount(budget.limit)} {_price(budget)} a run"
    if isinstance(budget.design, Unavailable):
        return f"{start}: {budget.design.reason}."
    design = budget.design
    return (
        f"{start} buy {plural(budget.runs_in_all, 'run')}: {design.runs:,} of each of "
        f"{plural(design.tasks, 'task')}, {_points(design.this_suite)} for this suite, "
        f"{_points(design.tasks_like_these)} for tasks like these."
    )


def _price(budget: Budget) -> str:
    """The unit of the limit, and what a run takes of it: of minutes, seconds where they are few."""
    if budget.unit != "minutes":
        return f"of money at {amount(budget.per_run)}"
    if budget.per_run >= 1:
        return f"minutes at {amount(budget.per_run)} minutes"
    return f"minutes at {amount(60 * budget.per_run)} seconds"


def _split(plan: Plan) -> str:
    best = plan.chosen.best_runs
    ratio = amount(plan.chosen.cost_ratio or 0.0)
    if isinstance(best, Unavailable):
        return f"{best.reason}."
    return (
        f"Where a new task costs as much as {ratio} runs, {plural(best or 1, 'run')} of each task "
        "give the most for the money."
    )


def _comparing(plan: Plan) -> str:
    found, chosen = plan.detectable, plan.chosen
    power = percent(plan.power)
    if isinstance(found, Unavailable):
        return f"{found.reason[:1].upper()}{found.reason[1:]}."
    size = f"{plural(chosen.tasks, 'task')} at {plural(chosen.runs, 'run')} per agent"
    least = f"two agents apart that differ by {100 * found.value:.1f} points"
    told = f"tell {least}" if found.value < 1 else "cannot tell any two agents apart"
    text = f"{size} {told} on tasks like these, both run on the same tasks (paired, {power} power)."
    if plan.difference is None:
        return text
    runs = plan.runs_for_difference
    more = (
        "no number of runs on these tasks would do"
        if isinstance(runs, Unavailable) or runs is None
        else f"{plural(runs, 'run')} of each of these tasks would do"
    )
    size = f"{100 * abs(plan.difference):g} points"
    tasks = plural(plan.tasks_for_difference or 0, "task")
    return f"{text} For {size}: {tasks} at {plural(chosen.runs, 'run')}; {more}."


def _points(half_width: float) -> str:
    return f"±{100 * half_width:.1f} points"


def _times(runs: int) -> str:
    return {1: "once", 2: "twice"}.get(runs, f"{runs:,} times")
