"""Texts as the store keeps them: compressed each on its own, or several short ones in one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


SEPARATOR = "\x1f"
"""The unit separator of ASCII: PostgreSQL cannot keep the NUL that earlier versions used."""


def pack(text: str) -> bytes:
    """Text, compressed."""
    return zstd.compress(text.encode(), level=3)


def unpack(body: bytes) -> str:
    """Text that `pack` compressed."""
    return zstd.decompress(body).decode()


def join_texts(texts: Sequence[str]) -> str | None:
    """Several short texts as one; None where there are none."""
    return SEPARATOR.join(texts) or None


def split_texts(text: str | None) -> tuple[str, ...]:
    """The texts that `join_texts`, or an earlier version, put together."""
    return tuple(text.replace("\0", SEPARATOR).split(SEPARATOR)) if text else ()
