"""Pull requests and merge requests: where a verdict is read by the people who review a change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from passhat.dataclass import dataclass
from passhat.errors import ForgeError
from passhat.records.secrets import bare_address

# GitHub: the step summary, annotations, one comment on the pull request, and a check.


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

    >>> list(annotation_lines([Annotation(level="error", title="a,b", message="50%\nno")]))
    ['::error title=a%2Cb::50%25%0Ano']
    """
    by_level: dict[Level, list[Annotation]] = {}
    for annotation in annotations:
        by_level.setdefault(annotation.level, []).append(annotation)
    for level, alike in by_level.items():
        room = MOST_ANNOTATIONS if len(alike) <= MOST_ANNOTATIONS else MOST_ANNOTATIONS - 1
        yield from map(_command, alike[:room])
        if len(alike) > room:
            more = f"+{len(alike) - room:,} more"
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
        each=f"{issues}/comments",
        update_method="PATCH",
    )
    return post_sticky(comments, text, key=key)


def edited_files(job: GitHub | GitLab) -> Iterator[str]:
    """The files that the change edits, by their paths in the repository, old names too."""
    if isinstance(job, GitHub):
        if None in (job.pull_request, job.token, job.repository):
            return
        path, names = f"repos/{job.repository}/pulls/{job.pull_request}/files", _GITHUB_NAMES
    else:
        if None in (job.merge_request, job.token, job.project, job.api_url):
            return
        project = quote(str(job.project), safe="")
        path, names = f"projects/{project}/merge_requests/{job.merge_request}/diffs", _GITLAB_NAMES
    for entry in job.api.pages(path):
        paths = (entry.get(name) for name in names) if isinstance(entry, dict) else ()
        yield from dict.fromkeys(name for name in paths if isinstance(name, str))


