"""`passhat compare`: is one agent better than another?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.option_types import Share
from passhat.cli.options import (
    Analysing,
    Reading,
    again_options,
    analysis_options,
    choose_systems,
    output_options,
    reading_options,
)
from passhat.cli.output import Output, every_format
from passhat.errors import InputError

if TYPE_CHECKING:
    from passhat.records import Trials

FORMATS = every_format("comparison")


@click.command()
@reading_options()
@click.option("--only", metavar="AGENT", multiple=True, help="Compare these two agents.")
@click.option("--margin", type=Share(), help="A difference below which they count as equivalent.")
@analysis_options
@output_options(FORMATS)
def compare(
    reading: Reading,
    only: tuple[str, ...],
    margin: float | None,
    analysing: Analysing,
    output: Output,
) -> None:
    """Is one agent better than another, on the same tasks?

    RESULTS are either two files of one agent each, or files that hold two agents between them.
    More than two agents are ranked. The difference is the first minus the second, in the order they
    are named or stand in the file, for this suite and for tasks like these. The verdict is about
    the mean score or, where --k asks for it, about pass^k of the largest k.

    \b
      passhat compare new.eval old.eval
      passhat compare results.csv --only gpt-5 --only o3 --margin 0.02
    """
    sides, held = _sides(reading, only)
    if len(sides) > 2:
        from passhat.cli.rank import usual_metric, write_ranking

        output.say(f"{len(sides)} agents: ranking them (--only names two to compare)")
        again = reading.again(*again_options(analysing, ()))
        tallies = [side.tally() for side in sides]
        write_ranking(tallies, usual_metric(analysing), analysing, output, again=again)
        return
    from passhat.analysis.comparing.comparison import compare as compare_systems

    answer = compare_systems(
        sides[0],
        sides[1],
        ks=analysing.ks,
        margin=margin,
        confidence=analysing.confidence,
        errors=analysing.errors,
        seed=analysing.seed,
    )
    if held > len(sides):
        answer = replace(answer, notes=(*answer.notes, _picked(held)))
    output.write(answer, FORMATS)


def _picked(held: int) -> str:
    """Of many pairs, some differ by chance: who picks one after looking is to know."""
    pairs = held * (held - 1) // 2
    return (
        f"this is 1 of the {pairs:,} pairs of the {held:,} agents in these results, looked at by "
        "itself; passhat rank holds for all of them at once"
    )


def _sides(reading: Reading, only: tuple[str, ...]) -> tuple[list[Trials], int]:
    """Two files of one agent each are two sides, else each agent is one; and how many there are."""
    if len(reading.paths) == 2 and not only:
        parts = [reading.trials([path]) for path in reading.paths]
        if all(len(part.systems) == 1 for part in parts):
            return _told_apart(parts, reading.paths), 2
    every = reading.trials()
    trials = choose_systems(every, only)
    names = tuple(dict.fromkeys(only)) or trials.systems
    if len(names) < 2:
        which = "--only names just" if only else f"{', '.join(reading.paths)} holds only"
        raise InputError(f"comparing needs two agents; {which} {names[0]}")
    return [trials.where(system=name) for name in names], len(every.systems)


def _told_apart(parts: list[Trials], paths: tuple[str, ...]) -> list[Trials]:
    """Two runs of one agent go by the names of their files, or what else tells them apart."""
    if parts[0].systems != parts[1].systems:
        return parts
    from passhat.records import Labels

    return [
        replace(part, system=Labels((f"{part.systems[0]} ({label})",), part.system.codes))
        for part, label in zip(parts, _labels(paths), strict=True)
    ]


def _labels(paths: Sequence[str]) -> list[str]:
    """File names, else whole paths, else the one path numbered.

    >>> _labels(["a/new.eval", "a/old.eval"]), _labels(["a/run.eval", "b/run.eval"])
    (['new.eval', 'old.eval'], ['a/run.eval', 'b/run.eval'])
    >>> _labels(["a/run.eval", "a/run.eval"])
    ['run.eval, first', 'run.eval, second']
    """
    files = [Path(path).name for path in paths]
    if len(set(files)) == len(files):
        return files
    if len(set(paths)) == len(paths):
        return list(paths)
    return [f"{file}, {place}" for file, place in zip(files, ("first", "second"), strict=True)]
