"""How much a result file may hold before it is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, ReadError

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
        if name.strip() not in known or not number.strip().isdecimal() or int(number) < 1:
            rule = f"must be NAME=NUMBER, a whole number of at least 1 for {', '.join(known)}"
            raise ArgumentError("limits", rule, text)
        stated[name.strip()] = int(number)
    return Limits(**stated)


def _way_out(name: str) -> str:
    return f"allow more with `limits=Limits({name}=...)`"
