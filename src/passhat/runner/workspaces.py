"""The workspace of a trial: made afresh, changed by the agent, read back as a list of changes.

A workspace is made and set up once for each task and system (a template, never written to again).
Each trial works on a copy of its own: changes laid over the template where the kernel can do that,
else a real copy. Only the changes ever leave a trial: to its grader, and to what is kept of it.
"""

from __future__ import annotations

import asyncio
import fnmatch
import functools
import json
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from passhat.dataclass import dataclass, replace
from passhat.errors import GraderError, RunError
from passhat.messages import plural
from passhat.records import CommandSystem, Expectation, Resources, Task, ToolCall, Workspace
from passhat.records.redaction import text_of
from passhat.runner import hidden_tests
from passhat.runner.guarding import DecidingFiles
from passhat.runner.matchers import Match
from passhat.runner.processes import (
    Tail,
    end_group,
    exit_sentence,
    inherited_environment,
    remove_folder,
    start_group,
    talk,
)
from passhat.runner.sandbox import (
    Ending,
    Image,
    Limits,
    Sandbox,
    View,
    WayOut,
    remove_stale_cgroups,
    unpack_image,
)

Stage = Literal["setup", "agent", "grader"]
"""How far a trial came."""

SETUP_SECONDS = 600.0
GRADER_SECONDS = 300.0
MOST_FLAGS, MOST_TESTS = 100, 2000

MOST_PRINTED = 2**20
"""Bytes of what tests print; more belong into their report."""

PROTECTED = (
    *("tests/", "test/", "__tests__/", "spec/", "test_*.py", "*_test.*", "*.test.*", "*.spec.*"),
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"),
    *(
        "setup.cfg",
        "jest.config.*",
        "sitecustomize.py",
        "usercustomize.py",
        "*.pth",
        ".git/",
        ".git",
    ),
)
"""Paths of which a grader has the workspace's own version, whatever the agent made of them."""

LONGEST_KEPT, MOST_KEPT = 200_000, 1_000_000
"""Bytes of a file that a transcript shows, from its end, and of all of them."""

LARGEST_ARTEFACT, MOST_ARTEFACTS, MOST_ARTEFACT_FILES = 10_000_000, 50_000_000, 200
"""Bytes of a file that is kept of a trial, bytes of all of them, and how many they are."""

REWARD_FOLDER = "/logs/verifier"
"""Where tests of Harbor write their score."""

DEEPEST = 100
"""Folders in folders; what is deeper is left behind."""

LONGEST_DIFF = 5_000_000

LONGEST_COMPARED = 5_000
"""Lines of two files that are compared: the time grows with their product."""

OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
"""The marks of a folder that replaces the one below it instead of adding to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a trial changed: the file that is now at each path, or None where it was deleted.

    `flags` are the things that were left behind, or that a reader should know.
    """

    files: Mapping[str, Path | None]
    flags: tuple[str, ...] = ()

    def without(self, patterns: Sequence[str], names: Container[str] = ()) -> Changes:
        """The changes at other paths than these; each that is left out is flagged."""
        kept = {
            name: file
            for name, file in self.files.items()
            if name not in names and not matches(name, patterns)
        }
        touched = [name for name in self.files if name not in kept]
        flags = tuple(f"touched protected {name}" for name in touched)
        return Changes(files=kept, flags=(*self.flags, *flags))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a path fits one of the patterns, as those of a .gitignore do; `*` crosses folders.

    A pattern without a slash, but for one at its end, is about one part of a path, at any depth;
    one with a slash begins at the root of the workspace. A folder stands for all that is in it.

    >>> matches("src/tests/a.py", ["tests/"]), matches("src/test_a.py", ["test_*.py"])
    (True, True)
    >>> matches("src/contest.py", ["tests/", "test_*.py"]), matches("src/a/b.py", ["/a/"])
    (False, False)
    >>> matches("src/vendor/lib/a.py", ["/src/vendor/"]), matches("src/a/b.py", ["**/a/"])
    (True, True)
    """
    return _fits(name, tuple(patterns), is_folder=False)


def _fits(path: str, patterns: tuple[str, ...], *, is_folder: bool) -> bool:
    above, _, last = path.rpartition("/")
    if above and _folder_fits(above, patterns):
        return True
    for pattern in patterns:
        if pattern.endswith("/") and not is_folder:
            continue
        wanted = pattern.removesuffix("/")
        name = path if "/" in wanted else last
        if any(fnmatch.fnmatchcase(name, form) for form in _forms(wanted.removeprefix("/"))):
            return True
    return False


@functools.lru_cache(maxsize=4096)
def _folder_fits(path: str, patterns: tuple[str, ...]) -> bool:
    """Remembered for the many files of a folder."""
    return _fits(path, patterns, is_folder=True)


@functools.lru_cache(maxsize=1024)
def _forms(pattern: str) -> list[str]:
    """A pattern with each of its `**/`, and without: it stands for any folders, also for none."""
    first, stars, rest = pattern.partition("**/")
    if not stars:
        return [pattern]
    return [first + begun + end for end in _forms(rest) for begun in (stars, "")]


# Making a workspace.


def make_workspace(given: Workspace, to: Path) -> None:
    """Make a folder with what the suite gives: a folder, an archive, or a repository's commit."""
    try:
        if given.source is None:
            to.mkdir()
        elif given.commit is not None:
            _check_out(given.source, given.commit, to)
        elif given.source.is_dir():
            copy_folder(given.source, to)
        else:
            to.mkdir()
            _unpack(given.source, to)
        add_files(dict(given.files), to)
    except subprocess.CalledProcessError as error:
        reason = exit_sentence(error.returncode, (error.stderr or b"").decode("utf-8", "replace"))
        raise RunError(f"the workspace {given.source} cannot be made: {reason}") from None
    except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise RunError(f"the workspace {given.source} cannot be made: {error}") from None


