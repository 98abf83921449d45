"""Tasks from files: evals of a skill, tasks of Harbor, SWE-bench and tau2-bench, and tables."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from passhat.dataclass import dataclass, replace
from passhat.errors import SuiteError
from passhat.messages import plural
from passhat.records import Expectation, Resources, Solution, Task
from passhat.records.suite import Scenario
from passhat.suite.task_schema import bytes_of
from passhat.suite.yaml_tree import did_you_mean, shown

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
        content = msgspec.json.decode(_text(path, "this file of evals"))
    except msgspec.DecodeError as error:
        raise SuiteError(f"{path} is no JSON: {error}") from None
    entries = content.get("evals") if isinstance(content, dict) else content
    if not isinstance(entries, list) or not entries:
        raise SuiteError(f"{path} has no evals: it should have a list of them under `evals`")
    evals = list(_evals(entries, path))
    names = [case.name for case in evals]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise SuiteError(f'{path}: two evals have the id "{repeated}"')
    return evals


def _evals(entries: list[Any], path: Path) -> Iterator[SkillEval]:
    for number, entry in enumerate(entries, 1):
        where = f"{path}: eval {number}"
        if not isinstance(entry, Mapping) or not isinstance(entry.get("prompt"), str):
            raise SuiteError(f"{where} has no prompt: what is the agent asked?")
        given = entry.get("expectations") or entry.get("assertions") or ()
        rubrics = [_rubric(entry) for entry in given] if isinstance(given, list) else []
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
        file = (root / name).resolve()
        if not file.is_relative_to(skill.resolve()):
            raise SuiteError(f"{where}: the file {name} is not in the folder of the skill")
        if file.exists():
            return file
    raise SuiteError(f"{where}: there is no file {name}, neither in {skill} nor in {path.parent}")


# Tasks of Harbor and Terminal-Bench: a folder each.


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTask:
    """A task as another tool keeps it: what is asked, what decides, what solves it, what it takes.

    `tests` are options of the matcher `tests`, with the command under `run`. It needs an `image`,
    or the `commit` of a `repository`; a path is that of the Dockerfile that it is built from.
    """

    name: str
    prompt: str
    tests: Mapping[str, Any]
    solution: Solution | None = None
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    limits: Resources | None = None
    image: str | Path | None = None
    repository: str | None = None
    commit: str | None = None


MEGABYTE = 2**20
"""Harbor gives docker `2048M` for `memory_mb = 2048`, and docker counts in powers of 1024."""

TESTS_INSIDE = "/tests"
"""Where both tools put the tests, once the agent has ended."""


def read_task_folders(path: Path) -> list[GivenTask]:
    """The tasks in a folder: those with a task.toml (Harbor) or a task.yaml (Terminal-Bench)."""
    files = [
        place
        for pattern in ("", "*/", "*/*/")
        for name in ("task.toml", "task.yaml")
        for place in path.glob(f"{pattern}{name}")
    ]
    if not files:
        raise SuiteError(
            f"{path} has no tasks: no task.toml (Harbor) and no task.yaml (Terminal-Bench) in it"
        )
    read = {"task.toml": _harbor_task, "task.yaml": _terminal_bench_task}
    return [read[file.name](file) for file in sorted(files)]


def _harbor_task(file: Path) -> GivenTask:
    import tomllib  # few suites have such tasks, and it takes a hundredth of a second

    folder = file.parent
    try:
        settings = tomllib.loads(_text(file, "this task"))
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{file} is no TOML: {error}") from None
    if settings.get("steps"):
        raise SuiteError(f"{file}: a task of several steps cannot be read: run it with Harbor")
    task, agent, verifier, around, about = (
        _section(settings, name, file)
        for name in ("task", "agent", "verifier", "environment", "metadata")
    )
    script = folder / "tests" / "test.sh"
    if not script.is_file():
        raise SuiteError(f"{folder} has no tests/test.sh: what decides about the task?")
    solve = folder / "solution" / "solve.sh"
    recipe = folder / "environment" / "Dockerfile"
    named = around.get("docker_image")
    return GivenTask(
        name=str(task.get("name") or folder.name).rpartition("/")[2],
        prompt=_text(folder / "instruction.md", "the instruction of a task"),
        tests={
            "run": f"bash {TESTS_INSIDE}/test.sh",
            "files": (script.parent,),
            "at": TESTS_INSIDE,
            "timeout": _number(verifier, "timeout_sec", file),
            "grade_on_timeout": True,
        },
        solution=Solution(files=solve.parent, run="bash $SOLUTION/solve.sh")
        if solve.is_file()
        else None,
        tags=tuple(map(str, (*(about.get("tags") or ()), *(task.get("keywords") or ())))),
        timeout=_number(agent, "timeout_sec", file),
        limits=Resources(
            cpus=_number(around, "cpus", file),
            memory=_size(around, "memory", file),
            disk=_size(around, "storage", file),
        ),
        image=recipe if named is None else str(named),
    )


def _terminal_bench_task(file: Path) -> GivenTask:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    folder = file.parent
    try:
        settings = YAML(typ="safe", pure=True).load(_text(file, "this task"))
    except YAMLError as error:
        raise SuiteError(f"{file} is no YAML: {error}") from None
    if not isinstance(settings, Mapping) or not isinstance(settings.get("instruction"), str):
        raise SuiteError(f"{file} has no instruction: what is the agent asked?")
    script, tests = folder / "run-tests.sh", folder / "tests"
    if not script.is_file():
        raise SuiteError(f"{folder} has no run-tests.sh: what decides about the task?")
    solve = folder / "solution.sh"
    return GivenTask(
        name=folder.name,
        prompt=settings["instruction"],
        tests={
            "run": f"bash {TESTS_INSIDE}/run-tests.sh",
            "files": (script, *([tests] if tests.is_dir() else ())),
            "at": TESTS_INSIDE,
            "timeout": _number(settings, "max_test_timeout_sec", file),
            "grade_on_timeout": True,
        },
        solution=Solution(files=solve, run="bash $SOLUTION/solution.sh")
        if solve.is_file()
        else None,
        tags=tuple(map(str, settings.get("tags") or ())),
        timeout=_number(settings, "max_agent_timeout_sec", file),
        image=folder / "Dockerfile",
    )


def _section(settings: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    section = settings.get(name) or {}
    if not isinstance(section, Mapping):
        raise SuiteError(f"{file}: [{name}] should be a table, got {shown(section)}")
    return section


def _number(settings: Mapping[str, Any], key: str, file: Path) -> float | None:
    value = settings.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise SuiteError(f"{file}: {key} should be a number above 0, got {shown(value)}")
    return float(value)


def _size(settings: Mapping[str, Any], key: str, file: Path) -> int | None:
    """Bytes of `memory_mb = 2048`, or of `memory = "2G"`, which older tasks have for the same."""
    if (given := _number(settings, f"{key}_mb", file)) is not None:
        return round(given * MEGABYTE)
    if (given := settings.get(key)) is None:
        return None
    try:
        letter = str(given)[-1:].upper() in {"K", "M", "G"}
        size = bytes_of(f"{given}i" if letter else str(given))
    except ValueError as error:
        raise SuiteError(f"{file}: {key} {error}; got {shown(given)}") from None
    if size < MEGABYTE:
        unit = f"write {key}_mb = {size}, or a unit as in {size}MB"
        raise SuiteError(f"{file}: {key} is {size} bytes, too few for any program: {unit}")
    return size


# Rows of SWE-bench: a commit of a repository, an issue, and tests that must pass.


def is_swe_bench(path: Path) -> bool:
    """Whether the first row of a file is one of SWE-bench."""
    with suppress(SuiteError, StopIteration):
        row = next(iter(_json_rows(path, _text(path, "this file of tasks").partition("\n")[0])))
        return {"instance_id", "base_commit", "problem_statement"} <= row.keys()
    return False


def read_swe_bench(path: Path, *, limit: int | None = None) -> list[GivenTask]:
    """The rows of SWE-bench, and of data sets of its form, as JSON Lines."""
    tasks = []
    for number, row in enumerate(read_rows(path, limit=limit), 1):
        where = f"{path.name}: row {number}"
        for key in ("instance_id", "repo", "base_commit", "problem_statement", "test_patch"):
            if not isinstance(row.get(key), str):
                raise SuiteError(f"{where} has no {key}: is it a row of SWE-bench?")
        names = [*_test_names(row, "FAIL_TO_PASS", where), *_test_names(row, "PASS_TO_PASS", where)]
        if not names:
            raise SuiteError(f"{where} names no tests under FAIL_TO_PASS")
        files = dict.fromkeys(re.findall(r"^\+\+\+ b/([^\t\n]+)", row["test_patch"], re.M))
        name, patch = row["instance_id"], row.get("patch")
        usual = f"swebench/sweb.eval.x86_64.{name.lower().replace('__', '_1776_')}"
        tasks.append(
            GivenTask(
                name=name,
                prompt=row["problem_statement"],
                tests={"names": names, "patch": row["test_patch"], "tests": shlex.join(files)},
                solution=Solution(patch=patch) if isinstance(patch, str) else None,
                tags=(row["repo"],),
                image=str(row.get("image_name") or row.get("docker_image") or usual),
                repository=row["repo"],
                commit=row["base_commit"],
            )
        )
    return tasks


def _test_names(row: Row, key: str, where: str) -> list[str]:
    """Names of tests: a list, or its JSON; those of unittest as our reports have them."""
    import json

    given = row.get(key) or []
    with suppress(ValueError):
        given = json.loads(given) if isinstance(given, str) else given
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise SuiteError(f"{where}: {key} should be a list of tests, got {shown(given)}")
    return [re.sub(r"^(\w+) \(([\w.]+?)(?:\.\1)?\)$", r"\2::\1", name) for name in given]


def find_clone(repository: str, folder: Path) -> Path:
    """The clone of a repository in a folder of clones, or the folder itself."""
    owner, _, name = repository.partition("/")
    places = [folder / f"{owner}__{name}", folder / owner / name, folder / name, folder]
    for place in places:
        if (place / ".git").exists() or (place / "HEAD").is_file():
            return place
    raise SuiteError(f"there is no clone of {repository} in {folder}: git clone it to {places[0]}")


# Tasks of tau2-bench: a user with a scenario, the policy of a shop, tools and a database.


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenConversation:
    """A task of tau2-bench: what its user is told, and what a judge must find besides its checks.

    The program `argv` asks tau2-bench's own checks.
    """

    name: str
    goal: str
    rubrics: tuple[str, ...]
    argv: tuple[str, ...]


def is_tau2_domain(path: Path) -> bool:
    """Whether a folder is a domain of tau2-bench: .../data/tau2/domains/retail."""
    around = path.resolve().parts[-4:-1]
    return around == ("data", "tau2", "domains") and (path / "tasks.json").is_file()


def tau2_program(folder: Path, *words: str) -> tuple[str, ...]:
    """The command that serves or grades a domain, with the Python that tau2-bench is in."""
    own = folder.resolve().parents[3] / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    script = Path(__file__).parents[1] / "bridges" / "tau2_bench.py"
    # By itself: modules beside the script are called as some of Python's own.
    return (python, "-I", str(script), words[0], str(folder.resolve()), *words[1:])


def tau2_policy(folder: Path) -> str:
    """What the agent must keep to in a domain of tau2-bench."""
    if not (folder / "policy.md").is_file():
        raise SuiteError(
            f"{folder} has no policy.md, so {folder.name} is no domain that can be read: airline "
            "and retail can; users of telecom have tools of their own, which users here have not, "
            "and banking needs a search of its own. Run those with tau2-bench, and give its "
            "results to `passhat report`"
        )
    return _text(folder / "policy.md", "the policy of the domain")


def read_tau2(folder: Path) -> list[GivenConversation]:
    """The tasks of a domain of tau2-bench; of its split `base`, where it has splits."""
    file = folder / "tasks.json"
    rows, splits = _json(file), folder / "split_tasks.json"
    named = _json(splits) if splits.is_file() else {}
    base = named.get("base") if isinstance(named, Mapping) else named
    if not isinstance(named, Mapping) or not isinstance(base, list | None):
        raise SuiteError(f"{splits} should be an object with lists of tasks, got {shown(base)}")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise SuiteError(f"{file} should be a list of tasks")
    tasks = [
        _tau2_task(row, folder, f"{file}: task {number}")
        for number, row in enumerate(rows, 1)
        if base is None or row.get("id") in base
    ]
    if not tasks:
        raise SuiteError(f"{file} has no tasks, or none of those that {splits.name} names as base")
    return tasks


def _tau2_task(row: Row, folder: Path, where: str) -> GivenConversation:
    scenario, judged = row.get("user_scenario"), row.get("evaluation_criteria")
    if not isinstance(scenario, Mapping) or not scenario.get("instructions") or "id" not in row:
        raise SuiteError(
            f"{where} has no user_scenario with instructions: what does the user want?"
        )
    if row.get("initial_state"):
        raise SuiteError(
            f"{where} begins in a state of its own, which cannot be read: run it with tau2-bench"
        )
    criteria: Row = judged if isinstance(judged, Mapping) else {}
    instructions, persona = scenario["instructions"], scenario.get("persona")
    parts = {"Who you are": persona} if persona else {}
    if isinstance(instructions, Mapping):
        words = {"reason_for_call": "Why you call", "known_info": "What you know"}
        words |= {"unknown_info": "What you do not know", "task_instructions": "What to do"}
        parts |= {words[key]: instructions[key] for key in words if instructions.get(key)}
    else:
        parts |= {"What to do": instructions}
    name, by = str(row["id"]), criteria.get("reward_basis") or ()
    rubrics = criteria.get("nl_assertions") or () if "NL_ASSERTION" in by else ()
    return GivenConversation(
        name=name,
        goal="\n".join(f"{what}: {text}" for what, text in parts.items()),
        rubrics=tuple(map(str, rubrics)),
        argv=tau2_program(folder, "grade", name),
    )


def _json(file: Path) -> Any:
    try:
        return msgspec.json.decode(_text(file, "this file of tasks"))
    except msgspec.DecodeError as error:
        raise SuiteError(f"{file} is no JSON: {error}") from None


# Tasks from a table: rows of a CSV, TSV or JSONL file, filled into a task.
PLACEHOLDER = r"\{\{|\}\}|\{([A-Za-z_]\w*)\}"
DELIMITERS = {".csv": ",", ".tsv": "\t"}

Row = Mapping[str, Any]


def read_rows(path: Path, *, limit: int | None = None) -> list[Row]:
    """The rows of a dataset, as mappings from column to value."""
    text = _text(path, "the dataset")
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        rows = _table_rows(path, text, DELIMITERS[suffix])
    elif suffix in (".jsonl", ".ndjson"):
        rows = _json_rows(path, text)
    else:
        raise SuiteError(f"{path.name}: a dataset ends in .csv, .tsv or .jsonl")
    taken = list(itertools.islice(rows, limit))
    if not taken:
        raise SuiteError(f"{path.name}: the dataset has no rows")
    return taken


def fill_task(task: Task, row: Row, number: int) -> Task:
    """The task of one row: `{column}` is replaced in all its texts.

    >>> fill_task(Task(name="order {id}", prompt="Refund {id}"), {"id": 7}, 1).prompt
    'Refund 7'
    """
    # Without a column in it, the name would be the same for every row.
    name = task.name if re.search(PLACEHOLDER, task.name) else f"{task.name} {number}"
    steps = (
        replace(s, prompt=fill_text(s.prompt, row), expect=_fill_expectations(s.expect, row))
        for s in task.steps
    )
    asked = task.server_prompt
    if asked is not None:
        given = {name: fill_text(value, row) for name, value in asked.arguments.items()}
        asked = replace(asked, arguments=given)
    return replace(
        task,
        name=fill_text(name, row),
        prompt=fill_text(task.prompt, row),
        expect=_fill_expectations(task.expect, row),
        steps=tuple(steps),
        tags=tuple(fill_text(tag, row) for tag in task.tags),
        resources=tuple(replace(r, uri=fill_text(r.uri, row)) for r in task.resources),
        expected_tool=task.expected_tool and fill_text(task.expected_tool, row),
        server_prompt=asked,
        scenario=task.scenario and _fill_scenario(task.scenario, row),
        values=dict(row),
    )


def _fill_scenario(scenario: Scenario, row: Row) -> Scenario:
    done = () if scenario.done is None else _fill_expectations([scenario.done], row)
    return replace(
        scenario,
        goal=fill_text(scenario.goal, row),
        facts={name: fill_text(value, row) for name, value in scenario.facts.items()},
        never=tuple(fill_text(text, row) for text in scenario.never),
        opens=scenario.opens and fill_text(scenario.opens, row),
        done=next(iter(done), None),
    )


def fill_text(text: str, row: Row) -> str:
    """The text with its columns filled in; `{{` and `}}` are braces that stay.

    >>> fill_text('{"city": {city}}', {"city": "Rome"})
    '{"city": Rome}'
    """

    def value(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(_column(match[1], row))

    return re.sub(PLACEHOLDER, value, text)


def _fill_value(value: Any, row: Row) -> Any:
    """As `fill_text`, inside anything; a text that is one column alone keeps that column's type."""
    if isinstance(value, str):
        whole = re.fullmatch(PLACEHOLDER, value)
        return _column(whole[1], row) if whole and whole[1] else fill_text(value, row)
    if isinstance(value, Mapping):
        return {key: _fill_value(inner, row) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_fill_value(inner, row) for inner in value)
    return value


