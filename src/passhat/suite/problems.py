"""What is wrong with a suite file: where, what, and the way out."""

from __future__ import annotations

from collections.abc import Iterable

from passhat.dataclass import dataclass
from passhat.messages import closest

MAX_SHOWN = 60
YAML_WORDS = {"None": "null", "True": "true", "False": "false"}

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault of a suite file.

    >>> problem = Problem(line=12, column=5, path=("agents", 0, "runz"), message="no such key")
    >>> problem.at("suite.yml")
    'suite.yml:12:5: agents[0].runz: no such key'
    """

    line: int
    column: int
    path: Path
    message: str

    def at(self, file: str) -> str:
        """The problem as one line that editors can jump to."""
        where = f"{dotted(self.path)}: " if self.path else ""
        return f"{file}:{self.line}:{self.column}: {where}{self.message}"


def dotted(path: Path) -> str:
    """A path as people write it.

    >>> dotted(("agents", 0, "expect", 1, "target"))
    'agents[0].expect[1].target'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """A value short enough for a message, on one line."""
    text = repr(value)
    text = YAML_WORDS.get(text, text)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The nearest known word as a question, or the list of what exists.

    >>> did_you_mean("max_turn", ["max_turns", "runs"])
    'Did you mean "max_turns"?'
    >>> did_you_mean("colour", ["b", "a"])
    'Known: a, b'
    """
    names = sorted(set(known))
    near = closest(str(word), names)
    if near is not None:
        return f'Did you mean "{near}"?'
    return f"Known: {', '.join(names)}" if names else "There is none"
