"""What editors and readers are told is what the loader does."""

import re
import runpy
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from passhat.journeys.new_suite import starter_files
from passhat.suite import load_suite
from passhat.suite.reference import json_schema_text, suite_json_schema
from passhat.suite.task_schema import Part, Spelled
from passhat.suite.yaml_tree import read_tree

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "docs" / "reference" / "generate_suite.py"
PAGE = GENERATOR.with_name("suite.md")
TEMPLATE = starter_files()["passhat.yml"]
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def schema() -> Any:
    Draft202012Validator.check_schema(suite_json_schema())
    return Draft202012Validator(suite_json_schema())


def test_the_shipped_schema_is_the_one_of_the_models() -> None:
    shipped = starter_files()[".passhat/suite.schema.json"]
    assert shipped == json_schema_text(), f"run python {GENERATOR.relative_to(ROOT)}"


def test_the_reference_page_is_the_one_of_the_models() -> None:
    generated = runpy.run_path(str(GENERATOR))["page_text"]()
    assert PAGE.read_text(encoding="utf-8") == generated, (
        f"run python {GENERATOR.relative_to(ROOT)}"
    )


def test_a_part_knows_its_keys_without_evaluating_types_that_have_no_other_spelling() -> None:
    parts = [Part]
    for part in parts:
        parts += part.__subclasses__()
        kinds = {n: k for owner in reversed(part.__mro__) for n, k in annotated(owner).items()}
        assert list(part.spellings()) == list(kinds)
        for name, kind in kinds.items():
            keys = [note.names for note in get_args(kind) if isinstance(note, Spelled)]
            assert [part.spellings()[name]] == (keys or [(name,)])


def annotated(owner: type) -> dict[str, Any]:
    return get_annotations(owner, eval_str=True)


@pytest.mark.parametrize("text", [*EXAMPLES, TEMPLATE])
def test_every_example_loads_and_is_valid_under_the_schema(
    schema: Any, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "passhat.yml"
    file.write_text(text, encoding="utf-8")
    assert load_suite(file, env={}).trials > 0
    tree = read_tree(text, env={}, keeps_references=lambda path: True)
    assert not list(schema.iter_errors(tree.value))


@pytest.mark.parametrize(
    "text",
    [
        "agents: [{name: a, model: o3, prompt: hi, runz: 3}]",
        "agents: [{name: a, model: o3, prompt: hi, runs: many}]",
        "agents: [{model: o3, prompt: hi}]",
        "agents: [{name: a, model: o3, prompt: hi, expect: [{exat: 1}]}]",
        "servers: {s: {command: x, faults: [{kind: gremlins, nth: 1}]}}",
        "confidence: 1.5",
    ],
)
def test_what_the_loader_refuses_in_form_the_schema_refuses_too(schema: Any, text: str) -> None:
    assert list(schema.iter_errors(read_tree(text, env={}).value))


@pytest.mark.parametrize(
    "expectation",
    [
        "{contains_all: [a]}",
        "{llm-judge: {rubric: r}}",
        "{schema: {type: object}}",
        "{number: 3}",
        "{number: {value: 3, tolerance: 1}}",
        "{called: f}",
        "{command: grep x}",
        "{length: 3}",
        "{target: cost, matcher: {range: {max: 1}}}",
        "{not: {not_called: [f]}}",
        "{exact: null}",
    ],
)
def test_every_way_to_write_an_expectation_is_valid_under_the_schema(
    schema: Any, expectation: str
) -> None:
    text = f"agents: [{{name: a, model: o3, prompt: hi, expect: [{expectation}]}}]"
    assert not list(schema.iter_errors(read_tree(text, env={}).value))
