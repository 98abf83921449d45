"""What was said in trials, for the page of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat.messages import plural

if TYPE_CHECKING:
    from passhat.analysis.reports.report import Report
    from passhat.cli.output import Output
    from passhat.ingest.dataset_failures import SomeFailures
    from passhat.records import Transcripts, Trials


def wants_page(transcripts: bool, output: Output, *, html: str | None = None) -> bool:
    """Whether transcripts were asked for and there is a page to show them; says so if not."""
    pages = [name for name in output.paths_out if name.lower().endswith((".html", ".htm"))]
    page = bool(pages) or html is not None
    if transcripts and not page:
        output.say("transcripts are shown on a page: add -o report.html")
    return transcripts and page


def fitted_transcripts(
    report: Report, trials: Trials | None, transcripts: Transcripts, output: Output
) -> dict[str, Any]:
    """What a page has room for and why runs fail, as options of `render`; says what is left out."""
    from passhat.analysis.explaining.explain import explain
    from passhat.journeys.results import choose_systems
    from passhat.records.run_numbers import first_number

    options = _fitted(report, transcripts, trials, output)
    if trials is not None:
        options["first_trial"] = first_number(trials.trial.tolist())
        shown = choose_systems(trials, [system.name for system in report.systems])
        options["explanation"] = explain(shown, transcripts)
    return options


def fitted_failures(report: Report, some: SomeFailures, output: Output) -> dict[str, Any]:
    """What a page shows of the failures of a table too big to be read, as options of `render`."""
    count = plural(len(some.said), "transcript")
    output.say(f"The page shows {count}: the first failures of each task.")
    return {**_fitted(report, some.said, None, output), "first_trial": some.first_trial}


def _fitted(
    report: Report, transcripts: Transcripts, trials: Trials | None, output: Output
) -> dict[str, Any]:
    from passhat.reporters.page_transcripts import fit_transcripts

    fitted = fit_transcripts(report, transcripts, trials=trials)
    for note in (fitted.left_out_note, fitted.cut_note):
        if note:
            output.say(note)
    return {"transcripts": fitted}
