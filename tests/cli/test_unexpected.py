"""A fault of passhat itself is one line with exit code 70: no code that speaks of the agent."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from passhat.cli.report import report


class Odd(Exception):
    def __str__(self):
        return "two\nlines \x1b[31m"


@pytest.mark.parametrize(
    "error",
    [RecursionError("maximum"), KeyError("x"), AssertionError(), Odd(), ValueError("k" * 10_000)],
    ids=lambda error: type(error).__name__,
)
def test_an_exception_that_nobody_expected_is_one_line_with_the_place_of_its_log(
    call, monkeypatch, error
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-1234567890abcdefghij1234567890")

    def broken(**_):
        raise error

    monkeypatch.setattr(report, "callback", broken)
    done = call("report", "sk-proj-1234567890abcdefghij1234567890")
    assert done.exit_code == 70
    assert done.stdout == ""
    line = done.stderr.removesuffix("\n")
    assert line.isprintable(), "one line, and nothing for the terminal"
    assert len(line) < 500
    assert type(error).__name__ in line
    log = Path(re.search(r"its log: (\S+)$", line)[1])
    text = log.read_text()
    assert "Traceback" in text
    assert "in broken" in text
    assert "sk-proj-1234567890" not in text
    assert log.stat().st_mode & 0o777 == 0o600
    log.unlink()


LIMITED = pytest.mark.skipif(
    sys.platform != "linux", reason="limits the memory of a process as Linux does"
)


def report_within(kind, megabytes, path):
    """`passhat report` of a file, in a process with so much memory."""
    code = (
        f"import resource; resource.setrlimit(resource.{kind}, ({megabytes} << 20,) * 2);"
        "from passhat.cli import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "report", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("task,passed\na,1\na,0\n")
    return path


@LIMITED
def test_too_little_memory_is_a_sentence_and_incomplete(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.write(b'[{"task": "a", "passed": true},')
        stream.truncate(2**31)
    done = report_within("RLIMIT_DATA", 1024, path)
    assert done.returncode == 3
    assert "there is too little memory for this" in done.stderr
    assert "Traceback" not in done.stderr


ROW = '{"task": "t", "trial": %d, "passed": true, "answer": "%d is how this answer begins"}'
CASE = '<testcase classname="t" name="a[%d]"><failure message="%d is how it begins"/></testcase>'


@pytest.mark.slow("fills the memory of a process with rows")
@LIMITED
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
@pytest.mark.parametrize(
    ("begin", "row", "join", "end"),
    [("[", ROW, ",", "]"), ("", ROW, "\n", "\n"), ("<testsuite>", CASE, "", "</testsuite>")],
    ids=["array", "lines", "junit"],
)
def test_rows_that_fill_the_memory_are_a_sentence_too(kind, begin, row, join, end, tmp_path):
    # msgspec ends the process with a segmentation fault where it can get no memory for a cell, and
    # what the handlers of an XML parser hold keeps itself alive
    path = tmp_path / "rows"
    with path.open("w") as stream:
        stream.write(begin)
        stream.write(join.join(row % (n, n) for n in range(1_200_000)))
        stream.write(end)
    done = report_within(kind, 400, path)
    assert done.returncode == 3, done.stderr
    assert "there is too little memory for this" in done.stderr


@pytest.mark.slow("reads a large table under four limits")
@LIMITED
@pytest.mark.parametrize("megabytes", [560, 1100, 1400, 2400])
def test_a_large_table_of_values_is_read_or_refused_under_a_limit(megabytes, tmp_path):
    # polars ends the process where it can get no memory
    path = tmp_path / "rows.csv"
    rows = (f"task-{n % 5000},{n // 5000},{n % 2},gpt-5-mini" for n in range(1_500_000))
    path.write_text("\n".join(("task,trial,passed,model", *rows)))
    done = report_within("RLIMIT_AS", megabytes, path)
    assert done.returncode == (0 if megabytes == 2400 else 3), done.stderr
    assert ("there is too little memory for this" in done.stderr) is (megabytes < 2400)


@LIMITED
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
@pytest.mark.parametrize("megabytes", [100, 200, 300])
def test_limits_under_which_numpy_cannot_start_are_refused_in_a_sentence(kind, megabytes, results):
    # OpenBLAS asks for ever, or ends the process with 1, which says that a gate failed
    done = report_within(kind, megabytes, results)
    assert done.returncode == 3
    limit = f"the limit of this process (`ulimit -a`) is {megabytes} MB"
    assert f"passhat needs 384 MB, and {limit}" in done.stderr


@LIMITED
def test_the_least_memory_that_is_asked_for_is_enough_for_a_report(results):
    assert report_within("RLIMIT_AS", 384, results).returncode == 0
