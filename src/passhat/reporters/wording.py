"""The sentences of a report below its headline: every format says the same in the same words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from passhat.analysis.reports.dependence import SeedSpread
from passhat.analysis.reports.parts import (
    LITTLE_LUCK,
    MUCH_LUCK,
    BarCount,
    Exclusion,
    Metric,
    ResourceUse,
    Rounds,
    StepChain,
    SystemReport,
    VarianceSplit,
    all_errored,
)
from passhat.analysis.reports.parts import common_k as common_k
from passhat.analysis.reports.parts import headline_k as headline_k
from passhat.analysis.reports.parts import is_partial as is_partial
from passhat.arguments import CONFIDENCE, DEPENDABLE
from passhat.messages import capitalised, listed, plural
from passhat.reporters.answer import SCREEN_WIDTH
from passhat.reporters.data import JsonShape
from passhat.reporters.formatting import (
    amount,
    decimals,
    interval_of,
    metric_label,
    percent,
    percent_range,
    points,
    short,
    span,
    value_of,
)
from passhat.stats.estimate import Estimate, Interval, Unavailable, error_level
from passhat.stats.task_labels import BROKEN_BELOW, CERTAINTY, SOLID_ABOVE, SOLID_ERROR
from passhat.stats.variance import NoiseSources


def metric_name(metric: Metric) -> str:
    """The name in a table, with a star where `partial_note` explains it."""
    return metric_label(metric.name) + " *" * is_partial(metric)


def shown_metrics(system: SystemReport) -> list[Metric]:
    """The metrics but for pass@1, and for a mean score that is the pass rate under another name."""
    again = {"pass@1"} if gives_partial_credit(system) else {"pass@1", "mean_score"}
    return [metric for name, metric in system.metrics.items() if name not in again]


def gives_partial_credit(system: SystemReport) -> bool:
    """Whether the score of a task is ever another number than its pass rate."""
    return not np.allclose(system.tasks.mean_score, system.tasks.rate)


def missing_notes(system: SystemReport, metrics: Sequence[Metric] | None = None) -> list[str]:
    """Why a table of metrics has a dash in place of an interval: each reason once."""
    reasons = [
        number.reason.partition(" for similar tasks ")
        for metric in (shown_metrics(system) if metrics is None else metrics)
        for number in (metric.this_suite, metric.tasks_like_these)
        if isinstance(number, Unavailable)
    ]
    notes = [
        f"No interval for similar tasks: it {rule}." if scope else f"{capitalised(whole)}."
        for whole, scope, rule in reasons
    ]
    return list(dict.fromkeys(notes))


def partial_note(system: SystemReport) -> str | None:
    """What the stars in a table of metrics mean; None if there are none."""
    parts = []
    for k in system.ks:
        number = system.pass_hat(k).this_suite
        if isinstance(number, Estimate) and number.excluded_tasks and number.tasks:
            total = number.tasks + number.excluded_tasks
            parts.append(f"k = {k} is over {number.tasks:,} of {plural(total, 'task')}")
    return f"* {', '.join(parts)}; the others have fewer trials." if parts else None


def design(system: SystemReport) -> str:
    """How much was run."""
    shape = system.design
    runs = (
        plural(shape.typical_runs, "trial")
        if shape.equal_runs
        else f"{shape.fewest_runs} to {shape.most_runs} trials"
    )
    if shape.conditions > 1:
        tasks = plural(shape.tasks // shape.conditions, "task")
        return f"{tasks} x {shape.conditions} conditions x {runs}"
    return f"{plural(shape.tasks, 'task')} x {runs}"


def p_value(p: float, level: float = error_level(CONFIDENCE)) -> str:
    """A p-value in words, with as many digits as it takes to stay on its side of `level`.

    >>> p_value(0.0004), p_value(0.004), p_value(0.0312)
    ('p < 0.001', 'p = 0.004', 'p = 0.031')
    >>> p_value(0.04996), p_value(0.05004)
    ('p = 0.04996', 'p = 0.050')
    """
    if p < 0.001:
        return "p < 0.001"
    texts = (f"{p:.{digits}g}" if p < 0.0095 else f"{p:.{digits + 2}f}" for digits in range(1, 18))
    return f"p = {next(text for text in texts if (float(text) < level) == (p < level))}"


def common_design(systems: Sequence[SystemReport]) -> str | None:
    """What every system ran, if it is the same for all."""
    designs = {design(system) for system in systems}
    return designs.pop() if len(designs) == 1 else None


def errors(system: SystemReport, *, name: str = "pass^") -> str | None:
    """Errors apart from failures, with both numbers; None if nothing errored.

    `name` is what the screen calls pass^k.
    """
    split = system.errors
    if not split.count:
        return None
    k = headline_k(system)
    counted = "counted as failures" if split.policy == "fail" else "left out"
    rate = split.rate.value if isinstance(split.rate, Estimate) else 0.0
    text = f"{plural(split.count, 'trial')} errored ({percent(rate)}), {counted}"
    if all_errored(system) and split.policy == "fail":
        return f"{text}; leaving them out would leave nothing to measure."
    now, other = system.pass_hat(k), split.otherwise.get(f"pass^{k}")
    if now.value is None or other is None or other.value is None or now.value == other.value:
        return f"{text}."
    way = "left out" if split.policy == "fail" else "counted as failures"
    would, is_now = percent(other.value, digits=1), percent(now.value, digits=1)
    return f"{text}; {way}, {name}{k} would be {would} instead of {is_now}."


def screen_errors(system: SystemReport) -> str | None:
    """Errors in one line, and what they do to pass^k; None if nothing errored."""
    split, k = system.errors, headline_k(system)
    if not split.count:
        return None
    text = counted_errors(system)
    now, other = system.pass_hat(k), split.otherwise.get(f"pass^{k}")
    if now.value is None or other is None or other.value is None or now.value == other.value:
        return f"{text}."
    them = "it" if split.count == 1 else "them"
    otherwise = f"without {them}" if split.policy == "fail" else "as failures"
    return f"{text}; {otherwise} {metric_label(f'pass^{k}')} is {percent(other.value, digits=1)}."


def counted_errors(system: SystemReport) -> str:
    """How many trials of an agent errored, and how they are counted."""
    counted = "counted as failed" if system.errors.policy == "fail" else "left out"
    count, trials = system.errors.count, plural(system.design.trials, "trial")
    return f"Errors: {count:,} of {trials}, {counted}"


def screen_errors_of(systems: Sequence[SystemReport]) -> str | None:
    """How many trials of several agents errored, and how they are counted."""
    errored = [(system.name, system.errors.count) for system in systems if system.errors.count]
    if not errored:
        return None
    counted = "counted as failed" if systems[0].errors.policy == "fail" else "left out"
    which = listed([f"{short(name)} {count:,}" for name, count in errored], 4)
    total = plural(sum(count for _, count in errored), "trial")
    text = f"Errors: {total} ({which}), {counted}."
    return text if len(text) <= SCREEN_WIDTH else f"Errors: {total}, {counted}."


def errors_note(systems: Sequence[SystemReport]) -> str | None:
    """How errors were counted; a table that is wide enough shows the other way too."""
    count = sum(system.errors.count for system in systems)
    if not count:
        return None
    counted = "left out" if systems[0].errors.policy != "fail" else "counted as failures"
    if count == 1:
        counted = counted.replace("failures", "a failure")
    return f"{plural(count, 'trial')} errored and {'is' if count == 1 else 'are'} {counted}."


def labels(system: SystemReport) -> str:
    """How many tasks are solid, flaky, broken, or not yet any of these."""
    table = system.tasks
    if not len(table):
        return "no label is given, as every trial errored"
    if system.design.most_runs == 1 and not all_errored(system):
        passed = int(table.passed.sum())
        counts = f"{passed:,} passed, {len(table) - passed:,} did not"
        return f"{counts}; a label takes two trials of a task"
    parts = [
        f"{table.count('solid')} solid",
        f"{table.count('flaky')} flaky",
        f"{table.count('broken')} broken",
    ]
    if undecided := table.count("undecided"):
        parts.append(f"{undecided} undecided")
    why = ": every trial errored, and errors count as failures" if all_errored(system) else ""
    return ", ".join(parts) + why


def bars(bar: BarCount) -> str:
    """How many tasks clear their bar, for sure."""
    total = len(bar.above) + len(bar.below) + len(bar.undetermined)
    goal = f"the bar of {percent(bar.bar)}" if bar.bar is not None else "their bars"
    text = (
        f"{metric_label(f'pass^{bar.k}')}: {len(bar.above)} of {plural(total, 'task')} clear "
        f"{goal} for sure, {plural(len(bar.below), 'misses', 'miss')} it, "
        f"{len(bar.undetermined)} undetermined"
    )
    if isinstance(bar.model_share, Estimate):
        text += f"; a model puts the share at {percent(bar.model_share.value)}"
    return text + "."


def headline_bars(system: SystemReport) -> str | None:
    """The bars at the k of the opening sentence; None if no bar was set."""
    k = headline_k(system)
    return next((bars(bar) for bar in system.bars if bar.k == k), None)


def steps(chain: StepChain | None) -> str | None:
    """How many runs reach and pass each step, and all of them; None if no task has steps."""
    if chain is None:
        return None
    each = [
        f"{short(name)} {round(rate.value * (rate.runs or 0)):,} of {rate.runs or 0:,} "
        f"({percent(rate.value)})"
        for name, rate in chain.steps.items()
    ]
    text = f"Passed, of the trials that reached it: {', '.join(each)}."
    if len(chain.steps) < 2:
        return text
    whole = chain.all_steps
    together = (
        f"All steps: {percent(whole.value)} ({percent_range(whole.interval)})."
        if isinstance(whole, Estimate)
        else f"No number for all steps: {whole.reason}."
    )
    return f"{text} {together} Weakest: {short(chain.weakest)}."


def seeds(spread: SeedSpread | Unavailable) -> str | None:
    """How far re-runs differ by seed; None if trials carry none, or one."""
    if isinstance(spread, Unavailable) or len(spread.means) < 2:
        return None
    reach = _reach(spread.means.values())
    reruns = f"{len(spread.means):,} re-runs of the suite (one seed each)"
    text = f"Over {reruns} the mean score was {reach}"
    if isinstance(spread.variance, Unavailable):
        return f"{text}; {spread.variance.reason}."
    between, errors = spread.variance.between, spread.standard_errors
    assert errors is not None, "they are known where the variance is"
    of_seeds, of_trials = (points(error, digits=1) for error in errors)
    beside = (
        f"Standard error of the mean: {of_seeds} points between seeds, {of_trials} within trials."
    )
    if between.interval is None or between.interval.low <= 0:
        return f"{text}: within noise. {beside}"
    deviation = points(between.value**0.5, digits=1)
    moved = f"they move the suite by ±{deviation} points (1 sd) beyond chance"
    return f"{text}: {moved}. {beside}"


def rounds(between: Rounds | Unavailable) -> str | None:
    """How far whole rounds of the suite differ, as leaderboards quote it; None if unknown."""
    if isinstance(between, Unavailable) or between.population_sd == 0:
        return None
    return (
        f"From one trial of every task to the next, {_reach(between.means)} of the tasks passed "
        f"(sd {points(between.population_sd, digits=1)} points)."
    )


def beyond(system: SystemReport) -> str | None:
    """What a model says of streaks longer than any that was run."""
    known = [p for p in system.decay.beyond if isinstance(p.estimate, Estimate)]
    if not known or all_errored(system):
        return None
    parts = ", ".join(f"pass^{p.k} about {_with_bounds(p.estimate)}" for p in known)
    return f"Extrapolated by a model, not measured: {parts}."


def across_tasks(system: SystemReport) -> str | None:
    """Why a feature may go with passing though passed trials took less; None if none does."""
    turned = [
        feature.name.replace("_", " ")
        for feature in system.features.values()
        if _is_reversed(feature)
    ]
    if not turned:
        return None
    are = "is" if len(turned) == 1 else "are"
    return (
        f"Within a task, {listed(turned)} {are} correlated with passing the other way than the "
        "means of passed and failed trials suggest: those also compare easy tasks with hard ones."
    )


def cost(system: SystemReport) -> str | None:
    """What a success costs, and a streak of them; None if nothing was paid."""
    feature = system.features.get("cost")
    if feature is None or not isinstance(feature.per_success, Estimate):
        return None
    if feature.per_success.value == 0:  # nothing is paid for: no sentence about it
        return None
    k = headline_k(system)
    text = f"A success costs {_money(feature.per_success)}"
    streak = feature.per_streak.get(k)
    if k > 1 and isinstance(streak, Estimate):
        text += f", {k} in a row {_money(streak)}"
    return text + "."


def exclusion(left_out: Exclusion) -> str:
    """What was left out of which number, and why, by name."""
    names = listed(left_out.tasks, 3, show=short)
    return f"{plural(len(left_out.tasks), 'task')} of {left_out.what} ({left_out.reason}): {names}."


def exclusions(every: Iterable[Exclusion]) -> Iterator[str]:
    """What was left out, in one sentence where the same tasks are missing at one k after another.

    The first k is named for all: a task with too few runs for it has too few for a larger one.
    """
    for _, same in groupby(
        every, key=lambda left_out: (left_out.tasks, left_out.what == "all metrics")
    ):
        first, *more = same
        if more:
            first = replace(first, what=f"{first.what}, and so on up to {more[-1].what}")
        yield exclusion(first)


def _money(number: Estimate) -> str:
    bounds = number.interval
    between = "" if bounds is None else f" [{amount(bounds.low)}, {amount(bounds.high)}]"
    return amount(number.value) + between


def _is_reversed(feature: ResourceUse) -> bool:
    """Whether passed trials took more over all tasks, but shown less inside them; or the reverse.

    Shown is what the interval of the correlation says: where it includes 0, nothing is.
    """
    bounds, gap = interval_of(feature.association), value_of(feature.difference)
    return bounds is not None and gap is not None and max(bounds.low * gap, bounds.high * gap) < 0


def _with_bounds(number: Estimate | Unavailable) -> str:
    if isinstance(number, Unavailable):
        return "unknown"
    bounds = "" if number.interval is None else f" {span(number.interval, digits=0)}"
    return f"{percent(number.value)}{bounds}"


def _reach(means: Collection[float]) -> str:
    return percent_range(Interval(min(means), max(means)))


# The words of passhat, each with half a sentence of meaning: reports and the docs share them.

GLOSSARY: Mapping[str, str] = {
    # What is run.
    "task": "one thing the agent is asked to do, with a way to tell whether it did it",
    "agent": "what is tested: a model with its prompt and tools, under a name",
    "system": "the agent's name in files: JSON, Python and suites say `system`",
    "trial": "one attempt by one agent at one task: it passed, failed or errored",
    "run": "one execution of `passhat run`; the history keeps each under a key",
    "suite": "the tasks, how many trials of each (`runs:`), and the gates",
    "round": "one trial of every task: the first of each, the second of each, and so on",
    "re-run": "the trials of a suite that share a seed: one round, or several with `seeds:`",
    "seed": "the number of a re-run, in results. An agent that takes a `seed` gets one of its own "
    "in each trial, made from it, the agent, the task and the number of the trial",
    "errored": "the trial broke (an outage, a crash of a tool) before it could pass or fail",
    "cassette": "recorded model answers, to run a suite again without a key",
    "history": "the store of all runs, with the commit they ran at",
    "provenance": (
        "what a number was made from: the files, options and seed, the version, and a fingerprint "
        "of the trials"
    ),
    # The numbers.
    "pass@1": "the share of trials that pass, each task counting the same",
    "pass@k": "the chance that at least one of k trials of a task passes",
    "capability": "what an agent can do at least once: pass@k",
    "pass^k": (
        'the chance that k trials of a task all pass, averaged over tasks (say "pass hat k"); '
        "pass^1 is pass@1"
    ),
    "reliability@k": "another name of pass^k, in gates and JSON",
    "reliable": (
        f"said of an agent whose tasks pass k times in a row at least {percent(DEPENDABLE)} of the "
        "time: the whole interval for these tasks lies above that. If all of it lies below, the "
        "agent is not reliable, and otherwise it is too early to tell. k is at least 2 here: one "
        "trial of a task cannot show what the next one does"
    ),
    "score": "what a trial earns, from 0 to 1; with partial credit also in between",
    "partial credit": "a score between 0 and 1, where part of what was asked is done",
    "mean score": "the mean of the scores; where all are 0 or 1 it is pass@1",
    "target": "a number that a gate can ask for, by its name: `passhat report --targets` lists all",
    "selection rate": "the share of trials in which the agent called a tool",
    "floor": (
        "under tool selection: the least selection rate that a suite demands of a task, and the "
        "most tokens"
    ),
    "coverage": (
        "of a suite, the share of its servers' tools that were called; of intervals, how often "
        "they contain the true value"
    ),
    # How sure they are.
    "confidence interval": (
        "the range [low, high] of true values that the trials do not rule out; CI for short"
    ),
    "confidence": "how often such intervals contain the true value, 95% unless you say otherwise",
    "half-width": "half the length of an interval: the x of ±x",
    "these tasks": 'the tasks that were run, if they ran again ("this suite" in files)',
    "similar tasks": 'other tasks of the same kind, a wider claim ("tasks like these" in files)',
    "Wilson": "an interval for a share that also holds near 0 and 1 (Wilson 1927)",
    "bootstrap": "an interval from drawing the tasks or trials again, thousands of times",
    "paired": "compared task by task, so that hard and easy tasks cancel out",
    "points": "percentage points: from 60% to 65% are 5 points",
    "power": (
        "the chance that a difference of a given size is shown, if it is there; `passhat plan` is "
        "the power analysis"
    ),
    # What they say.
    "gate": "a demand such as pass^3 >= 0.9, decided with known error rates",
    "verdict": (
        "PASS, FAIL or UNDECIDED: what the trials say about a gate; ERROR where nothing could run"
    ),
    "decided": "said of a gate whose verdict is PASS or FAIL",
    "bar": "the pass^k that a single task should reach: its own gate",
    "thresholded reliability": "the share of tasks that clear their bar",
    "baseline": "the results that new ones are compared with",
    "better, worse": "said of agents where the interval of their difference excludes 0",
    "tied": "said of agents with no clear difference between them",
    "flipped": "a task that went from mostly failing to mostly passing, or back",
    "passing, flaky, failing": "a task that passed all of its trials so far, some, or none",
    "solid": (
        "a label: the task passes over 95% of the time, and at most 5% of the tasks that are "
        "called solid do not"
    ),
    "flaky": (
        "so far, a task that passed some trials and failed others; as a label, given at 90% "
        "certainty, one that passes 10% to 95% of the time"
    ),
    "broken": "a label, given at 90% certainty: the task passes under 10% of the time",
    "undecided": "of a gate: neither PASS nor FAIL yet; of a task: no label is certain yet",
    # Where the variation comes from.
    "luck": "the share of the variation between trials that is chance, not the task",
    "ICC": "intraclass correlation: the share of the variation that comes from the task",
    "between-seed error": (
        "the standard error of the mean that comes from seeds (variance across seeds), beside the "
        "one within runs"
    ),
    "correlation with passing": (
        "from -1 to 1: above 0 if, within a task, longer or more expensive trials pass more often"
    ),
    "extrapolated": "what a fitted model expects beyond the trials there are; not a measurement",
    "Reliability Decay Curve": (
        "how pass^k falls as k grows; `decay[k]` is mcptest's number, after k trials in order"
    ),
    "variance amplification": (
        "how much the outcomes of a task vary: 0 if all are alike, 100 if half of them pass "
        "(mcptest)"
    ),
    "cascade": (
        "the steps of a task one after the other: their pass rates multiply (compounding), so the "
        "weakest decides"
    ),
    "graceful degradation": "the share of passes where a later trial weighs more (mcptest)",
    "containment": (
        "the share of failures that were caught before they did harm: "
        "`passhat.stats.containment_rate`"
    ),
}

LABEL_RULE = (
    f"A task gets the label whose chance is at least {percent(CERTAINTY)}: solid for a pass rate "
    f"above {percent(SOLID_ABOVE)}, broken below {percent(BROKEN_BELOW)}, flaky between; without "
    "one it is undecided. The chances come from the task's own trials and from how the tasks of "
    "the suite differ, with a margin for how well that is known. A task that ran once is "
    "undecided; flaky also takes trials that by themselves exclude the other two, so never trials "
    "that all ended alike, and solid takes trials which show that at most "
    f"{percent(SOLID_ERROR)} of the tasks called so are not."
)
"""How labels are given: `label_tasks` in words."""


def meaning(term: str) -> str:
    """The meaning of a term as a short sentence.

    >>> meaning("luck")
    'Luck is the share of the variation between trials that is chance, not the task.'
    """
    return f"{capitalised(term)} is {GLOSSARY[term]}."


# What makes an interval for tasks like these wide, in words and as data.


def noise_shape(sentence: Callable[[NoiseSources], str]) -> JsonShape:
    """The two sources as plain data; twice the runs or tasks is a share of the width now."""
    return JsonShape(
        "noise",
        NoiseSources,
        "How much of the variance of the mean over similar tasks comes from runs, and from tasks.",
        "from_runs from_tasks from_runs_interval=interval unit twice_the_runs twice_the_tasks "
        "break_even buy sentence",
        sentence=sentence,
    )


def noise_sentence(noise: NoiseSources, *, systems: int = 1) -> str:
    """How much of the width runs make and how much tasks, and which of the two to buy."""
    if noise.break_even is None:
        return (
            f"No task varied between its trials: as far as that shows, all of the width for "
            f"similar tasks comes from {noise.unit}, and only new {noise.unit} would reduce it."
        )
    share = percent(noise.from_runs)
    range_ = share if noise.interval is None else percent_range(noise.interval)
    known = "" if range_ == share else f" ({range_})"
    return (
        f"Of the variance behind the interval for similar tasks, {share}"
        f"{known} comes from trials and {percent(noise.from_tasks)} from {noise.unit}: twice the "
        f"trials would make it about {_shorter(noise.twice_the_runs)} shorter, twice the "
        f"{noise.unit} {_shorter(noise.twice_the_tasks)}. {_advice(noise, systems)}"
    )


# An interval is worth more trials if they make it this much of its width, or less.
_MUCH_NARROWER = 0.9


def short_of_2k(system: SystemReport) -> str | None:
    """What 2k trials of each task would make of the headline's interval, if that is much less."""
    k = headline_k(system)
    number = system.pass_hat(k).this_suite if k in system.width_at_2k else None
    if not isinstance(number, Estimate) or number.interval is None:
        return None
    then = system.width_at_2k[k]
    if then > _MUCH_NARROWER * number.interval.width:
        return None
    name = metric_label(f"pass^{k}")
    return (
        f"With {2 * k} trials of every task the interval of {name} for these tasks would be "
        f"about {points(then)} points wide (now {points(number.interval.width)})."
    )


