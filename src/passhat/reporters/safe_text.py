"""Text from data, made safe to show: no control of the terminal, no reordering, bounded width."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from zlib import crc32

from passhat.messages import JOINERS
from passhat.messages import safe_text as safe_text

ELLIPSIS = "…"
LONGEST_NAME = 60
"""Columns of a name from data in a sentence or a table."""

# What CI systems take for commands in a log: GitHub Actions lines that begin with :: or ##[, Azure
# Pipelines ##vso[, TeamCity ##teamcity[.
_COMMAND = re.compile(r"^(\s*)::(?=\w)", re.MULTILINE)
_HASH_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)

# Latin letters and the marks that passhat draws with are one column wide: no table is needed.
_FIRST_COMBINING = 0x300
_OWN_MARKS = frozenset("●○━─█▒░…")
# Digits of a mark on names that are cut alike: four nearly always suffice.
_MARKS = (4, 6, 8)


def safe_lines(text: str) -> str:
    r"""`safe_text` for a message of several lines.

    >>> safe_lines("two\nlines\x00")
    'two\nlines\\x00'
    """
    return without_commands("\n".join(safe_text(line) for line in text.split("\n")))


def without_commands(text: str) -> str:
    r"""Lines of which none is a command to the CI system that reads them from a log.

    >>> print(without_commands("  ::stop-commands::x\ntests/a.py::b ##vso[task.complete]"))
      \::stop-commands::x
    tests/a.py::b #\#vso[task.complete]
    """
    if "::" not in text and "##" not in text:
        return text
    return _HASH_COMMAND.sub(r"#\\#", _COMMAND.sub(r"\1\\::", text))


def display_width(text: str) -> int:
    """The columns a terminal gives to safe text.

    >>> display_width("naïve"), display_width("東京")
    (5, 4)
    """
    if text.isascii() or all(ord(c) < _FIRST_COMBINING or c in _OWN_MARKS for c in text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten(text: str, width: int) -> str:
    """Safe text of at most `width` columns, with an ellipsis where it was cut.

    >>> shorten("book-a-flight-with-two-stops", 12)
    'book-a-flig…'
    """
    shown = safe_text(text)
    if display_width(shown) <= width:
        return shown
    return _fitting(shown, width - 1).rstrip(JOINERS) + ELLIPSIS


def short(name: str) -> str:
    """A name from data, safe and of bounded width; its end is as telling as its beginning."""
    return shorten_apart([name], LONGEST_NAME)[0]


def shorten_apart(names: Sequence[str], width: int) -> list[str]:
    """Names of at most `width` columns, cut near the middle where that leaves them distinct.

    Names that no one cut tells apart are marked, each alike wherever it has to be.

    >>> shorten_apart(["claude-sonnet-4", "claude-sonnet-4-5", "o3"], 13)
    ['claude…nnet-4', 'claude…et-4-5', 'o3']
    >>> shorten_apart(["a" * 20, "a" * 21], 12)
    ['aaaaaa…#266f', 'aaaaaa…#944d']
    """
    shown = [safe_text(name) for name in names]
    if all(display_width(name) <= width for name in shown):
        return shown
    heads = sorted(range(width), key=lambda head: abs(2 * head + 1 - width))
    cut = ([_cut_inside(name, head, width) for name in shown] for head in heads)
    best, most, wanted = [], 0, len(set(shown))
    for found in cut:
        if (distinct := len(set(found))) > most:
            best, most = found, distinct
        if most == wanted:
            return best
    return _marked(shown, best, width)


def pad(text: str, width: int) -> str:
    """`text` cut and filled to exactly `width` columns.

    >>> pad("ab", 4) + "|"
    'ab  |'
    """
    shown = shorten(text, width)
    return shown + " " * (width - display_width(shown))


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """`text` made safe, in lines of at most `width` columns, the later ones indented.

    >>> wrap("one two three", 9, indent="  ")
    ['one two', '  three']
    """
    lines: list[str] = []
    line = ""
    # A number and its percent sign stay together.
    for word in safe_text(text).replace(" %", "\0%").split():
        start = indent if lines else ""
        longer = f"{line} {word}" if line else start + word
        if line and display_width(longer) > width:
            lines.append(line)
            longer = indent + word
        line = longer
    return [part.replace("\0", " ") for part in (*lines, line)]


def _marked(shown: Sequence[str], cut: Sequence[str], width: int) -> list[str]:
    """What was cut alike, each with a mark that its whole name alone decides, where that fits."""
    alike = Counter(short for _, short in set(zip(shown, cut, strict=True)))
    texts = list(cut)
    for mark in _MARKS:
        if mark + 2 > width:
            break
        texts = [
            _with_mark(name, mark, width) if alike[short] > 1 else short
            for name, short in zip(shown, cut, strict=True)
        ]
        if len(set(texts)) == len(set(shown)):
            break
    return texts


def _with_mark(shown: str, digits: int, width: int) -> str:
    mark = f"#{crc32(shown.encode()):08x}"[: digits + 1]
    return shorten(shown, width - len(mark)) + mark


def _cut_inside(shown: str, head: int, width: int) -> str:
    """Safe text without its middle: `head` columns, an ellipsis, and as much of the end as fits."""
    if display_width(shown) <= width:
        return shown
    start = _fitting(shown, head)
    end = _fitting(shown[::-1], width - 1 - display_width(start))[::-1]
    return start.rstrip(JOINERS) + ELLIPSIS + end.lstrip(JOINERS)


def _fitting(shown: str, width: int) -> str:
    used = 0
    for i, character in enumerate(shown):
        used += display_width(character)
        if used > width:
            return shown[:i]
    return shown
