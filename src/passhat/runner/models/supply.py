"""The models of a run, each made once: scripts, endpoints, and local ones; and which cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.errors import PasshatError, SuiteError
from passhat.records import SCRIPTED, Model, ModelSystem, Suite, TokenUsage
from passhat.records.providers import is_local
from passhat.runner.models.constrained import CONSTRAINED, Constrained
from passhat.runner.models.exchange import ChatModel, Reply, Request
from passhat.runner.models.prices import Pricing, pricing
from passhat.runner.models.scripted import Scripted

if TYPE_CHECKING:
    import httpx2

    from passhat.runner.local_model import LocalServer
    from passhat.runner.models.endpoint import CallLog


class ModelSupply:
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
            if model.parameters.tool_choice == CONSTRAINED:
                made = Constrained(made)
            self._made[id(model)] = (model, made)
        return self._made[id(model)][1]

    async def find(self, model: Model, request: Request, remote: str | None = None) -> Reply | None:
        """An answer that the provider has of a call that an earlier start of the run lost.

        `remote` is the provider's name for it, if that is known.
        """
        from passhat.runner.models.endpoint import Endpoint

        found = await self.model(model)
        return await found.find(request, remote) if isinstance(found, Endpoint) else None

    def may_be_busy(self, model: Model) -> bool:
        """Whether a model can ask to be asked again: a script never does."""
        return model.name != SCRIPTED

    def price(self, model: Model) -> Pricing | None:
        """What a model's tokens cost; None if they cost nothing."""
        if id(model) not in self._prices:
            self._prices[id(model)] = self._find_price(model)
        return self._prices[id(model)]

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        for server in self._local.values():
            await server.stop()

    def _find_price(self, model: Model) -> Pricing | None:
        if model.prices is not None:
            return pricing(model.name, provider=None, prices=model.prices)
        if model.name == SCRIPTED or is_local(model.name):
            return None
        from passhat.runner.models.catalog import locate

        at = locate(model, self._environment)
        return pricing(at.model, provider=at.prices)

    async def _make_local(self, model: Model) -> ChatModel:
        from passhat.runner.local_model import LocalServer, find_weights
        from passhat.runner.models.catalog import DIALECTS
        from passhat.runner.models.endpoint import Endpoint, ModelAddress
        from passhat.runner.models.openai_chat import OPENAI_CHAT

        weights = find_weights(model.name, directory=self._directory)
        async with self._starting:
            if weights not in self._local:
                self._local[weights] = await LocalServer(weights).start()
        dialect, url = DIALECTS[model.wire or OPENAI_CHAT.name], f"{self._local[weights].url}/v1"
        return Endpoint(
            ModelAddress(model=weights.stem, dialect=dialect, base_url=url),
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
        if self._must_price and price is not None and price(TokenUsage(tokens_in=1)) is None:
            raise SuiteError(
                f'max_cost needs the price of "{model.name}", which no table has: give the model '
                "`prices: {input: ..., output: ...}`, or limit max_tokens instead"
            )
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
    if found := list(dict.fromkeys(filter(None, reasons))):
        raise SuiteError("\n".join(found))


def why_unreachable(model: Model, directory: Path) -> str | None:
    """Why a model cannot be asked here, and what to do; None if it can."""
    if is_local(model.name):
        from passhat.runner.local_model import why_not_here

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
        if isinstance(pairing.system, ModelSystem):
            yield pairing.system.model
        for expectation in pairing.task.expectations():
            if expectation.matcher == "judge":
                yield expectation.options["model"]
