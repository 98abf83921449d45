"""OpenTelemetry GenAI spans, in the SDK's JSON or OTLP: the user says which attribute is what.

The conventions name no task and no trial. A trial is the outermost span that carries the
attribute of the task, with everything below it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line, seconds_between, sum_of
from passhat.ingest.transcripts import as_text, asked_and_answered, transcript_of
from passhat.messages import few, short, short_value
from passhat.records import Outcome
from passhat.records.columns import ColumnMap, as_number, is_missing, outcome_of, parse_pass_if
from passhat.records.transcript import Call, Transcript, Turn
from passhat.records.trial import path_of

READING = Reading(
    format="OpenTelemetry spans",
    versions="GenAI, OpenInference and Vercel AI SDK, as SDK JSON or OTLP",
    system="`system`, gen_ai.agent.name or gen_ai.request.model",
    task="the attribute of `task`, or the only one like task.id",
    run="the attribute of `trial`, or order of spans",
    outcome="the attribute of `passed`, `pass_if`, or the spans' status",
    score="the attribute of `score`",
)

STATUS_ERROR = ("ERROR", "STATUS_CODE_ERROR", "2")

_LIKE_A_TASK = re.compile(r"(?:^|[._])(?:task|test|case|sample)(?:[._](?:id|name))?$")

SCORE_ATTRIBUTE = "gen_ai.evaluation.score.value"
LABEL_ATTRIBUTE = "gen_ai.evaluation.score.label"


class _SdkContext(msgspec.Struct):
    trace_id: str
    span_id: str


class _SdkStatus(msgspec.Struct):
    status_code: str = "UNSET"
    description: str | None = None


class _SdkEvent(msgspec.Struct):
    attributes: dict[str, Any] | None = None


class _SdkSpan(msgspec.Struct):
    name: str
    context: _SdkContext
    parent_id: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    status: _SdkStatus = msgspec.field(default_factory=_SdkStatus)
    attributes: dict[str, Any] | None = None
    events: list[_SdkEvent] | None = None


class _OtlpPair(msgspec.Struct):
    key: str
    value: dict[str, Any] = {}


class _OtlpEvent(msgspec.Struct):
    attributes: list[_OtlpPair] = []


class _OtlpStatus(msgspec.Struct):
    code: int | str = 0
    message: str | None = None


class _OtlpSpan(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    name: str = ""
    parent_span_id: str | None = None
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: list[_OtlpPair] = []
    events: list[_OtlpEvent] = []
    status: _OtlpStatus = msgspec.field(default_factory=_OtlpStatus)


class _OtlpScope(msgspec.Struct):
    spans: list[_OtlpSpan] = []


class _OtlpResource(msgspec.Struct, rename="camel"):
    scope_spans: list[_OtlpScope] = []


class _OtlpFile(msgspec.Struct, rename="camel"):
    resource_spans: list[_OtlpResource]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OtelSpan:
    """A span, whatever it was written as; `attributes` include those of its events."""

    key: tuple[str, str]
    parent: tuple[str, str] | None
    name: str
    seconds: float | None
    started: str | None
    error: str | None
    attributes: Mapping[str, Any]


def recognises(document: Document) -> bool:
    """Whether entries are spans, or an OTLP export of them."""
    exported = document.kind != "array" and document.has("resourceSpans")
    return exported or document.has("context", "parent_id", "attributes")


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a span that carries the task's attribute, with what it and its children did."""
    judge = _judge(document, mapping)
    task, trials = _trials(document, mapping)
    facts = {} if mapping.task else {"task": f'attribute "{task}"'}
    mapping = replace(mapping, task=task)
    rows = [_row(document, spans, mapping, judge) for spans in trials]
    return TrialTable.of_rows(rows, entry="trial span", judged=True, read_as=facts)


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """What the spans of each trial say in the order of time, if they were let keep it."""
    trials = _trials(document, mapping)[1][::-1]
    while trials:
        spans = trials.pop()  # not needed again: the texts of all spans are most of the file
        ordered = sorted(spans, key=lambda span: span.started or "")
        error = spans[0].error or ""
        yield spans_transcript([span.attributes for span in ordered], error)


