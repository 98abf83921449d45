import numpy as np
import pytest
from bench.calibrate.overview import FALLS, reddened, simulate

from passhat.history import History
from passhat.journeys.overview import ReportCache, look_at_suite, suites_on_page
from passhat.records import Outcome, Trial


def trials_of(passed):
    """Tasks with eight trials each, of which `passed` pass, task by task."""
    return [
        Trial(
            system="agent",
            task=f"t{task}",
            trial=run,
            outcome=Outcome.PASSED if run < count else Outcome.FAILED,
        )
        for task, count in enumerate(passed)
        for run in range(8)
    ]


def line_after(tmp_path, *runs, last="finished", baseline=None):
    """The line of the agent on the front page after these runs."""
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for place, passed in enumerate(runs):
            run = history.start_run("suite", started=f"2026-11-0{place + 1}T09:00:00.000+00:00")
            history.add_trials(run, trials_of(passed))
            if place < len(runs) - 1 or last == "finished":
                run = history.finish_run(run)
            if place == baseline:
                history.tag(run, "baseline")
    reports = ReportCache(path, title="suite")
    with History.open(path, read_only=True) as history:
        (suite,), _ = suites_on_page(history, 1)
        block = look_at_suite(reports, history, suite)
        (line,) = block.systems
        assert block.needs_attention == line.fell
        return line


CALM = [8] * 10
FALLEN = [8] * 7 + [0] * 3


def test_a_fall_is_red_on_its_first_day_and_names_its_tasks(tmp_path):
    line = line_after(tmp_path, CALM, CALM, CALM, FALLEN)
    assert line.fell
    assert [move.task for move in line.verdict.tasks] == ["t7", "t8", "t9"]
    assert line.verdict.sentence.startswith("Against the 3 runs before: ")
    assert "on 4 Nov" in line.verdict.sentence


@pytest.mark.parametrize("early", [CALM, FALLEN, [0] * 10], ids=["passes", "falls", "fails"])
def test_a_run_that_its_gates_ended_early_neither_falls_nor_hides_a_fall(tmp_path, early):
    """Gates end a run where its trials happen to pass or fail."""
    path = tmp_path / "history.db"
    said = []
    with History.open(path) as history:
        reports = ReportCache(path, title="suite")
        for day, (passed, limit) in enumerate(
            [(CALM, 80), (early, 400), (CALM, 80), (early, 400), (FALLEN, 80), (early, 400)]
        ):
            run = history.start_run(
                "suite",
                started=f"2026-11-0{day + 1}T09:00:00.000+00:00",
                options={"at_most": limit},
            )
            history.add_trials(run, trials_of(passed))
            run = history.finish_run(run)
            verdict = reports.verdict(history, run)
            (suite,), _ = suites_on_page(history, 1)
            (line,) = look_at_suite(reports, history, suite).systems
            said.append(([agent.movement for agent in verdict.agents], line.fell))
    assert said[::2] == [(["first"], False), (["steady"], False), (["fell"], True)]
    assert said[1::2] == [([], False), ([], False), ([], True)]


def test_every_failing_trial_of_a_fall_is_one_click_away(tmp_path):
    line = line_after(tmp_path, CALM, CALM, CALM, FALLEN)
    failing = [
        (task.move.task, mark.place)
        for task in line.tasks_of_fall
        for mark in task.marks
        if mark.outcome == Outcome.FAILED
    ]
    assert failing == [(f"t{task}", place + 1) for task in (7, 8, 9) for place in range(8)]


def test_a_fall_stays_red_until_a_run_since_is_the_baseline(tmp_path):
    runs = (CALM, CALM, CALM, FALLEN, FALLEN)
    assert line_after(tmp_path, *runs).fell
    (tmp_path / "accepted").mkdir()
    accepted = line_after(tmp_path / "accepted", *runs, baseline=3).verdict
    assert accepted.movement == "steady"


@pytest.mark.parametrize("newest", [[8] * 10, [8] * 9 + [7], [8] * 8 + [7, 6]])
def test_what_moved_within_noise_is_not_red(tmp_path, newest):
    line = line_after(tmp_path, CALM, CALM, newest)
    assert not line.fell
    assert "Against the 2 runs before: no change shown." in line.verdict.sentence


def test_a_run_in_progress_is_not_judged(tmp_path):
    line = line_after(tmp_path, CALM, CALM, CALM, FALLEN, last="running")
    assert not line.fell
    assert line.verdict.sentence.startswith("Against the 2 runs before: no change")


@pytest.mark.slow("simulates an error rate")
def test_unchanged_agents_are_not_red():  # bench/calibrate/overview.py has a hundred of 30 days
    rng = np.random.default_rng(5)
    days = [day for _ in range(4) for day in reddened(simulate(rng, 20, 6, 12, spread=0.2), 6)]
    assert not any(days)


def test_a_fifth_of_the_tasks_that_stop_passing_is_red_at_once():
    rng = np.random.default_rng(6)
    for before in (5, 12):
        passed = simulate(rng, 20, 6, before + 1, spread=0.2, fall=FALLS[1], day=before)
        assert reddened(passed, 6, since=before) == [True]


@pytest.mark.slow("simulates an error rate")
def test_20_points_in_a_fifth_of_a_hundred_tasks_are_red_by_the_second_day():
    rng = np.random.default_rng(7)
    found = [
        reddened(simulate(rng, 100, 10, 32, spread=0.1, fall=FALLS[0], day=30), 10, since=30)
        for _ in range(4)
    ]
    assert all(map(any, found))
