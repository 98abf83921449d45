"""Messages as providers and frameworks write them, all into the same turns."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.ingest.transcripts import asked_and_answered, transcript_of, turns_of
from passhat.records.transcript import Call, Turn

ASKED = Turn(role="user", text="Where is order 17?")
CALLED = Turn(role="assistant", calls=(Call(name="find", arguments='{"id":17}'),))
FOUND = Turn(role="tool", text="lost")
TOLD = Turn(role="assistant", text="It is lost.")

USER = {"role": "user", "content": "Where is order 17?"}
FINAL = {"role": "assistant", "content": "It is lost."}
DIALECTS = {
    "OpenAI chat": [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "find", "arguments": '{"id":17}'}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "lost"},
        FINAL,
    ],
    "OpenAI function_call": [
        USER,
        {"role": "assistant", "function_call": {"name": "find", "arguments": '{"id":17}'}},
        {"role": "tool", "content": "lost"},
        FINAL,
    ],
    "OpenAI Responses": [
        USER,
        {"type": "function_call", "name": "find", "arguments": '{"id":17}', "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "lost"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It is lost."}]},
    ],
    "Anthropic": [
        {"role": "user", "content": [{"type": "text", "text": "Where is order 17?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "find", "input": {"id": 17}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "lost"}],
        },
        FINAL,
    ],
    "Inspect": [
        USER,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": "find", "arguments": {"id": 17}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "lost"},
        FINAL,
    ],
    "OpenTelemetry": [
        {"role": "user", "parts": [{"type": "text", "content": "Where is order 17?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "1", "name": "find", "arguments": {"id": 17}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": "lost"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "It is lost."}]},
    ],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_tells_the_same_conversation(dialect):
    assert turns_of(DIALECTS[dialect]) == (ASKED, CALLED, FOUND, TOLD)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_json_text_of_messages_is_read_as_the_messages(dialect):
    text = msgspec.json.encode(DIALECTS[dialect]).decode()
    assert transcript_of(text) == transcript_of(DIALECTS[dialect])


def test_thoughts_errors_and_pictures_are_marked_as_what_they_are():
    turns = turns_of(
        [
            {"role": "assistant", "reasoning_content": "hm", "content": "Yes."},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
            {"role": "tool", "name": "find", "content": "", "error": {"message": "no network"}},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]},
        ]
    )
    assert [turn.text for turn in turns] == [
        "(thinking) hm\nYes.",
        "(thinking) hm",
        "no network",
        "[image_url]",
    ]
    assert turns[2] == Turn(role="tool", name="find", text="no network", is_error=True)


@pytest.mark.parametrize("words", ["plain", "[not json", '{"score": 1}', "[1, 2]"])
def test_what_is_no_message_is_kept_as_words(words):
    assert transcript_of(words).answer.replace(" ", "") == words.replace(" ", "")
    assert transcript_of(words).messages == ()


def test_a_question_and_an_answer_become_two_turns():
    assert asked_and_answered("Hi", {"text": "Bye"}) == (
        Turn(role="user", text="Hi"),
        Turn(role="assistant", text='{"text":"Bye"}'),
    )
    assert asked_and_answered(None, None) == ()


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "parts", "type", "tool_calls", "function", "error"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(anything, max_size=4))
def test_no_messages_however_strange_break_the_reading(messages):
    for turn in turns_of(messages):
        assert isinstance(turn.role, str)
        assert isinstance(turn.text, str)
    transcript_of(messages)
