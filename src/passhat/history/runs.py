"""The runs of a store: what is kept of each, and how one is found by its name or tag."""

from __future__ import annotations

import getpass
import json
import platform
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from passhat._version import __version__
from passhat.dataclass import dataclass, replace
from passhat.errors import HistoryError
from passhat.history.database import Database
from passhat.messages import listed, plural, short_time, typo_hint
from passhat.records import Source
from passhat.records.ledger import RunAction as RunAction
from passhat.records.ledger import RunChange as RunChange
from passhat.records.trial import Ended, noted_end

Kind = Literal["latest", "tag", "key", "commit", "branch"]

LATEST = "latest"
_LATEST = re.compile(rf"{LATEST}(?:~(\d{{1,4}}))?")
"""The newest run, or the one so many before it, as git counts commits."""
SHORTEST = 4
"""How many characters of a key or a commit are enough, if no other begins with them."""

_NAMED = 5
# A whole name comes before the beginning of one, and a name of one run before a name of many.
_WHOLE: dict[Kind, str] = {
    "tag": "SELECT id FROM runs WHERE id IN (SELECT run FROM tags WHERE name = ?1) "
    "ORDER BY started DESC, id DESC",
    "key": "SELECT id FROM runs WHERE key = ?1",
    "commit": "SELECT id FROM runs WHERE commit_id = ?1 ORDER BY started DESC, id DESC",
    "branch": "SELECT id FROM runs WHERE branch = ?1 ORDER BY started DESC, id DESC",
}
_BEGINNINGS: dict[Kind, str] = {
    "key": "SELECT id, key FROM runs WHERE substr(key, 1, length(?1)) = ?1",
    "commit": "SELECT id, commit_id FROM runs WHERE substr(commit_id, 1, length(?1)) = ?1 "
    "ORDER BY started DESC, id DESC",
}


class Index(Protocol):
    """Where runs are looked up: the history store."""

    name: str
    database: Database

    def runs(self, *, limit: int | None = None) -> list[Run]: ...

    def run_by_id(self, run_id: int) -> Run: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRun:
    """The run that a name stands for, and a note where several runs have the name."""

    run: Run
    note: str | None = None


def named_run(history: Index, reference: str) -> NamedRun:
    """The run of that name; of several with one tag, of one commit or of a branch, the newest.

    A whole key or commit comes before one that only begins with the name; a beginning that fits
    several is refused.
    """
    kind, ids = _fitting(history, reference)
    run = history.run_by_id(ids[0])
    if kind not in ("commit", "tag") or len(ids) == 1:
        return NamedRun(run=run)  # the newest run of a branch needs no note
    several, taken = f"{plural(len(ids), 'run')} of commit {run.checkout.commit}", run.key
    if kind == "tag":
        several = f"{plural(len(ids), 'suite has', 'suites have')} a run {reference}"
        taken = f"{run.key} of {run.suite}"
    return NamedRun(run=run, note=f"{several}; taken: the newest, {taken}")


def named_baseline(
    history: Index, reference: str, *, judged: Run | None, suite: str | None = None
) -> NamedRun:
    """The baseline of a run: the newest other run of that name.

    On a branch, it is one of the same suite, and a finished one if there is any. `suite` is that
    of a run which has not begun.
    """
    kind, ids = _fitting(history, reference)
    suite = suite if judged is None else judged.suite
    if suite is None:
        return named_run(history, reference)
    if kind == "tag":  # each suite may have a run of that name
        own = [number for number in ids if history.run_by_id(number).suite == suite]
        ids = own or ids
    if kind == "branch":
        rows = history.database.execute(
            "SELECT id FROM runs WHERE branch = ? AND suite = ? "
            "ORDER BY status != 'finished', started DESC, id DESC",
            (reference, suite),
        )
        ids = [run for (run,) in rows]
    others = [run for run in ids if judged is None or run != judged.id]
    if not others:
        raise HistoryError(_no_other(history, reference, kind, judged, suite))
    run = history.run_by_id(others[0])
    whose = "" if run.suite == suite else f" of another suite, {run.suite},"
    day = short_time(run.started, year=True)
    note = f"compared with run {run.key}{whose} of {day} ({reference})"
    return NamedRun(run=run, note=note)


def tagged_run(history: Index, tag: str, suite: str) -> Run | None:
    """The run of a suite that has a tag."""
    row = history.database.execute(
        "SELECT t.run FROM tags t JOIN runs r ON r.id = t.run WHERE t.name = ? AND r.suite = ? "
        "ORDER BY r.started DESC, r.id DESC LIMIT 1",
        (tag, suite),
    ).fetchone()
    return None if row is None else history.run_by_id(row[0])


def knows(history: Index, reference: str) -> bool:
    """Whether any run has that name, or one that begins with it."""
    return _matching(history, reference) is not None


def _fitting(history: Index, reference: str) -> tuple[Kind, list[int]]:
    if (fitting := _matching(history, reference)) is None:
        raise HistoryError(_unknown(history, reference))
    return fitting


