"""Options that several commands share: how to analyse, and where to write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from passhat.arguments import CONFIDENCE, SEED, STORE
from passhat.cli.output import Output, usual_endings
from passhat.errors import ArgumentError
from passhat.messages import closest
from passhat.reporters import formats_for
from passhat.reporters.rendering import ENDINGS

if TYPE_CHECKING:
    from passhat.records import ErrorPolicy

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

OPTIONS, ANALYSIS, OUTPUT, READING = "Options", "Analysis", "Output", "Reading results"
"""Sections of a command's help: its own options come first; the last three in this order."""

INDIFFERENCE = (
    "An agent this far beyond the threshold should PASS; one in between may get either verdict."
)
"""The help of --indifference."""

OTHER_OPTIONS = {
    **dict.fromkeys(
        ("--outcome", "--passed", "--success", "--result", "--correct", "--label"), "--pass"
    ),
    **dict.fromkeys(("--attempt", "--epoch", "--repetition", "--iteration"), "--trial"),
    **dict.fromkeys(("--agent", "--model"), "--system"),
    **dict.fromkeys(("--question", "--task-id", "--id"), "--task"),
    **dict.fromkeys(("--trials", "--epochs", "--repeat", "--num-trials"), "--runs"),
    **dict.fromkeys(("--threshold", "--gate"), "--require"),
    **dict.fromkeys(("--format", "--output-format"), "--as"),
}
"""What other tools call an option, and its name here."""


