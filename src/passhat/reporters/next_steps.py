"""What to do after reading a report, the most useful first, in commands that can be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from passhat.analysis.reports.parts import SystemReport, TaskRow, Unsettled, all_errored, headline_k
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.unsettled import WORTH_RUNNING
from passhat.arguments import CONFIDENCE, DEPENDABLE
from passhat.messages import plural
from passhat.reporters.answer import NextStep
from passhat.reporters.answer import advise as advise
from passhat.reporters.formatting import LONGEST_NAME, interval_of, shorten_apart
from passhat.reporters.headline import is_above
from passhat.stats.estimate import Estimate

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import MoreRuns


def next_steps(
    system: SystemReport,
    results: str | None = "RESULTS",
    more_runs: MoreRuns | None = None,
    wording: Callable[[str], str] = str,
) -> list[NextStep]:
    """What to do next: never empty, and every command works on these results.

    `results` is what a command reads, quoted for a shell; None if nothing was stored. `more_runs`
    adds runs to them if they are a stored run. `wording` is that of `DisplayOptions`.
    """
    if all_errored(system):
        return [NextStep("Find out why every trial errored before you run it again.")]
    if not system.tasks.passed.any():
        first = NextStep("No trial passed: read what one of them did before you run more.")
        return _failures(system, results) or [first]
    moot = {f"bars, pass^{k}" for k in system.ks if k != headline_k(system)}
    if (system.tasks.passed == system.tasks.runs).all():
        moot.add("labels")  # nothing failed: what was shown is worth keeping before its name is
    steps = [
        _settle(replace(part, advice=wording(part.advice)), system, more_runs)
        for part in system.unsettled
        if part.what not in moot
    ]
    steps += _failures(system, results)
    return steps or _to_keep(system, results)


def only(*names: str) -> str:
    """Options that choose systems, as a shell has them.

    >>> only("o3", "my agent")
    "--only o3 --only 'my agent'"
    """
    return " ".join(f"--only {shlex.quote(name)}" for name in names)


def at_confidence(level: float) -> str:
    """The option that keeps the confidence of an answer, if it is not the usual one.

    >>> at_confidence(0.95), at_confidence(0.9)
    ('', ' --confidence 0.9')
    """
    return "" if level == CONFIDENCE else f" --confidence {level:g}"


def results_of(report: Report, system: SystemReport, results: str | None) -> str | None:
    """The results of one system: those of the report, of which it may be one of several."""
    if results is None or len(report.systems) == 1:
        return results
    return f"{results} {only(system.name)}"


def _settle(open_point: Unsettled, system: SystemReport, more_runs: MoreRuns | None) -> NextStep:
    """The advice, with the command that follows it where every task is to run as often."""
    text, more = open_point.advice, open_point.more_runs
    everywhere = len(open_point.tasks) in (0, system.design.tasks) and system.design.equal_runs
    if more_runs is None or more is None or more > WORTH_RUNNING or not everywhere:
        return NextStep(text)
    return advise(text.removesuffix("."), more_runs.up_to(system.design.most_runs + more))


def _failures(system: SystemReport, results: str | None) -> list[NextStep]:
    """Where to look. A flaky task says most: it has passing and failing runs to compare."""
    if flaky := system.tasks.labelled("flaky", 1):
        return [_look(f"Look at the failures of {_with_count(flaky[0])}", results)]
    if broken := system.tasks.labelled("broken", 1):
        count = plural(system.tasks.count("broken"), "task is", "tasks are")
        text = f"{count} broken; look at the failures of {_with_count(broken[0])}"
        return [_look(text, results)]
    return []


def _look(text: str, results: str | None) -> NextStep:
    # Without the name of the task: text from logs must not reach a shell.
    return NextStep(f"{text}.") if results is None else advise(text, f"passhat why {results}")


def _with_count(row: TaskRow) -> str:
    name = shorten_apart([row.name], LONGEST_NAME)[0]
    name = f"task {name}" if name.isdigit() else name
    return f"{name}, which passed {row.passed} of {row.runs}"


def _to_keep(system: SystemReport, results: str | None) -> list[NextStep]:
    """Where nothing is open and no task fails: gate on what was shown, and plan for more."""
    k = headline_k(system)
    shown = max((j for j in system.ks if j <= k and _is_shown(system, j)), default=None)
    steps = []
    if shown is not None:
        start = "Keep it so" if shown == k else "Keep what these trials show"
        steps.append(_by("gate", start, system, shown, results))
    if shown != k:
        start = f"See how many trials it takes to show more, {_demand(k)}"
        steps.append(_by("plan", start, system, k, results))
    return steps


def _is_shown(system: SystemReport, k: int) -> bool:
    """Whether a gate would pass too: it counts tasks that have no number as failing."""
    streak, bounds = system.pass_hat(k), interval_of(system.pass_hat(k).this_suite)
    if bounds is None or not is_above(streak):
        return False
    tasks = streak.this_suite.tasks if isinstance(streak.this_suite, Estimate) else 0
    return bounds.low * (tasks or 0) >= DEPENDABLE * system.design.tasks


def _by(command: str, start: str, system: SystemReport, k: int, results: str | None) -> NextStep:
    if results is None:
        return NextStep(f"{start}: gate it on {_demand(k)}." if command == "gate" else f"{start}.")
    option = "--require" if command == "gate" else "--gate"
    number = system.pass_hat(k).this_suite
    level = at_confidence(number.confidence) if isinstance(number, Estimate) else ""
    return advise(start, f'passhat {command} {results} {option} "{_demand(k)}"{level}')


def _demand(k: int) -> str:
    return f"pass^{k} >= {DEPENDABLE}"
