"""The error for a file of unknown format: what it seems to be, and which file to give instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote

from passhat.errors import ReadError, UnknownFile
from passhat.ingest.document import Document
from passhat.ingest.formats import tables
from passhat.ingest.readers import READERS
from passhat.ingest.rows import column_names
from passhat.messages import few, short
from passhat.records.columns import ColumnMap, find_columns

SUMMARIES: Mapping[tuple[str, ...], str] = {
    ("results", "configs", "versions", "n-shot"): (
        "holds the means of an lm-evaluation-harness run, not its trials; run it with "
        "--log_samples and give the samples_*.jsonl"
    ),
    ("method", "llm", "test_normal"): (
        "is the leaderboard of AppWorld, with the means of each method; give the "
        "evaluations/*.json of an experiment"
    ),
    ("instance_id", "model_patch"): (
        "holds predictions for SWE-bench without verdicts; evaluate them and give the report of "
        "the run, or its folder logs/run_evaluation"
    ),
    ("task_id", "completion"): (
        "holds completions without verdicts; run evaluate_functional_correctness and give the "
        "*_results.jsonl that it writes"
    ),
    ("task_id", "solution"): (
        "holds solutions without verdicts; run evalplus.evaluate and give the "
        "*_eval_results.json that it writes"
    ),
    ("resolved", "resolved_per_project"): (
        "lists what a run of SWE-bench resolved, but not what it tried; give the report of the run "
        "or its folder logs/run_evaluation"
    ),
    ("submission_date", "results", "submitting_organization"): (
        "is a submission to the leaderboard of tau2-bench, with the means of each domain; give the "
        "trajectory files that it names"
    ),
    ("instance_id", "test_result"): (
        "is what OpenHands writes of SWE-bench; say where its verdicts are, with "
        "`passed='test_result.report.resolved'`"
    ),
    ("pass@1", "detail"): (
        "holds the means of a LiveCodeBench run; give the *_eval_all.json beside it"
    ),
    ("metric", "score"): (
        "holds one mean for each metric, not runs; give the table with a row for each run"
    ),
    ("date", "config", "summary", "eval"): (
        "holds the speed of solutions that EvalPerf measured, not whether they passed; give the "
        "*_eval_results.json that evalplus.evaluate writes"
    ),
    ("question_id", "output_list"): (
        "holds answers to LiveCodeBench without grades; evaluate them and give the *_eval_all.json"
    ),
    ("_resultsLoaded", "results"): (
        "was written by promptfoo's Node package before its results were loaded, and holds none; "
        "write the evaluation with `promptfoo eval -o out.json`"
    ),
    ("competition_reports",): (
        "is a grading report of MLE-bench; say what passes, such as `task='competition_id'` and "
        "`passed='any_medal'`"
    ),
    ("task_id", "prompt", "entry_point"): (
        "holds problems, not results; give what the evaluation of their solutions wrote"
    ),
    ("testRunLink",): (
        "links to a test run on Confident AI and holds no results; give the test run that "
        "`deepeval test run` leaves in .deepeval without a login"
    ),
    ("Action", "Package"): (
        "is what `go test -json` prints; write JUnit XML with `gotestsum --junitfile` and give that"
    ),
    ("stats", "tests", "passes", "failures"): (
        "is Mocha's JSON report; write JUnit XML with mocha-junit-reporter, or CTRF, and give that"
    ),
    ("numTotalTests", "testResults"): (
        "is the JSON report of Jest or Vitest; write JUnit XML or CTRF with a reporter, and give "
        "that"
    ),
    ("examples", "summary_line"): (
        "is RSpec's JSON report; write JUnit XML with rspec_junit_formatter and give that"
    ),
    ("passhat", "sum", "system"): (
        "is a cassette with recorded answers of a model, not results; run its suite to use it"
    ),
    ("scenario_spec", "adapter_spec"): (
        "holds the settings of a HELM run; give per_instance_stats.json from the same folder"
    ),
}
"""Files of known tools that hold no trial, by their keys, and which file does."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

_SUITE = re.compile(rb"^(agents|systems|tasks):", re.MULTILINE)
"""A key that only a suite has at the left margin of its YAML."""

_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_DOCUMENTS = (".pdf", ".docx", ".doc", ".odt", ".pptx", ".png", ".jpg", ".jpeg", ".svg")

OWN = "passhat."
"""How the schema of what passhat writes begins."""

