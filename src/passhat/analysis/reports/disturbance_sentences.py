"""What is said of runs that were not independent, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from passhat.analysis.reports.disturbances import Disturbance
from passhat.messages import listed, plural

_MINUTE, _HOUR = 60, 3600


def disturbance_sentence(found: Sequence[Disturbance]) -> str | None:
    """The first and gravest in one sentence, how many more there are; None where there is none.

    >>> disturbance_sentence(()) is None
    True
    """
    if not found:
        return None
    more = f" (and {plural(len(found) - 1, 'more such stretch', 'more such stretches')})"
    return f"{_seen(found[0])}{more if len(found) > 1 else ''}."


def disturbance_advice(found: Disturbance) -> str:
    """What to do before paying for more runs."""
    if found.kind == "drift":
        moved = f"Find out what changed while it ran ({_from_to(found)})"
        return f"{moved}: no number of runs settles a rate that moves."
    if found.kind == "rounds differ":
        return (
            f"Find out what differs between rounds ({_range(found)} passed), or spread the runs "
            "over time: more runs of the same kind would not settle the rate."
        )
    if found.kind == "burst":
        return f"Re-run the {_failures(found)}: that looks like an outage."
    them = "it" if len(found.rounds) == 1 else "them"
    way_out = f"--drop-rounds {','.join(map(str, found.rounds))} leaves {them} out"
    if not _is_low(found):
        return f"Find out what {_rounds(found)} had that the others did not; {way_out}."
    return f"Re-run {_rounds(found)}: {_failures(found)}; {way_out}."


def _seen(found: Disturbance) -> str:
    if found.kind == "drift":
        return f"The rate drifted while it ran, {_from_to(found)}"
    if found.kind == "rounds differ":
        return f"Rounds differ by more than chance, {_range(found)} passed"
    if found.kind == "burst":
        return f"Runs did not fail independently: {_failures(found)}"
    usual = 100 * (1 - (found.others or 0.0))
    which = _rounds(found)
    is_out = "is" if len(found.rounds) == 1 else "are"
    head = f"{which[0].upper()}{which[1:]} {is_out} out of line"
    return f"{head}: {_failures(found)}, {usual:.0f} % in the other rounds"


def _is_low(found: Disturbance) -> bool:
    return found.others is None or found.failed / max(found.runs, 1) > 1 - found.others


def _rounds(found: Disturbance) -> str:
    word = "round" if len(found.rounds) == 1 else "rounds"
    return f"{word} {listed(found.rounds)}"


def _failures(found: Disturbance) -> str:
    tasks = f" on {plural(found.tasks, 'task')}" if found.kind == "burst" else ""
    if found.kind == "burst":
        return f"{plural(found.failed, 'run')}{tasks} failed one after another{_time(found)}"
    return f"{found.failed:,} of {plural(found.runs, 'run')} failed{_time(found)}"


def _time(found: Disturbance) -> str:
    seconds = found.seconds
    if seconds is None or seconds > 24 * _HOUR:
        return ""
    when = f" (from {(found.began or '')[:16].replace('T', ' ')})"
    if seconds <= _MINUTE:
        return f" within a minute{when}"
    if seconds <= 2 * _HOUR:
        return f" within {ceil(seconds / _MINUTE)} minutes{when}"
    return f" within {ceil(seconds / _HOUR)} hours{when}"


def _from_to(found: Disturbance) -> str:
    first, last = found.means[0], found.means[-1]
    return f"{100 * first:.0f} % passed in the first round and {100 * last:.0f} % in the last"


def _range(found: Disturbance) -> str:
    return f"{100 * min(found.means):.0f} to {100 * max(found.means):.0f} %"
