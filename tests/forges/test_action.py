"""The composite action, its own steps run for real; those of others are not ours to run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.forges.forge_server import forge_server

ACTION = YAML(typ="safe").load((Path(__file__).parents[2] / "action.yml").read_text("utf-8"))
STEPS = ACTION["runs"]["steps"]
SUITE = """\
name: smoke
systems: [{name: agent, command: [echo, hello]}]
tasks: [{name: works, prompt: hi, runs: 6, expect: [{contains: %s}]}]
gates: ["pass^1 >= 0.6"]
"""


def run_steps(folder: Path, forge, **inputs: str) -> int:
    """Our shell steps in order, with the inputs put in as the runner does it."""
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "abc"}}}))
    values = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    values["token"] = "t"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "octo/agent",
        "GITHUB_API_URL": forge.url,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    for step in STEPS:
        if "run" not in step or "pip install" in step["run"]:
            continue
        named = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: values[m[1]], text)
            for name, text in step["env"].items()
        }
        words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, cwd=folder, env=environment | named, timeout=120, check=False)
        if done.returncode:
            return done.returncode
    return 0


@pytest.fixture
def forge():
    with forge_server() as running:
        yield running


def test_a_pull_request_gets_its_comment_check_page_and_junit(tmp_path, forge):
    (tmp_path / "passhat.yml").write_text(SUITE % "hello")
    code = run_steps(tmp_path, forge)
    assert code in (0, 4)
    assert len(forge.comments) == 1
    assert len(forge.checks) == 1
    for name in ("passhat-results.xml", "passhat-report.html", "summary.md"):
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.slow("runs the whole job four times")
def test_an_agent_that_fails_turns_the_job_red_unless_it_is_informational(tmp_path, forge):
    (tmp_path / "passhat.yml").write_text(SUITE % "never")
    assert run_steps(tmp_path, forge) == 1
    assert run_steps(tmp_path, forge, informational="true", arguments="--runs 3") == 0
    assert [check["conclusion"] for check in forge.checks] == ["failure", "neutral"]


def test_every_action_of_others_is_pinned_to_a_commit_and_no_input_stands_in_a_script():
    for step in STEPS:
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40}", step["uses"])
        else:
            assert "${{" not in step["run"]
