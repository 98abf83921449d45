"""Names out of files, as messages show them: short, on one line, a few of many."""

from __future__ import annotations

from collections.abc import Iterable

from passhat.messages import CUT, listed

LONGEST_NAME = 80
LONGEST_PATH = 200


def short(name: object, longest: int = LONGEST_NAME) -> str:
    r"""A name in a few words, whatever stands in it.

    >>> short("refund"), short("a\nb"), len(short("x" * 10_000))
    ('refund', 'a\\nb', 80)
    """
    text = str(name)
    if not text.isprintable():
        text = repr(text[: longest + 1])[1:-1]
    return text if len(text) <= longest else text[: longest - 1] + CUT


def short_path(path: object) -> str:
    """A path, of which the end tells more than of other names."""
    return short(path, LONGEST_PATH)


def few(names: Iterable[object], most: int = 12) -> str:
    """The first of many names, each of them short.

    >>> few(["a", "b" * 200, "c"], most=2)[-20:]
    'bbbbbbbb… and 1 more'
    """
    return listed(names, most, show=short)


def few_paths(paths: Iterable[object], most: int = 12) -> str:
    """The first of many paths."""
    return listed(paths, most, show=short_path)
