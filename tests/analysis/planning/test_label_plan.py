"""Plans of labels: what they promise comes true in simulated suites, and more is never less."""

import numpy as np
import pytest

import passhat
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.planning.label_plan import JudgeQuality, out_of_reach, plan_labels
from passhat.analysis.reports.judged import LabelEvidence
from passhat.errors import ArgumentError
from passhat.stats import judged
from passhat.stats.judged import (
    Labels,
    Verdicts,
    corrected_pass_hat_difference,
    corrected_pass_rate,
)


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """A coarse grid moves no end of an interval by a hundredth, and is quick."""
    for name, size in (("_QUANTILES", 64), ("_POINTS", 64)):
        monkeypatch.setattr(judged, name, size)


QUALITY = JudgeQuality.expected(0.8, 0.9, 0.85)


def labelled_suite(rng, labels, *, tasks=50, runs=10):
    """A suite as the plan expects it, with so many labels by verdict."""
    truth = rng.random((tasks, runs)) < 0.8
    verdict = np.where(truth, rng.random(truth.shape) < 0.9, rng.random(truth.shape) < 0.15)
    sides = [rng.permutation(np.flatnonzero(verdict.ravel() == side)) for side in (True, False)]
    rows = np.concatenate([side[: labels // 2] for side in sides])
    passed = verdict.sum(axis=1)
    verdicts = Verdicts(passed=passed, failed=runs - passed, errored=np.zeros(tasks, np.int64))
    return verdicts, Labels(
        task=rows // runs, verdict=verdict.ravel()[rows], passed=truth.ravel()[rows]
    )


def test_with_the_planned_labels_reports_are_as_narrow_as_planned_and_with_half_not():
    rng = np.random.default_rng(1)
    (row, *_) = plan_labels(QUALITY, tasks=50, runs=10, half_width=0.05).rows
    for labels, least, most in ((row.labels, 0.045, 0.055), (row.labels // 2, 0.06, 0.09)):
        widths = [
            corrected_pass_rate(*labelled_suite(rng, labels), scope="this suite").interval.width
            for _ in range(10)
        ]
        assert least < np.median(widths) / 2 < most


@pytest.mark.slow("simulates a chance")
def test_a_gate_planned_for_is_decided_about_four_times_in_five():
    rng = np.random.default_rng(2)
    (row, *_) = plan_labels(QUALITY, tasks=50, runs=10, gate="pass@1 >= 0.7").rows
    decided = 0
    for _ in range(25):
        found = corrected_pass_rate(
            *labelled_suite(rng, row.labels), scope="this suite", confidence=0.9
        )
        decided += found.interval.low >= 0.7
    assert 16 <= decided <= 25


def test_what_is_asked_for_more_exactly_takes_more_labels_and_a_better_judge_fewer():
    def needed(quality=QUALITY, **question):
        return plan_labels(quality, tasks=50, runs=10, **question).rows[0].labels

    exact = needed(half_width=0.04)
    assert exact > needed(half_width=0.08)
    assert exact > needed(JudgeQuality.expected(0.8, 0.97, 0.97), half_width=0.04)
    assert needed(difference=0.1) > needed(difference=0.2)


def test_pass_hat_k_takes_whole_tasks_and_more_tasks_where_these_are_too_few():
    wide = plan_labels(QUALITY, tasks=60, runs=10, half_width=0.2, k=3)
    assert wide.each == 5
    assert wide.rows[0].labels % 5 == 0
    narrow = plan_labels(QUALITY, tasks=60, runs=10, half_width=0.02, k=3)
    assert narrow.rows[0].labels is None
    assert "it takes more tasks" in " ".join(passhat.render([narrow]).split())


def test_a_difference_of_pass_hat_k_planned_for_is_seen_four_times_in_five_or_more():
    """Planned for two agents apart; that they have tasks in common makes it surer."""
    rng = np.random.default_rng(3)
    plan = plan_labels(QUALITY, tasks=80, runs=5, difference=0.3, k=3)
    (row,) = plan.rows
    assert row.labels > plan_labels(QUALITY, tasks=80, runs=5, difference=0.4, k=3).rows[0].labels
    said = " ".join(passhat.render([plan]).split())
    assert "of each agent for a difference of 30 points in pass^3 to be seen 4 times in 5" in said
    tasks, seen = row.labels // 5, 0
    for _ in range(20):
        base = rng.beta(4, 1, 80)  # pass^3 is 4/7, of the other 0.27
        truths = [rng.random((80, 5)) < rates[:, None] for rates in (base, base - 0.25)]
        sides = []
        for truth in truths:
            right = truth.sum(axis=1)
            verdicts = Verdicts(passed=right, failed=5 - right, errored=np.zeros(80, np.int64))
            said = truth[:tasks].ravel()
            read = Labels(task=np.repeat(np.arange(tasks), 5), verdict=said, passed=said)
            sides.append((verdicts, read))
        seen += corrected_pass_hat_difference(*sides, 3).interval.low > 0
    assert seen >= 14


@pytest.mark.parametrize("judge", ["0.9", "0.4,0.5", "good", "1.2,0.9", "labels"])
def test_a_judge_that_says_nothing_or_is_not_described_is_refused(judge):
    with pytest.raises(ArgumentError, match="judge must be two shares"):
        passhat.plan_labels(judge)


def evidence(right, wrong):
    """Labels of trials that the judge passed: so many that people pass, and so many they fail."""
    said = np.array([True] * right + [False] * wrong)
    labels = Labels(task=np.arange(said.size), verdict=np.ones(said.size, bool), passed=said)
    none = Labels(task=np.zeros(0, np.intp), verdict=np.zeros(0, bool), passed=np.zeros(0, bool))
    ones = np.ones(said.size, np.int64)
    verdicts = Verdicts(passed=9 * ones, failed=ones, errored=0 * ones)
    return LabelEvidence(
        verdicts=verdicts, single=labels, whole=none, unused=0, people=("ann",), twice=()
    )


def test_a_gate_above_what_the_labels_could_ever_show_is_named_with_the_labels_it_takes():
    gates = [parse_gate(text) for text in ("pass@1 >= 0.95", "pass@1 >= 0.6", "pass^3 >= 0.7")]
    found = list(out_of_reach(gates, evidence(29, 1)))
    assert [text.split(":")[0] for text in found] == [
        "no number of trials can pass pass@1 >= 0.95",
        "no number of trials can pass pass^3 >= 0.7",
    ]
    assert "people fail 1 of 30 labelled trials that the judge passed" in found[0]
    assert "label about" in found[0]
    (hopeless,) = out_of_reach(gates[:1], evidence(25, 5))
    assert hopeless.endswith("the judge is too lenient for it")
    assert not list(out_of_reach(gates, evidence(400, 0)))
    assert not list(out_of_reach(gates, evidence(8, 1)))  # too few labels to say anything
