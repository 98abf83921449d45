"""What a run shows: its events, then its answer and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.cli.event_stream import ENDING, EventStream
from passhat.cli.exit_codes import ExitCode
from passhat.cli.output import baseline_tile, fitted_transcripts, in_shell, writes_page
from passhat.cli.progress import Progress
from passhat.errors import RunInterrupted, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.cli.output import Output
    from passhat.journeys.run_request import OnRunEvent, RunEvent
    from passhat.reporters.answers.comparison import ChangeTile

MOST_REASONS = 3
"""Reasons for failures that are printed when a file has them all."""

_EXIT_CODES = {
    "passed": ExitCode.PASS,
    "failed": ExitCode.FAIL,
    "undecided": ExitCode.UNDECIDED,
    "incomplete": ExitCode.INCOMPLETE,
}


def show_run(
    start: Callable[[OnRunEvent], RunAnswer],
    output: Output,
    *,
    html: str | None = None,
    by_run: bool = False,
    resumed: bool = False,
    store: Path | str | None = None,
    tell_reviewers: Callable[[RunAnswer], bool] | None = None,
) -> ExitCode:
    """Start a run, show its progress and its answer, and return the exit code.

    `html` is a page to write beside what `output` asks for; with `by_run` test cases are single
    runs. Files of events are written during the run; a `resumed` run appends to them.
    `store` is the address of the store with its password, which an answer does not have.
    `tell_reviewers` is called with the answer of a run that was not interrupted, and returns
    whether the change is shown to be worse than its baseline.
    """
    output.check("run")
    live = [path for path in output.paths_out if path.endswith(ENDING)]
    printed = output.format == "ndjson"
    places = _places(output, html)
    for place in places:
        place.check("run")
    with EventStream(live, printed=printed, append=resumed) as stream:
        code = _show(start, output, places, stream, by_run, store, tell_reviewers)
    for path in live:
        output.say(f"wrote {path}")
    for name in stream.broken:
        output.say(f"{name} could not be written to: its last events are missing")
    return code


def _show(
    start: Callable[[OnRunEvent], RunAnswer],
    output: Output,
    places: list[Output],
    stream: EventStream,
    by_run: bool,
    store: Path | str | None,
    tell_reviewers: Callable[[RunAnswer], bool] | None,
) -> ExitCode:
    try:
        with Progress(quiet=output.quiet) as progress:

            def on_event(event: RunEvent) -> None:
                stream(event)
                progress(_in_shell(event))

            answer = replace(start(on_event), by_run=by_run)
    except RunInterrupted as interrupted:
        output.say(str(interrupted))
        if interrupted.resume:
            output.say(f"resume with: {interrupted.resume}")
        return ExitCode(128 + interrupted.signal)
    said: dict[str, Any] = {}
    if answer.transcripts is not None:
        said = fitted_transcripts(answer.report, answer.trials, answer.transcripts, output)
    if any(map(writes_page, places)):
        said["change"] = _change(answer, store, output)
    for place in places:
        place.write(answer, **said)
    for line in _remarks(answer, output):
        output.say(line)
    worse = tell_reviewers is not None and tell_reviewers(answer)
    code = exit_code(answer)
    code = ExitCode.FAIL if worse and code in (ExitCode.PASS, ExitCode.UNDECIDED) else code
    stream.end(answer, code)
    return code


def _in_shell(event: RunEvent) -> RunEvent:
    """The event with its words for a shell, if it has any."""
    from passhat.journeys.run_request import RunOpened

    return replace(event, source=in_shell(event.source)) if isinstance(event, RunOpened) else event


def _change(answer: RunAnswer, store: Path | str | None, output: Output) -> ChangeTile | None:
    """The change against the baseline of the suite, for the page of a stored run."""
    if answer.store is None or answer.run is None or len(answer.report.systems) != 1:
        return None
    from passhat.journeys import Results
    from passhat.journeys.stored_runs import change_of_results

    stored = Results(paths=(str(store or answer.store),), run=answer.run)
    try:
        return baseline_tile(change_of_results(stored))
    except StoreError as error:
        output.say(f"the page does not say what changed since the run before: {error}")
        return None


def exit_code(answer: RunAnswer) -> ExitCode:
    """0 passed, 1 a demand failed, 3 not completed, 4 undecided, 128 and more: a signal."""
    if answer.signal is not None:
        return ExitCode(128 + answer.signal)
    return _EXIT_CODES[answer.outcome]


def _places(output: Output, html: str | None) -> list[Output]:
    """Where the answer goes when the run is over: what was asked for, and the page beside it."""
    files = tuple(path for path in output.paths_out if not path.endswith(ENDING))
    printed = None if output.format == "ndjson" else output.format
    asked = replace(output, paths_out=files, format=printed)
    places = [] if output.format == "ndjson" and not files else [asked]
    if html is not None:
        places.append(replace(output, paths_out=(html,), format=None, option="--html"))
    return places


def _remarks(answer: RunAnswer, output: Output) -> Iterator[str]:
    """Why the run ends as it does; in full if the report is not on the terminal."""
    hidden = not output.shows_text
    yield from (v.sentence for v in answer.judged if hidden or v.word != "PASS")
    yield from (floor.line for floor in answer.floors if hidden or not floor.passed)
    if answer.why_not_passed:
        yield answer.why_not_passed
        yield from _reasons(answer) if hidden else ()
    if hidden and answer.undone:
        yield answer.undone


def _reasons(answer: RunAnswer) -> Iterator[str]:
    from passhat.reporters.answers.run import failure_lines

    for line in failure_lines(answer, most=MOST_REASONS):
        yield f"  {in_shell(line)}"
