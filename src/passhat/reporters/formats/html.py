"""Answers as one self-contained page: no request to anywhere, readable without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from passhat.analysis.reports.parts import LABELS, common_k
from passhat.dataclass import dataclass
from passhat.drawing.figure import DARK, LIGHT, RULES, variables
from passhat.reporters import answer as part
from passhat.reporters import headline, wording
from passhat.reporters.answer import (
    WORD_TONES,
    Answer,
    Block,
    DisplayOptions,
    Headline,
    Judged,
    Picture,
    Section,
    Shares,
    StatusLabel,
    Steps,
    Table,
    file_name,
    reading_lines,
)
from passhat.reporters.answers.report_blocks import (
    correlation,
    factor_blocks,
    most_reliable_first,
    systems_table,
)
from passhat.reporters.answers.report_page import task_groups
from passhat.reporters.answers.trend import HEAT
from passhat.reporters.formatting import (
    amount,
    metric_label,
    percent,
    percent_range,
    points,
    run_marks,
    safe_text,
    signed_points,
    span,
)
from passhat.reporters.next_steps import next_steps
from passhat.reporters.page_parts import (
    LONG_LIST,
    MOST_ROWS,
    headline_parts,
    page_templates,
    task_anchor,
)
from passhat.reporters.wording import GLOSSARY

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from passhat.drawing.figure import Figure

WIDEST = 76
"""Characters of a table up to which it fits into seven of the page's twelve columns."""

_MARK_TAGS = {"P": "b", "F": "i", "E": "u"}

_SHORT_NAME, _LONGEST_PIECE = 16, 24
_OPTIONS = re.compile(r"((?<!\S)--[a-z][a-z-]*|\bp [=<] [\d.e-]*\d)")
_PATH_SEAMS = re.compile(r"(?<=[/_])(?=[^/_\s])")
_SEAMS = re.compile(r"([ _/.:-]+)(?=[^ _/.:-])")


def render_html(answer: Answer[Any], options: DisplayOptions) -> str:
    """The page of an answer; the verdict is in its title and its icon.

    It has no more style and script than it uses, which its policy names: they are put in last.
    """
    frame = {"title": f"{safe_text(answer.title())} · passhat", "provenance": answer.provenance()}
    options = replace(options, results=_without_folders(options.results))
    template = templates().get_template(answer.template)
    page = template.render({**frame, **page_values(answer, options)})
    script = page_script(page)
    style = page_style(page, script)
    # Nothing that comes from data stands before the style or after the script.
    head, _, rest = page.partition("<style></style>")
    head = head.replace('content=""', f'content="{content_policy(script, style)}"', 1)
    main, _, end = rest.rpartition("<script></script>")
    return f"{head}<style>{style}</style>{main}<script>{script}</script>{end}"


def _without_folders(results: str | None) -> str | None:
    """What commands of a page read; it is shown to others, who do not have the folders of a disk.

    >>> _without_folders("/home/ann/night.json new.json")
    'night.json new.json'
    >>> _without_folders("Ann's results")
    "Ann's results"
    """
    if results is None:
        return None
    try:
        words = shlex.split(results)
    except ValueError:  # given in Python, and not as words of a shell
        return results
    return shlex.join(file_name(word) if word.startswith("/") else word for word in words)


def page_values(answer: Answer[Any], options: DisplayOptions) -> dict[str, Any]:
    """What the template of an answer shows, on a page by itself or on the dashboard."""
    shared = {"subject": answer.name, "chip": answer.chip(), "facts": answer.facts()}
    shared["headline"] = answer.title()
    return {**shared, **(answer.page(options) or _laid_out(answer, options))}


def _laid_out(answer: Answer[Any], options: DisplayOptions) -> dict[str, Any]:
    """What a page without a template of its own shows: the headline, then blocks and figures."""
    blocks = [block for block in answer.on_page(options) if not isinstance(block, Picture)]
    match blocks:
        case [Headline(text=headline), *rest]:
            return {"headline": headline, "parts": lay_out(rest, answer.figures())}
        case _:
            return {"parts": lay_out(blocks, answer.figures())}


