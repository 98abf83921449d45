"""The sentence that a report opens with: can you depend on the agent, and who of several leads?"""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.reports.dependence import disturbance_sentence
from passhat.analysis.reports.evidence import too_few_runs
from passhat.analysis.reports.metrics import UNNAMED
from passhat.analysis.reports.parts import (
    Leaders,
    Metric,
    SystemReport,
    all_errored,
    common_k,
    headline_k,
    is_judged,
)
from passhat.analysis.reports.report import Report
from passhat.messages import plural
from passhat.reporters.answer import StatusLabel
from passhat.reporters.formatting import (
    LONGEST_NAME,
    interval_of,
    percent,
    percent_range,
    short,
    shorten,
    shorten_apart,
)
from passhat.stats.estimate import FEW_TASKS, Estimate, Interval, Scope, Unavailable

DEPENDABLE = 0.9
"""The line the opening sentence draws: k successes in a row at least nine times in ten."""

ONE_ATTEMPT = "pass^1"
LONGEST_REASON = 160
_MOST_NAMES = 3


def opening(report: Report) -> str:
    """The sentence that a report opens with, on one system or on several."""
    return overview(report) if len(report.systems) > 1 else verdict(report.systems[0])


def verdict(system: SystemReport, *, k: int | None = None) -> str:
    """The answer in one sentence; before it, what makes the runs less than independent.

    `k` asks for another k than the headline's.
    """
    disturbed = disturbance_sentence(system.disturbances)
    answer = _answer(system, headline_k(system) if k is None else k)
    return answer if disturbed is None else f"{disturbed} {answer}"


def overview(report: Report, *, k: int | None = None) -> str:
    """The answer about several systems in one sentence, at the k of the headline or another."""
    leaders = report.leaders if k is None else report.leaders_at(k)
    k = common_k(report.systems) if k is None else k
    judged = [one for one in report.systems if is_judged(one, k)]
    if not judged:
        if all(all_errored(one) for one in report.systems):
            return none_finished(report.systems)
        why = " ".join(unjudged(report.systems, k))
        return f"There is no pass^{k} to compare: {why} {once(report.systems)}"
    if len(judged) == 1:
        answer = verdict(judged[0])
    else:
        said = judgement_of_all(judged, of=len(report.systems), k=k)
        answer = f"{said}: {ahead(leaders)}."
    return " ".join([answer, *unjudged(report.systems, k)])


def verdict_title(report: Report) -> str:
    """The verdict in a few words, for the title of a page or a window."""
    if len(report.systems) > 1:
        k = common_k(report.systems)
        can = sum(is_judged(one, k) and is_dependable(one.pass_hat(k)) for one in report.systems)
        return f"{can} of {len(report.systems)} systems dependable"
    return f"{chip(report.systems[0]).words}: {short(report.systems[0].name)}"


def chip(system: SystemReport, *, k: int | None = None) -> StatusLabel:
    """The verdict on a system in two or three words, at the k of the headline or another."""
    if all_errored(system):
        return StatusLabel("No run finished", "none")
    k = headline_k(system) if k is None else k
    streak = system.pass_hat(k)
    if is_dependable(streak):
        return StatusLabel("Dependable", "good")
    if is_refuted(streak):
        return StatusLabel("Not dependable", "bad")
    one_attempt = k == 1 and not _some_ran_once(system)
    return StatusLabel("One attempt only" if one_attempt else "Not settled yet", "open")


def overview_chip(report: Report, *, k: int | None = None) -> StatusLabel:
    """The verdict on several systems: how many can be depended on, and who is ahead."""
    at = common_k(report.systems) if k is None else k
    judged = [one.pass_hat(at) for one in report.systems if is_judged(one, at)]
    if can := sum(is_dependable(streak) for streak in judged):
        return StatusLabel(f"{can} of {len(report.systems)} dependable", "good")
    if judged and all(is_refuted(streak) for streak in judged):
        return StatusLabel("None dependable", "bad")
    return (
        StatusLabel("Not settled yet", "open")
        if judged
        else StatusLabel("Nothing to compare", "none")
    )


