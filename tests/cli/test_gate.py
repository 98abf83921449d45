"""passhat gate: verdict and exit code on any results, against a baseline, and explained."""

import json
import re
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.history import Checkout, History
from passhat.ingest import read_trials
from passhat.records import Outcome, Trial


def rows(counts):
    return [
        {"system": "agent", "task": task, "trial": i, "passed": i < passed}
        for task, (passed, runs) in counts.items()
        for i in range(runs)
    ]


def write(path, counts):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(counts)))
    return str(path)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Call `passhat gate` in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, ["gate", *arguments])


@pytest.fixture
def good(tmp_path):
    return write(tmp_path / "good.jsonl", {f"t{i}": (30, 30) for i in range(5)})


@pytest.fixture
def middling(tmp_path):
    return write(tmp_path / "middling.jsonl", {f"t{i}": (22, 30) for i in range(5)})


@pytest.mark.parametrize(
    ("demand", "word", "code"),
    [
        ("pass^3 >= 0.2", "PASS", 0),
        ("pass^3 >= 0.8", "FAIL", 1),
        ("pass^1 >= 0.73", "UNDECIDED", 4),
    ],
)
def test_the_exit_code_is_the_verdict(gate, middling, demand, word, code):
    result = gate(middling, "--require", demand)
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(word)


TAGGED = "task,trial,passed,tags,level\n" + "".join(
    f"{task},{trial},1,{tag},hard\n"
    for task, tag in (("refund", "money"), ("mail", "letters"))
    for trial in range(20)
)


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("tags[mony].pass^3 >= 0.5", "no tag is called 'mony': there are letters, money (did you"),
        ("tasks[refnd].rate >= 0.5", "no task is called 'refnd': there are mail, refund (did you"),
        ("levels[hrad].pass^3 >= 0.5", "no level is called 'hrad': there is hard (did you mean"),
        ("steps[book].pass_rate >= 0.5", "no step is called 'book': there are none"),
    ],
)
def test_a_gate_on_a_name_that_is_not_there_is_refused_with_those_that_are(
    gate, tmp_path, demand, said
):
    (tmp_path / "log.csv").write_text(TAGGED)
    result = gate("log.csv", "-r", demand, "--on-undecided", "pass")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"gate '{demand}': {said}" in result.stderr


def test_of_several_agents_the_one_with_too_few_trials_of_a_task_is_named(gate, tmp_path):
    lines = [
        json.dumps(row | {"system": name})
        for name, counts in (
            ("old", {"a": (9, 9), "b": (9, 9)}),
            ("new", {"a": (9, 9), "b": (2, 2)}),
        )
        for row in rows(counts)
    ]
    (tmp_path / "two.jsonl").write_text("\n".join(lines))
    told = gate("two.jsonl", "-r", "pass^3 >= 0.01", "-r", "pass^4 >= 0.01").stdout
    assert "\nnew: 1 of 2 tasks has fewer than 3 trials (b): pass^3 is without it" in told


def test_a_tag_that_runs_are_given_may_be_one_that_no_run_has(gate, tmp_path):
    (tmp_path / "log.csv").write_text(TAGGED)
    result = gate("log.csv", "-r", "tags[used:SKILL.md].pass^3 >= 0.5")
    assert (result.exit_code, result.stdout.split()[0]) == (4, "UNDECIDED")


@pytest.mark.parametrize(
    ("demand", "enough"),
    [("pass^30 >= 0.5", "65 of each task"), ("tags[money].pass^30 >= 0.5", "130 trials")],
)
def test_a_streak_that_no_task_has_the_trials_for_says_what_to_do(gate, tmp_path, demand, enough):
    (tmp_path / "log.csv").write_text(TAGGED)
    result = gate("log.csv", "-r", demand)
    assert result.exit_code == 4
    assert (
        "pass^30 needs 30 trials of a task; the most any has is 20. An agent that never fails "
        f"needs {enough} to PASS." in " ".join(result.stdout.split())
    )


@pytest.mark.parametrize("more", [(), ("-r", "pass@1 >= 0.2"), ("--json",), ("-v",)])
def test_the_tasks_with_too_few_trials_are_named_on_every_screen(gate, tmp_path, more):
    results = write(tmp_path / "r.jsonl", {f"t{i}": (30, 30) for i in range(5)} | {"hard": (0, 2)})
    told = gate(results, "-r", "pass^3 >= 0.2", *more)
    assert "1 of 6 tasks has fewer than 3 trials (hard): pass^3 is without it" in " ".join(
        told.stdout.split()
    )


