import html
import math
import re
from itertools import combinations
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import passhat
from passhat import render_html
from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.plots import plot_differences, plot_ranks
from passhat.analysis.comparing.ranking import profile, rank
from passhat.analysis.comparing.trends import CountedRun, find_flaky, trends
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.plan import plan
from passhat.analysis.planning.simulate import demonstrate, simulate
from passhat.analysis.reports.parts import LABELS
from passhat.drawing.figure import STYLE
from passhat.messages import plural
from passhat.records import Outcome, Trials
from passhat.reporters import render
from passhat.reporters.answer import WORD_TONES, DisplayOptions
from passhat.reporters.answers.judge import JudgeAnswer
from passhat.reporters.answers.trend import HEAT, MOST_MARKS, heat_cell
from passhat.reporters.formats.html import page_values
from passhat.reporters.formatting import metric_label, percent
from passhat.reporters.page_parts import Kind
from passhat.reporters.rendering import answer_of

# Words are looked at here, not the numbers of plans.
pytestmark = pytest.mark.usefixtures("few_suites_drawn")

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
        assert plot(found).body in text
    assert "default-src 'none'" in html.unescape(text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "new <b>" not in text
    assert render_html(found) == text


@pytest.mark.parametrize("kind", CASES)
def test_the_picture_stands_alone(kind):
    found, plot = CASES[kind]
    text = render(found, "svg")
    assert text == plot(found).svg(standalone=True) + "\n"


ROW = re.compile(r'<li data-row="([^"]+)" id="[^"]+">')


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
        can, always = (percent(one.estimate.value) for one in (at, hat))
        assert html.unescape(head) == f"{can} can.<br>{always} always."
        assert f'aria-label="{round(100 * at.estimate.value)} of 100 squares"' in text
    assert text.count("<h1") == 1
    assert "●" * 20 in re.sub(r"<[^>]+>", "", text)  # the trials that are no proof


def counted_runs(count, rate=0.8):
    return [
        CountedRun(
            key=str(i),
            label=str(i),
            started=f"2026-10-{i % 28 + 1:02}T09:00:00",
            tallies=[simulate(tasks=9, runs=5, rate={"agent": rate}, seed=i).tally()],
        )
        for i in range(count)
    ]


def test_the_page_of_flaky_tasks_has_a_cell_for_every_run_of_every_task_that_failed():
    found = find_flaky(counted_runs(6))
    text = render_html(found)
    failing = {key: cells for key, cells in found.counts.items() if any(n > c for n, c in cells)}
    named = r'<th scope="row" class="name"><a href="#task-[^"]+">(.*?)</a></th>(.*?)</tr>'
    rows = re.findall(named, text, re.DOTALL)
    assert sorted(task for task, _ in rows) == sorted(task for _, task in failing)
    assert {one.task for one in found.tasks} <= {task for task, _ in rows}
    for task, row in rows:
        passed = re.findall(r'<td class="cell \w+"><a href="#run-\d+">(.*?)</a></td>', row)
        plain = [re.sub(r"<[^>]+>", "", cell) for cell in passed]
        assert plain == [f"{c} of {n} passed" for n, c in failing["agent", task]]
    assert "~~" not in text


def fallen_runs():
    """Eight runs of twenty tasks; from the sixth on a third of them fail."""
    rates = [[0.95] * 20] * 5 + [[0.1] * 7 + [0.95] * 13] * 3
    rng = np.random.default_rng(5)
    return [
        CountedRun(
            key=f"run {i}",
            label=f"run {i}",
            started=f"2026-10-{i + 1:02}T09:00:00",
            tallies=[
                Trials.from_columns(
                    task=[f"a task {n}" for n in range(20) for _ in range(8)],
                    passed=(rng.random(160) < np.repeat(rate, 8)).tolist(),
                ).tally()
            ],
        )
        for i, rate in enumerate(rates)
    ]


PAGES = {
    "gate": lambda: judge(simulate(tasks=30, runs=6, seed=2), "pass^3 >= 0.8"),
    "trend": lambda: trends(fallen_runs()),
    "flaky": lambda: find_flaky(fallen_runs()),
    "report": lambda: passhat.report(simulate(tasks=30, runs=6, seed=2)),
    "comparison": lambda: compare(TRIALS),
}


@pytest.mark.parametrize("kind", PAGES)
def test_every_name_of_a_task_is_a_link_and_every_link_leads_to_something_on_the_page(kind):
    text = render_html(PAGES[kind]())
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", "", text, flags=re.DOTALL)
    places = re.findall(r' id="([^"]+)"', body)
    assert len(places) == len(set(places))
    assert set(re.findall(r'href="#([^"]*)"', body)) <= set(places)
    named = re.findall(r'<(?:th|td|div|span)[^>]*class="name">(.*?)</', body)
    assert len(named) > 5
    assert [name for name in named if "task" in name and not name.startswith("<a ")] == []
    assert 'href="#task-' in body


def test_rates_of_flaky_tasks_say_over_which_runs_they_are_where_not_all_have_a_column():
    found = find_flaky(counted_runs(MOST_MARKS + 3))
    text = render_html(found)
    assert text.count('class="day"') == MOST_MARKS
    assert f"The newest {MOST_MARKS} of {found.runs} runs, a column each" in text
    assert f"Rates are over all {found.runs} runs." in text
    for one in found.tasks:
        assert f">{one.passed} of {one.trials}<" in text
    assert "Rates are over" not in render_html(find_flaky(counted_runs(2)))


@pytest.mark.parametrize("trials", range(1, 41))
def test_a_cell_has_the_colour_whose_words_in_the_legend_are_true_of_it(trials):
    least = {level: share for level, share, _ in HEAT}
    for passed in range(trials + 1):
        share, level = passed / trials, heat_cell((trials, passed)).level
        assert (level == "all") == (share == 1)
        assert (level == "none") == (share == 0)
        assert share >= least[level]
        warmer = [name for name, *_ in HEAT][: [name for name, *_ in HEAT].index(level)]
        assert all(share < least[name] for name in warmer)


# What gives elements their classes and data: templates, and the pictures and rows made in Python.
PACKAGE = Path(passhat.__file__).parent
FOLDERS = (PACKAGE / "reporters/formats/pages", PACKAGE / "dashboard/html")
MADE = {
    *LABELS,
    *WORD_TONES.values(),
    *get_args(Kind),
    *(outcome.name.lower() for outcome in Outcome),
    *(level for level, *_ in HEAT),
    *("add", "del", "file", "hunk"),  # lines of a diff
    *("can", "always"),  # the squares of the demonstration
    *("colon", "lead", "begins", "whole-name"),  # parts of a headline
    *("l0", "l1", "l2", "l3"),  # levels of a table of tags
    *("wide", "widest", "below-narrow", "line", "grouped", "ungrouped"),  # pictures
}
JINJA = r"\{\{.*?\}\}|\{%.*?%\}"
READ_BY_OTHERS = {"person", "system", "over"}  # tests, and whoever scripts a page


def sources(ending):
    return "\n".join(
        file.read_text() for folder in FOLDERS for file in sorted(folder.glob(f"*.{ending}"))
    )


def words_in(pattern, text):
    return {word for found in re.findall(pattern, text) for word in re.findall(r"[\w-]+", found)}


def test_every_class_of_the_style_is_in_a_page_and_every_class_of_a_page_is_used():
    style, script, pages = sources("css"), sources("js"), sources("html")
    styled = set(re.findall(r"\.([a-zA-Z][\w-]*)", re.sub(r"\{[^{}]*\}|\"[^\"]*\"", " ", style)))
    of_pictures = set(re.findall(r"\.([a-zA-Z][\w-]*)", STYLE))
    attributes = re.findall(r'class="((?:[^"{]|\{\{.*?\}\}|\{%.*?%\})*)"', pages)
    plain = {word for one in attributes for word in re.sub(JINJA, " ", one).split()}
    chosen = words_in(
        r'"([^"]*)"', " ".join(re.findall(r"\{[{%](.*?)[}%]\}", " ".join(attributes)))
    )
    scripted = words_in(r"[\"'`]([^\"'`\n]*)[\"'`]", script)
    scripted |= words_in(r'class="([^"$]*)"', script)
    drawn = words_in(r'class="([^"]*)"', "".join(p.read_text() for p in PACKAGE.rglob("*.py")))
    assert styled - plain - chosen - scripted - drawn - MADE == set()
    assert plain - styled - of_pictures - scripted - {"l"} == set()  # "l" is followed by a level


def test_every_data_attribute_is_read_by_the_style_or_a_script_and_the_reverse():
    style, script, pages = sources("css"), sources("js"), sources("html")
    given = set(re.findall(r"\sdata-([\w-]+)", pages))
    camel = {re.sub(r"[A-Z]", lambda m: f"-{m[0].lower()}", one)
             for one in re.findall(r"dataset\.(\w+)", script)}  # fmt: skip
    parts = set(re.findall(r'\bat\("(\w+)"\)', script))  # of the hero, or of a run in progress
    named = set(re.findall(r'data-at="(\w+)"', pages))
    read = set(re.findall(r"data-([\w-]+)", style + script)) | camel
    assert given - read - parts - READ_BY_OTHERS == set()
    assert read - given == {
        "theme",
        "columns",
        "words",
        "of",
        "axis",
        "made",
    }  # by a script, in a drawing
    assert parts - named - given == set()
    assert named - parts - set(re.findall(r"data-at=(\w+)", style)) - READ_BY_OTHERS == set()


def test_the_page_of_gates_on_two_agents_shows_the_number_of_each_in_its_hero():
    verdicts = judge(TRIALS, "pass^3 >= 0.95")
    shown = page_values(answer_of(verdicts), DisplayOptions())
    assert [value for value, _ in shown["facts"]] == [
        percent(verdict.estimate.value, digits=1) for verdict in verdicts
    ]
    for (_, meaning), verdict in zip(shown["facts"], verdicts, strict=True):
        assert meaning.startswith(f"{verdict.system}, pass^3: ")
        assert "95.0% demanded: at least " in meaning
        lacking = 95.0 - 100 * verdict.estimate.interval.high
        assert float(meaning.split()[-3]) == pytest.approx(lacking, abs=0.05)
        assert meaning.endswith(" points short")
    assert shown["headline"] == "Neither gate is met."
    assert shown["counts"] == ""


def test_the_page_of_a_gate_says_how_many_tasks_at_least_are_missing():
    passed = [1] * 8 + [0] * 8 + [1, 0] * 4  # two always, two never, two at times
    trials = Trials.from_columns(task=[f"t{i // 4}" for i in range(24)], passed=passed)

    def missing(demand):
        return page_values(answer_of(judge(trials, demand)), DisplayOptions())["number"]["missing"]

    for k, threshold in ((1, 0.75), (2, 0.5), (2, 0.9), (4, 0.8)):
        values = [math.comb(sum(passed[i : i + 4]), k) / math.comb(4, k) for i in range(0, 24, 4)]
        needed = next(
            count
            for count in range(7)
            for chosen in combinations(range(6), count)
            if sum(1 if i in chosen else value for i, value in enumerate(values)) >= 6 * threshold
        )
        text = missing(f"pass^{k} >= {threshold}")
        assert text.startswith(f"At least {plural(needed, 'more task')} must pass every trial")
    assert missing("pass^2 >= 0.3") == ""


def test_the_page_of_a_gate_shows_the_trials_of_the_nearest_tasks_in_order_each_a_mark():
    ended = {"never": "FFFF", "nearly": "PPFP", "once": "FPEF", "always": "PPPP"}
    trials = Trials.from_columns(
        task=[task for task, letters in ended.items() for _ in letters],
        outcome=["FPE".index(letter) for letters in ended.values() for letter in letters],
    )
    verdicts = judge(trials, "pass^2 >= 0.9")
    assert {task.task: task.sequence for task in verdicts[0].tasks} == ended
    page = render_html(verdicts)
    near = re.findall(
        r'<li data-row="(\w+)" data-base="task-\1">.*?class="marks">(.*?)</span>', page
    )
    signs = str.maketrans("PFE", "●○×")
    assert [(name, re.sub(r"</?[biu]>", "", marks)) for name, marks in near] == [
        (name, ended[name].translate(signs)) for name in ("nearly", "once", "never")
    ]
    long = Trials.from_columns(task=["a"] * 13 + ["b"] * 13, passed=[1, 0] * 13)
    assert "data-base" not in render_html(judge(long, "pass^2 >= 0.9"))


def test_the_page_of_a_plan_for_a_difference_answers_it_before_precision():
    answer = answer_of(plan(tasks=30, runs=5, difference=0.1))
    first, precision, *_ = page_values(answer, DisplayOptions())["parts"]
    assert not first.figures
    assert [name for name, _ in precision.figures] == ["precision"]
    assert precision.left
    assert first.right[0].label == "Compare"


def test_the_hero_of_a_profile_shows_the_agent_s_numbers_beside_those_of_the_field():
    agents = {"a": 0.9, "b": 0.7, "c": 0.5}
    found = profile(simulate(tasks=20, runs=4, seed=2), simulate(tasks=20, runs=4, rate=agents))
    ends = [norm for norm in found.norms if norm.name in ("pass^1", "pass^4")]
    assert answer_of(found).facts() == [
        (
            f"{percent(norm.value.value, digits=1)} {metric_label(norm.name)}",
            f"the median of the others is {percent(norm.quartiles[1], digits=1)}",
        )
        for norm in ends
    ]


def test_a_page_with_a_template_of_its_own_is_headed_by_its_title_unless_it_says_more():
    class Page(JudgeAnswer):
        def page(self, options):
            return {"rows": ()}

    assert page_values(Page(None), DisplayOptions())["headline"] == "The judge against people"
