"""One comment that is written once and kept up to date, whatever else is said below a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from passhat.errors import ForgeError
from passhat.fast_dataclass import dataclass

MARKER = "<!-- passhat:{key} -->"
"""Hidden in the comment; `key` distinguishes the comments of several suites."""

LONGEST_BODY = 65_536
"""Characters that GitHub takes; GitLab takes more."""

CUT = "\n\n*The rest is left out: the comment would be too long. The report of the run has all.*\n"
FORBIDDEN = (401, 403, 404)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on the change: its number, and its text."""

    number: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """What became of our comment."""

    outcome: Literal["created", "updated", "unchanged", "refused"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentCalls:
    """The four calls that a forge has for comments."""

    read: Callable[[], Iterable[Comment]]
    create: Callable[[str], int]
    update: Callable[[int, str], None]
    delete: Callable[[int], None]


def post_sticky(calls: CommentCalls, text: str, *, key: str) -> Posted:
    """Write our comment, or bring it up to date; a forge that does not let us says why.

    Jobs that run at the same time may each create one: the oldest stays, the others go.
    """
    marker = MARKER.format(key=_safe_key(key))
    body = fit_body(f"{marker}\n{text}")
    try:
        return _post(calls, body, marker)
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


def _post(calls: CommentCalls, body: str, marker: str) -> Posted:
    posted = _bring_up_to_date(calls, _ours(calls, marker), body)
    if posted is not None:
        return posted
    number = calls.create(body)
    # Another job may have created one meanwhile: both see both, and keep the older.
    found = [comment for comment in _ours(calls, marker) if comment.number <= number]
    older = [comment for comment in found if comment.number < number]
    if older and _bring_up_to_date(calls, older, body) is not None:
        calls.delete(number)
        return Posted(outcome="updated")
    return Posted(outcome="created")


def _bring_up_to_date(calls: CommentCalls, ours: list[Comment], body: str) -> Posted | None:
    """Update the oldest comment that is ours; None where none is.

    Anyone may write our marker: a comment that we may not change belongs to someone else.
    """
    for comment in ours:
        if comment.body == body:
            return Posted(outcome="unchanged")
        try:
            calls.update(comment.number, body)
        except ForgeError as error:
            if error.status not in FORBIDDEN:
                raise
        else:
            return Posted(outcome="updated")
    return None


def _ours(calls: CommentCalls, marker: str) -> list[Comment]:
    """Our comments, the oldest first; a text that quotes the marker further down is not ours."""
    found = (comment for comment in calls.read() if comment.body.startswith(marker))
    return sorted(found, key=lambda comment: comment.number)


def _safe_key(key: str) -> str:
    """A key that cannot end the HTML comment around it."""
    return "".join(c if c.isalnum() or c in "._/" else "_" for c in key)[:100]
