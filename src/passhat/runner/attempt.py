"""One trial from its ticket to its row: set up, let the agent work, grade, clean up."""

from __future__ import annotations

import base64
import mimetypes
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from passhat.dataclass import replace
from passhat.errors import RunError, ServerError, ServerNeverStarted
from passhat.records import (
    Answer,
    Budget,
    Finished,
    Grade,
    ModelSystem,
    Observation,
    Pairing,
    Suite,
    Task,
    Ticket,
    Trial,
)
from passhat.records.ledger import CallKey
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.agents.conversation import Charge, Conversation, Said
from passhat.runner.deadline import Deadline, excused
from passhat.runner.graders import Grading, grade
from passhat.runner.models.exchange import Attachment, Reply
from passhat.runner.outcome import Grader, Result, joined, judge, judge_step
from passhat.runner.run_resources import Memories, RunResources, with_seed
from passhat.runner.spending import RunSpending


class Attempts:
    """Turns tickets into finished trials, with the resources of one run."""

    def __init__(
        self, suite: Suite, resources: RunResources, *, grading: Grading | None = None
    ) -> None:
        self._suite = suite
        self._resources = resources
        self._grading = grading or Grading(directory=suite.directory)
        self._pairings = {(p.system.name, p.task.name): p for p in suite.pairings}
        self._budgets = {key: _budget(p.task, suite) for key, p in self._pairings.items()}

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
            if request.workdir.exists():
                shutil.rmtree(request.workdir, ignore_errors=True)
        if ending is None:
            seed = self._suite.recorded_seed(ticket.trial)
            row = result.row(pairing, ticket, seed=seed, started=started)
        else:
            recorded = result.row(pairing, ticket, seed=ending["seed"])
            row = replace(recorded, seconds=ending["seconds"])
        cassettes.finished(request, row, result.seen.stop_reason)
        redactor = self._resources.redactor
        return Finished(
            ticket=ticket,
            trial=_cleaned(row, redactor.clean),
            transcript=redactor.clean_json(result.transcript(pairing.task)),
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
        clock = time.perf_counter()
        result = Result(prompt=request.prompt)
        grader = self._grader(request, self._resources.memories(request, answers), result)
        try:
            await self._work(pairing, request, result, grader)
        except TimeoutError:
            result.seen = replace(result.seen, stop_reason="timeout", score=0.0)
        except RunError as error:
            result.error = str(error)
        seen = result.seen
        if seen.seconds is None or pairing.task.steps:
            seen = replace(seen, seconds=time.perf_counter() - clock)
        if seen.files is None and request.workdir.exists():
            seen = replace(seen, files=request.workdir)
        result.seen = seen
        result.error = result.error or seen.error
        if result.error is None:
            try:
                result.grade = await judge(
                    pairing, seen, grader, steps=result.steps, timeout=request.timeout
                )
            except RunError as error:
                result.error = str(error)
        return result

    async def _work(
        self, pairing: Pairing, request: AttemptRequest, result: Result, grader: Grader
    ) -> None:
        """Ask the agent once, or once for each step until one fails."""
        agent = self._resources.agent(pairing.system, request)
        steps = pairing.task.steps
        if not steps:
            result.seen = await agent.attempt(request)
            return
        history: list[dict[str, str]] = []
        until = None if request.timeout is None else time.monotonic() + request.timeout
        for number, step in enumerate(steps):
            left = None if until is None else max(0.0, until - time.monotonic())
            seen = await agent.attempt(request.for_step(number, history=history, timeout=left))
            result.seen = joined(result.seen, seen) if number else seen
            if seen.error is not None:
                return
            if seen.files is None and request.workdir.exists():
                seen = replace(seen, files=request.workdir)
            held = await judge_step(pairing, step, seen, grader)
            result.steps.append((step.name, held))
            if not held.passed:
                return
            history.append({"role": "user", "content": step.prompt})
            history.append({"role": "assistant", "content": seen.answer})

    async def _conversed(
        self,
        pairing: Pairing,
        system: ModelSystem,
        request: AttemptRequest,
        answers: dict[int, Answer],
    ) -> Result:
        memories = self._resources.memories(request, answers)
        async with self._resources.tools(system, request, memories) as tools:
            conversation = Conversation(
                model=await self._resources.model(system, request, memories),
                tools=tools,
                place=request.place,
                system=pairing.task.system_prompt or system.system_prompt or "",
                parameters=with_seed(system.model.parameters, request.seed),
                charge=_charge(self._budgets[system.name, pairing.task.name]),
            )
            result = Result(conversation=conversation)
            grader = self._grader(request, memories, result)
            try:
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
        try:
            async with Deadline(request.timeout):
                await self._say_all(pairing, system, result, grader)
        except TimeoutError:
            assert result.conversation is not None
            if waited_for := result.conversation.waiting_for:
                raise ServerError(
                    f"no answer to the call of {waited_for} within the {request.timeout:g} s of "
                    "the trial"
                ) from None

    async def _say_all(
        self, pairing: Pairing, system: ModelSystem, result: Result, grader: Grader
    ) -> None:
        """Say the prompt, or the steps one after the other until one fails."""
        task, conversation = pairing.task, result.conversation
        assert conversation is not None
        max_turns = task.max_turns or system.max_turns
        before = await _context(task, conversation) if task.resources or task.images else []
        if not task.steps:
            asked = Said(text=task.prompt)
            if task.server_prompt is not None:
                asked = await conversation.open_with(task.server_prompt)
            said = _joined(before, asked)
            await conversation.say(said, max_turns=max_turns)
            return
        for step in task.steps:
            so_far = len(conversation.calls)
            said = _joined(before, Said(text=step.prompt))
            await conversation.say(said, max_turns=max_turns)
            before = []
            seen = conversation.observe(since=so_far)
            with excused():  # a slow judge does not use up the agent's time
                held = await judge_step(pairing, step, seen, grader)
            result.steps.append((step.name, held))
            if not held.passed:
                return

    def _grader(self, request: AttemptRequest, memories: Memories, result: Result) -> Grader:
        ask = self._resources.ask(request, memories)

        async def grader(task: Task, seen: Observation) -> Grade:
            means = replace(
                self._grading,
                ask=ask,
                clean=self._resources.redactor.clean,
                transcript=result.spoken,
                asked=_asked(task, result.conversation),
            )
            return await grade(task.expect, seen, pass_score=task.pass_score, grading=means)

        return grader


async def _context(task: Task, conversation: Conversation) -> list[Said]:
    """What goes before the question: the resources of servers, and images."""
    found = [await conversation.read(resource) for resource in task.resources]
    if task.images:
        found.append(Said(text="", attachments=tuple(map(attached, task.images))))
    return found


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


def _budget(task: Task, suite: Suite) -> Budget:
    """What one trial may spend: the task's own limits before those of the suite."""
    own, common = task.budget, suite.trial_budget
    return Budget(
        max_cost=common.max_cost if own.max_cost is None else own.max_cost,
        max_tokens=common.max_tokens if own.max_tokens is None else own.max_tokens,
        max_minutes=common.max_minutes if own.max_minutes is None else own.max_minutes,
    )


def _charge(budget: Budget) -> Charge:
    """Adds up what the replies of one trial cost; True when its budget is used up."""
    if not budget.limited:
        return lambda reply: False
    spending = RunSpending(budget)

    def charge(reply: Reply) -> bool:
        spending.take(reply.spent)
        return spending.over() is not None

    return charge
