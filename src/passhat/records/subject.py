"""Checks of the trials that functions get, with errors that name the way out."""

from __future__ import annotations

from os import PathLike
from typing import Any

from passhat.errors import ArgumentError
from passhat.records.frames import is_frame, refuse_frame
from passhat.records.tally import Tally
from passhat.records.trials import Trials


def check_subject(argument: str, value: object, *, counts: bool = True) -> None:
    """Refuse anything but Trials (or, with `counts`, a Tally), naming the way for frames and files.

    >>> check_subject("first", "results.csv")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: first must be Trials; read_trials reads a file, got 'results.csv'
    """
    if isinstance(value, Trials | Tally if counts else Trials):
        return
    refuse_frame(argument, "must be Trials", value)
    raise ArgumentError(argument, "must be Trials; read_trials reads a file", value)


def refuse_file(argument: str, value: object, *, instead: str) -> None:
    """Refuse a path where trials are wanted, naming the function that reads files.

    >>> refuse_file("trials", "results.csv", instead="passhat.report_results")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: trials must be Trials; for a file call
    passhat.report_results('results.csv'), got 'results.csv'
    """
    if isinstance(value, str | PathLike):
        rule = f"must be Trials; for a file call {instead}({str(value)!r})"
        raise ArgumentError(argument, rule, value)


def framed_trials(value: Any) -> Any:
    """The trials of a data frame, its columns found as in files; anything else as it is."""
    return Trials.from_frame(value) if is_frame(value) else value


def one_tally(argument: str, value: Trials | Tally, *, purpose: str = "") -> Tally:
    """The counts of the only system in `value`; `purpose` says in the refusal what it is for.

    >>> table = Trials.from_columns(system=["x", "y"], task=["a", "a"], passed=[True, False])
    >>> one_tally("trials", table, purpose="to profile")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: trials must hold exactly one system to profile, got ('x', 'y')
    """
    check_subject(argument, value)
    if isinstance(value, Tally):
        return value
    if len(value.systems) != 1:
        rule = f"must hold exactly one system {purpose}".rstrip()
        raise ArgumentError(argument, rule, value.systems)
    return value.tally()
