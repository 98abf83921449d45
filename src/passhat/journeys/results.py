"""Where results come from: files that any supported tool wrote, or runs of a history store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from passhat import arguments
from passhat.arguments import STORE
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, HistoryError, InputError, ReadError
from passhat.messages import one_of_rule

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import MoreRuns
    from passhat.history import History, Run
    from passhat.history.runs import NamedRun
    from passhat.ingest import ColumnMap, Limits
    from passhat.ingest.tallies import SomeFailures
    from passhat.records import Duplicates, Source, Tally, Transcripts, Trials
    from passhat.records.data_frames import ArrowTable, InterchangeTable

LATEST = "latest"
"""The newest run of a history store, of the suite of this folder."""

COUNTED_IN_STORE = 1_000_000
"""Stored runs with at least this many trials are reduced to counts inside the database."""

_SQLITE = b"SQLite format 3\0"
_ARGUMENT = re.compile(r"`(\w+)[=`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What to read and how to understand it.

    `paths` are files, folders, globs or `-`; a history store, of which `run` is read; or runs of
    `store` by key, tag, branch, commit or `latest`. `names` are what to call the agent of each
    path. `drop_rounds` are rounds to leave out of every task, counted from 1. `shares` says how
    much each tag, level or family of tasks stands for. `on_note` is called with what was left out,
    and with which run was taken if a name fits several. `wording` rewrites notes on arguments
    (`scorer`) for the caller (--scorer).
    """

    paths: tuple[str, ...]
    format: str | None = None
    mapping: ColumnMap | None = None
    duplicates: Duplicates = "error"
    limits: Limits | None = None
    names: tuple[str, ...] = ()
    run: str = LATEST
    store: str | Path = STORE
    drop_rounds: tuple[int, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    on_note: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    wording: Callable[[str], str] | None = field(default=None, repr=False, compare=False)

    def subjects(self, only: Names = ()) -> Trials | list[Tally]:
        """The trials of the named systems (all, if none is named); of huge tables the counts."""
        tallies = self._counts()
        if tallies is None:
            return choose_systems(self.trials(), only)
        chosen = chosen_names(only, [tally.system for tally in tallies])
        return [
            replace(tally, sources=self._worded(tally.sources))
            for tally in tallies
            if tally.system in chosen
        ]

    def _counts(self) -> list[Tally] | None:
        """The counts of one huge table or stored run; None if trials are to be read."""
        from passhat.ingest import count_big

        # counts do not say which round a run was in, nor the tags of a task
        if len(self.names) > 1 or self.drop_rounds or self.shares:
            return None
        if not any(self.is_stored(path) for path in self.paths):
            try:
                return count_big(list(self.paths), **self._how())
            except ReadError as error:
                raise self._with_call(error) from error
        if len(self.paths) > 1:
            return None
        with self.open_stored() as (history, named):
            if named.run.trials < COUNTED_IN_STORE or history.labels(named.run):
                return None
            tallies = history.tallies(self.noted(named).run, features=True)
        if len(self.names) == 1 and len(tallies) == 1:
            return [replace(tallies[0], system=self.names[0])]
        return tallies

    def trials(self) -> Trials:
        """Every trial of all the paths."""
        return self.with_transcripts(wanted=False)[0]

    def with_transcripts(
        self, *, wanted: bool = True, task: str | None = None, most: int | None = None
    ) -> tuple[Trials, Transcripts]:
        """Every trial, and the transcripts if they are `wanted`.

        Of files they are those of one `task`, or of some trials where `most` bytes are less than
        all, as `read_with_transcripts` chooses them.
        """
        trials, transcripts = self.whole(transcripts=wanted, task=task, most=most)
        trials = self.without_rounds(trials)
        if self.shares:
            from passhat.records.trials import weight_by_traffic

            trials = weight_by_traffic(trials, self.shares)
        return trials, transcripts

    def whole(
        self, *, transcripts: bool = False, task: str | None = None, most: int | None = None
    ) -> tuple[Trials, Transcripts]:
        """Every trial of all the paths, with the rounds to drop and without shares."""
        from passhat.records import Trials
        from passhat.records.transcript import CleanTexts

        parts = [part.read(transcripts=transcripts, task=task, most=most) for part in self._parts()]
        if len(parts) == 1:
            return parts[0]
        texts = CleanTexts.joined(own for _, own in parts)
        check_one_score(*(trials for trials, _ in parts))
        return Trials.concat([trials for trials, _ in parts], duplicates=self.duplicates), texts

    def counts_with_failures(self) -> tuple[list[Tally], SomeFailures] | None:
        """Counts of one huge dataset or stored run, and what was said in some of its failures.

        None if the trials are few enough to be read, or a table has its transcripts in its rows.
        """
        from passhat.ingest.tallies import SomeFailures, failures_of_dataset

        if self.names or (tallies := self._counts()) is None:
            return None
        if not self.is_stored(self.paths[0]):
            some = failures_of_dataset(self.paths[0])
            return None if some is None else (tallies, some)
        from passhat.history.queries import failures_of_run, first_trial

        with self.open_stored() as (history, named):
            first, texts = first_trial(history, named.run), failures_of_run(history, named.run)
        return tallies, SomeFailures(transcripts=texts, first_trial=first)

    def each(self) -> list[Results]:
        """Results for each path alone, with its own name."""
        names = self._names_by_path()
        return [
            replace(self, paths=(path,), names=(name,) if name else ())
            for path, name in zip(self.paths, names, strict=True)
        ]

    def read(
        self, *, transcripts: bool, task: str | None = None, most: int | None = None
    ) -> tuple[Trials, Transcripts]:
        """One store, one run, or files that are read together."""
        if self.is_stored(self.paths[0]):
            return self._stored(transcripts=transcripts)
        from passhat.ingest import read_trials, read_with_transcripts

        how = {**self._how(), "limits": self.limits}
        try:
            if transcripts:
                trials, texts = read_with_transcripts(list(self.paths), **how, task=task, most=most)
            else:
                trials, texts = read_trials(list(self.paths), **how), {}
            return replace(trials, sources=self._worded(trials.sources)), texts
        except ReadError as error:
            raise self._neither_file_nor_run(self._with_call(error)) from error

    def _with_call(self, error: ReadError) -> ReadError:
        """The error, in Python with the call that takes the arguments it names."""
        from passhat.ingest import ColumnMap

        known = {field.name for field in fields(ColumnMap)}
        named = [name for name in _ARGUMENT.findall(str(error)) if name in known]
        if self.wording is not None or not named:
            return error
        path = self.paths[0] if len(self.paths) == 1 else list(self.paths)
        call = f"passhat.read_trials({path!r}, {named[0]}=...)"
        return type(error)(f"{str(error).rstrip('.')}. To say so: {call}")

    def _worded(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """A note on each source, in the words of the caller."""
        if (word := self.wording) is None:
            return sources
        return tuple(
            replace(
                source,
                notes=tuple(map(word, source.notes)),
                read_as=tuple((part, word(words)) for part, words in source.read_as),
            )
            for source in sources
        )

    def _neither_file_nor_run(self, error: ReadError) -> InputError:
        """The error for a word that may have been meant as a run; else the error as it is."""
        name = self.paths[0]
        missing = not is_there(name) and not is_pattern(name) and name != "-"
        if len(self.paths) > 1 or not missing or not store_is_there(self.store):
            return error
        with open_store(self.store) as history:
            if "/" in name or Path(name).suffix:
                known = f"{history.name} has no run, tag or branch of that name"
                return ReadError(f"{str(error).rstrip('.')}, and {known}")
            from passhat.history.runs import named_run

            try:
                named_run(history, name)
            except HistoryError as unknown:
                return unknown
        return error

    def is_stored(self, path: str) -> bool:
        """Whether a path is a history store, or names a run of one."""
        return is_store(path) or self.names_a_run(path)

    def names_a_run(self, name: str) -> bool:
        """Whether it is a run of the store; a file of that name comes first, a folder does not."""
        if name == "-" or is_pattern(name) or (is_there(name) and not Path(name).is_dir()):
            return False
        if not store_is_there(self.store) and name != LATEST:
            return False  # for LATEST, opening the store says that there is none
        from passhat.history.runs import knows

        with open_store(self.store) as history:
            return knows(history, name)

    def without_rounds(self, trials: Trials, *, baseline: bool = False) -> Trials:
        """The trials without the rounds to drop.

        A `baseline` may have fewer rounds: it is kept whole if it has none of those to drop.
        """
        if not self.drop_rounds:
            return trials
        from passhat.analysis.reports.dependence import count_rounds, drop_rounds, dropped_note

        if baseline and count_rounds(trials) < min(self.drop_rounds):
            return trials
        whose = " of the baseline" if baseline else ""
        kept = drop_rounds(trials, self.drop_rounds, whose=whose)
        if self.on_note is not None:
            self.on_note(f"{'in the baseline, ' if baseline else ''}{dropped_note(kept)}.")
        return kept

    def _parts(self) -> Iterator[Results]:
        """What can be read together: files under one name; each stored run is read alone."""
        if len(self.names) > 1:
            self._names_by_path()  # refuses a wrong number of names
        several = len(self.names) > 1 or any(self.is_stored(path) for path in self.paths)
        yield from self.each() if several and len(self.paths) > 1 else [self]

    def place_of_run(self) -> tuple[str | Path, str]:
        """The store that the first path is or names a run of, and what it calls the run."""
        path = self.paths[0]
        return (path, self.run) if is_store(path) else (self.store, path)

    @contextmanager
    def open_stored(self) -> Iterator[tuple[History, NamedRun]]:
        """The store that the path is or names a run of, and that run."""
        from passhat.journeys.run_store import named_run_here

        store, run = self.place_of_run()
        with open_store(store) as history:
            yield history, named_run_here(history, run)

    def _stored(self, *, transcripts: bool) -> tuple[Trials, Transcripts]:
        from passhat.history.queries import all_transcripts

        with self.open_stored() as (history, named):
            trials = history.trials(self.noted(named).run)
            texts = all_transcripts(history, named.run) if transcripts else {}
        if len(self.names) == 1 and len(trials.systems) == 1:
            return renamed(trials, self.names[0]), renamed_transcripts(texts, self.names[0])
        return trials, texts

    def named_run(self) -> NamedRun | None:
        """The one stored run that these results are; None for files, and for several runs."""
        if len(self.paths) != 1 or not self.names_a_run(self.paths[0]):
            return None
        with self.open_stored() as (_, named):
            return named

    def asked_streak(self) -> tuple[int | None, float | None]:
        """The longest streak that the gates of a stored run ask about: its report speaks of it."""
        named = self.named_run()
        gates = None if named is None else named.run.options.get("gates")
        if not isinstance(gates, list):
            return None, None
        from passhat.analysis.gates.gate import asked_streak, parse_gate

        return asked_streak(parse_gate(str(gate)) for gate in gates)

    def bars(
        self, given: Mapping[str, float] | float | None, subjects: Trials | Sequence[Tally]
    ) -> Mapping[str, float] | float | None:
        """The bars that are `given`, and those of its suite where these are a stored run."""
        if len(self.paths) != 1 or not self.is_stored(self.paths[0]):
            return given
        with self.open_stored() as (_, named):
            return bars_of_run(named.run, subjects, given)

    def more_runs(self) -> MoreRuns | None:
        """How to add runs to these results; None unless they are a run that `passhat run` made."""
        from passhat.journeys.run_store import more_runs

        named = self.named_run()
        return None if named is None else more_runs(named.run, self.paths[0], str(self.store))

    def noted(self, named: NamedRun) -> NamedRun:
        """The run that was found, if it has trials, after a note on why it was taken."""
        if not named.run.trials and named.run.status == "running":
            way = "ask again when one has ended"
            raise HistoryError(f"run {named.run.key} is in progress and has no trials yet; {way}")
        if not named.run.trials:
            from passhat.history.database import store_words

            key, store = named.run.key, store_words(self.place_of_run()[0])
            rerun = f"`passhat run --resume {key}{store}` goes on with it"
            raise HistoryError(f"run {key} has no trials: none had ended when it stopped; {rerun}")
        if self.on_note is not None:
            from passhat.journeys.run_store import unfinished_note

            for note in (named.note, unfinished_note(named.run, self.place_of_run()[0])):
                if note:
                    self.on_note(note)
        return named

    def _names_by_path(self) -> Sequence[str | None]:
        if len(self.names) <= 1:
            return [*self.names, *[None] * len(self.paths)][:1] * len(self.paths)
        if len(self.names) != len(self.paths):
            several = f", or once for each of the {len(self.paths)} files and runs"
            rule = f"must be given once{several if len(self.paths) > 1 else ' for one file or run'}"
            raise ArgumentError("names", rule, self.names)
        return self.names

    def _how(self) -> dict[str, Any]:
        from passhat.ingest import ColumnMap

        mapping = self.mapping or ColumnMap()
        if self.names:
            mapping = replace(mapping, name=self.names[0])
        return {"format": self.format, "mapping": mapping, "duplicates": self.duplicates}


Place = str | os.PathLike[str]
ResultsLike: TypeAlias = (
    "Results | Trials | Sequence[Tally] | Place | Sequence[Place] | ArrowTable | InterchangeTable"
)
"""What journeys read: paths of results, names of runs, a data frame, trials, counts, or Results."""

Names: TypeAlias = str | Collection[str] | None
"""One name, several, or none."""


def bars_of_run(
    run: Run, subjects: Trials | Sequence[Tally], given: Mapping[str, float] | float | None = None
) -> Mapping[str, float] | float | None:
    """The bars of the suite that a stored run is of, except where others are given."""
    stored = run.options.get("bars")
    return bars_beside(given, stored if isinstance(stored, dict) else {}, subjects)


def bars_beside(
    given: Mapping[str, float] | float | None,
    of_suite: Mapping[str, float],
    subjects: Trials | Sequence[Tally],
) -> Mapping[str, float] | float | None:
    """The bars of a suite for tasks that were run, except where others are given."""
    if given is not None and (not isinstance(given, Mapping) or "*" in given):
        return given
    tables = subjects if isinstance(subjects, Sequence) else [subjects]
    ran = {task for table in tables for task in table.tasks}
    own = {task: bar for task, bar in of_suite.items() if task in ran}
    return {**own, **(given or {})} or None


def check_one_score(*parts: Trials) -> None:
    """Refuse results that were read by different scores where one would do for all."""
    from passhat.records.trial import read_by_different_scores

    if fault := read_by_different_scores(source for part in parts for source in part.sources):
        raise InputError(fault)


def trials_or_results(given: ResultsLike, argument: str = "results") -> Trials | Results:
    """Trials, those of a data frame, or what is to be read: a path, several, or Results."""
    from passhat.records import Trials
    from passhat.records.trials import framed_trials

    given = framed_trials(given)
    if isinstance(given, Results | Trials):
        return given
    paths = [given] if isinstance(given, str | os.PathLike) else given
    if isinstance(paths, Collection) and paths:
        names = [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
        if len(names) == len(paths) and all(isinstance(name, str) for name in names):
            return Results(paths=tuple(names))
    raise ArgumentError(argument, "must be trials, a data frame, paths or names of runs", given)


def subjects_of(given: ResultsLike, only: Names = ()) -> Trials | list[Tally]:
    """The trials of the named systems, from results or from trials that are there already."""
    from passhat.records import Tally

    if isinstance(given, Sequence) and given and isinstance(given[0], Tally):
        tallies = [tally for tally in given if isinstance(tally, Tally)]
        chosen = chosen_names(only, [tally.system for tally in tallies])
        return [tally for tally in tallies if tally.system in chosen]
    read = trials_or_results(given)
    return read.subjects(only) if isinstance(read, Results) else choose_systems(read, only)


def trials_of(given: ResultsLike, only: Names = (), argument: str = "results") -> Trials:
    """The same as single trials, however big the table is."""
    read = trials_or_results(given, argument)
    return choose_systems(read.trials() if isinstance(read, Results) else read, only)


def choose_systems(trials: Trials, only: Names) -> Trials:
    """The trials of the named systems; all of them if none is named."""
    if not only:
        return trials
    import numpy as np

    codes = [trials.system.code(name) for name in chosen_names(only, trials.systems)]
    return trials.take(np.isin(trials.system.codes, codes))


def chosen_names(only: Names, systems: Sequence[str]) -> tuple[str, ...]:
    """The systems that `only` names, each once; all of them if it names none."""
    chosen = arguments.names("only", only)
    for name in chosen:
        if name not in systems:
            raise ArgumentError("only", one_of_rule(name, systems), name)
    return tuple(dict.fromkeys(chosen or systems))


def renamed(trials: Trials, name: str) -> Trials:
    """The trials of one agent under another name."""
    from passhat.records import Categorical

    return replace(trials, system=Categorical((name,), trials.system.codes))


def renamed_transcripts(transcripts: Transcripts, name: str) -> Transcripts:
    """The transcripts of one agent under another name."""
    return {(name, task, trial): text for (_, task, trial), text in transcripts.items()}


def is_store(path: str) -> bool:
    """Whether it is a history store: a SQLite file, or the address of a PostgreSQL database."""
    if path.startswith("postgres"):
        from passhat.history.database import is_postgres

        if is_postgres(path):
            return True
    if not is_there(path) or not (file := Path(path)).is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_SQLITE)) == _SQLITE


def open_store(store: str | Path) -> History:
    """A history store, to be read."""
    from passhat.history import History

    return History.open(store, read_only=True)


def store_is_there(store: str | Path) -> bool:
    """Whether there is such a store; one on a server is checked when it is opened."""
    from passhat.history.database import is_postgres

    return is_postgres(store) or is_there(str(store))


def is_there(word: str) -> bool:
    """Whether a file or folder has that name."""
    return bool(word) and os.path.exists(word)  # noqa: PTH110 # Path raises for a long word


UNDER_CONDITIONS = re.compile(r" \[[^\[\]]+=[^\[\]]+\]$")
"""How the name of a task ends that is tried under a condition."""


def is_pattern(word: str) -> bool:
    """Whether it is a glob, and not the name of a task under a condition.

    >>> is_pattern("logs/*.json"), is_pattern("refund-late [user=terse]")
    (True, False)
    """
    return any(mark in UNDER_CONDITIONS.sub("", word) for mark in "*?[")
