"""Ranks of several systems: laws, corners, and the joint promise by simulation."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from passhat.errors import ArgumentError
from passhat.stats.dependent_runs import larger_p, wider_margins
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.multiple_testing import tukey
from passhat.stats.numerics import distinct_rows
from passhat.stats.paired import paired_difference
from passhat.stats.ranking import _DirichletMeans, rank_systems
from passhat.stats.special import ndtri


def tables(systems=(2, 5), tasks=(2, 20)):
    def drawn(seed, s, t):
        return np.random.default_rng(seed).integers(0, 6, size=(t, s)) / 5

    return st.builds(drawn, st.integers(0, 9_999), st.integers(*systems), st.integers(*tasks))


@settings(max_examples=30)
@given(table=tables())
def test_reversing_the_systems_reverses_the_statements(table):
    there, back = rank_systems(table, rng=3), rank_systems(table[:, ::-1], rng=3)
    assert back.rank_sets == there.rank_sets[::-1]
    for pair in there.pairs:
        mirrored = len(there.means) - 1 - pair.second, len(there.means) - 1 - pair.first
        twin = next(p for p in back.pairs if (p.first, p.second) == mirrored)
        assert twin.value == pytest.approx(pair.value * -1, abs=1e-12)
        assert twin.interval.low == pytest.approx(-pair.interval.high, abs=1e-9)


@settings(max_examples=30)
@given(table=tables())
def test_rank_sets_hold_the_observed_rank_and_tie_bands_hold_everyone(table):
    found = rank_systems(table)
    systems = table.shape[1]
    for place, system in enumerate(found.order, start=1):
        best, worst = found.rank_sets[system]
        assert 1 <= best <= place <= worst <= systems
    assert {system for band in found.tie_bands for system in band} == set(range(systems))
    apart = {frozenset((p.first, p.second)) for p in found.pairs if p.told_apart}
    for band in found.tie_bands:
        assert not any(frozenset((a, b)) in apart for a in band for b in band)


@settings(max_examples=30)
@given(table=tables())
def test_told_apart_is_a_simultaneous_p_below_alpha(table):
    found = rank_systems(table)
    for pair in found.pairs:
        assert pair.value in pair.interval
        if pair.p_value <= 0.049:
            assert pair.told_apart
        if pair.p_value >= 0.051:
            assert not pair.told_apart


def test_clear_differences_are_ranked_and_close_ones_tied():
    rng = np.random.default_rng(7)
    table = rng.binomial(10, [0.9, 0.2, 0.55, 0.88], size=(60, 4)) / 10
    found = rank_systems(table)
    assert set(found.rank_sets[:1] + found.rank_sets[3:]) == {(1, 2)}
    assert found.rank_sets[1:3] == ((4, 4), (3, 3))
    assert sorted(map(sorted, found.tie_bands)) == [[0, 3], [1], [2]]


@pytest.mark.slow("simulates an error rate")
def test_six_tied_systems_share_all_ranks_at_the_stated_confidence():
    rng = np.random.default_rng(8)
    repetitions, held = 250, 0
    for _ in range(repetitions):
        table = rng.binomial(5, rng.beta(1, 1, size=(40, 1)), size=(40, 6)) / 5
        found = rank_systems(table, rng=rng)
        held += all(ranks == (1, 6) for ranks in found.rank_sets)
    error = np.sqrt(0.94 * 0.06 / repetitions)
    assert held / repetitions >= 0.94 - 3 * error


def test_two_systems_are_told_apart_only_where_every_flip_of_their_differences_says_so():
    """On few tasks that are all or nothing residuals alone part equals in one case of eight."""
    for wins, losses in product(range(8), repeat=2):
        ties = 7 - wins - losses
        if ties < 0 or wins + losses == 0:
            continue
        gaps = np.repeat([1.0, -1.0, 0.0], [wins, losses, ties])
        table = np.stack((gaps > 0, gaps < 0), axis=1).astype(float)
        sums = [abs(sum(signs)) for signs in product((-1, 1), repeat=wins + losses)]
        exact = np.mean(np.array(sums) >= abs(wins - losses))
        (pair,) = rank_systems(table).pairs
        if exact > 0.06:
            assert not pair.told_apart
            assert pair.p_value > 0.05


@pytest.mark.slow("simulates an error rate")
def test_equal_systems_of_six_tasks_are_rarely_told_apart():
    rng, repetitions, parted = np.random.default_rng(8), 200, 0
    for _ in range(repetitions):
        table = (rng.random((6, 2)) < 0.5).astype(float)
        parted += rank_systems(table, rng=rng).pairs[0].told_apart
    assert parted / repetitions <= 0.05


def test_tasks_that_a_system_lacks_are_listed_and_left_out():
    table = np.random.default_rng(9).uniform(0, 1, size=(12, 3))
    table[[2, 5], [0, 2]] = np.nan
    found = rank_systems(table)
    assert found.excluded == (2, 5)
    assert found.tasks == 10
    assert found.notes == ("2 tasks lack a value from some agent and are left out",)
    whole = rank_systems(np.delete(table, [2, 5], axis=0))
    assert whole.pairs == found.pairs


@pytest.mark.parametrize("seed", range(12))
def test_every_tied_pair_shares_a_band_and_no_band_could_be_larger(seed):
    rng = np.random.default_rng(seed)
    # Some systems are noisier than others, so that ties skip systems in between.
    rates, noise = np.linspace(0.2, 0.7, 9), rng.choice([0.02, 0.3], size=9)
    table = np.clip(rng.normal(rates, noise, size=(40, 9)), 0, 1)
    found = rank_systems(table, rng=seed)
    apart = {frozenset((pair.first, pair.second)) for pair in found.pairs if pair.told_apart}
    bands = [set(band) for band in found.tie_bands]
    for a, b in combinations(range(9), 2):
        assert (frozenset((a, b)) in apart) == (not any({a, b} <= band for band in bands))
    for band in bands:
        outside = set(range(9)) - band
        assert all(any(frozenset((a, b)) in apart for a in band) for b in outside)


def test_identical_systems_tie_and_constant_gaps_count_their_tasks():
    same = rank_systems(np.ones((30, 3)))
    assert same.tie_bands == ((0, 1, 2),)
    assert all(pair.p_value == 1 for pair in same.pairs)
    assert all(pair.interval.width > 0 for pair in same.pairs)
    gap = rank_systems(np.tile([1.0, 0.0], (8, 1)))
    assert gap.pairs[0].told_apart
    assert gap.pairs[0].p_value == pytest.approx(2 * 2.0**-8)
    assert not rank_systems(np.tile([1.0, 0.0], (4, 1))).pairs[0].told_apart


def test_a_gap_that_never_varies_answers_for_every_pair_that_was_asked_about():
    alone = rank_systems(np.tile([1.0, 0.0], (7, 1))).pairs[0]
    among = rank_systems(np.tile([1.0, 0.0, 0.5, 0.5], (7, 1))).pairs[0]
    assert among.p_value == pytest.approx(tukey([alone.p_value], 4)[0])
    assert among.interval.low <= 0 < alone.interval.low
    assert (alone.told_apart, among.told_apart) == (True, False)


def test_too_few_tasks_for_any_pair_is_said():
    few = rank_systems(np.tile([1.0, 0.0, 0.5], (5, 1)))
    assert few.notes == ("5 tasks are too few to tell any two apart",)
    assert rank_systems(np.tile([1.0, 0.0], (6, 1))).notes == ()


def test_a_gap_that_never_varies_beside_pairs_that_do_makes_no_p_of_zero():
    table = np.random.default_rng(2).binomial(5, 0.5, size=(20, 3)) / 10
    table[:, 1] = table[:, 0] + 0.5
    found = rank_systems(table)
    assert found.pairs[0].standard_error == 0
    assert 0 < found.pairs[0].p_value < 0.01


def test_fewer_than_two_shared_tasks_rank_nothing():
    table = np.array([[0.5, np.nan], [np.nan, 0.5], [1.0, 0.0]])
    found = rank_systems(table)
    assert found == Unavailable("ranking needs 2 tasks that every agent ran; there are 1")


@settings(max_examples=25)
@given(table=tables(systems=(2, 2), tasks=(2, 20)), grouped=st.sampled_from(["", "w", "f"]))
def test_two_systems_are_not_told_apart_where_their_own_comparison_does_not(table, grouped):
    tasks = len(table)
    options = {}
    if grouped == "w":
        options["weight"] = np.linspace(1, 3, tasks)
    if grouped == "f":
        options["family"] = np.arange(tasks) % 9
    (pair,) = rank_systems(table, rng=0, **options).pairs
    alone = paired_difference(*table.T, scope="tasks like these", rng=0, **options)
    assert pair.p_value >= alone.p_value - 1e-7
    assert pair.standard_error == pytest.approx(alone.standard_error)
    if pair.told_apart:
        assert alone.answer in ("better", "worse")
        assert pair.interval.low == pytest.approx(alone.interval.low, abs=1e-7)


def test_the_same_seed_gives_the_same_bits_and_is_recorded():
    table = np.random.default_rng(1).uniform(0, 1, size=(15, 3)) / [1, 2, 1]
    assert rank_systems(table, rng=4) == rank_systems(table, rng=4)
    assert rank_systems(table, rng=4).seed == 4
    assert rank_systems(table, rng=5).pairs != rank_systems(table, rng=4).pairs


def _wins(found):
    """Who is shown to be ahead of whom."""
    pairs = [
        (p.first, p.second) if p.value > 0 else (p.second, p.first)
        for p in found.pairs
        if p.told_apart
    ]
    return set(pairs)


def _no_better(before, after, system):
    """What a failure of a system may do to it: nothing good."""
    assert after.rank_sets[system][0] >= before.rank_sets[system][0]
    assert after.rank_sets[system][1] >= before.rank_sets[system][1]
    assert {w for w in _wins(after) if w[0] == system} <= _wins(before)
    assert {w for w in _wins(before) if w[1] == system} <= _wins(after)


@settings(max_examples=60)
@given(
    table=tables(systems=(2, 5), tasks=(4, 25)),
    scale=st.sampled_from([1.0, 0.97, np.pi / 4]),
    grouped=st.sampled_from(["", "w", "f"]),
    confidence=st.sampled_from([0.5, 0.8, 0.95]),
    data=st.data(),
)
def test_one_more_failure_never_improves_a_rank_set(table, scale, grouped, confidence, data):
    """Also for scores on no common unit (signs are drawn), with weights, and with families."""
    table = table * scale
    tasks, systems = table.shape
    options = {"confidence": confidence, "rng": 1}
    if grouped == "w":
        options["weight"] = np.sqrt(np.arange(1, tasks + 1))
    if grouped == "f":
        options["family"] = np.arange(tasks) % 9
    task = data.draw(st.integers(0, tasks - 1))
    system = data.draw(st.integers(0, systems - 1))
    worse = table.copy()
    worse[task, system] *= data.draw(st.sampled_from([0.0, 0.5, 0.8]))
    _no_better(rank_systems(table, **options), rank_systems(worse, **options), system)


@pytest.mark.slow("ranks all tables, up to 3,432")
@pytest.mark.parametrize(
    ("systems", "tasks", "runs", "confidence"), [(3, 4, 1, 0.5), (3, 7, 1, 0.95), (2, 6, 2, 0.8)]
)
def test_one_more_failure_never_improves_a_rank_set_in_any_small_table(
    systems, tasks, runs, confidence
):
    rows = list(product(range(runs + 1), repeat=systems))
    found = {
        table: rank_systems(np.array(table) / runs, confidence=confidence, rng=1)
        for table in combinations_with_replacement(rows, tasks)
    }
    moved = 0
    for table, before in found.items():
        for place, system in product(range(tasks), range(systems)):
            row = table[place]
            if row[system] == 0:
                continue
            fewer = (*row[:system], row[system] - 1, *row[system + 1 :])
            after = found[tuple(sorted((*table[:place], fewer, *table[place + 1 :])))]
            _no_better(before, after, system)
            moved += before.rank_sets != after.rank_sets
    assert moved > 20, "the tables must not all be ties"


def test_what_is_no_table_of_values_is_refused():
    with pytest.raises(ArgumentError, match="a row per task and a column per agent"):
        rank_systems([0.1, 0.2])
    with pytest.raises(ArgumentError, match="a row per task and a column per agent"):
        rank_systems([[0.1], [0.2]])
    with pytest.raises(ArgumentError, match=r"values must be numbers in \[0, 1\]"):
        rank_systems([[0.1, 2.0], [0.2, 0.3]])


def test_pairs_that_ask_the_same_are_answered_once_and_all_get_their_answer():
    rng = np.random.default_rng(6)
    sums = rng.integers(0, 2, (12, 600)).astype(float)
    pairs = np.arange(600).reshape(2, 300)
    unseen = tuple(-rng.integers(1, 4, 300) / 4 for _ in range(2))
    together = _DirichletMeans(sums=sums, pairs=tuple(pairs), sizes=np.ones(12), unseen=unseen)
    gaps = together.gaps
    assert len(together._alike(np.ones(300), unseen[0])[1]) < 200
    bounds, p = together.bounds(0.025), together.p_values(gaps.sum(axis=1))
    for row in range(0, 300, 25):
        some = np.arange(300) == row
        alone = together.taken(some)
        assert np.array(alone.bounds(0.025))[:, 0] == pytest.approx(np.array(bounds)[:, row])
        assert alone.p_values(gaps[some].sum(axis=1))[0] == pytest.approx(p[row], rel=1e-6)


@settings(max_examples=60)
@given(
    table=arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 30)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 20.0, 0.25, 1e300, 2.0**40]),
    )
)
def test_distinct_rows_are_those_of_numpy_in_their_order(table):
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    found = distinct_rows(table)
    assert found[0].tolist() == first.tolist()
    assert found[1].tolist() == kind.ravel().tolist()


def test_margins_of_a_system_widen_its_pairs_as_a_single_difference_is_widened():
    rng = np.random.default_rng(2)
    table = rng.binomial(5, [0.3, 0.6, 0.65, 0.95], size=(30, 4)) / 5
    plain = rank_systems(table, rng=1)
    more = [(0.0, 0.0), (0.4, 0.05), (0.0, 0.0), (0.02, 0.3)]
    ranking = rank_systems(table, more=more, rng=1)
    stricter = ndtri(plain.pair_level / 2) / ndtri(0.025)
    for before, after in zip(plain.pairs, ranking.pairs, strict=True):
        (a_low, a_high), (b_low, b_high) = more[before.first], more[before.second]
        grown = stricter * np.hypot(a_low, b_high), stricter * np.hypot(a_high, b_low)
        interval = wider_margins(before.interval, before.value, grown)
        assert after.interval.low == pytest.approx(interval.low)
        assert after.interval.high == pytest.approx(interval.high)
        level = plain.pair_level
        p = larger_p(before.p_value, before.value, before.interval, interval, level=level)
        assert after.p_value == pytest.approx(p)
        assert (after.p_value > level) == (0 in after.interval)
    assert plain.rank_sets[1] != ranking.rank_sets[1]


@given(
    value=st.floats(-1, 1).filter(bool),
    arms=st.lists(st.floats(0.01, 2), min_size=1, max_size=4).map(sorted),
    p=st.floats(1e-12, 0.05, exclude_max=True),
)
def test_a_p_value_crosses_the_level_where_its_interval_reaches_0(value, arms, p):
    before = Interval(value - 2, value + 2)
    told = [p]
    for arm in (abs(value) / 2, *(abs(value) * arm for arm in arms)):
        after = Interval(value - arm, value + arm)
        start = Interval(value - abs(value) / 2, value + abs(value) / 2)
        told.append(larger_p(p, value, start, after, level=0.05))
        assert (told[-1] < 0.05) == (0 not in after)
        assert larger_p(0.5, value, before, after, level=0.05) >= 0.05
    assert told[1] == p
    assert all(later >= sooner - 1e-12 for sooner, later in pairwise(told[1:]) if later > p)
