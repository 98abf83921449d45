"""What the site sends: templates with their policy, and the guard that says who may ask."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import field
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from passhat.dataclass import dataclass
from passhat.errors import PasshatError
from passhat.history.queries import run_label
from passhat.history.runs import run_name
from passhat.messages import plural, short_commit, short_day, short_time
from passhat.reporters.answer import movement_label
from passhat.reporters.formats import html
from passhat.reporters.formats.html import page_script, page_style, source_hash
from passhat.reporters.formatting import safe_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from passhat.analysis.comparing.trends import AgentVerdict
    from passhat.records import Trial


def page(template: str, *, status: int = 200, asks: bool = False, **values: Any) -> Response:
    """A page; only one that `asks` may talk to the server after it was loaded."""
    return HTMLResponse(render(template, **values), status, headers=_headers(asks=asks))


def streamed(parts: Iterator[str], *, asks: bool = False) -> Response:
    """A page sent in parts, so that what is known at once is seen at once.

    Without the first of them there is no page: its error has a status, as those of other pages.
    """
    whole = chain([next(parts, "")], _to_the_end(parts))
    return StreamingResponse(whole, media_type="text/html", headers=_headers(asks=asks))


def door(token: str | None, message: str) -> Response:
    """The page that sends the token of the start address, or asks for one."""
    return page("enter.html", status=200 if token else 401, token=token, message=message)


def render(template: str, **values: Any) -> str:
    """A template as text."""
    always = {"style": _style(), "script": _script(), "theme": _asset("theme.js")}
    given = {**always, "person": PERSON.get(), **values}
    return _templates().get_template(template).render(given)


def url(path: str, **query: Any) -> str:
    """An address on this site, as the reader's browser has it; whatever comes from data is quoted.

    >>> url("/run/1f2e/task", task="a/b?&", page=None)
    '/run/1f2e/task?task=a%2Fb%3F%26'
    """
    known = [(name, value) for name, value in query.items() if value not in (None, "")]
    return ROOT.get() + path + ("?" + urlencode(known, doseq=True) if known else "")


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
        "run_name": run_name,
        "marked": _marked,
        "movement_label": movement_label,
        "plural": plural,
        "short_commit": short_commit,
        "suite_anchor": _suite_anchor,
        "day": short_day,
        "prose": lambda text: text if hasattr(text, "__html__") else shared.filters["prose"](text),
        "when": partial(short_time, year=True),
        "with_tasks": with_tasks,
    }
    return environment


def with_tasks(sentence: str, run: str, agents: Iterable[AgentVerdict]) -> Markup:
    """What is said of a run, in which the tasks that it names lead to their pages."""
    from markupsafe import Markup, escape

    text = escape(safe_text(sentence))
    for agent in agents:
        links = [
            Markup('<a href="{}">{}</a>').format(
                url(f"/run/{run}/task", system=agent.system, task=task), name
            )
            for name, task in agent.tasks_named.items()
        ]
        before, named, after = text.partition(escape(f"({', '.join(agent.tasks_named)}"))
        if links and named:
            text = Markup("{}({}{}").format(before, Markup(", ").join(links), after)
    return text


def compile_templates() -> None:
    """Compile every template of a page, which its first visitor would wait for."""
    environment = _templates()
    for name in environment.list_templates(extensions=["html"]):
        environment.get_template(name)


def _effort(trial: Trial, what: str) -> float | None:
    """What a trial took of one resource, None where that is not known."""
    if what == "tokens" and trial.tokens is None:
        return (trial.tokens_in or 0) + (trial.tokens_out or 0) or None
    value: float | None = getattr(trial, what.replace(" ", "_"))
    return value


def _marked(text: str, wanted: str) -> Markup:
    """A text in which the words that were looked for are marked.

    >>> _marked("A full <refund> of it", "Refund full")
    Markup('A <mark>full</mark> &lt;<mark>refund</mark>&gt; of it')
    """
    from markupsafe import Markup

    forms = "|".join(map(re.escape, sorted({wanted.strip(), *wanted.split()}, key=len)[::-1]))
    pieces = re.split(f"({forms})", safe_text(text), flags=re.IGNORECASE)
    mark = Markup("<mark>{}</mark>")
    return Markup("").join(mark.format(piece) if i % 2 else piece for i, piece in enumerate(pieces))


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
        "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _headers(*, asks: bool) -> dict[str, str]:
    more = "; connect-src 'self'" if asks else ""
    return {"content-security-policy": _policy() + more}


# The one guard around the whole site: who may ask, from where, and what an answer may do.
#
# A page on the internet can make a browser send requests to 127.0.0.1 (cross-site requests), or
# point its own name there (DNS rebinding). So every request, of whatever kind, must carry a Host
# that is ours, no Origin but ours, and the cookie that the one-time token was exchanged for.

ENTRANCE = "/enter"

PROXY = "x-passhat-proxy"
"""The header by which a reverse proxy that has authenticated the person proves what it is: it
holds the token that the user chose."""
PERSON: ContextVar[str] = ContextVar("person", default="")
"""Who asks, as the proxy says; shown on the pages of that request."""
ROOT: ContextVar[str] = ContextVar("root", default="")
"""The path under which a proxy has this site, for links on the pages of that request."""
LONGEST_PERSON = 200
LARGEST_FORM = 4096
WRITABLE = re.compile(r"/run/[^/]+/(?:label|change)")
"""The only addresses that take a form: it must come from a page of ours and hold its token."""
SHORTEST_CHOSEN_TOKEN = 20

HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": browsers would send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


@dataclass(slots=True, kw_only=True)
class Access:
    """A token that signs a browser in once, and the cookie that keeps it signed in.

    A token that the user chose, so that others can sign in, may be used again. `person_header` is
    the header in which the proxy must name the person it authenticated; "" if it need not.
    `public_url` is where people reach the proxy, and so the origin of the forms that it passes on.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    reusable: bool = False
    spent: bool = False
    person_header: str = ""
    public_url: str = ""

    def enter(self, token: str) -> bool:
        """Whether this token signs in; a one-time token is spent by it."""
        if self.spent or not _same(token, self.token):
            return False
        self.spent = not self.reusable
        return True

    def renew(self) -> None:
        """Make a new token for one more browser; those that are signed in stay signed in."""
        self.token, self.spent = secrets.token_urlsafe(32), False

    @property
    def form_token(self) -> str:
        """What a form must hold that changes something: only our own pages have it."""
        return hmac.new(self.session.encode(), b"form", "sha256").hexdigest()

    def knows(self, cookie: str) -> bool:
        return _same(cookie, self.session)

    def trusts(self, proofs: Sequence[str]) -> bool:
        """Whether a request comes through a proxy that knows the token that the user chose."""
        return self.reusable and len(proofs) == 1 and _same(proofs[0], self.token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the site is bound, and so the names it may be called by."""

    host: str
    port: int
    names: frozenset[str] = frozenset()

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def cookie(self) -> str:
        """Cookies do not tell ports apart, so the name does."""
        return f"passhat-{self.port}"

    def answers_to(self, host: str) -> bool:
        """Whether a Host header means this site.

        A name that others may point here is refused; only an address, or a name of ours,
        cannot be such a one.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").rstrip("."), parts.port or 80
        except ValueError:
            return False
        if port != self.port or "@" in host:
            return False
        if self.loopback:
            return is_loopback(name)
        return name in self.names or _is_address(name)


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


_BEHIND_A_PROXY = (
    "Behind a proxy: start passhat view with --public-url, and let the proxy pass Origin on."
)


class Guard:
    """ASGI middleware; `door` renders the page that asks for, or sends, the token."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        address: Address,
        door: Callable[[str | None, str], Response],
    ) -> None:
        self.app = app
        self.access = access
        self.address = address
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        with suppress(ClientDisconnect):  # nobody is left to answer
            answer = await self._answer(scope, receive)
            if scope["type"] == "websocket" and answer is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": "not allowed"})
                return
            await (answer or self.app)(scope, receive, _hardened(send))

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        """What the guard itself says; None if the request may pass."""
        headers = Headers(scope=scope)
        if (refusal := self._refusal(scope, headers)) is not None:
            return refusal
        proxied = self.access.trusts(headers.getlist(PROXY))
        ROOT.set(urlsplit(self.access.public_url).path.rstrip("/") if proxied else "")
        if scope["path"] == ENTRANCE and scope["type"] == "http":
            return await self._entrance(Request(scope, receive))
        cookies = cookie_parser(headers.get("cookie", ""))
        PERSON.set("")
        if not self.access.knows(cookies.get(self.address.cookie, "")):
            if not proxied:
                return self.door(None, "This dashboard is open to the person who started it only.")
            if not self._names_a_person(headers):
                return self.door(None, "The proxy does not say who you are.")
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            return None
        if scope["method"] != "POST" or not WRITABLE.fullmatch(scope["path"]):
            return PlainTextResponse("Nothing here can be changed.\n", 405, {"allow": "GET, HEAD"})
        if not headers.get("origin"):
            return PlainTextResponse(
                f"A form must be sent with its Origin. {_BEHIND_A_PROXY}\n", 403
            )
        return None

    def _names_a_person(self, headers: Headers) -> bool:
        """Whether the proxy names the person, if it has to; the name is for this request only."""
        if not self.access.person_header:
            return True
        named = headers.getlist(self.access.person_header)
        if len(named) != 1 or not named[0].strip():
            return False
        PERSON.set(named[0].strip()[:LONGEST_PERSON])
        return True

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.address.answers_to(hosts[0]):
            return PlainTextResponse("This Host is not served here.\n", 421)
        own = {f"http://{hosts[0]}".lower()}
        if self.access.public_url and self.access.trusts(headers.getlist(PROXY)):
            public = urlsplit(self.access.public_url)
            own.add(f"{public.scheme}://{public.netloc}".lower())
        if any(origin.lower() not in own for origin in headers.getlist("origin")):
            text = f"Requests of other sites are refused. {_BEHIND_A_PROXY}\n"
            return PlainTextResponse(text, 403)
        navigation = headers.get("sec-fetch-mode") == "navigate" and scope.get("method") == "GET"
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not navigation:
            return PlainTextResponse("Requests of other sites are refused.\n", 403)
        return None

    async def _entrance(self, request: Request) -> Response:
        """The token is shown to a form on GET, which changes nothing, and spent on POST."""
        if request.method in ("GET", "HEAD"):
            return self.door(request.query_params.get("token"), "")
        if request.method != "POST":
            return PlainTextResponse("Only GET and POST.\n", 405, {"allow": "GET, HEAD, POST"})
        if not request.headers.get("origin"):
            return PlainTextResponse("A form must be sent with its Origin.\n", 403)
        form = await _form(request)
        if form is None or not self.access.enter(form.get("token", "")):
            return self.door(None, "This token is wrong, or was used before.")
        response = RedirectResponse(url("/"), 303)
        response.set_cookie(
            self.address.cookie, self.access.session, httponly=True, samesite="strict", path="/"
        )
        return response


def _hardened(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


async def sent_form(
    request: Request, access: Access, *, largest: int = LARGEST_FORM
) -> dict[str, str]:
    """The fields of a form that one of our pages sent; any other is refused."""
    form = await _form(request, largest)
    if form is None or not _same(form.get("token", ""), access.form_token):
        raise HTTPException(403, "This form is too long, or not from a page of this dashboard")
    return form


async def _form(request: Request, largest: int = LARGEST_FORM) -> dict[str, str] | None:
    """The fields of a form, the first of each name; None if it is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            return None
    fields = parse_qs(body.decode("ascii", "replace"), errors="replace")
    return {name: values[0] for name, values in fields.items()}


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
