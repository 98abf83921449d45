"""Answers for other programs: Markdown and LaTeX, escaped; CSV and JSON, numbers unrounded."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from passhat.messages import capitalised
from passhat.reporters import answer as part
from passhat.reporters.answer import (
    Answer,
    Block,
    DisplayOptions,
    HeadingRow,
    Headline,
    Judged,
    Marks,
    Table,
)
from passhat.reporters.formats.text import line_count
from passhat.reporters.formatting import safe_text

# GitHub and GitLab look for references in the rendered text, so a backslash does not prevent them:
# people (who would be notified), issues, merge requests, epics (which would link back), addresses.
# A space without width does. A line that begins with / is a command to GitLab.
_REFERENCE = re.compile(
    r"(?<![A-Za-z0-9])@(?=[\w\\])|[#!](?=\d)|&amp;(?=\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
_NO_SPACE = "&#8203;"


def render_markdown(answer: Answer[Any], options: DisplayOptions) -> str:
    """The answer as Markdown: one screen, or everything with `verbose`."""
    shown = replace(options, verbose=bool(options.verbose), line_count=line_count)
    return blocks_markdown(answer.all_blocks(shown))


def blocks_markdown(blocks: Sequence[part.Block]) -> str:
    """Blocks as one text; what is drawn, a page or a picture shows."""
    texts = [text for block in blocks if (text := _block(block))]
    return "\n\n".join(texts) + "\n"


def escape_markdown(text: str) -> str:
    r"""Safe text in which Markdown, HTML and the references of forges mean nothing.

    >>> escape_markdown("a|b <b>*x*</b>")
    'a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;'
    >>> escape_markdown("refund #3 for @ann, pass@5")
    'refund \\#&#8203;3 for @&#8203;ann, pass@5'
    """
    shown = safe_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|~#!":
        shown = shown.replace(mark, "\\" + mark)
    shown = _REFERENCE.sub(rf"\g<0>{_NO_SPACE}", shown)
    return f"&#47;{shown[1:]}" if shown.startswith("/") else shown


def code_span(text: str) -> str:
    """Safe text as code, in which nothing needs escaping: the fence is longer than what it holds.

    >>> code_span("passhat gate 'my`log.csv'")
    "`` passhat gate 'my`log.csv' ``"
    """
    shown = safe_text(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence, room = "`" * (longest + 1), " " * bool(longest)
    return f"{fence}{room}{shown}{room}{fence}"


def _block(block: part.Block) -> str:
    match block:
        case part.Headline():
            return f"**{escape_markdown(block.text)}**"
        case part.Section():
            note = f"\n\n{escape_markdown(block.note)}" if block.note else ""
            return f"## {escape_markdown(block.title)}{note}"
        case part.Paragraph():
            label = f"**{block.label}.** " if block.label else ""
            return label + escape_markdown(block.text)
        case part.Remark():
            return escape_markdown(block.text)
        case part.Hints():
            return "  \n".join(map(_step, block.steps))
        case part.Line():
            detail = f": {escape_markdown(block.detail)}" if block.detail else ""
            return f"- {code_span(block.text)}{detail}"
        case part.Judged():
            sign = part.StatusLabel(block.word, part.WORD_TONES[block.word]).sign  # as in a chip
            line = f"- **{sign} {block.word}** {escape_markdown(block.sentence)}"
            details = (_step(text) if isinstance(text, part.NextStep) else escape_markdown(text)
                       for text in block.details)  # fmt: skip
            return "\n".join([line, *(f"  {text}" for text in details)])
        case part.Steps():
            items = (f"{i}. {_step(step)}" for i, step in enumerate(block.steps, 1))
            return "\n".join([f"**{block.title}**", "", *items])
        case part.Table():
            return _table(block)
        case part.Shares() | part.Picture():
            return ""


def _step(step: part.NextStep) -> str:
    text = escape_markdown(step.text)
    return f"{text}: {code_span(step.command)}" if step.command else text


def _table(table: part.Table) -> str:
    kept = table.written_columns

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rows = []
    for row in table.rows:
        cells = [row.text] if isinstance(row, part.HeadingRow) else [str(row[i]) for i in kept]
        cells += [""] * (len(kept) - len(cells))
        rows.append(line([escape_markdown(cell) for cell in cells]))
    rule = line([":--" if i in table.left else "--:" for i in kept])
    return "\n".join([line([escape_markdown(table.header[i]) for i in kept]), rule, *rows])


# Answers as LaTeX: a booktabs table with a caption, and a paragraph on methods.

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\`{}",
    "“": "``", "”": "''", "×": r"\(\times\)", "±": r"\(\pm\)", "…": r"\dots{}",
}  # fmt: skip

_KNOWN = frozenset("ßæøåœÆØÅŒłŁ\u2013\u2014\u2018\u2019")
"""Characters that every LaTeX sets as they are, beside ASCII and accented Latin letters."""

_OGONEK = "0328"
"""An accent that LaTeX's default font encoding lacks."""

