"""Counts per task straight from a big table: only sufficient statistics leave the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.errors import ReadError
from passhat.ingest.columns import ColumnMap, find_columns, listed, milliseconds
from passhat.ingest.document import Document
from passhat.ingest.engines import VIEW, Engine, Shape, count_rows, open_engine
from passhat.ingest.formats import tables
from passhat.ingest.inputs import STDIN, Input, as_inputs
from passhat.ingest.limits import Limits
from passhat.ingest.outcomes import NO_ERROR, outcome_of, parse_pass_if, seen
from passhat.ingest.read import Duplicates, read_trials, recognise
from passhat.records import FEATURES, FeatureSums, Labels, Outcome, Tally

BIG_BYTES = 32 * 2**20
BIG_ROWS = 1_000_000
"""From here on a plain table is counted by an engine, never held as rows."""

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which columns are asked for, and how the outcome is told."""

    path: Path
    found: Mapping[str, str]
    outcome: str
    by_word: bool
    features: tuple[str, ...]


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
    mapping, limits = mapping or ColumnMap(), limits or Limits()
    path = (
        big_table(source, mapping) if format in (None, "table") and duplicates != "last" else None
    )
    if path is not None:
        tallies = _stream(path, mapping, duplicates)
        if tallies is not None:
            return tallies
    trials = read_trials(
        source, format=format, mapping=mapping, duplicates=duplicates, limits=limits
    )
    return [trials.tally(system) for system in trials.systems]


def big_table(source: Input | Sequence[Input], mapping: ColumnMap | None = None) -> Path | None:
    """The path of a single CSV, JSON Lines or Parquet table too big to be held as rows."""
    inputs = as_inputs(source)
    if len(inputs) != 1 or isinstance(inputs[0], bytes) or inputs[0] == STDIN:
        return None
    path = Path(inputs[0])
    if not path.is_file() or (shape := _shape(path)) is None:
        return None
    if shape == "parquet":
        return path if count_rows(path) >= BIG_ROWS else None
    if path.stat().st_size < BIG_BYTES:
        return None
    return path if _is_plain_table(path, mapping or ColumnMap()) else None


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
        header = stream.readline(2**20)
    return max((b",", b"\t", b";"), key=header.count).decode()


def _stream(path: Path, mapping: ColumnMap, duplicates: Duplicates) -> list[Tally] | None:
    """Counts by an engine, or None where only the row reader can tell what is meant."""
    shape = _shape(path)
    if shape is None:
        return None
    engine = open_engine(path, shape, _separator(path) if shape == "csv" else ",")
    plan = _plan(path, engine, mapping)
    if plan is None:
        return None
    groups = engine.query(_sql(engine, plan))
    outcomes = _outcome_codes(plan, groups)
    if duplicates == "error" and "trial" in plan.found:
        _check_duplicates(engine, plan, groups)
    return _tallies(plan, groups, outcomes)


def _is_plain_table(path: Path, mapping: ColumnMap) -> bool:
    """Whether the first lines are those of a table, and not of some tool's own log."""
    with path.open("rb") as stream:
        head = b"".join(stream.readlines(2**16))
    document = Document(path.name, path=None, data=head, limits=Limits())
    try:
        return recognise(document, mapping) is tables.READER
    except ReadError:
        return False


def _plan(path: Path, engine: Engine, mapping: ColumnMap) -> _Plan | None:
    found = find_columns(engine.columns, mapping)
    columns = engine.columns
    outcome, by_word = _outcome_sql(columns, found, mapping)
    simple = all(column in columns for column in found.values())
    # Whole numbers, or there is no telling what "1.5" or "run-1" is without looking at all.
    if outcome is None or "task" not in found or not simple:
        return None
    features = tuple(name for name in FEATURES if name in found)
    for name in (*features, "score"):
        if name in found and columns[found[name]] not in ("number", "boolean"):
            raise ReadError(f'{path}, column "{found[name]}": must hold numbers for {name}')
    return _Plan(path=path, found=found, outcome=outcome, by_word=by_word, features=features)


def _outcome_sql(
    columns: Mapping[str, str], found: Mapping[str, str], mapping: ColumnMap
) -> tuple[str | None, bool]:
    if not mapping.pass_if:
        if "passed" in found:
            return _quoted(found["passed"]), True
        return (f"{_quoted(found['score'])} >= 1" if "score" in found else None), False
    parts = []
    for test in parse_pass_if(mapping.pass_if):
        column = found.get(test.column, test.column)
        numeric = isinstance(test.value, float)
        if columns.get(column) != ("number" if numeric else "text"):
            return None, False
        symbol = {"==": "=", "!=": "<>"}.get(test.symbol, test.symbol)
        if numeric:
            parts.append(f"{_quoted(column)} {symbol} {test.value}")
        else:
            parts.append(f"LOWER(TRIM({_quoted(column)})) {symbol} {_literal(str(test.value))}")
    return " AND ".join(parts), False


