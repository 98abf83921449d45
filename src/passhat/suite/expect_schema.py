"""Expectations as a suite file writes them: a target and a matcher, in a short or a long form."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from passhat.errors import MissingExtra
from passhat.records.suite import TARGETS, target_root
from passhat.suite.fields import (
    Argv,
    Count,
    CountOrZero,
    FunctionName,
    NotNegative,
    Part,
    Reads,
    Seconds,
    Share,
    Short,
    Spelled,
    Texts,
    Weight,
)
from passhat.suite.problems import did_you_mean

NULLABLE = ("exact", "contains")
"""Matchers whose value may be null."""


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return value


def _json_schema(value: Any) -> Any:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
    except ModuleNotFoundError:
        raise MissingExtra("a JSON Schema in a suite", "run") from None
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
    return value


def _target(value: str) -> str:
    root = target_root(value)
    if root not in TARGETS:
        raise ValueError(f"is not a target. {did_you_mean(root, TARGETS)}")
    return value


Pattern = Annotated[str, Reads(_pattern)]
JsonSchema = Annotated[Mapping[str, Any] | bool, Reads(_json_schema, of=dict | bool)]
Target = Annotated[str, Reads(_target)]


class NumberPart(Part):
    """A number, within a tolerance."""

    value: float | str
    """What is expected; a text is read as a number (a dataset's column)."""
    tolerance: NotNegative = 1e-9
    """How far off it may be."""
    relative: bool = False
    """Whether the tolerance is a share of the expected value."""

    def broken_rule(self) -> str | None:
        # Every number is within an endless distance, and none is near an endless value.
        endless = math.inf in (self.tolerance, self.value) or self.value == -math.inf
        return "must be finite" if endless else None


class BoundsPart(Part):
    """A least and a most; either may be left out."""

    min: float | None = None
    """The least, included."""
    max: float | None = None
    """The most, included."""

    def broken_rule(self) -> str | None:
        if self.min is None and self.max is None:
            return "needs min, max or both"
        return _min_above_max(self.min, self.max)


class LengthPart(Part):
    """A length: exact, or between a least and a most."""

    exact: CountOrZero | None = None
    """The exact length."""
    min: CountOrZero | None = None
    """The least, included."""
    max: CountOrZero | None = None
    """The most, included."""

    def broken_rule(self) -> str | None:
        if self.exact is None and self.min is None and self.max is None:
            return "needs exact, min or max"
        return _min_above_max(self.min, self.max)


class CalledPart(Part):
    """A tool that was called, and how often."""

    tool: str
    """The tool's name."""
    times: CountOrZero | None = None
    """Exactly this many times."""
    min: CountOrZero | None = None
    """At least this many times (1 unless `times` or `max` is given)."""
    max: CountOrZero | None = None
    """At most this many times."""

    def broken_rule(self) -> str | None:
        return _min_above_max(self.min, self.max)


class CalledWithPart(Part):
    """A tool that was called with these arguments; others may be there too."""

    tool: str
    """The tool's name."""
    arguments: Annotated[Mapping[str, Any], Spelled("arguments", "args")] = {}
    """Arguments and their values."""
    exact: bool = False
    """Whether no other argument may be there."""


class CommandCheckPart(Part):
    """A program that looks at the attempt: exit code 0 is a pass, 1 a failure."""

    argv: Argv
    """The program and its arguments; it reads the observation as JSON on its standard input."""
    timeout: Seconds = 60.0
    """How long it may take."""


class JudgeCheckPart(Part):
    """A rubric, read by a model that answers with a score from 0 to 1."""

    rubric: str
    """What the judge looks for."""
    model: str | None = None
    """The judging model; by default that of the suite's `judge:`."""
    threshold: Annotated[Share, Spelled("threshold", "min_score")] = 0.7
    """The least mean score that earns the credit."""
    repeats: Count | None = None
    """How often the judge reads each answer; by default the suite's `judge.repeats`."""
    transcript: bool = False
    """Whether the judge also reads the whole transcript, tool calls included."""


class MatcherPart(Part):
    """What must be true of the target: exactly one of these."""

    exact: Any = None
    """Equal to this value."""
    iexact: str | None = None
    """Equal to this text, whatever the case and the space around it."""
    contains: Any = None
    """The text contains this one; a list has this member."""
    icontains: str | None = None
    """The text contains this one, whatever the case."""
    contains_all: Annotated[Texts | None, Spelled("contains-all", "contains_all")] = None
    """Contains every one of these."""
    contains_any: Annotated[Texts | None, Spelled("contains-any", "contains_any")] = None
    """Contains at least one of these."""
    regex: Pattern | None = None
    """A Python regular expression is found in the text."""
    one_of: Annotated[Sequence[Any] | None, Spelled("one_of", "one-of")] = None
    """Equal to one of these values."""
    number: Annotated[NumberPart, Short("value")] | None = None
    """A number (the last one in a text), within a tolerance."""
    range: BoundsPart | None = None
    """A number between a least and a most."""
    json_schema: Annotated[JsonSchema | None, Spelled("json-schema", "json_schema", "schema")] = (
        None
    )
    """The value (or the JSON in the text) is valid under this JSON Schema."""
    length: Annotated[LengthPart, Short("exact")] | None = None
    """The length of the text or list."""
    exists: bool | None = None
    """Whether the target exists at all."""
    called: Annotated[CalledPart, Short("tool")] | None = None
    """A tool was called."""
    not_called: Annotated[Texts | None, Spelled("not_called", "not-called")] = None
    """None of these tools was called."""
    called_in_order: Annotated[Texts | None, Spelled("called_in_order", "called-in-order")] = None
    """These tools were called in this order; others may come between."""
    called_with: Annotated[CalledWithPart | None, Spelled("called_with", "called-with")] = None
    """A tool was called with these arguments."""
    snapshot: str | None = None
    """Equal to the text stored under this name; stored the first time."""
    python: FunctionName | None = None
    """A function `module:name` that gets the value and the observation."""
    command: Annotated[CommandCheckPart, Short("argv")] | None = None
    """A program, by its exit code."""
    judge: Annotated[
        Annotated[JudgeCheckPart, Short("rubric")] | None,
        Spelled("judge", "llm-judge", "llm_judge", "rubric"),
    ] = None
    """A rubric, read by a model."""
    negated: Annotated[MatcherPart | None, Spelled("not")] = None
    """The matcher inside must not hold."""

    def broken_rule(self) -> str | None:
        return _not_one(self.matchers())

    def matchers(self) -> dict[str, Any]:
        """The matchers that were written, `exact: null` among them."""
        return {name: value for name, value in vars(self).items() if name in MATCHERS}


class ExpectPart(MatcherPart):
    """One expectation: `target` and a matcher, beside it or under `matcher:`."""

    target: Target = "answer"
    """A dotted path: answer, tool_calls[0].arguments.city, tokens.total, cost, files."""
    matcher: MatcherPart | None = None
    """The matcher, in the long form."""
    weight: Weight = 1.0
    """Its share of the credit."""
    message: str | None = None
    """What to say when it does not hold."""

    def broken_rule(self) -> str | None:
        return _not_one(self.matchers() | (self.matcher.matchers() if self.matcher else {}))


MATCHERS = tuple(MatcherPart.field_types())


def _min_above_max(low: float | None, high: float | None) -> str | None:
    crossed = low is not None and high is not None and low > high
    return "has min above max" if crossed else None


def _not_one(written: Mapping[str, Any]) -> str | None:
    if len(written) != 1:
        return f"needs exactly one matcher, got {', '.join(written) or 'none'}"
    ((name, value),) = written.items()
    written_as = MatcherPart.spellings()[name][0]
    return f"{written_as} needs a value" if value is None and name not in NULLABLE else None
