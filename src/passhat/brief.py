"""Results in one short line, as an interactive session shows them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

LONGEST = 200
LONGEST_TEXT = 40
CUT = "…"


def brief(head: str, *told: str, see: str = "") -> str:
    """What a result is, what it says, and where to look on; on one line of bounded length.

    >>> brief("Tally 'o3'", "20 tasks", "200 trials", see=".tasks, .passed")
    "<Tally 'o3': 20 tasks, 200 trials; see .tasks, .passed>"
    """
    end = f"; see {see}>" if see else ">"
    body = f"<{head}: {', '.join(told)}" if told else f"<{head}"
    room = LONGEST - len(end)
    return (body if len(body) <= room else body[: room - 1] + CUT) + end


def brief_fields(value: Any) -> str:
    """A dataclass by the fields that differ from their defaults: numbers short, tables counted.

    It stands in a class as `__repr__ = brief_fields`.
    """
    name = type(value).__name__
    parts = list(_filled(value))
    text = f"{name}({', '.join(parts)})"
    while len(text) > LONGEST:
        parts.pop()
        text = f"{name}({', '.join(parts)}, ...)"
    return text


def few(texts: Iterable[str], most: int = 3) -> list[str]:
    """The first of some texts, and how many more there are.

    >>> few("abcde")
    ['a', 'b', 'c', '2 more']
    """
    told = list(texts)
    more = len(told) - most
    return [*told[:most], f"{more:,} more"] if more > 0 else told


def quoted(text: str) -> str:
    """A name from data between quotes, of bounded length and with its control characters escaped.

    >>> quoted("o3"), quoted("a" * 50)[-4:]
    ("'o3'", "aa…'")
    """
    shown = repr(text)
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 2] + CUT + shown[0]


def rounded(estimate: Any) -> str:
    """A number with its interval; why there is none stays with it.

    >>> rounded(0.123456)
    '0.123'
    """
    if not hasattr(estimate, "value"):
        return "unavailable" if hasattr(estimate, "reason") else f"{estimate:.3g}"
    if estimate.value is None:
        return "unavailable"
    bounds = getattr(estimate, "interval", None)
    between = "" if bounds is None else f" [{bounds.low:.3g}, {bounds.high:.3g}]"
    return f"{estimate.value:.3g}{between}"


def _filled(value: Any) -> Iterator[str]:
    for field in fields(value):
        if not field.repr:
            continue
        content = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if content is None or (not _is_array(content) and content == usual):
            continue
        yield f"{field.name}={_shown(content)}"


def _shown(content: Any) -> str:
    if isinstance(content, str):
        return quoted(content)
    if isinstance(content, enum.Enum):
        return content.name
    if isinstance(content, bool | int):
        return str(content)
    if isinstance(content, float) or hasattr(content, "interval") or hasattr(content, "reason"):
        return rounded(content)
    if hasattr(content, "low") and hasattr(content, "high"):
        return f"[{content.low:.3g}, {content.high:.3g}]"
    if _is_plain_pair(content):
        return f"({', '.join(map(_shown, content))})"
    if isinstance(content, Collection) or _is_array(content):
        return f"<{len(content):,}>"
    return f"{type(content).__name__}(...)" if is_dataclass(content) else quoted(str(content))


def _is_plain_pair(content: Any) -> bool:
    few = isinstance(content, tuple) and 0 < len(content) <= 4
    return few and all(isinstance(one, int | float | str) for one in content)


def _is_array(content: Any) -> bool:
    return hasattr(content, "dtype")
