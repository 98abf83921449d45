"""Tasks of Harbor get the verdicts that Harbor gives: twenty ways to write a reward, in one run."""

import json

import pytest
from tests.runner.test_workspaces import MEND, WRONG, isolated

from passhat.runner import MemoryJournal, run_trials
from passhat.suite import load_suite

R1, R0 = '{"reward": 1}', '{"reward": 0}'
# What a verifier writes to reward.txt and reward.json after the solution, and where nothing was
# done; and the two rewards that the `Verifier` of Harbor 0.20.0 reads there, None for an error.
VERDICTS = {
    "a number": (("1\n", None), ("0\n", None), 1, 0),
    "spaces": ((" 1.0 \n", None), (" 0.0", None), 1, 0),
    "a fraction": (("1", None), ("0.5", None), 1, 0.5),
    "an exponent": (("1e0", None), ("1e-3", None), 1, 0.001),
    "a sign": (("+1", None), ("-1", None), 1, -1),
    "more than one": (("3", None), ("0", None), 3, 0),
    "underscores": (("1_0", None), ("0_0", None), 10, 0),
    "JSON": ((None, R1), (None, R0), 1, 0),
    "a fraction in JSON": ((None, R1), (None, '{"reward": 0.25}'), 1, 0.25),
    "one other key": ((None, '{"accuracy": 1}'), (None, '{"accuracy": 0.7}'), 1, 0.7),
    "another key beside": ((None, '{"reward": 1, "b": 0}'), (None, '{"reward": 0, "b": 1}'), 1, 0),
    "both files": (("1", R1), ("0", R0), 1, 0),
    "JSON against a higher text": (("1", R1), ("1", R0), 1, 0),
    "JSON against a lower text": (("0", R1), ("0", R0), 1, 0),
    "no file": (("1", None), (None, None), 1, None),
    "an empty file": (("1", None), ("", None), 1, None),
    "a word": (("1", None), ("failed", None), 1, None),
    "broken JSON": ((None, R1), (None, '{"reward": '), 1, None),
    "broken JSON beside a text": (("0", R1), ("1", "{"), 1, None),
    "two lines": (("1", None), ("1\n0\n", None), 1, None),
}
TOML = "[verifier]\ntimeout_sec = 60\n[agent]\ntimeout_sec = 100\n[environment]\nmemory_mb = 256\n"


def write_tasks(folder):
    """The tasks; the exit code of every third verifier is 3, which Harbor does not ask about."""
    for number, (name, (done, idle, _, _)) in enumerate(VERDICTS.items()):
        lines = ["#!/bin/bash", "if grep -q 'a + b' calc.py; then :"]
        for written in (done, idle):
            for kind, text in zip(("txt", "json"), written, strict=True):
                if text is not None:
                    lines.append(f"printf '%s' '{text}' > /logs/verifier/reward.{kind}")
            lines.append("else :" if written is done else "fi")
        lines.append(f"exit {3 * (number % 3 == 0)}")
        for file, text in (
            ("task.toml", TOML), ("instruction.md", "Mend it."), ("solution/solve.sh", MEND),
            ("tests/test.sh", "\n".join(lines)), ("environment/Dockerfile", "FROM scratch"),
        ):  # fmt: skip
            place = folder / name.replace(" ", "-") / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)


@isolated
@pytest.mark.slow("forty trials in sandboxes, each with its verifier")
def test_a_task_of_harbor_gets_the_verdict_of_harbor(tmp_path):
    write_tasks(tmp_path / "tasks")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "calc.py").write_text(WRONG)
    systems = [
        {"name": "solves", "command": ["sh", "-c", MEND]},
        {"name": "idles", "command": ["true"]},
    ]
    tasks = [{"name": "t", "from": "tasks", "workspace": "app", "runs": 1}]
    suite = {"name": "s", "systems": systems, "tasks": tasks}
    (tmp_path / "suite.yml").write_text(json.dumps(suite))
    journal = MemoryJournal()
    run_trials(load_suite(tmp_path / "suite.yml"), journal=journal, handle_signals=False)
    scores = {(d.trial.task[2:], d.trial.system): d.trial.score for d in journal.finished()}
    assert scores == {
        (name.replace(" ", "-"), system): min(max(reward or 0.0, 0.0), 1.0)
        for name, (_, _, *rewards) in VERDICTS.items()
        for system, reward in zip(("solves", "idles"), rewards, strict=True)
    }
