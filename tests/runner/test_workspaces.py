"""Agents in workspaces: what they may do there, and what hidden tests make of it.

What they cannot do is in `test_thirty_two_attacks.py`.
"""

import asyncio
import itertools
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.errors import GraderError, PasshatError, RunError
from passhat.journeys import check_suites, diagnose
from passhat.journeys.running import _refuse_absent
from passhat.records import (
    CassetteSettings,
    CommandSystem,
    Expectation,
    Outcome,
    Pairing,
    Resources,
    Suite,
    Task,
    Workspace,
)
from passhat.records.transcript import Transcript
from passhat.reporters.page_parts import transcript_page
from passhat.runner import MemoryJournal, hidden_tests, run_trials, workspaces
from passhat.runner import sandbox as sandboxes
from passhat.runner.cassettes import open_cassettes
from passhat.runner.cheats import NOTHING, SOLUTION, try_tasks
from passhat.runner.sandbox import Limits, View, overlay_works, require_bubblewrap
from passhat.runner.workspaces import (
    Changes,
    TrialWorkspace,
    _import_folders,
    _pytest_settings,
    _runner_files,
    _standard_modules,
    changes_of,
    diff,
    kept_files,
    lay,
    make_workspace,
    matches,
)
from passhat.suite import load_suite

PASSED, FAILED, ERRORED = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED
SYSTEM_PYTHON = "/usr/bin/python3"


def _sandboxed():
    try:
        require_bubblewrap()
    except RunError as error:
        return str(error)
    return None if Path(SYSTEM_PYTHON).exists() else f"there is no {SYSTEM_PYTHON}"


isolated = pytest.mark.skipif(_sandboxed() is not None, reason=str(_sandboxed()))

WRONG = "def add(a, b):\n    return a - b\n"
MEND = "sed -i 's/a - b/a + b/' calc.py"

HIDDEN = """\
import unittest
from calc import add


class Hidden(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_negative(self):
        self.assertEqual(add(-1, -2), -3)
"""

APART = """\
import subprocess, sys, unittest


class Hidden(unittest.TestCase):
    def result(self, a, b):
        code = f"import calc; print(calc.add({a}, {b}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        return done.stdout.strip()

    def test_small(self):
        self.assertEqual(self.result(1, 2), "3")

    def test_negative(self):
        self.assertEqual(self.result(-1, -2), "-3")
"""

RUN_HIDDEN = f"{SYSTEM_PYTHON} -m unittest -v hidden_tests"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A suite's folder: a workspace with a bug, hidden tests, and a secret beside them."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "calc").mkdir()
    (folder / "calc" / "calc.py").write_text(WRONG)
    (folder / "calc" / "test_calc.py").write_text("import calc\n")
    (folder / "calc" / "lib").mkdir()
    (folder / "calc" / "lib" / "old.py").write_text("x = 1\n")
    for name, text in (("hidden", HIDDEN), ("apart", APART)):
        (folder / name).mkdir()
        (folder / name / "hidden_tests.py").write_text(text)
    (folder / "secret.txt").write_text("EXPECTED_ANSWER_42")
    return folder


def hidden(files="hidden/", run=RUN_HIDDEN, **options):
    return Expectation(
        matcher="tests", value=run, options={"files": [files], "at_least": 2, **options}
    )


def agent(name, script, *, sandbox="auto", timeout=200.0, **options):
    return CommandSystem(
        name=name, argv=("sh", "-c", script), sandbox=sandbox, timeout=timeout, **options
    )


SMALL = Resources(memory=256 << 20, disk=50 << 20, processes=64)


def run(folder, systems, *, task=None, resources=SMALL, runs=1):
    """The trial and its transcript, by the name of the system."""
    base = task or Task(
        name="add", prompt="Mend it.", workspace=Workspace(source=folder / "calc"),
        expect=(hidden(),),
    )  # fmt: skip
    pairings = tuple(Pairing(system=one, task=base, runs=runs, label=one.name) for one in systems)
    suite = Suite(name="s", pairings=pairings, directory=folder, resources=resources, concurrency=4)
    journal = MemoryJournal()
    trials = run_trials(suite, journal=journal, handle_signals=False).trials
    said = {done.ticket.system: json.loads(done.transcript) for done in journal.finished()}
    return {trial.system: (trial, said[trial.system]) for trial in trials}


TAKE_ALL_MEMORY = SYSTEM_PYTHON + ' -c "x = []\nwhile True: x.append(bytearray(10**7))"'


@isolated
def test_a_trial_keeps_what_was_changed_and_how_each_test_ended(folder):
    trial, said = run(folder, [agent("mends", MEND)])["mends"]
    assert trial.outcome is PASSED, said
    assert said["workspace"]["diff"].splitlines()[-2:] == [
        "-    return a - b",
        "+    return a + b",
    ]
    assert [test["outcome"] for test in said["workspace"]["tests"]] == ["passed", "passed"]
    assert said["workspace"]["stage"] == "grader"


@isolated
def test_without_a_sandbox_the_report_says_so(folder):
    script = f"cat {folder}/secret.txt; {MEND}"
    came = run(folder, [agent("reads", script, sandbox="none")])
    trial, said = came["reads"]
    assert "EXPECTED_ANSWER_42" in said["answer"]
    assert said["workspace"]["sandbox"] == "none: NOT ISOLATED"
    assert trial.outcome is PASSED


@isolated
def test_an_agent_sees_the_prompt_its_task_file_and_a_home_of_its_own(folder):
    script = (
        "cat; echo; cat $PASSHAT_TASK_FILE; echo; echo $HOME $PASSHAT_WORKDIR $PWD; ls -A $HOME; "
        "cat /skill/SKILL.md; cat .claude/notes.md"
    )
    (folder / "skill").mkdir(exist_ok=True)
    (folder / "skill" / "SKILL.md").write_text("how to add")
    (folder / "notes.md").write_text("added for this arm")
    one = agent("looks", script.replace("/skill", str(folder / "skill")),
                add_files={".claude/notes.md": folder / "notes.md"},
                show=(folder / "skill",))  # fmt: skip
    _, said = run(folder, [one])["looks"]
    assert "Mend it." in said["answer"]
    assert '"task":"add"' in said["answer"]
    assert "/home/agent /project /project\n" in said["answer"]
    assert said["answer"].endswith("how to addadded for this arm")
    assert said["workspace"]["diff"] == ""  # what the suite adds is no change of the agent's


@isolated
@pytest.mark.parametrize(
    "said",
    [
        "passhat: sandbox: mount failed",
        pytest.param("bwrap: no such thing", marks=pytest.mark.slow("other words of an agent")),
    ],
)
def test_only_a_sandbox_that_never_began_is_an_error_whatever_the_agent_says(folder, said):
    """An agent that could make an error of its failure would never fail."""
    liar = agent("lies", f"echo '{said}' >&2; exit 1")
    absent = CommandSystem(name="absent", argv=("no-such-program",))
    came = run(folder, [liar, absent])
    assert came["lies"][0].outcome is FAILED
    assert came["absent"][0].outcome is ERRORED
    assert "absent cannot be started: 'no-such-program': No such file" in came["absent"][0].error


