"""Numbers in, frozen results out: every statistic that passhat states.

The names load their modules when they are first used: a report needs no gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.stats.beta_binomial import BetaPrior as BetaPrior
    from passhat.stats.beta_binomial import fit_beta_binomial as fit_beta_binomial
    from passhat.stats.decay import Cascade as Cascade
    from passhat.stats.decay import DecayCurve as DecayCurve
    from passhat.stats.decay import DecaySummary as DecaySummary
    from passhat.stats.decay import SequenceDecay as SequenceDecay
    from passhat.stats.decay import cascade as cascade
    from passhat.stats.decay import containment_rate as containment_rate
    from passhat.stats.decay import decay_curve as decay_curve
    from passhat.stats.decay import decay_summary as decay_summary
    from passhat.stats.decay import extrapolate_pass_hat_k as extrapolate_pass_hat_k
    from passhat.stats.dependent_runs import Burst as Burst
    from passhat.stats.dependent_runs import RoundTests as RoundTests
    from passhat.stats.dependent_runs import SeedVariance as SeedVariance
    from passhat.stats.dependent_runs import find_bursts as find_bursts
    from passhat.stats.dependent_runs import round_tests as round_tests
    from passhat.stats.dependent_runs import seed_variance as seed_variance
    from passhat.stats.estimate import Estimate as Estimate
    from passhat.stats.estimate import Interval as Interval
    from passhat.stats.estimate import Scope as Scope
    from passhat.stats.estimate import Unavailable as Unavailable
    from passhat.stats.exact_tests import NullDistributions as NullDistributions
    from passhat.stats.multiple_testing import TaskTests as TaskTests
    from passhat.stats.multiple_testing import benjamini_hochberg as benjamini_hochberg
    from passhat.stats.multiple_testing import (
        discrete_benjamini_hochberg as discrete_benjamini_hochberg,
    )
    from passhat.stats.multiple_testing import discrete_holm as discrete_holm
    from passhat.stats.multiple_testing import holm as holm
    from passhat.stats.multiple_testing import minimum_runs as minimum_runs
    from passhat.stats.multiple_testing import score_task_tests as score_task_tests
    from passhat.stats.multiple_testing import task_tests as task_tests
    from passhat.stats.paired import PairedDifference as PairedDifference
    from passhat.stats.paired import PairedTest as PairedTest
    from passhat.stats.paired import paired_difference as paired_difference
    from passhat.stats.paired import paired_t_test as paired_t_test
    from passhat.stats.paired import signed_rank_test as signed_rank_test
    from passhat.stats.passk import pass_at_k as pass_at_k
    from passhat.stats.passk import pass_at_k_of_rate as pass_at_k_of_rate
    from passhat.stats.passk import pass_hat_k as pass_hat_k
    from passhat.stats.passk import pass_hat_k_of_rate as pass_hat_k_of_rate
    from passhat.stats.passk import plug_in_pass_hat_k as plug_in_pass_hat_k
    from passhat.stats.passk import pooled_pass_hat_k as pooled_pass_hat_k
    from passhat.stats.passk import window_pass_hat_k as window_pass_hat_k
    from passhat.stats.probability_calibration import Calibration as Calibration
    from passhat.stats.probability_calibration import calibration as calibration
    from passhat.stats.proportions import lower_bound as lower_bound
    from passhat.stats.proportions import proportion_interval as proportion_interval
    from passhat.stats.proportions import upper_bound as upper_bound
    from passhat.stats.ranking import Ranking as Ranking
    from passhat.stats.ranking import rank_systems as rank_systems
    from passhat.stats.sample_size import DetectableDifference as DetectableDifference
    from passhat.stats.sample_size import SuitePlan as SuitePlan
    from passhat.stats.sample_size import confidence_band as confidence_band
    from passhat.stats.sample_size import detectable_difference as detectable_difference
    from passhat.stats.sample_size import difference_power as difference_power
    from passhat.stats.sample_size import plan_suite as plan_suite
    from passhat.stats.sample_size import recommend_runs as recommend_runs
    from passhat.stats.sample_size import runs_for_difference as runs_for_difference
    from passhat.stats.sample_size import tasks_for_difference as tasks_for_difference
    from passhat.stats.sample_size import zero_failure_runs as zero_failure_runs
    from passhat.stats.sequential import BestOf as BestOf
    from passhat.stats.sequential import ComparisonGate as ComparisonGate
    from passhat.stats.sequential import EquivalenceGate as EquivalenceGate
    from passhat.stats.sequential import EveryTaskGate as EveryTaskGate
    from passhat.stats.sequential import GateResult as GateResult
    from passhat.stats.sequential import OutageGuard as OutageGuard
    from passhat.stats.sequential import ScoreGate as ScoreGate
    from passhat.stats.sequential import SuiteGate as SuiteGate
    from passhat.stats.sequential import TaskGate as TaskGate
    from passhat.stats.sequential import confidence_sequence as confidence_sequence
    from passhat.stats.sequential import fixed_design as fixed_design
    from passhat.stats.sufficient_statistics import TaskSums as TaskSums
    from passhat.stats.suite_mean import score_estimate as score_estimate
    from passhat.stats.suite_mean import suite_estimate as suite_estimate
    from passhat.stats.suite_mean import suite_estimates as suite_estimates
    from passhat.stats.task_labels import BarsCleared as BarsCleared
    from passhat.stats.task_labels import TaskLabels as TaskLabels
    from passhat.stats.task_labels import bars_cleared as bars_cleared
    from passhat.stats.task_labels import label_tasks as label_tasks
    from passhat.stats.trend import ChangePoint as ChangePoint
    from passhat.stats.trend import Changes as Changes
    from passhat.stats.trend import DivergingTrend as DivergingTrend
    from passhat.stats.trend import MeanSeries as MeanSeries
    from passhat.stats.trend import PassSeries as PassSeries
    from passhat.stats.trend import change_points as change_points
    from passhat.stats.trend import divergence as divergence
    from passhat.stats.variance import NoiseSources as NoiseSources
    from passhat.stats.variance import VarianceComponents as VarianceComponents
    from passhat.stats.variance import icc as icc
    from passhat.stats.variance import noise_sources as noise_sources
    from passhat.stats.variance import spearman_brown as spearman_brown
    from passhat.stats.variance import variance_components as variance_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, renamed={"NullLaws": "NullDistributions"})
