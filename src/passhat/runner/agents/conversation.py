"""The agent loop: a model with tools, until it is done, out of turns, or out of budget."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from passhat import records
from passhat.dataclass import dataclass
from passhat.errors import ServerError
from passhat.messages import plural
from passhat.records.ledger import CallKey, both
from passhat.records.transcript import safe_picture
from passhat.runner.models import exchange

if TYPE_CHECKING:
    from passhat.runner.workspaces import TrialWorkspace

Charge = Callable[[exchange.Reply], bool]
"""Takes what a reply cost; True when the attempt has spent all it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something to say to a model: a text, with images or sounds."""

    text: str
    attachments: tuple[exchange.Attachment, ...] = ()


@dataclass(slots=True, kw_only=True)
class Conversation:
    """An exchange of messages that is under way, and what it has spent so far.

    It can be observed at any moment: an attempt that is cut short leaves what it did.
    """

    model: exchange.ChatModel
    tools: exchange.Tools
    place: CallKey
    system: str = ""
    parameters: records.ModelParameters = field(default_factory=records.ModelParameters)
    charge: Charge = lambda reply: False
    messages: list[exchange.Message] = field(default_factory=list)
    calls: list[records.ToolCall] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    usage: records.TokenUsage | None = field(default_factory=records.TokenUsage)
    cost: float | None = 0.0
    seconds: float = 0.0
    turns: int = 0
    answer: str = ""
    stop_reason: str = "timeout"
    waiting_for: str = ""
    _steps: int = 0

    async def read(self, resource: records.ServerResource) -> Said:
        """What a server's resource holds."""
        arguments = {"uri": resource.uri, "server": resource.server}
        result = await self._own_request(exchange.READ_RESOURCE, arguments)
        if result.is_error:
            raise ServerError(f"no server has the resource {resource.uri}: {result.text}")
        return Said(text=result.text, attachments=result.attachments)

    async def open_with(self, prompt: records.ServerPrompt) -> Said:
        """Begin with the messages of a server's prompt, but for the last, which is returned."""
        arguments = {
            "name": prompt.name,
            "arguments": dict(prompt.arguments),
            "server": prompt.server,
        }
        result = await self._own_request(exchange.GET_PROMPT, arguments)
        if result.is_error:
            raise ServerError(f"no server has the prompt {prompt.name}: {result.text}")
        *earlier, last = msgspec.json.decode(result.text) or [{"role": "assistant"}]
        if last["role"] != "user":
            raise ServerError(f"the prompt {prompt.name} does not end with a message of the user")
        self.messages += [
            exchange.Message(role=turn["role"], text=turn["text"]) for turn in earlier
        ]
        return Said(text=last["text"], attachments=result.attachments)

    async def say(self, turn: Said, *, max_turns: int) -> None:
        """Say something and let the model work on it until it has an answer."""
        self.messages.append(
            exchange.Message(role="user", text=turn.text, attachments=turn.attachments)
        )
        self.answer = ""
        for _ in range(max_turns):
            self.stop_reason = "timeout"
            reply = await self._ask()
            self.answer = reply.text or self.answer
            if self.charge(reply):
                self.stop_reason = "budget"
                return
            if not reply.calls:
                self.stop_reason = reply.stop_reason
                return
            for call in reply.calls:
                await self._perform(call)
        self.stop_reason = "max_turns"

    def observe(self, *, since: int = 0) -> records.Observation:
        """What has been seen so far; with `since`, only the tool calls from that one on."""
        return records.Observation(
            answer=self.answer,
            tool_calls=tuple(self.calls[since:]),
            usage=self.usage,
            cost=self.cost,
            seconds=self.seconds,
            turns=self.turns,
            stop_reason=self.stop_reason,
            messages=tuple(transcript(self.messages)),
        )

    async def _own_request(self, name: str, arguments: Mapping[str, Any]) -> exchange.ToolResult:
        given = {key: value for key, value in arguments.items() if value is not None}
        request = exchange.ToolRequest(name=name, arguments=given, place=self._next_place())
        self.waiting_for = name
        result = await self.tools.call(request)
        self.waiting_for = ""
        self.seconds += result.seconds
        return result

    async def _ask(self) -> exchange.Reply:
        reply = await self.model.complete(
            exchange.Request(
                messages=tuple(self.messages),
                system=self.system,
                tools=self.tools.specs,
                parameters=self.parameters,
                place=self._next_place(),
            )
        )
        self.turns += 1
        # What one reply leaves out is unknown of the whole.
        self.usage = both(self.usage, reply.usage)
        self.seconds += reply.seconds
        self.cost = both(self.cost, reply.cost)
        self.faults += [f"model:{fault}" for fault in reply.faults]
        self.messages.append(reply.message())
        return reply

    async def _perform(self, call: exchange.CallRequest) -> None:
        self.waiting_for = call.name
        result = await self._result(call)
        self.waiting_for = ""
        self.seconds += result.seconds
        if result.fault:
            self.faults.append(f"tool:{result.fault}")
            self.broken.append(len(self.calls))
        self.messages.append(
            exchange.Message(
                role="tool",
                text=result.text,
                call_id=call.id,
                is_error=result.is_error,
                attachments=result.attachments,
            )
        )
        self.calls.append(
            records.ToolCall(
                name=call.name,
                arguments=call.sent,
                result=result.text,
                error=result.text if result.is_error else None,
                server=result.server or None,
                seconds=result.seconds,
            )
        )

    async def _result(self, call: exchange.CallRequest) -> exchange.ToolResult:
        if call.broken is not None:
            return exchange.ToolResult(
                text=f"The arguments of {call.name} are not a JSON object: {call.broken[:200]}",
                is_error=True,
            )
        if call.name in (exchange.READ_RESOURCE, exchange.GET_PROMPT):
            return exchange.unknown_tool(call.name, self.tools.specs)
        return await self.tools.call(
            exchange.ToolRequest(name=call.name, arguments=call.arguments, place=self._next_place())
        )

    def _next_place(self) -> CallKey:
        step = self._steps
        self._steps += 1
        return CallKey(*self.place[:3], step)


