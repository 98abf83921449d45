"""Where the answers of a run come from: the models, or cassettes; and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from passhat.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from passhat.journeys.run_request import RunRequest
    from passhat.records import Model, Suite
    from passhat.records.suite import ServerMode
    from passhat.runner.cassettes import CassetteSet, Mode

WORDS = {
    "record": "live, recorded",
    "append": "live, recorded after the recorded runs",
    "missing": "live where nothing is recorded, and recorded",
    "all": "live, recorded again",
    "drifted": "live where the suite has changed, and recorded",
    "replay": "replay",
    "replay-or-live": "replay, live where nothing is recorded",
}
TAKEN_UP = {"record": "append", "all": "append", "drifted": "append"}
"""The mode in which an interrupted recording resumes, so that what it has recorded stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """Where answers come from; `mode` None is live, `why` is the reason for it.

    `servers` says whether a replay calls the MCP servers; None where the suite has none.
    """

    mode: Mode | None
    why: str = ""
    servers: ServerMode | None = None

    @property
    def asks(self) -> bool:
        """Whether a model may be called, and paid for."""
        return self.mode != "replay"

    @property
    def asks_always(self) -> bool:
        """Whether every trial is run, whatever is recorded."""
        return self.mode in (None, "record", "append", "all")

    def __str__(self) -> str:
        words = "live" if self.mode is None else WORDS[self.mode]
        if self.mode == "replay" and self.servers is not None:
            words += f", servers {self.servers}"
        return f"{words} ({self.why})" if self.why else words


def choose_source(suite: Suite, request: RunRequest, *, resumed: bool = False) -> AnswerSource:
    """The source that the request or the suite names; else a replay if there are cassettes."""
    wanted = request.cassette or suite.cassette.mode
    if wanted is None:
        source = _by_circumstances(suite, resumed=resumed)
    elif wanted == "none":
        source = AnswerSource(mode=None)
    else:
        taken_up = TAKEN_UP.get(wanted, wanted) if resumed else wanted
        source = AnswerSource(mode=cast("Mode", taken_up))
    if not suite.used_servers:
        return source
    servers = request.servers or suite.cassette.servers
    return replace(source, servers=cast("ServerMode", servers))


def surely_asked(suite: Suite, source: AnswerSource) -> tuple[str, ...]:
    """The systems whose models must be called: they have no cassette."""
    if source.asks_always or not source.asks:
        return suite.systems if source.asks else ()
    return tuple(name for name in suite.systems if not _path(suite, name))


@contextmanager
def open_source(
    suite: Suite, source: AnswerSource, request: RunRequest, *, sequential: bool = False
) -> Iterator[CassetteSet | None]:
    """The cassettes of a run, open while it lasts.

    Nobody knows in advance how many runs a `sequential` run needs, so they are not counted.
    """
    if source.mode is None:
        yield None
        return
    from passhat.runner.cassettes import open_cassettes

    wanted: dict[str, Any] = {"servers": request.servers, "allow_drift": request.allow_drift}
    compressed = request.compress or any(_path(suite, s, ".zst") for s in suite.systems)
    if sequential:
        suite = replace(suite, pairings=tuple(replace(p, runs=1) for p in suite.pairings))
    with open_cassettes(suite, source.mode, compressed=compressed, **wanted) as cassettes:
        yield cassettes


def _by_circumstances(suite: Suite, *, resumed: bool) -> AnswerSource:
    """Replay what is recorded: a key that happens to be set must not cost anything.

    A resumed run stays live if it can: it was started before there was anything to replay.
    """
    if not all(_path(suite, name) for name in suite.systems):
        return AnswerSource(mode=None)
    reasons = (_why_not_live(one.model, suite.directory) for one in suite.model_systems)
    if reason := next(filter(None, reasons), None):
        return AnswerSource(mode="replay", why=reason)
    if resumed:
        return AnswerSource(mode=None)
    return AnswerSource(
        mode="replay", why="there are cassettes; `cassette='none'` calls the models"
    )


def _path(suite: Suite, system: str, ending: str = "") -> Path | None:
    """The cassette of a system, if there is one."""
    where = suite.directory / suite.cassette.directory
    if not where.is_dir():
        return None
    from passhat.runner.cassettes import cassette_path

    paths = [cassette_path(where, system, compressed=c) for c in (False, True)]
    return next((p for p in paths if p.name.endswith(ending) and p.is_file()), None)


def _why_not_live(model: Model, directory: Path) -> str | None:
    """Why a model cannot be called here, in a few words; None if it can."""
    from passhat.records.providers import is_local
    from passhat.runner.models.factory import why_unreachable

    reason = why_unreachable(model, directory)
    if reason is None or is_local(model.name):
        return reason
    return f"no key is set for {model.name}"
