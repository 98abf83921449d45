"""Labelling a stored run: in a real terminal, in a table, interrupted, and by two people."""

import csv
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import ArgumentError
from passhat.history import History
from passhat.journeys.labels import choose_trials
from passhat.records import Trials

ROWS = 60


class Folder:
    """Commands called in this process, in an empty directory; terminals are processes."""

    def __init__(self, directory):
        self.directory = directory

    def __call__(self, *arguments):
        return CliRunner().invoke(main, list(arguments))

    def write(self, name, text):
        (self.directory / name).write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


@pytest.fixture
def run(folder):
    """A stored run of twelve tasks with five trials each, two of three passed by the judge."""
    rows = [f"t{i // 5:02},{i % 5},{int(i % 3 > 0)},said {i}" for i in range(ROWS)]
    folder.write("log.csv", "\n".join(["task,trial,passed,output", *rows]))
    done = folder("history", "add", "log.csv")
    assert done.exit_code == 0, done.stderr
    return folder


def labels_in(shell):
    with History.open(shell.directory / ".passhat" / "history.db", read_only=True) as history:
        return history.labels(history.find_run("latest"))


class Terminal:
    """`passhat label` on a pseudo-terminal: wait for a text, press keys."""

    def __init__(self, shell, *words):
        self.ours, theirs = pty.openpty()
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "passhat", "label", *words],
            cwd=shell.directory,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""

    def wait_for(self, text, seconds=90):
        end = time.monotonic() + seconds
        while text not in self.said:
            assert time.monotonic() < end, self.said
            if select.select([self.ours], [], [], 1)[0]:
                try:
                    self.said += os.read(self.ours, 65536).decode()
                except OSError:  # Linux says so when the other end is closed
                    assert text in self.said, self.said
        before, _, self.said = self.said.partition(text)
        return before

    def press(self, keys):
        os.write(self.ours, keys.encode())

    def end(self):
        code = self.process.wait(timeout=90)
        os.close(self.ours)
        return code


def test_each_key_is_a_label_and_the_verdict_is_shown_only_after_it(run):
    terminal = Terminal(run, "latest", "--by", "ann", "--budget", "4")
    shown = terminal.wait_for("q stop: ")
    assert "4 trials to label, as ann" in shown
    assert "said " in shown
    assert "udge" not in shown
    terminal.press("p")
    terminal.wait_for("The judge agrees: it passed this trial.")  # the first is one that it passed
    terminal.wait_for("q stop: ")
    terminal.press("x")  # no answer: asked again
    terminal.wait_for("q stop: ")
    terminal.press("p")
    terminal.wait_for("The judge does not agree: it failed this trial.")
    terminal.wait_for("q stop: ")
    terminal.press("q")
    terminal.wait_for("passhat report")
    assert terminal.end() == 0
    said = [label for (label,) in labels_in(run).values()]
    assert [(one.passed, one.by, one.chosen) for one in said] == [(True, "ann", "verdict")] * 2
    assert all(one.chance and one.at for one in said)


def test_the_rubric_is_shown_where_the_suite_of_the_run_is_in_the_folder(folder):
    folder.write(
        "passhat.yml",
        "name: s\njudge: {model: local/smollm2}\nsystems: [{name: a, model: local/smollm2}]\n"
        "tasks: [{name: t0, prompt: Say hi., expect: [{judge: Is it polite?}]}]\n",
    )
    folder.write("log.csv", "task,trial,passed\nt0,0,1\nt0,1,0\nt1,0,1\n")
    assert folder("history", "add", "log.csv", "--suite", "s").exit_code == 0
    said = CliRunner().invoke(main, ["label", "--by", "ann"], input="ppp").stdout
    assert said.count("rubric: Is it polite?") == 2
    assert "3 trials to label" in said


@pytest.mark.slow("a process that is killed and started again")
def test_a_session_that_is_killed_loses_nothing_and_goes_on_where_it_was(run):
    terminal = Terminal(run, "latest", "--by", "ann", "--budget", "6")
    for _ in range(3):
        terminal.wait_for("q stop: ")
        terminal.press("f")
        terminal.wait_for("kept.")
    terminal.process.send_signal(signal.SIGKILL)
    terminal.end()
    kept = set(labels_in(run))
    assert len(kept) == 3
    terminal = Terminal(run, "latest", "--by", "ann", "--budget", "6")
    assert "3 trials to label" in terminal.wait_for("q stop: ")
    for _ in range(2):
        terminal.press("f")
        terminal.wait_for("q stop: ")
    terminal.press("f")
    terminal.wait_for("passhat judge")
    assert terminal.end() == 0
    assert kept < set(labels_in(run))
    assert len(labels_in(run)) == 6


