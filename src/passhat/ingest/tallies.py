"""Counts per task straight from a big table: only sufficient statistics leave the engine."""

from __future__ import annotations

import os
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
from passhat.ingest.document import Document
from passhat.ingest.formats import tables
from passhat.ingest.group_query import (
    GroupQuery,
    check_counted_duplicates,
    plan_query,
    render_query,
    understand_groups,
)
from passhat.ingest.inputs import STDIN, Input, as_inputs
from passhat.ingest.limits import Limits
from passhat.ingest.query_engines import Engine, Shape, dataset_files, has_engine, open_engine
from passhat.ingest.read import read_trials, recognise
from passhat.ingest.remote import called_by_address, sources_by_address
from passhat.ingest.rows import is_own_file, separator_of
from passhat.ingest.saved_counts import count_saved
from passhat.ingest.table_faults import table_facts
from passhat.messages import plural
from passhat.records import Duplicates, FeatureSums, Labels, Outcome, Source, Tally
from passhat.records.columns import ColumnMap, outcomes_of, seen
from passhat.records.tally import significant

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
    if format in (None, "passhat") and (saved := count_saved(source, mapping)) is not None:
        return saved
    if format not in (None, "table") or duplicates == "last":
        return None
    table = _find_big(source, mapping)
    counted = None if table is None else _stream(table, mapping, duplicates)
    return counted and [replace(one, sources=sources_by_address(one.sources)) for one in counted]


class _BigTable:
    """A file that an engine counts; the engine starts when it is first used."""

    def __init__(self, path: Path, shape: Shape) -> None:
        self.path, self.shape = path, shape

    @cached_property
    def engine(self) -> Engine:
        separator = _separator(self.path) if self.shape == "csv" else ","
        return open_engine(self.path, self.shape, separator)


def _find_big(source: Input | Sequence[Input], mapping: ColumnMap) -> _BigTable | None:
    inputs = as_inputs(source)
    if len(inputs) != 1 or isinstance(inputs[0], bytes) or inputs[0] == STDIN:
        return None
    path = Path(inputs[0])
    there = os.path.isfile(path)  # noqa: PTH113 # Path raises if a name is too long
    if os.path.isdir(path):  # noqa: PTH112 # as above
        return _find_dataset(path)
    if not there or (shape := _shape(path)) is None:
        return None
    table = _BigTable(path, shape)
    if shape == "parquet":
        # Without an engine it is read row by row.
        return table if has_engine() and table.engine.rows >= BIG_ROWS else None
    if path.stat().st_size < BIG_BYTES:
        return None
    return table if _is_plain_table(path, mapping) else None


def _find_dataset(path: Path) -> _BigTable | None:
    """A folder of Parquet files and nothing else, at any depth: one table in parts."""
    is_empty = next(dataset_files(path), None) is None
    if is_empty or not all(file.suffix == ".parquet" for file in dataset_files(path)):
        return None
    if not has_engine():
        return None
    table = _BigTable(path, "parquet")
    return table if table.engine.rows >= BIG_ROWS else None


