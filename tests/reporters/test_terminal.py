import re
from dataclasses import replace

import pytest

from passhat import render_html, render_markdown, render_terminal
from passhat.analysis.comparing.ranking import RankReport, rank
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.answer import Table
from passhat.reporters.answers.report_blocks import render_targets
from passhat.reporters.formats.text import blocks_text
from passhat.reporters.formatting import TerminalStyle, display_width

STYLE = re.compile(r"\x1b\[[0-9;]*m")
NASTY = "task\x1b[31m\u202e\x00\x9b" + "名" * 60
WORD = NASTY.replace("\x00", "")  # words of tags and tools hold no NUL


def _nasty() -> Trials:
    return Trials.from_columns(
        system=[NASTY] * 12,
        task=[NASTY] * 6 + ["b" * 200] * 6,
        passed=[1, 0, 1, 0, 1, 1] * 2,
        error=[NASTY] * 12,
        tags=[(WORD,)] * 6 + [()] * 6,
        tools=[(WORD,)] * 12,
        cost=[1e-9, 1e9, None, 3, 4, 5] * 2,
    )


@pytest.mark.parametrize("width", [80, 120])
def test_a_report_reads_as_it_did(report, gold, width):
    gold(f"report_{width}.txt", render_terminal(report, TerminalStyle(width=width)))


def test_several_systems_read_as_they_did(three, gold):
    gold("report_three_systems.txt", render_terminal(three, TerminalStyle(width=80)))


def test_the_first_screen_shows_the_most_reliable_of_very_many_systems():
    names = [f"agent-{number}" for number in range(60)]
    passed = [[number >= 55, number % 2] for number in range(60)]
    columns = {
        "system": [name for name in names for _ in range(2)],
        "task": ["a", "b"] * 60,
        "passed": [one for own in passed for one in own],
    }
    report = measure(Trials.from_columns(columns))
    shown = render_terminal(report, TerminalStyle(width=80))
    listed = [name for name in names if f"  {name} " in shown]
    assert len(listed) == 50
    assert {f"agent-{number}" for number in range(55, 60)} <= set(listed)
    assert "the 50 most reliable of 60 systems; -v shows all" in shown
    assert all(name in render_markdown(report) for name in names)


def test_names_have_their_room_before_bars():
    names = ["claude-opus-4-1", "claude-sonnet-4", "claude-sonnet-4-5", "deepseek-v3"]
    columns = {
        "system": [name for name in names for _ in range(12)],
        "task": ["a", "a", "b", "b", "c", "c"] * 8,
        "passed": [True, False, True] * 16,
        "error": ["timeout", *[None] * 47],
    }
    report = measure(Trials.from_columns(columns))
    shown = render_terminal(report, TerminalStyle(width=60)).splitlines()
    assert [name for name in names if any(f"  {name}  " in line for line in shown)] == names
    assert all(display_width(line) <= 60 for line in shown)
    assert "●" not in "".join(shown)
    assert "●" in render_terminal(report, TerminalStyle(width=100))


@pytest.mark.parametrize("width", [72, 80, 100, 120, 140])
def test_no_line_is_wider_than_the_terminal(report, three, width):
    for one in (report, three, measure(_nasty())):
        shown = render_terminal(one, TerminalStyle(width=width), all_tasks=len(one.systems) == 1)
        assert max(display_width(line) for line in shown.split("\n")) <= width


def test_colour_changes_nothing_but_colour(report, three):
    for one in (report, three):
        coloured = render_terminal(one, TerminalStyle(color=True))
        assert "\x1b[" in coloured
        plain = "\n".join(line.rstrip() for line in STYLE.sub("", coloured).split("\n"))
        assert plain == render_terminal(one, TerminalStyle())


def test_only_colours_that_show_on_light_and_dark_are_used(report):
    codes = {
        code
        for match in STYLE.finditer(render_terminal(report, TerminalStyle(color=True)))
        for code in match.group()[2:-1].split(";")
    }
    assert codes <= {"0", "1", "2", "31", "32", "35", "36"}


def test_without_unicode_everything_is_ascii(report, three):
    for one in (report, three, measure(_nasty())):
        assert render_terminal(one, TerminalStyle(unicode=False)).isascii()


