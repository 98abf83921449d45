"""Counts of each task from a big table or a saved report, and some failures of a dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.assemble import judged_only, one_name, scores_left_out
from passhat.ingest.document import Document, Limits, torn_bytes
from passhat.ingest.formats import tables
from passhat.ingest.query_engines import (
    VIEW,
    Engine,
    Shape,
    dataset_files,
    duckdb_database,
    duckdb_names,
    has_duckdb,
    has_engine,
    open_engine,
    quoted,
)
from passhat.ingest.read import read_trials, recognise
from passhat.ingest.remote import (
    ROW_COLUMN,
    called_by_address,
    read_rows,
    sources_by_address,
    transcripts_beside,
)
from passhat.ingest.repeated_tests import numbered_note, without_numbers
from passhat.ingest.reshape import may_reshape
from passhat.ingest.rows import (
    aggregates,
    conflicting,
    csv_lines,
    is_own_file,
    means,
    never_holds,
    never_met,
    own_end,
    separator_of,
    table_facts,
)
from passhat.ingest.sources import STDIN, Input, as_inputs
from passhat.messages import listed, plural
from passhat.records import FEATURES, Categorical, Duplicates, FeatureSums, Outcome, Source, Tally
from passhat.records.columns import (
    ALIASES,
    LETTER_GRADES,
    NO_ERROR,
    ColumnMap,
    find_conflict,
    infer_columns,
    is_weak,
    leave_out,
    letter_grades,
    milliseconds,
    name_parts,
    outcomes_of,
    parse_pass_if,
    scale_notes,
    seen,
    unmatched_word,
    usual_name,
    verdict_columns,
)
from passhat.records.tally import significant
from passhat.records.transcript import (
    MOST_OF_A_TASK,
    CleanTexts,
    Transcript,
    TranscriptKey,
    Transcripts,
)
from passhat.records.trial import ENDED_COLUMN, first_number, stated_end

BIG_BYTES = 32 * 2**20
BIG_ROWS = 1_000_000
"""From this size on a plain table is counted by an engine and never loaded as rows."""
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def read_tallies(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
    limits: Limits | None = None,
) -> list[Tally]:
    r"""The counts per task of each system; a big plain table is streamed, in bounded memory.

    >>> [tally.passed.tolist() for tally in read_tallies(b"task,passed\na,1\na,1\nb,0\n")]
    [[2, 0]]
    """
    tallies = count_big(source, format=format, mapping=mapping, duplicates=duplicates)
    if tallies is not None:
        return tallies
    trials = read_trials(
        source, format=format, mapping=mapping, duplicates=duplicates, limits=limits
    )
    return [trials.tally(system) for system in trials.systems]


@called_by_address()
def count_big(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
) -> list[Tally] | None:
    """The counts of a single CSV, JSON Lines or Parquet table too big to load as rows.

    Or of a saved report on such a table. None if the rows themselves can be read, or must be.
    """
    mapping = mapping or ColumnMap()
    if format in (None, "passhat") and (saved := _count_saved(source, mapping)) is not None:
        return saved
    by_row = mapping.missing or mapping.error_words or mapping.reference_level
    if format not in (None, "table") or duplicates == "last" or by_row:
        return None
    table = _find_big(source, mapping)
    counted = None if table is None else _stream(table, mapping, duplicates)
    return counted and [
        replace(tally, sources=sources_by_address(tally.sources)) for tally in counted
    ]


class _BigTable:
    """A file that an engine counts; the engine starts when it is first used."""

    def __init__(self, path: Path, shape: Shape) -> None:
        self.path, self.shape = path, shape

    @cached_property
    def engine(self) -> Engine:
        if self.shape != "csv":
            return open_engine(self.path, self.shape)
        head = _head(self.path)
        line, header = next(csv_lines(head))
        above = line - 1 - sum(cell.count("\n") for cell in header)
        return open_engine(self.path, "csv", separator_of(head.data), above)


def _find_big(source: Input | Sequence[Input], mapping: ColumnMap) -> _BigTable | None:
    inputs = as_inputs(source)
    if len(inputs) != 1 or isinstance(inputs[0], bytes) or inputs[0] == STDIN:
        return None
    path = Path(inputs[0])
    if (shape := _shape(path)) is None:
        return None
    table = _BigTable(path, shape)
    if shape == "parquet":
        # Without an engine it is read row by row.
        return table if has_engine() and table.engine.rows >= BIG_ROWS else None
    size = path.stat().st_size
    if size < BIG_BYTES or (shape == "lines" and torn_bytes(path, size)):
        return None
    try:  # by the first lines: a table, and not some tool's own log
        return table if recognise(_head(path), mapping).name == "table" else None
    except ReadError:
        return None


def _shape(path: Path) -> Shape | None:
    """How a file is written, or a folder of Parquet files and nothing else, at any depth."""
    if os.path.isdir(path):  # noqa: PTH112 # Path raises if a name is too long
        files = dataset_files(path)
        first = next(files, Path()).suffix == ".parquet"
        return "parquet" if first and all(file.suffix == ".parquet" for file in files) else None
    if not os.path.isfile(path):  # noqa: PTH113 # as above
        return None
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head.startswith(b"PAR1"):
        return "parquet"
    line = head.partition(b"\n")[0].strip()
    if line.startswith(b"{") and line.endswith(b"}"):
        return "lines"
    binary = b"\0" in head or head.startswith((b"PK", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    return None if binary or line.startswith((b"{", b"[", b"<")) else "csv"


def _stream(table: _BigTable, mapping: ColumnMap, duplicates: Duplicates) -> list[Tally] | None:
    """Counts by an engine; None if the table must be read row by row."""
    engine = table.engine
    plan = _plan_query(table.path, engine, mapping)
    if plan is None:
        return None
    plan, groups = _understand_groups(plan, engine.query(_render_query(engine, plan)), mapping)
    _check_means(engine, plan, groups, mapping)
    names = _names(plan, groups, mapping)
    counts = _summed(groups, names) if plan.summed else _by_outcome(plan, groups, names)
    ends = set(counts.outcome.tolist()) - {Outcome.ERRORED}
    if mapping.pass_if and len(ends) == 1:
        note = _check_compared(engine, plan, mapping.pass_if)
        if ends == {Outcome.FAILED}:
            plan = replace(plan, notes=(*plan.notes, note))
    if duplicates == "error" and "trial" in plan.by_meaning:
        _check_counted_duplicates(engine, plan, groups, names)
    scored = "score_count" in groups and _scores_fit(plan, groups, mapping)
    source = _source(engine, table.shape, plan, groups, mapping)
    tallies = []
    for code, system in sorted(enumerate(counts.systems.names), key=lambda pair: pair[1]):
        rows = np.flatnonzero(counts.systems.codes == code)
        sums = {name: column[rows] for name, column in counts.sums.items()}
        tasks, outcome = counts.tasks.take(rows), counts.outcome[rows]
        tally = _tally(system, tasks, outcome, sums, plan.features, scored=scored)
        tallies.append(replace(tally, sources=(source,)))
    return tallies


def _check_compared(engine: Engine, plan: _GroupQuery, pass_if: str) -> str:
    """Refuse a comparison with a word that the column never holds; the note where none passes."""
    tests = parse_pass_if(pass_if)
    words = {}
    ranges = {}
    for test in tests:
        column = quoted(plan.by_meaning.get(test.column, test.column))
        if isinstance(test.value, float):
            ends = engine.query(f"SELECT MIN({column}) AS low, MAX({column}) AS high FROM {VIEW}")  # noqa: S608 # quoted
            ranges[test.column] = float(ends["low"][0]), float(ends["high"][0])
        else:
            cells = engine.query(f"SELECT DISTINCT {column} AS c FROM {VIEW}")["c"]  # noqa: S608 # quoted
            words[test.column] = {str(cell).strip().lower() for cell in cells if cell is not None}
    if odd := unmatched_word(tests, words):
        raise never_holds(str(plan.path), odd, words[odd.column])
    return never_met(pass_if, words, ranges)


def _check_means(
    engine: Engine, plan: _GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap
) -> None:
    """Refuse scores that are likely means, as those of a small table are."""
    score = plan.by_meaning.get("score", "")
    if engine.columns.get(score) != "number" or max(groups["n"], default=0) > 1:
        return
    scores = zip(groups["score_count"], groups["score_total"], strict=True)
    names = {
        name: groups[short] for name, short in (("system", "s"), ("task", "t")) if short in groups
    }
    cells = {score: [total if count else None for count, total in scores], **names}
    by_meaning = {**plan.by_meaning, **{name: name for name in names}}  # of several columns, joined
    if fault := means(str(plan.path), cells, by_meaning, mapping, cells.__getitem__):
        raise fault


def _source(
    engine: Engine,
    shape: Shape,
    plan: _GroupQuery,
    groups: Mapping[str, list[Any]],
    mapping: ColumnMap,
) -> Source:
    """The file as a source, without its hash: that would be reading it twice."""
    own = shape == "lines" and is_own_file(_head(plan.path))

    def repeats() -> bool:
        names = zip(groups.get("s", groups["t"]), groups["t"], strict=True)
        return "trial" not in plan.by_meaning and len(set(names)) < int(sum(groups["n"]))

    notes = tables.notes_on(engine.columns, plan.by_meaning, mapping, own=own, repeats=repeats)
    if not _scores_fit(plan, groups, mapping):
        highest = max(high for high in groups["score_high"] if high is not None)
        notes += (judged_only(mapping.pass_if) if mapping.pass_if else scores_left_out(highest),)
    kinds = {"csv": "CSV table", "lines": "JSON Lines table", "parquet": "Parquet table"}
    facts = {"format": kinds[shape], **table_facts(plan.by_meaning, mapping)}
    ended = own_end(_head(plan.path)) if own else None
    if not own and engine.columns.get(ENDED_COLUMN) == "text":
        ends = f"SELECT DISTINCT {quoted(ENDED_COLUMN)} AS e FROM {VIEW} LIMIT 9"  # noqa: S608
        ended = stated_end(engine.query(ends)["e"])
    unused = (
        ()
        if own
        else tables.left_out_columns(
            engine.columns, plan.by_meaning, mapping, ended=ended is not None
        )
    )
    return Source(
        name=str(plan.path),
        format="table",
        sha256="",
        notes=(*plan.notes, *notes),
        ended=ended,
        read_as=tables.READING.facts(facts, unused),
    )


def _head(path: Path) -> Document:
    with path.open("rb") as stream:
        lines = b"".join(stream.readlines(2**16))
    return Document(path.name, path=None, data=lines, limits=Limits())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counts:
    """A row for each system, task and outcome: their sums by column."""

    systems: Categorical
    tasks: Categorical
    outcome: NDArray[np.int8]
    sums: Mapping[str, Floats]


def _by_outcome(
    plan: _GroupQuery, groups: Mapping[str, list[Any]], names: tuple[Categorical, Categorical]
) -> _Counts:
    sums = {
        name: np.array([0 if v is None else v for v in values], dtype=np.float64)
        for name, values in groups.items()
        if name.endswith(("_count", "_total", "_squares")) or name == "n"
    }
    outcome = _outcome_codes(plan, groups)
    return _Counts(systems=names[0], tasks=names[1], outcome=outcome, sums=sums)


def _summed(groups: Mapping[str, list[Any]], names: tuple[Categorical, Categorical]) -> _Counts:
    """Of groups whose passes were added up: all passes, then all failures."""
    systems, tasks = (Categorical(own.names, np.tile(own.codes, 2)) for own in names)
    n, passes = (np.array(groups[name], dtype=np.float64) for name in ("n", "passes"))
    outcome = np.repeat(np.array((Outcome.PASSED, Outcome.FAILED), dtype=np.int8), n.size)
    sums = {"n": np.concatenate((passes, n - passes))}
    return _Counts(systems=systems, tasks=tasks, outcome=outcome, sums=sums)


def _outcome_codes(plan: _GroupQuery, groups: Mapping[str, list[Any]]) -> NDArray[np.int8]:
    """How the rows of each group ended; the same words as for small tables."""
    values = list(dict.fromkeys(groups["o"]))
    if plan.by_word:  # what P means depends on the other words
        known = dict(zip(values, outcomes_of(values), strict=True))
    else:
        known = {
            cell: None if cell is None or cell != cell else Outcome(bool(cell)) for cell in values
        }
    if "e" not in groups and None not in known.values():
        return np.array([known[value] for value in groups["o"]], dtype=np.int8)
    broken = groups.get("e", [False] * len(groups["o"]))
    codes = []
    for value, broke in zip(groups["o"], broken, strict=True):
        outcome = known[value]
        if outcome is not Outcome.PASSED and broke:
            outcome = Outcome.ERRORED
        if outcome is None:
            raise _no_outcome(plan, groups, value)
        codes.append(outcome)
    return np.array(codes, dtype=np.int8)


def _no_outcome(plan: _GroupQuery, groups: Mapping[str, list[Any]], value: Any) -> ReadError:
    rows = sum(n for n, other in zip(groups["n"], groups["o"], strict=True) if other == value)
    where = f"{plan.path}, {plan.outcome.strip(chr(34))}"
    if value is None or value != value:
        return ReadError(
            f"{where}: some rows are empty; `missing='error'` counts them as errors, "
            "`missing='fail'` as failures, `missing='exclude'` leaves them out"
        )
    return ReadError(
        f"{where}: {value!r}, in {plural(rows, 'row')}, does not say whether the trial passed. "
        f"The column holds {seen(groups['o'])}; say what passes with `pass_if`"
    )


def _names(
    plan: _GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap
) -> tuple[Categorical, Categorical]:
    tasks = groups["t"]
    systems = groups.get("s", [plan.path.name.partition(".")[0]] * len(tasks))
    for name, values in (("task", tasks), ("system", systems)):
        if None in values:
            column = plan.by_meaning.get(name, name)
            raise ReadError(f'{plan.path}, column "{column}": some rows name no {name}')
    labels = Categorical.of(map(str, systems))
    if mapping.name is not None:
        labels = Categorical((one_name(str(plan.path), labels.names, mapping.name),), labels.codes)
    return labels, Categorical.of(map(str, tasks))


def _scores_fit(plan: _GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap) -> bool:
    """Whether scores lie in [0, 1]; others can only be judged, and then are left out."""
    if plan.score is None:
        return True
    lows = [low for low in groups["score_low"] if low is not None]
    highs = [high for high in groups["score_high"] if high is not None]
    if not lows or (min(lows) >= 0 and max(highs) <= 1):
        return True
    if mapping.pass_if or "passed" in plan.by_meaning:
        return False
    raise ReadError(
        f'{plan.path}, column "{plan.by_meaning["score"]}": scores must lie in [0, 1], but reach '
        f"from {min(lows):g} to {max(highs):g}; say what passes with `pass_if`"
    )


def _tally(
    system: str,
    task: Categorical,
    outcome: NDArray[np.int8],
    columns: Mapping[str, Floats],
    features: Sequence[str],
    *,
    scored: bool,
) -> Tally:
    order = np.array(sorted(range(len(task.names)), key=task.names.__getitem__), dtype=np.intp)
    shape = (len(Outcome), len(order))
    cells = outcome.astype(np.int64) * shape[1] + np.argsort(order)[task.codes]

    def sums(name: str) -> Floats:
        added = np.bincount(cells, weights=columns[name], minlength=shape[0] * shape[1])
        # Each engine adds in its own order: keep the digits that do not depend on it.
        return significant(added.astype(np.float64).reshape(shape))

    def counts(name: str) -> Counts:
        return sums(name).astype(np.int64)

    n = counts("n")
    score_total = score_squares = n[Outcome.PASSED].astype(np.float64)
    if scored:
        # A completed trial without a score has that of its outcome.
        own = n[Outcome.PASSED] - counts("score_count")[Outcome.PASSED]
        score_total = own + sums("score_total")[: Outcome.ERRORED].sum(axis=0)
        score_squares = own + sums("score_squares")[: Outcome.ERRORED].sum(axis=0)
    return Tally(
        system=system,
        tasks=tuple(task.names[i] for i in order.tolist()),
        passed=n[Outcome.PASSED],
        failed=n[Outcome.FAILED],
        errored=n[Outcome.ERRORED],
        score_total=score_total,
        score_squares=score_squares,
        features={
            name: FeatureSums(
                count=counts(f"{name}_count"),
                total=sums(f"{name}_total"),
                squares=sums(f"{name}_squares"),
            )
            for name in features
        },
    )


# The queries on a big table: its counts by system, task and outcome as written, and duplicates.
_LOOKED_AT = 200
"""This many rows show whether a column names agents."""

MOST_NUMBERS = 1_000_000
"""Runs of a task up to which expected fingerprints are computed: they take 8 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupQuery:
    """The columns of a query, and the SQL of its outcome and score."""

    path: Path
    by_meaning: Mapping[str, str]
    outcome: str
    by_word: bool
    summed: bool
    features: tuple[str, ...]
    score: str | None = None
    notes: tuple[str, ...] = ()


