"""The rules for arguments that every layer checks alike, and the default values."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral
from pathlib import Path
from types import UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
)
from warnings import warn

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import one_of_rule, typo_hint

Word = TypeVar("Word")
Given = ParamSpec("Given")
Answer = TypeVar("Answer")

BEYOND = 2**63
"""Whole numbers are smaller: a store and numpy hold 64 bits."""

NAMES = "must be a name or a list of names"
DEMANDS = "must be a demand such as 'pass^3 >= 0.8', or a list of them"


def names(argument: str, value: object, rule: str = NAMES) -> tuple[str, ...]:
    """Names as a tuple: a text is one name, None is no name.

    >>> names("only", "o3"), names("only", ["o3", "opus"]), names("only", None)
    (('o3',), ('o3', 'opus'), ())
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable):
        given = tuple(value)
        if all(isinstance(name, str) for name in given):
            return given
    raise ArgumentError(argument, rule, value)


def one_name(argument: str, value: object) -> str | None:
    """The one name that was given, alone or in a list; None if there is none.

    >>> one_name("only", ["o3"]), one_name("only", None)
    ('o3', None)
    """
    given = names(argument, value)
    if len(given) > 1:
        raise ArgumentError(argument, "must be one name", given)
    return given[0] if given else None


def whole_number(argument: str, value: object, *, least: int = 1) -> int:
    """`value` as an int, if it is a whole number of 64 bits that is at least `least`.

    >>> whole_number("runs", 3.0)
    3
    """
    number = _whole(value)
    if number is None or not least <= number < BEYOND:
        upper = " and < 2**63" if number is not None and number >= BEYOND else ""
        raise ArgumentError(argument, f"must be a whole number >= {least}{upper}", value)
    return number


def finite_number(argument: str, value: object) -> float:
    """`value` as a float, if it is a finite number."""
    number = _number(value)
    if number is None:
        raise ArgumentError(argument, "must be a finite number", value)
    return number


def amount(argument: str, value: object) -> float:
    """A finite number above 0."""
    number = _number(value)
    if number is None or not number > 0:
        raise ArgumentError(argument, "must be a number above 0", value)
    return number


def probability(argument: str, value: object, *, open_ends: bool = False) -> float:
    """`value` as a float, if it lies in [0, 1] (or strictly inside, with `open_ends`)."""
    number = finite_number(argument, value)
    inside = 0 < number < 1 if open_ends else 0 <= number <= 1
    if not inside:
        rule = "must lie strictly between 0 and 1" if open_ends else "must lie in [0, 1]"
        raise ArgumentError(argument, rule, value)
    return number


def flag(argument: str, value: object) -> bool:
    """True or False; a text such as "no" would count as true."""
    if value is True or value is False:
        return value
    raise ArgumentError(argument, "must be True or False", value)


def word(argument: str, value: Word, known: Collection[str]) -> Word:
    """One of the known words.

    >>> word("faults", "bth", ("both", "only"))
    Traceback (most recent call last):
    passhat.errors.ArgumentError: faults must be one of both, only (did you mean both?), got 'bth'
    """
    if isinstance(value, str) and value in known:
        return value
    raise ArgumentError(argument, one_of_rule(str(value), list(known)), value)


def parse_levels(argument: str, given: object) -> dict[str, str]:
    """Levels by their factors, from `user=plain,wording=as it is`, such words or a mapping.

    >>> parse_levels("at", "user=terse, wording=a, b")
    {'user': 'terse', 'wording': 'a, b'}
    """
    words = re.split(r",(?=[^,=]+=)", given) if isinstance(given, str) else given
    if isinstance(words, Mapping):
        words = [f"{factor}={level}" for factor, level in words.items()]
    elif not isinstance(words, Sequence):
        words = [""]
    pairs = [str(word).partition("=")[::2] for word in words]
    levels = {factor.strip(): level.strip() for factor, level in pairs}
    if not all(factor and level for factor, level in levels.items()) or len(levels) < len(pairs):
        raise ArgumentError(argument, 'must name levels of factors, such as "user=plain"', given)
    return levels


