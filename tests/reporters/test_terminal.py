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
    assert len(shown.splitlines()) <= 15
    assert {f"agent-{number}" for number in (55, 57, 59)} <= set(listed)
    assert f"\n{60 - len(listed)} more: -v\n" in shown
    for render in (render_terminal, render_markdown):
        full = render(report, verbose=True)
        assert all(name in full for name in names)


@pytest.mark.parametrize("count", range(2, 14))
def test_agents_that_fit_on_the_first_screen_are_all_on_it(count):
    """Where some must be left out the line that says so takes a row of its own."""
    names = [f"agent-{i:02}" for i in range(count)]
    tasks = [f"t{i}" for i in range(6)]
    columns = {
        "system": [name for name in names for _ in range(6)],
        "task": tasks * count,
        "passed": [i % 3 > 0 for i in range(6 * count)],
    }
    shown = render_terminal(measure(Trials.from_columns(columns))).splitlines()
    assert len(shown) <= 15
    rows = [line.split()[0] for line in shown if line.startswith("  agent-")]
    left_out = count - len(rows)
    assert [line for line in shown if line.endswith(" more: -v")] == (
        [f"{left_out} more: -v"] if left_out else []
    )
    assert left_out != 1


def test_names_have_their_room_before_bars():
    names = ["claude-opus-4-1", "claude-sonnet-4", "claude-sonnet-4-5", "deepseek-v3"]
    columns = {
        "system": [name for name in names for _ in range(12)],
        "task": ["a", "a", "b", "b", "c", "c"] * 8,
        "passed": [True, False, True] * 16,
        "error": ["timeout", *[None] * 47],
    }
    report = measure(Trials.from_columns(columns))
    for verbose in (False, True):
        shown = render_terminal(report, TerminalStyle(width=60), verbose=verbose).splitlines()
        assert [name for name in names if any(f"  {name}  " in line for line in shown)] == names
        assert all(display_width(line) <= 60 for line in shown if "passhat" not in line)
    table = "".join(shown[: shown.index(names[0])] if names[0] in shown else shown[:12])
    assert "●" not in table
    wide = render_terminal(report, TerminalStyle(width=100), verbose=True)
    assert "●" in "".join(wide.splitlines()[:12])


@pytest.mark.parametrize("width", [72, 80, 100, 120, 140])
def test_no_line_is_wider_than_the_terminal(report, three, width):
    for one in (report, three, measure(_nasty())):
        for verbose in (False, True):
            ink, every = TerminalStyle(width=width), len(one.systems) == 1
            shown = render_terminal(one, ink, all_tasks=every, verbose=verbose)
            assert max(display_width(line) for line in shown.split("\n")) <= width


def test_colour_changes_nothing_but_colour(report, three):
    for one in (report, three):
        for verbose in (False, True):
            coloured = render_terminal(one, TerminalStyle(color=True), verbose=verbose)
            assert "\x1b[" in coloured
            plain = "\n".join(line.rstrip() for line in STYLE.sub("", coloured).split("\n"))
            assert plain == render_terminal(one, TerminalStyle(), verbose=verbose)


def test_only_colours_that_show_on_light_and_dark_are_used(report):
    codes = {
        code
        for verbose in (False, True)
        for match in STYLE.finditer(
            render_terminal(report, TerminalStyle(color=True), verbose=verbose)
        )
        for code in match.group()[2:-1].split(";")
    }
    assert codes <= {"0", "1", "2", "31", "32", "35", "36"}


def test_without_unicode_everything_is_ascii(report, three):
    for one in (report, three, measure(_nasty())):
        for verbose in (False, True):
            assert render_terminal(one, TerminalStyle(unicode=False), verbose=verbose).isascii()


@pytest.mark.parametrize("color", [False, True])
def test_text_from_data_cannot_steer_the_terminal(color):
    report = measure(_nasty(), bars=0.5)
    ink = TerminalStyle(color=color)
    screens = [render_terminal(report, ink, all_tasks=True, verbose=v) for v in (False, True)]
    shown = "".join(screens) + render_targets(report)
    bare = STYLE.sub("", shown)
    assert "\x1b" not in bare
    assert not set(bare) & set("\u202e\x00\x9b\x07")


def test_the_answer_comes_first_and_what_to_do_last(report):
    lines = render_terminal(report).splitlines()
    assert lines[0].startswith("support-bot is not reliable: it passes 77% of the time")
    assert lines[-1].endswith("passhat why RESULTS")
    full = render_terminal(report, verbose=True).splitlines()
    assert full[0] == lines[0]
    assert "Next" in full


def test_the_ranking_that_is_advised_says_what_the_opening_sentence_says(three):
    assert "passhat compare RESULTS --by pass^5\n" in render_terminal(three, verbose=True)
    bold = measure(simulate(tasks=5, runs=3, rate=[0.5, 0.6], seed=1), confidence=0.8)
    advised = "passhat compare RESULTS --by pass^3 --confidence 0.8\n"
    assert advised in render_terminal(bold, verbose=True)


def test_the_two_that_the_first_screen_sends_to_a_comparison_are_those_it_calls_tied(three):
    assert " gpt and opus lead and are tied: " in render_terminal(three)
    assert render_terminal(three).endswith("passhat compare RESULTS --only gpt --only opus --k 5\n")


