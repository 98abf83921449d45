"""What agents and models are given: the environment that the docs state, and pictures."""

import json

import pytest

from passhat.records import CommandSystem, Outcome, Secret
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.processes import INHERITED
from passhat.suite import check_suite, load_suite
from passhat.testing import WireServer

SUITE = """\
name: pictures
systems: [{{name: chat, model: m, base_url: "{url}", wire: openai-chat}}]
tasks: [{{name: see, prompt: What is this?, images: [icon.png], expect: [{{exists: true}}]}}]
"""


@pytest.mark.parametrize("everything", [False, True])
def test_a_command_sees_what_the_docs_state_and_no_more(suite_of, monkeypatch, everything):
    monkeypatch.setenv("OPENAI_API_KEY", "do-not-tell")
    monkeypatch.setenv("UNRELATED", "1")
    env = {"SHOWN": Secret("${SHOWN}", "yes")}
    system = CommandSystem(name="a", argv=("env",), env=env, inherit_env=everything)
    journal = MemoryJournal()
    (trial,) = run_trials(suite_of(system), journal=journal).trials
    assert trial.outcome is Outcome.PASSED
    said = json.loads(journal.finished()[0].transcript)["answer"]
    seen = {line.partition("=")[0] for line in said.splitlines()}
    assert "SHOWN" in seen
    assert ("UNRELATED" in seen) is everything
    if not everything:
        own = {name for name in seen if name.startswith("PASSHAT_")}
        assert seen - own <= {*INHERITED, "SHOWN"}
    assert "do-not-tell" not in said


def test_the_pictures_of_a_task_reach_the_model(tmp_path):
    (tmp_path / "icon.png").write_bytes(b"icon")
    with WireServer() as server:
        path = tmp_path / "suite.yml"
        path.write_text(SUITE.format(url=server.url))
        (trial,) = run_trials(load_suite(path), environment={}).trials
        assert trial.error is None
        text, image = server.asked[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert image["image_url"]["url"] == "data:image/png;base64,aWNvbg=="


def test_a_picture_that_is_not_there_is_a_problem_of_the_suite(tmp_path):
    path = tmp_path / "suite.yml"
    path.write_text(SUITE.format(url="http://127.0.0.1:9"))
    suite, problems = check_suite(path)
    assert suite is None
    assert "there is no file" in problems[0].message
    assert "icon.png" in problems[0].message
