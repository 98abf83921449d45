"""SWE-bench reports: one file is one trial of every instance; several files, several trials."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, Table
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap


class _Report(msgspec.Struct):
    resolved_ids: list[str]
    unresolved_ids: list[str] = msgspec.field(default_factory=list)
    empty_patch_ids: list[str] = msgspec.field(default_factory=list)
    error_ids: list[str] = msgspec.field(default_factory=list)
    incomplete_ids: list[str] = msgspec.field(default_factory=list)


def recognises(document: Document) -> bool:
    """Whether it lists the instances that were resolved and submitted."""
    return document.kind == "json" and document.has("resolved_ids", "submitted_ids")


def read(document: Document, mapping: ColumnMap) -> Table:
    """One trial an instance; an empty patch is a failure, a broken evaluation an error."""
    report = document.decode(_Report)
    endings: dict[str, dict[str, Any]] = {}
    for ids, ending in (
        (report.unresolved_ids, {"outcome": Outcome.FAILED}),
        (report.empty_patch_ids, {"outcome": Outcome.FAILED, "error": "empty patch"}),
        (report.error_ids, {"outcome": Outcome.ERRORED, "error": "evaluation error"}),
        (report.resolved_ids, {"outcome": Outcome.PASSED}),
    ):
        endings |= dict.fromkeys(ids, ending)
    # The file is called MODEL.RUN.json.
    model, dot, _ = document.stem.rpartition(".")
    system = model if dot else document.stem
    rows = [{"system": system, "task": task, **ending} for task, ending in endings.items()]
    left = len(set(report.incomplete_ids) - set(endings))
    notes = [f"{left} instances were not submitted and are no trials"] if left else []
    return Table.of_rows(rows, notes=notes, entry="instance")


READER = Reader(
    name="swe-bench",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="SWE-bench report",
        system="x",
    ),
)
