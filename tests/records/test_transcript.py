"""What was said in a trial, cut where it is too long, in the text that is kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.records.transcript import CUT, Call, Check, Transcript, Turn, cut_text

MOST_MARKS = 18
"""Places of one cut transcript that can say so: each field of its ends, its last turn and check."""

words = st.text(max_size=60)
# Any field may be the long one: roles, names and targets come from logs as well.
calls = st.builds(Call, name=words, arguments=words, id=words)
turns = st.builds(
    Turn,
    role=words,
    name=words,
    text=words,
    call_id=words,
    calls=st.lists(calls, max_size=3).map(tuple),
)
transcripts = st.builds(
    Transcript,
    messages=st.lists(turns, max_size=8).map(tuple),
    answer=words,
    error=words,
    stop_reason=words,
    stderr=words,
    diff=st.none() | words,
    tests=st.lists(st.tuples(words, words), max_size=3).map(tuple),
    checks=st.lists(st.builds(Check, target=words, message=words, matcher=words), max_size=3).map(
        tuple
    ),
)


def shown(said):
    """Every text of a transcript, wherever it stands."""
    yield from (said.answer, said.error, said.stop_reason, said.stderr, said.diff or "")
    for test in said.tests:
        yield from test
    for turn in said.messages:
        yield from (turn.role, turn.name, turn.text, turn.call_id)
        for call in turn.calls:
            yield from (call.name, call.arguments, call.id)
    for check in said.checks:
        yield from (check.target, check.matcher, check.message)


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
def test_all_that_a_cut_transcript_shows_is_within_the_limit_but_for_its_marks(said, limit):
    cut = said.cut(limit)
    whole = sum(map(len, shown(said)))
    items = [*said.messages, *said.checks, *(call for turn in said.messages for call in turn.calls)]
    if cut is said:
        assert whole + 16 * len(items) <= limit
        return
    assert whole + 16 * len(items) > limit
    marked = [text for text in shown(cut) if CUT in text]
    assert 1 <= len(marked) <= MOST_MARKS
    assert sum(len(text.partition(CUT)[0]) for text in shown(cut)) <= limit + MOST_MARKS * 8
    assert len(cut.messages) <= limit // 16 + 1


@pytest.mark.parametrize(
    "said",
    [
        Transcript(messages=(Turn(role="r" * 10**5),)),
        Transcript(messages=(Turn(role="tool", name="n" * 10**5),)),
        Transcript(messages=(Turn(role="a", calls=(Call(name="c" * 10**5),)),)),
        Transcript(messages=(Turn(role="a", calls=(Call(name="c", arguments="a" * 10**5),)),)),
        Transcript(messages=(Turn(role="a", calls=(Call(name="c"),) * 10**4),)),
        Transcript(messages=(Turn(role="a", calls=(Call(name="c", id="i" * 10**5),)),)),
        Transcript(messages=(Turn(role="tool", call_id="i" * 10**5),)),
        Transcript(answer="yes", stop_reason="s" * 10**5),
        Transcript(answer="yes", checks=(Check(target="t" * 10**5),)),
        Transcript(answer="yes", checks=(Check(target="t", message="m"),) * 10**4),
    ],
    ids=[
        "role",
        "tool",
        "call",
        "arguments",
        "calls",
        "id",
        "answered id",
        "stop reason",
        "target",
        "checks",
    ],
)
def test_no_field_is_a_way_around_the_limit(said):
    told = said.cut(1_000).to_json()
    assert CUT in told
    assert len(told) < 4_000


def test_how_a_trial_ended_is_kept_however_much_was_said():
    said = Transcript(
        messages=(Turn(role="user", text="x" * 10**5),),
        error="RuntimeError: boom",
        checks=(Check(target="answer", score=0.0, message="no refund"),),
    )
    cut = said.cut(1_000)
    assert (cut.error, cut.checks) == (said.error, said.checks)


def test_a_cut_names_how_many_messages_follow():
    long = Transcript(messages=tuple(Turn(role="user", text="x" * 100) for _ in range(50)))
    cut = long.cut(1_000)
    assert cut.messages[-1].text == f"{CUT}41 more messages]"
    assert len(cut.messages) == 10
    assert cut.messages[-2].text.startswith("x")


@given(words, st.integers(0, 80))
def test_a_text_is_cut_only_where_it_is_longer_than_the_limit(text, limit):
    cut = cut_text(text, limit)
    assert (cut == text) == (len(text) <= limit)
    assert text.startswith(cut.partition(f" {CUT}")[0])


# What an empty role, tool or message becomes is a word of ours, so these are not kept empty.
named = st.text(min_size=1, max_size=20)
whole = st.builds(
    Transcript,
    messages=st.lists(
        st.builds(
            Turn,
            role=named,
            text=words,
            calls=st.lists(st.builds(Call, name=named, arguments=words, id=words), max_size=3).map(
                tuple
            ),
            name=words,
            is_error=st.booleans(),
            call_id=words,
        ),
        min_size=1,
        max_size=5,
    ).map(tuple),
    answer=words,
    error=words,
    stop_reason=words,
    stderr=words,
    exit_code=st.none() | st.integers(0, 255),
    faults=st.lists(words, max_size=2).map(tuple),
    diff=st.none() | words,
    tests=st.lists(st.tuples(words, words), max_size=3).map(tuple),
    kept_files=st.dictionaries(words, words, max_size=2).map(lambda files: tuple(files.items())),
    checks=st.lists(
        st.builds(Check, target=words, score=st.sampled_from([None, 0.0, 0.5, 1.0]), matcher=words),
        max_size=3,
    ).map(tuple),
)


@given(whole)
def test_what_is_kept_reads_back_as_it_was_ids_included(transcript):
    again = Transcript.from_json(transcript.to_json())
    assert again == transcript
    assert again.to_json() == transcript.to_json()


@pytest.mark.parametrize(
    "kept", ["plain words", "[1, 2]", "17", '{"foreign": 1}', "{", "[" * 10**5]
)
def test_a_text_that_is_no_transcript_is_the_answer(kept):
    assert Transcript.from_json(kept) == Transcript(answer=kept)


def test_parts_of_the_wrong_kind_are_left_out_or_written_as_json():
    kept = '{"messages": ["no object", {"calls": [{"arguments": {"a": 1}}]}], "checks": 3}'
    (turn,) = Transcript.from_json(kept).messages
    assert turn == Turn(role="unknown", calls=(Call(name="a tool", arguments='{"a": 1}'),))


def test_two_turns_that_differ_in_an_id_alone_are_equal():
    assert Call(name="add", id="1") == Call(name="add", id="2")
    assert Turn(role="tool", text="3", call_id="1") == Turn(role="tool", text="3", call_id="2")


@given(wanted=st.text(), found=st.text(), between=st.sampled_from(["", ", got ", "', got '"]))
def test_what_was_expected_and_what_was_found_are_told_apart_whatever_they_say(
    wanted, found, between
):
    wanted, found = f"{wanted}{between}{found}", f"{found}{between}{wanted}"
    check = Check(target="answer", message=f"expected to be {wanted!r}, got {found!r}")
    assert check.compared == (f"to be {wanted!r}", repr(found))
