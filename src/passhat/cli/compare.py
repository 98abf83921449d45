"""Agents against one another, and trials: `passhat compare`, `why`, and what they replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import click

from passhat.arguments import ReportTerms
from passhat.cli import options
from passhat.cli.output import Output, typed_command, wants_page
from passhat.cli.reading import TASK_COLUMN, ReadingOptions, reading_options
from passhat.errors import ReadError
from passhat.journeys.results import is_pattern, is_there
from passhat.stats.estimate import THIS_SUITE

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.journeys.results import Results
    from passhat.records import Trials
    from passhat.stats.estimate import Scope


_by_option = click.option(
    "--by",
    metavar="METRIC",
    help="mean_score, pass^k or pass@k; or cost, tokens or latency, to weigh it against pass^k.  "
    "[default: mean_score, or pass^k of the largest --k]",
)


@click.command(
    cls=options.SectionedCommand,
    brief=[
        "--only AGENT         these agents, or the one that both results hold",
        "--k K,K              the k of pass^k; the verdict is about the largest",
        "--by METRIC          compare or rank by pass@1, pass^5 or mean_score",
        options.FOR,
        options.WHICH_COLUMNS,
        options.CRITERION,
        options.WRITE,
        options.JSON,
        options.VERBOSE,
    ],
)
@click.option(
    "--only",
    metavar="AGENT",
    multiple=True,
    help="The two agents to compare, or the one that both results hold.",
)
@click.option(
    "--margin", type=options.Share(), help="Differences up to this size count as equivalent."
)
@_by_option
@options.for_option
@click.option("--transcripts", is_flag=True, help="Put the transcripts of both agents on the page.")
@options.analysis_options
@options.output_options("comparison")
@reading_options()
@click.pass_context
def compare(
    context: click.Context,
    /,
    reading: ReadingOptions,
    only: tuple[str, ...],
    margin: float | None,
    by: str | None,
    scope: Scope | None,
    transcripts: bool,
    output: Output,
    **analysis: Unpack[ReportTerms],
) -> None:
    """Which agent is better, on the same tasks?

    RESULTS are two files or stored runs with one agent each, or results that hold two agents
    between them. If both hold the same agents, --only names the one to compare with itself, before
    and after. The difference is the first minus the second, in the order of --only or of the file,
    for these tasks and for similar ones. The verdict is about pass@1 (the mean score, where scores
    are not all 0 or 1), or with --k about pass^k of the largest k.

    \b
      passhat compare new.eval old.eval
      passhat compare latest baseline --only gpt-5
      passhat compare leaderboard.csv --by pass^5

    Three agents or more are ranked, and so are three files or more of one agent, each by the name
    of its file: the ranks and ties are for similar tasks, and all of them hold together with the
    stated confidence. Agents with fewer than k trials of a task are left out of pass^k, and named.

    --by cost says which agents may be on the frontier: no other is shown to be both more reliable
    and cheaper. Likewise tokens for a success, and seconds for a trial.

    \b
      passhat compare leaderboard.csv --by cost
      passhat compare latest baseline --name new --name old
      passhat compare results.csv --only gpt-5 --only o3 --margin 0.02
    """
    from passhat import journeys
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.comparing.ranking import RankReport
    from passhat.journeys.analyses import PRICES
    from passhat.journeys.stored_runs import verdict_of_results

    if by is not None and by not in (*PRICES, "latency"):
        options.refuse_typed(context, ("ks",), f"--by {by} says by which number")
    results = reading.results()
    answer = journeys.compare(results, only=only, margin=margin, by=by, **analysis)
    if not isinstance(answer, Comparison):
        options.refuse_typed(
            context, ("margin", "transcripts"), "that is for two agents, these are ranked"
        )
        if scope == THIS_SUITE:
            options.refuse_typed(context, ("scope",), "ranks and frontiers are for similar tasks")
    if isinstance(answer, RankReport):
        held = len(answer.systems) + len(answer.unranked)
        output.say(f"{held} agents: ranking them (--only names two to compare)")
    again = reading.repeated(errors=analysis["errors"], only=only)
    verdict, page = None, {}
    if isinstance(answer, Comparison):
        verdict = verdict_of_results(results)
        if wants_page(transcripts or reading.names_transcripts, output):
            page = _fitted(results, answer, output)
    output.write(answer, **again, command=typed_command(), scope=scope, verdict=verdict, **page)


def _fitted(results: Results, answer: Comparison, output: Output) -> dict[str, Any]:
    """The transcripts of both agents that fit on a page, as options of `render`."""
    from passhat.journeys.analyses import compared_transcripts
    from passhat.records.trial import first_number
    from passhat.reporters.answers.comparison import fit_compared

    trials, texts = compared_transcripts(results, answer)
    fitted = fit_compared(answer, texts)
    for note in (fitted.left_out_note, fitted.cut_note):
        if note:
            output.say(note)
    first = first_number(trials.trial.tolist())
    return {"transcripts": fitted, "trials": trials, "first_trial": first}


@click.command(
    cls=options.SectionedCommand, brief=["It is now: passhat why RESULTS TASK [TRIAL [TRIAL]]"]
)
@click.option("--only", metavar="AGENT", help="Which agent, if several tried the task.")
@options.output_options("diff")
@reading_options(task_option=TASK_COLUMN, metavar="RESULTS TASK [TRIAL] [TRIAL]")
def diff(reading: ReadingOptions, only: str | None, output: Output) -> None:
    """Where do two trials of a task first differ?

    RESULTS is a file with a transcript of each trial, a history store, or a stored run. TRIAL is
    its number as reports show it: 3 for "refund-17 #3". A single TRIAL is compared with the most
    similar trial that passed; without TRIAL, the first trial that failed is. Free text in arguments
    is masked, so that only the calls themselves are compared.
    """
    if len(reading.paths) < 2:
        raise click.UsageError("give RESULTS, TASK and up to two trials")
    _show_difference(reading, reading.paths[1:], only, output)


def _show_difference(
    reading: ReadingOptions, words: Sequence[str], only: str | None, output: Output
) -> None:
    """Compare one or two trials of a task; `words` are the task and the numbers of the trials."""
    from passhat.journeys import diff_trials

    task, *numbers = words
    if wrong := next((word for word in numbers if not word.lstrip("-").isdigit()), None):
        raise click.UsageError(f"a trial is a whole number, got {wrong!r}")
    if len(numbers) > 2:
        raise click.UsageError("give at most two trials: passhat why latest refund 3 5")
    left, right = (*map(int, numbers), None, None)[:2]
    output.write(diff_trials(reading.results(reading.paths[0]), task, left, right, only=only))


@click.command(
    cls=options.SectionedCommand,
    brief=[
        "--against REFERENCE  results of the agents to compare it with",
        "--only AGENT         the agent to compare with the others",
    ],
)
@click.option(
    "--against",
    metavar="REFERENCE",
    multiple=True,
    help="Results of the agents to compare it with.  [default: the others in RESULTS]",
)
@click.option("--only", metavar="AGENT", help="The agent to compare with the others.")
@options.analysis_options
@options.output_options("profile")
@reading_options()
def profile(
    reading: ReadingOptions,
    against: tuple[str, ...],
    only: str | None,
    output: Output,
    **analysis: Unpack[ReportTerms],
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


@click.command(cls=options.SectionedCommand, brief=["It is now: passhat compare RESULTS..."])
@click.option("--only", metavar="AGENT", multiple=True, help="Rank these agents only.")
@_by_option
@options.analysis_options
@options.output_options("ranking")
@reading_options()
def rank(
    reading: ReadingOptions,
    only: tuple[str, ...],
    by: str | None,
    output: Output,
    **analysis: Unpack[ReportTerms],
) -> None:
    """Which of several agents are ahead, and which are tied?

    RESULTS hold two agents or more; of a history store, one run is ranked. `passhat compare` ranks
    three or more in the same way; it looks at a pair alone and may tell two agents apart that are
    tied here.
    """
    from passhat.journeys import rank_results

    answer = rank_results(reading.results(), only=only, by=by, **analysis)
    output.write(answer, **reading.repeated(errors=analysis["errors"], only=only))


@click.command(
    cls=options.SectionedCommand,
    brief=[
        options.ONLY,
        options.WHICH_COLUMNS,
        "-o FILE              write .html .md .json .csv ...",
        options.JSON,
        "-v                   every task, test and path",
    ],
)
@click.option("--task", metavar="TASK", help="Explain the trials of this task only.")
@click.option("--only", metavar="AGENT", multiple=True, help="Explain this agent's trials only.")
@click.option(
    "--alpha",
    type=options.Share(),
    default=0.05,
    help="The chance of naming a cause when trials fail by pure luck.",
)
@options.confidence_option
@options.seed_option
@options.output_options("explanation")
@reading_options(task_option=TASK_COLUMN, metavar="RESULTS... [TASK [TRIAL [TRIAL]]]")
def why(
    reading: ReadingOptions,
    task: str | None,
    only: tuple[str, ...],
    alpha: float,
    confidence: float,
    seed: int,
    output: Output,
) -> None:
    """What do failing trials do?

    Compares the tool calls of failing trials with those of passing trials of the same task, and
    names what failing trials do more often than luck explains. No model is called. RESULTS are
    files with a transcript of each trial, a history store, or a stored run: latest, a tag, a key.

    \b
      passhat why logs/airline.eval
      passhat why latest refund          a failing trial of it beside a passing one
      passhat why latest refund 3 5      where these two trials first differ

    With TASK, a trial that failed is laid beside the most similar one that passed: the first, or
    TRIAL by its number in reports (3 for "refund-17 #3"), or two that you name. Free text in
    arguments is masked, so that only the calls themselves are compared.
    """
    from passhat import journeys

    if words := _task_and_trials(reading):
        if len(only) > 1:
            raise click.UsageError("two trials of one agent are compared: give --only once")
        _show_difference(reading, words, only[0] if only else None, output)
        return
    answer = journeys.why(
        reading.results(), task=task, only=only, alpha=alpha, confidence=confidence, seed=seed
    )
    output.write(answer, **reading.repeated(only=only))


def _task_and_trials(reading: ReadingOptions) -> Sequence[str]:
    """The words after the results, if the second word names neither a file nor a stored run."""
    if len(reading.paths) < 2:
        return ()
    second = reading.paths[1]
    named = is_there(second) or is_pattern(second) or "://" in second or second == "-"
    return () if named or reading.results(second).is_stored(second) else reading.paths[1:]
