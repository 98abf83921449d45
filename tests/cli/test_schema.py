"""What --json prints keeps to a published schema, and the schemas are those of the code."""

import importlib
import json
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import passhat
from passhat import simulate
from passhat.analysis.planning.simulate import SimulationModel
from passhat.cli import main
from passhat.cli.setup import OF_COMMANDS, SCHEMAS, schema_text
from passhat.ingest.write import write_trials
from passhat.records.labels import Label
from passhat.reporters import answers
from passhat.reporters.data import JsonShape

pytestmark = pytest.mark.usefixtures("few_suites_drawn")

ROOT = Path(__file__).parents[2]
CASSETTES = Path(passhat.__file__).parent / "suite" / "templates" / "cassettes"
WEATHER_SERVER = Path(__file__).parents[1] / "weather_server.py"
GENERATOR = ROOT / "docs" / "reference" / "generate_schemas.py"
ANSWER = """\
name: shaky
gates: ["pass^2 >= 0.9", "every task: pass^1 >= 0.2"]
agents:
  - name: answer
    model: scripted
    runs: 6
    prompt: What is 2 + 2?
    expect: [{contains: "4 and not a number more"}]
    script: [{answer: "It is 4 and not a number more, as everybody knows"}]
    faults: [{kind: truncated_answer, nth: 1}]
"""
WITH_A_SERVER = """\
  - name: weather selection
    model: scripted
    runs: 3
    prompt: What is the weather in Sacramento?
    servers: [weather]
    tool_selection: {expected_tool: get_weather, min_selection_rate: 0.8}
    script:
      - calls: [{tool: get_weather, arguments: {city: Sacramento}}]
        answer: ok
servers:
  weather: {command: ["{python}", 'SERVER'], shared: true}
"""

UNNAMED = {"check", "tryout", "list", "validation", "dry-run", "cassettes", "suite"}

# What prints each schema. The files are made by `results`.
COMMANDS = {
    "report": [
        ["report", "all.jsonl", "--bar", "0.7"],
        ["report", "labelled.jsonl"],
        ["report", "partial.jsonl", "--errors", "exclude"],
        ["demo"],
        ["history", "show", "latest"],
    ],
    "matrix": [["report", "all.jsonl", "--matrix"], ["report", "new.jsonl", "--matrix"]],
    "comparison": [
        ["compare", "new.jsonl", "old.jsonl"],
        ["compare", "new.jsonl", "old.jsonl", "--margin", "0.5", "--k", "1,8"],
        ["compare", "one.jsonl", "new.jsonl"],
        ["compare", "partial.jsonl", "new.jsonl"],
    ],
    "ranking": [["rank", "all.jsonl"], ["rank", "all.jsonl", "--by", "pass^4"]],
    "frontier": [["compare", "all.jsonl", "--by", "cost"]],
    "plan": [
        ["plan"],
        ["plan", "new.jsonl", "--difference", "0.05", "--cost-ratio", "8"],
        ["plan", "--max-cost", "5", "--cost-per-run", "0.1"],
        ["plan", "--max-minutes", "5", "--seconds-per-run", "1", "--runs", "3"],
    ],
    "gate-plan": [
        ["plan", "--tasks", "1", "--gate", "pass^1 >= 0.8", "--indifference", "0.1"],
        ["plan", "--tasks", "3", "--gate", "every task: pass^1 >= 0.5"],
    ],
    "label-plan": [["plan", "--judge", "0.9,0.85"], ["plan", "--judge", "0.7,0.6", "--k", "3"]],
    "profile": [["profile", "all.jsonl", "--only", "new"]],
    "verdicts": [
        ["gate", "new.jsonl", "-r", "pass^3 >= 0.5", "-r", "every task: pass^1 >= 0.1"],
        ["gate", "new.jsonl", "-r", "pass^1 >= 0.5", "--evidence", "sequential"],
        ["gate", "new.jsonl", "-r", "pass^1 >= 0.5", "--evidence", "point"],
        ["gate", "new.jsonl", "--against", "old.jsonl"],
        ["gate", "new.jsonl", "-r", "cost per success <= 5"],
    ],
    "judge": [["judge", "labelled.jsonl"]],
    "explanation": [["why", "said.jsonl"], ["why", "new.jsonl"]],
    "diff": [["diff", "said.jsonl", "refund"]],
    "run": [
        ["run"],
        ["run", "answer.yml", "--faults"],
        ["run", "answer.yml", "--until-settled"],
        ["repeat", "--runs", "3", "--", "true"],
    ],
    "runs": [["history", "list"]],
    "run-log": [["history", "log"]],
    "artefacts": [["history", "artefacts", "latest"]],
    "search": [["history", "search", "hello"]],
    "list": [["list"]],
    "check": [["check"], ["check", "suite.yml", "--secrets", "suite.yml"], ["check", "wrong.yml"]],
    "tryout": [["check", "--try"], ["check", "suite.yml", "answer.yml", "--try"]],
    "validation": [["validate"], ["validate", "suite.yml", "wrong.yml"]],
    "dry-run": [["run", "--dry-run"], ["run", "--dry-run", "--until-settled"]],
    "cassettes": [["cassette", "list", "cassettes"], ["cassette", "list", "one.jsonl"]],
    "trend": [["trend"]],
}


