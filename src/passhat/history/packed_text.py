"""Texts as the store keeps them: compressed, each on its own."""

from __future__ import annotations

import sys

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
