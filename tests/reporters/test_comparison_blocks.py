"""What a comparison says first, of which tasks it speaks, and what a ranking sends on to it."""

import json
import re

import numpy as np
import pytest
import scipy.stats

from passhat import journeys, render_html, render_json, render_markdown, render_terminal
from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import simulate
from passhat.journeys.results import renamed
from passhat.records import Trials
from passhat.reporters.answer import DisplayOptions
from passhat.reporters.answers.comparison import comparison_page, verdict
from passhat.reporters.formatting import TerminalStyle

MANY = simulate(tasks=25, runs=6, rate={"a": 0.99, "b": 0.8, "c": 0.3}, seed=4)


def _pair(first, second):
    """Two systems, each with (passed, runs) of every task."""
    rows = [
        (name, f"t{i:02}", run < passed)
        for name, side in (("new", first), ("old", second))
        for i, (passed, runs) in enumerate(side)
        for run in range(runs)
    ]
    system, task, passed = zip(*rows, strict=True)
    return Trials.from_columns(system=system, task=task, passed=passed)


# Both pass as often; the first does so on half of the tasks, and there always.
STEADY_OR_NEVER = _pair([(4, 4)] * 20 + [(0, 4)] * 20, [(2, 4)] * 40)


def test_the_verdict_is_about_the_k_that_was_asked_for_with_the_mean_beside_it():
    asked = compare(STEADY_OR_NEVER, ks=[4])
    assert asked.headline.name == "pass^4"
    said = verdict(asked)
    assert said.startswith("new is better than old: pass^4 is 50.0% against 0%, +50.0 points ")
    assert " (pass@1 0 [" in said
    assert json.loads(render_json(asked))["verdict"] == said
    assert verdict(compare(STEADY_OR_NEVER)).startswith("No clear difference: they are level [")


def test_of_several_k_the_verdict_is_about_the_largest_as_a_ranking_is():
    assert compare(STEADY_OR_NEVER, ks=[2, 4, 1]).headline.name == "pass^4"
    said = verdict(compare(STEADY_OR_NEVER, ks=[1]))
    assert said.startswith("No clear difference: they are level [")
    assert said.endswith("] at pass@1.")
    assert "mean score" not in said


def test_a_k_that_nobody_ran_leaves_the_mean_to_speak_of():
    said = verdict(compare(STEADY_OR_NEVER, ks=[5]))
    assert said.startswith("new and old cannot be compared by pass^5: pass^5 needs 5")
    assert "(pass@1 0 [" in said


def test_a_margin_holds_for_the_k_that_was_asked_for():
    even = simulate(tasks=40, runs=20, rate={"new": 0.7, "old": 0.7}, seed=1)
    said = verdict(compare(even, ks=[2], margin=0.2))
    assert said.startswith("new and old are equivalent to within 20 points at pass^2 [")


def test_the_comparison_that_a_ranking_advises_is_by_the_same_metric():
    def advised(**options):
        full = render_terminal(rank(MANY, **options), verbose=True)
        return full.strip().split("\n")[-1].strip()

    plain = "passhat compare RESULTS --only a --only b"
    assert advised() == plain
    assert advised(by="pass^3") == f"{plain} --k 3"
    assert advised(by="pass@3") == plain
    assert advised(by="pass^3", confidence=0.9) == f"{plain} --k 3 --confidence 0.9"
    screen = render_terminal(rank(MANY, by="pass^3", confidence=0.9))
    assert screen.endswith(f"\nTwo at a time: {plain} --k 3 --confidence 0.9\n")


def test_tasks_that_lack_runs_are_not_said_to_lack_a_system():
    short = _pair([(2, 3)] * 5 + [(1, 1)] * 2, [(1, 3)] * 7)
    found = compare(short, ks=[1, 3])
    notes = found.differences["pass^3"].tasks_like_these.notes
    assert "2 tasks have fewer than 3 trials of one of the agents and are left out" in notes
    assert not any("no result" in note for note in notes)
    ranked = render_terminal(rank(short, by="pass^3"), verbose=True)
    assert "2 tasks without 3 trials of each: t05, t06." in ranked
    screen = render_terminal(rank(short, by="pass^3"))
    assert "\nLeft out: 2 tasks without 3 trials of each.\n" in screen
    assert "\nLeft out: 2 tasks that not all of them ran.\n" in render_terminal(rank(UNSHARED))


UNSHARED = Trials.concat(
    [
        _pair([(2, 3)] * 5, [(1, 3)] * 5),
        Trials.from_columns(system=["new"] * 2, task=["x", "y"], passed=[1, 0]),
    ]
)
UNTESTED = _pair([(0, 1), (9, 9), (2, 9), (0, 9), (5, 9)], [(3, 3), (1, 9), (7, 9), (7, 9), (6, 9)])


