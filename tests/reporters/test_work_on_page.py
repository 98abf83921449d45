"""What trials changed in their workspaces: the same change once, tests against trials."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Trials, render_html
from passhat.analysis.reports.measure import measure
from passhat.records import Outcome
from passhat.records.transcript import CleanTexts
from passhat.reporters.answers import report_page
from passhat.reporters.page_parts import Work, fit_transcripts, work_in

FIX = """\
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
EVIL = "--- /dev/null\n+++ b/x.html\n@@ -0,0 +1 @@\n+<script>alert(1)</script>\x1b[2J\n"
OUTCOMES = [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED, Outcome.FAILED]


def kept(diff, **tests):
    told = [{"name": name, "outcome": outcome, "message": ""} for name, outcome in tests.items()]
    left = {"stage": "grader", "sandbox": "bubblewrap", "diff": diff, "flags": [], "tests": told}
    return json.dumps({"answer": "done", "workspace": left})


@pytest.fixture(scope="module")
def page():
    trials = Trials.from_columns(
        system=["agent"] * 4, task=["add"] * 4, trial=range(4), outcome=OUTCOMES
    )
    said = [
        kept(FIX, one="passed", two="passed"),
        kept(EVIL, one="failed", two="passed"),
        kept(FIX, one="passed", two="passed"),
        kept("", one="failed", two="skipped"),
    ]
    transcripts = {("agent", "add", n): text for n, text in enumerate(said)}
    return render_html(measure(trials), transcripts=transcripts, trials=trials)


def test_trials_that_made_the_same_change_are_one_group_and_the_largest_is_first(page):
    titles = re.findall(r"<b>(\d of 4 trials [^<]*)</b>", page)
    assert titles == [
        "2 of 4 trials made this change; 2 passed",
        "1 of 4 trials made this change; 0 passed",
        "1 of 4 trials changed nothing; 0 passed",
    ]


def test_a_diff_is_shown_line_by_line_and_never_interpreted(page):
    assert '<span class="del">-    return a - b\n</span>' in page
    assert '<span class="add">+    return a + b\n</span>' in page
    assert "+&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page


def test_tests_stand_against_trials(page):
    table = page.partition('<table class="tests">')[2].partition("</table>")[0]
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', table)
    ends = {name: re.findall(r">([✓✕–])<", cells) for name, cells in rows}  # noqa: RUF001 - as shown
    assert ends == {"one": ["✓", "✕", "✓", "✕"], "two": ["✓", "✓", "✓", "–"]}  # noqa: RUF001
    assert re.findall(r'<th scope="col" class="n"><a href="([^"]+)">#(\d)</a>', table)[-1][1] == "4"


def test_a_page_of_trials_without_workspaces_has_no_such_section():
    trials = Trials.from_columns(system=["a"], task=["t"], trial=[0], outcome=[Outcome.PASSED])
    said = {("a", "t", 0): json.dumps({"answer": 'the "workspace" is clean'})}
    assert 'id="changes"' not in render_html(measure(trials), transcripts=said, trials=trials)


@pytest.mark.parametrize("diff", ["", FIX])
def test_a_long_transcript_keeps_what_it_says_of_the_workspace(diff):
    said = json.loads(kept(diff, one="passed", two="failed"))
    said["messages"] = [{"role": "tool", "text": "0123456789" * 30_000}]
    texts = CleanTexts({("agent", "add", 0): json.dumps(said)})
    trials = Trials.from_columns(
        system=["agent"], task=["add"], trial=[0], outcome=[Outcome.FAILED]
    )
    (work,) = fit_transcripts(measure(trials), texts, trials=trials).work.values()
    assert work == Work(diff=diff, tests={"one": "passed", "two": "failed"})


@given(st.lists(st.sampled_from(["", "a", "b", "c", "d"]), min_size=1, max_size=12))
def test_every_trial_is_in_the_one_group_of_its_change(diffs):
    work = {("a", "t", n): Work(diff=diff, tests={}) for n, diff in enumerate(diffs)}
    (task,) = report_page.work_view(work, {}, {})
    numbers = [run.number for group in task.changes for run in group.runs]
    assert sorted(numbers) == sorted(f"#{n + 1}" for n in range(len(diffs)))
    sizes = [len(group.runs) for group in task.changes]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == len(set(diffs))


def test_what_is_too_much_for_a_page_is_cut_with_a_note():
    long = "".join(f"+line {n}\n" for n in range(1000))
    work = {
        ("a", "t", n): Work(
            diff=f"+++ b/x\n+{n}\n{long}", tests={f"test {m}": "passed" for m in range(100)}
        )
        for n in range(10)
    }
    (task,) = report_page.work_view(work, {}, {})
    assert len(task.changes) == report_page.MOST_CHANGES
    assert len(task.tests) == report_page.MOST_TESTS
    assert task.notes == ("4 further changes of fewer trials.", "60 further tests.")
    assert task.changes[0].lines[-1] == ("hunk", "[702 further lines]")
    many = {("a", f"t{n}", 0): Work(diff="", tests={}) for n in range(100)}
    assert len(report_page.work_view(many, {}, {})) == report_page.MOST_TASKS_WORKED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"workspace": 3}',
        '{"workspace": {"stage": "setup"}}',
        '{"answer": "done", "workspace": {"diff": null}}',
    ],
)
def test_a_transcript_that_tells_of_no_work_has_none(text):
    assert work_in(text) is None
