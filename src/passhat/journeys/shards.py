"""Shards: parts of one fixed plan that run anywhere, without a server, and are put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, HistoryError

if TYPE_CHECKING:
    from passhat.history import Run
    from passhat.journeys.run_request import RunRequest
    from passhat.records import Trial
    from passhat.runner.schedule import Shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The run that shards were put together in, and the shards that are missing."""

    run: Run
    missing: tuple[int, ...]


def read_shard(text: str | None) -> Shard | None:
    """`3/10` is the third of ten parts.

    >>> read_shard("3/10")
    Shard(number=3, of=10)
    """
    if text is None:
        return None
    from passhat.runner.schedule import Shard

    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise ArgumentError("shard", "must be a part such as 3/10", text)
    return Shard(int(found[1]), int(found[2]))


def refuse_sequential_shard(request: RunRequest) -> None:
    """A gate that decides as evidence comes in cannot be split: no part sees all of it."""
    if read_shard(request.shard) is not None and request.until_settled:
        raise ArgumentError(
            "shard", "cannot go with `until_settled`: each shard would stop on its own evidence",
            request.shard,
        )  # fmt: skip


def merge_shards(stores: Sequence[str | Path], into: str | Path) -> Merged:
    """Put the newest run of each store, all shards of one run, together as one run in `into`.

    Shards of different suites, seeds or requests are refused, and so is a trial that two of them
    have. The trials come in the order of the whole plan, so that gates see the same evidence.
    """
    from passhat.history import History
    from passhat.history.queries import all_transcripts

    parts: list[tuple[Run, list[Trial], dict[Any, str]]] = []
    for store in stores:
        with History.open(store, read_only=True) as history:
            run = _shard_run(history.runs(), str(store))
            parts.append((run, list(history.trials(run)), dict(all_transcripts(history, run))))
    first = _the_same(parts)
    every = (trial for _, found, _ in parts for trial in found)
    # As one process would have run them: first every pairing once, then every one again.
    trials = sorted(every, key=lambda trial: (trial.trial, trial.system, trial.task))
    with History.open(into) as history:
        options = {**first.options, "shard": None}
        run = history.start_run(
            first.suite,
            suite_hash=first.suite_hash,
            seed=first.seed,
            checkout=first.checkout,
            options=options,
            started=min(part.started for part, _, _ in parts),
        )
        try:
            history.add_trials(run, trials)
        except HistoryError:
            history.delete(run)
            raise HistoryError("two of these shards have the same trial: name each once") from None
        for _, _, said in parts:
            history.add_transcripts(run, said)
        missing = _missing(parts)
        return Merged(
            run=history.finish_run(run, "interrupted" if missing else "finished"), missing=missing
        )


def _shard_run(runs: Sequence[Run], store: str) -> Run:
    if found := next((run for run in runs if run.options.get("shard")), None):
        return found
    raise HistoryError(f"{store}: holds no shard of a run")


def _the_same(parts: Sequence[tuple[Run, Any, Any]]) -> Run:
    first = parts[0][0]
    for run, _, _ in parts:
        if _plan(run) != _plan(first):
            raise HistoryError(
                f"runs {first.key} and {run.key} are shards of different runs: the suite, the seed "
                "or what was asked for differs"
            )
    return first


def _plan(run: Run) -> tuple[Any, ...]:
    from passhat.journeys.run_request import RunRequest

    identity = RunRequest.from_json(run.options).identity
    shard = read_shard(str(identity.pop("shard")))
    return run.suite_hash, run.seed, sorted(map(repr, identity.items())), shard and shard.of


def _missing(parts: Sequence[tuple[Run, Any, Any]]) -> tuple[int, ...]:
    """The numbers of the shards that are not there or did not finish."""
    shards = [(read_shard(str(run.options["shard"])), run.status) for run, _, _ in parts]
    unfinished = {shard.number for shard, status in shards if shard and status != "finished"}
    there = {shard.number for shard, _ in shards if shard} - unfinished
    of = max(shard.of for shard, _ in shards if shard)
    return tuple(number for number in range(1, of + 1) if number not in there)
