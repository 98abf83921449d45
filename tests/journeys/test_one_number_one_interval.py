"""A report, a trend and the dashboard show one interval for one number of a stored run."""

import numpy as np
import pytest

from passhat import journeys
from passhat.dashboard.server import judge_sides, sides_of
from passhat.history import History
from passhat.journeys.overview import ReportCache, look_at_suite, suites_on_page
from passhat.journeys.results import Results
from passhat.journeys.stored_runs import verdict_of_results
from passhat.records import Outcome, Trial

TASKS, RUNS = 20, 6
ROUND_OUT, SEEDS = "a round fails", "seeds move the suite"


def runs_of(kind, rng):
    rates = np.tile(rng.beta(4, 1, TASKS)[:, None], RUNS)
    if kind == ROUND_OUT:
        rates[:, 3] = 0.0
    else:
        rates = np.clip(rates - rng.choice([0, 0.5], RUNS), 0, 1)
    passed = rng.random((TASKS, RUNS)) < rates
    return [
        Trial(
            system="agent",
            task=f"t{task}",
            trial=run,
            outcome=Outcome.PASSED if passed[task, run] else Outcome.FAILED,
            seed=run if kind == SEEDS else None,
        )
        for run in range(RUNS)
        for task in range(TASKS)
    ]


@pytest.fixture(params=[ROUND_OUT, SEEDS])
def store(request, tmp_path):
    """Six runs of one suite, in each of which some runs moved together."""
    rng = np.random.default_rng(7)
    with History.open(tmp_path / "history.db") as history:
        for day in range(6):
            run = history.start_run("suite", started=f"2026-11-0{day + 1}T09:00:00.000+00:00")
            history.add_trials(run, runs_of(request.param, rng))
            history.finish_run(run)
    return tmp_path / "history.db"


@pytest.mark.slow("makes a report of every run of a trend")
def test_every_point_of_a_trend_has_the_interval_of_its_own_report(store):
    (trend,) = journeys.trend(store=store)
    wider = 0
    for point in trend.points:
        report = journeys.report(Results(paths=(point.key,), store=store)).system()
        for name, estimate in point.metrics.items():
            assert estimate.interval == report.metrics[name].this_suite.interval
        wider += any("includes the spread" in note for note in estimate.notes)
    assert wider > 0  # else this test shows nothing


def test_the_overview_shows_the_interval_of_the_newest_report(store):
    with History.open(store, read_only=True) as history:
        (suite,), _ = suites_on_page(history, 1)
        (line,) = look_at_suite(ReportCache(store, title="suite"), history, suite).systems
    report = journeys.report(Results(paths=(line.run.key,), store=store)).system()
    assert line.headline.number == report.metrics[line.headline.name].this_suite


def test_the_dashboard_and_the_command_line_compare_two_runs_alike(store):
    reports = ReportCache(store, title="suite")
    with History.open(store, read_only=True) as history:
        newest, before = history.runs()[:2]
        sides = sides_of(reports, history, [newest.key, before.key], [])
        page = judge_sides(history, sides, metric="mean_score")
    told = journeys.compare(Results(paths=(newest.key, before.key), store=store))
    assert page.headline.this_suite.interval == told.headline.this_suite.interval
    said = verdict_of_results(Results(paths=(str(store),), run=newest.key))
    assert said.agents[0].alone.interval == (
        journeys.compare(Results(paths=(newest.key, before.key), store=store), ks=[5])
        .headline.this_suite.interval
    )  # fmt: skip
