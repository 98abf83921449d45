"""The options of `passhat run`: what to run, what to demand, what it may cost, who answers."""

from __future__ import annotations

import functools
from typing import Any

import click

from passhat.cli.option_types import Number, WholeNumber
from passhat.cli.options import Command, SectionedCommand, in_order, shared, store_option

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
_limit = functools.partial(shared, "Budget")
budget_options = in_order(
    _limit("--max-cost", type=_AMOUNT, metavar="DOLLARS", help="Stop when this much is spent."),
    _limit("--max-tokens", type=_COUNT, help="Stop at this many tokens."),
    _limit("--max-calls", type=_COUNT, help="Stop at this many model calls."),
    _limit("--max-minutes", type=_AMOUNT, metavar="MINUTES", help="Stop after this long."),
)
execution_option = functools.partial(shared, EXECUTION)
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
)
_named = functools.partial(click.option, metavar="NAME", multiple=True)
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
_cassette_option = functools.partial(shared, "Cassettes")
_cassette_flag = functools.partial(_cassette_option, is_flag=True)
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

    @functools.wraps(command)
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
