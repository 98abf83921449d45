"""What moves the result: the factors that trials were crossed with, and their levels.

A factor is a named condition (user, wording, fault, seed, day, judge). Trials of a task at one
level differ by luck; trials at two levels by luck and by the level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.evidence import Counts
from passhat.arguments import HEADLINE_K, ReportOptions
from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import few, plural, short
from passhat.records import Outcome, Trials
from passhat.records.tally import Categorical
from passhat.records.trial import KEPT, NOT_REVIEWED, SEVERITIES, levels_of
from passhat.records.trials import is_sampled
from passhat.stats.dependent_runs import widened
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Unavailable,
    hull,
    ratio_of,
)
from passhat.stats.factors import (
    SIGNIFICANT,
    FactorEffect,
    LevelTest,
    factor_effect,
    level_test,
    outcome_consistency,
    pass_hat_of_levels,
    spread_of_levels,
    stratified_exact_test,
)
from passhat.stats.sufficient_statistics import TaskSums
from passhat.stats.suite_mean import score_estimate, suite_estimate
from passhat.stats.usage import (
    MOST_COMPARED,
    amount_likeness,
    mean_over_pairs,
    mix_likeness,
    path_likeness,
    ratio_of_totals,
)

if TYPE_CHECKING:
    from passhat.stats.paired import PairedDifference

REFERENCE = "as it is"
"""The level of trials that do not name one."""

MOST_LEVELS = 100
"""A factor with more levels is an identity of trials, not a condition."""

# Rates nearer than this are equal but for rounding.
_SAME_RATE = 1e-9


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FactorLevel:
    """One level of a factor: its pass rate on these tasks, and how it compares with the first.

    `p_value` is corrected for the number of levels (Holm). `kept` is the rate as a share of the
    first level's, for similar tasks and never cut off at 1.
    """

    name: str
    tasks: int
    runs: int
    rate: Number
    difference: PairedDifference | Unavailable | None = None
    p_value: float | None = None
    kept: Number = Unavailable("it is the level that others are compared with")


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A factor, what it moves, whether its levels matter, and its levels, the reference first.

    `test` is exact for these tasks; `p_value` is corrected for the number of factors (Holm).
    `worst` is the rate of the level that is truly worst, `worst_levels` those that look it: several
    if they passed alike. `kept` is what all others keep of the rate of the first. `with_one` and
    `with_others` are pass^k of k trials at one level and each at another. `like_these` is pass^k
    for levels like these. `apart` are the tasks whose levels differ most, with the rate at each.
    `judged` are the levels that the report's other numbers are about: the reference, or all.
    """

    name: str
    effect: FactorEffect | Unavailable
    test: LevelTest | Unavailable
    p_value: float | None
    levels: tuple[FactorLevel, ...]
    worst_levels: tuple[str, ...]
    worst: Number
    kept: Number
    k: int
    with_one: Number
    with_others: Number
    like_these: Number
    sampled: bool
    judged: tuple[str, ...]
    apart: Mapping[str, Mapping[str, float]]

    @property
    def matters(self) -> bool:
        """Whether its levels are shown to matter, with all factors taken together."""
        return self.p_value is not None and self.p_value <= SIGNIFICANT


