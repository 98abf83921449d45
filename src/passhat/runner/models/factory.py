"""The models of a run, each made once: scripts, endpoints, and local ones; and which cannot be."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from passhat.errors import PasshatError, SuiteError
from passhat.records import SCRIPTED, Behaviour, Model, Suite, TokenUsage
from passhat.records.providers import is_local
from passhat.records.suite import model_of
from passhat.runner.models.exchange import (
    CallRequest,
    ChatModel,
    Message,
    Pricing,
    Reply,
    Request,
    ToolSpec,
    pricing,
)

if TYPE_CHECKING:
    import httpx2

    from passhat.runner.models.endpoint import CallLog
    from passhat.runner.models.local import LocalServer


class ModelFactory:
    """Gives out models by their settings; all endpoints share one HTTP client.

    `run` is the key of the run, under which providers store answers if the suite asks for it; `log`
    is notified of each call that is sent.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        must_price: bool = False,
        run: str = "",
        log: CallLog | None = None,
    ) -> None:
        self._environment = environment
        self._must_price = must_price
        self._run = run
        self._log = log
        self._directory = directory or Path()
        self._local: dict[Path, LocalServer] = {}
        self._starting = asyncio.Lock()
        self._client: httpx2.AsyncClient | None = None
        self._made: dict[int, tuple[Model, ChatModel]] = {}
        self._prices: dict[int, Pricing | None] = {}

    @property
    def client(self) -> httpx2.AsyncClient:
        """The one HTTP client of the run."""
        if self._client is None:
            from passhat.runner.models.endpoint import http_client

            self._client = http_client()
        return self._client

    async def model(self, model: Model) -> ChatModel:
        """The model that these settings mean."""
        # By identity: settings hold mappings, which have no hash. The pair keeps the key alive.
        if id(model) not in self._made:
            made = await self._make_local(model) if is_local(model.name) else self._make(model)
            if model.parameters.tool_choice == CONSTRAINED or is_local(model.name):
                made = Constrained(made)
            self._made[id(model)] = (model, made)
        return self._made[id(model)][1]

    async def find(self, model: Model, request: Request, remote: str | None = None) -> Reply | None:
        """An answer that the provider has of a call that an earlier start of the run lost.

        `remote` is the provider's name for it, if that is known.
        """
        from passhat.runner.models.endpoint import Endpoint

        client = await self.model(model)
        return await client.find(request, remote) if isinstance(client, Endpoint) else None

    def may_be_busy(self, model: Model) -> bool:
        """Whether a model can ask to be asked again: a script never does."""
        return model.name != SCRIPTED

    def price(self, model: Model) -> Pricing | None:
        """What a model's tokens cost; None if they cost nothing."""
        if id(model) not in self._prices:
            price = None
            if model.prices is not None:
                price = pricing(model.name, provider=None, prices=model.prices)
            elif model.name != SCRIPTED and not is_local(model.name):
                from passhat.runner.models.catalog import locate

                at = locate(model, self._environment)
                price = pricing(at.model, provider=at.prices)
            self._prices[id(model)] = price
        return self._prices[id(model)]

    def refuse_unpriced(self, model: Model) -> None:
        """Raise if money is limited and nobody knows what the model costs."""
        price = self.price(model)
        if self._must_price and price is not None and price(TokenUsage(tokens_in=1)) is None:
            raise SuiteError(
                f'max_cost needs the price of "{model.name}", which no table has: give the model '
                "`prices: {input: ..., output: ...}`, or limit max_tokens instead"
            )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        for server in self._local.values():
            await server.stop()

    async def _make_local(self, model: Model) -> ChatModel:
        from passhat.runner.models.catalog import WIRE_FORMATS
        from passhat.runner.models.endpoint import Endpoint, ModelAddress
        from passhat.runner.models.local import LocalServer, find_weights
        from passhat.runner.models.openai import OPENAI_CHAT

        weights = find_weights(model.name, directory=self._directory)
        async with self._starting:
            if weights not in self._local:
                self._local[weights] = await LocalServer(weights).start()
        wire_format, url = (
            WIRE_FORMATS[model.wire or OPENAI_CHAT.name],
            f"{self._local[weights].url}/v1",
        )
        return Endpoint(
            ModelAddress(model=weights.stem, wire_format=wire_format, base_url=url),
            client=self.client,
            stream=bool(model.parameters.extra.get("stream")),
            price=self.price(model) or (lambda usage: 0.0),
            log=self._log,
        )

    def _make(self, model: Model) -> ChatModel:
        if model.name == SCRIPTED:
            return Scripted(model.script, price=self.price(model))
        from passhat.runner.models.catalog import locate
        from passhat.runner.models.endpoint import Endpoint

        at, client, price = locate(model, self._environment), self.client, self.price(model)
        self.refuse_unpriced(model)
        return Endpoint(
            at,
            client=client,
            headers={name: secret.reveal() for name, secret in model.headers.items()},
            stream=bool(model.parameters.extra.get("stream")),
            price=price,
            run=self._run,
            log=self._log,
        )


