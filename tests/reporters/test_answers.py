import json
import re

import pytest

from passhat import render_html, render_json, render_markdown, render_terminal
from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.ranking import profile, rank
from passhat.analysis.planning.plan import Spending, plan
from passhat.analysis.planning.simulate import SimulationModel, demonstrate, simulate
from passhat.records import Trials
from passhat.reporters.answers import comparison, ranking
from passhat.reporters.formatting import TerminalStyle, display_width

RATES = {"gpt-5": 0.85, "gpt-4": 0.8}
TWO = simulate(tasks=20, runs=8, rate=RATES, world=SimulationModel(error_rate=0.02), seed=3)
MANY = simulate(tasks=25, runs=6, rate={"a": 0.9, "b": 0.88, "c": 0.5, "d": 0.45}, seed=4)


def _answers():
    extra = Trials.from_columns(system=["gpt-5"] * 2, task=["lonely"] * 2, passed=[1, 1])
    own = TWO.where(system="gpt-5")
    money = Spending(max_cost=2, max_minutes=30, at_once=4)
    return {
        "comparison": compare(Trials.concat([TWO, extra]), margin=0.02),
        "ranking": rank(MANY),
        "plan": plan(own, difference=0.05, cost_ratio=8, spending=money),
        "profile": profile(own, MANY),
    }


KINDS = ("comparison", "ranking", "plan", "profile")


@pytest.fixture(scope="module")
def answers():
    return _answers()


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_reads_as_it_did(answers, gold, kind):
    gold(f"{kind}.txt", render_terminal(answers[kind], TerminalStyle(width=80)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(answers, kind, width):
    for line in render_terminal(answers[kind], TerminalStyle(width=width)).split("\n"):
        assert display_width(line) <= width


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_opens_with_the_same_verdict_as_the_terminal(answers, kind):
    verdict = json.loads(render_json(answers[kind]))["verdict"]
    assert " ".join(render_terminal(answers[kind]).split()).startswith(verdict)
    assert render_markdown(answers[kind]).startswith("**")


@pytest.mark.parametrize("kind", KINDS)
def test_json_names_its_schema_and_comes_out_the_same_twice(answers, kind):
    text = render_json(answers[kind])
    assert json.loads(text)["schema"] == f"passhat.{kind}/1"
    assert text == render_json(_answers()[kind])


@pytest.mark.parametrize(
    ("rates", "margin", "phrase"),
    [
        ({"new": 0.95, "old": 0.4}, None, "new is better than old: pass@1 is "),
        ({"new": 0.4, "old": 0.95}, None, "new is worse than old: pass@1 is "),
        ({"new": 0.7, "old": 0.7}, None, "No clear difference: "),
        ({"new": 0.7, "old": 0.7}, 0.2, "are equivalent to within 20 points"),
    ],
)
def test_the_verdict_of_a_comparison_says_who_is_better(rates, margin, phrase):
    world = SimulationModel(shared=1.0)
    trials = simulate(tasks=40, runs=20, rate=rates, world=world, seed=1)
    assert phrase in comparison.verdict(compare(trials, margin=margin))


@pytest.mark.parametrize("rates", [(0.9, 0.4), (0.7, 0.7), (0.75, 0.7), (0.4, 0.9)])
def test_a_headline_states_the_difference_of_its_table_and_turned_round_its_opposite(rates):
    first, second = rates
    trials = simulate(tasks=30, runs=8, rate={"new": first, "old": second}, seed=2)
    turned = compare(trials.where(system="old"), trials.where(system="new"))
    stated = []
    for one in (compare(trials), turned):
        text = comparison.verdict(one)
        number = r"[-+]?\d+\.\d"
        row = next(line for line in render_terminal(one).split("\n") if "pass@1" in line[:9])
        size, low, high = map(
            float, re.search(rf"  ({number})  \[({number}), ({number})\]", row).groups()
        )
        assert low <= size <= high
        if text.startswith("No clear difference"):
            ahead = one.first if size > 0 else one.second
            bounds = (low, high) if size > 0 else (-high, -low)
            lead = f"{ahead} is {abs(size):.1f} points ahead [{bounds[0]:+.1f}, {bounds[1]:+.1f}]"
            assert lead in text
        else:
            assert text.startswith(f"{one.first} is {'better' if size > 0 else 'worse'} than ")
            assert f", {size:+.1f} points (p" in text
        stated.append((size, low, high))
    (size, low, high), other = stated
    assert other == (-size, -high, -low)


def test_numbers_over_fewer_of_the_shared_tasks_are_starred_and_explained():
    rows = [
        (name, f"t{i}", r, (i + r) % 3 > 0)
        for name in ("new", "old")
        for i in range(4)
        for r in range(4 if i else 1)
    ]
    system, task, trial, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=system, task=task, trial=trial, passed=passed)
    for verbose, one in ((False, "pass@1"), (True, "pass@1")):
        text = render_markdown(compare(trials), verbose=verbose)
        assert f"| {one} |" in text
        assert "| pass^4 \\* |" in text
        assert "pass^2 to pass^4 are over 3 of 4 shared tasks; the others" in text
        even = compare(simulate(tasks=4, runs=4, rate={"new": 0.9, "old": 0.5}, seed=1))
        assert "*" not in render_terminal(even, verbose=verbose)


def test_a_lone_leader_is_named_and_a_shared_lead_too():
    alone = rank(simulate(tasks=60, runs=8, rate={"a": 0.95, "b": 0.4}, seed=1))
    assert ranking.verdict(alone).startswith("a leads alone")
    shared = rank(simulate(tasks=20, runs=5, rate={"a": 0.7, "b": 0.7, "c": 0.7}, seed=1))
    assert ranking.verdict(shared) == "All 3 are tied (pass@1, on similar tasks)."
    held = "95% CI; the ranks hold together with 95% confidence."
    assert held in render_terminal(shared)


@pytest.mark.parametrize("runs", [1, 2, 3, 8])
def test_the_ranking_that_is_advised_can_be_made(runs):
    """No streak is advised that a task has too few trials for."""
    found = rank(simulate(tasks=8, runs=runs, rate={"a": 0.9, "b": 0.7, "c": 0.5}, seed=1))
    last = render_terminal(found).splitlines()[-1]
    k = min(runs, 5)
    if runs == 1:
        assert last == "Two at a time: passhat compare RESULTS --only a --only b"
    else:
        assert last == f"By pass^{k}: passhat compare RESULTS --by pass^{k}"
    narrowed = render_terminal(found, narrowed=True).splitlines()[-1]
    assert "--only a --only b" in narrowed


def test_a_ranking_names_who_has_too_few_runs_for_its_metric_in_every_format():
    rows = [
        (name, task, r, r % 2)
        for name, runs in {"a": 4, "b": 5, "c": 1}.items()
        for task in "xyz"
        for r in range(runs)
    ]
    system, task, trial, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=system, task=task, trial=trial, passed=passed)
    found = rank(trials, metric="pass^4")
    said = "c has 1 trial of every task, so no pass^4"
    assert said in render_terminal(found)
    assert said in render_markdown(found).replace("\\", "")
    assert said in render_html(found)
    told = json.loads(render_json(found))
    assert told["unranked"] == [{"name": "c", "reason": "1 trial of every task, so no pass^4"}]
    assert told["scope"] == "tasks like these"


