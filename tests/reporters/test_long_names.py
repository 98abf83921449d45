"""Long names: whole where anything else can give way, never alike where they must be cut."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import compare, rank, render_terminal, simulate
from passhat import render_terminal as render_comparison
from passhat.analysis.reports.measure import measure
from passhat.records import Categorical
from passhat.reporters.formatting import TerminalStyle, display_width, shorten_apart

DISTINCT = {
    "at the end": ["x" * 70 + "-1", "x" * 70 + "-2"],
    "at the start": ["1-" + "x" * 70, "2-" + "x" * 70],
    "near the middle": ["x" * 40 + "-1-" + "x" * 33, "x" * 40 + "-2-" + "x" * 33],
    "by more": ["x" * 70, "x" * 71],
}


def named(systems=("one", "two"), tasks=None, **options):
    """Trials of systems, of tasks, that are called so."""
    size = len(tasks) if tasks else 8
    rates = dict(zip(systems, (0.75, 0.6, 0.4), strict=False))
    trials = simulate(tasks=size, runs=8, rate=rates, seed=4, **options)
    return replace(trials, task=Categorical(tuple(tasks), trials.task.codes)) if tasks else trials


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("length", [20, 36, 44])
def test_names_of_systems_that_fit_without_bars_are_whole(width, length):
    names = [f"{'claude-sonnet-4-5-and-its-many-tools-at-work'[: length - 2]}-{i}" for i in "ab"]
    for verbose in (False, True):
        ink = TerminalStyle(width=width)
        shown = render_terminal(measure(named(names)), ink, verbose=verbose)
        assert "…" not in shown
        for name in names:
            assert re.search(rf"^  {name} ", shown, re.MULTILINE)


@pytest.mark.parametrize("width", [80, 120])
def test_names_of_tasks_are_whole_where_the_marks_of_runs_can_give_way(width):
    tasks = [f"airline/refund-a-cancelled-flight-{i:05}" for i in range(8)]
    report = measure(named(["one"], tasks))
    for verbose in (False, True):
        ink = TerminalStyle(width=width)
        shown = render_terminal(report, ink, all_tasks=True, verbose=verbose)
        for name in tasks:
            assert re.search(rf"^  {name}  ", shown, re.MULTILINE)
        assert ("passed  ○ failed" in shown) is (width == 120)


def test_runs_are_marked_where_names_leave_room():
    report = measure(named(["one"], [f"task-{i}" for i in range(8)]))
    shown = render_terminal(report, TerminalStyle(width=80), all_tasks=True, verbose=False)
    assert len(re.findall(r"[●○]{8}$", shown, re.MULTILINE)) == 8


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("names", DISTINCT.values(), ids=DISTINCT)
def test_tasks_that_must_be_cut_never_look_alike(width, names):
    report, ink = measure(named(["one"], names)), TerminalStyle(width=width)
    full = render_terminal(report, ink, all_tasks=True, verbose=True)
    lines = re.findall(r"^  (\S.*?)  +(?:solid|flaky|broken|undecided)", full, re.MULTILINE)
    assert len(set(lines)) == len(lines) == 2
    screen = render_terminal(report, ink, all_tasks=True)
    lines = re.findall(r"^  (\S*x\S*)  +\d+/8 ", screen, re.MULTILINE)
    assert len(set(lines)) == len(lines) == 2
    lowest = re.findall(r"(\S*x\S*) \d/8", " ".join(screen.partition("\n\n  task")[0].split()))
    assert len(set(lowest)) == len(lowest) == 2


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("names", DISTINCT.values(), ids=DISTINCT)
def test_systems_that_must_be_cut_never_look_alike(width, names):
    trials = named(names)
    ink = TerminalStyle(width=width)
    for answer in (measure(trials), rank(trials)):
        screen = render_terminal(answer, ink, results=None)
        full = render_terminal(answer, ink, results=None, verbose=True).partition("Each")[0]
        for text in (screen, full):
            rows = re.findall(r"^ (?: +\d(?: to \d)?)? +(\S*x\S*) +\d", text, re.MULTILINE)
            assert len(set(rows)) == len(rows) == 2
            assert all(display_width(line) <= width for line in text.split("\n"))


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("names", DISTINCT.values(), ids=DISTINCT)
def test_a_comparison_never_calls_two_systems_alike(width, names):
    trials = named(names)
    found = compare(*(trials.where(system=name) for name in names))
    ink = TerminalStyle(width=width)
    screen, full = (render_comparison(found, ink, verbose=verbose) for verbose in (False, True))
    for text, lead in ((screen, 0), (full, 1)):
        header = next(line for line in text.split("\n") if "  these tasks  " in line)
        first, second = re.split("  +", header.strip())[lead : lead + 2]
        assert first != second
        assert all(display_width(line) <= width for line in text.split("\n"))
    tests = compare(*(named(names).where(system=name) for name in names), ks=[9])
    said = " ".join(render_comparison(tests, ink).partition("\n\n")[0].split())
    pair = re.match(r"(\S+) and (\S+) cannot be compared", said)
    assert pair.group(1) != pair.group(2)


# Alike in many places: what differs may be hidden by any cut.
alike = st.builds(
    "agent-{}{}{}{}{}".format,
    st.just("x" * 30),
    st.sampled_from("AB"),
    st.just("y" * 30),
    st.sampled_from("12"),
    st.text("z", max_size=2),
)


@given(
    st.lists(st.text("ab-", min_size=1, max_size=40) | alike, unique=True, min_size=1, max_size=9),
    st.integers(12, 60),
)
def test_distinct_names_are_cut_to_distinct_ones(names, width):
    cut = shorten_apart(names, width)
    assert len(set(cut)) == len(names)
    assert all(display_width(one) <= width for one in cut)
    assert all(one == name for one, name in zip(cut, names, strict=True) if len(name) <= width)


def test_what_must_go_from_a_table_of_tasks_are_the_p_values_of_screening():
    tasks = [f"airline/refund-{i:06}" for i in range(8)]
    trials = simulate(tasks=8, runs=20, rate={"new": 0.95, "old": 0.2}, seed=4)
    trials = replace(trials, task=Categorical(tuple(tasks), trials.task.codes))
    found = compare(trials.where(system="new"), trials.where(system="old"))
    narrow = render_comparison(found, TerminalStyle(width=72), verbose=True)
    (header,) = re.findall(r"^  task .*", narrow, re.MULTILINE)
    assert "p (Holm)" in header
    assert "p (BH)" not in header
    wide = render_comparison(found, TerminalStyle(width=120), verbose=True)
    assert "p (Holm)  p (BH)" in wide
    assert "…" not in narrow


def test_a_name_that_is_marked_is_marked_alike_in_any_order_and_company():
    names = ["x" * 30 + middle + "y" * 30 + end for middle in "AB" for end in "12"]
    first, last = shorten_apart(names, 20), shorten_apart(names[::-1], 20)
    assert dict(zip(names, first, strict=True)) == dict(zip(names[::-1], last, strict=True))
