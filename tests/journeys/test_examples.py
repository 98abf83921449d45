"""The suites in examples/ run as they are, and the report beside one is what it writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow("starts a real server for each trial")
def test_the_example_of_tool_selection_runs_and_writes_the_report_beside_it(tmp_path):
    """PASSHAT_GOLD=write writes that report anew, to be looked at."""
    folder = EXAMPLES / "tool-selection"
    suite = folder / "agent-multi-run-tool-selection.yml"
    done = subprocess.run(
        [sys.executable, "-m", "passhat", "run", str(suite), "-q", "-o", "report.md"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "report.md").read_text()
    assert "tool-selection floor [PASS] weather selection: selection 8/10 (80%)" in written
    if os.environ.get("PASSHAT_GOLD") == "write":
        (folder / "report.md").write_text(written)
    assert _lasting(written) == _lasting((folder / "report.md").read_text())


def _lasting(report):
    """The lines that do not depend on the clock or on the key of the run."""
    moving = re.compile(r"\| seconds \||`passhat \w+ [0-9a-f]{8}\b|fingerprint|^Run [0-9a-f]{8}\.")
    return [line for line in report.splitlines() if not moving.search(line)]