def measure_factors(trials: Trials | None, options: ReportOptions) -> tuple[Factor, ...]:
    """The factors of one system's trials that have several levels; those that matter most first."""
    if trials is None:
        return ()
    judged = levels_of(trials.at_reference().conditions())
    tables = dict(level_tables(trials, options))
    tests = {
        name: level_test(table.runs, table.passes, rng=options.seed)
        for name, table in tables.items()
    }
    p_values, level, factors = _corrected(tests), options.confidence, []
    for name, table in tables.items():
        runs, passes, sampled = table.runs, table.passes, is_sampled(name)
        lowest, worst = worst_level(table, level)
        k = max(1, min(HEADLINE_K, int(runs[runs > 0].min()), len(table.levels)))
        reference = tuple(judged.get(name) or table.levels[:1])
        factors.append(
            Factor(
                name=name,
                effect=factor_effect(runs, passes, unit=table.unit, confidence=level),
                test=tests[name],
                p_value=p_values.get(name),
                levels=_levels(table, options),
                worst_levels=lowest,
                worst=worst,
                kept=kept_by_others(table, level),
                k=k,
                with_one=pass_hat_of_levels(runs, passes, k, other=False, confidence=level),
                with_others=pass_hat_of_levels(runs, passes, k, other=True, confidence=level),
                like_these=levels_like_these(table, k, level),
                sampled=sampled,
                judged=table.levels if sampled else reference,
                apart=_apart(table),
            )
        )
    return tuple(sorted(factors, key=_by_weight))


def _by_weight(factor: Factor) -> tuple[float, ...]:
    """The surest first; of those that are as sure, the one that moves the result most."""
    moved = factor.effect and factor.effect.moved
    size = moved.value if isinstance(moved, Estimate) else 0.0
    rates = [level.rate.value for level in factor.levels if isinstance(level.rate, Estimate)]
    gap = max(rates) - min(rates) if rates else 0.0
    return 2.0 if factor.p_value is None else factor.p_value, -size, -gap


def moving_samples(trials: Trials | None, options: ReportOptions) -> list[str]:
    """The kinds of seeds or days, of which more could be taken, that are shown to matter."""
    if trials is None or not trials.sampled_levels():
        return []
    p_values = level_p_values(dict(level_tables(trials, options)))
    return [name for name, p in p_values.items() if is_sampled(name) and p <= SIGNIFICANT]


def level_p_values(tables: Mapping[str, LevelTable]) -> dict[str, float]:
    """The p-value of each factor that can be tested, corrected for the number of them (Holm)."""
    return _corrected({name: level_test(t.runs, t.passes) for name, t in tables.items()})


def _corrected(
    tests: Mapping[str, LevelTest | PairedDifference | Unavailable],
) -> dict[str, float]:
    """The p-values of the tests that could be made, corrected for their number (Holm)."""
    known = {
        name: test.p_value for name, test in tests.items() if not isinstance(test, Unavailable)
    }
    return dict(zip(known, _holm(list(known.values())), strict=True))


def _holm(p_values: Sequence[float]) -> list[float]:
    if not p_values:
        return []
    from passhat.stats.multiple_testing import holm

    corrected: list[float] = holm(p_values).tolist()
    return corrected


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelTable:
    """Trials and passes of each task (row) at each level (column) of one factor.

    A row is a task with all other factors held fixed, so a task (`unit`) may have several.
    """

    levels: tuple[str, ...]
    names: tuple[str, ...]
    unit: NDArray[np.intp]
    runs: Counts
    passes: Counts


