"""Columns as users give them (lists, arrays, None and NaN for missing), checked and typed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.errors import ArgumentError
from passhat.messages import typo_hint
from passhat.records.labels import Labels
from passhat.records.trial import Outcome

Floats = NDArray[np.float64]

BEYOND = 2**63
"""Whole numbers must be smaller than this in size: they are held in 64 bits."""

LARGEST = 1e100
"""The largest number accepted: its square is still a finite float."""

NO_SEED = -BEYOND
"""Marks a missing seed: no seed can be this number."""


_MISSING = -1


def check_columns(given: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse columns that mean nothing, that are no columns, or that leave tasks unnamed."""
    for name, values in given.items():
        if name not in known:
            hint = typo_hint(str(name), known)
            raise ArgumentError("columns", f"must be among {', '.join(sorted(known))}{hint}", name)
        if values is not None and (isinstance(values, str) or not hasattr(values, "__len__")):
            raise ArgumentError(name, "must be a list with a value for each trial", values)
        if (depth := getattr(values, "ndim", 1)) != 1:
            raise ArgumentError(name, "must have one dimension, a value for each trial", depth)
    if given.get("task") is None:
        raise ArgumentError("columns", "must name the task of each trial", sorted(given))


def names(name: str, values: Sequence[Any]) -> Labels:
    """Texts, none missing."""
    try:
        distinct: Iterable[Any] = dict.fromkeys(values)
    except TypeError:  # lists, which have a text too
        distinct = values
    for value in distinct:
        if value is None or value != value or value == "":
            raise ArgumentError(name, f"must name the {name} of each trial", value)
    return Labels.of(map(str, values))


def outcomes(given: Mapping[str, Any]) -> NDArray[np.int8]:
    """How each trial ended, by `outcome`, else `passed`, else a score of 1.

    What is missing is an error of the trial if `error` says so, else one of the table.
    """
    by = next((name for name in ("outcome", "passed", "score") if name in given), None)
    if by is None:
        raise ArgumentError("columns", "must have outcome, passed or score", sorted(given))
    if by == "outcome":
        found = _outcome_codes(given["outcome"])
    elif by == "passed":
        found = _codes(given["passed"], _passed)
    else:
        scores = numbers("score", given["score"])
        found = np.where(np.isnan(scores), _MISSING, scores >= 1).astype(np.int8)
    missing = np.flatnonzero(found == _MISSING)
    for row in missing.tolist():
        if not _broke(given.get("error"), row):
            rule = f"must say how each trial ended, or error what broke it, and row {row} does not"
            raise ArgumentError(by, rule, given[by][row])
    found[missing] = Outcome.ERRORED
    return found


def scores(values: Any, outcome: NDArray[np.int8]) -> Floats:
    """Scores in [0, 1], the outcome's own if none is given, NaN for errored trials."""
    own = np.where(outcome == Outcome.ERRORED, np.nan, outcome.astype(np.float64))
    if values is None:
        return own
    given = numbers("score", values)
    if len(given) != len(own):
        raise ArgumentError("score", f"must have {len(own)} rows like outcome", len(given))
    given = np.where(np.isnan(given), own, given)
    bad = (given < 0) | (given > 1)
    if bad.any():
        raise ArgumentError("score", "must lie in [0, 1]", float(given[bad][0]))
    return np.where(outcome == Outcome.ERRORED, np.nan, given)


def numbers(name: str, values: ArrayLike | Sequence[Any]) -> Floats:
    """Numbers, NaN where one is missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _within_reach(name, values.astype(np.float64))
    given: list[Any] = list(values)  # type: ignore[arg-type] # any iterable of numbers and None
    try:
        found = np.array([np.nan if v is None else v for v in given], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None or found.ndim != 1:  # text, a list in a cell, or more than a float can hold
        raise ArgumentError(name, "must be numbers or missing", _first_odd(_filled(given), float))
    return _within_reach(name, found)


def integers(name: str, values: Any) -> NDArray[np.int64]:
    """Whole numbers, none missing; never by way of floats, which hold only 53 bits of them."""
    found = _exact(values)
    if found is None:
        rule = "must be whole numbers below 2**63"
        raise ArgumentError(name, rule, _first_odd(values, _whole))
    return found


def seeds(values: Any) -> NDArray[np.int64] | None:
    """Seeds, NO_SEED where one is missing."""
    if values is None:
        return None
    given = [None if v is None or v != v else v for v in values]
    try:
        whole = [NO_SEED if v is None else _whole(v) for v in given]
    except (TypeError, ValueError, OverflowError):
        rule = "must be whole numbers below 2**63, or missing"
        raise ArgumentError("seed", rule, _first_odd(_filled(given), _whole)) from None
    return np.array(whole, dtype=np.int64)


def weights(values: Any) -> Floats | None:
    """The weight of each trial's task: positive, NaN if none is given."""
    if values is None:
        return None
    found = numbers("weight", values)
    if (found <= 0).any():
        raise ArgumentError("weight", "must be above 0, or missing", float(found[found <= 0][0]))
    return found