def _plan_query(path: Path, engine: Engine, mapping: ColumnMap) -> _GroupQuery | None:
    """The query for a table; None if it must be read row by row."""
    columns = engine.columns
    by_meaning, notes = infer_columns(
        columns,
        mapping,
        lambda column: _first_cells(engine, column),
        lambda column, within: _rows_differ(engine, column, within),
    )
    if fault := aggregates(
        str(path), columns, by_meaning, mapping, lambda column: _telling_cells(engine, column)
    ):
        raise fault
    score = _score_sql(engine, by_meaning)
    outcome, by_word = _outcome_sql(columns, by_meaning, mapping, score)
    parts = [part for column in by_meaning.values() for part in name_parts(columns, column)]
    simple = all(part in columns for part in parts)
    by_row = not by_meaning.keys().isdisjoint(("human_labels", "at")) or mapping.factor_pattern
    if outcome is None or "task" not in by_meaning or not simple or by_row or may_reshape(columns):
        return None
    features = tuple(name for name in FEATURES if name in by_meaning)
    for name in (*features, *(["score"] if score is None else [])):
        if name in by_meaning and columns[by_meaning[name]] not in ("number", "boolean"):
            raise ReadError(
                f'{path}, column "{by_meaning[name]}": must hold numbers for {name}, and in a '
                f"table of this size without marks such as $ or %; or {leave_out(name)}"
            )
    if mapping.pass_if:
        notes += scale_notes(
            parse_pass_if(mapping.pass_if),
            lambda column: _telling_cells(engine, by_meaning.get(column, column)),
            lambda what: ReadError(f"{path}, {what}"),
        )
    elif not mapping.passed:
        _check_conflicts(path, engine, by_meaning)
    # If nothing else is summed by outcome, adding up 0 and 1 is faster than grouping by them;
    # as doubles, which is exact far beyond any number of rows, it is faster still.
    alone = by_word and not features and not {"score", "error"} & set(by_meaning)
    return _GroupQuery(
        path=path,
        by_meaning=by_meaning,
        outcome=outcome,
        by_word=by_word,
        summed=alone and engine.zero_or_one(by_meaning["passed"]),
        features=features,
        score=score,
        notes=tuple(notes),
    )


