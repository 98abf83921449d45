"""Tasks against systems: every count once, whatever the names."""

import csv
import io
import re

import pytest

from passhat import Trials, rank, simulate
from passhat.analysis.reports.measure import measure
from passhat.records import Outcome
from passhat.reporters import render
from passhat.reporters.answers.report_blocks import rank_words
from passhat.reporters.formatting import TerminalStyle, display_width

UNEQUAL = Trials.from_columns(
    system=["a", "a", "a", "task"], task=["t10", "t2", "t2", "t2"], passed=[1, 0, 1, 1]
)


def test_a_cell_counts_the_runs_of_one_task_with_one_system():
    matrix = measure(UNEQUAL).matrix()
    assert matrix.tasks == ("t2", "t10")
    cells = dict(zip(matrix.tasks, matrix.cells, strict=True))
    assert [(c.passed, c.runs) for c in cells["t2"]] == [(1, 2), (1, 1)]
    assert cells["t10"][1] is None


def test_the_csv_file_has_a_row_a_task_and_a_column_a_system():
    header, *rows = csv.reader(io.StringIO(render(measure(UNEQUAL).matrix(), "csv")))
    assert header == ["task", "a", "task (agent)"]
    assert rows == [["t2", "0.5", "1.0"], ["t10", "1.0", ""]]


def test_a_system_is_no_formula_in_the_head_of_a_spreadsheet():
    trials = simulate(tasks=2, runs=2, rate={"=1+1": 0.5, "b": 0.5}, seed=1)
    text = render(measure(trials).matrix(), "csv")
    assert next(csv.reader(io.StringIO(text)))[1] == "'=1+1"


@pytest.mark.parametrize("format_name", ["markdown", "html", "text", "tex", "svg", "json"])
def test_other_formats_hold_it_too(format_name):
    text = render(measure(UNEQUAL).matrix(), format_name)
    assert "1/2" in text or format_name in ("svg", "json")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_more_systems_than_a_terminal_has_room_for_continue_below(width):
    names = [f"a-model-with-a-long-name-{i}" for i in range(12)]
    matrix = measure(simulate(tasks=3, runs=2, rate=dict.fromkeys(names, 0.5), seed=1)).matrix()
    lines = render(matrix, "text", ink=TerminalStyle(width=width)).splitlines()
    assert all(display_width(line) <= width for line in lines)
    heads = [head for line in lines if line.startswith("  task ") for head in line.split()[1:]]
    assert len(set(heads)) == len(names)
    cells = [cell for line in lines if line.startswith("  task-") for cell in line.split()[1:]]
    assert len(cells) == 3 * len(names)


def test_a_page_ranks_several_agents_as_rank_does_at_every_k():
    trials = simulate(tasks=20, runs=5, rate={"a": 0.9, "b": 0.85, "c": 0.4}, seed=4)
    report = measure(trials)
    for k in (1, 5):
        ranked = rank(trials, by=f"pass^{k}")
        assert report.leaders_at(k).ranks == {one.name: one.ranks for one in ranked.systems}
    table = render(report, "html").partition('<table class="agents">')[2].partition("</table>")[0]
    header, *rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", table)
    ]
    assert header[1] == "rank"
    ranks = {one.name: rank_words(one.ranks) for one in rank(trials, by="pass^5").systems}
    assert {re.sub(r"<[^>]+>", "", row[0]): row[1] for row in rows} == ranks


def test_cells_of_which_every_trial_errored_are_grey_and_in_the_legend():
    outcomes = [Outcome.ERRORED, Outcome.ERRORED, Outcome.PASSED, Outcome.ERRORED] * 2
    trials = Trials.from_columns(
        system=["a"] * 4 + ["b"] * 4, task=["x", "x", "y", "y"] * 2, outcome=outcomes
    )
    body = measure(trials).plots.matrix().body
    assert body.count('class="n faded"') == 3  # a row each, and the legend
    assert "all errored" in body
    assert "all errored" not in measure(UNEQUAL).plots.matrix().body
