"""Two runs call by call: what they share, where they differ, and what only one of them did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from passhat.analysis.explaining.divergence import differing_arguments
from passhat.analysis.explaining.normal_calls import NormalCall

Relation = Literal["same", "other result", "other arguments", "left only", "right only"]

MOST_CALLS = 1_000
"""Calls of each run that are aligned; what comes after stands alone."""

_SAME, _SAME_TOOL = (
    4,
    2,
)  # so that two calls of one tool pair up, but never at a same call's expense


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedCalls:
    """A call of the left run beside one of the right; `arguments` are those that differ."""

    left: NormalCall | None
    right: NormalCall | None
    relation: Relation
    arguments: tuple[str, ...] = ()


def align(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> tuple[AlignedCalls, ...]:
    """The calls of two runs in order, with as many alike beside each other as can be.

    Calls of the same tool may stand beside each other and calls of different tools never do
    (Needleman and Wunsch 1970, with free gaps).
    """
    shared, rest = _shared_start(left, right)
    middle = _aligned(left[shared:MOST_CALLS], right[shared:MOST_CALLS])
    start = [_pair(left[i], right[i]) for i in range(shared)]
    tail = [_alone(call, "left only") for call in left[max(shared, MOST_CALLS) :]]
    tail += [_alone(call, "right only") for call in right[max(shared, MOST_CALLS) :]]
    return (*start, *middle, *tail) if rest else tuple(start)


def first_parting(pairs: Sequence[AlignedCalls]) -> int | None:
    """The place of the first pair that is not the same; None where all are."""
    return next((i for i, pair in enumerate(pairs) if pair.relation != "same"), None)


def _shared_start(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> tuple[int, bool]:
    shared = 0
    for one, other in zip(left, right, strict=False):
        if one.key != other.key:
            break
        shared += 1
    return shared, shared < max(len(left), len(right))


def _aligned(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> list[AlignedCalls]:
    best = _best_scores(left, right)
    pairs: list[AlignedCalls] = []
    i = j = 0
    while i < len(left) and j < len(right):
        score = _score(left[i], right[j])
        if score and best[i][j] == score + best[i + 1][j + 1]:
            pairs.append(_pair(left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append(_alone(left[i], "left only"))
            i += 1
        else:
            pairs.append(_alone(right[j], "right only"))
            j += 1
    pairs += [_alone(call, "left only") for call in left[i:]]
    return pairs + [_alone(call, "right only") for call in right[j:]]


def _best_scores(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> list[list[int]]:
    """The best score that the calls from (i, j) on can reach."""
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        here, below = best[i], best[i + 1]
        for j in range(len(right) - 1, -1, -1):
            score = _score(left[i], right[j])
            apart = below[j] if below[j] > here[j + 1] else here[j + 1]
            here[j] = max(apart, score + below[j + 1]) if score else apart
    return best


def _score(one: NormalCall, other: NormalCall) -> int:
    if one.tool != other.tool:
        return 0
    return _SAME if one.key == other.key else _SAME_TOOL


def _pair(left: NormalCall, right: NormalCall) -> AlignedCalls:
    relation: Relation = "other arguments"
    if left.key == right.key:
        relation = "same" if left.error == right.error else "other result"
    return AlignedCalls(
        left=left, right=right, relation=relation, arguments=differing_arguments(left, right)
    )


def _alone(call: NormalCall, relation: Literal["left only", "right only"]) -> AlignedCalls:
    here = relation == "left only"
    return AlignedCalls(
        left=call if here else None, right=None if here else call, relation=relation
    )
