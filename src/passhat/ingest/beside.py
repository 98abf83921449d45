"""Files that lie beside a result file and belong to it; nothing outside its folder is opened."""

from __future__ import annotations

import os
from pathlib import Path

from passhat.errors import ReadError
from passhat.ingest.document import Document, Value, decode


def bytes_beside(document: Document, *names: str) -> bytes | None:
    """The content of a file below the folder of a result file, if it is there.

    `names` may come from the result file itself, and a link may lead anywhere: what resolves to
    a place outside the folder is treated as absent.
    """
    path = path_beside(document, *names)
    if path is None or not path.is_file():
        return None
    document.limits.check_size(str(path), path.stat().st_size)
    return path.read_bytes()


def decoded_beside(document: Document, shape: type[Value], *names: str) -> tuple[Value | None, str]:
    """The same as JSON, and what is wrong with it: whoever was killed left it half written.

    The results do not depend on it, so that a fault in it is told in its place.
    """
    found = bytes_beside(document, *names)
    if found is None:
        return None, ""
    try:
        return decode(f"{document.name}, {'/'.join(names)}", found, shape), ""
    except ReadError as error:
        return None, str(error)


def text_beside(document: Document, *names: str) -> str:
    """The same as text; nothing where there is no such file."""
    found = bytes_beside(document, *names)
    return "" if found is None else found.decode("utf-8", errors="replace")


def path_beside(document: Document, *names: str) -> Path | None:
    """A place below the folder of a result file; None where it would be anywhere else."""
    if document.path is None or any("\0" in name for name in names):
        return None
    folder = document.path.parent.resolve()
    try:
        path = folder.joinpath(*names).resolve()
    except (OSError, RuntimeError):  # a loop of links, or a name too long to be one
        return None
    return path if path.is_relative_to(folder) and os.access(path, os.R_OK) else None
