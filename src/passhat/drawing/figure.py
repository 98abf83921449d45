"""A finished picture: SVG for a page or a file, characters, and what it shows in a sentence."""

from __future__ import annotations

import copy
import hashlib
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import field
from os import PathLike, fspath
from xml.etree import ElementTree as ET

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, MissingExtra
from passhat.messages import quoted, safe_text, short_repr, shorten_apart

RULES = """\
svg.ph{font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
.ph text{fill:var(--ink)}.ph .soft{fill:var(--soft)}.ph .rule{stroke:var(--rule);fill:none}
.ph .axis{stroke:var(--soft);fill:none}.ph .a{--s:var(--a)}.ph .b{--s:var(--b)}.ph .c{--s:var(--c)}
.ph .d{--s:var(--d)}.ph .e{--s:var(--e)}.ph .n{--s:var(--soft)}
.ph .line{stroke:var(--s);fill:none;stroke-width:2}.ph .thin{stroke:var(--s);stroke-width:1.5}
.ph .band{fill:var(--s);opacity:.16}.ph .fill{fill:var(--s)}
.ph .area{fill:var(--s);fill-opacity:.72}.ph .open{fill:none;stroke:var(--s)}
.ph .dash{stroke-dasharray:5 4}.ph .dot{stroke-dasharray:1.5 3}.ph .end{text-anchor:end}
.ph .mid{text-anchor:middle}.ph .key{fill:var(--s);font-weight:600}
.ph .thick{stroke:var(--s);stroke-width:10}.ph .inner{stroke:var(--band);stroke-width:8}
.ph .ring{fill:var(--s);stroke:var(--ground,#fff);stroke-width:1.5}
.ph .hollow{fill:var(--ground,#fff);stroke:var(--s);stroke-width:1.5}
.ph .l0{fill:var(--l0)}.ph .l1{fill:var(--l1)}.ph .l2{fill:var(--l2)}
.ph .l3{fill:var(--l3)}.ph .l4{fill:var(--l4)}.ph .s1{stroke:var(--l1)}.ph .s2{stroke:var(--l2)}
.ph .s3{stroke:var(--l3)}.ph .s4{stroke:var(--l4)}.ph .cells{stroke-width:18}
.ph .level{stroke:var(--ink);fill:none;stroke-width:2}
.ph .strong{font-weight:650;paint-order:stroke;stroke:var(--ground,#fff);stroke-width:4}
.ph .halo{paint-order:stroke;stroke:var(--ground,#fff);stroke-width:4}
.ph .on3{fill:#14181f}.ph .on4{fill:var(--ground,#fff)}
.ph .faded{fill:var(--s);fill-opacity:.5}.ph .on text{font-weight:700}.ph .on .thin{stroke-width:4}
"""

# Blue for good and vermilion for bad, which people with red-green blindness tell apart, with ochre
# between; each has 4.5 : 1 on its ground. Colour is never alone: series differ in dash, outcomes in
# shape. `band` is the interval of this suite, outlined in the colour of its series.
LIGHT = {
    "ink": "#14181f", "soft": "#535c69", "rule": "#d9dee4",
    "a": "#0b5cad", "b": "#ad3a06", "c": "#007a5a", "d": "#8f4a7d", "e": "#7d5600",
    "band": "#9cc3ea",
    "l0": "#eef1f4", "l1": "#c3d9ef", "l2": "#8db8e3", "l3": "#4585c8", "l4": "#0a4a8f",
}  # fmt: skip
DARK = {
    "ink": "#e9ecf0", "soft": "#a4aebb", "rule": "#2d343e",
    "a": "#72b5ff", "b": "#ff9560", "c": "#2fc79a", "d": "#d99ac5", "e": "#e4b84e",
    "band": "#2c5f95",
    "l0": "#1b2027", "l1": "#26476a", "l2": "#30659f", "l3": "#5596da", "l4": "#abd5ff",
}  # fmt: skip


def variables(colours: Mapping[str, str]) -> str:
    """Colours as variables of a style sheet."""
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


