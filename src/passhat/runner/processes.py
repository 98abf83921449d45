"""What a run asks of the operating system: signals, child processes, a directory of its own.

Each child leads a group. When it ends, the group is killed, and with it all that have left it.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import resource
import secrets
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a run to stop. SIGHUP comes when a terminal is closed or a connection drops."""


def _heeded() -> list[signal.Signals]:
    """The signals to act on: under nohup, a closed terminal is none of our business."""
    return [sign for sign in SIGNALS if signal.getsignal(sign) is not signal.SIG_IGN]


def is_cancelled() -> bool:
    """Whether this task is being cancelled; code of users may raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def signals_to_thread(interrupt: Callable[[int], None], *, enabled: bool = True) -> Iterator[None]:
    """As `signals_to`, for a run that waits in the main thread without an event loop."""
    here = enabled and threading.current_thread() is threading.main_thread()
    receive = _receiver(interrupt)
    before = {sign: signal.signal(sign, receive) for sign in _heeded()} if here else {}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


@contextmanager
def signals_to(interrupt: Callable[[int], None], *, enabled: bool = True) -> Iterator[None]:
    """Pass the first signal to `interrupt`; at the next, kill all children and exit at once."""
    loop = asyncio.get_running_loop()
    receive = _receiver(interrupt)
    installed = []
    for sign in _heeded() if enabled else ():
        try:
            loop.add_signal_handler(sign, receive, sign)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not the main thread: whatever runs there handles signals
        installed.append(sign)
    try:
        yield
    finally:
        for sign in installed:
            loop.remove_signal_handler(sign)


def _receiver(interrupt: Callable[[int], None]) -> Callable[..., None]:
    asked = False

    def receive(number: int, *_: object) -> None:
        nonlocal asked
        if asked and number == signal.SIGHUP:
            return  # the kernel and the shell each send one for a closed terminal
        if asked:
            kill_groups()
            os._exit(128 + number)
        asked = True
        interrupt(number)

    return receive


INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a child sees of our environment unless the suite gives it more."""

LONGEST_QUOTE = 160
"""Characters of the last line on stderr that a reason quotes."""

TERM_GRACE = 0.3
POLL = 0.005

ORPHAN_PATIENCE = 10.0
"""Seconds after which processes that cannot be killed are given up: no trial may hang on them."""

_living: dict[asyncio.subprocess.Process, tuple[str, float]] = {}
"""Leaders of groups that were started and not yet ended: the mark of the group, and its start."""

_starting: set[str] = set()
"""Marks of groups whose leader is being started: it may run before we have its pid."""


async def start_group(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    limit: int = 2**16,
    pass_fds: Sequence[int] = (),
) -> asyncio.subprocess.Process:
    """Start a process at the head of a new group, with all three streams piped."""
    mark = secrets.token_hex(8)
    _starting.add(mark)
    going = _start(mark, argv, env=env, cwd=cwd, limit=limit, pass_fds=pass_fds)
    starting = asyncio.ensure_future(going)
    try:
        process = await asyncio.shield(starting)
        _note_started(process, mark)
    except asyncio.CancelledError:
        # A child would be lost if this were cancelled between the fork and its return.
        with suppress(OSError, ValueError):
            process = await starting
            _note_started(process, mark)
            await end_group(process, grace=0.0)
        raise
    finally:
        _starting.discard(mark)
    return process


def _note_started(process: asyncio.subprocess.Process, mark: str) -> None:
    _living[process] = mark, time.monotonic()
    if _adopting:
        _started.add(process)


async def _start(
    mark: str,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    limit: int,
    pass_fds: Sequence[int],
) -> asyncio.subprocess.Process:
    starting = asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=marked_environment(env, mark),
        cwd=cwd,
        limit=limit,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    return await _first_step_tagged(mark, starting)


