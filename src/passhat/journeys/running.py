"""Run a suite, resume a run or repeat a command, and answer with trials, report and verdicts."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from passhat import arguments
from passhat.arguments import CONFIDENCE, STORE
from passhat.dataclass import dataclass
from passhat.errors import (
    ArgumentError,
    HistoryError,
    InputError,
    LostRun,
    RunError,
    RunInterrupted,
    StoreError,
    SuiteError,
)
from passhat.journeys import run_store
from passhat.journeys.gating import (
    at_most,
    baselines_of,
    days_of_baselines,
    floored,
    gates_of,
    has_levels,
    is_sequential,
    quarantined,
    refuse_pointless,
    resting_arms,
    stopping_rule,
    too_few_to_pass,
    verdicts_on,
)
from passhat.journeys.run_request import (
    Executor,
    RunLimits,
    RunOpened,
    RunRequest,
    RunTerms,
    apply_request,
    checked_terms,
    choose_source,
    open_source,
    surely_asked,
)
from passhat.messages import listed, percent, plural
from passhat.records.suite import FAULT, CommandSystem, has_faults, plain_pairings
from passhat.records.trial import Outcome
from passhat.suite import find_suite, load_suite, refuse_unknown_models

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Gate, Verdicts
    from passhat.analysis.gates.run_answer import (
        Failure,
        JudgeBill,
        Lift,
        Reasons,
        RunAnswer,
        ToolCoverage,
    )
    from passhat.analysis.gates.stopping import StoppingRule
    from passhat.analysis.reports.report import Report
    from passhat.history import Run
    from passhat.journeys.run_request import AnswerSource, OnRunEvent
    from passhat.records import Expectation, Suite, Trial, Trials
    from passhat.runner import RunResult
    from passhat.runner.cassettes import CassetteSet
    from passhat.runner.schedule import FixedRuns


@arguments.in_screen_words
def run(
    suite: Suite | str | Path | None = None,
    *,
    store: str | Path | None = None,
    executor: Executor = "local",
    workers: int = 2,
    resume: bool = False,
    transcripts: bool = False,
    on_event: OnRunEvent | None = None,
    handle_signals: bool = True,
    interface: Mapping[str, Any] | None = None,
    **terms: Unpack[RunTerms],
) -> RunAnswer:
    """Run a suite and answer when it is over: its trials, report and verdicts.

    `suite` is a Suite, the path of a suite file, or None for the suite file in this folder. Terms:

    - `only`, `tasks` and `tags` choose what is run, `runs` how often, from which `seed`; `shard`
      "3/10" runs the third tenth, without gates: `merge_shards` puts the parts together.
    - `require` adds gates to the suite's own; with `until_settled` the run ends as soon as every
      gate has its verdict. `coverage_threshold` is the least share of the servers' tools that must
      be called. `faults` is "both" or "only".
    - `max_cost`, `max_tokens`, `max_calls` and `max_minutes` end the run; `concurrency` trials
      run at a time. Five trials that errored alike end it too, if none could be judged yet, unless
      `keep_going` is set.
    - `cassette` is "record", "append", "missing", "all", "drifted", "replay", "replay-or-live" or
      "none" (live); `servers` is "live" or "recorded", `allow_drift` replays although the suite has
      changed, `compress` writes cassettes with zstd.

    With a `store` every trial is stored as soon as it ends, `resume` continues the newest run of
    the same request, and an interrupted run raises RunInterrupted. With the `executor` "workers"
    the trials are run by `passhat worker` processes that share a PostgreSQL store; "ray" starts
    `workers` of them on a Ray cluster.

    >>> from passhat.records import Behaviour, Model, ModelSystem, Pairing, Suite, Task
    >>> model = Model(name="scripted", script=(Behaviour(answer="4"),))
    >>> pairing = Pairing(system=ModelSystem(name="agent", model=model),
    ...                   task=Task(name="sum", prompt="2 + 2?"), runs=3, label="sum")
    >>> run(Suite(name="demo", pairings=(pairing,)))
    <RunAnswer: passed, 3 trials; see .report, .verdicts, .trials>
    """
    arguments.refuse_unknown("run", terms, RunTerms.__annotations__)
    if resume and store is None:
        raise InputError("a run is resumed from its store: name it with `store=PATH`")
    path, loaded = load(suite)
    job = prepare(loaded, RunRequest.of(path, terms, interface), store=store, resume=resume)
    return execute(
        replace(job, **_execution(executor, workers, on_event)),
        transcripts=transcripts,
        on_event=on_event,
        handle_signals=handle_signals,
    )


@arguments.in_screen_words
def resume_run(
    run: str | None = None,
    *,
    store: str | Path = STORE,
    executor: Executor = "local",
    workers: int = 2,
    retry_errors: bool = False,
    changed: bool = False,
    runs: int | None = None,
    transcripts: bool = False,
    on_event: OnRunEvent | None = None,
    handle_signals: bool = True,
    interface: Mapping[str, Any] | None = None,
    **limits: Unpack[RunLimits],
) -> RunAnswer:
    """Continue a stored run: the one that is named, else the newest unfinished one.

    Finished trials are not run again, and no model call that was answered is paid for again. With
    `retry_errors` errored trials are run again; with `changed` the run continues even though its
    suite file, an agent, or a file that its tasks or graders read, is not as it was. `runs` is how
    often to run every task in all; this adds to a finished run too. `limits` are new values of
    `max_cost`, `max_tokens`, `max_calls`, `max_minutes`, `concurrency` and `keep_going`.
    """
    arguments.refuse_unknown("resume_run", limits, RunLimits.__annotations__)
    given = checked_terms({"runs": runs, **limits})
    execution = _execution(executor, workers, on_event)
    stored = run_store.run_to_resume(store, run, runs=runs).run
    if not stored.options.get("suite"):
        raise run_store.not_resumable(store, stored.key)
    earlier = RunRequest.from_json(stored.options)
    request = earlier.changed(interface={**earlier.interface, **(interface or {})}, **given)
    loaded = load_suite(request.suite, models_asked=False)
    extended = runs is not None and stored.status == "finished"
    if extended:
        looked_at = (*earlier.judged_at, apply_request(loaded, earlier).trials)
        request = replace(request, judged_at=looked_at)
    suite = apply_request(loaded, request)
    if stored.suite_hash != suite.digest:
        run_store.refuse_other_suite(store, stored, suite)
    is_other = stored.suite_hash != suite.digest
    arms = run_store.arms_of(suite, stored, retries_errors=retry_errors)
    what = f"{request.suite} has changed" if is_other else run_store.changed_arm(stored, arms)
    if what and not changed:
        raise HistoryError(
            f"{what} since run {stored.key} was started: old and new trials would be mixed. Start "
            "a new run, or resume all the same with `changed=True`"
        )
    if runs is not None:
        _refuse_fewer_runs(apply_request(loaded, earlier), earlier, runs)
    job = RunJob(
        suite=suite,
        whole=loaded,
        request=request,
        store=store,
        resumed=stored.key,
        arms=arms,
        retry_errors=retry_errors,
        asked=runs if extended else None,
        **execution,
    )
    answer = execute(job, transcripts=transcripts, on_event=on_event, handle_signals=handle_signals)
    added = answer.trials is None or len(answer.trials) > stored.trials
    still_open = any(verdict.status == "UNDECIDED" for verdict in answer.judged)
    if not extended or added or still_open or answer.undone:
        return answer
    # Every verdict fell within the first plan: it stays, with its error rates.
    job = replace(job, suite=apply_request(loaded, earlier), request=earlier, retry_errors=False)
    return execute(job, transcripts=transcripts, handle_signals=handle_signals)


def _execution(executor: Executor, workers: int, on_event: OnRunEvent | None) -> dict[str, Any]:
    """Who runs the trials, after a check of everything that is asked for only later."""
    if on_event is not None and not callable(on_event):
        raise ArgumentError("on_event", "must be a function that takes an event", on_event)
    return {
        "executor": arguments.word("executor", executor, get_args(Executor)),
        "workers": arguments.whole_number("workers", workers),
    }


def _refuse_fewer_runs(suite: Suite, earlier: RunRequest, runs: int) -> None:
    """Refuse fewer runs than planned: runs can be added, but not taken out."""
    if earlier.shard is not None:
        raise HistoryError(
            f"this run is shard {earlier.shard} of a plan: start the plan again with more trials"
        )
    planned = max(pairing.runs for pairing in suite.pairings) // max(1, len(suite.seeds))
    if runs < planned:
        raise ArgumentError(
            "runs", f"must be at least {planned}, which the run may take already", runs
        )


def load(suite: Suite | str | Path | None) -> tuple[str, Suite]:
    """The suite, and its path if it came from a file."""
    from passhat.records import Suite

    if isinstance(suite, Suite):
        return "", suite
    if suite is None:
        suite = find_suite(Path())
    path = os.path.relpath(arguments.path("suite", suite, "a Suite or the path of a suite file"))
    return path, load_suite(path, models_asked=False)


LONGEST_NAME = 40
"""Characters of a command that its agent is named after."""


@arguments.in_screen_words
def repeat(
    command: str | Sequence[str],
    *,
    runs: int = 20,
    require: str | Sequence[str] = (),
    least: float | None = None,
    until_settled: bool = False,
    outcome: Literal["auto", "exit", "json"] = "auto",
    timeout: float = 120.0,
    concurrency: int = 1,
    store: str | Path | None = None,
    on_event: OnRunEvent | None = None,
) -> RunAnswer:
    """How often does a command succeed, and how sure is that?

    `command` is a text such as "pytest -q", split into words as a shell does, or a list of words.
    `require` are gates, and `least` is the share of trials that must pass; with `until_settled` the
    trials end as soon as every gate is decided. `outcome` says what decides: the exit code
    ("exit"), or a JSON line on its output with `score` or `passed` ("json").

    >>> repeat("true", runs=3)
    <RunAnswer: passed, 3 trials; see .report, .verdicts, .trials>
    """
    from passhat.records import Pairing, Suite, Task
    from passhat.records.redaction import environment_redactor

    gates = list(arguments.names("require", require, arguments.DEMANDS))
    if least is not None:
        gates.append(f"pass@1 >= {arguments.probability('least', least)}")
    if until_settled and not gates:
        raise ArgumentError("require", "must name a gate to decide with until_settled", require)
    words = _words(command)
    if shutil.which(words[0]) is None:
        raise InputError(f"{words[0]}: no such program on the PATH, or it is not executable")
    runs = arguments.whole_number("runs", runs)
    outcome = arguments.word("outcome", outcome, ("auto", "exit", "json"))
    timeout = arguments.amount("timeout", timeout)
    concurrency = arguments.whole_number("concurrency", concurrency)
    whole = environment_redactor(os.environ).clean(shlex.join(words))
    name = whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 1]}…"
    system = CommandSystem(
        name=name, argv=words, cwd=Path.cwd(), inherit_env=True, outcome=outcome, timeout=timeout
    )
    pairing = Pairing(system=system, task=Task(name="command"), runs=runs, label=name)
    return run(
        Suite(name=name, pairings=(pairing,), concurrency=concurrency),
        require=gates,
        until_settled=until_settled,
        store=store,
        on_event=on_event,
    )


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    """The program and its arguments."""
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:  # a quote that is not closed
        rule = f"must be words that a shell understands ({str(error).lower()})"
        raise ArgumentError("command", rule, command) from None
    words = arguments.names("command", words, "must be a command such as 'pytest -q', or its words")
    if not words:
        raise ArgumentError("command", "must name a program", command)
    return words


# One start of a run: check the request, run what is missing, and answer.


SECONDS_BETWEEN_TRIES = 1.0

RUNS_ALL = (
    "all trials were run: the levels of a factor are compared, and gates judge the first of them"
)
"""Why a run until its gates are decided did not end early."""

RUNS_ONCE = (
    "each task runs once, which cannot show whether it passes every time: write `runs: 10` under "
    "`defaults:` of the suite"
)
"""The hint for a suite without `runs:`."""

NOTHING_ADDED = "no trial was added: every gate had its verdict, and then this run stops"
JUDGED_BEFORE = (
    "The gates were judged before these trials were added: this look has a stricter bound, and the "
    "error rates are those of all looks together"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """One start of a run: what is run, where it is stored, and which stored run it continues.

    `asked` is how often every task is to run of a plan that was judged before. `whole` is the suite
    as its file has it: the request may leave out agents that gates compare with.
    """

    suite: Suite
    whole: Suite
    request: RunRequest
    store: str | Path | None = None
    resumed: str | None = None
    arms: run_store.Arms | None = None
    retry_errors: bool = False
    asked: int | None = None
    passed_over: str | None = None
    faults_off: bool = False
    executor: Executor = "local"
    workers: int = 2

    def __post_init__(self) -> None:
        if self.executor == "local":
            return
        from passhat.history.database import is_postgres

        if self.store is not None and is_postgres(self.store):
            return
        rule = f"must be a postgresql:// address with `executor={self.executor!r}`: workers share "
        came = None if self.store is None else str(self.store)
        raise ArgumentError("store", f"{rule}the run through it", came)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What is demanded."""
        if self.request.shard is not None:
            return ()  # a part of the trials decides nothing
        return gates_of(self.suite, self.request.require)

    @property
    def resting(self) -> run_store.Arms:
        """The agents that gates compare with and that this request leaves out."""
        whole = apply_request(self.whole, replace(self.request, only=()))
        return resting_arms(self.gates, self.suite, whole)

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
        once = [f"{RUNS_ONCE}, or give `runs=10`"] if by_default and self.suite.runs_once else []
        return [*once, *([RUNS_ALL] if self.sequential and has_levels(self.suite) else [])]

    @property
    def plan(self) -> FixedRuns:
        """The trials of a run whose number is fixed, or the shard of them that was asked for."""
        from passhat.runner.schedule import FixedRuns

        return FixedRuns(self.suite.pairings, shard=run_store.read_shard(self.request.shard))


