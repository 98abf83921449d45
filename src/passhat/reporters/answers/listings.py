"""Answers that list: tasks by systems, stored runs, what a run would do, search, trials, checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from passhat.messages import few, listed, plural, short, short_commit, short_time
from passhat.records.ledger import Artefact, ArtefactList, Row, RunChange, RunList, RunLog
from passhat.records.suite import SuiteCheck, SuiteProblem
from passhat.records.transcript import TranscriptMatch, TranscriptMatches
from passhat.reporters.answer import (
    SCREEN_LINES,
    SCREEN_WIDTH,
    SHORTEST_HEADING,
    Answer,
    Block,
    DisplayOptions,
    Headline,
    Hints,
    Line,
    NextStep,
    Paragraph,
    Records,
    Remark,
    Steps,
    Table,
    advise,
    paragraphs,
)
from passhat.reporters.data import JsonShape, to_json
from passhat.reporters.formatting import file_size, percent, safe_text
from passhat.reporters.test_cases import Mark, ReportedCase, TestSuite

if TYPE_CHECKING:
    from passhat.analysis.reports.report import MatrixCell, TaskMatrix  # noqa: F401  # a base's
    from passhat.drawing.figure import Figure
    from passhat.journeys.checks import CostRange, GraderTryout, RunPlan
    from passhat.records import Tally, Trials  # noqa: F401  # a base's

MATRIX_SCHEMA: Literal["passhat.matrix/1"] = "passhat.matrix/1"


class CellObject(TypedDict):
    """How often one system passed one task."""

    system: str
    passed: int
    runs: int


class MatrixTaskObject(TypedDict):
    """One task, and the systems that ran it."""

    task: str
    cells: list[CellObject]


class MatrixObject(TypedDict):
    """Tasks against systems."""

    schema: Literal["passhat.matrix/1"]
    systems: list[str]
    tasks: list[MatrixTaskObject]


class MatrixAnswer(Answer["TaskMatrix"]):
    """Tasks against systems: which task passes with which system."""

    name = "matrix"

    def title(self) -> str:
        return "Tasks and agents"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """A row a task, a column a system, and in each cell how many of its runs passed."""
        matrix = self.result
        size = f"{plural(len(matrix.tasks), 'task')}, {plural(len(matrix.systems), 'agent')}"
        rows = tuple(
            (task, *map(_cell, cells))
            for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
        )
        return [
            Headline(f"Passed trials of each task with each agent: {size}."),
            Table(
                header=("task", *matrix.systems),
                rows=rows,
                cut=tuple((i, SHORTEST_HEADING) for i, _ in enumerate(matrix.systems, 1)),
            ),
        ]

    def rows(self) -> Records:
        """A row a task, the pass rates of the systems; one called `task` gets another name."""
        matrix = self.result
        columns = [f"{name} (agent)" if name == "task" else name for name in matrix.systems]
        return [
            {"task": task, **{c: x and x.rate for c, x in zip(columns, cells, strict=True)}}
            for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
        ]

    def data(self) -> MatrixObject:
        matrix = self.result
        tasks: list[MatrixTaskObject] = [
            {"task": task, "cells": _cell_objects(matrix.systems, cells)}
            for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
        ]
        return {"schema": MATRIX_SCHEMA, "systems": list(matrix.systems), "tasks": tasks}

    def figures(self) -> Mapping[str, Figure]:
        from passhat.drawing.figure import Figure

        return {"matrix": self.result.figure} if isinstance(self.result.figure, Figure) else {}


def _cell(cell: MatrixCell | None) -> str:
    return "" if cell is None else f"{cell.passed}/{cell.runs}"


def _cell_objects(systems: Sequence[str], cells: Sequence[MatrixCell | None]) -> list[CellObject]:
    pairs = zip(systems, cells, strict=True)
    return [
        {"system": system, "passed": cell.passed, "runs": cell.runs}
        for system, cell in pairs
        if cell is not None
    ]


HEADER = ("run", "started", "suite", "commit", "branch", "trials", "pass@1", "status")
LEFT = ("run", "started", "suite", "commit", "branch", "status")
SUITE, COMMIT, BRANCH, TRIALS, STATUS = map(
    HEADER.index, ("suite", "commit", "branch", "trials", "status")
)

WIDE = 100
"""Columns of a terminal from which on dates have their year."""

MOST_ROWS = 10
"""Rows on the first screen: one a run, and one for its agents if they are several."""

MOST_SYSTEMS = 5
"""Systems that are listed below a run."""


class RunListAnswer(Answer[RunList]):
    """The runs of the history store, the newest first."""

    name = "run list"

    def title(self) -> str:
        shown, kept = len(self.result.runs), self.result.kept
        if kept is None or kept <= shown:
            return plural(shown, "run")
        return f"The newest {shown:,} of {plural(kept, 'run')}"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """One row a run, the newest first."""
        listing = self.result
        if not listing.runs:
            return [Headline("No runs yet: `passhat run` or `passhat history add` keeps one.")]
        wide = options.ink is None or options.ink.width >= WIDE
        rows = [
            cells for row in listing.runs for cells in (_cells(row, wide=wide), *_system_cells(row))
        ]
        blocks: list[Block] = [
            Table(
                header=HEADER,
                rows=tuple(rows),
                left=tuple(map(HEADER.index, LEFT)),
                spare=(BRANCH, TRIALS, COMMIT),
                cut=((SUITE, 8), (STATUS, len("finished, baseline"))),
            )
        ]
        if listing.resume is not None:
            step = NextStep("Resume the newest unfinished run", listing.resume)
            blocks.append(Steps("Next", (step,)))
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The newest runs; a column only where it says something."""
        listing = self.result
        if not listing.runs:
            return self.blocks(options)
        most = options.most_rows or MOST_ROWS
        every = [[_screen_cells(row), *_agent_cells(row)] for row in listing.runs[:most]]
        while options.most_rows is None and sum(map(len, every)) > MOST_ROWS:
            every.pop()  # several agents have a row of their own
        shown, rows = listing.runs[: len(every)], [cells for run in every for cells in run]
        header = ("run", "started", "suite", "commit", "branch", "trials", "pass@1", "")
        filled = [i for i in range(len(header)) if i != SUITE and any(row[i] for row in rows)]
        columns = sorted({*filled, SUITE})
        places = [columns.index(i) for i in map(HEADER.index, LEFT) if i in columns]
        least = ((SUITE, 8), (STATUS, len("finished, baseline")))
        table = Table(
            header=tuple(header[i] for i in columns),
            rows=tuple(tuple(row[i] for i in columns) for row in rows),
            left=tuple(places),
            spare=tuple(columns.index(i) for i in (BRANCH,) if i in columns),
            cut=tuple((columns.index(i), width) for i, width in least if i in columns),
        )
        more = len(listing.runs) - len(shown)
        steps = [advise("See one", f"passhat report {listing.runs[0]['run']}{options.store}")]
        if listing.resume is not None:
            steps.append(advise("Go on with the newest unfinished one", listing.resume))
        return [
            table,
            *([Remark(f"{plural(more, 'earlier run')}: -v")] if more else []),
            Hints(tuple(steps)),
        ]

    def rows(self) -> Records:
        return [
            {**row, "tags": " ".join(row["tags"]), "pass_rates": json.dumps(row["pass_rates"])}
            for row in self.result.runs
        ]

    def data(self) -> Any:
        return RUNS(self.result)


