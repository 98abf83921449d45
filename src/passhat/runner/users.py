"""Simulated users: who talks to the agent in a trial, what they say next, and when they err.

A user does not end a conversation, the task does: when its `done` holds, when the agent closes it,
after `max_turns` messages, or when the user says that it is finished, and then the agent has one
more turn. What a user does wrong is found by rules, beside the verdict: neither passes nor fails.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import ModelError, RunError
from passhat.messages import short
from passhat.records import Amount, ModelParameters, Scenario, Task, TokenUsage, User
from passhat.records.ledger import CallKey
from passhat.runner.journal import USER_STEP
from passhat.runner.models.exchange import ChatModel, Message, Reply, Request
from passhat.runner.models.retrying import paused

FINISHED = "[END]"
"""What a model writes that plays a user and is finished."""

BEGIN = "(The conversation begins. Write your first message.)"
NO_ANSWER = "(The assistant said nothing.)"

SILENT = 2
"""Messages without a word, one after the other, that make a user broken."""

REPEATS = 3
"""Times that the same message shows that a user no longer listens."""

LONGEST_QUOTE = 200

INSTRUCTIONS = """\
You play a person who talks to an assistant. You are the person, never the assistant.
{persona}
What you want: {goal}
{known}
Rules:
- Write only what the person says next: one or two short sentences.
- Never invent a number, date, name or address. If you are asked for something that is not listed \
above, say that you do not know it.
- Do not end the conversation while the assistant asks you something or still has something to do.
- When you have what you want, or when it is clear that you cannot get it, write {finished}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A rule that a user broke: which, in which of its messages (from 1), and the words."""

    rule: str
    turn: int
    text: str


Say = Callable[[int, str], Awaitable[tuple[str, str]]]
"""Gives message number n (from 0) to the agent: its answer, and why it is over, empty if it is not.
"""


@dataclass(slots=True, kw_only=True)
class SimulatedUser:
    """One user in one trial: it can be observed at any moment, like the agent's conversation.

    `spoken` are the messages so far, the user's and the agent's in turn. `ended` says why the
    conversation is over: `done`, `closed`, `user`, `max turns`, or how the agent was cut short.
    """

    user: User
    scenario: Scenario
    model: ChatModel
    place: CallKey
    seed: int
    patience: float | None = None
    spoken: list[tuple[str, str]] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    bill: list[Amount] = field(default_factory=list)
    seconds: float = 0.0
    ended: str = ""
    _steps: int = 0

    async def talk(self, say: Say) -> None:
        """Talk to the agent until the conversation is over."""
        for number in range(self.scenario.max_turns):
            with paused():  # a slow user does not use up the agent's time
                text, finished = await self._next()
            if text:
                self._check(text)
                self.spoken.append(("user", text))
                answer, over = await say(number, text)
                self.spoken.append(("assistant", answer))
                if over:
                    self.ended = over
                    return
            if finished:
                self.ended = "user"
                heard = self.spoken[-1][1] if self.spoken else ""
                if asks(heard):
                    self._flag("left", heard)
                return
        self.ended = "max turns"
        self._flag("max-turns", f"{self.scenario.max_turns} messages")

    def describe(self) -> dict[str, Any]:
        """The user as plain data, beside the messages of a transcript."""
        spent = sum(self.bill, Amount(cost=0.0))
        bill = {"calls": len(self.bill), "cost": spent.cost, "tokens": spent.tokens}
        flags = list(map(asdict, self.flags))
        parts = {"name": self.user.name, "ended": self.ended, "flags": flags}
        return {key: part for key, part in parts.items() if part} | (bill if self.bill else {})

    async def _next(self) -> tuple[str, bool]:
        """What the user says, empty if it only ends; and whether it is finished."""
        if self.scenario.opens is not None and not self.spoken:
            return self.scenario.opens, False
        clock = time.perf_counter()
        try:
            for attempt in range(SILENT):
                reply = await self._ask(attempt)
                text, end = _message(reply)
                if text or (end and self.spoken):
                    return text, end
        finally:
            self.seconds += time.perf_counter() - clock
        self._flag("silent", reply.stop_reason)
        raise RunError(
            f"the user {self.user.name} said nothing {SILENT} times: no fault of the agent"
        )

    async def _ask(self, attempt: int) -> Reply:
        """The reply of what plays the user; another seed when it is asked again."""
        given = ModelParameters() if self.user.model is None else self.user.model.parameters
        seed = self.seed if given.seed is None else given.seed
        step, self._steps = self._steps, self._steps + 1
        request = Request(
            messages=tuple(_seen_by_user(self.spoken)),
            system=instructions(self.user, self.scenario),
            parameters=replace(given, seed=seed + attempt),
            place=self.place._replace(step=USER_STEP + step),
        )
        try:
            async with asyncio.timeout(self.patience):
                reply = await self.model.complete(request)
        except TimeoutError:
            raise ModelError(
                f"the user {self.user.name} did not answer within {self.patience:g} s"
            ) from None
        if self.user.model is not None:
            self.bill.append(reply.spent)
        return reply

    def _check(self, text: str) -> None:
        """Flag what the next message of the user does against the rules."""
        scenario = self.scenario
        heard = [words for role, words in self.spoken if role == "assistant"]
        own = [words for role, words in self.spoken if role == "user"]
        known = [scenario.goal, scenario.opens or "", self.user.persona, *scenario.facts.values()]
        for word in made_up(text, [*known, *scenario.facts, *scenario.never, *heard, *own]):
            self._flag("made-up", word)
        for name in leaked(text, scenario, heard):
            self._flag("leaked", name)
        if heard and (accepted := gave_in(text, heard[-1], scenario.never)):
            self._flag("gave-in", f"{accepted}: {text}")
        if AGENT.search(text) or own.count(text) == REPEATS - 1:
            self._flag("agent", text)

    def _flag(self, rule: str, text: str) -> None:
        turn = sum(role == "user" for role, _ in self.spoken) + (rule in MESSAGE_RULES)
        self.flags.append(Flag(rule=rule, turn=turn, text=text[:LONGEST_QUOTE]))


MESSAGE_RULES = frozenset({"made-up", "leaked", "gave-in", "agent", "silent"})
"""Rules on a message that is about to be said; the others are on a conversation that is over."""


def instructions(user: User, scenario: Scenario) -> str:
    """What a model that plays a user is told."""
    known: list[str] = []
    free = [name for name in scenario.facts if name not in scenario.if_asked]
    asked = "What you know and say only when the assistant asks for it:"
    for title, names in (("What you know:", free), (asked, scenario.if_asked)):
        known += [title, *(f"- {name}: {scenario.facts[name]}" for name in names)] if names else []
    if scenario.never:
        known.append(f"What you never accept: {'; '.join(scenario.never)}.")
    return INSTRUCTIONS.format(
        persona=user.persona or "Speak as such a person would.",
        goal=scenario.goal,
        known="\n".join(known) or "You know nothing else.",
        finished=FINISHED,
    )


def _seen_by_user(spoken: Sequence[tuple[str, str]]) -> Iterator[Message]:
    """The conversation from the user's side: what the agent says is asked of the user."""
    yield Message(role="user", text=BEGIN)
    for role, text in spoken:
        mine = role == "user"
        yield Message(role="assistant" if mine else "user", text=text or NO_ANSWER)