def prepare(
    loaded: Suite, request: RunRequest, *, store: str | Path | None = None, resume: bool = False
) -> RunJob:
    """Check what was asked for and cut the suite to it; nothing is started."""
    refuse_pointless(loaded, request.require)
    run_store.refuse_sequential_shard(request)
    suite = apply_request(loaded, request)
    kept = store if resume else None
    earlier = run_store.SameRun() if kept is None else run_store.same_run(kept, suite, request)
    return RunJob(
        suite=suite,
        whole=loaded,
        request=request,
        store=store,
        resumed=None if earlier.run is None else earlier.run.key,
        arms=earlier.arms,
        passed_over=earlier.passed_over,
        faults_off=request.faults is None and has_faults(loaded) and FAULT not in loaded.factors,
    )


def execute(
    job: RunJob,
    *,
    transcripts: bool = False,
    on_event: OnRunEvent | None = None,
    handle_signals: bool = True,
) -> RunAnswer:
    """Run what is missing, and answer."""
    from passhat.runner.models.factory import refuse_unreachable

    source = checked_source(job)
    asked = surely_asked(job.suite, source)
    if job.resumed is None:
        refuse_unreachable(job.suite, asked)
    with (
        open_source(job.suite, source, job.request, sequential=job.sequential) as cassettes,
        run_store.open_run(
            job.suite,
            job.request,
            store=job.store,
            resumed=job.resumed,
            arms=job.arms,
            replays=not source.asks,
            at_most=None if (rule := job.rule()) is None else rule.planned,
        ) as opened,
    ):
        # Before anything is paid for: a missing baseline is an error of the request.
        arms = job.resting
        baselines = baselines_of(job.gates, job.suite, opened, arms)
        rule = job.rule(baselines)
        before = 0 if opened.run is None else opened.run.trials
        if rule is None and job.resumed is not None and before < job.suite.trials:
            refuse_unreachable(job.suite, asked)  # a complete run needs no key
        if on_event is not None:
            on_event(_opening(job, opened.run, source, rule))
        if job.executor != "local" and isinstance(opened, run_store.StoredRun):
            if cassettes is not None:  # they are files of one machine
                only_local = "must be local to record or replay cassettes"
                raise ArgumentError("executor", only_local, job.executor)
            result, rule = _run_on_workers(job, opened, baselines, on_event, handle_signals)
        else:
            result = _run(job, opened, cassettes, rule, on_event, handle_signals)
        opened.close(result, None if rule is None else rule.verdicts())
        _raise_if_over(result, opened)
        table = _table(job.suite, result, at_most=None if rule is None else rule.planned)
        verdicts = (
            verdicts_on(
                table,
                job.gates,
                job.suite,
                baselines=baselines,
                days=(days_of_baselines(job.gates, job.suite, opened, arms) if baselines else None),
                judged_at=job.request.judged_at,
            )
            if rule is None
            else rule.verdicts()
        )
        return build_answer(
            job.suite,
            result,
            opened,
            trials=table,
            verdicts=verdicts,
            baselines=baselines,
            transcripts=transcripts,
            coverage_threshold=job.request.coverage_threshold,
            notes=_notes(job, rule, added=len(result.trials) - before),
            judges=job.request.shard is None,
            late=None if rule is None else rule.late,
        )


