"""The site as one ASGI application, with the guard around all of it."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from passhat.dashboard.guard import Access, Address, Guard
from passhat.dashboard.pages import Pages
from passhat.dashboard.rendering import door, page
from passhat.dashboard.shelf import Shelf
from passhat.errors import HistoryError, InputError, StoreError


def build_app(shelf: Shelf, *, access: Access, address: Address) -> ASGIApp:
    """The guarded site over one store."""
    pages = Pages(shelf)
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
        HistoryError: _sorry(404),
        InputError: _sorry(400),
        HTTPException: _http_sorry,
        StoreError: _sorry(503),
        Exception: lambda request, error: _say(500, "Something broke; the terminal says what."),
    }
    site = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(site, access=access, address=address, door=door)


def _sorry(status: int):  # type: ignore[no-untyped-def]  # starlette's handlers are loosely typed
    return lambda request, error: _say(status, str(error))


def _http_sorry(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _say(error.status_code, f"{error.detail}.")


def _say(status: int, message: str) -> Response:
    return page("sorry.html", status=status, store="", message=message, code=status)
