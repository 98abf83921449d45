"""Tasks that others wrote: what `from:` reads. So far, the evals.json of a skill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import SuiteError

MAX_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillEval:
    """One eval of a skill: what is asked, what a judge must find, and the files to work on."""

    name: str
    prompt: str
    rubrics: tuple[str, ...]
    files: tuple[tuple[str, Path], ...] = ()


def read_skill_evals(path: Path) -> list[SkillEval]:
    """The evals of a skill, in the form that Anthropic's skill-creator writes.

    Its variants are read too: a bare list, `assertions` for `expectations`, and objects with a
    text for their texts. Without either, `expected_output` is what a judge looks for.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SuiteError(f"{path} is larger than {MAX_BYTES} bytes")
        content = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise SuiteError(f"{path} is no JSON: {error}") from None
    entries = content.get("evals") if isinstance(content, dict) else content
    if not isinstance(entries, list) or not entries:
        raise SuiteError(f"{path} has no evals: it should have a list of them under `evals`")
    evals = list(_evals(entries, path))
    names = [one.name for one in evals]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise SuiteError(f'{path}: two evals have the id "{repeated}"')
    return evals


def _evals(entries: list[Any], path: Path) -> Iterator[SkillEval]:
    for number, entry in enumerate(entries, 1):
        where = f"{path}: eval {number}"
        if not isinstance(entry, Mapping) or not isinstance(entry.get("prompt"), str):
            raise SuiteError(f"{where} has no prompt: what is the agent asked?")
        given = entry.get("expectations") or entry.get("assertions") or ()
        rubrics = [_rubric(one) for one in given] if isinstance(given, list) else []
        expected = entry.get("expected_output")
        if not rubrics and isinstance(expected, str) and expected.strip():
            rubrics = [f"The result is as it was expected: {expected}"]
        if not rubrics or not all(rubrics):
            raise SuiteError(f"{where} says nothing to judge by: add a list of `expectations`")
        files = entry.get("files") or []
        if not isinstance(files, list) or not all(isinstance(name, str) for name in files):
            raise SuiteError(f"{where}: `files` should be a list of paths")
        yield SkillEval(
            name=str(entry.get("id", number)),
            prompt=entry["prompt"],
            rubrics=tuple(rubrics),
            files=tuple((Path(name).name, _file(name, path, where)) for name in files),
        )


def _rubric(entry: Any) -> str:
    if isinstance(entry, Mapping):
        entry = next((entry[k] for k in ("text", "description", "assertion") if k in entry), "")
    return entry.strip() if isinstance(entry, str) else ""


def _file(name: str, path: Path, where: str) -> Path:
    """A file of an eval: its path begins at the skill, or at the evals."""
    skill = path.parent.parent if path.parent.name == "evals" else path.parent
    for root in (skill, path.parent):
        found = (root / name).resolve()
        if not found.is_relative_to(skill.resolve()):
            raise SuiteError(f"{where}: the file {name} is not in the folder of the skill")
        if found.exists():
            return found
    raise SuiteError(f"{where}: there is no file {name}, neither in {skill} nor in {path.parent}")
