"""What an agent reaches through the gateway, and what that costs: with a model API on loopback."""

import json
import os
import re
import socketserver
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.runner.test_workspaces import SYSTEM_PYTHON, isolated

from passhat.errors import MachineError, PasshatError
from passhat.records import (
    Budget,
    CassetteSettings,
    CommandSystem,
    Expectation,
    Model,
    Outcome,
    Pairing,
    Prices,
    RateLimit,
    Step,
    Suite,
    Task,
    TokenUsage,
    Workspace,
)
from passhat.records.providers import CODING_AGENTS
from passhat.records.secrets import Secret
from passhat.runner import MemoryJournal, resources, run_trials
from passhat.runner import sandbox as sandboxes
from passhat.runner.cassettes import open_cassettes
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.runner.models.retrying import Throttle
from passhat.runner.preflight import absent_programs
from passhat.suite import load_suite
from passhat.testing import WireServer

PASSED, FAILED, ERRORED = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED
REAL_KEY = "sk-real-key-8f2d91c07ab34e65"
PRICES = Prices(input=1.0, output=10.0)

ASK = """\
import http.client, json, os, sys, urllib.error, urllib.request

def ask(path, body=None, base=os.environ["PASSHAT_GATEWAY"], key="passhat"):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    request = urllib.request.Request(base + path, data, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (http.client.HTTPException, OSError) as error:
        return 0, type(error).__name__

KEY = os.environ["OPENAI_API_KEY"]
"""

CHAT = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100}
ONCE = f"status, said = ask('/v1/chat/completions', {CHAT!r}, key=KEY)\nprint(status, said)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "calc").mkdir()
    (folder / "calc" / "calc.py").write_text("x = 1\n")
    return folder


def agent(name, script, server, *, env=None, **options):
    model = Model(
        name="gpt-5", base_url=server.url, prices=PRICES,
        api_key=Secret(value=REAL_KEY, reference="${REAL_KEY}"),
    )  # fmt: skip
    return CommandSystem(
        name=name, argv=(SYSTEM_PYTHON, "-c", ASK + script), model=model, timeout=100.0, **options
    )


IN_WORKSPACE = Task(name="ask", prompt="?", expect=(Expectation(matcher="contains", value="200"),))


def suite_of(folder, *systems, task=IN_WORKSPACE, runs=1, workspace=True, **options):
    given = replace(task, workspace=Workspace(source=folder / "calc")) if workspace else task
    pairings = tuple(Pairing(system=one, task=given, runs=runs, label=one.name) for one in systems)
    return Suite(name="s", pairings=pairings, directory=folder, concurrency=4, **options)


def run(suite, **options):
    """The result, and the trial and transcript of each system."""
    journal = options.pop("journal", None) or MemoryJournal()
    result = run_trials(suite, journal=journal, handle_signals=False, **options)
    said = {done.ticket.system: json.loads(done.transcript) for done in journal.finished()}
    return result, {trial.system: (trial, said[trial.system]) for trial in result.trials}


@isolated
def test_the_key_stays_outside_and_every_call_is_counted_and_priced(folder, monkeypatch):
    monkeypatch.setenv("REAL_KEY", REAL_KEY)
    look = "import subprocess\nprint(subprocess.getoutput('env; cat /proc/*/environ; ls -la /'))\n"
    with WireServer() as server:
        result, seen = run(suite_of(folder, agent("a", look + ONCE * 3, server), runs=2))
        keys = {asked.headers["authorization"] for asked in server.asked}
    trial, said = seen["a"]
    assert trial.outcome is PASSED
    assert keys == {f"Bearer {REAL_KEY}"}
    assert REAL_KEY not in json.dumps(said)
    assert "OPENAI_API_KEY=passhat" in said["answer"]
    # Each call takes 10 tokens in and 2 out, at $1 and $10 a million.
    assert (trial.tokens_in, trial.tokens_out) == (30, 6)
    assert trial.cost == pytest.approx(3 * (10 + 20) / 1e6)
    assert (result.calls, result.tokens) == (6, 72)
    assert result.cost == pytest.approx(6 * 30 / 1e6)
    assert said["gateway"][0]["said"] == ["3 calls of gpt-5: 30 tokens in, 6 out, $0.0001"]


