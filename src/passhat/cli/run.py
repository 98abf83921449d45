"""Run agents: `passhat run` a suite, `resume` a run, `repeat` any command."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import click

from passhat.cli import options
from passhat.cli.forge_output import announce_run, forge_options, wanted
from passhat.cli.output import Output, wants_page
from passhat.cli.reading import say_note
from passhat.cli.run_output import show_run
from passhat.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.journeys.run_request import Executor, ResumeTerms, RunTerms

BARE_VALUES = {"--record": "new", "--faults": "both"}
"""What these options mean without `=VALUE`."""

SAME_OPTIONS = ""
"""What --resume means without RUN: the newest run with the same options."""

EXECUTION = "Where it runs"


class OptionalValues(options.SectionedCommand):
    """A command whose `--record` and `--faults` take a value only behind an equals sign.

    Otherwise `passhat run --record suite.yml` would record in the mode "suite.yml". `--resume`
    takes the next word, unless that is a suite file.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words: list[str] = []
        for arg in args[:end]:
            if words and words[-1] == "--resume" and _may_name_a_run(arg):
                words[-1] = f"--resume={arg}"
            else:
                words.append(f"{arg}={BARE_VALUES[arg]}" if arg in BARE_VALUES else arg)
        words = [f"--resume={SAME_OPTIONS}" if word == "--resume" else word for word in words]
        return super().parse_args(ctx, words + args[end:])


def _may_name_a_run(word: str) -> bool:
    """Whether the word after --resume is the run, and not an option or the suite."""
    suite = word.lower().endswith((".yml", ".yaml")) or Path(word).is_file()
    return not word.startswith("-") and not suite


