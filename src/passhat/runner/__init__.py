"""Running trials: agents, models, MCP servers; bounded, durable, resumable."""

from passhat.runner.journal import Journal, MemoryJournal
from passhat.runner.run import RunResult, run_trials
from passhat.runner.schedule import Allocation, FixedRuns

__all__ = ["Allocation", "FixedRuns", "Journal", "MemoryJournal", "RunResult", "run_trials"]
