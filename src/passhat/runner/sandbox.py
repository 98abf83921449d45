"""Where a program runs that is not trusted: bubblewrap, with limits, and nothing of ours to see.

A sandbox has its own processes, users, network (loopback alone) and file system: the system's
programs, read-only; the workspace; an empty HOME and /tmp. What is started in it ends with it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from passhat.dataclass import dataclass
from passhat.errors import MachineError, RunError
from passhat.records import Resources
from passhat.runner.processes import (
    Tail,
    descendants,
    end_group,
    inherited_environment,
    start_group,
    talk,
)

LAUNCHER = Path(__file__).with_name("sandbox_launcher.py")

INSIDE = "/project"
"""Where the workspace is, in every sandbox: no path tells one trial or arm from another."""

HOME = "/home/agent"
USER = 1000
"""The user in the sandbox; outside, where we are root, each run has a user of its own."""

OWN_USERS = 2_000_000_000
"""Where the users of runs begin, far from those of people and services."""

GATEWAY_PORT = 8731
"""Where a gateway listens, on the sandbox's own loopback."""

TMP, SHARED = "/tmp", "/dev/shm"  # noqa: S108 - in the sandbox, each is its own

SEEN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SETTINGS = ("ssl", "ca-certificates", "alternatives", "ld.so.cache", "localtime", "mime.types")
"""What programs need of /etc, and nothing that tells about this machine or its users."""

WATCH_SECONDS = 0.25
GIGABYTE = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a sandbox may take: bytes, processors, processes."""

    memory: int = 4 * GIGABYTE
    cpus: float = 1.0
    processes: int = 512
    disk: int = 5 * GIGABYTE
    tmp: int = GIGABYTE

    @classmethod
    def of(cls, asked: Resources) -> Limits:
        """The limits that a suite asks for; the defaults for what it leaves out."""
        usual = cls()
        return cls(
            memory=asked.memory or usual.memory,
            cpus=asked.cpus or usual.cpus,
            processes=asked.processes or usual.processes,
            disk=asked.disk or usual.disk,
            tmp=min(usual.tmp, asked.memory or usual.memory),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The files of an image, unpacked; where in it one works, and its variables."""

    root: Path
    inside: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The workspace that a sandbox shows: a folder, or the changes laid over one that stays.

    `top` takes what is written; with `below`, it holds nothing else. In an `image`, the programs
    around it are the image's, and not this machine's.
    """

    top: Path
    below: Path | None = None
    image: Image | None = None

    @property
    def inside(self) -> str:
        """Where the workspace is in the sandbox."""
        return INSIDE if self.image is None else self.image.inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a program in a sandbox ended: its exit code, and the limit that stopped it, if any."""

    code: int
    limit: str | None = None


class WayOut(Protocol):
    """What serves the one socket that leads out of a sandbox; variables say where that is."""

    def variables(self) -> dict[str, str]: ...

    async def serve(self, listening: socket.socket) -> None: ...

    async def close(self) -> None: ...


