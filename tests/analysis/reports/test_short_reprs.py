"""What a session shows of any result: one line, at most 200 characters, and the way on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache

import pytest

import passhat
from passhat.analysis.planning.simulate import SimulationModel
from passhat.analysis.reports.report import Report
from passhat.messages import LONGEST

# Words are looked at here, not the numbers of plans.
pytestmark = pytest.mark.usefixtures("few_suites_drawn")

TRIALS = passhat.simulate(
    tasks=40,
    runs=8,
    rate={"a": 0.9, "b" * 300: 0.7, "c\nd\x1b[31m": 0.4},
    world=SimulationModel(seeds=5, error_rate=0.05, partial=True),
    seed=1,
)
ONE, OTHER, _ = (TRIALS.where(system=name) for name in TRIALS.systems)
TAGGED = passhat.Trials.from_columns(
    task=[f"task {i % 20}" for i in range(80)],
    passed=[i % 3 > 0 for i in range(80)],
    tags=[[f"a tag with a long name {i % 20}"] for i in range(80)],
)
MAKERS = {
    "trials": lambda: TRIALS,
    "tally": lambda: OTHER.tally(),
    "report": lambda: passhat.report(TRIALS, bars=0.7),
    "report of one": lambda: passhat.report(OTHER),
    "tagged": lambda: passhat.report(TAGGED),
    "comparison": lambda: passhat.compare(ONE, OTHER),
    "ranking": lambda: passhat.rank(TRIALS),
    "plan": lambda: passhat.plan(OTHER, half_width=0.02, difference=0.1),
    "plan from nothing": lambda: passhat.plan(tasks=50),
    "profile": lambda: passhat.profile(OTHER, TRIALS),
    "verdicts": lambda: passhat.gate(TRIALS, ["pass^3 >= 0.8", "every task: pass^1 >= 0.1"]),
    "explanation": lambda: passhat.why(TRIALS),
    "gate": lambda: passhat.parse_gate("pass^3 >= 0.8"),
    "world": lambda: SimulationModel(),
    "determinism": lambda: passhat.determinism_check(lambda: 1),
}


@cache
def made(name):
    return MAKERS[name]()


def within(value, depth=0):
    """The value, and every result that hangs on it."""
    if type(value).__module__.startswith("passhat."):
        yield value
    if depth > 5:
        return
    if is_dataclass(value):
        parts = [getattr(value, one.name) for one in fields(value) if one.repr]
    elif isinstance(value, Mapping):
        parts = list(value.values())[:3]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        parts = list(value)[:3]
    else:
        parts = []
    for part in parts:
        yield from within(part, depth + 1)


@pytest.mark.parametrize("name", MAKERS)
def test_the_repr_of_a_result_is_one_bounded_line(name):
    for value in within(made(name)):
        # a report of several agents has a line for each
        for shown in repr(value).split("\n") if isinstance(value, Report) else [repr(value)]:
            assert len(shown) <= LONGEST, shown
            assert shown.isprintable(), shown


@pytest.mark.parametrize(
    "name", ["tally", "comparison", "ranking", "plan", "profile", "verdicts", "explanation"]
)
def test_the_repr_of_a_result_names_what_leads_on(name):
    result = made(name)
    see = repr(result).rpartition("; see ")[2]
    assert see
    for attribute in re.findall(r"\.(\w+)", see):
        assert hasattr(result, attribute)


def test_the_repr_of_a_comparison_tells_the_lead_its_interval_and_the_answer():
    found = made("comparison")
    lead = found.headline.this_suite
    bounds = f"[{lead.interval.low:.3f}, {lead.interval.high:.3f}]"
    assert f"mean score {lead.value:.3f} {bounds} on these tasks (better)" in repr(found)


def test_the_repr_of_a_tally_adds_up():
    tally = made("tally")
    counts = [int(n) for n in re.findall(r"(\d+) (?:passed|failed|errored)", repr(tally))]
    assert sum(counts) == tally.trials == 320


def test_the_repr_of_a_table_of_tasks_counts_its_labels():
    table = made("report").systems[0].tasks
    inside = re.search(r"\((.*?)\)", repr(table)).group(1)
    assert sum(int(n) for n in re.findall(r"\d+", inside)) == len(table) == 40


def test_the_repr_of_a_report_tells_every_agent_on_a_line():
    report = made("report")
    assert len(repr(report).splitlines()) == 1 + len(report.systems)
