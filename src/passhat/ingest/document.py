"""One opened input: its bytes, what kind of data they are, and the keys of its first entry.

Zip archives, compressed bytes and the limits on what is read are below it.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import os
import re
import struct
import sys
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Literal, TypeVar

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, ReadError
from passhat.messages import short_value

if TYPE_CHECKING:
    from xml.parsers.expat import XMLParserType

Kind = Literal["zip", "parquet", "xml", "json", "array", "lines", "text", "binary", "empty"]
Value = TypeVar("Value")

PARQUET_MAGIC = b"PAR1"
COMPRESSED_SUFFIXES = (".gz", ".zst", ".zstd", ".bz2", ".xz")
LINES_SUFFIXES = (".jsonl", ".ndjson")
YAML_SUFFIXES = (".yml", ".yaml")
MARKDOWN_SUFFIXES = (".md", ".markdown")

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

_SMALL = 2**20
"""Files up to this size are read in one go, whatever they hold."""

_STREAMED = 2**25
"""JSON Lines beyond 32 MiB are read line by line, each time anew: most of them are transcripts."""

_MEMORY_LEFT = 2**26
"""What is left of a limit on memory when rows are read no further."""

_ROWS_A_LOOK = 256
"""Rows that are read from one look at the memory left to the next."""

ZIP_MAGIC = b"PK"

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
    """One input. `first` is the JSON object, or the first one of an array or of JSON Lines.

    Of a member of an archive both are given: its content, and the path that it has inside.
    `alone` says that it is the only file of a call: no other can repeat its rows. `encoding` names
    what its text was in where that is a guess, with an example. `wanted` are the rows whose
    transcripts are asked for, None for all. `shape` and `rows_in` are what readers found out about
    it, for the next one that asks. `torn` says that the last of its lines ended in the middle, as
    in a log that is being written, and is left out.
    """

    __slots__ = (
        *("_data", "_digest", "_file", "alone", "encoding", "first", "kind", "limits"),
        *("name", "rows_in", "shape", "size", "torn", "wanted"),
    )

    def __init__(
        self, name: str, *, path: Path | str | None, data: bytes | None, limits: Limits
    ) -> None:
        self.name, self.limits, self._file = name, limits, path
        self.shape: tuple[object, ...] | None = None
        self.rows_in: tuple[object, tuple[str, Mapping[str, msgspec.Raw]] | None] | None = None
        self.alone = False
        self.encoding, self.torn = "", False
        self.wanted: Container[int] | None = None
        self.kind: Kind
        self._data: bytes | None = None
        head, self._digest, content, self.size = _read_once(name, path, data, limits)
        self.first: Mapping[str, msgspec.Raw] = {}
        if not content and head.startswith(b"{"):
            self.kind, self.first = "lines", _first_of_many(path) or {}
            torn = torn_bytes(Path(path or ""), self.size)
            self.size, self.torn = self.size - torn, torn > 0
            return
        if head.startswith(_READ_IN_PIECES):
            self.kind = "zip" if head.startswith(ZIP_MAGIC) else "parquet"
        else:
            content = decompress(name, content, limits)
            content, self.encoding = _as_utf8(name, content)
            bare = _bare_name(name).lower()
            if bare.endswith(YAML_SUFFIXES):
                content = _yaml_as_json(name, content)
            elif bare.endswith(MARKDOWN_SUFFIXES):
                content = _markdown_as_csv(name, content)
            lines = bare.endswith(LINES_SUFFIXES)
            self.kind, self.first, content = _kind_and_first(name, content, lines)
            if self.kind == "lines" and (torn := _torn_line(content)):
                content, self.torn = content[:-torn], True
        self._data, self.size = content, len(content)

    @property
    def sha256(self) -> str:
        """The hash of the bytes; where lines were read one by one, it was made of them."""
        if not self._digest:
            try:
                with io.FileIO(self._file or "") as stream:
                    self._digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise _not_opened(self.name, error) from error
        return self._digest

    @property
    def data(self) -> bytes:
        """The content; none of an archive or Parquet, which are read from their end.

        Of JSON Lines that are read line by line it is loaded now, so ask for `lines` instead.
        """
        if self._data is None:
            content = read_file(Path(self._file or ""), self.limits)
            self._data = content[: self.size] if self.torn else content
        return self._data

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
        if self.path is None or self._data:
            return io.BytesIO(self.data)
        return self.path.open("rb", buffering=PIECE)

    def members(self) -> Iterator[tuple[str, bytes]]:
        """The files in a zip or tar archive with their content, by name; none of other kinds."""
        if self.kind == "zip":
            with self.stream() as stream:
                packed, expanded = stream.seek(0, io.SEEK_END), 0
                archive = Archive(self.name, stream, self.limits)
                for name in archive.names(""):
                    if not name.endswith("/"):
                        data = archive.read(name)
                        expanded += len(data)
                        self.limits.check_size(self.name, expanded, packed)
                        yield name, data
        elif self.is_tar():
            import tarfile

            try:
                with tarfile.open(fileobj=io.BytesIO(self.data)) as tar:
                    for count, member in enumerate(tar, start=1):
                        self.limits.check_members(self.name, count)
                        if member.isfile() and (held := tar.extractfile(member)) is not None:
                            yield member.name, held.read()
            except (tarfile.TarError, EOFError, OSError, ValueError) as error:
                raise ReadError(f"{self.name}: the archive is damaged ({error})") from error

    def is_tar(self) -> bool:
        """Whether the bytes are those of a tar archive."""
        return self.kind == "binary" and self.data[257:262] == b"ustar"

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
            if place % _ROWS_A_LOOK == _ROWS_A_LOOK - 1:
                check_memory_left()
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
        left = self.size
        digest = None if self._digest else hashlib.sha256()
        with self.stream() as stream:
            for number, line in enumerate(stream, start=1):
                left -= len(line)
                if left < 0:  # written since it was opened
                    break
                if digest is not None:
                    digest.update(line)
                if number % _ROWS_A_LOOK == 0:
                    check_memory_left()
                if not line.isspace():
                    try:
                        yield number, decoder.decode(line)
                    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                        bare = line.rstrip(b"\r\n")  # with its end, a line never ends too early
                        yield number, decode(f"{self.name}, line {number}", bare, shape)
        if digest is not None and not self.torn and left <= 0:
            self._digest = digest.hexdigest()


def check_memory_left(address: int = _MEMORY_LEFT, data: int = _MEMORY_LEFT) -> None:
    """Raise MemoryError while a limit (`ulimit -v`) leaves a little: at none msgspec crashes."""
    if sys.platform != "linux":
        return
    import resource

    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if any(limit != resource.RLIM_INFINITY for limit in limits):
        pages = Path("/proc/self/statm").read_text().split()
        for limit, used, least in zip(limits, (pages[0], pages[5]), (address, data), strict=True):
            if 0 <= limit < int(used) * resource.getpagesize() + least:
                raise MemoryError


def decode(name: str, data: bytes | msgspec.Raw, shape: type[Value]) -> Value:
    """JSON into `shape`; a fault names the file and the field."""
    check_memory_left()
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


def parse_xml(document: Document, parser: XMLParserType, kind: str) -> None:
    """Parse an XML file of a kind; the handlers of the parser collect what is in it."""
    from xml.parsers import expat

    def refuse_doctype(*_: object) -> None:
        raise ReadError(f"{document.name}: has a DOCTYPE, which {kind} has no use for: refused")

    parser.buffer_text, parser.StartDoctypeDeclHandler = True, refuse_doctype
    data = memoryview(document.data)
    try:
        for start in range(0, len(data), PIECE):
            check_memory_left()
            parser.Parse(data[start : start + PIECE], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ReadError(f"{document.name}: not valid XML ({error})") from error
    except (LookupError, ValueError) as error:  # of the encoding that its first line declares
        raise ReadError(
            f"{document.name}, line 1: its encoding cannot be read ({error}); save it as UTF-8"
        ) from error


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
    if types := _EXPECTED.fullmatch(what):
        kinds = [_KINDS.get(kind, kind) for kind in types[1].split(" | ")]
        what = f"must be {' or '.join(kinds)}, got {_KINDS.get(types[2], types[2])}"
    elif missing := _REQUIRED.fullmatch(what):
        what = f'has no "{missing[1]}"'
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
        with_null = _NOT_A_NUMBER.sub(lambda m: m[0] if m[0].startswith(b'"') else b"null", data)
        return msgspec.json.decode(with_null, type=shape)


def _not_json(name: str, data: bytes, fault: str) -> ReadError:
    place = _PLACE.search(fault)
    at = int(place[1]) if place else len(data)
    where = _at(name, data, at)
    if "truncated" not in fault:
        column = at - data.rfind(b"\n", 0, at)
        why = fault.removeprefix("JSON is malformed: ").partition(" (byte")[0]
        near = short_value(data[max(0, at - 20) : at + 12].decode(errors="replace"))
        hint = ""
        if data[at : at + 1] == b"'" or data[at : at + 4] in (b"True", b"None", b"Fals"):
            hint = "; it is written as Python prints it: write it with json.dumps"
        return ReadError(f"{where}: not valid JSON at column {column:,} ({why}, at {near}){hint}")
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


def _first_of_many(path: Path | str | None) -> Mapping[str, msgspec.Raw] | None:
    """The first object of a file of JSON Lines; None of any other file."""
    with Path(path or "").open("rb") as stream:
        line = stream.readline(_STREAMED)
        rest = stream.read(PIECE)
    return _object(line) if line.endswith(b"\n") and rest.lstrip().startswith(b"{") else None


def torn_bytes(path: Path, size: int) -> int:
    """`_torn_line` of a file that had this size: it may be growing."""
    with path.open("rb") as stream:
        length = PIECE
        while True:
            begin = stream.seek(max(0, size - length))
            tail = stream.read(size - begin)
            if b"\n" in tail or not begin:
                return _torn_line(tail)
            length *= 4


def _torn_line(data: bytes) -> int:
    r"""The bytes of the last line of JSON Lines where it ends in the middle, below others; else 0.

    >>> _torn_line(b'{"a": 1}\n{"a": 2, "b'), _torn_line(b'{"a": 1}\n{"a": 2}')
    (11, 0)
    """
    begin = data.rfind(b"\n") + 1
    line = data[begin:]
    if not begin or not line.lstrip().startswith(b"{"):
        return 0
    try:
        _decode(line, object)
    except RecursionError:
        return 0
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        in_a_number = str(error).endswith(f"invalid number (byte {len(line)})")
        return len(line) if in_a_number or "truncated" in str(error) else 0
    return 0


def _read_once(
    name: str, path: Path | str | None, data: bytes | None, limits: Limits
) -> tuple[bytes, str, bytes, int]:
    """The first bytes, the hash, all bytes, their number.

    Of a file that is read piece by piece there are no bytes, and of one of lines no hash yet.
    """
    if path is None or data is not None:
        content = data or b""
        limits.check_size(name, len(content))
        return content[:4], hashlib.sha256(content).hexdigest(), content, len(content)
    try:
        # Unbuffered: a buffer's read() would hold the whole file twice.
        with io.FileIO(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            limits.check_size(name, size)
            head = b"" if 0 < size <= _SMALL else stream.read(4)
            if size > _STREAMED and head.startswith(b"{") and _first_of_many(path):
                return head, "", b"", size
            if head.startswith(_READ_IN_PIECES):
                digest = hashlib.sha256(head)
                while piece := stream.read(PIECE):
                    digest.update(piece)
                return head, digest.hexdigest(), b"", stream.tell()
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
    digest = hashlib.sha256(content)
    return content[:4], digest.hexdigest(), b"" if stays else content, len(content)


def _not_opened(name: str, error: OSError) -> ReadError:
    return ReadError(f"{name}: cannot be opened ({error.strerror or error})")


def _bare_name(name: str) -> str:
    lowered = name.lower()
    if not lowered.endswith(COMPRESSED_SUFFIXES):
        return name
    return name[: -len(next(filter(lowered.endswith, COMPRESSED_SUFFIXES)))]


_BEYOND_ASCII = re.compile(r"\w{0,20}[^\x00-\x7f]\w{0,20}")


def _as_utf8(name: str, data: bytes) -> tuple[bytes, str]:
    """Text as UTF-8, and what it was in where that is a guess, with a word of it as an example.

    UTF-16 has a mark, or a zero beside each of its first two characters (RFC 4627, section 3).
    Other text that is not UTF-8 is mostly a CSV of a spreadsheet, in Windows-1252: each byte is one
    character there, so whatever it is in, names stay apart and cells are cut at the same places.
    XML says what it is in, JSON must be UTF-8, and mostly UTF-8 is damaged UTF-8.
    """
    data = data.removeprefix(codecs.BOM_UTF8)  # no promise: some tools add it to any text
    zeros = [byte == 0 for byte in data[:4]]
    wide = {"utf-16-be": [True, False, True, False], "utf-16-le": [False, True, False, True]}
    encoding = next((name for name, shape in wide.items() if shape == zeros), "")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding:
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            return (data if text.lstrip().startswith("<") else text.encode()), ""
    if data.isascii() or data[:4096].lstrip()[:1] in (b"{", b"[", b"<") or _is_binary(data[:4096]):
        return data, ""
    try:
        data.decode()
    except UnicodeDecodeError:
        other = re.sub(r"[\x00-\x7f]+", "", data.decode(errors="replace"))
        damaged = 2 * other.count("\ufffd") < len(other)
        with contextlib.suppress(UnicodeDecodeError):
            if not damaged and (word := _BEYOND_ASCII.search(text := data.decode("cp1252"))):
                return text.encode(), f'Windows-1252 ("{word[0]}")'
        raise _not_utf8(name, data) from None
    return data, ""


def _kind_and_first(
    name: str, data: bytes, lines: bool
) -> tuple[Kind, Mapping[str, msgspec.Raw], bytes]:
    """What kind of data it is, the keys of its first entry, and the data as they are read."""
    start = data[:4096].lstrip()
    if not start:
        return ("empty" if not data.strip() else "text"), {}, data
    if start.startswith(b"<"):
        return "xml", {}, data
    if start.startswith(b"[") and not lines:
        entries = decode(name, data, list[msgspec.Raw])
        return "array", (_object(bytes(entries[0])) or {}) if entries else {}, data
    if start.startswith(b"{"):
        begin = data.index(b"{")
        end = data.find(b"\n", begin) % (len(data) + 1)  # no line ends: all of it
        entry = _object(data[begin:end])
        if entry is not None and (lines or _NOT_BLANK.search(data, end)):
            return "lines", entry, data
        if entry is not None:
            return "json", entry, data
        try:
            return "json", decode(name, data, dict[str, msgspec.Raw]), data
        except ReadError:
            if (listed := _an_object_a_line(data)) is None:
                raise
            return "lines", _object(listed.lstrip().partition(b"\n")[0]) or {}, listed
    return ("binary" if _is_binary(data[:4096]) else "text"), {}, data


def _an_object_a_line(data: bytes) -> bytes | None:
    """Objects that follow one another over several lines each, each on the line it begins in.

    What does not end as an object stays as it is: reading it says what is wrong. None if there
    is one object, or none.
    """
    import json

    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    decoder = json.JSONDecoder()
    listed: list[str] = []
    at = newlines = 0
    while (begin := text.find("{", at)) >= 0 and not (gap := text[at:begin]).strip():
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            break
        if listed and not newlines and "\n" not in gap:
            gap = "\n"
        newlines = text.count("\n", begin, end)
        listed.append(gap + text[begin:end].replace("\n", " ") + "\n" * newlines)
        at = end
    rest = text[at:]
    if len(listed) < (1 if rest.lstrip().startswith("{") else 2):
        return None
    return "".join((*listed, rest)).encode()


# Trials that somebody wrote down: a YAML list, and a table in Markdown.
_MOST_YAML = 400_000
"""Its parser takes a second for each 100 kB."""

_MOST_VALUES = 2_000_000
"""A value that anchors repeat counts each time: a few lines could stand for a billion."""


def _yaml_as_json(name: str, data: bytes) -> bytes:
    """The value of a YAML text as JSON; the text itself if it is JSON, or a suite with a fault."""
    if data.lstrip()[:1] in (b"{", b"[", b""):
        return data
    if len(data) > _MOST_YAML:
        if _SUITE.search(data):
            return data
        raise ReadError(
            f"{name}: is YAML of {len(data):,} bytes, and up to {_MOST_YAML:,} are read; save it "
            "as JSON or CSV"
        )
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        value, _ = _plain(YAML(typ="safe", pure=True).load(data), {})
    except (YAMLError, ValueError, RecursionError) as error:
        if _SUITE.search(data):
            return data
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        problem = error.problem if isinstance(error, MarkedYAMLError) else error
        where = f", line {mark.line + 1}" if mark else ""
        why = " ".join(str(problem).split())[:200]
        raise ReadError(f"{name}{where}: not valid YAML ({why})") from error
    return msgspec.json.encode(value) if isinstance(value, (dict, list)) else data


def is_suite(document: Document) -> bool:
    """Whether a text that holds no results has a key that a suite has at its top."""
    if document.kind == "text":
        return bool(_SUITE.search(document.data))
    return document.kind == "json" and not document.first.keys().isdisjoint(_SUITE_KEYS)


_SUITE_KEYS = ("agents", "systems", "tasks")
_SUITE = re.compile(rf"^({'|'.join(_SUITE_KEYS)}):".encode(), re.MULTILINE)


def _plain(value: object, anchored: dict[int, tuple[object, int]]) -> tuple[object, int]:
    """A value of YAML as JSON can write it, and of how many values it is made.

    A list or mapping that anchors repeat is the same object each time: it is counted each time,
    and looked through once.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value, 1
    if not isinstance(value, (dict, list)):
        return value.isoformat() if isinstance(value, date) else str(value), 1
    if id(value) not in anchored:
        parts = value.values() if isinstance(value, dict) else value
        held = [_plain(part, anchored) for part in parts]
        values = 1 + sum(count for _, count in held)
        if values > _MOST_VALUES:
            raise ValueError("its anchors repeat too much")
        plain = [part for part, _ in held]
        keyed = dict(zip(map(str, value), plain, strict=True)) if isinstance(value, dict) else plain
        anchored[id(value)] = keyed, values
    return anchored[id(value)]


