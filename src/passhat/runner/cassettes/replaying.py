"""A model that says again what a cassette holds, and nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec

from passhat.errors import CassetteError
from passhat.runner.cassettes.cassette_file import Cassette, read_cassette
from passhat.runner.models.exchange import Reply, Request


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
