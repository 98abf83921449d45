"""Words that were said in trials are found by an index, in both databases."""

import json
import random
from html import unescape

import pytest

from passhat.history import History, queries, sqlite
from passhat.history.queries import search_said
from passhat.history.sqlite import SqliteDatabase
from passhat.records import Outcome, Trial
from passhat.records.transcript import TextSearch, Transcript, Turn

WORDS = ["refund", "order", "out", "stock", "Zürich", "o'hara", "a_b", "x-1", "mañana", "role"]
KEY = "sk-ant-api03-0123456789abcdef"


def said(*lines):
    return Transcript(messages=tuple(Turn(role="user", text=line) for line in lines)).to_json()


def fill(history, texts, suite="suite"):
    run = history.start_run(suite)
    trials = [Trial(system="agent", task=f"t{i:03}", trial=0, outcome=Outcome(i % 2))
              for i in range(len(texts))]  # fmt: skip
    history.add_trials(run, trials)
    with history.writing():
        for trial, text in zip(trials, texts, strict=True):
            history.add_transcript(run.id, trial, text)
    return history.finish_run(run)


def tasks_of(found):
    return sorted(hit.task for hit in found.hits)


def test_the_index_finds_every_word_that_reading_finds(address):
    draw = random.Random(1)
    texts = [said("\n".join(draw.sample(WORDS, 2)), "\t".join(draw.sample(WORDS, 2)))
             for _ in range(40)]  # fmt: skip
    with History.open(address) as history:
        fill(history, texts)
        for word in WORDS[:-1]:
            looked = TextSearch(word)
            read = [f"t{i:03}" for i, text in enumerate(texts) if looked.find(text)]
            assert tasks_of(search_said(history, word, limit=100)) == read, word
        both = search_said(history, "stock refund", limit=100)
        assert tasks_of(both) == [
            f"t{i:03}" for i, text in enumerate(texts) if "stock" in text and "refund" in text
        ]
        assert tasks_of(search_said(history, "REFU", limit=100)) == tasks_of(
            search_said(history, "refund", limit=100)
        )  # the beginning of a word, in any case


def test_beginnings_are_looked_up_where_too_few_trials_have_the_whole_word(tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "CANDIDATES", 2)
    with History.open(tmp_path / "history.db") as history:
        fill(history, [said("go"), said("gone"), said("go"), said("going"), said("stay")])
        assert tasks_of(search_said(history, "go", limit=2)) == ["t000", "t002"]
        assert tasks_of(search_said(history, "gon", limit=2)) == ["t001"]
        assert tasks_of(search_said(history, "g", limit=2)) == ["t002", "t003"]


