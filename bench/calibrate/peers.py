"""The defaults compared with other tools on the same data, where they are right and where not.

scorio and evalstats run in .venv-peers (`make calibrate` builds it). The hierarchical posterior of
Bowyer, Aitchison and Ivanova (2025) and the clustered errors of Miller (2024) have no package and
are written out here.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from bench.calibrate.cells import ROOT, run_cells
from bench.calibrate.simulated_suites import Difficulty, tally_suites
from bench.calibrate.table import Table, monte_carlo_error
from passhat.stats.arguments import Counts, Floats
from passhat.stats.beta_binomial import prior_weights
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE
from passhat.stats.mean_intervals import default_bounds
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.special import betaln, stdtrit
from passhat.stats.sufficient_statistics import count_cells

SEED = 20_261_118
PEERS = ROOT / ".venv-peers" / "bin" / "python"
NEARLY = (0.02, 0.98)
"""The rates assumed for tasks that never or always passed in a table of a few runs."""

LAWS = (
    Difficulty("Beta(3, 1)", beta=(3.0, 1.0)),
    Difficulty("Beta(0.5, 0.5)", beta=(0.5, 0.5)),
    *(
        Difficulty(f"{share:.0%} at 0.02, else 0.98", rates=NEARLY[::-1], shares=(1 - share, share))
        for share in (0.05, 0.1, 0.3)
    ),
    Difficulty("all at 0.97", rates=(0.97,), shares=(1.0,)),
    # tasks by passes in four (five) runs: gpt-5-medium and gpt-4.1 on MCPMark, 127 tasks, and
    # Droid with Opus 4.1 on Terminal-Bench, 80 tasks, as their leaderboards had them in 2025
    *(
        Difficulty(
            name,
            rates=(NEARLY[0], *np.arange(1, len(tasks) - 1) / (len(tasks) - 1), NEARLY[1]),
            shares=tuple(np.array(tasks) / sum(tasks)),
        )
        for name, tasks in (
            ("as gpt-5 on MCPMark", (40, 12, 13, 19, 43)),
            ("as gpt-4.1 on MCPMark", (111, 5, 1, 6, 4)),
            ("as Droid on Terminal-Bench", (25, 2, 6, 2, 10, 35)),
        )
    ),
)
TASKS, RUNS, POWERS = (5, 12, 45), (4, 32), (1, 3)
METHODS = {
    "passhat, tasks like these": "like",
    "evalstats, tasks like these": "evalstats",
    "hierarchical posterior (Bowyer 2025), tasks like these": "posterior",
    "t over tasks (Miller 2024), tasks like these": "t",
    "passhat, this suite": "suite",
    "scorio, this suite": "scorio",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """Suites of one design, and k of pass^k."""

    law: int
    tasks: int
    runs: int
    k: int

    @property
    def name(self) -> str:
        return f"pass^{self.k}, {LAWS[self.law].name}, T = {self.tasks}, n = {self.runs}"

    def draw(self, repetitions: int) -> tuple[Floats, Counts]:
        """Rates and passes, suite by suite; the same in every call."""
        rng = np.random.default_rng([SEED, self.law, self.tasks, self.runs])
        rates = LAWS[self.law].draw((repetitions, self.tasks), rng)
        return rates, rng.binomial(self.runs, rates)

    def truths(self, rates: Floats, name: str) -> Floats:
        if name in ("suite", "scorio"):
            return np.asarray((rates**self.k).mean(axis=1))
        return np.full(len(rates), LAWS[self.law].mean_power(self.k))


def tables(*, quick: bool = False) -> list[Table]:
    repetitions, few = (40, 5) if quick else (1000, 150)
    grid = [Cell(*one) for one in product(range(len(LAWS)), TASKS, RUNS, POWERS)]
    cells = grid[::9] if quick else grid
    given = [(cell, repetitions, few) for cell in cells]
    found = run_cells("peers", own_cell, given)
    others, versions = _peers(tuple(cells), repetitions, few)
    for cell, row, other in zip(cells, found, others, strict=True):
        rates = cell.draw(repetitions)[0][:few]
        row.update({n: _held(np.array(ends), cell.truths(rates, n)) for n, ends in other.items()})
    terms = {"repetitions": repetitions, "seed": SEED}
    return [_summary(cells, found, few, versions, terms), _worst(cells, found, few, terms)]


def own_cell(cell: Cell, repetitions: int, few: int) -> dict[str, tuple[float, float]]:
    """Coverage and mean width of the methods that are written here; the posterior on `few`."""
    rates, passes = cell.draw(repetitions)
    cells = tally_suites(np.full(cell.tasks, float(cell.runs)), passes)
    values = share_of_passing_subsets(np.full(passes.shape, cell.runs), passes, cell.k)
    ends = {
        "like": np.transpose(default_bounds(cells, cell.k, TASKS_LIKE_THESE, 0.95)),
        "suite": np.transpose(default_bounds(cells, cell.k, THIS_SUITE, 0.95)),
        "t": _student(np.asarray(values)),
        "posterior": np.array([_posterior(cell, row) for row in passes[:few]]),
    }
    return {
        name: _held(found, cell.truths(rates[: len(found)], name)) for name, found in ends.items()
    }


def _held(ends: Floats, truth: Floats) -> tuple[float, float]:
    inside = (ends[:, 0] <= truth + 1e-12) & (truth <= ends[:, 1] + 1e-12)
    return float(inside.mean()), float((ends[:, 1] - ends[:, 0]).mean())


def _student(values: Floats) -> Floats:
    """The mean plus and minus t standard errors over tasks, each a cluster of its runs."""
    tasks = values.shape[1]
    reach = float(stdtrit(tasks - 1, 0.975)) * values.std(axis=1, ddof=1) / np.sqrt(tasks)
    mean = values.mean(axis=1)
    return np.transpose([mean - reach, mean + reach])


def _posterior(cell: Cell, passes: Counts) -> tuple[float, float]:
    priors = prior_weights(count_cells(np.full(passes.size, cell.runs), passes))
    means = np.exp(betaln(priors.a + cell.k, priors.b) - betaln(priors.a, priors.b))
    found = priors.interval(means, 0.95)
    return found.low, found.high


@cache
def _peers(cells: tuple[Cell, ...], repetitions: int, few: int) -> tuple[list[dict[str, Any]], str]:
    """What the packages print, in a separate process; nothing where they are not installed."""
    asked = [
        {"n": c.runs, "k": c.k, "passes": c.draw(repetitions)[1][:few].tolist()} for c in cells
    ]
    answers = ask_peers(asked)
    if not answers:
        return [{} for _ in cells], "scorio and evalstats were not installed"
    versions = answers[0]["versions"]
    return [{name: one[name] for name in ("scorio", "evalstats")} for one in answers], versions


def ask_peers(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What other tools say of each, from their own environment; nothing where it is not there."""
    if not PEERS.exists():
        return []
    script = ROOT / "bench" / "calibrate" / "peer_intervals.py"
    done = subprocess.run(
        [PEERS, script], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def _summary(
    cells: list[Cell], found: list[dict[str, Any]], few: int, versions: str, terms: dict[str, int]
) -> Table:
    rows = []
    for title, name in METHODS.items():
        known = [row[name] for row in found if name in row]
        if not known:
            continue
        coverage, width = np.array(known).T
        base = "like" if "like" in title else "suite"
        own = np.array([row[base][1] for row in found if name in row])
        rows.append(
            (
                title,
                f"{coverage.mean():.3f}",
                f"{coverage.min():.3f}",
                f"{(coverage < 0.93).sum()} / {(coverage < 0.9).sum()}",
                f"{np.mean(width / own):.2f}",
            )
        )
    error = [monte_carlo_error(0.95, count) for count in (terms["repetitions"], few)]
    return Table(
        title="Compared with other tools, on the same data",
        header=("method", "mean", "worst", "cells below 0.93 / 0.90", "width / passhat's"),
        rows=rows,
        finding=f"Coverage at a nominal 0.95 over {len(cells)} cells: {len(LAWS)} laws of "
        f"difficulty (rare hard tasks, a point mass and rates of real leaderboards among them), T "
        f"in {TASKS}, n in {RUNS}, pass^k for k in {POWERS}. {versions}; they and the posterior "
        f"had the first {few} suites of every cell. One Monte Carlo standard error is "
        f"{error[0]:.3f}, of those on fewer suites {error[1]:.3f}: a worst cell lies about three "
        "below its truth.",
        **terms,
    )


def _worst(
    cells: list[Cell], found: list[dict[str, Any]], few: int, terms: dict[str, int]
) -> Table:
    rows = []
    for scope, name in (("tasks like these", "like"), ("this suite", "suite")):
        order = sorted(range(len(cells)), key=lambda i: found[i][name][0])[:6]
        rows += [
            (scope, cells[i].name, *(_shown(found[i].get(one)) for one in METHODS.values()))
            for i in order
        ]
    return Table(
        title="Compared with other tools: the cells where passhat is worst",
        header=("worst for", "cell", *METHODS),
        rows=rows,
        finding=f"Coverage / mean width. The packages and the posterior had {few} suites a cell.",
        **terms,
    )


def _shown(pair: tuple[float, float] | None) -> str:
    return "-" if pair is None else f"{pair[0]:.3f} / {pair[1]:.2f}"
