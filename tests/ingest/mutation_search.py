"""Breaks a hundred thousand result files: `make mutations` runs this.

Each must be read or refused in a sentence, in bounded time and memory. A seed that was named in a
failure breaks the same file again: `python -m tests.ingest.mutation_search 1 SEED`.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.ingest import mutations
from tests.ingest.mutations import MOST_CHARACTERS, all_logs, read_one_broken, room_of

FILES = 100_000
LONGEST = 5.0
"""CPU seconds that a broken file may take; the slowest takes a tenth of it."""

MOST_MEMORY = 2**31


def main(files=FILES, first=0):
    """Break that many files, seeds counted from `first`; say what was found."""
    logs = all_logs(Path(__file__).parents[1] / "samples")
    refused, slowest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        room = room_of(Path(folder), logs)
        for seed in range(first, first + files):
            before = time.process_time()
            told = _checked(logs, room, seed)
            taken = time.process_time() - before
            slowest = max(slowest, taken)
            refused += told is not None
            if taken > LONGEST:
                raise SystemExit(f"seed {seed} took {taken:.1f} s: {mutations.told}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sys.stdout.write(
        f"{files:,} broken files: {refused:,} refused in a sentence, {files - refused:,} read; "
        f"the slowest took {slowest:.2f} CPU-s; {peak / 2**20:,.0f} MiB at most\n"
    )
    if peak > MOST_MEMORY:
        raise SystemExit("too much memory")


def _checked(logs, room, seed):
    try:
        told = read_one_broken(logs, room, seed)
    except Exception as error:
        raise SystemExit(
            f"seed {seed}, {mutations.told}: {type(error).__name__}: {error}"
        ) from error
    if told is not None and not 0 < len(told) <= MOST_CHARACTERS:
        raise SystemExit(f"seed {seed}: a message of {len(told)} characters")
    return told


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