@cache
def templates() -> Environment:
    """The templates, with the words and numbers of every other reporter."""
    environment = page_templates()
    environment.globals |= {
        "reading_lines": partial(reading_lines, folders=False),
        "labels": LABELS,
        "long_list": LONG_LIST,
        "most_rows": MOST_ROWS,
        "heat_levels": HEAT,
    }
    environment.filters |= {
        "agent_mark": lambda system: task_anchor(system, "").removeprefix("task--"),
        "amount": amount,
        "anchor": lambda names: task_anchor(*names),
        "coloured_marks": coloured_marks,
        "design": wording.design,
        "errors_note": wording.errors_note,
        "command": _command,
        "compact": _compact,
        "correlation": correlation,
        "figure_id": _figure_id,
        "glossary": _glossary_of,
        "headline_k": wording.headline_k,
        "icon": _icon,
        "lay_out": lay_out,
        "lead": _lead,
        "marks": lambda sequence: run_marks(sequence or ""),
        "meaning": _meaning,
        "metric_label": metric_label,
        "metric_name": wording.metric_name,
        "missing_notes": wording.missing_notes,
        "most_reliable_first": most_reliable_first,
        "common_k": common_k,
        "name": breakable_name,
        "next_steps": next_steps,
        "partial_note": wording.partial_note,
        "percent": percent,
        "percent_range": percent_range,
        "points": lambda value: points(value, digits=1),
        "prose": _prose,
        "task_name": task_name,
        "task_row": lambda task: "#" + task_anchor("", task),
        # The dashboard has a page for each run.
        "run_address": lambda key: "#run-" + "_".join(safe_text(key).split()),
        "safe_text": safe_text,
        "scored": lambda tasks: bool((abs(tasks.mean_score - tasks.rate) > 1e-9).any()),
        "signed_points": signed_points,
        "span": span,
        "factor_blocks": lambda system: factor_blocks(system)[1:],
        "systems_table": lambda systems, asked=None: systems_table(
            {system.name: system for system in systems}, "in %", asked=asked
        ),
        "task_groups": task_groups,
        "section_link": lambda place: f"#system-{place}",
        "shown_metrics": wording.shown_metrics,
        "verdict": headline.verdict,
        "word_tone": lambda word: WORD_TONES[word],
    }
    return environment


def breakable_name(name: str) -> Markup:
    """A name from data, escaped; a long one may be broken at its seams rather than in a word.

    >>> str(breakable_name("build_your_own__<x>"))
    'build_<wbr>your_<wbr>own__<wbr>&lt;x&gt;'
    >>> str(breakable_name("refund_twice"))
    'refund_twice'
    """
    from markupsafe import Markup, escape

    shown = safe_text(name)
    if len(shown) <= _SHORT_NAME:
        return escape(shown)
    pieces = _SEAMS.sub("\\1\0", shown).split("\0")
    parts = [
        piece[i : i + _LONGEST_PIECE]
        for piece in pieces
        for i in range(0, len(piece), _LONGEST_PIECE)
    ]
    return Markup("<wbr>").join(parts)


def task_name(name: str) -> Markup:
    """The name of a task; one that is a number alone says nothing without the word.

    >>> str(task_name("41")), str(task_name("airline-05"))
    ('Task 41', 'airline-05')
    """
    return breakable_name(f"Task {name}" if name.isdigit() else name)


def coloured_marks(sequence: str | None) -> Markup:
    """The runs of a task as marks; runs of a kind share an element, so that many stay small.

    >>> str(coloured_marks("PPF"))
    '<b>●●</b><i>○</i>'
    >>> str(coloured_marks("3/20"))
    '3/20'
    """
    from markupsafe import Markup, escape

    runs = sequence or ""
    if not set(runs) <= set(_MARK_TAGS):
        return escape(runs)
    marks = {letter: (tag, run_marks(letter)) for letter, tag in _MARK_TAGS.items()}
    alike = ((*marks[same[0]], len(same)) for same in re.findall("P+|F+|E+", runs))
    pieces = (f"<{tag}>{mark * count}</{tag}>" for tag, mark, count in alike)
    return Markup("".join(pieces))  # noqa: S704  our own tags around our own marks


