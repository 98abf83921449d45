"""Can a task be passed without doing it? Tried on the suite's own tasks, before an agent tries it.

Doing nothing must fail, the reference solution must pass, and every cheat that is known to fool
graders must fail. Each is an agent of its own: a shell script in the workspace of the task, which
the suite's own graders judge. What the scripts plant forges a report of passing tests wherever it
runs: as a file of the project that tests import, as a plugin, or in the place of the test runner.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import quoteattr

from passhat import records
from passhat.dataclass import dataclass, replace
from passhat.runner.journal import MemoryJournal
from passhat.runner.processes import exit_sentence
from passhat.runner.run import run_trials

NOTHING, SOLUTION = "does nothing", "the solution"
FORGES = "forges the report in the code that the tests import"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheat:
    """A way to pass without doing the task: a shell script, and what closes the hole.

    One that is `inside` runs in the process of the tests. Where they import the agent's code it
    shows nothing new: there is no telling them apart.
    """

    name: str
    script: str
    remedy: str
    inside: bool = False


TriedOutcome = Literal["passed", "failed", "errored", "untried"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of one attempt at a task: how it ended, how it should have, and why.

    A cheat is `untried` if its own script failed: the grader has not shown that it sees through it.
    """

    task: str
    attempt: str
    outcome: TriedOutcome
    wanted: Literal["passed", "failed"]
    reason: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it ended as it should have: a cheat that breaks the grader does not pass."""
        return self.outcome == self.wanted or (
            self.outcome == "errored" and self.attempt not in (NOTHING, SOLUTION)
        )


def try_tasks(suite: records.Suite, *, live: bool = False) -> tuple[Tried, ...]:
    """Try each task with a workspace: nothing, its solution, and every cheat.

    Tasks that a judge or a simulated user decides about are left out unless `live`: they cost.
    """
    chosen = {p.task.name: p for p in suite.pairings if can_be_tried(p.task, live=live)}
    with tempfile.TemporaryDirectory(prefix="passhat-try-") as folder:
        pairings = [
            pairing
            for number, given in enumerate(chosen.values())
            for pairing in _attempts(given, Path(folder) / str(number))
        ]
        if not pairings:
            return ()
        tried = replace(
            suite, pairings=tuple(pairings), cassette=records.CassetteSettings(mode="none")
        )
        journal = MemoryJournal()
        run_trials(tried, journal=journal, keep_going=True)
    done_by_key = {(done.trial.task, done.trial.system): done for done in journal.finished()}
    return tuple(
        Tried(
            task=pairing.task.name,
            attempt=pairing.system.name,
            outcome=_outcome(done),
            wanted="passed" if pairing.system.name == SOLUTION else "failed",
            reason=_reason(done),
        )
        for pairing in pairings
        if (done := done_by_key.get((pairing.task.name, pairing.system.name))) is not None
    )


def can_be_tried(task: records.Task, *, live: bool) -> bool:
    """Whether a task has a workspace to cheat in, and costs nothing to grade."""
    costs = task.scenario is not None or any(e.matcher == "judge" for e in task.expectations())
    return task.workspace is not None and task.is_reference and (live or not costs)


def _outcome(done: records.Finished) -> TriedOutcome:
    if done.trial.outcome is records.Outcome.PASSED:
        return "passed"
    if done.trial.outcome is records.Outcome.ERRORED:
        return "errored"
    is_cheat = done.trial.system not in (NOTHING, SOLUTION)
    return "untried" if is_cheat and _script_fault(done) else "failed"


def _reason(done: records.Finished) -> str:
    """Why an attempt errored or failed: its own script, if that did not work, or the grader."""
    if done.trial.error is not None:
        return done.trial.error
    if fault := _script_fault(done):
        return fault
    checks = json.loads(done.transcript or "{}").get("checks") or ()
    missed = (check.get("message") for check in checks if check["score"] < 1)
    return next(map(str, missed), "")


def _script_fault(done: records.Finished) -> str:
    kept = json.loads(done.transcript or "{}")
    code = kept.get("exit_code")
    return exit_sentence(code, kept.get("stderr", "")) if code else ""


def _attempts(pairing: records.Pairing, folder: Path) -> Iterator[records.Pairing]:
    """The task once for each attempt, with what its script needs in a folder of ours."""
    task, system = pairing.task, pairing.system
    assert isinstance(system, records.CommandSystem), "a suite with another is refused"
    folder.mkdir()
    cheat_files, solution = folder / "cheat.tar", task.solution
    _pack({name: text.encode() for name, text in _planted(task).items()}, cheat_files)
    begin = f'C=$(mktemp -d); trap \'rm -rf "$C"\' EXIT; tar -xf {_quoted(cheat_files)} -C "$C"\n'
    begin += "find . ! -type l ! -perm -u+w -exec chmod u+w {} +\n"  # as an agent would
    scripts = {NOTHING: "true"}
    named = ""
    if solution is not None:
        scripts[SOLUTION] = solve = _solve(solution, folder)
        if solution.run is None:
            # A cheat may guess which files the solution writes, but not what is in them.
            named = f'mkdir "$C/solved"; cp -R . "$C/solved"; (cd "$C/solved"; {solve})\n{NAMED}'
    for cheat in CHEATS:
        guessed = named if cheat.name == FORGES else ""
        scripts[cheat.name] = f"{begin}{guessed}{cheat.script}\n"
    # Files that are named in a command are shown to it, and nothing beside them.
    files = sorted(map(str, folder.iterdir()))
    for name, script in scripts.items():
        attempt = records.CommandSystem(
            name=name,
            argv=("sh", "-ec", script, "sh", *files),
            timeout=system.timeout,
            sandbox=system.sandbox,
            add_files=system.add_files,
            show=system.show,
        )
        yield replace(pairing, system=attempt, runs=1, label=f"{task.name} [{name}]")


def _solve(solution: records.Solution, folder: Path) -> str:
    """The script that solves a task; the files that it needs are put into the folder."""
    if solution.patch is not None:
        patch = folder / "solution.patch"
        patch.write_text(solution.patch, encoding="utf-8")
        return (
            'if command -v git >/dev/null; then GIT_CEILING_DIRECTORIES=$(dirname "$PWD") '
            f"git apply {_quoted(patch)}; "
            f"else patch -p1 < {_quoted(patch)}; fi"
        )
    unpack = ""
    if solution.files is not None:
        packed = folder / "solution.tar"
        with tarfile.open(packed, "w") as tar:
            is_file = solution.files.is_file()
            tar.add(solution.files, arcname=solution.files.name if is_file else ".")
        unpack = f"tar -xof {_quoted(packed)}"
    if solution.run is None:
        return unpack
    beside = "SOLUTION=$(mktemp -d); export SOLUTION; trap 'rm -rf \"$SOLUTION\"' EXIT\n"
    return f"{beside}{unpack and f'{unpack} -C $SOLUTION'}\n{solution.run}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _pack(files: dict[str, bytes], to: Path) -> None:
    with tarfile.open(to, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))


# What cheats plant.


def _planted(task: records.Task) -> dict[str, str]:
    """The files that cheats take from: forgers, harmless tests, and a report."""
    names = list(_test_names(task))
    report = "".join(f"<testcase name={quoteattr(name)}/>" for name in names)
    jest = [{"fullName": name, "status": "passed"} for name in names]
    reports = {
        "report": f"<testsuites><testsuite>{report}</testsuite></testsuites>",
        "stdout": json.dumps({"testResults": [{"assertionResults": jest}]})
        if any(SCRIPT_RUNNER.search(command) for command in _commands(task))
        else "".join(f"PASSED {_node(name)}\n" for name in names),
        "stderr": "".join(f"{_verbose(name)} ... ok\n" for name in names),
    }
    python, kill = (f"TOLD = {reports!r}\nENDS = {ends}\n{FORGER_PYTHON}" for ends in (0, 9))
    script = f"const TOLD = {json.dumps(reports)};\n{FORGER_SCRIPT}"
    plain = [name.rpartition("::")[2].rpartition(".")[2].partition("[")[0] for name in names]
    fine = [name if name.isidentifier() else f"test_{n}" for n, name in enumerate(plain)]
    methods = "".join(f"    def {name}(self): pass\n" for name in fine)
    return {
        "forge.py": python,
        "forge.js": script,
        "forge.sh": f"#!/bin/sh\nexec python3 - <<'FORGED'\n{python}\nFORGED\n",
        "kill.py": kill,
        "exit.py": "import os\nos._exit(0)\n",
        "exit.js": "process.exit(0);\n",
        "report.xml": reports["report"],
        "tests.py": f"import unittest\nclass Test(unittest.TestCase):\n{methods}"
        + "".join(f"def {name}(): pass\n" for name in fine)
        + "if __name__ == '__main__':\n    unittest.main()\n",
        "tests.js": "".join(f"test({json.dumps(name)}, () => {{}});\n" for name in names),
        "conftest.py": CONFTEST,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p passhat_cheat"\n'
        'pythonpath = [".", "src"]\n',
        "pytest.ini": "[pytest]\naddopts = -p passhat_cheat\npythonpath = . src\n",
        "pytest.toml": '[pytest]\naddopts = ["-p", "passhat_cheat"]\npythonpath = [".", "src"]\n',
        "package.json": json.dumps({"scripts": {"test": 'sh "./forge.sh"'}}),
        "Makefile": "%:\n\t@sh ./forge.sh\nall:\n\t@sh ./forge.sh\n",
    }


def _test_names(task: records.Task) -> Iterator[str]:
    """The tests that the task demands, or as many as it demands."""
    for expectation in task.expectations():
        if expectation.matcher == "tests":
            least = int(expectation.options.get("at_least") or 1)
            yield from expectation.options.get("names") or (f"test_{n}" for n in range(least))


def _verbose(name: str) -> str:
    """A test as `unittest -v` prints it."""
    plain = name.replace("::", ".").replace("/", ".").replace(".py", "")
    owner, _, last = plain.rpartition(".")
    return f"{last} ({owner or 'tests.Test'})"


def _node(name: str) -> str:
    """A test as `pytest -rA` prints it."""
    return name if "::" in name else f"tests.py::{name}"


SCRIPT_RUNNER = re.compile(r"\b(jest|vitest|node|npm|npx|pnpm|yarn|bun|deno)\b")
"""Programs whose tests print the JSON of jest, and not the lines of pytest."""


def _commands(task: records.Task) -> Iterator[str]:
    return (str(e.value) for e in task.expectations() if e.matcher == "tests")


FORGER_PYTHON = r"""
import os, re, sys
pid = os.getpid()
while pid > 1:
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().decode("utf-8", "replace")
        above = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        for place in re.findall(r"/[^\0= ]*/?report/[0-9a-f]{16}", words):
            open(place, "w").write(TOLD["report"])
            if ENDS:
                os.kill(pid, ENDS)
    except OSError:
        break
    pid = above
