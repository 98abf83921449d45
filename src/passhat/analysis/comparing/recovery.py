"""How well agents recover from faults: the same tasks with and without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence, gather
from passhat.arguments import CONFIDENCE
from passhat.dataclass import short_dataclass
from passhat.records import Outcome, Trials
from passhat.stats.estimate import Estimate, Number, ratio_of
from passhat.stats.proportions import share_estimate
from passhat.stats.suite_mean import suite_estimate

STRUCK, AFTER = "fault:", "after-fault:"
"""How trials are tagged: by the faults that struck them, and by what the agent did next."""

_KS = (1, 2, 3, 5, 10)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryAt:
    """pass^k under faults against pass^k without; `score` is their ratio, 1 for full recovery."""

    k: int
    without: Number
    under: Number
    score: Number


@short_dataclass(frozen=True, slots=True, kw_only=True)
class FaultKindReport:
    """How often the trials struck by one kind of fault passed; `score` is against no faults."""

    kind: str
    trials: int
    rate: Number
    score: Number


@short_dataclass(frozen=True, slots=True, kw_only=True)
class ReactionReport:
    """What agents did after a fault, in how many trials, and how often these passed."""

    reaction: str
    trials: int
    share: Estimate
    rate: Estimate


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """One system with and without faults, on the tasks that were run both ways."""

    system: str
    tasks: int
    struck: int
    trials: int
    levels: tuple[RecoveryAt, ...]
    kinds: tuple[FaultKindReport, ...]
    reactions: tuple[ReactionReport, ...]


def measure_recovery(
    trials: Trials,
    variants: Mapping[str, str],
    *,
    ks: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[Recovery, ...]:
    """The recovery of every system in `variants`: its name, and its name under faults.

    Only the runs are random here: the tasks are the same both ways. Errored trials count as
    failures: whether the agent survives a crash is the question.

    >>> table = Trials.from_columns(
    ...     system=["bot"] * 4 + ["bot under faults"] * 4,
    ...     task=["a"] * 8,
    ...     passed=[True] * 6 + [False] * 2,
    ... )
    >>> (found,) = measure_recovery(table, {"bot": "bot under faults"}, ks=[1])
    >>> found.levels[0].score.value
    0.5
    """
    return tuple(
        _recovery(trials, clean, faulty, ks=ks, confidence=confidence)
        for clean, faulty in variants.items()
        if clean in trials.systems and faulty in trials.systems
    )


def _recovery(
    trials: Trials, clean: str, faulty: str, *, ks: Sequence[int] | None, confidence: float
) -> Recovery:
    without, under = trials.where(system=clean), trials.where(system=faulty)
    plain, broken = _shared(without, under)
    struck = int(_any_word(under, STRUCK).sum())
    words = under.words("tags")
    return Recovery(
        system=clean,
        tasks=len(plain.tasks),
        struck=struck,
        trials=len(under),
        levels=tuple(_level(plain, broken, k, confidence) for k in ks or _usual_ks(plain, broken)),
        kinds=tuple(
            _kind(without, under, word, confidence) for word in words if word.startswith(STRUCK)
        ),
        reactions=tuple(
            _reaction(under, word, struck, confidence) for word in words if word.startswith(AFTER)
        ),
    )


def _shared(one: Trials, other: Trials) -> tuple[Evidence, Evidence]:
    """Both sides on the tasks that both ran; an error counts as a failure."""
    first, second = gather(one.tally(), "fail"), gather(other.tally(), "fail")
    there = set(second.tasks)
    names = [name for name in first.tasks if name in there]
    return first.only(names), second.only(names)


def _usual_ks(*sides: Evidence) -> list[int]:
    most = min((int(side.runs.min()) for side in sides if side.tasks), default=0)
    return [k for k in _KS if k <= most] or [1]


def _pass_hat(side: Evidence, k: int, confidence: float) -> Number:
    return suite_estimate(side.runs, side.passes, k=k, confidence=confidence)


def _level(plain: Evidence, broken: Evidence, k: int, confidence: float) -> RecoveryAt:
    without, under = (_pass_hat(side, k, confidence) for side in (plain, broken))
    return RecoveryAt(k=k, without=without, under=under, score=ratio_of(under, without))


def _kind(without: Trials, under: Trials, word: str, confidence: float) -> FaultKindReport:
    rows = under.where(tag=word)
    plain, broken = (_pass_hat(side, 1, confidence) for side in _shared(without, rows))
    return FaultKindReport(
        kind=word.removeprefix(STRUCK),
        trials=len(rows),
        rate=broken,
        score=ratio_of(broken, plain),
    )


def _reaction(under: Trials, word: str, struck: int, confidence: float) -> ReactionReport:
    rows = under.where(tag=word)
    passed = int(np.count_nonzero(rows.outcome == Outcome.PASSED))
    return ReactionReport(
        reaction=word.removeprefix(AFTER),
        trials=len(rows),
        share=share_estimate(len(rows), max(struck, len(rows)), confidence=confidence),
        rate=share_estimate(passed, len(rows), confidence=confidence),
    )


def _any_word(trials: Trials, prefix: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found = np.zeros(len(trials), dtype=bool)
    for word in trials.words("tags"):
        if word.startswith(prefix):
            found |= trials.has_word("tags", word)
    return found
