"""A page has room for so many transcripts: which it shows, and what it says of the others."""

import base64
import html
import json
import random
import re
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat import Trials, compare, render_html, simulate
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Outcome
from passhat.records.transcript import cut_text
from passhat.reporters import page_parts
from passhat.reporters.page_parts import PageLimits, fit_transcripts

FRAME = 8_000
"""Bytes for the note, the word of a cut, the element that holds all transcripts, and the style and
script that only pages with transcripts have."""

TASKS = {"flaky": "PFPEPFFP" * 4, "solid": "P" * 200, "broken": "F" * 40 + "E" * 5}


@pytest.fixture(scope="module")
def trials():
    rows = [(task, n, letter) for task, runs in TASKS.items() for n, letter in enumerate(runs)]
    outcome = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}
    return Trials.from_columns(
        system=["agent"] * len(rows),
        task=[task for task, _, _ in rows],
        trial=[n for _, n, _ in rows],
        outcome=[outcome[letter] for _, _, letter in rows],
    )


@pytest.fixture(scope="module")
def report(trials):
    found = measure(trials)
    assert {row.name: row.label for row in found.system().tasks} == {name: name for name in TASKS}
    return found


@pytest.fixture(scope="module")
def bare(report):
    return len(render_html(report).encode())


def spoken(text):
    """The same words in every trial."""
    return {("agent", task, n): text for task, runs in TASKS.items() for n in range(len(runs))}


def unlike(size):
    """Words that are others in every trial, so that packing saves little."""
    rng = random.Random(7)
    return {key: rng.randbytes(size // 2).hex() for key in spoken("")}


def unpacked(fitted):
    """What a browser finds in the blocks of a page, by trial."""
    blocks = [
        json.loads(zlib.decompress(base64.b64decode(block), wbits=-zlib.MAX_WBITS))
        for block in fitted.blocks
    ]
    return {key: blocks[block][place] for key, (block, place) in fitted.places.items()}


def letters(keys):
    """The task and the outcome of each trial."""
    return [(task, TASKS[task][trial]) for _, task, trial in keys]


@settings(max_examples=25, deadline=None)
@given(
    text=st.text(max_size=40).map(lambda text: text * 100),
    most=st.integers(1, 300_000),
    each=st.integers(1, 20_000),
)
def test_a_page_is_never_bigger_than_its_frame_and_the_room_for_transcripts(
    report, trials, bare, text, most, each
):
    limits = PageLimits(max_bytes=most, max_transcript=each)
    fitted = fit_transcripts(report, spoken(text), trials=trials, limits=limits)
    page = render_html(report, transcripts=fitted)
    assert len(page.encode()) <= bare + most + FRAME
    shown = page.count('<article class="trial"')
    assert shown == len(fitted.texts)
    assert shown + fitted.left_out == len(trials)
    told = re.search(r"Of ([\d,]+) transcripts this page leaves out ([\d,]+)", page)
    assert (told is not None) == (fitted.left_out > 0)
    if told:
        numbers = [int(number.replace(",", "")) for number in told.groups()]
        assert numbers == [len(trials), fitted.left_out]


def test_usual_limits_hold_for_whoever_names_none(report, bare):
    rng = random.Random(3)
    said = {("agent", "solid", n): rng.randbytes(1_250).hex() for n in range(12_000)}
    page = render_html(report, transcripts=said)
    assert 6_000_000 < len(page.encode()) <= min(8_000_000, bare + 7_500_000 + FRAME)
    assert "this page leaves out" in page


def test_nothing_is_left_out_while_something_less_wanted_is_kept(report, trials):
    said = unlike(2_000)
    kept = set()
    for most in range(10_000, 731_000, 90_000):
        limits = PageLimits(max_bytes=most, max_transcript=2_000)
        fitted = fit_transcripts(report, said, trials=trials, limits=limits)
        # every step keeps what the last one kept: there is one order, and its beginning is shown
        assert kept <= set(fitted.texts)
        kept = set(fitted.texts)
        found = letters(fitted.texts)
        left = letters(said.keys() - fitted.texts.keys())
        if ("flaky", "F") in left or ("flaky", "E") in left:
            assert found.count(("flaky", "P")) <= 1
        if any(task == "flaky" for task, _ in left):
            assert max(found.count(("solid", "P")), found.count(("broken", "F"))) <= 1
    assert kept == set(said)


def test_each_outcome_of_each_task_is_shown_once_before_any_is_shown_twice(report, trials):
    once = {("flaky", "F"), ("flaky", "E"), ("flaky", "P")}
    once |= {("solid", "P"), ("broken", "F"), ("broken", "E")}
    counts, said = set(), unlike(2_000)
    for most in range(2_000, 30_000, 1_500):
        limits = PageLimits(max_bytes=most, max_transcript=2_000)
        fitted = fit_transcripts(report, said, trials=trials, limits=limits)
        found = letters(fitted.texts)
        counts.add(len(found))
        if len(found) <= len(once):
            assert len(set(found)) == len(found)
        else:
            assert set(found) == once
    assert len(once) in counts


def test_a_report_knows_which_failed_where_every_run_has_a_transcript(report, trials):
    limits = PageLimits(max_bytes=60_000, max_transcript=3_000)
    said = unlike(3_000)
    told = fit_transcripts(report, said, trials=trials, limits=limits)
    assert fit_transcripts(report, said, limits=limits).texts == told.texts
    del said["agent", "flaky", 0]
    assert fit_transcripts(report, said, limits=limits).left_out == len(trials) - 1 - len(
        told.texts
    )


def test_where_there_is_room_all_are_shown_as_they_are_in_the_order_they_came(report, trials):
    said = spoken("hello")
    fitted = fit_transcripts(report, said, trials=trials)
    assert list(fitted.texts) == list(said)
    assert set(fitted.texts.values()) == {'<pre tabindex="0">hello</pre>'}
    assert (fitted.left_out, fitted.left_out_note, fitted.cut_note) == (0, None, None)


def test_transcripts_of_tasks_that_the_page_does_not_list_are_counted(monkeypatch):
    monkeypatch.setattr(page_parts, "MOST_ROWS", 3)
    trials = simulate(tasks=5, runs=4, seed=1)
    said = {(t.system, t.task, t.trial): "hello" for t in trials}
    fitted = fit_transcripts(measure(trials), said, trials=trials)
    assert (len(fitted.texts), fitted.left_out) == (12, 8)


def test_those_of_agents_that_are_not_on_the_page_are_nobodys_loss(report, trials):
    said = spoken("hello") | {("another", "flaky", 0): "hello"}
    assert fit_transcripts(report, said, trials=trials).left_out == 0


texts = st.text(st.characters() | st.sampled_from('<>&"\\\n'), max_size=300)


@given(text=texts, limit=st.integers(1, 400))
def test_a_transcript_is_cut_after_so_many_characters_and_no_sooner(report, text, limit):
    shown = [
        html.unescape(page.removeprefix('<pre tabindex="0">').removesuffix("</pre>"))
        for limits in (PageLimits(), PageLimits(max_transcript=limit))
        for page in fit_transcripts(
            report, {("agent", "flaky", 0): text}, limits=limits
        ).texts.values()
    ]
    assert shown[1] == cut_text(shown[0], limit)


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5))
def test_what_is_packed_is_unpacked_as_it_was_and_cannot_end_its_element(report, said):
    kept = {("agent", "flaky", n): text for n, text in enumerate(said)}
    # no room to write any out: all of them are packed
    limits = PageLimits(max_bytes=5_000 + 400 * len(said), max_transcript=300)
    fitted = fit_transcripts(report, kept, limits=limits)
    found = unpacked(fitted)
    assert found == {key: fitted.texts[key] for key in fitted.places}
    assert fitted.written | set(fitted.places) == set(kept)
    assert not re.search('[<>&"]', "".join(fitted.blocks))


