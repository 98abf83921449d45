"""A task that expects something else than before is another task: no agent is blamed for it."""

from pathlib import Path

import pytest

SUITE = """
name: edited
systems: [{{name: bot, python: "bot:answer"}}]
defaults: {{runs: 6}}
tasks:
  - {{name: a, prompt: "{prompt}", expect: [{{contains: {a}}}]}}
  - {{name: b, prompt: y, expect: [{{contains: {b}}}]}}
"""


@pytest.fixture
def run(call, here):
    Path("bot.py").write_text("def answer(prompt): return 'hello world'\n")

    def once(*options, a="hello", b="world", prompt="x"):
        Path("passhat.yml").write_text(SUITE.format(a=a, b=b, prompt=prompt))
        return call("run", *options)

    return once


def test_a_task_that_expects_something_else_is_left_out_of_every_comparison(run, call):
    run()
    assert "points lower" not in run(a="goodbye").stdout
    for words in (
        ["gate", "latest", "--against", "latest~1", "--margin", "0.9"],
        ["compare", "latest", "latest~1"],
    ):
        done = call(*words)
        assert "left out, as what is expected was changed since run " in done.stderr
        assert done.stderr.rstrip().endswith(": a")
        assert done.exit_code == 0, done.stdout
    for words in (["trend"], ["trend", "--tasks"]):
        done = call(*words)
        assert "fell" not in done.stdout
        assert done.stderr.splitlines() == [
            "left out of 1 earlier run, as what is expected was changed since: a"
        ]
    assert "points higher" not in run().stdout


def test_where_every_task_expects_something_else_nothing_is_compared(run, call):
    run()
    run(a="goodbye", b="goodbye")
    for words in (
        ["gate", "latest", "--against", "latest~1", "--margin", "0.05"],
        ["compare", "latest", "latest~1"],
    ):
        done = call(*words)
        assert done.exit_code == 2
        assert "what every task expects was changed since run " in done.stderr
    assert "fell" not in call("trend").stdout


def test_another_prompt_is_the_same_task_and_a_gate_of_the_run_leaves_out_what_changed(run, call):
    run()
    run(prompt="other words")
    assert "left out" not in call("compare", "latest", "latest~1").stderr
    call("history", "tag", "latest", "good")
    gated = run("--require", "no_task_worse_than good", a="goodbye")
    assert gated.stdout.startswith("PASS"), gated.output
