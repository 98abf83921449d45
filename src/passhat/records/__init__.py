"""The facts: tasks, systems, trials, and the table of trials the analysis reads.

Each name is imported when first used: a report needs no system, and a runner no table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.records.budget import Budget as Budget
    from passhat.records.budget import Prices as Prices
    from passhat.records.budget import RateLimit as RateLimit
    from passhat.records.budget import Resources as Resources
    from passhat.records.labels import Labels as Labels
    from passhat.records.ledger import Amount as Amount
    from passhat.records.ledger import Answer as Answer
    from passhat.records.ledger import CallIntent as CallIntent
    from passhat.records.ledger import Finished as Finished
    from passhat.records.ledger import Refused as Refused
    from passhat.records.ledger import Ticket as Ticket
    from passhat.records.ledger import UnansweredCalls as UnansweredCalls
    from passhat.records.observation import CheckResult as CheckResult
    from passhat.records.observation import Grade as Grade
    from passhat.records.observation import Observation as Observation
    from passhat.records.observation import TokenUsage as TokenUsage
    from passhat.records.observation import ToolCall as ToolCall
    from passhat.records.secret import Secret as Secret
    from passhat.records.source import Source as Source
    from passhat.records.suite import CassetteSettings as CassetteSettings
    from passhat.records.suite import Judge as Judge
    from passhat.records.suite import Pairing as Pairing
    from passhat.records.suite import Quarantine as Quarantine
    from passhat.records.suite import Suite as Suite
    from passhat.records.system import SCRIPTED as SCRIPTED
    from passhat.records.system import Behaviour as Behaviour
    from passhat.records.system import CommandSystem as CommandSystem
    from passhat.records.system import Fault as Fault
    from passhat.records.system import FaultKind as FaultKind
    from passhat.records.system import HttpServer as HttpServer
    from passhat.records.system import HttpSystem as HttpSystem
    from passhat.records.system import Model as Model
    from passhat.records.system import ModelParameters as ModelParameters
    from passhat.records.system import ModelSystem as ModelSystem
    from passhat.records.system import PythonSystem as PythonSystem
    from passhat.records.system import ScriptedCall as ScriptedCall
    from passhat.records.system import Server as Server
    from passhat.records.system import StdioServer as StdioServer
    from passhat.records.system import System as System
    from passhat.records.system import WireFormat as WireFormat
    from passhat.records.tally import FeatureSums as FeatureSums
    from passhat.records.tally import Tally as Tally
    from passhat.records.tally import merge_tallies as merge_tallies
    from passhat.records.task import Expectation as Expectation
    from passhat.records.task import Level as Level
    from passhat.records.task import ServerPrompt as ServerPrompt
    from passhat.records.task import ServerResource as ServerResource
    from passhat.records.task import Step as Step
    from passhat.records.task import Task as Task
    from passhat.records.task import ToolSelection as ToolSelection
    from passhat.records.transcript import Call as Call
    from passhat.records.transcript import Check as Check
    from passhat.records.transcript import Transcript as Transcript
    from passhat.records.transcript import Transcripts as Transcripts
    from passhat.records.transcript import Turn as Turn
    from passhat.records.trial import FEATURES as FEATURES
    from passhat.records.trial import Duplicates as Duplicates
    from passhat.records.trial import ErrorPolicy as ErrorPolicy
    from passhat.records.trial import Outcome as Outcome
    from passhat.records.trial import Trial as Trial
    from passhat.records.trials import Trials as Trials

__getattr__, __dir__, __all__ = lazy_exports(__name__)
