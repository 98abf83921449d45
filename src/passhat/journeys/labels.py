"""Labels of people for trials of a stored run: which to label, keeping them, as a table."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, InputError, PasshatError, ReadError
from passhat.journeys.results import ResultsLike, trials_of
from passhat.journeys.stored_runs import trials_in_columns
from passhat.messages import cut_middle, short_value
from passhat.records import Outcome, Trials
from passhat.records.columns import BY_TASK, BY_VERDICT
from passhat.records.labels import Label, said_in
from passhat.records.transcript import Transcript
from passhat.records.trial import TrialKey

if TYPE_CHECKING:
    from passhat.analysis.reports.judged import JudgeCheck
    from passhat.history import History, Run
    from passhat.records import Suite
    from passhat.stats.estimate import Interval

BUDGET = 60
"""Labels of one person, unless another number is asked for: an hour's work."""

WHOLE_TASK = 5
"""Trials of each task to label for pass^k, or k if that is more."""

SHARED = 5
"""Of so many trials that another person labelled, one is labelled again: do they agree?"""

COLUMNS = ("system", "task", "trial", "answer", "passed", "note", "by", "chosen", "chance")
"""The columns of a table of labels; the judge's verdict is not among them: nobody leans on it."""

_LONGEST_ANSWER = 4_000
_WANTED = re.compile(r"pass[\^@](\d+)")


