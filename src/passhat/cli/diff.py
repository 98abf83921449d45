"""`passhat diff`: two runs of a task beside each other."""

from __future__ import annotations

from dataclasses import replace

import click

from passhat.cli.options import Reading, output_options, reading_options
from passhat.cli.output import Output, every_format
from passhat.cli.results_or_run import results_or_run

FORMATS = every_format("diff")

_MOST_TRIALS = 2


@click.command()
@reading_options(
    transcripts=True, task_option="--task-column", metavar="RESULTS TASK [TRIAL] [TRIAL]"
)
@click.option("--only", metavar="AGENT", help="Which agent, where several tried the task.")
@output_options(FORMATS)
def diff(reading: Reading, only: str | None, output: Output) -> None:
    """Where do two runs of a task part?

    RESULTS is a file that keeps what was said in each run, a history store, or a run of the
    history in this folder. Of one TRIAL the other is the passing run nearest to it; without any,
    it is the first that failed. Free text in arguments is masked, so that only what was asked of
    the tools is compared.

    \b
      passhat diff logs/airline.eval refund-17 3 5
      passhat diff latest refund-17
    """
    from passhat.analysis.explaining.side_by_side import side_by_side

    results, task, trials = _words(reading.paths)
    source = results_or_run(replace(reading, paths=(results,)))
    table, said = source.with_transcripts()
    left, right = (*trials, None, None)[:_MOST_TRIALS]
    output.write(side_by_side(table, said, task, left, right, system=only), FORMATS)


def _words(words: tuple[str, ...]) -> tuple[str, str, list[int]]:
    """RESULTS, TASK and the numbers of one or two trials."""
    if len(words) < 2 or len(words) > 2 + _MOST_TRIALS:
        raise click.UsageError("say RESULTS, TASK and up to two trials: passhat diff latest a 3 5")
    try:
        return words[0], words[1], [int(word) for word in words[2:]]
    except ValueError:
        wrong = next(word for word in words[2:] if not word.lstrip("-").isdigit())
        raise click.UsageError(f"a trial is a whole number, got {wrong!r}") from None
