"""JUnit XML: pytest and its plugins, Jest, Vitest, Playwright, Surefire, any runner.

Repeats hide in names and in reruns. pytest-rerunfailures writes the earlier attempts of a rerun as
extra `<testcase>`s *without* a failure: in a suite of pytest, a name that occurs again is a rerun;
in others, a suite that counts fewer tests than it lists gives reruns away. A test that is expected
to fail (xfail) is a trial like any other: what counts is whether it did what it asks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any
from xml.parsers import expat

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest import repeated_tests
from passhat.ingest.document import Document, parse_xml
from passhat.ingest.readers import Reading, TrialTable, first_line
from passhat.messages import few, plural, short
from passhat.records import FEATURES, Outcome
from passhat.records.columns import USUAL, ColumnMap, find_columns
from passhat.records.transcript import Transcript, Turn

READING = Reading(
    format="JUnit XML",
    versions="pytest and its repeat plugins, Jest, Vitest, Playwright, Surefire, promptfoo",
    system="suite name if there is one, else the report's name",
    task="class and test name, with the suite if there are several",
    run="repeat marks in names, reruns, order of test cases",
    outcome="failure fails, error is errored, neither passes",
)

_PYTEST = "pytest"
_PYTEST_REPORT = "pytest tests"
_PROMPTFOO = "promptfoo"


def recognises(document: Document) -> bool:
    """Whether the root is a test suite."""
    return re.search(rb"<testsuites?[\s/>]", document.data[:4096]) is not None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an attempt at a test; skipped tests are no trials."""
    report, suites = parse_suites(document)
    cases = [case for suite in suites for case in suite.cases]
    names = _test_names(report, suites, cases)
    reruns = _reruns(report, suites, cases, names)
    notes = [*reruns, *_expected_and_skipped(cases)]
    if mapping.task != "name":  # which asks for the names unchanged
        names, repeats = repeated_tests.tests_of(names, _ran(cases))
        notes += repeats or ([] if reruns else _repeated(cases, names))
    systems, facts = _systems(document, report, suites, cases, mapping)
    named = None if mapping.task == "name" or mapping.system else repeated_tests.models_of(names)
    if named is not None and repeated_tests.NUMBERED_NOTE in " ".join(notes):
        names, systems = named
        facts = {**facts, "system": "model in the test's name, [gpt-5] #3"}
    notes += _several_hosts(suites, mapping)
    trials = [trial for trial in zip(cases, systems, names, strict=True) if not trial[0].skipped]
    rows = [row for case, system, task in trials for row in _attempts(case, system, task)]
    return TrialTable.of_rows(rows, notes=notes, read_as=facts)


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What each attempt printed, and how its failure reads in full."""
    _, suites = parse_suites(document, spoken=True)
    for suite in suites:
        for case in suite.cases:
            if not case.skipped:
                yield from _attempt_transcripts(case)
            case.words.clear()  # what all cases printed is most of the file


def _test_names(report: str, suites: Sequence[JUnitSuite], cases: Sequence[JUnitCase]) -> list[str]:
    """The name of each test, with its suite if there are several that may share names."""
    if report == _PROMPTFOO or len({suite.name for suite in suites if suite.cases}) <= 1:
        return [case.name for case in cases]
    return [
        case.name if case.name.startswith(case.suite) else f"{case.suite}::{case.name}"
        for case in cases
    ]


def _systems(
    document: Document,
    report: str,
    suites: Sequence[JUnitSuite],
    cases: Sequence[JUnitCase],
    mapping: ColumnMap,
) -> tuple[list[str], dict[str, str]]:
    """The system of each test case, and how it was found.

    A suite is a file or a class of tests, not another agent; only promptfoo writes one for each
    provider. `system='suite'` and `system='hostname'` say otherwise.
    """
    if mapping.system == "hostname":
        return [case.hostname or UNNAMED for case in cases], {"system": "hostname of the suite"}
    names = list(dict.fromkeys(suite.name for suite in suites if suite.cases))
    if mapping.system == "suite" or report == _PROMPTFOO or len(names) <= 1:
        source = "no name of a suite" if names == [UNNAMED] else "suite name"
        return [case.suite for case in cases], {"system": source}
    return [report or document.stem] * len(cases), {
        "system": "name of the report" if report else "file name",
        "task": "suite, class and test name",
    }


def _repeated(cases: Sequence[JUnitCase], names: Sequence[str]) -> list[str]:
    """A note where tests of one name in one suite may be different tests."""
    pairs = zip(cases, names, strict=True)
    times = Counter((case.suite, case.hostname, name) for case, name in pairs if not case.skipped)
    several = [name for (_, _, name), count in times.items() if count > 1]
    if not several:
        return []
    shown = f"{short(several[0])} and {len(several) - 1:,} more" if several[1:] else several[0]
    return [f"tests that share a name were read as trials of one test ({short(shown)})"]


def _several_hosts(suites: Sequence[JUnitSuite], mapping: ColumnMap) -> list[str]:
    """A note where suites of one name differ in their hosts, as Playwright's projects do."""
    hosts: dict[str, dict[str, None]] = {}
    for suite in suites:
        if suite.cases and suite.hostname:
            hosts.setdefault(suite.name, {})[suite.hostname] = None
    several = next((list(host) for host in hosts.values() if len(host) > 1), None)
    if several is None or mapping.system == "hostname":
        return []
    note = f"suites of one name on the hosts {few(several, 3)} were read as trials of one agent"
    return [f"{note} (`system='hostname'` keeps them apart)"]


