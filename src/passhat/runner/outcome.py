"""From what was seen of an attempt to the row that says how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from passhat.records import (
    CheckResult,
    CommandSystem,
    Grade,
    Observation,
    Outcome,
    Pairing,
    Step,
    Task,
    Ticket,
    Trial,
)
from passhat.runner.agents.command import exit_sentence
from passhat.runner.agents.conversation import Conversation, transcript
from passhat.runner.faults import reaction

Grader = Callable[[Task, Observation], Awaitable[Grade]]
"""Holds an observation against the expectations of a task."""

CUT_SHORT = frozenset({"timeout", "budget"})
"""Ways to end that are the agent's own doing, and a failure whatever it did before."""

LONGEST_TEXT = 20_000


@dataclass(slots=True, kw_only=True)
class Result:
    """What one attempt brought: an observation and its grade, or an error."""

    seen: Observation = field(default_factory=Observation)
    grade: Grade | None = None
    error: str | None = None
    seconds: float | None = None
    conversation: Conversation | None = None
    steps: list[tuple[str, Grade]] = field(default_factory=list)

    def row(self, pairing: Pairing, ticket: Ticket, *, seed: int) -> Trial:
        """The trial, as it goes into the table."""
        seen, usage = self.seen, self.seen.usage
        total = seen.reported.get("tokens")
        if isinstance(total, int | float):
            usage = None  # it told no more than the total
        outcome = Outcome.ERRORED
        if self.grade is not None:
            outcome = Outcome.PASSED if self.grade.passed else Outcome.FAILED
        return Trial(
            system=ticket.system,
            task=ticket.task,
            trial=ticket.trial,
            outcome=outcome,
            score=None if self.grade is None else self.grade.score,
            seed=seed,
            tokens_in=None if usage is None else usage.tokens_in,
            tokens_out=None if usage is None else usage.tokens_out,
            tokens=total if isinstance(total, int | float) else None,
            cost=seen.cost,
            seconds=self.seconds if seen.seconds is None else seen.seconds,
            turns=seen.turns or None,
            tool_calls=len(seen.tool_calls),
            tools=tuple(dict.fromkeys(call.name for call in seen.tool_calls)),
            level=pairing.task.level,
            tags=(*pairing.task.tags, *self._marks()),
            error=self.error,
        )

    def transcript(self) -> str:
        """What was said and why it was graded as it was, as JSON text."""
        seen = self.seen
        parts: dict[str, Any] = {
            "stop_reason": seen.stop_reason,
            "messages": transcript(self.conversation.messages) if self.conversation else None,
            "answer": seen.answer[-LONGEST_TEXT:] if self.conversation is None else None,
            "stderr": seen.stderr[-LONGEST_TEXT:],
            "exit_code": seen.exit_code,
            "checks": self.grade.details if self.grade else None,
            "faults": self.conversation.faults if self.conversation else None,
            "error": self.error,
        }
        kept = {key: value for key, value in parts.items() if value not in (None, "", [], ())}
        return msgspec.json.encode(kept, enc_hook=str).decode()

    def _marks(self) -> tuple[str, ...]:
        """Tags that say which steps held, which faults struck, and what the agent did next."""
        marks = [f"step-{_word(grade)}:{name}" for name, grade in self.steps]
        if self.conversation is not None:
            marks += [f"fault:{fault.partition(':')[2]}" for fault in self.conversation.faults]
            marks += [
                f"after-fault:{reaction(self.conversation.calls, index, self.seen.answer)}"
                for index in self.conversation.broken
            ]
        return tuple(dict.fromkeys(marks))


async def judge(
    pairing: Pairing,
    seen: Observation,
    grader: Grader,
    *,
    steps: Sequence[tuple[str, Grade]] = (),
) -> Grade:
    """How an attempt did: by its steps, its expectations, its own score, or its choice of tool."""
    grade = _after_crash(await _grade(pairing, seen, grader, steps), pairing, seen)
    return replace(grade, passed=False) if seen.stop_reason in CUT_SHORT else grade


async def judge_step(task: Task, step: Step, seen: Observation, grader: Grader) -> Grade:
    """How one step of a chain did."""
    if not step.expect:
        done = seen.stop_reason not in CUT_SHORT
        return Grade(score=float(done), passed=done)
    return await grader(replace(task, expect=step.expect, steps=()), seen)


async def _grade(
    pairing: Pairing, seen: Observation, grader: Grader, steps: Sequence[tuple[str, Grade]]
) -> Grade:
    task, system = pairing.task, pairing.system
    if task.steps:
        held = sum(grade.passed for _, grade in steps)
        details = tuple(check for _, grade in steps for check in grade.details)
        whole = Grade(score=held / len(task.steps), passed=held == len(task.steps), details=details)
        if not task.expect or not whole.passed:
            return whole
    decided = isinstance(system, CommandSystem) and system.outcome in ("exit", "json")
    if task.expect and not decided:
        return await grader(task, seen)
    if seen.score is not None:
        return Grade(score=seen.score, passed=seen.score >= task.pass_score)
    if task.tool_selection is not None:
        chosen = any(call.name == task.tool_selection.expected_tool for call in seen.tool_calls)
        return Grade(score=float(chosen), passed=chosen)
    return Grade(score=1.0, passed=True)


def _after_crash(grade: Grade, pairing: Pairing, seen: Observation) -> Grade:
    """The grade of a program that ended badly: whatever it said before, it did not get through."""
    task, system, code = pairing.task, pairing.system, seen.exit_code
    if not isinstance(system, CommandSystem) or code is None or code in system.exit_codes:
        return grade
    if system.outcome == "expect" or any(_speaks_of_exit(one.target) for one in task.expect):
        return grade
    check = CheckResult(
        target="exit_code",
        matcher="one_of",
        score=0.0,
        weight=0.0,
        message=exit_sentence(code, seen.stderr),
    )
    return Grade(score=0.0, passed=False, details=(check, *grade.details))


def _speaks_of_exit(target: str) -> bool:
    return target.removeprefix("conversation.") == "exit_code"


def _word(grade: Grade) -> str:
    return "passed" if grade.passed else "failed"
