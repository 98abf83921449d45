"""Cards: each message, call and result on its own, results folded, nothing lost, nothing unsafe."""

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.records.transcript import Call, Check, Transcript, Turn
from passhat.reporters.page_parts import (
    check_cards,
    read_markdown,
    transcript_cards,
    transcript_page,
)

words = st.text(max_size=30)
turns = st.builds(
    Turn,
    role=st.sampled_from(["user", "assistant", "tool", "system", "odd"]),
    text=words,
    calls=st.lists(st.builds(Call, name=words, arguments=words, id=words), max_size=2).map(tuple),
    name=words,
    is_error=st.booleans(),
    call_id=words,
)


def cards(*messages, **ends):
    return transcript_cards(Transcript(messages=messages, **ends))


@given(st.lists(turns, max_size=6))
def test_every_call_and_every_message_has_its_card(messages):
    found = cards(*messages)
    assert sum(card.kind == "call" for card in found) == sum(len(turn.calls) for turn in messages)
    assert {card.number for card in found} == set(range(1, len(messages) + 1))
    places = [card.place for card in found if card.kind == "call"]
    assert places == list(range(len(places)))


@given(st.lists(turns, max_size=6))
def test_no_card_holds_a_character_that_steers(messages):
    for card in cards(*messages):
        texts = [card.text, card.title, card.tool, card.body, *(t for f in card.fields for t in f)]
        for text in texts:
            assert all(c.isprintable() or c in "\n\t" for c in text)


def test_a_result_stands_under_the_name_of_its_call_and_json_is_pretty_and_folded():
    answer = {"status": "ok", "items": [1, 2], "id": "W1"}
    call = Call(name="find", arguments='{"order": "W1", "deep": {"a": 1}}', id="7")
    made, came = cards(
        Turn(role="assistant", calls=(call,)),
        Turn(role="tool", text=json.dumps(answer), call_id="7"),
    )
    assert made.fields == (("order", "W1"), ("deep", '{\n  "a": 1\n}'))
    assert (came.title, came.tool, came.place) == ("Result of", "find", 0)
    assert came.fields == (("status", "ok"), ("id", "W1"))
    assert json.loads(came.body) == answer
    assert came.size.startswith("JSON, 3 fields, ")
    assert came.text == ""


@pytest.mark.parametrize(("length", "folded"), [(400, False), (401, True)])
def test_a_long_result_is_folded_and_a_short_one_is_not(length, folded):
    (card,) = cards(Turn(role="tool", text="x" * length))
    assert bool(card.body) is folded
    assert (card.text or card.body) == "x" * length


def test_words_of_a_user_are_never_folded_and_those_of_a_system_are():
    user, system = cards(Turn(role="user", text="x" * 5000), Turn(role="system", text="y" * 5000))
    assert (user.text, user.body) == ("x" * 5000, "")
    assert (system.text, len(system.body)) == ("", 5000)


def test_an_answer_and_an_error_that_no_message_holds_come_last():
    found = cards(Turn(role="user", text="Hi"), answer="42", error="Traceback")
    assert [(card.title, card.is_error) for card in found[1:]] == [
        ("Answer", False),
        ("Error", True),
    ]


def test_failed_checks_come_first():
    held, broke = Check(target="a", score=1.0), Check(target="b", matcher="contains", score=0.0)
    assert [(card.name, card.failed) for card in check_cards((held, broke))] == [
        ("b contains", True),
        ("a", False),
    ]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 5_000, "{}", "[]", '"x"', ""])
def test_odd_results_are_shown_as_they_are(text):
    (card,) = cards(Turn(role="tool", text=text))
    assert card.text or card.body


class Elements(HTMLParser):
    """The elements and the text of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *attrs))

    def handle_data(self, data):
        self.text += data


MARKS = [
    "**",
    "*",
    "- ",
    "`",
    "```",
    "```py\n",
    "\n",
    "# ",
    " ",
    "<b>",
    "<!--",
    "&lt;",
    "&",
    '"',
    "'",
]
MARKS += ["</pre>", "<script>", "[x](javascript:alert(1))", "![x](http://evil)", "word", "é", "_"]


@given(st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=30).map("".join))
def test_markdown_in_a_message_makes_four_elements_and_loses_no_word(text):
    text = text.replace("\r", "")  # a parser of HTML reads it as a line break
    shown = Elements(read_markdown(text))
    assert set(shown.tags) <= {("b",), ("em",), ("code",), ("pre", ("tabindex", "0"))}
    left = [character for character in text if character not in "`*#-•\n "]
    if "```" not in text:  # what a fence says of its language is not shown
        assert [character for character in shown.text if character not in "`*#-•\n "] == left


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("1. **Reservation ID**: `Z7`", "1. <b>Reservation ID</b>: <code>Z7</code>"),
        ("## Plan\n- one\n  * *two*", "<b>Plan</b>\n• one\n  • <em>two</em>"),
        ("-5, 2 - 3, 2 * 3 * 4, a-b\n--\n-", "-5, 2 - 3, 2 * 3 * 4, a-b\n--\n-"),
        ("so:\n```python\nx = 2 ** 3\n```\ndone", 'so:\n<pre tabindex="0">x = 2 ** 3\n</pre>done'),
        ("```\nnever **closed**", '<pre tabindex="0">never **closed**</pre>'),
        ("2**3**4, a ** b, snake_case_name, #5", "2**3**4, a ** b, snake_case_name, #5"),
        ("**<img src=x onerror=alert(1)>**", "<b>&lt;img src=x onerror=alert(1)&gt;</b>"),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
    ],
)
def test_code_emphasis_headings_and_lists_are_shown_and_everything_else_stays(text, html):
    assert read_markdown(text).strip() == html


def test_only_what_people_and_models_say_is_read_as_markdown():
    turns = [{"role": role, "text": "**a** <i>"} for role in ("user", "assistant", "tool")]
    page = transcript_page(json.dumps({"messages": turns}), 10_000)
    assert page.count("<b>a</b> &lt;i&gt;") == 2
    assert page.count("**a** &lt;i&gt;") == 1


def test_the_call_that_a_failed_check_names_is_marked_and_no_other():
    calls = [("cancel", {"id": 7}), ("cancel", {"id": 70}), ("look", {}), ("pay", {"with": [1]})]
    turns = [
        {"role": "assistant", "calls": [{"name": name, "arguments": json.dumps(given)}]}
        for name, given in calls
    ]

    def marked(found, score=0.0):
        check = {"target": "", "score": score, "message": "", "expected": "x", "found": found}
        kept = Transcript.from_json(json.dumps({"messages": turns, "checks": [check]}))
        return [card.number for card in transcript_cards(kept) if card.is_wrong]

    assert marked("cancel(id=70)") == [2]
    assert marked("cancel(id=7)\npay(with=[1])") == [1, 4]
    assert marked("cancel()") == [1, 2]  # which of them is not said
    assert marked("no other change") == marked("look, and cancel") == []
    assert marked("cancel(id=7)", score=1.0) == []
