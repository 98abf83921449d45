"""What decides about a grade belongs to the suite, and not to the agent that is graded.

Agents run as the same user as we do: they can write wherever we can. So the files that decide are
read before the first trial, compared before they are used, and put back where the agent works.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path

from passhat.dataclass import dataclass
from passhat.errors import GraderError, SuiteError
from passhat.records import CommandSystem, Expectation, Pairing, Suite
from passhat.runner.processes import inherited_environment

STEERING: Mapping[str, bytes] = {
    "conftest.py": b"",
    "pytest.ini": b"",
    ".pytest.ini": b"",
    "pyproject.toml": b"tool.pytest",
    "setup.cfg": b"tool:pytest",
    "tox.ini": b"",
    "noxfile.py": b"",
    "sitecustomize.py": b"",
    "usercustomize.py": b"",
    "Makefile": b"",
    "makefile": b"",
    "GNUmakefile": b"",
    "justfile": b"",
    "Rakefile": b"",
}
"""Files that tell a test runner what to do; those that do other things too, where they hold this
text. One that the agent wrote is set aside while a grader runs."""

RUNS_FILES_OF_ITS_FOLDER = frozenset({
    "make", "gmake", "just", "rake", "pytest", "py.test", "tox", "nox", "unittest", "npm", "npx",
    "pnpm", "yarn", "bun", "deno", "cargo", "go", "gradle", "mvn", "ctest", "phpunit", "dotnet",
})  # fmt: skip
"""Programs that run what they find in the folder in which they are started."""

MOST_PROTECTED = 64 * 2**20
"""Bytes of protected files, which are kept in memory: nobody can change them there."""

SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__"})
"""Folders in which no test runner looks for its settings."""

ABSENT = "absent"

GRADER_PATH = Path(__file__).parent / "grader_path"


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file as it was before the first trial."""

    content: bytes
    mode: int


