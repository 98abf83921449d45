"""Variance between seeds."""

import numpy as np
import pytest
from scipy import special, stats

from passhat.errors import ArgumentError
from passhat.stats.dependent_runs import seed_variance
from passhat.stats.estimate import Unavailable
from passhat.stats.proportions import wilson_bounds


def columns(scores):
    """The rows of a seeds x tasks table."""
    seeds, tasks = np.indices(scores.shape)
    return seeds.ravel(), tasks.ravel(), scores.ravel()


def simulated(rng, seeds, tasks, *, seed_sd):
    logit = 1 + 1.5 * rng.normal(size=tasks) + seed_sd * rng.normal(size=(seeds, 1))
    return (rng.random((seeds, tasks)) < special.expit(logit)).astype(float)


def test_balanced_components_are_those_of_the_two_way_table():
    scores = np.random.default_rng(1).random((6, 9))
    rows, cols = scores.mean(1), scores.mean(0)
    ms_seed = 9 * rows.var(ddof=1)
    ms_task = 6 * cols.var(ddof=1)
    rest = scores - rows[:, None] - cols + scores.mean()
    ms_rest = (rest**2).sum() / (5 * 8)
    answer = seed_variance(*columns(scores))
    assert answer.within == pytest.approx(ms_rest, rel=1e-9)
    assert answer.between.value == pytest.approx(max(0, (ms_seed - ms_rest) / 9), abs=1e-12)
    assert answer.tasks_component == pytest.approx(max(0, (ms_task - ms_rest) / 6), abs=1e-12)


def test_the_suite_mean_of_a_balanced_table_has_the_variance_of_its_seed_means():
    scores = np.clip(
        np.random.default_rng(2).random((8, 5)) + np.linspace(-0.4, 0.4, 8)[:, None], 0, 1
    )
    answer = seed_variance(*columns(scores), scope="this suite")
    variance = scores.mean(1).var(ddof=1) / 8
    mean = scores.mean()
    low, high = wilson_bounds(mean, mean * (1 - mean) / variance, special.stdtrit(7, 0.975))
    assert answer.between.value > 0
    assert answer.mean.value == pytest.approx(mean)
    assert answer.mean.interval.low == pytest.approx(float(low), rel=1e-6)
    assert answer.mean.interval.high == pytest.approx(float(high), rel=1e-6)


def test_unbalanced_components_are_unbiased():
    rng = np.random.default_rng(4)
    seeds, tasks = np.indices((8, 12))
    kept = rng.random((8, 12)) < 0.7
    seed, task = seeds[kept], tasks[kept]
    found = []
    for _ in range(600):
        noise = rng.normal(0, 0.05, seed.size)
        score = 0.5 + rng.normal(0, 0.08, 8)[seed] + rng.normal(0, 0.1, 12)[task] + noise
        answer = seed_variance(seed, task, np.clip(score, 0, 1))
        found.append((answer.between.value, answer.tasks_component, answer.within))
    means, errors = np.mean(found, 0), np.std(found, 0) / np.sqrt(600)
    assert (np.abs(means - [0.08**2, 0.1**2, 0.05**2]) < 4 * errors).all()


def test_a_mean_that_allows_for_seeds_covers_where_the_ordinary_one_does_not():
    rng = np.random.default_rng(7)
    repeats, seeds, tasks = 300, 5, 100
    grid = special.expit(1 + 1.5 * rng.normal(size=10**6) + 0.4 * rng.normal(size=10**6))
    truth = grid.mean()
    allowed = ordinary = 0
    for _ in range(repeats):
        scores = simulated(rng, seeds, tasks, seed_sd=0.4)
        allowed += truth in seed_variance(*columns(scores)).mean.interval
        by_task = scores.mean(0)
        mean, variance = by_task.mean(), by_task.var(ddof=1) / tasks
        low, high = wilson_bounds(
            mean, mean * (1 - mean) / variance, special.stdtrit(tasks - 1, 0.975)
        )
        ordinary += low <= truth <= high
    error = np.sqrt(0.95 * 0.05 / repeats)
    assert allowed / repeats >= 0.95 - 3 * error
    assert ordinary / repeats <= 0.95 - 3 * error


