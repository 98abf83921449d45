"""Small suites for the tests of the runner, and a small HTTP server."""

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from passhat.records import Behaviour, Model, ModelSystem, Pairing, Suite, Task


def _suite(system, *, tasks=1, runs=1, task=None, **options):
    base = task or Task(name="task", prompt="Say 4.")
    names = [base.name] if tasks == 1 else [f"{base.name} {i}" for i in range(tasks)]
    pairings = tuple(
        Pairing(system=system, task=replace(base, name=name), runs=runs, label=name)
        for name in names
    )
    return Suite(name="suite", pairings=pairings, **options)


def _scripted(*behaviours, **options):
    model = Model(name="scripted", script=behaviours or (Behaviour(answer="4"),))
    return ModelSystem(name="agent", model=model, **options)


@pytest.fixture
def suite_of():
    """A suite of one system on one or more tasks."""
    return _suite


@pytest.fixture
def scripted():
    """A system with a scripted model."""
    return _scripted


@contextmanager
def _serving(answer):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, given = answer(self.path, body, self.headers)
            text = isinstance(given, str | bytes)
            given = given if text else json.dumps(given)
            data = given if isinstance(given, bytes) else given.encode()
            self.send_response(status)
            self.send_header("content-type", "text/plain" if text else "application/json")
            self.send_header("content-length", str(len(data)))
            with suppress(ConnectionError):  # a client that did not wait
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def serving():
    """`with serving(answer) as url`: answer(path, body, headers) is a status and text or JSON."""
    return _serving
