"""Trials that occur twice in a big table, found by a query engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passhat.errors import ReadError
from passhat.ingest.group_query import GroupQuery, whole_trials
from passhat.ingest.query_engines import VIEW, Engine, quoted
from passhat.messages import listed
from passhat.records import Labels
from passhat.records.column_names import name_parts

MOST_NUMBERS = 1_000_000
"""Runs of a task up to which the expected fingerprints are made: they take 8 bytes each."""


def check_counted_duplicates(
    engine: Engine, plan: GroupQuery, groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]
) -> None:
    """Refuse a table in which a system and task have a trial twice; `groups` are its counts."""
    if whole_trials(engine, plan) and _numbered_on(engine, groups, names):
        return
    # Gaps, or names for numbers: only looking at every trial can tell.
    given = [plan.found[name] for name in ("system", "task", "trial") if name in plan.found]
    keys = [quoted(part) for column in given for part in name_parts(engine.columns, column)]
    listing = ", ".join(keys)
    twice = engine.query(
        f"SELECT {listing}, COUNT(*) AS n FROM {VIEW} GROUP BY {listing} "  # noqa: S608 # as above
        f"HAVING COUNT(*) > 1 ORDER BY {listing} LIMIT 6"
    )
    if not twice["n"]:
        return
    shown = [" / ".join(map(str, key)) for key in zip(*list(twice.values())[:-1], strict=True)]
    raise ReadError(
        f"{plan.path}: trials occur more than once: {listed(shown, 5)}. Pass "
        "`duplicates='keep'` if they are different runs"
    )


def _numbered_on(
    engine: Engine, groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]
) -> bool:
    """Whether every task has the trials 0..n-1 or 1..n, by their fingerprint."""
    if None in groups["fingerprint"]:
        return False
    systems, tasks = names
    keys = systems.codes.astype(np.int64) * len(tasks.names) + tasks.codes
    distinct, place = np.unique(keys, return_inverse=True)
    runs = np.bincount(place, weights=groups["n"]).astype(np.int64)
    if (most := int(runs.max(initial=0))) > MOST_NUMBERS:
        return False
    found = np.zeros(distinct.size, dtype=np.uint64)
    # A fingerprint is a sum modulo 2**64, and may come with a sign.
    engine.join.at(found, place, np.array([p % 2**64 for p in groups["fingerprint"]], np.uint64))
    expected = engine.fingerprints(most + 1)
    from_one = engine.part(expected[runs + 1], expected[1])
    return bool(((found == expected[runs]) | (found == from_one)).all())
