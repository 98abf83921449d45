"""Why do the runs in these results fail?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from passhat.defaults import CONFIDENCE, SEED
from passhat.errors import ArgumentError
from passhat.messages import closest, listed

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.records import Trials
    from passhat.records.transcript import Transcripts


def explain_results(
    trials: Trials,
    transcripts: Transcripts,
    *,
    task: str | None = None,
    systems: Sequence[str] = (),
    alpha: float = 0.05,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    expected: Mapping[str, str] | None = None,
) -> Explanation:
    """Why the runs of one task or of some systems fail; of all, where none is named.

    `expected` is the tool that each task should choose, where the suite says so.
    """
    from passhat.analysis.explaining.explain import explain

    chosen = _of_systems(trials, systems)
    if task is not None:
        _refuse_unknown("task", task, chosen.tasks)
        chosen = chosen.where(task=task)
    return explain(
        chosen, transcripts, alpha=alpha, confidence=confidence, seed=seed, expected=expected
    )


def _of_systems(trials: Trials, systems: Sequence[str]) -> Trials:
    if not systems:
        return trials
    import numpy as np

    for name in systems:
        _refuse_unknown("system", name, trials.systems)
    codes = [trials.system.code(name) for name in systems]
    return trials.take(np.isin(trials.system.codes, codes))


def _refuse_unknown(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = closest(name, known)
        guess = f" (did you mean {near}?)" if near else ""
        raise ArgumentError(what, f"must be one of {listed(known, 5)}{guess}", name)
