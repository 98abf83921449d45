"""From the tables of readers to Trials: every cell checked, every fault named by file and entry.

Many small files of one format are checked as one table, five times as fast as one by one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from passhat.errors import ArgumentError, ReadError
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import comma_fault
from passhat.ingest.sources import CheckedPart, InputPart
from passhat.messages import few, plural, short, short_value
from passhat.records import FEATURES, Outcome, Source, Trial, Trials
from passhat.records.columns import (
    ColumnCondition,
    ColumnMap,
    as_number,
    is_missing,
    leave_out,
    missing_at,
    parse_pass_if,
    scale_notes,
)
from passhat.records.data_frames import trial_numbers
from passhat.records.labels import join_labels
from passhat.records.secrets import clean_errors
from passhat.records.tally import Categorical
from passhat.records.trial import Facts, conditions_by_name, families_by_name
from passhat.records.trials import BEYOND, LARGEST

MOST_ROWS = 64
"""A file with more trials is checked by itself: there is little to save."""

FEWEST_FILES = 8

_DECISIVE = ("trial", "score", "passed", "outcome")
"""Files that do not agree in having these are read in different ways; others may be missing."""


def checked_parts(pieces: Sequence[InputPart], mapping: ColumnMap) -> list[CheckedPart]:
    """The trials of all files, in their order; neighbours of one kind are checked together."""
    parts: list[CheckedPart] = []
    for _, group in itertools.groupby(pieces, key=_kind):
        files = list(group)
        several = len(files) >= FEWEST_FILES and _may_join(files, mapping)
        joined = _joined(files, mapping) if several else None
        if joined is None:  # one by one, so that an error or a note names its file
            each = ((piece, assemble(piece, mapping)) for piece in files)
            joined = [_part(piece, mapping, trials, trials.sources[0]) for piece, trials in each]
        parts += joined
    return parts


def _kind(piece: InputPart) -> tuple[Any, ...]:
    """What must be the same in files that are checked together."""
    table = piece.table
    alone = piece.sha256 if len(table) > MOST_ROWS else ""
    columns = [name in table.columns for name in _DECISIVE]
    return piece.reader.name, table.judged, table.graded, table.submission, *columns, alone


def _part(
    piece: InputPart, mapping: ColumnMap, trials: Trials | None, source: Source
) -> CheckedPart:
    numbered = piece.numbered and "trial" not in mapping.left_out()
    return CheckedPart(file=piece, trials=trials, source=source, numbered=numbered)


def _joined(pieces: list[InputPart], mapping: ColumnMap) -> list[CheckedPart] | None:
    """All files as one table, on the first part; None if one of them needs a note."""
    first = pieces[0]
    names = dict.fromkeys(name for piece in pieces for name in piece.table.columns)
    columns = {name: list(_values(pieces, name)) for name in names}
    columns["system"] = [name for piece in pieces for name in _systems_of_files(piece, mapping)]
    table = TrialTable(columns=columns, judged=first.table.judged, graded=first.table.graded)
    try:
        trials = assemble(replace(first, table=table), replace(mapping, name=None, system=None))
    except ReadError:
        return None
    if trials.sources[0].notes:
        return None
    if mapping.name is not None:
        codes = np.zeros(len(trials), dtype=np.int32)
        trials = replace(trials, system=Categorical((mapping.name,), codes))
    parts = []
    for piece in pieces:
        source = _source(piece, piece.table.columns, mapping, piece.table.notes)
        parts.append(_part(piece, mapping, trials if piece is first else None, source))
    return parts


def _may_join(pieces: Sequence[InputPart], mapping: ColumnMap) -> bool:
    """Whether no rule looks at all trials of a file together."""
    if mapping.family_pattern is not None or mapping.factor_pattern is not None:
        return False
    if mapping.pass_if is not None and not all(piece.table.judged for piece in pieces):
        return False
    if mapping.name is not None:
        systems = (set(map(_text, _systems_of_files(piece, mapping))) for piece in pieces)
        if any(len(names) > 1 for names in systems):
            return False
    return all(map(_counts_trials, pieces))


def _counts_trials(piece: InputPart) -> bool:
    """Whether trials have plain numbers: what other names mean depends on the whole file."""
    return all(
        type(trial) is int or (isinstance(trial, str) and trial.isdecimal() and len(trial) < 18)
        for trial in piece.table.columns.get("trial", ())
    )


def _values(pieces: Sequence[InputPart], name: str) -> Iterator[Any]:
    nothing = () if name in ("tags", "tools", "at") else None
    for piece in pieces:
        columns = piece.table.columns
        yield from columns[name] if name in columns else [nothing] * len(piece.table)


def _systems_of_files(piece: InputPart, mapping: ColumnMap) -> Sequence[Any]:
    given = () if "system" in mapping.left_out() else piece.table.columns.get("system")
    return given or [piece.stem] * len(piece.table)


Fault = Callable[[int, str, str], ReadError]

_NOT_NEEDED = frozenset(
    (
        *("system", "trial", "score", *FEATURES, "seed", "level", "tags", "tools", "started"),
        *("family", "weight", "human_labels", "base", "at", "stated_confidence"),
    )
)

_COLUMNS = frozenset((*(field.name for field in fields(Trial)), "passed", "human_labels"))

_KEPT_EMPTY = frozenset(("system", "task", "trial", "outcome", "passed", "score"))
_OPTIONAL_FACTS = {
    "score": "score",
    "family": "family",
    "started": "started",
    "factor": "at",
    "label": "human_labels",
}
"""Parts that a file of a format may lack, with their columns; "read as" is silent on such."""


def assemble(piece: InputPart, mapping: ColumnMap) -> Trials:
    """The trials of one file, checked, with the file as their source."""
    table = piece.table

    def fault(row: int, field: str, what: str) -> ReadError:
        return ReadError(f"{piece.name}, {table.where(row)}, field {field}: {what}")

    columns: dict[str, Any] = {
        name: values for name, values in table.columns.items() if _is_filled(name, table.columns)
    }
    for name in mapping.left_out() & _NOT_NEEDED:
        columns.pop(name, None)
    columns["task"] = _texts("task", columns.get("task", []), fault)
    columns["system"] = _systems(piece, columns, mapping, fault)
    columns |= _parts_of_names(columns["task"], mapping)
    for name in ("score", *FEATURES, "weight", "stated_confidence"):
        if name in columns:
            columns[name] = _numbers(name, columns[name], fault)
    notes = [*table.notes]
    if mapping.pass_if is not None and not table.judged:
        columns["outcome"] = _apply_pass_if(mapping.pass_if, columns, fault)
        notes += scale_notes(
            parse_pass_if(mapping.pass_if),
            columns.__getitem__,
            lambda what: ReadError(f"{piece.name}, {what}"),
        )
    notes += [*_fit_scores(columns, mapping, table.graded, fault)]
    if not mapping.pass_if and not table.judged:
        notes += _only_one_passes(table.graded, columns.get("score"))
    if "seed" in columns:
        columns["seed"] = [_seed(value, row, fault) for row, value in enumerate(columns["seed"])]
    if "trial" in columns:
        columns["trial"] = _trial_numbers(columns, fault)
    join_labels(columns, mapping, fault)
    if "error" in columns:
        columns["error"] = clean_errors(columns["error"])
    source = _source(piece, columns, mapping, notes)
    columns = {name: values for name, values in columns.items() if name in _COLUMNS}
    try:
        return Trials.from_columns(columns, duplicates=None, sources=(source,))
    except ArgumentError as error:  # a rule of Trials that no check above covers
        raise ReadError(f"{piece.name}: {error}") from error


def one_name(file: str, systems: Collection[str], name: str) -> str:
    """The user's name for the only system of a file; refused where it would merge several."""
    if len(systems) > 1:
        raise ReadError(
            f"{file}: holds {plural(len(systems), 'agent')} ({few(systems)}); one name, "
            f"\"{name}\", would merge them; add `system=''` if they are one"
        )
    return name