def _lead(sentence: str) -> Markup:
    """A headline in two weights: its first clause, and what that rests on."""
    from markupsafe import Markup, escape

    return Markup("").join(
        Markup('<span class="{}">{}</span>').format(kind, text) if kind else escape(text)
        for kind, text in headline_parts(sentence)
    )


def _prose(text: str) -> Markup:
    """A sentence, escaped, in which no line ends inside an option or a p-value.

    >>> str(_prose("--json lists <all>"))
    '<span class="whole-name">--json</span> lists &lt;all&gt;'
    >>> str(_prose("type `a < b`"))
    'type <code>a &lt; b</code>'
    """
    from markupsafe import Markup, escape

    typed = safe_text(text).split("`")
    if len(typed) > 1 and len(typed) % 2:
        return Markup("").join(
            Markup("<code>{}</code>").format(part) if i % 2 else _prose(part)
            for i, part in enumerate(typed)
        )
    return Markup("").join(
        Markup('<span class="whole-name">{}</span>').format(part) if i % 2 else escape(part)
        for i, part in enumerate(_OPTIONS.split(safe_text(text)))
    )


def _command(text: str) -> Markup:
    """A command, escaped; a long path in it may be broken at its seams rather than in a word.

    >>> str(_command("passhat why a/<b>.csv"))
    'passhat why a/<wbr>&lt;b&gt;.csv'
    """
    from markupsafe import Markup

    return Markup("<wbr>").join(_PATH_SEAMS.split(safe_text(text)))


def _glossary_of(page: str) -> list[tuple[str, str]]:
    """The terms that this text of a page says, with their meaning; those of its headline always.

    What is typed says nothing: one page may be made by several commands.
    """
    text = re.sub(r"<code\b[^>]*>.*?</code>|<[^>]*>", " ", page, flags=re.DOTALL)
    words = set(re.findall(r"\w[\w@^-]*", text.lower()))
    words |= {"reliable", "pass@k", "pass^k", *(word.removesuffix("s") for word in words)}
    return [
        (term, meaning)
        for term, meaning in GLOSSARY.items()
        if all(word in words for word in re.findall(r"\w[\w@^-]*", term.lower()))
    ]


def _icon(chip: StatusLabel | None) -> str:
    """The verdict as the icon of a page: its sign in its colour, inside the page itself."""
    colours = {"good": "a", "bad": "b", "open": "e", "none": "soft"}
    tone, sign = ("none", "^") if chip is None else (chip.tone, chip.sign)
    drawn = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>"
        f"<rect width='32' height='32' rx='7' fill='{LIGHT[colours[tone]]}'/><text x='16' y='23' "
        "font-family='sans-serif' font-size='20' font-weight='700' fill='#fff' "
        f"text-anchor='middle'>{sign}</text></svg>"
    )
    return "data:image/svg+xml," + quote(drawn, safe=":/ ='")


def _compact(rows: Sequence[Sequence[object]]) -> Markup:
    """Rows as JSON for an attribute in single quotes, without a blank too many."""
    from markupsafe import Markup

    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    for raw in "<>&'":
        text = text.replace(raw, f"\\u{ord(raw):04x}")
    return Markup(text)  # noqa: S704  what could end the attribute is written out


def _figure_id(figure: Figure) -> str:
    """The address of a picture on its page."""
    mark = hashlib.sha256((figure.title + figure.finding).encode(errors="replace")).hexdigest()
    return f"figure-{mark[:8]}"


@cache
def _style_sheet() -> str:
    """The style of every page: that of the pictures, then that of the text around them."""
    both = {name: f"light-dark({LIGHT[name]},{DARK[name]})" for name in LIGHT}
    # Paper is white, whatever the reader prefers on a screen.
    paper = "color-scheme:light;--page:#fff;--ground:#fff;--raised:#f6f8fa"
    printed = f":root,:root[data-theme]{{{paper}}}"
    own = _asset("style.css") + _asset("cards.css") + _asset("other_pages.css")
    return f".ph{{{variables(both)}}}\n{RULES}{own}@media print{{{printed}}}"