@pytest.mark.parametrize("color", [False, True])
def test_text_from_data_cannot_steer_the_terminal(color):
    report = measure(_nasty(), bars=0.5)
    shown = render_terminal(report, TerminalStyle(color=color), all_tasks=True) + render_targets(
        report
    )
    bare = STYLE.sub("", shown)
    assert "\x1b" not in bare
    assert not set(bare) & set("\u202e\x00\x9b\x07")


def test_the_answer_comes_first_and_what_to_do_last(report):
    lines = render_terminal(report).split("\n")
    assert lines[0].startswith("You cannot depend on support-bot every time")
    assert "Next" in lines


def test_the_ranking_that_is_advised_says_what_the_opening_sentence_says(three):
    assert render_terminal(three).endswith("passhat rank RESULTS --by pass^5\n")
    bold = measure(simulate(tasks=5, runs=3, rate=[0.5, 0.6], seed=1), confidence=0.8)
    assert "passhat rank RESULTS --by pass^3 --confidence 0.8" in render_terminal(bold)


def test_the_ranking_that_is_advised_leaves_out_the_system_that_the_report_does():
    runs = {"a": 5, "b": 5, "c": 1}
    rows = [(name, task, 1) for name, count in runs.items() for task in "xyz" for _ in range(count)]
    system, task, passed = zip(*rows, strict=True)
    report = measure(Trials.from_columns(system=system, task=task, passed=passed))
    assert report.leaders.compared == ("a", "b")
    assert render_terminal(report).endswith("passhat rank RESULTS --by pass^5\n")


def test_every_task_is_listed_when_asked_for(report):
    shown = render_terminal(report, all_tasks=True)
    assert all(f"task-{i:02}" in shown for i in range(1, 13))
    assert "lists every task" not in shown


def test_the_bar_of_labels_says_what_its_pieces_mean():
    runs = {"a": [1] * 60, "b": [1, 0] * 30, "c": [0] * 60, "d": [1, 1]}
    runs |= dict.fromkeys("efghi", [1] * 60)
    trials = Trials.from_columns(
        task=[name for name, found in runs.items() for _ in found],
        passed=[one for found in runs.values() for one in found],
    )
    said = render_terminal(measure(trials), TerminalStyle(width=100), verbose=True)
    assert "█ solid  ▒ flaky  ░ broken  · undecided" in said
    assert "  1 more: `all_tasks=True` lists every task." in said
    assert "lists every task" not in render_terminal(
        measure(trials), TerminalStyle(), all_tasks=True
    )
    stored = render_terminal(measure(trials), TerminalStyle(), results="runs.db")
    assert "1 more: passhat report runs.db --all-tasks lists every task." in stored


def test_targets_read_as_they_did(report, gold):
    gold("targets.txt", render_targets(report))


def test_every_reporter_stars_the_numbers_that_leave_tasks_out():
    trials = Trials.from_columns(task=[*"aaa", *"bbbb", *"cccc"], passed=[0] * 3 + [1] * 8)
    found = measure(trials)
    note = "k = 4 is over 2 of 3 tasks; the others have fewer runs."
    for render in (render_terminal, render_markdown, render_html):
        text = render(found, verbose=True).replace("\\*", "*")
        assert "pass^4 *" in text
        assert "pass^3 *" not in text
        assert f"* {note}" in text


def test_columns_never_touch_however_long_their_numbers():
    trials = Trials.from_columns(
        task=["many"] * 200_000,
        passed=[1, 0] * 100_000,
        cost=[0.0000121, 0.00000739] * 100_000,
    )
    shown = render_terminal(measure(trials), verbose=True)
    assert re.search(r"many +flaky +100000/200000 +\[50, 50\]", shown)
    assert re.search(r"cost +0\.00000974 +0\.0000121 +0\.00000739 ", shown)


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("runs", [1, 2, 60])
def test_all_of_a_few_tasks_are_listed(count, runs):
    tasks = [f"task-{i}" for i in range(count)]
    trials = Trials.from_columns(task=tasks * runs, passed=([0] + [1] * (count - 1)) * runs)
    shown = render_terminal(measure(trials))
    assert all(re.search(rf"^  {name} +\w+ +\d+/{runs} ", shown, re.M) for name in tasks)
    assert "lists every task" not in shown


