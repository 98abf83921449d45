"""A run in progress: what changed in the store since the page last heard, as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.concurrency import run_in_threadpool

from passhat.dashboard.shelf import Shelf
from passhat.history import History, Run
from passhat.history.lookups import Progress, change_mark, read_progress
from passhat.records import Outcome

POLL_SECONDS = 0.5
# A connection that says nothing for long is closed by whatever stands between.
BEAT_SECONDS = 15.0
MOST_TASKS, MOST_RECENT = 500, 20
RUNNING = "running"

_LETTERS = {Outcome.PASSED: "P", Outcome.FAILED: "F", Outcome.ERRORED: "E"}


@dataclass(slots=True)
class Watch:
    """What a page has been told about a run."""

    told: dict[tuple[str, str], dict[int, str]] = field(default_factory=dict)

    def news(self, progress: Progress) -> dict[str, Any]:
        """The state now: all counts, and only the tasks and trials that are new."""
        fresh: list[tuple[str, str, int, str]] = []
        for system, task, trial, outcome in progress.trials:
            runs = self.told.setdefault((system, task), {})
            letter = _LETTERS[outcome]
            if runs.get(trial) != letter:
                runs[trial] = letter
                fresh.append((system, task, trial, letter))
        changed = list(dict.fromkeys((system, task) for system, task, _, _ in fresh))
        return {
            "status": progress.status,
            "launched": progress.launched,
            "done": len(progress.trials),
            "systems": self._counts(),
            "tasks": [[*key, self.marks(key)] for key in changed[:MOST_TASKS]],
            "recent": [[system, task, trial, x] for system, task, trial, x in fresh[-MOST_RECENT:]],
        }

    def marks(self, key: tuple[str, str]) -> str:
        """The runs of a task by number, as P, F and E."""
        return "".join(letter for _, letter in sorted(self.told[key].items()))

    def _counts(self) -> list[list[Any]]:
        found: dict[str, dict[str, int]] = {}
        for (system, _), runs in self.told.items():
            counts = found.setdefault(system, {"P": 0, "F": 0, "E": 0})
            for letter in runs.values():
                counts[letter] += 1
        return [[name, counts["P"], counts["F"], counts["E"]] for name, counts in found.items()]


async def follow(shelf: Shelf, run: Run) -> AsyncIterator[str]:
    """Events until the run ends: "news" with what changed, at last "end"."""
    history = await run_in_threadpool(shelf.open)
    watch, mark, spoke = Watch(), -1, time.monotonic()
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


def _news(watch: Watch, history: History, run: Run) -> dict[str, Any]:
    return watch.news(read_progress(history, run))
