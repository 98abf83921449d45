"""Snapshots: a text stored the first time, and expected ever after."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from passhat.errors import GraderError
from passhat.runner.graders.matches import Match, shown, text_of


def match_snapshot(
    value: Any,
    name: str,
    *,
    directory: Path,
    write: bool,
    update: bool,
    clean: Callable[[str], str] = str,
) -> Match:
    """Compare a value with the snapshot of that name; `clean` takes secrets out before.

    With `write`, a snapshot that is not there is stored; with `update`, the old one is replaced.
    """
    file = directory / "snapshots" / _file_name(name)
    text = clean(_stable(value))
    try:
        if update:
            _store(file, text, mode="w")
        elif write and not file.exists():
            _store(file, text, mode="x")
        stored = file.read_text(encoding="utf-8")
    except FileExistsError:  # another trial stored it at the same moment
        stored = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise GraderError(
            f'snapshot "{name}" is not stored: run once where snapshots are written, and commit it'
        ) from None
    except OSError as error:
        raise GraderError(f'snapshot "{name}": {file}: {error.strerror}') from None
    held = stored == text
    return Match(float(held), f'expected snapshot "{name}" {shown(stored)}, got {shown(text)}')


def _store(file: Path, text: str, *, mode: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode, encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def _stable(value: Any) -> str:
    """The same text for the same value: keys in order, one newline at the end."""
    if isinstance(value, str):
        return f"{value.rstrip()}\n"
    plain = json.loads(text_of(value))
    return f"{json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False)}\n"


def _file_name(name: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "snapshot"
    if plain == name:
        return f"{plain}.txt"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.txt"
