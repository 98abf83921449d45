"""A trend that is read from the store is the one that would be computed anew."""

from dataclasses import fields, replace

import numpy as np
import pytest

from passhat.analysis.comparing.trends import KeptTrend, Trends, agent_numbers, trends
from passhat.history import History
from passhat.journeys import stored_runs
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import keep_answers, runs_of_trend, trend_basis, trends_of
from passhat.records import Outcome, Trial
from passhat.records.labels import Label


def fill(history, seed, *, days=6, weighted=False):
    """Days of two agents: tasks come and go, runs have rounds and seeds, trials err."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(1, 1, 12)
    for day in range(days):
        run = history.start_run("suite", started=f"2026-11-0{day + 1}T09:00:00.000+00:00")
        trials = int(rng.integers(1, 7))
        tasks = range(12) if rng.random() < 0.7 else rng.choice(12, 9, replace=False).tolist()
        if day == 3:
            rates = rates * 0.4
        history.add_trials(
            run,
            [
                Trial(
                    system=system,
                    task=f"task-{task}",
                    trial=trial,
                    outcome=Outcome.ERRORED
                    if rng.random() < 0.05
                    else Outcome(rng.random() < rates[task]),
                    seed=trial if seed % 2 else None,
                    weight=1.0 + task if weighted and day != 2 else None,
                )
                for trial in range(trials)
                for task in tasks
                for system in ("a", "b")[: 1 + seed % 2]
            ],
        )
        history.finish_run(run)


def same(one, other):
    assert [trend.name for trend in one] == [trend.name for trend in other]
    for left, right in zip(one, other, strict=True):
        for each in fields(left):
            assert getattr(left, each.name) == getattr(right, each.name), each.name


TWO_AGENTS = pytest.mark.slow("a trend of each of two agents, with seeds")


@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=TWO_AGENTS)])
def test_numbers_that_are_known_change_nothing_in_a_trend(tmp_path, seed):
    with History.open(tmp_path / "h.db") as history:
        fill(history, seed, weighted=seed > 3)
        runs = runs_of_trend(history, "suite")
        counted = [
            stored_runs.counted_run(history, run, history.tallies(run), as_in=runs[-1])
            for run in runs
        ]
        for run in counted:
            assert run.numbers == {
                one.system: agent_numbers(one, run.groupings[one.system]) for one in run.tallies
            }
        anew = [replace(run, numbers={}) for run in counted]
        same(trends(counted), trends(anew))
        same(trends(counted, k=1), trends(anew, k=1))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=TWO_AGENTS)])
def test_a_kept_trend_is_the_trend(tmp_path, seed, monkeypatch):
    path = tmp_path / "h.db"
    with History.open(path) as history:
        fill(history, seed)
        runs = runs_of_trend(history, "suite")
        counted = [
            stored_runs.counted_run(history, one, history.tallies(one), as_in=runs[-1])
            for one in runs
        ]
        expected = trends(counted)
        keep_answers(history, runs[-1])
    monkeypatch.setattr("passhat.analysis.comparing.trends.trends", None)  # nothing is computed
    cache = ReportCache(path, title="x")
    with cache.open() as history:
        runs = runs_of_trend(history, "suite")
        kept = cache.trends(history, runs)
    assert isinstance(kept, Trends)
    same(kept, expected)
    same([KeptTrend.of(one).trend for one in expected], expected)


def test_what_a_trend_rests_on_makes_it_anew(tmp_path):
    with History.open(tmp_path / "h.db") as history:
        fill(history, 2)
        runs = runs_of_trend(history, "suite")
        keep_answers(history, runs[-1])
        basis = trend_basis(history, runs)
        history.tag(runs[2], "release")
        assert trends_of(history, runs_of_trend(history, "suite"))[0].points[2].label == "release"
        key = (history.trials(runs[1]).systems[0], history.trials(runs[1]).tasks[0], 0)
        history.add_labels(runs[1], {key: [Label(passed=True, by="ann", at="2026-11-17")]})
        assert trend_basis(history, runs_of_trend(history, "suite")) != basis
        history.delete(runs[0])
        assert len(trends_of(history, runs_of_trend(history, "suite"))[0].points) == 5


@pytest.mark.parametrize("status", ["finished", "interrupted"])
def test_a_run_without_trials_has_no_trend_and_ends_all_the_same(tmp_path, status):
    with History.open(tmp_path / "h.db") as history:
        run = history.finish_run(history.start_run("suite"), status)
        assert keep_answers(history, run).agents == ()
