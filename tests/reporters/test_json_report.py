import csv
import io
import json

import jsonschema
import numpy as np
import pytest

from passhat import render_html, render_json
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.cli.setup import schema_text
from passhat.records import Trials
from passhat.records.labels import Label
from passhat.reporters.rendering import render

SCHEMA = json.loads(schema_text("report"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def _tables() -> dict[str, Trials]:
    return {
        "everything": simulate(
            tasks=5, runs=6, rate=[0.6, 0.9], world=SimulationModel(seeds=5, error_rate=0.1), seed=1
        ),
        "partial": simulate(tasks=4, runs=4, world=SimulationModel(partial=True), seed=1),
        "one run": Trials.from_columns(task=["a"], passed=[True]),
        "all errored": Trials.from_columns(task=["a", "a"], outcome=["errored"] * 2),
        "all pass": Trials.from_columns(task=["a", "a", "b", "b"], passed=[1] * 4),
        "nothing shared": Trials.from_columns(
            system=[*"aabb"], task=[*"xxyy"], passed=[1, 1, 0, 0]
        ),
        "some shared": simulate(tasks=5, runs=4, rate=[0.6, 0.9], seed=1).take(np.arange(6, 40)),
        "parts": Trials.from_columns(
            task=["a", "a", "b"],
            passed=[1, 0, 1],
            level=["task", "task", "system"],
            tags=[("x",), ("x",), ()],
            tools=[("t",), (), ()],
        ),
    }


@pytest.mark.parametrize("name", _tables())
@pytest.mark.parametrize("errors", ["fail", "exclude"])
def test_every_report_obeys_the_published_schema(name, errors):
    text = render_json(measure(_tables()[name], errors=errors, bars=0.7))
    VALIDATOR.validate(json.loads(text))


def test_counts_alone_obey_the_published_schema():
    VALIDATOR.validate(json.loads(render_json(measure([_tables()["partial"].tally()]))))


def test_the_schema_is_a_schema_and_refuses_what_is_not_a_report(report):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for spoil in (
        lambda r: r.update(schema="passhat.report/2"),
        lambda r: r["systems"][0].pop("metrics"),
        lambda r: r["systems"][0]["metrics"]["pass^1"].pop("this_suite"),
        lambda r: r["systems"][0].update(extra=1),
        lambda r: r["systems"][0]["task_table"][0].update(label="good"),
    ):
        spoiled = json.loads(render_json(report))
        spoil(spoiled)
        assert not VALIDATOR.is_valid(spoiled)


def test_the_same_input_and_seed_give_the_same_bytes(trials, report):
    assert render_json(measure(trials, bars=0.8)) == render_json(report)


def test_the_fields_that_readers_rely_on_are_there(report):
    (system,) = json.loads(render_json(report))["systems"]
    assert (system["name"], system["tasks"], system["trials"]) == ("support-bot", 12, 120)
    assert system["errors"] == system["error_policy"]["count"] > 0
    metric = system["metrics"]["pass^4"]
    assert metric["value"] == report.system().pass_hat(4).value
    for scope in ("this_suite", "tasks_like_these"):
        assert metric[scope]["low"] <= metric["value"] <= metric[scope]["high"]
    assert metric["tasks"] == 12
    assert metric["method"]
    assert system["metrics"]["reliability@4"] == metric
    assert {"pass@4", "mean_score"} <= set(system["metrics"])


def test_who_is_ahead_is_there_with_how_it_was_found(three, report):
    found = json.loads(render_json(three))["leaders"]
    assert (found["metric"], found["names"]) == ("pass^5", ["gpt", "opus"])
    values = [three.system(name).pass_hat(5).value for name in found["names"]]
    assert found["values"] == values
    assert (found["compared"], found["left_out"]) == (["gpt", "opus", "tiny"], 0)
    assert json.loads(render_json(report))["leaders"] == {
        "value": None,
        "reason": "being ahead takes two agents with a pass^5",
    }


def test_json_is_ascii_and_keeps_any_name():
    name = "名\x1b[31m\ud800"
    text = render_json(measure(Trials.from_columns(task=[name], passed=[True])))
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["systems"][0]["task_table"][0]["name"] == name


def test_a_number_of_which_labels_give_only_limits_has_no_value_in_data():
    trials = simulate(tasks=30, runs=10, rate={"agent": 0.8}, seed=1)
    passed = [one.outcome.name == "PASSED" for one in trials]
    read = [
        [Label(passed=right ^ (i % 11 == 0), chosen="random")] if i % 3 == 0 else []
        for i, right in enumerate(passed)
    ]
    columns = {name: [getattr(one, name) for one in trials] for name in ("system", "task", "trial")}
    labelled = Trials.from_columns(**columns, passed=passed, human_labels=read)
    found = judge(labelled, ["pass^3 >= 0.5", "pass@1 >= 0.5"])
    limits, rate = json.loads(render_json(found))["verdicts"]
    assert limits["method"].startswith("labels of people: limits")
    assert limits["estimate"]["value"] is None
    assert limits["estimate"]["interval"]["low"] < limits["estimate"]["interval"]["high"]
    assert rate["estimate"]["value"] == found[1].estimate.value
    rows = list(csv.DictReader(io.StringIO(render(found, "csv"))))
    assert [row["value"] == "" for row in rows] == [True, False]
    schema = json.loads(schema_text("verdicts"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(render_json(found)))
    page = render_html(judge(labelled, ["pass^3 >= 0.5"]))
    assert f"{100 * found[0].estimate.value:.1f}%" not in page
