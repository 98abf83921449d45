"""JUnit XML: pytest-repeat, pytest-flakefinder, pytest-rerunfailures, Surefire reruns, any runner.

Repeats hide in names and in reruns. A rerun's earlier attempts stand as extra `<testcase>`s
*without* a failure; only the suite's count, which leaves them out, gives them away. A test that is
expected to fail (xfail) is a trial like any other: what counts is whether it did what it asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.parsers import expat

from passhat.errors import ReadError
from passhat.ingest.columns import ColumnMap, find_columns
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Table, first_line
from passhat.ingest.repeated_names import tests_of
from passhat.messages import plural
from passhat.records import FEATURES, Outcome
from passhat.records.transcript import Transcript, Turn

_VERDICTS = {
    "failure": Outcome.FAILED,
    "error": Outcome.ERRORED,
    "rerunFailure": Outcome.FAILED,
    "rerunError": Outcome.ERRORED,
    "flakyFailure": Outcome.FAILED,
    "flakyError": Outcome.ERRORED,
}
_PRINTED = ("system-out", "system-err")
_DEEPEST = 64
_MOST_DIGITS = 18
_EXTRA_ATTEMPTS = ("rerunFailure", "rerunError", "flakyFailure", "flakyError")

# How pytest writes of tests that are expected to fail: they did, did not though it is strict, or
# were not even tried.
_XFAIL, _STRICT_XPASS, _NOT_RUN = "pytest.xfail", "[XPASS(strict)]", "[NOTRUN]"
_TEARDOWN = "failed on teardown"


@dataclass(slots=True, kw_only=True)
class _Words:
    """Text of an element; `verdict` is the place of the verdict it belongs to, if to one."""

    tag: str
    verdict: int | None
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Case:
    """One `<testcase>`, with the verdicts among its children."""

    suite: str
    name: str
    seconds: str | None
    line: int
    verdicts: list[tuple[str, str]] = field(default_factory=list)
    skipped: bool = False
    xfailed: bool = False
    xpassed: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    words: list[_Words] = field(default_factory=list)

    def outcome(self) -> Outcome:
        """How the last attempt ended; a failure beside an error (of the teardown) is a failure."""
        found = {_VERDICTS[tag] for tag, _ in self.verdicts if tag in ("failure", "error")}
        if not found:
            return Outcome.PASSED
        return Outcome.FAILED if Outcome.FAILED in found else Outcome.ERRORED

    def torn_down(self) -> bool:
        """Whether it only tells that clearing up failed, as pytest does beside a failure."""
        told = [message for _, message in self.verdicts]
        return len(told) == 1 and told[0].startswith(_TEARDOWN)


@dataclass(slots=True, kw_only=True)
class _Suite:
    """One `<testsuite>`: how many tests it says it ran, how many it lists, and which."""

    name: str
    declared: int | None
    listed: int = 0
    cases: list[_Case] = field(default_factory=list)
    last: dict[str, _Case] = field(default_factory=dict)

    def end_case(self) -> None:
        """Put a failure and what broke while clearing up after it together again: one attempt."""
        self.listed += 1
        late = self.cases[-1]
        failed = self.last.setdefault(late.name, late)
        if not late.torn_down() or failed.outcome() is not Outcome.FAILED:
            self.last[late.name] = late
            return
        for words in self.cases.pop().words:
            shifted = None if words.verdict is None else words.verdict + len(failed.verdicts)
            failed.words.append(replace(words, verdict=shifted))
        failed.verdicts += late.verdicts


def recognises(document: Document) -> bool:
    """Whether the root is a test suite."""
    return (
        document.kind == "xml"
        and re.search(rb"<testsuites?[\s>]", document.data[:4096]) is not None
    )


def read(document: Document, mapping: ColumnMap) -> Table:
    """One trial an attempt at a test; skipped tests are no trials."""
    suites = _parse(document)
    notes: list[str] = []
    for suite in suites:
        notes += _settle_reruns(suite)
    cases = [case for suite in suites for case in suite.cases]
    notes += _expected_and_skipped(cases)
    tasks = [case.name for case in cases]
    if mapping.task != "name":  # which asks for names as they stand
        ran = [not case.skipped and case.outcome() is not Outcome.ERRORED for case in cases]
        tasks, repeats = tests_of(tasks, ran)
        notes += repeats
    trials = [pair for pair in zip(cases, tasks, strict=True) if not pair[0].skipped]
    rows = [row for case, task in trials for row in _attempts(case, task)]
    numbers = [row.pop("line") for row in rows]
    return Table.of_rows(rows, notes=notes, entry="line", numbers=numbers)


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What each attempt printed, and how its failure reads in full."""
    for suite in _parse(document, spoken=True):
        for case in suite.cases:
            if not case.skipped:
                yield from _attempt_transcripts(case)


