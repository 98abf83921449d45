"""The commands; each calls a function of `journeys`, and is loaded when it is called."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, Any, TextIO

import click

from passhat._version import __version__
from passhat.errors import ConfigurationError, ExitCode, InputError, PasshatError
from passhat.messages import closest, short

# Each command's module (and function, if `list` and the like are taken) and what it does, in a few
# words: --help loads no command.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("setup", "A first look, no key needed."),
        "init": ("setup", "Write a suite."),
        "check": ("setup", "Will it run here?"),
    },
    "Run agents": {
        "run": ("run", "Run a suite many times and judge its gates."),
        "repeat": ("run", "Run any command many times: does it work every time?"),
        "worker": ("machines", "Run trials for other machines."),
        "cassette": ("cassette", "Recorded runs."),
    },
    "Ask about results": {
        "report": ("report", "How reliable is the agent in these results?"),
        "gate": ("report", "Do these results meet the gate? PASS, FAIL or UNDECIDED."),
        "compare": ("compare", "Which agent is better?"),
        "why": ("compare", "What do failing trials do?"),
        "plan": ("plan", "How many trials does an answer need?"),
        "label": ("label", "Read trials yourself, to correct what a judge says."),
        "judge": ("label", "Is the judge that graded these results right?"),
    },
    "History": {
        "trend": ("history", "What changed over time?"),
        "watch": ("serve", "Trials that keep coming: say when the agent gets worse."),
        "history": ("history", "Stored runs: list, tag, search, add to them."),
        "view": ("serve", "Look at everything that ran, in a browser."),
        "mcp": ("serve", "Serve results to a coding agent (MCP)."),
    },
    "Tools": {
        "convert": ("plan", "Rewrite results as JSONL, CSV or Parquet."),
        "simulate": ("plan", "Write made-up results."),
    },
    "Rarely needed": {
        "deploy": ("machines", "Write the file that starts workers on a cluster."),
        "local": ("setup", "A real model with no key, on this machine."),
        "vary": ("setup", "Reword the prompts of a suite, by a model or a program."),
        "profile": ("compare", "How does the agent compare with others?"),
    },
}
FORMERLY: dict[str, tuple[str, str]] = {
    "validate": ("setup", "check"),
    "doctor": ("setup", "check"),
    "list": ("setup:list_rows", "run --dry-run` or `check --models"),
    "scan": ("setup", "check --secrets PATH"),
    "resume": ("run", "run --resume [RUN]"),
    "merge": ("machines", "history merge"),
    "rank": ("compare", "compare"),
    "diff": ("compare", "why RESULTS TASK"),
    "flaky": ("history", "trend --tasks"),
    "schema": ("setup", "--schema [NAME]"),
    "completion": ("setup", "--completion SHELL"),
}
"""Commands that still work, their modules, and what to type instead."""

_HOMES = {name: home for group in GROUPS.values() for name, (home, _) in group.items()}
FIELD_WORDS = {
    "reliability@k": "pass^k: a name that gates take too",
    "capability": "pass@k",
    "Reliability Decay Curve": "pass^k over k: on the page, and decay[k] in `report --targets`",
    "thresholded reliability": "the tasks that clear a bar: `report --bar 0.9`",
    "graceful degradation, variance amplification": "numbers of `report --targets`",
    "floor, selection rate, coverage": "`tool_selection:` in suites, `run --coverage-threshold`",
    "between-seed error": "the spread over re-runs: `report -v`, with `seeds:` in a suite",
    "cascade, compounding": "the steps of a task and their product: `steps:`, `report -v`",
    "containment": "failures that were caught: passhat.stats.containment_rate",
    "half-width, power analysis": "`plan --half-width`, `plan --difference`",
    "paired, bootstrap, Wilson": "how `compare` and `report` find their intervals: `-v`",
    "partial credit": "scores between 0 and 1: mean_score, `--pass-if`",
    "target, provenance": "`report --targets`, and the last lines of `report -v`",
}
"""What the sources of passhat call a thing, and where it is; the glossary has their meanings."""

_HOMES |= {name: home for name, (home, _) in FORMERLY.items()}
COMMANDS = {name: what for group in GROUPS.values() for name, (_, what) in group.items()}
PAGE = """\
Usage: passhat COMMAND

