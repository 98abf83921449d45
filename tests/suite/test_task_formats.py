"""Tasks as people have them: Harbor, Terminal-Bench and SWE-bench, with the fields they write."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.runner.test_workspaces import SYSTEM_PYTHON, isolated

from passhat.errors import SuiteError
from passhat.journeys import diagnose
from passhat.records import Outcome, Resources, Solution
from passhat.runner import hidden_tests, run_trials
from passhat.runner.cheats import NOTHING, SOLUTION, try_tasks
from passhat.runner.sandbox import View
from passhat.runner.workspaces import files_of, lay_patch
from passhat.suite import load_suite
from passhat.suite.task_schema import bytes_of
from passhat.suite.task_sources import _size

TASK_TOML = """\
schema_version = "1.1"
[task]
name = "terminal-bench/add"
keywords = ["coding"]
[metadata]
tags = ["easy"]
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 90.0
[environment]
build_timeout_sec = 600.0
docker_image = "example/add:1"
cpus = 2
memory_mb = 1024
storage_mb = 2048
"""
TEST_SH = """\
#!/bin/bash
if [ "$(cat out.txt 2>/dev/null)" = "$(cat /tests/expected.txt)" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
TASK_YAML = """\
instruction: |-
  Write 3 to out.txt.
difficulty: easy
tags: [files]
parser_name: pytest
max_agent_timeout_sec: 600.0
max_test_timeout_sec: 120.0
run_tests_in_same_shell: false
"""
RUN_TESTS_SH = """\
#!/bin/bash
if grep -qx 3 out.txt; then echo "PASSED $TEST_DIR/test_outputs.py::test_out"
else echo "FAILED $TEST_DIR/test_outputs.py::test_out - no 3"; exit 1; fi
"""


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def harbor(tmp_path):
    return write(
        tmp_path / "tasks" / "add",
        {
            "task.toml": TASK_TOML,
            "instruction.md": "Write 3 to out.txt.",
            "environment/Dockerfile": "FROM debian\n",
            "tests/test.sh": TEST_SH,
            "tests/expected.txt": "3\n",
            "solution/solve.sh": "echo 3 > out.txt\n",
        },
    )


@pytest.fixture
def terminal_bench(tmp_path):
    return write(
        tmp_path / "old" / "write-three",
        {
            "task.yaml": TASK_YAML,
            "Dockerfile": "FROM debian\n",
            "solution.sh": "echo 3 > out.txt\n",
            "run-tests.sh": RUN_TESTS_SH,
            "tests/test_outputs.py": "",
        },
    )


def suite_of(folder, keys):
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "suite.yml").write_text(
        f"systems: [{{name: a, command: agent}}]\ntasks:\n  - {{name: t, {keys}}}\n"
    )
    return load_suite(folder / "suite.yml")


def test_a_harbor_task_has_its_instruction_tests_solution_limits_and_image(tmp_path, harbor):
    (task,) = suite_of(tmp_path, "from: tasks").tasks
    assert (task.name, task.prompt) == ("t add", "Write 3 to out.txt.")
    assert (task.timeout, task.tags, task.family) == (90.0, ("easy", "coding"), "t")
    (decides,) = task.expect
    assert (decides.matcher, decides.value) == ("tests", "bash /tests/test.sh")
    assert (decides.options["files"], decides.options["timeout"]) == ((harbor / "tests",), 60.0)
    assert task.solution == Solution(files=harbor / "solution", run="bash $SOLUTION/solve.sh")
    assert task.workspace.image == "example/add:1"
    assert task.workspace.limits == Resources(cpus=2.0, memory=2**30, disk=2**31)


