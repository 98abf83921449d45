"""`factors:` of a suite: cells that are tasks of their own, one level at a time."""

import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import passhat
from passhat.cli import main
from passhat.errors import ArgumentError, SuiteError
from passhat.journeys.new_suite import PROGRAMS
from passhat.journeys.running import RUNS_ALL
from passhat.records.suite import plain_pairings, vary
from passhat.runner.models.exchange import Reply
from passhat.suite import load_suite
from passhat.suite.build import FIXED, prompt_digest, wording_fault
from passhat.testing import WireServer

SUITE = """\
users:
  patient: {{say: ["Hi"]}}
  terse: {{say: ["7."]}}
factors:
{factors}
agents:
  - name: refund
    model: scripted
    runs: 2
    user: {{goal: a refund}}
    script: [{{answer: ok}}]
    faults: [{{kind: truncated_answer, nth: 1}}]
  - name: greet
    model: scripted
    runs: 2
    prompt: Say hello.
    script: [{{answer: hello}}]
"""


def loaded(tmp_path, *factors):
    path = tmp_path / "suite.yml"
    path.write_text(SUITE.format(factors="\n".join(f"  {line}" for line in factors)))
    return load_suite(path)


def cells(suite):
    return {pairing.task.name: pairing.task.at for pairing in suite.pairings}


def test_each_level_is_run_with_all_else_at_its_reference(tmp_path):
    suite = loaded(
        tmp_path,
        "user: [terse, patient]",
        'wording: {polite: "Please. {prompt}"}',
        "fault: [none, all]",
    )
    assert cells(vary(suite, None)) == {
        "refund": ("user=terse", "fault=none"),
        "refund [fault=all]": ("user=terse", "fault=all"),
        "refund [user=patient]": ("user=patient", "fault=none"),
        "greet": ("wording=as written", "fault=none"),
        "greet [fault=all]": ("wording=as written", "fault=all"),
        "greet [wording=polite]": ("wording=polite", "fault=none"),
    }
    (polite,) = [p.task for p in suite.pairings if "polite" in p.task.name]
    assert (polite.prompt, polite.base) == ("Please. Say hello.", "greet")


def test_every_level_is_run_with_every_other_where_that_is_asked_for(tmp_path):
    suite = loaded(tmp_path, "fault: [none, all]", "cross: all")
    names = set(cells(vary(suite, None)))
    assert "refund [user=terse, fault=all]" in names
    assert len(names) == 2 * 2 + 2


def test_gates_are_about_the_reference_of_every_factor(tmp_path):
    suite = vary(loaded(tmp_path, "fault: [none, all]"), None)
    assert [p.task.name for p in plain_pairings(suite)] == ["refund", "greet"]
    assert suite.trials == 2 * 5


def test_a_gate_names_another_level_and_one_that_nobody_runs_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "levels_agent.py").write_text("def ask(prompt): return prompt[:2]\n")
    (tmp_path / "suite.yml").write_text(
        "systems: [{name: agent, python: 'levels_agent:ask'}]\n"
        "tasks: [{name: greet, prompt: Hi, runs: 8, expect: [{exact: Hi}]}]\n"
        'factors: {wording: {rude: "No. {prompt}", polite: "Hi. {prompt}"}}\n'
        "gates:\n"
        "  - pass@1 >= 0.5\n"
        "  - {require: pass@1 >= 0.5, at: {wording: rude}}\n"
        "  - pass@1 >= 0.5 at wording=polite\n"
        "  - pass@1 >= 0.9 at wording=all\n"
    )
    answer = passhat.run("suite.yml", store="h.db")
    assert [v.status for v in answer.verdicts] == ["PASS", "FAIL", "PASS", "FAIL"]
    assert [v.runs for v in answer.verdicts] == [8, 8, 8, 24]
    stored = passhat.gate("h.db", suite="suite.yml")
    assert [v.status for v in stored] == [v.status for v in answer.verdicts]
    with pytest.raises(ArgumentError, match=r"must find tasks at its levels; there are wording=as"):
        passhat.run("suite.yml", require=["pass@1 >= 0.5 at wording=rood"])


LEVELS = """
defaults: {runs: 12}
systems:
  - {name: agent, python: "lone_levels:ask"}
factors:
  wording: {one: "1 {prompt}", two: "2 {prompt}", three: "3 {prompt}", four: "4 {prompt}"}
tasks:
  - {name: a, prompt: hi, expect: [{contains: hello}]}
  - {name: b, prompt: hi, expect: [{contains: hello}]}
gates: ["pass@1 >= 0.6"]
"""


