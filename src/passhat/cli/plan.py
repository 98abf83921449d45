"""Before and around an analysis: `passhat plan`, `simulate` and `convert`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from passhat.cli.options import (
    CRITERION,
    INDIFFERENCE,
    OUTPUT,
    TRIALS,
    WHICH_COLUMNS,
    Command,
    Number,
    SectionedCommand,
    Share,
    WholeNumber,
    analysis_option,
    file_option,
    in_order,
    output_options,
    quiet_option,
    refuse_typed,
    renamed,
    seed_option,
    shared,
)
from passhat.cli.output import Output, unwritable
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.history import Run
    from passhat.journeys.analyses import PlanTerms
    from passhat.records import Trials

_COUNT = WholeNumber(min=1)
_AMOUNT = Number(min=0, min_open=True)
_budget = functools.partial(shared, "What a budget buys", type=_AMOUNT)
_gate = functools.partial(shared, "What a gate costs")
_judge = functools.partial(shared, "Where a judge grades")


@click.command(
    cls=SectionedCommand,
    brief=[
        "--tasks N            how many tasks (20)",
        TRIALS,
        "--half-width SHARE   how exact: 0.05 is +-5 points",
        "--difference SHARE   the difference between two agents to detect",
        "--gate GATE          what deciding this gate takes",
        "--indifference SHARE decide it near its threshold too: within 0.05, say",
        "--k K                plan for pass^k instead of pass@1",
        "--judge 0.9,0.85     labels to buy, where such a judge grades",
        "--max-cost DOLLARS   what this much buys",
        "--json  -v           print JSON; the assumptions and a chart",
    ],
)
@click.option("--only", metavar="AGENT", help="Plan from this agent's trials.")
@click.option("--tasks", type=_COUNT, help="How many tasks.  [default: as in RESULTS, or 20]")
@renamed(
    *("--trials", "runs"),
    formerly="--runs",
    type=_COUNT,
    help="Trials of each task.  [default: as in RESULTS, or enough]",
)
@click.option(
    "--half-width", type=Share(), default=0.05, help="Half the width of the interval you want."
)
@click.option(
    "--assurance",
    type=Share(),
    default=0.8,
    help="The share of reports that should be that narrow.",
)
@click.option(
    "--difference", type=Share(), help="The difference between two agents that you want to detect."
)
@click.option("--power", type=Share(), default=0.8, help="The chance of detecting it.")
@click.option("--rate", type=Share(), help="The pass@1 you expect, before any trial.")
@click.option(
    "--icc", type=Share(), help="The share of the spread that you expect to lie between tasks."
)
@click.option("--cost-ratio", type=_AMOUNT, help="What a new task costs, in trials.")
@_budget("--max-cost", metavar="DOLLARS", help="The budget in money.")
@_budget("--cost-per-run", metavar="DOLLARS", help="What one trial costs.")
@_budget("--max-minutes", metavar="MINUTES", help="The budget in time.")
@_budget("--seconds-per-run", metavar="SECONDS", help="How long one trial takes.")
@_budget("--at-once", type=_COUNT, default=1, help="Trials at a time.")
@_gate("--gate", "gates", metavar="GATE", multiple=True, help="Such as 'pass^3 >= 0.8'.")
@_gate("--indifference", type=Share(), help=INDIFFERENCE)
@_judge(
    "--judge", metavar="SHARES",
    help="Plan labels of people: how much the judge passes of what is right and fails of what is "
    "wrong, such as 0.9,0.85; or `labels`, as those in RESULTS show it.",
)  # fmt: skip
@in_order(*map(analysis_option, ("ks", "confidence", "errors", "seed")))
@output_options("plan")
@reading_options(required=False)
@click.pass_context
def plan(
    context: click.Context,
    /,
    reading: ReadingOptions,
    gates: tuple[str, ...],
    only: str | None,
    icc: float | None,
    indifference: float | None,
    judge: str | None,
    max_cost: float | None,
    cost_per_run: float | None,
    max_minutes: float | None,
    seconds_per_run: float | None,
    at_once: int,
    ks: tuple[int, ...] | None,
    seed: int,
    output: Output,
    **terms: Unpack[PlanTerms],
) -> None:
    """How many trials does an answer need? From your results, or from a guess.

    \b
      passhat plan --tasks 50 --half-width 0.03
      passhat plan pilot.eval --difference 0.05 --max-cost 20
      passhat plan --gate 'pass^3 >= 0.8'
      passhat plan --judge 0.9,0.85 --rate 0.8 --half-width 0.05

    Without RESULTS the plan is based on your guesses; with RESULTS, on how much they vary. It is
    about pass@1, its interval or a difference in it; with --k about pass^k of the largest k.
    """
    from passhat import journeys
    from passhat.journeys import plan_gates

    if indifference is not None and not gates:
        raise click.UsageError("--indifference is about a gate: give --gate 'pass^3 >= 0.8' too")
    if gates:
        refuse_typed(context, _OF_PRECISION, "a gate names its own number and how it is decided")
    if judge is not None or gates:
        why = "labels are planned" if judge is not None else "a gate is planned"
        refuse_typed(context, _OF_TRIALS, f"{why} without it")
    if gates and judge is None:
        refuse_typed(context, ("rate",), "a gate is planned over a range of rates")
    results = reading.results() if reading.paths else None
    if judge is not None:
        output.write(
            journeys.plan_labels(
                judge,
                results,
                only=only,
                gates=gates,
                k=ks[-1] if ks else 1,
                icc=icc,
                seed=seed,
                rate=terms["rate"],
                tasks=terms["tasks"],
                runs=terms["runs"],
                half_width=terms["half_width"],
                difference=terms["difference"],
                confidence=terms["confidence"],
            )
        )
        return
    if gates:
        plans = plan_gates(
            gates,
            results,
            only=only,
            tasks=terms["tasks"],
            runs=terms["runs"],
            icc=icc,
            indifference=indifference,
            confidence=terms["confidence"],
            seed=seed,
        )
        output.write(plans)
        return
    from passhat.analysis.planning.plan import Spending

    spending = Spending(
        max_cost=max_cost,
        cost_per_run=cost_per_run,
        max_minutes=max_minutes,
        seconds_per_run=seconds_per_run,
        at_once=at_once,
    )
    k = ks[-1] if ks else 1
    output.write(
        journeys.plan(results, only=only, correlation=icc, spending=spending, k=k, **terms)
    )


_OF_PRECISION = ("ks", "half_width", "difference")
_OF_TRIALS = (
    *("assurance", "power", "cost_ratio", "max_cost", "cost_per_run", "max_minutes"),
    *("seconds_per_run", "at_once", "errors"),
)
"""What a plan of trials is asked for, and no other plan."""

_PROBABILITY = Number(0, 1)


_PRINTED = {"as_json": "jsonl", "as_csv": "csv", "as_markdown": "markdown"}
_SUMMARIES = (".md", ".markdown")


def trials_output_options(command: Command) -> Command:
    """--json, --csv, --markdown, -o FILE and --quiet, passed on as `write(trials)`."""

    @functools.wraps(command)
    def with_write(**values: Any) -> Any:
        printed = [form for name, form in _PRINTED.items() if values.pop(name)]
        if len(printed) > 1:
            raise click.UsageError(
                "--json, --csv and --markdown cannot be used together; -o may name several files"
            )
        names = values.pop("paths_out")
        printed += [_printed_as(name) for name in names if name.startswith("-.")]
        how = {
            "printed": printed,
            "paths_out": tuple(name for name in names if not name.startswith("-.")),
            "quiet": values.pop("quiet"),
        }
        return command(write=functools.partial(_write, **how), **values)

    options = in_order(
        shared(OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON Lines (the default)."),
        shared(OUTPUT, "--csv", "as_csv", is_flag=True, help="Print CSV."),
        shared(
            OUTPUT, "--markdown", "as_markdown", is_flag=True, help="Print a summary of the trials."
        ),
        file_option("Write to a file: .jsonl .csv .tsv .parquet, or .md for a summary."),
        quiet_option,
    )
    return options(with_write)


def _printed_as(name: str) -> str:
    """The form that `-.csv` asks to print."""
    forms = {".jsonl": "jsonl", ".csv": "csv", ".md": "markdown"}
    if (ending := name[1:].lower()) not in forms:
        raise click.UsageError(f"-o {name}: must be -.jsonl, -.csv or -.md")
    return forms[ending]


def _write(
    trials: Trials, *, printed: Sequence[str], paths_out: tuple[str, ...], quiet: bool
) -> None:
    """Write the trials to files or standard output, and say so on standard error."""
    for name in paths_out:
        _save(trials, Path(name), quiet=quiet)
    for form in printed or ([] if paths_out else ["jsonl"]):
        click.echo(_rendered(trials, form), nl=False)


def _save(trials: Trials, path: Path, *, quiet: bool) -> None:
    from passhat.ingest.write import write_trials
    from passhat.messages import plural
    from passhat.reporters.formatting import safe_text

    what = plural(len(trials), "trial")
    try:
        if path.suffix.lower() in _SUMMARIES:
            path.write_text(_rendered(trials, "markdown"), encoding="utf-8", newline="\n")
            what = f"a summary of {what}"
        else:
            write_trials(trials, path)
    except OSError as error:
        raise unwritable(path, error, "-o") from error
    if not quiet:
        click.echo(safe_text(f"wrote {what} to {path}"), err=True)


def _rendered(trials: Trials, form: str) -> str:
    if form == "markdown":
        from passhat.reporters.rendering import render_markdown

        return render_markdown(trials)
    from passhat.ingest.write import render_csv, render_jsonl

    return render_csv(trials) if form == "csv" else render_jsonl(trials).decode()


@click.command(
    cls=SectionedCommand,
    brief=[
        "--tasks N            how many tasks (20)",
        "--trials N           trials of each task (10)",
        "--rate [AGENT=]SHARE pass@1 of an agent (0.7); repeat it for several",
        "--seed N             the same seed gives the same trials (0)",
        "--partial            give scores between 0 and 1",
        "-o FILE              write .jsonl .csv .tsv .parquet",
    ],
)
@click.option("--tasks", type=_COUNT, default=20, help="How many tasks.")
@renamed(
    *("--trials", "runs"), formerly="--runs", type=_COUNT, default=10, help="Trials of each task."
)
@click.option(
    "--rate",
    "rates",
    metavar="[AGENT=]SHARE",
    multiple=True,
    help="Mean pass@1 of an agent; repeat it for several.  [default: 0.7]",
)
@click.option(
    "--luck", type=_PROBABILITY, default=0.6, help="The share of the spread that is luck."
)
@click.option(
    "--shared",
    type=_PROBABILITY,
    default=0.8,
    help="How strongly agents agree on which tasks are hard.",
)
@click.option("--seeds", type=WholeNumber(min=0), default=0, help="Seeds that the trials share.")
@click.option(
    "--seed-effect", type=Number(min=0), default=0.0, help="Spread between seeds, in log-odds."
)
@click.option(
    "--drift",
    type=float,
    metavar="NUMBER",
    default=0.0,
    help="Change over the trials, in log-odds.",
)
@click.option("--partial", is_flag=True, help="Give scores between 0 and 1.")
@click.option(
    "--pass-score", type=Share(), default=0.5, help="With --partial: the score that passes."
)
@click.option("--error-rate", type=_PROBABILITY, default=0.0, help="Share of errored trials.")
@seed_option
@trials_output_options
def simulate(
    tasks: int,
    runs: int,
    rates: tuple[str, ...],
    luck: float,
    shared: float,
    seeds: int,
    seed_effect: float,
    drift: float,
    partial: bool,
    pass_score: float,
    error_rate: float,
    seed: int,
    write: Callable[[Trials], None],
) -> None:
    """Write made-up results; the same seed gives the same trials.

    \b
      passhat simulate --tasks 50 --trials 8 -o trials.jsonl
      passhat simulate --rate old=0.7 --rate new=0.75 --error-rate 0.02 -o two.csv
    """
    from passhat.analysis.planning.simulate import SimulationModel
    from passhat.analysis.planning.simulate import simulate as simulate_trials

    world = SimulationModel(
        luck=luck,
        shared=shared,
        seeds=seeds,
        seed_effect=seed_effect,
        drift=drift,
        partial=partial,
        pass_score=pass_score,
        error_rate=error_rate,
    )
    write(simulate_trials(tasks=tasks, runs=runs, rate=_rates(rates), world=world, seed=seed))


def _rates(texts: Sequence[str]) -> dict[str, float]:
    """`0.7` is an agent without a name, `new=0.75` one with."""
    rates: dict[str, float] = {}
    for i, text in enumerate(texts or ("0.7",), 1):
        named, _, share = text.rpartition("=")
        name = named or ("agent" if len(texts) < 2 else f"agent-{i}")
        if "=" in named:  # the rates of several agents, with commas between them
            raise ArgumentError("rates", "must be one AGENT=SHARE; repeat it for several", text)
        if name in rates:
            raise ArgumentError("rates", f"must name each agent once, not {name} again", text)
        try:
            rates[name] = float(share)
        except ValueError:
            raise ArgumentError("rates", "must be a share or AGENT=SHARE", text) from None
    return rates


@click.command(
    cls=SectionedCommand,
    brief=[
        WHICH_COLUMNS,
        CRITERION,
        "-o FILE              write .jsonl .csv .tsv .parquet, or -.csv to print",
    ],
)
@click.option("--only", metavar="AGENT", multiple=True, help="Convert this agent's trials only.")
@click.option(
    "--transcripts",
    is_flag=True,
    help="Write the transcripts and artefacts of a stored run too, to a folder.",
)
@trials_output_options
@reading_options()
@click.pass_context
def convert(
    context: click.Context,
    /,
    reading: ReadingOptions,
    only: tuple[str, ...],
    transcripts: bool,
    write: Callable[[Trials], None],
) -> None:
    """Rewrite the results of any tool, or a stored run, as JSON Lines, CSV or Parquet.

    \b
      passhat convert logs/airline.eval -o airline.parquet
      passhat convert results.json --columns task=id,pass=ok -o -.csv
      passhat convert latest -o s3://evals/trials --transcripts

    Reading the new file gives the same trials again. A stored run may go to a folder or an address
    that fsspec knows (s3://, gs://): it becomes a dataset of Parquet files,
    `FOLDER/suite=NAME/run=KEY/part-00000.parquet`, that `passhat report` and any query engine read
    as one table. Transcripts go to `FOLDER/_transcripts`, and `passhat history search TEXT FOLDER`
    searches them; artefacts (`passhat history artefacts`) go to `FOLDER/_artefacts`. `passhat
    history add FOLDER` stores all of it again.
    """
    from passhat.cli.history import export_to
    from passhat.journeys.history import is_dataset
    from passhat.journeys.results import trials_of

    results = reading.results()
    folder = next((name for name in context.params["paths_out"] if is_dataset(name)), None)
    stored = len(results.paths) == 1 and results.is_stored(results.paths[0])
    if stored:
        with results.open_stored() as (_, named):
            _say_what_is_lost(named.run, dataset=folder is not None)
    if folder is None or not stored:
        if transcripts:
            raise click.UsageError("--transcripts are those of a stored run, written to a folder")
        write(trials_of(results, only))
        return
    if only or len(context.params["paths_out"]) > 1:
        raise click.UsageError(f"-o {folder}: a run is written to a folder as a whole, and alone")
    store, run = results.place_of_run()
    export_to(folder, run, store=store, transcripts=transcripts)


def _say_what_is_lost(run: Run, *, dataset: bool) -> None:
    """What no file says of a run, and what error rates of gates on one would leave out."""
    from passhat.cli.reading import say_note
    from passhat.history.runs import sources_of

    if run.options.get("judged_at"):
        lost, way = "was judged after fewer trials and then extended, which no file says", ""
    elif dataset and any(source.ended for source in sources_of(run)):
        lost, way = "ended when its gates were decided, which no dataset says", " (a .csv says it)"
    else:
        return
    say_note(
        f"run {run.key} {lost}{way}: a gate on it would promise more than it keeps. Judge the run "
        f"itself: passhat gate {run.key}"
    )
