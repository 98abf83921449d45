"""Where a report comes from: the input's hash, the versions, the options."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from passhat._version import __version__
from passhat.messages import repr_fields
from passhat.records import ErrorPolicy, Labels, Source, Tally, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller chose: enough, with the input, to make the same report again."""

    ks: tuple[int, ...] | None
    confidence: float
    errors: ErrorPolicy
    bars: Mapping[str, float] | float | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: input, versions, options."""

    input_sha256: str
    sources: tuple[Source, ...]
    versions: Mapping[str, str]
    options: Options

    __repr__ = repr_fields


def stamp(trials: Trials | Sequence[Tally], options: Options) -> Provenance:
    """What is needed to know that two reports have the same origin."""
    return Provenance(
        input_sha256=input_hash(trials),
        sources=sources_of(trials),
        versions=versions(),
        options=options,
    )


def sources_of(trials: Trials | Sequence[Tally]) -> tuple[Source, ...]:
    """The files that were read, each once."""
    tables = [trials] if isinstance(trials, Trials) else trials
    return tuple(dict.fromkeys(source for table in tables for source in table.sources))


def versions() -> dict[str, str]:
    """What computed: passhat and the libraries its numbers depend on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "passhat": __version__,
        "python": python,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def input_hash(trials: Trials | Sequence[Tally]) -> str:
    """A hash of all that the analysis reads.

    >>> table = Trials.from_columns(task=["a", "a"], passed=[True, False])
    >>> input_hash(table)[:12] == input_hash(table.take(np.array([0, 1])))[:12]
    True
    """
    digest = hashlib.sha256()
    parts = _columns(trials) if isinstance(trials, Trials) else _sums(trials)
    for name, data in parts:
        digest.update(f"{name}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def _columns(trials: Trials) -> Iterator[tuple[str, bytes]]:
    labels = ("system", "task", "level", "tags", "tools", "error", "started")
    for name in labels:
        column: Labels | None = getattr(trials, name)
        if column is not None:
            yield f"{name} names", "\0\0".join(column.names).encode("utf-8", "surrogatepass")
            yield name, column.codes.tobytes()
    for name in ("trial", "outcome", "score"):
        yield name, getattr(trials, name).tobytes()
    if trials.seed is not None:
        yield "seed", trials.seed.tobytes()
    for name, values in trials.features.items():
        yield name, values.tobytes()


def _sums(tallies: Sequence[Tally]) -> Iterator[tuple[str, bytes]]:
    for tally in tallies:
        yield "system", tally.system.encode("utf-8", "surrogatepass")
        yield "tasks", "\0".join(tally.tasks).encode("utf-8", "surrogatepass")
        for name in ("passed", "failed", "errored", "score_total", "score_squares"):
            yield name, getattr(tally, name).tobytes()
        for name, sums in tally.features.items():
            yield name, sums.count.tobytes() + sums.total.tobytes() + sums.squares.tobytes()