@pytest.mark.usefixtures("few_suites_drawn")
@pytest.mark.parametrize("tasks", [2, 20])
def test_a_plan_says_for_what_and_how_it_tells_two_agents_apart(tasks):
    found = plan(tasks=tasks, runs=5)
    text = render_markdown(found, verbose=True)
    assert "on similar tasks, both run on the same tasks (paired, 80% power)" in text
    assert ("cannot tell any two agents apart" in text) == (tasks == 2)
    nothing = f"Two agents: {tasks} tasks x 5 trials cannot show any difference."
    assert (nothing in render_markdown(found)) == (tasks == 2)


def test_the_first_screen_of_a_plan_marks_the_row_that_it_advises():
    free = render_terminal(plan(tasks=50, half_width=0.05)).split("\n")
    (enough,) = [line for line in free if "<-" in line]
    assert free[0].startswith("Run each of the 50 tasks 5 times (250 trials) ")
    assert enough.split()[:2] == ["5", "250"]
    assert enough.endswith("<- reaches ±5")


def test_a_plan_in_full_marks_what_is_enough_and_what_was_asked_for():
    asked = render_terminal(plan(tasks=50, runs=7, half_width=0.05), verbose=True)
    marks = [line.split("<-") for line in asked.split("\n") if "<-" in line]
    assert [(row.split()[0], mark) for row, mark in marks] == [
        ("5", " reaches ±5"),
        ("7", " this design"),
    ]


def test_a_band_of_ties_hides_nobody():
    found = rank(simulate(tasks=8, runs=3, rate=dict.fromkeys("abcdefgh", 0.6), seed=1))
    (band,) = found.tie_bands
    screen = render_terminal(found)
    assert screen.startswith("All 8 are tied ")
    assert all(re.search(rf"^  1 to 8  {name} ", screen, re.M) for name in band)
    text = " ".join(render_terminal(found, verbose=True).split())
    assert f"Tied {', '.join(band[:-1])} and {band[-1]} (for similar tasks)." in text


@pytest.mark.parametrize(
    ("width", "names", "heads"),
    [
        (80, ("new", "old"), "new old"),
        (80, ("claude-opus-4-1-20250805", "qwen-3-max-preview"), "claude-…0250805 qwen-3-…preview"),
        (80, ("agent (results-new.csv)", "agent (results-old.csv)"), "results-new results-old"),
        (120, ("claude-opus-4-1-20250805", "qwen-3"), "claude-opus-4-1-20250805 qwen-3"),
        (120, ("claude-opus-4-1", "qwen-3-max-preview"), "claude-opus-4-1 qwen-3-max-preview"),
        (80, [f"{'a' * 30}{x}{'a' * 30}" for x in "bc"], "aaaaaaaaa…#ae7e aaaaaaaaa…#a099"),
    ],
)
def test_columns_of_a_comparison_go_by_the_names_of_the_two(names, heads, width):
    found = compare(simulate(tasks=20, runs=8, rate=dict.fromkeys(names, 0.7), seed=3))
    ink = TerminalStyle(width=width)
    screen = render_terminal(found, ink).split("\n")
    full = render_terminal(found, ink, verbose=True).split("\n")
    (header,) = [line for line in screen if re.search(r"  these tasks +similar tasks$", line)]
    assert " ".join(header.split()).startswith(f"{heads} diff ")
    (header,) = [line for line in full if line.startswith("  in %")]
    _, first, second, *_ = re.split("  +", header.strip())
    assert first != second
    assert all(display_width(line) <= width for line in (*screen, *full))


def test_the_demonstration_shows_its_three_surprises_and_what_to_do_next(gold):
    found = demonstrate()
    text = render_terminal(found)
    gold("demo.txt", text)
    a = found.report.systems[0]
    assert a.pass_at(5).value > 0.9
    assert a.pass_hat(5).value < 0.5
    assert found.comparison.headline.value > 0
    assert found.comparison.headline.answer("this suite") == "undecided"
    assert a.tasks.count("undecided") > 0
    assert re.findall(r"^(\d)\. ", text, re.M) == ["1", "2", "3"]
    assert text.endswith("\nNext: passhat report YOUR_RESULTS\n")
