"""A table of trials, held in columns: the only thing the analysis reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import several
from passhat.dataclass import Displayed, FrameLibrary, dataclass
from passhat.errors import ArgumentError
from passhat.messages import one_of_rule, plural
from passhat.records import frames, given_columns
from passhat.records.duplicates import TrialKeys, check_duplicates, duplicate_trials
from passhat.records.frames import columns_of_records
from passhat.records.given_columns import NO_SEED
from passhat.records.labels import Labels, joined_labels, joined_numbers
from passhat.records.source import Source
from passhat.records.tally import Tally, count_trials
from passhat.records.trial import FEATURES, Duplicates, Outcome, Trial

Floats = NDArray[np.float64]
_TEXTS = ("level", "family", "tags", "tools", "error", "started")
_LABELS = ("task", "system", *_TEXTS)
_NUMBERS = ("trial", "outcome", "score", "seed", "weight")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials(Displayed):
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
    family: Labels | None = None
    weight: Floats | None = None
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

    def __repr__(self) -> str:
        ways = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED
        ended = ((one.name.lower(), int((self.outcome == one).sum())) for one in ways)
        counts = ", ".join(f"{count:,} {word}" for word, count in ended if count)
        size = f"{plural(len(self.systems), 'system')}, {plural(len(self.tasks), 'task')}"
        return f"<Trials: {size}, {plural(len(self), 'trial')}{counts and f' ({counts})'}>"

    # Tags and tools are tuples of words; a distinct tuple is one label, its words joined by NUL.

    @classmethod
    def from_records(
        cls,
        records: Iterable[Trial | Mapping[str, Any]],
        *,
        duplicates: Duplicates | None = "error",
        sources: tuple[Source, ...] = (),
        **renamed: str | None,
    ) -> Trials:
        """A table of Trial objects, or of dicts whose keys are called as in files.

        `task="case"` names a key of your own, `pass_if="score>=0.8"` says what passes.

        >>> Trials.from_records([{"sample_id": "a", "status": "fail", "seconds": 2.5}]).tasks
        ('a',)
        """
        columns, source = columns_of_records(records, renamed)
        return cls.from_columns(
            columns, duplicates=duplicates, sources=sources or ((source,) if source else ())
        )

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any] | None = None,
        *,
        duplicates: Duplicates | None = "error",
        sources: tuple[Source, ...] = (),
        **more: Any,
    ) -> Trials:
        """A table from columns by name; `task` and one of `outcome`, `passed` or `score` suffice.

        Without `trial`, the rows of a system and task are numbered as they come; a `trial` that
        occurs twice is an error unless `duplicates` says "keep" or "last" (None: not looked for).
        Without `outcome` and `passed`, a score of 1 passes. If one of these is missing, `error`
        must say what broke the trial.
        """
        frames.refuse_frame("columns", "must be lists by name", columns)
        if not isinstance(columns, Mapping | None):
            raise ArgumentError("columns", "must be lists by name, as in a dict", columns)
        given = {**(columns or {}), **more}
        given_columns.check_columns(given, {f.name for f in fields(Trial)} | {"passed"})
        size = len(given["task"])
        outcome = given_columns.outcomes(given)
        task = given_columns.names("task", given["task"])
        system = (
            given_columns.names("system", given["system"])
            if "system" in given
            else Labels(("system",) if size else (), np.zeros(size, dtype=np.int32))
        )
        trial = given.get("trial")
        table = cls(
            system=system,
            task=task,
            trial=(
                given_columns.occurrence(system, task)
                if trial is None
                else given_columns.integers("trial", trial)
            ),
            outcome=outcome,
            score=given_columns.scores(given.get("score"), outcome),
            seed=given_columns.seeds(given.get("seed")),
            features={
                name: given_columns.numbers(name, given[name]) for name in FEATURES if name in given
            },
            level=given_columns.labels(given.get("level")),
            family=given_columns.labels(given.get("family")),
            weight=given_columns.weights(given.get("weight")),
            tags=given_columns.word_labels("tags", given.get("tags")),
            tools=given_columns.word_labels("tools", given.get("tools")),
            error=given_columns.labels(given.get("error")),
            started=given_columns.labels(given.get("started")),
            sources=sources,
        )
        return table._settled(None if trial is None else duplicates)

    @classmethod
    def from_frame(
        cls, frame: Any, *, duplicates: Duplicates | None = "error", **renamed: str | None
    ) -> Trials:
        """A table from pandas, polars, Arrow or any Arrow stream, its columns called as in files.

        `task="case"` names a column of your own, `pass_if="score>=0.8"` says what passes. Missing
        outcomes and trials that occur twice are as in `from_columns`.
        """
        columns, source = frames.columns_of_frame(frame, renamed)
        return cls.from_columns(columns, duplicates=duplicates, sources=(source,))

    @classmethod
    def concat(cls, tables: Sequence[Trials], *, duplicates: Duplicates | None = "error") -> Trials:
        """The rows of several tables, one after the other; their sources too.

        A trial that occurs in several of them is as in `from_columns`.
        """
        for table in several(tables):
            if not isinstance(table, Trials):
                frames.refuse_frame("tables", "must be Trials", table)
                raise ArgumentError("tables", "must be a list of Trials", table)
        if not tables:
            return cls.from_columns(task=[], outcome=[])
        if len(tables) == 1:
            return tables[0]
        sizes = [len(table) for table in tables]
        features = {
            name: joined_numbers([table.features.get(name) for table in tables], sizes, np.nan)
            for name in FEATURES
        }
        joined = cls(
            system=Labels.concat([table.system for table in tables]),
            task=Labels.concat([table.task for table in tables]),
            trial=np.concatenate([table.trial for table in tables]),
            outcome=np.concatenate([table.outcome for table in tables]),
            score=np.concatenate([table.score for table in tables]),
            seed=joined_numbers([table.seed for table in tables], sizes, NO_SEED),
            weight=joined_numbers([table.weight for table in tables], sizes, np.nan),
            features={name: found for name, found in features.items() if found is not None},
            **{
                name: joined_labels([getattr(table, name) for table in tables], sizes)
                for name in _TEXTS
            },
            sources=tuple(source for table in tables for source in table.sources),
        )
        return joined._settled(duplicates)

    def __len__(self) -> int:
        return len(self.outcome)

    def __iter__(self) -> Iterator[Trial]:
        columns = self.to_columns()
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            yield Trial(**(row | {"outcome": Outcome(row["outcome"])}))

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, each once."""
        return self.system.names

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks, each once."""
        return self.task.names

    @property
    def seeded(self) -> NDArray[np.bool_]:
        """Which rows carry a seed.

        >>> Trials.from_columns(task=["a", "a"], passed=[1, 0], seed=[-1, None]).seeded.tolist()
        [True, False]
        """
        return np.zeros(len(self), dtype=bool) if self.seed is None else self.seed != NO_SEED

    def take(self, rows: NDArray[Any]) -> Trials:
        """The chosen rows (a mask or indices), with the same sources."""
        columns = {name: getattr(self, name) for name in (*_LABELS, *_NUMBERS)}
        try:
            taken: dict[str, Any] = {
                name: column.take(rows) if isinstance(column, Labels) else column[rows]
                for name, column in columns.items()
                if column is not None
            }
        except IndexError:
            rule = f"must be a mask of {plural(len(self), 'row')}, or their indices"
            raise ArgumentError("rows", rule, rows) from None
        features = {name: column[rows] for name, column in self.features.items()}
        return replace(self, **taken, features=features)

    def where(
        self,
        *,
        system: str | None = None,
        task: str | None = None,
        level: str | None = None,
        tag: str | None = None,
    ) -> Trials:
        """The trials of one system, task, level or tag (all that are named must hold)."""
        asked = {"system": system, "task": task, "level": level}
        mask = np.ones(len(self), dtype=bool)
        for column, name in asked.items():
            if name is not None:
                mask &= _having(column, getattr(self, column), name)
        if tag is not None:
            if tag not in self.words("tags"):
                raise ArgumentError("tag", one_of_rule(str(tag), self.words("tags"), 5), tag)
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
        return self._keys().repeated()

    def last_of_each(self) -> NDArray[np.intp]:
        """The rows that are the last of their (system, task, trial), in their old order."""
        return self._keys().last_rows()

    def renumbered(self, rows: NDArray[np.bool_] | None = None) -> Trials:
        """The same rows, their trials (or those of the masked rows) numbered as they come."""
        mask = np.ones(len(self), dtype=bool) if rows is None else rows
        trial = self.trial.copy()
        trial[mask] = given_columns.occurrence(self.system.take(mask), self.task.take(mask))
        return replace(self, trial=trial)

    def _keys(self) -> TrialKeys:
        return TrialKeys(self.system, self.task, self.trial)

    def _settled(self, duplicates: Duplicates | None) -> Trials:
        """The trials with each system, task and number once; as they are if that is None.

        >>> twice = {"task": ["a", "a"], "trial": [1, 1], "passed": [False, True]}
        >>> Trials.from_columns(twice, duplicates="last").outcome.tolist()
        [1]
        >>> Trials.from_columns(twice, duplicates="keep").trial.tolist()
        [0, 1]
        """
        if duplicates is None:
            return self
        check_duplicates(duplicates)
        last = self.last_of_each()
        if len(last) == len(self):
            return self
        if duplicates == "error":
            raise duplicate_trials(self._keys())
        return self.renumbered() if duplicates == "keep" else self.take(last)

    def tally(self, system: str | None = None) -> Tally:
        """Counts per task of one system (the only one, if none is named)."""
        name = _system_name(self, system)
        rows = self.system.codes == self.system.code(name)
        return count_trials(
            name,
            task=self.task.take(rows),
            outcome=self.outcome[rows],
            score=self.score[rows],
            features={name: column[rows] for name, column in self.features.items()},
            sources=self.sources,
            family=None if self.family is None else self.family.take(rows),
            weight=None if self.weight is None else self.weight[rows],
        )

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
            columns["seed"] = [None if seed == NO_SEED else seed for seed in self.seed.tolist()]
        columns |= {name: _optional(column) for name, column in self.features.items()}
        if self.weight is not None:
            columns["weight"] = _optional(self.weight)
        for name in ("level", "family", "error", "started"):
            if (labels := getattr(self, name)) is not None:
                columns[name] = labels.texts()
        for name in ("tags", "tools"):
            if (labels := getattr(self, name)) is not None:
                columns[name] = [tuple(text.split("\0")) if text else () for text in labels.texts()]
        return columns

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """A data frame, one row a trial; `library` as for every other result."""
        return frames.frame_of_trials(self.to_columns(), library)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row a trial."""
        return self.to_frame("pandas")

    def to_polars(self) -> Any:
        """A polars DataFrame, one row a trial."""
        return self.to_frame("polars")

    def to_arrow(self) -> Any:
        """A pyarrow Table, one row a trial."""
        return self.to_frame("pyarrow")

    def _columns(self) -> Iterator[tuple[str, Any]]:
        for name in (*_LABELS, *_NUMBERS):
            if (column := getattr(self, name)) is not None:
                yield name, column.codes if isinstance(column, Labels) else column
        yield from self.features.items()


def _having(argument: str, column: Labels | None, name: str) -> NDArray[np.bool_]:
    """Which rows have a name; one that no row has is an error, not an empty answer."""
    known = () if column is None else column.names
    if column is None or name not in known:
        raise ArgumentError(argument, one_of_rule(str(name), known, 5), name)
    return np.asarray(column.codes == column.code(name))


def _optional(column: Floats) -> list[float | None]:
    return [None if value != value else value for value in column.tolist()]


def _system_name(trials: Trials, system: str | None) -> str:
    if system is None and len(trials.systems) == 1:
        return trials.systems[0]
    if system not in trials.systems:
        raise ArgumentError("system", f"must be one of {', '.join(trials.systems)}", system)
    return system