_OTHER_SCRIPTS = r"""\providecommand{\passhatchar}[2]{\ifdefined\Umathchar#1\else U+#2\fi}"""
"""XeLaTeX and LuaLaTeX set other characters; pdfLaTeX, which would stop, gets their codes."""

_OPENING_QUOTE = re.compile(r'(?<![^\s(\[{])"')  # at the start, after a space or a bracket


def render_tex(answer: Answer[Any], options: DisplayOptions) -> str:
    """The main table of an answer, and how its numbers were made."""
    blocks = answer.worded_blocks(options)
    headlines = [block.text for block in blocks if isinstance(block, Headline)]
    caption = answer.caption() or (headlines[0] if headlines else capitalised(answer.name))
    label = _label(answer)
    methods = answer.methods()
    tables = _tables(blocks) if (own := answer.paper_table()) is None else [own]
    is_long = any(len(table.rows) > _ROWS_OF_A_PAGE for table in tables)
    packages = "booktabs,longtable" if is_long else "booktabs"
    parts = [
        f"% Needs \\usepackage{{{packages}}}.\n{_OTHER_SCRIPTS}",
        *(_float(table, caption, label) for table in tables),
        *([rf"\paragraph{{Methods.}} {escape_tex(methods)}"] if methods else []),
        _bibtex(),
    ]
    return "\n\n".join(parts) + "\n"


def _label(answer: Answer[Any]) -> str:
    """By its agents too, so that two reports in a document have two labels."""
    agents = answer.agents()
    more = f" and {len(agents) - _MOST_IN_LABEL} more" if len(agents) > _MOST_IN_LABEL else ""
    words = f"{answer.name} {' '.join(agents[:_MOST_IN_LABEL])}{more}"
    return f"tab:passhat-{re.sub('[^A-Za-z0-9]+', '-', words).strip('-')}"


_MOST_IN_LABEL = 2


def _bibtex() -> str:
    """How to cite passhat, in comments: an entry for the file of references."""
    from passhat import __version__

    return "\n".join(
        (
            "% For your .bib file, to cite what the numbers were computed with:",
            # Plain styles know no @software: they print what @misc has, and lower its capitals.
            "% @misc{passhat,",
            "%   title = {passhat: does your {AI} agent get it right every time?},",
            "%   author = {{The passhat developers}},",
            "%   year = {2026},",
            f"%   howpublished = {{Version {__version__}, https://github.com/passhat/passhat}},",
            "% }",
        )
    )


def escape_tex(text: str) -> str:
    r"""Safe text in which LaTeX means nothing.

    >>> escape_tex("50% of pass^2 \\input{x}")
    '50\\% of pass\\textasciicircum{}2 \\textbackslash{}input\\{x\\}'
    >>> print(escape_tex('two scopes: "this suite" and ("others")'))
    two scopes: ``this suite'' and (``others'')
    """
    plain = _OPENING_QUOTE.sub("“", safe_text(text)).replace('"', "”")
    return "".join(_ESCAPES.get(c) or (c if _is_set(c) else _by_code(c)) for c in plain)


