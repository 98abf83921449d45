"""The options of `passhat run`: what to run, what to demand, what it may cost, who answers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from passhat.cli.options import Command, SectionedCommand, WholeNumber, apply_options

BARE_VALUES = {"--record": "new", "--faults": "both"}
"""What these options mean without `=VALUE`."""

_NAMES = (
    *("only", "tasks", "tags", "runs", "seed", "require", "until_settled", "coverage_threshold"),
    *("max_cost", "max_tokens", "max_minutes", "max_calls", "concurrency"),
    *("servers", "allow_drift", "compress", "faults", "shard"),
)
"""Arguments of `run_suite` that are options of the same name."""


class OptionalValues(SectionedCommand):
    """A command whose `--record` and `--faults` take a value only behind an equals sign.

    Otherwise `passhat run --record suite.yml` would record in the mode "suite.yml".
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = [f"{arg}={BARE_VALUES[arg]}" if arg in BARE_VALUES else arg for arg in args[:end]]
        return super().parse_args(ctx, words + args[end:])


def execution_options(command: Command) -> Command:
    """Who runs the trials, and the page: the options that `run` and `resume` share."""
    options = [
        click.option(
            "--executor",
            type=click.Choice(["local", "workers", "ray"]),
            default="local",
            show_default=True,
            help="Who runs the trials: this process, `passhat worker` processes, or a Ray cluster.",
        ),
        click.option(
            "--workers",
            type=WholeNumber(min=1),
            default=2,
            help="Workers to start on the Ray cluster.",
        ),
        click.option("--html", metavar="FILE", help="Also write the report as a page."),
        click.option(
            "--rows",
            type=click.Choice(["tasks", "runs"]),
            help="A test case in JUnit, CTRF, TAP and the like: a task (the default), or a run.",
        ),
        click.option("--transcripts", is_flag=True, help="Show transcripts on the page."),
    ]
    return apply_options(options, command)


def run_options(command: Command) -> Command:
    """What `run_suite` takes of the same names, handed over as `options`."""

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        options = {"cassette": _cassette(values), **{name: values.pop(name) for name in _NAMES}}
        return command(options=options, **values)

    return apply_options([*_choosing(), *_demanding(), *limits(), *_replaying()], with_options)


def limits() -> list[Callable[[Command], Command]]:
    """--max-cost, --max-tokens, --max-calls, --max-minutes and --concurrency."""
    money = click.FloatRange(min=0, min_open=True)
    return [
        click.option(
            "--max-cost", type=money, metavar="DOLLARS", help="Stop when this much is spent."
        ),
        click.option("--max-tokens", type=WholeNumber(min=1), help="Stop at this many tokens."),
        click.option("--max-calls", type=WholeNumber(min=1), help="Stop at this many calls."),
        click.option("--max-minutes", type=money, metavar="MINUTES", help="Stop after this long."),
        click.option("--concurrency", type=WholeNumber(min=1), help="Trials at a time."),
    ]


def _choosing() -> list[Callable[[Command], Command]]:
    named: dict[str, Any] = {"metavar": "NAME", "multiple": True}
    return [
        click.option("--only", **named, help="Only this agent or system; * and ? match."),
        click.option("--task", "tasks", **named, help="Only this task, or one run: 'refund #3'."),
        click.option("--tag", "tags", **named, help="Only tasks with this tag."),
        click.option("--runs", type=WholeNumber(min=1), help="Trials of each task."),
        click.option(
            "--seed", type=WholeNumber(min=0), help="Seed from which the trials get theirs."
        ),
        click.option("--shard", metavar="I/N", help="Only this part of the trials, such as 3/10."),
    ]


def _demanding() -> list[Callable[[Command], Command]]:
    return [
        click.option(
            "--require",
            metavar="DEMAND",
            multiple=True,
            help="A gate besides those of the suite, such as 'pass^3 >= 0.8'.",
        ),
        click.option(
            "--until-settled", is_flag=True, help="Stop as soon as every gate has its verdict."
        ),
        click.option(
            "--coverage-threshold",
            type=click.FloatRange(min=0, max=1),
            metavar="SHARE",
            help="Fail unless this share of the servers' tools was called.",
        ),
    ]


def _replaying() -> list[Callable[[Command], Command]]:
    return [
        click.option(
            "--record",
            is_flag=False,
            flag_value=BARE_VALUES["--record"],
            type=click.Choice(["new", "missing", "all", "drifted"]),
            metavar="[=missing|all|drifted]",
            help="Record every exchange in cassettes: all again, or only missing or drifted ones.",
        ),
        click.option(
            "--append", is_flag=True, help="Record further runs beside the recorded ones."
        ),
        click.option("--replay", is_flag=True, help="Answer from the cassettes and make no calls."),
        click.option(
            "--replay-or-live",
            is_flag=True,
            help="Replay what is recorded; call the models for the rest.",
        ),
        click.option("--live", is_flag=True, help="Call the models even where recordings exist."),
        click.option(
            "--servers",
            type=click.Choice(["live", "recorded"]),
            help="In a replay: the real MCP servers, or their recorded answers.",
        ),
        click.option("--allow-drift", is_flag=True, help="Replay although the suite has changed."),
        click.option("--compress", is_flag=True, help="Write cassettes with zstd."),
        click.option(
            "--faults",
            is_flag=False,
            flag_value=BARE_VALUES["--faults"],
            type=click.Choice(["both", "only"]),
            metavar="[=only]",
            help="Run with and without the suite's faults, and score the recovery.",
        ),
    ]


def _cassette(values: dict[str, Any]) -> str | None:
    """The one way in which cassettes are used, of five options that exclude each other."""
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
        raise click.UsageError(f"{' and '.join(flag for flag, _ in chosen)} exclude each other")
    return chosen[0][1] if chosen else None
