"""Answers on a stored run besides its report: its baseline, gates, tasks, and why it fails."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from passhat._version import __version__
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import PasshatError, StoreError
from passhat.journeys.results import COUNTED_IN_STORE, Results, open_store, renamed
from passhat.journeys.run_store import DECIDED, changed_tasks, decided_gate, named_run_here

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from pathlib import Path

    from passhat.analysis.comparing.comparison import Comparison, Days
    from passhat.analysis.comparing.trends import (
        AgentNumbers,
        AgentVerdict,
        CountedRun,
        RunDifference,
        RunVerdict,
        Trends,
    )
    from passhat.analysis.explaining.explain import Explanation, KeptExplanation
    from passhat.analysis.explaining.run_diff import RunDiff
    from passhat.analysis.gates.gate import Requirement, Verdict, Verdicts
    from passhat.analysis.reports.judged import LabelEvidence
    from passhat.analysis.reports.metrics import RunGroups
    from passhat.history import History, Run
    from passhat.history.queries import TaskInRun
    from passhat.records import ErrorPolicy, Tally, Trial, Trials
    from passhat.records.transcript import TranscriptKey, Transcripts
    from passhat.stats.estimate import Interval

Answer = TypeVar("Answer")

BASELINE = "baseline"
"""The tag of the run that others are compared with: `passhat history tag latest baseline`."""

_MOST_BESIDE = 50  # trials of a task that are read to find the nearest; a page shows all of them


@result_dataclass(frozen=True, slots=True, kw_only=True)
class BaselineChange:
    """One system in a run against the baseline; if not `tagged`, that is the run before."""

    baseline: Run
    tagged: bool
    comparison: Comparison


def baseline_of(history: History, run: Run) -> Run | None:
    """The run of the same suite with the tag "baseline", else the finished run before this one."""
    from passhat.history.queries import runs_until
    from passhat.history.runs import tagged_run

    before = [earlier for earlier in runs_until(history, run, limit=2) if earlier.id != run.id]
    if (tagged := tagged_run(history, BASELINE, run.suite)) is not None:
        return None if tagged.key == run.key else tagged
    return before[-1] if before else None


def change_since(
    history: History, run: Run, baseline: Run, *, k: int | None = None, only: str | None = None
) -> BaselineChange | None:
    """The only system of a run, or the named one, against the same in the baseline, if it is there.

    None if the run has several systems and none is named.
    """
    now = {
        tally.system: tally for tally in tallies_of(history, run) if only in (None, tally.system)
    }
    before = {tally.system: tally for tally in tallies_of(history, baseline, as_in=run)}
    (system, *others) = now or ("",)
    if others or system not in before or not set(before[system].tasks) & set(now[system].tasks):
        return None
    sides = StoredSide(run=run, system=system), StoredSide(run=baseline, system=system)
    try:
        answer = compare_stored(history, *sides, ks=None if k is None else [k])
    except PasshatError:  # too few shared runs for this k
        return None
    return BaselineChange(baseline=baseline, tagged=BASELINE in baseline.tags, comparison=answer)


# The verdict on a run, which every screen, page and comment shows.


def verdict_on(history: History, run: Run) -> RunVerdict:
    """What is said of a run, against the finished runs of its suite before it.

    It is derived from what is stored: a run that is added, deleted or tagged as the baseline later
    changes what the others are compared with. The answer is kept beside the run, for as long as
    nothing changes that it rests on. A run that is not finished has no verdict: which of its trials
    have ended is no chance (those that fail may take longer).
    """
    return _kept_or_made(history, run, "verdict", verdict_basis(history, run), _judged)


def known_verdict(history: History, run: Run) -> RunVerdict | None:
    """The verdict on a run if it is kept and still holds: a list of runs asks for many."""
    kept: RunVerdict | None = _kept(history, run, "verdict", verdict_basis(history, run))
    return kept


def verdict_of_results(results: Results) -> RunVerdict | None:
    """What is said of the stored run that results name, the first if they name several.

    None for files.
    """
    name = results.paths[0] if results.paths else ""
    if results.names_a_run(name):
        with open_store(results.store) as history:
            return verdict_on(history, named_run_here(history, name).run)
    if len(results.paths) != 1 or not results.is_stored(name):
        return None
    with results.open_stored() as (history, named):
        return verdict_on(history, named.run)


def verdict_on_ended(run: str, store: Path | str) -> RunVerdict:
    """The verdict on a run that was stored just now; what pages show of it is kept as well."""
    from passhat.history import History

    with History.open(store) as history:  # opened once for all that is kept
        return keep_answers(history, named_run_here(history, run).run)


def numbers_of(history: History, run: Run) -> tuple[AgentNumbers, ...]:
    """The numbers of each agent of a run, as the front page shows them."""
    return _kept_or_made(history, run, "numbers", numbers_basis(run), _measured)


RUNS_OF_TREND = 50


def runs_of_trend(
    history: History, suite: str, branch: str | None = None, last: int = RUNS_OF_TREND
) -> list[Run]:
    """Those of the newest `last` runs of a suite that have trials, oldest first."""
    newest = history.runs(suite=suite, branch=branch, limit=last)
    return [run for run in reversed(newest) if run.trials]


def trends_of(history: History, runs: Sequence[Run], branch: str | None = None) -> Trends:
    """How each agent moved over the runs of a trend; the answer is kept with the newest of them."""
    from passhat.analysis.comparing.trends import KeptTrend, Trends, trends

    def made(history: History, newest: Run) -> tuple[KeptTrend, ...]:
        counted = [
            counted_run(history, run, tallies_of(history, run, as_in=newest), as_in=newest)
            for run in runs
        ]
        return tuple(map(KeptTrend.of, trends(counted)))

    # A run is the newest of two trends at most: of its suite, and of its branch.
    kind = "trend" if branch is None else "branch trend"
    kept = _kept_or_made(history, runs[-1], kind, trend_basis(history, runs), made)
    return Trends(trend.trend for trend in kept)


def counted_run(history: History, run: Run, tallies: Sequence[Tally], *, as_in: Run) -> CountedRun:
    """A stored run as a point of a trend up to the run `as_in`, which says what tasks expect.

    What moved its trials together is found on demand.
    """
    from passhat.analysis.comparing.trends import CountedRun
    from passhat.dataclass import LazyMapping
    from passhat.history.queries import run_label

    numbers = numbers_of(history, run) if run.status == "finished" else ()
    if changed_tasks(history, run, as_in):
        numbers = ()  # they are of tasks too that expect something else by now
    grouped = cache(lambda: run_groupings(history, run))

    def groups(system: str) -> Sequence[RunGroups]:
        return grouped().get(system, ())

    return CountedRun(
        key=run.key,
        label=run_label(run),
        started=run.started,
        tallies=tallies,
        groupings=LazyMapping({tally.system: partial(groups, tally.system) for tally in tallies}),
        labels=run_labels(history, run),
        numbers={number.system: number for number in numbers},
        stopped_early=run.stopped_early,
        whole=run.whole,
    )


def trend_basis(history: History, runs: Sequence[Run]) -> tuple[Hashable, ...]:
    """What a trend rests on, the names of its runs and what people say of them included."""
    from passhat.history.queries import run_label

    return tuple((*numbers_basis(run), run_label(run), history.label_count(run)) for run in runs)


def keep_answers(history: History, run: Run) -> RunVerdict:
    """The verdict on a run that has ended; what pages show of it is kept as well."""
    trials_in_columns(history, run)
    with kept_intervals(history, run) as computed:
        numbers_of(history, run)
        if computed:
            from passhat.analysis.reports.evidence import count_evidence
            from passhat.analysis.reports.measure import draw_curves

            for tally in tallies_of(history, run):
                draw_curves(count_evidence(tally))
    if run.status == "finished" and run.trials:
        runs = runs_of_trend(history, run.suite)
        if len(runs) > 1:  # a first run moved from nowhere: a page that is asked draws its point
            trends_of(history, runs)
        requests_of(history, run)
    return verdict_on(history, run)


def keep_explanation(run: str, store: Path | str) -> None:
    """Why trials of a run fail, kept for its page: some two milliseconds a trial.

    A store that cannot be written to has none, and its page computes it.
    """
    ended = Results(paths=(run,), store=store)
    with suppress(StoreError), ended.open_stored() as (history, named):
        if named.run.status == "finished" and named.run.trials >= KEPT_IN_COLUMNS:
            _explained(history, named.run)


MOST_REQUESTS, LONGEST_REQUEST = 1_000, 200
"""Tasks whose first words are kept, and how many characters of them."""


def requests_of(history: History, run: Run) -> dict[tuple[str, str], str]:
    """What was first said to each agent in each task of a run that is finished."""
    if run.status != "finished":
        return {}
    kept = _kept_or_made(history, run, "requests", numbers_basis(run), _first_words)
    return {(system, task): words for system, task, words in kept}


def _first_words(history: History, run: Run) -> tuple[tuple[str, str, str], ...]:
    from passhat.history.queries import first_transcripts
    from passhat.records.secrets import clean_text
    from passhat.records.transcript import Transcript

    texts = first_transcripts(history, run, most=MOST_REQUESTS)
    return tuple(
        (*key[:2], clean_text(words)[:LONGEST_REQUEST])
        for key, text in texts
        if (words := Transcript.from_json(text).request)
    )


KEPT_IN_COLUMNS = 200
"""Trials from which on a run is kept in columns too: about 20 bytes a trial, quickly read."""


def trials_in_columns(history: History, run: Run) -> Trials:
    """The trials of a run, from the columns that are kept beside its rows if there are such.

    They were made of rows whose checksum was right, and have one of their own.
    """
    from passhat.history.runs import sources_of
    from passhat.history.store import pack_trials, unpack_trials

    basis = repr(numbers_basis(run))
    if (body := history.kept(run, "trials", basis)) is not None:
        trials, labels = unpack_trials(body, sources_of(run)), history.labels(run)
        return trials.with_labels(labels) if labels else trials
    trials = history.trials(run)
    if run.status == "finished" and KEPT_IN_COLUMNS <= run.trials < COUNTED_IN_STORE:
        history.keep(run, "trials", basis, pack_trials(trials))
    return trials


@contextmanager
def kept_intervals(history: History, run: Run) -> Iterator[Mapping[str, object]]:
    """Intervals of a large suite that are asked for meanwhile are computed once, and kept.

    It holds those that had to be computed.
    """
    import msgspec

    from passhat.stats.mean_intervals import KnownBounds, give_bounds, noting_bounds

    basis = repr(numbers_basis(run))
    body = history.kept(run, "intervals", basis)
    if body is not None:
        give_bounds(msgspec.msgpack.decode(body, type=KnownBounds))
        yield {}
        return
    with noting_bounds() as bounds:
        yield bounds
    if bounds and run.status == "finished":
        history.keep(run, "intervals", basis, msgspec.msgpack.encode(bounds))


def tallies_of(history: History, run: Run, *, as_in: Run | None = None) -> list[Tally]:
    """The counts of a run, from its columns if it is kept in such.

    Tasks are left out that expect something else in the run `as_in`.
    """
    if run.status != "finished" or not KEPT_IN_COLUMNS <= run.trials < COUNTED_IN_STORE:
        tallies = history.tallies(run)
    else:
        trials = trials_in_columns(history, run)
        tallies = [trials.tally(system) for system in trials.systems]
    changed = frozenset() if as_in is None else changed_tasks(history, run, as_in)
    if not changed:
        return tallies
    import numpy as np

    same = (
        tally.take(np.flatnonzero([t not in changed for t in tally.tasks])) for tally in tallies
    )
    return [tally for tally in same if tally.tasks]


def verdict_basis(history: History, run: Run) -> Hashable:
    """What the verdict on a run rests on: it holds as long as this is the same."""
    from passhat.analysis.comparing.trends import HORIZON
    from passhat.history.queries import state_until

    return __version__, *state_until(history, run, limit=HORIZON)


def numbers_basis(run: Run) -> tuple[Hashable, ...]:
    """What identifies one state of a run: a resumed run grows and ends again."""
    return __version__, run.key, run.status, run.finished, run.trials, run.passed, run.errored


def _kept_or_made(
    history: History, run: Run, kind: str, basis: Hashable, make: Callable[[History, Run], Answer]
) -> Answer:
    """An answer that is kept in the store; it is made, and kept if possible, where it is not.

    Runs in progress change too often to keep anything of them.
    """
    import msgspec

    kept: Answer | None = _kept(history, run, kind, basis)
    if kept is not None:
        return kept
    made = make(history, run)
    if run.status == "finished":
        history.keep(run, kind, repr(basis), msgspec.json.encode(made))
    return made


def _kept(history: History, run: Run, kind: str, basis: Hashable) -> Any:
    """An answer that is kept in the store and rests on `basis`; None without one."""
    body = history.kept(run, kind, repr(basis))
    if body is None:
        return None
    import msgspec

    from passhat.analysis.comparing.trends import AgentNumbers, KeptTrend, RunVerdict
    from passhat.analysis.explaining.explain import KeptExplanation

    kinds: dict[str, Any] = {
        "verdict": RunVerdict,
        "numbers": tuple[AgentNumbers, ...],
        "trend": tuple[KeptTrend, ...],
        "branch trend": tuple[KeptTrend, ...],
        "requests": tuple[tuple[str, str, str], ...],
        "why": KeptExplanation,
    }
    return msgspec.json.decode(body, type=kinds[kind])


def _measured(history: History, run: Run) -> tuple[AgentNumbers, ...]:
    from passhat.analysis.comparing.trends import agent_numbers

    groupings = run_groupings(history, run)
    return tuple(
        agent_numbers(tally, groupings.get(tally.system, ())) for tally in tallies_of(history, run)
    )


def _judged(history: History, run: Run) -> RunVerdict:
    from passhat.analysis.comparing.trends import RunVerdict

    if run.status != "finished" or not run.trials:
        return RunVerdict(run=run.key, agents=())
    verdicts = judge_run(history, run)  # false where not all passed
    gates = [] if verdicts is None else [(each.status, each.sentence) for each in verdicts]
    if own := _decided_gates(run):  # bounds are for a fixed number of trials
        gates = [(gate["word"], gate["sentence"]) for gate in own]
    gates = [(word, _beside_word(word, sentence)) for word, sentence in gates]
    agents = () if run.stopped_early else _against_earlier(history, run)
    return RunVerdict(run=run.key, agents=agents, gates=tuple(gates))


def _against_earlier(history: History, run: Run) -> tuple[AgentVerdict, ...]:
    """Each agent of a run against the earlier runs that gates did not end.

    Gates end a run where its trials happen to pass or fail: that alone would be a rise or a fall.
    """
    from passhat.analysis.comparing.trends import HORIZON, CountedRun, judge_agents
    from passhat.history.queries import run_label, runs_until

    past = [each for each in runs_until(history, run, limit=HORIZON) if not each.stopped_early]
    labelled = {earlier.id for earlier in past if history.label_count(earlier)[0]}
    labelled = labelled if len(labelled) > 1 else set()  # one run alone shows no change
    counted = [
        CountedRun(
            key=earlier.key,
            label=run_label(earlier),
            started=earlier.started,
            tallies=tallies_of(history, earlier, as_in=run),
            labels=run_labels(history, earlier) if earlier.id in labelled else {},
            whole=earlier.whole,
        )
        for earlier in past
    ]
    baseline = baseline_of(history, run)
    return judge_agents(
        counted,
        accepted=[earlier.key for earlier in past if BASELINE in earlier.tags],
        alone={} if baseline is None or baseline.stopped_early else _alone(history, run, baseline),
    )


def _beside_word(word: str, sentence: str) -> str:
    """The sentence of a gate where its word stands before it.

    >>> _beside_word("FAIL", "agent: pass^3 >= 0.8: FAIL. It is 45%.")
    'agent: pass^3 >= 0.8. It is 45%.'
    >>> _beside_word("PASS", "agent: pass^3 >= 0.8: PASS after 60 trials: 99%.")
    'agent: pass^3 >= 0.8, after 60 trials: 99%.'
    """
    demand, _, rest = sentence.partition(f": {word}")
    return f"{demand}{',' * rest.startswith(' after')}{rest}"


def streak_asked(run: Run) -> int | None:
    """The k of the longest streak that the gates of a run ask about: its screens speak of it."""
    from passhat.analysis.gates.gate import asked_streak, parse_gate

    return asked_streak(parse_gate(gate.require) for gate in stored_gates(run))[0]


def _alone(history: History, run: Run, baseline: Run) -> dict[str, RunDifference]:
    """Each agent of a run against one other run alone."""
    from passhat.analysis.comparing.trends import RunDifference
    from passhat.analysis.reports.metrics import headline_number
    from passhat.stats.estimate import Unavailable

    differences = {}
    asked = streak_asked(run)
    for tally in tallies_of(history, run):
        enough = asked is not None and bool((tally.runs("fail") >= asked).all())
        k = asked if enough else headline_number(tally).k
        change = change_since(history, run, baseline, k=k, only=tally.system)
        if change is None:
            continue
        number = change.comparison.headline.this_suite
        differences[tally.system] = RunDifference(
            run=baseline.key,
            started=baseline.started,
            baseline=change.tagged,
            interval=None if isinstance(number, Unavailable) else number.interval,
            k=k,
        )
    return differences


def judge_run(history: History, run: Run) -> Verdicts | None:
    """The verdicts on a stored run by its own gates; None without gates, or if they lack a run."""
    require = stored_gates(run)
    if not require or run.status != "finished":
        return None
    from passhat.analysis.gates.judge import judge

    try:
        return judge(history.trials(run), [gate.terms for gate in require], looks=looks_at(run))
    except PasshatError:  # a gate against another run or file, which is not available here
        return None


def _decided_gates(run: Run) -> list[dict[str, Any]]:
    """What gates decided that watched a run to its end; older versions stored no terms."""
    watched = run.status == "finished" and run.options.get("at_most")
    stored = run.options.get("decided", {}).get("gates", ()) if watched else ()
    return [
        gate if isinstance(gate, dict) else {"word": gate[0], "sentence": gate[1]}
        for gate in stored
    ]


def as_decided(verdicts: Verdicts, run: Run) -> Verdicts:
    """The verdicts on a stored run, of the very gates that watched it as they decided it.

    That they could end it is enough, even where they let it run to its limit. Their error rates
    hold: the rule was fixed before the run, and asking again spends nothing. Who asks for another
    kind of evidence than the gate had gets that.
    """
    import msgspec

    from passhat.analysis.gates.gate import Verdicts, parse_gate
    from passhat.records.trial import ENDED_NOTES
    from passhat.stats.estimate import Unavailable

    def key(decided: Mapping[str, Any]) -> tuple[Requirement, bytes]:
        terms = {**decided["terms"], "require": ""}  # it is the same in other words
        words = msgspec.json.encode([terms, decided["system"]], order="sorted")
        return parse_gate(decided["terms"]["require"]).demand, words

    own = {key(gate): gate for gate in _decided_gates(run) if "terms" in gate}
    judged = []
    for verdict in verdicts:
        known = own.get(key(decided_gate(verdict)))
        baseline = getattr(verdict.gate.demand, "baseline", None)  # whose name may have moved
        corrected = verdict.rests_on_labels
        evidence: Any = (known or {}).get("evidence", "sequential")
        asked = verdict.gate.evidence in (None, evidence)
        if known and asked and baseline is None and not corrected and not _is_same(verdict, known):
            stored = {name: known[name] for name in DECIDED if name not in ("sentence", "evidence")}
            rest = known["sentence"].partition(f": {known['word']}")[2].removesuffix(".")
            after, colon, words = rest.removeprefix(" after ").partition(": ")
            watched = rest.startswith(" after ") and colon
            none = Unavailable(ENDED_NOTES["early" if run.stopped_early else "by gates"])
            verdict = replace(
                verdict,
                status=known["word"],
                estimate=verdict.estimate if evidence == "bound" else none,
                evidence=evidence,
                remarks=(),
                steps=(),
                more_runs=None,
                all_looks="",
                error_rule=None,
                after=after if watched else "",
                clauses=(words if watched else rest.removeprefix(". "),),
                unmade=0,
                **stored,
            )
        judged.append(verdict)
    return Verdicts(tuple(judged))


def _is_same(verdict: Verdict, decided: Mapping[str, Any]) -> bool:
    """Whether a verdict is what was decided, and made from the trials that it rests on."""
    known = {"evidence": "sequential", **decided}
    own = {name: getattr(verdict, name) for name in ("evidence", "runs", "alpha", "beta")}
    return verdict.status == known["word"] and own == {name: known[name] for name in own}


def looks_at(run: Run) -> tuple[int, ...]:
    """After how many trials a stored run was judged, the last being all that it has."""
    return (*run.options.get("judged_at", ()), run.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSide:
    """One system in one stored run; `label` is what an answer calls it."""

    run: Run
    system: str
    label: str | None = None

    def subject(self, history: History, *, as_in: Run | None = None) -> Trials | Tally:
        """Its trials at tasks that expect the same in `as_in`, or its counts if the run is huge."""
        name = self.label or self.system
        changed = frozenset() if as_in is None else changed_tasks(history, self.run, as_in)
        if changed or self.run.trials >= COUNTED_IN_STORE:
            tallies = tallies_of(history, self.run, as_in=as_in)
            return replace(next(t for t in tallies if t.system == self.system), system=name)
        return renamed(trials_in_columns(history, self.run).where(system=self.system), name)


def compare_stored(
    history: History, first: StoredSide, second: StoredSide, *, ks: Sequence[int] | None = None
) -> Comparison:
    """Is one system of a stored run better than another? The same answer as `compare`.

    Seeds, rounds and the spread between days are part of it.
    """
    from passhat.analysis.comparing.comparison import compare

    days = None
    if first.run.id != second.run.id:
        days = days_around(history, second.run, first.run, "fail", system=second.system)
    return compare(
        first.subject(history), second.subject(history, as_in=first.run), ks=ks, days=days
    )


def run_groupings(history: History, run: Run) -> Mapping[str, Sequence[RunGroups]]:
    """What moved the trials of each system together, as the report of the stored run finds it.

    Nothing for a run so large that its report is made from counts.
    """
    from passhat.analysis.reports.metrics import groupings_by_system
    from passhat.history.store import ROUND_COLUMNS

    if not 0 < run.trials < COUNTED_IN_STORE:
        return {}
    if run.status == "finished" and run.trials >= KEPT_IN_COLUMNS:
        return groupings_by_system(trials_in_columns(history, run))
    return groupings_by_system(history.trials(run, columns=ROUND_COLUMNS))


def run_labels(history: History, run: Run) -> Mapping[str, LabelEvidence]:
    """What people say of the trials of each system of a stored run, where they labelled any."""
    if not history.labels(run):
        return {}
    from passhat.analysis.reports.metrics import SystemTrials

    trials = history.trials(run)
    sides = {name: SystemTrials.of(trials.where(system=name)) for name in trials.systems}
    return {name: labels for name, side in sides.items() if (labels := side.labels) is not None}


MOST_READ, MOST_COMPARED = 20_000, 2_000
"""Trials up to which all transcripts of a run are compared, and how many of a larger one are."""


def explain_run(history: History, run: Run) -> Explanation:
    """Why do runs of a stored run fail?"""
    kept = _explained(history, run)
    return kept.explanation([_beside(history, run, *pair) for pair in kept.pairs])


def _explained(history: History, run: Run) -> KeptExplanation:
    from passhat.analysis.explaining.explain import KeptExplanation, explain

    def made(history: History, run: Run) -> KeptExplanation:
        trials = trials_in_columns(history, run)
        return KeptExplanation.of(explain(trials, _to_compare(history, run, trials)))

    return _kept_or_made(history, run, "why", numbers_basis(run), made)


def _to_compare(history: History, run: Run, trials: Trials) -> Transcripts:
    """The transcripts of a run; of a very large one those of some trials."""
    from passhat.history.queries import all_transcripts, transcripts_of
    from passhat.records import Outcome
    from passhat.records.transcript import CleanTexts, trials_to_compare

    if len(trials) <= MOST_READ:
        return all_transcripts(history, run)
    names = ([name or "" for name in side.texts()] for side in (trials.system, trials.task))
    keys = list(zip(*names, trials.trial.tolist(), strict=True))
    passed = (trials.outcome == Outcome.PASSED).tolist()
    rows = trials_to_compare([key[:2] for key in keys], passed, room=MOST_COMPARED)
    texts = dict(transcripts_of(history, run, [keys[row] for row in sorted(rows)]))
    left = frozenset(key for row, key in enumerate(keys) if row not in rows)
    return CleanTexts(texts, unread=left) if texts else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGate:
    """A gate that a run was started with; it may be on tasks with one of `tags`, or one system."""

    require: str
    tags: tuple[str, ...] = ()
    system: str | None = None

    @property
    def terms(self) -> dict[str, Any]:
        """The gate as a suite writes it."""
        return {"require": self.require, "tags": list(self.tags), "system": self.system}


def stored_gates(run: Run) -> tuple[StoredGate, ...]:
    """The gates that a run was started with."""
    demands, long_forms = (run.options.get(name) for name in ("gates", "gate_terms"))
    partial = []
    for terms in long_forms if isinstance(long_forms, list) else ():
        tags = terms.get("tags") or ()
        tags = (tags,) if isinstance(tags, str) else tuple(map(str, tags))
        require, system = str(terms.get("require", "")), terms.get("system")
        partial.append(StoredGate(require=require, tags=tags, system=system))
    stated = {gate.require for gate in partial}
    whole = map(str, demands) if isinstance(demands, list) else ()
    return (*(StoredGate(require=demand) for demand in whole if demand not in stated), *partial)


def stored_days(results: Results, name: str, judged: Run | None, errors: ErrorPolicy) -> Days:
    """The spread between days of the baseline's system, from the newest runs of its suite."""
    from passhat.history.runs import named_baseline

    with open_store(results.store) as history:
        run = named_baseline(history, name, judged=judged).run
        return days_around(history, run, judged, errors)


