import pytest

from passhat.history import History
from passhat.journeys.overview import ReportCache, look_at_suite, suites_on_page
from passhat.records import Outcome, Trial


def trials_of(passed):
    """Ten tasks with eight runs each, of which `passed` pass, task by task."""
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


def attention_after(tmp_path, *runs, last="finished"):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for place, passed in enumerate(runs):
            run = history.start_run("suite", started=f"2026-11-0{place + 1}T09:00:00.000+00:00")
            history.add_trials(run, trials_of(passed))
            if place < len(runs) - 1 or last == "finished":
                history.finish_run(run)
    reports = ReportCache(path, title="suite")
    with History.open(path, read_only=True) as history:
        (suite,), _ = suites_on_page(history, 1)
        return look_at_suite(reports, history, suite).systems[0].attention


def test_a_drop_and_the_tasks_that_began_to_fail_need_attention(tmp_path):
    fell, drop, began = attention_after(tmp_path, [8] * 10, [8] * 2 + [3] * 8)
    assert fell.startswith("pass^5 fell from 100% to")
    assert drop.startswith("pass^5 dropped from 100% to")
    assert began == "8 tasks passed every run before and not every run now: t2, t3, t4, 5 more"


@pytest.mark.parametrize("newest", [[8] * 10, [8] * 9 + [7]])
def test_a_fall_within_the_intervals_is_not_called_a_drop(tmp_path, newest):
    told = attention_after(tmp_path, [8] * 10, newest)
    assert not any("dropped" in sentence for sentence in told)
    assert len(told) == (newest[-1] < 8)


def test_a_run_in_progress_is_not_judged(tmp_path):
    assert attention_after(tmp_path, [8] * 10, [2] * 10, last="running") == ()
