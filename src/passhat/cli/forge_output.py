"""What reviewers see: the summary, annotations, comment and check of a pull request."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.options import in_order
from passhat.errors import ForgeError

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import ChangeReview, RunAnswer
    from passhat.cli.output import Output
    from passhat.forges import Annotation, Conclusion, GitHub, Posted

BASE_BRANCHES = ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
"""Where CI says which branch a change is to be merged into."""

CHECKOUTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Where CI says in which folder the repository is."""

_CONCLUSIONS: Mapping[str | None, Conclusion] = {"PASS": "success", "FAIL": "failure"}


forge_options = in_order(
    click.option(
        "--github/--no-github",
        default=None,
        help="Write to the pull request: summary, annotations, one comment, a check.  "
        "[default: in CI jobs of GitHub and GitLab]",
    ),
    click.option(
        "--informational", is_flag=True, help="Tell reviewers the verdict, but always exit with 0."
    ),
)


def wanted(github: bool | None) -> bool:
    """Whether to post for reviewers: as asked, or by default in a CI job of GitHub or GitLab."""
    in_job = os.environ.get("GITHUB_ACTIONS") == "true" or os.environ.get("GITLAB_CI") == "true"
    return in_job if github is None else github


def base_branch() -> str | None:
    """The branch that the change under review is to be merged into."""
    return next((os.environ[name] for name in BASE_BRANCHES if os.environ.get(name)), None)


def announce_run(
    answer: RunAnswer,
    output: Output,
    *,
    suite: Path | None = None,
    store: Path | str | None,
    informational: bool,
) -> bool:
    """Post a run for reviewers; returns whether it is shown to be worse than its base branch."""
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.gates.run_answer import ChangeReview
    from passhat.errors import InputError
    from passhat.journeys import review_change
    from passhat.journeys.results import Results
    from passhat.journeys.stored_runs import verdict_of_results

    key = answer.report.provenance.sources[0].name if answer.report.provenance.sources else "run"
    review = ChangeReview(
        report=answer.report, verdicts=answer.verdicts, informational=informational
    )
    worse, base = False, None if answer.nothing_ran else base_branch()
    if store is not None and answer.run is not None and base is not None:
        results = Results(paths=(answer.run,), store=store)
        try:
            reviewed = review_change(results, against=base, informational=informational)
            worse = reviewed.status == "FAIL"
            review = replace(reviewed, verdicts=Verdicts((*answer.judged, *reviewed.judged)))
        except InputError as error:  # the first change has no baseline yet
            output.say(f"no comparison with {base}: {error}")
    if store is not None and answer.run is not None:
        verdict = verdict_of_results(Results(paths=(answer.run,), store=store))
        review = replace(review, run_verdict=verdict)
    review = replace(review, edits=_edits(suite, output))
    announce(review, output, key=key, title=answer.why_not_passed if answer.nothing_ran else None)
    return worse


def _edits(suite: Path | None, output: Output) -> tuple[str, ...]:
    """The files of the change under review that decide about its verdict."""
    from passhat.errors import PasshatError
    from passhat.forges import edited_files, github_job, gitlab_job
    from passhat.journeys.checks import deciding_files

    job = github_job(os.environ) or gitlab_job(os.environ)
    if job is None:
        return ()
    try:
        edited = list(edited_files(job))
        deciding = deciding_files(suite) if edited else ()
    except PasshatError as error:
        output.say(f"whether the change edits its own suite or cassettes is not known: {error}")
        return ()
    top = Path(next((os.environ[name] for name in CHECKOUTS if os.environ.get(name)), "."))
    places = {name: (top / name).absolute() for name in edited}
    return tuple(
        name for name, place in places.items() if any(place.is_relative_to(g) for g in deciding)
    )


def announce(review: ChangeReview, output: Output, *, key: str, title: str | None = None) -> None:
    """Post for reviewers; what a forge refuses is only printed on standard error.

    `title` is that of the check, where no verdict gives it one.
    """
    from passhat.forges import github_job, gitlab_job, post_note
    from passhat.reporters import render

    text = str(render(review, "markdown"))
    try:
        if (job := github_job(os.environ)) is not None:
            _announce_on_github(job, review, text, output, key, title)
        elif (merge_job := gitlab_job(os.environ)) is not None:
            _say(post_note(merge_job, text, key=key), output)
        else:
            output.say(
                "--github: this is not a job of GitHub Actions or GitLab CI; nothing was posted"
            )
    except ForgeError as error:
        output.say(f"nothing was posted on the pull request: {error}")


def _announce_on_github(
    job: GitHub, review: ChangeReview, text: str, output: Output, key: str, title: str | None
) -> None:
    from passhat.forges import annotation_lines, post_check, post_comment, write_summary

    try:
        if not write_summary(job, text) and job.summary_path is not None:
            output.say("nothing was added to the step summary: it is full")
    except ForgeError as error:
        output.say(str(error))
    for line in annotation_lines(_annotations(review)):
        click.echo(line, file=sys.stdout if output.shows_text else sys.stderr)
    _say(post_comment(job, text, key=key), output)
    if job.token is None:
        return
    word = None if review.informational else review.status
    if title is None:
        demanded = review.verdicts
        title = "measured, nothing demanded" if demanded is None else demanded.sentence
    try:
        post_check(
            job,
            name=f"passhat ({key})",
            conclusion=_CONCLUSIONS.get(word, "neutral"),
            title=title,
            summary=text,
        )
    except ForgeError as error:
        output.say(f"no check was written: {error}")


def _annotations(review: ChangeReview) -> Iterator[Annotation]:
    from passhat.forges import Annotation, Level

    levels: Mapping[str, Level] = {"FAIL": "error", "UNDECIDED": "warning"}
    for verdict in review.judged:
        if verdict.status != "PASS":
            level = "notice" if review.informational else levels[verdict.status]
            title = f"passhat: {verdict.status}"
            yield Annotation(level=level, title=title, message=verdict.sentence)
    every = [task for comparison in review.comparisons.values() for task in comparison.tasks]
    for task in every:
        if task.answer == "worse":
            (now, runs), (before, earlier) = task.first, task.second
            message = f"{task.name}: {before}/{earlier} before, {now}/{runs} now"
            yield Annotation(level="warning", title="passhat: a task got worse", message=message)


def _say(posted: Posted, output: Output) -> None:
    if posted.outcome == "refused":
        output.say(f"no comment was written: {posted.reason}")
    else:
        output.say(f"the comment on the change was {posted.outcome}")
