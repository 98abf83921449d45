"""The store of every trial that ever ran."""

from passhat.history.journal import RunJournal
from passhat.history.runs import Checkout, Run, read_checkout
from passhat.history.store import DEFAULT_PATH, History

__all__ = ["DEFAULT_PATH", "Checkout", "History", "Run", "RunJournal", "read_checkout"]