class Sandbox:
    """Starts programs in bubblewrap. One for a run: its user, its tools, its limits."""

    def __init__(self, home: Path, limits: Limits) -> None:
        self._home = home
        self._limits = limits
        self.user = OWN_USERS + os.getpid() if os.geteuid() == 0 else os.getuid()
        self._bubblewrap = require_bubblewrap()
        self.overlays = overlay_works(home)

    @property
    def limited_by(self) -> str:
        """What enforces the limits, in words for a report."""
        version = cgroup_version()
        if version is None:
            return "a watcher (no cgroup may be written here)"
        return f"cgroup v{version}"

    def own(self, folder: Path) -> None:
        """Give a folder with all that is in it to the sandbox's user."""
        if os.geteuid() == 0:
            owner = f"{self.user}:{self.user}"
            words = ["chown", "-Rh", owner, "--", str(folder)]
            subprocess.run(words, check=True, capture_output=True)

    async def run(
        self,
        argv: Sequence[str],
        view: View,
        *,
        env: Mapping[str, str],
        stdin: bytes,
        stdout: Tail,
        stderr: Tail,
        shown: Mapping[str, Path] | None = None,
        writable: Mapping[str, Path] | None = None,
        gateway: WayOut | None = None,
    ) -> Ending:
        """Run a program until it ends or reaches a limit; a cancelled one is killed.

        Raises OSError if there is no such program, and RunError if the sandbox cannot be started.
        `shown` and `writable` are further places in the sandbox, and what is there. A `gateway`
        serves a socket on its loopback: no process of ours is in there.
        """
        cgroup, killed_before = Cgroup(self._limits), _killed_on_this_machine()
        stage = self._home / f"stage-{secrets.token_hex(6)}"
        stage.mkdir()
        orders = self._orders(
            argv, view, env, stage, cgroup, {**(shown or {})}, {**(writable or {})}
        )
        ours, theirs = socket.socketpair()
        status, reported = os.pipe()
        orders["listen"] = None if gateway is None else [GATEWAY_PORT, theirs.fileno()]
        orders["argv"][1:1] = ["--json-status-fd", str(reported)]
        program = [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(orders)]
        with ours, theirs, os.fdopen(status, "rb") as status_file:
            try:
                process = await start_group(
                    program,
                    env=inherited_environment(),
                    cwd=self._home,
                    pass_fds=(reported,) if gateway is None else (reported, theirs.fileno()),
                )
            finally:
                os.close(reported)
            theirs.close()  # so that a launcher that fails is the end of the conversation
            watcher = asyncio.create_task(self._watch(process, view.top, cgroup))
            try:
                if gateway is not None:
                    for listening in await asyncio.to_thread(_received, ours):
                        await gateway.serve(listening)
                code = await talk(process, stdin, stdout, stderr)
            finally:
                watcher.cancel()
                await end_group(process, grace=0.0)
                await asyncio.to_thread(cgroup.close)
                with suppress(OSError):
                    stage.rmdir()
            # No program in the sandbox has this pipe: only one that ran has an exit code there.
            os.set_blocking(status, False)
            has_run = b'"exit-code"' in (status_file.read() or b"")
        limit = watcher.result() if watcher.done() and not watcher.cancelled() else None
        memory = cgroup.memory
        limit = limit or ("memory" if memory.limit_killed else None)
        if code and not has_run and limit is None:
            # Nothing ran, so these are bubblewrap's own words.
            if missing := re.search(r"^bwrap: execvp .*: (.*)$", stderr.text, re.MULTILINE):
                raise OSError(missing[1])
            raise MachineError(f"the sandbox cannot be started: {stderr.text[:300].strip()}")
        # Which trial the kernel killed only a cgroup knows: the machine counts those of all.
        by_machine = (
            memory.machine_killed
            if cgroup.holds("memory")
            else _killed_on_this_machine() > killed_before
        )
        if limit is None and by_machine and code in (128 + signal.SIGKILL, -signal.SIGKILL):
            raise MachineError(
                "the machine ran out of memory and killed it, below the limit that it has: run "
                "fewer trials at a time (`concurrency:`), or lower `memory:` of `resources:`"
            )
        return Ending(code=code, limit=limit)

    def _orders(
        self,
        argv: Sequence[str],
        view: View,
        env: Mapping[str, str],
        stage: Path,
        cgroup: Cgroup,
        shown: dict[str, Path],
        writable: dict[str, Path],
    ) -> dict[str, Any]:
        """What the launcher is told; see there."""
        image = view.image
        folders = SEEN_PATH.split(":")
        if image is None:
            for tool in tool_folders(argv[0]):
                shown.setdefault(str(tool), tool)
            program = shutil.which(argv[0])
            if program is not None and (beside := str(Path(program).parent)) not in folders:
                folders = [beside, *folders]
        places = [*((inside, path, False) for inside, path in shown.items())]
        places += [(inside, path, True) for inside, path in writable.items()]
        overlay = None
        if view.below is None:
            places.append((view.inside, view.top, True))
        else:
            spare = view.top.with_name(f"{view.top.name}-spare")
            spare.mkdir(exist_ok=True)
            parts = (view.below, view.top, spare)
            overlay = [str(part.relative_to(self._home)) for part in parts]
        binds = [
            word
            for number, (inside, _, can_write) in enumerate(places)
            for word in ("--bind" if can_write else "--ro-bind", f"/mnt/{number}", inside)
        ]
        if overlay is not None:
            binds += ["--bind", "/mnt/work", view.inside]
        around = ["--ro-bind", "/usr", "/usr", *_system_folders()]
        if image is not None:
            _make_mount_points(image.root, places)
            around = list(_image_folders(image.root, f"/mnt/{len(places)}"))
            places.append(("", image.root, False))
        limits = self._limits
        variables = {
            "PATH": ":".join(folders),
            "HOME": HOME,
            "LANG": "C.UTF-8",
            "TMPDIR": TMP,
            **({} if image is None else image.env),
            **env,
        }
        bubblewrap = [
            *(
                f"bwrap-{self._home.parent.name}",
                "--unshare-user",
                "--unshare-pid",
                "--unshare-ipc",
                "--unshare-uts",
            ),
            *("--unshare-cgroup-try", "--disable-userns", "--new-session", "--die-with-parent"),
            *(
                "--hostname",
                "localhost",
                "--uid",
                str(USER),
                "--gid",
                str(USER),
                "--cap-drop",
                "ALL",
            ),
            *("--clearenv", "--proc", "/proc", "--dev", "/dev"),
            *("--size", str(min(limits.tmp, 64 << 20)), "--tmpfs", SHARED),
            *("--remount-ro", "/dev"),
            *("--size", str(limits.tmp), "--tmpfs", TMP),
            *("--size", str(limits.tmp), "--tmpfs", "/home", "--dir", HOME, "--dir", "/etc"),
            *around,
            *binds,
            *("--chdir", view.inside),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *("--", *argv),
        ]
        return {
            "cgroups": [str(folder) for folder in cgroup.folders],
            "mounts": [[str(path), can_write] for _, path, can_write in places],
            "home": str(self._home),
            "overlay": overlay,
            "stage": str(stage),
            "user": self.user,
            "files": limits.disk,
            "processes": None if cgroup.holds("pids") else limits.processes + _others(self.user),
            "listen": None,
            "parent": os.getpid(),
            "program": self._bubblewrap,
            "argv": bubblewrap,
        }

    async def _watch(
        self, process: asyncio.subprocess.Process, folder: Path, cgroup: Cgroup
    ) -> str | None:
        """Kill a program that fills the disk or, where no cgroup holds it, the memory."""
        pause = WATCH_SECONDS
        while process.returncode is None:
            await asyncio.sleep(pause)
            began = time.monotonic()
            limit = None
            # One file ends at the limit, and is not over it.
            if await asyncio.to_thread(bytes_below, folder, self._limits.disk) >= self._limits.disk:
                limit = "disk"
            elif not cgroup.holds("memory"):
                used = await asyncio.to_thread(_resident_bytes, process.pid)
                limit = "memory" if used > self._limits.memory else None
            if limit is not None:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                return limit
            # A folder of many files takes long to measure; then it is measured less often.
            pause = max(WATCH_SECONDS, 10 * (time.monotonic() - began))
        return None


