"""Run agents: `passhat run` a suite, `resume` a run, `repeat` any command."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import click

from passhat.cli.exit_codes import ExitCode
from passhat.cli.forge_output import announce_run, forge_options, wanted
from passhat.cli.options import (
    Command,
    Number,
    SectionedCommand,
    Share,
    WholeNumber,
    in_order,
    output_options,
    shared,
    store_option,
)
from passhat.cli.output import Output, wants_page
from passhat.cli.reading import say_note
from passhat.cli.run_output import show_run

if TYPE_CHECKING:
    from passhat.journeys.run_request import Executor, ResumeTerms, RunTerms

BARE_VALUES = {"--record": "new", "--faults": "both"}
"""What these options mean without `=VALUE`."""

EXECUTION = "Where it runs"


class OptionalValues(SectionedCommand):
    """A command whose `--record` and `--faults` take a value only behind an equals sign.

    Otherwise `passhat run --record suite.yml` would record in the mode "suite.yml".
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = [f"{arg}={BARE_VALUES[arg]}" if arg in BARE_VALUES else arg for arg in args[:end]]
        return super().parse_args(ctx, words + args[end:])


page_options = in_order(
    click.option("--html", metavar="FILE", help="Also write the report as a web page."),
    click.option("--transcripts", is_flag=True, help="Show transcripts on the page."),
    click.option(
        "--rows",
        type=click.Choice(["tasks", "runs"]),
        help="What counts as a test case in JUnit, CTRF, TAP and similar files: a task or a single "
        "run.  [default: tasks]",
    ),
)
_COUNT, _AMOUNT = WholeNumber(min=1), Number(min=0, min_open=True)
_limit = partial(shared, "Budget")
budget_options = in_order(
    _limit("--max-cost", type=_AMOUNT, metavar="DOLLARS", help="Stop when this much is spent."),
    _limit("--max-tokens", type=_COUNT, help="Stop at this many tokens."),
    _limit("--max-calls", type=_COUNT, help="Stop at this many model calls."),
    _limit("--max-minutes", type=_AMOUNT, metavar="MINUTES", help="Stop after this long."),
)
execution_option = partial(shared, EXECUTION)
execution_options = in_order(
    store_option("Where the trials are stored.", section=EXECUTION),
    execution_option("--concurrency", type=_COUNT, help="Trials at a time."),
    execution_option(
        "--executor",
        type=click.Choice(["local", "workers", "ray"]),
        default="local",
        help="Who runs the trials: this process, `passhat worker` processes, or a Ray cluster.",
    ),
    execution_option("--workers", type=_COUNT, default=2, help="Workers to start with Ray."),
    execution_option(
        "--keep-going",
        is_flag=True,
        help="Go on although five trials errored alike and none could be judged.",
    ),
)
_named = partial(click.option, metavar="NAME", multiple=True)
_choosing = in_order(
    _named("--only", help="Only this agent or system; * and ? match."),
    _named("--task", "tasks", help="Only this task, or one run: 'refund #3'."),
    _named("--tag", "tags", help="Only tasks with this tag."),
    click.option("--runs", type=_COUNT, help="Runs of each task."),
    click.option(
        "--seed", type=WholeNumber(min=0), help="The seed that those of all trials are made from."
    ),
    click.option("--shard", metavar="I/N", help="Only this part of the trials, such as 3/10."),
    click.option(
        "--faults",
        is_flag=False,
        flag_value=BARE_VALUES["--faults"],
        type=click.Choice(["both", "only"]),
        metavar="[=only]",
        help="Run with and without the suite's faults, and score the recovery.",
    ),
)
_demanding = in_order(
    click.option(
        *("--require", "-r"),
        metavar="DEMAND",
        multiple=True,
        help="A gate in addition to those of the suite, such as 'pass^3 >= 0.8'. May be repeated.",
    ),
    click.option(
        "--until-settled", is_flag=True, help="Stop as soon as every gate has its verdict."
    ),
    click.option(
        "--coverage-threshold",
        type=Number(min=0, max=1),
        metavar="SHARE",
        help="Fail unless this share of the servers' tools was called.",
    ),
)
_cassette_option = partial(shared, "Cassettes")
_cassette_flag = partial(_cassette_option, is_flag=True)
_cassettes = in_order(
    _cassette_option(
        "--record",
        is_flag=False,
        flag_value=BARE_VALUES["--record"],
        type=click.Choice(["new", "missing", "all", "drifted"]),
        metavar="[=missing|all|drifted]",
        help="Record every exchange in cassettes: all again, or only missing or drifted ones.",
    ),
    _cassette_flag("--append", help="Record further runs beside the recorded ones."),
    _cassette_flag("--replay", help="Answer from the cassettes and make no calls."),
    _cassette_flag("--replay-or-live", help="Replay what is recorded, call models for the rest."),
    _cassette_flag("--live", help="Call the models even if there are recordings."),
    _cassette_option(
        "--servers",
        type=click.Choice(["live", "recorded"]),
        help="In a replay: call the real MCP servers, or use their recorded answers.",
    ),
    _cassette_flag("--allow-drift", help="Replay although the suite has changed."),
    _cassette_flag("--compress", help="Write cassettes with zstd."),
)


