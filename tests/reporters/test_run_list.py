"""The list of runs fits the terminal, whatever is in it."""

import pytest

from passhat import render_html
from passhat.reporters.answers.listings import Row, RunList
from passhat.reporters.formatting import TerminalStyle, display_width
from passhat.reporters.rendering import render_terminal


def run(**changes) -> Row:
    row = Row(
        run="dc7d2445", suite="customer-support-refunds", status="interrupted", owner=None,
        stopped_early=False, decided=None,
        started="2026-11-15T09:14:00", commit="1f2e3d4c5b6a", branch="main", dirty=True, tags=[],
        systems=1, tasks=12, trials=12_345, passed=11_000, errored=0,
        pass_rate=0.5851, pass_rates={"agent": 0.5851},
    )  # fmt: skip
    return {**row, **changes}


@pytest.mark.parametrize("tags", [[], ["baseline"], ["a-tag-that-goes-on", "and-another-one"]])
def test_no_line_is_wider_than_eighty_columns(tags):
    rows = [run(tags=tags), run(status="finished", tags=tags)]
    lines = render_terminal(RunList(tuple(rows)), TerminalStyle(width=80)).splitlines()
    assert len(lines) == 4
    assert all(display_width(line) <= 80 for line in lines)
    assert "interrupted" in lines[1]
    assert "custome" in lines[1]
    assert lines[2].endswith("  baseline") or "baseline" not in tags
    assert "1f2e3d4*" in lines[1]


def test_a_list_that_is_cut_says_of_how_many():
    assert "<h1" in (page := render_html(RunList((run(),) * 2, kept=33)))
    assert "The newest 2 of 33 runs" in page
    assert "of 2 runs" not in render_html(RunList((run(),) * 2, kept=2))


def test_where_there_is_room_nothing_is_cut():
    text = render_terminal(RunList((run(tags=["baseline"]),)), TerminalStyle(width=120))
    assert "customer-support-refunds" in text
    assert "interrupted, baseline" in text
    assert "…" not in text


def test_columns_stand_under_their_titles():
    head, first, second, _ = render_terminal(
        RunList((run(), run(suite="s", trials=0, pass_rate=None))), TerminalStyle()
    ).splitlines()
    for title in ("started", "suite", "commit"):
        assert first[head.index(title) - 1] == second[head.index(title) - 1] == " "
    end = head.index("trials") + len("trials")
    assert first[:end].endswith("12,345")
    assert second[:end].endswith(" 0")


def test_the_rate_is_the_mean_over_tasks_under_the_name_that_a_report_gives_it():
    head, first, _ = render_terminal(RunList((run(),)), TerminalStyle()).splitlines()
    end = head.index("pass@1") + len("pass@1")
    assert first[:end].endswith("58.5%")


def test_a_running_run_is_listed_with_its_process_and_a_dead_one_as_stopped():
    rows = (run(status="running", owner="process 7 on box"), run(status="stopped"))
    _, running, stopped, _ = render_terminal(RunList(rows), TerminalStyle(width=140)).splitlines()
    assert running.endswith("running (process 7 on box)")
    assert stopped.endswith("stopped, can be resumed")


def test_each_of_several_systems_has_its_own_rate_the_least_reliable_first():
    rates = {"good": 0.95, "bad": 0.25}
    listed = RunList((run(systems=2, pass_rates=rates),))
    text = render_terminal(listed, TerminalStyle(width=120))
    head, first, second, _ = text.splitlines()
    assert "58.5%" not in text
    assert "interrupted" in first
    assert second.strip() == "bad 25% to good 95%"
    assert "resume" not in head
    full = render_terminal(listed, TerminalStyle(width=120), verbose=True)
    _, first, second, third = full.splitlines()
    assert "58.5%" not in full
    assert "interrupted" in first
    assert second.split() == ["bad", "25.0%"]
    assert third.split() == ["good", "95.0%"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_rates_of_several_agents_have_the_rest_of_their_line(width):
    rates = {"claude-sonnet-4-5": 0.83, "gpt-5-medium": 0.93}
    listed = RunList((run(suite="checkout", systems=2, pass_rates=rates), run(suite="checkout")))
    lines = render_terminal(listed, TerminalStyle(width=width)).splitlines()
    assert width == 60 or "claude-sonnet-4-5 83% to gpt-5-medium 93%" in lines[2]
    assert max(map(len, lines)) <= width
    longest = {"a" * 90: 0.1, "b" * 90: 0.2}
    listed = RunList((run(suite="checkout", systems=2, pass_rates=longest),))
    lines = render_terminal(listed, TerminalStyle(width=width)).splitlines()
    assert len(lines[2]) == width


def test_an_unfinished_run_comes_with_the_command_that_resumes_it():
    text = render_terminal(
        RunList((run(),), resume="passhat run --resume dc7d2445"), TerminalStyle(width=120)
    )
    said = "Go on with the newest unfinished one: passhat run --resume dc7d2445\n"
    assert text.endswith(said)
