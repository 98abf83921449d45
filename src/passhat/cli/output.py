"""Where an answer goes: the terminal, standard output as data, or files."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from passhat.dataclass import dataclass
from passhat.errors import RunError
from passhat.messages import plural, safe_lines, without_commands
from passhat.reporters import endings_for, formats_for, render
from passhat.reporters.rendering import ENDINGS, format_of_file

if TYPE_CHECKING:
    from passhat.analysis.reports.report import Report
    from passhat.ingest.tallies import SomeFailures
    from passhat.records import Transcripts, Trials
    from passhat.reporters.formatting import TerminalStyle

NARROWEST, WIDEST = 72, 140
"""Narrower, tables break; wider, lines are hard to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where to write an answer: standard output in a format, or files by their endings.

    An answer that `judges` is printed beside files too: people look for the verdict of a job in its
    log. `option` is the option that names the files.
    """

    format: str | None
    paths_out: tuple[str, ...]
    quiet: bool
    verbose: bool = False
    judges: bool = False
    option: str = "-o"

    @property
    def as_json(self) -> bool:
        """Whether JSON is printed."""
        return self.format == "json"

    @property
    def shows_text(self) -> bool:
        """Whether the answer is printed on the terminal, where people read it."""
        return self.format == "text" or (
            self.format is None and (self.judges or not self.paths_out)
        )

    def write(self, answer: Any, *, passed: bool = False, **options: Any) -> None:
        """Render `answer` and write it to the files and formats that were asked for.

        With --quiet, one that `passed` is not printed beside files. `options` are those of
        `render`; each format uses the ones that it knows.
        """
        options["wording"] = in_shell
        if self.verbose:
            options["verbose"] = True
        if self.format is not None and self.format not in (known := formats_for(answer)):
            raise click.UsageError(f"--as {self.format}: must be one of {' '.join(known)} here")
        targets = [(Path(name), self.format_of(Path(name), answer)) for name in self.paths_out]
        for path, format_name in targets:
            self._save(path, render(answer, format_name, **options))
            self.say(f"wrote {path}")
        silent = passed and self.quiet and bool(targets)
        if self.format is not None or (self.shows_text and not silent):
            if self.shows_text:  # other formats are for files, and not cut to width
                options["ink"] = ink_for(sys.stdout)
            shown = render(answer, self.format or "text", **options)
            if self.shows_text:
                shown = without_commands(str(shown))
            click.echo(shown, nl=False, color=True)

    def check(self, kind: str) -> None:
        """Refuse a file now that could not be written after the run is paid for."""
        for path in map(Path, self.paths_out):
            self.format_of(path, kind)
            if not path.parent.is_dir():
                raise unwritable(path, FileNotFoundError(), self.option)

    def format_of(self, path: Path, answer: Any) -> str:
        """The format that a file's ending asks for, if it can hold the answer."""
        name = format_of_file(path.name)
        if name is None or name not in formats_for(answer):
            known = endings_for(answer)
            raise click.UsageError(
                f"{self.option} {path}: cannot write {path.suffix or 'a file without an ending'}; "
                f"the ending must be one of {' '.join(known)}"
            )
        return name

    def say(self, text: str) -> None:
        """Print a note on standard error, unless --quiet."""
        if not self.quiet:
            print_note(text)

    def _save(self, path: Path, rendered: str | bytes) -> None:
        content = rendered.encode("utf-8") if isinstance(rendered, str) else rendered
        try:
            # A page may hold transcripts.
            write_whole(path, content, mode=0o600 if path.suffix == ".html" else 0o666)
        except ValueError:  # a name that no file can have
            raise click.UsageError(
                f"{self.option} {str(path)!r} is not the name of a file"
            ) from None
        except OSError as error:
            if error.errno in FULL:
                what = f"{self.option} {path}".lstrip()
                raise RunError(f"{what}: {error.strerror}; nothing was written there") from error
            raise unwritable(path, error, self.option) from error


def print_note(text: str) -> None:
    """Print a note on standard error: after the answer, which is line 1 where both streams meet.

    Commands that run for long tell it at once.
    """
    context = click.get_current_context(silent=True)
    held = None if context is None else context.meta.get("passhat.notes")
    if context is not None and held is not None and context.command.name not in LONG_RUNNING:
        held.append(safe_lines(text))
        return
    with suppress(OSError):  # a verdict does not depend on who reads notes
        click.echo(safe_lines(text), err=True)