def copy_folder(source: Path, to: Path) -> None:
    """A copy of a folder: links as links, no owners; without copying where the disk can share."""
    to.mkdir()
    if shutil.which("cp") and os.uname().sysname == "Linux":
        words = ["cp", "-a", "--reflink=auto", "--no-preserve=ownership", "--"]
        subprocess.run([*words, f"{source}/.", str(to)], check=True, capture_output=True)
    else:
        shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)


def _unpack(archive: Path, to: Path) -> None:
    """Unpack an archive: nothing outside the folder, no special files, whatever it asks for."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(to)  # noqa: S202 - zipfile drops what leads out
        return
    with tarfile.open(archive) as packed:
        packed.extractall(to, filter="data")


def _check_out(repository: Path, commit: str, to: Path) -> None:
    """One commit of a repository, without its history and without its future."""

    def ask(*words: str, at: Path) -> str:
        done = run_git(*words, at=at)
        done.check_returncode()
        return done.stdout.decode().strip()

    digest = ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", at=repository)
    to.mkdir()
    ask("init", "-q", ".", at=to)
    address = repository.resolve().as_uri()
    ask("fetch", "-q", "--no-tags", "--depth=1", address, digest, at=to)
    ask("checkout", "-q", "--detach", digest, at=to)
    (to / ".git" / "FETCH_HEAD").unlink(missing_ok=True)


def run_git(*words: str, at: Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, with no settings but ours and no repository around that folder."""
    env = {
        "PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "3",
        "GIT_CEILING_DIRECTORIES": str(at.absolute().parent),
        "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "protocol.file.allow", "GIT_CONFIG_VALUE_1": "always",
        "GIT_CONFIG_KEY_2": "uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_2": "true",
    }  # fmt: skip
    return subprocess.run(
        ["git", *words], cwd=at, env=env, input=given, capture_output=True, check=False
    )


def add_files(files: Mapping[str, Path], to: Path) -> None:
    """Put files and folders of the suite into a workspace, in place of what is there.

    The evals of a skill stay behind: they say what its answers are judged by.
    """
    for name, source in files.items():
        place = to / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            skip = shutil.ignore_patterns("evals") if (source / "SKILL.md").exists() else None
            shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True, ignore=skip)
        else:
            shutil.copy2(source, place)


LEAST_TELLING = 12
"""Characters of a line that no other text has by chance."""

FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A file or a skill that one agent alone has, and how it is seen that the agent made use of it.

    `names` is what it is called by, `line` a line of its text that is no part of the description
    which every prompt has of a skill; empty if it has none.
    """

    place: str
    names: frozenset[str]
    line: str

    def is_called_by(self, call: ToolCall) -> bool:
        """Whether a call names its path, or it is the skill that a call asks for by its name."""
        given = call.arguments if isinstance(call.arguments, Mapping) else {"": call.arguments}
        if "skill" in call.name.lower() and self.names & {str(value) for value in given.values()}:
            return True
        return any(re.search(rf"{re.escape(self.place)}(?![\w-])", str(v)) for v in given.values())

    def is_in(self, request: bytes) -> bool:
        """Whether its text is in a request to the model, which is JSON."""
        forms = (json.dumps(self.line, ensure_ascii=escaped) for escaped in (True, False))
        return bool(self.line) and any(form[1:-1].encode() in request for form in forms)


@functools.lru_cache(maxsize=256)
def added_file(place: str, source: Path) -> AddedFile:
    """What is known of a file, or of a folder with a skill, that `add_files:` puts at a place."""
    try:
        file = source / "SKILL.md" if source.is_dir() else source
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    head = FRONT_MATTER.match(text)
    header = head[1] if head else ""
    body = text[head.end() :] if head else text
    lines = [line.strip() for line in body.splitlines()]
    telling = [line for line in lines if len(line) >= LEAST_TELLING and line not in header]
    own = re.search(r"^name:\s*[\"']?([^\"'\n]+?)[\"']?\s*$", header, re.MULTILINE)
    return AddedFile(
        place=place.rstrip("/"),
        names=frozenset({Path(place).name, *([own[1]] if own else [])}),
        line=max(telling, key=len, default=""),
    )


# Reading back what a trial changed.


def changes_of(view: View, template: Path) -> Changes:
    """What is different in a trial's workspace; links that lead out and special files stay behind.

    No program of the agent's runs here, git least of all: its settings name commands.
    """
    flags: list[str] = []
    if view.below is None:
        seen = _compared(view.top, template, flags)
    else:
        seen = _laid_over(view.top, template, flags)
    files: dict[str, Path | None] = {}
    for name, path in seen:
        if path is None:
            files[name] = None
            continue
        mode = path.lstat().st_mode
        is_link = stat.S_ISLNK(mode)
        if stat.S_ISREG(mode) or (is_link and _stays_inside(name, path.readlink())):
            files[name] = path
        elif is_link:
            flags.append(f"link out of the workspace: {name} -> {path.readlink()}")
        else:
            flags.append(f"special file: {name}")
    return Changes(files=dict(sorted(files.items())), flags=tuple(dict.fromkeys(flags)))


def _laid_over(top: Path, template: Path, flags: list[str]) -> Iterator[tuple[str, Path | None]]:
    """The paths in the layer above a template that are not as they were."""
    now: dict[str, Path] = {}
    hidden: list[str] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        if folder.count("/") > DEEPEST:
            flags.append(f"folders deeper than {DEEPEST}: left behind")
            continue
        for entry in _entries(top / folder, flags):
            name = f"{folder}/{entry.name}" if folder else entry.name
            before = template / name
            if name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
                if _replaces(Path(entry.path)) or before.is_symlink() or before.is_file():
                    hidden.append(name)
                continue
            status = entry.stat(follow_symlinks=False)
            is_deleted = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
            if is_deleted or (before.is_dir() and not before.is_symlink()):
                hidden.append(name)
            if not is_deleted:
                now[name] = Path(entry.path)
    for name in hidden:
        before = template / name
        is_folder = before.is_dir() and not before.is_symlink()
        below = _names_below(template, name) if is_folder else [name]
        there = (gone for gone in below if os.path.lexists(template / gone))
        yield from ((gone, None) for gone in there if gone not in now)
    yield from ((name, path) for name, path in now.items() if not _same(path, template / name))


def _entries(folder: Path, flags: list[str]) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError as error:
        flags.append(f"unreadable: {folder.name}: {error.strerror}")
        return []


def _compared(copy: Path, template: Path, flags: list[str]) -> Iterator[tuple[str, Path | None]]:
    """The paths at which a copy is not as the template it was made from."""
    before, now = set(_names_below(template)), set(_names_below(copy, flags=flags))
    for name in before | now:
        if name not in now:
            yield name, None
        elif name not in before or not _same(copy / name, template / name):
            yield name, copy / name


def _names_below(root: Path, folder: str = "", *, flags: list[str] | None = None) -> Iterator[str]:
    """The files of a folder, and of all in it but .git, by their paths from the root."""
    noted = [] if flags is None else flags
    folders = [folder]
    while folders:
        here = folders.pop()
        if here.count("/") > DEEPEST:
            noted.append(f"folders deeper than {DEEPEST}: left behind")
            continue
        for entry in _entries(root / here, noted):
            name = f"{here}/{entry.name}" if here else entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif name != ".git":
                folders.append(name)


def _replaces(folder: Path) -> bool:
    for mark in OPAQUE:
        try:
            if os.getxattr(folder, mark, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False


def _same(file: Path, other: Path) -> bool:
    """Whether two files hold the same, and may both be run or not."""
    try:
        a, b = file.lstat(), other.lstat()
        if stat.S_IFMT(a.st_mode) != stat.S_IFMT(b.st_mode):
            return False
        if stat.S_ISLNK(a.st_mode):
            return file.readlink() == other.readlink()
        if not stat.S_ISREG(a.st_mode):
            return a.st_rdev == b.st_rdev  # a pipe, a socket or a device holds nothing to compare
        if a.st_size != b.st_size:
            return False
        if (a.st_mode ^ b.st_mode) & 0o100:
            return False
        with file.open("rb") as left, other.open("rb") as right:
            while chunk := left.read(2**20):
                if chunk != right.read(2**20):
                    return False
    except OSError:
        return False
    return True


def _stays_inside(name: str, target: Path) -> bool:
    return not target.is_absolute() and not os.path.normpath(Path(name).parent / target).startswith(
        ".."
    )


# Laying changes on another copy, and showing them.


def lay(changes: Changes, view: View, template: Path) -> None:
    """Make the same changes in another copy of the template."""
    for name, file in changes.files.items():
        place = view.top / name
        if any(parent.is_symlink() for parent in place.parents if parent != view.top):
            continue  # a link in the way was made by another change: nothing is written through it
        if file is None:
            _delete(place, name, view, template)
            continue
        _clear(place)
        _make_folder(place.parent, view.top)
        if file.is_symlink():
            place.symlink_to(file.readlink())
            continue
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as source, place.open("wb") as written:
            _copy_data(source, written)
        place.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def _copy_data(source: BinaryIO, written: BinaryIO) -> None:
    """Copy a file with its holes: written out, some bytes of an agent would fill the disk."""
    size = os.fstat(source.fileno()).st_size
    end = 0
    while end < size:
        try:
            start = source.seek(end, os.SEEK_DATA)
        except OSError:
            break  # nothing but a hole is left
        end = source.seek(start, os.SEEK_HOLE)
        source.seek(start)
        written.seek(start)
        while start < end and (chunk := source.read(min(2**20, end - start))):
            start += written.write(chunk)
    written.truncate(size)


def _delete(place: Path, name: str, view: View, template: Path) -> None:
    _clear(place)
    if view.below is None or not os.path.lexists(template / name):
        return
    above = [view.top / parent for parent in Path(name).parents[:-1]]
    if any(os.path.lexists(parent) and not parent.is_dir() for parent in above):
        return  # a file stands where its folder was
    _make_folder(place.parent, view.top)
    os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(0, 0))


def _clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    elif os.path.lexists(place):
        place.unlink()


def _make_folder(folder: Path, top: Path) -> None:
    """Make a folder of a workspace, in place of a link, a file or a mark of deletion on the way."""
    place = top
    for part in folder.relative_to(top).parts:
        place /= part
        if place.is_symlink() or not place.is_dir():
            _clear(place)
            place.mkdir()


def lay_files(source: Path, view: View) -> None:
    """Put a file, or all files of a folder, on top of a workspace, in place of what is there."""
    root = source.parent if source.is_file() else source
    for file in files_of(source):
        place = view.top / file.relative_to(root)
        _make_folder(place.parent, view.top)
        _clear(place)
        shutil.copy2(file, place, follow_symlinks=True)


def lay_patch(patch: str, view: View, template: Path, scratch: Path) -> None:
    """Put files on top of a workspace as a diff leaves them: those of the template, patched.

    What the agent made of them does not count, so that the diff always fits.
    """
    scratch.mkdir()
    names = set(_patched(patch))
    if outside := [name for name in names if name.startswith("/") or ".." in Path(name).parts]:
        raise GraderError(f"the patch of the tests names a file outside the work: {outside[0]}")
    for name in names:
        if (template / name).is_file() and not (template / name).is_symlink():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(template / name, scratch / name)
    done = run_git("apply", "-", at=scratch, given=patch.encode("utf-8", "surrogatepass"))
    if done.returncode:
        stderr = done.stderr.decode("utf-8", "replace")
        raise GraderError(f"the tests cannot be laid out: {exit_sentence(done.returncode, stderr)}")
    for name in names:
        if not os.path.lexists(scratch / name):
            _delete(view.top / name, name, view, template)
    lay_files(scratch, view)


PATCHED = re.compile(
    r'^(?:diff --git ("?)a/(.+)\1 \1b/\2\1|(?:rename|copy) (?:from|to) ("?)(.+)\3)$', re.MULTILINE
)
"""A file that stays where it is, or one that moves; in quotes, bytes may be escaped."""


def _patched(patch: str) -> Iterator[str]:
    r"""The files that a diff of git changes, before and after.

    >>> sorted(_patched("diff --git a/a b.py b/a b.py\nrename from c\nrename to d"))
    ['a b.py', 'c', 'd']
    """
    for quote, same, moved_quote, moved in PATCHED.findall(patch):
        name = same or moved
        yield _unquoted(name) if quote or moved_quote else name


ESCAPED = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)


def _unquoted(name: str) -> str:
    r"""A path as git quotes it: bytes in octal, and the escapes of C; the bytes may be no text.

    >>> _unquoted(r"caf\303\251 \"a\".py"), _unquoted(r"\377.py")
    ('café "a".py', '\udcff.py')
    """
    letters = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))

    def plain(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return bytes([int(code, 8) if len(code) == 3 else letters.get(code[0], code[0])])

    return os.fsdecode(ESCAPED.sub(plain, name.encode("utf-8", "surrogateescape")))


def diff(changes: Changes, template: Path) -> str:
    """The changes as a unified diff; a file that is no text is named, and long ones are cut."""
    import difflib

    parts: list[str] = []
    length = 0
    for name, file in changes.files.items():
        before = _text(template / name)
        after = "" if file is None else _text(file)
        old = "/dev/null" if not os.path.lexists(template / name) else f"a/{name}"
        new = "/dev/null" if file is None else f"b/{name}"
        if before is None or after is None:
            part = f"Binary files {old} and {new} differ\n"
        elif min(before.count("\n"), after.count("\n")) > LONGEST_COMPARED:
            part = f"Files {old} and {new} differ, and are too long to compare\n"
        else:
            lines = difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), old, new
            )
            part = "".join(
                line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
                for line in lines
            )
        parts.append(part)
        length += len(part)
        if length > LONGEST_DIFF:
            return "".join(parts)[:LONGEST_DIFF] + "\n[the rest of the diff was left out]\n"
    return "".join(parts)


def _text(path: Path) -> str | None:
    """The text of a file, the target of a link, "" for what is not there; None if it is no text."""
    try:
        if path.is_symlink():
            return f"{path.readlink()}\n"
        if not path.exists():
            return ""
        if not path.is_file() or path.stat().st_size > LONGEST_DIFF:
            return None  # to read a pipe may take for ever
        content = path.read_bytes()
        return None if b"\0" in content else content.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# The workspaces of a run, and of one trial.


@contextmanager
def _telling(what: str, kind: type[RunError] = RunError) -> Iterator[None]:
    """Make what a disk or a program refuses an error of the trial, which says what it was about."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        stderr = (error.stderr or b"").decode("utf-8", "replace")
        raise kind(f"{what}: {error.cmd[0]}: {exit_sentence(error.returncode, stderr)}") from None
    except OSError as error:
        raise kind(f"{what}: {error}") from None


