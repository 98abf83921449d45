"""A first suite for what somebody has: it is valid, runs at once, and says what to do next."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.journeys.new_suite import FirstSuite, FirstTask, suite_text
from passhat.suite import load_suite

SAMPLE = Path(__file__).parents[1] / "samples/inspect/flaky_5x5_two_scorers_1error.eval"
AGENT = "echo '42, Ann'"
SERVER = f"{shlex.quote(sys.executable)} -m passhat.testing.weather_server"


def passhat(folder, *words):
    command = [sys.executable, "-m", "passhat", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "trials", "code"),
    [
        pytest.param(
            ["--python", "my_agent:answer"], 100, (1,), marks=pytest.mark.slow("five commands")
        ),
        pytest.param(
            ["--command", AGENT], 100, (0,), marks=pytest.mark.slow("a process for each trial")
        ),
        pytest.param(
            ["--mcp", SERVER], 10, (0,), marks=pytest.mark.slow("four commands, a real server each")
        ),
        pytest.param(
            ["--from-log", str(SAMPLE), "--command", AGENT],
            50,
            (0, 1, 4),
            marks=pytest.mark.slow("a process for each of fifty trials"),
        ),
    ],
    ids=["python", "command", "mcp", "log"],
)
def test_every_next_step_can_be_pasted_and_works(tmp_path, words, trials, code):
    done = passhat(tmp_path, "init", *words)
    assert done.returncode == 0, done.stderr
    steps = re.findall(r"^  (passhat .*?)  #", done.stderr, flags=re.MULTILINE)
    assert [step.split()[1] for step in steps][-3:] == ["check", "run", "run"]
    for step in steps:
        ran = passhat(tmp_path, *shlex.split(step)[1:])
        allowed = code if step.strip() == "passhat run" else (0,)
        assert ran.returncode in allowed, ran.stdout + ran.stderr
    assert f"{trials} trials" in ran.stdout + ran.stderr


ANNOTATED = """
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("annotated")
for name, hints in {
    "run_report": ToolAnnotations(read_only_hint=True),
    "archive": ToolAnnotations(read_only_hint=False),
    "purge": ToolAnnotations(destructive_hint=True),
    "look": None,
    "send_email": None,
    "refund": None,
}.items():
    server.add_tool(lambda: "done", name=name, description="A tool.", annotations=hints)
