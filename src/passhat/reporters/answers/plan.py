"""A plan: what the wanted precision takes, what each design shows, and what gates will cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from passhat.analysis.gates.gate import (
    NoWorseRequirement,
    ThresholdRequirement,
    passing_list,
)
from passhat.analysis.gates.gate_plan import GatePlan, GatePlanRow
from passhat.analysis.gates.plots import plan_figure, plan_finding
from passhat.analysis.planning.label_plan import LabelPlan
from passhat.analysis.planning.plan import (
    PARTIAL_CREDIT,
    Assumptions,
    Assured,
    AssuredComparison,
    AssuredDesign,
    BudgetPlan,
    Plan,
    out_of_reach,
)
from passhat.messages import capitalised, metric_label, plural
from passhat.reporters.answer import (
    Answer,
    Block,
    DisplayOptions,
    Facts,
    Headline,
    Hints,
    NextStep,
    Paragraph,
    Picture,
    Records,
    Remark,
    Section,
    Table,
)
from passhat.reporters.data import JsonShape, to_json
from passhat.reporters.formatting import amount, decimals, percent, points, signed_points
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.sample_size import SuitePlan

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

_ANY = Interval(0.0, 1.0)
"""Of an ICC: nothing is known of it."""


class PlanHead(TypedDict):
    """What a design shows, what a target takes, and where more runs stop helping."""

    schema: Literal["passhat.plan/1"]
    verdict: str


class PlanAnswer(Answer[Plan]):
    """What the wanted precision takes."""

    name = "plan"

    def title(self) -> str:
        chosen = self.result.chosen
        runs = self.result.advised_runs
        each = plural(runs if isinstance(runs, int) else chosen.runs, "trial")
        return f"Plan: {each} of {plural(chosen.tasks, 'task')}"

    def facts(self) -> Facts:
        """What the question takes that the headline answers."""
        if self.result.difference is not None:
            return _facts_of_difference(self.result)
        if self.result.budgets:
            return _facts_of_budget(self.result, self.result.budgets[0])
        chosen, runs = self.result.chosen, self.result.advised_runs
        tasks, each = _similar_tasks(self.result)
        facts = []
        if isinstance(runs, int):
            meaning = f"{runs:,} of each task, for these tasks"
            facts.append((f"{runs * chosen.tasks:,} trials", meaning))
        if isinstance(tasks, int):
            meaning = f"at {plural(each, 'trial')} each, for similar tasks"
            facts.append((f"{tasks:,} tasks", meaning))
        return facts

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The answer to what was asked, what each design shows, and what else a plan may need."""
        plan = self.result
        blocks: list[Block] = [Headline(verdict(plan))]
        apart = plan.difference is not None
        below = plan.budgets if apart else plan.budgets[1:]
        blocks += [Paragraph("Budget", _budget(plan, budget)) for budget in below]
        about = [Paragraph("Compare", _comparing(plan))]
        assumed = [Paragraph("Assumed", _assumed(plan))]
        assumed += [Paragraph("But", f"{capitalised(note)}.") for note in plan.notes]
        if apart:  # what was asked for comes before what was not
            blocks += [*about, *assumed, Section("How precise the number of one agent becomes")]
        if apart or plan.budgets:
            blocks.append(Paragraph("Precision", _precision(plan)))
        promise = plan.assured
        if isinstance(promise, Assured):
            if plan.assumptions.groups is None:  # how other seeds would spread is not simulated
                blocks.append(Paragraph("Kept", _kept(promise)))
            blocks.append(Paragraph("Next", _next(plan, promise)))
        blocks += [_designs(plan), Remark(_whose_widths(plan)), *([] if apart else assumed)]
        if _metric(plan) == _mean_word(plan):
            blocks.append(Paragraph("Floor", _floor(plan)))
        if plan.chosen.best_runs is not None:
            blocks.append(Paragraph("Split", _split(plan)))
        blocks += [] if apart else about
        blocks.append(Paragraph("Certify", _certify(plan)))
        width, runs = _points(plan.chosen.target or 0.0), plural(plan.one_task_runs, "trial")
        text = f"To know its pass rate to {width} takes {runs} of it."
        return [*blocks, Paragraph("One task", text)]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The answer, the designs around it, what it means for similar tasks and two agents."""
        plan = self.result
        base = plan.assumptions
        spread = f"{percent(base.icc)} of the spread between tasks"
        guess = f"{_mean_word(plan)} {percent(base.rate)}, {spread}"
        asked = plan.difference is not None
        below = plan.budgets if asked else plan.budgets[1:]
        texts = [f"{_budget(plan, design).partition(', ±')[0].rstrip('.')}." for design in below]
        first = 1 if asked else 0  # the words are said once
        texts[first:] = [text.removeprefix("A budget of ") for text in texts[first:]]
        if not below:  # what was asked for comes before what was not
            texts += [_precision(plan)] if asked or plan.budgets else []
        texts += [_for_similar(plan), "" if asked or below else _two_agents(plan)]
        blocks: list[Block] = [
            Headline(verdict(plan)),
            _screen_designs(plan, rows=MOST_DESIGNS - len(below)),
            Remark(_whose_widths(plan)),
            *(Remark(text, apart=i == 0) for i, text in enumerate(filter(None, texts))),
            *(Remark(f"{capitalised(note)}.", note=True) for note in plan.notes),
            Remark(f"Assumed: {guess} ({_origin(base)})."),
        ]
        if not base.measured:
            blocks.append(Hints((NextStep("With your own results", "passhat plan RESULTS"),)))
        return blocks

    def rows(self) -> Records:
        return [
            {
                "tasks": self.result.chosen.tasks,
                "runs_of_each": design.runs,
                "runs_in_all": design.runs * self.result.chosen.tasks,
                "this_suite_half_width": design.this_suite,
                "tasks_like_these_half_width": design.tasks_like_these,
            }
            for design in _widths(self.result)
        ]

    def data(self) -> dict[str, object]:
        """Schema "passhat.plan/1"."""
        plan = self.result
        head: PlanHead = {"schema": "passhat.plan/1", "verdict": verdict(plan)}
        return {**head, **to_json(plan)}

    def on_page(self, options: DisplayOptions) -> list[Block]:
        """As in a terminal, without the arrows of a table that has no room for lines."""
        return [
            replace(
                block,
                rows=tuple((*row[:-1], str(row[-1]).removeprefix("<- ")) for row in block.cells),
            )
            if isinstance(block, Table)
            else block
            for block in self.worded_blocks(options)
        ]

    def figures(self) -> Mapping[str, Figure]:
        """How precise the number becomes with more runs of each task."""
        from passhat.drawing import Series, line_chart

        plan = self.result
        designs = _widths(plan)
        runs = [float(design.runs) for design in designs]
        here = Series(name="these tasks", x=runs, y=[design.this_suite for design in designs])
        like = [design.tasks_like_these for design in designs]
        there = Series(name="similar tasks", x=runs, y=like)
        figure = line_chart(
            [here, there],
            title="More trials narrow these tasks; for similar tasks "
            f"{designs[-1].runs:,} of each still leave {_points(like[-1])}",
            finding=f"Half the width of the {percent(plan.confidence)} interval of "
            f"{_metric(plan)}, by the trials of each of {plural(plan.chosen.tasks, 'task')}.",
            x_label="trials of each task",
            y_label="half the width of the interval",
            y_range=(0.0, max(like) * 1.05),
            y_kind="percent",
        )
        return {"precision": figure}


def _facts_of_difference(plan: Plan) -> Facts:
    """Tasks and trials that tell two agents apart, and what the design there is can tell."""
    drawn, (each, seen) = plan.assured_comparison, _shown_difference(plan)
    count = plan.tasks_for_difference
    if isinstance(drawn, AssuredComparison):
        count = drawn.tasks if isinstance(drawn.tasks, int) else None
    facts = []
    if count is not None:
        times = plural(each, "trial")
        facts.append((plural(count, "task"), f"at {times} each, for each of the two agents"))
        facts.append((f"{2 * count * each:,} trials", "in all, of both agents"))
    if seen is not None and seen < 1:
        size = f"{plural(plan.chosen.tasks, 'task')} at {plural(each, 'trial')}"
        facts.append((f"{points(seen, digits=1)} points", f"is what {size} tell apart"))
    return facts


def _shown_difference(plan: Plan) -> tuple[int, float | None]:
    """At how many trials of each task two agents are compared, and the difference they show."""
    drawn, least = plan.assured_comparison, plan.detectable
    if isinstance(drawn, AssuredComparison):
        return drawn.runs_of_each, drawn.detectable
    return (plan.chosen.runs, None) if isinstance(least, Unavailable) else (least.runs, least.value)


def _facts_of_budget(plan: Plan, budget: BudgetPlan) -> Facts:
    """The trials that a budget buys, and what they show."""
    limit, _ = _price(budget)
    if isinstance(budget.design, Unavailable):
        return []
    facts = [(plural(budget.runs_in_all, "trial"), f"for {limit}")]
    if design := _bought(plan, budget.design):
        facts.append((_points(design.this_suite), "for these tasks"))
        facts.append((_points(design.tasks_like_these), "for similar tasks"))
    return facts


def _bought(plan: Plan, design: SuitePlan) -> AssuredDesign | SuitePlan | None:
    """The half-widths at the trials that a budget buys, as the table has them.

    None where they are too few of each task for any pass^k.
    """
    if not isinstance(plan.assured, Assured):
        return design
    return next((bought for bought in plan.assured.designs if bought.runs == design.runs), None)


MOST_DESIGNS = 5
"""Rows of the table on the first screen: those around the answer."""


def _screen_designs(plan: Plan, *, rows: int) -> Table:
    runs = plan.advised_runs
    wanted = runs if isinstance(runs, int) else plan.chosen.runs
    designs = _widths(plan)
    at = next((i for i, design in enumerate(designs) if design.runs >= wanted), len(designs) - 1)
    first = max(0, min(at - rows // 2, len(designs) - rows))
    return Table(
        header=("trials per task", "total", "these tasks", "similar tasks", ""),
        rows=tuple(
            (
                f"{design.runs:,}",
                f"{design.runs * plan.chosen.tasks:,}",
                f"±{points(design.this_suite, digits=1)}",
                f"±{points(design.tasks_like_these, digits=1)}",
                _reaches(plan) if design.runs == runs else "",
            )
            for design in designs[first : first + rows]
        ),
        left=(4,),
    )


def _widths(plan: Plan) -> Sequence[AssuredDesign | SuitePlan]:
    """Half-widths of the number that was asked about; of the mean by formula, if none are drawn."""
    return plan.assured.designs if isinstance(plan.assured, Assured) else plan.designs


def _reaches(plan: Plan) -> str:
    return f"<- reaches {_points(plan.chosen.target or 0.0).removesuffix(' points')}"


def _whose_widths(plan: Plan) -> str:
    promise = plan.assured
    whole = f"± is half the width of the CI of {_metric(plan)}"
    if plan.assumptions.groups is not None:
        return f"{whole}, with the spread between {plan.assumptions.groups.name}s."
    if isinstance(promise, Assured):
        return f"{whole}; {percent(promise.assurance)} of reports stay within it."
    return f"{whole} in a typical report."


def _for_similar(plan: Plan) -> str:
    """What it takes for other tasks of the kind: tasks, where trials no longer help."""
    goal = _points(plan.chosen.target or 0.0)
    tasks, each = _similar_tasks(plan)
    if isinstance(tasks, Unavailable):
        return f"For similar tasks: {tasks.reason}."
    if tasks is None:
        return ""
    reach = f"{tasks:,} tasks x {plural(each, 'trial')} reach {goal.removesuffix(' points')}"
    return f"For similar tasks more trials hardly help: {reach}."


def _similar_tasks(plan: Plan) -> tuple[int | Unavailable | None, int]:
    """The tasks that similar tasks take, and the trials of each at which they do."""
    if isinstance(plan.assured, Assured):
        return plan.assured.tasks, plan.assured.runs_of_each
    least = plan.detectable
    each = plan.chosen.runs if isinstance(least, Unavailable) else least.runs
    return next(design.tasks_needed for design in plan.designs if design.runs == each), each


def _two_agents(plan: Plan) -> str:
    """The difference between two agents that the design shows."""
    if isinstance(plan.assured_comparison, Unavailable) and isinstance(
        plan.detectable, Unavailable
    ):
        return ""
    each, seen = _shown_difference(plan)
    size = f"{plural(plan.chosen.tasks, 'task')} x {plural(each, 'trial')}"
    if (seen or 1.0) >= 1:
        return f"Two agents: {size} cannot show any difference."
    return f"Two agents: {size} show a difference of {points(seen or 1.0)} points."


def _certify(plan: Plan) -> str:
    """How many runs without a failure show that a task is dependable."""
    (goal, runs), *more = plan.zero_failures
    first = f"A task that passes {runs} of {runs} trials is shown to pass at least {percent(goal)}"
    others = [f"{runs} of {runs} show {percent(goal)}" for goal, runs in more]
    return f"{'; '.join([f'{first} of the time', *others])}."


def verdict(plan: Plan) -> str:
    """What was asked for: a difference to detect, else what a budget buys, else a precision."""
    if plan.difference is not None:
        return _for_difference(plan, plan.difference)
    return _budget(plan, plan.budgets[0]) if plan.budgets else _precision(plan)


def _precision(plan: Plan) -> str:
    """What the wanted precision takes, in one sentence: as most reports will have it."""
    promise = plan.assured
    if isinstance(promise, Assured):
        return _assured(promise, plan)
    chosen = plan.chosen
    target = _points(chosen.target or 0.0)
    these, each = (
        (f"these {chosen.tasks:,} tasks", "each") if chosen.tasks > 1 else ("this task", "it")
    )
    if chosen.runs_this_suite is None:
        groups, wanted = plan.assumptions.groups, chosen.target or 0.0
        far = out_of_reach(groups, chosen.this_suite, wanted)
        return f"To know {_metric(plan)} of {these} to {target} takes {far.reason}."
    times = _times(chosen.runs_this_suite)
    return f"To know {_metric(plan)} of {these} to {target}, run {each} {times}."


def _assured(promise: Assured, plan: Plan) -> str:
    target, tasks = _points(promise.half_width), plan.chosen.tasks
    which = "the task" if tasks == 1 else f"each of the {tasks:,} tasks"
    goal = f"to know {_metric(plan)} to {target}"
    if isinstance(promise.runs, Unavailable):
        return f"{capitalised(goal)} takes {promise.runs.reason}."
    total = plural(promise.runs * tasks, "trial")
    return f"Run {which} {_times(promise.runs)} ({total}) {goal}."


def _metric(plan: Plan) -> str:
    """The number that was asked about."""
    promise = plan.assured
    if isinstance(promise, Assured) and promise.metric != "mean":
        return promise.metric
    return _mean_word(plan)


def _mean_word(plan: Plan) -> str:
    """The mean over tasks: of passes, or of scores where some have partial credit."""
    if isinstance(plan.assured, Assured) and plan.assured.metric == "mean":
        return "pass@1"  # suites are drawn for it from passes alone
    partial = PARTIAL_CREDIT in (plan.assured, plan.assured_comparison)
    return "mean score" if partial else "pass@1"


def _kept(promise: Assured) -> str:
    """How often what was said first is kept."""
    weights = promise.effective_tasks
    text = (
        f"{percent(promise.assurance)} of reports will be as narrow, and "
        f"{percent(promise.close_share)} within {promise.close:g} times that: simulated from what "
        "is known now, as the table is."
    )
    return text if weights is None else f"{text} The weighted tasks are as good as {weights:.1f}."


def _next(plan: Plan, promise: Assured) -> str:
    """What as many runs as there are, once more, would make of similar tasks."""
    best = promise.best
    assert best is not None, "trials and tasks can always be bought"
    now = _points(promise.tasks_like_these)
    words = {"runs": "trials"}
    ways = ", ".join(
        f"twice the {words.get(purchase.buys, purchase.buys)} {_points(purchase.tasks_like_these)}"
        for purchase in promise.purchases
    )
    half = best.runs_in_all // 2
    return (
        f"{plural(half, 'trial')} more bring {_metric(plan)} of similar tasks from {now} to: "
        f"{ways}. Buy {words.get(best.buys, best.buys)}."
    )


def _designs(plan: Plan) -> Table:
    return Table(
        header=("trials per task", "total", "these tasks", "similar tasks", ""),
        rows=tuple(
            (
                f"{design.runs:,}",
                f"{design.runs * plan.chosen.tasks:,}",
                _points(design.this_suite),
                _points(design.tasks_like_these),
                _mark(plan, design.runs),
            )
            for design in _widths(plan)
        ),
        left=(4,),
    )


def _mark(plan: Plan, runs: int) -> str:
    if runs == plan.advised_runs:
        return _reaches(plan)
    return "<- this design" if runs == plan.chosen.runs else ""


def _assumed(plan: Plan) -> str:
    base = plan.assumptions
    bounds = base.icc_interval
    open_ = bounds is None or bounds.low == bounds.high or bounds == _ANY
    known = "" if open_ else decimals(bounds)
    share = f"{percent(base.icc)} of the spread between tasks (ICC {base.icc:.2f}{known})"
    level = f"Intervals at {percent(plan.confidence)} confidence."
    return f"A mean of {percent(base.rate)}, with {share}: {_origin(base)}. {level}"


def _origin(base: Assumptions) -> str:
    """Where the mean and the ICC come from: what was not measured is not called so."""
    bounds = base.icc_interval
    if not base.measured:
        return "a guess before any trial"
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
    base, needed = plan.assumptions, chosen.runs_tasks_like_these
    if base.measured and isinstance(needed, Unavailable):
        levels = plan.assumptions.groups
        # More tasks do not make up for few seeds, and more seeds do not for few tasks.
        more = f"{levels.name}s and tasks" if levels and levels.least[1] else "tasks"
        return f"{capitalised(needed.reason)}; only more {more} do better."
    return (
        f"No number of trials on {plural(chosen.tasks, 'task')} gets below {_points(chosen.floor)} "
        "for similar tasks; only more tasks do."
    )


def _budget(plan: Plan, budget: BudgetPlan) -> str:
    limit, each = _price(budget)
    if isinstance(budget.design, Unavailable):
        return f"A budget of {limit} at {each} a trial: {budget.design.reason}."
    runs, tasks = plural(budget.runs_in_all, "trial"), plural(budget.design.tasks, "task")
    buys = (
        f"A budget of {limit} buys {runs} at {each} each: {budget.design.runs:,} of each of {tasks}"
    )
    design = _bought(plan, budget.design)
    if design is None:
        return f"{buys}, too few for {_metric(plan)}."
    return (
        f"{buys}, {_points(design.this_suite)} for these tasks, "
        f"{_points(design.tasks_like_these)} for similar tasks."
    )


def _price(budget: BudgetPlan) -> tuple[str, str]:
    """The limit, and what a run takes of it: dollars, minutes, or seconds if they are few."""
    if budget.unit != "minutes":
        return f"${amount(budget.limit)}", f"${amount(budget.per_run)}"
    limit = f"{amount(budget.limit)} minutes"
    if budget.per_run >= 1:
        return limit, f"{amount(budget.per_run)} minutes"
    return limit, f"{amount(60 * budget.per_run)} seconds"


def _split(plan: Plan) -> str:
    best = plan.chosen.best_runs
    ratio = amount(plan.chosen.cost_ratio or 0.0)
    if isinstance(best, Unavailable):
        return f"{best.reason}."
    return (
        f"If a new task costs as much as {ratio} trials, {plural(best or 1, 'trial')} of each task "
        f"give the most for the money, to know {_mean_word(plan)}."
    )


def _comparing(plan: Plan) -> str:
    power, drawn = percent(plan.power), plan.assured_comparison
    if isinstance(drawn, Unavailable) and isinstance(plan.detectable, Unavailable):
        return f"{capitalised(drawn.reason)}."
    each, seen = _shown_difference(plan)
    size = f"{plural(plan.chosen.tasks, 'task')} at {plural(each, 'trial')} per agent"
    gap = points(seen or 1.0, digits=1)
    least = f"two agents apart that differ by {gap} points of {_metric(plan)}"
    shows = f"tell {least}" if (seen or 1.0) < 1 else "cannot tell any two agents apart"
    return f"{size} {shows} on similar tasks, both run on the same tasks (paired, {power} power)."


def _for_difference(plan: Plan, difference: float) -> str:
    """The tasks, or the runs of the tasks there are, that tell two agents apart."""
    size = f"{100 * abs(difference):g} points of {_metric(plan)} on similar tasks"
    goal = f"To tell two agents apart that differ by {size}"
    drawn, chosen = plan.assured_comparison, plan.chosen
    runs, count = plan.runs_for_difference, plan.tasks_for_difference
    if isinstance(drawn, AssuredComparison):
        runs, count = drawn.runs, drawn.tasks if isinstance(drawn.tasks, int) else None
    more = (
        f"no number of trials on these {chosen.tasks:,} tasks would do"
        if isinstance(runs, Unavailable) or runs is None
        else f"{plural(runs, 'trial')} of each of these {chosen.tasks:,} tasks would do"
    )
    if count is None:
        return f"{goal}, {more}."
    tasks = plural(count, "task")
    if isinstance(drawn, AssuredComparison) and isinstance(drawn.families, int):
        tasks = f"{plural(drawn.families, 'family', 'families')} ({tasks})"
    each = plural(_shown_difference(plan)[0], "trial")
    return f"{goal}, take {tasks} at {each} per agent. {capitalised(more)}."


def _points(half_width: float) -> str:
    return f"±{points(half_width, digits=1)} points".replace(".0 ", " ")


def _times(runs: int) -> str:
    return {1: "once", 2: "twice"}.get(runs, f"{runs:,} times")


class GatePlanAnswer(Answer[Sequence[GatePlan]]):
    """What gates will cost: the chance of each verdict and its runs, over possible truths."""

    name = "gate plan"
    several = True

    def title(self) -> str:
        return f"What {plural(len(self.result), 'gate')} will cost"

    def facts(self) -> Facts:
        """What the first gate takes on average, at most, and with a fixed number of runs."""
        plan = self.result[0]
        low = min(row.expected_runs for row in plan.rows)
        expected = f"{low:,.0f} to {plan.worst_runs:,.0f}"
        facts = [
            (expected, "trials on average, depending on the true rate"),
            (f"{plan.max_runs:,}", "trials at most"),
        ]
        if plan.fixed_runs is not None:
            meaning = "trials of a fixed design with the same error rates"
            facts.append((f"{plan.fixed_runs:,}", meaning))
        return facts

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Each gate: what it takes, how it may end, how that was found, and its picture."""
        return [block for plan in self.result for block in _blocks(plan)]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """What the gate takes, and how it may end over a range of truths."""
        if len(self.result) > 1:
            return [Headline(_takes(plan)) for plan in self.result]
        plan = self.result[0]
        errors = {plan.gate.alpha, plan.gate.beta}
        wrong = f"wrong verdicts at most {percent(max(errors))}"
        size = f"At most {plural(plan.max_runs, 'trial')}"
        if plan.fixed_runs is not None:
            size += f" (a fixed design takes {plan.fixed_runs:,})"
        tasks = plural(plan.tasks, "task")
        if plan.icc is not None and plan.tasks > 1:
            tasks += f", {percent(plan.icc)} of the spread between them"
        notes = [Remark(f"{capitalised(note)}.") for note in plan.notes]
        still_open = _open_rows(plan) and plan.gate.indifference is None
        remark = Remark(f"{size}; {wrong}.{_SHORT_WAY if still_open else ''}")
        assumed = Remark(f"Assumed: {tasks}; one trial at a time.")
        return [Headline(_takes(plan)), _outcomes(plan), assumed, remark, *notes]

    def rows(self) -> Records:
        return [
            {"gate": plan.gate.require, **row}
            for plan in self.result
            for row in map(_GATE_PLAN_ROW, plan.rows)
        ]

    def data(self) -> dict[str, Any]:
        return GATE_PLANS(self.result)

    def figures(self) -> Mapping[str, Figure]:
        return {plan.gate.require: plan_figure(plan) for plan in self.result}


