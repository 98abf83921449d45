"""Models with a cassette: one that writes every exchange to it, one that answers from it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from passhat.errors import CassetteError
from passhat.records.redaction import Redactor
from passhat.runner.cassettes.cassette_file import Cassette, Recorded, read_cassette, write_cassette
from passhat.runner.models.exchange import ChatModel, Reply, Request


class Recording:
    """Asks a model and keeps what it said, by the place of the request; `save` writes the file.

    >>> import asyncio
    >>> from passhat.records import Behaviour
    >>> from passhat.runner.models.exchange import Message
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


class Replaying:
    """Answers each request with what was recorded at its place: the same task, trial and step."""

    def __init__(self, cassette: Cassette | Path) -> None:
        self._cassette = cassette if isinstance(cassette, Cassette) else read_cassette(cassette)

    async def complete(self, request: Request, /) -> Reply:
        place = request.place
        recorded = self._cassette.trials.get((place.task, place.trial))
        if recorded is None:
            there = self._cassette.runs(place.task)
            raise CassetteError(
                f"{self._cassette.system}, {place.task!r}: run {place.trial + 1} is asked for, "
                f"{there} are recorded. Record more of them; a run is never repeated in silence"
            )
        line = recorded.exchanges.get(place.step)
        if line is None or line["kind"] != "model":
            raise CassetteError(
                f"{self._cassette.system}, {place.task!r}, run {place.trial + 1}: no answer of a "
                f"model is recorded at step {place.step}"
            )
        if line["request"] != request.fingerprint():
            raise CassetteError(
                f"{self._cassette.system}, {place.task!r}, run {place.trial + 1}, step "
                f"{place.step}: something else is asked than when it was recorded"
            )
        return msgspec.convert(line["reply"], Reply)
