"""A plan says where its numbers come from, and prices in units that can be read."""

import html
import re

import pytest

from passhat import render_html
from passhat import render_markdown as render_plan_markdown
from passhat import render_terminal as render_plan
from passhat.analysis.planning.plan import Spending, plan
from passhat.analysis.planning.simulate import simulate
from passhat.records import Trials
from passhat.reporters.answers.plan import PlanAnswer, verdict
from passhat.reporters.formatting import TerminalStyle
from passhat.stats.estimate import Unavailable

# Sentences are looked at here, not numbers.
pytestmark = pytest.mark.usefixtures("few_suites_drawn")

MEASURED = "measured on these trials"
ASSUMED = "the ICC assumed: these trials leave it open from 0 to 1"


def _trials(**by_task):
    return Trials.from_columns(
        task=[task for task, runs in by_task.items() for _ in runs],
        passed=[run for runs in by_task.values() for run in runs],
    )


@pytest.mark.parametrize(
    "trials",
    [_trials(a=[1] * 8, b=[1] * 8), _trials(a=[1]), _trials(a=[1, 1], b=[0, 0])],
    ids=["every run passed", "one run", "no task varied"],
)
def test_an_icc_of_which_nothing_is_known_is_not_called_measured(trials):
    made = plan(trials)
    for render in (render_plan, render_plan_markdown):
        for verbose in (False, True):
            said = " ".join(render(made, verbose=verbose).split())
            assert ASSUMED in said
            assert MEASURED not in said
            assert "[0.00, 1.00]" not in said


@pytest.mark.parametrize(
    ("made", "origin"),
    [
        (plan(simulate(tasks=20, runs=8, seed=1)), MEASURED),
        (plan(simulate(tasks=20, runs=8, seed=1), correlation=0.3), "measured, the ICC given"),
        (plan(simulate(tasks=20, runs=8, seed=1), rate=0.9), "mean is given, the ICC measured"),
        (plan(simulate(tasks=20, runs=1, seed=1)), "the mean is measured, the ICC a guess"),
        (plan(tasks=20), "a guess before any trial"),
    ],
)
def test_where_the_numbers_come_from_is_said(made, origin):
    screen = " ".join(render_plan(made).split())
    assert re.search(rf"Assumed: [^.]* \([^.]*{re.escape(origin)}\)\.", screen)
    assert f"{origin}." in " ".join(render_plan(made, verbose=True).split())


@pytest.mark.parametrize(
    ("spending", "told"),
    [
        (
            Spending(max_minutes=30, seconds_per_run=5),
            "30 minutes buys 360 trials at 5 seconds each",
        ),
        (
            Spending(max_minutes=300, seconds_per_run=90),
            "300 minutes buys 200 trials at 1.5 minutes",
        ),
        (Spending(max_cost=2, cost_per_run=0.05), "A budget of $2 buys 40 trials at $0.05 each"),
    ],
)
def test_what_a_run_takes_is_told_in_a_unit_that_can_be_read(spending, told):
    assert told in " ".join(render_plan(plan(tasks=20, spending=spending)).split())


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"difference": 0.1},
        {"half_width": 0.03},
        {"spending": Spending(max_cost=20, cost_per_run=0.05)},
    ],
)
def test_the_facts_of_the_page_are_those_of_the_question_that_its_headline_answers(asked):
    made = plan(simulate(tasks=20, runs=6, rate=0.7, seed=2), **asked)
    answer = PlanAnswer(made)
    numbers = {re.sub(r"[^0-9.]", "", value) for value, _ in answer.facts()}
    said = {found.rstrip(".").replace(",", "") for found in re.findall(r"[\d.,]+", verdict(made))}
    assert numbers & said, (answer.facts(), verdict(made))
    assert "<-" not in html.unescape(re.sub(r"<[^>]+>", "", render_html(made)))


def test_the_headline_answers_what_was_asked():
    spending = Spending(max_cost=20.0, cost_per_run=0.05)
    for asked, start in (
        ({"difference": 0.05, "spending": spending}, "To tell two agents apart that differ by 5 "),
        ({"spending": spending}, "A budget of $20 buys 400 trials at $0.05 each"),
        ({}, "Run each of the 50 tasks "),
    ):
        assert verdict(plan(tasks=50, **asked)).startswith(start)


def test_every_budget_that_was_given_is_answered_on_the_first_screen():
    both = Spending(max_cost=20.0, cost_per_run=0.05, max_minutes=300, seconds_per_run=90)
    for asked in ({}, {"difference": 0.05}):
        shown = render_plan(plan(tasks=50, spending=both, **asked))
        said = " ".join(shown.split())
        assert "A budget of $20 buys 400 trials at $0.05 each: 8 of each of 50 tasks" in said
        assert "300 minutes buys 200 trials at 1.5 minutes each: 4 of each of 50 tasks" in said
        assert len(shown.splitlines()) <= 15