class SharedOption(click.Option):
    """An option that the help shows under the title of its section."""

    def __init__(self, *names: Any, section: str, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists its own options first, then those that it shares."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; the error for an option of another tool names ours."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = self._meant_by(error.option_name)
            if meant is None:
                raise
            message = f"{error.message} {meant}"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None
        except click.MissingParameter as error:
            if error.param is None or not str(error.param.metavar).startswith("RESULTS"):
                raise
            message = "name the results: a file, a folder, or a stored run such as latest"
            raise click.UsageError(message, ctx=ctx) from None

    def _meant_by(self, option: str) -> str | None:
        """What to type instead of an option that the command does not have; None if unknown."""
        known = {name: param for param in self.params for name in param.opts}
        if (ours := OTHER_OPTIONS.get(option)) in known:
            return f"Did you mean {ours!r}?"
        formats = getattr(known["--as"].type, "choices", ()) if "--as" in known else ()
        if (name := option.lstrip("-")) not in formats:
            return None
        ending = next(ending for ending, format_ in ENDINGS.items() if format_ == name)
        return f"Print it with '--as {name}', or write it to a file with '-o FILE{ending}'."

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", OPTIONS), []).append(record)
        last = (ANALYSIS, OUTPUT, READING)
        for title in sorted(sections, key=lambda one: last.index(one) if one in last else -1):
            with formatter.section(title):
                formatter.write_dl(sections[title])


def shared(section: str, *names: str, **attributes: Any) -> Decorator:
    """An option in a section of the help."""
    return click.option(*names, cls=SharedOption, section=section, **attributes)


def in_order(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order of their help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# What the values of options must be: anything else gets a sentence that names the rule.


class Share(click.ParamType[float]):
    """A number strictly between 0 and 1, such as 0.95, or a percentage such as 95%."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{value!r} is not a number such as 0.95", param, ctx)
        if not 0 < number < 1:
            percent = f"; for {text} percent write {text}%" if 1 < number < 100 else ""
            self.fail(f"must lie strictly between 0 and 1, got {value}{percent}", param, ctx)
        return number


class WholeNumber(click.IntRange):
    """A whole number within a range; anything else gets a sentence about numbers, not ranges."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            int(value)
        except (TypeError, ValueError):
            example = max(20, int(self.min or 0))
            self.fail(f"{value!r} is not a whole number such as {example}", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be {_range_words(self)}, got {value}", param, ctx)


class Number(click.FloatRange):
    """A number within a range."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            float(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is not a number", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be {_range_words(self)}, got {value}", param, ctx)


def _range_words(range_: click.IntRange | click.FloatRange) -> str:
    """The range of a number in words.

    >>> _range_words(click.IntRange(0, 65535)), _range_words(click.FloatRange(0, min_open=True))
    ('from 0 to 65535', 'above 0')
    """
    if range_.max is not None:
        return f"from {range_.min} to {range_.max}"
    return f"above {range_.min}" if range_.min_open else f"at least {range_.min}"


class NumberList(click.ParamType[tuple[int, ...]]):
    """`1,2,4`: whole numbers from 1 on."""

    def __init__(self, letter: str, example: str, too_small: str) -> None:
        self.name = f"{letter},{letter},..."
        self._example = example
        self._too_small = too_small

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            numbers = tuple(sorted({int(part) for part in value.split(",")}))
        except ValueError:
            self.fail(f"{value!r} is not a list of {self._example}", param, ctx)
        if numbers[0] < 1:
            self.fail(f"{self._too_small}, got {numbers[0]}", param, ctx)
        return numbers


K_LIST = NumberList("K", "whole numbers such as 1,2,4", "k must be at least 1")
ROUND_NUMBERS = NumberList("N", "rounds such as 4 or 2,4", "rounds are counted from 1")


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic in some versions only
    """One of many words; the error for another names the one that was probably meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = closest(str(value), map(str, self.choices))
            hint = f" Did you mean {near!r}?" if near else ""
            self.fail(f"{error.message}{hint}", param, ctx)


class StoreType(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """A path, or a postgresql:// address as a string."""

    name = "store"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "FILE|URL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        from passhat.history.database import is_postgres

        if is_postgres(value):
            return str(value)
        if Path(value).is_dir():
            self.fail(
                f"{str(value)!r} is a folder; a store is a file such as .passhat/history.db",
                param,
                ctx,
            )
        return Path(value)


# Options that commands share.

bar_option = click.option(
    "--bar",
    "bars",
    metavar="[TASK=]SHARE",
    multiple=True,
    help="The pass^k that a task should reach: one bar for all tasks, and one for each task named.",
)
quiet_option = shared(
    OUTPUT, "-q", "--quiet", is_flag=True, help="Print no notes on standard error."
)
confidence_option = shared(
    ANALYSIS,
    "--confidence",
    type=Share(),
    default=CONFIDENCE,
    help="Confidence level of all intervals.",
)
errors_option = shared(
    ANALYSIS,
    "--errors",
    type=click.Choice(["fail", "exclude"]),
    default="fail",
    help="Count errored trials as failures, or leave them out.",
)
seed_option = shared(
    ANALYSIS,
    "--seed",
    type=WholeNumber(min=0),
    default=SEED,
    help="Seed of all random draws: the same seed gives the same bytes.",
)
analysis_options = in_order(
    shared(ANALYSIS, "--k", "ks", type=K_LIST, help="The k of pass^k and pass@k, such as 1,2,4."),
    confidence_option,
    errors_option,
    seed_option,
)


class AnalysisOptions(TypedDict):
    """The values of `analysis_options`, as the arguments of a journey."""

    ks: tuple[int, ...] | None
    confidence: float
    errors: ErrorPolicy
    seed: int


STORE_VARIABLE = "PASSHAT_STORE"
"""Names the store for every command. It may hold a password, so no file has it."""


def store_option(
    purpose: str, *, section: str = OPTIONS, default: Path | None = Path(STORE), **more: Any
) -> Decorator:
    """--store: what is given, or else in PASSHAT_STORE, or else the history of this folder."""
    return shared(
        section,
        "--store",
        type=StoreType(),
        default=default,
        envvar=STORE_VARIABLE,
        show_envvar=True,
        help=purpose,
        **more,
    )


def stored_runs_options(*, last: int, least: int) -> Decorator:
    """SUITE, --store, --branch, --only, --last and --confidence: which stored runs."""
    newest = WholeNumber(min=least)
    return in_order(
        click.argument("suite", required=False),
        store_option("The history store to read."),
        click.option("--branch", metavar="NAME", help="Stored runs of this branch only."),
        click.option("--only", metavar="AGENT", multiple=True, help="This agent only."),
        click.option(
            "--last", type=newest, default=last, help="How many of the newest stored runs."
        ),
        confidence_option,
    )


def file_option(purpose: str) -> Decorator:
    """-o FILE, which may be repeated."""
    names = ("-o", "--output", "paths_out")
    return shared(OUTPUT, *names, metavar="FILE", multiple=True, help=purpose)


def output_options(kind: str, *, verbose: bool = False) -> Decorator:
    """--json, --markdown, --as, -o FILE, --quiet and maybe --verbose, passed on as `output`.

    The help names the endings that can hold this kind of answer.
    """
    endings = " ".join(usual_endings(kind))
    options = [
        shared(OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON."),
        shared(OUTPUT, "--markdown", "as_markdown", is_flag=True, help="Print Markdown."),
        shared(
            OUTPUT,
            "--as",
            "as_format",
            type=OneOf(formats_for(kind)),
            metavar="FORMAT",
            help=f"Print as one of {', '.join(formats_for(kind))}.",
        ),
        file_option(f"Write to a file; its ending chooses the format: {endings}. May be repeated."),
        quiet_option,
    ]
    if verbose:
        more = "Show every number, and what the terms mean."
        options.append(shared(OUTPUT, "-v", "--verbose", is_flag=True, help=more))

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_output(**values: Any) -> Any:
            asked = {"json": values.pop("as_json"), "markdown": values.pop("as_markdown")}
            chosen = [name for name, wanted in asked.items() if wanted]
            chosen += [name] if (name := values.pop("as_format")) else []
            if len(set(chosen)) > 1:
                raise click.UsageError(
                    "--json, --markdown and --as cannot be used together; -o may name several files"
                )
            output = Output(
                format=chosen[0] if chosen else None,
                paths_out=values.pop("paths_out"),
                quiet=values.pop("quiet"),
                verbose=values.pop("verbose", False),
            )
            return command(output=output, **values)

        return in_order(*options)(with_output)

    return decorate


def parse_bars(texts: Sequence[str]) -> dict[str, float] | float | None:
    """`0.8` for every task, `refund=0.9` for one; with both, the first is for all others.

    >>> parse_bars(["0.8"]), parse_bars(["0.8", "refund=0.9"])
    (0.8, {'*': 0.8, 'refund': 0.9})
    """
    common: float | None = None
    named: dict[str, float] = {}
    for text in texts:
        task, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            raise ArgumentError("bars", "must be a share or TASK=SHARE", text) from None
        if task:
            named[task] = value
        else:
            common = value
    if not named:
        return common
    return named if common is None else {"*": common, **named}
