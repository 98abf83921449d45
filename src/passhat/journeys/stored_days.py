"""How far runs of the same suite lie apart, from the runs that the history keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.journeys.results import Results, open_store

if TYPE_CHECKING:
    from passhat.analysis.comparing.days import Days
    from passhat.history import History, Run
    from passhat.records import ErrorPolicy


def stored_days(results: Results, name: str, judged: Run | None, errors: ErrorPolicy) -> Days:
    """Of the system of the named baseline, from the newest runs of its suite."""
    from passhat.history.references import look_up_baseline

    with open_store(results.store) as history:
        run = look_up_baseline(history, name, judged=judged).run
        return days_around(history, run, judged, errors)


def days_around(
    history: History,
    run: Run,
    judged: Run | None,
    errors: ErrorPolicy,
    *,
    system: str | None = None,
) -> Days:
    """Of a system of one run (its first), from the newest runs of its suite but the judged one."""
    from passhat.analysis.comparing.days import MOST_RUNS, days_of

    alike = history.runs(suite=run.suite, limit=MOST_RUNS)
    past = [one for one in alike if one.trials and (judged is None or one.id != judged.id)]
    if system is None:
        system = next((tally.system for tally in history.tallies(run)), "")
    counted = [tally for one in reversed(past) for tally in history.tallies(one)]
    return days_of([tally for tally in counted if tally.system == system], errors)


def days_between(results: Results, errors: ErrorPolicy) -> Days | None:
    """Between two results of which one or both are runs of the history.

    None where neither is, or where both are the same run: those were not run on different days.
    """
    from passhat.history.references import look_up

    named = [name if results.names_a_run(name) else None for name in results.paths]
    if not any(named):
        return None
    with open_store(results.store) as history:
        first, second = (look_up(history, name).run if name else None for name in named)
        if first is not None and second is not None and first.id == second.id:
            return None
        baseline, judged = (first, None) if second is None else (second, first)
        assert baseline is not None, "one of the two is a run"
        return days_around(history, baseline, judged, errors)
