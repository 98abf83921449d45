"""Which results a command reads, and how they are to be understood."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.options import READING, ROUND_NUMBERS, Command, StoreType, apply_options, shared
from passhat.defaults import STORE
from passhat.fast_dataclass import dataclass
from passhat.journeys.results import LATEST, Results, is_store

if TYPE_CHECKING:
    from passhat.records import Duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What the user named and said of it; `results` is what journeys read."""

    paths: tuple[str, ...]
    format: str | None
    duplicates: Duplicates
    columns: dict[str, str | None]
    names: tuple[str, ...] = ()
    run: str = LATEST
    store: Path | str | None = None
    limits: tuple[str, ...] = ()
    drop_rounds: tuple[int, ...] = ()
    shares: tuple[str, ...] = ()
    task_option: str = "--task"

    def results(self, *paths: str) -> Results:
        """What to read: all the paths, or others in the same way."""
        from passhat.ingest import ColumnMap, parse_limits
        from passhat.records.shares import parse_shares

        self._refuse_run_of_files()
        results = Results(
            paths=paths or self.paths,
            format=self.format,
            mapping=ColumnMap(**self.columns),
            duplicates=self.duplicates,
            limits=parse_limits(self.limits),
            names=() if paths else self.names,
            run=self.run,
            store=self.store or STORE,
            drop_rounds=self.drop_rounds,
            shares=parse_shares(self.shares),
            on_note=say_note,
            wording=self._in_options,
        )
        self._refuse_columns_of_runs(results)
        return results

    def _refuse_columns_of_runs(self, results: Results) -> None:
        """A kept run was read when it was kept: how to read a file cannot change it any more."""
        if not (typed := self._typed_columns()) or not all(map(results.is_stored, results.paths)):
            return
        raise click.UsageError(
            f"{typed[0]} says how to read a file, and {results.paths[0]} is a run that was read "
            f"when it was kept; give {typed[0]} with the file, or to `passhat history add`"
        )

    def _typed_columns(self) -> list[str]:
        """The options on columns and outcomes that stand on the command line itself."""
        context = click.get_current_context(silent=True)
        if context is None:
            return []
        typed = click.core.ParameterSource.COMMANDLINE
        return [
            f"--{name.replace('_', '-')}" if name in _NAMES else _flags(self.task_option)[name]
            for name, parameter in COLUMN_NAMES.items()
            if name in self.columns and name != "transcript"
            if context.get_parameter_source(parameter) is typed
        ]

    def _in_options(self, text: str) -> str:
        """What a reader says of its arguments, as the options of the command."""
        from passhat.cli.error_messages import with_options

        return with_options(text, _flags(self.task_option) | _OTHER_FLAGS)

    def _refuse_run_of_files(self) -> None:
        """`--run` chooses a run of a store, so it is refused with files of results."""
        if self.run == LATEST or any(map(is_store, self.paths)):
            return
        raise click.UsageError(
            f"--run chooses a run of a history store, and {self.paths[0]} is none; "
            "--trial names the column that numbers the attempts"
        )

    @property
    def names_transcripts(self) -> bool:
        """Whether the user named the column of the transcripts, and so wants them."""
        return self.columns.get("transcript") is not None

    def again(self, *more: str) -> str | None:
        """What another command is given to read the same, for a shell; None of standard input.

        >>> ReadingOptions(paths=("my log.csv",), format=None, duplicates="error",
        ...         columns={"task": "question"}).again("--only", "o3")
        "'my log.csv' --task question --only o3"
        """
        if "-" in self.paths:
            return None
        given = {flag: self.columns.get(name) for name, flag in _flags(self.task_option).items()}
        given |= {f"--{name.replace('_', '-')}": self.columns.get(name) for name in _NAMES}
        given |= {
            "--format": self.format,
            "--duplicates": self.duplicates if self.duplicates != "error" else None,
            "--run": self.run if self.run != LATEST else None,
            "--drop-rounds": ",".join(map(str, self.drop_rounds)) or None,
            "--store": None if self.store is None else str(self.store),
        }
        options = [w for flag, value in given.items() if value is not None for w in (flag, value)]
        options += [word for name in self.names for word in ("--name", name)]
        options += [word for limit in self.limits for word in ("--limit", limit)]
        options += [word for share in self.shares for word in ("--share", share)]
        paths = [f"./{path}" if path.startswith("-") else path for path in self.paths]
        return shlex.join([*paths, *options, *more])


def say_note(note: str) -> None:
    """Which run was taken, on standard error unless the command is to be quiet."""
    context = click.get_current_context(silent=True)
    if not (context and context.params.get("quiet")):
        from passhat.reporters.safe_text import safe_lines

        click.echo(safe_lines(note), err=True)