def check_judge(results: ResultsLike, *, confidence: float = CONFIDENCE) -> JudgeCheck:
    """How often do the judge that graded these results and people agree?"""
    from passhat.analysis.reports import judged
    from passhat.stats.estimate import Unavailable

    check = judged.check_judge(trials_of(results), confidence=confidence)
    if isinstance(check, Unavailable):
        way = (
            "add `label_chosen='random'` if the labelled trials were drawn at random"
            if "how the trial was chosen" in check.reason
            else "`passhat label RUN` asks for labels, `human_labels=COLUMN` reads them from a "
            "table"
        )
        raise InputError(f"{check.reason}: {way}")
    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A trial to label, how it was chosen and with which chance."""

    key: TrialKey
    chosen: str
    chance: float


def choose_trials(
    trials: Trials, wanted: str, budget: int = BUDGET, *, seed: str = ""
) -> list[Assignment]:
    """Which trials to label for a number: pass@1, or pass^k.

    For pass@1 half of them passed by the judge and half failed, at random; for pass^k tasks at
    random, k trials of each agent at each, five at least. The same run gives the same trials in the
    same order: a larger budget goes on where a smaller one ended, and two people read the same.

    >>> trials = Trials.from_columns(task=["a", "a", "b", "b"], passed=[1, 0, 1, 1])
    >>> [one.chosen for one in choose_trials(trials, "pass@1", 2)]
    ['verdict', 'verdict']
    """
    named = _WANTED.fullmatch(wanted)
    if named is None or (wanted[4] == "@" and named[1] != "1") or named[1].startswith("0"):
        raise ArgumentError("for", "must be pass@1 or pass^k, such as pass^3", wanted)
    k, count = int(named[1]), whole_number("budget", budget)
    digest = hashlib.blake2b(f"{seed} {k > 1}".encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    graded = np.flatnonzero(trials.outcome != Outcome.ERRORED)
    rows = (
        _whole_tasks(trials, graded, k, count, rng)
        if k > 1
        else _by_verdict(trials, graded, count, rng)
    )
    systems, tasks = trials.system, trials.task
    return [
        Assignment(
            key=(
                systems.names[systems.codes[row]],
                tasks.names[tasks.codes[row]],
                int(trials.trial[row]),
            ),
            chosen=BY_TASK if k > 1 else BY_VERDICT,
            chance=chance,
        )
        for row, chance in rows
    ]


def _by_verdict(
    trials: Trials, graded: np.ndarray, count: int, rng: np.random.Generator
) -> list[tuple[int, float]]:
    passing = trials.outcome[graded] == Outcome.PASSED
    sides = [rng.permutation(graded[passing]), rng.permutation(graded[~passing])]
    first = min(sides[0].size, max((count + 1) // 2, count - sides[1].size))
    counts = (first, min(sides[1].size, count - first))
    taken = [
        [(int(row), number / side.size) for row in side[:number]]
        for side, number in zip(sides, counts, strict=True)
    ]
    # One of each in turn, so that whoever stops half-way has labels of both kinds.
    mixed = [verdict for pair in zip(*taken, strict=False) for verdict in pair]
    shorter = min(map(len, taken))
    return [*mixed, *taken[0][shorter:], *taken[1][shorter:]]


def _whole_tasks(
    trials: Trials, graded: np.ndarray, k: int, count: int, rng: np.random.Generator
) -> list[tuple[int, float]]:
    """Trials of tasks that are drawn for all agents at once: compared, the tasks are paired."""
    tasks, systems = trials.task.codes[graded], trials.system.codes[graded]
    each, agents = max(k, WHOLE_TASK), np.unique(systems)
    every = np.unique(tasks)
    chosen = rng.permutation(every)[: max(1, count // (each * agents.size))]
    sampled = []
    for task in chosen:
        for agent in agents:
            own = rng.permutation(graded[(tasks == task) & (systems == agent)])
            number = min(each, own.size)
            chance = chosen.size / every.size * number / max(own.size, 1)
            sampled += [(int(row), chance) for row in own[:number]]
    return sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """How often a person and the judge say the same; `table` has the judge's pass first.

    `needed` are the labels that a corrected number still takes of what the judge passed and failed.
    """

    alike: int
    labelled: int
    interval: Interval
    kappa: float | None
    table: tuple[tuple[int, int], tuple[int, int]]
    needed: tuple[int, int]


class LabelSession:
    """One person who labels trials of a stored run, one after the other; each is kept at once."""

    def __init__(self, history: History, run: Run, *, by: str, wanted: str, budget: int) -> None:
        self._history, self.run, self.by = history, run, by
        self._suite: Suite | None = None
        self.trials = trials_in_columns(history, run)
        self.assigned = choose_trials(self.trials, wanted, budget, seed=run.key)

    def open_trials(self) -> Iterator[Assignment]:
        """The trials that this person has still to label.

        What another person labelled is left out, but for one in five: these show if they agree.
        """
        for place, assignment in enumerate(self.assigned):
            if self._is_open(place, self._history.labels(self.run).get(assignment.key, ())):
                yield assignment

    def queue(self) -> list[tuple[Assignment, Label | None]]:
        """The trials that this person labelled, with the label, and has still to label."""
        labels = self._history.labels(self.run)
        every = [(place, a, labels.get(a.key, ())) for place, a in enumerate(self.assigned)]
        return [
            (assignment, next((label for label in labels if label.by == self.by), None))
            for place, assignment, labels in every
            if self._is_open(place, labels) or any(label.by == self.by for label in labels)
        ]

    def _is_open(self, place: int, labels: Sequence[Label]) -> bool:
        by = {label.by for label in labels}
        return self.by not in by and (not by or place % SHARED == 0)

    def rubrics(self, key: TrialKey) -> tuple[str, ...]:
        """What the judge looked for; of an older run, where its suite is in this folder."""
        checks = (check for check in self.transcript(key).checks if check.matcher.endswith("judge"))
        if kept := tuple(check.expected for check in checks if check.expected):
            return kept
        from passhat.suite import suite_in

        if self._suite is None:
            with suppress(PasshatError):  # a suite with an error keeps nobody from labelling
                self._suite = suite_in(Path())
        if self._suite is None or self._suite.name != self.run.suite:
            return ()
        tasks = (task for task in self._suite.tasks if task.name == key[1])
        every = (expectation for task in tasks for expectation in task.expectations())
        return tuple(str(e.value) for e in every if e.matcher == "judge")

    def transcript(self, key: TrialKey) -> Transcript:
        """What the agent said and did, without its grades."""
        kept = self._history.transcript(self.run, *key)
        return Transcript() if kept is None else Transcript.from_json(kept)

    def verdict(self, key: TrialKey) -> Outcome:
        """What the judge says: only to be shown to a person who has answered."""
        system, task, trial = key
        rows = (
            (self.trials.system.codes == self.trials.system.code(system))
            & (self.trials.task.codes == self.trials.task.code(task))
            & (self.trials.trial == trial)
        )
        return Outcome(int(self.trials.outcome[rows][0]))

    def keep(self, item: Assignment, *, passed: bool, note: str = "") -> None:
        """Keep a label; when this returns, it is in the store."""
        label = Label(passed=passed, by=self.by, note=note, chosen=item.chosen, chance=item.chance)
        self._history.add_labels(self.run, {item.key: [label]})

    def agreement(self, queue: Sequence[tuple[Assignment, Label | None]]) -> LabelAgreement | None:
        """How often this person and the judge say the same; None before the first label."""
        from passhat.analysis.reports.judged import kappa_of
        from passhat.stats.judged import FEWEST_LABELS
        from passhat.stats.proportions import proportion_interval

        pairs = [
            (self.verdict(assignment.key) is Outcome.PASSED, label.passed)
            for assignment, label in queue
            if label is not None
        ]
        if not pairs:
            return None
        (both, mine), (judges, neither) = [
            [sum(pair == (verdict, passed) for pair in pairs) for passed in (True, False)]
            for verdict in (True, False)
        ]
        passed, failed = (
            int((self.trials.outcome == verdict).sum())
            for verdict in (Outcome.PASSED, Outcome.FAILED)
        )
        alike = both + neither
        return LabelAgreement(
            alike=alike,
            labelled=len(pairs),
            interval=proportion_interval(alike, len(pairs), confidence=CONFIDENCE),
            kappa=kappa_of(pairs),
            table=((both, mine), (judges, neither)),
            needed=(
                max(0, min(FEWEST_LABELS, passed) - both - mine),
                max(0, min(FEWEST_LABELS, failed) - judges - neither),
            ),
        )

    def undo(self) -> TrialKey | None:
        """Take back the newest label of this person; returns the trial that it was of."""
        given = [(label.at or "", a.key) for a, label in self.queue() if label is not None]
        if not given:
            return None
        _, key = max(given)
        self._history.drop_label(self.run, key, by=self.by)
        return key


def export_labels(session: LabelSession, file: Path) -> int:
    """Write the trials that a person has still to label as a CSV table; returns how many."""
    count = 0
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for trial in session.open_trials():
            answer = _plain(last_words(session.transcript(trial.key)))
            chance = repr(trial.chance)
            writer.writerow((*map(_plain, map(str, trial.key)), answer, "", "", session.by,
                             trial.chosen, chance))  # fmt: skip
            count += 1
    return count


def import_labels(history: History, run: Run, file: Path, *, by: str = "") -> int:
    """Keep the labels of a CSV table, all or none; rows that nobody filled in are left out.

    `by` is the person, where the table does not say. Returns how many labels were kept.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ReadError(f"{file}: cannot be read ({error})") from None
    rows = csv.DictReader(text.splitlines(keepends=True))
    names = rows.fieldnames or ()
    if missing := [name for name in ("task", "trial", "passed") if name not in names]:
        raise ReadError(f"{file}, line 1: has no column {missing[0]}; it must have task, trial, "
                        "passed, and system where the run has several agents")  # fmt: skip
    systems = history.trials(run).systems
    labels: dict[TrialKey, list[Label]] = {}
    for row in rows:
        where = f"{file}, line {rows.line_num}"
        key, label = _imported(row, systems, by, where)
        if label is not None:
            labels.setdefault(key, []).append(label)
    history.add_labels(run, labels)
    return sum(map(len, labels.values()))


