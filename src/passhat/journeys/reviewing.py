"""Review a change: gates, the comparison with a baseline, and why runs fail, in one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from passhat.arguments import CONFIDENCE, SEED
from passhat.errors import InputError
from passhat.journeys.gating import MARGIN, JudgedResults, baseline_name, names_baseline
from passhat.journeys.results import Names, ResultsLike, choose_systems

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.judge import GateLike
    from passhat.analysis.gates.run_answer import ChangeReview
    from passhat.records import ErrorPolicy, Suite, Transcripts, Trials

FALSE_ALARMS = 0.001
"""How often a review of an unchanged agent may fail: people ignore a check that cries wolf."""


class _Options(TypedDict):
    """What a report and its comparisons have in common."""

    confidence: float
    errors: ErrorPolicy
    seed: int


def review_change(
    results: ResultsLike,
    require: GateLike | Sequence[GateLike] = (),
    *,
    against: str | Path | None = None,
    margin: float = MARGIN,
    suite: Suite | str | Path | None = None,
    only: Names = (),
    bars: Mapping[str, float] | float | None = None,
    ks: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
    gate_confidence: float | None = None,
    errors: ErrorPolicy = "fail",
    seed: int = SEED,
    informational: bool = False,
    **terms: Any,
) -> ChangeReview:
    r"""What to tell the people who review a change.

    `against` is a baseline: results, or a run, tag or branch of the history. If no demand speaks
    of a baseline, the change passes when it is shown to be at most `margin` worse than this one,
    and fails when it is shown to be worse at all, as a suite or in one task. An unchanged agent
    fails one review in a thousand at most. `confidence` is that of the report and its comparisons,
    `gate_confidence` how sure the verdict on a demand in `require` must be; `terms` are the other
    terms of `gate_results`.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,1\nb,1,0\nb,2,1\n")
    >>> review_change(trials, "pass@1 >= 0.1").word
    'PASS'
    """
    from passhat.analysis.gates.run_answer import ChangeReview
    from passhat.analysis.reports.measure import measure

    judged = JudgedResults(results, against, transcripts=True)
    everybody, said = judged.read
    trials = choose_systems(everybody, only)
    verdicts = None
    if require or against is not None or suite is not None:
        verdicts = judged.verdicts(
            _demands(require, against, margin, systems=len(trials.systems)),
            margin=margin, suite=suite, only=only, bars=bars, errors=errors, seed=seed,
            confidence=gate_confidence, **terms,
        )  # fmt: skip
    options: _Options = {"confidence": confidence, "errors": errors, "seed": seed}
    return ChangeReview(
        report=measure(trials, ks=ks, **options),
        verdicts=verdicts,
        comparisons={} if against is None else _comparisons(trials, judged, against, options),
        baseline=None if against is None else str(against),
        explanation=_explanation(trials, said, confidence, seed),
        informational=informational,
    )


def review_demands(baseline: str, margin: float = MARGIN, *, systems: int = 1) -> list[GateLike]:
    """What a change must meet: no drop of the suite or of a task that is shown beyond luck.

    The two demands on each system share the chance of a false alarm. Between no drop and a drop by
    `margin` the first may come out either way, or stay open.
    """
    error = FALSE_ALARMS / (2 * systems)
    return [
        {"require": f"no_worse_than {baseline} by {margin:g}", "indifference": margin,
         "beta": error},
        {"require": f"no task worse than {baseline}", "beta": error},
    ]  # fmt: skip


def _demands(
    require: GateLike | Sequence[GateLike],
    against: str | Path | None,
    margin: float,
    *,
    systems: int,
) -> list[Any]:
    """The demands, and where none speaks of the baseline those of `review_demands`."""
    several = isinstance(require, Sequence) and not isinstance(require, str)
    demands: list[Any] = list(require) if several else [require]  # type: ignore[arg-type]
    if against is None or any(map(names_baseline, demands)):
        return demands
    return [*demands, *review_demands(baseline_name(against), margin, systems=systems)]


def _comparisons(
    trials: Trials, judged: JudgedResults, against: str | Path, options: _Options
) -> dict[str, Comparison]:
    """Each system against the one of its name; a single one against a single one of any name."""
    from passhat.analysis.comparing.comparison import compare

    old, days = judged.baseline(against, "against"), judged.days(against, options["errors"])
    single = len(trials.systems) == len(old.systems) == 1
    found = {}
    for name in trials.systems:
        before = old.systems[0] if single else name
        if before in old.systems:
            sides = trials.where(system=name), old.where(system=before)
            with suppress(InputError):  # no task in common: the gate says so
                found[name] = compare(*sides, days=days, **options)
    return found


def _explanation(
    trials: Trials, said: Transcripts, confidence: float, seed: int
) -> Explanation | None:
    from passhat.analysis.explaining.explain import explain

    return explain(trials, said, confidence=confidence, seed=seed) if said else None
