"""One is one: messages and notes count in good English."""

import re
from pathlib import Path

import pytest

import passhat
from passhat import read_trials
from passhat.errors import ReadError

# A count, then a noun in the plural, with nothing to say what happens at one.
COUNTED = re.compile(r"(?<!of )(?<!of these )\{len\([^{}]*\)(?::,)?\} (?:more )?[a-z]+s\b")
# Where the count is of several by what it counts, or the message is about the count itself.
ALLOWED = {
    "must have {len(own)} rows like outcome",
    "searched {len(text)} characters",
    "Nothing can be said about these {len(report.systems)} systems",
    "{len(sides)} agents: ranking them",
    "holds {len(systems)} systems",
    "after {len(data):,} bytes",
    "sent {len(body)} characters",
    "{len(table)} bins of equal width",
    "must hold {len(self.p0)} rates",
    "has {len(other)} values instead of {len(first)}",
    "{len(token)} characters",
    "over {len(rates)} runs",
    "over {len(values)} runs",
    "over {len(trend.points)} runs",
    "{len(texts)} transcripts for",
    '"1 task has" if count == 1',
    "of the {len(self.offered)} tools",
    "or once for each of the {len(self.paths)} files",
}


def test_one_skipped_test_is_told_in_the_singular(tmp_path):
    case = '<testcase classname="t" name="{}"/>'
    skipped = '<testcase classname="t" name="s"><skipped/></testcase>'
    for i in (1, 2):
        cases = case.format("a") + case.format("b") + skipped
        (tmp_path / f"run{i}.xml").write_text(f"<testsuite name='t'>{cases}</testsuite>")
    (source,) = read_trials(tmp_path, duplicates="keep").sources
    assert source.name == f"{tmp_path} (2 files)"
    assert "1 skipped test is no trial" in source.notes


def test_one_trial_occurs_twice(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task,trial,passed\na,0,1\na,0,0\n")
    with pytest.raises(ReadError, match="1 trial occurs more than once"):
        read_trials(path)


def test_counts_of_things_go_through_plural():
    for path in Path(passhat.__file__).parent.rglob("*.py"):
        for line in path.read_text().splitlines():
            if COUNTED.search(line) and not any(known in line for known in ALLOWED):
                pytest.fail(f"{path.name}: {line.strip()}: `messages.plural` counts")