_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?\s*)?")


def _markdown_as_csv(name: str, data: bytes) -> bytes:
    """The table in a Markdown text as CSV, its rows on the lines they have; else the text."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return data
    rules = [at for at, line in enumerate(lines) if at and "|" in line and _RULE.fullmatch(line)]
    if not rules:
        return data
    if len(rules) > 1:
        raise ReadError(
            f"{name}: has several tables (the second one in line {rules[1]}); save the one "
            "with a row for each trial as a file of its own"
        )
    (rule,) = rules
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    text.write("\n" * (rule - 1))
    for at, line in enumerate(lines[rule - 1 :], start=rule - 1):
        if "|" not in line:
            break
        if at == rule:
            text.write("\n")
            continue
        cells = [cell.replace("\\|", "|").strip() for cell in _BAR.split(line.strip())]
        first, last = line.lstrip().startswith("|"), not cells[-1]
        writer.writerow(cells[first : len(cells) - last])
    return text.getvalue().encode()


def _is_binary(head: bytes) -> bool:
    """Whether it has a NUL, or has other control characters and is not UTF-8 either."""
    if head.isascii():
        return b"\0" in head
    if b"\0" in head:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its end may cut a character
    except UnicodeDecodeError:
        return _CONTROL.search(head) is not None
    return False


def _object(text: bytes) -> Mapping[str, msgspec.Raw] | None:
    try:
        return _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return _decode(text, dict[str, msgspec.Raw])  # it may hold NaN
    return None


# Zip archives: their directory, and members that are stored, deflated or in Zstandard.
#
# The standard library knows Zstandard (method 93) only since Python 3.14, lets one small piece of
# it grow without bound, and takes ten times as long over the directory of a log of many samples.
STORED, DEFLATED, ZSTANDARD = 0, 8, 93

_LOCAL = struct.Struct("<4s22xHH")
_ENTRY = struct.Struct("<8xHH4xIIIHHH8xI")
_LENGTHS = struct.Struct("<28xHHH12x")
_TIME = struct.Struct("<12xHH")
_END = struct.Struct("<4s6xHIIH")
_END_64 = struct.Struct("<4s28xQQQ")
_LOCATOR_64 = struct.Struct("<4s4xQ4x")
_LONGEST_COMMENT = 2**16
_IN_ZIP64 = 0xFFFFFFFF
# What reading a broken directory raises.
_FAULTS = struct.error, ValueError, OSError, OverflowError


@dataclass(frozen=True, slots=True)
class Member:
    """Where a member begins, how it is compressed, and its declared size and checksum."""

    start: int
    method: int
    encrypted: bool
    packed: int
    size: int
    checksum: int


def listing_names(name: str, stream: BinaryIO, limits: Limits, *members: str) -> bool:
    """Whether the directory of a zip archive mentions one of the members; it is not parsed.

    Quick, and no proof: another member's name may hold the words.
    """
    try:
        listing, _ = _directory(name, stream, limits)
    except _FAULTS as error:
        raise _damaged(name, error) from error
    return any(member.encode() in listing for member in members)


class Archive:
    """A zip archive whose members are read one by one, none before it is asked for."""

    def __init__(self, name: str, stream: BinaryIO, limits: Limits) -> None:
        self._name, self._stream, self._limits = name, stream, limits
        try:
            self._listing, self._shift = _directory(name, stream, limits)
            self._entries = _entries(self._listing)
        except _FAULTS as error:
            raise _damaged(name, error) from error
        limits.check_members(name, len(self._entries))

    def __contains__(self, member: str) -> bool:
        return member in self._entries

    def names(self, prefix: str) -> list[str]:
        """The members under a folder, sorted."""
        return sorted(name for name in self._entries if name.startswith(prefix))

    def written(self, name: str) -> datetime | None:
        """When a member was written, by that machine's own clock; None if it is not known."""
        time, day = _TIME.unpack_from(self._listing, self._entries[name])
        try:
            return datetime(
                *(1980 + (day >> 9), day >> 5 & 15, day & 31),
                *(time >> 11, time >> 5 & 63, 2 * (time & 31)),
                tzinfo=UTC,  # of another zone, but all members of an archive are of the same
            )
        except ValueError:
            return None

    def read(self, name: str) -> bytes:
        """The bytes of one member, checked against its declared size and checksum."""
        shown = f"{self._name}, {name}"
        try:
            member = _member(self._listing, self._entries[name], self._shift)
        except _FAULTS as error:
            raise _damaged(shown, error) from error
        self._limits.check_size(shown, member.size, member.packed)
        data = join(shown, lambda: self._expand(shown, member), member.packed, self._limits)
        if zlib.crc32(data) != member.checksum:
            raise ReadError(f"{shown}: damaged (its checksum does not fit)")
        return data

    def _expand(self, shown: str, member: Member) -> Iterator[bytes]:
        if member.encrypted:
            raise ReadError(f"{shown}: encrypted; write it without a password")
        raw = self._raw(shown, member)
        if member.method == STORED:
            return iter((raw,))
        if member.method == DEFLATED:
            return inflate(raw)
        if member.method == ZSTANDARD:
            return unzstd(raw)
        raise ReadError(
            f"{shown}: compressed by method {member.method}; stored (0), deflated (8) and "
            "Zstandard (93) can be read"
        )

    def _raw(self, shown: str, member: Member) -> bytes:
        try:
            self._stream.seek(max(0, member.start))
            header = self._stream.read(_LOCAL.size)
            if member.start < 0 or len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
                raise ValueError("it is not where the directory says")
            _, name, extra = _LOCAL.unpack(header)
            self._stream.seek(name + extra, io.SEEK_CUR)
            return self._stream.read(member.packed)
        except _FAULTS as error:  # before its beginning, or too far
            raise _damaged(shown, error) from error