CHECKS = """\
if grep -q 'a + b' calc.py; then ended=''; else ended='<failure message="wrong"/>'; fi
printf '<testsuite><testcase name="adds">%s</testcase></testsuite>' "$ended" > "$1"
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An image that is nothing but a shell and a project, made without a registry."""
    shell = shutil.which("busybox")
    if shutil.which("podman") is None or shell is None:
        pytest.skip("needs podman and busybox (packages podman, busybox-static)")
    root = tmp_path_factory.mktemp("image")
    for name in ("bin", "app", "etc", "home/someone", "logs"):
        (root / name).mkdir(parents=True)
    shutil.copy(Path(shell).resolve(), root / "bin" / "busybox")
    for name in ("sh", "cat", "sed", "ls", "env", "grep", "pwd", "printf", "tar", "mktemp", "rm",
                 "cp", "find", "mkdir", "chmod", "dirname", "sleep"):  # fmt: skip
        (root / "bin" / name).symlink_to("busybox")
    (root / "bin" / "bash").write_text('#!/bin/sh\nexec /bin/sh "$@"\n')  # busybox has none
    (root / "bin" / "bash").chmod(0o755)
    (root / "app" / "calc.py").write_text(WRONG)
    (root / "etc" / "release").write_text("made for a test")
    packed = root.with_suffix(".tar")
    subprocess.run(["tar", "-cf", packed, "-C", root, "."], check=True)
    name = f"localhost/passhat-test-{os.getpid()}"
    words = ["podman", "import", "-c", "WORKDIR=/app", "-c", "ENV=COLOUR=blue", packed, name]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"podman makes no image here: {made.stderr.strip()}")
    yield name
    subprocess.run(["podman", "rmi", "-f", name], capture_output=True, check=False)


@isolated
def test_an_image_brings_its_programs_and_its_project_and_nothing_of_this_machine(folder, image):
    (folder / "checks").mkdir(exist_ok=True)
    (folder / "checks" / "check.sh").write_text(CHECKS)
    tests = hidden("checks/", "sh check.sh {report}", at_least=1)
    task = Task(name="add", prompt="?", workspace=Workspace(image=image), expect=(tests,))
    look = "pwd; env; ls / /usr /home; cat /etc/release /proc/net/dev; "
    came = run(folder, [agent("mends", look + MEND), agent("idles", "true")], task=task)
    trial, said = came["mends"]
    assert trial.outcome is PASSED, said
    assert came["idles"][0].outcome is FAILED
    assert "+    return a + b" in said["workspace"]["diff"]
    seen = said["answer"].splitlines()
    assert seen[0] == "/app"
    assert {"COLOUR=blue", "PASSHAT_WORKDIR=/app"} <= set(seen)
    assert "made for a test" in said["answer"]
    assert "python3" not in said["answer"]
    assert not [line for line in seen if line.strip().startswith(("eth", "en", "wl"))]


def test_the_name_of_an_image_is_never_an_option_and_a_path_never_a_name(folder, monkeypatch):
    engine = folder / "engine"
    engine.write_text('#!/bin/sh\necho "$@" >> "$0.log"; exit 7\n')
    engine.chmod(0o755)
    monkeypatch.setattr(sandboxes, "image_engine", lambda: str(engine))
    with pytest.raises(RunError, match="cannot be had from engine: exit code 7"):
        sandboxes.unpack_image("--privileged", folder / "image")
    assert (folder / "engine.log").read_text() == "create -- --privileged true\n"
    with pytest.raises(RunError, match="is what an image is built from"):
        sandboxes.unpack_image(folder / "Dockerfile", folder / "image")


def test_emptying_a_group_never_signals_our_own(tmp_path, monkeypatch):
    """Processes of another namespace are listed as 0, and 0 is whoever sends the signal."""
    killed = []
    monkeypatch.setattr(sandboxes.os, "kill", lambda pid, _: killed.append(pid))
    (tmp_path / "cgroup.procs").write_text("0\n4194305\n0\n")
    sandboxes._empty([tmp_path], until=time.monotonic() + 0.05)
    assert set(killed) == {4194305}


@pytest.mark.parametrize(
    ("files", "whose"),
    [
        ({"memory.events": "low 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n"}, "limit"),
        ({"memory.events": "low 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 0\n"}, "machine"),
        ({"memory.events": "low 0\nmax 9\noom 0\noom_kill 0\noom_group_kill 0\n"}, None),
        ({"memory.events": "max 9\noom 4\noom_kill 0\n"}, None),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
          "memory.failcnt": "12\n"}, "limit"),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
          "memory.failcnt": "0\n"}, "machine"),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
          "memory.failcnt": "7\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_kill_for_want_of_memory_is_the_limits_or_the_machines(tmp_path, files, whose):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    kills = sandboxes.MemoryKills.counted([tmp_path])
    assert (kills.limit_killed, kills.machine_killed) == (whose == "limit", whose == "machine")


