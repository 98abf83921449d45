"""Cassettes: recorded exchanges of N distinct trials, to run again without a key."""

from passhat.runner.cassettes.cassette_file import (
    Cassette,
    cassette_path,
    read_cassette,
    write_cassette,
)
from passhat.runner.cassettes.cassette_set import CassetteSet, Mode, open_cassettes
from passhat.runner.cassettes.recording import Recording, Replaying

__all__ = [
    "Cassette",
    "CassetteSet",
    "Mode",
    "Recording",
    "Replaying",
    "cassette_path",
    "open_cassettes",
    "read_cassette",
    "write_cassette",
]
