"""Grading: an observation is compared with every expectation."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import GraderError
from passhat.records import CheckResult, Expectation, Grade, Observation
from passhat.runner.graders import patterns
from passhat.runner.graders.judging import Ask, match_rubric
from passhat.runner.graders.matches import VALUE_MATCHERS, Match, same, shown, text_of
from passhat.runner.graders.programs import match_command, match_function
from passhat.runner.graders.targets import find
from passhat.runner.value_paths import MISSING

ROUNDING = 1e-9
"""Ten weights of 0.1 do not add up to exactly 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What graders need: the suite's directory, the judge, and how snapshots are written.

    With `write_snapshots`, a snapshot that is not there is stored; with `update_snapshots`, the
    old one is replaced. `clean` takes secrets out of what is written to disk. `asked` is what the
    agent was asked, and `transcript` gives the whole conversation: a judge is shown both.
    """

    directory: Path = Path()
    ask: Ask | None = None
    write_snapshots: bool = True
    update_snapshots: bool = False
    clean: Callable[[str], str] = str
    asked: str = ""
    transcript: Callable[[], str] = str


ON_ITS_OWN = Grading()


async def grade(
    expectations: Sequence[Expectation],
    observation: Observation,
    *,
    pass_score: float = 1.0,
    grading: Grading = ON_ITS_OWN,
) -> Grade:
    """Grade an observation by its expectations. A grader that breaks raises GraderError.

    Without expectations, the score is the one that the system reported of itself, or else 1.

    >>> expected = [Expectation(matcher="contains", value="24"),
    ...             Expectation(matcher="called", value="get_weather")]
    >>> asyncio.run(grade(expected, Observation(answer="24 degrees"))).score
    0.5
    """
    if not expectations:
        score = 1.0 if observation.score is None else observation.score
        return Grade(score=score, passed=score >= pass_score - ROUNDING)
    details = tuple([await _check(e, observation, grading) for e in expectations])
    total = sum(detail.weight for detail in details)
    score = sum(detail.score * detail.weight for detail in details) / total
    return Grade(score=score, passed=score >= pass_score - ROUNDING, details=details)


async def _check(
    expectation: Expectation, observation: Observation, grading: Grading
) -> CheckResult:
    match = await _matched(expectation, observation, grading)
    score = 1.0 - match.score if expectation.negate else match.score
    message = f"not: {match.message}" if expectation.negate else match.message
    return CheckResult(
        target=expectation.target,
        matcher=f"not {expectation.matcher}" if expectation.negate else expectation.matcher,
        score=score,
        weight=expectation.weight,
        message=expectation.message if expectation.message and score < 1 else message,
        disagreement=match.disagreement,
    )


async def _matched(expectation: Expectation, observation: Observation, grading: Grading) -> Match:
    name = expectation.matcher
    if name in CALL_MATCHERS:
        return CALL_MATCHERS[name](observation, expectation)
    if name == "command":
        return await match_command(observation, expectation, directory=grading.directory)
    value = find(observation, expectation.target)
    if name in VALUE_MATCHERS:
        if _takes_long(name, expectation, value):
            return await asyncio.to_thread(VALUE_MATCHERS[name], value, expectation)
        return VALUE_MATCHERS[name](value, expectation)
    if name == "python":
        return await match_function(value, observation, expectation, directory=grading.directory)
    if name == "snapshot":
        return _snapshot(value, str(expectation.value), grading)
    if name == "judge":
        if grading.ask is None:
            raise GraderError("a rubric needs a judge: add judge: to the suite")
        said = grading.transcript() if expectation.options.get("transcript") else ""
        return await match_rubric(
            value, expectation, ask=grading.ask, asked=grading.asked, transcript=said
        )
    raise GraderError(f"there is no matcher named {name!r}")


def _takes_long(name: str, expectation: Expectation, value: object) -> bool:
    """Whether a match would hold up the trials beside it."""
    if name == "json-schema":
        return '"pattern' in text_of(expectation.value)
    return name == "regex" and patterns.may_hang(str(expectation.value), text_of(value))


def _snapshot(value: Any, name: str, grading: Grading) -> Match:
    """Compare a value with the snapshot of that name, without secrets; store it where it may be."""
    if value is MISSING:
        return Match(0.0, f'expected snapshot "{name}", got nothing')
    file = grading.directory / "snapshots" / _file_name(name)
    text = grading.clean(_stable(value))
    try:
        if grading.update_snapshots:
            _store(file, text, mode="w")
        elif grading.write_snapshots and not file.exists():
            _store(file, text, mode="x")
        stored = file.read_text(encoding="utf-8")
    except FileExistsError:  # another trial stored it at the same moment
        stored = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise GraderError(
            f'snapshot "{name}" is not stored: run the suite once where snapshots may be written, '
            "and commit the file"
        ) from None
    except OSError as error:
        raise GraderError(f'snapshot "{name}": {file}: {error.strerror}') from None
    held = stored == text
    return Match(float(held), f'expected snapshot "{name}" {shown(stored)}, got {shown(text)}')


def _store(file: Path, text: str, *, mode: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode, encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _stable(value: Any) -> str:
    """The same text for the same value: keys in order, one newline at the end."""
    if isinstance(value, str):
        return f"{value.rstrip()}\n"
    plain = json.loads(text_of(value))
    return f"{json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False)}\n"


def _file_name(name: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "snapshot"
    if plain == name:
        return f"{plain}.txt"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.txt"


def _called(observation: Observation, expectation: Expectation) -> Match:
    options = expectation.options
    count = sum(call.name == expectation.value for call in observation.tool_calls)
    times, low, high = options.get("times"), options.get("min"), options.get("max")
    if times is not None:
        low = high = times
    low = 1 if low is None and high is None else low or 0
    held = count >= low and (high is None or count <= high)
    wanted = _times(low) if low == high else f"at least {_times(low)}"
    if high is not None and low != high:
        wanted = f"{low} to {high} times"
    return Match(float(held), f"expected {expectation.value} {wanted}, got {_calls(count)} of it")


def _not_called(observation: Observation, expectation: Expectation) -> Match:
    called = [call.name for call in observation.tool_calls if call.name in expectation.value]
    return Match(float(not called), f"expected no call of {shown(called or expectation.value)}")


def _called_in_order(observation: Observation, expectation: Expectation) -> Match:
    names = [call.name for call in observation.tool_calls]
    # An iterator that is searched only goes forward: each search begins where the last ended.
    ahead = iter(names)
    held = all(wanted in ahead for wanted in expectation.value)
    return Match(
        float(held), f"expected calls in the order {shown(expectation.value)}, got {shown(names)}"
    )


def _called_with(observation: Observation, expectation: Expectation) -> Match:
    wanted, exact = expectation.options["arguments"], bool(expectation.options.get("exact"))
    calls = [call.arguments for call in observation.tool_calls if call.name == expectation.value]
    held = any(_has_arguments(arguments, wanted, exact) for arguments in calls)
    return Match(
        float(held), f"expected {expectation.value} with {shown(wanted)}, got {shown(calls)}"
    )


def _has_arguments(arguments: Any, wanted: Mapping[str, Any], exact: bool) -> bool:
    if not isinstance(arguments, Mapping):
        return False
    if exact and arguments.keys() != wanted.keys():
        return False
    return all(key in arguments and same(arguments[key], wanted[key]) for key in wanted)


CALL_MATCHERS: dict[str, Callable[[Observation, Expectation], Match]] = {
    "called": _called,
    "not_called": _not_called,
    "called_in_order": _called_in_order,
    "called_with": _called_with,
}
"""Matchers that look at all tool calls, whatever the target."""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"
