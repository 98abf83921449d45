"""Anybody's result files, read into Trials: one format a file, all behind `read_trials`."""

from passhat.ingest.columns import ColumnMap
from passhat.ingest.limits import Limits
from passhat.ingest.read import Duplicates, read_trials, read_with_transcripts
from passhat.ingest.reader import Reader, Table
from passhat.ingest.readers import READERS
from passhat.ingest.tallies import big_table, read_tallies
from passhat.ingest.write import write_trials

__all__ = [
    "READERS",
    "ColumnMap",
    "Duplicates",
    "Limits",
    "Reader",
    "Table",
    "big_table",
    "read_tallies",
    "read_trials",
    "read_with_transcripts",
    "write_trials",
]
