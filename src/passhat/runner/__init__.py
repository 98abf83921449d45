"""Running trials: agents, models, MCP servers; bounded, durable, resumable."""

from passhat.runner.allocation import Allocation, FixedRuns
from passhat.runner.journal import Journal, MemoryJournal
from passhat.runner.run import RunResult, run_trials

__all__ = ["Allocation", "FixedRuns", "Journal", "MemoryJournal", "RunResult", "run_trials"]
