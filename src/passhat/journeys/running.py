"""Run a suite, or resume a run, and answer with trials, a report and verdicts."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from passhat import arguments
from passhat.arguments import STORE
from passhat.errors import ArgumentError, HistoryError, InputError
from passhat.journeys.run_job import RunJob, conduct, prepare
from passhat.journeys.run_request import (
    Executor,
    RunLimits,
    RunRequest,
    RunTerms,
    apply_request,
    checked_terms,
)
from passhat.journeys.run_store import not_resumable, run_to_resume
from passhat.suite import find_suite, load_suite

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.journeys.run_events import OnRunEvent
    from passhat.records import Suite


def run_suite(
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
      run at a time.
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
    >>> run_suite(Suite(name="demo", pairings=(pairing,)))
    <RunAnswer: passed, 3 trials; see .report, .verdicts, .trials>
    """
    arguments.refuse_unknown("run_suite", terms, RunTerms.__annotations__)
    if resume and store is None:
        raise InputError("a run is resumed from its store: name it with `store=PATH`")
    path, loaded = load(suite)
    job = prepare(loaded, RunRequest.of(path, terms, interface), store=store, resume=resume)
    return conduct(
        replace(job, **_execution(executor, workers, on_event)),
        transcripts=transcripts,
        on_event=on_event,
        handle_signals=handle_signals,
    )


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
    suite file is not the one it was started with. `runs` is how often to run every task in all;
    this adds to a finished run too. `limits` are new values of `max_cost`, `max_tokens`,
    `max_calls`, `max_minutes` and `concurrency`.
    """
    arguments.refuse_unknown("resume_run", limits, RunLimits.__annotations__)
    given = checked_terms({"runs": runs, **limits})
    execution = _execution(executor, workers, on_event)
    found = run_to_resume(store, run, runs=runs).run
    if not found.options.get("suite"):
        raise not_resumable(store, found.key)
    kept = RunRequest.from_json(found.options)
    request = kept.changed(interface={**kept.interface, **(interface or {})}, **given)
    loaded = load_suite(request.suite, models_asked=False)
    suite = apply_request(loaded, request)
    if not changed and found.suite_hash != suite.digest:
        raise HistoryError(
            f"{request.suite} has changed since run {found.key} was started: old and new trials "
            "would be mixed. Start a new run, or resume all the same with `changed=True`"
        )
    if runs is not None:
        _refuse_fewer_runs(apply_request(loaded, kept), kept, runs)
    job = RunJob(
        suite=suite,
        request=request,
        store=store,
        resumed=found.key,
        retry_errors=retry_errors,
        extended=runs is not None and found.status == "finished",
        **execution,
    )
    return conduct(job, transcripts=transcripts, on_event=on_event, handle_signals=handle_signals)


def _execution(executor: Executor, workers: int, on_event: OnRunEvent | None) -> dict[str, Any]:
    """Who runs the trials, after a check of everything that is asked for only later."""
    if on_event is not None and not callable(on_event):
        raise ArgumentError("on_event", "must be a function that takes an event", on_event)
    return {
        "executor": arguments.word("executor", executor, get_args(Executor)),
        "workers": arguments.whole_number("workers", workers),
    }


def _refuse_fewer_runs(suite: Suite, kept: RunRequest, runs: int) -> None:
    """Refuse fewer runs than planned: runs can be added, but not taken out."""
    if kept.shard is not None:
        raise HistoryError(
            f"this run is shard {kept.shard} of a plan: start the plan again with more runs"
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


TASK = "command"
LONGEST_NAME = 40
RUNS = 20
TIMEOUT = 120.0


def repeat_command(
    command: str | Sequence[str],
    *,
    runs: int = RUNS,
    least: float | None = None,
    until_settled: bool = False,
    outcome: Literal["auto", "exit", "json"] = "auto",
    timeout: float = TIMEOUT,
    concurrency: int = 1,
    store: str | Path | None = None,
    on_event: OnRunEvent | None = None,
) -> RunAnswer:
    """How often does a command succeed, and how sure is that?

    `command` is a text such as "pytest -q", split into words as a shell does, or a list of words.
    `least` is the share of runs that must succeed; with `until_settled` the runs end as soon as it
    is proved or disproved. `outcome` says what decides: the exit code ("exit"), or a JSON line on
    its output with `score` or `passed` ("json").

    >>> repeat_command("true", runs=3)
    <RunAnswer: passed, 3 trials; see .report, .verdicts, .trials>
    """
    if until_settled and least is None:
        raise ArgumentError("least", "must say which share to settle with until_settled", least)
    words = _words(command)
    if shutil.which(words[0]) is None:
        raise InputError(f"{words[0]}: no such program on the PATH, or it is not executable")
    suite = _suite(
        words,
        arguments.whole_number("runs", runs),
        arguments.word("outcome", outcome, ("auto", "exit", "json")),
        arguments.amount("timeout", timeout),
        arguments.whole_number("concurrency", concurrency),
    )
    return run_suite(
        suite,
        require=() if least is None else f"pass@1 >= {arguments.probability('least', least)}",
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
    found = arguments.names("command", words, "must be a command such as 'pytest -q', or its words")
    if not found:
        raise ArgumentError("command", "must name a program", command)
    return found


def _suite(
    command: tuple[str, ...],
    runs: int,
    outcome: Literal["auto", "exit", "json"],
    timeout: float,
    concurrency: int,
) -> Suite:
    from passhat.records import CommandSystem, Pairing, Suite, Task
    from passhat.records.redaction import environment_redactor

    whole = environment_redactor(os.environ).clean(shlex.join(command))
    name = whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 1]}…"
    system = CommandSystem(
        name=name, argv=command, cwd=Path.cwd(), inherit_env=True, outcome=outcome, timeout=timeout
    )
    pairing = Pairing(system=system, task=Task(name=TASK), runs=runs, label=name)
    return Suite(name=name, pairings=(pairing,), concurrency=concurrency)
