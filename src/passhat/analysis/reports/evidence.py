"""The counts that every statistic of a report reads, and where the report comes from."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import scipy
from numpy.typing import NDArray

from passhat._version import __version__
from passhat.arguments import DEFAULT_OPTIONS, ReportOptions
from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import plural
from passhat.records import Categorical, Source, Tally, Trials
from passhat.stats.passk import task_values
from passhat.stats.population_bounds import FEWEST_FAMILIES
from passhat.stats.sufficient_statistics import TaskSums

Counts = NDArray[np.int64]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Runs, passes and sums of scores of the tasks that have a run; `without` names the others.

    `rows` are the places of the tasks in the tally. `family` and `weight` are those of the tasks,
    where the trials name any. `crossed` says that some tasks are one task under several conditions:
    then `family` is that task, unless there are families enough to be what was sampled.
    """

    tasks: tuple[str, ...]
    runs: Counts
    passes: Counts
    score_total: Floats
    score_squares: Floats
    rows: NDArray[np.intp]
    without: tuple[str, ...]
    family: tuple[str | None, ...] | None = None
    weight: Floats | None = None
    crossed: bool = False

    @classmethod
    def of_passes(
        cls, tasks: Sequence[str], runs: Counts, passes: Counts, weight: Floats | None = None
    ) -> Evidence:
        """From runs and passes alone: a score is then 0 or 1."""
        return cls(
            tasks=tuple(tasks),
            runs=runs,
            passes=passes,
            score_total=passes.astype(np.float64),
            score_squares=passes.astype(np.float64),
            rows=np.arange(runs.size),
            without=(),
            weight=weight,
        )

    @property
    def typical_runs(self) -> int:
        return typical_runs(self.runs)

    @property
    def all_or_nothing(self) -> bool:
        """Whether every score is its outcome's: 1 for a pass, 0 for a failure.

        Scores in [0, 1] whose squares add up to as much as they do are 0 or 1.
        """
        passes = self.passes
        return bool((self.score_total == passes).all() and (self.score_squares == passes).all())

    @property
    def scores(self) -> TaskSums:
        return TaskSums(runs=self.runs, total=self.score_total, squares=self.score_squares)

    @property
    def score_sums(self) -> tuple[Counts, Floats, Floats]:
        """Runs, total and squares of the scores: what statistics of scores take."""
        return self.runs, self.score_total, self.score_squares

    @property
    def outcomes(self) -> TaskSums:
        return TaskSums.of_passes(self.runs, self.passes)

    def values(self, metric: str, k: int = 1) -> Floats:
        """`mean_score`, `pass^k` or `pass@k` of each task; nan with too few runs."""
        if metric == "mean_score":
            return np.clip(self.score_total / self.runs, 0.0, 1.0)
        return task_values(self.runs, self.passes, k, metric=metric)

    def only(self, names: Sequence[str]) -> Evidence:
        """These tasks alone, in this order."""
        place = {name: i for i, name in enumerate(self.tasks)}
        at = np.array([place[name] for name in names], dtype=np.intp)
        return Evidence(
            tasks=tuple(names),
            runs=self.runs[at],
            passes=self.passes[at],
            score_total=self.score_total[at],
            score_squares=self.score_squares[at],
            rows=self.rows[at],
            without=(),
            family=self.families_of(names),
            weight=self.weights_of(names),
            crossed=self.crossed,
        )

    def families_of(self, names: Sequence[str]) -> tuple[str | None, ...] | None:
        """The families of these tasks, in this order; None if no task has one."""
        if self.family is None:
            return None
        known = dict(zip(self.tasks, self.family, strict=True))
        return tuple(known.get(name) for name in names)

    def weights_of(self, names: Sequence[str]) -> Floats | None:
        """The weights of these tasks, in this order; None if no task has one."""
        if self.weight is None:
            return None
        known = dict(zip(self.tasks, self.weight.tolist(), strict=True))
        return np.array([known.get(name, 1.0) for name in names])

    def short_of(self, k: int) -> tuple[str, ...]:
        """The tasks with fewer than k runs."""
        return tuple(self.tasks[i] for i in np.flatnonzero(self.runs < k))


