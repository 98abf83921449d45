"""What results say: report, compare, rank, profile, plan, explain, and how stored runs changed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from passhat import arguments
from passhat.arguments import (
    COMPARED_KS,
    CONFIDENCE,
    PROFILE_KS,
    SEED,
    STORE,
    AnalysisTerms,
    ReportTerms,
    takes,
)
from passhat.errors import ArgumentError, HistoryError, InputError
from passhat.journeys.results import (
    Names,
    Results,
    ResultsLike,
    check_one_score,
    choose_systems,
    chosen_names,
    is_store,
    is_there,
    open_store,
    renamed,
    subjects_of,
    trials_of,
    trials_or_results,
)
from passhat.journeys.run_store import changed_tasks, suite_name, without_changed
from passhat.journeys.stored_runs import (
    counted_run,
    days_between,
    runs_of_trend,
    stored_gates,
    tallies_of,
)
from passhat.messages import listed, no_task, plural, short_path
from passhat.records.trial import ended_early, first_number

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison, Days
    from passhat.analysis.comparing.ranking import Frontier, Profile, RankReport
    from passhat.analysis.comparing.trends import CountedRun, FlakyTasks, Trends
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.explaining.run_diff import RunDiff
    from passhat.analysis.gates.gate_plan import GatePlan
    from passhat.analysis.planning.label_plan import LabelPlan
    from passhat.analysis.planning.plan import Plan, Spending
    from passhat.analysis.reports.report import Report
    from passhat.history import History
    from passhat.records import Duplicates, ErrorPolicy, Tally, Transcripts, Trials
    from passhat.records.transcript import TranscriptKey

LARGEST_ICC = 0.95
"""The largest share of spread between tasks that a gate is planned with: at 1 runs never differ."""


@takes(ReportTerms)
def report(
    results: ResultsLike,
    *,
    only: Names = (),
    bars: Mapping[str, float] | float | None = None,
    **terms: Unpack[ReportTerms],
) -> Report:
    r"""How reliable is the agent in these results?

    `results` are paths of files that any supported tool wrote, stored runs, a data frame whose
    columns are found as in files, or trials; `only` is one of their agents, or several.
    `bars` are those of `measure`, beside the bars of the suite that a stored run is of.

    >>> from passhat.ingest import read_trials
    >>> trials = read_trials(b"task,trial,passed\na,1,1\na,2,0\n")
    >>> report(trials, ks=[1, 2]).systems[0].pass_hat(2).this_suite.value
    0.0
    """
    from passhat.analysis.reports.measure import measure
    from passhat.records import Tally

    subjects = subjects_of(results, only)
    counts = isinstance(results, Sequence) and any(isinstance(result, Tally) for result in results)
    if not counts and isinstance(read := trials_or_results(results), Results):
        bars = read.bars(bars, subjects)
    measured = measure(subjects, bars=bars, **terms)
    return measured.about(*results.asked_streak()) if isinstance(results, Results) else measured


@takes(ReportTerms)
def compare(
    results: ResultsLike | Tally,
    *others: ResultsLike | Tally,
    only: Names = (),
    margin: float | None = None,
    by: str | None = None,
    days: Days | None = None,
    **terms: Unpack[ReportTerms],
) -> Comparison | RankReport | Frontier:
    """Is one agent better than another, on the same tasks? More than two are ranked, `by` a metric.

    `by` "cost", "tokens" or "seconds" (or "latency") says which agents may be on the frontier of
    that and pass^k.

    `others` are further results, or names of agents in `results`: compare(new, old), or
    compare(trials, "a", "b"). The difference is the first minus the second. Two results with one
    agent each are the two sides, and so are two with several agents if `only` names one that both
    hold; otherwise each agent is a side. If a side is a stored run, the interval includes the
    spread between `days`, from five stored runs of the suite on.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> trials = simulate(tasks=30, runs=10, rate={"new": 0.9, "old": 0.6, "older": 0.5}, seed=3)
    >>> compare(trials, "new", "old").headline.answer("this suite")
    'better'
    """
    from passhat.analysis.comparing import comparison

    read, chosen = _beside(results, others, arguments.names("only", only))
    sides, held = _sides(read, chosen)
    if (by := "seconds" if by == "latency" else by) in PRICES:
        return _frontier(_together(sides), by, **terms)
    if len(sides) > 2:
        return rank_results(_together(sides), by=by, **terms)
    if by is not None:
        terms["ks"] = _ks_of(by)
    if days is None and isinstance(read, Results) and len(read.paths) == 2 and len({*chosen}) <= 1:
        days = days_between(read, terms.get("errors", "fail"))
    answer = comparison.compare(*sides, margin=margin, days=days, **terms)
    if held > len(sides):  # picked after looking: some of many pairs differ by chance
        note = (
            f"this is 1 of the {held * (held - 1) // 2:,} pairs of the {held:,} agents in these "
            "results, looked at alone; a comparison of them all holds for all of them together"
        )
        answer = replace(answer, notes=(*answer.notes, note))
    if isinstance(read, Results) and (same := _same_results(read.paths, sides)):
        answer = replace(answer, notes=(*answer.notes, same))
    return answer


def _same_results(paths: Sequence[str], sides: Sequence[Trials | Tally]) -> str | None:
    """That two results are the same, by their names or their bytes; None if they are not."""
    if len(paths) != 2:
        return None
    if paths[0] == paths[1]:
        return f"{short_path(paths[0])} is compared with itself"
    first, second = ([source.sha256 or source.name for source in side.sources] for side in sides)
    if len(first) != 1 or first != second:
        return None
    return f"{short_path(paths[0])} and {short_path(paths[1])} are the same results"


def _frontier(
    trials: Trials | list[Tally],
    by: str,
    *,
    ks: int | Sequence[int] | None = None,
    **terms: Unpack[AnalysisTerms],
) -> Frontier:
    from passhat.analysis.comparing.ranking import find_frontier
    from passhat.stats.estimate import Unavailable

    k = None if ks is None else int(usual_metric(ks).removeprefix("pass^"))
    frontier = find_frontier(trials, by=by, k=k, **terms)
    if isinstance(frontier, Unavailable):
        raise InputError(frontier.reason)
    return frontier


@takes(AnalysisTerms)
def rank_results(
    results: ResultsLike,
    *,
    only: Names = (),
    by: str | None = None,
    ks: int | Sequence[int] | None = None,
    **terms: Unpack[AnalysisTerms],
) -> RankReport:
    """Which of several agents are ahead, and which are tied?

    `by` is mean_score, pass^k or pass@k; without it, pass^k of the largest of `ks`, or mean_score.
    """
    from passhat.analysis.comparing.ranking import rank
    from passhat.stats.estimate import Unavailable

    answer = rank(subjects_of(results, only), by=by or usual_metric(ks), **terms)
    if isinstance(answer, Unavailable):
        raise InputError(answer.reason)
    return answer


@takes(ReportTerms)
def profile_results(
    results: ResultsLike,
    *,
    against: ResultsLike | None = None,
    only: Names = None,
    **terms: Unpack[ReportTerms],
) -> Profile:
    """How does an agent compare with others: those of `against`, or the others in `results`?"""
    from passhat.analysis.comparing.ranking import profile

    trials = trials_of(results)
    chosen = choose_systems(trials, only)
    if len(chosen.systems) > 1:
        raise _several("a profile is of one agent", chosen.systems)
    if against is None and len(trials.systems) == 1:
        raise InputError(
            f"there is only the agent {trials.systems[0]!r}: name others to compare it with, "
            "`against=REFERENCE`"
        )
    others = trials if against is None else trials_of(against, argument="against")
    terms["ks"] = terms.get("ks") or PROFILE_KS
    return profile(chosen, others, **terms)


class PlanTerms(TypedDict, total=False):
    """What a plan is for and what it assumes."""

    tasks: int | None
    runs: int | None
    half_width: float
    assurance: float
    difference: float | None
    power: float
    rate: float | None
    task_correlation: float
    cost_ratio: float | None
    confidence: float
    errors: ErrorPolicy


@arguments.in_screen_words
def plan(
    results: ResultsLike | Tally | None = None,
    *,
    only: Names = None,
    correlation: float | None = None,
    spending: Spending | None = None,
    k: int = 1,
    **terms: Unpack[PlanTerms],
) -> Plan:
    """How many trials and tasks does an answer need? From guesses, or from results you have.

    `rate` is the expected pass rate and `correlation` the ICC: how far the task decides the
    outcome. `half_width` is the wanted precision of the mean, `difference` the difference of two
    agents to detect. `cost_ratio` is what a new task costs, in trials of one. With `k` both are of
    pass^k; `assurance` is the share of reports that are to be as narrow as asked.

    >>> planned = plan(tasks=50, runs=5, half_width=0.05)
    >>> planned.one_task_runs, planned.chosen.tasks_needed
    (385, 231)
    """
    from passhat.analysis.planning import plan as planning

    arguments.refuse_unknown("plan", terms, PlanTerms.__annotations__)
    known, notes = _lowest_agent(results, only)
    ended = [] if known is None else ended_early(known.sources)
    if ended and terms.get("rate") is None:
        raise ArgumentError("rate", f"must be given: {ended[0]}", None)
    planned = planning.plan(known, correlation=correlation, spending=spending, k=k, **terms)
    return replace(planned, notes=(*notes, *planned.notes))


@arguments.in_screen_words
def plan_gates(
    require: str | Sequence[str],
    results: ResultsLike | Tally | None = None,
    *,
    only: Names = None,
    tasks: int | None = None,
    runs: int | None = None,
    icc: float | None = None,
    indifference: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> list[GatePlan]:
    """What will each gate cost, on as many tasks as the results have or as `tasks` says?

    With at most `runs` of each task, as a suite states them; else as many as the gate asks for.
    """
    from passhat.analysis.gates.gate import parse_gate
    from passhat.analysis.gates.gate_plan import plan_gate
    from passhat.analysis.gates.sequential import systems_of
    from passhat.analysis.planning import plan as planning

    demands = arguments.names("require", require, arguments.DEMANDS)
    if not demands:
        raise ArgumentError("require", "must hold at least one demand", require)
    if icc is not None:
        arguments.probability("icc", icc)
    # The spread between tasks is the given, the observed or the usual one.
    known, notes = _lowest_agent(results, only)
    base = planning.plan(known, tasks=tasks, correlation=icc)
    terms = {"indifference": indifference, "confidence": confidence}
    parsed = [parse_gate({"require": demand, **terms}) for demand in demands]
    if runs is not None:
        most = arguments.whole_number("runs", runs) * base.chosen.tasks
        parsed = [replace(gate, max_runs=most * systems_of(gate)) for gate in parsed]
    planned = (
        plan_gate(
            gate,
            tasks=base.chosen.tasks,
            icc=min(base.assumptions.icc, LARGEST_ICC),
            seed=seed,
        )
        for gate in parsed
    )
    return [replace(gate_plan, notes=notes) for gate_plan in planned]


@arguments.in_screen_words
def plan_labels(
    judge: str,
    results: ResultsLike | None = None,
    *,
    only: Names = None,
    rate: float | None = None,
    tasks: int | None = None,
    runs: int | None = None,
    half_width: float | None = None,
    gates: str | Sequence[str] = (),
    difference: float | None = None,
    k: int = 1,
    icc: float | None = None,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> list[LabelPlan]:
    """How many labels and trials does a number take that rests on a judge?

    `judge` is how much it passes of what is right, and fails of what is wrong, such as "0.9,0.85";
    or "labels", as the labels in the results show it. For a width, a difference or each of `gates`.

    >>> plan_labels("0.9,0.85", rate=0.8, tasks=50, runs=10)[0].rows[0].labels
    152
    """
    from passhat.analysis.planning import label_plan
    from passhat.analysis.reports.metrics import SystemTrials
    from passhat.stats.sample_size import GUESSED_ICC

    known = None if results is None else trials_of(results, only)
    if known is not None and len(known.systems) > 1:
        raise _several("labels are planned for one agent", known.systems)
    side = None if known is None else SystemTrials.of(known)
    if judge == "labels":
        labels = None if side is None else side.labels
        if labels is None:
            rule = "must be two shares such as 0.9,0.85, as the results have no label"
            raise ArgumentError("judge", rule, judge)
        quality = label_plan.JudgeQuality.measured(labels)
    else:
        quality = label_plan.JudgeQuality.expected(
            *_judge_shares(judge, DEFAULT_RATE if rate is None else rate)
        )
    evidence = None if side is None else side.evidence
    demands = arguments.names("gates", gates, arguments.DEMANDS)
    plan_for = partial(
        label_plan.plan_labels,
        quality,
        tasks=tasks or (DEFAULT_TASKS if evidence is None else len(evidence.tasks)),
        runs=runs or (DEFAULT_RUNS if evidence is None else evidence.typical_runs),
        icc=GUESSED_ICC if icc is None else arguments.probability("icc", icc),
        confidence=confidence,
        seed=seed,
    )
    if demands:
        return [plan_for(gate=demand) for demand in demands]
    return [plan_for(half_width=half_width, difference=difference, k=k)]


DEFAULT_RATE, DEFAULT_TASKS, DEFAULT_RUNS = 0.8, 20, 10
"""What a plan of labels assumes where nobody says: pass@1, tasks, and trials of each."""


def _judge_shares(judge: str, rate: float) -> tuple[float, float, float]:
    parts = str(judge).split(",")
    rule = 'must be two shares such as "0.9,0.85" (right passed, wrong failed), or "labels"'
    try:
        shares = [float(part) for part in parts]
    except ValueError:
        raise ArgumentError("judge", rule, judge) from None
    if len(shares) != 2 or not all(0 <= share <= 1 for share in shares) or sum(shares) <= 1:
        more = f"{rule}; together more than 1, or its verdicts say nothing"
        raise ArgumentError("judge", more, judge)
    return arguments.probability("rate", rate), shares[0], shares[1]


PRICES = ("cost", "tokens", "seconds")
"""What `by` may weigh pass^k against."""


def usual_metric(ks: int | Sequence[int] | None) -> str:
    """The metric that agents are ranked by unless another is named.

    >>> usual_metric((1, 3)), usual_metric(2), usual_metric(None)
    ('pass^3', 'pass^2', 'mean_score')
    """
    if ks is None:
        return "mean_score"
    asked = arguments.ascending("ks", ks)
    return f"pass^{asked[-1]}" if asked else "mean_score"


def _ks_of(by: str) -> tuple[int, ...] | None:
    """The k of a comparison of two whose verdict is about a metric.

    >>> _ks_of("pass^7"), _ks_of("mean_score")
    ((1, 2, 3, 4, 5, 7), None)
    """
    if by in ("mean_score", "pass@1", "pass^1"):
        return None
    if (match := re.fullmatch(r"pass\^([1-9]\d*)", by)) is None:
        raise ArgumentError("by", "must be pass^k, pass@1 or mean_score for two agents", by)
    k = int(match[1])
    return tuple(sorted({*(length for length in COMPARED_KS if length < k), k}))


def _lowest_agent(
    results: ResultsLike | Tally | None, only: Names
) -> tuple[Trials | Tally | None, tuple[str, ...]]:
    """What a plan is made from; of several agents the one that passes least, and a note of it."""
    from passhat.analysis.reports.evidence import count_evidence
    from passhat.records import Tally

    if results is None or isinstance(results, Tally):
        return results, ()
    trials = trials_of(results, only)
    names = trials.systems
    if len(names) < 2:
        return trials, ()
    agents = {name: trials.where(system=name) for name in names}

    def mean(name: str) -> float:
        evidence = count_evidence(agents[name].tally())
        return float((evidence.passes / evidence.runs).mean())

    lowest = min(names, key=mean)
    note = f"planned for {lowest}, which has the lowest pass@1 of {len(names):,} agents"
    return agents[lowest], (note,)


def _several(rule: str, systems: Sequence[str]) -> InputError:
    return InputError(
        f"{rule}; there are {len(systems):,}: {listed(systems)}. Name one with `only=AGENT`"
    )


def _beside(
    results: ResultsLike | Tally, others: Sequence[ResultsLike | Tally], only: Sequence[str]
) -> tuple[Results | Trials | list[Trials | Tally], Sequence[str]]:
    """What is compared, and the agents that were named: as `only`, or beside the results."""
    from passhat.records import Tally, Trials

    first = results if isinstance(results, Tally) else trials_or_results(results)
    if not others:
        return (first, only) if not isinstance(first, Tally) else ([first], only)
    words = [os.fspath(other) for other in others if isinstance(other, str | os.PathLike)]
    if len(words) == len(others) and not isinstance(first, Tally):
        reading = first if isinstance(first, Results) else Results(paths=())
        if not any(is_there(word) or reading.is_stored(word) for word in words):
            held = trials_of(first)
            if isinstance(first, Trials) or set(words) <= set(held.systems):
                return held, words
        if isinstance(first, Results):
            return replace(first, paths=(*first.paths, *words)), only
    sides = [p if isinstance(p, Tally) else trials_of(p, only) for p in (first, *others)]
    return _distinct(sides), only


def _distinct(sides: Sequence[Trials | Tally]) -> list[Trials | Tally]:
    """Results with one agent each; where two have the same name, by their place."""
    from passhat.records import Tally

    names: list[str] = []
    for side in sides:
        held = _agents(side)
        if len(held) != 1:
            raise _several("each of several results holds one agent", held)
        names.append(held[0])
    named: list[Trials | Tally] = []
    for place, (side, name) in enumerate(zip(sides, names, strict=True), start=1):
        label = f"{name} ({place})" if names.count(name) > 1 else name
        if isinstance(side, Tally):
            named.append(replace(side, system=label))
        else:
            named.append(renamed(side, label))
    return named


def _agents(side: Trials | Tally) -> tuple[str, ...]:
    from passhat.records import Tally

    return (side.system,) if isinstance(side, Tally) else side.systems


def _refuse_one(agents: Sequence[str]) -> None:
    if len(agents) < 2:
        raise InputError(
            f"comparing needs two agents; there is only {agents[0]!r}: add the results of another"
        )


def _together(sides: Sequence[Trials | Tally]) -> Trials | list[Tally]:
    """The sides as one table; as counts where one of them is."""
    from passhat.records import Trials

    tables = [side for side in sides if isinstance(side, Trials)]
    if len(tables) == len(sides):
        return Trials.concat(tables, duplicates=None)
    return [side.tally() if isinstance(side, Trials) else side for side in sides]


def _sides(
    results: Results | Trials | list[Trials | Tally], only: Sequence[str]
) -> tuple[Sequence[Trials | Tally], int]:
    """The sides of a comparison, and how many agents the results hold."""
    if isinstance(results, list):
        _refuse_one([name for side in results for name in _agents(side)])
        return results, len(results)
    if isinstance(results, Results) and len(results.paths) == 2:
        parts = [part.trials() for part in results.each()]
        check_one_score(*parts)
        parts[1] = _as_in_first(parts[1], results)
        if len(set(only)) == 1 and all(only[0] in part.systems for part in parts):
            parts = [part.where(system=only[0]) for part in parts]
        if len(set(only)) < 2 and all(len(part.systems) == 1 for part in parts):
            return _told_apart(parts, results), 2
        _refuse_before_and_after(parts, results.duplicates)
    if isinstance(results, Results) and len(results.paths) > 2 and not only:
        alike = _of_one_agent(results)
        if alike is not None:
            return alike, len(alike)
    every = trials_of(results)
    trials = choose_systems(every, only)
    sides = tuple(dict.fromkeys(only)) or _baseline_last(results, trials.systems)
    _refuse_one(sides)
    return [trials.where(system=name) for name in sides], len(every.systems)


def _as_in_first(trials: Trials, results: Results) -> Trials:
    """The trials of the second of two stored runs, at the tasks that expect the same in both."""
    first, second = results.each()
    if not (results.names_a_run(first.paths[0]) and results.names_a_run(second.paths[0])):
        return trials
    with first.open_stored() as (history, judged), second.open_stored() as (_, named):
        return without_changed(trials, history, named.run, judged.run, results.on_note)


def _baseline_last(results: Results | Trials, agents: tuple[str, ...]) -> tuple[str, ...]:
    """The agents of one stored run; of two, the one that its gates compare with is the second.

    So `compare` has the sign that `run` and `gate` show, whichever agent was run first.
    """
    if len(agents) != 2 or not isinstance(results, Results) or len(results.paths) != 1:
        return agents
    if not results.names_a_run(results.paths[0]):
        return agents
    from passhat.analysis.gates.gate import parse_gate
    from passhat.history.runs import named_run

    with open_store(results.store) as history:
        gates = stored_gates(named_run(history, results.paths[0]).run)
    named = set()
    for gate in gates:
        with suppress(ArgumentError):  # written before the sentences of today
            named.add(getattr(parse_gate(gate.require).demand, "baseline", None))
    return agents[::-1] if agents[0] in named and agents[1] not in named else agents


def compared_transcripts(results: Results, answer: Comparison) -> tuple[Trials, Transcripts]:
    """The trials of both sides and what was said in them, by the names the comparison gives."""
    from passhat.records import Trials
    from passhat.records.transcript import CleanTexts

    if len(results.paths) != 2:
        return results.with_transcripts()
    transcripts: dict[TranscriptKey, str] = {}
    tables = []
    for part, name in zip(results.each(), (answer.first, answer.second), strict=True):
        trials, texts = part.with_transcripts()
        own = next((s for s in trials.systems if name in (s, *_renamings(s, results))), "")
        tables.append(renamed(trials.where(system=own), name))
        kept = CleanTexts.joined([texts])
        transcripts |= {(name, key[1], key[2]): kept.kept(key) for key in kept if key[0] == own}
    return Trials.concat(tables, duplicates=None), CleanTexts(transcripts)


def _renamings(name: str, results: Results) -> list[str]:
    """What an agent is called that is in both of two results."""
    return [f"{name} ({label})" for label in _labels(results.paths)]


def _refuse_before_and_after(parts: Sequence[Trials], duplicates: Duplicates) -> None:
    """Two results with the same runs of the same agents are not one table of several agents."""
    from passhat.records import Trials

    both = [name for name in parts[0].systems if name in parts[1].systems]
    if not both:
        return
    try:
        Trials.concat(parts, duplicates=duplicates)
    except ArgumentError as error:
        raise InputError(
            f"both results hold {listed(both)}: name the agent to compare with itself, before and "
            "after, with `only=AGENT`"
        ) from error


def _of_one_agent(results: Results) -> Sequence[Trials] | None:
    """Three files or more that hold one agent under the same name, told apart as two are."""
    if any(map(results.is_stored, results.paths)) or results.names:
        return None
    parts = []
    for part in results.each():  # mostly the second file tells that there are several agents
        parts.append(part.trials())
        if len({name for held in parts for name in held.systems}) > 1:
            return None
    given = [tuple(source.sha256 or source.name for source in part.sources) for part in parts]
    if len(set(given)) < len(given):
        return None  # one was given twice, which reading them together refuses
    check_one_score(*parts)
    return _told_apart(parts, results)


def _told_apart(parts: list[Trials], results: Results) -> list[Trials]:
    """Names for two runs of one agent: those of their files, or another difference."""
    if parts[0].systems != parts[1].systems:
        return parts
    return [
        renamed(part, name)
        for part, name in zip(parts, _renamings(parts[0].systems[0], results), strict=True)
    ]


def _labels(paths: Sequence[str]) -> list[str]:
    """File names, else whole paths, else the one path numbered.

    >>> _labels(["a/new.eval", "a/old.eval"]), _labels(["a/run.eval", "b/run.eval"])
    (['new.eval', 'old.eval'], ['a/run.eval', 'b/run.eval'])
    >>> _labels(["a/run.eval", "a/run.eval"])
    ['run.eval, first', 'run.eval, second']
    """
    files = [Path(path).name for path in paths]
    if len(set(files)) == len(files):
        return files
    if len(set(paths)) == len(paths):
        return list(paths)
    return [f"{file}, {place}" for file, place in zip(files, ("first", "second"), strict=True)]


# Why runs fail: what failing runs do that passing ones do not, and two runs side by side.


ALPHA = 0.05
"""How often a cause may be named although failing is pure luck."""

MOST_COMPARED = 2**25
"""Of a file of more than 32 MiB the transcripts of some trials are compared: two thousand or so,
which shows any cause that matters, and takes ten seconds."""

MOST_RUNS = 12
"""Numbers of runs that a message lists."""


def why(
    results: ResultsLike,
    transcripts: Transcripts | None = None,
    *,
    task: str | None = None,
    only: Names = (),
    alpha: float = ALPHA,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Explanation:
    """What do failing runs do that passing runs of the same task do not?

    Files and stored runs have transcripts; of trials or a data frame they are given beside them,
    as `read_with_transcripts` reads them.
    """
    from passhat.analysis.explaining.explain import explain

    read = trials_or_results(results)
    if not isinstance(read, Results):
        trials, transcripts = read, {} if transcripts is None else transcripts
    elif transcripts is None:
        trials, transcripts = read.with_transcripts(task=task, most=MOST_COMPARED)
    else:
        rule = "must be left out with files and stored runs, which have their own"
        raise ArgumentError("transcripts", rule, transcripts)
    chosen = choose_systems(trials, only)
    if task is not None:
        if task not in chosen.tasks:
            sentence = no_task(task, chosen.tasks)
            raise ArgumentError("task", "must be a task of the results", task, sentence=sentence)
        chosen = chosen.where(task=task)
    return explain(chosen, transcripts, alpha=alpha, confidence=confidence, seed=seed)


def diff_trials(
    results: ResultsLike,
    task: str,
    left: int | None = None,
    right: int | None = None,
    *,
    only: Names = None,
) -> RunDiff:
    """Two runs of a task side by side; by default a failing run and the nearest passing one.

    `left` and `right` are the numbers that people see, counted from 1.
    """
    from passhat.analysis.explaining.run_diff import diff_runs

    read = trials_or_results(results)
    if not isinstance(read, Results):
        rule = "must be paths or names of runs, which have transcripts; trials have none"
        raise ArgumentError("results", rule, results)
    trials, transcripts = read.with_transcripts(task=task, most=None)
    system = arguments.one_name("only", only)
    chosen_names(system, trials.systems)  # refuses one that is not there
    first = first_number(trials.trial.tolist())
    known = [trial - first + 1 for trial in sorted(set(trials.where(task=task).trial.tolist()))]
    for name, number in (("left", left), ("right", right)):
        if number is not None and known and number not in known:
            rule = f"must be the number of a trial: {listed(list(map(str, known)), MOST_RUNS)}"
            raise ArgumentError(name, rule, number)
    numbers = (None if number is None else number - 1 + first for number in (left, right))
    return diff_runs(trials, transcripts, task, *numbers, system=system)


# How reliability changed over the stored runs of a suite, and which tasks are flaky.


MOST_SUITES = 20
"""Suites that a message names."""

LAST, FLAKY_LAST = 50, 20
"""How many stored runs a trend and `flaky` look at by default."""


def trend(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = LAST,
    only: Names = (),
    k: int | None = None,
    confidence: float = CONFIDENCE,
    on_note: Callable[[str], None] | None = None,
) -> Trends:
    """How did the reliability of each agent change over the newest `last` runs of a suite?

    Tasks are left out of the runs in which they expected something else; `on_note` is told.
    """
    from passhat.analysis.comparing.trends import trends

    if suite is not None:
        rule = "must be the name of a suite whose runs are stored; passhat.report takes results"
        arguments.instance("suite", suite, str, rule)
    with _read_runs("passhat trend", suite, store, branch, last, only, on_note) as runs:
        if k is None:  # what the gates of the newest run ask about, as its report does
            asked, _ = Results(paths=(runs[-1].key,), store=store).asked_streak()
            fewest = min(int(tally.runs().min()) for run in runs for tally in run.tallies)
            k = asked if asked is not None and 1 < asked <= fewest else None
        return trends(runs, k=k, confidence=confidence)


def flaky_tasks(
    suite: str | None = None,
    *,
    store: str | Path = STORE,
    branch: str | None = None,
    last: int = FLAKY_LAST,
    only: Names = (),
    confidence: float = CONFIDENCE,
    on_note: Callable[[str], None] | None = None,
) -> FlakyTasks:
    """Which tasks passed and failed over the newest `last` runs of a suite?"""
    from passhat.analysis.comparing.trends import find_flaky

    with _read_runs("passhat trend --tasks", suite, store, branch, last, only, on_note) as runs:
        return find_flaky(runs, confidence=confidence)


@contextmanager
def _read_runs(
    command: str,
    suite: str | None,
    store: str | Path,
    branch: str | None,
    last: int,
    only: Names,
    on_note: Callable[[str], None] | None,
) -> Iterator[list[CountedRun]]:
    """The newest `last` runs of one suite that have trials, oldest first.

    The store stays open meanwhile: what moved the trials of a run together is read on demand.
    """
    try:
        opened = open_store(store)
    except HistoryError:
        _refuse_file(suite)  # where there is no store, that is the first thing to mend
        raise
    with opened as history:
        suite = suite or _only_suite(history, command)
        last = arguments.whole_number("last", last)
        runs = runs_of_trend(history, suite, branch, last)
        if not runs:
            _refuse_file(suite)
            asked = suite + (f" on branch {branch}" if branch else "")
            if history.runs(suite=suite, branch=branch, limit=1):
                raise HistoryError(f"{history.name}: no run of {asked} has trials yet")
            raise HistoryError(f"{history.name}: no stored run of {asked}; {_offered(history)}")
        if on_note is not None:
            changed = [tasks for run in runs if (tasks := changed_tasks(history, run, runs[-1]))]
            if changed:
                names = listed(sorted(frozenset.union(*changed)), 5)
                earlier = plural(len(changed), "earlier run")
                on_note(f"left out of {earlier}, as what is expected was changed since: {names}")
        counted = [(run, tallies_of(history, run, as_in=runs[-1])) for run in runs]
        systems = dict.fromkeys(tally.system for _, tallies in counted for tally in tallies)
        wanted = chosen_names(only, list(systems))
        yield [
            counted_run(history, run, [t for t in tallies if t.system in wanted], as_in=runs[-1])
            for run, tallies in counted
        ]


def _refuse_file(suite: str | None) -> None:
    """Refuse a file that was named in the place of a suite, and say where it belongs."""
    if suite is None or not Path(suite).is_file():
        return
    if is_store(suite):
        way = f"is a history store: give it as `store={suite!r}`"
    elif Path(suite).suffix in (".yml", ".yaml"):
        way = "is a file: give the name of the suite, as `name:` in the file says"
    else:
        name = shlex.quote(suite)
        way = (
            "is a file, but this looks at stored runs; store it with "
            f"`passhat history add {name}`, or look at it alone with `passhat report {name}`"
        )
    raise HistoryError(f"{suite}: {way}")


def _only_suite(history: History, command: str) -> str:
    """The suite of a store that has just one; an error lists several as calls of `command`."""
    suites = _suites(history)
    if not suites:
        raise HistoryError(f"{history.name}: {_offered(history)}")
    if len(suites) > 1:
        from passhat.history.database import store_words

        with suppress(InputError):  # no suite is here, or none that can be read
            if (here := suite_name()) in suites:
                return here

        store = store_words(history.name)
        commands = [f"  {command} {shlex.quote(suite)}{store}" for suite in suites[:MOST_SUITES]]
        question = f"{history.name} has runs of {len(suites)} suites; choose one:"
        raise HistoryError("\n".join([question, *commands]))
    return suites[0]


def _offered(history: History) -> str:
    """The suites that a trend can be of, or the way to have one."""
    suites = _suites(history)
    if not suites:
        return "it has no run yet: `passhat run` and `passhat history add` store one"
    return f"its suites: {listed(suites, MOST_SUITES)}"


def _suites(history: History) -> list[str]:
    return sorted({run.suite for run in history.runs()})
