"""What a shell shows of every command as it is usually typed: 15 lines of 80 columns."""

import re

import click
import pytest
from click.testing import CliRunner
from tests.reporters.test_screens import SPACED_PERCENT, retired_in

from passhat.cli import FORMERLY, main
from passhat.cli.output import LONG_RUNNING
from passhat.reporters.answer import SCREEN_LINES, SCREEN_WIDTH
from passhat.reporters.formatting import display_width

SUITE = """\
name: sums
agents:
  - name: sum
    model: scripted
    runs: 6
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4"}, {answer: "five"}]
  - name: product of two long numbers
    model: scripted
    runs: 6
    prompt: What is 1234567 * 7654321?
    expect: [{contains: "9449772114007"}]
    script: [{answer: "9449772114007"}, {answer: "It is about ten million million."}]
"""
TWO = """\
name: two
systems:
  - {name: quick, model: scripted, script: [{answer: "4"}, {answer: "five"}]}
  - {name: thorough, model: scripted, script: [{answer: "4"}]}
tasks:
  - {name: sum, runs: 6, prompt: "What is 2 + 2?", expect: [{contains: "4"}]}
"""
PLACE = re.compile(r":\d+:\d+: ")
"""A place in a file, which editors jump to."""
AGENTS = ["--rate", "a=0.9", "--rate", "b=0.85", "--rate", "c=0.5"]
SIX = [word for i in range(6) for word in ("--rate", f"agent-{i}=0.{9 - i}")]
LONG = [
    word for i in range(3) for word in ("--rate", f"anthropic/claude-sonnet-4.5-{i:02}=0.{9 - i}")
]
GATES = ["--require", "pass^3 >= 0.8", "--require", "pass@1 >= 0.1"]
NAMED = ["--columns", "task=question,pass=right"]
BROKEN = ["--", "sh", "-c", "echo could not find the order 1001; exit 1"]

