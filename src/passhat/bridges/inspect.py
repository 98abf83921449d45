"""Inspect: a metric with pass^k and its interval, and passhat's report at the end of an eval.

Inspect finds both by itself where passhat is installed beside it. The metric sees every epoch:

    @scorer(metrics=[reliability(k=3)])
    def solved(): ...

With PASSHAT_REPORT=1 in the environment, `inspect eval` ends with what `passhat report` says of its
logs. The report also counts epochs that errored, which no metric of Inspect sees.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections import defaultdict
from typing import Any
from urllib.parse import unquote, urlparse

from inspect_ai.hooks import Hooks, RunEnd, hooks
from inspect_ai.scorer import Metric, SampleScore, metric, value_to_float

from passhat.arguments import CONFIDENCE
from passhat.stats.estimate import Unavailable
from passhat.stats.suite_mean import suite_estimate

SWITCH = "PASSHAT_REPORT"


@metric(name="reliability", scores="unreduced")  # type: ignore[untyped-decorator,unused-ignore]
def reliability(k: int = 3, threshold: float = 1.0, confidence: float = CONFIDENCE) -> Metric:
    """pass^k of the samples and its interval; an epoch passes whose score reaches `threshold`."""
    number = value_to_float()

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        passed: dict[Any, list[bool]] = defaultdict(list)
        for score in scores:
            passed[score.sample_id].append(number(score.score.value) >= threshold)
        runs = [len(epochs) for epochs in passed.values()]
        estimate = suite_estimate(
            runs, [sum(epochs) for epochs in passed.values()], k=k, confidence=confidence
        )
        if isinstance(estimate, Unavailable) or estimate.interval is None:
            return {f"pass^{k}": float("nan")}
        ends = {f"pass^{k} low": estimate.interval.low, f"pass^{k} high": estimate.interval.high}
        return {f"pass^{k}": estimate.value, **ends}

    return compute


@hooks(name="passhat_report", description=f"passhat's report of an eval ({SWITCH}=1).")  # type: ignore[misc,unused-ignore]
class ReliabilityReport(Hooks):  # type: ignore[misc,unused-ignore]
    """Prints what `passhat report` says of the logs of an eval, when it is over."""

    def enabled(self) -> bool:
        return os.environ.get(SWITCH, "0") not in ("", "0")

    async def on_run_end(self, data: RunEnd) -> None:
        from passhat import journeys
        from passhat.reporters.rendering import render_terminal

        paths = [_path(log.location) for log in data.logs if log.location]
        if paths:
            sys.stdout.write(render_terminal(journeys.report(paths), results=shlex.join(paths)))


def _path(location: str) -> str:
    """Where a log is, as a path where it is a file."""
    parts = urlparse(location)
    return unquote(parts.path) if parts.scheme == "file" else location
