"""Runs with workspaces from outside: by a user without root, and killed at any moment."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.runner.test_workspaces import HIDDEN, MEND, RUN_HIDDEN, WRONG, isolated

from passhat.history import History
from passhat.history.artefacts import list_artefacts
from passhat.history.queries import all_transcripts
from passhat.records import Outcome
from passhat.runner import sandbox as sandboxes
from passhat.testing import WireServer

PASSHAT = (sys.executable, "-m", "passhat")
NOBODY = 65534


def until(condition, what):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, f"not within two minutes: {what}"
        time.sleep(0.02)


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# Without root.

ASKS = """\
import http.client, json, os
server = http.client.HTTPConnection(os.environ["PASSHAT_GATEWAY"].removeprefix("http://"))
body = {"model": "gpt-5", "messages": [], "max_tokens": 9}
server.request("POST", "/v1/chat/completions", json.dumps(body))
print(server.getresponse().status)
os.system(os.environ["MEND"])
"""

HOW_TO = """\
name: calc
defaults: {{runs: 2}}
resources: {{cpus: 1, memory: 256MB, disk: 50MB, processes: 64}}
systems:
  - {{name: fixer, command: [sh, -c, "{mend}"], show: [{shown}]}}
  - name: asks
    command: [/usr/bin/python3, asks.py]
    model: gpt-5
    base_url: "{url}"
    api_key: sk-real-key
    prices: {{input: 1, output: 1}}
    env: {{MEND: "{mend}"}}
    show: [{shown}]
  - {{name: takes memory, command: [/usr/bin/python3, -c, "x = [b'x' * 10**7 for _ in range(100)]; import time; time.sleep(60)"], show: [{shown}]}}
  - {{name: reads, command: [sh, -c, "cat {folder}/secret.txt; ls -A ~"], show: [{shown}]}}
  - {{name: trusted, command: [sh, -c, "{mend}"], sandbox: none}}
tasks:
  - name: add
    prompt: calc.add is wrong. Fix it.
    workspace: calc
    setup: echo ready > ready.txt
    expect:
      - tests: {{run: "env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {python} -m pytest -q -p no:cacheprovider --junitxml={{report}}", files: hidden/, at_least: 2}}
  - name: add in a commit
    prompt: calc.add is wrong. Fix it.
    workspace: {{repo: repository, commit: {commit}}}
    expect:
      - tests: {{run: "{unittest}", files: hidden_unittest/, at_least: 2}}