def _takes(plan: GatePlan) -> str:
    """What the gate takes where it is clear, and where it is not."""
    require, rows = plan.gate.require, plan.rows
    decided = [row for row in rows if max(row.passes, row.fails) >= _USUALLY]
    open_ = _open_rows(plan)
    if not decided:
        return plan_finding(plan)
    quick = min(decided, key=lambda row: row.expected_runs)
    slow = max(decided, key=lambda row: row.expected_runs)
    texts = [f"{quick.expected_runs:,.0f} trials at a true {_truth(plan, quick.truth)}"]
    if slow.expected_runs > quick.expected_runs:
        texts.append(f"{slow.expected_runs:,.0f} at {_truth(plan, slow.truth)}")
    takes = f"{require} takes {', '.join(texts)}"
    if not open_:
        return f"{takes}."
    low, high = (_truth(plan, row.truth) for row in (open_[0], open_[-1]))
    span = f"near {low}" if low == high else f"from {low} to {high}"
    return f"{takes}; {span} it mostly stays undecided."


def _open_rows(plan: GatePlan) -> list[GatePlanRow]:
    """The truths at which the gate mostly stays undecided."""
    return [row for row in plan.rows if row.undecided >= 0.5]


_SHORT_WAY = " `indifference=0.05` decides more."
_WAY = " `indifference=0.05` decides it there too, with more trials."
"""What is proposed where a gate stays undecided."""

