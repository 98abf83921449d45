"""Options that several commands share: how to analyse, and where to write."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args, get_origin, get_type_hints

import click

from passhat.arguments import ANALYSIS_OPTIONS, STORE, STORE_VARIABLE, CountingTerms, ReportTerms
from passhat.cli.output import Output, print_note, printed_formats, usual_endings
from passhat.errors import ArgumentError
from passhat.messages import closest
from passhat.reporters import formats_for
from passhat.reporters.rendering import ENDINGS

if TYPE_CHECKING:
    from passhat.stats.estimate import Scope

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

OPTIONS, ANALYSIS, OUTPUT, READING = "Options", "Analysis", "Output", "Reading results"
"""Sections of --help-all: a command's own options come first; the last three in this order."""

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
    **dict.fromkeys(("--epochs", "--repeat", "--num-trials"), "--trials"),
    **dict.fromkeys(("--threshold", "--gate"), "--require"),
    **dict.fromkeys(("--format", "--output-format"), "--as"),
}
"""What other tools call an option, and its name here."""

# Lines of --help on options that several commands show. What no such line names is in --help-all.

ONLY = "--only AGENT         this agent only"
FOR = "--for similar-tasks  judge for similar tasks, not only these"
CRITERION = "--pass-if TEST       when a trial passes: 'score>=0.8'"
WHICH_COLUMNS = "--columns NAME=COL   which column is which"
TRIALS = "--trials N           trials of each task"
WRITE = "-o FILE              write .html .md .json .csv .tex .svg ..."
JSON = "--json               print JSON"
VERBOSE = "-v                   every number, and what it means"

EXIT_CODES = "Exit: 0 PASS, 1 FAIL, 2 usage, 3 could not run, 4 UNDECIDED."

WIDEST_HELP = 100
"""Columns of --help-all; --help has 80."""

_ASKS_ALL = "passhat.help_all"


class Option(click.Option):
    """An option with its section of --help-all, and the names that it had `formerly`.

    A former name still works; a line on standard error says what it is called now.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        section: str = OPTIONS,
        formerly: Sequence[str] = (),
        **attributes: Any,
    ) -> None:
        super().__init__([*names, *formerly], **attributes)
        self.section = section
        self.formerly = tuple(formerly)

    @property
    def flag(self) -> str:
        """The longest of its names of today."""
        return max((name for name in self.opts if name not in self.formerly), key=len)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Its names of today and what it does; former names follow in brackets."""
        record = super().get_help_record(ctx)
        if record is None or not self.formerly:
            return record
        names, text = record
        for name in self.formerly:
            names = names.replace(f", {name}", "")
        sentence, bracket, default = text.partition("  [")
        return names, f"{sentence} (Formerly {', '.join(self.formerly)}.){bracket}{default}"


class OnceOption(Option):
    """An option that decides what is read: two values that differ are refused, none is dropped."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser keep every value that is given."""
        parser.add_option(
            obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs
        )

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, Any]:
        """The one value of the command line; else that of the configuration."""
        name = self.name or ""
        given = dict.fromkeys(opts.get(name) or ())
        if len(given) > 1:
            both = "; 'A and B' asks for both" if self.flag == "--pass-if" else ""
            raise click.BadParameter(f"is given twice: {' and '.join(given)}{both}", ctx, self)
        return super().consume_value(ctx, {**opts, name: next(iter(given))} if given else opts)


