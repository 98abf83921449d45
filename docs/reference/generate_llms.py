"""`llms.txt`: every page with its first sentence, for readers that are programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[1]
INDEX = DOCS / "llms.txt"
SECTIONS = {
    "start": "Start",
    "how-to": "How to",
    "migrate": "Coming from another tool",
    "reference": "Reference",
    "explanation": "Explanation",
}
OPENING = """# passhat

> Does an AI agent get it right every time? passhat runs an agent many times, or reads the logs of
> the tool that did; it states pass@k and pass^k (reliability@k) with intervals, says why trials
> fail, and gates a pull request with a known error rate.

Every page is Markdown. Install with `pip install passhat` (reference/extras.md has the extras).
`passhat --help` lists the commands; `--json` on any of them prints data whose schema `passhat
schema` shows. `passhat mcp` serves results as tools.
"""


def index_text() -> str:
    """Pages by section, in the order of the site."""
    parts = [OPENING, f"## Begin\n\n{_entry(DOCS / 'quick-start.md')}"]
    for folder, title in SECTIONS.items():
        entries = "".join(_entry(page) for page in sorted((DOCS / folder).glob("*.md")))
        parts.append(f"## {title}\n\n{entries}")
    return "\n".join(parts)


def generated() -> Iterator[tuple[Path, str]]:
    """The index."""
    yield INDEX, index_text()


def _entry(page: Path) -> str:
    text = re.sub(r"<!--.*?-->|^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    title, _, rest = text.strip().partition("\n")
    paragraphs = (" ".join(part.split()) for part in rest.split("\n\n"))
    first = next((part for part in paragraphs if re.match(r"[\w`].*[a-z] [a-z]", part)), "")
    sentence = re.match(r".*?[.?](?= |$)", first)
    said = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", sentence[0] if sentence else f"{first[:-1]}.")
    return f"- [{title.lstrip('# ')}]({page.relative_to(DOCS)}): {said}\n"