@pytest.mark.parametrize("demand", ["levels[hard].pass^3 >= 0.5", "tags[money].pass^3 >= 0.5"])
def test_a_tag_or_level_of_every_task_is_judged_like_the_suite(gate, tmp_path, demand):
    (tmp_path / "log.csv").write_text(TAGGED.replace("letters", "money"))
    told = gate("log.csv", "-r", "pass^3 >= 0.5").stdout
    whole = told.replace("pass^3 >= 0.5", demand).replace("95% confidence, ", "")
    part = gate("log.csv", "-r", demand)
    assert (part.exit_code, part.stdout) == (0, whole)


@pytest.mark.parametrize("demand", ["pass^3 >= 0.2", "pass@1 >= 0.9", "error_rate <= 0.1"])
@pytest.mark.parametrize("others", [0, 1])
def test_where_every_trial_errored_there_is_no_verdict(gate, tmp_path, demand, others):
    errors = [{"task": "t", "trial": i, "outcome": "error", "error": "no key"} for i in range(8)]
    judged = [{"task": "t", "trial": 8 + i, "outcome": "failed"} for i in range(others)]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in errors + judged))
    result = gate("e.jsonl", "-r", demand)
    if others:
        assert result.exit_code == 1, result.output
    else:
        assert (result.exit_code, result.stdout) == (3, "")
        assert "all 8 trials errored (no key): there is nothing to judge" in result.stderr


def test_the_verdict_is_on_stdout_once_also_when_it_goes_to_a_file(gate, middling):
    demands = ("-r", "pass^3 >= 0.8", "-r", "pass^3 >= 0.2")
    told = gate(middling, *demands, "-o", "g.xml")
    assert (told.exit_code, told.stdout) == (1, gate(middling, *demands).stdout)
    assert told.stderr == "wrote g.xml\n"
    printed = gate(middling, *demands, "-o", "g.xml", "--json")
    assert json.loads(printed.stdout)["verdict"] == "FAIL"
    assert printed.stderr == "wrote g.xml\n"


def test_the_word_of_a_verdict_stands_once_in_its_line(gate, middling):
    fixed = gate(middling, "-r", "pass^3 >= 0.8").stdout
    assert fixed.startswith("FAIL  pass^3 >= 0.8: it is 37.9%, at most 48.8% (95% confidence, ")
    watched = gate(middling, "-r", "pass^1 >= 0.5", "--evidence", "sequential").stdout
    assert watched.startswith("PASS  pass^1 >= 0.5 after ")
    for told in (fixed, watched):
        assert told.splitlines()[0].count(told.split()[0]) == 1


def test_why_a_log_did_not_settle_a_gate_is_said_once(gate, tmp_path):
    few = write(tmp_path / "few.jsonl", {f"t{i}": (2, 3) for i in range(5)})
    watched = ("--evidence", "sequential", "--indifference", "0.1")
    told = gate(few, "-r", "pass^1 >= 0.73", *watched).stdout
    assert " ".join(told.split()).count("the log has no more trials of task t") == 1


def test_failures_at_the_very_end_of_a_log_are_no_outage_that_lets_it_pass(gate, tmp_path):
    few = write(tmp_path / "few.jsonl", {f"t{i}": (2, 3) for i in range(5)})
    told = gate(few, "-r", "pass^1 >= 0.73", "--evidence", "sequential").stdout
    assert told.startswith("UNDECIDED")


def test_a_demand_with_a_margin_is_not_told_to_state_one(gate, good, tmp_path):
    few = write(tmp_path / "few.jsonl", {f"t{i}": (2, 3) for i in range(5)})
    same = write(tmp_path / "same.jsonl", {f"t{i}": (2, 3) for i in range(5)})
    told = gate(few, "--against", same, "--margin", "0.02").stdout
    assert told.startswith("UNDECIDED  1 of 2 gates passed, 1 undecided (15 trials)\n")
    assert "UNDECIDED  no worse than same.jsonl by 2 points  0 points, " in told
    assert "state a margin" not in told


def test_terms_on_the_command_line_hold_for_every_demand(gate, middling):
    result = gate(middling, "-r", "pass^1 >= 0.73", "--on-undecided", "fail")
    assert result.exit_code == 1
    result = gate(middling, "-r", "pass^1 >= 0.73", "--evidence", "point")
    assert result.exit_code == 0
    assert "no error rate" in result.stdout


