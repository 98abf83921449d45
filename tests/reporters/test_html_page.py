import re

import pytest

from passhat import render_html
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.records import Trials


@pytest.fixture(scope="module")
def tagged():
    """Two agents, half of whose tasks carry a tag."""
    columns = simulate(tasks=6, runs=4, rate=[0.6, 0.8], seed=1).to_columns()
    columns["tags"] = [("even",) if int(name[-1]) % 2 == 0 else () for name in columns["task"]]
    return Trials.from_columns(columns)


@pytest.mark.parametrize("ks", [None, [2, 4], [1], [9]])
def test_a_page_shows_its_parts_at_whatever_k_was_asked_for(tagged, ks):
    page = render_html(measure(tagged, ks=ks))
    rows = re.findall(r'<tr><th scope="row">even</th><td class="n">(\d)</td>', page)
    assert rows == ["3", "3"]


def test_a_part_without_a_pass_1_has_a_dash_for_it(tagged):
    page = render_html(measure(tagged, ks=[2, 4]))
    row = '<th scope="row">even</th><td class="n">3</td><td>-</td><td>pass^4 '
    assert page.count(row) == 2