def _is_set(character: str) -> bool:
    """Whether every LaTeX has this character."""
    if character.isascii() or character in _KNOWN:
        return True
    letter, _, accent = unicodedata.decomposition(character).partition(" ")
    return "À" <= character <= "ž" and accent not in ("", _OGONEK) and "<" not in letter


def _by_code(character: str) -> str:
    return rf"\passhatchar{{{character}}}{{{ord(character):04X}}}"


def _tables(blocks: Sequence[Block]) -> list[Table]:
    """The first table; of verdicts, which have none, one of their words and sentences."""
    if tables := [block for block in blocks if isinstance(block, Table)]:
        return tables[:1]
    verdicts = [(block.word, block.sentence) for block in blocks if isinstance(block, Judged)]
    return [Table(header=("verdict", "gate"), rows=tuple(verdicts), left=(0, 1))]


_ROWS_OF_A_PAGE = 40
"""A float of more rows would run off its page: the table is broken, its head on every page."""


def _float(table: Table, caption: str, label: str) -> str:
    kept = table.written_columns
    columns = "".join("l" if i in table.left else "r" for i in kept)
    head = [r"\toprule", _row([table.header[i] for i in kept]), r"\midrule"]
    rows = [_table_row(row, kept) for row in table.rows]
    if len(rows) > _ROWS_OF_A_PAGE:
        lines = [
            rf"\begin{{longtable}}{{{columns}}}",
            rf"\caption{{{escape_tex(caption)}}}\label{{{label}}} \\",
            *(*head, r"\endfirsthead", *head, r"\endhead"),
            *(r"\bottomrule", r"\endlastfoot", *rows),
            r"\end{longtable}",
        ]
        return "\n".join(lines)
    lines = [
        r"\begin{table}",
        # Classes made for captions below a figure leave no room between a caption and the rule.
        r"\ifdim\belowcaptionskip=0pt \setlength{\belowcaptionskip}{\medskipamount}\fi",
        rf"\caption{{{escape_tex(caption)}}}",
        rf"\label{{{label}}}",
        r"\centering",
        rf"\begin{{tabular}}{{{columns}}}",
        *(*head, *rows, r"\bottomrule"),
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _table_row(row: Any, kept: Sequence[int]) -> str:
    if isinstance(row, HeadingRow):
        return rf"\multicolumn{{{len(kept)}}}{{l}}{{\emph{{{escape_tex(row.text)}}}}} \\"
    cells = [row[i] for i in kept]
    return _row([cell.sequence if isinstance(cell, Marks) else str(cell) for cell in cells])


def _row(cells: Sequence[str]) -> str:
    # In braces: an interval that opens a row would be read as an option of the break before it.
    return " & ".join(f"{{{escape_tex(cell)}}}" for cell in cells) + r" \\"


# Answers as data: CSV, JSON and NDJSON.

# A cell that begins like this is a formula to a spreadsheet (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render_csv(answer: Answer[Any], options: DisplayOptions) -> str:
    """The rows of an answer (RFC 4180): a header, then a row a number."""
    rows = answer.rows()
    text = io.StringIO()
    writer = csv.writer(text)
    if rows:
        writer.writerow([_cell(name) for name in rows[0]])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """A value as a spreadsheet should read it: text from data is never a formula.

    >>> _cell("=HYPERLINK(1)"), _cell(-0.5), _cell(None)
    ("'=HYPERLINK(1)", -0.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def render_json(answer: Answer[Any], options: DisplayOptions) -> str:
    """The data of an answer; its first key names the schema.

    The same value gives the same bytes: keys as built, ASCII only, so that it is safe to print.
    """
    return json.dumps(answer.data(), indent=2, allow_nan=False) + "\n"


def render_ndjson(answer: Answer[Any], options: DisplayOptions) -> str:
    """A line a row. A run writes its events instead, while they happen."""
    return "".join(json.dumps(dict(row), allow_nan=False) + "\n" for row in answer.rows())
