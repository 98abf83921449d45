import asyncio
import hashlib
import ipaddress
import re
import socket
from contextlib import ExitStack
from itertools import cycle
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.dashboard import server
from passhat.dashboard.responses import HEADERS, Access, Address, Guard, door
from passhat.dashboard.server import listen, make_access
from passhat.errors import ArgumentError, InputError

PATHS = [
    "/", "/runs", "/run/latest", "/run/latest/task", "/run/latest/trial", "/run/latest/transcript",
    "/run/latest/drawer",
    "/run/latest/live", "/run/latest/events", "/compare", "/trend", "/search?q=a", "/nowhere",
]  # fmt: skip
FORM = {"content-type": "application/x-www-form-urlencoded"}


def enter(site, token, **headers):
    given = {**FORM, "origin": site.origin, **headers}
    return site.ask("/enter", method="POST", headers=given, body=urlencode({"token": token}))


def raw(site, text):
    """The first line of the answer to bytes that no client library would send."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall(text.replace("\n", "\r\n").encode())
        return connection.recv(4096).decode().split("\r\n")[0]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_the_cookie(site, path):
    status, _, text = site.ask(path)
    assert status == 401
    assert "support" not in text


def test_a_wrong_cookie_opens_nothing(site):
    for value in ("", "x", site.access.token, site.access.session[:-1]):
        assert site.ask("/", headers={"cookie": f"passhat-{site.port}={value}"})[0] == 401
    assert site.ask("/", headers={"cookie": f"passhat={site.access.session}"})[0] == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "127.0.0.1:1",
     "10.0.0.1:{port}", "localhost.evil.example:{port}", "x@127.0.0.1:{port}", "[::1", ""],
)  # fmt: skip
def test_a_name_that_somebody_else_points_here_is_refused(site, host):
    given = {**site.cookie, "host": host.format(port=site.port)}
    assert site.ask("/", headers=given)[0] == 421
    assert enter(site, site.access.token, host=given["host"])[0] == 421
    assert not site.access.spent


def test_the_names_of_loopback_are_ours(site):
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert site.ask("/", headers={**site.cookie, "host": f"{name}:{site.port}"})[0] == 200


def test_a_request_must_have_exactly_one_host(site):
    assert "421" in raw(site, "GET / HTTP/1.0\n\n")
    ours = f"Host: 127.0.0.1:{site.port}"
    twice = raw(site, f"GET / HTTP/1.1\n{ours}\nHost: evil.example\nConnection: close\n\n")
    assert "400" in twice or "421" in twice


def test_looking_at_the_start_address_spends_nothing_and_posting_its_token_opens_once(site):
    for _ in range(2):
        status, _, text = site.ask(f"/enter?token={site.access.token}")
        assert (status, site.access.token in text) == (200, True)
    status, headers, _ = enter(site, site.access.token)
    assert (status, headers["location"]) == (303, "/")
    made = headers["set-cookie"]
    assert "HttpOnly" in made
    assert "samesite=strict" in made.lower()
    assert site.ask("/", headers={"cookie": made.split(";")[0]})[0] == 200
    status, headers, text = enter(site, site.access.token)
    assert (status, "set-cookie" in headers) == (401, False)
    assert "used before" in text


def test_a_token_in_a_cross_site_post_is_refused_and_not_spent(site):
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{site.port}",
                   "http://127.0.0.1:1"):  # fmt: skip
        assert enter(site, site.access.token, origin=origin)[0] == 403
    body = urlencode({"token": site.access.token})
    assert site.ask("/enter", method="POST", headers=FORM, body=body)[0] == 403
    assert not site.access.spent


@pytest.mark.parametrize("body", ["", "token=", "token=" + "x" * 10_000, "%ff=%ff", "a=b&token"])
def test_a_form_without_the_token_is_refused(site, body):
    given = {**FORM, "origin": site.origin}
    assert site.ask("/enter", method="POST", headers=given, body=body)[0] == 401


def test_other_sites_may_not_read_even_with_the_cookie(site):
    for more in (
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
        {"origin": site.origin, "sec-fetch-site": "cross-site"},
    ):
        assert site.ask("/", headers={**site.cookie, **more})[0] == 403
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert site.ask("/", headers={**site.cookie, **followed})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(site, method):
    headers = {**site.cookie, "origin": site.origin}
    assert site.ask("/", method=method, headers=headers)[0] == 405
    assert site.ask("/run/latest", method=method, headers=headers)[0] == 405


def test_every_answer_carries_every_header_that_limits_it(site):
    answers = [site.get("/"), site.get("/nowhere"), site.ask("/"), site.ask("/enter"),
               site.ask("/", headers={"host": "evil"}), site.get("/run/latest/transcript"),
               site.ask("/", method="POST", headers=site.cookie)]  # fmt: skip
    for _, headers, _ in answers:
        assert set(HEADERS) <= set(headers)
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_only_a_live_page_and_that_of_a_run_may_connect_and_only_here(site):
    for path in ("/", "/runs", "/compare", "/trend", "/search"):
        assert "connect-src" not in site.get(path)[1]["content-security-policy"]
    for path in ("/run/latest", "/run/latest/live"):
        assert "; connect-src 'self'" in site.get(path)[1]["content-security-policy"]


def test_looking_at_every_page_leaves_the_store_as_it_was(site, store):
    before = hashlib.sha256(store.read_bytes()).hexdigest()
    for path in PATHS:
        site.get(path)
    assert hashlib.sha256(store.read_bytes()).hexdigest() == before


def test_no_websocket_is_opened(site):
    upgrade = (
        f"GET /run/latest/events HTTP/1.1\nHost: 127.0.0.1:{site.port}\nConnection: Upgrade\n"
        "Upgrade: websocket\nSec-WebSocket-Version: 13\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"
    )
    assert "401" in raw(site, upgrade + "\n")
    assert "403" in raw(site, upgrade + "Origin: http://evil.example\n\n")


def websocket(headers):
    """What a guard does with a WebSocket; True when the application behind it is reached."""
    reached, sent = [], []

    async def app(scope, receive, send):
        reached.append(scope["path"])

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    access = Access(token="t" * 20, session="s" * 20)
    guard = Guard(app, access=access, address=Address(host="127.0.0.1", port=80), door=door)
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "path": "/", "headers": given, "query_string": b""}
    asyncio.run(guard(scope, receive, send))
    assert bool(reached) != (sent == [{"type": "websocket.close", "code": 1008,
                                       "reason": "not allowed"}])  # fmt: skip
    return bool(reached)


def test_a_websocket_passes_the_same_guard():
    good = {"host": "127.0.0.1", "origin": "http://127.0.0.1", "cookie": "passhat-80=" + "s" * 20}
    assert websocket(good)
    assert not websocket({**good, "host": "evil.example"})
    assert not websocket({**good, "origin": "http://evil.example"})
    assert not websocket({**good, "cookie": "passhat-80=" + "t" * 20})
    assert not websocket({name: value for name, value in good.items() if name != "cookie"})


@given(st.text(max_size=60))
def test_only_a_loopback_address_or_localhost_is_a_name_of_a_loopback_site(text):
    if Address(host="127.0.0.1", port=80).answers_to(text):
        name = re.sub(r":(80)?$", "", text).strip("[]").rstrip(".").lower()
        assert name == "localhost" or ipaddress.ip_address(name).is_loopback


def test_an_exposed_site_answers_to_addresses_and_its_own_names_only():
    address = Address(host="0.0.0.0", port=80, names=frozenset({"box.example"}))
    assert address.answers_to("192.168.1.5")
    assert address.answers_to("box.example:80")
    assert not address.answers_to("evil.example")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "box.example"])
def test_another_interface_needs_a_flag_and_a_token(host):
    for exposed, token in ((False, None), (True, None), (False, "t" * 30)):
        with pytest.raises(InputError, match="give `expose=True` and a token"):
            make_access(host, exposed=exposed, token=token)
    with pytest.raises(ArgumentError, match="token must have at least 20 characters"):
        make_access(host, exposed=True, token="short")
    access = make_access(host, exposed=True, token="t" * 30)
    assert access.enter("t" * 30)
    assert access.enter("t" * 30)
    assert not access.enter("t" * 29)


def test_a_taken_port_is_a_sentence():
    with listen("127.0.0.1", 0) as taken, pytest.raises(InputError, match="cannot listen on"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_secrets_are_not_in_the_name_of_what_holds_them():
    assert Access().token not in repr(Access())
    access = Access()
    assert access.session not in repr(access)


_HALF_A_HEAD = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
_HALF_A_BODY = (
    "POST /enter HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
    "Content-Length: 90\r\n\r\ntoken="
)


@pytest.mark.parametrize("half", [_HALF_A_HEAD, _HALF_A_BODY], ids=["head", "body"])
@pytest.mark.parametrize("before", ["", "GET /enter HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
def test_a_request_that_never_ends_is_refused_in_a_sentence(
    serve_site, store, monkeypatch, capfd, before, half
):
    """Hundreds of them would keep others out; the second of a connection counts as well."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    site = serve_site(store)
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        connection.sendall((before + half.format(port=site.port)).encode())
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answers.count(b"HTTP/1.1 ") == (2 if before else 1)
    assert b"HTTP/1.1 408 Request Timeout\r\n" in answers
    assert answers.endswith(b"\r\n\r\nThis request did not arrive in time: send it again, whole.\n")
    site.stop()
    assert capfd.readouterr().err == "", "a slow client is nothing for the terminal"


def test_a_connection_on_which_nothing_is_asked_is_closed_without_a_word(
    serve_site, store, monkeypatch
):
    """Browsers open such connections in advance: an answer to nothing would puzzle them."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    site = serve_site(store)
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
        assert connection.recv(65_536) == b""


def test_among_many_unfinished_requests_the_whole_ones_are_answered(serve_site, store, monkeypatch):
    """One slow client has its time; a crowd has one look, and a connection is kept for nobody."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 3600.0)
    monkeypatch.setattr(server, "MOST_UNFINISHED", 20)
    site = serve_site(store)
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=20))
            for _ in range(100)
        ]
        for connection, half in zip(crowd, cycle([_HALF_A_HEAD, _HALF_A_BODY])):
            connection.sendall(half.format(port=site.port).encode())
        assert site.ask("/enter")[0] == 401
        for connection in crowd:
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))  # noqa: B023
            assert answer.startswith(b"HTTP/1.1 408 ")
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=1.5))
        slow.sendall(_HALF_A_HEAD.encode())
        with pytest.raises(TimeoutError):
            slow.recv(65_536)