def _fill_expectations(expect: Iterable[Expectation], row: Row) -> tuple[Expectation, ...]:
    return tuple(
        # Patterns and schemas have braces that are no columns.
        e
        if e.matcher in ("regex", "json-schema")
        else replace(e, value=_fill_value(e.value, given), options=_fill_value(e.options, given))
        for e in expect
        # The place of a report is filled in when the tests run.
        for given in [{"report": "{report}", **row} if e.matcher == "tests" else row]
    )


def _column(name: str, row: Row) -> Any:
    if name not in row:
        raise SuiteError(
            f"{{{name}}} is not a column of the dataset. {did_you_mean(name, row)} "
            f"(write {{{{{name}}}}} for the text itself)"
        )
    return row[name]


def _text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SuiteError(f"{path.name}: {what} is larger than {MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: {what} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path.name}: not UTF-8 at byte {error.start}") from None


def _table_rows(path: Path, text: str, delimiter: str) -> Iterator[Row]:
    import csv
    import io

    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) != len(header):
            raise SuiteError(f"{path.name}:1: a column is named twice: {', '.join(header)}")
        for cells in reader:
            if len(cells) != len(header):
                counts = f"{plural(len(cells), 'cell')} under {plural(len(header), 'column')}"
                raise SuiteError(f"{path.name}:{reader.line_num}: {counts}")
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise SuiteError(f"{path.name}:{reader.line_num}: {error}") from None


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    import json

    # Not splitlines: JSON texts may hold the line separators of Unicode as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{path.name}:{number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise SuiteError(f"{path.name}:{number}: a row is an object, got {shown(row)}")
        if "\\u" in line and not _is_text(row):
            raise SuiteError(f"{path.name}:{number}: has half of a character, which is not text")
        yield row


def _is_text(row: Row) -> bool:
    """Whether it can be stored: JSON may escape half of a character that is two in UTF-16."""
    import json

    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