# Column of the mapper: (option, what it names).
_COLUMNS = {
    "task": ("--task", "Column that names the task; several, joined by commas, make one name."),
    "trial": ("--trial", "Column that numbers the attempts at a task."),
    "passed": ("--pass", "Column that says whether the attempt passed."),
    "score": ("--score", "Column with a score from 0 to 1."),
    "system": (
        "--system",
        "Column that names the agent; several, joined by commas, make one name.",
    ),
    "error": ("--error", "Column that names what went wrong, where something did."),
    "seed": ("--seed-column", "Column with the seed of the attempt."),
    "tags": ("--tags", "Column with tags."),
    "family": (
        "--family",
        "Column with the family of the task, or a pattern over task names: '^([a-z]+)-'.",
    ),
    "weight": ("--weight", "Column with the weight of the task."),
    "level": ("--level", "Column with the level: function, task or system."),
    "cost": (
        "--cost",
        "Column with its cost; '' ignores a column, any but the task's.",
    ),
    "seconds": ("--seconds", "Column with the seconds the attempt took."),
    "tokens": ("--tokens", "Column with the tokens of the attempt, in and out."),
    "tokens_in": ("--tokens-in", "Column with the tokens that were read."),
    "tokens_out": ("--tokens-out", "Column with the tokens that were written."),
    "turns": ("--turns", "Column with the turns of the attempt."),
    "tool_calls": ("--tool-calls", "Column with the number of calls of tools."),
}
_NAMES = ("scorer", "pass_if")
"""Further arguments of the column mapper."""

_OTHER_FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in (*_NAMES, "name", "format", "duplicates")},
    **{name: f"--{name}" for name in ("errors", "confidence")},
    "transcript": "--transcript-column",
}
"""The options of other arguments that readers name in their notes."""

COLUMN_NAMES = {
    **{name: f"column_{name}" for name in _COLUMNS},
    "transcript": "transcript_column",
    **{name: name for name in _NAMES},
}
"""The parameter that each column of a configuration sets."""

_TRANSCRIPT_COLUMN = shared(
    READING,
    "--transcript-column",
    metavar="COLUMN",
    help="Column with what was said: messages, or plain words.",
)
_RUN = [
    shared(
        READING,
        "--run",
        default=LATEST,
        metavar="RUN",
        help="Which run, where RESULTS is a history store.",
    ),
    shared(
        READING,
        "--store",
        type=StoreType(),
        help=f"The store of runs that RESULTS name.  [default: {STORE}]",
    ),
]


def reading_options(
    *,
    required: bool = True,
    transcripts: bool = False,
    stores: bool = True,
    task_option: str = "--task",
    metavar: str = "RESULTS...",
) -> Callable[[Command], Command]:
    """RESULTS..., --format, --duplicates, --limit and the column mapper, as `reading`.

    With `transcripts`, also the column that holds what was said; with `stores`, which run of one.
    `task_option` names the column of tasks, where --task means a task; `metavar` what is read.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_reading(**values: Any) -> Any:
            columns = {name: values.pop(f"column_{name}") for name in _COLUMNS}
            columns |= {name: values.pop(name) for name in _NAMES}
            columns["transcript"] = values.pop("transcript_column", None)
            reading = ReadingOptions(
                paths=values.pop("paths"),
                format=values.pop("format_name"),
                duplicates=values.pop("duplicates"),
                columns=columns,
                names=values.pop("names"),
                run=values.pop("run", LATEST),
                store=values.pop("store", None) if stores else None,
                limits=values.pop("limits"),
                drop_rounds=values.pop("drop_rounds"),
                shares=values.pop("shares"),
                task_option=task_option,
            )
            return command(reading=reading, **values)

        said = [_TRANSCRIPT_COLUMN] * transcripts
        shown = metavar if required else f"[{metavar}]"
        parameters = _reading_parameters(shown, task_option, required=required)
        return apply_options([*parameters, *said, *_RUN * stores], with_reading)

    return decorate


def _flags(task_option: str) -> dict[str, str]:
    return {name: flag for name, (flag, _) in _COLUMNS.items()} | {"task": task_option}


def _reading_parameters(
    metavar: str, task_option: str, *, required: bool
) -> list[Callable[[Command], Command]]:
    duplicates = click.Choice(["error", "last", "keep"])
    found: list[Callable[[Command], Command]] = [
        click.argument("paths", metavar=metavar, nargs=-1, required=required),
        shared(
            READING, "--format", "format_name", metavar="NAME", help="The tool that wrote them."
        ),
        shared(
            READING,
            "--duplicates",
            type=duplicates,
            default="error",
            help="What to do if a trial occurs twice.",
        ),
        shared(
            READING,
            "--limit",
            "limits",
            metavar="NAME=NUMBER",
            multiple=True,
            callback=_checked_limits,
            help="How much to read at most: max_bytes, max_ratio (of what was compressed), "
            "max_members, max_depth, max_transcript. May be repeated.",
        ),
        shared(
            READING,
            "--drop-rounds",
            type=ROUND_NUMBERS,
            default=(),
            help="Leave out these rounds of every task, counted from 1: an outage, say.",
        ),
        shared(
            READING,
            "--share",
            "shares",
            metavar="GROUP=SHARE",
            multiple=True,
            help="How much of the traffic a tag, level or family of tasks stands for: "
            "--share refunds=0.7 --share search=0.3.",
        ),
        shared(READING, "--scorer", metavar="NAME", help="Which score, in logs that have several."),
        shared(READING, "--pass-if", metavar="TEST", help="When an attempt passes: 'score>=0.8'."),
        shared(
            READING,
            "--name",
            "names",
            metavar="NAME",
            multiple=True,
            help="What to call the agent of a file with one; repeat it for each of RESULTS.",
        ),
    ]
    found += [
        shared(READING, flag, f"column_{name}", metavar="COLUMN", help=_COLUMNS[name][1])
        for name, flag in _flags(task_option).items()
    ]
    return found


def _checked_limits(_: Any, __: Any, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a mistyped limit even where nothing that is read comes near to any."""
    if texts:
        from passhat.ingest import parse_limits

        parse_limits(texts)
    return texts