def _killed_on_this_machine() -> int:
    """How many processes the kernel has killed since it started because memory was short."""
    counts = (line.split() for line in _lines(Path("/proc/vmstat")))
    return next((int(words[1]) for words in counts if words[0] == "oom_kill"), 0)


def _received(pair: socket.socket) -> list[socket.socket]:
    """The socket that the launcher opened in the sandbox; none if it failed before that."""
    return [socket.socket(fileno=handle) for handle in socket.recv_fds(pair, 1, 1)[1]]


def _others(user: int) -> int:
    """How many processes a user has; a limit without a cgroup counts them too."""
    owners = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            owners.append(path.stat().st_uid)
    return owners.count(user)


def _system_folders() -> Iterator[str]:
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for name in SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _image_folders(root: Path, staged: str) -> Iterator[str]:
    """What an image has at its top, but for what is made afresh in every sandbox."""
    for entry in sorted(root.iterdir()):
        if entry.name in ("proc", "sys", "dev", "tmp", "run", "home"):
            continue
        if entry.is_symlink():
            yield from ("--symlink", str(entry.readlink()), f"/{entry.name}")
        else:
            yield from ("--ro-bind", f"{staged}/{entry.name}", f"/{entry.name}")


def _make_mount_points(root: Path, places: Sequence[tuple[str, Path, bool]]) -> None:
    """Make what something is mounted on in folders of an image, which are read-only later.

    bubblewrap makes the rest; nothing is made through a link, which may lead out of the image.
    """
    for inside, path, _ in places:
        *above, last = Path(inside).parts[1:] or ("",)
        place = root
        for part in above:
            place /= part
            if place.is_symlink() or not (os.path.lexists(place) or place.parent != root):
                break
            _make_in_image(Path.mkdir, place, inside, root)
        else:
            if not last:
                raise RunError("the whole of this machine cannot be shown in an image: name a part")
            if above and not (place / last).is_symlink():
                make = Path.mkdir if path.is_dir() else Path.touch
                _make_in_image(make, place / last, inside, root)


