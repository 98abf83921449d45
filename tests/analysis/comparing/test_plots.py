import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.plots import plot_differences, plot_ranks
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import simulate
from passhat.records import Trials


@pytest.fixture
def comparison():
    return compare(simulate(tasks=30, runs=10, rate={"new": 0.9, "old": 0.6}, seed=3))


@pytest.fixture
def ranking():
    return rank(simulate(tasks=40, runs=8, rate={"a": 0.9, "b": 0.88, "c": 0.4}, seed=1))


def test_every_task_that_moved_has_a_dumbbell_under_the_row_of_the_mean(comparison):
    figure = plot_differences(comparison)
    moved = sum(task.rate_difference != 0 for task in comparison.tasks)
    assert 0 < moved < 30
    assert len(figure.rows) == 1 + 1 + moved  # a header, the mean, the tasks
    # hollow and filled, for each task and the mean
    assert figure.body.count("<circle") == 2 * (1 + moved)
    assert f"({30 - moved} did not move)" in figure.title
    assert figure.text.splitlines()[1].startswith("mean of 30 tasks")


def test_the_finding_counts_what_the_comparison_shows(comparison):
    up = sum(task.difference > 0 for task in comparison.tasks)
    shown = sum(task.answer in ("better", "worse") for task in comparison.tasks)
    figure = plot_differences(comparison)
    finding = f"{figure.title} {figure.finding}"
    assert f"on {up} of 30 tasks" in finding
    assert f"{shown} of these differences" in finding


def test_only_the_tasks_that_differ_most_are_drawn_of_many(comparison):
    figure = plot_differences(comparison, most=5)
    drawn = {line.split()[0] for line in figure.text.splitlines()[2:]}
    least_drawn = min(abs(t.difference) for t in comparison.tasks if t.name in drawn)
    most_left = max(abs(t.difference) for t in comparison.tasks if t.name not in drawn)
    assert len(drawn) == 5
    assert least_drawn >= most_left
    assert "the 5 that differ most" in figure.title


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_any_two_systems_that_share_a_task_can_be_drawn(passes):
    rows = [
        (system, f"t{i}", run < passed)
        for i, pair in enumerate(passes)
        for system, passed in zip("ab", pair, strict=True)
        for run in range(4)
    ]
    system, task, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=system, task=task, passed=passed)
    figure = plot_differences(compare(trials))
    assert "nan" not in figure.body
    moved = sum(one != other for one, other in passes)
    assert len(figure.rows) == 1 + 1 + (moved or len(passes))


def test_ties_are_joined_by_a_line_and_named(ranking):
    figure = plot_ranks(ranking)
    tied = [band for band in ranking.tie_bands if len(band) > 1]
    assert figure.body.count("<circle") == len(ranking.systems) + sum(map(len, tied))
    assert "are tied" in figure.title
    assert "c stands alone at rank 3" in figure.title
