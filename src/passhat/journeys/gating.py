"""Do results meet a demand? Gates on files, on stored runs, and against baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat import arguments
from passhat.arguments import SEED
from passhat.errors import ArgumentError, InputError
from passhat.journeys.results import (
    Names,
    Results,
    ResultsLike,
    as_results,
    choose_systems,
    is_store,
    is_there,
    open_store,
    store_is_there,
)
from passhat.journeys.run_gates import quarantined
from passhat.journeys.stored_runs import stored_days

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Days
    from passhat.analysis.gates.gate import Gate, Verdicts
    from passhat.analysis.gates.judge import GateLike
    from passhat.history import Run
    from passhat.records import ErrorPolicy, Suite, Transcripts, Trials

MARGIN = 0.05
"""How much worse than a baseline the mean score may be, by default."""


def gate_results(
    results: ResultsLike,
    require: GateLike | Sequence[GateLike] | None = (),
    *,
    against: str | Path | Trials | None = None,
    margin: float = MARGIN,
    suite: Suite | str | Path | None = None,
    only: Names = (),
    bars: Mapping[str, float] | float | None = None,
    errors: ErrorPolicy = "fail",
    seed: int = SEED,
    **terms: Any,
) -> Verdicts:
    r"""Judge results by gates: PASS, FAIL or UNDECIDED, with the evidence.

    `require` are demands such as "pass^3 >= 0.8", `terms` what holds for all of them: confidence,
    scope, evidence, indifference, on_undecided. `against` are results, or a stored run, to
    be no worse than; `suite` adds the gates and bars of a suite.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,1\na,3,0\n")
    >>> gate_results(trials, "pass@1 >= 0.99").word
    'FAIL'
    """
    judged = JudgedResults(results, against)
    return judged.verdicts(
        require, margin=margin, suite=suite, only=only, bars=bars, errors=errors, seed=seed, **terms
    )


class JudgedResults:
    """Results to be judged and what they are held against, each of them read once.

    Baselines are `against`, or files and runs that demands name.
    """

    def __init__(
        self,
        results: ResultsLike,
        against: str | Path | Trials | None,
        *,
        transcripts: bool = False,
    ) -> None:
        from passhat.records import Trials

        if against is not None and not isinstance(against, Trials):
            against = arguments.path("against", against, "trials, a path or the name of a run")
        self.against = against
        self._given = results if isinstance(results, Trials) else None
        self._results = None if isinstance(results, Trials) else _of_store(as_results(results))
        self._transcripts = transcripts
        self._baselines: dict[str, Trials] = {}

    @cached_property
    def read(self) -> tuple[Trials, Transcripts]:
        """Every trial and, where transcripts are wanted, what was said in each."""
        if self._given is not None:
            return self._given, {}
        assert self._results is not None, "results are trials, or are read"
        if self._transcripts:
            return self._results.with_transcripts()
        return self._results.trials(), {}

    @cached_property
    def run(self) -> Run | None:
        """The stored run that is judged."""
        named = None if self._results is None else self._results.named_run()
        return None if named is None else named.run

    def verdicts(
        self,
        require: GateLike | Sequence[GateLike] | None,
        *,
        margin: float,
        suite: Suite | str | Path | None,
        only: Names,
        bars: Mapping[str, float] | float | None,
        errors: ErrorPolicy,
        seed: int,
        **terms: Any,
    ) -> Verdicts:
        """The verdicts of all gates, by the arguments of `gate_results`."""
        from passhat.analysis.gates.judge import judge

        loaded = _loaded(suite)
        gates = _gates(require, loaded, self.against, margin, terms)
        if loaded is not None and (replayed := self._replayed(loaded, gates)) is not None:
            return replayed
        everybody = self.read[0]
        trials = choose_systems(everybody, only)
        return judge(
            trials,
            gates,
            bars=loaded.bars or None if bars is None and loaded is not None else bars,
            baseline=_left_out(gates, everybody, trials)
            | self._named_baselines(gates, everybody.systems),
            errors=errors,
            seed=seed,
            days=self._days(gates, everybody.systems, errors),
        )

    def baseline(self, given: str | Path | Trials, argument: str) -> Trials:
        """The trials of a file, or of a run other than the one that is judged."""
        from passhat.records import Trials

        if isinstance(given, Trials):
            return given
        name = str(given)
        if name not in self._baselines:
            self._baselines[name] = self._read_baseline(name, argument)
        return self._baselines[name]

    def days(self, given: str | Path | Trials, errors: ErrorPolicy) -> Days | None:
        """How much runs differ from day to day, if the baseline is a stored run."""
        own, name = self._results, str(given)
        if own is None or not isinstance(given, str | Path):
            return None
        if is_there(name) or not store_is_there(own.store) or not own.names_a_run(name):
            return None
        return stored_days(replace(own, paths=(name,), names=()), name, self.run, errors)

    def _read_baseline(self, name: str, argument: str) -> Trials:
        """The baseline without the rounds to drop; its tasks weigh as those of the judged do."""
        own = self._results
        reading = Results(paths=(name,)) if own is None else replace(own, paths=(name,), names=())
        if not reading.names_a_run(name):
            if own is not None and len(own.paths) == 1 and _same_file(own.paths[0], name):
                raise ArgumentError(argument, "must name other results than those judged", name)
            return reading.without_rounds(reading.whole()[0], baseline=True)
        from passhat.history.runs import look_up_baseline

        with open_store(reading.store) as history:
            found = reading.noted(look_up_baseline(history, name, judged=self.run))
            return reading.without_rounds(history.trials(found.run), baseline=True)

    def _named_baselines(self, gates: Sequence[Gate], systems: Sequence[str]) -> dict[str, Trials]:
        """The baseline of every demand that names none of these systems."""
        if self.against is not None:
            return {"": self.baseline(self.against, "against")}
        if self._results is None:
            return {}
        # without a store, a name that is no file is left for the judge, who says what there is
        return {
            name: self.baseline(name, "no_worse_than")
            for name in sorted(_baselines_of(gates) - {*systems})
            if is_there(name) or store_is_there(self._results.store)
        }

    def _days(
        self, gates: Sequence[Gate], systems: Sequence[str], errors: ErrorPolicy
    ) -> dict[str, Days]:
        if self.against is not None:
            named = {"": self.days(self.against, errors)}
        else:
            named = {name: self.days(name, errors) for name in _baselines_of(gates) - {*systems}}
        return {name: days for name, days in named.items() if days is not None}

    def _replayed(self, suite: Suite, gates: Sequence[Gate]) -> Verdicts | None:
        """The verdicts of a stored run that its gates ended: from its journal, in its own order.

        A journal has every round: what is judged without some of them is read again.
        """
        run, own = self.run, self._results
        if run is None or own is None or own.drop_rounds or own.shares:
            return None
        from passhat.analysis.gates.stopping import StoppingRule, replay_run
        from passhat.history import RunJournal

        with open_store(own.store) as history:
            journal = RunJournal(history, run)
            tickets = journal.launched()
            if not any(ticket.stamp for ticket in tickets):
                return None
            rule = StoppingRule(
                suite.pairings,
                gates,
                until_settled=True,
                quarantined=sorted(quarantined(suite)),
                baselines=self._named_baselines(gates, suite.systems),
                seed=suite.seed,
            )
            return replay_run(rule, tickets, journal.finished())


def _of_store(results: Results) -> Results:
    """A history store that was named is the store, and its run the results."""
    if len(results.paths) == 1 and is_store(results.paths[0]):
        return replace(results, paths=(results.run,), store=results.paths[0])
    return results


def _loaded(suite: Suite | str | Path | None) -> Suite | None:
    from passhat.records import Suite
    from passhat.suite import load_suite

    if suite is None or isinstance(suite, Suite):
        return suite
    file = arguments.path("suite", suite, "a Suite or the path of a suite file")
    return load_suite(Path(file), models_asked=False)


def _gates(
    require: GateLike | Sequence[GateLike] | None,
    suite: Suite | None,
    against: str | Path | Trials | None,
    margin: float,
    terms: Mapping[str, Any],
) -> list[Gate]:
    from passhat.analysis.gates.gate import parse_gate

    given = {name: value for name, value in terms.items() if value is not None}
    demands = arguments.several(() if require is None else require, str, Mapping)
    if against is not None and not any(map(names_baseline, demands)):
        name = baseline_name(against)
        margin = arguments.probability("margin", margin)
        demands += [f"no_worse_than {name} by {margin:g}", f"no task worse than {name}"]
    gates = [parse_gate(_with_terms(demand, given)) for demand in demands]
    gates += [parse_gate(gate) for gate in (suite.gates if suite is not None else ())]
    if not gates:
        if suite is not None:
            raise InputError(
                "nothing is demanded: the suite has no `gates:`; add some to it, or give "
                "`require='pass^3 >= 0.8'` or `against=BASELINE`"
            )
        raise InputError(
            "nothing is demanded: give `require='pass^3 >= 0.8'`, `against=BASELINE` or "
            "`suite=FILE`"
        )
    return gates


def names_baseline(demand: GateLike) -> bool:
    """Whether a demand speaks of a baseline itself.

    >>> names_baseline("better_than main"), names_baseline("pass^3 >= 0.8")
    (True, False)
    """
    from passhat.analysis.gates.gate import parse_gate

    return hasattr(parse_gate(demand).demand, "baseline")


def baseline_name(against: str | Path | Trials) -> str:
    """What a demand calls the baseline: the name of the file or run, in one word."""
    if isinstance(against, str | Path):
        return "-".join(Path(against).name.split()) or "BASELINE"
    return "BASELINE"


def _baselines_of(gates: Sequence[Gate]) -> set[str]:
    """The names of the baselines that gates speak of."""
    return {getattr(gate.demand, "baseline", None) or "" for gate in gates} - {""}


def _with_terms(demand: GateLike, terms: Mapping[str, Any]) -> GateLike:
    """A demand with the terms that hold for all, less what one task by task cannot have."""
    if not isinstance(demand, str):
        return demand
    if "task worse" in demand:
        terms = {n: v for n, v in terms.items() if n not in ("evidence", "scope")}
    return {"require": demand, **terms}


def _left_out(gates: Sequence[Gate], everybody: Trials, trials: Trials) -> dict[str, Trials]:
    """Systems that `only` leaves out of judgement and that demands name as their baseline."""
    out = [name for name in everybody.systems if name not in trials.systems]
    return {name: everybody.where(system=name) for name in out if name in _baselines_of(gates)}


def _same_file(one: str, other: str) -> bool:
    return is_there(one) and is_there(other) and Path(one).samefile(other)
