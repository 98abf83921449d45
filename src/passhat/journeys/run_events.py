"""The events of a run: how it was opened, then those of the runner."""

from __future__ import annotations

from collections.abc import Callable

from passhat.dataclass import dataclass
from passhat.runner.schedule import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpened:
    """A run is about to begin, and nothing has been paid for yet.

    `size` is what it may run at most, `source` where answers come from, `run` its key in the store.
    `at_most` says that gates may end it sooner. `passed` and `errored` count the trials of an
    earlier start. `faults_off` says that the suite has faults and runs without them.
    """

    suite: str
    size: str
    source: str
    run: str | None
    at_most: bool
    passed: int = 0
    errored: int = 0
    faults_off: bool = False


RunEvent = RunOpened | Event
OnRunEvent = Callable[[RunEvent], None]
