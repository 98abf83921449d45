"""`passhat gate`: do these results meet the demand?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.command_suggestions import is_there, names_a_file
from passhat.cli.option_types import Share
from passhat.cli.options import (
    Reading,
    choose_systems,
    output_options,
    parse_bars,
    reading_options,
    seed_option,
)
from passhat.cli.output import Output, every_format
from passhat.cli.store_option import StoreType
from passhat.cli.stored_run import named_store, told
from passhat.defaults import CONFIDENCE, STORE
from passhat.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from passhat.analysis.gates.demands import Gate
    from passhat.analysis.gates.verdict import Verdicts
    from passhat.history import History, Run
    from passhat.history.references import Found
    from passhat.records import ErrorPolicy, Trials

FORMATS = every_format("verdicts")

DEFAULT_MARGIN = 0.05


@click.command()
@reading_options()
@click.option(
    "--require", "-r", metavar="DEMAND", multiple=True, help="Such as 'pass^3 >= 0.8'; repeatable."
)
@click.option(
    "--against",
    metavar="BASELINE",
    help="Results, or a run, tag or branch of the history, to be no worse than.",
)
@click.option(
    "--margin",
    type=Share(),
    default=DEFAULT_MARGIN,
    show_default=True,
    help="How much worse than the baseline the mean score may be.",
)
@click.option("--suite", type=click.Path(path_type=Path), help="Take the gates of this suite too.")
@click.option("--only", metavar="AGENT", multiple=True, help="Judge this agent only.")
@click.option("--bar", "bars", metavar="[TASK=]SHARE", multiple=True, help="What 'its bar' means.")
@click.option(
    "--confidence", type=Share(), help=f"How sure a verdict must be.  [default: {CONFIDENCE}]"
)
@click.option(
    "--scope", type=click.Choice(["this suite", "tasks like these"]), help="What it speaks about."
)
@click.option(
    "--evidence",
    type=click.Choice(["bound", "point", "sequential"]),
    help="What decides: a bound, the bare number, or the runs one after another.",
)
@click.option("--indifference", type=Share(), help="With sequential: how far beyond is clear.")
@click.option("--on-undecided", type=click.Choice(["fail", "pass", "exit4"]), help="Its exit code.")
@click.option(
    "--errors",
    type=click.Choice(["fail", "exclude"]),
    default="fail",
    show_default=True,
    help="Whether an errored trial counts as a failure or not at all.",
)
@click.option(
    "--store",
    type=StoreType(),
    help=f"The store of a run that is named.  [default: {STORE}]",
)
@click.option("--explain", is_flag=True, help="Print the evidence, step by step, and a picture.")
@seed_option()
@output_options(FORMATS)
@click.pass_context
def gate(
    context: click.Context,
    /,
    reading: Reading,
    require: tuple[str, ...],
    against: str | None,
    margin: float,
    suite: Path | None,
    only: tuple[str, ...],
    bars: tuple[str, ...],
    errors: ErrorPolicy,
    store: Path | str | None,
    explain: bool,
    seed: int,
    output: Output,
    **terms: object,
) -> None:
    """Do these results meet the demand? PASS exits 0, FAIL 1, UNDECIDED 4.

    RESULTS are files that `passhat report` reads, a history store, of which one run is judged, or
    one run, tag or branch of the history.

    \b
      passhat gate results.jsonl --require 'pass^3 >= 0.8'
      passhat gate new.eval --against old.eval --margin 0.02
      passhat gate latest --against main

    Exit codes: 0 every gate passed; 1 one failed; 2 usage or unreadable input; 4 undecided, unless
    --on-undecided says otherwise.
    """
    gates = _gates(require, suite, against, margin, terms)
    if (named := named_store(reading.paths)) is not None:
        reading, store = replace(reading, paths=(reading.run,)), named
    held = Held(reading=reading, store=store, against=against)
    found = _replayed(held, suite, gates)
    if found is None:
        from passhat.analysis.gates.judge import judge

        everybody, judged = _results(reading, store)
        trials = choose_systems(everybody, only)
        found = judge(
            trials,
            gates,
            bars=_bars(bars, suite, trials),
            baseline=_left_out(gates, everybody, trials)
            | held.baselines(gates, everybody.systems, judged),
            errors=errors,
            seed=seed,
        )
    output.write(found, FORMATS, explain=explain)
    if output.paths_out:  # what is in a file is not in the log of a CI job
        for verdict in found:
            output.say(verdict.sentence)
    context.exit(found.exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What results are held against: that of --against, or files and runs that demands name."""

    reading: Reading
    store: Path | str | None
    against: str | None

    def baselines(
        self, gates: Sequence[Gate], systems: Sequence[str], judged: Run | None
    ) -> dict[str, Trials]:
        """The baseline of every demand that names none of these systems."""
        if self.against is not None:
            return {"": self._trials(self.against, "--against", judged)}
        names = {getattr(gate.demand, "baseline", None) or "" for gate in gates} - {"", *systems}
        # a name that is nothing here is left for the judge, who tells what there is
        return {
            name: self._trials(name, "no_worse_than", judged)
            for name in sorted(names)
            if is_there(name) or self._is_run(name)
        }

    def _is_run(self, name: str) -> bool:
        """Whether it names a run; a folder may be called as a branch is."""
        if _may_be_a_run((name,), self.store):
            return True
        store = self.store or Path(STORE)
        absent = isinstance(store, Path) and not store.exists()
        if absent or (is_there(name) and Path(name).is_file()):
            return False
        from passhat.history.references import knows

        with _open(self.store) as history:
            return knows(history, name)

    def _trials(self, name: str, option: str, judged: Run | None) -> Trials:
        """Those of a file, or of a run that is not the one that is judged."""
        if not self._is_run(name):
            paths = self.reading.paths
            if len(paths) == 1 and _same_file(paths[0], name):
                raise ArgumentError(option, "must name other results than those judged", name)
            return self.reading.trials((name,))
        with _open(self.store) as history:
            return history.trials(told(_find(history, name, judged=judged, baseline=True)))


