"""passhat: can you depend on your AI agent every time?

The public names load what they need when they are first used; `import passhat` loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat._version import __version__

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison, compare
    from passhat.analysis.comparing.profile import Profile, profile
    from passhat.analysis.comparing.rank import RankReport, rank
    from passhat.analysis.gates.demands import Gate, parse_gate
    from passhat.analysis.gates.judge import judge
    from passhat.analysis.gates.verdict import Verdict
    from passhat.analysis.planning.budgets import Spending
    from passhat.analysis.planning.plan import Plan, plan
    from passhat.analysis.planning.simulate import World, simulate
    from passhat.analysis.reports.determinism import determinism_check, seed_agreement
    from passhat.analysis.reports.measure import measure
    from passhat.analysis.reports.report import Report
    from passhat.analysis.reports.system_report import SystemReport
    from passhat.analysis.reports.targets import targets
    from passhat.errors import ArgumentError, InputError, PasshatError, ReadError, RunError
    from passhat.ingest import ColumnMap, Limits, read_tallies, read_trials, read_with_transcripts
    from passhat.ingest.write import write_trials
    from passhat.records import Outcome, Tally, Trial, Trials
    from passhat.reporters.html_page import render_html
    from passhat.reporters.ink import Ink
    from passhat.reporters.json_report import render_json
    from passhat.reporters.markdown import render_markdown
    from passhat.reporters.terminal import render_terminal
    from passhat.runner import run_trials
    from passhat.stats.estimate import Estimate, Interval, Unavailable
    from passhat.stats.passk import pass_at_k, pass_hat_k
    from passhat.stats.proportions import proportion_interval
    from passhat.stats.score_mean import score_estimate
    from passhat.stats.suite_mean import suite_estimate
    from passhat.suite import load_suite

__all__ = [
    "ArgumentError",
    "ColumnMap",
    "Comparison",
    "Estimate",
    "Gate",
    "Ink",
    "InputError",
    "Interval",
    "Limits",
    "Outcome",
    "PasshatError",
    "Plan",
    "Profile",
    "RankReport",
    "ReadError",
    "Report",
    "RunError",
    "Spending",
    "SystemReport",
    "Tally",
    "Trial",
    "Trials",
    "Unavailable",
    "Verdict",
    "World",
    "__version__",
    "compare",
    "determinism_check",
    "judge",
    "load_suite",
    "measure",
    "parse_gate",
    "pass_at_k",
    "pass_hat_k",
    "plan",
    "profile",
    "proportion_interval",
    "rank",
    "read_tallies",
    "read_trials",
    "read_with_transcripts",
    "render_html",
    "render_json",
    "render_markdown",
    "render_terminal",
    "run_trials",
    "score_estimate",
    "seed_agreement",
    "simulate",
    "suite_estimate",
    "targets",
    "write_trials",
]

_HOMES = {
    "passhat.analysis.planning.budgets": "Spending",
    "passhat.analysis.comparing.comparison": "Comparison compare",
    "passhat.analysis.reports.determinism": "determinism_check seed_agreement",
    "passhat.analysis.gates.demands": "Gate parse_gate",
    "passhat.analysis.gates.judge": "judge",
    "passhat.analysis.reports.measure": "measure",
    "passhat.analysis.planning.plan": "Plan plan",
    "passhat.analysis.comparing.profile": "Profile profile",
    "passhat.analysis.comparing.rank": "RankReport rank",
    "passhat.analysis.reports.report": "Report SystemReport",
    "passhat.analysis.planning.simulate": "World simulate",
    "passhat.analysis.reports.targets": "targets",
    "passhat.analysis.gates.verdict": "Verdict",
    "passhat.errors": "ArgumentError InputError PasshatError ReadError RunError",
    "passhat.ingest": "ColumnMap Limits read_tallies read_trials read_with_transcripts",
    "passhat.ingest.write": "write_trials",
    "passhat.records": "Outcome Tally Trial Trials",
    "passhat.reporters.html_page": "render_html",
    "passhat.reporters.ink": "Ink",
    "passhat.reporters.json_report": "render_json",
    "passhat.reporters.markdown": "render_markdown",
    "passhat.reporters.terminal": "render_terminal",
    "passhat.runner": "run_trials",
    "passhat.stats.estimate": "Estimate Interval Unavailable",
    "passhat.stats.passk": "pass_at_k pass_hat_k",
    "passhat.stats.proportions": "proportion_interval",
    "passhat.stats.score_mean": "score_estimate",
    "passhat.stats.suite_mean": "suite_estimate",
    "passhat.suite": "load_suite",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


_PARTS = (
    *("analysis", "drawing", "errors", "history", "ingest", "records"),
    *("reporters", "runner", "stats", "suite", "testing"),
)


def __getattr__(name: str) -> Any:
    """A public name or a part, imported when first asked for (PEP 562)."""
    if name not in _HOME_OF and name not in _PARTS:
        raise AttributeError(f"module 'passhat' has no attribute {name!r}")
    import importlib

    if name in _PARTS:
        return importlib.import_module(f"passhat.{name}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
