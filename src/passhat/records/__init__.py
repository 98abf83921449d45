"""The facts: tasks, systems, trials, and the table of trials the analysis reads.

Each name is imported when first used: a report needs no system, and a runner no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.arguments import ErrorPolicy as ErrorPolicy
    from passhat.records.ledger import Amount as Amount
    from passhat.records.ledger import Answer as Answer
    from passhat.records.ledger import CallIntent as CallIntent
    from passhat.records.ledger import CheckResult as CheckResult
    from passhat.records.ledger import Finished as Finished
    from passhat.records.ledger import Grade as Grade
    from passhat.records.ledger import Observation as Observation
    from passhat.records.ledger import Refused as Refused
    from passhat.records.ledger import Ticket as Ticket
    from passhat.records.ledger import TokenUsage as TokenUsage
    from passhat.records.ledger import ToolCall as ToolCall
    from passhat.records.ledger import UnansweredCalls as UnansweredCalls
    from passhat.records.secrets import Secret as Secret
    from passhat.records.suite import SCRIPTED as SCRIPTED
    from passhat.records.suite import Behaviour as Behaviour
    from passhat.records.suite import Budget as Budget
    from passhat.records.suite import CassetteSettings as CassetteSettings
    from passhat.records.suite import CommandSystem as CommandSystem
    from passhat.records.suite import Expectation as Expectation
    from passhat.records.suite import Fault as Fault
    from passhat.records.suite import FaultKind as FaultKind
    from passhat.records.suite import HttpServer as HttpServer
    from passhat.records.suite import HttpSystem as HttpSystem
    from passhat.records.suite import Judge as Judge
    from passhat.records.suite import Level as Level
    from passhat.records.suite import Model as Model
    from passhat.records.suite import ModelParameters as ModelParameters
    from passhat.records.suite import ModelSystem as ModelSystem
    from passhat.records.suite import Pairing as Pairing
    from passhat.records.suite import Prices as Prices
    from passhat.records.suite import PythonSystem as PythonSystem
    from passhat.records.suite import Quarantine as Quarantine
    from passhat.records.suite import RateLimit as RateLimit
    from passhat.records.suite import Resources as Resources
    from passhat.records.suite import Scenario as Scenario
    from passhat.records.suite import ScriptedCall as ScriptedCall
    from passhat.records.suite import Server as Server
    from passhat.records.suite import ServerPrompt as ServerPrompt
    from passhat.records.suite import ServerResource as ServerResource
    from passhat.records.suite import Solution as Solution
    from passhat.records.suite import StdioServer as StdioServer
    from passhat.records.suite import Step as Step
    from passhat.records.suite import Suite as Suite
    from passhat.records.suite import System as System
    from passhat.records.suite import Task as Task
    from passhat.records.suite import ToolSelection as ToolSelection
    from passhat.records.suite import User as User
    from passhat.records.suite import WireFormat as WireFormat
    from passhat.records.suite import Workspace as Workspace
    from passhat.records.tally import Categorical as Categorical
    from passhat.records.tally import FeatureSums as FeatureSums
    from passhat.records.tally import Tally as Tally
    from passhat.records.tally import merge_tallies as merge_tallies
    from passhat.records.transcript import Call as Call
    from passhat.records.transcript import Check as Check
    from passhat.records.transcript import Transcript as Transcript
    from passhat.records.transcript import Transcripts as Transcripts
    from passhat.records.transcript import Turn as Turn
    from passhat.records.trial import FEATURES as FEATURES
    from passhat.records.trial import Duplicates as Duplicates
    from passhat.records.trial import Outcome as Outcome
    from passhat.records.trial import Source as Source
    from passhat.records.trial import Trial as Trial
    from passhat.records.trials import Trials as Trials

__getattr__, __dir__, __all__ = lazy_exports(__name__, renamed={"Labels": "Categorical"})
