"""The journey of a run: a suite goes in; trials, a report, verdicts and an exit code come out."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.cli.cassette_mode import Source, choose_source, open_source, surely_asked
from passhat.cli.exit_codes import ExitCode
from passhat.cli.progress import Progress
from passhat.cli.run_demands import (
    at_most,
    baselines_of,
    gates_of,
    is_sequential,
    stopping_rule,
    verdicts_on,
)
from passhat.cli.run_exit import exit_code, settled, why_not_passed
from passhat.cli.run_failures import count_unread, gather_failures
from passhat.cli.run_ledger import Ledger, open_ledger
from passhat.cli.run_options import FORMATS
from passhat.cli.standing import Standing
from passhat.errors import SuiteError
from passhat.messages import plural
from passhat.suite import refuse_unknown_models
from passhat.suite.fault_variants import plain_pairings, variants

if TYPE_CHECKING:
    from passhat.analysis.gates.demands import Gate
    from passhat.analysis.gates.stopping import Stopping
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.analysis.reports.report import Report
    from passhat.cli.output import Formats, Output
    from passhat.cli.run_options import RunOptions
    from passhat.records import Suite, Trial, Trials
    from passhat.reporters.page_transcripts import PageTranscripts
    from passhat.reporters.run_answer import RunAnswer
    from passhat.runner import RunResult
    from passhat.runner.cassettes import CassetteSet

DEFAULT_CONFIDENCE = 0.95
PAGE = {"html": FORMATS["html"]}
MOST_REASONS = 3
"""Reasons that are told beside a file which has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One start of a run: what is run, where it is kept, and which stored run goes on.

    `remark` is said when it begins.
    """

    suite: Suite
    options: RunOptions
    store: Path | str | None
    resumed: str | None = None
    retry_errored: bool = False
    remark: str | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What is demanded."""
        return gates_of(self.suite, self.options.require)

    @property
    def sequential(self) -> bool:
        """Whether evidence decides how many trials are run."""
        return is_sequential(self.gates, until_settled=self.options.until_settled)

    def rule(self, baselines: Mapping[str, Trials] | None = None) -> Stopping | None:
        """What ends the run when every gate is settled; None where runs are fixed."""
        return stopping_rule(
            self.suite,
            self.gates,
            until_settled=self.options.until_settled,
            baselines=baselines,
        )


def conduct(job: Job, output: Output) -> ExitCode:
    """Run what is missing, answer, and say by which code to exit."""
    from passhat.runner.models.unreachable import refuse_unreachable

    places = _places(job, output)
    for place, formats in places:
        place.check(formats)
    source = choose_source(job.suite, job.options, resumed=job.resumed is not None)
    if source.asks_always:
        refuse_unknown_models(job.suite)
        _refuse_absent(job.suite)
    asked = surely_asked(job.suite, source)
    if job.resumed is None:
        refuse_unreachable(job.suite, asked)
    with (
        open_source(job.suite, source, job.options, sequential=job.sequential) as cassettes,
        open_ledger(job.suite, job.options, store=job.store, resumed=job.resumed) as ledger,
    ):
        # Before anything is paid for: a baseline that is not there is an error of the request.
        baselines = baselines_of(job.gates, job.suite, ledger)
        rule = job.rule(baselines)
        if rule is None and _lacks_trials(job, ledger):
            refuse_unreachable(job.suite, asked)
        if job.remark is not None:
            output.say(job.remark)
        output.say(_opening(job, ledger, source, rule))
        result = _run(job, ledger, cassettes, rule, output)
        ledger.close(result)
        interrupted = result.ending == "interrupted"
        if interrupted:
            code = _interrupted(result, ledger, output)
            # What is kept can be gone on with; what is not is told now or never.
            if ledger.run is not None or not result.trials:
                return code
        if not result.trials:
            output.say(_undone(result, ledger) or "nothing was run")
            return ExitCode.INCOMPLETE
        trials = _table(job.suite, result)
        verdicts = (
            verdicts_on(trials, job.gates, job.suite, baselines=baselines)
            if rule is None
            else rule.verdicts()
        )
        answer = settled(_answer(job, result, trials, verdicts, ledger), job.suite, result)
        for place, formats in places:
            place.write(answer, formats)
        _tell_demands(answer, output)
        return code if interrupted else exit_code(answer)