@pytest.mark.parametrize(
    "render",
    [
        render_terminal,
        render_markdown,
        render_html,
    ],
)
def test_a_task_that_cannot_be_tested_has_a_dash_and_the_dash_is_explained(render):
    found = compare(UNTESTED)
    assert found.tasks[0].answer == "unevaluable"
    text = render(found, verbose=True)
    assert "A dash means that a task has too few trials to be tested" in " ".join(text.split())
    row = re.search(r"(?:  |\| |<tr>.*)t00.*(?:\n|</tr>)", text)[0]
    assert re.search(r"-[ |]+-[ |]*\n|<td class=\"n\">-</td><td class=\"n less\">-</td>", row), row
    whole = compare(_pair([(9, 9), (9, 9)], [(0, 9), (0, 9)]))
    assert "A dash means" not in render(whole, verbose=True)


def test_the_tests_of_tasks_are_listed_in_their_order_and_the_untested_last():
    found = compare(UNTESTED)
    rows = [
        line.split()[-2:]
        for line in render_terminal(found, verbose=True).split("\n")
        if re.match(r"  t\d\d ", line)
    ]
    tested = [row for row in rows if row != ["-", "-"]]
    assert rows == [*tested, *[["-", "-"]] * (len(rows) - len(tested))]
    for column in zip(*tested, strict=True):
        assert list(column) == sorted(column)


def test_an_interval_that_leaves_out_0_beside_a_test_that_shows_nothing_is_explained():
    many = [(5, 9)] * 12
    found = compare(_pair([(6, 9), *many], [(1, 9), *many]))
    (row,) = (task for task in found.tasks if task.name == "t00")
    assert 0 not in row.interval
    assert row.p_holm > 0.05
    said = " ".join(render_terminal(found, verbose=True).split())
    assert "Each interval is of one task by itself; the p values allow for all tasks" in said
    clear = compare(_pair([(9, 9), (9, 9)], [(0, 9), (0, 9)]))
    assert "Each interval" not in render_terminal(clear, verbose=True)


def test_two_systems_of_one_name_are_told_apart_in_every_sentence():
    new, old = (Trials.from_columns(task=["t"] * 40, passed=[p] * 40) for p in (1, 0))
    said = render_terminal(compare(new, old))
    first, second = re.match(r"(.+) is better than (.+?): ", " ".join(said.split())).groups()
    assert (first.removesuffix(" (first)"), first[-8:]) == (second[:-9], " (first)")
    assert second.endswith(" (second)")


def test_the_table_of_tasks_says_which_it_lists_and_what_its_p_values_mean():
    some = compare(_pair([(9, 9)] * 3 + [(5, 9)] * 5, [(0, 9)] * 3 + [(5, 9)] * 5))
    said = " ".join(render_terminal(some, verbose=True).split())
    assert (
        "Listed are tasks shown to differ, and flipped ones unless both p are 1; `render_json`"
        in said
    )
    assert "Of the tasks with p (Holm) below 0.05, the chance" in said


def test_at_80_columns_the_names_of_metrics_are_not_cut():
    rows = [
        (f"a-long-name-of-an-agent-{side}", f"t{i}", (i * 7 + run * side) % 11 / 10)
        for side in (1, 2)
        for i in range(4)
        for run in range(3)
    ]
    system, task, score = zip(*rows, strict=True)
    found = compare(Trials.from_columns(system=system, task=task, score=score))
    for verbose in (False, True):
        assert "\n  mean score  " in render_terminal(found, verbose=verbose)


def test_more_runs_than_anyone_would_make_are_not_advised():
    # One pass more in 2,000 runs: shown only by a multiple of them.
    found = compare(_pair([(1001, 2000)] * 2, [(1000, 2000)] * 2))
    for verbose in (False, True):
        said = " ".join(render_terminal(found, verbose=verbose).split())
        told = re.search(
            r"no sensible number of trials of these tasks would decide it: it takes about ([\d,]+) "
            r"more trials in all\.",
            said,
        )
        assert told is not None
        needed = json.loads(render_json(found))["differences"]["pass^1"]["this_suite"]["needed"]
        assert int(told[1].replace(",", "")) == needed["more_runs"]
    some = " ".join(render_terminal(compare(_pair([(11, 20)] * 9, [(9, 20)] * 9))).split())
    assert re.search(r"about [\d,]+ more trials in all .*would decide it 4 times in 5", some)