class Workspaces:
    """Makes the workspaces of a run's trials; each template is made and set up once.

    `way_out` makes the way to the hosts that a setup may reach, if there are any.
    """

    def __init__(
        self, home: Path, limits: Limits, *, way_out: Callable[[], WayOut] | None = None
    ) -> None:
        self._home = home / "workspaces"
        self._limits = limits
        self._way_out = way_out
        self._sandboxes: dict[Limits, Sandbox] = {}
        self._templates: dict[object, asyncio.Task[Path]] = {}
        self._images: dict[str | Path, asyncio.Task[Image]] = {}
        self._untouched: dict[tuple[Path, int], asyncio.Task[bool]] = {}

    def sandbox(self, system: CommandSystem, given: Workspace) -> Sandbox | None:
        """The sandbox of a system in a workspace; None for one that runs without."""
        if system.sandbox == "none":
            return None
        asked = given.limits or Resources()
        names = ("memory", "cpus", "processes", "disk")
        own = {name: value for name in names if (value := getattr(asked, name)) is not None}
        limits = replace(self._limits, **own)
        if limits not in self._sandboxes:
            self._home.mkdir(exist_ok=True)
            if not self._sandboxes:
                remove_stale_cgroups()
            self._sandboxes[limits] = Sandbox(self._home, limits)
        return self._sandboxes[limits]

    async def open(self, system: CommandSystem, task: Task, name: str) -> TrialWorkspace:
        """A fresh workspace for one trial; RunError if it cannot be made or set up."""
        given = task.workspace
        assert given is not None
        self._home.mkdir(exist_ok=True)
        sandbox = self.sandbox(system, given)
        image = None if given.image is None else await self._image(given.image, sandbox)
        files = tuple(system.add_files.items())
        key = (given, task.setup, files, system.show, sandbox is None)
        if key not in self._templates:
            folder = self._home / f"template-{len(self._templates)}"
            make = functools.partial(self._make, given, task, system, sandbox, folder, image)
            self._templates[key] = asyncio.create_task(_make_or_again(make, folder))
        template = await asyncio.shield(self._templates[key])
        folder = self._home / name
        with _telling("the workspace cannot be made"):
            view = await asyncio.to_thread(fresh_copy, template, folder, sandbox, image)
        return TrialWorkspace(
            system=system,
            sandbox=sandbox,
            template=template,
            folder=folder,
            view=view,
            keep=task.keep,
            asked="\n".join((task.prompt, *(step.prompt for step in task.steps))),
            untouched=self._untouched,
        )

    async def _image(self, name: str | Path, sandbox: Sandbox | None) -> Image:
        """The files of an image, unpacked once."""
        if sandbox is None:
            raise RunError(f"the image {name} needs a sandbox: an agent without one works here")
        if name not in self._images:
            folder = self._home / f"image-{len(self._images)}"
            making = asyncio.to_thread(unpack_image, name, folder)
            self._images[name] = asyncio.create_task(making)
        return await asyncio.shield(self._images[name])

    async def _make(
        self,
        given: Workspace,
        task: Task,
        system: CommandSystem,
        sandbox: Sandbox | None,
        folder: Path,
        image: Image | None,
    ) -> Path:
        if image is not None and (source := image.root / image.inside[1:]).is_dir():
            if not source.resolve().is_relative_to(image.root.resolve()):
                raise RunError(f"the folder {image.inside} of the image leads out of it by a link")
            given = replace(given, source=source)
        await asyncio.to_thread(make_workspace, given, folder)
        with _telling("add_files"):
            await asyncio.to_thread(add_files, system.add_files, folder)
        if sandbox is not None:
            with _telling("the workspace cannot be given to the sandbox's user"):
                await asyncio.to_thread(sandbox.own, folder)
        if task.setup:
            stdout, stderr = Tail(), Tail()
            words = ["sh", "-ec", task.setup]
            made = TrialWorkspace(
                system=system, sandbox=sandbox, template=folder, folder=folder,
                view=View(top=folder, image=image),
            )  # fmt: skip
            gateway = None if sandbox is None or self._way_out is None else self._way_out()
            env = {} if gateway is None else gateway.variables()
            try:
                async with asyncio.timeout(SETUP_SECONDS):
                    ended = await made.start(words, env, b"", stdout, stderr, gateway=gateway)
            except TimeoutError:
                raise RunError(f"setup took longer than {SETUP_SECONDS:g} s") from None
            except OSError as error:
                raise RunError(f"setup could not run: {words[0]}: {error}") from None
            finally:
                if gateway is not None:
                    await gateway.close()
            if ended.limit is not None:
                raise RunError(f"setup went over its {ended.limit} limit")
            if ended.code:
                printed = stderr.text or stdout.text
                raise RunError(f"setup: {exit_sentence(ended.code, printed)}")
        return folder