class SectionedCommand(click.Command):
    """A command with two layers of help: --help is a page, --help-all has every option.

    The page is the first sentence and the first examples of the docstring, and then `brief`, where
    lines that begin with a dash name the options that are shown. A command without `brief` has so
    few options that it shows them all.
    """

    def __init__(self, *args: Any, brief: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.brief = tuple(brief)
        self.params.append(
            Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_everything,
                help="Show this list of every option.",
            )
        )

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page or, for --help-all, everything."""
        if not self.brief or ctx.meta.get(_ASKS_ALL):
            super().format_help(ctx, formatter)
            return
        import textwrap

        options, *others = self.collect_usage_pieces(ctx)
        words = [*others, options] if ctx.allow_interspersed_args else [options, *others]
        first, *paragraphs = inspect.cleandoc(self.help or "").split("\n\n")
        examples = [text.removeprefix("\b\n") for text in paragraphs if text.startswith("\b")][:1]
        indented = ("-", "passhat ")
        shown = [f"  {line}" if line.startswith(indented) else line for line in self.brief]
        parts = [
            f"Usage: {' '.join([ctx.command_path, *words])}",
            textwrap.fill(" ".join(first.split()), 80),
            *examples,
            "\n".join([*shown, f"All options: {ctx.command_path} --help-all"]),
        ]
        formatter.write("\n\n".join(parts) + "\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments; the error for an option of another tool names ours."""
        typed = list(args)
        try:
            rest = super().parse_args(ctx, args)
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
        self._say_new_names(ctx, typed)
        return rest

    def _say_new_names(self, ctx: click.Context, typed: Sequence[str]) -> None:
        """Say what each option is called now that was typed by a former name."""
        if not ctx.allow_interspersed_args:  # what `repeat` runs has options of its own
            typed = typed[: len(typed) - len(ctx.params.get("command", ()))]
        words = {word.partition("=")[0] for word in takewhile(lambda word: word != "--", typed)}
        for option in self.params:
            if not isinstance(option, Option):
                continue
            for name in words.intersection(option.formerly):
                say_new_name(name, option.flag, typed)

    def _meant_by(self, option: str) -> str | None:
        """What to type instead of an option that the command does not have; None if unknown."""
        known = {name: param for param in self.params for name in param.opts}
        if (ours := OTHER_OPTIONS.get(option)) in known:
            column = "--columns" in known and ours in ("--pass", "--trial", "--system", "--task")
            return f"Did you mean '{f'--columns {ours[2:]}=NAME' if column else ours}'?"
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
        for title in sorted(sections, key=lambda title: last.index(title) if title in last else -1):
            with formatter.section(title):
                formatter.write_dl(sections[title])
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