@pytest.fixture
def results(here, made_results):
    """Results of three agents, of one with everything, of one with next to nothing, and history."""
    shutil.copytree(made_results, here, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def made_results(tmp_path_factory):
    here = tmp_path_factory.mktemp("results")
    rates = {"new": 0.9, "old": 0.6, "third": 0.6}
    trials = simulate(tasks=6, runs=8, rate=rates, world=SimulationModel(seeds=4), seed=1)
    write_trials(trials, here / "all.jsonl")
    for name in rates:
        write_trials(trials.where(system=name), here / f"{name}.jsonl")
    every = SimulationModel(partial=True, error_rate=0.1)
    write_trials(simulate(tasks=4, runs=4, rate={"p": 0.5}, world=every), here / "partial.jsonl")
    write_trials(_labelled(trials.where(system="old")), here / "labelled.jsonl")
    (here / "one.jsonl").write_text('{"system": "few", "task": "task-1", "passed": true}\n')
    (here / "said.jsonl").write_text("".join(map(_spoken, range(8))))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for name in ("new", "old", "new"):
            words = ["history", "add", f"{name}.jsonl", "--suite", "s", "--name", "agent"]
            done = CliRunner().invoke(main, words)
            assert done.exit_code == 0, done.stderr
    (here / "suite.yml").write_text(ANSWER + WITH_A_SERVER.replace("SERVER", str(WEATHER_SERVER)))
    (here / "answer.yml").write_text(ANSWER)
    (here / "wrong.yml").write_text("agents: [{name: x, model: scripted, pompt: hi}]\n")
    shutil.copytree(CASSETTES, here / "cassettes")
    return here


def _labelled(trials):
    """Every trial with what a person says: as the judge but for every seventh."""
    verdicts = trials.outcome.tolist()
    labels = [Label(passed=bool(v) ^ (i % 7 == 0), chosen="random") for i, v in enumerate(verdicts)]
    return trials.with_labels(dict(zip(_keys(trials), [[one] for one in labels], strict=True)))


def _keys(trials):
    return zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)


