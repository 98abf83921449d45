"""A table of trials, held in columns: the only thing the analysis reads."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from math import inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import parse_levels, several
from passhat.dataclass import Displayed, FrameLibrary, dataclass
from passhat.errors import ArgumentError
from passhat.messages import few, few_paths, listed, no_task, one_of_rule, plural, typo_hint
from passhat.records import data_frames
from passhat.records.data_frames import columns_of_records, is_frame, refuse_frame
from passhat.records.labels import Label, checked_human_labels, read_labels
from passhat.records.tally import Categorical, Tally, count_trials, joined_labels, joined_numbers
from passhat.records.trial import (
    FEATURES,
    SAMPLED,
    USER_FLAGS,
    Duplicates,
    Outcome,
    Source,
    Trial,
    TrialKey,
    is_at,
    levels_of,
    numbers_by_seed,
    wanted_levels,
)

Floats = NDArray[np.float64]

_WORDS = ("tags", "tools", "at")
_TEXTS = ("level", "family", "base", *_WORDS, "error", "started", "human_labels")
_LABELS = ("task", "system", *_TEXTS)
_NUMBERS = ("trial", "outcome", "score", "seed", "weight", "stated_confidence")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trials(Displayed):
    """Trials in columns; a column that no trial fills is None.

    >>> table = Trials.from_columns(task=["a", "a", "b"], passed=[True, False, True])
    >>> len(table), table.systems, table.tasks
    (3, ('system',), ('a', 'b'))
    """

    system: Categorical
    task: Categorical
    trial: NDArray[np.int64]
    outcome: NDArray[np.int8]
    score: Floats
    seed: NDArray[np.int64] | None = None
    features: Mapping[str, Floats] = field(default_factory=dict)
    level: Categorical | None = None
    family: Categorical | None = None
    weight: Floats | None = None
    stated_confidence: Floats | None = None
    base: Categorical | None = None
    at: Categorical | None = None
    tags: Categorical | None = None
    tools: Categorical | None = None
    error: Categorical | None = None
    started: Categorical | None = None
    human_labels: Categorical | None = None
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        size = len(self.outcome)
        for name, column in self._columns():
            if len(column) != size:
                raise ArgumentError(name, f"must have {size} rows like outcome", len(column))

    def __repr__(self) -> str:
        ways = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED
        ended = ((way.name.lower(), int((self.outcome == way).sum())) for way in ways)
        counts = ", ".join(f"{count:,} {word}" for word, count in ended if count)
        size = f"{plural(len(self.systems), 'agent')}, {plural(len(self.tasks), 'task')}"
        return f"<Trials: {size}, {plural(len(self), 'trial')}{counts and f' ({counts})'}>"

    # Tags, tools and `at` are tuples of words; a distinct tuple is one label, joined by NUL.

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
        table = cls.from_columns(
            columns, duplicates=duplicates, sources=sources or ((source,) if source else ())
        )
        return table.with_reference(renamed.get("reference_level"))

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
        `human_labels` are what people say, lists of Label or their text.
        `at` are conditions, lists of factor=level; without `base`, each task under each of them
        becomes a task of its own. Without `outcome` and `passed`, a score of 1 passes. If one of
        these is missing, `error` must say what broke the trial.
        """
        data_frames.refuse_frame("columns", "must be lists by name", columns)
        if not isinstance(columns, Mapping | None):
            raise ArgumentError("columns", "must be lists by name, as in a dict", columns)
        given = {**(columns or {}), **more}
        check_columns(given, {f.name for f in fields(Trial)} | {"passed", "human_labels"})
        size = len(given["task"])
        outcome = checked_outcomes(given)
        task = checked_names("task", given["task"])
        system = (
            checked_names("system", given["system"])
            if "system" in given
            else Categorical(("system",) if size else (), np.zeros(size, dtype=np.int32))
        )
        trial = given.get("trial")
        table = cls(
            system=system,
            task=task,
            trial=(occurrence(system, task) if trial is None else checked_integers("trial", trial)),
            outcome=outcome,
            score=checked_scores(given.get("score"), outcome),
            seed=checked_seeds(given.get("seed")),
            features={
                name: checked_numbers(name, given[name]) for name in FEATURES if name in given
            },
            level=checked_labels(given.get("level")),
            family=checked_labels(given.get("family")),
            weight=checked_weights(given.get("weight")),
            stated_confidence=checked_shares("stated_confidence", given.get("stated_confidence")),
            base=checked_labels(given.get("base")),
            at=checked_conditions(given.get("at")),
            tags=checked_word_labels("tags", given.get("tags")),
            tools=checked_word_labels("tools", given.get("tools")),
            error=checked_labels(given.get("error")),
            started=checked_labels(given.get("started")),
            human_labels=checked_human_labels(given.get("human_labels")),
            sources=sources,
        )
        return table._settled(duplicates, numbered=trial is not None, anew=True)

    @classmethod
    def from_frame(
        cls, frame: Any, *, duplicates: Duplicates | None = "error", **renamed: str | None
    ) -> Trials:
        """A table from pandas, polars, Arrow or any Arrow stream, its columns called as in files.

        `task="case"` names a column of your own, `pass_if="score>=0.8"` says what passes. Missing
        outcomes and trials that occur twice are as in `from_columns`.
        """
        columns, source = data_frames.columns_of_frame(frame, renamed)
        table = cls.from_columns(columns, duplicates=duplicates, sources=(source,))
        return table.with_reference(renamed.get("reference_level"))

    @classmethod
    def concat(cls, tables: Sequence[Trials], *, duplicates: Duplicates | None = "error") -> Trials:
        """The rows of several tables, one after the other; their sources too.

        A trial that occurs in several of them is as in `from_columns`.
        """
        for table in several(tables):
            if not isinstance(table, Trials):
                data_frames.refuse_frame("tables", "must be Trials", table)
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
            system=Categorical.concat([table.system for table in tables]),
            task=Categorical.concat([table.task for table in tables]),
            trial=np.concatenate([table.trial for table in tables]),
            outcome=np.concatenate([table.outcome for table in tables]),
            score=np.concatenate([table.score for table in tables]),
            seed=joined_numbers([table.seed for table in tables], sizes, NO_SEED),
            weight=joined_numbers([table.weight for table in tables], sizes, np.nan),
            stated_confidence=joined_numbers(
                [table.stated_confidence for table in tables], sizes, np.nan
            ),
            features={name: column for name, column in features.items() if column is not None},
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
        columns.pop("human_labels", None)  # what people say of a trial is no part of it: `labels()`
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
                name: column.take(rows) if isinstance(column, Categorical) else column[rows]
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
        """The distinct words of `tags`, `tools` or `at`, sorted."""
        labels: Categorical | None = getattr(self, column)
        names = () if labels is None else labels.names
        return tuple(sorted({word for name in names for word in name.split("\0")}))

    def has_word(self, column: str, word: str) -> NDArray[np.bool_]:
        """Which rows carry `word` among their `tags`, `tools` or `at`, or as their `level`."""
        labels: Categorical | None = getattr(self, column)
        if labels is None:
            return np.zeros(len(self), dtype=bool)
        having = np.array([word in name.split("\0") for name in labels.names] + [False])
        return np.asarray(having[labels.codes])

    def crossed(self, *reference: str) -> Trials:
        """Each task under each of its conditions as a task of its own; `base` is what it was.

        Conditions that are the same for all trials do not change the name, nor do seeds and days:
        trials of a task at levels that are a sample are its trials, numbered on from one to the
        next; nor does a level that is the `reference`. Trials that have a `base` were named by who
        made them.

        >>> table = Trials.from_columns(
        ...     task=["a", "a"], at=[["user=terse"], ["user=kind"]], passed=[1, 0]
        ... )
        >>> table.tasks, table.base.names
        (('a [user=terse]', 'a [user=kind]'), ('a',))
        """
        if self.at is None:
            return self
        named = self.base is not None and np.asarray(self.base.codes >= 0)
        rows = np.flatnonzero((self.at.codes >= 0) & ~np.asarray(named))
        if not rows.size:
            return self
        at, task = self.at.take(rows), self.task.take(rows)
        words = [name.split("\0") for name in at.names]
        levels = {word for own in words for word in own}
        factors = Counter(name for word in levels if not is_sampled(name := word.partition("=")[0]))
        marks = [
            ", ".join(w for w in own if factors[w.partition("=")[0]] > 1 and w not in reference)
            for own in words
        ]
        names, bases = self.task.texts(), (self.base or Categorical.missing(len(self))).texts()
        for row, code, cell in zip(
            rows.tolist(), task.codes.tolist(), at.codes.tolist(), strict=True
        ):
            bases[row] = task.names[code]
            names[row] = f"{task.names[code]} [{marks[cell]}]" if marks[cell] else task.names[code]
        cells = replace(self, task=Categorical.of(names), base=Categorical.of(bases))
        return cells.numbered_on() if self._sampled_conditions() else cells

    def numbered_on(self) -> Trials:
        """The same, where trials of a task are numbered anew at each seed or day; else as it is.

        >>> again = {"task": ["a", "a"], "trial": [0, 0], "seed": [1, 2], "passed": [1, 0]}
        >>> Trials.from_columns(again).trial.tolist()
        [0, 1]
        """
        levels = [*self._sampled_conditions().values()]
        if self.seed is not None and self.seeded.all():
            levels.append(self.seed)
        if not levels or len(self.last_of_each()) == len(self):
            return self
        rows = np.column_stack((self.system.codes, self.task.codes, self.trial, *levels))
        return self.renumbered() if len(np.unique(rows, axis=0)) == len(rows) else self

    def _sampled_conditions(self) -> dict[str, NDArray[np.intp]]:
        """The level of each trial, numbered, of every condition that is a sample of its kind."""
        if self.at is None:
            return {}
        words = [dict(w.partition("=")[::2] for w in name.split("\0")) for name in self.at.names]
        codes: dict[str, NDArray[np.intp]] = {}
        for factor in dict.fromkeys(name for own in words for name in own if is_sampled(name)):
            levels = Categorical.of([*(own.get(factor) for own in words), None])
            codes[factor] = levels.codes[self.at.codes].astype(np.intp) + 1  # 0: it names none
        return codes

    def sampled_levels(self) -> dict[str, NDArray[np.intp]]:
        """The level of each trial of one system, numbered, of each factor that is a sample.

        Those are the days, weeks and seeds among its conditions, and the seeds of the column: where
        some task has several trials with one seed, or where a table tells trials apart by nothing
        else. A seed that comes once in each round of a run only numbers the rounds.

        >>> table = Trials.from_columns(task=["a"] * 4, passed=[1] * 4, seed=[7, 7, 9, 9])
        >>> {name: codes.tolist() for name, codes in table.sampled_levels().items()}
        {'seed': [0, 0, 1, 1]}
        """
        codes = self._sampled_conditions()
        if self.seed is None or not len(self) or "seed" in codes or not self.seeded.all():
            return codes
        seeds, level = np.unique(self.seed, return_inverse=True)
        runs, task = np.bincount(self.task.codes), self.task.codes.astype(np.int64)
        if not 2 <= len(seeds) <= runs.max():
            return codes
        repeated = len(np.unique(task * len(seeds) + level)) < len(self)
        factor = repeated or any(map(numbers_by_seed, self.sources))
        return codes | {"seed": level} if factor else codes

    def at_reference(self) -> Trials:
        """The trials of tasks as they are, where others are tried under conditions; else all.

        >>> table = Trials.from_columns(
        ...     task=["a", "a [user=terse]"], base=["a", "a"], passed=[1, 0]
        ... )
        >>> table.at_reference().tasks
        ('a',)
        """
        if self.base is None:
            return self
        place = {name: code for code, name in enumerate(self.task.names)}
        own = np.array([place.get(name, -2) for name in self.base.names] + [-2])
        rows = (self.base.codes < 0) | (own[self.base.codes] == self.task.codes)
        return self if rows.all() or not rows.any() else self.take(rows)

    def with_reference(self, level: str | Mapping[str, str] | None) -> Trials:
        """The same trials, where tasks at this level of each factor are tasks as they are.

        >>> users = Trials.from_columns(
        ...     task=["a", "a"], at=[["user=terse"], ["user=kind"]], passed=[1, 0]
        ... )
        >>> users.with_reference("user=kind").tasks
        ('a [user=terse]', 'a')
        """
        if level is None:
            return self
        levels = parse_levels("reference_level", level)
        known = self._known_levels("reference_level", levels)
        if sampled := next(filter(is_sampled, levels), None):
            rule = f"must be of a condition, but each {sampled} stands for others like it"
            raise ArgumentError("reference_level", rule, level)
        crossed = {name for name, own in known.items() if len(own) > 1 and not is_sampled(name)}
        if others := sorted(crossed - levels.keys()):
            raise ArgumentError("reference_level", f"must name one of {listed(others)} too", level)
        plain = replace(self, task=self.bases(), base=None)
        return plain.crossed(*(f"{name}={own}" for name, own in levels.items()))

    def at_levels(self, level: str | Sequence[str] | Mapping[str, str]) -> Trials:
        """The trials at these levels, of other factors at the reference where they have one.

        Tasks are called as they would be if there were no others. "user=all" keeps each user.

        >>> users = Trials.from_columns(
        ...     task=["a", "a"], at=[["user=terse"], ["user=kind"]], passed=[1, 0]
        ... )
        >>> users.at_levels("user=terse").tasks
        ('a',)
        """
        named = parse_levels("at", level)
        self._known_levels("at", named, "all")
        plain, cells = self.at_reference(), self.conditions()
        wanted = wanted_levels(cells, () if plain is self else plain.conditions(), named)
        kept = np.array([*(is_at(words, named, wanted) for words in cells), False])
        assert self.at is not None, "it has the named levels"
        kept_trials = self.take(kept[self.at.codes])
        return replace(kept_trials, task=kept_trials.bases(), base=None).crossed()

    def conditions(self) -> list[list[str]]:
        """The different conditions of trials, each as words such as "user=terse"."""
        return [] if self.at is None else [name.split("\0") for name in self.at.names]

    def _known_levels(
        self, argument: str, levels: Mapping[str, str], *also: str
    ) -> dict[str, list[str]]:
        """The levels of each factor; refused where one of these is not among them."""
        known = levels_of(self.conditions())
        for name, level in levels.items():
            if level not in (*known.get(name, ()), *(also if name in known else ())):
                what, there = (f"a {name}", known[name]) if name in known else ("a factor", known)
                files = few_paths(source.name for source in self.sources if source.sha256)
                names = listed(there) or "there is none"
                rule = f"must name {what} of {files or 'these trials'} ({names})"
                word = level if name in known else name
                raise ArgumentError(argument, rule + typo_hint(word, there), word)
        return known

    def bases(self) -> Categorical:
        """The task of each trial without its conditions."""
        if self.base is None:
            return self.task
        named = zip(self.base.texts(), self.task.texts(), strict=True)
        return Categorical.of(base or task for base, task in named)

    def flagged(self) -> NDArray[np.bool_]:
        """Which rows passed or failed while their simulated user broke a rule."""
        broken = [self.has_word("tags", flag) for flag in USER_FLAGS if self.tags is not None]
        rows = np.any(broken, axis=0) if broken else np.zeros(len(self), dtype=bool)
        return np.asarray(rows & (self.outcome != Outcome.ERRORED))

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
        trial[mask] = occurrence(self.system.take(mask), self.task.take(mask))
        return replace(self, trial=trial)

    def _keys(self) -> TrialKeys:
        return TrialKeys(self.system, self.task, self.trial)

    def _settled(
        self, duplicates: Duplicates | None, *, numbered: bool = True, anew: bool = False
    ) -> Trials:
        """The trials crossed, with each system, task and number once; as they are if that is None.

        Those of one table may be numbered `anew` at each seed.

        >>> twice = {"task": ["a", "a"], "trial": [1, 1], "passed": [False, True]}
        >>> Trials.from_columns(twice, duplicates="last").outcome.tolist()
        [1]
        >>> Trials.from_columns(twice, duplicates="keep").trial.tolist()
        [0, 1]
        """
        if duplicates is None:
            return self
        table = self.crossed()
        if not numbered:
            return table if table is self else table.renumbered()
        check_duplicates(duplicates)
        last = table.last_of_each()
        if len(last) == len(table):
            return table
        if duplicates == "error":
            if anew and (apart := table.numbered_on()) is not table:
                return apart
            raise duplicate_trials(TrialKeys(table.system, table.task, table.trial))
        return table.renumbered() if duplicates == "keep" else table.take(last)

    def with_labels(self, labels: Mapping[TrialKey, Sequence[Label]]) -> Trials:
        """The trials with what people say of them, in place of earlier labels.

        >>> from passhat.records.labels import Label
        >>> table = Trials.from_columns(task=["a", "b"], passed=[1, 0])
        >>> labelled = table.with_labels({("system", "b", 0): [Label(passed=True, by="ann")]})
        >>> labelled.to_columns()["human_labels"]
        [None, '[{"passed":true,"by":"ann"}]']
        """
        named = map(str, self.system.texts()), map(str, self.task.texts())
        keys = zip(*named, self.trial.tolist(), strict=True)
        column = checked_human_labels([labels.get(key, ()) for key in keys])
        return replace(self, human_labels=column)

    def labels(self) -> dict[TrialKey, tuple[Label, ...]]:
        """What people say of each trial that they labelled."""
        if self.human_labels is None:
            return {}
        named = map(str, self.system.texts()), map(str, self.task.texts())
        keys = zip(*named, self.trial.tolist(), strict=True)
        pairs = zip(keys, self.human_labels.texts(), strict=True)
        return {key: read_labels(text) for key, text in pairs if text}

    def tally(self, system: str | None = None) -> Tally:
        """Counts per task of one system (the only one, if none is named)."""
        name = self.systems[0] if system is None and len(self.systems) == 1 else system
        if name is None or name not in self.systems:
            raise ArgumentError("system", f"must be one of {', '.join(self.systems)}", system)
        rows = self.system.codes == self.system.code(name)
        return count_trials(
            name,
            task=self.task.take(rows),
            outcome=self.outcome[rows],
            score=self.score[rows],
            features={name: column[rows] for name, column in self.features.items()},
            sources=self.sources,
            family=None if self.family is None else self.family.take(rows),
            base=None if self.base is None else self.base.take(rows),
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
        for name in ("weight", "stated_confidence"):
            if (numbers := getattr(self, name)) is not None:
                columns[name] = _optional(numbers)
        for name in ("level", "family", "base", "error", "started", "human_labels"):
            if (labels := getattr(self, name)) is not None:
                columns[name] = labels.texts()
        for name in _WORDS:
            if (labels := getattr(self, name)) is not None:
                columns[name] = [tuple(text.split("\0")) if text else () for text in labels.texts()]
        return columns

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """A data frame, one row a trial; `library` as for every other result."""
        return data_frames.frame_of_trials(self.to_columns(), library)

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
                yield name, column.codes if isinstance(column, Categorical) else column
        yield from self.features.items()


def _having(argument: str, column: Categorical | None, name: str) -> NDArray[np.bool_]:
    """Which rows have a name; one that no row has is an error, not an empty answer."""
    known = () if column is None else column.names
    if column is None or name not in known:
        sentence = no_task(str(name), known) if argument == "task" else None
        rule = one_of_rule(str(name), known, 5)
        raise ArgumentError(argument, rule, name, sentence=sentence)
    return np.asarray(column.codes == column.code(name))


def _optional(column: Floats) -> list[float | None]:
    return [None if value != value else value for value in column.tolist()]


# Checks of the trials that functions get, with errors that name the way out.


def check_trials_argument(argument: str, value: object, *, counts: bool = True) -> None:
    """Refuse anything but Trials (or, with `counts`, a Tally), naming the way for frames and files.

    >>> check_trials_argument("first", "results.csv")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: first must be Trials; read_trials reads a file, got 'results.csv'
    """
    if isinstance(value, Trials | Tally if counts else Trials):
        return
    refuse_frame(argument, "must be Trials", value)
    raise ArgumentError(argument, "must be Trials; read_trials reads a file", value)


def refuse_file(argument: str, value: object, *, instead: str) -> None:
    """Refuse a path where trials are wanted, naming the function that reads files.

    >>> refuse_file("trials", "results.csv", instead="passhat.report")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: trials must be Trials; for a file call
    passhat.report('results.csv'), got 'results.csv'
    """
    if isinstance(value, str | PathLike):
        rule = f"must be Trials; for a file call {instead}({str(value)!r})"
        raise ArgumentError(argument, rule, value)


def framed_trials(value: Any) -> Any:
    """The trials of a data frame, its columns found as in files; anything else as it is."""
    return Trials.from_frame(value) if is_frame(value) else value


def one_tally(argument: str, value: Trials | Tally, *, purpose: str = "") -> Tally:
    """The counts of the only system in `value`; `purpose` says in the refusal what it is for.

    >>> table = Trials.from_columns(system=["x", "y"], task=["a", "a"], passed=[True, False])
    >>> one_tally("trials", table, purpose="to profile")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: trials must hold exactly one agent to profile, got ('x', 'y')
    """
    check_trials_argument(argument, value)
    if isinstance(value, Tally):
        return value
    if len(value.systems) != 1:
        rule = f"must hold exactly one agent {purpose}".rstrip()
        raise ArgumentError(argument, rule, value.systems)
    return value.tally()


# Trials that occur more than once: an error, different runs, or the last of each that counts.


@dataclass(frozen=True, slots=True)
class TrialKeys:
    """What identifies each row of a table: its system, its task and the number of the trial."""

    system: Categorical
    task: Categorical
    trial: NDArray[np.int64]

    def repeated(self) -> list[tuple[str, str, int]]:
        """The keys that occur more than once, sorted."""
        order, starts = self._sorted()
        rows = order[~starts].tolist()
        systems, tasks = self.system, self.task
        return sorted(
            {
                (
                    systems.names[systems.codes[row]],
                    tasks.names[tasks.codes[row]],
                    int(self.trial[row]),
                )
                for row in rows
            }
        )

    def last_rows(self) -> NDArray[np.intp]:
        """The last row of each key, in the order of the table."""
        order, starts = self._sorted()
        ends = np.r_[starts[1:], True] if order.size else starts
        return np.sort(order[ends])

    def _sorted(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Rows sorted by key, stably; and which of them begin a new key."""
        columns = (self.trial, self.task.codes, self.system.codes)
        order = np.lexsort(columns)
        starts = np.ones(order.size, dtype=bool)
        for column in columns:
            starts[1:] &= np.diff(column[order]) == 0
        starts[1:] = ~starts[1:]
        return order, starts


def check_duplicates(duplicates: object) -> None:
    """Refuse a word that does not say what to do with duplicates."""
    if duplicates not in ("error", "keep", "last"):
        raise ArgumentError("duplicates", "must be error, keep or last", duplicates)


def duplicate_trials(keys: TrialKeys) -> ArgumentError:
    """The error that names the trials that occur more than once."""
    twice = [f"{system} / {task} / trial {trial}" for system, task, trial in keys.repeated()]
    return ArgumentError(
        "trial",
        'must number the trials of an agent at a task, each once (`duplicates="last"` keeps the '
        'last of each, `duplicates="keep"` all, as different trials); '
        f"{len(twice):,} occur more often",
        twice,
    )


# Columns as users give them (lists, arrays, None and NaN for missing), checked and typed.

BEYOND = 2**63
"""Whole numbers must be smaller than this in size: they are held in 64 bits."""

LARGEST = 1e100
"""The largest number accepted: its square is still a finite float."""

NO_SEED = -BEYOND
"""Marks a missing seed: no seed can be this number."""

_MISSING = -1


def check_columns(given: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse columns that mean nothing, that are no columns, or that leave tasks unnamed."""
    for name, values in given.items():
        if name not in known:
            hint = typo_hint(str(name), known)
            raise ArgumentError("columns", f"must be among {', '.join(sorted(known))}{hint}", name)
        if values is not None and (isinstance(values, str) or not hasattr(values, "__len__")):
            raise ArgumentError(name, "must be a list with a value for each trial", values)
        if (depth := getattr(values, "ndim", 1)) != 1:
            raise ArgumentError(name, "must have one dimension, a value for each trial", depth)
    if given.get("task") is None:
        raise ArgumentError("columns", "must name the task of each trial", sorted(given))


def checked_names(name: str, values: Sequence[Any]) -> Categorical:
    """Texts, none missing."""
    try:
        distinct: Iterable[Any] = dict.fromkeys(values)
    except TypeError:  # lists, which have a text too
        distinct = values
    for value in distinct:
        if value is None or value != value or value == "":
            raise ArgumentError(name, f"must name the {name} of each trial", value)
    return Categorical.of(map(str, values))


def checked_outcomes(given: Mapping[str, Any]) -> NDArray[np.int8]:
    """How each trial ended, by `outcome`, else `passed`, else a score of 1.

    What is missing is an error of the trial if `error` says so, else one of the table.
    """
    by = next((name for name in ("outcome", "passed", "score") if name in given), None)
    if by is None:
        raise ArgumentError("columns", "must have outcome, passed or score", sorted(given))
    if by == "outcome" and set(map(type, given["outcome"])) <= {Outcome}:
        codes = np.array(given["outcome"], dtype=np.int8)  # codes already, and slow to hash
    elif by == "outcome":
        codes = _codes(given["outcome"], _outcome)
    elif by == "passed":
        codes = _codes(given["passed"], _passed)
    else:
        scores = checked_numbers("score", given["score"])
        codes = np.where(np.isnan(scores), _MISSING, scores >= 1).astype(np.int8)
    missing = np.flatnonzero(codes == _MISSING)
    errors = given.get("error")
    for row in missing.tolist():
        error = None if errors is None or row >= len(errors) else errors[row]
        if error is None or error != error or str(error) == "":
            rule = f"must say how each trial ended, or error what broke it, and row {row} does not"
            raise ArgumentError(by, rule, given[by][row])
    codes[missing] = Outcome.ERRORED
    return codes


def checked_scores(values: Any, outcome: NDArray[np.int8]) -> Floats:
    """Scores in [0, 1], the outcome's own if none is given, NaN for errored trials."""
    own = np.where(outcome == Outcome.ERRORED, np.nan, outcome.astype(np.float64))
    if values is None:
        return own
    given = checked_numbers("score", values)
    if len(given) != len(own):
        raise ArgumentError("score", f"must have {len(own)} rows like outcome", len(given))
    given = np.where(np.isnan(given), own, given)
    bad = (given < 0) | (given > 1)
    if bad.any():
        raise ArgumentError("score", "must lie in [0, 1]", float(given[bad][0]))
    return np.where(outcome == Outcome.ERRORED, np.nan, given)


def checked_numbers(name: str, values: ArrayLike | Sequence[Any]) -> Floats:
    """Numbers, NaN where one is missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _within_reach(name, values.astype(np.float64))
    given: list[Any] = list(values)  # type: ignore[arg-type] # any iterable of numbers and None
    try:
        array = np.array([np.nan if v is None else v for v in given], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None or array.ndim != 1:  # text, a list in a cell, or more than a float can hold
        raise ArgumentError(name, "must be numbers or missing", _first_odd(_filled(given), float))
    return _within_reach(name, array)


def checked_integers(name: str, values: Any) -> NDArray[np.int64]:
    """Whole numbers, none missing; never by way of floats, which hold only 53 bits of them."""
    whole = _exact(values)
    if whole is None:
        rule = "must be whole numbers below 2**63"
        raise ArgumentError(name, rule, _first_odd(values, _whole))
    return whole


def checked_seeds(values: Any) -> NDArray[np.int64] | None:
    """Seeds, NO_SEED where one is missing."""
    if values is None:
        return None
    given = [None if v is None or v != v else v for v in values]
    try:
        whole = [NO_SEED if v is None else _whole(v) for v in given]
    except (TypeError, ValueError, OverflowError):
        rule = "must be whole numbers below 2**63, or missing"
        raise ArgumentError("seed", rule, _first_odd(_filled(given), _whole)) from None
    return np.array(whole, dtype=np.int64)


def checked_weights(values: Any) -> Floats | None:
    """The weight of each trial's task: positive, NaN if none is given."""
    if values is None:
        return None
    weight = checked_numbers("weight", values)
    if (weight <= 0).any():
        raise ArgumentError("weight", "must be above 0, or missing", float(weight[weight <= 0][0]))
    return weight


def checked_shares(name: str, values: Any) -> Floats | None:
    """Numbers from 0 to 1, NaN if none is given."""
    if values is None:
        return None
    shares = checked_numbers(name, values)
    if (bad := (shares < 0) | (shares > 1)).any():
        raise ArgumentError(name, "must lie in [0, 1], or be missing", float(shares[bad][0]))
    return shares


def checked_labels(values: Iterable[Any] | None) -> Categorical | None:
    """Texts, if there is such a column."""
    if values is None:
        return None
    return Categorical.of(None if v is None or v != v else str(v) for v in values)


def checked_word_labels(
    name: str, values: Iterable[Sequence[str] | None] | None
) -> Categorical | None:
    """Tuples of words: a distinct tuple is one label, its words joined by NUL."""
    if values is None:
        return None
    return Categorical.of(_joined(name, words) for words in values)


def is_sampled(factor: str) -> bool:
    """Whether the levels of a factor stand for others like them."""
    return factor.lower() in SAMPLED


def checked_conditions(values: Iterable[Sequence[str] | None] | None) -> Categorical | None:
    """Tuples of words such as "user=terse", each the level of another factor."""
    labels = checked_word_labels("at", values)
    for name in () if labels is None else labels.names:
        pairs = [word.partition("=") for word in name.split("\0")]
        if not all(factor and level for factor, _, level in pairs):
            rule = 'must be lists of factor=level, such as ["user=terse"]'
            raise ArgumentError("at", rule, name.split("\0"))
        if len({factor for factor, _, _ in pairs}) < len(pairs):
            raise ArgumentError("at", "must name each factor once", name.split("\0"))
    return labels


def occurrence(system: Categorical, task: Categorical) -> NDArray[np.int64]:
    """The place of each row among those of its system and task, from 0."""
    key = system.codes.astype(np.int64) * max(len(task.names), 1) + task.codes
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_key) != 0]) if len(key) else key
    lengths = np.diff(np.r_[starts, len(key)])
    occurrences = np.empty(len(key), dtype=np.int64)
    occurrences[order] = np.arange(len(key)) - np.repeat(starts, lengths)
    return occurrences


