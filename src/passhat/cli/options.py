"""Options that several commands share: what to read, how to analyse, where to write."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.drop_rounds import DROP_ROUNDS, without_rounds
from passhat.cli.option_types import KList, Share
from passhat.cli.output import Formats, Output, endings_of
from passhat.cli.stored_run import named_store, read_run
from passhat.defaults import CONFIDENCE, SEED
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.ingest import ColumnMap, Limits
    from passhat.records import ErrorPolicy, Tally, Transcripts, Trials

Command = Callable[..., Any]

LATEST = "latest"
"""The newest run of a history store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read and how to understand it; of a history store, which run."""

    paths: tuple[str, ...]
    format: str | None
    duplicates: str
    columns: dict[str, str | None]
    run: str = LATEST
    limits: tuple[str, ...] = ()
    drop_rounds: tuple[int, ...] = ()
    task_option: str = "--task"

    @property
    def mapping(self) -> ColumnMap:
        from passhat.ingest import ColumnMap

        return ColumnMap(**self.columns)

    def subjects(self, only: Sequence[str] = ()) -> Trials | list[Tally]:
        """The trials of the named systems (all, if none is named); of huge tables the counts."""
        from passhat.ingest import count_big

        stored = named_store(self.paths) is not None
        rows = stored or bool(self.drop_rounds)  # counts do not say which round a run was in
        tallies = None if rows else count_big(list(self.paths), **self._how())
        if tallies is None:
            return choose_systems(self.trials(), only)
        _check_names(only, [tally.system for tally in tallies])
        return [tally for tally in tallies if not only or tally.system in only]

    def trials(self, paths: Sequence[str] | None = None) -> Trials:
        """Every trial, one by one, of all the paths or of some."""
        chosen = self.paths if paths is None else tuple(paths)
        if (store := named_store(chosen)) is not None:
            return without_rounds(read_run(store, self.run, transcripts=False)[0], self.drop_rounds)
        from passhat.ingest import read_trials

        return without_rounds(
            read_trials(list(chosen), **self._how(), limits=self._limits()), self.drop_rounds
        )

    def with_transcripts(self, paths: Sequence[str] | None = None) -> tuple[Trials, Transcripts]:
        """The same, with what was said in each trial."""
        chosen = self.paths if paths is None else tuple(paths)
        if (store := named_store(chosen)) is not None:
            trials, said = read_run(store, self.run, transcripts=True)
            return without_rounds(trials, self.drop_rounds), said or {}
        from passhat.ingest import read_with_transcripts

        trials, said = read_with_transcripts(list(chosen), **self._how(), limits=self._limits())
        return without_rounds(trials, self.drop_rounds), said

    @property
    def names_transcripts(self) -> bool:
        """Whether the user named the column of the transcripts, and so wants them."""
        return self.columns.get("transcript") is not None

    def again(self, *more: str) -> str | None:
        """What another command is told to read the same, for a shell; None of standard input.

        >>> Reading(paths=("my log.csv",), format=None, duplicates="error",
        ...         columns={"task": "question"}).again("--only", "o3")
        "'my log.csv' --task question --only o3"
        """
        if "-" in self.paths:
            return None
        told = {flag: self.columns.get(name) for name, flag in _flags(self.task_option).items()}
        told |= {f"--{name.replace('_', '-')}": self.columns.get(name) for name in _NAMES}
        told |= {
            "--format": self.format,
            "--duplicates": self.duplicates if self.duplicates != "error" else None,
            "--run": self.run if self.run != LATEST else None,
            "--drop-rounds": ",".join(map(str, self.drop_rounds)) or None,
        }
        options = [w for flag, value in told.items() if value is not None for w in (flag, value)]
        options += [word for limit in self.limits for word in ("--limit", limit)]
        paths = [f"./{path}" if path.startswith("-") else path for path in self.paths]
        return shlex.join([*paths, *options, *more])

    def _limits(self) -> Limits:
        from passhat.ingest import parse_limits

        return parse_limits(self.limits)

    def _how(self) -> dict[str, Any]:
        return {"format": self.format, "mapping": self.mapping, "duplicates": self.duplicates}


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysing:
    """How to analyse."""

    ks: tuple[int, ...] | None
    confidence: float
    errors: ErrorPolicy
    seed: int


# Column of the mapper: (option, what it names).
_COLUMNS = {
    "task": ("--task", "Column that names the task; several, joined by commas, make one name."),
    "trial": ("--trial", "Column that numbers the attempts at a task."),
    "passed": ("--pass", "Column that says whether the attempt passed."),
    "score": ("--score", "Column with a score from 0 to 1."),
    "system": ("--system", "Column that names the agent."),
    "error": ("--error", "Column that names what went wrong, where something did."),
    "seed": ("--seed-column", "Column with the seed of the attempt."),
    "tags": ("--tags", "Column with tags."),
    "level": ("--level", "Column with the level: function, task or system."),
    "cost": ("--cost", "Column with its cost; '' leaves it out, as it does any but the task."),
    "seconds": ("--seconds", "Column with the seconds the attempt took."),
    "tokens": ("--tokens", "Column with the tokens of the attempt, in and out."),
    "tokens_in": ("--tokens-in", "Column with the tokens that were read."),
    "tokens_out": ("--tokens-out", "Column with the tokens that were written."),
    "turns": ("--turns", "Column with the turns of the attempt."),
    "tool_calls": ("--tool-calls", "Column with the number of calls of tools."),
}
_NAMES = ("scorer", "pass_if", "name")
"""What else the mapper is told."""

_TRANSCRIPT_COLUMN = click.option(
    "--transcript-column",
    metavar="COLUMN",
    help="Column with what was said: messages, or plain words.",
)
_RUN = click.option(
    "--run",
    default=LATEST,
    show_default=True,
    metavar="RUN",
    help="Which run, where RESULTS is a history store.",
)


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
            reading = Reading(
                paths=values.pop("paths"),
                format=values.pop("format_name"),
                duplicates=values.pop("duplicates"),
                columns=columns,
                run=values.pop("run", LATEST),
                limits=values.pop("limits"),
                drop_rounds=values.pop("drop_rounds"),
                task_option=task_option,
            )
            return command(reading=reading, **values)

        said = [_TRANSCRIPT_COLUMN] * transcripts
        shown = metavar if required else f"[{metavar}]"
        parameters = _reading_parameters(shown, task_option, required=required)
        return _apply([*parameters, *said, *[_RUN] * stores], with_reading)

    return decorate


def analysis_options(command: Command) -> Command:
    """--k, --confidence, --errors and --seed, handed over as `analysing`."""

    @functools.wraps(command)
    def with_analysing(**values: Any) -> Any:
        chosen = {name: values.pop(name) for name in ("ks", "confidence", "errors", "seed")}
        return command(analysing=Analysing(**chosen), **values)

    options: list[Callable[[Command], Command]] = [
        click.option("--k", "ks", type=KList(), help="The k of pass^k and pass@k, such as 1,2,4."),
        confidence_option(),
        click.option(
            "--errors",
            type=click.Choice(["fail", "exclude"]),
            default="fail",
            show_default=True,
            help="Whether an errored trial counts as a failure or not at all.",
        ),
        seed_option(),
    ]
    return _apply(options, with_analysing)


def confidence_option() -> Callable[[Command], Command]:
    """--confidence."""
    return click.option(
        "--confidence", type=Share(), default=CONFIDENCE, help="Confidence level of all intervals."
    )


def seed_option() -> Callable[[Command], Command]:
    """--seed."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=SEED,
        help="Seed of all random draws: the same seed gives the same bytes.",
    )


