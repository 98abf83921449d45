import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from passhat.suite.yaml_tree import MAX_BYTES, MAX_DEPTH, MAX_NODES, read_tree, resolve

NAMES = st.text("abcxyz", min_size=1, max_size=5)
PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**6), 10**6),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=20).filter(
            # ruamel writes "?x" and ":x" without quotes and reads them as keys and values.
            lambda text: "$" not in text and not text.startswith(("?", ":"))
        ),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


def said(text: str, env: dict[str, str] | None = None) -> list[str]:
    return [problem.at("s.yml") for problem in read_tree(text, env=env or {}).problems]


@settings(deadline=None)
@given(PLAIN)
def test_what_a_yaml_writer_writes_is_read_back(value: object) -> None:
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump({"root": value}, stream)
    tree = read_tree(stream.getvalue(), env={})
    assert not tree.problems
    assert tree.value == {"root": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("2027-01-31", "2027-01-31"),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("-3", -3),
        (".5", 0.5),
        ("6.02e23", 6.02e23),
        ("-.inf", float("-inf")),
        ("~", None),
        ("", None),
        ("TRUE", True),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_quoted_scalars_stay_texts() -> None:
    assert read_tree("a: '10'\nb: \"true\"\nc: |\n  12\n", env={}).value == {
        "a": "10",
        "b": "true",
        "c": "12\n",
    }


def test_every_duplicate_key_is_named_with_the_line_of_the_first() -> None:
    assert said("a: 1\nb: {c: 1, c: 2}\na: 3\n") == [
        's.yml:2:11: b.c: "c" is given twice, first on line 2',
        's.yml:3:1: a: "a" is given twice, first on line 1',
    ]


def test_merge_keys_and_tags_and_second_documents_are_refused() -> None:
    assert said("a: {<<: 1}") == [
        "s.yml:1:5: a.<<: merge keys are not YAML 1.2: use defaults: instead"
    ]
    assert "tags are not used" in said("a: !!python/object:os.system x")[0]
    assert said("a: 1\n---\nb: 1") == [
        "s.yml:2:1: a suite file has one document: remove the second '---'"
    ]


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n - b: 1\n   c: 1\n  d: 1\n", "4:3", "Is this line indented like"),
        ("a:\n  - b: 1\n   - c: 1\n", "3:4", "Is this line indented like"),
        ("a:\n  b: 1\n   c: 1\n", "3:5", "Is this line indented like"),
        ("a: yes: no\n", "1:7", "A text with a colon needs quotes"),
        ("a:\n\tb: 1\n", "2:1", "Indent with spaces"),
    ],
)
def test_broken_indentation_is_called_so(text: str, place: str, hint: str) -> None:
    (line,) = said(text)
    assert line.startswith(f"s.yml:{place}: not valid YAML: ")
    assert hint in line


def test_broken_yaml_names_line_and_column() -> None:
    assert said("a: [1\nb: 2\n") == ["s.yml:2:2: not valid YAML: expected ',' or ']', but got ':'"]
    assert said("a: \x07") == [
        (
            "s.yml:1:1: not valid YAML: unacceptable character #x0007: "
            "special characters are not allowed"
        )
    ]


def test_aliases_are_the_same_value_again() -> None:
    assert read_tree("a: &x [1, 2]\nb: *x\n", env={}).value == {"a": [1, 2], "b": [1, 2]}
    assert said("a: *nobody") == [
        "s.yml:1:4: *nobody refers to nothing that was completed before it"
    ]
    assert said("a: &a [*a]") == ["s.yml:1:8: *a refers to nothing that was completed before it"]


def test_a_billion_laughs_are_refused_without_being_expanded() -> None:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert said("\n".join(lines)) == [
        f"s.yml:6:10: more than {MAX_NODES} values once aliases are expanded"
    ]


def test_depth_and_size_are_bounded() -> None:
    assert said("[" * 10_000) == [f"s.yml:1:{MAX_DEPTH + 1}: nested more than {MAX_DEPTH} deep"]
    assert said("a: " + "x" * MAX_BYTES) == [
        f"s.yml:1:1: the file is larger than {MAX_BYTES} bytes: put tasks in a dataset"
    ]


def test_references_are_replaced_before_types_are_found() -> None:
    env = {"RUNS": "10", "NAME": "x: y", "EMPTY": ""}
    tree = read_tree(
        "a: ${RUNS}\nb: '${RUNS}'\nc: ${NAME}\nd: ${EMPTY:-3}\ne: $${RUNS}\nf: ${EMPTY}", env=env
    )
    assert tree.value == {"a": 10, "b": "10", "c": "x: y", "d": 3, "e": "${RUNS}", "f": None}


def test_a_character_that_json_writes_in_two_halves_is_one() -> None:
    tree = read_tree(json.dumps({"\U0001f600": "a\U0001f600", "b": "\ufeffé"}), env={})
    assert tree.value == {"\U0001f600": "a\U0001f600", "b": "\ufeffé"}
    assert not tree.problems


def test_a_variable_that_is_not_text_is_refused() -> None:
    (problem,) = read_tree("a: ${NAME}", env={"NAME": "caf\udce9"}).problems
    assert problem.at("s.yml").startswith("s.yml:1:4: a: has half of a character")


def test_unset_variables_are_all_named() -> None:
    assert said("a: ${NOPE}\nb: [1, '${GONE:?ask ops for it}']") == [
        (
            "s.yml:1:4: a: NOPE is not set: export it, write ${NOPE:-default}, "
            "or $${NOPE} for the text itself"
        ),
        "s.yml:2:8: b[1]: GONE is not set: ask ops for it",
    ]


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_gives_a_tree_or_problems_and_never_an_exception(text: str) -> None:
    tree = read_tree(text, env={})
    assert all(problem.line >= 1 and problem.column >= 1 for problem in tree.problems)