READER = Reader(
    name="junit",
    recognises=recognises,
    read=read,
    transcripts=transcripts,
    describes="JUnit XML",
)


def _parse(document: Document, *, spoken: bool = False) -> list[_Suite]:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    log = _Log(document.name, parser)
    if spoken:
        parser.CharacterDataHandler = log.hear
    try:
        parser.Parse(document.data, True)
    except expat.ExpatError as error:
        raise ReadError(f"{document.name}: not valid XML ({error})") from error
    except (LookupError, ValueError) as error:  # of the encoding that its first line declares
        raise ReadError(
            f"{document.name}, line 1: its encoding cannot be read ({error}); save it as UTF-8"
        ) from error
    return log.suites


class _Log:
    """What expat tells of a log, put together suite by suite."""

    def __init__(self, name: str, parser: expat.XMLParserType) -> None:
        self.suites: list[_Suite] = []
        self._name, self._parser, self._depth = name, parser, 0
        self._in_case = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._speaking: list[_Words] = []

    def hear(self, text: str) -> None:
        """Keep text of the innermost element that speaks."""
        if self._speaking:
            self._speaking[-1].pieces.append(text)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ReadError(f"{self._name}: nested too deeply to be JUnit XML")
        if tag == "testsuites" and attributes.get("name") == "passhat":
            raise ReadError(
                f"{self._name}: is a report that passhat wrote, and holds rates, not trials; "
                "read what the report was made from"
            )
        if tag == "testsuite":
            self.suites.append(_suite(attributes))
        elif tag == "testcase":
            self.suites = self.suites or [_suite({})]
            suite = self.suites[-1]
            suite.cases.append(_case(suite.name, attributes, self._parser.CurrentLineNumber))
            self._in_case = True
        elif self._in_case and self.suites and self.suites[-1].cases:
            case = self.suites[-1].cases[-1]
            verdict = _add_child(case, tag, attributes)
            if verdict or tag in _PRINTED:
                self._speaking.append(_spoken_in(case, tag, self._speaking, verdict=verdict))

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self._in_case = False
            self.suites[-1].end_case()
        if self._speaking and self._speaking[-1].tag == tag:
            self._speaking.pop()

    def _refuse_doctype(self, *_: object) -> None:
        raise ReadError(f"{self._name}: has a DOCTYPE, which JUnit XML has no use for: refused")


def _spoken_in(case: _Case, tag: str, around: Sequence[_Words], *, verdict: bool) -> _Words:
    inside = around[-1].verdict if around else None
    words = _Words(tag=tag, verdict=len(case.verdicts) - 1 if verdict else inside)
    case.words.append(words)
    return words


def _suite(attributes: dict[str, str]) -> _Suite:
    count = attributes.get("tests", "")
    declared = int(count) if count.isdecimal() and len(count) <= _MOST_DIGITS else None
    return _Suite(name=attributes.get("name") or "junit", declared=declared)


def _case(suite: str, attributes: dict[str, str], line: int) -> _Case:
    name, classname = attributes.get("name", ""), attributes.get("classname", "")
    # promptfoo repeats the suite as the class; elsewhere the class is part of the test's name.
    full = f"{classname}::{name}" if classname and classname != suite else name
    return _Case(suite=suite, name=full, seconds=attributes.get("time"), line=line)