def inherited_environment() -> dict[str, str]:
    """The few variables that every child gets."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4


@contextmanager
def hidden_memory() -> Iterator[None]:
    """Keep other processes of this user from reading our memory and environment, on Linux.

    Agents get none of our keys; without this they could read them in /proc. Root still can.
    """
    if sys.platform != "linux":
        yield
        return
    import ctypes

    control = ctypes.CDLL(None).prctl
    before = control(PR_GET_DUMPABLE, 0, 0, 0, 0)
    control(PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        yield
    finally:
        control(PR_SET_DUMPABLE, before, 0, 0, 0)


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Finish a short piece of work, even if the task that waits for it is cancelled.

    A cleanup that is cut off halfway is worse than a late one.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled and not task.cancelled():
        task.result()
        raise asyncio.CancelledError


async def end_group(process: asyncio.subprocess.Process, *, grace: float = TERM_GRACE) -> None:
    """End a process and all its descendants: with SIGTERM, then with SIGKILL. It never hangs.

    Children of an exited leader keep its group alive, so the group is signalled even then.
    """
    await unbroken(_end_group(process, grace))


async def _end_group(process: asyncio.subprocess.Process, grace: float) -> None:
    family = _descendants(process)  # while all parents live: a child may have no other mark
    for sign, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, TERM_GRACE)):
        if not signal_group(process.pid, sign):
            break
        await _gone(process.pid, patience)
    # On a busy machine a killed process takes its time to be gone; a loop that closes before would
    # never learn that it is.
    with suppress(TimeoutError):
        async with asyncio.timeout(ORPHAN_PATIENCE):
            while process.returncode is None:
                await asyncio.sleep(POLL)
    # Those that left the group.
    await _end_all(lambda: {*filter(is_alive, family), *_descendants(process, freeze=True)})
    _living.pop(process, None)
    await _end_all(_strays)
    # A descendant that left the group may hold a pipe open; the transport must not wait for it.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _descendants(process: asyncio.subprocess.Process, *, freeze: bool = False) -> list[Descendant]:
    if process not in _living:
        return []  # ended before
    mark, since = _living[process]
    leads = process.returncode is None
    age = time.monotonic() - since
    return descendants(process.pid, mark, leads=leads, age=age, freeze=freeze)


async def _end_all(alive: Callable[[], set[Descendant]]) -> None:
    """Freeze processes until no other is found, kill them, and see them gone.

    Whoever is stopped cannot fork; one that forks anew all the time could outrun mere killing.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + ORPHAN_PATIENCE
    frozen: set[Descendant] = set()
    while listed := alive():
        late = loop.time() > until
        sign = signal.SIGKILL if late or listed <= frozen else signal.SIGSTOP
        for process in listed:
            send_signal(process, sign)
        if late:
            return
        frozen |= listed
        await asyncio.sleep(POLL)


def kill_groups() -> None:
    """Kill everything that was started, at once: just before this process exits."""
    for process in list(_living):
        family = _descendants(process, freeze=True)
        signal_group(process.pid, signal.SIGKILL)
        for descendant in family:
            send_signal(descendant, signal.SIGKILL)
    # They may fork while they are listed, and are gone only after a moment. A look at all processes
    # may take longer than that on a busy machine: each group is killed once, however late it is.
    until = time.monotonic() + TERM_GRACE
    for mark in (*(mark for mark, _ in _living.values()), *_starting):
        while family := descendants(0, mark, leads=False, freeze=True):
            for descendant in family:
                send_signal(descendant, signal.SIGKILL)
            if time.monotonic() > until:
                break
    while (strays := _strays()) and time.monotonic() < until:
        for stray in strays:
            send_signal(stray, signal.SIGKILL)


def signal_group(pid: int, sign: int) -> bool:
    """Signal a whole group; False if no process is left in it."""
    try:
        os.killpg(pid, sign)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _gone(pid: int, patience: float) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while signal_group(pid, 0) and loop.time() < until:
        await asyncio.sleep(POLL)


def exit_sentence(code: int, stderr: str, stdout: str = "") -> str:
    r"""How a program ended, with the last line that it wrote: on stderr, or else on stdout.

    >>> exit_sentence(7, "loading\nkaboom\n"), exit_sentence(1, "", "no order 1001\n")
    ('exit code 7: kaboom', 'exit code 1: no order 1001')
    """
    last = (stderr.strip() or stdout.strip()).rpartition("\n")[2].strip()
    if len(last) > LONGEST_QUOTE:
        last = f"{last[:LONGEST_QUOTE]}…"
    return f"exit code {code}" + (f": {last}" if last else "")


