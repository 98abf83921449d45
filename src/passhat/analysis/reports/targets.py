"""A number by its name: parsed from text, found in a report, read from a single run.

How a number is written is known without a report: parsing loads neither numpy nor the reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import closest, short
from passhat.records.trial import FEATURES, Outcome, Trial
from passhat.stats.estimate import Estimate, Scope, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.parts import SystemReport
    from passhat.analysis.reports.report import Report
    from passhat.stats.decay import SequenceDecay

# What each placeholder of a pattern may be, and an example of it.
_PLACES = {
    "k": (r"[1-9]\d*", "3"),
    "percent": (r"[1-9]\d?", "95"),
    "feature": ("|".join(FEATURES), "seconds"),
    "task": (".+", "refund"),
    "level": (".+", "hard"),
    "tag": (".+", "booking"),
    "tool": (".+?", "get_weather"),
    "step": (".+", "book"),
}
_NAMED = ("task", "tag", "level", "step")
"""Places whose names are those of the results."""

# Other names for a target of another form.
_SYNONYMS = (("reliability@{k}", "pass^{k}"), ("pass rate", "pass^1"))


@dataclass(frozen=True, slots=True)
class Target:
    """A number that can be named: `pass^3`, `icc`, `tags[hard].pass^3`.

    >>> target = parse_target("reliability@3")
    >>> str(target), target.k, target.is_share
    ('pass^3', 3, True)
    """

    name: str
    form: MetricForm = field(repr=False, compare=False)
    places: Places = field(repr=False, compare=False, default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def is_share(self) -> bool:
        """Whether the number lies between 0 and 1."""
        return self.form.is_share

    @property
    def k(self) -> int | None:
        """How many attempts it is about."""
        return int(self.places["k"]) if "k" in self.places else None

    @property
    def is_metric(self) -> bool:
        """Whether it is a metric of the whole suite: mean_score, pass^k or pass@k."""
        return self.is_mean_score or self.attempts is not None

    @property
    def is_mean_score(self) -> bool:
        return self.name == "mean_score"

    @property
    def attempts(self) -> tuple[str, int] | None:
        """The metric and its k, of the suite's pass^k and pass@k; None of any other number.

        >>> parse_target("pass^3").attempts, parse_target("icc").attempts
        (('pass^k', 3), None)
        """
        if self.form.pattern not in ("pass^{k}", "pass@{k}"):
            return None
        return self.form.pattern.format(k="k"), int(self.places["k"])

    @property
    def quantile(self) -> tuple[str, float] | None:
        """The feature and the share, of a quantile such as seconds.p95; None of others."""
        if self.form.pattern not in ("{feature}.p{percent}", "{feature}.median"):
            return None
        return self.places["feature"], int(self.places.get("percent", "50")) / 100

    @property
    def tool(self) -> str | None:
        """The tool of a selection rate."""
        return self.places.get("tool")

    @property
    def names(self) -> dict[str, str]:
        """The task, tag, level or step that it is about, by kind."""
        return {kind: name for kind, name in self.places.items() if kind in _NAMED}

    def value_in(self, system: SystemReport, scope: Scope) -> Value:
        """The number in the report of a system."""
        values = dict(self.form.find(system, scope))
        return values.get(self.name, Unavailable(f"these trials have no {self.name}"))

    def read(self, trial: Trial) -> float | None:
        """The value of one run, or None if the run errored."""
        assert self.form.read is not None, "the caller knows that runs are counted"
        return self.form.read(self.places, trial)


def targets(
    report: Report | SystemReport, *, scope: Scope = "this suite", tasks: bool = True
) -> dict[str, Value]:
    """The numbers of a system by name, in one scope; with `tasks`, those of each task too.

    If a report holds several systems, each name begins with that of its system.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> values = targets(measure(simulate(tasks=5, runs=4, seed=1)))
    >>> round(values["pass^4"].value, 2), values["decay[1]"]
    (0.8, 80.0)
    """
    from passhat.analysis.reports.parts import SystemReport
    from passhat.analysis.reports.report import Report

    if not isinstance(report, Report | SystemReport):
        raise ArgumentError("report", "must be a report; passhat.report(trials) makes one", report)
    systems = [report] if isinstance(report, SystemReport) else report.systems
    return {
        f"{system.name}: {name}" if len(systems) > 1 else name: value
        for system in systems
        for form in METRIC_FORMS
        if tasks or not form.pattern.startswith("tasks[")
        for name, value in form.find(system, scope)
    }


def parse_target(text: str) -> Target:
    """The target that people mean by a name.

    >>> [str(parse_target(text)) for text in ("cost per success", "p95(seconds)", "pass rate")]
    ['cost.per_success', 'seconds.p95', 'pass^1']
    """
    wanted = " ".join(text.split())
    for words, pattern in _SYNONYMS:
        if match := _match(words, wanted, in_words=True):
            wanted = pattern.format(**match.groupdict())
    spoken = ((words, form, True) for form in METRIC_FORMS for words in form.also)
    exact = ((form.pattern, form, False) for form in METRIC_FORMS)
    for pattern, form, in_words in (*spoken, *exact):
        if match := _match(pattern, wanted, in_words=in_words):
            places = match.groupdict()
            return Target(form.pattern.format(**places), form, places)
    called = f"no number is called {short(wanted)}; {_hint(wanted)}"
    raise ArgumentError("gate", "must name a number of the report", wanted, sentence=called)


def _match(pattern: str, wanted: str, *, in_words: bool) -> re.Match[str] | None:
    """A text of a pattern: exactly or, in words, in any case with _ for spaces.

    To compile all patterns takes a twentieth of `passhat run`: those that begin otherwise are not.
    """
    begins = pattern.partition("{")[0].partition("(")[0]
    if _folded(wanted[: len(begins)]) != _folded(begins):
        return None
    return _compiled(pattern, in_words).fullmatch(wanted)


def _folded(text: str) -> str:
    return text.casefold().replace("_", " ")


@cache
def _compiled(pattern: str, in_words: bool) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", pattern)
    pieces[1::2] = [f"(?P<{place}>{_PLACES[place][0]})" for place in pieces[1::2]]
    pieces[::2] = map(re.escape, pieces[::2])
    text = "".join(pieces)
    if not in_words:
        return re.compile(text)
    spaced = text.replace(r"\ ", "[ _]").replace(r"\(", r"\(\s*").replace(r"\)", r"\s*\)")
    return re.compile(spaced, re.IGNORECASE)


def _hint(wanted: str) -> str:
    listing = "`passhat.targets(report)` lists them"
    near = closest(wanted.lower(), _examples(wanted), cutoff=0.5)
    return f'did you mean "{near}"? ({listing})' if near else listing


def _examples(wanted: str) -> list[str]:
    """Numbers that may be meant, with the k that was written."""
    usual = {place: example for place, (_, example) in _PLACES.items()}
    names = [form.pattern.format(**usual) for form in METRIC_FORMS]
    names += [f"{feature}.mean" for feature in FEATURES] + ["cost per success", "pass_rate"]
    if (k := re.search(r"[1-9]\d*", wanted)) is None:
        return names
    return [re.sub(r"([\^@\[])\d+", rf"\g<1>{k[0]}", name) for name in names]


Value = Estimate | float | Unavailable
"""A number in a report; a bare float has no interval."""

Places = Mapping[str, str]
"""The values of the placeholders of a pattern: {"k": "3"} in pass^3."""

Named = Iterator[tuple[str, Value]]
Find = Callable[["SystemReport", Scope], Named]
Read = Callable[[Places, Trial], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricForm:
    """Targets that are written alike, such as those of the pattern `pass^{k}`.

    `find` gives all that a report has, by name. `also` are other ways to write one. `read` gives
    the value of a single run, for numbers that count runs.
    """

    pattern: str
    meaning: str
    find: Find
    is_share: bool = False
    also: tuple[str, ...] = ()
    read: Read | None = None


def passed(trial: Trial) -> float | None:
    """1 for a pass, 0 for a failure, None for an error."""
    return None if trial.outcome is Outcome.ERRORED else float(trial.outcome is Outcome.PASSED)


def _other(
    pattern: str,
    meaning: str,
    find: Find,
    *also: str,
    read: Read | None = None,
    is_share: bool = False,
) -> MetricForm:
    """Counts, amounts or percentages."""
    return MetricForm(
        pattern=pattern, meaning=meaning, find=find, is_share=is_share, also=also, read=read
    )


# Numbers that lie between 0 and 1.
_share = partial(_other, is_share=True)


def _metrics(sign: str, *, called: str = "", within: str = "") -> Find:
    """pass^k or pass@k for each k that was measured, of a system or of each of its parts."""

    def find(system: SystemReport, scope: Scope) -> Named:
        for before, part in _parts(system, within):
            for k in part.ks:
                metric = part.metrics[f"pass{sign}{k}"]
                yield f"{before}{called or 'pass' + sign}{k}", metric.within(scope)

    return find


def _mean_score(within: str = "") -> Find:
    return lambda system, scope: (
        (f"{before}mean_score", part.mean_score.within(scope))
        for before, part in _parts(system, within)
    )


def _parts(system: SystemReport, within: str) -> Iterator[tuple[str, SystemReport]]:
    if not within:
        return iter([("", system)])
    parts = system.levels if within == "levels" else system.tags
    return ((f"{within}[{name}].", part) for name, part in parts.items())


def _spread(name: str, attribute: str) -> Find:
    def find(system: SystemReport, _: Scope) -> Named:
        split = system.variance
        if not isinstance(split, Unavailable):
            yield name, getattr(split, attribute)
        elif not name.startswith("variance."):
            yield name, split

    return find


def _rounds(attribute: str) -> Find:
    def find(system: SystemReport, _: Scope) -> Named:
        if not isinstance(system.rounds, Unavailable):
            yield f"rounds.{attribute}", getattr(system.rounds, attribute)

    return find


def _all_steps(system: SystemReport, _: Scope) -> Named:
    if system.steps is not None:
        yield "steps.all", system.steps.all_steps


def _weakest_step(system: SystemReport, _: Scope) -> Named:
    if system.steps is not None:
        # The lowest of several is no estimate of one of them, and has no interval.
        yield "steps.weakest", system.steps.steps[system.steps.weakest].value


def _each_step(system: SystemReport, _: Scope) -> Named:
    for name, rate in system.steps.steps.items() if system.steps is not None else ():
        yield f"steps[{name}].pass_rate", rate


def _seed_variance(system: SystemReport, _: Scope) -> Named:
    if not isinstance(system.seeds, Unavailable):
        variance = system.seeds.variance
        between = variance if isinstance(variance, Unavailable) else variance.between
        yield "seed_variance", between


def _run_order(name: str) -> Find:
    def find(system: SystemReport, _: Scope) -> Named:
        order = system.decay.run_order
        if not isinstance(order, Unavailable):
            yield name, getattr(order, name)
        elif name != "flips":
            yield name, order

    return find


def _decay(system: SystemReport, _: Scope) -> Named:
    order = system.decay.run_order
    if not isinstance(order, Unavailable):
        yield from ((f"decay[{k}]", percent) for k, percent in enumerate(order.decay, 1))


def _hal(name: str) -> Find:
    return lambda system, _: iter([(name, system.hal[name].number)] if name in system.hal else [])


def _labelled(label: str) -> Find:
    return lambda system, _: iter([(f"tasks.{label}", float(system.tasks.count(label)))])


def _flaky_share(system: SystemReport, _: Scope) -> Named:
    if len(system.tasks):
        yield "flaky_share", system.tasks.count("flaky") / len(system.tasks)


def _bars(attribute: str) -> Find:
    def find(system: SystemReport, _: Scope) -> Named:
        for bar in system.bars:
            value = getattr(bar, attribute)
            counted = float(len(value)) if isinstance(value, tuple) else value
            yield f"bars[{bar.k}].{attribute}", counted

    return find


def _features(attribute: str) -> Find:
    def find(system: SystemReport, _: Scope) -> Named:
        for feature in system.features.values():
            if attribute != "per_success" or feature.per_streak:
                yield f"{feature.name}.{attribute}", getattr(feature, attribute)

    return find


def _per_streak(system: SystemReport, _: Scope) -> Named:
    for feature in system.features.values():
        for k, number in feature.per_streak.items():
            yield f"{feature.name}.per_streak[{k}]", number


def _task(attribute: str) -> Find:
    return lambda system, _: (
        (f"tasks[{row.name}].{attribute}", getattr(row, attribute)) for row in system.tasks
    )


def _task_streaks(system: SystemReport, _: Scope) -> Named:
    from passhat.stats.passk import pass_hat_k

    for row in system.tasks:
        for k in system.ks:
            short = Unavailable(f"pass^{k} needs {k} trials; {row.name} has {row.runs}")
            value = pass_hat_k(row.runs, row.passed, k) if row.runs >= k else short
            yield f"tasks[{row.name}].pass^{k}", value


def _task_order(attribute: str) -> Find:
    """One number a task that depends on the order of its runs; none where only counts were read."""

    def find(system: SystemReport, _: Scope) -> Named:
        for task, order in _orders(system):
            value = getattr(order, attribute)
            yield f"tasks[{task}].{attribute}", float(value) if isinstance(value, int) else value

    return find


def _task_decay(system: SystemReport, _: Scope) -> Named:
    for task, order in _orders(system):
        for k, percent in enumerate(order.curve, 1):
            yield f"tasks[{task}].decay[{k}]", float(percent)


def _orders(system: SystemReport) -> Iterator[tuple[str, SequenceDecay]]:
    from passhat.stats.decay import describe_sequences

    errored = "F" if system.errors.policy == "fail" else ""
    kept = [
        (row.name, text)
        for row in system.tasks
        if (text := (row.sequence or "").replace("E", errored))
    ]
    described = describe_sequences([[run == "P" for run in text] for _, text in kept])
    yield from zip((name for name, _ in kept), described, strict=True)


def _read_passed(_: Places, trial: Trial) -> float | None:
    return passed(trial)


def _read_called(places: Places, trial: Trial) -> float | None:
    return None if trial.outcome is Outcome.ERRORED else float(places["tool"] in trial.tools)


def _read_feature(places: Places, trial: Trial) -> float | None:
    value: float | None = getattr(trial, places["feature"])
    return None if trial.outcome is Outcome.ERRORED else value


def _of_each(within: str, kind: str) -> Iterator[MetricForm]:
    """The metrics of each level or tag."""
    before, of = f"{within}[{{{kind}}}].", f"of the tasks of one {kind}"
    yield _share(f"{before}mean_score", f"the mean score {of}", _mean_score(within))
    for sign in "^@":
        pattern = f"{before}pass{sign}{{k}}"
        yield _share(pattern, f"pass{sign}k {of}", _metrics(sign, within=within))
    yield _share(
        f"{before}reliability@{{k}}",
        f"another name for pass^k {of}",
        _metrics("^", called="reliability@", within=within),
    )


# The only list of numbers that have a name, in the order in which they are listed: what `report
# --targets` prints, what a gate accepts and what the reference shows are made from it.
METRIC_FORMS: tuple[MetricForm, ...] = (
    _share(
        "mean_score", "the mean score over tasks, partial credit counted", _mean_score(),
        "mean score",
        read=lambda _, trial: None if trial.outcome is Outcome.ERRORED else trial.score,
    ),
    _share(
        "pass^{k}", "the chance that k attempts at a task all succeed", _metrics("^"),
        read=_read_passed,
    ),
    _share(
        "pass@{k}", "the chance that at least one of k attempts succeeds", _metrics("@"),
        read=_read_passed,
    ),
    _share(
        "reliability@{k}", "another name for pass^k", _metrics("^", called="reliability@"),
        read=_read_passed,
    ),
    *(
        _other(name, meaning, _hal(name))
        for name, meaning in (
            ("consistency_outcome", "1 minus twice the chance that two trials of a task differ"),
            ("consistency_trajectory_distribution", "how alike the calls of passing trials are"),
            ("consistency_trajectory_sequence", "how alike they are in the order of their calls"),
            ("consistency_resource", "the smaller over the larger of what two trials take"),
            ("safety_compliance", "the share of trials that break no constraint"),
            ("safety_harm_severity", "1 minus the severity of a trial's gravest violation"),
            ("robustness_fault_injection", "what is kept of the pass rate under faults"),
            ("robustness_structural", "what is kept of it in a changed environment"),
            ("robustness_prompt_variation", "what is kept of it with other wordings"),
            ("predictability_calibration", "1 minus the calibration error of stated confidence"),
            ("predictability_roc_auc", "the chance that a pass was stated above a failure"),
            ("predictability_brier_score", "1 minus the Brier score of stated confidence"),
        )
    ),
    _share("icc", "the share of the spread that lies between tasks", _spread("icc", "icc")),
    _share("luck", "the share of the spread that is chance, not the task", _spread("luck", "luck")),
    _other(
        "variance.between_tasks", "the variance of scores between tasks",
        _spread("variance.between_tasks", "between_tasks"),
    ),
    _other(
        "variance.within_tasks", "the variance of scores within tasks",
        _spread("variance.within_tasks", "within_tasks"),
    ),
    _share(
        "reliability_of_mean", "how well the means of tasks tell tasks apart",
        _spread("reliability_of_mean", "reliability"),
    ),
    _other(
        "rounds.population_sd", "how far whole rounds differ, as leaderboards quote it",
        _rounds("population_sd"),
    ),
    _other(
        "rounds.standard_error", "the standard error of the mean over rounds",
        _rounds("standard_error"),
    ),
    _other("seed_variance", "the variance between seeds", _seed_variance),
    _other(
        "variance_amplification", "how much outcomes vary, 0 to 100 (mcptest)",
        _run_order("variance_amplification"),
    ),
    _other(
        "graceful_degradation", "the share of late weight that passed, 0 to 100 (mcptest)",
        _run_order("graceful_degradation"),
    ),
    _other("flips", "how often neighbouring trials differ, in percent", _run_order("flips")),
    _other("decay[{k}]", "reliability after k trials in order, 0 to 100 (mcptest)", _decay),
    _share(
        "model.pass^{k}", "pass^k beyond the trials there are, by a model",
        lambda system, _: ((f"model.pass^{p.k}", p.estimate) for p in system.decay.beyond),
    ),
    _share(
        "error_rate", "the share of trials that errored",
        lambda system, _: iter([("error_rate", system.errors.rate)]), "error rate",
        read=lambda _, trial: float(trial.outcome is Outcome.ERRORED),
    ),
    _other("tasks.solid", "how many tasks are solid", _labelled("solid")),
    _other("tasks.flaky", "how many tasks are flaky", _labelled("flaky")),
    _other("tasks.broken", "how many tasks are broken", _labelled("broken")),
    _other("tasks.undecided", "how many have no label yet", _labelled("undecided")),
    _share("flaky_share", "the share of tasks that are flaky", _flaky_share),
    _other("bars[{k}].above", "tasks certified to clear their bar on pass^k", _bars("above")),
    _other("bars[{k}].below", "tasks certified to miss their bar on pass^k", _bars("below")),
    _other("bars[{k}].undetermined", "tasks with neither certified", _bars("undetermined")),
    _share(
        "bars[{k}].model_share", "the share of tasks above their bar, by a model",
        _bars("model_share"),
    ),
    _other("{feature}.mean", "the mean over trials", _features("mean"), "mean({feature})"),
    _other(
        "{feature}.median", "the median over trials", _features("median"), "median({feature})",
        read=_read_feature,
    ),
    _other(
        "{feature}.p{percent}", "a quantile over trials, p1 to p99", _features("p95"),
        "p{percent}({feature})", read=_read_feature,
    ),
    _other("{feature}.passed", "the mean over trials that passed", _features("passed")),
    _other("{feature}.failed", "the mean over trials that failed", _features("failed")),
    _other("{feature}.errored", "the mean over trials that errored", _features("errored")),
    _other("{feature}.difference", "passed minus failed", _features("difference")),
    _other(
        "{feature}.association", "its correlation with passing, within tasks",
        _features("association"),
    ),
    _other(
        "{feature}.per_success", "all that was spent, over all successes",
        _features("per_success"), "{feature} per success",
    ),
    _other("{feature}.per_streak[{k}]", "what k successes in a row cost", _per_streak),
    _share(
        "selection_rate({tool})", "the share of trials in which the tool was called",
        lambda system, _: ((f"selection_rate({t})", r) for t, r in system.tools.items()),
        "selection rate({tool})", read=_read_called,
    ),
    _share("steps.all", "the chance that a run passes every step of its task", _all_steps),
    _share("steps.weakest", "the pass rate of the step that fails most", _weakest_step),
    _share(
        "steps[{step}].pass_rate", "the share of runs that pass a step, of those that reach it",
        _each_step,
    ),
    *_of_each("levels", "level"),
    *_of_each("tags", "tag"),
    _share("tasks[{task}].rate", "the pass rate of one task", _task("rate")),
    _share("tasks[{task}].mean_score", "the mean score of one task", _task("mean_score")),
    _share("tasks[{task}].pass^{k}", "pass^k of one task", _task_streaks),
    _other(
        "tasks[{task}].variance_amplification", "how much outcomes of one task vary (mcptest)",
        _task_order("variance_amplification"),
    ),
    _other(
        "tasks[{task}].graceful_degradation", "the share of late weight of one task (mcptest)",
        _task_order("graceful_degradation"),
    ),
    _other("tasks[{task}].flips", "how often trials of one task differ", _task_order("flips")),
    _other("tasks[{task}].decay[{k}]", "reliability of one task after k trials", _task_decay),
)  # fmt: skip
