"""The models of `expect:`: a target and a matcher, in the short form and the long."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import AliasChoices, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from passhat.records.task import TARGETS
from passhat.suite.fields import Argv, Count, Seconds, Share, Short, Strict, Texts
from passhat.suite.problems import did_you_mean


def _spelled(*names: str, **options: Any) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names), **options)


class NumberModel(Strict):
    """A number, within a tolerance."""

    value: float | str
    """What is expected; a text is read as a number (a dataset's column)."""
    tolerance: float = Field(default=1e-9, ge=0)
    """How far off it may be."""
    relative: bool = False
    """Whether the tolerance is a share of the expected value."""


class BoundsModel(Strict):
    """A least and a most; either may be left out."""

    min: float | None = None
    """The least, included."""
    max: float | None = None
    """The most, included."""

    @model_validator(mode="after")
    def _ordered(self) -> BoundsModel:
        if self.min is None and self.max is None:
            raise PydanticCustomError("bounds", "needs min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise PydanticCustomError("bounds", "has min above max")
        return self


class LengthModel(Strict):
    """A length: exact, or between a least and a most."""

    exact: int | None = Field(default=None, ge=0)
    """The exact length."""
    min: int | None = Field(default=None, ge=0)
    """The least, included."""
    max: int | None = Field(default=None, ge=0)
    """The most, included."""


class CalledModel(Strict):
    """A tool that was called, and how often."""

    tool: str
    """The tool's name."""
    times: int | None = Field(default=None, ge=0)
    """Exactly so often."""
    min: int | None = Field(default=None, ge=0)
    """At least so often (1 unless `times` or `max` is given)."""
    max: int | None = Field(default=None, ge=0)
    """At most so often."""


class CalledWithModel(Strict):
    """A tool that was called with these arguments; others may be there too."""

    tool: str
    """The tool's name."""
    arguments: dict[str, Any] = Field(
        default_factory=dict, validation_alias=AliasChoices("arguments", "args")
    )
    """Arguments and their values."""
    exact: bool = False
    """Whether no other argument may be there."""


class CommandCheckModel(Strict):
    """A program that looks at the attempt: exit code 0 is a pass, 1 a failure."""

    argv: Argv
    """The program and its arguments; it reads the observation as JSON on its standard input."""
    timeout: Seconds = 60.0
    """How long it may take."""


class JudgeCheckModel(Strict):
    """A rubric, read by a model that answers with a score from 0 to 1."""

    rubric: str
    """What the judge looks for."""
    model: str | None = None
    """The judging model; the suite's `judge:` where it is left out."""
    threshold: Share = Field(default=0.7, validation_alias=AliasChoices("threshold", "min_score"))
    """The least mean score that earns the credit."""
    repeats: Count | None = None
    """How often the judge is asked; the suite's `judge.repeats` where it is left out."""
    transcript: bool = False
    """Whether the judge also reads the whole transcript, tool calls included."""


class MatcherModel(Strict):
    """What is demanded of the target: exactly one of these."""

    exact: Any = None
    """Equal to this value."""
    iexact: str | None = None
    """Equal to this text, whatever the case and the space around it."""
    contains: Any = None
    """The text contains this one; a list has this member."""
    icontains: str | None = None
    """The text contains this one, whatever the case."""
    contains_all: Texts | None = _spelled("contains-all", "contains_all")
    """Contains every one of these."""
    contains_any: Texts | None = _spelled("contains-any", "contains_any")
    """Contains at least one of these."""
    regex: str | None = None
    """A Python regular expression is found in the text."""
    one_of: list[Any] | None = _spelled("one_of", "one-of")
    """Equal to one of these values."""
    number: Annotated[NumberModel, Short("value")] | None = None
    """A number (the last one in a text), within a tolerance."""
    range: BoundsModel | None = None
    """A number between a least and a most."""
    json_schema: dict[str, Any] | bool | None = _spelled("json-schema", "json_schema", "schema")
    """The value (or the JSON in the text) is valid under this JSON Schema."""
    length: Annotated[LengthModel, Short("exact")] | None = None
    """The length of the text or list."""
    exists: bool | None = None
    """Whether the target is there at all."""
    called: Annotated[CalledModel, Short("tool")] | None = None
    """A tool was called."""
    not_called: Texts | None = _spelled("not_called", "not-called")
    """None of these tools was called."""
    called_in_order: Texts | None = _spelled("called_in_order", "called-in-order")
    """These tools were called in this order; others may come between."""
    called_with: CalledWithModel | None = _spelled("called_with", "called-with")
    """A tool was called with these arguments."""
    snapshot: str | None = None
    """Equal to the text stored under this name; stored the first time."""
    python: str | None = Field(default=None, pattern=r"^[\w.]+:[\w.]+$")
    """A function `module:name` that gets the value and the observation."""
    command: Annotated[CommandCheckModel, Short("argv")] | None = None
    """A program, by its exit code."""
    judge: Annotated[JudgeCheckModel, Short("rubric")] | None = _spelled(
        "judge", "llm-judge", "llm_judge", "rubric"
    )
    """A rubric, read by a model."""
    negated: MatcherModel | None = _spelled("not")
    """The matcher inside must not hold."""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise PydanticCustomError(
                "regex", "is no pattern: {why}", {"why": str(error)}
            ) from None
        return value

    @field_validator("json_schema")
    @classmethod
    def _is_schema(cls, value: Any) -> Any:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        try:
            Draft202012Validator.check_schema(value)
        except SchemaError as error:
            message = "is no JSON Schema: {why}"
            raise PydanticCustomError("json_schema", message, {"why": error.message}) from None
        return value

    @model_validator(mode="after")
    def _one_matcher(self) -> Self:
        _demand_one(self.written())
        return self

    def written(self) -> dict[str, Any]:
        """The matchers that were written, `exact: null` among them."""
        return {name: getattr(self, name) for name in MATCHERS if name in self.model_fields_set}


class ExpectModel(MatcherModel):
    """One expectation: `target` and a matcher, beside it or under `matcher:`."""

    target: str = "answer"
    """A dotted path: answer, tool_calls[0].arguments.city, tokens.total, cost, files."""
    matcher: MatcherModel | None = None
    """The matcher, in the long form."""
    weight: float = Field(default=1.0, gt=0)
    """Its share of the credit."""
    message: str | None = None
    """What to say when it does not hold."""

    @field_validator("target")
    @classmethod
    def _is_target(cls, value: str) -> str:
        root = re.split(r"[.\[]", value.removeprefix("conversation."), maxsplit=1)[0]
        if root not in TARGETS:
            hint = did_you_mean(root, TARGETS)
            raise PydanticCustomError("target", "is no target. {hint}", {"hint": hint})
        return value

    @model_validator(mode="after")
    def _one_matcher(self) -> Self:
        _demand_one(self.written() | (self.matcher.written() if self.matcher else {}))
        return self


MATCHERS = tuple(MatcherModel.model_fields)
NULLABLE = ("exact", "contains")


def _demand_one(written: dict[str, Any]) -> None:
    if len(written) != 1:
        count = ", ".join(written) if written else "none"
        message = "needs exactly one matcher, got {count}"
        raise PydanticCustomError("matcher", message, {"count": count})
    (name,) = written
    if written[name] is None and name not in NULLABLE:
        raise PydanticCustomError("matcher", "{name} needs a value", {"name": name})
