"""Texts as the store keeps them: compressed each on its own, or several short ones in one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def pack(text: str) -> bytes:
    """Text, compressed."""
    return zstd.compress(text.encode(), level=3)


def unpack(body: bytes) -> str:
    """Text that `pack` compressed."""
    return zstd.decompress(body).decode()


def join_texts(texts: Sequence[str]) -> str | None:
    """Several short texts as one, a JSON list; None where there are none.

    >>> join_texts(("search", "add")), join_texts(())
    ('["search","add"]', None)
    """
    return json.dumps(list(texts), separators=(",", ":")) if texts else None


def split_texts(text: str | None) -> tuple[str, ...]:
    r"""The texts that `join_texts`, or with a NUL in between an earlier version, put together.

    >>> split_texts('["search","add"]'), split_texts("search\0add"), split_texts(None)
    (('search', 'add'), ('search', 'add'), ())
    """
    if not text:
        return ()
    if text.startswith('["') and text.endswith('"]'):
        return tuple(json.loads(text))
    return tuple(text.split("\0"))
