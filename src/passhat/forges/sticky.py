"""One comment on a change that is written once and then kept up to date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from passhat.errors import ForgeError
from passhat.fast_dataclass import dataclass
from passhat.forges.api import Api

MARKER = "<!-- passhat:{key} -->"
"""Hidden in the comment; `key` distinguishes the comments of several suites."""

LONGEST_BODY = 65_536
"""Characters that GitHub takes; GitLab takes more."""

CUT = "\n\n*The rest is left out because the comment would be too long; see the report.*\n"
FORBIDDEN = (401, 403, 404)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on the change: its number, and its text."""

    number: int
    body: str


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
    one: str
    update_method: Literal["PATCH", "PUT"]

    def read(self) -> Iterator[Comment]:
        for entry in self.api.pages(self.path):
            body = entry.get("body") if isinstance(entry, dict) else None
            yield Comment(number=_number(entry), body=str(body or ""))

    def create(self, body: str) -> int:
        return _number(self.api.call("POST", self.path, {"body": body}))

    def update(self, number: int, body: str) -> None:
        self.api.call(self.update_method, f"{self.one}/{number}", {"body": body})

    def delete(self, number: int) -> None:
        self.api.call("DELETE", f"{self.one}/{number}")


def post_sticky(comments: Comments, text: str, *, key: str) -> Posted:
    """Write our comment, or update it; where the forge does not let us, the result says why.

    Jobs that run at the same time may each create one: the oldest stays, the others go.
    """
    marker = MARKER.format(key=_safe_key(key))
    body = fit_body(f"{marker}\n{text}")
    try:
        return _post(comments, body, marker)
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


def _post(comments: Comments, body: str, marker: str) -> Posted:
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


def _update_oldest(comments: Comments, ours: list[Comment], body: str) -> Posted | None:
    """Update the oldest comment that is ours; None if none is.

    Anyone may write our marker: a comment that we may not change belongs to someone else.
    """
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
    """Our comments, the oldest first; a text that quotes the marker further down is not ours."""
    found = (comment for comment in comments.read() if comment.body.startswith(marker))
    return sorted(found, key=lambda comment: comment.number)


def _number(entry: Any) -> int:
    """The number of a comment in an answer of the forge."""
    number = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(number, int):
        raise ForgeError("the answer holds no comment with a number")
    return number


def _safe_key(key: str) -> str:
    """A key that cannot end the HTML comment around it."""
    return "".join(c if c.isalnum() or c in "._/" else "_" for c in key)[:100]