def test_json_holds_every_step_of_the_evidence(gate, good):
    result = gate(good, "-r", "pass^1 >= 0.6", "--evidence", "sequential", "--indifference",
                  "0.1", "--json")  # fmt: skip
    answer = json.loads(result.stdout)
    (verdict,) = answer["verdicts"]
    assert (answer["schema"], verdict["verdict"]) == ("passhat.verdicts/1", "PASS")
    assert len(verdict["steps"]) == verdict["runs"]
    assert verdict["steps"][-1]["log_pass"] >= verdict["steps"][-1]["pass_boundary"]
    assert verdict["steps"][-2]["log_pass"] < verdict["steps"][-2]["pass_boundary"]


def test_explain_shows_the_log_and_the_picture(gate, good):
    watched = gate(
        good, "-r", "pass^1 >= 0.6", "--evidence", "sequential", "--indifference", "0.1",
        "--explain",
    )  # fmt: skip
    assert "for PASS" in watched.stdout
    assert "pass^1 >= 0.6: PASS after" in watched.stdout
    fixed = gate(good, "-r", "pass^1 >= 0.6", "--explain")
    assert "pass^1 >= 0.6: PASS" in fixed.stdout
    assert "30/30" in fixed.stdout


def test_a_regression_against_a_file_is_found_as_a_suite_and_task_by_task(gate, tmp_path, good):
    new = write(tmp_path / "new.jsonl", {f"t{i}": (30, 30) for i in range(4)} | {"t4": (3, 30)})
    result = gate(new, "--against", good)
    assert result.exit_code == 1
    assert "no worse than good.jsonl by 5 points" in result.stdout
    assert "t4 (was 30/30, now 3/30)" in " ".join(result.stdout.split())
    again = write(tmp_path / "again.jsonl", {f"t{i}": (30, 30) for i in range(5)})
    assert gate(again, "--against", good).exit_code == 0


def test_results_are_not_held_against_themselves(gate, good):
    same = gate(good, "--against", "good.jsonl")
    assert same.exit_code == 2
    assert "--against must name other results than those judged" in same.output


def test_a_branch_as_baseline_is_its_run_before_the_one_judged(gate, tmp_path):
    with History.open(tmp_path / ".passhat" / "history.db") as history:
        for day, passes in ((1, 30), (2, 10)):
            at = Checkout(branch="main", commit=f"1f2e3d{day}")
            run = history.start_run("suite", checkout=at, started=f"2026-11-0{day}")
            history.add_trials(
                run,
                [
                    Trial(system="agent", task="t", trial=i, outcome=Outcome(int(i < passes)))
                    for i in range(30)
                ],
            )
            history.finish_run(run)
        first, second = reversed(history.runs())
    told = gate("latest", "--against", "main")
    assert told.exit_code == 1
    assert f"compared with run {first.key} of 1 Nov 2026 (main)" in told.stderr
    assert "compared" not in gate("latest", "--against", "main", "-q").stderr
    for name in ("latest", second.key, "1f2e3d2"):
        refused = gate("main", "--against", name)
        assert refused.exit_code == 2
        assert "a run is not compared with itself" in refused.stderr


def test_a_demand_finds_its_baseline_as_against_does(gate, tmp_path, good):
    new = write(tmp_path / "new.jsonl", {f"t{i}": (10, 30) for i in range(5)})
    by_file = gate(new, "-r", "no_worse_than good.jsonl by 0.05")
    assert by_file.stdout.startswith("FAIL  no worse than good.jsonl by 5 points: ")
    itself = gate(new, "-r", "no_worse_than new.jsonl by 0.05")
    assert itself.exit_code == 2
    assert "no_worse_than must name other results than those judged" in itself.stderr
    nobody = gate(new, "-r", "no_worse_than main by 0.05")
    assert nobody.exit_code == 2
    assert (
        "no baseline is called 'main': it is no file or folder, no agent of these results (agent), "
        "and there is no history with a run of that name" in nobody.stderr
    )
    slip = gate(new, "-r", "no_worse_than agnt by 0.05")
    assert "(did you mean agent?)" in slip.stderr
    with History.open(tmp_path / ".passhat" / "history.db") as history:
        run = history.start_run("suite", checkout=Checkout(branch="main"))
        history.add_trials(run, read_trials(good))
    by_branch = gate(new, "-r", "no task worse than main")
    assert by_branch.stdout.startswith("FAIL  no task worse than main. ")
    assert by_branch.exit_code == by_file.exit_code == 1
    (tmp_path / "main").mkdir()
    beside = gate(new, "-r", "no task worse than main")
    assert beside.stdout == by_branch.stdout
    endless = gate(new, "-r", f"no_worse_than {'a' * 5000} by 0.05")
    assert "no run, tag, branch or commit 'aaa" in endless.stderr
    assert gate("a" * 5000, "-r", "pass^1 >= 0.5").exit_code == 2
    nobody = gate(new, "-r", "no_worse_than mian by 0.05")
    assert "no run, tag, branch or commit 'mian'" in nobody.stderr