class DecidingFiles:
    """The files of a suite that decide, as they were before its first trial."""

    def __init__(self, directory: Path = Path(), pairings: Sequence[Pairing] = ()) -> None:
        self._directory = directory
        self.has_refused = False  # one that was needed, because it was changed
        self._digests: dict[Path, str] = {}
        self._steering: dict[Path, dict[str, GivenFile]] = {}
        self._protected: dict[tuple[Path, str], dict[str, GivenFile]] = {}
        self._locks: dict[Path, asyncio.Lock] = {}
        for pairing in pairings:
            cwd = pairing.system.cwd if isinstance(pairing.system, CommandSystem) else None
            for expectation in pairing.task.expectations():
                if expectation.matcher == "command":
                    self._take(expectation, cwd or directory)
                    if cwd is not None and cwd not in self._steering:
                        self._steering[cwd] = dict(_steering(cwd))
                        self._locks[cwd] = asyncio.Lock()
                for file in self._files_of(expectation):
                    self._digests.setdefault(file, _digest(file))

    @classmethod
    def of(cls, suite: Suite) -> DecidingFiles:
        """Those of a suite; raises SuiteError if one that it protects is not there."""
        made = cls(suite.directory, suite.pairings)
        if suite.path is not None:
            made._digests[suite.path.absolute()] = _digest(suite.path)
        return made

    @property
    def names(self) -> tuple[Path, ...]:
        """Where they are, or would be."""
        return tuple(self._digests)

    def changed(self) -> tuple[str, ...]:
        """The files that are no longer as they were, by their names from the suite's folder."""
        there = {file: digest for file, digest in self._digests.items() if digest != ABSENT}
        changed = (file for file, digest in there.items() if _digest(file) != digest)
        return tuple(str(self._from_suite(file)) for file in changed)

    def hash(self) -> str:
        """One hash of them, the same on every machine; without snapshots, which runs write."""
        named = ((self._from_suite(file), digest) for file, digest in self._digests.items())
        lines = [
            f"{digest} {file.name if file.is_absolute() else file.as_posix()}"
            for file, digest in named
            if file.parent != Path("snapshots") and SKIPPED.isdisjoint(file.parts)
        ]
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]

    def _from_suite(self, file: Path) -> Path:
        root = self._directory.absolute()
        return file.relative_to(root) if file.is_relative_to(root) else file

    def check(self, file: Path) -> None:
        """Raise GraderError if a file that decides was changed since the run began."""
        digest = self._digests.get(file.absolute(), ABSENT)
        if digest not in (ABSENT, _digest(file)):
            self.has_refused = True
            raise GraderError(
                f"{file.name} was changed while the run went on, by an agent or by you: it can no "
                "longer decide; put it back and run again"
            )

    def wrote(self, file: Path) -> None:
        """Note that we wrote a file ourselves: a snapshot."""
        self._digests[file.absolute()] = _digest(file)

    def argv(self, words: Sequence[str]) -> list[str]:
        """The words of a grader's command: files beside the suite by their full path.

        The command runs in the agent's folder, where a file of the same name is the agent's.
        """
        argv = []
        for place, word in enumerate(words):
            file = self._directory / word
            if place == 0 and "/" in word:
                argv.append(str(file))
            elif ("/" in word or "." in word) and os.path.isfile(file):  # noqa: PTH113 - never raises
                argv.append(str(file.absolute()))
            else:
                argv.append(word)
        for word in argv:
            self.check(Path(word))
        return argv

    @asynccontextmanager
    async def put_back(self, folder: Path, expectation: Expectation) -> AsyncIterator[list[str]]:
        """Let a grader find in a folder what the suite gave; yields what is set aside meanwhile.

        The agent's own files are there again afterwards: it may have more steps to do.
        """
        if folder == self._directory:
            yield []
            return
        # Only a folder that trials share can be in use by the grader of another.
        async with self._locks.get(folder) or nullcontext():
            given, planted = await asyncio.to_thread(self._planted, folder, expectation)
            if not planted:
                yield []
                return
            swap = _Swap(folder)
            try:
                await asyncio.to_thread(swap.make, planted, given)
                yield planted
            except OSError as error:
                raise GraderError(f"the grader's files cannot be put back: {error}") from error
            finally:
                swap.undo()

    def _planted(
        self, folder: Path, expectation: Expectation
    ) -> tuple[dict[str, GivenFile], list[str]]:
        """What the suite gave, and the paths at which the folder has something else."""
        trusted = {*expectation.options.get("trust", ())}
        given = dict(self._steering.get(folder, {}))
        planted = []
        for name in (str(name).rstrip("/") for name in expectation.options.get("protect", ())):
            source = folder if (folder, name) in self._protected else self._directory
            protected = self._protected.get((source, name), {})
            given |= protected
            if (folder / name).is_symlink() or dict(_tree(folder, name)) != protected:
                planted.append(name)
        planted += [
            name
            for name, file in _steering(folder)
            if file != given.get(name) and not trusted & {name, Path(name).name}
        ]
        planted += [name for name, file in given.items() if _read(folder / name) != file]
        return given, list(dict.fromkeys(planted))

    def _take(self, expectation: Expectation, folder: Path) -> None:
        for name in expectation.options.get("protect", ()):
            name = str(name).rstrip("/")
            source = folder if (folder / name).exists() else self._directory
            if (source, name) in self._protected:
                continue
            if ".." in Path(name).parts or Path(name).is_absolute():
                raise SuiteError(f'protect: "{name}" must be a path inside the folder')
            files = dict(_tree(source, name))
            if not files:
                raise SuiteError(f'protect: there is no "{name}" beside the suite')
            self._protected[source, name] = files
            self._digests |= {(source / each).absolute(): _digest(source / each) for each in files}
        held = {id(f): len(f.content) for tree in self._protected.values() for f in tree.values()}
        if sum(held.values()) > MOST_PROTECTED:
            raise SuiteError(f"protect: names more than {MOST_PROTECTED // 2**20} MB of files")

    def _files_of(self, expectation: Expectation) -> Iterator[Path]:
        """The files beside the suite that decide about an expectation."""
        if expectation.matcher == "python":
            module = str(expectation.value).partition(":")[0]
            yield (self._directory / f"{module.replace('.', '/')}.py").absolute()
        if expectation.matcher == "snapshot":
            yield snapshot_file(self._directory, str(expectation.value)).absolute()
        if expectation.matcher == "tests":
            for name in expectation.options.get("files", ()):
                place = self._directory / name
                for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
                    if file.is_file():
                        yield file.absolute()
        if expectation.matcher == "command":
            for word in expectation.value:
                if ("/" in word or "." in word) and (self._directory / word).is_file():
                    yield (self._directory / word).absolute()


