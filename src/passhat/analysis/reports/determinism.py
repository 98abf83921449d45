"""Whether repeats agree: calls of an analysis, and runs of an agent with the same seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import Later, dataclass
from passhat.errors import ArgumentError
from passhat.records import Outcome, Trials
from passhat.records.trials import check_subject
from passhat.stats.arguments import confidence_level
from passhat.stats.estimate import THIS_SUITE, Estimate, Unavailable
from passhat.stats.proportions import share_estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """Whether several calls gave the same answer, and the first place where they did not."""

    same: bool
    calls: int
    difference: str | None = None

    def __bool__(self) -> bool:
        return self.same


def determinism_check(
    make: Callable[[], Any], *, calls: int = 2, tolerance: float = 0.0
) -> Determinism:
    """Call `make` several times and compare what comes back, bit for bit.

    With a `tolerance`, numbers may differ by that much: absolutely, or as a share of the first.

    >>> determinism_check(lambda: {"pass^3": 0.42})
    Determinism(same=True, calls=2, difference=None)
    >>> numbers = iter([[1, 2], [1, 3]])
    >>> determinism_check(lambda: next(numbers)).difference
    'call 2 differs at [1]: 3 instead of 2'
    """
    if not callable(make):
        raise ArgumentError("make", "must be a function without arguments", make)
    times = whole_number("calls", calls, least=2)
    if not 0 <= tolerance < np.inf:
        raise ArgumentError("tolerance", "must be a number from 0 on", tolerance)
    first = list(_leaves("", make()))
    for call in range(2, times + 1):
        difference = _first_difference(first, list(_leaves("", make())), tolerance)
        if difference is not None:
            return Determinism(same=False, calls=call, difference=f"call {call} {difference}")
    return Determinism(same=True, calls=times)


def seed_agreement(trials: Trials, *, confidence: float = CONFIDENCE) -> Estimate | Unavailable:
    """How often two runs of a task by a system with the same seed end alike.

    1 is what a seed promises. Errors are left out: they are not the agent's doing.

    >>> table = Trials.from_columns(task=["a"] * 4, passed=[1, 1, 1, 0], seed=[7, 7, 8, 8])
    >>> seed_agreement(table).value
    0.5
    """
    level = confidence_level(confidence)
    check_subject("trials", trials, counts=False)
    if trials.seed is None:
        return Unavailable("the trials carry no seed")
    kept = trials.seeded & (trials.outcome != Outcome.ERRORED)
    key = np.column_stack((trials.system.codes, trials.task.codes, trials.seed))[kept]
    _, group = np.unique(key, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    group, outcome, score = (
        column[order] for column in (group.ravel(), trials.outcome[kept], trials.score[kept])
    )
    again = group[1:] == group[:-1]
    pairs = int(np.count_nonzero(again))
    if not pairs:
        return Unavailable("no task was run twice with the same seed")
    alike = again & (outcome[1:] == outcome[:-1]) & (score[1:] == score[:-1])
    return share_estimate(
        int(np.count_nonzero(alike)),
        pairs,
        method="Wilson over repeats of a seed",
        confidence=level,
        scope=THIS_SUITE,
    )


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Everything inside `value` with its place, in a fixed order."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{path}[{key!r}]", part)
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            part = getattr(value, field.name)
            if field.compare or isinstance(part, Later):  # a function is no result
                yield from _leaves(f"{path}.{field.name}", part)
    elif isinstance(value, Later):
        yield from _leaves(path, value.look())
    elif isinstance(value, np.ndarray):
        yield path, (value.dtype.str, value.shape, value.tobytes())
    else:
        yield path, value


def _first_difference(
    first: list[tuple[str, Any]], other: list[tuple[str, Any]], tolerance: float
) -> str | None:
    for (path, before), (place, after) in zip(first, other, strict=False):
        if path != place:
            return f"has {place or 'a value'} where the first has {path or 'a value'}"
        if not _same(before, after, tolerance):
            if isinstance(before, tuple):
                return f"differs at {path or 'its array'}"
            return f"differs at {path or 'its value'}: {after!r} instead of {before!r}"
    if len(first) != len(other):
        return f"has {len(other)} values instead of {len(first)}"
    return None


def _same(before: Any, after: Any, tolerance: float) -> bool:
    # nan equals itself here: the same bits came out.
    if before == after or (before != before and after != after):
        return True
    if tolerance == 0:
        return False
    if isinstance(before, tuple) and isinstance(after, tuple) and before[:2] == after[:2]:
        one, other = (np.frombuffer(part[2], dtype=part[0]) for part in (before, after))
        numeric = one.dtype.kind in "iuf"
        close = numeric and np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)
        return bool(close)
    plain = all(isinstance(part, (int, float)) for part in (before, after))
    return plain and abs(before - after) <= tolerance * max(1.0, abs(before))