def level_tables(trials: Trials, options: ReportOptions) -> list[tuple[str, LevelTable]]:
    """The trials of one system at the levels of each factor: its conditions, and its seeds."""
    sampled = trials.sampled_levels()
    if trials.at is None and not sampled:
        return []
    kept = np.arange(len(trials))
    if options.errors == "exclude":
        kept = np.flatnonzero(trials.outcome != Outcome.ERRORED)
    trials, sampled = trials.take(kept), {name: codes[kept] for name, codes in sampled.items()}
    if not len(trials):
        return []
    at = trials.at or Categorical.missing(len(trials))
    conditions = [dict(word.partition("=")[::2] for word in name.split("\0")) for name in at.names]
    conditions.append({})  # of trials that name none
    factors = dict.fromkeys(name for condition in conditions for name in condition)
    base = trials.bases()
    place = {name: code for code, name in enumerate(base.names)}
    base_code = np.array([place.get(name, -2) for name in trials.task.names], dtype=np.intp)
    own = np.asarray(base.codes == base_code[trials.task.codes])
    # Who names no level of a factor is at that of tasks as they are, if all of those name the same.
    usual = {name: {conditions[code].get(name) for code in set(at.codes[own])} for name in factors}
    plain = {name: names.pop() for name, names in usual.items() if len(names) == 1}
    for condition in conditions if not own.all() else ():
        condition.update({n: level for n, level in plain.items() if level and n not in condition})
    tables = []
    for name in dict.fromkeys((*factors, *sampled)):
        if name in factors:
            levels = Categorical.of(condition.get(name, REFERENCE) for condition in conditions)
            column = Categorical(levels.names, levels.codes[at.codes])
        else:
            assert trials.seed is not None, "they are the levels of the column"
            column = Categorical.of(map(str, trials.seed.tolist()))
        # Trials at several levels of a sample are of one setting: each is one more of the task.
        others = Categorical.of(
            "\0".join(f"{n}={v}" for n, v in sorted(at.items()) if n != name and n not in sampled)
            for at in conditions
        )
        setting = Categorical(others.names, others.codes[at.codes])
        if (table := _table(column, setting, trials, base, own)) is not None:
            tables.append((name, table))
    return tables