def _cells(row: Row, *, wide: bool) -> tuple[str, ...]:
    """The cells of a run; where there is little room, the year is what readers need least."""
    several = len(row["pass_rates"]) > 1  # their rows follow
    rate = "" if several else _rate(row)
    commit = (short_commit(row["commit"]) or "-") + ("*" if row["dirty"] else "")
    status = ", ".join([_status(row), *row["tags"]])
    started, trials = short_time(row["started"], year=wide), f"{row['trials']:,}"
    cells = (row["run"], started, row["suite"], commit, row["branch"] or "", trials, rate, status)
    return tuple(safe_text(cell) for cell in cells)


def _screen_cells(row: Row) -> tuple[str, ...]:
    several = len(row["pass_rates"]) > 1
    rate = "" if several else _rate(row)
    commit = short_commit(row["commit"]) + "*" if row["dirty"] else short_commit(row["commit"])
    status = "" if row["status"] == "finished" else _status(row)
    status = _status(row) if row["stopped_early"] else status
    words = ", ".join([*([status] if status else []), *row["tags"]])
    cells = (row["run"], short_time(row["started"]), row["suite"], commit, row["branch"] or "",
             f"{row['trials']:,}", rate, words)  # fmt: skip
    return tuple(safe_text(cell) for cell in cells)


