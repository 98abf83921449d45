"""Gates that may be watched: they stop as soon as the verdict is settled, at a known error rate.

The names load their modules when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.stats.sequential.best_of import BestOf as BestOf
    from passhat.stats.sequential.best_of import BestOfState as BestOfState
    from passhat.stats.sequential.comparison_gate import ComparisonGate as ComparisonGate
    from passhat.stats.sequential.comparison_gate import ComparisonState as ComparisonState
    from passhat.stats.sequential.confidence_sequences import (
        confidence_sequence as confidence_sequence,
    )
    from passhat.stats.sequential.draws import DrawTicket as DrawTicket
    from passhat.stats.sequential.equivalence_gate import EquivalenceGate as EquivalenceGate
    from passhat.stats.sequential.every_task import EveryTaskGate as EveryTaskGate
    from passhat.stats.sequential.every_task import EveryTaskState as EveryTaskState
    from passhat.stats.sequential.fixed_designs import FixedDesign as FixedDesign
    from passhat.stats.sequential.fixed_designs import fixed_design as fixed_design
    from passhat.stats.sequential.fixed_designs import wald_lower_bounds as wald_lower_bounds
    from passhat.stats.sequential.operating import (
        OperatingCharacteristics as OperatingCharacteristics,
    )
    from passhat.stats.sequential.outage_guard import GuardState as GuardState
    from passhat.stats.sequential.outage_guard import Outage as Outage
    from passhat.stats.sequential.outage_guard import OutageGuard as OutageGuard
    from passhat.stats.sequential.random_tasks import SuiteState as SuiteState
    from passhat.stats.sequential.score_gate import ScoreGate as ScoreGate
    from passhat.stats.sequential.simulation import (
        simulated_characteristics as simulated_characteristics,
    )
    from passhat.stats.sequential.suite_gate import BlockMetric as BlockMetric
    from passhat.stats.sequential.suite_gate import SuiteGate as SuiteGate
    from passhat.stats.sequential.suite_gate import block_outcomes as block_outcomes
    from passhat.stats.sequential.task_gate import TaskGate as TaskGate
    from passhat.stats.sequential.task_gate import TaskState as TaskState
    from passhat.stats.sequential.verdicts import SET_ASIDE as SET_ASIDE
    from passhat.stats.sequential.verdicts import DecisionStep as DecisionStep
    from passhat.stats.sequential.verdicts import GateResult as GateResult
    from passhat.stats.sequential.verdicts import GateVerdict as GateVerdict
    from passhat.stats.sequential.verdicts import Observed as Observed
    from passhat.stats.sequential.verdicts import SetAside as SetAside

__getattr__, __dir__, __all__ = lazy_exports(__name__)
