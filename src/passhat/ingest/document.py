"""One opened input: its bytes, what kind of data they are, and the keys of its first entry."""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import msgspec

from passhat.errors import ReadError
from passhat.ingest.archive import ZIP_MAGIC
from passhat.ingest.compressed import PIECE, decompress, read_all
from passhat.ingest.limits import Limits

Kind = Literal["zip", "parquet", "xml", "json", "array", "lines", "text", "binary", "empty"]
Value = TypeVar("Value")

PARQUET_MAGIC = b"PAR1"
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zstd")
LINES_SUFFIXES = (".jsonl", ".ndjson")

_SMALL = 2**20
"""Files up to this size are read in one go, whatever they hold."""

# These are read from their end, piece by piece: their bytes need not be loaded.
_READ_IN_PIECES = (ZIP_MAGIC, PARQUET_MAGIC)
_NOT_BLANK = re.compile(rb"\S")
_LINE = re.compile(r", line \d+$")
# How msgspec says which type was expected, and that a field is missing.
_EXPECTED = re.compile("Expected `(.+)`, got `(.+)`")
_REQUIRED = re.compile("Object missing required field `(.+)`")
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "an object",
}
_PLACE = re.compile(r"\(byte (\d+)\)")
# Control characters that no text has; tabs, line ends and terminal colours are allowed.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# Python's json writes NaN and Infinity, which JSON does not have; inside strings they stay.
_NOT_A_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|NaN|-?Infinity', re.DOTALL)


class Document:
    """One input. `first` is the JSON object, or the first one of an array or of JSON Lines."""

    __slots__ = ("_file", "data", "first", "kind", "limits", "name", "sha256", "shape")

    def __init__(
        self, name: str, *, path: Path | str | None, data: bytes | None, limits: Limits
    ) -> None:
        self.name, self.limits, self._file = name, limits, path
        self.shape: tuple[object, ...] | None = None
        head, self.sha256, content = _read_once(name, path, data, limits)
        self.kind: Kind
        self.first: Mapping[str, msgspec.Raw] = {}
        if head.startswith(_READ_IN_PIECES):
            self.kind = "zip" if head.startswith(ZIP_MAGIC) else "parquet"
            self.data = content
            return
        self.data = decompress(name, content, limits)
        if self.data.startswith(b"\xef\xbb\xbf"):
            self.data = self.data[3:]
        lines = _bare_name(name).endswith(LINES_SUFFIXES)
        self.kind, self.first = _kind_and_first(name, self.data, lines)

    @property
    def path(self) -> Path | None:
        """The path of the file; None for bytes."""
        return None if self._file is None else Path(self._file)

    @property
    def folder(self) -> str | None:
        """The folder that the file is in; None for bytes."""
        return None if self._file is None else os.path.dirname(self._file)  # noqa: PTH120

    def real_folders(self) -> list[str]:
        """The folders that the file is in, the innermost first, links followed; none for bytes."""
        if self._file is None:
            return []
        folder = os.path.dirname(os.path.realpath(self._file))  # noqa: PTH120
        parts = folder.split(os.sep)  # noqa: PTH206 # of thousands of files
        return [os.sep.join(parts[:n]) or os.sep for n in range(len(parts), 0, -1)]  # noqa: PTH118

    @property
    def stem(self) -> str:
        """The file's name without folders and suffixes, for naming what the file leaves unnamed."""
        if self._file is None:
            return self.name
        name = os.path.basename(_bare_name(self.name))  # noqa: PTH119 # a Path takes four times as long
        dot = name.rfind(".")
        return name[:dot] if 0 < dot < len(name) - 1 else name

    def stream(self) -> BinaryIO:
        """The bytes as a seekable file."""
        return io.BytesIO(self.data) if self.path is None or self.data else self.path.open("rb")

    def has(self, *keys: str) -> bool:
        """Whether the first entry has all of these keys."""
        return all(key in self.first for key in keys)

    def decode(self, shape: type[Value]) -> Value:
        """The whole JSON document, as far as `shape` asks for it."""
        return decode(self.name, self.data, shape)

    def entries(self, shape: type[Value], *keys: str) -> Iterator[Value]:
        """Each entry of the list under these keys, one at a time; none if there is no list.

        All entries together take several times the memory of the file.
        """
        inside: msgspec.Raw | bytes = self.data
        for key in keys:
            held = decode(self.name, inside, dict[str, msgspec.Raw])
            inside = held.get(key, b"null")
        none = bytes(memoryview(inside)[:4]) == b"null"
        listed = [] if none else decode(self.name, inside, list[msgspec.Raw])
        decoder = msgspec.json.Decoder(shape)
        for place, entry in enumerate(listed):
            try:
                yield decoder.decode(entry)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                yield decode(f"{self.name}, entry {place}", entry, shape)

    def each(self, shape: type[Value]) -> Iterator[Value]:
        """Each entry of an array, each line of JSON Lines, or the one object."""
        if self.kind == "lines":
            yield from (value for _, value in self.lines(shape))
        else:
            yield from self.decode(list[shape]) if self.kind == "array" else [self.decode(shape)]  # type: ignore[valid-type] # a type at run time

    def lines(self, shape: type[Value]) -> Iterator[tuple[int, Value]]:
        """Each line of JSON Lines with its number, as far as `shape` asks for it."""
        decoder = msgspec.json.Decoder(shape)
        for number, line in enumerate(io.BytesIO(self.data), start=1):
            if line.strip():
                try:
                    yield number, decoder.decode(line)
                except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                    yield number, decode(f"{self.name}, line {number}", line, shape)


