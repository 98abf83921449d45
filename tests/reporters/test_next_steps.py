"""What a report advises next fits what it found, and can be done."""

import re

import pytest

from passhat import render_html, render_markdown, render_terminal
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.next_steps import next_steps

OUTCOMES = {"P": "passed", "F": "failed", "E": "errored"}
FORMATS = [render_terminal, render_markdown, render_html]


def _trials(by_task):
    return Trials.from_columns(
        task=[task for task, runs in by_task.items() for _ in runs],
        outcome=[OUTCOMES[run] for runs in by_task.values() for run in runs],
    )


def _suite(runs, tasks=10):
    return {f"t{i}": runs for i in range(tasks)}


def _told(by_task, **options):
    steps = next_steps(measure(_trials(by_task), **options).system(), "r.csv")
    return [str(step) for step in steps]


def test_there_is_always_something_to_do_next():
    for by_task in (_suite("P" * 100, 40), {"a": "P"}, _suite("F" * 8), _suite("P" * 8)):
        assert _told(by_task)


@pytest.mark.parametrize("render", FORMATS)
def test_an_agent_that_always_fails_is_not_told_to_keep_it_so(render):
    report = measure(_trials(_suite("F" * 8)))
    assert "Keep" not in render(report, verbose=False)
    text = render(report, verbose=True)
    assert "Keep" not in text
    assert "10 tasks are broken; look at the failures of t0, which passed 0 of 8: " in " ".join(
        text.split()
    )


def test_a_flaky_task_is_looked_at_before_a_broken_one():
    steps = _told(_suite("P" * 60) | {"off": "F" * 60, "coin": "PF" * 30})
    look = "Look at the failures of coin, which passed 30 of 60"
    assert steps[-1] == f"{look}: passhat why r.csv"


@pytest.mark.parametrize(
    ("by_task", "options"),
    [
        (_suite("P" * 8), {}),
        (_suite("P" * 60), {}),
        (_suite("P" * 8, 40), {}),
        (_suite("P" * 60, 1), {}),
        (_suite("P" * 12), {"confidence": 0.8}),
        (_suite("P" * 60) | {"gone": "EEE"}, {"errors": "exclude"}),
        (_suite("P" * 15, 4) | {"gone": "EEE"}, {"errors": "exclude"}),
    ],
)
def test_a_demand_that_is_advised_is_met_by_the_same_runs(by_task, options):
    trials = _trials(by_task)
    steps = _told(by_task, **options)
    errors = options.get("errors", "fail")
    level = {"confidence": options.get("confidence", 0.95)}
    demands = [found[1] for step in steps if (found := re.search(r'--require "(.*?)"', step))]
    for demand in demands:
        gate = parse_gate({"require": demand, **level})
        assert judge(trials, [gate], errors=errors).status == "PASS", steps
    assert len(demands) + sum("passhat plan" in step for step in steps) >= 1


def test_runs_that_show_less_than_the_opening_sentence_asks_say_what_they_show():
    keep, more = _told(_suite("P" * 8))
    assert keep == 'Keep what these trials show: passhat gate r.csv --require "pass^2 >= 0.9"'
    start, command = more.split(": ")
    assert start == "See how many trials it takes to show more, pass^5 >= 0.9"
    assert command == 'passhat plan r.csv --gate "pass^5 >= 0.9"'
    assert _told(_suite("P" * 60)) == ['Keep it so: passhat gate r.csv --require "pass^5 >= 0.9"']


def test_another_confidence_is_part_of_the_advice():
    (step, *_) = _told(_suite("P" * 60), confidence=0.99)
    assert step.endswith('--require "pass^5 >= 0.9" --confidence 0.99')


def test_where_nothing_was_kept_the_advice_is_words():
    system = measure(_trials(_suite("P" * 60))).system()
    assert [str(one) for one in next_steps(system, None)] == [
        "Keep it so: gate it on pass^5 >= 0.9."
    ]


@pytest.mark.parametrize("by_task", [_suite("F" * 3, 3), _suite("F" * 8), {"a": "FFE"}])
def test_where_nothing_passed_the_failures_come_before_more_runs(by_task):
    steps = _told(by_task)
    assert not any("more times" in step or "more each" in step for step in steps)
    assert any("failures" in step or "read what one of them did" in step for step in steps)
