"""Workers on a Ray cluster: Ray starts and restarts them, the store keeps everything else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from passhat.errors import MissingExtra

CPUS = float(os.environ.get("PASSHAT_RAY_CPUS", "1"))
"""CPUs that a worker asks the cluster for."""


@contextmanager
def ray_workers(store: str, run: str, count: int) -> Iterator[None]:
    """Worker actors for one run, on the cluster at RAY_ADDRESS or on a local one.

    Ray never retries a trial: an actor that dies is started again and claims tickets anew. The
    folder here is shipped to the nodes, so that they have the suite.
    """
    ray = _ray()
    mine = not ray.is_initialized()
    if mine:
        ray.init(
            address=os.environ.get("RAY_ADDRESS"),
            runtime_env={"working_dir": ".", "excludes": [".git", ".passhat", ".venv"]},
            log_to_driver=True,
        )
    actors = []
    try:
        remote = ray.remote(num_cpus=CPUS, max_restarts=-1, max_task_retries=-1)(_Worker)
        actors = [remote.remote(store, run) for _ in range(count)]
        for actor in actors:
            actor.work.remote()
        yield
    finally:
        for actor in actors:
            ray.kill(actor)
        if mine:
            ray.shutdown()


class _Worker:
    """What an actor does: the same as `passhat worker`."""

    def __init__(self, store: str, run: str) -> None:
        self._store = store
        self._run = run

    def work(self) -> int:
        from passhat.journeys.working import work

        return work(self._store, run=self._run)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra("--executor ray", "ray") from None
    return ray