async def _make_or_again(make: Callable[[], Awaitable[Path]], folder: Path) -> Path:
    """Make a template; what fails once, as a download may, is tried once more."""
    try:
        return await make()
    except RunError:
        await asyncio.to_thread(remove_folder, folder)
        return await make()


def fresh_copy(
    template: Path, folder: Path, sandbox: Sandbox | None, image: Image | None = None
) -> View:
    """A copy of a template for one trial or one grader."""
    folder.mkdir(parents=True)
    top = folder / "top"
    if sandbox is not None and sandbox.overlays:
        top.mkdir()
        sandbox.own(top)
        return View(top=top, below=template, image=image)
    copy_folder(template, top)
    if sandbox is not None:
        sandbox.own(top)
    return View(top=top, image=image)


class TrialWorkspace:
    """The workspace of one trial, from the agent's first step to its grade."""

    def __init__(
        self,
        *,
        system: CommandSystem,
        sandbox: Sandbox | None,
        template: Path,
        folder: Path,
        view: View,
        keep: Sequence[str] = (),
        asked: str = "",
        untouched: dict[tuple[Path, int], asyncio.Task[bool]] | None = None,
    ) -> None:
        self._system, self._sandbox = system, sandbox
        self._keep, self._asked = keep, asked
        self._untouched = {} if untouched is None else untouched
        self._template, self._folder, self._view = template, folder, view
        self.changes = Changes(files={})
        self.stage: Stage = "agent"
        self.tests: tuple[hidden_tests.TestResult, ...] = ()
        self._graders = 0
        self._diff: str | None = None
        self._printed: list[tuple[str, Tail]] = []
        self._reports: list[tuple[str, Path]] = []

    @property
    def is_isolated(self) -> bool:
        """Whether a sandbox is around it."""
        return self._sandbox is not None

    @property
    def inside(self) -> str:
        """Where the agent sees the workspace."""
        return str(self._view.top) if self._sandbox is None else self._view.inside

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        stdin: bytes,
        stdout: Tail,
        stderr: Tail,
        *,
        shown: Mapping[str, Path] | None = None,
        gateway: WayOut | None = None,
    ) -> Ending:
        """Run a program in the workspace until it ends, or a limit ends it."""
        self._note_printed("agent", stdout, stderr)
        if self._sandbox is None:
            return await _unconfined(argv, self._view.top, env, stdin, stdout, stderr)
        own = {str(path): path for path in self._system.show}
        return await self._sandbox.run(
            argv, self._view, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
            shown={**own, **(shown or {})}, gateway=gateway,
        )  # fmt: skip

    def _note_printed(self, who: str, stdout: Tail, stderr: Tail) -> None:
        """Keep what a program prints; the second agent of a trial, or the second tests, apart."""
        before = sum(name.startswith(who) for name, _ in self._printed) // 2
        folder = f"{who}-{before + 1}" if before else who
        self._printed += [(f"{folder}/stdout.txt", stdout), (f"{folder}/stderr.txt", stderr)]

    async def freeze(self) -> None:
        """Read back what the agent changed: it has ended."""
        with _telling("what the agent changed cannot be read"):
            self.changes = await asyncio.to_thread(changes_of, self._view, self._template)
        self._diff = None

    async def merged(self) -> Path:
        """The workspace as the agent left it, in a folder of its own."""
        if self._view.below is None:
            return self._view.top
        folder = self._folder / "merged"
        if not folder.exists():
            with _telling("what the agent left cannot be copied"):
                await asyncio.to_thread(copy_folder, self._template, folder)
                await asyncio.to_thread(lay, self.changes, View(top=folder), self._template)
        return folder

    async def grade(self, expectation: Expectation, directory: Path, files: DecidingFiles) -> Match:
        """Let hidden tests decide; `directory` is the suite's, and `files` guards what is there.

        Tests that cannot run are an error of the grader; but if they do run where nothing was
        changed, the change is what broke them, and that is a failure of the agent.
        """

        def note(results: Sequence[hidden_tests.TestResult]) -> None:
            self.tests = (*self.tests, *results)

        try:
            return await self._match(expectation, directory, files, note)
        except GraderError as error:
            if not self.changes.files or await self._breaks_untouched(
                expectation, directory, files
            ):
                raise
            return Match(0.0, f"{error}; without its changes they run")

    async def _match(
        self,
        expectation: Expectation,
        directory: Path,
        files: DecidingFiles,
        note: Callable[[Sequence[hidden_tests.TestResult]], None],
    ) -> Match:
        async def run(argv: list[str], report: str) -> hidden_tests.TestRun:
            return await self._run_tests(argv, expectation, report, directory, files)

        return await hidden_tests.match_tests(expectation, run, note)

    async def _breaks_untouched(
        self, expectation: Expectation, directory: Path, files: DecidingFiles
    ) -> bool:
        """Whether tests cannot run on the workspace as it was either; tried once in a run."""

        async def attempt() -> bool:
            folder = self._template.parent / f"untouched-{secrets.token_hex(6)}"
            untouched = TrialWorkspace(
                system=self._system, sandbox=self._sandbox, template=self._template,
                folder=folder, view=self._view,
            )  # fmt: skip
            try:
                await untouched._match(expectation, directory, files, lambda results: None)
            except RunError:
                return True
            finally:
                await asyncio.to_thread(untouched.close)
            return False

        key = (self._template, id(expectation))
        if key not in self._untouched:
            self._untouched[key] = asyncio.create_task(attempt())
        return await asyncio.shield(self._untouched[key])

    async def _run_tests(
        self,
        argv: list[str],
        expectation: Expectation,
        report: str,
        directory: Path,
        deciding: DecidingFiles,
    ) -> hidden_tests.TestRun:
        """Run hidden tests on the changes alone, in a fresh copy and a sandbox of its own."""
        options = expectation.options
        protect = (
            *(*PROTECTED, *options.get("protect", ())),
            *_runner_files(argv, self._template),
        )
        folders = {
            *_import_folders(options, directory),
            *await asyncio.to_thread(_named_import_folders, argv, self._template),
        }
        names = {
            *await asyncio.to_thread(_pytest_settings, self.changes, self._template),
            *_standard_modules(self.changes, self._template, folders, self._asked),
        }
        self._graders += 1
        folder = self._folder / f"grader-{self._graders}"
        crossing = self.changes.without(protect, names)
        self.changes = replace(self.changes, flags=crossing.flags)
        at = str(options.get("at") or "")
        if at and self._sandbox is None:
            raise GraderError(f"tests that lie at {at} need a sandbox, and this agent has none")
        reports = folder / "report"
        beside = folder / "tests" if at else None
        with _telling("the tests cannot be laid out", GraderError):
            view = await asyncio.to_thread(
                fresh_copy, self._template, folder, self._sandbox, self._view.image
            )
            reports.mkdir()
            if beside is not None:
                beside.mkdir()
            tests = View(top=beside) if beside is not None else view
            await asyncio.to_thread(
                self._lay_out, crossing, view, tests, options, directory, deciding
            )
            if self._sandbox is not None:
                await asyncio.to_thread(self._sandbox.own, reports)
        stdout, stderr = Tail(MOST_PRINTED), Tail(MOST_PRINTED)
        env = {"PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
        shown = {str(path): path for path in self._system.show}
        writable = {hidden_tests.REPORT_FOLDER: reports}
        if beside is not None:
            shown[at] = beside
            writable[REWARD_FOLDER] = reports
            env["TEST_DIR"] = at
        timeout = float(options.get("timeout") or GRADER_SECONDS)
        name = Path(report).name
        self._note_printed("tests", stdout, stderr)
        self._reports.append((self._printed[-1][0].removesuffix("/stderr.txt"), reports / name))
        try:
            async with asyncio.timeout(timeout):
                if self._sandbox is None:
                    words = [word.replace(report, str(reports / name)) for word in argv]
                    own = {**inherited_environment(), **env}
                    ended = await _unconfined(words, view.top, own, b"", stdout, stderr)
                else:
                    ended = await self._sandbox.run(
                        argv, view, env=env, stdin=b"", stdout=stdout, stderr=stderr,
                        writable=writable, shown=shown,
                    )  # fmt: skip
        except TimeoutError:
            raise GraderError(f"the tests took longer than {timeout:g} s") from None
        except OSError as error:
            raise GraderError(f"the tests could not run: {argv[0]}: {error}") from None
        return hidden_tests.TestRun(
            code=ended.code,
            report=_report(reports / name),
            stdout=stdout.text,
            stderr=stderr.text,
            limit=ended.limit,
            is_cut=max(stdout.total, stderr.total) > MOST_PRINTED,
            reward=None if beside is None else _reward(reports),
        )

    def _lay_out(
        self,
        crossing: Changes,
        view: View,
        tests: View,
        options: Mapping[str, Any],
        directory: Path,
        deciding: DecidingFiles,
    ) -> None:
        """Lay the agent's changes and the hidden tests on a fresh copy; the tests perhaps apart."""
        lay(crossing, view, self._template)
        if (patch := options.get("patch")) is not None:
            lay_patch(patch, view, self._template, view.top.parent / "patched")
        for source in (directory / name for name in options.get("files", ())):
            known = (file for file in deciding.names if file.is_relative_to(source.absolute()))
            for file in {*files_of(source), *known}:  # one that is gone was changed too
                deciding.check(file)
            if not source.exists():
                raise GraderError(f"there are no hidden tests at {source}")
            lay_files(source, tests)
        if self._sandbox is not None:
            self._sandbox.own(view.top)

    def diff(self) -> str:
        """What the agent changed, as a unified diff."""
        if self._diff is None:
            self._diff = diff(self.changes, self._template)
        return self._diff

    def artefacts(self, clean: Callable[[bytes], bytes | None]) -> dict[str, bytes]:
        """The files that are kept of the trial, by name; what is left out or cut is flagged.

        `clean` takes secrets out of a content, or gives None where it cannot.
        """
        kept: dict[str, bytes] = {}
        notes: list[str] = []
        room = MOST_ARTEFACTS
        for name, size, content in self._left():
            name = _unique(name, kept)
            if size > len(content):  # cut, perhaps in the middle of a letter
                content = content.lstrip(bytes(range(0x80, 0xC0)))
            cleaned = clean(content)
            if cleaned is not None and (len(kept) == MOST_ARTEFACT_FILES or len(cleaned) > room):
                most = f"{MOST_ARTEFACT_FILES} files and {MOST_ARTEFACTS // 10**6} MB"
                notes.append(f"not kept: {name} and what comes after it; a trial keeps {most}")
                break
            if cleaned is None:
                notes.append(f"not kept: {name} is no text, and holds a secret")
            elif size > len(content) and text_of(content) is None:
                most = f"{LARGEST_ARTEFACT // 10**6} MB"
                notes.append(f"not kept: {name} is no text, and larger than {most}: {size:,} bytes")
            else:
                kept[name], room = cleaned, room - len(cleaned)
                if size > len(content):
                    notes.append(
                        f"cut: {name} is kept without its beginning; it has {size:,} bytes"
                    )
        self.changes = replace(self.changes, flags=(*notes, *self.changes.flags))
        return kept

    def _left(self) -> Iterator[tuple[str, int, bytes]]:
        """What there is to keep of the trial: a name, its size, and the end of what is in it."""
        changed = self.diff().encode("utf-8", "replace")
        if changed:
            yield "changes.diff", len(changed), changed
        yield from ((name, tail.total, tail.content) for name, tail in self._printed if tail.total)
        for folder, path in self._reports:
            if (report := _end_of(path, LARGEST_ARTEFACT)) is not None:
                kinds = {b"<": "xml", b"{": "json", b"[": "json"}
                kind = kinds.get(report[1].lstrip()[:1], "txt")
                yield f"{folder}/report.{kind}", *report
        for name, file in self.changes.files.items():
            if file is None or not matches(name, self._keep):
                continue
            if (kept := _end_of(file, LARGEST_ARTEFACT)) is not None:
                yield f"files/{name}", *kept

    def record(self) -> dict[str, Any]:
        """What is kept of it: where it ended, the diff, the tests, and what to know of it."""
        sandbox = self._sandbox
        return {
            "stage": self.stage,
            "sandbox": "none: NOT ISOLATED" if sandbox is None else "bubblewrap",
            "limits": "none" if sandbox is None else sandbox.limited_by,
            "diff": self.diff(),
            "flags": list(self.changes.flags[:MOST_FLAGS]),
            **({"kept": dict(kept_files(self.changes, self._keep))} if self._keep else {}),
            "tests": [
                {"name": test.name, "outcome": test.outcome, "message": test.message}
                for test in self.tests[:MOST_TESTS]
            ],
        }

    def close(self) -> None:
        """Remove all of it."""
        remove_folder(self._folder)


PYTHON_MODULE = re.compile(
    r"python[\d.]*(?:\s+-[WX]\s*\S+|\s+-[bBdEiIOPqRsSuvx]+)*\s+-[bBdEiIOPqRsSuvx]*m\s*(\w+)"
    r"|-m\s+(pytest|unittest)\b"
)
"""The module that Python starts, with other options before it or in the same word."""


def _runner_files(argv: Sequence[str], template: Path) -> Iterator[str]:
    """What would take the place of the runner that `python -m` starts, where none is there.

    Other programs have a `-m` of their own; of a known runner, they start it as Python does.

    >>> list(_runner_files(["python3", "-Im", "unittest", "-m", "slow"], Path("/nowhere")))
    ['/unittest.py', '/unittest/', '/pytest.py', '/pytest/']
    >>> list(_runner_files(["pytest", "-m", "slow"], Path("/nowhere")))
    []
    """
    started = [own or known for own, known in PYTHON_MODULE.findall(" ".join(argv))]
    for module in dict.fromkeys([*started, *(("pytest", "unittest") if started else ())]):
        if not any((template / name).exists() for name in (module, f"{module}.py")):
            yield from (f"/{module}.py", f"/{module}/")


def _standard_modules(
    changes: Changes, template: Path, folders: Container[str], asked: str
) -> Iterator[str]:
    """What the agent added to these folders that Python would import in place of its own library.

    A package needs its `__init__`: a folder alone takes no module's place. What the task asks for
    by name may be there.
    """
    for name in changes.files:
        folder, _, file = name.rpartition("/")
        if file.startswith("__init__."):
            folder, _, file = f"/{folder}".rpartition("/")
            folder, file = folder[1:], f"{file}.py"
        module, _, kind = file.partition(".")
        if folder not in folders or module not in sys.stdlib_module_names:
            continue
        known = (template / folder / each for each in (module, f"{module}.py"))
        is_asked = re.search(rf"(?<![\w-]){module}\.py\b", asked)
        wanted = is_asked or any(map(os.path.lexists, known))
        if kind.endswith(("py", "pyc", "so")) and not wanted:
            yield name


def _import_folders(options: Mapping[str, Any], directory: Path) -> set[str]:
    """The folders of a workspace that Python imports from: its root, and those of hidden tests."""
    laid = [Path(name) for name in _patched(options.get("patch") or "")]
    for source in (directory / name for name in options.get("files", ())):
        root = source.parent if source.is_file() else source
        laid += [file.relative_to(root) for file in files_of(source)]
    folders = {path.parent.as_posix() for path in laid}
    return {"", *(folder for folder in folders if folder != ".")}


PYTHON_PATH = re.compile(r"\bPYTHONPATH=[\"']?([^\s\"';&|]+)")


def _named_import_folders(argv: Sequence[str], template: Path) -> Iterator[str]:
    """Folders that come first for imports: `PYTHONPATH` of the command, `pythonpath` of pytest."""
    import configparser

    named = [word for path in PYTHON_PATH.findall(" ".join(argv)) for word in path.split(":")]
    options = _of_pytest(template / "pyproject.toml")
    tables = [options, options.get("ini_options")] if isinstance(options, dict) else []
    given = [table.get("pythonpath") for table in tables if isinstance(table, dict)]
    for file in ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg"):
        settings = configparser.RawConfigParser(strict=False)
        with suppress(configparser.Error):
            settings.read_string((_text(template / file) or "")[:LONGEST_SETTINGS])
        sections = ("tool:pytest",) if file == "setup.cfg" else ("pytest",)
        given += [settings.get(section, "pythonpath", fallback=None) for section in sections]
    for value in given:
        words = value.split() if isinstance(value, str) else value
        named += [word for word in words or () if isinstance(word, str)]
    yield from ("" if (place := os.path.normpath(word)) == "." else place for word in named)


def _pytest_settings(changes: Changes, template: Path) -> frozenset[str]:
    """The pyproject.toml files whose settings of pytest are not as they were; others may change."""
    names = [name for name in changes.files if Path(name).name == "pyproject.toml"]
    return frozenset(
        name
        for number, name in enumerate(names)
        if number >= MOST_SETTINGS or not _says_the_same(template / name, changes.files[name])
    )


def _says_the_same(before: Path, now: Path | None) -> bool:
    says = {} if now is None else _of_pytest(now)
    return says is not None and says == _of_pytest(before)


MOST_SETTINGS = 100
"""Files of settings that are read; who changes more of them changes none."""

LONGEST_SETTINGS = 200_000
"""Characters of a pyproject.toml that is read; a longer one is as unreadable as a broken one."""


def _of_pytest(file: Path) -> object:
    """What a pyproject.toml says to pytest, if it is there; None if it cannot be read."""
    import tomllib

    text = _text(file)
    if text is None or len(text) > LONGEST_SETTINGS:
        return None
    try:
        tools = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return tools.get("pytest", {}) if isinstance(tools, dict) else None


async def _unconfined(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes,
    stdout: Tail,
    stderr: Tail,
) -> Ending:
    process = await start_group(argv, env=env, cwd=cwd)
    try:
        return Ending(code=await talk(process, stdin, stdout, stderr))
    finally:
        await end_group(process, grace=0.0)


def kept_files(changes: Changes, patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of an agent that a task keeps, with the end of their text, or what they are."""
    room = MOST_KEPT
    for name, file in changes.files.items():
        if file is None or not matches(name, patterns):
            continue
        kept = _end_of(file, min(LONGEST_KEPT, room))
        if kept is None:
            yield name, "[not a plain file]"
            continue
        size, end = kept
        if b"\0" in end:
            yield name, f"[no text: {plural(size, 'byte')}]"
            continue
        room -= len(end)
        out = size - len(end)
        note = f"[left out: {plural(out, 'byte')} before this]\n" if out else ""
        yield name, note + end.decode("utf-8", "replace")


def _end_of(file: Path, most: int) -> tuple[int, bytes] | None:
    """The size of a plain file and its last bytes; None if it is another thing, or a link."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            return None
        stream.seek(max(0, status.st_size - most))
        return status.st_size, stream.read(most)


def _unique(name: str, taken: Container[str]) -> str:
    """A name of a file as text that can be kept, and that no other has."""
    plain = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    numbered = (plain, *(f"{plain}~{number}" for number in range(2, MOST_ARTEFACT_FILES + 2)))
    return next(each for each in numbered if each not in taken)


def _report(file: Path) -> bytes | None:
    """What tests wrote as their report: a plain file, and not one of any size."""
    if (kept := _end_of(file, hidden_tests.MOST_REPORT)) is None:
        return None
    size, content = kept
    return content if size <= hidden_tests.MOST_REPORT else b""  # a part would leave tests out


def _reward(folder: Path) -> float | None:
    """The score of tests as Harbor has them: where both files are there, JSON decides."""
    written = _report(folder / "reward.json")
    if written is not None:
        return hidden_tests.read_reward(written, is_json=True)
    return hidden_tests.read_reward(_report(folder / "reward.txt"), is_json=False)


def files_of(source: Path) -> list[Path]:
    """A file, or all files of a folder."""
    if source.is_file():
        return [source]
    return [source / name for name in _names_below(source)]
