"""Cassettes: recorded exchanges of N distinct trials, to run again without a key."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from passhat import records
from passhat.dataclass import dataclass
from passhat.errors import CassetteError, RunError
from passhat.messages import plural, short
from passhat.records.ledger import CallKey
from passhat.records.redaction import Redactor, suite_redactor
from passhat.records.trial import TrialKey
from passhat.runner.agents.conversation import AttemptRequest
from passhat.runner.journal import JUDGE_STEP, Cassettes, Kind, ResponseCache
from passhat.runner.models import exchange

Mode = Literal["record", "append", "missing", "all", "drifted", "replay", "replay-or-live"]
"""`record`: from the start; `append` or `missing`: add what is missing; `all`: everything again;
`drifted`: what has drifted again; `replay`: make no calls; `replay-or-live`: ask for the rest."""

RECORD_THE_REST = ". Record the rest with `passhat run --append`, or ask for fewer with `runs`"


@contextmanager
def open_cassettes(
    suite: records.Suite,
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
        suite: records.Suite,
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
            (p.system.name, p.task.name): self._clean(recorded_setup(p, suite))
            for p in suite.pairings
        }
        self._pending: dict[TrialKey, dict[int, Line]] = {}
        self._refused = ""
        self._unwritable = False
        directory = suite.directory / suite.cassette.directory
        self._paths = {
            name: cassette_path(directory, name, compressed=compressed) for name in suite.systems
        }
        self._cassettes = {name: self._open(name, mode) for name in suite.systems}
        self._check(mode)

    def holds(self, request: AttemptRequest, /) -> bool:
        return self.replaying or self._recorded(request.place) is not None

    def cache(self, request: AttemptRequest, /) -> ResponseCache | None:
        recorded = self._recorded(request.place)
        if self.replaying and recorded is None:
            raise CassetteError(self._missing(request.place))
        if recorded is not None:
            return _Playing(recorded, strict=self.replaying, redactor=self.redactor)
        return _Recording(self) if self.recording else None

    def tools(self, request: AttemptRequest, /) -> exchange.Tools | None:
        cassette = self._cassettes[request.place.system]
        if self._live_servers or not self.holds(request):
            return None
        specs = cassette.tools or []
        return _RecordedTools(tuple(msgspec.convert(spec, exchange.ToolSpec) for spec in specs))

    def note_tools(self, system: str, specs: tuple[exchange.ToolSpec, ...], /) -> None:
        cassette = self._cassettes[system]
        now = self._clean([asdict(spec) for spec in specs])
        if cassette.tools is None:
            if self.recording:
                cassette.tools = now
            return
        changed = tool_changes(self._clean(cassette.tools), now)
        if changed and not self._allow_drift:
            raise CassetteError(_drifted([f"{system}: {change}" for change in changed]))

    def ending(self, request: AttemptRequest, /) -> Mapping[str, Any] | None:
        recorded = self._recorded(request.place)
        return None if recorded is None else recorded.ending

    def finished(self, request: AttemptRequest, trial: records.Trial, stop_reason: str, /) -> None:
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
        try:
            append_trial(cassette, place.task, place.trial, self._paths[place.system])
        except RunError:
            self._unwritable = True
            raise

    def keep(self, place: CallKey, line: Line) -> None:
        """Hold an exchange until its trial is over."""
        text = self.redactor.clean_reply(msgspec.json.encode(line).decode())
        self._pending.setdefault(place[:3], {})[place.step] = msgspec.json.decode(text)

    def close(self) -> None:
        """Write what was recorded."""
        if not self.recording or self._unwritable:
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
                f"{path} exists: add trials with `cassette='append'`, or record it again with "
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
            changed = self._drift(pairing)
            if changed and mode == "drifted":
                self._cassettes[pairing.system.name].forget(pairing.task.name)
            else:
                drift += changed
            short += self._short(pairing) if self.replaying else []
        if drift and not self._allow_drift:
            raise CassetteError(_drifted(drift))
        if short:
            raise CassetteError("; ".join(short) + RECORD_THE_REST)

    def _drift(self, pairing: records.Pairing) -> list[str]:
        system, task = pairing.system.name, pairing.task.name
        before = self._cassettes[system].setups.get(task)
        if before is None:
            return []
        drift = changes(self._clean(before), self._setups[system, task])
        return [f"{system}, {task!r}: {change}" for change in drift]

    def _short(self, pairing: records.Pairing) -> list[str]:
        system, task = pairing.system.name, pairing.task.name
        there = self._cassettes[system].runs(task)
        if there >= pairing.runs:
            return []
        asked = plural(pairing.runs, "trial is", "trials are")
        recorded = f"{there} {'is' if there == 1 else 'are'} recorded"
        return [f"{system}, {task!r}: {asked} asked for, {recorded}"]

    def _missing(self, place: CallKey) -> str:
        there = self._cassettes[place.system].runs(place.task)
        number = place.trial + 1
        return (
            f"{place.system}, {place.task!r}: trial {number} is asked for, {there} are recorded"
            f"{RECORD_THE_REST}"
        )


class _Playing:
    """The cache of a trial that is recorded."""

    def __init__(self, recorded: Recorded, *, strict: bool, redactor: Redactor) -> None:
        self._recorded = recorded
        self._strict = strict
        self._restore = redactor.restore
        self.clean = redactor.clean_reply

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None:
        line = self._recorded.exchanges.get(place.step)
        if kind == "wire":
            # Programs ask several things at once: what is alike belongs together, not the order.
            asked = (e for e in self._recorded.exchanges.values() if e["kind"] == kind)
            line = next((e for e in asked if e["request"] == fingerprint), None)
        if line is not None and line["kind"] == kind:
            # A judge must have answered the same question: its rubric may have changed.
            if place.step < JUDGE_STEP or line["request"] == fingerprint:
                return self._restore(msgspec.json.encode(line["reply"]).decode()).encode()
        else:
            # Where the recording stops, the trial stops for the reason it stopped then.
            ending = self._recorded.ending
            if ending.get("error") is not None:
                raise RunError(ending["error"])
            if ending.get("stop_reason") == "timeout":
                raise TimeoutError
        if not self._strict:
            return None
        judged = place.step >= JUDGE_STEP
        what = f"nothing is recorded at step {place.step}"
        what = (
            f"nothing is recorded of a call like this ({fingerprint})" if kind == "wire" else what
        )
        what = "the judge was asked something else" if judged else what
        raise CassetteError(
            f"{place.system}, {place.task!r}, trial {place.trial}: {what}; replay with recorded "
            "servers, or record again with `passhat run --record=all`"
        )

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None:
        """Nothing new is kept of a trial that is recorded."""


class _Recording:
    """The cache of a trial that is being recorded."""

    def __init__(self, cassettes: CassetteSet) -> None:
        self._cassettes = cassettes
        self.clean = cassettes.redactor.clean_reply

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None:
        return None

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None:
        # Empty fields need not be written; a zero must.
        fields = {
            key: value
            for key, value in msgspec.json.decode(reply).items()
            if value is not None and value is not False and value not in ("", [], {})
        }
        self._cassettes.keep(place, {"kind": kind, "request": fingerprint, "reply": fields})


class _RecordedTools:
    """The tools of a recording; calls that it does not hold are calls of unknown tools."""

    def __init__(self, specs: tuple[exchange.ToolSpec, ...]) -> None:
        self.specs = specs

    async def call(self, request: exchange.ToolRequest, /) -> exchange.ToolResult:
        return exchange.unknown_tool(request.name, self.specs)


def _drifted(changed: list[str]) -> str:
    listed = "".join(f"\n  {line}" for line in changed)
    return (
        f"the suite has changed since the cassettes were recorded:{listed}\n"
        "Record again with `passhat run --record=drifted`, or replay anyway with "
        "`allow_drift=True`"
    )


# A cassette on disk: JSON Lines that can be read in a pull request and trusted in a replay.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VERSION = "cassette/1"
MOST_BYTES = 2**30
AGAIN = "restore the file, or record it again with `passhat run --record=all`"

RecordingKey = tuple[str, int]
Line = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Recorded:
    """One recorded trial: its exchanges by step, and how it ended."""

    exchanges: dict[int, Line] = field(default_factory=dict)
    ending: Line = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Cassette:
    """The recorded trials of one system, and what was asked when they were recorded.

    `setups` has for each task what the model saw of it; `tools` are the tools it had.
    """

    system: str
    tools: list[Line] | None = None
    setups: dict[str, Line] = field(default_factory=dict)
    trials: dict[RecordingKey, Recorded] = field(default_factory=dict)

    def runs(self, task: str) -> int:
        """How many trials of a task are recorded, counted from the first without a gap."""
        count = 0
        while (task, count) in self.trials:
            count += 1
        return count

    def forget(self, task: str) -> None:
        """Drop everything that is recorded of a task."""
        self.setups.pop(task, None)
        self.trials = {key: trial for key, trial in self.trials.items() if key[0] != task}

    def lines(self) -> Iterator[Line]:
        """The lines of the file, in an order that depends only on their content."""
        yield {"passhat": VERSION, "system": self.system}
        if self.tools is not None:
            yield {"kind": "tools", "specs": self.tools}
        for task in sorted(self.setups):
            yield {"kind": "setup", "task": task, "asked": self.setups[task]}
        for task, trial in sorted(self.trials):
            yield from self.trial_lines(task, trial)

    def trial_lines(self, task: str, trial: int) -> Iterator[Line]:
        """The lines of one trial."""
        place = {"task": task, "trial": trial}
        recorded = self.trials[task, trial]
        for step in sorted(recorded.exchanges):
            yield {**recorded.exchanges[step], **place, "step": step}
        yield {"kind": "end", **place, **recorded.ending}


def cassette_path(directory: Path, system: str, *, compressed: bool = False) -> Path:
    """Where the cassette of a system is.

    >>> cassette_path(Path("c"), "gpt-5").as_posix()
    'c/gpt-5.jsonl'
    """
    safe = re.sub(r"[^a-zA-Z0-9._-]+", "-", system).strip("-.")[:80] or "system"
    if safe != system:
        safe += f"-{hashlib.blake2b(system.encode(), digest_size=3).hexdigest()}"
    return directory / f"{safe}.jsonl{'.zst' if compressed else ''}"


def write_cassette(cassette: Cassette, path: Path) -> None:
    """Write a cassette whole or not at all."""
    text = b"".join(encode_lines(cassette.lines()))
    data = zstd.compress(text) if path.suffix == ".zst" else text
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(0o600)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def partial_path(path: Path) -> Path:
    """Where finished trials are kept while a recording is under way."""
    return path.with_name(f"{path.name}.partial")


def append_trial(cassette: Cassette, task: str, trial: int, path: Path) -> None:
    """Keep a finished trial beside the cassette, in case the recording is interrupted."""
    lines: list[Line] = [{"kind": "setup", "task": task, "asked": cassette.setups[task]}]
    if cassette.tools is not None:
        lines.append({"kind": "tools", "specs": cassette.tools})
    lines += cassette.trial_lines(task, trial)
    partial = partial_path(path)
    before = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(0o600)
        before = partial.stat().st_size
        with partial.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    except OSError as error:
        with suppress(OSError):
            os.truncate(partial, before)  # the trials before it stay whole
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> RunError:
    kept = f"; what was recorded so far is in {path.name}.partial" * partial_path(path).exists()
    return RunError(f"{path}: {error.strerror or error}; no cassette was written{kept}")


def read_partial(cassette: Cassette, partial: Path) -> None:
    """Add the finished trials of a recording that was interrupted."""
    for text in partial.read_bytes().splitlines():
        try:
            load_line(cassette, msgspec.json.decode(text, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            break  # the process died while it wrote this line
    cassette.trials = {key: trial for key, trial in cassette.trials.items() if trial.ending}


def encode_lines(lines: Iterable[Line]) -> Iterator[bytes]:
    """Each line with the checksum of its content; after the last, one that closes the file."""
    whole = hashlib.blake2b(digest_size=8)
    count = 0
    for line in lines:
        total = line_sum(line)
        whole.update(total.encode())
        count += 1
        yield msgspec.json.encode({**line, "sum": total}, order="sorted") + b"\n"
    yield msgspec.json.encode({"kind": "close", "lines": count, "sum": whole.hexdigest()}) + b"\n"


def line_sum(line: Mapping[str, Any]) -> str:
    """The checksum of a line: a short hash of its content."""
    text = msgspec.json.encode(line, order="sorted")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def read_cassette(path: Path) -> Cassette:
    """Read a cassette; one that is damaged or changed by hand is refused with the reason."""
    raw = _content(path).split(b"\n")
    if raw[-1] == b"":
        raw.pop()
    lines = [_parse(path, number, text) for number, text in enumerate(raw, 1)]
    version = lines[0].get("passhat") if lines else None
    if version is None:
        raise CassetteError(f"{path} is not a passhat cassette: its first line does not say so")
    if version != VERSION:
        raise CassetteError(
            f"{path} is of another version, {short(version)!r}; this passhat reads {VERSION!r}: "
            "use the passhat that wrote it, or record it again"
        )
    close = lines[-1]
    if close.get("kind") != "close":
        raise CassetteError(f"{path}: the file is damaged, its end is missing; {AGAIN}")
    sums = "".join(str(line.get("sum")) for line in lines[:-1])
    whole = hashlib.blake2b(sums.encode(), digest_size=8).hexdigest()
    if close.get("lines") != len(lines) - 1 or close.get("sum") != whole:
        raise CassetteError(f"{path}: changed by hand, lines were added, removed or moved; {AGAIN}")
    cassette = Cassette(system=str(lines[0].get("system")))
    for number, line in enumerate(lines[1:-1], 2):
        try:
            load_line(cassette, line)
        except msgspec.ValidationError as error:
            raise CassetteError(f"{path}:{number}: not a line of a cassette: {error}") from None
    for (task, trial), recorded in cassette.trials.items():
        if not recorded.ending:
            raise CassetteError(
                f"{path}: the end of trial {trial} of {short(task)!r} is missing; {AGAIN}"
            )
    return cassette


class _SetupLine(TypedDict):
    task: str
    asked: dict[str, Any]


class _ToolsLine(TypedDict):
    specs: list[exchange.ToolSpec]


class _TrialLine(TypedDict):
    task: str
    trial: int


class _EndLine(_TrialLine):
    seed: int | None
    seconds: float | None
    error: NotRequired[str]
    stop_reason: NotRequired[str]


class _ExchangeLine(_TrialLine):
    step: int
    request: str


class _ModelLine(_ExchangeLine):
    reply: exchange.Reply


class _ToolLine(_ExchangeLine):
    reply: exchange.ToolResult


class _AgentLine(_ExchangeLine):
    reply: records.Observation


class _Answered(TypedDict):
    type: str
    body: str
    cost: NotRequired[float]


class _WireLine(_ExchangeLine):
    reply: _Answered


_SHAPES: Mapping[object, Any] = {
    "setup": _SetupLine,
    "tools": _ToolsLine,
    "end": _EndLine,
    "model": _ModelLine,
    "tool": _ToolLine,
    "agent": _AgentLine,
    "wire": _WireLine,
}
"""What a line of each kind must hold. A person may have written it, and made its sum fit."""


def load_line(cassette: Cassette, line: Line) -> None:
    """Put one line of a file in its place; raises msgspec.ValidationError if it has none."""
    kind = str(line.get("kind"))
    if kind not in _SHAPES:
        raise msgspec.ValidationError(f"there is no kind {short(kind)!r}")
    msgspec.convert(line, _SHAPES[kind], dec_hook=lambda wanted, text: wanted(text))
    place = {"task", "trial", "step"}
    if kind == "tools":
        cassette.tools = line["specs"]
    elif kind == "setup":
        cassette.setups[line["task"]] = line["asked"]
    else:
        recorded = cassette.trials.setdefault((line["task"], line["trial"]), Recorded())
        if kind == "end":
            recorded.ending = {k: v for k, v in line.items() if k not in {*place, "kind", "sum"}}
        else:
            content = {k: v for k, v in line.items() if k not in {*place, "sum"}}
            recorded.exchanges[line["step"]] = content


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CassetteError(f"{path} is larger than {MOST_BYTES} bytes")
        data = path.read_bytes()
        if path.suffix != ".zst":
            return data
        text = zstd.ZstdDecompressor().decompress(data, max_length=MOST_BYTES)
    except FileNotFoundError:
        raise CassetteError(
            f"there is no cassette {path}: record one with `passhat run --record`"
        ) from None
    except IsADirectoryError:
        raise CassetteError(f"{path} is a folder; name one of the cassettes in it") from None
    except (OSError, zstd.ZstdError, EOFError) as error:
        raise CassetteError(f"{path} cannot be read: {error}") from None
    if len(text) >= MOST_BYTES:
        raise CassetteError(f"{path} unpacks to more than {MOST_BYTES} bytes")
    return text


def _parse(path: Path, number: int, text: bytes) -> Line:
    try:
        line = msgspec.json.decode(text, type=dict[str, Any])
        total = line_sum({key: value for key, value in line.items() if key != "sum"})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if number == 1:
            raise CassetteError(f"{path}: not a cassette: its first line is not JSON") from None
        raise CassetteError(
            f"{path}:{number}: the file is damaged, this line is not JSON ({error}); {AGAIN}"
        ) from None
    changed = line.get("kind") != "close" and line.get("sum") != total
    if changed and (number > 1 or line.get("passhat") == VERSION):
        raise CassetteError(
            f"{path}:{number}: changed by hand, the checksum does not fit the line; {AGAIN}"
        )
    return line


# What a system is asked, as a cassette records it, and what has changed since.

SHOWN = 120


def setup_of(pairing: records.Pairing, suite: records.Suite) -> dict[str, Any]:
    """Everything that shapes the answers to a task, and nothing that only grades them."""
    task, system = pairing.task, pairing.system
    parts = {
        "prompt": task.prompt,
        "steps": [step.prompt for step in task.steps],
        "images": [file_digest(path) for path in task.images],
        "server_prompt": task.server_prompt,
        "resources": task.resources,
        "values": dict(task.values),
        "scenario": task.scenario and _asked_of_user(task.scenario),
        "user": task.user and _user_setup(task.user),
    }
    asked: dict[str, Any] = {name: part for name, part in parts.items() if part}
    match system:
        case records.ModelSystem():
            asked |= _model_setup(task, system, suite)
        case records.CommandSystem():
            asked["command"] = list(system.argv)
            if system.model is not None:
                asked["model"] = system.model.name
                asked["add_files"] = {name: file_digest(f) for name, f in system.add_files.items()}
        case records.PythonSystem():
            asked["python"] = system.function
        case records.HttpSystem():
            asked["http"] = system.url
            if system.request is not None:
                asked["request"] = system.request
    setup: dict[str, Any] = plain(asked)
    return setup


_CODE = "code"


def recorded_setup(pairing: records.Pairing, suite: records.Suite) -> dict[str, Any]:
    """What a cassette records of a task: its setup, and the code of an agent, which replays skip.

    A program outside the folder of the suite may be another one on each machine.
    """
    top = suite.directory.resolve()
    files = program_files(pairing.system, suite.directory)
    code = ", ".join(file_digest(file) for file in files if file.resolve().is_relative_to(top))
    return setup_of(pairing, suite) | ({_CODE: code} if code else {})


def program_files(system: records.System, directory: Path) -> list[Path]:
    """The files that a command names, or a function's module, and what these import.

    Of what they import, only files beside them are looked at: what is installed has a version of
    its own.
    """
    if isinstance(system, records.PythonSystem):
        root = system.search or directory
        return _with_imports(_module_files(root, system.function.partition(":")[0]), root)
    if not isinstance(system, records.CommandSystem) or system.agent is not None:
        return []
    words = [shutil.which(system.argv[0]) or system.argv[0], *system.argv[1:]]
    named = [file for word in words if _is_file(file := directory / word)]
    scripts = [file for file in named if file.suffix == ".py"]
    imported = [module for file in scripts for module in _with_imports([file], file.parent)[1:]]
    return [*named, *imported]


_MOST_MODULES = 300
"""So many files of an agent are searched for what they import: it takes a second at most."""


def _with_imports(files: Sequence[Path], root: Path) -> list[Path]:
    """Python files, and those under `root` that they import, directly or through others."""
    known = list(files)
    for file in islice(known, _MOST_MODULES):  # which grows meanwhile
        for folder, name in _imports(file, root):
            known += [other for other in _module_files(folder, name) if other not in known]
    return known


def _imports(file: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """The dotted names that a file imports, each with the folder in which it would be."""
    import ast

    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # no Python
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((root, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(file.parents):
            folder = file.parents[node.level - 1] if node.level else root
            for alias in node.names:
                yield folder, f"{node.module}.{alias.name}" if node.module else alias.name


def _module_files(folder: Path, name: str) -> list[Path]:
    """The files in a folder that importing a dotted name would run."""
    parts = name.split(".")
    places = [folder.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)]
    files = [(place.with_name(f"{place.name}.py"), place / "__init__.py") for place in places]
    return [file for both in files for file in both if _is_file(file)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a prompt is no path
        return False


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences of two setups, a line each.

    >>> changes({"prompt": "Hi", "model": "a"}, {"prompt": "Hello", "model": "a"})
    ["prompt was 'Hi', is 'Hello'"]
    """
    return [
        f"{short(key)} was {_show(before.get(key))}, is {_show(now.get(key))}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
        and (key != _CODE or key in before)  # older cassettes do not have it
    ]


