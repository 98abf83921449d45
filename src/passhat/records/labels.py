"""What people say of trials: labels beside the verdict, never in its place.

A column of labels holds one text a trial, the JSON list of its labels: files of every kind keep it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.records.columns import WAYS, ColumnMap, is_missing, outcomes_of
from passhat.records.tally import Categorical
from passhat.records.trial import Outcome

LabelText = str
"""The labels of one trial, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What one person says of one trial, and how the trial was chosen.

    A trial that somebody picked has no `chosen`: its label is listed, and used for no number.

    >>> Label(passed=True, by="ann", chosen="verdict", chance=0.1).passed
    True
    """

    passed: bool
    by: str = ""
    at: str = ""
    note: str = ""
    chosen: str | None = None
    chance: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.passed, bool):
            raise ArgumentError("passed of a label", "must be true or false", self.passed)
        if self.chosen is not None and self.chosen not in WAYS:
            rule = f"must be {', '.join(WAYS)} or missing"
            raise ArgumentError("chosen of a label", rule, self.chosen)
        if self.chance is not None and not 0 < self.chance <= 1:
            raise ArgumentError("chance of a label", "must be above 0 and at most 1", self.chance)


_KEYS = tuple(field.name for field in fields(Label))


def write_labels(labels: Iterable[Label]) -> LabelText | None:
    """Labels as the text of a column; None if there are none.

    >>> write_labels([Label(passed=False, by="ann")])
    '[{"passed":false,"by":"ann"}]'
    """
    entries = [
        {name: value for name in _KEYS if (value := getattr(label, name)) not in (None, "")}
        for label in labels
    ]
    return json.dumps(entries, separators=(",", ":"), ensure_ascii=False) if entries else None


# A table is looked through several times, and most of its texts are alike.
@lru_cache(maxsize=4096)
def read_labels(text: LabelText) -> tuple[Label, ...]:
    """The labels in the text of a column.

    >>> read_labels('[{"passed":true,"by":"ben"}]')
    (Label(passed=True, by='ben', at='', note='', chosen=None, chance=None),)
    """
    try:
        entries = json.loads(text)
    except ValueError:
        entries = None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ArgumentError("human_labels", "must be a JSON list of labels", text)
    for given in entries:
        if "passed" not in given or not given.keys() <= set(_KEYS):
            rule = f"must be labels with passed, and of {', '.join(_KEYS[1:])} those there are"
            raise ArgumentError("human_labels", rule, text)
    try:
        return tuple(Label(**entry) for entry in entries)
    except TypeError:  # a chance that is no number
        raise ArgumentError("human_labels", "must be labels as passhat writes them", text) from None


def checked_human_labels(values: Iterable[Any] | None) -> Categorical | None:
    """A column of labels: texts of `write_labels`, lists of Label or of dicts, or verdicts."""
    if values is None:
        return None
    texts = [_text(value) for value in values]
    return Categorical.of(texts) if any(texts) else None


def _text(value: Any) -> LabelText | None:
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [item if isinstance(item, Label) else Label(**item) for item in value]
        return write_labels(parts)
    if isinstance(value, str) and value.lstrip().startswith("["):
        return write_labels(read_labels(value))
    verdict = said_in(value)
    return None if verdict is None else write_labels([Label(passed=verdict)])


def said_in(cell: Any) -> bool | None:
    """What the cell of a person's column says: passed, not, or nothing.

    >>> said_in("pass"), said_in(0), said_in("")
    (True, False, None)
    """
    if is_missing(cell):
        return None
    (outcome,) = outcomes_of([cell])
    if outcome is None or outcome is Outcome.ERRORED:
        raise ArgumentError("label", "must say passed or failed, or be empty", cell)
    return outcome is Outcome.PASSED


def join_labels(
    columns: dict[str, Any], mapping: ColumnMap, fault: Callable[[int, str, str], Exception]
) -> None:
    """Put what columns beside the label say (by whom, how chosen) into it."""
    by, ways = columns.pop("label_by", None), columns.pop("label_chosen", None)
    if "human_labels" not in columns:
        return
    way = mapping.label_chosen if mapping.label_chosen in WAYS else None
    texts = []
    for row, cell in enumerate(columns["human_labels"]):
        try:
            text = _text(cell)
            if text is not None and (by is not None or ways is not None or way is not None):
                who = "" if by is None or is_missing(by[row]) else str(by[row])
                own = way if ways is None or is_missing(ways[row]) else str(ways[row])
                text = write_labels(
                    replace(label, by=who or label.by, chosen=own or label.chosen)
                    for label in read_labels(text)
                )
        except (ArgumentError, TypeError) as error:
            raise fault(row, mapping.human_labels or "human_labels", str(error)) from None
        texts.append(text)
    columns["human_labels"] = texts


# What all labels of a trial say together.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledRows:
    """The rows of a table that have a label, and what people say of each together.

    `chosen` is the first way in which the trial was chosen, None if it was not at random.
    """

    row: NDArray[np.intp]
    passed: NDArray[np.bool_]
    chosen: tuple[str | None, ...]
    labels: tuple[tuple[Label, ...], ...]

    def __len__(self) -> int:
        return int(self.row.size)


def labelled_rows(column: Categorical | None) -> LabelledRows:
    """The rows that people labelled; of each person the last label counts, and most decide.

    Where as many say passed as failed, the trial has not passed.

    >>> both = [Label(passed=True, by="ann"), Label(passed=False, by="ben")]
    >>> rows = labelled_rows(checked_human_labels([None, both, [Label(passed=True)]]))
    >>> rows.row.tolist(), rows.passed.tolist()
    ([1, 2], [False, True])
    """
    if column is None:
        return LabelledRows(
            row=np.zeros(0, np.intp), passed=np.zeros(0, bool), chosen=(), labels=()
        )
    row = np.flatnonzero(column.codes >= 0)
    by_code = [
        tuple({label.by: label for label in read_labels(text)}.values()) for text in column.names
    ]
    passing = np.array([2 * sum(label.passed for label in own) > len(own) for own in by_code])
    ways = [next((label.chosen for label in own if label.chosen), None) for own in by_code]
    codes = column.codes[row]
    return LabelledRows(
        row=row,
        passed=passing[codes].astype(bool),
        chosen=tuple(ways[code] for code in codes),
        labels=tuple(by_code[code] for code in codes),
    )