def _rate(row: Row) -> str:
    return "-" if row["stopped_early"] else percent(row["pass_rate"], digits=1)


def _agent_cells(row: Row) -> list[tuple[str, ...]]:
    """Several agents of a run below it, the least reliable first."""
    rates = sorted(row["pass_rates"].items(), key=lambda item: item[1])
    if len(rates) < 2 or row["stopped_early"]:
        return []
    (low, least), *_, (high, most) = rates
    named = f"  {safe_text(low)} {percent(least)} to {safe_text(high)} {percent(most)}"
    return [("", "", named, "", "", "", "", "")]


def _system_cells(row: Row) -> list[tuple[str, ...]]:
    """A row for each of several systems below that of their run, the least reliable first."""
    rates = sorted(row["pass_rates"].items(), key=lambda item: item[1])
    if len(rates) < 2 or row["stopped_early"]:
        return []
    shown = [
        ("", "", f"  {safe_text(name)}", "", "", "", percent(rate, digits=1), "")
        for name, rate in rates[:MOST_SYSTEMS]
    ]
    more = len(rates) - len(shown)
    return [*shown, *([("", "", f"  {more:,} more", *[""] * 5)] if more else [])]


def _status(row: Row) -> str:
    if row["stopped_early"]:
        return "stopped early" + (f": {row['decided']}" if row["decided"] else "")
    if row["status"] == "stopped":
        return "stopped, can be resumed"
    return f"{row['status']} ({row['owner']})" if row["owner"] else row["status"]


RUNS = JsonShape("runs", RunList, "The runs of a history store, the newest first.", "schema runs")


class RunLogAnswer(Answer[RunLog]):
    """Who tagged, noted, renamed, deleted or labelled which run."""

    name = "run log"

    def title(self) -> str:
        return plural(len(self.result.changes), "change")

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """A line a change, the newest first."""
        if not self.result.changes:
            return [Headline("Nobody has changed anything yet.")]
        return [Line(_change(change)) for change in self.result.changes]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The newest changes, each on one line."""
        changes = self.result.changes
        most = options.most_rows or MOST_ROWS
        more = len(changes) - most
        return [
            *(self.blocks(options) if not changes else ()),
            *(Line(short(_change(change), SCREEN_WIDTH)) for change in changes[:most]),
            *([Remark(f"{plural(more, 'earlier change')}: -v")] if more > 0 else []),
        ]

    def rows(self) -> Records:
        return [to_json(change) for change in self.result.changes]

    def data(self) -> Any:
        return RUN_LOG(self.result)


def _change(change: RunChange) -> str:
    return f"{short_time(change.at, year=True)}  {change.run}  {change.person}: {change.sentence}"


RUN_LOG = JsonShape(
    "run-log", RunLog, "What people did to runs, the newest first.", "schema changes"
)


class ArtefactsAnswer(Answer[ArtefactList]):
    """The files that are kept of the trials of a run."""

    name = "artefacts"

    def title(self) -> str:
        return f"Files of run {self.result.run}"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """How many files of how many trials, then each file below its trial."""
        files, before, rows = self.result.files, None, []
        for file in files:
            rows.append(
                ("" if file.key == before else _of_trial(file), f"{file.size:,}", file.name)
            )
            before = file.key
        table = Table(
            header=("trial", "bytes", "file"), rows=tuple(rows), left=(0, 2), cut=((0, 20), (2, 20))
        )
        return [self._size(), *([table] if files else [])]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The files if they fit, else the trials that have some."""
        files, run = self.result.files, self.result.run
        write = advise("Write them", f"passhat history artefacts {run}{options.store} -o files")
        if len(files) <= MOST_ROWS:
            return [*self.blocks(options), *([Hints((write,))] if files else [])]
        by_trial: dict[tuple[str, str, int], list[Artefact]] = {}
        for file in files:
            by_trial.setdefault(file.key, []).append(file)
        rows = [
            (_of_trial(own[0]), f"{len(own):,}", _weight(own), ", ".join(file.name for file in own))
            for own in by_trial.values()
        ]
        more = len(rows) - MOST_ROWS
        table = Table(
            header=("trial", "files", "size", ""),
            rows=tuple(rows[:MOST_ROWS]),
            left=(0, 3),
            cut=((0, 20), (3, 20)),
        )
        remarks = [Remark(f"{plural(more, 'more trial')}: -v")] if more > 0 else []
        return [self._size(), table, *remarks, Hints((write,))]

    def _size(self) -> Headline:
        files = self.result.files
        if not files:
            return Headline("No file is kept of these trials: those in workspaces have some.")
        trials = plural(len({file.key for file in files}), "trial")
        return Headline(f"{plural(len(files), 'file')} of {trials}, {_weight(files)}")

    def rows(self) -> Records:
        return [_ARTEFACT(file) for file in self.result.files]

    def data(self) -> Any:
        return ARTEFACTS(self.result)


