"""Where a run is stored while it runs, how it is resumed, and how shards of it are put together."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from passhat.dataclass import dataclass, replace
from passhat.errors import (
    ArgumentError,
    HistoryError,
    InputError,
    LostRun,
    RunInterrupted,
    StoreError,
)
from passhat.messages import listed, plural, short

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Verdict, Verdicts
    from passhat.analysis.gates.run_answer import MoreRuns
    from passhat.history import History, Run, RunJournal
    from passhat.history.leases import Lease
    from passhat.history.runs import NamedRun
    from passhat.journeys.run_request import RunRequest
    from passhat.records import Suite, Trial, Trials
    from passhat.records.trial import TrialKey
    from passhat.runner import Journal, RunResult
    from passhat.runner.schedule import Shard

UNFINISHED = ("running", "stopped", "interrupted", "budget", "errors", "changed", "failed")
"""The states of a run that can be resumed, unless its process is still alive."""

STORE_WAIT_SECONDS = 120.0
"""How long a driver, and a worker that ends when idle, wait for a store that is away: longer than
PostgreSQL takes to start again."""


@dataclass(slots=True, kw_only=True)
class StoredRun:
    """A run under way in a history store, which this process holds the lease of."""

    history: History
    run: Run
    lease: Lease
    journal: RunJournal

    @property
    def store(self) -> str:
        """The store, without its password."""
        return self.history.name

    @property
    def resume_command(self) -> str:
        """The command that resumes this run."""
        return _resume_command(self.run.key, self.store)

    @property
    def results(self) -> str:
        """What to type after a command so that it reads this run."""
        from passhat.history.database import store_words

        return f"{self.run.key}{store_words(self.store)}"

    @property
    def more_runs(self) -> MoreRuns | None:
        """How to add runs to this run; None if that is not possible."""
        return more_runs(self.run, self.run.key, self.store)

    def baseline(self, name: str, arm: Mapping[str, str] | None = None) -> tuple[History, Run]:
        """The earlier run that a gate compares with: by tag, branch, commit or key.

        With an `arm`, it is the newest one in which the agent of that name was like this.
        """
        return self.history, find_baseline(self.history, name, arm, self.run.suite, self.run)

    def transcripts(self, trials: Sequence[Trial]) -> dict[TrialKey, str]:
        """The transcripts of these trials, as far as there are any."""
        stored = {trial.key: self.history.transcript(self.run, *trial.key) for trial in trials}
        return {key: text for key, text in stored.items() if text}

    def store_notes(self, notes: Sequence[str]) -> None:
        """Store notes that every later report of the run repeats."""
        if notes:
            self.history.keep_notes(self.run, notes)

    def close(self, result: RunResult, decided: Verdicts | None) -> None:
        """Store how the run ended, and what the gates `decided` that could end it."""
        status = "finished" if result.ending == "settled" else result.ending
        changes: dict[str, Any] = {}
        if decided is not None:
            gates = [decided_gate(verdict) for verdict in decided]
            changes = {"decided": {"word": decided.status, "gates": gates}}
        self.run = self.history.finish_run(self.run, status, changes)


@dataclass(slots=True, kw_only=True)
class UnstoredRun:
    """A run under way in memory alone: it has no key, no past, and cannot be resumed."""

    journal: Journal
    run: None = None
    store: None = None
    resume_command: None = None
    results: None = None
    more_runs: None = None

    def baseline(self, name: str, arm: Mapping[str, str] | None = None) -> NoReturn:
        """Refuse a gate that compares with an earlier run."""
        refuse_without_store(name)

    def transcripts(self, trials: Sequence[Trial]) -> dict[TrialKey, str]:
        """The transcripts of these trials, as far as there are any."""
        wanted = {trial.key for trial in trials}
        ended = {entry.trial.key: entry.transcript for entry in self.journal.finished()}
        return {key: text for key, text in ended.items() if key in wanted and text}

    def store_notes(self, notes: Sequence[str]) -> None:
        """Nothing is stored."""

    def close(self, result: RunResult, decided: Verdicts | None) -> None:
        """Nothing is stored."""


_DECIDING = ("require", "tags", "at", "scope", "indifference", "alpha", "beta", "design")
DECIDED = (
    *("sentence", "alpha", "beta", "runs", "max_runs", "seen", "method", "errors"),
    *("boundaries", "evidence"),
)


def decided_gate(verdict: Verdict) -> dict[str, Any]:
    """What a gate decided that could end a run, as it is stored: its terms and its verdict."""
    terms = {name: getattr(verdict.gate, name) for name in _DECIDING}
    decided = {name: getattr(verdict, name) for name in DECIDED}
    return {"terms": terms, "system": verdict.system, "word": verdict.status, **decided}


OpenRun = StoredRun | UnstoredRun

Arms = Mapping[str, Mapping[str, str]]
"""What the trials of agents depend on, by the agent: see `runner.preflight.arm_of`."""


def refuse_without_store(name: str) -> NoReturn:
    """Refuse a gate that compares with an earlier run where none is stored."""
    raise HistoryError(f"no_worse_than {name}: a run without a store knows no earlier runs")


def find_baseline(
    history: History, name: str, arm: Mapping[str, str] | None, suite: str, judged: Run | None
) -> Run:
    """The run that a gate on a run of `suite` compares with; `judged` is None before it begins."""
    from passhat.history.runs import named_baseline

    if arm is not None:
        return _run_of_arm(history, suite, judged, name, arm)
    # The newest run of a branch may be the judged one: the baseline is the one before it.
    return named_baseline(history, name, judged=judged, suite=suite).run


def _run_of_arm(
    history: History, suite: str, judged: Run | None, name: str, arm: Mapping[str, str]
) -> Run:
    """The newest finished run of a suite in which an agent was as it is now."""
    changed = ""
    for run in history.runs(suite=suite):
        stored = run.options.get("arms", {}).get(name)
        own = judged is not None and run.id == judged.id
        if stored is None or own or run.status != "finished":
            continue
        differs = [
            f"its {word} was {stored.get(word) or 'none'} and is {now or 'none'}"
            if word in ("model", "agent")
            else f"its {word} {'has' if word == 'program' else 'have'} changed"
            for word, now in arm.items()
            if _known(stored, word, now) != now
        ]
        if not differs:
            return run
        changed = changed or f"its trials in run {run.key} cannot stand in for it: {differs[0]}"
    raise HistoryError(
        f"a gate compares with {name}, which is not run this time, and "
        f"{changed or f'no finished run in {history.name} has it'}; run both agents"
    )


def arms_of(suite: Suite, run: Run | None = None, *, retries_errors: bool = False) -> Arms:
    """What the trials of each agent depend on; where it is not as a run began with, both are named.

    With errors tried again, a run of which nothing but errors is stored is as good as new.
    """
    from passhat.runner.preflight import arm_of

    earlier: Arms = {}
    if run is not None and run.trials > (run.errored if retries_errors else 0):
        earlier = run.options.get("arms", {})
    arms = {}
    for name in suite.systems:
        arms[name] = arm_of(suite, name)
        for word, now in arms[name].items():
            before = _known(earlier.get(name, {}), word, now)
            is_same = before.rpartition(THEN)[2] == now
            arms[name][word] = before if is_same else f"{before}{THEN}{now}"
    return arms


THEN = ", then "
"""Between what an agent depended on when a run began, and when it was resumed."""


def _known(arm: Mapping[str, str], word: str, now: str) -> str:
    """What an agent depended on; a program of which nothing is known counts as it is now."""
    return arm.get(word, now) or ("" if word in ("model", "agent") else now)


def changed_arm(run: Run, arms: Arms) -> str | None:
    """What is not as when a run last went on: trials of two agents or two measures would be one."""
    stored: Arms = run.options.get("arms", {})
    for name, arm in arms.items():
        if words := [w for w in arm if THEN in arm[w] and arm[w] != stored[name].get(w)]:
            return _changed(name, words[0])
    return None


def changed_agents(run: Run | None) -> Iterator[str]:
    """A sentence for each agent that was another one when its run was resumed."""
    for name, arm in ({} if run is None else run.options.get("arms", {})).items():
        if words := [word for word, value in arm.items() if THEN in value]:
            yield (
                f"{_changed(name, words[0])} since the run began: trials from before and after are "
                "mixed; a new run tells them apart"
            )


def _changed(name: str, word: str) -> str:
    have = "has" if word in ("program", "model", "agent") else "have"
    return f"the {word} of {short(name)} {have} changed"


@contextmanager
def open_run(
    suite: Suite,
    request: RunRequest,
    *,
    store: str | Path | None,
    resumed: str | None = None,
    arms: Arms | None = None,
    replays: bool = False,
    at_most: int | None = None,
) -> Iterator[OpenRun]:
    """A new run, or the stored run with the key `resumed`, open until it ends.

    `arms` is what its trials depend on, where that is known already. `replays` says that all its
    answers come from a recording. `at_most` is the largest number of trials of a run that its gates
    may end sooner.
    """
    if store is None:
        from passhat.runner import MemoryJournal

        yield UnstoredRun(journal=MemoryJournal())
        return
    from passhat.history import History, RunJournal, read_checkout
    from passhat.history.leases import hold
    from passhat.runner.preflight import expected_of

    planned = {**_planned(suite, request, at_most), "replays": replays}
    planned["arms"] = arms_of(suite) if arms is None else arms
    with History.open(store) as history:
        if resumed is not None:
            run = history.find_run(resumed)
        else:
            run = history.start_run(
                suite.name,
                suite_hash=suite.digest,
                seed=suite.seed,
                checkout=read_checkout(suite.directory),
                options={**request.to_json(), **planned},
            )
        with hold(history, run) as lease:
            if resumed is not None:
                looks = {"runs": request.runs, "judged_at": list(request.judged_at)}
                run = history.reopen_run(run, {**looks, **planned})
            expected = json.dumps(expected_of(suite)).encode()
            history.keep(run, EXPECTED, run.key, expected)
            journal = RunJournal(history, run, lease)
            try:
                yield StoredRun(history=history, run=run, lease=lease, journal=journal)
            except LostRun:
                raise  # another process has the run now, and records how it ends
            except BaseException as error:
                command = _resume_command(run.key, history.name)
                try:
                    if _is_worth_keeping(journal, error):
                        signalled = isinstance(error, RunInterrupted | KeyboardInterrupt)
                        if not signalled and request.suite and not isinstance(error, InputError):
                            stored = history.find_run(run.key).trials
                            kept = f"your {plural(stored, 'trial is', 'trials are')} stored; "
                            error.add_note(f"{kept * bool(stored)}resume with: {command}")
                        history.finish_run(run, "interrupted" if signalled else "failed")
                    else:
                        history.delete(run)
                except (StoreError, HistoryError):  # the first error is the one to report
                    if request.suite:
                        error.add_note(f"trials that ended are stored; resume with: {command}")
                raise
            finally:
                journal.close()


EXPECTED = "expected"
"""The kind of answer that is kept of what the tasks of a run expect."""


def changed_tasks(history: History, earlier: Run, later: Run) -> frozenset[str]:
    """The tasks that expect something else in one run than in another: no agent moved there."""
    arms = [run.options.get("arms", {}) for run in (earlier, later)]
    both = arms[0].keys() & arms[1].keys()
    if (
        earlier.id == later.id
        or not all(arms)
        or (both and all(arms[0][name].get("tasks") == arms[1][name].get("tasks") for name in both))
    ):
        return frozenset()
    kept = [history.kept(run, EXPECTED, run.key) for run in (earlier, later)]
    before, after = ({} if body is None else json.loads(body) for body in kept)
    shared = before.keys() & after.keys()
    return frozenset(task for task in shared if not {*before[task]} & {*after[task]})


def without_changed(
    trials: Trials,
    history: History,
    earlier: Run,
    later: Run | None,
    on_note: Callable[[str], None] | None = None,
) -> Trials:
    """The trials of a run at the tasks that expect the same in a later one."""
    changed = frozenset() if later is None else changed_tasks(history, earlier, later)
    if not changed:
        return trials
    import numpy as np

    kept = trials.take(np.array([task not in changed for task in trials.task.texts()]))
    if not len(kept):
        raise HistoryError(
            f"what every task expects was changed since run {earlier.key}: its trials are no "
            "measure of these; compare with a run that was made after that"
        )
    if on_note is not None:
        on_note(
            f"left out, as what is expected was changed since run {earlier.key}: "
            f"{listed(sorted(changed), 5)}"
        )
    return kept


def _is_worth_keeping(journal: RunJournal, error: BaseException) -> bool:
    """Whether there is something to resume; a refused request has no trials."""
    if isinstance(error, InputError):
        return bool(journal.finished() or journal.answered())
    return bool(journal.launched())


def _planned(suite: Suite, request: RunRequest, at_most: int | None) -> dict[str, Any]:
    """What those who watch or judge the run need: how many trials, which gates and bars."""
    written = [{"require": gate} if isinstance(gate, str) else gate for gate in suite.gates]
    terms = [
        {name: gate[name] for name in ("require", "tags", "system") if gate.get(name)}
        for gate in [*written, *({"require": demand} for demand in request.require)]
    ]
    return {
        # None takes the place of what a run that is resumed was begun with.
        "planned": suite.trials if at_most is None else None,
        "at_most": at_most,
        "gates": list(dict.fromkeys(str(gate.get("require", "")) for gate in terms)),
        "gate_terms": [gate for gate in terms if len(gate) > 1],
        "bars": suite.bars,
        "seed_count": max(1, len(suite.seeds)),
    }


def run_to_resume(store: str | Path, reference: str | None, *, runs: int | None = None) -> NamedRun:
    """The run to resume: the one that is named, or else the newest unfinished one.

    With `runs`, which adds to finished runs too, it is the newest that `passhat run` made.
    """
    from passhat.history import History
    from passhat.history.runs import NamedRun

    with History.open(store, read_only=True) as history:
        if reference is not None:
            return named_run_here(history, reference)
        every = history.runs()
    for run in every:
        if (run.status in UNFINISHED or runs is not None) and run.options.get("suite"):
            return NamedRun(run=run)
    if other := next((run.key for run in every if run.status in UNFINISHED), None):
        raise not_resumable(store, other)
    raise HistoryError(f"{store}: every run is finished; `passhat run` starts a new one")


def named_run_here(history: History, reference: str) -> NamedRun:
    """The run of that name; `latest` is the newest run of the suite of this folder.

    A tag that several suites have is that of the suite of this folder.

    Where the newest run of all is not of a suite file that is here, others share the store, and
    their run is not the one that somebody here means. A run without a suite file (of `repeat`, or
    added from a log), and a folder without a suite or without runs of it, leave it the newest.
    """
    from passhat.history.queries import has_several_suites, run_beside
    from passhat.history.runs import LATEST, NamedRun, named_run, tagged_run

    named = named_run(history, reference)
    made_from = named.run.options.get("suite")
    if reference in named.run.tags and named.note:
        with suppress(InputError):
            own = tagged_run(history, reference, suite_name())
            return named if own is None else NamedRun(run=own)
    if reference != LATEST or not made_from:
        return named
    if beside := run_beside(history, named.run):
        beside += ", which had not ended when it began, is of the same suite: name the one you mean"
        named = replace(named, note=f"latest is run {named.run.key}; run {beside}")
    if not has_several_suites(history):
        return named
    try:
        if Path(made_from).is_file() and suite_name(made_from) == named.run.suite:
            return named
        suite = suite_name()
    except InputError:  # no suite is here, or none that can be read
        return named
    newest_here = history.runs(suite=suite, limit=1)
    if not newest_here or newest_here[0].id == named.run.id:
        return named
    key, newest = newest_here[0].key, named.run
    which = f"latest is run {key} of {suite}, the suite here"
    note = f"{which}; the newest of all, {newest.key}, is of {newest.suite}"
    return NamedRun(run=newest_here[0], note=note)


def suite_name(path: str | Path | None = None) -> str:
    """The name of the suite in a file, or in this folder."""
    from passhat.suite import find_suite, load_suite

    return load_suite(path or find_suite(Path()), models_asked=False).name


def unfinished_note(run: Run, store: str | Path) -> str | None:
    """That not all trials of a run that `passhat run` made have ended, and how to go on with it."""
    if run.status not in UNFINISHED or not run.options.get("suite"):
        return None
    planned = run.options.get("planned")
    so_far = f"{run.trials:,} of {planned:,} trials" if planned else plural(run.trials, "trial")
    if run.status == "running":
        return f"run {run.key} is still running: {so_far} so far"
    way = f"`{_resume_command(run.key, str(store))}` goes on with it"
    return f"run {run.key} is unfinished ({so_far}): {way}"


def not_resumable(store: str | Path, run: str) -> HistoryError:
    """The error of a stored run that has no suite: of `passhat repeat`, or added from a log."""
    return HistoryError(
        f"{store}: run {run} was not made by `passhat run` and cannot be resumed; "
        "start its command again"
    )


def refuse_other_suite(store: str | Path, run: Run, suite: Suite) -> None:
    """Refuse to resume a run with a suite that is not its own, however much of that has changed.

    The file is looked up from the folder that the command is typed in, and stores are shared: the
    same path may be the suite of somebody else.
    """
    from passhat.history import History
    from passhat.history.queries import pairs_with_trials

    if run.suite != suite.name:
        raise HistoryError(
            f"run {run.key} is of the suite {run.suite}, and {suite.path} here is {suite.name}: "
            f"resume it in the folder of {run.suite}, or start a run of {suite.name}"
        )
    known = {(pairing.system.name, pairing.task.name) for pairing in suite.pairings}
    with History.open(store, read_only=True) as history:
        gone = sorted(pairs_with_trials(history, run) - known)
    if gone:
        agent, task = gone[0]
        raise HistoryError(
            f"run {run.key} has trials of {agent} at {task}, which {suite.path} has no longer"
            f"{f', and of {len(gone) - 1} more' * (len(gone) > 1)}: put them back to resume it, or "
            "start a new run"
        )


def resume_newest(runs: Sequence[Run], store: str) -> str | None:
    """The command that resumes the first of these runs that ended early."""
    ended = (run for run in runs if run.status in UNFINISHED and run.status != "running")
    newest = next((run for run in ended if run.options.get("suite")), None)
    return None if newest is None else _resume_command(newest.key, store)


def more_runs(run: Run, reference: str, store: str) -> MoreRuns | None:
    """How to add runs to a stored run; the command calls the run `reference`.

    None for runs that `passhat run` did not make, for shards, and for replays, which have no more
    runs than were recorded.
    """
    from passhat.analysis.gates.run_answer import MoreRuns

    options = run.options
    if not options.get("suite") or options.get("shard") or options.get("replays"):
        return None
    return MoreRuns(command=_resume_command(reference, store), seeds=options.get("seed_count", 1))


def _resume_command(reference: str, store: str) -> str:
    from passhat.history.database import store_words

    return f"passhat run --resume {shlex.quote(reference)}{store_words(store)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRun:
    """The newest run of the same suite with the same request, finished or not, if there is one.

    `arms` is what its trials depend on now. `passed_over` names a newer run of the suite that is
    unfinished and is not this one, and why; where there is no run, it says so.
    """

    run: Run | None = None
    arms: Arms | None = None
    passed_over: str | None = None


def same_run(store: str | Path, suite: Suite, request: RunRequest) -> SameRun:
    """The run that this request would continue."""
    from passhat.history import History
    from passhat.history.database import NoHistoryYet
    from passhat.journeys.run_request import RunRequest

    passed_over = None
    with suppress(NoHistoryYet), History.open(store, read_only=True) as history:
        for run in history.runs(suite=suite.name):
            same_suite = run.suite_hash == suite.digest
            made_here = same_suite and run.options.get("suite")
            why = "it has other options" if same_suite else "its suite file was another"
            is_same = made_here and RunRequest.from_json(run.options).identity == request.identity
            if is_same:
                arms = arms_of(suite, run)
                if (changed := changed_arm(run, arms)) is None:
                    return SameRun(run=run, arms=arms, passed_over=passed_over)
                why = changed
            if passed_over is None and run.status != "running":
                note = unfinished_note(run, store)
                passed_over = f"{note}; it is not continued now: {why}" if note else None
            if is_same:
                break
    nothing = "no stored run of this suite has these options: nothing is resumed, a new run begins"
    return SameRun(passed_over=passed_over or nothing)


# Shards: parts of one fixed plan that run anywhere, without a server, and are put together.


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The run that shards were put together in, and the shards that are missing."""

    run: Run
    missing: tuple[int, ...]