def _notes(job: RunJob, rule: StoppingRule | None, *, added: int) -> list[str]:
    if rule is None:
        return [JUDGED_BEFORE] if job.asked is not None and job.gates else job.hints
    late = [rule.late_sentence] if rule.late_sentence else []
    if job.asked is not None and not added:
        runs = f"passhat run --trials {job.asked}"
        late.append(f"{NOTHING_ADDED}; `{runs}` runs every task as often, decided or not")
    return late


def checked_source(job: RunJob) -> AnswerSource:
    """Where answers come from; refuses agents, servers and models that can give none."""
    source = choose_source(job.suite, job.request, resumed=job.resumed is not None)
    if source.asks_always:
        refuse_unknown_models(job.suite)
        _refuse_absent(job.suite)
    return source


def _refuse_absent(suite: Suite) -> None:
    """Refuse a run that can only fail (a program is missing), or whose answers are in sight."""
    from passhat.runner.preflight import (
        absent_functions,
        absent_programs,
        answers_in_sight,
        lacks_sandbox,
    )

    if reason := lacks_sandbox(suite):
        raise SuiteError(reason)
    absent = [*absent_programs(suite), *absent_functions(suite), *answers_in_sight(suite)]
    if not absent:
        return
    if suite.path is None:
        raise SuiteError("\n".join(map(str, absent)))
    from passhat.suite.load import located_lines

    faults = [(part.section, part.name, part.key, part.reason) for part in absent]
    raise SuiteError("\n".join(located_lines(suite.path, faults)))


