"""Two runs beside each other on a page: every card once on each side, divided where they meet."""

import json

import pytest

from passhat import Trials, render
from passhat.analysis.explaining.run_diff import diff_runs
from passhat.errors import InputError
from passhat.records.transcript import Call, Transcript, Turn
from passhat.reporters.answers.diff import diff_values, run_views, stretches


def said(*tools):
    turns = [Turn(role="user", text="Help me")]
    for i, tool in enumerate(tools):
        name, _, value = tool.partition("=")
        call = Call(name=name, arguments=json.dumps({"x": value}), id=str(i))
        turns += [
            Turn(role="assistant", text=f"I call {tool}", calls=(call,)),
            Turn(role="tool", text="ok", call_id=str(i)),
        ]
    return Transcript(messages=(*turns, Turn(role="assistant", text="Done"))).to_json()


@pytest.fixture
def pair():
    def make(*runs):
        trials = Trials.from_columns(task=["a"] * len(runs), passed=[ok for ok, *_ in runs])
        texts = {("system", "a", i): said(*tools) for i, (_, *tools) in enumerate(runs)}
        return diff_runs(trials, texts, "a", 0, 1)

    return make


def test_every_card_stands_once_and_in_order_on_its_side(pair):
    found = pair((False, "look", "cancel", "note=1"), (True, "look", "think", "note=2", "end"))
    rows = stretches(found)
    views = {view.trial: view for view in run_views(found)}
    for side, trial in (("left", 0), ("right", 1)):
        shown = [card.number for row in rows for card in getattr(row, side)]
        assert shown == [card.number for card in views[trial].cards]


def test_runs_meet_at_calls_that_both_made_and_the_banner_stands_before_they_part(pair):
    found = pair((False, "look", "cancel", "note=1"), (True, "look", "think", "note=2"))
    rows = stretches(found)
    assert [row.foot for row in rows] == ["same call", "other arguments", ""]
    assert [bool(row.banner) for row in rows] == [False, True, False]
    assert rows[1].banner == "After 1 identical call: only the first calls cancel."
    differs = {card.tool: card.differs for row in rows for card in row.left if card.kind == "call"}
    assert differs == {"look": "", "cancel": "only here", "note": "other x"}


def test_runs_that_part_after_their_last_common_call_part_in_the_last_stretch(pair):
    rows = stretches(pair((False, "look", "cancel"), (True, "look")))
    assert [bool(row.banner) for row in rows] == [False, True]


def test_equal_runs_have_no_banner(pair):
    assert not any(row.banner for row in stretches(pair((False, "look"), (True, "look"))))


def test_runs_without_any_call_stand_in_one_stretch(pair):
    (row,) = stretches(pair((False,), (True,)))
    assert [card.kind for card in row.left] == ["user", "agent"]
    assert row.banner == ""


def test_passing_runs_come_first_and_each_failing_one_says_where_it_parts(pair):
    found = pair((False, "look", "cancel"), (True, "look"), (False, "look"), (True, "look"))
    views = run_views(found)
    assert [(view.trial, view.parting) for view in views] == [
        *((1, None), (3, None), (0, 1), (2, None))
    ]
    beside = [
        [None if one is None else one.trial for one in pair]
        for _, *pair in diff_values(found)["neighbours"]
    ]
    assert beside == [[None, 3], [1, 0], [3, 2], [0, None]]
    assert [view.number for view in views] == ["#2", "#4", "#1", "#3"]


@pytest.fixture
def broken():
    """Two runs of a task, the first ended by an error whose text steers the terminal."""
    error = "ConnectionError:\nrefused \x1b[31mred <b>bold</b>"
    trials = Trials.from_columns(
        task=["a", "a"], outcome=["errored", "passed"], error=[error, None]
    )
    return trials, {("system", "a", i): said("look") for i in range(2)}


def test_the_error_that_ended_a_run_is_shown_in_every_format(broken):
    found = diff_runs(*broken, "a", 0, 1)
    for kind in ("text", "markdown", "html", "json"):
        shown = str(render(found, kind))
        assert "ConnectionError" in shown, kind
        assert "\x1b" not in shown
        assert kind != "html" or "<b>bold" not in shown
    left, right = (json.loads(str(render(found, "json")))[side] for side in ("left", "right"))
    assert (left["error"], right["error"]) == (broken[0].error.texts()[0], "")


def test_a_run_without_a_transcript_is_refused_with_the_error_that_ended_it(broken):
    trials, texts = broken
    del texts["system", "a", 0]
    with pytest.raises(InputError, match=r"no transcript to compare; it ended .* ConnectionError"):
        diff_runs(trials, texts, "a", 0, 1)
