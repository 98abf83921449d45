"""Tests that the agent never saw decide about its work.

Only the agent's changes cross to a fresh copy of the workspace; what is protected is as it was, the
hidden files lie on top, and the tests run in a sandbox of their own. A pass needs a report of tests
that all passed and exit code 0: code under test may end the process whenever it likes.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import secrets
import shlex
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat

from passhat.dataclass import dataclass
from passhat.errors import GraderError
from passhat.messages import plural
from passhat.records import Expectation
from passhat.runner.matchers import Match

MOST_REPORT = 10_000_000
"""Bytes of a report; the code under test may write it too."""

REPORT_FOLDER = "/report"
"""Where tests write their report, in their sandbox: beside the workspace, not in it."""

BROKEN = {126: "cannot be run", 127: "is not there"}
"""Exit codes of a shell for a program that it could not start."""

PYTEST_BROKE = {3: "an internal error", 4: "a wrong command line"}

SIGNALLED = frozenset(128 + number for number in signal.Signals)
"""Exit codes of a shell for a program that a signal ended."""

TestOutcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One test of a report: what it is called, how it ended, and what it said.

    `title` is the line that unittest prints in place of its name where the test has a docstring.
    """

    name: str
    outcome: TestOutcome
    message: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """How a test command ended, and what it wrote: its report (if any), stdout and stderr.

    Of what is printed, `is_cut` says that only the end is here. `reward` is the score that tests of
    Harbor write instead of a report.
    """

    code: int
    report: bytes | None = None
    stdout: str = ""
    stderr: str = ""
    limit: str | None = None
    is_cut: bool = False
    reward: float | None = None


RunTests = Callable[[list[str], str], Awaitable[TestRun]]
"""`await run(argv, report)`: the tests of one trial, in a fresh copy of its work."""


async def match_tests(
    expectation: Expectation, run: RunTests, note: Callable[[Sequence[TestResult]], None]
) -> Match:
    """Run the hidden tests on a trial's changes; `note` gets the tests that the report names."""
    report = f"{REPORT_FOLDER}/{secrets.token_hex(8)}"
    asked = str(expectation.value)
    words = [word.replace("{report}", report) for word in shlex.split(asked)]
    ended = await run(words, report)
    program = Path(words[0]).name
    if ended.code in BROKEN:
        raise GraderError(
            f"the tests could not run: {program} {BROKEN[ended.code]}: {_last_line(ended)}"
        )
    if "pytest" in words[:3] and ended.code in PYTEST_BROKE:
        raise GraderError(f"pytest broke: {PYTEST_BROKE[ended.code]}: {_last_line(ended)}")
    if ended.report is None and (module := missing_module(words, ended.code, _last_line(ended))):
        raise GraderError(
            f"the tests could not run: {program} has no {module}: name an interpreter that has it, "
            "and let the sandbox see it with `show:`"
        )
    if ended.report is None and (fault := failed_start(ended.code, ended.stderr)):
        raise GraderError(f"the tests could not run: {program} broke: {fault}")
    # A report has up to 10 MB, which takes a second: the other trials go on meanwhile.
    results = await asyncio.to_thread(read_results, ended)
    note(results)
    if ended.reward is not None and ended.limit is None:
        return Match(ended.reward, f"the tests gave {ended.reward:g} of 1")
    score, reason = _verdict(results, ended, expectation)
    if ended.report is None and ended.is_cut and score < 1:
        reason += "; only the end of what they printed was read: let them write {report}"
    return Match(score, reason)


def _verdict(
    results: Sequence[TestResult], ended: TestRun, expectation: Expectation
) -> tuple[float, str]:
    options = expectation.options
    ran = [result for result in results if result.outcome != "skipped"]
    failed = [test for test in ran if test.outcome == "failed"]
    least = int(options.get("at_least") or 1)
    wanted = [str(name) for name in options.get("names") or ()]
    missing = _missing(wanted, ran)
    if ended.limit is not None:
        return 0.0, f"the tests went over their {ended.limit} limit"
    if not results:
        return 0.0, f"no test report (exit code {ended.code}): {_last_line(ended)}"
    if wanted and missing:
        return (
            0.0,
            f"{len(missing)} of {plural(len(wanted), 'named test')} did not pass: {missing[0]}",
        )
    if wanted and (ended.code < 0 or ended.code in SIGNALLED):
        # Other tests may fail, and the runner with them; but whoever kills it may have forged.
        return 0.0, f"the test runner was killed (exit code {ended.code})"
    if wanted:
        return 1.0, f"{plural(len(wanted), 'named test')} passed"
    if failed:
        why = f": {failed[0].message}" if failed[0].message else ""
        return 0.0, f"{len(failed)} of {plural(len(ran), 'test')} failed: {failed[0].name}{why}"
    if len(ran) < least:
        skipped = len(results) - len(ran)
        return 0.0, f"{len(ran)} of at least {plural(least, 'test')} ran ({skipped} skipped)"
    if ended.code != 0:
        return 0.0, f"{plural(len(ran), 'test')} passed, but the exit code is {ended.code}: " + (
            _last_line(ended)
        )
    return 1.0, f"{plural(len(ran), 'test')} passed"


