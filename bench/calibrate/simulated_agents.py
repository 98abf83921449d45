"""Made-up runs of a support agent: noisy calls of tools, with or without a planted cause."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from passhat.analysis.explaining.runs import (
    ComparedRuns,
    ExplainedRun,
    compared_runs,
    normalized_calls,
)
from passhat.records import Outcome
from passhat.records.transcript import Call, Transcript, Turn

SHARE = 0.5
"""How many runs have the planted cause."""

_AMOUNTS = (20, 35, 50, 80, 120)


@dataclass(slots=True, kw_only=True)
class Draft:
    """The calls of a run while it is made up: tool, arguments, and what comes back."""

    calls: list[tuple[str, dict[str, object], str]] = field(default_factory=list)
    stop_reason: str = "done"

    def place(self, tool: str) -> int:
        return next(i for i, (name, _, _) in enumerate(self.calls) if name == tool)


Plant = Callable[[Draft, Generator], None]


def omitted(draft: Draft, rng: Generator) -> None:
    """The order is refunded without being looked at."""
    draft.calls = [call for call in draft.calls if call[0] != "get_order"]


def wrong_value(draft: Draft, rng: Generator) -> None:
    """The refund goes to a voucher."""
    draft.calls[draft.place("refund")][1]["method"] = "voucher"


def extra(draft: Draft, rng: Generator) -> None:
    """The order is also cancelled."""
    arguments = draft.calls[draft.place("refund")][1]
    draft.calls.append(("cancel_order", {"order": arguments["order"]}, "ok"))


def unmended(draft: Draft, rng: Generator) -> None:
    """The refund meets an error, and nobody tries again."""
    place = draft.place("refund")
    draft.calls[place] = (*draft.calls[place][:2], f"Error: payment {rng.integers(999)} refused")


def repeated(draft: Draft, rng: Generator) -> None:
    """The refund is made twice."""
    place = draft.place("refund")
    draft.calls.insert(place, draft.calls[place])


def stopped(draft: Draft, rng: Generator) -> None:
    """The agent runs out of turns."""
    draft.stop_reason = "max_turns"


SHARED_CAUSES: tuple[Plant, ...] = (omitted, wrong_value, extra, unmended, repeated, stopped)


def wrong_amount(draft: Draft, rng: Generator) -> None:
    """The refund is of an amount that is wrong for this task: any but the right one."""
    arguments = draft.calls[draft.place("refund")][1]
    arguments["amount"] = int(rng.choice([a for a in _AMOUNTS if a != arguments["amount"]]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationModel:
    """Runs to compare, and which of them have the planted cause."""

    compared: ComparedRuns
    planted: np.ndarray[tuple[int], np.dtype[np.bool_]]


def simulate_runs(
    tasks: int,
    runs: int,
    rng: Generator,
    *,
    plant: Plant | None = None,
    share: float = SHARE,
    fails: tuple[float, float] = (0.5, 0.5),
    planted_tasks: int | None = None,
) -> SimulationModel:
    """Runs of several tasks; `fails` are the chances of failing with the cause and without."""
    every: list[ExplainedRun] = []
    marked: set[tuple[str, int]] = set()
    for task in range(tasks):
        amount = int(rng.choice(_AMOUNTS))
        for trial in range(runs):
            draft = _ordinary(task, amount, rng)
            here = planted_tasks is None or task < planted_tasks
            has_cause = plant is not None and here and rng.random() < share
            if plant is not None and has_cause:
                plant(draft, rng)
                marked.add((f"task {task}", trial))
            failed = rng.random() < fails[0 if has_cause else 1]
            every.append(_run(draft, task, trial, failed=failed))
    compared = compared_runs(every)
    planted = np.array([(run.task, run.trial) in marked for run in compared.runs], dtype=bool)
    return SimulationModel(compared=compared, planted=planted)


def _ordinary(task: int, amount: int, rng: Generator) -> Draft:
    """What a run does anyway, with all that differs from run to run by chance."""
    user, order = {"user": f"user_{task}"}, {"order": f"order-{task}-{7 * task + 3}"}
    calls: list[tuple[str, dict[str, object], str]] = []
    if rng.random() < 0.15:
        calls.append(("get_user", dict(user), "Error: timeout after 30 s"))
    calls.append(("get_user", dict(user), "ok"))
    if rng.random() < 0.6:
        calls.append(("list_orders", dict(user), "ok"))
    calls.append(("get_order", dict(order), "ok"))
    if rng.random() < 0.5:
        topic = str(rng.choice(["returns", "fees", "shipping"]))
        calls.append(("search_policy", {"topic": topic}, "ok"))
    if rng.random() < 0.3 and len(calls) > 2:
        i = int(rng.integers(len(calls) - 1))
        calls[i], calls[i + 1] = calls[i + 1], calls[i]
    calls.append(("refund", {**order, "amount": amount, "method": "card"}, "ok"))
    if rng.random() < 0.5:
        calls.append(
            ("send_note", {"text": f"Dear customer, this is note {rng.integers(99)}"}, "ok")
        )
    return Draft(calls=calls)


def _run(draft: Draft, task: int, trial: int, *, failed: bool) -> ExplainedRun:
    turns = [Turn(role="user", text=f"I am user_{task}. Refund order-{task}-{7 * task + 3}.")]
    for i, (tool, arguments, result) in enumerate(draft.calls):
        call = Call(name=tool, arguments=json.dumps(arguments), id=str(i))
        turns.append(Turn(role="assistant", calls=(call,)))
        turns.append(Turn(role="tool", text=result, call_id=str(i)))
    said = Transcript(messages=tuple(turns), stop_reason=draft.stop_reason)
    return ExplainedRun(
        system="agent",
        task=f"task {task}",
        trial=trial,
        outcome=Outcome.FAILED if failed else Outcome.PASSED,
        calls=normalized_calls(said),
        transcript=said,
    )
