"""`passhat compare`: is one agent better than another?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.options import (
    Analysing,
    Reading,
    Share,
    again_options,
    analysis_options,
    choose_systems,
    output_options,
    reading_options,
)
from passhat.cli.output import Output
from passhat.errors import InputError

if TYPE_CHECKING:
    from passhat.records import Trials

FORMATS = {
    "text": "passhat.reporters.comparison_blocks:render_comparison",
    "json": "passhat.reporters.json_answers:render_comparison_json",
    "markdown": "passhat.reporters.comparison_blocks:render_comparison_markdown",
    "html": "passhat.reporters.answer_page:render_comparison_html",
    "svg": "passhat.reporters.answer_page:render_comparison_svg",
}


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
    More than two agents are ranked.

    \b
      passhat compare new.eval old.eval
      passhat compare results.csv --only gpt-5 --only o3 --margin 0.02
    """
    sides = _sides(reading, only)
    if len(sides) > 2:
        from passhat.cli.rank import write_ranking

        output.say(f"{len(sides)} agents: ranking them (--only names two to compare)")
        again = reading.again(*again_options(analysing, ()))
        tallies = [side.tally() for side in sides]
        write_ranking(tallies, "mean_score", analysing, output, again=again)
        return
    from passhat.analysis.comparison import compare as compare_systems

    answer = compare_systems(
        sides[0],
        sides[1],
        ks=analysing.ks,
        margin=margin,
        confidence=analysing.confidence,
        errors=analysing.errors,
        seed=analysing.seed,
    )
    output.write(answer, FORMATS)


def _sides(reading: Reading, only: tuple[str, ...]) -> list[Trials]:
    """Two files of one agent each are two sides; else each agent is one."""
    if len(reading.paths) == 2 and not only:
        parts = [reading.trials([path]) for path in reading.paths]
        if all(len(part.systems) == 1 for part in parts):
            return _told_apart(parts, reading.paths)
    trials = choose_systems(reading.trials(), only)
    names = only or trials.systems
    if len(names) < 2:
        raise InputError(
            f"comparing needs two agents; {', '.join(reading.paths)} holds only {names[0]}"
        )
    return [trials.where(system=name) for name in names]


def _told_apart(parts: list[Trials], paths: tuple[str, ...]) -> list[Trials]:
    """Two runs of one agent go by the names of their files."""
    if parts[0].systems != parts[1].systems:
        return parts
    from passhat.records import Labels

    return [
        replace(part, system=Labels((f"{part.systems[0]} ({Path(path).name})",), part.system.codes))
        for part, path in zip(parts, paths, strict=True)
    ]
