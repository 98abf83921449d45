"""Intervals of other tools for the same tables: runs in an environment of its own.

Reads JSON from standard input, a list of {"n", "k", "passes": a row of counts for each suite}, and
writes a list of {"scorio": ends of each suite, "evalstats": ends of each suite, "versions"}. Of
{"judged": suites with verdict, row and passed of labels} it writes those of truescore and judgy.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from math import comb
from typing import Any

import numpy as np


def main() -> None:
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    json.dump([judged(one) if "judged" in one else passes(one) for one in asked], sys.stdout)


def passes(asked: dict[str, Any]) -> dict[str, Any]:
    """pass^k of tasks with n runs each."""
    from evalstats import mean_ci
    from scorio.eval import pass_hat_k_ci

    n, k = asked["n"], asked["k"]
    shares = np.array([comb(c, k) / comb(n, k) for c in range(n + 1)])
    scorio, evalstats = [], []
    for counts in asked["passes"]:
        matrix = (np.arange(n) < np.array(counts)[:, None]).astype(int)
        _, _, low, high = pass_hat_k_ci(matrix, k)
        scorio.append((float(low), float(high)))
        found = mean_ci(shares[np.array(counts)], score_range=(0.0, 1.0), rng=0)
        evalstats.append((float(found.ci_low), float(found.ci_high)))
    versions = _versions("scorio", "evalstats")
    return {"scorio": scorio, "evalstats": evalstats, "versions": versions}


def judged(asked: dict[str, Any]) -> dict[str, Any]:
    """The pass rate of trials that a judge graded, of which some at random have labels."""
    from judgy import estimate_success_rate
    from truescore import ppi_estimate

    np.random.seed(0)  # judgy draws from the global generator
    truescore: list[tuple[float, float]] = []
    judgy: list[tuple[float, float] | None] = []
    for suite in asked["judged"]:
        verdict, row, passed = (np.array(suite[name]) for name in ("verdict", "row", "passed"))
        found = ppi_estimate(verdict, passed, row)
        truescore.append((max(0.0, float(found.low)), min(1.0, float(found.high))))
        try:
            _, low, high = estimate_success_rate(
                passed, verdict[row], verdict, bootstrap_iterations=400
            )
            judgy.append((low, high))
        except (ValueError, RuntimeError):
            judgy.append(None)
    return {"truescore": truescore, "judgy": judgy, "versions": _versions("truescore", "judgy")}


def _versions(*names: str) -> str:
    return ", ".join(f"{name} {version(name)}" for name in names)


if __name__ == "__main__":
    main()