def test_gates_judge_the_reference_until_they_are_decided_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # It fails as the task is written, and passes under every other wording.
    tmp_path.joinpath("lone_levels.py").write_text(
        "def ask(prompt):\n    return 'no' if prompt == 'hi' else 'hello'\n"
    )
    suite = tmp_path / "passhat.yml"
    suite.write_text(LEVELS)
    fixed = passhat.run(suite, store="h.db")
    decided = passhat.run(suite, store="h.db", until_settled=True)
    for answer in (fixed, decided):
        assert answer.verdicts.status == "FAIL"
        assert answer.verdicts[0].runs == 24
    assert RUNS_ALL in decided.report.notes
    assert RUNS_ALL not in fixed.report.notes


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        ("user: [tense]", 'Did you mean "terse"'),
        ("fault: [all]", r"must be \[none, all\]"),
        ("wording: {rude: Now}", "needs {prompt} where the prompt goes"),
        ("cross: some", "one at a time"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(tmp_path, factor, said):
    with pytest.raises(SuiteError, match=said):
        loaded(tmp_path, factor)


WORDED = """\
factors: {wording: {formal: {file: wordings.jsonl}, brief: {file: wordings.jsonl}}}
agents:
  - {name: refund, model: scripted, prompt: Refund order 7., script: [{answer: ok}]}
  - {name: greet, model: scripted, prompt: Say hello., script: [{answer: hello}]}
"""


def line(text, *, prompt="Refund order 7.", wording="formal", **more):
    made = {"task": "refund", "wording": wording, "text": text}
    return json.dumps({**made, "prompt_sha256": prompt_digest(prompt), **more}) + "\n"


def worded(tmp_path, *lines):
    (tmp_path / "wordings.jsonl").write_text("".join(lines))
    (tmp_path / "suite.yml").write_text(WORDED)
    return load_suite(tmp_path / "suite.yml")


def test_wordings_of_a_file_are_levels_of_the_tasks_that_have_them(tmp_path):
    suite = worded(
        tmp_path,
        line("Please be so kind as to refund order 7."),
        line("Money back.", wording="brief", reviewed="Ana, 2026-11-17"),
    )
    assert {task.name: task.prompt for task in suite.tasks} == {
        "refund": "Refund order 7.",
        "refund [wording=formal]": "Please be so kind as to refund order 7.",
        "refund [wording=brief]": "Money back.",
        "greet": "Say hello.",
    }
    assert {task.name: task.tags for task in suite.tasks if task.tags} == {
        "refund [wording=formal]": ("not reviewed",)
    }


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (line("Refund order 8."), 'the wording "formal" of "refund" loses 7; correct it'),
        (line("Refund order 7 within 3 days."), "adds 3"),
        (line("Refund order 7. " * 9), "is more than 3 times as long"),
        (line(" Refund  order 7."), "is the prompt itself"),
        (line("Order 7: refund it.", prompt="Refund order 9."), "was made from another prompt"),
        ("not json\n", "not JSON"),
    ],
)
def test_a_wording_that_asks_for_something_else_is_refused(tmp_path, made, said):
    with pytest.raises(SuiteError, match=re.escape(said)):
        worded(tmp_path, made)


@pytest.mark.parametrize(
    "part",
    ["42", "3.5", '"late order"', "ana@example.org", "https://a.org/x?y=1", "/etc/hosts", "{id}"],
)
def test_what_is_fixed_may_be_moved_but_neither_lost_nor_added(part):
    prompt, moved = f"Look at {part} and answer.", f"Answer after you looked at {part} please."
    assert wording_fault(prompt, moved) is None
    without = "Answer after you looked at it please."
    assert wording_fault(prompt, without).startswith("loses")
    assert wording_fault(without, f"{moved}").startswith("adds")


def test_a_model_rewords_once_and_what_breaks_a_rule_is_left_out(tmp_path):
    (tmp_path / "suite.yml").write_text(WORDED.partition("\n")[2])
    asked = []

    def answer(request):
        said = request.body["messages"][0]["content"]
        asked.append(said)
        if "hello" in said:
            return Reply(text="Say hello.")  # the prompt itself, however often it is asked
        return Reply(text="Kindly refund order 7." if "formal" in said else "Order 7: refund!")

    out = tmp_path / "wordings.jsonl"
    with WireServer(answer) as server:
        words = ["vary", str(tmp_path / "suite.yml"), "--model", "m", "--base-url", server.url]
        words += ["--kinds", "formal,brief", "-o", str(out)]
        done = CliRunner().invoke(main, words)
        again = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "wrote 2 wordings to" in done.output
    assert "left out: greet, formal: it is the prompt itself" in done.output
    assert len(asked) == 2 + 2 * 3
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert [(row["task"], row["wording"], row["reviewed"]) for row in rows] == [
        ("refund", "formal", None), ("refund", "brief", None),
    ]  # fmt: skip
    assert again.exit_code == 2
    assert "exists, with what people reviewed" in again.output
    (tmp_path / "suite.yml").write_text(WORDED)
    assert "refund [wording=brief]" in {t.name for t in load_suite(tmp_path / "suite.yml").tasks}


PARTS = [
    "42",
    "3.5",
    '"late order"',
    "ana@example.org",
    "https://a.org/x?y=1",
    "/etc/hosts",
    "{id}",
]


