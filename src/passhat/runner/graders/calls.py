"""Matchers of tool calls: which tools were called, how often, in what order, with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from passhat.records import Expectation, Observation
from passhat.runner.graders.matches import Match, same, shown


def _called(observation: Observation, expectation: Expectation) -> Match:
    options = expectation.options
    count = sum(call.name == expectation.value for call in observation.tool_calls)
    times, low, high = options.get("times"), options.get("min"), options.get("max")
    if times is not None:
        low = high = times
    low = 1 if low is None and high is None else low or 0
    held = count >= low and (high is None or count <= high)
    wanted = _times(low) if low == high else f"at least {_times(low)}"
    if high is not None and low != high:
        wanted = f"{low} to {high} times"
    return Match(float(held), f"expected {expectation.value} {wanted}, got {_calls(count)} of it")


def _not_called(observation: Observation, expectation: Expectation) -> Match:
    called = [call.name for call in observation.tool_calls if call.name in expectation.value]
    return Match(float(not called), f"expected no call of {shown(called or expectation.value)}")


def _called_in_order(observation: Observation, expectation: Expectation) -> Match:
    names = [call.name for call in observation.tool_calls]
    # An iterator that is searched only goes forward: each search begins where the last ended.
    ahead = iter(names)
    held = all(wanted in ahead for wanted in expectation.value)
    return Match(
        float(held), f"expected calls in the order {shown(expectation.value)}, got {shown(names)}"
    )


def _called_with(observation: Observation, expectation: Expectation) -> Match:
    wanted, exact = expectation.options["arguments"], bool(expectation.options.get("exact"))
    calls = [call.arguments for call in observation.tool_calls if call.name == expectation.value]
    held = any(_has_arguments(arguments, wanted, exact) for arguments in calls)
    return Match(
        float(held), f"expected {expectation.value} with {shown(wanted)}, got {shown(calls)}"
    )


def _has_arguments(arguments: Any, wanted: Mapping[str, Any], exact: bool) -> bool:
    if not isinstance(arguments, Mapping):
        return False
    if exact and arguments.keys() != wanted.keys():
        return False
    return all(key in arguments and same(arguments[key], wanted[key]) for key in wanted)


CALL_MATCHERS: dict[str, Callable[[Observation, Expectation], Match]] = {
    "called": _called,
    "not_called": _not_called,
    "called_in_order": _called_in_order,
    "called_with": _called_with,
}
"""Matchers that look at all tool calls, whatever the target."""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"
