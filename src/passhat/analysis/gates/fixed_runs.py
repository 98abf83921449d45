"""The part of a run whose length is fixed beforehand, ended early only when arithmetic decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from passhat.analysis.gates.demands import Gate, NumberDemand
from passhat.analysis.gates.judge import gated_tables
from passhat.analysis.gates.number_gate import counts_passes, is_decided
from passhat.records import Pairing, Trial, Trials

Run = tuple[str, str, int]
"""System, task and number of a trial."""

# How often the runs are looked at to see whether arithmetic has decided.
_LOOKS = 25


class FixedPart:
    """Pairings run as often as they ask for, interleaved.

    With `gates`, it ends as soon as the runs still planned can change none of their verdicts:
    the same verdicts, for less.
    """

    def __init__(self, pairings: Sequence[Pairing], gates: Sequence[Gate] = ()) -> None:
        self.planned = {(p.system.name, p.task.name): p.runs for p in pairings}
        self.trials: list[Trial] = []
        self._gates = tuple(gates)
        self._done: set[Run] = set()
        self._rest = self._interleaved(pairings)
        self._decided = False
        self._next_look = self._look_every

    @property
    def max_runs(self) -> int:
        return sum(self.planned.values())

    def next_run(self) -> Run | None:
        """The next run, or None when all were handed out or none matters any more."""
        return None if self._decided else next(self._rest, None)

    def restore(self, run: Run) -> bool:
        """Whether a run handed out before an interruption belongs here."""
        system, task, trial = run
        mine = trial < self.planned.get((system, task), 0)
        if mine:
            self._done.add(run)
        return mine

    def holds(self, trial: Trial) -> bool:
        return trial.trial < self.planned.get((trial.system, trial.task), 0)

    def observe(self, trial: Trial) -> None:
        self.trials.append(trial)
        if self._gates and len(self.trials) >= self._next_look and not self._decided:
            self._next_look += self._look_every
            self._decided = self._is_decided()

    @property
    def _look_every(self) -> int:
        return max(1, self.max_runs // _LOOKS)

    def _is_decided(self) -> bool:
        if not all(isinstance(g.demand, NumberDemand) and counts_passes(g) for g in self._gates):
            return False
        table = Trials.from_records(self.trials, duplicates=None)
        return all(
            is_decided(gate, part.tally(), self.planned)
            for gate in self._gates
            for part in gated_tables(table, gate)
        )

    def _interleaved(self, pairings: Sequence[Pairing]) -> Iterator[Run]:
        for trial in range(max((pairing.runs for pairing in pairings), default=0)):
            for pairing in pairings:
                run = (pairing.system.name, pairing.task.name, trial)
                if trial < pairing.runs and run not in self._done:
                    yield run
