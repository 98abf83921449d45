"""The table of formats: one line a reader, tried in this order."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.ingest.formats import inspect_log, junit, promptfoo, tables, tau_bench
from passhat.ingest.reader import Reader

READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        inspect_log.READER,
        tau_bench.READER,
        promptfoo.READER,
        junit.READER,
        tables.READER,  # last: what no tool's format claims
    )
}
