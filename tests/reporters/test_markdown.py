import html
import re

from hypothesis import example, given
from hypothesis import strategies as st

from passhat import render_markdown
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.reporters.formats.markup import escape_markdown
from passhat.reporters.formatting import safe_text


def test_a_report_reads_as_it_did(report, gold):
    gold("report.md", render_markdown(report))


def test_several_systems_begin_with_a_table_of_all(three):
    text = render_markdown(three, verbose=True)
    assert text.index("| gpt |") < text.index("## gpt")
    brief = render_markdown(three)
    assert len(brief.splitlines()) <= 15
    assert all(f"\n| {name} |" in brief for name in ("gpt", "opus", "tiny"))


def test_markdown_and_html_from_data_mean_nothing():
    name = "<script>alert(1)</script>|`x`[a](b)*\x1b\n# h"
    found = measure(
        Trials.from_columns(system=[name] * 8, task=["<b>t</b>|"] * 8, passed=[1, 0] * 4)
    )
    for verbose in (False, True):
        text = render_markdown(found, verbose=verbose)
        assert "script" in text
        for active in ("<script>", "<b>", "\x1b", "\n# h"):
            assert active not in text
    for line in text.split("\n"):
        if line.startswith("| &lt;b"):
            assert line.count("|") - line.count("\\|") == 6


REFERENCE = re.compile(r"(?i)(?<![a-z0-9])@\w|#\d|!\d|&\d|://|www\.|^/", re.MULTILINE)
"""What a forge turns into a link or a notice once Markdown is rendered, and commands to GitLab."""


@given(st.text(alphabet="@#!&:/w.a1 -(\\*_", max_size=20))
@example(
    "@octocat and (@team/x), see owner/repo#12, !3, &4, https://evil.example, WWW.evil.example"
)
@example("/merge")
def test_a_forge_finds_nobody_to_notify_and_nothing_to_link_in_text_from_data(text):
    written = escape_markdown(text)
    assert not written.startswith("/")
    unescaped = re.sub(r"\\([\\`*_\[\]|~#!])", r"\1", written)
    shown = html.unescape(unescaped)
    assert not REFERENCE.search(shown.removeprefix("/"))
    assert shown.replace("\u200b", "") == safe_text(text)