def count_evidence(tally: Tally, options: ReportOptions = DEFAULT_OPTIONS) -> Evidence:
    """An errored trial is a run that failed with score 0, or is no run at all.

    What every report, comparison and verdict is made of is counted here, as the options say.
    Where tasks were tried as they are and under conditions, the first are the evidence.
    """
    tally = tally.at_reference()
    family, crossed = _sampled_units(tally)
    runs = tally.runs(options.errors)
    rows = np.flatnonzero(runs > 0)
    every = rows.size == runs.size
    return Evidence(
        tasks=tally.tasks if every else tuple(tally.tasks[i] for i in rows),
        runs=runs[rows],
        passes=tally.passed[rows],
        score_total=tally.score_total[rows],
        score_squares=tally.score_squares[rows],
        rows=rows,
        without=tuple(tally.tasks[i] for i in np.flatnonzero(runs == 0)),
        family=None if family is None else tuple(family[i] for i in rows),
        weight=None if tally.weight is None else tally.weight[rows],
        crossed=crossed,
    )


def _sampled_units(tally: Tally) -> tuple[tuple[str | None, ...] | None, bool]:
    """The family of each task, and whether it is the task itself without its conditions.

    One task under several conditions is one draw from similar tasks, not several: as several
    they cover .79 to .97 (bench/calibrate/factors.py).
    """
    if tally.base is None:
        return tally.family, False
    base = tuple(own or task for own, task in zip(tally.base, tally.tasks, strict=True))
    if len(set(base)) == len(base):
        return tally.family, False
    if tally.family is None or len(set(tally.family)) < FEWEST_FAMILIES:
        return base, True
    return tuple(family or own for family, own in zip(tally.family, base, strict=True)), False


def typical_runs(runs: Counts) -> int:
    """The lower median: at least half of the tasks have that many runs.

    >>> typical_runs(np.array([4, 4, 1, 9]))
    4
    """
    middle = (runs.size - 1) // 2
    return int(np.partition(runs, middle)[middle]) if runs.size else 0


def too_few_runs(runs: Counts, k: int) -> str:
    """What a system has whose tasks lack k runs, some or all.

    >>> too_few_runs(np.array([1, 1]), 4)
    '1 trial of every task'
    >>> too_few_runs(np.array([1, 3]), 4)
    'at most 3 trials of any task'
    >>> too_few_runs(np.array([1, 4]), 4)
    'fewer than 4 trials of 1 of 2 tasks'
    """
    if not runs.size:
        return "no trial that did not error"
    short, most = int(np.count_nonzero(runs < k)), int(runs.max())
    if short < runs.size:
        return f"fewer than {k} trials of {short:,} of {runs.size:,} tasks"
    if most == int(runs.min()):
        return f"{plural(most, 'trial')} of every task"
    return f"at most {plural(most, 'trial')} of any task"


def value_table(
    tasks: Sequence[Sequence[str]], values: Sequence[Floats]
) -> tuple[Sequence[str], Floats]:
    """The tasks of any system, and a row for each: a column per system, nan if it has no value.

    >>> value_table([["a", "b"], ["b"]], [np.array([0.5, 1.0]), np.array([0.2])])[1].tolist()
    [[0.5, nan], [1.0, 0.2]]
    """
    if all(names == tasks[0] for names in tasks[1:]):
        return tasks[0], np.column_stack(values)
    every = list(dict.fromkeys(name for names in tasks for name in names))
    place = {name: i for i, name in enumerate(every)}
    table = np.full((len(every), len(tasks)), np.nan)
    for column, names in enumerate(tasks):
        table[[place[name] for name in names], column] = values[column]
    return every, table


# Where a report comes from: the hash of its input, the versions, the options.

