"""What new users met that gave a wrong answer, or none, without a word."""

import json
import re

from passhat.history import History

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


def test_a_list_shows_as_many_rows_as_were_asked_for(call):
    with History.open(".passhat/history.db") as history:
        for day in range(1, 29):
            history.finish_run(history.start_run("one", started=f"2026-01-{day:02}"))
        for run in history.runs():
            history.tag(run, f"night-{run.id}", by="Ann")
    for command in (("history",), ("history", "log")):
        short, asked = (call(*command, *limit).stdout for limit in ((), ("--limit", "25")))
        assert " earlier " in short
        assert len(short.splitlines()) <= 15
        assert " earlier " not in asked
        assert sum("Jan" in row or "night-" in row for row in asked.splitlines()) == 25


def test_a_gate_that_stays_undecided_names_the_way_to_decide_it(call):
    planned = call("plan", "--gate", "pass^1 >= 0.8", "--tasks", "1").stdout
    assert "mostly stays undecided" in " ".join(planned.split())
    assert "--indifference 0.05 decides more" in " ".join(planned.split())
    assert len(planned.splitlines()) <= 15
    decided = call("plan", "--gate", "pass^1 >= 0.8", "--tasks", "1", "--indifference", "0.1")
    assert "undecided" not in decided.stdout
    assert "--indifference" in call("plan", "--help").stdout


def test_runs_of_two_suites_are_named_where_they_are_compared(call, here):
    for name in ("one", "two"):
        rows = "".join(f"t{t},{i},{i < 4:d}\n" for t in range(3) for i in range(5))
        (here / f"{name}.csv").write_text(f"task,trial,passed\n{rows}")
        assert call("history", "add", f"{name}.csv", "--suite", name).exit_code == 0
        assert call("history", "tag", "latest", f"of-{name}").exit_code == 0
    told = " ".join(call("compare", "of-one", "of-two").stderr.split())
    assert re.search(r"two suites: of-one is run \S+ of one; of-two is run \S+ of two", told)


def test_an_answer_for_these_tasks_says_nothing_of_similar_ones(call):
    rates = [word for rate in ("a=0.9", "b=0.85", "c=0.5") for word in ("--rate", rate)]
    call("simulate", *rates, "-o", "three.csv")
    table, line = (
        " ".join(call("report", "three.csv", *scope).stdout.split("Two at a time")[0].split())
        for scope in ((), ("--for", "these-tasks"))
    )
    assert "a and b lead and are tied" in table
    assert "Ties are for similar tasks" in table
    assert "On these tasks a is not shown ahead of b: 5 in a row 74% and 68%." in line
    assert "tie" not in line.lower()


def test_p_values_are_shown_with_the_tests_they_come_from(call):
    call("simulate", "--rate", "new=0.9", "--rate", "old=0.75", "-o", "two.csv")
    screen, every = (" ".join(call("compare", "two.csv", *v).stdout.split()) for v in ((), ("-v",)))
    assert "(p < 0.001 for these tasks)" in screen
    assert "p < 0.001 for these tasks (stratified by task, run noise and CMH mid-p" in every
    call("simulate", "--rate", "a=0.9", "--rate", "b=0.8", "--rate", "c=0.5", "-o", "three.csv")
    pairs = json.loads(call("compare", "three.csv", "--json").stdout)["pairs"]
    shown = call("compare", "three.csv", "-v").stdout
    assert "p (all pairs)" in shown
    for pair in pairs:
        (row,) = [row for row in shown.splitlines() if f"{pair['first']} - {pair['second']}" in row]
        assert row.endswith(f"{pair['p_value']:.3f}" if pair["p_value"] > 0.001 else "< 0.001")


def test_old_runs_are_deleted_by_their_age_but_none_that_has_a_tag(call):
    with History.open(".passhat/history.db") as history:
        for started in ("2026-01-01", "2026-01-02", "2026-01-03"):
            history.finish_run(history.start_run("one", started=started))
        history.start_run("one", started="2026-01-04")  # it was interrupted
        history.tag(history.runs()[-1], "baseline")
        history.finish_run(history.start_run("one"))
    refused = call("history", "delete", "--older-than", "30")
    assert refused.exit_code == 1
    assert "Delete 3 runs with 0 trials, all older than 30 days?" in refused.output
    done = call("history", "delete", "--older-than", "30", "--yes")
    assert (done.exit_code, done.stderr) == (0, "deleted 3 runs with 0 trials\n")
    left = json.loads(call("history", "--json").stdout)["runs"]
    assert [run["tags"] for run in left] == [[], ["baseline"]]
    assert call("history", "delete", "--older-than", "30").stderr.startswith("no run is that old")
    for words in ((), ("latest", "--older-than", "30")):
        assert "name the RUN to delete" in call("history", "delete", *words).stderr


def test_rates_of_several_agents_in_one_word_are_no_name_of_an_agent(call, here):
    done = call("simulate", "--rate", "a=0.9,b=0.8", "-o", "two.csv")
    assert done.exit_code == 2
    assert "--rate must be one AGENT=SHARE; repeat it for several" in done.stderr
    assert not (here / "two.csv").exists()
