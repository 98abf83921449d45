"""Calls and their answers are paired by id, then by tool, then in order."""

from hypothesis import given
from hypothesis import strategies as st

from passhat.records.transcript import Call, Transcript, Turn, answered_calls


def said(*messages):
    return Transcript(messages=messages)


def answers(transcript):
    return [call.answer and call.answer.text for call in answered_calls(transcript)]


@given(st.permutations(range(5)))
def test_parallel_calls_get_the_answer_of_their_id_in_whatever_order_answers_come(order):
    calls = tuple(Call(name="add", id=str(i)) for i in range(5))
    results = [Turn(role="tool", text=f"answer {i}", call_id=str(i)) for i in order]
    assert answers(said(Turn(role="assistant", calls=calls), *results)) == [
        f"answer {i}" for i in range(5)
    ]


def test_without_ids_an_answer_belongs_to_the_first_open_call_of_its_tool():
    calls = (Call(name="find"), Call(name="book"), Call(name="find"))
    results = [
        Turn(role="tool", name="book", text="booked"),
        Turn(role="tool", name="find", text="one"),
        Turn(role="tool", name="find", text="two"),
    ]
    assert answers(said(Turn(role="assistant", calls=calls), *results)) == ["one", "booked", "two"]


def test_without_ids_and_names_answers_come_in_the_order_of_the_calls():
    calls = (Call(name="find"), Call(name="book"))
    results = [Turn(role="tool", text="first"), Turn(role="function", text="second")]
    assert answers(said(Turn(role="assistant", calls=calls), *results)) == ["first", "second"]


def test_a_call_that_nobody_answers_has_no_answer_and_an_answer_without_a_call_is_left_out():
    stray = Turn(role="tool", text="stray")
    asked = Turn(role="assistant", calls=(Call(name="find"),))
    assert answers(said(stray, asked)) == [None]


def test_a_call_says_where_it_was_made_and_answered():
    found = answered_calls(
        said(
            Turn(role="user", text="Hi"),
            Turn(role="assistant", calls=(Call(name="find", arguments="{}"),)),
            Turn(role="tool", text="here"),
        )
    )
    assert [(call.said_in, call.answered_in) for call in found] == [(1, 2)]
