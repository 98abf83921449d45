"""A page of documentation made of parts, each written anew by the script that owns it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "explanation"


def write_part(page: str, opening: str, order: Sequence[str], name: str, text: str) -> None:
    """Put one part into a page, in the given order, and leave the others as they are."""
    path = FOLDER / page
    written = path.read_text() if path.exists() else ""
    parts = dict(re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end -->", written, flags=re.DOTALL))
    parts[name] = text.rstrip("\n") + "\n"
    blocks = [f"<!-- {part} -->\n{parts[part]}<!-- end -->\n" for part in order if part in parts]
    path.write_text("\n".join([opening, *blocks]))
