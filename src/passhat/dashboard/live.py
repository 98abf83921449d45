"""A run in progress: what changed in the store since the page last heard, as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool

from passhat.dashboard.shelf import Shelf
from passhat.history import History, Run
from passhat.history.lookups import StoredProgress, TaskProgress, change_mark, read_progress
from passhat.records import Outcome
from passhat.reporters.numbers import span
from passhat.stats.sequential import confidence_sequence

POLL_SECONDS = 0.5
# A connection that says nothing for long is closed by whatever stands between.
BEAT_SECONDS = 15.0
MOST_TASKS, MOST_RECENT = 500, 20
RUNNING = "running"

_LETTERS = {str(int(outcome)): outcome.name[0] for outcome in Outcome}


@dataclass(slots=True)
class PageState:
    """What a page has been told about a run: the trials of each task, as the store writes them."""

    told: dict[tuple[str, str], str] = field(default_factory=dict)
    begun: bool = False

    def news(self, progress: StoredProgress) -> dict[str, Any]:
        """The state now: all counts, and only the tasks and trials that are new.

        Trials that ended before anybody looked are not news.
        """
        changed = [t for t in progress.tasks if self.told.get((t.system, t.task)) != t.runs]
        fresh = [
            [task.system, task.task, int(trial), _LETTERS[outcome]]
            for task in (changed if self.begun else ())
            for trial, outcome in self._fresh(task)
        ]
        self.begun = True
        self.told |= {(task.system, task.task): task.runs for task in changed}
        systems = _counts(progress)
        return {
            "status": progress.status,
            "launched": progress.launched,
            "done": sum(sum(counts) for counts in systems.values()),
            "systems": [[name, *counts] for name, counts in systems.items()],
            "intervals": {name: _interval(*counts) for name, counts in systems.items()},
            "tasks": [[t.system, t.task, _marks(t.runs)] for t in changed[:MOST_TASKS]],
            "recent": fresh[-MOST_RECENT:],
        }

    def _fresh(self, task: TaskProgress) -> Iterator[tuple[str, str]]:
        """Number and outcome of the trials that were not told yet."""
        known = set(self.told.get((task.system, task.task), "").split())
        for run in task.runs.split():
            if run not in known:
                trial, _, outcome = run.partition(":")
                yield trial, outcome


async def follow(shelf: Shelf, run: Run) -> AsyncIterator[str]:
    """Events until the run ends: "news" with what changed, at last "end"."""
    history = await run_in_threadpool(shelf.open, moving=True)
    watch, mark, spoke = PageState(), -1, time.monotonic()
    try:
        while True:
            begun = time.monotonic()
            if (now := await run_in_threadpool(change_mark, history)) != mark:
                mark, spoke = now, begun
                news = await run_in_threadpool(_news, watch, history, run)
                yield event("news", news)
                if news["status"] != RUNNING:
                    yield event("end", {"status": news["status"]})
                    return
            elif begun - spoke > BEAT_SECONDS:
                spoke = begun
                yield ": still here\n\n"
            # A large run takes longer to read; then it is read less often.
            await anyio.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - begun)))
    finally:
        history.close()


def event(name: str, data: Any) -> str:
    r"""One server-sent event; JSON has no line break that could end it early.

    >>> event("news", {"a": "x\n\ny"})
    'event: news\ndata: {"a": "x\\n\\ny"}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _news(watch: PageState, history: History, run: Run) -> dict[str, Any]:
    return watch.news(read_progress(history, run))


def _counts(progress: StoredProgress) -> dict[str, list[int]]:
    """Passed, failed and errored of each system."""
    found: dict[str, list[int]] = {}
    for task in progress.tasks:
        counts = found.setdefault(task.system, [0, 0, 0])
        for i, number in enumerate((task.passed, task.failed, task.errored)):
            counts[i] += number
    return found


def _interval(passed: int, failed: int, errored: int) -> str:
    """The pass rate's interval in percent; it holds at every look at once, for it is watched."""
    return span(confidence_sequence(passed + failed + errored, passed), digits=0)


def _marks(runs: str) -> str:
    """The runs of a task by number, as P, F and E."""
    pairs = (run.split(":") for run in runs.split())
    by_number = sorted((int(trial), outcome) for trial, outcome in pairs)
    return "".join(_LETTERS[outcome] for _, outcome in by_number)