def _of_trial(artefact: Artefact) -> str:
    return f"{artefact.agent}, {artefact.task} #{artefact.trial}"


def _weight(files: Iterable[Artefact]) -> str:
    return file_size(sum(file.size for file in files))


_ARTEFACT = JsonShape(
    "artefact",
    Artefact,
    "A file that is kept of a trial, and the SHA-256 of its bytes.",
    "agent task trial name sha256=digest size",
)
ARTEFACTS = JsonShape(
    "artefacts",
    ArtefactList,
    "The files that are kept of the trials of a run; trials are counted from 1.",
    "schema run files",
    parts=[_ARTEFACT],
)


class RunPlanAnswer(Answer["RunPlan"]):
    """What a run would do and what it may cost, before anything is started."""

    name = "run plan"

    def title(self) -> str:
        return f"plan of {self.result.suite}"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The size of the run, then a paragraph for each thing that it needs."""
        plan = self.result
        return [
            Headline(f"{safe_text(plan.suite)}: {plan.size}."),
            _dry_tasks(plan.trials_by_task.items()),
            *(
                Paragraph(label, safe_text(options.wording("; ".join(texts))))
                for label, texts in _parts(plan)
                if texts
            ),
        ]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """How many trials of what, what they cost, and the gates."""
        plan = self.result
        each = set(plan.trials_by_task.values())
        shape = plural(plan.tasks, "task")
        if len(each) == 1 and not plan.sequential:
            shape += f" x {each.pop():,}"
        most = "at most " * plan.sequential + plural(plan.trials, "trial")
        agents = plural(len(plan.systems), "agent")
        tasks = list(plan.trials_by_task.items())
        shown = tasks if len(tasks) <= _DRY_TASKS else tasks[: _DRY_TASKS - 1]
        unsaid = _ONLY_LIVE if plan.mode.startswith("replay") else {"Mode", "Agents", "Cost"}
        return [
            Headline(f"Would run {most}: {shape}, {agents}. Cost: {_price(plan.cost)}."),
            _dry_tasks(shown),
            *([Remark(f"{len(tasks) - len(shown):,} more: -v")] if len(shown) < len(tasks) else []),
            *(
                Remark(f"{label}: {safe_text(options.wording('; '.join(texts)))}")
                for label, texts in _parts(plan)
                if texts and label not in unsaid and texts != ["none"]
            ),
        ]

    def rows(self) -> Records:
        """One row: lists of names in one cell each, the range of the cost in two."""
        plan = to_json(self.result)
        cost = plan.pop("cost")
        cells = {name: listed(value, len(value)) if isinstance(value, list) else value
                 for name, value in plan.items() if name not in ("servers", "budget")}  # fmt: skip
        return [
            {**cells, "cost_low": cost["low"], "cost_high": cost["high"], "cost_from": cost["how"]}
        ]

    def data(self) -> Any:
        return to_json(self.result)


def _dry_tasks(tasks: Iterable[tuple[str, int]]) -> Table:
    rows = tuple((f"{count:,} x", name) for name, count in tasks)
    return Table(header=("", ""), rows=rows, left=(1,), cut=((1, 20),))


_DRY_TASKS = 8
"""Tasks of a dry run on the first screen."""

_ONLY_LIVE = {"Mode", "Agents", "Cost", "Models", "Servers"}
"""What a run that replays recordings need not say."""


def _parts(plan: RunPlan) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Mode", [plan.mode]
    yield "Agents", plan.systems
    yield "Models", plan.models or ["none"]
    yield "Servers", [f"{name}: {text}" for name, text in plan.servers.items()] or ["none"]
    yield "Gates", plan.gates or ["none: every failed expectation fails the run"]
    yield "Budget", [f"{name} {value:g}" for name, value in plan.budget.items()] or ["none"]
    yield "Cost", [_price(plan.cost)]
    yield "Note", plan.notes


def _price(cost: CostRange) -> str:
    if cost.high is None:
        return f"unknown, {cost.how}"
    if not cost.high:
        return f"nothing, {cost.how}"
    return f"${cost.low:,.2f} to ${cost.high:,.2f} ({cost.how})"


class SearchAnswer(Answer[TranscriptMatches]):
    """Trials in which a text was said, each with the words around it."""

    name = "transcript matches"

    def title(self) -> str:
        return plural(len(self.result.matches), "trial")

    def blocks(self, options: DisplayOptions) -> list[Block]:
        search = self.result
        lines = [
            Line(_trial(match), detail=safe_text(f"{match.excerpt.where}: {match.excerpt.text}"))
            for match in search.matches
        ]
        return [Headline(_headline(search)), *lines]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """A row a trial, with the words around the text; how to read the first of them."""
        matches = self.result.matches
        if not matches:
            return self.blocks(options)
        most = options.most_rows or MOST_ROWS
        shown = matches if len(matches) <= most else matches[: most - 1]
        several = len({match.system for match in matches}) > 1
        rows = tuple(
            (
                match.run,
                *([match.system] if several else []),
                match.task,
                f"{match.trial}" if match.number is None else f"#{match.number}",
                _outcome(match) or "",
                f"{match.excerpt.where}: {match.excerpt.text}",
            )
            for match in shown
        )
        header = ("run", *(["agent"] if several else []), "task", "trial", "", "said")
        last = len(header) - 1
        table = Table(
            header=header,
            rows=tuple(tuple(map(safe_text, row)) for row in rows),
            left=tuple(range(len(header))),
            cut=(*((i, 12) for i in range(1, last - 2)), (last, 20)),
        )
        more = len(matches) - len(shown)
        return [
            Headline(_headline(self.result)),
            table,
            *([Remark(f"{more:,} more: -v")] if more else []),
        ]

    def rows(self) -> Records:
        return [_MATCH(match) for match in self.result.matches]

    def data(self) -> dict[str, Any]:
        return SEARCH(self.result)


def _headline(matches: TranscriptMatches) -> str:
    read = plural(matches.read, "transcript")
    if not matches.matches:
        return f"{safe_text(matches.wanted)!r} does not occur in {read}."
    trials = plural(len(matches.matches), "trial")
    if matches.more:
        return f"The first {trials} with {safe_text(matches.wanted)!r}; `limit` shows more."
    return f"{trials} with {safe_text(matches.wanted)!r}, of {read}."


def _trial(match: TranscriptMatch) -> str:
    ended = f" {_outcome(match)}" if match.outcome is not None else ""
    which = f" / trial {match.trial}" if match.number is None else f" #{match.number}"
    return safe_text(f"{match.run} / {match.system} / {match.task}{which}{ended}")


def _outcome(match: TranscriptMatch) -> str | None:
    return None if match.outcome is None else match.outcome.name.lower()


_MATCH = JsonShape(
    "match_row",
    TranscriptMatch,
    "One trial in which the text was said; `where` is whose words they are.",
    "run system task trial outcome where=excerpt.where text=excerpt.text",
    outcome=_outcome,
)
# `more` is true where the search ended at its limit.
SEARCH = JsonShape(
    "search",
    TranscriptMatches,
    "Where a text was said; `transcripts_read` counts those that were looked at.",
    "schema text=wanted transcripts_read=read more matches",
    parts=[_MATCH],
)


class TrialsAnswer(Answer["Trials"]):
    """What a table of trials holds: who tried how much, and how it ended."""

    name = "trials"

    def title(self) -> str:
        return plural(len(self.result), "trial")

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Counts of every system, and what the reader of the file had to say."""
        trials = self.result
        size = ", ".join(
            (
                plural(len(trials), "trial"),
                plural(len(trials.systems), "agent"),
                plural(len(trials.tasks), "task"),
            )
        )
        table = Table(
            header=("agent", "tasks", "trials of each", "trials", "passed", "failed", "errored"),
            rows=tuple(_row(trials.tally(name)) for name in trials.systems),
        )
        notes = dict.fromkeys(note for source in trials.sources for note in source.remarks)
        return [Headline(f"{size}."), table, *paragraphs("Note", *notes)]

    def rows(self) -> Records:
        trials = self.result
        tallies = [trials.tally(name) for name in trials.systems]
        return [
            {
                "system": tally.system,
                "task": task,
                "passed": int(tally.passed[i]),
                "failed": int(tally.failed[i]),
                "errored": int(tally.errored[i]),
            }
            for tally in tallies
            for i, task in enumerate(tally.tasks)
        ]


