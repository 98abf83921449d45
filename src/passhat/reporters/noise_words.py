"""What makes an interval for tasks like these wide, in words and as data."""

from __future__ import annotations

from typing import TypedDict

from passhat.analysis.reports.parts import LITTLE_LUCK, MUCH_LUCK, VarianceSplit
from passhat.messages import capitalised, plural
from passhat.reporters.data import IntervalObject, UnavailableObject, interval_object, shaped
from passhat.reporters.numbers import decimals, interval_of, percent, percent_range
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.variance import NoiseSources, Purchase, Unit


class NoiseObject(TypedDict):
    """How much of the variance of the mean over tasks like these comes from runs, and from tasks.

    `twice_the_runs` and `twice_the_tasks` are the width then, as a share of the width now.
    """

    from_runs: float
    from_tasks: float
    from_runs_interval: IntervalObject | None
    unit: Unit
    twice_the_runs: float
    twice_the_tasks: float
    break_even: float | None
    buy: Purchase
    sentence: str


def noise_object(
    noise: NoiseSources | Unavailable, *, systems: int = 1
) -> NoiseObject | UnavailableObject:
    """The two sources as plain data."""
    if isinstance(noise, Unavailable):
        return {"value": None, "reason": noise.reason}
    bounds, sentence = interval_object(noise.interval), noise_sentence(noise, systems=systems)
    return shaped(noise, NoiseObject, from_runs_interval=bounds, sentence=sentence)


def noise_sentence(noise: NoiseSources, *, systems: int = 1) -> str:
    """How much of the width runs make and how much tasks, and which of the two to buy."""
    if noise.break_even is None:
        return (
            f"No task varied between its runs: as far as that shows, all of the width for tasks "
            f"like these comes from {noise.unit}, and only new {noise.unit} would reduce it."
        )
    share = percent(noise.from_runs)
    range_ = share if noise.interval is None else percent_range(noise.interval)
    known = "" if range_ == share else f" ({range_})"
    return (
        f"Of the variance behind the interval for tasks like these, {share}"
        f"{known} comes from runs and {percent(noise.from_tasks)} from {noise.unit}: twice the "
        f"runs would make it about {_shorter(noise.twice_the_runs)} shorter, twice the "
        f"{noise.unit} {_shorter(noise.twice_the_tasks)}. {_advice(noise, systems)}"
    )


def _shorter(factor: float) -> str:
    return percent(1 - factor)


def _advice(noise: NoiseSources, systems: int) -> str:
    one = "family" if noise.unit == "families" else "task"
    price = plural(
        round(noise.break_even or 0.0),
        "run" if systems == 1 else "run of each system",
        None if systems == 1 else "runs of each system",
    )
    if noise.buy == "runs" and round(noise.break_even or 0.0) == 0:
        return f"Buy runs: these tasks show no difference that new {noise.unit} would average out."
    if noise.buy == "runs":
        return f"Buy runs, unless making a new {one} costs less than {price}."
    if noise.buy == noise.unit:
        return f"Buy {noise.unit}, unless making a new {one} costs more than {price}."
    if round(noise.break_even or 0.0) == 0:
        return "Too little was run to say which to buy."
    return (
        f"Too little was run to say which to buy; going by these shares, a new {one} is the "
        f"better buy up to the price of {price}."
    )


_ALL_ALIKE = "every task ended all its runs the same way"


def luck(variance: VarianceSplit | Unavailable) -> str:
    """What the variance split means, with how far that is known."""
    if isinstance(variance, Unavailable):
        return f"{capitalised(variance.reason)}."
    bounds = interval_of(variance.luck)
    if bounds is None:
        return f"No luck was seen: {_ALL_ALIKE}. How much there is stays open (0 to 100 %)."
    if variance.leaves_luck_open:
        between = f"between {percent(bounds.low)} and {percent(bounds.high)}"
        return f"Too few tasks or runs to tell luck from skill: {between} of the variation is luck."
    share = variance.luck_share
    meaning = f"{_luck_meaning(bounds)} ({percent_range(bounds)})"
    return f"{percent(share)} of the variation between runs is luck: {meaning}."


def luck_and_icc(variance: VarianceSplit | Unavailable) -> str:
    """The same, with the correlation that statisticians look for, if it has an interval."""
    icc = variance.icc if isinstance(variance, VarianceSplit) else None
    if not isinstance(icc, Estimate) or icc.interval is None:
        return luck(variance)
    return f"{luck(variance)} ICC {icc.value:.2f}{decimals(icc.interval)}."


def family_split(variance: VarianceSplit | Unavailable) -> str | None:
    """How much of the variation is between families, between their tasks, and luck."""
    found = variance.families if isinstance(variance, VarianceSplit) else None
    if found is None:
        return None
    if isinstance(found, Unavailable):
        return f"No split of the variation by family: {found.reason}."
    parts = zip(
        (found.family, found.task, found.run),
        (f"between the {found.families} families", "between tasks of a family", "luck of a run"),
        strict=True,
    )
    shares = ", ".join(f"{percent(share.value)}{_bracketed(share)} {what}" for share, what in parts)
    notes = "" if found.family.interval is not None else f" ({'; '.join(found.family.notes)})"
    return f"Of the variation of a run: {shares}{notes}."


def _bracketed(share: Estimate) -> str:
    bounds = share.interval
    return "" if bounds is None else f" [{percent(bounds.low)} to {percent(bounds.high)}]"


def _luck_meaning(bounds: Interval) -> str:
    """What the share means, where its whole interval lies on one side of the lines."""
    if bounds.low >= MUCH_LUCK:
        return "which runs pass is mostly chance, not the task"
    if bounds.high < LITTLE_LUCK:
        return "a task mostly ends the same way every time"
    return "a single run can mislead"
