"""From a store to a running site, for one person on one machine unless exposed."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from passhat.dashboard.pages import Pages
from passhat.dashboard.responses import (
    ENTRANCE,
    SHORTEST_CHOSEN_TOKEN,
    Access,
    Address,
    Guard,
    door,
    is_loopback,
    page,
)
from passhat.errors import ArgumentError, HistoryError, InputError, StoreError
from passhat.journeys.overview import ReportCache

if TYPE_CHECKING:
    import uvicorn

# An open live page keeps its connection; shutting down does not wait for it.
GRACE_SECONDS = 1

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,80}")


def serve(
    reports: ReportCache,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    exposed: bool = False,
    token: str | None = None,
    person_header: str | None = None,
    started: Callable[[str, Callable[[], str] | None], None],
) -> None:
    """Serve until interrupted; `started` gets the address to open, and what makes a new one.

    There is nothing to renew where the user chose the token: its address may be used again.
    """
    access = make_access(host, exposed=exposed, token=token, person_header=person_header)
    with closing(listen(host, port)) as listener:
        address = address_of(listener, host)
        server = make_server(reports, access=access, address=address)

        def renew() -> str:
            access.renew()
            return start_url(address, access)

        started(start_url(address, access), None if access.reusable else renew)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn raises again what it has already obeyed
            return


def make_access(
    host: str, *, exposed: bool, token: str | None, person_header: str | None = None
) -> Access:
    """Loopback needs nothing; any other interface a flag and a token that the user chose.

    A header that names people is believed only beside that token: without one it is refused.
    """
    if person_header is not None and token is None:
        raise InputError(
            f"person_header {person_header}: is believed of a proxy that knows the token alone; "
            "choose one in PASSHAT_TOKEN"
        )
    if person_header is not None and not _HEADER_NAME.fullmatch(person_header):
        raise ArgumentError("person_header", "must be the name of a header", person_header)
    if not is_loopback(host) and not (exposed and token):
        raise InputError(
            f"host {host}: others could reach this; to let them, give `expose=True` and a token of "
            f"at least {SHORTEST_CHOSEN_TOKEN} characters in PASSHAT_TOKEN"
        )
    if token is None:
        return Access()
    if len(token) < SHORTEST_CHOSEN_TOKEN:
        rule = f"must have at least {SHORTEST_CHOSEN_TOKEN} characters"
        raise ArgumentError("token", rule, f"{len(token)} characters")
    return Access(token=token, reusable=True, person_header=person_header or "")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InputError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    listener.listen()
    return listener


def address_of(listener: socket.socket, host: str) -> Address:
    """Where a socket listens, with the names of ours that lead there."""
    names = frozenset({host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()})
    return Address(host=host, port=listener.getsockname()[1], names=names)


def make_server(reports: ReportCache, *, access: Access, address: Address) -> uvicorn.Server:
    """The server: no WebSockets, no trust in forwarding headers, no log of addresses."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            _build_app(reports, access=access, address=address),
            http="h11",
            ws="none",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


def start_url(address: Address, access: Access) -> str:
    """The address to open, with the token in it."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}{ENTRANCE}?token={access.token}"


def _build_app(reports: ReportCache, *, access: Access, address: Address) -> ASGIApp:
    """The guarded site over one store."""
    pages = Pages(reports)
    routes = [
        Route("/", pages.overview),
        Route("/runs", pages.runs),
        Route("/run/{run}", pages.run),
        Route("/run/{run}/task", pages.task),
        Route("/run/{run}/trial", pages.trial),
        Route("/run/{run}/transcript", pages.transcript),
        Route("/run/{run}/diff", pages.diff),
        Route("/run/{run}/why", pages.why),
        Route("/run/{run}/live", pages.live),
        Route("/run/{run}/events", pages.events),
        Route("/compare", pages.compare),
        Route("/trend", pages.trend),
        Route("/search", pages.search),
    ]
    handlers = {
        HistoryError: _sorry(404, str(reports.path)),
        InputError: _sorry(400, str(reports.path)),
        HTTPException: _http_sorry,
        StoreError: _sorry(503, str(reports.path)),
        Exception: lambda request, error: _say(500, "Something broke; the terminal says what."),
    }
    site = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(site, access=access, address=address, door=door)


# No return type: starlette's handlers are loosely typed.
def _sorry(status: int, store: str):  # type: ignore[no-untyped-def]
    """What is wrong, without the path of the store: that of logs is a temporary one."""
    return lambda request, error: _say(status, str(error).removeprefix(f"{store}: "))


def _http_sorry(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _say(error.status_code, f"{error.detail}.")


def _say(status: int, message: str) -> Response:
    return page("sorry.html", status=status, store="", message=message, code=status)
