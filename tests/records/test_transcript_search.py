"""A text is found wherever it was said, and no key is shown on the way."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.records.transcript import AROUND, Call, Check, TextSearch, Transcript, Turn

KEY = "sk-ant-api03-0123456789abcdef"

WHOLE = Transcript(
    messages=(
        Turn(role="user", text="Where is my order?"),
        Turn(role="assistant", calls=(Call(name="find_order", arguments='{"id": "A-17"}'),)),
        Turn(role="tool", name="find_order", text="shipped on Monday"),
    ),
    answer="It was shipped.",
    error="connection reset",
    checks=(Check(target="answer", message="expected Tuesday"),),
    stderr="a warning",
)


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        ("my order", "user"),
        ('"id": "a-17"', "call of find_order"),
        ("find_order", "call of find_order"),
        ("ON MONDAY", "tool find_order"),
        ("was shipped", "answer"),
        ("reset", "error"),
        ("tuesday", "check answer"),
        ("warning", "standard error"),
    ],
)
def test_a_text_is_found_in_every_part_of_a_transcript(wanted, where):
    found = TextSearch(wanted).find(WHOLE.to_json())
    assert found is not None
    assert found.where == where


@pytest.mark.parametrize("kept", ["plain words, no JSON", '["a", "list"]', "{broken"])
def test_texts_that_are_no_transcript_are_searched_as_they_are(kept):
    assert TextSearch(kept[:6]).find(kept) is not None
    assert TextSearch("something else").find(kept) is None


def test_letters_that_json_wrote_as_escapes_are_found():
    kept = json.dumps({"answer": "un café, s'il vous plaît"})
    assert "\\u" in kept
    assert TextSearch("CAFÉ").find(kept) is not None


@given(
    before=st.text(
        st.characters(codec="utf-8", exclude_categories=["Cs", "Lu", "Lt"]), max_size=90
    ),
    said=st.text(st.sampled_from('abc "\\\n\tüß{}'), min_size=1, max_size=20).filter(str.strip),
)
def test_whatever_was_said_is_found(before, said):
    kept = Transcript(messages=(Turn(role="user", text=before + said),)).to_json()
    assert TextSearch(said).find(kept) is not None


def test_a_key_is_neither_shown_nor_confirmed_by_a_search():
    kept = Transcript(answer=f"the key is {KEY}, keep it").to_json()
    assert TextSearch(KEY).find(kept) is None
    found = TextSearch("the key").find(kept)
    assert found is not None
    assert KEY not in found.text
    assert "[redacted]" in found.text


def test_an_excerpt_is_one_line_of_bounded_length():
    text = "word\n" * 1000 + "needle" + "\nword" * 1000
    found = TextSearch("needle").find(Transcript(answer=text).to_json())
    assert found is not None
    assert "\n" not in found.text
    assert len(found.text) <= 2 * AROUND + len("needle") + 2
    assert found.text.startswith("…")
    assert found.text.endswith("…")


@pytest.mark.parametrize("wanted", ["", "  "])
def test_looking_for_nothing_is_refused(wanted):
    with pytest.raises(ArgumentError, match="some words"):
        TextSearch(wanted)