def _trials(document: Document, mapping: ColumnMap) -> tuple[str, list[list[OtelSpan]]]:
    """The attribute of the task, chosen or the only one like it, and each trial's spans."""
    spans = list(_spans(document))
    seen = sorted({name for span in spans for name in span.attributes})
    likely = [name for name in seen if _LIKE_A_TASK.search(name)]
    task = mapping.task or (likely[0] if len(likely) == 1 else None)
    if task is None:
        such = f", such as `task={likely[0]!r}`" if likely else ""
        raise ReadError(
            f"{document.name}: spans name no task; say which attribute does with `task`{such}, and "
            f"which the trial and the outcome with `trial` and `passed` (or `passed='status'`). "
            f"Attributes seen: {few(seen, 30)}"
        )
    below: dict[tuple[str, str] | None, list[OtelSpan]] = defaultdict(list)
    for span in spans:
        below[span.parent].append(span)
    roots = _trial_spans(spans, task)
    if not roots:
        names = few(seen, 30)
        raise ReadError(f'{document.name}: no span has "{short(task)}"; attributes seen: {names}')
    return task, [[root, *_descendants(root, below)] for root in roots]


def _spans(document: Document) -> Iterator[OtelSpan]:
    if not document.has("resourceSpans"):
        yield from map(_from_sdk, document.each(_SdkSpan))
        return
    for file in document.each(_OtlpFile):
        for resource in file.resource_spans:
            for scope in resource.scope_spans:
                yield from (_from_otlp(document, span) for span in scope.spans)


def _from_sdk(span: _SdkSpan) -> OtelSpan:
    trace = span.context.trace_id
    attributes: dict[str, Any] = {}
    for event in span.events or ():
        attributes |= event.attributes or {}
    failed = span.status.status_code in STATUS_ERROR
    return OtelSpan(
        key=(trace, span.context.span_id),
        parent=(trace, span.parent_id) if span.parent_id else None,
        name=span.name,
        seconds=seconds_between(span.start_time, span.end_time),
        started=span.start_time,
        error=(first_line(span.status.description) or "error") if failed else None,
        attributes=attributes | (span.attributes or {}),
    )


def _from_otlp(document: Document, span: _OtlpSpan) -> OtelSpan:
    where = _place(document, span.name, span.span_id)
    attributes: dict[str, Any] = {}
    for event in span.events:
        attributes |= _plain(where, event.attributes)
    ended = _whole(f"{where}, field endTimeUnixNano", span.end_time_unix_nano)
    nanoseconds = ended - _whole(f"{where}, field startTimeUnixNano", span.start_time_unix_nano)
    failed = str(span.status.code) in STATUS_ERROR
    return OtelSpan(
        key=(span.trace_id, span.span_id),
        parent=(span.trace_id, span.parent_span_id) if span.parent_span_id else None,
        name=span.name,
        seconds=nanoseconds / 1e9,
        started=None,
        error=(first_line(span.status.message) or "error") if failed else None,
        attributes=attributes | _plain(where, span.attributes),
    )


def _place(document: Document, name: str, span_id: str) -> str:
    return f'{document.name}, span "{short(name)}" ({short(span_id)})'


def _plain(where: str, pairs: Iterable[_OtlpPair]) -> dict[str, Any]:
    """OTLP wraps each value in its type, and whole numbers in strings."""
    plain: dict[str, Any] = {}
    for pair in pairs:
        for kind, value in pair.value.items():
            if kind == "intValue":
                value = _whole(f"{where}, attribute {short(pair.key)}, field intValue", value)
            plain[pair.key] = value
    return plain


def _whole(field: str, value: object) -> int:
    """A whole number of 64 bits, which OTLP writes as a text."""
    try:
        whole = int(value) if isinstance(value, (int, str)) else None
    except ValueError:
        whole = None
    if whole is None or abs(whole) >= 2**64:
        raise ReadError(f"{field}: must be a whole number of 64 bits, got {short_value(value)}")
    return whole


def _trial_spans(spans: Sequence[OtelSpan], task: str) -> list[OtelSpan]:
    by_key = {span.key: span for span in spans}

    def outermost(span: OtelSpan) -> bool:
        seen = {span.key}
        parent = by_key.get(span.parent) if span.parent else None
        while parent is not None and parent.key not in seen:
            if task in parent.attributes:
                return False
            seen.add(parent.key)
            parent = by_key.get(parent.parent) if parent.parent else None
        return True

    return [span for span in spans if task in span.attributes and outermost(span)]


