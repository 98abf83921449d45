"""Are there secrets in files? What passhat wrote here, or other files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.arguments import path, several
from passhat.dataclass import dataclass
from passhat.errors import PasshatError

if TYPE_CHECKING:
    from passhat.records import Suite
    from passhat.runner.leak_scan import FoundSecret

USUAL = (Path("cassettes"), Path("snapshots"), Path(".passhat"))
"""Where passhat writes, if no path is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretScan:
    """The files and folders that were searched, and the secrets in them; none is shown itself."""

    places: tuple[Path, ...]
    secrets: tuple[FoundSecret, ...]


def find_secrets(places: str | Path | Sequence[str | Path] = ()) -> SecretScan:
    """Are there secrets in these files and folders, or else in what passhat wrote here?

    It finds the values of variables with names such as MY_KEY or DB_PASSWORD, the secrets that the
    suite in this folder refers to, and everything that looks like a known kind of key, also in
    compressed files, archives and SQLite stores.
    """
    from passhat.records.redaction import suite_redactor
    from passhat.runner.leak_scan import scan_paths

    named = tuple(Path(path("places", one, "paths")) for one in several(places, str))
    searched = named or tuple(one for one in USUAL if one.exists())
    found = scan_paths(searched, suite_redactor(_suite_here(), os.environ))
    return SecretScan(places=searched, secrets=tuple(dict.fromkeys(found)))


def _suite_here() -> Suite | None:
    from passhat.suite import suite_in

    try:
        return suite_in(Path())
    except PasshatError:
        return None  # a suite with an error must not keep secrets from being found
