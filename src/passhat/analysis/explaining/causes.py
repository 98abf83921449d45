"""What goes together with failing, from two tests, in sentences with their counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import comb
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.run_diff import (
    Divergence,
    ToolDisagreement,
    departures,
    nearest_passing,
)
from passhat.analysis.explaining.runs import (
    FREE_TEXT,
    ComparedRuns,
    ExplainedRun,
    NormalizedCall,
    compared_runs,
    list_lengths,
)
from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import plural
from passhat.records.transcript import TranscriptKey
from passhat.stats.arguments import Counts, Floats
from passhat.stats.exact_tests import StratifiedDistribution, stratified_distribution
from passhat.stats.multiple_testing import shuffled_in_strata, step_down_p

TESTS = 2
"""Two tests share the chance of naming a false cause: each has half of it."""

FEWEST_SHUFFLES = 199
"""The smallest adjusted p is then 0.01."""

MOST_SHUFFLED = 50_000_000
"""Outcomes shuffled in all: very many runs are shuffled fewer times."""

MOST_ARGUMENTS = 2
"""Arguments that are named where they differ from those of the nearest passing run."""

MOST_FEATURES = 3
"""Most properties named; each further one holds among runs that are alike in those before it."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A failing run to read, beside the passing run of its task that is nearest to it.

    `call` is the place of the call that matters among the failing run's calls, from 0; None where
    the run lacks a call.
    """

    failing: TranscriptKey
    passing: TranscriptKey
    call: int | None = None

    @classmethod
    def of(cls, divergence: Divergence) -> Example:
        place = None if divergence.call is None else divergence.call.place
        return cls(failing=divergence.run.key, passing=divergence.passing.key, call=place)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that goes together with failing; `p` is adjusted for all that was tested.

    `failing` of `failing_of` failing runs and `passing` of `passing_of` passing ones have it, in
    the `tasks` whose runs differ in it. `opposite` says what the other runs did, where `words`
    say what these did not do.
    """

    test: Literal["agreement", "features"]
    tool: str
    words: str
    p: float
    failing: int
    failing_of: int
    passing: int
    passing_of: int
    tasks: int
    example: Example
    opposite: str = ""

    @property
    def sentence(self) -> str:
        """The finding with its counts."""
        runs = plural(self.failing_of, "failing trial")
        failing = f"{self.failing:,} of {runs} {self.words}"
        return f"{failing}; {self._passing_words} ({plural(self.tasks, 'task')})."

    @property
    def _passing_words(self) -> str:
        """What passing runs did: "0 of 4 did" after "never called" would read backwards."""
        if not self.opposite:
            return f"{self.passing:,} of {self.passing_of:,} passing ones did"
        did = self.passing_of - self.passing
        runs = plural(self.passing_of, "passing trial")
        if did == self.passing_of:
            return f"{'the' if did == 1 else 'all'} {runs} {self.opposite}"
        return f"{did:,} of {runs} {self.opposite}"


