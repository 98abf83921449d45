"""Which results a command reads, and how they are to be understood."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.arguments import STORE
from passhat.cli.error_messages import COLUMN, NOT_COLUMNS, column_word, column_words, with_options
from passhat.cli.options import (
    READING,
    ROUND_NUMBERS,
    Command,
    Decorator,
    OnceOption,
    in_order,
    shared,
    store_option,
)
from passhat.cli.output import print_note
from passhat.dataclass import dataclass
from passhat.journeys.results import LATEST, Results, is_store
from passhat.messages import closest
from passhat.records.columns import ColumnMap

if TYPE_CHECKING:
    from passhat.records import Duplicates


COLUMNS = {column.name: column.metadata for column in fields(ColumnMap) if column.metadata}
"""What help says of each column that a command line or a configuration may name."""

_NAMED = [name for name in COLUMNS if name not in NOT_COLUMNS]
_WORDS = {column_word(COLUMNS[name]["option"] or name): name for name in _NAMED}
"""What --columns calls each column, and its field of ColumnMap."""

TASK_COLUMN = "--task-column"
"""The option on the column of tasks that every command has; --task is a task to some."""

_OTHER_ARGUMENTS = ("name", "format", "duplicates", "errors", "confidence")
"""Arguments besides columns that readers name in their notes; each has an option of its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """What the user named, and how to read it; `results` is what journeys read."""

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
        """What to read: all the paths, or other paths in the same way."""
        # numpy before msgspec: with what that loads, numpy's types take longer to make.
        from passhat.records.trials import parse_shares  # isort: split

        from passhat.ingest import parse_limits

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
        """Refuse options on columns for a stored run: its columns were read when it was stored."""
        if not (typed := self._typed_columns()) or not all(map(results.is_stored, results.paths)):
            return
        raise click.UsageError(
            f"{typed[0]} says how to read a file, but {results.paths[0]} is a stored run; give "
            f"{typed[0]} with the file itself, or to `passhat history add`"
        )

    def _typed_columns(self) -> list[str]:
        """The options on columns and outcomes that were typed on the command line itself."""
        context = click.get_current_context(silent=True)
        if context is None:
            return []
        typed = click.core.ParameterSource.COMMANDLINE
        options = {f"{COLUMN}{name}": flag for name, flag in _flags(self.task_option).items()}
        options["named_columns"] = "--columns"
        return [
            flag for name, flag in options.items() if context.get_parameter_source(name) is typed
        ]

    def _in_options(self, text: str) -> str:
        """A note of a reader in which its arguments are named as options of the command."""
        others = {name: f"--{name}" for name in _OTHER_ARGUMENTS}
        return with_options(text, others | column_words(_flags(self.task_option)))

    def _refuse_run_of_files(self) -> None:
        """Refuse --run for files: it chooses a run of a store."""
        if self.run == LATEST or any(map(is_store, self.paths)):
            return
        raise click.UsageError(
            f"--run chooses a run of a history store, but {self.paths[0]} is not one; "
            "--columns trial=NAME names the column that numbers the trials"
        )

    @property
    def names_transcripts(self) -> bool:
        """Whether the user named the column of the transcripts, and so wants them."""
        return self.columns.get("transcript") is not None

    def again(self, *, errors: str = "fail", only: Sequence[str] = ()) -> str | None:
        """What to type after another command so that it reads the same; None for standard input.

        It repeats the error policy and a single agent too.

        >>> ReadingOptions(paths=("my log.csv",), format=None, duplicates="error",
        ...         columns={"task": "question", "passed": "ok"}).again(only=["o3"])
        "'my log.csv' --columns task=question,pass=ok --only o3"
        """
        if "-" in self.paths:
            return None
        chosen = {name: c for name in COLUMNS if (c := self.columns.get(name)) is not None}
        pairs = [f"{word}={chosen[name]}" for word, name in _WORDS.items() if name in chosen]
        given = {
            **{_flags("")[name]: chosen.get(name) for name in COLUMNS if name not in _NAMED},
            "--columns": ",".join(pairs) or None,
            "--format": self.format,
            "--duplicates": self.duplicates if self.duplicates != "error" else None,
            "--run": self.run if self.run != LATEST else None,
            "--drop-rounds": ",".join(map(str, self.drop_rounds)) or None,
        }
        options = [w for flag, value in given.items() if value is not None for w in (flag, value)]
        options += [word for name in self.names for word in ("--name", name)]
        options += [word for limit in self.limits for word in ("--limit", limit)]
        options += [word for share in self.shares for word in ("--share", share)]
        options += ["--errors", errors] if errors != "fail" else []
        options += ["--only", only[0]] if len(only) == 1 else []
        paths = [f"./{path}" if path.startswith("-") else _shown(path) for path in self.paths]
        return shlex.join([*paths, *options]) + self._store_words

    def repeated(self, *, errors: str = "fail", only: Sequence[str] = ()) -> dict[str, Any]:
        """How the commands that an answer prints read the same results, as options of `render`.

        Of several agents that were chosen, a command names those that it is about.
        """
        return {"results": self.again(errors=errors, only=only), "narrowed": len(only) > 1}

    @property
    def _store_words(self) -> str:
        """Empty where the store is the one that commands read anyway; never with a password."""
        if self.store is None:
            return ""
        from passhat.history.database import store_words

        return store_words(self.store)


def _shown(path: str) -> str:
    if "://" not in path:
        return path
    from passhat.history.database import shown_address

    return shown_address(path)


def say_note(note: str) -> None:
    """Print a note, such as which run was taken, on standard error, unless --quiet was given."""
    context = click.get_current_context(silent=True)
    if not (context and context.params.get("quiet")):
        print_note(note)


