"""Default values, each stated here and nowhere else."""

CONFIDENCE = 0.95
"""The confidence of intervals and verdicts."""

SEED = 0
"""The seed of random draws, so that the same input gives the same bytes."""

STORE = ".passhat/history.db"
"""The history store, in the folder where a command is called."""

KS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
"""The k of pass^k and pass@k in a report: those that the number of runs allows."""

COMPARED_KS = (1, 2, 3, 4, 5)
"""The k of a comparison, as far as runs allow."""

PROFILE_KS = (1, 2, 3, 4)
"""The k of a profile among other agents."""

HEADLINE_K = 5
"""The largest k of a headline and of a trend."""
