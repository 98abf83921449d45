"""Tables that a real LaTeX compiles, whatever the names."""

import re
import shutil
import subprocess

import pytest

import passhat
from passhat import Trials, compare, plan, rank
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.reporters import render

NAMES = (
    r"a\input{x}_%$#^~&", "old 東京 é ✓", "ąęŧħ ß Ł ø", "# % & [x] `q` \"y\" 'z'", "\x1b\u202e😀",
    "-- << >> ?` !`", "[b] *",
)  # fmt: skip
PAPER = r"""
\documentclass{article}
\usepackage{booktabs,longtable}
\usepackage{graphicx}
\begin{document}
%s
\includegraphics{figure.pdf}
\end{document}
"""


def _answers():
    systems = NAMES[:2]
    rows = [(s, t, (i + len(t)) % 3 > 0) for s in systems for t in NAMES for i in range(5)]
    system, task, passed = zip(*rows, strict=True)
    two = Trials.from_columns(system=list(system), task=list(task), passed=list(passed))
    one = two.where(system=systems[1])
    return {
        "several": measure(two),
        "one": measure(one),
        "matrix": measure(two).matrix(),
        "long": measure(simulate(tasks=100, runs=2)).matrix(),
        "comparison": compare(two),
        "ranking": rank(two),
        "plan": plan(one),
        "verdicts": judge(one, ["pass^1 >= 0.5", "pass^2 >= 0.9"]),
    }


@pytest.mark.slow("typesets a paper")
@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
def test_a_paper_with_every_table_and_a_figure_compiles(tmp_path, engine):
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed (Debian: texlive-latex-base texlive-latex-extra)")
    pytest.importorskip("cairosvg", reason="needs passhat[figures]")
    answers = _answers()
    for name, answer in answers.items():
        (tmp_path / f"{name}.tex").write_text(render(answer, "tex"), encoding="utf-8")
    answers["several"].plots.curves().save(tmp_path / "figure.pdf")
    inputs = "\n".join(rf"\input{{{name}}}" for name in answers)
    (tmp_path / "paper.tex").write_text(PAPER % inputs)
    done = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_a_table_of_more_rows_than_a_page_has_is_broken_over_pages():
    short, long = (
        render(measure(simulate(tasks=tasks, runs=2)).matrix(), "tex") for tasks in (40, 41)
    )
    assert "longtable" not in short
    assert r"\usepackage{booktabs,longtable}" in long
    assert r"\begin{table}" not in long
    assert long.count(r"{task} &") == 2  # the head of the first page, and of all others
    assert long.count(r"\caption") == long.count(r"\label") == 1
    assert long.count("task-") == 41


def test_letters_of_other_scripts_have_a_form_for_every_engine():
    report = measure(Trials.from_columns(task=["東", "é"], passed=[1, 0]))
    text = render(report.matrix(), "tex")
    assert r"\passhatchar{東}{6771}" in text
    assert "{é}" in text


def test_tables_of_other_agents_have_other_labels_and_a_label_needs_no_escape():
    def label(*agents):
        trials = Trials.from_columns(system=[*agents] * 8, task=["t"] * 8 * len(agents),
                                     passed=[1, 0] * 4 * len(agents))  # fmt: skip
        return re.search(r"\\label\{(.*)\}", render(measure(trials), "tex"))[1]

    assert label("gpt-4o_air") == "tab:passhat-report-gpt-4o-air"
    labels = [label("o3"), label("gpt 5"), label("o3", "a"), label("a", "b", "c", "d")]
    assert labels[-1] == "tab:passhat-report-a-b-and-2-more"
    assert len({*labels}) == len(labels)
    assert label("{%} 東\\") == "tab:passhat-report"


def test_a_caption_says_what_was_run_and_not_who_won():
    two = Trials.from_columns(
        system=["a"] * 40 + ["b"] * 40, task=[*"tuvw"] * 20, passed=[1, 0] * 40
    )
    captions = {
        "report": (measure(two), "pass@1 and pass\\textasciicircum{}5 of 2 agents on 4 tasks, 10"),
        "comparison": (compare(two), "a and b on 4 shared tasks, in percent, and their difference"),
        "ranking": (rank(two), "pass@1 of 2 agents on 4 shared tasks, in percent."),
    }
    for name, (answer, start) in captions.items():
        text = render(answer, "tex")
        assert rf"\caption{{{start}" in text
        assert rf"\label{{tab:passhat-{name}-a-b}}" in text
        assert "Brackets are 95\\% confidence intervals" in text
        assert "% @misc{passhat," in text
    alone = render(measure(two.where(system="a")), "tex")
    assert (
        r"\caption{pass@1, pass\textasciicircum{}k and pass@k of a on 4 tasks, 10 trials of"
        in alone
    )


def test_every_k_that_was_asked_for_has_its_intervals_for_every_agent():
    two = Trials.from_columns(
        system=["a"] * 40 + ["b"] * 40, task=[*"tuvw"] * 20, passed=[1, 0, 1, 1] * 20
    )
    report = measure(two, ks=(1, 2, 4))
    text = render(report, "tex")
    assert r"pass@1, pass\textasciicircum{}k and pass@k of 2 agents" in text
    for system in report.systems:
        for k in (1, 2, 4):
            metrics = system.pass_hat(k), system.pass_at(k)
            for number in (n for one in metrics for n in (one.this_suite, one.tasks_like_these)):
                low, high = (
                    f"{100 * end:.1f}" for end in (number.interval.low, number.interval.high)
                )
                assert f"{{[{low}, {high}]}}" in text
    assert len([line for line in text.splitlines() if "& {[" in line]) == 10


def test_a_plain_bibliography_prints_version_year_and_address(tmp_path):
    if shutil.which("bibtex") is None:
        pytest.skip("bibtex is not installed (Debian: texlive-binaries)")
    text = render(measure(Trials.from_columns(task=["a"], passed=[1])), "tex")
    entry = [line.removeprefix("% ") for line in text.splitlines() if line.startswith("%")]
    start = entry.index("@misc{passhat,")
    (tmp_path / "our.bib").write_text("\n".join(entry[start:]))
    asked = "\\citation{passhat}\n\\bibdata{our}\n\\bibstyle{plain}\n"
    (tmp_path / "paper.aux").write_text(asked)
    done = subprocess.run(["bibtex", "paper"], cwd=tmp_path, capture_output=True, check=False)
    printed = " ".join((tmp_path / "paper.bbl").read_text().split())
    assert done.returncode == 0
    assert b"Warning" not in done.stdout
    assert "{AI}" in printed
    assert f"Version {passhat.__version__}, https://github.com/passhat/passhat, 2026" in printed


def test_two_agents_come_with_methods_label_and_reference_as_one_agent_does():
    passed = {"a": [1, 1, 0, 1] * 6, "b": [1, 0, 0, 1] * 6}
    tables = [
        Trials.from_columns(task=[f"t{i // 4}" for i in range(24)], passed=p, system=[name] * 24)
        for name, p in passed.items()
    ]
    paper = render(compare(*tables), "tex")
    for text in (paper, render(measure(tables[0]), "tex")):
        assert all(part in text for part in (r"\paragraph{Methods.}", r"\label{tab:", "% @misc{"))
    methods = paper[paper.index(r"\paragraph") :]
    assert "a and b on the 6 tasks that both ran" in methods
    assert "pass@1: p " in methods
    assert "pass@k" not in methods  # the table has none
