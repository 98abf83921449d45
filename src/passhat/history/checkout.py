"""Where and with what a run took place: commit, branch, uncommitted changes, host, versions."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import field
from pathlib import Path

from passhat._version import __version__
from passhat.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The state of the code a run was made with; fields are None outside a git checkout."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    host: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


def read_checkout(folder: Path) -> Checkout:
    """What git says of `folder`, with this host and these versions."""
    status = _git(folder, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    lines = status.splitlines() if status is not None else []
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit = heads.get("branch.oid")
    branch = heads.get("branch.head")
    return Checkout(
        commit=None if commit == "(initial)" else commit,
        branch=None if branch == "(detached)" else branch,
        dirty=any(not line.startswith("#") for line in lines) if lines else None,
        host=platform.node(),
        versions={"passhat": __version__, "python": platform.python_version()},
    )


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
