"""`passhat diff`: two runs of a task side by side."""

from __future__ import annotations

import click

from passhat.cli.options import SectionedCommand, output_options
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options

_MOST_RUNS = 2


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", help="Which agent, if several tried the task.")
@output_options("diff")
@reading_options(transcripts=True, task_option="--task-column", metavar="RESULTS TASK [RUN] [RUN]")
def diff(reading: ReadingOptions, only: str | None, output: Output) -> None:
    """Where do two runs of a task first differ?

    RESULTS is a file with a transcript of each run, a history store, or a stored run. RUN is the
    number of a run as reports show it: 3 for "refund-17 #3". A single RUN is compared with the most
    similar run that passed; without RUN, the first run that failed is. Free text in arguments is
    masked, so that only the calls themselves are compared.

    \b
      passhat diff logs/airline.eval refund-17 3 5
      passhat diff latest refund-17
    """
    from passhat.journeys import diff_trials

    results, task, runs = _words(reading.paths)
    left, right = (*runs, None, None)[:_MOST_RUNS]
    output.write(diff_trials(reading.results(results), task, left, right, only=only))


def _words(words: tuple[str, ...]) -> tuple[str, str, list[int]]:
    """RESULTS, TASK and the numbers of one or two runs."""
    if len(words) < 2 or len(words) > 2 + _MOST_RUNS:
        raise click.UsageError(
            "give RESULTS, TASK and up to two runs: passhat diff latest refund 3 5"
        )
    try:
        return words[0], words[1], [int(word) for word in words[2:]]
    except ValueError:
        wrong = next(word for word in words[2:] if not word.lstrip("-").isdigit())
        raise click.UsageError(f"a run is a whole number, got {wrong!r}") from None
