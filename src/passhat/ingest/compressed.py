"""Bytes out of gzip, Zstandard and zip, read in pieces and refused beyond the limits."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from passhat.errors import ReadError
from passhat.ingest.limits import Limits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZIP_MAGIC = b"PK"
PIECE = 2**20

_ZSTD_METHOD = 93  # in zipfile only since Python 3.14
_LOCAL_HEADER = 30


def decompress(name: str, data: bytes, limits: Limits) -> bytes:
    """The content of gzip or Zstandard bytes; anything else as it is."""
    if data.startswith(GZIP_MAGIC):
        pieces = _pieces(gzip.GzipFile(fileobj=io.BytesIO(data)))
    elif data.startswith(ZSTD_MAGIC):
        pieces = _pieces(zstd.ZstdFile(io.BytesIO(data)))
    else:
        return data
    return _join(name, pieces, len(data), limits)


class Archive:
    """A zip archive whose members may be stored, deflated or in Zstandard (method 93).

    `zipfile` reads the directory; members are expanded here, because `zipfile` knows method 93
    only since Python 3.14 and lets one small piece of it grow without bound.
    """

    def __init__(self, name: str, stream: BinaryIO, limits: Limits) -> None:
        self._name, self._stream, self._limits = name, stream, limits
        try:
            directory = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ReadError(f"{name}: a damaged or unfinished zip archive ({error})") from error
        self._members = {info.filename: info for info in directory.infolist()}
        limits.check_members(name, len(self._members))

    def __contains__(self, member: str) -> bool:
        return member in self._members

    def names(self, prefix: str) -> list[str]:
        """The members under a folder, sorted."""
        return sorted(name for name in self._members if name.startswith(prefix))

    def read(self, member: str) -> bytes:
        """The bytes of one member, checked against its declared size and checksum."""
        info = self._members[member]
        shown = f"{self._name}, {member}"
        self._limits.check_size(shown, info.file_size, info.compress_size)
        data = _join(shown, self._expand(shown, info), info.compress_size, self._limits)
        if zlib.crc32(data) != info.CRC:
            raise ReadError(f"{shown}: damaged (its checksum does not fit)")
        return data

    def _expand(self, shown: str, info: zipfile.ZipInfo) -> Iterator[bytes]:
        raw = self._raw(shown, info)
        if info.compress_type == zipfile.ZIP_STORED:
            return iter((raw,))
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return _inflate(raw)
        if info.compress_type == _ZSTD_METHOD:
            return _pieces(zstd.ZstdFile(io.BytesIO(raw)))
        raise ReadError(
            f"{shown}: compressed by method {info.compress_type}; stored (0), deflated (8) and "
            "Zstandard (93) can be read"
        )

    def _raw(self, shown: str, info: zipfile.ZipInfo) -> bytes:
        if info.flag_bits & 1:
            raise ReadError(f"{shown}: encrypted; write the log without a password")
        self._stream.seek(info.header_offset)
        header = self._stream.read(_LOCAL_HEADER)
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self._stream.seek(names, io.SEEK_CUR)
        return self._stream.read(info.compress_size)


def _pieces(stream: BinaryIO | gzip.GzipFile | zstd.ZstdFile) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _inflate(raw: bytes) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    while raw and not inflater.eof:
        yield inflater.decompress(raw, PIECE)
        raw = inflater.unconsumed_tail
    yield inflater.flush()


def _join(name: str, pieces: Iterable[bytes], compressed: int, limits: Limits) -> bytes:
    parts, size = [], 0
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            limits.check_size(name, size, compressed)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise ReadError(f"{name}: the compressed data is damaged ({error})") from error
    return b"".join(parts)
