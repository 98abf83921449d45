"""How far runs of the same suite lie apart, from the runs that the history keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.journeys.results import Results, open_store

if TYPE_CHECKING:
    from passhat.analysis.comparing.days import Days
    from passhat.history import Run
    from passhat.records import ErrorPolicy


def stored_days(results: Results, name: str, judged: Run | None, errors: ErrorPolicy) -> Days:
    """Of the system of the named baseline, from the newest runs of its suite."""
    from passhat.analysis.comparing.days import MOST_RUNS, days_of
    from passhat.history.references import look_up_baseline

    with open_store(results.store) as history:
        run = look_up_baseline(history, name, judged=judged).run
        alike = history.runs(suite=run.suite, limit=MOST_RUNS)
        past = [one for one in alike if one.trials and (judged is None or one.id != judged.id)]
        system = next((tally.system for tally in history.tallies(run)), "")
        counted = [tally for one in reversed(past) for tally in history.tallies(one)]
    return days_of([tally for tally in counted if tally.system == system], errors)
