"""The page of two runs in a real browser: cards, folds, search, keys, at any width and theme."""

import json

import pytest

from passhat import Trials, diff_runs
from passhat.records.transcript import Call, Check, Transcript, Turn
from passhat.reporters import render


def transcript(*tools, text="Help me", order="W1", failed=False):
    turns = [Turn(role="system", text="Rules. " * 200), Turn(role="user", text=text)]
    for i, tool in enumerate(tools):
        arguments = json.dumps({"order": order, "deep": {"a": [1, 2]}})
        call = Call(name=tool, arguments=arguments, id=str(i))
        answer = json.dumps({"status": text, "items": [{"n": i}]})
        turns += [
            Turn(role="assistant", text=text, calls=(call,)),
            Turn(role="tool", text=answer, call_id=str(i), is_error=failed and i == 1),
        ]
    checks = (Check(target="answer", matcher="contains", score=float(not failed), message=text),)
    return Transcript(messages=tuple(turns), checks=checks, stop_reason="done").to_json()


@pytest.fixture
def page_of(tmp_path):
    def write(runs, task="refund"):
        trials = Trials.from_columns(task=[task] * len(runs), passed=[ok for ok, _ in runs])
        said = {("system", task, i): text for i, (_, text) in enumerate(runs)}
        path = tmp_path / "diff.html"
        path.write_text(render(diff_runs(trials, said, task), "html"), encoding="utf-8")
        return path.as_uri()

    return write


@pytest.fixture
def address(page_of):
    return page_of(
        [
            (False, transcript("look", "cancel", failed=True)),
            (True, transcript("look", "refund", text="Thank you")),
            (False, transcript("cancel", failed=True)),
        ]
    )


AGAIN = pytest.mark.slow("the same page in other colours or at another width")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 400),
        pytest.param("dark", 1280, marks=AGAIN),
        pytest.param("light", 400, marks=AGAIN),
        pytest.param("light", 1280, marks=AGAIN),
    ],
)
def test_nobody_is_kept_out(address, open_page, axe_violations, width, scheme):
    page = open_page(address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_without_scripts_everything_can_be_read(address, open_page):
    page = open_page(address, java_script_enabled=False)
    assert page.get_by_text("Here they first differ").is_visible()
    assert page.locator("#side .card").count() > 8
    assert not page.get_by_label("Find in what was said").is_visible()
    page.locator("#run-2 > summary").click()
    assert page.locator("#run-2 .card").first.is_visible()


def test_the_failed_check_is_pinned_above_the_cards(address, open_page):
    page = open_page(address, viewport={"width": 1280, "height": 900})
    check = page.locator("#side .checks .bad").first
    first = page.locator("#side .card").first
    assert check.bounding_box()["y"] < first.bounding_box()["y"]
    assert "failed" in check.inner_text()


def test_calls_that_both_made_stand_beside_each_other(address, open_page):
    page = open_page(address, viewport={"width": 1280, "height": 900})
    row = page.locator("#side .pair:not(.heads)").nth(1)
    ends = [side.locator(".card.result").last.bounding_box() for side in row.locator("> div").all()]
    assert ends[0]["x"] < ends[1]["x"]
    assert page.locator("#side .card.differs").count() == 2


def test_search_shows_the_cards_that_say_it(address, open_page):
    page = open_page(address)
    page.get_by_label("Find in what was said").fill("thank you")
    assert "of" in page.locator("[data-found]").inner_text()
    shown = page.locator("#side .card:visible").all_inner_texts()
    assert shown
    assert page.locator("#side .card:visible").count() < page.locator("#side .card").count()


def test_an_address_opens_its_run_and_keys_go_on(address, open_page):
    page = open_page(address + "#run-1")
    assert page.locator("#run-1").get_attribute("open") is not None
    page.keyboard.press("n")
    page.wait_for_function("location.hash === '#run-0'")
    assert page.locator("#run-0").get_attribute("open") is not None
    page.keyboard.press("p")
    page.wait_for_function("location.hash === '#run-1'")


def test_results_are_folded_and_open_together(address, open_page):
    page = open_page(address)
    assert page.locator("#side .card details[open]").count() == 0
    page.get_by_role("button", name="Open all results").click()
    closed = page.locator("#side .card details:not([open])").count()
    assert closed == 0


def test_no_payload_runs_wherever_it_stands(page_of, open_page, corpus):
    text = "\n".join(corpus)
    runs = [(i == 0, transcript("look", text=text, order=text, failed=True)) for i in range(2)]
    runs += [(True, transcript(one, text=one, order=one, failed=True)) for one in corpus[:12]]
    page = open_page(page_of(runs, task=corpus[0]))
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    assert page.evaluate("window.hit") is None
    assert page.locator("main script, main img, main iframe, main svg").count() == 0
