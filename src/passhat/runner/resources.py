"""What the trials of one run share: models, servers, HTTP clients, limits, scratch space."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Self

import msgspec

from passhat import records
from passhat.dataclass import dataclass
from passhat.errors import CassetteError, ModelBusy, ModelError, RunError, ServerError, SuiteError
from passhat.records.providers import LOCAL, is_local
from passhat.records.redaction import suite_redactor
from passhat.runner.agents.conversation import Agent, AttemptRequest
from passhat.runner.grading import GRADE_TOOL, SMALL_GRADE_TOOL
from passhat.runner.journal import (
    JUDGE_STEP,
    CachedAgent,
    CachedModel,
    CachedTools,
    Cassettes,
    JournalCache,
    JournalWriter,
    ResponseCache,
)
from passhat.runner.models.exchange import (
    ChatModel,
    Message,
    NoTools,
    Pricing,
    Reply,
    Request,
    ToolRequest,
    ToolResult,
    Tools,
    ToolSpec,
)
from passhat.runner.models.factory import ModelFactory
from passhat.runner.models.retrying import Draw, RetryBudget, Retrying, RetryPolicy, Throttle
from passhat.runner.processes import Scratch, adopting_orphans, hidden_memory
from passhat.runner.schedule import OnEvent, Retry
from passhat.runner.spending import (
    BudgetedModel,
    CacheFirstModel,
    MeteredAgent,
    RunSpending,
    charging,
    most_of,
    trial_budget,
)

if TYPE_CHECKING:
    from passhat.runner.gateway import Gateway, Upstream
    from passhat.runner.grading import Ask
    from passhat.runner.mcp_servers import ServerPool
    from passhat.runner.users import SimulatedUser
    from passhat.runner.workspaces import AddedFile, Workspaces


@dataclass(frozen=True, slots=True)
class ResponseCaches:
    """The caches of one trial: the journal of the run, and a cassette if there is one."""

    journal: JournalCache | None
    cassette: ResponseCache | None

    def around(self, model: ChatModel) -> ChatModel:
        """The model with both caches around it, the cassette outermost."""
        for cache in (self.journal, self.cassette):
            if cache is not None:
                model = CachedModel(model, cache)
        return model


class RunResources:
    """Makes what the trials need, and closes it when the run is over.

    With `count_free`, attempts of agents that cost nothing have intents too. `cut_short` are
    the trials that an earlier start of the run (its key is `run`) left unfinished, each with the
    provider's names for answers to its lost calls, by step; workers add to it.
    """

    def __init__(
        self,
        suite: records.Suite,
        *,
        writer: JournalWriter,
        spending: RunSpending,
        cassettes: Cassettes | None = None,
        on_event: OnEvent | None = None,
        environment: Mapping[str, str] | None = None,
        must_price: bool = False,
        draw: Draw | None = None,
        count_free: bool = False,
        run: str = "",
        cut_short: Mapping[tuple[str, str, int], Mapping[int, str]] | None = None,
    ) -> None:
        self._suite = suite
        self._cut_short = {} if cut_short is None else cut_short
        self._writer = writer
        self._spending = spending
        self._cassettes = cassettes or Cassettes()
        self._on_event = on_event
        self._environment = environment
        self.redactor = suite_redactor(suite, os.environ if environment is None else environment)
        self._models = ModelFactory(
            environment,
            directory=suite.directory,
            must_price=must_price or spending.budget.max_cost is not None,
            run=run,
            log=writer,
        )
        self._pool: ServerPool | None = None
        self._draw = draw
        self._count_free = count_free
        self._throttles: dict[str, tuple[Throttle, RetryBudget]] = {}
        self._agents: dict[str, Agent] = {}
        self._upstreams: dict[str, Upstream] = {}
        self._without_tools: set[str] = set()
        self.tools_offered: set[str] = set()
        self._for_the_run = ExitStack()
        self._jitter = random.Random(suite.seed)  # noqa: S311 - spreads retries, no secret

    async def __aenter__(self) -> Self:
        self._scratch = Scratch()
        if any(isinstance(p.system, records.CommandSystem) for p in self._suite.pairings):
            self._for_the_run.enter_context(hidden_memory())
        # Functions of users run in this process: agents, graders or simulated users.
        if not any(
            (isinstance(p.system, records.PythonSystem) and not p.system.workers)
            or (p.task.user is not None and p.task.user.function is not None)
            or any(e.matcher == "python" for e in p.task.expectations())
            for p in self._suite.pairings
        ):
            self._for_the_run.enter_context(adopting_orphans())
        else:
            from passhat.runner.agents.python import prints_to_stderr

            self._for_the_run.enter_context(prints_to_stderr(self.redactor.clean))
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._pool is not None:
                await self._pool.close()
            await self._models.close()
            for agent in self._agents.values():
                if (close := getattr(agent, "close", None)) is not None:
                    await close()
        finally:
            self._for_the_run.close()
            self._scratch.close()

    @property
    def scratch(self) -> Path:
        """Where the trials of this run work."""
        return self._scratch.path

    @functools.cached_property
    def workspaces(self) -> Workspaces:
        """What makes the workspaces of trials."""
        from passhat.runner.sandbox import Limits
        from passhat.runner.workspaces import Workspaces

        limits, hosts = Limits.of(self._suite.resources), self._suite.network
        if not hosts:
            return Workspaces(self.scratch, limits)
        from passhat.runner.gateway import Gateway

        return Workspaces(self.scratch, limits, way_out=lambda: Gateway(network=hosts))

    @property
    def cassettes(self) -> Cassettes:
        """The recordings in use."""
        return self._cassettes

    def caches(self, request: AttemptRequest, answers: dict[int, records.Answer]) -> ResponseCaches:
        """The caches of one trial; a recorded trial costs nothing and needs no journal."""
        held = self._cassettes.holds(request)
        journal = None if held else JournalCache(self._writer, answers, redactor=self.redactor)
        return ResponseCaches(journal, self._cassettes.cache(request))

    async def model(
        self, system: records.ModelSystem, request: AttemptRequest, caches: ResponseCaches
    ) -> ChatModel:
        """The model of a system, for one trial."""
        if self._cassettes.holds(request):
            return caches.around(_NeverAsked())
        live = await self._live(system.model, system.model.faults, request)
        return caches.around(live)

    def agent(
        self,
        system: records.System,
        request: AttemptRequest,
        caches: ResponseCaches,
        opened: Callable[[Gateway], None],
    ) -> Agent:
        """The agent of a system that is not a model; `opened` is called with its gateways."""
        cassette = caches.cassette
        if isinstance(system, records.CommandSystem):
            from passhat.runner.agents.command import CommandAgent

            gateways = self._gateways(system, request.task, caches, opened)
            made: Agent = CommandAgent(system, gateways)
            if system.model is not None:
                return made
        if cassette is not None and request.workspace is not None:
            raise RunError(
                "what an agent changes in a workspace is in no cassette: name the `model:` that "
                "it asks, whose answers are recorded, or run it live"
            )
        if cassette is not None and self._cassettes.holds(request):
            return CachedAgent(_NeverAsked(), cassette)
        if not isinstance(system, records.CommandSystem):
            if system.name not in self._agents:
                self._agents[system.name] = self._make_agent(system)
            made = self._agents[system.name]
        agent = MeteredAgent(made, self._spending, self._writer, self._count_free)
        return agent if cassette is None else CachedAgent(agent, cassette)

    def _gateways(
        self,
        system: records.CommandSystem,
        task: records.Task,
        caches: ResponseCaches,
        opened: Callable[[Gateway], None],
    ) -> Callable[[AttemptRequest], Gateway] | None:
        """What opens the gateway of a program for each attempt of a trial, where it has one."""
        if system.model is None and not self._suite.network:
            return None
        from passhat.runner.gateway import Gateway

        upstream = None
        if system.model is not None and caches.journal is not None:
            upstream = self._upstream(system.name, system.model)

        names = dict[str, str]()
        if system.agent is not None:
            from passhat.records.providers import CODING_AGENTS
            from passhat.runner.models.catalog import provider_of

            assert system.model is not None, "an agent by name has a model"
            at = provider_of(system.model, self._environment)
            names = CODING_AGENTS[system.agent].variables(system.model.name.removeprefix(f"{at}/"))
        added: tuple[AddedFile, ...] = ()
        if system.add_files:
            from passhat.runner.workspaces import added_file

            added = tuple(itertools.starmap(added_file, system.add_files.items()))
        steps = itertools.count(0 if caches.journal is None else caches.journal.next_step)
        alike = Counter[str]()
        charge = charging(trial_budget(task, self._suite))

        def gateway(request: AttemptRequest) -> Gateway:
            made = Gateway(
                network=self._suite.network,
                model=system.model,
                names=names,
                place=request.place,
                steps=steps,
                alike=alike,
                upstream=upstream,
                journal=caches.journal,
                cassette=caches.cassette,
                charge=charge,
                added=added,
            )
            opened(made)
            return made

        return gateway

    def _upstream(self, system: str, model: records.Model) -> Upstream:
        """Where the calls of a program go; made once for each system."""
        if system not in self._upstreams:
            from passhat.runner.gateway import SPOKEN, Upstream
            from passhat.runner.models.catalog import locate
            from passhat.runner.models.exchange import pricing

            at = locate(model, self._environment)
            if at.wire_format.name not in SPOKEN:
                raise SuiteError(
                    f'model "{model.name}" is asked in the wire format {at.wire_format.name}, '
                    "which passhat does not pass on: take a model of another provider"
                )

            def price(name: str) -> Pricing | None:
                if name in (model.name, at.model):
                    return self._models.price(model)
                return pricing(name, provider=at.prices)

            self._models.refuse_unpriced(model)
            self._upstreams[system] = Upstream(
                at=at,
                client=self._models.client,
                price=price,
                spending=self._spending,
                writer=self._writer,
                throttle=self._patience(model)[0],
                headers={name: secret.reveal() for name, secret in model.headers.items()},
            )
        return self._upstreams[system]

    def tools(
        self, system: records.ModelSystem, request: AttemptRequest, caches: ResponseCaches
    ) -> AbstractAsyncContextManager[Tools]:
        """The tools of a system, for the length of one trial."""
        if not system.servers:
            return nullcontext(NoTools())
        return self._tools_of_servers(system, request, caches)

    @asynccontextmanager
    async def _tools_of_servers(
        self, system: records.ModelSystem, request: AttemptRequest, caches: ResponseCaches
    ) -> AsyncIterator[Tools]:
        if (recorded := self._cassettes.tools(request)) is not None:
            assert caches.cassette is not None
            self.tools_offered.update(spec.name for spec in recorded.specs)
            yield CachedTools(recorded, caches.cassette)
            return
        if self._pool is None:
            from passhat.runner.mcp_servers import ServerPool

            self._pool = ServerPool(directory=self._suite.directory)
        servers = [self._suite.servers[name] for name in system.servers]
        async with self._pool.tools(servers, workdir=request.make_workdir()) as live:
            self._cassettes.note_tools(system.name, live.specs)
            self.tools_offered.update(spec.name for spec in live.specs)
            tools: Tools = live
            if faults := {server.name: server.faults for server in servers if server.faults}:
                tools = FaultyTools(tools, faults, seed=request.seed)
            if caches.journal is not None:
                shared = {server.name for server in servers if server.shared}
                tools = CachedTools(
                    tools,
                    caches.journal,
                    rebuild=lambda name: not shared & {getattr(live.server_of(name), "name", "")},
                )
            if caches.cassette is not None and not self._cassettes.holds(request):
                tools = CachedTools(tools, caches.cassette)
            yield tools

    async def user(
        self, task: records.Task, request: AttemptRequest, caches: ResponseCaches
    ) -> SimulatedUser:
        """The user who talks to the agent in one trial; what it says is kept and recalled."""
        from passhat.runner.users import FunctionUser, ScriptedUser, SimulatedUser

        user, scenario = task.user, task.scenario
        assert user is not None, "a task has both or neither"
        assert scenario is not None
        model: ChatModel
        if user.model is not None:
            held = self._cassettes.holds(request)
            live = _NeverAsked() if held else await self._live(user.model, (), request)
            model = caches.around(live)
        elif user.function is not None:
            # Called again on a resume: it costs nothing, and the journal counts what is paid.
            live = FunctionUser(user.function, task, directory=self._suite.directory)
            model = live if caches.cassette is None else CachedModel(live, caches.cassette)
        else:
            model = ScriptedUser(user.say, opened=scenario.opens is not None)
        return SimulatedUser(
            user=user,
            scenario=scenario,
            model=model,
            place=request.place,
            seed=request.seed,
            patience=request.timeout,
        )

    def ask(
        self,
        request: AttemptRequest,
        caches: ResponseCaches,
        paid: Callable[[records.Amount], None],
    ) -> Ask:
        """The judge of one trial; its answers are kept and recalled like those of other models.

        `paid` is called with what each of them cost.
        """
        steps = iter(range(JUDGE_STEP, 2 * JUDGE_STEP))

        async def ask(model: records.Model, prompt: str, repeat: int) -> str:
            alone = self._cassettes.replaying
            journalled = caches.journal is not None
            live = (
                _NeverAsked()
                if alone
                else await self._live(model, (), request, journalled=journalled)
            )
            question = Request(
                messages=(Message(role="user", text=prompt),),
                parameters=with_seed(model.parameters, request.seed + repeat),
                place=request.place._replace(step=next(steps)),
            )
            reply = await self._judged(model, caches.around(live), question)
            paid(reply.spent)
            if reply.calls and reply.calls[0].broken is None:
                return msgspec.json.encode(reply.calls[0].arguments).decode()
            return reply.text

        return ask

    async def _judged(self, model: records.Model, judge: ChatModel, question: Request) -> Reply:
        """The answer of a judge, in the form of a tool call where its model can make one."""
        if model.name != records.SCRIPTED and model.name not in self._without_tools:
            chosen = replace(question.parameters, tool_choice=GRADE_TOOL.name)
            tool = SMALL_GRADE_TOOL if is_local(model.name) else GRADE_TOOL
            by_schema = replace(question, tools=(tool,), parameters=chosen)
            try:
                return await judge.complete(by_schema)
            except ModelBusy:
                raise
            except CassetteError:
                if not self._cassettes.replaying:
                    raise  # recorded with a model that cannot call tools, else
            except ModelError as error:
                if "tool" not in str(error).lower():
                    raise
                self._without_tools.add(model.name)
        return await judge.complete(question)

    async def _live(
        self,
        model: records.Model,
        faults: tuple[records.Fault, ...],
        request: AttemptRequest,
        *,
        journalled: bool = True,
    ) -> ChatModel:
        live = await self._models.model(model)
        if faults:
            live = FaultyModel(live, faults, seed=request.seed)
        remote = self._models.may_be_busy(model)
        if faults or remote:
            throttle, budget = self._patience(model)
            live = Retrying(
                live,
                policy=RetryPolicy(retries=self._suite.retries),
                throttle=throttle,
                budget=budget,
                rng=self._jitter,
                on_retry=self._tell_retry,
                on_unanswered=lambda request, error: self._unanswered(request, error, model),
            )
        lost = self._cut_short.get(request.place[:3]) if self._cut_short else None
        if lost is not None and remote:
            live = CacheFirstModel(
                live,
                lambda asked: self._models.find(model, asked, lost.get(asked.place.step)),
                self._spending,
                self._writer,
            )
        return BudgetedModel(
            live,
            self._spending,
            name=model.name,
            price=self._models.price(model),
            # A script costs nothing, so its calls need no intent.
            writer=self._writer if journalled and remote else None,
        )

    def _patience(self, model: records.Model) -> tuple[Throttle, RetryBudget]:
        """What all calls of a provider share: its rate limits, and the retries that are left."""
        from passhat.runner.models.catalog import provider_of

        provider = provider_of(model, self._environment)
        if provider not in self._throttles:
            # A local model does one thing at a time, and no trial is to blame for waiting.
            usual = records.RateLimit(concurrency=1) if provider == LOCAL else records.RateLimit()
            limit = self._suite.rate_limits.get(provider, usual)
            throttle = Throttle(limit, name=provider, draw=self._draw)
            self._throttles[provider] = (throttle, RetryBudget())
        return self._throttles[provider]

    async def _unanswered(self, request: Request, error: ModelBusy, model: records.Model) -> None:
        """Count a call whose answer was lost on its way; one that was refused costs nothing."""
        call = request.place
        if not error.perhaps_paid:
            self._writer.unmark_sent(call)
            return
        price = self._models.price(model)
        most = most_of(request, self._spending, name=model.name, price=price)
        self._spending.lose(most)
        await self._writer.lose(call, most or records.Amount())

    def _tell_retry(self, request: Request, attempt: int, wait: float, error: ModelBusy) -> None:
        if self._on_event is not None:
            self._on_event(
                Retry(
                    system=request.place.system,
                    attempt=attempt,
                    wait=wait,
                    reason=self.redactor.clean(str(error)),
                )
            )

    def _make_agent(self, system: records.System) -> Agent:
        if isinstance(system, records.HttpSystem):
            from passhat.runner.agents.http import HttpAgent

            return HttpAgent(system, self._models.client)
        assert isinstance(system, records.PythonSystem), (
            "models converse, and commands are made anew"
        )
        if system.workers:
            from passhat.runner.agents.python import WorkerAgent

            return WorkerAgent(system)
        from passhat.runner.agents.python import PythonAgent

        return PythonAgent(system)


class _NeverAsked:
    """The model or agent behind a cassette, which must never be asked."""

    async def complete(self, request: Request, /) -> NoReturn:
        raise AssertionError("a replay makes no calls")

    async def attempt(self, request: AttemptRequest, /) -> NoReturn:
        raise AssertionError("a replay makes no calls")


def with_seed(parameters: records.ModelParameters, seed: int) -> records.ModelParameters:
    """Parameters with a seed: their own, or this one."""
    return parameters if parameters.seed is not None else replace(parameters, seed=seed)


# Faults injected where real ones occur: in models and tools.

DEFAULT_LATENCY = 2.0

MALFORMED = '{"result": "ok", "value": 4'
WRONG_SCHEMA = '{"unexpected": [null, {"status": 418}]}'

Reaction = Literal["retried", "other tool", "gave up", "looped", "made up a result"]

LOOP = 3
"""Calls of the same tool after its fault that count as a loop, not as a retry."""

ADMISSIONS = (
    "unable", "cannot", "can't", "could not", "couldn't", "error", "fail", "sorry",
    "unavailable", "try again", "timed out", "not able", "problem",
)  # fmt: skip
"""Words of an answer that admits a failure; without any of them the agent made something up."""


class FaultyModel:
    """A model some of whose requests fail: seeded, so that a trial fails the same way again.

    Each trial has its own instance, because it counts the calls.
    """

    def __init__(self, model: ChatModel, faults: Sequence[records.Fault], *, seed: int) -> None:
        self._model = model
        self._dice = _Dice(faults, seed=seed)

    async def complete(self, request: Request, /) -> Reply:
        fault = self._dice.roll(None)
        if fault is None:
            return await self._model.complete(request)
        if fault.kind == "rate_limit":
            raise ModelBusy(fault.message or "429 rate limited on purpose", retry_after=0.0)
        if fault.kind == "timeout":
            raise ModelBusy(fault.message or "no answer, on purpose")
        if fault.kind == "latency":
            await asyncio.sleep(DEFAULT_LATENCY if fault.seconds is None else fault.seconds)
            reply = await self._model.complete(request)
        else:
            reply = _truncated(await self._model.complete(request))
        return replace(reply, faults=(fault.kind,))


class FaultyTools:
    """Tools some of whose calls fail. Each trial has its own instance."""

    def __init__(
        self, tools: Tools, faults: Mapping[str, Sequence[records.Fault]], *, seed: int
    ) -> None:
        self._tools = tools
        self._dice = {
            server: _Dice(given, seed=seed, salt=server) for server, given in faults.items()
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs

    async def call(self, request: ToolRequest, /) -> ToolResult:
        for server, dice in self._dice.items():
            if (fault := dice.roll(request.name)) is not None:
                return await self._break(request, fault, server)
        return await self._tools.call(request)

    async def _break(self, request: ToolRequest, fault: records.Fault, server: str) -> ToolResult:
        match fault.kind:
            case "latency":
                await asyncio.sleep(DEFAULT_LATENCY if fault.seconds is None else fault.seconds)
                return replace(await self._tools.call(request), fault=fault.kind)
            case "server_crash":
                raise ServerError(fault.message or f'server "{server}" crashed, on purpose')
            case "timeout":
                text = fault.message or f"{request.name} timed out"
                return ToolResult(text=text, is_error=True, server=server, fault=fault.kind)
            case "malformed_result":
                text = fault.message or MALFORMED
            case "wrong_schema":
                text = fault.message or WRONG_SCHEMA
            case "empty_result":
                text = ""
            case _:
                text = fault.message or f"{request.name} failed: internal error"
                return ToolResult(text=text, is_error=True, server=server, fault=fault.kind)
        return ToolResult(text=text, server=server, fault=fault.kind)


def reaction(calls: Sequence[records.ToolCall], broken: int, answer: str) -> Reaction:
    """What an agent did after call number `broken` failed.

    >>> failed = records.ToolCall(name="search", error="down")
    >>> reaction([failed, records.ToolCall(name="search", result="42")], 0, "42")
    'retried'
    >>> reaction([failed], 0, "The answer is 42.")
    'made up a result'
    """
    after = calls[broken + 1 :]
    same = [call for call in after if call.name == calls[broken].name]
    if len(same) >= LOOP:
        return "looped"
    if same:
        return "retried"
    if after:
        return "other tool"
    text = answer.lower()
    admits = not text.strip() or any(word in text for word in ADMISSIONS)
    return "gave up" if admits else "made up a result"


class _Dice:
    """Decides for each call which fault happens; the chances depend only on the seed."""

    def __init__(self, faults: Sequence[records.Fault], *, seed: int, salt: str = "") -> None:
        self._faults = faults
        self._rng = random.Random(f"{seed}\x1ffaults\x1f{salt}")  # noqa: S311 - faults are seeded
        self._seen = [0] * len(faults)

    def roll(self, tool: str | None) -> records.Fault | None:
        struck: records.Fault | None = None
        for index, fault in enumerate(self._faults):
            if fault.tool is not None and fault.tool != tool:
                continue
            self._seen[index] += 1
            # Every fault draws at every call, so that none changes the draws of another.
            chance = self._rng.random()
            hit = (
                self._seen[index] == fault.nth
                if fault.nth is not None
                else chance < (1.0 if fault.probability is None else fault.probability)
            )
            struck = fault if hit and struck is None else struck
        return struck


def _truncated(reply: Reply) -> Reply:
    """A reply that stops in the middle; a tool call keeps half of its arguments."""

    def half(text: str) -> str:
        return text[: len(text) // 2]

    calls = tuple(
        replace(call, arguments={}, broken=half(msgspec.json.encode(call.arguments).decode()))
        for call in reply.calls
    )
    return replace(reply, text=half(reply.text), calls=calls, raw=(), stop_reason="max_tokens")