def test_a_beginning_that_many_words_have_is_looked_for_in_the_newest_trials_first(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(queries, "CANDIDATES", 2)
    monkeypatch.setattr(sqlite, "MANY_PAGES", 2)
    many = [said(" ".join(f"g{i}x{word}" for word in range(60))) for i in range(100)]
    with History.open(tmp_path / "history.db") as history:
        fill(history, [said("gone stays"), *many])
        asked = []
        history.database._connection.set_trace_callback(asked.append)
        assert tasks_of(search_said(history, "g", limit=2)) == ["t099", "t100"]
        assert not any('"g"*' in statement for statement in asked)
        assert tasks_of(search_said(history, "stays g", limit=2)) == ["t000"]
        assert not any('"g"*' in statement for statement in asked)
        # None of the newest has it: the index is merged after all, and nothing is missed.
        fill(history, [said("other words")] * 30)
        assert tasks_of(search_said(history, "g", limit=2)) == ["t099", "t100"]
        assert any('"g"*' in statement for statement in asked)


def test_of_a_long_passage_the_index_is_asked_for_the_longest_words(address, monkeypatch):
    monkeypatch.setattr(queries, "MOST_WORDS", 3)
    passage, asked = "we are able to refund the refund of the reservation of yester", []
    with History.open(address) as history:
        fill(history, [said(f"{passage}day"), said("able refund reservation yesterday"), said("x")])
        database = type(history.database)
        find = database.find_words

        def noted(self, words, limit):
            asked.append(list(words))
            return find(self, words, limit)

        monkeypatch.setattr(database, "find_words", noted)
        assert tasks_of(search_said(history, passage)) == ["t000"]
    assert asked == [["able", "refund", "reservation", "yester"]]


@pytest.mark.parametrize("text", ["", " ", "'\"", "* OR", "a) OR (b", "-- ;", "NEAR(", "\\", "%"])
def test_whatever_is_searched_for_is_only_text(address, text):
    with History.open(address) as history:
        fill(history, [said("nothing of it")])
        assert search_said(history, text).hits == ()


def test_a_key_is_neither_shown_nor_confirmed(address):
    with History.open(address) as history:
        fill(history, [said(f"the key is {KEY}")])
        for wanted in (KEY, "0123456789abcdef", "0123"):
            assert search_said(history, wanted).hits == ()
        (hit,) = search_said(history, "key").hits
        assert KEY not in hit.excerpt.text


def test_a_hit_leads_to_its_trial_and_the_newest_comes_first(address):
    with History.open(address) as history:
        old, new = (fill(history, [said("one refund")]) for _ in range(2))
        hits = search_said(history, "refund").hits
        assert [(hit.run, hit.task, hit.place) for hit in hits] == [
            (new.key, "t000", 1), (old.key, "t000", 1),
        ]  # fmt: skip
        assert hits[0].excerpt.text == "one refund"
        assert len(search_said(history, "refund", limit=1).hits) == 1


@pytest.mark.parametrize("order", [("secretplan", "refund"), ("refund", "secretplan")])
def test_a_deleted_run_is_not_found_and_its_words_go_when_space_is_freed(address, order):
    with History.open(address) as history:
        runs = {word: fill(history, [said(word)]) for word in order}
        gone, kept = runs["secretplan"], runs["refund"]
        history.delete(gone)
        assert search_said(history, "secretplan").hits == ()
        history.vacuum()
        assert search_said(history, "secretplan").hits == ()
        assert [hit.run for hit in search_said(history, "refund").hits] == [kept.key]
        if isinstance(history.database, SqliteDatabase):
            counted = "SELECT count(*) FROM spoken_words WHERE spoken_words MATCH 'secretplan'"
            assert history.database.execute(counted).fetchone() == (0,)


def test_a_run_that_goes_on_is_indexed_again_with_all_it_has(address):
    with History.open(address) as history:
        run = fill(history, [said("first")])
        history.reopen_run(run)
        late = Trial(system="agent", task="late", trial=0, outcome=Outcome.PASSED)
        history.add_trials(run, [late], first_sequence=1)
        with history.writing():
            history.add_transcript(run.id, late, said("second"))
        history.finish_run(run)
        assert tasks_of(search_said(history, "first")) == ["t000"]
        assert tasks_of(search_said(history, "second")) == ["late"]


def test_runs_of_an_older_store_are_indexed_when_first_searched(address, monkeypatch):
    monkeypatch.setattr(queries, "INDEXED_AT_ONCE", 2)
    with History.open(address) as history:
        for i in range(3):
            fill(history, [said(f"refund {i}"), said("nothing")])
        with history.writing():
            history.database.execute("DELETE FROM spoken")
    with History.open(address, read_only=True) as history:
        found = [search_said(history, "refund") for _ in range(3)]
    assert [(len(one.hits), one.left) for one in found] == [(1, 4), (2, 2), (3, 0)]


def test_without_an_index_the_newest_transcripts_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(SqliteDatabase, "_has_fts5", lambda self: False)
    monkeypatch.setattr(queries, "READ_WITHOUT_INDEX", 3)
    with History.open(tmp_path / "history.db") as history:
        fill(history, [said("refund"), said("x")])
        fill(history, [said("refund"), said("x")])
        found = search_said(history, "refund")
        assert (len(found.hits), found.left) == (2, 1)


@pytest.mark.parametrize("asked", ["money back", "back money", "the money", "refund", "back", "!?"])
def test_with_and_without_an_index_the_same_trials_are_found(tmp_path, monkeypatch, asked):
    texts = [said("money back, please"), said("back to the money"), said("no refund"), said("the")]
    with History.open(tmp_path / "history.db") as history:
        fill(history, texts)
        indexed = search_said(history, asked).hits
    monkeypatch.setattr(SqliteDatabase, "_has_fts5", lambda self: False)
    with History.open(tmp_path / "history.db") as history:
        assert not history.database.full_text
        assert {hit.task: hit.excerpt for hit in search_said(history, asked).hits} == {
            hit.task: hit.excerpt for hit in indexed
        }


def test_the_search_box_shows_where_it_was_said_and_leads_there(address, serve_site):
    with History.open(address) as history:
        run = fill(history, [said("<b>refund</b> \x1b[31m please"), json.dumps("no")])
    site = serve_site(address)
    _, _, text = site.get("/search?q=refund")
    assert "&lt;b&gt;<mark>refund</mark>&lt;/b&gt;" in text
    assert "\x1b" not in text
    link = f"/run/{run.key}/trial?system=agent&task=t000&trial=0"
    assert link in unescape(text)
    assert site.get(link)[0] == 200
    assert "Nothing found" in site.get("/search?q=cancel")[2]


def test_a_sentence_that_trials_share_is_shown_once_and_their_own_words_before_it(
    address, serve_site
):
    def told(own):
        rule = Turn(role="system", text="Never promise a refund.")
        return Transcript(messages=(rule, Turn(role="user", text=own))).to_json()

    with History.open(address) as history:
        run = fill(history, [told("My refund, now"), *(told(f"Hello {i}") for i in range(3))])
    _, _, text = serve_site(address).get("/search?q=refund")
    assert text.count("Never promise a <mark>refund</mark>.") == 1
    assert "The same in 2 more trials" in text
    assert "My <mark>refund</mark>, now" in text
    for task in range(4):
        assert f"/run/{run.key}/trial?system=agent&task=t00{task}&trial=0" in unescape(text)
