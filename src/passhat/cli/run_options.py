"""What `passhat run` can be told, and what is kept of it so that a run can be resumed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import click

from passhat.cli.output import every_format

Command = Callable[..., Any]

FORMATS = every_format("run")
"""What the answer of a run can be written as."""

BARE_VALUES = {"--record": "new", "--faults": "both"}
"""What these options mean without `=VALUE`."""

FREE = frozenset(
    {
        "concurrency",
        "max_cost",
        "max_tokens",
        "max_minutes",
        "max_calls",
        "outputs",
        "html",
        "transcripts",
    }
)
"""Options that a resumed run may be given anew: they change how fast, how far, and where its
answer goes, not what is run."""

_NOT_ASKED_HERE = frozenset({"suite", "cassette", "outputs", "html", "transcripts"})


class OptionalValues(click.Command):
    """A command whose `--record` and `--faults` take a value only behind an equals sign.

    Otherwise `passhat run --record suite.yml` would record in the mode "suite.yml".
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        told = [f"{arg}={BARE_VALUES[arg]}" if arg in BARE_VALUES else arg for arg in args[:end]]
        return super().parse_args(ctx, told + args[end:])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """One request to run a suite; None and empty leave it to the suite."""

    suite: str = ""
    only: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    runs: int | None = None
    seed: int | None = None
    require: tuple[str, ...] = ()
    until_settled: bool = False
    max_cost: float | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    cassette: str | None = None
    servers: str | None = None
    allow_drift: bool = False
    compress: bool = False
    faults: str | None = None
    outputs: tuple[str, ...] = ()
    html: str | None = None
    transcripts: bool = False

    @property
    def identity(self) -> dict[str, Any]:
        """What two starts of the same run have in common, as JSON has it."""
        return {name: value for name, value in self.to_json().items() if name not in FREE}

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads again."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RunOptions:
        """The options of a stored run."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in kept.items()
            if name in known
        }
        return cls(**values)

    def freed(self, **given: Any) -> RunOptions:
        """The same run with what is given in the place of its own."""
        chosen = {name: value for name, value in given.items() if value not in (None, (), False)}
        return replace(self, **chosen)


def run_options(command: Command) -> Command:
    """What to run, what to demand, what it may cost, and from where answers come: `options`."""

    @functools.wraps(command)
    def with_options(**values: Any) -> Any:
        cassette = _cassette(values)
        names = [f.name for f in fields(RunOptions) if f.name not in _NOT_ASKED_HERE]
        chosen = {name: values.pop(name) for name in names}
        return command(options=RunOptions(cassette=cassette, **chosen), **values)

    decorated: Command = with_options
    for option in reversed([*_choosing(), *_demanding(), *limits(), *_replaying()]):
        decorated = option(decorated)
    return decorated


def limits() -> list[Callable[[Command], Command]]:
    """--max-cost, --max-tokens, --max-calls, --max-minutes and --concurrency."""
    money = click.FloatRange(min=0, min_open=True)
    return [
        click.option("--max-cost", type=money, metavar="DOLLARS", help="Stop at this much money."),
        click.option("--max-tokens", type=click.IntRange(min=1), help="Stop at this many tokens."),
        click.option("--max-calls", type=click.IntRange(min=1), help="Stop at this many calls."),
        click.option("--max-minutes", type=money, help="Stop after this long."),
        click.option("--concurrency", type=click.IntRange(min=1), help="Trials at a time."),
    ]


def _choosing() -> list[Callable[[Command], Command]]:
    named: dict[str, Any] = {"metavar": "NAME", "multiple": True}
    return [
        click.option("--only", **named, help="Only this agent or system; * and ? match."),
        click.option("--task", "tasks", **named, help="Only this task; * and ? match."),
        click.option("--tag", "tags", **named, help="Only tasks with this tag."),
        click.option("--runs", type=click.IntRange(min=1), help="Trials of each task."),
        click.option("--seed", type=click.IntRange(min=0), help="Where the seeds begin."),
    ]


def _demanding() -> list[Callable[[Command], Command]]:
    return [
        click.option(
            "--require",
            metavar="DEMAND",
            multiple=True,
            help="A gate beside those of the suite, such as 'pass^3 >= 0.8'.",
        ),
        click.option(
            "--until-settled",
            is_flag=True,
            help="Run only until every gate is settled, at most as many trials as asked for.",
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
            help="Write every exchange to cassettes; again where missing, all, or drifted.",
        ),
        click.option("--append", is_flag=True, help="Record runs beyond those recorded."),
        click.option("--replay", is_flag=True, help="Answer from the cassettes, ask nobody."),
        click.option(
            "--replay-or-live", is_flag=True, help="Replay what is recorded, ask for the rest."
        ),
        click.option("--live", is_flag=True, help="Ask the models, whatever is recorded."),
        click.option(
            "--servers",
            type=click.Choice(["live", "recorded"]),
            help="In a replay: real MCP servers, or what they said.",
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