def refuse_unreachable(suite: Suite, systems: Collection[str]) -> None:
    """Raise if models of these systems, or of their judges, can only fail; the error names all."""
    models = {(model.name, model.base_url): model for model in _asked(suite, systems)}
    reasons = (why_unreachable(model, suite.directory) for model in models.values())
    if unreachable := list(dict.fromkeys(filter(None, reasons))):
        raise SuiteError("\n".join(unreachable))


def why_unreachable(model: Model, directory: Path) -> str | None:
    """Why a model cannot be asked here, and what to do; None if it can."""
    if is_local(model.name):
        from passhat.runner.models.local import why_not_here

        return why_not_here(model.name, directory)
    if model.name == SCRIPTED:
        return None
    from passhat.runner.models.catalog import locate

    try:
        locate(model)
    except PasshatError as error:
        return str(error)
    return None


def _asked(suite: Suite, systems: Collection[str]) -> Iterator[Model]:
    for pairing in suite.pairings:
        if pairing.system.name not in systems:
            continue
        if (model := model_of(pairing.system)) is not None:
            yield model
        if pairing.task.user is not None and pairing.task.user.model is not None:
            yield pairing.task.user.model
        for expectation in pairing.task.expectations():
            if expectation.matcher == "judge":
                yield expectation.options["model"]
                yield from expectation.options.get("panel", ())


# Tool calls by a grammar, for models that are too small to make them without help.

CONSTRAINED = "constrained"

INSTRUCTIONS = """\
You can use these tools:
{tools}
Answer with the JSON of one tool call: {{"tool": NAME, "arguments": {{...}}}}"""


