"""Run any command many times, as a suite of one task."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from passhat.errors import ArgumentError, InputError
from passhat.journeys.running import run_suite

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.journeys.run_events import OnRunEvent
    from passhat.records import Suite

TASK = "command"
LONGEST_NAME = 40
RUNS = 20
TIMEOUT = 120.0


def repeat_command(
    command: Sequence[str],
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

    `least` is the share of runs that must succeed; with `until_settled` the runs end as soon as it
    is proved or disproved. `outcome` says what decides: the exit code ("exit"), or a JSON line on
    its output with `score` or `passed` ("json").

    >>> repeat_command(["true"], runs=3)
    <RunAnswer: passed, 3 trials; see .report, .verdicts, .trials>
    """
    if until_settled and least is None:
        raise ArgumentError("least", "must say which share to settle with until_settled", least)
    if shutil.which(command[0]) is None:
        raise InputError(f"{command[0]}: no such program on the PATH, or it is not executable")
    return run_suite(
        _suite(tuple(command), runs, outcome, timeout, concurrency),
        require=() if least is None else (f"pass@1 >= {least}",),
        until_settled=until_settled,
        store=store,
        on_event=on_event,
    )


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
        name=name,
        argv=command,
        cwd=Path.cwd(),
        inherit_env=True,
        outcome=outcome,
        timeout=timeout,
    )
    pairing = Pairing(system=system, task=Task(name=TASK), runs=runs, label=name)
    return Suite(name=name, pairings=(pairing,), concurrency=concurrency)
