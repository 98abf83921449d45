import pickle
from dataclasses import FrozenInstanceError

import pytest

from passhat import render_html, render_json, render_terminal
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports import measure as module
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.answers.report import SYSTEM


def _tagged(systems=("a", "b"), runs=4):
    columns = simulate(tasks=6, runs=runs, rate=dict.fromkeys(systems, 0.6), seed=1).to_columns()
    columns["tags"] = [
        ("even",) if int(name[-1]) % 2 == 0 else ("odd",) for name in columns["task"]
    ]
    columns["level"] = ["task" if name.endswith("1") else "system" for name in columns["task"]]
    return Trials.from_columns(columns)


def test_a_part_is_measured_in_full_but_for_its_curves():
    trials = _tagged(systems=("a",))
    system = measure(trials, bars=0.5).system()
    parts = [(system.tags[name], trials.where(tag=name)) for name in ("even", "odd")]
    parts += [(system.levels[name], trials.where(level=name)) for name in ("task", "system")]
    for part, rows in parts:
        alone = SYSTEM(measure(rows, bars=0.5).system())
        alone["decay"] |= {"pass^k": [], "pass@k": [], "model": []}
        alone |= {"levels": {}, "tags": {}}
        assert SYSTEM(part) == alone


@pytest.fixture
def measured(monkeypatch):
    """The names of the systems and parts that were measured, as many times as they were."""
    names = []
    once = module._measure_system

    def counted(subject, options, *, parts, **more):
        names.append((subject.tally.system, parts))
        return once(subject, options, parts=parts, **more)

    monkeypatch.setattr(module, "_measure_system", counted)
    return names


def test_parts_are_measured_when_they_are_looked_at_and_never_twice(measured):
    report = measure(_tagged())
    assert list(report.system("a").tags) == ["even", "odd"]
    render_terminal(report)  # a screen about several systems shows no parts
    assert measured == [("a", True), ("b", True)]
    texts = {render_json(report) for _ in range(2)}
    assert len(texts) == 1
    assert measured[2:] == [("a", False)] * 4 + [("b", False)] * 4


def test_a_report_that_was_sent_elsewhere_says_the_same():
    report = measure(_tagged(), bars=0.5)
    again = pickle.loads(pickle.dumps(report))
    assert render_json(again) == render_json(report)
    assert render_html(again) == render_html(report)
    with pytest.raises(FrozenInstanceError, match="systems"):
        again.systems = ()
