"""What a run did, as properties that it has or lacks; none of them looks at the outcome."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median

from passhat.analysis.explaining.normal_calls import FREE_TEXT, NormalCall, list_lengths
from passhat.analysis.explaining.runs import ExplainedRun
from passhat.dataclass import dataclass

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
        "left out a tool that most runs of the task call",
        "called every tool that most runs of the task call",
    ),
    "rare tool": (
        "called a tool that few runs of the task call",
        "called no tool that few runs of the task call",
    ),
    "error": ("got an error from {tool}", "got no error from {tool}"),
    "error text": ('got "{0}" from {tool}', 'never got "{0}" from {tool}'),
    "empty result": ("got an empty result from {tool}", "got no empty result from {tool}"),
    "times": ("called {tool} {0} times or more", "called {tool} fewer than {0} times"),
    "many calls": (
        "made more calls than the median run of the task",
        "made no more calls than the median run of the task",
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

    def before(self, value: str, call: NormalCall) -> bool:
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
    yield from _arguments(run)


def _repeated(calls: Sequence[NormalCall]) -> Iterator[RunFeature]:
    made: set[str] = set()
    for call in calls:
        if call.key in made:
            yield RunFeature("repeated call")
            yield RunFeature("repeated call", call.tool)
        made.add(call.key)


def _results(calls: Sequence[NormalCall]) -> Iterator[RunFeature]:
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


def _arguments(run: ExplainedRun) -> Iterator[RunFeature]:
    mentions = _Mentions(run)
    for call in run.calls:
        for name, value in call.arguments.items():
            if len(value) <= LONGEST_VALUE and value != FREE_TEXT:
                yield RunFeature("argument", call.tool, (name, value))
                if not mentions.before(value, call):
                    yield RunFeature("unmentioned", call.tool, (name,))
        for name, length in list_lengths(call.arguments):
            yield RunFeature("list length", call.tool, (name, str(length)))


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


def _usual_arguments(calls_of_runs: Iterable[Sequence[NormalCall]]) -> dict[tuple[str, str], str]:
    """The most common value of each argument; of several, the first in the alphabet."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for calls in calls_of_runs:
        for call in calls:
            for name, value in call.arguments.items():
                counts[call.tool, name][value] += 1
    return {
        key: min(found, key=lambda value: (-found[value], value)) for key, found in counts.items()
    }


def _argument(name: str) -> str:
    return name or "its argument"
