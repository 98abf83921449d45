"""Kinds of field that a suite file writes in more than one way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
SHORT_MARKER = "x-short-form-of-key"
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
BYTES = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
"""The power of 1000, or of 1024 before an i, that a unit of memory stands for."""

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Strict(BaseModel):
    """A part of the suite file: no key that is not known, no type that is not meant."""

    # Deferred: the whole suite is built into one validator when the first file is read. Parts that
    # are left out are made by model_construct, for a call would build a validator for each.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class Short:
    """A part that may be written as the value of one of its keys alone: `number: 42`."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._expand, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        # What the key is, is known only when all is defined: the marker is replaced then.
        return {"anyOf": [{SHORT_MARKER: self.key}, handler(schema)]}

    def _expand(self, value: Any) -> Any:
        return value if isinstance(value, (dict, BaseModel)) else {self.key: value}


def _either(parse: Callable[[Any], Any], *schemas: dict[str, Any]) -> tuple[Any, Any]:
    return BeforeValidator(parse), WithJsonSchema({"anyOf": list(schemas)})


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = DURATION.fullmatch(value.strip())
    if match is None:
        raise PydanticCustomError("duration", "must be seconds, or a text such as 500ms, 30s, 2m")
    return float(match[1]) * SECONDS[match[2]]


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = SIZE.fullmatch(value.strip())
    if match is None:
        raise PydanticCustomError("size", "must be bytes, or a text such as 200MB, 1.5GB, 2GiB")
    unit = 1024 if "i" in match[2] else 1000
    return round(float(match[1]) * unit ** BYTES[match[2][0]])


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        message = "cannot be split into words: {why}"
        raise PydanticCustomError("argv", message, {"why": str(error)}) from None


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _day(value: Any) -> Any:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise PydanticCustomError("day", "must be a date such as 2027-01-31") from None


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}

Seconds = Annotated[
    float,
    Field(gt=0),
    *_either(
        _seconds,
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(ms|s|m|h)\s*$"},
    ),
]
"""Seconds, or a text such as 500ms, 30s, 2m."""

Bytes = Annotated[
    int,
    Field(ge=1),
    *_either(
        _bytes,
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(kB|[MGT]B|[KMGT]iB)\s*$"},
    ),
]
"""Bytes, or a text such as 200MB, 1.5GB, 2GiB."""

Argv = Annotated[list[str], Field(min_length=1), *_either(_words, _TEXT, _TEXTS)]
"""A command and its arguments, as a list or as one text."""

Texts = Annotated[list[str], *_either(_listed, _TEXT, _TEXTS)]
"""One text or several."""

Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A date such as 2027-01-31."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