def _opening(
    job: RunJob, run: Run | None, source: AnswerSource, rule: StoppingRule | None
) -> RunOpened:
    return RunOpened(
        suite=job.suite.name,
        size=job.suite.size if rule is None else at_most(job.suite, rule),
        source=str(source),
        run=None if run is None else run.key,
        at_most=rule is not None,
        passed=0 if run is None else run.passed,
        errored=0 if run is None else run.errored,
        faults_off=job.faults_off,
        passed_over=job.passed_over,
        too_few=too_few_to_pass(job.gates, job.suite, until_settled=rule is not None),
    )


def _run(
    job: RunJob,
    opened: run_store.OpenRun,
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
        keep_going=job.request.keep_going,
        handle_signals=handle_signals,
    )


def _raise_if_over(result: RunResult, opened: run_store.OpenRun) -> None:
    """Raise if there is no answer: nothing ran, graders changed, or it was interrupted."""
    stored = opened.run is not None
    if result.ending == "interrupted" and (stored or not result.trials):
        outcomes = Counter(trial.outcome for trial in result.trials)
        words = (Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED)
        raise RunInterrupted(
            made=len(result.trials),
            planned=result.planned,
            counts={word.name.lower(): outcomes[word] for word in words if outcomes[word]},
            signal=result.signal or 2,
            resume=opened.resume_command if result.undone else None,
        )
    if not result.trials or result.ending == "changed":
        raise RunError(undone_sentence(result, opened) or "nothing was run")


