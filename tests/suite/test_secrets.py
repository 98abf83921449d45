import pickle

import pytest

from passhat.errors import SuiteError
from passhat.records import HttpServer, ModelSystem, Secret

AGENT = "agents: [{name: a, model: o3, prompt: hi%s}]\n"

# In pieces, so that no scanner takes this file for a leak.
KEYS = [
    "sk-" + "proj-abcdefghijklmnop1234",
    "sk-" + "ant-api03-" + "q7" * 12,
    "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "a81f3c9e02b7" + "4d6588aa10ff",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "text",
    [
        AGENT % ', api_key: "KEY"',
        AGENT % ', headers: {X-Thing: "KEY"}',
        "servers: {s: {url: 'http://x', headers: {Authorization: 'Bearer KEY'}}}\n" + AGENT % "",
        "servers: {s: {command: x, env: {THING: KEY}}}\n" + AGENT % "",
        AGENT % ', api_key: "${MINE:-KEY}"',
    ],
)
def test_a_key_written_out_is_refused_and_not_repeated(problems, text: str, key: str) -> None:
    (line,) = problems(text.replace("KEY", key))
    assert "looks like a secret written out: keep it in the environment and write ${" in line
    assert key not in line


def test_known_shapes_are_refused_anywhere_but_in_prose(problems, load) -> None:
    (line,) = problems(f"servers: {{s: {{command: 'x --key {KEYS[0]}'}}}}\n" + AGENT % "")
    assert "servers.s.command" in line
    load(f"agents: [{{name: a, model: o3, prompt: 'Is {KEYS[0]} a key?'}}]")


@pytest.mark.parametrize("value", ["ollama", "none", "application/json", "text/html; q=0.9"])
def test_harmless_literals_are_let_through(load, value: str) -> None:
    load(AGENT % f", headers: {{Accept: '{value}'}}")


def test_a_password_in_a_header_of_that_name_is_refused(problems) -> None:
    (line,) = problems(AGENT % ", headers: {X-Api-Key: correct-horse-battery}")
    assert "write ${X_API_KEY} here" in line


def test_a_suite_holds_references_and_shows_no_value(load) -> None:
    text = "servers: {s: {url: 'http://x', headers: {Authorization: 'Bearer ${TOKEN}'}}}\n"
    suite = load(text + AGENT % ', api_key: "${KEY}"', env={"TOKEN": "t0p", "KEY": "s3cret"})
    server, system = suite.servers["s"], suite.pairings[0].system
    assert isinstance(server, HttpServer)
    assert isinstance(system, ModelSystem)
    assert server.headers["Authorization"].reveal() == "Bearer t0p"
    assert system.model.api_key is not None
    assert system.model.api_key.reveal() == "s3cret"
    shown = repr([suite, suite.pairings, suite.servers, system.model, server])
    assert "t0p" not in shown
    assert "s3cret" not in shown


def test_suites_with_different_keys_are_equal(load) -> None:
    text = AGENT % ', api_key: "${KEY}"'
    assert load(text, env={"KEY": "one"}).pairings == load(text, env={"KEY": "two"}).pairings


def test_a_missing_key_is_an_error_only_when_it_is_needed(load) -> None:
    suite = load(AGENT % ', api_key: "${KEY:?ask Ann for one}"')
    system = suite.pairings[0].system
    assert isinstance(system, ModelSystem)
    assert system.model.api_key is not None
    assert not system.model.api_key.is_set
    with pytest.raises(SuiteError, match="KEY is not set: ask Ann for one"):
        system.model.api_key.reveal()


def test_a_secret_survives_the_way_to_a_worker_process() -> None:
    secret = pickle.loads(pickle.dumps(Secret("${A}", "value")))
    assert secret.reveal() == "value"
