"""Do results meet a demand? Gates on files, on stored runs, and against baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.defaults import SEED
from passhat.errors import ArgumentError, InputError
from passhat.fast_dataclass import dataclass
from passhat.journeys.results import (
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
    from passhat.analysis.comparing.days import Days
    from passhat.analysis.gates.demands import Gate
    from passhat.analysis.gates.judge import GateLike
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.history import Run
    from passhat.records import ErrorPolicy, Suite, Trials

MARGIN = 0.05
"""How much worse than a baseline the mean score may be, where nothing else is said."""


def gate_results(
    results: ResultsLike,
    require: GateLike | Sequence[GateLike] = (),
    *,
    against: str | Path | Trials | None = None,
    margin: float = MARGIN,
    suite: Suite | str | Path | None = None,
    only: Sequence[str] = (),
    bars: Mapping[str, float] | float | None = None,
    errors: ErrorPolicy = "fail",
    seed: int = SEED,
    **terms: Any,
) -> Verdicts:
    r"""Judge results by gates: PASS, FAIL or UNDECIDED, with the evidence.

    `require` are demands such as "pass^3 >= 0.8", `terms` what holds for all of them: confidence,
    scope, evidence, indifference, on_undecided. `against` are results, or a run of the history, to
    be no worse than; `suite` adds the gates and bars of a suite.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,1\na,3,0\n")
    >>> gate_results(trials, "pass@1 >= 0.99").word
    'FAIL'
    """
    from passhat.records import Trials

    loaded = _loaded(suite)
    gates = _gates(require, loaded, against, margin, terms)
    if isinstance(results, Trials):
        everybody: Trials = results
        judged = None
        held = _Baselines(results=None, against=against)
    else:
        read = _of_store(as_results(results))
        held = _Baselines(results=read, against=against)
        replayed = _replayed(read, held, loaded, gates)
        if replayed is not None:
            return replayed
        everybody, judged = _read(read)
    return _judge(everybody, only, gates, held, judged, loaded, bars, errors, seed)


def _judge(
    everybody: Trials,
    only: Sequence[str],
    gates: Sequence[Gate],
    held: _Baselines,
    judged: Run | None,
    suite: Suite | None,
    bars: Mapping[str, float] | float | None,
    errors: ErrorPolicy,
    seed: int,
) -> Verdicts:
    from passhat.analysis.gates.judge import judge

    trials = choose_systems(everybody, only)
    return judge(
        trials,
        gates,
        bars=suite.bars or None if bars is None and suite is not None else bars,
        baseline=_left_out(gates, everybody, trials)
        | held.baselines(gates, everybody.systems, judged),
        errors=errors,
        seed=seed,
        days=held.days(gates, everybody.systems, judged, errors),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Baselines:
    """What results are held against: `against`, or files and runs that demands name."""

    results: Results | None
    against: str | Path | Trials | None

    def baselines(
        self, gates: Sequence[Gate], systems: Sequence[str], judged: Run | None
    ) -> dict[str, Trials]:
        """The baseline of every demand that names none of these systems."""
        if self.against is not None:
            return {"": self.read(self.against, "against", judged)}
        names = {getattr(gate.demand, "baseline", None) or "" for gate in gates} - {"", *systems}
        if self.results is None:
            return {}
        # without a store, a name that is no file is left for the judge, who says what there is
        return {
            name: self.read(name, "no_worse_than", judged)
            for name in sorted(names)
            if is_there(name) or store_is_there(self.results.store)
        }

    def days(
        self, gates: Sequence[Gate], systems: Sequence[str], judged: Run | None, errors: ErrorPolicy
    ) -> dict[str, Days]:
        """How far runs lie apart, for every baseline that is a run of the history."""
        own = self.results
        if own is None:
            return {}
        if self.against is not None:
            named = {"": str(self.against)} if isinstance(self.against, str | Path) else {}
        else:
            asked = {getattr(gate.demand, "baseline", None) or "" for gate in gates}
            named = {name: name for name in asked - {"", *systems}}
        return {
            key: stored_days(replace(own, paths=(name,), names=()), name, judged, errors)
            for key, name in named.items()
            if not is_there(name) and store_is_there(own.store) and own.names_a_run(name)
        }

    def read(self, given: str | Path | Trials, argument: str, judged: Run | None) -> Trials:
        """Those of a file, or of a run other than the one that is judged."""
        from passhat.records import Trials

        if isinstance(given, Trials):
            return given
        name, own = str(given), self.results
        reading = Results(paths=(name,)) if own is None else replace(own, paths=(name,), names=())
        if not reading.names_a_run(name):
            if own is not None and len(own.paths) == 1 and _same_file(own.paths[0], name):
                raise ArgumentError(argument, "must name other results than those judged", name)
            return reading.trials()
        from passhat.history.references import look_up_baseline

        with open_store(reading.store) as history:
            found = reading.noted(look_up_baseline(history, name, judged=judged))
            return history.trials(found.run)


def _of_store(results: Results) -> Results:
    """A history store that was named is the store, and its run the results."""
    if len(results.paths) == 1 and is_store(results.paths[0]):
        return replace(results, paths=(results.run,), store=results.paths[0])
    return results


def _read(results: Results) -> tuple[Trials, Run | None]:
    """The trials, and which run they are."""
    named = results.named_run()
    if named is None:
        return results.trials(), None
    run = results.noted(named).run
    with open_store(results.store) as history:
        return history.trials(run), run


def _replayed(
    results: Results, held: _Baselines, suite: Suite | None, gates: Sequence[Gate]
) -> Verdicts | None:
    """The verdicts of a stored run that its gates ended: from its journal, in its own order."""
    name = results.paths[0]
    if suite is None or len(results.paths) != 1 or not results.names_a_run(name):
        return None
    from passhat.analysis.gates.stopping import StoppingRule, replay_run
    from passhat.history import RunJournal
    from passhat.history.references import look_up

    with open_store(results.store) as history:
        run = look_up(history, name).run
        journal = RunJournal(history, run)
        tickets = journal.launched()
        if not any(ticket.stamp for ticket in tickets):
            return None
        rule = StoppingRule(
            suite.pairings,
            gates,
            until_settled=True,
            quarantined=sorted(quarantined(suite)),
            baselines=held.baselines(gates, suite.systems, run),
            seed=suite.seed,
        )
        return replay_run(rule, tickets, journal.finished())


def _loaded(suite: Suite | str | Path | None) -> Suite | None:
    from passhat.records import Suite
    from passhat.suite import load_suite

    if suite is None or isinstance(suite, Suite):
        return suite
    return load_suite(Path(suite), models_asked=False)


def _gates(
    require: GateLike | Sequence[GateLike],
    suite: Suite | None,
    against: str | Path | Trials | None,
    margin: float,
    terms: Mapping[str, Any],
) -> list[Gate]:
    from passhat.analysis.gates.demands import Gate, parse_gate

    given = {name: value for name, value in terms.items() if value is not None}
    demands: list[Any] = [require] if isinstance(require, str | Mapping | Gate) else list(require)
    if against is not None and not any(map(names_baseline, demands)):
        name = baseline_name(against)
        demands += [f"no_worse_than {name} by {margin:g}", f"no task worse than {name}"]
    gates = [parse_gate(_with_terms(demand, given)) for demand in demands]
    gates += [parse_gate(gate) for gate in (suite.gates if suite is not None else ())]
    if not gates:
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
    from passhat.analysis.gates.demands import parse_gate

    return hasattr(parse_gate(demand).demand, "baseline")


def read_baseline(results: ResultsLike, against: str | Path) -> Trials:
    """What `gate_results` holds these results against: never the run that is judged itself."""
    from passhat.records import Trials

    if isinstance(results, Trials):
        return _Baselines(results=None, against=against).read(against, "against", None)
    read = _of_store(as_results(results))
    judged = read.named_run()
    held = _Baselines(results=read, against=against)
    return held.read(against, "against", None if judged is None else judged.run)


def baseline_name(against: str | Path | Trials) -> str:
    """What a demand calls the baseline: the name of the file or run, in one word."""
    if isinstance(against, str | Path):
        return "-".join(Path(against).name.split()) or "BASELINE"
    return "BASELINE"


def _with_terms(demand: GateLike, terms: Mapping[str, Any]) -> GateLike:
    """A demand with the terms that hold for all, less what one task by task cannot have."""
    if not isinstance(demand, str):
        return demand
    if "task worse" in demand:
        terms = {n: v for n, v in terms.items() if n not in ("evidence", "scope")}
    return {"require": demand, **terms}


def _left_out(gates: Sequence[Gate], everybody: Trials, trials: Trials) -> dict[str, Trials]:
    """Systems that `only` leaves out of judgement and that demands name as their baseline."""
    names = {getattr(gate.demand, "baseline", None) for gate in gates}
    out = [name for name in everybody.systems if name not in trials.systems]
    return {name: everybody.where(system=name) for name in out if name in names}


def _same_file(one: str, other: str) -> bool:
    return is_there(one) and is_there(other) and Path(one).samefile(other)
