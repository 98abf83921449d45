"""The sentence of a verdict, and numbers that never round across their threshold."""

from __future__ import annotations

from passhat.analysis.gates.demands import Gate, NumberDemand
from passhat.messages import plural
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate

_MOST_DIGITS = 4


def shown(value: float, threshold: float | None = None, *, share: bool) -> str:
    """A number in words, on the same side of the threshold as it is.

    >>> shown(0.7996, 0.8, share=True), shown(0.91, 0.8, share=True), shown(12.345, share=False)
    ('79.96 %', '91 %', '12.3')
    """
    if share:
        return f"{_same_side(100 * value, None if threshold is None else 100 * threshold)} %"
    return _same_side(value, threshold)


def percentage(share: float) -> str:
    """A confidence or an error rate: 95 %, 2.5 %."""
    return f"{100 * share:.4g} %"


def opening(gate: Gate, system: str, word: str) -> str:
    """`agent: pass^3 >= 0.8: PASS`."""
    require = gate.require.removeprefix(f"{system}: ")  # a demand on one system names it already
    demand = require if gate.name is None else f"{gate.name} ({require})"
    return f"{system}: {demand}: {word}"


def bound_sentence(
    gate: Gate, system: str, word: str, estimate: Estimate, *, more_runs: int | None
) -> str:
    """What a bound on a fixed number of runs says."""
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    target, threshold = demand.target, demand.threshold
    value = shown(estimate.value, threshold, share=target.is_share)
    seen = f"{target} is {value}" + (f" in {plural(estimate.runs, 'run')}" if estimate.runs else "")
    start = f"{opening(gate, system, word)}. {seen}"
    low, high = _ends(estimate, threshold, share=target.is_share)
    if word == "UNDECIDED":
        advice = _further(estimate, threshold, more_runs)
        return f"{start} and may lie between {low} and {high}: {advice}."
    at_least = (word == "PASS") == demand.upward
    error = gate.alpha if word == "PASS" else gate.beta
    side = f"at least {low}" if at_least else f"at most {high}"
    return f"{start}, {side} at {percentage(1 - error)} confidence."


def point_sentence(gate: Gate, system: str, word: str, value: float, *, why: str) -> str:
    """What a bare point says: it has no error rate."""
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    seen = f"{demand.target} is {shown(value, demand.threshold, share=demand.target.is_share)}"
    return f"{opening(gate, system, word)}. {seen}; {why}, so this verdict has no error rate."


def settled_sentence(
    gate: Gate,
    system: str,
    word: str,
    *,
    runs: int,
    most: int,
    fixed_runs: int | None,
    seen: str,
    finished: bool,
    draws: int | None = None,
) -> str:
    """What a gate that watched a run says: settled, at its limit, or still open.

    `draws` is given where a draw takes several runs: then draws are what is limited, and a draw
    that ends at its first failure leaves runs of the limit `most` unused.
    """
    start = f"{opening(gate, system, word)}"
    fixed = f" (a fixed design takes {fixed_runs:,})" if fixed_runs else ""
    if word == "PASS":
        tail = f"a PASS is wrong with a chance of at most {percentage(gate.alpha)}"
    elif word == "FAIL":
        tail = f"a FAIL is wrong with a chance of at most {percentage(gate.beta)}"
    elif finished:
        return f"{start}. {_limit(runs, most, draws)} did not settle it; {seen}."
    else:
        left = f"up to {plural(max(most - runs, 0), 'more run')} may settle it"
        return f"{start}. {plural(runs, 'run')} so far; {seen}; {left}."
    return f"{start} after {plural(runs, 'run')}{fixed}: {seen}; {tail}."


def _limit(runs: int, most: int, draws: int | None) -> str:
    if draws is None and runs >= most:
        return f"{plural(runs, 'run')}, the most allowed,"
    used = f"{plural(runs, 'run')} of at most {most:,}"
    return used if draws is None else f"{plural(draws, 'draw')}, the most allowed ({used}),"


def _ends(estimate: Estimate, threshold: float, *, share: bool) -> tuple[str, str]:
    bounds = estimate.interval
    assert bounds is not None, "a bound has an interval"
    return shown(bounds.low, threshold, share=share), shown(bounds.high, threshold, share=share)


def _further(estimate: Estimate, threshold: float, more_runs: int | None) -> str:
    if more_runs is None and estimate.scope == TASKS_LIKE_THESE:
        return "more tasks would settle it, not more runs of these"
    if more_runs is None and estimate.value == threshold:
        return "at the threshold itself no number of runs settles it"
    if more_runs is None:
        return "how many further runs would settle it cannot be said"
    return f"about {plural(more_runs, 'further run')} would settle it 4 times in 5 at this rate"


def _same_side(value: float, threshold: float | None) -> str:
    digits = 1 if abs(value) < 1000 else 0
    while digits < _MOST_DIGITS and threshold is not None and value != threshold:
        rounded = round(value, digits)
        if (rounded < threshold) == (value < threshold) and rounded != threshold:
            break
        digits += 1
    text = f"{value:,.{digits}f}"
    if float(text.replace(",", "")) == 0 != value:
        return f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text else text
