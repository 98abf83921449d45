"""SWE-bench results: run reports of all vintages, and the report of each instance.

A run report is one trial of every instance. The older ones list what was generated, applied and
resolved; the report of an instance lies in RUN/MODEL/INSTANCE/report.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap

_SUBMISSION = re.compile(r"^\d{8}_")
_INSTANCE = re.compile(r"(.+?)__(.+)-\d+")

_FAILED: Mapping[str, Any] = {"outcome": Outcome.FAILED}
_PASSED: Mapping[str, Any] = {"outcome": Outcome.PASSED}
_EMPTY = {"outcome": Outcome.FAILED, "error": "empty patch"}
_BROKEN = {"outcome": Outcome.ERRORED, "error": "evaluation error"}

Ending = tuple[list[str], Mapping[str, Any]]


class _Report(msgspec.Struct):
    """The report of a run since 2024; Multi-SWE-bench writes `resolved` for `resolved_ids`."""

    resolved_ids: list[str] = msgspec.field(default_factory=list)
    resolved: list[str] = msgspec.field(default_factory=list)
    unresolved_ids: list[str] = msgspec.field(default_factory=list)
    empty_patch_ids: list[str] = msgspec.field(default_factory=list)
    error_ids: list[str] = msgspec.field(default_factory=list)
    submitted_ids: list[str] = msgspec.field(default_factory=list)
    incomplete_ids: list[str] = msgspec.field(default_factory=list)


class _OldReport(msgspec.Struct):
    """The report of a run in the first half of 2024."""

    resolved: list[str]
    generated: list[str]
    no_generation: list[str] = msgspec.field(default_factory=list)
    install_fail: list[str] = msgspec.field(default_factory=list)
    reset_failed: list[str] = msgspec.field(default_factory=list)
    test_errored: list[str] = msgspec.field(default_factory=list)
    test_timeout: list[str] = msgspec.field(default_factory=list)


class _Instance(msgspec.Struct):
    resolved: bool
    patch_is_None: bool = False  # noqa: N815 # the tool's own spelling
    patch_exists: bool = True


def recognises(document: Document) -> bool:
    """Whether it lists instances by how they ended, or is the report of one of them."""
    if document.kind != "json":
        return False
    by_ending = document.has("submitted_ids") or document.has("resolved", "no_generation")
    return by_ending or document.has("resolved_ids") or _is_instance(document)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an instance; an empty patch is a failure, a broken evaluation an error."""
    if _is_instance(document):
        return _read_instances(document)
    endings, notes, vintage = _old(document) if document.has("no_generation") else _new(document)
    # The file is called MODEL.RUN.json.
    model, dot, _ = document.stem.rpartition(".")
    system = model if dot else document.stem
    rows = [_row(system, task, ending) for task, ending in endings.items()]
    return TrialTable.of_rows(rows, notes=notes, entry="instance", read_as={"format": vintage})


READER = Reader(
    name="swe-bench",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="SWE-bench report",
        versions="run reports of 2024 to 2026, Multi-SWE-bench, report.json of each instance",
        system="model in the file's name, or the folder of the model",
        task="instance id",
        run="one for each report, or for each folder of a run",
        outcome="resolved",
        family="repository",
    ),
)


def _is_instance(document: Document) -> bool:
    """Whether every value is what the harness says of one instance."""
    if not document.first or len(document.first) > 1:
        return False
    told = bytes(next(iter(document.first.values())))
    return told.startswith(b"{") and b'"resolved"' in told and b'"patch_' in told


def _read_instances(document: Document) -> TrialTable:
    found = document.decode(dict[str, _Instance])
    folders = document.path.resolve().parts if document.path else ()
    system, run = _places(folders) if len(folders) > 4 else (document.stem, None)
    rows = [_row(system, name, _instance_ending(one)) for name, one in found.items()]
    facts = {"format": "SWE-bench report of one instance", "run": "folder of the run"}
    return TrialTable.of_rows(rows, entry="instance", read_as=facts, run=run)


def _places(folders: Sequence[str]) -> tuple[str, str | None]:
    """The system and its run: RUN/MODEL/INSTANCE/report.json, or SUBMISSION/logs/INSTANCE/..."""
    if folders[-3] == "logs":
        return _SUBMISSION.sub("", folders[-4]), None
    return folders[-3], folders[-4]


def _instance_ending(one: _Instance) -> Mapping[str, Any]:
    if one.resolved:
        return _PASSED
    return _EMPTY if one.patch_is_None or not one.patch_exists else _FAILED


def _new(document: Document) -> tuple[dict[str, Mapping[str, Any]], list[str], str]:
    report = document.decode(_Report)
    endings = _endings(
        [
            (report.unresolved_ids, _FAILED),
            (report.empty_patch_ids, _EMPTY),
            (report.error_ids, _BROKEN),
            ([*report.resolved_ids, *report.resolved], _PASSED),
        ]
    )
    if not endings and report.submitted_ids:
        raise ReadError(f"{document.name}: lists what was submitted, but not what was resolved")
    notes = []
    if left := len(set(report.submitted_ids) - set(endings)):
        notes.append(f"{plural(left, 'submitted instance has', 'submitted instances have')} no end")
    if left := len(set(report.incomplete_ids) - set(endings)):
        notes.append(f"{left} instances were not submitted and are no trials")
    schema = bytes(document.first.get("schema_version", b"1"))
    version = f" (version {schema.decode()})" if schema.isdigit() and len(schema) < 4 else ""
    return endings, notes, f"SWE-bench report{version}"


def _old(document: Document) -> tuple[dict[str, Mapping[str, Any]], list[str], str]:
    if not document.has("generated"):
        raise ReadError(
            f"{document.name}: names the instances that a submission to SWE-bench resolved, but "
            "not those that it tried; give the report of the run, or its folder "
            "logs/run_evaluation"
        )
    report = document.decode(_OldReport)
    broken = [*report.install_fail, *report.reset_failed, *report.test_errored]
    endings = _endings(
        [
            (report.generated, _FAILED),
            (report.test_timeout, {"outcome": Outcome.FAILED, "error": "tests timed out"}),
            (report.no_generation, _EMPTY),
            (broken, _BROKEN),
            (report.resolved, _PASSED),
        ]
    )
    return endings, [], "SWE-bench report (2024, before run reports)"


def _endings(by_ending: Iterable[Ending]) -> dict[str, Mapping[str, Any]]:
    """How each instance ended; what comes later decides."""
    endings: dict[str, Mapping[str, Any]] = {}
    for names, ending in by_ending:
        endings |= dict.fromkeys(names, ending)
    return endings


def _row(system: str, task: str, ending: Mapping[str, Any]) -> dict[str, Any]:
    named = _INSTANCE.fullmatch(task)
    family = f"{named[1]}/{named[2]}" if named else None
    return {"system": system, "task": task, "family": family, **ending}
