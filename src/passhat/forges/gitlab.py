"""GitLab: one note on the merge request."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from passhat.fast_dataclass import dataclass
from passhat.forges.api import Api, set_variables
from passhat.forges.sticky import Comments, Posted, post_sticky


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
    comments = Comments(api=job.api, path=notes, one=notes, update_method="PUT")
    return post_sticky(comments, text, key=key)
