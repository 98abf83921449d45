import json

import pytest

from passhat.analysis.measure import measure
from passhat.analysis.simulate import simulate
from passhat.records import Source, Trials
from passhat.reporters.html_page import render_html


def page_of(trials, tmp_path, **options):
    path = tmp_path / "report.html"
    path.write_text(render_html(measure(trials), **options), encoding="utf-8")
    return path


@pytest.fixture
def report(tmp_path):
    return page_of(simulate(tasks=12, runs=8, seed=4), tmp_path)


def test_the_page_begins_with_the_answer(report, open_page):
    page = open_page(report.as_uri())
    assert "depend on agent" in page.locator("h1").inner_text()


def test_the_table_sorts_both_ways_and_filters_by_text_and_label(report, open_page):
    page = open_page(report.as_uri())
    names = page.locator("tbody tr:visible td.name")
    page.get_by_role("button", name="task", exact=True).click()
    ascending = names.all_inner_texts()
    page.get_by_role("button", name="task", exact=True).click()
    assert names.all_inner_texts() == ascending[::-1] == sorted(ascending, reverse=True)
    page.get_by_role("searchbox").fill(ascending[0])
    assert names.all_inner_texts() == [ascending[0]]
    page.get_by_role("searchbox").fill("")
    page.get_by_role("combobox").select_option("flaky")
    labels = page.locator("tr[data-row]:visible td:nth-child(2)").all_inner_texts()
    assert labels
    assert set(labels) == {"flaky"}


def test_choosing_a_task_marks_it_in_every_picture(report, open_page):
    page = open_page(report.as_uri())
    row = page.locator("tbody tr[data-row]").first
    name = row.get_attribute("data-row")
    row.click()
    marked = page.locator(".on").evaluate_all("all => all.map(e => e.dataset.row)")
    assert set(marked) == {name}
    assert len(marked) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_rule_is_broken(report, open_page, axe_violations, scheme):
    page = open_page(report.as_uri(), color_scheme=scheme)
    assert axe_violations(page) == []


def test_everything_can_be_read_without_javascript(report, open_page):
    page = open_page(report.as_uri(), java_script_enabled=False)
    assert page.locator("tbody tr[data-row]").count() == 12
    assert page.locator("svg").count() >= 4
    assert not page.get_by_role("searchbox").is_visible()


def test_the_page_does_not_scroll_sideways_on_a_telephone(report, open_page):
    page = open_page(report.as_uri(), viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_transcript_is_rendered_as_text_when_it_is_opened(tmp_path, open_page):
    trials = Trials.from_columns(task=["a", "a"], passed=[True, False])
    said = "</script><script>window.hit=1</script>\n<b>bold</b>"
    path = page_of(trials, tmp_path, transcripts={("system", "a", 1): said})
    page = open_page(path.as_uri())
    assert page.locator("pre").inner_text() == ""
    page.get_by_text("run 2").click()
    assert page.locator("pre").inner_text() == said
    assert page.evaluate("window.hit") is None


def test_no_payload_in_any_text_runs_or_adds_an_element(tmp_path, open_page, corpus):
    texts = {"task": corpus, "system": ["agent"] * len(corpus), "level": corpus}
    trials = Trials.from_columns(
        texts | {"tags": [(text,) for text in corpus], "error": corpus},
        passed=[i % 3 > 0 for i in range(len(corpus))],
        sources=tuple(Source(name=text, format="csv", sha256="0") for text in corpus),
    )
    for system in (None, *corpus[:3]):
        if system is not None:
            trials = Trials.from_columns(
                task=corpus, passed=[True] * len(corpus), system=[system] * len(corpus)
            )
        page = open_page(page_of(trials, tmp_path).as_uri())
        for row in page.locator("tbody tr[data-row]").all()[:20]:
            row.hover()
        assert page.evaluate("window.hit") is None
        foreign = "img,iframe,object,embed,svg script,body [onload],[onerror],[onmouseover]"
        assert page.locator(foreign).count() == 0
        assert page.locator("script").count() == 1


def test_a_page_stays_small(tmp_path):
    trials = simulate(tasks=200, runs=20, seed=1)
    assert len(page_of(trials, tmp_path).read_bytes()) <= 150_000 + 200 * 1_000


def test_embedded_transcripts_survive_the_journey(tmp_path):
    said = json.dumps({"text": "<!--<script>\u2028 & é"})
    trials = Trials.from_columns(task=["a"], passed=[True])
    text = page_of(trials, tmp_path, transcripts={("system", "a", 0): said}).read_text()
    stored = text.split('id="transcripts">')[1].split("</script>")[0]
    assert json.loads(stored) == [said]
