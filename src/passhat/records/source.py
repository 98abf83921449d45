"""Where trials came from, and how that was read."""

from __future__ import annotations

from collections.abc import Iterable

from passhat.dataclass import dataclass

Facts = tuple[tuple[str, str], ...]
"""Pairs of a part of a trial (task, run, outcome, ...) and what in the file it was read from."""

LEFT_OUT = "left out"
"""The fact that names what a reader saw and did not use."""

STOPPED_BY_GATES = "its gates decided when it ended; intervals assume a fixed number of runs"
"""The note on trials of which there are as many as their own results asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where trials came from: a name to show, the format that read it, and the bytes' hash.

    `read_as` says how it was read: first the format with its version, then what became the system,
    the task, the run, the outcome and so on, last what was left out.
    """

    name: str
    format: str
    sha256: str
    notes: tuple[str, ...] = ()
    read_as: Facts = ()


def stopped_by_gates(notes: Iterable[str]) -> bool:
    """Whether notes on trials, or on a report of them, say that gates decided when they ended."""
    return any(note.endswith(STOPPED_BY_GATES) for note in notes)


def how_read(source: Source) -> str:
    """One line on how a source was read; empty if trials did not come from a file.

    >>> facts = ("format", "JUnit XML"), ("task", "test case"), ("left out", "2 skipped tests")
    >>> how_read(Source(name="a.xml", format="junit", sha256="", read_as=facts))
    'read as: JUnit XML, task = test case; left out: 2 skipped tests'
    >>> facts = ("format", "CSV table"), ("task", 'column "task"'), ("cost", 'column "cost"')
    >>> how_read(Source(name="a.csv", format="csv", sha256="", read_as=facts))
    'read as: CSV table, with task and cost from the columns of these names'
    """
    facts = dict(source.read_as)
    if not facts:
        return ""
    left_out = facts.pop(LEFT_OUT, "")
    parts = [facts.pop("format", source.format)]
    named = [name for name, value in facts.items() if value == f'column "{name}"']
    if len(named) == 1:
        named = []
    parts += [f"{name} = {value}" for name, value in facts.items() if name not in named]
    if named:
        parts.append(
            f"with {', '.join(named[:-1])} and {named[-1]} from the columns of these names"
        )
    return f"read as: {', '.join(parts)}" + (f"; left out: {left_out}" if left_out else "")