@pytest.fixture
def version_2(tmp_path, monkeypatch):
    """A folder in which groups have the files of version 2: all, or without some controllers."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    monkeypatch.setattr(sandboxes, "CGROUPS", tmp_path)
    really_make = Path.mkdir
    files = ["cgroup.procs", "memory.max", "memory.swap.max", "pids.max", "cpu.max"]

    def without(*absent):
        def make(folder, *given, **named):
            is_new = folder.parent == tmp_path and not folder.exists()
            really_make(folder, *given, **named)
            if is_new:
                for name in {*files} - {*absent}:
                    (folder / name).touch()
                for name in absent:  # the kernel lets nobody make a file there
                    (folder / name).symlink_to(tmp_path / "nowhere" / name)

        monkeypatch.setattr(Path, "mkdir", make)

    return without


@pytest.mark.parametrize(
    ("absent", "held"),
    [
        ([], {"memory", "pids", "cpu"}),
        (["memory.swap.max"], {"memory", "pids", "cpu"}),
        (["memory.max", "memory.swap.max"], {"pids", "cpu"}),
        (["cpu.max", "pids.max"], {"memory"}),
    ],
)
def test_limits_of_version_2_are_in_the_files_and_words_of_the_kernel(version_2, absent, held):
    """As Documentation/admin-guide/cgroup-v2.rst names them."""
    version_2(*absent)
    group = sandboxes.Cgroup(Limits(memory=256 << 20, cpus=1.5, processes=64))
    assert group.version == 2
    (place,) = group.folders
    values = {"memory.max": str(256 << 20), "memory.swap.max": "0", "pids.max": "64",
              "cpu.max": "150000 100000"}  # fmt: skip
    written = {name: (place / name).read_text() for name in values if (place / name).exists()}
    assert written == {name: text for name, text in values.items() if name not in absent}
    assert {name for name in ("memory", "pids", "cpu") if group.holds(name)} == held


@isolated
def test_a_real_group_of_version_2_without_controllers_ends_all_and_the_watcher_limits(
    folder, monkeypatch
):
    """Machines with both versions have one: it holds processes, and no memory."""
    unified = sandboxes.CGROUPS / "unified"
    if "memory" in _text_or(unified / "cgroup.controllers", "memory").split():
        pytest.skip("there is no group of version 2 without the memory controller")
    monkeypatch.setattr(sandboxes, "CGROUPS", unified)
    sandboxes.cgroup_version.cache_clear()
    try:
        came = run(
            folder,
            [
                agent("mends", f"(setsid sleep 1000 &) ; {MEND}"),
                agent("hungry", TAKE_ALL_MEMORY),
            ],
        )
    finally:
        sandboxes.cgroup_version.cache_clear()
    assert came["mends"][0].outcome is PASSED
    assert came["mends"][1]["workspace"]["limits"].startswith("a watcher")
    assert came["hungry"][0].outcome is FAILED
    assert came["hungry"][1]["stop_reason"] == "memory"
    assert not list(unified.glob(f"passhat-{os.getpid()}-*"))


def _text_or(path, other):
    return path.read_text() if path.is_file() else other


@isolated
@pytest.mark.parametrize("held", [True, False], ids=["a cgroup", "no cgroup"])
def test_an_agent_is_not_blamed_for_what_the_kernel_killed_elsewhere(folder, monkeypatch, held):
    """Only where no cgroup tells whose process it was, the count of the whole machine decides."""
    if held and sandboxes.cgroup_version() is None:
        pytest.skip("no cgroup may be written here")
    if not held:
        monkeypatch.setattr(sandboxes, "CGROUPS", folder / "none")
    counts = itertools.count(5)
    monkeypatch.setattr(sandboxes, "_killed_on_this_machine", lambda: next(counts))
    trial, said = run(folder, [agent("a", f"{MEND}; kill -9 $$")])["a"]
    assert trial.outcome is (PASSED if held else ERRORED), said
    assert held or "the machine ran out of memory" in trial.error


@pytest.mark.parametrize("inside", ["/", "/opt/tool", "/opt/tool/bin", "/opt/new/deep", "/new"])
def test_a_place_in_an_image_is_made_or_refused_in_a_sentence(tmp_path, inside):
    root, shown_folder = tmp_path / "root", tmp_path / "shown"
    (root / "opt").mkdir(parents=True)
    (root / "opt" / "tool").write_text("a file")
    shown_folder.mkdir()
    refused = {
        "/": "the whole of this machine cannot be shown",
        "/opt/tool": "/opt/tool cannot be shown in the image, which has a file at /opt/tool",
        "/opt/tool/bin": "/opt/tool/bin cannot be shown .* a file at /opt/tool",
    }
    if inside in refused:
        with pytest.raises(RunError, match=refused[inside]):
            sandboxes._make_mount_points(root, [(inside, shown_folder, False)])
    else:
        sandboxes._make_mount_points(root, [(inside, shown_folder, False)] * 2)
        assert (root / inside[1:]).is_dir() is inside.startswith("/opt")


def test_stale_groups_are_looked_for_once_a_run_whatever_limits_its_tasks_have(
    tmp_path, monkeypatch
):
    looked = []
    monkeypatch.setattr(workspaces, "remove_stale_cgroups", lambda: looked.append(1))
    monkeypatch.setattr(workspaces, "Sandbox", lambda *_: object())
    made, system = workspaces.Workspaces(tmp_path, Limits()), CommandSystem(name="a", argv=("a",))
    for memory in (1, 2, 1):
        made.sandbox(system, Workspace(limits=Resources(memory=memory)))
    assert looked == [1]


HARBOR = """\
version = "1.0"
[verifier]
timeout_sec = 60.0
[agent]
timeout_sec = 100.0
[environment]
memory_mb = 256
"""
VERIFY = """\
set -e
[ "$(cat /tests/expected)" = yes ]
[ -z "$(ls -A /logs/agent 2>/dev/null)" ]
if grep -q 'a + b' /app/calc.py; then echo '{"reward": 1}' > /logs/verifier/reward.json
elif grep -q 'half' /app/calc.py; then echo 0.5 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt; fi
"""


@pytest.mark.slow("an image; that of Terminal-Bench is as large")
@isolated
def test_a_task_of_harbor_is_done_and_verified_inside_its_image(tmp_path, image, monkeypatch):
    """Tests lie at /tests once the agent has ended; the reward is what they leave in /logs."""
    task = tmp_path / "tasks" / "adds"
    for name, text in (
        ("task.toml", HARBOR), ("instruction.md", "Mend it."), ("tests/test.sh", VERIFY),
        ("tests/expected", "yes"), ("solution/solve.sh", f"cd /app && {MEND}\n"),
    ):  # fmt: skip
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    scripts = {
        "mends": MEND, "half": "echo '# half' >> calc.py", "idles": "true",
        "looks": "ls / /logs; cat /tests/*; echo 1 > /logs/verifier/reward.txt; true",
    }  # fmt: skip
    systems = [{"name": name, "command": ["sh", "-c", text]} for name, text in scripts.items()]
    suite = {"name": "s", "systems": systems, "defaults": {"runs": 1},
             "tasks": [{"name": "t", "from": "tasks", "workspace": {"image": image}}]}  # fmt: skip
    (tmp_path / "suite.yml").write_text(json.dumps(suite))
    loaded = load_suite(tmp_path / "suite.yml")
    journal = MemoryJournal()
    run_trials(loaded, journal=journal, handle_signals=False)
    came = {
        done.ticket.system: (done.trial, json.loads(done.transcript)) for done in journal.finished()
    }
    assert {name: (trial.outcome, trial.score) for name, (trial, _) in came.items()} == {
        "mends": (PASSED, 1.0), "half": (FAILED, 0.5), "idles": (FAILED, 0.0),
        "looks": (FAILED, 0.0),
    }, {name: said for name, (_, said) in came.items()}  # fmt: skip
    assert "yes" not in came["looks"][1]["answer"]
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", ())
    ends = {one.attempt: one.outcome for one in try_tasks(loaded)}
    assert ends == {NOTHING: "failed", SOLUTION: "passed"}


def test_without_podman_or_docker_an_image_is_an_error_that_says_so(folder, monkeypatch):
    monkeypatch.setattr(sandboxes, "image_engine", lambda: None)
    with pytest.raises(RunError, match="needs podman or docker, and neither is installed"):
        sandboxes.unpack_image("example.org/x:1", folder / "image")
    task = Task(name="t", prompt="?", workspace=Workspace(image="example.org/x:1"))
    trial, _ = run(folder, [agent("a", "true", sandbox="none")], task=task)["a"]
    assert trial.outcome is ERRORED
    assert "needs a sandbox" in trial.error


@isolated
def test_files_that_a_task_keeps_are_kept_with_the_trial_within_limits(folder, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-REAL-KEY-7777")
    script = (
        "mkdir logs; echo 'began <b>here</b>, sk-REAL-KEY-7777' > logs/run.log; echo x > out.txt; "
        "head -c 300000 /dev/zero | tr '\\0' 'a' > long.log; printf 'a\\0b' > data.log; "
        "ln -s /etc/passwd link.log"
    )
    task = Task(name="add", prompt="?", workspace=Workspace(source=folder / "calc"),
                keep=("*.log",), expect=(hidden(),))  # fmt: skip
    _, said = run(folder, [agent("writes", script)], task=task)["writes"]
    kept = said["workspace"]["kept"]
    assert sorted(kept) == ["data.log", "logs/run.log", "long.log"]
    assert kept["data.log"] == "[no text: 3 bytes]"
    assert kept["logs/run.log"].startswith("began <b>here</b>, ")
    assert "sk-REAL" not in json.dumps(said)
    assert kept["long.log"].startswith("[left out: 100,000 bytes before this]\naaa")
    assert len(kept["long.log"]) < 200_100
    again = Transcript.from_json(json.dumps(said))
    assert dict(again.kept_files) == kept
    assert Transcript.from_json(again.to_json()).kept_files == again.kept_files
    assert again.cut(1000).size() <= 1500
    page = transcript_page(json.dumps(said), 400_000)
    assert "logs/run.log" in page
    assert "&lt;b&gt;here" in page


@isolated
def test_a_trial_keeps_its_diff_logs_reports_and_files_as_they_are_but_for_secrets(
    folder, monkeypatch
):
    monkeypatch.setenv("MY_API_KEY", "sk-REAL-KEY-7777")
    monkeypatch.setattr(workspaces, "LARGEST_ARTEFACT", 100_000)
    script = (
        f"{MEND}; echo 'key: sk-REAL-KEY-7777' | tee key.log; printf 'a\\0b\\377' > chart.bin; "
        "printf 'a\\0sk-REAL-KEY-7777' > dump.bin; head -c 300000 /dev/zero > huge.bin; "
        "yes 'ä' 2>&- | head -c 300000 > long.log; ln -s /etc/passwd link.log; "
        "printf odd > \"$(printf 'b\\377\\nc.log')\"; "
        "printf odd2 > \"$(printf 'b\\376\\nc.log')\"; "
        "echo done >&2"
    )
    task = Task(name="add", prompt="?", workspace=Workspace(source=folder / "calc"),
                keep=("*.log", "*.bin"), expect=(hidden(),))  # fmt: skip
    suite = Suite(
        name="s", directory=folder, resources=SMALL,
        pairings=(Pairing(system=agent("a", script), task=task, runs=1, label="a"),),
    )  # fmt: skip
    journal = MemoryJournal()
    run_trials(suite, journal=journal, handle_signals=False)
    (done,) = journal.finished()
    kept = dict(done.artefacts)
    assert b"+    return a + b" in kept["changes.diff"]
    assert kept["agent/stdout.txt"] == kept["files/key.log"] == b"key: [redacted:MY_API_KEY]\n"
    assert kept["agent/stderr.txt"] == b"done\n"
    assert b"test_small (hidden_tests.Hidden" in kept["tests/stderr.txt"]
    assert kept["files/chart.bin"] == b"a\0b\xff"
    assert kept["files/b\ufffd\nc.log"] + kept["files/b\ufffd\nc.log~2"] in (b"oddodd2", b"odd2odd")
    assert kept["files/long.log"].decode().strip("ä\n") == ""
    assert 99_000 < len(kept["files/long.log"]) <= 100_000
    assert kept.keys() & {"files/dump.bin", "files/huge.bin", "files/link.log"} == set()
    remarks = json.loads(done.transcript)["workspace"]["flags"]
    assert "not kept: files/dump.bin is no text, and holds a secret" in remarks
    assert "cut: files/long.log is kept without its beginning; it has 300,000 bytes" in remarks
    assert [r for r in remarks if "huge.bin is no text, and larger than" in r]
    assert not [one for one in kept.values() if b"sk-REAL" in one]


@isolated
@pytest.mark.parametrize("most", [1000, 2**20])
def test_output_that_was_cut_is_known_as_cut(folder, monkeypatch, most):
    """By its size beside it, and by the verdict where tests printed what decides."""
    monkeypatch.setattr("passhat.runner.agents.command.MOST_OUTPUT", most)
    monkeypatch.setattr(workspaces, "MOST_PRINTED", most)
    loud = "for i in $(seq 2000); do echo $i; echo $i >&2; done"
    (folder / "loud").mkdir(exist_ok=True)
    (folder / "loud" / "hidden_tests.py").write_text(
        HIDDEN
        + "\n    def test_zzz(self):\n        import sys; sys.stderr.write('x' * 2000 + chr(10))\n"
    )
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                expect=(hidden("loud/", at_least=3),))  # fmt: skip
    trial, said = run(folder, [agent("a", f"{MEND}; {loud}")], task=task)["a"]
    cut = [flag for flag in said["workspace"]["flags"] if flag.startswith("cut: ")]
    assert trial.outcome is (FAILED if most == 1000 else PASSED), said
    if most == 1000:
        whole = "is kept without its beginning; it has 8,893 bytes"
        assert [f"cut: agent/{stream}.txt {whole}" for stream in ("stdout", "stderr")] == cut[:2]
        assert cut[2].startswith("cut: tests/stderr.txt is kept without its beginning; it has 2,")
        assert "only the end of what they printed was read" in json.dumps(said["checks"])
    else:
        assert not cut


@isolated
@pytest.mark.parametrize("part", ["setup", "copy", "changes", "tests"])
def test_what_the_machine_refuses_is_an_error_of_the_trial_and_no_crash(folder, monkeypatch, part):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    def program_fails(*_, **__):
        raise subprocess.CalledProcessError(1, ["cp"], stderr=b"cp: no space\n")

    setup = None
    if part == "setup":
        start = sandboxes.Sandbox.run

        async def run_all_but_setup(self, argv, *given, **named):
            if argv[0] == "sh" and argv[1] == "-ec":
                refuse()
            return await start(self, argv, *given, **named)

        monkeypatch.setattr(sandboxes.Sandbox, "run", run_all_but_setup)
        setup = "true"
    elif part == "copy":
        monkeypatch.setattr(workspaces, "fresh_copy", program_fails)
    elif part == "changes":
        monkeypatch.setattr(workspaces, "changes_of", refuse)
    else:
        monkeypatch.setattr(workspaces, "lay", program_fails)
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"), setup=setup,
                expect=(hidden(),))  # fmt: skip
    trial, said = run(folder, [agent("a", MEND)], task=task)["a"]
    assert trial.outcome is ERRORED
    assert "o space" in trial.error
    assert trial.error.startswith({
        "setup": "setup could not run: sh: ", "copy": "the workspace cannot be made: cp: exit code",
        "changes": "what the agent changed cannot be read: ",
        "tests": "the tests cannot be laid out: cp: exit code 1: ",
    }[part])  # fmt: skip
    assert said["workspace"]["stage"] == {"changes": "agent", "tests": "grader"}.get(part, "setup")


def test_a_trial_keeps_as_many_files_as_it_may_and_says_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(workspaces, "MOST_ARTEFACT_FILES", 3)
    template = tmp_path / "template"
    template.mkdir()
    files = {f"{number}.log": tmp_path / f"{number}.log" for number in range(9)}
    for file in files.values():
        file.write_text("x")
    own = CommandSystem(name="a", argv=("true",))
    trial = TrialWorkspace(system=own, sandbox=None, template=template, folder=tmp_path,
                           view=View(top=template), keep=("*.log",))  # fmt: skip
    trial.changes = Changes(files=files)
    kept = trial.artefacts(lambda content: content)
    assert list(kept) == ["changes.diff", "files/0.log", "files/1.log"]
    assert trial.changes.flags[0].startswith("not kept: files/2.log and what comes after it")


def test_a_trial_keeps_no_more_than_its_room(tmp_path):
    for number in range(9):
        (tmp_path / f"{number}.log").write_text("x" * 199_000)
    files = {f"{number}.log": tmp_path / f"{number}.log" for number in range(9)}
    kept = dict(kept_files(Changes(files=files), ["*.log"]))
    assert 999_000 <= sum(map(len, kept.values())) <= 1_001_000
    assert kept["8.log"] == "[left out: 199,000 bytes before this]\n"
    assert dict(kept_files(Changes(files=files), [])) == {}


@isolated
def test_a_setup_prepares_the_workspace_once_and_its_failure_is_an_error(folder):
    made = Expectation(matcher="contains", value="made", target="files.made.txt")
    good = Task(name="add", prompt="?", workspace=Workspace(source=folder / "calc"),
                setup="echo made > made.txt", expect=(made,))  # fmt: skip
    came = run(folder, [agent("reads", "cat made.txt")], task=good, runs=3)
    assert came["reads"][0].outcome is PASSED
    bad = replace(good, setup="echo no such package >&2; exit 3")
    trial, said = run(folder, [agent("never starts", "true")], task=bad)["never starts"]
    assert trial.outcome is ERRORED
    assert trial.error == "setup: exit code 3: no such package"
    assert said["workspace"] == {"stage": "setup"}


def test_a_workspace_that_is_not_there_is_an_error_of_its_own(folder, tmp_path):
    gone = Task(name="t", prompt="?", workspace=Workspace(source=tmp_path / "nowhere"))
    trial, _ = run(folder, [agent("a", "true", sandbox="none")], task=gone)["a"]
    assert trial.outcome is ERRORED
    assert "nowhere cannot be made" in trial.error


@pytest.fixture
def repository(tmp_path):
    """A repository whose future has the fix; its first commit."""
    place = tmp_path / "repository"
    place.mkdir()

    def git(*words):
        own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *own, *words], cwd=place, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q", ".")
    (place / "calc.py").write_text(WRONG)
    git("add", "-A")
    git("commit", "-qm", "bug")
    first = git("rev-parse", "HEAD")
    (place / "calc.py").write_text("def add(a, b):\n    return a + b  # THE FIX\n")
    git("commit", "-qam", "fix")
    return place, first, git("rev-parse", "HEAD:calc.py")


def test_a_repository_at_a_commit_has_no_future(repository, tmp_path):
    place, first, fixed = repository
    to = tmp_path / "made"
    make_workspace(Workspace(source=place, commit=first), to)
    assert (to / "calc.py").read_text() == WRONG
    listed = subprocess.run(
        ["git", "rev-list", "--all", "--objects", "--reflog", "HEAD"],
        cwd=to, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert first in listed.stdout
    assert fixed not in listed.stdout
    every = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch-check"],
        cwd=to, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert fixed not in every.stdout
    with pytest.raises(RunError, match="cannot be made"):
        make_workspace(Workspace(source=place, commit="f" * 40), tmp_path / "never")


def test_an_archive_is_unpacked_and_nothing_of_it_lands_outside(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with tarfile.open(tmp_path / "good.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.txt", "sub/a.txt")
    make_workspace(Workspace(source=tmp_path / "good.tar.gz"), tmp_path / "made")
    assert (tmp_path / "made" / "sub" / "a.txt").read_text() == "a"
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(tmp_path / "a.txt", "../out.txt")
    with pytest.raises(RunError, match="cannot be made"):
        make_workspace(Workspace(source=tmp_path / "bad.tar"), tmp_path / "other")
    assert not (tmp_path / "out.txt").exists()


CHANGE = """\
rm lib/old.py; rmdir lib; echo file > lib; mkdir deep; echo new > deep/new.txt;
chmod +x calc.py; rm test_calc.py; ln -s calc.py alias; printf 'no newline' > tail.txt;
printf '\\000\\001' > data.bin
"""


@isolated
@pytest.mark.parametrize("how", ["laid over", "copied"])
def test_changes_are_the_same_however_the_workspace_was_made(folder, tmp_path, monkeypatch, how):
    """What is read back, laid on another copy, makes the folder that the agent left."""
    if how == "laid over" and not overlay_works(tmp_path):
        pytest.skip("no overlay mount here")
    monkeypatch.setattr(sandboxes, "overlay_works", lambda _: how == "laid over")
    keep = tmp_path / "keep"
    check = Expectation(matcher="command", value=["sh", "-c", f"cp -a . {keep}; true"])
    task = Task(
        name="add", prompt="?", workspace=Workspace(source=folder / "calc"), expect=(check,)
    )
    _, said = run(folder, [agent("changes", CHANGE)], task=task)["changes"]
    plain = tmp_path / "plain"
    shutil.copytree(folder / "calc", plain)
    subprocess.run(["sh", "-c", CHANGE], cwd=plain, check=True)
    assert _contents(keep) == _contents(plain)
    assert "Binary files /dev/null and b/data.bin differ" in said["workspace"]["diff"]
    assert "\\ No newline at end of file" in said["workspace"]["diff"]
    assert "--- a/lib/old.py" in said["workspace"]["diff"]


def _contents(root):
    return {
        str(path.relative_to(root)): (
            path.readlink() if path.is_symlink() else path.read_bytes(),
            path.is_symlink() or bool(path.stat().st_mode & 0o100),
        )
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


SWAP = "rm calc.py; mkdir calc.py; echo x > calc.py/inner; rm -r lib; echo y > lib; echo z > deep"

SWAPPED = """\
import unittest
from pathlib import Path


