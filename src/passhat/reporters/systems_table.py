"""Several systems, levels or tags in one table, a row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passhat.analysis.reports.headline import all_errored, common_k, is_judged
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.system_report import SystemReport
from passhat.records.natural_order import NaturalKey, natural_key
from passhat.reporters.blocks import Bar, Cell, Table
from passhat.reporters.numbers import interval_of, percent, points, span
from passhat.reporters.wording import common_design
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate


def most_reliable_first(systems: Iterable[SystemReport]) -> list[SystemReport]:
    """The systems by the number their table leads with, those without one last; ties by name."""
    found = list(systems)
    k = common_k(found)

    def place(system: SystemReport) -> tuple[bool, float, NaturalKey]:
        value = system.pass_hat(k).value if is_judged(system, k) else None
        # What differs by a rounding error of a sum is shown alike.
        return value is None, -round(value or 0.0, 12), natural_key(system.name)

    return sorted(found, key=place)


def systems_table(
    systems: Mapping[str, SystemReport], title: str, *, both_scopes: bool = False
) -> Table:
    """pass^1 and the headline pass^k of each; what errors do to it, where there are any.

    Tasks and runs have columns only where they differ; `both_scopes` is for where there is room.
    """
    k = common_k(systems.values())
    errors = any(system.errors.count for system in systems.values())
    differ = common_design(list(systems.values())) is None
    header = [title, *dict.fromkeys(("pass^1", f"pass^{k}")), THIS_SUITE]
    header += [TASKS_LIKE_THESE] if both_scopes else []
    header[1:1] = ["tasks", "runs"] if differ else []
    if errors:
        header += ["errors", "without" if _policy(systems) == "fail" else "with"]
    rows = tuple(
        _row(name, system, k, differ=differ, both_scopes=both_scopes, errors=errors)
        for name, system in systems.items()
    )
    left = [i for i, head in enumerate(header) if i == 0 or head in (THIS_SUITE, TASKS_LIKE_THESE)]
    return Table(header=(*header, ""), rows=rows, left=tuple(left))


def _policy(systems: Mapping[str, SystemReport]) -> str:
    return next(iter(systems.values())).errors.policy


def _row(
    name: str, system: SystemReport, k: int, *, differ: bool, both_scopes: bool, errors: bool
) -> tuple[Cell, ...]:
    streak = _streak(system, k)
    inner = interval_of(streak.this_suite) if streak else None
    outer = interval_of(streak.tasks_like_these) if streak else None
    cells: list[Cell] = [name]
    if differ:
        cells += [f"{system.design.tasks:,}", _runs(system)]
    if k > 1:
        cells.append(_once(system))
    cells += [_points(streak), span(inner), *([span(outer)] if both_scopes else [])]
    if errors:
        rate = system.errors.rate
        share = percent(rate.value) if isinstance(rate, Estimate) else "-"
        other = system.errors.otherwise.get(f"pass^{k}", streak)
        cells += [share, _points(other if streak else None)]
    return (*cells, Bar(value=streak.value if streak else None, inner=inner, outer=outer))


def _streak(system: SystemReport, k: int) -> Metric | None:
    """pass^k where it is judged, or where nothing but errors count as failures."""
    found = system.metrics.get(f"pass^{k}")
    return found if is_judged(system, k) or all_errored(system) else None


def _runs(system: SystemReport) -> str:
    shape = system.design
    return str(shape.most_runs) if shape.equal_runs else f"{shape.fewest_runs}-{shape.most_runs}"


def _once(system: SystemReport) -> str:
    """pass^1, also where only larger k were asked for: the mean rate of its tasks."""
    if not len(system.tasks):
        return "-"
    return points(float(system.tasks.rate.mean()), digits=1)


def _points(metric: Metric | None) -> str:
    return "-" if metric is None or metric.value is None else points(metric.value, digits=1)
