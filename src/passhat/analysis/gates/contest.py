"""A contest of several systems: who runs next, who is dropped, and which one is the best."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from passhat.analysis.gates.demands import BestOfDemand, Gate
from passhat.analysis.gates.outages import OutageWatch, outage_words
from passhat.analysis.gates.sentences import opening, percentage, shown
from passhat.analysis.gates.streams import Draw, may_go_ahead
from passhat.analysis.gates.verdict import Verdict, Word
from passhat.analysis.reports.targets import parse_target
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.records import Outcome, Trial
from passhat.stats.estimate import Estimate, Unavailable
from passhat.stats.sequential import BestOf, BestOfState, OutageGuard, fixed_design
from passhat.stats.sequential.draws import drawn_task

# A contest that is open after four times the fixed design ends UNDECIDED, as other gates do.
_CAP_OVER_FIXED = 4

_SCORE = parse_target("mean_score").read


class Contest:
    """Draws of tasks at random, each run by every system that is still in.

    What it decides follows from the seed and the results in the order of draws alone. A system that
    was dropped is run no more; runs of it that were under way are in the report only. It ends when
    the best is known, or when the system that the gate names is dropped.
    """

    def __init__(
        self, gate: Gate, systems: Sequence[str], tasks: Sequence[str], *, seed: int
    ) -> None:
        if not isinstance(gate.demand, BestOfDemand):
            raise ArgumentError("gate", "must demand the best of several systems", gate.require)
        if len(systems) < 2:
            rule = "needs two systems or more to find the best of"
            raise ArgumentError(f"gate {gate.label!r}", rule, len(systems))
        self.gate = gate
        self.systems = tuple(systems)
        self.tasks = tuple(tasks)
        self.seed = seed
        self.margin = gate.demand.margin
        self.design = BestOf(
            systems=len(self.systems),
            tasks=len(self.tasks),
            difference=self.margin,
            alpha=gate.alpha,
            seed=seed,
        )
        self.state: BestOfState = self.design.start()
        self.outages = OutageWatch([OutageGuard(tasks=len(self.tasks)) for _ in self.systems])
        self.runs: dict[int, dict[int, Trial]] = {}
        self._launched: dict[int, set[int]] = {}
        self._issued = self._made = self._seen = 0

    @property
    def name(self) -> str:
        """Tells this contest from streams and other contests on a ticket's stamp."""
        parts = "\x1f".join(("best of", *self.systems, "", *self.tasks, str(self.seed)))
        return hashlib.blake2b(parts.encode(), digest_size=4).hexdigest()

    @property
    def max_draws(self) -> int:
        if self.gate.max_runs is not None:
            return max(1, self.gate.max_runs // len(self.systems))
        fixed = fixed_design(0.5, (1 + self.margin) / 2, self.gate.alpha, self.gate.alpha)
        return _CAP_OVER_FIXED * fixed.runs

    @property
    def max_runs(self) -> int:
        return self.max_draws * len(self.systems)

    @property
    def is_open(self) -> bool:
        return (
            self.state.best is None and self.state.draws < self.max_draws and not self._named_is_out
        )

    @property
    def best(self) -> str | None:
        return None if self.state.best is None else self.systems[self.state.best]

    def next_run(self) -> Draw | None:
        """The next run: of a draw that is not complete, or of a new one; None to wait or stop."""
        under_way = self._made - self._seen
        if not self.is_open or not may_go_ahead(under_way, self._seen, self.outages.waiting):
            return None
        for draw in range(self.outages.seen, self._issued):
            for place in self.state.left:
                if place not in self._launched.setdefault(draw, set()):
                    return self._launch(draw, place)
        if self._issued >= self.max_draws:
            return None
        return self._launch(self._issued, self.state.left[0])

    def restore(self, draw: int, run: int) -> None:
        """A run that was handed out before an interruption; `run` is the place of its system."""
        self._made += 1
        self._launched.setdefault(draw, set()).add(run)
        self._issued = max(self._issued, draw + 1)

    def observe(self, draw: int, trial: Trial) -> None:
        """A run of a draw has ended."""
        self._seen += 1
        self.runs.setdefault(draw, {})[self.systems.index(trial.system)] = trial
        while self.is_open and self._is_complete(self.outages.seen):
            known = self.runs[self.outages.seen]
            out = set(self.state.dropped)
            first = [None if j in out else known[j] for j in range(len(self.systems))]
            self.outages.take(self._task(self.outages.seen), first)
            self._take_draws()
        if self.is_open and self.outages.seen >= self.max_draws:
            self.finish()

    def finish(self) -> None:
        """No more draws will come: failures that wait are decided as they are."""
        self.outages.finish()
        self._take_draws()

    def verdict(self) -> Verdict:
        """What the gate says so far."""
        word = self._word()
        used = sum(len(self._own_draws(place)) for place in range(len(self.systems)))
        outage = outage_words(self.outages, self.state.draws, "draw")
        notes = (*self._places(), *(words.rstrip(".") for words in outage))
        sentence = f"{opening(self.gate, self._speaks_of(), word)} {self._reason(word, used)}"
        return Verdict(
            gate=self.gate,
            system=self._speaks_of(),
            word=word,
            sentence=" ".join([sentence, *outage]),
            estimate=self._estimate(used),
            evidence="sequential",
            method="best of several, variance-adaptive bets on random tasks",
            alpha=self.gate.alpha,
            beta=None if self.gate.system is None else self.gate.alpha,
            runs=used,
            max_runs=self.max_runs,
            more_runs=max(self.max_runs - used, 0) if self.is_open else None,
            seed=self.seed,
            errors=self._errors(),
            notes=notes,
        )

    @property
    def _named_is_out(self) -> bool:
        named = self.gate.system
        return named is not None and self.systems.index(named) in self.state.dropped

    def _task(self, draw: int) -> int:
        return drawn_task(self.seed, draw, len(self.tasks))

    def _launch(self, draw: int, place: int) -> Draw:
        self.restore(draw, place)
        task = self.tasks[self._task(draw)]
        return Draw(index=draw, run=place, system=self.systems[place], task=task)

    def _is_complete(self, draw: int) -> bool:
        return set(self.state.left) <= set(self.runs.get(draw, ()))

    def _take_draws(self) -> None:
        while self.is_open and self.state.draws < len(self.outages.counted):
            draw = self.state.draws
            if self.outages.counted[draw]:
                scores = {j: _SCORE(self.runs[draw][j]) or 0.0 for j in self.state.left}
                self.state = self.design.observe(self.state, scores)
            else:
                self.state = self.design.skip(self.state)

    def _word(self) -> Word:
        named = self.gate.system
        if self._named_is_out or (self.best is not None and named not in (None, self.best)):
            return "FAIL"
        return "UNDECIDED" if self.best is None else "PASS"

    def _speaks_of(self) -> str:
        """The system that the gate names, the best one, or the one that leads."""
        if self.gate.system is not None or self.best is not None:
            return self.gate.system or self.best or ""
        return self.systems[max(self.state.left, key=lambda j: self._mean(j) or 0.0)]

    def _mean(self, place: int) -> float | None:
        counted = [draw for draw in self._own_draws(place) if self.outages.counted[draw]]
        scores = [_SCORE(self.runs[draw][place]) or 0.0 for draw in counted]
        return sum(scores) / len(scores) if scores else None

    def _own_draws(self, place: int) -> range:
        """The draws of a system that were evidence: until it was dropped."""
        return range(self.state.dropped.get(place, self.state.draws))

    def _reason(self, word: Word, used: int) -> str:
        count, margin = len(self.systems), f"{100 * self.margin:g} points"
        if word == "UNDECIDED":
            left = ", ".join(self.systems[j] for j in self.state.left)
            end = f"up to {plural(max(self.max_runs - used, 0), 'more run')} may settle it"
            end = end if self.is_open else "the most allowed"
            return f"after {plural(used, 'run')}: still in are {left}; {end}."
        sure = f"wrong with a chance of at most {percentage(self.gate.alpha)}"
        if self.best is None:
            return f"after {plural(used, 'run')}: it was dropped as worse than others; {sure}."
        dropped = ", ".join(self.systems[j] for j in self.state.dropped)
        out = f"dropped on the way: {dropped}; " if dropped else ""
        return (
            f"after {plural(used, 'run')}: {self.best} is the best of {count}, or at most {margin} "
            f"below the best; {out}{sure}."
        )

    def _places(self) -> tuple[str, ...]:
        """The mean score of each system over its own draws, and when it was dropped."""
        found = []
        for place, system in enumerate(self.systems):
            mean = self._mean(place)
            score = "no run yet" if mean is None else f"mean score {shown(mean, share=True)}"
            gone = self.state.dropped.get(place)
            found.append(f"{system}: {score}" + (f", dropped after draw {gone}" if gone else ""))
        return tuple(found)

    def _estimate(self, used: int) -> Estimate | Unavailable:
        value = self._mean(self.systems.index(self._speaks_of()))
        if value is None:
            return Unavailable("no run has come in yet")
        return Estimate(
            value=value,
            interval=None,
            method="mean score over its draws",
            confidence=1 - self.gate.alpha,
            runs=used,
            seed=self.seed,
            notes=("the verdict rests on differences on the same draws",),
        )

    def _errors(self) -> str:
        count = sum(
            self.runs[draw][place].outcome is Outcome.ERRORED
            for place in range(len(self.systems))
            for draw in self._own_draws(place)
        )
        return f"{plural(count, 'errored run')} scored 0" if count else "no run errored"
