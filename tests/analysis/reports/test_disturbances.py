"""Runs that were not independent: seen, said, included, and left out on request."""

import numpy as np
import pytest

from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.dependence import drop_rounds, find_disturbances
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.records.trial import Source
from passhat.reporters import headline


def trials_of(table, *, started=None, seed=None, sources=()):
    """A table with a row for each task and a column for each round."""
    tasks, rounds = np.indices(table.shape)
    columns = {
        "task": [f"t{i}" for i in tasks.ravel()],
        "trial": rounds.ravel(),
        "passed": table.ravel().astype(bool),
    }
    if started is not None:
        columns["started"] = started
    if seed is not None:
        columns["seed"] = seed.ravel()
    return Trials.from_columns(columns, sources=sources)


def outage(tasks=40, rounds=6, bad=3):
    table = np.random.default_rng(1).random((tasks, rounds)) < 0.9
    table[:, bad] = False
    return table


def hourly(table):
    """Every round starts at the full hour, its tasks a second apart."""
    return [
        f"2026-01-01T{r:02}:00:{i:02}Z"
        for i in range(table.shape[0])
        for r in range(table.shape[1])
    ]


def test_an_outage_is_named_with_its_minute_after_the_answer():
    table = outage()
    system = measure(trials_of(table, started=hourly(table))).system()
    (found,) = system.disturbances
    assert (found.kind, found.rounds, found.failed, found.runs) == (
        "rounds out of line",
        (4,),
        40,
        40,
    )
    assert found.seconds == 39
    said = headline.verdict(system)
    seen = said.index("Round 4 is out of line: 40 of 40 trials failed within a minute")
    assert 0 < said.index("reliable") < seen, said
    assert system.unsettled[0].advice.startswith("Re-run round 4: 40 of 40 trials failed")
    assert "`drop_rounds=(4,)` leaves it out" in system.unsettled[0].advice
    assert not any("more times" in one.advice for one in system.unsettled)


def test_intervals_include_the_rounds_and_a_report_without_them_does_not():
    table = outage()
    disturbed = measure(trials_of(table)).system().pass_hat(1)
    calm = measure(drop_rounds(trials_of(table), [4])).system()
    assert calm.disturbances == ()
    assert disturbed.this_suite.interval.width > 3 * calm.pass_hat(1).this_suite.interval.width
    assert any("rounds" in note for note in disturbed.this_suite.notes)


def test_a_drift_is_said_and_no_fixed_gate_passes_on_it():
    rng = np.random.default_rng(2)
    table = rng.random((40, 10)) < np.linspace(0.95, 0.28, 10)
    verdict = judge(trials_of(table), "pass_rate >= 0.5")[0]
    assert verdict.status == "UNDECIDED"
    assert "The rate drifted while it ran" in verdict.sentence
    assert "The bounds include the spread between rounds." in verdict.sentence
    assert verdict.more_runs is None


def test_a_burst_over_rounds_is_seen_by_start_times_alone():
    rng = np.random.default_rng(3)
    table = rng.random((20, 10)) < 0.95
    started = [f"2026-01-01T{r:02}:{i:02}:00Z" for i in range(20) for r in range(10)]
    table[17:, 4], table[:3, 5] = False, False
    table[16, 4] = table[3, 5] = True
    (found,) = find_disturbances(trials_of(table, started=started), "fail")
    assert (found.kind, found.failed, found.tasks) == ("burst", 6, 6)
    assert (found.began, found.ended) == ("2026-01-01T04:17:00Z", "2026-01-01T05:02:00Z")
    assert find_disturbances(trials_of(table), "fail") == ()


def test_results_in_order_of_size_say_nothing_about_time():
    counts = np.arange(2, 12) % 10
    table = np.arange(10) < counts[:, None]
    assert find_disturbances(trials_of(table), "fail") == ()


def test_errors_that_are_left_out_are_no_outage():
    rows = [(f"t{i}", r, "errored" if r == 2 else "passed") for i in range(30) for r in range(5)]
    task, trial, outcome = zip(*rows, strict=True)
    trials = Trials.from_columns(task=task, trial=trial, outcome=outcome)
    assert find_disturbances(trials, "exclude") == ()
    (found,) = find_disturbances(trials, "fail")
    assert found.rounds == (3,)


def test_left_out_rounds_are_named_wherever_a_verdict_rests_on_them():
    source = Source(name="a.csv", format="csv", sha256="0")
    kept = drop_rounds(trials_of(outage(), sources=(source,)), [4])
    note = "left out by request: round 4, 40 of 240 trials"
    assert kept.sources[0].notes == (note,)
    verdict = judge(kept, "pass_rate >= 0.8")[0]
    assert note in verdict.sentence
    with pytest.raises(ArgumentError, match="must be among the 6 rounds, got '9'"):
        drop_rounds(trials_of(outage()), [9])


def test_from_five_seeds_on_the_printed_interval_includes_them():
    rng = np.random.default_rng(4)
    rates = np.array([0.3, 0.9, 0.5, 0.8, 0.4, 0.6])
    # Each task meets the seeds in another order: rounds do not differ, seeds do.
    seeds = (np.arange(6) + np.arange(60)[:, None]) % 6
    table = rng.random((60, 6)) < rates[seeds]
    seeded = measure(trials_of(table, seed=seeds)).system()
    for k in (1, 3):
        number = seeded.pass_hat(k).this_suite
        assert any("one seed each" in note for note in number.notes)
    assert seeded.pass_hat(1).this_suite.interval.width > 0.35
    few = measure(trials_of(table, seed=seeds % 3)).system().pass_hat(1).this_suite
    assert not any("one seed each" in note for note in few.notes)
