"""A value in one short line: bounded, on one line, and true."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import passhat
from passhat.messages import (
    LONGEST,
    LONGEST_TEXT,
    percent,
    points,
    quoted,
    repr_fields,
    rounded,
    short_repr,
    signed_points,
)
from passhat.records import Outcome, Trial
from passhat.stats.estimate import Estimate, Interval


@dataclass(frozen=True)
class Held:
    """Something of everything."""

    name: str
    share: float
    rows: np.ndarray
    bounds: Interval
    pair: tuple[int, int] = (1, 2)
    notes: tuple[str, ...] = ()
    parts: dict[str, int] = field(default_factory=dict)

    __repr__ = repr_fields


@given(st.text(), st.lists(st.text(), max_size=20))
def test_a_brief_line_is_bounded_and_keeps_the_way_on(head, told):
    line = short_repr(quoted(head), *map(quoted, told), see=".tasks")
    assert len(line) <= LONGEST
    assert line.isprintable()
    assert line.endswith("; see .tasks>")


@given(st.text(min_size=1))
def test_a_quoted_name_is_bounded_printable_and_whole_where_it_fits(name):
    shown = quoted(name)
    assert len(shown) <= LONGEST_TEXT
    assert shown.isprintable()
    assert shown == repr(name) or "…" in shown


@given(st.text(), st.text())
def test_fields_are_told_on_one_bounded_line_however_long_they_are(name, note):
    line = repr(Held(name, 0.5, np.arange(9), Interval(0.1, 0.9), notes=(note,) * 9))
    assert len(line) <= LONGEST
    assert line.isprintable()


def test_fields_that_are_as_they_come_are_left_out_and_tables_are_counted():
    held = Held("a", 1 / 3, np.arange(1200), Interval(0.12345, 1.0))
    assert repr(held) == "Held(name='a', share=0.333, rows=<1,200>, bounds=[0.123, 1])"
    fuller = Held("a", 0.0, np.arange(2), Interval(0.0, 1.0), pair=(3, 4), parts={"x": 1})
    assert repr(fuller).endswith("pair=(3, 4), parts=<1>)")


def test_a_trial_tells_what_it_has():
    trial = Trial(system="o3", task="refund", trial=0, outcome=Outcome.PASSED, seconds=1.25)
    assert repr(trial) == (
        "Trial(system='o3', task='refund', trial=0, outcome=PASSED, score=1, seconds=1.25)"
    )


def test_a_number_that_cannot_be_known_is_called_so():
    class Nothing:
        reason = "too few runs"

    assert rounded(Nothing()) == "unavailable"


SOURCE = Path(passhat.__file__).parent
ROUNDED_FORMAT = re.compile(r"\.[0-3]?[fg]|\.\d%")


def test_a_share_is_rounded_alike_wherever_it_is_shown():
    # Half-way shares, and shares that are half-way but for the last bit of a product.
    for thousandths in range(5, 1000, 10):
        share = thousandths / 1000
        up = f"{(thousandths + 5) // 10}"
        if 5 < thousandths < 995:
            assert points(share) == points(share - 1e-16) == up
            assert percent(share) == f"{up}%"
            assert signed_points(-share) == f"-{up}"
    assert points(0.5625, digits=1) == "56.3"
    number = Estimate(
        value=0.5625,
        interval=Interval(0.5625, 0.5625),
        method="",
        scope="this suite",
        confidence=0.95,
    )
    assert rounded(number) == "0.563 [0.563, 0.563]"


def test_no_module_rounds_a_share_by_itself():
    """Shares become text in `percent` and `points`: other ways round halves to even numbers."""
    places = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(SOURCE.rglob("*.py"))
        if re.search(r"\b100(\.0)? \*|\* 100\b|\d%\}", code := path.read_text(encoding="utf-8"))
        for node in _own_roundings(ast.parse(code))
    ]
    assert not places
    template = re.compile(
        r"""%\.\d[f%]["'] ?\| ?format\(100|100 \*[^;]*toFixed|Math\.round\(100 \* \w+\)"""
    )
    files = [*SOURCE.rglob("*.html"), *SOURCE.rglob("*.js")]
    assert not [path.name for path in files if template.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "code",
    [
        'f"{100 * share:.0f}%"',
        'f"{(a - b) * 100.0:+.1f} points"',
        'f"{share:.0%}"',
        'f"{100 * (share or 0):.3g}"',
        "round(100 * share)",
        '"{:.1f}".format(100 * share)',
        'format(100 * share, ".1f")',
    ],
)
def test_the_search_for_roundings_sees_each_way_to_round(code):
    assert list(_own_roundings(ast.parse(code)))


def _own_roundings(tree):
    """The places of a module where a share is rounded without `halves_away`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            form = ast.unparse(node.format_spec)[2:-1].lstrip("+,")
            by_percent_sign = form.endswith("%")
            if by_percent_sign or (ROUNDED_FORMAT.fullmatch(form) and _in_hundredths(node.value)):
                yield node
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            name = called if isinstance(called, str) else getattr(called, "id", "")
            whole = name == "round" and len(node.args) == 1
            if (whole or name == "format") and any(map(_in_hundredths, node.args)):
                yield node


def _in_hundredths(value):
    """Whether a number times 100 is shown as it is."""
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "halves_away":
        return False
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = (value.left, value.right)
        if any(isinstance(side, ast.Constant) and side.value == 100 for side in sides):
            return True
    return any(_in_hundredths(c) for c in ast.iter_child_nodes(value) if isinstance(c, ast.expr))
