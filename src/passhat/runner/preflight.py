"""Which programs and functions a suite has, and whether they are there, before it is run."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from passhat import records
from passhat.dataclass import dataclass
from passhat.errors import RunError, SuiteError


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a suite should not be run: what is wrong with a part of it, and with which key."""

    section: Literal["systems", "servers", "users", "tasks"]
    name: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.section.removesuffix('s')} {self.name}: {self.reason}"


def absent_programs(suite: records.Suite) -> Iterator[Obstacle]:
    """Each program that the suite starts and that is not here.

    >>> from passhat.records import CommandSystem, Pairing, Suite, Task
    >>> agent = CommandSystem(name="mine", argv=("no-such-agent", "{prompt}"))
    >>> suite = Suite(name="s", pairings=(
    ...     Pairing(system=agent, task=Task(name="t"), runs=1, label="t"),))
    >>> [str(absent) for absent in absent_programs(suite)]
    ['system mine: there is no program "no-such-agent": install it, or give its path']
    """
    for system in _systems(suite):
        if reason := lacks_program(system, suite.directory):
            yield Obstacle(section="systems", name=system.name, key="command", reason=reason)
    for server in suite.used_servers:
        if reason := lacks_program(server, suite.directory):
            yield Obstacle(section="servers", name=server.name, key="command", reason=reason)


def absent_graders(suite: records.Suite) -> Iterator[str]:
    """Why programs that grade cannot be started: hidden tests and `command:`, each program once.

    A path is not looked for: it starts from what the agent leaves behind.

    >>> from passhat.records import CommandSystem, Expectation, Pairing, Suite, Task
    >>> task = Task(name="t", expect=(Expectation(matcher="command", value=["no-such-grader"]),))
    >>> suite = Suite(name="s", pairings=(
    ...     Pairing(system=CommandSystem(name="a", argv=("a",)), task=task, runs=1, label="t"),))
    >>> list(absent_graders(suite))
    ['command of t: there is no program "no-such-grader": install it, or give its path']
    """
    seen: set[tuple[str, ...]] = set()
    for task in suite.tasks:
        if task.workspace is not None and task.workspace.image is not None:
            continue  # its programs are in the image
        for expectation in task.expectations():
            if expectation.matcher not in ("tests", "command"):
                continue
            value = expectation.value
            words = shlex.split(value) if isinstance(value, str) else [str(item) for item in value]
            words = [word.replace("{python}", sys.executable) for word in words[:3]]
            if tuple(words) in seen or not words or "{" in words[0]:
                continue
            seen.add(tuple(words))
            if reason := _lacks_grader(words):
                yield f"{expectation.matcher} of {task.name}: {reason}"


def _lacks_grader(words: Sequence[str]) -> str | None:
    program, *more = words
    path = shutil.which(program)
    if path is None:
        if "/" in program and not os.path.isabs(program):  # noqa: PTH117  # a word, not yet a path
            return None
        return f'there is no program "{program}": install it, or give its path'
    if more[:1] != ["-m"] or len(more) < 2 or not Path(path).name.startswith("python"):
        return None
    module = more[1].partition(".")[0]
    looked = "import sys, importlib.util as u; sys.exit(u.find_spec(sys.argv[1]) is None)"
    asked = subprocess.run([path, "-c", looked, module], capture_output=True, check=False)
    return f"{program} has no {module}: install it there" if asked.returncode == 1 else None


def lacks_sandbox(suite: records.Suite) -> str | None:
    """Why no workspace of a suite can be isolated here; None if it can, or none has to be."""
    needed = any(
        pairing.task.workspace is not None
        and isinstance(pairing.system, records.CommandSystem)
        and pairing.system.sandbox != "none"
        for pairing in suite.pairings
    )
    if not needed:
        return None
    from passhat.runner.sandbox import require_bubblewrap

    try:
        require_bubblewrap()
    except RunError as error:
        return str(error)
    return None


def answers_in_sight(suite: records.Suite) -> Iterator[Obstacle]:
    """Each task whose hidden tests, or suite, an agent finds in the git objects of its workspace.

    Tests of which some are new may come with the old ones: they are refused where all are there.
    """
    own = [_blob(suite.path)] if suite.path is not None and suite.path.is_file() else []
    for task in suite.tasks:
        work = task.workspace
        if work is None or work.source is None:
            continue
        tests = [[_blob(file) for file in _hidden_files(e, suite.directory)] for e in task.expect]
        try:
            there = _readable(work.source, work.commit, {*own, *chain.from_iterable(tests)})
        except RunError as error:
            yield Obstacle(section="tasks", name=task.name, key="workspace", reason=str(error))
            continue
        if any(hidden and there.issuperset(hidden) for hidden in tests):
            reason = (
                "the hidden tests are in the repository, where the agent reads: keep them out of "
                "its history"
            )
            yield Obstacle(section="tasks", name=task.name, key="workspace", reason=reason)
        if own and there.issuperset(own):
            reason = (
                "the repository contains the suite, and with it what decides: the agent could read "
                "it; take a commit without it, or keep the suite elsewhere"
            )
            yield Obstacle(section="tasks", name=task.name, key="workspace", reason=reason)