def _damaged(name: str, error: Exception) -> ReadError:
    return ReadError(
        f"{name}: a damaged or unfinished zip archive ({error}); copy it again from where it was "
        "written"
    )


def _directory(name: str, stream: BinaryIO, limits: Limits) -> tuple[bytes, int]:
    """The bytes that list the members, and how far the archive is shifted in its file."""
    count, size, start, shift = _end(stream)
    limits.check_members(name, count)
    limits.check_size(name, size)
    stream.seek(start + shift)
    return stream.read(size), shift


def _entries(listing: bytes) -> dict[str, int]:
    """The position of each member's entry; the entry is parsed when the member is read."""
    entries: dict[str, int] = {}
    at = 0
    while at < len(listing):
        if not listing.startswith(b"PK\1\2", at):
            raise ValueError("its directory is broken")
        names, extra, comment = _LENGTHS.unpack_from(listing, at)
        begin = at + _LENGTHS.size
        entries[listing[begin : begin + names].decode("utf-8", errors="replace")] = at
        at = begin + names + extra + comment
    return entries


def _member(listing: bytes, at: int, shift: int) -> Member:
    flags, method, checksum, packed, size, names, extra, _, start = _ENTRY.unpack_from(listing, at)
    if _IN_ZIP64 in (packed, size, start):
        field = at + _LENGTHS.size + names
        size, packed, start = _wide(listing[field : field + extra], size, packed, start)
    return Member(start + shift, method, bool(flags & 1), packed, size, checksum)


