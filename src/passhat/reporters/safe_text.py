"""Text from data, made safe to show: no control of the terminal, no reordering, bounded width."""

from __future__ import annotations

import re

from passhat.messages import display_width as display_width
from passhat.messages import safe_text as safe_text
from passhat.messages import shorten as shorten
from passhat.messages import shorten_apart as shorten_apart

LONGEST_NAME = 60
"""Columns of a name from data in a sentence or a table."""

# What CI systems take for commands in a log: GitHub Actions lines that begin with :: or ##[, Azure
# Pipelines ##vso[, TeamCity ##teamcity[.
_COMMAND = re.compile(r"^(\s*)::(?=\w)", re.MULTILINE)
_HASH_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)


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


def short(name: str) -> str:
    """A name from data, safe and of bounded width; its end is as telling as its beginning."""
    return shorten_apart([name], LONGEST_NAME)[0]


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
