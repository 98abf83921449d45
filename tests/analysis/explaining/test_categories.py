"""Failed runs by what went wrong: each in one category, by what the log itself says first."""

from dataclasses import replace

import pytest

from passhat.analysis.explaining.explain import divergence_categories, failure_categories
from passhat.analysis.explaining.run_diff import divergences
from passhat.analysis.explaining.runs import ExplainedRun, compared_runs
from passhat.records import Outcome
from passhat.records.transcript import Check, Transcript


def categories(*runs):
    found = failure_categories(runs, divergences(compared_runs(runs)), confidence=0.95)
    assert sum(one.count for one in found) == sum(not run.passed for run in runs)
    return [(one.kind, one.what, one.count) for one in found]


def test_what_the_log_says_comes_before_what_the_calls_show(make_run):
    broken = Check(target="answer", matcher="contains", score=0.0, message='lacks "42"')
    held = Check(target="files", score=1.0)
    runs = [
        make_run("P", "act"),
        make_run("E", trial=1, error="RateLimitError: 429 after 3 tries"),
        make_run("F", trial=2, stop_reason="max_turns", checks=[broken]),
        make_run("F", trial=3, checks=[held, broken]),
        make_run("F", trial=4),
    ]
    assert categories(*runs) == [
        ("call missing", "act", 1),
        ("error", "RateLimitError: 429 after 3 tries", 1),
        ("failed check", 'answer contains: lacks "42"', 1),
        ("stop reason", "max_turns", 1),
    ]


def test_a_stop_reason_that_most_passing_runs_share_explains_no_failure(make_run):
    broken = Check(target="calls", score=0.0, message="expected send_email")
    failing = make_run("F", trial=9, stop_reason="max_turns", checks=[broken])
    passing = [make_run("P", trial=i, stop_reason="max_turns") for i in range(2)]
    others = [make_run("P", trial=i, stop_reason="done") for i in range(3, 6)]
    assert categories(*passing, failing) == [("failed check", "calls: expected send_email", 1)]
    assert categories(*passing, *others, failing) == [("stop reason", "max_turns", 1)]


def test_messages_that_differ_in_numbers_are_one_category(make_run):
    runs = [
        make_run("F", trial=i, checks=[Check(target="sum", score=0.0, message=f"is {i}, not 9")])
        for i in range(4)
    ]
    assert categories(*runs) == [("failed check", "sum: is 0 to 3, not 9", 4)]


def test_a_task_that_never_passed_is_told_by_the_error_it_ended_on_or_not_at_all(make_run):
    runs = [
        make_run("F", "look", ("pay", {}, "Error: card 17 refused")),
        make_run("F", "look", trial=1),
        replace(make_run("F", trial=2), transcript=None, calls=()),
    ]
    assert categories(*runs) == [
        ("never passes", "nothing to compare with", 1),
        ("no transcript", "nothing to read", 1),
        ("tool error", "pay: Error: card 17 refused", 1),
    ]


def test_a_category_has_its_tasks_one_example_its_share_and_the_arguments_that_differ(make_run):
    runs = [make_run("P", ("book", {"to": "Oslo", "bags": 1}), task=task) for task in "ba"]
    runs += [
        make_run("F", ("book", {"to": "Rome", "bags": 1}), task="b", trial=1),
        make_run("F", ("book", {"to": "Rome", "bags": 2}), task="a", trial=1),
    ]
    (found,) = divergence_categories(divergences(compared_runs(runs)), confidence=0.95)
    assert (found.kind, found.what, found.arguments) == ("other argument", "book", ("to", "bags"))
    assert found.tasks == ("a", "b")
    assert found.example == ("bot", "b", 1)
    assert found.share.value == 1
    assert found.share.interval.low == pytest.approx(0.342, abs=1e-3)  # Wilson, 2 of 2


def test_a_program_that_ended_badly_is_told_by_its_exit_code_and_last_words(make_run):
    crash = Check(target="exit_code", matcher="one_of", score=0.0, message="exit code 1: boom")
    lacks = Check(target="answer", matcher="contains", score=0.0, message="lacks it")
    runs = [
        make_run("P"),
        make_run("F", trial=1, checks=[crash, lacks], exit_code=1, stderr="trace\nboom at 0x7f31"),
        make_run("F", trial=2, checks=[crash, lacks], exit_code=1, stderr="boom at 0x99a1"),
        make_run("F", trial=3, exit_code=3),
        make_run("F", trial=4, checks=[lacks], exit_code=2),  # a code that its suite allows
    ]
    assert categories(*runs) == [
        ("exit code", "1: boom at 0x7f31 (and the like)", 2),
        ("exit code", "3", 1),
        ("failed check", "answer contains: lacks it", 1),
    ]


def test_a_run_that_said_nothing_still_has_its_checks_and_its_reason_to_stop():
    silent = Transcript(stop_reason="exit", checks=(Check(target="answer", score=0.0),))
    assert not silent
    run = ExplainedRun(system="s", task="t", trial=0, outcome=Outcome.FAILED, transcript=silent)
    assert run.stop_reason == "exit"
    assert run.checks == silent.checks