def _end(stream: BinaryIO) -> tuple[int, int, int, int]:
    """Entries, size and start of the directory, and how far the archive is shifted in its file."""
    length = stream.seek(0, io.SEEK_END)
    begin = max(0, length - _LONGEST_COMMENT - _END.size)
    stream.seek(begin)
    tail = stream.read()
    place = tail.rfind(b"PK\5\6")
    if place < 0:
        raise ValueError("its directory is missing")
    _, count, size, start, _ = _END.unpack_from(tail, place)
    end = begin + place
    locator = place - _LOCATOR_64.size
    if locator >= 0 and tail.startswith(b"PK\6\7", locator):
        _, where = _LOCATOR_64.unpack_from(tail, locator)
        stream.seek(where)
        magic, count, size, start = _END_64.unpack(stream.read(_END_64.size))
        if magic != b"PK\6\6":
            raise ValueError("its directory is broken")
        end = where
    return count, size, start, end - size - start


def _wide(block: bytes, *values: int) -> list[int]:
    """The sizes and offset that did not fit in 32 bits, from a member's zip64 field."""
    at = 0
    while at + 4 <= len(block):
        kind, length = struct.unpack_from("<HH", block, at)
        if kind == 1:
            wide = list(struct.unpack_from(f"<{length // 8}Q", block, at + 4))
            if len(wide) < values.count(_IN_ZIP64):
                raise ValueError("its directory is broken")
            return [wide.pop(0) if value == _IN_ZIP64 else value for value in values]
        at += 4 + length
    return list(values)


