"""Result files of any tool, read into Trials by `read_trials`; each format is one module.

Each name is imported when first used: a small file needs no engine, and a reader no writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.ingest.document import Limits as Limits
    from passhat.ingest.document import parse_limits as parse_limits
    from passhat.ingest.read import read_trials as read_trials
    from passhat.ingest.read import read_with_transcripts as read_with_transcripts
    from passhat.ingest.readers import READERS as READERS
    from passhat.ingest.tallies import count_big as count_big
    from passhat.ingest.tallies import read_tallies as read_tallies
    from passhat.ingest.write import write_trials as write_trials
    from passhat.records.columns import ColumnMap as ColumnMap

__getattr__, __dir__, __all__ = lazy_exports(__name__)
