"""Rows with a score from each of several scorers: what the exports of observability tools hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.readers import TrialTable, choose_score, first_line
from passhat.messages import few, short, short_value
from passhat.records import Outcome
from passhat.records.columns import ColumnMap, error_text, is_missing, outcome_of, score_of

NOT_SCORED = "not scored"

_LOWER_IS_BETTER = re.compile(
    r"(?:^|[_/ .-])(?:toxic(?:ity)?|hallucinations?|bias|perplexity|latency|duration|"
    r"token_count|tokens|cost|grade_level|error_rate|wer|cer)(?:$|[_/ .-])",
    re.IGNORECASE,
)
"""Scores of which 1 may well be the worst: tools differ in what they call a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One run: its task, the score from each scorer, and what else a trial has."""

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
    unclear: Mapping[str, str] | None = None,
) -> TrialTable:
    """One trial a row, by the first scorer unless another is chosen; 1 or a word of success passes.

    `default` chooses among the scorers where the first is not the one that decides. A score of
    which 1 may be the worst is not taken without `pass_if`: `unclear` names such scores of the
    format, with the reason.
    """
    rows = list(rows)
    scorers = list(dict.fromkeys(scorer for row in rows for scorer in row.scores))
    lower_is_better = filter(_LOWER_IS_BETTER.search, scorers)
    doubts = dict.fromkeys(lower_is_better, "is usually better the lower it is")
    unclear = {**doubts, **(unclear or {})}
    wanted = mapping.scorer or mapping.score or None
    chosen, _ = choose_score(name, "score", scorers, wanted)
    if chosen is None:
        raise ReadError(f"{name}: has no score, so nothing says what passed")
    if wanted is None:
        clear = [scorer for scorer in scorers if scorer not in unclear] or scorers
        chosen = clear[0] if default is None else default(clear)
    others = [scorer for scorer in scorers if scorer != chosen]
    if chosen in unclear and not mapping.pass_if:
        choice = f", or choose another with `scorer` (there is also {few(others)})"
        raise ReadError(
            f'{name}: score "{short(chosen)}" {unclear[chosen]}, so a score of 1 does not say that '
            f"a trial passed; say what passes with `pass_if='score>=...'`{choice if others else ''}"
        )
    if rows and all(is_missing(row.scores.get(chosen)) and not row.error for row in rows):
        raise ReadError(
            f'{name}: score "{short(chosen)}" is empty everywhere, so nothing says what passed; '
            f"choose another with `scorer` (it has {few(scorers)}), or score the trials first"
        )
    _, notes = choose_score(name, "score", [chosen, *others], mapping.scorer)
    trials = [_trial(name, row, chosen, place, entry) for place, row in enumerate(rows)]
    shown = f"score '{short(chosen)}'"
    return TrialTable.of_rows(
        trials,
        notes=notes,
        entry=entry,
        numbers=numbers,
        graded=chosen,
        scores=() if wanted else [chosen, *others],
        read_as={"outcome": f"{shown} of 1 passes", "score": shown, **(read_as or {})},
        left_out=[*([f"scores {few(others)}"] if others else []), *left_out],
    )


def scores_in(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The cells of the columns whose names begin with a prefix, by the rest of the name.

    >>> scores_in({"id": 3, "feedback.exact": 1}, "feedback.")
    {'exact': 1}
    """
    return {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}


def object_in(cell: Any) -> Mapping[str, Any]:
    """The object in a cell, or in the JSON text of a cell; empty if there is none."""
    if isinstance(cell, str) and cell.lstrip().startswith("{"):
        try:
            cell = msgspec.json.decode(cell)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return cell if isinstance(cell, Mapping) else {}


def _trial(name: str, row: ScoredRow, scorer: str, place: int, entry: str) -> dict[str, Any]:
    ending = _ending(row.scores.get(scorer), error_text(row.error))
    if ending is None:
        raise ReadError(
            f'{name}, {entry} {place}: score "{short(scorer)}" is '
            f"{short_value(row.scores[scorer])}, which is neither a number nor a known word; "
            "choose another with `scorer`"
        )
    names = {"system": row.system, "trial": row.trial}
    given = {name: value for name, value in names.items() if value is not None}
    return {"task": row.task, **row.more, **ending, **given}


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
    try:
        return score_of(score)
    except ValueError:
        outcome = outcome_of(score)
        return None if outcome in (None, Outcome.ERRORED) else float(outcome)
