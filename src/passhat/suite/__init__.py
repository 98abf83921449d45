"""From a YAML file to a Suite: what to run and what to demand."""

from passhat.suite.load import check_suite, find_suite, load_suite, refuse_unknown_models, suite_in
from passhat.suite.yaml_tree import Problem

__all__ = [
    "Problem",
    "check_suite",
    "find_suite",
    "load_suite",
    "refuse_unknown_models",
    "suite_in",
]
