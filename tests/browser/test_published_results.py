"""Pages of published results, as somebody uses them to whom a colleague sent the file."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from passhat.cli import main

PUBLISHED = Path(__file__).parents[3] / "shared" / "samples"
SUBMISSIONS = PUBLISHED / "terminal_bench" / "leaderboard"
PAGES = {
    "airline": ["report", str(PUBLISHED / "tau_bench" / "gpt-4o-airline.json"), "--transcripts"],
    "gate": [
        *("gate", str(PUBLISHED / "tau_bench" / "gpt-4o-airline.json")),
        *("--require", "pass^4 >= 0.5"),
    ],
    "several": ["report", str(PUBLISHED / "mcpmark" / "outcomes_12agents_127tasks_4runs.csv")],
    "compare": [
        *("compare", str(SUBMISSIONS / "20250911_chaterm_claude-4-sonnet")),
        str(SUBMISSIONS / "20250829_goose_claude-4-opus"),
    ],
}
DRAWER = ".drawer:has(.trial:target), .drawer.on"

pytestmark = [
    pytest.mark.slow("a detail of the page, in a real browser"),
    pytest.mark.skipif(
        not PUBLISHED.exists(), reason="published result files are not beside this checkout"
    ),
]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The address of each page."""
    folder = tmp_path_factory.mktemp("published")
    for name, words in PAGES.items():
        done = CliRunner().invoke(main, [*words, "-o", str(folder / f"{name}.html")])
        assert done.exit_code in (0, 1), done.output
    return {name: (folder / f"{name}.html").as_uri() for name in PAGES}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_page_of_published_results_asks_for_nothing_and_keeps_nobody_out(
    published, open_page, axe_violations, small_words, words_outside, width, scheme
):
    page = open_page("about:blank", viewport={"width": width, "height": 800}, color_scheme=scheme)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    for name, address in published.items():
        asked.clear()
        page.goto(address)
        policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
        assert policy.startswith("default-src 'none'"), name
        assert axe_violations(page) == [], name
        assert small_words(page) == words_outside(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert [one for one in asked if not one.startswith("data:")] == [address], name
    assert said == []


def test_k_moves_number_sentence_gauge_curve_row_and_address_and_says_where_nothing_was_measured(
    published, open_page
):
    page = open_page(published["airline"], viewport={"width": 1280, "height": 800})
    slider = page.get_by_role("slider")

    def state():
        marker = page.locator("[data-figure=decay] svg > path:last-child")
        return {
            "number": page.locator("[data-value]").inner_text(),
            "sentence": page.locator("[data-answer]").inner_text(),
            "gauge": page.locator(".gauge .value").first.get_attribute("cx"),
            "curve": marker.get_attribute("d"),
            "row": page.locator("tr.at th").all_inner_texts(),
            "beside": page.locator("[data-k-note]").inner_text(),
            "address": page.url,
        }

    slider.focus()
    page.keyboard.press("ArrowLeft")
    three = state()
    assert three["row"] == ["pass^3"]
    assert three["beside"] == f"{three['number']}, measured"
    page.keyboard.press("ArrowLeft")
    two = state()
    assert not any(two[part] == three[part] for part in three)
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    eight = state()
    assert "k=8" in eight["address"]
    assert eight["number"].startswith("\N{ALMOST EQUAL TO}")
    assert "not measured" in eight["sentence"]
    assert eight["curve"] not in ("", three["curve"])
    tick = page.locator("[data-figure=decay] text.mid", has_text=re.compile("^8$"))
    at = float(re.match(r"M([\d.]+) ", eight["curve"])[1])
    assert at == pytest.approx(float(tick.get_attribute("x")), abs=0.2)
    colour = "getComputedStyle(document.querySelector('[data-value]')).color"
    soft = "getComputedStyle(document.querySelector('.hero .soft')).color"
    assert page.evaluate(colour) == page.evaluate(soft)
    page.reload()
    assert state() == eight


def test_a_failed_trial_opens_at_its_address_says_why_it_failed_and_outlines_the_call(
    published, open_page, axe_violations
):
    page = open_page(published["airline"], viewport={"width": 1280, "height": 800})
    page.locator("details.group").evaluate_all("all => all.forEach(one => one.open = true)")
    mark = page.locator("[data-row='41'] .marks a").first
    mark.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    mark.click()
    assert page.url.endswith("#task-41-trial-1")
    trial = page.locator(".trial:visible")
    first = trial.locator(".said > *").first
    assert "changed something it should have refused" in first.inner_text()
    assert "cancel_reservation(reservation_id=3RK2T9)" in first.inner_text()
    wrong = trial.locator(".card.call.broke")
    assert wrong.count() == 1
    assert "not as expected" in wrong.inner_text()
    assert "cancel_reservation" in wrong.inner_text()
    assert axe_violations(page) == []
    page.keyboard.press("j")
    assert page.locator(DRAWER).evaluate("drawer => drawer.scrollTop") > 0
    page.keyboard.press("]")
    assert page.url.endswith("#task-41-trial-2")
    assert page.locator(".trial:visible .card.call.broke").count() == 0
    page.keyboard.press("Escape")
    page.locator(".trial:visible").wait_for(state="detached")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#task-41-trial-1"
    assert page.evaluate("scrollY") == before


def test_beside_a_trial_that_passed_one_banner_says_where_they_part(published, open_page):
    page = open_page(f"{published['airline']}#task-41-trial-1")
    page.get_by_role("link", name="Beside #2, which passed").click()
    assert page.url.endswith("#task-41-trial-1-beside-2")
    page.locator(".sides").wait_for()
    assert page.locator(".sides .fork:visible").all_inner_texts() == ["≠ Here they part"]
    assert page.locator(".sides h4").all_inner_texts() == ["Trial #1 ✕ failed", "Trial #2 ✓ passed"]


def test_without_a_script_links_open_trials_and_every_row_can_be_opened(published, open_page):
    page = open_page(published["airline"], java_script_enabled=False)
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    for group in page.locator("details.group").all():
        if group.get_attribute("open") is None:
            group.locator("summary").first.click()
    assert page.locator("[data-row]:visible").count() == 50
    page.locator("[data-row='41'] .marks a").first.click()
    assert page.locator(".trial:visible .checks").is_visible()


def test_two_submissions_are_compared_worse_first_and_no_row_says_that_nothing_moved(
    published, open_page
):
    page = open_page(published["compare"], viewport={"width": 1280, "height": 800})
    titles = page.locator(".group.moved summary h3").all_inner_texts()
    assert "worse" in titles[0]
    assert "better" in titles[1]
    shown = page.locator(".moves [data-row]:visible")
    passed = shown.locator(".counts-of").all_inner_texts()
    assert passed
    for words in passed:
        before, after = words.partition(" of ")[0].split(" → ")
        assert before != after
    names = page.locator(".moves:visible .heads [data-agent]").all_inner_texts()[:2]
    assert names == ["goose_claude-4-opus", "chaterm_claude-4-sonnet"]
    assert page.locator(".moves .bar .was").first.evaluate("e => getComputedStyle(e).fill") == (
        page.evaluate("getComputedStyle(document.querySelector('.pane')).backgroundColor")
    )


def test_one_of_twelve_agents_is_followed_through_every_picture_and_k_orders_them_anew(
    published, open_page
):
    page = open_page(published["several"], viewport={"width": 1280, "height": 900})
    page.get_by_label("Follow one agent").select_option("o3")
    assert page.url.endswith("?follow=o3")
    for place in ("systems", "curves", "matrix"):
        on = page.locator(f"[data-figure={place}]:visible g.on")
        assert set(on.evaluate_all("all => all.map(e => e.dataset.of)")) == {"o3"}, place
    rows = page.locator("[data-at-k]:visible tbody th")
    order = rows.all_inner_texts()
    page.get_by_role("slider").fill("0")
    assert rows.all_inner_texts() != order
    assert page.locator("[data-at-k]:visible tr.on th").all_inner_texts() == ["o3"]
    page.locator("[data-figure=matrix]").focus()
    page.keyboard.press("ArrowRight")
    assert "passed 100% of its trials" in page.locator("[data-figure=matrix] output").inner_text()


def test_the_page_of_a_gate_names_what_is_demanded_and_how_many_tasks_are_missing(
    published, open_page
):
    page = open_page(published["gate"], viewport={"width": 1280, "height": 800})
    assert page.locator(".gauge .demand").get_attribute("x1") == "50.0%"
    assert page.locator(".gauge").get_by_text("demanded").is_visible()
    hero = page.locator(".hero").inner_text()
    assert "At least 15 more tasks must pass every trial" in hero
    assert page.evaluate("document.documentElement.scrollHeight") <= 900