def path(argument: str, value: object, what: str = "a path") -> str | Path:
    """A path, or an address as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike) and isinstance(text := os.fspath(value), str):
        return Path(text)
    raise ArgumentError(argument, f"must be {what}", value)


def instance(argument: str, value: object, kind: type | UnionType, rule: str) -> None:
    """Refuse anything but an object of a class, or of one of several.

    >>> instance("world", 3, dict, "must be SimulationModel(...)")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: world must be SimulationModel(...), got 3
    """
    if not isinstance(value, kind):
        raise ArgumentError(argument, rule, value)


def several(value: object, *alone: type) -> list[Any]:
    """A list as it is, and one of the things that may come `alone` as a list of one.

    >>> several("pass^3 >= 0.8", str), several(["a", "b"], str), several(3)
    (['pass^3 >= 0.8'], ['a', 'b'], [3])
    """
    return list(value) if isinstance(value, Iterable) and not isinstance(value, alone) else [value]


def refuse_unknown(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse keyword arguments that a function does not have, as Python does, with a hint.

    >>> refuse_unknown("run", ["run"], ["runs", "seed"])
    Traceback (most recent call last):
    TypeError: run() got an unexpected keyword argument 'run' (did you mean runs?)
    """
    for name in given:
        if name not in known:
            hint = typo_hint(name, known)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def _whole(value: object) -> int | None:
    """A whole number, also one written as a float; None for anything else."""
    if type(value) is int:  # nearly all are: asking for a protocol takes fifty times as long
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # arrays have an index in name only
            return operator.index(value)  # as a float, large neighbours would be one
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None


def _number(value: object) -> float | None:
    """A finite float; None for anything else."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, bool | str) or not isinstance(value, SupportsFloat):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


# Default values, each stated here and nowhere else.

CONFIDENCE = 0.95
"""The confidence of intervals and verdicts."""

MARGIN = 0.05
"""How much worse than a baseline the mean score may be."""

SEED = 0
"""The seed of random draws, so that the same input gives the same bytes."""

STORE = ".passhat/history.db"
"""The history store, in the folder where a command is called."""

STORE_VARIABLE = "PASSHAT_STORE"
"""Names the store for every command. It may hold a password, so no file has it."""

KS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
"""The k of pass^k and pass@k in a report: those that the number of runs allows."""

COMPARED_KS = (1, 2, 3, 4, 5)
"""The k of a comparison, as far as runs allow."""

PROFILE_KS = (1, 2, 3, 4)
"""The k of a profile among other agents."""

HEADLINE_K = 5
"""The largest k of a headline and of a trend."""

DEPENDABLE = 0.9
"""The line that a headline draws: k successes in a row at least nine times in ten."""


# How results are analysed. An option is declared here, once: as a keyword argument with its type,
# and as a field with its default, its rule, its flag and its help. Functions that analyse results
# take it then, the commands have the flag, and reports record it. What it does to the trials is in
# `analysis/reports/evidence.py`.

ErrorPolicy = Literal["fail", "exclude"]


class CountingTerms(TypedDict, total=False):
    """What reports, comparisons and gates take alike."""

    errors: ErrorPolicy
    seed: int


class AnalysisTerms(CountingTerms, total=False):
    """And the confidence of intervals, which a gate states for itself."""

    confidence: float


class ReportTerms(AnalysisTerms, total=False):
    """And the k of pass@k and pass^k."""

    ks: int | Sequence[int] | None


def ascending(name: str, values: object) -> tuple[int, ...]:
    """Whole numbers >= 1, each once and in order; a single one is a list of one.

    >>> ascending("ks", [4, 1, 4]), ascending("ks", 3)
    ((1, 4), (3,))
    """
    if isinstance(values, Integral):
        values = (values,)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError(name, "must be whole numbers such as (1, 2, 4)", values)
    return tuple(sorted({whole_number(name, value) for value in values}))


def confidence_level(value: object) -> float:
    """A confidence such as 0.95."""
    level = probability("confidence", value, open_ends=True)
    if level > _SUREST:
        raise ArgumentError("confidence", f"must not exceed {_SUREST}", value)
    return level


# Beyond this confidence the quantiles of many distributions are infinite.
_SUREST = 1 - 1e-12


def error_policy(errors: Any) -> ErrorPolicy:
    """`errors`, if it says what an errored trial counts as.

    >>> error_policy("ignore")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: errors must be one of 'fail', 'exclude', got 'ignore'
    """
    if errors not in (known := get_args(ErrorPolicy)):
        raise ArgumentError("errors", f"must be one of {', '.join(map(repr, known))}", errors)
    return "fail" if errors == "fail" else "exclude"


def _option(default: Any, flag: str, help_: str, rule: Callable[[Any], Any]) -> Any:
    return field(default=default, metadata={"flag": flag, "help": help_, "rule": rule})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the caller chose: enough, with the input, to make the same report again."""

    ks: tuple[int, ...] | None = _option(
        None,
        "--k",
        "The k of pass@k and pass^k, such as 1,2,4.",
        lambda ks: None if ks is None else ascending("ks", ks),
    )
    confidence: float = _option(
        CONFIDENCE, "--confidence", "Confidence level of all intervals.", confidence_level
    )
    errors: ErrorPolicy = _option(
        "fail", "--errors", "Count errored trials as failures, or leave them out.", error_policy
    )
    bars: Mapping[str, float] | float | None = None
    seed: int = _option(
        SEED,
        "--seed",
        "Seed of all that is random: the same seed gives the same bytes.",
        lambda seed: whole_number("seed", seed, least=0),
    )

    @classmethod
    def checked(
        cls, *, bars: Mapping[str, float] | float | None = None, **terms: Unpack[ReportTerms]
    ) -> ReportOptions:
        """The options of a caller; an error names the one that makes no sense."""
        given: Mapping[str, Any] = terms
        rules = {name: option.metadata["rule"] for name, option in ANALYSIS_OPTIONS.items()}
        return cls(bars=bars, **{name: rules[name](value) for name, value in given.items()})