def is_dependable(streak: Metric) -> bool:
    """Whether pass^k is shown to be above the line for a k of at least 2.

    pass^1 cannot show it: one attempt says nothing about several in a row.
    """
    return streak.name != ONE_ATTEMPT and is_above(streak)


def is_above(streak: Metric) -> bool:
    """Whether the whole interval lies above the line."""
    bounds = interval_of(streak.this_suite)
    return bounds is not None and bounds.low >= DEPENDABLE


def is_refuted(streak: Metric) -> bool:
    """Whether the whole interval lies below the line: as pass^1 >= pass^k, any k can show it."""
    bounds = interval_of(streak.this_suite)
    return bounds is not None and bounds.high < DEPENDABLE


def judgement_of_all(judged: Sequence[SystemReport], *, of: int, k: int) -> str:
    """As of one system: can, cannot, or too early to say; `of` are in the report."""
    count = len(judged)
    can = sum(is_dependable(one.pass_hat(k)) for one in judged)
    cannot = sum(is_refuted(one.pass_hat(k)) for one in judged)
    open_ = count - can - cannot
    those = "systems" if count == of else f"systems with a pass^{k}"
    if can:
        rest = f" (too early to say of {open_})" if open_ else ""
        return f"{can} of {count} {those} can be depended on every time{rest}"
    if cannot and open_:
        return _partly_refuted(judged, those, k)
    these = "these" if count == of else "the"
    either, any_ = (
        (f"either of the two {those}", f"Neither of the two {those}")
        if count == 2
        else (f"any of {these} {count} {those}", f"None of {these} {count} {those}")
    )
    if open_ and k == 1:
        return f"One attempt cannot show whether {either} can be depended on every time"
    if open_:
        return f"Too early to say whether {either} can be depended on every time"
    return f"{any_} can be depended on every time"


def _partly_refuted(judged: Sequence[SystemReport], those: str, k: int) -> str:
    """Some cannot be depended on and the others are open; of two systems, which is which."""
    unknown = "one attempt cannot show it of" if k == 1 else "too early to say of"
    cannot = [is_refuted(one.pass_hat(k)) for one in judged]
    if len(judged) > 2:
        share = f"{sum(cannot)} of {len(judged)} {those}"
        return f"{share} cannot be depended on every time ({unknown} {cannot.count(False)})"
    names = shorten_apart([one.name for one in judged], LONGEST_NAME)
    bad, other = names[cannot.index(True)], names[cannot.index(False)]
    return f"You cannot depend on {bad} every time ({unknown} {other})"


def ahead(found: Leaders | Unavailable) -> str:
    """Who is ahead, where the results show it."""
    if isinstance(found, Unavailable):
        return f"{found.reason}, so none is called the leader"
    streak = " at one attempt (pass^1)" if found.k == 1 else f" at {found.k} in a row"
    if found.left_out:
        which = "they share" if found.k == 1 else f"with {found.k} runs of each"
        streak += f" on the {plural(found.tasks, 'task')} {which}"
    best, *others = shorten_apart(found.names, LONGEST_NAME)
    rate, *rates = (percent(value) for value in found.values)
    held = held_for(found.scope, len(found.compared))
    if not others:
        return f"{best} does best{streak}, {rate} {held}"
    if found.here is not None:
        return _ahead_here(found, found.here, streak)
    if len(found.names) == len(found.compared):
        return f"{_level(found, (best, *others), streak)} {held}"
    if len(others) == 1:
        both = f"{rate} and {rates[0]}"
        return f"{best} and {others[0]} lead{streak}, {both}, and cannot be told apart {held}"
    rest = plural(len(others), "other")
    return f"{best} ({rate}) and {rest} lead{streak} and cannot be told apart {held}"


