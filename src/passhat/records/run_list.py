"""Stored runs as a list, the newest first."""

from __future__ import annotations

from typing import TypedDict

from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, short_repr


class Row(TypedDict):
    """One run that was kept, and what its trials came to.

    `status` is running, finished, interrupted, budget, failed, or stopped where the process died;
    `owner` is the process that has a running run. `passed` counts trials; `pass_rate` is pass^1,
    the mean over the tasks of each system, and `pass_rates` that of each system by name.
    """

    run: str
    suite: str
    status: str
    owner: str | None
    started: str
    commit: str | None
    branch: str | None
    dirty: bool | None
    tags: list[str]
    systems: int
    tasks: int
    trials: int
    passed: int
    errored: int
    pass_rate: float | None
    pass_rates: dict[str, float]


@dataclass(frozen=True, slots=True)
class RunList(Displayed):
    """Runs that were kept, the newest first; `resume` continues the newest unfinished one."""

    runs: tuple[Row, ...]
    resume: str | None = None

    def __repr__(self) -> str:
        newest = [f"newest {self.runs[0]['run']} of {self.runs[0]['suite']}"] if self.runs else []
        return short_repr(f"RunList of {plural(len(self.runs), 'run')}", *newest, see=".runs")
