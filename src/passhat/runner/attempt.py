"""One trial from its ticket to its row: set up, let the agent work, grade, clean up."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.dataclass import dataclass, replace
from passhat.errors import MachineError, ModelError, RunError, ServerError, ServerNeverStarted
from passhat.records import (
    Amount,
    Answer,
    CheckResult,
    CommandSystem,
    Expectation,
    Finished,
    Grade,
    HttpSystem,
    ModelSystem,
    Observation,
    Outcome,
    Pairing,
    PythonSystem,
    Step,
    Suite,
    System,
    Task,
    Ticket,
    ToolCall,
    Trial,
)
from passhat.records.ledger import CallKey, both
from passhat.records.suite import TARGETS, target_root
from passhat.records.trial import STEP_FAILED, STEP_PASSED, USED, constraint_tag, path_of
from passhat.runner.agents.agent_output import ANSWERS, TELLING, is_amount
from passhat.runner.agents.conversation import Agent, AttemptRequest, Conversation, Said, transcript
from passhat.runner.grading import Grading, grade
from passhat.runner.journal import json_bytes
from passhat.runner.matchers import VALUE_MATCHERS
from passhat.runner.models.exchange import Attachment
from passhat.runner.models.retrying import Deadline, paused
from passhat.runner.processes import exit_sentence, remove_folder
from passhat.runner.resources import ResponseCaches, RunResources, reaction, with_seed
from passhat.runner.spending import charging, trial_budget

if TYPE_CHECKING:
    from passhat.runner.gateway import Gateway
    from passhat.runner.users import SimulatedUser
    from passhat.runner.workspaces import TrialWorkspace


class Attempts:
    """Turns tickets into finished trials, with the resources of one run."""

    def __init__(
        self, suite: Suite, resources: RunResources, *, grading: Grading | None = None
    ) -> None:
        self._suite = suite
        self._resources = resources
        self._grading = Grading.of(suite, grading)
        self._pairings = {(p.system.name, p.task.name): p for p in suite.pairings}
        self._budgets = {key: trial_budget(p.task, suite) for key, p in self._pairings.items()}

    @property
    def changed_files(self) -> tuple[str, ...]:
        """The files that decide about grades and are no longer as they were before the run."""
        return self._grading.files.changed()

    @property
    def cannot_decide(self) -> bool:
        """Whether a trial was not graded because a file that decides was changed."""
        return self._grading.files.has_refused

    def pairing(self, ticket: Ticket) -> Pairing:
        """The pairing that a ticket is for."""
        return self._pairings[ticket.system, ticket.task]

    async def run(self, ticket: Ticket, answers: Mapping[int, Answer] | None = None) -> Finished:
        """Run one trial; `answers` are those of an earlier start of it."""
        pairing = self.pairing(ticket)
        request = self._request(pairing, ticket)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        clock = time.perf_counter()
        cassettes = self._resources.cassettes
        ending = cassettes.ending(request)
        try:
            result = await self._attempted(pairing, request, dict(answers or {}))
        except ServerNeverStarted:
            raise  # ends the run
        except RunError as error:
            result = Result(error=str(error), seconds=time.perf_counter() - clock)
        finally:
            remove_folder(request.workdir)
        seed = self._suite.recorded_seed(ticket.trial) if ending is None else ending["seed"]
        base, at = self._suite.conditions(pairing.task, seed)
        row = result.row(pairing, ticket, seed=seed, base=base, at=at)
        if ending is None:
            row = replace(row, started=started)
        else:
            row = replace(row, seconds=ending["seconds"])
        cassettes.finished(request, row, result.seen.stop_reason)
        redactor = self._resources.redactor
        return Finished(
            ticket=ticket,
            trial=_cleaned(row, redactor.clean),
            transcript=redactor.clean_json(result.transcript(pairing.task)),
            artefacts=result.artefacts,
        )

    def _request(self, pairing: Pairing, ticket: Ticket) -> AttemptRequest:
        task, system = pairing.task, pairing.system
        timeout = system.timeout if task.timeout is None else task.timeout
        minutes = self._budgets[ticket.system, ticket.task].max_minutes
        if minutes is not None:
            timeout = min(timeout, minutes * 60)
        return AttemptRequest(
            task=task,
            place=CallKey(*ticket.key),
            seed=self._suite.sampling_seed(pairing, ticket.trial),
            timeout=timeout,
            workdir=self._resources.scratch / str(ticket.number),
            directory=self._suite.directory,
        )

    async def _attempted(
        self, pairing: Pairing, request: AttemptRequest, answers: dict[int, Answer]
    ) -> Result:
        """Let the system work on the task, and grade what it did."""
        if isinstance(pairing.system, ModelSystem):
            return await self._conversed(pairing, pairing.system, request, answers)
        result = await self._in_workspace(pairing, request, answers)
        if not result.could_not_work:
            return result
        remove_folder(request.workdir)
        again = await self._in_workspace(pairing, request, answers, earlier=result)
        if any(gateway.has_answered for gateway in again.gateways):
            usages, costs = zip(*(gateway.taken for gateway in again.gateways), strict=True)
            usage, cost = reduce(both, usages), reduce(both, costs)
            again.seen = replace(again.seen, usage=usage, cost=cost)
        flags = [f"{BEGUN_AGAIN} {result.error}", *(again.left or {}).get("flags", ())]
        again.left = {**(again.left or {}), "flags": flags}
        return again

    async def _in_workspace(
        self,
        pairing: Pairing,
        request: AttemptRequest,
        answers: dict[int, Answer],
        *,
        earlier: Result | None = None,
    ) -> Result:
        """Let an agent that is no model work, in a fresh workspace where its task has one.

        Where an `earlier` attempt could not work, its calls are counted on, against one budget.
        """
        clock = time.perf_counter()
        result = Result(prompt=request.prompt)
        if earlier is not None:
            result.agent, result.gateways = earlier.agent, earlier.gateways
        try:
            if pairing.task.workspace is not None:
                assert isinstance(pairing.system, CommandSystem), "a suite with another is refused"
                name = f"trial-{request.workdir.name}{'-again' if earlier else ''}"
                opening = self._resources.workspaces.open(pairing.system, pairing.task, name)
                request = replace(request, workspace=await opening)
        except RunError as error:
            result.error, result.seconds = str(error), time.perf_counter() - clock
            result.left = {"stage": "setup"}
            return result
        try:
            return await self._worked(pairing, request, answers, result, clock)
        finally:
            if (workspace := request.workspace) is not None:
                clean = self._resources.redactor.clean_file
                result.artefacts = await asyncio.to_thread(workspace.artefacts, clean)
                result.left = await asyncio.to_thread(workspace.record)
                await asyncio.to_thread(workspace.close)

    async def _worked(
        self,
        pairing: Pairing,
        request: AttemptRequest,
        answers: dict[int, Answer],
        result: Result,
        clock: float,
    ) -> Result:
        """Let an agent that is no model work on the task, and grade what it did."""
        workspace = result.workspace = request.workspace
        caches = self._resources.caches(request, answers)
        grader = self._grader(request, caches, result)
        agent = result.agent = result.agent or self._resources.agent(
            pairing.system, request, caches, result.gateways.append
        )
        try:
            if pairing.task.scenario is not None:
                result.user = await self._resources.user(pairing.task, request, caches)
            await self._work(pairing, request, result, agent, grader)
        except TimeoutError:
            result.seen = replace(result.seen, stop_reason="timeout", score=0.0)
        except RunError as error:
            result.error, result.is_machines = str(error), isinstance(error, MachineError)
        # The agent's own figure is under `reported`: it is judged by what was measured.
        ending = self._resources.cassettes.ending(request)
        took = time.perf_counter() - clock if ending is None else ending["seconds"]
        if result.user is not None and ending is None:
            took -= result.user.seconds
        seen = replace(result.seen, seconds=took)
        if workspace is not None:
            try:
                await workspace.freeze()
                if _looks_at_files(pairing.task):
                    seen = replace(seen, files=await workspace.merged())
            except RunError as error:
                result.error = result.error or str(error)
        if seen.files is None and request.workdir.exists():
            seen = replace(seen, files=request.workdir)
        result.seen = seen
        result.error = result.error or seen.error
        if result.error is None:
            if workspace is not None:
                workspace.stage = "grader"
            try:
                result.grade = await judge(
                    pairing, seen, grader, steps=result.steps, timeout=request.timeout
                )
            except RunError as error:
                result.error = str(error)
        return result

    async def _work(
        self,
        pairing: Pairing,
        request: AttemptRequest,
        result: Result,
        agent: Agent,
        grader: Grader,
    ) -> None:
        """Ask the agent once, for each step until one fails, or for each message of a user."""
        user = result.user
        steps = pairing.task.steps
        if not steps and user is None:
            result.seen = await agent.attempt(request)
            return
        history: list[dict[str, str]] = []
        until = None if request.timeout is None else time.monotonic() + request.timeout

        async def say(number: int, text: str) -> Observation:
            waited = 0.0 if user is None else user.seconds
            left = None if until is None else max(0.0, until + waited - time.monotonic())
            clock = time.perf_counter()
            asked = request.for_step(number, message=text, history=history, timeout=left)
            seen = await agent.attempt(asked)
            seen = replace(seen, seconds=time.perf_counter() - clock)
            result.seen = joined(result.seen, seen) if number else seen
            result.turns.append(seen)
            history.append({"role": "user", "content": text})
            history.append({"role": "assistant", "content": seen.answer})
            if seen.files is None and request.workdir.exists():
                seen = replace(seen, files=request.workdir)
            return seen

        async def answer(number: int, text: str) -> tuple[str, str]:
            seen = await say(number, text)
            whole = replace(result.seen, files=seen.files)
            return seen.answer, await _over(pairing.task, whole, grader)

        if user is not None:
            await user.talk(answer)
            return
        for number, step in enumerate(steps):
            seen = await say(number, step.prompt)
            if seen.error is not None:
                return
            held = await judge_step(pairing, step, seen, grader)
            result.steps.append((step.name, held))
            if not held.passed:
                return

    async def _conversed(
        self,
        pairing: Pairing,
        system: ModelSystem,
        request: AttemptRequest,
        answers: dict[int, Answer],
    ) -> Result:
        caches = self._resources.caches(request, answers)
        async with self._resources.tools(system, request, caches) as tools:
            conversation = Conversation(
                model=await self._resources.model(system, request, caches),
                tools=tools,
                place=request.place,
                system=pairing.task.system_prompt or system.system_prompt or "",
                parameters=with_seed(system.model.parameters, request.seed),
                charge=charging(self._budgets[system.name, pairing.task.name]),
            )
            result = Result(conversation=conversation)
            grader = self._grader(request, caches, result)
            try:
                if pairing.task.scenario is not None:
                    result.user = await self._resources.user(pairing.task, request, caches)
                await self._converse(pairing, system, request, result, grader)
                seen = conversation.observe()
                # Only servers are given the directory.
                there = bool(system.servers) and request.workdir.exists()
                result.seen = replace(seen, files=request.workdir) if there else seen
                result.grade = await judge(
                    pairing, result.seen, grader, steps=result.steps, timeout=request.timeout
                )
            except RunError as error:
                # The exchanges until then were paid for, and belong in the row.
                result.seen, result.error = conversation.observe(), str(error)
            return result

    async def _converse(
        self,
        pairing: Pairing,
        system: ModelSystem,
        request: AttemptRequest,
        result: Result,
        grader: Grader,
    ) -> None:
        deadline = Deadline(request.timeout)
        try:
            async with deadline:
                await self._say_all(pairing, system, request, result, grader)
        except TimeoutError:
            assert result.conversation is not None
            if deadline.was_silence:
                raise ModelError(
                    f"{system.model.name}: not one byte of an answer within the "
                    f"{request.timeout:g} s of the trial (`timeout:` allows more)"
                ) from None
            if waited_for := result.conversation.waiting_for:
                raise ServerError(
                    f"no answer to the call of {waited_for} within the {request.timeout:g} s of "
                    "the trial"
                ) from None

    async def _say_all(
        self,
        pairing: Pairing,
        system: ModelSystem,
        request: AttemptRequest,
        result: Result,
        grader: Grader,
    ) -> None:
        """Say the prompt, the steps until one fails, or what a user says."""
        task, conversation = pairing.task, result.conversation
        assert conversation is not None
        max_turns = task.max_turns or system.max_turns
        # What goes before the question: the resources of servers, and images.
        before = [await conversation.read(resource) for resource in task.resources]
        if task.images:
            before.append(Said(text="", attachments=tuple(map(attached, task.images))))
        if result.user is not None:

            async def answer(number: int, text: str) -> tuple[str, str]:
                message = _joined([] if number else before, Said(text=text))
                await conversation.say(message, max_turns=max_turns)
                seen = conversation.observe()
                if system.servers and request.workdir.exists():
                    seen = replace(seen, files=request.workdir)
                return conversation.answer, await _over(task, seen, grader)

            await result.user.talk(answer)
            return
        if not task.steps:
            asked = Said(text=task.prompt)
            if task.server_prompt is not None:
                asked = await conversation.open_with(task.server_prompt)
            message = _joined(before, asked)
            await conversation.say(message, max_turns=max_turns)
            return
        for step in task.steps:
            so_far = len(conversation.calls)
            message = _joined(before, Said(text=step.prompt))
            await conversation.say(message, max_turns=max_turns)
            before = []
            seen = conversation.observe(since=so_far)
            with paused():  # a slow judge does not use up the agent's time
                held = await judge_step(pairing, step, seen, grader)
            result.steps.append((step.name, held))
            if not held.passed:
                return

    def _grader(self, request: AttemptRequest, caches: ResponseCaches, result: Result) -> Grader:
        ask = self._resources.ask(request, caches, result.judged.append)

        async def grader(task: Task, seen: Observation) -> Grade:
            means = replace(
                self._grading,
                ask=ask,
                clean=self._resources.redactor.clean,
                transcript=result.spoken,
                asked=_asked(task, result.conversation),
                workspace=result.workspace,
            )
            return await grade(task.expect, seen, pass_score=task.pass_score, grading=means)

        return grader


async def _over(task: Task, seen: Observation, grader: Grader) -> str:
    """Why a conversation with a user is over after an answer of the agent; empty if it is not."""
    assert task.scenario is not None
    if seen.error is not None or seen.stop_reason in (*CUT_SHORT, "max_turns"):
        return seen.stop_reason if seen.error is None else "error"
    if task.scenario.done is not None:
        with paused():
            held = await grader(replace(task, expect=(task.scenario.done,), pass_score=1.0), seen)
        if held.passed:
            return "done"
    return "closed" if seen.reported.get("closes") is True else ""


def _looks_at_files(task: Task) -> bool:
    """Whether a grader reads what the agent left in its workspace, and not its changes alone."""
    return any(
        expectation.matcher in ("command", "python") or target_root(expectation.target) == "files"
        for expectation in task.expectations()
    )


def _joined(before: Sequence[Said], asked: Said) -> Said:
    if not before:
        return asked
    parts = [*before, asked]
    return Said(
        text="\n\n".join(part.text for part in parts if part.text),
        attachments=tuple(each for part in parts for each in part.attachments),
    )


def _asked(task: Task, conversation: Conversation | None) -> str:
    """The question, for a judge; that of a server's prompt is known from the conversation."""
    if task.server_prompt is not None and conversation is not None:
        return "\n\n".join(m.text for m in conversation.messages if m.role == "user")
    if task.scenario is not None:
        return task.scenario.goal
    return task.prompt or "\n\n".join(step.prompt for step in task.steps)