def _shorter(factor: float) -> str:
    return percent(1 - factor)


def _advice(noise: NoiseSources, systems: int) -> str:
    unit = "family" if noise.unit == "families" else "task"
    price = plural(
        round(noise.break_even or 0.0),
        "trial" if systems == 1 else "trial of each agent",
        None if systems == 1 else "trials of each agent",
    )
    if noise.buy == "runs" and round(noise.break_even or 0.0) == 0:
        return f"Buy trials: these tasks show no difference for new {noise.unit} to average out."
    if noise.buy == "runs":
        return f"Buy trials, unless making a new {unit} costs less than {price}."
    if noise.buy == noise.unit:
        return f"Buy {noise.unit}, unless making a new {unit} costs more than {price}."
    if round(noise.break_even or 0.0) == 0:
        return "Too little was run to say which to buy."
    return (
        f"Too little was run to say which to buy; going by these shares, a new {unit} is the "
        f"better buy up to the price of {price}."
    )


_ALL_ALIKE = "every task ended all its trials the same way"


def luck(variance: VarianceSplit | Unavailable) -> str:
    """What the variance split means, with how far that is known."""
    if isinstance(variance, Unavailable):
        return f"{capitalised(variance.reason)}."
    bounds = interval_of(variance.luck)
    if bounds is None:
        return f"No luck was seen: {_ALL_ALIKE}. How much there is stays open (0 to 100%)."
    if variance.leaves_luck_open:
        between = f"between {percent(bounds.low)} and {percent(bounds.high)}"
        few = "Too few tasks or trials to tell luck from skill"
        return f"{few}: {between} of the variation is luck."
    share = variance.luck_share
    meaning = f"{_luck_meaning(bounds)} ({percent_range(bounds)})"
    return f"{percent(share)} of the variation between trials is luck: {meaning}."


