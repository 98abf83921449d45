"""What a suite file may hold: read from the declarations, agreed with the schema for editors."""

import copy
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from passhat.suite import load_suite
from passhat.suite.load import validate
from passhat.suite.reference import suite_json_schema
from passhat.suite.yaml_tree import Tree, read_tree

EVERY_KEY = Path(__file__).with_name("every_key.yml")
WHOLE = read_tree(EVERY_KEY.read_text(encoding="utf-8"), env={}, keeps_references=lambda _: True)
CHANGES = (
    "left out",
    "renamed",
    "wrapped",
    None,
    True,
    0,
    -1,
    0.5,
    10**400,
    "",
    "x",
    "5",
    "[",
    [],
    [[]],
    [1],
    {},
    {"a": 1},
    {"a": "b"},
)
# What no schema can say: the rules between keys, and texts that Python reads.
RULES = re.compile(
    "needs |has |is no |is not a |must be a date|must be finite|means the same|cannot be split|"
    ".* has no meaning with|.* needs a value|fault: must be"
)
MANY = pytest.mark.slow("more mutants of the same kinds")
Place = tuple[Any, Any]
"""A mapping or list, and the key or index in it."""


@pytest.fixture(scope="module")
def schema() -> Any:
    return Draft202012Validator(suite_json_schema())


def places(value: Any) -> Iterator[Place]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in inside:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def mutant(index: int, change: Any) -> Any:
    """The whole suite with one place left out, renamed, wrapped in a list, or replaced."""
    value = copy.deepcopy(WHOLE.value)
    holder, key = list(places(value))[index]
    if change == "left out":
        del holder[key]
    elif change == "renamed" and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif change == "wrapped":
        holder[key] = [holder[key]]
    else:
        holder[key] = change
    return value


def sample(count: int, changes: Sequence[Any]) -> Iterator[Any]:
    every = range(len(list(places(WHOLE.value))))
    rng = random.Random(count)
    return (mutant(rng.choice(every), rng.choice(changes)) for _ in range(count))


def test_every_key_of_every_part_is_written_in_the_suite_that_has_them_all() -> None:
    written = {key for holder, key in places(WHOLE.value) if isinstance(holder, dict)}
    document = suite_json_schema()
    parts = [document, *document["$defs"].values()]
    assert {key for part in parts for key in part["properties"]} <= written


def test_the_suite_with_every_key_loads_and_is_valid_under_the_schema(
    tmp_path: Path, schema: Any
) -> None:
    (tmp_path / "rows.csv").write_text("q\none\ntwo\nthree\n")
    (tmp_path / "evals.json").write_text('[{"prompt": "Mend it", "expectations": ["it works"]}]')
    file = tmp_path / "suite.yml"
    file.write_text(EVERY_KEY.read_text(encoding="utf-8"), encoding="utf-8")
    assert load_suite(file, env={}).trials == 102
    assert not list(schema.iter_errors(WHOLE.value))


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=MANY)])
def test_every_mutant_is_read_or_has_problems_each_with_its_place(count: int) -> None:
    refused = 0
    for value in sample(count, CHANGES):
        suite, problems = validate(Tree(value=value, marks=WHOLE.marks, problems=()))
        assert (suite is None) == bool(problems)
        refused += suite is None
        for problem in problems:
            assert problem.message
            assert (problem.line, problem.column) == WHOLE.mark(problem.path)
    assert count / 2 < refused < count


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=MANY)])
def test_schema_and_loader_refuse_the_same_mutants(schema: Any, count: int) -> None:
    # To the loader a null is mostly as good as a key left out; editors are not to suggest it.
    # A schema cannot say that a number must fit into a float.
    for value in sample(count, [change for change in CHANGES if change not in (None, 10**400)]):
        _, problems = validate(Tree(value=value, marks=WHOLE.marks, problems=()))
        in_form = [problem for problem in problems if not RULES.match(problem.message)]
        assert schema.is_valid(value) == (not in_form), in_form
