"""Answers as data, numbers unrounded: CSV, JSON and NDJSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from passhat.reporters.answer import Answer, DisplayOptions

# A cell that begins like this is a formula to a spreadsheet (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render_csv(answer: Answer[Any], options: DisplayOptions) -> str:
    """The rows of an answer (RFC 4180): a header, then a row a number."""
    rows = answer.rows()
    text = io.StringIO()
    writer = csv.writer(text)
    if rows:
        writer.writerow([_cell(name) for name in rows[0]])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """A value as a spreadsheet should read it: text from data is never a formula.

    >>> _cell("=HYPERLINK(1)"), _cell(-0.5), _cell(None)
    ("'=HYPERLINK(1)", -0.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def render_json(answer: Answer[Any], options: DisplayOptions) -> str:
    """The data of an answer; its first key names the schema.

    The same value gives the same bytes: keys as built, ASCII only, so that it is safe to print.
    """
    return json.dumps(answer.data(), indent=2, allow_nan=False) + "\n"


def render_ndjson(answer: Answer[Any], options: DisplayOptions) -> str:
    """A line a row. A run writes its events instead, while they happen."""
    return "".join(json.dumps(dict(row), allow_nan=False) + "\n" for row in answer.rows())
