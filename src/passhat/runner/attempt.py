"""One trial from its ticket to its row: set up, let the agent work, grade, and put away."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from passhat.errors import RunError, ServerError
from passhat.records import (
    Answer,
    Budget,
    Finished,
    Grade,
    ModelParameters,
    ModelSystem,
    Observation,
    Pairing,
    Suite,
    Task,
    Ticket,
)
from passhat.runner.agents.conversation import Conversation
from passhat.runner.agents.errand import Errand
from passhat.runner.deadline import Deadline, excused
from passhat.runner.graders import Grading, grade
from passhat.runner.models.exchange import Place, Reply
from passhat.runner.outcome import Grader, Result, judge, judge_step
from passhat.runner.workshop import Memories, Workshop


class Attempts:
    """Turns tickets into finished trials, with the means of one run."""

    def __init__(self, suite: Suite, workshop: Workshop, *, grading: Grading | None = None) -> None:
        self._suite = suite
        self._workshop = workshop
        self._grading = grading or Grading(directory=suite.directory)
        self._pairings = {(p.system.name, p.task.name): p for p in suite.pairings}

    def pairing(self, ticket: Ticket) -> Pairing:
        """The pairing that a ticket is for."""
        return self._pairings[ticket.system, ticket.task]

    async def run(self, ticket: Ticket, answers: Mapping[int, Answer] | None = None) -> Finished:
        """Run one trial; `answers` are those of an earlier start of it."""
        pairing = self.pairing(ticket)
        errand = self._errand(pairing, ticket)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        clock = time.perf_counter()
        cassettes = self._workshop.cassettes
        ending = cassettes.ending(errand)
        try:
            result = await self._result(pairing, errand, dict(answers or {}))
        except RunError as error:
            result = Result(error=str(error), seconds=time.perf_counter() - clock)
        finally:
            if errand.workdir.exists():
                shutil.rmtree(errand.workdir, ignore_errors=True)
        row = result.row(pairing, ticket, seed=self._suite.recorded_seed(ticket.trial))
        if ending is None:
            row = replace(row, started=started)
        else:
            row = replace(row, seed=ending["seed"], seconds=ending["seconds"])
        cassettes.finished(errand, row, result.seen.stop_reason)
        return Finished(ticket=ticket, trial=row, transcript=result.transcript())

    def _errand(self, pairing: Pairing, ticket: Ticket) -> Errand:
        task, system = pairing.task, pairing.system
        timeout = system.timeout if task.timeout is None else task.timeout
        minutes = self._budget(pairing).max_minutes
        if minutes is not None:
            timeout = min(timeout, minutes * 60)
        return Errand(
            task=task,
            place=Place(system=ticket.system, task=ticket.task, trial=ticket.trial),
            seed=self._suite.sampling_seed(pairing, ticket.trial),
            timeout=timeout,
            workdir=self._workshop.scratch / str(ticket.number),
            directory=self._suite.directory,
        )

    def _budget(self, pairing: Pairing) -> Budget:
        """What one trial may spend: the task's own limits before those of the suite."""
        own, common = pairing.task.budget, self._suite.trial_budget
        return Budget(
            max_cost=common.max_cost if own.max_cost is None else own.max_cost,
            max_tokens=common.max_tokens if own.max_tokens is None else own.max_tokens,
            max_minutes=common.max_minutes if own.max_minutes is None else own.max_minutes,
        )

    async def _result(self, pairing: Pairing, errand: Errand, answers: dict[int, Answer]) -> Result:
        system = pairing.system
        if isinstance(system, ModelSystem):
            return await self._conversed(pairing, system, errand, answers)
        agent = self._workshop.agent(system, errand)
        async with self._workshop.charging(errand) as charge:
            clock = time.perf_counter()
            try:
                seen = await agent.attempt(errand)
            except TimeoutError:
                seen = Observation(stop_reason="timeout", score=0.0)
            if seen.seconds is None:
                seen = replace(seen, seconds=time.perf_counter() - clock)
            charge(seen)
        grader = self._grader(errand, self._workshop.memories(errand, answers))
        return Result(seen=seen, grade=await judge(pairing, seen, grader))

    async def _conversed(
        self, pairing: Pairing, system: ModelSystem, errand: Errand, answers: dict[int, Answer]
    ) -> Result:
        memories = self._workshop.memories(errand, answers)
        async with self._workshop.tools(system, errand, memories) as tools:
            conversation = Conversation(
                model=await self._workshop.model(system, errand, memories),
                tools=tools,
                place=errand.place,
                system=pairing.task.system_prompt or system.system_prompt or "",
                parameters=_parameters(system, errand),
                charge=_Purse(self._budget(pairing)).take,
            )
            result = Result(conversation=conversation)
            grader = self._grader(errand, memories)
            try:
                await self._converse(pairing, system, errand, result, grader)
                seen = conversation.observe()
                there = errand.workdir.exists()
                result.seen = replace(seen, files=errand.workdir) if there else seen
                result.grade = await judge(pairing, result.seen, grader, steps=result.steps)
            except RunError as error:
                # What was said until then was paid for, and belongs in the row.
                result.seen, result.error = conversation.observe(), str(error)
            return result

    async def _converse(
        self,
        pairing: Pairing,
        system: ModelSystem,
        errand: Errand,
        result: Result,
        grader: Grader,
    ) -> None:
        try:
            async with Deadline(errand.timeout):
                await self._say_all(pairing, system, result, grader)
        except TimeoutError:
            assert result.conversation is not None
            if waited_for := result.conversation.waiting_for:
                raise ServerError(
                    f"no answer to the call of {waited_for} within the {errand.timeout:g} s of "
                    "the trial"
                ) from None

    async def _say_all(
        self, pairing: Pairing, system: ModelSystem, result: Result, grader: Grader
    ) -> None:
        """Say the prompt, or the steps one after the other until one fails."""
        task, conversation = pairing.task, result.conversation
        assert conversation is not None
        max_turns = task.max_turns or system.max_turns
        if not task.steps:
            await conversation.say(task.prompt, max_turns=max_turns)
            return
        for step in task.steps:
            so_far = len(conversation.calls)
            await conversation.say(step.prompt, max_turns=max_turns)
            seen = conversation.observe(since=so_far)
            with excused():  # a judge is slow on its own account
                held = await judge_step(task, step, seen, grader)
            result.steps.append((step.name, held))
            if not held.passed:
                return

    def _grader(self, errand: Errand, memories: Memories) -> Grader:
        means = replace(self._grading, ask=self._workshop.ask(errand, memories))

        async def grader(task: Task, seen: Observation) -> Grade:
            return await grade(task.expect, seen, pass_score=task.pass_score, grading=means)

        return grader


def _parameters(system: ModelSystem, errand: Errand) -> ModelParameters:
    given = system.model.parameters
    return given if given.seed is not None else replace(given, seed=errand.seed)


class _Purse:
    """What one trial may still spend."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._cost = 0.0
        self._tokens = 0

    def take(self, reply: Reply) -> bool:
        """Take what a reply cost; True when there is nothing left."""
        self._cost += reply.cost or 0.0
        self._tokens += reply.usage.total
        limits = self._budget
        return (limits.max_cost is not None and self._cost >= limits.max_cost) or (
            limits.max_tokens is not None and self._tokens >= limits.max_tokens
        )