def _message(reply: Reply) -> tuple[str, bool]:
    """The message of a reply, and whether the user is finished."""
    if reply.stop_reason == "refused":
        return "", False
    text, mark, _ = reply.text.partition(FINISHED)
    return text.strip(), bool(mark)


# Users that are no model, in the form of one: so they are recorded and replayed alike.


class ScriptedUser:
    """Says its texts in turn, and is finished with the last; what `opens` comes before them."""

    def __init__(self, say: Sequence[str], *, opened: bool = False) -> None:
        self._say = say
        self._opened = opened

    async def complete(self, request: Request, /) -> Reply:
        turn = sum(message.role == "assistant" for message in request.messages) - self._opened
        text = self._say[turn] if turn < len(self._say) else ""
        end = FINISHED if turn + 1 >= len(self._say) else ""
        return Reply(text=f"{text}\n{end}", usage=TokenUsage(), cost=0.0)


class FunctionUser:
    """A function of the messages so far, the task with its goal and facts, and the seed."""

    def __init__(self, reference: str, task: Task, *, directory: Path) -> None:
        from passhat.runner.agents.python import load_function

        assert task.scenario is not None, "a user talks about a scenario"
        self._function = load_function(reference, search=directory)
        self._about = reference
        self._directory = directory
        scenario = task.scenario
        self._task = {"name": task.name, "goal": scenario.goal, "facts": dict(scenario.facts)}

    async def complete(self, request: Request, /) -> Reply:
        from passhat.runner.agents.python import made, user_loop

        messages = [
            {"role": "user" if m.role == "assistant" else "assistant", "content": m.text}
            for m in request.messages[1:]
        ]
        call = partial(self._function, messages, self._task, request.parameters.seed)
        text = await user_loop().run(made(call, about=self._about, search=self._directory))
        if text is not None and not isinstance(text, str):
            raise RunError(
                f"{self._about} returned {short(repr(text))}: a user says a text, or None"
            )
        return Reply(text=FINISHED if text is None else text, usage=TokenUsage(), cost=0.0)


