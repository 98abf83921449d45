"""Score values of Inspect AI as numbers, by Inspect's own reading of them."""

from __future__ import annotations

import math
from typing import Any

import msgspec

WORDS = {
    **dict.fromkeys(("c", "yes", "true"), 1.0),
    "p": 0.5,
    **dict.fromkeys(("i", "n", "no", "false"), 0.0),
}
"""Inspect's own reading of score values: correct, partial, incorrect, no answer."""


class Score(msgspec.Struct, gc=False):
    """The score that a scorer gave a sample."""

    value: Any = None


def score_value(score: Score | None, part: str | None = None) -> float | None:
    """Inspect's value_to_float, of one part of a score of several; None for what was not scored.

    >>> score_value(Score("C")), score_value(Score({"tone": 0.5}), "tone")
    (1.0, 0.5)
    >>> score_value(Score("nan")), score_value(Score("0.25"))
    (None, 0.25)
    """
    value = _part_of(score, part)
    if isinstance(value, str) and (word := value.strip().lower()) in WORDS:
        return WORDS[word]
    number = _number(value)
    return None if number is None or math.isnan(number) else number


def is_grade(score: Score, part: str | None = None) -> bool:
    """Whether a score is a grade, a number, or nothing at all.

    >>> is_grade(Score("C")), is_grade(Score(None)), is_grade(Score([1, 0])), is_grade(Score("A+"))
    (True, True, False, False)
    """
    value = _part_of(score, part)
    return value is None or score_value(score, part) is not None or _number(value) is not None


def _part_of(score: Score | None, part: str | None) -> Any:
    value = score.value if score is not None else None
    if part is None:
        return value
    return value.get(part) if isinstance(value, dict) else None


def _number(value: Any) -> float | None:
    """A number, also one that is written as text; None for anything else."""
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):  # a whole number of hundreds of digits is no grade
        return None
