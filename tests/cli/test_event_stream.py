"""Every event of a run has its line in NDJSON."""

import json
from dataclasses import fields
from typing import get_args

import pytest

from passhat.cli.run_output import EventStream, event_types
from passhat.runner import schedule


@pytest.mark.parametrize("event", get_args(schedule.Event), ids=lambda event: event.__name__)
def test_every_event_of_the_runner_has_a_line_with_its_fields(event):
    (line,) = [one for one in event_types() if one.__name__ == event.__name__]
    written = set(line.__annotations__) - {"event", "time", "schema"}
    own = {field.name for field in fields(event)}
    if not own & {"trial", "ticket"}:  # these lines have the fields of the trial instead
        assert written == own


def test_a_pause_and_a_stop_are_written(tmp_path):
    with EventStream([str(tmp_path / "events.ndjson")]) as stream:
        stream(schedule.Paused(wait=2.0))
        stream(schedule.StopRequested(signal=2, grace=1.5))
    lines = map(json.loads, (tmp_path / "events.ndjson").read_text().splitlines())
    assert [(line["event"], line.get("wait"), line.get("signal")) for line in lines] == [
        ("paused", 2.0, None),
        ("stopping", None, 2),
    ]


@pytest.mark.parametrize("rest", [(), ("--until-settled",)])
def test_events_say_whether_gates_could_end_the_run(suite, call, rest):
    suite(
        "name: small\n"
        "defaults: {model: scripted, runs: 9, expect: [{contains: x}]}\n"
        "agents: [{name: a, prompt: hi, script: [{answer: x}, {answer: y}]}]\n"
    )
    call("run", "--require", "pass^1 >= 0.9", *rest, "-o", "events.ndjson")
    judged = call("gate", "events.ndjson", "--require", "pass^1 >= 0.9", "--json").stdout
    (verdict,) = json.loads(judged)["verdicts"]
    assert (verdict["alpha"] is None) == bool(rest)