class Tail:
    """The last bytes of a stream; reading it keeps the writer from blocking.

    `total` is how many came in all: more than there are in `content` where it was cut.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._bytes = b""
        self.total = 0

    async def follow(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(2**16):
            self._bytes = (self._bytes + chunk)[-self._size :]
            self.total += len(chunk)

    @property
    def content(self) -> bytes:
        return self._bytes

    @property
    def text(self) -> str:
        return self._bytes.decode("utf-8", "replace").strip()


async def talk(
    process: asyncio.subprocess.Process, stdin: bytes, stdout: Tail, stderr: Tail
) -> int:
    """Give a program its input, follow its output, and return its exit code.

    This does not wait for the pipes to close: a child that it left behind may hold them open.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    following = asyncio.gather(stdout.follow(process.stdout), stderr.follow(process.stderr))
    try:
        process.stdin.write(stdin)
        process.stdin.close()
        while process.returncode is None:
            await asyncio.wait([following], timeout=POLL if following.done() else 10 * POLL)
            if following.done():
                await asyncio.sleep(0.001)
        await asyncio.wait([following], timeout=0.2)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return process.returncode


# Descendants that left their group or session: a daemon forks twice and calls setsid, so neither
# its group nor its parent is one of ours. On Linux it is found by what it has inherited: a mark in
# its environment, and a tag in its limits, which an empty environment does not remove. One that has
# removed both is found where we are the subreaper, the parent of every orphan: only where this
# process is ours alone, for orphans of a host program would come to us too, with no mark of whose
# they are. Where there is no /proc, none is found.

MARK = "PASSHAT_GROUPS"
"""The variable that holds the marks of all the groups a process descends from, split by colons."""

WRAPPED = 20.0
"""Seconds after which the numbers of processes may have wrapped around."""

_PROC = Path("/proc")
_DEAD = ("Z", "X")

_RLIMIT_LOCKS = 10
"""The limit that holds the tag: every child inherits it, and since 2.4.25 it limits nothing."""

_tagging = threading.Lock()


@dataclass(frozen=True, slots=True)
class Descendant:
    """A process, from /proc/PID/stat. A pid is used again; together with the start it is unique."""

    pid: int
    parent: int
    session: int
    started: int


def marked_environment(env: Mapping[str, str], mark: str) -> dict[str, str]:
    """An environment with one more mark, besides those that we were started with.

    >>> marked_environment({"PASSHAT_GROUPS": "outer"}, "inner")
    {'PASSHAT_GROUPS': 'outer:inner'}
    """
    before = env.get(MARK) or os.environ.get(MARK)
    return {**env, MARK: f"{before}:{mark}" if before else mark}


@types.coroutine
def _first_step_tagged(
    mark: str, starting: Coroutine[Any, Any, asyncio.subprocess.Process]
) -> Generator[Any, Any, asyncio.subprocess.Process]:
    """Await `starting`, with the tag in force during its first step alone: the one that forks."""
    with _tagged(mark):
        waits_for = starting.send(None)
    while True:
        try:
            try:
                sent = yield waits_for
            except BaseException as error:
                waits_for = starting.throw(error)
            else:
                waits_for = starting.send(sent)
        except StopIteration as end:
            process: asyncio.subprocess.Process = end.value
            return process


@contextmanager
def _tagged(mark: str) -> Iterator[None]:
    """Tag what is forked meanwhile: with our own soft limit, which a child gets a copy of.

    Within an agent of another run, that run's tag stays: it covers what we start, too.
    """
    with _tagging:
        try:
            soft, hard = resource.getrlimit(_RLIMIT_LOCKS)
            if sys.platform != "linux" or soft != resource.RLIM_INFINITY:
                raise ValueError
            resource.setrlimit(_RLIMIT_LOCKS, (_tag(mark), hard))
        except (OSError, ValueError):
            yield
            return
        try:
            yield
        finally:
            resource.setrlimit(_RLIMIT_LOCKS, (soft, hard))


def _tag(mark: str) -> int:
    return int(mark[:15], 16)


def descendants(
    leader: int, mark: str, *, leads: bool, age: float = 0.0, freeze: bool = False
) -> list[Descendant]:
    """All descendants of a leader that was started `age` seconds ago, even if it is dead.

    One with neither mark nor tag is found by its parent, as long as that one lives. `leads` says
    that the leader lives: once it is gone, another process may get its number. `freeze` stops each
    at first sight, before it can fork or end.
    """
    parents = {leader} if leads else set()
    family: list[Descendant] = []
    others: list[Descendant] = []

    def add(process: Descendant) -> None:
        if freeze:
            send_signal(process, signal.SIGSTOP)
        family.append(process)
        parents.add(process.pid)

    for process in _processes_since(leader, age):
        if process.pid in (leader, os.getpid()):
            continue
        if process.parent in parents or _has_mark(process.pid, mark) or _has_tag(process, mark):
            add(process)
        else:
            others.append(process)
    # A child comes before its parent where the numbers wrapped around between the two.
    while more := [
        other for other in others if other.parent in parents and other.pid not in parents
    ]:
        for process in more:
            add(process)
    return family


