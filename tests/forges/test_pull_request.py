"""The commands tell a pull request what reviewers should know, through a real server."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.forges.forge_server import forge_server

from passhat.cli import main
from passhat.history import History

HOSTILE = "x</td><script>alert(1)</script> | @everyone\n## forged ![i](http://e/x.png)"


@pytest.fixture
def forge():
    with forge_server() as running:
        yield running


@pytest.fixture
def job(forge, tmp_path, monkeypatch):
    """A folder that is the checkout of a pull request in GitHub Actions."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "abc"}}}))
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "octo/agent",
        "GITHUB_API_URL": forge.url,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_TOKEN": "t",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def passhat(*words: str):
    return CliRunner().invoke(main, list(words))


def write(path: Path, passes: int, *, task: str = "refund") -> None:
    rows = [{"task": task, "passed": i < passes} for i in range(10)]
    rows += [{"task": f"other {i % 5}", "passed": True} for i in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_failed_gate_is_a_comment_a_red_check_an_annotation_and_a_summary(forge, job):
    write(job / "new.jsonl", 0)
    write(job / "old.jsonl", 10)
    done = passhat("gate", "new.jsonl", "--against", "old.jsonl", "-r", "pass^3 >= 0.99")
    assert done.exit_code == 1, done.output
    (comment,) = forge.comments.values()
    assert "FAIL" in comment["body"]
    assert "| refund | 10/10 | 0/10 |" in comment["body"]
    assert [check["conclusion"] for check in forge.checks] == ["failure"]
    assert "::error title=passhat%3A FAIL::" in done.output
    assert "refund: 10/10 before, 0/10 now" in done.output
    assert "FAIL" in (job / "summary.md").read_text(encoding="utf-8")


def test_a_job_without_its_repository_is_judged_and_says_what_was_not_posted(
    forge, job, monkeypatch
):
    write(job / "new.jsonl", 10)
    monkeypatch.delenv("GITHUB_REPOSITORY")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    done = passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.5")
    assert done.exit_code == 0, done.output
    assert "no comment was written: GITHUB_REPOSITORY is not set" in done.output
    assert "no check was written: GITHUB_REPOSITORY is not set" in done.output
    assert "the step summary cannot be written" in done.output
    assert forge.calls == []


def test_the_same_command_again_keeps_one_comment_up_to_date(forge, job):
    for passes in (0, 10):
        write(job / "new.jsonl", passes)
        passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.9")
    (comment,) = forge.comments.values()
    assert "PASS" in comment["body"]
    assert [check["conclusion"] for check in forge.checks] == ["failure", "success"]


def test_each_of_several_systems_is_shown_before_and_after(forge, job):
    for name, passes in (("old.jsonl", {"a": 9, "b": 9}), ("new.jsonl", {"a": 9, "b": 1})):
        rows = [
            {"system": system, "task": f"t{task}", "trial": trial, "passed": trial < passes[system]}
            for system in "ab"
            for task in range(6)
            for trial in range(10)
        ]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = passhat("gate", "new.jsonl", "--against", "old.jsonl", "--github")
    assert done.exit_code == 1, done.output
    (comment,) = forge.comments.values()
    sections = comment["body"].split("Before and after of ")
    assert [text[0] for text in sections[1:]] == ["a", "b"]
    assert "t0 | 9/10 | 1/10" in sections[2].replace("  ", " ")
    assert "9/10" not in sections[1]


def test_tasks_that_got_worse_come_before_those_that_got_better_each_with_its_trials(forge, job):
    for name, passes in (("old.jsonl", (10, 10, 0, 0)), ("new.jsonl", (0, 2, 10, 9))):
        rows = [
            {"task": f"t{task}", "trial": trial, "passed": trial < passed}
            for task, passed in enumerate(passes)
            for trial in range(10)
        ]
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (job / "folder").mkdir()
    Path("old.jsonl").rename(job / "folder" / "old.jsonl")
    passhat("gate", "new.jsonl", "--against", str(job / "folder" / "old.jsonl"), "--github")
    (comment,) = forge.comments.values()
    table = [line.strip("| ").split(" | ") for line in comment["body"].splitlines()
             if line.startswith(("| t", "| 2 tasks"))]  # fmt: skip
    assert [row[0] for row in table] == [
        "2 tasks got worse", "t0", "t1", "2 tasks got better", "t2", "t3",
    ]  # fmt: skip
    assert table[2] == ["t1", "10/10", "2/10", "●" * 10, "●●" + "○" * 8]
    assert "mean score" not in comment["body"]
    assert str(job) not in comment["body"]
    assert "against old.jsonl" in comment["body"]


def test_several_agents_stand_in_one_table_the_most_reliable_first(forge, job):
    rows = [
        {"system": system, "task": f"t{task}", "trial": trial, "passed": task < passes}
        for system, passes in (("low", 1), ("high", 5), ("mid", 3))
        for task in range(6)
        for trial in range(4)
    ]
    (job / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert passhat("report", "new.jsonl", "--github").exit_code == 0
    (comment,) = forge.comments.values()
    body = comment["body"]
    assert re.findall(r"^\| (low|mid|high) ", body, re.MULTILINE) == ["high", "mid", "low"]
    assert "Least reliable tasks" not in body
    (headline,) = re.findall(r"^\*\*(.*)\*\*$", body, re.MULTILINE)
    assert body.count(headline) == 1


def test_an_open_verdict_is_neutral_and_informational_never_fails(forge, job):
    (job / "few.jsonl").write_text('{"task": "a", "passed": true}\n' * 3)
    assert passhat("gate", "few.jsonl", "-r", "pass^1 >= 0.9").exit_code == 4
    write(job / "new.jsonl", 0)
    words = ("gate", "new.jsonl", "-r", "pass^1 >= 0.99")
    assert passhat(*words, "--informational").exit_code == 0
    assert [check["conclusion"] for check in forge.checks] == ["neutral", "neutral"]


def test_what_a_task_is_called_cannot_forge_anything_in_the_comment(forge, job):
    write(job / "new.jsonl", 3, task=HOSTILE)
    write(job / "old.jsonl", 10, task=HOSTILE)
    done = passhat("gate", "new.jsonl", "--against", "old.jsonl", "-r", "pass^1 >= 0.99")
    (comment,) = forge.comments.values()
    assert "<script>" not in comment["body"]
    assert "\n## forged" not in comment["body"]
    assert "![i](" not in comment["body"]
    commands = [line for line in done.output.splitlines() if line.startswith("::")]
    assert all(line.startswith(("::error title=", "::warning title=")) for line in commands)


@pytest.mark.parametrize("task", ["::stop-commands::x", "##vso[task.complete]", "##[error]no"])
def test_what_a_task_is_called_is_no_command_in_the_log_of_a_job(forge, job, task):
    rows = [{"task": task, "passed": i < 3} for i in range(10)]
    (job / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words in (
        ("report", "new.jsonl"),
        ("gate", "new.jsonl", "-r", "pass^1 >= 0.9"),
        ("flaky",),
    ):
        done = passhat(*words, *(["new.jsonl"] if words == ("flaky",) else []))
        shown = [line.strip() for line in done.output.splitlines()]
        assert not any(line.startswith(("::stop", "##")) for line in shown)
        assert "##vso[" not in done.output


def test_a_token_that_may_only_read_leaves_the_verdict_and_says_so(forge, job):
    forge.may_write = False
    write(job / "new.jsonl", 10)
    done = passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.5")
    assert done.exit_code == 0
    assert "no comment was written" in done.output
    assert "PASS" in (job / "summary.md").read_text(encoding="utf-8")


def test_a_forge_that_is_down_does_not_change_the_verdict(forge, job, monkeypatch):
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9/")
    write(job / "new.jsonl", 10)
    done = passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.5")
    assert done.exit_code == 0
    assert "nothing was posted on the pull request" in done.output


def test_nothing_is_posted_outside_a_job_or_where_it_is_not_wanted(forge, job, monkeypatch):
    write(job / "new.jsonl", 10)
    passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.5", "--no-github")
    monkeypatch.delenv("GITHUB_ACTIONS")
    passhat("gate", "new.jsonl", "-r", "pass^1 >= 0.5")
    assert forge.calls == []


def test_a_report_is_commented_without_a_verdict(forge, job):
    write(job / "new.jsonl", 5)
    assert passhat("report", "new.jsonl").exit_code == 0
    assert [check["conclusion"] for check in forge.checks] == ["neutral"]
    (comment,) = forge.comments.values()
    assert "refund" in comment["body"]


def test_a_run_is_held_against_the_branch_that_it_is_to_be_merged_into(forge, job, monkeypatch):
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    suite = job / "passhat.yml"
    suite.write_text(
        "name: smoke\nsystems:\n  - name: agent\n    command: ['echo', 'hello']\n"
        "tasks:\n  - name: works\n    prompt: hi\n    runs: 4\n    expect: [{contains: hello}]\n"
        "gates: ['pass^1 >= 0.2']\n"
    )
    first = passhat("run", "-q")
    assert first.exit_code in (0, 4), first.output
    with History.open(job / ".passhat" / "history.db") as history:
        history.tag(history.find_run("latest"), "main")
    assert passhat("run", "-q").exit_code in (0, 4)
    (comment,) = forge.comments.values()
    assert "against main" in comment["body"]


def test_a_run_that_is_shown_to_be_worse_than_its_base_branch_fails_the_job(
    forge, job, monkeypatch
):
    """The suite demands nothing: what is on main is the demand."""
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    suite = job / "passhat.yml"
    agent = (
        "name: smoke\nsystems:\n  - name: agent\n    command: ['echo', '{word}']\n"
        "tasks:\n  - name: works\n    prompt: hi\n    runs: 12\n    expect: [{{contains: hello}}]\n"
        "  - name: too\n    prompt: hi\n    runs: 12\n    expect: [{{contains: hell}}]\n"
        "gates: ['error_rate <= 0.9']\n"
    )
    suite.write_text(agent.format(word="hello"))
    assert passhat("run", "-q").exit_code == 0
    with History.open(job / ".passhat" / "history.db") as history:
        history.tag(history.find_run("latest"), "main")
    suite.write_text(agent.format(word="hell"))
    again = passhat("run", "-q")
    assert again.exit_code == 1, again.output
    assert [check["conclusion"] for check in forge.checks][-1] == "failure"
    (comment,) = forge.comments.values()
    assert "works (was 12/12, now 0/12)" in comment["body"]
    assert passhat("run", "-q", "--informational").exit_code == 0


def test_an_unchanged_gate_in_a_job_promises_fewer_false_alarms_than_one_by_hand(forge, job):
    write(job / "new.jsonl", 5)
    write(job / "old.jsonl", 10)
    in_job = passhat("gate", "new.jsonl", "--against", "old.jsonl", "--json")
    by_hand = passhat("gate", "new.jsonl", "--against", "old.jsonl", "--json", "--no-github")
    betas = [
        {verdict["beta"] for verdict in json.loads(done.stdout)["verdicts"]}
        for done in (in_job, by_hand)
    ]
    assert betas == [{0.0005}, {0.05}]


@pytest.mark.slow("runs a job on each of two branches")
def test_a_run_of_the_baseline_branch_itself_is_compared_with_the_run_before_it(forge, job):
    """The newest run of `main` is the one that is judged: it must not be its own baseline."""
    suite = job / "passhat.yml"
    agent = (
        "name: smoke\nsystems:\n  - name: agent\n    command: ['echo', '{word}']\n"
        "tasks:\n  - name: works\n    prompt: hi\n    runs: 12\n    expect: [{{contains: hello}}]\n"
    )
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=job, check=True)
    for word in ("hello", "hell"):
        suite.write_text(agent.format(word=word))
        passhat("run", "-q", "--no-github")
    done = passhat("gate", "latest", "--against", "main")
    assert done.exit_code == 1, done.output
    (comment,) = forge.comments.values()
    assert "| works | 12/12 | 0/12 |" in comment["body"]


SUITE = """
systems: [{name: agent, command: [echo, done]}]
tasks: [{name: t, prompt: x, expect: [{command: [sh, checks/done.sh]}, {python: "graders:ok"}]}]
"""


def test_a_change_that_edits_what_decides_about_it_says_so_in_the_comment(forge, job, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(job))
    suite = job / "evals"
    (suite / "checks").mkdir(parents=True)
    (suite / "passhat.yml").write_text(SUITE)
    (suite / "checks" / "done.sh").write_text("exit 0")
    (suite / "graders.py").write_text("def ok(value): return True")
    decide = ["passhat.yml", "checks/done.sh", "graders.py", "cassettes/agent.jsonl"]
    for edited in decide:
        forge.files = [{"filename": "README.md"}, {"filename": f"evals/{edited}"}]
        assert passhat("run", "evals/passhat.yml", "--no-store").exit_code == 0
        (comment,) = forge.comments.values()
        assert f"This change edits what decides about it: evals/{edited}. Read" in comment["body"]
    forge.files = [{"filename": "README.md"}, {"filename": "src/agent.py"}]
    passhat("run", "evals/passhat.yml", "--no-store")
    (comment,) = forge.comments.values()
    assert "edits what decides" not in comment["body"]


def test_a_job_can_take_what_decides_from_the_branch_that_the_change_goes_into(
    tmp_path, monkeypatch
):
    """The step of the job that `init --ci github` writes, in a clone of a repository."""
    from passhat.journeys.new_suite import starter_files
    from passhat.suite.yaml_tree import read_tree

    text = starter_files(ci="github")[".github/workflows/passhat.yml"]
    tree = read_tree(text, env={}, keeps_references=lambda path: True)
    steps = tree.value["jobs"]["reliability"]["steps"]
    (script,) = [step["run"] for step in steps if "FETCH_HEAD" in step.get("run", "")]

    def git(*words, cwd):
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *names, *words], cwd=cwd, check=True, capture_output=True)

    base, change = tmp_path / "base", tmp_path / "change"
    base.mkdir()
    git("init", cwd=base)
    (base / "passhat.yml").write_text("gates: [strict]")
    (base / "agent.py").write_text("old")
    git("add", ".", cwd=base)
    git("commit", "-m", "base", cwd=base)
    git("clone", str(base), str(change), cwd=tmp_path)
    (change / "passhat.yml").write_text("gates: [none]")
    (change / "agent.py").write_text("new")
    (change / "cassettes").mkdir()
    (change / "cassettes" / "forged.jsonl").write_text("{}")
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    for wanted, expected in (("", "gates: [none]"), ("true", "gates: [strict]")):
        monkeypatch.setenv("FROM_BASE", wanted)
        subprocess.run(["bash", "-e", "-c", script], cwd=change, check=True, capture_output=True)
        assert (change / "passhat.yml").read_text() == expected
        assert (change / "agent.py").read_text() == "new"
    assert not (change / "cassettes").exists()