DEFAULT_OPTIONS = ReportOptions()

ANALYSIS_OPTIONS = {option.name: option for option in fields(ReportOptions) if option.metadata}


SCREEN_WORDS = {"trials": "runs", "until_decided": "until_settled"}
"""Arguments by the words of screens and options, which functions take too."""


def in_screen_words(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Let a function take its arguments by the words of screens too: `trials` for `runs`.

    >>> in_screen_words(lambda *, runs: runs)(trials=5)
    5
    """

    @wraps(function)
    def called(*args: Given.args, **given: Given.kwargs) -> Answer:
        for word, name in SCREEN_WORDS.items():
            if word in given:
                if name in given:
                    raise TypeError(f"{function.__name__}() takes {word} or {name}, not both")
                given[name] = given.pop(word)
        return function(*args, **given)

    return called


def renamed_arguments(
    **names: str,
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Let a function take arguments by the names that they had, for one more release.

    >>> renamed_arguments(size="width")(lambda *, width: width)(width=3)
    3
    """

    def decorate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        @wraps(function)
        def called(*args: Given.args, **given: Given.kwargs) -> Answer:
            for old in names.keys() & given.keys():
                new, name = names[old], function.__name__
                warn(f"{name}({old}=) is {name}({new}=) now", DeprecationWarning, stacklevel=2)
                given[new] = given.pop(old)
            return function(*args, **given)

        return called

    return decorate


def takes(
    terms: type, *, more: bool = False
) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """Show the options in these terms in the signature of a function that takes them as `**terms`.

    Other names are refused, unless the function takes `more`.
    """

    def decorate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        *own, rest = signature(function).parameters.values()
        options = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=ANALYSIS_OPTIONS[name].default)
            for name in ANALYSIS_OPTIONS
            if name in terms.__annotations__
        ]
        shown = [*own, *options, *([rest] if more else [])]

        @wraps(function)
        def checked(*args: Given.args, **given: Given.kwargs) -> Answer:
            if not more:
                refuse_unknown(function.__name__, given, {option.name for option in shown})
            return function(*args, **given)

        checked.__dict__["__signature__"] = signature(function).replace(parameters=shown)
        return checked

    return decorate