def test_a_baseline_that_is_not_judged_stays_a_baseline(gate, tmp_path):
    path = tmp_path / "two.jsonl"
    path.write_text(
        "".join(
            json.dumps({"system": name, "task": f"t{t}", "trial": i, "passed": i < passes}) + "\n"
            for name, passes in (("old", 10), ("new", 30))
            for t in range(5)
            for i in range(30)
        )
    )
    told = gate(str(path), "--only", "new", "-r", "no_worse_than old by 0.02")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("PASS  no worse than old by 2 points: ")


def test_a_baseline_of_two_systems_is_refused_with_their_names_and_the_way_out(
    gate, tmp_path, good
):
    lines = [json.dumps({"system": s, "task": "t0", "passed": True}) for s in ("one", "two")]
    (tmp_path / "both.jsonl").write_text("\n".join(lines))
    told = gate(good, "--against", "both.jsonl")
    assert told.exit_code == 2
    assert "passhat convert FILE --only SYSTEM" in told.stderr
    assert "got 'one', 'two'" in told.stderr


def test_runs_of_the_history_are_judged_by_name(gate, tmp_path):
    with History.open(tmp_path / ".passhat" / "history.db") as history:
        for tag, passes in (("main", 30), ("branch", 10)):
            run = history.start_run("suite")
            history.add_trials(
                run,
                [
                    Trial(
                        system="agent",
                        task="t",
                        trial=i,
                        outcome=Outcome.PASSED if i < passes else Outcome.FAILED,
                    )
                    for i in range(30)
                ],
            )
            history.tag(run, tag)
    assert gate("main", "-r", "pass^1 >= 0.8").exit_code == 0
    assert gate("branch", "--against", "main").exit_code == 1
    missing = gate("nothing", "-r", "pass^1 >= 0.8")
    assert missing.exit_code == 2
    assert "no run, tag, branch or commit 'nothing'" in missing.output
    for path in ("../x.jsonl", "x.csv", "logs/today"):
        missing = gate(path, "-r", "pass^1 >= 0.8")
        assert missing.exit_code == 2
        assert f"Error: {path}: no such file or folder, and " in missing.output
        assert "has no run, tag or branch of that name" in missing.output


def test_a_suite_brings_its_gates_and_bars(gate, tmp_path, middling):
    suite = tmp_path / "passhat.yml"
    suite.write_text(
        "systems: [{name: agent, command: [agent]}]\n"
        "defaults: {bar: 0.3}\n"
        "tasks: [{name: t0, prompt: x}, {name: t1, prompt: x, bar: 0.95}, {name: t2, prompt: x},\n"
        "  {name: t3, prompt: x}, {name: t4, prompt: x}, {name: unrun, prompt: x}]\n"
        'gates: ["every task: pass^1 >= its bar"]\n'
    )
    result = gate(middling, "--suite", str(suite))
    assert result.exit_code == 1
    assert "its bar: 1 of 5 tasks misses it: t1 22/30." in " ".join(result.stdout.split())
    assert gate(middling, "--suite", str(suite), "--bar", "t1=0.2").exit_code == 0


def test_a_general_bar_stands_beside_a_tasks_own(gate, middling):
    demand = ["-r", "every task: pass^1 >= its bar"]
    assert gate(middling, *demand, "--bar", "0.95", "--bar", "t0=0.2").exit_code == 1
    assert gate(middling, *demand, "--bar", "0.2", "--bar", "t0=0.3").exit_code == 0
    alone = gate(middling, *demand, "--bar", "t0=0.3")
    assert alone.exit_code == 2
    assert "4 of 5 tasks have none (t1, t2, t3, t4)" in alone.output


def test_junit_is_xml_that_holds_any_name(gate, tmp_path):
    results = write(tmp_path / "odd.jsonl", {"\x1b[31m<b>&\u202e": (1, 30)})
    result = gate(results, "-r", "pass^1 >= 0.9", "-o", "gates.xml", "--only", "agent")
    assert result.exit_code == 1
    tree = ET.fromstring((tmp_path / "gates.xml").read_text())
    case = tree.find("testsuite/testcase")
    assert case.find("failure").get("message").startswith("agent: pass^1 >= 0.9: FAIL")
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert (properties["verdict"], properties["alpha"]) == ("FAIL", "0.05")


def test_names_from_data_cannot_steer_the_terminal(gate, tmp_path):
    results = write(tmp_path / "odd.jsonl", {"\x1b[31mred": (30, 30), "b": (0, 30)})
    result = gate(results, "-r", "every task: pass^1 >= 0.5", "--explain")
    assert "\x1b" not in result.stdout


