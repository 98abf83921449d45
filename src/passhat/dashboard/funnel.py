"""How the pass rates of a run in progress close in on its gate, as a picture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from passhat.drawing import Guide, Series, line_chart
from passhat.records import Outcome
from passhat.stats.sequential import confidence_sequence

if TYPE_CHECKING:
    from passhat.dashboard.live import Expected

MOST_POINTS = 60
"""Points of a line: more cannot be told apart on a screen."""

MOST_SYSTEMS = 3
"""Systems that are drawn; the bands of more would cover one another."""

_ONE_TRY = re.compile(r"(?:pass[@^]1|mean_score)\s*>=?\s*([0-9.]+)\s*(%?)", re.IGNORECASE)


@dataclass(slots=True)
class Funnel:
    """Runs and passes of each system, from the beginning of the run to now."""

    counts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def replay(self, outcomes: Sequence[tuple[str, int]]) -> None:
        """What happened before anybody looked."""
        so_far: dict[str, tuple[int, int]] = {}
        step = max(1, len(outcomes) // MOST_POINTS)
        for place, (system, outcome) in enumerate(outcomes, 1):
            runs, passed = so_far.get(system, (0, 0))
            so_far[system] = (runs + 1, passed + (outcome == Outcome.PASSED))
            if place % step == 0 or place == len(outcomes):
                self.add(so_far)

    def add(self, now: Mapping[str, tuple[int, int]]) -> None:
        """The counts at this moment; where there are too many points every other one goes."""
        for system, point in now.items():
            points = self.counts.setdefault(system, [])
            if not points or points[-1] != point:
                points.append(point)
            if len(points) > 2 * MOST_POINTS:
                del points[1:-1:2]

    def drawn(self, expected: Expected) -> str:
        """The picture as SVG; empty until there is something to draw."""
        shown = [(name, points) for name, points in self.counts.items() if len(points) > 1]
        if not shown:
            return ""
        series = [_series(name, points) for name, points in shown[:MOST_SYSTEMS]]
        longest = max(points[-1][0] for _, points in shown)
        whole = expected.planned or longest
        figure = line_chart(
            series,
            title="The interval closes in",
            finding=_finding(series[0], expected.gates),
            x_label="runs done",
            y_label="passed",
            y_range=(0, 1),
            y_kind="percent",
            x_range=(0, max(longest, whole // max(1, len(self.counts)))),
            guides=[
                Guide(name=f"gate: {text}", y=level)
                for text in expected.gates
                if (level := gate_level(text)) is not None
            ],
        )
        return figure.svg()


def gate_level(gate: str) -> float | None:
    """The level that a gate on single attempts asks for; None for any other gate.

    >>> gate_level("pass^1 >= 80%"), gate_level("pass^3 >= 0.8")
    (0.8, None)
    """
    match = _ONE_TRY.fullmatch(gate.strip())
    if match is None:
        return None
    level = float(match[1]) / (100 if match[2] else 1)
    return level if 0 <= level <= 1 else None


def _series(name: str, points: Sequence[tuple[int, int]]) -> Series:
    intervals = [confidence_sequence(runs, passed) for runs, passed in points]
    return Series(
        name=name,
        x=[runs for runs, _ in points],
        y=[passed / runs for runs, passed in points],
        low=[one.low for one in intervals],
        high=[one.high for one in intervals],
        dots=False,
    )


def _finding(series: Series, gates: Sequence[str]) -> str:
    low, high = (series.low or [0.0])[-1], (series.high or [1.0])[-1]
    said = f"{series.name}: {100 * series.y[-1]:.0f} % so far, from {100 * low:.0f} to "
    said += f"{100 * high:.0f} % at every look."
    levels = [level for gate in gates if (level := gate_level(gate)) is not None]
    inside = [level for level in levels if low <= level <= high]
    if inside:
        said += f" The gate's line of {100 * inside[0]:.0f} % is still inside."
    elif levels:
        said += f" The gate's line of {100 * levels[0]:.0f} % is outside."
    return said