def _ran(cases: Sequence[JUnitCase]) -> list[bool]:
    return [not case.skipped and case.outcome() is not Outcome.ERRORED for case in cases]


def _reruns(
    report: str, suites: Sequence[JUnitSuite], cases: Sequence[JUnitCase], names: Sequence[str]
) -> list[str]:
    """Give the earlier attempts of rerun tests the failure that the file leaves out."""
    # Only flakefinder repeats a test under its own name (a method of unittest), beside others that
    # have its marks.
    by_name = not repeated_tests.repeated_by_flakefinder(names, _ran(cases))
    notes = []
    for suite in suites:
        of_pytest = by_name and (report == _PYTEST_REPORT or suite.name == _PYTEST)
        fewer = suite.declared is not None and suite.declared < suite.listed
        if (of_pytest or fewer) and (reruns := _settle_reruns(suite)):
            counted = plural(reruns, "attempt counts as a failure", "attempts count as failures")
            notes.append(
                f'{counted} because suite "{short(suite.name)}" ran the test again; reruns end at '
                "the first pass, which favours the tests that were rerun"
            )
    return notes


def _settle_reruns(suite: JUnitSuite) -> int:
    """Mark every attempt but the last of a test as a failure; how many were not marked before."""
    last = {case.name: index for index, case in enumerate(suite.cases)}
    reruns = 0
    for index, case in enumerate(suite.cases):
        final = suite.cases[last[case.name]]
        if index != last[case.name] and not case.verdicts and not case.skipped:
            tag = "error" if final.outcome() is Outcome.ERRORED else "failure"
            case.verdicts.append((tag, "rerun"))
            reruns += 1
    return reruns


def _expected_and_skipped(cases: Sequence[JUnitCase]) -> list[str]:
    xfailed, xpassed, skipped = (
        sum(getattr(case, name) for case in cases) for name in ("xfailed", "xpassed", "skipped")
    )
    failed = plural(xfailed, "xfailed test counts as a failure", "xfailed tests count as failures")
    passed = plural(xpassed, "strict xpass counts as a pass", "strict xpasses count as passes")
    return [
        *([f"{failed}, though it was expected"] if xfailed else []),
        *([f"{passed}, though it was not expected"] if xpassed else []),
        *repeated_tests.skipped_note(skipped),
    ]


def _attempts(case: JUnitCase, system: str, task: str) -> Iterator[dict[str, Any]]:
    test = {"system": system, "task": task, "line": case.line}
    for tag, message in case.verdicts:
        if tag in EXTRA_ATTEMPTS:
            yield test | {"outcome": VERDICTS[tag], "error": first_line(message)}
    last = next((text for tag, text in case.verdicts if tag not in EXTRA_ATTEMPTS), None)
    ended = {"outcome": case.outcome(), "error": first_line(last), "seconds": case.seconds}
    stated = {
        meaning: case.properties[name]
        for meaning, name in find_columns(case.properties, USUAL).items()
        if meaning in ("seed", "score", *FEATURES)
    }
    yield test | ended | stated


