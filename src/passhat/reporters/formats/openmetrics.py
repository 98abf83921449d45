"""Rates and verdicts as OpenMetrics, for a dashboard or GitLab's metrics report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.safe_text import safe_text
from passhat.reporters.test_cases import ReportedCase, TestSuite

_HELP = {
    "passhat_task_pass_rate": "Pass rate of a task, with the ends of its interval.",
    "passhat_task_runs": "Runs of a task.",
    "passhat_pass_hat": "Chance that k attempts at a task all succeed, over the suite.",
    "passhat_gate_verdict": "1 for PASS, 0 for FAIL, 0.5 for UNDECIDED.",
}
_VERDICTS = {"PASS": 1.0, "FAIL": 0.0, "UNDECIDED": 0.5}
_STREAK = re.compile(r"pass\^(\d+)(?:_(low|high))?")

Sample = tuple[str, Mapping[str, str], float]


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """A gauge for each number of the test cases, sorted by name."""
    by_name: dict[str, list[Sample]] = {name: [] for name in _HELP}
    for suite in kind.test_suites(answer):
        for sample in _samples(suite):
            by_name[sample[0]].append(sample)
    lines = [line for name, found in by_name.items() if found for line in _family(name, found)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(name: str, samples: list[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {_HELP[name]}"
    yield f"# TYPE {name} gauge"
    for _, labels, value in samples:
        written = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{{{written}}} {value:g}"


def _samples(suite: TestSuite) -> Iterator[Sample]:
    for name, value in suite.values.items():
        if match := _STREAK.fullmatch(name):
            labels = {"system": suite.name, "k": match[1], "bound": match[2] or "value"}
            yield "passhat_pass_hat", labels, float(str(value))
    for case in suite.cases:
        yield from _case_samples(suite, case)


def _case_samples(suite: TestSuite, case: ReportedCase) -> Iterator[Sample]:
    values = case.values
    if "verdict" in values:
        labels = {"gate": case.name, "system": case.classname.removeprefix("passhat.gates.")}
        yield "passhat_gate_verdict", labels, _VERDICTS[str(values["verdict"])]
    if "rate" not in values:
        return
    labels = {"system": suite.name, "task": case.name}
    for key, bound in (("rate", "value"), ("rate_low", "low"), ("rate_high", "high")):
        if values[key] != "":
            yield "passhat_task_pass_rate", {**labels, "bound": bound}, float(str(values[key]))
    yield "passhat_task_runs", labels, float(str(values["runs"]))


def _escaped(text: str) -> str:
    """A label's value, whose characters that steer or reorder text are written out."""
    return safe_text(text).replace("\\", "\\\\").replace('"', '\\"')
