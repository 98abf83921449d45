"""Numbers in, frozen results out: every statistic that passhat states.

The names load their modules when they are first used: a report needs no gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passhat.stats.bars import (
        BarsCleared,
        bars_cleared,
    )
    from passhat.stats.betabinomial import (
        BetaPrior,
        fit_beta_binomial,
    )
    from passhat.stats.chains import (
        Cascade,
        cascade,
        containment_rate,
    )
    from passhat.stats.decay import (
        DecayCurve,
        DecaySummary,
        decay_curve,
        decay_summary,
    )
    from passhat.stats.diverging import (
        Divergence,
        divergence,
    )
    from passhat.stats.estimate import (
        Estimate,
        Interval,
        Scope,
        Unavailable,
    )
    from passhat.stats.extrapolation import (
        extrapolate_pass_hat_k,
    )
    from passhat.stats.labels import (
        TaskLabels,
        label_tasks,
    )
    from passhat.stats.multiplicity import (
        benjamini_hochberg,
        holm,
    )
    from passhat.stats.paired import (
        PairedDifference,
        paired_difference,
    )
    from passhat.stats.paired_power import (
        DetectableDifference,
        detectable_difference,
        difference_power,
        runs_for_difference,
        tasks_for_difference,
    )
    from passhat.stats.passk import (
        pass_at_k,
        pass_hat_k,
        plug_in_pass_hat_k,
        pooled_pass_hat_k,
        window_pass_hat_k,
    )
    from passhat.stats.per_task import (
        TaskTests,
        minimum_runs,
        task_tests,
    )
    from passhat.stats.power import (
        SuitePlan,
        confidence_band,
        plan_suite,
        recommend_runs,
        zero_failure_runs,
    )
    from passhat.stats.probability_calibration import (
        Calibration,
        calibration,
    )
    from passhat.stats.proportions import (
        lower_bound,
        proportion_interval,
        upper_bound,
    )
    from passhat.stats.ranking import (
        Ranking,
        rank_systems,
    )
    from passhat.stats.run_sequences import (
        SequenceDecay,
    )
    from passhat.stats.score_mean import (
        score_estimate,
    )
    from passhat.stats.seeds import (
        SeedVariance,
        seed_variance,
    )
    from passhat.stats.sequential import (
        EveryTaskGate,
        GateResult,
        ScoreGate,
        SuiteGate,
        TaskGate,
        confidence_sequence,
        fixed_design,
    )
    from passhat.stats.series import (
        MeanSeries,
        PassSeries,
    )
    from passhat.stats.suite_mean import (
        suite_estimate,
        suite_estimates,
    )
    from passhat.stats.task_sums import (
        TaskSums,
    )
    from passhat.stats.trend import (
        ChangePoint,
        Changes,
        change_points,
    )
    from passhat.stats.variance import (
        VarianceComponents,
        icc,
        spearman_brown,
        variance_components,
    )

__all__ = [
    "BarsCleared",
    "BetaPrior",
    "Calibration",
    "Cascade",
    "ChangePoint",
    "Changes",
    "DecayCurve",
    "DecaySummary",
    "DetectableDifference",
    "Divergence",
    "Estimate",
    "EveryTaskGate",
    "GateResult",
    "Interval",
    "MeanSeries",
    "PairedDifference",
    "PassSeries",
    "Ranking",
    "Scope",
    "ScoreGate",
    "SeedVariance",
    "SequenceDecay",
    "SuiteGate",
    "SuitePlan",
    "TaskGate",
    "TaskLabels",
    "TaskSums",
    "TaskTests",
    "Unavailable",
    "VarianceComponents",
    "bars_cleared",
    "benjamini_hochberg",
    "calibration",
    "cascade",
    "change_points",
    "confidence_band",
    "confidence_sequence",
    "containment_rate",
    "decay_curve",
    "decay_summary",
    "detectable_difference",
    "difference_power",
    "divergence",
    "extrapolate_pass_hat_k",
    "fit_beta_binomial",
    "fixed_design",
    "holm",
    "icc",
    "label_tasks",
    "lower_bound",
    "minimum_runs",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "plan_suite",
    "plug_in_pass_hat_k",
    "pooled_pass_hat_k",
    "proportion_interval",
    "rank_systems",
    "recommend_runs",
    "runs_for_difference",
    "score_estimate",
    "seed_variance",
    "spearman_brown",
    "suite_estimate",
    "suite_estimates",
    "task_tests",
    "tasks_for_difference",
    "upper_bound",
    "variance_components",
    "window_pass_hat_k",
    "zero_failure_runs",
]

_HOMES = {
    "passhat.stats.bars": "BarsCleared bars_cleared",
    "passhat.stats.betabinomial": "BetaPrior fit_beta_binomial",
    "passhat.stats.chains": "Cascade cascade containment_rate",
    "passhat.stats.decay": "DecayCurve DecaySummary decay_curve decay_summary",
    "passhat.stats.diverging": "Divergence divergence",
    "passhat.stats.estimate": "Estimate Interval Scope Unavailable",
    "passhat.stats.extrapolation": "extrapolate_pass_hat_k",
    "passhat.stats.labels": "TaskLabels label_tasks",
    "passhat.stats.multiplicity": "benjamini_hochberg holm",
    "passhat.stats.paired": "PairedDifference paired_difference",
    "passhat.stats.paired_power": (
        "DetectableDifference detectable_difference difference_power runs_for_difference "
        "tasks_for_difference"
    ),
    "passhat.stats.passk": (
        "pass_at_k pass_hat_k plug_in_pass_hat_k pooled_pass_hat_k window_pass_hat_k"
    ),
    "passhat.stats.power": "SuitePlan confidence_band plan_suite recommend_runs zero_failure_runs",
    "passhat.stats.probability_calibration": "Calibration calibration",
    "passhat.stats.proportions": "lower_bound proportion_interval upper_bound",
    "passhat.stats.ranking": "Ranking rank_systems",
    "passhat.stats.score_mean": "score_estimate",
    "passhat.stats.seeds": "SeedVariance seed_variance",
    "passhat.stats.sequential": (
        "EveryTaskGate GateResult ScoreGate SuiteGate TaskGate confidence_sequence fixed_design"
    ),
    "passhat.stats.series": "MeanSeries PassSeries",
    "passhat.stats.run_sequences": "SequenceDecay",
    "passhat.stats.suite_mean": "suite_estimate suite_estimates",
    "passhat.stats.per_task": "TaskTests minimum_runs task_tests",
    "passhat.stats.task_sums": "TaskSums",
    "passhat.stats.trend": "ChangePoint Changes change_points",
    "passhat.stats.variance": "VarianceComponents icc spearman_brown variance_components",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A public name, imported when first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'passhat.stats' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
