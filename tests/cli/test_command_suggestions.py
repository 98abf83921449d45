"""A first word that is no command is answered with what was probably meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.cli import COMMANDS, what_was_meant


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["reprot", "results.csv"], "passhat report"),
        (["chekc"], "passhat check"),
        (["RUN"], "passhat run"),
        (["lint"], "passhat check"),
        (["replay"], "passhat run --replay"),
        (["results.jsonl"], "passhat report results.jsonl"),
        (["my results.csv", "--k", "3"], "passhat report 'my results.csv' --k 3"),
        (["logs/airline"], "passhat report logs/airline"),
        (["suite.yml"], "passhat run suite.yml"),
        (["old.db"], "passhat history --store old.db"),
    ],
)
def test_the_command_that_was_meant_is_named(call, words, meant):
    done = call(*words)
    assert done.exit_code == 2
    assert meant in done.output


def test_a_file_that_is_there_is_a_file_whatever_it_is_called(call, here):
    (here / "results").write_text("task,passed\na,1\n")
    assert "passhat report results" in call("results").output


def test_a_word_that_means_nothing_gets_the_list(call):
    done = call("xyzzy")
    assert done.exit_code == 2
    assert all(name in done.output for name in COMMANDS)


@given(st.sampled_from(sorted(COMMANDS)), st.data())
def test_two_letters_swapped_in_a_long_command_still_mean_it(name, data):
    if len(name) < 6:
        return
    at = data.draw(st.integers(0, len(name) - 2))
    typo = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    if typo not in COMMANDS:
        assert f"passhat {name}" in what_was_meant([typo], COMMANDS)


def test_a_word_cannot_steer_the_terminal(call):
    assert "\x1b" not in call("\x1b[31mred").output


def test_a_word_for_a_command_stays_one_beside_a_folder_of_that_name(call, here):
    (here / "test").mkdir()
    assert 'Did you mean "passhat run"?' in call("test").output


@pytest.mark.parametrize("word", ["", "a" * 5_000], ids=["no letter", "too long for a file"])
def test_what_can_be_no_file_gets_the_list_too(call, word):
    done = call(word)
    assert done.exit_code == 2
    assert all(name in done.output for name in COMMANDS)