class Hidden(unittest.TestCase):
    def test_folder_for_file(self):
        self.assertEqual(Path("calc.py/inner").read_text(), "x\\n")

    def test_file_for_folder(self):
        self.assertEqual(Path("lib").read_text(), "y\\n")
"""


@isolated
@pytest.mark.parametrize("how", ["laid over", "copied"])
def test_a_folder_for_a_file_and_a_file_for_a_folder_cross_to_the_tests(folder, monkeypatch, how):
    """Also where the hidden tests need a folder in place of what the agent made a file."""
    if how == "laid over" and not overlay_works(folder):
        pytest.skip("no overlay mount here")
    monkeypatch.setattr(sandboxes, "overlay_works", lambda _: how == "laid over")
    (folder / "swapped" / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "swapped" / "hidden_tests.py").write_text(SWAPPED)
    (folder / "swapped" / "deep" / "data.txt").write_text("laid on top")
    task = Task(name="swap", prompt="?", workspace=Workspace(source=folder / "calc"),
                expect=(hidden("swapped/"),))  # fmt: skip
    trial, said = run(folder, [agent("swaps", SWAP)], task=task)["swaps"]
    assert trial.outcome is PASSED, said


@isolated
@pytest.mark.parametrize("how", ["laid over", "copied"])
def test_pipes_sockets_and_devices_stop_nothing(tmp_path, folder, monkeypatch, how):
    """Those of the workspace stay as they are; those that the agent makes are named."""
    if how == "laid over" and not overlay_works(tmp_path):
        pytest.skip("no overlay mount here")
    monkeypatch.setattr(sandboxes, "overlay_works", lambda _: how == "laid over")
    work = tmp_path / "work"
    shutil.copytree(folder / "calc", work)
    os.mkfifo(work / "pipe")
    os.mkfifo(work / "replaced")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(work / "s"))
    if os.geteuid() == 0:
        os.mknod(work / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    task = Task(name="t", prompt="?", workspace=Workspace(source=work), expect=(hidden(),))
    script = f"{MEND}; rm replaced; echo text > replaced; mkfifo own"
    trial, said = run(folder, [agent("a", script)], task=task)["a"]
    assert trial.outcome is PASSED, said
    assert said["workspace"]["flags"] == ["special file: own"]
    assert "Binary files a/replaced and b/replaced differ" in said["workspace"]["diff"]


def test_long_files_are_named_and_not_compared(tmp_path):
    """Comparing them could take minutes, and the agent decides how long they are."""
    (tmp_path / "long.txt").write_text("a\nb\n" * 4_000)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "long.txt").write_text("b\nc\n" * 4_000)
    changes = Changes(files={"long.txt": tmp_path / "new" / "long.txt"})
    assert diff(changes, tmp_path) == (
        "Files a/long.txt and b/long.txt differ, and are too long to compare\n"
    )


def test_only_a_pyproject_toml_that_says_something_new_to_pytest_is_left_behind(tmp_path):
    template, now = tmp_path / "template", tmp_path / "now"
    plain = '[project]\nname = "x"\n'
    settings = f'{plain}[tool.pytest.ini_options]\ntestpaths = "t"\n'
    options = settings.replace('"t"', '"t"\naddopts = "-p cheat"')
    pairs = {
        "dependencies": (settings, settings.replace('"x"', '"x"\ndependencies = ["y"]')),
        "options": (settings, options),
        "native": (settings, f"{plain}[tool.pytest]\nstrict = true\n"),
        "new": (None, options),
        "new but silent": (None, plain),
        "broken": (settings, settings + "[[["),
        "deep": (plain, f"{plain}x = {'[' * 100_000}"),
        "huge": (plain, f"{options}# {'x' * 6_000_000}\n"),
        "no text": (plain, f"{options}\0"),
        "deleted": (settings, None),
        "deleted but silent": (plain, None),
    }
    for name, texts in pairs.items():
        for place, text in zip((template, now), texts, strict=True):
            (place / name).mkdir(parents=True)
            if text is not None:
                (place / name / "pyproject.toml").write_text(text)
    changes = changes_of(View(top=now), template)
    allowed = {"dependencies", "new but silent", "deleted but silent"}
    expected = {f"{name}/pyproject.toml" for name in pairs.keys() - allowed}
    assert _pytest_settings(changes, template) == expected
    crossing = changes.without((), expected)
    assert crossing.files.keys() == {f"{name}/pyproject.toml" for name in allowed}
    many = Changes(files=dict.fromkeys(f"{n}/pyproject.toml" for n in range(1000)))
    assert len(_pytest_settings(many, template)) == 900  # none of them said anything to pytest


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
def test_a_pattern_means_what_it_means_in_a_gitignore(tmp_path):
    parts = ["src", "vendor", "tests", "a.py", "test_a.py"]
    paths = [p for n in (1, 2, 3, 4) for p in itertools.product(parts, repeat=n)]
    names = ["/".join(path) for path in paths if path[-1].endswith(".py")]
    patterns = [
        *("src", "src/", "/src", "/src/", "src/vendor", "src/vendor/", "/src/vendor/", "a.py"),
        *("/a.py", "src/a.py", "/src/vendor/a.py", "**/vendor/", "**/src/a.py", "src/**/a.py"),
        *("src/**/vendor/**/a.py", "src/**", "test_*.py", "*.py", "te?ts/", "[st]*/", "[!t]*/"),
        *("vendor/**", "**/src/**/tests/", "nothing", "src/nothing/"),
    ]
    wider = ["src/*.py", "/*/a.py", "*/test_*.py"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for pattern in [*patterns, *wider]:
        (tmp_path / ".gitignore").write_text(f"{pattern}\n")
        asked = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin"]
        said = subprocess.run(
            asked, input="\n".join(names), capture_output=True, text=True, check=False
        )
        ignored, ours = said.stdout.split(), [name for name in names if matches(name, [pattern])]
        if pattern in patterns:
            assert ours == ignored, pattern
        else:  # `*` crosses folders: a pattern that protects more is the safe one
            assert set(ours) > set(ignored), pattern


@pytest.mark.parametrize(
    ("command", "modules"),
    [
        ("python3 -m nose2 -v", ["nose2", "pytest", "unittest"]),
        ("/usr/bin/python3.12 -I -W error -X dev -m tox", ["tox", "pytest", "unittest"]),
        ("python -mpytest -m slow", ["pytest", "unittest"]),
        ("coverage run -m pytest -m 'not slow'", ["pytest", "unittest"]),
        ("sh -c 'cd x && python3 -Bm unittest'", ["unittest", "pytest"]),
        ("pytest -m slow", []),
        ("grep -m 1 x", []),
    ],
)
def test_only_what_python_starts_as_a_module_is_kept_out_of_its_place(tmp_path, command, modules):
    protected = list(_runner_files(shlex.split(command), tmp_path))
    assert protected == [f"/{name}{end}" for name in modules for end in (".py", "/")]


FORGED = "".join(
    f"test_{name} (hidden_tests.Hidden.test_{name}) ... ok\\n" for name in ("small", "negative")
)
SHADOW = (
    "cat > subprocess.py <<'P'\nimport os, sys\n"
    f"sys.stderr.write('{FORGED}'); sys.stderr.flush(); os._exit(0)\nP"
)


@isolated
@pytest.mark.parametrize("protected", [True, False], ids=["protected", "control"])
def test_no_module_of_the_agent_takes_the_place_of_one_of_python(folder, monkeypatch, protected):
    """The tests import nothing of the workspace but what takes the place of `subprocess`."""
    if not protected:
        monkeypatch.setattr(workspaces, "_standard_modules", lambda *_: ())
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                expect=(hidden("apart/"),))  # fmt: skip
    came = run(folder, [agent("forges", SHADOW), agent("mends", MEND)], task=task)
    assert came["forges"][0].outcome is (FAILED if protected else PASSED)
    assert came["mends"][0].outcome is PASSED
    flags = came["forges"][1]["workspace"]["flags"]
    assert ("touched protected subprocess.py" in flags) is protected


def test_only_what_would_be_imported_in_place_of_the_library_is_left_behind(tmp_path):
    (tmp_path / "queue.py").write_text("")
    left = ["json.py", "json.pyc", "random.cpython-311-x86_64-linux-gnu.so", "email/__init__.py",
            "graders/shlex.py"]  # fmt: skip
    cross = ["queue.py", "html/index.html", "email/parser.py", "src/json.py", "calc.py",
             "json.md", "calendar.py", "code"]  # fmt: skip
    changes = Changes(files=dict.fromkeys([*left, *cross], tmp_path / "queue.py"))
    options = {"patch": "diff --git a/graders/a.py b/graders/a.py\n"}
    folders = _import_folders(options, tmp_path)
    asked = "Write calendar.py, and leave my_json.py, x-json.py and json.python.md as they are"
    found = [
        name.removeprefix("/") for name in _standard_modules(changes, tmp_path, folders, asked)
    ]
    assert found == left


@pytest.mark.parametrize("folder", [".", ".ci", ".ci/.hidden", "tests", "a.b"])
def test_a_hidden_test_is_imported_from_the_folder_that_it_lies_in(tmp_path, folder):
    (tmp_path / "hidden" / folder).mkdir(parents=True)
    (tmp_path / "hidden" / folder / "check.py").write_text("")
    own = "" if folder == "." else folder
    assert _import_folders({"files": ["hidden"]}, tmp_path) == {"", own}
    patch = f"diff --git a/{folder}/x.py b/{folder}/x.py\n"
    assert _import_folders({"patch": patch}, tmp_path) == {"", own}


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("pytest.ini", "[pytest]\npythonpath = lib ./src/\n", "pytest"),
        ("tox.ini", "[pytest]\npythonpath =\n  lib\n  src\n", "pytest"),
        ("setup.cfg", "[tool:pytest]\npythonpath = src lib\n", "pytest"),
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['src', 'lib']\n", "pytest"),
        ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = 'lib src'\n", "pytest"),
        ("README", "", "env PYTHONPATH=src:lib python3 -m unittest"),
        ("README", "", "sh -c 'export PYTHONPATH=\"lib:./src\"; pytest'"),
    ],
)
def test_folders_that_are_named_for_imports_are_guarded_as_the_root_is(
    tmp_path, file, text, command
):
    (tmp_path / file).write_text(text)
    folders = {"", *workspaces._named_import_folders(shlex.split(command), tmp_path)}
    assert folders == {"", "src", "lib"}
    changes = Changes(files=dict.fromkeys(["src/json.py", "lib/csv.py", "docs/re.py"], tmp_path))
    left = list(_standard_modules(changes, tmp_path, folders, ""))
    assert left == ["src/json.py", "lib/csv.py"]


@pytest.mark.parametrize(
    "text", ["[pytest", "[pytest]\npythonpath", "\0", "a = [", "[tool]\npytest=1"]
)
def test_settings_that_cannot_be_read_name_no_folder(tmp_path, text):
    for file in ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"):
        (tmp_path / file).write_text(text)
    assert list(workspaces._named_import_folders(["pytest"], tmp_path)) == []


TERMINAL_BENCH = """\
if grep -q 'a + b' /app/calc.py; then echo 'PASSED test_outputs.py::test_add'
else echo 'FAILED test_outputs.py::test_add - wrong'; exit 1; fi
"""


@isolated
def test_a_task_of_terminal_bench_is_done_and_verified_inside_its_image(tmp_path, image):
    """What its run-tests.sh prints decides, as pytest prints it."""
    task = tmp_path / "tasks" / "adds"
    for name, text in (
        ("task.yaml", "instruction: Mend it.\nmax_agent_timeout_sec: 100\n"),
        ("run-tests.sh", TERMINAL_BENCH), ("tests/test_outputs.py", ""), ("solution.sh", MEND),
    ):  # fmt: skip
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    scripts = {"mends": MEND, "idles": "true", "prints the report": TERMINAL_BENCH}
    systems = [{"name": name, "command": ["sh", "-c", text]} for name, text in scripts.items()]
    suite = {"name": "s", "systems": systems, "defaults": {"runs": 1},
             "tasks": [{"name": "t", "from": "tasks", "workspace": {"image": image}}]}  # fmt: skip
    (tmp_path / "suite.yml").write_text(json.dumps(suite))
    trials = run_trials(load_suite(tmp_path / "suite.yml"), handle_signals=False).trials
    ended = {trial.system: trial.outcome for trial in trials}
    assert ended == {"mends": PASSED, "idles": FAILED, "prints the report": FAILED}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
def test_the_files_of_a_patch_are_those_that_git_says(tmp_path):
    names = [b"a b.py", "café.py".encode(), b"odd\xff.py", b'quo"te.py', b"back\\slash.py",
             b"tab\t.py", b"new\nline.py", b"\\u12.py", b"bell\a\x01.py", b"plain.py"]  # fmt: skip
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        for name in names:
            (folder / os.fsdecode(name)).write_text(folder.name)
    words = ["git", "diff", "--no-index", "--no-prefix", "before", "after"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    text = done.stdout.decode().replace("before/", "a/").replace("after/", "b/")
    assert sorted(map(os.fsencode, workspaces._patched(text))) == sorted(names)
    view = View(top=tmp_path / "work")
    shutil.copytree(before, view.top)
    workspaces.lay_patch(text, view, before, tmp_path / "scratch")
    assert {file.read_text() for file in view.top.iterdir()} == {"after"}
    for broken in ('diff --git "a/\\" "b/\\"', 'rename from "\\N{x}"', 'rename to "\\777\\000"'):
        assert len(list(workspaces._patched(broken))) == 1


def test_no_change_is_written_through_a_link(tmp_path):
    template, top, outside = (tmp_path / name for name in ("template", "top", "outside"))
    for place in (template, top, outside):
        place.mkdir()
    (tmp_path / "file").write_text("x")
    (top / "sub").symlink_to(outside)
    lay(Changes(files={"sub/evil.txt": tmp_path / "file"}), View(top=top), template)
    assert list(outside.iterdir()) == []


def test_a_file_with_holes_crosses_with_its_holes(tmp_path):
    """Ten gigabytes that take no room at the agent take none at the tests."""
    template, theirs, ours = (tmp_path / name for name in ("template", "theirs", "ours"))
    for folder in (template, theirs, ours):
        folder.mkdir()
    sparse = theirs / "sparse.bin"
    with sparse.open("wb") as file:
        for place in (0, 5 * 2**30 + 3, 10 * 2**30):
            file.seek(place)
            file.write(b"here")
        file.truncate(11 * 2**30)
    (theirs / "plain.txt").write_text("plain\n" * 500_000)
    (theirs / "empty.txt").touch()
    (theirs / "hole.bin").touch()
    os.truncate(theirs / "hole.bin", 2**30)
    found = changes_of(View(top=theirs, below=template), template)
    lay(found, View(top=ours, below=template), template)
    copied = ours / "sparse.bin"
    assert copied.stat().st_size == 11 * 2**30
    assert copied.stat().st_blocks <= sparse.stat().st_blocks
    with copied.open("rb") as file:
        for place in (0, 5 * 2**30 + 3, 10 * 2**30):
            file.seek(place)
            assert file.read(6) == b"here\0\0"
    assert (ours / "plain.txt").read_bytes() == (theirs / "plain.txt").read_bytes()
    sizes = [(ours / name).stat().st_size for name in ("empty.txt", "hole.bin")]
    assert sizes == [0, 2**30]


def test_a_copy_that_nobody_touched_has_no_changes(folder, tmp_path):
    shutil.copytree(folder / "calc", tmp_path / "copy")
    changes = changes_of(View(top=tmp_path / "copy"), folder / "calc")
    assert changes == Changes(files={})
    assert diff(changes, folder / "calc") == ""


def test_a_suite_gives_a_workspace_hidden_tests_and_thirty_minutes(folder):
    (folder / "suite.yml").write_text(
        """\
