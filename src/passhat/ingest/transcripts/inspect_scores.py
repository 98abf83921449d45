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
    """
    value = score.value if score is not None else None
    if part is not None:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, str):
        word = WORDS.get(value.strip().lower())
        return word if word is not None else _parsed(value)
    if isinstance(value, (int, float)):
        return _number(value)
    return None


def is_grade(score: Score, part: str | None = None) -> bool:
    """Whether a score is a grade, a number, or nothing at all.

    >>> is_grade(Score("C")), is_grade(Score(None)), is_grade(Score([1, 0])), is_grade(Score("A+"))
    (True, True, False, False)
    """
    value = score.value
    if part is not None:
        value = value.get(part) if isinstance(value, dict) else None
    nothing = value is None or (isinstance(value, float) and math.isnan(value))
    return nothing or score_value(score, part) is not None


def _number(value: float) -> float | None:
    try:
        found = float(value)
    except OverflowError:  # a whole number of hundreds of digits is no grade
        return None
    return None if math.isnan(found) else found


def _parsed(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
