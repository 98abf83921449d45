"""A model that follows a script: behaviours drawn by seeded chance, for demos, docs and tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import accumulate

from passhat.errors import SuiteError
from passhat.records import Behaviour, TokenUsage
from passhat.runner.models.exchange import CallRequest, Message, Reply, Request
from passhat.runner.models.prices import Pricing

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
        text = behaviour.answer.replace("{result}", _last_result(request.messages))
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
        return choices[_pick([choice.weight for choice in choices], rng.random())]


def _pick(weights: Sequence[float], chance: float) -> int:
    sums = list(accumulate(weights))
    return next(i for i, upto in enumerate(sums) if chance * sums[-1] < upto)


def _turn(messages: Sequence[Message]) -> int:
    """How many replies there are after the last prompt."""
    turn = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        turn += message.role == "assistant"
    return turn


def _last_result(messages: Sequence[Message]) -> str:
    return next((m.text for m in reversed(messages) if m.role == "tool"), "")


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
