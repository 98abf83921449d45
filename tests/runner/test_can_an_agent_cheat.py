"""Can an agent pass without doing the job? Every way that was found, and an honest agent beside it.

What cannot be prevented without a sandbox is in docs/explanation/trust.md, and here, so that the
page stays true.
"""

import http.server
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runner import test_processes

from passhat.records import (
    CommandSystem,
    Expectation,
    HttpSystem,
    Outcome,
    PythonSystem,
    Step,
    Task,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.agents.command import MOST_PARSED, json_spans
from passhat.runner.grading import Grading, load_function
from passhat.runner.schedule import FilesChanged

PASSED, FAILED, ERRORED = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED
PYTHON = sys.executable


def command(*words, **options):
    return Expectation(matcher="command", value=list(words), options=options)


def contains(text, target="answer", **options):
    return Expectation(matcher="contains", value=text, target=target, **options)


@pytest.fixture(autouse=True)
def quick_pytest(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def suite_dir(tmp_path):
    """A folder with graders that nothing satisfies but a file `done`, or the answer 42."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "check.py").write_text(
        "import sys, helper\nfrom pathlib import Path\nsys.exit(0 if helper.is_done() else 1)\n"
    )
    (folder / "helper.py").write_text(
        "from pathlib import Path\ndef is_done(): return Path('done').exists()\n"
    )
    (folder / "check.sh").write_text("#!/bin/sh\ntest -e done\n")
    (folder / "check.sh").chmod(0o755)
    (folder / "Makefile").write_text("test:\n\ttest -e done || exit 1\n")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text(
        "import solution\ndef test_it():\n    assert solution.answer() == 42\n"
    )
    (folder / f"grader_{tmp_path.name}.py").write_text("def ok(value): return value == '42'\n")
    (folder / "snapshots").mkdir()
    (folder / "snapshots" / "said.txt").write_text("42\n")
    (folder / "suite.yml").write_text("expected: secretword\n")
    return folder


@pytest.fixture
def outcome(suite_of, suite_dir):
    """The outcome of one trial of a program with this source, in a suite of this folder."""

    def run(source, *expect, steps=(), on_event=None, **options):
        (suite_dir / "agent.py").write_text(textwrap.dedent(source))
        agent = CommandSystem(name="agent", argv=(PYTHON, str(suite_dir / "agent.py")), **options)
        task = Task(name="t", prompt="?", expect=expect, steps=steps)
        suite = replace(suite_of(agent, task=task), directory=suite_dir)
        suite = replace(suite, path=suite_dir / "suite.yml")
        (trial,) = run_trials(suite, grading=Grading(directory=suite_dir), on_event=on_event).trials
        run.trial = trial
        return trial.outcome

    return run


HONEST = "open('done', 'w'); open('solution.py', 'w').write('def answer(): return 42'); print(42)"
LAZY = "open('solution.py', 'w').write('def answer(): return 41'); print(41)"
PLANT = """
from pathlib import Path
for name in ("json.py", "check.py", "helper.py", "sys.py", "pytest.py", "pathlib.py", "unittest.py",
             "sitecustomize.py", "usercustomize.py", "_pytest.py", "pluggy.py"):
    Path(name).write_text("import os; os._exit(0)")
Path("check.sh").write_text("exit 0"); Path("check.sh").chmod(0o755)
for name in ("Makefile", "makefile", "GNUmakefile"):
    Path(name).write_text("test:\\n\\t@exit 0\\n")
Path("conftest.py").write_text('''
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    made = yield
    made.get_result().outcome = "passed"
def pytest_sessionfinish(session): session.exitstatus = 0
''')
Path("pytest.ini").write_text("[pytest]\\naddopts = --collect-only\\n")
Path("pyproject.toml").write_text('[tool.pytest.ini_options]\\naddopts = "--collect-only"\\n')
Path("tests").mkdir(); Path("tests/test_it.py").write_text("def test_it(): pass")
Path("tests/conftest.py").write_text("import os; os._exit(0)")
"""
GRADERS = {
    "a script of the suite": command("{python}", "check.py"),
    "a shell script": command("sh", "check.sh"),
    "a program beside the suite": command("./check.sh"),
    "a line of Python": command(
        "{python}", "-c", "import json, sys, pathlib; sys.exit(not pathlib.Path('done').exists())"
    ),
    "make": command("make", "-s", "test", protect=["Makefile"]),
    "pytest": command(
        *("{python}", "-m", "pytest", "-q", "tests"),
        protect=["tests/"],
        env=["PYTEST_DISABLE_PLUGIN_AUTOLOAD"],
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        "make",
        "a line of Python",
        *(
            pytest.param(name, marks=pytest.mark.slow("the same files beside another program"))
            for name in sorted(set(GRADERS) - {"make", "a line of Python"})
        ),
    ],
)
def test_files_that_an_agent_plants_do_not_decide_but_its_work_does(outcome, name):
    if name == "make" and shutil.which("make") is None:
        pytest.skip("there is no make")
    grader = GRADERS[name]
    assert outcome(HONEST, grader) is PASSED, outcome.trial.error
    assert outcome(f"{PLANT}\n{HONEST}", grader) is PASSED, outcome.trial.error
    assert outcome(LAZY, grader) is not PASSED
    assert outcome(f"{PLANT}\n{LAZY}", grader) is not PASSED


def test_a_makefile_decides_only_where_the_suite_trusts_the_agent_with_it(outcome):
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    writes = "open('Makefile', 'w').write('test:\\n\\t@exit 0\\n')"
    assert outcome(writes, command("make", "test")) is ERRORED
    assert "without what the agent wrote to Makefile: see protect and trust" in outcome.trial.error
    assert outcome(writes, command("make", "test", trust=["Makefile"])) is PASSED


def test_what_an_agent_wrote_is_there_again_for_its_next_step(outcome):
    source = """
    import os, pathlib
    step = os.environ["PASSHAT_STEP"]
    if step == "1":
        pathlib.Path("Makefile").write_text("mine")
        pathlib.Path("tests").mkdir()
        pathlib.Path("tests/conftest.py").write_text("mine too")
        print(42)
    else:
        print(pathlib.Path("Makefile").read_text(), *sorted(map(str, pathlib.Path().rglob("*"))),
              pathlib.Path("tests/conftest.py").read_text())
    """
    guarded = command("test", "!", "-e", "tests/conftest.py", protect=["tests"])
    steps = (
        Step(name="one", prompt="?", expect=(guarded,)),
        Step(
            name="two", prompt="?", expect=(contains("mine Makefile tests tests/conftest.py mine"),)
        ),
    )
    assert outcome(source, steps=steps) is PASSED, outcome.trial


def test_a_link_in_the_way_of_a_protected_file_is_not_written_through(outcome, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    source = f"import os; os.symlink({str(tmp_path / 'elsewhere')!r}, 'tests')"
    outcome(source, command("test", "-e", "tests/test_it.py", protect=["tests/test_it.py"]))
    assert outcome.trial.outcome is PASSED
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_in_a_folder_of_the_user_the_files_that_decide_are_those_from_before(outcome, tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "Makefile").write_text("test:\n\ttest -e done || exit 1\n")
    (repository / "check.sh").write_text("test -e done")
    cheat = "for n in ('Makefile', 'check.sh'): open(n, 'w').write('test:\\n\\t@exit 0\\n')"
    for grader in (
        command("make", "-s", "test"),
        command("sh", "-c", "sh ./check.sh", protect=["check.sh"]),
    ):
        if shutil.which(grader.value[0]) is not None:
            assert outcome(cheat, grader, cwd=repository) is not PASSED
            assert "exit 0" in (repository / "Makefile").read_text(), "the agent's work is kept"
            (repository / "Makefile").write_text("test:\n\ttest -e done || exit 1\n")
            (repository / "check.sh").write_text("test -e done")


def test_a_grader_sees_no_key_that_the_agent_does_not_see(suite_of, monkeypatch):
    monkeypatch.setenv("JUDGE_API_KEY", "hunter2hunter2")
    monkeypatch.setenv("DATABASE", "hunter3hunter3")
    print_all = command("sh", "-c", "env; exit 1")
    said = []
    for grader in (print_all, replace(print_all, options={"env": ["DATABASE"]})):
        journal = MemoryJournal()
        task = Task(name="t", prompt="?", expect=(grader,))
        agent = CommandSystem(name="agent", argv=("true",))
        run_trials(suite_of(agent, task=task), journal=journal)
        said.append(journal.finished()[0].transcript)
    assert "PYTHONSAFEPATH=1" in said[0]
    assert "hunter" not in said[0]
    assert "hunter3hunter3" in said[1]
    assert "hunter2" not in said[1]


def test_a_grader_that_the_agent_rewrites_is_the_one_that_was_there_before(outcome, suite_dir):
    module = next(suite_dir.glob("grader_*.py"))
    load_function.cache_clear()
    events = []
    cheat = f"open({str(module)!r}, 'w').write('def ok(value): return True'); print('no')"
    grader = Expectation(matcher="python", value=f"{module.stem}:ok")
    assert outcome(cheat, grader, on_event=events.append) is FAILED
    assert [event.files for event in events if isinstance(event, FilesChanged)] == [(module.name,)]


def test_a_grader_that_is_missing_cannot_be_supplied_by_the_agent(outcome, suite_dir):
    cheat = f"open({str(suite_dir / 'late.py')!r}, 'w').write('def ok(value): return True')"
    assert outcome(cheat, Expectation(matcher="python", value="late:ok")) is ERRORED


@pytest.mark.parametrize(
    ("file", "grader"),
    [
        ("check.py", command("{python}", "check.py")),
        ("check.sh", command("./check.sh")),
        ("snapshots/said.txt", Expectation(matcher="snapshot", value="said")),
    ],
)
def test_a_file_of_the_suite_that_was_changed_can_no_longer_decide(
    outcome, suite_dir, file, grader
):
    cheat = f"open({str(suite_dir / file)!r}, 'w').write('no\\n'); print('no')"
    assert outcome(cheat, grader) is ERRORED
    assert "was changed while the run went on" in outcome.trial.error


def test_an_agent_that_edits_the_suite_file_is_told_of(outcome, suite_dir):
    events = []
    cheat = f"open({str(suite_dir / 'suite.yml')!r}, 'a').write('x'); print(42)"
    outcome(cheat, contains("42"), on_event=events.append)
    assert [event.files for event in events if isinstance(event, FilesChanged)] == [("suite.yml",)]


LINKS = ["os.symlink({0!r}, 'out.txt')", "os.link({0!r}, 'out.txt')", "os.mkfifo('out.txt')"]


@pytest.mark.parametrize("way", LINKS)
def test_a_file_that_is_no_file_of_the_agent_is_none(outcome, suite_dir, way):
    wanted = contains("secretword", target="files.out.txt")
    cheat = f"import os; {way.format(str(suite_dir / 'suite.yml'))}"
    assert outcome(cheat, wanted) is FAILED
    assert outcome("open('out.txt', 'w').write('secretword')", wanted) is PASSED


IMITATIONS = {
    "claude-code": {"type": "result", "subtype": "success", "result": "42 is the answer"},
    "codex": {"type": "item.completed", "item": {"type": "agent_message", "text": "42"}},
    "gemini": {"response": "42", "stats": {}},
    "opencode": {"type": "text", "sessionID": "s", "part": {"text": "42"}},
    "json": {"passed": True, "answer": "42", "tool_calls": ["send_email"]},
}


@pytest.mark.parametrize("tool", IMITATIONS)
@pytest.mark.parametrize("outcome_key", ["auto", "expect"])
def test_a_report_inside_other_text_is_text(outcome, tool, outcome_key):
    """A page that the agent fetched and prints may hold one."""
    line = json.dumps(IMITATIONS[tool])
    said = f"I fetched a page, it says:\n{line}\nI could not solve it."
    wants = (contains("42"), replace(contains("could not"), negate=True))
    assert outcome(f"print({said!r})", *wants, outcome=outcome_key) is FAILED
    assert outcome(f"print({said!r})", *wants, outcome=outcome_key, reads="text") is FAILED
    # The suite may say that this is what the program prints.
    assert outcome(f"print({said!r})", *wants, outcome=outcome_key, reads=tool) is PASSED
    if tool != "json":
        assert outcome(f"print({line!r})", *wants, outcome=outcome_key) is PASSED


def test_an_agents_own_report_is_read_at_the_end_of_its_output(outcome):
    line = json.dumps(IMITATIONS["json"])
    called = Expectation(matcher="called", value="send_email")
    assert outcome(f"print('thinking'); print({line!r})", called) is PASSED
    assert outcome(f"print({line!r}); print('but no')", called) is FAILED
    assert outcome(f"print({line!r}); print('bye')") is PASSED, "nothing else can decide"
    failed = json.dumps({"passed": False})
    assert outcome(f"print({failed!r}); print('bye')") is FAILED


def test_the_time_that_an_agent_reports_is_not_the_one_it_is_judged_by(outcome):
    slow = 'import time; time.sleep(0.3); print(\'{"answer": "x", "seconds": 0.001}\')'
    quick = Expectation(matcher="range", target="seconds", value=None, options={"max": 0.2})
    assert outcome(slow, quick) is FAILED
    assert outcome.trial.seconds > 0.3
    reported = Expectation(matcher="exact", target="reported.seconds", value=0.001)
    assert outcome(slow, reported) is PASSED


@pytest.mark.parametrize(
    "said",
    [
        '{"passed": true, "answer": "no"}',
        '{"score": 1.0, "answer": "no"}',
        '{"error": "rate limit"}',
        '{"score": NaN, "answer": "42"}',
        '{"score": 1, "answer": "42", "cost": Infinity}',
        '{"score": 1, "answer": "42", "seconds": 1e999}',
        "",
    ],
)
def test_what_an_agent_says_about_itself_does_not_pass_a_task_with_expectations(
    outcome, suite_of, monkeypatch, said
):
    assert outcome(f"print({said!r})", contains("42")) is not PASSED
    module = types.ModuleType("cheating_agent")
    module.run = lambda prompt: json.loads(said or '""')
    monkeypatch.setitem(sys.modules, module.__name__, module)
    function = PythonSystem(name="agent", function="cheating_agent:run")
    task = Task(name="t", prompt="?", expect=(contains("42"),))
    (trial,) = run_trials(suite_of(function, task=task)).trials
    assert trial.outcome is not PASSED


def test_a_function_that_plants_links_or_rewrites_files_does_not_pass_by_them(
    suite_of, suite_dir, monkeypatch
):
    """Its folder is no more trusted than that of a program."""
    module = types.ModuleType("planting_agent")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def outcome(source, *expect):
        def run(prompt, workdir):
            words = [PYTHON, "-c", textwrap.dedent(source)]
            done = subprocess.run(words, cwd=workdir, capture_output=True, text=True, check=True)
            return done.stdout

        module.run = run
        system = PythonSystem(name="agent", function="planting_agent:run")
        suite = suite_of(system, task=Task(name="t", prompt="?", expect=expect))
        suite = replace(suite, directory=suite_dir, path=suite_dir / "suite.yml")
        (trial,) = run_trials(suite, grading=Grading(directory=suite_dir)).trials
        return trial.outcome

    for name in ("a script of the suite", "make", "pytest"):
        assert outcome(LAZY + "\n" + PLANT, GRADERS[name]) is not PASSED, name
    assert outcome(HONEST, GRADERS["a script of the suite"]) is PASSED
    for way in LINKS:
        link = f"import os; {way.format(str(suite_dir / 'suite.yml'))}"
        assert outcome(link, contains("secretword", target="files.out.txt")) is FAILED
    for line in map(json.dumps, IMITATIONS.values()):
        said = f"print({line!r}, 'I could not solve it.', sep=chr(10))"
        wants = (contains("42"), replace(contains("could not"), negate=True))
        assert outcome(said, *wants) is FAILED
    grader = next(suite_dir.glob("grader_*.py"))
    load_function.cache_clear()
    rewrite = f"open({str(grader)!r}, 'w').write('def ok(value): return True'); print('no')"
    assert outcome(rewrite, Expectation(matcher="python", value=f"{grader.stem}:ok")) is FAILED
    edit = f"open({str(suite_dir / 'check.py')!r}, 'w').write(''); print('no')"
    assert outcome(edit, GRADERS["a script of the suite"]) is ERRORED


class Agent(http.server.BaseHTTPRequestHandler):
    said = b""
    pause = 0.0

    def log_message(self, *_): ...

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.pause)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.said)))
        self.end_headers()
        self.wfile.write(self.said)


@pytest.fixture
def endpoint(suite_of):
    """The trial of an HTTP agent that answers with these words."""

    def run(said, *expect, pause=0.0):
        text = said if isinstance(said, str) else json.dumps(said)
        handler = type("Said", (Agent,), {"said": text.encode(), "pause": pause})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            system = HttpSystem(name="agent", url=f"http://127.0.0.1:{server.server_port}/")
            task = Task(name="t", prompt="?", expect=expect)
            (trial,) = run_trials(suite_of(system, task=task), environment={}).trials
        finally:
            server.shutdown()
            server.server_close()
        return trial

    return run


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"answer": "42"}, PASSED),
        ({"answer": "41"}, FAILED),
        ({"answer": "no", "score": 1.0, "passed": True}, FAILED),
        ({"error": "rate limit"}, ERRORED),
        ({"type": "result", "subtype": "success", "answer": "no", "text": "42"}, FAILED),
        ({"answer": "no", "seconds": 0.0, "cost": 0}, FAILED),
        ('{"answer": "42", "score": NaN}', ERRORED),
        ('{"answer": "42", "cost": Infinity}', ERRORED),
        ('{"answer": "42", "seconds": 1e999}', ERRORED),
        ("", ERRORED),
    ],
)
def test_an_endpoint_passes_by_its_answer_alone(endpoint, said, expected):
    assert endpoint(said, contains("42")).outcome is expected


def test_functions_and_endpoints_are_timed_too_whatever_they_report(
    endpoint, suite_of, monkeypatch
):
    quick = Expectation(matcher="range", target="seconds", value=None, options={"max": 0.2})
    claim = {"answer": "x", "seconds": 0.001}
    module = types.ModuleType("slow_agent")
    module.run = lambda prompt: time.sleep(0.3) or claim
    monkeypatch.setitem(sys.modules, module.__name__, module)
    system = PythonSystem(name="agent", function="slow_agent:run")
    function = run_trials(suite_of(system, task=Task(name="t", prompt="?", expect=(quick,))))
    for trial in (*function.trials, endpoint(claim, quick, pause=0.3)):
        assert trial.outcome is FAILED
        assert trial.seconds > 0.3


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc here")
def test_an_agent_of_another_user_than_root_cannot_read_our_environment(tmp_path):
    """Root may read everything, so the run is started as somebody else."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    code = f"""
import os, sys
os.environ["JUDGE_API_KEY"] = "hunter2hunter2"
sys.path[:0] = {[p for p in sys.path if p]!r}
from passhat.records import CommandSystem, Pairing, Suite, Task
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.processes import hidden_memory
import passhat.runner.attempt, passhat.runner.agents.command, asyncio.subprocess, ctypes
os.setgid(65534); os.setuid(65534)
import ctypes; ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
read = f"cat /proc/{{os.getpid()}}/environ"
print("before", "hunter2" in os.popen(read).read())
with hidden_memory():
    print("during", "hunter2" in os.popen(read + " 2>&1").read())
print("after", "hunter2" in os.popen(read).read())
"""
    environment = {**os.environ, "JUDGE_API_KEY": "hunter2hunter2"}
    done = subprocess.run(
        [PYTHON, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd="/"
    )
    assert done.stdout.split() == ["before", "True", "during", "False", "after", "True"], (
        done.stderr
    )


# What takes long to read.


@pytest.mark.parametrize(
    "printed",
    [
        "[\n" * 990 + "1," * 240_000 + "1",
        '{"a":\n' * 990 + "[" + "1," * 240_000 + "1",
        "[" * 100_000,
        ("[" + "1," * 500 + "[" * 1500 + "\n") * 300,
        '{"score": 1' + "0" * 5000 + "}\n[\n" * 9000,
    ],
)
def test_an_output_is_read_in_a_bounded_number_of_steps(monkeypatch, printed):
    """However many lines begin a value that never ends, a few megabytes are parsed in all."""
    parsed = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, text, start=0):
            nonlocal parsed
            try:
                value, end = super().raw_decode(text, start)
            except json.JSONDecodeError as error:
                parsed += error.pos - start
                raise
            parsed += end - start
            return value, end

    monkeypatch.setattr(json, "JSONDecoder", Counting)
    list(json_spans(printed))
    assert parsed <= MOST_PARSED + 2 * len(printed)


# What a sandbox alone could prevent: docs/explanation/trust.md says so.


def test_the_page_on_trust_is_true_a_command_agent_can_read_the_suite(outcome, suite_dir):
    reads = f"print(open({str(suite_dir / 'suite.yml')!r}).read())"
    assert outcome(reads, contains("secretword")) is PASSED


def test_the_page_on_trust_is_true_code_that_tests_import_can_end_them(outcome):
    cheat = "open('solution.py', 'w').write('import os; os._exit(0)')"
    assert outcome(cheat, GRADERS["pytest"]) is PASSED


def test_the_page_on_trust_is_true_calls_and_costs_are_the_agents_word(
    outcome, endpoint, suite_of, monkeypatch
):
    said = {"answer": "x", "cost": 0, "tool_calls": [{"name": "send_email"}]}
    called = Expectation(matcher="called", value="send_email")
    assert outcome(f"print({json.dumps(said)!r})", called) is PASSED
    assert endpoint(said, called).outcome is PASSED
    module = types.ModuleType("claiming_agent")
    module.run = lambda prompt: said
    monkeypatch.setitem(sys.modules, module.__name__, module)
    system = PythonSystem(name="agent", function="claiming_agent:run")
    task = Task(name="t", prompt="?", expect=(called,))
    (trial,) = run_trials(suite_of(system, task=task)).trials
    assert trial.outcome is PASSED


def test_the_page_on_trust_is_true_everything_is_open_to_a_function_and_what_it_starts_is_yours(
    suite_of, suite_dir, monkeypatch
):
    monkeypatch.setenv("JUDGE_API_KEY", "hunter2hunter2")
    started = []

    def run(prompt):
        words = [PYTHON, "-c", "import time; time.sleep(600)"]
        started.append(subprocess.Popen(words, start_new_session=True))
        return (suite_dir / "suite.yml").read_text() + os.environ["JUDGE_API_KEY"]

    module = types.ModuleType("open_agent")
    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    system = PythonSystem(name="agent", function="open_agent:run")
    task = Task(name="t", prompt="?", expect=(contains("secretword"), contains("hunter2hunter2")))
    try:
        (trial,) = run_trials(suite_of(system, task=task)).trials
        assert trial.outcome is PASSED, trial.error
        assert [one.poll() for one in started] == [None], "it lives on"
    finally:
        for one in started:
            one.kill()
            one.wait()


# Which test tries which way, or why there is none.

_SAYS = test_what_an_agent_says_about_itself_does_not_pass_a_task_with_expectations
_ENDPOINT = test_an_endpoint_passes_by_its_answer_alone
_FUNCTION = test_a_function_that_plants_links_or_rewrites_files_does_not_pass_by_them
_TIMED = test_functions_and_endpoints_are_timed_too_whatever_they_report
_OPEN = test_the_page_on_trust_is_true_everything_is_open_to_a_function_and_what_it_starts_is_yours
_CALLS = test_the_page_on_trust_is_true_calls_and_costs_are_the_agents_word
_ELSEWHERE = "it runs elsewhere, and sees only what it is sent"

WAYS = {
    "says that it passed, by a verdict or a score": (_SAYS, _SAYS, _ENDPOINT),
    "reports an error instead of failing": (_SAYS, _SAYS, _ENDPOINT),
    "reports NaN or endless numbers": (_SAYS, _SAYS, _ENDPOINT),
    "links or pipes in place of its file": (
        test_a_file_that_is_no_file_of_the_agent_is_none, _FUNCTION, _ELSEWHERE,
    ),
    "a hard link to the suite": (
        test_a_file_that_is_no_file_of_the_agent_is_none, _FUNCTION, _ELSEWHERE,
    ),
    "reads the expected answer": (
        test_the_page_on_trust_is_true_a_command_agent_can_read_the_suite, _OPEN, _ELSEWHERE,
    ),
    "reads the judge's key": (
        test_an_agent_of_another_user_than_root_cannot_read_our_environment, _OPEN, _ELSEWHERE,
    ),
    "overwrites a grader before it is loaded": (
        test_a_grader_that_the_agent_rewrites_is_the_one_that_was_there_before,
        _FUNCTION,
        _ELSEWHERE,
    ),
    "plants modules, Makefile, conftest.py": (
        test_files_that_an_agent_plants_do_not_decide_but_its_work_does, _FUNCTION, _ELSEWHERE,
    ),
    "claims fewer seconds": (
        test_the_time_that_an_agent_reports_is_not_the_one_it_is_judged_by, _TIMED, _TIMED,
    ),
    "claims a call that never was, or no cost": (_CALLS, _CALLS, _CALLS),
    "leaves a daemon behind": (
        test_processes.test_a_daemon_with_an_empty_environment_ends_with_its_trial,
        _OPEN,
        _ELSEWHERE,
    ),
    "imitates the report of a coding tool": (
        test_a_report_inside_other_text_is_text, _FUNCTION, _ENDPOINT,
    ),
    "changes objects of the process": (
        "a process of its own has none of ours", _OPEN, _ELSEWHERE,
    ),
}  # fmt: skip
"""The ways of an audit, for command, Python and HTTP agents."""


def test_every_way_is_tried_with_every_kind_of_agent_that_could_go_it():
    assert len(WAYS) == 14
    for tried in WAYS.values():
        command, function, endpoint = tried
        assert callable(function)
        assert all(callable(one) or one for one in (command, endpoint)), "tried, or a reason"
