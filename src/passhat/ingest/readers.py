"""The table of formats: one line a reader, tried in this order, loaded when first needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module

from passhat.ingest.document import Document, Kind
from passhat.ingest.reader import Reader

_TABLES: tuple[Kind, ...] = ("text", "lines", "array", "parquet")

KINDS_OF_TABLES = ("csv", "tsv", "json", "jsonl", "ndjson", "parquet")
"""Kinds of files that people name where a tool is to be named: these are known by their content."""

# By name: the module of a reader, the kinds of document that it reads, and words of which one must
# be among the columns or keys. Loading all modules takes longer than reading a small table, and
# trying all readers longer than reading a small file.
_FORMATS: Mapping[str, tuple[str, tuple[Kind, ...], tuple[str, ...]]] = {
    "passhat": ("passhat_json", ("json", "lines"), ("schema",)),
    "inspect": ("inspect_log", ("zip", "json"), ("eval",)),
    "tau-bench": ("tau_bench", ("array",), ("traj",)),
    "tau2-bench": ("tau2_bench", ("json",), ("simulation", "tasks")),
    "promptfoo": (
        "promptfoo",
        ("text", "lines", "json"),
        ("Status", "gradingResult", "results", "[", "{"),  # a CSV's headers have providers, prompts
    ),
    "deepeval": ("deepeval", ("json",), ("testRunData", "testCases")),
    "pydantic-evals": ("pydantic_evals", ("json",), ("cases",)),
    "openai-evals": ("openai_evals", ("lines",), ("spec",)),
    "lm-eval": ("lm_eval", ("lines",), ("resps",)),
    "humaneval": ("humaneval", ("lines", "json"), ("completion",)),
    "terminal-bench": ("terminal_bench", ("json",), ("results", "is_resolved")),
    "harbor": ("harbor", ("json",), ("agent_info", "n_total_trials")),
    "swe-bench": ("swebench", ("json",), ()),
    "mcpmark": ("mcpmark", ("json",), ("runs", "execution_result")),
    "aider": ("aider", ("json",), ("tests_outcomes",)),
    "ctrf": ("ctrf", ("json",), ("results",)),
    "playwright": ("playwright", ("json",), ("suites",)),
    "evalplus": ("evalplus", ("json",), ("eval",)),
    "livecodebench": ("livecodebench", ("array",), ("graded_list",)),
    "hal": ("hal", ("json",), ("raw_eval_results",)),
    "bfcl": ("bfcl", ("lines", "json"), ("correct_count", "result")),
    "appworld": ("appworld", ("json",), ("individual",)),
    "helm": ("helm", ("array",), ("train_trial_index",)),
    "metr": ("metr", ("lines", "json"), ("score_binarized",)),
    "nemo-evaluator": ("nemo_evaluator", ("array", "lines"), ("scoring_details",)),
    "tracelens": ("tracelens", ("json",), ("batch_id",)),
    "mlflow": ("mlflow_table", ("json",), ("columns",)),
    "langsmith": ("langsmith", _TABLES, ("feedback.",)),
    "braintrust": ("braintrust", ("text", "lines", "array"), ("span_id",)),
    "langfuse": (
        "langfuse",
        ("text", "lines", "array", "json"),
        ("dataType", "data_type", "data\nmeta"),  # an answer of its API has these two keys
    ),
    "phoenix": ("phoenix", ("text", "lines", "array"), ("example_id",)),
    "weave": ("weave", ("lines", "array"), ("op_name",)),
    "ragas": ("ragas", _TABLES, ("contexts",)),
    "inspect-dataframe": ("inspect_dataframe", _TABLES, ("eval_id",)),
    "score-array": ("score_arrays", ("array", "binary"), ()),
    "otel": ("otel", ("lines", "array", "json"), ("resourceSpans", "parent_id")),
    "junit": ("junit", ("xml",), ()),
    # last: for what no other reader recognises
    "table": ("tables", ("text", "lines", "array", "json", "parquet"), ()),
}


COMPANIONS = frozenset(
    {
        *("messages.json", "trajectory.json", "run_metadata.json", ".latest_test_run.json"),
        *("config.json", "run_spec.json", "scenario.json", "scenario_state.json", "stats.json"),
    }
)
"""The names of files that some format keeps beside its results, mostly transcripts."""

HIDDEN_RESULTS = frozenset(
    {".aider.results.json", ".deepeval", ".latest_run_full.json", ".latest_test_run.json"}
)
"""Files and folders that hold results although their names begin with a dot."""

_HEADER = 2**16
"""Bytes of the first line of a table in which words are looked for."""


class _Readers(Mapping[str, Reader]):
    """The readers by name, each loaded when it is first used."""

    def __getitem__(self, name: str) -> Reader:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FORMATS)

    def __len__(self) -> int:
        return len(_FORMATS)


READERS: Mapping[str, Reader] = _Readers()


@cache
def _load(name: str) -> Reader:
    file, kinds, _ = _FORMATS[name]
    module = import_module(f"passhat.ingest.formats.{file}")
    return Reader(
        name=name,
        kinds=kinds,
        reading=module.READING,
        has_marks=module.recognises,
        read=module.read,
        transcripts=getattr(module, "transcripts", None),
    )


def readers_of(document: Document) -> Iterator[Reader]:
    """The readers that may recognise a document, in the order in which to try them."""
    for name in formats_of(document):
        yield READERS[name]


def formats_of(document: Document) -> tuple[str, ...]:
    """The names of the formats that a document may have, by its kind and its columns or keys."""
    heading = _heading(document)
    if heading is None:
        return _formats_of_kind(document.kind, None)
    if not _words_of_kind(document.kind).search(heading):
        return _formats_of_kind(document.kind, "")
    return _formats_of_kind(document.kind, heading)


# The files of a folder have few headings between them.
@lru_cache(maxsize=64)
def _formats_of_kind(kind: Kind, heading: str | None) -> tuple[str, ...]:
    return tuple(
        name
        for name, (_, kinds, words) in _FORMATS.items()
        if kind in kinds
        and (not words or heading is None or any(word in heading for word in words))
    )


@cache
def _words_of_kind(kind: Kind) -> re.Pattern[str]:
    """A pattern of all words by which the formats of a kind are recognised."""
    words = {word for _, kinds, words in _FORMATS.values() if kind in kinds for word in words}
    return re.compile("|".join(map(re.escape, sorted(words))) or r"(?!)")


def _heading(document: Document) -> str | None:
    """The names of columns or keys as one text; None if they are not known yet."""
    if document.kind in ("json", "lines", "array"):
        return "\n".join(document.first)
    if document.kind == "text":
        return document.data[:_HEADER].partition(b"\n")[0].decode("utf-8", errors="replace")
    return None