_USUALLY = 0.8
"""The chance of a verdict from which on a truth is called clear."""


def _outcomes(plan: GatePlan) -> Table:
    demand = plan.gate.demand
    name = metric_label(str(demand.target)) if isinstance(demand, ThresholdRequirement) else "it"
    return Table(
        header=(f"if {name} is", "trials", "19 in 20 within", "verdict"),
        rows=tuple(
            (
                _truth(plan, row.truth),
                f"{row.expected_runs:,.0f}",
                f"{row.runs_95:,.0f}",
                _likeliest(row),
            )
            for row in plan.rows
        ),
        left=(3,),
    )


def _likeliest(row: GatePlanRow) -> str:
    chances = {"PASS": row.passes, "FAIL": row.fails, "UNDECIDED": row.undecided}
    word = max(chances, key=lambda chance: chances[chance])
    return word if chances[word] > 0.995 else f"{word} {percent(chances[word], digits=1)}"


def _blocks(plan: GatePlan) -> list[Block]:
    return [
        Headline(plan_finding(plan)),
        _table(plan),
        *_pass_list(plan),
        Paragraph("Errors", _errors(plan)),
        Paragraph("How", _how(plan)),
        *(Paragraph("But", f"{capitalised(note)}.") for note in plan.notes),
        Picture(plan_figure(plan)),
    ]


