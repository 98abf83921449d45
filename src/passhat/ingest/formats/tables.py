"""Plain tables: CSV, TSV, JSON, JSON Lines and Parquet with one trial a row.

Any tool's export can be read this way once its columns are named; passhat's own files too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from passhat.errors import ReadError, UnknownFile
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.remote import ROW_COLUMN, read_rows, transcripts_beside
from passhat.ingest.repeated_tests import numbered_note, without_numbers
from passhat.ingest.reshape import (
    columns_of_verdicts,
    mapped_rows,
    may_count,
    may_reshape,
    one_row_a_column,
    one_row_a_run,
)
from passhat.ingest.rows import (
    Table,
    aggregates,
    cells_one_by_one,
    column_names,
    compared_ranges,
    conflicting,
    ends_in_total,
    is_own_file,
    lists_runs,
    means,
    measured_rows,
    no_outcome,
    own_end,
    row_names,
    shares,
    table_facts,
    table_of,
    table_of_rows,
    tells_rows_apart,
    verdicts_of,
    without_commas,
    without_marks,
    without_total,
)
from passhat.ingest.transcripts import transcript_of
from passhat.messages import few, listed, plural, short
from passhat.records import Outcome
from passhat.records.columns import (
    GUESSED_TASKS,
    GUESSED_VERDICTS,
    MAY_SAY_IT_RAN,
    MOST_ARMS,
    MOST_KEPT,
    SEVERAL,
    USUAL,
    VERDICTS,
    ColumnCondition,
    ColumnMap,
    condition_cells,
    find_columns,
    find_conflict,
    guess_columns,
    has_column,
    infer_columns,
    is_missing,
    is_table,
    letter_scores,
    likely_columns,
    may_aggregate,
    missing_column,
    model_of,
    name_cells,
    name_parts,
    parse_pass_if,
    rate_column,
    row_outcomes,
    says_outcomes,
    scale_notes,
    share_cells,
    transcript_column,
    usual_name,
)
from passhat.records.data_frames import pooled_notes, score_passes_note, typed_cells
from passhat.records.transcript import Transcript
from passhat.records.trial import ENDED_COLUMN, UNUSED_COLUMNS, stated_end

READING = Reading(
    format="table",
    versions="CSV, TSV, JSON, JSON Lines, Parquet",
    system="column agent, system, model, ...",
    task="column task, task_id, instance_id, ...",
    run="column trial, run, epoch, ...",
    outcome="column passed, outcome, success, ...; else a score of 1 passes",
    score="column score, reward, ...",
    family="column family",
    started="column started, timestamp, ...",
)

Columns = Mapping[str, Sequence[Any]]


def recognises(document: Document) -> bool:
    """Whether the usual names of columns say the task and the outcome.

    A table of aggregates is refused here already, so that a folder leaves it out with the reason.
    """
    if is_own_file(document):
        return True
    names = column_names(document)
    if not is_table(names, USUAL):
        reshaped = may_reshape(names) and "task" in find_columns(names, USUAL)
        return bool((reshaped or document.kind == "json") and runs_of(document, USUAL)[1])
    if may_aggregate(tuple(names)):
        sheet, how, _ = runs_of(document, USUAL)
        if how:
            return True
        by_meaning, _ = infer_columns(sheet.columns, USUAL, sheet.cells)
        if fault := aggregates(document.name, sheet.columns, by_meaning, USUAL, sheet.cells):
            raise fault
    return True


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """The rows of a table; the columns by the user's choice, then by their usual names."""
    sheet, how, guessed = runs_of(document, mapping)
    if guessed.task and guessed != mapping and may_reshape(sheet.columns):
        sheet, how, _ = runs_of(document, guessed)
    table = read_table(document, sheet, guessed)
    facts = dict(table.read_as)
    for meaning, part in (("task", "task"), ("passed", "outcome")):
        if getattr(guessed, meaning) != getattr(mapping, meaning):
            facts[part] = f"{facts[part]}, as nothing better is there"
    if how and sheet.numbers:
        facts["format"] = f"{facts['format']}, {how}"
        facts["outcome"] = facts["outcome"] if "outcome" in column_names(document) else ""
    return table if facts == table.read_as else replace(table, read_as=facts)


