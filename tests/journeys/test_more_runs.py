"""A finished run gets more runs of its tasks, and keeps those it has."""

import re

import pytest
from click.testing import CliRunner

import passhat
from passhat.analysis.gates.gate import Verdicts
from passhat.cli import main
from passhat.errors import ArgumentError, HistoryError
from passhat.history import History
from passhat.journeys import review_change
from passhat.journeys.results import Results
from passhat.journeys.running import JUDGED_BEFORE
from passhat.journeys.stored_runs import judge_run
from passhat.runner.cassettes import file_digest
from passhat.runner.preflight import arm_of
from passhat.suite import load_suite

SUITE = """
name: smoke
seed: 7
systems:
  - {name: agent, model: scripted, script: [{answer: hello, weight: 2}, {answer: "no"}]}
tasks:
  - {name: a, prompt: hi, runs: 5, expect: [{contains: hello}]}
  - {name: b, prompt: hi, runs: 5, expect: [{contains: hello}]}
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "passhat.yml"
    path.write_text(SUITE)
    return path


def outcomes(trials):
    return sorted((one.task, one.trial, one.outcome.name, one.seed) for one in trials)


@pytest.mark.parametrize("seeds", ["", "seeds: [1, 2, 3]\n"])
def test_runs_that_are_added_are_those_of_a_longer_run(suite, seeds):
    suite.write_text(SUITE + seeds)
    first = passhat.run(suite, store="short.db")
    added = passhat.resume_run(store="short.db", runs=9)
    at_once = passhat.run(suite, store="long.db", runs=9)
    assert outcomes(added.trials) == outcomes(at_once.trials)
    assert set(outcomes(first.trials)) < set(outcomes(added.trials))


def test_an_interrupted_extension_is_resumed_to_its_new_length(suite):
    passhat.run(suite, store="h.db")
    cut = passhat.resume_run(store="h.db", runs=30, max_calls=20)
    assert len(cut.trials) < 60
    assert len(passhat.resume_run(store="h.db", max_calls=100).trials) == 60


def test_a_run_is_not_resumed_as_another_one(suite):
    passhat.run(suite, store="h.db")
    for other in ({"seed": 3}, {"require": ["pass^1 >= 0.9"]}, {"tasks": ["t"]}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            passhat.resume_run(store="h.db", **other)


def test_the_advice_to_run_more_is_a_command_that_adds_the_runs(suite):
    CliRunner().invoke(main, ["run", "--runs", "20", "-q"])
    report = CliRunner().invoke(main, ["report", "latest", "-v"]).output
    command = re.search(
        r"Run every task (\d+) more\s+times.*?passhat (run --resume.*?)\n", report, re.S
    )
    assert command, report
    more, words = int(command[1]), command[2].split()
    assert words == ["run", "--resume", "latest", "--trials", str(20 + more)]
    done = CliRunner().invoke(main, [*words, "--json"])
    assert f'"trials": {2 * (20 + more)}' in done.output, done.output


def test_a_gate_that_is_judged_again_on_more_runs_says_that_its_errors_add_up(suite):
    demand = {"require": "pass^1 >= 0.5", "store": "h.db"}
    assert JUDGED_BEFORE not in passhat.run(suite, **demand).report.notes
    assert JUDGED_BEFORE in passhat.resume_run(store="h.db", runs=8).report.notes


def test_an_open_sequential_gate_continues_where_it_stopped(suite):
    demand = {"require": "pass^1 >= 0.5", "until_settled": True}
    cut = passhat.run(suite, **demand, store="h.db", runs=2)
    assert cut.outcome == "undecided"
    answer = passhat.resume_run(store="h.db", runs=200)
    at_once = passhat.run(suite, **demand, runs=200)
    assert JUDGED_BEFORE not in answer.report.notes
    assert answer.outcome == at_once.outcome == "passed"


def test_runs_cannot_be_taken_away(suite):
    passhat.run(suite, store="h.db")
    with pytest.raises(
        ArgumentError, match="runs must be at least 5, which the run may take already"
    ):
        passhat.resume_run(store="h.db", runs=3)


def test_a_shard_is_no_plan_of_its_own(suite):
    passhat.run(suite, store="h.db", shard="1/2")
    with pytest.raises(HistoryError, match="start the plan again with more trials"):
        passhat.resume_run(store="h.db", runs=9)


def test_how_to_read_a_file_cannot_change_a_run_that_was_read(suite):
    passhat.run(suite, store=".passhat/history.db")
    done = CliRunner().invoke(main, ["report", "latest", "--pass-if", "score>=0.8"])
    assert done.exit_code == 2
    assert "--pass-if says how to read a file, but latest is a stored run" in done.output


def test_a_settled_run_that_gets_no_more_runs_says_so(suite):
    settled = passhat.run(suite, store="h.db", runs=60, require="pass^1 >= 0.1", until_settled=True)
    again = passhat.resume_run(store="h.db", runs=90)
    assert len(again.trials) == len(settled.trials)
    assert any(note.startswith("no trial was added: every gate") for note in again.report.notes)
    assert not any(note.startswith("no trial was added") for note in settled.report.notes)


def test_the_commands_a_run_advises_are_about_that_run(suite):
    first = passhat.run(suite, store="h.db")
    passhat.run(suite, store="h.db")
    again = passhat.resume_run(first.run, store="h.db", runs=9)
    assert again.results == f"{first.run} --store h.db"
    command = re.search(r"All numbers: passhat report (.*)$", passhat.render(again, "text"), re.M)
    shown = CliRunner().invoke(main, ["report", *command[1].split()]).output
    assert "2 tasks x 9 trials" in shown


def test_the_runs_that_would_settle_a_gate_are_enough_for_its_k(suite):
    answer = passhat.run(suite, store="h.db", runs=1, require="pass^3 >= 0.5")
    # 14 passed trials show pass^3 >= 0.05^(3/14) = 0.53; 12 show 0.47.
    assert f"passhat run --resume {answer.run} --store h.db --trials 7" in passhat.render(
        answer, "text"
    )


@pytest.mark.parametrize("until_settled", [False, True])
@pytest.mark.parametrize(("tasks", "demand"), [("*", "pass^12 >= 0.8"), ("a", "pass^12 >= 0.8")])
def test_a_run_with_too_few_trials_gives_one_number_that_passes(
    suite, tasks, demand, until_settled
):
    suite.write_text(SUITE.replace(', {answer: "no"}', ""))
    told = []
    terms = {"require": demand, "until_settled": until_settled, "tasks": tasks, "store": "h.db"}
    answer = passhat.run(
        suite, on_event=lambda event: told.append(getattr(event, "too_few", None)), **terms
    )
    screen = " ".join(passhat.render(answer, "text").split())
    advised = int(re.search(r"--trials (\d+)", screen)[1])
    assert passhat.resume_run(answer.run, store="h.db", runs=advised).verdicts.status == "PASS"
    (early,) = filter(None, told)
    needed = int(re.search(r"needs (\d+)", early)[1])
    assert needed <= advised
    if not until_settled:
        assert needed == advised
        assert screen.count(f"needs {needed}") == 1
    assert "at least 12 times" not in screen
    assert "would decide it" not in screen


def test_the_error_that_is_printed_after_a_further_look_is_the_sum_of_all_looks(suite):
    passhat.run(suite, require="pass^1 >= 0.5", store="h.db", runs=10)
    answer = passhat.resume_run(store="h.db", runs=15)
    for verdicts in (answer.verdicts, passhat.gate("h.db", "pass^1 >= 0.5")):
        (verdict,) = verdicts
        assert (verdict.alpha, verdict.beta) == (0.063, 0.063)
        assert "5% within the" in verdict.sentence
        assert "6.3% within these" in verdict.sentence
    passhat.resume_run(store="h.db", runs=20)
    assert passhat.gate("h.db", "pass^1 >= 0.5")[0].alpha == 0.075


def test_no_interface_prints_the_error_of_one_look_after_two(suite):
    demands = ["pass^1 >= 0.5", "pass^2 >= 0.9"]
    passhat.run(suite, require=demands, store="h.db", runs=10)
    answer = passhat.resume_run(store="h.db", runs=15)
    with History.open("h.db") as history:
        stored = judge_run(history, history.runs()[0])
    assert {verdict.alpha for verdict in stored} == {0.063}
    results = Results(paths=("latest",), store="h.db")
    review = review_change(results, demands)
    single = Verdicts((stored[0],))
    for found in (answer, answer.verdicts, single, stored, review):
        for form in ("text", "markdown"):
            text = " ".join(passhat.render(found, form).split())
            assert "6.3% within these 30" in text, (type(found), form)
            assert "95% confidence" not in text


LONGER = pytest.mark.slow("the same law with more trials")


@pytest.mark.parametrize("until_settled", [False, True])
@pytest.mark.parametrize(
    ("runs", "demand"),
    [
        (3, "pass^1 >= 0.8"),
        (3, "pass@2 >= 0.95"),
        (30, "pass^1 >= 0.8"),
        pytest.param(3, "pass^3 >= 0.9", marks=LONGER),
        pytest.param(30, "pass^3 >= 0.9", marks=LONGER),
        pytest.param(30, "pass@2 >= 0.95", marks=LONGER),
        pytest.param(12, "pass^3 >= 0.9", marks=LONGER),
    ],
)
def test_trials_are_said_to_be_too_few_just_where_an_agent_that_never_fails_cannot_pass(
    suite, demand, runs, until_settled
):
    suite.write_text(SUITE.replace(', {answer: "no"}', ""))
    told = []
    answer = passhat.run(
        suite, require=demand, store=None, runs=runs, until_settled=until_settled,
        on_event=lambda event: told.append(getattr(event, "too_few", None)),
    )  # fmt: skip
    (said,) = [one for one in told if one is not None] or [None]
    assert (said is None) == (answer.verdicts.status == "PASS")
    if said is not None:
        assert said.startswith(f"{2 * runs} trials can never PASS {demand}")
        enough = int(re.search(r"needs ([\d,]+) of each task", said)[1].replace(",", ""))
        again = passhat.run(
            suite, require=demand, store=None, runs=enough, until_settled=until_settled
        )
        assert again.verdicts.status == "PASS"


def test_a_run_until_settled_that_is_extended_goes_on_beyond_its_own_plan(suite):
    demand = {"require": "pass^1 >= 0.86", "until_settled": True}
    assert passhat.run(suite, **demand, store="h.db", runs=4).outcome == "undecided"
    (verdict,) = passhat.resume_run(store="h.db", runs=8).verdicts
    assert verdict.alpha == 0.075
    (replayed,) = passhat.gate("h.db", "pass^1 >= 0.86", suite=suite)
    assert (replayed.status, replayed.runs) == (verdict.status, verdict.runs)


@pytest.mark.parametrize("asked", [{}, {"seed": 3}, {"runs": 9}, {"tasks": "a"}])
@pytest.mark.parametrize("extended", [None, 40])
@pytest.mark.parametrize(
    "demand", ["pass^1 >= 0.1", "pass^3 >= 0.3", "every task: pass^2 >= 0.4", "error_rate <= 0.2"]
)
def test_a_gate_reads_a_stored_run_by_the_plan_it_was_made_with(suite, asked, extended, demand):
    answer = passhat.run(suite, require=demand, until_settled=True, store="h.db", **asked)
    first = len(answer.trials)
    if extended is not None:
        answer = passhat.resume_run("latest", store="h.db", runs=extended)
    (stated,) = answer.verdicts
    (replayed,) = passhat.gate("h.db", demand, suite=suite)
    assert replayed.sentence == stated.sentence
    assert (replayed.alpha, replayed.max_runs) == (stated.alpha, stated.max_runs)
    # Bets on several tasks hold for any number of trials.
    bets = demand.startswith("error_rate") and "tasks" not in asked
    # A verdict that fell within the first plan is that of the first plan.
    assert (replayed.alpha > 0.05) == (replayed.runs > first and not bets)


def test_a_stored_run_is_not_read_by_the_suite_of_another(suite):
    asked = {"tasks": "b", "require": "pass^1 >= 0.1", "until_settled": True}
    passhat.run(suite, store="h.db", **asked)
    suite.write_text(SUITE.replace("name: b", "name: c"))
    with pytest.raises(ArgumentError, match=r"must be the suite that run \w+ was made with"):
        passhat.gate("h.db", "pass^1 >= 0.1", suite=suite)


def test_a_gate_on_every_task_is_priced_too_when_it_is_extended(suite):
    demand = {"require": "every task: pass^1 >= 0.6", "until_settled": True}
    assert passhat.run(suite, **demand, store="h.db", runs=4).outcome == "undecided"
    (verdict,) = passhat.resume_run(store="h.db", runs=6).verdicts
    assert verdict.alpha == 0.063


@pytest.mark.parametrize(
    ("kind", "edited"),
    [
        ("python", False),
        ("python", True),
        *(
            pytest.param("command", edited, marks=pytest.mark.slow("a process for each trial"))
            for edited in (True, False)
        ),
    ],
)
def test_trials_of_an_agent_that_was_edited_are_not_mixed_unless_asked_for(suite, kind, edited):
    program = suite.with_name("lone_mixed.py")
    program.write_text("def ask(prompt):\n    return 'hello'\n\nprint('hello')\n")
    asked = {"python": "python: 'lone_mixed:ask'", "command": "command: python lone_mixed.py"}[kind]
    suite.write_text(re.sub("model: scripted.*", f"{asked}}}", SUITE))
    assert not [note for note in passhat.run(suite, store="h.db").warnings if "mixed" in note]
    if edited:
        program.write_text(program.read_text() + "# better\n")
        with pytest.raises(HistoryError, match="the program of agent has changed since run"):
            passhat.resume_run(store="h.db", runs=6)
    added = passhat.resume_run(store="h.db", runs=6, changed=edited)
    told = "the program of agent has changed since the run began"
    assert any(note.startswith(told) for note in added.warnings) is edited


@pytest.mark.parametrize("asked", ["python: 'shop.desk:ask'", "command: python main.py"])
@pytest.mark.parametrize(
    ("edited", "counts"),
    [
        ("shop/desk.py", True),
        ("shop/__init__.py", True),
        ("shop/tools/__init__.py", True),
        ("shop/tools/till.py", True),
        ("prices.py", True),
        ("shop/unused.py", False),
        ("notes.txt", False),
    ],
)
def test_what_an_agent_imports_from_beside_it_is_a_part_of_it(suite, asked, edited, counts):
    """Its submodules and those of its neighbours, however they import each other, and no more."""
    folder = suite.parent
    (folder / "shop" / "tools").mkdir(parents=True)
    for name, text in {
        "main.py": "import shop.desk\n",
        "prices.py": "import shop.desk, json\n",
        "notes.txt": "",
        "shop/__init__.py": "",
        "shop/desk.py": "def ask(prompt):\n    from .tools import till\n    return till.total()\n",
        "shop/tools/__init__.py": "",
        "shop/tools/till.py": "from prices import *\nfrom ... import nothing\n",
        "shop/unused.py": "this is no Python",
    }.items():
        (folder / name).write_text(text)
    suite.write_text(re.sub("model: scripted.*", f"{asked}}}", SUITE))
    before = arm_of(load_suite(suite), "agent")
    with (folder / edited).open("a") as file:
        file.write("# better\n")
    after = arm_of(load_suite(suite), "agent")
    assert [part for part in before if before[part] != after[part]] == ["program"] * counts


GRADED = """
name: graded
systems:
  - {name: agent, command: "echo hello"}