def output_options(
    formats: Formats, *, besides: str = "", verbose: bool = False
) -> Callable[[Command], Command]:
    """--json, --markdown, -o FILE, --quiet and maybe --verbose, handed over as `output`.

    The help names the endings of `formats`, and `besides`: what holds under some option only.
    """
    endings = f"{' '.join(endings_of(formats))}{besides}"
    options: list[Callable[[Command], Command]] = [
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown."),
        click.option(
            "-o",
            "--output",
            "paths_out",
            metavar="FILE",
            multiple=True,
            help=f"Write to a file; its ending says how: {endings}. May be repeated.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error."),
    ]
    if verbose:
        told = "Show every number, and what the terms mean."
        options.append(click.option("-v", "--verbose", is_flag=True, help=told))

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_output(**values: Any) -> Any:
            names = ("as_json", "as_markdown", "paths_out", "quiet", "verbose")
            chosen = {name: values.pop(name) for name in names if name in values}
            if chosen["as_json"] and chosen["as_markdown"]:
                raise click.UsageError(
                    "--json and --markdown exclude each other; -o may name both files"
                )
            return command(output=Output(**chosen), **values)

        return _apply(options, with_output)

    return decorate


def again_options(analysing: Analysing, only: Sequence[str]) -> list[str]:
    """What an advised command is told beside its results: the policy, and the agent if it is one.

    >>> again_options(Analysing(ks=None, confidence=0.95, errors="fail", seed=0), ["o3"])
    ['--only', 'o3']
    """
    policy = ["--errors", analysing.errors] if analysing.errors != "fail" else []
    return [*policy, *(["--only", only[0]] if len(only) == 1 else [])]


