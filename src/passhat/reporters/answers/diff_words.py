"""Calls, and pairs of calls that differ, in a few words."""

from __future__ import annotations

from passhat.analysis.explaining.normal_calls import NormalCall
from passhat.analysis.explaining.side_by_side import AlignedCalls, SideBySide
from passhat.messages import listed, plural
from passhat.records.task_names import run_number
from passhat.reporters.safe_text import shorten
from passhat.reporters.wording import short

OUTCOMES = ("failed", "passed", "errored")
"""Outcomes in words, by their code."""

LONGEST_CALL = 60
"""Columns of a call on one line."""


def verdict(found: SideBySide) -> str:
    """Where two runs first differ, in one sentence."""
    left, right = (
        f"{run_number(run.trial, found.first_trial)} ({OUTCOMES[run.outcome]})"
        for run in (found.left, found.right)
    )
    names = f"{left} and {right} of task {short(found.left.task)}"
    if found.parting is None:
        calls = len(found.pairs)
        made = f"made the same {plural(calls, 'call')}" if calls else "made no calls"
        return f"{names} {made}: read what they said."
    differs = parting_words(found.pairs[found.parting])
    return f"{names} first differ at row {found.parting + 1}: {differs}."


def parting_words(pair: AlignedCalls) -> str:
    """What differs in a pair of calls."""
    if pair.left is not None and pair.right is not None:
        if pair.relation == "other result":
            return f"{pair.left.tool} worked in one and failed in the other"
        names = listed([name or "its argument" for name in pair.arguments], 4)
        return f"{pair.left.tool} with another {names}"
    only, side = (pair.left, "first") if pair.left is not None else (pair.right, "second")
    return f"only the {side} calls {only.tool if only else ''}"


def call_words(call: NormalCall | None) -> str:
    """A call on one short line.

    >>> call_words(None)
    ''
    """
    if call is None:
        return ""
    given = ", ".join(
        f"{name}={value}" if name else value for name, value in call.arguments.items()
    )
    failed = " !error" if call.error is not None else ""
    return shorten(f"{call.tool}({given})", LONGEST_CALL) + failed
