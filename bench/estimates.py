"""suite_estimate and the six metrics of a report, against agentrel and scipy's bootstrap."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy import stats

from passhat.stats.arguments import Counts
from passhat.stats.passk import pass_hat_k
from passhat.stats.suite_mean import suite_estimate

SEED = 20261115
SIZES = ((16, 10), (2000, 20), (100_000, 20))
# The six intervals that agentrel's report makes, at its own number of replicates.
METRICS = tuple((metric, k) for metric in ("pass^k", "pass@k") for k in (1, 2, 5))
REPLICATES = 2000
SUITES = 18
SCOPE = "tasks like these"
# Peers are timed on fewer replicates where all would take minutes; their cost is linear in them.
MOST_DRAWS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """CPU seconds, and the replicates they stand for when fewer were run."""

    seconds: float
    extrapolated_from: int | None = None

    def __str__(self) -> str:
        mark = f" (from {self.extrapolated_from} replicates)" if self.extrapolated_from else ""
        return f"{_readable(self.seconds)}{mark}"


def main() -> None:
    """Print one Markdown table; every figure of a row is measured in this run."""
    rng = np.random.default_rng(SEED)
    header = (
        "tasks x runs",
        "agentrel / passhat, same bootstrap",
        "passhat, one interval",
        "passhat, six intervals",
        "passhat, six by hierarchical bootstrap",
        "scipy.stats.bootstrap, one",
        "agentrel, one",
        "agentrel, six",
        "agentrel / passhat's own interval, six",
    )
    print(
        f"Median CPU time of one core, by turns; {REPLICATES} replicates; {_agentrel_version()}.\n"
    )
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for tasks, runs in SIZES:
        # A suite for every call: what passhat remembers of the last one must not help it.
        suites = [rng.binomial(runs, rng.beta(3, 1, tasks)) for _ in range(SUITES)]
        print("| " + " | ".join(row(tasks, runs, suites)) + " |")
    print(
        "\nagentrel and scipy are timed on fewer replicates where marked, and scaled: their cost "
        "is linear in them. agentrel reads scores; passhat reads (n, c) arrays."
    )


def row(tasks: int, runs: int, suites: list[Counts]) -> tuple[str, ...]:
    """One line of the table."""
    n = np.full(tasks, runs)
    one, six, same = by_turns(
        [
            lambda c: suite_estimate(n, c, k=5, scope=SCOPE),
            lambda c: _six(n, c, "default"),
            lambda c: _six(n, c, "hierarchical-bootstrap"),
        ],
        suites,
    )
    scipys = time_scipy(n, suites[0])
    theirs = time_agentrel(runs, suites[0])
    ours = (_readable(one), _readable(six), _readable(same), str(scipys))
    if theirs is None:
        return (f"{tasks} x {runs}", "not installed", *ours, *("not installed",) * 3)
    all_six = Timing(seconds=6 * theirs.seconds, extrapolated_from=theirs.extrapolated_from)
    # The like-for-like ratio stands first: the other sets a closed form against a bootstrap.
    alike, closed = (f"{all_six.seconds / took:,.0f}" for took in (same, six))
    return (f"{tasks} x {runs}", alike, *ours, str(theirs), str(all_six), closed)


def _six(n: Counts, passes: Counts, method: str) -> None:
    for metric, k in METRICS:
        suite_estimate(
            n, passes, metric=metric, k=k, scope=SCOPE, method=method, resamples=REPLICATES
        )


def by_turns(works: Sequence[Callable[[Counts], object]], suites: list[Counts]) -> list[float]:
    """The median CPU seconds of each, one suite to a call; the first of each warms up."""
    took: list[list[float]] = [[] for _ in works]
    for place, passes in enumerate(suites):
        turn = place % len(works)
        began = time.process_time()
        works[turn](passes)
        took[turn].append(time.process_time() - began)
    return [median(times[1:]) for times in took]


def time_scipy(n: Counts, passes: Counts) -> Timing:
    """Percentile bootstrap of the mean of the per-task values."""
    values = pass_hat_k(n, passes, 5)
    replicates = min(REPLICATES, max(20, MOST_DRAWS // values.size))
    (seconds,) = by_turns(
        [
            lambda _: stats.bootstrap(
                (values,), np.mean, n_resamples=replicates, batch=20, method="percentile", rng=SEED
            )
        ],
        [passes] * 4,
    )
    return _scaled(seconds, replicates)


def time_agentrel(runs: int, passes: Counts) -> Timing | None:
    """The pass_hat_k of agentrel at k = 5, or None where it is not installed."""
    try:
        from agentrel.metrics import pass_hat_k as theirs
    except ImportError:
        return None
    scores = {str(i): (np.arange(runs) < c).astype(float) for i, c in enumerate(passes)}
    # It draws task by task in Python, some microseconds each.
    replicates = min(REPLICATES, max(2, MOST_DRAWS // 20 // passes.size))
    (seconds,) = by_turns([lambda _: theirs(scores, 5, n_boot=replicates, seed=SEED)], [passes] * 4)
    return _scaled(seconds, replicates)


def _scaled(seconds: float, replicates: int) -> Timing:
    if replicates == REPLICATES:
        return Timing(seconds=seconds)
    return Timing(seconds=seconds * REPLICATES / replicates, extrapolated_from=replicates)


def _readable(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _agentrel_version() -> str:
    try:
        return f"agentrel {importlib.metadata.version('agentrel')}"
    except importlib.metadata.PackageNotFoundError:
        return "agentrel is not installed (pip install 'passhat[bench]')"


if __name__ == "__main__":
    main()
