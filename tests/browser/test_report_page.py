import base64
import json
import re

import pytest
from click.testing import CliRunner

from passhat import compare, rank, render_html
from passhat.analysis.comparing.trends import CountedRun, find_flaky, trends
from passhat.analysis.explaining.explain import explain
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import demonstrate, simulate
from passhat.analysis.reports.measure import measure
from passhat.cli import main
from passhat.ingest import read_with_transcripts
from passhat.messages import percent
from passhat.records import Source, Trials
from passhat.reporters.formats.html import page_style
from passhat.reporters.page_parts import task_anchor

MORE = pytest.mark.slow("the same law on the page of another answer")
SCHEMES = [
    "dark",
    pytest.param("light", marks=pytest.mark.slow("the same page in its other colours")),
]

WIDTHS = [
    400,
    pytest.param(1280, marks=pytest.mark.slow("the same page at its other width")),
]


def page_of(trials, folder, /, **options):
    path = folder / "report.html"
    path.write_text(render_html(measure(trials), **options), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return page_of(simulate(tasks=12, runs=8, seed=4), tmp_path_factory.mktemp("report"))


def test_the_page_begins_with_the_answer(report, open_page):
    page = open_page(report.as_uri())
    assert "agent is not reliable" in page.locator("h1").inner_text()


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    rate = {"hasty": 0.45, "careful": 0.95, "middling": 0.7}
    trials = simulate(tasks=24, runs=6, rate=rate, seed=3)
    return page_of(trials, tmp_path_factory.mktemp("several"))


def test_several_systems_begin_with_a_table_of_all_that_leads_to_each(several, open_page):
    page = open_page(several.as_uri(), viewport={"width": 1280, "height": 800})
    table = page.locator("table").first
    heads = table.locator("thead th").all_inner_texts()
    assert heads == ["in %", "rank", "pass@1", "pass^5", "these tasks", "similar tasks"]
    assert table.locator("tbody th").all_inner_texts() == ["careful", "middling", "hasty"]
    values = [float(text) for text in table.locator("tbody td:nth-child(4)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    for name in ("hasty", "middling"):
        table.get_by_role("link", name=name).click()
        box = page.locator(".system summary h2", has_text=name).bounding_box()
        assert abs(box["y"]) < 100, name
        assert page.locator(f"section[data-system={name}] [data-row]").first.is_visible()
    page.get_by_role("link", name="All agents").last.click()
    assert abs(page.locator("h2#systems").bounding_box()["y"]) < 100


@pytest.mark.parametrize("scripts", [True, False])
def test_each_of_several_systems_opens_when_asked_for(several, open_page, scripts):
    page = open_page(several.as_uri(), java_script_enabled=scripts)
    seen = {
        name: page.locator(f"section[data-system={name}] [data-row]")
        for name in ("careful", "middling", "hasty")
    }
    assert {name: rows.count() for name, rows in seen.items()} == dict.fromkeys(seen, 24)
    assert not any(rows.first.is_visible() for rows in seen.values())
    page.locator(".system summary", has_text="hasty").click()
    assert seen["hasty"].first.is_visible()
    assert not seen["middling"].first.is_visible()


@pytest.mark.slow("a detail of the page, in a real browser")
def test_paper_shows_the_systems_that_were_opened(several, open_page, printed):
    page = open_page(several.as_uri())
    row = re.compile(r"^ *task-\d\d +[●○× ]+$", re.MULTILINE)
    closed = printed(page).pages()
    assert len(closed) <= 3
    assert not row.findall("".join(closed))
    page.locator(".system summary", has_text="hasty").click()
    assert len(row.findall("".join(printed(page).pages()))) == 24


def test_several_systems_are_compared_in_four_pictures_that_state_what_they_show(
    several, open_page
):
    page = open_page(several.as_uri())
    shown = page.locator("main > .panes figure:visible")
    assert shown.count() == 4
    for figure in shown.all():
        assert figure.locator(".of-figure").inner_text()
        assert figure.locator("figcaption").inner_text().endswith(".")


def test_the_slider_moves_number_gauge_table_and_curve_together(report, open_page):
    page = open_page(report.as_uri())
    before = page.locator("[data-value]").inner_text()
    slider = page.get_by_role("slider")
    slider.fill("0")
    assert page.locator("[data-name]").inner_text() == "one trial (pass@1)"
    assert page.locator("[data-value]").inner_text() != before
    assert page.locator("tr.at th").all_inner_texts() == ["pass@1"]
    assert page.locator("[data-figure=decay] svg > path:last-child").get_attribute("d")
    last = slider.get_attribute("max")
    slider.fill(last)
    assert "model" in page.locator("[data-intervals]").inner_text()
    assert page.locator("[data-value]").inner_text().startswith("\N{ALMOST EQUAL TO}")


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("width", WIDTHS)
def test_the_labels_below_the_gauge_are_at_their_ticks(report, open_page, width):
    page = open_page(report.as_uri(), viewport={"width": width, "height": 800})
    axis = page.locator(".gauge .ground").bounding_box()
    for label in ("25", "50", "75"):
        box = page.locator(".gauge text").get_by_text(label, exact=True).bounding_box()
        middle = (box["x"] + box["width"] / 2 - axis["x"]) / axis["width"]
        assert middle == pytest.approx(int(label) / 100, abs=0.01)


@pytest.mark.parametrize(
    "rate",
    [
        pytest.param(0.8, id="one agent"),
        pytest.param({"a": 0.9, "b": 0.7}, id="two agents", marks=MORE),
    ],
)
def test_the_slider_begins_at_the_k_that_was_asked_for_and_moves_over_all(
    rate, tmp_path, open_page
):
    trials = simulate(tasks=20, runs=8, rate=rate, seed=2)
    path = tmp_path / "report.html"
    path.write_text(render_html(measure(trials, ks=[4])), encoding="utf-8")
    page = open_page(path.as_uri())
    slider, shown = page.get_by_role("slider"), page.locator("[data-k-shown]")
    assert shown.inner_text() == "4"
    answer = page.locator("h1:visible").inner_text()
    said = {}
    for place in range(int(slider.get_attribute("max")) + 1):
        slider.fill(str(place))
        k = int(shown.inner_text())
        assert f"k={k}" in page.url
        said[k] = page.locator(".h1:visible").inner_text()
    assert {1, 2, 3, 4, 5} <= set(said)
    assert said[4] == answer
    assert len(set(said.values())) > 3


def test_a_link_to_a_task_opens_the_system_it_belongs_to(several, open_page):
    page = open_page(several.as_uri())
    row = page.locator("section[data-system=hasty] [data-row]").first
    page.goto(f"{several.as_uri()}#{row.get_attribute('id')}")
    page.reload()
    assert page.locator("section[data-system=hasty] [data-row]").first.is_visible()


def test_k_and_what_was_found_and_sorted_stand_in_the_address(report, open_page):
    page = open_page(report.as_uri())
    page.get_by_label("Order").select_option("name")
    page.get_by_label("Find").fill("task-1")
    page.get_by_role("slider").fill("2")
    shown = page.locator("[data-row]:visible")
    names = shown.evaluate_all("all => all.map(row => row.dataset.row)")
    assert 0 < len(names) < 12
    assert names == sorted(names)
    assert "k=3" in page.url
    again = open_page(page.url)
    rows = again.locator("[data-row]:visible")
    assert rows.evaluate_all("all => all.map(row => row.dataset.row)") == names
    value = again.locator("[data-value]").inner_text()
    assert value == page.locator("[data-value]").inner_text()
    assert again.locator("[data-name]").inner_text() == "3 in a row (pass^3)"


@pytest.mark.slow("a detail of the page, in a real browser")
def test_tables_and_pictures_can_be_saved(report, open_page):
    page = open_page(report.as_uri())
    with page.expect_download() as csv_file:
        page.locator("[data-save=csv]").click()
    rows = csv_file.value.path().read_text().splitlines()
    assert len(rows) == 13
    with page.expect_download() as picture:
        page.locator("[data-save=svg]").first.click()
    svg = picture.value.path().read_text()
    assert "rgb(" in svg
    assert "var(" not in svg


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_picture_is_saved_with_dark_ink_on_white_and_its_numbers_as_rows(
    report, open_page, scheme
):
    page = open_page(report.as_uri(), color_scheme=scheme)
    with page.expect_download() as picture:
        page.locator("[data-save=png]").first.click()
    bytes_ = picture.value.path().read_bytes()
    assert bytes_.startswith(b"\x89PNG")
    columns = open_page("about:blank").evaluate(COLUMNS, base64.b64encode(bytes_).decode())
    assert columns[0][:3] == [255, 255, 255]
    with page.expect_download() as saved:
        page.locator("[data-save=svg]").first.click()
    svg = saved.value.path().read_text()
    ink = re.search(r"<text[^>]* fill=\"rgb\((\d+), (\d+), (\d+)\)", svg)
    assert contrast([int(part) for part in ink.groups()], (255, 255, 255)) >= 4.5
    with page.expect_download() as numbers:
        page.locator("[data-save=rows]").first.click()
    head, *rows = numbers.value.path().read_text().splitlines()
    assert head == '"line","attempts in a row (k)","value","low","high"'
    assert len(rows) >= 8


@pytest.mark.slow("a detail of the page, in a real browser")
def test_the_slider_ranks_several_systems_anew(tmp_path, open_page):
    # steady passes every second task always; wobbly passes each task most of the time
    steady = [True, True, True, True, False, False, False, False] * 6
    rows = [("steady", f"t{i}", steady[i]) for i in range(48) for _ in range(4)]
    rows += [("wobbly", f"t{i}", run < 3) for i in range(48) for run in range(4)]
    names, tasks, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(system=list(names), task=list(tasks), passed=list(passed))
    page = open_page(page_of(trials, tmp_path).as_uri())
    first = page.locator("[data-at-k]:visible tbody th")
    assert first.all_inner_texts() == ["steady", "wobbly"]
    before = page.locator("h1:visible, .h1:visible").inner_text()
    page.get_by_role("slider").fill("0")
    assert first.all_inner_texts() == ["wobbly", "steady"]
    assert page.locator("h1:visible, .h1:visible").inner_text() != before
    assert page.locator("[data-at-k]:visible figure").count() == 1
    assert page.locator("[data-figure=curves] svg > path:last-child").get_attribute("d")


@pytest.mark.slow("a detail of the page, in a real browser")
def test_an_agent_is_followed_through_tables_and_pictures_and_stands_in_the_address(
    several, open_page, axe_violations
):
    page = open_page(several.as_uri(), viewport={"width": 1280, "height": 900})
    page.get_by_label("Follow one agent").select_option("middling")
    assert page.url.endswith("?follow=middling")
    for place in ("systems", "curves", "matrix"):
        on = page.locator(f"[data-figure={place}]:visible g.on")
        assert set(on.evaluate_all("all => all.map(e => e.dataset.of)")) == {"middling"}, place
    row = page.locator("[data-at-k]:visible tr.on th")
    assert row.all_inner_texts() == ["middling"]
    page.reload()
    assert page.get_by_label("Follow one agent").input_value() == "middling"
    assert axe_violations(page) == []
    page.locator("[data-figure=matrix] text", has_text="hasty").first.click()
    assert page.url.endswith("?follow=hasty")
    page.get_by_role("slider").fill("0")
    assert "k=1" in page.url
    assert row.all_inner_texts() == ["hasty"]


def test_arrow_keys_read_out_the_cells_of_the_matrix(several, open_page):
    page = open_page(several.as_uri(), viewport={"width": 1280, "height": 900})
    grid = page.locator("[data-figure=matrix]")
    heads, *tasks = json.loads(grid.get_attribute("data-rows"))
    grid.focus()
    said = {}
    for key, at in (("ArrowRight", (0, 0)), ("ArrowRight", (1, 0)), ("ArrowDown", (1, 1)),
                    ("ArrowLeft", (0, 1)), ("ArrowLeft", (0, 1)), ("ArrowUp", (0, 0))):  # fmt: skip
        page.keyboard.press(key)
        said[at] = grid.locator("output").inner_text()
        share = tasks[at[0]][at[1] + 1]
        words = f"{heads[at[1] + 1]}, {tasks[at[0]][0]}: passed {percent(share)} of its trials"
        assert said[at] == words
    shares = {share for task in tasks for share in task[1:] if share is not None}
    read = dict(
        word.split("=") for word in grid.locator("[data-words]").get_attribute("data-words").split()
    )
    assert {float(share): shown for share, shown in read.items()} == {s: percent(s) for s in shares}
    # What is pointed at is read out too: the cell that the mark is drawn around.
    page.keyboard.press("ArrowDown")
    box = box_of(grid.locator("[data-columns]"))
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert grid.locator("output").inner_text() == said[0, 1]


@pytest.mark.slow("a detail of the page, in a real browser")
def test_the_columns_of_the_matrix_have_a_second_order_that_stands_in_the_address(
    several, open_page
):
    page = open_page(several.as_uri(), viewport={"width": 1280, "height": 900})
    grid = page.locator("[data-figure=matrix]")
    _, *tasks = json.loads(grid.get_attribute("data-rows"))
    drawn = "svg => [...svg.querySelectorAll('[data-of] path')].map(one => one.getAttribute('d'))"
    before = grid.locator("svg").first.evaluate(drawn)
    page.get_by_role("button", name="Easiest first").click()
    assert "columns=easiest" in page.url
    page.reload()
    assert page.get_by_role("button", name="Easiest first").get_attribute("aria-pressed") == "true"
    grid.focus()
    said = []
    for _ in tasks:
        page.keyboard.press("ArrowRight")
        said.append(grid.locator("output").inner_text().split(", ")[1].split(":")[0])
    means = {name: -sum(shares) / len(shares) for name, *shares in tasks}
    assert said == sorted(means, key=means.get)
    # The mark is around the cell that is read out: what is drawn there has its share.
    box = box_of(grid.locator("[data-columns]"))
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert said[-1] in grid.locator("output").inner_text()
    page.get_by_role("button", name="Alike tasks together").click()
    assert "columns=" not in page.url
    assert grid.locator("svg").first.evaluate(drawn) == before


@pytest.mark.slow("every picture of several systems in a real browser")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_accessibility_rule_is_broken_by_several_systems(
    several, open_page, axe_violations, scheme
):
    page = open_page(several.as_uri(), color_scheme=scheme, viewport={"width": 400, "height": 800})
    assert axe_violations(page) == []
    for summary in page.locator("summary").all():
        summary.click()
    assert axe_violations(page) == []


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    return page_of(simulate(tasks=400, runs=3, seed=6), tmp_path_factory.mktemp("long"))


@pytest.mark.slow("a detail of the page, in a real browser")
def test_a_link_to_the_last_row_of_a_long_table_shows_it(long_table, open_page):
    page = open_page(long_table.as_uri())
    last = page.locator("[data-row]").last.get_attribute("id")
    page.goto(f"{long_table.as_uri()}#{last}")
    page.reload()
    box = page.locator(f"[id='{last}'] .name").bounding_box()
    assert 0 <= box["y"] < page.viewport_size["height"]


@pytest.mark.slow("prints many pages to paper and reads them back")
def test_paper_shows_every_task_of_a_long_list_also_of_folded_groups(
    long_table, open_page, printed
):
    page = open_page(long_table.as_uri())
    assert page.locator("[data-row]:visible").count() == 0
    words = "\n".join(printed(page).pages())
    assert len(set(re.findall(r"^ *(task-\d{3})\b", words, re.M))) == 400
    assert re.search(r"\d+ tasks passed 1 of 3", words)


def test_a_narrow_window_stacks_a_task_and_shows_all_of_it(report, open_page):
    page = open_page(report.as_uri(), viewport={"width": 400, "height": 800})
    cells = page.locator("[data-row]").first.locator("> div")
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 400 for box in boxes)
    assert len({round(box["y"]) for box in boxes}) > 1


def test_tasks_are_put_in_order_and_found_by_text_and_label(report, open_page):
    page = open_page(report.as_uri())
    names = page.locator("[data-row]:visible .name")
    by_passes = names.all_inner_texts()
    page.get_by_label("Order").select_option("name")
    assert names.all_inner_texts() == sorted(by_passes)
    page.get_by_label("Order").select_option("")
    assert names.all_inner_texts() == by_passes
    page.get_by_role("searchbox").fill(by_passes[0])
    assert names.all_inner_texts() == [by_passes[0]]
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Label").select_option("flaky")
    labels = page.locator("[data-row]:visible .label").all_inner_texts()
    assert labels
    assert set(labels) == {"flaky"}


def test_tasks_of_all_groups_stand_in_one_list_by_name_and_by_score(tmp_path, open_page):
    # Ten counts: a group of those within a quarter of the rate states no interval of its own.
    scores = {f"task-{i:02}": [1.0] * (i % 10) + [i / 80] * (9 - i % 10) for i in range(20)}
    task, score = zip(*((name, one) for name, all_ in scores.items() for one in all_), strict=True)
    trials = Trials.from_columns(task=list(task), score=list(score))
    page = open_page(page_of(trials, tmp_path).as_uri(), viewport={"width": 1280, "height": 900})
    rows = page.locator("[data-row]:visible")
    for order, names in (
        ("name", sorted(scores)),
        ("score", sorted(scores, key=lambda name: round(sum(scores[name]) / 9, 4))),
    ):
        page.get_by_label("Order").select_option(order)
        assert rows.locator(".name").all_inner_texts() == names
        for cell in (".runs", ".score"):
            assert len({box_of(one)["x"] for one in rows.locator(cell).all()}) == 1


def test_a_long_list_in_another_order_is_laid_out_where_it_is_seen(tmp_path, open_page):
    trials = simulate(tasks=400, runs=3, seed=1)
    page = open_page(page_of(trials, tmp_path).as_uri())
    page.get_by_label("Order").select_option("name")
    row = page.locator("[data-row]").first
    assert row.evaluate("row => getComputedStyle(row).contentVisibility") == "auto"


@pytest.mark.slow("a detail of the page, in a real browser")
def test_a_thousand_tasks_fold_into_a_page_of_a_screen_or_two_and_are_found(
    tmp_path, monkeypatch, open_page
):
    monkeypatch.chdir(tmp_path)  # the commands on a page repeat the path that was given
    path = tmp_path / "big.html"
    made = ["simulate", "--tasks", "1000", "--trials", "20", "--rate", "agent=0.8"]
    for words in ([*made, "-o", "big.csv"], ["report", "big.csv", "-o", path.name]):
        assert CliRunner().invoke(main, words).exit_code == 0
    assert len(path.read_bytes()) <= 563 * 1024
    page = open_page(path.as_uri(), viewport={"width": 1280, "height": 800})
    assert page.locator(".group").count() <= 6
    assert page.evaluate("document.documentElement.scrollHeight") <= 1_500
    page.get_by_role("searchbox").fill("task-0421")
    assert page.locator("[data-row]:visible .name").all_inner_texts() == ["task-0421"]
    page.get_by_role("searchbox").fill("")
    assert page.locator("[data-row]:visible").count() == 0  # folded again


@pytest.mark.slow("a detail of the page, in a real browser")
def test_tasks_with_the_same_count_are_one_group_with_one_interval(tmp_path, open_page):
    counts = {f"t{n}": n % 5 for n in range(40)}
    passed = [run < passes for passes in counts.values() for run in range(4)]
    trials = Trials.from_columns(task=[name for name in counts for _ in range(4)], passed=passed)
    page = open_page(page_of(trials, tmp_path).as_uri(), viewport={"width": 1280, "height": 800})
    assert page.locator(".group summary b").all_inner_texts() == [
        f"8 tasks passed {passes} of 4" for passes in (1, 2, 3, 0, 4)
    ]
    assert page.locator(".group summary .reach").count() == 5
    assert page.locator(".group[open]").count() == 1  # the one where eyes are needed
    assert page.locator(".group li .bar").count() == 0


@pytest.mark.slow("a detail of the page, in a real browser")
def test_tasks_with_the_same_rate_stand_in_the_order_of_their_numbers(tmp_path, open_page):
    names = ["0", "10", "14", "3", "20"]
    trials = Trials.from_columns(task=names * 2, passed=[True] * 5 + [False] * 5)
    page = open_page(page_of(trials, tmp_path).as_uri())
    expected = ["Task 0", "Task 3", "Task 10", "Task 14", "Task 20"]
    assert page.locator("[data-row] .name").all_inner_texts() == expected


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_accessibility_rule_is_broken(report, open_page, axe_violations, scheme):
    page = open_page(report.as_uri(), color_scheme=scheme)
    assert axe_violations(page) == []


def test_everything_can_be_read_without_javascript(report, open_page):
    page = open_page(report.as_uri(), java_script_enabled=False)
    assert page.locator("[data-row]:visible").count() == 12
    assert page.locator("svg").count() >= 4
    assert not page.get_by_role("searchbox").is_visible()


@pytest.mark.slow("every picture on pages of many systems, at two widths")
def test_no_word_of_a_picture_is_cut_off(tmp_path, open_page, words_outside):
    rate = {"careful-with-a-long-name": 0.95, "hasty": 0.45}
    trials = simulate(tasks=14, runs=8, rate=rate, seed=3)
    comparison = compare(*(trials.where(system=name) for name in rate))
    pages = {
        "report": render_html(measure(trials)),
        "compare": render_html(comparison),
        "rank": render_html(rank(trials)),
    }
    for name, text in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        for width in (400, 1280):
            page = open_page(path.as_uri(), viewport={"width": width, "height": 800})
            assert page.locator("svg text").count() > 0, name
            assert words_outside(page) == [], name


COVERED = """() => [...document.querySelectorAll("svg.ph")].flatMap(svg => {
  const words = [...svg.querySelectorAll("text")].filter(text => text.getClientRects().length);
  const boxes = words.map(text => text.getBoundingClientRect());
  const wide = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1;
  const tall = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  return words.flatMap((text, i) => boxes.slice(i + 1)
    .filter(box => wide(boxes[i], box) && tall(boxes[i], box)).map(() => text.textContent));
})"""


@pytest.mark.slow("every picture on pages of many systems, at two widths")
def test_no_word_of_a_picture_covers_another_on_a_page_of_twelve_close_systems(tmp_path, open_page):
    rate = {f"vendor-{n % 3}/model-{n:02}-preview": 0.5 + 0.03 * n for n in range(12)}
    path = page_of(simulate(tasks=15, runs=5, rate=rate, seed=5), tmp_path)
    for width in (400, 1280):
        page = open_page(path.as_uri(), viewport={"width": width, "height": 800})
        assert page.locator("figure[data-figure=cost] svg text.halo").count() == 12
        assert page.evaluate(COVERED) == []


CUT = """() => [...document.querySelectorAll("svg.ph:not(.wide)")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  if (!svg.getClientRects().length) return [];
  return box.left < 0 || box.right > innerWidth ? [svg.textContent] : [];
})"""

HINTS = """() => [...document.querySelectorAll(".scroll, figure:has(svg.wide)")].map(box => {
  const before = box.scrollWidth > box.clientWidth;
  box.scrollLeft = 10_000;
  const last = box.querySelector("thead tr :last-child, svg").getBoundingClientRect();
  return {
    before, reached: last.right <= box.getBoundingClientRect().right + 1,
    focus: box.tabIndex === 0,
    hint: getComputedStyle(box).backgroundAttachment.split(", ").includes("scroll"),
  };
})"""


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_a_telephone_no_picture_is_cut_and_what_scrolls_shows_it(
    tmp_path, open_page, axe_violations, small_words, scheme
):
    trials = simulate(tasks=8, runs=40, rate={"careful": 0.9, "hasty": 0.6}, seed=3)
    phone = {"viewport": {"width": 400, "height": 800}, "color_scheme": scheme}
    page = open_page(page_of(trials, tmp_path).as_uri(), **phone)
    assert page.evaluate(CUT) == []
    assert small_words(page) == []
    boxes = page.evaluate(HINTS)
    assert any(box["before"] for box in boxes)
    assert all(box["reached"] and box["focus"] and box["hint"] for box in boxes), boxes
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert axe_violations(page) == []


@pytest.mark.slow("twelve systems, at two widths")
def test_pictures_of_many_systems_fit_a_telephone(tmp_path, open_page, small_words, words_outside):
    rate = {f"a-long-name-of-system-{n:02}": 0.9 - 0.07 * n for n in range(12)}
    path = page_of(simulate(tasks=60, runs=4, rate=rate, seed=2), tmp_path)
    page = open_page(path.as_uri(), viewport={"width": 400, "height": 800})
    figures = page.locator("main > .panes figure:visible")
    assert figures.count() == 4
    assert figures.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")
    assert page.evaluate(CUT) == small_words(page) == words_outside(page) == []
    (drawn,) = page.locator("[data-figure=matrix] svg:visible").all()
    assert "mean pass rate in %" in drawn.text_content()
    assert "each group of tasks is one column" in page.locator(".only-narrow:visible").inner_text()
    desk = open_page(path.as_uri(), viewport={"width": 1280, "height": 800})
    (drawn,) = desk.locator("[data-figure=matrix] svg:visible").all()
    assert "60 tasks" in drawn.text_content()
    assert desk.locator(".only-narrow:visible").count() == 0


def test_a_button_switches_between_light_and_dark(report, open_page):
    page = open_page(report.as_uri(), color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate(ground) != dark
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate(ground) == dark


CHAT = {
    name: json.dumps(
        {
            "messages": [
                {"role": "user", "text": "Please cancel my flight"},
                {"role": "assistant", "calls": [{"name": "find", "arguments": '{"id": 7}'}]},
                {"role": "tool", "name": "find", "text": "found"},
                {"role": "assistant", "calls": [{"name": name, "arguments": "{}"}]},
                {"role": "assistant", "text": "Done"},
            ],
            "checks": [{"target": "answer", "score": score, "message": "no refund"}],
        }
    )
    for name, score in (("cancel", 0.0), ("refuse", 1.0))
}


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    trials = Trials.from_columns(
        task=[f"{n}" for n in range(20) for _ in range(4)],
        passed=[n % 2 == run % 2 for n in range(20) for run in range(4)],
    )
    said = {
        (row.system, row.task, row.trial): CHAT["refuse" if row.outcome else "cancel"]
        for row in trials
    }
    return page_of(trials, tmp_path_factory.mktemp("chats"), transcripts=said)


def test_the_mark_of_a_trial_opens_it_by_its_address_and_keys_walk_through(
    chats, open_page, axe_violations
):
    page = open_page(chats.as_uri(), viewport={"width": 1280, "height": 800})
    row = page.locator("[data-row='1']")
    assert "Please cancel my flight" in row.inner_text()
    marks = row.locator(".marks a")
    assert [mark.get_attribute("aria-label") for mark in marks.all()] == [
        "Trial #1, failed", "Trial #2, passed", "Trial #3, failed", "Trial #4, passed",
    ]  # fmt: skip
    assert all(min(box["width"], box["height"]) >= 24 for box in map(box_of, marks.all()))
    marks.first.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    marks.first.click()
    assert page.url.endswith("#task-1-trial-1")
    trial = page.locator(".trial:visible")
    assert trial.count() == 1
    assert trial.locator(".checks").inner_text().startswith("✕ failed answer")
    assert page.evaluate("scrollY") == before
    assert axe_violations(page) == []
    page.keyboard.press("]")
    assert page.url.endswith("#task-1-trial-2")
    top = "document.querySelector('.drawer.on, .drawer:has(.trial:target)').scrollTop"
    page.set_viewport_size({"width": 1280, "height": 300})
    page.keyboard.press("j")
    assert page.evaluate(top) > 0
    page.keyboard.press("Escape")
    page.locator(".trial:visible").wait_for(state="detached")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#task-1-trial-1"
    assert "#" not in page.url


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("dark", 1280),
        pytest.param("light", 400, marks=pytest.mark.slow("the same page once more")),
    ],
)
def test_no_accessibility_rule_is_broken_by_an_open_trial(
    chats, open_page, axe_violations, scheme, width
):
    page = open_page(
        chats.as_uri() + "#task-1-trial-1",
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
    )
    assert page.locator(".trial:visible").count() == 1
    assert axe_violations(page) == []


@pytest.mark.slow("a detail of the page, in a real browser")
def test_a_sheet_lists_the_keys_of_a_page_and_turns_them_off(chats, open_page, axe_violations):
    page = open_page(chats.as_uri(), viewport={"width": 1280, "height": 800})
    focused = "document.activeElement"
    page.keyboard.press("j")
    assert page.evaluate(f"{focused}.closest('li').dataset.row") is not None
    page.keyboard.press("/")
    assert page.evaluate(f"{focused}.type") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    assert "next row or message" in sheet.inner_text()
    assert axe_violations(page) == []
    sheet.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    assert not sheet.is_visible()
    page.goto(chats.as_uri() + "#task-1-trial-1")
    page.keyboard.press("]")
    assert page.url.endswith("#task-1-trial-1")  # letters are off
    page.keyboard.press("Escape")
    assert "#" not in page.url  # Escape is no letter
    page.keyboard.press("?")
    assert not sheet.is_visible()
    page.get_by_role("button", name="Keys").click()  # the button is always there
    assert sheet.is_visible()


def box_of(place):
    return place.bounding_box()


UNLINKED = """() => [...document.querySelectorAll("[data-row]")]
  .filter(row => row.getClientRects().length && /[●○×]/.test(row.textContent)).flatMap(row => {
    const marks = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    const loose = [];
    while (marks.nextNode()) {
      const { data, parentElement } = marks.currentNode;
      if (/[●○×]/.test(data) && !parentElement.closest("a[href]")) loose.push(data);
    }
    return row.querySelector(".name a[href]") ? loose : [...loose, row.dataset.row];
  })"""


def without_transcripts(kind):
    """A page of this kind that has no transcript, and the address of a trial on it."""
    trials = simulate(tasks=60, runs=4, rate={"new": 0.55, "old": 0.75, "mid": 0.65}, seed=5)
    one = trials.where(system="new")
    if kind == "report":
        return render_html(measure(one), trials=one), "#task-task-07-trial-3"
    if kind == "several":
        return render_html(measure(trials)), f"#{task_anchor('old', 'task-07')}-trial-3"
    both = compare(one, trials.where(system="old"))
    return render_html(both), f"#{task_anchor('old', 'task-07')}-trial-3"


@pytest.mark.parametrize(
    "kind", ["report", pytest.param("several", marks=MORE), pytest.param("compare", marks=MORE)]
)
def test_every_name_and_mark_is_a_link_also_without_a_transcript(
    kind, tmp_path, open_page, axe_violations
):
    text, address = without_transcripts(kind)
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    page = open_page(path.as_uri(), viewport={"width": 1280, "height": 900})
    for fold in page.locator("[data-tasks].fold, .group").all():
        fold.evaluate("fold => (fold.open = true)")
    for row in page.locator("[data-row]:visible").all()[::6]:
        row.scroll_into_view_if_needed()
    last = page.locator("[data-row]:visible").last
    last.scroll_into_view_if_needed()
    last.locator(".marks a").first.wait_for()
    page.wait_for_function(f"({UNLINKED})().length === 0")
    mark = last.locator(".marks a.passed").first
    said, before = mark.get_attribute("aria-label"), page.evaluate("scrollY")
    mark.click()
    trial = page.locator(".trial:visible")
    trial.wait_for()
    assert said.startswith(trial.locator("h3").inner_text().split("\n")[0].strip())
    assert trial.locator(".chip").inner_text() == "✓ passed"
    assert page.evaluate("scrollY") == before
    drawer = page.locator(".drawer:visible")
    assert drawer.locator(".others a").count() == 4  # all trials of the task
    assert ("seconds" in trial.inner_text()) == (kind == "report")
    assert axe_violations(page) == []
    page.keyboard.press("Escape")
    drawer.wait_for(state="detached")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == said
    # The address alone opens it, and keys go on from there.
    again = open_page(path.as_uri() + address)
    again.locator(".trial:visible h3", has_text="Trial #3").wait_for()
    again.keyboard.press("]")
    again.locator(".trial:visible h3", has_text="Trial #4").wait_for()
    assert again.url.endswith(address.replace("trial-3", "trial-4"))


def test_what_is_known_of_a_trial_is_that_trial_s_also_where_numbers_are_missing(
    tmp_path, open_page
):
    trials = Trials.from_columns(
        task=["a"] * 3 + ["b"] * 2,
        trial=[0, 2, 3, 0, 1],
        passed=[True, False, True, False, True],
        seconds=[1.0, 2.5, 31.4, 4.0, 5.0],
        error=["", "out of\x1b[31m time", "", "", ""],
    )
    page = open_page(page_of(trials, tmp_path, trials=trials).as_uri() + "#task-a-trial-3")
    trial = page.locator(".trial:visible")
    trial.locator("dl").wait_for()
    told = trial.locator("dl > div").all_inner_texts()
    assert [one.split("\n") for one in told] == [
        ["seconds", "2.5"],
        ["error", "out of\\x1b[31m time"],
    ]
    assert page.locator("#task-a .marks a").evaluate_all("all => all.map(a => a.hash)") == [
        f"#task-a-trial-{number}" for number in (1, 3, 4)
    ]


RULES_IN_USE = """selectors => selectors.filter(one => {
  const bare = one.replace(/::[a-z-]+|:(hover|focus-visible|focus-within|target)/g, "");
  try { return bare && document.querySelector(bare); } catch { return false; }
})"""


@pytest.mark.slow("a detail of the page, in a real browser")
def test_a_page_has_every_rule_of_style_that_its_elements_use(chats, several, open_page):
    sheet = page_style()
    for page in (open_page(chats.as_uri() + "#task-1-trial-1"), open_page(several.as_uri())):
        page.get_by_role("slider").fill("0")
        if page.locator(".beside-link:visible").count():
            page.locator(".beside-link:visible").first.click()
            page.locator(".fork:visible").wait_for()
        kept = page.locator("style").inner_text()
        for selectors in re.findall(r"(?:^|[{}])([^{}@]+)\{", sheet):
            each = [one for one in re.split(r",(?![^(]*\))", selectors.strip()) if one]
            for used in page.evaluate(RULES_IN_USE, each):
                assert used in kept, used
        assert len(kept) < 0.9 * len(sheet)


MIDDLE = """async (encoded) => {
  const image = new Image();
  image.src = "data:image/png;base64," + encoded;
  await image.decode();
  const canvas = document.createElement("canvas"), draw = canvas.getContext("2d");
  [canvas.width, canvas.height] = [image.width, image.height];
  draw.drawImage(image, 0, 0);
  return [...draw.getImageData(image.width / 2, image.height / 2, 1, 1).data];
}"""


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("medium", ["screen", "print"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_passed_and_failed_differ_in_grey_on_screen_and_on_paper_and_nothing_moves(
    chats, open_page, scheme, medium
):
    page = open_page(chats.as_uri(), color_scheme=scheme, reduced_motion="reduce")
    page.emulate_media(media=medium)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})
    paper = open_page("about:blank")
    middles = {}
    for outcome in ("passed", "failed"):
        mark = page.locator(f"[data-row] .marks a.{outcome}:visible").first
        shot = base64.b64encode(mark.screenshot()).decode()
        middles[outcome] = paper.evaluate(MIDDLE, shot)[:3]
        assert max(middles[outcome]) - min(middles[outcome]) <= 2  # it is grey
    assert contrast(middles["passed"], middles["failed"]) >= 3
    look = "mark => getComputedStyle(mark, '::after').printColorAdjust"
    assert page.locator("[data-row] .marks a").first.evaluate(look) == "exact"
    page.emulate_media(media="screen")
    page.locator("[data-row] .marks a").first.click()
    assert page.locator(".trial:visible").count() == 1
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.slow("every state of a page in a real browser")
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 400),
        pytest.param("dark", 1280, marks=pytest.mark.slow("the same states once more")),
    ],
)
def test_no_accessibility_rule_is_broken_in_any_state_of_a_report(
    chats, open_page, axe_violations, scheme, width
):
    page = open_page(chats.as_uri(), color_scheme=scheme, viewport={"width": width, "height": 800})
    page.get_by_role("slider").fill(page.get_by_role("slider").get_attribute("max"))
    assert axe_violations(page) == []  # not measured
    for fold in page.locator("details").all():
        fold.evaluate("fold => (fold.open = true)")
    assert axe_violations(page) == []  # everything unfolded
    page.get_by_label("Label").select_option("undecided")
    page.get_by_label("Order").select_option("name")
    page.get_by_role("searchbox").fill("1")
    assert axe_violations(page) == []  # some tasks, in another order
    page.get_by_role("button", name="Light / dark").click()
    assert axe_violations(page) == []
    page.goto(chats.as_uri() + "?k=3#task-1-trial-1-beside-2")
    page.locator(".fork:visible").wait_for()
    assert axe_violations(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_of_a_gate_shows_the_number_between_its_bounds_and_what_is_demanded(
    tmp_path, open_page, axe_violations, scheme
):
    verdicts = judge(simulate(tasks=20, runs=4, rate=0.6, seed=2), ["pass^4 >= 0.5"])
    path = tmp_path / "gate.html"
    path.write_text(render_html(verdicts), encoding="utf-8")
    page = open_page(path.as_uri(), color_scheme=scheme, viewport={"width": 400, "height": 800})
    assert page.locator(".big").inner_text().endswith("%")
    axis, demand = (box_of(page.locator(f".gauge .{part}")) for part in ("ground", "demand"))
    at = (demand["x"] + demand["width"] / 2 - axis["x"]) / axis["width"]
    assert at == pytest.approx(0.5, abs=0.01)
    assert page.locator("figure:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert axe_violations(page) == []


def test_a_trial_that_failed_is_read_beside_one_that_passed(chats, open_page, axe_violations):
    page = open_page(chats.as_uri() + "#task-1-trial-1")
    page.get_by_role("link", name="Beside #2, which passed").click()
    banner = page.locator(".fork:visible")
    assert banner.all_inner_texts() == ["≠ Here they part"]
    columns = page.locator(".sides > div")
    assert box_of(columns.nth(0))["x"] < box_of(columns.nth(1))["x"]
    assert "cancel" in columns.nth(2).inner_text()
    assert "refuse" in columns.nth(3).inner_text()
    assert "find" in columns.nth(0).inner_text()
    assert axe_violations(page) == []
    again = open_page(page.url)
    assert again.locator(".fork:visible").count() == 1


def test_without_a_script_a_trial_opens_and_closes_and_no_dead_button_is_shown(chats, open_page):
    page = open_page(chats.as_uri(), java_script_enabled=False)
    assert page.locator("button:visible, input:visible, select:visible").count() == 0
    page.locator("[data-row='0'] .marks a").nth(1).click()
    assert page.locator(".trial:visible .checks").inner_text().startswith("✕ failed")
    assert page.locator(".beside-link:visible").count() == 0
    page.locator(".drawer:visible .close").click()
    assert page.locator(".drawer:visible").count() == 0
    for fold in page.locator(".group:not([open]) > summary").all():
        fold.click()
    assert page.locator("[data-row]:visible").count() == 20


def test_the_page_does_not_scroll_sideways_on_a_telephone(report, open_page):
    page = open_page(report.as_uri(), viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_transcript_is_rendered_as_text_when_it_is_opened(tmp_path, open_page):
    trials = Trials.from_columns(task=["a", "a"], passed=[True, False])
    said = "</script><script>window.hit=1</script>\n<b>bold</b>"
    path = page_of(trials, tmp_path, transcripts={("system", "a", 1): said})
    page = open_page(path.as_uri())
    assert not page.locator("pre").is_visible()
    page.get_by_label("Trial #2").first.click()
    assert page.locator("pre:visible").inner_text() == said
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_paper_is_white_and_has_no_controls(tmp_path, open_page, printed, scheme):
    said = {("agent", "task-01", 0): "user: hello", ("agent", "task-02", 0): "user: bye"}
    path = page_of(simulate(tasks=60, runs=8, seed=4), tmp_path, transcripts=said)
    page = open_page(path.as_uri(), color_scheme=scheme)
    page.locator("[data-row=task-02] .marks a").evaluate("link => link.click()")
    paper = printed(page)
    assert paper.controls == []
    assert paper.ground == "rgb(255, 255, 255)"
    assert paper.beyond <= 0
    text = "".join(paper.pages())
    assert "user: bye" in text  # what was opened is printed
    assert "user: hello" not in text


@pytest.mark.slow("prints many pages to paper and reads them back")
def test_no_heading_is_left_alone_at_the_end_of_a_printed_page(tmp_path, open_page, printed):
    headings = ("Tasks", "What to do next", "What a trial takes", "Notes")
    for tasks in (5, 14, 20):
        trials = simulate(tasks=tasks, runs=8, rate={"careful": 0.9, "hasty": 0.6}, seed=3)
        pages = printed(open_page(page_of(trials, tmp_path).as_uri())).pages()
        ends = [page.strip().splitlines()[-1].strip() for page in pages]
        assert not [end for end in ends if end in headings], tasks


@pytest.mark.parametrize("width", [390, *WIDTHS[1:]])
def test_an_opened_transcript_can_be_read_at_any_width(tmp_path, open_page, width):
    trials = Trials.from_columns(task=["a", "a"], passed=[True, False])
    said = json.dumps({"messages": [{"role": "user", "text": "one two three four " * 40}]})
    path = page_of(trials, tmp_path, transcripts={("system", "a", 1): said})
    page = open_page(path.as_uri(), viewport={"width": width, "height": 800})
    page.get_by_label("Trial #2").first.click()
    assert page.locator(".card").bounding_box()["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("width", WIDTHS)
def test_every_transcript_of_many_runs_can_be_reached(tmp_path, open_page, width):
    trials = Trials.from_columns(task=["a"] * 60, passed=[True, False] * 30)
    said = {("system", "a", run): "words" for run in range(60)}
    path = page_of(trials, tmp_path, transcripts=said)
    page = open_page(path.as_uri(), viewport={"width": width, "height": 800})
    marks = page.locator("[data-row=a] .marks a")
    assert marks.count() == 60
    assert all(
        box["x"] >= 0 and box["x"] + box["width"] <= width for box in map(box_of, marks.all())
    )


# The words away, a picture of the right edge of what scrolls; its colours, column by column.
BARE = """box => { for (const one of box.querySelectorAll("*")) {
  one.style.color = one.style.borderColor = one.style.textDecorationColor = "transparent";
} }"""
COLUMNS = """async picture => {
  const bytes = Uint8Array.from(atob(picture), c => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const paper = new OffscreenCanvas(image.width, image.height).getContext("2d");
  paper.drawImage(image, 0, 0);
  return [...Array(image.width).keys()].map(x => [...paper.getImageData(x, 0, 1, 1).data]);
}"""
COLOURS = """names => names.map(name => {
  document.body.style.color = `var(--${name})`;
  return getComputedStyle(document.body).color.match(/[0-9]+/g).map(Number);
})"""


def contrast(one, other):
    """As WCAG 2.2 defines it."""

    def luminance(colour):
        parts = [c / 255 for c in colour[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_words_over_the_shadow_of_what_scrolls_can_be_read(report, open_page, scheme):
    page = open_page(report.as_uri(), color_scheme=scheme, viewport={"width": 400, "height": 800})
    box = page.locator(".scroll.whole").last
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    box.evaluate(BARE)
    at = box.bounding_box()
    clip = {"x": at["x"] + at["width"] - 40, "y": at["y"] + 30, "width": 40, "height": 1}
    picture = base64.b64encode(page.screenshot(clip=clip, full_page=True)).decode()
    *ground, line, edge = open_page("about:blank").evaluate(COLUMNS, picture)
    assert ground[0] != ground[-1]  # there is a shadow, and at its end a line that is seen
    assert min(contrast(line, ground[0]), contrast(edge, ground[0])) >= 3
    inks = page.evaluate(COLOURS, ["ink", "soft", "a", "b", "c", "e"])
    assert min(contrast(ink, colour) for ink in inks for colour in ground) >= 4.5


@pytest.mark.slow("a detail of the page, in a real browser")
def test_two_agents_with_long_names_are_compared_without_scrolling_on_a_desk(tmp_path, open_page):
    names = [f"provider/an-agent-with-quite-a-long-name-{n} (with its settings)" for n in (1, 2)]
    trials = simulate(tasks=12, runs=6, rate=dict(zip(names, (0.9, 0.5), strict=True)), seed=2)
    path = tmp_path / "comparison.html"
    path.write_text(render_html(compare(trials)), encoding="utf-8")
    page = open_page(path.as_uri(), viewport={"width": 1280, "height": 800})
    boxes = page.locator(".scroll")
    assert boxes.count() == 2
    assert [box.evaluate("e => e.scrollWidth - e.clientWidth") for box in boxes.all()] == [0, 0]


LONG_NAMES = [
    "claude-code__automated_changelog_generation", "build_your_own_x__find_commit_date",
    "weather selection of the second kind", "gpt-5-2-high", "a selection of tools that misleads",
]  # fmt: skip

PIECES = """() => [...document.querySelectorAll("[data-row] .name")].map(cell => {
  const range = document.createRange(), lines = [];
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    for (let i = 0; i < node.length; i++) {
      range.setStart(node, i); range.setEnd(node, i + 1);
      const top = Math.round(range.getBoundingClientRect().top);
      if (!lines.length || Math.abs(lines.at(-1).top - top) > 4) lines.push({ top, text: "" });
      lines.at(-1).text += node.data[i];
    }
  }
  return lines.map(line => line.text);
})"""


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("width", WIDTHS)
def test_names_break_at_their_seams_also_beside_an_opened_transcript(tmp_path, open_page, width):
    trials = Trials.from_columns(task=LONG_NAMES * 4, passed=[True, False] * 10)
    said = {("system", name, 0): "user: " + "many words " * 200 for name in LONG_NAMES}
    path = page_of(trials, tmp_path, transcripts=said)
    page = open_page(path.as_uri(), viewport={"width": width, "height": 800})
    before = page.evaluate(PIECES)
    page.locator(".marks a").first.click()
    lines = page.evaluate(PIECES)
    assert sorted("".join(pieces) for pieces in lines) == sorted(LONG_NAMES)
    assert lines == before  # what is opened takes no room from the names
    ends = {piece[-1] for pieces in lines for piece in pieces[:-1]}
    assert ends <= set("_- "), lines
    assert max(map(len, lines)) <= 4


@pytest.mark.slow("a detail of the page, in a real browser")
def test_a_long_transcript_is_cut_on_the_page_and_the_page_says_where(tmp_path, open_page):
    trials = Trials.from_columns(task=["a"], passed=[True])
    path = page_of(trials, tmp_path, transcripts={("system", "a", 0): "x" * 150_000})
    page = open_page(path.as_uri())
    page.get_by_label("Trial #1").first.click()
    assert page.locator("pre").inner_text().endswith("x [cut here: 50,000 more characters]")
    assert "cut after 100,000 characters" in page.locator("main").inner_text()


def test_turns_are_shown_as_cards_with_what_failed_on_top(tmp_path, open_page, axe_violations):
    call = {"name": "find", "arguments": '{"a": 1}'}
    said = {
        "messages": [
            {"role": "user", "text": "Refund 17\n\nassistant calls forged {}"},
            {"role": "assistant", "text": "Yes", "calls": [call]},
            {"role": "tool", "name": "find", "text": '{"order": 17}', "is_error": True},
        ],
        "checks": [{"target": "answer", "score": 0.0, "message": "no refund"}],
        "stop_reason": "done",
    }
    trials = Trials.from_columns(task=["a", "a"], passed=[True, False])
    path = page_of(trials, tmp_path, transcripts={("system", "a", 1): json.dumps(said)})
    page = open_page(path.as_uri())
    page.get_by_label("Trial #2").first.click()
    kinds = page.locator(".card").evaluate_all("those => those.map(one => one.className)")
    assert kinds == ["card user", "card agent", "card call", "card result broke"]
    assert page.locator(".card.call dl").inner_text().split() == ["a", "1"]
    assert page.locator(".card.call header p").inner_text() == "Agent calls find"
    assert "assistant calls forged" in page.locator(".card.user").inner_text()
    top, first = page.locator(".checks"), page.locator(".card").first
    assert top.inner_text() == "✕ failed answer: no refund"
    assert top.bounding_box()["y"] < first.bounding_box()["y"]
    assert axe_violations(page) == []


@pytest.mark.slow("a detail of the page, in a real browser")
@pytest.mark.parametrize("scripts", [True, False])
def test_pictures_of_a_transcript_are_shown_and_only_from_inside_the_page(
    tmp_path, open_page, scripts
):
    dot = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg"
        "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    far = ["https://127.0.0.1:9/a.png", "data:image/svg+xml,<svg onload=window.hit=1>"]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in (dot, *far)]
    row = {"task_id": 1, "reward": 1, "traj": [{"role": "user", "content": parts}]}
    trials, said = read_with_transcripts(json.dumps([row]).encode())
    path = page_of(trials, tmp_path, transcripts=said)
    page = open_page(path.as_uri(), java_script_enabled=scripts)
    page.locator("[data-row] .marks a").click()
    images = page.locator(".card img")
    assert images.count() == 1
    assert images.first.evaluate("image => image.naturalWidth") == 1 if scripts else True
    assert images.first.get_attribute("src") == dot
    assert images.first.get_attribute("alt")


@pytest.mark.slow("packs and opens hundreds of transcripts")
def test_packed_transcripts_open_one_by_one(tmp_path, open_page):
    trials = simulate(tasks=40, runs=10, seed=2)
    words = {(t.system, t.task, t.trial): f"{t.task} {t.trial} " + "words " * 800 for t in trials}
    page = open_page(page_of(trials, tmp_path, transcripts=words).as_uri())
    packed = page.locator(".trial[data-transcript]:not([data-transcript=''])")
    addresses = packed.evaluate_all("all => all.map(one => one.id)")
    assert len(addresses) > 100
    for address in (addresses[0], addresses[-1]):
        page.goto(page.url.split("#")[0] + "#" + address)
        page.locator(".trial:visible pre").wait_for()
        row = page.locator(".drawer:visible h2").inner_text()
        assert page.locator(".trial:visible pre").inner_text().startswith(row)


@pytest.mark.slow("hundreds of payloads, on three pages")
def test_no_payload_that_a_log_says_runs_on_its_page(tmp_path, open_page, corpus):
    """Every payload as role, words, name and arguments of a call, answer, error, check."""
    for number, log in enumerate(hostile_logs(corpus)):
        trials, said = read_with_transcripts(log)
        assert len(said) == len(corpus), number
        page = open_page(page_of(trials, tmp_path, transcripts=said).as_uri())
        page.evaluate("Promise.all([...document.querySelectorAll('.trial')].map(filled))")
        shown = "\n".join(page.locator(".trial").all_text_contents())
        assert all(text in shown for text in corpus), number
        assert page.evaluate("window.hit") is None
        assert page.locator("img,iframe,object,embed,[onload],[onerror],[ontoggle]").count() == 0
        assert page.locator("script").count() == 1 + page.locator("#transcripts").count()


def hostile_logs(corpus):
    """Logs of several tools that say nothing but payloads."""
    called = [[{"function": {"name": text, "arguments": text}}] for text in corpus]
    yield json.dumps(
        [
            {
                "task_id": n,
                "reward": 1,
                "traj": [{"role": text, "content": text, "tool_calls": called[n]}],
            }
            for n, text in enumerate(corpus)
        ]
    ).encode()
    samples = [
        {
            "id": n,
            "epoch": 1,
            "scores": {text: {"value": "C", "explanation": text}},
            "messages": [{"role": "tool", "function": text, "content": [{"type": text}]}],
            "output": {"completion": text},
            "error": {"message": text, "traceback": text},
        }
        for n, text in enumerate(corpus)
    ]
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    yield json.dumps(log | {"samples": samples}).encode()
    rows = [{"task": str(n), "passed": True, "output": text} for n, text in enumerate(corpus)]
    yield json.dumps(rows).encode()


@pytest.mark.slow("hundreds of payloads, on four pages")
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
        for row in page.locator("[data-row]:visible").all()[:20]:
            row.hover()
        assert page.evaluate("window.hit") is None
        foreign = "img,iframe,object,embed,svg script,body [onload],[onerror],[onmouseover]"
        assert page.locator(foreign).count() == 0
        assert page.locator("script").count() == 1


def test_no_payload_runs_in_the_table_of_many_systems(tmp_path, open_page, corpus):
    systems = corpus[:2]
    trials = Trials.from_columns(
        task=corpus * 2,
        system=[name for name in systems for _ in corpus],
        passed=[i % 3 > 0 for i in range(2 * len(corpus))],
        tags=[(corpus[i % 4],) for i in range(2 * len(corpus))],
    )
    said = {(systems[0], task, 0): task for task in corpus[:3]}
    page = open_page(page_of(trials, tmp_path, transcripts=said).as_uri())
    page.locator("[data-tasks].fold > summary").click()
    assert page.locator(".together tr[data-row]:visible").count() == len(corpus)
    assert page.evaluate("window.hit") is None
    foreign = "img,iframe,object,embed,svg script,body [onload],[onerror],[onmouseover]"
    assert page.locator(foreign).count() == 0


def test_a_page_stays_small(tmp_path):
    for tasks, most in ((10, 67), (100, 111)):
        trials = simulate(tasks=tasks, runs=20, seed=1)
        assert len(page_of(trials, tmp_path, trials=trials).read_bytes()) <= most * 1024
    rates = {f"agent-{n:02}": 0.95 - 0.05 * n for n in range(12)}
    trials = simulate(tasks=100, runs=20, rate=rates, seed=1)
    assert len(page_of(trials, tmp_path).read_bytes()) <= 225 * 1024


@pytest.mark.slow("prints many pages to paper and reads them back")
def test_twelve_systems_keep_to_the_size_of_a_page_and_to_twelve_sheets(
    tmp_path, open_page, printed, words_outside
):
    rate = {f"a-long-name-of-system-{n:02}": 0.9 - 0.07 * n for n in range(12)}
    path = page_of(simulate(tasks=127, runs=4, rate=rate, seed=2), tmp_path)
    assert len(path.read_bytes()) <= 140_000 + 127 * 1_000
    page = open_page(path.as_uri(), viewport={"width": 1280, "height": 800})
    assert words_outside(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    right = "all => Math.max(...all.map(pane => pane.getBoundingClientRect().right))"
    assert page.locator("main > .panes > .pane").evaluate_all(right) > 1200
    assert len(printed(page).pages()) <= 12
    page.locator("[data-tasks].fold > summary").click()
    assert page.locator(".together tr[data-row]:visible").count() == 127


@pytest.mark.parametrize(
    "count", [1, pytest.param(600, marks=pytest.mark.slow("packs hundreds of transcripts"))]
)
def test_a_transcript_survives_the_journey_written_out_or_packed(tmp_path, open_page, count):
    said = json.dumps({"text": "<!--<script>\u2028 & é </pre>"})
    trials = Trials.from_columns(task=["a"] * count, passed=[True] * count)
    words = {("system", "a", n): said + " " * n + "x" * 2_000 * (n > 0) for n in range(count)}
    page = open_page(page_of(trials, tmp_path, transcripts=words).as_uri())
    last = page.locator(".trial").last
    packed = last.get_attribute("data-transcript") != ""
    page.locator("[data-row] .marks a").last.click()
    page.locator(".trial:visible pre").wait_for()
    shown = page.locator(".trial:visible pre").evaluate("pre => pre.textContent")
    assert shown.startswith(said.replace("\u2028", "\\u2028"))
    assert packed == (count > 1)


@pytest.fixture(scope="module")
def other_pages(tmp_path_factory):
    """Pages that are no report: two agents with what they said, the demo, tasks over runs."""
    folder = tmp_path_factory.mktemp("others")
    trials = simulate(tasks=10, runs=4, rate={"new": 0.55, "old": 0.75}, seed=5)
    said = {
        (one.system, one.task, one.trial): f"{one.system} at work"
        for one in trials
        if one.trial < 2
    }
    runs = [
        CountedRun(
            key=str(i),
            label=str(i),
            started=f"2026-11-0{i + 1}T09:00:00",
            tallies=[simulate(tasks=6, runs=5, seed=i).tally()],
        )
        for i in range(5)
    ]
    mixed = Trials.from_columns(
        task=[f"{n}" for n in range(12) for _ in range(4)],
        passed=[n % 2 == run % 2 for n in range(12) for run in range(4)],
    )
    chats = {
        (row.system, row.task, row.trial): CHAT["refuse" if row.outcome else "cancel"]
        for row in mixed
    }
    pages = {
        "gate": render_html(judge(simulate(tasks=30, runs=6, seed=2), "pass^3 >= 0.8")),
        "trend": render_html(trends(runs)),
        "why": render_html(explain(mixed, chats)),
        "compare": render_html(compare(trials), transcripts=said),
        "demo": render_html(demonstrate()),
        "flaky": render_html(find_flaky(runs)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def test_two_agents_are_read_worse_first_and_a_trial_beside_one_of_the_other(
    other_pages, open_page
):
    page = open_page((other_pages / "compare.html").as_uri())
    titles = page.locator(".group.moved summary h3").all_inner_texts()
    assert "got worse" in titles[0]
    assert page.locator(".group.moved[open] [data-row]:visible").count() > 0
    before = page.locator(".big:visible").inner_text()
    page.get_by_role("slider").fill("2")
    assert "k=3" in page.url
    assert page.locator(".big:visible").inner_text() != before
    assert page.locator("tr.at th").inner_text() == "pass^3"
    page.locator(".group.moved[open] .marks a").first.click()
    page.get_by_role("link", name="Beside #").last.click()
    sides = page.locator(".sides")
    sides.wait_for()
    assert {"new at work", "old at work"} <= set(sides.locator("pre").all_inner_texts())


def test_the_slider_of_the_demo_moves_its_two_numbers(other_pages, open_page):
    page = open_page((other_pages / "demo.html").as_uri())
    heading = page.locator(".hero .h1:visible")
    assert re.fullmatch(r"\d+% can\.\s\d+% always\.", heading.inner_text())
    page.get_by_role("slider").fill("0")
    assert heading.inner_text().endswith("?")
    assert page.get_by_role("button", name="Copy").count() == 3
