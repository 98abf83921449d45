"""An observation held against everything that was expected of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from passhat.errors import GraderError
from passhat.fast_dataclass import dataclass
from passhat.records import CheckResult, Expectation, Grade, Observation
from passhat.runner.graders import patterns
from passhat.runner.graders.calls import CALL_MATCHERS
from passhat.runner.graders.judging import Ask, match_rubric
from passhat.runner.graders.matches import VALUE_MATCHERS, Match, text_of
from passhat.runner.graders.programs import match_command, match_function
from passhat.runner.graders.snapshots import match_snapshot
from passhat.runner.graders.targets import find

ROUNDING = 1e-9
"""Weights such as 0.1 do not add up to 1 exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What graders need: the suite's directory, the judge, and how snapshots are written.

    `clean` takes secrets out of what is written to disk. `asked` is what the agent was asked, and
    `transcript` gives all that was said: a judge is shown both.
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
    """How much of what was expected was done. A grader that breaks raises GraderError.

    Where nothing is expected, the score is what the system reported of itself, or else 1.

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
        return match_snapshot(
            value,
            str(expectation.value),
            directory=grading.directory,
            write=grading.write_snapshots,
            update=grading.update_snapshots,
            clean=grading.clean,
        )
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
