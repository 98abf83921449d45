"""The transcript of a trial: turns and calls, the answer, its grades; and finding a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeVar, cast

from passhat.dataclass import Displayed, dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, quoted, short_repr
from passhat.records.secrets import beginning, clean_strings, clean_text, shapes_near
from passhat.records.trial import Outcome

TranscriptKey = tuple[str, str, int]
"""System, task and trial."""

Transcripts = Mapping[TranscriptKey, str]
"""Transcripts by trial, as the text that is kept: `Transcript.to_json`, or plain words."""

CUT = "[cut here: "
"""The beginning of the mark where a text was cut."""

UNKNOWN_ROLE = "unknown"
"""The role of a message that states none."""

_PARTS = {"messages", "answer", "error", "stop_reason", "checks", "stderr"}
_ITEM_COST = 16  # of an empty turn, call or check: many of nothing are not free either

Item = TypeVar("Item", bound="Turn | Call | Check")
LARGEST_PICTURE = 400_000
"""Characters of a picture that is kept: 300 kB, a screenshot; larger ones are only named."""

# Formats that cannot hold a script or load anything; SVG can do both.
_PICTURE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool that was called; `arguments` as text, mostly JSON.

    `id` ties the call to the turn that answers it; two calls that differ in it alone are equal.
    """

    name: str
    arguments: str = ""
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message; where a tool answered, `name` is the tool's and `call_id` the call's.

    `images` are data URIs that `safe_picture` let through.
    """

    role: str
    name: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    is_error: bool = False
    call_id: str = field(default="", compare=False)
    images: tuple[str, ...] = ()


_EXPECTED_AND_FOUND = (
    r"""(?s)expected ((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^'"])*?), got (.*)"""
)
"""What is in quotes may say `, got ` itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one grader; `matcher` is how it compared, if that is known.

    `expected` is what it wanted to see and `found` what it saw instead, where the log has them.
    """

    target: str
    score: float | None = None
    message: str = ""
    matcher: str = ""
    expected: str = ""
    found: str = ""

    @property
    def compared(self) -> tuple[str, str]:
        """What was expected and what was found; a matcher of a suite says both in its message.

        >>> Check(target="answer", message="expected to contain '24', got 'no idea'").compared
        ("to contain '24'", "'no idea'")
        """
        if self.expected or self.found or not self.message.startswith("expected "):
            return self.expected, self.found
        if both := re.fullmatch(_EXPECTED_AND_FOUND, self.message):
            return both[1], both[2]
        wanted, got, rest = self.message.removeprefix("expected ").partition(", got ")
        return (wanted, rest) if got else ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A trial as a conversation; `answer` and `error` are set if no turn holds them.

    `stderr` and `exit_code` are a command's; `faults` are those that were injected on purpose;
    `expected_tool` is the one that the suite says is right. `diff` is what a trial changed in its
    workspace (None if it had none that was graded), `tests` how each test ended there, by name,
    `kept_files` what is kept of it, by name, and `remarks` are what to know of that.

    >>> Transcript(messages=(Turn(role="user", text="Hi"),), stop_reason="done").to_json()
    '{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'
    """

    messages: tuple[Turn, ...] = ()
    answer: str = ""
    error: str = ""
    stop_reason: str = ""
    checks: tuple[Check, ...] = ()
    stderr: str = ""
    exit_code: int | None = None
    faults: tuple[str, ...] = ()
    expected_tool: str = ""
    diff: str | None = None
    tests: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    kept_files: tuple[tuple[str, str], ...] = ()

    @property
    def request(self) -> str:
        """The first words of a user, in one line."""
        texts = (turn.text for turn in self.messages if turn.role == "user")
        return " ".join(next(filter(None, texts), "").split())

    @classmethod
    def from_json(cls, kept: str) -> Transcript:
        """The transcript in a text that is kept; a text that holds none is the answer.

        >>> Transcript.from_json('{"messages": [{"role": "user", "text": "Hi"}]}').messages[0].text
        'Hi'
        >>> Transcript.from_json("just words").answer
        'just words'
        """
        try:
            parts = json.loads(kept)
        except (ValueError, RecursionError):
            return cls(answer=kept)
        if not isinstance(parts, dict) or not _PARTS & set(parts):
            return cls(answer=kept)
        code, faults = parts.get("exit_code"), parts.get("faults")
        workspace = parts.get("workspace")
        left = workspace if isinstance(workspace, dict) else {}
        files = left.get("kept")
        return cls(
            messages=tuple(_kept_turn(turn) for turn in _objects(parts.get("messages"))),
            answer=_text(parts.get("answer")),
            error=_text(parts.get("error")),
            stop_reason=_text(parts.get("stop_reason")),
            checks=tuple(_kept_check(check) for check in _objects(parts.get("checks"))),
            stderr=_text(parts.get("stderr")),
            exit_code=code if isinstance(code, int) else None,
            faults=tuple(map(_text, faults)) if isinstance(faults, list) else (),
            expected_tool=_text(parts.get("expected_tool")),
            diff=None if (diff := left.get("diff")) is None else _text(diff),
            tests=tuple(
                (_text(test.get("name")), _text(test.get("outcome")))
                for test in _objects(left.get("tests"))
            ),
            kept_files=tuple((name, _text(text)) for name, text in files.items())
            if isinstance(files, dict)
            else (),
            remarks=(
                *_workspace_remarks(left),
                *_gateway_remarks(parts.get("gateway")),
                *_user_remarks(parts.get("user")),
            ),
        )

    def __bool__(self) -> bool:
        """Whether there is a conversation; a bare reason to stop, or a bare check, is none."""
        return bool(self.messages or self.answer or self.error)

    def to_json(self) -> str:
        """The text that is kept: the same parts as of a trial that passhat ran."""
        parts = {
            "messages": [_turn(turn) for turn in self.messages],
            "answer": self.answer,
            "error": self.error,
            "stop_reason": self.stop_reason,
            "checks": [_check(check) for check in self.checks],
            "stderr": self.stderr,
            "exit_code": self.exit_code,
            "faults": list(self.faults),
            "expected_tool": self.expected_tool,
            "workspace": self._workspace(),
        }
        kept = {name: part for name, part in parts.items() if part or part == 0}
        return json.dumps(kept, ensure_ascii=False)

    def _workspace(self) -> dict[str, object]:
        tests = [{"name": name, "outcome": outcome} for name, outcome in self.tests]
        parts = {"flags": list(self.remarks), "tests": tests, "kept": dict(self.kept_files)}
        changed = {} if self.diff is None else {"diff": self.diff}
        return {**changed, **{name: part for name, part in parts.items() if part}}

    def cut(self, limit: int) -> Transcript:
        """The same, at most about `limit` characters of it, with a mark where it ends.

        Every field counts, because the agent under test may have written any of them. A quarter
        of the room is kept for how the trial ended, which is what a reader looks for.

        >>> long = Transcript(messages=(Turn(role="user", text="Hello there"),))
        >>> long.cut(25).messages[0].text
        'Hello [cut here: 6 more characters]'
        """
        if self.size() <= limit:
            return self
        if any(turn.images for turn in self.messages):
            # Words come first: pictures get the room that is left.
            turns = tuple(replace(turn, images=()) for turn in self.messages)
            words = replace(self, messages=turns)
            return _with_images(words, self, limit) if words.size() <= limit else words.cut(limit)
        spoken = sum(map(turn_size, self.messages))
        end = _Room(given := max(limit - spoken_room(limit), limit - spoken))
        error, answer, stop = map(end.take, (self.error, self.answer, self.stop_reason))
        # Many tests must leave room for the change that they tested.
        tests = tuple(_fit_tests(self.tests, end, least=end.left // 2))
        stderr = end.take(self.stderr)
        diff = None if self.diff is None else end.take(self.diff)
        remarks = tuple(filter(None, map(end.take, self.remarks)))
        files = tuple((name, end.take(text)) for name, text in self.kept_files if end.left > 0)
        checks = tuple(_fit(self.checks, end))
        room = _Room(limit - (given - end.left))
        messages = tuple(_fit(self.messages, room))
        return replace(
            self,
            messages=messages,
            answer=answer,
            error=error,
            stop_reason=stop,
            stderr=stderr,
            checks=checks,
            diff=diff,
            tests=tests,
            remarks=remarks,
            kept_files=files,
        )

    def size(self) -> int:
        """How many characters it shows, in whatever field; a turn, call or check costs some too."""
        ends = len(self.answer) + len(self.error) + len(self.stop_reason) + len(self.stderr)
        ends += len(self.diff or "") + sum(map(len, self.remarks))
        ends += sum(len(name) + len(text) for name, text in self.kept_files)
        ends += sum(map(_test_size, self.tests))
        return ends + sum(map(turn_size, self.messages)) + sum(map(_check_size, self.checks))


def _workspace_remarks(left: dict[str, Any]) -> Iterator[str]:
    """What to know of a trial's workspace: that nothing isolated it, what it touched or left."""
    if "NOT ISOLATED" in _text(left.get("sandbox")):
        yield "NOT ISOLATED: it ran without a sandbox"
    elif sandbox := _text(left.get("sandbox")):
        yield f"in {sandbox}, with limits by {_text(left.get('limits')) or 'nothing'}"
    if stage := _text(left.get("stage")):
        yield f"ended at the stage: {stage}"
    flags = left.get("flags")
    yield from map(_text, flags if isinstance(flags, list) else ())


def _user_remarks(user: object) -> Iterator[str]:
    """What a simulated user did wrong: the rule, the words, and in which of its messages."""
    remarks = user if isinstance(user, dict) else {}
    for flag in _objects(remarks.get("flags")):
        rule, text, turn = (_text(flag.get(key)) for key in ("rule", "text", "turn"))
        yield f"the user {_text(remarks.get('name'))}, message {turn}: {rule}: {text}"


def _gateway_remarks(gateways: object) -> Iterator[str]:
    """What an agent asked of its models through us, and what it was refused, as sentences."""
    for gateway in _objects(gateways):
        remarks = gateway.get("said")
        yield from map(_text, remarks if isinstance(remarks, list) else ())


class _Room:
    """How many characters are left, as texts take theirs."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, text: str) -> str:
        """The text, as far as there is room for it."""
        kept = cut_text(text, self.left)
        self.left = max(0, self.left - len(text))
        return kept


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and how many more there were.

    >>> cut_text("abcdef", 4)
    'abcd [cut here: 2 more characters]'
    """
    more = len(text) - limit
    return text if more <= 0 else f"{beginning(text, limit).rstrip()} {cut_mark(more, 'character')}"


def cut_mark(more: int, noun: str) -> str:
    """The mark where something was cut.

    >>> cut_mark(1200, "byte")
    '[cut here: 1,200 more bytes]'
    """
    return f"{CUT}{plural(more, f'more {noun}')}]"


def turn_size(turn: Turn) -> int:
    """How many characters a turn counts, whatever field they are in.

    >>> turn_size(Turn(role="user", text="Hi"))
    22
    """
    named = len(turn.role) + len(turn.name) + len(turn.call_id) + len(turn.text)
    return _ITEM_COST + named + sum(map(_call_size, turn.calls)) + sum(map(len, turn.images))


def spoken_room(limit: int) -> int:
    """How many characters of turns are never cut by `Transcript.cut(limit)`."""
    return limit - limit // 4


def safe_picture(text: object) -> str | None:
    """A picture as a data URI, if it is of a plain format, complete, and not too large.

    >>> safe_picture("data:image/png;base64,iVBORw0KGgo=")
    'data:image/png;base64,iVBORw0KGgo='
    >>> safe_picture("data:image/svg+xml,<svg/>"), safe_picture("https://example.com/a.png")
    (None, None)
    """
    if not isinstance(text, str) or len(text) > LARGEST_PICTURE:
        return None
    return text if re.fullmatch(_PICTURE, text) else None


def as_score(value: object) -> float | None:
    """A number as the score of a check; None for anything else, and for one beyond all floats."""
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def _with_images(words: Transcript, whole: Transcript, limit: int) -> Transcript:
    """The words with the pictures of the whole that fit beside them, the first ones first."""
    left = limit - words.size()
    turns = []
    for turn, full in zip(words.messages, whole.messages, strict=True):
        kept = []
        for image in full.images:
            if len(image) <= left:
                left -= len(image)
                kept.append(image)
        turns.append(replace(turn, images=tuple(kept)))
    return replace(words, messages=tuple(turns))


# The texts of a value, in the order in which they get room if it is cut.
_TEXTS: Mapping[type, Sequence[str]] = {
    Turn: ("role", "name", "text", "call_id"),
    Call: ("name", "arguments", "id"),
    Check: ("target", "matcher", "message", "expected", "found"),
}


def _fit(items: Sequence[Item], room: _Room) -> Iterator[Item]:
    """The items that fit, the next one cut short, and a mark for the rest."""
    sizes: dict[type, Callable[[Any], int]]
    sizes = {Turn: turn_size, Call: _call_size, Check: _check_size}
    for place, item in enumerate(items):
        if (cost := sizes[type(item)](item)) <= room.left:
            room.left -= cost
            yield item
            continue
        rest = len(items) - place
        if room.left > _ITEM_COST:
            room.left -= _ITEM_COST
            yield _cut(item, room)
            rest -= 1
        room.left = 0
        if rest:
            yield _mark_of_more(item, rest)
        return


def _fit_tests(
    tests: Iterable[tuple[str, str]], room: _Room, *, least: int
) -> Iterator[tuple[str, str]]:
    """The tests that fit and leave `least` characters of the room."""
    for test in tests:
        if room.left - _test_size(test) < least:
            return
        room.left -= _test_size(test)
        yield test


def _test_size(test: tuple[str, str]) -> int:
    return _ITEM_COST + len(test[0]) + len(test[1])


def _call_size(call: Call) -> int:
    return _ITEM_COST + len(call.id) + len(call.name) + len(call.arguments)


def _check_size(check: Check) -> int:
    return _ITEM_COST + sum(len(getattr(check, name)) for name in _TEXTS[Check])


def _cut(item: Item, room: _Room) -> Item:
    cut: dict[str, Any] = {name: room.take(getattr(item, name)) for name in _TEXTS[type(item)]}
    if isinstance(item, Turn):
        cut["calls"] = tuple(_fit(item.calls, room))
    return replace(item, **cut)


def _mark_of_more(item: Item, more: int) -> Item:
    """The last item of a list that was cut, of the same kind as the others."""
    mark: dict[type, Any] = {
        Turn: Turn(role="passhat", text=cut_mark(more, "message")),
        Call: Call(name=cut_mark(more, "call")),
        Check: Check(target="passhat", message=cut_mark(more, "check")),
    }
    return cast(Item, mark[type(item)])


def _turn(turn: Turn) -> dict[str, object]:
    parts: dict[str, object] = {
        "name": turn.name,
        "text": turn.text,
        "calls": [_call(call) for call in turn.calls],
        "is_error": turn.is_error,
        "call_id": turn.call_id,
        "images": list(turn.images),
    }
    return {"role": turn.role} | {name: part for name, part in parts.items() if part}


def _call(call: Call) -> dict[str, object]:
    kept: dict[str, object] = {"name": call.name, "arguments": call.arguments}
    return kept | {"id": call.id} if call.id else kept


def _check(check: Check) -> dict[str, object]:
    kept: dict[str, object] = {
        "target": check.target,
        "score": check.score,
        "message": check.message,
    }
    more = {"matcher": check.matcher, "expected": check.expected, "found": check.found}
    return kept | {name: text for name, text in more.items() if text}


def _kept_turn(turn: Mapping[str, Any]) -> Turn:
    images = turn.get("images")
    pictures = map(safe_picture, images) if isinstance(images, list) else ()
    return Turn(
        role=_text(turn.get("role")) or UNKNOWN_ROLE,
        text=_text(turn.get("text")),
        calls=tuple(_kept_call(call) for call in _objects(turn.get("calls"))),
        name=_text(turn.get("name")),
        is_error=bool(turn.get("is_error")),
        call_id=_text(turn.get("call_id")),
        images=tuple(picture for picture in pictures if picture is not None),
    )


def _kept_call(call: Mapping[str, Any]) -> Call:
    name, arguments, own_id = (_text(call.get(key)) for key in ("name", "arguments", "id"))
    return Call(name=name or "a tool", arguments=arguments, id=own_id)


def _kept_check(check: Mapping[str, Any]) -> Check:
    return Check(
        target=_text(check.get("target")),
        score=as_score(check.get("score")),
        message=_text(check.get("message")),
        matcher=_text(check.get("matcher")),
        expected=_text(check.get("expected")),
        found=_text(check.get("found")),
    )


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    """Words as they are, nothing for nothing, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


# Calls of tools with what came back from each, in the order they were made.

TOOL_ROLES = frozenset({"tool", "function"})
"""Roles of a turn in which a tool answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """One call and its answer; `answer` is None if none came.

    `said_in` is the place among the messages of the turn that made the call, and `answered_in`
    that of the turn that answers it.
    """

    name: str
    arguments: str
    said_in: int
    answer: Turn | None = None
    answered_in: int | None = None


def answered_calls(transcript: Transcript) -> tuple[AnsweredCall, ...]:
    """Every call of a transcript, paired with its answer.

    An answer belongs to the open call of the same id; without one, to the first open call of the
    same tool; without that, to the first open call.

    >>> transcript = Transcript(messages=(
    ...     Turn(role="assistant", calls=(Call(name="add", id="1"), Call(name="add", id="2"))),
    ...     Turn(role="tool", text="second", call_id="2"),
    ...     Turn(role="tool", text="first", call_id="1"),
    ... ))
    >>> [call.answer.text for call in answered_calls(transcript)]
    ['first', 'second']
    """
    made: list[tuple[Call, int]] = []
    answers: dict[int, int] = {}
    open_calls: list[int] = []
    for place, turn in enumerate(transcript.messages):
        if turn.role in TOOL_ROLES and not turn.calls:
            if open_calls:
                by_id = (i for i in open_calls if turn.call_id and made[i][0].id == turn.call_id)
                by_name = (i for i in open_calls if turn.name and made[i][0].name == turn.name)
                answered = next(by_id, next(by_name, open_calls[0]))
                answers[answered] = place
                open_calls.remove(answered)
            continue
        open_calls += range(len(made), len(made) + len(turn.calls))
        made += [(call, place) for call in turn.calls]
    return tuple(
        AnsweredCall(
            name=call.name,
            arguments=call.arguments,
            said_in=place,
            answer=transcript.messages[answers[i]] if i in answers else None,
            answered_in=answers.get(i),
        )
        for i, (call, place) in enumerate(made)
    )


# Transcripts of other tools' logs: keys and tokens are taken out where a text is taken out.


_HIDING_ESCAPE = re.compile(r"\\[u/\\]")


class CleanTexts(Mapping[TranscriptKey, str]):
    """Kept texts by trial; what has the shape of a key is replaced in each that is asked for.

    Looking for keys takes longer than reading a log, and most texts are never shown. `kept` gives
    a text as it is, to those who show a part of it and clean that. `unread` are the trials of a big
    log whose transcripts were left unread.

    >>> texts = CleanTexts({("agent", "task", 0): '{"answer": "sk-ant-api03-0123456789abcdef"}'})
    >>> texts
    {('agent', 'task', 0): '{"answer":"[redacted]"}'}
    """

    __slots__ = ("_cleaned", "_texts", "unread")

    def __init__(
        self, texts: Mapping[TranscriptKey, str], *, unread: frozenset[TranscriptKey] = frozenset()
    ) -> None:
        self._texts = dict(texts)
        self.unread = unread
        self._cleaned: set[TranscriptKey] = set()

    @classmethod
    def joined(cls, parts: Iterable[Transcripts]) -> CleanTexts:
        """The texts of several sources as one."""
        texts: dict[TranscriptKey, str] = {}
        unread: frozenset[TranscriptKey] = frozenset()
        for part in parts:
            texts |= {key: part.kept(key) for key in part} if isinstance(part, cls) else part
            unread |= unread_of(part)
        return cls(texts, unread=unread)

    def __getitem__(self, key: TranscriptKey) -> str:
        text = self._texts[key]
        if key in self._cleaned:
            return text
        if near := shapes_near(text):
            # The strings hold no shape that their JSON text does not hold, unless escapes hide it.
            among = near if _HIDING_ESCAPE.search(text) is None else None
            text = self._texts[key] = clean_strings(text, partial(clean_text, among=among))
        self._cleaned.add(key)
        return text

    def __iter__(self) -> Iterator[TranscriptKey]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(dict(self))

    def kept(self, key: TranscriptKey) -> str:
        """A text as the log has it, unless it was asked for before and is clean."""
        return self._texts[key]


def unread_of(transcripts: Transcripts) -> frozenset[TranscriptKey]:
    """The trials of a big log whose transcripts were left unread."""
    return transcripts.unread if isinstance(transcripts, CleanTexts) else frozenset()


# Finding a text in transcripts, and showing it with the words around it.

AROUND = 60
"""Characters shown on each side of a text that was found: one or two lines of a terminal."""

MOST_OF_A_TASK = 3
"""Failures of a task that are shown where all are too many: one may be chance, three show whether
they are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTranscript:
    """The transcript of one trial as it is kept; `outcome` is None if it is not known."""

    key: TranscriptKey
    outcome: Outcome | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Where in a transcript a text was found, and the words around it on one line."""

    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMatch:
    """A trial whose transcript has a text, and the words around it.

    `number` counts the runs of its task from 1, as reports and `passhat why` do; None if the
    dataset does not say where its log begins.
    """

    run: str
    system: str
    task: str
    trial: int
    number: int | None = None
    outcome: Outcome | None
    excerpt: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMatches(Displayed):
    """The first trials whose transcripts have a text, out of `read` transcripts.

    `more` says that the search ended at its limit, before everything was read.
    """

    wanted: str
    matches: tuple[TranscriptMatch, ...]
    read: int
    more: bool = False

    def __repr__(self) -> str:
        count = plural(len(self.matches), "trial")
        head = f"TranscriptMatches of {quoted(self.wanted)}"
        return short_repr(head, count, f"{self.read:,} transcripts read", see=".matches")


INSTRUCTING = frozenset({"system", "developer"})
"""Roles that tell the agent what to do: the same words in every trial."""


class TextSearch:
    """Looks for one text, in any case, in one transcript after another.

    >>> search = TextSearch("refund")
    >>> search.find('{"messages": [{"role": "user", "text": "A REFUND, please"}]}')
    Excerpt(where='user', text='A REFUND, please')
    """

    def __init__(self, wanted: str) -> None:
        if not wanted.strip():
            raise ArgumentError("text", "must be some words to look for", wanted)
        self._pattern = re.compile(re.escape(wanted), re.IGNORECASE)
        escaped = json.dumps(wanted, ensure_ascii=False)[1:-1]
        self._as_kept = (wanted.lower(), escaped.lower())

    def find(self, kept: str) -> Excerpt | None:
        """Where the text occurs first, in instructions only if nowhere else."""
        # Most transcripts do not hold it. Looking at the JSON as a whole tells that ten times
        # faster than reading it, except where letters are written as \uXXXX.
        lowered = kept.lower()
        if "\\u" not in lowered and not any(form in lowered for form in self._as_kept):
            return None
        for where, text in _parts(Transcript.from_json(kept)):
            # Keys are taken out first: a search must neither show nor confirm one.
            cleaned = clean_text(text)
            if match := self._pattern.search(cleaned):
                return Excerpt(where=where, text=_around(cleaned, *match.span()))
        return None


def _parts(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Every text of a transcript, and whose it is: instructions, which all trials share, last."""
    instructions = [turn for turn in transcript.messages if turn.role in INSTRUCTING]
    for turn in transcript.messages:
        if turn.role in INSTRUCTING:
            continue
        yield (f"{turn.role} {turn.name}".strip(), turn.text)
        for call in turn.calls:
            yield f"call of {call.name}", call.name
            yield f"call of {call.name}", call.arguments
    yield "answer", transcript.answer
    yield "error", transcript.error
    for check in transcript.checks:
        yield f"check {check.target}".strip(), check.message
    yield "standard error", transcript.stderr
    yield "stop reason", transcript.stop_reason
    for turn in instructions:
        yield f"{turn.role} {turn.name}".strip(), turn.text


def _around(text: str, start: int, end: int) -> str:
    """The found text with some words on each side, on one line."""
    first, last = max(0, start - AROUND), min(len(text), max(end, start + 1) + AROUND)
    last = min(last, first + 4 * AROUND)  # a long text that was looked for is not shown whole
    before, after = text[first:start], text[end:last]
    if first:  # no half words at the ends, where there are whole ones
        before = re.sub(r"^\S*\s", "", before)
    if last < len(text):
        after = re.sub(r"\s\S*$", "", after)
    shown = " ".join(f"{before}{text[start : min(end, last)]}{after}".split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


_MOST_ALIKE = 10
"""Passing, and failing, trials of a task that are enough where all are too many."""


def trials_to_compare(
    groups: Sequence[tuple[str, str]], passed: Sequence[bool], *, room: int
) -> set[int]:
    """Which of very many trials are read to see why some fail, about `room` of them.

    `groups` are the agent and task of each. Tasks that can be compared come first: those that pass
    and fail, and fail most often.

    >>> groups = [("agent", task) for task in "aabb"]
    >>> trials_to_compare(groups, [True, True, True, False], room=2)
    {2, 3}
    """
    sides: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for row, (group, passes) in enumerate(zip(groups, passed, strict=True)):
        sides.setdefault(group, ([], []))[0 if passes else 1].append(row)
    each = max(_MOST_ALIKE, room // (2 * max(1, len(sides))))
    chosen: set[int] = set()
    for own in sorted(sides.values(), key=lambda own: (not all(own), -len(own[1]))):
        if len(chosen) >= room:
            break
        for rows in own:
            chosen.update(rows[:: -(-len(rows) // each)] if rows else ())
    return chosen