@given(
    st.lists(st.sampled_from(["please", "refund", "Order", "soon", *PARTS]), min_size=2),
    st.integers(0, 5000),
)
def test_programs_keep_what_is_fixed_and_say_the_same_for_the_same_seed(words, seed):
    prompt = " ".join(("Consider carefully", *words))
    for program in PROGRAMS.values():
        text = program(prompt, seed)
        assert re.findall(FIXED, text) == re.findall(FIXED, prompt)
        assert text != prompt
        assert program(prompt, seed) == text


def test_where_no_wording_is_left_none_is_written(tmp_path):
    (tmp_path / "no_wordings.py").write_text("def same(text, seed):\n    return text\n")
    (tmp_path / "suite.yml").write_text(WORDED.partition("\n")[2])
    out = tmp_path / "wordings.jsonl"
    words = ["vary", str(tmp_path / "suite.yml"), "--kinds", "no_wordings:same", "-o", str(out)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "left out: refund, same: it is the prompt itself" in done.output
    assert "no wording is left, so none was written" in done.output
    assert not out.exists()


def test_wordings_of_programs_need_no_model_and_no_review(tmp_path):
    (tmp_path / "my_wordings.py").write_text(
        "def backwards(text, seed):\n    return ' '.join(reversed(text.split()))\n"
        "def lossy(text, seed):\n    return 'Refund it.'\n"
    )
    (tmp_path / "suite.yml").write_text(WORDED.partition("\n")[2])
    out = tmp_path / "wordings.jsonl"
    words = ["vary", str(tmp_path / "suite.yml"), "-o", str(out)]
    kinds = "typos,my_wordings:backwards,my_wordings:lossy"
    done = CliRunner().invoke(main, [*words, "--kinds", kinds])
    assert done.exit_code == 0, done.output
    assert "left out: refund, lossy: it loses 7" in done.output
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert {(row["wording"], row["program"]) for row in rows} == {
        ("typos", "typos"),
        ("backwards", "my_wordings:backwards"),
        ("lossy", "my_wordings:lossy"),
    }
    named = "factors: {wording: {typos: {file: wordings.jsonl}, backwards: {file: wordings.jsonl}}}"
    (tmp_path / "suite.yml").write_text("\n".join((named, WORDED.partition("\n")[2])))
    tasks = {task.name: task for task in load_suite(tmp_path / "suite.yml").tasks}
    assert tasks["refund [wording=backwards]"].prompt == "7. order Refund"
    assert not any(task.tags for task in tasks.values())
    out.unlink()
    without = CliRunner().invoke(main, [*words, "--kinds", "formal"])
    assert without.exit_code == 2
    assert "formal is asked of a model (typos, capitals, aside are not)" in without.output


def test_what_a_run_depends_on_is_said_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "curt_agent.py").write_text("def answer(prompt):\n    return prompt[-3:]\n")
    tasks = "".join(
        f"  - {{name: t{i}, prompt: say yes, expect: [{{contains: 'yes'}}], runs: 3}}\n"
        for i in range(8)
    )
    (tmp_path / "suite.yml").write_text(
        'systems: [{name: bot, python: "curt_agent:answer"}]\n'
        'factors: {wording: {loud: "{prompt} now!"}}\n'
        f"tasks:\n{tasks}"
    )
    done = CliRunner().invoke(main, ["run", "suite.yml"])
    assert done.exit_code == 0, done.output
    assert done.output.count("It depends on the wording") == 1


def test_a_wording_of_a_changed_prompt_can_be_made_again_and_one_by_hand_needs_no_hash(tmp_path):
    path, file = tmp_path / "suite.yml", tmp_path / "w.jsonl"
    text = SUITE.format(factors="  wording: {capitals: {file: w.jsonl}}")
    path.write_text(text.replace("{capitals: {file: w.jsonl}}", '{polite: "Please. {prompt}"}'))
    vary = ["vary", str(path), "--kinds", "capitals", "-o"]
    assert CliRunner().invoke(main, [*vary, str(file)]).exit_code == 0
    path.write_text(text)
    assert "greet [wording=capitals]" in cells(load_suite(path))
    path.write_text(text.replace("Say hello.", "Say good morning."))
    with pytest.raises(SuiteError, match=r"was made from another prompt: `passhat vary -o FILE`"):
        load_suite(path)
    done = CliRunner().invoke(main, [*vary, str(tmp_path / "again.jsonl")])
    assert done.exit_code == 0, done.output
    file.write_text((tmp_path / "again.jsonl").read_text())
    assert "greet [wording=capitals]" in cells(load_suite(path))
    by_hand = {
        "task": "greet",
        "wording": "capitals",
        "text": "Say Good Morning.",
        "reviewed": "me",
    }
    file.write_text(json.dumps(by_hand) + "\n")
    assert "greet [wording=capitals]" in cells(load_suite(path))