WITH_RUNS = ("passhat.report/1", "passhat.run/1", "passhat.events/1")
"""Answers that say how each run of a task ended: these can be read back."""


def own_answer(document: Document) -> ReadError | None:
    """The error of an answer that passhat wrote as JSON and that holds rates, not trials."""
    schema = document.first.get("schema") if document.kind in ("json", "lines") else None
    if schema is None or not bytes(schema).startswith(f'"{OWN}'.encode()):
        return None
    written = bytes(schema).decode(errors="replace").strip('"')
    if written in WITH_RUNS:
        return None
    return ReadError(
        f"{document.name}: is an answer that passhat wrote ({short(written)}), and holds rates, "
        "not trials; give what the answer was made from"
    )


def unknown_file(document: Document) -> ReadError:
    """The error of a file that no reader knows."""
    names = column_names(document)
    nature = _summary(document, names) or _nature(document, names)
    if nature is not None:
        return ReadError(f"{document.name}: {nature}")
    found = find_columns(names, ColumnMap())
    if document.kind != "json" and not found.keys().isdisjoint(("task", "passed", "score")):
        fault = tables.lacking(document.name, names, ColumnMap())
        if fault is not None:
            return fault
    return UnknownFile(
        f"{document.name}: not a file that passhat can read. {_way_out(document, names)}"
    )


def _way_out(document: Document, names: list[str]) -> str:
    """What to do with a file that no reader knows."""
    nested = document.kind == "json" and names == list(document.first)
    if nested:
        return (
            f"It is one JSON object with the keys {few(names)}. If it is one run, name its keys "
            "with `task`, `passed` or `score`, `trial` and `system` (a key inside another as "
            "outer.inner); otherwise give the tool's own log (`format` names the tool, passhat "
            f"knows {len(READERS)}), or a table with a row for each run"
        )
    has = f"It has the columns {few(names)}. " if names else ""
    return (
        f"{has}Name the columns of a table with `task`, `passed` or `score`, `trial` and `system`, "
        f"or the tool with `format` (passhat knows {len(READERS)})"
    )


def _summary(document: Document, names: list[str]) -> str | None:
    known = document.first.keys() | set(names)
    return next((what for keys, what in SUMMARIES.items() if known.issuperset(keys)), None)


def _nature(document: Document, names: list[str]) -> str | None:
    """What kind of file it is, where it cannot be a result file whatever its columns are called."""
    if named := _nature_by_ending(document):
        return named
    if document.kind == "binary":
        return "is a binary file that passhat cannot read"
    if document.kind == "zip":
        return "is a ZIP archive without an Inspect log; unpack it"
    if re.search(rb"<!doctype html|<html", document.data[:1024], re.IGNORECASE):
        return "is a web page; give the JSON, CSV or XML that the tool writes"
    if document.kind == "xml":
        root = re.search(rb"<([A-Za-z_][\w:.-]{0,60})", document.data[:4096])
        found = f", not <{short(root[1].decode())}>" if root else ""
        return f"is XML, but no JUnit report: its root must be <testsuites> or <testsuite>{found}"
    if document.kind == "array" and not document.first:
        return "is a list without objects; each trial must be one, with its task and outcome"
    if document.kind == "json" and not document.first:
        return "is an empty JSON object: it holds no trial"
    if document.data.startswith(_LFS_POINTER):
        return "is a pointer of Git LFS, not the file itself; fetch that with `git lfs pull`"
    if document.kind == "text" and not names:
        return "is not text in UTF-8; save it as UTF-8 again"
    if document.kind == "text" and len(names) == 1 and len(names[0].split()) > 2:
        return "is text, not a table: its first line has no columns"
    return None


def _nature_by_ending(document: Document) -> str | None:
    """What the ending of its name says about a file that no reader knows."""
    name = document.name.lower()
    if name.endswith(_SPREADSHEETS):
        return "is a spreadsheet, which passhat cannot read; save the sheet as CSV and give that"
    if name.endswith(_DOCUMENTS):
        return "is a document or a picture; give the table or log with a row for each run"
    if name.endswith(".py"):
        return (
            "is a Python program, not its results; give the file that it writes, or let `passhat "
            "init --python module:function` make a suite that runs a function of it"
        )
    if not name.endswith((".yml", ".yaml")):
        return None
    if _SUITE.search(document.data):
        return f"is a suite, not results; run it with `passhat run {quote(document.name)}`"
    return "is YAML, which holds settings or means; give the table or log with a row for each run"