def _attempt_transcripts(case: JUnitCase) -> Iterator[Transcript]:
    """One transcript an attempt, in the order of `_attempts`."""
    by_verdict: dict[int | None, list[Words]] = {}
    for words in case.words:
        by_verdict.setdefault(words.verdict, []).append(words)
    attempts: list[list[int | None]] = []
    last: list[int | None] = [None]
    for place, (tag, _) in enumerate(case.verdicts):
        if tag in EXTRA_ATTEMPTS:
            attempts.append([place])
        else:
            last.append(place)
    for places in (*attempts, last):
        spoken = [words for place in places for words in by_verdict.get(place, ())]
        texts = [(words.tag, "".join(words.pieces).strip("\n")) for words in spoken]
        failures = [text for tag, text in texts if tag in VERDICTS and text]
        messages = [case.verdicts[place][1] for place in places if place is not None]
        printed = [Turn(role=tag, text=text) for tag, text in texts if tag in PRINTED and text]
        yield Transcript(messages=tuple(printed), error="\n".join(failures or messages))


# The suites and test cases of JUnit XML, parsed with bounded depth and no DOCTYPE.
VERDICTS = {
    "failure": Outcome.FAILED,
    "error": Outcome.ERRORED,
    "rerunFailure": Outcome.FAILED,
    "rerunError": Outcome.ERRORED,
    "flakyFailure": Outcome.FAILED,
    "flakyError": Outcome.ERRORED,
}

UNNAMED = "junit"
"""What a suite is called that has no name."""
PRINTED = ("system-out", "system-err")
_DEEPEST = 64
_MOST_DIGITS = 18
EXTRA_ATTEMPTS = ("rerunFailure", "rerunError", "flakyFailure", "flakyError")

# How pytest writes of tests that are expected to fail: they did, did not though it is strict, or
# were not even tried.
_XFAIL, _STRICT_XPASS, _NOT_RUN = "pytest.xfail", "[XPASS(strict)]", "[NOTRUN]"
_TEARDOWN = "failed on teardown"
"""How pytest's report on a failed teardown begins, which it writes beside that of a failure."""


@dataclass(slots=True, kw_only=True)
class Words:
    """Text of an element; `verdict` is the place of the verdict it belongs to, if to one."""

    tag: str
    verdict: int | None
    pieces: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class JUnitCase:
    """One `<testcase>`, with the verdicts among its children."""

    suite: str
    name: str
    hostname: str
    seconds: str | None
    line: int
    verdicts: list[tuple[str, str]] = field(default_factory=list)
    skipped: bool = False
    xfailed: bool = False
    xpassed: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    words: list[Words] = field(default_factory=list)

    def outcome(self) -> Outcome:
        """How the last attempt ended; a failure beside an error (of the teardown) is a failure."""
        outcomes = {VERDICTS[tag] for tag, _ in self.verdicts if tag in ("failure", "error")}
        if not outcomes:
            return Outcome.PASSED
        return Outcome.FAILED if Outcome.FAILED in outcomes else Outcome.ERRORED


@dataclass(slots=True, kw_only=True)
class JUnitSuite:
    """One `<testsuite>`: how many tests it says it ran, how many it lists, and which.

    `inside` are the names of the suites around it.
    """

    name: str
    declared: int | None
    hostname: str = ""
    inside: tuple[str, ...] = ()
    listed: int = 0
    cases: list[JUnitCase] = field(default_factory=list)
    last: dict[str, JUnitCase] = field(default_factory=dict)

    def end_case(self) -> None:
        """Put a failure and what broke while clearing up after it together again: one attempt."""
        self.listed += 1
        late = self.cases[-1]
        # A test that skips itself may still break while it is cleared up.
        late.skipped = late.skipped and late.outcome() is Outcome.PASSED
        failed = self.last.setdefault(late.name, late)
        messages = [message for _, message in late.verdicts]
        only_teardown = len(messages) == 1 and messages[0].startswith(_TEARDOWN)
        if not only_teardown or failed.outcome() is not Outcome.FAILED:
            self.last[late.name] = late
            return
        for words in self.cases.pop().words:
            shifted = None if words.verdict is None else words.verdict + len(failed.verdicts)
            failed.words.append(replace(words, verdict=shifted))
        failed.verdicts += late.verdicts