name: calc
resources: {memory: 1GB, disk: 2GB, processes: 99}
systems:
  - {name: a, command: "agent {prompt}", add_files: {.skills/x: skillx}, show: skillx}
  - {name: b, command: "agent {prompt}", sandbox: none, timeout: 60}
tasks:
  - name: add
    prompt: Mend it.
    workspace: calc
    setup: make
    expect:
      - tests: {run: "pytest --junitxml={report}", files: hidden/, at_least: 2}
"""
    )
    (folder / "skillx").mkdir(exist_ok=True)
    suite = load_suite(folder / "suite.yml")
    first, second = suite.pairings
    assert first.task.workspace == Workspace(source=folder / "calc")
    assert first.task.timeout == 1800.0
    assert second.task.timeout is None
    assert second.system.sandbox == "none"
    assert first.system.add_files == {".skills/x": folder / "skillx"}
    assert (suite.resources.disk, suite.resources.processes) == (2 * 10**9, 99)
    (expected,) = first.task.expect
    assert expected.value == "pytest --junitxml={report}"


REFUSED = {
    "workspace: {repo: calc, commit: main}": "a branch or a tag may move",
    "workspace: .": "contains the suite",
    "workspace: nowhere": "there is no",
    "setup: make": "setup needs a workspace",
    "workspace: {folder: calc, repo: calc}": "needs either folder or repo",
    "workspace: calc\n    expect: [{tests: {run: x, files: calc/test_calc.py}}]": (
        "where the agent reads"
    ),
    "workspace: calc\n    expect: [{tests: {run: x, files: nothing}}]": "there are no tests at",
    "expect: [{tests: {run: x, files: hidden}}]": "tests needs a workspace",
}


@pytest.mark.parametrize("keys", REFUSED)
def test_a_suite_that_would_let_an_agent_see_what_decides_is_refused(folder, keys):
    path = folder / "refused.yml"
    path.write_text(
        f"systems: [{{name: a, command: x}}]\ntasks:\n  - name: add\n    prompt: '?'\n    {keys}\n"
    )
    with pytest.raises(PasshatError, match=REFUSED[keys]):
        load_suite(path)


def test_a_commit_that_git_does_not_find_is_refused_before_a_run(tmp_path):
    """Nobody could say whether the tests are in sight there."""
    (tmp_path / "repository").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "repository")], check=True)
    (tmp_path / "suite.yml").write_text(
        "systems: [{name: a, command: x}]\ntasks:\n  - name: add\n    prompt: '?'\n"
        "    workspace: {repo: repository, commit: abcdef1}\n    expect: [{tests: x}]\n"
    )
    (checked,) = check_suites([tmp_path / "suite.yml"])
    (fault,) = checked.faults
    assert fault.line == 5
    assert fault.message.startswith("git cannot read the commit abcdef1 of ")
    with pytest.raises(PasshatError, match="git cannot read the commit abcdef1"):
        _refuse_absent(load_suite(tmp_path / "suite.yml"))


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "folder"])
def test_hidden_tests_and_suites_in_the_history_of_a_workspace_are_refused(tmp_path, commit):
    """What was deleted is still there for whoever asks git."""
    place = tmp_path / "calc"
    place.mkdir()
    (place / "calc.py").write_text(WRONG)
    (place / "old_tests.py").write_text("old = 1\n")

    def git(*words):
        ours = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
        done = subprocess.run([*ours, *words], cwd=place, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "before")
    before = git("rev-parse", "HEAD")
    (place / "new_tests.py").write_text(HIDDEN)
    git("add", "-A")
    git("commit", "-qm", "tests")
    after = git("rev-parse", "HEAD")
    git("rm", "-q", "new_tests.py")
    git("commit", "-qm", "deleted")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "old_tests.py").write_text("old = 1\n")
    (tmp_path / "hidden" / "new_tests.py").write_text(HIDDEN)

    def faults(work, files="hidden"):
        path = tmp_path / "suite.yml"
        path.write_text(
            "systems: [{name: a, command: sh}]\ntasks:\n  - name: t\n    prompt: '?'\n"
            f"    workspace: {work}\n    expect: [{{tests: {{run: x, files: {files}}}}}]\n"
        )
        (checked,) = check_suites(path)
        with (
            pytest.raises(PasshatError, match="hidden tests are in")
            if checked.faults
            else (nullcontext())
        ):
            _refuse_absent(load_suite(path))
        return [fault.message for fault in checked.faults]

    if commit:
        (told,) = faults(f"{{repo: calc, commit: {after}}}")
        assert not faults(f"{{repo: calc, commit: {before}}}")  # there, only the old ones are
    else:
        (told,) = faults("calc")
        (tmp_path / "hidden" / "new_tests.py").write_text(HIDDEN + "# another\n")
        assert not faults("calc")
    assert "hidden tests are in the repository" in told


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("{name: a, python: 'm:f'}", "only a command can work in a workspace"),
        ("{name: a, command: x, cwd: calc}", "has no meaning in a workspace"),
        ("{name: a, command: x, add_files: {../up: calc}}", "inside the workspace"),
        ("{name: a, command: x, add_files: {up: nowhere}}", "there is no"),
        ("{name: a, command: x, show: [/nowhere]}", "there is no"),
        ("{name: a, command: x, show: [/]}", "/ contains the suite"),
        ("{name: a, command: x, show: [..]}", "contains the suite, and with it what decides"),
    ],
)
def test_a_system_that_cannot_work_in_a_workspace_is_refused(folder, system, message):
    path = folder / "refused.yml"
    path.write_text(f"systems: [{system}]\ntasks: [{{name: add, prompt: '?', workspace: calc}}]\n")
    with pytest.raises(PasshatError, match=message):
        load_suite(path)


def test_without_bubblewrap_a_workspace_is_an_error_that_names_the_package(folder, monkeypatch):
    require_bubblewrap.cache_clear()
    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: None)
    try:
        trial, _ = run(folder, [agent("a", "true")])["a"]
    finally:
        require_bubblewrap.cache_clear()
    assert trial.outcome is ERRORED
    assert "package bubblewrap" in trial.error
    assert "sandbox: none" in trial.error


def test_a_run_without_bubblewrap_is_refused_before_it_begins_and_check_says_why(
    folder, tmp_path, monkeypatch
):
    (tmp_path / "calc").mkdir()
    path = tmp_path / "suite.yml"
    keys = "tasks: [{name: t, prompt: '?', workspace: calc, expect: [{contains: x}]}]\n"
    path.write_text("systems: [{name: a, command: sh}]\n" + keys)
    require_bubblewrap.cache_clear()
    monkeypatch.setattr(sandboxes.shutil, "which", lambda _, **__: "/bin/sh" if _ == "sh" else None)
    try:
        with pytest.raises(PasshatError, match="package bubblewrap"):
            _refuse_absent(load_suite(path))
        (found,) = (one for one in diagnose(path) if one.what == "sandbox")
        assert found.problem
        path.write_text("systems: [{name: a, command: sh, sandbox: none}]\n" + keys)
        _refuse_absent(load_suite(path))
    finally:
        require_bubblewrap.cache_clear()


def test_a_workspace_is_not_recorded_and_a_replay_says_so(folder, tmp_path):
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"))
    system = agent("a", "true", sandbox="none")
    pairing = Pairing(system=system, task=task, runs=1, label="t")
    settings = CassetteSettings(mode="record", directory=tmp_path / "cassettes")
    suite = Suite(name="s", pairings=(pairing,), directory=folder, cassette=settings)
    with open_cassettes(suite, "record", environment={}) as cassettes:
        (trial,) = run_trials(suite, handle_signals=False, cassettes=cassettes).trials
    assert trial.outcome is ERRORED
    assert "run it live" in trial.error


@isolated
def test_a_fresh_workspace_of_many_files_takes_no_copy(tmp_path):
    """With an overlay, a trial's workspace costs the same however large the template is."""
    if not overlay_works(tmp_path):
        pytest.skip("no overlay mount here")
    from passhat.runner.sandbox import Sandbox
    from passhat.runner.workspaces import fresh_copy

    sandbox = Sandbox(tmp_path, Limits())
    template = tmp_path / "template"
    template.mkdir()
    for number in range(300):
        (template / f"{number}.txt").write_text("x" * 100)
    view = fresh_copy(template, tmp_path / "trial", sandbox)
    assert list(view.top.iterdir()) == []
    assert view.below == template