def read_shard(text: str | None) -> Shard | None:
    """`3/10` is the third of ten parts.

    >>> read_shard("3/10")
    Shard(number=3, of=10)
    """
    if text is None:
        return None
    from passhat.runner.schedule import Shard

    part = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if part is None or not 1 <= int(part[1]) <= int(part[2]):
        raise ArgumentError("shard", "must be a part such as 3/10", text)
    return Shard(int(part[1]), int(part[2]))


def refuse_sequential_shard(request: RunRequest) -> None:
    """A gate that decides as evidence comes in cannot be split: no part sees all of it."""
    if read_shard(request.shard) is not None and request.until_settled:
        raise ArgumentError(
            "shard", "cannot go with `until_settled`: each shard would stop on its own evidence",
            request.shard,
        )  # fmt: skip


def merge_shards(stores: Sequence[str | Path], into: str | Path) -> Merged:
    """Put the newest run of each store, all shards of one run, together as one run in `into`.

    Shards of different suites, seeds or requests are refused, and so is a trial that two of them
    have. The trials come in the order of the whole plan, so that gates see the same evidence.
    """
    from passhat.history import History
    from passhat.history.artefacts import copy_artefacts, each_artefact
    from passhat.history.queries import all_transcripts

    parts: list[tuple[Run, list[Trial], dict[Any, str]]] = []
    for store in stores:
        with History.open(store, read_only=True) as history:
            run = next((run for run in history.runs() if run.options.get("shard")), None)
            if run is None:
                raise HistoryError(f"{store}: holds no shard of a run")
            parts.append((run, list(history.trials(run)), dict(all_transcripts(history, run))))
    first = parts[0][0]
    for run, _, _ in parts:
        if _plan(run) != _plan(first):
            raise HistoryError(
                f"runs {first.key} and {run.key} are shards of different runs: the suite, the seed "
                "or what was asked for differs"
            )
    every = (trial for _, own, _ in parts for trial in own)
    # As one process would have run them: first every pairing once, then every one again.
    trials = sorted(every, key=lambda trial: (trial.trial, trial.system, trial.task))
    with History.open(into) as history:
        options = {**first.options, "shard": None}
        run = history.start_run(
            first.suite,
            suite_hash=first.suite_hash,
            seed=first.seed,
            checkout=first.checkout,
            options=options,
            started=min(part.started for part, _, _ in parts),
        )
        try:
            history.add_trials(run, trials)
        except HistoryError:
            history.delete(run)
            raise HistoryError("two of these shards have the same trial: name each once") from None
        for _, _, transcripts in parts:
            history.add_transcripts(run, transcripts)
        for store, (part, _, _) in zip(stores, parts, strict=True):
            with History.open(store, read_only=True) as shard:
                copy_artefacts(
                    history.database,
                    run,
                    each_artefact(shard.database, part),
                    lambda content: content,
                )
        missing = _missing([run for run, _, _ in parts])
        run = history.finish_run(run, "interrupted" if missing else "finished")
        return Merged(run=run, missing=missing)


def _plan(run: Run) -> tuple[Any, ...]:
    from passhat.journeys.run_request import RunRequest

    identity = RunRequest.from_json(run.options).identity
    shard = read_shard(str(identity.pop("shard")))
    return run.suite_hash, run.seed, sorted(map(repr, identity.items())), shard and shard.of


def _missing(runs: Sequence[Run]) -> tuple[int, ...]:
    """The numbers of the shards that are not there or did not finish."""
    shards = [(read_shard(str(run.options["shard"])), run.status) for run in runs]
    unfinished = {shard.number for shard, status in shards if shard and status != "finished"}
    there = {shard.number for shard, _ in shards if shard} - unfinished
    of = max(shard.of for shard, _ in shards if shard)
    return tuple(number for number in range(1, of + 1) if number not in there)
