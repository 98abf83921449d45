"""From what was observed of an attempt to its row in the table of trials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

from passhat.dataclass import dataclass, replace
from passhat.errors import RunError
from passhat.records import (
    CheckResult,
    CommandSystem,
    Expectation,
    Grade,
    HttpSystem,
    ModelSystem,
    Observation,
    Outcome,
    Pairing,
    PythonSystem,
    Step,
    System,
    Task,
    Ticket,
    ToolCall,
    Trial,
)
from passhat.records.suite import TARGETS, target_root
from passhat.runner.agents.conversation import Conversation, transcript
from passhat.runner.agents.messages import is_amount
from passhat.runner.agents.reported import ANSWERS, TELLING
from passhat.runner.faults import reaction
from passhat.runner.graders.matches import VALUE_MATCHERS
from passhat.runner.memory import json_bytes
from passhat.runner.processes import exit_sentence

Grader = Callable[[Task, Observation], Awaitable[Grade]]
"""Grades an observation by the expectations of a task."""

CUT_SHORT = frozenset({"timeout", "budget"})
"""Ways to end that are failures of the agent, whatever it did before."""

LONGEST_TEXT = 20_000


@dataclass(slots=True, kw_only=True)
class Result:
    """The result of one attempt: an observation and its grade, or an error."""

    prompt: str = ""
    seen: Observation = field(default_factory=Observation)
    grade: Grade | None = None
    error: str | None = None
    seconds: float | None = None
    conversation: Conversation | None = None
    steps: list[tuple[str, Grade]] = field(default_factory=list)

    def row(
        self, pairing: Pairing, ticket: Ticket, *, seed: int, started: str | None = None
    ) -> Trial:
        """The trial, as it goes into the table."""
        seen, usage = self.seen, self.seen.usage
        total = seen.reported.get("tokens")
        if is_amount(total) or (usage is not None and not is_amount(usage.total)):
            usage = None  # only the total is known, or the counts add up to more than any total
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
            tokens=total if is_amount(total) else None,
            cost=seen.cost,
            seconds=self.seconds if seen.seconds is None else seen.seconds,
            turns=seen.turns or None,
            tool_calls=len(seen.tool_calls),
            tools=tuple(dict.fromkeys(call.name for call in seen.tool_calls)),
            level=pairing.task.level,
            family=pairing.task.family,
            weight=pairing.task.weight,
            tags=(*pairing.task.tags, *self._marks()),
            error=self.error,
            started=started,
        )

    def transcript(self, task: Task) -> str:
        """The conversation and the reasons for its grade, as JSON text."""
        seen, messages = self.seen, self._messages()
        parts: dict[str, Any] = {
            "stop_reason": seen.stop_reason,
            "messages": messages,
            "answer": None if messages else seen.answer[-LONGEST_TEXT:],
            "stderr": seen.stderr[-LONGEST_TEXT:],
            "exit_code": seen.exit_code,
            "checks": self.grade.details if self.grade else None,
            "faults": self.conversation.faults if self.conversation else None,
            "error": self.error,
            "expected_tool": task.right_tool,
        }
        kept = {key: value for key, value in parts.items() if value not in (None, "", [], ())}
        return json_bytes(kept).decode()

    def spoken(self) -> str:
        """The conversation as JSON text, for a judge."""
        return json_bytes(self._messages()).decode()

    def _messages(self) -> list[dict[str, Any]]:
        """The conversation: ours, or as the agent reports it, or put together from its calls."""
        if self.conversation is not None:
            return transcript(self.conversation.messages)
        seen = self.seen
        said = [{k: v for k, v in m.items() if k != "call_id"} for m in seen.messages]
        if not said and not seen.tool_calls:
            return []
        said = said or [{"role": "user", "text": self.prompt}]
        if not any(message.get("calls") for message in said):
            said += [turn for call in seen.tool_calls for turn in _call_turns(call)]
        answer = seen.answer[-LONGEST_TEXT:]
        if answer and not any(answer in str(message.get("text")) for message in said[1:]):
            said.append({"role": "assistant", "text": answer})
        return said

    def _marks(self) -> tuple[str, ...]:
        """Tags: the steps that passed, the faults injected, and what the agent did next."""
        words = {True: "passed", False: "failed"}
        marks = [f"step-{words[grade.passed]}:{name}" for name, grade in self.steps]
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
    timeout: float | None = None,
) -> Grade:
    """How an attempt did: by its steps, its expectations, its own score, or its choice of tool."""
    grade = _after_crash(await _grade(pairing, seen, grader, steps), pairing, seen)
    if seen.stop_reason not in CUT_SHORT:
        return grade
    limit = f" of {timeout:g} s" if seen.stop_reason == "timeout" and timeout else ""
    reason = _failed_check("stop_reason", f"stopped by its {seen.stop_reason}{limit}")
    return replace(grade, passed=False, details=(reason, *grade.details))


async def judge_step(pairing: Pairing, step: Step, seen: Observation, grader: Grader) -> Grade:
    """How one step of a chain did."""
    task = pairing.task
    if step.expect:
        _check_answered(pairing.system, step.expect, seen)
        alone = replace(task, prompt=step.prompt, expect=step.expect, steps=())
        grade = await grader(alone, seen)
    else:
        done = seen.stop_reason not in CUT_SHORT
        score = float(done) if seen.score is None else seen.score
        grade = Grade(score=score, passed=done and score >= task.pass_score)
    return _after_crash(grade, pairing, seen)


def joined(before: Observation, latest: Observation) -> Observation:
    """Two steps of an attempt as one observation: the latest answer, and all that was spent."""
    usages = [usage for usage in (before.usage, latest.usage) if usage is not None]
    costs = [cost for cost in (before.cost, latest.cost) if cost is not None]
    return replace(
        latest,
        tool_calls=(*before.tool_calls, *latest.tool_calls),
        usage=sum(usages[1:], usages[0]) if usages else None,
        cost=sum(costs) if costs else None,
        turns=before.turns + latest.turns,
        messages=(*before.messages, *latest.messages),
    )


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
        _check_answered(system, task.expect, seen)
        return await grader(task, seen)
    if seen.score is not None:
        return Grade(score=seen.score, passed=seen.score >= task.pass_score)
    if task.tool_selection is not None:
        chosen = any(call.name == task.tool_selection.expected_tool for call in seen.tool_calls)
        return Grade(score=float(chosen), passed=chosen)
    if isinstance(system, ModelSystem) or seen.stop_reason in CUT_SHORT:
        return Grade(score=1.0, passed=True)
    keys = ", ".join(map(str, seen.reported)) or "nothing"
    raise RunError(
        f"{system.name} does not say whether it succeeded (it returned: {keys}): return passed "
        "or score, or add expect: to the task"
    )


def _check_answered(system: System, expected: Sequence[Expectation], seen: Observation) -> None:
    """Raise an error for a report whose answer is under a key that passhat does not know.

    If the suite says what to read, or no expectation looks at the answer, any keys are right.
    """
    function = isinstance(system, PythonSystem)
    if not function and not (isinstance(system, HttpSystem) and not system.reads):
        return
    keys = seen.reported.keys()
    if not keys or seen.answer or keys & {*TELLING, "tool_calls"}:
        return
    if any(_reads_answer(one) for one in expected):
        raise RunError(
            f"{system.name} gives no answer (it returned: {', '.join(map(str, keys))}): return a "
            f"text, or one of {', '.join(ANSWERS)}"
        )


def _reads_answer(one: Expectation) -> bool:
    looks = one.matcher in VALUE_MATCHERS or one.matcher in ("judge", "snapshot")
    return looks and TARGETS.get(target_root(one.target)) == "answer"


def _after_crash(grade: Grade, pairing: Pairing, seen: Observation) -> Grade:
    """The grade of a program that exited with an error: a failure, whatever it printed before."""
    task, system, code = pairing.task, pairing.system, seen.exit_code
    if not isinstance(system, CommandSystem) or code is None or code in system.exit_codes:
        return grade
    if system.outcome == "expect" or any(_speaks_of_exit(one.target) for one in task.expect):
        return grade
    check = _failed_check("exit_code", exit_sentence(code, seen.stderr))
    return Grade(score=0.0, passed=False, details=(check, *grade.details))


def _failed_check(target: str, message: str) -> CheckResult:
    """A reason for a failure that is no expectation, and has no weight in the score."""
    return CheckResult(target=target, matcher="one_of", score=0.0, weight=0.0, message=message)


def _speaks_of_exit(target: str) -> bool:
    return target.removeprefix("conversation.") == "exit_code"


def _call_turns(call: ToolCall) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "calls": [{"name": call.name, "arguments": call.arguments}]}
    if call.result is not None or call.error is not None:
        text = str(call.result if call.error is None else call.error)[-LONGEST_TEXT:]
        turn = {"role": "tool", "name": call.name, "text": text}
        yield turn | ({"is_error": True} if call.error is not None else {})