def _results(reading: Reading, store: Path | str | None) -> tuple[Trials, Run | None]:
    """Trials from files, or from the history where no such file exists, and which run they are."""
    if not _may_be_a_run(reading.paths, store):
        return reading.trials(), None
    with _open(store) as history:
        run = told(_find(history, reading.paths[0]))
        return history.trials(run), run


def _same_file(one: str, other: str) -> bool:
    return is_there(one) and is_there(other) and Path(one).samefile(other)


def _left_out(gates: list[Gate], everybody: Trials, trials: Trials) -> dict[str, Trials]:
    """Systems that --only leaves out of judgement and that demands name as their baseline."""
    names = {getattr(gate.demand, "baseline", None) for gate in gates}
    out = [name for name in everybody.systems if name not in trials.systems]
    return {name: everybody.where(system=name) for name in out if name in names}


def _find(
    history: History, name: str, *, judged: Run | None = None, baseline: bool = False
) -> Found:
    """The run of that name; a branch may be called feature/x, so a path is told only at last."""
    from passhat.history.references import knows, look_up, look_up_baseline

    if names_a_file(name) and not knows(history, name):
        raise InputError(
            f"{name}: no such file; and {history.name} has no run, tag or branch of that name"
        )
    return look_up_baseline(history, name, judged=judged) if baseline else look_up(history, name)


def _replayed(held: Held, suite: Path | None, gates: list[Gate]) -> Verdicts | None:
    """The verdicts of a stored run that its gates ended: from its journal, in its own order."""
    paths, store = held.reading.paths, held.store
    if suite is None or not _may_be_a_run(paths, store):
        return None
    from passhat.analysis.gates.stopping import Stopping, replay_run
    from passhat.history import RunJournal
    from passhat.journeys.run_gates import quarantined
    from passhat.suite import load_suite

    with _open(store) as history:
        run = _find(history, paths[0]).run
        journal = RunJournal(history, run)
        tickets = journal.launched()
        if not any(ticket.stamp for ticket in tickets):
            return None
        loaded = load_suite(suite, models_asked=False)
        rule = Stopping(
            loaded.pairings,
            gates,
            until_settled=True,
            quarantined=sorted(quarantined(loaded)),
            baselines=held.baselines(gates, loaded.systems, run),
            seed=loaded.seed,
        )
        return replay_run(rule, tickets, journal.finished())


def _may_be_a_run(paths: tuple[str, ...], store: Path | str | None) -> bool:
    """Whether one name, of which there is no file, may be a run of a history that exists."""
    if len(paths) != 1 or paths[0] == "-":
        return False
    is_file = is_there(paths[0]) or any(mark in paths[0] for mark in "*?[")
    return not is_file and (store is not None or Path(STORE).exists())


def _open(store: Path | str | None) -> History:
    from passhat.history import History

    return History.open(store or STORE, read_only=True)


def _gates(
    require: tuple[str, ...],
    suite: Path | None,
    against: str | None,
    margin: float,
    terms: dict[str, object],
) -> list[Gate]:
    from passhat.analysis.gates.demands import parse_gate

    given = {name: value for name, value in terms.items() if value is not None}
    texts = list(require)
    if against is not None and not any("worse" in text for text in texts):
        name = "-".join(Path(against).name.split()) or "BASELINE"
        texts += [f"no_worse_than {name} by {margin:g}", f"no task worse than {name}"]
    gates = [parse_gate({"require": text, **_fitting(text, given)}) for text in texts]
    if suite is not None:
        from passhat.suite import load_suite

        gates += [parse_gate(gate) for gate in load_suite(suite, models_asked=False).gates]
    if not gates:
        raise InputError(
            "nothing is demanded: --require 'pass^3 >= 0.8', --against BASELINE or --suite FILE"
        )
    return gates


def _fitting(text: str, terms: dict[str, object]) -> dict[str, object]:
    """The terms of the command line, less what a demand task by task cannot have."""
    if "task worse" in text:
        return {name: value for name, value in terms.items() if name not in ("evidence", "scope")}
    return terms


def _bars(
    texts: tuple[str, ...], suite: Path | None, trials: Trials
) -> dict[str, float] | float | None:
    if texts or suite is None:
        return parse_bars(texts, trials.tasks)
    from passhat.suite import load_suite

    tasks = load_suite(suite, models_asked=False).tasks
    return {task.name: task.bar for task in tasks if task.bar is not None} or None
