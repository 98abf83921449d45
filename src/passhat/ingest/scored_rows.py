"""Rows with a score from each of several scorers: what the exports of observability tools hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.readers import TrialTable, choose_score, first_line
from passhat.messages import few, plural, short, short_value
from passhat.records import Outcome, columns
from passhat.records.labels import Label

NOT_SCORED = "not scored"

_LOWER_IS_BETTER = re.compile(
    r"(?:^|[_/ .-])(?:toxic(?:ity)?|hallucinations?|bias|perplexity|latency|duration|"
    r"token_count|tokens|cost|grade_level|error_rate|wer|cer)(?:$|[_/ .-])",
    re.IGNORECASE,
)
"""Scores of which 1 may well be the worst: tools differ in what they call a pass."""


_BY_NAME = re.compile(r"(?:^|[^a-z])human(?:$|[^a-z])", re.IGNORECASE)
"""Names of scores that people give, in logs that do not say who gave a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonScore:
    """A score that a person gave: by whom, when and why, where the log says it."""

    value: Any
    by: str = ""
    at: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One run: its task, the score from each scorer, and what else a trial has.

    `people` are scores that people gave, by name: labels beside the verdict, never in its place.
    """

    task: Any
    scores: Mapping[str, Any]
    people: Mapping[str, Sequence[PersonScore]] = field(default_factory=dict)
    system: str | None = None
    trial: Any = None
    error: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)


def scored_table(
    name: str,
    rows: Iterable[ScoredRow],
    mapping: columns.ColumnMap,
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
    rows = _people_apart(list(rows), mapping)
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
    if rows and all(columns.is_missing(row.scores.get(chosen)) and not row.error for row in rows):
        raise ReadError(
            f'{name}: score "{short(chosen)}" is empty everywhere, so nothing says what passed; '
            f"choose another with `scorer` (it has {few(scorers)}), or score the trials first"
        )
    _, notes = choose_score(name, "score", [chosen, *others], mapping.scorer)
    trials = [_trial(name, row, chosen, place, entry) for place, row in enumerate(rows)]
    by_people, labels, more = labels_of_people(name, [row.people for row in rows], chosen, mapping)
    for trial, own in zip(trials, labels, strict=True):
        if own:
            trial["human_labels"] = own
    shown = f"score '{short(chosen)}'"
    return TrialTable.of_rows(
        trials,
        notes=[*notes, *more],
        entry=entry,
        numbers=numbers,
        graded=chosen,
        scores=() if wanted else [chosen, *others],
        read_as={
            "outcome": f"{shown} of 1 passes",
            "score": shown,
            "label": f"score '{short(by_people)}' of people" if by_people else "",
            **(read_as or {}),
        },
        left_out=[*([f"scores {few(others)}"] if others else []), *left_out],
    )


def is_named_human(scorer: str) -> bool:
    """Whether a score is one that people give, by its name: human, human_passed.

    >>> is_named_human("human_passed"), is_named_human("humaneval")
    (True, False)
    """
    return _BY_NAME.search(scorer) is not None


def _people_apart(rows: Sequence[ScoredRow], mapping: columns.ColumnMap) -> list[ScoredRow]:
    """The rows with the scores of people apart, unless nobody else or the user lets them decide."""
    scorers = dict.fromkeys(scorer for row in rows for scorer in row.scores)
    wanted = mapping.scorer or mapping.score
    labelled = (
        {mapping.human_labels} if mapping.human_labels else set(filter(is_named_human, scorers))
    )
    labelled = labelled & scorers.keys() - {wanted}
    if scorers.keys() <= labelled:
        labelled = set()
    decide = wanted not in scorers if wanted else not scorers
    apart = []
    for row in rows:
        scores = {name: value for name, value in row.scores.items() if name not in labelled}
        people = {name: list(given) for name, given in row.people.items()}
        for name in filter(labelled.__contains__, row.scores):
            if not columns.is_missing(row.scores[name]):
                people.setdefault(name, []).append(PersonScore(value=row.scores[name]))
        for name in list(people) if decide else ():
            if wanted is None or name == wanted:
                scores[name] = people.pop(name)[-1].value
        apart.append(replace(row, scores=scores, people=people))
    return apart


def labels_of_people(
    file: str,
    rows: Sequence[Mapping[str, Sequence[PersonScore]]],
    chosen: str,
    mapping: columns.ColumnMap,
) -> tuple[str | None, list[list[Label]], list[str]]:
    """Which of the scores that people gave is a label, the labels of each row, and notes.

    It is the one that `human_labels` names; else those that are called human or as the score that
    was read, or the only one. A score that is neither 0 nor 1 needs `pass_if` to say what passes.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    wanted = mapping.human_labels
    if wanted and wanted not in names:
        known = f"; people gave {few(names)}" if names else ""
        raise ReadError(f'{file}: nobody gave a score "{short(wanted)}"{known}')
    near = [name for name in names if name == chosen or is_named_human(name)]
    names_given = [wanted] if wanted else near or (names if len(names) == 1 else [])
    if not names_given:
        way = f"people gave several scores ({few(names)}): name the label with `human_labels`"
        return None, [[] for _ in rows], [way] if names else []
    labels, unclear = [], 0
    for row in rows:
        given = [score for name in names_given for score in row.get(name, ())]
        verdicts = [(score, _passed_by_person(score.value, mapping)) for score in given]
        unclear += sum(passed is None for _, passed in verdicts)
        labels.append(
            [
                Label(passed=passed, by=score.by, at=score.at, note=score.note)
                for score, passed in verdicts
                if passed is not None
            ]
        )
    if not unclear:
        return few(names_given), labels, []
    partial = plural(
        unclear, "is neither 0 nor 1, and no label", "are neither 0 nor 1, and no labels"
    )
    way = f"of the scores that people gave ({few(names_given)}), {partial}; say what passes with "
    return few(names_given), labels, [f"{way}`pass_if='score>=...'`"]


def _passed_by_person(value: Any, mapping: columns.ColumnMap) -> bool | None:
    """Whether a person's score passes a trial; None where it does not say."""
    number = _value(value)
    if number is None:
        return None
    tests = columns.parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    if tests and all(test.column == "score" for test in tests):
        return all(test.holds(number) for test in tests)
    return bool(number) if number in (0, 1) else None


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
    ending = _ending(row.scores.get(scorer), columns.error_text(row.error))
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
    if columns.is_missing(score):
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
        return columns.score_of(score)
    except ValueError:
        outcome = columns.outcome_of(score)
        return None if outcome in (None, Outcome.ERRORED) else float(outcome)
