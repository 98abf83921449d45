"""Trials that occur more than once: an error, different runs, or the last of each that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.errors import ArgumentError
from passhat.records.trial import Duplicates

if TYPE_CHECKING:
    from passhat.records.trials import Trials


def check_duplicates(duplicates: object) -> None:
    """Refuse a word that says nothing of trials that occur twice."""
    if duplicates not in ("error", "keep", "last"):
        raise ArgumentError("duplicates", "must be error, keep or last", duplicates)


def settled(trials: Trials, duplicates: Duplicates | None) -> Trials:
    """The trials with each system, task and number once; as they are where that is None.

    >>> from passhat.records import Trials
    >>> twice = {"task": ["a", "a"], "trial": [1, 1], "passed": [False, True]}
    >>> Trials.from_columns(twice, duplicates="last").outcome.tolist()
    [1]
    >>> Trials.from_columns(twice, duplicates="keep").trial.tolist()
    [0, 1]
    """
    if duplicates is None:
        return trials
    check_duplicates(duplicates)
    last = trials.last_of_each()
    if len(last) == len(trials):
        return trials
    if duplicates == "keep":
        return trials.renumbered()
    if duplicates == "last":
        return trials.take(last)
    twice = [f"{system} / {task} / trial {trial}" for system, task, trial in trials.duplicates()]
    raise ArgumentError(
        "trial",
        'must number the attempts of a system at a task, each once (duplicates="last" keeps the '
        f'last of each, duplicates="keep" all, as different runs); {len(twice):,} occur more often',
        twice,
    )