def transcript(messages: Sequence[exchange.Message]) -> list[dict[str, Any]]:
    """A conversation as plain data, to be shown later."""
    entries = []
    for message in messages:
        entry: dict[str, Any] = {"role": message.role}
        if message.text:
            entry["text"] = message.text
        if message.calls:
            entry["calls"] = [
                {"name": call.name, "arguments": call.sent, "id": call.id} for call in message.calls
            ]
        if message.is_error:
            entry["is_error"] = True
        if message.attachments:
            shown = [
                f"[{each.mime}, {plural(len(each.data), 'character')}]"
                for each in message.attachments
            ]
            entry["text"] = "\n".join([message.text, *shown]).strip()
            uris = (f"data:{each.mime};base64,{each.data}" for each in message.attachments)
            if images := [uri for uri in uris if safe_picture(uri) is not None]:
                entry["images"] = images
        if message.call_id:
            entry["call_id"] = message.call_id
        entries.append(entry)
    return entries


# One trial as an agent sees it, and the interface that every agent has.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRequest:
    """What an agent is asked: the task, the place of the trial in the run, its seed and its time.

    `workdir` is the directory of this trial, which `make_workdir` makes; `directory` is that of the
    suite. For one step of a task, `message` is its prompt and `history` the messages before it.
    `workspace` is what the agent works in, where the task has one.
    """

    task: records.Task
    place: CallKey
    seed: int
    timeout: float | None
    workdir: Path
    directory: Path
    message: str | None = None
    history: tuple[Mapping[str, str], ...] = ()
    workspace: TrialWorkspace | None = None

    @property
    def prompt(self) -> str:
        """What the agent is asked: the text of the task, or of one of its steps."""
        return self.task.prompt if self.message is None else self.message

    def for_step(
        self, number: int, message: str, history: Sequence[Mapping[str, str]], timeout: float | None
    ) -> AttemptRequest:
        """The request for one step or message, with the messages before it."""
        return replace(
            self,
            place=self.place._replace(step=number),
            message=message,
            history=tuple(history),
            timeout=timeout,
        )

    def make_workdir(self) -> Path:
        """The directory of this trial, made on first use."""
        self.workdir.mkdir(parents=True, exist_ok=True)
        return self.workdir

    def describe(self) -> dict[str, Any]:
        """The request as plain data, for agents outside this process."""
        return {
            "task": self.task.name,
            "prompt": self.prompt,
            "trial": self.place.trial,
            "seed": self.seed,
            "tags": list(self.task.tags),
            "values": dict(self.task.values),
            "workdir": str(self.workdir) if self.workspace is None else self.workspace.inside,
            "images": [str(path) for path in self.task.images],
            "step": self.place.step + 1,
            "history": [dict(message) for message in self.history],
        }

    def fingerprint(self, clean: Callable[[str], str] = str) -> str:
        """A hash of what the agent is asked; `clean` takes secrets out."""
        seen = (self.task.name, self.prompt, dict(self.task.values), self.seed)
        text = clean(msgspec.json.encode(seen, order="sorted", enc_hook=str).decode())
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Agent(Protocol):
    """Anything that takes a request and returns what was seen of the attempt.

    It raises TimeoutError when its own time is over, and RunError when something around it broke.
    """

    async def attempt(self, request: AttemptRequest, /) -> records.Observation: ...
