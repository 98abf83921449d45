"""A table of trials, held in columns: the only thing the analysis reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.errors import ArgumentError
from passhat.records.tally import FeatureSums, Tally
from passhat.records.trial import FEATURES, Outcome, Trial

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

NO_CODE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where trials came from: a name to show, the format that read it, and the bytes' hash."""

    name: str
    format: str
    sha256: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of repeated texts: distinct `names`, and for each row the index of its own.

    >>> Labels.of(["b", "a", "b", None]).codes.tolist()
    [0, 1, 0, -1]
    """

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Self:
        index: dict[str | None, int] = {None: NO_CODE}
        codes = [index.setdefault(value, len(index) - 1) for value in values]
        del index[None]
        return cls(tuple(str(name) for name in index), np.asarray(codes, dtype=np.int32))

    def take(self, rows: NDArray[Any]) -> Labels:
        """The chosen rows, with the names that still occur, in their old order."""
        codes = self.codes[rows]
        used = np.zeros(len(self.names) + 1, dtype=bool)
        used[codes] = True  # NO_CODE falls on the extra last slot
        renumber = np.full(len(self.names) + 1, NO_CODE, dtype=np.int32)
        kept = np.flatnonzero(used[:-1])
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        return Labels(tuple(self.names[i] for i in kept), renumber[codes])

    def texts(self) -> list[str | None]:
        lookup: list[str | None] = [*self.names, None]
        return [lookup[code] for code in self.codes.tolist()]

    def code(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            return NO_CODE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials:
    """Trials in columns; a column that no trial fills is None.

    >>> table = Trials.from_columns(task=["a", "a", "b"], passed=[True, False, True])
    >>> len(table), table.systems, table.tasks
    (3, ('system',), ('a', 'b'))
    """

    system: Labels
    task: Labels
    trial: NDArray[np.int64]
    outcome: NDArray[np.int8]
    score: Floats
    seed: NDArray[np.int64] | None = None
    features: Mapping[str, Floats] = field(default_factory=dict)
    level: Labels | None = None
    tags: Labels | None = None
    tools: Labels | None = None
    error: Labels | None = None
    started: Labels | None = None
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        size = len(self.outcome)
        for name, column in self._columns():
            if len(column) != size:
                raise ArgumentError(name, f"must have {size} rows like outcome", len(column))

    # Tags and tools are tuples of words; a distinct tuple is one label, its words joined by NUL.

    @classmethod
    def from_records(
        cls, records: Iterable[Trial | Mapping[str, Any]], *, sources: tuple[Source, ...] = ()
    ) -> Self:
        """A table of Trial objects, or of dicts with the same keys.

        >>> Trials.from_records([{"task": "a", "passed": False, "seconds": 2.5}]).trial.tolist()
        [0]
        """
        rows = list(records)
        names = [f.name for f in fields(Trial)] + ["passed"]
        columns: dict[str, list[Any]] = {}
        for name in names:
            values = [_get(row, name) for row in rows]
            if any(value is not None and value != () for value in values):
                columns[name] = values
        unknown = {key for row in rows if isinstance(row, Mapping) for key in row} - set(names)
        if unknown:
            raise ArgumentError("records", f"have only the keys {', '.join(names)}", min(unknown))
        if not rows:
            columns = {"task": [], "outcome": []}
        return cls.from_columns(columns, sources=sources)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any] | None = None,
        *,
        sources: tuple[Source, ...] = (),
        **more: Any,
    ) -> Self:
        """A table from columns by name; `task` and one of `outcome`, `passed` or `score` suffice.

        Without `trial`, the rows of a system and task are numbered as they come. Without
        `outcome` and `passed`, a score of 1 passes.
        """
        given = {**(columns or {}), **more}
        known = {f.name for f in fields(Trial)} | {"passed"}
        if unknown := sorted(set(given) - known):
            raise ArgumentError("columns", f"must be among {', '.join(sorted(known))}", unknown[0])
        if "task" not in given:
            raise ArgumentError("columns", "must name the task of each trial", sorted(given))
        size = len(given["task"])
        outcome = _outcomes(given)
        task = Labels.of(map(str, given["task"]))
        system = (
            Labels.of(map(str, given["system"]))
            if "system" in given
            else Labels(("system",) if size else (), np.zeros(size, dtype=np.int32))
        )
        trial = given.get("trial")
        return cls(
            system=system,
            task=task,
            trial=_occurrence(system, task) if trial is None else _integers("trial", trial),
            outcome=outcome,
            score=_scores(given.get("score"), outcome),
            seed=_seeds(given.get("seed")),
            features={name: _numbers(name, given[name]) for name in FEATURES if name in given},
            level=_labels(given.get("level")),
            tags=_word_labels(given.get("tags")),
            tools=_word_labels(given.get("tools")),
            error=_labels(given.get("error")),
            started=_labels(given.get("started")),
            sources=sources,
        )

    @classmethod
    def concat(cls, tables: Sequence[Trials]) -> Trials:
        """The rows of several tables, one after the other; their sources too."""
        if len(tables) == 1:
            return tables[0]
        columns: dict[str, list[Any]] = {}
        parts = [table.to_columns() for table in tables]
        names = {name for part in parts for name in part}
        for name in sorted(names):
            columns[name] = [
                value
                for part, table in zip(parts, tables, strict=True)
                for value in part.get(name, [None] * len(table))
            ]
        sources = tuple(source for table in tables for source in table.sources)
        if not columns:
            columns = {"task": [], "outcome": []}
        return cls.from_columns(columns, sources=sources)

    def __len__(self) -> int:
        return len(self.outcome)

    def __iter__(self) -> Iterator[Trial]:
        columns = self.to_columns()
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            yield Trial(**(row | {"outcome": Outcome(row["outcome"])}))

    @property
    def systems(self) -> tuple[str, ...]:
        return self.system.names

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.task.names

    def take(self, rows: NDArray[Any]) -> Trials:
        """The chosen rows (a mask or indices), with the same sources."""
        return replace(
            self,
            system=self.system.take(rows),
            task=self.task.take(rows),
            trial=self.trial[rows],
            outcome=self.outcome[rows],
            score=self.score[rows],
            seed=None if self.seed is None else self.seed[rows],
            features={name: column[rows] for name, column in self.features.items()},
            **{
                name: column.take(rows)
                for name in ("level", "tags", "tools", "error", "started")
                if (column := getattr(self, name)) is not None
            },
        )

    def where(
        self,
        *,
        system: str | None = None,
        task: str | None = None,
        level: str | None = None,
        tag: str | None = None,
    ) -> Trials:
        """The trials of one system, task, level or tag (all that are named must hold)."""
        mask = np.ones(len(self), dtype=bool)
        for column, name in ((self.system, system), (self.task, task), (self.level, level)):
            if name is not None:
                mask &= (
                    np.zeros(len(self), dtype=bool)
                    if column is None
                    else (column.codes == column.code(name)) & (column.codes != NO_CODE)
                )
        if tag is not None:
            mask &= self.has_word("tags", tag)
        return self.take(mask)

    def words(self, column: str) -> tuple[str, ...]:
        """The distinct words of `tags` or `tools`, sorted."""
        labels: Labels | None = getattr(self, column)
        names = () if labels is None else labels.names
        return tuple(sorted({word for name in names for word in name.split("\0")}))

    def has_word(self, column: str, word: str) -> NDArray[np.bool_]:
        """Which rows carry `word` among their `tags` or `tools`."""
        labels: Labels | None = getattr(self, column)
        if labels is None:
            return np.zeros(len(self), dtype=bool)
        having = np.array([word in name.split("\0") for name in labels.names] + [False])
        return np.asarray(having[labels.codes])

    def duplicates(self) -> list[tuple[str, str, int]]:
        """The (system, task, trial) that occur more than once."""
        order = np.lexsort((self.trial, self.task.codes, self.system.codes))
        same = np.ones(max(len(self) - 1, 0), dtype=bool)
        for column in (self.trial, self.task.codes, self.system.codes):
            same &= np.diff(column[order]) == 0
        rows = order[1:][same]
        keys = {
            (
                self.systems[self.system.codes[row]],
                self.tasks[self.task.codes[row]],
                int(self.trial[row]),
            )
            for row in rows
        }
        return sorted(keys)

    def tally(self, system: str | None = None) -> Tally:
        """Counts per task of one system (the only one, if none is named)."""
        return _tally(self, _system_name(self, system))

    def to_columns(self) -> dict[str, list[Any]]:
        """Plain lists by column name, missing values as None; columns that no trial fills left out.

        >>> Trials.from_columns(task=["a"], passed=[True]).to_columns()["score"]
        [1.0]
        """
        columns: dict[str, list[Any]] = {
            "system": self.system.texts(),
            "task": self.task.texts(),
            "trial": self.trial.tolist(),
            "outcome": self.outcome.tolist(),
            "score": _optional(self.score),
        }
        if self.seed is not None:
            columns["seed"] = [None if seed == NO_CODE else seed for seed in self.seed.tolist()]
        columns |= {name: _optional(column) for name, column in self.features.items()}
        for name in ("level", "error", "started"):
            if (labels := getattr(self, name)) is not None:
                columns[name] = labels.texts()
        for name in ("tags", "tools"):
            if (labels := getattr(self, name)) is not None:
                columns[name] = [tuple(text.split("\0")) if text else () for text in labels.texts()]
        return columns

    def _columns(self) -> Iterator[tuple[str, Any]]:
        for name in ("system", "task", "level", "tags", "tools", "error", "started"):
            if (labels := getattr(self, name)) is not None:
                yield name, labels.codes
        for name in ("trial", "score", "seed"):
            if (column := getattr(self, name)) is not None:
                yield name, column
        yield from self.features.items()


def _get(row: Trial | Mapping[str, Any], name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)


def _outcomes(given: Mapping[str, Any]) -> NDArray[np.int8]:
    if "outcome" in given:
        codes = np.array([_outcome(value) for value in given["outcome"]], dtype=np.int8)
    elif "passed" in given:
        codes = np.array([_passed(value) for value in given["passed"]], dtype=np.int8)
    elif "score" in given:
        scores = np.array([np.nan if s is None else s for s in given["score"]], dtype=np.float64)
        codes = np.where(np.isnan(scores), Outcome.ERRORED, scores >= 1).astype(np.int8)
    else:
        raise ArgumentError("columns", "must have outcome, passed or score", sorted(given))
    return codes


def _outcome(value: Any) -> int:
    try:
        return int(Outcome[value.upper()] if isinstance(value, str) else Outcome(value))
    except (KeyError, ValueError, TypeError):
        rule = "must be passed, failed or errored (or 1, 0, 2)"
        raise ArgumentError("outcome", rule, value) from None


def _passed(value: Any) -> int:
    if value is None or value != value:  # NaN
        return int(Outcome.ERRORED)
    if value not in (0, 1):
        raise ArgumentError("passed", "must be true, false, 1, 0, or missing", value)
    return int(value)


def _scores(values: Any, outcome: NDArray[np.int8]) -> Floats:
    own = np.where(outcome == Outcome.ERRORED, np.nan, outcome.astype(np.float64))
    if values is None:
        return own
    scores = _numbers("score", values)
    scores = np.where(np.isnan(scores), own, scores)
    bad = (scores < 0) | (scores > 1)
    if bad.any():
        raise ArgumentError("score", "must lie in [0, 1]", float(scores[bad][0]))
    return np.where(outcome == Outcome.ERRORED, np.nan, scores)


def _numbers(name: str, values: ArrayLike | Sequence[Any]) -> Floats:
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
            return values.astype(np.float64)
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)  # type: ignore[union-attr]  # any iterable of numbers and None
    except (TypeError, ValueError):
        raise ArgumentError(name, "must be numbers or missing", values) from None


def _integers(name: str, values: Any) -> NDArray[np.int64]:
    numbers = _numbers(name, values)
    if (bad := ~(numbers == np.floor(numbers))).any():
        raise ArgumentError(name, "must be whole numbers", float(numbers[bad][0]))
    return numbers.astype(np.int64)


def _seeds(values: Any) -> NDArray[np.int64] | None:
    if values is None:
        return None
    return np.array([NO_CODE if v is None or v != v else int(v) for v in values], dtype=np.int64)


def _labels(values: Iterable[Any] | None) -> Labels | None:
    if values is None:
        return None
    return Labels.of(None if v is None or v != v else str(v) for v in values)


def _word_labels(values: Iterable[Any] | None) -> Labels | None:
    if values is None:
        return None
    return Labels.of("\0".join(words) if words else None for words in values)


def _occurrence(system: Labels, task: Labels) -> NDArray[np.int64]:
    """The how-manieth row of its system and task each row is, from 0."""
    key = system.codes.astype(np.int64) * max(len(task.names), 1) + task.codes
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_key) != 0]) if len(key) else key
    lengths = np.diff(np.r_[starts, len(key)])
    occurrence = np.empty(len(key), dtype=np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(starts, lengths)
    return occurrence


def _optional(column: Floats) -> list[float | None]:
    return [None if value != value else value for value in column.tolist()]


def _system_name(trials: Trials, system: str | None) -> str:
    if system is None and len(trials.systems) == 1:
        return trials.systems[0]
    if system not in trials.systems:
        raise ArgumentError("system", f"must be one of {', '.join(trials.systems)}", system)
    return system


def _tally(trials: Trials, system: str) -> Tally:
    rows = trials.system.codes == trials.system.code(system)
    task = trials.task.take(rows)
    outcome = trials.outcome[rows]
    size = len(task.names)

    def per_task(weights: NDArray[Any]) -> Floats:
        return np.bincount(task.codes, weights=weights, minlength=size).astype(np.float64)

    def count(kind: Outcome) -> NDArray[np.int64]:
        return np.bincount(task.codes[outcome == kind], minlength=size).astype(np.int64)

    score = np.nan_to_num(trials.score[rows])
    return Tally(
        system=system,
        tasks=task.names,
        passed=count(Outcome.PASSED),
        failed=count(Outcome.FAILED),
        errored=count(Outcome.ERRORED),
        score_total=per_task(score),
        score_squares=per_task(score * score),
        features={
            name: _feature_sums(column[rows], outcome, task.codes, size)
            for name, column in trials.features.items()
        },
    )


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
