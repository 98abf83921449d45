"""Cassettes: recorded exchanges of N distinct trials, to run again without a key."""

from passhat.runner.cassettes.cassette_file import (
    Cassette,
    cassette_path,
    read_cassette,
    write_cassette,
)
from passhat.runner.cassettes.cassette_set import CassetteSet, Mode, open_cassettes

__all__ = [
    "Cassette",
    "CassetteSet",
    "Mode",
    "cassette_path",
    "open_cassettes",
    "read_cassette",
    "write_cassette",
]