def send_signal(process: Descendant, sign: int) -> None:
    """Signal this process, and not another one that has got its number since."""
    with suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            if is_alive(process):
                signal.pidfd_send_signal(handle, sign)
        finally:
            os.close(handle)


def is_alive(process: Descendant) -> bool:
    """Whether it is still there, and is no zombie."""
    now = _process_at(process.pid)
    return now is not None and now.started == process.started


def _processes_since(leader: int, age: float) -> Iterator[Descendant]:
    """Living processes with a higher number, in order: those that were started later.

    Whoever is born after a listing has a higher number than all that are in it. So processes are
    listed until none has a higher number than those that were looked at: then no line of descent
    was missed, even if each of its members lived for a moment only.

    Numbers begin at the start again when they are used up. If that may have happened, every
    process may be younger.
    """
    with suppress(OSError, ValueError):
        newest = _newest_pid()
        seen = 0 if newest < leader or age > WRAPPED else leader
        while pids := sorted(pid for pid in _pids() if pid > seen):
            for pid in pids:
                if (process := _process_at(pid)) is not None:
                    yield process
            seen = pids[-1]
            if (now := _newest_pid()) < newest:
                seen = 0
            newest = now


def _newest_pid() -> int:
    return int((_PROC / "loadavg").read_text().split()[-1])


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  # half the time


