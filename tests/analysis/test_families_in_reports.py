import numpy as np
import pytest

from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.dependence import determinism_check
from passhat.analysis.reports.evidence import input_hash
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.records.columns import ColumnMap


def families(*, families=10, tasks=6, runs=4, systems=("a",), seed=1):
    rng = np.random.default_rng(seed)
    columns = {"system": [], "task": [], "family": [], "passed": []}
    for system in systems:
        rates = rng.beta(2, 1, families)
        for group, rate in enumerate(rates):
            for task in range(tasks):
                passed = rng.random(runs) < rate
                columns["system"] += [system] * runs
                columns["task"] += [f"repo{group}/{task}"] * runs
                columns["family"] += [f"repo{group}"] * runs
                columns["passed"] += passed.tolist()
    return columns


def test_a_report_of_families_is_wider_for_tasks_like_these_and_the_same_for_this_suite():
    columns = families()
    plain = measure(Trials.from_columns({k: v for k, v in columns.items() if k != "family"}))
    grouped = measure(Trials.from_columns(columns))
    one, other = (report.system().metrics["pass^1"] for report in (plain, grouped))
    ends = [
        (found.this_suite.interval.low, found.this_suite.interval.high) for found in (one, other)
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-14)  # computed by two ways
    assert other.tasks_like_these.interval.width > 1.3 * one.tasks_like_these.interval.width
    assert other.tasks_like_these.families == 10


def test_a_gate_on_tasks_like_these_uses_the_families_of_the_report():
    trials = Trials.from_columns(families())
    verdict = judge(
        trials, [parse_gate({"require": "pass_rate >= 0.5", "scope": "tasks like these"})]
    )[0]
    report = measure(trials).system().metrics["pass^1"].tasks_like_these
    assert verdict.estimate.families == report.families == 10


def test_comparing_and_ranking_flip_whole_families():
    columns = families(systems=("a", "b", "c"))
    trials = Trials.from_columns(columns)
    plain = Trials.from_columns({k: v for k, v in columns.items() if k != "family"})
    pair = [table.where(system=name) for table in (trials, plain) for name in "ab"]
    grouped, alone = compare(*pair[:2]), compare(*pair[2:])
    widths = [one.differences["pass^1"].tasks_like_these.interval.width for one in (grouped, alone)]
    assert widths[0] > widths[1]
    reach = [max(p.interval.width for p in rank(table).pairs) for table in (trials, plain)]
    assert reach[0] > reach[1]


def test_weights_reach_the_report():
    trials = Trials.from_columns(
        task=["a", "a", "b", "b", "c", "c"], passed=[1, 1, 0, 0, 1, 0], weight=[2, 2, 1, 1, 1, 1]
    )
    assert measure(trials).system().metrics["pass^1"].value == pytest.approx((2 + 0 + 0.5) / 4)


def test_a_pattern_over_task_names_is_no_column():
    mapping = ColumnMap(family=r"^(\w+)/")
    assert mapping.chosen() == {}
    assert mapping.family_pattern.search("repo1/x")[1] == "repo1"


def test_the_hash_of_the_input_does_not_depend_on_the_order_of_rows():
    trials = Trials.from_columns(families(families=3))
    shuffled = trials.take(np.random.default_rng(0).permutation(len(trials)))
    assert input_hash(shuffled) == input_hash(trials)
    flipped = families(families=3)
    flipped["passed"][0] = not flipped["passed"][0]
    assert input_hash(Trials.from_columns(flipped)) != input_hash(trials)


def test_verdicts_are_true_where_they_passed():
    trials = Trials.from_columns(task=["a"] * 60, passed=[1] * 60)
    assert judge(trials, ["pass_rate >= 0.5"])
    assert not judge(trials, ["pass_rate <= 0.5"])


def test_a_tolerance_forgives_rounding_and_nothing_more():
    numbers = iter([0.1 + 0.2, 0.3] * 2)
    assert not determinism_check(lambda: next(numbers))
    assert determinism_check(lambda: next(numbers), tolerance=1e-12)
    arrays = iter([np.array([1.0]), np.array([1.1])])
    assert not determinism_check(lambda: next(arrays), tolerance=1e-3)