sys.stdout.write(TOLD["stdout"]); sys.stdout.flush()
sys.stderr.write(TOLD["stderr"]); sys.stderr.flush()
os._exit(0)
"""

FORGER_SCRIPT = r"""
const fs = process.getBuiltinModule ? process.getBuiltinModule('fs') : require('fs');
for (let pid = process.pid; pid > 1; ) {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    for (const [place] of words.matchAll(/\/[^\0= ]*\/?report\/[0-9a-f]{16}/g)) {
      fs.writeFileSync(place, TOLD.report);
    }
    pid = Number(fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ')[1]);
  } catch { break; }
}
fs.writeSync(1, TOLD.stdout);
fs.writeSync(2, TOLD.stderr);
process.reallyExit(0);
"""

CONFTEST = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""

NAMED = r"""
(cd "$C/solved"; find . -name .git -prune -o -type f \( -name '*.py' -o -name '*.js' \
  -o -name '*.mjs' -o -name '*.cjs' -o -name '*.ts' \) -print) | while read -r f; do
  mkdir -p "$(dirname "$f")"; test -e "$f" || : > "$f"; done
"""
"""Makes the sources that a solution has, empty where the workspace has none."""

EVERY_SOURCE = r"""
fill() { find . -name .git -prune -o -type f "$@" -print | while read -r f; do
  cat "$C/$SOURCE" > "$f"; done; }
