"""Where a report comes from: the hash of its input, the versions, the options."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import scipy
from numpy.typing import NDArray

from passhat._version import __version__
from passhat.analysis.reports.evidence import error_policy
from passhat.arguments import whole_number
from passhat.dataclass import dataclass, short_dataclass
from passhat.records import ErrorPolicy, Labels, Source, Tally, Trials
from passhat.stats.arguments import ascending, confidence_level

_LABELS = ("system", "task", "level", "tags", "tools", "error", "started", "family")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the caller chose: enough, with the input, to make the same report again."""

    ks: tuple[int, ...] | None
    confidence: float
    errors: ErrorPolicy
    bars: Mapping[str, float] | float | None
    seed: int

    @classmethod
    def checked(
        cls,
        *,
        ks: int | Sequence[int] | None,
        confidence: float,
        errors: str,
        seed: int,
        bars: Mapping[str, float] | float | None = None,
    ) -> ReportOptions:
        """The options of a caller; an error names the one that makes no sense."""
        return cls(
            ks=None if ks is None else ascending("ks", ks),
            confidence=confidence_level(confidence),
            errors=error_policy(errors),
            bars=bars,
            seed=whole_number("seed", seed, least=0),
        )


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a report comes from: input, versions, options."""

    input_sha256: str
    sources: tuple[Source, ...]
    versions: Mapping[str, str]
    options: ReportOptions
    platform: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


def stamp(trials: Trials | Sequence[Tally], options: ReportOptions) -> Provenance:
    """What is needed to know that two reports have the same origin."""
    return Provenance(
        input_sha256=input_hash(trials),
        sources=sources_of(trials),
        versions=versions(),
        options=options,
        platform=f"{sys.platform} {platform.machine()}",
        counts=_counts(trials),
    )


def _counts(trials: Trials | Sequence[Tally]) -> dict[str, int]:
    if isinstance(trials, Trials):
        sizes = len(trials.systems), len(trials.tasks), len(trials)
    else:
        names = {name for tally in trials for name in tally.tasks}
        sizes = len(trials), len(names), sum(tally.trials for tally in trials)
    return dict(zip(("systems", "tasks", "trials"), sizes, strict=True))


def sources_of(trials: Trials | Sequence[Tally]) -> tuple[Source, ...]:
    """The files that were read, each once."""
    tables = [trials] if isinstance(trials, Trials) else trials
    return tuple(dict.fromkeys(source for table in tables for source in table.sources))


def versions() -> dict[str, str]:
    """The versions of passhat and of the libraries that its numbers depend on."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "passhat": __version__,
        "python": python,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def input_hash(trials: Trials | Sequence[Tally]) -> str:
    """A hash of all that the analysis reads, whatever the order of the rows.

    >>> table = Trials.from_columns(task=["a", "b"], trial=[0, 0], passed=[True, False])
    >>> input_hash(table) == input_hash(table.take(np.array([1, 0])))
    True
    """
    if isinstance(trials, Trials):
        trials = _in_order(trials)
    digest = hashlib.sha256()
    parts = _columns(trials) if isinstance(trials, Trials) else _sums(trials)
    for name, data in parts:
        digest.update(f"{name}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def _in_order(trials: Trials) -> Trials:
    """The rows by system, task and number of the trial, and by all else where these are equal."""
    task, system = (
        _sorted_codes(column)[0][column.codes] for column in (trials.task, trials.system)
    )
    return trials.take(np.lexsort((trials.score, trials.outcome, trials.trial, task, system)))


def _sorted_codes(column: Labels) -> tuple[NDArray[np.int64], list[str]]:
    """The place of each code among the sorted names (a missing one last), and these names."""
    order = sorted(range(len(column.names)), key=column.names.__getitem__)
    places = np.empty(len(order) + 1, dtype=np.int64)
    places[order] = np.arange(len(order))
    places[-1] = len(order)
    return places, [column.names[i] for i in order]


def _columns(trials: Trials) -> Iterator[tuple[str, bytes]]:
    for name in _LABELS:
        column: Labels | None = getattr(trials, name)
        if column is not None:
            places, names = _sorted_codes(column)
            yield f"{name} names", "\0\0".join(names).encode("utf-8", "surrogatepass")
            yield name, places[column.codes].tobytes()
    for name in ("trial", "outcome", "score"):
        yield name, getattr(trials, name).tobytes()
    for name in ("seed", "weight"):
        if getattr(trials, name) is not None:
            yield name, getattr(trials, name).tobytes()
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