def _rows_differ(engine: Engine, column: str, within: Sequence[str]) -> bool:
    """Whether some rows that agree in all columns `within` differ in a column."""
    if not engine.columns.keys() >= {column, *within}:
        return False
    name, keys = quoted(column), ", ".join(map(quoted, within))
    ends = f"MIN({name}) AS low, MAX({name}) AS high"
    groups = engine.query(f"SELECT {keys}, {ends} FROM {VIEW} GROUP BY {keys}")  # noqa: S608 # names are quoted
    return any(low != high for low, high in zip(groups["low"], groups["high"], strict=True))


def _first_cells(engine: Engine, column: str) -> list[Any]:
    """Some cells of a column, enough to tell names from prompts: different ones of tasks."""
    if column not in engine.columns:
        return []
    distinct = usual_name(column) in ALIASES["task"]
    asked = f"{'DISTINCT ' if distinct else ''}{quoted(column)}"
    return engine.query(f"SELECT {asked} AS c FROM {VIEW} LIMIT {_LOOKED_AT}")["c"]  # noqa: S608 # the name is quoted


def _check_conflicts(path: Path, engine: Engine, by_meaning: Mapping[str, str]) -> None:
    """Refuse a table of which two columns disagree on what passed."""
    columns = [name for name in verdict_columns(engine.columns) if not is_weak(name)]
    if "passed" not in by_meaning or by_meaning["passed"] not in columns or len(columns) == 1:
        return
    asked = ", ".join(f"{quoted(column)} AS c{place}" for place, column in enumerate(columns))
    grouped = ", ".join(f"c{place}" for place in range(len(columns)))
    inner = f"SELECT {asked} FROM {VIEW}"  # noqa: S608 # names are quoted
    groups = engine.query(f"SELECT {grouped} FROM ({inner}) AS picked GROUP BY {grouped}")  # noqa: S608 # as above
    cells = {column: groups[f"c{place}"] for place, column in enumerate(columns)}
    if conflict := find_conflict(columns, by_meaning, cells.__getitem__):
        raise conflicting(str(path), conflict)