# Bytes out of gzip, Zstandard and deflate, taken in pieces and refused beyond the limits.
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BZIP2_MAGIC = b"BZh"
XZ_MAGIC = b"\xfd7zXZ\0"
PIECE = 2**20


def decompress(name: str, data: bytes, limits: Limits) -> bytes:
    """The content of gzip, Zstandard, bzip2 or xz bytes; anything else as it is."""
    if data.startswith(GZIP_MAGIC):
        return join(name, lambda: _pieces(gzip.open(io.BytesIO(data))), len(data), limits)
    if data.startswith(ZSTD_MAGIC):
        return join(name, lambda: unzstd(data), len(data), limits)
    if data.startswith(BZIP2_MAGIC):
        import bz2

        return join(name, lambda: _pieces(bz2.open(io.BytesIO(data))), len(data), limits)
    if data.startswith(XZ_MAGIC):
        import lzma

        try:
            return join(name, lambda: _pieces(lzma.open(io.BytesIO(data))), len(data), limits)
        except lzma.LZMAError as error:
            raise ReadError(f"{name}: the compressed data is damaged ({error})") from error
    return data


def unzstd(raw: bytes) -> Iterator[bytes]:
    """The content of Zstandard frames, piece by piece."""
    return _pieces(zstd.ZstdFile(io.BytesIO(raw)))