class SectionedGroup(SectionedCommand, click.Group):
    """A group with two layers of help; some of its commands have become others.

    `formerly` says what to type instead of a command that still works but is shown no more.
    """

    def __init__(
        self, *args: Any, formerly: Mapping[str, str] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.formerly = dict(formerly or {})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, after a line on standard error if it has become another."""
        if (now := self.formerly.get(args[0])) and not ctx.resilient_parsing:
            say_new_name(f"{self.name} {args[0]}", now, args)
        return super().resolve_command(ctx, args)


def say_new_name(old: str, new: str, words: Sequence[str]) -> None:
    """Say on standard error what something is called now, unless the words ask for quiet."""
    if not {"-q", "--quiet"}.intersection(words):
        print_note(f"`{old}` is now `{new}`")


def _print_everything(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ASKS_ALL] = True
        ctx.max_content_width = WIDEST_HELP
        click.echo(ctx.get_help())
        ctx.exit()


def refuse_typed(context: click.Context, names: Sequence[str], why: str) -> None:
    """Refuse options that were typed where they would be ignored."""
    typed = click.core.ParameterSource.COMMANDLINE
    for param in context.command.params:
        if param.name in names and context.get_parameter_source(param.name) is typed:
            flag = param.flag if isinstance(param, Option) else max(param.opts, key=len)
            word = flag if flag.startswith("-") else flag.upper()
            raise click.UsageError(f"{why}: leave out {word}", ctx=context)


def shared(section: str, *names: str, **attributes: Any) -> Decorator:
    """An option in a section of --help-all."""
    return click.option(*names, cls=Option, section=section, **attributes)


def renamed(*names: str, formerly: str, **attributes: Any) -> Decorator:
    """An option that had another name, which still works."""
    return click.option(*names, cls=Option, formerly=[formerly], **attributes)


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


class ScopeType(click.ParamType):  # type: ignore[type-arg]  # generic in some versions only
    """Which tasks an answer is about, in the words of the command line or of a suite file."""

    name = "scope"
    words: Mapping[str, Scope] = {"these-tasks": "this suite", "similar-tasks": "tasks like these"}

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "|".join(self.words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in self.words.values():
            return value
        if value not in self.words:
            near = closest(str(value), [*self.words, *self.words.values()])
            hint = f"; did you mean {near!r}?" if near else ""
            self.fail(f"{value!r} is not one of {', '.join(self.words)}{hint}", param, ctx)
        return self.words[value]


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
for_option = renamed(
    "--for",
    "scope",
    formerly="--scope",
    type=ScopeType(),
    help="What the answer is about: these tasks, or others of their kind.",
)
quiet_option = shared(
    OUTPUT, "-q", "--quiet", is_flag=True, help="Print no notes on standard error."
)


_KINDS = get_type_hints(ReportTerms)


def analysis_option(name: str) -> Decorator:
    """The flag of an option that `passhat.arguments` declares."""
    option, kind = ANALYSIS_OPTIONS[name], _KINDS[name]
    known = {int: WholeNumber(min=0), float: Share(), bool: click.BOOL}
    words = click.Choice(get_args(kind)) if get_origin(kind) is Literal else K_LIST
    return shared(
        ANALYSIS,
        option.metadata["flag"],
        name,
        type=known.get(kind, words),
        default=option.default,
        help=option.metadata["help"],
    )


confidence_option, seed_option = analysis_option("confidence"), analysis_option("seed")
counting_options = in_order(
    *(analysis_option(name) for name in ANALYSIS_OPTIONS if name in CountingTerms.__annotations__)
)
analysis_options = in_order(*map(analysis_option, ANALYSIS_OPTIONS))


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


class StoredRunsOptions(TypedDict):
    """The values of `stored_runs_options` but SUITE and --last, as the arguments of a journey."""

    store: Path | str
    branch: str | None
    only: tuple[str, ...]
    confidence: float


def stored_runs_options(*, last: int) -> Decorator:
    """SUITE, --store, --branch, --only, --last and --confidence: which stored runs."""
    newest = WholeNumber(min=1)
    return in_order(
        click.argument("suite", required=False),
        store_option("The history store to read."),
        click.option("--branch", metavar="NAME", help="Runs of this branch only."),
        click.option("--only", metavar="AGENT", multiple=True, help="This agent only."),
        click.option("--last", type=newest, default=last, help="How many of the newest runs."),
        confidence_option,
    )


def file_option(purpose: str) -> Decorator:
    """-o FILE, which may be repeated."""
    names = ("-o", "--output", "paths_out")
    return shared(OUTPUT, *names, metavar="FILE", multiple=True, help=purpose)


def output_options(kind: str, *, explained: bool = False) -> Decorator:
    """--json, --markdown, --as, -o FILE, --quiet and --verbose, passed on as `output`.

    The help names the endings that can hold this kind of answer. `explained` says that --verbose
    was called --explain.
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
        file_option(
            f"Write to a file; its ending chooses the format: {endings}. "
            "-.md and the like print it. May be repeated."
        ),
        quiet_option,
        shared(
            OUTPUT,
            *("-v", "--verbose"),
            formerly=["--explain"] if explained else [],
            is_flag=True,
            help="Show every number, and what the terms mean.",
        ),
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_output(**values: Any) -> Any:
            asked = {"json": values.pop("as_json"), "markdown": values.pop("as_markdown")}
            chosen = [name for name, wanted in asked.items() if wanted]
            chosen += [name] if (name := values.pop("as_format")) else []
            printed, files = printed_formats(values.pop("paths_out"), kind)
            chosen += printed
            if len(set(chosen)) > 1:
                raise click.UsageError(
                    "--json, --markdown, --as and -o -.md cannot be used together; "
                    "-o may name several files"
                )
            output = Output(
                format=chosen[0] if chosen else None,
                paths_out=files,
                quiet=values.pop("quiet"),
                verbose=values.pop("verbose"),
                judges=kind in ("run", "verdicts"),
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
