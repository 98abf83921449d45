"""Rows with a score from each of several scorers: what the exports of observability tools hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.reader import TrialTable, first_line
from passhat.messages import few, short, short_value
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap
from passhat.records.outcome_words import LETTER_GRADES, error_text, is_missing, number, outcome_of

NOT_SCORED = "not scored"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One run: what it was about, what each scorer said of it, and what else a trial has."""

    task: Any
    scores: Mapping[str, Any]
    system: str | None = None
    trial: Any = None
    error: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


def scored_table(
    name: str,
    rows: Iterable[ScoredRow],
    mapping: ColumnMap,
    *,
    entry: str = "entry",
    numbers: Sequence[int] | None = None,
    read_as: Mapping[str, str] | None = None,
    left_out: Iterable[str] = (),
    default: Callable[[Collection[str]], str] | None = None,
) -> TrialTable:
    """One trial a row, by the first scorer unless another is chosen; 1 or a word of success passes.

    `default` chooses among the scorers where the first is not the one that decides.
    """
    rows = list(rows)
    scorers = list(dict.fromkeys(scorer for row in rows for scorer in row.scores))
    chosen = _chosen(name, scorers, mapping, default)
    if rows and all(is_missing(row.scores.get(chosen)) and not row.error for row in rows):
        raise ReadError(
            f'{name}: score "{short(chosen)}" is empty everywhere, so nothing says what passed; '
            f"choose another with `scorer` (it has {few(scorers)}), or score the runs first"
        )
    others = [scorer for scorer in scorers if scorer != chosen]
    notes = []
    if others and mapping.scorer is None:
        notes.append(f'score "{short(chosen)}" was read; there is also {few(others)} (`scorer`)')
    columns = [_trial(name, row, chosen, mapping, place, entry) for place, row in enumerate(rows)]
    shown = f"score '{short(chosen)}'"
    return TrialTable.of_rows(
        columns,
        notes=notes,
        entry=entry,
        numbers=numbers,
        graded=chosen,
        read_as={"outcome": f"{shown} of 1 passes", "score": shown, **(read_as or {})},
        left_out=[*([f"scores {few(others)}"] if others else []), *left_out],
    )


def _chosen(
    name: str,
    scorers: Sequence[str],
    mapping: ColumnMap,
    default: Callable[[Collection[str]], str] | None,
) -> str:
    wanted = mapping.scorer or mapping.score or None
    if wanted is not None and wanted not in scorers:
        raise ReadError(f'{name}: has no score "{short(wanted)}"; it has {few(scorers)}')
    if not scorers:
        raise ReadError(f"{name}: has no score, so nothing says what passed")
    if wanted is None and default is not None:
        return default(scorers)
    return wanted or scorers[0]


def _trial(
    name: str, row: ScoredRow, scorer: str, mapping: ColumnMap, place: int, entry: str
) -> dict[str, Any]:
    ending = _ending(row.scores.get(scorer), error_text(row.error))
    if ending is None:
        raise ReadError(
            f'{name}, {entry} {place}: score "{short(scorer)}" is '
            f"{short_value(row.scores[scorer])}, which is neither a number nor a known word; "
            "choose another with `scorer`"
        )
    found: dict[str, Any] = {"task": row.task, **row.more, **ending}
    if row.system is not None:
        found["system"] = row.system
    if row.trial is not None:
        found["trial"] = row.trial
    return found


def _ending(score: Any, error: str | None) -> dict[str, Any] | None:
    if is_missing(score):
        return {"outcome": Outcome.ERRORED, "error": first_line(error) or NOT_SCORED}
    value = _value(score)
    if value is None:
        return None
    passed = value >= 1
    if error is not None and not passed:
        return {"outcome": Outcome.ERRORED, "error": first_line(error), "score": value}
    return {"outcome": Outcome(passed), "score": value}


def _value(score: Any) -> float | None:
    """A number, a letter grade, or a word of success or failure as 1 or 0."""
    if isinstance(score, str) and score.strip().lower() in LETTER_GRADES:
        return LETTER_GRADES[score.strip().lower()]
    try:
        return number(score)
    except ValueError:
        told = outcome_of(score)
        return None if told is None or told is Outcome.ERRORED else float(told)