def last_words(transcript: Transcript) -> str:
    """The agent's answer: its last text, or what stands for it. Long ones are cut in the middle."""
    texts = [turn.text for turn in transcript.messages if turn.role == "assistant" and turn.text]
    text = transcript.answer or (texts[-1] if texts else "") or transcript.error
    return cut_middle(text, _LONGEST_ANSWER)


def _plain(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: these texts come from models."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _imported(
    row: Mapping[str, str | None], systems: Sequence[str], by: str, where: str
) -> tuple[TrialKey, Label | None]:
    def cell(name: str) -> str:
        return (row.get(name) or "").strip()

    def text(name: str) -> str:  # as `_plain` wrote it
        value = row.get(name) or ""
        return value[1:] if value[:1] == "'" and _plain(value[1:]) == value else value

    system = text("system") or (systems[0] if len(systems) == 1 else "")
    if not system:
        raise ReadError(f"{where}, field system: must name the agent, as the run has several")
    try:
        trial = int(cell("trial"))
    except ValueError:
        rule = f"must be the number of the trial, got {short_value(cell('trial'))}"
        raise ReadError(f"{where}, field trial: {rule}") from None
    try:
        passed = said_in(cell("passed") or None)
        chance = float(cell("chance")) if cell("chance") else None
        label = None if passed is None else Label(
            passed=passed,
            by=cell("by") or by,
            note=row.get("note") or "",
            chosen=cell("chosen") or None,
            chance=chance,
        )  # fmt: skip
    except ValueError as error:  # an ArgumentError is one
        raise ReadError(f"{where}: {error}") from None
    return (system, text("task"), trial), label
