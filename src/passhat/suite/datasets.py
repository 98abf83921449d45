"""Tasks from a table: rows of a CSV, TSV or JSONL file, filled into a task."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from passhat.errors import SuiteError
from passhat.messages import plural
from passhat.records import Expectation, ServerPrompt, Step, Task
from passhat.suite.problems import did_you_mean, shown

MAX_BYTES = 64 * 2**20

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}")
DELIMITERS = {".csv": ",", ".tsv": "\t"}

Row = Mapping[str, Any]


def read_rows(path: Path, *, limit: int | None = None) -> list[Row]:
    """The rows of a dataset, as mappings from column to value."""
    text = _text(path)
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        rows = _table_rows(path, text, DELIMITERS[suffix])
    elif suffix in (".jsonl", ".ndjson"):
        rows = _json_rows(path, text)
    else:
        raise SuiteError(f"{path.name}: a dataset ends in .csv, .tsv or .jsonl")
    taken = list(itertools.islice(rows, limit))
    if not taken:
        raise SuiteError(f"{path.name}: the dataset has no rows")
    return taken


def fill_task(task: Task, row: Row, number: int) -> Task:
    """The task of one row: `{column}` is replaced in all its texts.

    >>> fill_task(Task(name="order {id}", prompt="Refund {id}"), {"id": 7}, 1).prompt
    'Refund 7'
    """
    # Without a column in it, the name would be the same for every row.
    name = task.name if PLACEHOLDER.search(task.name) else f"{task.name} {number}"
    return replace(
        task,
        name=fill_text(name, row),
        prompt=fill_text(task.prompt, row),
        expect=tuple(_fill_expectation(e, row) for e in task.expect),
        steps=tuple(_fill_step(step, row) for step in task.steps),
        tags=tuple(fill_text(tag, row) for tag in task.tags),
        resources=tuple(replace(one, uri=fill_text(one.uri, row)) for one in task.resources),
        expected_tool=task.expected_tool and fill_text(task.expected_tool, row),
        server_prompt=_fill_prompt(task.server_prompt, row),
        values=dict(row),
    )


def fill_text(text: str, row: Row) -> str:
    """The text with its columns filled in; `{{` and `}}` are braces that stay.

    >>> fill_text('{"city": {city}}', {"city": "Rome"})
    '{"city": Rome}'
    """

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(_column(match[1], row))

    return PLACEHOLDER.sub(value, text)


def _fill_value(value: Any, row: Row) -> Any:
    """As `fill_text`, inside anything; a text that is one column alone keeps that column's type."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        return _column(whole[1], row) if whole and whole[1] else fill_text(value, row)
    if isinstance(value, Mapping):
        return {key: _fill_value(inner, row) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_fill_value(inner, row) for inner in value)
    return value


def _fill_expectation(expectation: Expectation, row: Row) -> Expectation:
    # Patterns and schemas have braces that are no columns.
    if expectation.matcher in ("regex", "json-schema"):
        return expectation
    value = _fill_value(expectation.value, row)
    options = _fill_value(expectation.options, row)
    return replace(expectation, value=value, options=options)


def _fill_step(step: Step, row: Row) -> Step:
    expect = tuple(_fill_expectation(e, row) for e in step.expect)
    return replace(step, prompt=fill_text(step.prompt, row), expect=expect)


def _fill_prompt(prompt: ServerPrompt | None, row: Row) -> ServerPrompt | None:
    if prompt is None:
        return None
    given = {name: fill_text(value, row) for name, value in prompt.arguments.items()}
    return replace(prompt, arguments=given)


def _column(name: str, row: Row) -> Any:
    if name not in row:
        raise SuiteError(
            f"{{{name}}} is not a column of the dataset. {did_you_mean(name, row)} "
            f"(write {{{{{name}}}}} for the text itself)"
        )
    return row[name]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SuiteError(f"{path.name}: the dataset is larger than {MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: the dataset cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path.name}: not UTF-8 at byte {error.start}") from None


def _table_rows(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) != len(header):
            raise SuiteError(f"{path.name}:1: a column is named twice: {', '.join(header)}")
        for cells in reader:
            if len(cells) != len(header):
                counts = f"{plural(len(cells), 'cell')} under {plural(len(header), 'column')}"
                raise SuiteError(f"{path.name}:{reader.line_num}: {counts}")
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise SuiteError(f"{path.name}:{reader.line_num}: {error}") from None


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    # Not splitlines: JSON texts may hold the line separators of Unicode as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{path.name}:{number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise SuiteError(f"{path.name}:{number}: a row is an object, got {shown(row)}")
        if "\\u" in line and not _is_text(row):
            raise SuiteError(f"{path.name}:{number}: has half of a character, which is not text")
        yield row


def _is_text(row: Row) -> bool:
    """Whether it can be stored: JSON may escape half of a character that is two in UTF-16."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