def test_rate_limits_hold_for_the_calls_of_agents_too(folder, monkeypatch):
    """All calls of a provider share one throttle, which learns what each of them took."""
    made = []

    class Watched(Throttle):
        def __init__(self, limit, **options):
            super().__init__(limit, **options)
            self.limit, self.under_way, self.most, self.tokens = limit, 0, 0, []
            made.append(self)

        @asynccontextmanager
        async def turn(self):
            async with super().turn():
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                yield
                self.under_way -= 1

        def spent(self, tokens):
            self.tokens.append(tokens)
            super().spent(tokens)

    monkeypatch.setattr(resources, "Throttle", Watched)
    limit = RateLimit(concurrency=1)
    with WireServer() as server:
        systems = [agent(name, ONCE * 2, server) for name in "ab"]
        run(suite_of(folder, *systems, runs=2, workspace=False, rate_limits={"openai": limit}))
    (throttle,) = made
    assert (throttle.limit, throttle.most, throttle.tokens) == (limit, 1, [12] * 8)


USAGE = TokenUsage(tokens_in=107, tokens_out=7, cached_in=40)


def edit(asked):
    call = CallRequest(id="c1", name="edit", arguments={"path": "calc.py"})
    text = "a long answer " * 9
    return Reply(text=text, calls=(call,), stop_reason="tool_calls", usage=USAGE)


GEMINI = "/v1beta/models/gemini-x:"
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}
FORMS = {
    "messages": ("/v1/messages", {"model": "claude-x", "max_tokens": 9, "messages": []}),
    "chat": ("/v1/chat/completions", {"model": "gpt-x", "messages": []}),
    "responses": ("/v1/responses", {"model": "gpt-x", "input": []}),
    "gemini": (f"{GEMINI}generateContent", {"contents": []}),
    "messages streamed": ("/v1/messages?beta=true", {"model": "claude-x", "stream": True}),
    "chat streamed": ("/v1/chat/completions", {"model": "gpt-x", **COUNTED}),
    "responses streamed": ("/v1/responses", {"model": "gpt-x", "stream": True}),
    "gemini streamed": (f"{GEMINI}streamGenerateContent?alt=sse", {"contents": []}),
}


