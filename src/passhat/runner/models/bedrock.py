"""The Converse API of Amazon Bedrock, with a Bedrock API key or signed requests."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from passhat.dataclass import dataclass
from passhat.errors import ModelError
from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models import exchange
from passhat.runner.models.anthropic import DEFAULT_MAX_TOKENS, thinking_budget

STOP_REASONS = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
}

ALGORITHM = "AWS4-HMAC-SHA256"
UNRESERVED = "-_.~"


def encode(model: str, request: exchange.Request, stream: bool) -> dict[str, Any]:
    """The body of a request; the address names the model."""
    given = request.parameters
    limits = {
        "maxTokens": given.max_tokens,
        "temperature": given.temperature,
        "topP": given.top_p,
        "stopSequences": list(given.stop) or None,
    }
    body: dict[str, Any] = {"messages": exchange.joined_turns(request.messages, _blocks)}
    if request.system:
        body["system"] = [{"text": request.system}]
    if config := {key: value for key, value in limits.items() if value is not None}:
        body["inferenceConfig"] = config
    if request.tools and given.tool_choice != "none":
        body["toolConfig"] = {
            "tools": [
                {
                    "toolSpec": {
                        "name": tool.name,
                        "description": tool.description or tool.name,
                        "inputSchema": {"json": tool.parameters},
                    }
                }
                for tool in request.tools
            ],
            "toolChoice": _tool_choice(given),
        }
    if given.reasoning:
        _add_thinking(body, model, given.reasoning)
    if given.prompt_cache:
        _mark_for_cache(body)
    # Converse refuses keys that it does not know, and has another address for streams.
    return body | {key: value for key, value in given.extra.items() if key != "stream"}


def _add_thinking(body: dict[str, Any], model: str, reasoning: str | int) -> None:
    """Claude's own field: Converse has no common one."""
    if "claude" not in model:
        raise ModelError(
            f"on Bedrock only Claude takes `reasoning:`; give {model} its own field in `extra:`"
        )
    budget = thinking_budget(reasoning)
    body["additionalModelRequestFields"] = {
        "thinking": {"type": "enabled", "budget_tokens": budget}
    }
    config = body.setdefault("inferenceConfig", {})
    config["maxTokens"] = config.get("maxTokens", DEFAULT_MAX_TOKENS) + budget


def _mark_for_cache(body: dict[str, Any]) -> None:
    """Mark the end of what stays the same from turn to turn: tools, system, the conversation."""
    point = {"cachePoint": {"type": "default"}}
    for blocks in (body.get("system"), body.get("toolConfig", {}).get("tools")):
        if blocks:
            blocks.append(point)
    if body["messages"]:
        body["messages"][-1]["content"].append(point)


def decode(body: exchange.Body) -> exchange.Reply:
    """The reply in the body of an answer."""
    blocks = body["output"]["message"]["content"]
    usage = body.get("usage") or {}
    reason = str(body.get("stopReason"))
    used = [block["toolUse"] for block in blocks if "toolUse" in block]
    return exchange.Reply(
        text="".join(block["text"] for block in blocks if "text" in block),
        calls=tuple(
            exchange.call_request(u["toolUseId"], u["name"], u.get("input") or {}) for u in used
        ),
        stop_reason=STOP_REASONS.get(reason, reason),
        usage=_usage(usage),
        raw=tuple(blocks),
    )


def _blocks(message: exchange.Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        status = "error" if message.is_error else "success"
        content = [{"text": message.text or " "}, *_attached(message, "image")]
        result = {"toolUseId": message.call_id, "content": content, "status": status}
        return [{"toolResult": result}]
    if message.raw:
        return [dict(block) for block in message.raw]
    text: list[dict[str, Any]] = [{"text": message.text}] if message.text else []
    return [*text, *_attached(message, "image", "audio")] + [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}}
        for call in message.calls
    ]


def _attached(message: exchange.Message, *kinds: str) -> list[dict[str, Any]]:
    return [
        {each.kind: {"format": each.format, "source": {"bytes": each.data}}}
        for each in exchange.attachments_of(message, *kinds, wire="bedrock-converse")
    ]


def _tool_choice(given: ModelParameters) -> dict[str, Any]:
    word = given.tool_choice or "auto"
    known: dict[str, dict[str, Any]] = {"auto": {"auto": {}}, "required": {"any": {}}}
    return known.get(word, {"tool": {"name": word}})


def _usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    if not usage:
        return None
    # inputTokens leaves out what was read from or written to the cache.
    read = usage.get("cacheReadInputTokens") or 0
    written = usage.get("cacheWriteInputTokens") or 0
    return TokenUsage(
        tokens_in=(usage.get("inputTokens") or 0) + read + written,
        tokens_out=usage.get("outputTokens") or 0,
        cached_in=read,
        cache_written=written,
    )


BEDROCK = exchange.WireFormat(
    name="bedrock-converse",
    path="/model/{model}/converse",
    list_path="/foundation-models",
    headers=exchange.bearer,
    encode=encode,
    decode=decode,
    assemble=None,  # it streams in a binary format, and answers are read whole anyway
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AwsCredentials:
    """An access key, its secret, and the session token of temporary ones."""

    access_key: str
    secret_key: str
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSigner:
    """Signs requests to one service in one region."""

    credentials: AwsCredentials
    region: str
    service: str = "bedrock"
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __call__(self, url: str, body: bytes) -> dict[str, str]:
        """The headers of a POST request with a JSON body."""
        sent = {"host": urlsplit(url).netloc, "content-type": "application/json"}
        signed = self.sign("POST", url, sent, body)
        return {name: value for name, value in signed.items() if name not in sent}

    def sign(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """The headers of a request, with the date, the token and the signature added."""
        moment = self.now().strftime("%Y%m%dT%H%M%SZ")
        whole = {**{k.lower(): v.strip() for k, v in headers.items()}, "x-amz-date": moment}
        if self.credentials.token:
            whole["x-amz-security-token"] = self.credentials.token
        names = ";".join(sorted(whole))
        scope = f"{moment[:8]}/{self.region}/{self.service}/aws4_request"
        canonical = _canonical_request(method, url, whole, body)
        to_sign = "\n".join([ALGORITHM, moment, scope, _digest(canonical.encode())])
        signature = hmac.new(self._key(moment[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
        who = f"Credential={self.credentials.access_key}/{scope}"
        whole["authorization"] = f"{ALGORITHM} {who}, SignedHeaders={names}, Signature={signature}"
        return whole

    def _key(self, day: str) -> bytes:
        """The secret key, derived for one day, region and service."""
        key = f"AWS4{self.credentials.secret_key}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def _canonical_request(method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    parts = urlsplit(url)
    given = [
        (quote(name, safe=UNRESERVED), quote(value, safe=UNRESERVED))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    query = "&".join(f"{name}={value}" for name, value in sorted(given))
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers)]
    # All services but S3 encode the path a second time.
    path = quote(parts.path or "/", safe=f"/{UNRESERVED}")
    return "\n".join([method, path, query, *lines, "", ";".join(sorted(headers)), _digest(body)])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