def scores_left_out(example: float) -> str:
    """The note on scores that do not fit beside a verdict that decides."""
    return f"scores reach beyond [0, 1] ({example:g}): left out, the verdicts decide"


def judged_only(pass_if: str) -> str:
    """The note on scores that can only be judged."""
    return f"scores reach beyond [0, 1]: only whether {pass_if} holds was kept"


def _source(
    piece: InputPart, columns: Mapping[str, Any], mapping: ColumnMap, notes: Sequence[str]
) -> Source:
    named = _OPTIONAL_FACTS.keys() - mapping.left_out()
    filled = frozenset(name for name in named if _is_filled(_OPTIONAL_FACTS[name], columns))
    read_as, left_out = tuple(piece.table.read_as.items()), tuple(piece.table.left_out)
    return Source(
        name=piece.name,
        format=piece.reader.name,
        sha256=piece.sha256,
        notes=tuple(notes),
        read_as=_facts(piece.reader.reading, read_as, left_out, filled, mapping),
        scores=tuple(piece.table.scores),
        ended=piece.table.ended,
    )


# The files of a folder are read in few ways.
@lru_cache(maxsize=64)
def _facts(
    reading: Reading,
    read_as: Facts,
    left_out: tuple[str, ...],
    filled: frozenset[str],
    mapping: ColumnMap,
) -> Facts:
    """How a file was read, with what the user's options changed."""
    facts = dict(read_as)
    if "system" in mapping.left_out():
        facts["system"] = "file name"
    if mapping.name is not None:
        facts["system"] = f'"{short(mapping.name)}" (`name`)'
    if mapping.pass_if is not None:
        facts["outcome"] = f"{mapping.pass_if} (`pass_if`)"
    facts |= dict.fromkeys(_OPTIONAL_FACTS.keys() - filled, "")
    if mapping.family_pattern is not None:
        facts["family"] = f'"{short(mapping.family or "")}" in the name of the task'
    if mapping.factor_pattern is not None:
        facts["factor"] = f'"{short(mapping.factor or "")}" in the name of the task'
    if "trial" in mapping.left_out():
        facts["run"] = "order of rows"
    return reading.facts(facts, left_out)