def days_around(
    history: History,
    run: Run,
    judged: Run | None,
    errors: ErrorPolicy,
    *,
    system: str | None = None,
) -> Days:
    """The spread between days of a system, from the newest runs of its suite but the judged one.

    It is the first system of the run unless one is named.
    """
    from passhat.analysis.comparing.comparison import MOST_RUNS, days_of

    alike = history.runs(suite=run.suite, limit=MOST_RUNS)
    past = [other for other in alike if other.trials and (judged is None or other.id != judged.id)]
    if system is None:
        system = next((tally.system for tally in history.tallies(run)), "")
    counted = [
        (other.started[:10], tally)
        for other in reversed(past)
        for tally in tallies_of(history, other)
        if tally.system == system
    ]
    days = days_of([tally for _, tally in counted], errors)
    return replace(days, dates=len({date for date, _ in counted}))


def days_between(results: Results, errors: ErrorPolicy) -> Days | None:
    """The spread between days for two results, of which one or both are stored runs.

    None if neither is, or if both are the same run: that did not run on different days.
    """
    named = [name if results.names_a_run(name) else None for name in results.paths]
    if not any(named):
        return None
    with open_store(results.store) as history:
        first, second = (named_run_here(history, name).run if name else None for name in named)
        if first is not None and second is not None and first.id == second.id:
            return None
        if first and second and first.suite != second.suite and results.on_note is not None:
            sides = zip(results.paths, (first, second), strict=True)
            runs = "; ".join(f"{name} is run {run.key} of {run.suite}" for name, run in sides)
            results.on_note(f"these are runs of two suites: {runs}")
        baseline, judged = (first, None) if second is None else (second, first)
        assert baseline is not None, "one of the two is a run"
        return days_around(history, baseline, judged, errors)


