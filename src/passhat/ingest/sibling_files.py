"""Files that lie beside a result file and belong to it; nothing outside its folder is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from passhat.errors import ReadError
from passhat.ingest.document import Document, Value, decode
from passhat.records.key_shapes import beginning
from passhat.records.transcript import cut_mark, cut_text


def sibling_bytes(document: Document, *names: str) -> bytes | None:
    """The content of a file below the folder of a result file, if it is there.

    `names` may come from the result file itself, and a link may lead anywhere: what resolves to
    a place outside the folder is treated as absent.
    """
    path = sibling_file(document, *names)
    if path is None:
        return None
    document.limits.check_size(str(path), path.stat().st_size)
    return path.read_bytes()


def sibling_decoded(
    document: Document, shape: type[Value], *names: str
) -> tuple[Value | None, str]:
    """The same as JSON, and what is wrong with it: whoever was killed left it half written.

    The results do not depend on it, so that a fault in it is told in its place.
    """
    found = sibling_bytes(document, *names)
    if found is None:
        return None, ""
    try:
        return decode(f"{document.name}, {'/'.join(names)}", found, shape), ""
    except ReadError as error:
        return None, str(error)


def sibling_text(document: Document, *names: str, most: int) -> str:
    """The first `most` characters as text, with word of the rest; nothing where there is no file.

    The rest stays unread: a terminal may have filled a disk.
    """
    path = sibling_file(document, *names)
    if path is None:
        return ""
    document.limits.check_size(str(path), size := path.stat().st_size)
    with path.open("rb") as stream:
        read = stream.read(4 * most)  # no character of UTF-8 is longer than four bytes
    text = read.decode("utf-8", errors="replace").strip()
    if size <= len(read):
        return cut_text(text, most)
    kept = beginning(text, most).rstrip()
    return f"{kept} {cut_mark(max(1, size - len(kept.encode())), 'byte')}"


def sibling_names(document: Document, *names: str, keep: Callable[[str], bool]) -> list[str]:
    """The names in a folder below that of a result file, refused where there are too many.

    They are in no order: sort them by what they mean.
    """
    folder = sibling_path(document, *names)
    if folder is None or not folder.is_dir():
        return []
    found: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if keep(entry.name):
                found.append(entry.name)
                document.limits.check_members(str(folder), len(found))
    return found


def sibling_file(document: Document, *names: str) -> Path | None:
    """A file below the folder of a result file, where there is one."""
    path = sibling_path(document, *names)
    return path if path is not None and path.is_file() else None


def sibling_path(document: Document, *names: str) -> Path | None:
    """A place below the folder of a result file; None where it would be anywhere else."""
    if document.path is None or any("\0" in name for name in names):
        return None
    folder = document.path.parent.resolve()
    try:
        path = folder.joinpath(*names).resolve()
    except (OSError, RuntimeError):  # a loop of links, or a name too long to be one
        return None
    return path if path.is_relative_to(folder) and os.access(path, os.R_OK) else None
