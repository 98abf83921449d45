"""passhat: can you depend on your AI agent every time?

The public names load what they need when they are first used; `import passhat` loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat._version import __version__ as __version__
from passhat.lazy import JOURNEYS_ONCE, lazy_exports

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison as Comparison
    from passhat.analysis.comparing.ranking import Profile as Profile
    from passhat.analysis.comparing.ranking import RankReport as RankReport
    from passhat.analysis.comparing.ranking import profile as profile
    from passhat.analysis.comparing.ranking import rank as rank
    from passhat.analysis.explaining.explain import Explanation as Explanation
    from passhat.analysis.explaining.explain import explain as explain
    from passhat.analysis.explaining.run_diff import diff_runs as diff_runs
    from passhat.analysis.gates.gate import Gate as Gate
    from passhat.analysis.gates.gate import Verdict as Verdict
    from passhat.analysis.gates.gate import parse_gate as parse_gate
    from passhat.analysis.gates.judge import judge as judge
    from passhat.analysis.gates.run_answer import RunAnswer as RunAnswer
    from passhat.analysis.planning.plan import Plan as Plan
    from passhat.analysis.planning.plan import Spending as Spending
    from passhat.analysis.planning.simulate import SimulationModel as SimulationModel
    from passhat.analysis.planning.simulate import simulate as simulate
    from passhat.analysis.reports.dependence import determinism_check as determinism_check
    from passhat.analysis.reports.dependence import seed_agreement as seed_agreement
    from passhat.analysis.reports.measure import measure as measure
    from passhat.analysis.reports.parts import SystemReport as SystemReport
    from passhat.analysis.reports.report import Report as Report
    from passhat.analysis.reports.targets import targets as targets
    from passhat.cli.run_output import Progress as Progress
    from passhat.errors import ArgumentError as ArgumentError
    from passhat.errors import InputError as InputError
    from passhat.errors import PasshatError as PasshatError
    from passhat.errors import ReadError as ReadError
    from passhat.errors import RunError as RunError
    from passhat.ingest import ColumnMap as ColumnMap
    from passhat.ingest import Limits as Limits
    from passhat.ingest import read_tallies as read_tallies
    from passhat.ingest import read_trials as read_trials
    from passhat.ingest import read_with_transcripts as read_with_transcripts
    from passhat.ingest.write import write_trials as write_trials
    from passhat.journeys import assert_reliable as assert_reliable
    from passhat.journeys import change_run as change_run
    from passhat.journeys import check_judge as check_judge
    from passhat.journeys import check_suites as check_suites
    from passhat.journeys import compare as compare
    from passhat.journeys import demonstrate as demonstrate
    from passhat.journeys import diagnose as diagnose
    from passhat.journeys import diff_trials as diff_trials
    from passhat.journeys import export_run as export_run
    from passhat.journeys import find_secrets as find_secrets
    from passhat.journeys import flaky_tasks as flaky_tasks
    from passhat.journeys import gate as gate
    from passhat.journeys import list_artefacts as list_artefacts
    from passhat.journeys import list_runs as list_runs
    from passhat.journeys import merge_shards as merge_shards
    from passhat.journeys import plan as plan
    from passhat.journeys import plan_gates as plan_gates
    from passhat.journeys import plan_labels as plan_labels
    from passhat.journeys import plan_run as plan_run
    from passhat.journeys import profile_results as profile_results
    from passhat.journeys import rank_results as rank_results
    from passhat.journeys import repeat as repeat
    from passhat.journeys import report as report
    from passhat.journeys import resume_run as resume_run
    from passhat.journeys import run as run
    from passhat.journeys import search_transcripts as search_transcripts
    from passhat.journeys import store_results as store_results
    from passhat.journeys import trend as trend
    from passhat.journeys import try_graders as try_graders
    from passhat.journeys import why as why
    from passhat.records import Outcome as Outcome
    from passhat.records import Tally as Tally
    from passhat.records import Trial as Trial
    from passhat.records import Trials as Trials
    from passhat.records.trials import weight_by_traffic as weight_by_traffic
    from passhat.reporters.formatting import TerminalStyle as TerminalStyle
    from passhat.reporters.rendering import render as render
    from passhat.reporters.rendering import render_html as render_html
    from passhat.reporters.rendering import render_json as render_json
    from passhat.reporters.rendering import render_markdown as render_markdown
    from passhat.reporters.rendering import render_terminal as render_terminal
    from passhat.reporters.rendering import to_frame as to_frame
    from passhat.runner import run_trials as run_trials
    from passhat.stats.estimate import Estimate as Estimate
    from passhat.stats.estimate import Interval as Interval
    from passhat.stats.estimate import Unavailable as Unavailable
    from passhat.stats.passk import pass_at_k as pass_at_k
    from passhat.stats.passk import pass_hat_k as pass_hat_k
    from passhat.stats.proportions import proportion_interval as proportion_interval
    from passhat.stats.suite_mean import score_estimate as score_estimate
    from passhat.stats.suite_mean import suite_estimate as suite_estimate
    from passhat.suite import load_suite as load_suite

_PARTS = (
    *("analysis", "drawing", "errors", "history", "ingest", "journeys"),
    *("records", "reporters", "runner", "stats", "suite", "testing"),
)

_load, *_ = lazy_exports(
    __name__,
    parts=_PARTS,
    renamed=JOURNEYS_ONCE
    | {
        "Ink": "TerminalStyle",
        "World": "SimulationModel",
        "side_by_side": "diff_runs",
        "weigh_by_shares": "weight_by_traffic",
    },
)

_ASKED_AS = {"explain": "why", "judge": "gate", "measure": "report"}
"""Parts of `passhat.analysis` that are asked for by another name, which reads files too."""

_CALLED_HERE = {
    "ReliabilitySummary": "passhat.report",
    "RunSet": "passhat.Trials",
    "TaskRun": "passhat.Trial",
    "aggregate_selection": "passhat.analysis.gates.run_answer.selection_floor",
    "benjamini_hochberg": "passhat.stats.benjamini_hochberg",
    "compare_agents": "passhat.compare",
    "confidence_band": "passhat.stats.confidence_band",
    "from_inspect_log": "passhat.read_trials",
    "from_records": "passhat.Trials.from_records",
    "holm": "passhat.stats.holm",
    "icc": "passhat.stats.icc",
    "mean_score_ci": "passhat.score_estimate",
    "metrics_object": "passhat.targets",
    "min_runs_for_ci": "passhat.plan",
    "min_runs_for_ci_width": "passhat.plan",
    "paired_delta": "passhat.compare",
    "pass_to_k": "passhat.pass_hat_k",
    "recommend_runs": "passhat.stats.recommend_runs",
    "reliability_report": "passhat.report",
    "resolve_target": "passhat.targets",
    "summarize": "passhat.report",
    "variance_components": "passhat.stats.variance_components",
}
"""What other tools call a function, and where it is here."""

# The names to begin with. All others stay importable: from here, or from the parts they belong to.
__all__ = [
    "PasshatError",
    "Trials",
    "__version__",
    "assert_reliable",
    "compare",
    "gate",
    "pass_at_k",
    "pass_hat_k",
    "plan",
    "read_trials",
    "repeat",
    "report",
    "run",
    "simulate",
    "trend",
    "why",
]


def __getattr__(name: str) -> Any:
    if name in _CALLED_HERE:
        missing = f"module 'passhat' has no attribute {name!r}; here it is {_CALLED_HERE[name]}"
        raise AttributeError(missing)
    value = _load(name)
    if name in _ASKED_AS:
        from warnings import warn

        del globals()[name]  # so that each use is told
        warn(f"passhat.{name} is passhat.{_ASKED_AS[name]} now", DeprecationWarning, stacklevel=2)
    return value


def __dir__() -> list[str]:
    return __all__
