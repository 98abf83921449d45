"""What was said in trials, for the page of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from passhat.analysis.reports.report import Report
    from passhat.cli.output import Output
    from passhat.records import Transcripts, Trials


def wants_page(transcripts: bool, output: Output, *, html: str | None = None) -> bool:
    """Whether transcripts were asked for and there is a page to show them; says so if not."""
    page = writes_page(output) or html is not None
    if transcripts and not page:
        output.say("transcripts are shown on a page: add -o report.html")
    return transcripts and page


def writes_page(output: Output) -> bool:
    """Whether one of the files that were asked for is a page."""
    return any(name.lower().endswith((".html", ".htm")) for name in output.paths_out)


def fitted_transcripts(
    report: Report, trials: Trials | None, transcripts: Transcripts, output: Output
) -> dict[str, Any]:
    """What a page has room for and why runs fail, as options of `render`; says what is left out."""
    from passhat.analysis.explaining.explain import explain
    from passhat.journeys.results import choose_systems
    from passhat.records.run_numbers import first_number
    from passhat.reporters.page_transcripts import fit_transcripts

    fitted = fit_transcripts(report, transcripts, trials=trials)
    for note in (fitted.left_out_note, fitted.cut_note):
        if note:
            output.say(note)
    options: dict[str, Any] = {"transcripts": fitted}
    if trials is not None:
        options["first_trial"] = first_number(trials.trial.tolist())
        shown = choose_systems(trials, [system.name for system in report.systems])
        options["explanation"] = explain(shown, transcripts)
    return options
