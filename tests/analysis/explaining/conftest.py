"""Runs made by hand: what is called, what came back, how it ended."""

import json

import pytest

from passhat.analysis.explaining.runs import ExplainedRun, normalized_calls
from passhat.records import Outcome
from passhat.records.transcript import Call, Transcript, Turn


def transcript(*calls, stop_reason="", checks=(), prompt="Help me", **ending):
    """Calls as "tool" or ("tool", arguments) or ("tool", arguments, answer)."""
    turns = [Turn(role="user", text=prompt)]
    for i, call in enumerate(calls):
        tool, arguments, answer = ((call,) if isinstance(call, str) else call) + ({}, "ok")[
            (0 if isinstance(call, str) else len(call) - 1) :
        ]
        made = Call(name=tool, arguments=json.dumps(arguments), id=str(i))
        turns += [
            Turn(role="assistant", calls=(made,)),
            Turn(role="tool", text=answer, call_id=str(i)),
        ]
    return Transcript(
        messages=tuple(turns), stop_reason=stop_reason, checks=tuple(checks), **ending
    )


def run(outcome, *calls, task="a", trial=0, system="bot", costs=None, error="", **ending):
    """A run: "P", "F" or "E", and its calls."""
    said = transcript(*calls, **ending)
    ways = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}
    return ExplainedRun(
        system=system,
        task=task,
        trial=trial,
        outcome=ways[outcome],
        error=error,
        calls=normalized_calls(said),
        transcript=said,
        costs=costs or {},
    )


@pytest.fixture
def make_run():
    return run


@pytest.fixture
def make_transcript():
    return transcript
