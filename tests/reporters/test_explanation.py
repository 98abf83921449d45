"""Why runs fail, in words: the answer first, the same in every format, whatever the data holds."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from bench.calibrate.simulated_agents import omitted, simulate_runs

from passhat import Trials
from passhat.analysis.explaining.explain import CHECK, explain
from passhat.analysis.explaining.run_diff import diff_runs
from passhat.analysis.explaining.trajectories import NOTHING, ToolMatrix
from passhat.errors import ArgumentError, InputError
from passhat.ingest import read_with_transcripts
from passhat.records import Outcome
from passhat.records.transcript import Call, Check, Transcript, Turn
from passhat.reporters import formats_for, render
from passhat.reporters.answers.explanation import MOST_TOOLS, compared_text, tool_heat, verdict
from passhat.reporters.answers.report_page import why_view

HOSTILE = "<script>alert(1)</script>\x1b]0;owned\x07\u202e[x](http://evil) | *b* {0} {tool} \x00"


def table_of(runs):
    """Runs as what a reader gives: trials, and texts by trial."""
    trials = Trials.from_columns(
        system=[run.system for run in runs],
        task=[run.task for run in runs],
        trial=[run.trial for run in runs],
        outcome=[int(run.outcome) for run in runs],
        score=[None if run.outcome is Outcome.ERRORED else int(run.passed) for run in runs],
    )
    said = {run.key: run.transcript.to_json() for run in runs if run.transcript is not None}
    return trials, said


@pytest.fixture(scope="module")
def omission():
    rng = np.random.default_rng(3)
    world = simulate_runs(8, 8, rng, plant=omitted, share=0.3, fails=(0.95, 0.05))
    return table_of(world.compared.runs)


@pytest.fixture(scope="module")
def explained(omission):
    return explain(*omission, shuffles=499)


def hostile_table():
    runs = []
    for trial in range(10):
        failed = trial < 5
        calls = (Call(name=HOSTILE, arguments=json.dumps({HOSTILE: HOSTILE}), id="1"),) * (
            1 + failed
        )
        said = Transcript(
            messages=(
                Turn(role="user", text=HOSTILE),
                Turn(role="assistant", calls=calls, text=HOSTILE),
                Turn(role="tool", text=f"Error: {HOSTILE}", call_id="1", name=HOSTILE),
            ),
            stop_reason=HOSTILE if trial == 4 else "done",
            checks=(Check(target=HOSTILE, score=0.0, message=HOSTILE),) * (trial == 3),
        )
        runs.append((trial, failed, said))
    trials = Trials.from_columns(
        system=[HOSTILE] * 10,
        task=[HOSTILE] * 10,
        trial=[trial for trial, _, _ in runs],
        passed=[not failed for _, failed, _ in runs],
    )
    return trials, {(HOSTILE, HOSTILE, trial): said.to_json() for trial, _, said in runs}


def test_the_answer_comes_first_and_every_format_says_the_same_sentence(explained):
    headline = (
        "The agent skips get_order: in 24 of 30 failing trials it did not call it where others did."
    )
    assert verdict(explained) == headline
    data = json.loads(render(explained, "json"))
    assert data["verdict"] == headline
    assert " ".join(render(explained).split()).startswith(headline)
    assert render(explained, "markdown").startswith(f"**{headline}**".replace("_", "\\_"))
    text = " ".join(render(explained, verbose=True).split())
    page, markdown = render(explained, "html"), render(explained, "markdown", verbose=True)
    assert text.startswith(headline)
    assert headline in page
    sentence = data["causes"][0]["sentence"]
    assert sentence in text
    assert sentence in page
    assert sentence.replace("_", "\\_") in markdown


def test_categories_say_the_same_in_every_format(explained):
    data = json.loads(render(explained, "json"))
    assert sum(one["count"] for one in data["categories"]) == data["counts"]["failed"]
    for one in data["categories"]:
        told = f"{one['kind']}: {one['what']}"
        assert told.replace("_", "\\_") in render(explained, "markdown", verbose=True)
        assert told in render(explained, "html").replace("<wbr>", "")


def test_the_commands_it_suggests_put_a_failing_run_beside_a_passing_one(omission, explained):
    shown = render(explained, results="log.json", verbose=True)
    commands = re.findall("passhat why log.json.*", shown)
    cause = explained.causes[0]
    system, task, trial = cause.example.failing
    # people count runs from 1, and these logs count them from 0
    numbers = trial + 1, cause.example.passing[2] + 1
    assert commands[0] == f"passhat why log.json '{task}' {numbers[0]} {numbers[1]}"
    found = diff_runs(*omission, task, trial, cause.example.passing[2], system=system)
    assert (found.left.passed, found.right.passed) == (False, True)
    (command,) = re.findall("passhat why log.json.*", render(explained, results="log.json"))
    *_, task, left, right = shlex.split(command)
    found = diff_runs(*omission, task, int(left) - 1, int(right) - 1)
    assert (found.left.passed, found.right.passed) == (False, True)
    for verbose in (False, True):
        assert "passhat why" not in render(explained, results=None, verbose=verbose)


def test_every_cause_on_a_page_has_a_trial_to_read_also_one_that_another_shows(explained):
    twice = replace(explained, causes=(explained.causes[0],) * 2)
    page = render(twice, "html")
    first, second = re.findall(r'<section class="pane"><h2><span class="chip bad">.*?</section>',
                               page, re.DOTALL)  # fmt: skip
    assert '<details class="beside" id="pair-1">' in first
    assert re.search('<a href="#pair-1">Read task .* which passed', second)


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
def test_nothing_from_the_data_steers_or_becomes_markup(name):
    trials, said = hostile_table()
    for answer in (explain(trials, said, shuffles=199), diff_runs(trials, said, HOSTILE)):
        if name not in formats_for(answer):
            continue
        shown = render(answer, name)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\x00" not in shown
        if name == "html":
            assert "<script>alert" not in shown
        if name == "markdown":
            assert "<script>" not in shown
            assert "[x](http" not in shown


def test_what_cannot_be_known_is_said():
    def said_of(outcomes, calls=("look",)):
        runs = [
            (
                trial,
                Transcript(
                    messages=(Turn(role="assistant", calls=tuple(Call(name=c) for c in calls)),)
                ).to_json(),
            )
            for trial in range(len(outcomes))
        ]
        table = Trials.from_columns(
            task=["a"] * len(outcomes), passed=[one == "P" for one in outcomes]
        )
        found = explain(table, {("system", "a", t): text for t, text in runs})
        assert verdict(found) in " ".join(render(found).split())
        return verdict(found)

    assert said_of("PPPP") == "No trial failed: there is nothing to explain."
    assert said_of("FFFF").startswith("No task both passed and failed")
    assert said_of("PF").startswith("The calls do not tell why: in 1 of 1 failing trial ")
    assert said_of("PFPFPFPFPFPF").startswith("The calls do not tell why: in 6 of 6 failing ")
    table = Trials.from_columns(task=["a", "a"], passed=[True, False])
    assert "no transcripts" in verdict(explain(table, {}))


def test_where_a_difference_is_named_no_headline_says_that_the_calls_tell_nothing(omission):
    causes = explain(*omission, shuffles=199).causes
    said = Transcript(messages=(Turn(role="assistant", calls=(Call(name="look"),)),)).to_json()
    table = Trials.from_columns(task=["a"] * 4, passed=[True, False] * 2)
    alike = explain(table, {("system", "a", trial): said for trial in range(4)})
    assert verdict(alike).startswith("The calls do not tell why")
    named = verdict(replace(alike, causes=causes))
    assert named.startswith(causes[0].sentence)
    assert "The calls do not tell why" not in named


def test_tasks_without_transcripts_are_not_said_to_never_go_both_ways():
    trials = Trials.from_columns(task=["a", "a"], passed=[True, False])
    page = str(render(explain(trials, {}), "html"))
    assert "have transcripts of passing and failing trials" in page
    assert "both pass and fail" not in page


def test_an_answer_without_a_cause_says_how_many_runs_would_find_one(explained):
    table = Trials.from_columns(task=["a"] * 2, passed=[True, False])
    said = Transcript(messages=(Turn(role="user", text="Hi"),)).to_json()
    found = explain(table, {("system", "a", trial): said for trial in (0, 1)})
    shown = " ".join(render(found, verbose=True).split())
    assert "With 5 trials of one task no cause can be named" in shown


def test_two_runs_beside_each_other_tell_where_they_part(omission):
    trials, said = omission
    found = diff_runs(trials, said, "task 0")
    left, right = found.left.trial + 1, found.right.trial + 1
    headline = (
        f"task 0: trial {left} (failed) did not call get_order, as trial {right} (passed) did."
    )
    assert render(found).startswith(headline)
    text = render(found, verbose=True)
    assert text.startswith(headline)
    data = json.loads(render(found, "json"))
    assert data["pairs"][data["parting"]]["relation"] != "same"
    assert all(pair["relation"] == "same" for pair in data["pairs"][: data["parting"]])
    assert "<- first difference" in text


def test_the_headline_of_a_call_that_is_missing_reads_as_a_sentence(explained):
    runs = explained.divergences[0].runs
    missing = replace(explained.divergences[0], kind="call missing", what="mail", runs=runs[:3])
    other = replace(missing, what="refund", runs=runs[3:5])
    said = "it did not call it where others did."
    alone = verdict(replace(explained, divergences=(missing,)))
    assert alone == f"The agent skips mail: in 3 of 3 failing trials {said}"
    both = verdict(replace(explained, divergences=(missing, other)))
    assert both == f"The agent skips mail: in 3 of 5 failing trials {said}"


def test_a_run_beside_itself_has_no_parting(omission):
    trials, said = omission
    found = diff_runs(trials, said, "task 0", 0, 0)
    assert found.parting is None
    assert "made the same" in render(found)


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (("nobody",), ArgumentError, "no task is called 'nobody': there are task 0, "),
        (("task 0", 99), ArgumentError, "left must be the number of a trial: 0, 1"),
        (("task 0", 0, 99), ArgumentError, "right must be the number of a trial"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(omission, words, kind, message):
    with pytest.raises(kind, match=message):
        diff_runs(*omission, *words)


def test_several_systems_must_be_chosen_from():
    table = Trials.from_columns(system=["a", "b"], task=["t", "t"], passed=[True, False])
    with pytest.raises(ArgumentError, match="system must be given: task t was tried by a, b"):
        diff_runs(table, {}, "t")
    with pytest.raises(InputError, match="trial #1 of task t has no transcript"):
        diff_runs(table, {}, "t", 0, 0, system="a")
    with pytest.raises(ArgumentError, match="system must be one of a, b"):
        diff_runs(table, {}, "t", system="c")


def test_nothing_is_concluded_from_calls_where_none_was_recorded():
    rows = [{"task": t, "passed": n % 2, "output": f"answer {n}"} for t in "abc" for n in range(8)]
    trials, said = read_with_transcripts(json.dumps(rows).encode())
    found = explain(trials, said, shuffles=199)
    assert found.counts.without_calls == found.counts.runs == 24
    assert "No tool calls were recorded" in verdict(found)
    assert "24 trials left no tool call" in compared_text(found)


def _answered(*outcomes):
    """One task whose trials passed, failed or errored, with what each answered."""
    rows = ["task,passed,error,output"]
    for outcome in outcomes:
        error = "no route to host" if outcome == "error" else ""
        rows.append(f"refund,{outcome == 'pass'},{error},{outcome}")
    return explain(*read_with_transcripts("\n".join(rows).encode()))


def test_trials_that_errored_are_not_called_failing_and_their_error_is_shown():
    some = " ".join(render(_answered("pass", "fail", "error", "error", "fail")).split())
    assert 'all 2 failing trials answered "fail"' in some
    assert "And 2 of 5 trials errored: no route to host." in some
    assert "2/3 refund" in some
    only = render(_answered("pass", "error", "error"))
    assert only.split("\n")[0] == "No trial failed, but 2 of 3 trials errored: no route to host."
    assert "errored" not in render(_answered("pass", "fail"))


@pytest.mark.parametrize("seed", range(8))
def test_the_heat_map_of_tools_has_every_count_and_is_blue_where_the_tool_is_the_same(seed):
    rng = np.random.default_rng(seed)
    tools = [NOTHING, *(f"tool_{i}" for i in range(rng.integers(2, 14)))]
    counts = {
        (one, other): int(rng.integers(1, 60))
        for one in tools
        for other in tools
        if (one or other) and rng.random() < 0.5
    } | {("tool_0", "tool_1"): 61}
    matrix = ToolMatrix(counts=counts, given=bool(seed % 2))
    heat = tool_heat(matrix)
    shown = (*matrix.tools[:MOST_TOOLS], NOTHING)
    assert heat.tools == tuple(name or "no call" for name in shown)
    assert [name for name, _ in heat.rows] == list(heat.tools)
    warmth = {"half": 1, "few": 2, "none": 3}
    other_tools = []
    for one, (_, cells) in zip(shown, heat.rows, strict=True):
        for other, (count, level) in zip(shown, cells, strict=True):
            assert count == counts.get((one, other), 0)
            assert (level == "") == (count == 0)
            assert (level == "most") == (one == other and count > 0)
            if count and one != other:
                other_tools.append((count, warmth[level]))
    assert [warm for _, warm in sorted(other_tools)] == sorted(warm for _, warm in other_tools)
    assert heat.title.startswith("Failing trials called tool_1 61 times where")


@pytest.mark.parametrize("checks", [1, 2])
def test_on_a_report_the_only_check_goes_without_saying(explained, checks):
    ways = ("outcome: left part undone", "outcome: never began", "format: is no JSON")
    some = explained.categories[0]
    kinds = [replace(some, kind=CHECK, what=what) for what in ways[: checks + 1]]
    view = why_view(replace(explained, categories=tuple(kinds)), {})
    shown = ["Left part undone", "Never began"]
    if checks > 1:
        shown = ["Outcome: left part undone", "Outcome: never began", "Format: is no JSON"]
    assert [group.title for group in view.groups] == shown
