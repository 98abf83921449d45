import re
from dataclasses import astuple, replace

import numpy as np
import pytest

from passhat import render_html, render_json, render_markdown, render_terminal
from passhat.analysis.comparing.trends import MOST_AWAITED, NOTABLE, CountedRun, trends
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Tally
from passhat.reporters import render
from passhat.reporters.answers.trend import sentences
from passhat.reporters.formatting import TerminalStyle
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.trend import Changes


def moment(index, runs, passes, *, system="agent", tasks=None):
    runs, passes = np.broadcast_arrays(np.atleast_1d(runs), np.atleast_1d(passes))
    names = tasks or tuple(f"t{i}" for i in range(len(runs)))
    tally = Tally(
        system=system,
        tasks=tuple(names),
        passed=passes.astype(np.int64),
        failed=(runs - passes).astype(np.int64),
        errored=np.zeros(len(runs), dtype=np.int64),
        score_total=passes.astype(float),
        score_squares=passes.astype(float),
    )
    return CountedRun(
        key=f"k{index}", label=f"c{index}", started=f"2026-01-{index:02}", tallies=[tally]
    )


def calm(rng, count, rate):
    return [moment(i, np.full(20, 10), rng.binomial(10, rate, 20)) for i in range(count)]


@pytest.mark.parametrize("weight", [None, np.array([3.0, 1.0, 1.0, 3.0])])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_point_has_the_intervals_that_a_report_on_the_same_counts_has(k, weight):
    now = moment(0, np.full(4, 5), np.array([5, 3, 4, 1]))
    now = replace(now, tallies=[replace(now.tallies[0], weight=weight)])
    (trend,) = trends([now], k=k)
    metrics = measure(now.tallies, ks=[k]).system().metrics
    for name, estimate in trend.points[0].metrics.items():
        assert estimate.interval == metrics[name].this_suite.interval
        assert estimate.value == metrics[name].value


def test_a_point_is_the_estimate_of_that_run_alone():
    passes = np.array([10, 7, 3, 9, 10])
    (trend,) = trends([moment(0, np.full(5, 10), passes)], k=3)
    expected = suite_estimate(np.full(5, 10), passes, metric="pass^k", k=3, scope="this suite")
    point = trend.points[0].metrics["pass^3"]
    # What is summed beside it may move the last bit of an end.
    assert astuple(point.interval) == pytest.approx(astuple(expected.interval), rel=1e-12)
    assert replace(point, interval=expected.interval) == expected


def test_a_fall_is_found_where_it_happened():
    rng = np.random.default_rng(5)
    story = calm(rng, 8, 0.9) + [
        moment(8 + i, np.full(20, 10), rng.binomial(10, 0.55, 20)) for i in range(4)
    ]
    (trend,) = trends(story)
    changes = trend.changes["pass^5"]
    assert [(c.position, c.direction) for c in changes.points] == [(8, "down")]
    assert any("pass^5 fell on 8 Jan (run c8)" in sentence for sentence in sentences(trend))


def test_between_two_falls_there_is_one_level_in_words_and_numbers():
    rng = np.random.default_rng(3)
    rates = [0.95] * 5 + [0.8] * 4 + [0.5] * 4
    history = [moment(i, [8] * 30, rng.binomial(8, rate, size=30)) for i, rate in enumerate(rates)]
    (trend,) = trends(history, k=5)
    first, second = trend.changes["pass^5"].points
    assert (first.position, second.position) == (5, 9)
    assert first.after == second.before
    levels = [point.metrics["pass^5"].value for point in trend.points[5:9]]
    assert min(levels) < first.after < max(levels)
    level = f"{100 * np.mean(levels):.0f}%"
    told = [s for s in sentences(trend) if s.startswith("pass^5")]
    assert f"{level} until 9 Jan" in told[0]  # not "since": it fell again
    assert f"{level} before" in told[1]
    assert f"from {level} to" in trend.plot().text  # one level in words, on screens and pictures


