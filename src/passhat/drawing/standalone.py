"""A picture as a separate file: plain colours on white, with its heading and finding as text.

Style sheets, variables and media queries are for browsers. Other programs that draw SVG (Inkscape,
librsvg, CairoSVG, LaTeX's converters) know attributes best, so that is all a file holds.
"""

from __future__ import annotations

import copy
import textwrap
from typing import Any
from xml.etree import ElementTree as ET

from passhat.drawing.colours import LIGHT
from passhat.errors import MissingExtra

SVG = "http://www.w3.org/2000/svg"
FONT = "Helvetica, Arial, sans-serif"
INK, SOFT = LIGHT["ink"], LIGHT["soft"]
SERIES = {**{name: LIGHT[name] for name in "abcde"}, "n": SOFT}
STROKES = {
    "rule": (LIGHT["rule"], "1"),
    "axis": (SOFT, "1"),
    "line": (None, "2"),
    "level": (INK, "2"),
    "thick": (None, "10"),
    "inner": (LIGHT["band"], "8"),
    "thin": (None, "1.5"),
    "open": (None, "1.5"),
}
"""The colour and width of each class of lines; None is the colour of the series."""

PNG_SCALE = 3.0
"""Pixels for each point of the drawing: sharp on a slide and at 300 dots an inch in print."""

_MARGIN, _LETTER, _TITLE_LETTER = 8, 6.6, 8.6
_TITLE_HEIGHT, _LINE_HEIGHT = 19, 16


def plain_svg(body: str, *, title: str, finding: str, width: int, height: int) -> str:
    """The SVG text of a figure with nothing but attributes."""
    room = width - 2 * _MARGIN
    # A number and its per cent sign stay on one line.
    shown_title, shown_finding = (
        text.replace(" %", "\N{NO-BREAK SPACE}%") for text in (title, finding)
    )
    titles = textwrap.wrap(shown_title, int(room / _TITLE_LETTER))
    lines = textwrap.wrap(shown_finding, int(room / _LETTER))
    top = _TITLE_HEIGHT * len(titles) + _LINE_HEIGHT * len(lines) + 2 * _MARGIN
    root = ET.Element(
        "svg",
        {
            "xmlns": SVG,
            "width": str(width),
            "height": str(height + top),
            "viewBox": f"0 0 {width} {height + top}",
            "font-family": FONT,
            "font-size": "12",
            "role": "img",
        },
    )
    ET.SubElement(root, "title").text = title
    ET.SubElement(root, "desc").text = finding
    # A white ground, so that it can be read on a dark page too.
    ET.SubElement(root, "rect", width=str(width), height=str(height + top), fill="#ffffff")
    _write(root, titles, 17, _TITLE_HEIGHT, {"fill": INK, "font-size": "14", "font-weight": "bold"})
    _write(root, lines, _TITLE_HEIGHT * len(titles) + 14, _LINE_HEIGHT, {"fill": SOFT})
    drawn = ET.fromstring(f'<g transform="translate(0 {top})">{body}</g>')  # noqa: S314  # our own
    _paint(drawn, SOFT)
    root.append(drawn)
    return ET.tostring(root, encoding="unicode")


def png_of(svg: str) -> bytes:
    """The picture in pixels."""
    found: bytes = _cairosvg().svg2png(bytestring=svg.encode(), scale=PNG_SCALE)
    return found


def pdf_of(svg: str) -> bytes:
    """The picture as a page of its own size, its text selectable."""
    found: bytes = _cairosvg().svg2pdf(bytestring=svg.encode())
    return found


def _cairosvg() -> Any:
    try:
        import cairosvg  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except (ImportError, OSError) as error:  # OSError: the Cairo library itself is missing
        raise MissingExtra("a PNG or PDF", "figures") from error
    return cairosvg


def _write(root: ET.Element, lines: list[str], top: int, height: int, look: dict[str, str]) -> None:
    for i, line in enumerate(lines):
        place = {"x": str(_MARGIN), "y": str(top + height * i)}
        ET.SubElement(root, "text", place | look).text = line


def _paint(element: ET.Element, series: str) -> None:
    """Attributes for what the classes of an element mean; `series` is the colour around it."""
    classes = (element.attrib.pop("class", "") or "").split()
    for name in [name for name in element.attrib if name.startswith("data-")]:
        del element.attrib[name]
    series = next((SERIES[one] for one in classes if one in SERIES), series)
    for name, value in _attributes(element.tag, classes, series).items():
        element.set(name, value)
    for child in list(element):
        halo = bool({"strong", "halo"} & set(child.get("class", "").split()))
        _paint(child, series)
        if halo:
            element.insert(list(element).index(child), _halo(child))


def _halo(text: ET.Element) -> ET.Element:
    """A white outline behind a text that lies on lines: few programs know `paint-order`."""
    behind = copy.deepcopy(text)
    behind.attrib |= {"fill": "#ffffff", "stroke": "#ffffff", "stroke-width": "4"}
    return behind


def _attributes(tag: str, classes: list[str], series: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if tag == "text":
        found["fill"] = SOFT if "soft" in classes else series if "key" in classes else INK
        found |= {"font-weight": "bold"} if {"key", "strong"} & set(classes) else {}
        found |= {"text-anchor": "end"} if "end" in classes else {}
        found |= {"text-anchor": "middle"} if "mid" in classes else {}
        return found
    for name in set(classes) & {"l0", "l1", "l2", "l3", "l4"}:
        found["fill"] = LIGHT[name]
    for name, (colour, width) in STROKES.items():
        if name in classes:
            found |= {"fill": "none", "stroke": colour or series, "stroke-width": width}
    if "ring" in classes:
        found |= {"fill": series, "stroke": "#ffffff", "stroke-width": "1.5"}
    if "hollow" in classes:
        found |= {"fill": "#ffffff", "stroke": series, "stroke-width": "1.5"}
    for name, opacity in (("fill", "1"), ("area", "0.72"), ("band", "0.16")):
        if name in classes:
            found |= {"fill": series, "fill-opacity": opacity}
    for name, pattern in (("dash", "5 4"), ("dot", "1.5 3")):
        if name in classes:
            found["stroke-dasharray"] = pattern
    return found