def _refuse_absent(suite: Suite) -> None:
    """What can only fail is not begun: no trial could run without its program or function."""
    from passhat.runner.programs import absent_functions, absent_programs

    absent = [*absent_programs(suite), *absent_functions(suite)]
    if not absent:
        return
    if suite.path is None:
        raise SuiteError("\n".join(map(str, absent)))
    from passhat.suite.places import told_in_place

    faults = [(one.section, one.name, one.key, one.reason) for one in absent]
    raise SuiteError("\n".join(told_in_place(suite.path, faults)))


def _lacks_trials(job: Job, ledger: Ledger) -> bool:
    """Whether a resumed run has something left to ask for: what is complete needs no key."""
    run = ledger.run
    return job.resumed is not None and run is not None and run.trials < job.suite.trials


def _places(job: Job, output: Output) -> list[tuple[Output, Formats]]:
    """Where the answer goes: what was asked for, and the page beside it."""
    places: list[tuple[Output, Formats]] = [(output, FORMATS)]
    if job.options.html is not None:
        page = replace(output, paths_out=(job.options.html,), as_json=False, as_markdown=False)
        places.append((page, PAGE))
    return places


def _tell_demands(answer: RunAnswer, output: Output) -> None:
    """Why the run ends as it does, on standard error; in full for who does not see the report."""
    hidden = output.as_json or output.as_markdown or bool(output.paths_out)
    told = [verdict.sentence for verdict in answer.verdicts or ()] if hidden else []
    told += [floor.line for floor in answer.floors] if hidden else []
    if reason := why_not_passed(answer):
        told.append(reason)
        told += _reasons(answer) if hidden else []
    if hidden and answer.undone:
        told.append(answer.undone)
    if answer.transcripts is not None and answer.transcripts.left_out_note:
        told.append(answer.transcripts.left_out_note)
    for text in told:
        output.say(text)


def _reasons(answer: RunAnswer) -> Iterator[str]:
    from passhat.reporters.run_answer import failure_lines

    for line in failure_lines(answer, most=MOST_REASONS):
        yield f"  {line}"


def _run(
    job: Job, ledger: Ledger, cassettes: CassetteSet | None, rule: Stopping | None, output: Output
) -> RunResult:
    from passhat.runner import run_trials

    standing = _standing(ledger, most=rule is not None)
    with Progress(standing, quiet=output.quiet) as progress:
        return run_trials(
            job.suite,
            stopping_rule=rule,
            journal=ledger.journal,
            # One by one, nothing is under way when a replay settles: it is the same every time.
            concurrency=1
            if cassettes is not None and cassettes.replaying and rule is not None
            else None,
            on_event=progress,
            cassettes=cassettes,
            retry_errored=job.retry_errored,
        )


def _standing(ledger: Ledger, *, most: bool) -> Standing:
    if ledger.run is None:
        return Standing(most=most)
    return Standing(passed=ledger.run.passed, errored=ledger.run.errored, most=most)


def _answer(
    job: Job, result: RunResult, trials: Trials, verdicts: Verdicts | None, ledger: Ledger
) -> RunAnswer:
    from passhat.analysis.comparing.recovery import measure_recovery
    from passhat.analysis.gates.tool_selection import suite_floors
    from passhat.reporters.run_answer import RunAnswer

    confidence = job.suite.confidence or DEFAULT_CONFIDENCE
    report = _report(job.suite, trials)
    report = replace(report, notes=(*report.notes, *_perhaps_paid(result)))
    return RunAnswer(
        report=report,
        verdicts=verdicts,
        recoveries=measure_recovery(
            trials, variants(job.suite), ks=job.suite.ks or None, confidence=confidence
        ),
        floors=suite_floors(plain_pairings(job.suite), trials, confidence=confidence),
        failures=gather_failures(job.suite, result, ledger),
        unread=count_unread(result),
        undone=_undone(result, ledger),
        transcripts=_said(report, result, trials, ledger) if _shows_words(job) else None,
        results=None if job.store is None else shlex.quote(ledger.name),
    )