STYLE = (
    f".ph{{{variables(LIGHT)}}}\n"
    f"@media (prefers-color-scheme:dark){{.ph{{{variables(DARK)}}}}}\n{RULES}"
)

WIDTH = 480
"""Most pictures are drawn this wide; a page sets their letters so that they are 12 pixels high."""

LETTER = 9.5
"""How wide a letter is, about, where it is largest: 16 high, on a telephone. A bold one: `BOLD`."""

BOLD = 10.9

FILE_ENDINGS = ("svg", "png", "pdf")

_FEWEST_LETTERS, _MOST_LETTERS, LETTER_WIDTH = 20, 44, 7
_TEXT_LETTERS = 24

# Names in two lines leave the rest of a telephone's width to the picture.
_LINE_LETTERS, _LINE_HEIGHT = 20, 15
_NAME_SEAMS = " _/.:-"

Datum = str | float | None
"""A cell of the table behind a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture: `svg()` for a page, `text` for a terminal, `finding` for who cannot see it.

    `rows` are the numbers that are drawn, names of columns first. `narrow` is a simpler picture of
    the same, which a page shows in its place on a telephone.
    `save("decay.png")` writes a file: SVG, PNG or PDF by its ending.
    """

    title: str
    finding: str
    width: int
    height: int
    body: str
    text: str
    rows: tuple[tuple[Datum, ...], ...] = field(default=(), repr=False)
    narrow: Figure | None = field(default=None, repr=False)

    def svg(self, *, standalone: bool = False, labelled_by: str = "") -> str:
        """The SVG element for a page, which has one style for all; or a `standalone` file.

        `labelled_by` are the ids of what says on the page what it is and shows, else it does.
        """
        if standalone:
            return plain_svg(
                self.body,
                title=safe_text(self.title),
                finding=safe_text(self.finding),
                width=self.width,
                height=self.height,
            )
        words = ""
        if not labelled_by:
            digest = hashlib.sha256((self.title + self.body).encode(errors="replace")).hexdigest()
            title, finding = f"f{digest[:8]}t", f"f{digest[:8]}d"
            words = element("title", escape(self.title), id=title)
            words += element("desc", escape(self.finding), id=finding)
            labelled_by = f"{title} {finding}"
        return element(
            "svg",
            words + self.body,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width} {self.height}",
            width=self.width,
            height=self.height,
            class_=self._classes,
            role="img",
            aria_labelledby=labelled_by,
        )

    @property
    def _classes(self) -> str:
        """A wide picture scrolls on a telephone; the widest ones take all of a desktop page."""
        narrow = " below-narrow" if self.narrow else ""
        wide = " wide" * (self.width > WIDTH) + " widest" * (self.width > 1.5 * WIDTH)
        return f"ph{wide}{narrow}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the figure to a file: .svg, or .png or .pdf with the extra `figures`."""
        name = fspath(path)
        ending = name.rpartition(".")[2].lower()
        if ending not in FILE_ENDINGS:
            raise ArgumentError("path", f"must end in .{', .'.join(FILE_ENDINGS)}", name)
        written = self.to_bytes(ending)
        with open(name, "wb") as file:  # noqa: PTH123  # import contract: pictures do no I/O but this
            file.write(written)

    def to_bytes(self, ending: str) -> bytes:
        """The content of a file: "svg", "png", or "pdf", a page of its size with text to select."""
        svg = (self.svg(standalone=True) + "\n").encode()
        if ending == "svg":
            return svg
        try:
            import cairosvg  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except (ImportError, OSError) as error:  # OSError: the Cairo library itself is missing
            raise MissingExtra("a PNG or PDF", "figures") from error
        cairo = cairosvg
        drawn: bytes = (
            cairo.svg2png(bytestring=svg, scale=PNG_SCALE)
            if ending == "png"
            else cairo.svg2pdf(bytestring=svg)
        )
        return drawn

    def _repr_svg_(self) -> str:
        return self.svg(standalone=True)

    def __repr__(self) -> str:
        see = "print(figure), .save('x.png'), .svg(standalone=True), .finding for words"
        return short_repr(f"Figure {quoted(self.title)}", f"{self.width} x {self.height}", see=see)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The column of names beside rows: as wide as the longest, within reason."""

    width: int
    letters: int
    shown: Mapping[str, str]
    two_lines: bool = False

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """Room for these names; what is longer than the most is cut in its middle."""
        letters = max(_FEWEST_LETTERS, min(max(map(len, names), default=0), _MOST_LETTERS))
        shown = dict(zip(names, shorten_apart(names, letters), strict=True))
        return cls(width=round(letters * LETTER_WIDTH) + 16, letters=letters, shown=shown)

    @classmethod
    def broken(cls, names: Sequence[str]) -> Names:
        """A narrow column: names that are too long for it are broken into two lines."""
        longest = max(map(len, names), default=0)
        letters = min(max(longest, _LINE_LETTERS // 2), _LINE_LETTERS)
        return cls(
            width=round(letters * LETTER) + 20,
            letters=letters,
            shown=dict(zip(names, shorten_apart(names, 2 * letters), strict=True)),
            two_lines=longest > letters,
        )

    def label(self, name: str, y: float) -> str:
        """A name at the right edge of the column, its middle at `y`."""
        x = float(self.width - 10)
        shown = self.shown[name]
        if not self.two_lines or len(shown) <= self.letters:
            return label(name, x, y + 4, "end", shown=shown)
        head = shown[: _break(shown, self.letters)]
        lines = ((head, y - 2), (shown[len(head) :], y - 2 + _LINE_HEIGHT))
        tip = element("title", escape(name)) if escape(shown) != escape(name) else ""
        spans = "".join(element("tspan", escape(line), x=x, y=at) for line, at in lines)
        return element("text", tip + spans, class_="end")

    @property
    def more(self) -> int:
        """How much wider than the narrowest column it is."""
        return self.width - round(_FEWEST_LETTERS * LETTER_WIDTH) - 16


def _break(name: str, most: int) -> int:
    """Where a name is broken into two lines of at most so many letters: at a seam, if it can be."""
    places = range(max(1, len(name) - most), most + 1)
    words = [i for i in places if name[i - 1] == " "]
    if words:
        return min(words, key=lambda i: abs(2 * i - len(name)))
    return max((i for i in places if name[i - 1] in _NAME_SEAMS), default=most)


def element(tag: str, content: str = "", **attributes: str | float | None) -> str:
    """One SVG element; attribute values are escaped, `content` is markup already.

    >>> element("rect", x=1.5, class_="a b")
    '<rect x="1.5" class="a b"/>'
    """
    written = ""
    for name, value in attributes.items():
        if value is not None:
            key = name if name == "viewBox" else name.removesuffix("_").replace("_", "-")
            text = number(value) if isinstance(value, float) else str(value)
            written += f' {key}="{escape(text)}"'
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def across(left: float, right: float, y: float, kind: str) -> str:
    """A level line.

    >>> across(1, 5, 2.5, "rule")
    '<path d="M1 2.5H5" class="rule"/>'
    """
    return element("path", d=f"M{number(left)} {number(y)}H{number(right)}", class_=kind)


def down(x: float, top: float, bottom: float, kind: str) -> str:
    """An upright line."""
    return element("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", class_=kind)


def label(
    text: str, x: float, y: float, kind: str = "", *, most: int = 0, shown: str | None = None
) -> str:
    """A line of text; cut to `most` characters or as it is `shown`, whole in its tooltip."""
    if shown is None:
        shown = shorten_apart([text], most)[0] if most else text
    tip = element("title", escape(text)) if escape(shown) != escape(text) else ""
    return element("text", tip + escape(shown), x=x, y=y, class_=kind or None)


def text_names(names: Sequence[str]) -> list[str]:
    """Names as the left column of a picture in characters, all of one width."""
    return [f"{name:<{_TEXT_LETTERS}}" for name in shorten_apart(names, _TEXT_LETTERS)]


def escape(text: str) -> str:
    """Text as XML 1.0 can hold it, safe as content and inside double quotes."""
    clean = safe_text(text)
    for raw, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        clean = clean.replace(raw, safe)
    return clean.replace("'", "&#39;")


def rounded(value: float | None) -> float | None:
    """A number of the table behind a picture: as exact as a reader can see, and short.

    >>> rounded(0.123456789), rounded(None)
    (0.1235, None)
    """
    return None if value is None else float(f"{value:.4g}")


def number(value: float) -> str:
    """A coordinate, no longer than it needs to be.

    >>> number(12.3456), number(7.0)
    ('12.3', '7')
    """
    return f"{value:.1f}".removesuffix(".0")


# A picture as a separate file: plain colours on white, with its heading and finding as text.
#
# Style sheets, variables and media queries are for browsers. Other programs that draw SVG
# (Inkscape, librsvg, CairoSVG, LaTeX's converters) know attributes best, so that is all a file
# holds.

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
    **{f"s{level}": (LIGHT[f"l{level}"], "18") for level in range(1, 5)},
}
"""The colour and width of each class of lines; None is the colour of the series."""

PNG_SCALE = 3.0
"""Pixels for each point of the drawing: sharp on a slide and at 300 dots an inch in print."""

_MARGIN, _LETTER, _TITLE_LETTER = 8, 6.6, 8.6
_TITLE_HEIGHT, _PAGE_LINE_HEIGHT = 19, 16


def plain_svg(body: str, *, title: str, finding: str, width: int, height: int) -> str:
    """The SVG text of a figure with nothing but attributes."""
    room = width - 2 * _MARGIN
    titles = textwrap.wrap(title, int(room / _TITLE_LETTER))
    lines = textwrap.wrap(finding, int(room / _LETTER))
    top = _TITLE_HEIGHT * len(titles) + _PAGE_LINE_HEIGHT * len(lines) + 2 * _MARGIN
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
    _write(root, lines, _TITLE_HEIGHT * len(titles) + 14, _PAGE_LINE_HEIGHT, {"fill": SOFT})
    drawn = ET.fromstring(f'<g transform="translate(0 {top})">{body}</g>')  # noqa: S314  # our own
    _paint(drawn, SOFT)
    root.append(drawn)
    return ET.tostring(root, encoding="unicode")


def _write(root: ET.Element, lines: list[str], top: int, height: int, look: dict[str, str]) -> None:
    for i, line in enumerate(lines):
        place = {"x": str(_MARGIN), "y": str(top + height * i)}
        ET.SubElement(root, "text", place | look).text = line


def _paint(element: ET.Element, series: str) -> None:
    """Attributes for what the classes of an element mean; `series` is the colour around it."""
    classes = (element.attrib.pop("class", "") or "").split()
    for name in [name for name in element.attrib if name.startswith("data-")]:
        del element.attrib[name]
    series = next((SERIES[word] for word in classes if word in SERIES), series)
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
    attributes: dict[str, str] = {}
    if tag == "text":
        attributes["fill"] = SOFT if "soft" in classes else series if "key" in classes else INK
        attributes |= {"font-weight": "bold"} if {"key", "strong"} & set(classes) else {}
        attributes |= {"text-anchor": "end"} if "end" in classes else {}
        attributes |= {"text-anchor": "middle"} if "mid" in classes else {}
        return attributes
    for name in set(classes) & {"l0", "l1", "l2", "l3", "l4"}:
        attributes["fill"] = LIGHT[name]
    for name, (colour, width) in STROKES.items():
        if name in classes:
            attributes |= {"fill": "none", "stroke": colour or series, "stroke-width": width}
    if "ring" in classes:
        attributes |= {"fill": series, "stroke": "#ffffff", "stroke-width": "1.5"}
    if "hollow" in classes:
        attributes |= {"fill": "#ffffff", "stroke": series, "stroke-width": "1.5"}
    for name, opacity in (("fill", "1"), ("area", "0.72"), ("band", "0.16")):
        if name in classes:
            attributes |= {"fill": series, "fill-opacity": opacity}
    for name, pattern in (("dash", "5 4"), ("dot", "1.5 3")):
        if name in classes:
            attributes["stroke-dasharray"] = pattern
    return attributes
