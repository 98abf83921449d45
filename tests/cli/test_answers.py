import json
import re
from pathlib import Path

import pytest

from passhat import read_trials, simulate
from passhat.ingest.write import write_trials


@pytest.fixture
def files(here: Path) -> Path:
    rates = {"new": 0.9, "old": 0.6, "third": 0.6}
    trials = simulate(tasks=15, runs=8, rate=rates, seed=1)
    write_trials(trials, here / "all.jsonl")
    for name in rates:
        write_trials(trials.where(system=name), here / f"{name}.jsonl")
    return here


def test_two_files_are_compared_in_their_order(call, files):
    done = call("compare", "new.jsonl", "old.jsonl", "--json")
    found = json.loads(done.stdout)
    assert (found["first"], found["second"]) == ("new", "old")
    assert found["differences"]["mean_score"]["this_suite"]["verdict"] == "better"


def test_two_agents_of_one_file_are_compared_in_the_order_they_are_named(call, files):
    done = call("compare", "all.jsonl", "--only", "old", "--only", "new", "--json")
    found = json.loads(done.stdout)
    assert (found["first"], found["second"]) == ("old", "new")
    assert found["differences"]["mean_score"]["this_suite"]["verdict"] == "worse"


def test_two_runs_of_one_agent_go_by_the_names_of_their_files(call, here):
    for seed in (1, 2):
        write_trials(simulate(tasks=4, runs=4, seed=seed), here / f"run{seed}.jsonl")
    found = json.loads(call("compare", "run1.jsonl", "run2.jsonl", "--json").stdout)
    assert (found["first"], found["second"]) == ("agent (run1.jsonl)", "agent (run2.jsonl)")


def test_two_sides_never_go_by_the_same_name(call, here):
    for folder in ("a", "b"):
        (here / folder).mkdir()
        write_trials(simulate(tasks=4, runs=4, seed=1), here / folder / "run.jsonl")
    assert call("history", "--store", "h.db", "add", "a/run.jsonl").exit_code == 0
    for paths, names in (
        (("a/run.jsonl", "b/run.jsonl"), ("agent (a/run.jsonl)", "agent (b/run.jsonl)")),
        (("h.db", "h.db"), ("agent (h.db, first)", "agent (h.db, second)")),
    ):
        found = json.loads(call("compare", *paths, "--json").stdout)
        assert (found["first"], found["second"]) == names
    done = call("compare", "a/run.jsonl", "--only", "agent", "--only", "agent")
    assert "comparing needs two agents; there is only 'agent'" in done.stderr


def test_a_pair_that_was_picked_from_more_is_said_to_be_one_of_several(call, files):
    done = call("compare", "all.jsonl", "--only", "old", "--only", "new", "--json")
    (note,) = [text for text in json.loads(done.stdout)["notes"] if "pairs" in text]
    assert note.startswith("this is 1 of the 3 pairs of the 3 agents in these results")
    assert "pairs" not in call("compare", "new.jsonl", "old.jsonl").stdout


def test_more_than_two_agents_are_ranked_and_that_is_said(call, files):
    done = call("compare", "all.jsonl", "--json")
    assert json.loads(done.stdout)["schema"] == "passhat.ranking/1"
    assert done.stderr == "3 agents: ranking them (--only names two to compare)\n"
    asked = call("compare", "all.jsonl", "--k", "1,2", "--json").stdout
    assert json.loads(asked)["metric"] == "pass^2"


def test_one_agent_cannot_be_compared(call, files):
    done = call("compare", "new.jsonl")
    assert done.exit_code == 2
    assert "comparing needs two agents; there is only 'new'" in done.stderr


def test_agents_are_ranked_by_the_metric_asked_for(call, files):
    done = call("rank", "all.jsonl", "--by", "pass^4", "--json")
    found = json.loads(done.stdout)
    assert found["metric"] == "pass^4"
    assert found["systems"][0]["name"] == "new"
    assert json.loads(call("rank", "all.jsonl", "--k", "2", "--json").stdout)["metric"] == "pass^2"


def test_a_metric_that_cannot_be_ranked_by_is_refused(call, files):
    done = call("rank", "all.jsonl", "--by", "luck")
    assert done.exit_code == 2
    assert "--by must be mean_score, pass^k or pass@k such as pass^3, got 'luck'" in done.stderr


