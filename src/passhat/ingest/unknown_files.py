"""What to say of a file that no reader knows: what it seems to be, and which file to give."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.errors import ReadError, UnknownFile
from passhat.ingest.document import Document
from passhat.ingest.formats import tables
from passhat.ingest.readers import READERS
from passhat.ingest.rows import column_names
from passhat.records.column_names import ColumnMap, find_columns
from passhat.short_names import few, short

SUMMARIES: Mapping[tuple[str, ...], str] = {
    ("results", "configs", "versions", "n-shot"): (
        "holds the means of an lm-evaluation-harness run, not its trials; run it with "
        "--log_samples and give the samples_*.jsonl"
    ),
}
"""Files of known tools that hold no trial, by their keys, and which file does."""

OWN = "passhat."
"""How the schema of what passhat writes begins."""


def own_answer(document: Document) -> ReadError | None:
    """The error of an answer that passhat wrote as JSON: it holds rates, not trials."""
    schema = document.first.get("schema") if document.kind in ("json", "lines") else None
    if schema is None or not bytes(schema).startswith(f'"{OWN}'.encode()):
        return None
    written = bytes(schema).decode(errors="replace").strip('"')
    return ReadError(
        f"{document.name}: is an answer that passhat wrote ({short(written)}), and holds rates, "
        "not trials; give what the answer was made from"
    )


def unknown_file(document: Document) -> ReadError:
    """The error of a file that no reader knows."""
    names = column_names(document)
    told = _summary(document) or _nature(document, names)
    if told is not None:
        return ReadError(f"{document.name}: {told}")
    found = find_columns(names, ColumnMap())
    if document.kind != "json" and not found.keys().isdisjoint(("task", "passed", "score")):
        fault = tables.lacking(document.name, names, ColumnMap())
        if fault is not None:
            return fault
    has = f" It has the columns {few(names)}." if names else ""
    return UnknownFile(
        f"{document.name}: no reader knows this file (tried {', '.join(READERS)}).{has} Name the "
        "columns of a table with --task, --pass or --score, --trial and --system, or the tool "
        "with --format"
    )


def _summary(document: Document) -> str | None:
    return next((told for keys, told in SUMMARIES.items() if document.has(*keys)), None)


def _nature(document: Document, names: list[str]) -> str | None:
    """What a file is that cannot be a result file, whatever its columns are called."""
    if document.kind == "binary":
        return "is a binary file that no reader knows"
    if document.kind == "zip":
        return "is a ZIP archive without an Inspect log; unpack it"
    if document.kind == "xml":
        return "is XML, but no JUnit report: its root must be <testsuites> or <testsuite>"
    if document.kind == "array" and not document.first:
        return "is a list without objects; each trial must be one, with its task and outcome"
    if document.kind == "text" and not names:
        return "is not text in UTF-8; save it as UTF-8 again"
    return None