def not_for_others(tasks: int) -> str:
    """That what these tasks show is not shown for others, and why if there are few.

    >>> not_for_others(3)
    '3 tasks are too few to show it for other tasks like these'
    """
    if tasks >= FEW_TASKS:
        return "not shown for other tasks like these"
    few = "1 task is" if tasks == 1 else f"{tasks} tasks are"
    return f"{few} too few to show it for other tasks like these"


def held_for(scope: Scope, systems: int) -> str:
    """What a rank or a tie holds for: in the other scope, or as a pair, two may differ."""
    return f"(for {scope})" if systems == 2 else f"(for {scope}, all {systems} compared at once)"


def unjudged(systems: Sequence[SystemReport], k: int) -> list[str]:
    """Who is not judged, by name, and why."""
    errored = [one for one in systems if all_errored(one)]
    texts = [none_finished(errored)] if errored else []
    few: dict[str, list[SystemReport]] = {}
    for one in systems:
        if not is_judged(one, k) and one not in errored:
            few.setdefault(too_few_runs(one.tasks.runs, k), []).append(one)
    for runs, those in few.items():
        texts.append(
            f"{names(those)} {'has' if len(those) == 1 else 'have'} {runs}, so no pass^{k}."
        )
    return texts


def none_finished(systems: Sequence[SystemReport]) -> str:
    """That no run finished, the commonest reason, and how it is counted."""
    total = sum(one.design.trials for one in systems)
    kinds = [kind for one in systems for kind in one.errors.kinds if kind != UNNAMED]
    trials = "the only trial" if total == 1 else f"all {total:,} trials"
    reason = f" ({shorten(kinds[0], LONGEST_REASON)})" if kinds else ""
    if systems[0].errors.policy == "exclude":
        return f"Nothing could be measured: {trials} of {names(systems)} errored{reason}."
    counted = "counts as a failure" if total == 1 else "count as failures"
    return f"No run of {names(systems)} finished: {trials} errored{reason} and {counted}."


def once(systems: Sequence[SystemReport]) -> str:
    """How often one attempt succeeds, which is known wherever there is a run."""
    rates = {one.name: float(one.tasks.rate.mean()) for one in systems if len(one.tasks)}
    if not rates:
        return "No attempt was made."
    if len(rates) > _MOST_NAMES:
        span = percent_range(Interval(min(rates.values()), max(rates.values())))
        return f"One attempt succeeds {span} of the time."
    called = shorten_apart(list(rates), LONGEST_NAME) if len(rates) > 1 else [""]
    texts = [
        f"{percent(rate)} of the time{name and f' for {name}'}"
        for name, rate in zip(called, rates.values(), strict=True)
    ]
    return f"One attempt succeeds {' and '.join(texts)}."


def names(systems: Sequence[SystemReport]) -> str:
    """The first few by name, and how many more."""
    shown = shorten_apart([one.name for one in systems[:_MOST_NAMES]], LONGEST_NAME)
    more = len(systems) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ahead_here(found: Leaders, here: str, streak: str) -> str:
    """First what is shown for these tasks, then that it is not shown for others."""
    called = shorten_apart(found.names, LONGEST_NAME)
    rated = [f"{name} ({percent(value)})" for name, value in zip(called, found.values, strict=True)]
    first = rated.pop(found.names.index(here))
    rest = rated[0] if len(rated) == 1 else plural(len(rated), "other")
    at_once = "" if len(found.compared) == 2 else f" (all {len(found.compared)} compared at once)"
    limit = not_for_others(found.tasks)
    return f"on these tasks {first} is ahead of {rest}{streak}{at_once}, though {limit}"


def _level(found: Leaders, called: Sequence[str], streak: str) -> str:
    """No one leads where each may be first."""
    best, *_, last = (percent(value) for value in found.values)
    if len(called) == 2:
        both = f"{called[0]} ({best}) and {called[1]} ({last})"
        return f"neither is ahead{streak}, as {both} cannot be told apart"
    rates = best if best == last else f"{best} to {last}"
    return f"none is ahead{streak}, as they ({rates}) cannot be told apart"


