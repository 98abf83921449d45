"""SWE-bench results: run reports of all vintages, and the report of each instance.

A run report is one trial of every instance. The older ones list what was generated, applied and
resolved; SWE-bench Pro writes true or false for each instance; the report of one instance is
RUN/MODEL/INSTANCE/report.json.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document, decode, read_file
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.transcripts import end_room, sibling_text
from passhat.messages import few, plural
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn

READING = Reading(
    format="SWE-bench report",
    versions="run reports of 2024 to 2026, sb-cli, Multi-SWE-bench, SWE-bench Pro, "
    "submissions, report.json of each instance",
    system="model in the file's name, or the folder of the submission or model",
    task="instance id",
    run="one for each report, or for each folder of a run",
    outcome="resolved",
    family="repository",
)

_SUBMISSION = re.compile(r"\d{8}_(.+)")
_INSTANCE = re.compile(r"(.+?)__(.+)-\d+")
_PRO_INSTANCE = re.compile(r"instance_(.+?)__(.+?)-[0-9a-f]{40}(?:-.*)?")
_PLAIN_NAMES = ("results", "result", "report", "eval_results", "final_report")
"""What reports are called that are named after nothing: their folder has the name."""
_CONTAINER = re.compile(r"(?:.*[_-])?(?:results?|evaluations?|evals?|reports?|logs)", re.IGNORECASE)
"""Folders of reports that are named after nothing either, as `new_eval_results`."""
_NUMBERED_RUN = re.compile(r"(.+?)[-_.]run[-_]?\d{1,3}", re.IGNORECASE)
"""A folder for each run of a system: `acr-run-1`, `acr-run-2`."""
# sb-cli writes SUBSET__SPLIT__RUN.json.
_SB_CLI = re.compile(r"(?:Subset\.)?swe[-_]bench[-_\w]*?__(?:dev|test)__(.+)")
# The dot between model and run in MODEL.RUN.json; a model has dots too, as in claude-3.5.
_RUN_DOT = re.compile(r"(?<!\d)\.|\.(?!\d{1,2}(?!\d))")
_PREDICTIONS = ("all_preds.jsonl", "preds.jsonl", "preds.json", "all_preds.json")

_FAILED: Mapping[str, Any] = {"outcome": Outcome.FAILED}
_PASSED: Mapping[str, Any] = {"outcome": Outcome.PASSED}
_EMPTY = {"outcome": Outcome.FAILED, "error": "empty patch"}
_BROKEN = {"outcome": Outcome.ERRORED, "error": "evaluation error"}

Ending = tuple[list[str], Mapping[str, Any]]


class _Report(msgspec.Struct):
    """The report of a run since 2024; Multi-SWE-bench writes `resolved` for `resolved_ids`."""

    resolved_ids: list[str] = []
    resolved: list[str] = []
    unresolved_ids: list[str] = []
    empty_patch_ids: list[str] = []
    error_ids: list[str] = []
    failed_ids: list[str] = []  # sb-cli: could not be evaluated
    submitted_ids: list[str] = []
    incomplete_ids: list[str] = []


class _OldReport(msgspec.Struct):
    """The report of a run in the first half of 2024."""

    resolved: list[str]
    generated: list[str] = []
    no_logs: list[str] = []
    no_generation: list[str] = []
    install_fail: list[str] = []
    reset_failed: list[str] = []
    test_errored: list[str] = []
    test_timeout: list[str] = []


class _Instance(msgspec.Struct):
    resolved: bool
    patch_is_None: bool = False  # noqa: N815 # the tool's own spelling
    patch_exists: bool = True
    patch_successfully_applied: Any = None
    tests_status: Any = None


_ASKED_OF_TESTS = {
    "FAIL_TO_PASS": "tests that the change must make pass",
    "PASS_TO_PASS": "tests that passed before",
}


class _Prediction(msgspec.Struct):
    instance_id: str = ""


def recognises(document: Document) -> bool:
    """Whether it lists instances by how they ended, or is the report of one of them."""
    by_ending = document.has("submitted_ids") or document.has("resolved", "no_generation")
    return by_ending or document.has("resolved_ids") or _is_instance(document) or _is_pro(document)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an instance; an empty patch is a failure, a broken evaluation an error."""
    if _is_instance(document):
        return _read_instances(document)
    notes: list[str] = []
    if _is_pro(document):
        verdicts = document.decode(dict[str, bool])
        endings = {task: _PASSED if passed else _FAILED for task, passed in verdicts.items()}
        vintage = "SWE-bench Pro results"
    elif document.has("no_generation"):
        endings, notes, vintage = _old(document)
    else:
        endings, notes, vintage = _new(document)
    system, source, run = _system(document)
    return _table(
        endings, system=system, notes=notes, run=run, read_as={"format": vintage, "system": source}
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """Which tests failed, as the report of one instance says; the patch and output beside it."""
    if not _is_instance(document):
        return
    most = end_room(document.limits.max_transcript) // 2
    for instance in document.decode(dict[str, _Instance]).values():
        checks = tuple(_checks(instance))
        output = sibling_text(document, "test_output.txt", most=most) or "\n".join(
            f"{check.target}: {check.message or check.found}" for check in checks
        )
        patch = sibling_text(document, "patch.diff", most=most)
        turns = (Turn(role="tests", text=output),) if output else ()
        yield Transcript(messages=turns, checks=checks, diff=patch or None)


def _checks(instance: _Instance) -> Iterator[Check]:
    if instance.patch_is_None or not instance.patch_exists:
        yield Check(target="patch", score=0.0, expected="a change", found="no change was submitted")
    elif instance.patch_successfully_applied is False:
        expected = "a change that applies to the repository"
        yield Check(target="patch", score=0.0, expected=expected, found="it does not apply")
    kinds = instance.tests_status if isinstance(instance.tests_status, dict) else {}
    for kind, tests in kinds.items():
        passed, failed = (_names(tests, ending) for ending in ("success", "failure"))
        if not passed and not failed:
            continue
        yield Check(
            target=_ASKED_OF_TESTS.get(str(kind), str(kind)),
            score=0.0 if failed else 1.0,
            message=f"{len(passed):,} of {plural(len(passed) + len(failed), 'test')} passed",
            expected="all of them pass" if failed else "",
            found="\n".join(f"{name} failed" for name in failed),
        )


def _names(tests: object, ending: str) -> list[str]:
    listed = tests.get(ending) if isinstance(tests, dict) else None
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _is_instance(document: Document) -> bool:
    """Whether every value is the harness's report on one instance."""
    if not document.first or len(document.first) > 1:
        return False
    value = bytes(next(iter(document.first.values())))
    return value.startswith(b"{") and b'"resolved"' in value and b'"patch_' in value


def _is_pro(document: Document) -> bool:
    """Whether instances of SWE-bench Pro have a verdict each, and nothing else is in the file."""
    return bool(document.first) and all(
        name.startswith("instance_") and bytes(value).strip() in (b"true", b"false")
        for name, value in document.first.items()
    )


def _system(document: Document) -> tuple[str, str, str | None]:
    """The system's name, if it was found, and its run: its folder, or a name in the file's."""
    stem = document.stem
    if document.path is not None:
        folders = list(document.path.resolve().parents)[:3]
        for folder in folders:
            if named := _SUBMISSION.fullmatch(folder.name):
                return named[1], "submission's folder", str(folder)
        if stem in _PLAIN_NAMES:
            home = next((own for own in folders if not _CONTAINER.fullmatch(own.name)), folders[0])
            numbered = _NUMBERED_RUN.fullmatch(home.name)
            return numbered[1] if numbered else home.name, "folder name", str(home)
    if named := _SB_CLI.fullmatch(stem):
        return named[1], "run in the file's name", None
    dots = list(_RUN_DOT.finditer(stem))
    if not dots:
        return stem, "file name", None
    model, run = stem[: dots[-1].start()], stem[dots[-1].end() :]
    return model, "model in the file's name", run


def _read_instances(document: Document) -> TrialTable:
    instances = document.decode(dict[str, _Instance])
    folders = document.real_folders()
    system, run = _places(folders) if len(folders) > 4 else (document.stem, None)
    endings = {}
    for name, instance in instances.items():
        unresolved = _EMPTY if instance.patch_is_None or not instance.patch_exists else _FAILED
        endings[name] = _PASSED if instance.resolved else unresolved
    facts = {"format": "SWE-bench report of one instance", "run": "folder of the run"}
    return _table(endings, system=system, read_as=facts, run=run, part=True)


def _places(folders: Sequence[str]) -> tuple[str, str]:
    """The system and its run: RUN/MODEL/INSTANCE/report.json, or SUBMISSION/logs/INSTANCE/..."""
    model, run = map(os.path.basename, folders[1:3])
    if model != "logs":
        return model, run
    named = _SUBMISSION.fullmatch(run)
    return named[1] if named else run, folders[2]


def _new(document: Document) -> tuple[dict[str, Mapping[str, Any]], list[str], str]:
    report = document.decode(_Report)
    endings = _endings(
        [
            (report.unresolved_ids, _FAILED),
            (report.empty_patch_ids, _EMPTY),
            ([*report.error_ids, *report.failed_ids], _BROKEN),
            ([*report.resolved_ids, *report.resolved], _PASSED),
        ]
    )
    if not endings and report.submitted_ids:
        raise ReadError(f"{document.name}: lists what was submitted, but not what was resolved")
    notes = []
    left = [name for name in dict.fromkeys(report.submitted_ids) if name not in endings]
    if left:  # forks have lists of their own, such as the patches that did not apply
        why = _own_lists(document, left)
        endings |= {name: {"outcome": Outcome.FAILED, "error": why.get(name)} for name in left}
        where = f" ({few(dict.fromkeys(why.values()))})" if why else ""
        all_of_them = plural(len(set(report.submitted_ids)), "submitted instance")
        counted = f"{len(left):,} of {all_of_them} {'is' if len(left) == 1 else 'are'}"
        notes.append(f"{counted} in no list of results{where}: counted as failed")
    if missing := len(set(report.incomplete_ids) - set(endings)):
        notes.append(f"{missing} instances were not submitted and are no trials")
    schema = bytes(document.first.get("schema_version", b"1"))
    version = f" (version {schema.decode()})" if schema.isdigit() and len(schema) < 4 else ""
    return endings, notes, f"SWE-bench report{version}"


def _own_lists(document: Document, instances: Collection[str]) -> dict[str, str]:
    """The list of a fork's own that each of these instances is in: `patch_apply_fail_ids`."""
    listed_in: dict[str, str] = {}
    for key, raw in document.first.items():
        if not key.endswith("_ids") or key in ("submitted_ids", "completed_ids"):
            continue
        try:
            listed = msgspec.json.decode(raw, type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        listed_in |= {name: key.removesuffix("_ids") for name in set(listed) & set(instances)}
    return listed_in


def _old(document: Document) -> tuple[dict[str, Mapping[str, Any]], list[str], str]:
    report = document.decode(_OldReport)
    notes = []
    if not document.has("generated"):
        report.generated = _predicted(document)
        notes.append("what was tried is taken from the predictions of the submission")
    broken = [*report.install_fail, *report.reset_failed, *report.test_errored]
    endings = _endings(
        [
            (report.generated, _FAILED),
            (report.no_logs, {"outcome": Outcome.FAILED, "error": "no logs of the evaluation"}),
            (report.test_timeout, {"outcome": Outcome.FAILED, "error": "tests timed out"}),
            (report.no_generation, _EMPTY),
            (broken, _BROKEN),
            (report.resolved, _PASSED),
        ]
    )
    vintage = "before run reports" if document.has("generated") else "submission"
    return endings, notes, f"SWE-bench report ({vintage})"


def _predicted(document: Document) -> list[str]:
    """The instances that a submission has predictions for: SUBMISSION/results/results.json."""
    places = list(document.path.resolve().parents)[:2] if document.path else []
    for path in (folder / name for folder in places for name in _PREDICTIONS):
        if path.is_file():
            return _instances_of(path, read_file(path, document.limits))
    raise ReadError(
        f"{document.name}: names the instances that a submission to SWE-bench resolved, but not "
        "those that it tried; keep its all_preds.jsonl beside it, or give the report of the run, "
        "or its folder logs/run_evaluation"
    )


def _instances_of(path: Path, data: bytes) -> list[str]:
    """The instances of predictions: an object by instance, a list, or JSON Lines."""
    start = data.lstrip()[:1]
    if path.suffix == ".jsonl":
        lines = (line for line in data.split(b"\n") if line.strip())
        return [decode(str(path), line, _Prediction).instance_id for line in lines]
    if start == b"[":
        return [made.instance_id for made in decode(str(path), data, list[_Prediction])]
    return list(decode(str(path), data, dict[str, msgspec.Raw]))


def _endings(by_ending: Iterable[Ending]) -> dict[str, Mapping[str, Any]]:
    """How each instance ended; what comes later decides."""
    endings: dict[str, Mapping[str, Any]] = {}
    for names, ending in by_ending:
        endings |= dict.fromkeys(names, ending)
    return endings


def _table(endings: Mapping[str, Mapping[str, Any]], **more: Any) -> TrialTable:
    rows = []
    for task, ending in endings.items():
        named = _PRO_INSTANCE.fullmatch(task) or _INSTANCE.fullmatch(task)
        family = f"{named[1]}/{named[2]}" if named else None
        rows.append({"task": task, "family": family, **ending})
    return TrialTable.of_rows(rows, entry="instance", **more)
