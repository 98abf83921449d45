"""Messages of the library name arguments of Python; the command line turns them into options."""

import ast
import re
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

import passhat

SOURCE = Path(passhat.__file__).parent
BELOW = (
    *("analysis", "history", "ingest", "journeys", "records"),
    *("reporters", "runner", "stats", "suite"),
)

FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
COMMAND = re.compile(r"\b(passhat|gotestsum|dotnet) ")
"""A whole command may have options: it is typed in a shell, from wherever it was read."""

PARTS_OF_COMMANDS = {
    "journeys/running.py": {
        *("--max-cost", "--max-tokens", "--max-minutes", "--max-calls", "--retry-errors"),
    },
    "history/database.py": {"--store"},
    "analysis/gates/run_answer.py": {"--trials"},
    "ingest/read.py": {"--log_samples"},
    "reporters/next_steps.py": {"--confidence", "--require", "--gate", "--only"},
    "reporters/answers/report_blocks.py": {"--by", "--tasks"},
    "history/runs.py": {"--porcelain", "--branch", "--untracked-files"},
    "journeys/new_suite.py": {"--until-decided"},
    "runner/preflight.py": {
        *("--batch-check", "--version"),
    },
    "records/providers.py": {
        *("--analytics-disable", "--approval-mode", "--dangerously-bypass-approvals-and-sandbox"),
        *("--dangerously-skip-permissions", "--format", "--json", "--message", "--model"),
        *("--no-check-update", "--no-git", "--no-show-model-warnings", "--no-stream", "--verbose"),
        *("--output-format", "--skip-git-repo-check", "--skip-trust", "--yes-always"),
    },
    "records/secrets.py": {"--user", "--columns"},
    "runner/sandbox.py": {
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--disable-userns"),
        *("--unshare-cgroup-try", "--new-session", "--die-with-parent", "--hostname", "--uid"),
        *("--gid", "--cap-drop", "--clearenv", "--proc", "--dev", "--size", "--tmpfs", "--dir"),
        *("--remount-ro", "--ro-bind", "--ro-bind-try", "--bind", "--symlink", "--chdir"),
        *("--setenv", "--security-opt", "--json-status-fd"),
        *("--no-same-owner", "--exclude", "--format"),
    },
    "runner/workspaces.py": {
        *("--reflink", "--no-preserve", "--verify", "--quiet", "--no-tags", "--depth", "--detach"),
        "--git",  # the first line of a diff
    },
    "suite/build.py": {"--junitxml"},
    "runner/grader_path/sitecustomize.py": {"--check-hash-based-pycs"},
    "runner/models/local.py": {"--no-deps", "--quiet", "--disable-pip-version-check", "--dest"},
}
"""Options in texts that are put together to a whole command, of passhat or of another tool."""

OTHER_LANGUAGES = ("reporters/formats/html.py",)
"""Style sheets, in which `--name` is a variable."""


def texts(file: Path) -> Iterator[str]:
    """Every text of a module but its docstrings; the values in an f-string are left out.

    Of a module without an option anywhere there is nothing to ask: three in four are not parsed.
    """
    source = file.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source))) if "--" in source else []
    parts = {id(part) for node in nodes for part in _below(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(p.value) for p in node.values if isinstance(p, ast.Constant))
        elif isinstance(node, ast.Constant) and id(node) not in parts:
            yield str(node.value)


def _below(node: ast.AST) -> list[ast.expr]:
    """What is not a text by itself: a docstring, or a piece of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node.value] if isinstance(node, ast.Expr) else []


@pytest.mark.parametrize("package", BELOW)
def test_no_message_below_the_command_line_names_an_option(package):
    found = {}
    for file in (SOURCE / package).rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        if name in OTHER_LANGUAGES:
            continue
        flags = {flag for text in texts(file) if not COMMAND.search(text)
                 for flag in FLAG.findall(text)} - PARTS_OF_COMMANDS.get(name, set())  # fmt: skip
        if flags:
            found[name] = flags
    assert found == {}


def test_the_exceptions_are_all_needed():
    for name, flags in PARTS_OF_COMMANDS.items():
        there = {flag for text in texts(SOURCE / name) for flag in FLAG.findall(text)}
        assert flags <= there, name


VAGUE = {"found", "one", "told", "said"}
"""Words that say that there is a thing, and not what it is."""

BESIDE_EXPECTED = {
    "records/transcript.py",
    *("analysis/explaining/explain.py", "ingest/formats/swebench.py"),
    *("reporters/page_parts.py", "reporters/answers/report_page.py"),
}
"""Where `found` is the field beside `expected` that stored checks and JSON have."""

NUMBERS = {"stats/suite_bounds.py": {"one"}}
"""Where it is the number 1, beside `zero`."""


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def test_variables_fields_and_functions_are_named_by_what_they_are():
    vague = {}
    for file in SOURCE.rglob("*.py"):
        name = file.relative_to(SOURCE).as_posix()
        code = SourceFileLoader(name, str(file)).get_code(name)
        assert code is not None
        here = {word for part in _codes(code) for word in (*part.co_varnames, *part.co_cellvars)}
        fields = {word for part in _codes(code) for word in part.co_names}
        here |= fields - {"found"} if name in BESIDE_EXPECTED else fields
        if words := {w for w in here if w.strip("_") in VAGUE} - NUMBERS.get(name, set()):
            vague[name] = words
    assert vague == {}
