import json
import re
from dataclasses import replace

import pytest

from passhat import render_html, report
from passhat.analysis.explaining.explain import explain
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.records import Outcome, Trials
from passhat.reporters import render
from passhat.reporters.page_parts import headline_parts
from passhat.stats.estimate import Unavailable


@pytest.fixture(scope="module")
def tagged():
    """Two agents, half of whose tasks carry a tag."""
    columns = simulate(tasks=6, runs=4, rate=[0.6, 0.8], seed=1).to_columns()
    columns["tags"] = [("even",) if int(name[-1]) % 2 == 0 else () for name in columns["task"]]
    return Trials.from_columns(columns)


@pytest.mark.parametrize("ks", [None, [2, 4], [1], [9]])
def test_a_page_shows_its_parts_at_whatever_k_was_asked_for(tagged, ks):
    page = render_html(measure(tagged, ks=ks))
    rows = re.findall(r'<tr><th scope="row">even</th><td class="n">(\d)</td>', page)
    assert rows == ["3", "3"]


def test_a_part_without_a_pass_1_has_a_dash_for_it(tagged):
    page = render_html(measure(tagged, ks=[2, 4]))
    row = '<th scope="row">even</th><td class="n">3</td><td>-</td><td>pass^4 '
    assert page.count(row) == 2


def test_nothing_from_the_data_steers_what_a_page_shows():
    hostile = "x\x1b[31m\u202e<b>"
    tasks = [f"{hostile} {number}" for number in range(4)]
    rows = [(task, trial) for task in tasks for trial in range(4)] * 2
    trials = Trials.from_columns(
        system=[f"{hostile} one"] * 16 + [f"{hostile} two"] * 16,
        task=[task for task, _ in rows],
        trial=[trial for _, trial in rows],
        passed=[trial < 2 for _, trial in rows],
        error=[None if trial < 2 else f"broke: {hostile}" for _, trial in rows],
        tags=[(f"{hostile} tag {int(task[-1]) % 2}",) for task, _ in rows],
    )
    report, why = measure(trials), explain(trials, {}, shuffles=199)
    for answer in (report, report.matrix(), judge(trials, ["pass^1 >= 0.4"])):
        page = render(answer, "html", explanation=why)
        # The numbers behind a picture are kept as they are, for files made from them.
        shown = re.sub(r"data-rows='[^']*'", "", page)
        assert not set(shown) & {"\x1b", "\u202e"}
        assert "\\u202e&lt;b&gt;" in shown
        assert "\\u202e<b>" not in shown


@pytest.mark.parametrize("tasks", [3, 8])
@pytest.mark.parametrize("told", [False, True])
def test_each_picture_of_a_report_stands_once_wherever_there_is_room(tasks, told):
    trials = simulate(tasks=tasks, runs=6, rate=0.5, seed=5)
    texts = {
        (one.system, one.task, one.trial): json.dumps(
            {
                "answer": "no",
                "checks": [{"matcher": one.task, "score": float(one.outcome is Outcome.PASSED)}],
            }
        )
        for one in trials
    }
    report = measure(trials)
    why = explain(trials, texts)
    assert len(why.categories) > 2
    assert not why.causes
    page = render(report, "html", trials=trials, explanation=why if told else None)
    plots = {"decay": report.plots.decay(), "passes": report.plots.passes(),
             "variance": report.plots.variance()}  # fmt: skip
    for name, figure in plots.items():
        drawn = not isinstance(figure, Unavailable)
        assert page.count(f'data-figure="{name}"') == drawn, name
    beside_the_groups = told and tasks == 8
    assert ('class="stack w7"' in page) != beside_the_groups


def test_notes_on_a_page_name_files_without_their_folders(tmp_path):
    folder = tmp_path / "of ann"
    folder.mkdir()
    log = {"task": "a", "passed": True, "judge": 0.5}
    path = folder / "results.jsonl"
    path.write_text("".join(json.dumps({**log, "trial": trial}) + "\n" for trial in (1, 2)))
    found = report(path)
    noted = replace(found, notes=(f"{path}: two things were seen: x", "of no file: y"))
    page = render(noted, "html")
    assert "<li>results.jsonl: two things were seen: x</li><li>of no file: y</li>" in page
    assert "of ann" not in page.partition("<h2>Notes")[2].partition("</ul>")[0]


def test_a_page_says_in_words_what_a_colleague_who_gets_the_file_can_read():
    columns = simulate(tasks=6, runs=8, rate=0.5, seed=1).to_columns()
    columns["task"] = [name.removeprefix("task-") for name in columns["task"]]
    page = render_html(report(Trials.from_columns(columns)), results="/home/ann/logs/night.json")
    text = re.sub(r"<[^>]+>", "", page)
    assert re.search(r"Look at the failures of task \d+, which passed", text)
    assert "passhat why night.json" in text
    assert "/home/ann" not in page


@pytest.mark.parametrize(
    ("said", "first", "rest"),
    [
        ("We rank two agents.", "We rank two agents", ""),
        ("It errs: people read 9 of 9.", "It errs", "lead begins"),
        ("Task 41: trial 1 (failed) called a.", "Task 41", "lead begins"),
        ("Two lead: claude-9 does.", "Two lead", "lead"),
    ],
)
def test_a_heading_ends_without_a_stop_and_what_follows_begins_with_a_capital(said, first, rest):
    parts = headline_parts(said)
    assert "".join(text for kind, text in parts if kind in ("", "whole-name")) == first
    assert ([kind for kind, _ in parts if kind.startswith("lead")] or [""]) == [rest]
