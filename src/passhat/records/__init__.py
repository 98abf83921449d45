"""The facts: tasks, systems, trials, and the table of trials the analysis reads."""

from passhat.records.budget import Budget, Prices, RateLimit
from passhat.records.labels import Labels
from passhat.records.ledger import Answer, Entry, Finished, Ticket
from passhat.records.observation import CheckResult, Grade, Observation, TokenUsage, ToolCall
from passhat.records.secret import Secret
from passhat.records.suite import CassetteSettings, Judge, Pairing, Quarantine, Suite
from passhat.records.system import (
    SCRIPTED,
    Behaviour,
    CommandSystem,
    Fault,
    FaultKind,
    HttpServer,
    HttpSystem,
    Model,
    ModelParameters,
    ModelSystem,
    PythonSystem,
    ScriptedCall,
    Server,
    StdioServer,
    System,
    WireFormat,
)
from passhat.records.tally import FeatureSums, Tally
from passhat.records.task import Expectation, Level, Step, Task, ToolSelection
from passhat.records.trial import FEATURES, ErrorPolicy, Outcome, Trial
from passhat.records.trials import Source, Trials

__all__ = [
    "FEATURES",
    "SCRIPTED",
    "Answer",
    "Behaviour",
    "Budget",
    "CassetteSettings",
    "CheckResult",
    "CommandSystem",
    "Entry",
    "ErrorPolicy",
    "Expectation",
    "Fault",
    "FaultKind",
    "FeatureSums",
    "Finished",
    "Grade",
    "HttpServer",
    "HttpSystem",
    "Judge",
    "Labels",
    "Level",
    "Model",
    "ModelParameters",
    "ModelSystem",
    "Observation",
    "Outcome",
    "Pairing",
    "Prices",
    "PythonSystem",
    "Quarantine",
    "RateLimit",
    "ScriptedCall",
    "Secret",
    "Server",
    "Source",
    "StdioServer",
    "Step",
    "Suite",
    "System",
    "Tally",
    "Task",
    "Ticket",
    "TokenUsage",
    "ToolCall",
    "ToolSelection",
    "Trial",
    "Trials",
    "WireFormat",
]
