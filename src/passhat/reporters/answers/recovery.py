"""How agents recover from faults: the score first, then by kind of fault, then what they did."""

from __future__ import annotations

from passhat.analysis.comparing.recovery import Recovery, RecoveryAt
from passhat.messages import plural
from passhat.reporters.blocks import Bar, Block, Headline, Table
from passhat.reporters.numbers import interval_of, percent_range, points, span, value_of
from passhat.stats.estimate import Estimate, Number

TOLD_K = 5
"""Successes in a row that the sentence speaks of: more are rarely known well enough."""


def recovery_blocks(recovery: Recovery) -> list[Block]:
    """One system with and without faults."""
    blocks: list[Block] = [Headline(_sentence(recovery)), _levels(recovery)]
    if recovery.kinds:
        blocks.append(_kinds(recovery))
    if recovery.reactions:
        blocks.append(_reactions(recovery))
    return blocks


def _sentence(recovery: Recovery) -> str:
    told = [level for level in recovery.levels if level.k <= TOLD_K]
    level = (told or recovery.levels)[-1]
    struck = f"faults struck {recovery.struck:,} of {plural(recovery.trials, 'trial')}"
    if not isinstance(level.score, Estimate):
        return f"How {recovery.system} recovers is not known: {level.score.reason}; {struck}."
    kept = f"{points(level.score.value)} % of its pass^{level.k}"
    bounds = f" ({percent_range(level.score.interval)})" if level.score.interval else ""
    return f"Under faults {recovery.system} keeps {kept}{bounds}; {struck}."


def _levels(recovery: Recovery) -> Table:
    return Table(
        header=("in %", "without", "", "under", "", "kept", "", ""),
        rows=tuple(_level_row(level) for level in recovery.levels),
        left=(0, 2, 4, 6),
    )


def _level_row(level: RecoveryAt) -> tuple[str | Bar, ...]:
    return (
        f"pass^{level.k}",
        *_cells(level.without),
        *_cells(level.under),
        *_cells(level.score),
        Bar(value=_capped(level.score), inner=None),
    )


def _capped(number: Number) -> float | None:
    value = value_of(number)
    return None if value is None else min(1.0, value)


def _kinds(recovery: Recovery) -> Table:
    return Table(
        header=("fault that struck", "trials", "passed", "", "kept", ""),
        rows=tuple(
            (one.kind.replace("_", " "), f"{one.trials:,}", *_cells(one.rate), *_cells(one.score))
            for one in recovery.kinds
        ),
        left=(0, 3, 5),
    )


def _reactions(recovery: Recovery) -> Table:
    return Table(
        header=("what it did next", "trials", "share", "", "passed", ""),
        rows=tuple(
            (one.reaction, f"{one.trials:,}", *_cells(one.share), *_cells(one.rate))
            for one in recovery.reactions
        ),
        left=(0, 3, 5),
    )


def _cells(number: Number) -> tuple[str, str]:
    value = value_of(number)
    return ("-" if value is None else points(value), span(interval_of(number), digits=0))