@isolated
def test_answers_pass_through_unchanged_whole_and_streamed_and_their_tokens_are_counted(folder):
    with WireServer(edit) as server:
        agents = [
            agent(name, f"print(ask({path!r}, {body!r}))", server)
            for name, (path, body) in FORMS.items()
        ]
        silent = ("/v1/chat/completions", {"model": "gpt-x", "stream": True})
        agents.append(agent("not asked for tokens", f"print(ask{silent!r})", server))
        _, seen = run(suite_of(folder, *agents))
        root = server.url.removesuffix("/v1")
        direct = [f"print(ask({path!r}, {body!r}, base={root!r}))" for path, body in FORMS.values()]
        done = subprocess.run(
            [SYSTEM_PYTHON, "-c", "\n".join([ASK, *direct])],
            env={**os.environ, "PASSHAT_GATEWAY": "", "OPENAI_API_KEY": ""},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    for name, printed in zip(FORMS, done.stdout.splitlines(), strict=True):
        assert seen[name][1]["messages"][-1]["text"].strip() == printed, name
    for name, (trial, said) in seen.items():
        assert trial.outcome is PASSED, (name, said)
        assert (trial.tokens_in, trial.tokens_out) == (107, 7), name
        assert trial.tools == ("edit",)
    # A stream of Chat Completions says its tokens only if asked: we ask, and keep that to us.
    heard = seen["not asked for tokens"][1]["messages"][-1]["text"]
    assert "[DONE]" in heard
    assert "usage" not in heard


@isolated
def test_max_cost_holds_for_a_command_that_never_stops_asking(folder):
    endless = "while True:\n    ask('/v1/chat/completions', " + repr(CHAT) + ")\n"
    with WireServer() as server:
        suite = suite_of(folder, agent("greedy", endless, server), runs=3)
        limit = 0.005
        result, seen = run(suite, budget=Budget(max_cost=limit))
        answered = server.answered
    assert result.ending == "budget"
    assert result.limit == "max_cost"
    assert result.cost <= limit
    assert result.cost == pytest.approx(answered * 30 / 1e6)
    assert answered > 3
    assert not seen, "a trial that was cut short by the run's budget can be resumed"


@isolated
def test_a_trial_that_uses_up_its_own_budget_fails_and_says_so(folder):
    endless = "while True:\n    ask('/v1/chat/completions', " + repr(CHAT) + ")\n"
    with WireServer() as server:
        suite = suite_of(folder, agent("greedy", endless, server))
        _, seen = run(replace(suite, trial_budget=Budget(max_tokens=60)))
        answered = server.answered
    trial, said = seen["greedy"]
    assert trial.outcome is FAILED
    assert said["checks"][0]["message"] == "stopped by its budget"
    assert answered in (5, 6)  # one more may be under way when the fifth is counted
    assert trial.tokens_in + trial.tokens_out == 12 * answered


@isolated
def test_what_costs_unseen_or_is_no_model_is_refused_and_named(folder):
    script = ONCE + (
        "for path in ('/v1/files', '/v1/messages/batches', '/v1/fine_tuning/jobs'):\n"
        "    print(ask(path, {})[0])\n"
        "print(ask('/v1/responses', {'model': 'gpt-5', 'input': 'x', 'background': True})[0])\n"
        "print(ask('/v1/models')[0], ask('/v1/chat/completions', [])[0])\n"
    )
    with WireServer() as server:
        _, seen = run(suite_of(folder, agent("curious", script, server)))
        forms = [asked.path for asked in server.asked]
    trial, said = seen["curious"]
    assert trial.outcome is PASSED
    assert said["answer"].split("\n")[1:6] == ["403", "403", "403", "403", "200 400"]
    assert forms == ["/v1/chat/completions"]
    assert "refused: POST /v1/messages/batches (1x)" in said["gateway"][0]["said"]


class _Hello(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


@pytest.fixture
def host():
    """The port of a web server on this machine."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@isolated
def test_a_sandbox_reaches_the_hosts_that_the_suite_names_and_no_others(folder, host):
    # Plain, and through CONNECT as TLS does; the host and a port beside it.
    reach = (
        f"curl -s --noproxy '' http://localhost:{host}/; "
        f"curl -s --noproxy '' -p http://localhost:{host}/; "
        f"curl -s -o /dev/null -w ' %{{http_code}}' --noproxy '' http://localhost:{host + 1}/; "
        "curl -s -o /dev/null -w ' %{http_code}' http://example.com/; "
        f"curl -s --noproxy '*' --max-time 5 http://127.0.0.1:{host}/ || echo ' closed'"
    )
    system = CommandSystem(name="surfer", argv=("sh", "-c", reach), timeout=100.0)
    setup = f'test "$(curl -s --noproxy "" http://localhost:{host}/)" = hello'
    task = replace(
        IN_WORKSPACE, setup=setup, expect=(Expectation(matcher="contains", value="hellohello"),)
    )
    suite = suite_of(folder, system, task=task)
    _, seen = run(replace(suite, network=(f"localhost:{host}",)))
    trial, said = seen["surfer"]
    assert trial.outcome is PASSED, said
    assert said["answer"].split() == ["hellohello", "403", "403", "closed"]
    refused = [text for text in said["gateway"][0]["said"] if "example.com:80" in text]
    assert refused == ["refused: host example.com:80, which is not in network: (1x)"]
    trial, said = run(suite)[1]["surfer"]
    assert trial.outcome is ERRORED, "setup has no network unless the suite names hosts"


@isolated
def test_a_cassette_records_a_coding_agent_and_replays_it_without_a_key(folder, tmp_path):
    script = ONCE + "open('calc.py', 'w').write(said)\n"
    with WireServer(edit) as server:
        live = suite_of(
            folder, agent("coder", script, server), runs=2,
            cassette=CassetteSettings(directory=tmp_path),
        )  # fmt: skip
        with open_cassettes(live, "record") as cassettes:
            before = run(live, cassettes=cassettes)[0].trials
    kept = (tmp_path / "coder.jsonl").read_text()
    assert '"kind":"wire"' in kept
    assert REAL_KEY not in kept
    pairings = tuple(
        replace(p, system=replace(p.system, model=Model(name="gpt-5", prices=PRICES)))
        for p in live.pairings
    )
    with open_cassettes(replace(live, pairings=pairings), "replay") as cassettes:
        result, seen = run(replace(live, pairings=pairings), cassettes=cassettes, environment={})
    rows = [(t.outcome, t.tokens_in, t.tokens_out, t.cost, t.tools) for t in result.trials]
    assert rows == [(t.outcome, t.tokens_in, t.tokens_out, t.cost, t.tools) for t in before]
    assert result.cost == 0.0, "a replay pays nothing"
    assert "a long answer" in seen["coder"][1]["workspace"]["diff"]


@isolated
def test_a_replay_that_is_asked_something_else_says_so(folder, tmp_path):
    with WireServer() as server:
        live = suite_of(
            folder, agent("a", ONCE, server), cassette=CassetteSettings(directory=tmp_path)
        )
        with open_cassettes(live, "record") as cassettes:
            run(live, cassettes=cassettes)
        other = suite_of(
            folder, agent("a", ONCE + ONCE, server), cassette=CassetteSettings(directory=tmp_path)
        )
        with (
            open_cassettes(other, "replay", allow_drift=True) as cassettes,
            pytest.raises(PasshatError, match="nothing is recorded of a call like this"),
        ):
            run(other, cassettes=cassettes)


def test_outside_a_sandbox_calls_are_counted_too_and_need_the_key_of_the_trial(folder):
    with WireServer() as server:
        wrong = "for key in ('wrong', 'falsch \u00fc'): print(ask('/v1/models', key=key)[0])\n"
        script = wrong + ONCE
        _, seen = run(suite_of(folder, agent("plain", script, server), workspace=False))
    trial, said = seen["plain"]
    assert trial.outcome is PASSED, said
    assert said["answer"].startswith("401\n401\n200")
    assert (trial.tokens_in, trial.tokens_out, trial.cost) == (10, 2, pytest.approx(30 / 1e6))


def test_a_model_that_never_answers_is_an_error_and_one_that_recovers_is_not(folder):
    once = ONCE.replace("\n", "\n    ")
    again = f"for _ in range(20):\n    {once}\n    if status == 200: break\n"
    with WireServer(troubles={"503": 1.0}) as server:
        never = run(suite_of(folder, agent("a", ONCE, server), workspace=False))[1]["a"]
    with WireServer(troubles={"503": 0.5, "cut": 0.2}, seed=3) as server:
        patient = run(suite_of(folder, agent("a", again, server), workspace=False))[1]["a"]
        troubled = sum(server.troubled.values())
    silent = CommandSystem(name="a", argv=("true",), model=Model(name="gpt-5", base_url=server.url))
    unasked = run(suite_of(folder, silent, workspace=False))[1]["a"]
    assert (never[0].outcome, never[0].error) == (
        ERRORED, "the model never answered: 503 from 127.0.0.1",
    )  # fmt: skip
    assert patient[0].outcome is PASSED
    assert troubled
    assert unasked[0].outcome is ERRORED
    assert unasked[0].error.startswith("it never asked its model")


@pytest.fixture
def killed_by_the_machine(monkeypatch):
    """Let the machine run out of memory at the end of the first starts; lists all starts."""
    really_run, starts = sandboxes.Sandbox.run, []

    def so_often(times):
        async def run_and_kill(self, argv, view, **given):
            starts.append(await really_run(self, argv, view, **given))
            if len(starts) <= times:
                raise MachineError("the machine ran out of memory and killed it")
            return starts[-1]

        monkeypatch.setattr(sandboxes.Sandbox, "run", run_and_kill)
        return starts

    return so_often


@isolated
@pytest.mark.parametrize("times", [1, 2], ids=["once", "always"])
def test_an_agent_that_the_machine_killed_is_begun_again_and_all_its_calls_are_counted(
    folder, killed_by_the_machine, times
):
    """Also where its model had answered it before."""
    starts = killed_by_the_machine(times)
    with WireServer() as server:
        result, seen = run(suite_of(folder, agent("a", ONCE * 3, server)))
        answered = server.answered
    trial, said = seen["a"]
    assert len(starts) == 2
    assert trial.outcome is (PASSED if times == 1 else ERRORED)
    assert said["workspace"]["stage"] == ("grader" if times == 1 else "agent")
    assert said["workspace"]["flags"][0].startswith("begun again: the machine ran out of memory")
    assert (trial.tokens_in, trial.tokens_out) == (60, 12)
    assert trial.cost == pytest.approx(6 * 30 / 1e6) == pytest.approx(result.cost)
    assert (result.calls, answered) == (6, 6)


@isolated
def test_a_trial_that_is_begun_again_has_one_budget_and_a_place_for_each_of_its_calls(
    folder, killed_by_the_machine
):
    killed_by_the_machine(1)
    journal = MemoryJournal()
    with WireServer() as server:
        suite = suite_of(folder, agent("a", ONCE * 3, server))
        _, seen = run(replace(suite, trial_budget=Budget(max_tokens=60)), journal=journal)
        answered = server.answered
    trial, said = seen["a"]
    assert trial.outcome is FAILED
    assert said["checks"][0]["message"] == "stopped by its budget"
    assert answered in (5, 6)
    assert journal.calls() == answered


def test_an_agent_that_runs_out_of_time_still_shows_what_it_spent(folder):
    with WireServer() as server:
        slow = agent("slow", ONCE + "import time; time.sleep(60)", server)
        _, seen = run(suite_of(folder, replace(slow, timeout=6.0), workspace=False))
    trial, said = seen["slow"]
    assert trial.outcome is FAILED
    assert said["stop_reason"] == "timeout"
    assert trial.tokens_in == 10


def test_what_an_interrupted_trial_spent_is_not_forgotten(folder):
    endless = "while True:\n    ask('/v1/chat/completions', " + repr(CHAT) + ", key=KEY)\n"
    journal = MemoryJournal()
    with WireServer() as server:
        suite = suite_of(folder, agent("a", endless, server), workspace=False)
        first = run(suite, journal=journal, budget=Budget(max_calls=4))[0]
        second = run(suite, journal=journal, budget=Budget(max_calls=9))[0]
        answered = server.answered
    assert (first.calls, second.calls, answered) == (4, 9, 9)
    assert second.cost == pytest.approx(9 * 30 / 1e6)


def test_a_task_with_steps_counts_the_calls_of_all_of_them(folder, tmp_path):
    steps = tuple(
        Step(name=name, prompt=name, expect=(Expectation(matcher="contains", value="200"),))
        for name in ("one", "two")
    )
    task = Task(name="ask", steps=steps)
    with WireServer() as server:
        suite = suite_of(
            folder, agent("a", ONCE, server), task=task, workspace=False,
            cassette=CassetteSettings(directory=tmp_path),
        )  # fmt: skip
        with open_cassettes(suite, "record") as cassettes:
            live, seen = run(suite, cassettes=cassettes)
        with open_cassettes(suite, "replay") as cassettes:
            replayed = run(suite, cassettes=cassettes)[0]
    assert (live.calls, live.trials[0].tokens_in, len(seen["a"][1]["gateway"])) == (2, 20, 2)
    assert (replayed.calls, replayed.trials[0].tokens_in) == (0, 20)


PRETENDER = """\
#!/bin/sh
echo "arguments: $*"
echo "asked: $(cat)"
env
find "$HOME" -type f -exec cat {} +
curl -s -o /dev/null -w 'status: %{http_code}' "$PASSHAT_GATEWAY/v1/chat/completions" \\
  -d '{"model": "m", "messages": [], "max_tokens": 5}'
"""


@isolated
def test_a_coding_agent_by_name_is_started_with_its_model_its_prompt_and_no_key(
    folder, tmp_path, monkeypatch
):
    tmp_path.chmod(0o755)  # the sandbox's user is not the one who installed them
    for preset in CODING_AGENTS.values():
        (tmp_path / preset.program).write_text(PRETENDER)
        (tmp_path / preset.program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", REAL_KEY)
    with WireServer() as server:
        path = folder / "named.yml"
        path.write_text(
            "systems:\n"
            + "".join(
                f"  - {{name: {name}, agent: {name}, model: openrouter/vendor/big-1, "
                f"base_url: '{server.url}', api_key: '${{OPENAI_API_KEY}}'}}\n"
                for name in CODING_AGENTS
            )
            + "tasks: [{name: t, prompt: '-x MEND', workspace: calc, expect: [{contains: status}]}]"
        )
        _, seen = run(load_suite(path))
    for name, (trial, said) in seen.items():
        assert trial.outcome is PASSED, (name, said)
        printed = said.get("answer") or said["messages"][-1]["text"]
        assert "vendor/big-1" in printed, "the name that the provider knows"
        assert "openrouter" not in printed
        assert "-x MEND" in printed
        assert REAL_KEY not in json.dumps(said)
        assert not re.search(r"\{(model|url|key|prompt)\}", printed), name
        assert "http://127.0.0.1:8731" in printed
        assert "status: 200" in printed
    assert "gemini-api-key" in json.dumps(seen["gemini"][1])


def test_a_coding_agent_that_is_not_installed_says_how_to_install_it(folder, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = folder / "absent.yml"
    path.write_text(
        "systems: [{name: a, agent: claude-code, model: claude-sonnet-4-5}]\n"
        "tasks: [{name: t, prompt: x, workspace: calc}]\n"
    )
    (absent,) = absent_programs(load_suite(path))
    assert absent.reason == (
        'there is no program "claude": npm install -g @anthropic-ai/claude-code'
    )


SUITE = """\
systems:
  - {name: a, command: [my-agent], model: gpt-5, base_url: "http://127.0.0.1:9/v1"%s}
tasks: [{name: t, prompt: "?", workspace: calc}]
%s
"""


@pytest.mark.parametrize(
    ("system", "suite", "message"),
    [
        ("", "network: ['*']", "is not a host such as example.org"),
        (
            "",
            "network: ['http://example.org/']",
            "is not a host such as example.org",
        ),
        (", temperature: 0.5", "", "temperature has no meaning with command"),
        (", env: [ANTHROPIC_API_KEY]", "", "the key ANTHROPIC_API_KEY would be in the sandbox"),
    ],
)
def test_a_suite_that_opens_too_much_is_refused(folder, system, suite, message, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", REAL_KEY)
    path = folder / "suite.yml"
    path.write_text(SUITE % (system, suite))
    with pytest.raises(PasshatError, match=message):
        load_suite(path)


def test_a_suite_names_the_model_of_a_command_and_the_hosts_of_its_sandbox(folder):
    path = folder / "good.yml"
    path.write_text(SUITE % ("", "network: [example.org, '*.example.com:8443']"))
    suite = load_suite(path)
    assert suite.network == ("example.org", "*.example.com:8443")
    assert [model.name for model in suite.models] == ["gpt-5"]
    path.write_text(SUITE.replace("gpt-5", "local/smollm2") % ("", ""))
    with pytest.raises(PasshatError, match="smollm2 is no service that a command could ask"):
        load_suite(path)


def test_gateways_load_only_where_a_program_has_a_model():
    code = (
        "import sys, passhat.runner.attempt; "
        "print([m for m in sys.modules if m.endswith(('gateway', 'httpx2'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