@pytest.fixture(scope="module")
def narrow_plan():
    return plan(tasks=50, rate=0.8, half_width=0.03)


@pytest.mark.parametrize("width", [48, 60, 80, 120])
def test_every_number_of_the_table_ends_below_the_end_of_its_heading(narrow_plan, width):
    for verbose in (False, True):
        shown = render_plan(narrow_plan, TerminalStyle(width=width), verbose=verbose)
        table = re.search(r"^ +tri[^\n]*  total.*?(?=\n\n|\n±)", shown, re.M | re.S)[0]
        head, *rows = table.splitlines()
        ends = [match.end() for match in re.finditer(r"\S+(?: \S+)*", head)]
        assert rows
        for row in rows:
            numbers = re.finditer(r"±?[\d.,]+(?: points)?", row.partition("<-")[0])
            assert [match.end() for match in numbers] == ends


ASKED = {
    "a guess": {},
    "pass^4 of a guess": {"k": 4},
    "at once": {"tasks": 400, "half_width": 0.1},
    "out of reach": {"tasks": 5, "half_width": 0.002, "k": 3},
    "other trials": {"runs": 7, "k": 2},
}


PARTIAL = Trials.from_columns(
    task=[f"t{i % 10}" for i in range(60)],
    score=[(i * 7 % 5) / 4 for i in range(60)],
    passed=[False] * 60,
)


@pytest.mark.parametrize("asked", [{}, {"k": 4}, {"tasks": 50}, {"half_width": 0.1}])
@pytest.mark.parametrize("trials", [None, simulate(tasks=30, runs=4, seed=1), PARTIAL])
def test_a_plan_for_a_precision_names_one_number_of_trials(trials, asked):
    if trials is PARTIAL and "k" in asked:
        return  # a streak of partial credit is not planned
    shown = " ".join(render_plan(plan(trials, **asked)).split())
    times = re.search(r"(?:tasks|run each) (once|twice|[\d,]+(?= times))", shown)[1]
    wanted = {"once": "1", "twice": "2"}.get(times, times)
    said = re.findall(r" x ([\d,]+) trials? (?:reach|show|cannot)", shown)
    assert set(said) == {wanted}, shown
    assert ("mean score" in shown) is (trials is PARTIAL)
    assert trials is not PARTIAL or "pass@1" not in shown


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(
    "trials",
    [
        None,
        pytest.param(
            simulate(tasks=30, runs=4, seed=1),
            marks=pytest.mark.slow("the same table, planned from trials"),
        ),
    ],
)
def test_the_table_is_of_what_was_asked_about_and_marks_the_row_that_is_advised(trials, asked):
    made = plan(trials, **asked)
    promise, tasks = made.assured, made.chosen.tasks
    metric = f"pass^{asked['k']}" if "k" in asked else "pass@1"
    for verbose in (False, True):
        shown = render_plan(made, verbose=verbose)
        assert f"to know {metric} to " in shown.lower()
        assert f"\n± is half the width of the CI of {metric}; 80% of reports stay" in shown
        marked = [line.split()[:3] for line in shown.split("\n") if "<- reaches" in line]
        if isinstance(promise.runs, Unavailable):
            assert marked == []
            continue
        ((runs, total, width),) = marked
        assert (runs, total) == (f"{promise.runs:,}", f"{promise.runs * tasks:,}")
        assert float(width.lstrip("±")) <= 100 * made.chosen.target + 0.05
    at = {design.runs: design for design in promise.designs}
    assert list(at) == sorted(at)
    assert at[max(made.chosen.runs, asked.get("k", 1))].this_suite == promise.this_suite
    assert all(design.this_suite <= design.tasks_like_these for design in promise.designs)


@pytest.mark.parametrize(
    "asked",
    [{}, {"tasks": 50, "half_width": 0.05}, {"k": 3, "tasks": 30}, {"runs": 5}, {"tasks": 1}],
)
def test_a_plan_is_shown_in_python_with_the_trials_that_its_screen_advises(asked):
    made = plan(**asked)
    times = re.search(r"[Rr]un .*? ([\d,]+) times", verdict(made))[1]
    assert re.match(rf"<Plan: \d+ tasks? x {times} trials give ±", repr(made)), repr(made)
    assert PlanAnswer(made).title().startswith(f"Plan: {times} trials of ")