def luck_and_icc(variance: VarianceSplit | Unavailable) -> str:
    """The same, with the correlation that statisticians look for, if it has an interval."""
    icc = variance.icc if isinstance(variance, VarianceSplit) else None
    if not isinstance(icc, Estimate) or icc.interval is None:
        return luck(variance)
    return f"{luck(variance)} ICC {icc.value:.2f}{decimals(icc.interval)}."


def family_split(variance: VarianceSplit | Unavailable) -> str | None:
    """How much of the variation is between families, between their tasks, and luck."""
    families = variance.families if isinstance(variance, VarianceSplit) else None
    if families is None:
        return None
    if isinstance(families, Unavailable):
        return f"No split of the variation by family: {families.reason}."
    parts = zip(
        (families.family, families.task, families.run),
        (
            f"between the {families.families} families",
            "between tasks of a family",
            "luck of a trial",
        ),
        strict=True,
    )
    shares = ", ".join(f"{percent(share.value)}{_bracketed(share)} {what}" for share, what in parts)
    notes = "" if families.family.interval is not None else f" ({'; '.join(families.family.notes)})"
    return f"Of the variation of a trial: {shares}{notes}."


def _bracketed(share: Estimate) -> str:
    bounds = share.interval
    return "" if bounds is None else f" [{percent(bounds.low)} to {percent(bounds.high)}]"


def _luck_meaning(bounds: Interval) -> str:
    """What the share means, where its whole interval lies on one side of the lines."""
    if bounds.low >= MUCH_LUCK:
        return "which trials pass is mostly chance, not the task"
    if bounds.high < LITTLE_LUCK:
        return "a task mostly ends the same way every time"
    return "a single trial can mislead"
