"""`passhat cassette`: list, show, verify and prune recordings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from passhat.cli.options import JSON, SectionedCommand, SectionedGroup, WholeNumber
from passhat.cli.output import print_json
from passhat.dataclass import dataclass
from passhat.errors import CassetteError, ExitCode
from passhat.messages import plural

if TYPE_CHECKING:
    from passhat.records import Suite
    from passhat.runner.cassettes import Cassette

ENDINGS = (".jsonl", ".jsonl.zst")
LONGEST_TEXT = 2_000

Paths = tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteOnDisk:
    """A cassette on disk: what is in it, or why it cannot be read."""

    path: Path
    cassette: Cassette | None
    problem: str = ""


class CassetteObject(TypedDict):
    """A cassette on disk: how many runs of each task it holds, or why it cannot be read."""

    path: str
    system: str | None
    runs: dict[str, int]
    bytes: int
    problem: str | None


@click.group(
    cls=SectionedGroup,
    invoke_without_command=True,
    formerly={"list": "cassette", "verify": "check"},
    brief=[
        "passhat cassette              list the cassettes of the suite in this folder",
        "passhat cassette show FILE    what was said in its trials",
        "passhat cassette prune        drop what the suite no longer has",
        "",
        JSON,
        "Record some: passhat run --record. Are they sound? passhat check",
    ],
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def cassette(context: click.Context, as_json: bool) -> None:
    """Recorded runs: what models and servers answered, to be replayed."""
    if context.invoked_subcommand is None:
        _list((), as_json=as_json)


_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))


@cassette.command("list", cls=SectionedCommand)
@_files
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_cassettes(files: Paths, as_json: bool) -> None:
    """List cassettes: the agent, its tasks, how many trials of each."""
    _list(files, as_json=as_json)


def _list(files: Paths, *, as_json: bool) -> None:
    cassettes = _cassettes(files)
    if as_json:
        print_json([_plain(on_disk) for on_disk in cassettes])
        return
    from passhat.reporters.answer import SCREEN_WIDTH

    for on_disk in cassettes:
        path, summary = f"{on_disk.path}", _summary(on_disk)
        if len(f"{path}  {summary}") > SCREEN_WIDTH:
            summary = _counted(on_disk) or summary
        if len(f"{path}  {summary}") <= SCREEN_WIDTH:
            _say(f"{path}  {summary}")
        else:
            _say(path)
            _say(f"  {summary}")


def _counted(on_disk: CassetteOnDisk) -> str | None:
    """How many tasks and trials a cassette holds; None if it holds none or cannot be read."""
    read = on_disk.cassette
    if read is None or not read.setups:
        return None
    counts = sorted({read.runs(task) for task in read.setups})
    each = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{read.system}: {plural(len(read.setups), 'task')} x {each} trials"


@cassette.command(cls=SectionedCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", metavar="TASK", help="Only this task.")
@click.option("--trial", type=WholeNumber(min=1), help="Only this trial, counted from 1.")
def show(file: Path, task: str | None, trial: int | None) -> None:
    """Show what was said in the trials of a cassette."""
    from passhat.runner.cassettes import read_cassette

    read = read_cassette(file)
    shown = 0
    for name, number in sorted(read.trials):
        if (task is None or task == name) and trial in (None, number + 1):
            _show_trial(read, name, number)
            shown += 1
    if not shown:
        raise CassetteError(
            f"{file}: no such trial; {_summary(CassetteOnDisk(path=file, cassette=read))}"
        )


@cassette.command(cls=SectionedCommand)
@_files
@click.pass_context
def verify(context: click.Context, files: Paths) -> None:
    """Read cassettes to the last byte, and compare them with the suite if there is one.

    Exit codes: 0 all are sound; 2 one is damaged, holds a secret, or no longer fits the suite.
    """
    suite = None if files else _suite()
    problems = 0
    for on_disk in _cassettes(files):
        faults = _faults(on_disk, suite)
        problems += bool(faults)
        for fault in faults:
            _say(f"problem  {on_disk.path}: {fault}")
        if not faults:
            _say(f"ok       {on_disk.path}  {_summary(on_disk)}")
    if problems:
        context.exit(ExitCode.USAGE)


@cassette.command(cls=SectionedCommand)
@click.option("--dry-run", is_flag=True, help="Show what would be dropped, and change nothing.")
def prune(dry_run: bool) -> None:
    """Drop agents, tasks and trials that the suite in this folder no longer has."""
    suite = _suite()
    if suite is None:
        raise CassetteError("there is no suite here that says what to keep")
    dropped = False
    for path in _paths(()):
        for text in _pruned(path, suite, dry_run=dry_run):
            _say(f"{'would drop' if dry_run else 'dropped'} {text}")
            dropped = True
    if not dropped:
        click.echo("nothing to drop: the suite uses every recorded trial", err=True)


def _pruned(path: Path, suite: Suite, *, dry_run: bool) -> Iterator[str]:
    from passhat.runner.cassettes import read_cassette, write_cassette

    read = read_cassette(path)
    runs = {p.task.name: p.runs for p in suite.pairings if p.system.name == read.system}
    if not runs:
        yield f"{path}: the suite has no agent {read.system!r}"
        if not dry_run:
            path.unlink()
        return
    extra = [(task, trial) for task, trial in read.trials if trial >= runs.get(task, 0)]
    gone = sorted(set(read.setups) - set(runs))
    if not extra and not gone:
        return
    tasks = f", the tasks {', '.join(gone)}" if gone else ""
    yield f"{path}: {plural(len(extra), 'trial')}{tasks}"
    if not dry_run:
        for key in extra:
            del read.trials[key]
        for task in gone:
            read.forget(task)
        write_cassette(read, path)


def _cassettes(files: Sequence[Path]) -> list[CassetteOnDisk]:
    cassettes = [_read(path) for path in _paths(files)]
    if not cassettes:
        click.echo("no cassettes: `passhat run --record` makes some", err=True)
    return cassettes


def _paths(files: Sequence[Path]) -> list[Path]:
    """The named cassettes, those in named folders, or those of the suite here."""
    places = list(files)
    if not places:
        suite, here, place = _suite(), Path.cwd(), Path("cassettes")
        if suite is not None:
            place = suite.directory / suite.cassette.directory
            place = place.relative_to(here) if place.is_relative_to(here) else place
        places = [place] if place.is_dir() else []
    cassettes: list[Path] = []
    for place in places:
        inside = place.iterdir() if place.is_dir() else [place]
        cassettes += sorted(p for p in inside if p.name.endswith(ENDINGS) or p == place)
    return cassettes


def _suite() -> Suite | None:
    from passhat.suite import suite_in

    return suite_in(Path())


def _read(path: Path) -> CassetteOnDisk:
    from passhat.runner.cassettes import read_cassette

    try:
        return CassetteOnDisk(path=path, cassette=read_cassette(path))
    except CassetteError as error:
        return CassetteOnDisk(path=path, cassette=None, problem=str(error))


def cassette_faults(suite: Suite) -> list[str]:
    """What is wrong with the cassettes of a suite."""
    place = suite.directory / suite.cassette.directory
    cassettes = [_read(path) for path in _paths([place])] if place.is_dir() else []
    return [
        f"{cassette.path}: {fault}" for cassette in cassettes for fault in _faults(cassette, suite)
    ]


def _faults(on_disk: CassetteOnDisk, suite: Suite | None) -> list[str]:
    """Why a cassette cannot be used: it is damaged, holds a secret, or does not fit the suite."""
    if on_disk.cassette is None:
        return [on_disk.problem]
    drift = [] if suite is None else _drift(on_disk.cassette, suite)
    return [*_secrets(on_disk.path, suite), *drift]


def _secrets(path: Path, suite: Suite | None) -> list[str]:
    """The secrets in a cassette: earlier versions of passhat let some through."""
    from passhat.records.redaction import scan_paths, suite_redactor

    secrets = scan_paths([path], suite_redactor(suite, os.environ))
    kinds = dict.fromkeys(secret.what for secret in secrets)
    return [f"it holds {kind}: record it again, and replace the secret" for kind in kinds]


def _drift(read: Cassette, suite: Suite) -> list[str]:
    """What has changed in the suite since the cassette was recorded."""
    from passhat.records.redaction import suite_redactor
    from passhat.runner.cassettes import changes, cleaned, recorded_setup

    redactor = suite_redactor(suite, os.environ)
    drift = []
    for pairing in suite.pairings:
        before = read.setups.get(pairing.task.name)
        if pairing.system.name != read.system or before is None:
            continue
        before, now = cleaned(before, redactor), cleaned(recorded_setup(pairing, suite), redactor)
        drift += [f"{pairing.task.name!r}: {change}" for change in changes(before, now)]
    return drift


def _summary(on_disk: CassetteOnDisk) -> str:
    read = on_disk.cassette
    if read is None:
        return f"unreadable: {on_disk.problem}"
    runs = ", ".join(f"{task} x{read.runs(task)}" for task in sorted(read.setups))
    return f"{read.system}: {runs or 'nothing'}"


def _plain(on_disk: CassetteOnDisk) -> CassetteObject:
    read = on_disk.cassette
    return {
        "path": str(on_disk.path),
        "system": None if read is None else read.system,
        "runs": {} if read is None else {task: read.runs(task) for task in sorted(read.setups)},
        "bytes": on_disk.path.stat().st_size if on_disk.path.exists() else 0,
        "problem": on_disk.problem or None,
    }


def _show_trial(read: Cassette, task: str, number: int) -> None:
    recorded = read.trials[task, number]
    _say(f"{task} #{number + 1}")
    if prompt := read.setups.get(task, {}).get("prompt"):
        _say(f"  user       {prompt}")
    for _, line in sorted(recorded.exchanges.items()):
        for speaker, text in _spoken(line):
            _say(f"  {speaker:<9}  {text[:LONGEST_TEXT]}")
    facts = ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in sorted(recorded.ending.items())
    )
    _say(f"  end        {facts}")


def _spoken(line: dict[str, Any]) -> Iterator[tuple[str, str]]:
    reply = line.get("reply", {})
    if line["kind"] == "model":
        for call in reply.get("calls", ()):
            arguments = json.dumps(call.get("arguments", {}), ensure_ascii=False)
            yield "calls", f"{call.get('name')}({arguments})"
        if text := reply.get("text"):
            yield "assistant", str(text)
    elif line["kind"] == "tool":
        yield "tool", str(reply.get("text", ""))
    else:
        yield "agent", str(reply.get("answer", ""))


def _say(text: str) -> None:
    from passhat.records.redaction import environment_redactor
    from passhat.reporters.formatting import safe_text

    click.echo(safe_text(environment_redactor(os.environ).clean(text)))
