"""Runs that were not independent: rounds out of line, drifts, bursts; repeats that agree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.dataclass import dataclass, lazy_field, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import capitalised, listed, numbers_in_words, percent, plural, points
from passhat.records import ErrorPolicy, Outcome, Trials
from passhat.records.tally import place_in_group
from passhat.records.trial import POOLED_ROUNDS
from passhat.records.trials import check_trials_argument
from passhat.stats.arguments import Floats
from passhat.stats.dependent_runs import (
    Burst,
    RoundTests,
    SeedVariance,
    find_bursts,
    round_tests,
    seed_variance,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.proportions import share_estimate

Kind = Literal["rounds out of line", "drift", "rounds differ", "burst", "pooled conditions"]

MOST_TRIALS = 200_000
"""Beyond this many trials nothing is tested: the report would wait for it."""

FALSE_ALARMS = 0.01
"""How often a disturbance is seen where runs are independent, over all its kinds."""

LETTERS = np.frombuffer(b"FPE", dtype=np.uint8)
"""How runs are written: the letter of each outcome by its number."""

# A burst with this share of its runs in rounds out of line is those rounds again.
_MOSTLY = 0.9
_DROPPED = "left out by request: "
_MINUTE, _HOUR = 60, 3600

# Tests of up to so many runs are kept for the next question: 64 such tables take 5 MB.
_CACHED_RUNS = 10_000


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """Something that moved runs together, so that they are not independent evidence.

    `rounds` are counted from 1, in the order of each task's trials. Of the runs it is about (those
    rounds, or the burst), `failed` of `runs` failed, on `tasks` tasks, between `began` and `ended`.
    `others` is the pass rate of the other rounds, `change` what a drift moves from first to last.
    """

    kind: Kind
    rounds: tuple[int, ...]
    failed: int
    runs: int
    tasks: int
    p_value: float
    began: str | None = None
    ended: str | None = None
    others: float | None = None
    change: float | None = None
    means: tuple[float, ...] = ()

    @property
    def seconds(self) -> float | None:
        """From the first start to the last."""
        if self.began is None or self.ended is None:
            return None
        ends = _start_times((self.began, self.ended))
        return None if ends is None else float(ends[1] - ends[0])


def find_disturbances(trials: Trials, errors: ErrorPolicy) -> tuple[Disturbance, ...]:
    """What moved the runs of one system together, if anything; 1% false alarms in calm runs.

    >>> rows = [(t, r, r != 3) for t in range(20) for r in range(5)]
    >>> tasks, trial, passed = zip(*rows)
    >>> table = Trials.from_columns(task=[str(t) for t in tasks], trial=trial, passed=passed)
    >>> [one.rounds for one in find_disturbances(table, "fail")]
    [(4,)]
    """
    if not len(trials) or len(trials) > MOST_TRIALS:
        return ()
    table = round_table(trials, errors, scores=has_partial_credit(trials))
    if trials.started is None and _is_sorted(table):
        return ()
    among_rounds = _among_rounds(trials, errors, table)
    apart = {number for event in among_rounds for number in event.rounds}
    return (*among_rounds, *_bursts(trials, errors, apart))


def round_table(trials: Trials, errors: ErrorPolicy, *, scores: bool) -> Floats:
    """Passes (or scores) of one system: a row for each task, a column for each common round.

    Where trials were sampled at seeds or days, a task at each of them has a row. An errored run
    that is left out is NaN.
    """
    group, place = repeats(trials)[0], _rounds_of(trials)
    counts = np.bincount(group)
    common = int(counts.min()) if counts.size else 0
    kept = place < common
    values = trials.score if scores else (trials.outcome == Outcome.PASSED).astype(np.float64)
    errored = trials.outcome == Outcome.ERRORED
    values = np.where(errored, 0.0 if errors == "fail" else np.nan, values)
    table = np.full((len(counts), common), np.nan)
    table[group[kept], place[kept]] = values[kept]
    return table


def has_partial_credit(trials: Trials) -> bool:
    """Whether a score says more than its outcome."""
    ended = trials.outcome != Outcome.ERRORED
    return bool((trials.score[ended] != (trials.outcome[ended] == Outcome.PASSED)).any())


def drop_rounds(trials: Trials, rounds: Collection[int], *, whose: str = "") -> Trials:
    """The trials without these rounds of every task (counted from 1); their sources say so.

    `whose` rounds they are is part of the error if none or all of them would be left out.

    >>> table = Trials.from_columns(task=["a", "a", "b"], passed=[True, False, True])
    >>> drop_rounds(table, [2]).tasks, len(drop_rounds(table, [2]))
    (('a', 'b'), 2)
    """
    numbers = _round_numbers(trials)
    gone = np.isin(numbers, list(rounds))
    if not gone.any() or gone.all():
        most = plural(int(numbers.max(initial=0)), "round")
        rule = f"must leave some of the {most}{whose}"
        if not gone.any():
            rule = f"must be among the {most}{whose}"
        raise ArgumentError("drop_rounds", rule, listed(sorted(rounds)))
    some = f"{int(gone.sum()):,} of {plural(len(trials), 'trial')}"
    note = f"{_DROPPED}{_numbered(sorted(rounds))}, {some}"
    sources = tuple(replace(source, notes=(*source.notes, note)) for source in trials.sources)
    return replace(trials.take(~gone), sources=sources)


def count_rounds(trials: Trials) -> int:
    """How many rounds there are: as many as the task with the most runs of one system has."""
    return int(_round_numbers(trials).max(initial=0))


def _round_numbers(trials: Trials) -> NDArray[np.int64]:
    """The round of each trial among those of its system and task, counted from 1."""
    place = np.empty(len(trials), dtype=np.int64)
    for name in trials.systems:
        rows = np.flatnonzero(trials.system.codes == trials.system.code(name))
        place[rows] = _rounds_of(trials.take(rows))
    return place + 1


def dropped_note(trials: Trials) -> str | None:
    """What `drop_rounds` left out of these trials; None if nothing."""
    notes = (note for source in trials.sources for note in source.notes)
    return next((note for note in notes if note.startswith(_DROPPED)), None)


def disturbance_sentence(disturbances: Sequence[Disturbance]) -> str | None:
    """The gravest one in a sentence, and how many more there are; None if there is none.

    >>> disturbance_sentence(()) is None
    True
    """
    if not disturbances:
        return None
    more = f" (and {plural(len(disturbances) - 1, 'more such stretch', 'more such stretches')})"
    return f"{_seen(disturbances[0])}{more if len(disturbances) > 1 else ''}."


def disturbance_advice(event: Disturbance) -> str:
    """What to do before paying for more runs."""
    if event.kind == "drift":
        moved = f"Find out what changed while it ran ({_from_to(event)})"
        return f"{moved}: no number of trials pins down a rate that moves."
    if event.kind == "rounds differ":
        return (
            f"Find out what differs between rounds ({_range(event)} passed), or spread the trials "
            "over time: more trials of the same kind would not pin the rate down."
        )
    if event.kind == "pooled conditions":
        return (
            "Name the condition that the note on the file names: trials under different "
            "conditions are no repeats of each other."
        )
    if event.kind == "burst":
        return f"Re-run the {_failures(event)}: that looks like an outage."
    them = "it" if len(event.rounds) == 1 else "them"
    way_out = f"`drop_rounds={tuple(event.rounds)}` leaves {them} out"
    is_low = event.others is None or event.failed / max(event.runs, 1) > 1 - event.others
    if not is_low:
        return f"Find out what {_numbered(event.rounds)} had that the others did not; {way_out}."
    return f"Re-run {_numbered(event.rounds)}: {_failures(event)}; {way_out}."


def repeats(trials: Trials) -> tuple[NDArray[np.integer], NDArray[np.int64] | None]:
    """What the trials of one system are repeats of, numbered: a task, at each seed or day.

    Trials at different levels of a factor are no repeats of each other: where levels differ, no
    round is out of line. Second, the task (by code) of each number; None if they are the tasks.
    """
    sampled = trials.sampled_levels()
    if not sampled:
        return trials.task.codes, None
    group = trials.task.codes.astype(np.int64)
    for level in sampled.values():
        group = np.unique(group * (level.max() + 1) + level, return_inverse=True)[1].ravel()
    task = np.empty(group.max() + 1, dtype=np.int64)
    task[group] = trials.task.codes
    return group, task


def _rounds_of(trials: Trials) -> NDArray[np.int64]:
    """The round of each trial, from 0: its place among its repeats."""
    return place_in_group(repeats(trials)[0], trials.trial)


def _among_rounds(trials: Trials, errors: ErrorPolicy, table: Floats) -> tuple[Disturbance, ...]:
    small = table.size <= _CACHED_RUNS
    tested = _same_tests(table.tobytes(), table.shape) if small else round_tests(table)
    if isinstance(tested, Unavailable) or not tested.differ:
        return ()
    kind: Kind = "drift" if tested.drifts else "rounds differ"
    if any(POOLED_ROUNDS in note for source in trials.sources for note in source.notes):
        kind = "pooled conditions"  # what differs is the condition, and no round is to be dropped
    elif tested.out_of_line:
        return (_out_of_line(trials, errors, tested),)
    table = round_table(trials, errors, scores=False)
    failed = int((table == 0).sum())
    return (
        Disturbance(
            kind=kind,
            rounds=(),
            failed=failed,
            runs=int((~np.isnan(table)).sum()),
            tasks=tested.tasks,
            p_value=min(tested.drift_p, tested.spread_p),
            change=tested.drift if kind == "drift" else None,
            means=tested.means,
        ),
    )


@lru_cache(maxsize=64)
def _same_tests(table: bytes, shape: tuple[int, ...]) -> RoundTests | Unavailable:
    """`round_tests` of a table; every gate on a system, and its report, ask for the same ones."""
    return round_tests(np.frombuffer(table).reshape(shape))


def _is_sorted(table: Floats) -> bool:
    """Whether the results of every task are in order of size: a sorted file, or counts written out.

    Then the order says nothing about time. (Without start times this also hides an agent
    that passes every task until it breaks, and none after that.)
    """
    steps = np.diff(np.nan_to_num(table), axis=1)
    return bool((steps <= 0).all() or (steps >= 0).all())


def _out_of_line(trials: Trials, errors: ErrorPolicy, tested: RoundTests) -> Disturbance:
    table = round_table(trials, errors, scores=False)
    apart = np.isin(np.arange(table.shape[1]), tested.out_of_line)
    runs, others = table[:, apart], table[:, ~apart]
    rows = np.isin(_rounds_of(trials), tested.out_of_line)
    began, ended = _window(trials, rows)
    return Disturbance(
        kind="rounds out of line",
        rounds=tuple(number + 1 for number in tested.out_of_line),
        failed=int((runs == 0).sum()),
        runs=int((~np.isnan(runs)).sum()),
        tasks=len(np.unique(trials.task.codes[rows])),
        p_value=tested.spread_p,
        began=began,
        ended=ended,
        others=float(np.nanmean(others)),
        means=tested.means,
    )


def _bursts(trials: Trials, errors: ErrorPolicy, apart: Collection[int]) -> tuple[Disturbance, ...]:
    """Bursts in the order of starts, but for those that are a round out of line."""
    times = _starts(trials)
    if times is None:
        return ()
    kept = (
        np.flatnonzero(trials.outcome != Outcome.ERRORED)
        if errors == "exclude"
        else np.arange(len(trials))
    )
    order = kept[np.lexsort((trials.task.codes[kept], trials.trial[kept], times[kept]))]
    bursts = find_bursts(repeats(trials)[0][order], trials.outcome[order] == Outcome.PASSED)
    place = _rounds_of(trials) + 1
    return tuple(
        _burst(trials, order, burst)
        for burst in bursts
        if np.isin(place[order[burst.first : burst.last + 1]], list(apart)).mean() < _MOSTLY
    )


def _starts(trials: Trials) -> Floats | None:
    """When each run started; the trial numbers of a single task give the order as well."""
    if trials.started is None or (trials.started.codes < 0).any():
        return trials.trial.astype(np.float64) if len(trials.tasks) == 1 else None
    times = _start_times(trials.started.names)
    return None if times is None else times[trials.started.codes]


def _burst(trials: Trials, order: NDArray[np.intp], burst: Burst) -> Disturbance:
    rows = np.zeros(len(trials), dtype=bool)
    rows[order[burst.first : burst.last + 1]] = True
    began, ended = _window(trials, rows)
    return Disturbance(
        kind="burst",
        rounds=(),
        failed=burst.runs,
        runs=burst.runs,
        tasks=len(np.unique(trials.task.codes[rows])),
        p_value=burst.p_value,
        began=began,
        ended=ended,
    )


def _window(trials: Trials, rows: NDArray[np.bool_]) -> tuple[str | None, str | None]:
    """When the first and the last of these runs started; None if that is not known."""
    if trials.started is None or (trials.started.codes[rows] < 0).any():
        return None, None
    codes = np.unique(trials.started.codes[rows])
    names = [trials.started.names[code] for code in codes.tolist()]
    times = _start_times(names)
    if times is None:
        return None, None
    return names[int(np.argmin(times))], names[int(np.argmax(times))]


def _start_times(names: Collection[str]) -> Floats | None:
    """Seconds since 1970 of ISO 8601 times; None if one is no such time."""
    try:
        times = [datetime.fromisoformat(name) for name in names]
    except ValueError:
        return None
    return np.array([(t if t.tzinfo else t.replace(tzinfo=UTC)).timestamp() for t in times])


def _seen(event: Disturbance) -> str:
    if event.kind == "drift":
        return f"The rate drifted while it ran, {_from_to(event)}"
    if event.kind == "rounds differ":
        return f"Rounds differ by more than chance, {_range(event)} passed"
    if event.kind == "pooled conditions":
        return f"Trials under different conditions were pooled, {_range(event)} passed by round"
    if event.kind == "burst":
        return f"Trials did not fail independently: {_failures(event)}"
    usual = percent(1 - (event.others or 0.0))
    which = _numbered(event.rounds)
    is_out = "is" if len(event.rounds) == 1 else "are"
    head = f"{capitalised(which)} {is_out} out of line"
    return f"{head}: {_failures(event)}, {usual} in the other rounds"


def _numbered(numbers: Collection[int]) -> str:
    return f"{'round' if len(numbers) == 1 else 'rounds'} {numbers_in_words(numbers)}"


def _failures(event: Disturbance) -> str:
    if event.kind == "burst":
        which = f"{plural(event.failed, 'trial')} on {plural(event.tasks, 'task')}"
        return f"{which} failed one after another{_time(event)}"
    return f"{event.failed:,} of {plural(event.runs, 'trial')} failed{_time(event)}"


def _time(event: Disturbance) -> str:
    seconds = event.seconds
    if seconds is None or seconds > 24 * _HOUR:
        return ""
    when = f" (from {(event.began or '')[:16].replace('T', ' ')})"
    if seconds <= _MINUTE:
        return f" within a minute{when}"
    if seconds <= 2 * _HOUR:
        return f" within {ceil(seconds / _MINUTE)} minutes{when}"
    return f" within {ceil(seconds / _HOUR)} hours{when}"


def _from_to(event: Disturbance) -> str:
    first, last = event.means[0], event.means[-1]
    return f"{percent(first)} passed in the first round and {percent(last)} in the last"


def _range(event: Disturbance) -> str:
    return f"{points(min(event.means))} to {percent(max(event.means))}"


# How far whole runs of the suite differ by what they were sampled at: seeds, days.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunsByLevel:
    """The level, the task (by code), the score and the outcome of each run that names a level."""

    level: NDArray[np.int64]
    task: NDArray[np.int32]
    score: NDArray[np.float64]
    passed: NDArray[np.bool_]

    def variance(
        self, *, scope: Scope = TASKS_LIKE_THESE, confidence: float = CONFIDENCE
    ) -> SeedVariance | Unavailable:
        """How far levels move the mean score."""
        columns = self.level, self.task, self.score
        return seed_variance(*columns, scope=scope, confidence=confidence)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SeedSpread:
    """How far whole runs of the suite differ by their seed, beside the error within a seed."""

    means: Mapping[int, float]
    variance: SeedVariance | Unavailable

    @property
    def standard_errors(self) -> tuple[float, float] | None:
        """Of the mean on these tasks: by how seeds differ, and by how runs within a seed do.

        Where seeds move nothing and every seed ran every task, both estimate the same.
        """
        if isinstance(self.variance, Unavailable):
            return None
        between = np.std(list(self.means.values()), ddof=1) / sqrt(len(self.means))
        return float(between), sqrt(self.variance.within / self.variance.runs)


def runs_by_level(trials: Trials, errors: ErrorPolicy) -> dict[str, RunsByLevel]:
    """The runs of one system that count, at the levels of each factor that is a sample.

    Seeds are one wherever trials carry them: in a run of a suite each round has its own.
    """
    levels: dict[str, NDArray[np.int64]] = dict(trials.sampled_levels())
    if trials.seed is not None and trials.seeded.any():
        levels["seed"] = trials.seed
    counted = np.ones(len(trials), dtype=bool)
    if errors == "exclude":
        counted = trials.outcome != Outcome.ERRORED
    by_level = {}
    for name, level in levels.items():
        kept = counted & trials.seeded if level is trials.seed else counted
        if kept.any():
            by_level[name] = RunsByLevel(
                level=level[kept],
                task=trials.task.codes[kept],
                score=np.nan_to_num(trials.score[kept]),  # an error that counts scores nothing
                passed=trials.outcome[kept] == Outcome.PASSED,
            )
    return by_level


# Whether repeats agree: calls of an analysis, and runs of an agent with the same seed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """Whether several calls gave the same answer, and the first place where they did not."""

    same: bool
    calls: int
    difference: str | None = None

    def __bool__(self) -> bool:
        return self.same


def determinism_check(
    make: Callable[[], Any], *, calls: int = 2, tolerance: float = 0.0
) -> Determinism:
    """Call `make` several times and compare what comes back, bit for bit.

    With a `tolerance`, numbers may differ by that much: absolutely, or as a share of the first.

    >>> determinism_check(lambda: {"pass^3": 0.42})
    Determinism(same=True, calls=2, difference=None)
    >>> numbers = iter([[1, 2], [1, 3]])
    >>> determinism_check(lambda: next(numbers)).difference
    'call 2 differs at [1]: 3 instead of 2'
    """
    if not callable(make):
        raise ArgumentError("make", "must be a function without arguments", make)
    times = whole_number("calls", calls, least=2)
    if not 0 <= tolerance < np.inf:
        raise ArgumentError("tolerance", "must be a number from 0 on", tolerance)
    first = list(_leaves("", make()))
    for call in range(2, times + 1):
        difference = _first_difference(first, list(_leaves("", make())), tolerance)
        if difference is not None:
            return Determinism(same=False, calls=call, difference=f"call {call} {difference}")
    return Determinism(same=True, calls=times)


def seed_agreement(trials: Trials, *, confidence: float = CONFIDENCE) -> Estimate | Unavailable:
    """How often two runs of a task by a system with the same seed end alike.

    1 is what a seed promises. Errors are left out: they are not the agent's doing.

    >>> table = Trials.from_columns(task=["a"] * 4, passed=[1, 1, 1, 0], seed=[7, 7, 8, 8])
    >>> seed_agreement(table).value
    0.5
    """
    level = confidence_level(confidence)
    check_trials_argument("trials", trials, counts=False)
    if trials.seed is None:
        return Unavailable("the trials carry no seed")
    kept = trials.seeded & (trials.outcome != Outcome.ERRORED)
    key = np.column_stack((trials.system.codes, trials.task.codes, trials.seed))[kept]
    _, group = np.unique(key, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    group, outcome, score = (
        column[order] for column in (group.ravel(), trials.outcome[kept], trials.score[kept])
    )
    again = group[1:] == group[:-1]
    pairs = int(np.count_nonzero(again))
    if not pairs:
        return Unavailable("no task was run twice with the same seed")
    alike = again & (outcome[1:] == outcome[:-1]) & (score[1:] == score[:-1])
    return share_estimate(
        int(np.count_nonzero(alike)),
        pairs,
        method="Wilson over repeats of a seed",
        confidence=level,
        scope=THIS_SUITE,
    )


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Everything inside `value` with its place, in a fixed order."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{path}[{key!r}]", part)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            lazy = isinstance(getattr(type(value), field.name), lazy_field)
            if field.compare or lazy:  # a function is no result
                yield from _leaves(f"{path}.{field.name}", getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        yield path, (value.dtype.str, value.shape, value.tobytes())
    else:
        yield path, value


def _first_difference(
    first: list[tuple[str, Any]], other: list[tuple[str, Any]], tolerance: float
) -> str | None:
    for (path, before), (place, after) in zip(first, other, strict=False):
        if path != place:
            return f"has {place or 'a value'} where the first has {path or 'a value'}"
        if not _same(before, after, tolerance):
            if isinstance(before, tuple):
                return f"differs at {path or 'its array'}"
            return f"differs at {path or 'its value'}: {after!r} instead of {before!r}"
    if len(first) != len(other):
        return f"has {len(other)} values instead of {len(first)}"
    return None


def _same(before: Any, after: Any, tolerance: float) -> bool:
    # nan equals itself here: the same bits came out.
    if before == after or (before != before and after != after):
        return True
    if tolerance == 0:
        return False
    if isinstance(before, tuple) and isinstance(after, tuple) and before[:2] == after[:2]:
        first, other = (np.frombuffer(part[2], dtype=part[0]) for part in (before, after))
        numeric = first.dtype.kind in "iuf"
        close = numeric and np.allclose(
            first, other, rtol=tolerance, atol=tolerance, equal_nan=True
        )
        return bool(close)
    plain = all(isinstance(part, (int, float)) for part in (before, after))
    return plain and abs(before - after) <= tolerance * max(1.0, abs(before))