server.run()
"""


@pytest.mark.slow("starts a real server")
def test_a_server_that_says_which_tools_only_read_is_believed_before_their_names(tmp_path, call):
    (tmp_path / "server.py").write_text(ANNOTATED)
    done = call("init", "--mcp", f"{shlex.quote(sys.executable)} server.py")
    assert done.exit_code == 0, done.stderr
    suite = load_suite(next(tmp_path.glob("*.yml")))
    assert {task.name for task in suite.tasks} == {"run_report", "look"}
    assert "left out, as they may change something: 'archive', 'purge'" in done.stderr


def test_a_module_that_is_there_is_left_as_it_is(tmp_path, call):
    (tmp_path / "mine.py").write_text("def answer(prompt): return '42 Ann'\n")
    assert call("init", "--python", "mine:answer").exit_code == 0
    assert (tmp_path / "mine.py").read_text() == "def answer(prompt): return '42 Ann'\n"


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("class A:\n    'x'\n    def run(self, prompt): return '4'\n", ", such as mine:A.run"),
        ("class A:\n    def _run(self, prompt): return '4'\n", "takes the prompt\n"),
        ("class A:\n    async def __call__(self, prompt): return '4'\n", ""),
        ("class A:\n    def run(self, prompt): return '4'\n    __call__ = run\n", ""),
        ("class B:\n    def __call__(self, prompt): return '4'\nclass A(B): pass\n", ""),
        ("def A(prompt): return '4'\n", ""),
        ("class A:\n    def broken(\n", ""),
    ],
)
def test_a_class_that_nobody_can_call_is_refused_with_the_way_out_and_never_run(
    tmp_path, call, body, refused
):
    (tmp_path / "mine.py").write_text(
        f"{body}\n" if "broken" in body else f"{body}raise SystemExit\n"
    )
    done = call("init", "--python", "mine:A")
    assert done.exit_code == (2 if refused else 0), done.stderr
    assert ("is a class, whose instances cannot be called" in done.stderr) is bool(refused)
    assert refused in done.stderr
    assert (tmp_path / "passhat.yml").exists() is not bool(refused)


NEEDY = (
    "class A:\n    def __init__(self, policy, *, k, j=1): pass\n    def ask(self, p): return p\n"
)


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("suport:A.ask", "there is no suport.py for suport:A.ask (did you mean support:A.ask?)"),
        ("suport:A", "(did you mean support:A?)"),
        ("support.py:A", "must name the module, not its file: support:A"),
        ("./support.py:A", "must name the module, not its file: support:A"),
        ("support:Agent", "support.py has no Agent"),
        ("support:asc", "support.py has no asc (did you mean ask?)"),
        ("app.support:A", "there is no app/support.py for app.support:A"),
        ("support:A", "A() needs policy, k: write a function of the prompt that makes one"),
        ("support:A.ask", "agent = A(...), and name support:agent.ask, if trials may share it"),
        ("support:ask", ""),
        ("support:agent.ask", ""),
        ("json.decoder:JSONDecoder.decode", ""),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_and_no_other_agent_is_written(
    tmp_path, call, name, refused
):
    (tmp_path / "support.py").write_text(f"{NEEDY}def ask(p): return p\nagent = A(1, k=2)\n")
    done = call("init", "--python", name)
    assert done.exit_code == (2 if refused else 0), done.stderr
    assert refused in " ".join(done.stderr.split())
    assert [file.name for file in tmp_path.glob("*.py")] == ["support.py"]
    assert (tmp_path / "passhat.yml").exists() is not bool(refused)


def test_an_example_that_is_written_is_said_to_be_no_agent_of_the_user(tmp_path, call):
    done = call("init", "--python", "my_agent:answer")
    assert "my_agent.py is an example, not your agent: call yours in it" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--python", "my_agent"], "must be module:function, such as my_agent:answer"),
        (["--command", "'open"], "must be a command line"),
        (["--python", "a:b", "--mcp", "x"], "--python and --mcp cannot be used together"),
        (["--mcp", "no-such-program-here"], "no-such-program-here"),
        (["--from-log", str(SAMPLE)], "--python my_agent:answer, or --command"),
        (["--from-log", "absent.eval"], "absent.eval"),
    ],
)
def test_what_cannot_be_started_with_is_refused_and_nothing_is_written(
    tmp_path, call, words, message
):
    done = call("init", *words)
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


LOGGED = [("sum", "4", True), ("never", "Nobody.", False), ("long", "Once upon a time. " * 9, True)]


def test_a_task_whose_right_answer_the_log_does_not_show_cannot_pass(tmp_path, call):
    rows = [
        {
            "task": task,
            "passed": passed,
            "messages": [
                {"role": "user", "content": "What is 2 + 2?"},
                {"role": "assistant", "content": answer},
            ],
        }
        for task, answer, passed in LOGGED
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "mine.py").write_text("def answer(prompt): return '4'\n")
    done = call("init", "--from-log", "log.jsonl", "--python", "mine:answer")
    assert "2 tasks need an expectation from you: replace FILL IN, or every trial" in done.stderr
    text = (tmp_path / "passhat.yml").read_text()
    assert '- { exact: "FILL IN: no trial of this task passed in the log" }' in text
    assert '- { exact: "FILL IN: the answer that passed is too long to guess from" }' in text
    ran = json.loads(call("run", "--runs", "1", "--json").stdout)
    table = ran["report"]["systems"][0]["task_table"]
    assert {task["name"]: task["passed"] for task in table} == {"sum": 1, "never": 0, "long": 0}


def test_a_job_of_ci_is_written_beside_a_suite_of_ones_own(tmp_path, call):
    done = call("init", "--python", "my_agent:answer", "--ci", "github")
    assert done.exit_code == 0
    job = (tmp_path / ".github/workflows/passhat.yml").read_text()
    assert "pip install -e ." in job
    assert not (tmp_path / "cassettes").exists()


@given(st.text(), st.text(min_size=1), st.text())
def test_any_text_of_a_log_is_a_suite_that_asks_just_that(tmp_path_factory, prompt, answer, name):
    """Names, prompts and answers come from models: none of them is YAML, or a variable."""
    secret = prompt + "${HOME} {prompt}"
    suite = FirstSuite(
        name="log",
        agent={"name": "mine", "command": ["cat"]},
        tasks=[FirstTask(name="t" + name, prompt=secret, expect=({"contains": answer},))],
        gate="pass@1 >= 0.5",
        runs=2,
    )
    file = tmp_path_factory.mktemp("suite") / "passhat.yml"
    file.write_text(suite_text(suite), encoding="utf-8")
    (pairing,) = load_suite(file, env={"HOME": "leaked"}).pairings
    whole = secret.encode("utf-8", "replace").decode()
    assert pairing.task.prompt == whole
    assert pairing.task.expect[0].value == answer.encode("utf-8", "replace").decode()


def test_an_example_never_takes_the_place_of_the_agent_in_this_folder(call, here):
    Path("my_bot.py").write_text("def answer(prompt):\n    return False\n")
    done = call("init", "suite", "--python", "my_bot:answer")
    assert done.exit_code == 2
    assert "my_bot.py is in this folder" in done.output
    assert not Path("suite").exists()
    assert call("init", "--python", "my_bot:answer").exit_code == 0
    assert "return False" in Path("my_bot.py").read_text()
