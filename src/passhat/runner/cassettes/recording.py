"""A model whose every exchange is written to a cassette."""

from __future__ import annotations

from pathlib import Path

import msgspec

from passhat.records.redaction import Redactor
from passhat.runner.cassettes.cassette_file import Cassette, Recorded, write_cassette
from passhat.runner.models.exchange import ChatModel, Reply, Request


class Recording:
    """Asks a model and keeps what it said, by the place of the request; `save` writes the file.

    >>> import asyncio
    >>> from passhat.records import Behaviour
    >>> from passhat.runner.models.exchange import Message
    >>> from passhat.runner.cassettes.replaying import Replaying
    >>> from passhat.runner.models.scripted import Scripted
    >>> model = Recording(Scripted([Behaviour(answer="4")]))
    >>> question = Request(messages=(Message(role="user", text="2 + 2?"),))
    >>> said = asyncio.run(model.complete(question))
    >>> asyncio.run(Replaying(model.cassette).complete(question)) == said
    True
    """

    def __init__(self, model: ChatModel, *, system: str = "model", secrets: tuple[str, ...] = ()):
        self._model = model
        self._redactor = Redactor(dict.fromkeys(secrets, system))
        self.cassette = Cassette(system=system)

    async def complete(self, request: Request, /) -> Reply:
        reply = await self._model.complete(request)
        text = self._redactor.clean_json(msgspec.json.encode(reply).decode())
        place = request.place
        recorded = self.cassette.trials.setdefault(
            (place.task, place.trial), Recorded(ending={"seed": request.parameters.seed})
        )
        recorded.exchanges[place.step] = {
            "kind": "model",
            "request": request.fingerprint(),
            "reply": msgspec.json.decode(text),
        }
        return reply

    def save(self, path: Path) -> None:
        """Write all exchanges to a file."""
        write_cassette(self.cassette, path)
