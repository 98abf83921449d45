"""What was said in a trial, cut where it is too long, in the text that is kept."""

import json

from hypothesis import given
from hypothesis import strategies as st

from passhat.records.transcript import CUT, Call, Check, Transcript, Turn, cut_text

words = st.text(max_size=60)
turns = st.builds(
    Turn,
    role=st.sampled_from(["user", "assistant", "tool"]),
    text=words,
    calls=st.lists(st.builds(Call, name=words, arguments=words), max_size=3).map(tuple),
)
transcripts = st.builds(
    Transcript,
    messages=st.lists(turns, max_size=8).map(tuple),
    answer=words,
    error=words,
    checks=st.lists(st.builds(Check, target=words, message=words), max_size=3).map(tuple),
)


def test_the_kept_text_has_the_parts_of_a_trial_that_passhat_ran():
    said = Transcript(
        messages=(
            Turn(role="user", text="Refund 17"),
            Turn(role="assistant", calls=(Call(name="find", arguments='{"id": 17}'),)),
            Turn(role="tool", name="find", text="no such order", is_error=True),
        ),
        stop_reason="done",
        checks=(Check(target="answer", score=0.0, message="no refund"),),
    )
    assert json.loads(said.to_json()) == {
        "messages": [
            {"role": "user", "text": "Refund 17"},
            {"role": "assistant", "calls": [{"name": "find", "arguments": '{"id": 17}'}]},
            {"role": "tool", "name": "find", "text": "no such order", "is_error": True},
        ],
        "stop_reason": "done",
        "checks": [{"target": "answer", "score": 0.0, "message": "no refund"}],
    }


def test_a_trial_in_which_nobody_spoke_is_no_transcript():
    assert not Transcript(stop_reason="done", checks=(Check(target="tests", score=1.0),))
    assert Transcript(answer="42")
    assert Transcript(error="Traceback ...")


@given(transcripts, st.integers(1, 400))
def test_a_cut_transcript_is_bounded_and_says_that_it_was_cut(said, limit):
    cut = said.cut(limit)
    if cut is said:
        assert len(said.to_json()) < 4_000
        return
    told = cut.to_json()
    whole = {**json.loads(said.to_json())}
    assert json.loads(told) == whole or CUT in told
    spoken = sum(len(turn.text.partition(CUT)[0]) for turn in cut.messages)
    assert spoken <= limit


def test_a_cut_names_how_many_messages_follow():
    long = Transcript(messages=tuple(Turn(role="user", text="x" * 100) for _ in range(50)))
    cut = long.cut(1_000)
    assert cut.messages[-1].text == f"{CUT}41 more messages]"
    assert len(cut.messages) == 10


@given(words, st.integers(0, 80))
def test_a_text_is_cut_only_where_it_is_longer_than_the_limit(text, limit):
    cut = cut_text(text, limit)
    assert (cut == text) == (len(text) <= limit)
    assert text.startswith(cut.partition(f" {CUT}")[0])