def _row(tally: Tally) -> tuple[str, ...]:
    runs = tally.runs()
    fewest, most = int(runs.min()), int(runs.max())
    ends = (tally.passed, tally.failed, tally.errored)
    return (
        tally.system,
        f"{len(tally.tasks):,}",
        f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}",
        f"{tally.trials:,}",
        *(f"{int(count.sum()):,}" for count in ends),
    )


VALIDATED = JsonShape(
    "validated",
    SuiteCheck,
    "One suite file, and everything that is wrong with it.",
    "suite=file valid problems=faults",
    parts=[
        JsonShape("fault", SuiteProblem, "What is wrong, and where.", "line column path message")
    ],
)


class ValidationAnswer(Answer[Sequence[SuiteCheck]]):
    """What is wrong with suite files: a line each, and a test case each."""

    name = "validation"
    several = True

    def title(self) -> str:
        return f"{plural(len(self.result), 'suite')} checked"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """How many suites are valid, then a line a fault that editors can jump to."""
        checks = self.result
        valid = sum(check.valid for check in checks)
        lines = [Line(check.line(fault)) for check in checks for fault in check.faults]
        return [Headline(f"{valid} of {plural(len(checks), 'suite')} valid."), *lines]

    def rows(self) -> Records:
        return [
            {"file": check.file, **to_json(fault)}
            for check in self.result
            for fault in check.faults
        ]

    def data(self) -> Any:
        return [VALIDATED(check) for check in self.result]

    def cases(self) -> Sequence[TestSuite]:
        return [TestSuite(name=check.file, cases=_suite_cases(check)) for check in self.result]


