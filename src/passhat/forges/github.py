"""GitHub: the step summary, annotations, one comment on the pull request, and a check."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from passhat.errors import ForgeError
from passhat.fast_dataclass import dataclass
from passhat.forges.api import Api, set_variables
from passhat.forges.sticky import Comments, Posted, post_sticky

Level = Literal["error", "warning", "notice"]
Conclusion = Literal["success", "failure", "neutral"]

MOST_ANNOTATIONS = 10
"""How many of each level GitHub shows for a step; it drops the rest silently."""

LARGEST_SUMMARY = 1024 * 1024
"""Bytes of a step summary; GitHub refuses a larger one whole."""

LONGEST_CHECK = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """A job of GitHub Actions: where it runs, for which commit and pull request."""

    repository: str | None
    sha: str | None
    api_url: str
    token: str | None
    pull_request: int | None
    summary_path: str | None
    run_url: str | None

    @property
    def api(self) -> Api:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        authorised = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return Api(url=self.api_url, headers=headers | authorised)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One message beside the change."""

    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None


def github_job(environment: Mapping[str, str]) -> GitHub | None:
    """The job that this process is a step of; None outside GitHub Actions.

    A container or a local runner may pass on only some variables of a job, or empty ones.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return None
    given = set_variables(environment)
    change = _part(_event(given.get("GITHUB_EVENT_PATH")), "pull_request")
    number = change.get("number")
    place = [given.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    server, repository, run = place
    return GitHub(
        repository=repository,
        sha=_part(change, "head").get("sha") or given.get("GITHUB_SHA"),
        api_url=given.get("GITHUB_API_URL", "https://api.github.com"),
        token=given.get("GITHUB_TOKEN") or given.get("GH_TOKEN"),
        pull_request=number if isinstance(number, int) else None,
        summary_path=given.get("GITHUB_STEP_SUMMARY"),
        run_url=f"{server}/{repository}/actions/runs/{run}" if all(place) else None,
    )


def write_summary(job: GitHub, text: str) -> bool:
    """Append Markdown to the summary of the step; False if there is no room or no file."""
    if job.summary_path is None:
        return False
    path = Path(job.summary_path)
    data = (text.rstrip("\n") + "\n").encode(errors="replace")
    try:
        there = path.stat().st_size if path.exists() else 0
        if there + len(data) > LARGEST_SUMMARY:
            return False
        with path.open("ab") as file:
            file.write(data)
    except OSError as error:
        raise ForgeError(f"the step summary cannot be written: {error}") from error
    return True


def annotation_lines(annotations: Iterable[Annotation]) -> Iterator[str]:
    r"""Workflow commands, at most ten of each level; the tenth says how many are left out.

    >>> list(annotation_lines([Annotation(level="error", title="a,b", message="50 %\nno")]))
    ['::error title=a%2Cb::50 %25%0Ano']
    """
    by_level: dict[Level, list[Annotation]] = {}
    for annotation in annotations:
        by_level.setdefault(annotation.level, []).append(annotation)
    for level, found in by_level.items():
        room = MOST_ANNOTATIONS if len(found) <= MOST_ANNOTATIONS else MOST_ANNOTATIONS - 1
        yield from map(_command, found[:room])
        if len(found) > room:
            more = f"+{len(found) - room:,} more"
            yield _command(Annotation(level=level, title=more, message=f"{more}: see the report"))


def post_comment(job: GitHub, text: str, *, key: str) -> Posted:
    """Write our one comment on the pull request, or update it."""
    if job.pull_request is None:
        return Posted(outcome="refused", reason="this run belongs to no pull request")
    if job.token is None:
        return Posted(outcome="refused", reason="there is no GITHUB_TOKEN")
    if job.repository is None:
        return Posted(outcome="refused", reason="GITHUB_REPOSITORY is not set")
    issues = f"repos/{job.repository}/issues"
    comments = Comments(
        api=job.api,
        path=f"{issues}/{job.pull_request}/comments",
        one=f"{issues}/comments",
        update_method="PATCH",
    )
    return post_sticky(comments, text, key=key)


def post_check(job: GitHub, *, name: str, conclusion: Conclusion, title: str, summary: str) -> None:
    """Post a check on the commit: neutral where the verdict is open, so that nothing turns red."""
    if job.repository is None or job.sha is None:
        unset = "GITHUB_REPOSITORY" if job.repository is None else "GITHUB_SHA"
        raise ForgeError(f"{unset} is not set")
    job.api.call(
        "POST",
        f"repos/{job.repository}/check-runs",
        {
            "name": name,
            "head_sha": job.sha,
            "status": "completed",
            "conclusion": conclusion,
            "output": {"title": title[:255], "summary": summary[:LONGEST_CHECK]},
            **({"details_url": job.run_url} if job.run_url else {}),
        },
    )


def _event(path: str | None) -> dict[str, Any]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(event: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object inside an event; an empty one if there is none."""
    found = event.get(key)
    return found if isinstance(found, dict) else {}


def _command(annotation: Annotation) -> str:
    """A workflow command; characters that could end it or begin another one are escaped."""
    places = {"file": annotation.file, "line": annotation.line, "title": annotation.title}
    properties = ",".join(
        f"{name}={_property(str(value))}" for name, value in places.items() if value is not None
    )
    return f"::{annotation.level} {properties}::{_data(annotation.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