def find_causes(
    compared: ComparedRuns,
    diverged: Sequence[Divergence],
    *,
    alpha: float,
    shuffles: int,
    rng: np.random.Generator,
) -> tuple[Cause, ...]:
    """What goes together with failing, the surest first; nothing if it may well be luck.

    Anything is named with probability `alpha` at most if outcomes are luck inside each task.
    """
    if smallest_possible_p(compared) > alpha:
        return ()
    shuffles = max(FEWEST_SHUFFLES, min(shuffles, MOST_SHUFFLED // len(compared.runs)))
    shuffled = shuffled_in_strata(compared.failed, compared.stratum, shuffles=shuffles, rng=rng)
    level = alpha / TESTS
    by_agreement = [d for d in departures(compared, shuffled) if d.p <= level and d.failing]
    by_feature = _features(compared, shuffled, level)
    beside = {cause.tool for cause in by_agreement}
    if by_feature and beside:
        beside = _still_departing(compared, by_feature, shuffles, rng, level)
    named = [_from_association(cause, compared) for cause in by_feature]
    named += [_from_departure(cause, diverged) for cause in by_agreement if cause.tool in beside]
    return tuple(_one_for_each_tool(named))


def smallest_possible_p(compared: ComparedRuns) -> float:
    """The p of a perfect cause: below it nothing can come out, whatever the runs did.

    One division of the runs into passing and failing in `C(n, f)` tells most; each test is
    two-sided or adjusted, and there are two.
    """
    ways = 1
    for rows in compared.blocks():
        failed = compared.failed[rows]
        ways *= comb(failed.size, int(failed.sum()))
    return min(1.0, TESTS / ways) if ways > 1 else 1.0


def _features(
    compared: ComparedRuns, shuffled: NDArray[np.bool_], level: float
) -> list[Association]:
    """The surest property, and those that still hold among runs alike in the ones before them."""
    groups = [range(rows.start, rows.stop) for rows in compared.blocks()]
    having = features(compared.runs, groups)
    kept: list[Association] = []
    for association in associations(compared, having, shuffled, level=level):
        if len(kept) == MOST_FEATURES or association.p > level:
            break
        if not kept or holds_within(association, kept, compared, level=level):
            kept.append(association)
    return kept


def _still_departing(
    compared: ComparedRuns,
    given: Sequence[Association],
    shuffles: int,
    rng: np.random.Generator,
    level: float,
) -> set[str]:
    """The tools in which failing runs depart among runs that are alike in the properties given."""
    parts = alike_in(given, compared)
    order = np.argsort(parts, kind="stable")
    runs = [replace(compared.runs[i], system=str(parts[i])) for i in order.tolist()]
    alike = compared_runs(runs)
    if not alike.runs:
        return set()
    shuffled = shuffled_in_strata(alike.failed, alike.stratum, shuffles=shuffles, rng=rng)
    return {departure.tool for departure in departures(alike, shuffled) if departure.p <= level}


def _from_departure(departure: ToolDisagreement, diverged: Sequence[Divergence]) -> Cause:
    names = [_argument(name) for name in departure.arguments]
    few = 0 < len(names) <= MOST_ARGUMENTS
    other = f"with another {' or '.join(names)}" if few else "with other arguments"
    kinds = (
        (departure.more, "more often"),
        (departure.fewer, "less often"),
        (departure.other, other),
    )
    how = ", ".join(f"{count:,} {words}" for count, words in kinds if count)
    runs = {run.key for run in departure.runs}
    return Cause(
        test="agreement",
        tool=departure.tool,
        words=f"called {departure.tool} as no passing trial of the task did ({how})",
        p=min(1.0, TESTS * departure.p),
        failing=departure.failing,
        failing_of=departure.failing_of,
        passing=departure.passing,
        passing_of=departure.passing_of,
        tasks=departure.tasks,
        example=_departing(departure, [d for d in diverged if d.run.key in runs]),
    )


def _departing(departure: ToolDisagreement, diverged: Sequence[Divergence]) -> Example:
    """A run whose first difference is in the tool, or else any that departs from it."""
    best = next((d for d in diverged if d.tool == departure.tool), diverged[0])
    return Example.of(best if best.tool == departure.tool else replace(best, call=None))


def _from_association(association: Association, compared: ComparedRuns) -> Cause:
    failing, failing_of, passing, passing_of = association.counts(compared.failed)
    tool = association.feature.tool
    return Cause(
        test="features",
        tool=tool,
        words=feature_words(association.feature, lacking=association.lacking),
        p=min(1.0, TESTS * association.p),
        failing=failing,
        failing_of=failing_of,
        passing=passing,
        passing_of=passing_of,
        tasks=int(np.unique(compared.stratum[association.varying]).size),
        example=_having(association, compared, tool),
        opposite=feature_words(association.feature) if association.lacking else "",
    )


def _having(association: Association, compared: ComparedRuns, tool: str) -> Example:
    """A failing run with the property beside the nearest passing one without it."""
    row = int(np.flatnonzero(association.having & compared.failed)[0])
    run = compared.runs[row]
    here = (compared.stratum == compared.stratum[row]) & ~compared.failed
    without = np.flatnonzero(here & ~association.having)
    choice = without if without.size else np.flatnonzero(here)
    passing = [compared.runs[i] for i in choice.tolist()]
    nearest = nearest_passing(run, passing, frozenset(run.tools))
    places = (call.place for call in run.calls if call.tool == tool)
    call = next(places, None) if tool and not association.lacking else None
    return Example(failing=run.key, passing=nearest.key, call=call)


def _one_for_each_tool(causes: Sequence[Cause]) -> list[Cause]:
    """Of two findings about one tool, the surer; a property if they are equally sure."""
    ranked = sorted(causes, key=lambda cause: (cause.p, cause.test != "features"))
    kept: list[Cause] = []
    for cause in ranked:
        same = [c for c in kept if c.tool and c.tool == cause.tool]
        if not any(c.test != cause.test for c in same):
            kept.append(cause)
    return kept


# Which properties go together with failing, each task compared with itself?

MOST_CLASSES = 2_000
"""Classes of properties that are tested at most: those that could give the smallest p."""

_FEWEST_RUNS = 2  # a property of one run says nothing about the others
_CHUNK = 512  # rows of outcomes whose counts are held at a time

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Association:
    """A property that goes together with failing, or with passing where `lacking` is True.

    `having` are the runs with the property (without it, where `lacking`) and `varying` all runs of
    the tasks in which runs differ in it. `p` is adjusted for every property tested.
    """

    feature: RunFeature
    lacking: bool
    p: float
    exact_p: float
    having: Mask
    varying: Mask

    def counts(self, failed: Mask) -> tuple[int, int, int, int]:
        """Failing runs with it, failing runs, passing runs with it, passing runs."""
        (bad_with, bad), (good_with, good) = (
            (int((runs & self.having).sum()), int(runs.sum()))
            for runs in (failed & self.varying, ~failed & self.varying)
        )
        return bad_with, bad, good_with, good


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Class:
    """Properties that divide the runs of every task in the same way; `column` is the first's."""

    members: tuple[RunFeature, ...]
    column: Mask
    varying: Mask
    distribution: StratifiedDistribution


def associations(
    compared: ComparedRuns, having: Having, shuffled: Mask, *, level: float
) -> tuple[Association, ...]:
    """Every class of properties that could reach the level, the smallest p first.

    `shuffled` are the outcomes (True for failing), first as observed and then shuffled inside the
    tasks. Dropping what could not reach the level whatever the outcomes costs nothing and makes
    the others stronger (Tarone 1990).
    """
    classes = _classes(compared, having, level)
    if not classes:
        return ()
    p = _shuffled_p(classes, shuffled)
    least = np.finfo(np.float32).tiny  # below it, one p is as small as another
    adjusted = step_down_p(-np.log(np.maximum(p, least, dtype=np.float32)))
    answers = [
        _association(compared, kind, having, (float(adjusted[i]), float(p[0, i])))
        for i, kind in enumerate(classes)
    ]
    return tuple(sorted(answers, key=lambda answer: (answer.exact_p, answer.feature)))


def alike_in(given: Iterable[Association], compared: ComparedRuns) -> Counts:
    """The strata of runs of one task that are alike in the properties given."""
    parts = compared.stratum.copy()
    for other in given:
        parts = 2 * parts + other.having
    return np.unique(parts, return_inverse=True)[1].astype(np.int64)


def holds_within(
    association: Association, given: Iterable[Association], compared: ComparedRuns, *, level: float
) -> bool:
    """Whether it still goes together with failing among runs that are alike in those given."""
    strata = alike_in(given, compared)
    distribution = _distribution(association.having, strata, compared.failed)
    return distribution.p_of(int((association.having & compared.failed).sum())) <= level


def _classes(compared: ComparedRuns, having: Having, level: float) -> list[_Class]:
    """The classes that could reach the level."""
    strata, sizes = compared.stratum, np.bincount(compared.stratum)

    def differing(column: Mask) -> Mask:
        """The runs of tasks in which some have the property and some do not."""
        counts = np.bincount(strata, weights=column, minlength=sizes.size)
        return ((counts > 0) & (counts < sizes))[strata]

    divisions: dict[bytes, list[RunFeature]] = {}
    for feature, numbers in having.items():
        if len(numbers) < _FEWEST_RUNS:
            continue
        column = _column(numbers, compared)
        varying = differing(column)
        if varying.any():
            divisions.setdefault(_same_division(column, varying), []).append(feature)
    classes = []
    for members in divisions.values():
        column = _column(having[members[0]], compared)
        distribution = _distribution(column, compared.stratum, compared.failed)
        if distribution.smallest_p <= level:
            varying = differing(column)
            classes.append(
                _Class(
                    members=tuple(members),
                    column=column,
                    varying=varying,
                    distribution=distribution,
                )
            )
    classes.sort(key=lambda kind: (kind.distribution.smallest_p, kind.members[0]))
    return classes[:MOST_CLASSES]


def _column(numbers: Iterable[int], compared: ComparedRuns) -> Mask:
    column = np.zeros(len(compared.runs), dtype=bool)
    column[list(numbers)] = True
    return column


def _same_division(column: Mask, varying: Mask) -> bytes:
    """Equal for properties with equal or opposite runs, in the tasks where they tell runs apart."""
    first = column[int(np.argmax(varying))]
    return np.packbits((column != first) & varying).tobytes() + np.packbits(varying).tobytes()


def _distribution(column: Mask, strata: Counts, failed: Mask) -> StratifiedDistribution:
    sizes = np.bincount(strata)
    with_it = np.bincount(strata, weights=column, minlength=sizes.size).astype(int)
    failing = np.bincount(strata, weights=failed, minlength=sizes.size).astype(int)
    return stratified_distribution(
        zip(sizes.tolist(), with_it.tolist(), failing.tolist(), strict=True)
    )


def _shuffled_p(classes: Sequence[_Class], shuffled: Mask) -> Floats:
    """The exact p of each class under each row of outcomes, looked up in its distribution."""
    columns = np.array([kind.column for kind in classes], dtype=np.float32).T
    p = np.empty((len(shuffled), len(classes)))
    for start in range(0, len(shuffled), _CHUNK):
        rows = slice(start, start + _CHUNK)
        counts = np.rint(shuffled[rows].astype(np.float32) @ columns).astype(np.intp)
        for i, kind in enumerate(classes):
            p[rows, i] = kind.distribution.p[counts[:, i] - kind.distribution.fewest]
    return p


def _association(
    compared: ComparedRuns, kind: _Class, having: Having, p: tuple[float, float]
) -> Association:
    bad, good = compared.failed & kind.varying, ~compared.failed & kind.varying
    failing_have = bool(kind.column[bad].mean() >= kind.column[good].mean())
    # All members divide these runs alike, so one run tells which way round each of them does.
    witness = int(np.flatnonzero(bad)[0])
    with_failing = bool(kind.column[witness]) == failing_have

    def lacking(feature: RunFeature) -> bool:
        return (witness in having[feature]) != with_failing

    best = min(kind.members, key=lambda feature: _simplicity(feature, lacking(feature)))
    return Association(
        feature=best,
        lacking=lacking(best),
        p=p[0],
        exact_p=p[1],
        having=(kind.column == failing_have) & kind.varying,
        varying=kind.varying,
    )


def _simplicity(feature: RunFeature, lacking: bool) -> tuple[int, bool, bool, int, RunFeature]:
    """Smaller is simpler; a named tool says more than "a tool", and what was done than what not."""
    length = len(feature.tool) + sum(map(len, feature.detail))
    return KINDS.index(feature.kind), not feature.tool, lacking, length, feature


# What a run did, as properties that it has or lacks; none of them looks at the outcome.

COUNTS = (2, 3, 4, 6)
"""A tool called at least this often."""

LONGEST_VALUE = 40
"""Characters up to which the value of an argument is itself a property."""

RARE = 0.2
"""A tool that at most this share of the runs of a task call is rare there."""

_SHORTEST_MENTION = 3  # shorter values are found in any text by accident

# kind: (what a run with it did, what a run without it did); {tool} and {0}, {1} are filled in. Of
# properties that hold for the same runs the first kind is preferred: the simplest to act on.
_WORDS = {
    "stop reason": ("stopped with {0}", "did not stop with {0}"),
    "unmended error": (
        "got an error from {tool} and no success after it",
        "left no error of {tool} without a success after it",
    ),
    "repeated call": ("made the same call of {tool} twice", "never made a call of {tool} twice"),
    "without first": (
        "called {tool} without calling {0} first",
        "never called {tool} without calling {0} first",
    ),
    "called": ("called {tool}", "never called {tool}"),
    "left out": (
        "left out a tool that most trials of the task call",
        "called every tool that most trials of the task call",
    ),
    "rare tool": (
        "called a tool that few trials of the task call",
        "called no tool that few trials of the task call",
    ),
    "error": ("got an error from {tool}", "got no error from {tool}"),
    "error text": ('got "{0}" from {tool}', 'never got "{0}" from {tool}'),
    "empty result": ("got an empty result from {tool}", "got no empty result from {tool}"),
    "times": ("called {tool} {0} times or more", "called {tool} fewer than {0} times"),
    "many calls": (
        "made more calls than the median trial of the task",
        "made no more calls than the median trial of the task",
    ),
    "argument": ("called {tool} with {0} = {1}", "never called {tool} with {0} = {1}"),
    "list length": ("called {tool} with {1} in {0}", "never called {tool} with {1} in {0}"),
    "unmentioned": (
        "called {tool} with a value of {0} that nobody had mentioned",
        "called {tool} with no value of {0} that nobody had mentioned",
    ),
    "unusual argument": (
        "called {tool} with another {0} than most calls of the task",
        "called {tool} with no other {0} than most calls of the task",
    ),
    "pair": ("called {tool} right after {0}", "never called {tool} right after {0}"),
    "first call": ("called {tool} first", "did not call {tool} first"),
    "last call": ("called {tool} last", "did not call {tool} last"),
}
KINDS = tuple(_WORDS)


@dataclass(frozen=True, slots=True, order=True)
class RunFeature:
    """A property of a run: its kind, its tool ("" for any), and details such as an argument."""

    kind: str
    tool: str = ""
    detail: tuple[str, ...] = ()


Having = dict[RunFeature, set[int]]
"""The runs, by number, that have each property."""


class _Mentions:
    """Whether a value occurs in the conversation before a call; each value is searched once."""

    def __init__(self, run: ExplainedRun) -> None:
        turns = run.transcript.messages if run.transcript else ()
        # The agent's own words are no source, but the results of its earlier calls are.
        texts = ["" if turn.role == "assistant" else turn.text.lower() for turn in turns]
        self._text = "\0".join(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        self._first: dict[str, int] = {}

    def before(self, value: str, call: NormalizedCall) -> bool:
        """Whether the value occurs before this call; a short or composed one always counts."""
        if len(value) < _SHORTEST_MENTION or value[0] in "[{" or not self._text:
            return True
        if value not in self._first:
            place = self._text.find(value.lower())
            self._first[value] = len(self._text) if place < 0 else place
        return self._first[value] < self._starts[call.said_in]


def features(runs: Sequence[ExplainedRun], groups: Sequence[Sequence[int]]) -> Having:
    """Every property that some run has; `groups` are the runs of each system and task."""
    having: Having = defaultdict(set)
    for number, run in enumerate(runs):
        for feature in _of_one_run(run):
            having[feature].add(number)
    for feature, number in _order_breaches(runs):
        having[feature].add(number)
    for group in groups:
        for feature, number in _against_the_group(runs, group):
            having[feature].add(number)
    return having


def feature_words(feature: RunFeature, *, lacking: bool = False) -> str:
    """What runs did that have a property, or that lack it.

    >>> feature_words(RunFeature("without first", "refund", ("find_order",)))
    'called refund without calling find_order first'
    >>> feature_words(RunFeature("error"), lacking=True)
    'got no error from a tool'
    """
    detail = feature.detail
    if feature.kind == "list length":
        detail = (_argument(detail[0]), "1 entry" if detail[1] == "1" else f"{detail[1]} entries")
    elif feature.kind in ("argument", "unmentioned", "unusual argument"):
        detail = (_argument(detail[0]), *detail[1:])
    return _WORDS[feature.kind][lacking].format(*detail, tool=feature.tool or "a tool")


def _of_one_run(run: ExplainedRun) -> Iterator[RunFeature]:
    """What can be seen of a run by itself."""
    if run.stop_reason:
        yield RunFeature("stop reason", "", (run.stop_reason,))
    times = Counter(run.tools)
    for tool, count in times.items():
        yield RunFeature("called", tool)
        yield from (RunFeature("times", tool, (str(n),)) for n in COUNTS if count >= n)
    for before, after in pairwise(run.tools):
        yield RunFeature("pair", after, (before,))
    if run.calls:
        yield RunFeature("first call", run.tools[0])
        yield RunFeature("last call", run.tools[-1])
    yield from _repeated(run.calls)
    yield from _results(run.calls)
    mentions = _Mentions(run)
    for call in run.calls:
        for name, value in call.arguments.items():
            if len(value) <= LONGEST_VALUE and value != FREE_TEXT:
                yield RunFeature("argument", call.tool, (name, value))
                if not mentions.before(value, call):
                    yield RunFeature("unmentioned", call.tool, (name,))
        for name, length in list_lengths(call.arguments):
            yield RunFeature("list length", call.tool, (name, str(length)))


def _repeated(calls: Sequence[NormalizedCall]) -> Iterator[RunFeature]:
    made: set[str] = set()
    for call in calls:
        if call.key in made:
            yield RunFeature("repeated call")
            yield RunFeature("repeated call", call.tool)
        made.add(call.key)


def _results(calls: Sequence[NormalizedCall]) -> Iterator[RunFeature]:
    last_success = {call.tool: call.place for call in calls if call.worked}
    for call in calls:
        if call.empty:
            yield RunFeature("empty result", call.tool)
        if call.error is None:
            continue
        yield from (RunFeature("error"), RunFeature("error", call.tool))
        yield RunFeature("error text", call.tool, (call.error,))
        if last_success.get(call.tool, -1) < call.place:
            yield from (RunFeature("unmended error"), RunFeature("unmended error", call.tool))


def _order_breaches(runs: Sequence[ExplainedRun]) -> Iterator[tuple[RunFeature, int]]:
    """Runs that call a tool without first calling one that mostly comes before it."""
    earlier = [_first_places(run.tools) for run in runs]
    callers: dict[str, list[int]] = defaultdict(list)
    for number, places in enumerate(earlier):
        for tool in places:
            callers[tool].append(number)
    for later, numbers in callers.items():
        before = Counter(
            tool
            for number in numbers
            for tool, place in earlier[number].items()
            if place < earlier[number][later]
        )
        for tool, count in before.items():
            if 2 * count >= len(numbers) > count:
                for number in numbers:
                    places = earlier[number]
                    if places.get(tool, places[later]) >= places[later]:
                        yield RunFeature("without first", later, (tool,)), number


def _first_places(tools: Sequence[str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, tool in enumerate(tools):
        places.setdefault(tool, place)
    return places


def _against_the_group(
    runs: Sequence[ExplainedRun], group: Sequence[int]
) -> Iterator[tuple[RunFeature, int]]:
    """What sets a run apart from the other runs of its task."""
    callers = Counter(tool for number in group for tool in set(runs[number].tools))
    usual = median(len(runs[number].calls) for number in group)
    modes = _usual_arguments(runs[number].calls for number in group)
    for number in group:
        run, tools = runs[number], set(runs[number].tools)
        if len(run.calls) > usual:
            yield RunFeature("many calls"), number
        for tool, count in callers.items():
            if tool not in tools and 2 * count > len(group):
                yield RunFeature("left out"), number
            if tool in tools and count <= RARE * len(group):
                yield RunFeature("rare tool"), number
        for call in run.calls:
            for name, value in call.arguments.items():
                if value != modes[call.tool, name]:
                    yield RunFeature("unusual argument", call.tool, (name,)), number


def _usual_arguments(
    calls_of_runs: Iterable[Sequence[NormalizedCall]],
) -> dict[tuple[str, str], str]:
    """The most common value of each argument; of several, the first in the alphabet."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for calls in calls_of_runs:
        for call in calls:
            for name, value in call.arguments.items():
                counts[call.tool, name][value] += 1
    return {key: min(seen, key=lambda value: (-seen[value], value)) for key, seen in counts.items()}


def _argument(name: str) -> str:
    return name or "its argument"