def _table(suite: Suite, result: RunResult, *, at_most: int | None) -> Trials:
    """The trials of a run; their source says whether gates could end it, and whether they did."""
    from passhat.records import Source
    from passhat.records.trial import Ended

    name = suite.path.name if suite.path is not None else suite.name
    early = result.ending == "settled" and len(result.trials) < (at_most or 0)
    ended: Ended | None = None if at_most is None else "early" if early else "by gates"
    source = Source(name=name, format="passhat run", sha256=suite.digest, ended=ended)
    return replace(result.table(), sources=(source,))


def _run_on_workers(
    job: RunJob,
    opened: run_store.StoredRun,
    baselines: Mapping[str, Trials],
    on_event: OnRunEvent | None,
    handle_signals: bool,
) -> tuple[RunResult, StoppingRule | None]:
    """Hand the run out to workers and wait for its end, through outages of the store."""
    from passhat.history.work_queue import RunQueue
    from passhat.runner.workers import drive

    with ExitStack() as stack:
        check: Callable[[], None] | None = None
        if job.executor == "ray":
            from passhat.journeys.workers import ray_workers

            workers = ray_workers(job.suite, str(job.store), opened.run.key, job.workers)
            check = stack.enter_context(workers)
        queue = RunQueue(opened.history, opened.run, opened.lease)
        reached = time.monotonic()  # when the store last was
        while True:
            try:
                rule = job.rule(baselines)
                return drive(
                    job.suite,
                    queue,
                    opened.journal,
                    stopping_rule=job.plan if rule is None else rule,
                    on_event=on_event,
                    retry_errored=job.retry_errors,
                    keep_going=job.request.keep_going,
                    handle_signals=handle_signals,
                    check=check,
                ), rule
            except LostRun:
                raise
            except StoreError:
                if time.monotonic() - reached > run_store.STORE_WAIT_SECONDS:
                    raise
            time.sleep(SECONDS_BETWEEN_TRIES)
            with suppress(StoreError):
                opened.history.database.reconnect()
                reached = time.monotonic()


# The answer of a run that is over: its report, why trials failed, and what was left undone.

RAISED_BY = {
    "max_cost": "--max-cost DOLLARS",
    "max_tokens": "--max-tokens N",
    "max_minutes": "--max-minutes N",
    "max_calls": "--max-calls N",
}
"""The option that lets a run continue after each budget has ended it."""

MOST_EXPLAINED = 500
"""Trials up to which a run looks for the cause of its failures: half a second of work."""

