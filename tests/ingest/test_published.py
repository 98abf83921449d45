"""Published figures, reproduced from the files they were computed from."""

import json

import numpy as np
import pytest

from passhat.ingest import read_trials
from passhat.stats import pass_at_k, pass_hat_k


def mean(estimator, tally, k):
    return float(np.mean(estimator(tally.runs(), tally.passed, k)))


@pytest.mark.parametrize("name", ["gpt-4o-airline.json", "gpt-4o-airline.outcomes.csv"])
def test_tau_bench_airline_pass_hat_k(shared, name):
    tally = read_trials(shared / "tau_bench" / name).tally()
    assert len(tally.tasks) == 50
    assert set(tally.runs().tolist()) == {4}
    for k, published in enumerate((0.420, 0.273, 0.220, 0.200), start=1):
        assert mean(pass_hat_k, tally, k) == pytest.approx(published, abs=5e-4)


def test_mcpmark_agents(shared):
    folder = shared / "mcpmark"
    published = json.loads((folder / "published.json").read_text())
    trials = read_trials(folder / "outcomes_12agents_127tasks_4runs.csv")
    assert set(trials.systems) == set(published)
    for system, figures in published.items():
        tally = trials.tally(system)
        one = trials.where(system=system)
        by_run = [float(np.mean(one.outcome[one.trial == run] == 1)) for run in set(one.trial)]
        assert np.mean(by_run) == pytest.approx(figures["pass@1"]["avg"], abs=5.1e-5)
        assert np.std(by_run) == pytest.approx(figures["pass@1"]["std"], abs=5.1e-5)
        if figures["pass@4"] is not None:
            assert mean(pass_at_k, tally, 4) == pytest.approx(figures["pass@4"], abs=5.1e-5)
            assert mean(pass_hat_k, tally, 4) == pytest.approx(figures["pass^4"], abs=5.1e-5)


def test_mcpmark_errors_are_apart_from_failures_and_services_are_tags(shared):
    trials = read_trials(shared / "mcpmark" / "outcomes_12agents_127tasks_4runs.csv")
    tally = trials.tally("deepseek-v3-2-thinking")
    assert (tally.passed.sum(), tally.failed.sum(), tally.errored.sum()) == (187, 218, 103)
    assert trials.words("tags") == ("filesystem", "github", "notion", "playwright", "postgres")
    raw = read_trials(shared / "mcpmark" / "model_results_sample")
    assert set(raw.tasks) <= set(trials.tasks)
    for task in raw.tasks:
        of_table = trials.where(system="gpt-5-medium", task=task)
        of_file = raw.where(task=task)
        assert of_file.outcome.tolist() == of_table.outcome[np.argsort(of_table.trial)].tolist()


def test_terminal_bench_pass_at_k_of_the_raw_file(shared):
    path = shared / "terminal_bench" / "results_5of5_orchestrator_sonnet4.json"
    tally = read_trials(path).tally()
    published = json.loads(path.read_bytes())
    assert tally.passed.sum() == published["n_resolved"]
    for k, figure in published["pass_at_k"].items():
        assert mean(pass_at_k, tally, int(k)) == pytest.approx(figure, abs=1e-12)


def test_terminal_bench_leaderboard_rows(shared):
    trials = read_trials(shared / "terminal_bench" / "outcomes_4agents_80tasks_5runs.csv")
    rows = {"20250923_droid_claude-4-1-opus": (58.8, 0.9), "20250924_droid_gpt-5": (52.5, 2.1)}
    for system, (rate, error) in rows.items():
        one = trials.where(system=system)
        by_run = [100 * float(np.mean(one.outcome[one.trial == run])) for run in set(one.trial)]
        assert np.mean(by_run) == pytest.approx(rate, abs=0.051)
        assert np.std(by_run, ddof=1) / np.sqrt(len(by_run)) == pytest.approx(error, abs=0.051)


def test_tau2_airline_and_telecom(shared):
    trials = read_trials(shared / "tau2_bench")
    airline = trials.tally("whissle")
    assert (int(airline.passed.sum()), airline.trials) == (28, 50)
    telecom = trials.where(system="gpt-4.1-2025-04-14 (llm_agent_solo)")
    assert set(telecom.tally().runs().tolist()) == {4}
    assert any("|" in task and "[" in task for task in telecom.tasks)
    assert telecom.seed is not None


def test_humaneval_example(shared):
    trials = read_trials(shared / "humaneval" / "example_samples.jsonl_results.jsonl")
    assert mean(pass_at_k, trials.tally("example_samples"), 1) == 0.5


def test_agentrels_example_with_partial_credit(shared):
    tally = read_trials(shared / "agentrel" / "synthetic_runs.json").tally("demo-agent")
    assert tally.score_total.sum() / tally.trials == pytest.approx(0.6261, abs=5e-5)
    figures = {1: (0.4688, 0.4688), 2: (0.6181, 0.3194), 5: (0.8090, 0.1947)}
    for k, (at, hat) in figures.items():
        assert mean(pass_at_k, tally, k) == pytest.approx(at, abs=5.1e-5)
        assert mean(pass_hat_k, tally, k) == pytest.approx(hat, abs=5.1e-5)


def test_a_harbor_job_folder(shared):
    trials = read_trials(shared / "harbor" / "job-2026-08-24")
    trial = next(iter(trials))
    assert (len(trials), trial.system) == (1, "matched-subscription-smoke/gpt-5.6-sol")
    assert (trial.task, trial.score) == ("terminal-bench/configure-git-webserver", 0.0)
    assert (trial.tokens_in, trial.tool_calls) == (2700, 1)
    assert trial.seconds == pytest.approx(2.946077)


def test_a_swebench_report(shared):
    tally = read_trials(shared / "swebench" / "report_schema2_example.json").tally()
    assert (tally.passed.sum(), tally.failed.sum(), tally.errored.sum()) == (0, 1, 2)