def test_nothing_demanded_and_nonsense_are_usage_errors(gate, good):
    assert gate(good).exit_code == 2
    nonsense = gate(good, "-r", "pas^3 >= 0.8")
    assert nonsense.exit_code == 2
    assert 'did you mean "pass^3"' in nonsense.output


def test_plan_tells_what_a_gate_costs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["plan", "--tasks", "1", "--gate", "pass^1 >= 0.8", "--indifference", "0.1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "80% 67 " in text
    assert "a fixed design takes 135" in text
    answer = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert answer["plans"][0]["exact"] is True


SUITE = """
seed: 5
systems:
  - name: agent
    model: scripted
    script: [{answer: "yes", weight: 6}, {answer: "no"}]
tasks:
  - {name: one, prompt: Well?, expect: [{exact: "yes"}]}
  - {name: two, prompt: Well?, expect: [{exact: "yes"}]}
  - {name: three, prompt: Well?, expect: [{exact: "yes"}]}
defaults: {runs: 40}
gates:
  - {require: "pass^2 >= 0.5", evidence: sequential, indifference: 0.2}
"""


def test_a_run_that_its_gate_ended_is_judged_again_the_same(gate, tmp_path):
    """Blocks of two runs, eight hands: only the journal knows which runs belong together."""
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    ran = CliRunner().invoke(main, ["run", str(suite), "--json", "--concurrency", "8"])
    first = json.loads(ran.stdout)["verdicts"][0]
    again = gate("latest", "--suite", str(suite), "--json")
    second = json.loads(again.stdout)["verdicts"][0]
    assert ran.exit_code == again.exit_code == 0, ran.output
    assert second["verdict"] == "PASS"
    assert second["sentence"] == first["sentence"]
    assert second["runs"] < 120


def test_a_run_that_its_gate_ended_is_held_against_an_earlier_one(gate, tmp_path):
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    tasks = ("one", "two", "three")
    before = write(tmp_path / "before.jsonl", dict.fromkeys(tasks, (40, 40)))
    assert CliRunner().invoke(main, ["run", str(suite)]).exit_code == 0
    told = json.loads(gate("latest", "--suite", str(suite), "--against", before, "--json").stdout)
    verdicts = {verdict["require"]: verdict["verdict"] for verdict in told["verdicts"]}
    assert verdicts["pass^2 >= 0.5"] == "PASS"
    assert verdicts["no_worse_than before.jsonl by 0.05"] == "UNDECIDED"  # after so few runs
    assert verdicts["no task worse than before.jsonl"] == "PASS"


@pytest.mark.parametrize(("demand", "said"), [("pass^1 >= 0.999", True), ("pass^1 >= 0.01", False)])
def test_a_quiet_job_that_writes_files_alone_still_says_that_it_did_not_pass(
    gate, good, demand, said
):
    """Cron mails what is printed: a night that fails may not be silent."""
    done = gate(good, "-r", demand, "-q", "-o", "a.xml")
    assert done.stderr == ""
    assert done.stdout.startswith("UNDECIDED  pass^1") == bool(done.stdout) == said


def test_a_gate_on_every_task_says_how_many_miss_it_and_where_to_look(gate, middling):
    failed = gate(middling, "-r", "every task: pass^1 >= 0.9")
    first = failed.stdout.splitlines()[0]
    assert re.match(r"FAIL  every task: pass\^1 >= 0\.9: all 5 tasks miss it: t\d \d+/30, ", first)
    assert "Why: passhat why " in failed.stdout


def test_a_gate_that_fails_against_a_baseline_names_the_comparison(gate, tmp_path):
    for name, good in (("now", 2), ("before", 9)):
        rows = "".join(f"t{t},{i < good:d}\n" for t in range(8) for i in range(10))
        (tmp_path / f"{name}.csv").write_text("task,passed\n" + rows)
    now, before = str(tmp_path / "now.csv"), str(tmp_path / "before.csv")
    text = " ".join(gate(now, "--against", before, "--margin", "0.02").stdout.split())
    assert f"Which tasks: passhat compare {now} {before}" in text.replace(" \\ ", " ")


@pytest.mark.parametrize("demand", ["better_than agent", "no_worse_than agent by 0.05"])
def test_a_gate_with_nobody_to_judge_but_its_baseline_is_refused(gate, tmp_path, demand):
    done = gate(write(tmp_path / "a.jsonl", {"a": (3, 4)}), "--require", demand)
    assert done.exit_code == 2
    assert "finds no agent to judge beside the one that it compares with" in done.output