def test_a_fall_of_both_numbers_at_once_is_marked_with_both():
    rng = np.random.default_rng(5)
    story = calm(rng, 8, 0.9) + [
        moment(8 + i, np.full(20, 10), rng.binomial(10, 0.3, 20)) for i in range(4)
    ]
    (trend,) = trends(story, k=2)
    places = {name: [c.position for c in found.points] for name, found in trend.changes.items()}
    assert places == {"pass@2": [8], "pass^2": [8]}
    marks = re.findall(r">([^<>]* down)<", trend.plot().svg())
    assert len(marks) == 1
    assert sorted(marks[0].removesuffix(" down").split(" and ")) == ["pass@2", "pass^2"]


@pytest.mark.slow("simulates the rate of false alarms")
def test_calm_histories_seldom_raise_an_alarm():
    rng = np.random.default_rng(11)
    alarmed = 0
    for _ in range(25):
        (trend,) = trends(calm(rng, 12, rng.beta(6, 2, 20)), k=2)
        changes = trend.changes["pass^2"]
        assert isinstance(changes, Changes)
        alarmed += bool(changes.points)
    # A chance of at most 5% each: four or more of 25 would be a three in a hundred event.
    assert alarmed <= 3


METRICS = ("pass@3", "pass^3")


def test_rising_capability_with_falling_reliability_is_named():
    before = [moment(i, np.full(40, 10), np.r_[np.full(24, 10), np.full(16, 0)]) for i in range(4)]
    after = [moment(4 + i, np.full(40, 10), np.full(40, 7)) for i in range(4)]
    (trend,) = trends(before + after, k=3)
    assert trend.divergence.diverging
    warning = sentences(trend)[0]
    assert warning.startswith("Warning, pass@k up while pass^k down")
    levels = [[f"{100 * p.metrics[name].value:.0f}%" for p in trend.points] for name in METRICS]
    assert re.findall(r"\d+%", warning) == [one[i] for one in levels for i in (0, -1)]


def test_a_task_that_was_not_run_is_carried_forward_and_said_so():
    first = moment(0, [10, 10, 10], [9, 8, 2])
    second = moment(1, [10], [10], tasks=("t0",))
    (trend,) = trends([first, second], k=2)
    assert trend.points[1].carried == ("t1", "t2")
    assert (trend.points[1].tasks, trend.points[1].runs) == (1, 10)
    assert trend.points[1].metrics["pass^2"].tasks == 3
    told = render_terminal([trend], TerminalStyle(width=80))
    assert " c1* " in told
    assert "* Not every task was run: the last result of the others counts." in " ".join(
        told.split()
    )
    assert max(map(len, told.splitlines())) <= 80


def test_a_task_that_was_taken_out_of_the_suite_counts_no_more():
    first = moment(0, [10, 10, 10], [9, 8, 2])
    second = replace(moment(1, [10, 10], [10, 5], tasks=("t0", "new")), whole=True)
    (trend,) = trends([first, second], k=2)
    assert trend.points[1].carried == ()
    assert trend.points[1].metrics["pass^2"].tasks == 2


def test_tasks_that_turned_are_named_with_the_run_that_showed_it():
    steady = np.full(6, 60)
    story = [
        moment(0, np.full(7, 60), np.r_[60, steady]),
        moment(1, np.full(7, 60), np.r_[30, steady]),
        moment(2, np.full(7, 60), np.r_[0, steady]),
        moment(3, np.full(7, 60), np.r_[60, steady]),
    ]
    (trend,) = trends(story, k=2)
    assert [(t.task, t.turn, t.label) for t in trend.turns] == [
        ("t0", "became flaky", "c1"),
        ("t0", "broke", "c2"),
        ("t0", "got fixed", "c3"),
    ]


def test_one_run_alone_is_said_to_be_one():
    (trend,) = trends([moment(1, [8] * 3, [4] * 3)])
    assert sentences(trend) == ["agent: one run so far; a change takes two to be seen."]


def test_systems_stay_apart_and_a_run_without_one_is_no_point_of_it():
    story = [
        moment(0, [10] * 5, [9] * 5, system="a"),
        moment(1, [10] * 5, [3] * 5, system="b"),
        moment(2, [10] * 5, [9] * 5, system="a"),
    ]
    found = {trend.name: [p.key for p in trend.points] for trend in trends(story)}
    assert found == {"a": ["k0", "k2"], "b": ["k1"]}