def _within_reach(name: str, values: Floats) -> Floats:
    beyond = np.abs(values) > LARGEST
    if beyond.any():
        rule = f"must be finite numbers up to {LARGEST:g}, or missing"
        raise ArgumentError(name, rule, float(values[beyond][0]))
    return values


def _exact(values: Any) -> NDArray[np.int64] | None:
    """Whole numbers in 64 bits, bit for bit; None if one is missing, broken or too big."""
    try:
        kind = np.asarray(values)
        if kind.ndim == 1 and kind.dtype.kind in "bi":
            return kind.astype(np.int64)
        return np.array([_whole(value) for value in values], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(value: Any) -> int:
    """One whole number; ValueError, TypeError or OverflowError for anything else."""
    try:
        whole = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):  # 2.0, and "2.0"
        whole = int(value := float(value))
        if whole != value:
            raise ValueError from None
    if abs(whole) >= BEYOND:
        raise OverflowError
    return whole


def _filled(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _first_odd(values: Any, convert: Callable[[Any], Any]) -> Any:
    """The first value that cannot be converted; for a message."""
    for value in values:
        try:
            convert(value)
        except (TypeError, ValueError, OverflowError):
            return value
    return values


def _codes(values: Iterable[Any], code: Callable[[Any], int]) -> NDArray[np.int8]:
    """The code of each value, computed once for all that are equal."""
    given = list(values)
    try:
        code_of = {value: code(value) for value in dict.fromkeys(given)}
    except TypeError:  # a list in a cell
        return np.array([code(value) for value in given], dtype=np.int8)
    return np.array([code_of[value] for value in given], dtype=np.int8)


def _outcome(value: Any) -> int:
    if value is None or value != value:
        return _MISSING
    try:
        return int(Outcome[value.upper()] if isinstance(value, str) else Outcome(value))
    except (KeyError, ValueError, TypeError):
        rule = "must be passed, failed or errored (or 1, 0, 2)"
        raise ArgumentError("outcome", rule, value) from None


def _passed(value: Any) -> int:
    if value is None or value != value:  # NaN
        return _MISSING
    if value not in (0, 1):
        raise ArgumentError("passed", "must be true, false, 1, 0, or missing", value)
    return int(value)


def _joined(name: str, words: Sequence[Any] | None) -> str | None:
    if words is None or len(words) == 0:
        return None
    if isinstance(words, str) or not all(isinstance(w, str) and w and "\0" not in w for w in words):
        raise ArgumentError(name, "must be lists of words, none of them empty", words)
    return "\0".join(words)


def weight_by_traffic(trials: Trials, shares: Mapping[str, float]) -> Trials:
    """The trials with the weights that make each group of tasks count as its share says.

    A group is a tag, a level or a family; every task must be in exactly one of those named. The
    tasks of a group divide its share by their own weights, equally if they have none.

    >>> table = Trials.from_columns(task=["a", "b", "c"], passed=[1, 0, 1],
    ...                             tags=[["easy"], ["easy"], ["hard"]])
    >>> weight_by_traffic(table, {"easy": 0.9, "hard": 0.1}).weight.tolist()
    [0.45, 0.45, 0.1]
    """
    if not isinstance(shares, Mapping):
        raise ArgumentError("shares", "must be shares by group, such as {'easy': 0.9}", shares)
    weights = task_weights(_groups(trials), shares, _own_weights(trials))
    by_code = np.array([weights[name] for name in trials.tasks], dtype=np.float64)
    return replace(trials, weight=by_code[trials.task.codes])


def task_weights(
    groups: Mapping[str, Collection[str]], shares: Mapping[str, float], own: Mapping[str, float]
) -> dict[str, float]:
    """The weight of each task, from the groups it is in, their shares and its own weight.

    >>> task_weights({"a": ["x"], "b": ["x"], "c": ["y"]}, {"x": 3, "y": 1}, {"b": 2})
    {'a': 1.0, 'b': 2.0, 'c': 1.0}
    """
    for name, share in shares.items():
        if not 0 < share < inf:
            raise ArgumentError("shares", f"must be above 0 and finite for {name}", share)
    chosen = {task: _one_of(task, names, shares) for task, names in groups.items()}
    total = dict.fromkeys(shares, 0.0)
    for task, name in chosen.items():
        total[name] += own.get(task, 1.0)
    empty = [name for name, sum_ in total.items() if not sum_]
    if empty:
        known = sorted({name for group in groups.values() for name in group})
        rule = f"must name tags, levels or families of tasks, which are {few(known) or 'none'}"
        raise ArgumentError("shares", rule, empty[0])
    return {task: shares[name] * own.get(task, 1.0) / total[name] for task, name in chosen.items()}


def parse_shares(texts: Iterable[str]) -> dict[str, float]:
    """Shares as the command line states them.

    >>> parse_shares(["refunds=0.7", "search=0.3"])
    {'refunds': 0.7, 'search': 0.3}
    """
    shares: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if name in shares:
            raise ArgumentError("shares", "must name each group only once", text)
        try:
            shares[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise ArgumentError("shares", "must be GROUP=SHARE, such as refunds=0.7", text)
    return shares


def _one_of(task: str, values: Collection[str], shares: Mapping[str, float]) -> str:
    named = [name for name in shares if name in values]
    if len(named) == 1:
        return named[0]
    where = f"is in {' and '.join(named)}" if named else f"is in none (it has {few(values)})"
    if not values:
        where = "has no tag, level or family"
    raise ArgumentError("shares", f"must hold every task once; {task} {where}", list(shares))


def _groups(trials: Trials) -> dict[str, set[str]]:
    """The tags, level and family of each task, over all of its trials."""
    groups: dict[str, set[str]] = {name: set() for name in trials.tasks}
    for labels in (trials.tags, trials.level, trials.family):
        if labels is None:
            continue
        pairs = np.unique(np.column_stack([trials.task.codes, labels.codes]), axis=0)
        for task, code in pairs.tolist():
            if code >= 0:
                groups[trials.tasks[task]].update(labels.names[code].split("\0"))
    return groups


def _own_weights(trials: Trials) -> dict[str, float]:
    if trials.weight is None:
        return {}
    known = ~np.isnan(trials.weight)
    codes, first = np.unique(trials.task.codes[known], return_index=True)
    weights = trials.weight[known][first]
    return {trials.tasks[code]: float(weight) for code, weight in zip(codes, weights, strict=True)}
