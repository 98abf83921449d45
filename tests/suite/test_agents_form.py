"""The form that users of other tools know runs as it stands."""

from pathlib import Path

import pytest

from passhat.records import HttpServer, ModelSystem, StdioServer

AGENTS = """
# yaml-language-server: $schema=./suite.schema.json
servers:
  weather:
    command: ["./weather.sh", "--fast"]
budget:
  per_test_usd_cents: 50
  per_suite_usd_cents: 500
agents:
  - name: weather selection
    model: claude-sonnet-4-5
    servers: [weather]
    prompt: What is the weather in Sacramento?
    system: Be brief.
    runs: 10
    max_turns: 3
    timeout: 30s
    expect:
      - target: tool_calls[0].name
        matcher: { exact: get_weather }
      - target: tool_calls[0].args.city
        matcher: { icontains: sacramento }
      - target: conversation.tokens.total
        matcher: { regex: "^[0-9]+$" }
        message: no tokens were counted
    tool_selection:
      expected_tool: get_weather
      min_selection_rate: 0.9
      max_total_tokens: 2000
"""


def test_an_agent_is_a_task_with_its_own_system(load) -> None:
    suite = load(AGENTS)
    (pairing,) = suite.pairings
    system, task = pairing.system, pairing.task
    assert isinstance(system, ModelSystem)
    assert (system.name, system.model.name, system.servers) == (
        "claude-sonnet-4-5",
        "claude-sonnet-4-5",
        ("weather",),
    )
    assert (system.system_prompt, system.max_turns, system.timeout) == ("Be brief.", 3, 30.0)
    assert task.tool_selection is not None
    assert task.tool_selection.min_selection_rate == 0.9
    assert [(e.target, e.matcher, e.value) for e in task.expect] == [
        ("tool_calls[0].name", "exact", "get_weather"),
        ("tool_calls[0].args.city", "icontains", "sacramento"),
        ("conversation.tokens.total", "regex", "^[0-9]+$"),
    ]
    assert task.expect[2].message == "no tokens were counted"
    assert (suite.budget.max_cost, suite.trial_budget.max_cost) == (5.0, 0.5)


def test_rows_are_named_after_the_agent_and_the_run(load) -> None:
    (pairing,) = load(AGENTS).pairings
    assert [pairing.row(trial) for trial in (0, 2, 9)] == [
        "weather selection #1",
        "weather selection #3",
        "weather selection #10",
    ]


def test_a_model_matrix_names_the_model_in_the_row(load) -> None:
    text = AGENTS.replace("model: claude-sonnet-4-5", "models: [claude-sonnet-4-5, gpt-5]")
    suite = load(text)
    assert [pairing.row(2) for pairing in suite.pairings] == [
        "weather selection [claude-sonnet-4-5] #3",
        "weather selection [gpt-5] #3",
    ]
    assert suite.systems == ("claude-sonnet-4-5", "gpt-5")
    assert [task.name for task in suite.tasks] == ["weather selection"]
    assert suite.trials == 20


@pytest.mark.parametrize(("written", "runs"), [("", 1), ("runs: 0", 1), ("runs: 4", 4)])
def test_runs_default_to_one_and_zero_becomes_one(load, written: str, runs: int) -> None:
    suite = load(f"agents:\n  - name: a\n    model: o3\n    prompt: hi\n    {written}\n")
    assert suite.pairings[0].runs == runs


def test_a_lone_run_has_no_number(load) -> None:
    suite = load("agents: [{name: a, model: o3, prompt: hi}]")
    assert suite.pairings[0].row(0) == "a"


def test_a_server_is_a_process_beside_the_suite_or_an_address(load, tmp_path: Path) -> None:
    suite = load(
        """
servers:
  local: {command: "{python} -m server --port 1", env: [HOME, NOT_SET], cwd: sub, shared: true}
  spread: {command: [npx], args: ["-y", "pkg"], env: {MODE: test, KEY: "${KEY}"}}
  hosted:
    url: https://example.org/mcp
    auth: {bearer_token_env: CRM_TOKEN}
    headers: {X-Tenant: {env: TENANT}}
agents: [{name: a, model: o3, prompt: hi, servers: local}]
""",
        env={"HOME": "/home/me", "KEY": "k"},
    )
    local, spread, hosted = (suite.servers[name] for name in ("local", "spread", "hosted"))
    assert isinstance(local, StdioServer)
    assert local.argv[1:] == ("-m", "server", "--port", "1")
    assert Path(local.argv[0]).is_file()
    assert (local.cwd, local.shared) == (tmp_path / "sub", True)
    assert {name: secret.reveal() for name, secret in local.env.items()} == {"HOME": "/home/me"}
    assert isinstance(spread, StdioServer)
    assert spread.argv == ("npx", "-y", "pkg")
    assert {name: secret.reveal() for name, secret in spread.env.items()} == {
        "MODE": "test",
        "KEY": "k",
    }
    assert isinstance(hosted, HttpServer)
    assert {name: secret.reference for name, secret in hosted.headers.items()} == {
        "X-Tenant": "${TENANT}",
        "Authorization": "Bearer ${CRM_TOKEN}",
    }


def test_an_agent_whose_name_reads_like_another_on_its_model_is_no_repeat(load) -> None:
    first, second = "{name: a on o3, prompt: hi}", "{name: a, model: o3, prompt: hi}"
    suite = load(f"defaults: {{model: gpt-5}}\nagents: [{first}, {second}]")
    assert [pairing.task.name for pairing in suite.pairings] == ["a on o3", "a"]
