"""`passhat doctor`: one line for everything a run needs."""

import sys

SUITE = """\
name: sick
servers:
  good: {{command: ["{python}", -m, passhat.testing.weather_server]}}
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
    suite(SUITE.format(python=sys.executable))
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
    assert line("system shell").startswith("ok")
    assert line("system gone").startswith("problem")
    assert line("system function").startswith("problem")
    assert done.stderr == "4 problems\n"


def test_a_suite_that_can_run_is_ready(suite, call):
    suite("agents: [{name: a, model: scripted, prompt: hi, script: [{answer: x}]}]\n")
    done = call("doctor", "--ask")
    assert done.exit_code == 0, done.output
    assert "answered 'x'" in done.stdout
    assert done.stderr == "ready\n"


def test_a_suite_that_is_wrong_is_a_problem_of_its_own(suite, call):
    suite("agents: []\n")
    done = call("doctor")
    assert done.exit_code == call("validate").exit_code == 2
    assert "problem  suite" in done.stdout


def test_what_the_machine_lacks_is_no_fault_of_the_suite(suite, call):
    suite("agents: [{name: b, model: gpt-5, prompt: hi}]\n")
    assert call("doctor").exit_code == 1
