"""GitLab: one note on the merge request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from passhat.fast_dataclass import dataclass
from passhat.forges.api import Api
from passhat.forges.sticky import Comment, CommentCalls, Posted, post_sticky


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLab:
    """A job of GitLab CI: its project and merge request."""

    project: str
    api_url: str
    token: str | None
    merge_request: int | None

    @property
    def api(self) -> Api:
        return Api(url=self.api_url, headers={"PRIVATE-TOKEN": self.token} if self.token else {})


def gitlab_job(environment: Mapping[str, str]) -> GitLab | None:
    """The job that this process is part of; None outside GitLab CI.

    A job's own token may not write notes: GITLAB_TOKEN is a project access token.
    """
    if environment.get("GITLAB_CI") != "true":
        return None
    number = environment.get("CI_MERGE_REQUEST_IID", "")
    return GitLab(
        project=environment["CI_PROJECT_ID"],
        api_url=environment["CI_API_V4_URL"],
        token=environment.get("GITLAB_TOKEN"),
        merge_request=int(number) if number.isdigit() else None,
    )


def post_note(job: GitLab, text: str, *, key: str) -> Posted:
    """Our one note on the merge request."""
    if job.merge_request is None:
        return Posted(outcome="refused", reason="this job belongs to no merge request")
    if job.token is None:
        return Posted(outcome="refused", reason="there is no GITLAB_TOKEN")
    return post_sticky(_notes(job), text, key=key)


def _notes(job: GitLab) -> CommentCalls:
    api = job.api
    project = quote(job.project, safe="")
    notes = f"projects/{project}/merge_requests/{job.merge_request}/notes"

    def read() -> Iterator[Comment]:
        for entry in api.pages(notes):
            yield Comment(number=int(entry["id"]), body=str(entry.get("body") or ""))

    def update(number: int, body: str) -> None:
        api.call("PUT", f"{notes}/{number}", {"body": body})

    def delete(number: int) -> None:
        api.call("DELETE", f"{notes}/{number}")

    return CommentCalls(
        read=read,
        create=lambda body: int(api.call("POST", notes, {"body": body})["id"]),
        update=update,
        delete=delete,
    )