@isolated
@pytest.mark.usefixtures("harbor")
def test_a_task_that_needs_an_image_is_an_error_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("passhat.runner.sandbox.image_engine", lambda: None)
    suite = suite_of(tmp_path, "from: tasks/add, runs: 1")
    (trial,) = run_trials(suite, handle_signals=False).trials
    assert trial.outcome is Outcome.ERRORED
    assert "the image example/add:1" in trial.error
    (found,) = (one for one in diagnose(tmp_path / "suite.yml") if one.what == "images")
    assert found.problem
    assert found.text.startswith("1 task (t add) need an image")


@isolated
@pytest.mark.usefixtures("harbor", "terminal_bench")
@pytest.mark.parametrize("source", ["tasks", "old"])
def test_tests_of_both_tools_decide_in_a_workspace_and_their_solutions_pass(
    tmp_path, monkeypatch, source
):
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", ())
    tried = try_tasks(suite_of(tmp_path, f"from: {source}, workspace: empty"))
    ended = {one.attempt: one.outcome for one in tried}
    assert ended == {NOTHING: "failed", SOLUTION: "passed"}, tried


def test_a_terminal_bench_task_is_read_from_its_yaml(tmp_path, terminal_bench):
    (task,) = suite_of(tmp_path, "from: old").tasks
    assert (task.name, task.prompt) == ("t write-three", "Write 3 to out.txt.")
    assert (task.timeout, task.expect[0].options["timeout"]) == (600.0, 120.0)
    assert task.workspace.image == terminal_bench / "Dockerfile"
    (terminal_bench / "run-tests.sh").unlink()
    with pytest.raises(SuiteError, match=r"has no run-tests\.sh"):
        suite_of(tmp_path, "from: old")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("task.toml", "x = [", "is no TOML"),
        ("task.toml", "[agent]\ntimeout_sec = 'long'\n", "timeout_sec should be a number"),
        ("task.toml", "agent = 3\n", "should be a table"),
        ("task.toml", "[[steps]]\nname = 'a'\n", "several steps"),
        ("instruction.md", None, "instruction of a task cannot be read"),
        ("tests/test.sh", None, "what decides about the task"),
    ],
)
def test_a_task_that_cannot_be_read_names_its_file_and_what_is_wrong(
    tmp_path, harbor, file, text, message
):
    if text is None:
        (harbor / file).unlink()
    else:
        (harbor / file).write_text(text)
    with pytest.raises(SuiteError, match=message) as refused:
        suite_of(tmp_path, "from: tasks")
    assert "tasks" in str(refused.value)