def _descendants(
    root: OtelSpan, below: Mapping[tuple[str, str] | None, Sequence[OtelSpan]]
) -> Iterator[OtelSpan]:
    seen, waiting = {root.key}, list(below.get(root.key, ()))
    while waiting:
        span = waiting.pop(0)
        if span.key not in seen:
            seen.add(span.key)
            yield span
            waiting.extend(below.get(span.key, ()))


def _row(
    document: Document,
    spans: Sequence[OtelSpan],
    mapping: ColumnMap,
    judge: Callable[[Sequence[OtelSpan]], dict[str, Any]],
) -> dict[str, Any]:
    root = spans[0]
    calls = [span for span in spans if operation(span.attributes) in MODEL_CALLS]
    tools = [span for span in spans if operation(span.attributes) in TOOL_CALLS]
    names = [str(first_of(span.attributes, TOOL_NAMES) or span.name) for span in tools]
    row = {
        "task": _find(spans, mapping.task or ""),
        "tokens_in": _tokens(document, root, calls, TOKENS_IN),
        "tokens_out": _tokens(document, root, calls, TOKENS_OUT),
        "seconds": root.seconds,
        "turns": len(calls) or None,
        "tool_calls": len(tools),
        "tools": path_of(names),
        "started": root.started,
        "error": root.error,
        **judge(spans),
    }
    of_system = [mapping.system] if mapping.system else SYSTEM_ATTRIBUTES
    named = (_find(spans, attribute) for attribute in of_system)
    system = next((name for name in named if name is not None), None)
    chosen = mapping.chosen()
    for name in chosen.keys() - {"task", "system", "passed", "score", "error"}:
        row[name] = _find(spans, chosen[name])
    return row | ({"system": system} if system is not None else {})


def _tokens(
    document: Document, root: OtelSpan, calls: Sequence[OtelSpan], attributes: Sequence[str]
) -> float | None:
    """Those of the model calls; if no call states any, what the whole trial states."""
    for spans in (calls, [root]):
        stated = (
            (span, next((a for a in attributes if a in span.attributes), None)) for span in spans
        )
        numbers = (_number(document, span, a, span.attributes[a]) for span, a in stated if a)
        if (total := sum_of(numbers)) is not None:
            return total
    return None


def _number(document: Document, span: OtelSpan, attribute: str, value: object) -> float:
    try:
        return as_number(value)
    except ValueError:
        where = _place(document, span.name, span.key[1])
        raise ReadError(
            f"{where}, attribute {short(attribute)}: must be a number, got {short_value(value)}"
        ) from None


def _find(spans: Sequence[OtelSpan], attribute: str) -> Any:
    """The attribute, of the outermost span that has it; `status`, `name` and `trace_id` too."""
    own = {
        "status": "error" if spans[0].error else "ok",
        "name": spans[0].name,
        "trace_id": spans[0].key[0],
    }
    for span in spans:
        if attribute in span.attributes:
            return span.attributes[attribute]
    return own.get(attribute)


def _judge(
    document: Document, mapping: ColumnMap
) -> Callable[[Sequence[OtelSpan]], dict[str, Any]]:
    """What says the outcome of a trial: the user's choice, else the event of an evaluation."""
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    score = mapping.score or SCORE_ATTRIBUTE
    label = mapping.passed or LABEL_ATTRIBUTE

    def judge(spans: Sequence[OtelSpan]) -> dict[str, Any]:
        cells = [_find(spans, score if t.column == "score" else t.column) for t in tests]
        value, word = _find(spans, score), _find(spans, label)
        graded = {} if value is None else {"score": _number(document, spans[0], score, value)}
        if tests and not any(is_missing(cell) for cell in cells):
            for test, cell in zip(tests, cells, strict=True):
                if isinstance(test.value, float):
                    _number(document, spans[0], test.column, cell)
            holds = all(test.holds(cell) for test, cell in zip(tests, cells, strict=True))
            return graded | {"outcome": Outcome(holds)}
        if word is not None and (outcome := outcome_of(word)) is not None:
            return graded | {"outcome": outcome}
        if value is not None:
            return graded | {"outcome": Outcome(graded["score"] >= 1)}
        if spans[0].error is not None:
            return {"outcome": Outcome.ERRORED}
        raise ReadError(
            f"{_place(document, spans[0].name, spans[0].key[1])}: nothing says whether it passed "
            f"({short(label)} is {short_value(word)}); choose an attribute with "
            "`passed` or `score`, or the span's own status with `passed='status'`"
        )

    return judge


