"""The cassettes of a run: recording exchanges, or replaying recorded ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Literal

import msgspec

from passhat.errors import CassetteError, RunError
from passhat.messages import plural
from passhat.records import Pairing, Suite, Trial
from passhat.records.ledger import CallKey, TrialKey
from passhat.records.redaction import Redactor, suite_redactor
from passhat.runner.agents.attempt_request import AttemptRequest
from passhat.runner.cassettes.cassette_file import (
    Cassette,
    Line,
    Recorded,
    append_trial,
    cassette_path,
    partial_path,
    read_cassette,
    read_partial,
    write_cassette,
)
from passhat.runner.cassettes.drift import changes, cleaned, plain, setup_of, tool_changes
from passhat.runner.memory import JUDGE_STEP, Cassettes, Kind, Memory
from passhat.runner.models.exchange import ToolSpec
from passhat.runner.tools import ToolRequest, ToolResult, Tools, unknown_tool

Mode = Literal["record", "append", "missing", "all", "drifted", "replay", "replay-or-live"]
"""`record`: from the start; `append` or `missing`: add what is missing; `all`: everything again;
`drifted`: what has drifted again; `replay`: make no calls; `replay-or-live`: ask for the rest."""

RECORD_THE_REST = ". Record the rest with `passhat run --append`, or ask for fewer with `runs`"


@contextmanager
def open_cassettes(
    suite: Suite,
    mode: Mode,
    *,
    servers: Literal["live", "recorded"] | None = None,
    allow_drift: bool = False,
    compressed: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[CassetteSet]:
    """The cassettes of a suite, one for each system; what was recorded is written at the end.

    Whatever does not fit (drift, missing runs, a torn file) is refused before anything is run.
    """
    cassettes = CassetteSet(
        suite,
        mode,
        live_servers=(servers or suite.cassette.servers) == "live",
        allow_drift=allow_drift,
        compressed=compressed,
        redactor=suite_redactor(suite, os.environ if environment is None else environment),
    )
    try:
        yield cassettes
    finally:
        cassettes.close()


class CassetteSet(Cassettes):
    """Plays and records the cassettes of all systems of a run."""

    def __init__(
        self,
        suite: Suite,
        mode: Mode,
        *,
        live_servers: bool,
        allow_drift: bool,
        compressed: bool,
        redactor: Redactor,
    ) -> None:
        self.replaying = mode == "replay"
        self.recording = mode not in ("replay", "replay-or-live")
        self._suite = suite
        self._live_servers = live_servers and mode == "replay"
        self._allow_drift = allow_drift
        self.redactor = redactor
        self._setups = {
            (p.system.name, p.task.name): self._clean(setup_of(p, suite)) for p in suite.pairings
        }
        self._pending: dict[TrialKey, dict[int, Line]] = {}
        self._refused = ""
        directory = suite.directory / suite.cassette.directory
        self._paths = {
            name: cassette_path(directory, name, compressed=compressed) for name in suite.systems
        }
        self._cassettes = {name: self._open(name, mode) for name in suite.systems}
        self._check(mode)

    def holds(self, request: AttemptRequest, /) -> bool:
        return self.replaying or self._recorded(request.place) is not None

    def memory(self, request: AttemptRequest, /) -> Memory | None:
        recorded = self._recorded(request.place)
        if self.replaying and recorded is None:
            raise CassetteError(self._missing(request.place))
        if recorded is not None:
            return _Playing(recorded, strict=self.replaying, redactor=self.redactor)
        return _Recording(self) if self.recording else None

    def tools(self, request: AttemptRequest, /) -> Tools | None:
        cassette = self._cassettes[request.place.system]
        if self._live_servers or not self.holds(request):
            return None
        specs = cassette.tools or []
        return _RecordedTools(tuple(msgspec.convert(spec, ToolSpec) for spec in specs))

    def note_tools(self, system: str, specs: tuple[ToolSpec, ...], /) -> None:
        cassette = self._cassettes[system]
        now = self._clean([asdict(spec) for spec in specs])
        if cassette.tools is None:
            if self.recording:
                cassette.tools = now
            return
        found = tool_changes(self._clean(cassette.tools), now)
        if found and not self._allow_drift:
            raise CassetteError(_drifted([f"{system}: {change}" for change in found]))

    def ending(self, request: AttemptRequest, /) -> Mapping[str, Any] | None:
        recorded = self._recorded(request.place)
        return None if recorded is None else recorded.ending

    def finished(self, request: AttemptRequest, trial: Trial, stop_reason: str, /) -> None:
        place = request.place
        if not self.recording or self.holds(request):
            return
        ending: Line = {"seed": trial.seed, "seconds": trial.seconds}
        if trial.error is not None:
            ending["error"] = self.redactor.clean(trial.error)
        if stop_reason == "timeout":
            ending["stop_reason"] = stop_reason
        exchanges = self._pending.pop(place[:3], {})
        recorded = Recorded(exchanges=exchanges, ending=plain(ending))
        text = msgspec.json.encode(recorded).decode()
        if (leak := next(self.redactor.leaks(text), None)) is not None:
            self._refused = self._refused or (
                f"{leak.what} is in what {place.system} heard or said on {place.task!r}, "
                f"trial {place.trial}"
            )
            return
        cassette = self._cassettes[place.system]
        cassette.setups[place.task] = self._setups[place.system, place.task]
        cassette.trials[place.task, place.trial] = recorded
        append_trial(cassette, place.task, place.trial, self._paths[place.system])

    def keep(self, place: CallKey, line: Line) -> None:
        """Hold an exchange until its trial is over."""
        text = self.redactor.clean_reply(msgspec.json.encode(line).decode())
        self._pending.setdefault(place[:3], {})[place.step] = msgspec.json.decode(text)

    def close(self) -> None:
        """Write what was recorded."""
        if not self.recording:
            return
        if self._refused:
            raise CassetteError(
                f"no cassette was written: {self._refused}. Keep it out of prompts and tool "
                "results, then record again; the trials themselves are in the history"
            )
        for name, cassette in self._cassettes.items():
            if cassette.trials:
                write_cassette(cassette, self._paths[name])
            partial_path(self._paths[name]).unlink(missing_ok=True)

    def _clean(self, value: Any) -> Any:
        return cleaned(value, self.redactor)

    def _recorded(self, place: CallKey) -> Recorded | None:
        return self._cassettes[place.system].trials.get((place.task, place.trial))

    def _open(self, system: str, mode: Mode) -> Cassette:
        path = self._paths[system]
        partial = partial_path(path)
        if mode == "record" and path.exists():
            raise CassetteError(
                f"{path} exists: add runs with `cassette='append'`, or record it again with "
                "`cassette='all'`"
            )
        if mode == "replay" or (mode != "all" and path.exists()):
            cassette = read_cassette(path)
        else:
            cassette = Cassette(system=system)
        if mode == "all":
            partial.unlink(missing_ok=True)
        elif self.recording and partial.exists():
            read_partial(cassette, partial)  # an interrupted recording is continued
        return cassette

    def _check(self, mode: Mode) -> None:
        drift: list[str] = []
        short: list[str] = []
        for pairing in self._suite.pairings:
            found = self._drift(pairing)
            if found and mode == "drifted":
                self._cassettes[pairing.system.name].forget(pairing.task.name)
            else:
                drift += found
            short += self._short(pairing) if self.replaying else []
        if drift and not self._allow_drift:
            raise CassetteError(_drifted(drift))
        if short:
            raise CassetteError("; ".join(short) + RECORD_THE_REST)

    def _drift(self, pairing: Pairing) -> list[str]:
        system, task = pairing.system.name, pairing.task.name
        before = self._cassettes[system].setups.get(task)
        if before is None:
            return []
        found = changes(self._clean(before), self._setups[system, task])
        return [f"{system}, {task!r}: {change}" for change in found]

    def _short(self, pairing: Pairing) -> list[str]:
        system, task = pairing.system.name, pairing.task.name
        there = self._cassettes[system].runs(task)
        if there >= pairing.runs:
            return []
        asked = plural(pairing.runs, "run is", "runs are")
        recorded = f"{there} {'is' if there == 1 else 'are'} recorded"
        return [f"{system}, {task!r}: {asked} asked for, {recorded}"]

    def _missing(self, place: CallKey) -> str:
        there = self._cassettes[place.system].runs(place.task)
        number = place.trial + 1
        return (
            f"{place.system}, {place.task!r}: run {number} is asked for, {there} are recorded"
            f"{RECORD_THE_REST}"
        )


class _Playing:
    """The memory of a trial that is recorded."""

    def __init__(self, recorded: Recorded, *, strict: bool, redactor: Redactor) -> None:
        self._recorded = recorded
        self._strict = strict
        self._restore = redactor.restore
        self.clean = redactor.clean_reply

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None:
        line = self._recorded.exchanges.get(place.step)
        if line is not None and line["kind"] == kind:
            # A judge must have answered the same question: its rubric may have changed.
            if place.step < JUDGE_STEP or line["request"] == fingerprint:
                return self._restore(msgspec.json.encode(line["reply"]).decode()).encode()
        else:
            self._end_as_then()
        if not self._strict:
            return None
        judged = place.step >= JUDGE_STEP
        what = f"nothing is recorded at step {place.step}"
        what = "the judge was asked something else" if judged else what
        raise CassetteError(
            f"{place.system}, {place.task!r}, trial {place.trial}: {what}; replay with recorded "
            "servers, or record again with `passhat run --record=all`"
        )

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None:
        """Nothing new is kept of a trial that is recorded."""

    def _end_as_then(self) -> None:
        """Where the recording stops, the trial stops for the reason it stopped then."""
        ending = self._recorded.ending
        if ending.get("error") is not None:
            raise RunError(ending["error"])
        if ending.get("stop_reason") == "timeout":
            raise TimeoutError


class _Recording:
    """The memory of a trial that is being recorded."""

    def __init__(self, cassettes: CassetteSet) -> None:
        self._cassettes = cassettes
        self.clean = cassettes.redactor.clean_reply

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None:
        return None

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None:
        said = {key: value for key, value in msgspec.json.decode(reply).items() if _telling(value)}
        self._cassettes.keep(place, {"kind": kind, "request": fingerprint, "reply": said})


class _RecordedTools:
    """The tools of a recording; calls that it does not hold are calls of unknown tools."""

    def __init__(self, specs: tuple[ToolSpec, ...]) -> None:
        self.specs = specs

    async def call(self, request: ToolRequest, /) -> ToolResult:
        return unknown_tool(request.name, self.specs)


def _telling(value: object) -> bool:
    """Whether a field has to be written: empty ones need not."""
    return value is not None and value is not False and value not in ("", [], {})


def _drifted(found: list[str]) -> str:
    listed = "".join(f"\n  {line}" for line in found)
    return (
        f"the suite has changed since the cassettes were recorded:{listed}\n"
        "Record again with `passhat run --record=drifted`, or replay anyway with "
        "`allow_drift=True`"
    )
