"""The trials of a run reduced to counts inside the database: only sums per task leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passhat.dataclass import dataclass
from passhat.history.runs import Run, sources_of
from passhat.records.trial import FEATURES, Outcome

# numpy is loaded when a run is counted: a page that only lists runs does not need it.
if TYPE_CHECKING:
    from passhat.history.database import Database
    from passhat.records import FeatureSums, Source, Tally

OUTCOMES = tuple(map(int, Outcome))

Pair = tuple[int, int]
"""A system and a task, by the number of their names."""

_COUNTS = """
SELECT s.text, t.text, x.* FROM (
  SELECT system, task, min(sequence), count(*) FILTER (WHERE outcome = 1),
  count(*) FILTER (WHERE outcome = 0), count(*) FILTER (WHERE outcome = 2),
  coalesce(sum(score) FILTER (WHERE outcome <> 2), 0.0),
  coalesce(sum(score * score) FILTER (WHERE outcome <> 2), 0.0),
  avg(weight), count(family)
FROM trials WHERE run = ? GROUP BY system, task) x
JOIN names s ON s.id = x.system JOIN names t ON t.id = x.task
"""
_FEATURE = "count({0}), coalesce(sum({0}), 0.0), coalesce(sum({0} * {0}), 0.0)"
_FEATURES = (
    f"SELECT system, task, outcome, {', '.join(map(_FEATURE.format, FEATURES))} "  # noqa: S608  our names
    "FROM trials WHERE run = ? GROUP BY system, task, outcome"
)
# As in a table of trials, the last trial of a task that names a family decides.
_FAMILIES = """
SELECT x.system, x.task, x.family FROM trials x JOIN (
  SELECT system, task, max(sequence) AS last FROM trials
  WHERE run = ?1 AND family IS NOT NULL GROUP BY system, task) y
ON x.system = y.system AND x.task = y.task AND x.sequence = y.last WHERE x.run = ?1
"""


def count_in_database(database: Database, run: Run, *, features: bool = False) -> list[Tally]:
    """Counts per task of each system of a run, as the table of its trials would have them."""
    rows = database.execute(_COUNTS, (run.id,)).fetchall()
    counts = {(system, task): row for _, _, system, task, *row in rows}
    # Tasks and systems each in the order in which they first occur.
    order = sorted(counts, key=lambda pair: counts[pair][0])
    tasks = dict.fromkeys(task for _, task in order)
    named = any(row[-1] for row in counts.values())
    read = _Reduced(
        names={row[i + 2]: row[i] for row in rows for i in (0, 1)},
        counts=counts,
        sums=_feature_rows(database, run) if features else {},
        families=_families(database, run) if named else {},
        sources=sources_of(run),
    )
    return [
        read.tally([(system, task) for task in tasks if (system, task) in counts])
        for system in dict.fromkeys(system for system, _ in order)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reduced:
    """The sums of a run that the database computed."""

    names: Mapping[int, str]
    counts: Mapping[Pair, Sequence[Any]]
    sums: Mapping[tuple[int, int, int], Sequence[Any]]
    families: Mapping[Pair, str]
    sources: tuple[Source, ...]

    def tally(self, pairs: Sequence[Pair]) -> Tally:
        """The counts of one system, of these tasks."""
        import numpy as np

        from passhat.records import Tally
        from passhat.records.tally import significant

        rows = [self.counts[pair] for pair in pairs]
        _, passed, failed, errored, total, squares, weight, _ = zip(*rows, strict=True)
        weighted = any(one is not None for one in weight)
        return Tally(
            system=self.names[pairs[0][0]],
            tasks=tuple(self.names[task] for _, task in pairs),
            passed=np.array(passed, dtype=np.int64),
            failed=np.array(failed, dtype=np.int64),
            errored=np.array(errored, dtype=np.int64),
            score_total=significant(np.array(total, dtype=np.float64)),
            score_squares=significant(np.array(squares, dtype=np.float64)),
            features=self._features(pairs) if self.sums else {},
            sources=self.sources,
            family=tuple(map(self.families.get, pairs)) if self.families else None,
            weight=np.array([1.0 if w is None else w for w in weight]) if weighted else None,
        )

    def _features(self, pairs: Sequence[Pair]) -> dict[str, FeatureSums]:
        """Sums of the features that any trial has, by outcome and task."""
        import numpy as np

        from passhat.records import FeatureSums
        from passhat.records.tally import significant

        none = [0] * (3 * len(FEATURES))
        cells = np.array(
            [[self.sums.get((*pair, outcome), none) for pair in pairs] for outcome in OUTCOMES],
            dtype=np.float64,
        )
        found = {}
        for place, name in enumerate(FEATURES):
            count, total, squares = (cells[:, :, 3 * place + i] for i in range(3))
            if count.any():
                found[name] = FeatureSums(
                    count=count.astype(np.int64),
                    total=significant(total),
                    squares=significant(squares),
                )
        return found


def _feature_rows(database: Database, run: Run) -> dict[tuple[int, int, int], Sequence[Any]]:
    rows = database.execute(_FEATURES, (run.id,))
    return {(system, task, outcome): sums for system, task, outcome, *sums in rows}


def _families(database: Database, run: Run) -> dict[Pair, str]:
    rows = database.execute(_FAMILIES, (run.id,))
    return {(system, task): family for system, task, family in rows}
