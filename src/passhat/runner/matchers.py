"""Matchers of a value: pure functions from what is there and what is expected to a Match."""

from __future__ import annotations

import functools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, Final

from passhat.dataclass import dataclass
from passhat.errors import GraderError
from passhat.records import Expectation

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
    numbers = NUMBER.findall(value) if isinstance(value, str) else []
    digits = [text for text in numbers if any(map(str.isdigit, text))]
    return float(digits[-1].replace(",", "")) if digits else None


def _exact(value: Any, expectation: Expectation) -> Match:
    expected = expectation.value
    # `exact: null` also fits a part that is not there.
    actual = None if value is MISSING else value
    return _match(same(actual, expected), f"exactly {shown(expected)}", value)


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
    match = search_pattern(expectation.value, text_of(value))
    return _match(match, f"to match /{expectation.value}/", value)


def _one_of(value: Any, expectation: Expectation) -> Match:
    among = any(same(value, item) for item in expectation.value)
    return _match(among, f"one of {shown(list(expectation.value))}", value)


def _number(value: Any, expectation: Expectation) -> Match:
    expected, actual = number_in(expectation.value), number_in(value)
    if expected is None or not math.isfinite(expected):
        raise GraderError(f"the matcher `number` needs a number, got {shown(expectation.value)}")
    tolerance = float(expectation.options.get("tolerance", 1e-9))
    relative = bool(expectation.options.get("relative"))
    margin = tolerance * abs(expected) if relative else tolerance
    # Rounding errors do not count: 0.1 + 0.2 is 0.3 with a tolerance of 0.
    slack = 4 * math.ulp(expected)
    near = actual is not None and abs(actual - expected) <= margin + slack
    return _match(near, f"{expected:g} within {margin:g}", value)


def _range(value: Any, expectation: Expectation) -> Match:
    low, high = expectation.options.get("min"), expectation.options.get("max")
    number = number_in(value)
    return _match(_between(number, low, high), _bounds(low, high), value)


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

    tree = json_in(value) if isinstance(value, str) else _plain_tree(value)
    if tree is MISSING:
        return Match(0.0, f"expected JSON, got {shown(value)}")
    try:
        error = next(_validator(expectation.value).iter_errors(tree), None)
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
        if isinstance(text, str) and not search_pattern(pattern, text):
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


# Regular expressions that cannot hang a run.

MAX_STEPS = 10**8
"""Steps that a search may take by the bound of `may_hang`; a longer one runs in a process of its
own, which can be stopped."""

TIMEOUT = 2.0

ATOMS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
REPEATS = re.compile(r"[*+]|\{\d*,\}|\{\d*,?\d{3,}\}")
NESTED = re.compile(r"\)\??[*+{]")
BOUNDED = re.compile(r"\{(\d{0,2})(?:,(\d{1,2}))?\}")
OPTIONAL = re.compile(r"(?<![*+?}(])\?")
BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")

SEARCH = (
    "import re, sys; pattern, _, text = sys.stdin.buffer.read().decode().partition('\\0'); "
    "sys.exit(0 if re.search(pattern, text) else 1)"
)


def may_hang(pattern: str, text: str) -> bool:
    """Whether a search might backtrack for so long that it would hold up the run.

    r repeats take at most len(text)^(r + 1) steps, unless they are nested or refer back; what may
    be there up to n times multiplies that by n + 1.

    >>> may_hang("(a+)+b", "a" * 30), may_hang("(?i)sacramento", "x" * 10**6)
    (True, False)
    >>> may_hang("a?" * 30 + "a" * 30, "a" * 30)
    True
    """
    hard, repeats, ways = _pattern_shape(pattern)
    return hard or ways * (len(text) + 1) ** (repeats + 1) > MAX_STEPS


def search_pattern(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; a search that does not end is an error of the grader.

    >>> search_pattern("[0-9]+ degrees", "It is 24 degrees.")
    True
    """
    if not may_hang(pattern, text):
        return re.search(pattern, text) is not None
    return _search_apart(pattern, text)


@functools.lru_cache(maxsize=1024)
def _pattern_shape(pattern: str) -> tuple[bool, int, int]:
    """Whether repeats are nested or refer back; how many have no end; in how many ways the rest."""
    bare = ATOMS.sub("x", pattern)
    hard = bool(NESTED.search(bare) or BACK_REFERENCE.search(pattern))
    bounds = (int(most) + 1 for _, most in BOUNDED.findall(bare) if most)
    return hard, len(REPEATS.findall(bare)), prod(bounds) * 2 ** len(OPTIONAL.findall(bare))


def _search_apart(pattern: str, text: str) -> bool:
    """Search in another process, which can be killed: a thread inside `re` cannot."""
    given = f"{pattern}\0{text}".encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCH],
            input=given,
            timeout=TIMEOUT,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"regex {pattern!r} searched {len(text)} characters for more than {TIMEOUT:g} s: "
            "it backtracks too much; avoid repeats inside repeats"
        ) from None
    if done.returncode not in (0, 1):
        raise GraderError(f"regex {pattern!r} broke: {done.stderr.decode(errors='replace')[-200:]}")
    return done.returncode == 0


# Values inside JSON by their dotted path: `choices[0].message.content`.

PART = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]|\[\"([^\"]*)\"\]|\['([^']*)'\]")


class _Missing:
    """The value of a path that leads nowhere."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()


@lru_cache(maxsize=256)
def path_parts(path: str) -> tuple[str | int, ...] | None:
    """The names and indices in a path; None if the text is not a path.

    >>> path_parts("choices[0].message"), path_parts("a..b")
    (('choices', 0, 'message'), None)
    """
    parts: list[str | int] = []
    end = 0
    for match in PART.finditer(path):
        if match.start() != end:
            break
        name, index, double, single = match.groups()
        parts.append(name or double or single or "" if index is None else int(index))
        end = match.end()
    return tuple(parts) if end == len(path) and parts else None


def value_at(value: Any, path: str) -> Any:
    """The value at a path, or MISSING.

    >>> value_at({"choices": [{"text": "hi"}]}, "choices[0].text")
    'hi'
    """
    for part in path_parts(path) or ():
        value = inside(value, part)
    return value


def inside(value: Any, part: str | int) -> Any:
    """One step into a mapping or a list."""
    if isinstance(value, Mapping):
        return value.get(part, value.get(str(part), MISSING))
    if isinstance(value, (list, tuple)):
        if part in ("length", "count"):
            return len(value)
        there = isinstance(part, int) and -len(value) <= part < len(value)
        return value[int(part)] if there else MISSING
    return MISSING
