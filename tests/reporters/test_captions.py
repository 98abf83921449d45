"""Captions and titles of a page: they say what is drawn, and nothing that the headline does not."""

import re

from passhat import rank, render_html, render_terminal, simulate
from passhat.analysis.gates.run_answer import Failure, RunAnswer
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.rendering import render

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
    assert "are tied" in page
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
        said = render_terminal(RunAnswer(report=report, failures=tuple(failures)), verbose=True)
        assert "Why trials did not pass" in said
        assert ("a trial can have several reasons" in said) is told


def _headings(page):
    return re.findall(r'<h\d class="of-figure"[^>]*>(.*?)</h\d>', page)


def test_every_heading_of_a_picture_states_a_number():
    mixed = {f"t{i}": "PPPF"[i % 4 :] + "PF"[: i % 3] + "PPPP" for i in range(16)}
    for report in (_report(a=SHAKY), _report(a=SHAKY, b=mixed)):
        headings = _headings(render_html(report))
        assert len(headings) >= 2
        assert not [one for one in headings if not re.search(r"\d", one)]


def test_the_heading_of_the_systems_agrees_with_the_answer_at_every_k():
    steady = {f"t{i}": "PPPPPPPP" if i < 18 else "FFFFFFFF" for i in range(20)}
    report = _report(steady=steady, shaky=SHAKY)
    for k in (1, 2, 4):
        leaders = report.leaders_at(k)
        figure = report.plots.compared(leaders, k=k)
        tied = len(leaders.names) > 1
        assert ("cannot be told apart" in figure.title) is tied
        assert ("has the highest" in figure.title) is not tied


def test_pictures_name_the_systems_that_they_leave_out():
    once = {task: runs[:1] for task, runs in SHAKY.items()}
    report = _report(a=SHAKY, b=SHAKY, single=once)
    figure = report.plots.compared(report.leaders)
    assert "single" not in [row[0] for row in figure.rows]
    assert "Left out, as they have no pass^" in figure.finding
    assert "single" in figure.finding
    assert "1 agent without a curve left out" in report.plots.curves().finding


def test_a_paper_says_how_often_every_agent_ran_and_not_only_the_first():
    fewer = {f"t{i}": "PF" for i in range(12)}
    for report, told in (
        (_report(a=SHAKY), "We ran 1 agent 20 times on each of 20 tasks."),
        (_report(a=SHAKY, b=SHAKY), "We ran 2 agents 20 times on each of 20 tasks."),
        (_report(a=SHAKY, b=fewer), "We ran 2 agents 2 to 20 times on each of 12 to 20 tasks."),
    ):
        assert told in render(report, "tex")


def test_a_paper_says_how_the_ranks_were_found():
    trials = simulate(tasks=8, runs=4, rate={"a": 0.9, "b": 0.6, "c": 0.3})
    text = " ".join(render(rank(trials), "tex").split())
    assert "We ranked 3 agents by pass@1 on the 8 tasks that all of them ran." in text
    assert "similar tasks and hold together with 95\\% confidence" in text
