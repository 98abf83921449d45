"""Progress on a real terminal: it moves, and leaves nothing behind."""

import os
import pty
import re
import subprocess
import sys

import pytest

SUITE = """\
agents:
  - {name: slow, model: scripted, prompt: hi, runs: 4, script: [{answer: x, seconds: 0.5}]}
"""


def read_all(terminal):
    said = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            return said.decode()
        if not part:
            return said.decode()
        said += part


@pytest.mark.parametrize(
    "color", [True, pytest.param(False, marks=pytest.mark.slow("the whole run once more"))]
)
def test_a_bar_moves_while_the_run_goes_on(shell, color):
    shell.write("suite.yml", SUITE)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment |= {} if color else {"NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", "run", "--no-store", "--concurrency", "1"],
        cwd=shell.directory,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = read_all(ours)
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert re.search(r"[123]/4 trials", said)
    assert re.search(r"[123] passed", said)
    assert "[" not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)  # no CI while it runs
    assert ("\x1b[3" in said) is color  # colours, beside moves of the cursor
    assert "\x1b[?25h" in said  # the cursor stays visible
    assert "4 trials in" in said
