"""Gates that may be watched: they stop as soon as the verdict is settled, at a known error rate."""

from passhat.stats.sequential.best_of import BestOf, BestOfState
from passhat.stats.sequential.comparison_gate import ComparisonGate, ComparisonState
from passhat.stats.sequential.confidence_sequence import confidence_sequence
from passhat.stats.sequential.draws import DrawTicket
from passhat.stats.sequential.equivalence_gate import EquivalenceGate
from passhat.stats.sequential.every_task import EveryTaskGate, EveryTaskState
from passhat.stats.sequential.fixed_design import FixedDesign, fixed_design, wald_lower_bounds
from passhat.stats.sequential.operating import OperatingCharacteristics
from passhat.stats.sequential.outage_guard import GuardState, Outage, OutageGuard
from passhat.stats.sequential.random_tasks import SuiteState
from passhat.stats.sequential.score_gate import ScoreGate
from passhat.stats.sequential.simulation import simulated_characteristics
from passhat.stats.sequential.suite_gate import BlockMetric, SuiteGate, block_outcomes
from passhat.stats.sequential.task_gate import TaskGate, TaskState
from passhat.stats.sequential.verdicts import (
    SET_ASIDE,
    DecisionStep,
    GateResult,
    GateVerdict,
    Observed,
    SetAside,
)

__all__ = [
    "SET_ASIDE",
    "BestOf",
    "BestOfState",
    "BlockMetric",
    "ComparisonGate",
    "ComparisonState",
    "DecisionStep",
    "DrawTicket",
    "EquivalenceGate",
    "EveryTaskGate",
    "EveryTaskState",
    "FixedDesign",
    "GateResult",
    "GateVerdict",
    "GuardState",
    "Observed",
    "OperatingCharacteristics",
    "Outage",
    "OutageGuard",
    "ScoreGate",
    "SetAside",
    "SuiteGate",
    "SuiteState",
    "TaskGate",
    "TaskState",
    "block_outcomes",
    "confidence_sequence",
    "fixed_design",
    "simulated_characteristics",
    "wald_lower_bounds",
]
