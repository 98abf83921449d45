"""Captions and titles of a page: they say what is drawn, and nothing that the headline does not."""

import re

from passhat import render_html, render_terminal
from passhat.analysis.gates.run_answer import Failure, RunAnswer
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.grid import render

OUTCOMES = {"P": "passed", "F": "failed", "E": "errored"}

# Half the tasks pass when the others fail: rounds do not differ.
SHAKY = {f"t{i}": "PF" * 10 if i % 2 else "FP" * 10 for i in range(20)}


def _report(ks=None, errors="fail", **by_system):
    rows = [
        (system, task, OUTCOMES[run])
        for system, by_task in by_system.items()
        for task, runs in by_task.items()
        for run in runs
    ]
    system, task, outcome = (list(column) for column in zip(*rows, strict=True))
    trials = Trials.from_columns(system=system, task=task, outcome=outcome)
    return measure(trials, ks=ks, errors=errors)


def test_no_caption_of_tied_systems_names_a_winner():
    page = render_html(_report(a=SHAKY, b=SHAKY))
    assert "cannot be told apart" in page
    assert not re.search("has the highest|spends least|most reliable first|loses most", page)


def test_what_identifies_the_trials_is_not_called_a_hash_of_the_input():
    report = _report(a=SHAKY, b=SHAKY)
    for text in (render_html(report), render(report, "tex")):
        assert "fingerprint of the trials" in text
        assert "input SHA-256" not in text


def test_the_counts_of_reasons_say_so_where_a_trial_has_several():
    report = _report(a={"t": "PPFF"})
    for counts, told in (((1, 1), False), ((2, 1), True)):
        failures = [
            Failure(system="a", task="t", reason=f"reason {i}", trials=n)
            for i, n in enumerate(counts)
        ]
        said = render_terminal(RunAnswer(report=report, failures=tuple(failures)))
        assert "Why trials did not pass" in said
        assert ("a trial can have several reasons" in said) is told