def parse_suites(document: Document, *, spoken: bool = False) -> tuple[str, list[JUnitSuite]]:
    """The report's own name, and its suites."""
    parser = expat.ParserCreate()
    log = _Log(document.name, parser)
    if spoken:
        parser.CharacterDataHandler = log.add_text
    parse_xml(document, parser, "JUnit XML")
    _tell_apart(log.suites)
    return log.report, log.suites


def _tell_apart(suites: Sequence[JUnitSuite]) -> None:
    """Name suites of one name after the suites around them, where those differ.

    Node and Mocha write a suite for each block: two blocks "refund" hold different tests.
    """
    homes: dict[str, set[tuple[str, ...]]] = {}
    for suite in suites:
        if suite.cases:
            homes.setdefault(suite.name, set()).add(suite.inside)
    for suite in suites:
        if suite.inside and len(homes.get(suite.name, ())) > 1:
            suite.name = " > ".join((*suite.inside, suite.name))
            for case in suite.cases:
                case.suite = suite.name


class _Log:
    """The events of expat, collected suite by suite."""

    def __init__(self, name: str, parser: expat.XMLParserType) -> None:
        self.report = ""
        self.suites: list[JUnitSuite] = []
        self._open: list[JUnitSuite] = []
        self._name, self._parser, self._depth = name, parser, 0
        self._in_case = False
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        self._speaking: list[Words] = []

    def add_text(self, text: str) -> None:
        """Keep the text of the innermost element whose text matters."""
        if self._speaking:
            self._speaking[-1].pieces.append(text)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ReadError(f"{self._name}: nested too deeply to be JUnit XML")
        if tag == "testsuites" and attributes.get("name") == "passhat":
            raise ReadError(
                f"{self._name}: is a report that passhat wrote, and holds rates, not trials (or "
                "runs, of which some do not say how they ended); read what the report was made from"
            )
        if tag == "testsuites":
            self.report = attributes.get("name") or ""
        elif tag == "testsuite":
            suite = _suite(attributes, tuple(outer.name for outer in self._open))
            self.suites.append(suite)
            self._open.append(suite)
        elif tag == "testcase":
            suite = self._current()
            suite.cases.append(_case(suite, attributes, self._parser.CurrentLineNumber))
            self._in_case = True
        elif self._in_case and self._current().cases:
            case = self._current().cases[-1]
            verdict = _add_child(case, tag, attributes)
            if verdict or tag in PRINTED:
                inside = self._speaking[-1].verdict if self._speaking else None
                words = Words(tag=tag, verdict=len(case.verdicts) - 1 if verdict else inside)
                case.words.append(words)
                self._speaking.append(words)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self._in_case = False
            self._current().end_case()
        elif tag == "testsuite":
            self._open.pop()
        if self._speaking and self._speaking[-1].tag == tag:
            self._speaking.pop()

    def _current(self) -> JUnitSuite:
        """The innermost suite that is open; one without a name for test cases outside any."""
        if self._open:
            return self._open[-1]
        if not self.suites or self.suites[0].name != UNNAMED:
            self.suites.insert(0, _suite({}, ()))
        return self.suites[0]


def _suite(attributes: dict[str, str], inside: tuple[str, ...]) -> JUnitSuite:
    count = attributes.get("tests", "")
    declared = int(count) if count.isdecimal() and len(count) <= _MOST_DIGITS else None
    return JUnitSuite(
        name=attributes.get("name") or UNNAMED,
        declared=declared,
        hostname=attributes.get("hostname") or "",
        inside=inside,
    )


def _case(suite: JUnitSuite, attributes: dict[str, str], line: int) -> JUnitCase:
    name, classname = attributes.get("name", ""), attributes.get("classname", "")
    # Jest repeats the test's sentence as the class, others the suite's name; elsewhere the class is
    # part of the test's name.
    sentence = classname == name and " " in name
    apart = classname and classname != suite.name and not sentence
    return JUnitCase(
        suite=suite.name,
        name=f"{classname}::{name}" if apart else name,
        hostname=suite.hostname,
        seconds=attributes.get("time"),
        line=line,
    )


def _add_child(case: JUnitCase, tag: str, attributes: dict[str, str]) -> bool:
    """Record what a child element says about its case; whether it is a verdict."""
    message = attributes.get("message") or ""
    if tag == "failure" and message.startswith(_STRICT_XPASS):
        case.xpassed = True
    elif tag in VERDICTS:
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
