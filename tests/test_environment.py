"""Tests, and the programs they start, see the same environment on every machine."""

import subprocess
import sys
import time

from tests.conftest import SET


def test_a_program_sees_nothing_of_the_machine_that_no_test_asked_for(
    the_same_environment_everywhere,
):
    dropped = the_same_environment_everywhere
    code = "import os; print(*os.environ)"
    seen = {*subprocess.check_output([sys.executable, "-c", code], text=True).split()}
    assert dropped - SET.keys()  # a shell sets PWD, at least
    assert not seen & ({"CI", "COLUMNS", "LINES", "NO_COLOR", *dropped} - SET.keys())
    assert seen >= SET.keys()
    assert time.tzname == ("UTC", "UTC")


def test_bounds_that_are_kept_are_those_of_the_statistics_as_they_are(bounds_folder, tmp_path):
    module = tmp_path / "src/passhat/stats/sequential/draws.py"
    module.parent.mkdir(parents=True)
    module.write_text("ONE = 1\n")
    before = bounds_folder(tmp_path)
    (tmp_path / "src/passhat/errors.py").write_text("")
    assert bounds_folder(tmp_path) == before
    module.write_text("ONE = 2\n")
    assert bounds_folder(tmp_path) != before
