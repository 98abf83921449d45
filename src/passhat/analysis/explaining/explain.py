"""Why runs fail: everything that trials and their transcripts say about it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field, fields
from itertools import combinations
from typing import Any

import numpy as np

from passhat.analysis.explaining.causes import (
    FEWEST_SHUFFLES,
    Cause,
    Example,
    find_causes,
    smallest_possible_p,
)
from passhat.analysis.explaining.run_diff import Divergence, RunDiff, aligned_runs, divergences
from passhat.analysis.explaining.runs import (
    COSTS,
    ComparedRuns,
    ExplainedRun,
    common_wording,
    compared_runs,
    explained_runs,
    first_line,
    masked_text,
    runs_by_task,
)
from passhat.analysis.explaining.trajectories import (
    CostSplit,
    ObservedBehaviour,
    ToolMatrix,
    Trajectories,
    trajectories,
)
from passhat.analysis.reports.evidence import Provenance, make_provenance
from passhat.arguments import CONFIDENCE, ReportOptions, confidence_level, probability, whole_number
from passhat.dataclass import Displayed, dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, short_repr
from passhat.records import Outcome, Trials, transcript
from passhat.records.trial import first_number, natural_key
from passhat.stats.estimate import Estimate, Number, Unavailable
from passhat.stats.proportions import share_estimate

MOST_CATEGORIES = 12
"""Groups of failures with a row of their own; the others are counted together."""

MOST_PAIRS = 4
"""Examples that are aligned call by call: of causes, and of groups of failures."""

SHUFFLES = 4_999
"""Shuffles that a cause is compared with: p is a multiple of 1 / 5,000, doubled for two tests."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How many runs there are of each sort, and how many could be compared.

    `mixed_tasks` both passed and failed; `failing` and `passing` are their runs. Of
    `never_passed_tasks` all `never_passed_runs` failed: there is nothing to compare them with.
    `without_calls` left a transcript in which no call was recorded. `unread` are those of a big log
    whose transcripts were not read: nothing but their outcome counts.
    """

    runs: int
    failed: int
    errored: int
    without_transcript: int
    without_calls: int
    tasks: int
    mixed_tasks: int
    failing: int
    passing: int
    never_passed_tasks: int
    never_passed_runs: int
    unread: int = 0

    @property
    def read(self) -> int:
        """Runs whose transcripts were looked for."""
        return self.runs - self.unread


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FailingTask:
    """A task with failed trials: how many of how many, and what the agent answered at the end.

    The answers are counted, the most frequent first.
    """

    system: str
    task: str
    failed: int
    trials: int
    failing_answers: tuple[tuple[str, int], ...]
    passing_answers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFacts:
    """What an explanation says of failed runs, in types that a store keeps as they are.

    `causes` go together with failing beyond what luck would give; if failing were pure luck
    anything would be named with probability `alpha` at most. `could_name` says whether these runs
    were enough to name anything, had there been a perfect cause. `categories` hold every failed
    run once; `divergences` hold those of tasks that also passed, by their first difference from
    the nearest passing run, and `partings` has one example of it for each run. `first_trial` is the
    number that the log gives its first trial: people see runs counted from 1. `failing` are the
    tasks with failed trials, the worst first.
    """

    systems: tuple[str, ...]
    counts: RunCounts
    causes: tuple[Cause, ...]
    could_name: bool
    categories: tuple[Category, ...]
    divergences: tuple[Category, ...]
    partings: tuple[Example, ...]
    review: SuiteReview
    alpha: float
    confidence: float
    shuffles: int
    provenance: Provenance
    first_trial: int = 0
    failing: tuple[FailingTask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(FailureFacts, Displayed):
    """Why runs fail, as far as their calls show it.

    `pairs` are the examples of causes and of the largest groups, call by call, and `examples` the
    trials that are named as examples of groups.
    """

    trajectories: Trajectories
    pairs: tuple[RunDiff, ...] = field(default=(), repr=False)
    examples: tuple[ExplainedRun, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        failed = f"{self.counts.failed:,} of {plural(self.counts.runs, 'trial')} failed"
        causes = f"{plural(len(self.causes), 'cause')} shown"
        return short_repr("Explanation", failed, causes, see=".causes, .categories, .failing")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptExplanation(FailureFacts):
    """An explanation as a store keeps it: `pairs` are only named.

    `paths` has the numbers of the trajectories that are known, `unknown` why the others are not.
    """

    paths: Mapping[str, Estimate]
    unknown: Mapping[str, str]
    behaviours: tuple[ObservedBehaviour, ...]
    splits: tuple[CostSplit, ...]
    tools: tuple[tuple[str, str, int], ...]
    tools_given: bool
    pairs: tuple[tuple[transcript.TranscriptKey, transcript.TranscriptKey], ...]

    @classmethod
    def of(cls, made: Explanation) -> KeptExplanation:
        ways = made.trajectories
        numbers = {name: getattr(ways, name) for name in _PATHS} | dict(ways.costs)
        return cls(
            **_facts(made),
            paths={name: rate for name, rate in numbers.items() if isinstance(rate, Estimate)},
            unknown={n: no.reason for n, no in numbers.items() if isinstance(no, Unavailable)},
            behaviours=ways.behaviours,
            splits=ways.splits,
            tools=tuple((*pair, count) for pair, count in ways.matrix.counts.items()),
            tools_given=ways.matrix.given,
            pairs=tuple((pair.left.key, pair.right.key) for pair in made.pairs),
        )

    def explanation(self, pairs: Sequence[RunDiff]) -> Explanation:
        """The same with its pairs, which are aligned again from what was said in them."""
        numbers: dict[str, Number] = {
            **self.paths,
            **{name: Unavailable(reason) for name, reason in self.unknown.items()},
        }
        paths = {name: numbers.pop(name) for name in _PATHS}
        counts = {(expected, called): count for expected, called, count in self.tools}
        return Explanation(
            **_facts(self),
            trajectories=Trajectories(
                **paths,
                costs={name: numbers[name] for name in COSTS if name in numbers},
                behaviours=self.behaviours,
                splits=self.splits,
                matrix=ToolMatrix(counts=counts, given=self.tools_given),
            ),
            pairs=tuple(pairs),
        )


_PATHS = ("tools", "order", "path")


def _facts(explanation: FailureFacts) -> dict[str, Any]:
    return {each.name: getattr(explanation, each.name) for each in fields(FailureFacts)}


def explain(
    trials: Trials,
    transcripts: transcript.Transcripts | None = None,
    *,
    alpha: float = 0.05,
    confidence: float = CONFIDENCE,
    shuffles: int = SHUFFLES,
    seed: int = 0,
    expected: Mapping[str, str] | None = None,
) -> Explanation:
    """Explain why runs fail: what failing runs do that passing runs of the same task do not.

    `transcripts` are those that `read_with_transcripts` gives. `expected` names the tool that each
    task should choose (default: what the suite named when it ran). No model is asked.

    >>> table = Trials.from_columns(task=["a", "a"], passed=[True, False])
    >>> explain(table, {}).categories[0].what
    'nothing to read'
    """
    if not isinstance(trials, Trials):
        raise ArgumentError("trials", "must be Trials, as read_with_transcripts gives", trials)
    if not isinstance(transcripts, Mapping):
        rule = (
            "must be texts by (system, task, trial): "
            "`trials, said = passhat.read_with_transcripts(FILE)` gives both"
        )
        raise ArgumentError("transcripts", rule, transcripts)
    alpha = probability("alpha", alpha, open_ends=True)
    confidence = confidence_level(confidence)
    shuffles = whole_number("shuffles", shuffles, least=FEWEST_SHUFFLES)
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    every = explained_runs(trials, transcripts)
    unread = transcript.unread_of(transcripts)
    runs = [run for run in every if run.key not in unread] if unread else every
    if expected is None:
        expected = {run.task: run.expected_tool for run in runs if run.expected_tool} or None
    compared = compared_runs(runs)
    diverged = divergences(compared)
    causes = find_causes(compared, diverged, alpha=alpha, shuffles=shuffles, rng=rng)
    groups = divergence_categories(diverged, confidence=confidence)
    partings = tuple(Example.of(divergence) for divergence in diverged)
    first = first_number(trials.trial.tolist())
    categories = failure_categories(runs, diverged, confidence=confidence)
    named = {kept.example for kept in (*categories[:MOST_CATEGORIES], *groups[:MOST_CATEGORIES])}
    return Explanation(
        systems=trials.systems,
        counts=_counts(every, runs, compared),
        causes=causes,
        could_name=smallest_possible_p(compared) <= alpha,
        categories=categories,
        divergences=groups,
        partings=partings,
        trajectories=trajectories(runs, diverged, confidence=confidence, expected=expected),
        review=review_suite(every, confidence=confidence),
        alpha=alpha,
        confidence=confidence,
        shuffles=shuffles,
        provenance=make_provenance(
            trials, ReportOptions(confidence=confidence, errors="exclude", seed=seed)
        ),
        pairs=tuple(_pairs(causes, groups, partings, runs, first)),
        examples=tuple(run for run in runs if run.key in named),
        first_trial=first,
        failing=tuple(_failing_tasks(every, unread)),
    )


def _failing_tasks(
    runs: Sequence[ExplainedRun], unread: Container[transcript.TranscriptKey]
) -> Iterator[FailingTask]:
    """The tasks with failed trials, those that fail most often first; an error is no failure.

    Of a big log those whose transcripts were read come before the others.
    """
    judged = [run for run in runs if run.outcome is not Outcome.ERRORED]
    groups = [group for group in runs_by_task(judged) if not all(run.passed for run in group)]

    def rank(group: Sequence[ExplainedRun]) -> tuple[bool, float]:
        left = all(run.key in unread for run in group)
        return left, sum(run.passed for run in group) / len(group)

    for group in sorted(groups, key=rank):
        failing, passing = Counter[str](), Counter[str]()
        for run in group:
            if run.key not in unread:
                (passing if run.passed else failing)[_last_words(run)] += 1
        yield FailingTask(
            system=group[0].system,
            task=group[0].task,
            failed=sum(not run.passed for run in group),
            trials=len(group),
            failing_answers=tuple(failing.most_common(MOST_ANSWERS)),
            passing_answers=tuple(passing.most_common(MOST_ANSWERS)),
        )


MOST_ANSWERS = 3
"""Answers that are kept of a task, on each side."""


def _last_words(run: ExplainedRun) -> str:
    """What the agent answered at the end, cut to what a line can show; empty if nothing."""
    kept = run.transcript
    if kept is None:
        return ""
    spoken = [turn.text for turn in kept.messages if turn.role == "assistant" and turn.text]
    return " ".join((kept.answer or (spoken[-1] if spoken else "")).split())[:_LONGEST_ANSWER]


_LONGEST_ANSWER = 120


def _counts(
    every: Sequence[ExplainedRun], runs: Sequence[ExplainedRun], compared: ComparedRuns
) -> RunCounts:
    """The counts of every run; `runs` are those whose transcripts were looked for."""
    groups = runs_by_task(run for run in every if run.outcome is not Outcome.ERRORED)
    never = [group for group in groups if not any(run.passed for run in group)]
    failing = int(compared.failed.sum())
    return RunCounts(
        runs=len(every),
        failed=sum(run.failed for run in every),
        errored=sum(run.outcome is Outcome.ERRORED for run in every),
        without_transcript=sum(run.transcript is None for run in runs),
        without_calls=sum(run.transcript is not None and not run.calls for run in runs),
        tasks=len({run.group for run in every}),
        mixed_tasks=compared.strata,
        failing=failing,
        passing=len(compared.runs) - failing,
        never_passed_tasks=len(never),
        never_passed_runs=sum(map(len, never)),
        unread=len(every) - len(runs),
    )


def _pairs(
    causes: Sequence[Cause],
    groups: Sequence[Category],
    partings: Sequence[Example],
    runs: Sequence[ExplainedRun],
    first_trial: int,
) -> Iterator[RunDiff]:
    """The example of each cause, then one of each of the largest groups, call by call."""
    by_key = {run.key: run for run in runs}
    nearest = {parting.failing: parting for parting in partings}
    examples = [cause.example for cause in causes[:MOST_PAIRS]]
    largest = [group.example for group in groups[:MOST_PAIRS]]
    examples += [nearest[key] for key in largest if key in nearest]
    seen = {(example.failing, example.passing): example for example in examples}
    for failing, passing in seen:
        failed, other = by_key[failing], by_key[passing]
        if failed.transcript is not None and other.transcript is not None:
            beside = [run for run in runs if run.group == failed.group]
            yield aligned_runs(failed, other, beside, first_trial=first_trial)


# Failed runs grouped by what went wrong, each group with its size, its tasks and one example.

USUAL_STOPS = frozenset(
    {"", "done", "stop", "end_turn", "stop_sequence", "tool_calls", "tool_use", "exit", "user_stop"}
    | {"agent_stop", "completed"}
)
"""Reasons to stop that do not say what went wrong."""

_EXIT_TARGET = "exit_code"
"""What the runner names a check after when a program ended with a code that is not allowed."""

SHARED_STOP = 0.5
"""A reason to stop that this share of passing runs has does not explain a failure."""

ERROR, STOP, CHECK, OTHER = "error", "stop reason", "failed check", "other argument"
TOOL_ERROR, UNCOMPARED, SILENT = "tool error", "never passes", "no transcript"
EXIT = "exit code"

LOGGED = frozenset({ERROR, STOP, CHECK, EXIT})
"""What the log itself says about a run."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """Failed runs that went wrong in the same way.

    `kind` is the sort of thing that went wrong and `what` the thing: the check, the reason, the
    tool. `share` is among all failed runs, on these tasks. `arguments` are those that differ,
    if that is what went wrong, the most frequent first. `expected` and `found` are those of the
    check that the example failed, where the log has them.
    """

    kind: str
    what: str
    arguments: tuple[str, ...]
    share: Estimate
    tasks: tuple[str, ...]
    example: transcript.TranscriptKey
    runs: tuple[transcript.TranscriptKey, ...]
    expected: str = ""
    found: str = ""

    @property
    def count(self) -> int:
        return len(self.runs)


def failure_categories(
    runs: Sequence[ExplainedRun], diverged: Sequence[Divergence], *, confidence: float
) -> tuple[Category, ...]:
    """Every failed or errored run in one category, the largest category first.

    What the log itself says comes first: an error, the reason to stop (unless most passing runs
    stop with it too), the exit code of a program, the check that failed. Without any, it is the
    first difference from a passing run of the task.
    """
    by_run = {divergence.run.key: divergence for divergence in diverged}
    stops = Counter(run.stop_reason for run in runs if run.passed)
    most = SHARED_STOP * stops.total()
    usual = USUAL_STOPS | {reason for reason, count in stops.items() if count >= most}

    def named(run: ExplainedRun, shown: Shown) -> tuple[str, str]:
        return _kind_and_what(run, by_run.get(run.key), usual, shown)

    failed = [run for run in runs if not run.passed]
    keyed = [(run, named(run, masked_text), named(run, first_line)[1]) for run in failed]
    return _grouped(keyed, by_run, confidence)


def divergence_categories(
    diverged: Sequence[Divergence], *, confidence: float
) -> tuple[Category, ...]:
    """The failing runs of tasks that also passed, by how they first differ from a passing run."""
    by_run = {d.run.key: d for d in diverged}
    first = [(divergence.run, _first_difference(divergence)) for divergence in diverged]
    return _grouped([(run, key, key[1]) for run, key in first], by_run, confidence)


Shown = Callable[[str], str]
"""What is left of a text: groups are by what is the same in each run, people read an example."""


def _kind_and_what(
    run: ExplainedRun, divergence: Divergence | None, usual: frozenset[str], shown: Shown
) -> tuple[str, str]:
    if run.outcome is Outcome.ERRORED:
        text = run.error or ("" if run.transcript is None else run.transcript.error)
        return ERROR, shown(text) or "errored without a message"
    if run.stop_reason not in usual:
        return STOP, run.stop_reason
    broken = _broken(run)
    if run.exit_code and (not broken or broken[0].target == _EXIT_TARGET):
        return EXIT, _exit_words(run, shown)
    if broken:
        return CHECK, _check_words(broken[0], shown)
    if divergence is not None:
        return _first_difference(divergence)
    if run.transcript is None:
        return SILENT, "nothing to read"
    if run.calls and run.calls[-1].error is not None:
        answer = transcript.answered_calls(run.transcript)[-1].answer
        error = shown(answer.text) if answer is not None else ""
        return TOOL_ERROR, f"{run.calls[-1].tool}: {error or 'error'}"
    return UNCOMPARED, "nothing to compare with"


def _broken(run: ExplainedRun) -> list[transcript.Check]:
    return [check for check in run.checks if check.score is not None and check.score < 1]


_LONGEST_EXPECTED = 600


def _exit_words(run: ExplainedRun, shown: Shown) -> str:
    """The code, and the last line that the program wrote before it ended."""
    stderr = run.transcript.stderr.strip() if run.transcript is not None else ""
    last = shown(stderr.splitlines()[-1]) if stderr else ""
    return f"{run.exit_code}: {last}" if last else f"{run.exit_code}"


def _first_difference(divergence: Divergence) -> tuple[str, str]:
    if divergence.kind == "no difference":
        return divergence.kind, "read the answer"
    return divergence.kind, divergence.tool


def _check_words(check: transcript.Check, shown: Shown) -> str:
    """A check by its name and what it found."""
    name = " ".join(part for part in (check.target, check.matcher) if part)
    return ": ".join(part for part in (name, shown(check.message)) if part) or "a check"


def _grouped(
    keyed: Sequence[tuple[ExplainedRun, tuple[str, str], str]],
    by_run: Mapping[transcript.TranscriptKey, Divergence],
    confidence: float,
) -> tuple[Category, ...]:
    groups: dict[tuple[str, str], list[tuple[ExplainedRun, str]]] = {}
    for run, key, words in keyed:
        groups.setdefault(key, []).append((run, words))
    categories = []
    for (kind, _), members in groups.items():
        runs = [run for run, _ in members]
        differing = (by_run[run.key].arguments for run in runs) if kind == OTHER else ()
        names = Counter(name for arguments in differing for name in arguments)
        broken = _broken(runs[0]) if kind == CHECK else []
        sides = broken[0].compared if broken else ("", "")
        category = Category(
            kind=kind,
            what=common_wording([words for _, words in members]),
            arguments=tuple(name or "its argument" for name, _ in names.most_common()),
            share=share_estimate(len(runs), len(keyed), confidence=confidence),
            tasks=tuple(sorted({run.task for run in runs}, key=natural_key)),
            example=runs[0].key,
            runs=tuple(run.key for run in runs),
            expected=sides[0][:_LONGEST_EXPECTED],
            found=sides[1][:_LONGEST_EXPECTED],
        )
        categories.append(category)
    return tuple(sorted(categories, key=lambda c: (-c.count, c.kind, c.what)))


# What a suite's own results say about its tasks and graders.

FEWEST_RUNS = 3
"""With fewer runs over all systems, a task has had no chance to discriminate."""

HALF = 0.5
"""Share of all luck that the tasks named for it hold."""

NEAR = 0.8
"""Share of three-word stretches that two prompts have in common to be near-duplicates."""

FEWEST_SHARED = 5
"""Runs that two graders must both have scored."""

Grader = tuple[str, str]
"""What a check looks at, and how it matches."""

_WORD = re.compile(r"\w+")
_STRETCH = 3
_COMMON = 50  # a stretch of words that more tasks share says nothing about any of them


@result_dataclass(frozen=True, slots=True, kw_only=True)
class LuckyTask:
    """One of the tasks that hold half of the luck between runs; `share` is what it holds."""

    system: str
    task: str
    passed: int
    runs: int
    share: float


@result_dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates:
    """Two tasks that ask for nearly the same."""

    first: str
    second: str
    likeness: float


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GraderPair:
    """Two graders of the same runs: how often they agree, beyond chance (Cohen 1960).

    `kappa` is None if one of them always says the same. `example` is a run on which they differ.
    """

    first: str
    second: str
    agreement: Estimate
    kappa: float | None
    only_first: int
    only_second: int
    example: tuple[str, str, int]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReview:
    """Tasks that never discriminate, are near-duplicates or mostly luck; graders that disagree."""

    always_pass: tuple[str, ...]
    never_pass: tuple[str, ...]
    duplicates: tuple[NearDuplicates, ...]
    lucky: tuple[LuckyTask, ...]
    graders: tuple[GraderPair, ...]


def review_suite(runs: Sequence[ExplainedRun], *, confidence: float) -> SuiteReview:
    """What the runs say about tasks and graders; errored runs are neither passes nor failures."""
    judged = [run for run in runs if run.outcome is not Outcome.ERRORED]
    tasks: dict[str, list[ExplainedRun]] = defaultdict(list)
    for run in judged:
        tasks[run.task].append(run)
    errored = {run.task for run in runs if run.outcome is Outcome.ERRORED}
    enough = {name: own for name, own in tasks.items() if len(own) >= FEWEST_RUNS}
    return SuiteReview(
        always_pass=_sorted(
            name
            for name, own in enough.items()
            if name not in errored and all(run.passed for run in own)
        ),
        never_pass=_sorted(n for n, g in enough.items() if not any(r.passed for r in g)),
        duplicates=_near_duplicates(tasks),
        lucky=_lucky(judged),
        graders=_grader_pairs(judged, confidence),
    )


def _sorted(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=natural_key))


def _lucky(runs: Sequence[ExplainedRun]) -> tuple[LuckyTask, ...]:
    """The fewest tasks that hold half of the luck, by the unbiased variance c(n - c) / n(n - 1)."""
    counts = {
        group[0].group: (sum(run.passed for run in group), len(group))
        for group in runs_by_task(runs)
    }
    luck = {
        group: passed * (n - passed) / (n * (n - 1))
        for group, (passed, n) in counts.items()
        if n >= FEWEST_RUNS
    }
    total, held, lucky = sum(luck.values()), 0.0, []
    for group in sorted(luck, key=lambda key: (-luck[key], natural_key(key[1]), key[0])):
        if held >= HALF * total:
            break
        held += luck[group]
        passed, n = counts[group]
        lucky.append(
            LuckyTask(
                system=group[0], task=group[1], passed=passed, runs=n, share=luck[group] / total
            )
        )
    return tuple(lucky)


def _near_duplicates(tasks: Mapping[str, Sequence[ExplainedRun]]) -> tuple[NearDuplicates, ...]:
    """Tasks whose prompts share most of their three-word stretches (Broder 1997)."""
    stretches = {task: _stretches(prompt) for task, prompt in _prompts(tasks)}
    holding: dict[str, list[str]] = defaultdict(list)
    for task, own in stretches.items():
        for stretch in own:
            holding[stretch].append(task)
    shared: Counter[tuple[str, str]] = Counter()
    for names in holding.values():
        if len(names) <= _COMMON:
            shared.update(combinations(sorted(names, key=natural_key), 2))
    pairs = []
    for (first, second), count in shared.items():
        likeness = count / len(stretches[first] | stretches[second])
        if likeness >= NEAR:
            pairs.append(NearDuplicates(first=first, second=second, likeness=likeness))
    return tuple(sorted(pairs, key=lambda pair: (-pair.likeness, natural_key(pair.first))))


def _prompts(tasks: Mapping[str, Sequence[ExplainedRun]]) -> Iterator[tuple[str, str]]:
    """The prompts of tasks that ask every run in the same words; simulated users do not."""
    for task, runs in tasks.items():
        prompts = {
            next((turn.text for turn in run.transcript.messages if turn.role == "user"), "")
            for run in runs
            if run.transcript is not None
        }
        if len(prompts) == 1 and (prompt := prompts.pop()):
            yield task, prompt


def _stretches(prompt: str) -> frozenset[str]:
    words = _WORD.findall(prompt.lower())
    last = max(1, len(words) - _STRETCH + 1)
    return frozenset(" ".join(words[i : i + _STRETCH]) for i in range(last))


def _grader_pairs(runs: Sequence[ExplainedRun], confidence: float) -> tuple[GraderPair, ...]:
    scored: dict[tuple[Grader, Grader], list[tuple[bool, bool, ExplainedRun]]] = defaultdict(list)
    for run in runs:
        verdicts = _verdicts(run)
        for first, second in combinations(sorted(verdicts), 2):
            if _grade_the_same(first, second):
                scored[first, second].append((verdicts[first], verdicts[second], run))
    pairs = [
        _pair(names, rows, confidence)
        for names, rows in scored.items()
        if len(rows) >= FEWEST_SHARED and any(first != other for first, other, _ in rows)
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.agreement.value, pair.first, pair.second)))


def _grade_the_same(first: Grader, second: Grader) -> bool:
    """Whether two graders could agree: checks of the answer and of the calls ask different things.

    A grader without a matcher (a judge, a scorer of another tool) grades the whole run.
    """
    return not (first[1] and second[1]) or first[0] == second[0]


def _verdicts(run: ExplainedRun) -> dict[Grader, bool]:
    """What each grader says about a run; several checks of one name pass together or not at all.

    A check that something is absent asks for something else than the others, so it is no grader
    that could agree with them.
    """
    verdicts: dict[Grader, bool] = {}
    for check in run.checks:
        if check.score is None or check.matcher.startswith("not "):
            continue
        grader = check.target, check.matcher
        verdicts[grader] = verdicts.get(grader, True) and check.score >= 1
    return verdicts


def _pair(
    graders: tuple[Grader, Grader],
    rows: Sequence[tuple[bool, bool, ExplainedRun]],
    confidence: float,
) -> GraderPair:
    names = [" ".join(filter(None, grader)) for grader in graders]
    total = len(rows)
    alike = sum(first == other for first, other, _ in rows)
    first = sum(first for first, _, _ in rows) / total
    second = sum(other for _, other, _ in rows) / total
    by_chance = first * second + (1 - first) * (1 - second)
    return GraderPair(
        first=names[0],
        second=names[1],
        agreement=share_estimate(alike, total, confidence=confidence),
        kappa=(alike / total - by_chance) / (1 - by_chance) if by_chance < 1 else None,
        only_first=sum(first and not other for first, other, _ in rows),
        only_second=sum(other and not first for first, other, _ in rows),
        example=next(run.key for first, other, run in rows if first != other),
    )
