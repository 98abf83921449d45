"""Sufficient statistics: what the analysis needs of any number of trials, one row a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import ErrorPolicy
from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import plural, quoted, short_repr
from passhat.records.trial import Outcome, Source

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSums:
    """Count, sum and sum of squares of one feature; rows are outcomes, columns are tasks."""

    count: Counts
    total: Floats
    squares: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The trials of one system, counted per task.

    `score_total` and `score_squares` run over completed (passed or failed) trials. `family` names
    the source that each task comes from, and `weight` how much it counts, if that is given; `base`
    the task that each is without the conditions it was tried under.
    """

    system: str
    tasks: tuple[str, ...]
    passed: Counts
    failed: Counts
    errored: Counts
    score_total: Floats
    score_squares: Floats
    features: Mapping[str, FeatureSums] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    family: tuple[str | None, ...] | None = None
    weight: Floats | None = None
    base: tuple[str | None, ...] | None = None

    def __repr__(self) -> str:
        ended = (("passed", self.passed), ("failed", self.failed), ("errored", self.errored))
        counts = ", ".join(f"{int(count.sum()):,} {word}" for word, count in ended)
        size = f"{plural(len(self.tasks), 'task')}, {plural(self.trials, 'trial')} ({counts})"
        return short_repr(f"Tally {quoted(self.system)}", size, see=".tasks, .passed, .runs()")

    @property
    def completed(self) -> Counts:
        """Runs of each task that passed or failed."""
        return self.passed + self.failed

    @property
    def trials(self) -> int:
        """How many trials were counted, errored ones among them."""
        return int(self.completed.sum() + self.errored.sum())

    def runs(self, errors: ErrorPolicy = "fail") -> Counts:
        """Runs per task: an errored one is a failure, or is left out."""
        return self.completed + self.errored if errors == "fail" else self.completed

    def at_reference(self) -> Tally:
        """The tasks as they are, where others are tried under conditions; else all."""
        own = [b is None or b == task for task, b in zip(self.tasks, self.base or (), strict=False)]
        return self.take(np.flatnonzero(own)) if any(own) and not all(own) else self

    def take(self, rows: NDArray[np.intp]) -> Tally:
        """Some of the tasks, in this order."""

        def labels(names: tuple[str | None, ...] | None) -> tuple[str | None, ...] | None:
            return None if names is None else tuple(names[i] for i in rows)

        counts = ("passed", "failed", "errored", "score_total", "score_squares")
        return replace(
            self,
            tasks=tuple(self.tasks[i] for i in rows),
            features={
                name: FeatureSums(
                    count=s.count[:, rows], total=s.total[:, rows], squares=s.squares[:, rows]
                )
                for name, s in self.features.items()
            },
            family=labels(self.family),
            weight=None if self.weight is None else self.weight[rows],
            base=labels(self.base),
            **{name: getattr(self, name)[rows] for name in counts},
        )


def count_trials(
    system: str,
    *,
    task: Categorical,
    outcome: NDArray[np.int8],
    score: Floats,
    features: Mapping[str, Floats],
    sources: tuple[Source, ...] = (),
    family: Categorical | None = None,
    weight: Floats | None = None,
    base: Categorical | None = None,
) -> Tally:
    """The tally of one system's trials, given by column."""
    size = len(task.names)

    def count(kind: Outcome) -> Counts:
        return np.bincount(task.codes[outcome == kind], minlength=size).astype(np.int64)

    known = np.nan_to_num(score)
    return Tally(
        system=system,
        tasks=task.names,
        passed=count(Outcome.PASSED),
        failed=count(Outcome.FAILED),
        errored=count(Outcome.ERRORED),
        score_total=_per_task(task.codes, known, size),
        score_squares=_per_task(task.codes, known * known, size),
        features={
            name: _feature_sums(column, outcome, task.codes, size)
            for name, column in features.items()
        },
        sources=sources,
        family=None if family is None else _task_labels(task, family),
        weight=None if weight is None else _task_weights(task, weight),
        base=None if base is None else _task_labels(task, base),
    )


def merge_tallies(parts: Iterable[Tally]) -> list[Tally]:
    """The tallies of a whole table from those of its parts: one for each system, as they come.

    However the trials are split, and whenever new ones are folded in, the numbers are the same.

    >>> import numpy as np
    >>> one = Tally(system="a", tasks=("t",), passed=np.array([2]), failed=np.array([1]),
    ...             errored=np.array([0]), score_total=np.array([2.]), score_squares=np.array([2.]))
    >>> merge_tallies([one, one])[0].passed.tolist()
    [4]
    """
    by_system: dict[str, list[Tally]] = {}
    for part in parts:
        by_system.setdefault(part.system, []).append(part)
    return [own[0] if len(own) == 1 else _merged(own) for own in by_system.values()]


