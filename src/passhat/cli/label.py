"""`passhat label`: read trials yourself; `passhat judge`: is the judge that graded them right?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.options import (
    JSON,
    WHICH_COLUMNS,
    SectionedCommand,
    WholeNumber,
    confidence_option,
    output_options,
    store_option,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.errors import InputError
from passhat.records.trial import Outcome

if TYPE_CHECKING:
    from passhat.journeys.labels import Assignment, LabelSession

KEYS = "p passed   f failed   s skip   q stop: "


@click.command(
    cls=SectionedCommand,
    brief=[
        "--for pass^3         what you want to know: pass@1 (the default) or pass^k",
        "--budget N           how many labels (60)",
        "--by NAME            who you are",
        "--export FILE.csv    write the trials to label, to be filled in elsewhere",
        "--import FILE.csv    keep the labels of such a file",
        "--store URL          the store (.passhat/history.db)",
        "RUN is a key, tag, commit, branch, latest or latest~1.",
    ],
)
@click.argument("run", default="latest")
@click.option("--for", "wanted", metavar="NUMBER", default="pass@1", help="pass@1 or pass^k.")
@click.option("--budget", type=WholeNumber(min=1), default=60, help="How many labels.")
@click.option("--by", metavar="NAME", help="Who labels.  [default: the user of this machine]")
@click.option(
    "--export", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write the trials to label as CSV.",
)  # fmt: skip
@click.option(
    "--import", "filled", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Keep the labels of a CSV file.",
)  # fmt: skip
@store_option("The store of the run.")
def label(
    run: str,
    wanted: str,
    budget: int,
    by: str | None,
    target: Path | None,
    filled: Path | None,
    store: Path | str,
) -> None:
    """Read trials yourself, so that numbers which rest on a judge can be corrected.

    passhat chooses trials at random, for what you want to know: for pass@1 half of them passed by
    the judge and half failed, for pass^k several trials of the same tasks. You see what the agent
    said and did, and answer with one key; the judge's verdict is shown after that. Every label is
    kept at once: stop with q, and go on later with the same command. Several people may label one
    run.

    \b
      passhat label latest
      passhat label latest --for pass^3 --budget 100 --by ann
      passhat label latest --export to-read.csv
      passhat label latest --import read.csv
    """
    from passhat.history import History
    from passhat.history.runs import this_person
    from passhat.journeys.labels import LabelSession, export_labels, import_labels
    from passhat.journeys.results import open_store
    from passhat.journeys.run_store import named_run_here
    from passhat.messages import plural

    if Path(run).is_file():
        raise InputError(
            f"{run} is a file, and labels are kept with stored runs: `passhat history add {run}`, "
            "then `passhat label latest`"
        )
    who = by or this_person()
    open_store(store).close()  # a store that is not there is an error, not a new store
    with History.open(store) as history:
        stored = named_run_here(history, run).run
        if filled is not None:
            kept = import_labels(history, stored, filled, by=who)
            click.echo(f"{plural(kept, 'label')} kept for run {stored.key}")
            return
        session = LabelSession(history, stored, by=who, wanted=wanted, budget=budget)
        if target is not None:
            click.echo(f"{plural(export_labels(session, target), 'trial')} to label in {target}")
            return
        with _single_keys() as read:
            _ask(session, read)
    click.echo(f"What they say: passhat judge {stored.key}; corrected: passhat report {stored.key}")


@click.command(
    cls=SectionedCommand,
    brief=[WHICH_COLUMNS, "-o FILE              write .html .md .json .csv ...", JSON],
)
@confidence_option
@output_options("judge")
@reading_options()
def judge(reading: ReadingOptions, confidence: float, output: Output) -> None:
    """Is the judge that graded these results right? As far as people who labelled them say.

    How often the judge and people agree, how much of what it passes people fail and the other way
    round, where it errs, and how far people agree with one another.

    \b
      passhat judge latest
      passhat judge results.csv --columns label=human_passed,label-chosen=random
    """
    from passhat import journeys

    output.write(journeys.check_judge(reading.results(), confidence=confidence))


def _ask(session: LabelSession, read: Callable[[], str]) -> None:
    """Show one trial after the other, and keep what the person says."""
    from passhat.messages import plural

    still = list(session.open_trials())
    click.echo(f"{plural(len(still), 'trial')} to label, as {session.by}. Each is kept at once.")
    for number, assignment in enumerate(still, 1):
        _show(session, assignment, f"{number} of {len(still)}")
        key = _answer(read)
        if key == "q":
            click.echo("stopped; the same command goes on from here")
            return
        if key == "s":
            continue
        session.keep(assignment, passed=key == "p")
        judged = session.verdict(assignment.key) is Outcome.PASSED
        agrees = "agrees" if judged == (key == "p") else "does not agree"
        click.echo(f"kept. The judge {agrees}: it {'passed' if judged else 'failed'} this trial.\n")


@contextmanager
def _single_keys() -> Iterator[Callable[[], str]]:
    """A function that reads one key, without Enter on a terminal; empty at the end of input.

    The terminal is switched once, for all questions: switched for each, as click does, it drops
    what was typed before the question was there.
    """
    if not sys.stdin.isatty():
        yield lambda: sys.stdin.read(1)
        return
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield click.getchar
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard, termios.TCSANOW)
    try:
        yield lambda: os.read(keyboard, 1).decode(errors="replace")
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def _answer(read: Callable[[], str]) -> str:
    while True:
        click.echo(KEYS, nl=False)
        key = read()
        click.echo(key if key.isprintable() else "")
        if key in ("", "\x04", "\x1b"):  # the end of input, Ctrl-D, Escape
            return "q"
        if key in ("p", "f", "s", "q"):
            return key


def _show(session: LabelSession, assignment: Assignment, place: str) -> None:
    from passhat.journeys.labels import last_words
    from passhat.reporters.formatting import safe_lines

    system, task, trial = assignment.key
    transcript = session.transcript(assignment.key)
    click.echo(f"--- {place}: {safe_lines(task)}, trial {trial}, {safe_lines(system)} ---")
    for rubric in session.rubrics(assignment.key):
        click.echo(safe_lines(f"rubric: {rubric}"))
    for turn in transcript.messages:
        calls = ", ".join(f"{call.name}({call.arguments})" for call in turn.calls)
        words = " ".join(text for text in (turn.text, calls and f"[calls {calls}]") if text)
        if words:
            click.echo(safe_lines(f"{turn.role}: {words}"))
    if not transcript.messages:
        click.echo(safe_lines(last_words(transcript)) or "(nothing was kept of what was said)")