def page_style(page: str | None = None, script: str = "") -> str:
    """The style of every page; of a `page` with this script, only the rules that it uses."""
    if page is None:
        return _style_sheet()
    written = [*re.findall(r'class="?([^">]*)', page), *re.findall(r"data-hero='([^']*)", page)]
    # What the script looks for, ".name", it need not make.
    quoted = re.findall(r"\"[^\"]*\"|`[^`]*`", script)
    words = frozenset(re.findall(r"(?<![\w.-])[\w-]+", " ".join([*written, *quoted])))
    words |= frozenset(re.findall(r"<([a-z]\w*)", page))
    if 'id="transcripts"' in page:  # packed, so that nobody sees what they use
        words |= frozenset(re.findall(r"[a-zA-Z][\w-]*", _asset("cards.css")))
    used = _used_rules(_style_sheet(), words)
    read = set(re.findall(r"var\((--[\w-]+)", used))
    return _VARIABLE.sub(lambda match: match[0] if match[1] in read else "", used)


def _used_rules(style: str, words: frozenset[str]) -> str:
    """The rules with a selector that needs no elements and classes but these."""
    kept = []
    for selectors, body in _rules(style):
        if selectors.startswith(("@media", "@container")):
            kept.append((selectors, _used_rules(body, words)))
        elif selectors.startswith("@"):
            kept.append((selectors, body))
        else:
            used = [
                selector for selector in _SELECTORS.split(selectors) if _applies(selector, words)
            ]
            kept.append((",".join(used), body if used else ""))
    return "".join(f"{selectors}{{{body}}}" for selectors, body in kept if body)


_VARIABLE = re.compile(r"(--[\w-]+):(?:[^;(}]|\((?:[^()]|\([^()]*\))*\))*;?")
_SELECTORS = re.compile(r",(?![^(]*\))")
_CHOICES = re.compile(r":(not|is|has)\(((?:[^()]|\([^()]*\))*)\)")


def _applies(selector: str, words: frozenset[str]) -> bool:
    """Whether a page with these elements and classes may have what a selector selects.

    >>> _applies("figure:has(.wide) b", frozenset({"figure", "b"}))
    False
    >>> _applies(":is(.strip,.keys) i:not(.x)", frozenset({"keys", "i"}))
    True
    """
    choices = [inner.split(",") for kind, inner in _CHOICES.findall(selector) if kind != "not"]
    return _named(selector) <= words and all(
        any(_applies(choice, words) for choice in inner) for inner in choices
    )


@cache
def _rules(style: str) -> list[tuple[str, str]]:
    """The rules of a style sheet: their selectors, and what stands in their braces."""
    rules, start, opened, depth = [], 0, 0, 0
    for brace in re.finditer("[{}]", style):
        at = brace.start()
        if brace[0] == "{":
            opened, depth = (at if depth == 0 else opened), depth + 1
            continue
        depth -= 1
        if depth == 0:
            rules.append((style[start:opened].strip(), style[opened + 1 : at].strip()))
            start = at + 1
    return rules


@cache
def _named(selector: str) -> frozenset[str]:
    """The elements and classes that a selector names outside of its choices."""
    bare = re.sub(r"\[[^\]]*\]|::?[\w-]+(?:\([^)]*\))?", "", _CHOICES.sub("", selector))
    return frozenset(re.findall(r"[a-zA-Z][\w-]*", bare))


_PART = "// Only for pages with: "


@cache
def _script_parts() -> list[tuple[tuple[str, ...], str]]:
    """The script in parts, without comments: what a page has one of that needs it, and its lines.

    Tables sort and filter, runs open by their address.
    """
    parts: list[tuple[tuple[str, ...], list[str]]] = [((), [])]
    for line in (_asset("page.js") + _asset("cards.js")).splitlines():
        bare = line.strip()
        if bare.startswith(_PART):
            parts.append((tuple(bare.removeprefix(_PART).split(", ")), []))
        elif bare and not bare.startswith("//"):
            parts[-1][1].append(_tight(bare))
    return [(needs, "\n".join([*lines, ""])) for needs, lines in parts]