def test_a_table_of_trials_to_label_is_filled_in_elsewhere_and_kept_by_all_or_none(run):
    assert run("label", "--by", "ann", "--budget", "30", "--export", "out.csv").exit_code == 0
    with (run.directory / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert "outcome" not in rows[0]
    for number, row in enumerate(rows):
        row["passed"] = "pass" if number % 2 else "fail"

    def write(rows):
        with (run.directory / "in.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    write([*rows[:-1], {**rows[-1], "passed": "perhaps"}])
    refused = run("label", "--import", "in.csv")
    assert refused.exit_code == 2
    assert "in.csv, line 31" in refused.stderr
    assert "perhaps" in refused.stderr
    write([*rows[:-1], {**rows[-1], "trial": "99"}])
    assert "has no trial 99" in run("label", "--import", "in.csv").stderr
    assert labels_in(run) == {}
    write(rows)
    assert "30 labels kept" in run("label", "--import", "in.csv").stdout
    assert {one.by for own in labels_in(run).values() for one in own} == {"ann"}
    assert "Corrected with 30 labels of people" in " ".join(run("report", "latest").stdout.split())
    assert "people read 30 of 60 trials" in " ".join(run("judge", "latest").stdout.split())
    # A second person is asked about one in five of them.
    run("label", "--by", "ben", "--budget", "30", "--export", "second.csv")
    assert len((run.directory / "second.csv").read_text().splitlines()) == 1 + 6


def test_more_budget_goes_on_where_less_ended():
    trials = Trials.from_columns(
        task=[f"t{i // 6}" for i in range(120)], passed=[i % 3 > 0 for i in range(120)]
    )
    for wanted in ("pass@1", "pass^3"):
        few, many = (choose_trials(trials, wanted, budget, seed="k") for budget in (20, 40))
        assert [one.key for one in few] == [one.key for one in many][: len(few)]
        assert len({one.key for one in many}) == 40
        again = choose_trials(trials, wanted, 40, seed="another run")
        assert [one.key for one in again] != [one.key for one in many]


def test_for_pass_hat_k_whole_tasks_are_chosen_and_for_pass_at_1_both_verdicts():
    trials = Trials.from_columns(
        task=[f"t{i // 8}" for i in range(160)], passed=[i % 10 > 0 for i in range(160)]
    )
    chosen = choose_trials(trials, "pass^3", 50)
    assert {sum(one.key[1] == task for one in chosen) for task in {o.key[1] for o in chosen}} == {5}
    assert {round(one.chance, 6) for one in chosen} == {round(10 / 20 * 5 / 8, 6)}
    verdict = dict(zip(zip(trials.task.texts(), trials.trial.tolist(), strict=True),
                       trials.outcome.tolist(), strict=True))  # fmt: skip
    judged = [verdict[one.key[1:]] for one in choose_trials(trials, "pass@1", 20)]
    assert sum(judged) == 10
    every = choose_trials(trials, "pass@1", 60)  # only 16 failed: the rest are others
    assert sum(verdict[one.key[1:]] for one in every) == 44


def test_for_pass_hat_k_the_same_tasks_are_labelled_for_every_agent():
    rng = random.Random(2)
    for _ in range(30):
        agents, tasks = rng.randint(1, 4), rng.randint(2, 30)
        keys = [
            (f"bot{a}", f"t{t}")
            for a in range(agents)
            for t in range(tasks)
            for _ in range(rng.randint(5, 8))
        ]
        verdicts = [rng.random() < 0.6 for _ in keys]
        names, own = zip(*keys, strict=True)
        trials = Trials.from_columns(system=names, task=own, passed=verdicts)
        budget = rng.randint(1, 200)
        chosen = choose_trials(trials, "pass^3", budget)
        by_agent = {}
        for one in chosen:
            by_agent.setdefault(one.key[0], []).append(one.key[1])
        assert len(by_agent) == agents
        assert len({tuple(sorted(labelled)) for labelled in by_agent.values()}) == 1
        assert len(chosen) <= max(budget, 5 * agents)


@pytest.mark.parametrize("wanted", ["pass@3", "pass^0", "mean_score", "pass"])
def test_a_number_that_labels_cannot_give_is_refused(wanted):
    with pytest.raises(ArgumentError, match=r"must be pass@1 or pass\^k"):
        choose_trials(Trials.from_columns(task=["a"], passed=[1]), wanted)


@pytest.mark.parametrize("where", ["beside", "option", "variable"])
def test_check_warns_of_such_a_gate_where_the_newest_labels_show_it(folder, monkeypatch, where):
    rows = [f"t{i // 5:02},{i % 5},{int(i % 10 > 0)}" for i in range(100)]
    folder.write("log.csv", "\n".join(["task,trial,passed", *rows]))
    suite = """
        name: s
        tasks: [{name: t00, prompt: Say hi., expect: [{contains: hi}]}]
        systems: [{name: agent, model: local/smollm2}]
        gates: ["pass@1 >= 0.97"]
    """
    folder.write("passhat.yml", "\n".join(line[8:] for line in suite.splitlines()))
    store = () if where == "beside" else ("--store", "elsewhere.db")
    assert folder("history", *store, "add", "log.csv", "--suite", "s").exit_code == 0
    assert "no number of trials" not in folder("check", "passhat.yml", *store).stdout
    assert folder("label", "--budget", "60", "--export", "read.csv", *store).exit_code == 0
    lines = (folder.directory / "read.csv").read_text().splitlines()
    place = lines[0].split(",").index("passed")
    filled = [lines[0]]
    for number, line in enumerate(lines[1:]):
        cells = line.split(",")
        cells[place] = "fail" if number % 7 == 0 else "pass"
        filled.append(",".join(cells))
    folder.write("read.csv", "\n".join(filled))
    assert folder("label", "--import", "read.csv", *store).exit_code == 0
    if where == "variable":
        monkeypatch.setenv("PASSHAT_STORE", "elsewhere.db")
        store = ()
    said = " ".join(folder("check", "passhat.yml", *store).stdout.split())
    assert "no number of trials can pass pass@1 >= 0.97" in said
    assert ("store elsewhere.db" in said) == (where != "beside")