def _render_query(engine: Engine, plan: _GroupQuery) -> str:
    """SQL for counts and sums by system, task, outcome as written, and whether it broke.

    A plan that is `summed` has the passes in a column instead of a row for each outcome.

    Scores and features are summed by outcome anyway, and grouping by the outcome as it is written
    leaves its meaning to the same table of words that small files are read by.
    """
    names = {"system": "s", "task": "t"}
    picks = [
        f"{_name_sql(engine, plan.by_meaning[name])} AS {short}"
        for name, short in names.items()
        if name in plan.by_meaning
    ]
    picks.append(f"{plan.outcome} AS {'passed' if plan.summed else 'o'}")
    if "error" in plan.by_meaning:
        picks.append(f"{_error_sql(engine, plan)} AS e")
    sums = ["COUNT(*) AS n", *(["SUM(CAST(passed AS DOUBLE)) AS passes"] if plan.summed else [])]
    if _whole_trials(engine, plan):
        picks.append(f"{quoted(plan.by_meaning['trial'])} AS i")
        sums.append(f"{engine.fingerprint('i')} AS fingerprint")
    values = {name: quoted(plan.by_meaning[name]) for name in plan.features}
    for name, value in (values | ({"score": plan.score} if plan.score else {})).items():
        scale = " / 1000" if name == "seconds" and milliseconds(plan.by_meaning[name]) else ""
        picks.append(f"CAST({value} AS DOUBLE){scale} AS {name}")
        sums += [
            f"COUNT({name}) AS {name}_count",
            f"SUM({name}) AS {name}_total",
            f"SUM({name} * {name}) AS {name}_squares",
        ]
    if plan.score:
        sums += ["MIN(score) AS score_low", "MAX(score) AS score_high"]
    keys = [pick.rpartition(" AS ")[2] for pick in picks if pick.endswith((" s", " t", " o", " e"))]
    header = ' WHERE "schema" IS NULL' if "schema" in engine.columns else ""
    inner = f"SELECT {', '.join(picks)} FROM {VIEW}{header}"  # noqa: S608 # names are quoted
    asked, grouped = ", ".join([*keys, *sums]), ", ".join(keys)
    return f"SELECT {asked} FROM ({inner}) AS picked GROUP BY {grouped}"  # noqa: S608 # as above


