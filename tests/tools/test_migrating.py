"""The pages for people who come from another tool: both sides of a number, by the real package."""

import json

import pytest

import passhat

AGENTREL = """
import json, sys
from agentrel.adapters import from_records
from agentrel.metrics import icc, pass_at_k, pass_hat_k

runs = from_records(json.load(sys.stdin))
found = {f"pass@{k}": pass_at_k(runs, k, n_boot=10, seed=1).value for k in (1, 3)}
found |= {f"pass^{k}": pass_hat_k(runs, k, n_boot=10, seed=1).value for k in (1, 3)}
print(json.dumps(found | {"icc": icc(runs)}))
"""
FLAKY_AGENT = """
from tracelens import SimpleAdapter

calls = {"Paris": 0, "4": 0}


async def answer(data):
    calls[data["answer"]] += 1
    wrong = (2, 5) if data["answer"] == "Paris" else (3,)
    return {"answer": "?" if calls[data["answer"]] in wrong else data["answer"]}


class StarterAdapter(SimpleAdapter):
    def __init__(self):
        super().__init__(answer)
"""


def test_agentrel_and_passhat_state_the_same_numbers_from_the_same_records(tool, tmp_path):
    records = [
        {"task_id": f"t{task}", "run_id": run, "score": float((task * 5 + run * 3) % 7 < 4)}
        for task in range(6)
        for run in range(8)
    ]
    done = tool("migrating").run(
        "python", "-c", AGENTREL, cwd=tmp_path, given=json.dumps(records)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = passhat.measure(passhat.Trials.from_records(records), ks=(1, 3)).system()
    for name in ("pass@1", "pass@3", "pass^1", "pass^3"):
        assert ours.metrics[name].this_suite.value == pytest.approx(theirs[name])
    assert ours.variance.icc.value == pytest.approx(max(0.0, theirs["icc"]), abs=1e-6)


def test_what_tracelens_wrote_is_read_run_by_run_and_gives_its_pass_rates(tool, tmp_path):
    environment = tool("migrating")
    assert environment.run("tracelens", "init", ".", cwd=tmp_path).returncode == 0
    (tmp_path / "eval" / "adapter.py").write_text(FLAKY_AGENT)
    words = ("run", "--config", "tracelens.yaml", "--max-concurrency", "1")
    done = environment.run("tracelens", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = tmp_path / "eval" / "results"
    theirs = json.loads((results / "results.json").read_text())
    ours = passhat.measure(passhat.read_trials(results / "trials.json"), ks=(1, 2, 3)).system()
    assert ours.metrics["pass@1"].this_suite.value == pytest.approx(0.7)
    assert ours.metrics["pass@3"].this_suite.value == pytest.approx(theirs["pass_at_k"]["pass@3"])
    # theirs is the share of windows of consecutive runs, so it depends on the order of runs
    assert theirs["reliability"]["pass^2"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert ours.metrics["pass^2"].this_suite.value == pytest.approx((3 / 10 + 6 / 10) / 2)
    with pytest.raises(passhat.ReadError, match=r"trials\.json"):
        passhat.read_trials(results / "results.json")