def attached(path: Path) -> Attachment:
    """A file as an attachment for a model."""
    mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    try:
        return Attachment(mime=mime, data=base64.b64encode(path.read_bytes()).decode())
    except OSError as error:
        raise RunError(f"{path} cannot be shown to the model: {error.strerror}") from error


def _cleaned(row: Trial, clean: Callable[[str], str]) -> Trial:
    """The row without secrets: error messages, names of tools and tags may hold some."""
    if row.error is None and not row.tools and not row.tags:
        return row
    return replace(
        row,
        error=row.error and clean(row.error).encode("utf-8", "replace").decode(),
        tools=tuple(map(clean, row.tools)),
        tags=tuple(map(clean, row.tags)),
    )


# From what was observed of an attempt to its row in the table of trials.

Grader = Callable[[Task, Observation], Awaitable[Grade]]
"""Grades an observation by the expectations of a task."""

BEGUN_AGAIN = "begun again:"
"""What the remark of a trial begins with whose agent could not work, and was begun again."""

CUT_SHORT = frozenset({"timeout", "budget", "memory", "disk"})
"""Ways to end that are failures of the agent, whatever it did before."""

LONGEST_TEXT = 20_000


@dataclass(slots=True, kw_only=True)
class Result:
    """The result of one attempt: an observation and its grade, or an error."""

    prompt: str = ""
    seen: Observation = field(default_factory=Observation)
    grade: Grade | None = None
    error: str | None = None
    is_machines: bool = False
    seconds: float | None = None
    conversation: Conversation | None = None
    steps: list[tuple[str, Grade]] = field(default_factory=list)
    workspace: TrialWorkspace | None = None
    left: dict[str, Any] | None = None
    artefacts: Mapping[str, bytes] = field(default_factory=dict)
    judged: list[Amount] = field(default_factory=list)
    user: SimulatedUser | None = None
    turns: list[Observation] = field(default_factory=list)
    agent: Agent | None = None
    gateways: list[Gateway] = field(default_factory=list)

    @property
    def could_not_work(self) -> bool:
        """Whether something around an agent in a workspace kept it from working.

        The machine did, or no model has answered it. Then a second attempt may succeed.
        """
        if self.error is None or self.workspace is None or self.workspace.stage != "agent":
            return False
        if self.user is not None or self.turns:
            return False
        models = [gateway for gateway in self.gateways if gateway.has_model]
        if self.is_machines or any(model.machine_failed for model in models):
            return True
        return bool(models) and not any(model.has_answered for model in models)

    def row(
        self, pairing: Pairing, ticket: Ticket, *, seed: int, base: str | None, at: tuple[str, ...]
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
            tools=path_of([call.name for call in seen.tool_calls]),
            level=pairing.task.level,
            family=pairing.task.family,
            weight=pairing.task.weight,
            base=base,
            at=at,
            tags=(*pairing.task.tags, *self._marks(pairing.system)),
            error=self.error,
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
            "judge": self._judge_bill(),
            "user": None if self.user is None else self.user.describe(),
            "faults": self.conversation.faults if self.conversation else None,
            "workspace": self.left,
            "gateway": [kept for g in self.gateways if (kept := g.record()) is not None],
            "error": self.error,
            "expected_tool": task.right_tool,
        }
        kept = {key: value for key, value in parts.items() if value not in (None, "", [], ())}
        return json_bytes(kept).decode()

    def _judge_bill(self) -> dict[str, Any] | None:
        """What the judge took: it is no part of what the agent did, so no column has it."""
        if not self.judged:
            return None
        whole = sum(self.judged, Amount(cost=0.0))
        return {"calls": len(self.judged), "cost": whole.cost, "tokens": whole.tokens}

    def spoken(self) -> str:
        """The conversation as JSON text, for a judge, and what was changed in the workspace."""
        changed = "" if self.workspace is None else self.workspace.diff()
        turns = [{"role": "workspace", "text": changed}] if changed else []
        return json_bytes([*self._messages(), *turns]).decode()

    def _messages(self) -> list[dict[str, Any]]:
        """The conversation: ours, or as the agent reports it, or put together from its calls."""
        if self.conversation is not None:
            return transcript(self.conversation.messages)
        if self.user is not None:
            return list(_dialogue(self.user, self.turns))
        seen = self.seen
        messages = [{k: v for k, v in m.items() if k != "call_id"} for m in seen.messages]
        if not messages and not seen.tool_calls:
            return []
        messages = messages or [{"role": "user", "text": self.prompt}]
        if not any(message.get("calls") for message in messages):
            messages += [turn for call in seen.tool_calls for turn in _call_turns(call)]
        answer = seen.answer[-LONGEST_TEXT:]
        if answer and not any(answer in str(message.get("text")) for message in messages[1:]):
            messages.append({"role": "assistant", "text": answer})
        return messages

    def _marks(self, system: System) -> tuple[str, ...]:
        """Tags: the steps that passed, the faults injected, and what the agent did and used."""
        ends = {True: STEP_PASSED, False: STEP_FAILED}
        marks = [f"{ends[grade.passed]}{name}" for name, grade in self.steps]
        details = self.grade.details if self.grade is not None else ()
        if limits := [detail for detail in details if detail.constraint is not None]:
            marks.append(
                constraint_tag(str(limit.constraint) for limit in limits if not limit.passed)
            )
        if self.user is not None:
            marks += [f"user:{flag.rule}" for flag in self.user.flags]
        if self.conversation is not None:
            marks += [f"fault:{fault.partition(':')[2]}" for fault in self.conversation.faults]
            marks += [
                f"after-fault:{reaction(self.conversation.calls, index, self.seen.answer)}"
                for index in self.conversation.broken
            ]
        if isinstance(system, CommandSystem) and system.add_files:
            from passhat.runner.workspaces import added_file

            read = set().union(*(gateway.read for gateway in self.gateways))
            names = system.added_names()
            added = ((place, added_file(place, file)) for place, file in system.add_files.items())
            marks += [
                f"{USED}{names[place]}"
                for place, mark in added
                if mark.place in read or any(map(mark.is_called_by, self.seen.tool_calls))
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
    tests = (e.options for e in pairing.task.expect if e.matcher == "tests")
    late = seen.stop_reason == "timeout" and any(test.get("grade_on_timeout") for test in tests)
    if seen.stop_reason not in CUT_SHORT or late:
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
    return replace(
        latest,
        tool_calls=(*before.tool_calls, *latest.tool_calls),
        usage=both(before.usage, latest.usage),
        cost=both(before.cost, latest.cost),
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
    if any(_reads_answer(expectation) for expectation in expected):
        raise RunError(
            f"{system.name} gives no answer (it returned: {', '.join(map(str, keys))}): return a "
            f"text, or one of {', '.join(ANSWERS)}"
        )


def _reads_answer(expectation: Expectation) -> bool:
    looks = expectation.matcher in VALUE_MATCHERS or expectation.matcher in ("judge", "snapshot")
    return looks and TARGETS.get(target_root(expectation.target)) == "answer"


def _after_crash(grade: Grade, pairing: Pairing, seen: Observation) -> Grade:
    """The grade of a program that exited with an error: a failure, whatever it printed before."""
    task, system, code = pairing.task, pairing.system, seen.exit_code
    if not isinstance(system, CommandSystem) or code is None or code in system.exit_codes:
        return grade
    if task.workspace is not None and task.expect:
        return grade  # what it left there decides
    if system.outcome == "expect" or any(
        e.target.removeprefix("conversation.") == "exit_code" for e in task.expect
    ):
        return grade
    check = _failed_check("exit_code", exit_sentence(code, seen.stderr, seen.answer))
    return Grade(score=0.0, passed=False, details=(check, *grade.details))


def _failed_check(target: str, message: str) -> CheckResult:
    """A reason for a failure that is no expectation, and has no weight in the score."""
    return CheckResult(target=target, matcher="one_of", score=0.0, weight=0.0, message=message)


def _dialogue(user: SimulatedUser, turns: Sequence[Observation]) -> Iterator[dict[str, Any]]:
    """What a user and an agent said, with the agent's calls before each answer."""
    answers = iter(turns)
    for role, text in user.spoken:
        if role == "assistant":
            for call in next(answers, Observation()).tool_calls:
                yield from _call_turns(call)
        yield {"role": role, "text": text[-LONGEST_TEXT:]}


def _call_turns(call: ToolCall) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "calls": [{"name": call.name, "arguments": call.arguments}]}
    if call.result is not None or call.error is not None:
        text = str(call.result if call.error is None else call.error)[-LONGEST_TEXT:]
        turn = {"role": "tool", "name": call.name, "text": text}
        yield turn | ({"is_error": True} if call.error is not None else {})
