"""A Ray cluster of several nodes on this machine, for as long as standard input stays open.

`python -m bench.ray_cluster 2` prints the address that RAY_ADDRESS takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPUS_OF_A_NODE = 4
"""CPUs that a node says it has, however many there are: room for some workers."""

STORE_BYTES = 80 * 2**20
"""Shared memory of a node for objects: workers hand over none, and Ray wants at least 75 MB."""


def python_with_ray() -> Path | None:
    """The Python that has Ray: this one, or that of `make ray`."""
    import importlib.util

    found = importlib.util.find_spec("ray")
    if found is not None and found.origin is not None:  # and not just a folder called so
        return Path(sys.executable)
    made = ROOT / ".venv-ray/bin/python"
    return made if made.exists() else None


@contextmanager
def ray_cluster(python: Path, nodes: int = 2) -> Iterator[str]:
    """The address of a running cluster."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [str(python), "-m", "bench.ray_cluster", str(nodes)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            _, said = process.communicate()
            raise SystemExit(f"the Ray cluster did not start: {said[-2000:]}")
        yield address
    finally:
        process.communicate()  # closes standard input, which ends it


def main(nodes: int) -> None:
    """Start the nodes, and stop them when standard input ends."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": CPUS_OF_A_NODE, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(**node)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
