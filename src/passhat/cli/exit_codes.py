"""What the exit code of a command says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """0 done or passed, 1 a demand failed, 2 usage, 3 incomplete, 4 undecided, 70 our own fault."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCOMPLETE = 3
    UNDECIDED = 4
    UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h
    HUNG_UP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143
