"""How many labels and trials a number takes that rests on a judge, and gates beyond its reach.

More trials make the verdicts surer, not the judge: what labels leave open stays open. Everything
here is the corrected interval of a report, at the counts that are to be expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from passhat.analysis.gates.gate import Gate, ThresholdRequirement, parse_gate
from passhat.analysis.reports.judged import LabelEvidence
from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import Displayed, dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import percent, plural, short_repr
from passhat.stats.assurance import fewest
from passhat.stats.judged import FEWEST_LABELLED_TASKS, FEWEST_LABELS, Strata
from passhat.stats.paired import SETTLING_POWER
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import UNSEEN, lower_quantile
from passhat.stats.sample_size import GUESSED_ICC
from passhat.stats.special import betaincinv, ndtri

WHOLE_TASK = 5
"""Labels of each labelled task for pass^k, or k if that is more: as `passhat label` asks for."""

# Trials of each task that a plan looks at, beside those asked for, and what stands for all others.
_MORE_TRIALS, _ENDLESS = (2, 4), 1_000_000
# Suites drawn for the width of pass^k: their median moves by less than a hundredth of it.
_SUITES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuality:
    """What a judge's verdicts are worth: shares of trials, as they are or as they are expected.

    `passes` is the share that it passes; of these people pass `right_passes`, and of those that it
    fails `wrong_fails`.
    """

    passes: float
    right_passes: float
    wrong_fails: float

    @classmethod
    def expected(cls, rate: float, sensitivity: float, specificity: float) -> JudgeQuality:
        """Of a judge that passes so much of what is right, and fails so much of what is wrong.

        >>> round(JudgeQuality.expected(0.8, 0.9, 0.85).passes, 3)
        0.75
        """
        passes = rate * sensitivity + (1 - rate) * (1 - specificity)
        return cls(
            passes=passes,
            right_passes=rate * sensitivity / passes if passes else 0.0,
            wrong_fails=rate * (1 - sensitivity) / (1 - passes) if passes < 1 else 0.0,
        )

    @classmethod
    def measured(cls, labels: LabelEvidence) -> JudgeQuality:
        """As labels of people show it; both verdicts must have some."""
        read = labels.by_verdict
        for side, word, trials in (
            (read.verdict, "passed", labels.verdicts.passed),
            (~read.verdict, "failed", labels.verdicts.failed),
        ):
            if (count := int(np.count_nonzero(side))) < max(1, min(FEWEST_LABELS, trials.sum())):
                rule = f"must hold {FEWEST_LABELS} labels of trials that the judge {word}"
                raise ArgumentError("results", f"{rule}, or say what the judge is like", count)
        graded = int(labels.verdicts.passed.sum() + labels.verdicts.failed.sum())
        return cls(
            passes=int(labels.verdicts.passed.sum()) / graded,
            right_passes=float(read.passed[read.verdict].mean()),
            wrong_fails=float(read.passed[~read.verdict].mean()),
        )

    @property
    def rate(self) -> float:
        """pass@1 as people would grade."""
        return self.passes * self.right_passes + (1 - self.passes) * self.wrong_fails

    def margins(self, trials: int, labels: int, tail: float) -> tuple[float, float]:
        """How far the corrected interval reaches below and above pass@1, with so many of both."""
        sides = np.array([self.passes, 1 - self.passes])
        read = np.minimum(labels / 2, sides * trials)
        # What one verdict has too few trials for goes to the other.
        read = np.minimum(read + (labels - read.sum()), sides * trials)
        right = read * (self.right_passes, self.wrong_fails)
        strata = Strata(
            size=np.ones(1),
            known=np.array([right.sum() / trials]),
            open=(sides - read / trials)[:, None],
            labels=read[:, None],
            passes=right[:, None],
            runs=float(trials),
            group=np.zeros(1, np.intp),
        )
        low, missing = strata.low(tail), strata.mirrored().low(tail)
        return max(0.0, self.rate - low), max(0.0, 1 - missing - self.rate)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlanRow:
    """Labels that do with so many trials of each task; None: not even labels of all would.

    `trials` is None for as many trials as one likes: what is left is the labels' own.
    """

    trials: int | None
    labels: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan(Displayed):
    """How many labels, at how many trials, a number takes that rests on a judge.

    `wanted` says what for, in words, and `judged` is what the judge's verdicts would say instead of
    `rate`. For pass^k, `labels` are of whole tasks, `each` of them a task.
    """

    number: str
    wanted: str
    tasks: int
    rate: float
    judged: float
    quality: JudgeQuality
    rows: tuple[LabelPlanRow, ...]
    each: int | None
    agents: int
    confidence: float

    def __repr__(self) -> str:
        best = f"{self.rows[0].labels} labels"
        return short_repr(f"LabelPlan for {self.wanted}", best, see=".rows")


def plan_labels(
    quality: JudgeQuality,
    *,
    tasks: int,
    runs: int,
    half_width: float | None = None,
    gate: Gate | str | None = None,
    difference: float | None = None,
    k: int = 1,
    icc: float = GUESSED_ICC,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> LabelPlan:
    """Labels for a width, or else for a gate or a difference, which 4 of 5 times they then decide.

    >>> quality = JudgeQuality.expected(0.8, 0.9, 0.85)
    >>> plan = plan_labels(quality, tasks=50, runs=10, half_width=0.05)
    >>> [(row.trials, row.labels) for row in plan.rows]
    [(10, 152), (20, 145), (40, 145), (None, 145)]
    """
    tasks, runs, k = (
        whole_number(name, value) for name, value in (("tasks", tasks), ("runs", runs), ("k", k))
    )
    if gate is not None:
        gate = parse_gate(gate) if isinstance(gate, str) else gate
        target = (
            gate.demand.target.attempts if isinstance(gate.demand, ThresholdRequirement) else None
        )
        if target is None or (target[0] != "pass^k" and target[1] > 1):
            raise ArgumentError(
                "gate", "must be on pass@1 or pass^k to be planned for a judge", gate
            )
        k = target[1]
    enough, wanted = _question(quality, k, half_width, gate, difference, confidence)
    if k > 1:
        rows, each = (
            [_whole_tasks(quality.rate, k, tasks, runs, icc, seed, enough)],
            max(k, WHOLE_TASK),
        )
    else:
        counts = [runs, *(runs * times for times in _MORE_TRIALS), None]
        rows, each = [_single(quality, tasks, count, enough) for count in counts], None
    agents = 2 if difference is not None else 1
    number = "pass@1" if k == 1 else f"pass^{k}"
    return LabelPlan(
        number=number,
        wanted=wanted.format(number),
        tasks=tasks,
        rate=quality.rate,
        judged=quality.passes,
        quality=quality,
        rows=tuple(rows),
        each=each,
        agents=agents,
        confidence=confidence,
    )


Enough = Callable[[Callable[[float], tuple[float, float]], float], bool]
"""Whether margins (given the tail they are to have) around a value are as short as needed."""


def _question(
    quality: JudgeQuality,
    k: int,
    half_width: float | None,
    gate: Gate | None,
    difference: float | None,
    confidence: float,
) -> tuple[Enough, str]:
    """What is wanted, as a test of the margins of an interval and in words."""
    tail = (1 - confidence) / 2
    power = float(ndtri(SETTLING_POWER))
    if gate is not None:
        demand = gate.demand
        assert isinstance(demand, ThresholdRequirement)
        bar = demand.threshold
        room = 1 + power / -float(ndtri(gate.alpha))

        def decides(margins: Callable[[float], tuple[float, float]], value: float) -> bool:
            below, above = margins(gate.alpha)
            return value - room * below >= bar or value + room * above < bar

        return decides, f"{gate.require} to be decided 4 times in 5"
    if difference is not None:
        gap = probability("difference", difference, open_ends=True)
        room = 1 + power / -float(ndtri(tail))

        # Two independent agents: the tasks that both have in common make it narrower.
        def tells_apart(margins: Callable[[float], tuple[float, float]], value: float) -> bool:
            return room * float(np.hypot(*margins(tail))) <= gap

        return tells_apart, f"a difference of {100 * gap:g} points in {{}} to be seen 4 times in 5"
    half = probability("half_width", 0.05 if half_width is None else half_width, open_ends=True)

    def is_narrow(margins: Callable[[float], tuple[float, float]], value: float) -> bool:
        return sum(margins(tail)) / 2 <= half

    return is_narrow, f"{{}} to be known to ±{100 * half:g} points"


def _single(quality: JudgeQuality, tasks: int, count: int | None, enough: Enough) -> LabelPlanRow:
    """Labels of single trials, half of them passed by the judge."""
    trials = tasks * (_ENDLESS if count is None else count)

    def does(labels: int) -> bool:
        return enough(lambda tail: quality.margins(trials, labels, tail), quality.rate)

    some, most = 2 * FEWEST_LABELS, min(trials, _ENDLESS)
    labels = fewest(does, least=some, most=most) if some <= most else None
    return LabelPlanRow(trials=count, labels=labels)


def _whole_tasks(
    rate: float, k: int, tasks: int, runs: int, icc: float, seed: int, enough: Enough
) -> LabelPlanRow:
    """Labels of whole tasks: the median interval of suites drawn with the expected spread."""
    each, size = max(k, WHOLE_TASK), 1 / min(max(icc, 1e-3), 1 - 1e-3) - 1
    rng = np.random.default_rng(seed)
    rates = rng.beta(size * rate, size * (1 - rate), (_SUITES, tasks)) if 0 < rate < 1 else rate
    passes = rng.binomial(each, rates, (_SUITES, tasks))
    values = share_of_passing_subsets(np.full(passes.shape, each), passes, k)

    def does(count: int) -> bool:
        some = values[:, :count]
        ones = np.ones(count)

        def margins(tail: float) -> tuple[float, float]:
            low = [float(lower_quantile(row, ones, tail, unseen=0.0)) for row in some]
            high = [-float(lower_quantile(-row, ones, tail, unseen=-1.0)) for row in some]
            middle = float(np.median(some.mean(axis=1)))
            return middle - float(np.median(low)), float(np.median(high)) - middle

        return enough(margins, float(np.median(values.mean(axis=1))))

    some = fewest(does, least=min(FEWEST_LABELLED_TASKS, tasks), most=tasks)
    return LabelPlanRow(trials=max(runs, each), labels=None if some is None else each * some)


# Gates that no number of trials can decide.


def out_of_reach(gates: Iterator[Gate] | list[Gate], labels: LabelEvidence) -> Iterator[str]:
    """What to know of gates that would not pass if the judge passed every trial there could be.

    Then pass@1 is the share of its passes that people confirm, of which labels say how low it may
    be; labels of single trials show no more than its k-th power for pass^k.
    """
    read = labels.by_verdict
    passed = int(np.count_nonzero(read.verdict))
    right = int(np.count_nonzero(read.verdict & read.passed))
    if labels.refusal is not None or passed < FEWEST_LABELS:
        return
    for gate in gates:
        demand = gate.demand
        if not isinstance(demand, ThresholdRequirement) or demand.target.attempts is None:
            continue
        metric, k = demand.target.attempts
        by_task = metric != "pass^k" or len(labels.whole)
        if (k > 1 and by_task) or not demand.met_by(1.0):
            continue
        low = _least_share(right, passed, gate.alpha) ** k
        if demand.met_by(low):
            continue
        shown = f"{passed - right} of {plural(passed, 'labelled trial')} that the judge passed"

        def does(count: int, gate: Gate = gate, k: int = k) -> bool:
            share = _least_share(right / passed * count, count, gate.alpha)
            return isinstance(gate.demand, ThresholdRequirement) and gate.demand.met_by(share**k)

        needed = fewest(does, least=passed, most=_ENDLESS)
        way = (
            "the judge is too lenient for it"
            if needed is None
            else f"label about {needed - passed:,} more trials that it passed"
        )
        yield (
            f"no number of trials can pass {gate.require}: people fail {shown}, so that at most "
            f"{percent(low, digits=1)} could be shown; {way}"
        )


def _least_share(right: float, count: int, alpha: float) -> float:
    return float(betaincinv(right, count - right + UNSEEN, alpha)) if right else 0.0
