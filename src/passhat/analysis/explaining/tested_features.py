"""Which properties go together with failing, each task compared with itself?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.features import KINDS, Having, RunFeature
from passhat.analysis.explaining.runs import ComparedRuns
from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.exact_tests import StratifiedLaw, stratified_law
from passhat.stats.multiple_testing import step_down_p

MOST_CLASSES = 2_000
"""Classes of properties that are tested at most: those that could give the smallest p."""

_FEWEST_RUNS = 2  # a property of one run says nothing about the others
_CHUNK = 512  # rows of outcomes whose counts are held at a time

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Association:
    """A property that goes together with failing, or with passing where `lacking` is True.

    `having` are the runs with the property (without it, where `lacking`) and `varying` all runs of
    the tasks in which runs differ in it. `p` is adjusted for every property tested.
    """

    feature: RunFeature
    lacking: bool
    p: float
    exact_p: float
    having: Mask
    varying: Mask

    def counts(self, failed: Mask) -> tuple[int, int, int, int]:
        """Failing runs with it, failing runs, passing runs with it, passing runs."""
        (bad_with, bad), (good_with, good) = (
            (int((runs & self.having).sum()), int(runs.sum()))
            for runs in (failed & self.varying, ~failed & self.varying)
        )
        return bad_with, bad, good_with, good


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Class:
    """Properties that divide the runs of every task in the same way; `column` is the first's."""

    members: tuple[RunFeature, ...]
    column: Mask
    varying: Mask
    law: StratifiedLaw


def associations(
    compared: ComparedRuns, having: Having, shuffled: Mask, *, level: float
) -> tuple[Association, ...]:
    """Every class of properties that could reach the level, the smallest p first.

    `shuffled` are the outcomes (True for failing), first as observed and then shuffled inside the
    tasks. Dropping what could not reach the level whatever the outcomes costs nothing and makes
    the others stronger (Tarone 1990).
    """
    found = _classes(compared, having, level)
    if not found:
        return ()
    p = _shuffled_p(found, shuffled)
    adjusted = step_down_p(-np.log(p, dtype=np.float32))
    answers = [
        _association(compared, one, having, (float(adjusted[i]), float(p[0, i])))
        for i, one in enumerate(found)
    ]
    return tuple(sorted(answers, key=lambda one: (one.exact_p, one.feature)))


def alike_in(given: Iterable[Association], compared: ComparedRuns) -> Counts:
    """The strata of runs of one task that are alike in the properties given."""
    parts = compared.stratum.copy()
    for other in given:
        parts = 2 * parts + other.having
    return np.unique(parts, return_inverse=True)[1].astype(np.int64)


def holds_within(
    association: Association, given: Iterable[Association], compared: ComparedRuns, *, level: float
) -> bool:
    """Whether it still goes together with failing among runs that are alike in those given."""
    strata = alike_in(given, compared)
    law = _law(association.having, strata, compared.failed)
    return law.p_of(int((association.having & compared.failed).sum())) <= level


def _classes(compared: ComparedRuns, having: Having, level: float) -> list[_Class]:
    """The classes that could reach the level."""
    sums = _Sums(compared)
    divisions: dict[bytes, list[RunFeature]] = {}
    for feature, numbers in having.items():
        if len(numbers) < _FEWEST_RUNS:
            continue
        column = _column(numbers, compared)
        varying = sums.varying(column)
        if varying.any():
            divisions.setdefault(_same_division(column, varying), []).append(feature)
    found = []
    for members in divisions.values():
        column = _column(having[members[0]], compared)
        law = _law(column, compared.stratum, compared.failed)
        if law.smallest_p <= level:
            varying = sums.varying(column)
            found.append(_Class(members=tuple(members), column=column, varying=varying, law=law))
    found.sort(key=lambda one: (one.law.smallest_p, one.members[0]))
    return found[:MOST_CLASSES]


def _column(numbers: Iterable[int], compared: ComparedRuns) -> Mask:
    column = np.zeros(len(compared.runs), dtype=bool)
    column[list(numbers)] = True
    return column


class _Sums:
    """How many runs of each task have a property, and where that differs between runs."""

    def __init__(self, compared: ComparedRuns) -> None:
        self._stratum = compared.stratum
        self._sizes = np.bincount(compared.stratum)

    def varying(self, column: Mask) -> Mask:
        """The runs of tasks in which some have the property and some do not."""
        counts = np.bincount(self._stratum, weights=column, minlength=len(self._sizes))
        return ((counts > 0) & (counts < self._sizes))[self._stratum]


def _same_division(column: Mask, varying: Mask) -> bytes:
    """Equal for properties with equal or opposite runs, in the tasks where they tell runs apart."""
    first = column[int(np.argmax(varying))]
    return np.packbits((column != first) & varying).tobytes() + np.packbits(varying).tobytes()


def _law(column: Mask, strata: Counts, failed: Mask) -> StratifiedLaw:
    sizes = np.bincount(strata)
    with_it = np.bincount(strata, weights=column, minlength=sizes.size).astype(int)
    failing = np.bincount(strata, weights=failed, minlength=sizes.size).astype(int)
    return stratified_law(zip(sizes.tolist(), with_it.tolist(), failing.tolist(), strict=True))


def _shuffled_p(found: Sequence[_Class], shuffled: Mask) -> Floats:
    """The exact p of each class under each row of outcomes, by looking it up in the class's law."""
    columns = np.array([one.column for one in found], dtype=np.float32).T
    p = np.empty((len(shuffled), len(found)))
    for start in range(0, len(shuffled), _CHUNK):
        rows = slice(start, start + _CHUNK)
        counts = np.rint(shuffled[rows].astype(np.float32) @ columns).astype(np.intp)
        for i, one in enumerate(found):
            p[rows, i] = one.law.p[counts[:, i] - one.law.fewest]
    return p


def _association(
    compared: ComparedRuns, one: _Class, having: Having, p: tuple[float, float]
) -> Association:
    bad, good = compared.failed & one.varying, ~compared.failed & one.varying
    failing_have = bool(one.column[bad].mean() >= one.column[good].mean())
    # All members divide these runs alike, so one run tells which way round each of them does.
    witness = int(np.flatnonzero(bad)[0])
    with_failing = bool(one.column[witness]) == failing_have

    def lacking(feature: RunFeature) -> bool:
        return (witness in having[feature]) != with_failing

    best = min(one.members, key=lambda feature: _simplicity(feature, lacking(feature)))
    return Association(
        feature=best,
        lacking=lacking(best),
        p=p[0],
        exact_p=p[1],
        having=(one.column == failing_have) & one.varying,
        varying=one.varying,
    )


def _simplicity(feature: RunFeature, lacking: bool) -> tuple[int, bool, bool, int, RunFeature]:
    """Smaller is simpler; a named tool says more than "a tool", and what was done than what not."""
    length = len(feature.tool) + sum(map(len, feature.detail))
    return KINDS.index(feature.kind), not feature.tool, lacking, length, feature
