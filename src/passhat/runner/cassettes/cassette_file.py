"""A cassette on disk: JSON Lines that can be read in a pull request and trusted in a replay."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import CassetteError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VERSION = "cassette/1"
MOST_BYTES = 2**30
AGAIN = "restore the file, or record it again with `passhat run --record=all`"

TrialKey = tuple[str, int]
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
    trials: dict[TrialKey, Recorded] = field(default_factory=dict)

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
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join(encode_lines(cassette.lines()))
    data = zstd.compress(text) if path.suffix == ".zst" else text
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)


def partial_path(path: Path) -> Path:
    """Where finished trials are kept while a recording is under way."""
    return path.with_name(f"{path.name}.partial")


def append_trial(cassette: Cassette, task: str, trial: int, path: Path) -> None:
    """Keep a finished trial beside the cassette, in case the recording is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = [{"kind": "setup", "task": task, "asked": cassette.setups[task]}]
    if cassette.tools is not None:
        lines.append({"kind": "tools", "specs": cassette.tools})
    lines += cassette.trial_lines(task, trial)
    with partial_path(path).open("ab") as file:
        file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def read_partial(cassette: Cassette, partial: Path) -> None:
    """Add the finished trials of a recording that was interrupted."""
    for text in partial.read_bytes().splitlines():
        try:
            load_line(cassette, msgspec.json.decode(text, type=dict[str, Any]))
        except (msgspec.DecodeError, KeyError, TypeError):
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
    _check_header(path, lines)
    _check_close(path, lines)
    cassette = Cassette(system=str(lines[0]["system"]))
    for number, line in enumerate(lines[1:-1], 2):
        try:
            load_line(cassette, line)
        except (KeyError, TypeError) as error:
            raise CassetteError(f"{path}:{number}: not a line of a cassette: no {error}") from None
    return cassette


def load_line(cassette: Cassette, line: Line) -> None:
    """Put one line of a file in its place."""
    kind = line["kind"]
    if kind == "tools":
        cassette.tools = line["specs"]
    elif kind == "setup":
        cassette.setups[line["task"]] = line["asked"]
    else:
        place = {"task", "trial", "step"}
        key = (str(line["task"]), int(line["trial"]))
        recorded = cassette.trials.setdefault(key, Recorded())
        if kind == "end":
            recorded.ending = {k: v for k, v in line.items() if k not in {*place, "kind", "sum"}}
        else:
            content = {k: v for k, v in line.items() if k not in {*place, "sum"}}
            recorded.exchanges[int(line["step"])] = content


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
    except msgspec.DecodeError as error:
        if number == 1:
            raise CassetteError(f"{path}: not a cassette: its first line is not JSON") from None
        raise CassetteError(
            f"{path}:{number}: the file is damaged, this line is not JSON ({error}); {AGAIN}"
        ) from None
    said = {key: value for key, value in line.items() if key != "sum"}
    changed = line.get("kind") != "close" and line.get("sum") != line_sum(said)
    if changed and (number > 1 or line.get("passhat") == VERSION):
        raise CassetteError(
            f"{path}:{number}: changed by hand, the checksum does not fit the line; {AGAIN}"
        )
    return line


def _check_header(path: Path, lines: list[Line]) -> None:
    version = lines[0].get("passhat") if lines else None
    if version is None:
        raise CassetteError(f"{path} is not a passhat cassette: its first line does not say so")
    if version != VERSION:
        raise CassetteError(
            f"{path} is of another version, {version!r}; this passhat reads {VERSION!r}: "
            "use the passhat that wrote it, or record it again"
        )


def _check_close(path: Path, lines: list[Line]) -> None:
    close = lines[-1]
    if close.get("kind") != "close":
        raise CassetteError(f"{path}: the file is damaged, its end is missing; {AGAIN}")
    whole = hashlib.blake2b(
        "".join(str(line.get("sum")) for line in lines[:-1]).encode(), digest_size=8
    )
    if close.get("lines") != len(lines) - 1 or close.get("sum") != whole.hexdigest():
        raise CassetteError(f"{path}: changed by hand, lines were added, removed or moved; {AGAIN}")