def missing_module(words: Sequence[str], code: int, last_line: str) -> str | None:
    """The module that `python -m` was to run and did not find; None if it ran.

    >>> missing_module(["python3", "-m", "pytest"], 1, "/usr/bin/python3: No module named pytest")
    'pytest'
    """
    if code != 1 or "-m" not in words[:-1]:
        return None
    module = words[words.index("-m") + 1]
    match = re.fullmatch(r"\S+: No module named (\S+)", last_line)
    return module if match and match[1] == module.partition(".")[0] else None


_FATAL = re.compile(
    r"^(Fatal Python error: .*)\nPython runtime state: (?!initialized)", re.MULTILINE
)
_UNREADABLE = re.compile(
    r"""\s*File "(?P<script>.+)", line \d+\n"""
    r"(?:.*\n)*(?P<fault>(?:Syntax|Indentation|Tab)Error: .*)\s*"
)


def failed_start(code: int, stderr: str, folder: Path | None = None) -> str | None:
    r"""Why Python never ran the program that it was given, from what it said; None if it did.

    Python ends with 1 then, as a program does that judged and found a failure. A script that it
    cannot parse has no traceback; one in the `folder` of the agent is the agent's own.

    >>> failed_start(1, "Fatal Python error: no codec\nPython runtime state: core initialized\n")
    'Fatal Python error: no codec'
    >>> output = '  File "/suite/check.py", line 1\n    def (\nSyntaxError: invalid syntax'
    >>> failed_start(1, output, Path("/work")), failed_start(1, output, Path("/suite"))
    ('check.py: SyntaxError: invalid syntax', None)
    """
    if code != 1:
        return None
    if fatal := _FATAL.search(stderr):
        return fatal[1]
    if folder is None or not (match := _UNREADABLE.fullmatch(stderr)):
        return None
    script = Path(match["script"])
    if not script.is_absolute() or script.resolve().is_relative_to(folder.resolve()):
        return None
    return f"{script.name}: {match['fault']}"