def _whole_trials(engine: Engine, plan: _GroupQuery) -> bool:
    """Whether trials are given by number."""
    return "trial" in plan.by_meaning and engine.columns[plan.by_meaning["trial"]] == "number"


def _name_sql(engine: Engine, column: str) -> str:
    """The names in a column, or in several that commas join, as SQL."""
    parts = name_parts(engine.columns, column)
    if len(parts) == 1:
        return quoted(parts[0])
    return f"CONCAT_WS('/', {', '.join(f'CAST({quoted(part)} AS VARCHAR)' for part in parts)})"


def _understand_groups(
    plan: _GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap
) -> tuple[_GroupQuery, Mapping[str, list[Any]]]:
    """The groups as rows of a small table are understood: letters as scores, numbered names."""
    groups = _with_letter_scores(plan, groups)
    tasks = groups["t"]
    numbered = (
        not mapping.task and "trial" not in plan.by_meaning and "," not in plan.by_meaning["task"]
    )
    numbered = numbered and all(isinstance(task, str) for task in tasks)
    bases = without_numbers(tasks) if numbered else None
    if bases is None:
        return plan, groups
    note = numbered_note(plan.by_meaning["task"])
    return replace(plan, notes=(*plan.notes, note)), {**groups, "t": bases}


def _with_letter_scores(
    plan: _GroupQuery, groups: Mapping[str, list[Any]]
) -> Mapping[str, list[Any]]:
    """The scores of Inspect's letter grades, where those are the verdicts."""
    by_letter = plan.by_word and not plan.summed and not plan.score
    grades = letter_grades(groups["o"]) if by_letter else None
    if grades is None:
        return groups
    pairs = list(zip(groups["n"], grades, strict=True))
    return {
        **groups,
        "score_count": [0 if grade is None else n for n, grade in pairs],
        "score_total": [n * (grade or 0.0) for n, grade in pairs],
        "score_squares": [n * (grade or 0.0) ** 2 for n, grade in pairs],
    }


