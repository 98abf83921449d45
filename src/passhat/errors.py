"""Every exception that passhat raises on purpose, and how messages count.

PasshatError                 anything a caller may want to catch at once
├── InputError               what came from the user cannot be used (exit code 2)
│   ├── ArgumentError        a function was handed a value outside its rule
│   ├── ReadError            a result file cannot be read
│   │   └── UnknownFile      no reader knows it, unless its columns are named
│   ├── SuiteError           a suite file is not valid
│   ├── CassetteError        a cassette is torn, foreign, drifted or too short
│   ├── HistoryError         the history store cannot serve the request
│   └── MissingExtra         an optional dependency is not installed
├── StoreError               the store cannot be read or written now: disk full, gone (code 3)
│   └── LostRun              another process has taken this run over
└── RunError                 the run could not be completed (exit code 3)
    ├── ServerError          an MCP server failed to start, hung, crashed or spoke garbage
    ├── ModelError           a model API refused, failed or answered nonsense
    │   └── ModelBusy        it may answer if asked again: overloaded, rate-limited, cut off
    └── GraderError          a grader broke: neither a pass nor a failure
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Named = TypeVar("Named")

LONGEST_VALUE = 160


class PasshatError(Exception):
    """Anything passhat raises on purpose."""


class InputError(PasshatError):
    """What came from the user cannot be used."""


class ArgumentError(InputError, ValueError):
    """A function was handed a value outside its rule.

    >>> raise ArgumentError("k", "must be at least 1", 0)
    Traceback (most recent call last):
    passhat.errors.ArgumentError: k must be at least 1, got 0
    """

    def __init__(self, argument: str, rule: str, value: object) -> None:
        super().__init__(f"{argument} {rule}, got {told_value(value)}")
        self.argument = argument
        self.rule = rule
        self.value = value


class ReadError(InputError):
    """A result file cannot be read."""


class UnknownFile(ReadError):
    """No reader knows a file, unless its columns are named: in a folder it is left out."""


class SuiteError(InputError):
    """A suite file is not valid."""


class CassetteError(InputError):
    """A cassette is torn, foreign, drifted or too short."""


class HistoryError(InputError):
    """The history store cannot serve the request."""


class MissingExtra(InputError, ImportError):
    """An optional dependency is not installed.

    >>> raise MissingExtra("reading Parquet", "frames")
    Traceback (most recent call last):
    passhat.errors.MissingExtra: reading Parquet needs an extra: pip install 'passhat[frames]'
    """

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an extra: pip install 'passhat[{extra}]'")
        self.extra = extra


class StoreError(PasshatError):
    """The store cannot be read or written now: the disk is full, the server is gone.

    Not a RunError: no trial may be counted as errored because its row could not be kept.
    """


class LostRun(StoreError):
    """Another process has taken this run over; what this one still does is not kept."""


class RunError(PasshatError):
    """The run could not be completed."""


class ServerError(RunError):
    """An MCP server failed to start, hung, crashed or spoke garbage."""


class ModelError(RunError):
    """A model API refused, failed or answered nonsense."""


class ModelBusy(ModelError):
    """A model API may answer if asked again: overloaded, rate-limited, or cut off.

    `retry_after` is how many seconds it asked to be left alone, where it said so.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class GraderError(RunError):
    """A grader broke: neither a pass nor a failure."""


def told_value(value: object) -> str:
    """What was handed in, for a message: short, on one line, and a list of names as names.

    >>> told_value(0.5), told_value(("a", "b")), told_value([])
    ('0.5', "'a', 'b'", 'none')
    """
    try:
        shown = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of too many digits"
    if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
        shown = listed(map(repr, value)) or "none"
    if "\n" in shown or " at 0x" in shown:  # a table over many lines, or only an address
        kind = type(value).__name__
        return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"
    return shown if len(shown) <= LONGEST_VALUE else f"{shown[: LONGEST_VALUE - 1]}…"


def plural(count: int, noun: str, several: str | None = None) -> str:
    """A count with its noun, for messages of every layer.

    >>> plural(1, "task"), plural(2400, "run"), plural(2, "entry", "entries")
    ('1 task', '2,400 runs', '2 entries')
    >>> plural(1, "task has", "tasks have")
    '1 task has'
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def listed(names: Iterable[Named], most: int = 12, *, show: Callable[[Named], str] = str) -> str:
    """The first few of many names, for sentences of every layer; only those are made to show.

    >>> listed(["a", "b", "c"], most=2), listed([1, 2, 3], most=1, show="#{}".format)
    ('a, b and 1 more', '#1 and 2 more')
    """
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(show, every[:most])) + more
