"""Finds a run by its name: `latest`, a tag, a key, a commit, a branch, or the start of a key."""

from __future__ import annotations

from typing import Literal, Protocol

from passhat.dataclass import dataclass
from passhat.errors import HistoryError
from passhat.history.database import Database
from passhat.history.runs import Run
from passhat.messages import listed, plural, typo_hint

Kind = Literal["latest", "tag", "key", "commit", "branch"]

LATEST = "latest"
SHORTEST = 4
"""How many characters of a key or a commit are enough, if no other begins with them."""

_NAMED = 5
# A whole name comes before the beginning of one, and a name of one run before a name of many.
_WHOLE: dict[Kind, str] = {
    "tag": "SELECT run FROM tags WHERE name = ?1",
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


def look_up(history: Index, reference: str) -> NamedRun:
    """The run of that name; of several runs of one commit, or of a branch, the newest.

    A whole key or commit comes before one that only begins with the name; a beginning that fits
    several is refused.
    """
    kind, ids = _fitting(history, reference)
    run = history.run_by_id(ids[0])
    if kind != "commit" or len(ids) == 1:
        return NamedRun(run=run)  # the newest run of a branch needs no note
    several = f"{plural(len(ids), 'run')} of commit {run.checkout.commit}"
    return NamedRun(run=run, note=f"{several}; taken: the newest, {run.key}")


def look_up_baseline(history: Index, reference: str, *, judged: Run | None) -> NamedRun:
    """The baseline of a run: the newest other run of that name.

    On a branch, it is one of the same suite, and a finished one if there is any.
    """
    kind, ids = _fitting(history, reference)
    if judged is None:
        return look_up(history, reference)
    if kind == "branch":
        ids = _on_branch(history, reference, judged.suite)
    others = [run for run in ids if run != judged.id]
    if not others:
        raise HistoryError(_only_itself(history, reference, kind, judged))
    run = history.run_by_id(others[0])
    started = run.started[:16].replace("T", " ")
    return NamedRun(run=run, note=f"compared with run {run.key} of {started} ({reference})")


def knows(history: Index, reference: str) -> bool:
    """Whether any run has that name, or one that begins with it."""
    return _matching(history, reference) is not None


def _fitting(history: Index, reference: str) -> tuple[Kind, list[int]]:
    if (found := _matching(history, reference)) is None:
        raise HistoryError(_unknown(history, reference))
    return found


def _matching(history: Index, reference: str) -> tuple[Kind, list[int]] | None:
    """The runs of that name, newest first, and what kind of name it is."""
    if reference == LATEST and (newest := history.runs(limit=1)):
        return "latest", [newest[0].id]
    for kind, query in _WHOLE.items():
        if rows := history.database.execute(query, (reference,)).fetchall():
            return kind, [run for (run,) in rows]
    return _beginning_with(history, reference) if len(reference) >= SHORTEST else None


def _beginning_with(history: Index, reference: str) -> tuple[Kind, list[int]] | None:
    found: dict[str, tuple[Kind, list[int]]] = {}
    for kind, query in _BEGINNINGS.items():
        for run, name in history.database.execute(query, (reference,)):
            found.setdefault(name, (kind, []))[1].append(run)
    if len(found) > 1:
        raise HistoryError(
            f"{history.name}: {reference!r} is the beginning of several: "
            f"{listed(found, _NAMED)}; write more of the one that you mean"
        )
    return next(iter(found.values()), None)


def _on_branch(history: Index, branch: str, suite: str) -> list[int]:
    """Runs of one suite, the finished ones first, each kind newest first."""
    rows = history.database.execute(
        "SELECT id FROM runs WHERE branch = ? AND suite = ? "
        "ORDER BY status != 'finished', started DESC, id DESC",
        (branch, suite),
    )
    return [run for (run,) in rows]


def _only_itself(history: Index, reference: str, kind: Kind, judged: Run) -> str:
    what = f"{reference} is the run that is judged ({judged.key})"
    if kind in ("branch", "commit"):
        what = f"{kind} {reference} has no other run of {judged.suite} to compare {judged.key} with"
    return (
        f"{history.name}: {what}, and a run is not compared with itself; "
        "`passhat history` lists the runs"
    )


def _unknown(history: Index, reference: str) -> str:
    newest = history.runs(limit=5)
    rule = f"the first {SHORTEST} characters of a key or a commit are enough"
    hint = typo_hint(reference, [LATEST, *(tag for run in newest for tag in run.tags)])
    return (
        f"{history.name}: no run, tag, branch or commit {reference!r}{hint}; {rule}; "
        f"newest runs: {listed(run.key for run in newest) or 'none'}"
    )
