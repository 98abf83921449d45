"""The facts: tasks, systems, trials, and the table of trials the analysis reads."""

from passhat.records.tally import FeatureSums, Tally
from passhat.records.trial import FEATURES, ErrorPolicy, Outcome, Trial
from passhat.records.trials import Labels, Source, Trials

__all__ = [
    "FEATURES",
    "ErrorPolicy",
    "FeatureSums",
    "Labels",
    "Outcome",
    "Source",
    "Tally",
    "Trial",
    "Trials",
]
