"""Which runs of a sequential gate are evidence: those in an outage are set aside and named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from passhat.messages import listed, plural
from passhat.records import Outcome, Trial
from passhat.stats.sequential import Outage, OutageGuard
from passhat.stats.sequential.draws import find_drift

LONGEST_PAUSE = 600.0
"""Seconds that a run waits at most before it tries again."""

_NAMED = 3


class OutageWatch:
    """Sees the runs of every system in the order of their tickets, and decides which count.

    `counted` says whether each decided draw counts, in order. A draw is set aside where any of its
    systems was in an outage.
    """

    def __init__(self, guards: Sequence[OutageGuard]) -> None:
        self._guards = tuple(guards)
        self._states = [guard.start() for guard in self._guards]
        self._flags: list[list[bool]] = [[] for _ in self._guards]
        self._seen: list[list[Trial | None]] = []
        self.counted: list[bool] = []
        self.resume_at: float | None = None
        """Until when (seconds since 1970) no run should be started: the outage may pass."""

    @property
    def seen(self) -> int:
        """How many draws it was shown."""
        return len(self._seen)

    @property
    def waiting(self) -> int:
        """How many draws are not decided yet."""
        return self.seen - len(self.counted)

    @property
    def outages(self) -> tuple[Outage, ...]:
        found = {outage for state in self._states for outage in state.outages}
        return tuple(sorted(found, key=lambda outage: outage.first))

    @property
    def is_hopeless(self) -> bool:
        """Whether so many stretches came without a pass that failures count as they come."""
        return any(state.is_hopeless for state in self._states)

    def take(self, task: int, trials: Sequence[Trial | None]) -> None:
        """The next draw: the first run of each system on this task, None if it made none."""
        self._seen.append(list(trials))
        for place, trial in enumerate(trials):
            if trial is None:  # it has left the contest
                self._finish(place)
                self._flags[place].append(True)
            else:
                self._observe(place, task, trial)
        self._decide()

    def finish(self) -> None:
        """No more draws will come: those that wait are decided as they are."""
        for place in range(len(self._guards)):
            self._finish(place)
        self._decide()

    def _observe(self, place: int, task: int, trial: Trial) -> None:
        before = self._states[place]
        began, ended = _times(trial)
        state, decided = self._guards[place].observe(
            before, task, earned_something(trial), began=began, ended=ended
        )
        self._states[place] = state
        self._flags[place].extend(decided)
        if state.stretches > before.stretches and state.waiting and ended is not None:
            first = self._seen[self.seen - len(state.waiting)][place]
            self._pause(first, ended, state.stretches)

    def _pause(self, first: Trial | None, ended: float, stretches: int) -> None:
        """Wait twice as long as the stretch took, after the second one four times."""
        began = None if first is None else _times(first)[0]
        if began is not None:
            self.resume_at = ended + min((ended - began) * 2**stretches, LONGEST_PAUSE)

    def _finish(self, place: int) -> None:
        self._states[place], decided = self._guards[place].finish(self._states[place])
        self._flags[place].extend(decided)

    def _decide(self) -> None:
        ready = min(map(len, self._flags))
        for draw in range(len(self.counted), ready):
            self.counted.append(all(flags[draw] for flags in self._flags))


def earned_something(trial: Trial) -> bool:
    """Whether a run passed or scored; one that errored or scored 0 may belong to an outage."""
    return trial.outcome is not Outcome.ERRORED and (trial.score or 0.0) > 0.0


def outage_words(watch: OutageWatch, draws: int, unit: str) -> tuple[str, ...]:
    """What a verdict on its first draws says about stretches of failures; often nothing."""
    found = _set_aside_sentence(watch.outages, draws, unit=unit)
    words = [] if found is None else [found]
    if watch.is_hopeless:
        words.append(_HOPELESS_SENTENCE)
    elif watch.waiting:
        held = plural(watch.waiting, unit)
        verb = "waits" if watch.waiting == 1 else "wait"
        words.append(f"{held} {verb} for the next pass, to tell failures from an outage.")
    return tuple(words)


def drift_words(runs: Sequence[Trial]) -> tuple[str, ...]:
    """What a verdict says where the pass rate moved along its runs; mostly nothing."""
    places = {name: place for place, name in enumerate(dict.fromkeys(run.task for run in runs))}
    passed = [run.outcome is Outcome.PASSED for run in runs]
    found = find_drift([places[run.task] for run in runs], passed)
    if found is None:
        return ()
    halves = f"{100 * found.first_half:.0f} % in their first half to {100 * found.second_half:.0f}"
    words = (
        f"The pass rate changed during these runs, from {halves} % in the second, by more than "
        "chance: the verdict is on their mean, not on the agent as it is now."
    )
    return (words,)


def _set_aside_sentence(outages: Sequence[Outage], draws: int, *, unit: str) -> str | None:
    inside = [outage for outage in outages if outage.first < draws]
    if not inside:
        return None
    named = listed((f"{one.first + 1} to {one.last + 1}" for one in inside), _NAMED)
    aside = sum(one.runs for one in inside)
    return (
        f"{plural(aside, unit)} of {draws:,} ({named}) were set aside as an outage: failures one "
        "after another, too many for chance, and the pass that ended them. The error rates hold "
        "for the runs outside it."
    )


_HOPELESS_SENTENCE = (
    "Run after run failed, far too many for chance and with no pass between them. They count as "
    "failures: a broken agent and an outage that lasts cannot be told apart."
)


def _times(trial: Trial) -> tuple[float | None, float | None]:
    """When a run began and ended, in seconds since 1970."""
    if trial.started is None:
        return None, None
    try:
        began = datetime.fromisoformat(trial.started).timestamp()
    except ValueError:
        return None, None
    return began, began + (trial.seconds or 0.0)