def decode(name: str, data: bytes | msgspec.Raw, shape: type[Value]) -> Value:
    """JSON into `shape`; a fault names the file and the field."""
    try:
        return _decode(data, shape)
    except msgspec.ValidationError as error:
        raise wrong_shape(name, error) from error
    except RecursionError as error:
        raise ReadError(f"{name}: nested too deeply to be a result file") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(name, bytes(data)) from error
    except msgspec.DecodeError as error:
        raise _not_json(name, bytes(data), str(error)) from error


def read_file(path: Path, limits: Limits) -> bytes:
    """The bytes of a file that belongs to a result file; refused beyond the limits."""
    try:
        limits.check_size(str(path), path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise _not_opened(str(path), error) from error


def wrong_shape(name: str, error: msgspec.ValidationError) -> ReadError:
    """The error for JSON that is not as its tool writes it: the field, the rule, and what came.

    >>> decode("a.json", b'{"id": [3]}', dict[str, str])
    Traceback (most recent call last):
    passhat.errors.ReadError: a.json, field [...]: must be text, got a list
    """
    what, _, path = str(error).partition(" - at `$")
    if found := _EXPECTED.fullmatch(what):
        kinds = [_KINDS.get(kind, kind) for kind in found[1].split(" | ")]
        what = f"must be {' or '.join(kinds)}, got {_KINDS.get(found[2], found[2])}"
    elif found := _REQUIRED.fullmatch(what):
        what = f'has no "{found[1]}"'
    field = path.strip(".`")
    return ReadError(f"{name}, field {field}: {what}" if field else f"{name}: {what}")


def _decode(data: bytes | msgspec.Raw, shape: type[Value]) -> Value:
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        data = bytes(data)
        if b"NaN" not in data and b"Infinity" not in data:
            raise
        return msgspec.json.decode(_NOT_A_NUMBER.sub(_string_or_null, data), type=shape)


def _string_or_null(found: re.Match[bytes]) -> bytes:
    return found[0] if found[0].startswith(b'"') else b"null"


def _not_json(name: str, data: bytes, fault: str) -> ReadError:
    place = _PLACE.search(fault)
    where = _at(name, data, int(place[1]) if place else len(data))
    if "truncated" not in fault:
        return ReadError(f"{where}: not valid JSON ({fault})")
    rest = " Leave the line out to read the others." if _LINE.search(name) else ""
    return ReadError(
        f"{where}: not valid JSON: it ends in the middle, after {len(data):,} bytes; was its "
        f"writer interrupted, or is it still writing?{rest}"
    )


def _not_utf8(name: str, data: bytes) -> ReadError:
    at = 0
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:  # the first error counts from the start of its string
        at = error.start
    return ReadError(f"{_at(name, data, at)}: not text in UTF-8 (byte {at:,}); save it as UTF-8")


def _at(name: str, data: bytes, place: int) -> str:
    """The file and the line; the name of a single JSON line already has its number."""
    line = data.count(b"\n", 0, place) + 1
    return f"{name}, line {line}" if b"\n" in data.strip() else name


def _read_once(
    name: str, path: Path | str | None, data: bytes | None, limits: Limits
) -> tuple[bytes, str, bytes]:
    """The first bytes, the hash, and all bytes (none of a file that is read piece by piece)."""
    if path is None:
        content = data or b""
        limits.check_size(name, len(content))
        return content[:4], hashlib.sha256(content).hexdigest(), content
    try:
        # Unbuffered: a buffer's read() would hold the whole file twice.
        with io.FileIO(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            limits.check_size(name, size)
            head = b"" if 0 < size <= _SMALL else stream.read(4)
            if head.startswith(_READ_IN_PIECES):
                return head, _hash(head, stream), b""
            if head and stream.seekable():
                stream.seek(0)
                content = stream.read()
            elif head:
                content = head + read_all(name, stream, limits)
            else:
                content = stream.readall()
    except OSError as error:
        raise _not_opened(name, error) from error
    limits.check_size(name, len(content))  # it may have grown since its size was read
    stays = content.startswith(_READ_IN_PIECES)
    return content[:4], hashlib.sha256(content).hexdigest(), b"" if stays else content


def _not_opened(name: str, error: OSError) -> ReadError:
    return ReadError(f"{name}: cannot be opened ({error.strerror or error})")


def _hash(head: bytes, stream: BinaryIO) -> str:
    digest = hashlib.sha256(head)
    while piece := stream.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _bare_name(name: str) -> str:
    lowered = name.lower()
    if not lowered.endswith(COMPRESSED_SUFFIXES):
        return name
    return name[: -len(next(filter(lowered.endswith, COMPRESSED_SUFFIXES)))]


def _kind_and_first(name: str, data: bytes, lines: bool) -> tuple[Kind, Mapping[str, msgspec.Raw]]:
    start = data[:4096].lstrip()
    if not start:
        return ("empty", {}) if not data.strip() else ("text", {})
    if start.startswith(b"<"):
        return "xml", {}
    if start.startswith(b"[") and not lines:
        return "array", _first_of_array(name, data)
    if start.startswith(b"{"):
        begin = data.index(b"{")
        end = data.find(b"\n", begin) % (len(data) + 1)  # no line ends: all of it
        entry = _object(data[begin:end])
        if entry is not None and (lines or _NOT_BLANK.search(data, end)):
            return "lines", entry
        return "json", decode(name, data, dict[str, msgspec.Raw]) if entry is None else entry
    return ("binary" if _is_binary(data[:4096]) else "text"), {}


def _is_binary(head: bytes) -> bool:
    """Whether it has a NUL, or has other control characters and is not UTF-8 either."""
    if head.isascii():
        return b"\0" in head
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    if b"\0" in head:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its end may cut a character
    except UnicodeDecodeError:
        return _CONTROL.search(head) is not None
    return False


def _first_of_array(name: str, data: bytes) -> Mapping[str, msgspec.Raw]:
    entries = decode(name, data, list[msgspec.Raw])
    return (_object(bytes(entries[0])) or {}) if entries else {}


def _object(text: bytes) -> Mapping[str, msgspec.Raw] | None:
    with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode(text, dict[str, msgspec.Raw])
    return None
