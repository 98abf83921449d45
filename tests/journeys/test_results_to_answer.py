"""From somebody's results to an answer, through the installed command."""

import json
import os
import pty
import select
import subprocess
import sys

import pytest


def test_results_become_a_report_a_comparison_and_a_plan(shell):
    made = shell("simulate", "--rate", "old=0.7", "--rate", "new=0.9", "-o", "trials.jsonl")
    assert (made.returncode, made.stdout) == (0, "")
    assert made.stderr == "wrote 400 trials to trials.jsonl\n"

    report = shell("report", "trials.jsonl", "--only", "new")
    assert report.returncode == 0
    first, *_, last = report.stdout.splitlines()
    assert first.startswith(("new is ", "Too early to tell if new is reliable"))
    assert ": passhat " in last

    compared = shell("compare", "trials.jsonl", "--json")
    found = json.loads(compared.stdout)
    assert found["schema"] == "passhat.comparison/1"
    assert found["differences"]["mean_score"]["value"] < 0

    planned = shell("plan", "trials.jsonl", "--only", "new", "--difference", "0.05")
    assert planned.returncode == 0
    assert planned.stdout.startswith("To tell two agents apart that differ by 5 points")


def test_data_goes_through_a_pipe_untouched(shell):
    made = shell("simulate", "--tasks", "3", "--runs", "3")
    done = subprocess.run(
        [sys.executable, "-m", "passhat", "convert", "-"],
        input=made.stdout,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == made.stdout


def test_a_mistake_ends_with_one_line_and_exit_code_2(shell):
    done = shell("report", "nowhere.json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: nowhere.json")
    assert len(done.stderr.splitlines()) == 1


def test_a_terminal_without_unicode_gets_ascii(shell):
    done = shell("demo", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


@pytest.mark.slow("a terminal; test_report has colour and width in this process")
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminal here")
def test_a_terminal_gets_colour_and_its_width(shell):
    shell("simulate", "--runs", "6", "-o", "trials.jsonl")
    environment = os.environ | {
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "PYTHONIOENCODING": "utf-8",
    }
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "passhat", "report", "trials.jsonl"],
        cwd=shell.directory,
        env=environment,
        stdout=other,
    )
    os.close(other)
    shown = b""
    while select.select([main], [], [], 60)[0]:
        try:
            piece = os.read(main, 65536)
        except OSError:  # the other end closed
            break
        if not piece:
            break
        shown += piece
    os.close(main)
    assert process.wait(timeout=60) == 0
    assert b"\x1b[1m" in shown
