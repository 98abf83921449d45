"""Agents against one another, and runs: `passhat compare`, `rank`, `profile`, `why` and `diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from passhat.cli.options import (
    AnalysisOptions,
    SectionedCommand,
    Share,
    analysis_options,
    confidence_option,
    output_options,
    seed_option,
)
from passhat.cli.output import Output
from passhat.cli.reading import TASK_COLUMN, ReadingOptions, reading_options
from passhat.errors import ReadError

if TYPE_CHECKING:
    from passhat.records import Trials


@click.command(cls=SectionedCommand)
@click.option(
    "--only",
    metavar="AGENT",
    multiple=True,
    help="The two agents to compare, or the one that both results hold.",
)
@click.option("--margin", type=Share(), help="Differences up to this size count as equivalent.")
@analysis_options
@output_options("comparison")
@reading_options()
def compare(
    reading: ReadingOptions,
    only: tuple[str, ...],
    margin: float | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """Is one agent better than another, on the same tasks?

    RESULTS are two files or stored runs with one agent each, or results that hold two agents
    between them. If both hold the same agents, --only names the one to compare with itself, before
    and after. More than two agents are ranked. The difference is the first minus the second, in the
    order of --only or of the file, for this suite and for tasks like these. The verdict is about
    the mean score, or with --k about pass^k of the largest k.

    \b
      passhat compare new.eval old.eval
      passhat compare latest baseline --name new --name old
      passhat compare latest baseline --only gpt-5
      passhat compare results.csv --only gpt-5 --only o3 --margin 0.02
    """
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.journeys import compare_results

    answer = compare_results(reading.results(), only=only, margin=margin, **analysis)
    if not isinstance(answer, Comparison):
        held = len(answer.systems) + len(answer.unranked)
        output.say(f"{held} agents: ranking them (--only names two to compare)")
    output.write(answer, results=reading.again(errors=analysis["errors"]))


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", help="Which agent, if several tried the task.")
@output_options("diff")
@reading_options(task_option=TASK_COLUMN, metavar="RESULTS TASK [RUN] [RUN]")
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
    left, right = (*runs, None, None)[:2]
    output.write(diff_trials(reading.results(results), task, left, right, only=only))


def _words(words: tuple[str, ...]) -> tuple[str, str, list[int]]:
    """RESULTS, TASK and the numbers of one or two runs."""
    if not 2 <= len(words) <= 4:
        raise click.UsageError(
            "give RESULTS, TASK and up to two runs: passhat diff latest refund 3 5"
        )
    try:
        return words[0], words[1], [int(word) for word in words[2:]]
    except ValueError:
        wrong = next(word for word in words[2:] if not word.lstrip("-").isdigit())
        raise click.UsageError(f"a run is a whole number, got {wrong!r}") from None


@click.command(cls=SectionedCommand)
@click.option(
    "--against",
    metavar="REFERENCE",
    multiple=True,
    help="Results of the agents to compare it with.  [default: the others in RESULTS]",
)
@click.option("--only", metavar="AGENT", help="The agent to compare with the others.")
@analysis_options
@output_options("profile")
@reading_options()
def profile(
    reading: ReadingOptions,
    against: tuple[str, ...],
    only: str | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """How does the agent compare with others?

    RESULTS hold the agent and REFERENCE the others; both may be any file that `report` reads.
    Options on how to read apply to both: if only one needs them, `convert` it first.

    \b
      passhat profile mine.eval --against leaderboard.csv
      passhat profile leaderboard.csv --only o3
    """
    from passhat.journeys import profile_results

    answer = profile_results(
        reading.results(),
        against=_reference(reading, against) if against else None,
        only=only,
        **analysis,
    )
    output.write(answer)


def _reference(reading: ReadingOptions, against: tuple[str, ...]) -> Trials:
    """The other agents, read as RESULTS are; if that fails, the reading options may be why."""
    try:
        return reading.results(*against).trials()
    except ReadError as error:
        again = reading.again()
        if again is None or not (reading.format or any(reading.columns.values())):
            raise
        way = f"passhat convert {again} -o mine.jsonl, then passhat profile mine.jsonl"
        raise ReadError(
            f"{str(error).rstrip('.')}. Reading options apply to RESULTS and REFERENCE alike; "
            "if REFERENCE needs none, write RESULTS in the usual columns first: "
            f"{way} --against ..."
        ) from error


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", multiple=True, help="Rank these agents only.")
@click.option(
    "--by",
    metavar="METRIC",
    help="mean_score, pass^k or pass@k.  [default: mean_score, or pass^k of the largest --k]",
)
@analysis_options
@output_options("ranking")
@reading_options()
def rank(
    reading: ReadingOptions,
    only: tuple[str, ...],
    by: str | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """Which of several agents are ahead, and which are tied?

    RESULTS hold two agents or more; of a history store, one run is ranked. Ranks and ties are for
    tasks like these, and all of them hold together with the stated confidence. `passhat compare`
    looks at one pair alone and may tell two agents apart that are tied here. Agents with fewer than
    k runs are left out of pass^k, and named.

    \b
      passhat rank results.csv
      passhat rank results.csv --by pass^4
    """
    from passhat.journeys import rank_results

    answer = rank_results(reading.results(), only=only, by=by, **analysis)
    output.write(answer, results=reading.again(errors=analysis["errors"]))


@click.command(cls=SectionedCommand)
@click.option("--task", metavar="TASK", help="Explain the runs of this task only.")
@click.option("--only", metavar="AGENT", multiple=True, help="Explain the runs of this agent only.")
@click.option(
    "--alpha",
    type=Share(),
    default=0.05,
    help="The chance of naming a cause when runs fail by pure luck.",
)
@confidence_option
@seed_option
@output_options("explanation")
@reading_options(task_option=TASK_COLUMN)
def why(
    reading: ReadingOptions,
    task: str | None,
    only: tuple[str, ...],
    alpha: float,
    confidence: float,
    seed: int,
    output: Output,
) -> None:
    """Why do runs fail sometimes?

    Compares the tool calls of failing runs with those of passing runs of the same task, and names
    what failing runs do more often than luck explains. No model is called. RESULTS are files with a
    transcript of each run, a history store, or a stored run: latest, a tag, a key.

    \b
      passhat why logs/airline.eval
      passhat why latest
      passhat why results.json --task refund-17 -o why.html
    """
    from passhat.journeys import explain_results

    answer = explain_results(
        reading.results(), task=task, only=only, alpha=alpha, confidence=confidence, seed=seed
    )
    output.write(answer, results=reading.again())