def test_without_an_effect_of_seeds_nothing_is_added():
    seeds, tasks = np.indices((5, 5))
    diagonal = (seeds + tasks) % 5
    scores = 0.5 + 0.1 * (diagonal == 0) - 0.1 * (diagonal == 1)  # every seed has the same mean
    answer = seed_variance(*columns(scores))
    assert answer.between.value == 0
    assert answer.between.notes
    assert "no variance between seeds" in answer.mean.notes[0]


def test_labels_may_be_text_and_in_any_order():
    scores = np.random.default_rng(3).random((5, 4))
    seed, task, score = columns(scores)
    shuffled = np.random.default_rng(0).permutation(score.size)
    words = np.array(["a", "b", "c", "d"])[task]
    one, two = (
        seed_variance(seed, task, score),
        seed_variance(seed[shuffled], words[shuffled], score[shuffled]),
    )
    assert one.between.value == pytest.approx(two.between.value)
    assert one.mean.value == pytest.approx(two.mean.value)


@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_fewer_than_five_seeds_say_nothing_of_their_variance(seeds):
    answer = seed_variance(*columns(np.random.default_rng(0).random((seeds, 6))))
    assert isinstance(answer, Unavailable)
    assert "between-seed variance cannot be estimated" in answer.reason


def test_a_seed_of_its_own_for_every_run_cannot_be_told_from_luck():
    task = np.repeat(np.arange(4), 5)
    answer = seed_variance(np.arange(20), task, np.random.default_rng(0).random(20))
    assert isinstance(answer, Unavailable)
    assert "each seed must be used on several tasks" in answer.reason


def test_one_task_cannot_tell_seeds_from_luck():
    answer = seed_variance(np.arange(6), np.zeros(6), np.linspace(0, 1, 6))
    assert isinstance(answer, Unavailable)


def test_scores_that_never_vary_have_a_mean_and_no_interval():
    answer = seed_variance(*columns(np.ones((5, 4))))
    assert answer.mean.value == 1
    assert answer.mean.interval is None
    assert answer.between.value == 0


@pytest.mark.parametrize(
    ("seed", "task", "score", "message"),
    [
        ([1, 2], [1, 1], [0.5], "must have one entry per trial"),
        ([], [], [], "must hold at least one trial"),
        ([1], [1], [2.0], "score must be numbers in"),
    ],
)
def test_columns_that_do_not_fit_are_refused(seed, task, score, message):
    with pytest.raises(ArgumentError, match=message):
        seed_variance(seed, task, score)


LOPSIDED = np.repeat(np.arange(6), [30, 6, 6, 6, 6, 6])  # the first seed has half of the runs


def _lopsided(task_sd):
    rng = np.random.default_rng(5)
    task = np.concatenate([np.arange(size) % 6 for size in np.bincount(LOPSIDED)])
    shift = rng.normal(0, 0.1, 6)[LOPSIDED] + rng.normal(0, task_sd, 6)[task]
    return task, np.clip(0.5 + shift + rng.normal(0, 0.05, task.size), 0, 1)


@pytest.mark.parametrize("scope", ["this suite", "tasks like these"])
def test_the_mean_has_the_variance_of_runs_that_share_their_seed_and_their_task(scope):
    """By the whole covariance matrix of the runs; the mean is one of tasks, each weighing alike."""
    task, score = _lopsided(task_sd=0.1)
    found = seed_variance(LOPSIDED, task, score, scope=scope)
    assert found.between.value > 0
    same_seed, same_task = (one[:, None] == one for one in (LOPSIDED, task))
    matrix = found.between.value * same_seed + found.within * np.eye(task.size)
    if scope == "tasks like these":
        matrix = matrix + found.tasks_component * same_task
    weight = 1 / (6 * np.bincount(task)[task])
    mean = float(weight @ score)
    effective = mean * (1 - mean) / float(weight @ matrix @ weight)
    low, high = wilson_bounds(mean, effective, special.stdtrit(5, 0.975))
    assert found.mean.value == pytest.approx(mean)
    assert (found.mean.interval.low, found.mean.interval.high) == pytest.approx(
        (float(low), float(high)), rel=1e-9
    )