# The rules. They read words, so they can err: a flag is a reason to look, not a verdict.

WORD = re.compile(r"[\w@.+:/%$,-]+")
ENDS = ".,:/-%$+"
"""What stands around a number and does not belong to it."""

LIST_NUMBER = re.compile(r"(?m)^\s*\d{1,2}[.)]\s")

_SPELLED = "one two three four five six seven eight nine ten eleven twelve"
SPELLED = {word: str(number) for number, word in enumerate(_SPELLED.split(), 1)}

YES = re.compile(
    r"\b(yes|yeah|yep|ok|okay|sure|fine|accept|agreed?|deal|go ahead|sounds good|that works|"
    r"please do|i'?ll take)\b",
    re.IGNORECASE,
)
NO = re.compile(
    r"\b(no|not|never|none|nope|refuse|decline|rather|instead|unacceptable|\w+n'?t|cannot)\b",
    re.IGNORECASE,
)
AGENT = re.compile(
    r"\bhow (can|may) i (help|assist)\b|\bi('m| am) here to (help|assist)\b|"
    r"\banything else i can (help|assist|do)\b|\bas an ai\b|\bhappy to (help|assist) you\b",
    re.IGNORECASE,
)
"""How a user speaks that has changed sides."""


def made_up(text: str, known: Collection[str]) -> list[str]:
    """The numbers, dates, addresses and identifiers of a text that are in nothing known.

    >>> made_up("It is order 7, my card is 4111.", ["Order seven came late."])
    ['4111']
    """
    words = {word for fact in known for word in _identifiers(fact)}
    spelled = {
        SPELLED[w] for fact in known for w in re.findall(r"[a-z]+", fact.lower()) if w in SPELLED
    }
    return [
        word
        for word in dict.fromkeys(_identifiers(LIST_NUMBER.sub("", text)))
        if word not in words and word not in spelled and not _within(word, known)
    ]


def _identifiers(text: str) -> list[str]:
    """The addresses and links of a text, and its words with a digit: numbers, dates, orders."""
    words = (word.strip(ENDS).lower() for word in WORD.findall(text))
    return [
        word
        for word in words
        if any(map(str.isdigit, word)) or "://" in word or ("@" in word and "." in word)
    ]


def _within(word: str, known: Collection[str]) -> bool:
    """Whether an identifier is written otherwise in what is known: 1234 for 1,234 or 12-34."""
    bare = re.sub(r"\W", "", word)
    return len(bare) > 1 and any(bare in re.sub(r"[^\w\s]", "", fact.lower()) for fact in known)


def leaked(text: str, scenario: Scenario, heard: Sequence[str]) -> list[str]:
    """The facts to be asked for that a text states before a message of the agent names them.

    >>> held = Scenario(goal="refund", facts={"email": "ana@example.org"}, if_asked=("email",))
    >>> leaked("I am ana@example.org", held, ["Hello!"])
    ['email']
    >>> leaked("I am ana@example.org", held, ["What is your email?"])
    []
    """
    asked = " ".join(heard).lower()
    return [
        name
        for name in scenario.if_asked
        if _states(text, scenario.facts[name])
        and not any(word in asked for word in re.split(r"[\W_]+", name.lower()) if len(word) > 2)
    ]


def _states(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value.strip())}(?!\w)", text, re.IGNORECASE) is not None


def gave_in(text: str, heard: str, never: Sequence[str]) -> str | None:
    """What a text accepts of that which the user never accepts.

    >>> gave_in("Fine, that works.", "I can offer store credit.", ["store credit"])
    'store credit'
    >>> gave_in("No, not store credit.", "I can offer store credit.", ["store credit"])
    """
    if YES.search(text) is None or NO.search(text) is not None:
        return None
    both = f"{heard}\n{text}".lower()
    return next((offer for offer in never if offer.lower() in both), None)


def asks(text: str) -> bool:
    """Whether a message of the agent wants an answer; "anything else?" is how agents end.

    >>> asks("Shall I refund order 7?"), asks("Done. Is there anything else I can do?")
    (True, False)
    """
    last = re.split(r"(?<=[.!?])\s+", text.strip())[-1]
    return last.endswith("?") and "anything else" not in last.lower()
