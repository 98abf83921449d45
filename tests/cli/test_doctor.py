"""`passhat doctor`: one line for everything a run needs."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from passhat.journeys.checks import EXTRAS

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
WEATHER_SERVER = Path(__file__).parents[1] / "weather_server.py"
FOR_DEVELOPERS = {"all", "bench", "dev", "docs"}

SUITE = """\
name: sick
servers:
  good: {{command: ["{python}", '{server}']}}
  bad: {{command: [./no-such-server]}}
agents:
  - {{name: a, model: scripted, prompt: hi, servers: [good], script: [{{answer: x}}]}}
  - {{name: b, model: gpt-5, prompt: hi, servers: [bad]}}
systems:
  - {{name: shell, command: [sh, -c, "true"]}}
  - {{name: gone, command: [no-such-program]}}
  - {{name: function, python: "json:no_such_function"}}
tasks: [{{name: c, prompt: hi}}]
"""


def test_every_part_gets_a_line_and_problems_say_what_to_do(suite, call):
    suite(SUITE.format(python=sys.executable, server=WEATHER_SERVER))
    done = call("doctor")
    assert done.exit_code == 2, "the suite names what is not here"
    lines = done.stdout.splitlines()

    def line(start):
        return next(text for text in lines if text[9:].startswith(start))

    assert line("suite.yml").startswith("ok")
    assert line("model scripted").startswith("ok")
    assert "OPENAI_API_KEY" in line("model gpt-5")
    assert line("model gpt-5").startswith("problem")
    assert "get_weather, get_time, send_email" in line("server good")
    assert line("server bad").startswith("problem")
    assert line("agent shell").startswith("ok")
    assert line("agent gone").startswith("problem")
    assert line("agent function").startswith("problem")
    assert done.stderr == "4 problems\n`doctor` is now `check`\n"


def test_a_suite_that_can_run_is_ready(suite, call):
    suite("agents: [{name: a, model: scripted, prompt: hi, script: [{answer: x}]}]\n")
    done = call("doctor", "--ask")
    assert done.exit_code == 0, done.output
    assert "answered 'x'" in done.stdout
    assert done.stderr == "ready\n`doctor` is now `check`\n"


def test_a_suite_that_is_wrong_is_a_problem_of_its_own(suite, call):
    suite("agents: []\n")
    done = call("doctor")
    assert done.exit_code == call("validate").exit_code == 2
    assert "problem  suite" in done.stdout


GRADED = """\
systems: [{{name: shell, command: [sh, -c, "true"]}}]
tasks:
  - {{name: one, prompt: hi, expect: [{{command: {first}}}, {{command: [./mine.sh]}}]}}
  - {{name: two, prompt: hi, expect: [{{command: {first}}}]}}
"""


def test_a_program_that_grades_and_is_not_here_is_found_before_a_run(suite, call):
    for first, problem in (
        ("[no-such-grader, --quiet]", 'command of one: there is no program "no-such-grader": '),
        ('["{python}", -m, no_such_module]', "has no no_such_module: install it there"),
        ('["{python}", -m, json.tool]', None),
        ("[sh, -c, exit]", None),
    ):
        suite(GRADED.format(first=first))
        done = call("check")
        graders = [line for line in done.stdout.splitlines() if line[9:].startswith("graders")]
        problems = [line for line in graders if line.startswith("problem")]
        assert len(problems) == (problem is not None), done.output
        assert problem is None or problem in problems[0]
        assert (done.exit_code == 0) is (problem is None)


def test_what_the_machine_lacks_is_no_fault_of_the_suite(suite, call):
    suite("agents: [{name: b, model: gpt-5, prompt: hi}]\n")
    assert call("doctor").exit_code == 1


@pytest.mark.slow("starts every server of a suite")
def test_what_a_replay_does_not_need_is_a_note_and_no_problem(call, here, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "empty"))  # no weights of the local model
    assert call("init", "-q").exit_code == 0
    done = call("doctor")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert any(line.startswith("ok       cassettes: replayed, no key needed") for line in lines)
    (told,) = [line for line in lines if line.startswith("note")]
    assert told.startswith("note     model local/smollm2: only a live run needs it; ")
    assert done.stderr == "ready\n`doctor` is now `check`\n"
    assert call("doctor", "--ask").exit_code == 1, "to ask, it must be here"


def test_of_a_replay_with_real_servers_the_servers_are_needed(call, here):
    (here / "cassettes").mkdir()
    (here / "cassettes" / "gpt-5.jsonl").touch()
    suite = """\
servers: {{bad: {{command: [./no-such-server]}}}}
agents: [{{name: b, model: gpt-5, prompt: hi, servers: [bad]}}]
cassette: {{mode: replay, servers: {servers}}}
"""
    for servers, code in (("recorded", 0), ("live", 2)):
        (here / "passhat.yml").write_text(suite.format(servers=servers))
        assert call("doctor").exit_code == code


def test_every_extra_is_looked_for_by_all_its_packages():
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    packages = {
        extra: [re.split(r"[^\w-]", need)[0].replace("-", "_") for need in needs]
        for extra, needs in extras.items()
    }
    assert {extra: [*modules] for extra, modules in EXTRAS.items()} == {
        extra: [name for name in needs if name != "passhat"]
        for extra, needs in packages.items()
        if extra not in FOR_DEVELOPERS
    }