def _suite_cases(check: SuiteCheck) -> list[ReportedCase]:
    """A case a fault; a valid suite is one that passed."""
    if check.valid:
        return [
            ReportedCase(
                name="valid", classname="passhat.validate", output=check.size or "", file=check.file
            )
        ]
    return [
        ReportedCase(
            name=f"{fault.path} (line {fault.line})" if fault.path else f"line {fault.line}",
            classname="passhat.validate",
            mark=Mark(kind="failure", message=fault.message),
            file=check.file,
            line=fault.line,
        )
        for fault in check.faults
    ]


class HoleObject(TypedDict):
    """The tasks with which an attempt did not end as it should have, and what closes the hole."""

    tasks: list[str]
    remedy: str


class AttemptObject(TypedDict):
    """What came of one attempt at a task: how it ended, how it should have, and why."""

    task: str
    attempt: str
    outcome: Literal["passed", "failed", "errored", "untried"]
    wanted: Literal["passed", "failed"]
    reason: str


class TryoutObject(TypedDict):
    """One suite, and whether its tasks can be passed without doing them.

    `holes` has the attempts that did not end as they should have; `holds` says that there is none,
    but for the one that no runner can close. `left_out` are tasks that were not tried.
    """

    suite: str
    holds: bool
    answer: str
    holes: dict[str, HoleObject]
    left_out: list[str]
    attempts: list[AttemptObject]


MOST_HOLES = 3
"""So many fit a screen, with what closes each."""


class TryoutAnswer(Answer[Sequence["GraderTryout"]]):
    """Can the tasks of suites be passed without doing them?"""

    name = "tryout"
    several = True

    def title(self) -> str:
        return f"graders of {plural(len(self.result), 'suite')}"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Each suite: the answer, every hole with its tasks and what closes it, what was tried."""
        return [
            block
            for tryout in self.result
            for block in _tryout_blocks(tryout, len(tryout.holes), named=len(self.result) > 1)
        ]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The same, with as many holes as fit; of many suites the answers alone."""
        several = len(self.result) > 1
        for most in range(MOST_HOLES, -1, -1):
            blocks = [
                b for tryout in self.result for b in _tryout_blocks(tryout, most, named=several)
            ]
            if options.line_count(blocks) <= SCREEN_LINES:
                return blocks
        worst_first = sorted(self.result, key=lambda tryout: tryout.holds)
        remarks: list[Block] = [
            Remark(_tryout_answer(tryout, named=True)) for tryout in worst_first
        ]
        shown = len(remarks)
        while options.line_count(remarks[:shown]) >= SCREEN_LINES:
            shown -= 1
        more = plural(len(remarks) - shown, "more suite")
        return [*remarks[:shown], *([Remark(f"{more}: -v")] if shown < len(remarks) else [])]

    def rows(self) -> Records:
        """A row an attempt."""
        return [
            {"suite": tryout.file, **to_json(tried)}
            for tryout in self.result
            for tried in tryout.tried
        ]

    def data(self) -> list[TryoutObject]:
        return [
            {
                "suite": tryout.file,
                "holds": tryout.holds,
                "answer": tryout.answer(),
                "holes": {
                    attempt: {
                        "tasks": [tried.task for tried in hole],
                        "remedy": tryout.remedy(attempt),
                    }
                    for attempt, hole in tryout.holes.items()
                },
                "left_out": list(tryout.left_out),
                "attempts": [to_json(tried) for tried in tryout.tried],
            }
            for tryout in self.result
        ]


def _tryout_answer(done: GraderTryout, *, named: bool) -> str:
    return f"{safe_text(done.file)}: {done.answer()}" if named else done.answer()


def _tryout_blocks(done: GraderTryout, most: int, *, named: bool) -> list[Block]:
    blocks: list[Block] = [Headline(_tryout_answer(done, named=named))]
    holes = list(done.holes.items())
    rows = []
    for attempt, hole in holes[:most]:
        reason = next((tried.reason for tried in hole if tried.outcome != "passed"), "")
        tasks = few(dict.fromkeys(tried.task for tried in hole))
        rows.append((hole[0].outcome.upper(), short(f"{attempt}: {tasks}", LONGEST_HOLE)))
        rows.append(("", short(reason or done.remedy(attempt), 2 * LONGEST_HOLE)))
    if rows:
        table = Table(header=("", ""), rows=tuple(rows), left=(0, 1), cut=((1, 20),), wrapped=(1,))
        blocks.append(table)
    if len(holes) > most:
        more = plural(len(holes) - most, "more hole" if most else "hole")
        blocks.append(Remark(f"{more}: -v"))
    if done.tried:
        ways = plural(len({tried.attempt for tried in done.tried}), "way")
        blocks.append(Remark(f"Tried {ways} to pass {plural(len(done.tasks), 'task')}."))
    if done.left_out:
        names = f"Not tried (no workspace, or a model decides): {few(done.left_out)}"
        blocks.append(Remark(short(names, SCREEN_WIDTH)))
    return blocks


LONGEST_HOLE = SCREEN_WIDTH - len("  ERRORED  ")
"""What was attempted, and the tasks, on one line."""
