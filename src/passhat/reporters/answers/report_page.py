"""What the page of a report shows beyond its sentences: figures, tables of tasks, transcripts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from passhat.analysis.explaining.explain import CHECK, Category
from passhat.analysis.reports.parts import SystemReport, TaskRow, common_k, is_judged
from passhat.analysis.reports.report import Report
from passhat.dataclass import dataclass
from passhat.messages import capitalised, plural, safe_text, shorten
from passhat.records import Outcome
from passhat.records.transcript import TranscriptKey
from passhat.records.trial import natural_key, run_number
from passhat.reporters import headline, wording
from passhat.reporters.answer import (
    Block,
    DisplayOptions,
    Judged,
    Paragraph,
    StatusLabel,
    Table,
    file_name,
    verdict_tile,
)
from passhat.reporters.answers.explanation import (
    category_text,
    caution,
    compared_text,
    place,
)
from passhat.reporters.answers.explanation import verdict as why_verdict
from passhat.reporters.answers.report_blocks import (
    factor_blocks,
    most_reliable_first,
    origin,
    report_figures,
    system_blocks,
    systems_table,
)
from passhat.reporters.formatting import (
    amount,
    both_intervals,
    percent,
    percent_range,
    points,
    value_of,
)
from passhat.reporters.next_steps import next_steps, results_of
from passhat.reporters.page_parts import (
    MOST_ROWS,
    Outcomes,
    PageTranscripts,
    Work,
    fit_transcripts,
    headline_parts,
    outcomes_of,
    packed,
    page_rows,
    safe_passage,
    task_anchor,
)
from passhat.reporters.wording import meaning
from passhat.stats.estimate import Estimate, Interval, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.drawing.figure import Figure
    from passhat.records import Trials

_RULES = ("Labels", "Verdict")
_EXPLAINED = ("luck", "ICC", "correlation with passing")


def page_of(
    report: Report,
    options: DisplayOptions,
    *,
    gates: Sequence[Judged] = (),
    after: Sequence[Block] = (),
) -> Mapping[str, Any]:
    """The values of the template; transcripts are shown run by run, rendered when asked for.

    If they may be too many for a page, `fit_transcripts` chooses among them.
    """
    transcripts = options.transcripts
    if not isinstance(transcripts, PageTranscripts):
        transcripts = fit_transcripts(report, transcripts or {}, trials=options.trials)
    many, why = len(report.systems) > 1, options.explanation
    every = report.every_k or report
    if not gates and options.verdict is not None:  # a stored run: by the gates it was started with
        gates = [Judged(word=word, sentence=text) for word, text in options.verdict.gates]
    outcomes: Outcomes = {}
    if transcripts.texts:
        outcomes = outcomes_of(report, list(transcripts.texts), options.trials)
    shown = transcript_links(transcripts, outcomes, several=many, first_trial=options.first_trial)
    return {
        "subject": page_subject(report),
        "chip": headline.overview_chip(report),
        "hero": None if many else key_numbers(report.systems[0], every.systems[0]),
        "facts": system_facts(report) if many else [],
        "at_k": at_each_k(report, every) if many else None,
        "change": None if options.verdict is None else verdict_tile(options.verdict),
        "counts": "" if many else hero_counts(report.systems[0]),
        "reasons": {} if why is None else reasons_by_task(why),
        "figures": report_figures(report) if many else {},
        "by_tag": tag_table(report) if many else None,
        "together": tasks_together(report) if many else None,
        "report": report,
        "steps": {
            s.name: next_steps(
                s, results_of(report, s, options.results), options.more_runs, options.wording
            )
            for s in report.systems
        },
        "many": many,
        "answer": headline.opening(report),
        "gates": gates,
        "why": None if why is None else why_view(why, shown),
        "after": after,
        "effort": effort_table(report) if many else None,
        "sentences": {s.name: page_sentences(s, among=many) for s in report.systems},
        "transcripts": shown,
        "work": work_view(transcripts.work, outcomes, shown, first_trial=options.first_trial),
        "blocks": transcripts.blocks,
        "facts_of_trials": "" if many else _facts_of(report.systems[0], options),
        "packed": len(transcripts.places),
        "cut": transcripts.cut_note,
        "left_out": transcripts.left_out_note,
        "notes": page_notes(report),
        "origin": origin(report, folders=False),
    }


def page_subject(report: Report) -> str:
    """What the page is about, beside the name of the tool."""
    if len(report.systems) > 1:
        return f"report on {plural(len(report.systems), 'agent')}"
    system = report.systems[0]
    return f"report on {system.name}, {wording.design(system)}"


def page_notes(report: Report) -> list[str]:
    """What is noted of the results, files without their folders: a page is passed around."""
    names = {source.name: file_name(source.name) for source in report.provenance.sources}

    def shown(note: str) -> str:
        name, colon, rest = note.partition(": ")
        return f"{names.get(name, name)}{colon}{rest}"

    return [shown(note) for note in report.notes]


def hero_counts(system: SystemReport) -> str:
    """What the answer rests on, and how much of the spread is luck, in one line."""
    errors = system.design.errors
    errored = f"{errors:,} errored" if errors else "none errored"
    counts = f"{capitalised(wording.design(system))}, {errored}."
    if isinstance(system.variance, Unavailable):
        return counts
    return f"{counts} {wording.luck(system.variance)}"


def key_numbers(system: SystemReport, every: SystemReport) -> dict[str, Any] | None:
    """What the slider of k shows at `every` k: numbers and places for the gauge, and all words.

    Beyond the runs there are, the value is the model's, and no interval of this suite is shown.
    """
    chosen = wording.headline_k(system)
    known = [_at_k(every, k) for k in every.ks if every.pass_hat(k).value is not None]
    if not known:
        return None
    known += [
        _not_measured(p.k, p.estimate)
        for p in system.decay.beyond
        if p.k > known[-1]["k"] and isinstance(p.estimate, Estimate)
    ]
    for number in known:
        k = number["k"]
        number["name"] = "one trial (pass@1)" if k == 1 else f"{k} in a row (pass^{k})"
    start = next((i for i, number in enumerate(known) if number["k"] == chosen), 0)
    return {"ks": known, "start": start, "now": known[start]}


def _at_k(system: SystemReport, k: int) -> dict[str, Any]:
    metric = system.pass_hat(k)
    return {
        "k": k,
        "value": _placed(metric.value),
        "shown": percent(metric.value, digits=1),
        **{
            name: [_placed(ends.low), _placed(ends.high), percent_range(ends, digits=1)]
            for name, ends in zip(("suite", "like"), both_intervals(metric), strict=True)
            if ends is not None
        },
        "answer": headline_parts(headline.verdict(system, k=k)),
        "chip": _shown_chip(headline.chip(system, k=k)),
    }


def _placed(share: float | None) -> float | None:
    """A share as it is drawn on a gauge: a tenth of a pixel is enough."""
    return None if share is None else round(share, 4)


def _not_measured(k: int, estimate: Estimate) -> dict[str, Any]:
    answer = f"{k} in a row was not measured: a model of these trials puts it at about "
    return {
        "k": k,
        "value": _placed(estimate.value),
        "shown": f"≈ {percent(estimate.value, digits=1)}",
        "model": "extrapolated by a model, not measured",
        "answer": headline_parts(f"{answer}{percent(estimate.value)}."),
        "chip": _shown_chip(StatusLabel("Not measured", "none")),
    }


def _shown_chip(chip: StatusLabel) -> list[str]:
    return [chip.tone, f"{chip.sign} {chip.words}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Trials that failed in the same way; `width` is the length of its bar, from 0 to 100."""

    title: str
    trials: int
    tasks: int
    width: float
    example: tuple[str, str]
    runs: tuple[tuple[str, str], ...]
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why trials fail, as the page of a report shows it; runs are names and addresses."""

    title: str
    compared: str
    groups: tuple[FailureGroup, ...]
    others: str
    causes: tuple[tuple[str, str, str, str], ...]
    caution: str


def why_view(explanation: Explanation, links: TranscriptLinks) -> Why | None:
    """Groups of failures, the largest first, and what goes together with failing."""
    if not explanation.categories:
        return None
    addresses = {
        (*task, run.number): run.address
        for task, task_runs in links.items()
        for run in task_runs.runs
    }

    def named(key: TranscriptKey) -> tuple[str, str]:
        system, task, trial = key
        number = run_number(trial, explanation.first_trial)
        return place(key, explanation).removeprefix("task "), addresses.get(
            (system, task, number), ""
        )

    fault = _faults(explanation)
    shown, rest = explanation.categories[:MOST_BARS], explanation.categories[MOST_BARS:]
    others = sum(group.count for group in rest)
    return Why(
        title=why_verdict(explanation),
        compared=compared_text(explanation),
        groups=tuple(
            FailureGroup(
                title=capitalised(fault(group)),
                trials=group.count,
                tasks=len(group.tasks),
                width=round(100 * group.count / shown[0].count, 1),
                example=named(group.example),
                runs=tuple(map(named, group.runs[:MOST_RUNS_NAMED])),
                expected=safe_passage(group.expected),
                found=safe_passage(group.found),
            )
            for group in shown
        ),
        others=f"{plural(others, 'trial')} in {plural(len(rest), 'other group')}" if rest else "",
        causes=tuple(
            (
                cause.sentence,
                f"p = {cause.p:.2g}.",
                *named(cause.example.failing),
            )
            for cause in explanation.causes
        ),
        caution=caution(explanation),
    )


MOST_BARS = 8
"""Groups of failures that have a bar; the page of `passhat why` has them all."""

MOST_RUNS_NAMED = 40
"""Trials of a group that are named below its bar."""


def reasons_by_task(explanation: Explanation) -> dict[tuple[str, str], str]:
    """What went wrong in most failed runs of each task, in the words of the categories."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    fault = _faults(explanation)
    for category in explanation.categories:
        words = fault(category).removesuffix(": nothing to compare with")
        for system, task, _ in category.runs:
            counts.setdefault((system, task), Counter())[words] += 1
    return {key: reasons.most_common(1)[0][0] for key, reasons in counts.items()}


