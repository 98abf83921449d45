"""Bytes out of gzip, Zstandard and deflate, taken in pieces and refused beyond the limits."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from passhat.errors import ReadError
from passhat.ingest.limits import FREE_BYTES, ORDINARY_RATIO, Limits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE = 2**20


def decompress(name: str, data: bytes, limits: Limits) -> bytes:
    """The content of gzip or Zstandard bytes; anything else as it is."""
    if data.startswith(GZIP_MAGIC):
        return join(name, lambda: _pieces(gzip.open(io.BytesIO(data))), len(data), limits)
    if data.startswith(ZSTD_MAGIC):
        return join(name, lambda: unzstd(data), len(data), limits)
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


def _pieces(stream: gzip.GzipFile | zstd.ZstdFile) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece
