"""A run: its report, why trials did not pass, and whether it meets its gates and floors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.analysis.gates.gate import Status
from passhat.analysis.gates.run_answer import (
    EVERY_TRIAL,
    Failure,
    Lift,
    Recovery,
    RunAnswer,
    SelectionFloor,
)
from passhat.messages import capitalised, listed, plural, shorten
from passhat.reporters import headline
from passhat.reporters.answer import (
    SCREEN_LINES,
    SHORTEST_HEADING,
    Answer,
    Bar,
    Block,
    DisplayOptions,
    Headline,
    Hints,
    Judged,
    Line,
    NextStep,
    Paragraph,
    Records,
    Remark,
    Steps,
    Table,
    added_remarks,
    has_long_command,
    paragraphs,
)
from passhat.reporters.answers.report import REPORT, ReportAnswer, sentences_as_read
from passhat.reporters.answers.report_blocks import (
    moved_sentence,
    report_blocks,
    report_figures,
    report_screen,
)
from passhat.reporters.answers.verdicts import (
    MOST_GATES,
    VERDICT,
    VerdictsAnswer,
    chance_of_a_wrong_verdict,
    errored_trials,
    errors_of_all_looks,
    gate_screen,
    gates_screen,
    notes_of_stops,
    was_stopped,
)
from passhat.reporters.data import JsonShape
from passhat.reporters.formatting import (
    LONGEST_NAME,
    amount,
    interval_of,
    percent,
    percent_range,
    points,
    short,
    shorten_apart,
    signed_points,
    signed_span,
    span,
    value_of,
)
from passhat.reporters.headline import verdict_title
from passhat.reporters.next_steps import advise
from passhat.reporters.wording import (
    common_design,
    counted_errors,
    headline_k,
    screen_errors_of,
)
from passhat.stats.estimate import Estimate, Interval, Number

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Verdict, Verdicts
    from passhat.analysis.gates.run_answer import RecoveryAt
    from passhat.analysis.reports.evidence import Provenance
    from passhat.analysis.reports.report import Report
    from passhat.drawing.figure import Figure
    from passhat.records import Trial
    from passhat.reporters.test_cases import TestSuite

MOST_FAILURES = 8
LONGEST_REASON = 200
MOST_ROWS = 200
"""Single runs that text lists with `verbose`; files of test cases hold them all."""


class FinishedRunAnswer(Answer[RunAnswer]):
    """A run that is over."""

    name = "run"
    template = "report.html"

    @property
    def shown(self) -> RunAnswer:
        """The run as people read it: without rates, if its gates ended it early."""
        return replace(self.result, report=self.result.report.as_read)

    def title(self) -> str:
        answer = self.shown
        judged = answer.verdicts
        status = judged.status if judged is not None and len(judged) else ""
        return f"{status} {verdict_title(answer.report)}".strip()

    def all_blocks(self, options: DisplayOptions) -> list[Block]:
        """Of several agents, failed tasks need the room of what the last run leaves open."""
        verdict = options.verdict
        if options.brief and verdict is not None and len(verdict.agents) > 1:
            options = replace(options, verdict=verdict.without_open_differences())
        return super().all_blocks(options)

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The verdict, the report, and what follows from it."""
        answer = self.shown
        options = replace(options, results=answer.results, more_runs=answer.more_runs)
        if answer.nothing_ran:
            first = _nothing_ran(answer)[:1]
            return [*first, *_run_rows(answer, options), *_after(answer)]
        overall = _overall(answer)
        return [
            *([overall] if overall is not None else []),
            *_demands(answer, options),
            # Its gates stand above.
            *report_blocks(answer.report, replace(options, verdict=None)),
            *_run_rows(answer, options),
            *_after(answer),
        ]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The verdict, the lowest tasks with their commonest failure, and what to do next."""
        answer = self.shown
        options = replace(options, results=answer.results, more_runs=answer.more_runs)
        if answer.nothing_ran:
            return _nothing_ran(answer)
        verdicts = answer.verdicts
        gated = verdicts is not None and len(verdicts) > 0
        if not gated and answer.outcome == "passed":
            blocks = report_screen(answer.report, options)
            at = next(
                (i for i, block in enumerate(blocks) if isinstance(block, Hints)), len(blocks)
            )
            shown = {block.text for block in blocks if isinstance(block, Remark)}
            beside = [block for block in _beside(answer) if block.text not in shown]
            above, below = blocks[:at], [*beside, *blocks[at:]]
            return [*above, *_floor_blocks(answer, options, _room(above, below, options)), *below]
        alone = _is_one_task(answer)
        numbers = [] if gated or alone else _numbers(answer.report, options)
        below = [*_beside(answer), *_run_hints(answer)]
        earlier, _ = added_remarks(answer.report.provenance, options)
        above, room = [], 0
        for rows in range(MOST_GATES, 0, -1):  # of a table: as many as there is room for
            first = _first_lines(answer, max(rows, 2))
            above = [*first, *_lift_screen(answer, rows // 2), *numbers]
            if (room := _room(above, [*earlier, *below], options)) >= bool(answer.floors):
                break
        above += _floor_blocks(answer, options, room)
        under = [*earlier, *below]
        if (room := _room(above, under, options)) < _FEWEST_LINES:  # blank lines go first
            closed = [replace(b, apart=False) for b in under if isinstance(b, Remark | Hints)]
            room = max(room, min(_room(above, closed, options), _FEWEST_LINES))
        if alone:  # a table of one task would say its count again
            return [*above, *_reasons(answer, room), *below]
        lowest = [] if answer.lifts else _lowest(answer, room)
        return [*above, *lowest, *below]

    def rows(self) -> Records:
        return ReportAnswer(self.result.report).rows()

    def data(self) -> Any:
        written = RUN(self.result)
        sentences_as_read(written["report"], self.result.report)
        return written

    def figures(self) -> Mapping[str, Figure]:
        return report_figures(self.shown.report)

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import run_suites

        return run_suites(self.result)

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        from passhat.reporters.answers.report_page import page_of

        answer = self.shown
        kept = replace(
            options,
            results=answer.results,
            more_runs=answer.more_runs,
            transcripts=answer.transcripts if options.transcripts is None else options.transcripts,
            trials=answer.trials if options.trials is None else options.trials,
        )
        floors = [Judged(word=floor.status, sentence=floor.line) for floor in answer.floors]
        gates = [block for block in _demands(answer, options) if isinstance(block, Judged)]
        return page_of(
            answer.report,
            kept,
            gates=[*gates, *floors],
            after=[*_after(answer), *_to_decide(answer)],
        )

    def methods(self) -> str | None:
        return ReportAnswer(self.result.report).methods()

    def provenance(self) -> Provenance | None:
        return self.result.report.provenance


LOWEST_TASKS = 5
"""Tasks that the first screen of a run lists."""

FEWEST_TASKS = 3
"""Tasks that stay listed where their table takes blank lines from what is below it."""

_FEWEST_LINES = 1 + 1 + FEWEST_TASKS + 1
"""What that table takes: a blank line, its header, the tasks, and how many more failed."""

MOST_WARNINGS = 2
"""Notes on its trials that it shows; `passhat report` has them all."""


def _room(above: Sequence[Block], below: Sequence[Block], options: DisplayOptions) -> int:
    """The lines that a screen has left between blocks; notes and long commands may be left out."""
    around = [*above, *below]
    notes = [block for block in around if isinstance(block, Remark) and block.note]
    firm = [
        block
        for block in around
        if block not in notes and not has_long_command(block, options.line_count)
    ]
    return SCREEN_LINES - options.line_count(firm) - bool(notes)


def _nothing_ran(answer: RunAnswer) -> list[Block]:
    systems = [system for system in answer.report.systems if system.name not in answer.exempt]
    trials = sum(system.design.trials for system in systems)
    which = "The only trial" if trials == 1 else f"All {trials:,} trials"
    of = f" of {headline.names(systems)}"
    kinds: Counter[str] = Counter()
    for system in systems:
        kinds.update(system.errors.kinds)
    rows = tuple((f"{count:,}x", kind) for kind, count in kinds.most_common(LOWEST_TASKS))
    errors: Block = Table(header=("", ""), rows=rows, left=(1,), cut=((1, 20),))
    if len(kinds) == 1:  # read to its end, which says what to do
        errors = Remark(shorten(next(iter(kinds)), LONGEST_REASON))
    return [
        Judged(word="ERROR", sentence=f"{which}{of} errored: there is nothing to judge."),
        *([errors] if rows else []),
        Remark("Fix it, and give the same command again."),
    ]


_WORDS = {"passed": "PASS", "failed": "FAIL", "undecided": "UNDECIDED", "incomplete": "ERROR"}


def _first_lines(answer: RunAnswer, most_gates: int) -> list[Block]:
    """The verdict: of the one gate, of all gates, or of what else was demanded."""
    verdicts, systems = answer.verdicts, answer.report.systems
    several = len(systems) > 1
    begun = _begun(answer)
    design = "; ".join(begun) or common_design(systems)
    who = plural(len(systems), "agent") if several else short(systems[0].name)
    overall, gates = _overall(answer), list[Block]()
    if verdicts is not None and len(verdicts) == 1:
        alone = DisplayOptions(results=None)
        # A table of the lowest tasks follows.
        more = not _way_to_decide(answer) or _advises_as_many(answer, verdicts[0])
        gate = gate_screen(verdicts[0], alone, named=several, lowest=False, more=more)
        gates = [replace(gate, details=(*(f"{more}." for more in begun[1:]), *gate.details))]
    elif verdicts is not None and len(verdicts):
        gates = gates_screen(verdicts, ", ".join(filter(None, (who, design))), most_gates)
        rates = (chance_of_a_wrong_verdict(verdicts), *errors_of_all_looks(verdicts))
        remarks = [
            *(Remark(text) for text in (*rates, *_errored(answer, verdicts)) if text),
            *(Remark(text, note=True) for text in notes_of_stops(verdicts)),
        ]
        gates = [*(block for block in gates if not isinstance(block, Remark)), *remarks]
    return [*([overall] if overall is not None else []), *gates]


def _overall(answer: RunAnswer) -> Judged | None:
    """What became of a run, where its gates do not say it; nothing where it passed without any."""
    verdicts, word = answer.verdicts, _WORDS[answer.outcome]
    gated = verdicts is not None and len(verdicts) > 0
    if verdicts is not None and gated and verdicts.status == word:
        return None
    if not gated and answer.outcome == "passed":
        return None
    failed = sum(not floor.passed for floor in answer.floors)
    floors = f"{failed} of {plural(len(answer.floors), 'tool-selection floor')} failed."
    why = answer.why_not_passed or (floors if failed else None) or answer.incomplete
    sentence = (why or "the run was not completed.").removeprefix(f"{word}: ")
    if word == "FAIL" and (short_numbers := _only_numbers(answer)):
        sentence = sentence.replace(EVERY_TRIAL, short_numbers)
    return Judged(word=word, sentence=sentence.removeprefix("not completed: "))


def _errored(answer: RunAnswer, verdicts: Verdicts) -> list[str]:
    """How many trials errored: of gates that each watched their own trials, those of the run."""
    if not any(verdict.was_watched for verdict in verdicts):
        return errored_trials(verdicts)
    errored = [system for system in answer.report.systems if system.errors.count]
    if len(answer.report.systems) > 1:
        return [screen_errors_of(errored) or ""]
    return [f"{counted_errors(system)}." for system in errored]


def _begun(answer: RunAnswer) -> list[str]:
    """How many trials the verdict rests on, and how many more a run had begun that it stopped."""
    if answer.verdicts is None or not was_stopped(answer.verdicts):
        return []
    judged: dict[str, int] = {}
    for verdict in answer.verdicts:
        judged[verdict.system] = max(verdict.runs, judged.get(verdict.system, 0))
    ran = sum(system.design.trials for system in answer.report.systems if system.name in judged)
    counted = sum(judged.values())
    if len(judged) < len(answer.verdicts):  # gates of one agent may each have trials of their own
        if answer.late is None:
            return []
        counted = ran - answer.late
    more = [f"{ran - counted:,} more had begun"] if ran > counted else []
    return [f"{plural(counted, 'trial')} judged", *more]


def _beside(answer: RunAnswer) -> list[Remark]:
    """What is left of an agent under faults, what moves it, the judge's bill, what was undone."""
    bill = []
    if answer.judge is not None:
        bill = [f"{capitalised(answer.judge.sentence)}. Is it right? passhat label"]
    factors = [
        factor for system in answer.report.systems for factor in system.factors if factor.matters
    ]
    gated = answer.verdicts is not None and len(answer.verdicts) > 0
    moved = [moved_sentence(factor, gated=gated) for factor in factors if factor.name != "fault"][
        :1
    ]
    return [
        *map(Remark, moved),
        *(Remark(_sentence(recovery)) for recovery in answer.recoveries),
        *map(Remark, bill),
        *(Remark(f"{capitalised(text)}.") for text in answer.warnings[:MOST_WARNINGS]),
        *(Remark(f"{text}.", apart=True) for text in [answer.undone] if text),
    ]


def _floor_blocks(answer: RunAnswer, options: DisplayOptions, room: int) -> list[Block]:
    """Floors as other programs read them, why one fails, and once what their pass^k is.

    Where there is no room for all of them, those that fail come first and the rest are counted.
    """
    order = sorted(answer.floors, key=lambda floor: floor.passed)
    every = [Line(floor.line, "" if floor.passed else floor.detail) for floor in order]
    note = Remark("(In floor lines pass^k is the share of trials that chose the tool.)")
    blocks: list[Block] = []
    for shown in range(len(every), -1, -1):
        rest = order[shown:]
        failed = sum(not floor.passed for floor in rest)
        more = f"{plural(len(rest), 'more tool-selection floor')}, "
        more += f"{failed:,} of them FAIL: -v" if failed else "PASS: -v"
        left = [Remark(more if shown else more.replace(" more", ""))] if rest else []
        blocks = [*every[:shown], *left, *([note] if shown else [])]
        # Lines are apart from what is above them.
        if options.line_count(blocks) + bool(shown) <= room:
            break
    return blocks if answer.floors else []


def _is_one_task(answer: RunAnswer) -> bool:
    """Whether one agent tried one task and nothing was stored: a command that was repeated."""
    systems = answer.report.systems
    return answer.results is None and len(systems) == 1 and len(systems[0].tasks) == 1


def _only_numbers(answer: RunAnswer) -> str:
    """The numbers of one task, which fit the line of the verdict."""
    system = answer.report.systems[0]
    passed, k = system.metrics.get("pass^1"), headline_k(system)
    if not _is_one_task(answer) or passed is None or passed.value is None:
        return ""
    texts = [f"{percent(passed.value)} passed {span(passed.interval, digits=0)}"]
    streak = system.pass_hat(k)
    if k > 1 and streak.value is not None:
        bounds = span(streak.interval, digits=0)
        texts.append(f"{k} in a row: {percent(streak.value)} {bounds}")
    return f" ({'; '.join(text.strip() for text in texts)})"


def _reasons(answer: RunAnswer, room: int) -> list[Block]:
    """Why trials of the only task failed, the commonest reason first, as `room` allows."""
    failures = answer.failures
    room -= 1 + bool(answer.unread)  # a blank line
    shown = failures[: min(LOWEST_TASKS, room if len(failures) <= room else room - 1)]
    if not shown:
        return []
    rows = tuple((f"{failure.trials:,}x", failure.reason) for failure in shown)
    more = len(failures) - len(shown)
    unread = plural(answer.unread, "further failed trial")
    return [
        Table(header=("", ""), rows=rows, left=(1,), cut=((1, 20),)),
        *([Remark(f"  {plural(more, 'more reason')}: -v")] if more else []),
        *([Remark(f"  {unread}: why was not looked for")] if answer.unread else []),
    ]


def _numbers(report: Report, options: DisplayOptions) -> list[Block]:
    """The table of numbers of a report, without its sentences."""
    tables = [block for block in report_screen(report, options) if isinstance(block, Table)]
    return [*tables[:1]]


def _lowest(answer: RunAnswer, room: int) -> list[Block]:
    """The tasks that failed most often, each with its commonest failure, as `room` allows."""
    several = len(answer.report.systems) > 1
    failed = [
        (system.name, row)
        for system in answer.report.systems
        for row in system.tasks
        if row.passed < row.runs
    ]
    if not failed:
        return []
    failed.sort(key=lambda pair: pair[1].passed / pair[1].runs)
    room -= 2 + bool(answer.unread)  # a blank line and the header
    most = min(LOWEST_TASKS, room if len(failed) <= room else room - 1)
    if most < 1:
        return [Remark(f"{plural(len(failed), 'task')} failed at least once: -v")]
    shown = failed[:most]
    commonest: dict[tuple[str, str], Failure] = {}
    for failure in answer.failures:  # the most frequent first
        commonest.setdefault((failure.system, failure.task), failure)
    rows = tuple(
        (
            f"{row.passed}/{row.runs}",
            *([system] if several else []),
            row.name,
            *((why.reason, f"({why.trials:,})") if why else ("", "")),
        )
        for system, row in shown
        for why in [commonest.get((system, row.name))]
    )
    header = ("passed", *(["agent"] if several else []), "task", "most common failure", "")
    last = len(header) - 2
    table = Table(
        header=header,
        rows=rows,
        left=tuple(range(1, last + 2)),
        cut=(*((i, 12) for i in range(1, last)), (last, 20)),
    )
    more = len(failed) - len(rows)
    unread = plural(answer.unread, "further failed trial")
    return [
        table,
        *([Remark(f"  {plural(more, 'more task')}: -v")] if more else []),
        *([Remark(f"  {unread}: why was not looked for")] if answer.unread else []),
    ]


def _run_hints(answer: RunAnswer) -> list[Block]:
    """What to do next: decide what is open, compare several agents, look at the failures."""
    open_ = any(gate.status == "UNDECIDED" for gate in answer.judged) and answer.undone is None
    if open_ and answer.more_runs is None:
        return [Remark(step.text, apart=True) for step in _way_to_decide(answer)]
    if answer.results is None:
        allow = "Each trial: -v. To allow some failures: `require='pass^3 >= 0.5'`."
        return (
            [Remark(allow, apart=True)] if answer.outcome == "failed" and not answer.judged else []
        )
    steps = []
    if open_:
        steps += _way_to_decide(answer)
    elif len(answer.report.systems) > 1:
        steps.append(advise("Compare", f"passhat compare {answer.results}"))
    if answer.failures:
        steps.append(advise("Why", f"passhat why {answer.results}"))
    fixed = not answer.report.systems[0].counts_only
    numbers = ("All numbers", f"passhat report {answer.results}")
    steps.append(advise(*numbers) if fixed else advise("For rates", "passhat run"))
    return [Hints(tuple(steps[:2]), apart=True)]


def failure_lines(answer: RunAnswer, *, most: int) -> list[str]:
    """The most frequent reasons: the task, how many trials, and why; the system where several.

    The last lines say how many more there are, and where to find them.
    """
    failures = answer.failures
    several = len({failure.system for failure in failures}) > 1
    lines = [
        f"{f'{failure.system}, ' if several else ''}{failure.task}, "
        f"{plural(failure.trials, 'trial')}: {'error: ' if failure.errored else ''}"
        f"{failure.reason[:LONGEST_REASON]}"
        for failure in failures[:most]
    ]
    kept = "" if answer.results is None else " (`passhat view` shows every trial)"
    if len(failures) > most:
        more = plural(len(failures) - most, "more reason")
        lines.append(f"{more}: `render_json` lists them all{kept}")
    if answer.unread:
        more = plural(answer.unread, "further failed trial")
        lines.append(f"{more}: why was not looked for{kept}")
    return lines


def _demands(answer: RunAnswer, options: DisplayOptions) -> list[Block]:
    blocks: list[Block] = []
    if answer.verdicts is not None:
        blocks += VerdictsAnswer(answer.verdicts).blocks(options)
        blocks += _to_decide(answer)
    return blocks + [Line(floor.line, floor.detail) for floor in answer.floors]


def _to_decide(answer: RunAnswer) -> list[Block]:
    """How to allow more trials, where a gate is undecided after all that were allowed."""
    steps = _way_to_decide(answer)
    return [Steps("To decide it", tuple(steps))] if steps else []


def _way_to_decide(answer: RunAnswer) -> list[NextStep]:
    open_ = [gate for gate in answer.judged if gate.status == "UNDECIDED"]
    if not open_ or answer.undone is not None:
        return []
    runs = max(_enough_runs(answer, gate) for gate in open_)
    if answer.more_runs is None:
        text = f"Run again with `runs={runs}` or more."
        if answer.run is not None:  # kept, and yet it gets no more: its answers are replayed
            text += " What is not recorded yet has to be recorded first, with `cassette='append'`."
        return [NextStep(text)]
    return [advise("Decide it", answer.more_runs.up_to(runs))]


def _advises_as_many(answer: RunAnswer, verdict: Verdict) -> bool:
    """Whether the way to decide a gate names as many trials as would decide it 4 times in 5."""
    system = next(own for own in answer.report.systems if own.name == verdict.system)
    more = math.ceil((verdict.more_runs or 0) / system.design.tasks)
    return _enough_runs(answer, verdict) == system.design.most_runs + more


def _enough_runs(answer: RunAnswer, verdict: Verdict) -> int:
    """The runs of each task that would settle a verdict, or twice those it has."""
    from passhat.analysis.gates.fixed_sample import counts_passes, fewest_runs
    from passhat.analysis.gates.gate import ThresholdRequirement
    from passhat.analysis.gates.rounds import can_pass

    systems = answer.report.systems
    most = max(system.design.most_runs for system in systems)
    demand = verdict.gate.demand
    if not isinstance(demand, ThresholdRequirement):  # a comparison needs runs of its baseline too
        return 2 * most
    tasks = next((system.design.tasks for system in systems if system.name == verdict.system), 1)
    stops = verdict.evidence == "sequential"
    if stops and verdict.gate.indifference is None:  # it may have ended before its plan did
        most = max(most, (verdict.max_runs or 0) // tasks)
    more = math.ceil((verdict.more_runs or 0) / tasks)
    # Fewer than k runs have no pass^k at all.
    runs = max(2 * most, demand.target.k or 0, most + more)
    if not (demand.upward and counts_passes(verdict.gate)):
        return runs
    # No fewer than an agent takes that never fails, in a run of its own and as more of this one.
    gate = replace(verdict.gate, max_runs=None)

    def are_enough(each: int) -> bool:
        runs = dict.fromkeys(map(str, range(tasks)), each)
        plans = (None,) if answer.more_runs is None else (None, most)
        return all(can_pass(gate, runs, until_decided=stops, planned=plan) for plan in plans)

    return fewest_runs(are_enough, least=runs) or runs


def _run_rows(answer: RunAnswer, options: DisplayOptions) -> list[Block]:
    """With `verbose`, a row for each run under the name that `--task` takes: `refund #3`."""
    if not options.verbose or answer.trials is None:
        return []
    order = {task: index for index, task in enumerate(dict.fromkeys(answer.trials.tasks))}
    trials = sorted(answer.trials, key=lambda t: (t.system, order[t.task], t.trial))
    several = len(answer.report.systems) > 1
    rows = tuple(_run_row(answer, trial, several=several) for trial in trials[:MOST_ROWS])
    header = ("trial", *(["agent"] * several), "outcome", "tokens", "seconds", "why")
    left = tuple(i for i, name in enumerate(header) if name not in ("tokens", "seconds"))
    cut = tuple((i, 12) for i, name in enumerate(header) if name in ("system", "why"))
    blocks: list[Block] = [Table(header=header, rows=rows, left=left, cut=cut)]
    if len(trials) > MOST_ROWS:
        more = plural(len(trials) - MOST_ROWS, "more trial")
        every = "passhat run --rows runs -o runs.xml"
        if answer.results is not None:  # another run would be paid for
            every = f"passhat convert {answer.results} -o trials.csv"
        more = f"{more}: `{every}` lists them all."
        blocks.append(Paragraph("", more))
    return blocks


def _run_row(answer: RunAnswer, trial: Trial, *, several: bool) -> tuple[str, ...]:
    from passhat.reporters.test_cases import run_reasons

    why = trial.error or "; ".join(run_reasons(answer, trial))
    tokens = trial.tokens or (trial.tokens_in or 0) + (trial.tokens_out or 0)
    return (
        f"{trial.task} #{trial.trial + 1}",
        *([trial.system] * several),
        trial.outcome.name.lower(),
        f"{tokens:,.0f}" if tokens else "-",
        amount(trial.seconds),
        why[:LONGEST_REASON],
    )


MOST_WORSE = 3
"""Tasks that got worse, by name, on the first screen."""


def _lift_screen(answer: RunAnswer, most: int) -> list[Block]:
    """One comparison of two agents, with `most` of its files; a row each where they are several.

    A single one has a row, too, where there is no room for it.
    """
    lifts, stopped = answer.lifts, answer.report.systems[0].counts_only
    if not lifts or (len(lifts) == 1 and most):
        return [block for lift in lifts for block in _lift_blocks(lift, stopped, most)]
    shown = lifts if len(lifts) <= most else lifts[: max(1, most - 1)]
    rows = tuple(
        (
            lift.system,
            *(f"{passed}/{runs}" for passed, runs in lift.passed),
            lift.baseline,
            _gain(lift, stopped),
            _more(lift, next(iter(lift.means), "")),
        )
        for lift in shown
    )
    spent = {next(iter(lift.means), "") for lift in shown}
    table = Table(
        header=("", "passed", "against", "", "difference", spent.pop() if len(spent) == 1 else ""),
        rows=rows,
        left=(0, 3, 4),
        cut=((0, 12), (3, SHORTEST_HEADING)),
        spare=(5,),
    )
    more = f"{len(lifts) - len(shown):,} more, and what each takes and uses: -v"
    each = "What each takes and uses, and where it is worse: -v"
    return [table, Remark(more if len(shown) < len(lifts) else each)]


def _lift_blocks(lift: Lift, stopped: bool, most_files: int | None = None) -> list[Block]:
    """What an agent gains over another, at what price; did it use its files; where it is worse."""
    rows = [("passed", *(f"{passed}/{runs}" for passed, runs in lift.passed), _gain(lift, stopped))]
    for name, both in lift.means.items():
        unit = "$" if name == "cost" else ""
        values = (f"{unit}{amount(value)}" for value in both)
        rows.append((f"{name} a trial", *values, _more(lift, name)))
    runs = lift.passed[0][1]
    used = [
        (f"used {short(name)}", f"{count}/{runs}", "", "")
        for name, count in lift.used.items()
        if count is not None
    ]
    hidden = 0 if most_files is None or len(used) <= most_files + 1 else len(used) - most_files
    unseen = [short(name) for name, count in lift.used.items() if count is None]
    who = f"{short(lift.system)} shows no tool calls"
    whose = f"The trials of {short(lift.baseline)}"
    reused = [lift.reused] if lift.reused else []
    return [
        Table(
            header=("", short(lift.system), short(lift.baseline), "difference"),
            rows=(*rows, *used[: len(used) - hidden]),
            left=(0, 3),
            cut=((0, 12), (1, SHORTEST_HEADING), (2, SHORTEST_HEADING)),
        ),
        *([Remark(f"{plural(hidden, 'more file')}: -v", note=True)] if hidden else []),
        *(Remark(f"Whether {listed(unseen, 3)} was used is not known: {who}.") for _ in unseen[:1]),
        Remark(_worse_sentence(lift), note=True),
        *(Remark(f"{whose} are those of {run}: nothing has changed.", note=True) for run in reused),
    ]


def _gain(lift: Lift, stopped: bool) -> str:
    """The difference in points with its interval, if known; of a run that stopped, only that."""
    value = value_of(lift.difference)
    if value is None:
        return "not known"
    bounds = signed_span(interval_of(lift.difference))
    if stopped and bounds:
        return f"{bounds} points"
    first = f"in the first {lift.first_trials:,}" if lift.first_trials else ""
    return " ".join(filter(None, (f"{signed_points(value, digits=1)} points", bounds, first)))


def _more(lift: Lift, name: str) -> str:
    """How much more of something a trial takes: "+12%"."""
    more = lift.more_of.get(name)
    return "" if more is None else f"{signed_points(more)}%"


def _worse_sentence(lift: Lift) -> str:
    if not lift.worse:
        return f"It passed less often on none of {plural(lift.tasks, 'task')}."
    names = shorten_apart([task.task for task in lift.worse], LONGEST_NAME)
    moved = [
        f"{name} {'/'.join(map(str, task.before))} to {'/'.join(map(str, task.passed))}"
        for name, task in zip(names, lift.worse, strict=True)
    ]
    surely = [name for name, task in zip(names, lift.worse, strict=True) if task.significant]
    known = f"significant: {listed(surely, MOST_WORSE)}" if surely else "none of it significant"
    return (
        f"It passed less often on {len(lift.worse)} of {plural(lift.tasks, 'task')}: "
        f"{listed(moved, MOST_WORSE)} ({known})."
    )


def _after(answer: RunAnswer) -> list[Block]:
    stopped = answer.report.systems[0].counts_only
    blocks = [block for lift in answer.lifts for block in _lift_blocks(lift, stopped)]
    for recovery in answer.recoveries:
        blocks += _recovery_blocks(recovery)
    if answer.failures:
        texts = failure_lines(answer, most=MOST_FAILURES)
        blocks.append(Steps(_failures_title(answer), tuple(map(NextStep, texts))))
        blocks += _why(answer)
    return blocks + paragraphs("Undone", answer.undone and f"{answer.undone}.")


def _why(answer: RunAnswer) -> list[Block]:
    """What goes together with failing, and the command that says more."""
    if answer.results is None or answer.run is None:
        return []
    tables = [system.tasks for system in answer.report.systems]
    mixed = any(((table.passed > 0) & (table.passed < table.runs)).any() for table in tables)
    if answer.cause is None and not mixed:
        return []  # no task both passed and failed: there is nothing to compare failing runs with
    cause = answer.cause or "See what failing trials do that passing ones do not"
    return [
        Steps(
            "Why trials fail",
            (NextStep(cause.rstrip("."), f"passhat why {answer.results}"),),
        )
    ]


def _failures_title(answer: RunAnswer) -> str:
    """Where the counts add up to more than the trials that did not pass, the title says why."""
    systems = answer.report.systems
    stopped = sum(system.design.trials - int(system.tasks.passed.sum()) for system in systems)
    several = sum(failure.trials for failure in answer.failures) > stopped
    return "Why trials did not pass" + " (a trial can have several reasons)" * several


_SENTENCE_K = 5
"""The most successes in a row that the sentence names: more are rarely known well enough."""


def _recovery_blocks(recovery: Recovery) -> list[Block]:
    """One system with and without faults."""
    levels = Table(
        header=("in %", "without", "", "under", "", "kept", "", ""),
        rows=tuple(_level_row(level) for level in recovery.levels),
        left=(0, 2, 4, 6),
    )
    kinds = Table(
        header=("fault that struck", "trials", "passed", "", "kept", ""),
        rows=tuple(
            (
                part.kind.replace("_", " "),
                f"{part.trials:,}",
                *_cells(part.rate),
                *_cells(part.score),
            )
            for part in recovery.kinds
        ),
        left=(0, 3, 5),
    )
    reactions = Table(
        header=("what it did next", "trials", "share", "", "passed", ""),
        rows=tuple(
            (part.reaction, f"{part.trials:,}", *_cells(part.share), *_cells(part.rate))
            for part in recovery.reactions
        ),
        left=(0, 3, 5),
    )
    tables = [levels, *(table for table in (kinds, reactions) if table.rows)]
    return [Headline(_sentence(recovery)), *tables]


def _sentence(recovery: Recovery) -> str:
    texts = [level for level in recovery.levels if level.k <= _SENTENCE_K]
    level = (texts or recovery.levels)[-1]
    struck = f"faults struck {recovery.struck:,} of {plural(recovery.trials, 'trial')}"
    if not isinstance(level.score, Estimate):
        return f"How {recovery.system} recovers is not known: {level.score.reason}; {struck}."
    kept = f"{percent(level.score.value)} of its pass^{level.k}"
    bounds = f" ({percent_range(level.score.interval)})" if level.score.interval else ""
    return f"Under faults {recovery.system} keeps {kept}{bounds}; {struck}."


def _level_row(level: RecoveryAt) -> tuple[str | Bar, ...]:
    kept = value_of(level.score)
    return (
        f"pass^{level.k}",
        *_cells(level.without),
        *_cells(level.under),
        *_cells(level.score),
        Bar(value=None if kept is None else min(1.0, kept)),
    )


def _cells(number: Number) -> tuple[str, str]:
    return points(value_of(number)), span(interval_of(number), digits=0)


def _verdict(answer: RunAnswer) -> Status | None:
    return None if answer.verdicts is None else answer.verdicts.status


def _interval(floor: SelectionFloor) -> Interval | None:
    return floor.interval


RUN = JsonShape(
    "run",
    RunAnswer,
    "What a run says when it is over: report, verdicts, why trials did not pass.",
    "schema verdict verdicts=judged lifts floors failures recovery=recoveries judge undone report",
    verdict=_verdict,
    parts=[
        VERDICT,
        REPORT,
        JsonShape(
            "floor",
            SelectionFloor,
            "Whether an agent's trials keep to the floor under tool selection.",
            "verdict=status task=label tool=demand.expected_tool selected runs rate interval bound "
            "max_tokens line",
            interval=_interval,
        ),
    ],
)