def _process_at(pid: int, *, dead: bool = False) -> Descendant | None:
    """A process that lives, or with `dead` one that nobody has waited for yet."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold anything, brackets and blanks too.
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or (fields[0] in _DEAD and not dead):
        return None  # it is gone, or a zombie
    return Descendant(pid, int(fields[1]), int(fields[3]), int(fields[19]))


def _has_mark(pid: int, mark: str) -> bool:
    assert mark, "an empty mark fits every process"
    try:
        variables = b"\0" + (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    marks = variables.partition(f"\0{MARK}=".encode())[2].partition(b"\0")[0]
    return mark.encode() in marks.split(b":")


def _has_tag(process: Descendant, mark: str) -> bool:
    # Another thread of this program may have forked while the tag was in force. What it started is
    # in our session or our child; an orphan of a group is neither, unless orphans come to us.
    adopted = _adopting or os.getpid() == 1
    if process.session == os.getsid(0) or (process.parent == os.getpid() and not adopted):
        return False
    try:
        limits = (_PROC / str(process.pid) / "limits").read_text()
    except OSError:
        return False
    return f" {_tag(mark)} " in limits


PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37

_own = False
"""Whether nothing but passhat runs in this process: it was started by its command."""

_adopting = False
"""Whether orphans of agents become our children."""

_started: set[asyncio.subprocess.Process] = set()
"""What we started ourselves since then, until its end is known."""


def own_this_process() -> None:
    """Say that there is no host program, whose processes we would have to leave alone."""
    global _own
    _own = True


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Become the parent of what agents leave behind, on Linux, where this process is ours alone.

    What has neither mark nor tag is then still one of our children, and is ended as soon as every
    group that may have started it has ended. It must not be used where functions of users run in
    this process: what they start is theirs.
    """
    global _adopting
    if sys.platform != "linux" or not _own or _adopting:
        yield
        return
    import ctypes

    control = ctypes.CDLL(None).prctl
    if control(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        yield
        return
    _adopting = True
    try:
        yield
    finally:
        _adopting = False
        _started.clear()
        control(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _strays() -> set[Descendant]:
    """Orphans that do not show whose they are, frozen, with all that they started.

    They are children of ours that we did not start, and that left our session. Those that a living
    group may have started are left alone. Each is stopped with its process group: of a line of
    processes that all die at once the dead still name the group. The dead are buried.
    """
    if not _adopting or _starting:
        return set()  # one that is being started is not known yet
    _started.difference_update([child for child in _started if child.returncode is not None])
    leaders = [_process_at(process.pid) for process in _living]
    oldest = min((leader.started for leader in leaders if leader is not None), default=math.inf)
    known = {process.pid for process in (*_started, *_living)}
    strays: set[Descendant] = set()
    pids = [pid for pid in _children("self") if pid not in known]
    for pid in pids:
        process = _process_at(pid, dead=True)
        if process is None or process in strays:
            continue
        if process.parent == os.getpid():
            if process.session == os.getsid(0) or process.started >= oldest:
                continue
            with suppress(OSError):
                os.killpg(os.getpgid(pid), signal.SIGSTOP)
                os.waitpid(pid, os.WNOHANG)
        send_signal(process, signal.SIGSTOP)
        strays.add(process)
        pids += _children(pid)
    return strays


def _children(pid: int | str) -> list[int]:
    with suppress(OSError):
        lists = [path.read_text() for path in (_PROC / str(pid) / "task").glob("*/children")]
        return [int(word) for text in lists for word in text.split()]
    return []


# A directory for one run; a later run removes those of runs that were killed.

PREFIX = "passhat-run-"

OWNED = ".owned"
"""A file that the run keeps locked; the kernel releases the lock when the process ends."""

UNDISTURBED = 60.0
"""Seconds during which a new directory is left alone: its run may not have the lock yet."""


class Scratch:
    """A fresh directory, removed by `close`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self.path)
        sweep(self.path.parent)

    def close(self) -> None:
        remove_folder(self.path)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def sweep(folder: Path) -> None:
    """Remove the directories of runs that were killed before they could do it themselves."""
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            info = path.lstat()
            if info.st_uid != os.getuid() or time.time() - info.st_mtime < UNDISTURBED:
                continue
            # A symbolic link is not followed.
            if path.is_symlink() or not (path / OWNED).exists():
                if len(path.name) == len(PREFIX) + 8:  # as tempfile names it
                    path.rmdir()  # if it is empty: its run was killed before it had the lock
                continue
            if (lock := _lock(path)) is not None:
                _end_sandboxes(path.name)
                remove_folder(path)
                os.close(lock)


def _end_sandboxes(run: str) -> None:
    """Kill the sandboxes that bear the name of a run which was killed.

    One that was just beginning at that moment waits for ever for the process that made it.
    """
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().partition(b"\0")[0] == f"bwrap-{run}".encode():
                os.kill(int(path.parent.name), signal.SIGKILL)


CLEANING_SECONDS = 60.0
"""How long a folder is being removed: a process that got away may fill it as fast."""


def remove_folder(path: Path) -> bool:
    """Remove a folder with all that is in it, whatever an agent left there; False if some stays.

    It never raises, and needs neither stack nor long paths for deep folders: each folder's own
    folders are moved to the top until none is left. Links are not followed. The mark of a run goes
    last, so that a later run finds what could not be removed.
    """
    try:
        top = os.open(path, _FOLDER)
    except OSError:
        return not os.path.lexists(path)
    until = time.monotonic() + CLEANING_SECONDS
    try:
        os.fchmod(top, 0o700)
        kept = {OWNED}  # and what cannot be removed
        while folders := _remove_files(top, kept):
            kept.update(name for name in folders if not _flatten(name, top))
            if time.monotonic() > until:
                return False
        if kept != {OWNED}:
            return False
        with suppress(FileNotFoundError):
            os.unlink(OWNED, dir_fd=top)
        path.rmdir()
    except Exception:  # no rubbish is worth the run
        return False
    finally:
        os.close(top)
    return True


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def _remove_files(folder: int, kept: set[str]) -> list[str]:
    """Remove all but the folders in a folder, and return their names; what stays goes to `kept`."""
    with os.scandir(folder) as entries:
        here = [entry for entry in entries if entry.name not in kept]
    for entry in here:
        if not entry.is_dir(follow_symlinks=False):
            try:
                os.unlink(entry.name, dir_fd=folder)
            except OSError:
                kept.add(entry.name)
    return [entry.name for entry in here if entry.is_dir(follow_symlinks=False)]


def _flatten(name: str, top: int) -> bool:
    """Empty a folder of `top` and remove it; the folders in it become folders of `top`."""
    try:
        try:
            folder = os.open(name, _FOLDER, dir_fd=top)
        except PermissionError:
            os.chmod(name, 0o700, dir_fd=top)
            folder = os.open(name, _FOLDER, dir_fd=top)
        try:
            os.fchmod(folder, 0o700)
            kept: set[str] = set()
            for inner in _remove_files(folder, kept):
                free = secrets.token_hex(8)  # a name that the agent cannot have taken
                # Only a folder that may be written to can be moved.
                with suppress(OSError):
                    os.chmod(inner, 0o700, dir_fd=folder)
                os.rename(inner, free, src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _lock(path: Path) -> int | None:
    """The lock of a directory; None if another process holds it."""
    handle = os.open(path / OWNED, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
