from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.dashboard import server
from passhat.dashboard.server import SORTS, Choice, look
from passhat.records import Trials

TABLE = measure(simulate(tasks=45, runs=7, seed=3)).system().tasks


@given(st.sampled_from(SORTS), st.booleans(), st.sampled_from(["", "1", "task-0", "zzz"]))
def test_the_pages_of_a_table_are_its_rows_each_once_in_order(sort, down, text):
    size, server.ROWS_A_PAGE = server.ROWS_A_PAGE, 10
    try:
        first = look(TABLE, Choice(sort=sort, down=down, text=text))
        choices = [Choice(sort=sort, down=down, text=text, page=n + 1) for n in range(first.pages)]
        rows = [row for choice in choices for row in look(TABLE, choice).rows]
    finally:
        server.ROWS_A_PAGE = size
    assert sorted(row.name for row in rows) == sorted(n for n in TABLE.names if text in n)
    assert first.matching == len(rows)
    if sort in ("task", "rate"):
        keys = [row.name if sort == "task" else row.rate.value for row in rows]
        assert keys == sorted(keys, reverse=down)


@given(
    st.dictionaries(st.sampled_from(["q", "label", "sort", "down", "page"]), st.text(max_size=9))
)
def test_any_address_makes_a_choice_that_can_be_looked_up(query):
    window = look(TABLE, Choice.read(query))
    assert 1 <= window.page <= window.pages


def test_tasks_that_are_numbers_are_in_the_order_of_numbers_and_break_ties_so():
    names = ["0", "10", "14", "3", "20"]
    trials = Trials.from_columns(task=names * 2, passed=[True] * 5 + [False] * 5)
    table = measure(trials).system().tasks
    for sort in ("task", "rate", "passed"):
        found = [row.name for row in look(table, Choice(sort=sort)).rows]
        assert found == ["0", "3", "10", "14", "20"], sort
    assert [row.name for row in table.failing()] == found


def test_a_label_narrows_the_table():
    window = look(TABLE, Choice(label="flaky"))
    assert {row.label for row in window.rows} == {"flaky"}
    assert window.matching == TABLE.count("flaky")
