"""`passhat simulate`: seeded trials of made-up agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from passhat.cli.convert import trials_output_options
from passhat.cli.option_types import Number, Share, WholeNumber
from passhat.cli.options import SectionedCommand, seed_option
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.records import Trials

_COUNT = WholeNumber(min=1)
_PROBABILITY = Number(0, 1)


class WorldOptions(TypedDict):
    """The options that are fields of `World`."""

    luck: float
    shared: float
    seeds: int
    seed_effect: float
    drift: float
    partial: bool
    pass_score: float
    error_rate: float


@click.command(cls=SectionedCommand)
@click.option("--tasks", type=_COUNT, default=20, help="How many tasks.")
@click.option("--runs", type=_COUNT, default=10, help="Runs of each.")
@click.option(
    "--rate",
    "rates",
    metavar="[AGENT=]SHARE",
    multiple=True,
    help="Mean pass rate of an agent; repeat it for several.  [default: 0.7]",
)
@click.option(
    "--luck", type=_PROBABILITY, default=0.6, help="The share of the spread that is luck."
)
@click.option(
    "--shared",
    type=_PROBABILITY,
    default=0.8,
    help="How strongly agents agree on which tasks are hard.",
)
@click.option("--seeds", type=WholeNumber(min=0), default=0, help="Seeds that the runs share.")
@click.option(
    "--seed-effect", type=Number(min=0), default=0.0, help="Spread between seeds, in log-odds."
)
@click.option(
    "--drift", type=float, metavar="NUMBER", default=0.0, help="Change over the runs, in log-odds."
)
@click.option("--partial", is_flag=True, help="Give scores between 0 and 1.")
@click.option(
    "--pass-score", type=Share(), default=0.5, help="With --partial: the score that passes."
)
@click.option("--error-rate", type=_PROBABILITY, default=0.0, help="Share of errored trials.")
@seed_option
@trials_output_options
def simulate(
    tasks: int,
    runs: int,
    rates: tuple[str, ...],
    seed: int,
    write: Callable[[Trials], None],
    **world: Unpack[WorldOptions],
) -> None:
    """Write seeded trials of made-up agents; the same seed gives the same trials.

    \b
      passhat simulate --tasks 50 --runs 8 -o trials.jsonl
      passhat simulate --rate old=0.7 --rate new=0.75 --error-rate 0.02 -o two.csv
    """
    from passhat.analysis.planning.simulate import World
    from passhat.analysis.planning.simulate import simulate as simulate_trials

    made_up = World(**world)
    write(simulate_trials(tasks=tasks, runs=runs, rate=_rates(rates), world=made_up, seed=seed))


def _rates(texts: Sequence[str]) -> dict[str, float]:
    """`0.7` is an agent without a name, `new=0.75` one with."""
    found: dict[str, float] = {}
    for i, text in enumerate(texts or ("0.7",), 1):
        named, _, share = text.rpartition("=")
        name = named or ("agent" if len(texts) < 2 else f"agent-{i}")
        if name in found:
            raise ArgumentError("rates", f"must name each agent once, not {name} again", text)
        try:
            found[name] = float(share)
        except ValueError:
            raise ArgumentError("rates", "must be a share or AGENT=SHARE", text) from None
    return found