_GITHUB_NAMES = ("filename", "previous_filename")
_GITLAB_NAMES = ("new_path", "old_path")


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
        event = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _part(event: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object inside an event; an empty one if there is none."""
    part = event.get(key)
    return part if isinstance(part, dict) else {}


def _command(annotation: Annotation) -> str:
    """A workflow command; characters that could end it or begin another one are escaped."""
    places = {"file": annotation.file, "line": annotation.line, "title": annotation.title}
    properties = ",".join(
        f"{name}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in places.items()
        if value is not None
    )
    return f"::{annotation.level} {properties}::{_data(annotation.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# GitLab: one note on the merge request.


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLab:
    """A job of GitLab CI: its project and merge request."""

    project: str | None
    api_url: str | None
    token: str | None
    merge_request: int | None

    @property
    def api(self) -> Api:
        return Api(
            url=self.api_url or "", headers={"PRIVATE-TOKEN": self.token} if self.token else {}
        )


def gitlab_job(environment: Mapping[str, str]) -> GitLab | None:
    """The job that this process is part of; None outside GitLab CI.

    A job's own token may not write notes: GITLAB_TOKEN is a project access token.
    """
    if environment.get("GITLAB_CI") != "true":
        return None
    given = set_variables(environment)
    number = given.get("CI_MERGE_REQUEST_IID", "")
    return GitLab(
        project=given.get("CI_PROJECT_ID"),
        api_url=given.get("CI_API_V4_URL"),
        token=given.get("GITLAB_TOKEN"),
        merge_request=int(number) if number.isdecimal() else None,
    )


def post_note(job: GitLab, text: str, *, key: str) -> Posted:
    """Write our one note on the merge request, or update it."""
    if job.merge_request is None:
        return Posted(outcome="refused", reason="this job belongs to no merge request")
    if job.token is None:
        return Posted(outcome="refused", reason="there is no GITLAB_TOKEN")
    if job.project is None or job.api_url is None:
        unset = "CI_PROJECT_ID" if job.project is None else "CI_API_V4_URL"
        return Posted(outcome="refused", reason=f"{unset} is not set")
    project = quote(job.project, safe="")
    notes = f"projects/{project}/merge_requests/{job.merge_request}/notes"
    comments = Comments(api=job.api, path=notes, each=notes, update_method="PUT")
    return post_sticky(comments, text, key=key)


# One comment on a change that is written once and then kept up to date.


MARKER = "<!-- passhat:{key} -->"
"""Hidden in the comment; `key` distinguishes the comments of several suites."""

LONGEST_BODY = 65_536
"""Characters that GitHub takes; GitLab takes more."""

CUT = "\n\n*The rest is left out because the comment would be too long; see the report.*\n"
FORBIDDEN = (401, 403, 404)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on the change: its number, its text, and who wrote it."""

    number: int
    body: str
    author: str | None = None
    by_bot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What happened to our comment."""

    outcome: Literal["created", "updated", "unchanged", "refused"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comments:
    """The comments on a change: the path of their list, and the path before one's number."""

    api: Api
    path: str
    each: str
    update_method: Literal["PATCH", "PUT"]

    def read(self) -> Iterator[Comment]:
        for entry in self.api.pages(self.path):
            number = _number(entry)
            who = _part(entry, "user") or _part(entry, "author")  # GitHub, GitLab
            yield Comment(
                number=number,
                body=str(entry.get("body") or ""),
                author=who.get("login") or who.get("username"),
                by_bot=who.get("type") == "Bot",
            )

    def whoami(self) -> str | None:
        """The name of the user whose token this is; None for the token of an app or a job."""
        try:
            user = self.api.call("GET", "user")
        except ForgeError as error:
            if error.status not in FORBIDDEN:
                raise
            return None
        name = (user.get("login") or user.get("username")) if isinstance(user, dict) else None
        return name if isinstance(name, str) else None

    def create(self, body: str) -> int:
        return _number(self.api.call("POST", self.path, {"body": body}))

    def update(self, number: int, body: str) -> None:
        self.api.call(self.update_method, f"{self.each}/{number}", {"body": body})

    def delete(self, number: int) -> None:
        self.api.call("DELETE", f"{self.each}/{number}")


def post_sticky(comments: Comments, text: str, *, key: str) -> Posted:
    """Write our comment, or update it; where the forge does not let us, the result says why.

    Jobs that run at the same time may each create one: the oldest stays, the others go.
    """
    # No key can end the HTML comment around it.
    safe = "".join(c if c.isalnum() or c in "._/" else "_" for c in key)[:100]
    marker = MARKER.format(key=safe)
    body = fit_body(f"{marker}\n{text}")
    try:
        posted = _update_oldest(comments, _ours(comments, marker), body)
        if posted is not None:
            return posted
        number = comments.create(body)
        # Another job may have created one meanwhile: both see both, and keep the older.
        older = [comment for comment in _ours(comments, marker) if comment.number < number]
        if _update_oldest(comments, older, body) is not None:
            comments.delete(number)
            return Posted(outcome="updated")
        return Posted(outcome="created")
    except ForgeError as error:
        if error.status not in FORBIDDEN:
            raise
        return Posted(outcome="refused", reason=str(error))


def fit_body(body: str, longest: int = LONGEST_BODY) -> str:
    r"""A comment of at most so many characters, cut at the end of a line.

    >>> fit_body("a" * 40 + "\n" + "b" * 200, longest=150).count("\n")
    3
    """
    if len(body) <= longest:
        return body
    kept = body[: longest - len(CUT)]
    return kept[: kept.rfind("\n") + 1 or len(kept)].rstrip() + CUT


def _update_oldest(comments: Comments, ours: list[Comment], body: str) -> Posted | None:
    """Update the oldest comment that is ours; None if none is, or we may not change it."""
    for comment in ours:
        if comment.body == body:
            return Posted(outcome="unchanged")
        try:
            comments.update(comment.number, body)
        except ForgeError as error:
            if error.status not in FORBIDDEN:
                raise
        else:
            return Posted(outcome="updated")
    return None


def _ours(comments: Comments, marker: str) -> list[Comment]:
    """Our comments, the oldest first; a text that quotes the marker further down is not ours.

    Anyone may write the marker, and edit his comment after we wrote a verdict into it. So the
    author must be us: the user of the token, or a bot where the token is that of a job.
    """
    marked = [comment for comment in comments.read() if comment.body.startswith(marker)]
    if any(comment.author is not None for comment in marked):
        us = comments.whoami()
        marked = [c for c in marked if (c.by_bot if us is None else c.author == us)]
    return sorted(marked, key=lambda comment: comment.number)


def _number(entry: Any) -> int:
    """The number of a comment in an answer of the forge."""
    number = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(number, int):
        raise ForgeError("the answer holds no comment with a number")
    return number


# JSON over HTTP to a forge's API, with the standard library: a gate in CI needs no extra.


SECONDS = 20.0
"""How long one request may take: a comment must not hold up a pipeline."""

PAGE_SIZE = 100
MOST_PAGES = 30
"""3,000 comments: a pull request with more gets a second comment of ours."""

LARGEST_ANSWER = 16 * 2**20


def set_variables(environment: Mapping[str, str]) -> dict[str, str]:
    r"""The variables of a job that have a value, without the spaces and line ends around it.

    A secret that comes from a file often ends with a line end, and an unset one is empty.

    >>> set_variables({"GITHUB_TOKEN": "t\n", "GITHUB_SHA": ""})
    {'GITHUB_TOKEN': 't'}
    """
    return {name: value.strip() for name, value in environment.items() if value.strip()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The address of an API and the headers that authorise requests to it."""

    url: str
    headers: Mapping[str, str]

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON that one request is answered with; None if the answer is empty.

        A forge that cannot be reached, or refuses, raises ForgeError with its status.
        """
        request = self._request(method, path, body)
        try:
            with build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
                data = answer.read(LARGEST_ANSWER)
                try:
                    return json.loads(data) if data.strip() else None
                except (ValueError, RecursionError) as error:
                    raise ForgeError("the answer is not JSON", status=None) from error
        except HTTPError as error:
            with error:
                text = _message(error.read(LARGEST_ANSWER))
            raise ForgeError(f"{method} {path}: {error.code} {text}", status=error.code) from error
        except (URLError, TimeoutError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ForgeError(f"{method} {path}: {reason}", status=None) from error
        except (HTTPException, ValueError) as error:
            # The message of such an error may quote a header, and with it the token.
            kind = type(error).__name__
            raise ForgeError(f"{method} {path}: it cannot be sent or read ({kind})") from None

    def pages(self, path: str) -> Iterator[Any]:
        """The entries of a list that the API gives page by page."""
        for page in range(1, MOST_PAGES + 1):
            entries = self.call("GET", f"{path}?per_page={PAGE_SIZE}&page={page}")
            if not isinstance(entries, list):
                raise ForgeError(f"GET {path}: the answer is not a list", status=None)
            yield from entries
            if len(entries) < PAGE_SIZE:
                return

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None) -> Request:
        if urlsplit(self.url).scheme not in ("http", "https"):
            shown = bare_address(self.url)
            raise ForgeError(f"the address of the API must begin with https://, got {shown!r}")
        data = None if body is None else json.dumps(body).encode()
        headers = {"User-Agent": "passhat", "Content-Type": "application/json", **self.headers}
        address = urljoin(self.url.rstrip("/") + "/", path)
        return Request(address, data=data, headers=headers, method=method)  # noqa: S310  # checked


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: it would send the token to another host, or turn a POST into a GET."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _message(data: bytes) -> str:
    """The reason that the forge gives for a refusal."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    return str(body.get("message", "") if isinstance(body, dict) else "")[:200]


# Webhooks: somebody is told at once.

WEBHOOK_TRIES = 3


WEBHOOK_PAUSE = 60.0
"""Seconds until a webhook that was not there is tried again."""


class Webhook:
    """Posts what happened, the oldest first; what could not be posted, again once a minute."""

    def __init__(self, url: str) -> None:
        self._url, self._untold, self._again = url, list[Mapping[str, Any]](), 0.0

    def post(self, event: Mapping[str, Any] | None = None) -> str | None:
        """Post an event, if there is one, and what is left; what went wrong if nobody took it."""
        self._untold += [event] if event else []
        while self._untold and (event or monotonic() >= self._again):
            if (problem := _posted(self._url, self._untold[0])) is not None:
                self._again = monotonic() + WEBHOOK_PAUSE
                return problem
            self._untold.pop(0)
        return None


def _posted(url: str, event: Mapping[str, Any]) -> str | None:
    """Post an event as JSON; what went wrong if nobody took it, after a few tries.

    `text` is what Slack, Teams and Mattermost show. Nothing but the host of the address is told:
    the rest of it is what lets one post there.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        return "the address of a webhook begins with http:// or https://"
    data = json.dumps({"text": event["sentence"], **event}).encode()
    request = Request(url, data=data, headers={"Content-Type": "application/json"})  # noqa: S310 - checked above
    problem = ""
    for _ in range(WEBHOOK_TRIES):
        try:
            with build_opener(_NoRedirect).open(request, timeout=SECONDS):
                return None
        except HTTPError as error:
            problem = f"it answered {error.code}"
            if error.code < 500 and error.code != 429:
                break
        except (URLError, HTTPException, OSError) as error:
            problem = str(getattr(error, "reason", error))
    return f"the webhook at {urlsplit(url).hostname} was not told: {problem}"
