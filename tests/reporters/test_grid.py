"""Every answer in every format that can hold it, and one truth in all of them."""

import csv
import html
import io
import json
import re
from importlib import import_module
from xml.etree import ElementTree as ET

import pytest

from passhat import (
    Trials,
    compare,
    plan,
    profile,
    rank,
    render_html,
    render_markdown,
    render_terminal,
    simulate,
)
from passhat.analysis.comparing.trends import CountedRun, trends
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.gate_plan import plan_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.run_answer import Failure, RunAnswer
from passhat.analysis.planning.simulate import demonstrate
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError, InputError
from passhat.journeys.checks import CostRange, RunPlan
from passhat.records import Outcome
from passhat.records.transcript import Excerpt, TranscriptMatch, TranscriptMatches
from passhat.reporters import endings_for, formats_for, render
from passhat.reporters.answer import (
    Answer,
    DisplayOptions,
    Headline,
    Judged,
    Paragraph,
    Section,
    Steps,
    Table,
)
from passhat.reporters.answers.listings import RunList
from passhat.reporters.formatting import TerminalStyle
from passhat.reporters.rendering import ANSWERS, ENDINGS, FORMATS, answer_of, kind_of

pytestmark = pytest.mark.usefixtures("few_suites_drawn")

TWO = simulate(tasks=12, runs=8, rate={"new <b>": 0.85, "old": 0.6}, seed=3)
ONE = TWO.where(system="old")
MATCHES = TranscriptMatches(
    wanted="refund",
    matches=(
        TranscriptMatch(
            run="dc7d2445", system="old", task="task-01", trial=3, outcome=Outcome.FAILED,
            excerpt=Excerpt(where="user", text="a <b>refund</b>, please"),
        ),
    ),
    read=12,
)  # fmt: skip
ROW = {
    "run": "dc7d2445", "suite": "refunds", "status": "finished", "started": "2026-11-15T09:14:00",
    "commit": "1f2e3d4c5b6a", "branch": "main", "dirty": True, "tags": ["baseline"], "systems": 1,
    "tasks": 12, "trials": 120, "passed": 110, "errored": 0, "pass_rate": 0.9, "owner": None,
    "pass_rates": {"agent": 0.9}, "stopped_early": False, "decided": None,
}  # fmt: skip


PLAN = RunPlan(
    suite="new <b>", size="1 task, 1 agent, 3 trials", mode="live", tasks=1, systems=("new <b>",),
    trials=3, trials_by_task={"sum <b>": 3},
    sequential=False, concurrency=8, models=(), servers={"a": "./server <i>"},
    gates=("pass^3 >= 0.8",), budget={"max_cost": 5.0},
    cost=CostRange(low=0.0, high=None, how="no price is known for new <b>"),
)  # fmt: skip


def _moments():
    parts = (
        simulate(tasks=8, runs=6, rate={"bot": rate}, seed=i) for i, rate in enumerate((0.9, 0.4))
    )
    return [
        CountedRun(
            key=f"run{i}", label=f"c{i}", started=f"2026-11-1{i}T10:00:00", tallies=[part.tally()]
        )
        for i, part in enumerate(parts)
    ]


@pytest.fixture(scope="module")
def answers():
    """One answer of each kind."""
    failure = Failure(system="old", task="task-01", reason="wrong refund", trials=3)
    return {
        "report": measure(ONE, bars=0.8),
        "comparison": compare(TWO),
        "ranking": rank(TWO),
        "plan": plan(ONE),
        "gate plan": [plan_gate(parse_gate("pass^1 >= 0.8"), tasks=12)],
        "verdicts": judge(ONE, ["pass^1 >= 0.5", "pass^2 >= 0.9"]),
        "profile": profile(ONE, TWO),
        "trend": trends(_moments(), k=2),
        "run": RunAnswer(
            report=measure(ONE), verdicts=judge(ONE, ["pass^1 >= 0.5"]), failures=(failure,)
        ),
        "demo": demonstrate(),
        "run list": RunList((ROW,)),
        "run plan": PLAN,
        "transcript matches": MATCHES,
        "trials": TWO,
    }


