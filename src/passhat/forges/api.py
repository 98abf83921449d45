"""JSON over HTTP to a forge's API, with the standard library: a gate in CI needs no extra."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from passhat.errors import ForgeError
from passhat.fast_dataclass import dataclass
from passhat.records.secret import bare_address

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
                return _decoded(answer.read(LARGEST_ANSWER))
        except HTTPError as error:
            with error:
                said = _message(error.read(LARGEST_ANSWER))
            raise ForgeError(f"{method} {path}: {error.code} {said}", status=error.code) from error
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


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data) if data.strip() else None
    except (ValueError, RecursionError) as error:
        raise ForgeError("the answer is not JSON", status=None) from error


def _message(data: bytes) -> str:
    """The reason that the forge gives for a refusal."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    said = found.get("message", "") if isinstance(found, dict) else ""
    return str(said)[:200]