# The names of span attributes, and the conversation in spans: each message once.
MODEL_CALLS = ("chat", "text_completion", "generate_content")
TOOL_CALLS = ("execute_tool",)
SYSTEM_ATTRIBUTES = (
    *("gen_ai.agent.name", "agent.name", "gen_ai.request.model", "llm.model_name", "ai.model.id"),
    "service.name",
)
TOKENS_IN = (
    *("gen_ai.usage.input_tokens", "llm.token_count.prompt", "ai.usage.inputTokens"),
    "ai.usage.promptTokens",
)
TOKENS_OUT = (
    *("gen_ai.usage.output_tokens", "llm.token_count.completion", "ai.usage.outputTokens"),
    "ai.usage.completionTokens",
)
TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
"""What OpenTelemetry's GenAI names, OpenInference and Vercel's AI SDK call these."""

WHOLE = ("pydantic_ai.all_messages", "all_messages_events", "gen_ai.conversation.messages")
"""Attributes in which frameworks keep a whole conversation."""

INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "input.value")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "output.value")

Attributes = Mapping[str, Any]


def operation(attributes: Mapping[str, Any]) -> str:
    """What a span does, in OpenTelemetry's words."""
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    if kind in ("LLM", "TOOL"):
        return MODEL_CALLS[0] if kind == "LLM" else TOOL_CALLS[0]
    vercel = str(attributes.get("ai.operationId", ""))
    if vercel.endswith((".doGenerate", ".doStream")):
        return MODEL_CALLS[0]
    if vercel == "ai.toolCall":
        return TOOL_CALLS[0]
    return str(attributes.get("gen_ai.operation.name", ""))


def first_of(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of some attributes that a span has."""
    return next((attributes[name] for name in names if name in attributes), None)


def spans_transcript(spans: Sequence[Attributes], error: str = "") -> Transcript | None:
    """A conversation out of the attributes of a trial's spans, in the order of time.

    Each call of a model repeats the messages before it: only new ones are taken.
    """
    turns = tuple(_new_turns(spans)) or _whole_conversation(spans) or tuple(_tool_turns(spans))
    return Transcript(messages=turns, error=error if turns else "") or None


def _new_turns(spans: Sequence[Attributes]) -> Iterator[Turn]:
    before: tuple[Turn, ...] = ()
    for span in spans:
        given, gave = _find_attribute(span, INPUTS), _find_attribute(span, OUTPUTS)
        if not span.get("gen_ai.operation.name") or (given is None and gave is None):
            continue
        if before and span["gen_ai.operation.name"] == "invoke_agent":
            continue  # an agent's span sums up the calls that were taken already
        asked = asked_and_answered(given, None)
        yield from asked[len(before) :] if asked[: len(before)] == before else asked
        answered = asked_and_answered(None, gave)
        yield from answered
        before = (*asked, *answered)


def _whole_conversation(spans: Sequence[Attributes]) -> tuple[Turn, ...]:
    whole = (transcript_of(_find_attribute(span, WHOLE)) for span in spans)
    return next((words.messages for words in whole if words is not None and words.messages), ())


def _tool_turns(spans: Sequence[Attributes]) -> Iterator[Turn]:
    for span in spans:
        arguments = _find_attribute(span, ("gen_ai.tool.call.arguments",))
        result = _find_attribute(span, ("gen_ai.tool.call.result",))
        if arguments is not None or result is not None:
            name = as_text(span.get("gen_ai.tool.name")) or "a tool"
            call = Call(name=name, arguments=as_text(arguments))
            yield Turn(role="assistant", calls=(call,))
            yield Turn(role="tool", name=name, text=as_text(result))


def _find_attribute(span: Attributes, names: Sequence[str]) -> Any:
    return next((_plain_value(span[name]) for name in names if span.get(name) is not None), None)


def _plain_value(value: Any) -> Any:
    """OTLP wraps each value inside a list or an object in its type, at every depth."""
    if not isinstance(value, Mapping) or set(value) != {"values"}:
        return value
    entries = value["values"] if isinstance(value["values"], list) else []
    if all(isinstance(entry, Mapping) and "key" in entry for entry in entries) and entries:
        return {str(entry["key"]): _unwrapped(entry.get("value")) for entry in entries}
    return [_unwrapped(entry) for entry in entries]


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        return _plain_value(next(iter(value.values())))
    return value
