"""passhat: can you depend on your AI agent every time?

The public names load what they need when they are first used; `import passhat` loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passhat._version import __version__

if TYPE_CHECKING:
    from passhat.analysis.budgets import Spending
    from passhat.analysis.comparison import Comparison, compare
    from passhat.analysis.determinism import determinism_check, seed_agreement
    from passhat.analysis.gates import Gate, parse_gate
    from passhat.analysis.judge import judge
    from passhat.analysis.measure import measure
    from passhat.analysis.planning import Plan, plan
    from passhat.analysis.profile import Profile, profile
    from passhat.analysis.rank import RankReport, rank
    from passhat.analysis.report import Report, SystemReport
    from passhat.analysis.simulate import World, simulate
    from passhat.analysis.targets import targets
    from passhat.analysis.verdict import Verdict
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
    "passhat.analysis.budgets": "Spending",
    "passhat.analysis.comparison": "Comparison compare",
    "passhat.analysis.determinism": "determinism_check seed_agreement",
    "passhat.analysis.gates": "Gate parse_gate",
    "passhat.analysis.judge": "judge",
    "passhat.analysis.measure": "measure",
    "passhat.analysis.planning": "Plan plan",
    "passhat.analysis.profile": "Profile profile",
    "passhat.analysis.rank": "RankReport rank",
    "passhat.analysis.report": "Report SystemReport",
    "passhat.analysis.simulate": "World simulate",
    "passhat.analysis.targets": "targets",
    "passhat.analysis.verdict": "Verdict",
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