MOST_TRIALS = 1_000
"""Trials whose transcripts are read: enough to see what goes wrong, however long the run."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
"""The address of an object in memory, which differs from trial to trial."""


def build_answer(
    suite: Suite,
    result: RunResult,
    opened: run_store.OpenRun,
    *,
    trials: Trials,
    verdicts: Verdicts | None,
    baselines: Mapping[str, Trials] | None = None,
    transcripts: bool,
    coverage_threshold: float | None = None,
    notes: Sequence[str] = (),
    judges: bool = True,
    late: int | None = None,
) -> RunAnswer:
    """The answer, with everything that decides whether the run passed.

    A shard is the part of a run that `judges` nothing.
    """
    from passhat.analysis.gates.gate import asked_streak
    from passhat.analysis.gates.run_answer import RunAnswer, measure_recovery, suite_floors

    confidence = suite.confidence or CONFIDENCE
    gates = gates_of(suite, ()) if verdicts is None else [v.gate for v in verdicts]
    report = _report(suite, trials).about(*asked_streak(gates))
    reasons = _trial_reasons(suite, result, opened)
    unread = _not_passed(result)[MOST_TRIALS:]
    judged = _judged(suite, result, opened)
    bill, users = (_bill(judged, who) for who in ("judge", "user"))
    warnings = (*run_store.changed_agents(opened.run), *_workspace_notes(suite, result, opened))
    doubts = (
        *_perhaps_paid(result),
        *_passed_limits(suite, result),
        *_judge_notes(suite, judged, bill),
        *([_beside_agents(users, "the simulated users")] if users else ()),
        *warnings,
    )
    # Where nothing could be judged there is neither a PASS nor a FAIL of anything.
    nothing_ran = all(trial.outcome is Outcome.ERRORED for trial in result.trials)
    coverage = None if nothing_ran else _coverage(result, coverage_threshold)
    covered = () if coverage is None else (coverage.sentence,)
    opened.store_notes(doubts)
    answer = RunAnswer(
        report=replace(report, notes=(*report.notes, *notes, *doubts, *covered)),
        trials=trials,
        late=late,
        verdicts=None if nothing_ran else verdicts,
        recoveries=measure_recovery(trials, ks=suite.ks or None, confidence=confidence),
        floors=(
            suite_floors(plain_pairings(suite), trials, confidence=confidence)
            if judges and not nothing_ran
            else ()
        ),
        lifts=() if nothing_ran else tuple(_lifts(suite, trials, verdicts, baselines or {})),
        failures=_gather_failures(result, reasons),
        reasons=reasons,
        unread=sum(trial.outcome is Outcome.FAILED for trial in unread),
        undone=undone_sentence(result, opened),
        transcripts=opened.transcripts(result.trials) if transcripts else None,
        quarantined=quarantined(suite),
        floored=floored(suite),
        exempt=frozenset(() if judges else trials.systems),
        nothing_ran=nothing_ran,
        warnings=warnings,
        results=opened.results,
        store=opened.store,
        run=None if opened.run is None else opened.run.key,
        signal=result.signal,
        coverage=coverage,
        cause=_cause(trials, result, opened),
        judge=bill,
        more_runs=opened.more_runs,
    )
    return replace(answer, incomplete=_incomplete(answer, suite, result))


def _lifts(
    suite: Suite, trials: Trials, verdicts: Verdicts | None, baselines: Mapping[str, Trials]
) -> Iterator[Lift]:
    """Each agent against the other agent of the suite that a gate compares it with."""
    from passhat.analysis.gates.gate import NoWorseRequirement
    from passhat.analysis.gates.run_answer import lift_of

    systems = {pairing.system.name: pairing.system for pairing in suite.pairings}
    for verdict in verdicts or ():
        demand = verdict.gate.demand
        if not isinstance(demand, NoWorseRequirement):
            continue
        name, other = demand.baseline, baselines.get(demand.baseline)
        if name in trials.systems:
            other = trials.where(system=name)
        if other is None or other.systems != (name,):
            continue  # an earlier run of the same agent: `passhat compare` tells about it
        system = systems.get(verdict.system)
        added = system.added_names().values() if isinstance(system, CommandSystem) else ()
        lift = lift_of(verdict, trials.where(system=verdict.system), other, added=tuple(added))
        yield lift if name in trials.systems else replace(lift, reused=other.sources[0].name)


def _cause(trials: Trials, result: RunResult, opened: run_store.OpenRun) -> str | None:
    """The most prominent cause of failures, if runs of a task both passed and failed."""
    outcomes: dict[tuple[str, str], set[int]] = {}
    for trial in result.trials:
        outcomes.setdefault((trial.system, trial.task), set()).add(int(trial.outcome))
    mixed = any({0, 1} <= seen for seen in outcomes.values())
    if not mixed or len(result.trials) > MOST_EXPLAINED:
        return None
    from passhat.analysis.explaining.explain import explain

    causes = explain(trials, opened.transcripts(result.trials)).causes
    return causes[0].sentence if causes else None


def _coverage(result: RunResult, threshold: float | None) -> ToolCoverage | None:
    from passhat.analysis.gates.run_answer import ToolCoverage

    if not result.tools_offered:
        return None  # no servers, or none was started: what they offer is not known
    called = frozenset(tool for trial in result.trials for tool in trial.tools)
    return ToolCoverage(offered=result.tools_offered, called=called, threshold=threshold)


def undone_sentence(result: RunResult, opened: run_store.OpenRun) -> str | None:
    """What an early end left out, and the command that resumes it."""
    if not result.undone and result.ending != "changed":
        return None
    why = f"{result.limit} was reached" if result.limit else "interrupted"
    if result.ending == "errors":
        why = f"the first {plural(len(result.trials), 'trial')} errored"
    if result.ending == "changed":
        names = listed(result.changed_files) or "a file that decides"
        why = f"stopped, for no trial can be graded: changed during the run: {names}"
    text = f"{why}: {result.undone:,} of {result.planned:,} trials were left undone"
    command = opened.resume_command
    if command is None:
        return text
    if result.ending == "changed":
        return f"{text}; put it back, and resume with: {command} --retry-errors"
    if result.ending == "errors":
        return f"{text}; once the cause is gone, resume with: {command} --retry-errors"
    if result.limit in RAISED_BY:  # with the same limit it would stop again at once
        return f"{text}; resume with a higher limit: {command} {RAISED_BY[result.limit]}"
    return f"{text}; resume with: {command}"


def _incomplete(answer: RunAnswer, suite: Suite, result: RunResult) -> str | None:
    """Why a run with no failed demand has not passed: a part of it was never run."""
    if answer.verdicts is None:
        return "trials were left undone" if result.undone else None
    if answer.outcome == "failed" or not all(floor.passed for floor in answer.floors):
        return None
    ran = {(trial.system, trial.task) for trial in result.trials}
    missing = any((p.system.name, p.task.name) not in ran for p in suite.pairings)
    if result.ending == "budget" and missing:
        return f"{result.limit} was reached before every task was run"
    return None


def _report(suite: Suite, trials: Trials) -> Report:
    """The report, with a note on the tasks that the run did not get to before it ended early."""
    from passhat.analysis.reports.measure import measure

    ran = set(trials.tasks)
    report = measure(
        trials,
        ks=suite.ks or None,
        confidence=suite.confidence or CONFIDENCE,
        bars={task: bar for task, bar in suite.bars.items() if task in ran} or None,
        seed=suite.seed,
    )
    if missing := [task.name for task in suite.tasks if task.name not in ran]:
        note = f"not run, and not in these numbers: {', '.join(missing)}"
        report = replace(report, notes=(*report.notes, note))
    return report


def _perhaps_paid(result: RunResult) -> Iterator[str]:
    """Calls that may or may not have been paid for."""
    if result.asked_again:
        answers = f"; the answers of {result.recovered:,} of them were found at the provider"
        yield (
            f"perhaps paid twice: {result.asked_again}; an earlier start of this run died while "
            f"they were on the wire, and they were asked again{answers if result.recovered else ''}"
        )
    if result.given_up:
        yield (
            f"perhaps paid, and not in the cost: {result.given_up}; their answers were lost: the "
            "connection was cut, or a deadline or an early end came first"
        )


def _passed_limits(suite: Suite, result: RunResult) -> Iterator[str]:
    """By how much a limit was passed, by an unbounded first call or an attempt of an agent."""
    budget = suite.budget
    if budget.max_cost is not None and result.cost > budget.max_cost * (1 + 1e-9):
        yield f"max_cost was passed: ${result.cost:,.4f} were spent, of ${budget.max_cost:,g}"
    if budget.max_tokens is not None and result.tokens > budget.max_tokens:
        yield f"max_tokens was passed: {result.tokens:,} were used, of {budget.max_tokens:,}"


def _judged(suite: Suite, result: RunResult, opened: run_store.OpenRun) -> list[dict[str, Any]]:
    """What is stored of the trials with a judge or a user; of a long run, of the first."""
    judged = {
        task.name
        for task in suite.tasks
        if task.user is not None
        or any(expectation.matcher == "judge" for expectation in task.expectations())
    }
    trials = tuple(trial for trial in result.trials if trial.task in judged)
    return [json.loads(text) for text in opened.transcripts(trials[:MOST_TRIALS]).values()]


def _bill(judged: Sequence[Mapping[str, Any]], who: str) -> JudgeBill | None:
    """What the judge or the users took; None if none of them was asked."""
    from passhat.analysis.gates.run_answer import JudgeBill

    bills = [judgement[who] for judgement in judged if judgement.get(who, {}).get("calls")]
    if not bills:
        return None
    costs, tokens = ([bill[name] for bill in bills] for name in ("cost", "tokens"))
    return JudgeBill(
        trials=len(judged),
        calls=sum(bill["calls"] for bill in bills),
        cost=None if None in costs else sum(costs),
        tokens=None if None in tokens else sum(tokens),
    )


def _judge_notes(
    suite: Suite, judged: Sequence[Mapping[str, Any]], bill: JudgeBill | None
) -> Iterator[str]:
    """That a judge graded, how far it agrees with itself and what it took; else nothing."""
    every = (expectation for task in suite.tasks for expectation in task.expectations())
    rubrics = [expectation for expectation in every if expectation.matcher == "judge"]
    if not rubrics:
        return
    from passhat.records.trial import GRADED_BY_JUDGE
    from passhat.runner.grading import CUT_FOR_JUDGE, MAX_ANSWER, SPEAKS_TO_JUDGE

    yield GRADED_BY_JUDGE
    shares = [
        check["disagreement"]
        for j in judged
        for check in j.get("checks", ())
        if check.get("disagreement") is not None
    ]
    messages = [str(check.get("message")) for j in judged for check in j.get("checks", ())]
    if swaying := sum(SPEAKS_TO_JUDGE in text for text in messages):
        yield f"{plural(swaying, 'answer speaks', 'answers speak')} to the judge: read what it says"
    if cut := sum(CUT_FOR_JUDGE in text for text in messages):
        most = f"of a text it sees {MAX_ANSWER:,} characters, the beginning and the end"
        yield f"{plural(cut, 'trial was', 'trials were')} too long for the judge: {most}"
    if all(_readings(rubric) < 2 for rubric in rubrics):
        yield "the judge was asked once: how far it agrees with itself takes `repeats: 3`"
    elif shares:
        mean, split = sum(shares) / len(shares), sum(share > 0 for share in shares)
        panel = any(rubric.options.get("panel") for rubric in rubrics)
        who = "the judges disagreed" if panel else "the judge disagreed with itself"
        yield (
            f"{who} in {percent(mean)} of pairs of readings; the readings of {split:,} of "
            f"{plural(len(shares), 'answer')} were split"
        )
    if bill is not None:
        yield _beside_agents(bill, "the judge")


def _readings(rubric: Expectation) -> int:
    """How often an answer is read: by how many judges, how often, and in how many orders."""
    options = rubric.options
    judges, orders = 1 + len(options.get("panel", ())), 2 if "against" in options else 1
    return judges * orders * int(options.get("repeats") or 1)


OFTEN = 0.2
"""Beyond this share of a task's trials, it is the limit that should be looked at."""


