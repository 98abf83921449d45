import html
import re

import pytest

from passhat import render_html
from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.plots import plot_differences, plot_ranks
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.comparing.trends import CountedRun, find_flaky
from passhat.analysis.planning.simulate import demonstrate, simulate
from passhat.reporters import render

TRIALS = simulate(tasks=12, runs=6, rate={"new <b>": 0.9, "old": 0.5}, seed=3)
CASES = {
    "comparison": (compare(TRIALS), plot_differences),
    "ranking": (rank(TRIALS), plot_ranks),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_page_holds_the_picture_and_asks_for_nothing(kind):
    found, plot = CASES[kind]
    text = render_html(found)
    if kind == "ranking":  # the page of two agents draws each task beside its trials instead
        assert plot(found).svg() in text
    assert "default-src 'none'" in html.unescape(text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "new <b>" not in text
    assert render_html(found) == text


@pytest.mark.parametrize("kind", CASES)
def test_the_picture_stands_alone(kind):
    found, plot = CASES[kind]
    text = render(found, "svg")
    assert text == plot(found).svg(standalone=True) + "\n"


ROW = re.compile(r'<li data-row="([^"]+)">')


@pytest.mark.parametrize("seed", range(8))
def test_a_comparison_lists_every_task_once_worse_first_and_opens_only_what_moved(seed):
    rates = {"new": 0.5 + 0.05 * seed, "old": 0.75}
    found = compare(simulate(tasks=14, runs=5, rate=rates, seed=seed))
    text = render_html(found)
    moved = {task.name: task.difference for task in found.tasks}
    groups = re.findall(r'<details class="group moved"( open)?>(.*?)</details>', text, re.DOTALL)
    rows = [ROW.findall(group) for _, group in groups]
    assert sorted(name for group in rows for name in group) == sorted(moved)
    shown = [moved[name] for (opened, _), group in zip(groups, rows, strict=True) if opened
             for name in group]  # fmt: skip
    assert 0 not in shown
    assert shown == sorted(shown, key=lambda d: (d > 0, -abs(d)))
    folded = [name for (opened, _), group in zip(groups, rows, strict=True) if not opened
              for name in group]  # fmt: skip
    flipped = {task.name for task in found.flipped}
    assert not flipped & set(folded)


def test_the_trials_of_both_agents_stand_beside_each_task_in_order():
    found = compare(TRIALS)
    text = render_html(found)
    marks = str.maketrans({"P": "●", "F": "○", "E": "×"})
    plain = re.sub(r"<[^>]+>", "", text)
    for first, second in found.sequences.values():
        assert f"{second.translate(marks)}new &lt;b&gt;: {first.translate(marks)}" in plain


def test_the_demo_says_two_numbers_and_draws_them_at_every_k():
    found = demonstrate(seed=10)
    text = render_html(found)
    system = found.report.systems[0]
    heads = re.findall(r'<div data-at-k="(\d+)"[^>]*><(?:h1|p) class="h1[^"]*">(.*?)</', text)
    assert [int(k) for k, _ in heads] == [one.k for one in system.decay.pass_hat]
    assert heads[0][1].endswith("?")  # at one trial there is one number, and a question
    for (_, head), at, hat in zip(
        heads[1:], system.decay.pass_at[1:], system.decay.pass_hat[1:], strict=True
    ):
        can, always = (round(100 * one.estimate.value) for one in (at, hat))
        assert head == f"{can}% can.<br>{always}% always."
        assert f'aria-label="{can} of 100 squares"' in text
    assert text.count("<h1") == 1


def test_the_page_of_flaky_tasks_has_a_cell_for_every_run_of_every_task_that_failed():
    runs = [
        CountedRun(
            key=str(i),
            label=str(i),
            started=f"2026-11-0{i + 1}T09:00:00",
            tallies=[simulate(tasks=9, runs=5, rate={"agent": 0.8}, seed=i).tally()],
        )
        for i in range(6)
    ]
    found = find_flaky(runs)
    text = render_html(found)
    failing = {key: cells for key, cells in found.counts.items() if any(n > c for n, c in cells)}
    rows = re.findall(r'<th scope="row" class="name">(.*?)</th>(.*?)</tr>', text, re.DOTALL)
    assert sorted(task for task, _ in rows) == sorted(task for _, task in failing)
    assert {one.task for one in found.tasks} <= {task for task, _ in rows}
    for task, row in rows:
        passed = re.findall(r'<td class="cell \w+">(.*?)</td>', row)
        plain = [re.sub(r"<[^>]+>", "", cell) for cell in passed]
        assert plain == [f"{c} of {n} passed" for n, c in failing["agent", task]]
    assert "~~" not in text