def _shape(path: Path) -> Shape | None:
    with path.open("rb") as stream:
        head = stream.read(4096)
    if head.startswith(b"PAR1"):
        return "parquet"
    line = head.partition(b"\n")[0].strip()
    if line.startswith(b"{") and line.endswith(b"}"):
        return "lines"
    binary = b"\0" in head or head.startswith((b"PK", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"))
    return None if binary or line.startswith((b"{", b"[", b"<")) else "csv"


def _separator(path: Path) -> str:
    with path.open("rb") as stream:
        return separator_of(stream.readline(2**20))


def _stream(table: _BigTable, mapping: ColumnMap, duplicates: Duplicates) -> list[Tally] | None:
    """Counts by an engine; None if the table must be read row by row."""
    engine = table.engine
    plan = plan_query(table.path, engine, mapping)
    if plan is None:
        return None
    plan, groups = understand_groups(plan, engine.query(render_query(engine, plan)), mapping)
    names = _names(plan, groups, mapping)
    counts = _summed(groups, names) if plan.summed else _by_outcome(plan, groups, names)
    if duplicates == "error" and "trial" in plan.found:
        check_counted_duplicates(engine, plan, groups, names)
    scored = "score_count" in groups and _scores_fit(plan, groups, mapping)
    tallies = _tallies(counts, plan.features, scored=scored)
    source = _source(engine, table.shape, plan, groups, mapping)
    return [replace(tally, sources=(source,)) for tally in tallies]


def _source(
    engine: Engine,
    shape: Shape,
    plan: GroupQuery,
    groups: Mapping[str, list[Any]],
    mapping: ColumnMap,
) -> Source:
    """The file as a source, without its hash: that would be reading it twice."""
    own = shape == "lines" and is_own_file(_head(plan.path))
    notes = tables.notes_on(
        engine.columns, plan.found, mapping, own=own, repeats=lambda: _repeats(plan, groups)
    )
    if not _scores_fit(plan, groups, mapping):
        highest = max(high for high in groups["score_high"] if high is not None)
        notes += (judged_only(mapping.pass_if) if mapping.pass_if else scores_left_out(highest),)
    kinds = {"csv": "CSV table", "lines": "JSON Lines table", "parquet": "Parquet table"}
    facts = {"format": kinds[shape], **table_facts(plan.found, mapping)}
    unused = () if own else tables.left_out_columns(engine.columns, plan.found, mapping)
    return Source(
        name=str(plan.path),
        format="table",
        sha256="",
        notes=(*plan.notes, *notes),
        read_as=tables.READING.facts(facts, unused),
    )


def _repeats(plan: GroupQuery, groups: Mapping[str, list[Any]]) -> bool:
    if "trial" in plan.found:
        return False
    names = zip(groups.get("s", groups["t"]), groups["t"], strict=True)
    return len(set(names)) < int(sum(groups["n"]))


def _is_plain_table(path: Path, mapping: ColumnMap) -> bool:
    """Whether the first lines are those of a table, and not of some tool's own log."""
    try:
        return recognise(_head(path), mapping).name == "table"
    except ReadError:
        return False


def _head(path: Path) -> Document:
    with path.open("rb") as stream:
        lines = b"".join(stream.readlines(2**16))
    return Document(path.name, path=None, data=lines, limits=Limits())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Counts:
    """A row for each system, task and outcome: their sums by column."""

    systems: Labels
    tasks: Labels
    outcome: NDArray[np.int8]
    sums: Mapping[str, Floats]


def _by_outcome(
    plan: GroupQuery, groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]
) -> _Counts:
    sums = {
        name: np.array([0 if v is None else v for v in values], dtype=np.float64)
        for name, values in groups.items()
        if name.endswith(("_count", "_total", "_squares")) or name == "n"
    }
    outcome = _outcome_codes(plan, groups)
    return _Counts(systems=names[0], tasks=names[1], outcome=outcome, sums=sums)


def _summed(groups: Mapping[str, list[Any]], names: tuple[Labels, Labels]) -> _Counts:
    """Of groups whose passes were added up: all passes, then all failures."""
    systems, tasks = (Labels(one.names, np.tile(one.codes, 2)) for one in names)
    n, passes = (np.array(groups[name], dtype=np.float64) for name in ("n", "passes"))
    outcome = np.repeat(np.array((Outcome.PASSED, Outcome.FAILED), dtype=np.int8), n.size)
    sums = {"n": np.concatenate((passes, n - passes))}
    return _Counts(systems=systems, tasks=tasks, outcome=outcome, sums=sums)


def _outcome_codes(plan: GroupQuery, groups: Mapping[str, list[Any]]) -> NDArray[np.int8]:
    """How the rows of each group ended; the same words as for small tables."""
    values = list(dict.fromkeys(groups["o"]))
    if plan.by_word:  # what P means depends on the other words
        known = dict(zip(values, outcomes_of(values), strict=True))
    else:
        known = {one: None if one is None or one != one else Outcome(bool(one)) for one in values}
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


def _no_outcome(plan: GroupQuery, groups: Mapping[str, list[Any]], value: Any) -> ReadError:
    rows = sum(n for n, other in zip(groups["n"], groups["o"], strict=True) if other == value)
    where = f"{plan.path}, {plan.outcome.strip(chr(34))}"
    if value is None or value != value:
        return ReadError(f'{where}: some rows are empty; write "error" where a trial broke')
    return ReadError(
        f"{where}: {value!r}, in {plural(rows, 'row')}, does not say whether the trial passed. "
        f"The column holds {seen(groups['o'])}; say what passes with `pass_if`"
    )


def _tallies(counts: _Counts, features: Sequence[str], *, scored: bool) -> list[Tally]:
    tallies = []
    for code, system in sorted(enumerate(counts.systems.names), key=lambda pair: pair[1]):
        rows = np.flatnonzero(counts.systems.codes == code)
        own = {name: column[rows] for name, column in counts.sums.items()}
        tasks, outcome = counts.tasks.take(rows), counts.outcome[rows]
        tallies.append(_tally(system, tasks, outcome, own, features, scored=scored))
    return tallies


def _names(
    plan: GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap
) -> tuple[Labels, Labels]:
    tasks = groups["t"]
    systems = groups.get("s", [plan.path.name.partition(".")[0]] * len(tasks))
    for name, values in (("task", tasks), ("system", systems)):
        if None in values:
            column = plan.found.get(name, name)
            raise ReadError(f'{plan.path}, column "{column}": some rows name no {name}')
    labels = Labels.of(map(str, systems))
    if mapping.name is not None:
        labels = Labels((one_name(str(plan.path), labels.names, mapping.name),), labels.codes)
    return labels, Labels.of(map(str, tasks))


def _scores_fit(plan: GroupQuery, groups: Mapping[str, list[Any]], mapping: ColumnMap) -> bool:
    """Whether scores lie in [0, 1]; others can only be judged, and then are left out."""
    if plan.score is None:
        return True
    lows = [low for low in groups["score_low"] if low is not None]
    highs = [high for high in groups["score_high"] if high is not None]
    if not lows or (min(lows) >= 0 and max(highs) <= 1):
        return True
    if mapping.pass_if or "passed" in plan.found:
        return False
    raise ReadError(
        f'{plan.path}, column "{plan.found["score"]}": scores must lie in [0, 1], but reach from '
        f"{min(lows):g} to {max(highs):g}; say what passes with `pass_if`"
    )


def _tally(
    system: str,
    task: Labels,
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
        found = np.bincount(cells, weights=columns[name], minlength=shape[0] * shape[1])
        # Each engine adds in its own order: keep the digits that do not depend on it.
        return significant(found.astype(np.float64).reshape(shape))

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