def test_a_k_beyond_the_runs_of_some_moment_is_refused_by_name():
    story = [moment(0, [10] * 5, [9] * 5), moment(1, [2] * 5, [2] * 5)]
    with pytest.raises(ArgumentError, match=re.escape("at c1: pass^4")):
        trends(story, k=4)


def test_no_runs_at_all_are_refused():
    with pytest.raises(ArgumentError, match="at least one run with trials"):
        trends([])


def test_every_form_tells_the_same_numbers_and_shows_no_control_character():
    evil = "c\x1b[31m|<b>"
    story = [moment(i, [10] * 5, [9, 8, 7, 10, 3 + i]) for i in range(3)]
    story[2] = CountedRun(key="k2", label=evil, started="", tallies=story[2].tallies)
    found = trends(story, k=2)
    value = f"{100 * found[0].points[2].metrics['pass^2'].value:.1f}"
    for text in (render_terminal(found), render_markdown(found)):
        assert value in text
        assert "\x1b" not in text
    assert "\x1b" not in render_json(found)
    assert "<b>" not in render(found, "svg")
    assert "<b>" not in render_markdown(found)


def test_a_fall_that_may_be_noise_is_not_called_no_change():
    falling = [moment(i, np.full(4, 5), np.full(4, passes)) for i, passes in enumerate((3, 3, 2))]
    (trend,) = trends(falling, k=1)
    (said,) = sentences(trend)
    assert said.startswith("agent: no change in pass@1 shown over 3 runs (a false alarm has a")


def test_one_run_is_no_line():
    shown = render_terminal(trends([moment(0, [5, 5], [4, 5])]))
    assert "One run so far" in shown
    assert "oldest first" not in shown


def test_where_no_change_is_shown_it_says_after_how_many_runs_one_would_be():
    rng = np.random.default_rng(1)
    rates = rng.beta(4, 1, 50)
    history = [moment(i, [5] * 50, rng.binomial(5, rates)) for i in range(10)]
    found = trends(history, k=1)
    assert 1 <= found[0].runs_to_show <= 3
    assert f"would show after {found[0].runs_to_show} more run" in render_terminal(found)


@pytest.mark.slow("simulates how often a change shows")
def test_a_change_shows_after_as_many_runs_as_it_says_half_of_the_time():
    rng = np.random.default_rng(1)
    rates = rng.beta(4, 1, 50)
    history = [moment(i, [5] * 50, rng.binomial(5, rates)) for i in range(10)]
    needed = trends(history, k=1)[0].runs_to_show
    lower = rates * (1 - NOTABLE / rates.mean())
    shown = 0
    for _ in range(20):
        fallen = [moment(10 + i, [5] * 50, rng.binomial(5, lower)) for i in range(needed)]
        shown += bool(trends([*history, *fallen], k=1)[0].newest_change)
    # Luck decides where a change just shows: about half of the time, 20 draws within 3 sigma.
    assert shown >= 4


def test_a_history_too_short_for_any_change_says_so():
    short = [moment(i, [5] * 4, [3] * 4) for i in range(2)]
    (trend,) = trends(short, k=1)
    assert trend.runs_to_show is None
    shown = " ".join(render_terminal(trends(short, k=1)).split())
    assert f"would not show in {MOST_AWAITED} more runs like the newest" in shown


def test_the_page_shows_the_tasks_that_its_heading_counts_and_folds_the_others():
    steady, fell = np.full(20, 9), np.array([1] * 4 + [9] * 16)
    story = [moment(i, np.full(20, 10), steady if i < 8 else fell) for i in range(12)]
    page = render_html(trends(story))
    heading = page.index("<h3>4 tasks moved by 15 points or more</h3>")
    fold = page.index("16 that moved less", heading)
    assert re.findall(r'<th scope="row" class="name"><a id="[^"]*" href="[^"]*">(\w+)</a>',
                      page[heading:fold]) == ["t0", "t1", "t2", "t3"]  # fmt: skip
    assert "The fall is in" not in page  # which tasks it is in, the verdict on the run tests
