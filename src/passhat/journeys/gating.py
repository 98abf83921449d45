"""Gates: on results, on a change and its baseline, and on a run while it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from passhat import arguments
from passhat.arguments import CONFIDENCE, MARGIN, SEED, CountingTerms, takes
from passhat.errors import ArgumentError, InputError, RunError
from passhat.journeys.results import (
    Names,
    Results,
    ResultsLike,
    bars_beside,
    check_one_score,
    choose_systems,
    is_store,
    is_there,
    open_store,
    store_is_there,
    trials_or_results,
)
from passhat.journeys.run_store import without_changed
from passhat.journeys.stored_runs import as_decided, days_around, looks_at, stored_days
from passhat.messages import few, listed, no_task, plural, short, typo_hint
from passhat.records.suite import pairings_at, plain_pairings

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison, Days
    from passhat.analysis.gates.gate import Gate, GateTerms, JudgeTerms, Verdicts
    from passhat.analysis.gates.judge import GateLike
    from passhat.analysis.gates.run_answer import ChangeReview
    from passhat.analysis.gates.stopping import StoppingRule
    from passhat.history import Run
    from passhat.journeys.run_store import Arms, OpenRun
    from passhat.records import Pairing, Suite, Transcripts, Trials

FALSE_ALARMS = 0.001
"""How often a review of an unchanged agent may fail: people ignore a check that cries wolf."""


@takes(CountingTerms, more=True)
def review_change(
    results: ResultsLike,
    require: GateLike | Sequence[GateLike] = (),
    *,
    against: str | Path | None = None,
    margin: float = MARGIN,
    suite: Suite | str | Path | None = None,
    only: Names = (),
    bars: Mapping[str, float] | float | None = None,
    ks: Sequence[int] | None = None,
    confidence: float = CONFIDENCE,
    gate_confidence: float | None = None,
    informational: bool = False,
    **terms: Unpack[JudgeTerms],
) -> ChangeReview:
    r"""What to tell the people who review a change.

    `against` is a baseline: results, or a run, tag or branch of the history. If no demand speaks
    of a baseline, the change passes when it is shown to be at most `margin` worse than this one,
    and fails when it is shown to be worse at all, as a suite or in one task. An unchanged agent
    fails one review in a thousand at most. `confidence` is that of the report and its comparisons,
    `gate_confidence` how sure the verdict on a demand in `require` must be; `terms` are the other
    terms of `gate`.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,1\nb,1,0\nb,2,1\n")
    >>> review_change(trials, "pass@1 >= 0.1").status
    'PASS'
    """
    from passhat.analysis.explaining.explain import explain
    from passhat.analysis.gates.run_answer import ChangeReview
    from passhat.analysis.reports.measure import measure

    judged = JudgedResults(results, against, transcripts=True)
    everybody, transcripts = judged.read
    trials = choose_systems(everybody, only)
    verdicts = None
    if require or against is not None or suite is not None:
        verdicts = judged.verdicts(
            _demands(require, against, margin, systems=len(trials.systems)),
            margin=margin, suite=suite, only=only, bars=bars, confidence=gate_confidence,
            **terms,
        )  # fmt: skip
    counting, _ = _split(terms)
    comparisons: dict[str, Comparison] = {}
    if against is not None:
        comparisons = _comparisons(trials, judged, against, confidence, **counting)
    return ChangeReview(
        report=measure(
            trials,
            ks=ks,
            confidence=confidence,
            bars=judged.bars(bars, _loaded(suite), trials),
            **counting,
        ),
        verdicts=verdicts,
        comparisons=comparisons,
        baseline=None if against is None else _shown_name(against),
        explanation=(
            explain(trials, transcripts, confidence=confidence, seed=counting.get("seed", SEED))
            if transcripts
            else None
        ),
        informational=informational,
    )


def review_demands(baseline: str, margin: float = MARGIN, *, systems: int = 1) -> list[GateLike]:
    """What a change must meet: no drop of the suite or of a task that is shown beyond luck.

    The two demands on each system share the chance of a false alarm. Between no drop and a drop by
    `margin` the first may come out either way, or stay open.
    """
    error = FALSE_ALARMS / (2 * systems)
    return [
        {"require": f"no_worse_than {baseline} by {margin:g}", "indifference": margin,
         "beta": error},
        {"require": f"no task worse than {baseline}", "beta": error},
    ]  # fmt: skip


def _demands(
    require: GateLike | Sequence[GateLike],
    against: str | Path | None,
    margin: float,
    *,
    systems: int,
) -> list[Any]:
    """The demands, and where none speaks of the baseline those of `review_demands`."""
    several = isinstance(require, Sequence) and not isinstance(require, str)
    demands: list[Any] = list(require) if several else [require]  # type: ignore[arg-type]
    if against is None or any(map(names_baseline, demands)):
        return demands
    return [*demands, *review_demands(baseline_name(against), margin, systems=systems)]


def _shown_name(against: str | Path) -> str:
    """A file without its folders, which are those of the machine that ran the job."""
    return Path(against).name if is_there(str(against)) else str(against)


def _comparisons(
    trials: Trials,
    judged: JudgedResults,
    against: str | Path,
    confidence: float,
    **counting: Unpack[CountingTerms],
) -> dict[str, Comparison]:
    """Each system against the one of its name; a single one against a single one of any name."""
    from passhat.analysis.comparing.comparison import compare

    old, days = judged.baseline(against, "against"), judged.days(against, **counting)
    single = len(trials.systems) == len(old.systems) == 1
    comparisons = {}
    for name in trials.systems:
        before = old.systems[0] if single else name
        if before in old.systems:
            sides = trials.where(system=name), old.where(system=before)
            with suppress(InputError):  # no task in common: the gate says so
                comparisons[name] = compare(*sides, confidence=confidence, days=days, **counting)
    return comparisons


# Do results meet a demand? Gates on files, on stored runs, and against baselines.


@takes(CountingTerms, more=True)
def gate(
    results: ResultsLike,
    require: GateLike | Sequence[GateLike] | None = (),
    *,
    against: str | Path | Trials | None = None,
    margin: float = MARGIN,
    suite: Suite | str | Path | None = None,
    only: Names = (),
    bars: Mapping[str, float] | float | None = None,
    confidence: float | None = None,
    **terms: Unpack[JudgeTerms],
) -> Verdicts:
    r"""Judge results by gates: PASS, FAIL or UNDECIDED, with the evidence.

    `require` are demands such as "pass^3 >= 0.8"; `confidence` and `terms` (scope, evidence,
    indifference, on_undecided and the like) hold for all of them. `against` are results, or a
    stored run, to be no worse than; `suite` adds the gates and bars of a suite.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,1\na,3,0\n")
    >>> gate(trials, "pass@1 >= 0.99").status
    'FAIL'
    """
    judged = JudgedResults(results, against)
    _refuse_errors_alone(choose_systems(judged.read[0], only))
    return judged.verdicts(
        require, margin=margin, suite=suite, only=only, bars=bars, confidence=confidence,
        **terms,
    )  # fmt: skip


def _refuse_errors_alone(trials: Trials) -> None:
    """Raise RunError if every trial errored: `run` gives no verdict then either."""
    from passhat.records import Outcome

    if (trials.outcome != Outcome.ERRORED).any() or not len(trials):
        return
    ((error, _),) = Counter(trial.error or "no reason is known" for trial in trials).most_common(1)
    which = f"all {plural(len(trials), 'trial')}" if len(trials) > 1 else "the only trial"
    raise RunError(f"{which} errored ({short(error, 200)}): there is nothing to judge")


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
        from passhat.records.trials import framed_trials

        against = framed_trials(against)
        if against is not None and not isinstance(against, Trials):
            against = arguments.path("against", against, "trials, a path or the name of a run")
        self.against = against
        read = trials_or_results(results)
        self._given = read if isinstance(read, Trials) else None
        own = read if isinstance(read, Results) else None
        if own is not None and len(own.paths) == 1 and is_store(own.paths[0]):
            # A history store that was named is the store, and its run the results.
            own = replace(own, paths=(own.run,), store=own.paths[0])
        self._results = own
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
        confidence: float | None,
        **terms: Unpack[JudgeTerms],
    ) -> Verdicts:
        """The verdicts of all gates, by the arguments of `gate`."""
        from passhat.analysis.gates.judge import judge

        loaded, (counting, of_gates) = _loaded(suite), _split(terms)
        gates = _gates(
            require, loaded, self.against, margin, {"confidence": confidence, **of_gates}
        )
        if loaded is not None and (replayed := self._replayed(loaded, gates)) is not None:
            assert self.run is not None, "what is replayed was stored"
            return as_decided(replayed, self.run)
        everybody = self.read[0]
        _refuse_unknown(gates, everybody, loaded)
        trials = choose_systems(everybody, only)
        named = _baselines_of(gates)
        left_out = {
            name: everybody.where(system=name)
            for name in everybody.systems
            if name not in trials.systems and name in named
        }
        verdicts = judge(
            trials,
            gates,
            bars=self.bars(bars, loaded, trials),
            baseline=left_out | self._named_baselines(gates, everybody.systems),
            days=self._days(gates, everybody.systems, **counting),
            looks=() if self.run is None else looks_at(self.run),
            **counting,
        )
        own = self._results
        counts_all = counting.get("errors", "fail") == "fail" and not bars
        if self.run is None or own is None or own.drop_rounds or own.shares or not counts_all:
            return verdicts
        return as_decided(verdicts, self.run)

    def bars(
        self, given: Mapping[str, float] | float | None, suite: Suite | None, trials: Trials
    ) -> Mapping[str, float] | float | None:
        """The bars that are given, and those of the suite that is named or that was run."""
        if suite is not None:
            return bars_beside(given, suite.bars, trials)
        return given if self._results is None else self._results.bars(given, trials)

    def baseline(self, given: str | Path | Trials, argument: str) -> Trials:
        """The trials of a file, or of a run other than the one that is judged."""
        from passhat.records import Trials

        if isinstance(given, Trials):
            return given
        name = str(given)
        if name not in self._baselines:
            self._baselines[name] = self._read_baseline(name, argument)
        return self._baselines[name]

    def days(self, given: str | Path | Trials, **counting: Unpack[CountingTerms]) -> Days | None:
        """How much runs differ from day to day, if the baseline is a stored run."""
        own, name = self._results, str(given)
        if own is None or not isinstance(given, str | Path):
            return None
        if is_there(name) or not store_is_there(own.store) or not own.names_a_run(name):
            return None
        return stored_days(
            replace(own, paths=(name,), names=()), name, self.run, counting.get("errors", "fail")
        )

    def _read_baseline(self, name: str, argument: str) -> Trials:
        """The baseline without the rounds to drop; its tasks weigh as those of the judged do."""
        own = self._results
        reading = Results(paths=(name,)) if own is None else replace(own, paths=(name,), names=())
        if not reading.names_a_run(name):
            judged = own.paths[0] if own is not None and len(own.paths) == 1 else ""
            if is_there(judged) and is_there(name) and Path(judged).samefile(name):
                raise ArgumentError(argument, "must name other results than those judged", name)
            trials = reading.whole()[0]
            check_one_score(self.read[0], trials)
            return reading.without_rounds(trials, baseline=True)
        from passhat.history.runs import named_baseline

        with open_store(reading.store) as history:
            named = reading.noted(named_baseline(history, name, judged=self.run))
            trials = without_changed(
                history.trials(named.run), history, named.run, self.run, reading.on_note
            )
            return reading.without_rounds(trials, baseline=True)

    def _named_baselines(self, gates: Sequence[Gate], systems: Sequence[str]) -> dict[str, Trials]:
        """The baseline of every demand that names none of these systems."""
        if self.against is not None:
            return {"": self.baseline(self.against, "against")}
        if self._results is None:
            return {}
        baselines = {}
        for name in sorted(_baselines_of(gates) - {*systems}):
            if not is_there(name) and not store_is_there(self._results.store):
                where = f"no file or folder, no agent of these results ({listed(systems, 5)})"
                sentence = (
                    f"no baseline is called {name!r}: it is {where}, and there is no history with "
                    f"a run of that name{typo_hint(name, systems)}"
                )
                raise ArgumentError("gate", "must name a baseline", name, sentence=sentence)
            baselines[name] = self.baseline(name, "no_worse_than")
        return baselines

    def _days(
        self, gates: Sequence[Gate], systems: Sequence[str], **counting: Unpack[CountingTerms]
    ) -> dict[str, Days]:
        if self.against is not None:
            named = {"": self.days(self.against, **counting)}
        else:
            others = _baselines_of(gates) - {*systems}
            named = {name: self.days(name, **counting) for name in others}
        return {name: days for name, days in named.items() if days is not None}

    def _replayed(self, suite: Suite, gates: Sequence[Gate]) -> Verdicts | None:
        """The verdicts of a stored run that its gates ended: from its journal, in its own order.

        A journal has every round: what is judged without some of them is read again. So is all that
        is asked by a bound which is not the suite's: nothing was run for it.
        """
        from passhat.analysis.gates.gate import parse_gate

        run, own = self.run, self._results
        if run is None or own is None or own.drop_rounds or own.shares:
            return None
        of_suite = {parse_gate(gate) for gate in suite.gates}
        if any(g.evidence in ("bound", "point") and g not in of_suite for g in gates):
            return None
        from passhat.analysis.gates.stopping import replay_run
        from passhat.history import RunJournal

        with open_store(own.store) as history:
            journal = RunJournal(history, run)
            tickets = journal.launched()
            if not any(ticket.stamp for ticket in tickets):
                return None
            asked = _as_asked_for(suite, run)
            baselines = self._named_baselines(gates, asked.systems)
            rule = stopping_rule(asked, gates, until_settled=True, baselines=baselines)
            if rule is None:
                return None
            return replay_run(rule, tickets, journal.finished())


def _as_asked_for(suite: Suite, run: Run) -> Suite:
    """The part of a suite, the trials of each task and the seed that a stored run was made with."""
    from passhat.journeys.run_request import RunRequest, apply_request

    try:
        return apply_request(suite, RunRequest.from_json(run.options))
    except ArgumentError as error:
        rule = f"must be the suite that run {run.key} was made with ({error})"
        raise ArgumentError("suite", rule, suite.name) from None


def _split(terms: JudgeTerms) -> tuple[CountingTerms, GateTerms]:
    counting = {key: value for key, value in terms.items() if key in CountingTerms.__annotations__}
    of_gates = {key: value for key, value in terms.items() if key not in counting}
    return cast(CountingTerms, counting), cast("GateTerms", of_gates)


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
    of_suite = [parse_gate(gate) for gate in (suite.gates if suite is not None else ())]
    gates += [_with_evidence(gate, given.get("evidence")) for gate in of_suite]
    if not gates:
        if suite is not None:
            raise InputError(
                "nothing is demanded: the suite has no `gates:`; add some to it, or give "
                "`require='pass^3 >= 0.8'` or `against=BASELINE`"
            )
        raise InputError("give a gate: `require='pass^3 >= 0.8'` or `against=OLD_RESULTS`")
    return _each_once(gates)


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


def _with_evidence(gate: Gate, evidence: Any) -> Gate:
    """A gate of a suite by the evidence that was asked for, unless it states its own."""
    from passhat.analysis.gates.gate import NoTaskWorseRequirement

    if evidence is None or gate.evidence or isinstance(gate.demand, NoTaskWorseRequirement):
        return gate
    return replace(gate, evidence=evidence)


def _with_terms(demand: GateLike, terms: Mapping[str, Any]) -> GateLike:
    """A demand with the terms that hold for all, less what one task by task cannot have."""
    if not isinstance(demand, str):
        return demand
    if "task worse" in demand:
        terms = {n: v for n, v in terms.items() if n not in ("evidence", "scope")}
    return {"require": demand, **terms}


# The gates of a run: those of the suite and of the request, and their baselines.


def gates_of(suite: Suite, require: Sequence[str]) -> tuple[Gate, ...]:
    """Every gate that is about something in the suite, those of the suite first."""
    return tuple(gate for gate in _parsed(suite, require) if _subjects(gate, suite))


def refuse_pointless(suite: Suite, require: Sequence[str]) -> None:
    """Refuse gates that could never be judged, before anything is paid for."""
    if not (gates := _parsed(suite, require)):
        return
    from passhat.analysis.gates.gate import BestOfRequirement, EveryTaskRequirement

    _refuse_unknown(gates, None, suite)
    spared = quarantined(suite)
    for gate in gates:
        about = f"gate {gate.label!r}"
        if gate.system is not None and gate.system not in suite.systems:
            rule = f"must name an agent of the suite ({', '.join(suite.systems)})"
            raise ArgumentError(about, rule, gate.system)
        subjects = _subjects(gate, suite)
        if not subjects and gate.at:
            words = sorted({word for p in suite.pairings for word in p.task.at})
            rule = f"must find tasks at its levels; there are {listed(words) or 'none'}"
            raise ArgumentError(about, rule, ", ".join(gate.at))
        if not subjects:
            known = listed(_names("tag", None, suite), 5)
            rule = f"must find a task with one of its tags; there are {known or 'none'}"
            raise ArgumentError(about, rule, ", ".join(gate.tags))
        demand = gate.demand
        if isinstance(demand, BestOfRequirement) and len(suite.systems) < 2:
            rule = "needs two agents or more to find the best of"
            raise ArgumentError(about, rule, len(suite.systems))
        if isinstance(demand, EveryTaskRequirement) and demand.bar is None:
            held = {p.task.name: p.task.bar for p in subjects if p.task.name not in spared}
            if without := [task for task, bar in held.items() if bar is None]:
                rule = (
                    "needs a `bar:` on every task or in `defaults:` (`bar: 0` demands nothing); "
                    f"{len(without):,} of {plural(len(held), 'task has', 'tasks have')} none: "
                    f"{few(without)}"
                )
                raise InputError(f"{about} {rule}")


def _refuse_unknown(gates: Sequence[Gate], trials: Trials | None, suite: Suite | None) -> None:
    """Refuse gates on a task, tag, level or step that neither the trials nor the suite have.

    No trials would decide one, and with `on_undecided: pass` a slip of the pen would pass.
    """
    from passhat.analysis.gates.gate import ThresholdRequirement
    from passhat.records.trial import is_made_by_runs

    for gate in gates:
        if not isinstance(gate.demand, ThresholdRequirement):
            continue
        for kind, name in gate.demand.target.names.items():
            known = _names(kind, trials, suite)
            if name not in known and not (kind == "tag" and is_made_by_runs(name)):
                sentence = f"gate {gate.label!r}: {no_task(name, known, kind=kind)}"
                raise ArgumentError("gate", f"must name a {kind} there is", name, sentence=sentence)


def _names(kind: str, trials: Trials | None, suite: Suite | None) -> list[str]:
    """The tasks, tags, levels or steps that trials and a suite have."""
    from passhat.records.trial import STEP_FAILED, STEP_PASSED, tags_of_tasks

    names: set[str] = set()
    tasks = () if suite is None else [pairing.task for pairing in suite.pairings]
    for task in tasks:
        level = () if task.level is None else (task.level,)
        steps = [step.name for step in task.steps]
        names.update({"task": (task.name,), "tag": task.tags, "level": level, "step": steps}[kind])
    if trials is None:
        return sorted(names)
    if kind == "task":
        names.update(trials.tasks)
    elif kind == "level":
        names.update(() if trials.level is None else trials.level.names)
    elif kind == "tag":
        names.update(tags_of_tasks(trials.words("tags")))
    else:
        marks = STEP_PASSED, STEP_FAILED
        words = (word for word in trials.words("tags") if word.startswith(marks))
        names.update(word.partition(":")[2] for word in words)
    return sorted(names)


def _parsed(suite: Suite, require: Sequence[str]) -> list[Gate]:
    if not suite.gates and not require:
        return []
    from passhat.analysis.gates.gate import parse_gate

    return _each_once([parse_gate(gate) for gate in (*suite.gates, *require)])


def _each_once(gates: Sequence[Gate]) -> list[Gate]:
    """Gates without those that another demands already, in other words or the same."""
    kept: dict[Gate, Gate] = {}
    for gate in gates:
        kept.setdefault(replace(gate, require="", name=None), gate)
    return list(kept.values())


def _subjects(gate: Gate, suite: Suite) -> list[Pairing]:
    """The pairings that a gate is about: at the levels that it names, else as tasks are."""
    return [
        pairing
        for pairing in pairings_at(suite, gate.at)
        if gate.system in (None, pairing.system.name)
        and (not gate.tags or set(gate.tags) & set(pairing.task.tags))
    ]


def stopping_rule(
    suite: Suite,
    gates: Sequence[Gate],
    *,
    until_settled: bool,
    baselines: Mapping[str, Trials] | None = None,
) -> StoppingRule | None:
    """The rule that ends the run when every gate is settled; None for a fixed number of runs."""
    if not is_sequential(gates, until_settled=until_settled):
        return None
    if has_levels(suite):
        return None  # its levels are compared, and gates judge the first: it needs all its runs
    from passhat.analysis.gates.stopping import StoppingRule

    return StoppingRule(
        suite.pairings,
        [_capped(gate, suite) for gate in gates] if until_settled else gates,
        until_settled=until_settled,
        quarantined=sorted(quarantined(suite)),
        baselines=baselines,
        seed=suite.seed,
    )


def has_levels(suite: Suite) -> bool:
    """Whether tasks run under other conditions too: another user, another wording, faults."""
    return len(plain_pairings(suite)) < len(suite.pairings)


def at_most(suite: Suite, rule: StoppingRule) -> str:
    """The size of a run that ends when its gates are settled: `3 tasks, 1 agent, at most ...`."""
    return f"{suite.size.rpartition(', ')[0]}, at most {plural(rule.planned, 'trial')}"


def is_sequential(gates: Sequence[Gate], *, until_settled: bool) -> bool:
    """Whether evidence decides how many trials are run."""
    return bool(gates) and (until_settled or any(g.evidence == "sequential" for g in gates))


def _capped(gate: Gate, suite: Suite) -> Gate:
    """A gate that only the request makes sequential runs no more trials than the suite."""
    if gate.evidence is not None or gate.max_runs is not None:
        return gate
    from passhat.analysis.gates.gate import BestOfRequirement, NoWorseRequirement
    from passhat.analysis.gates.rounds import decides_in_rounds

    if decides_in_rounds(gate, len(suite.tasks)) or suite.runs_once:
        return gate  # it takes its rounds from the suite, or from the demand
    contest = isinstance(gate.demand, BestOfRequirement)
    systems = [gate.system] if gate.system is not None and not contest else suite.systems
    trials = [sum(p.runs for p in suite.pairings if p.system.name == s) for s in systems]
    if contest:  # every draw costs a run of each
        return replace(gate, max_runs=sum(trials))
    pair = 2 if isinstance(gate.demand, NoWorseRequirement) else 1
    return replace(gate, max_runs=pair * max(trials))


def verdicts_on(
    trials: Trials,
    gates: Sequence[Gate],
    suite: Suite,
    *,
    baselines: Mapping[str, Trials],
    days: Mapping[str, Days] | None = None,
    judged_at: Sequence[int] = (),
) -> Verdicts | None:
    """The verdicts on the trials of a finished run; None if there is no gate.

    `judged_at` says after how many trials they were judged before.
    """
    if not gates:
        return None
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.gates.judge import judge

    judged = [
        judge(
            trials,
            list(alike),
            bars=bars_beside(None, suite.bars, trials),
            baseline=baselines or None,
            planned={(p.system.name, p.task.name): p.runs for p in pairings_at(suite, at)},
            quarantined=sorted(quarantined(suite)),
            seed=suite.seed,
            days=days,
            looks=(*judged_at, suite.trials),
        )
        for at, alike in groupby(gates, key=lambda gate: gate.at)
    ]
    return Verdicts(tuple(verdict for verdicts in judged for verdict in verdicts))


def too_few_to_pass(
    gates: Sequence[Gate], suite: Suite, *, until_settled: bool = False
) -> str | None:
    """The first gate that no agent can PASS with the trials planned, and how many would do."""
    if not gates:
        return None  # before numbers are loaded
    from passhat.analysis.gates.fixed_sample import counts_passes, fewest_runs, flawless_needs
    from passhat.analysis.gates.gate import ThresholdRequirement
    from passhat.analysis.gates.rounds import can_pass

    left_out = quarantined(suite)
    for gate in gates:
        demand = gate.demand
        if not isinstance(demand, ThresholdRequirement) or not demand.upward:
            continue
        if not counts_passes(gate) or gate.indifference is not None or gate.evidence == "point":
            continue
        stops = until_settled or gate.evidence == "sequential"
        for system in suite.systems if gate.system is None else (gate.system,):
            runs = {
                pairing.task.name: pairing.runs
                for pairing in _subjects(gate, suite)
                if pairing.system.name == system and pairing.task.name not in left_out
            }
            by_demand = suite.runs_once or (len(runs) == 1 and gate.evidence and not gate.max_runs)
            if not runs or (stops and by_demand):
                continue  # no task is gated, or the number of trials follows from the demand
            if can_pass(gate, runs, until_decided=stops):
                continue
            words = f"{plural(sum(runs.values()), 'trial')} can never PASS {gate.require}"
            unlimited = replace(gate, max_runs=None)

            def are_enough(
                each: int,
                gate: Gate = unlimited,
                tasks: Mapping[str, int] = runs,
                stops: bool = stops,
            ) -> bool:
                return can_pass(gate, dict.fromkeys(tasks, each), until_decided=stops)

            enough = fewest_runs(are_enough, least=max(2, *runs.values()))
            return f"{words}: {flawless_needs(enough, len(runs))}"
    return None


def quarantined(suite: Suite) -> dict[str, str]:
    """The tasks whose quarantine is in force, each with the words for it."""
    today = datetime.now(tz=UTC).date()
    return {
        entry.task: f"in quarantine until {entry.until}"
        + (f": {entry.reason}" * bool(entry.reason))
        for entry in suite.quarantine
        if entry.in_force(today)
    }


def floored(suite: Suite) -> frozenset[str]:
    """The tasks that are judged by their floor alone: they expect nothing else."""
    return frozenset(
        task.name
        for task in suite.tasks
        if task.tool_selection is not None and not task.expect and not task.steps
    )


def baselines_of(
    gates: Sequence[Gate], suite: Suite, opened: OpenRun, arms: Arms
) -> dict[str, Trials]:
    """The runs that gates compare with, from the history: by tag, branch, commit or key.

    An agent of the suite that is not run this time is taken from the newest run that has it as it
    is now, by its `arms`.
    """
    baselines = {}
    for name in baseline_names(gates, suite):
        history, run = opened.baseline(name, arms.get(name))
        trials = without_changed(history.trials(run), history, run, opened.run)
        baselines[name] = trials.where(system=name) if name in arms else trials
    return baselines


def days_of_baselines(
    gates: Sequence[Gate], suite: Suite, opened: OpenRun, arms: Arms
) -> dict[str, Days]:
    """How much runs of the suite differ from day to day, for each of these baselines."""
    return {
        name: days_around(
            *opened.baseline(name, arms.get(name)),
            opened.run,
            "fail",
            system=name if name in arms else None,
        )
        for name in baseline_names(gates, suite)
    }


def resting_arms(gates: Sequence[Gate], suite: Suite, whole: Suite) -> Arms:
    """The agents that gates compare with and that are in the whole suite, but not run this time."""
    from passhat.runner.preflight import arm_of

    tasks = {task.name for task in suite.tasks}
    kept = replace(whole, pairings=tuple(p for p in whole.pairings if p.task.name in tasks))
    names = [name for name in baseline_names(gates, suite) if name in kept.systems]
    return {name: arm_of(kept, name) for name in names}


def baseline_names(gates: Sequence[Gate], suite: Suite) -> list[str]:
    """What gates compare with beside the agents that are run."""
    names = [getattr(gate.demand, "baseline", None) for gate in gates]
    return list(dict.fromkeys(name for name in names if name and name not in suite.systems))