def _workspace_notes(suite: Suite, result: RunResult, opened: run_store.OpenRun) -> Iterator[str]:
    """Trials in workspaces: without a sandbox, begun again, or often at a limit."""
    there = {task.name for task in suite.tasks if task.workspace is not None}
    trials = [trial for trial in result.trials if trial.task in there][:MOST_TRIALS]
    if not trials:
        return
    ran = {trial.system for trial in trials}
    systems = {pairing.system.name: pairing.system for pairing in suite.pairings}
    exposed = [
        name
        for name, system in systems.items()
        if name in ran and isinstance(system, CommandSystem) and system.sandbox == "none"
    ]
    if exposed:
        yield f"NOT ISOLATED: {listed(exposed)} ran without a sandbox, and could read what decides"
    from passhat.runner.attempt import BEGUN_AGAIN

    begun_again: Counter[str] = Counter()
    reached: Counter[tuple[str, str, str]] = Counter()
    for (system, task, _), text in opened.transcripts(trials).items():
        stored = json.loads(text)
        flags = (stored.get("workspace") or {}).get("flags", ())
        begun_again.update(
            f[len(BEGUN_AGAIN) :].strip() for f in flags if f.startswith(BEGUN_AGAIN)
        )
        if stored.get("stop_reason") in ("memory", "disk"):
            reached[system, task, stored["stop_reason"]] += 1
    for reason, count in begun_again.most_common():
        was = plural(count, "trial was", "trials were")
        yield f"{was} begun again, for the agent could not work: {reason}"
    made = Counter((trial.system, trial.task) for trial in trials)
    for (system, task, limit), count in reached.items():
        if count > OFTEN * made[system, task]:
            yield (
                f"{count:,} of {plural(made[system, task], 'trial')} of {task} by {system} reached "
                f"their {limit} limit and failed by that: perhaps it is too low "
                f"(`resources: {{{limit}: ...}}`)"
            )