_LITERALS = re.compile(r'("(?:[^"\\]|\\.)*"|`[^`]*`|/(?:[^/\\\[]|\\.|\[[^\]]*\])+/)')


def _tight(line: str) -> str:
    """A line of our script without blanks beside signs; not in strings, patterns, templates.

    >>> _tight('const shown = (row) => said(row, "a = b").replace(/ = /, "");')
    'const shown=(row)=>said(row,"a = b").replace(/ = /,"");'
    """
    if line.count("`") > 2:  # a template may hold another
        return line
    return "".join(
        piece if i % 2 else re.sub(r" ?([=<>{}()\[\],;:?&|+*!]+) ?", r"\1", piece)
        for i, piece in enumerate(_LITERALS.split(line))
    )


def page_script(page: str | None = None) -> str:
    """The script of every page; of a `page`, only the parts that it uses."""
    return "".join(
        lines
        for needs, lines in _script_parts()
        if page is None or not needs or any(word in page for word in needs)
    )


def content_policy(script: str, style: str) -> str:
    """A policy that lets exactly this script and this style run; pictures are inside the page."""
    return (
        f"default-src 'none'; script-src '{source_hash(script)}'; "
        f"style-src '{source_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("passhat.reporters.formats").joinpath("pages", name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """What a policy calls an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _meaning(metric: str) -> str:
    kind, _, k = metric.partition("^") if "^" in metric else metric.partition("@")
    if kind != "pass":
        return "the mean score over tasks, partial credit counted"
    if k == "1":
        return "one attempt at a task succeeds"
    return f"{k} attempts all succeed" if "^" in metric else f"at least one of {k} succeeds"


# Answers as a piece of HTML for a notebook cell, or for a page of your own.
#
# A notebook puts this text into its page as it is, so everything from data is escaped, nothing
# loads from elsewhere, and there is no script, no class and no style sheet that could touch the
# rest.

MOST_FRAGMENT_ROWS = 60
"""Rows of a table that a cell shows; `to_frame()` and the page have them all."""

_BOX = "max-width:72em;line-height:1.45"
_SOFT = "opacity:.75"
# In the ink of the notebook, which may be dark: its sign says what a colour would.
_CHIP = "border:1px solid;border-radius:1em;padding:.1em .7em;font-weight:600;font-size:.9em"
_COLOURS = {"PASS": LIGHT["a"], "FAIL": LIGHT["b"], "UNDECIDED": LIGHT["e"]}
"""Contrast 4.5 : 1 on white; the word is printed too, so colour is never the only sign."""


def render_fragment(answer: Answer[Any], options: DisplayOptions) -> str:
    """The answer with its verdict in a chip, as on its page, then the picture of that page."""
    written = [text for block in answer.worded_blocks(options) for text in _block(block)]
    figure = answer.glance()
    drawn = [] if figure is None else [f"<div>{figure.svg(standalone=True)}</div>"]
    return (
        f'<div style="{_BOX}">' + "\n".join([*_chip(answer.chip()), *written, *drawn]) + "</div>\n"
    )


def _chip(chip: StatusLabel | None) -> Iterator[str]:
    if chip is not None:
        yield f'<p><span style="{_CHIP}">{chip.sign} {_text(chip.words)}</span></p>'


def _block(block: part.Block) -> Iterator[str]:
    match block:
        case part.Headline():
            yield f"<p><strong>{_text(block.text)}</strong></p>"
        case part.Section():
            note = f' <span style="{_SOFT}">{_text(block.note)}</span>' if block.note else ""
            yield f"<p><strong>{_text(block.title)}</strong>{note}</p>"
        case part.Paragraph():
            label = f"<strong>{_text(block.label)}.</strong> " if block.label else ""
            yield f"<p>{label}{_text(block.text)}</p>"
        case part.Remark():
            yield f"<p>{_text(block.text)}</p>"
        case part.Hints():
            yield f"<p>{'<br>'.join(map(_step, block.steps))}</p>"
        case part.Line():
            detail = f" {_text(block.detail)}" if block.detail else ""
            yield f"<p><code>{_text(block.text)}</code>{detail}</p>"
        case part.Judged():
            yield _judged(block)
        case part.Steps():
            items = "".join(f"<li>{_step(step)}</li>" for step in block.steps)
            yield f"<p><strong>{_text(block.title)}</strong></p><ol>{items}</ol>"
        case part.Table():
            yield _table(block)
        case part.Shares() | part.Picture():
            return  # the figure below shows it


def _judged(block: part.Judged) -> str:
    word = f'<strong style="color:{_COLOURS[block.word]}">{block.word}</strong>'
    details = "".join(
        f'<br><span style="{_SOFT}">{_text(str(detail))}</span>' for detail in block.details
    )
    return f"<p>{word} {_text(block.sentence)}{details}</p>"


def _step(step: part.NextStep) -> str:
    command = f": <code>{_text(step.command)}</code>" if step.command else ""
    return _text(step.text) + command


def _table(table: part.Table) -> str:
    kept = table.written_columns
    head = "".join(_cell("th", table.header[i], left=i in table.left) for i in kept)
    rows = [_row(table, row, kept) for row in table.rows[:MOST_FRAGMENT_ROWS]]
    more = len(table.rows) - MOST_FRAGMENT_ROWS
    rest = f'<p style="{_SOFT}">and {more:,} more rows: to_frame()</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"


def _row(
    table: part.Table, row: tuple[part.Cell, ...] | part.HeadingRow, kept: Sequence[int]
) -> str:
    if isinstance(row, part.HeadingRow):
        style = f"text-align:left;{_SOFT}"
        return f'<tr><th colspan="{len(kept)}" style="{style}">{_text(row.text)}</th></tr>'
    cells = (_cell("td", row[i], left=i in table.left) for i in kept)
    return f"<tr>{''.join(cells)}</tr>"


def _cell(tag: str, cell: part.Cell, *, left: bool) -> str:
    return f'<{tag} style="text-align:{"left" if left else "right"}">{_text(str(cell))}</{tag}>'


def _text(text: str) -> str:
    return escape(safe_text(text))


# How the blocks of an answer lie on its page: pictures and tables to the left, words beside.


@dataclass(slots=True, kw_only=True)
class PagePart:
    """A stretch of a page under one heading: two columns, and what is too wide for either."""

    title: str = ""
    note: str = ""
    figures: list[tuple[str, Figure]] = field(default_factory=list)
    left: list[Block] = field(default_factory=list)
    right: list[Block] = field(default_factory=list)
    below: list[Table] = field(default_factory=list)

    @property
    def words(self) -> list[Block]:
        """The sentences of the right column, which share a pane."""
        return [block for block in self.right if not isinstance(block, Steps)]

    @property
    def steps(self) -> list[Steps]:
        """Lists of things to do, a pane each."""
        return [block for block in self.right if isinstance(block, Steps)]


def lay_out(blocks: Sequence[Block], figures: Mapping[str, Figure] | None = None) -> list[PagePart]:
    """The parts of a page in order; `figures` are with the first table, else in the first part.

    >>> from passhat.reporters.answer import Paragraph
    >>> [part.title for part in lay_out([Paragraph("a", "b"), Section("Next"), Paragraph("", "c")])]
    ['', 'Next']
    """
    parts = [PagePart()]
    for block in blocks:
        if isinstance(block, Section):
            parts.append(PagePart(title=block.title, note=block.note))
        else:
            _place_block(block, parts[-1])
    drawn = next((part for part in parts if part.left or part.below), parts[0])
    drawn.figures[:0] = (figures or {}).items()
    return [part for part in parts if part.figures or part.left or part.right or part.below]


def _place_block(block: Block, part: PagePart) -> None:
    if isinstance(block, Picture):
        part.figures.append(("", block.figure))
    elif isinstance(block, Table):
        part.below.append(block) if _width(block) > WIDEST else part.left.append(block)
    elif isinstance(block, Judged):
        part.left.append(block)
    elif not isinstance(block, Shares):
        part.right.append(block)


def _width(table: Table) -> int:
    """How many characters a line of a table takes; bars are left to the pictures."""
    rows = [table.header, *table.cells]
    return sum(2 + max(len(str(row[i])) for row in rows) for i in table.written_columns)