def _table(
    level: Categorical,
    setting: Categorical,
    trials: Trials,
    base: Categorical,
    own: NDArray[np.bool_],
) -> LevelTable | None:
    # The reference first: the level of tasks as they are, else the first that occurs.
    first = level.codes[own] if own.any() and not own.all() else level.codes
    order = dict.fromkeys([int(first[0]), *range(len(level.names))])
    if not 1 < len(order) <= MOST_LEVELS:
        return None
    levels = tuple(level.names[code] for code in order)
    column = np.argsort(list(order))[level.codes]
    settings = len(setting.names)
    kinds, row = np.unique(
        base.codes.astype(np.int64) * settings + setting.codes, return_inverse=True
    )
    shape = len(kinds), len(levels)
    cell = row.ravel() * len(levels) + column
    runs = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    passed = trials.outcome == Outcome.PASSED
    passes = np.bincount(cell[passed], minlength=shape[0] * shape[1]).reshape(shape)
    several = (runs > 0).sum(axis=1) > 1
    unit = (kinds // settings).astype(np.intp)
    # Tasks that the factor is nothing to, such as those without a user, are at no level of it.
    tried = runs[several].any(axis=0)
    if tried.sum() < 2:
        return None
    return LevelTable(
        levels=tuple(name for name, kept in zip(levels, tried.tolist(), strict=True) if kept),
        names=tuple(base.names[i] for i in unit[several].tolist()),
        unit=unit[several],
        runs=runs[several][:, tried].astype(np.int64),
        passes=passes[several][:, tried].astype(np.int64),
    )


def _levels(table: LevelTable, options: ReportOptions) -> tuple[FactorLevel, ...]:
    """Each level on these tasks, and its difference from the first on the tasks of both."""
    confidence = options.confidence
    sides = [_sums(table, place) for place in range(len(table.levels))]
    levels = {
        name: FactorLevel(
            name=name,
            tasks=int((side.runs > 0).sum()),
            runs=int(side.runs.sum()),
            rate=_rate(side, confidence),
        )
        for name, side in zip(table.levels, sides, strict=True)
    }
    from passhat.stats.paired import paired_difference

    differences = {
        name: paired_difference(
            side, sides[0], scope=THIS_SUITE, confidence=confidence, rng=options.seed
        )
        for name, side in zip(table.levels[1:], sides[1:], strict=True)
    }
    p_values = _corrected(differences)
    for (name, difference), side in zip(differences.items(), sides[1:], strict=True):
        kept = _kept(side, sides[0], confidence)
        levels[name] = replace(
            levels[name], difference=difference, kept=kept, p_value=p_values.get(name)
        )
    return tuple(levels.values())


def _sums(table: LevelTable, place: int) -> TaskSums:
    return TaskSums.of_passes(table.runs[:, place], table.passes[:, place])


def _rate(side: TaskSums, confidence: float) -> Number:
    ran = side.runs > 0
    passes = side.total[ran].astype(np.int64)
    return suite_estimate(side.runs[ran], passes, k=1, scope=THIS_SUITE, confidence=confidence)


def _kept(side: TaskSums, first: TaskSums, confidence: float) -> Number:
    """The rate as a share of the first level's: the hull of what trials and tasks allow.

    MOVER-R treats the tasks as fixed; the ratio of totals counts how it differs between tasks.
    """
    both = (side.runs > 0) & (first.runs > 0)
    if not both.any():
        return Unavailable("no task has trials at both levels")
    sides = [
        TaskSums(runs=s.runs[both], total=s.total[both], squares=s.squares[both])
        for s in (side, first)
    ]
    here = ratio_of(*(_rate(side, confidence) for side in sides))
    alike = ratio_of_totals(*(side.total / side.runs for side in sides), confidence=confidence)
    if not isinstance(here, Estimate) or not isinstance(alike, Estimate):
        return here if isinstance(here, Unavailable) else alike
    if here.interval is None or alike.interval is None:
        return here
    return replace(
        alike,
        interval=hull(here.interval, alike.interval),
        method=f"{here.method}, and {alike.method}",
    )


def kept_by_others(table: LevelTable, confidence: float) -> Number:
    """What the other levels together keep of the first level's rate."""
    others = TaskSums.of_passes(table.runs[:, 1:].sum(axis=1), table.passes[:, 1:].sum(axis=1))
    return _kept(others, _sums(table, 0), confidence)


def worst_level(table: LevelTable, confidence: float) -> tuple[tuple[str, ...], Number]:
    """The levels that look worst, and the rate of the one that truly is, whichever that is.

    Its lower end needs no correction (the least of the lower ends lies below that of the truly
    worst one; intersection-union, Berger 1982); the upper end does.
    """
    strict = 1 - (1 - confidence) / len(table.levels)
    rates: dict[str, Estimate] = {}
    low = high = 1.0
    for place, name in enumerate(table.levels):
        rate, upper = (_rate(_sums(table, place), level) for level in (confidence, strict))
        if isinstance(rate, Estimate) and isinstance(upper, Estimate):
            assert rate.interval is not None
            assert upper.interval is not None
            rates[name] = rate
            low, high = min(low, rate.interval.low), min(high, upper.interval.high)
    if not rates:
        return (), Unavailable("no level has a rate")
    least = min(rates.values(), key=lambda rate: rate.value)
    worst = tuple(name for name, own in rates.items() if own.value <= least.value + _SAME_RATE)
    return worst, replace(
        least,
        interval=Interval(min(low, least.value), max(high, least.value)),
        method="the least of the levels, upper ends corrected for their number",
    )


def levels_like_these(table: LevelTable, k: int, confidence: float) -> Number:
    """pass^k on these tasks for levels like these: the spread between levels counts."""
    whole = (table.runs >= max(k, 1)).all(axis=1)
    rows = whole if whole.any() else slice(None)  # what is missing is said below
    runs, passes = table.runs[rows], table.passes[rows]
    variance = spread_of_levels(runs, passes, k)
    if isinstance(variance, Unavailable):
        return variance
    estimate = suite_estimate(
        runs.ravel(), passes.ravel(), k=k, scope=THIS_SUITE, confidence=confidence
    )
    return estimate and widened(
        estimate, variance, len(table.levels), "includes the spread between levels"
    )


_MOST_APART = 5


def _apart(table: LevelTable) -> dict[str, dict[str, float]]:
    """The tasks whose levels differ most, the widest first."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = table.passes / table.runs
    gap = np.nanmax(rates, axis=1) - np.nanmin(rates, axis=1) if len(rates) else np.zeros(0)
    order = [i for i in np.argsort(-gap, kind="stable").tolist() if gap[i] > 0][:_MOST_APART]
    return {
        table.names[i]: {
            name: float(rates[i, place])
            for place, name in enumerate(table.levels)
            if table.runs[i, place]
        }
        for i in order
    }


# Wordings that may ask for something else: the agents are not to blame for those.

_WORDING = "wording"


def wording_notes(trials: Trials, options: ReportOptions) -> tuple[str, ...]:
    """Of the wordings of tasks: those that no person reviewed, and those that every agent fails.

    A wording is suspect if each of several agents mostly passes the task as it is and mostly fails
    it so worded, by more than chance (exact, Holm over all wordings).
    """
    if trials.at is None or not any(word.startswith(f"{_WORDING}=") for word in trials.words("at")):
        return ()
    notes, suspects = [], _suspect_wordings(trials, options)
    if suspects:
        notes.append(
            f"suspect wording: every agent passes the task as it is and fails {few(suspects, 3)}; "
            "read it before you blame them"
        )
    plain = set(trials.at_reference().tasks)
    worded = _rows_at(trials, _WORDING)
    unread = worded & trials.has_word("tags", NOT_REVIEWED)
    counts = [len(set(trials.take(rows).tasks) - plain) for rows in (unread, worded)]
    if counts[0]:
        which = f"{counts[0]:,} of {plural(counts[1], 'wording was', 'wordings were')}"
        notes.append(f"{which} reviewed by nobody")
    return tuple(notes)


def _rows_at(trials: Trials, factor: str, but: Sequence[str] = ()) -> NDArray[np.bool_]:
    """Which rows are at a level of a factor that is not among some levels."""
    rows = np.zeros(len(trials), dtype=bool)
    for word in trials.words("at"):
        if word.startswith(f"{factor}=") and word not in but:
            rows |= trials.has_word("at", word)
    return rows


def _suspect_wordings(trials: Trials, options: ReportOptions) -> list[str]:
    """The tasks in a wording that every agent fails while it passes the task as it is."""
    counted: dict[tuple[str, str], list[tuple[int, int, int, int]]] = {}
    for system in trials.systems:
        tables = dict(level_tables(trials.where(system=system), options))
        if (table := tables.get(_WORDING)) is None:
            continue
        for task, n, c in zip(table.names, table.runs.tolist(), table.passes.tolist(), strict=True):
            for place, level in enumerate(table.levels[1:], 1):
                if n[place] and n[0]:
                    counted.setdefault((task, level), []).append((n[place], c[place], n[0], c[0]))
    several = {key: np.array(rows) for key, rows in counted.items() if len(rows) > 1}
    flags = failed_by_all(list(several.values()))
    return [
        f"{short(task)} [{_WORDING}={short(level)}]"
        for (task, level), flagged in zip(several, flags, strict=True)
        if flagged
    ]


def failed_by_all(cells: Sequence[Counts]) -> list[bool]:
    """Of each wording whether every agent mostly fails it and mostly passes the task as it is.

    A wording has a row an agent: its trials and passes so worded, and of the task as it is. By more
    than chance, at 5% for all wordings together (exact, Holm).
    """
    tests = _holm([stratified_exact_test(*rows.T) for rows in cells])
    return [
        bool(p <= SIGNIFICANT and (2 * c < n).all() and (2 * d > m).all())
        for (n, c, m, d), p in zip((rows.T for rows in cells), tests, strict=True)
    ]


# The metrics of HAL's reliability evaluation (arXiv:2602.16666) that trials alone give, under its
# names. What its own formulas give is kept beside ours, to compare tables.

ROBUSTNESS = {
    "robustness_fault_injection": "fault",
    "robustness_structural": "environment",
    "robustness_prompt_variation": "wording",
}
"""HAL's names for what is kept under the levels of a factor."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class HalMetric:
    """A metric of HAL: our number, and the value that HAL's formula gives."""

    number: Number
    hal_value: float | None


def measure_hal(trials: Trials | None, options: ReportOptions) -> dict[str, HalMetric]:
    """HAL's metrics, where trials state their confidence or took place under conditions."""
    if trials is None:
        return {}
    own, factors = trials.at_reference(), measure_factors(trials, options)
    safety = _safety(own, options)
    if trials.stated_confidence is None and all(f.sampled for f in factors) and not safety:
        return {}
    named, kept = levels_of(trials.conditions()), {factor.name: factor.kept for factor in factors}
    alone = Unavailable("no task has trials at two levels of it with all else alike")
    robustness = {
        name: HalMetric(
            number=kept.get(factor, alone), hal_value=_accuracy_ratio(trials, own, factor)
        )
        for name, factor in ROBUSTNESS.items()
        if factor in named
    }
    return {
        "consistency_outcome": _consistency(own, options),
        **_path_consistency(own, options),
        **_resource_consistency(own, options),
        **robustness,
        **_predictability(own, options),
        **safety,
    }


def _consistency(trials: Trials, options: ReportOptions) -> HalMetric:
    counts = trials.tally()
    runs, passes = counts.runs(options.errors), counts.passed
    rate = passes[runs >= 2] / runs[runs >= 2]
    return HalMetric(
        number=outcome_consistency(runs, passes, confidence=options.confidence),
        hal_value=float(((2 * rate - 1) ** 2).mean()) if rate.size else None,
    )


def _by_task(trials: Trials, kept: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The rows of each task among those that are kept, of tasks with two or more."""
    rows = np.flatnonzero(kept)
    order = rows[np.argsort(trials.task.codes[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(trials.task.codes[order])) + 1
    return [group for group in np.split(order, ends) if len(group) > 1]


def _path_consistency(trials: Trials, options: ReportOptions) -> dict[str, HalMetric]:
    """How alike the calls of passing trials of a task are: which ones, and in which order."""
    if trials.tools is None:
        return {}
    paths = [tuple(name.split("\0")) for name in trials.tools.names]
    # As HAL does: trials without a call are compared with none.
    groups = _by_task(trials, (trials.outcome == Outcome.PASSED) & (trials.tools.codes >= 0))
    metrics = {}
    for name, likeness in (("distribution", mix_likeness), ("sequence", path_likeness)):
        known = cache(likeness)  # many trials of a task take the same path
        alike = [
            [
                known(*sorted((paths[first], paths[second])))
                for first, second in combinations(
                    trials.tools.codes[rows[:MOST_COMPARED]].tolist(), 2
                )
            ]
            for rows in groups
        ]
        sums, pairs = list(map(sum, alike)), list(map(len, alike))
        metrics[f"consistency_trajectory_{name}"] = HalMetric(
            number=mean_over_pairs(sums, pairs, confidence=options.confidence),
            hal_value=float(np.mean(np.divide(sums, pairs))) if alike else None,
        )
    return metrics


_RESOURCES = ("cost", "seconds", "turns", "tool_calls")


def _resource_consistency(trials: Trials, options: ReportOptions) -> dict[str, HalMetric]:
    """How alike trials of a task are in what they take: the smaller over the larger of two.

    HAL's exp(-CV) rises as trials are fewer; the ratio of two trials does not.
    """
    columns = [trials.features[name] for name in _RESOURCES if name in trials.features]
    alike, by_hal = [], []
    for rows in _by_task(trials, trials.outcome != Outcome.ERRORED):
        ratios, spreads = [], []
        for column in columns:
            known = column[rows][~np.isnan(column[rows])]
            if len(known) > 1 and known.any():  # a resource that no trial uses tells nothing
                ratios.append(amount_likeness(known))
            if len(used := known[known > 0]) > 1:  # HAL leaves out what a trial did not use
                spreads.append(float(used.std(ddof=1) / used.mean()))
        if ratios:
            alike.append(float(np.mean(ratios)))
        if spreads:
            by_hal.append(float(np.exp(-np.mean(spreads))))
    if not alike:
        return {}
    number = mean_over_pairs(alike, np.ones(len(alike)), confidence=options.confidence)
    value = float(np.mean(by_hal)) if by_hal else None
    return {"consistency_resource": HalMetric(number=number, hal_value=value)}


def _safety(trials: Trials, options: ReportOptions) -> dict[str, HalMetric]:
    """Whether trials keep the constraints set on them, and how grave it is if they do not.

    HAL's harm is the mean severity of violations alone: it gets better with one more mild one. Ours
    is that of a trial, whether it breaks a constraint or not.
    """
    if trials.tags is None:
        return {}
    severity = np.full(len(trials), np.nan)
    severity[trials.has_word("tags", KEPT)] = 0.0
    for word, value in SEVERITIES.items():
        severity[trials.has_word("tags", f"constraint:{word}")] = value
    checked = ~np.isnan(severity)
    if not checked.any():
        return {}
    _, task = np.unique(trials.task.codes[checked], return_inverse=True)
    harm, runs = severity[checked], np.bincount(task)
    kept = np.bincount(task[harm == 0], minlength=runs.size)
    totals = [np.bincount(task, values) for values in (1 - harm, (1 - harm) ** 2)]
    alike: dict[str, Any] = {"scope": TASKS_LIKE_THESE, "confidence": options.confidence}
    compliance = suite_estimate(runs, kept, k=1, **alike)
    risk = score_estimate(runs, *totals, **alike)
    broken = harm[harm > 0]
    return {
        "safety_compliance": HalMetric(number=compliance, hal_value=float((harm == 0).mean())),
        "safety_harm_severity": HalMetric(
            number=risk, hal_value=1 - float(broken.mean()) if broken.size else 1.0
        ),
    }


def _accuracy_ratio(trials: Trials, own: Trials, factor: str) -> float | None:
    """HAL's ratio: all trials pooled, and cut off at 1."""
    if own is trials:
        return None
    other = _rows_at(trials, factor, but=own.words("at"))
    rates = [float((some.outcome == Outcome.PASSED).mean()) for some in (trials.take(other), own)]
    return min(rates[0] / rates[1], 1.0) if other.any() and rates[1] > 0 else None


def _predictability(trials: Trials, options: ReportOptions) -> dict[str, HalMetric]:
    """Whether what the agent said of its own success came true."""
    stated = trials.stated_confidence
    if stated is None:
        return {}
    kept = ~np.isnan(stated) & (trials.outcome != Outcome.ERRORED)
    if not kept.any():
        return {}
    from passhat.stats.probability_calibration import (
        auroc,
        brier_by_task,
        calibration,
        discrimination,
    )

    given, ended = stated[kept], (trials.outcome[kept] == Outcome.PASSED).astype(np.float64)
    task, level = trials.task.codes[kept], options.confidence
    scored = calibration(given, ended, confidence=level, rng=options.seed)
    brier = brier_by_task(given, ended, task, confidence=level)
    apart = discrimination(given, ended, task, confidence=level)
    return {
        "predictability_calibration": HalMetric(
            number=scored if isinstance(scored, Unavailable) else _from_one(scored.ece),
            hal_value=None if isinstance(scored, Unavailable) else 1 - scored.ece.value,
        ),
        "predictability_roc_auc": HalMetric(number=apart, hal_value=auroc(given, ended)),
        "predictability_brier_score": HalMetric(
            number=_from_one(brier), hal_value=1 - float(((given - ended) ** 2).mean())
        ),
    }


def _from_one(number: Number) -> Number:
    """1 minus the number, with its interval."""
    if isinstance(number, Unavailable):
        return number
    ends = number.interval
    mirrored = None if ends is None else Interval(1 - ends.high, 1 - ends.low)
    return replace(number, value=1 - number.value, interval=mirrored)
