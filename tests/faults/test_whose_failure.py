"""Whose failure was it: the agent's, or that of something around it, which nobody can judge?"""

import json
import random
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress

import pytest

from passhat.journeys import resume_run, run
from passhat.records import Model, ModelSystem, Outcome, Pairing, Suite, Task, Trial
from passhat.reporters import render
from passhat.runner import run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.runner.schedule import ERRORS_ALIKE, ErrorsAlike, Retry
from passhat.testing import WireServer


def run_at(url, **options):
    system = ModelSystem(name="agent", model=Model(name="m", base_url=url), **options)
    task = Task(name="task", prompt="?")
    retries = []

    def note(event):
        if isinstance(event, Retry):
            retries.append(event)

    suite = Suite(
        name="s", pairings=(Pairing(system=system, task=task, runs=1, label="task"),), retries=4
    )
    (trial,) = run_trials(suite, on_event=note).trials
    return trial, 1 + len(retries)


@contextmanager
def listening(serve):
    """A server that gives each of its connections to `serve` in a thread.

    No thread may still wait at a socket that is closed: its number is soon that of another one, and
    the thread would take the connections of a later test.
    """
    server = socket.create_server(("127.0.0.1", 0))
    held, serving = [], []

    def accept():
        while True:
            try:
                held.append(server.accept()[0])
            except OSError:
                return
            serving.append(threading.Thread(target=serve, args=(held[-1],), daemon=True))
            serving[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}/v1"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        accepting.join()
        server.close()
        for connection in held:
            with suppress(OSError):  # whoever was served may have gone
                connection.shutdown(socket.SHUT_RDWR)
        for thread in serving:
            thread.join()
        for connection in held:
            connection.close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{"


@pytest.mark.parametrize(
    ("sent", "outcome"), [(b"", Outcome.ERRORED), (HEAD, Outcome.FAILED)], ids=["hangs", "slow"]
)
def test_no_byte_from_a_provider_is_an_error_and_a_slow_answer_a_failure(sent, outcome):
    with listening(lambda connection: connection.sendall(sent)) as address:
        trial, _ = run_at(f"http://{address}", timeout=1.0)
    assert trial.outcome is outcome
    if outcome is Outcome.ERRORED:
        assert trial.error.startswith("m: not one byte of an answer within the 1 s of the trial")


@pytest.mark.parametrize(
    ("answers", "latency", "outcome"), [(1, 0.0, Outcome.ERRORED), (99, 0.3, Outcome.FAILED)]
)
def test_in_later_turns_silence_is_told_from_an_agent_that_takes_many(answers, latency, outcome):
    def answer(asked):
        if asked.number + 1 >= answers:
            server.troubles["hang"] = 1.0
        return Reply(calls=(CallRequest(id="c", name="nothing", arguments={}),))

    with WireServer(answer, latency=latency) as server:
        # Long enough that no answer of a busy machine takes the rest of it.
        trial, _ = run_at(server.url, timeout=1.0 + 10 * latency, max_turns=99)
    assert trial.outcome is outcome, trial.error


def refusing(code):
    """Answers a request with 429 and an error of this code."""
    body = json.dumps({"error": {"message": "no", "code": code}}).encode()
    head = f"HTTP/1.1 429 No\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"

    def serve(connection):
        received = b""
        while b'"messages"' not in received and (more := connection.recv(65536)):
            received += more
        with suppress(OSError):  # nobody waits any more
            connection.sendall(head.encode() + body)

    return serve


def untrusted(folder):
    """The server's side of TLS, with a certificate that nobody has signed."""
    files = ("-keyout", str(folder / "key"), "-out", str(folder / "cert"))
    words = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost")
    subprocess.run([*words, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")

    def serve(connection):
        with suppress(OSError):
            context.wrap_socket(connection, server_side=True)

    return serve


def test_a_quota_that_is_used_up_is_asked_about_twice_and_a_rate_limit_as_often_as_allowed():
    for code, times in (("insufficient_quota", 2), ("rate_limit_exceeded", 5)):
        with listening(refusing(code)) as address:
            trial, asked = run_at(f"http://{address}")
        assert (trial.outcome, asked) == (Outcome.ERRORED, times)
        assert f"429 no (asked {times} times)" in trial.error


def test_an_unknown_name_is_asked_for_twice():
    trial, asked = run_at("http://nobody.invalid/v1")
    assert (trial.outcome, asked) == (Outcome.ERRORED, 2), trial.error


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_where_nothing_listens_is_tried_a_few_times(host):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    trial, asked = run_at(f"http://{host}:{port}/v1")
    assert (trial.outcome, asked) == (Outcome.ERRORED, 4), trial.error


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_that_is_not_trusted_is_tried_twice(tmp_path):
    with listening(untrusted(tmp_path)) as address:
        trial, asked = run_at(f"https://{address}")
    assert (trial.outcome, asked) == (Outcome.ERRORED, 2), trial.error
    assert "certificate verify failed" in trial.error.lower()


def test_a_run_ends_at_five_errors_alike_unless_a_trial_could_be_judged():
    rng = random.Random(7)
    for _ in range(300):
        counts, judged, errors = {}, False, ErrorsAlike()
        for number in range(40):
            kind = rng.choice(["no key", "refused", "cut", None] if rng.random() < 0.2 else ["cut"])
            outcome = Outcome.ERRORED if kind else rng.choice([Outcome.PASSED, Outcome.FAILED])
            error = kind and f"{kind} (request {rng.randrange(10**6):06x})"
            judged |= kind is None
            counts[kind] = counts.get(kind, 0) + 1
            trial = Trial(system="a", task="t", trial=number, outcome=outcome, error=error)
            over = errors.take(trial)
            assert over == (not judged and max(counts.values()) >= ERRORS_ALIKE)
            if over:
                break


FUNCTION = """\
import pathlib

def answer(prompt, trial):
    if not pathlib.Path("key").exists():
        raise RuntimeError(f"no key for request {trial}")
    return "4"
"""
SUITE = """\
name: s
concurrency: 1
defaults: {runs: 20}
systems: [{name: agent, python: "lone_agent:answer"}]
tasks: [{name: sum, prompt: "2 + 2?", expect: [{contains: "4"}]}]
gates: ["pass@1 >= 0.5"]
"""


@pytest.fixture
def keyless(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lone_agent.py").write_text(FUNCTION)
    (tmp_path / "s.yml").write_text(SUITE)
    return tmp_path


def test_where_nothing_could_be_judged_there_is_no_verdict_and_the_rest_is_not_paid_for(keyless):
    answer = run("s.yml", store="h.db")
    assert (len(answer.trials), answer.outcome) == (ERRORS_ALIKE, "incomplete")
    assert (answer.verdicts, answer.floors) == (None, ())
    text = str(render(answer, "text"))
    assert "FAIL" not in text
    assert "ERROR  All 5 trials of agent errored: there is nothing to judge." in text
    assert "--retry-errors" in answer.undone
    (keyless / "key").touch()
    again = resume_run(store="h.db", retry_errors=True)
    assert (len(again.trials), again.outcome) == (20, "passed")


def test_a_run_that_keeps_going_makes_every_trial_and_still_has_no_verdict(keyless):
    answer = run("s.yml", keep_going=True)
    assert (len(answer.trials), answer.outcome, answer.verdicts) == (20, "incomplete", None)
