"""What is told of a run while it goes on."""

import pytest

from passhat.cli import run_output
from passhat.cli.run_output import Progress, RunProgress
from passhat.records import Outcome, Ticket, Trial
from passhat.runner.schedule import (
    BudgetHit,
    Retry,
    RunFinished,
    RunStarted,
    StopRequested,
    TrialFinished,
    TrialStarted,
)

TICKET = Ticket(number=0, system="s", task="t", trial=0)


def finished(outcome=Outcome.PASSED, **features):
    trial = Trial(system="s", task="t", trial=0, outcome=outcome, **features)
    return TrialFinished(ticket=TICKET, trial=trial, row="t #1")


def feed(standing, *events):
    for event in events:
        standing.take(event)
    return standing


@pytest.fixture
def started():
    return feed(
        RunProgress(),
        RunStarted(planned=10, kept=0, concurrency=2),
        *[TrialStarted(ticket=TICKET, row="t")] * 5,
        finished(cost=0.25, tokens_in=100, tokens_out=20),
        finished(Outcome.FAILED, cost=0.25),
        finished(Outcome.ERRORED),
    )


def test_trials_are_told_as_counts_and_errors_apart(started):
    assert started.counts == "3/10 trials"
    passed, errors, cost, left = started.details()
    assert passed == "1 passed"
    assert errors == "1 errored"
    assert cost == "$0.5000"
    assert left.startswith("about ")


def test_without_prices_tokens_are_told():
    standing = feed(RunProgress(), RunStarted(planned=2, kept=0, concurrency=1))
    standing = feed(standing, TrialStarted(ticket=TICKET, row="t"), finished(tokens_in=1200))
    assert standing.spent == "1,200 tokens"


def test_a_run_that_may_end_early_says_at_most():
    standing = feed(RunProgress(most=True), RunStarted(planned=10, kept=0, concurrency=1))
    assert standing.counts == "0 of at most 10 trials"


def test_a_run_whose_trials_are_not_counted_yet_is_starting():
    assert RunProgress(most=True).counts == "starting"


def test_a_resume_with_nothing_left_to_run_says_no_time(capsys):
    with Progress() as told:
        told(RunStarted(planned=10, kept=10, concurrency=1))
        told(RunFinished(ending="finished", done=10, undone=0, seconds=0.0))
    assert capsys.readouterr().err == "resuming: 10 of 10 trials are already done\n"


def test_a_resumed_run_begins_where_it_was_and_reckons_with_new_trials_only():
    standing = feed(RunProgress(passed=6), RunStarted(planned=10, kept=8, concurrency=1))
    assert standing.counts == "8/10 trials"
    assert standing.details() == ["6 passed"]


def test_a_busy_provider_is_named(started):
    feed(started, Retry(system="gpt-5", attempt=1, wait=2.0, reason="429"))
    assert started.details()[-1] == "gpt-5 is busy: next try in 2 s"


def test_lines_are_neither_too_many_nor_too_few(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(run_output.time, "monotonic", lambda: clock[0])
    with Progress() as told:
        told(RunStarted(planned=1000, kept=0, concurrency=1))
        for _ in range(1000):
            clock[0] += 0.1
            told(TrialStarted(ticket=TICKET, row="t"))
            told(finished())
        told(RunFinished(ending="finished", done=1000, undone=0, seconds=100.0))
    lines = capsys.readouterr().err.splitlines()
    assert 8 <= len(lines) <= 12
    assert lines[-1] == "1,000 trials in 1 min 40 s"


def test_what_happens_to_a_run_gets_a_line_of_its_own(capsys):
    with Progress() as told:
        told(RunStarted(planned=10, kept=4, concurrency=1))
        told(BudgetHit(limit="max_cost", spent="$5.01"))
        told(StopRequested(signal=2, grace=1.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "resuming: 4 of 10 trials are already done",
        "max_cost is reached ($5.01): no new trial is started",
        "stopping: 1 s for trials under way. Ctrl-C again quits now.",
    ]


def test_quiet_says_nothing(capsys):
    with Progress(quiet=True) as told:
        told(RunStarted(planned=10, kept=4, concurrency=1))
    assert capsys.readouterr().err == ""


def test_names_from_data_cannot_steer_the_terminal(capsys):
    with Progress() as told:
        told(BudgetHit(limit="\x1b]0;owned\x07", spent=""))
    assert "\x1b" not in capsys.readouterr().err
