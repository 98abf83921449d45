"""Gates that may be watched: they stop as soon as the verdict is settled, at a known error rate.

The names load their modules when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.stats.sequential.comparison_gates import BestOf as BestOf
    from passhat.stats.sequential.comparison_gates import BestOfState as BestOfState
    from passhat.stats.sequential.comparison_gates import ComparisonGate as ComparisonGate
    from passhat.stats.sequential.comparison_gates import ComparisonState as ComparisonState
    from passhat.stats.sequential.comparison_gates import EquivalenceGate as EquivalenceGate
    from passhat.stats.sequential.confidence_sequences import (
        confidence_sequence as confidence_sequence,
    )
    from passhat.stats.sequential.designs import FixedDesign as FixedDesign
    from passhat.stats.sequential.designs import (
        OperatingCharacteristics as OperatingCharacteristics,
    )
    from passhat.stats.sequential.designs import PassList as PassList
    from passhat.stats.sequential.designs import default_runs as default_runs
    from passhat.stats.sequential.designs import fixed_design as fixed_design
    from passhat.stats.sequential.designs import look_levels as look_levels
    from passhat.stats.sequential.designs import look_rounds as look_rounds
    from passhat.stats.sequential.designs import pass_list as pass_list
    from passhat.stats.sequential.designs import planned_boundaries as planned_boundaries
    from passhat.stats.sequential.designs import wald_lower_bounds as wald_lower_bounds
    from passhat.stats.sequential.draws import SET_ASIDE as SET_ASIDE
    from passhat.stats.sequential.draws import DecisionStep as DecisionStep
    from passhat.stats.sequential.draws import DrawTicket as DrawTicket
    from passhat.stats.sequential.draws import GateResult as GateResult
    from passhat.stats.sequential.draws import GateVerdict as GateVerdict
    from passhat.stats.sequential.draws import GuardState as GuardState
    from passhat.stats.sequential.draws import Observed as Observed
    from passhat.stats.sequential.draws import Outage as Outage
    from passhat.stats.sequential.draws import OutageGuard as OutageGuard
    from passhat.stats.sequential.draws import SetAside as SetAside
    from passhat.stats.sequential.suite_gate import BlockMetric as BlockMetric
    from passhat.stats.sequential.suite_gate import ScoreGate as ScoreGate
    from passhat.stats.sequential.suite_gate import SuiteGate as SuiteGate
    from passhat.stats.sequential.suite_gate import SuiteState as SuiteState
    from passhat.stats.sequential.suite_gate import block_outcomes as block_outcomes
    from passhat.stats.sequential.suite_gate import (
        simulated_characteristics as simulated_characteristics,
    )
    from passhat.stats.sequential.task_gate import EveryTaskGate as EveryTaskGate
    from passhat.stats.sequential.task_gate import EveryTaskState as EveryTaskState
    from passhat.stats.sequential.task_gate import TaskGate as TaskGate
    from passhat.stats.sequential.task_gate import TaskState as TaskState

__getattr__, __dir__, __all__ = lazy_exports(__name__)