def test_tasks_that_are_not_listed_are_not_called_more_of_none():
    shown = render_terminal(measure(Trials.from_columns(task=[*"abcdefghi"] * 2, passed=[1] * 18)))
    assert "  9 tasks not listed: `all_tasks=True` lists every task." in shown


def test_after_one_run_each_the_tasks_that_did_not_pass_are_listed():
    trials = Trials.from_columns(task=[*"abcdefghi"], passed=[1, 0, 1, 1, 1, 1, 1, 1, 1])
    shown = render_terminal(measure(trials))
    assert "8 passed, 1 did not; a label takes two runs of a task." in shown
    assert "  b         undecided  0/1" in shown
    assert "not listed" not in shown


def test_effort_that_goes_with_passing_the_other_way_inside_tasks_is_explained():
    hard = {"passed": [1, 0, 0, 0], "tokens_in": [1300, 1200, 1210, 1220]}
    easy = {"passed": [1, 1, 1, 0], "tokens_in": [300, 310, 320, 200]}
    trials = Trials.from_columns(
        task=[f"{kind}{i}" for kind in ("hard", "easy") for i in range(6) for _ in range(4)],
        passed=hard["passed"] * 6 + easy["passed"] * 6,
        tokens_in=hard["tokens_in"] * 6 + easy["tokens_in"] * 6,
    )
    report = measure(trials)
    feature = report.system().features["tokens_in"]
    assert feature.passed.value < feature.failed.value
    assert feature.association.value > 0
    for render in (render_terminal, render_markdown, render_html):
        text = render(report, verbose=True)
        said = " ".join(text.split())
        assert "correlation with passing" in said
        assert (
            "Within a task, tokens in is correlated with passing the other way than the means"
            in said
        )
    few = measure(
        Trials.from_columns(
            task=[*"aaaabbbbccccdddd"],
            passed=[1, 0, 0, 0] * 2 + [1, 1, 1, 0] * 2,
            tokens_in=[90, 95, 80, 84, 97, 80, 83, 99, 9, 10, 14, 10, 13, 17, 11, 14],
        )
    )
    feature = few.system().features["tokens_in"]
    assert feature.association.value * feature.difference.value < 0
    assert feature.association.interval.low < 0 < feature.association.interval.high
    assert "the other way" not in render_terminal(few, verbose=True)
    turned = Trials.from_columns(task=[*"aabb"] * 4, passed=[1, 0] * 8, tokens_in=[2, 1] * 8)
    assert "the other way" not in render_terminal(measure(turned))


@pytest.mark.parametrize(
    ("runs", "advised"),
    [
        ({"a": {"x": 3, "y": 1, "z": 3}, "b": {"x": 3, "y": 3, "z": 1}}, "rank RESULTS"),
        ({"a": {"x": 3, "y": 3}, "b": {"x": 3, "z": 3}}, None),
    ],
)
def test_a_ranking_is_advised_only_where_it_can_be_made(runs, advised):
    rows = [
        (system, task, trial % 2)
        for system, tasks in runs.items()
        for task, count in tasks.items()
        for trial in range(count)
    ]
    system, task, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=system, task=task, passed=passed)
    shown = render_terminal(measure(trials, ks=[3]))
    assert re.findall(r"passhat (rank.*)", shown) == ([advised] if advised else [])
    assert isinstance(rank(trials), RankReport) == (advised is not None)
    assert not isinstance(rank(trials, metric="pass^3"), RankReport)


def test_a_table_that_is_too_wide_does_not_continue_with_empty_columns():
    reason = "pass^99 needs 99 runs of a task; the most any has is 3"
    rows = tuple((f"row {i}", reason, "") for i in range(2))
    table = Table(header=("in %", "this suite", "tasks like these"), rows=rows, left=(0, 1, 2))
    said = blocks_text([table], TerminalStyle(width=80))
    assert said.count("row 0") == 1
    assert "tasks like these" not in said
    assert (
        blocks_text([replace(table, rows=(("a", reason, "1"),))], TerminalStyle(width=80)).count(
            "  a"
        )
        == 2
    )