def _add_child(case: _Case, tag: str, attributes: dict[str, str]) -> bool:
    """Take down what a child tells of its case; whether it is a verdict."""
    message = attributes.get("message") or ""
    if tag == "failure" and message.startswith(_STRICT_XPASS):
        case.xpassed = True
    elif tag in _VERDICTS:
        case.verdicts.append((tag, message or attributes.get("type") or tag))
        return True
    elif tag == "skipped" and attributes.get("type") == _XFAIL and not message.startswith(_NOT_RUN):
        case.xfailed = True
        case.verdicts.append(("failure", f"xfail: {message}" if message else "xfail"))
    elif tag == "skipped":
        case.skipped = True
    elif tag == "property":
        case.properties[attributes.get("name", "")] = attributes.get("value", "")
    return False


def _settle_reruns(suite: _Suite) -> list[str]:
    """Give the earlier attempts of rerun tests the failure that the file leaves out."""
    if suite.declared is None or suite.declared >= suite.listed:
        return []
    last = {case.name: index for index, case in enumerate(suite.cases)}
    reruns = 0
    for index, case in enumerate(suite.cases):
        final = suite.cases[last[case.name]]
        if index != last[case.name] and not case.verdicts and not case.skipped:
            tag = "error" if final.outcome() is Outcome.ERRORED else "failure"
            case.verdicts.append((tag, "rerun"))
            reruns += 1
    if not reruns:
        return []
    counted = plural(reruns, "attempt counts as a failure", "attempts count as failures")
    return [
        (
            f'{counted} because suite "{suite.name}" ran the test again; reruns end at the first '
            "pass, which favours the tests that were rerun"
        )
    ]


def _expected_and_skipped(cases: Sequence[_Case]) -> list[str]:
    notes = []
    if xfailed := sum(case.xfailed for case in cases):
        told = plural(
            xfailed, "xfailed test counts as a failure", "xfailed tests count as failures"
        )
        notes.append(f"{told}, though it was expected")
    if xpassed := sum(case.xpassed for case in cases):
        told = plural(xpassed, "strict xpass counts as a pass", "strict xpasses count as passes")
        notes.append(f"{told}, though it was not expected")
    if skipped := sum(case.skipped for case in cases):
        notes.append(plural(skipped, "skipped test is no trial", "skipped tests are no trials"))
    return notes


def _attempts(case: _Case, task: str) -> Iterator[dict[str, Any]]:
    extra = [(tag, message) for tag, message in case.verdicts if tag in _EXTRA_ATTEMPTS]
    for tag, message in extra:
        yield {
            "system": case.suite,
            "task": task,
            "outcome": _VERDICTS[tag],
            "error": first_line(message),
            "line": case.line,
        }
    found = find_columns(case.properties, ColumnMap())
    last = next((text for tag, text in case.verdicts if tag not in _EXTRA_ATTEMPTS), None)
    yield {
        "system": case.suite,
        "task": task,
        "outcome": case.outcome(),
        "error": first_line(last),
        "line": case.line,
        **{
            name: case.properties[found[name]]
            for name in ("seed", "score", *FEATURES)
            if name in found
        },
        **({} if "seconds" in found else {"seconds": case.seconds}),
    }


def _attempt_transcripts(case: _Case) -> Iterator[Transcript]:
    """One transcript an attempt, in the order of `_attempts`."""
    said: dict[int | None, list[_Words]] = {}
    for words in case.words:
        said.setdefault(words.verdict, []).append(words)
    last: list[int | None] = [None]
    for place, (tag, _) in enumerate(case.verdicts):
        if tag in _EXTRA_ATTEMPTS:
            yield _told(case, [place], said)
        else:
            last.append(place)
    yield _told(case, last, said)


def _told(
    case: _Case, places: Sequence[int | None], said: Mapping[int | None, list[_Words]]
) -> Transcript:
    words = [(one.tag, "".join(one.pieces).strip("\n")) for p in places for one in said.get(p, ())]
    failures = [text for tag, text in words if tag in _VERDICTS and text]
    messages = [case.verdicts[place][1] for place in places if place is not None]
    printed = [Turn(role=tag, text=text) for tag, text in words if tag in _PRINTED and text]
    return Transcript(messages=tuple(printed), error="\n".join(failures or messages))