"""  # noqa: E501 - a suite has no line breaks there


def without_root(folder):
    """The words that start a program as a user without root; none where we are one.

    The user may not enter every folder above our Python: in a name space of its own, such a folder
    is replaced by one that holds nothing but that Python.
    """
    if os.geteuid() != 0:
        return []
    for name in ("unshare", "setpriv", "mount"):
        if shutil.which(name) is None:
            pytest.skip(f"root without the program {name} cannot become another user")
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no name space can be made: {done.stderr.strip()}")
    lines = ["set -e", "mount -t tmpfs -o mode=755 none /mnt"]
    needed = {Path(sys.base_prefix), Path(__file__).parents[2], Path(sys.prefix), folder}
    closed = {
        next((up for up in reversed(path.parents) if not up.stat().st_mode & 0o001), None)
        for path in needed
    } - {None}
    for number, above in enumerate(sorted(closed)):
        inside = [path for path in needed if above in path.parents]
        for place, path in enumerate(inside):
            lines += [f"mkdir -p /mnt/{number}-{place}"]
            lines += [f"mount --bind {path} /mnt/{number}-{place}"]
        lines += [f"mount -t tmpfs -o mode=755 none {above}"]
        for place, path in enumerate(inside):
            lines += [f"mkdir -p {path}", f"mount --bind /mnt/{number}-{place} {path}"]
    user = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    lines += [f'cd "$1"; shift; exec {user} "$@"']
    return ["unshare", "-m", "sh", "-c", "\n".join(lines), "sh", str(folder)]


@isolated
@pytest.mark.slow("twenty trials in sandboxes, by a whole command that another user starts")
def test_a_user_without_root_can_do_all_that_the_how_to_shows(tmp_path):
    python = sys.executable
    packages = Path(pytest.__file__).resolve().parents[1]
    shown = ", ".join(dict.fromkeys(map(str, (sys.prefix, sys.base_prefix, packages))))
    write(
        tmp_path,
        {
            "calc/calc.py": WRONG,
            "hidden/test_hidden.py": HIDDEN,
            "hidden_unittest/hidden_tests.py": HIDDEN,
            "repository/calc.py": WRONG,
            "asks.py": ASKS,
            "secret.txt": "EXPECTED_ANSWER_42",
        },
    )
    git = ("git", "-C", str(tmp_path / "repository"), "-c", "user.name=x", "-c", "user.email=x@y")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "wrong")):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    with WireServer() as server:
        suite = HOW_TO.format(
            mend=MEND, shown=shown, url=server.url, python=python, commit=commit,
            unittest=RUN_HIDDEN, folder=tmp_path,
        )  # fmt: skip
        (tmp_path / "passhat.yml").write_text(suite)
        (tmp_path / "tmp").mkdir()
        if os.geteuid() == 0:
            for path in (tmp_path, *tmp_path.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        env = {"PATH": os.environ["PATH"], "TMPDIR": f"{tmp_path}/tmp", "HOME": str(tmp_path)}
        env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
        words = [*without_root(tmp_path), *PASSHAT, "run", "--json"]
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        keys = {asked.headers["authorization"] for asked in server.asked}
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    with History.open(tmp_path / ".passhat" / "history.db", read_only=True) as history:
        (stored,) = history.runs()
        came = {
            system: Counter() for system in ("fixer", "asks", "trusted", "takes memory", "reads")
        }
        for trial in history.trials(stored):
            came[trial.system][trial.task, trial.outcome] += 1
    every, none = (
        Counter({("add", outcome): 2, ("add in a commit", outcome): 2})
        for outcome in (Outcome.PASSED, Outcome.FAILED)
    )
    assert came == {
        "fixer": every, "asks": every, "trusted": every, "takes memory": none, "reads": none,
    }, done.stdout  # fmt: skip
    assert keys == {"Bearer sk-real-key"}
    reasons = {one["system"]: one["reason"] for one in said["failures"]}
    assert "memory" in reasons["takes memory"]
    with History.open(tmp_path / ".passhat" / "history.db", read_only=True) as history:
        kept = [text for run in history.runs() for text in all_transcripts(history, run).values()]
    assert len(kept) == 20
    assert not [text for text in kept if "EXPECTED_ANSWER" in str(text)]
    assert list((tmp_path / "tmp").iterdir()) == []


# Killed.

KILLS, TASKS, RUNS = 20, 2, 8

KILLED = """\
name: killed
defaults: {{runs: {runs}}}
concurrency: 3
systems: [{{name: a, command: [sh, -c, "sleep 0.1{mark}; {mend}"]}}]
tasks:
{tasks}
"""
TASK = """\
  - name: t{number}
    prompt: Fix it.
    workspace: calc
    setup: echo {number} > ready.txt
    expect: [{{tests: {{run: "env MARK={mark} {run}", files: hidden/, at_least: 2}}}}]
"""


def running(mark):
    """The processes whose command line has a word that no other test has."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if mark.encode() in text:
            found.append(text)
    return found


