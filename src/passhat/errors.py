"""Every exception that passhat raises on purpose, and the exit codes of commands.

PasshatError                 the base of them all
├── InputError               what came from the user cannot be used (exit code 2)
│   ├── ArgumentError        an argument has a value that breaks its rule
│   ├── ReadError            a result file cannot be read
│   │   └── UnknownFile      no reader knows it, unless its columns are named
│   ├── SuiteError           a suite file is not valid
│   ├── ConfigurationError   passhat.toml or [tool.passhat] is not valid
│   ├── CassetteError        a cassette is damaged, foreign, drifted or too short
│   ├── HistoryError         the history store cannot serve the request
│   └── MissingExtra         an optional dependency is not installed
├── StoreError               the store cannot be read or written now: disk full, gone (code 3)
│   └── LostRun              another process has taken this run over
└── RunError                 the run could not be completed (exit code 3)
    ├── RunInterrupted       a signal ended it; a stored run can be resumed
    ├── ServerError          an MCP server failed to start, hung, crashed or sent garbage
    │   └── ServerNeverStarted  it has not started once: no trial that needs it can run
    ├── ModelError           a model API refused, failed or answered nonsense
    │   └── ModelBusy        it may answer if asked again: overloaded, rate-limited, cut off
    ├── MachineError         a sandbox or a program did not start, or memory ran out: try again
    ├── GraderError          a grader broke: neither a pass nor a failure
    └── ForgeError           GitHub or GitLab could not be reached, or refused
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from passhat.messages import plural, short_value


class PasshatError(Exception):
    """Anything passhat raises on purpose."""


class InputError(PasshatError):
    """What came from the user cannot be used."""


class ArgumentError(InputError, ValueError):
    """An argument has a value that breaks its rule.

    >>> raise ArgumentError("k", "must be at least 1", 0)
    Traceback (most recent call last):
    passhat.errors.ArgumentError: k must be at least 1, got 0
    """

    def __init__(
        self, argument: str, rule: str, value: object, *, sentence: str | None = None
    ) -> None:
        self.argument = argument
        self.rule = rule
        self.value = value
        self.sentence = sentence
        super().__init__(self.worded(argument))

    def worded(self, argument: str) -> str:
        """The message with another name for the argument, such as the option of a command.

        Where the value itself is the subject, `sentence` says it better. Of what must be given and
        was not, there is nothing to quote.
        """
        missing = self.value is None and self.rule.startswith("must be given")
        came = "" if missing else f", got {short_value(self.value)}"
        return self.sentence or f"{argument} {self.rule}{came}"


class ReadError(InputError):
    """A result file cannot be read."""


class UnknownFile(ReadError):
    """No reader knows a file, unless its columns are named: in a folder it is left out."""


class SuiteError(InputError):
    """A suite file is not valid."""


class ConfigurationError(InputError):
    """passhat.toml, or `[tool.passhat]` in pyproject.toml, is not valid."""


class CassetteError(InputError):
    """A cassette is damaged, foreign, drifted or too short."""


class HistoryError(InputError):
    """The history store cannot serve the request."""


class MissingExtra(InputError, ImportError):
    """An optional dependency is not installed.

    >>> raise MissingExtra("reading Parquet", "frames")
    Traceback (most recent call last):
    passhat.errors.MissingExtra: reading Parquet needs an extra: pip install 'passhat[frames]'

    `package` is one that no extra brings along:

    >>> raise MissingExtra("a pandas DataFrame", package="pandas")
    Traceback (most recent call last):
    passhat.errors.MissingExtra: a pandas DataFrame needs pandas: pip install pandas
    """

    def __init__(self, purpose: str, extra: str = "", *, package: str = "") -> None:
        extra_way = f"an extra: pip install 'passhat[{extra}]'"
        super().__init__(
            f"{purpose} needs " + (f"{package}: pip install {package}" if package else extra_way)
        )
        self.extra = extra


class StoreError(PasshatError):
    """The store cannot be read or written now: the disk is full, the server is gone.

    Not a RunError: no trial may be counted as errored because its row could not be kept.
    """


class LostRun(StoreError):
    """Another process has taken this run over; nothing more that this one does is stored."""


class RunError(PasshatError):
    """The run could not be completed."""


class RunInterrupted(RunError):
    """A signal ended the run: how far it came, and the command that resumes it, if it is kept.

    >>> raise RunInterrupted(made=3, planned=9, counts={"passed": 3}, signal=2)
    Traceback (most recent call last):
    passhat.errors.RunInterrupted: interrupted: 3 of 9 trials made: 3 passed
    """

    def __init__(
        self,
        *,
        made: int,
        planned: int,
        counts: Mapping[str, int],
        signal: int,
        resume: str | None = None,
    ) -> None:
        ended = ", ".join(f"{count:,} {how}" for how, count in counts.items())
        text = f"interrupted: {made:,} of {plural(planned, 'trial')} made"
        super().__init__(text + (f": {ended}" if ended else ""))
        self.made = made
        self.planned = planned
        self.counts = counts
        self.signal = signal
        self.resume = resume


class ServerError(RunError):
    """An MCP server failed to start, hung, crashed or sent garbage."""


class ServerNeverStarted(ServerError):
    """An MCP server has not started once in a run: no trial that needs it can succeed."""


class ModelError(RunError):
    """A model API refused, failed or answered nonsense."""


class ModelBusy(ModelError):
    """A model API may answer if asked again: overloaded, rate-limited, or cut off.

    `retry_after` is how many seconds it asked to wait, if it said so. `perhaps_paid` says that the
    model may have answered, and that the answer was lost. `retries` is how often it is worth asking
    again where it will most likely say the same, as with a wrong certificate or a used-up quota.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        perhaps_paid: bool = False,
        retries: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.perhaps_paid = perhaps_paid
        self.retries = retries


class MachineError(RunError):
    """What an attempt needs of this machine failed, and may not fail again."""


class GraderError(RunError):
    """A grader broke: neither a pass nor a failure."""


class ForgeError(RunError):
    """GitHub or GitLab could not be reached, or refused; `status` is the HTTP status."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ExitCode(IntEnum):
    """0 done or passed, 1 a demand failed, 2 usage, 3 incomplete, 4 undecided, 70 our own fault."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCOMPLETE = 3
    UNDECIDED = 4
    UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h
    HUNG_UP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143