def _check_counted_duplicates(
    engine: Engine,
    plan: _GroupQuery,
    groups: Mapping[str, list[Any]],
    names: tuple[Categorical, Categorical],
) -> None:
    """Refuse a table in which a system and task have a trial twice; `groups` are its counts."""
    if _whole_trials(engine, plan) and _numbered_on(engine, groups, names):
        return
    # With gaps, or names instead of numbers, every trial must be looked at.
    given = [
        plan.by_meaning[name] for name in ("system", "task", "trial") if name in plan.by_meaning
    ]
    keys = [quoted(part) for column in given for part in name_parts(engine.columns, column)]
    listing = ", ".join(keys)
    twice = engine.query(
        f"SELECT {listing}, COUNT(*) AS n FROM {VIEW} GROUP BY {listing} "  # noqa: S608 # as above
        f"HAVING COUNT(*) > 1 ORDER BY {listing} LIMIT 6"
    )
    if not twice["n"]:
        return
    shown = [" / ".join(map(str, key)) for key in zip(*list(twice.values())[:-1], strict=True)]
    raise ReadError(
        f"{plan.path}: trials occur more than once: {listed(shown, 5)}. Pass "
        "`duplicates='keep'` if they are different trials"
    )


def _score_sql(engine: Engine, by_meaning: Mapping[str, str]) -> str | None:
    """A score as SQL: a number, or the score of an Inspect letter grade; else None."""
    if "score" not in by_meaning or by_meaning["score"] not in engine.columns:
        return None
    column = quoted(by_meaning["score"])
    if engine.columns[by_meaning["score"]] in ("number", "boolean"):
        return column
    words = engine.query(f"SELECT DISTINCT {column} AS c FROM {VIEW} LIMIT {_LOOKED_AT}")["c"]  # noqa: S608 # the name is quoted
    if letter_grades(words) is None:
        return None
    cases = " ".join(f"WHEN {_literal(word)} THEN {value}" for word, value in LETTER_GRADES.items())
    return f"CASE LOWER(TRIM({column})) {cases} END"