def labels(values: Iterable[Any] | None) -> Labels | None:
    """Texts, if there is such a column."""
    if values is None:
        return None
    return Labels.of(None if v is None or v != v else str(v) for v in values)


def word_labels(name: str, values: Iterable[Sequence[str] | None] | None) -> Labels | None:
    """Tuples of words: a distinct tuple is one label, its words joined by NUL."""
    if values is None:
        return None
    return Labels.of(_joined(name, words) for words in values)


def occurrence(system: Labels, task: Labels) -> NDArray[np.int64]:
    """The place of each row among those of its system and task, from 0."""
    key = system.codes.astype(np.int64) * max(len(task.names), 1) + task.codes
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_key) != 0]) if len(key) else key
    lengths = np.diff(np.r_[starts, len(key)])
    found = np.empty(len(key), dtype=np.int64)
    found[order] = np.arange(len(key)) - np.repeat(starts, lengths)
    return found


def _within_reach(name: str, values: Floats) -> Floats:
    beyond = np.abs(values) > LARGEST
    if beyond.any():
        rule = f"must be finite numbers up to {LARGEST:g}, or missing"
        raise ArgumentError(name, rule, float(values[beyond][0]))
    return values


def _exact(values: Any) -> NDArray[np.int64] | None:
    """Whole numbers in 64 bits, bit for bit; None if one is missing, broken or too big."""
    try:
        kind = np.asarray(values)
        if kind.ndim == 1 and kind.dtype.kind in "bi":
            return kind.astype(np.int64)
        return np.array([_whole(value) for value in values], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(value: Any) -> int:
    """One whole number; ValueError, TypeError or OverflowError for anything else."""
    try:
        whole = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):  # 2.0, and "2.0"
        whole = int(value := float(value))
        if whole != value:
            raise ValueError from None
    if abs(whole) >= BEYOND:
        raise OverflowError
    return whole


def _filled(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _first_odd(values: Any, convert: Callable[[Any], Any]) -> Any:
    """The first value that cannot be converted; for a message."""
    for value in values:
        try:
            convert(value)
        except (TypeError, ValueError, OverflowError):
            return value
    return values


def _outcome_codes(values: Sequence[Any]) -> NDArray[np.int8]:
    if all(type(value) is Outcome for value in values):  # codes already, and slow to hash
        return np.array(values, dtype=np.int8)
    return _codes(values, _outcome)


def _codes(values: Iterable[Any], code: Callable[[Any], int]) -> NDArray[np.int8]:
    """The code of each value, computed once for all that are equal."""
    given = list(values)
    try:
        found = {value: code(value) for value in dict.fromkeys(given)}
    except TypeError:  # a list in a cell
        return np.array([code(value) for value in given], dtype=np.int8)
    return np.array([found[value] for value in given], dtype=np.int8)


def _broke(errors: Any, row: int) -> bool:
    error = None if errors is None or row >= len(errors) else errors[row]
    return error is not None and error == error and str(error) != ""


def _outcome(value: Any) -> int:
    if value is None or value != value:
        return _MISSING
    try:
        return int(Outcome[value.upper()] if isinstance(value, str) else Outcome(value))
    except (KeyError, ValueError, TypeError):
        rule = "must be passed, failed or errored (or 1, 0, 2)"
        raise ArgumentError("outcome", rule, value) from None


def _passed(value: Any) -> int:
    if value is None or value != value:  # NaN
        return _MISSING
    if value not in (0, 1):
        raise ArgumentError("passed", "must be true, false, 1, 0, or missing", value)
    return int(value)


def _joined(name: str, words: Sequence[Any] | None) -> str | None:
    if words is None or len(words) == 0:
        return None
    if isinstance(words, str) or not all(isinstance(w, str) and w and "\0" not in w for w in words):
        raise ArgumentError(name, "must be lists of words, none of them empty", words)
    return "\0".join(words)
