"""Templates, style, script and the policy that lets exactly these run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response, StreamingResponse

from passhat.dashboard.guard import PERSON
from passhat.errors import PasshatError
from passhat.history.queries import run_label
from passhat.messages import plural, short_commit
from passhat.reporters.formats import html
from passhat.reporters.formats.html import page_script, page_style, source_hash

if TYPE_CHECKING:
    from jinja2 import Environment

    from passhat.records import Trial


def page(template: str, *, status: int = 200, live: bool = False, **values: Any) -> Response:
    """A page; only a `live` one may talk to the server after it was loaded."""
    return HTMLResponse(render(template, **values), status, headers=_headers(live=live))


def streamed(parts: Iterator[str]) -> Response:
    """A page sent in parts, so that what is known at once is seen at once."""
    return StreamingResponse(
        _to_the_end(parts), media_type="text/html", headers=_headers(live=False)
    )


def door(token: str | None, message: str) -> Response:
    """The page that sends the token of the start address, or asks for one."""
    return page("enter.html", status=200 if token else 401, token=token, message=message)


def render(template: str, **values: Any) -> str:
    """A template as text."""
    always = {"style": _style(), "script": _script(), "theme": _asset("theme.js")}
    given = {**always, "person": PERSON.get(), **values}
    return _templates().get_template(template).render(given)


def url(path: str, **query: Any) -> str:
    """An address on this site; whatever comes from data is quoted.

    >>> url("/run/1f2e/task", task="a/b?&", page=None)
    '/run/1f2e/task?task=a%2Fb%3F%26'
    """
    known = [(name, value) for name, value in query.items() if value not in (None, "")]
    return path + ("?" + urlencode(known, doseq=True) if known else "")


def _to_the_end(parts: Iterator[str]) -> Iterator[str]:
    """A page that was begun is also ended, if only with the reason why there is no more of it."""
    try:
        yield from parts
    except PasshatError as error:
        yield render("broken_off.html", message=str(error), store="")


@cache
def _templates() -> Environment:
    from jinja2 import ChoiceLoader, PackageLoader

    shared = html.templates()
    own = PackageLoader("passhat.dashboard", "html")
    assert shared.loader is not None
    environment = shared.overlay(loader=ChoiceLoader([own, shared.loader]))
    environment.globals = {**shared.globals, "url": url}
    environment.filters = {
        **shared.filters,
        "effort": _effort,
        "run_address": lambda key: url(f"/run/{key}"),
        "run_label": run_label,
        "plural": plural,
        "short_commit": short_commit,
        "suite_anchor": _suite_anchor,
        "when": lambda text: (text or "")[:16].replace("T", " "),
    }
    return environment


def _effort(trial: Trial, what: str) -> float | None:
    """What a trial took of one resource, None where that is not known."""
    if what == "tokens" and trial.tokens is None:
        return (trial.tokens_in or 0) + (trial.tokens_out or 0) or None
    value: float | None = getattr(trial, what.replace(" ", "_"))
    return value


def _suite_anchor(name: str) -> str:
    """The address of a suite on the overview, whatever it is called."""
    return "suite-" + sha256(name.encode(errors="replace")).hexdigest()[:8]


@cache
def _style() -> str:
    return page_style() + _asset("dashboard.css")


@cache
def _script() -> str:
    return page_script() + _asset("dashboard.js")


@cache
def _asset(name: str) -> str:
    return files("passhat.dashboard").joinpath("html", name).read_text(encoding="utf-8")


@cache
def _policy() -> str:
    scripts = " ".join(f"'{source_hash(text)}'" for text in (_script(), _asset("theme.js")))
    return (
        f"default-src 'none'; script-src {scripts}; style-src '{source_hash(_style())}'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _headers(*, live: bool) -> dict[str, str]:
    more = "; connect-src 'self'" if live else ""
    return {"content-security-policy": _policy() + more}
