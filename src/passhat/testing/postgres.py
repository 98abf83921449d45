"""A temporary PostgreSQL server on loopback, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNPRIVILEGED = ("postgres", "nobody")
"""Users that the server may run as: it refuses to run as root."""

FAST_START = "-c shared_buffers=64MB -c max_connections=100"


class NoPostgres(Exception):
    """Why there is no PostgreSQL server here."""


class PostgresServer:
    """One server with its own data directory; `restart` it, or ask it for a new database."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self._programs = programs
        self._data = folder / "data"
        self._log = folder / "log"
        self._user = user
        self._port = _free_port()
        self._made = 0

    def create(self) -> None:
        """Make the data directory and start."""
        self._run("initdb", "-D", str(self._data), "-U", "passhat", "-A", "trust", "-E", "UTF8")
        self.start()

    def start(self) -> None:
        options = f"-p {self._port} -h 127.0.0.1 -k {self._data} {FAST_START}"
        self._run(
            "pg_ctl", "-D", str(self._data), "-l", str(self._log), "-w", "-o", options, "start"
        )

    def stop(self, *, how: str = "fast") -> None:
        """Stop; `immediate` is a crash, after which the server recovers from its log."""
        self._run("pg_ctl", "-D", str(self._data), "-m", how, "-w", "stop")

    def restart(self, *, how: str = "fast") -> None:
        self.stop(how=how)
        self.start()

    def new_database(self) -> str:
        """The address of an unused store: a schema, which is made faster than a database."""
        import psycopg

        self._made += 1
        name = f"store_{self._made}"
        address = f"postgresql://passhat@127.0.0.1:{self._port}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{address}?options=-csearch_path%3D{name}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if self._user is not None:
            command = ["runuser", "-u", self._user, "--", *command]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=self._data.parent,
        )
        if done.returncode:
            raise NoPostgres(f"{program} failed: {done.stderr.strip()}")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server; NoPostgres if none can be started."""
    programs, user = _programs(), _user()
    folder = Path(tempfile.mkdtemp(prefix="passhat-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    server = PostgresServer(programs, folder, user)
    try:
        server.create()
        yield server
    finally:
        _stop(folder / "data")
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if programs:
        return programs[-1].parent
    if on_path:
        return Path(on_path).resolve().parent
    raise NoPostgres("no PostgreSQL here (Debian: apt-get install postgresql)")


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in UNPRIVILEGED:
        if name in known and shutil.which("runuser"):
            return name
    raise NoPostgres("PostgreSQL does not run as root, and there is no other user to run it as")


def _stop(data: Path) -> None:
    """Stop the server with this data directory, whatever state it is in."""
    try:
        pid = int((data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, signal.SIGQUIT)
    except (OSError, ValueError, IndexError):
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
