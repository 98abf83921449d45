"""The CI jobs that `passhat init --ci` writes, run as their systems run them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from passhat.suite.yaml_tree import read_tree

FILES = {"github": ".github/workflows/passhat.yml", "gitlab": ".gitlab-ci.yml"}
VARIABLES = {
    "github": {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "you/agent",
        "GITHUB_STEP_SUMMARY": "step.md",
    },
    "gitlab": {
        "GITLAB_CI": "true",
        "CI_PROJECT_ID": "1",
        "CI_API_V4_URL": "http://127.0.0.1:9/api/v4",
    },
}
"""What each system says to its jobs; without a token and a change nothing is posted."""
GATES = [
    ("pass@1 >= 0.5", 0),
    pytest.param("pass@1 >= 0.99", 1, marks=pytest.mark.slow("the whole job once more")),
    pytest.param("pass@1 >= 0.73", 4, marks=pytest.mark.slow("the whole job once more")),
]
SUITE = """\
gates: ["{gate}"]
agents:
  - name: shaky
    model: scripted
    runs: 100
    prompt: What is 2 + 2?
    expect: [{{contains: "4"}}]
    script: [{{answer: "4", weight: 3}}, {{answer: "5"}}]
"""
"""No server: the suite of `init` is run with its own in test_run_a_suite.py."""


class Job:
    """A job in a checkout: its steps, what it publishes, and how it ended."""

    def __init__(self, directory: Path, ci: str) -> None:
        text = (directory / FILES[ci]).read_text()
        tree = read_tree(text, env={}, keeps_references=lambda path: True)
        assert not tree.problems
        self.variables = VARIABLES[ci]
        self.tools: Path | None = None
        self.directory, self.told, self.code = directory, tree.value, 0

    def bash(self, script: str) -> None:
        """A step, in the shell that both systems use; the first failure is the job's code."""
        if script.startswith("pip install"):
            assert script == 'pip install "passhat[run]"'  # what is here is what it would install
            return
        places = [*filter(None, [self.tools]), Path(sys.executable).parent, os.environ["PATH"]]
        bin_first = os.pathsep.join(map(str, places))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=self.directory,
            env={**os.environ, **self.variables, "CI": "true", "PATH": bin_first},
            timeout=120,
            check=False,
        )
        self.code = self.code or done.returncode


def run_github(job: Job) -> list[str]:
    """The artifacts of the job; after a failure only steps that say so are run."""
    published: list[str] = []
    for step in job.told["jobs"]["reliability"]["steps"]:
        if job.code and step.get("if") != "always()":
            continue
        if "run" in step:
            job.bash(step["run"])
        elif "upload-artifact" in step["uses"]:
            published += step["with"]["path"].split()
    return published


def run_gitlab(job: Job) -> list[str]:
    told = job.told["passhat"]
    for line in told["script"]:
        if not job.code:
            job.bash(line)
    artifacts = told["artifacts"]
    kept = not job.code or artifacts.get("when") == "always"
    return [*artifacts["paths"], artifacts["reports"]["junit"]] if kept else []


@pytest.mark.slow("every command of a job; test_action runs that of a pull request")
@pytest.mark.parametrize(("gate", "code"), GATES)
@pytest.mark.parametrize(
    ("ci", "run"),
    [
        ("github", run_github),
        pytest.param("gitlab", run_gitlab, marks=pytest.mark.slow("the same commands in a job")),
    ],
)
def test_a_job_publishes_everything_and_ends_as_its_gate_does(shell, ci, run, gate, code):
    assert shell("init", "--ci", ci).returncode == 0
    shell.write("passhat.yml", SUITE.format(gate=gate))
    job = Job(shell.directory, ci)
    published = run(job)
    assert job.code == code
    assert {"results.xml", "report.html", ".passhat/history.db"} <= set(published)
    assert all((shell.directory / name).stat().st_size for name in published)
    root = ET.parse(shell.directory / "results.xml").getroot()
    assert bool(root.findall(".//failure")) is (code == 1)
    assert "<!doctype html>" in (shell.directory / "report.html").read_text().lower()
    if ci == "github":
        assert gate.replace(">", "&gt;") in (shell.directory / "step.md").read_text()


def test_the_github_job_pins_its_actions_and_may_write_what_it_writes(shell):
    assert shell("init", "--ci", "github").returncode == 0
    told = Job(shell.directory, "github").told
    assert told["permissions"] == {
        "contents": "read",
        "pull-requests": "write",
        "checks": "write",
    }
    used = [step["uses"] for step in told["jobs"]["reliability"]["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", name) for name in used)


@pytest.mark.slow("the whole job once more")
@pytest.mark.parametrize(("ci", "run"), [("github", run_github), ("gitlab", run_gitlab)])
def test_a_job_installs_the_project_whose_agent_it_runs(shell, ci, run):
    assert shell("init", "--ci", ci).returncode == 0
    shell.write("passhat.yml", SUITE.format(gate="pass@1 >= 0.5"))
    shell.write("pyproject.toml", "[project]\nname = 'agent'\nversion = '1'\n")
    shell.write("bin/pip", '#!/bin/sh\necho "$@" >> installed.txt\n')
    (shell.directory / "bin" / "pip").chmod(0o755)
    job = Job(shell.directory, ci)
    job.tools = shell.directory / "bin"
    run(job)
    assert (shell.directory / "installed.txt").read_text() == "install -e .\n"


@pytest.mark.slow("runs a whole job in each of two forges")
@pytest.mark.parametrize(("ci", "run"), [("github", run_github), ("gitlab", run_gitlab)])
def test_a_job_whose_suite_is_wrong_fails_without_hiding_it(shell, ci, run):
    assert shell("init", "--ci", ci).returncode == 0
    shell.write("passhat.yml", "agents: [{name: a, model: scripted, pompt: hi}]\n")
    job = Job(shell.directory, ci)
    run(job)
    assert job.code == 2