def _beside_agents(bill: JudgeBill, who: str) -> str:
    most = f" for the first {MOST_TRIALS:,} trials" if bill.trials >= MOST_TRIALS else ""
    return f"{bill.took(who)}{most}; the budget counts it, the trials do not"


def _trial_reasons(suite: Suite, result: RunResult, opened: run_store.OpenRun) -> Reasons:
    """Why each trial did not pass, for the first `MOST_TRIALS` of them."""
    stopped = _not_passed(result)
    failed = [trial for trial in stopped[:MOST_TRIALS] if trial.outcome is Outcome.FAILED]
    transcripts = opened.transcripts(failed)
    tools = {t.name: t.tool_selection.expected_tool for t in suite.tasks if t.tool_selection}
    return {
        key: tuple(dict.fromkeys(_reasons(trial, transcripts.get(key), tools.get(trial.task))))
        for trial in stopped
        for key in [trial.key]
    }


def _gather_failures(result: RunResult, reasons: Reasons) -> tuple[Failure, ...]:
    """The first line of every reason with the trials it stopped, the most frequent first."""
    from passhat.analysis.gates.run_answer import Failure

    counts: Counter[tuple[str, str, str, bool]] = Counter()
    for trial in result.trials:
        errored = trial.outcome is Outcome.ERRORED
        of_trial = reasons.get(trial.key, ())
        heads = (reason.strip().partition("\n")[0] for reason in of_trial)
        for reason in dict.fromkeys(_ADDRESS.sub("0x…", head) for head in heads):
            counts[trial.system, trial.task, reason, errored] += 1
    return tuple(
        Failure(system=system, task=task, reason=reason, trials=number, errored=errored)
        for (system, task, reason, errored), number in counts.most_common()
    )


def _not_passed(result: RunResult) -> list[Trial]:
    return [trial for trial in result.trials if trial.outcome is not Outcome.PASSED]


def _reasons(trial: Trial, transcript: str | None, tool: str | None) -> Iterator[str]:
    if trial.error is not None:
        yield trial.error
        return
    if transcript is None:
        return
    stored: dict[str, Any] = json.loads(transcript)
    failed = [check for check in stored.get("checks", ()) if check["score"] < 1]
    if cut := [check for check in failed if check["target"] == "stop_reason"]:
        yield cut[0]["message"]  # what was expected of an answer that never came says nothing
        return
    if failed and stored.get("exit_code"):
        yield _ending(stored)  # a crash explains what was not said
    for check in failed:
        yield check["message"]
    if failed:
        return
    if tool is not None and tool not in trial.tools:
        yield f"{tool} was not called; called: {', '.join(dict.fromkeys(trial.tools)) or 'nothing'}"
    else:
        yield _ending(stored)


def _ending(stored: dict[str, Any]) -> str:
    """How an attempt ended that met every expectation but did not pass."""
    if stored.get("exit_code"):
        from passhat.runner.processes import exit_sentence

        texts = stored.get("stderr", ""), stored.get("answer", "")
        return exit_sentence(stored["exit_code"], *texts)
    reason = stored.get("stop_reason")
    return f"stopped by its {reason}" if reason in ("timeout", "budget") else "did not pass"
