"""From a store to a running site, for one person on one machine unless told otherwise."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from passhat.dashboard.app import build_app
from passhat.dashboard.guard import ENTRANCE, SHORTEST_CHOSEN_TOKEN, Access, Address, is_loopback
from passhat.errors import ArgumentError, InputError

if TYPE_CHECKING:
    import uvicorn

    from passhat.dashboard.shelf import Shelf

# Whoever watches a live page keeps a connection open; leaving does not wait for them.
GRACE_SECONDS = 1

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,80}")


def serve(
    shelf: Shelf,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    exposed: bool = False,
    token: str | None = None,
    person_header: str | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted; `started` gets the address to open."""
    access = make_access(host, exposed=exposed, token=token, person_header=person_header)
    with closing(listen(host, port)) as listener:
        address = address_of(listener, host)
        server = make_server(shelf, access=access, address=address)
        started(start_url(address, access))
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


def make_server(shelf: Shelf, *, access: Access, address: Address) -> uvicorn.Server:
    """The server: no WebSockets, no trust in forwarding headers, no log of addresses."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            build_app(shelf, access=access, address=address),
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
