"""Results in notebooks and as data frames: safe to show, and the same numbers as the CSV file."""

import csv
import io
import re
from html import unescape
from html.parser import HTMLParser

import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import passhat
from passhat import Trials, compare, plan, profile, rank, render, simulate
from passhat.analysis.comparing.trends import CountedRun, trends
from passhat.analysis.explaining.explain import explain
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.gate_plan import plan_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.run_answer import RunAnswer
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("few_suites_drawn")

TAGS = {
    "div", "p", "strong", "span", "code", "br", "ol", "li", "table", "thead", "tbody", "tr", "th",
    "td", "svg", "g", "title", "desc", "rect", "text", "tspan", "line", "path", "circle",
    "polyline", "polygon",
}  # fmt: skip
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</table></div><iframe src=//evil>",
    "javascript:alert(1)",
    "`${alert(1)}`",
    "\x1b]0;owned\x07\u202efdp.exe",
)


class Tags(HTMLParser):
    """Every element and attribute of a piece of HTML, checked as it is read."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        assert tag in TAGS, tag
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "href", "xlink:href", "class", "id"), (tag, name)
            assert "url(" not in (value or ""), (tag, name, value)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def results(names):
    """A result of each kind, about systems and tasks with these names."""
    first, second, *tasks = names
    table = simulate(tasks=max(3, len(tasks)), runs=4, rate={"a": 0.9, "b": 0.6}, seed=3)
    systems = {"a": first, "b": second}
    renamed = {old: tasks[i] for i, old in enumerate(table.tasks) if i < len(tasks)}
    two = Trials.from_columns(
        system=[systems[one] for one in table.system.texts()],
        task=[renamed.get(one, one) for one in table.task.texts()],
        outcome=table.outcome.tolist(),
        trial=table.trial.tolist(),
    )
    one = two.where(system=first)
    moments = [
        CountedRun(
            key=f"r{i}", label=second, started=f"2026-11-1{i}T10:00:00", tallies=[one.tally()]
        )
        for i in range(2)
    ]
    return {
        "trials": two,
        "report": measure(one),
        "report of two": measure(two),
        "comparison": compare(two),
        "ranking": rank(two),
        "plan": plan(one),
        "gate plan": plan_gate(parse_gate("pass^1 >= 0.8"), tasks=12),
        "verdicts": judge(one, ["pass^1 >= 0.5"]),
        "profile": profile(one, two),
        "explanation": explain(two, {}),
        "trend": trends(moments, k=2)[0],
        "run": RunAnswer(report=measure(one), verdicts=judge(one, ["pass^1 >= 0.5"])),
    }


KINDS = (
    "trials", "report", "report of two", "comparison", "ranking", "plan", "gate plan", "verdicts",
    "profile", "explanation", "trend", "run",
)  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    made = results(["new", "old", "refund", "invoice", "cancel"])
    assert tuple(made) == KINDS
    return made


@pytest.fixture(scope="module")
def hostile():
    return results([*ATTACKS])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", ["plain", "hostile"])
def test_what_a_notebook_shows_holds_known_elements_only(request, kind, group):
    result = request.getfixturevalue(group)[kind]
    reader = Tags()
    reader.feed(result._repr_html_())
    reader.close()
    assert reader.open == []
    assert {"p", "table"} & set(reader.found)


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_from_data_holds_no_html_and_no_link(hostile, kind):
    text = hostile[kind]._repr_markdown_()
    assert "<script" not in text
    assert "<img" not in text
    assert "<iframe" not in text
    assert "](" not in text.replace("\\]", "")


@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=2, unique=True))
def test_any_name_is_safe_in_a_notebook(names):
    first, second = names
    two = Trials.from_columns(
        system=[first, first, second, second], task=["a", "b"] * 2, passed=[1, 0, 1, 1]
    )
    for result in (two, measure(two), judge(two.where(system=first), ["pass^1 >= 0.5"])):
        reader = Tags()
        reader.feed(result._repr_html_())
        assert reader.open == []


def test_a_long_table_is_cut_and_says_where_the_rest_is():
    many = simulate(tasks=3, runs=2, rate={f"s{i:03}": 0.5 for i in range(80)}, seed=1)
    shown = many._repr_html_()
    assert shown.count("<tr>") == 61
    assert "and 20 more rows: to_frame()" in shown


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_frame_of_a_result_has_the_rows_of_its_csv_file(plain, kind, library):
    result = plain[kind]
    frame = result.to_frame(library)
    types = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "pyarrow": pyarrow.Table}
    assert isinstance(frame, types[library])
    if kind == "trials":  # a row a trial, as to_columns has them
        assert len(frame) == len(result)
        return
    header, *rows = [*csv.reader(io.StringIO(render(result, "csv")))] or [[]]
    columns = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert columns == header
    assert len(frame) == len(rows)


def test_the_library_that_is_not_known_is_named(plain):
    with pytest.raises(ArgumentError, match="library must be one of pandas, polars, pyarrow"):
        plain["report"].to_frame("dask")


@pytest.mark.parametrize(
    ("ending", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_a_figure_is_saved_by_its_ending(plain, tmp_path, ending, begins):
    if ending != "svg":
        pytest.importorskip("cairosvg", reason="needs passhat[figures]")
    file = tmp_path / f"curves.{ending}"
    plain["report of two"].plots.curves().save(file)
    assert file.read_bytes().startswith(begins)


def test_a_figure_of_an_unknown_ending_is_refused(plain, tmp_path):
    figure = plain["report"].plots.decay()
    with pytest.raises(ArgumentError, match=r"path must end in \.svg, \.png, \.pdf"):
        figure.save(tmp_path / "x.bmp")
    assert list(tmp_path.iterdir()) == []


def test_the_doors_are_public():
    assert all(hasattr(passhat, name) for name in ("render", "to_frame", "Progress"))


def test_a_cell_shows_the_picture_of_the_page():
    table = simulate(tasks=12, runs=4, rate={"a": 0.9, "b": 0.6}, seed=3)
    for answer in (
        judge(table.where(system="a"), "pass^2 >= 0.5"),
        judge(table.where(system="a"), ["pass^2 >= 0.5", "pass@1 >= 0.5"]),
        passhat.report(table.where(system="b")),
        rank(table),
    ):
        drawn = re.search(r"<svg.*?</svg>", answer._repr_html_(), re.DOTALL)[0]
        named = re.search(r"<title[^>]*>(.*?)</title>", drawn)[1]
        assert unescape(named) in unescape(render(answer, "html"))
