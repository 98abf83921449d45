"""One function for each thing a user can ask; commands, pytest, pages and Python call these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import lazy_exports

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer as RunAnswer
    from passhat.journeys.explaining import explain_results as explain_results
    from passhat.journeys.repeating import repeat_command as repeat_command
    from passhat.journeys.run_events import RunEvent as RunEvent
    from passhat.journeys.run_events import RunOpened as RunOpened
    from passhat.journeys.running import resume_run as resume_run
    from passhat.journeys.running import run_suite as run_suite

__getattr__, __dir__, __all__ = lazy_exports(__name__)