def _merged(parts: Sequence[Tally]) -> Tally:
    """One tally of the parts of one system."""
    tasks = tuple(dict.fromkeys(task for part in parts for task in part.tasks))
    place = {task: number for number, task in enumerate(tasks)}
    columns = [np.array([place[task] for task in part.tasks], dtype=np.intp) for part in parts]

    def added(values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """What every part has for its tasks (the last axis), added up; exact digits only."""
        kind = np.result_type(*values)  # sums over no rows are whole numbers
        total = np.zeros((*values[0].shape[:-1], len(tasks)), dtype=kind)
        for own, column in zip(values, columns, strict=True):
            total[..., column] += own
        return significant(total) if total.dtype == np.float64 else total

    def feature(name: str) -> FeatureSums:
        own = []
        for part in parts:
            none = np.zeros((len(Outcome), len(part.tasks)))
            nothing = FeatureSums(count=none.astype(np.int64), total=none, squares=none)
            own.append(part.features.get(name, nothing))
        return FeatureSums(
            count=added([sums.count for sums in own]),
            total=added([sums.total for sums in own]),
            squares=added([sums.squares for sums in own]),
        )

    names = dict.fromkeys(name for part in parts for name in part.features)
    return Tally(
        system=parts[0].system,
        tasks=tasks,
        passed=added([part.passed for part in parts]),
        failed=added([part.failed for part in parts]),
        errored=added([part.errored for part in parts]),
        score_total=added([part.score_total for part in parts]),
        score_squares=added([part.score_squares for part in parts]),
        features={name: feature(name) for name in names},
        sources=tuple(dict.fromkeys(source for part in parts for source in part.sources)),
        family=_merged_labels(parts, tasks, "family"),
        weight=_merged_weights(parts, added),
        base=_merged_labels(parts, tasks, "base"),
    )


def _merged_labels(
    parts: Sequence[Tally], tasks: tuple[str, ...], column: str
) -> tuple[str | None, ...] | None:
    """The family (or base) of each task: the last one that a part names."""
    columns = [getattr(part, column) for part in parts]
    if all(labels is None for labels in columns):
        return None
    named = {
        task: label
        for part, labels in zip(parts, columns, strict=True)
        for task, label in zip(part.tasks, labels or (), strict=False)
        if label is not None
    }
    return tuple(map(named.get, tasks))


def _merged_weights(
    parts: Sequence[Tally], added: Callable[[Sequence[NDArray[Any]]], NDArray[Any]]
) -> Floats | None:
    """The mean weight of each task, over the trials of all parts."""
    if all(part.weight is None for part in parts):
        return None
    trials = [(part.completed + part.errored).astype(np.float64) for part in parts]
    weights = [np.ones(len(part.tasks)) if part.weight is None else part.weight for part in parts]
    total: Floats = added([w * n for w, n in zip(weights, trials, strict=True)])
    mean: Floats = total / np.maximum(added(trials), 1.0)
    return mean


def significant(values: Floats, digits: int = 12) -> Floats:
    """Sums without the digits that depend on the order of adding.

    >>> significant(np.array([0.1 + 0.2, 1e20 / 3])).tolist()
    [0.3, 3.33333333333e+19]
    """
    with np.errstate(divide="ignore"):
        magnitude = np.where(values == 0, 0, np.floor(np.log10(np.abs(values))))
    scale: Floats = 10.0 ** (digits - 1 - magnitude)
    rounded: Floats = np.round(values * scale) / scale
    return rounded


def _task_labels(task: Categorical, labels: Categorical) -> tuple[str | None, ...]:
    """The family (or base) of each task: the last one that its trials name."""
    result: list[str | None] = [None] * len(task.names)
    for code, name in zip(task.codes.tolist(), labels.texts(), strict=True):
        if name:
            result[code] = name
    return tuple(result)


def _task_weights(task: Categorical, weight: Floats) -> Floats:
    """The mean weight that the trials of a task name; 1 if they name none."""
    known = ~np.isnan(weight)
    size = len(task.names)
    count = np.bincount(task.codes[known], minlength=size)
    total = np.bincount(task.codes[known], weights=weight[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def _per_task(codes: Codes, weights: Floats, size: int) -> Floats:
    return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def _feature_sums(values: Floats, outcome: NDArray[np.int8], task: Codes, size: int) -> FeatureSums:
    known = ~np.isnan(values)
    cell = outcome[known].astype(np.int64) * size + task[known]
    value = values[known]
    shape = (len(Outcome), size)

    def sums(weights: Floats | None) -> NDArray[Any]:
        return np.bincount(cell, weights=weights, minlength=shape[0] * size).reshape(shape)

    return FeatureSums(
        count=sums(None).astype(np.int64), total=sums(value), squares=sums(value * value)
    )


# Columns of repeated texts, held as distinct names and small numbers.

Codes = NDArray[np.int32]

NO_CODE = -1


@result_dataclass(frozen=True, slots=True, eq=False)
class Categorical:
    """A column of repeated texts: distinct `names`, and for each row the index of its name.

    >>> Categorical.of(["b", "a", "b", None]).codes.tolist()
    [0, 1, 0, -1]
    """

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Self:
        rows = tuple(values)
        names = tuple(name for name in dict.fromkeys(rows) if name is not None)
        index: dict[str | None, int] = {name: code for code, name in enumerate(names)}
        index[None] = NO_CODE
        return cls(names, np.fromiter(map(index.__getitem__, rows), np.int32, len(rows)))

    @classmethod
    def missing(cls, size: int) -> Self:
        """A column in which every row is missing."""
        return cls((), np.full(size, NO_CODE, dtype=np.int32))

    @classmethod
    def concat(cls, columns: Sequence[Categorical]) -> Self:
        """The rows of several columns; only distinct names are compared, never rows.

        >>> parts = Categorical.of(["a", "b"]), Categorical.of(["b", None, "c"])
        >>> Categorical.concat(parts).texts()
        ['a', 'b', 'b', None, 'c']
        """
        index: dict[str, int] = {}
        parts = []
        for column in columns:
            known = [index.setdefault(name, len(index)) for name in column.names]
            renumber = np.array([*known, NO_CODE], dtype=np.int32)  # NO_CODE takes the last
            parts.append(renumber[column.codes])
        return cls(tuple(index), np.concatenate([np.empty(0, dtype=np.int32), *parts]))

    def take(self, rows: NDArray[Any]) -> Categorical:
        """The chosen rows, with the names that still occur, in their old order."""
        codes = self.codes[rows]
        used = np.zeros(len(self.names) + 1, dtype=bool)
        used[codes] = True  # NO_CODE falls on the extra last slot
        renumber = np.full(len(self.names) + 1, NO_CODE, dtype=np.int32)
        kept = np.flatnonzero(used[:-1])
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        return Categorical(tuple(self.names[i] for i in kept), renumber[codes])

    def texts(self) -> list[str | None]:
        lookup: list[str | None] = [*self.names, None]
        return [lookup[code] for code in self.codes.tolist()]

    def code(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            return NO_CODE


def place_in_group(group: NDArray[np.integer], number: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each row among those of its group, in the order of their numbers.

    >>> place_in_group(np.array([0, 1, 0]), np.array([5, 0, 2])).tolist()
    [1, 0, 0]
    """
    order = np.lexsort((number, group))
    before = np.cumsum(np.bincount(group)) - np.bincount(group)
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - before[group[order]]
    return place


def joined_numbers(
    columns: Sequence[NDArray[Any] | None], sizes: Sequence[int], missing: float
) -> NDArray[Any] | None:
    """A column of numbers, with `missing` in the rows of a table that has none.

    >>> joined_numbers([None, np.array([1.5])], [2, 1], np.nan).tolist()
    [nan, nan, 1.5]
    """
    kinds = [column.dtype for column in columns if column is not None]
    if not kinds:
        return None
    return np.concatenate(
        [
            np.full(size, missing, dtype=kinds[0]) if column is None else column
            for column, size in zip(columns, sizes, strict=True)
        ]
    )


def joined_labels(
    columns: Sequence[Categorical | None], sizes: Sequence[int]
) -> Categorical | None:
    """A column of texts, missing in the rows of a table that has none."""
    if all(column is None for column in columns):
        return None
    return Categorical.concat(
        [
            Categorical.missing(size) if column is None else column
            for column, size in zip(columns, sizes, strict=True)
        ]
    )