_LABELS = (
    *("system", "task", "level", "tags", "tools", "error", "started", "family", "human_labels"),
    *("base", "at"),
)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: input, versions, options."""

    input_sha256: str
    sources: tuple[Source, ...]
    versions: Mapping[str, str]
    options: ReportOptions
    platform: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def stopped_early(self) -> bool:
        """Whether gates ended some of the trials early: people read counts, and no rate."""
        return any(source.ended == "early" for source in self.sources)


def make_provenance(trials: Trials | Sequence[Tally], options: ReportOptions) -> Provenance:
    """What is needed to know that two reports have the same origin."""
    if isinstance(trials, Trials):
        sizes = len(trials.systems), len(trials.tasks), len(trials)
    else:
        names = {name for tally in trials for name in tally.tasks}
        sizes = len(trials), len(names), sum(tally.trials for tally in trials)
    return Provenance(
        input_sha256=input_hash(trials),
        sources=sources_of(trials),
        versions=versions(),
        options=options,
        platform=f"{sys.platform} {platform.machine()}",
        counts=dict(zip(("systems", "tasks", "trials"), sizes, strict=True)),
    )


def sources_of(trials: Trials | Sequence[Tally]) -> tuple[Source, ...]:
    """The files that were read, each once."""
    tables = [trials] if isinstance(trials, Trials) else trials
    return tuple(dict.fromkeys(source for table in tables for source in table.sources))


def versions() -> dict[str, str]:
    """The versions of passhat and of the libraries that its numbers depend on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "passhat": __version__,
        "python": python,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def input_hash(trials: Trials | Sequence[Tally]) -> str:
    """A hash of all that the analysis reads, whatever the order of the rows.

    >>> table = Trials.from_columns(task=["a", "b"], trial=[0, 0], passed=[True, False])
    >>> input_hash(table) == input_hash(table.take(np.array([1, 0])))
    True
    """
    if isinstance(trials, Trials):
        task, system = (
            _sorted_codes(column)[0][column.codes] for column in (trials.task, trials.system)
        )
        # By all else too, where these are equal.
        order = np.lexsort((trials.score, trials.outcome, trials.trial, task, system))
        parts = _columns(trials.take(order))
    else:
        parts = _sums(trials)
    digest = hashlib.sha256()
    for name, data in parts:
        digest.update(f"{name}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def _sorted_codes(column: Categorical) -> tuple[NDArray[np.int64], list[str]]:
    """The place of each code among the sorted names (a missing one last), and these names."""
    order = sorted(range(len(column.names)), key=column.names.__getitem__)
    places = np.empty(len(order) + 1, dtype=np.int64)
    places[order] = np.arange(len(order))
    places[-1] = len(order)
    return places, [column.names[i] for i in order]


def _columns(trials: Trials) -> Iterator[tuple[str, bytes]]:
    for name in _LABELS:
        column: Categorical | None = getattr(trials, name)
        if column is not None:
            places, names = _sorted_codes(column)
            yield f"{name} names", "\0\0".join(names).encode("utf-8", "surrogatepass")
            yield name, places[column.codes].tobytes()
    for name in ("trial", "outcome", "score"):
        yield name, getattr(trials, name).tobytes()
    for name in ("seed", "weight", "stated_confidence"):
        if getattr(trials, name) is not None:
            yield name, getattr(trials, name).tobytes()
    for name, values in trials.features.items():
        yield name, values.tobytes()


def _sums(tallies: Sequence[Tally]) -> Iterator[tuple[str, bytes]]:
    for tally in tallies:
        yield "system", tally.system.encode("utf-8", "surrogatepass")
        yield "tasks", "\0".join(tally.tasks).encode("utf-8", "surrogatepass")
        for name in ("passed", "failed", "errored", "score_total", "score_squares"):
            yield name, getattr(tally, name).tobytes()
        for name, sums in tally.features.items():
            yield name, sums.count.tobytes() + sums.total.tobytes() + sums.squares.tobytes()