def _matching(history: Index, reference: str) -> tuple[Kind, list[int]] | None:
    """The runs of that name, newest first, and what kind of name it is."""
    if counted := _LATEST.fullmatch(reference):
        back = int(counted[1] or 0)
        if len(newest := history.runs(limit=back + 1)) > back:
            return "latest", [newest[back].id]
    for kind, query in _WHOLE.items():
        if rows := history.database.execute(query, (reference,)).fetchall():
            return kind, [run for (run,) in rows]
    return _beginning_with(history, reference) if len(reference) >= SHORTEST else None


def _beginning_with(history: Index, reference: str) -> tuple[Kind, list[int]] | None:
    named: dict[str, tuple[Kind, list[int]]] = {}
    for kind, query in _BEGINNINGS.items():
        for run, name in history.database.execute(query, (reference,)):
            named.setdefault(name, (kind, []))[1].append(run)
    if len(named) > 1:
        raise HistoryError(
            f"{history.name}: {reference!r} is the beginning of several: "
            f"{listed(named, _NAMED)}; write more of the one that you mean"
        )
    return next(iter(named.values()), None)


def _no_other(history: Index, reference: str, kind: Kind, judged: Run | None, suite: str) -> str:
    if judged is None:
        return f"{history.name}: {kind} {reference} has no run of {suite} to compare with"
    what = f"{reference} is the run that is judged ({judged.key})"
    if kind in ("branch", "commit"):
        what = f"{kind} {reference} has no other run of {suite} to compare {judged.key} with"
    return (
        f"{history.name}: {what}, and a run is not compared with itself; "
        "`passhat history` lists the runs"
    )


def _unknown(history: Index, reference: str) -> str:
    newest = history.runs(limit=5)
    if reference == LATEST:
        return f"{history.name}: no finished run yet: `passhat run` makes one"
    if _LATEST.fullmatch(reference):
        return f"{history.name}: {reference} is before the first run: see `passhat history`"
    rule = f"the first {SHORTEST} characters of a key or a commit are enough"
    hint = typo_hint(reference, [LATEST, *(tag for run in newest for tag in run.tags)])
    return (
        f"{history.name}: no run, tag, branch or commit {reference!r}{hint}; {rule}; "
        f"newest runs: {listed(run.key for run in newest) or 'none'}"
    )


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

    @property
    def stopped_early(self) -> bool:
        """Whether its gates ended it before as many trials had come as were planned."""
        return self.status == "finished" and self.trials < (self.options.get("at_most") or 0)

    @property
    def whole(self) -> bool:
        """Whether every task was run that its suite had."""
        if self.status != "finished" or self.stopped_early or "suite" not in self.options:
            return False
        return not any(map(self.options.get, ("only", "tasks", "tags", "shard", "rows", "faults")))


def run_name(run: Run) -> str:
    """The name of a run: its first tag, or its key."""
    return run.tags[0] if run.tags else run.key


def this_person() -> str:
    """Who sits at this machine, as its system calls them."""
    with suppress(Exception):  # a container may have a user without a name
        return getpass.getuser()
    return "somebody"


def own_source(run: Run) -> Source:
    """The source of trials that passhat ran itself: the run."""
    # Only a run that its gates may end has a largest number of trials; a pytest session says so.
    ended: Ended | None = "early" if run.stopped_early else "by gates"
    ended = ended if run.options.get("at_most") else run.options.get("ended")
    return Source(name=f"run {run.key}", format="passhat history", sha256="", ended=ended)


def sources_of(run: Run) -> tuple[Source, ...]:
    """Where the trials of a run come from: the logs that it was made of, or itself."""
    own = own_source(run)
    return tuple(
        # What was noted while it ran did not know how it would end.
        replace(source, ended=own.ended) if source.name == own.name else source
        for source in run.sources or (own,)
    )


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
    del row["sealed"]  # `History.verify` compares it
    checkout = Checkout(
        commit=row.pop("commit_id"),
        branch=row.pop("branch"),
        dirty=None if (dirty := row.pop("dirty")) is None else bool(dirty),
        host=row.pop("host"),
        versions=json.loads(row.pop("versions")),
    )
    sources = []
    for stored in json.loads(row.pop("sources")):
        # Older stores do not say how a source was read.
        read_as = tuple((str(part), str(words)) for part, words in stored.get("read_as", ()))
        noted = noted_end(stored["notes"])  # as older versions stored it
        notes = tuple(note for note in stored["notes"] if noted_end([note]) is None)
        known = {"ended": noted, **stored, "notes": notes, "read_as": read_as}
        sources.append(Source(**known))
    tags = row.pop("tags")
    return Run(
        **{**row, "options": json.loads(row["options"])},
        checkout=checkout,
        sources=tuple(sources),
        tags=tuple(sorted(tags.split(SEPARATOR))) if tags else (),
    )


def sources_text(sources: Sequence[Source]) -> str:
    """Sources as they are stored: JSON."""
    names = ("name", "format", "sha256", "notes", "read_as", "ended")
    return json.dumps([{name: getattr(source, name) for name in names} for source in sources])


def now(*, seconds_ago: float = 0.0) -> str:
    """The time, as it is stored: ISO 8601, UTC, to the millisecond."""
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return moment.isoformat(timespec="milliseconds")


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