def test_where_both_are_a_sample_seeds_and_tasks_play_the_same_part():
    rng = np.random.default_rng(3)
    shift = rng.normal(0, 0.1, (14, 1)) + rng.normal(0, 0.1, 5) + rng.normal(0, 0.03, (14, 5))
    seed, task, score = columns(np.clip(0.5 + shift, 0, 1))
    one, other = seed_variance(seed, task, score), seed_variance(task, seed, score)
    assert one.between.value == pytest.approx(other.tasks_component)
    assert one.between.value > 0 < other.between.value
    assert one.mean.interval.low == pytest.approx(other.mean.interval.low)
    assert one.mean.interval.high == pytest.approx(other.mean.interval.high)


def test_the_component_of_a_balanced_table_has_the_williams_tukey_interval():
    """Williams (1962): chi-square bounds of the seeds' mean square less F times the rest's."""
    rng = np.random.default_rng(8)
    scores = np.clip(0.5 + rng.normal(0, 0.1, (7, 1)) + rng.normal(0, 0.1, (7, 9)), 0, 1)
    ms_seed = 9 * scores.mean(1).var(ddof=1)
    rest = scores - scores.mean(1, keepdims=True) - scores.mean(0) + scores.mean()
    ms_rest = (rest**2).sum() / (6 * 8)
    found = seed_variance(*columns(scores)).between
    for share, end in ((0.975, found.interval.low), (0.025, found.interval.high)):
        excess = ms_seed - stats.f.ppf(share, 6, 48) * ms_rest
        assert end == pytest.approx(6 * excess / (9 * stats.chi2.ppf(share, 6)))


def test_the_component_leaves_out_nothing_only_where_the_f_test_does():
    left_out = 0
    for draw in range(40):
        rng = np.random.default_rng(draw)
        scores = np.clip(0.5 + rng.normal(0, 0.06, (6, 1)) + rng.normal(0, 0.15, (6, 8)), 0, 1)
        rest = scores - scores.mean(1, keepdims=True) - scores.mean(0) + scores.mean()
        ratio = 8 * scores.mean(1).var(ddof=1) / ((rest**2).sum() / 35)
        sure = stats.f.sf(ratio, 5, 35) < 0.025
        assert (seed_variance(*columns(scores)).between.interval.low > 0) == sure
        left_out += sure
    assert 5 < left_out < 35


@pytest.mark.parametrize("confidence", [0.02, 0.5, 0.95])
@pytest.mark.parametrize("seed_sd", [0.0, 0.05, 0.2])
def test_the_component_lies_in_its_interval_and_neither_falls_below_nothing(seed_sd, confidence):
    for draw in range(20):
        rng = np.random.default_rng(draw)
        scores = np.clip(0.5 + rng.normal(0, seed_sd, (6, 1)) + rng.normal(0, 0.2, (6, 8)), 0, 1)
        found = seed_variance(*columns(scores), confidence=confidence).between
        assert 0 <= found.interval.low <= found.value <= found.interval.high
        if found.value == 0:
            assert found.interval.low == 0


def test_scores_that_seed_and_task_settle_leave_no_variance_within_not_less():
    below = 0
    for draw in range(20):
        rng = np.random.default_rng(draw)
        seed, task = rng.integers(0, 6, 30), rng.integers(0, 4, 30)
        found = seed_variance(seed, task, 0.5 * (seed % 2) + 0.5 * (task % 2))
        below += found.within == 0
        assert found.within >= 0
        assert found.tasks_component >= 0
    assert below > 0