def _missing(wanted: Sequence[str], ran: Sequence[TestResult]) -> list[str]:
    """Which of the tests that are asked for did not pass: tools write one in several ways.

    SWE-bench cuts names at their first space: `test_y[1` stands for all tests that it begins, and
    none of them may fail.

    >>> ran = [TestResult(name=n, outcome="passed") for n in ("t.a::test_x", "m.C::test_y[1 2]")]
    >>> _missing(["t/a.py::test_x", "test_y[1 2]", "m.py::C::test_y[1"], ran)
    []
    >>> _missing(["est_x", "b.py::test_x", "test_y[1 3]", "test_y"], ran)
    ['est_x', 'b.py::test_x', 'test_y[1 3]', 'test_y']
    """
    asked = {name: _dotted(name) for name in wanted}
    lengths = {len(text) for text in asked.values()}
    there: dict[TestOutcome, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    for test in ran:
        whole = _dotted(test.name)
        short = whole.partition(" ")[0]
        names = {whole, _dotted(test.title), short if _is_cut(short) else whole}
        # The ends of a name, one for each length that is asked for: there may be thousands of both.
        there[test.outcome] |= {
            name[len(name) - length :]
            for name in names
            for length in lengths
            if len(name) == length or (len(name) > length and name[-length - 1] == ".")
        }
    passed = there["passed"] - {name for name in there["failed"] if _is_cut(name)}
    return [name for name in wanted if asked[name] not in passed]


def _is_cut(name: str) -> bool:
    return name.count("[") > name.count("]")


def _dotted(name: str) -> str:
    return re.sub(r"\.py(?=::|$)", "", name).replace("/", ".").replace("::", ".")


def _last_line(ended: TestRun) -> str:
    text = (ended.stderr or ended.stdout).strip()
    return text.rpartition("\n")[2].strip()[:300] or "it said nothing"


# Reports of test runners.


def read_results(ended: TestRun) -> list[TestResult]:
    """The tests of a report file, or of what was printed; none if it is no report that we know."""
    if ended.report is not None:
        text = ended.report.decode("utf-8", "replace").lstrip("\ufeff \n\r\t")
        if text.startswith("<"):
            return _junit(ended.report)
        return _jest(text) or _go(text) or _verbose(text)
    printed = ended.stdout
    return _jest(printed) or _go(printed) or _verbose(ended.stderr) or _pytest(printed)


def read_reward(text: bytes | None, *, is_json: bool) -> float | None:
    """The score that tests of Harbor write to reward.txt or reward.json, from 0 to 1.

    None for what is no number, and for several of which none is called the reward.

    >>> read_reward(b"0.5", is_json=False), read_reward(b'{"reward": 1}', is_json=True)
    (0.5, 1.0)
    """
    if text is None:
        return None
    try:
        given = json.loads(text) if is_json else text
        if isinstance(given, dict):
            (given,) = [given["reward"]] if "reward" in given else given.values()
        reward = float(given)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return min(max(reward, 0.0), 1.0) if math.isfinite(reward) else None


def _junit(report: bytes) -> list[TestResult]:
    """The test cases of JUnit XML: pytest, and most other runners, can write it."""
    results: list[TestResult] = []
    current: dict[str, Any] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(":")[2]
        if kind == "testcase":
            owner = attributes.get("classname") or attributes.get("file") or ""
            name = attributes.get("name", "")
            current.clear()
            current.update(name=f"{owner}::{name}" if owner else name, outcome="passed", message="")
        elif kind in ("failure", "error", "skipped") and current:
            worse = kind == "skipped" and current["outcome"] == "failed"
            if not worse:
                current["outcome"] = "skipped" if kind == "skipped" else "failed"
                current["message"] = attributes.get("message", "")[:1000]

    def end(tag: str) -> None:
        if tag.rpartition(":")[2] == "testcase" and current:
            results.append(TestResult(**current))
            current.clear()

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(report, True)
    except expat.ExpatError:
        return []
    return results


def _jest(text: str) -> list[TestResult]:
    """The report of `jest --json` or `vitest --reporter=json`."""
    try:
        report = json.loads(text)
        files = report["testResults"]
        outcomes: dict[str, TestOutcome] = {"passed": "passed", "failed": "failed"}
        results = [
            TestResult(
                name=str(test.get("fullName") or test.get("title")),
                outcome=outcomes.get(str(test.get("status")), "skipped"),
                message="\n".join(map(str, test.get("failureMessages") or ()))[:1000],
            )
            for file in files
            for test in file.get("assertionResults") or ()
        ]
        broken = [
            file
            for file in files
            if file.get("status") == "failed" and not file.get("assertionResults")
        ]
        return results + [
            TestResult(
                name=str(file.get("name")),
                outcome="failed",
                message=str(file.get("message", ""))[:1000],
            )
            for file in broken
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _go(text: str) -> list[TestResult]:
    """The events of `go test -json`."""
    outcomes: dict[str, TestOutcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    results = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and event.get("Action") in outcomes and event.get("Test"):
            name = f"{event.get('Package', '')}::{event['Test']}"
            results.append(TestResult(name=name, outcome=outcomes[event["Action"]]))
    return results


LONGEST_LINE = 1000
"""Characters of a line about a test. The time to match one may grow with its square."""

LISTED = re.compile(
    r"(PASSED|FAILED|ERROR) ((?>\S+?::).+?)(?: - .*)?"
    r"|((?>\S+?::).+?) (PASSED|FAILED|ERROR|SKIPPED)(?: \(.*\))?(?: +\[ *\d+%\])?"
)


def _pytest(text: str) -> list[TestResult]:
    """What `pytest -rA` or `pytest -v` prints: one line a test, and none counts twice."""
    outcomes: dict[str, TestOutcome] = {"PASSED": "passed", "FAILED": "failed", "ERROR": "failed"}
    results: dict[str, TestOutcome] = {}
    for line in text.split("\n"):
        if len(line) <= LONGEST_LINE and (match := LISTED.fullmatch(line)) is not None:
            first, name, other, last = match.groups()
            results[name or other] = outcomes.get(first or last, "skipped")
    return [TestResult(name=name, outcome=outcome) for name, outcome in results.items()]


VERBOSE = re.compile(r"^(\w+) \(([\w.<>]+)\)(?:\n(.*))? \.\.\. ", re.MULTILINE)
ENDED = re.compile(r"^(ok|FAIL|ERROR|skipped.*|expected failure|unexpected success)$", re.MULTILINE)
SUMMARY = re.compile(r"^(?:={70}|-{70})$", re.MULTILINE)


def _verbose(text: str) -> list[TestResult]:
    """What `python -m unittest -v` prints: how a test ended stands after what it printed itself."""
    outcomes: dict[str, TestOutcome] = {
        "ok": "passed",
        "expected failure": "passed",
        "FAIL": "failed",
        "ERROR": "failed",
        "unexpected success": "failed",
    }
    summary = SUMMARY.search(text)
    printed = text[: summary.start()] if summary else text
    begun = list(VERBOSE.finditer(printed))
    ends = [*(test.start() for test in begun[1:]), len(printed)]
    results = []
    for test, end in zip(begun, ends, strict=False):
        # The runner says last how a test ended: what is before may be the test's own words.
        if words := ENDED.findall(printed[test.end() : end]):
            outcome = outcomes.get(words[-1], "skipped")
            owner = test[2].removesuffix(f".{test[1]}")  # Python 3.11 has the test there too
            name = f"{owner}::{test[1]}"
            results.append(TestResult(name=name, outcome=outcome, title=test[3] or ""))
    return results
