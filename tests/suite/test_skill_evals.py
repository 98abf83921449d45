"""Does my skill help? The suite that shows it: the evals of a skill, with it and without it."""

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.runner.test_workspaces import SYSTEM_PYTHON, isolated

from passhat.cli import main
from passhat.errors import PasshatError
from passhat.records import CommandSystem, Outcome, TokenUsage
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import Reply
from passhat.suite import load_suite
from passhat.testing import WireServer

MARK, SECRET = "SKILLMARK how to add", "RUBRIC-7 the sum is right"
EVALS = {
    "skill_name": "adder",
    "evals": [
        {"id": "one", "prompt": "Add the numbers.", "files": ["evals/numbers.txt"],
         "expectations": [SECRET, {"text": "the answer is short"}]},
        {"prompt": "Add more.", "expected_output": "a sum"},
    ],
}  # fmt: skip


@pytest.fixture
def skill(tmp_path):
    skill = tmp_path / "skills" / "adder"
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: adder\ndescription: {MARK}\n---\nUse +.\n")
    (skill / "evals" / "numbers.txt").write_text("1 2 3\n")
    (skill / "evals" / "evals.json").write_text(json.dumps(EVALS))
    return skill


def written(skill, *words):
    """What `passhat init --skill` wrote, as a suite."""
    here = skill.parents[1]
    done = CliRunner().invoke(main, ["init", str(here), "--skill", str(skill), *words])
    assert done.exit_code == 0, done.output
    return load_suite(here / "passhat.yml")


def test_init_writes_a_suite_with_an_arm_that_has_the_skill_and_one_that_has_not(skill):
    suite = written(skill)
    assert suite.systems == ("without", "with")
    assert [task.name for task in suite.tasks] == ["adder one", "adder 2"]
    first, second = suite.tasks
    assert [one.value for one in first.expect] == [SECRET, "the answer is short"]
    assert [one.value for one in second.expect] == ["The result is as it was expected: a sum"]
    assert first.workspace.files == (("numbers.txt", (skill / "evals" / "numbers.txt").resolve()),)
    assert suite.gates == ("better_than without",)
    files = {p.system.name: dict(p.system.add_files) for p in suite.pairings}
    assert files["without"] == {}
    assert list(files["with"]) == [".claude/skills/adder"]
    # Both arms of a task stand side by side, so that its trials take turns.
    assert [p.system.name for p in suite.pairings] == ["without", "with"] * 2


LOOK = """\
import os
for where, _, names in os.walk("."):
    for name in names:
        print(where, name, open(where + "/" + name).read())
print(os.listdir(os.environ["HOME"]))
"""


@isolated
def test_only_one_arm_sees_the_skill_and_neither_what_it_is_judged_by(skill, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".claude" / "skills" / "adder").mkdir(parents=True)
    (home / ".claude" / "skills" / "adder" / "SKILL.md").write_text(MARK)
    monkeypatch.setenv("HOME", str(home))
    suite = written(skill)

    def judge(asked):
        return Reply(text='{"score": 1}', usage=TokenUsage(tokens_in=1, tokens_out=1))

    with WireServer(judge) as server:
        pairings = tuple(
            replace(
                p,
                runs=2,
                system=CommandSystem(
                    name=p.system.name,
                    argv=(SYSTEM_PYTHON, "-c", LOOK),
                    add_files=p.system.add_files,
                ),
                task=replace(
                    p.task,
                    expect=tuple(
                        replace(
                            one,
                            options={
                                **one.options,
                                "model": replace(
                                    one.options["model"],
                                    base_url=server.url.removesuffix("/v1"),
                                ),
                            },
                        )
                        for one in p.task.expect
                    ),
                ),
            )
            for p in suite.pairings
        )
        journal = MemoryJournal()
        judged = replace(suite, pairings=pairings)
        result = run_trials(judged, journal=journal, handle_signals=False, environment={})
    assert {trial.outcome for trial in result.trials} == {Outcome.PASSED}, result.trials[0].error
    for done in journal.finished():
        printed = json.loads(done.transcript)["answer"]
        assert (MARK in printed) == (done.ticket.system == "with")
        assert ("1 2 3" in printed) == (done.ticket.task == "adder one")
        assert "RUBRIC" not in printed
        assert printed.rstrip().endswith("[]"), "its HOME is empty"
    order = [done.ticket.system for done in journal.finished()]
    assert order == ["without", "with"] * 4


@pytest.mark.parametrize(
    ("evals", "message"),
    [
        ("no json", "is no JSON"),
        ({}, "has no evals"),
        ([{"prompt": "x"}], "says nothing to judge by"),
        ([{"expectations": ["x"]}], "has no prompt"),
        ([{"prompt": "x", "expectations": ["y"], "files": ["gone.txt"]}], "there is no file gone"),
        ([{"prompt": "x", "expectations": ["y"], "files": ["../../../etc/passwd"]}], "is not in"),
        ([{"id": 1, "prompt": "x", "expectations": ["y"]}] * 2, 'two evals have the id "1"'),
    ],
)
def test_evals_that_cannot_be_tried_are_refused_with_the_reason(skill, evals, message):
    written(skill)
    text = evals if isinstance(evals, str) else json.dumps(evals)
    (skill / "evals" / "evals.json").write_text(text)
    with pytest.raises(PasshatError, match=message):
        load_suite(skill.parents[1] / "passhat.yml")


def test_a_folder_that_is_no_skill_or_has_no_evals_says_what_is_missing(skill):
    (skill / "evals" / "evals.json").unlink()
    said = CliRunner().invoke(main, ["init", str(skill.parents[1]), "--skill", str(skill)])
    assert said.exit_code == 2
    assert "has no evals/evals.json to try the skill on" in said.output
    (skill / "SKILL.md").unlink()
    said = CliRunner().invoke(main, ["init", str(skill.parents[1]), "--skill", str(skill)])
    assert "is not the folder of a skill" in said.output
    assert not os.path.exists(skill.parents[1] / "passhat.yml")  # noqa: PTH110
