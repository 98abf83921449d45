"""A directory for one run; a later run removes those of runs that were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "passhat-run-"
OWNED = ".owned"
"""A file that the run keeps locked; the kernel releases the lock when the process ends."""

UNDISTURBED = 60.0
"""Seconds during which a new directory is left alone: its run may not have the lock yet."""


class Scratch:
    """A fresh directory, removed by `close`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self.path)
        sweep(self.path.parent)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def sweep(folder: Path) -> None:
    """Remove the directories of runs that were killed before they could do it themselves."""
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = path.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < UNDISTURBED:
                continue
            # A symbolic link is not followed.
            if path.is_symlink() or not (path / OWNED).exists():
                continue
            if (lock := _lock(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _lock(path: Path) -> int | None:
    """The lock of a directory; None if another process holds it."""
    handle = os.open(path / OWNED, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
