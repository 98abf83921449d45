"""The first process of a sandbox: it joins its limits, makes what bubblewrap shows, and becomes it.

It is run as a script (`python -I -S`) and told what to do in one JSON argument: `cgroups`,
`parent`, `mounts`, `home`, `overlay`, `stage`, `user`, `files`, `processes`, `listen`, `program`
and `argv`. All that it mounts is in a namespace of its own, and goes with the last process there.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
MS_NOSUID, MS_NODEV = 2, 4
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

VISIBLE_STAGE = "/mnt"
"""Where the sandbox's own user can reach what was staged."""

libc = ctypes.CDLL(None, use_errno=True)


def main(orders: dict[str, Any]) -> None:
    """Become the program of `argv`, in what the rest describes."""
    for folder in orders["cgroups"]:
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write("0")
    is_root = os.geteuid() == 0
    _unshare(is_root)
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _stage(orders)
    _open_loopback(orders["listen"])
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, orders["files"])
    if is_root:
        os.setgroups([])
        os.setresgid(*[orders["user"]] * 3)
        os.setresuid(*[orders["user"]] * 3)
    if orders["processes"] is not None:  # for want of a cgroup; it has no hold on root
        _limit(resource.RLIMIT_NPROC, orders["processes"])
    # bubblewrap dies with its parent, unless that died before bubblewrap could ask for it.
    _call("prctl", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != orders["parent"]:
        sys.exit("the run that started this sandbox has ended")
    os.execv(orders["program"], orders["argv"])  # noqa: S606 - this is what a launcher is for


def _limit(what: int, most: int) -> None:
    """Set a limit, unless we are under a lower one already."""
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _unshare(is_root: bool) -> None:
    user, group = os.getuid(), os.getgid()
    flags = CLONE_NEWNS | CLONE_NEWNET | (0 if is_root else CLONE_NEWUSER)
    _call("unshare", libc.unshare(flags))
    if not is_root:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def _stage(orders: dict[str, Any]) -> None:
    """Put what the sandbox may see in one place: its user cannot enter where it comes from."""
    stage = orders["stage"]
    _mount("tmpfs", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")
    for number, (source, writable) in enumerate(orders["mounts"]):
        place = os.path.join(stage, str(number))
        if os.path.isdir(source):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(source, place, None, MS_BIND | MS_REC)
        if not writable:
            libc.mount(None, place.encode(), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)
    if orders["overlay"]:
        os.chdir(orders["home"])  # its options have no way to write a comma or a colon
        lower, upper, work = orders["overlay"]
        place = os.path.join(stage, "work")
        os.mkdir(place)
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        if os.geteuid() != 0 or not _is_first_namespace():
            options += ",userxattr"
        _mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, options)
    _mount(stage, VISIBLE_STAGE, None, MS_MOVE)


def _is_first_namespace() -> bool:
    with open("/proc/self/uid_map") as file:
        return file.read().split() == ["0", "0", "4294967295"]


def _open_loopback(listen: "list[int] | None") -> None:
    """A network with loopback alone; a socket that listens there is passed to the parent."""
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
    if listen is not None:
        port, handle = listen
        with socket.socket() as server, socket.socket(fileno=handle) as parent:
            server.bind(("127.0.0.1", port))
            server.listen(64)
            socket.send_fds(parent, [b"x"], [server.fileno()])


def _mount(source: str, place: str, kind: "str | None", flags: int, options: str = "") -> None:
    words = (source.encode(), place.encode(), kind and kind.encode())
    _call(f"mount {kind or source} on {place}", libc.mount(*words, flags, options.encode()))


def _call(what: str, result: int) -> None:
    if result:
        sys.exit(f"passhat: sandbox: {what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except OSError as error:
        sys.exit(f"passhat: sandbox: {error}")