@pytest.mark.parametrize(
    "runs", [4, 20, 200, pytest.param(2000, marks=pytest.mark.slow("the same with more trials"))]
)
@pytest.mark.parametrize("tasks", [1, 12])
@pytest.mark.parametrize("lead", [0.001, 0.05, 0.2])
def test_the_page_advises_against_buying_exactly_where_no_sentence_names_a_number(
    runs, tasks, lead
):
    ahead = round(runs * (0.5 + lead))
    found = compare(_pair([(ahead, runs)] * tasks, [(runs // 2, runs)] * tasks))
    decide = comparison_page(found, DisplayOptions())["decide"]
    priced = any("would decide it 4 times in 5" in text for text in decide["texts"])
    decided = decide["title"] == "What the answer rests on"
    assert decided or decide["title"].startswith("Do not buy more") is not priced, decide


def test_a_flip_that_chance_explains_is_counted_and_not_listed():
    flipped = compare(_pair([(3, 4)] * 5 + [(2, 4)] * 20, [(1, 4)] * 5 + [(2, 4)] * 20))
    screen = " ".join(render_terminal(flipped).split())
    assert "5 of 25 tasks went from mostly failing to mostly passing, none the other way" in screen
    assert "No single task's change is significant." in screen
    shown = " ".join(render_terminal(flipped, verbose=True).split())
    assert "is shown better on 0 and worse on 0. 5 tasks flipped to mostly passing" in shown
    assert "1.000" not in shown


def test_names_with_one_beginning_are_told_apart_by_their_ends():
    pair = _pair([(3, 4)] * 8, [(1, 4)] * 8)
    first, second = (
        renamed(pair.where(system=name), f"agent-with-tools ({name})") for name in ("new", "old")
    )
    found = compare(first, second)
    assert re.search(r"^ +new +old +diff ", render_terminal(found), re.M)
    full = render_terminal(found, TerminalStyle(width=80), verbose=True)
    assert re.search(r"^  in % +new +old +diff\. ", full, re.M)


def test_inputs_that_were_read_the_same_way_share_one_line(tmp_path):
    for name in ("new", "old"):
        (tmp_path / f"{name}.csv").write_text("task,passed\na,1\na,0\nb,1\nb,1\n")
    results = [str(tmp_path / f"{name}.csv") for name in ("new", "old")]
    shown = " ".join(render_terminal(journeys.compare(results), verbose=True).split())
    assert shown.count("Read as") == 1
    assert "old.csv: CSV table" in shown


def test_long_names_that_begin_alike_head_their_columns_with_how_they_end():
    first, second = (f"my-company/support-agent-2026-{month}-01" for month in (10, 11))
    trials = simulate(tasks=6, runs=4, rate={first: 0.9, second: 0.4}, seed=2)
    for width in (80, 120):
        heads = [
            line.split()[1:4]
            for line in render_terminal(
                compare(trials), ink=TerminalStyle(width=width), verbose=True
            ).splitlines()
            if line.startswith(("  in %", "  task "))
        ]
        ends = {word[-5:] for head in heads for word in head if word[-5:] in ("10-01", "11-01")}
        assert ends == {"10-01", "11-01"}
        assert not any("my-c" in word for head in heads for word in head)


def test_a_page_of_partial_scores_and_pass_hat_k_shows_both():
    scores = [0.0, 0.5, 1.0, 1.0, 1.0, 0.5, 0.0, 1.0] * 6
    column = {"system": ["new"] * 24 + ["old"] * 24, "task": list("abcdef") * 8}
    page = render_html(compare(Trials.from_columns(**column, score=scores), ks=[1, 2]))
    assert "mean score" in page
    assert "pass^2" in page


def test_the_tests_that_tables_ask_for_by_name_are_those_of_scipy():
    found = compare(simulate(tasks=30, runs=8, rate={"new": 0.8, "old": 0.5}, seed=4))
    rates = [[task.first[0] / 8, task.second[0] / 8] for task in found.tasks]
    t = scipy.stats.ttest_rel(*np.transpose(rates))
    gaps = np.round(np.subtract(*np.transpose(rates)), 9)
    ranks = scipy.stats.rankdata(np.abs(gaps[gaps != 0]))
    said = " ".join(render_terminal(found, verbose=True).split())
    assert f"paired t, t = {t.statistic:.4g}, " in said
    assert f"Wilcoxon signed-rank, W = {ranks[gaps[gaps != 0] > 0].sum():.4g}, " in said
    student, signed = found.named_tests
    assert student.p_value == pytest.approx(t.pvalue)
    assert 0 < signed.p_value < 0.05
