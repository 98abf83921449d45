"""The suites and test cases of JUnit XML, parsed with bounded depth and no DOCTYPE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from xml.parsers import expat

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.records import Outcome

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
    classname: str
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
        found = {VERDICTS[tag] for tag, _ in self.verdicts if tag in ("failure", "error")}
        if not found:
            return Outcome.PASSED
        return Outcome.FAILED if Outcome.FAILED in found else Outcome.ERRORED

    def torn_down(self) -> bool:
        """Whether it only reports a failed teardown, as pytest does beside a failure."""
        messages = [message for _, message in self.verdicts]
        return len(messages) == 1 and messages[0].startswith(_TEARDOWN)


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
        if not late.torn_down() or failed.outcome() is not Outcome.FAILED:
            self.last[late.name] = late
            return
        for words in self.cases.pop().words:
            shifted = None if words.verdict is None else words.verdict + len(failed.verdicts)
            failed.words.append(replace(words, verdict=shifted))
        failed.verdicts += late.verdicts


def parse_suites(document: Document, *, spoken: bool = False) -> tuple[str, list[JUnitSuite]]:
    """The report's own name, and its suites."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    log = _Log(document.name, parser)
    if spoken:
        parser.CharacterDataHandler = log.add_text
    try:
        parser.Parse(document.data, True)
    except expat.ExpatError as error:
        raise ReadError(f"{document.name}: not valid XML ({error})") from error
    except (LookupError, ValueError) as error:  # of the encoding that its first line declares
        raise ReadError(
            f"{document.name}, line 1: its encoding cannot be read ({error}); save it as UTF-8"
        ) from error
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
        parser.StartDoctypeDeclHandler = self._refuse_doctype
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
            suite = _suite(attributes, tuple(one.name for one in self._open))
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
                self._speaking.append(_spoken_in(case, tag, self._speaking, verdict=verdict))

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

    def _refuse_doctype(self, *_: object) -> None:
        raise ReadError(f"{self._name}: has a DOCTYPE, which JUnit XML has no use for: refused")


def _spoken_in(case: JUnitCase, tag: str, around: Sequence[Words], *, verdict: bool) -> Words:
    inside = around[-1].verdict if around else None
    words = Words(tag=tag, verdict=len(case.verdicts) - 1 if verdict else inside)
    case.words.append(words)
    return words


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
        classname=classname,
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
