"""One run of a suite in the store, and its row in the table."""

from __future__ import annotations

import json
import platform
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from passhat._version import __version__
from passhat.dataclass import dataclass
from passhat.records import Source
from passhat.records.trial import STOPPED_BY_GATES

SEPARATOR = "\x1f"
"""Between the tags of a run in one answer of the database: ASCII's unit separator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The state of the code a run was made with; fields are None outside a git checkout."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    host: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a suite in the store.

    `passed` and `errored` count trials; `pass_rate` is the mean over the tasks (of each system),
    as in a report's pass^1: a task that was tried more often does not count for more.

    `status` is running, finished, interrupted, budget, failed, or stopped (its process died).
    `owner` says which process works on a running run.
    """

    id: int
    key: str
    suite: str
    status: str
    started: str
    finished: str | None = None
    suite_hash: str | None = None
    seed: int | None = None
    checkout: Checkout = field(default_factory=Checkout)
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    tags: tuple[str, ...] = ()
    trials: int = 0
    passed: int = 0
    errored: int = 0
    systems: int = 0
    tasks: int = 0
    pass_rate: float | None = None
    owner: str | None = None


def own_source(run: Run) -> Source:
    """The source of trials that passhat ran itself: the run."""
    # only a run that its gates may end has a largest number of trials
    notes = (STOPPED_BY_GATES,) if run.options.get("at_most") else ()
    return Source(name=f"run {run.key}", format="passhat history", sha256="", notes=notes)


def sources_of(run: Run) -> tuple[Source, ...]:
    """Where the trials of a run come from: the logs that it was made of, or itself."""
    return run.sources or (own_source(run),)


def new_run_row(
    suite: str,
    *,
    suite_hash: str | None,
    seed: int | None,
    checkout: Checkout,
    options: Mapping[str, Any],
    sources: Sequence[Source],
    started: str | None,
) -> dict[str, Any]:
    """The row of a run that begins, by column."""
    return {
        "key": secrets.token_hex(4),
        "suite": suite,
        "suite_hash": suite_hash,
        "status": "running",
        "started": started or now(),
        "seed": seed,
        "commit_id": checkout.commit,
        "branch": checkout.branch,
        "dirty": None if checkout.dirty is None else int(checkout.dirty),
        "host": checkout.host,
        "versions": json.dumps(checkout.versions, sort_keys=True),
        "options": json.dumps(dict(options), sort_keys=True),
        "sources": sources_text(sources),
    }


def run_of_row(row: dict[str, Any]) -> Run:
    """The run in a row with its counts and tags."""
    checkout = Checkout(
        commit=row.pop("commit_id"),
        branch=row.pop("branch"),
        dirty=None if (dirty := row.pop("dirty")) is None else bool(dirty),
        host=row.pop("host"),
        versions=json.loads(row.pop("versions")),
    )
    sources = tuple(_source_of(source) for source in json.loads(row.pop("sources")))
    tags = row.pop("tags")
    return Run(
        **{**row, "options": json.loads(row["options"])},
        checkout=checkout,
        sources=sources,
        tags=tuple(sorted(tags.split(SEPARATOR))) if tags else (),
    )


def sources_text(sources: Sequence[Source]) -> str:
    """Sources as they are stored: JSON."""
    return json.dumps([_source_dict(source) for source in sources])


def now(*, seconds_ago: float = 0.0) -> str:
    """The time, as it is stored: ISO 8601, UTC, to the millisecond."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return moment.isoformat(timespec="milliseconds")


def _source_dict(source: Source) -> dict[str, Any]:
    names = ("name", "format", "sha256", "notes", "read_as")
    return {name: getattr(source, name) for name in names}


def _source_of(kept: Mapping[str, Any]) -> Source:
    """A source as it was stored; older stores do not say how it was read."""
    read_as = tuple((str(part), str(words)) for part, words in kept.get("read_as", ()))
    return Source(**{**kept, "notes": tuple(kept["notes"]), "read_as": read_as})


def read_checkout(folder: Path) -> Checkout:
    """What git says of `folder`, with this host and these versions."""
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    lines = status.splitlines() if status is not None else []
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit = heads.get("branch.oid")
    branch = heads.get("branch.head")
    return Checkout(
        commit=None if commit == "(initial)" else commit,
        branch=None if branch == "(detached)" else branch,
        dirty=any(not line.startswith("#") for line in lines) if lines else None,
        host=platform.node(),
        versions={"passhat": __version__, "python": platform.python_version()},
    )


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
