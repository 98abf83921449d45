"""One start of a run: check the request, run what is missing, and answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, LostRun, RunError, RunInterrupted, StoreError, SuiteError
from passhat.journeys.answer_source import choose_source, open_source, surely_asked
from passhat.journeys.run_conclusion import conclude, undone_sentence
from passhat.journeys.run_events import RunOpened
from passhat.journeys.run_gates import (
    at_most,
    baselines_of,
    days_of_baselines,
    gates_of,
    is_sequential,
    refuse_pointless,
    stopping_rule,
    verdicts_on,
)
from passhat.journeys.run_request import apply_request
from passhat.journeys.run_store import RunStore, open_run_store, same_run
from passhat.journeys.shards import read_shard, refuse_sequential_shard
from passhat.records.suite import has_faults
from passhat.suite import refuse_unknown_models

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Gate
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.analysis.gates.stopping import StoppingRule
    from passhat.history.work_queue import RunBoard
    from passhat.journeys.answer_source import AnswerSource
    from passhat.journeys.run_events import OnRunEvent
    from passhat.journeys.run_request import Executor, RunRequest
    from passhat.records import Suite, Trial, Trials
    from passhat.runner import RunResult
    from passhat.runner.cassettes import CassetteSet
    from passhat.runner.schedule import FixedRuns


STORE_WAIT_SECONDS = 120.0
"""How long a driver waits for its store to come back: longer than a restart of PostgreSQL."""

SECONDS_BETWEEN_TRIES = 1.0

RUNS_ONCE = (
    "each task runs once, which cannot show whether it passes every time: write `runs: 10` under "
    "`defaults:` of the suite, or give `runs=10`"
)
"""The hint for a suite without `runs:`."""

NOTHING_ADDED = "no run was added: every gate had its verdict, and then this run stops"
JUDGED_BEFORE = (
    "The gates were judged before these runs were added. Each look at a fixed number of runs may "
    "be wrong at the stated rate, and the rates add up; a run until settled has one rate for all."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """One start of a run: what is run, where it is stored, and which stored run it continues.

    `extended` says that runs are added to a plan that was judged before.
    """

    suite: Suite
    request: RunRequest
    store: str | Path | None = None
    resumed: str | None = None
    retry_errors: bool = False
    extended: bool = False
    faults_off: bool = False
    executor: Executor = "local"
    workers: int = 2

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What is demanded."""
        if self.request.shard is not None:
            return ()  # a part of the trials decides nothing
        return gates_of(self.suite, self.request.require)

    @property
    def sequential(self) -> bool:
        """Whether evidence decides how many trials are run."""
        return is_sequential(self.gates, until_settled=self.request.until_settled)

    def rule(self, baselines: Mapping[str, Trials] | None = None) -> StoppingRule | None:
        """What ends the run when every gate is settled; None for a fixed number of runs."""
        return stopping_rule(
            self.suite, self.gates, until_settled=self.request.until_settled, baselines=baselines
        )

    @property
    def hints(self) -> list[str]:
        """What to know of the suite, before and after it is run."""
        by_default = self.request.runs is None and not self.sequential
        return [RUNS_ONCE] if by_default and self.suite.runs_once else []

    @property
    def plan(self) -> FixedRuns:
        """The trials of a run whose number is fixed, or the shard of them that was asked for."""
        from passhat.runner.schedule import FixedRuns

        return FixedRuns(self.suite.pairings, shard=read_shard(self.request.shard))


def prepare(
    loaded: Suite, request: RunRequest, *, store: str | Path | None = None, resume: bool = False
) -> RunJob:
    """Check what was asked for and cut the suite to it; nothing is started."""
    refuse_pointless(loaded, request.require)
    refuse_sequential_shard(request)
    suite = apply_request(loaded, request)
    found = same_run(store, suite, request) if resume and store is not None else None
    return RunJob(
        suite=suite,
        request=request,
        store=store,
        resumed=None if found is None else found.key,
        faults_off=request.faults is None and has_faults(loaded),
    )


