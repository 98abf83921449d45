"""Regular expressions that cannot hang a run."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from math import prod

from passhat.errors import GraderError

MAX_STEPS = 10**8
"""Steps that a search may take by the bound of `may_hang`; a longer one runs in a process of its
own, which can be stopped."""

TIMEOUT = 2.0

ATOMS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
REPEATS = re.compile(r"[*+]|\{\d*,\}|\{\d*,?\d{3,}\}")
NESTED = re.compile(r"\)\??[*+{]")
BOUNDED = re.compile(r"\{(\d{0,2})(?:,(\d{1,2}))?\}")
OPTIONAL = re.compile(r"(?<![*+?}(])\?")
BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")

SEARCH = (
    "import re, sys; pattern, _, text = sys.stdin.buffer.read().decode().partition('\\0'); "
    "sys.exit(0 if re.search(pattern, text) else 1)"
)


def may_hang(pattern: str, text: str) -> bool:
    """Whether a search might backtrack for so long that it would hold up the run.

    r repeats take at most len(text)^(r + 1) steps, unless they are nested or refer back; what may
    be there up to n times multiplies that by n + 1.

    >>> may_hang("(a+)+b", "a" * 30), may_hang("(?i)sacramento", "x" * 10**6)
    (True, False)
    >>> may_hang("a?" * 30 + "a" * 30, "a" * 30)
    True
    """
    hard, repeats, ways = _shape(pattern)
    return hard or ways * (len(text) + 1) ** (repeats + 1) > MAX_STEPS


def search(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; a search that does not end is an error of the grader.

    >>> search("[0-9]+ degrees", "It is 24 degrees.")
    True
    """
    if not may_hang(pattern, text):
        return re.search(pattern, text) is not None
    return _search_apart(pattern, text)


@functools.lru_cache(maxsize=1024)
def _shape(pattern: str) -> tuple[bool, int, int]:
    """Whether repeats are nested or refer back; how many have no end; in how many ways the rest."""
    bare = ATOMS.sub("x", pattern)
    hard = bool(NESTED.search(bare) or BACK_REFERENCE.search(pattern))
    bounds = (int(most) + 1 for _, most in BOUNDED.findall(bare) if most)
    return hard, len(REPEATS.findall(bare)), prod(bounds) * 2 ** len(OPTIONAL.findall(bare))


def _search_apart(pattern: str, text: str) -> bool:
    """Search in another process, which can be killed: a thread inside `re` cannot."""
    given = f"{pattern}\0{text}".encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCH],
            input=given,
            timeout=TIMEOUT,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"regex {pattern!r} searched {len(text)} characters for more than {TIMEOUT:g} s: "
            "it backtracks too much; avoid repeats inside repeats"
        ) from None
    if done.returncode not in (0, 1):
        raise GraderError(f"regex {pattern!r} broke: {done.stderr.decode(errors='replace')[-200:]}")
    return done.returncode == 0