def _hidden_files(expectation: records.Expectation, directory: Path) -> list[Path]:
    from passhat.runner.workspaces import files_of

    if expectation.matcher != "tests":
        return []
    places = [directory / name for name in expectation.options.get("files", ())]
    files = [file for place in places for file in files_of(place)]
    return [file for file in files if file.is_file() and file.stat().st_size]


def _blob(file: Path) -> str:
    """The name that git gives to what is in a file."""
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _readable(source: Path, commit: str | None, blobs: Collection[str]) -> set[str]:
    """Which of these an agent can read in a repository: in one commit, or (a folder) in all.

    RunError for a commit that git does not find there. A folder whose repository git cannot read
    shows nothing to an agent either.
    """
    from passhat.runner.processes import exit_sentence
    from passhat.runner.workspaces import run_git

    if not blobs or (commit is None and not (source / ".git").exists()):
        return set()
    try:
        if commit is None:
            asked = ("cat-file", "--batch-check=%(objectname)")
            done = run_git(*asked, at=source, given="\n".join(blobs).encode())
            there = set(done.stdout.decode().splitlines())  # of another: `<name> missing`
        else:
            done = run_git("ls-tree", "-r", "-z", commit, at=source)
            entries = done.stdout.decode("utf-8", "replace").split("\0")
            there = {entry.partition("\t")[0].rpartition(" ")[2] for entry in entries}
    except OSError:
        return set()  # without git, no trial can be made of it either
    if done.returncode and commit is not None:
        sentence = exit_sentence(done.returncode, done.stderr.decode("utf-8", "replace"))
        raise RunError(f"git cannot read the commit {commit} of {source}: {sentence}")
    return there.intersection(blobs)


def absent_functions(suite: records.Suite) -> Iterator[Obstacle]:
    """Each function that the suite calls and that cannot be imported or called.

    Functions that run in worker processes are not imported here: they may hang or crash.
    """
    from passhat.runner.agents.python import load_function

    for system in _systems(suite):
        if not isinstance(system, records.PythonSystem) or system.workers:
            continue
        if reason := lacks_function(system):
            yield Obstacle(section="systems", name=system.name, key="python", reason=reason)
    for user in suite.users:
        if user.function is not None:
            try:
                load_function(user.function, search=suite.directory)
            except SuiteError as error:
                yield Obstacle(section="users", name=user.name, key="python", reason=str(error))


def absent_modules(suite: records.Suite) -> Iterator[Obstacle]:
    """Each module of a function that is not here; nothing is imported, so nothing of it runs."""
    named: list[tuple[Literal["systems", "users"], str, str, Path | None]] = [
        ("systems", system.name, system.function, system.search)
        for system in _systems(suite)
        if isinstance(system, records.PythonSystem)
    ]
    named += [
        ("users", user.name, user.function, suite.directory)
        for user in suite.users
        if user.function is not None
    ]
    for section, name, function, search in named:
        module = function.partition(":")[0]
        if not _can_find(module, search):
            where = f"neither in {search or Path()} nor among the installed packages"
            reason = f'there is no module "{module}", {where}'
            yield Obstacle(section=section, name=name, key="python", reason=reason)


def _can_find(module: str, folder: Path | None) -> bool:
    """Whether a module can be found, in the folder first; parents are looked into, not imported."""
    top, *below = module.split(".")
    spec = PathFinder.find_spec(top, [str((folder or Path()).absolute())]) or find_spec(top)
    name = top
    for part in below:
        if spec is None or not spec.submodule_search_locations:
            break
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    return spec is not None


def lacks_function(system: records.PythonSystem) -> str | None:
    """Why the function of a system cannot be called; None if it can."""
    from passhat.runner.agents.python import load_agent, wanted_by

    try:
        wanted_by(load_agent(system.function, search=system.search), about=system.function)
    except SuiteError as error:
        return str(error)
    return None


