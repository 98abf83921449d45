"""Every event of a run has a line in the event stream."""

from typing import get_args

from passhat.cli.event_stream import _LINES
from passhat.journeys.run_events import RunEvent


def test_every_event_of_a_run_has_a_line():
    assert {event.__name__ for event in get_args(RunEvent)} == set(_LINES)