def runs_of(document: Document, mapping: ColumnMap) -> tuple[Table, str, ColumnMap]:
    """The table with a row for each run, how it came about, and the columns as they are read."""
    mapped = mapped_rows(document, mapping)
    sheet = table_of(document, mapping) if mapped is None else table_of_rows(mapped[0])
    how = [] if mapped is None else [mapped[1]]
    if "," in f"{mapping.system}{mapping.task}" and (stacked := one_row_a_column(sheet, mapping)):
        return stacked
    if not is_own_file(document) and (may_reshape(sheet.columns) or may_count(sheet)):
        reshaped = one_row_a_run(document.name, sheet, mapping)
        if reshaped is not None:
            sheet = reshaped[0]
            how.append(reshaped[1])
    if not is_table(sheet.columns, mapping) and len(sheet):
        try:
            mapping = guess_columns(sheet.columns, mapping, sheet.cells)
        except UnknownFile as error:
            raise UnknownFile(f"{document.name}: {error}") from None
    return sheet, ", ".join(how), mapping


def may_be_guessed(document: Document) -> bool:
    """Whether columns of less usual names say the task and the outcome, by what they hold."""
    names = {usual_name(name) for name in column_names(document)}
    known = names & {*GUESSED_TASKS, *GUESSED_VERDICTS}
    if not known or document.kind not in ("text", "lines", "array", "json", "parquet"):
        return False
    sheet, how, guessed = runs_of(document, USUAL)
    if not how and may_reshape(sheet.columns) and guessed.task:
        how = runs_of(document, guessed)[1]
    return bool(how) or (guessed != USUAL and is_table(sheet.columns, guessed))


def read_table(
    document: Document,
    sheet: Table,
    mapping: ColumnMap,
    repeats: Callable[[Columns], bool] | None = None,
) -> TrialTable:
    """The rows of a sheet; `document` says what kind of file they are from, and its name.

    `repeats` says whether only their order distinguishes the trials of a task.
    """
    sheet, by_meaning, prompts = _trial_rows(document, sheet, mapping)
    own = is_own_file(document)
    for refused in (aggregates, means):
        if fault := refused(document.name, sheet.columns, by_meaning, mapping, sheet.cells):
            raise fault
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    sheet, percents, unmarked = without_marks(document.name, sheet, by_meaning, tests)
    sheet, commas = without_commas(sheet, by_meaning, tests)
    scales = scale_notes(
        tests,
        lambda name: sheet.cells(by_meaning.get(name, name)),
        lambda what: ReadError(f"{document.name}, {what}"),
    )
    entry = {"text": "line", "lines": "line", "parquet": "row"}.get(document.kind, "entry")
    table = TrialTable(columns={}, entry=entry, numbers=sheet.numbers)
    columns = {
        meaning: typed_cells(meaning, column, sheet.cells(column))
        for meaning, column in by_meaning.items()
        if meaning not in ("system", "task", "passed") and not (meaning == "at" and mapping.factor)
    }
    if "at" in by_meaning and mapping.factor:
        columns["at"] = condition_cells(sheet.columns, by_meaning["at"], sheet.cells)
    if "system" in by_meaning:
        columns["system"] = name_cells(sheet.columns, by_meaning["system"], sheet.cells)
    if grades := letter_scores(by_meaning, sheet.cells):
        columns["score"] = grades
    columns["task"], folded = _tasks(by_meaning, mapping, sheet)
    if by_meaning.get("score") in percents:
        columns["score"] = shares(columns["score"])
    columns["outcome"] = _outcomes(document.name, table, by_meaning, sheet, mapping, columns)
    counted = _counted_empty(by_meaning, sheet, mapping, columns.get("score", ()))
    repeated = repeats or only_ordered
    notes = notes_on(
        sheet.columns,
        by_meaning,
        mapping,
        own=own,
        repeats=lambda: repeated(columns),
        cells=sheet.columns,
        numbers=columns.get("trial", ()),
        percent=by_meaning.get("score") in percents,
    )
    ended = stated_end(sheet.cells(ENDED_COLUMN)) if ENDED_COLUMN in sheet.columns else None
    # Alone, rows that have numbers are compared by these.
    marks = [] if own or (document.alone and "trial" in by_meaning) else measured_rows(sheet)
    table = replace(
        table,
        columns=columns,
        words=_compared_words(tests, by_meaning, sheet),
        ranges={}
        if Outcome.PASSED in columns["outcome"]
        else compared_ranges(tests, lambda name: sheet.cells(by_meaning.get(name, name))),
        notes=(*prompts, *notes, *folded, *unmarked, *commas, *counted, *scales),
        judged=True,
        ended=own_end(document) if own else ended,
        measured=marks,
        fine=tells_rows_apart(sheet, marks) if len(set(marks)) < len(marks) else bool(marks),
        apart="" if own else _kept_apart(columns, by_meaning, mapping, sheet),
        graded=None if tests or "passed" in by_meaning else by_meaning["score"],
        read_as={"format": _format(document, mapping), **table_facts(by_meaning, mapping)},
        left_out=()
        if own
        else left_out_columns(sheet.columns, by_meaning, mapping, ended=ended is not None),
        submission=None if own else model_of(sheet.columns, by_meaning, mapping, sheet.cells),
    )
    return _without_missing(table)


