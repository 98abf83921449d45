"""Run the benchmarks, all or the named ones: `python -m bench estimates reading running`."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = ("estimates", "reading", "running")


def main(arguments: list[str]) -> None:
    for name in arguments or BENCHMARKS:
        importlib.import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