def _checked_format(_: Any, __: Any, name: str | None) -> str | None:
    """Refuse the name of an output format, or of a kind of file, where a tool is to be named."""
    if name is None:
        return None
    from passhat.ingest.readers import KINDS_OF_TABLES, READERS
    from passhat.reporters.rendering import FORMATS

    if name in READERS or name not in {*FORMATS, *KINDS_OF_TABLES}:
        return name  # a misspelt tool gets the list of tools
    ways = [f"to read a {name} file, leave --format out"] if name in KINDS_OF_TABLES else []
    ways += [f"to print {name}, use --as {name}"] if name in FORMATS else []
    raise click.BadParameter(f"{name!r} is not a tool that writes results; {'; '.join(ways)}")


def _checked_limits(_: Any, __: Any, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a mistyped limit even if nothing that is read comes near it."""
    if texts:
        from passhat.ingest import parse_limits

        parse_limits(texts)
    return texts


def parse_columns(texts: Sequence[str]) -> dict[str, str]:
    """The columns that `task=question,pass=ok` names, by the field of ColumnMap.

    A name may consist of several columns, joined by commas.

    >>> parse_columns(["task=suite,case,pass=ok", "cost="])
    {'task': 'suite,case', 'passed': 'ok', 'cost': ''}
    """
    columns: dict[str, str] = {}
    for text in texts:
        for part in re.split(r",(?=\s*[\w-]+\s*=)", text):
            word, equals, column = part.partition("=")
            word = column_word(word.strip().lower())
            if not equals:
                raise click.BadParameter(f"{text!r} is not NAME=COL, such as task=question,pass=ok")
            if word not in _WORDS:
                near = closest(word, _WORDS)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(_WORDS)}"
                raise click.BadParameter(f"{word!r} is not what a column can hold; {hint}")
            name = _WORDS[word]
            if columns.setdefault(name, column.strip()) != column.strip():
                raise click.BadParameter(f"{word} is named twice: {columns[name]} and {column}")
    return columns


# Parameters that have the names of the fields of ReadingOptions.
_READING = {
    "format": shared(
        READING,
        "--format",
        metavar="TOOL",
        callback=_checked_format,
        help="The tool that wrote the results, such as inspect.  [default: by the content]",
    ),
    "duplicates": shared(
        READING,
        "--duplicates",
        type=click.Choice(["error", "last", "keep"]),
        default="error",
        help="What to do if a trial occurs twice.",
    ),
    "limits": shared(
        READING,
        "--limit",
        "limits",
        metavar="NAME=NUMBER",
        multiple=True,
        callback=_checked_limits,
        help="How much to read at most: max_bytes, max_ratio (of compressed files), "
        "max_members, max_depth, max_transcript. May be repeated.",
    ),
    "drop_rounds": shared(
        READING,
        "--drop-rounds",
        type=ROUND_NUMBERS,
        default=(),
        help="Leave out these rounds, for example those of an outage. Round 1 is the first trial "
        "of every task.",
    ),
    "shares": shared(
        READING,
        "--share",
        "shares",
        metavar="GROUP=SHARE",
        multiple=True,
        help="How much of the traffic a group of tasks stands for (a tag, level or family): "
        "--share refunds=0.7 --share search=0.3.",
    ),
    "names": shared(
        READING,
        "--name",
        "names",
        metavar="NAME",
        multiple=True,
        help="What to call the agent, for results that hold one agent; repeat it to name those of "
        "several RESULTS, in order.",
    ),
}
_STORED = {
    "run": shared(
        READING,
        "--run",
        default=LATEST,
        metavar="RUN",
        help="Which run to read if RESULTS is a history store.",
    ),
    "store": store_option(
        f"The store of the runs that RESULTS name.  [default: {STORE}]",
        section=READING,
        default=None,
    ),
}


def reading_options(
    *,
    required: bool = True,
    stores: bool = True,
    task_option: str = "--task",
    metavar: str = "RESULTS...",
) -> Decorator:
    """RESULTS..., --columns, --format, --duplicates, --limit and the like, as `reading`.

    With `stores`, also which run of which store. `task_option` names the column of tasks, as
    --task-column does everywhere; `metavar` says what is read.
    """
    own = _READING | (_STORED if stores else {})
    options = [
        click.argument(
            "paths", metavar=metavar if required else f"[{metavar}]", nargs=-1, required=required
        ),
        shared(
            READING,
            "--columns",
            "named_columns",
            metavar="NAME=COL,...",
            multiple=True,
            callback=lambda _, __, texts: parse_columns(texts),
            help=f"Which column is which: task=question,pass=ok. NAME is one of "
            f"{', '.join(_WORDS)}.",
        ),
        *_READING.values(),
        *(
            click.option(
                *dict.fromkeys((flag, TASK_COLUMN) if name == "task" else (flag,)),
                f"{COLUMN}{name}",
                cls=OnceOption,
                section=READING,
                metavar=COLUMNS[name]["metavar"],
                help=COLUMNS[name]["help"],
            )
            for name, flag in _flags(task_option).items()
        ),
        *(_STORED.values() if stores else ()),
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_reading(**values: Any) -> Any:
            columns = {name: values.pop(f"{COLUMN}{name}", None) for name in COLUMNS}
            columns |= values.pop("named_columns")
            chosen = {name: values.pop(name) for name in ("paths", *own)}
            reading = ReadingOptions(columns=columns, task_option=task_option, **chosen)
            return command(reading=reading, **values)

        return in_order(*options)(with_reading)

    return decorate


def _flags(task_option: str) -> dict[str, str]:
    """The option of each column."""
    flags = {
        name: f"--{stated['option'] or name.replace('_', '-')}" for name, stated in COLUMNS.items()
    }
    return flags | {"task": task_option}