def run_options(command: Command) -> Command:
    """What to run, what to demand and what it may cost: the arguments of a RunRequest."""

    @wraps(command)
    def with_cassette(**values: Any) -> Any:
        return command(cassette=_cassette(values), **values)

    return in_order(_choosing, _demanding, budget_options, _cassettes)(with_cassette)


def _cassette(values: dict[str, Any]) -> str | None:
    """How cassettes are used; only one of these five options may be given."""
    record = values.pop("record")
    chosen = [] if record is None else [("--record", "record" if record == "new" else record)]
    for flag, mode in (
        ("append", "append"),
        ("replay", "replay"),
        ("replay_or_live", "replay-or-live"),
        ("live", "none"),
    ):
        if values.pop(flag):
            chosen.append((f"--{flag.replace('_', '-')}", mode))
    if len(chosen) > 1:
        raise click.UsageError(
            f"{' and '.join(flag for flag, _ in chosen)} cannot be used together"
        )
    return chosen[0][1] if chosen else None


@click.command(cls=OptionalValues)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The suite file: another way to name SUITE.",
)
@run_options
@click.option("--dry-run", is_flag=True, help="Show what would run and what it may cost.")
@click.option("--resume", is_flag=True, help="Resume the newest run with the same options.")
@page_options
@execution_options
@execution_option("--no-store", is_flag=True, help="Store nothing; an interrupted run is lost.")
@forge_options
@output_options("run", verbose=True)
@click.pass_context
def run(
    context: click.Context,
    suite: Path | None,
    config: Path | None,
    dry_run: bool,
    resume: bool,
    store: Path | str,
    executor: Executor,
    workers: int,
    no_store: bool,
    html: str | None,
    rows: str | None,
    transcripts: bool,
    github: bool | None,
    informational: bool,
    output: Output,
    **terms: Unpack[RunTerms],
) -> None:
    """Run SUITE (default: passhat.yml in this folder) and say how reliable its agents are.

    \b
      passhat run
      passhat run suite.yml --runs 20 --require 'pass^3 >= 0.8' --until-settled
      passhat run --record               then, without a key: passhat run --replay
      passhat run --html report.html -o report.json --max-cost 5
      passhat run -o events.ndjson       a line for each event, while it runs

    Every trial is stored as soon as it ends; `passhat resume` continues an interrupted run and pays
    for nothing twice.

    Exit codes: 0 passed; 1 a gate, a floor or (in a suite without gates) an expectation failed;
    2 usage or configuration; 3 the run could not be completed; 4 undecided; 70 a fault of passhat
    itself; 129/130/143 stopped by a signal.
    """
    if suite is not None and config is not None:
        raise click.UsageError(f"name the suite once: {suite} or --config {config}", ctx=context)
    suite = suite or config
    kept = None if no_store else store
    from passhat.journeys import plan_run, run_suite

    if dry_run:
        if html is not None:
            raise click.UsageError("--html is the page of a run: write the plan with -o plan.html")
        output.write(plan_run(suite, store=kept, **terms))
        return
    files = {"outputs": output.paths_out, "html": html, "transcripts": transcripts, "rows": rows}
    tell = partial(
        announce_run, output=output, suite=suite, store=kept, informational=informational
    )
    code = show_run(
        lambda on_event: run_suite(
            suite,
            **terms,
            store=kept,
            resume=resume,
            transcripts=wants_page(transcripts, output, html=html),
            on_event=on_event,
            interface=files,
            executor=executor,
            workers=workers,
        ),
        output,
        html=html,
        by_run=rows == "runs",
        resumed=resume,
        store=kept,
        tell_reviewers=tell if wanted(github) else None,
    )
    context.exit(0 if informational and code in (ExitCode.FAIL, ExitCode.UNDECIDED) else code)