def _table(plan: GatePlan) -> Table:
    return Table(
        header=("if the truth is", "PASS", "FAIL", "UNDECIDED", "expected trials", "19 of 20 by"),
        rows=tuple(
            (
                _truth(plan, row.truth),
                percent(row.passes, digits=1),
                percent(row.fails, digits=1),
                percent(row.undecided, digits=1),
                f"{row.expected_runs:,.0f}",
                f"{row.runs_95:,.0f}",
            )
            for row in plan.rows
        ),
    )


def _pass_list(plan: GatePlan) -> list[Block]:
    """How many failures a PASS may have, by run."""
    steps = plan.pass_steps
    if not steps:
        return []
    suite = plan.tasks > 1
    rest = "; or by the bound of a look" if suite else ""
    return [Paragraph("PASS", f"With {passing_list(steps, in_rounds=suite)}{rest}.")]


def _truth(plan: GatePlan, truth: float) -> str:
    if isinstance(plan.gate.demand, NoWorseRequirement):
        return f"{signed_points(truth, digits=1)} points"
    whole = all(round(100 * row.truth, 6).is_integer() for row in plan.rows)
    return percent(truth, digits=0 if whole else 1)


def _errors(plan: GatePlan) -> str:
    gate = plan.gate
    zone = (
        f"No indifference zone: a truth near the threshold stays UNDECIDED.{_WAY}"
        if gate.indifference is None
        else f"Between the threshold and {gate.indifference:g} beyond it, either verdict may come; "
        "`passhat gate` on results has no such zone, and names more trials if the rate is in it."
    )
    return (
        f"Wrong PASS at most {percent(gate.alpha)}, wrong FAIL at most {percent(gate.beta)}. {zone}"
    )


