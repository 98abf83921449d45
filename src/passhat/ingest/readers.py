"""The table of formats: one line a reader, tried in this order, loaded when first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import cast

from passhat.ingest.document import Kind
from passhat.ingest.reader import Reader

# By its name: the module of a reader, and the kinds of document that it may know. Loading all
# takes longer than reading a small table.
_FORMATS: Mapping[str, tuple[str, tuple[Kind, ...]]] = {
    "inspect": ("inspect_log", ("zip", "json")),
    "tau-bench": ("tau_bench", ("array",)),
    "tau2-bench": ("tau2_bench", ("json",)),
    "promptfoo": ("promptfoo", ("text", "lines", "json")),
    "deepeval": ("deepeval", ("json",)),
    "pydantic-evals": ("pydantic_evals", ("json",)),
    "openai-evals": ("openai_evals", ("lines",)),
    "lm-eval": ("lm_eval", ("lines",)),
    "humaneval": ("humaneval", ("lines", "json")),
    "terminal-bench": ("terminal_bench", ("json",)),
    "harbor": ("harbor", ("json",)),
    "swe-bench": ("swebench", ("json",)),
    "mcpmark": ("mcpmark", ("json",)),
    "aider": ("aider", ("json",)),
    "otel": ("otel", ("lines", "array", "json")),
    "junit": ("junit", ("xml",)),
    # last: what no tool's format claims
    "table": ("tables", ("text", "lines", "array", "json", "parquet")),
}


COMPANIONS = frozenset({"messages.json", "trajectory.json", ".latest_test_run.json"})
"""The names of files that some format keeps beside its results: the words of a run, as a rule."""

HIDDEN_RESULTS = frozenset(
    {".aider.results.json", ".deepeval", ".latest_run_full.json", ".latest_test_run.json"}
)
"""Files and folders that begin with a dot and hold results all the same."""


class _Readers(Mapping[str, Reader]):
    """The readers by name, each loaded when it is taken out."""

    def __getitem__(self, name: str) -> Reader:
        module, _ = _FORMATS[name]
        return cast("Reader", import_module(f"passhat.ingest.formats.{module}").READER)

    def __iter__(self) -> Iterator[str]:
        return iter(_FORMATS)

    def __len__(self) -> int:
        return len(_FORMATS)


READERS: Mapping[str, Reader] = _Readers()


def readers_of(kind: Kind) -> Iterator[Reader]:
    """The readers that may know a document of this kind, in the order in which to ask.

    >>> [reader.name for reader in readers_of("text")]
    ['promptfoo', 'table']
    """
    return (READERS[name] for name, (_, kinds) in _FORMATS.items() if kind in kinds)