def choose_systems(trials: Trials, only: Sequence[str]) -> Trials:
    """The trials of the named systems; all of them, where none is named."""
    if not only:
        return trials
    _check_names(only, trials.systems)
    import numpy as np

    codes = [trials.system.code(name) for name in only]
    return trials.take(np.isin(trials.system.codes, codes))


def _check_names(only: Sequence[str], systems: Sequence[str]) -> None:
    if unknown := [name for name in only if name not in systems]:
        import difflib

        near = difflib.get_close_matches(unknown[0], systems, n=1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise ArgumentError("--only", f"must be one of {', '.join(systems)}{guess}", unknown[0])


def task_names(subjects: Trials | Sequence[Tally]) -> tuple[str, ...]:
    """Every task that occurs, once."""
    from passhat.records import Trials

    if isinstance(subjects, Trials):
        return subjects.tasks
    return tuple(dict.fromkeys(name for tally in subjects for name in tally.tasks))


def parse_bars(texts: Sequence[str], tasks: Sequence[str]) -> dict[str, float] | float | None:
    """`0.8` for every task, `refund=0.9` for one; both may be given."""
    common: float | None = None
    named: dict[str, float] = {}
    for text in texts:
        task, _, share = text.rpartition("=")
        try:
            value = float(share)
        except ValueError:
            raise ArgumentError("--bar", "must be a share or TASK=SHARE", text) from None
        if task:
            named[task] = value
        else:
            common = value
    if not named:
        return common
    return named if common is None else dict.fromkeys(tasks, common) | named


def _flags(task_option: str) -> dict[str, str]:
    return {name: flag for name, (flag, _) in _COLUMNS.items()} | {"task": task_option}


def _reading_parameters(
    metavar: str, task_option: str, *, required: bool
) -> list[Callable[[Command], Command]]:
    duplicates = click.Choice(["error", "last", "keep"])
    found: list[Callable[[Command], Command]] = [
        click.argument("paths", metavar=metavar, nargs=-1, required=required),
        click.option("--format", "format_name", metavar="NAME", help="The tool that wrote them."),
        click.option(
            "--duplicates",
            type=duplicates,
            default="error",
            show_default=True,
            help="What to do where a trial occurs twice.",
        ),
        click.option(
            "--limit",
            "limits",
            metavar="NAME=NUMBER",
            multiple=True,
            callback=_checked_limits,
            help="How much to read at most: max_bytes, max_ratio (of what was compressed), "
            "max_members, max_depth, max_transcript. May be repeated.",
        ),
        DROP_ROUNDS,
        click.option("--scorer", metavar="NAME", help="Which score, in logs that have several."),
        click.option("--pass-if", metavar="TEST", help="When an attempt passes: 'score>=0.8'."),
        click.option("--name", metavar="NAME", help="What to call the agent of a file with one."),
    ]
    found += [
        click.option(flag, f"column_{name}", metavar="COLUMN", help=_COLUMNS[name][1])
        for name, flag in _flags(task_option).items()
    ]
    return found


def _checked_limits(_: Any, __: Any, texts: tuple[str, ...]) -> tuple[str, ...]:
    """A mistyped limit is told also where nothing that is read comes near to any."""
    if texts:
        from passhat.ingest import parse_limits

        parse_limits(texts)
    return texts


def _apply(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