How often does your AI agent get it right, and does it every time?
pass@k: at least one of k trials passes. pass^k (reliability@k): all k do.

  demo      a first look, no key needed
  init      write a suite           check     will it run here?
  run       run it and judge        repeat    run any command many times

  report    how reliable?           gate      PASS, FAIL or UNDECIDED
  compare   which is better?        why       what do failing trials do?
  plan      how many trials?        trend     what changed over time?
  label     read trials yourself    judge     is the judge right?

  history   stored runs             view      look at them in a browser
  convert   results to CSV, JSONL   simulate  made-up results
  cassette  recorded runs           worker    run trials for other machines
  watch     alarm if it gets worse  mcp       serve results to a coding agent

RESULTS are the log of any eval tool, a table, or a stored run such as latest.
Exit: 0 PASS, 1 FAIL, 2 usage, 3 could not run, 4 UNDECIDED.
COMMAND --help for the common options, --help-all for every one.
"""
"""What `passhat --help` prints."""

EPILOG = (
    "Exit codes: 0 done or passed, 1 a gate or expectation failed, 2 usage or unreadable input, "
    "3 the run could not be completed, 4 undecided, 70 a fault of passhat itself, 129/130/143 "
    "stopped by a signal."
)

_ASKS_HELP = "passhat.asks_help"


class Commands(click.Group):
    """A group whose commands are imported when called, and whose errors are one message."""

    typed = False
    """Whether a shell started this process, and no program that calls us."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return None
        module, _, function = _HOMES[cmd_name].partition(":")
        loaded = importlib.import_module(f"passhat.cli.{module}")
        command: click.Command = getattr(loaded, function or cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; if there is none of that name, an error that says what was meant."""
        word = args[0]
        if word in FORMERLY and not ctx.resilient_parsing:
            from passhat.cli.options import say_new_name

            say_new_name(word, FORMERLY[word][1], args)
        if word in _HOMES or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from passhat.reporters.formatting import safe_text

        raise click.UsageError(safe_text(what_was_meant(args, COMMANDS)), ctx=ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(PAGE)

    def format_everything(self, ctx: click.Context) -> str:
        """Every command and every former name, with what it is for."""
        formatter = click.HelpFormatter(width=80)
        super().format_help(ctx, formatter)
        return formatter.getvalue()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        former = {name: f"is now `{now}`" for name, (_, now) in FORMERLY.items()}
        groups = {
            title: {n: what for n, (_, what) in group.items()} for title, group in GROUPS.items()
        }
        sections = {
            **groups,
            "Former names, which still work": former,
            "Words of other tools and papers": FIELD_WORDS,
        }
        for title, commands in sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{n:<{width}}", what) for n, what in commands.items()])

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run the command that was typed; `args` come from a program that calls us."""
        self.typed = args is None
        self.notes: list[str] = []
        try:
            return super().main(args, *more, **options)
        except OSError:  # nobody can read what was wrong with the words, or their help
            _discard(sys.stdout)
            sys.exit(ExitCode.USAGE)
        finally:  # line 1 of a screen is the answer, or what was wrong
            try:
                for note in self.notes:
                    click.echo(note, err=True)
                if sys.stderr is not None:
                    sys.stderr.flush()
            except OSError:
                _discard(sys.stderr)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, after noting whether any of them asks for help."""
        ctx.meta[_ASKS_HELP] = bool({"-h", "--help", "--help-all"}.intersection(args))
        ctx.meta["passhat.typed"] = tuple(args)
        ctx.meta["passhat.notes"] = self.notes
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that are no faults of passhat become a message and a code."""
        if self.typed:  # this process is ours
            _collect_garbage_rarely()
        _let_idle_threads_sleep()
        _open_closed_streams()
        try:
            if not ctx.meta[_ASKS_HELP]:
                _need_memory()
            ctx.default_map = _defaults(asks_help=ctx.meta[_ASKS_HELP])
            return super().invoke(ctx)
        except PasshatError as error:
            from passhat.cli.error_messages import shell_message

            name = ctx.invoked_subcommand
            message = shell_message(error, self.get_command(ctx, name) if name else None)
            shown = Refusal if isinstance(error, InputError) else Incomplete
            raise shown(_with_notes(message, error)) from error
        except KeyboardInterrupt:  # click would exit with 1, which says that a demand failed
            with suppress(OSError):
                click.echo("interrupted", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:  # the reader of our output, such as `head`, has ended
            _discard(sys.stdout)
            ctx.exit(ExitCode.BROKEN_PIPE)
        except OSError as error:
            _discard(sys.stdout)
            where = f"{error.filename}: " if error.filename else ""
            raise Incomplete(_with_notes(f"{where}{error.strerror or error}", error)) from error
        except MemoryError as error:
            error.with_traceback(None)  # it holds what did not fit, and that may hold itself
            gc.collect()
            raise Incomplete(
                "there is too little memory for this; give fewer files at once, or a log without "
                "its transcripts"
            ) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise Unexpected(error) from error


def _with_notes(message: str, error: BaseException) -> str:
    """A message with what was added to its error on the way, such as how to resume the run."""
    return "; ".join([message, *getattr(error, "__notes__", ())])


def _open_closed_streams() -> None:
    """Give output that was closed before the start (`>&-`) somewhere to go."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115  # open as long as the process


def _discard(stream: TextIO) -> None:
    """Send what a stream still buffers nowhere: Python would fail at its end, and exit with 120."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())


def _collect_garbage_rarely() -> None:
    """Let most commands end before the collector looks for unused objects.

    What a command imports and measures stays until its end. After each 700 new objects, which is
    Python's setting, looking through them took 6 % of the CPU time of a report and 11 % of that of
    a short run; after each 100,000 it takes 1 %, and no more memory is in use.
    """
    gc.set_threshold(100_000, *gc.get_threshold()[1:])


def _let_idle_threads_sleep() -> None:
    """Let the threads that NumPy starts sleep at once when they have no work.

    OpenBLAS lets each spin for 2^28 clock ticks before it sleeps: a tenth of a CPU second in every
    command, and more on machines with more cores. 4 (2^4 ticks) is the least that it takes.
    """
    name = "OPENBLAS_THREAD_TIMEOUT"
    if name not in os.environ:
        os.putenv(name, "4")  # for this process: agents get os.environ, which stays as it was


_LEAST_MEMORY = 384 * 2**20
_LITTLE_MEMORY = 2**31


def _need_memory() -> None:
    """Refuse to start where the limits of this process (`ulimit -v`) leave NumPy too little.

    OpenBLAS, which NumPy and SciPy bring along once each, takes 32 MB for each thread. Where it
    cannot have them it asks for ever, or ends the process with 1, which would say that a gate
    failed. One thread each makes what is needed the same on a machine with many cores.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    least = min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)
    if least is None or least >= _LITTLE_MEMORY:
        return
    if least < _LEAST_MEMORY:
        raise Incomplete(
            f"there is too little memory: passhat needs {_LEAST_MEMORY >> 20} MB, and the limit of "
            f"this process (`ulimit -a`) is {least >> 20} MB"
        )
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")
    from importlib import import_module

    # While results have not filled the memory yet: the library, and what its first product takes.
    import_module("passhat.stats.special")
    square = import_module("numpy").ones((64, 64))
    square @ square


def _defaults(*, asks_help: bool) -> dict[str, Any] | None:
    """The configuration of this folder; help is shown even if it has an error."""
    from pathlib import Path

    from passhat.cli.configuration import configured_defaults

    try:
        return configured_defaults(Path.cwd(), _HOMES)
    except ConfigurationError:
        if asks_help:
            return None
        raise


class Refusal(click.ClickException):
    """A PasshatError as the user sees it: no traceback, no secret, no control characters."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str) -> None:
        from passhat.records.redaction import environment_redactor
        from passhat.reporters.formatting import safe_lines

        text = environment_redactor(os.environ).clean(message)
        super().__init__(safe_lines(text))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, between words at the width of a terminal; in a log it is one line."""
        stream = sys.stderr if file is None else file
        lines = f"Error: {self.format_message()}".splitlines()
        if stream.isatty():
            import shutil
            import textwrap

            width = shutil.get_terminal_size().columns
            lines = [
                textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
                for line in lines
            ]
        with suppress(OSError):  # where nothing can be written, the exit code says it
            click.echo("\n".join(lines), file=stream)


class Incomplete(Refusal):
    """The run failed, not the request."""

    exit_code = ExitCode.INCOMPLETE


class Unexpected(Refusal):
    """An exception that nobody expected: one line, and its traceback in a file.

    Not with 1 or 4, which say something about the agent.
    """

    exit_code = ExitCode.UNEXPECTED

    def __init__(self, error: Exception) -> None:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        fault = f"this is a fault of passhat ({short(what, 200)})"
        super().__init__(_with_notes(f"{fault}; its log: {_log(error)}", error))


def _log(error: Exception) -> str:
    """Write the traceback of an error to a file of its own, and return its path."""
    import platform
    import shlex
    import tempfile
    import traceback

    from passhat.records.redaction import environment_redactor

    asked = shlex.join(["passhat", *sys.argv[1:]])
    about = f"passhat {__version__}, Python {platform.python_version()}, {platform.platform()}"
    trace = "".join(traceback.format_exception(error))
    text = environment_redactor(os.environ).clean(f"{about}\n{asked}\n\n{trace}")
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="passhat-fault-", suffix=".log", delete=False, encoding="utf-8",
            errors="replace",
        ) as file:  # fmt: skip
            file.write(text)
    except OSError as unwritable:
        return f"none, as it cannot be written ({unwritable.strerror})"
    return file.name


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 80,
        "show_default": True,
    },
)
@click.version_option(__version__, "--version", message="passhat %(version)s")
@click.option(
    "--schema",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, option, name: _answer_with(ctx, option, name),
    help="Print the JSON Schema of what --json prints; without NAME, list them.",
)
@click.option(
    "--completion",
    metavar="SHELL",
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, option, name: _answer_with(ctx, option, name),
    help="Print the script that completes commands in bash, zsh or fish.",
)
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _, wanted: _print_everything(ctx) if wanted else None,
    help="Show every command.",
)
def main() -> None:
    """How often does your AI agent get it right, and does it every time?

    pass@k is the chance that at least one of k trials of a task passes; pass^k (reliability@k,
    "pass hat k") is the chance that all k do.
    """


def _answer_with(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Do what an option of `passhat` itself asks for, and no command."""
    if value is None or ctx.resilient_parsing:
        return
    name = str(option.name)
    command = main.get_command(ctx, name)
    assert command is not None, "each such option was a command"
    with command.make_context(f"--{name}", [value] if value else [], parent=ctx) as inner:
        command.invoke(inner)
    ctx.exit()


def _print_everything(ctx: click.Context) -> None:
    click.echo(main.format_everything(ctx))
    ctx.exit()


# What people do with a file of each kind, when they name no command.
_FOR_ENDING = {".yml": "run", ".yaml": "run", ".db": "history --store"}
_ENDINGS = (
    *_FOR_ENDING,
    ".csv",
    ".eval",
    ".json",
    ".jsonl",
    ".parquet",
    ".tsv",
    ".xml",
    ".trx",
    ".gz",
)
_OTHER_WORDS = {
    "test": "run",
    "eval": "run",
    "start": "run",
    "lint": "check",
    "verify": "check",
    "show": "report",
    "analyze": "report",
    "analyse": "report",
    "leaderboard": "compare",
    "power": "plan",
    "dashboard": "view",
    "ui": "view",
    "serve": "view",
    "new": "init",
    "ls": "history",
    "explain": "why",
    "record": "run --record",
    "replay": "run --replay",
}


def what_was_meant(words: Sequence[str], commands: Iterable[str]) -> str:
    """The message for a first word that is not a command.

    >>> what_was_meant(["reprot", "x.csv"], ["report", "run"])
    'there is no command "reprot". Did you mean "passhat report"?'
    >>> what_was_meant(["results.jsonl"], ["report", "run"])
    '"results.jsonl" is not a command but a file: passhat report results.jsonl'
    """
    word, known = words[0], list(commands)
    other = _OTHER_WORDS.get(word.lower())  # "test" is a word before it is a folder
    if other is None and _names_a_file(word):
        command = _FOR_ENDING.get(_ending(word), "report")
        import shlex  # not needed for --version and --help

        return f'"{word}" is not a command but a file: passhat {command} {shlex.join(words)}'
    word = short(word)
    if meant := other or closest(word.lower(), known):
        return f'there is no command "{word}". Did you mean "passhat {meant}"?'
    return f'there is no command "{word}"; there are: {", ".join(known)}'


def _names_a_file(word: str) -> bool:
    """Whether a word is the name of a file, or looks like one."""
    there = bool(word) and os.path.exists(word)  # noqa: PTH110 # Path raises for a long word
    return "/" in word or _ending(word) in _ENDINGS or there


def _ending(word: str) -> str:
    return os.path.splitext(word)[1].lower()  # noqa: PTH122 # pathlib would slow --version down