def test_a_plan_needs_no_results(call):
    done = call("plan", "--tasks", "50", "--half-width", "0.03", "--json")
    found = json.loads(done.stdout)
    assert found["chosen"]["tasks"] == 50
    assert found["assumptions"]["measured"] is False


def test_a_plan_uses_the_results_there_are(call, files):
    done = call("plan", "all.jsonl", "--only", "new", "--max-cost", "5", "--json")
    found = json.loads(done.stdout)
    assert found["assumptions"]["measured"] is True
    assert found["budgets"][0]["runs_in_all"] > 100


def test_a_plan_is_for_the_k_that_was_asked_for(call):
    with_k, without = call("plan", "--k", "3"), call("plan")
    assert re.match(r"Run each of the 20 tasks .* to know pass\^3 to ±5 ", with_k.stdout)
    assert re.match(r"Run each of the 20 tasks .* to know pass@1 to ±5 ", without.stdout)
    assert "the CI of pass^3; " in with_k.stdout
    assert "the CI of pass@1; " in without.stdout
    assert with_k.stderr == without.stderr == ""


def test_a_profile_is_against_a_reference_or_the_rest_of_the_file(call, files):
    inside = json.loads(call("profile", "all.jsonl", "--only", "new", "--json").stdout)
    assert inside["agents"] == ["old", "third"]
    against = call("profile", "new.jsonl", "--against", "old.jsonl", "--json")
    assert json.loads(against.stdout)["agents"] == ["old"]


def test_a_reference_that_cannot_be_read_as_the_results_are_names_the_way_out(call, files, here):
    rows = "".join(f"q{i % 5},{i % 3 > 0}\n" for i in range(40))
    (here / "own.csv").write_text(f"question,passed\n{rows}")
    told = ("own.csv", "--task", "question", "--against", "all.jsonl")
    done = call("profile", *told)
    assert done.exit_code == 2
    assert "Reading options apply to RESULTS and REFERENCE alike" in done.stderr
    convert = re.search(
        r"passhat (convert own.csv --columns task=question -o mine.jsonl)", done.stderr
    )[1]
    assert call(*convert.split()).exit_code == 0
    assert call("profile", "mine.jsonl", "--against", "all.jsonl").exit_code == 0
    assert "RESULTS" not in call("profile", "new.jsonl", "--against", "none.csv").stderr


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet"])
def test_what_was_converted_reads_back_as_the_same_trials(call, files, form):
    done = call("convert", "all.jsonl", "-o", f"again.{form}")
    assert done.exit_code == 0
    assert done.stderr == f"wrote 360 trials to again.{form}\n"
    again, before = read_trials([f"again.{form}"]), read_trials(["all.jsonl"])
    assert again.to_columns() == before.to_columns()


def test_conversion_to_standard_output_is_the_file(call, files):
    assert call("convert", "all.jsonl").stdout == (files / "all.jsonl").read_text()
    assert call("convert", "all.jsonl", "--csv").stdout.startswith("system,task,trial,outcome")


