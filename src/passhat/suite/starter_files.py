"""A first suite: the files that `passhat init` writes, and the text for what the user has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib import resources
from typing import Any

from passhat.dataclass import dataclass

_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*(?:[ ./-][A-Za-z0-9_]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
"""Words that some YAML readers do not read as text."""

MODELINE = "# yaml-language-server: $schema=.passhat/suite.schema.json"

SUITE_FILE = "passhat.yml"
CASSETTES = "cassettes"
IGNORE = """\
# The history is yours alone; the schema is for everybody's editor.
*
!.gitignore
!suite.schema.json
"""
CI_FILES = {"github": ".github/workflows/passhat.yml", "gitlab": ".gitlab-ci.yml"}
TEST_FILE = "tests/test_reliability.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTask:
    """A task to begin with: what is asked, what must hold, and what a scripted model does.

    `fill_in` says why nobody but the user can know what must hold; then the task cannot pass yet.
    """

    name: str
    prompt: str
    expect: Sequence[Mapping[str, Any]] = ()
    fill_in: str = ""
    script: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSuite:
    """What a first suite holds: an agent (`python`, `command` or `model`), servers and tasks."""

    name: str
    agent: Mapping[str, Any]
    tasks: Sequence[FirstTask]
    gate: str
    runs: int
    about: Sequence[str] = ()
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


EXAMPLE_TASKS = (
    FirstTask(
        name="a sum",
        prompt="What is 17 + 25? Answer with the number alone.",
        expect=({"contains": "42"},),
    ),
    FirstTask(
        name="a greeting",
        prompt="Greet Ann in one short sentence.",
        expect=({"icontains": "ann"}, {"not": {"regex": "[?]$"}}),
    ),
)
"""What nearly every agent can do: they show that it runs, until you put your own tasks there."""

EXAMPLE_AGENT = '''\
"""The agent under test: call yours in the place of these lines."""

import random


def {function}(prompt):
    """Answer a prompt. It is wrong now and then, as agents are."""
    if "17 + 25" in prompt:
        return "42" if random.random() < 0.9 else "41"
    return "Hello Ann!"
'''


def suite_text(suite: FirstSuite) -> str:
    """The suite as YAML. Every text is quoted, and names no variable of the environment."""
    return "\n".join(_lines(suite)) + "\n"


def starter_files(
    *, ci: str | None = None, pytest: bool = False, scripted: bool = False, example: bool = True
) -> Mapping[str, str]:
    """Paths and texts: a suite that runs at once, its schema, and the files asked for with it.

    Its model is a small real one, whose recorded runs come with it, or a `scripted` one. Without
    the `example` there are only the files that every suite needs.

    >>> list(starter_files(ci="gitlab", scripted=True))
    ['passhat.yml', '.passhat/suite.schema.json', '.passhat/.gitignore', '.gitlab-ci.yml']
    """
    files = {
        ".passhat/suite.schema.json": _shipped("suite.schema.json"),
        ".passhat/.gitignore": IGNORE,
    }
    if example:
        suite = _shipped("templates/scripted.yml" if scripted else "templates/passhat.yml")
        files = {SUITE_FILE: suite, **files}
        recorded = resources.files("passhat.suite").joinpath("templates", CASSETTES)
        for file in () if scripted else recorded.iterdir():
            files[f"{CASSETTES}/{file.name}"] = file.read_text(encoding="utf-8")
    if ci is not None:
        files[CI_FILES[ci]] = _shipped(f"templates/{ci}.yml")
    if pytest:
        files[TEST_FILE] = _shipped("templates/test_reliability.py.txt")
    return files


def _lines(suite: FirstSuite) -> Iterator[str]:
    yield MODELINE
    yield "#"
    yield from (f"# {line}".rstrip() for line in suite.about)
    yield ""
    yield f"name: {yaml_value(suite.name)}"
    if suite.servers:
        yield "\nservers:"
        for name, server in suite.servers.items():
            yield f"  {yaml_value(name)}: {yaml_value(server)}"
    yield f"\ndefaults:\n  runs: {suite.runs}"
    if any(task.script for task in suite.tasks):  # an agent that is scripted task by task
        yield from (f"  {key}: {yaml_value(value)}" for key, value in suite.agent.items())
        yield "\nagents:"
    else:
        yield f"\nsystems:\n  - {yaml_value(suite.agent)}"
        yield "\ntasks:"
    for task in suite.tasks:
        yield from _task_lines(task)
    yield f"\ngates:\n  - {yaml_value(suite.gate)}"


def _task_lines(task: FirstTask) -> Iterator[str]:
    yield f"  - name: {yaml_value(task.name)}"
    yield f"    prompt: {yaml_value(task.prompt)}"
    yield "    expect:"
    yield from (f"      - {yaml_value(one)}" for one in task.expect)
    if task.fill_in:
        yield "      # Put in what a right answer must hold: until then every trial fails."
        yield f"      - {yaml_value({'exact': f'FILL IN: {task.fill_in}'})}"
    if task.script:
        yield "    script:"
        yield from (f"      - {yaml_value(one)}" for one in task.script)


def yaml_value(value: Any) -> str:
    r"""A value on one line of YAML: a plain word if it is one, else quoted as JSON quotes.

    JSON writes a letter beyond the first plane as two halves, which YAML does not put together:
    such letters stay as they are, and a lone half becomes a question mark.

    >>> yaml_value({"contains": "a\n😀", "runs": 3}), yaml_value("yes"), yaml_value("a sum")
    ('{ contains: "a\\n😀", runs: 3 }', '"yes"', 'a sum')
    """
    if isinstance(value, Mapping):
        inside = ", ".join(f"{yaml_value(key)}: {yaml_value(one)}" for key, one in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else _quoted(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(yaml_value, value))}]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Text between double quotes, in which `${` is no reference to the environment."""
    written = json.dumps(text.replace("${", "$${"), ensure_ascii=False)
    encodable = written.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in encodable)


def _shipped(name: str) -> str:
    return resources.files("passhat.suite").joinpath(name).read_text(encoding="utf-8")
