"""Writes every file that is made from the code: `make generate` runs this."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

GENERATORS = sorted(Path(__file__).parent.glob("generate_*.py"))


def generated_files() -> Iterator[tuple[Path, str]]:
    """Each generated file, and what it should hold."""
    for generator in GENERATORS:
        yield from runpy.run_path(str(generator))["generated"]()


if __name__ == "__main__":
    for path, text in generated_files():
        path.write_text(text, encoding="utf-8")
