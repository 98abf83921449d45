import pytest

from passhat import render_terminal
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.stats.task_labels import label_tasks

TASKS = ["lost"] * 3 + ["a"] * 4 + ["b"] * 5 + ["c"] * 2
OUTCOMES = ["errored"] * 3 + ["passed", "failed", "errored", "passed"]
OUTCOMES += ["failed", "failed", "errored", "errored", "passed", "failed", "passed"]
SCORES = [None] * 3 + [1.0, 0.4, None, 0.9] + [0.0, 0.3, None, None, 1.0, 0.2, 1.0]
TRIALS = Trials.from_columns(task=TASKS, outcome=OUTCOMES, score=SCORES)


@pytest.mark.parametrize("errors", ["fail", "exclude"])
def test_a_row_says_of_its_task_what_its_trials_say(errors):
    table = measure(TRIALS, errors=errors).system().tasks
    assert list(table.names) == (["lost"] if errors == "fail" else []) + ["a", "b", "c"]
    for row in table:
        ended = [(o, s) for t, o, s in zip(TASKS, OUTCOMES, SCORES, strict=True) if t == row.name]
        counted = [(o, s) for o, s in ended if errors == "fail" or o != "errored"]
        outcomes = [o for o, _ in ended]
        assert (row.passed, row.failed, row.errored) == tuple(
            outcomes.count(word) for word in ("passed", "failed", "errored")
        )
        assert row.runs == len(counted)
        assert row.rate.value == row.passed / len(counted)
        assert row.mean_score == pytest.approx(sum(s or 0 for _, s in counted) / len(counted))
        assert row.sequence == "".join(word[0].upper() for word in outcomes)


def test_a_label_is_given_with_its_own_chance_and_none_with_the_likeliest():
    counts = {"solid": (90, 90), "flaky": (60, 30), "broken": (60, 0), "open": (2, 2)}
    rows = [(name, run < c) for name, (n, c) in counts.items() for run in range(n)]
    task, passed = zip(*rows, strict=True)
    table = measure(Trials.from_columns(task=task, passed=passed)).system().tasks
    found = label_tasks(*zip(*counts.values(), strict=True))
    for i, name in enumerate(("solid", "flaky", "broken")):
        row = table.named(name)
        assert row.label == name
        assert row.chance == getattr(found, name)[i]
        assert row.chance >= 0.9
    likeliest = max(found.solid[3], found.flaky[3], found.broken[3])
    assert (table.named("open").label, table.named("open").chance) == ("undecided", likeliest)


def test_tasks_whose_interval_is_wider_than_a_width_are_listed_widest_first():
    table = measure(TRIALS).system().tasks
    widths = {row.name: row.rate.interval.high - row.rate.interval.low for row in table}
    for width in (0, 0.5, *widths.values(), 1):
        listed = [row.name for row in table.wider_than(width)]
        assert set(listed) == {name for name, own in widths.items() if own > width}
        assert [widths[name] for name in listed] == sorted(map(widths.get, listed), reverse=True)
    with pytest.raises(ArgumentError, match=r"width must lie .*got 40"):
        table.wider_than(40)


def test_the_screen_lists_the_tasks_that_are_wider_than_asked_for():
    report = measure(TRIALS)
    wide = [row.name for row in report.system().tasks.wider_than(0.3)]
    for verbose in (False, True):
        said = render_terminal(report, wider_than=0.3, verbose=verbose)
        assert f"{len(wide)} of {len(report.system().tasks)} tasks" in said
        assert [
            line.split()[0] for line in said.splitlines() if "/" in line and "[" in line
        ] == wide
    assert "No task has an interval wider than 100 points." in render_terminal(report, wider_than=1)