def _how(plan: GatePlan) -> str:
    if plan.exact:
        return f"Exact, for {plural(plan.tasks, 'task')}; at most {plan.max_runs:,} trials."
    return (
        f"Simulated {plan.repetitions:,} times each with seed {plan.seed}, on "
        f"{plural(plan.tasks, 'task')} that differ with ICC {plan.icc:.2f}; one trial at a time."
    )


def _seed(plan: GatePlan) -> int | None:
    return plan.seed


def _plans(plans: Sequence[GatePlan]) -> list[GatePlan]:
    return list(plans)


_GATE_PLAN_ROW = JsonShape(
    "row", GatePlanRow, "", "truth pass=passes fail=fails undecided expected_runs runs_95"
)
_GATE_PLAN = JsonShape(
    "gate_plan",
    GatePlan,
    "A gate before any trial: the chance of each verdict, over a range of truths.",
    "require=gate.require alpha=gate.alpha beta=gate.beta indifference=gate.indifference tasks icc "
    "exact repetitions seed max_runs fixed_runs sentence rows notes",
    seed=_seed,
    sentence=plan_finding,
    parts=[_GATE_PLAN_ROW],
)
GATE_PLANS = JsonShape(
    "gate-plan",
    Sequence,
    "What gates will cost.",
    "schema plans",
    plans=_plans,
    parts=[_GATE_PLAN],
)