SCREENS = {
    "demo": [[]],
    "init": [["new"], ["new"]],
    "check": [[], ["wrong.yml"], ["--secrets", "passhat.yml"]],
    "run": [
        [], ["--dry-run"], GATES[:2], GATES, [*GATES, "--until-decided"], ["two.yml"],
        ["two.yml", *GATES], ["wrong.yml"], ["nowhere.yml"],
    ],
    "repeat": [
        ["--trials", "6", *BROKEN], ["--trials", "6", *GATES, *BROKEN],
        ["--trials", "6", "--", "true"], ["--", "no-such-program"],
        ["--trials", "30", *GATES[2:], "--until-decided", *BROKEN],
    ],
    "worker": [[], ["--store", "h.db"]],
    "cassette": [[]],
    "cassette show": [["cassettes/scripted.jsonl", "--task", "sum", "--trial", "1"], ["none"]],
    "cassette prune": [["--dry-run"]],
    "report": [
        ["six.jsonl"], ["long.jsonl"], ["two.jsonl"],
        ["one.jsonl"], ["all.jsonl"], ["latest"], ["odd.csv"], ["labelled.csv"], ["nowhere"],
        ["all.jsonl", "one.jsonl"], ["empty.csv"], ["odd.csv", "--columns", "tsk=x"],
        ["odd.csv", *NAMED],
    ],
    "gate": [
        ["one.jsonl", *GATES[:2]], ["all.jsonl", *GATES], ["latest", *GATES[2:]], ["one.jsonl"],
        ["old.jsonl", "--against", "one.jsonl", "--margin", "0.02"],
        ["one.jsonl", "--require", "every task: pass@1 >= 0.5"],
        ["one.jsonl", "--require", "reliabilty@3 > 0.5"],
    ],
    "compare": [
        ["one.jsonl", "old.jsonl"], ["all.jsonl"], ["six.jsonl", "--by", "pass^5"], ["two.jsonl"],
        ["long.jsonl", "--by", "pass^3"], ["latest", "base"], ["one.jsonl"],
    ],
    "why": [
        ["latest"], ["latest", "sum"], ["latest", "sum", "2"], ["latest", "sum", "2", "1"],
        ["latest", "nobody"], ["one.jsonl"], ["all.jsonl"],
    ],
    "plan": [[], ["--gate", "pass^3 >= 0.8"], ["one.jsonl"], ["all.jsonl", "--difference", "0.1"]],
    "label": [["latest"], ["one.jsonl"], ["nowhere"]],
    "judge": [["labelled.csv", "--columns", "label-chosen=random"], ["one.jsonl"], ["latest"]],
    "trend": [[], ["--tasks"], ["sums"], ["sums", "--tasks"], ["nobody"]],
    "watch": [
        ["one.jsonl", "--once", "--reference", "100"],
        ["old.jsonl", "--once"],
        ["nowhere", "--once"],
    ],
    "history": [[], ["--suite", "nobody"], ["--store", "nowhere.db"]],
    "history add": [["one.jsonl"], ["nowhere"]],
    "history artefacts": [["latest"]],
    "history delete": [["nowhere"]],
    "history log": [[]],
    "history merge": [["nowhere.db"]],
    "history note": [["latest", "as before"]],
    "history rename": [["latest", "sums"]],
    "history search": [["five"], ["is"], ["nobody said this"]],
    "history tag": [["latest", "newest"], ["nowhere", "newest"]],
    "history vacuum": [[]],
    "history verify": [[]],
    "view": [["nowhere"]],
    "mcp": [["--max-runs", "0"]],
    "convert": [["one.jsonl", "-o", "other.csv"], ["nowhere"]],
    "simulate": [["-o", "made.jsonl"]],
    "deploy": [["slurm", "-o", "job.sh"], ["k8s"]],
    "local": [["status"]],
    "local pull": [["--help"]],
    "vary": [["--by", "typos", "-o", "varied.yml"], []],
    "profile": [["all.jsonl", "--only", "a"]],
}  # fmt: skip
"""Every command of `passhat --help-all`, and what is typed after it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with suites, results of all kinds, recordings, and stored runs of two suites."""
    folder = tmp_path_factory.mktemp("screens")
    (folder / "passhat.yml").write_text(SUITE)
    (folder / "two.yml").write_text(TWO)
    (folder / "wrong.yml").write_text(SUITE.replace("expect", "expects"))
    rows = "".join(f"q{t},{(t * t + i) % 3 > 0:d},ann,fine\n" for t in range(9) for i in range(4))
    (folder / "odd.csv").write_text("question,right,reviewer,notes\n" + rows)
    (folder / "empty.csv").write_text("task,passed\n")
    rows = "".join(f"t{i % 20},{i % 5 > 0:d},{'' if i % 3 else i % 4 > 0:d}\n" if not i % 3
                   else f"t{i % 20},{i % 5 > 0:d},\n" for i in range(200))  # fmt: skip
    (folder / "labelled.csv").write_text("task,passed,human_label\n" + rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in (
            ["simulate", *AGENTS, "-o", "all.jsonl"],
            ["simulate", "--rate", "0.8", "-o", "one.jsonl"],
            ["simulate", *SIX, "--error-rate", "0.1", "-o", "six.jsonl"],
            ["simulate", *LONG, "-o", "long.jsonl"],
            ["simulate", *LONG[:4], "--error-rate", "0.1", "-o", "two.jsonl"],
            ["simulate", "--rate", "0.7", "-o", "old.jsonl"],
            ["run", "-q", "--record"],
            ["history", "tag", "latest", "base"],
            ["run", "-q", "two.yml"],
            ["run", "-q"],
        ):
            done = CliRunner().invoke(main, words)
            assert done.exit_code in (0, 1), done.output
    return folder


def commands(group=main, before=()):
    """The words of every command that is listed, and of those of a group."""
    context = click.Context(group)
    former = getattr(group, "formerly", ()) if before else FORMERLY
    for name in group.list_commands(context):
        if name not in former:
            command = group.get_command(context, name)
            yield " ".join((*before, name))
            if isinstance(command, click.Group):
                yield from commands(command, (*before, name))


def test_every_command_has_its_screens_read():
    assert sorted(commands()) == sorted(SCREENS)


@pytest.mark.usefixtures("few_suites_drawn")
@pytest.mark.parametrize("command", SCREENS)
def test_what_a_command_prints_is_a_screen_in_our_words(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    for words in SCREENS[command]:
        done = CliRunner().invoke(main, [*command.split(), *words], input="q\n")
        assert isinstance(done.exception, SystemExit | None), (
            f"{command} {words}: {done.exception!r}"
        )
        assert done.stdout or done.stderr, words
        check_screen(done.stdout, f"{command} {words}")
        if command not in LONG_RUNNING:
            check_order(done, f"{command} {words}")
        said = " ".join(f"{done.stdout}\n{done.stderr}".split())
        assert retired_in(said) == [], f"{command} {words}: {said}"
        assert not SPACED_PERCENT.search(said), said
        assert "got None" not in said, said
        assert "every task" not in str(words) or done.exit_code == 1, said


def check_screen(text, which):
    """15 lines, and none wider than a terminal but those that are parsed."""
    lines = text.splitlines()
    assert len(lines) <= SCREEN_LINES, f"{which}:\n{text}"
    for line in lines:
        whole = line.startswith("tool-selection floor") or PLACE.search(line)
        assert whole or display_width(line) <= SCREEN_WIDTH, f"{which}: {line}"


def check_order(done, which):
    """Where both streams meet, the answer comes first, or what was wrong."""
    first = done.stdout or ("" if done.exit_code == 0 else "Error: ")
    assert done.output.startswith((first, "Usage: ")), f"{which}:\n{done.output}"


@pytest.mark.parametrize(
    "words",
    [
        ["report", "one.jsonl", "--drop-rounds", "2"],
        ["rank", "all.jsonl", "--drop-rounds", "2"],
        ["rank", "nowhere.jsonl"],
        ["gate", "one.jsonl", "--explain", "--require", "pass@1 >= 0.1", "--scope", "this suite"],
        ["flaky", "sums"],
        ["diff", "latest", "sum"],
        ["compare", "base", "latest", "-o", "both.html", "--as", "text"],
        ["history", "show", "latest"],
        ["validate"],
    ],
)
def test_notes_follow_the_answer(folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, words)
    assert done.stderr, "a screen without a note shows nothing here"
    check_order(done, words)


@pytest.mark.parametrize(
    "words",
    [
        ["run", *GATES[:2]],
        ["run"],
        ["gate", "one.jsonl", *GATES[:2]],
        ["repeat", "--trials", "6", *BROKEN],
    ],
    ids=" ".join,
)
def test_rule_6_a_verdict_is_printed_once_and_on_stdout(folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, words)
    verdict = re.compile(r"(?:^|: )(?:PASS|FAIL|UNDECIDED|ERROR)\b", re.MULTILINE)
    assert len(verdict.findall(done.stdout)) == 1, done.stdout
    assert not verdict.search(done.stderr), done.stderr


def test_fault_3_what_is_said_of_a_stored_run_ends_with_that_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for words in (["report", "base"], ["history", "show", "base"]):
        last = CliRunner().invoke(main, words).stdout.rstrip().splitlines()[-1]
        assert re.search(r"passhat (report|plan) base\b", last), last


def test_a_column_that_is_not_used_is_named_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = CliRunner().invoke(main, ["report", "odd.csv", *NAMED]).stdout
    assert text.count("reviewer") == text.count("notes") == 1, text


def test_a_number_has_the_name_and_the_sign_of_its_gate_with_verbose(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = CliRunner().invoke(main, ["gate", "one.jsonl", *GATES[:2], "-v"]).stdout
    rows = re.findall(r"^  task-\d+ +\d+ +\d+ +\d+ +(\S+)$", text, re.MULTILINE)
    assert len(rows) == 20
    assert all(cell.endswith("%") for cell in rows), rows
    assert re.search(r"^  task +trials +passed +errored +pass\^3$", text, re.MULTILINE)
    assert text.count("Wrong PASS at most 5%") == 1
    assert "0.05" not in text


def test_a_failing_command_is_quoted_whichever_stream_it_wrote_to(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for stream in ("1", "2"):
        script = f"echo starting; echo no order 1001 >&{stream}; exit 3"
        done = CliRunner().invoke(main, ["repeat", "--trials", "4", "--", "sh", "-c", script])
        assert done.stdout.startswith("FAIL  4 of 4 trials failed (0% passed [0, "), done.stdout
        assert "\n  4x  exit code 3: no order 1001\n" in done.stdout


def test_who_watches_is_told_how_things_stand_where_there_is_nothing_to_tell(folder, monkeypatch):
    monkeypatch.chdir(folder)
    watch = ["watch", "one.jsonl", "--once", "--state", "s.json", "--columns", "pass=outcome"]
    done = CliRunner().invoke(main, watch)
    assert done.stdout == ""
    assert "agent: 200 trials seen; what is usual takes " in done.stderr


def test_agents_that_are_written_in_two_ways_are_told_on_the_first_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{name};Q{q};{a};{(q + a) % 3 > 0:d};fine;none;long"
        for name in ("GPT-5 mini", "Llama 4", "claude")
        for q in range(9)
        for a in range(4)
    ]
    rows[3], rows[40], rows[80] = (rows[i].upper() for i in (3, 40, 80))
    table = ["Model;Question ID;Attempt;Result;a comment;another comment;a third comment", *rows]
    (tmp_path / "export.csv").write_text("\n".join([*table, "TOTAL;;108;;;;", ";;;;;;"]))
    done = CliRunner().invoke(main, ["report", "export.csv"])
    check_screen(done.stdout, "two ways")
    said = " ".join(done.stdout.split())
    assert "agents whose names differ only in case or spaces: " in said, done.output
    assert '"TOTAL", sums up the others' in said or re.search(r"\d notes? more: -v", said)


def test_a_run_that_its_gates_stopped_has_no_rate_in_the_list_of_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["--store", "early.db", "--trials", "40", *GATES[2:], "--until-decided"]
    assert CliRunner().invoke(main, ["run", "-q", *words]).exit_code == 0
    listed = CliRunner().invoke(main, ["history", "--store", "early.db"]).stdout
    assert re.search(r" sums +\d+ +-  stopped early: \w+\n", listed), listed


def test_a_run_names_its_lowest_tasks_once(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = CliRunner().invoke(main, ["run", "--require", "pass@1 >= 0.99"]).stdout
    assert text.startswith("FAIL")
    assert "most common failure" in text
    assert "Lowest: " not in text


def test_errored_trials_are_told_under_several_gates_too(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "erring.csv").write_text(
        "task,passed,error\n" + "a,1,\na,1,\na,0,timeout\nb,1,\nb,0,\nb,1,\n"
    )
    one = CliRunner().invoke(main, ["gate", "erring.csv", *GATES]).stdout
    assert one.count("\n1 of 6 trials errored and counts as failed.\n") == 1, one
    rows = "".join(f"{who},a,0,timeout\n" + f"{who},a,1,\n" * 5 for who in ("v1", "v2", "v2"))
    (folder / "erring.csv").write_text("system,task,passed,error\n" + rows)
    several = CliRunner().invoke(main, ["gate", "erring.csv", *GATES]).stdout
    assert "\nErrors: 3 trials (v1 1, v2 2), counted as failed.\n" in several, several
    many = CliRunner().invoke(main, ["gate", "six.jsonl", *GATES]).stdout
    assert re.search(r"\nErrors: \d+ trials, counted as failed\.\n", many), many
    assert "rrored" not in CliRunner().invoke(main, ["gate", "all.jsonl", *GATES]).stdout


def test_a_run_with_several_gates_says_that_trials_errored(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "half.py").write_text(
        "import itertools\ncounted = itertools.count()\n\n\ndef answer(prompt):\n"
        "    if next(counted) % 3 == 0:\n        raise TimeoutError\n    return '4'\n"
    )
    agent = '  - {name: half, python: "half:answer"}\n'
    (folder / "half.yml").write_text("name: half\nsystems:\n" + agent + TWO[TWO.index("tasks:") :])
    text = CliRunner().invoke(main, ["run", "half.yml", *GATES]).stdout
    assert re.search(r"^\d of 6 trials errored and counts? as failed\.$", text, re.MULTILINE), text


def test_why_names_the_agents_whose_answers_it_compares(folder, monkeypatch):
    monkeypatch.chdir(folder)
    both = TWO.replace(
        'thorough, model: scripted, script: [{answer: "4"}',
        'thorough, model: scripted, script: [{answer: "3"}, {answer: "4"}',
    )
    (folder / "both.yml").write_text(both)
    CliRunner().invoke(main, ["run", "-q", "both.yml", "--store", "both.db"])
    text = CliRunner().invoke(main, ["why", "latest", "--store", "both.db"]).stdout
    assert re.search(
        r"^  failed  agent +task  failing answers  passing answers$", text, re.MULTILINE
    ), text
    assert re.search(r'^ +\d/6  quick +sum   "five" \d +"4" \d$', text, re.MULTILINE), text
    assert re.search(r'^ +\d/6  thorough +sum   "3" \d +"4" \d$', text, re.MULTILINE), text


def test_a_gate_that_stays_undecided_beside_others_has_counts_and_no_rate(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "open.yml").write_text(TWO.replace("  - {name: thorough", "  # - {name: thorough"))
    gates = ["-r", "pass@1 >= 0.5", "-r", "pass@1 >= 0.01", "--until-decided", "--trials", "20"]
    done = CliRunner().invoke(main, ["run", "open.yml", "--store", "open.db", *gates])
    row = re.search(r"^  UNDECIDED  pass@1 >= 0.5 +(.*)$", done.stdout, re.MULTILINE)
    assert row, done.output
    assert re.fullmatch(r"after \d+ trials: \d+ (of \d+ trials )?passed", row[1])