def _sql(engine: Engine, plan: _Plan) -> str:
    """One row for each system, task, outcome as written, and whether there was an error."""
    names = {"system": "s", "task": "t"}
    picks = [
        f"{_quoted(plan.found[name])} AS {short}"
        for name, short in names.items()
        if name in plan.found
    ]
    picks.append(f"{plan.outcome} AS o")
    if "error" in plan.found:
        picks.append(f"{_error_sql(engine, plan)} AS e")
    sums = ["COUNT(*) AS n"]
    if _whole_trials(engine, plan):
        picks.append(f"{_quoted(plan.found['trial'])} AS i")
        sums.append(f"{engine.fingerprint('i')} AS fingerprint")
    for name in (*plan.features, "score"):
        if name in plan.found:
            scale = " / 1000" if name == "seconds" and milliseconds(plan.found[name]) else ""
            picks.append(f"CAST({_quoted(plan.found[name])} AS DOUBLE){scale} AS {name}")
            sums += [
                f"COUNT({name}) AS {name}_count",
                f"SUM({name}) AS {name}_total",
                f"SUM({name} * {name}) AS {name}_squares",
            ]
    if "score" in plan.found:
        sums += ["MIN(score) AS score_low", "MAX(score) AS score_high"]
    keys = [pick.rpartition(" AS ")[2] for pick in picks if pick.endswith((" s", " t", " o", " e"))]
    header = ' WHERE "schema" IS NULL' if "schema" in engine.columns else ""
    inner = f"SELECT {', '.join(picks)} FROM {VIEW}{header}"  # noqa: S608 # names are quoted
    asked, grouped = ", ".join([*keys, *sums]), ", ".join(keys)
    return f"SELECT {asked} FROM ({inner}) AS picked GROUP BY {grouped}"  # noqa: S608 # as above


def _whole_trials(engine: Engine, plan: _Plan) -> bool:
    return "trial" in plan.found and engine.columns[plan.found["trial"]] == "number"


def _error_sql(engine: Engine, plan: _Plan) -> str:
    column = _quoted(plan.found["error"])
    if engine.columns[plan.found["error"]] == "text":
        words = ", ".join(_literal(word) for word in sorted(NO_ERROR))
        return f"COALESCE(LOWER(TRIM({column})) NOT IN ({words}), FALSE)"
    return f"COALESCE(CAST({column} AS INT) <> 0, FALSE)"


def _quoted(column: str) -> str:
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def _literal(text: str) -> str:
    doubled = text.lower().replace("'", "''")
    return f"'{doubled}'"


def _outcome_codes(plan: _Plan, groups: Mapping[str, list[Any]]) -> NDArray[np.int8]:
    """How the rows of each group ended; the same words as for small tables."""
    known: dict[Any, Outcome | None] = {}
    for value in dict.fromkeys(groups["o"]):
        if value is None or value != value:
            known[value] = None
        else:
            known[value] = outcome_of(value) if plan.by_word else Outcome(bool(value))
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


def _no_outcome(plan: _Plan, groups: Mapping[str, list[Any]], value: Any) -> ReadError:
    rows = sum(n for n, other in zip(groups["n"], groups["o"], strict=True) if other == value)
    where = f"{plan.path}, {plan.outcome.strip(chr(34))}"
    if value is None or value != value:
        return ReadError(f'{where}: some rows say nothing; write "error" where a trial broke')
    return ReadError(
        f"{where}: {value!r}, in {rows:,} rows, does not say whether the trial passed. The column "
        f"holds {seen(groups['o'])}; say what passes with --pass-if"
    )


def _check_duplicates(engine: Engine, plan: _Plan, groups: Mapping[str, list[Any]]) -> None:
    if _whole_trials(engine, plan) and _numbered_on(engine, groups):
        return
    # Gaps, or names for numbers: only looking at every trial can tell.
    keys = [_quoted(plan.found[name]) for name in ("system", "task", "trial") if name in plan.found]
    listing = ", ".join(keys)
    twice = engine.query(
        f"SELECT {listing}, COUNT(*) AS n FROM {VIEW} GROUP BY {listing} "  # noqa: S608 # as above
        f"HAVING COUNT(*) > 1 ORDER BY {listing} LIMIT 6"
    )
    if not twice["n"]:
        return
    shown = [" / ".join(map(str, key)) for key in zip(*list(twice.values())[:-1], strict=True)]
    raise ReadError(
        f"{plan.path}: trials occur more than once: {listed(shown, 5)}. Pass --duplicates keep if "
        "they are different runs"
    )


