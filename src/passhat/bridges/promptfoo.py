"""promptfoo: passhat's report when an eval is over.

    # promptfooconfig.yaml
    extensions:
      - file://passhat_report.py:extension_hook

    # passhat_report.py
    from passhat.bridges.promptfoo import extension_hook

Run it with `promptfoo eval --repeat 10`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from passhat.ingest import read_trials
from passhat.records import Trials


def extension_hook(hook_name: str, context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Called by promptfoo before and after an eval and its tests; prints the report at the end."""
    if hook_name == "afterAll":
        from passhat.analysis.reports.measure import measure
        from passhat.reporters.rendering import render_terminal

        report = measure(trials_of_results(context["results"]))
        # promptfoo reads the answer of a hook from a file: standard error is seen by people.
        sys.stderr.write(render_terminal(report, results=None))
    return context


def trials_of_results(results: Any) -> Trials:
    """The results that promptfoo hands to `afterAll`, read as its output files are."""
    return read_trials(json.dumps({"results": {"results": results}}).encode(), format="promptfoo")