LONG_RUNNING = frozenset({"run", "resume", "repeat", "worker", "view", "watch", "mcp", "label"})

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a disk, not of what was asked for."""


def print_json(value: Any) -> None:
    """Print what a program asked for."""
    import json

    click.echo(json.dumps(value, indent=2))


def write_whole(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that it has all of the content, or is as it was before; `mode` if new."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a pipe, or /dev/stdout
        return
    path = path.resolve()  # what a link names is replaced, not the link
    import secrets

    beside = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except PermissionError:  # a file that may be written in a folder that may not
        path.write_bytes(content)
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o7777)
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


PRINTING = frozenset({"as_json", "as_markdown", "as_format", "paths_out", "quiet", "verbose"})
"""The options that say how and where an answer is shown, not which."""


def typed_command() -> str | None:
    """The command line that asked for this answer, without the options that say how to show it."""
    context = click.get_current_context(silent=True)
    typed = [] if context is None else list(context.meta.get("passhat.typed", ()))
    if context is None or not typed:
        return None
    params = {flag: param for param in context.command.params for flag in param.opts}
    words = ["passhat"]
    while typed:
        word = typed.pop(0)
        if word == "--":
            return shlex.join([*words, word, *typed])
        flag, equals, _ = word.partition("=") if word.startswith("--") else (word[:2], "", "")
        param = params.get(flag) if word.startswith("-") else None
        part = [word]
        value_follows = isinstance(param, click.Option) and not (param.is_flag or param.count)
        if value_follows and not equals and (word.startswith("--") or len(word) == 2) and typed:
            part.append(typed.pop(0))
        if param is None or param.name not in PRINTING:
            words += part
    return shlex.join(words)


def in_shell(text: str) -> str:
    """A note of the library in the words of the command that was called: arguments as options."""
    context = click.get_current_context(silent=True)
    if "`" not in text or context is None:
        return text
    from passhat.cli.error_messages import in_options_of

    return in_options_of(text, context.command)


def printed_formats(names: Sequence[str], kind: str) -> tuple[list[str], tuple[str, ...]]:
    """The formats that names such as `-.md` ask to print, and the names that are files.

    >>> printed_formats(["-.md", "report.html"], "report")
    (['markdown'], ('report.html',))
    """
    printed = [name for name in names if name.startswith("-.")]
    to_print = Output(format=None, paths_out=(), quiet=True)
    formats = [to_print.format_of(Path(name), kind) for name in printed]
    return formats, tuple(name for name in names if name not in printed)


def usual_endings(kind: str) -> Sequence[str]:
    """The ending to write for each format of a kind of answer.

    >>> usual_endings("plan")[:3]
    ['.txt', '.json', '.md']
    """
    formats, usual = formats_for(kind), dict[str, str]()
    for ending, name in ENDINGS.items():
        usual.setdefault(name, ending)
    return [usual[name] for name in usual if name in formats]


def ink_for(stream: TextIO) -> TerminalStyle:
    """Width, colour and characters that suit a stream.

    NO_COLOR (no-color.org) wins over FORCE_COLOR, which wins over what the stream is.
    """
    from passhat.reporters.formatting import TerminalStyle

    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    color = bool(os.environ.get("FORCE_COLOR")) or terminal
    width = 80
    if terminal or "COLUMNS" in os.environ:
        import shutil

        width = shutil.get_terminal_size((80, 24)).columns
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return TerminalStyle(
        width=max(NARROWEST, min(width, WIDEST)),
        color=color and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
    )


def unwritable(path: Path, error: OSError, option: str = "") -> click.UsageError:
    """The error for a file that cannot be written."""
    missing = isinstance(error, FileNotFoundError)
    why = f"there is no folder {path.parent}" if missing else error.strerror or error
    return click.UsageError(f"{option} {path}: {why}".lstrip())


def wants_page(transcripts: bool, output: Output, *, html: str | None = None) -> bool:
    """Whether to show transcripts; a note says if there is no page to show them on."""
    pages = [name for name in output.paths_out if name.lower().endswith((".html", ".htm"))]
    page = html is not None or bool(pages)
    if transcripts and not page:
        output.say("transcripts are shown on a page: add -o report.html")
    return transcripts and page


def fitted_transcripts(
    report: Report, trials: Trials | None, transcripts: Transcripts, output: Output
) -> dict[str, Any]:
    """The trials, the transcripts that fit on a page and why runs fail, as options of `render`.

    A note says what is left out.
    """
    from passhat.records.trial import first_number

    options = _fitted(report, transcripts, trials, output) if transcripts else {}
    if trials is None:
        return options
    options |= {"trials": trials, "first_trial": first_number(trials.trial.tolist())}
    if transcripts:
        from passhat.analysis.explaining.explain import explain
        from passhat.journeys.results import choose_systems

        shown = choose_systems(trials, [system.name for system in report.systems])
        options["explanation"] = explain(shown, transcripts)
    return options


def fitted_failures(report: Report, some: SomeFailures, output: Output) -> dict[str, Any]:
    """What a page shows of the failures of a huge table, as options of `render`."""
    count = plural(len(some.transcripts), "transcript")
    output.say(f"The page shows {count}: the first failures of each task.")
    return {**_fitted(report, some.transcripts, None, output), "first_trial": some.first_trial}


def _fitted(
    report: Report, transcripts: Transcripts, trials: Trials | None, output: Output
) -> dict[str, Any]:
    from passhat.reporters.page_parts import fit_transcripts

    fitted = fit_transcripts(report, transcripts, trials=trials)
    for note in (fitted.left_out_note, fitted.cut_note):
        if note:
            output.say(note)
    return {"transcripts": fitted}
