"""What a run advises next can be called as it stands."""

import re

TWO = """\
name: sums
defaults: {runs: 4}
systems:
  - {name: calm, command: [echo, "4"]}
  - {name: odd, command: [echo, "5"]}
tasks:
  - {name: two and two, prompt: What is 2 + 2?, expect: [{contains: "4"}]}
  - {name: two and three, prompt: What is 2 + 3?, expect: [{contains: "5"}]}
"""


def test_the_commands_advised_after_a_run_of_several_systems_can_be_called(here, suite, call):
    suite(TWO)
    said = call("run").stdout
    advised = re.findall(r"passhat (report|rank) (\S+)( --only NAME)?$", said, re.MULTILINE)
    assert [command for command, _, _ in advised] == ["report", "rank"]
    for command, results, only in advised:
        done = call(command, results, *(["--only", "odd"] if only else []))
        assert done.exit_code == 0, done.stderr
        assert "odd" in done.stdout


def test_a_run_that_was_not_kept_advises_no_command_on_it(here, suite, call):
    suite(TWO)
    assert "--only NAME" not in call("run", "--no-store").stdout