def grader_environment(expectation: Expectation, own: Mapping[str, str]) -> dict[str, str]:
    """What a grader's program sees: what an agent sees, and the variables that it is given."""
    given = {name: own[name] for name in expectation.options.get("env", ()) if name in own}
    paths = [str(GRADER_PATH), *filter(None, [given.get("PYTHONPATH")])]
    return {
        **inherited_environment(),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **given,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def open_graders(suite: Suite) -> Iterator[str]:
    """A sentence for each program that grades by running what it finds in the agent's folder."""
    programs: dict[str, str] = {}
    for task in suite.tasks:
        for expectation in task.expectations():
            if expectation.matcher == "command" and not expectation.options.get("protect"):
                words = [Path(str(word)).name for word in expectation.value]
                started = [words[0], *(after for word, after in pairwise(words) if word == "-m")]
                for program in RUNS_FILES_OF_ITS_FOLDER.intersection(started):
                    programs.setdefault(program, task.name)
    for program, name in programs.items():
        yield (
            f'the grader of "{name}" runs files of the folder where the agent works ({program}): '
            "name those that decide under `protect:` of the command"
        )


def _steering(folder: Path) -> Iterator[tuple[str, GivenFile]]:
    """The files of a folder that tell test runners what to do."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in STEERING.keys() & {*names}:
            file = _read(Path(parent) / name)
            # One that cannot be read (a link to nowhere, a pipe) is none that was given.
            if file is None or STEERING[name] in file.content:
                yield (
                    (Path(parent) / name).relative_to(folder).as_posix(),
                    file or GivenFile(b"", -1),
                )


def _tree(source: Path, name: str) -> Iterator[tuple[str, GivenFile]]:
    """A file, or all files of a folder, by their paths from the source."""
    place = source / name
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if SKIPPED.isdisjoint(path.parts) and (file := _read(path)) is not None:
            yield path.relative_to(source).as_posix(), file


def _read(path: Path) -> GivenFile | None:
    """A regular file that nobody else has by another name; None for anything else."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_PROTECTED:
            return None
        return GivenFile(path.read_bytes(), stat.S_IMODE(status.st_mode))
    except OSError:
        return None


def _digest(path: Path) -> str:
    file = _read(path.resolve())
    return ABSENT if file is None else hashlib.sha256(file.content).hexdigest()


class _Swap:
    """Files of a folder that are set aside for a while, and others in their place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside = folder / f".passhat-{secrets.token_hex(8)}"
        self._moved: list[tuple[Path, Path]] = []
        self._made: list[Path] = []

    def make(self, planted: Sequence[str], given: Mapping[str, GivenFile]) -> None:
        for name in planted:
            self._set_aside(name)
        for name, file in given.items():
            self._write(self._folder / name, file)

    def undo(self) -> None:
        for path in reversed(self._made):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)  # with what the grader left there
            else:
                path.unlink(missing_ok=True)
        for kept, place in reversed(self._moved):
            with suppress(OSError):
                kept.rename(place)
        with suppress(OSError):
            self._aside.rmdir()

    def _set_aside(self, name: str) -> None:
        """Move what is at a place out of the way; of a path through a link, the link."""
        place = self._folder
        for part in Path(name).parts:
            place = place / part
            if place.is_symlink():
                break
        if not place.is_symlink() and not place.exists():
            return
        self._aside.mkdir(exist_ok=True)
        kept = self._aside / str(len(self._moved))
        place.rename(kept)
        self._moved.append((kept, place))

    def _write(self, path: Path, file: GivenFile) -> None:
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir()
                self._made.append(parent)
        if path.exists():
            return  # as it was given
        self._made.append(path)
        with path.open("xb") as stream:
            stream.write(file.content)
        path.chmod(file.mode)


def snapshot_file(directory: Path, name: str) -> Path:
    """Where the snapshot of that name is stored."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "snapshot"
    if plain != name:
        plain = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return directory / "snapshots" / f"{plain}.txt"