class Constrained:
    """Makes a model follow the JSON schema of its tools until it has called one.

    The tools are described in the system prompt, and the schema goes out as `response_format`,
    which llama.cpp, vLLM and OpenAI enforce token by token. A request that leaves the choice to the
    model stays as it is; one that names a tool, as those of a judge do, is held to it, since a
    local server does not do so by itself.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def complete(self, request: Request, /) -> Reply:
        if request.parameters.tool_choice in (None, "auto", "none", "required"):
            return await self._model.complete(request)
        if not request.tools:
            return await self._model.complete(_unconstrained(request))
        called = any(message.role == "tool" for message in request.messages)
        if called:
            # In words: the templates of such models have no place for tool calls.
            spoken = tuple(_spoken(message) for message in request.messages)
            return await self._model.complete(_unconstrained(replace(request, messages=spoken)))
        reply = await self._model.complete(_constrained(request))
        return _with_call(reply, step=request.place.step)


def call_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of a call of one of the tools.

    >>> call_schema([ToolSpec(name="add")])["properties"]["tool"]
    {'const': 'add'}
    """
    forms = [
        {
            "type": "object",
            "properties": {
                "tool": {"const": tool.name},
                "arguments": {"properties": {}, **tool.parameters, "additionalProperties": False},
            },
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _constrained(request: Request) -> Request:
    schema = {"name": "tool_call", "strict": True, "schema": call_schema(request.tools)}
    given = request.parameters
    extra = {**given.extra, "response_format": {"type": "json_schema", "json_schema": schema}}
    lines = [
        f"- {tool.name}({', '.join(tool.parameters.get('properties', {}))}): {tool.description}"
        for tool in request.tools
    ]
    instructions = INSTRUCTIONS.format(tools="\n".join(lines))
    return replace(
        request,
        system=f"{request.system}\n\n{instructions}" if request.system else instructions,
        tools=(),
        parameters=replace(given, extra=extra, tool_choice=None),
    )


def _unconstrained(request: Request) -> Request:
    return replace(request, tools=(), parameters=replace(request.parameters, tool_choice=None))


def _spoken(message: Message) -> Message:
    if message.role == "tool":
        return Message(role="user", text=f"The tool answered: {message.text}")
    if message.calls:
        call = {"tool": message.calls[0].name, "arguments": message.calls[0].arguments}
        return Message(role="assistant", text=msgspec.json.encode(call).decode())
    return message


def _with_call(reply: Reply, *, step: int) -> Reply:
    """The reply with its text read as a call, if it is one."""
    try:
        decoded = msgspec.json.decode(reply.text, type=dict[str, Any])
        call = CallRequest(id=f"call_{step}", name=decoded["tool"], arguments=decoded["arguments"])
    except (msgspec.DecodeError, KeyError):
        return reply
    return replace(reply, text="", calls=(call,), stop_reason="tool_calls")


CHARACTERS_PER_TOKEN = 4
"""The usual rule of thumb, for behaviours that do not say how many tokens they take."""


class Scripted:
    """Answers by a behaviour that is drawn once for each prompt, with the seed of the request.

    A behaviour makes one call a turn, then answers; its tokens and seconds are spread over all its
    turns.

    >>> model = Scripted([Behaviour(answer="4", weight=9), Behaviour(answer="5")])
    >>> request = Request(messages=(Message(role="user", text="2 + 2?"),))
    >>> asyncio.run(model.complete(request)).text
    '4'
    """

    def __init__(self, script: Sequence[Behaviour], *, price: Pricing | None = None) -> None:
        if not script:
            raise SuiteError('the model "scripted" needs a script: a list of behaviours')
        self._by_task: dict[str | None, list[Behaviour]] = {}
        for behaviour in script:
            self._by_task.setdefault(behaviour.task, []).append(behaviour)
        self._price = price

    async def complete(self, request: Request, /) -> Reply:
        behaviour = self._draw(request)
        turn = _turn(request.messages)
        shares = len(behaviour.calls) + 1
        if behaviour.seconds:
            await asyncio.sleep(behaviour.seconds / shares)
        usage = _usage(behaviour, request, turn)
        cost = 0.0 if self._price is None else self._price(usage)
        seconds = behaviour.seconds / shares
        if turn < len(behaviour.calls):
            call = behaviour.calls[turn]
            asked = CallRequest(id=f"call_{turn}", name=call.tool, arguments=call.arguments)
            return Reply(
                calls=(asked,), stop_reason="tool_calls", usage=usage, cost=cost, seconds=seconds
            )
        results = (m.text for m in reversed(request.messages) if m.role == "tool")
        text = behaviour.answer.replace("{result}", next(results, ""))
        return Reply(text=text, usage=usage, cost=cost, seconds=seconds)

    def _draw(self, request: Request) -> Behaviour:
        place = request.place
        choices = self._by_task.get(place.task) or self._by_task.get(None)
        if not choices:
            raise SuiteError(f'the script of {place.system} has no behaviour for "{place.task}"')
        if len(choices) == 1:
            return choices[0]
        seed = request.parameters.seed if request.parameters.seed is not None else place.trial
        prompts = sum(message.role == "user" for message in request.messages)
        rng = random.Random(f"{seed}\x1f{place.task}\x1f{prompts}")  # noqa: S311 - a seeded script
        sums = list(accumulate(choice.weight for choice in choices))
        return choices[bisect(sums, rng.random() * sums[-1])]


def _turn(messages: Sequence[Message]) -> int:
    """How many replies there are after the last prompt."""
    turn = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        turn += message.role == "assistant"
    return turn


def _usage(behaviour: Behaviour, request: Request, turn: int) -> TokenUsage:
    shares = len(behaviour.calls) + 1
    read = sum(len(message.text) for message in request.messages) + len(request.system)
    written = len(behaviour.answer) if turn + 1 == shares else CHARACTERS_PER_TOKEN
    return TokenUsage(
        tokens_in=_share(behaviour.tokens_in, read // CHARACTERS_PER_TOKEN, turn, shares),
        tokens_out=_share(behaviour.tokens_out, written // CHARACTERS_PER_TOKEN, turn, shares),
    )


def _share(total: int | None, guess: int, turn: int, shares: int) -> int:
    """Share number `turn` of a total; the shares are whole numbers that add up to it."""
    if total is None:
        return max(1, guess)
    return total * (turn + 1) // shares - total * turn // shares