def inflate(raw: bytes) -> Iterator[bytes]:
    """The content of a bare deflate stream, piece by piece."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    while raw and not inflater.eof:
        yield inflater.decompress(raw, PIECE)
        raw = inflater.unconsumed_tail
    yield inflater.flush()


def read_all(name: str, stream: BinaryIO, limits: Limits) -> bytes:
    """The rest of a stream of unknown length, refused as soon as it outgrows the limits."""
    parts, size = [], 0
    while piece := stream.read(PIECE):
        parts.append(piece)
        size += len(piece)
        limits.check_size(name, size)
    return b"".join(parts)


def join(
    name: str, expand: Callable[[], Iterable[bytes]], compressed: int, limits: Limits
) -> bytes:
    """All pieces as one, refused as soon as they outgrow the limits.

    What may be a bomb is measured to its end before it is kept: a limit on its size is then no
    claim on memory.
    """
    try:
        parts = _kept(name, expand(), compressed, limits, most=FREE_BYTES)
        if parts is None:
            parts = _kept(name, expand(), compressed, limits, most=limits.max_bytes)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise ReadError(f"{name}: the compressed data is damaged ({error})") from error
    return b"".join(parts or ())


def _kept(
    name: str, pieces: Iterable[bytes], compressed: int, limits: Limits, *, most: int
) -> list[bytes] | None:
    """The pieces; None if they are above `most` bytes and many times what they came from."""
    parts: list[bytes] = []
    size, too_many = 0, False
    for piece in pieces:
        size += len(piece)
        limits.check_size(name, size, compressed)
        too_many = too_many or (size > most and size > ORDINARY_RATIO * compressed)
        if too_many:
            parts.clear()
        else:
            parts.append(piece)
    return None if too_many else parts


def _pieces(stream: IO[bytes] | gzip.GzipFile | zstd.ZstdFile) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


# How much a result file may hold before it is refused.
FREE_BYTES = 64 * 2**20
"""Below this size no expansion is suspicious, however well it was compressed."""

ORDINARY_RATIO = 20
"""How far ordinary logs are compressed; ratios of 100 and more are rare, but occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what is read; a file beyond one is refused with the bound's name.

    Only a transcript beyond `max_transcript` characters is cut instead, and says so where it ends.

    >>> Limits(max_ratio=1000).max_members
    100000
    """

    max_bytes: int = 4 * 2**30
    max_ratio: int = 150
    max_members: int = 100_000
    max_depth: int = 16
    max_transcript: int = 1_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(field.name, "must be a whole number of at least 1", value)

    def check_size(self, name: str, size: int, compressed: int | None = None) -> None:
        """Refuse `size` bytes, or `size` bytes that came out of `compressed` ones."""
        if size > self.max_bytes:
            raise ReadError(
                f"{name}: holds {size:,} bytes or more, above max_bytes = {self.max_bytes:,}; "
                f"read it in parts, or {_way_out('max_bytes')}"
            )
        if compressed is not None:
            self.check_ratio(name, size, compressed)

    def check_ratio(self, name: str, size: int, compressed: int) -> None:
        """Refuse `size` bytes that came out of far fewer, all at once or in many parts."""
        if size > FREE_BYTES and size > self.max_ratio * compressed:
            raise ReadError(
                f"{name}: {compressed:,} bytes expand to {size:,} or more, above max_ratio = "
                f"{self.max_ratio}: it may be a decompression bomb; if you trust it, "
                f"{_way_out('max_ratio')}"
            )

    def check_members(self, name: str, count: int) -> None:
        """Refuse an archive or folder of more than `max_members` files."""
        if count > self.max_members:
            raise ReadError(
                f"{name}: holds more than max_members = {self.max_members:,} files; name fewer, "
                f"or {_way_out('max_members')}"
            )

    def check_depth(self, name: str, depth: int) -> None:
        """Refuse folders within folders beyond `max_depth`."""
        if depth > self.max_depth:
            raise ReadError(
                f"{name}: deeper than max_depth = {self.max_depth} folders; name it by itself, or "
                f"{_way_out('max_depth')}"
            )


def parse_limits(texts: Iterable[str]) -> Limits:
    """The limits as the command line states them: `max_ratio=1000`, each by itself.

    >>> parse_limits(["max_ratio=1000", "max_depth=20"])
    Limits(max_bytes=4294967296, max_ratio=1000, max_members=100000, max_depth=20, \
max_transcript=1000000)
    """
    known = [field.name for field in fields(Limits)]
    stated: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        digits = number.strip()
        fits = digits.isdecimal() and len(digits) <= 18 and int(digits) >= 1
        if name.strip() not in known or not fits:
            rule = f"must be NAME=NUMBER, a whole number from 1 to 10^18 for {', '.join(known)}"
            raise ArgumentError("limits", rule, text)
        stated[name.strip()] = int(number)
    return Limits(**stated)


def _way_out(name: str) -> str:
    return f"allow more with `limits=Limits({name}=...)`"