def _make_in_image(make: Callable[..., None], place: Path, inside: str, root: Path) -> None:
    """Make a file or a folder unless it is there; RunError where the other of the two is."""
    with suppress(FileExistsError):  # another trial may make it at the same moment
        if not os.path.lexists(place):
            make(place)
    if place.is_dir() != (make is Path.mkdir):
        what = "folder" if place.is_dir() else "file"
        raise RunError(
            f"{inside} cannot be shown in the image, which has a {what} at "
            f"/{place.relative_to(root)}"
        )


def tool_folders(program: str) -> list[Path]:
    """The folders outside the system's own that a program needs: where it was installed.

    A program in a `bin` is installed in the folder around that; a link leads to another such
    folder. A virtual environment also needs the Python that it was made from, and a package of
    npm those beside it.
    """
    folders: dict[Path, None] = {}
    path = shutil.which(program)
    for _ in range(20):
        if path is None:
            break
        here = Path(path)
        folder = here.parent.parent if here.parent.name in ("bin", "Scripts") else here.parent
        if "node_modules" in folder.parts:
            folder = Path(*folder.parts[: folder.parts.index("node_modules") + 1])
        if not folder.is_relative_to("/usr") and folder != Path("/"):
            folders[folder] = None
            for line in _lines(folder / "pyvenv.cfg"):
                name, _, value = line.partition("=")
                if name.strip() == "home" and not value.strip().startswith("/usr"):
                    folders[Path(value.strip()).parent] = None
        path = str(here.parent / here.readlink()) if here.is_symlink() else None
    return [folder.resolve() if folder.is_symlink() else folder for folder in folders]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def bytes_below(folder: Path, enough: int) -> int:
    """The bytes on disk of all files in a folder; it stops counting at `enough`."""
    total, folders = 0, [folder]
    while folders and total < enough:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def _resident_bytes(leader: int) -> int:
    """The memory of a process and its children, by the proportional share of each page."""
    below = descendants(leader, secrets.token_hex(8), leads=True)
    total = 0
    for pid in (leader, *(process.pid for process in below)):
        for line in _lines(Path(f"/proc/{pid}/smaps_rollup")):
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


# Images: podman or docker has them, and bubblewrap runs what is in them.

ENGINES = ("podman", "docker")


def image_engine() -> str | None:
    """The program that has images here; None if there is none."""
    return next(filter(None, map(shutil.which, ENGINES)), None)