def test_the_most_wanted_transcripts_can_be_read_without_javascript(report, trials):
    limits = PageLimits(max_bytes=60_000, max_transcript=2_000)
    fitted = fit_transcripts(report, unlike(2_000), trials=trials, limits=limits)
    page = render_html(report, transcripts=fitted)
    assert fitted.written
    assert fitted.places
    first = set(letters(fitted.written))
    assert {("flaky", "F"), ("flaky", "E"), ("flaky", "P")} <= first
    assert all(fitted.texts[key] in page for key in fitted.written)
    assert f"{len(fitted.places)} further transcripts open with JavaScript" in page


def test_limits_of_a_page_are_whole_numbers_of_at_least_one():
    with pytest.raises(ArgumentError, match="max_bytes must be a whole number >= 1"):
        PageLimits(max_bytes=0)


@pytest.mark.parametrize("agents", [1, 2, 12])
def test_every_mark_of_a_trial_that_the_page_holds_is_a_link_to_it(agents):
    rates = {f"agent {i}": 0.5 for i in range(agents)}
    trials = simulate(tasks=15, runs=4, rate=rates, seed=2)
    said = {(one.system, one.task, one.trial): "Hello" for one in trials}
    pages = [render_html(measure(trials), transcripts=said, trials=trials)]
    if agents == 2:
        pages.append(render_html(compare(trials), transcripts=said, trials=trials))
    for text in pages:
        body = re.sub(r"<(script|style|svg|a)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search("[●○×]", re.sub(r'<p class="soft.*?</p>', "", body))
        linked = re.findall(r'<a class="(?:passed|failed)" href="#([^"]+)"', text)
        held = set(re.findall(r'<article class="trial" id="([^"]+)"', text))
        assert set(linked) == held
        assert len(held) == len(said)