def tool_changes(
    before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The differences of two lists of tools, a line each."""
    old, new = ({str(spec["name"]): spec for spec in specs} for specs in (before, now))
    return list(_tool_lines(old, new))


def plain(value: Any) -> Any:
    """A value as JSON has it: the same form is written and compared."""
    return msgspec.json.decode(_sorted_json(value))


def cleaned(value: Any, redactor: Redactor) -> Any:
    """A value as JSON has it, without secrets."""
    return msgspec.json.decode(redactor.clean_json(_sorted_json(value)))


def _sorted_json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()


def file_digest(path: Path) -> str:
    """A name, and a hash of the file, or of all files of the folder.

    What Python and `git status` leave in a folder when somebody looks at it changes nothing.
    """
    whole = hashlib.blake2b(digest_size=8)
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            within = file.relative_to(path)
            if "__pycache__" not in within.parts and within.parts[-2:] != (".git", "index"):
                whole.update(f"{within}\0".encode() + file.read_bytes())
    elif path.exists():
        whole.update(path.read_bytes())
    return f"{path.name} {whole.hexdigest() if path.exists() else ''}"


def _asked_of_user(scenario: records.Scenario) -> dict[str, Any]:
    """What shapes the messages of a user: all but what ends the conversation."""
    parts = asdict(replace(scenario, done=None))
    return {name: part for name, part in parts.items() if part}


def _user_setup(user: records.User) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "name": user.name, "persona": user.persona, "say": user.say, "python": user.function
    }  # fmt: skip
    if user.model is not None:
        parts |= {
            "model": user.model.name,
            "parameters": _given(user.model.parameters),
            "script": [asdict(behaviour) for behaviour in user.model.script],
        }
    return {name: part for name, part in parts.items() if part}


def _given(parameters: records.ModelParameters) -> dict[str, Any]:
    return {key: value for key, value in asdict(parameters).items() if value not in (None, (), {})}


def _model_setup(
    task: records.Task, system: records.ModelSystem, suite: records.Suite
) -> dict[str, Any]:
    setup = {"model": system.model.name, "max_turns": task.max_turns or system.max_turns}
    faults = [asdict(fault) for fault in system.model.faults]
    faults += [asdict(fault) for name in system.servers for fault in suite.servers[name].faults]
    optional = {
        "system_prompt": task.system_prompt or system.system_prompt,
        "parameters": _given(system.model.parameters),
        "servers": list(system.servers),
        "script": [asdict(behaviour) for behaviour in system.model.script],
        "faults": faults,
    }
    return setup | {key: value for key, value in optional.items() if value}


def _tool_lines(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield f"tool {name} is gone"
        elif name not in old:
            yield f"tool {name} is new"
        else:
            yield from (f"tool {name}: {change}" for change in changes(old[name], new[name]))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    text = value if isinstance(value, str) else _sorted_json(value)
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