def beside_passing(history: History, run: Run, trial: Trial) -> RunDiff:
    """The trial beside the most similar one that passed; raises InputError if no other passed."""
    return _beside(history, run, trial.key)


def _beside(
    history: History, run: Run, key: TranscriptKey, other: TranscriptKey | None = None
) -> RunDiff:
    """A trial beside another of its task, or beside the most similar one that passed."""
    from passhat.analysis.explaining.run_diff import diff_runs
    from passhat.history import queries
    from passhat.records import Trials

    system, task, number = key
    named = [queries.find_trial(history, run, *each) for each in (key, other) if each is not None]
    kept = queries.page_of_trials(history, run, system, task, limit=_MOST_BESIDE)
    by_place = {row.trial.trial: row.trial for row in (*named, *kept) if row is not None}
    records = [by_place[place] for place in sorted(by_place)]
    texts = {r.key: text for r in records if (text := history.transcript(run, *r.key)) is not None}
    first = queries.first_trial(history, run)
    trials = Trials.from_records(records)
    right = None if other is None else other[2]
    return diff_runs(trials, texts, task, number, right, system=system, first_trial=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHistory:
    """One task in this run, and over the runs of its suite."""

    here: TaskInRun | None
    interval: Interval | None
    runs: Sequence[TaskInRun] = ()

    @property
    def before(self) -> tuple[int, int, int]:
        """How many runs came before this one, and the passes and trials of the task in them."""
        known = [run for run in self.runs if self.here and run.started < self.here.started]
        return len(known), sum(e.passed for e in known), sum(e.trials for e in known)


def task_history(history: History, run: Run, system: str, task: str) -> TaskHistory:
    """How one task of one system fared in this run and in the others of its suite."""
    from passhat.history.queries import task_in_runs
    from passhat.stats.proportions import proportion_interval

    runs = task_in_runs(history, run.suite, system, task)
    here = next((earlier for earlier in runs if earlier.key == run.key), None)
    return TaskHistory(
        here=here,
        interval=proportion_interval(here.passed, here.trials) if here else None,
        runs=runs,
    )


def rate_so_far(runs: int, passed: int) -> Interval:
    """The interval of a pass rate that is watched during a run: it holds at every look."""
    from passhat.stats.sequential import confidence_sequence

    return confidence_sequence(runs, passed)
