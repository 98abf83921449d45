"""What pages share: transcripts that fit, as cards; templates; headlines."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from functools import cache
from html import escape
from importlib.util import cache_from_source
from itertools import chain, islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Literal

from passhat.analysis.reports.parts import TaskRow
from passhat.analysis.reports.report import Report
from passhat.arguments import whole_number
from passhat.dataclass import dataclass
from passhat.messages import plural, safe_text, shorten
from passhat.records import Outcome
from passhat.records.transcript import (
    CUT,
    TOOL_ROLES,
    Call,
    Check,
    CleanTexts,
    Transcript,
    TranscriptKey,
    Transcripts,
    Turn,
    answered_calls,
    cut_text,
)
from passhat.records.trial import natural_key
from passhat.reporters.formatting import file_size

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment, Template
    from jinja2.bccache import Bucket

    from passhat.records import Trials

MOST_ROWS = 5_000
"""Tasks in the table of a page; the lowest ones, if there are more."""

LONG_LIST = 300
"""Tasks from which a browser lays out only the rows that are in sight."""

SHORTEST = 2_000
"""Characters to which transcripts are cut, at the shortest, so that more of them fit."""

WRITTEN_SHARE = 4
"""One part in so many of the room is for transcripts that are written out.

They can be read without JavaScript. The others are packed, which takes a fifth of the room.
"""

MOST_WRITTEN = 1_000_000
"""Bytes of transcripts that are written out, at most: more would delay the first paint."""

LONGEST_REQUEST = 160
"""Characters of the first request that stand below the name of a task."""

_BLOCK = 200_000  # bytes that are packed together: opened in a moment, and packed well
_MARKUP, _ADDRESSES = 460, 5  # bytes of markup for each beside its words, and names of its task
_LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}

# Readers open transcripts of flaky tasks first; those of tasks that always pass last.
_INTEREST = {"flaky": 0, "undecided": 1, "broken": 2, "solid": 3}

Outcomes = Mapping[TranscriptKey, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How much of a page may be transcripts: its bytes, the text they unpack to, and each one.

    `max_transcript` is in characters; longer ones are cut.

    >>> PageLimits(max_bytes=50_000_000).max_transcript
    100000
    """

    max_bytes: int = 7_500_000  # a page of 8 MB opens at once, and can be sent as an attachment
    max_text: int = 24_000_000  # what a browser holds beside the page without being noticed
    max_transcript: int = 100_000

    def __post_init__(self) -> None:
        for limit in fields(self):
            whole_number(limit.name, getattr(self, limit.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTranscripts:
    """The transcripts of a page as HTML, cut after `cut_at` characters; `left_out` did not fit.

    `written` are in the page as they are. The others are in `blocks`, packed (deflate, base64);
    `places` says in which block, and where in it. `requests` are the first words that were said to
    the agent, by system and task, and `work` is what trials left in their workspaces.
    """

    texts: Mapping[TranscriptKey, str]
    cut_at: int
    left_out: int
    written: frozenset[TranscriptKey] = frozenset()
    blocks: tuple[str, ...] = ()
    places: Mapping[TranscriptKey, tuple[int, int]] = field(default_factory=dict)
    limits: PageLimits = field(default_factory=PageLimits)
    requests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    work: Mapping[TranscriptKey, Work] = field(default_factory=dict)

    @property
    def cut_note(self) -> str | None:
        """A note on the transcripts that were cut, if any."""
        if not any(CUT in text for text in self.texts.values()):
            return None
        return (
            f"Long transcripts are cut after {self.cut_at:,} characters; `passhat view` shows more "
            "of them."
        )

    @property
    def left_out_note(self) -> str | None:
        """A note on the transcripts that did not fit, if any."""
        if not self.left_out:
            return None
        every = self.left_out + len(self.texts)
        return (
            f"Of {plural(every, 'transcript')} this page leaves out {self.left_out:,}, so that it "
            f"can be opened: it has {self.limits.max_bytes:,} bytes for them. Failures of flaky "
            "tasks are kept first. `passhat view` shows them all; from Python, fit_transcripts "
            "takes other limits."
        )


def fit_transcripts(
    report: Report,
    transcripts: Transcripts,
    *,
    trials: Trials | None = None,
    limits: PageLimits | None = None,
) -> PageTranscripts:
    """The transcripts that fit on the page of this report; `trials` say which of them failed.

    One of each outcome of each task comes before a second one, flaky tasks before others, and what
    did not pass before what did. None is left out while a less interesting one is kept.
    """
    systems = {system.name for system in report.systems}
    asked = [key for key in transcripts if key[0] in systems]
    wanted = _most_wanted_first(report, asked, trials) if asked else []
    return fit_in_order(wanted, transcripts, asked=len(asked), limits=limits)


def fit_in_order(
    wanted: Sequence[TranscriptKey],
    transcripts: Transcripts,
    *,
    asked: int | None = None,
    limits: PageLimits | None = None,
) -> PageTranscripts:
    """As many of these transcripts as fit, in this order, of `asked` ones in all."""
    limits = limits or PageLimits()
    longest = min(limits.max_transcript, max(SHORTEST, limits.max_text // max(1, len(wanted))))
    work: dict[TranscriptKey, Work] = {}
    pages = ((key, _page_of(transcripts, key, longest, work)) for key in wanted)
    room = min(limits.max_bytes // WRITTEN_SHARE, MOST_WRITTEN)
    written, first = _written_out(pages, room)
    rest = _Packer(room=limits.max_bytes - room, text=limits.max_text)
    rest.fill(chain(first, pages))
    kept = written | rest.kept
    first_of = {key[:2]: key for key in sorted(kept, reverse=True)}
    return PageTranscripts(
        texts={key: kept[key] for key in transcripts if key in kept},
        cut_at=longest,
        left_out=(len(wanted) if asked is None else asked) - len(kept),
        written=frozenset(written),
        blocks=tuple(rest.blocks),
        places=rest.places,
        limits=limits,
        requests={
            task: request
            for task, key in first_of.items()
            if (request := _first_request(_to_show(transcripts, key, longest)[0]))
        },
        work={key: done for key, done in work.items() if key in kept},
    )


def write_out(transcripts: Transcripts, room: int) -> PageTranscripts:
    """All of these transcripts as HTML, each cut to its share of so many characters."""
    longest = max(SHORTEST, min(PageLimits().max_transcript, room // max(1, len(transcripts))))
    texts = {key: transcript_page(kept, longest) for key, kept in transcripts.items()}
    requests = {key[:2]: _first_request(transcripts[key]) for key in sorted(texts, reverse=True)}
    return PageTranscripts(
        texts=texts, cut_at=longest, left_out=0, written=frozenset(texts), requests=requests
    )


def _page_of(
    transcripts: Transcripts, key: TranscriptKey, longest: int, work: dict[TranscriptKey, Work]
) -> str:
    """One transcript as HTML; what it left in a workspace is noted in `work`."""
    kept, most = _to_show(transcripts, key, longest)
    if '"workspace"' in kept and (done := work_in(kept)) is not None:
        work[key] = done
    return transcript_page(kept, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a trial left in its workspace: its changes as a diff, and how each test ended."""

    diff: str
    tests: Mapping[str, str]


def work_in(kept: str) -> Work | None:
    """What a transcript says of a workspace; None if it tells of none that was graded.

    >>> left = '{"diff": "", "tests": [{"name": "a", "outcome": "passed"}]}'
    >>> work_in('{"answer": "done", "workspace": ' + left + "}").tests
    {'a': 'passed'}
    """
    transcript = Transcript.from_json(kept)
    return (
        None
        if transcript.diff is None
        else Work(diff=transcript.diff, tests=dict(transcript.tests))
    )


def _to_show(transcripts: Transcripts, key: TranscriptKey, longest: int) -> tuple[str, int]:
    """One transcript, and after how many characters a page cuts it.

    Of another tool's log only what is shown is searched for keys: that takes a while.
    """
    if not isinstance(transcripts, CleanTexts):
        return transcripts[key], longest
    kept = transcripts.kept(key)
    if len(kept) <= 2 * longest or not is_in_turns(kept):
        return transcripts[key], longest
    cut = Transcript.from_json(kept).cut(longest).to_json()
    # It is cut already: what its marks add must not have it cut again.
    return CleanTexts({key: cut})[key], 2 * longest


def _first_request(kept: str) -> str:
    """The first words of a user in a transcript, in one line."""
    if not is_in_turns(kept):
        return ""
    return shorten(Transcript.from_json(kept).request, LONGEST_REQUEST)


_Pages = Iterator[tuple[TranscriptKey, str]]


def _written_out(pages: _Pages, room: int) -> tuple[dict[TranscriptKey, str], _Pages]:
    """The first pages, as long as there is room; and the one that had none any more."""
    written: dict[TranscriptKey, str] = {}
    for key, text in pages:
        room -= _markup(key) + len(text.encode())
        if room < 0:
            return written, iter([(key, text)])
        written[key] = text
    return written, iter(())


@dataclass(slots=True)
class _Packer:
    """Pages in packed blocks, as many as there is room for."""

    room: int
    text: int
    kept: dict[TranscriptKey, str] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    places: dict[TranscriptKey, tuple[int, int]] = field(default_factory=dict)

    def fill(self, pages: _Pages) -> None:
        """Take pages until the next one finds no room."""
        block: list[tuple[TranscriptKey, str]] = []
        size = 0
        for key, page in pages:
            length = len(page.encode())
            if length > self.text:
                break
            self.text -= length
            block.append((key, page))
            size += length
            if size >= _BLOCK:
                if not self._add(block):
                    return
                block, size = [], 0
        self._add(block)

    def _add(self, block: Sequence[tuple[TranscriptKey, str]]) -> bool:
        """Whether all of a block had room; else as much of its beginning as has."""
        fits, (text, size) = len(block), _packed(block)
        if size > self.room:
            sizes = range(1, len(block))
            fits = bisect_right(sizes, self.room, key=lambda n: _packed(block[:n])[1])
            text, size = _packed(block[:fits])
        if fits:
            self.room -= size
            for place, (key, page) in enumerate(block[:fits]):
                self.places[key] = (len(self.blocks), place)
                self.kept[key] = page
            self.blocks.append(text)
        return fits == len(block)


def _packed(block: Sequence[tuple[TranscriptKey, str]]) -> tuple[str, int]:
    """A block as text, and the bytes that it takes with the markup of its pages."""
    if not block:
        return "", 0
    text = packed([page for _, page in block])
    return text, len(text) + 4 + sum(_markup(key) for key, _ in block)


def packed(value: Any) -> str:
    """A value that the script of a page unpacks: JSON, deflated, in letters."""
    words = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)  # raw, as browsers unpack it
    return base64.b64encode(deflate.compress(words.encode()) + deflate.flush()).decode()


def _markup(key: TranscriptKey) -> int:
    """Bytes that a page takes for a transcript beside its words: its marks, title and address."""
    return _MARKUP + _ADDRESSES * len(escape(safe_text(key[1])).encode())


def outcomes_of(report: Report, keys: Sequence[TranscriptKey], trials: Trials | None) -> Outcomes:
    """How the runs of these transcripts ended, as far as the trials or the report show it."""
    if trials is not None:
        return trial_outcomes(trials)
    rows = {
        (system.name, name): sequence
        for system in report.systems
        if system.tasks.sequences is not None
        for name, sequence in zip(system.tasks.names, system.tasks.sequences, strict=True)
    }
    return from_sequences(rows, keys)


def task_anchor(system: str, task: str) -> str:
    """The id of a task on its page; of several systems, with enough of its system's name.

    >>> task_anchor("", "refund twice"), task_anchor("gpt", "41")
    ('task-refund_twice', 'task-41-053e')
    """
    mark = f"-{hashlib.sha256(system.encode(errors='replace')).hexdigest()[:4]}" if system else ""
    return "task-" + "_".join(safe_text(task).split()) + mark


def page_rows(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """The lowest rates first, and of one rate by name as people sort names."""
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:MOST_ROWS]


def _most_wanted_first(
    report: Report, asked: Iterable[TranscriptKey], trials: Trials | None
) -> list[TranscriptKey]:
    rows = {
        (system.name, row.name): (place, row)
        for system in report.systems
        for place, row in enumerate(page_rows(system.tasks))
    }
    listed = [key for key in asked if key[:2] in rows]
    outcomes = outcomes_of(report, listed, trials)
    seen: set[tuple[str, str, Outcome | None]] = set()
    ranks: dict[TranscriptKey, tuple[bool, int, bool, int]] = {}
    for key in listed:
        place, row = rows[key[:2]]
        outcome = outcomes.get(key)
        kind = (*key[:2], outcome)
        passed = outcome is Outcome.PASSED
        ranks[key] = (kind in seen, _INTEREST[row.label], passed, place)
        seen.add(kind)
    return sorted(listed, key=ranks.__getitem__)


def trial_outcomes(trials: Trials) -> Outcomes:
    """How every trial ended."""
    by_code = tuple(Outcome)
    columns = (trials.system.texts(), trials.task.texts(), trials.trial.tolist())
    keys = zip(*columns, trials.outcome.tolist(), strict=True)
    return {(s or "", task or "", trial): by_code[code] for s, task, trial, code in keys}


def from_sequences(
    sequences: Mapping[tuple[str, str], str], keys: Iterable[TranscriptKey]
) -> Outcomes:
    """By the trials of each task in order, where every one of them has a transcript."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for system, task, trial in keys:
        numbers.setdefault((system, task), []).append(trial)
    outcomes: dict[TranscriptKey, Outcome] = {}
    for task_key, trials in numbers.items():
        sequence = sequences.get(task_key, "")
        if len(sequence) == len(trials):
            for trial, letter in zip(sorted(trials), sequence, strict=True):
                outcomes[*task_key, trial] = _LETTERS[letter]
    return outcomes


# A transcript as cards: who said what, which tool was called with what, and what came back.

Kind = Literal["user", "agent", "call", "result", "system", "other"]

LONGEST_OPEN = 400
"""Characters up to which a result, or the words of a system, are shown without being asked for."""

MOST_GLANCED = 4
"""Fields of a folded JSON object that are seen without opening it."""

_LONGEST_GLANCE = 40
_MOST_FIELDS = 200
_ROLES: Mapping[str, tuple[Kind, str]] = {
    "user": ("user", "User"),
    "assistant": ("agent", "Agent"),
    "system": ("system", "System"),
    "developer": ("system", "System"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card; every text in it is safe to show, and still to be escaped.

    `number` is the message's, from 1; `place` is the call's among the calls of the run, from 0, on
    the card of a call and of its result. `fields` are the arguments of a call, or a glance at a
    result; `body` is what a fold holds, and `size` says how much that is. `is_wrong` marks the call
    that a failed check names; `differs` says how a call differs from that of the run beside it.
    `images` are data URIs of plain formats.
    """

    kind: Kind
    title: str
    number: int
    tool: str = ""
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    body: str = ""
    size: str = ""
    is_error: bool = False
    is_wrong: bool = False
    place: int | None = None
    differs: str = ""
    images: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The text as HTML; what a person or a model wrote is read as Markdown."""
        return read_markdown(self.text) if self.kind in ("user", "agent") else escape(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCard:
    """What one grader said, failed ones first: what it expected and what it found, if it says."""

    name: str
    failed: bool
    text: str
    expected: str = ""
    found: str = ""


_FENCE = re.compile(r"^[ \t]*```[^`\n]*\n?", re.MULTILINE)
# Lengths are limited because each place where one might begin is tried. Text is escaped before.
_MARKED = re.compile(
    r"`(?P<code>[^`\n]{1,400})`"
    r"|(?<![\w*])\*\*(?P<strong>[^\s*](?:[^*\n]{0,400}[^\s*])?)\*\*(?![\w*])"
    r"|(?<![\w*])\*(?P<em>[^\s*](?:[^*\n]{0,400}[^\s*])?)\*(?![\w*])"
    r"|^\#{1,6}[ ](?P<heading>[^\n]{1,400})$"
    r"|^(?P<item>[ \t]{0,20})[-*](?=[ ]\S)",
    re.MULTILINE,
)


def read_markdown(text: str) -> str:
    """Code, emphasis, headings and lists of a text as HTML; everything else stays as it is.

    >>> read_markdown("**Total:** `a < b` & <b>not this</b>")
    '<b>Total:</b> <code>a &lt; b</code> &amp; &lt;b&gt;not this&lt;/b&gt;'
    """
    prose_and_code = _FENCE.split(escape(text, quote=False))
    return "".join(
        f'<pre tabindex="0">{part}</pre>' if i % 2 else _MARKED.sub(_as_element, part)
        for i, part in enumerate(prose_and_code)
    )


def _as_element(marked: re.Match[str]) -> str:
    kind = marked.lastgroup or ""
    if kind == "item":
        return f"{marked[kind]}•"
    element = {"code": "code", "em": "em"}.get(kind, "b")
    return f"<{element}>{marked[kind]}</{element}>"


def transcript_cards(transcript: Transcript) -> tuple[Card, ...]:
    """The messages of a transcript, each call and each result on a card of its own."""
    calls = answered_calls(transcript)
    answered = {call.answered_in: i for i, call in enumerate(calls) if call.answered_in is not None}
    unexpected = [
        line for check in transcript.checks if _fails(check) for line in check.found.splitlines()
    ]
    cards: list[Card] = []
    made = 0
    for number, turn in enumerate(transcript.messages, 1):
        if turn.role in TOOL_ROLES and not turn.calls:
            place = answered.get(number - 1)
            name = turn.name or (calls[place].name if place is not None else "")
            cards.append(_result(turn, number, name, place))
            continue
        if turn.text or turn.images or not turn.calls:
            cards.append(_message_card(turn, number))
        for call in turn.calls:
            cards.append(_called(call, number, made, unexpected))
            made += 1
    return (*cards, *_ends(transcript, len(transcript.messages)))


def transcript_page(kept: str, longest: int) -> str:
    """A kept text as HTML: cards where it came as turns, else its words as they are.

    At most `longest` characters of it are shown, with a mark if it was cut.
    """
    shown = _cards_template().module.transcript  # type: ignore[attr-defined]
    if not is_in_turns(kept):
        return str(shown((), "", (), cut_text(safe_passage(kept), longest))).strip()
    transcript = Transcript.from_json(kept).cut(longest)
    parts = check_cards(transcript.checks), ending_text(transcript), transcript_cards(transcript)
    return str(shown(*parts, None)).strip()


def ending_text(transcript: Transcript) -> str:
    """How it ended: the reason to stop, the exit code, the faults that were injected."""
    parts = []
    if transcript.stop_reason:
        parts.append(f"stopped with {safe_passage(transcript.stop_reason)}")
    if transcript.exit_code is not None:
        parts.append(f"exit code {transcript.exit_code}")
    if transcript.faults:
        parts.append(f"faults: {safe_passage(', '.join(transcript.faults))}")
    parts += map(safe_passage, transcript.remarks)
    return ", ".join(parts)


def check_cards(checks: tuple[Check, ...]) -> tuple[CheckCard, ...]:
    """The checks, those that failed first."""
    cards = []
    for check in checks:
        failed = _fails(check)
        expected, got = check.compared if failed else ("", "")
        # What stands below as expected and done is not said twice.
        twice = bool(expected) and expected != check.expected
        cards.append(
            CheckCard(
                name=safe_passage(" ".join(part for part in (check.target, check.matcher) if part)),
                failed=failed,
                text="" if twice else safe_passage(check.message),
                expected=safe_passage(expected),
                found=safe_passage(got),
            )
        )
    return tuple(sorted(cards, key=lambda card: not card.failed))


LONGEST_REASON = 160
"""Characters of the reason why a trial failed, in a table."""


def first_failed_check(kept: str | None, error: str | None = None) -> str:
    """Why a trial failed, in a line: its error, or the check that failed by what was kept of it."""
    checks = check_cards(Transcript.from_json(kept).checks) if kept else ()
    texts = [error] if error else [f"{c.name}: {_in_a_line(c)}" for c in checks if c.failed]
    return shorten(safe_text(next(iter(texts), "")).strip(": "), LONGEST_REASON)


def _in_a_line(check: CheckCard) -> str:
    if check.text or not check.expected:
        return check.text
    return f"expected {check.expected}" + (f", got {check.found}" if check.found else "")


def _fails(check: Check) -> bool:
    return check.score is not None and check.score < 1


@cache
def _cards_template() -> Template:
    return page_templates().get_template("cards.html")


def _message_card(turn: Turn, number: int) -> Card:
    kind, title = _ROLES.get(turn.role, ("other", turn.role))
    text = safe_passage(turn.text)
    # What a system says is long, and the same in every run.
    fold = kind == "system" and len(text) > LONGEST_OPEN
    return Card(
        kind=kind,
        title=safe_passage(title),
        number=number,
        text="" if fold else text,
        body=text if fold else "",
        size=_size(text) if fold else "",
        is_error=turn.is_error,
        images=turn.images,
    )


def _called(call: Call, number: int, place: int, unexpected: Sequence[str]) -> Card:
    """A call on its card; `unexpected` are the calls, a line each, that a check did not expect."""
    arguments = _parsed(call.arguments)
    named = isinstance(arguments, dict)
    return Card(
        kind="call",
        title="Agent calls",
        number=number,
        tool=safe_passage(call.name),
        text="" if named else safe_passage(call.arguments),
        fields=tuple(
            (safe_passage(str(name)), safe_passage(_pretty(value)))
            for name, value in islice(arguments.items() if named else (), _MOST_FIELDS)
        ),
        is_wrong=any(_is_call(line, call.name, arguments) for line in unexpected),
        place=place,
    )


def _is_call(line: str, tool: str, arguments: object) -> bool:
    """Whether a line as `cancel(id=7)` names this call; it may leave arguments out."""
    name, opened, listed = line.partition("(")
    if not opened or name != tool:
        return False
    given = arguments.items() if isinstance(arguments, dict) else ()
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for key, value in given
    }
    named = re.findall(r"(?:^|, )(\w+)=", listed)
    return all(
        f"{key}={texts[key]})" in listed or f"{key}={texts[key]}, " in listed
        for key in named
        if key in texts
    )


def _result(turn: Turn, number: int, name: str, place: int | None) -> Card:
    parsed = _parsed(turn.text)
    structured = isinstance(parsed, dict | list)
    text = safe_passage(_pretty(parsed) if structured else turn.text)
    fold = structured or len(text) > LONGEST_OPEN
    return Card(
        kind="result",
        title="Result of" if name else "Result",
        number=number,
        tool=safe_passage(name),
        text="" if fold else text or "(empty)",
        fields=tuple(_glance(parsed)) if fold else (),
        body=text if fold else "",
        size=_size(turn.text, parsed) if fold else "",
        is_error=turn.is_error,
        place=place,
        images=turn.images,
    )


def _ends(transcript: Transcript, messages: int) -> Iterator[Card]:
    """The answer and the errors that no message holds."""
    number, error = messages + 1, safe_passage(transcript.error)
    if transcript.answer:
        text = safe_passage(transcript.answer)
        yield Card(kind="agent", title="Answer", number=number, text=text)
    if transcript.stderr:
        text = safe_passage(transcript.stderr)
        yield Card(kind="other", title="Standard error", number=number, text=text)
    if transcript.diff:
        files = transcript.diff.count("\n+++ ") + transcript.diff.startswith("+++ ")
        body, fields = safe_passage(transcript.diff), (("changed", plural(files, "file")),)
        size = plural(len(body.splitlines()), "line")
        yield Card(
            kind="other", title="Changes", number=number, fields=fields, body=body, size=size
        )
    for name, text in transcript.kept_files:
        body, file = safe_passage(text), (("kept", safe_passage(name)),)
        yield Card(
            kind="other", title="File", number=number, fields=file, body=body, size=_size(text)
        )
    if error:
        yield Card(kind="other", title="Error", number=number, text=error, is_error=True)


def _parsed(text: str) -> Any:
    """What JSON says, if it is an object or a list; else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _pretty(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return str(value)


def _glance(parsed: Any) -> Iterator[tuple[str, str]]:
    """The first plain fields of an object, short enough to be read in passing."""
    if not isinstance(parsed, dict):
        return
    plain = [
        (name, value)
        for name, value in parsed.items()
        if not isinstance(value, dict | list) and len(str(value)) <= _LONGEST_GLANCE
    ]
    for name, value in plain[:MOST_GLANCED]:
        yield safe_passage(str(name)[:_LONGEST_GLANCE]), safe_passage(_pretty(value))


def _size(text: str, parsed: Any = None) -> str:
    weight = file_size(len(text.encode("utf-8", "replace")))
    if isinstance(parsed, dict):
        return f"JSON, {plural(len(parsed), 'field')}, {weight}"
    if isinstance(parsed, list):
        return f"JSON, {plural(len(parsed), 'entry', 'entries')}, {weight}"
    return f"{plural(text.rstrip(chr(10)).count(chr(10)) + 1, 'line')}, {weight}"


# Compiled templates, kept beside the compiled modules of Python: a page takes half the time.
#
# Compiling the templates of a report takes a hundred milliseconds. What they compile to is kept
# where Python keeps its own bytecode (`__pycache__`, or PYTHONPYCACHEPREFIX), under the same
# rules: nothing is written with PYTHONDONTWRITEBYTECODE, and a folder that cannot be written to
# is left alone.


def page_templates() -> Environment:
    """The templates of pages, without any filter."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("passhat.reporters.formats", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=template_cache(),
    )


@cache
def template_cache() -> BytecodeCache:
    """The cache that environments of templates are given."""
    from jinja2 import BytecodeCache

    class TemplateCache(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            # jinja2 checks that the template and the versions of jinja2 and Python are the same.
            with suppress(OSError), _cache_file(bucket).open("rb") as file:
                bucket.load_bytecode(file)

        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):
                    _write(_cache_file(bucket), bucket)

    return TemplateCache()


def _write(place: Path, bucket: Bucket) -> None:
    """All of it or nothing: another process may be reading."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=place.parent, delete=False) as file:
        bucket.write_bytecode(file)
    Path(file.name).replace(place)


def _cache_file(bucket: Bucket) -> Path:
    """One file for each template and everything else that it is compiled with."""
    given = bucket.environment
    settings = given.trim_blocks, given.lstrip_blocks, given.autoescape, sorted(given.filters)
    key = hashlib.blake2b(repr((bucket.key, settings, _newest_change())).encode(), digest_size=12)
    return Path(cache_from_source(__file__)).with_name(f"template-{key.hexdigest()}.bin")


@cache
def _newest_change() -> int:
    """When a reporter was last changed: filters of constants are worked out while compiling."""
    top = Path(__file__).parent
    return max(file.stat().st_mtime_ns for file in top.rglob("*.py"))


# What was said in a trial, as a person reads it.

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_KEPT_BESIDE = {"gateway", "judge", "user", "workspace"}
_PARTS = frozenset({part.name for part in fields(Transcript)} | _KEPT_BESIDE)
"""What is kept of a trial; a text with other parts is shown as it is."""


def readable(kept: str) -> str:
    """A transcript turn by turn, then why it was graded as it was, safe to show.

    Of turns, only lines of ours begin at the margin: what others wrote is indented.

    >>> print(readable('{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'))
    user
      Hi
    stopped: done
    """
    if not is_in_turns(kept):
        return safe_passage(kept)
    return safe_passage("\n".join(_lines(Transcript.from_json(kept))))


def is_in_turns(kept: str) -> bool:
    """Whether the parts of a transcript are known, so that it can be shown as cards."""
    try:
        parts = json.loads(kept)
    except (ValueError, RecursionError):
        return False
    return isinstance(parts, dict) and bool(parts) and set(parts) <= _PARTS


def safe_passage(text: str) -> str:
    r"""Words of several lines, safe to show; tabs stay.

    >>> safe_passage("two\n\x1b[31mlines\u202e")
    'two\nlines\\u202e'
    """
    return "\n".join(map(_safe_line, text.split("\n")))


def _safe_line(line: str) -> str:
    """A line without colours of a terminal; characters that steer or reorder are written out."""
    if line.isprintable():
        return line
    return "\t".join(safe_text(part) for part in _COLOURS.sub("", line).rstrip("\r").split("\t"))


def _lines(transcript: Transcript) -> Iterator[str]:
    for turn in transcript.messages:
        yield from _turn_lines(turn)
    for name in ("answer", "stderr", "diff", "error"):
        if text := getattr(transcript, name):
            yield from (name, _indented(text))
    for name, text in transcript.kept_files:
        yield from (f"kept {_beside(name)}", _indented(text))
    if transcript.stop_reason:
        yield f"stopped: {_beside(transcript.stop_reason)}"
    if transcript.exit_code is not None:
        yield f"exit code: {transcript.exit_code}"
    if transcript.faults:
        yield f"faults: {_beside(', '.join(transcript.faults))}"
    yield from (f"note: {_beside(remark)}" for remark in transcript.remarks)
    if transcript.checks:
        yield from ("checks", *map(_check_line, transcript.checks))


def _turn_lines(turn: Turn) -> Iterator[str]:
    role, name = _beside(turn.role), f" {_beside(turn.name)}" if turn.name else ""
    if turn.text or not turn.calls:
        yield f"{role}{name}{' (error)' if turn.is_error else ''}"
    if turn.text:
        yield _indented(turn.text)
    for call in turn.calls:
        yield f"{role} calls {_beside(call.name)} {_beside(call.arguments)}"


def _check_line(check: Check) -> str:
    words = {None: "said", 1.0: "held", 0.0: "broke"}
    what = " ".join(_beside(part) for part in (check.target, check.matcher) if part)
    message = check.message and f": {_beside(check.message)}"
    expected = check.expected and f"\n    expected: {_beside(check.expected)}"
    got = check.found and f"\n    found: {_beside(check.found)}"
    return f"  {words.get(check.score, f'scored {check.score}')}: {what}{message}{expected}{got}"


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _beside(text: str) -> str:
    """A value after a word of ours; its further lines are indented, not to look like ours."""
    return text.replace("\n", "\n    ")


# The headline of a page.

_FIRST_CLAUSE = re.compile(r": |\. (?=[A-Z])")

_OUR_WORD = re.compile(r"(?:it|in|its|a|all|no|none|at|the|they|nothing|some|people|trial) ")

_HYPHENED = re.compile(r"((?<!\S)[^\s-]\S{0,10}-\S{1,16}(?!\S))")


def headline_parts(sentence: str) -> list[tuple[str, str]]:
    """A headline in pieces, each with its class: its first clause, and what that rests on.

    >>> headline_parts("You can depend on o3: it succeeds.")
    [('', 'You can depend on o3'), ('colon', ': '), ('lead begins', 'it succeeds.')]
    """
    shown = safe_text(sentence)
    end = _FIRST_CLAUSE.search(shown)
    first, rest = shown.removesuffix("."), ""  # as no heading ends in a full stop
    if end is not None:
        first, rest = shown[: end.start()], shown[end.end() :]
    # A short name with hyphens is kept on one line: a heading has few words in each.
    pieces = enumerate(_HYPHENED.split(first))
    parts = [("whole-name" if i % 2 else "", piece) for i, piece in pieces if piece]
    if not (end and rest):
        return [*parts]
    # It stands on a line of its own; the name of an agent keeps its first letter.
    begins = "lead begins" if _OUR_WORD.match(rest) else "lead"
    return [*parts, ("colon", end[0]), (begins, rest)]
