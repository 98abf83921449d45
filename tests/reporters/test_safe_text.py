import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passhat.reporters.formatting import (
    display_width,
    pad,
    safe_lines,
    safe_text,
    shorten,
    shorten_apart,
    wrap,
)

any_text = st.text(st.characters(codec=None), max_size=80)

ATTACKS = {
    "escape": "\x1b[2J\x1b[1;1H",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "C1 CSI": "\x9b2J",
    "NUL": "a\x00b",
    "backspace": "ok\x08\x08no",
    "return": "passed\rfailed",
    "newline": "two\nlines",
    "override": "invoice\u202efdp.exe",
    "isolate": "\u2066x\u2069",
    "line separator": "a\u2028b",
    "surrogate": "\ud800",
    "zero width": "pay\u200bpal",
    "tag": "\U000e0041",
    "BOM": "\ufeffx",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_could_steer_a_terminal_is_written_out(attack):
    shown = safe_text(attack)
    assert "\\" in shown
    assert all(unicodedata.category(c)[0] != "C" for c in shown)


@given(any_text)
def test_no_control_or_format_character_survives(text):
    for character in safe_text(text):
        assert unicodedata.category(character) not in ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")
        assert unicodedata.category(character) != "Cf" or character in "\u200c\u200d"


@given(any_text)
def test_safe_text_is_left_as_it_is(text):
    assert safe_text(safe_text(text)) == safe_text(text)


@pytest.mark.parametrize("name", ["refund-3", "naïve café", "東京の天気", "👩‍🚀 launch", "हिन्दी"])
def test_names_that_people_use_are_shown_as_they_are(name):
    assert safe_text(name) == name


@given(any_text, st.integers(1, 40))
def test_shortened_text_fits_and_says_where_it_was_cut(text, width):
    shown = shorten(text, width)
    assert display_width(shown) <= width
    assert shown == safe_text(text) or shown.endswith("…")


@given(any_text, st.integers(1, 40))
def test_padded_text_is_exactly_as_wide_as_asked(text, width):
    assert display_width(pad(text, width)) == width


def test_wide_characters_count_twice():
    assert shorten("東京の天気", 6) == "東京…"


@given(st.lists(st.text("abc %", min_size=1, max_size=12)), st.integers(12, 40))
def test_wrapped_lines_fit_where_the_words_do_and_lose_no_word(words, width):
    text = " ".join(words)
    lines = wrap(text, width)
    assert " ".join(lines).split() == text.split()
    for line in lines:
        assert display_width(line) <= width or " " not in line.replace(" %", "%").strip()


def test_a_number_and_its_percent_sign_stay_on_one_line():
    assert wrap("it is 42% now", 8) == ["it is", "42% now"]


def test_a_message_keeps_its_lines_and_nothing_else():
    assert safe_lines("a\x1b[31m\nb") == "a\\x1b[31m\nb"


@given(st.lists(any_text, max_size=6), st.integers(2, 40))
@example(["\x88", "\U000125b8"], 2)
def test_cut_names_fit_and_short_ones_stay_whole(names, width):
    found = shorten_apart(names, width)
    assert len(found) == len(names)
    assert all(display_width(one) <= width for one in found)
    whole = [safe_text(name) for name in names]
    assert all(a == b for a, b in zip(found, whole, strict=True) if display_width(b) <= width)


@pytest.mark.parametrize(
    "names",
    [
        ["claude-sonnet-4", "claude-sonnet-4-5"],
        ["agent-with-prompt-one-of-ten", "agent-with-prompt-two-of-ten"],
        ["a-very-long-name-of-an-agent", "b-very-long-name-of-an-agent"],
    ],
)
def test_names_that_differ_anywhere_stay_apart_when_cut(names):
    for width in (12, 13, 14):
        assert len(set(shorten_apart(names, width))) == 2, width
