"""The facts: tasks, systems, trials, and the table of trials the analysis reads.

Each name is imported when first used: a report needs no system, and a runner no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passhat.records.budget import Budget, Prices, RateLimit
    from passhat.records.labels import Labels
    from passhat.records.ledger import (
        Amount,
        Answer,
        Asked,
        Entry,
        Finished,
        Refused,
        Ticket,
        UnansweredCalls,
    )
    from passhat.records.observation import CheckResult, Grade, Observation, TokenUsage, ToolCall
    from passhat.records.secret import Secret
    from passhat.records.source import Source
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
    from passhat.records.transcript import (
        Call,
        Check,
        Transcript,
        TranscriptKey,
        Transcripts,
        Turn,
    )
    from passhat.records.trial import FEATURES, Duplicates, ErrorPolicy, Outcome, Trial
    from passhat.records.trials import Trials

__all__ = [
    "FEATURES",
    "SCRIPTED",
    "Amount",
    "Answer",
    "Asked",
    "Behaviour",
    "Budget",
    "Call",
    "CassetteSettings",
    "Check",
    "CheckResult",
    "CommandSystem",
    "Duplicates",
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
    "Refused",
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
    "Transcript",
    "TranscriptKey",
    "Transcripts",
    "Trial",
    "Trials",
    "Turn",
    "UnansweredCalls",
    "WireFormat",
]

_HOMES = {
    "passhat.records.budget": (
        "Budget",
        "Prices",
        "RateLimit",
    ),
    "passhat.records.labels": ("Labels",),
    "passhat.records.ledger": (
        "Amount",
        "Answer",
        "Asked",
        "Entry",
        "Finished",
        "Refused",
        "Ticket",
        "UnansweredCalls",
    ),
    "passhat.records.observation": (
        "CheckResult",
        "Grade",
        "Observation",
        "TokenUsage",
        "ToolCall",
    ),
    "passhat.records.secret": ("Secret",),
    "passhat.records.source": ("Source",),
    "passhat.records.suite": (
        "CassetteSettings",
        "Judge",
        "Pairing",
        "Quarantine",
        "Suite",
    ),
    "passhat.records.system": (
        "SCRIPTED",
        "Behaviour",
        "CommandSystem",
        "Fault",
        "FaultKind",
        "HttpServer",
        "HttpSystem",
        "Model",
        "ModelParameters",
        "ModelSystem",
        "PythonSystem",
        "ScriptedCall",
        "Server",
        "StdioServer",
        "System",
        "WireFormat",
    ),
    "passhat.records.tally": (
        "FeatureSums",
        "Tally",
    ),
    "passhat.records.task": (
        "Expectation",
        "Level",
        "Step",
        "Task",
        "ToolSelection",
    ),
    "passhat.records.transcript": (
        "Call",
        "Check",
        "Transcript",
        "TranscriptKey",
        "Transcripts",
        "Turn",
    ),
    "passhat.records.trial": (
        "FEATURES",
        "Duplicates",
        "ErrorPolicy",
        "Outcome",
        "Trial",
    ),
    "passhat.records.trials": ("Trials",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A record, imported when first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'passhat.records' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