tasks:
  - {name: a, prompt: hi, runs: 4, expect: [{command: [sh, check.sh]}]}
"""


@pytest.fixture
def grader(suite):
    """The grader of a suite of which a run is stored."""
    suite.write_text(GRADED)
    grader = suite.with_name("check.sh")
    grader.write_text("exit 0\n")
    passhat.run(suite, store="h.db")
    return grader


def outcome_names(answer):
    return [trial.outcome.name for trial in answer.trials]


def test_trials_of_two_graders_are_not_mixed_unless_that_is_asked_for(grader):
    grader.write_text("exit 1\n")
    told = "the graders of agent have changed since run .* was started: old and new trials would"
    with pytest.raises(HistoryError, match=told):
        passhat.resume_run(store="h.db", runs=6)
    (stored,) = History.open("h.db").runs()
    assert (stored.trials, stored.status) == (4, "finished"), "nothing was touched"
    mixed = passhat.resume_run(store="h.db", runs=6, changed=True)
    assert outcome_names(mixed) == ["PASSED"] * 4 + ["FAILED"] * 2
    said = "the graders of agent have changed since the run began"
    assert any(note.startswith(said) for note in mixed.warnings)
    # It is the grader that the run last went on with: nothing new is mixed in.
    again = passhat.resume_run(store="h.db", runs=7)
    assert any(note.startswith(said) for note in again.warnings)


def test_the_same_request_with_another_grader_is_a_new_run(suite, grader):
    (first,) = History.open("h.db").runs()
    assert passhat.run(suite, store="h.db", resume=True).run == first.key
    grader.write_text("exit 1\n")
    assert passhat.run(suite, store="h.db", resume=True).run != first.key


def test_a_grader_that_was_mended_goes_on_where_nothing_but_errors_is_stored(suite, grader):
    grader.write_text("exit 2\n")
    first = passhat.run(suite, store="e.db", keep_going=True)
    assert set(outcome_names(first)) == {"ERRORED"}
    grader.write_text("exit 0\n")
    with pytest.raises(HistoryError, match="the graders of agent have changed"):
        passhat.resume_run(first.run, store="e.db", runs=5)
    again = passhat.resume_run(first.run, store="e.db", runs=5, retry_errors=True)
    assert outcome_names(again) == ["PASSED"] * 5
    assert not [note for note in again.warnings if "mixed" in note]


def test_a_bytecode_cache_and_a_look_by_git_are_no_change_of_a_folder(tmp_path):
    (tmp_path / "hidden" / ".git").mkdir(parents=True)
    (tmp_path / "hidden" / "test_it.py").write_text("import it\n")
    before = file_digest(tmp_path / "hidden")
    (tmp_path / "hidden" / "__pycache__").mkdir()
    (tmp_path / "hidden" / "__pycache__" / "test_it.pyc").write_text("compiled")
    (tmp_path / "hidden" / ".git" / "index").write_text("looked at")
    assert file_digest(tmp_path / "hidden") == before
    (tmp_path / "hidden" / ".git" / "HEAD").write_text("a commit")
    assert file_digest(tmp_path / "hidden") != before


@pytest.mark.parametrize(
    ("words", "edit", "why"),
    [
        ([], "", None),
        (["--trials", "9"], "", "it has other options"),
        ([], "# a comment\n", "its suite file was another"),
    ],
)
def test_an_unfinished_run_that_is_not_continued_is_named(suite, words, edit, why):
    cut = passhat.run(suite, store="h.db", max_calls=4)
    suite.write_text(SUITE + edit)
    again = CliRunner().invoke(main, ["run", "--resume", "--store", "h.db", *words])
    told = f"run {cut.run} is unfinished (4 of 10 trials): `passhat run --resume {cut.run}"
    assert (told in again.stderr) is (why is not None), again.stderr
    if why is not None:
        assert f"it is not continued now: {why}" in again.stderr