def _kept_apart(
    columns: Columns, by_meaning: Mapping[str, str], mapping: ColumnMap, sheet: Table
) -> str:
    """The columns in which trials of the same number differ, as an option; empty if none do."""
    if "trial" not in columns:
        return ""
    parts = [columns[name] for name in ("system", "task", "trial") if name in columns]
    try:  # by far most tables number their trials once
        if len(set(zip(*parts, strict=True))) == len(columns["trial"]):
            return ""
    except TypeError:  # names that are lists or objects
        pass
    keys = [tuple(map(str, key)) for key in zip(*parts, strict=True)]
    rows: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    twice = [alike for alike in rows.values() if len(alike) > 1]
    if not twice:
        return ""
    counts: dict[str, tuple[int, list[str]]] = {}
    for column in _unused(sheet.columns, by_meaning, mapping):
        cells = sheet.cells(column)
        if any(isinstance(cell, (Mapping, list)) for cell in cells):
            continue
        values = dict.fromkeys("nothing" if is_missing(cell) else str(cell) for cell in cells)
        # A time or an id is another in every row, and names no system.
        if 1 < len(values) <= min(MOST_ARMS, len(cells) // 2):
            sets = [frozenset(str(cells[row]) for row in alike) for alike in twice]
            apart = Counter(
                arms for arms, alike in zip(sets, twice, strict=True) if len(arms) == len(alike)
            )
            # Arms meet in every task, the same ones; what was measured differs now and then.
            if 2 * apart.total() >= len(twice) and 2 * max(apart.values()) >= apart.total():
                counts[column] = apart.total(), list(values)
    best = sorted(counts, key=lambda name: -counts[name][0])
    if not best:
        return ""
    shown = ", ".join(f"{short(name)} ({few(counts[name][1], 3)})" for name in best[:3])
    named = ",".join(filter(None, (by_meaning.get("system"), best[0])))
    some = (
        f" in {counts[best[0]][0]} of {len(twice)} cases" if counts[best[0]][0] < len(twice) else ""
    )
    condition = f"`factor={best[0]!r}` if it is a condition of one agent"
    return f" They differ in {shown}: `system={named!r}` keeps them apart{some}, or {condition}."


def _counted_empty(
    by_meaning: Mapping[str, str], sheet: Table, mapping: ColumnMap, scores: Sequence[Any]
) -> list[str]:
    """A note on the rows without a verdict that count as failures or errors, or on empty cells."""
    if sheet.empty:
        return [f"{plural(sheet.empty, 'empty cell is', 'empty cells are')} no trial (`missing`)"]
    if mapping.missing not in ("fail", "error"):
        return []
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    outcomes = _by_the_users_words(
        row_outcomes(tests, by_meaning, sheet.cells, scores),
        tests,
        by_meaning,
        sheet,
        replace(mapping, missing=None),
    )
    empty = [
        row
        for row, own in enumerate(outcomes)
        if own is None and _says_nothing(row, tests, by_meaning, sheet)
    ]
    rows = plural(len(empty), "row without a verdict counts", "rows without a verdict count")
    what = "failed" if mapping.missing == "fail" else "errored"
    return [f"{rows} as {what} (`missing`)"] if empty else []


def _without_missing(table: TrialTable) -> TrialTable:
    """The table without rows that have no outcome: only those are left that the user excludes."""
    outcomes = table.columns["outcome"]
    kept = [row for row, outcome in enumerate(outcomes) if outcome is not None]
    if len(kept) == len(outcomes):
        return table
    rows = plural(
        len(outcomes) - len(kept), "row without a verdict was", "rows without a verdict were"
    )
    return replace(table.take(kept), notes=(*table.notes, f"{rows} left out (`missing`)"))


def _compared_words(
    tests: Sequence[ColumnCondition], by_meaning: Mapping[str, str], sheet: Table
) -> dict[str, frozenset[str]]:
    """The words of each column that the user compares with a word."""
    return {
        test.column: frozenset(
            str(cell).strip().lower()
            for cell in sheet.cells(by_meaning.get(test.column, test.column))
            if not is_missing(cell)
        )
        for test in tests
        if isinstance(test.value, str)
    }


def _trial_rows(
    document: Document, sheet: Table, mapping: ColumnMap
) -> tuple[Table, Mapping[str, str], list[str]]:
    """The rows that are trials, which column means what, and notes on both."""
    if fault := lacking(document.name, sheet.columns, mapping):
        raise fault
    by_meaning, notes = infer_columns(sheet.columns, mapping, sheet.cells)
    sheet, total = without_total(sheet, by_meaning["task"])
    return sheet, by_meaning, [*notes, *total]


def _outcomes(
    name: str,
    table: TrialTable,
    by_meaning: Mapping[str, str],
    sheet: Table,
    mapping: ColumnMap,
    columns: Columns,
) -> list[Outcome | None]:
    """How each row ended; a fault where one does not say, or two columns say different things."""
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    if not tests and not mapping.passed:
        conflict = find_conflict(sheet.columns, by_meaning, sheet.cells)
        if conflict is not None:
            raise conflicting(f"{name}, {table.where(conflict.row)}", conflict)
    outcomes = _by_the_users_words(
        row_outcomes(tests, by_meaning, sheet.cells, columns.get("score", ())),
        tests,
        by_meaning,
        sheet,
        mapping,
    )
    if not tests and not mapping.passed and (fault := _only_ran(name, by_meaning, sheet, outcomes)):
        raise fault
    unknown = [row for row, outcome in enumerate(outcomes) if outcome is None]
    if mapping.missing == "exclude":
        unknown = [row for row in unknown if not _says_nothing(row, tests, by_meaning, sheet)]
    if unknown:
        fault = no_outcome(name, table.where, unknown, by_meaning, sheet, tests)
        twice = _repeated(table, columns)
        unsaid = [
            sheet.cells(column)[row] for column in verdicts_of(tests, by_meaning) for row in unknown
        ]
        raise ReadError(f"{fault}{twice}{_in_one_go(unsaid, mapping, twice=bool(twice))}")
    return outcomes


_WORD = re.compile(r"[^\W\d_][\w /+-]{0,23}")
_MOST_WORDS = 5
"""Words that may say that a trial broke; where a column has more, they say something else."""


def _in_one_go(unsaid: Sequence[Any], mapping: ColumnMap, *, twice: bool) -> str:
    """The arguments that read a table with several faults; nothing where one does, or none do."""
    filled = {str(cell).strip() for cell in unsaid if not is_missing(cell)}
    empty = any(is_missing(cell) for cell in unsaid)
    if len(filled) > _MOST_WORDS or not all(map(_WORD.fullmatch, filled)):
        return ""
    words = ",".join(filter(None, (mapping.error_words, *sorted(filled))))
    ways = [
        *([f"`missing={mapping.missing or 'error'!r}`"] if empty or mapping.missing else []),
        *([f"`error_words={words!r}`"] if words else []),
        *(["`duplicates='last'`"] if twice else []),
    ]
    if len(ways) < 2:
        return ""
    say = "says" if len(filled) == 1 else "say"
    named = ", ".join(sorted(filled))
    broke = f" if {named} {say} that a trial broke" if filled else ""
    return f". All in one go{broke}: {' '.join(ways)}"


def _repeated(table: TrialTable, columns: Columns) -> str:
    """Which rows are one trial: what would be refused next, said with the fault before it."""
    if "trial" not in columns or not {"seed", "at"}.isdisjoint(columns):
        return ""
    rows: dict[tuple[str, ...], list[int]] = {}
    keys = [columns[name] for name in ("system", "task", "trial") if name in columns]
    for row, key in enumerate(zip(*keys, strict=True)):
        rows.setdefault(tuple(map(str, key)), []).append(row)
    twice = [" = ".join(map(table.where, same[:3])) for same in rows.values() if len(same) > 1]
    return f". The same trial: {listed(twice, 5)}; see `duplicates`" if twice else ""


def _by_the_users_words(
    outcomes: list[Outcome | None],
    tests: Sequence[ColumnCondition],
    by_meaning: Mapping[str, str],
    sheet: Table,
    mapping: ColumnMap,
) -> list[Outcome | None]:
    """The outcomes with the user's words for errors, and for rows that say nothing."""
    if mapping.error_words is not None:
        words = {word.strip().lower() for word in mapping.error_words.split(",")}
        cells = zip(*map(sheet.cells, verdicts_of(tests, by_meaning)), strict=True)
        outcomes = [
            Outcome.ERRORED
            if words.intersection(str(cell).strip().lower() for cell in row)
            else own
            for row, own in zip(cells, outcomes, strict=True)
        ]
    if mapping.missing in ("fail", "error"):
        meant = Outcome.FAILED if mapping.missing == "fail" else Outcome.ERRORED
        outcomes = [
            meant if own is None and _says_nothing(row, tests, by_meaning, sheet) else own
            for row, own in enumerate(outcomes)
        ]
    return outcomes


def _says_nothing(
    row: int, tests: Sequence[ColumnCondition], by_meaning: Mapping[str, str], sheet: Table
) -> bool:
    return any(is_missing(sheet.cells(column)[row]) for column in verdicts_of(tests, by_meaning))


def _only_ran(
    name: str, by_meaning: Mapping[str, str], sheet: Table, outcomes: Sequence[Outcome | None]
) -> ReadError | None:
    """The error of a "success" that never varies beside a score that does: it may say "it ran"."""
    column = by_meaning.get("passed", "")
    if usual_name(column) not in MAY_SAY_IT_RAN or {*outcomes} != {Outcome.PASSED}:
        return None
    for other in sheet.columns:
        if "score" not in usual_name(other) or not sheet.has(other):
            continue
        scores = share_cells(sheet.cells(other))
        if len(scores) > 1 and min(scores) < max(scores):
            return ReadError(
                f'{name}: "{short(column)}" is the same in every row, but "{short(other)}" goes '
                f"from {min(scores):g} to {max(scores):g}: does it say that a trial passed, or "
                f"only that it ran? Say `passed={short(column)!r}`, or what passes with "
                f"`pass_if='{short(other)}>=...'`"
            )
    return None


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The transcripts in the cells of a column; nothing if there is no such column."""
    if document.kind != "parquet":
        how, mapping = runs_of(document, mapping)[1:]  # its cells are not held meanwhile
        if how:
            return
    names = row_names(document, mapping)
    if document.path is not None and ROW_COLUMN in names and not mapping.transcript:
        # What `history export --transcripts` wrote beside a file of trials.
        if (shard := transcripts_beside(document.path)) is not None:
            for text in read_rows(shard, str(shard), table_of(document).cells(ROW_COLUMN)):
                yield None if text is None else Transcript.from_json(text)
        return
    column = transcript_column(names, mapping)
    if column is None:
        return
    if not has_column(names, column):
        raise missing_column(document.name, "transcript", column, names)
    rows = None
    if ends_in_total(document):
        rows = len(_trial_rows(document, table_of(document, mapping), mapping)[0])
    wanted = None if mapping.missing == "exclude" else document.wanted  # its rows are others
    cells: Iterable[Any] = islice(cells_one_by_one(document, column, mapping, wanted), rows)
    if mapping.missing == "exclude":
        sheet, by_meaning, _ = _trial_rows(document, table_of(document, mapping), mapping)
        tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
        scores = sheet.cells(by_meaning["score"]) if "score" in by_meaning else ()
        outcomes = row_outcomes(tests, by_meaning, sheet.cells, scores)
        cells = (cell for cell, ended in zip(cells, outcomes, strict=False) if ended is not None)
    for cell in cells:
        yield None if is_missing(cell) else transcript_of(cell)


def check_columns(document: Document, mapping: ColumnMap) -> None:
    """Refuse a table without a column that the user named, or that no table can lack."""
    if is_own_file(document):
        return
    fault = lacking(document.name, column_names(document, mapping), mapping)
    if fault and document.kind in ("lines", "array", "json"):  # the first entry may lack some
        fault = lacking(document.name, table_of(document, mapping).columns, mapping)
    if fault is None:
        return
    sheet, how, guessed = runs_of(document, mapping)
    if how:
        return
    if fault := lacking(document.name, sheet.columns, guessed, sheet):
        raise fault


def lacking(
    name: str, columns: Collection[str], mapping: ColumnMap, sheet: Table | None = None
) -> ReadError | None:
    """The error for a file that has no column for the task or the outcome; None if it has both.

    With the cells of the sheet it names the column that may be meant.
    """
    for meaning, column in _asked_for(columns, mapping):
        if not has_column(columns, column):
            return missing_column(name, meaning, column, columns)
    by_meaning = find_columns(columns, mapping)
    it_has = f"It has the columns {few(columns)}"
    ways = {"task": "COLUMN", "passed": "COLUMN", "pass_if": "'COLUMN>=0.8'"}
    if sheet is not None:
        likely = likely_columns(columns, mapping, sheet.cells)
        no_verdict = not mapping.pass_if and by_meaning.keys().isdisjoint(VERDICTS)
        if no_verdict and (fault := _a_column_each(name, sheet, by_meaning, likely)):
            return fault
        ways |= {meaning: repr(column) for meaning, column in likely.items()}
    if "task" not in by_meaning:
        return UnknownFile(
            f"{name}: no column says which task a row is about; say `task={ways['task']}`. {it_has}"
        )
    if not mapping.pass_if and "passed" not in by_meaning and "score" not in by_meaning:
        if sheet is not None and (rate := rate_column(columns, sheet.cells)):
            return ReadError(
                f'{name}: "{short(rate)}" holds a rate of each task, but nothing says of how many '
                'trials; add their number as a column "n", or give a row for each trial'
            )
        return UnknownFile(
            f"{name}: no column says whether a trial passed; say `passed={ways['passed']}`, "
            f"`score=COLUMN` or `pass_if={ways['pass_if']}`. {it_has}"
        )
    return None


def _a_column_each(
    name: str, sheet: Table, by_meaning: Mapping[str, str], likely: Mapping[str, str]
) -> UnknownFile | None:
    """The error for a table with a column of verdicts for each agent, or for each task."""
    columns = columns_of_verdicts(sheet, by_meaning)
    if not columns or (
        "task" not in by_meaning and ("task" in likely or "trial" not in by_meaning)
    ):
        return None
    what, meaning = ("an agent", "system") if "task" in by_meaning else ("a task", "task")
    return UnknownFile(
        f"{name}: {few(columns)} each say how trials ended. If each is {what}, say "
        f"`{meaning}={','.join(columns)!r}`; if one of them is the verdict, name it, such as "
        f"`passed={likely.get('passed', columns[0])!r}`"
    )


def notes_on(
    columns: Collection[str],
    by_meaning: Mapping[str, str],
    mapping: ColumnMap,
    *,
    own: bool,
    repeats: Callable[[], bool],
    cells: Mapping[str, Iterable[Any]] | None = None,
    numbers: Sequence[Any] = (),
    percent: bool = False,
) -> tuple[str, ...]:
    """What to know about a table: the columns that were not used, and what passes.

    `repeats` says whether nothing but their order distinguishes the trials of a task. A column of
    `cells` that says for some rows how they ended may hold the labels of a person; one that was
    crossed with tasks, conditions. `numbers` are those of trials, where the table has them;
    `percent` says that scores are written as percentages.
    """
    notes: list[str] = []
    unused = [] if own else _unused(columns, by_meaning, mapping)
    if cells and unused and not mapping.left_out() & {"at"}:
        held = {name: values for name, values in cells.items() if isinstance(values, Sequence)}
        pooled = pooled_notes(held, [name for name in unused if name in held], by_meaning, numbers)
        notes += pooled.values()
        unused = [name for name in unused if name not in pooled]
    # Named only if one of them may distinguish what is pooled.
    if unused and (mapping.chosen() or mapping.pass_if or repeats()):
        options = {
            "system": "the agent's with `system=COLUMN`",
            "trial": "the trial's with `trial=COLUMN`",
        }
        if labels := next(filter(partial(_may_label, cells or {}), unused), None):
            options["human_labels"] = f"a person's verdicts with `human_labels={labels!r}`"
        open_ones = [option for meaning, option in options.items() if meaning not in by_meaning]
        hint = f" (name {', '.join(open_ones)})" if open_ones else ""
        notes.append(f"{UNUSED_COLUMNS}{few(unused)}{hint}")
    if not mapping.pass_if and "passed" not in by_meaning:
        notes.append(score_passes_note(by_meaning["score"], percent=percent))
    return tuple(notes)


def _may_label(cells: Mapping[str, Iterable[Any]], column: str) -> bool:
    """Whether a column says of some rows how they ended, and nothing of others."""
    values = cells.get(column, ())
    return says_outcomes(values) and any(map(is_missing, values))


def _asked_for(columns: Collection[str], mapping: ColumnMap) -> Iterator[tuple[str, str]]:
    for meaning, column in mapping.chosen().items():
        for part in name_parts(columns, column) if meaning in SEVERAL else [column]:
            yield "factor" if meaning == "at" else meaning, part
    if not mapping.pass_if:
        return
    by_meaning = find_columns(columns, mapping)
    for test in parse_pass_if(mapping.pass_if):
        yield "pass_if", by_meaning.get(test.column, test.column)


def _tasks(
    by_meaning: Mapping[str, str], mapping: ColumnMap, sheet: Table
) -> tuple[list[Any], list[str]]:
    """The task of each row; rows called "refund #1", "refund #2" are runs of one task."""
    column = by_meaning["task"]
    cells = name_cells(sheet.columns, column, sheet.cells)
    named = not mapping.task and sheet.has(column) and "trial" not in by_meaning
    bases = None
    if named and all(issubclass(kind, str) for kind in set(map(type, cells))):
        bases = without_numbers(cells)
    return (cells, []) if bases is None else (bases, [numbered_note(column)])


def _format(document: Document, mapping: ColumnMap) -> str:
    if is_own_file(document):
        return "passhat trials"
    kinds = {"text": "CSV table", "lines": "JSON Lines table", "parquet": "Parquet table"}
    kind = kinds.get(document.kind, "JSON table")
    if ".xls" in document.name.lower():
        kind = "sheet of a spreadsheet"
    key = lists_runs(document, mapping)
    return kind if key is None else f'{kind} whose rows list trials ("{short(key)}")'


def left_out_columns(
    columns: Collection[str],
    by_meaning: Mapping[str, str],
    mapping: ColumnMap,
    *,
    ended: bool = False,
) -> tuple[str, ...]:
    """The columns that nothing was read from, in a few words; `ended` says that its column was."""
    read = {ROW_COLUMN, ENDED_COLUMN} if ended else {ROW_COLUMN}
    unused = [name for name in _unused(columns, by_meaning, mapping) if name not in read]
    return (f"{'column' if len(unused) == 1 else 'columns'} {few(unused, 6)}",) if unused else ()


def _unused(
    columns: Collection[str], by_meaning: Mapping[str, str], mapping: ColumnMap
) -> list[str]:
    used = tuple(part for column in by_meaning.values() for part in name_parts(columns, column))
    if len(columns) > MOST_KEPT:
        return list(_unused_columns.__wrapped__(tuple(columns), used, mapping))
    return list(_unused_columns(tuple(columns), used, mapping))


# A folder holds thousands of tables with the same columns.
@lru_cache(maxsize=64)
def _unused_columns(
    columns: tuple[str, ...], by_meaning: tuple[str, ...], mapping: ColumnMap
) -> tuple[str, ...]:
    asked = {column for _, column in _asked_for(columns, mapping)} | set(by_meaning)
    asked |= {transcript_column(columns, mapping) or ""}
    asked |= set(find_columns(columns, ColumnMap()).values()) if mapping.left_out() else set()
    used = asked | {column.partition(".")[0] for column in asked}
    return tuple(column for column in columns if column not in used)


def only_ordered(columns: Columns) -> bool:
    """Whether nothing but their order distinguishes a system's trials of a task."""
    if "trial" in columns:
        return False
    keys = [map(str, columns[name]) for name in ("system", "task") if name in columns]
    return len(set(zip(*keys, strict=True))) < len(columns["task"])