def _telling_cells(engine: Engine, column: str) -> list[Any]:
    """The largest cell of a column of numbers and one between 0 and 1; else the first ones."""
    if engine.columns.get(column) != "number":
        return _first_cells(engine, column)
    name = quoted(column)
    part = f"MIN(CASE WHEN {name} > 0 AND {name} < 1 THEN {name} END)"
    ends = engine.query(f"SELECT MAX({name}) AS high, {part} AS part FROM {VIEW}")  # noqa: S608 # the name is quoted
    return [*ends["high"], *ends["part"]]


def _outcome_sql(
    columns: Mapping[str, str], by_meaning: Mapping[str, str], mapping: ColumnMap, score: str | None
) -> tuple[str | None, bool]:
    if not mapping.pass_if:
        if "passed" in by_meaning:
            return quoted(by_meaning["passed"]), True
        if "score" not in by_meaning:
            return None, False
        return f"{score or quoted(by_meaning['score'])} >= 1", False
    parts = []
    for test in parse_pass_if(mapping.pass_if):
        column = by_meaning.get(test.column, test.column)
        numeric = isinstance(test.value, float)
        if columns.get(column) != ("number" if numeric else "text"):
            return None, False
        symbol = {"==": "=", "!=": "<>"}.get(test.symbol, test.symbol)
        if numeric:
            parts.append(f"{quoted(column)} {symbol} {test.value}")
        else:
            parts.append(f"LOWER(TRIM({quoted(column)})) {symbol} {_literal(str(test.value))}")
    return " AND ".join(parts), False


def _error_sql(engine: Engine, plan: _GroupQuery) -> str:
    column = quoted(plan.by_meaning["error"])
    if engine.columns[plan.by_meaning["error"]] == "text":
        words = ", ".join(_literal(word) for word in sorted(NO_ERROR))
        return f"COALESCE(LOWER(TRIM({column})) NOT IN ({words}), FALSE)"
    return f"COALESCE(CAST({column} AS INT) <> 0, FALSE)"


def _literal(text: str) -> str:
    doubled = text.lower().replace("'", "''")
    return f"'{doubled}'"


def _numbered_on(
    engine: Engine, groups: Mapping[str, list[Any]], names: tuple[Categorical, Categorical]
) -> bool:
    """Whether every task has the trials 0..n-1 or 1..n, by their fingerprint."""
    if None in groups["fingerprint"]:
        return False
    systems, tasks = names
    keys = systems.codes.astype(np.int64) * len(tasks.names) + tasks.codes
    distinct, place = np.unique(keys, return_inverse=True)
    runs = np.bincount(place, weights=groups["n"]).astype(np.int64)
    if (most := int(runs.max(initial=0))) > MOST_NUMBERS:
        return False
    sums = np.zeros(distinct.size, dtype=np.uint64)
    # A fingerprint is a sum modulo 2**64, and may come with a sign.
    engine.join.at(sums, place, np.array([p % 2**64 for p in groups["fingerprint"]], np.uint64))
    expected = engine.fingerprints(most + 1)
    from_one = engine.part(expected[runs + 1], expected[1])
    return bool(((sums == expected[runs]) | (sums == from_one)).all())


# The counts of a saved report that does not hold the order of its runs.
_OPENING = re.compile(rb'\s*\{\s*"schema"\s*:\s*"passhat\.(report|run)/1"')
_HEAD = 256  # bytes that show what a file is