KINDS = (
    "report", "comparison", "ranking", "plan", "gate plan", "verdicts", "profile", "trend", "run",
    "demo", "run list", "run plan", "transcript matches", "trials",
)  # fmt: skip
"""The kinds of `answers`; the others have a test file of their own."""


def test_the_table_says_which_parts_an_answer_has():
    parts = ("blocks", "data", "rows", "figures", "cases")
    for kind, entry in ANSWERS.items():
        module, _, name = entry.answer.partition(":")
        answer = getattr(import_module(f"passhat.reporters.answers.{module}"), name)
        own = {part for part in parts if getattr(answer, part) is not getattr(Answer, part)}
        assert (answer.name, own) == (kind, set(entry.parts.split()))


def test_an_answer_is_known_by_its_class(answers):
    assert [kind_of(answers[kind]) for kind in KINDS] == list(KINDS)
    for kind in KINDS:
        assert formats_for(answers[kind]) == formats_for(kind), kind


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_written_in_every_format_that_can_hold_it(answers, kind):
    for name in formats_for(kind):
        if name not in ("png", "pdf"):
            text = render(answers[kind], name)
            assert text == render(answers[kind], name), name
            check_text(text, name)


def check_text(text, name):
    assert text.endswith("\n") or name == "html", name
    if name == "json":
        json.loads(text)
    if name in ("svg", "junit"):
        ET.fromstring(text)
    if name == "csv":
        header, *rows = csv.reader(io.StringIO(text))
        assert len(set(header)) == len(header)
        assert {len(row) for row in rows} == {len(header)}
    if name == "html":
        assert "<title>" in text
        assert "new <b>" not in text
    if name == "tex":
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
        assert r"\toprule" in text
        assert text.count("{") == text.count("}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_format_that_cannot_hold_an_answer_says_which_can(answers, kind):
    for name in set(FORMATS).difference(formats_for(kind)):
        with pytest.raises(
            ArgumentError, match=f"format of a {kind} must be one of text, .*{name}"
        ):
            render(answers[kind], name)


def test_every_ending_belongs_to_one_format():
    assert set(ENDINGS.values()) == set(FORMATS)
    assert endings_for("run list") == (
        ".txt",
        ".json",
        ".md",
        ".markdown",
        ".html",
        ".htm",
        ".fragment.html",
        ".csv",
        ".ndjson",
        ".tex",
    )


def _sentences(blocks):
    """What an answer says in words."""
    for block in blocks:
        if isinstance(block, Headline | Paragraph):
            yield block.text
        elif isinstance(block, Section):
            yield block.title
        elif isinstance(block, Judged):
            yield from (block.word, block.sentence, *block.details)
        elif isinstance(block, Steps):
            yield from (part for step in block.steps for part in (step.text, step.command) if part)


def _cells(blocks):
    """What an answer says in its tables."""
    tables = [block for block in blocks if isinstance(block, Table)]
    rows = [row for table in tables for row in table.cells]
    return [cell for row in rows for cell in row if isinstance(cell, str) and cell]


def _of_page(text):
    text = re.sub(r"(?<![.?])</h1>", ".</h1>", text)  # a heading has no stop
    text = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return _plain(html.unescape(re.sub(r"<[^>]*>", "", text.replace("<p", " <p"))))


def _of_markdown(text):
    return _plain(html.unescape(text.replace("\\", "").replace("**", "").replace("`", "")))


def _plain(text):
    return " ".join(text.replace("`", "").split())


def _lacks(text, said):
    return [one for one in said if _plain(one) not in text]


@pytest.mark.parametrize("kind", KINDS)
def test_text_markdown_and_page_say_the_same(answers, kind):
    answer = answers[kind]
    blocks = answer_of(answer).blocks(DisplayOptions(verbose=True))
    said, cells = list(_sentences(blocks)), _cells(blocks)
    assert said or cells
    text = _plain(render_terminal(answer, TerminalStyle(width=400), verbose=True))
    markdown = _of_markdown(render_markdown(answer, verbose=True))
    assert _lacks(text, said + cells) == []
    assert _lacks(markdown, [one.replace("*", "") for one in said + cells]) == []
    # A page lists every task, and so never says how many more there are.
    page = _of_page(render_html(answer))
    blocks = answer_of(answer).blocks(DisplayOptions(verbose=True, every_task_follows=True))
    unlisted = [b.text for b in blocks if isinstance(b, Paragraph) and not b.label]
    assert _lacks(page, [one for one in _sentences(blocks) if one not in unlisted]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_has_no_number_that_everything_does_not_have(answers, kind):
    brief, full = (render_terminal(answers[kind], verbose=verbose) for verbose in (False, True))
    shown = {float(number) for number in re.findall(r"\d+\.\d+", brief)}
    assert shown <= {float(number) for number in re.findall(r"\d+(?:\.\d+)?", full)}


def test_the_first_screen_is_short_and_everything_names_reliability(answers):
    brief, full = (render_terminal(answers["report"], verbose=v) for v in (None, True))
    assert "(pass^k, also called reliability@k)" in full
    assert len(brief.splitlines()) <= 15 < 30 < len(full.splitlines())
    assert "passhat report RESULTS -v" in brief
    assert "Luck is the share of the variation" in " ".join(full.split())


def test_the_table_of_systems_has_every_k_that_was_asked_for_and_both_scopes():
    report, ink = measure(TWO, ks=[1, 8]), TerminalStyle(width=120)
    header = render_terminal(report, ink).splitlines()[2]
    assert re.split(" {2,}", header.strip())[:4] == [
        "pass@1",
        "pass^8",
        "these tasks",
        "similar tasks",
    ]
    text = render_terminal(report, ink, verbose=True)
    header = next(line for line in text.splitlines() if line.startswith("  in %"))
    assert re.split(" {2,}", header.strip())[:5] == [
        "in %",
        "pass@1",
        "pass^8",
        "these tasks",
        "similar tasks",
    ]


def test_text_from_data_is_no_formula_in_a_spreadsheet():
    trials = Trials.from_columns(task=["=1+1", "@x"], passed=[1, 0])
    cells = [
        cell for row in csv.reader(io.StringIO(render(measure(trials), "csv"))) for cell in row
    ]
    assert not any(cell.startswith(("=", "@", "+")) for cell in cells)


def test_latex_from_data_means_nothing():
    trials = Trials.from_columns(system=[r"a\input{x}_%$"] * 4, task=[*"abcd"], passed=[1, 0, 1, 1])
    text = render(measure(trials), "tex")
    assert r"\input" not in text
    assert "arXiv:2107.03374" in text
    assert "confidence intervals" in text


def test_a_figure_is_chosen_by_name(answers):
    assert "only sometimes" in render(answers["report"], "svg", figure="runs")
    with pytest.raises(ArgumentError, match="figure must be one of decay"):
        render(answers["report"], "svg", figure="nope")
    alike = Trials.from_columns(task=[f"t{i % 9}" for i in range(90)], passed=[1] * 45 + [0] * 45)
    assert "is luck" in render(measure(alike), "svg", figure="variance")


def test_a_figure_that_is_not_drawn_says_why():
    few = Trials.from_columns(task=["a", "a", "b", "b"], passed=[1, 0, 1, 1])
    with pytest.raises(InputError, match="figure variance is not drawn: too few tasks or trials"):
        render(measure(few), "svg", figure="variance")


@pytest.mark.parametrize("name", ["png", "pdf"])
def test_pictures_are_made_where_the_renderer_is_installed(answers, name):
    pytest.importorskip("cairosvg", reason="needs passhat[figures]")
    found = render(answers["report"], name)
    assert found.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[name])
