"""Recording and replaying from the command line: the same suite with no key and no bill."""

import json
from pathlib import Path

import pytest

from passhat.testing import WireServer

SUITE = """\
name: recorded
defaults: {runs: 10}
agents:
  - name: coin
    model: scripted
    prompt: Heads or tails?
    expect: [{contains: heads}]
    script: [{answer: heads, weight: 2}, {answer: tails}]
gates: ["pass@1 >= 0.2"]
"""
KEYED = SUITE.replace("model: scripted", "model: gpt-5").partition("    script")[0]


@pytest.fixture
def recorded(suite, call):
    suite(SUITE)
    done = call("run", "--record", "--json", "-q")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_replay_is_the_recorded_run_again(recorded, call):
    first, second = (call("run", "--replay", "--json", "-q") for _ in range(2))
    assert first.exit_code == 0, first.stderr
    assert first.stdout == second.stdout
    again = json.loads(first.stdout)
    for part in ("task_table", "metrics"):
        assert again["report"]["systems"][0][part] == recorded["report"]["systems"][0][part]
    assert again["verdicts"] == recorded["verdicts"]
    assert 0 < again["report"]["systems"][0]["task_table"][0]["passed"] < 10


def test_the_mode_is_printed(recorded, call):
    assert "; replay; run " in call("run", "--replay").stderr
    assert "; live; run " in call("run", "--live").stderr


def test_other_expectations_and_gates_replay_without_recording_again(recorded, suite, call):
    suite(SUITE.replace("contains: heads", "contains: tails").replace("0.2", "0.99"))
    done = call("run", "--replay")
    assert done.exit_code == 1, done.stderr


def test_a_changed_prompt_is_refused_with_the_difference(recorded, suite, call):
    suite(SUITE.replace("Heads or tails?", "Tails or heads?"))
    done = call("run", "--replay")
    assert done.exit_code == 2
    assert "prompt was 'Heads or tails?', is 'Tails or heads?'" in done.stderr
    assert "--record=drifted" in done.stderr
    assert call("run", "--replay", "--allow-drift").exit_code == 0
    assert call("run", "--record=drifted").exit_code == 0
    assert call("run", "--replay").exit_code == 0


def test_more_runs_than_recorded_say_how_to_append(recorded, call):
    done = call("run", "--replay", "--runs", "12")
    assert done.exit_code == 2
    assert "12 trials are asked for, 10 are recorded" in done.stderr
    assert "--append" in done.stderr
    assert call("run", "--append", "--runs", "12").exit_code == 0
    assert call("run", "--replay", "--runs", "12").exit_code == 0


def test_a_second_recording_does_not_overwrite_the_first(recorded, call):
    done = call("run", "--record")
    assert done.exit_code == 2
    assert "--record=all" in done.stderr
    assert call("run", "--record=all").exit_code == 0


def test_recorded_with_zstd_it_replays_too(suite, call, here):
    suite(SUITE)
    assert call("run", "--record", "--compress").exit_code == 0
    assert [path.suffix for path in (here / "cassettes").iterdir()] == [".zst"]
    assert call("run", "--replay").exit_code == 0


def test_modes_exclude_each_other(suite, call):
    suite(SUITE)
    done = call("run", "--record", "--replay")
    assert done.exit_code == 2
    assert "--record and --replay cannot be used together" in done.stderr


@pytest.fixture
def keyed(here, suite, call, monkeypatch):
    """A cassette of a model that needs a key, recorded from a server on this machine."""
    suite(KEYED)
    with WireServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        done = call("run", "--record")
    assert done.exit_code in (0, 1), done.output
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")


def test_without_a_key_a_cassette_is_replayed_and_the_reason_is_printed(keyed, call):
    done = call("run")
    assert done.exit_code in (0, 1), done.output
    assert "replay (no key is set for gpt-5)" in done.stderr


def test_a_model_known_by_an_address_of_the_environment_replays_without_it(
    here, suite, call, monkeypatch
):
    suite(KEYED.replace("gpt-5", "my-llm"))
    with WireServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert call("run", "--record").exit_code in (0, 1)
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    for words in (
        ("run", "--replay"),
        ("list",),
        ("cassette", "list"),
        ("run", "--dry-run", "--replay"),
    ):
        done = call(*words)
        assert done.exit_code in (0, 1), (words, done.output)
    for words in (("run", "--live"), ("validate",), ("run", "--dry-run", "--live")):
        done = call(*words)
        assert done.exit_code == 2, (words, done.output)
        assert "my-llm" in done.output + done.stderr


def test_live_is_refused_without_a_key_and_says_what_to_set(keyed, call):
    done = call("run", "--live")
    assert done.exit_code in (2, 3)
    assert "OPENAI_API_KEY" in done.output


def test_no_secret_reaches_the_cassette(keyed, here):
    (path,) = (here / "cassettes").iterdir()
    assert "sk-not-a-real-key" not in path.read_text()


def test_cassettes_come_first_unless_a_live_run_is_asked_for(recorded, call):
    done = call("run")
    assert "replay (there are cassettes; --live calls the models)" in done.stderr
    assert "; live; run " in call("run", "--live").stderr


def test_list_show_verify_and_prune(recorded, suite, call, here: Path):
    assert call("cassette", "list").stdout == "cassettes/scripted.jsonl  scripted: coin x10\n"
    (entry,) = json.loads(call("cassette", "list", "--json").stdout)
    assert entry["runs"] == {"coin": 10}
    shown = call("cassette", "show", "cassettes/scripted.jsonl", "--trial", "3").stdout
    assert shown.startswith("coin #3\n  user       Heads or tails?\n  assistant  ")
    assert call("cassette", "verify").exit_code == 0
    suite(SUITE.replace("runs: 10", "runs: 4"))
    assert "would drop" in call("cassette", "prune", "--dry-run").stdout
    assert call("cassette", "prune").stdout == "dropped cassettes/scripted.jsonl: 6 trials\n"
    assert call("cassette", "list").stdout == "cassettes/scripted.jsonl  scripted: coin x4\n"
    path = here / "cassettes" / "scripted.jsonl"
    path.write_text(path.read_text().replace("heads", "tails"))
    done = call("cassette", "verify")
    assert done.exit_code == 2
    assert "changed by hand" in done.stdout


def test_a_cassette_with_a_long_name_is_listed_on_two_lines_and_so_is_a_torn_one(
    recorded, call, here
):
    path = here / "cassettes" / "scripted.jsonl"
    whole = path.read_text().splitlines()
    for lines, told in ((whole, "scripted: 1 task x 10 trials"), (whole[:1], "unreadable: ")):
        long = path.with_name(f"{'a-' * 50}.jsonl")
        long.write_text("\n".join(lines) + "\n")
        done = call("cassette", "list", str(long.relative_to(here)))
        assert done.exit_code == 0, done.output
        name, said = done.stdout.splitlines()
        assert name == str(long.relative_to(here))
        assert said.startswith(f"  {told}")


def test_a_cassette_of_a_system_that_is_gone_is_pruned(recorded, suite, call, here):
    suite(SUITE.replace("model: scripted", "model: local/other.gguf").partition("    script")[0])
    assert "the suite has no agent 'scripted'" in call("cassette", "prune").stdout
    assert list((here / "cassettes").iterdir()) == []
