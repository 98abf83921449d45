"""What new users met that gave a wrong answer, or none, without a word."""

import json
import re

SUITE = """\
name: {name}
defaults: {{model: scripted, runs: 8}}
agents: [{{name: a, prompt: hi, expect: [{{contains: x}}], script: [{{answer: x}}, {{answer: y}}]}}]
gates: [pass^3 >= 0.1]
"""


def test_the_difference_to_the_run_before_is_named_and_that_of_the_gate(suite, call):
    suite(SUITE.format(name="one").replace("runs: 8", "runs: 40"))
    call("run", "suite.yml")
    said = " ".join(call("run", "suite.yml").stdout.split())
    assert re.search(r"Against the run of .* alone: [^.]*pass\^3 ", said)
    assert "pass^5" not in said


def test_a_tag_that_moves_says_from_where_and_a_deleted_run_its_tags(suite, call):
    for name in ("one", "two"):
        suite(SUITE.format(name=name))
        call("run", "suite.yml")
    runs = [run["run"] for run in json.loads(call("history", "--json").stdout)["runs"]]
    first = call("history", "tag", runs[1], "good").output
    assert first.strip().endswith(f"{runs[1]} is now good")
    moved = call("history", "tag", runs[0], "good").output
    assert f"{runs[0]} is now good, which was {runs[1]} of one" in moved
    assert f"deleted {runs[0]}, tagged good" in call("history", "delete", "good", "--yes").output
