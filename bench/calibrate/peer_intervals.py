"""Intervals of scorio and evalstats for tables of passes: runs in an environment of its own.

Reads JSON from standard input, a list of {"n", "k", "passes": a row of counts for each suite}, and
writes a list of {"scorio": ends of each suite, "evalstats": ends of each suite, "versions"}.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from math import comb

import numpy as np


def main() -> None:
    warnings.simplefilter("ignore")
    from evalstats import mean_ci
    from scorio.eval import pass_hat_k_ci

    versions = f"scorio {version('scorio')}, evalstats {version('evalstats')}"
    answers = []
    for asked in json.load(sys.stdin):
        n, k = asked["n"], asked["k"]
        shares = np.array([comb(c, k) / comb(n, k) for c in range(n + 1)])
        scorio, evalstats = [], []
        for passes in asked["passes"]:
            matrix = (np.arange(n) < np.array(passes)[:, None]).astype(int)
            _, _, low, high = pass_hat_k_ci(matrix, k)
            scorio.append((float(low), float(high)))
            found = mean_ci(shares[np.array(passes)], score_range=(0.0, 1.0), rng=0)
            evalstats.append((float(found.ci_low), float(found.ci_high)))
        answers.append({"scorio": scorio, "evalstats": evalstats, "versions": versions})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