@click.command(cls=SectionedCommand)
@click.argument("run", required=False)
@click.option(
    "--runs",
    type=WholeNumber(min=1),
    help="Total number of runs of each task; more than before extends a finished run.",
)
@click.option("--retry-errors", is_flag=True, help="Run errored trials again.")
@click.option("--changed", is_flag=True, help="Continue although the suite file has changed.")
@page_options
@budget_options
@execution_options
@output_options("run", verbose=True)
@click.pass_context
def resume(
    context: click.Context,
    /,
    run: str | None,
    runs: int | None,
    store: Path | str,
    html: str | None,
    rows: str | None,
    transcripts: bool,
    output: Output,
    **given: Unpack[ResumeTerms],
) -> None:
    """Resume an interrupted RUN, or add trials to a finished one.

    RUN is the newest unfinished run unless you name another. It continues with the options it was
    started with, including -o and --html; you may give new budgets and files. Finished trials are
    not run again, and no model call that was answered is paid for again.

    \b
      passhat resume                     the newest unfinished run
      passhat resume latest --runs 30    30 runs of every task in all

    Exit codes: those of `passhat run`; 2 also if there is nothing to resume.
    """
    from passhat.journeys import resume_run
    from passhat.journeys.run_store import run_to_resume

    looked_up = run_to_resume(store, run, runs=runs)
    if looked_up.note:
        say_note(looked_up.note)
    found, kept = looked_up.run, looked_up.run.options
    outputs = output.paths_out or tuple(kept.get("outputs") or ())
    page, said = html or kept.get("html"), transcripts or bool(kept.get("transcripts"))
    rows = rows or kept.get("rows")
    output = replace(output, paths_out=outputs)
    context.exit(
        show_run(
            lambda on_event: resume_run(
                found.key,
                store=store,
                runs=runs,
                transcripts=wants_page(said, output, html=page),
                on_event=on_event,
                interface={"outputs": outputs, "html": page, "transcripts": said, "rows": rows},
                **given,
            ),
            output,
            html=page,
            resumed=True,
            store=store,
            by_run=rows == "runs",
        )
    )


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option(
    "--runs",
    type=WholeNumber(min=1),
    default=20,
    help="How often to run it; with --until-settled, at most.",
)
@click.option("--min", "least", type=Share(), help="The share of runs that must succeed.")
@click.option("--until-settled", is_flag=True, help="Stop as soon as --min is proved or disproved.")
@click.option(
    "--outcome",
    type=click.Choice(["auto", "exit", "json"]),
    default="auto",
    help="What decides: the exit code, or a line of JSON that it prints, with `score` or `passed`.",
)
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=120.0,
    metavar="SECONDS",
    help="How long one run may take.",
)
@click.option("--concurrency", type=WholeNumber(min=1), default=1, help="Runs at a time.")
@store_option("Also store the runs here.", default=None)
@output_options("run", verbose=True)
@click.pass_context
def repeat(
    context: click.Context,
    /,
    command: tuple[str, ...],
    runs: int,
    least: float | None,
    until_settled: bool,
    outcome: Literal["auto", "exit", "json"],
    timeout: float,
    concurrency: int,
    store: Path | str | None,
    output: Output,
) -> None:
    """Run COMMAND many times: how often does it succeed, and how sure is that?

    \b
      passhat repeat --runs 20 -- ./my-agent --flag
      passhat repeat --until-settled --min 0.9 --runs 200 -- pytest -x tests/agent
      passhat repeat --runs 50 --concurrency 4 -- curl -fsS localhost:8000/ask

    Exit codes: 0 all runs succeeded, or --min is proved; 1 a run failed, or --min is disproved;
    2 there is no such program; 3 it could not be run; 4 --min is neither; 130 interrupted.
    """
    from passhat.journeys import repeat_command

    if until_settled and least is None:
        raise click.UsageError("--until-settled needs --min SHARE: what is to be settled?")
    context.exit(
        show_run(
            lambda on_event: repeat_command(
                command,
                runs=runs,
                least=least,
                until_settled=until_settled,
                outcome=outcome,
                timeout=timeout,
                concurrency=concurrency,
                store=store,
                on_event=on_event,
            ),
            output,
        )
    )
