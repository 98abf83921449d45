"""JUnit XML: pytest and its plugins, Jest, Vitest, Playwright, Surefire, any runner.

Repeats hide in names and in reruns. pytest-rerunfailures writes the earlier attempts of a rerun as
extra `<testcase>`s *without* a failure: in a suite of pytest, a name that occurs again is a rerun;
in others, a suite that counts fewer tests than it lists gives reruns away. A test that is expected
to fail (xfail) is a trial like any other: what counts is whether it did what it asks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.junit_suites import (
    EXTRA_ATTEMPTS,
    PRINTED,
    UNNAMED,
    VERDICTS,
    JUnitCase,
    JUnitSuite,
    Words,
    parse_suites,
)
from passhat.ingest.reader import Reading, TrialTable, first_line
from passhat.ingest.repeated_tests import repeated_by_flakefinder, skipped_note, tests_of
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
        names, repeats = tests_of(names, _ran(cases))
        notes += repeats or ([] if reruns else _repeated(cases, names))
    systems, facts = _systems(document, report, suites, cases, mapping)
    notes += _several_hosts(suites, mapping)
    trials = [one for one in zip(cases, systems, names, strict=True) if not one[0].skipped]
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
        found = "no name of a suite" if names == [UNNAMED] else "suite name"
        return [case.suite for case in cases], {"system": found}
    return [report or document.stem] * len(cases), {
        "system": "name of the report" if report else "file name",
        "task": "suite, class and test name",
    }


def _repeated(cases: Sequence[JUnitCase], names: Sequence[str]) -> list[str]:
    """A note where tests of one name in one suite may be different tests."""
    ran = [pair for pair in zip(cases, names, strict=True) if not pair[0].skipped]
    times = Counter((case.suite, case.hostname, name) for case, name in ran)
    several = [name for (_, _, name), count in times.items() if count > 1]
    if not several:
        return []
    shown = f"{short(several[0])} and {len(several) - 1:,} more" if several[1:] else several[0]
    return [f"tests that share a name were read as runs of one test ({short(shown)})"]


def _several_hosts(suites: Sequence[JUnitSuite], mapping: ColumnMap) -> list[str]:
    """A note where suites of one name differ in their hosts, as Playwright's projects do."""
    hosts: dict[str, dict[str, None]] = {}
    for suite in suites:
        if suite.cases and suite.hostname:
            hosts.setdefault(suite.name, {})[suite.hostname] = None
    several = next((list(found) for found in hosts.values() if len(found) > 1), None)
    if several is None or mapping.system == "hostname":
        return []
    note = f"suites of one name on the hosts {few(several, 3)} were read as runs of one system"
    return [f"{note} (`system='hostname'` keeps them apart)"]


def _ran(cases: Sequence[JUnitCase]) -> list[bool]:
    return [not case.skipped and case.outcome() is not Outcome.ERRORED for case in cases]


def _reruns(
    report: str, suites: Sequence[JUnitSuite], cases: Sequence[JUnitCase], names: Sequence[str]
) -> list[str]:
    """Give the earlier attempts of rerun tests the failure that the file leaves out."""
    # Only flakefinder repeats a test under its own name (a method of unittest), beside others that
    # have its marks.
    by_name = not repeated_by_flakefinder(names, _ran(cases))
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
        *skipped_note(skipped),
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
    said: dict[int | None, list[Words]] = {}
    for words in case.words:
        said.setdefault(words.verdict, []).append(words)
    last: list[int | None] = [None]
    for place, (tag, _) in enumerate(case.verdicts):
        if tag in EXTRA_ATTEMPTS:
            yield _attempt_transcript(case, [place], said)
        else:
            last.append(place)
    yield _attempt_transcript(case, last, said)


def _attempt_transcript(
    case: JUnitCase, places: Sequence[int | None], said: Mapping[int | None, list[Words]]
) -> Transcript:
    words = [(one.tag, "".join(one.pieces).strip("\n")) for p in places for one in said.get(p, ())]
    failures = [text for tag, text in words if tag in VERDICTS and text]
    messages = [case.verdicts[place][1] for place in places if place is not None]
    printed = [Turn(role=tag, text=text) for tag, text in words if tag in PRINTED and text]
    return Transcript(messages=tuple(printed), error="\n".join(failures or messages))
