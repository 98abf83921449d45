"""Which tasks passed and failed over the last runs, and how often."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.comparing.trends import Moment
from passhat.arguments import CONFIDENCE
from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, short_repr
from passhat.records import ErrorPolicy
from passhat.stats.estimate import Interval
from passhat.stats.proportions import proportion_interval
from passhat.stats.task_labels import label_tasks

PASSED, FAILED, MIXED, ABSENT = "P", "F", "~", "."
"""What a task did in one run: all trials passed, all failed, some of each, not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTask:
    """A task that passed and failed: its trials over all runs, and what it did in each run.

    `label` is flaky, broken, solid or "undecided" for all trials together; `marks` has a letter
    for each run, oldest first: P all passed, F all failed, ~ some of each, . not run.
    """

    system: str
    task: str
    label: str
    trials: int
    passed: int
    rate: float
    interval: Interval
    marks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTasks(Displayed):
    """The tasks that passed and failed over some runs; `tasks_seen` counts all that were run."""

    tasks: tuple[FlakyTask, ...]
    tasks_seen: int
    runs: int
    confidence: float

    def __repr__(self) -> str:
        found = (
            f"{len(self.tasks)} of {plural(self.tasks_seen, 'task')} in {plural(self.runs, 'run')}"
        )
        return short_repr("FlakyTasks", found, see=".tasks")


def find_flaky(
    moments: Sequence[Moment], *, confidence: float = CONFIDENCE, errors: ErrorPolicy = "fail"
) -> FlakyTasks:
    """The tasks that both passed and failed over these runs, oldest run first.

    Tasks labelled flaky come first; within each label, those nearest to a coin toss.
    """
    counts = _counts(moments, errors)
    keys = list(counts)
    totals = [tuple(map(sum, zip(*counts[key].values(), strict=True))) for key in keys]
    labels = label_tasks(*zip(*totals, strict=True)).labels.tolist() if totals else []
    found = [
        FlakyTask(
            system=key[0],
            task=key[1],
            label=label,
            trials=n,
            passed=c,
            rate=c / n,
            interval=proportion_interval(c, n, confidence=confidence),
            marks="".join(_mark(counts[key].get(i)) for i in range(len(moments))),
        )
        for key, label, (n, c) in zip(keys, labels, totals, strict=True)
        if 0 < c < n
    ]
    found.sort(key=lambda one: (one.label != "flaky", abs(one.rate - 0.5), one.system, one.task))
    return FlakyTasks(
        tasks=tuple(found), tasks_seen=len(keys), runs=len(moments), confidence=confidence
    )


def _counts(
    moments: Sequence[Moment], errors: ErrorPolicy
) -> dict[tuple[str, str], dict[int, tuple[int, int]]]:
    """For each system and task: the trials and passes of each run, by its number."""
    found: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for number, moment in enumerate(moments):
        for tally in moment.tallies:
            runs = tally.runs(errors).tolist()
            for task, n, c in zip(tally.tasks, runs, tally.passed.tolist(), strict=True):
                if n:
                    found.setdefault((tally.system, task), {})[number] = (n, c)
    return found


def _mark(counts: tuple[int, int] | None) -> str:
    """The letter of one run, from its trials and passes."""
    if counts is None:
        return ABSENT
    trials, passed = counts
    return PASSED if passed == trials else FAILED if passed == 0 else MIXED