def _count_saved(source: Input | Sequence[Input], mapping: ColumnMap) -> list[Tally] | None:
    """The counts in one saved report without sequences; None of any other input."""
    document = _open_saved(source)
    if document is None:
        return None
    from passhat.ingest.formats import passhat_json

    if document.kind != "json" or not passhat_json.recognises(document):
        return None
    report = passhat_json.saved_report(document)
    if not report.counts_only:
        return None
    if mapping.pass_if is not None:
        raise ReadError(f"{document.name}: holds counts, so `pass_if` has nothing to compare")
    facts = {"run": "", "outcome": "counts of trials that passed, failed and errored"}
    if mapping.name is not None:
        one_name(document.name, [system.name for system in report.systems], mapping.name)
        facts["system"] = f'"{mapping.name}" (`name`)'
    origin = Source(
        name=document.name,
        format="passhat",
        sha256=document.sha256,
        notes=tuple(passhat_json.saved_notes(report)),
        ended=report.ended,
        read_as=passhat_json.READING.facts(facts, passhat_json.left_out_parts(report)),
    )
    tallies = []
    for system in report.systems:
        tasks = system.task_table
        passed = np.array([task.passed for task in tasks], dtype=np.int64)
        tallies.append(
            Tally(
                system=mapping.name or system.name,
                tasks=tuple(task.name for task in tasks),
                passed=passed,
                failed=np.array([task.failed for task in tasks], dtype=np.int64),
                errored=np.array([task.errored for task in tasks], dtype=np.int64),
                score_total=passed.astype(np.float64),
                score_squares=passed.astype(np.float64),
                sources=(origin,),
            )
        )
    return tallies


def _open_saved(source: Input | Sequence[Input]) -> Document | None:
    inputs = as_inputs(source)
    if len(inputs) != 1 or inputs[0] == STDIN:
        return None
    given = inputs[0]
    if isinstance(given, bytes):
        path, data, head = None, given, given[:_HEAD]
    elif os.path.isfile(given):  # noqa: PTH113 # Path raises if a name is too long
        path, data = Path(given), None
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    else:
        return None
    if not _OPENING.match(head):
        return None
    return Document(str(path or "input"), path=path, data=data, limits=Limits())


# Some failures of a big dataset with their transcripts: the only transcripts that are read.
_OWN_COLUMNS = {"system", "task", "trial", "outcome", ROW_COLUMN}

# For each task its first failures, with the file of trials and the row of the transcript. The
# engine holds a few rows a task, however many trials there are.
_CHOOSE = f"""
SELECT system, task, min_by({{'file': filename, 'trial': trial, 'row': {ROW_COLUMN}}}, trial, ?)
FROM read_parquet(?, filename = true)
WHERE outcome <> 'passed' AND {ROW_COLUMN} IS NOT NULL GROUP BY system, task ORDER BY system, task
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeFailures:
    """Transcripts of some failures, and the number of a first trial: 0 or 1."""

    transcripts: Transcripts
    first_trial: int


def failures_of_dataset(source: Input, *, most: int = MOST_OF_A_TASK) -> SomeFailures | None:
    """The first failures of each task; None of anything but a dataset with transcripts."""
    (given,) = as_inputs(source)
    if isinstance(given, bytes) or not (folder := Path(given)).is_dir() or not has_duckdb():
        return None
    files = duckdb_names(dataset_files(folder))
    cursor = duckdb_database().cursor()
    described = cursor.execute("DESCRIBE SELECT * FROM read_parquet(?)", [files]).fetchall()
    if not {name for name, *_ in described} >= _OWN_COLUMNS:
        return None
    places: dict[str, dict[TranscriptKey, int]] = {}
    for system, task, chosen in cursor.execute(_CHOOSE, [most, files]).fetchall():
        for failure in chosen:
            places.setdefault(failure["file"], {})[system, task, int(failure["trial"])] = int(
                failure["row"]
            )
    first = cursor.execute("SELECT min(trial) FROM read_parquet(?)", [files]).fetchone()
    return SomeFailures(transcripts=_read(places), first_trial=first_number(first or ()))


def _read(places: Mapping[str, Mapping[TranscriptKey, int]]) -> Transcripts:
    texts_of: dict[TranscriptKey, str] = {}
    for file, rows in places.items():
        if (shard := transcripts_beside(Path(file))) is None:
            continue
        keys = sorted(rows, key=rows.__getitem__)
        texts = read_rows(shard, str(shard), [rows[key] for key in keys])
        pairs = zip(keys, texts, strict=True)
        texts_of |= {key: Transcript.from_json(text).to_json() for key, text in pairs if text}
    return CleanTexts(texts_of)