def _faults(explanation: Explanation) -> Callable[[Category], str]:
    """What went wrong in trials of a kind; that a check failed goes without saying.

    So does which one, where a single check fails in several ways.
    """
    failed = [group.what for group in explanation.categories if group.kind == CHECK]
    heads = {what.partition(": ")[0] for what in failed}
    known = f"{heads.pop()}: " if len(failed) > len(heads) == 1 else ""

    def fault(category: Category) -> str:
        words = category.what if category.kind == CHECK else category_text(category)
        return words.removeprefix(known)

    return fault


def page_sentences(system: SystemReport, *, among: bool = False) -> list[Paragraph]:
    """The sentences of a report on one system that its page does not show as figures or tables.

    `among` several systems, rules and the meaning of terms are not repeated for each.
    """
    blocks = system_blocks(system, DisplayOptions(results=None, verbose=True))
    apart = factor_blocks(system)  # which the page shows beside their tables
    every = [
        block
        for block in blocks
        if isinstance(block, Paragraph) and block.label and block not in apart
    ]
    if not among:
        return every
    kept = [_without_meanings(block) for block in every if block.label not in _RULES]
    return [block for block in kept if block.text]


def _without_meanings(paragraph: Paragraph) -> Paragraph:
    """A sentence without the meaning of its terms, which the page has in its list of words."""
    text = paragraph.text
    for term in _EXPLAINED:
        text = text.replace(meaning(term), "")
    return replace(paragraph, text=" ".join(text.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLink:
    """A trial of a task as its mark; `address` is empty if the page has no transcript of it.

    Else its `page` is the transcript, or `place` says where that is packed. An address that begins
    with a slash is that of a page of its own; a transcript that has one beside it says so in `own`.
    """

    number: str
    outcome: str
    address: str = ""
    place: str = ""
    page: str = ""
    own: str = ""

    @property
    def href(self) -> str:
        return self.address if self.address.startswith("/") else f"#{self.address}"

    @property
    def mark(self) -> str:
        return {"passed": "P", "failed": "F", "errored": "E"}.get(self.outcome, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRuns:
    """The trials of a task that has transcripts on the page, and what was asked of the agent.

    `beside` is a trial of another agent at the task, to read beside one of these.
    """

    address: str
    request: str
    runs: tuple[RunLink, ...]
    beside: RunLink | None = None
    beside_agent: str = ""

    @property
    def shown(self) -> list[RunLink]:
        """Those whose transcript is on the page."""
        return [run for run in self.runs if run.address]

    @property
    def marks(self) -> Iterator[RunLink | str]:
        """The trials in order: those on the page, and between them the letters of others."""
        for linked, runs in groupby(self.runs, key=lambda run: bool(run.address)):
            if linked:
                yield from runs
            else:
                yield "".join(run.mark for run in runs)

    @property
    def leads_to(self) -> str:
        """Where its name leads: to its own page, or to the trial to read first."""
        return self.address if self.address.startswith("/") else self.first.href

    @property
    def first(self) -> RunLink:
        """The one to read first: the first that did not pass, else the first of all."""
        return next((run for run in self.shown if run.outcome != "passed"), self.shown[0])

    @property
    def passed(self) -> RunLink | None:
        """One that passed, to read beside one that did not."""
        return next((run for run in self.shown if run.outcome == "passed"), None)


TranscriptLinks = Mapping[tuple[str, str], TaskRuns]
"""What can be opened, by system and task."""


def transcript_links(
    transcripts: PageTranscripts,
    outcomes: Outcomes,
    *,
    several: bool,
    first_trial: int = 0,
    own_page: Callable[[TranscriptKey], str] = lambda key: "",
) -> TranscriptLinks:
    """The transcripts of each task, with the marks of all its trials where these are known."""
    by_task: dict[tuple[str, str], set[int]] = {}
    for system, task, trial in transcripts.texts:
        by_task.setdefault((system, task), set()).add(trial)
    for system, task, trial in outcomes:
        if (system, task) in by_task:
            by_task[system, task].add(trial)
    linked = {}
    for (system, task), trials in by_task.items():
        address = task_anchor(system if several else "", task)
        links = []
        for trial in sorted(trials):
            key = system, task, trial
            ended = outcomes.get(key)
            number, outcome = (
                run_number(trial, first_trial),
                ended.name.lower() if ended is not None else "",
            )
            if key not in transcripts.texts:
                links.append(RunLink(number=number, outcome=outcome))
                continue
            block, place = transcripts.places.get(key, (0, 0))
            written = key in transcripts.written
            links.append(
                RunLink(
                    number=number,
                    outcome=outcome,
                    address=f"{address}-trial-{number.removeprefix('#')}",
                    place="" if written else f"{block}.{place}",
                    page=transcripts.texts[key] if written else "",
                    own=own_page(key),
                )
            )
        linked[system, task] = TaskRuns(
            address=address, request=transcripts.requests.get((system, task), ""), runs=tuple(links)
        )
    return linked


def _facts_of(system: SystemReport, options: DisplayOptions) -> str:
    trials = options.trials
    if trials is not None and trials.systems != (system.name,):
        trials = trials.where(system=system.name)
    why = options.explanation
    checks = {}
    if why is not None:
        fault = _faults(why)
        checks = {key: fault(group) for group in why.categories for key in group.runs}
    return trial_facts(trials, options.first_trial, checks=checks)


MOST_FACTS = 20_000
"""Trials up to which a page has what each took: some four bytes a trial."""

_FACTS = ("score", "seconds", "cost")


def trial_facts(
    trials: Trials | None,
    first_trial: int = 0,
    *,
    several: bool = False,
    checks: Mapping[TranscriptKey, str] | None = None,
) -> str:
    """What is known of each trial beside how it ended, packed: by task, in the order of its marks.

    A mark without a transcript leads to it. `checks` say what went wrong in a trial. Numbers are
    kept to two digits; those of trials only where they are not 1, 2, 3 and so on.
    """
    if trials is None or not 0 < len(trials) <= MOST_FACTS:
        return ""
    order = np.lexsort((trials.trial, trials.task.codes, trials.system.codes))
    kept = trials.take(order)
    columns: dict[str, Sequence[Any]] = {}
    systems, tasks = kept.system.texts(), kept.task.texts()
    if checks:
        keys = zip(systems, tasks, kept.trial.tolist(), strict=True)
        columns["check"] = [checks.get((s or "", task or "", n)) for s, task, n in keys]
    numbers = {"score": kept.score, **kept.features}
    for name in _FACTS:
        cells = numbers.get(name)
        # A score that only repeats whether the trial passed says nothing more.
        if cells is not None and not (name == "score" and np.isin(cells, (0, 1)).all()):
            columns[name] = [None if math.isnan(x) else float(f"{x:.2g}") for x in cells.tolist()]
    if kept.error is not None:
        columns["error"] = [
            shorten(safe_text(text), LONGEST_ERROR) if text else None for text in kept.error.texts()
        ]
    places = kept.trial - first_trial + 1
    of_task: dict[str, dict[str, Any]] = {}
    start = 0
    for (system, task), rows in groupby(zip(systems, tasks, strict=True)):
        end = start + len(list(rows))
        known = {
            name: values[start:end]
            for name, values in columns.items()
            if any(value is not None for value in values[start:end])
        }
        own = places[start:end].tolist()
        if own != list(range(1, end - start + 1)):
            known["number"] = own
        if known:
            of_task[task_anchor((system or "") if several else "", task or "")] = known
        start = end
    return packed(of_task) if of_task else ""


LONGEST_ERROR = 300
"""Characters of the error of a trial beside which there is no transcript."""


# What trials changed in their workspaces, and the tests that decided.

MOST_TASKS_WORKED, MOST_CHANGES, MOST_TESTS = 20, 6, 40
LONGEST_CHANGE = 300
"""Lines of a diff on the page; the transcript of the trial has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """Trials that made the same change, line by line with the class that each line is shown in."""

    title: str
    runs: tuple[RunLink, ...]
    lines: tuple[tuple[str, str], ...]
    files: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWork:
    """The work of a task's trials: the different changes, and tests against trials."""

    title: str
    runs: tuple[RunLink, ...]
    changes: tuple[ChangeGroup, ...]
    tests: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]


def work_view(
    work: Mapping[TranscriptKey, Work],
    outcomes: Outcomes,
    links: TranscriptLinks,
    *,
    first_trial: int = 0,
) -> list[TaskWork]:
    """What the trials of each task changed, grouped by identical change; flaky tasks first."""
    by_task: dict[tuple[str, str], dict[int, Work]] = {}
    for (system, task, trial), done in work.items():
        by_task.setdefault((system, task), {})[trial] = done
    several = len({system for system, _ in by_task}) > 1
    return [
        _task_work(
            f"{task}, {system}" if several else task,
            {
                trial: (
                    done,
                    _run_link(
                        links.get((system, task)),
                        trial,
                        first_trial,
                        outcomes.get((system, task, trial)),
                    ),
                )
                for trial, done in sorted(trials.items())
            },
        )
        for (system, task), trials in list(by_task.items())[:MOST_TASKS_WORKED]
    ]


def _run_link(
    runs: TaskRuns | None, trial: int, first_trial: int, outcome: Outcome | None
) -> RunLink:
    number = run_number(trial, first_trial)
    numbered = (run for run in (() if runs is None else runs.runs) if run.number == number)
    ended = "" if outcome is None else outcome.name.lower()
    return next(numbered, RunLink(number=number, outcome=ended))


def _task_work(title: str, trials: Mapping[int, tuple[Work, RunLink]]) -> TaskWork:
    groups: dict[str, list[RunLink]] = {}
    for done, link in trials.values():
        groups.setdefault(done.diff, []).append(link)
    often = sorted(groups.items(), key=lambda group: -len(group[1]))
    names = dict.fromkeys(name for done, _ in trials.values() for name in done.tests)
    rows = [
        (name, tuple(done.tests.get(name, "") for done, _ in trials.values())) for name in names
    ]
    # Tests that do not end alike in every trial say the most.
    rows.sort(key=lambda row: (len(set(row[1])) == 1, set(row[1]) == {"passed"}))
    notes = []
    if len(often) > MOST_CHANGES:
        notes.append(f"{plural(len(often) - MOST_CHANGES, 'further change')} of fewer trials.")
    if len(rows) > MOST_TESTS:
        notes.append(f"{plural(len(rows) - MOST_TESTS, 'further test')}.")
    return TaskWork(
        title=title,
        runs=tuple(link for _, link in trials.values()),
        changes=tuple(_change(diff, runs, len(trials)) for diff, runs in often[:MOST_CHANGES]),
        tests=tuple(rows[:MOST_TESTS]),
        notes=tuple(notes),
    )


def _change(diff: str, runs: Sequence[RunLink], trials: int) -> ChangeGroup:
    """`7 of 10 trials made this change; 6 of them passed`."""
    passed = sum(run.outcome == "passed" for run in runs)
    did = "made this change" if diff else "changed nothing"
    lines = diff.splitlines()
    classes = {"+": "add", "-": "del", "@": "hunk"}
    shown = [
        ("file" if line.startswith(("+++ ", "--- ")) else classes.get(line[:1], ""), line)
        for line in lines[:LONGEST_CHANGE]
    ]
    if len(lines) > LONGEST_CHANGE:
        shown.append(("hunk", f"[{plural(len(lines) - LONGEST_CHANGE, 'further line')}]"))
    files = sum(line.startswith("+++ ") for line in lines)
    return ChangeGroup(
        title=f"{len(runs)} of {plural(trials, 'trial')} {did}; {passed} passed",
        runs=tuple(runs),
        lines=tuple((kind, safe_passage(line)) for kind, line in shown),
        files=f"{plural(files, 'file')}, {plural(len(lines), 'line')}" if lines else "",
    )


# Tasks in groups that fold: those with the same count share one interval.

MOST_GROUPS = 8
"""Different counts of passes up to which each is a group; more are put together by quarters."""

MOST_UNGROUPED = 12
"""Tasks up to which there are no groups: all of them are seen at once."""

_QUARTERS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGroup:
    """Tasks that passed equally often; `label` and `interval` where they share one."""

    title: str
    rows: Sequence[TaskRow]
    is_open: bool

    @property
    def label(self) -> str:
        labels = {row.label for row in self.rows}
        return labels.pop() if len(labels) == 1 else ""

    @property
    def interval(self) -> Interval | None:
        intervals = {row.rate.interval for row in self.rows}
        return intervals.pop() if len(intervals) == 1 else None

    @property
    def reach(self) -> Interval:
        """From the lowest to the highest end of their intervals."""
        ends = [end for row in self.rows if (end := row.rate.interval) is not None]
        return Interval(min(end.low for end in ends), max(end.high for end in ends))

    @property
    def value(self) -> float:
        """Their mean rate."""
        return sum(row.rate.value for row in self.rows) / len(self.rows)


def task_groups(tasks: Sequence[TaskRow]) -> list[TaskGroup]:
    """The tasks of a page: those that pass sometimes first, then never, then always.

    A few tasks are one group. Else those with one count are; if there are more than a few counts,
    those within a quarter of the rate.
    """
    rows = page_rows(tasks)
    if len(rows) <= MOST_UNGROUPED:
        return [TaskGroup(title="", rows=rows, is_open=True)] if rows else []
    counts = {(row.passed, row.runs) for row in rows}
    by_count = len(counts) <= MOST_GROUPS
    groups: dict[tuple[float, ...], list[TaskRow]] = {}
    for row in rows:
        if row.passed in (0, row.runs):
            key: tuple[float, ...] = (1 if row.passed == 0 else 2,)
        elif by_count:
            key = (0, row.passed / row.runs, row.runs)
        else:
            key = (0, bisect_right(_QUARTERS, row.passed / row.runs))
        groups.setdefault(key, []).append(row)
    ordered = [groups[key] for key in sorted(groups)]
    return [
        TaskGroup(
            title=f"{plural(len(group), 'task')} passed {_how_often(group)}",
            rows=group,
            is_open=place == 0 and (len(group) <= MOST_UNGROUPED or len(ordered) == 1),
        )
        for place, group in enumerate(ordered)
    ]


def _how_often(group: Sequence[TaskRow]) -> str:
    """How often the tasks of a group passed, in words: "2 of 4", "1 to 4 of 20", "26% to 49%"."""
    passed, runs = [row.passed for row in group], {row.runs for row in group}
    if len(runs) == 1:
        low, high = min(passed), max(passed)
        return f"{low if low == high else f'{low} to {high}'} of {runs.pop()}"
    rates = [row.passed / row.runs for row in group]
    if max(rates) == 0:
        return "never"
    if min(rates) == 1:
        return "every time"
    least, greatest = (percent(rate) for rate in (min(rates), max(rates)))
    return least if least == greatest else f"{least} to {greatest}"


# What the page of several systems shows: the answer at each k, facts, all tasks in one table.

MOST_OWN_ROWS = 150
"""Tasks times systems up to which each system has a table of its own, with its intervals.

A row takes about 650 bytes: 150 of them leave a page within 150 KB and 1 KB a task.
"""


_MOST_ROWS_AT_K = 24  # systems times k: a row of a picture and a table takes a kilobyte
_MOST_TAGS = 8  # more columns do not fit beside a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherRow:
    """A task, and its trials by each system."""

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Every task with every system; `tasks` counts them all, where the rows are the lowest."""

    systems: tuple[str, ...]
    rows: tuple[TogetherRow, ...]
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCell:
    """pass^k of a system on a tag: `level` says how dark its ground is, from 0 to 3."""

    shown: str
    level: int
    best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TagTable:
    """pass^k of each system by tag; each of `tags` has a name and how many tasks it has."""

    k: int
    title: str
    tags: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[TagCell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralAtK:
    """All systems at one k: the answer, the picture, and the table with links to each system."""

    k: int
    chip: StatusLabel
    answer: str
    figure: Figure
    table: Table
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtEachK:
    """What the slider of k chooses from, and the k that the page opens with."""

    k: int
    each: tuple[SeveralAtK, ...]

    @property
    def first_shown(self) -> list[SeveralAtK]:
        """Each of them, the one that the page opens with first."""
        return sorted(self.each, key=lambda several: several.k != self.k)

    @property
    def start(self) -> int:
        return [several.k for several in self.each].index(self.k)


def at_each_k(report: Report, every: Report) -> AtEachK | None:
    """The answer on several systems at `every` k; None if there is one k, or none to compare."""
    k = common_k(report.systems)
    order = [system.name for system in most_reliable_first(report.systems)]
    each = [several for at in _offered(every, k) if (several := _several_at(every, at, order))]
    ks = [several.k for several in each]
    return AtEachK(k=k, each=tuple(each)) if k in ks and len(ks) > 1 else None


def system_facts(report: Report) -> list[tuple[str, str]]:
    """Three numbers for a first look: the best system, tasks that no system passes, errors."""
    k = common_k(report.systems)
    judged = [s for s in report.systems if is_judged(s, k)]
    facts = []
    if judged:
        best = max(judged, key=lambda s: s.pass_hat(k).value or 0.0)
        value = percent(best.pass_hat(k).value, digits=1)
        facts.append((value, f"the most reliable, {best.name}, {k} in a row (pass^{k})"))
    ever = [set(compress(s.tasks.names, s.tasks.passed > 0)) for s in report.systems]
    tasks = {name for s in report.systems for name in s.tasks.names}
    never = len(tasks - set().union(*ever))
    facts.append((f"{never} of {len(tasks):,}", "tasks that no agent passed even once"))
    errored = sum(int(s.tasks.errored.sum()) for s in report.systems)
    runs = sum(int(s.tasks.runs.sum()) for s in report.systems)
    if errored:
        facts.append((f"{errored:,} of {runs:,}", "trials that ended in an error"))
    return facts


def tag_table(report: Report) -> TagTable | None:
    """pass^k of each system by tag, the hardest tag first; None without tags or with too many."""
    k = common_k(report.systems)
    judged = [s for s in most_reliable_first(report.systems) if is_judged(s, k)]
    tags = {tag for system in judged for tag in system.tags}
    if not judged or not 1 < len(tags) <= _MOST_TAGS:
        return None
    values = {(s.name, tag): _tag_value(s, tag, k) for s in judged for tag in tags}
    best = {tag: max(values[s.name, tag] or 0.0 for s in judged) for tag in tags}
    order = sorted(tags, key=lambda tag: (best[tag], natural_key(tag)))
    tasks = {tag: max(s.tags[tag].design.tasks for s in judged if tag in s.tags) for tag in tags}
    return TagTable(
        k=k,
        title=f"{order[0]} is the hardest tag: the best there manages {percent(best[order[0]])}",
        tags=tuple((tag, plural(tasks[tag], "task")) for tag in order),
        rows=tuple(
            (s.name, tuple(_tag_cell(values[s.name, tag], best[tag]) for tag in order))
            for s in judged
        ),
    )


def effort_table(report: Report) -> Table | None:
    """What a trial of each system takes on average; None if no log says."""
    ranked = most_reliable_first(report.systems)
    names = list(dict.fromkeys(name for system in ranked for name in system.features))[:_MOST_TAGS]
    if not names:
        return None
    rows = tuple((system.name, *(_mean_of(system, name) for name in names)) for system in ranked)
    heads = (f"{name.replace('_', ' ')}{', $' * (name == 'cost')}" for name in names)
    return Table(header=("per trial", *heads), rows=rows)


def tasks_together(report: Report) -> Together | None:
    """All tasks in one table, where a table for each system would take too much of the page."""
    tasks = {name for system in report.systems for name in system.tasks.names}
    if len(tasks) * len(report.systems) <= MOST_OWN_ROWS:
        return None
    ranked = most_reliable_first(report.systems)
    cells = {
        system.name: dict(zip(system.tasks.names, _cells(system), strict=True)) for system in ranked
    }
    rates: dict[str, list[float]] = {}
    for system in ranked:
        for task, rate in zip(system.tasks.names, system.tasks.rate.tolist(), strict=True):
            rates.setdefault(task, []).append(rate)
    means = {task: sum(own) / len(own) for task, own in rates.items()}
    lowest = sorted(means, key=lambda task: (means[task], natural_key(task)))
    rows = tuple(
        TogetherRow(name=task, cells=tuple(of_task.get(task, "-") for of_task in cells.values()))
        for task in lowest[:MOST_ROWS]
    )
    return Together(systems=tuple(cells), rows=rows, tasks=len(tasks))


def _cells(system: SystemReport) -> Iterator[str]:
    """Up to ten trials of each task in order, else how many of how many passed."""
    tasks = system.tasks
    sequences = tasks.sequences or [""] * len(tasks)
    counts = zip(tasks.passed.tolist(), tasks.runs.tolist(), strict=True)
    for sequence, (passed, runs) in zip(sequences, counts, strict=True):
        yield sequence if 0 < len(sequence) <= 10 else f"{passed}/{runs}"


def _offered(report: Report, headline: int) -> list[int]:
    """The k that most systems have; with many systems only some of them, to keep the page small."""
    systems = report.systems
    every = sorted({k for system in systems for k in system.ks})
    known = [k for k in every if 2 * sum(is_judged(system, k) for system in systems) > len(systems)]
    most = max(4, _MOST_ROWS_AT_K // len(systems))
    first = [k for k in (1, headline, known[-1] if known else headline) if k in known]
    return sorted(list(dict.fromkeys([*first, *known]))[:most])


def _several_at(report: Report, k: int, page_order: Sequence[str]) -> SeveralAtK | None:
    leaders = report.leaders_at(k)
    figure = report.plots.compared(leaders, k=k)
    if isinstance(figure, Unavailable):
        return None
    ranked = most_reliable_first(report.systems, k=k)
    return SeveralAtK(
        k=k,
        chip=headline.overview_chip(report, k=k),
        answer=headline.overview(report, k=k),
        figure=figure,
        table=systems_table(
            {system.name: system for system in ranked},
            "in %",
            asked=(k,),
            ranks=None if isinstance(leaders, Unavailable) else leaders.ranks,
        ),
        links=tuple(f"#system-{page_order.index(system.name) + 1}" for system in ranked),
    )


def _tag_value(system: SystemReport, tag: str, k: int) -> float | None:
    part = system.tags.get(tag)
    return part.pass_hat(k).value if part is not None and k in part.ks else None


def _mean_of(system: SystemReport, feature: str) -> str:
    return amount(value_of(system.features[feature].mean)) if feature in system.features else "-"


def _tag_cell(value: float | None, best: float) -> TagCell:
    if value is None:
        return TagCell(shown="-", level=0, best=False)
    shown = points(value, digits=0)
    level = min(3, math.ceil(value / 0.2 - 1e-9))  # up to 20%, up to 40%, more
    return TagCell(shown=shown, level=level, best=value == best > 0)
