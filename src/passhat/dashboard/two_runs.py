"""A trial of a stored run beside the passing trial of its task that is nearest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.history import lookups

if TYPE_CHECKING:
    from passhat.analysis.explaining.side_by_side import SideBySide
    from passhat.history import History, Run
    from passhat.records import Trial

MOST_TRIALS = 50
"""Trials of a task that are read; the page shows all of them."""


def beside_passing(history: History, run: Run, trial: Trial) -> SideBySide:
    """The trial beside the nearest that passed; raises InputError where none other did."""
    from passhat.analysis.explaining.side_by_side import side_by_side
    from passhat.records import Trials

    kept = lookups.page_of_trials(history, run, trial.system, trial.task, limit=MOST_TRIALS)
    records = [one.trial for one in kept if one.trial.trial != trial.trial]
    said = {}
    for one in (trial, *records):
        text = history.transcript(run, one.system, one.task, one.trial)
        if text is not None:
            said[one.system, one.task, one.trial] = text
    trials = Trials.from_records([trial, *records])
    first = lookups.first_trial(history, run)
    return side_by_side(trials, said, trial.task, trial.trial, first_trial=first)
