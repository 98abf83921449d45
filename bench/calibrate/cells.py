"""Cells of a simulation, spread over processes and stored as they end.

An interrupted run resumes with the cells that are missing: each is stored under a digest of its
study, its arguments and the statistics it uses, so that a change of the code starts afresh.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from bench.calibrate.table import Table

ROOT = Path(__file__).parents[2]
STORE = ROOT / "build" / "calibrate"

Cell = Callable[..., Any]

_JOBS: list[tuple[Cell, tuple[Any, ...]]] = []
"""What the child processes run: they are forked, and get only the index of a cell."""


def run_cells(study: str, cell: Cell, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What `cell` returns for each tuple of arguments, in their order.

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


def run_tables(
    study: str, makers: Sequence[tuple[Cell, int, int]], *, quick: bool, least: int = 10
) -> list[Table]:
    """The tables of a study, each a cell: a function of repetitions, how many if quick, how many.

    PASSHAT_SHARE is the share of the repetitions to run. A quick run stores nothing.
    """
    if quick:
        return [table for maker, few, _ in makers for table in _made(maker, few, quick=True)]
    share = float(os.environ.get("PASSHAT_SHARE", "1"))
    given = [(maker, max(least, round(share * count))) for maker, _, count in makers]
    jobs = [(f"{maker.__module__}:{maker.__qualname__}", count) for maker, count in given]
    found = run_cells(study, _table_cell, jobs)
    return [Table(**one) for tables in found for one in tables]


def _table_cell(name: str, count: int) -> list[dict[str, Any]]:
    module, _, function = name.partition(":")
    maker = getattr(importlib.import_module(module), function)
    return [asdict(table) for table in _made(maker, count, quick=False)]


def _made(maker: Cell, count: int, *, quick: bool) -> list[Table]:
    takes_quick = "quick" in inspect.signature(maker).parameters
    found = maker(count, quick=quick) if takes_quick else maker(count)
    return found if isinstance(found, list) else [found]


def _run(place: int) -> tuple[int, Any]:
    cell, given = _JOBS[place]
    return place, cell(*given)


def _digest(study: str, cell: Cell, given: tuple[Any, ...]) -> str:
    module = given[0].partition(":")[0] if cell is _table_cell else cell.__module__
    own = Path(inspect.getfile(sys.modules[module])).read_text()
    text = "\x1f".join((study, cell.__qualname__, repr(given), own, _statistics()))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@cache
def _statistics() -> str:
    """A digest of the statistics and of the gates that use them."""
    folders = [ROOT / "src/passhat" / name for name in ("stats", "analysis/gates")]
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    text = b"".join(path.read_bytes() for path in files)
    return hashlib.blake2b(text, digest_size=12).hexdigest()
