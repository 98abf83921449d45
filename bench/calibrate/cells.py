"""Cells of a simulation, spread over processes and kept as they end.

An interrupted run goes on with the cells that are missing: each is stored under a digest of its
study, its arguments and the statistics it exercises, so that a change of the code starts anew.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STORE = ROOT / "build" / "calibrate"

Cell = Callable[..., Any]

_JOBS: list[tuple[Cell, tuple[Any, ...]]] = []
"""What the child processes run: they are forked, and are told the place of a cell only."""


def run_cells(study: str, cell: Cell, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What `cell` answers for each tuple of arguments, in their order.

    Answers must survive JSON. The number of processes is PASSHAT_JOBS, by default the cores.
    """
    paths = [STORE / f"{_digest(study, cell, given)}.json" for given in arguments]
    missing = [place for place, path in enumerate(paths) if not path.exists()]
    STORE.mkdir(parents=True, exist_ok=True)
    _JOBS[:] = [(cell, given) for given in arguments]
    processes = int(os.environ.get("PASSHAT_JOBS", os.cpu_count() or 1))
    if missing:
        with multiprocessing.get_context("fork").Pool(min(processes, len(missing))) as pool:
            for place, answer in pool.imap_unordered(_run, missing):
                paths[place].write_text(json.dumps(answer))
    return [json.loads(path.read_text()) for path in paths]


def _run(place: int) -> tuple[int, Any]:
    cell, given = _JOBS[place]
    return place, cell(*given)


def _digest(study: str, cell: Cell, given: tuple[Any, ...]) -> str:
    own = Path(inspect.getfile(cell)).read_text()
    text = "\x1f".join((study, cell.__qualname__, repr(given), own, _statistics()))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@cache
def _statistics() -> str:
    """A digest of the statistics."""
    files = sorted((ROOT / "src/passhat/stats").rglob("*.py"))
    text = b"".join(path.read_bytes() for path in files)
    return hashlib.blake2b(text, digest_size=12).hexdigest()