def _answer(system: SystemReport, k: int) -> str:
    if all_errored(system):
        return none_finished([system])
    name = short(system.name)
    one, streak = system.metrics.get("pass^1"), system.pass_hat(k)
    if streak.value is None:
        return f"{name} has no pass^{k}: {streak.reason}. {once([system])}"
    if k == 1:
        return _one_attempt(system, name, streak)
    if one is None or one.value is None:
        often = f"{_rate(streak)} of the time"
        texts = f"{k} times in a row it succeeds {often}"
        return f"{_judgement(name, streak)}: {texts}{_bounds(streak)}."
    succeeds = _once(system, one)
    if one.value == 0:
        then = f"let alone {k} times in a row"
    elif streak.value == one.value:
        then = f"and just as often {k} times in a row"
    elif is_dependable(streak):
        then = f"and {k} times in a row {_rate(streak)}"
    elif streak.value == 0:
        then = f"but in these runs never {k} times in a row"
    else:
        then = f"but {k} times in a row only {_rate(streak)}"
    return f"{_judgement(name, streak)}: {succeeds}, {then}{_bounds(streak)}."


def _one_attempt(system: SystemReport, name: str, streak: Metric) -> str:
    """The answer where pass^1 is all there is: it can refute an agent, and cannot vouch for it."""
    design = system.design
    if design.most_runs == 1:
        passed = int(system.tasks.passed.sum())
        seen = f"its one run {'passed' if passed else 'failed'}"
        if design.tasks > 1:
            seen = f"{passed:,} of {design.tasks:,} tasks passed their only run"
    else:
        seen = _once(system, streak)
    seen += _bounds(streak)
    if is_refuted(streak):
        return f"You cannot depend on {name} every time: {seen}."
    if _some_ran_once(system):
        once_only = (
            f"{int((system.tasks.runs == 1).sum()):,} of {design.tasks:,} tasks ran only once"
        )
        said = f"Too early to say whether you can depend on {name} every time, as {once_only}"
        return f"{said}: {seen}."
    one = "One attempt (pass^1)" if design.fewest_runs > 1 else "One run of a task"
    return f"{one} cannot show whether you can depend on {name} every time: {seen}."


def _some_ran_once(system: SystemReport) -> bool:
    """Whether some tasks ran once and others often: a gate that draws tasks leaves such runs."""
    return system.design.fewest_runs == 1 < system.design.most_runs


def _judgement(name: str, streak: Metric) -> str:
    bounds = interval_of(streak.this_suite)
    if bounds is None:
        return f"There are too few runs to say whether you can depend on {name}"
    if bounds.low >= DEPENDABLE:
        return f"You can depend on {name}"
    if bounds.high < DEPENDABLE:
        return f"You cannot depend on {name} every time"
    return f"Too early to say whether you can depend on {name} every time"


def _once(system: SystemReport, one: Metric) -> str:
    """How often one attempt succeeds; with unequal runs, a mean over tasks is no share of them."""
    if one.value == 0:
        credit = system.mean_score.value
        return f"it never succeeded{f' (mean score {percent(credit)})' if credit else ''}"
    if system.design.equal_runs:
        return f"it succeeds {_rate(one)} of the time"
    return f"a task succeeds {_rate(one)} of the time on average"


def _rate(metric: Metric) -> str:
    return "never" if metric.value is None else percent(metric.value)


def _bounds(metric: Metric) -> str:
    number = metric.this_suite
    if not isinstance(number, Estimate) or number.interval is None:
        return ""
    cut = f", {number.excluded_tasks:,} of its tasks left out" if number.excluded_tasks else ""
    return f" (this suite{cut}: {percent_range(number.interval)})"
