"""Zip archives: their directory, and members that are stored, deflated or in Zstandard.

The standard library knows Zstandard (method 93) only since Python 3.14, lets one small piece of it
grow without bound, and takes ten times as long over the directory of a log of many samples.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.compressed import inflate, join, unzstd
from passhat.ingest.limits import Limits

ZIP_MAGIC = b"PK"
STORED, DEFLATED, ZSTANDARD = 0, 8, 93

_LOCAL = struct.Struct("<4s22xHH")
_ENTRY = struct.Struct("<8xHH4xIIIHHH8xI")
_LENGTHS = struct.Struct("<28xHHH12x")
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
    found = tail.rfind(b"PK\5\6")
    if found < 0:
        raise ValueError("its directory is missing")
    _, count, size, start, _ = _END.unpack_from(tail, found)
    end = begin + found
    locator = found - _LOCATOR_64.size
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
