"""Whatever became of a result file, reading it ends in trials or in a sentence, not in a crash."""

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.ingest import mutations
from tests.ingest.mutations import MOST_CHARACTERS, all_logs, read_one_broken, room_of

from passhat.ingest import READERS, read_trials


@pytest.fixture(scope="module")
def logs(samples):
    return all_logs(samples)


@pytest.fixture(scope="module")
def room(tmp_path_factory, logs):
    """A folder with all logs, each in a folder of its own."""
    return room_of(tmp_path_factory.mktemp("logs"), logs)


def test_every_reader_has_a_log_that_it_reads(logs, room):
    known = {
        source.format
        for number, log in enumerate(logs.values())
        for source in read_trials(room / str(number) / log.main, mapping=log.mapping).sources
    }
    assert known == set(READERS)


@settings(max_examples=4 * settings.default.max_examples)
@given(st.integers(0, 2**64))
def test_a_broken_file_is_read_or_refused_in_a_sentence(logs, room, seed):
    told = read_one_broken(logs, room, seed)
    note("; ".join(mutations.told))
    assert told is None or 0 < len(told) <= MOST_CHARACTERS
