"""The counts of a saved report that does not hold the order of its runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from passhat.errors import ReadError
from passhat.ingest.assemble import one_name
from passhat.ingest.document import Document
from passhat.ingest.inputs import STDIN, Input, as_inputs
from passhat.ingest.limits import Limits
from passhat.records import Source, Tally
from passhat.records.columns import ColumnMap

if TYPE_CHECKING:
    from passhat.ingest.formats.passhat_json import SavedSystem

_OPENING = re.compile(rb'\s*\{\s*"schema"\s*:\s*"passhat\.(report|run)/1"')
_HEAD = 256  # bytes that show what a file is


def count_saved(source: Input | Sequence[Input], mapping: ColumnMap) -> list[Tally] | None:
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
    facts = {"run": "", "outcome": "counts of runs that passed, failed and errored"}
    if mapping.name is not None:
        one_name(document.name, [system.name for system in report.systems], mapping.name)
        facts["system"] = f'"{mapping.name}" (`name`)'
    origin = Source(
        name=document.name,
        format="passhat",
        sha256=document.sha256,
        notes=tuple(passhat_json.saved_notes(report)),
        read_as=passhat_json.READING.facts(facts, passhat_json.left_out_parts(report)),
    )
    return [_tally(system, mapping.name or system.name, origin) for system in report.systems]


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


def _tally(system: SavedSystem, name: str, origin: Source) -> Tally:
    tasks = system.task_table
    passed = np.array([task.passed for task in tasks], dtype=np.int64)
    return Tally(
        system=name,
        tasks=tuple(task.name for task in tasks),
        passed=passed,
        failed=np.array([task.failed for task in tasks], dtype=np.int64),
        errored=np.array([task.errored for task in tasks], dtype=np.int64),
        score_total=passed.astype(np.float64),
        score_squares=passed.astype(np.float64),
        sources=(origin,),
    )