def unpack_image(name: str | Path, to: Path) -> Image:
    """Put the files of an image into a folder; RunError with the way out where that fails.

    Only its files are taken: it runs in the same sandbox as all else, with the same limits, the
    same gateway and no other network.
    """
    engine = image_engine()
    if isinstance(name, Path):
        raise RunError(f"{name} is what an image is built from: build it, and name the image")
    if engine is None:
        raise RunError(
            f"the image {name} needs podman or docker, and neither is installed (package podman)"
        )

    def ask(*words: str) -> str:
        done = subprocess.run([engine, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            why = done.stderr.strip()[-300:] or f"exit code {done.returncode}"
            raise RunError(f"the image {name} cannot be had from {Path(engine).name}: {why}")
        return done.stdout.strip()

    packed = to.with_suffix(".tar")
    made = ask("create", "--", name, "true").splitlines()[-1]
    try:
        ask("export", "-o", str(packed), made)
    finally:
        ask("rm", made)
    to.mkdir()
    # As whoever unpacks it, without devices: no file of it is run outside a sandbox.
    words = ["tar", "-x", "--no-same-owner", "--exclude=dev/*", "-f", str(packed), "-C", str(to)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    packed.unlink(missing_ok=True)
    if done.returncode:
        raise RunError(f"the image {name} cannot be unpacked: {done.stderr.strip()[-300:]}")
    settings = json.loads(ask("image", "inspect", "--format", "{{json .Config}}", "--", name)) or {}
    inside = os.path.normpath(settings.get("WorkingDir") or "/")
    given = (word.partition("=") for word in settings.get("Env") or ())
    return Image(
        root=to,
        inside=INSIDE if inside == "/" else inside,
        env={variable: value for variable, _, value in given},
    )


# Which sandboxes work here.


@functools.cache
def require_bubblewrap() -> str:
    """The path of bubblewrap; RunError with the way out where it is not there or may not work."""
    path = shutil.which("bwrap")
    if sys.platform != "linux":
        raise RunError(
            "a workspace is isolated by bubblewrap, which only Linux has: run it there, or write "
            "`sandbox: none` for an agent that you trust with this machine"
        )
    if path is None:
        raise RunError(
            "a workspace is isolated by bubblewrap, which is not installed (package bubblewrap): "
            "install it, or write `sandbox: none` for an agent that you trust with this machine"
        )
    done = subprocess.run(
        [path, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunError(
            f"bubblewrap does not work here ({done.stderr.strip()[:200]}): allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_"
            "unprivileged_userns=0; in a container, --security-opt seccomp=unconfined), or write "
            "`sandbox: none` for an agent that you trust with this machine"
        )
    return path


@functools.cache
def overlay_works(folder: Path) -> bool:
    """Whether changes can be laid over a folder: not in most containers, nor before Linux 5.11.

    It is tried in this folder, which goes with its run even if that is killed meanwhile.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name:
        home = Path(name)
        for part in ("stage", "below", "top", "spare"):
            (home / part).mkdir()
        orders = {
            "cgroups": [], "mounts": [], "home": name, "overlay": ["below", "top", "spare"],
            "stage": f"{name}/stage", "user": os.getuid(), "files": 2**40, "processes": None,
            "listen": None, "parent": os.getpid(), "program": "/bin/true", "argv": ["true"],
        }  # fmt: skip
        program = [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(orders)]
        return subprocess.run(program, capture_output=True, check=False).returncode == 0


# Control groups: version 2 where we may write it, else version 1, else none.

CGROUPS = Path("/sys/fs/cgroup")
CLOSING_SECONDS = 30.0
"""How long the processes of a group may take to be gone: a machine may be busy."""

STALE_SECONDS = 2.0
"""The same for groups of earlier runs, for which no run should wait long."""

CGROUP_NAME = re.compile(r"passhat-(\d+)-")


@functools.cache
def cgroup_version() -> int | None:
    """The version of control groups that we may use here; None if there is none."""
    probe = Cgroup(Limits())
    try:
        return probe.version if probe.holds("memory") else None
    finally:
        probe.close()


class Cgroup:
    """The control group of one sandbox; where none may be made, it is empty and limits nothing."""

    def __init__(self, limits: Limits) -> None:
        name = f"passhat-{os.getpid()}-{secrets.token_hex(4)}"
        quota = str(max(1000, int(limits.cpus * 100_000)))
        self.folders: list[Path] = []
        self.version = 2 if (CGROUPS / "cgroup.controllers").exists() else 1
        self._held: set[str] = set()
        settings = {
            "memory": [("memory.limit_in_bytes", str(limits.memory))],
            "pids": [("pids.max", str(limits.processes))],
            "cpu": [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", quota)],
        }
        if self.version == 2:
            settings = {
                "memory": [("memory.max", str(limits.memory))],
                "pids": [("pids.max", str(limits.processes))],
                "cpu": [("cpu.max", f"{quota} 100000")],
            }
        for controller, writes in settings.items():
            folder = CGROUPS / name if self.version == 2 else CGROUPS / controller / name
            try:
                folder.mkdir(exist_ok=True)
                if folder not in self.folders:
                    self.folders.append(folder)
                for file, value in writes:
                    (folder / file).write_text(value)
                self._held.add(controller)
            except OSError:
                continue
        for folder in self.folders:  # a kernel that counts no swap has no file for it
            if self.version == 2 and (folder / "memory.swap.max").exists():
                with suppress(OSError):
                    (folder / "memory.swap.max").write_text("0")

    def holds(self, controller: str) -> bool:
        """Whether the limit of a controller is in force."""
        return controller in self._held

    @property
    def memory(self) -> MemoryKills:
        """Whether a process of the group was killed for want of memory, and whose memory it was."""
        return self._memory or MemoryKills.counted(self.folders)

    _memory: MemoryKills | None = None

    def close(self) -> None:
        """Kill what is left in the group, and remove it."""
        self._memory = self.memory
        _empty(self.folders, until=time.monotonic() + CLOSING_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKills:
    """Who killed a process of a group for want of memory: its own limit, or the machine's."""

    limit_killed: bool
    machine_killed: bool

    @classmethod
    def counted(cls, folders: Sequence[Path]) -> MemoryKills:
        """What the kernel has counted: kills of any kind, and how often the limit was reached.

        Version 2 counts an `oom` for each time that the group itself was out of memory; version 1
        counts in `memory.failcnt` how often it was at its limit.
        """
        files = ("memory.events", "memory.oom_control")
        lines = [line.split() for f in folders for name in files for line in _lines(f / name)]
        failed = [["oom", *_lines(folder / "memory.failcnt")] for folder in folders]
        counts = {name: int(count) for name, count in (w for w in (*lines, *failed) if len(w) == 2)}
        is_killed, is_full = counts.get("oom_kill", 0) > 0, counts.get("oom", 0) > 0
        return cls(limit_killed=is_killed and is_full, machine_killed=is_killed and not is_full)


def _empty(folders: Sequence[Path], *, until: float) -> None:
    """Kill all processes of groups and remove these, if that can be done in time."""
    while time.monotonic() < until:
        pids = {int(p) for folder in folders for p in _lines(folder / "cgroup.procs")}
        pids.discard(0)  # one of another namespace; to `kill` it is our own group
        if not pids:
            break
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    # A group that ran out of memory stays busy for a moment after its last process.
    left = list(folders)
    while left and time.monotonic() < until:
        left = [folder for folder in left if not _removed(folder)]
        time.sleep(0.005 if left else 0)


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def remove_stale_cgroups() -> None:
    """Remove the groups of runs that were killed before they could do it themselves.

    A bubblewrap that was just beginning when its run was killed waits in there for ever.
    """
    for parent in (CGROUPS, *(CGROUPS / name for name in ("memory", "pids", "cpu"))):
        for folder in parent.glob("passhat-*"):
            match = CGROUP_NAME.match(folder.name)
            if match is not None and not Path("/proc", match[1]).exists():
                _empty([folder], until=time.monotonic() + STALE_SECONDS)
