"""The picture of one task over the runs of its suite."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.drawing import Figure, Series, line_chart
from passhat.history.lookups import TaskMoment
from passhat.stats.estimate import Unavailable
from passhat.stats.proportions import proportion_interval


def plot_task(moments: Sequence[TaskMoment]) -> Figure | Unavailable:
    """The pass rate of a task run by run, with intervals; oldest first."""
    if len(moments) < 2:
        return Unavailable("a line over history needs two runs")
    rates = [moment.passed / moment.trials for moment in moments]
    bounds = [proportion_interval(moment.passed, moment.trials) for moment in moments]
    return line_chart(
        [
            Series(
                name="pass rate",
                x=list(range(len(moments))),
                y=rates,
                low=[bound.low for bound in bounds],
                high=[bound.high for bound in bounds],
            )
        ],
        title="This task over history",
        finding=f"From {100 * rates[0]:.0f} % to {100 * rates[-1]:.0f} % over {len(rates)} runs.",
        x_label="run, oldest first",
        y_label="pass rate",
        y_range=(0, 1),
        y_kind="percent",
        x_names=[(moment.commit or moment.key)[:9] for moment in moments],
    )