page_options = options.in_order(
    click.option("--html", metavar="FILE", help="Also write the report as a web page."),
    click.option("--transcripts", is_flag=True, help="Show transcripts on the page."),
    click.option(
        "--rows",
        type=click.Choice(["tasks", "runs"]),
        help="What counts as a test case in JUnit, CTRF, TAP and similar files: a task or a single "
        "trial.  [default: tasks]",
    ),
)
_COUNT, _AMOUNT = options.WholeNumber(min=1), options.Number(min=0, min_open=True)
_limit = partial(options.shared, "Budget")
budget_options = options.in_order(
    _limit("--max-cost", type=_AMOUNT, metavar="DOLLARS", help="Stop when this much is spent."),
    _limit("--max-tokens", type=_COUNT, help="Stop at this many tokens."),
    _limit("--max-calls", type=_COUNT, help="Stop at this many model calls."),
    _limit("--max-minutes", type=_AMOUNT, metavar="MINUTES", help="Stop after this long."),
)
execution_option = partial(options.shared, EXECUTION)
execution_options = options.in_order(
    options.store_option("Where the trials are stored.", section=EXECUTION),
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
_choosing = options.in_order(
    _named("--only", help="Only this agent; * and ? match."),
    _named("--task", "tasks", help="Only this task, or one trial: 'refund #3'."),
    _named("--tag", "tags", help="Only tasks with this tag."),
    options.renamed(
        "--trials", "runs", formerly="--runs", type=_COUNT, help="Trials of each task."
    ),
    click.option(
        "--seed",
        type=options.WholeNumber(min=0),
        help="The seed that those of all trials are made from.",
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
_demanding = options.in_order(
    click.option(
        *("--require", "-r"),
        metavar="GATE",
        multiple=True,
        help="A gate in addition to those of the suite, such as 'pass^3 >= 0.8'. May be repeated.",
    ),
    options.renamed(
        *("--until-decided", "until_settled"),
        formerly="--until-settled",
        is_flag=True,
        help="Stop as soon as every gate is decided.",
    ),
    click.option(
        "--coverage-threshold",
        type=options.Number(min=0, max=1),
        metavar="SHARE",
        help="Fail unless this share of the servers' tools was called.",
    ),
)
_cassette_option = partial(options.shared, "Cassettes")
_cassette_flag = partial(_cassette_option, is_flag=True)
_cassettes = options.in_order(
    _cassette_option(
        "--record",
        is_flag=False,
        flag_value=BARE_VALUES["--record"],
        type=click.Choice(["new", "missing", "all", "drifted"]),
        metavar="[=missing|all|drifted]",
        help="Record every exchange in cassettes: all again, or only missing or drifted ones.",
    ),
    _cassette_flag("--append", help="Record further trials beside the recorded ones."),
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


_resuming = options.in_order(
    click.option("--retry-errors", is_flag=True, help="With --resume: run errored trials again."),
    click.option(
        "--changed",
        is_flag=True,
        help="With --resume: go on although suite, agent or what decides has changed.",
    ),
)


def run_options(command: options.Command) -> options.Command:
    """What to run, what to demand and what it may cost: the arguments of a RunRequest."""

    @wraps(command)
    def with_cassette(**values: Any) -> Any:
        return command(cassette=_cassette(values), **values)

    return options.in_order(_choosing, _demanding, budget_options, _cassettes)(with_cassette)


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


@click.command(
    cls=OptionalValues,
    brief=[
        options.TRIALS,
        f"{options.ONLY}           --task NAME  this task only",
        "-r, --require GATE   a gate, such as 'pass^3 >= 0.8'; may be repeated",
        "--until-decided      stop as soon as every gate is decided",
        "--dry-run            show what would run, and what it may cost",
        "--resume [RUN]       go on with a run; nothing is paid twice",
        "--record --replay    keep every model answer; answer from what was kept",
        "--live               call the models although there are recordings",
        "--max-cost DOLLARS   stop when this much is spent",
        "--store URL          where trials are kept (many machines share one)",
        "-o FILE              write .html .json .md .xml (JUnit) ...",
        "--json  -v  -q       print JSON; every number; no progress",
        options.EXIT_CODES,
    ],
)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The suite file: another way to name SUITE.",
)
@run_options
@click.option("--dry-run", is_flag=True, help="Show what would run and what it may cost.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value=SAME_OPTIONS,
    metavar="[RUN]",
    help="Go on with this run, or else with the newest one that has the same options.",
)
@_resuming
@page_options
@execution_options
@execution_option("--no-store", is_flag=True, help="Store nothing; an interrupted run is lost.")
@forge_options
@options.output_options("run")
@click.pass_context
def run(
    context: click.Context,
    suite: Path | None,
    config: Path | None,
    dry_run: bool,
    resume: str | None,
    retry_errors: bool,
    changed: bool,
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
    """Run every task of a suite many times and judge its gates.

    \b
      passhat run --trials 20 --require 'pass^3 >= 0.8' --until-decided
      passhat run --record          then, with no key: passhat run --replay

    SUITE is passhat.yml in this folder unless you name another. Every trial is stored as soon as it
    ends. --resume goes on with RUN, or with the newest run of the same suite and options; RUN
    continues with the options that it was started with, and you may give new budgets and files.
    --trials is then the number for each task in all: more than before extends a finished run.

    \b
      passhat run --resume latest --trials 30
      passhat run -o report.html -o report.json --max-cost 5
      passhat run -o events.ndjson       a line for each event, while it runs

    Exit codes: 0 passed; 1 a gate, a floor or (in a suite without gates) an expectation failed;
    2 usage or configuration; 3 the run could not be completed; 4 undecided; 70 a fault of passhat
    itself; 129/130/143 stopped by a signal.
    """
    if suite is not None and config is not None:
        raise click.UsageError(f"name the suite once: {suite} or --config {config}", ctx=context)
    suite = suite or config
    kept = None if no_store else store
    tell = partial(
        announce_run, output=output, suite=suite, store=kept, informational=informational
    )
    if resume:
        started = f"run {resume} goes on with the options that it was started with"
        options.refuse_typed(context, _FIXED, started)
        code = _resume(
            resume, runs=terms["runs"], store=store, html=html, rows=rows, transcripts=transcripts,
            output=output, tell_reviewers=tell if wanted(github) else None,
            retry_errors=retry_errors, changed=changed, executor=executor, workers=workers,
            concurrency=terms["concurrency"], max_cost=terms["max_cost"],
            max_tokens=terms["max_tokens"], max_minutes=terms["max_minutes"],
            max_calls=terms["max_calls"],
        )  # fmt: skip
        context.exit(_exit_code(code, informational=informational))
    if retry_errors or changed:
        raise click.UsageError("--retry-errors and --changed need the run: --resume RUN")
    from passhat import journeys
    from passhat.journeys import plan_run

    if dry_run:
        if html is not None:
            raise click.UsageError("--html is the page of a run: write the plan with -o plan.html")
        output.write(plan_run(suite, store=kept, **terms))
        return
    files = {"outputs": output.paths_out, "html": html, "transcripts": transcripts, "rows": rows}
    code = show_run(
        lambda on_event: journeys.run(
            suite,
            **terms,
            store=kept,
            resume=resume is not None,
            transcripts=wants_page(transcripts, output, html=html),
            on_event=on_event,
            interface=files,
            executor=executor,
            workers=workers,
        ),
        output,
        html=html,
        by_run=rows == "runs",
        resumed=resume is not None,
        store=kept,
        tell_reviewers=tell if wanted(github) else None,
    )
    context.exit(_exit_code(code, informational=informational))


def _exit_code(code: ExitCode, *, informational: bool) -> ExitCode:
    """The exit code, which is 0 for any verdict if reviewers are only to be told."""
    verdict = code in (ExitCode.FAIL, ExitCode.UNDECIDED)
    return ExitCode.PASS if informational and verdict else code


_FIXED = ("suite", "config", "only", "tasks", "tags", "seed", "shard", "faults", "require",
          "until_settled", "coverage_threshold", "record", "append", "replay", "replay_or_live",
          "live", "servers", "allow_drift", "compress", "dry_run", "no_store")  # fmt: skip
"""What a run that is resumed has from its start."""


@click.command(cls=options.SectionedCommand, brief=["It is now: passhat run --resume [RUN]"])
@click.argument("run", required=False)
@options.renamed(
    *("--trials", "runs"),
    formerly="--runs",
    type=options.WholeNumber(min=1),
    help="Trials of each task in all; more than before extends a finished run.",
)
@_resuming
@page_options
@budget_options
@execution_options
@options.output_options("run")
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

    Exit codes: those of `passhat run`; 2 also if there is nothing to resume.
    """
    code = _resume(
        run, runs=runs, store=store, html=html, rows=rows, transcripts=transcripts, output=output,
        **given,
    )  # fmt: skip
    context.exit(code)


def _resume(
    run: str | None,
    *,
    runs: int | None,
    store: Path | str,
    html: str | None,
    rows: str | None,
    transcripts: bool,
    output: Output,
    tell_reviewers: Callable[[RunAnswer], bool] | None = None,
    **given: Unpack[ResumeTerms],
) -> ExitCode:
    """Continue a stored run with the files that it was started with, unless others are named."""
    from passhat.journeys import resume_run
    from passhat.journeys.run_store import run_to_resume

    looked_up = run_to_resume(store, run, runs=runs)
    if looked_up.note:
        say_note(looked_up.note)
    stored, kept = looked_up.run, looked_up.run.options
    outputs = output.paths_out or tuple(kept.get("outputs") or ())
    page, texts = html or kept.get("html"), transcripts or bool(kept.get("transcripts"))
    rows = rows or kept.get("rows")
    output = replace(output, paths_out=outputs)
    return show_run(
        lambda on_event: resume_run(
            stored.key,
            store=store,
            runs=runs,
            transcripts=wants_page(texts, output, html=page),
            on_event=on_event,
            interface={"outputs": outputs, "html": page, "transcripts": texts, "rows": rows},
            **given,
        ),
        output,
        html=page,
        resumed=True,
        store=store,
        by_run=rows == "runs",
        tell_reviewers=tell_reviewers,
    )


@click.command(
    cls=options.SectionedCommand,
    context_settings={"allow_interspersed_args": False},
    brief=[
        "--trials N           how often to run it (20)",
        "-r, --require GATE   a gate, such as 'pass^3 >= 0.8'; may be repeated",
        "--timeout SECONDS    how long one trial may take (120)",
        options.JSON,
        options.EXIT_CODES,
    ],
)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@options.renamed(
    *("--trials", "runs"),
    formerly="--runs",
    type=options.WholeNumber(min=1),
    default=20,
    help="How often to run it; with --until-decided, at most.",
)
@click.option(
    *("--require", "-r"),
    metavar="GATE",
    multiple=True,
    help="A gate, such as 'pass^3 >= 0.8'. May be repeated.",
)
@click.option(
    "--min",
    "least",
    type=options.Share(),
    help="The share that must pass: --require 'pass@1 >= SHARE'.",
)
@options.renamed(
    *("--until-decided", "until_settled"),
    formerly="--until-settled",
    is_flag=True,
    help="Stop as soon as every gate is decided.",
)
@click.option(
    "--outcome",
    type=click.Choice(["auto", "exit", "json"]),
    default="auto",
    help="What decides: the exit code, or a line of JSON that it prints, with `score` or `passed`.",
)
@click.option(
    "--timeout",
    type=options.Number(min=0, min_open=True),
    default=120.0,
    metavar="SECONDS",
    help="How long one trial may take.",
)
@click.option("--concurrency", type=options.WholeNumber(min=1), default=1, help="Trials at a time.")
@options.store_option("Also store the trials here.", default=None)
@options.output_options("run")
@click.pass_context
def repeat(
    context: click.Context,
    /,
    command: tuple[str, ...],
    runs: int,
    require: tuple[str, ...],
    least: float | None,
    until_settled: bool,
    outcome: Literal["auto", "exit", "json"],
    timeout: float,
    concurrency: int,
    store: Path | str | None,
    output: Output,
) -> None:
    """Run any command many times: does it work every time?

    \b
      passhat repeat -- ./my-agent --flag
      passhat repeat --trials 200 --require 'pass@1 >= 0.9' -- pytest -x tests/agent

    \b
      passhat repeat --trials 50 --concurrency 4 -- curl -fsS localhost:8000/ask
      passhat repeat --until-decided --require 'pass^3 >= 0.8' --trials 200 -- ./my-agent

    Without a gate every trial must pass. Exit codes: 0 PASS; 1 FAIL; 2 there is no such program;
    3 it could not be run; 4 UNDECIDED; 130 interrupted.
    """
    from passhat import journeys

    if until_settled and least is None and not require:
        raise click.UsageError("--until-decided needs a gate: --require 'pass@1 >= 0.9'")
    context.exit(
        show_run(
            lambda on_event: journeys.repeat(
                command,
                runs=runs,
                require=require,
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
