import json

import numpy as np
import pytest

from passhat.records.redaction import Redactor
from passhat.records.secrets import SHAPES, clean_text, shapes_near
from passhat.records.transcript import CleanTexts

NEEDLES = sorted({needle for shape in SHAPES for needle in shape.needles})
WORDS = "The agent read réponse 42 from https:// and wrote a path, basic _ and task-7; "


def spread(needle: str, length: int, place: float) -> str:
    """A text of many words with a needle somewhere in it."""
    text = (WORDS * (length // len(WORDS) + 1))[:length]
    cut = round(place * length)
    return text[:cut] + needle + text[cut:]


@pytest.mark.parametrize("length", [0, 499, 500, 5_000])
def test_a_text_of_any_length_is_near_the_shapes_whose_needles_it_holds(length):
    assert np.__name__ == "numpy"  # long texts are searched another way where it is loaded
    for number, needle in enumerate([*NEEDLES, ""]):
        text = spread(needle, length, (0.0, 0.37, 1.0)[number % 3])
        expected = tuple(shape for shape in SHAPES if shape.may_be_in(text))
        assert shapes_near(text) == expected, needle


@pytest.mark.parametrize("before", range(7))
def test_a_key_is_found_where_one_pass_ends_and_the_next_begins(before):
    text = "." * ((1 << 20) - before) + "gsk_" + "." * 3_000
    assert "a Groq key" in {shape.name for shape in shapes_near(text)}
    assert len(shapes_near(text)) <= 2


def test_half_a_character_hides_no_key():
    text = WORDS * 20 + "\udc80ghp_0123456789abcdefghij01\udc80"
    assert "a GitHub token" in {shape.name for shape in shapes_near(text)}


@pytest.mark.parametrize("space", [" ", "\t", "   ", "\r\n ", r"\t", r"\n"])
@pytest.mark.parametrize("scheme", ["Bearer", "authorization: basic", "AUTHORIZATION: BASIC"])
def test_a_token_is_found_behind_any_white_space(scheme, space):
    text = f"{scheme}{space}QWxhZGRpbjpvcGVuc2VzYW1l"
    assert Redactor({}).clean(f"curl -H '{text}' x") == "curl -H '[redacted]' x"


@pytest.mark.parametrize("hidden", ["", "\\", "\\\\", "/", "\n"])
def test_a_kept_text_is_cleaned_as_each_of_its_strings_by_itself(hidden):
    """The JSON text is searched once, its strings only for the shapes that are near it."""
    keys = ["ghp_0123456789abcdefghij0123456789abcdef", "sk-ant-api03-0123456789abcdef"]
    named = [f'{{"db_token": "a1B2c3D4e5F6"{hidden}}}', f'x{hidden}"api_key\\": \\"a1B2c3D4e5F6\\"']
    for said in (*keys, *named, json.dumps(named), json.dumps(json.dumps(named))):
        turns = ["no key here", f"before {hidden}{said} after", "and ghp_0123456789abcdefghij01"]
        kept = json.dumps({"messages": turns, "answer": said}, ensure_ascii=False)
        cleaned = json.loads(CleanTexts({("a", "b", 0): kept})["a", "b", 0])
        assert cleaned == {"messages": [*map(clean_text, turns)], "answer": clean_text(said)}
