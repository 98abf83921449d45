"""Every number of a report by name: what a gate may demand."""

from __future__ import annotations

from collections.abc import Iterator

from passhat.analysis.reports.parts import Feature, Metric, Number, Rounds, RunOrder, VarianceSplit
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.seed_grid import SeedSpread
from passhat.analysis.reports.system_report import SystemReport
from passhat.stats.estimate import Estimate, Scope, Unavailable
from passhat.stats.passk import pass_hat_k

Target = Estimate | float | Unavailable


def targets(
    report: Report | SystemReport, *, scope: Scope = "this suite", tasks: bool = True
) -> dict[str, Target]:
    """The numbers of a system by dotted path, in one scope; with `tasks`, those of each task too.

    Where a report holds several systems, each path is preceded by the system's name.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> found = targets(measure(simulate(tasks=5, runs=4, seed=1)))
    >>> round(found["pass^4"].value, 2), found["decay[1]"]
    (0.8, 80.0)
    """
    if isinstance(report, SystemReport):
        return dict(_paths(report, scope, tasks))
    if len(report.systems) == 1:
        return dict(_paths(report.systems[0], scope, tasks))
    return {
        f"{system.name}: {path}": number
        for system in report.systems
        for path, number in _paths(system, scope, tasks)
    }


def _paths(system: SystemReport, scope: Scope, tasks: bool) -> Iterator[tuple[str, Target]]:
    yield from _metrics(system, scope)
    yield from _spread(system)
    yield from _decay(system)
    yield "error_rate", system.errors.rate
    yield from _labels(system)
    for feature in system.features.values():
        yield from _feature(feature)
    for tool, rate in system.tools.items():
        yield f"selection_rate({tool})", rate
    for kind, parts in (("levels", system.levels), ("tags", system.tags)):
        for name, part in parts.items():
            for path, number in _metrics(part, scope):
                yield f"{kind}[{name}].{path}", number
    if tasks:
        yield from _tasks(system)


def _metrics(system: SystemReport, scope: Scope) -> Iterator[tuple[str, Target]]:
    for name, metric in system.metrics.items():
        yield name, _scoped(metric, scope)
    for k in system.ks:
        yield f"reliability@{k}", _scoped(system.pass_hat(k), scope)


def _scoped(metric: Metric, scope: Scope) -> Number:
    return metric.within(scope)


def _spread(system: SystemReport) -> Iterator[tuple[str, Target]]:
    split, seeds = system.variance, system.seeds
    if isinstance(split, VarianceSplit):
        yield "icc", split.icc
        yield "luck", split.luck
        yield "variance.between_tasks", split.between_tasks
        yield "variance.within_tasks", split.within_tasks
        yield "reliability_of_mean", split.reliability
    else:
        yield from ((name, split) for name in ("icc", "luck", "reliability_of_mean"))
    if isinstance(system.rounds, Rounds):
        yield "rounds.population_sd", system.rounds.population_sd
        yield "rounds.standard_error", system.rounds.standard_error
    if isinstance(seeds, SeedSpread):
        variance = seeds.variance
        yield "seed_variance", variance if isinstance(variance, Unavailable) else variance.between


def _decay(system: SystemReport) -> Iterator[tuple[str, Target]]:
    """The order-dependent descriptions in percent, as their sources state them."""
    order = system.decay.run_order
    if isinstance(order, RunOrder):
        yield "variance_amplification", order.variance_amplification
        yield "graceful_degradation", order.graceful_degradation
        yield "flips", order.flips
        for k, percent in enumerate(order.decay, 1):
            yield f"decay[{k}]", percent
    else:
        yield from ((name, order) for name in ("variance_amplification", "graceful_degradation"))
    for point in system.decay.beyond:
        yield f"model.pass^{point.k}", point.estimate


def _labels(system: SystemReport) -> Iterator[tuple[str, Target]]:
    for label in ("solid", "flaky", "broken"):
        yield f"tasks.{label}", float(system.tasks.count(label))
    yield "tasks.undecided", float(system.tasks.count("too few runs"))
    if len(system.tasks):
        yield "flaky_share", system.tasks.count("flaky") / len(system.tasks)
    for bar in system.bars:
        yield f"bars[{bar.k}].below", float(len(bar.below))
        yield f"bars[{bar.k}].undetermined", float(len(bar.undetermined))
        yield f"bars[{bar.k}].model_share", bar.model_share


def _feature(feature: Feature) -> Iterator[tuple[str, Target]]:
    for name in ("mean", "median", "p95", "passed", "failed", "association"):
        yield f"{feature.name}.{name}", getattr(feature, name)
    if feature.per_streak:
        yield f"{feature.name}.per_success", feature.per_success
        for k, number in feature.per_streak.items():
            yield f"{feature.name}.per_streak[{k}]", number


def _tasks(system: SystemReport) -> Iterator[tuple[str, Target]]:
    for row in system.tasks:
        yield f"tasks[{row.name}].rate", row.rate
        yield f"tasks[{row.name}].mean_score", row.mean_score
        for k in system.ks:
            known = row.runs >= k
            yield (
                f"tasks[{row.name}].pass^{k}",
                pass_hat_k(row.runs, row.passed, k)
                if known
                else Unavailable(f"pass^{k} needs {k} runs; {row.name} has {row.runs}"),
            )