@isolated
@pytest.mark.slow("starts and kills a run twenty times")
def test_a_run_killed_at_twenty_moments_loses_nothing_and_leaves_nothing(tmp_path):
    mark = f"{os.getpid():07d}"
    write(tmp_path, {"calc/calc.py": WRONG, "hidden/hidden_tests.py": HIDDEN})
    tasks = "".join(TASK.format(number=n, mark=mark, run=RUN_HIDDEN) for n in range(TASKS))
    suite = KILLED.format(runs=RUNS, mark=mark, mend=MEND, tasks=tasks)
    (tmp_path / "passhat.yml").write_text(suite)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    env = os.environ | {"TMPDIR": str(scratch)}
    rng = random.Random(1)
    store = tmp_path / ".passhat" / "history.db"
    pids, names = [], set()

    def stored():
        """The trials in the store; None if it has no run."""
        if not store.exists():
            return None
        with History.open(store, read_only=True) as history:
            trials = [
                (t.task, t.trial, int(t.outcome)) for r in history.runs() for t in history.trials(r)
            ]
            return trials if history.runs() else None

    for _ in range(KILLS):
        before = stored()
        words = ["run"] if before is None else ["run", "--resume"]
        process = subprocess.Popen(
            [*PASSHAT, *words], cwd=tmp_path, env=env, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        pids.append(process.pid)
        until(
            lambda p=process: p.poll() is not None or list(scratch.glob("*/workspaces/*")),
            "the first workspace",
        )
        time.sleep(rng.uniform(0, 0.6))  # any moment will do: nothing below waits for a clock
        process.kill()
        process.wait()
        # A bubblewrap that was just beginning stays; the next run ends it.
        until(
            lambda: all(line.startswith(b"bwrap-") for line in running(mark)),
            "the end of what ran in sandboxes",
        )
        assert set(before or ()) <= set(stored() or ()), "a stored trial was lost"
        names |= {folder.name for folder in scratch.iterdir()}
        for folder in scratch.iterdir():  # one this new might be another run's that just begins
            os.utime(folder, (0, 0))
    # The next start, which adds a trial to each task, so that there is something to do for it.
    done = subprocess.run(
        [*PASSHAT, "run", "--resume", "--trials", str(RUNS + 1)],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(stored()) == [(f"t{t}", n, 1) for t in range(TASKS) for n in range(RUNS + 1)]
    with History.open(store, read_only=True) as history:
        files = [one for run in history.runs() for one in list_artefacts(history.database, run)]
        assert Counter(one.name for one in files)["changes.diff"] == TASKS * (RUNS + 1)
        assert {error for _, error in history.verify_all()} == {None}
    # Python itself leaves a file if it is killed while it looks for a folder for temporary files.
    assert list(scratch.glob("passhat-*")) == [], "a folder was left behind"
    assert not [line for name in names for line in running(name)], "a sandbox was left behind"
    assert str(scratch) not in Path("/proc/self/mounts").read_text()
    for parent in (sandboxes.CGROUPS, sandboxes.CGROUPS / "memory", sandboxes.CGROUPS / "pids"):
        assert not [one for pid in pids for one in parent.glob(f"passhat-{pid}-*")]


# What a run says of its trials.

LIMITED = """\
name: calc
defaults: {{runs: 3}}
resources: {{memory: 64MB, disk: 50MB, processes: 64}}
systems:
  - {{name: hungry, command: [/usr/bin/python3, -c, "x = b'x' * 10**9"]}}
  - {{name: modest, command: [sh, -c, "{mend}"], sandbox: {sandbox}}}
concurrency: 1
tasks:
  - name: add
    prompt: calc.add is wrong. Fix it.
    workspace: calc
    expect:
      - tests: {{run: "{unittest}", files: hidden/, at_least: 2}}
"""


def _passhat(*words, cwd):
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    return subprocess.run(
        [*PASSHAT, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.slow("trials in sandboxes that run into their limit")
@isolated
def test_a_limit_that_most_trials_reach_is_doubted(tmp_path):
    write(
        tmp_path,
        {
            "calc/calc.py": WRONG,
            "hidden/hidden_tests.py": HIDDEN,
            "suite.yml": LIMITED.format(mend=MEND, unittest=RUN_HIDDEN, sandbox="auto"),
        },
    )
    done = _passhat("run", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert done.returncode == 1, done.stderr
    told = "3 of 3 trials of add by hungry reached their memory limit and failed by that"
    assert told in said
    assert "by modest reached" not in said
    assert told in " ".join(_passhat("report", "latest", cwd=tmp_path).stdout.split())


ODD = """\
import os
open("calc.py", "w").write("def add(a, b):\\n    return a + b\\n")
os.truncate(os.open("sparse.bin", os.O_CREAT | os.O_WRONLY), 10 * 2**30)
for name in (b"not-utf8-\\xff.txt", b"two\\nlines.txt", b"\\x1b[2J<script>.txt"):
    open(name, "w").write("odd\\n")
os.symlink("/etc/passwd", "link")
os.mkfifo("pipe")
os.mkdir("many")
for number in range(5_000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
for _ in range(1500):
    os.mkdir("d" * 20)
    os.chdir("d" * 20)
"""
ODD_SUITE = """\
name: odd
resources: {{disk: 20GB}}
systems:
  - {{name: odd, command: [/usr/bin/python3, odd.py], show: [odd.py]}}
  - {{name: plain, command: [sh, -c, "{mend}"]}}
concurrency: 1
tasks:
  - name: add
    prompt: calc.add is wrong. Fix it.
    workspace: calc
    keep: ["*"]
    expect:
      - tests: {{run: "{unittest}", files: hidden/, at_least: 2}}
"""


@pytest.mark.slow("makes thousands of files and folders in a workspace")
@isolated
def test_odd_files_of_an_agent_stop_neither_the_run_nor_its_store_nor_its_page(tmp_path):
    """A sparse file of 10 GB, 5,000 files, 1,500 folders in one another, names of any bytes."""
    suite = ODD_SUITE.format(mend=MEND, unittest=RUN_HIDDEN).replace("odd.py", f"{tmp_path}/odd.py")
    write(
        tmp_path,
        {
            "calc/calc.py": WRONG,
            "hidden/hidden_tests.py": HIDDEN,
            "odd.py": ODD,
            "suite.yml": suite,
        },
    )
    done = _passhat("run", "--html", "page.html", "--transcripts", cwd=tmp_path)
    assert done.returncode == 0, done
    page = (tmp_path / "page.html").read_text()
    assert "<script>.txt" not in page
    assert "\x1b" not in page
    with History.open(tmp_path / ".passhat" / "history.db", read_only=True) as history:
        (run,) = history.runs()
        assert (run.passed, run.trials) == (2, 2)
        said = {key[0]: json.loads(text) for key, text in all_transcripts(history, run).items()}
        kept = sum(one.size for one in list_artefacts(history.database, run))
    flags = said["odd"]["workspace"]["flags"]
    assert "link out of the workspace: link -> /etc/passwd" in flags
    assert "special file: pipe" in flags
    assert "folders deeper than 100: left behind" in flags
    assert kept < 60_000_000


@pytest.mark.slow("two runs of the installed command; test_how_trials_end has what they say")
@isolated
def test_a_run_whose_hidden_tests_change_stops_with_3_and_can_be_resumed(tmp_path):
    hidden = tmp_path / "hidden" / "hidden_tests.py"
    once = f"[ -e {tmp_path}/done ] || echo '#' >> {hidden}; touch {tmp_path}/done; {MEND}"
    suite = LIMITED.format(mend=once, unittest=RUN_HIDDEN, sandbox="none")
    lines = [line for line in suite.splitlines() if "hungry" not in line]
    write(
        tmp_path,
        {
            "calc/calc.py": WRONG,
            "hidden/hidden_tests.py": HIDDEN,
            "suite.yml": "\n".join(lines),
        },
    )
    stopped = _passhat("run", cwd=tmp_path)
    said = " ".join(stopped.stderr.split())
    assert stopped.returncode == 3, stopped
    assert "no trial can be graded: changed during the run: hidden/hidden_tests.py" in said
    assert "2 of 3 trials were left undone" in said
    assert "--retry-errors" in said
    hidden.write_text(HIDDEN)
    resumed = _passhat("run", "--resume", "latest", "--retry-errors", cwd=tmp_path)
    assert resumed.returncode == 0, resumed
    # It ran without a sandbox, and everything that tells of it says so.
    told = "NOT ISOLATED: modest ran without a sandbox, and could read what decides"
    names = ("page.html", "report.json", "report.md")
    _passhat("report", "latest", *(f"-o{name}" for name in names), cwd=tmp_path)
    for text in (resumed.stdout, *((tmp_path / name).read_text() for name in names)):
        assert told in " ".join(text.split())
    (run,) = History.open(tmp_path / ".passhat" / "history.db").runs()
    assert run.status == "finished"
