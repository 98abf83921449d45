"""Laws that hold for every kind of picture, whatever text and numbers come in."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.drawing import (
    CellRow,
    Column,
    ColumnGroup,
    Guide,
    IntervalRow,
    Marker,
    NamedShare,
    Point,
    Series,
    cell_grid,
    column_chart,
    interval_rows,
    line_chart,
    matrix,
    scatter,
    stacked_bar,
)
from passhat.drawing.figure import LETTER, WIDTH
from passhat.drawing.lines import BOTTOM, HEIGHT, TOP, Scale

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
SHARES = st.floats(0, 1)
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {
    f"{SVG}{tag}"
    for tag in ("path", "circle", "rect", "text", "tspan", "g", "title", "desc", "style")
}


def lines(text, value):
    series = Series(name=text, x=[1, 2, 3], y=[value] * 3, low=[0] * 3, high=[1] * 3, model_from=2)
    return line_chart(
        [series],
        title=text,
        finding=text,
        x_label=text,
        y_label=text,
        x_names=[text] * 4,
        guides=[Guide(name=text, y=value)],
        markers=[Marker(name=text, x=2)],
    )


def intervals(text, value):
    row = IntervalRow(name=text, value=value, low=0, high=1, bar=0.5, other=value, note=text)
    return interval_rows(
        [row, row], title=text, finding=text, x_label=text, x_range=(0, 1), ties=[[0, 1]]
    )


def grid(text, value):
    row = CellRow(name=text, cells="PFE ")
    return cell_grid([row], title=text, finding=text)


def parts(text, value):
    shares = [NamedShare(name=text, share=value), NamedShare(name=text, share=1 - value)]
    return stacked_bar(shares, title=text, finding=text)


def points(text, value):
    point = Point(name=text, x=value, y=value, x_interval=(0, 1), y_interval=(0, 1))
    return scatter([point], title=text, finding=text, x_label=text, y_label=text)


FIGURES = pytest.mark.parametrize("draw", [lines, intervals, grid, parts, points])


@FIGURES
@given(text=ANY_TEXT, value=SHARES)
def test_any_text_gives_well_formed_svg_of_known_elements_without_handlers(draw, text, value):
    root = ET.fromstring(draw(text, value).svg(standalone=True))
    for node in root.iter():
        assert node is root or node.tag in SHAPES
        assert not [name for name in node.attrib if name.startswith("on") or "href" in name]


@FIGURES
def test_a_picture_says_what_it_shows_to_who_cannot_see_it(draw):
    root = ET.fromstring(draw("the finding", 0.5).svg())
    ids = root.attrib["aria-labelledby"].split()
    assert root.attrib["role"] == "img"
    assert [root.find(f".//*[@id='{name}']").text for name in ids] == ["the finding"] * 2


@FIGURES
def test_inside_a_page_a_picture_brings_no_style_of_its_own(draw):
    assert "style" not in draw("x", 0.5).svg()
    assert "style" not in draw("x", 0.5)._repr_svg_()


@FIGURES
@given(text=ANY_TEXT)
def test_a_picture_shows_itself_on_one_short_line_that_says_how_to_see_and_keep_it(draw, text):
    shown = repr(draw(text, 0.5))
    assert shown.isprintable()
    assert len(shown) <= 200
    assert shown.startswith("<Figure ")
    assert "print(figure)" in shown
    assert ".svg(standalone=True)" in shown
    if text.isprintable() and len(repr(text)) <= 40:
        assert repr(text) in shown


@FIGURES
def test_the_same_numbers_give_the_same_bytes(draw):
    assert draw("x", 0.3) == draw("x", 0.3)


@given(st.floats(0, 1))
def test_names_of_parts_neither_cover_each_other_nor_leave_the_picture(share):
    shares = [
        NamedShare(name="tasks differ", share=1 - share),
        NamedShare(name="luck of the trial", share=share),
    ]
    drawn = stacked_bar(shares, title="", finding="")
    found = ET.fromstring(drawn.svg()).findall(f".//{SVG}text")
    (first, second) = [(float(one.attrib["x"]), 8 * len(one.text)) for one in found]
    assert first[0] >= 0
    assert first[0] + first[1] <= second[0]
    assert second[0] + second[1] <= drawn.width


@given(SHARES, SHARES)
def test_a_scale_keeps_order_and_never_leaves_its_axis(a, b):
    place = Scale(low=0, high=1, start=100, stop=10)
    assert (place(a) >= place(b)) or a > b
    assert 10 <= place(a) <= 100


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_lie_inside_the_range(low, width):
    ticks = Scale(low=low, high=low + width, start=0, stop=1).ticks(6)
    slack = width * 1e-6 + abs(low) * 1e-9
    assert len(ticks) <= 8
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)


@given(st.integers(1, 60))
def test_whole_things_have_whole_ticks(count):
    scale = Scale(low=0.5, high=count + 0.5, start=0, stop=1, kind="whole")
    ticks = scale.ticks(5)
    assert ticks
    assert all(tick == int(tick) for tick in ticks)
    assert [scale.show(tick) for tick in ticks] == [str(int(tick)) for tick in ticks]


def test_the_ends_of_a_text_axis_are_rounded():
    series = Series(name="runs", x=[0.1234567, 1], y=[657.982, 2790])
    text = line_chart(
        [series], title="", finding="", x_label="x", y_label="y", y_range=(0, 2929.55)
    )
    assert "2,930 |" in text.text
    assert "0.123 " in text.text
    assert "2929.55" not in text.text


def test_a_range_of_one_value_has_one_tick_and_a_place():
    place = Scale(low=3, high=3, start=0, stop=10)
    assert place.ticks() == [3]
    assert place(3) == 5


def test_a_thousand_runs_cost_a_page_little():
    rows = [CellRow(name=f"task-{i}", cells="PF" * 10) for i in range(100)]
    assert len(cell_grid(rows, title="t", finding="f").svg()) < 100 * 600


@pytest.mark.parametrize(("low", "high"), [(2929.55, 4100.2), (10, 99), (3, 4), (1, 1000), (7, 70)])
def test_ticks_of_a_logarithmic_axis_are_round_and_inside_and_more_than_one(low, high):
    scale = Scale(low=low, high=high, start=0, stop=100, kind="log")
    ticks = scale.ticks()
    assert len(ticks) > 1
    assert all(low <= tick <= high for tick in ticks)
    assert all(float(f"{tick:.3g}") == pytest.approx(tick) for tick in ticks)


def test_a_tie_is_a_line_with_a_dot_at_each_of_its_rows_and_dashed_past_others():
    rows = [IntervalRow(name=f"system {n}", value=n) for n in (1, 2, 3)]
    drawn = {"title": "", "finding": "", "x_label": "", "x_range": (1, 3)}
    plain = interval_rows(rows, **drawn)
    tied = interval_rows(rows, **drawn, ties=[[0, 1], [0, 2]])
    assert tied.width == plain.width
    lines = re.findall(r'class="axis( dash)?"', tied.body)
    assert lines == ["", " dash"]
    assert tied.body.count("<circle") - plain.body.count("<circle") == 4


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\x1b", "\u200b", "\U000e0041"])
def test_characters_that_reorder_or_hide_are_written_out_in_pictures(character):
    row = IntervalRow(name=f"task{character}x", value=0.5)
    figure = interval_rows([row], title=character, finding=character, x_label="", x_range=(0, 1))
    for svg in (figure.svg(), figure.svg(standalone=True)):
        assert character not in svg
        assert character.encode("unicode_escape").decode() in svg


def test_a_picture_of_its_own_needs_no_style_sheet_and_shows_its_heading():
    row = IntervalRow(name="a", value=0.5, low=0.2, high=0.8)
    figure = interval_rows([row], title="Heading", finding="A.", x_label="", x_range=(0, 1))
    root = ET.fromstring(figure.svg(standalone=True))
    assert not any("class" in one.attrib or "style" in one.attrib for one in root.iter())
    assert "var(" not in figure.svg(standalone=True)
    assert [one.text for one in root.iter(f"{SVG}text")][:2] == ["Heading", "A."]
    assert root.find(f"{SVG}rect").get("fill") == "#ffffff"


def test_the_name_of_a_moment_stands_off_the_lines_and_their_names():
    for y in ([0.99, 0.98, 0.97], [0.9, 0.95, 0.6], [1.0, 0.5, 0.98]):
        for x in (1, 2, 3):
            series = [Series(name="pass@5", x=[1, 2, 3], y=y)]
            figure = line_chart(
                series, title="", finding="", x_label="", y_label="", y_range=(0, 1),
                markers=[Marker(name="pass^5 down", x=x)],
            )  # fmt: skip
            root = ET.fromstring(figure.svg())
            (name,) = (e for e in root.iter() if (e.text or "") == "pass^5 down")
            left, bottom = float(name.get("x")), float(name.get("y"))
            line = next(e.get("d") for e in root.iter() if "line" in (e.get("class") or "").split())
            points = [tuple(map(float, pair.split())) for pair in line[1:].split("L")]
            for (x0, y0), (x1, y1) in pairwise(points):
                for step in range(101):
                    at = x0 + (x1 - x0) * step / 100
                    height = y0 + (y1 - y0) * step / 100
                    inside = left <= at <= left + 70 and bottom - 10 <= height <= bottom
                    assert not inside, (y, x)


def test_names_of_lines_are_kept_apart_and_inside_the_picture():
    series = [Series(name=f"system {i}", x=[1, 2], y=[0.2, 0.0]) for i in range(30)]
    picture = line_chart(series, title="t", finding="f", x_label="x", y_label="y")
    heights = sorted(float(y) for y in re.findall(r'y="([\d.]+)" class="key"', picture.body))
    assert len(heights) == 30
    assert min(b - a for a, b in pairwise(heights)) >= 13.9
    assert 0 < heights[0] < heights[-1] < picture.height


def test_a_line_that_ends_early_is_named_where_it_ends_if_no_other_line_is_there():
    def place(last):
        low = Series(name="low", x=[1.0, 9.0], y=[0.2, last])
        early = Series(name="early", x=[1.0, 3.0], y=[0.2, 0.3])
        picture = line_chart(
            [low, early], title="t", finding="f", x_label="x", y_label="y", y_range=(0, 1)
        )
        texts = ET.fromstring(picture.svg()).iter(f"{SVG}text")
        return {e.text: float(e.get("x")) for e in texts if e.text in ("low", "early")}

    named = place(last=0.1)
    assert named["early"] < WIDTH / 2 < named["low"]
    crossed = place(last=0.6)  # runs through the end of the other
    assert crossed["early"] == crossed["low"]


@pytest.mark.parametrize("first", [0.9, 0.5, 0.21])
@pytest.mark.parametrize("last", [0.03, 0.2, 0.4])
def test_lines_with_room_for_their_names_take_the_whole_width(first, last):
    steep = Series(name="pass^k", x=[1, 2, 4, 8], y=[first, 0.6 * first + 0.4 * last, last, last])
    early = Series(name="pass@k", x=[1, 2], y=[first, min(first + 0.1, 1.0)])
    figure = line_chart(
        [steep, early], title="t", finding="f", x_label="x", y_label="y",
        y_range=(0, 1), y_kind="percent", x_kind="doublings",
    )  # fmt: skip
    root = ET.fromstring(figure.svg())
    (axis,) = (e for e in root.iter() if e.get("data-axis"))
    assert axis.get("data-axis") == "1 8 doublings"
    start, floor, stop = map(float, re.findall(r"[\d.]+", axis.get("d")))
    assert stop - start >= 0.85 * WIDTH
    (name,) = (e for e in root.iter() if e.text == "pass^k")
    low = float(name.get("y"))
    drawn = next(e.get("d") for e in root.iter() if "line" in (e.get("class") or "").split())
    points = [tuple(map(float, pair.split())) for pair in drawn[1:].split("L")]
    for (x0, y0), (x1, y1) in pairwise(points):
        for at in range(int(max(x0, stop - 66)), int(x1) + 1):
            height = y0 + (y1 - y0) * (at - x0) / (x1 - x0)
            assert not low - 11 <= height <= low + 2
    assert TOP - 6 <= low <= floor


def test_a_long_axis_ends_early_where_names_of_lines_or_moments_need_the_room():
    close = [Series(name=f"agent {i}", x=[1, 4], y=[0.5, 0.4 + i / 100]) for i in range(3)]
    late = [Marker(name="a change", x=4)]
    for series, markers in ((close, ()), (close[:1], late)):
        figure = line_chart(
            series, title="t", finding="f", x_label="x", y_label="y", markers=markers
        )
        root = ET.fromstring(figure.svg())
        (axis,) = (e for e in root.iter() if e.get("data-axis"))
        assert float(axis.get("d").rpartition("H")[2]) <= WIDTH - 84


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_no_word_at_the_end_of_an_axis_leaves_the_picture_on_a_telephone(drop):
    days = [f"{day} Nov" for day in range(10, 16)]
    figure = line_chart(
        [Series(name="pass^1", x=[*range(6)], y=[0.8] * 5 + [0.8 - drop])],
        title="t", finding="f", x_label="x", y_label="y", y_range=(0, 1), x_names=days,
        x_notes=["28472c92"] * 6,
        markers=[Marker(name="a long change", x=5)] if drop else [],
    )  # fmt: skip
    for text in ET.fromstring(figure.svg()).iter(f"{SVG}text"):
        look, wide = text.get("class") or "", LETTER * len(text.text)
        left = float(text.get("x")) - (wide / 2 if "mid" in look else wide * ("end" in look))
        assert left + wide <= figure.width + 1, text.text


def test_long_names_take_two_lines_and_no_more_width():
    def drawn(*names):
        rows = [IntervalRow(name=name, value=0.5) for name in names]
        return interval_rows(rows, title="t", finding="f", x_label="x", x_range=(0, 1))

    short, long = drawn("a"), drawn("claude-sonnet-4-5-thinking", "b")
    assert short.width == long.width
    lines = [e.text for e in ET.fromstring(long.svg()).iter(f"{SVG}tspan")]
    assert lines == ["claude-sonnet-4-5-", "thinking"]
    (cut,) = [e for e in ET.fromstring(drawn("x" * 60).svg()).iter(f"{SVG}text") if list(e)]
    assert cut.find(f"{SVG}title").text == "x" * 60


def test_what_groups_of_a_small_matrix_share_is_broken_for_a_telephone_alone():
    note = "2 tasks that all but the last agent mostly pass, in 93% of trials"
    groups = [ColumnGroup(name=note[:60], columns=2), ColumnGroup(name=note[:20], columns=1)]
    figure = matrix(["a", "b"], [[1, 0.5, 0], [1, 0, 0]], title="t", finding="f", x_label="x",
                    groups=groups, columns_named=["p", "q", "r"])  # fmt: skip
    written = [e.text for e in ET.fromstring(figure.svg()).iter(f"{SVG}text")]
    assert {note[:60], note[:20]} <= {*written}
    small = [e.text for e in ET.fromstring(figure.narrow.svg()).iter(f"{SVG}text")]
    assert note[:60] not in small
    assert max(len(line) for line in small if line) <= 45
    assert figure.width == figure.narrow.width == WIDTH


def test_a_matrix_with_groups_has_a_narrow_picture_with_the_mean_of_each():
    groups = [ColumnGroup(name="easy", columns=40), ColumnGroup(name="hard", columns=20)]
    shares = [[1.0] * 40 + [0.25] * 20, [0.5] * 40 + [None] * 20]
    figure = matrix(
        ["a", "b"], shares, title="t", finding="f", x_label="x", width=960, groups=groups
    )
    assert figure.narrow.width == WIDTH < figure.width
    words = [e.text for e in ET.fromstring(figure.narrow.svg()).iter(f"{SVG}text")]
    assert [word for word in words if word in ("100", "25", "50", "-")] == ["100", "25", "50", "-"]
    assert {"easy", "hard"} <= set(words)


def test_columns_are_as_tall_as_their_counts():
    columns = [Column(name=str(i), count=count) for i, count in enumerate((2, 0, 8))]
    svg = ET.fromstring(column_chart(columns, title="t", finding="f", x_label="x").svg())
    tall = [float(box.get("height")) for box in svg.iter(f"{SVG}rect")]
    assert tall[0] / tall[1] == pytest.approx(2 / 8, rel=0.02)


def test_the_name_of_a_marker_keeps_clear_of_lines():
    x, y = [1.0, 2.0, 3.0, 4.0], [0.95, 0.93, 0.92, 0.91]
    figure = line_chart(
        [Series(name="s", x=x, y=y)],
        title="t", finding="f", x_label="x", y_label="y", y_range=(0, 1),
        markers=[Marker(name="model beyond", x=2.0)],
    )  # fmt: skip
    texts = ET.fromstring(figure.svg()).iter(f"{SVG}text")
    (at,) = [float(e.get("y")) for e in texts if e.text == "model beyond"]
    line = TOP + (1 - 0.91) * (HEIGHT - BOTTOM - TOP)
    assert at - 13 > line


def test_every_one_of_twelve_close_points_has_a_name_and_no_name_covers_another():
    points = [
        Point(
            name=f"vendor/model-{i:02}-preview",
            x=1 + 0.02 * (i % 4),
            y=0.3 + 0.03 * (i // 2),
            x_interval=(0.9, 1.3),
            y_interval=(0.2, 0.7),
        )
        for i in range(12)
    ]
    drawn = scatter(points, title="t", finding="f", x_label="x", y_label="y", y_range=(0, 1))
    texts = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" class="(?:key|soft)( end)? halo">', drawn.body
    )
    assert len(texts) == 12
    boxes = []
    for x, y, end in texts:
        left = float(x) - 7 * 22 if end else float(x)
        boxes.append((left, float(y) - 11, left + 7 * 22, float(y) + 3))
    for one, other in combinations(boxes, 2):
        beside = one[2] <= other[0] or other[2] <= one[0]
        assert beside or one[3] <= other[1] or other[3] <= one[1]


def test_long_names_that_differ_in_their_middle_stay_different_in_every_picture():
    names = [
        f"my-company/customer-support-agent-v{i}-with-all-of-the-tools-of-2026" for i in (1, 2)
    ]
    pictures = [
        matrix(names, [[0.0], [1.0]], title="t", finding="f", x_label="task"),
        interval_rows(
            [IntervalRow(name=name, value=0.5, low=0.4, high=0.6) for name in names],
            title="t", finding="f", x_label="x", x_range=(0, 1),
        ),
        scatter(
            [Point(name=name, x=1 + i, y=0.5) for i, name in enumerate(names)],
            title="t", finding="f", x_label="x", y_label="y",
        ),
        line_chart(
            [Series(name=name, x=[1, 2], y=[1, i]) for i, name in enumerate(names)],
            title="t", finding="f", x_label="x", y_label="y",
        ),
    ]  # fmt: skip
    for picture in pictures:
        shown = re.sub(r"<title>.*?</title>", "", picture.body)
        cut = list(re.findall(r"<text[^>]*>([^<]*…[^<]*)", shown))
        lines = re.findall(r"<tspan[^>]*>([^<]*)", shown)
        cut = cut or ["".join(pair) for pair in zip(lines[::2], lines[1::2], strict=True)]
        assert len(cut) == len(set(cut)) == 2


def test_an_axis_of_ranks_begins_at_the_first():
    assert Scale(low=0.5, high=12.5, start=0, stop=1, kind="whole").ticks(7)[:2] == [1, 2]


def test_the_text_of_a_chart_names_the_ends_of_its_axis_as_the_picture_does():
    figure = line_chart(
        [Series(name="pass^3", x=[0, 1, 2], y=[0.5, 0.6, 0.4])],
        title="t",
        finding="f",
        x_label="run, oldest first",
        y_label="chance",
        x_names=["11-02", "11-03", "11-05"],
        x_notes=["8ce60275d", "1735f06bb", "fbebac21e"],
    )
    *_, rule, axis = figure.text.splitlines()
    assert re.fullmatch(r" +11-02 8ce60275d +run, oldest first +11-05 fbebac21e", axis)
    assert len(axis) == len(rule)
    numbered = line_chart(
        [Series(name="a", x=[1, 20], y=[0, 1])], title="t", finding="f", x_label="k", y_label="y"
    )
    *_, rule, axis = numbered.text.splitlines()
    assert re.fullmatch(r" +1 +k +20", axis)
    assert len(axis) == len(rule)


@pytest.mark.parametrize(
    ("y", "crowded"), [([1.0, 0.9, 0.3, 0.2], "left"), ([0.1, 0.2, 0.7, 0.9], "right")]
)
def test_the_name_of_a_guide_stands_where_no_line_crosses_it(y, crowded):
    line = Series(name="a", x=[0.0, 1.0, 8.0, 10.0], y=y)
    guide = Guide(name="gate: pass^3 >= 0.8", y=0.8)
    drawn = line_chart(
        [line], title="t", finding="f", x_label="x", y_label="y", y_range=(0, 1), guides=[guide]
    )
    (named,) = re.findall(r"<text[^>]*>gate: pass\^3 &gt;= 0.8</text>", drawn.svg())
    assert ('class="soft end"' in named) == (crowded == "left")