def _spoken(trial):
    """A line of a log in which every other run leaves a call out, and fails."""
    tools = ["refund"] if trial % 2 else ["find_order", "refund"]
    calls = [{"function": {"name": tool, "arguments": "{}"}, "id": tool} for tool in tools]
    messages = [
        {"role": "user", "content": "Refund my order"},
        {"role": "assistant", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": tool, "content": "ok"} for tool in tools),
    ]
    row = {"system": "bot", "task": "refund", "passed": trial % 2 == 0, "messages": messages}
    return json.dumps(row) + "\n"


@cache
def validator(name):
    schema = json.loads(schema_text(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(name, value):
    validator(name).validate(value)


@pytest.mark.parametrize(
    ("name", "words"),
    [(name, words) for name, commands in COMMANDS.items() for words in commands],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_a_command_prints_keeps_to_its_schema(call, results, name, words):
    at = words.index("--") if "--" in words else len(words)
    done = call(*words[:at], "--json", *words[at:])
    assert done.exit_code in (0, 1, 4) or "wrong.yml" in words, done.stderr
    answer = json.loads(done.stdout)
    assert answer
    if name not in UNNAMED:
        assert answer["schema"] == f"passhat.{name}/1"
    valid(name, answer)


@pytest.mark.parametrize(
    "words",
    [["simulate", "--error-rate", "0.5"], ["convert", "all.jsonl"], ["convert", "labelled.jsonl"]],
)
def test_every_line_of_trials_keeps_to_its_schema(call, results, words):
    lines = call(*words).stdout.splitlines()
    assert json.loads(lines[0]) == {"schema": "passhat.trials/1"}
    for line in lines:
        valid("trials", json.loads(line))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run"], marks=pytest.mark.slow("runs a suite with a server once more")),
        ["run", "answer.yml", "--until-settled"],
        ["repeat", "--runs", "3", "--", "true"],
    ],
)
def test_every_event_of_a_run_keeps_to_its_schema(call, results, here, words):
    at = words.index("--") if "--" in words else len(words)
    done = call(*words[:at], "--as", "ndjson", "-o", "events.ndjson", *words[at:])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [json.loads(line) for line in _lines(here / "events.ndjson")]
    for line in lines:
        valid("events", line)
    assert lines[0]["schema"] == "passhat.events/1"
    assert lines[-1]["event"] == "answer"
    assert lines[-1]["exit_code"] == done.exit_code
    ends = [line for line in lines if line["event"] == "trial_finished"]
    (finished,) = [line for line in lines if line["event"] == "run_finished"]
    assert len(ends) == finished["done"]


def _lines(file):
    return file.read_text().splitlines() if file.exists() else []


def test_events_are_written_while_the_run_lasts(here):
    """The first trial ends at once; the second waits until its event has been read."""
    wait = "test -e first || { touch first; exit 0; }; until test -e go; do sleep 0.05; done"
    command = [sys.executable, "-m", "passhat", "repeat", "--runs", "2", "--concurrency", "1"]
    command += ["-o", "events.ndjson", "--", "sh", "-c", wait]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL) as run:
        while not any('"trial_finished"' in line for line in _lines(here / "events.ndjson")):
            assert run.poll() is None
            time.sleep(0.05)
        assert '"run_finished"' not in (here / "events.ndjson").read_text()
        (here / "go").touch()
        assert run.wait() == 0
    assert '"answer"' in _lines(here / "events.ndjson")[-1]


def test_the_shipped_schemas_are_those_of_the_types():
    for name, text in runpy.run_path(str(GENERATOR))["schema_texts"]():
        assert schema_text(name) == text, f"run python {GENERATOR.relative_to(ROOT)}"


def _shapes_with_a_schema():
    """The answers that state their schema, by its name."""
    modules = [
        importlib.import_module(f"passhat.reporters.answers.{module.name}")
        for module in pkgutil.iter_modules(answers.__path__)
    ]
    shapes = [value for module in modules for value in vars(module).values()]
    return {s.name for s in shapes if isinstance(s, JsonShape) and "schema" in s.paths}


def test_every_schema_that_the_code_names_is_published_and_explained():
    code = "".join(path.read_text() for path in Path(passhat.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'"passhat\.([a-z-]+)/1"', code)) | _shapes_with_a_schema()
    page = (ROOT / "docs" / "reference" / "json.md").read_text()
    assert named == set(SCHEMAS) - UNNAMED
    for name in set(SCHEMAS) - {"suite"}:
        assert json.loads(schema_text(name))["$id"] == f"passhat.{name}/1"
        assert (f"`passhat.{name}/1`" in page) is (name in named)
        assert f"/{name}.schema.json" in page


def _objects(schema):
    if isinstance(schema, dict):
        if "properties" in schema:
            yield schema
        for part in schema.values():
            yield from _objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects(part)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "suite"])
def test_objects_are_closed_so_that_drift_is_seen(name):
    found = list(_objects(json.loads(schema_text(name))))
    assert found
    assert all(one["additionalProperties"] is False for one in found)


def test_a_schema_is_had_by_its_name_or_by_its_command(call):
    for name in SCHEMAS:
        assert call("schema", name).stdout == schema_text(name)
    for command, name in OF_COMMANDS.items():
        assert call("schema", command).stdout == schema_text(name)
    listed = call("schema").stdout
    assert [line.split()[0] for line in listed.splitlines()] == list(SCHEMAS)
