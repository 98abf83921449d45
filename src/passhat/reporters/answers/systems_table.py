"""Several systems, levels or tags in one table, a row each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from passhat.analysis.reports.metrics import all_errored, common_k, is_judged
from passhat.analysis.reports.parts import Metric
from passhat.analysis.reports.report import SystemReport
from passhat.records.trial import NaturalKey, natural_key
from passhat.reporters.blocks import Bar, Cell, Table
from passhat.reporters.numbers import both_intervals, percent, points, span, value_of
from passhat.reporters.wording import common_design
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE


def most_reliable_first(
    systems: Iterable[SystemReport], *, k: int | None = None
) -> list[SystemReport]:
    """The systems by the number their table leads with, those without one last; ties by name."""
    found = list(systems)
    k = common_k(found) if k is None else k

    def place(system: SystemReport) -> tuple[bool, float, NaturalKey]:
        value = system.pass_hat(k).value if is_judged(system, k) else None
        # What differs by a rounding error of a sum is shown alike.
        return value is None, -round(value or 0.0, 12), natural_key(system.name)

    return sorted(found, key=place)


def systems_table(
    systems: Mapping[str, SystemReport], title: str, *, asked: Sequence[int] | None = None
) -> Table:
    """pass^k of each, and both intervals at the last k; what errors do to it, if there are any.

    The k are 1 and that of the headline, or every one that was `asked` for. Tasks and runs have
    columns only if they differ.
    """
    ks = _shown_ks(systems, asked)
    errors = any(system.errors.count for system in systems.values())
    differ = common_design(list(systems.values())) is None
    header = [title, *(["tasks", "runs"] if differ else []), *(f"pass^{k}" for k in ks)]
    scopes = len(header), len(header) + 1
    header += [THIS_SUITE, TASKS_LIKE_THESE]
    if errors:
        policy = next(iter(systems.values())).errors.policy
        header += ["errors", "excl. errors" if policy == "fail" else "incl. errors"]
    rows = tuple(
        _row(name, system, ks, differ=differ, errors=errors) for name, system in systems.items()
    )
    spare = (len(header) - 1, scopes[1]) if errors else (scopes[1],)
    return Table(header=(*header, ""), rows=rows, left=(0, *scopes), spare=spare)


def _shown_ks(systems: Mapping[str, SystemReport], asked: Sequence[int] | None) -> list[int]:
    if asked is None:
        return sorted({1, common_k(systems.values())})
    measured = {k for system in systems.values() for k in system.ks}
    return sorted({1, *asked} & (measured | {1}))


def _row(
    name: str, system: SystemReport, ks: Sequence[int], *, differ: bool, errors: bool
) -> tuple[Cell, ...]:
    lead = _streak(system, ks[-1])
    cells: list[Cell] = [name]
    if differ:
        cells += [f"{system.design.tasks:,}", _runs(system)]
    cells += [_once(system) if k == 1 else _points(_streak(system, k)) for k in ks]
    cells += map(span, both_intervals(lead))
    if errors:
        other = system.errors.otherwise.get(f"pass^{ks[-1]}", lead)
        cells += [percent(value_of(system.errors.rate)), _points(other if lead else None)]
    return (*cells, Bar.of(lead))


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
    return points(None if metric is None else metric.value, digits=1)
