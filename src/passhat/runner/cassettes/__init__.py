"""Cassettes: recorded exchanges of N distinct trials, to run again without a key."""

from passhat.runner.cassettes.deck import Deck, Mode, open_cassettes
from passhat.runner.cassettes.recording import Recording
from passhat.runner.cassettes.replaying import Replaying
from passhat.runner.cassettes.tape import Cassette, cassette_path, read_cassette, write_cassette

__all__ = [
    "Cassette",
    "Deck",
    "Mode",
    "Recording",
    "Replaying",
    "cassette_path",
    "open_cassettes",
    "read_cassette",
    "write_cassette",
]