def test_simulated_trials_are_the_librarys(call, here):
    done = call(
        *("simulate", "--tasks", "3", "--runs", "2", "--rate", "a=0.2", "--rate", "b=0.9"),
        *("--seed", "5", "-o", "sim.jsonl", "-q"),
    )
    assert (done.stdout, done.stderr) == ("", "")
    expected = simulate(tasks=3, runs=2, rate={"a": 0.2, "b": 0.9}, seed=5)
    assert read_trials(["sim.jsonl"]).to_columns() == expected.to_columns()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "--rate", "x=high"], "--rate must be a share or AGENT=SHARE, got 'x=high'"),
        (["simulate", "--rate", "a=0.3", "--rate", "a=0.4"], "--rate must name each agent once"),
        (["simulate", "--rate", "1.5"], "rate must lie strictly between 0 and 1, got 1.5"),
        (["simulate", "-o", "x.xlsx"], "FILE must end in .jsonl, .csv, .tsv, .parquet"),
        (["simulate", "-o", "no/such.csv"], "there is no folder no"),
        (["plan", "--max-cost", "3"], "--cost-per-run must be given with --max-cost"),
        (["demo", "--seed", "-1"], "must be at least 0, got -1"),
        (["rank", "one.csv"], "must hold at least two agents to rank"),
        (["profile", "one.csv"], "name others to compare it with, --against REFERENCE"),
        (["compare", "one.csv"], "comparing needs two agents; there is only 'one'"),
        (["gate", "one.csv", "-r", "pass^3"], '--require must read like "pass^3 >= 0.8"'),
        (
            ["report", "one.csv", "--name", "a", "--name", "b"],
            "--name must be given once for one file or run, got 'a', 'b'",
        ),
        (["diff", "one.csv", "a"], "no failed trial of task a has a transcript to compare"),
        (["history", "show", "latest"], "history.db: no history here yet"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(call, here, arguments, message):
    (here / "one.csv").write_text("task,passed\na,1\na,0\nb,1\n")
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demonstration_needs_nothing_and_is_the_same_twice(call):
    first, second = call("demo"), call("demo")
    assert first.exit_code == 0
    assert first.stdout == second.stdout
    assert first.stdout.endswith("\nNext: passhat report YOUR_RESULTS\n")
    assert len(first.stdout.splitlines()) == 11
    assert json.loads(call("demo", "--json").stdout)["schema"] == "passhat.report/1"
    assert call("demo", "--markdown").stdout.startswith("**Two made-up agents")


def test_a_summary_of_trials_counts_what_was_written(call, files):
    printed = call("convert", "all.jsonl", "--markdown").stdout
    assert printed.startswith("**360 trials, 3 agents, 15 tasks.**\n")
    trials = read_trials(["all.jsonl"])
    for name in trials.systems:
        tally = trials.tally(name)
        passed, failed = tally.passed.sum(), tally.failed.sum()
        assert f"| {name} | 15 | 8 | 120 | {passed} | {failed} | 0 |" in printed
    done = call("convert", "all.jsonl", "-o", "all.md", "-o", "all.csv")
    assert (files / "all.md").read_text() == printed
    assert done.stderr == "wrote a summary of 360 trials to all.md\nwrote 360 trials to all.csv\n"
    assert done.stdout == ""


def test_a_summary_may_be_printed_beside_the_file(call, here):
    done = call("simulate", "--tasks", "2", "--runs", "1", "-o", "sim.csv", "--markdown")
    assert (here / "sim.csv").exists()
    assert done.stdout.startswith("**2 trials, 1 agent, 2 tasks.**")


def test_what_a_reader_noted_is_in_the_summary(call, here):
    (here / "odd.csv").write_text("task,passed,colour\na,1,red\na,0,blue\n")
    assert "colour" in call("convert", "odd.csv", "--markdown").stdout


def test_trials_are_printed_in_one_form(call):
    done = call("simulate", "--csv", "--markdown")
    assert done.exit_code == 2
    assert "--json, --csv and --markdown cannot be used together" in done.stderr


def test_the_metric_ranked_by_is_the_one_that_help_calls_the_default(call, files):
    said = " ".join(call("compare", "--help-all").stdout.split())
    assert "[default: mean_score, or pass^k of the largest --k]" in said


@pytest.mark.parametrize("more", [(), ("--gate", "pass^1 >= 0.5")])
def test_a_plan_from_several_agents_is_for_the_one_that_passes_least(call, here, more):
    rows = [f"{name},t{i},{n},{int(name == 'a1' or n > 2)}" for name in ("a1", "b1")
            for i in range(3) for n in range(5)]  # fmt: skip
    (here / "two.csv").write_text("\n".join(["system,task,trial,passed", *rows]))
    both = call("plan", "two.csv", *more).stdout
    note = "Planned for b1, which has the lowest pass@1 of 2 agents.\n"
    assert note in both
    assert both.replace(note, "") == call("plan", "two.csv", "--only", "b1", *more).stdout


def test_labels_are_planned_for_one_agent(call, here):
    (here / "two.csv").write_text("system,task,trial,passed\na1,t,1,1\nb1,t,1,0\n")
    done = call("plan", "two.csv", "--judge", "0.9,0.85")
    assert done.exit_code == 2
    assert (
        "labels are planned for one agent; there are 2: a1, b1. Name one with --only AGENT"
        in done.stderr
    )


def test_an_agent_that_is_nearly_one_is_asked_after(call, here):
    (here / "two.csv").write_text("system,task,trial,passed\ndroid_gpt5,t,1,1\nb,t,1,0\n")
    done = call("report", "two.csv", "--only", "droid_gpt-5")
    assert done.exit_code == 2
    assert "(did you mean droid_gpt5?)" in done.stderr
