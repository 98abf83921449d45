"""A run that its gates ended early: everywhere counts and a verdict, nowhere a rate."""

import html
import json
import re

import pytest
from click.testing import CliRunner

from passhat import gate, read_trials, report
from passhat.cli import main
from passhat.records.trial import STOPPED_EARLY

SUITE = """\
name: sums
agents:
  - name: sum
    model: scripted
    runs: 30
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4"}, {answer: "five"}, {answer: "4"}]
  - name: product
    model: scripted
    runs: 30
    prompt: What is 3 * 3?
    expect: [{contains: "9"}]
    script: [{answer: "9"}, {answer: "9"}, {answer: "9"}, {answer: "ten"}]
gates: [pass^3 >= 0.9]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run of as many trials as were planned, and one that its gate ended early.

    The second is the run of a pull request: what its reviewers read is the summary of the job.
    """
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "passhat.yml").write_text(SUITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        typed("run", "-q")
        patch.setenv("GITHUB_ACTIONS", "true")
        patch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
        typed("run", "-q", "--until-decided", "--github")
    return folder


PAIR = """\
name: pair
systems:
  - {name: without, model: scripted, script: [{answer: "4"}, {answer: "five"}, {answer: "five"}]}
  - {name: with, model: scripted, script: [{answer: "4"}]}
defaults: {runs: 60}
tasks:
  - {name: sum, prompt: What is 2 + 2?, expect: [{contains: "4"}]}
  - {name: product, prompt: What is 2 * 2?, expect: [{contains: "4"}]}
gates: [better_than without]
"""


def test_two_agents_whose_gate_ended_the_run_differ_by_bounds_and_not_by_a_rate(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passhat.yml").write_text(PAIR)
    ran = typed("run", "-q", "--until-decided")
    low = re.search(r"\[(\+\S+), \+\S+\] points", ran)[1]
    assert ran.startswith("PASS  with: better than without after ")
    assert f"changed by at least {low} points" in " ".join(ran.split())
    screens = [typed(*words) for words in (["report", "latest"], ["report", "latest", "-v"])]
    for text in (ran, *screens, typed("compare", "latest")):
        text = " ".join(text.split())
        assert not re.search(r"(?<!least )[+-]\d+\.\d points", text), text


def typed(*words):
    return CliRunner().invoke(main, list(words)).stdout


def rates_of(run):
    """How pass@1 and pass^3 of a run would read, in percent."""
    written = json.loads(typed("report", run, "--json"))["systems"][0]["metrics"]
    values = [100 * written[name]["value"] for name in ("pass^1", "pass^3", "pass^5")]
    return [f"{value:.{digits}f}" for value in values for digits in (0, 1)]


def test_no_screen_or_page_of_a_run_that_its_gates_ended_early_has_its_rate(folder, monkeypatch):
    monkeypatch.chdir(folder)
    runs = json.loads(typed("history", "--json"))["runs"]
    stopped, whole = runs
    assert (stopped["stopped_early"], stopped["decided"], whole["stopped_early"]) == (
        True, "FAIL", False,
    )  # fmt: skip
    assert stopped["trials"] < whole["trials"] == 60
    pair = (stopped["run"], whole["run"])
    screens = {
        "report": ["report", "latest"],
        "report -v": ["report", "latest", "-v"],
        "markdown": ["report", "latest", "-o", "-.md"],
        "compare": ["compare", *pair],
        "compare -v": ["compare", *pair, "-v"],
        "compare, markdown": ["compare", *pair, "-o", "-.md"],
        "resumed": ["run", "-q", "--resume", "latest"],
        "gate": ["gate", "latest", "-r", "pass^3 >= 0.9"],
        "gate -v": ["gate", "latest", "-r", "pass^3 >= 0.9", "-v"],
        "undecided gate": ["gate", "latest", "-r", "pass@1 >= 0.6"],
        "gate on a point": ["gate", "latest", "-r", "pass@1 >= 0.6", "--evidence", "point"],
        "gate, markdown": ["gate", "latest", "-r", "pass^3 >= 0.9", "-o", "-.md"],
        "against": ["gate", stopped["run"], "--against", whole["run"]],
        "against -v": ["gate", stopped["run"], "--against", whole["run"], "-v"],
    }
    texts = {name: typed(*words) for name, words in screens.items()}
    pages = {
        "page": ["report", "latest"],
        "compared": ["compare", *pair],
        "judged": ["gate", "latest", "-r", "pass^3 >= 0.9"],
    }
    for name, words in pages.items():
        typed(*words, "-o", f"{name}.html")
        page = re.sub(
            r"<(script|style).*?</\1>", "", (folder / f"{name}.html").read_text(), flags=re.S
        )
        texts[name] = html.unescape(re.sub(r"<[^>]+>", " ", page))
    texts["comment"] = (folder / "summary.md").read_text()
    assert "stopped early, with a verdict and no rate" in texts["comment"]
    assert "Least reliable tasks" in texts["comment"]
    texts["JSON"] = json.loads(typed("report", "latest", "--json"))["systems"][0]["verdict"]
    texts["verdict"] = repr(gate("latest", "pass^3 >= 0.9")[0])
    texts["print(report)"], texts["repr"] = str(report("latest")), repr(report("latest"))
    rates = set(rates_of("latest"))
    for name, text in texts.items():
        seen = set(re.findall(r"(?<![\d.])(\d+(?:\.\d+)?)(?:%| \[)", text))
        assert not seen & rates, (name, text)
    assert re.search(r"^  sum +\d+/\d+ +\d+/30$", texts["compare -v"], re.MULTILINE)
    assert not re.search(r"flipped|shown better|diff\.", texts["compare -v"])
    plan = CliRunner().invoke(main, ["plan", "latest"])
    assert plan.exit_code == 2
    assert re.search(r"--rate must be given: run \w+: its gates ended it early", plan.stderr)
    assert "Assumed: pass@1 80%" in typed("plan", "latest", "--rate", "0.8")
    first, *rest = texts["report"].splitlines()
    assert re.search(
        r"stopped early, with a verdict and no rate: \d+ of \d+ trials passed\.", first
    )
    assert any(line.startswith("FAIL  pass^3 >= 0.9, after ") for line in rest)
    assert "passhat run" in texts["report"]
    assert "has a verdict, not a rate" in " ".join(texts["compare"].split())


def test_lists_and_trends_show_a_verdict_in_the_place_of_its_rate(folder, monkeypatch):
    monkeypatch.chdir(folder)
    listed = typed("history").splitlines()
    assert re.search(r" \d+ +-  stopped early: FAIL$", listed[1])
    assert re.search(r" 60 +\d+\.\d%$", listed[2])
    drawn = typed("trend").splitlines()
    assert "(the last stopped early)" in " ".join(drawn[:2])
    assert any(re.search(r" - +stopped early$", line) for line in drawn)


def test_a_stored_run_keeps_the_verdict_that_ended_it_with_its_error_rate(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = " ".join(typed("report", "latest", "-v").split())
    assert "a FAIL is wrong with a chance of at most 5%" in text
    assert "no known error rate" not in text


def test_the_gate_that_ended_a_run_says_its_own_verdict_when_it_is_asked_again(folder, monkeypatch):
    """The rule was fixed before the run; another gate was not, and has no known error rate."""
    monkeypatch.chdir(folder)
    again = typed("gate", "latest", "-r", "pass^3 >= 0.9")
    ran = typed("gate", "latest")  # by the suite of the folder, from the journal
    assert again.splitlines()[0].startswith(ran.splitlines()[0].partition(":")[0])
    assert "Wrong at most 5% of the time." in again
    assert "no known error rate" not in again
    verdict = json.loads(typed("gate", "latest", "-r", "pass^3 >= 0.9", "--json"))["verdicts"][0]
    assert (verdict["evidence"], verdict["alpha"], verdict["beta"]) == ("sequential", 0.05, 0.05)
    for words in (["-r", "pass^3 >= 0.8"], ["-r", "pass^3 >= 0.9", "--confidence", "0.9"]):
        text = " ".join(typed("gate", "latest", *words).split())
        assert "no known error rate" in text
        assert "; --evidence sequential has one." in text


FIVE_TASKS = """\
name: five
defaults: {runs: 10}
systems: [{name: agent, python: "MODULE:agent"}]
tasks:
"""
AGENT = """\
import random
def agent(prompt, seed, values=None):
    share = random.Random(7919 * seed + 1).random()
    return "yes" if share < %s else "no"
"""


@pytest.mark.parametrize(
    ("rate", "demands", "seed"),
    [
        (0.95, ["pass^2 >= 0.8", "error_rate <= 0.1"], 3),
        (0.06, ["every task: pass^2 >= 0.7"], 1),
        (1.01, ["pass^3 >= 0.8"], 1),
        (0.9, ["pass^2 >= .6"], 8),
        (0.9, ["pass^2 >= 0.75", "pass@1 >= 0.8"], 2),
    ],
)
def test_gate_says_what_a_run_said_whether_it_ended_early_or_at_its_limit(
    tmp_path, monkeypatch, rate, demands, seed
):
    """It judged other runs by bounds, which passed what the run had left undecided."""
    tasks = (f"  - {{name: t{i}, prompt: q, expect: [{{exact: 'yes'}}]}}\n" for i in range(5))
    module = f"agent_at_{100 * rate:.0f}"  # of its own: a process imports a module once
    suite = FIVE_TASKS.replace("MODULE", module) + "".join(tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    (tmp_path / f"{module}.py").write_text(AGENT % rate)
    monkeypatch.chdir(tmp_path)
    require = [word for demand in demands for word in ("-r", demand)]

    def judged(*words):
        answer = CliRunner().invoke(main, [*words, "--json"])
        verdicts = json.loads(answer.stdout)["verdicts"]
        facts = ("require", "verdict", "runs", "evidence", "alpha", "beta", "sentence")
        return answer.exit_code, [[verdict[fact] for fact in facts] for verdict in verdicts]

    ran = judged("run", "-q", *require, "--until-decided", "--seed", str(seed))
    for more in ([], ["--evidence", "sequential"], ["--suite", "passhat.yml"]):
        assert judged("gate", "latest", *require, *more) == ran, more
    alone = judged("gate", "latest", "-r", demands[0], "--suite", "passhat.yml")[1]
    assert alone == ran[1][:1]
    bounds = judged("gate", "latest", *require, "--evidence", "bound")[1]
    assert {tuple(verdict[3:6]) for verdict in bounds} == {("bound", None, None)}


@pytest.fixture
def never_fails(tmp_path, monkeypatch):
    """A suite of five tasks, and an agent that passes them all."""
    tasks = (f"  - {{name: t{i}, prompt: q, expect: [{{exact: 'yes'}}]}}\n" for i in range(5))
    suite = FIVE_TASKS.replace("MODULE", "never_fails") + "".join(tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    (tmp_path / "never_fails.py").write_text(AGENT % 2)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("never_fails")
def test_trials_that_another_gate_judged_are_not_called_begun():
    """Gates on a pass^k and on errors have trials of their own: each judged what it asked for."""
    demands = ["-r", "pass^3 >= 0.8", "-r", "error_rate <= 0.1"]
    text = " ".join(typed("run", "-q", *demands, "--until-decided").split())
    trials = json.loads(typed("history", "--json"))["runs"][0]["trials"]
    after = [int(n) for n in re.findall(r" after (\d+) trials", text)]
    judged, begun = map(int, re.search(r"(\d+) trials judged; (\d+) more had", text).groups())
    assert (judged, judged + begun) == (sum(after), trials)
    # A run may have made all its trials until its verdict was known: then reports have its rates.
    assert "Wrong at most 5% of the time. It is a verdict, not a rate." in text
    assert "Stopped early" not in text


@pytest.mark.usefixtures("never_fails")
def test_a_run_that_is_resumed_for_more_trials_and_makes_none_is_as_it_was():
    """Its verdict fell within the first plan: no look was added, and no chance of an error."""
    typed("run", "-q", "-r", "pass^3 >= 0.8", "--until-decided")

    def kept():
        judged = json.loads(typed("gate", "latest", "-r", "pass^3 >= 0.8", "--json"))
        return judged, typed("history"), json.loads(typed("history", "--json"))["runs"][0]

    before = kept()
    resumed = typed("run", "-q", "--resume", "latest", "--trials", "20")
    assert "Wrong at most 5% of the time." in resumed
    assert kept() == before


def test_a_list_of_gates_without_error_rates_keeps_its_numbers(tmp_path, monkeypatch):
    """They were cut off: "pass^3 is 64.8% in 100 trials, at most 79.1…"."""
    monkeypatch.chdir(tmp_path)
    tasks = (f"  - {{name: t{i}, prompt: q, expect: [{{exact: 'yes'}}]}}\n" for i in range(5))
    suite = FIVE_TASKS.replace("MODULE", "nearly_never_fails") + "".join(tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    (tmp_path / "nearly_never_fails.py").write_text(AGENT % 0.9)
    typed("run", "-q", "-r", "pass^2 >= 0.75", "--seed", "2", "--until-decided")
    text = typed("gate", "latest", "-r", "pass^3 >= 0.8", "-r", "error_rate <= 0.02")
    assert "…" not in text
    assert re.search(r"50 trials and may lie between [\d.]+% and [\d.]+%", " ".join(text.split()))


def test_no_number_of_further_trials_is_promised_where_a_bound_promises_nothing(
    tmp_path, monkeypatch
):
    """The run said how to decide it, and the bound on it named another number of trials."""
    monkeypatch.chdir(tmp_path)
    tasks = (f"  - {{name: t{i}, prompt: q, expect: [{{exact: 'yes'}}]}}\n" for i in range(5))
    suite = FIVE_TASKS.replace("MODULE", "nearly_never_fails") + "".join(tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    (tmp_path / "nearly_never_fails.py").write_text(AGENT % 0.9)
    demand = ["-r", "pass^2 >= 0.75"]
    assert "Decide it: " in typed("run", "-q", *demand, "--seed", "2", "--until-decided")
    for more in ([], ["--evidence", "bound"]):
        (verdict,) = json.loads(typed("gate", "latest", *demand, *more, "--json"))["verdicts"]
        assert (verdict["verdict"], verdict["more_runs"]) == ("UNDECIDED", None)
        assert not re.search(r"[\d,]+ more trial", verdict["sentence"])


ERRING = """\
import random
def agent(prompt, seed, values=None):
    if random.Random(7919 * seed + 1).random() < 0.06:
        raise RuntimeError("provider down")
    return "yes"
"""


def test_errored_trials_are_counted_out_of_the_trials_that_they_are_of(tmp_path, monkeypatch):
    """4% "over 50 tasks" of five stood beside 3 of 50 trials, which were another gate's."""
    monkeypatch.chdir(tmp_path)
    tasks = (f"  - {{name: t{i}, prompt: q, expect: [{{exact: 'yes'}}]}}\n" for i in range(5))
    suite = FIVE_TASKS.replace("MODULE", "sometimes_errs") + "".join(tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    (tmp_path / "sometimes_errs.py").write_text(ERRING)
    demands = ["-r", "error_rate <= 0.1", "-r", "pass^3 >= 0.7"]
    ran = " ".join(typed("run", "-q", *demands, "--until-decided", "--seed", "4").split())
    run = json.loads(typed("history", "--json"))["runs"][0]
    assert run["errored"] > 1
    assert re.search(r"error rate is [\d.]+% over \d+ trials of tasks chosen at random", ran)
    of_all = f"{run['errored']} of {run['trials']} trials"
    assert f"Errors: {of_all}, counted as failed." in ran
    again = " ".join(typed("gate", "latest", *demands).split())
    assert f"{of_all} errored and count as failed." in again
    typed("run", "-q", "-r", "error_rate <= 0.5", "--until-decided", "--seed", "4")
    run = json.loads(typed("history", "--json"))["runs"][0]
    assert run["stopped_early"]
    other = typed("gate", "latest", "-r", "error_rate <= 0.05")
    assert f"{run['errored']} of {run['trials']} trials errored." in " ".join(other.split())


@pytest.mark.parametrize("demand", [["-r", "pass^3 >= 0.9"], []])
def test_who_asks_a_run_that_ended_early_for_a_bound_is_told_that_it_has_no_error_rate(
    folder, monkeypatch, demand
):
    monkeypatch.chdir(folder)
    asked = ["gate", "latest", *demand]
    for more, evidence, alpha in (
        ([], "sequential", 0.05),
        (["--evidence", "sequential"], "sequential", 0.05),
        (["--evidence", "bound"], "bound", None),
    ):
        (verdict,) = json.loads(typed(*asked, *more, "--json"))["verdicts"]
        assert (verdict["evidence"], verdict["alpha"], verdict["beta"]) == (evidence, alpha, alpha)
        assert verdict["terms"]["evidence"] in (None, evidence)
    text = " ".join(typed(*asked, "--evidence", "bound").split())
    assert "The verdict has no known error rate" in text
    assert "bounds are for a fixed number of trials; --evidence sequential has one." in text


def test_a_gate_on_a_bound_of_a_run_until_decided_keeps_its_error_rate(tmp_path, monkeypatch):
    """Its trials were fixed: they end early only where those left cannot change the verdict."""
    monkeypatch.chdir(tmp_path)
    bound = "gates: [{require: pass^2 >= 0.9, evidence: bound}]"
    (tmp_path / "passhat.yml").write_text(SUITE.replace("gates: [pass^3 >= 0.9]", bound))
    (ran,) = json.loads(typed("run", "-q", "--until-decided", "--json"))["verdicts"]
    (again,) = json.loads(typed("gate", "latest", "-r", "pass^2 >= 0.9", "--json"))["verdicts"]
    facts = ("verdict", "evidence", "runs", "alpha", "beta")
    assert [again[fact] for fact in facts] == [ran[fact] for fact in facts]
    assert (ran["evidence"], ran["beta"]) == ("bound", 0.05)


def test_a_bound_that_is_asked_for_beside_the_gates_of_the_suite_is_answered(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["-r", "pass@1 >= 0.1", "--evidence", "bound", "--suite", "passhat.yml"]
    verdicts = json.loads(typed("gate", "latest", *words, "--json"))["verdicts"]
    assert [verdict["require"] for verdict in verdicts] == ["pass@1 >= 0.1", "pass^3 >= 0.9"]
    assert {verdict["evidence"] for verdict in verdicts} == {"bound"}
    assert "no known error rate" in " ".join(typed("gate", "latest", *words).split())


def test_results_that_were_written_to_a_file_are_read_as_stopped_early(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("stopped.jsonl", "stopped.csv", "stopped.parquet"):
        typed("convert", "latest", "-o", name)
        assert "stopped early, with a verdict and no rate" in typed("report", name)
        judged = typed("gate", name, "-r", "pass^3 >= 0.9")
        assert "no known error rate" in " ".join(judged.split())
    assert typed("convert", "latest~1", "-o", "-.csv").partition("\n")[0].endswith(",started")
    (folder / "saved.json").write_text(typed("report", "latest", "--json"))
    assert "stopped early, with a verdict and no rate" in typed("report", "saved.json")
    (folder / "events.ndjson").write_text(typed("run", "-q", "--until-decided", "--as", "ndjson"))
    assert "stopped early, with a verdict and no rate" in typed("report", "events.ndjson")


def test_converting_a_run_says_what_its_file_cannot_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passhat.yml").write_text(SUITE)

    def noted(*words):
        return CliRunner().invoke(main, ["convert", "latest", "-o", *words]).stderr

    typed("run", "-q")
    assert "cannot" not in noted("a.csv") + noted("set")
    assert noted("a.csv") == "wrote 60 trials to a.csv\n"
    typed("run", "-q", "--resume", "latest", "--trials", "40")
    for name in ("b.csv", "b.jsonl", "set"):
        assert "was judged after fewer trials and then extended, which no file" in noted(name)
    typed("run", "-q", "--until-decided")
    assert "ended when its gates were decided, which no dataset says" in noted("set")
    assert noted("c.csv").startswith("wrote ")


def test_how_trials_ended_is_a_word_and_the_notes_of_older_files_are_understood(
    folder, monkeypatch
):
    monkeypatch.chdir(folder)
    stopped = json.loads(typed("history", "--json"))["runs"][0]["run"]
    typed("convert", stopped, "-o", "word.jsonl")
    first, rest = (folder / "word.jsonl").read_text().split("\n", 1)
    assert json.loads(first)["ended"] == "early"
    old = {"schema": json.loads(first)["schema"], "notes": [f"run {stopped}: {STOPPED_EARLY}"]}
    (folder / "note.jsonl").write_text(f"{json.dumps(old)}\n{rest}")
    for name in ("word.jsonl", "note.jsonl"):
        sources = read_trials(folder / name).sources
        assert [(source.ended, source.notes) for source in sources] == [("early", ())]
    saved = json.loads(typed("report", stopped, "--json"))
    assert [source["ended"] for source in saved["provenance"]["sources"]] == ["early"]
    for source in saved["provenance"]["sources"]:
        del source["ended"]  # its note is left
    (folder / "older.json").write_text(json.dumps(saved))
    assert read_trials(folder / "older.json").sources[0].ended == "early"