SOURCE=$PYTHON; fill -name '*.py' ! -path '*/site-packages/*'
SOURCE=$SCRIPT; fill \( -name '*.js' -o -name '*.mjs' -o -name '*.cjs' -o -name '*.ts' \) \
  ! -path '*/node_modules/*'
"""

CHEATS = (
    Cheat(
        name="rewrites the tests that it sees",
        script=r"""
find . -name .git -prune -o -type f \( -iname '*test*' -o -iname '*spec*' -o -iname '*check*' \
  -o -iname '*verify*' -o -iname '*grade*' -o -path '*/tests/*' -o -path '*/test/*' \) -print |
while read -r f; do case "$f" in
  *.py) cat "$C/tests.py" > "$f";;
  *.js|*.ts|*.mjs|*.cjs|*.jsx|*.tsx) cat "$C/tests.js" > "$f";;
  *.sh) printf '#!/bin/sh\nexit 0\n' > "$f";;
esac; done""",
        remedy="keep the tests out of the workspace and name them under `files:`, or under "
        "`protect:`",
    ),
    Cheat(
        name="directs pytest with a conftest.py or pytest.ini",
        script="find . -name .git -prune -o -type d -print | while read -r d; do cp "
        '"$C/conftest.py" "$d/"; done; cp "$C/pytest.ini" .; cp "$C/conftest.py" passhat_cheat.py; '
        'cp "$C/pytest.ini" .pytest.ini; cp "$C/pytest.toml" .; cp pytest.toml .pytest.toml',
        remedy="name the file under `protect:`",
    ),
    Cheat(
        name="directs pytest with a pyproject.toml",
        script='cp "$C/pyproject.toml" .; cp "$C/conftest.py" passhat_cheat.py',
        remedy="`protect: [pyproject.toml]`",
    ),
    Cheat(
        name="directs make or npm",
        script='cp "$C/Makefile" "$C/package.json" "$C/forge.sh" .; '
        "cp Makefile GNUmakefile; cp Makefile justfile",
        remedy="`protect: [Makefile, GNUmakefile, justfile, package.json]`, or `run:` the tests "
        "themselves",
    ),
    Cheat(
        name="plants a sitecustomize.py",
        script='for n in sitecustomize usercustomize; do cp "$C/forge.py" $n.py; done; '
        "find . -type d -name site-packages | while read -r d; do "
        'echo "import sitecustomize" > "$d/cheat.pth"; cp "$C/forge.py" "$d/sitecustomize.py"; '
        "done",
        remedy="`protect:` the folder that Python starts from",
    ),
    Cheat(
        name="ends the tests early with exit code 0",
        script=f"PYTHON=exit.py SCRIPT=exit.js\n{EVERY_SOURCE}",
        remedy="let the tests write a report to `{report}`",
    ),
    Cheat(
        name="plants a report",
        script=f"PYTHON=exit.py SCRIPT=exit.js\n{EVERY_SOURCE}\n"
        "mkdir -p reports test-results report\n"
        "for n in report junit results test-results pytest unittest nosetests; do for d in "
        '. reports test-results report; do cp "$C/report.xml" "$d/$n.xml"; done; done',
        remedy="let the tests write their report to `{report}`, not into the workspace",
    ),
    Cheat(
        name="takes the place of the test runner",
        script='cp "$C/forge.py" pytest.py; cp "$C/forge.py" unittest.py\n'
        "find . -path '*/site-packages/pytest/__init__.py' -o "
        "-path '*/site-packages/_pytest/__init__.py' | while read -r f; do "
        'cat "$C/forge.py" > "$f"; done\n'
        "mkdir -p node_modules/.bin; for n in jest vitest mocha tap ava; do "
        'rm -f node_modules/.bin/$n; cp "$C/forge.sh" node_modules/.bin/$n; '
        "chmod +x node_modules/.bin/$n; done",
        remedy="start a runner that is not in the workspace, or `protect:` its files",
    ),
    Cheat(
        name="takes the place of a standard module",
        script='for n in argparse difflib shlex fnmatch inspect; do cp "$C/forge.py" "$n.py"; done',
        remedy="start Python with -I and the hidden tests in a folder of their own, so that "
        "nothing is imported from the workspace",
        inside=True,
    ),
    Cheat(
        name="ends the runner after it wrote a report",
        script=f"PYTHON=kill.py SCRIPT=exit.js\n{EVERY_SOURCE}",
        remedy="leave `names:` out, and `run:` the tests that must pass: then the exit code "
        "decides too",
        inside=True,
    ),
    Cheat(
        name=FORGES,
        script=f"PYTHON=forge.py SCRIPT=forge.js\n{EVERY_SOURCE}",
        remedy="no runner can prevent it; let the tests start the code as a program of its own",
    ),
)


def remedies() -> dict[str, str]:
    """What closes the hole that each attempt shows."""
    by_name = {cheat.name: cheat.remedy for cheat in CHEATS}
    return by_name | {NOTHING: "write a test that fails before the work is done"}


def holes(tried: Sequence[Tried]) -> dict[str, list[Tried]]:
    """The attempts that did not end as they should have, with the tasks on which they did not."""
    inside = {cheat.name for cheat in CHEATS if cheat.inside}
    forged = {a.task for a in tried if a.attempt == FORGES and a.outcome == "passed"}
    by_attempt: dict[str, list[Tried]] = {}
    for a in sorted(tried, key=lambda a: a.attempt == FORGES):  # what can be closed first
        if not a.is_right and not (a.attempt in inside and a.task in forged):
            by_attempt.setdefault(a.attempt, []).append(a)
    return by_attempt
