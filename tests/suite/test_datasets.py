from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.suite.task_sources import fill_text

SUITE = """
systems: [{name: s, model: o3}]
tasks:
  - name: "order {id}"
    dataset: %s
    prompt: 'Refund {id} as {"json": "{city}"}, {{id}}'
    tags: ["{city}"]
    expect:
      - {number: "{amount}"}
      - {exact: "{amount}"}
      - {contains: "in {city}"}
      - {regex: "^\\\\d{2}$"}
"""


def test_a_csv_gives_a_task_a_row_with_its_columns_filled_in(load, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(
        '\ufeffid,city,amount\n7,Rome,12.5\n8,"San\nJosé",3\n', encoding="utf-8"
    )
    first, second = load(SUITE % "orders.csv").tasks
    assert first.name == "order 7"
    assert first.prompt == 'Refund 7 as {"json": "Rome"}, {id}'
    assert first.tags == ("Rome",)
    assert [e.value for e in first.expect] == ["12.5", "12.5", "in Rome", "^\\d{2}$"]
    assert first.values == {"id": "7", "city": "Rome", "amount": "12.5"}
    assert second.tags == ("San\nJosé",)


def test_jsonl_keeps_the_type_of_a_column_that_stands_alone(load, tmp_path: Path) -> None:
    row = '{"id": 7, "city": "Rome", "amount": 12.5}\n\n'
    (tmp_path / "orders.jsonl").write_text(row)
    (task,) = load(SUITE % "orders.jsonl").tasks
    assert [e.value for e in task.expect[:2]] == [12.5, 12.5]


def test_a_row_ends_at_its_line_break_and_not_at_a_separator_inside_a_text(load, tmp_path) -> None:
    row = '{"id": 7, "city": "Ro\u2028me\\ud83d\\ude00", "amount": 1}\r\n'
    (tmp_path / "orders.jsonl").write_text(row, encoding="utf-8", newline="")
    (task,) = load(SUITE % "orders.jsonl").tasks
    assert task.tags == ("Ro\u2028me\U0001f600",)


def test_a_name_without_a_column_is_numbered(load, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("q\nx\ny\n")
    suite = load("agents: [{name: ask, model: o3, dataset: d.csv, prompt: '{q}?', runs: 2}]")
    assert [p.row(1) for p in suite.pairings] == ["ask 1 #2", "ask 2 #2"]


def test_steps_and_nested_values_are_filled_in_too(load, tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_text("city\tdays\nRome\t3\n")
    suite = load(
        """
agents:
  - name: trip
    model: o3
    dataset: d.tsv
    steps:
      - name: book
        prompt: Book {city}.
        expect:
          - {called_with: {tool: book, arguments: {to: "{city}", nights: ["{days}"]}}}
          - {contains-all: ["{city}", "{days} nights"]}
"""
    )
    (step,) = suite.tasks[0].steps
    assert step.prompt == "Book Rome."
    assert step.expect[0].options["arguments"] == {"to": "Rome", "nights": ["3"]}
    assert step.expect[1].value == ["Rome", "3 nights"]


def test_a_quarantine_may_name_a_row_but_not_one_that_is_not_there(
    load, problems, tmp_path: Path
) -> None:
    (tmp_path / "d.csv").write_text("q\nx\n")
    text = (
        "agents: [{name: ask, model: o3, dataset: d.csv, prompt: '{q}'}]\n"
        "quarantine: [{task: ask %s, until: 2027-01-01}]\n"
    )
    assert load(text % 1).quarantine[0].task == "ask 1"
    assert problems(text % 2) == [':2:15: quarantine[0].task: "ask 2" is not the name of a task']


def test_a_limit_takes_the_first_rows(load, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("q\n" + "x\n" * 50)
    suite = load("agents: [{name: ask, model: o3, dataset: d.csv, limit: 3, prompt: '{q}'}]")
    assert len(suite.tasks) == 3


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("d.csv", "id,city\n1,Rome\n", "{amount} is not a column of the dataset. Known: city, id"),
        ("d.csv", "id,city,amout\n1,Rome,2\n", 'Did you mean "amout"?'),
        ("d.csv", "id,city,amount\n1,Rome\n", "d.csv:2: 2 cells under 3 columns"),
        ("d.csv", "id,id\n1,2\n", "d.csv:1: a column is named twice: id, id"),
        ("d.csv", "id,city,amount\n", "d.csv: the dataset has no rows"),
        ("d.csv", "id,city,amount\n1,a,2\n1,b,3\n", 'row 2 gives a second task named "order 1"'),
        ("d.jsonl", '{"id": 1}\n{"id"\n', "d.jsonl:2: not JSON"),
        ("d.jsonl", "[1]\n", "d.jsonl:1: a row is an object, got [1]"),
        (
            "d.jsonl",
            '\n{"id": "a\\ud83d"}\n',
            "d.jsonl:2: has half of a character, which is not text",
        ),
        ("d.xml", "<a/>", "d.xml: a dataset ends in .csv, .tsv or .jsonl"),
        ("d.csv", None, "the dataset cannot be read: No such file"),
        ("d.csv", 'id,city,amount\n1,"Ro"me,2\n', "d.csv:2: ',' expected after '\"'"),
        ("d.csv", b"id\n\xff\n", "d.csv: not UTF-8 at byte 3"),
    ],
)
def test_what_is_wrong_with_a_dataset_is_said_at_its_key(
    problems, tmp_path: Path, file: str, content: str | bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    (line,) = problems(SUITE % file)
    assert line.startswith(":5:5: tasks[0].dataset: ")
    assert said in line


@settings(deadline=None)
@given(st.text())
def test_a_text_without_columns_or_double_braces_stays_as_it_is(text: str) -> None:
    plain = text.replace("{", "(").replace("}", ")")
    assert fill_text(plain, {"a": 1}) == plain
