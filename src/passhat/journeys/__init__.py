"""One function for each thing a user can ask; commands, pytest, pages and Python call these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat.lazy import JOURNEYS_ONCE, lazy_exports

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer as RunAnswer
    from passhat.analysis.planning.simulate import demonstrate as demonstrate
    from passhat.journeys.analyses import compare as compare
    from passhat.journeys.analyses import diff_trials as diff_trials
    from passhat.journeys.analyses import flaky_tasks as flaky_tasks
    from passhat.journeys.analyses import plan as plan
    from passhat.journeys.analyses import plan_gates as plan_gates
    from passhat.journeys.analyses import plan_labels as plan_labels
    from passhat.journeys.analyses import profile_results as profile_results
    from passhat.journeys.analyses import rank_results as rank_results
    from passhat.journeys.analyses import report as report
    from passhat.journeys.analyses import trend as trend
    from passhat.journeys.analyses import why as why
    from passhat.journeys.checks import Finding as Finding
    from passhat.journeys.checks import RunPlan as RunPlan
    from passhat.journeys.checks import SecretScan as SecretScan
    from passhat.journeys.checks import check_suites as check_suites
    from passhat.journeys.checks import diagnose as diagnose
    from passhat.journeys.checks import find_secrets as find_secrets
    from passhat.journeys.checks import plan_run as plan_run
    from passhat.journeys.checks import try_graders as try_graders
    from passhat.journeys.gating import gate as gate
    from passhat.journeys.gating import review_change as review_change
    from passhat.journeys.history import StoredResults as StoredResults
    from passhat.journeys.history import change_run as change_run
    from passhat.journeys.history import export_run as export_run
    from passhat.journeys.history import list_artefacts as list_artefacts
    from passhat.journeys.history import list_runs as list_runs
    from passhat.journeys.history import search_transcripts as search_transcripts
    from passhat.journeys.history import store_results as store_results
    from passhat.journeys.labels import check_judge as check_judge
    from passhat.journeys.reliability_check import assert_reliable as assert_reliable
    from passhat.journeys.results import Results as Results
    from passhat.journeys.run_request import RunEvent as RunEvent
    from passhat.journeys.run_request import RunOpened as RunOpened
    from passhat.journeys.run_store import merge_shards as merge_shards
    from passhat.journeys.running import repeat as repeat
    from passhat.journeys.running import resume_run as resume_run
    from passhat.journeys.running import run as run

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, renamed=JOURNEYS_ONCE | {"KeptResults": "StoredResults"}
)
