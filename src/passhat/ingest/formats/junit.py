"""JUnit XML: pytest-repeat, pytest-flakefinder, pytest-rerunfailures, Surefire reruns, any runner.

Repeats hide in names and in reruns. A rerun's earlier attempts stand as extra `<testcase>`s
*without* a failure; only the suite's count, which leaves them out, gives them away.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from passhat.errors import ReadError, plural
from passhat.ingest.columns import ColumnMap, find_columns
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Table, first_line
from passhat.records import FEATURES, Outcome
from passhat.records.transcript import Transcript, Turn

_REPEAT = re.compile(r"(.*)([\[-])(\d+)-(\d+)\]")
_FLAKEFINDER = re.compile(r"([^\[]+)\[(\d+)(?:-(.*))?\]")
_PROMPTFOO = re.compile(r"test \d+: (.+)")

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
_EXTRA_ATTEMPTS = ("rerunFailure", "rerunError", "flakyFailure", "flakyError")


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
    properties: dict[str, str] = field(default_factory=dict)
    words: list[_Words] = field(default_factory=list)

    def outcome(self) -> Outcome:
        """How the last attempt ended; a failure beside an error (of the teardown) is a failure."""
        found = {_VERDICTS[tag] for tag, _ in self.verdicts if tag in ("failure", "error")}
        if not found:
            return Outcome.PASSED
        return Outcome.FAILED if Outcome.FAILED in found else Outcome.ERRORED


@dataclass(slots=True, kw_only=True)
class _Suite:
    """One `<testsuite>`: how many tests it says it ran, and what it lists."""

    name: str
    declared: int | None
    cases: list[_Case] = field(default_factory=list)


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
    if skipped := sum(case.skipped for case in cases):
        notes.append(plural(skipped, "skipped test is no trial", "skipped tests are no trials"))
    cases = [case for case in cases if not case.skipped]
    # Asking for the column "name" asks for names as they stand.
    tasks, more = ([case.name for case in cases], []) if mapping.task == "name" else _tasks(cases)
    rows = [row for case, task in zip(cases, tasks, strict=True) for row in _attempts(case, task)]
    numbers = [row.pop("line") for row in rows]
    return Table.of_rows(rows, notes=[*notes, *more], entry="line", numbers=numbers)


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
            _add_child(case, tag, attributes)
            if tag in _VERDICTS or tag in _PRINTED:
                self._speaking.append(_spoken_in(case, tag, self._speaking))

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self._in_case = False
        if self._speaking and self._speaking[-1].tag == tag:
            self._speaking.pop()

    def _refuse_doctype(self, *_: object) -> None:
        raise ReadError(f"{self._name}: has a DOCTYPE, which JUnit XML has no use for: refused")


def _spoken_in(case: _Case, tag: str, around: Sequence[_Words]) -> _Words:
    inside = around[-1].verdict if around else None
    words = _Words(tag=tag, verdict=len(case.verdicts) - 1 if tag in _VERDICTS else inside)
    case.words.append(words)
    return words


def _suite(attributes: dict[str, str]) -> _Suite:
    count = attributes.get("tests", "")
    declared = int(count) if count.isdecimal() else None
    return _Suite(name=attributes.get("name") or "junit", declared=declared)


def _case(suite: str, attributes: dict[str, str], line: int) -> _Case:
    name, classname = attributes.get("name", ""), attributes.get("classname", "")
    # promptfoo repeats the suite as the class; elsewhere the class is part of the test's name.
    full = f"{classname}::{name}" if classname and classname != suite else name
    return _Case(suite=suite, name=full, seconds=attributes.get("time"), line=line)


def _add_child(case: _Case, tag: str, attributes: dict[str, str]) -> None:
    if tag in _VERDICTS:
        case.verdicts.append((tag, attributes.get("message") or attributes.get("type") or tag))
    elif tag == "skipped":
        case.skipped = True
    elif tag == "property":
        case.properties[attributes.get("name", "")] = attributes.get("value", "")


def _settle_reruns(suite: _Suite) -> list[str]:
    """Give the earlier attempts of rerun tests the failure that the file leaves out."""
    if suite.declared is None or suite.declared >= len(suite.cases):
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


def _tasks(cases: Sequence[_Case]) -> tuple[list[str], list[str]]:
    """Each case's test without the mark of its repeat, and what was taken for one."""
    names = [case.name for case in cases]
    for strip, plugin in (
        (_without_steps, "pytest-repeat"),
        (_without_index, "pytest-flakefinder"),
    ):
        stripped = strip(names)
        if stripped is not None:
            return stripped, [f"names were read as repeats by {plugin} (--task name keeps them)"]
    numbered = [_PROMPTFOO.fullmatch(name) for name in names]
    if names and all(numbered):
        return [found[1] for found in numbered if found], ["tests were matched by description"]
    return names, []


def _without_steps(names: Sequence[str]) -> list[str] | None:
    """`test[a-3-5]` is step 3 of 5 of `test[a]`, where some test has all five steps."""
    found = [_REPEAT.fullmatch(name) for name in names]
    steps: dict[tuple[str, str], set[int]] = defaultdict(set)
    for match in found:
        if match:
            steps[match[1] + match[2], match[4]].add(int(match[3]))
    full = any(
        seen == set(range(1, int(count) + 1)) and int(count) > 1
        for (_, count), seen in steps.items()
    )
    if not full or any(max(seen) > int(count) for (_, count), seen in steps.items()):
        return None
    return [
        name if match is None else match[1] + ("]" if match[2] == "-" else "")
        for name, match in zip(names, found, strict=True)
    ]


def _without_index(names: Sequence[str]) -> list[str] | None:
    """`test[3-a]` is run 3 of `test[a]`, where every test of the file has the same runs."""
    found = [_FLAKEFINDER.fullmatch(name) for name in names]
    if not names or not all(found):
        return None
    tests = [f"{m[1]}[{m[3]}]" if m[3] is not None else m[1] for m in found if m]
    runs = Counter((test, int(m[2])) for test, m in zip(tests, found, strict=True) if m)
    indices = {index for _, index in runs}
    complete = indices == set(range(len(indices))) and len(indices) > 1
    if not complete or len(runs) != len(set(tests)) * len(indices):
        return None
    return tests


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
