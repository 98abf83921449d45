"""A report of a stored run speaks of the k that its gates ask about."""

import pytest

from passhat.analysis.gates.gate import asked_streak, parse_gate
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.parts import headline_k


@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_sentence_is_about_the_k_that_was_asked_for(k):
    report = measure(simulate(rate=0.8, runs=10)).about(k)
    assert headline_k(report.system()) == k
    assert f"{k} times in a row" in str(report)
    assert f"pass^{k} " in str(report)


def test_a_k_that_was_not_measured_changes_nothing():
    report = measure(simulate(rate=0.8, runs=10))
    assert str(report.about(1_000)) == str(report) == str(report.about(None))


@pytest.mark.parametrize(
    ("demands", "asked"),
    [
        (["pass@1 >= 0.5"], (None, None)),
        (["pass^1 >= 0.5", "mean_score >= 0.2"], (None, None)),
        (["pass@1 >= 0.5", "pass^3 >= 0.8", "pass^2 >= 0.9"], (3, 0.8)),
        (["reliability@4 >= 0.8"], (4, 0.8)),
        ([], (None, None)),
    ],
)
def test_the_longest_streak_of_the_gates_is_what_was_asked(demands, asked):
    assert asked_streak(map(parse_gate, demands)) == asked


@pytest.mark.parametrize(("share", "said"), [(0.8, True), (0.9, False), (None, False)])
def test_a_report_says_what_the_gate_demands_where_reliable_means_more(share, said):
    report = measure(simulate(rate=0.8, runs=10)).about(3, share)
    line = "The gate of this run demands pass^3 of 80%; reliable is from 90% on."
    assert (line in str(report)) is said
    assert (line in " ".join(report.summary(verbose=True).split())) is said


SUITE = """\
name: coins
defaults: {model: scripted, runs: 5}
agents:
  - name: a
    prompt: hi
    expect: [{contains: x}]
    script: [{answer: x}]
"""


@pytest.mark.slow("starts the command eight times")
def test_a_trend_speaks_of_the_k_that_the_gates_of_the_newest_run_ask_about(shell):
    shell.write("passhat.yml", SUITE)
    assert shell("run", "--require", "pass^3 >= 0.1").returncode in (0, 4)
    assert "pass^3" in shell("trend").stdout
    assert shell("run").returncode in (0, 1)
    assert "pass^5" in shell("trend").stdout