def _numbered_on(engine: Engine, groups: Mapping[str, list[Any]]) -> bool:
    """Whether every task has the trials 0..n-1 or 1..n, by their fingerprint."""
    systems = groups.get("s", [None] * len(groups["t"]))
    rows: dict[tuple[Any, Any], int] = {}
    prints: dict[tuple[Any, Any], int] = {}
    keys = zip(systems, groups["t"], strict=True)
    for key, n, found in zip(keys, groups["n"], groups["fingerprint"], strict=True):
        if found is None:
            return False
        rows[key] = rows.get(key, 0) + n
        prints[key] = engine.join(prints.get(key, 0), int(found))
    if (most := max(rows.values(), default=0)) > BIG_ROWS:
        return False
    expected = engine.fingerprints(most + 1).tolist()
    return all(
        prints[key] in (expected[n], engine.part(expected[n + 1], expected[1]))
        for key, n in rows.items()
    )


def _tallies(
    plan: _Plan, groups: Mapping[str, list[Any]], outcome: NDArray[np.int8]
) -> list[Tally]:
    size = len(outcome)
    tasks = groups["t"]
    systems = groups.get("s", [plan.path.name.partition(".")[0]] * size)
    for name, values in (("task", tasks), ("system", systems)):
        if any(value is None for value in values):
            column = plan.found.get(name, name)
            raise ReadError(f'{plan.path}, column "{column}": some rows name no {name}')
    _check_scores(plan, groups)
    by_system = Labels.of(map(str, systems))
    columns = {
        name: np.array([0 if v is None else v for v in values], dtype=np.float64)
        for name, values in groups.items()
        if name.endswith(("_count", "_total", "_squares")) or name == "n"
    }
    return [
        _tally(
            system,
            np.flatnonzero(by_system.codes == code),
            list(map(str, tasks)),
            outcome,
            columns,
            plan,
        )
        for code, system in sorted(enumerate(by_system.names), key=lambda pair: pair[1])
    ]


def _check_scores(plan: _Plan, groups: Mapping[str, list[Any]]) -> None:
    lows = [low for low in groups.get("score_low", ()) if low is not None]
    highs = [high for high in groups.get("score_high", ()) if high is not None]
    if lows and (min(lows) < 0 or max(highs) > 1):
        raise ReadError(
            f'{plan.path}, column "{plan.found["score"]}": scores must lie in [0, 1], but reach '
            f"from {min(lows):g} to {max(highs):g}; leave the column out, or divide it"
        )


def _tally(
    system: str,
    rows: NDArray[np.intp],
    tasks: Sequence[str],
    outcome: NDArray[np.int8],
    columns: Mapping[str, Floats],
    plan: _Plan,
) -> Tally:
    names = sorted({tasks[row] for row in rows.tolist()})
    index = {name: position for position, name in enumerate(names)}
    task = np.array([index[tasks[row]] for row in rows.tolist()], dtype=np.int64)
    ending = outcome[rows].astype(np.int64)
    shape = (len(Outcome), len(names))

    def sums(values: Floats) -> Floats:
        cells = ending * shape[1] + task
        found = np.bincount(cells, weights=values, minlength=shape[0] * shape[1])
        return found.astype(np.float64).reshape(shape)

    def total(name: str) -> Floats:
        # Engines add in an order of their own: keep the digits that do not depend on it.
        return _significant(sums(columns[name][rows]))

    counts = sums(columns["n"][rows]).astype(np.int64)
    score_total = score_squares = counts[Outcome.PASSED].astype(np.float64)
    if "score" in plan.found:
        completed = (Outcome.FAILED, Outcome.PASSED)
        scored = sums(columns["score_count"][rows])
        # A completed trial without a score has that of its outcome.
        own = counts[Outcome.PASSED] - scored[Outcome.PASSED]
        score_total = own + sum(total("score_total")[kind] for kind in completed)
        score_squares = own + sum(total("score_squares")[kind] for kind in completed)
    return Tally(
        system=system,
        tasks=tuple(names),
        passed=counts[Outcome.PASSED],
        failed=counts[Outcome.FAILED],
        errored=counts[Outcome.ERRORED],
        score_total=score_total,
        score_squares=score_squares,
        features={
            name: FeatureSums(
                count=sums(columns[f"{name}_count"][rows]).astype(np.int64),
                total=total(f"{name}_total"),
                squares=total(f"{name}_squares"),
            )
            for name in plan.features
        },
    )


def _significant(values: Floats, digits: int = 12) -> Floats:
    with np.errstate(divide="ignore"):
        magnitude = np.where(values == 0, 0, np.floor(np.log10(np.abs(values))))
    scale: Floats = 10.0 ** (digits - 1 - magnitude)
    rounded: Floats = np.round(values * scale) / scale
    return rounded
