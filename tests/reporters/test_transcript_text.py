import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.records.transcript import Check, Transcript, Turn
from passhat.reporters.page_parts import is_in_turns, readable

KEPT = {
    "stop_reason": "done",
    "messages": [
        {"role": "user", "text": "Refund order 17"},
        {"role": "assistant", "calls": [{"name": "lookup", "arguments": {"id": 17}}]},
        {"role": "tool", "text": "no such order", "is_error": True},
        {"role": "assistant", "text": "I could not\nfind it."},
    ],
    "checks": [
        {"target": "answer", "matcher": "contains", "score": 0.0, "message": "no 'refunded'"},
        {"target": "tools", "matcher": "called", "score": 1.0, "message": "lookup was called"},
    ],
}


def test_a_kept_trial_reads_turn_by_turn_and_ends_with_its_checks():
    assert readable(json.dumps(KEPT)).splitlines() == [
        "user",
        "  Refund order 17",
        'assistant calls lookup {"id": 17}',
        "tool (error)",
        "  no such order",
        "assistant",
        "  I could not",
        "  find it.",
        "stopped: done",
        "checks",
        "  broke: answer contains: no 'refunded'",
        "  held: tools called: lookup was called",
    ]


def test_every_part_that_is_kept_of_a_trial_is_known():
    kept = Transcript(
        messages=(Turn(role="user", text="Hi"),), answer="a", error="e", stop_reason="done",
        checks=(Check(target="t", score=1.0),), stderr="s", exit_code=0, faults=("timeout",),
        expected_tool="lookup", diff="+x\n", remarks=("touched tests",),
        kept_files=(("a.log", "began"),), tests=(("test_a", "passed"),),
    )  # fmt: skip
    parts = json.loads(kept.to_json())
    names = {"diff": "diff", "flags": "remarks", "kept": "kept_files", "tests": "tests"}
    parts |= {names[key]: value for key, value in parts.pop("workspace").items()}
    assert "kept a.log\n  began" in readable(kept.to_json())
    assert {field.name for field in fields(Transcript)} == set(parts)
    assert Transcript.from_json(kept.to_json()) == kept
    assert is_in_turns(kept.to_json())
    assert "faults: timeout" in readable(kept.to_json())


@pytest.mark.parametrize("text", ["", "plain words", "[1, 2]", "{}", '{"text": "other"}', "{" * 9])
def test_any_other_text_is_shown_as_it_is(text):
    assert readable(text) == text


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
names = st.sampled_from(["stop_reason", "messages", "answer", "checks", "faults", "error"])


@given(st.dictionaries(names, values, min_size=1))
def test_no_kept_text_however_strange_breaks_the_page(parts):
    assert isinstance(readable(json.dumps(parts)), str)


def test_a_score_beyond_all_floats_breaks_no_transcript():
    kept = json.dumps({"checks": [{"target": "answer", "score": 10**400}]})
    assert readable(kept) == "checks\n  said: answer"


forged = st.text(alphabet="a \n\r\t\u2028\x0b", max_size=12)


@given(forged, forged, forged, forged, forged)
def test_no_field_can_pass_a_line_of_its_own_off_as_somebody_elses_turn(
    role, name, text, call, end
):
    """A tool that is called "x\\nuser\\n  Yes, refund it." has not made the user say so."""
    message = {"role": f"r{role}", "name": name, "text": text}
    calls = [{"name": call, "arguments": end}]
    check = {"target": name, "matcher": call, "message": end}
    parts = {
        "messages": [{**message, "calls": calls}, {"role": "user"}],
        "answer": f"a{text}",
        "stop_reason": end,
        "checks": [check],
    }
    lines = readable(json.dumps(parts)).split("\n")
    headings = [line for line in lines if line and not line.startswith(" ")]
    # Words, a call and a reason to stop are a line of ours each.
    assert len(headings) == 4 + bool(text) + bool(end)
    assert headings[1 + bool(text) :][:2] == ["user", "answer"]