def _texts(name: str, values: Sequence[Any], fault: Fault) -> list[str]:
    if set(map(type, values)) == {str}:  # a name comes many times
        texts = list(map({value: value.strip() for value in set(values)}.__getitem__, values))
    else:
        texts = [_text(value) for value in values]
    if not all(texts):
        raise fault(texts.index(""), name, f"the {name} is missing")
    return texts


def _text(value: Any) -> str:
    """A name as text; an object or a list as JSON."""
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value).strip()


def _systems(
    piece: InputPart, columns: dict[str, Any], mapping: ColumnMap, fault: Fault
) -> list[str]:
    size = len(columns["task"])
    given = columns.get("system") or [piece.stem] * size
    systems = _texts("system", given, fault)
    if mapping.name is None:
        return systems
    return [one_name(piece.name, dict.fromkeys(systems), mapping.name)] * size


def _parts_of_names(tasks: Sequence[str], mapping: ColumnMap) -> dict[str, Any]:
    """What the user's patterns find in the names of tasks: families, conditions."""
    parts: dict[str, Any] = {}
    if mapping.family_pattern is not None:
        parts["family"] = families_by_name(tasks, mapping.family_pattern)
    if mapping.factor_pattern is not None:
        parts["base"], parts["at"] = conditions_by_name(tasks, mapping.factor_pattern)
    return parts


def _numbers(name: str, values: Sequence[Any], fault: Fault) -> NDArray[np.float64]:
    try:
        numbers = np.array(values, dtype=np.float64)  # None is NaN
    except (ValueError, TypeError, OverflowError):
        numbers = None
    if numbers is None or numbers.ndim != 1:  # there are empty cells, text or lists
        numbers = np.array([_number(name, v, i, fault) for i, v in enumerate(values)])
    if (beyond := np.flatnonzero(np.abs(numbers) > LARGEST)).size:
        raise fault(int(beyond[0]), name, f"must be finite, and at most {LARGEST:g}")
    if name != "score" and (negative := np.flatnonzero(numbers < 0)).size:
        raise fault(int(negative[0]), name, f"must be at least 0, got {numbers[negative[0]]:g}")
    return numbers


