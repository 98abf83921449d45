"""What a suite's own results say about its tasks and graders."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from passhat.analysis.explaining.runs import ExplainedRun, runs_by_task
from passhat.dataclass import short_dataclass
from passhat.records import Outcome
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate
from passhat.stats.proportions import share_estimate

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


@short_dataclass(frozen=True, slots=True, kw_only=True)
class LuckyTask:
    """One of the tasks that hold half of the luck between runs; `share` is what it holds."""

    system: str
    task: str
    passed: int
    runs: int
    share: float


@short_dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates:
    """Two tasks that ask for nearly the same."""

    first: str
    second: str
    likeness: float


@short_dataclass(frozen=True, slots=True, kw_only=True)
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


@short_dataclass(frozen=True, slots=True, kw_only=True)
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
    enough = {name: found for name, found in tasks.items() if len(found) >= FEWEST_RUNS}
    return SuiteReview(
        always_pass=_sorted(
            name
            for name, found in enough.items()
            if name not in errored and all(run.passed for run in found)
        ),
        never_pass=_sorted(n for n, found in enough.items() if not any(r.passed for r in found)),
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
    total, held, found = sum(luck.values()), 0.0, []
    for group in sorted(luck, key=lambda one: (-luck[one], natural_key(one[1]), one[0])):
        if held >= HALF * total:
            break
        held += luck[group]
        passed, n = counts[group]
        found.append(
            LuckyTask(
                system=group[0], task=group[1], passed=passed, runs=n, share=luck[group] / total
            )
        )
    return tuple(found)


def _near_duplicates(tasks: Mapping[str, Sequence[ExplainedRun]]) -> tuple[NearDuplicates, ...]:
    """Tasks whose prompts share most of their three-word stretches (Broder 1997)."""
    stretches = {task: _stretches(prompt) for task, prompt in _prompts(tasks)}
    holding: dict[str, list[str]] = defaultdict(list)
    for task, found in stretches.items():
        for stretch in found:
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
    return tuple(sorted(pairs, key=lambda one: (-one.likeness, natural_key(one.first))))


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
    found = [
        _pair(names, rows, confidence)
        for names, rows in scored.items()
        if len(rows) >= FEWEST_SHARED and any(one != other for one, other, _ in rows)
    ]
    return tuple(sorted(found, key=lambda one: (one.agreement.value, one.first, one.second)))


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
    found: dict[Grader, bool] = {}
    for check in run.checks:
        if check.score is None or check.matcher.startswith("not "):
            continue
        grader = check.target, check.matcher
        found[grader] = found.get(grader, True) and check.score >= 1
    return found


def _pair(
    graders: tuple[Grader, Grader],
    rows: Sequence[tuple[bool, bool, ExplainedRun]],
    confidence: float,
) -> GraderPair:
    names = [" ".join(filter(None, grader)) for grader in graders]
    total = len(rows)
    alike = sum(one == other for one, other, _ in rows)
    first = sum(one for one, _, _ in rows) / total
    second = sum(other for _, other, _ in rows) / total
    by_chance = first * second + (1 - first) * (1 - second)
    return GraderPair(
        first=names[0],
        second=names[1],
        agreement=share_estimate(alike, total, confidence=confidence),
        kappa=(alike / total - by_chance) / (1 - by_chance) if by_chance < 1 else None,
        only_first=sum(one and not other for one, other, _ in rows),
        only_second=sum(other and not one for one, other, _ in rows),
        example=next(run.key for one, other, run in rows if one != other),
    )