def test_the_ranking_that_is_advised_leaves_out_the_system_that_the_report_does():
    runs = {"a": 5, "b": 5, "c": 1}
    rows = [(name, task, 1) for name, count in runs.items() for task in "xyz" for _ in range(count)]
    system, task, passed = zip(*rows, strict=True)
    report = measure(Trials.from_columns(system=system, task=task, passed=passed))
    assert report.leaders.compared == ("a", "b")
    assert "passhat compare RESULTS --by pass^5\n" in render_terminal(report, verbose=True)


def test_every_task_is_listed_when_asked_for(report):
    for verbose in (False, True):
        shown = render_terminal(report, all_tasks=True, verbose=verbose)
        assert all(re.search(rf"^  task-{i:02} .* \d+/10 ", shown, re.M) for i in range(1, 13))
        assert "lists every task" not in shown


def test_the_bar_of_labels_says_what_its_pieces_mean():
    runs = {"a": [1] * 100, "b": [1, 0] * 30, "c": [0] * 60, "d": [1, 1]}
    runs |= dict.fromkeys("efghi", [1] * 100)
    trials = Trials.from_columns(
        task=[name for name, found in runs.items() for _ in found],
        passed=[one for found in runs.values() for one in found],
    )
    said = render_terminal(measure(trials), TerminalStyle(width=100), verbose=True)
    assert "█ solid  ▒ flaky  ░ broken  · undecided" in said
    assert "  1 more: `all_tasks=True` lists every task." in said
    assert "lists every task" not in render_terminal(
        measure(trials), TerminalStyle(), all_tasks=True, verbose=True
    )
    stored = render_terminal(measure(trials), TerminalStyle(), results="runs.db", verbose=True)
    assert "1 more: passhat report runs.db --tasks lists every task." in stored


def test_targets_read_as_they_did(report, gold):
    gold("targets.txt", render_targets(report))


def test_every_reporter_stars_the_numbers_that_leave_tasks_out():
    trials = Trials.from_columns(task=[*"aaa", *"bbbb", *"cccc"], passed=[0] * 3 + [1] * 8)
    found = measure(trials)
    note = "k = 4 is over 2 of 3 tasks; the others have fewer trials."
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
    shown = render_terminal(measure(trials), verbose=True)
    assert all(re.search(rf"^  {name} +\w+ +\d+/{runs} ", shown, re.M) for name in tasks)
    assert "lists every task" not in shown


@pytest.mark.parametrize("runs", [1, 2, 60])
def test_the_first_screen_counts_the_tasks_and_names_those_that_failed(runs):
    tasks = [f"task-{i}" for i in range(8)]
    trials = Trials.from_columns(task=tasks * runs, passed=([0] + [1] * 7) * runs)
    shown = render_terminal(measure(trials))
    assert f"Tasks: 7 passing, 1 failing (task-0 0/{runs})." in shown
    passing = Trials.from_columns(task=tasks * runs, passed=[1] * (8 * runs))
    assert "Tasks: 8 passing.\n" in render_terminal(measure(passing))


def test_tasks_that_are_not_listed_are_not_called_more_of_none():
    trials = Trials.from_columns(task=[*"abcdefghi"] * 2, passed=[1] * 18)
    shown = render_terminal(measure(trials), verbose=True)
    assert "  9 tasks not listed: `all_tasks=True` lists every task." in shown


def test_after_one_run_each_the_tasks_that_did_not_pass_are_listed():
    trials = Trials.from_columns(task=[*"abcdefghi"], passed=[1, 0, 1, 1, 1, 1, 1, 1, 1])
    shown = render_terminal(measure(trials), verbose=True)
    assert "8 passed, 1 did not; a label takes two trials of a task." in shown
    assert re.search(r"^  b +undecided  0/1", shown, re.M)
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
    assert "the other way" not in render_terminal(measure(turned), verbose=True)


@pytest.mark.parametrize(
    ("runs", "advised"),
    [
        ({"a": {"x": 3, "y": 1, "z": 3}, "b": {"x": 3, "y": 3, "z": 1}}, "compare RESULTS"),
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
    report = measure(trials, ks=[3])
    shown = render_terminal(report, verbose=True)
    assert re.findall(r"passhat (compare.*)", shown) == ([advised] if advised else [])
    assert ("passhat compare" in render_terminal(report)) == (advised is not None)
    assert isinstance(rank(trials), RankReport) == (advised is not None)
    assert not isinstance(rank(trials, metric="pass^3"), RankReport)


def test_a_table_that_is_too_wide_does_not_continue_with_empty_columns():
    reason = "pass^99 needs 99 trials of a task; the most any has is 3"
    rows = tuple((f"row {i}", reason, "") for i in range(2))
    table = Table(header=("in %", "this suite", "tasks like these"), rows=rows, left=(0, 1, 2))
    said = blocks_text([table], TerminalStyle(width=80))
    assert said.count("row 0") == 1
    assert "tasks like these" not in said
    filled = replace(table, rows=(("row 0", reason, "1"),))
    assert blocks_text([filled], TerminalStyle(width=80)).count("row 0") == 2
