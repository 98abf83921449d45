from passhat import render_markdown
from passhat.analysis.reports.measure import measure
from passhat.records import Trials


def test_a_report_reads_as_it_did(report, gold):
    gold("report.md", render_markdown(report))


def test_several_systems_begin_with_a_table_of_all(three):
    text = render_markdown(three)
    assert text.index("| gpt |") < text.index("## gpt")


def test_markdown_and_html_from_data_mean_nothing():
    name = "<script>alert(1)</script>|`x`[a](b)*\x1b\n# h"
    text = render_markdown(
        measure(Trials.from_columns(system=[name] * 8, task=["<b>t</b>|"] * 8, passed=[1, 0] * 4))
    )
    assert "<script>" not in text
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "\n# h" not in text
    for line in text.split("\n"):
        if line.startswith("| &lt;b"):
            assert line.count("|") - line.count("\\|") == 6