def git(*words, at):
    ours = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(["git", *ours, *words], cwd=at, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.fixture
def swe_bench(tmp_path):
    """A row made as the data set was: a commit, its fix, and the tests that came with that."""
    tests = (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_zero(self):\n        self.assertEqual(add(2, 0), 2)\n"
    )
    clone = write(
        tmp_path / "clones" / "ada__calc",
        {
            "calc.py": "def add(a, b):\n    return a - b\n",
            "tests/test_calc.py": tests,
            "tests/__init__.py": "",
        },
    )
    git("init", "-q", at=clone)
    git("add", "-A", at=clone)
    git("commit", "-qm", "before", at=clone)
    before = git("rev-parse", "HEAD", at=clone).strip()
    write(clone, {"calc.py": "def add(a, b):\n    return a + b\n"})
    patch = git("diff", at=clone)
    git("commit", "-qam", "fix", at=clone)
    more = "\n    def test_sum(self):\n        self.assertEqual(add(1, 2), 3)\n"
    write(clone, {"tests/test_calc.py": tests + more})
    row = {
        "repo": "ada/calc", "instance_id": "ada__calc-7", "base_commit": before,
        "problem_statement": "add subtracts", "hints_text": "", "version": "1.0",
        "patch": patch, "test_patch": git("diff", at=clone),
        "FAIL_TO_PASS": json.dumps(["test_sum (tests.test_calc.T)"]),
        "PASS_TO_PASS": ["tests/test_calc.py::T::test_zero"],
    }  # fmt: skip
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return row


@isolated
def test_a_row_of_swe_bench_is_its_commit_and_issue_and_only_its_patch_passes(
    tmp_path, swe_bench, monkeypatch
):
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", ())
    row = {**swe_bench, "FAIL_TO_PASS": ["test_sum"], "PASS_TO_PASS": ["test_zero"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    run = f"{SYSTEM_PYTHON} -m unittest -v tests.test_calc"
    keys = f"from: rows.jsonl, workspace: clones, expect: [{{tests: '{run}'}}]"
    suite = suite_of(tmp_path, keys)
    (task,) = suite.tasks
    assert (task.name, task.prompt) == ("t ada__calc-7", "add subtracts")
    assert task.workspace.commit == swe_bench["base_commit"]
    tried = try_tasks(suite)
    assert {one.attempt: one.outcome for one in tried} == {NOTHING: "failed", SOLUTION: "passed"}
    assert "1 of 2 named tests did not pass: test_sum" in tried[0].reason


CHECKS = "def test_it(): assert {f}(2) == {n}\n"
MARK = "import pytest\n@pytest.mark.parametrize"
MULTIPLIES = "def test_it(a): assert {f}(a) == a * {n} / 2\n"
DATA = "from pathlib import Path\nDATA = Path(__file__).parent / 'two {f}.txt'\n"
PYTEST_ROWS = [
    (CHECKS, ["test_it"]),
    ("class TestIt:\n    def test_it(self): assert {f}(2) == {n}\n", ["TestIt::test_it"]),
    (MARK + "('a', [2, 3])\n" + MULTIPLIES, ["test_it[2]", "test_it[3]"]),
    (  # cut at the space, as the data set has such names
        MARK + "('a', [2, 3], ids=['x 2', 'x 3'])\n" + MULTIPLIES,
        ["test_it[x"],
    ),
    (DATA + "def test_it(): assert {f}(2) == int(DATA.read_text())\n", ["test_it"]),
    (CHECKS + "def test_other(): assert False\n", ["test_it"]),
    (CHECKS + "def test_more(): assert {f}(3) == {n} * 3 / 2\n", ["test_it", "test_more"]),
]
UNIT = "import unittest\nclass T(unittest.TestCase):\n    def test_{f}(self):\n"
ASSERTS = "        self.assertEqual({f}(2), {n})\n"
UNITTEST_ROWS = [
    (UNIT + ASSERTS, ["test_{f} (tests.test_{f}.T)"]),
    (UNIT + ASSERTS, ["test_{f} (tests.test_{f}.T.test_{f})"]),  # Python 3.11
    (  # unittest prints the docstring, which the data set takes for the name
        UNIT + "        '''It multiplies as {f}/x.py should.'''\n" + ASSERTS,
        ["It multiplies as {f}/x.py should."],
    ),
]
ROWS = {
    "pytest": (PYTEST_ROWS * 2, "tests/test_{f}.py::", "tests/test_old.py::O::test_old"),
    "unittest": (UNITTEST_ROWS * 2, "", "test_old (tests.test_old.O)"),
}
"""Tests of each row and their names in the data set, where these begin, and that of an old test."""


def published_rows(clone, sources, begins, old):
    """A repository with a commit for each fix, and rows with the published fields."""
    wrong = "def f{0}(a):\n    return a\n\n\n"
    write(
        clone,
        {
            "lib.py": "".join(wrong.format(number) for number in range(len(sources))),
            "tests/__init__.py": "",
            "tests/test_old.py": "import lib\nimport unittest\nclass O(unittest.TestCase):\n"
            "    def test_old(self): assert lib\n",
        },
    )
    git("init", "-q", at=clone)
    rows = []
    for number, (source, failing) in enumerate(sources):
        told = {"f": f"f{number}", "n": 2 * (number + 2)}
        git("add", "-A", at=clone)
        git("commit", "-qm", "before", at=clone)
        before = git("rev-parse", "HEAD", at=clone).strip()
        right = f"def f{number}(a):\n    return a * {number + 2}\n\n\n"
        text = (clone / "lib.py").read_text()
        write(clone, {"lib.py": text.replace(wrong.format(number), right)})
        patch = git("diff", at=clone)
        git("commit", "-qam", "fix", at=clone)
        tests = "from lib import {f}\n" + source
        write(clone, {f"tests/test_f{number}.py": tests.format(**told),
                      f"tests/two f{number}.txt": f"{told['n']}\n"})  # fmt: skip
        git("add", "-A", at=clone)
        rows.append({
            "repo": "ada/lib", "instance_id": f"ada__lib-{number}", "base_commit": before,
            "patch": patch, "test_patch": git("diff", "--cached", at=clone),
            "problem_statement": f"f{number} is wrong", "hints_text": "",
            "created_at": "2023-05-01T12:00:00Z", "version": "1.0",
            "FAIL_TO_PASS": json.dumps([(begins + name).format(**told) for name in failing]),
            "PASS_TO_PASS": json.dumps([old]), "environment_setup_commit": before,
        })  # fmt: skip
    return rows


@isolated
@pytest.mark.slow("runs the tests of twenty rows twice")
def test_twenty_rows_as_they_are_published_pass_by_their_own_patch_and_fail_without(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", ())
    shown = [one for one in {sys.prefix, *sys.path} if Path(one).is_dir()]
    pytest_words = f"{sys.executable} -m pytest -q --junitxml={{report}}"
    commands = {
        "pytest": f"{pytest_words} tests/test_old.py {{tests}}",
        "unittest": f"{SYSTEM_PYTHON} -m unittest discover -v",
    }
    found = []
    for name, given in ROWS.items():
        rows = published_rows(tmp_path / name / "ada__lib", *given)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
        (tmp_path / f"{name}.yml").write_text(
            f"systems: [{{name: a, command: agent, show: {json.dumps(shown)}}}]\n"
            f"tasks: [{{name: swe, from: {name}.jsonl, workspace: {name}, "
            f"expect: [{{tests: {json.dumps(commands[name])}}}]}}]\n"
        )
        suite = load_suite(tmp_path / f"{name}.yml")
        assert [task.prompt for task in suite.tasks] == [row["problem_statement"] for row in rows]
        found += try_tasks(suite)
    assert [one.attempt for one in found] == [NOTHING, SOLUTION] * 20
    assert not [one for one in found if one.outcome != one.wanted]


def test_rows_of_swe_bench_are_recognised_and_say_what_is_missing(tmp_path, swe_bench):
    (task,) = suite_of(tmp_path, "from: rows.jsonl").tasks
    assert task.workspace.image == "swebench/sweb.eval.x86_64.ada_1776_calc-7"
    assert task.expect[0].value == "python3 -m pytest -q --junitxml={report} tests/test_calc.py"
    assert task.expect[0].options["names"] == [
        "tests.test_calc.T::test_sum",
        "tests/test_calc.py::T::test_zero",
    ]
    with pytest.raises(SuiteError, match=r"there is no clone of ada/calc in .*empty"):
        suite_of(tmp_path, "from: rows.jsonl, workspace: empty")
    (tmp_path / "rows.jsonl").write_text(json.dumps({**swe_bench, "FAIL_TO_PASS": "x"}) + "\n")
    with pytest.raises(SuiteError, match="row 1: FAIL_TO_PASS should be a list of tests"):
        suite_of(tmp_path, "from: rows.jsonl")


@pytest.mark.usefixtures("swe_bench")
def test_two_tasks_of_one_name_are_refused_wherever_they_come_from(tmp_path, harbor):
    shutil.copytree(harbor, harbor.with_name("another"))
    with pytest.raises(SuiteError, match='tasks: two tasks are named "add": rename one'):
        suite_of(tmp_path, "from: tasks")
    rows = (tmp_path / "rows.jsonl").read_text()
    (tmp_path / "rows.jsonl").write_text(rows.rstrip("\n") + "\n" + rows)
    with pytest.raises(SuiteError, match=r"rows\.jsonl: two tasks are named"):
        suite_of(tmp_path, "from: rows.jsonl")


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        *(("2 GB", 2 * 10**9), ("1.5GB", 15 * 10**8), ("512mb", 512 * 10**6), ("2T", 2 * 10**12)),
        *(("2GiB", 2**31), ("2Gi", 2**31), ("512Mi", 2**29), ("4096Ki", 2**22), ("1ti", 2**40)),
        *(("100000KB", 10**8), ("100000kB", 10**8)),
        *(("2147483648", 2**31), (2147483648, 2**31), ("2147483648B", 2**31)),
    ],
)
def test_a_size_of_a_task_is_read_as_one_of_the_suite_is(text, bytes_):
    assert _size({"memory": text}, "memory", Path("task.toml")) == bytes_
    assert bytes_of(str(text)) == bytes_


@pytest.mark.parametrize(("given", "megabytes"), [("2G", 2048), ("1.5g", 1536), ("512M", 512)])
def test_a_letter_alone_is_what_harbor_makes_of_it_and_what_kubernetes_does_in_a_suite(
    given, megabytes
):
    """The figures are those of `EnvironmentConfig._parse_size_to_mb` of Harbor 0.20."""
    file = Path("task.toml")
    own = _size({"memory": given}, "memory", file)
    assert own == _size({"memory_mb": megabytes}, "memory", file) == megabytes * 2**20
    assert bytes_of(given) == float(given[:-1]) * (10**9 if given[-1] in "gG" else 10**6)


@pytest.mark.parametrize("wrong", ["much", "2X", "2i", "2iB", "-2G", "2GG", "", True, [2], "1e9"])
def test_what_is_no_size_is_refused_in_a_sentence(wrong):
    with pytest.raises(SuiteError, match=r"task\.toml: memory must be bytes, or a text such as"):
        _size({"memory": wrong}, "memory", Path("task.toml"))


@pytest.mark.parametrize("few", [2048, "2048", "8K"])
def test_a_size_without_its_unit_is_asked_about(few):
    with pytest.raises(SuiteError, match=r"too few for any program: write storage_mb = \d+, or"):
        _size({"storage": few}, "storage", Path("task.toml"))


@pytest.mark.parametrize(
    ("text", "is_json", "score"),
    [
        (b"1\n", False, 1.0),
        (b"0.25", False, 0.25),
        (b"7", False, 1.0),
        (b"nan", False, None),
        (b"good", False, None),
        (b"inf", False, None),
        (b"-1e999", False, None),
        (b'{"score": 0.7}', True, 0.7),
        (b'{"reward": 0.2, "style": 1}', True, 0.2),
        (b'{"a": 1, "b": 0}', True, None),
        (b'{"reward": 1e999}', True, None),
        (b'{"reward": [1]}', True, None),
        (b'{"reward": %s}' % (b"9" * 400), True, None),
        (b"[1, 0]", True, None),
        (b"true", True, 1.0),
        (b"{}", True, None),
        (b'{"reward": "x"}', True, None),
        (None, True, None),
    ],
)
def test_a_reward_is_a_score_from_0_to_1_or_none(text, is_json, score):
    assert hidden_tests.read_reward(text, is_json=is_json) == score


def test_what_pytest_prints_is_a_report_and_none_counts_twice():
    said = (
        "tests/test_a.py::test_x PASSED    [ 50%]\ntests/test_a.py::test_y[a b] FAILED [100%]\n"
        "PASSED tests/test_a.py::test_x\nFAILED tests/test_a.py::test_y[a b] - assert 1 == 2\n"
        "ERROR tests/test_b.py::test_z - boom\ntests/test_c.py::test_s SKIPPED (why)\n"
    )
    ended = hidden_tests.TestRun(code=1, stdout=said)
    assert {one.name: one.outcome for one in hidden_tests.read_results(ended)} == {
        "tests/test_a.py::test_x": "passed",
        "tests/test_a.py::test_y[a b]": "failed",
        "tests/test_b.py::test_z": "failed",
        "tests/test_c.py::test_s": "skipped",
    }


HOSTILE = {
    "colons": "a::",
    "outcomes": "a::b PASSED (",
    "percent": "a::b PASSED [",
    "dashes": "PASSED a:: - ",
    "tests": "test (a) ... ",
    "ends": "test (a) ... ok\n",
    "go": '{"Action": ',
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_what_is_printed_is_read_in_a_time_that_grows_with_its_bytes(unit):
    """Two million bytes in a second: it was an hour when the time grew with their square."""
    long = unit * (1_000_000 // len(unit))
    lines = "\n".join([unit * (hidden_tests.LONGEST_LINE // len(unit))] * 1000)
    began = time.process_time()
    for text in (long, lines):
        hidden_tests.read_results(hidden_tests.TestRun(code=0, stdout=text, stderr=text))
    assert time.process_time() - began < 30


def test_thousands_of_named_tests_are_looked_for_at_once_however_tools_write_them():
    names = [f"tests/test_{n}.py::Test::test_{n % 7}" for n in range(5000)]
    reported = [
        hidden_tests.TestResult(name=hidden_tests._dotted(f"src/{name}"), outcome="passed")
        for name in names
    ]
    began = time.process_time()
    assert hidden_tests._missing([*names, "test_6", "est_6"], reported) == ["est_6"]
    assert hidden_tests._missing(names, reported[1:]) == names[:1]
    assert time.process_time() - began < 10  # a minute when each was compared with each


def test_a_patch_of_tests_may_move_and_change_files_of_any_name(tmp_path):
    template, top = tmp_path / "template", tmp_path / "top"
    before = {"a b.py": "1\n", "é.py": "1\n", "old name.py": "1\n2\n3\n4\n", "gone é.py": "5\n"}
    after = {"a b.py": "2\n", "é.py": "2\n", "new é.py": "1\n2\n3\n4\n", "dir x/b.py": "6\n"}
    write(template, before)
    write(top, before)

    def git(*words):
        return subprocess.run(
            ["git", *words], cwd=template, capture_output=True, text=True, check=True
        ).stdout

    git("init", "-q", ".")
    git("add", ".")
    tree = git("write-tree").strip()
    for name in before:
        (template / name).unlink()
    write(template, after)
    git("add", "-A")
    patch = git("diff", "--cached", "-M", tree)
    git("read-tree", "--reset", "-u", tree)
    lay_patch(patch, View(top=top), template, tmp_path / "scratch")
    assert {str(file.relative_to(top)): file.read_text() for file in files_of(top)} == after


def test_what_unittest_prints_says_how_each_test_ended_whatever_the_test_printed(tmp_path):
    (tmp_path / "noisy.py").write_text(
        "import sys, unittest, warnings\n"
        "class C(unittest.TestCase):\n"
        "    def test_a(self):\n"
        '        """Its words."""\n'
        "        print('ok', file=sys.stderr); self.fail('x\\nok\\n')\n"
        "    def test_b(self):\n"
        "        warnings.warn('unclosed', ResourceWarning)\n"
        "    @unittest.skip('why')\n"
        "    def test_c(self): pass\n"
        "    @unittest.expectedFailure\n"
        "    def test_d(self): pass\n"
    )
    command = [sys.executable, "-m", "unittest", "-v", "noisy"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    ended = hidden_tests.TestRun(code=said.returncode, stderr=said.stderr)
    outcomes = {one.name[-6:]: one.outcome for one in hidden_tests.read_results(ended)}
    assert outcomes == {
        "test_a": "failed",
        "test_b": "passed",
        "test_c": "skipped",
        "test_d": "failed",
    }