# Labels of people, for numbers that rest on a judge.


class LabelPlanAnswer(Answer[Sequence[LabelPlan]]):
    """How many labels to buy, and at how many trials."""

    name = "label plan"
    several = True

    def title(self) -> str:
        return "Labels for numbers that rest on a judge"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        return [block for plan in self.result for block in _label_blocks(plan)]

    def rows(self) -> Records:
        return [
            {"wanted": plan.wanted, "trials": row.trials, "labels": row.labels}
            for plan in self.result
            for row in plan.rows
        ]

    def data(self) -> dict[str, Any]:
        return LABEL_PLANS(self.result)


def label_sentence(plan: LabelPlan) -> str:
    """What to buy, in one sentence."""
    row = plan.rows[0]
    made = plan.tasks * (row.trials or 0)
    each = " of each agent" if plan.agents > 1 else ""
    if row.labels is None:
        other = next((row for row in plan.rows if row.labels is not None), None)
        if other is None:
            more = (
                "more tasks" if plan.each is not None else "a better judge, or labels of all trials"
            )
            return f"No number of labels is enough for {plan.wanted}: it takes {more}."
        at = "many more trials" if other.trials is None else f"{other.trials:,} trials of each task"
        return f"{plural(made, 'trial')}{each} are too few for {plan.wanted}: it takes {at}."
    if plan.each is not None:
        whole = plural(row.labels // plan.each, "task")
        labels = f"{plan.each} trials of each of {whole} ({row.labels:,} labels)"
    else:
        labels = f"about {row.labels:,} of {plural(made, 'trial')}"
    return f"Label {labels}{each} for {plan.wanted}."


def _label_blocks(plan: LabelPlan) -> list[Block]:
    blocks: list[Block] = [Headline(label_sentence(plan))]
    if plan.each is None:
        cells = [
            (
                "many more" if row.trials is None else f"{row.trials:,}",
                "too few trials" if row.labels is None else f"{row.labels:,}",
            )
            for row in plan.rows
        ]
        blocks.append(Table(header=("trials of each task", "labels"), rows=tuple(cells)))
    quality = plan.quality
    wrong = percent(1 - quality.right_passes), percent(quality.wrong_fails)
    off = f"{percent(plan.judged, digits=1)} where people would say {percent(plan.rate, digits=1)}"
    blocks += [
        Remark(
            f"Assumed: {wrong[0]} of what the judge passes is wrong, and {wrong[1]} of what it "
            f"fails; {plural(plan.tasks, 'task')}."
        ),
        Remark(f"Its verdicts alone say that pass@1 is {off}: no number of trials mends that."),
    ]
    return blocks


def _label_plans(plans: Sequence[LabelPlan]) -> list[LabelPlan]:
    return list(plans)


LABEL_PLANS = JsonShape(
    "label-plan",
    Sequence,
    "How many labels of people numbers take that rest on a judge.",
    "schema plans",
    plans=_label_plans,
    parts=[
        JsonShape(
            "label_plan",
            LabelPlan,
            "Labels at so many trials of each task; null: too few trials, or as many as one likes.",
            "sentence number wanted tasks agents rate judged quality each confidence rows",
            sentence=label_sentence,
        )
    ],
)