def _shows_words(job: Job) -> bool:
    pages = (*job.options.outputs, job.options.html or "")
    return job.options.transcripts and any(
        name.lower().endswith((".html", ".htm")) for name in pages
    )


def _said(report: Report, result: RunResult, trials: Trials, ledger: Ledger) -> PageTranscripts:
    from passhat.reporters.page_transcripts import fit_transcripts

    return fit_transcripts(report, ledger.transcripts(result.trials), trials=trials)


def _table(suite: Suite, result: RunResult) -> Trials:
    from passhat.records import Source

    name = suite.path.name if suite.path is not None else suite.name
    source = Source(name=name, format="passhat run", sha256=suite.digest)
    return replace(result.table(), sources=(source,))


def _report(suite: Suite, trials: Trials) -> Report:
    from passhat.analysis.reports.measure import measure

    report = measure(
        trials,
        ks=suite.ks or None,
        confidence=suite.confidence or DEFAULT_CONFIDENCE,
        bars=_bars(suite, trials),
        seed=suite.seed,
    )
    return replace(report, notes=(*report.notes, *_not_run(suite, trials)))


def _not_run(suite: Suite, trials: Trials) -> list[str]:
    """Tasks that a run which ended early never came to: its numbers are not about them."""
    ran = set(trials.tasks)
    missing = [task.name for task in suite.tasks if task.name not in ran]
    return [f"not run, and not in these numbers: {', '.join(missing)}"] if missing else []


def _perhaps_paid(result: RunResult) -> Iterator[str]:
    """Calls of which nobody can say whether they were paid for."""
    if result.asked_again:
        yield (
            f"perhaps paid twice: {result.asked_again}; an earlier start of this run died while "
            "they were on their way, and they were asked again"
        )
    if result.given_up:
        yield (
            f"perhaps paid and not in the cost: {result.given_up}; they were given up on their "
            "way, by a deadline or an early end"
        )


def _bars(suite: Suite, trials: Trials) -> Mapping[str, float] | None:
    ran = set(trials.tasks)
    bars = {t.name: t.bar for t in suite.tasks if t.bar is not None and t.name in ran}
    return bars or None


def _opening(job: Job, ledger: Ledger, source: Source, rule: Stopping | None) -> str:
    size = job.suite.size if rule is None else at_most(job.suite, rule)
    run = f"; run {ledger.run.key}" if ledger.run is not None else ""
    return f"{job.suite.name}: {size}; {source}{run}"


def _interrupted(result: RunResult, ledger: Ledger, output: Output) -> ExitCode:
    """What there is so far, and what goes on with it."""
    of_all = f"{len(result.trials):,} of {plural(result.planned, 'trial')} made"
    made = ", ".join(_counts(result.trials))
    output.say(f"interrupted: {of_all}" + (f": {made}" if made else ""))
    if result.undone and (command := ledger.resume_command):
        output.say(f"go on with: {command}")
    return ExitCode(128 + (result.signal or 2))


def _counts(trials: Sequence[Trial]) -> Iterator[str]:
    """`7 passed`, `3 failed`, `1 errored`: how the trials ended, where any did so."""
    from passhat.records import Outcome

    found = Counter(trial.outcome for trial in trials)
    for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED):
        if found[outcome]:
            yield f"{found[outcome]:,} {outcome.name.lower()}"


def _undone(result: RunResult, ledger: Ledger) -> str | None:
    """What an early end left out, and what goes on with it."""
    if not result.undone:
        return None
    why = f"{result.limit} was reached" if result.limit else "interrupted"
    text = f"{why}: {result.undone:,} of {result.planned:,} trials were left undone"
    command = ledger.resume_command
    return f"{text}; go on with: {command}" if command else text
