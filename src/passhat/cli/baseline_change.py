"""What the page of a stored run says of its change against the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.journeys.results import Results
    from passhat.journeys.stored_runs import BaselineChange
    from passhat.reporters.baseline_words import ChangeTile


def change_of_kept_run(store: str, key: str) -> ChangeTile | None:
    """A run of one system against the run tagged `baseline`, else the one before it, if any."""
    from passhat.journeys.stored_runs import change_of_run

    return _tile(change_of_run(store, key))


def change_of_named_run(results: Results, system: str) -> ChangeTile | None:
    """The same for one system of results that name a stored run; None for files."""
    from passhat.journeys.stored_runs import change_of_results

    return _tile(change_of_results(results, system=system))


def _tile(found: BaselineChange | None) -> ChangeTile | None:
    from passhat.reporters.baseline_words import change_tile

    if found is None:
        return None
    day = found.baseline.started[:10]
    return change_tile(found.comparison, tagged=found.tagged, day=day)
