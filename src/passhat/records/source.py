"""Where trials came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where trials came from: a name to show, the format that read it, and the bytes' hash."""

    name: str
    format: str
    sha256: str
    notes: tuple[str, ...] = ()