def lacks_program(what: records.System | records.Server, directory: Path) -> str | None:
    """Why a system or a server cannot be started: its program is not here. None if it is."""
    if not isinstance(what, records.CommandSystem | records.StdioServer):
        return None
    if "{" in what.argv[0] or "{" in str(what.cwd or ""):
        return None  # it is different for each trial, and not known yet
    program = what.argv[0]
    # A path starts from where the program will run; a name is looked up on its PATH.
    path = what.env["PATH"].reveal() if "PATH" in what.env else os.environ.get("PATH")
    place = str((what.cwd or directory) / program) if "/" in program else program
    if shutil.which(place, path=path) is not None:
        return None
    if "/" in program and Path(place).is_file():
        return f'"{place}" may not be executed: chmod +x, or name its interpreter first'
    agent = what.agent if isinstance(what, records.CommandSystem) else None
    if agent is not None:
        from passhat.records.providers import CODING_AGENTS

        return f'there is no program "{program}": {CODING_AGENTS[agent].install}'
    return f'there is no program "{program}": install it, or give its path'


# What trials depend on, so that those of an earlier run can stand in for new ones.


def arm_of(suite: records.Suite, name: str) -> dict[str, str]:
    """What the trials of a system depend on: model, agent, tasks, fixtures, graders and limits.

    Trials of two runs are alike where all of it is the same. What consists of files is told by a
    hash of them, a coding agent by its version.
    """
    from passhat.runner.cassettes import file_digest, plain, setup_of

    digest = cache(file_digest)
    pairings = [pairing for pairing in suite.pairings if pairing.system.name == name]
    system = pairings[0].system
    tasks, fixtures = {}, dict[str, list[Any]]()
    limits: dict[str, list[Any]] = {"": [suite.resources, suite.trial_budget, suite.network]}
    for pairing in pairings:
        task, work = pairing.task, pairing.task.workspace
        expected = plain([*task.expectations(), task.pass_score])
        tasks[task.name] = [setup_of(pairing, suite), expected, task.setup]
        limits[task.name] = [task.budget, task.timeout, task.max_turns, work and work.limits]
        tests = [e for e in task.expectations() if e.matcher == "tests"]
        files = [suite.directory / word for test in tests for word in test.options.get("files", ())]
        fixtures[task.name] = [list(map(digest, files))]
        if work is not None:
            image = digest(work.image) if isinstance(work.image, Path) else work.image
            source = work.commit or (work.source and digest(work.source))
            added = {place: digest(file) for place, file in work.files}
            fixtures[task.name] += [image, source, added]
    if isinstance(system, records.CommandSystem):
        fixtures[""] = [{place: digest(file) for place, file in system.add_files.items()}]
        limits[""] += [system.sandbox]
    limits[""] += [system.timeout]
    model = getattr(system, "model", None)
    return {
        "model": "" if model is None else str(model.name),
        "agent": _version(system),
        "program": _program_digest(system, suite.directory),
        "tasks": _hash(tasks),
        "fixtures": _hash(fixtures),
        "graders": graders_of(suite, name),
        "limits": _hash(plain(limits)),
    }


def expected_of(suite: records.Suite) -> dict[str, list[str]]:
    """Hashes of what is expected of each task: where they differ, it is another task."""
    from passhat.runner.cassettes import plain

    expected: dict[str, list[str]] = {}
    for pairing in suite.pairings:  # agents may be expected to do different things in one task
        task = pairing.task
        demands = _hash(plain([*task.expectations(), task.pass_score]))
        expected.setdefault(task.name, []).append(demands)
    return expected


def graders_of(suite: records.Suite, name: str) -> str:
    """A hash of the files that decide about the trials of a system."""
    from passhat.runner.guarding import DecidingFiles

    pairings = [pairing for pairing in suite.pairings if pairing.system.name == name]
    return DecidingFiles(suite.directory, pairings).hash()


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _program_digest(system: records.System, directory: Path) -> str:
    """A hash of the program of a command or a function; empty for all other systems."""
    from passhat.runner.cassettes import file_digest, program_files

    files = program_files(system, directory)
    command = isinstance(system, records.CommandSystem) and system.agent is None
    return _hash(list(map(file_digest, files))) if files or command else ""


def _version(system: records.System) -> str:
    """The version of a coding agent.

    No other program is asked for its own: who knows what it does with `--version`.
    """
    if not isinstance(system, records.CommandSystem) or system.agent is None:
        return ""
    path = system.env["PATH"].reveal() if "PATH" in system.env else None
    if (program := shutil.which(system.argv[0], path=path)) is None:
        return ""
    for folder in Path(program).resolve().parents:
        if "node_modules" not in folder.parts:
            break  # npm has not put it there
        if (package := folder / "package.json").is_file():
            with suppress(OSError, ValueError, TypeError, KeyError):
                return str(json.loads(package.read_text(encoding="utf-8"))["version"])
    try:
        printed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return printed.stdout.strip()[:100]
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _systems(suite: records.Suite) -> Iterable[records.System]:
    return {pairing.system.name: pairing.system for pairing in suite.pairings}.values()