def _number(name: str, value: Any, row: int, fault: Fault) -> float:
    try:
        return as_number(value)
    except ValueError:
        if isinstance(value, int):  # of hundreds of digits
            raise fault(row, name, "must be finite, and a number that a float can hold") from None
        why = comma_fault(value) or f"must be a number or empty, got {short_value(value)}"
        raise fault(row, name, f"{why}; or {leave_out(name)}") from None


def _apply_pass_if(pass_if: str, columns: dict[str, Any], fault: Fault) -> list[Outcome]:
    """Judge completed trials by the user's comparison instead of the log's own verdicts."""
    tests = parse_pass_if(pass_if)
    for test in tests:
        if test.column not in columns:
            known = few(sorted(columns))
            raise fault(
                0, test.column, f"is missing, but `pass_if={pass_if!r}` needs it; it has {known}"
            )
    outcomes = []
    for row, old in enumerate(columns.get("outcome", [None] * len(columns["task"]))):
        cells = [columns[test.column][row] for test in tests]
        if old == Outcome.ERRORED or any(is_missing(cell) for cell in cells):
            outcomes.append(Outcome.ERRORED)
        else:
            pairs = zip(tests, cells, strict=True)
            outcomes.append(Outcome(all(_holds(test, cell, row, fault) for test, cell in pairs)))
    return outcomes


def _holds(test: ColumnCondition, cell: Any, row: int, fault: Fault) -> bool:
    try:
        return test.holds(cell)
    except ValueError:
        why = f"`pass_if` compares it with a number, but it is {short_value(cell)}"
        raise fault(row, test.column, why) from None


def _fit_scores(
    columns: dict[str, Any], mapping: ColumnMap, graded: str | None, fault: Fault
) -> list[str]:
    """Leave out scores beyond [0, 1] where verdicts or `pass_if` decide; else refuse them.

    `graded` names the score that decides, in logs without verdicts.
    """
    scores = columns.get("score")
    if scores is None:
        return []
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    if not outside.size:
        return []
    row = int(outside[0])
    if mapping.pass_if is None and graded is None:
        columns.pop("score")
        return [scores_left_out(float(scores[row]))]
    if mapping.pass_if is None:
        raise fault(
            row,
            "score",
            f"must lie in [0, 1], got {scores[row]:g}; say what passes with "
            "`pass_if='score>=...'`, or choose another score",
        )
    columns.pop("score")
    return [judged_only(mapping.pass_if)]


def _only_one_passes(graded: str | None, scores: NDArray[np.float64] | None) -> list[str]:
    """A note where scores between 0 and 1 count as failures, because there are no verdicts."""
    if graded is None or scores is None or not ((scores > 0) & (scores < 1)).any():
        return []
    return [f"no verdicts, only scores: a \"{graded}\" of 1 passes (or use `pass_if='score>=...'`)"]


def _seed(value: Any, row: int, fault: Fault) -> int | None:
    if is_missing(value):
        return None
    try:
        number = int(value) if isinstance(value, str) else value
        if number == math.floor(number) and abs(number) < BEYOND:
            return int(number)
    except (ValueError, TypeError, OverflowError):
        pass  # the same message as for a number that is not whole
    rule = "must be a whole number below 2**63, or empty"
    raise fault(row, "seed", f"{rule}, got {short_value(value)}")


def _trial_numbers(columns: dict[str, Any], fault: Fault) -> list[int]:
    """Trial numbers, none missing and none beyond 64 bits."""
    values = columns["trial"]
    if (row := missing_at(values)) is not None:
        raise fault(row, "trial", f"the trial is missing; number it, or {leave_out('trial')}")
    if not all(type(value) is not int or -BEYOND < value < BEYOND for value in values):
        values = [str(value) for value in values]
    return trial_numbers(values, columns["system"], columns["task"])


def _is_filled(name: str, columns: Mapping[str, Sequence[Any]]) -> bool:
    """Whether some row fills a column; those that every table needs count as filled."""
    if name in _KEPT_EMPTY or name not in columns:
        return name in columns
    if name == "base":  # the name of a task, which may be NULL
        return any(value is not None for value in columns[name])
    return not all(value == () or is_missing(value) for value in columns[name])