@isolated
def test_trials_killed_in_the_middle_leave_nothing_behind(folder, tmp_path):
    """The sandbox ends with the program that started it, even where that was killed."""
    long = f"sleep 3{os.getpid()}"  # a name that no other test has
    (folder / "slow.yml").write_text(
        f"systems: [{{name: a, command: [sh, -c, 'touch started; {long}']}}]\n"
        "tasks: [{name: add, prompt: '?', workspace: calc, expect: [{contains: x}]}]\n"
    )
    env = os.environ | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "passhat", "run", str(folder / "slow.yml")]
    said = tmp_path / "said.txt"
    with said.open("wb") as file:
        process = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=file, stderr=file)
    try:
        pattern = "passhat-run-*/workspaces/trial-*/top/started"
        _until(lambda: list(tmp_path.glob(pattern)) or process.poll() is not None)
        assert list(tmp_path.glob(pattern)), said.read_text()
    finally:
        process.kill()
        process.wait()
    _until(lambda: not _running(long))


def _running(words):
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path))
    return [line for line in lines if line.replace(b"\0", b" ").strip() == words.encode()]


def _readable(path):
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


def _until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come about within a minute"
        time.sleep(0.05)


def test_a_diff_is_shown_and_never_run():
    """What an agent wrote into a file is data on a page and in a terminal."""
    evil = "--- /dev/null\n+++ b/x.html\n@@ -0,0 +1 @@\n+<script>alert(1)</script>\x1b[2J\n"
    left = {"sandbox": "none: NOT ISOLATED", "diff": evil, "flags": ["touched <b>tests</b>"]}
    kept = json.dumps({"answer": "done", "workspace": left})
    page = transcript_page(kept, 100_000)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page
    assert "<b>tests" not in page
    assert "\x1b" not in page
    assert "NOT ISOLATED" in page
    assert Transcript.from_json(kept).cut(60).size() <= 200
    assert Transcript.from_json(Transcript.from_json(kept).to_json()).diff == evil


