"""The table of formats: one line a reader, tried in this order."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.ingest.formats import (
    deepeval,
    harbor,
    humaneval,
    inspect_log,
    junit,
    lm_eval,
    mcpmark,
    openai_evals,
    otel,
    promptfoo,
    pydantic_evals,
    swebench,
    tables,
    tau2_bench,
    tau_bench,
    terminal_bench,
)
from passhat.ingest.reader import Reader

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        inspect_log.READER,
        tau_bench.READER,
        tau2_bench.READER,
        promptfoo.READER,
        deepeval.READER,
        pydantic_evals.READER,
        openai_evals.READER,
        lm_eval.READER,
        humaneval.READER,
        terminal_bench.READER,
        harbor.READER,
        swebench.READER,
        mcpmark.READER,
        otel.READER,
        junit.READER,
        tables.READER,  # last: what no tool's format claims
    )
}

SUMMARIES: Mapping[tuple[str, ...], str] = {
    ("results", "configs", "versions", "n-shot"): (
        "holds the means of an lm-evaluation-harness run, not its trials; run it with "
        "--log_samples and give the samples_*.jsonl"
    ),
}
"""Files of known tools that hold no trial, by their keys, and which file does."""
