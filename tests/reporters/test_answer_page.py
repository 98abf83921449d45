import html

import pytest

from passhat import render_html
from passhat.analysis.comparing.comparison import compare
from passhat.analysis.comparing.plots import plot_differences, plot_ranks
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import simulate
from passhat.reporters import render

TRIALS = simulate(tasks=12, runs=6, rate={"new <b>": 0.9, "old": 0.5}, seed=3)
CASES = {
    "comparison": (compare(TRIALS), plot_differences),
    "ranking": (rank(TRIALS), plot_ranks),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_page_holds_the_picture_and_asks_for_nothing(kind):
    found, plot = CASES[kind]
    text = render_html(found)
    assert plot(found).svg() in text
    assert "default-src 'none'" in html.unescape(text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "new <b>" not in text
    assert render_html(found) == text


@pytest.mark.parametrize("kind", CASES)
def test_the_picture_stands_alone(kind):
    found, plot = CASES[kind]
    text = render(found, "svg")
    assert text == plot(found).svg(standalone=True) + "\n"
