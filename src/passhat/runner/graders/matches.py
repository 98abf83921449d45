"""Matchers of a value: pure functions from what is there and what is expected to a Match."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import GraderError
from passhat.records import Expectation
from passhat.runner.graders import patterns
from passhat.runner.value_paths import MISSING

MAX_SHOWN = 160

NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")
FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a value is as expected (its share of the credit), and a sentence about it."""

    score: float
    message: str
    disagreement: float | None = None


Matcher = Callable[[Any, Expectation], Match]


def shown(value: Any) -> str:
    """A value for a message: on one line, and short."""
    text = repr(value) if isinstance(value, str) else text_of(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def text_of(value: Any) -> str:
    """A value as the text that patterns are searched in: texts as they are, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is MISSING:
        return "nothing"
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=_plain)


def same(left: Any, right: Any) -> bool:
    """Equality as in JSON: true is not 1, and 1 is 1.0.

    >>> same({"a": [1, True]}, {"a": (1.0, True)}), same(True, 1)
    (True, False)
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def number_in(value: Any) -> float | None:
    """A number, or the last one in a text.

    >>> number_in("from 3 to 1,250.5 dollars"), number_in("none"), number_in(True)
    (1250.5, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:  # a whole number of more than 308 digits
            return math.inf if value > 0 else -math.inf
    found = NUMBER.findall(value) if isinstance(value, str) else []
    digits = [text for text in found if any(map(str.isdigit, text))]
    return float(digits[-1].replace(",", "")) if digits else None


def _exact(value: Any, expectation: Expectation) -> Match:
    expected = expectation.value
    # `exact: null` also fits a part that is not there.
    found = None if value is MISSING else value
    return _match(same(found, expected), f"exactly {shown(expected)}", value)


def _iexact(value: Any, expectation: Expectation) -> Match:
    expected = str(expectation.value)
    folded = text_of(value).strip().casefold()
    return _match(folded == expected.strip().casefold(), f"{shown(expected)}, any case", value)


def _contains(value: Any, expectation: Expectation) -> Match:
    return _match(_holds(value, expectation.value), f"to contain {shown(expectation.value)}", value)


def _icontains(value: Any, expectation: Expectation) -> Match:
    expected = str(expectation.value)
    inside = expected.casefold() in text_of(value).casefold()
    return _match(inside, f"to contain {shown(expected)}, any case", value)


def _contains_all(value: Any, expectation: Expectation) -> Match:
    absent = [item for item in expectation.value if not _holds(value, item)]
    return _match(not absent, f"to contain {', '.join(map(shown, absent))}", value)


def _contains_any(value: Any, expectation: Expectation) -> Match:
    inside = any(_holds(value, item) for item in expectation.value)
    return _match(inside, f"to contain one of {shown(list(expectation.value))}", value)


def _regex(value: Any, expectation: Expectation) -> Match:
    found = patterns.search(expectation.value, text_of(value))
    return _match(found, f"to match /{expectation.value}/", value)


def _one_of(value: Any, expectation: Expectation) -> Match:
    among = any(same(value, item) for item in expectation.value)
    return _match(among, f"one of {shown(list(expectation.value))}", value)


def _number(value: Any, expectation: Expectation) -> Match:
    expected, found = number_in(expectation.value), number_in(value)
    if expected is None or not math.isfinite(expected):
        raise GraderError(f"the matcher `number` needs a number, got {shown(expectation.value)}")
    tolerance = float(expectation.options.get("tolerance", 1e-9))
    relative = bool(expectation.options.get("relative"))
    margin = tolerance * abs(expected) if relative else tolerance
    # Rounding errors do not count: 0.1 + 0.2 is 0.3 with a tolerance of 0.
    slack = 4 * math.ulp(expected)
    near = found is not None and abs(found - expected) <= margin + slack
    return _match(near, f"{expected:g} within {margin:g}", value)


def _range(value: Any, expectation: Expectation) -> Match:
    low, high = expectation.options.get("min"), expectation.options.get("max")
    found = number_in(value)
    return _match(_between(found, low, high), _bounds(low, high), value)


def _length(value: Any, expectation: Expectation) -> Match:
    options = expectation.options
    exact, low, high = options.get("exact"), options.get("min"), options.get("max")
    size = len(value) if isinstance(value, str | list | tuple | Mapping) else None
    wanted = f"{exact}" if exact is not None else _bounds(low, high)
    if exact is not None:
        low = high = exact
    held = _between(size, low, high)
    return _match(held, f"a length of {wanted}", value if size is None else size)


def _exists(value: Any, expectation: Expectation) -> Match:
    there = value is not MISSING
    wanted = "to be there" if expectation.value else "not to be there"
    return _match(there == bool(expectation.value), wanted, value)


def _json_schema(value: Any, expectation: Expectation) -> Match:
    from referencing.exceptions import Unresolvable

    found = json_in(value) if isinstance(value, str) else _plain_tree(value)
    if found is MISSING:
        return Match(0.0, f"expected JSON, got {shown(value)}")
    try:
        error = next(_validator(expectation.value).iter_errors(found), None)
    except (Unresolvable, RecursionError, re.error) as broken:
        raise GraderError(f"json-schema cannot be applied: {broken}") from None
    if error is None:
        return Match(1.0, "is valid under the schema")
    return Match(0.0, f"{error.json_path}: {error.message[:MAX_SHOWN]}")


def _validator(schema: Any) -> Any:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend
    from referencing import Registry

    def bounded(_: Any, pattern: str, text: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(text, str) and not patterns.search(pattern, text):
            yield ValidationError(f"{shown(text)} does not match {pattern!r}")

    # An empty registry: a reference to elsewhere is never fetched.
    registry: Registry[Any] = Registry()
    return extend(Draft202012Validator, {"pattern": bounded})(schema, registry=registry)


def json_in(text: str) -> Any:
    """The JSON in a text: the whole of it, a code block, or what its outer brackets enclose.

    >>> json_in('Here you are: {"a": 1}.'), json_in("no")
    ({'a': 1}, nothing)
    """
    for candidate in (text, *FENCE.findall(text), *_bracketed(text)):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return MISSING


def _bracketed(text: str) -> list[str]:
    spans = [(text.find(opening), text.rfind(closing)) for opening, closing in ("{}", "[]")]
    return [text[start : end + 1] for start, end in sorted(spans) if 0 <= start < end]


def _holds(value: Any, item: Any) -> bool:
    if isinstance(value, list | tuple) and any(same(member, item) for member in value):
        return True
    if value is MISSING or (isinstance(value, list | tuple) and _flat(value)):
        return False
    return (item if isinstance(item, str) else text_of(item)) in text_of(value)


def _flat(values: list[Any] | tuple[Any, ...]) -> bool:
    return all(isinstance(value, str | int | float | None) for value in values)


def _match(held: bool, wanted: str, value: Any) -> Match:
    return Match(1.0 if held else 0.0, f"expected {wanted}, got {shown(value)}")


def _between(value: float | None, low: float | None, high: float | None) -> bool:
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _bounds(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"


def _plain(value: Any) -> Any:
    """What JSON has no form for: records by their fields, anything else as text."""
    slots = getattr(type(value), "__slots__", None)
    return {name: getattr(value, name) for name in slots} if slots else str(value)


def _plain_tree(value: Any) -> Any:
    return json.loads(text_of(value)) if value is not MISSING else MISSING


VALUE_MATCHERS: dict[str, Matcher] = {
    "exact": _exact,
    "iexact": _iexact,
    "contains": _contains,
    "icontains": _icontains,
    "contains-all": _contains_all,
    "contains-any": _contains_any,
    "regex": _regex,
    "one_of": _one_of,
    "number": _number,
    "range": _range,
    "length": _length,
    "exists": _exists,
    "json-schema": _json_schema,
}
"""Matchers that look at the value of the target, by the name the suite file uses."""
