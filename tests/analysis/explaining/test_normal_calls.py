"""Calls are compared by what they ask for, whatever way it was written down."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.explaining.runs import list_lengths, masked_text, normalized_calls
from passhat.records.transcript import Call, Transcript, Turn

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def calls_of(*arguments, answer="ok", is_error=False):
    turns = []
    for i, text in enumerate(arguments):
        turns.append(Turn(role="assistant", calls=(Call(name="f", arguments=text, id=str(i)),)))
        turns.append(Turn(role="tool", text=answer, call_id=str(i), is_error=is_error))
    return normalized_calls(Transcript(messages=tuple(turns)))


@given(st.dictionaries(st.text(max_size=4), values, max_size=4))
def test_the_order_of_arguments_and_blanks_between_them_do_not_matter(arguments):
    backwards = dict(reversed(arguments.items()))
    one, other = calls_of(json.dumps(arguments), json.dumps(backwards, indent=2))
    assert one.key == other.key


def test_what_a_model_made_up_is_masked_and_a_name_is_not():
    said = {"note": "Dear customer, I am sorry", "name": "Mia Li", "long": "x" * 61}
    (call,) = calls_of(json.dumps(said))
    assert call.arguments == {"long": "<text>", "name": "Mia Li", "note": "<text>"}


def test_a_whole_number_is_the_same_with_and_without_its_point():
    one, other = calls_of('{"amount": 250}', '{"amount": 250.0}')
    assert one.key == other.key


@pytest.mark.parametrize("text", ["not json", "[1, 2]", "", "[" * 10**5])
def test_arguments_that_are_no_object_are_one_argument_without_a_name(text):
    (call,) = calls_of(text)
    assert set(call.arguments) <= {""}


@pytest.mark.parametrize(
    "answer",
    [
        "Error: gone",
        "error - no such user",
        "Traceback (most recent call last):\n  x",
        "ValueError: no",
        "HTTP 503",
        '{"error": "no"}',
        'Exception in "f"',
        "failed",
    ],
)
def test_a_result_that_begins_like_an_error_is_one(answer):
    assert calls_of("{}", answer=answer)[0].error


@pytest.mark.parametrize("answer", ["no errors", "HTTP 200", '{"status": "ok"}', "", "12 failed"])
def test_a_result_that_does_not_is_none(answer):
    assert calls_of("{}", answer=answer)[0].worked


def test_a_flag_makes_an_error_of_any_text():
    assert calls_of("{}", answer="", is_error=True)[0].error == "error"
    assert calls_of("{}", answer="not found", is_error=True)[0].error == "not found"


def test_errors_that_differ_in_ids_numbers_and_quoted_words_are_one():
    one = masked_text('Error: flight HAT136 not available on "2024-05-20" for 3 seats')
    other = masked_text('Error: flight HAT2 not available on "2024-01-02" for 12 seats')
    assert one == other == "Error: flight <id> not available on <s> for <n> seats"


@given(st.text(max_size=400))
def test_a_masked_text_is_one_short_line(text):
    assert len(masked_text(text)) <= 120
    assert "\n" not in masked_text(text)


def test_lists_say_how_long_they_are():
    (call,) = calls_of('{"flights": [1, 2], "text": "[not a list"}')
    assert dict(list_lengths(call.arguments)) == {"flights": 2}
