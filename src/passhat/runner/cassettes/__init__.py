"""Cassettes: recorded exchanges of N distinct trials, to run again without a key."""

from passhat.runner.cassettes.cassette_file import Cassette as Cassette
from passhat.runner.cassettes.cassette_file import cassette_path as cassette_path
from passhat.runner.cassettes.cassette_file import read_cassette as read_cassette
from passhat.runner.cassettes.cassette_file import write_cassette as write_cassette
from passhat.runner.cassettes.cassette_set import CassetteSet as CassetteSet
from passhat.runner.cassettes.cassette_set import Mode as Mode
from passhat.runner.cassettes.cassette_set import open_cassettes as open_cassettes