def conduct(
    job: RunJob,
    *,
    transcripts: bool = False,
    on_event: OnRunEvent | None = None,
    handle_signals: bool = True,
) -> RunAnswer:
    """Run what is missing, and answer."""
    from passhat.runner.models.factory import refuse_unreachable

    _refuse_unshared_store(job)
    source = choose_source(job.suite, job.request, resumed=job.resumed is not None)
    if source.asks_always:
        refuse_unknown_models(job.suite)
        _refuse_absent(job.suite)
    asked = surely_asked(job.suite, source)
    if job.resumed is None:
        refuse_unreachable(job.suite, asked)
    with (
        open_source(job.suite, source, job.request, sequential=job.sequential) as cassettes,
        open_run_store(
            job.suite,
            job.request,
            store=job.store,
            resumed=job.resumed,
            replays=not source.asks,
            at_most=None if (rule := job.rule()) is None else rule.planned,
        ) as opened,
    ):
        # Before anything is paid for: a missing baseline is an error of the request.
        baselines = baselines_of(job.gates, job.suite, opened)
        rule = job.rule(baselines)
        kept = 0 if opened.run is None else opened.run.trials
        if rule is None and _lacks_trials(job, opened):
            refuse_unreachable(job.suite, asked)
        if on_event is not None:
            on_event(_opening(job, opened, source, rule))
        if job.executor == "local":
            result = _run(job, opened, cassettes, rule, on_event, handle_signals)
        else:
            _refuse_cassettes(cassettes, job.executor)
            result, rule = _lead(job, opened, baselines, on_event, handle_signals)
        opened.close(result)
        _raise_if_over(result, opened)
        table = _table(job.suite, result, stopped=rule is not None)
        verdicts = (
            verdicts_on(
                table,
                job.gates,
                job.suite,
                baselines=baselines,
                days=days_of_baselines(job.gates, job.suite, opened) if baselines else None,
            )
            if rule is None
            else rule.verdicts()
        )
        return conclude(
            job.suite,
            result,
            opened,
            trials=table,
            verdicts=verdicts,
            transcripts=transcripts,
            coverage_threshold=job.request.coverage_threshold,
            notes=_notes(job, rule, added=len(result.trials) - kept),
            judges=job.request.shard is None,
        )


def _notes(job: RunJob, rule: StoppingRule | None, *, added: int) -> list[str]:
    if rule is None:
        return [JUDGED_BEFORE] if job.extended and job.gates else job.hints
    late = [rule.late_sentence] if rule.late_sentence else []
    if job.extended and not added:
        runs = f"passhat run --runs {job.request.runs}"
        late.append(f"{NOTHING_ADDED}; `{runs}` runs every task as often, settled or not")
    return late


def _refuse_unshared_store(job: RunJob) -> None:
    """Refuse workers without a store on a server: it is all that they and the driver share."""
    from passhat.history.database import is_postgres

    if job.executor == "local" or (job.store is not None and is_postgres(job.store)):
        return
    rule = f"must be a postgresql:// address with `executor={job.executor!r}`: workers share the "
    came = job.store if job.store is None else str(job.store)
    raise ArgumentError("store", f"{rule}run through it", came)


def _refuse_absent(suite: Suite) -> None:
    """Refuse a run that can only fail: its program or function is missing."""
    from passhat.runner.preflight import absent_functions, absent_programs

    absent = [*absent_programs(suite), *absent_functions(suite)]
    if not absent:
        return
    if suite.path is None:
        raise SuiteError("\n".join(map(str, absent)))
    from passhat.suite.load import located_lines

    faults = [(one.section, one.name, one.key, one.reason) for one in absent]
    raise SuiteError("\n".join(located_lines(suite.path, faults)))


def _lacks_trials(job: RunJob, opened: RunStore) -> bool:
    """Whether a resumed run has trials left to run: a complete run needs no key."""
    run = opened.run
    return job.resumed is not None and run is not None and run.trials < job.suite.trials


def _opening(
    job: RunJob, opened: RunStore, source: AnswerSource, rule: StoppingRule | None
) -> RunOpened:
    run = opened.run
    return RunOpened(
        suite=job.suite.name,
        size=job.suite.size if rule is None else at_most(job.suite, rule),
        source=str(source),
        run=None if run is None else run.key,
        at_most=rule is not None,
        passed=0 if run is None else run.passed,
        errored=0 if run is None else run.errored,
        faults_off=job.faults_off,
    )


