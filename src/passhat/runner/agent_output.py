"""Keeping what agents print out of our own answer on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

STDOUT, STDERR = 1, 2


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send to standard error what code of users prints in this process, and in its children.

    The report of a run may go to standard output as JSON: a stray line would break it.
    """
    with _descriptor_to_stderr(), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    """Turn the descriptor itself where Python's stdout is the real one (not a notebook's)."""
    if not _is_real_stdout():
        yield
        return
    sys.stdout.flush()
    kept = os.dup(STDOUT)
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _is_real_stdout() -> bool:
    try:
        return sys.stdout.fileno() == STDOUT and sys.stderr.fileno() == STDERR
    except (AttributeError, OSError, ValueError):
        return False
