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
    suite(SUITE.format(name="one"))
    for _ in range(2):
        call("run", "suite.yml")
    runs = [run["run"] for run in json.loads(call("history", "--json").stdout)["runs"]]
    first = call("history", "tag", runs[1], "good").output
    assert first.strip().endswith(f"{runs[1]} is now good of one")
    moved = call("history", "tag", runs[0], "good").output
    assert f"{runs[0]} is now good of one, which was {runs[1]}" in moved
    assert f"deleted {runs[0]}, tagged good" in call("history", "delete", "good", "--yes").output


def test_gates_that_are_stricter_in_a_job_say_how_sure_each_verdict_is(here, call, monkeypatch):
    for name, share in (("old", 9), ("new", 8)):
        rows = "".join(f"t{t},{i},{i < share:d}\n" for t in range(6) for i in range(10))
        (here / f"{name}.csv").write_text(f"task,trial,passed\n{rows}")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    done = call("gate", "new.csv", "--against", "old.csv", "--margin", "0.02")
    assert "One-sided bounds at 95% for PASS, 99.95% for FAIL" in " ".join(done.stdout.split())


def test_the_one_error_of_all_trials_is_said_to_its_end(here, suite, call):
    (here / "listing.py").write_text("class Lists:\n    def handle(self, text): return [text]\n")
    suite(
        "name: lists\nsystems: [{name: a, python: 'listing:Lists.handle'}]\ndefaults: {runs: 2}\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: hello}]}]\n"
    )
    screen = call("run", "suite.yml").stdout
    assert "return a bool, a score in [0, 1], a text or a dict" in " ".join(screen.split())
    assert "Fix it, and give the same command again." in screen
    assert max(map(len, screen.splitlines())) <= 80