def _run(
    job: RunJob,
    opened: RunStore,
    cassettes: CassetteSet | None,
    rule: StoppingRule | None,
    on_event: OnRunEvent | None,
    handle_signals: bool,
) -> RunResult:
    from passhat.runner import run_trials

    # One at a time, so that a replay stops at the same trial every time.
    one_by_one = cassettes is not None and cassettes.replaying and rule is not None
    return run_trials(
        job.suite,
        stopping_rule=job.plan if rule is None else rule,
        journal=opened.journal,
        concurrency=1 if one_by_one else None,
        on_event=on_event,
        cassettes=cassettes,
        retry_errored=job.retry_errors,
        handle_signals=handle_signals,
    )


def _raise_if_over(result: RunResult, opened: RunStore) -> None:
    """Raise if there is no answer: nothing ran, or the stored run was interrupted."""
    kept = opened.run is not None
    if result.ending == "interrupted" and (kept or not result.trials):
        raise RunInterrupted(
            made=len(result.trials),
            planned=result.planned,
            counts=_counts(result.trials),
            signal=result.signal or 2,
            resume=opened.resume_command if result.undone else None,
        )
    if not result.trials:
        raise RunError(undone_sentence(result, opened) or "nothing was run")


def _counts(trials: Sequence[Trial]) -> dict[str, int]:
    """How many trials passed, failed and errored; without those of which there are none."""
    from passhat.records import Outcome

    found = Counter(trial.outcome for trial in trials)
    outcomes = (Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED)
    return {outcome.name.lower(): found[outcome] for outcome in outcomes if found[outcome]}


def _table(suite: Suite, result: RunResult, *, stopped: bool) -> Trials:
    """The trials of a run; their source says whether gates `stopped` it."""
    from passhat.records import Source
    from passhat.records.trial import STOPPED_BY_GATES

    name = suite.path.name if suite.path is not None else suite.name
    notes = (STOPPED_BY_GATES,) if stopped else ()
    source = Source(name=name, format="passhat run", sha256=suite.digest, notes=notes)
    return replace(result.table(), sources=(source,))


def _refuse_cassettes(cassettes: CassetteSet | None, executor: Executor) -> None:
    """Refuse to record or replay with workers: cassettes are files of one machine."""
    if cassettes is not None:
        raise ArgumentError("executor", "must be local to record or replay cassettes", executor)


def _lead(
    job: RunJob,
    opened: RunStore,
    baselines: Mapping[str, Trials],
    on_event: OnRunEvent | None,
    handle_signals: bool,
) -> tuple[RunResult, StoppingRule | None]:
    """Hand the run out to workers and wait for its end, through outages of the store."""
    from passhat.runner.workers import drive

    assert opened.run is not None, "a run of workers is stored"
    with ExitStack() as stack:
        check: Callable[[], None] | None = None
        if job.executor == "ray":
            from passhat.journeys.ray_executor import ray_workers

            workers = ray_workers(job.suite, str(job.store), opened.run.key, job.workers)
            check = stack.enter_context(workers)
        board = _board(opened)
        since = time.monotonic()
        while True:
            try:
                rule = job.rule(baselines)
                return drive(
                    job.suite,
                    board,
                    opened.journal,
                    stopping_rule=job.plan if rule is None else rule,
                    on_event=on_event,
                    retry_errored=job.retry_errors,
                    handle_signals=handle_signals,
                    check=check,
                ), rule
            except LostRun:
                raise
            except StoreError:
                if time.monotonic() - since > STORE_WAIT_SECONDS:
                    raise
            since = _reconnect(opened, since)


def _board(opened: RunStore) -> RunBoard:
    from passhat.history.work_queue import RunBoard

    assert opened.history is not None
    assert opened.run is not None
    assert opened.lease is not None
    return RunBoard(opened.history, opened.run, opened.lease)


def _reconnect(opened: RunStore, since: float) -> float:
    """Try once to reconnect; return when the store could last be reached."""
    time.sleep(SECONDS_BETWEEN_TRIES)
    assert opened.history is not None
    try:
        opened.history.database.reconnect()
    except StoreError:
        return since
    return time.monotonic()
