"""Every exception that passhat raises on purpose.

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

from passhat.messages import short_value


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
        super().__init__(f"{argument} {rule}, got {short_value(value)}")
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