@pytest.mark.parametrize(
    ("command", "code", "stderr", "broken"),
    [
        ("python3 -m pytest -q", 1, "/usr/bin/python3: No module named pytest", True),
        ("python3 -m pytest.x", 1, "/usr/bin/python3: No module named pytest", True),
        ("nosuchprogram", 127, "nosuchprogram: not found", True),
        ("python3 -m unittest t", 1, "ModuleNotFoundError: No module named 'calc'", False),
        ("python3 -m pytest -q", 1, "1 failed", False),
        (
            "python3 -m pytest -q",
            1,
            "Fatal Python error: init_sys_streams: no\nPython runtime state: core initialized\n",
            True,
        ),
        (
            "python3 -m pytest -q",
            1,
            "Fatal Python error: Segmentation fault\n\nThread 0x00 (most recent call first):\n",
            False,
        ),
    ],
)
def test_tests_that_cannot_be_started_are_an_error_and_no_failure(command, code, stderr, broken):
    async def ran(_words, _report):
        return hidden_tests.TestRun(code=code, stderr=stderr)

    asked = hidden_tests.match_tests(
        Expectation(matcher="tests", value=command), ran, lambda _: None
    )
    if broken:
        with pytest.raises(GraderError, match="the tests could not run: "):
            asyncio.run(asked)
    else:
        assert asyncio.run(asked).score == 0
