"""The store of every trial that ever ran."""

from passhat.history.checkout import Checkout, read_checkout
from passhat.history.run_journal import RunJournal
from passhat.history.runs import Run
from passhat.history.store import DEFAULT_PATH, History

__all__ = ["DEFAULT_PATH", "Checkout", "History", "Run", "RunJournal", "read_checkout"]
