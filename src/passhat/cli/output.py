"""Where an answer goes: the terminal, standard output as data, or files."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from passhat.reporters import formats_for, render
from passhat.reporters.grid import ENDINGS

if TYPE_CHECKING:
    from passhat.reporters.terminal_style import Ink

NARROWEST, WIDEST = 72, 140
"""Below, tables would break; above, lines are no longer read."""

ADVISING = ("text", "markdown", "html")
"""Formats whose answers advise commands."""

Formats = Mapping[str, str | Callable[..., str | bytes]]
"""What renders each format: a function, or "module:function"; "text" also takes an Ink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What the user asked for: a format on standard output, or files by their endings."""

    as_json: bool
    as_markdown: bool
    paths_out: tuple[str, ...]
    quiet: bool
    verbose: bool = False

    def write(self, answer: Any, formats: Formats, **options: bool) -> None:
        """Render `answer` and put it where it was asked for."""
        if self.verbose:
            options["verbose"] = True
        targets = [(Path(name), _format_of(Path(name), formats)) for name in self.paths_out]
        for path, format_name in targets:
            _save(path, _render(answer, format_name, formats, None, options))
            self.say(f"wrote {path}")
        if not targets or self.as_json or self.as_markdown:
            format_name = "json" if self.as_json else "markdown" if self.as_markdown else "text"
            ink = ink_for(sys.stdout)
            text = _render(answer, format_name, formats, ink, options)
            click.echo(text, nl=False, color=True)

    def check(self, formats: Formats) -> None:
        """Refuse now what could not be written later, when the work is done and paid for."""
        for path in map(Path, self.paths_out):
            _format_of(path, formats)
            if not path.parent.is_dir():
                raise click.UsageError(f"-o {path}: there is no folder {path.parent}")

    def say(self, text: str) -> None:
        """Talk on standard error."""
        if not self.quiet:
            from passhat.reporters.safe_text import safe_lines

            click.echo(safe_lines(text), err=True)


def every_format(kind: str) -> Formats:
    """Every format that can hold a kind of answer, and what renders it."""

    def renderer(name: str) -> Callable[..., str | bytes]:
        def rendered(answer: Any, ink: Ink | None = None, **options: Any) -> str | bytes:
            return render(answer, name, **({} if ink is None else {"ink": ink}), **options)

        return rendered

    return {name: renderer(name) for name in formats_for(kind)}


def endings_of(formats: Formats) -> list[str]:
    """The ending to write for each of these formats.

    >>> endings_of({"text": "a:b", "markdown": "a:c"})
    ['.txt', '.md']
    """
    usual: dict[str, str] = {}
    for ending, name in ENDINGS.items():
        usual.setdefault(name, ending)
    return [ending for name, ending in usual.items() if name in formats]


def advising(formats: Formats, results: str | None) -> Formats:
    """The same formats, where the commands that an answer advises read `results`."""

    def told(renderer: str | Callable[..., str | bytes]) -> Callable[..., str | bytes]:
        return lambda *answer, **options: _loaded(renderer)(*answer, results=results, **options)

    return {name: told(render) if name in ADVISING else render for name, render in formats.items()}


def ink_for(stream: TextIO) -> Ink:
    """Width, colour and characters that suit a stream.

    NO_COLOR (no-color.org) wins over FORCE_COLOR, which wins over what the stream is.
    """
    from passhat.reporters.terminal_style import Ink

    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    color = bool(os.environ.get("FORCE_COLOR")) or terminal
    width = (
        shutil.get_terminal_size((80, 24)).columns if terminal or "COLUMNS" in os.environ else 80
    )
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return Ink(
        width=max(NARROWEST, min(width, WIDEST)),
        color=color and not os.environ.get("NO_COLOR"),
        unicode=encoding.startswith("utf"),
    )


def _format_of(path: Path, formats: Formats) -> str:
    name = ENDINGS.get(path.suffix.lower())
    if name is None or name not in formats:
        known = [ending for ending, form in ENDINGS.items() if form in formats]
        raise click.UsageError(
            f"-o {path}: cannot write {path.suffix or 'a file without an ending'}; "
            f"the ending must be one of {' '.join(known)}"
        )
    return name


def _render(
    answer: Any,
    format_name: str,
    formats: Formats,
    ink: Ink | None,
    options: Mapping[str, bool],
) -> str | bytes:
    if format_name not in formats:
        raise click.UsageError(f"this command has no --{format_name}")
    rendered = _loaded(formats[format_name])
    if format_name == "text":
        return rendered(answer, ink, **options)
    return rendered(answer, **options)


def _loaded(renderer: str | Callable[..., str | bytes]) -> Callable[..., str | bytes]:
    if not isinstance(renderer, str):
        return renderer
    module, function = renderer.split(":")
    found: Callable[..., str | bytes] = getattr(importlib.import_module(module), function)
    return found


def _save(path: Path, found: str | bytes) -> None:
    try:
        path.write_bytes(found.encode("utf-8") if isinstance(found, str) else found)
    except OSError as error:
        raise click.UsageError(f"-o {path}: {error.strerror or error}") from error
