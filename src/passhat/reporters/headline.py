"""The sentence that a report opens with: is the agent reliable, and who of several leads?"""

from __future__ import annotations

import math
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
from passhat.arguments import DEPENDABLE
from passhat.dataclass import replace
from passhat.messages import capitalised, plural
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
from passhat.stats.estimate import (
    FEW_TASKS,
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)

ONE_ATTEMPT = "pass^1"
LONGEST_REASON = 160
_MOST_NAMES = 3


def opening(report: Report) -> str:
    """The sentence that a report opens with, on one system or on several."""
    return overview(report) if len(report.systems) > 1 else verdict(report.systems[0])


def verdict(system: SystemReport, *, k: int | None = None, scope: Scope | None = None) -> str:
    """The answer in one sentence; after it, what makes the trials less than independent.

    `k` asks for another k than the headline's, `scope` for which tasks to judge.
    """
    if system.counts_only:
        return stopped([system])
    disturbed = disturbance_sentence(system.disturbances)
    judged = for_scope([system], scope)[0]
    answer = _answer(judged, headline_k(system) if k is None else k)
    answer = f"For similar tasks: {answer}" if scope == TASKS_LIKE_THESE else answer
    answer += corrected_with(system)
    return answer if disturbed is None else f"{answer} {disturbed}"


def corrected_with(*systems: SystemReport) -> str:
    """On how many labels of people the numbers of systems rest; empty if on none.

    With the judge's own numbers, the labels say nothing of what is shown.
    """
    rates = (system.metrics.get(ONE_ATTEMPT) for system in systems)
    labels = sum(
        rate.corrected.labels
        for rate in rates
        if rate is not None and rate.corrected and rate.this_suite is rate.corrected.this_suite
    )
    return f" Corrected with {plural(labels, 'label')} of people." if labels else ""


def for_scope(systems: Sequence[SystemReport], scope: Scope | None) -> list[SystemReport]:
    """The systems as sentences judge them, by their intervals for the tasks that are asked about.

    Sentences read `this_suite`; for similar tasks it holds what `tasks_like_these` does.
    """
    if scope != TASKS_LIKE_THESE:
        return list(systems)
    return [
        replace(
            system,
            metrics={
                name: replace(metric, this_suite=metric.tasks_like_these, refuted=False)
                for name, metric in system.metrics.items()
            },
        )
        for system in systems
    ]


def overview(report: Report, *, k: int | None = None, scope: Scope | None = None) -> str:
    """The answer about several systems in one sentence, at the k of the headline or another."""
    if report.systems[0].counts_only:
        return stopped(report.systems)
    leaders = report.leaders if k is None else report.leaders_at(k)
    k = common_k(report.systems) if k is None else k
    judged = [system for system in report.systems if is_judged(system, k)]
    if not judged:
        if all(all_errored(system) for system in report.systems):
            return none_finished(report.systems)
        why = " ".join(unjudged(report.systems, k))
        return f"There is no pass^{k} to compare: {why} {once(report.systems)}"
    if len(judged) == 1:
        answer = verdict(judged[0], scope=scope)
    else:
        judgement = judgement_of_all(for_scope(judged, scope), of=len(report.systems), k=k)
        judgement = f"For similar tasks: {judgement}" if scope == TASKS_LIKE_THESE else judgement
        answer = f"{judgement}. {ahead(leaders, scope)}.{corrected_with(*judged)}"
    return " ".join([answer, *unjudged(report.systems, k)])


def stopped(systems: Sequence[SystemReport]) -> str:
    """What is said of a run that its gates ended early: counts, which are no rate."""
    if len(systems) == 1:
        start = f"{short(systems[0].name)} stopped early, with a verdict and no rate"
        return f"{start}: {_counted(systems[0])}."
    trials = sum(system.design.trials for system in systems)
    ran = f"{plural(len(systems), 'agent')} stopped early, with verdicts and no rates"
    passed = sum(int(system.tasks.passed.sum()) for system in systems)
    return f"{ran}: {passed:,} of {plural(trials, 'trial')} passed."


def verdict_title(report: Report) -> str:
    """The verdict in a few words, for the title of a page or a window."""
    if len(report.systems) > 1 and not report.systems[0].counts_only:
        k = common_k(report.systems)
        can = sum(
            is_judged(system, k) and is_dependable(system.pass_hat(k)) for system in report.systems
        )
        return f"{can} of {len(report.systems)} agents reliable"
    return f"{chip(report.systems[0]).words}: {names(report.systems)}"


def chip(system: SystemReport, *, k: int | None = None) -> StatusLabel:
    """The verdict on a system in two or three words, at the k of the headline or another."""
    if all_errored(system):
        return StatusLabel("No trial finished", "none")
    if system.counts_only:
        return StatusLabel("Stopped early", "none")
    k = headline_k(system) if k is None else k
    streak = system.pass_hat(k)
    if is_dependable(streak):
        return StatusLabel("Reliable", "good")
    if is_refuted(streak):
        return StatusLabel("Not reliable", "bad")
    one_attempt = k == 1 and not _some_ran_once(system)
    return StatusLabel("One trial only" if one_attempt else "Too early to tell", "open")


def overview_chip(report: Report, *, k: int | None = None) -> StatusLabel:
    """The verdict on a report: of several systems, how many can be depended on."""
    if len(report.systems) == 1 or report.systems[0].counts_only:
        return chip(report.systems[0], k=k)
    at = common_k(report.systems) if k is None else k
    judged = [system.pass_hat(at) for system in report.systems if is_judged(system, at)]
    if can := sum(is_dependable(streak) for streak in judged):
        return StatusLabel(f"{can} of {len(report.systems)} reliable", "good")
    if judged and all(is_refuted(streak) for streak in judged):
        return StatusLabel("None reliable", "bad")
    return (
        StatusLabel("Too early to tell", "open")
        if judged
        else StatusLabel("Nothing to compare", "none")
    )


def other_line(system: SystemReport) -> str | None:
    """What the gate of a run demands, where it is not what makes an agent reliable."""
    k, share = system.asked_k, system.asked_share
    if share is None or share == DEPENDABLE or k != headline_k(system):
        return None
    return (
        f"The gate of this run demands pass^{k} of {100 * share:g}%; reliable is from "
        f"{percent(DEPENDABLE)} on."
    )


def is_dependable(streak: Metric) -> bool:
    """Whether pass^k is shown to be above the line for a k of at least 2.

    pass^1 cannot show it: one attempt says nothing about several in a row.
    """
    return streak.name != ONE_ATTEMPT and is_above(streak)


def is_above(streak: Metric) -> bool:
    """Whether the whole interval lies above the line."""
    bounds = None if streak.refuted else interval_of(streak.this_suite)
    return bounds is not None and bounds.low >= DEPENDABLE


def is_refuted(streak: Metric) -> bool:
    """Whether the whole interval lies below the line: as pass^1 >= pass^k, any k can show it."""
    if streak.refuted:
        return True
    bounds = interval_of(streak.this_suite)
    return bounds is not None and bounds.high < DEPENDABLE


def judgement_of_all(judged: Sequence[SystemReport], *, of: int, k: int) -> str:
    """As of one system: reliable, not, or too early to tell; `of` are in the report."""
    count = len(judged)
    can = sum(is_dependable(system.pass_hat(k)) for system in judged)
    cannot = sum(is_refuted(system.pass_hat(k)) for system in judged)
    open_ = count - can - cannot
    rate = "pass@1" if k == 1 else f"pass^{k}"
    those = "agents" if count == of else f"agents with a {rate}"
    if can:
        rest = f" (too early to tell of {open_})" if open_ else ""
        return f"{can} of {count} {those} {'is' if can == 1 else 'are'} reliable{rest}"
    if cannot and open_:
        return _partly_refuted(judged, those, k)
    any_ = f"either of the two {those}" if count == 2 else f"any of {count} {those}"
    if open_ and k == 1:
        return f"One trial of a task cannot show if {any_} is reliable"
    if open_:
        return f"Too early to tell if {any_} is reliable"
    if count == 2:
        return f"Neither {those.replace('agents', 'agent', 1)} is reliable"
    return f"{'No agent' if count == of else f'None of {count} {those}'} is reliable"


def _partly_refuted(judged: Sequence[SystemReport], those: str, k: int) -> str:
    """Some are not reliable and the others are open; of two agents, which is which."""
    unknown = "one trial cannot show it of" if k == 1 else "too early to tell of"
    cannot = [is_refuted(system.pass_hat(k)) for system in judged]
    if len(judged) > 2:
        share = f"{sum(cannot)} of {len(judged)} {those} {'is' if sum(cannot) == 1 else 'are'}"
        return f"{share} not reliable ({unknown} {cannot.count(False)})"
    names = shorten_apart([system.name for system in judged], LONGEST_NAME)
    bad, other = names[cannot.index(True)], names[cannot.index(False)]
    return f"{bad} is not reliable ({unknown} {other})"


def ahead(leaders: Leaders | Unavailable, scope: Scope | None = None) -> str:
    """Who is ahead, where the results show it; asked for these tasks, nothing of similar ones."""
    if isinstance(leaders, Unavailable):
        return f"{capitalised(leaders.reason)}, so none is called the leader"
    streak, where = "pass@1" if leaders.k == 1 else f"{leaders.k} in a row", ""
    if leaders.left_out:
        which = "they share" if leaders.k == 1 else f"with {leaders.k} trials of each"
        where = f" on the {plural(leaders.tasks, 'task')} {which}"
    best, *others = shorten_apart(leaders.names, LONGEST_NAME)
    rate, *rates = (percent(value) for value in leaders.values)
    if not others:
        return f"{best} leads: {streak} {rate}{where}"
    if leaders.here is not None:
        only_here = scope == THIS_SUITE
        return _ahead_here(leaders, leaders.here, streak + where, only_here=only_here)
    if scope == THIS_SUITE:
        rest = others[0] if len(others) == 1 else f"all {plural(len(others), 'other')} near it"
        reach = f"{rate} and {rates[0]}" if len(others) == 1 else f"{rate} to {rates[-1]}"
        return f"On these tasks {best} is not shown ahead of {rest}: {streak} {reach}{where}"
    if len(others) == 1:
        which = "are tied" if len(leaders.compared) == 2 else "lead and are tied"
        return f"{best} and {others[0]} {which}: {streak} {rate} and {rates[0]}{where}"
    span = rate if rate == rates[-1] else f"{rate} to {rates[-1]}"
    if len(leaders.names) == len(leaders.compared):
        few = f" ({too_few_tasks(leaders.tasks)})" if leaders.too_few_tasks else ""
        return f"All {len(leaders.names)} are tied{few}: {streak} {span}{where}"
    rest = plural(len(others), "other")
    return f"{best} and {rest} lead and are tied: {streak} {span}{where}"


def too_few_tasks(tasks: int) -> str:
    """Why systems are tied, however far apart they are."""
    return f"{plural(tasks, 'task is', 'tasks are')} too few to tell any two apart"


def ties_hold_for(leaders: Leaders | Unavailable, scope: Scope | None = None) -> str | None:
    """For which tasks the first place and its ties are shown; None where the sentence says it."""
    if isinstance(leaders, Unavailable) or leaders.here is not None:
        return None
    if scope == THIS_SUITE and len(leaders.names) > 1:
        return None
    what = "The lead holds" if len(leaders.names) == 1 else "Ties are"
    count = len(leaders.compared)
    at_once = "" if count == 2 else f", all {count} compared at once"
    return f"{what} for {scope_words(leaders.scope)}{at_once}."


def scope_words(scope: Scope) -> str:
    """What an interval or a rank is for, in the words of screens.

    >>> scope_words("tasks like these")
    'similar tasks'
    """
    return "these tasks" if scope == THIS_SUITE else "similar tasks"


def not_for_others(tasks: int) -> str:
    """That what these tasks show is not shown for others, and why if there are few.

    >>> not_for_others(3)
    '3 tasks are too few to show it for similar tasks'
    """
    if tasks >= FEW_TASKS:
        return "not shown for similar tasks"
    few = "1 task is" if tasks == 1 else f"{tasks} tasks are"
    return f"{few} too few to show it for similar tasks"


def unjudged(systems: Sequence[SystemReport], k: int) -> list[str]:
    """Who is not judged, by name, and why."""
    errored = [system for system in systems if all_errored(system)]
    texts = [none_finished(errored)] if errored else []
    few: dict[str, list[SystemReport]] = {}
    for agent in systems:
        if not is_judged(agent, k) and agent not in errored:
            few.setdefault(too_few_runs(agent.tasks.runs, k), []).append(agent)
    for runs, those in few.items():
        texts.append(
            f"{names(those)} {'has' if len(those) == 1 else 'have'} {runs}, so no pass^{k}."
        )
    return texts


def none_finished(systems: Sequence[SystemReport]) -> str:
    """That no trial finished, the commonest reason, and how it is counted."""
    total = sum(system.design.trials for system in systems)
    kinds = [kind for system in systems for kind in system.errors.kinds if kind != UNNAMED]
    trials = "the only trial" if total == 1 else f"all {total:,} trials"
    reason = f" ({shorten(kinds[0], LONGEST_REASON)})" if kinds else ""
    if systems[0].errors.policy == "exclude":
        return f"Nothing could be measured: {trials} of {names(systems)} errored{reason}."
    counted = "counts as a failure" if total == 1 else "count as failures"
    return f"No trial of {names(systems)} finished: {trials} errored{reason} and {counted}."


def once(systems: Sequence[SystemReport]) -> str:
    """How often a trial passes, which is known wherever there is one."""
    rates = {
        system.name: float(system.tasks.rate.mean()) for system in systems if len(system.tasks)
    }
    if not rates:
        return "No trial was made."
    if len(rates) > _MOST_NAMES:
        span = percent_range(Interval(min(rates.values()), max(rates.values())))
        return f"A trial passes {span} of the time."
    called = shorten_apart(list(rates), LONGEST_NAME) if len(rates) > 1 else [""]
    texts = [
        f"{percent(rate)} of the time{name and f' for {name}'}"
        for name, rate in zip(called, rates.values(), strict=True)
    ]
    return f"A trial passes {' and '.join(texts)}."


def names(systems: Sequence[SystemReport]) -> str:
    """The first few by name, and how many more."""
    shown = shorten_apart([system.name for system in systems[:_MOST_NAMES]], LONGEST_NAME)
    more = len(systems) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ahead_here(leaders: Leaders, here: str, streak: str, *, only_here: bool) -> str:
    """First what is shown for these tasks, then that it is not shown for others, if they matter."""
    called = shorten_apart(leaders.names, LONGEST_NAME)
    rated = [
        f"{name} ({percent(value)})" for name, value in zip(called, leaders.values, strict=True)
    ]
    first = rated.pop(leaders.names.index(here))
    rest = rated[0] if len(rated) == 1 else plural(len(rated), "other")
    at_once = (
        "" if len(leaders.compared) == 2 else f" (all {len(leaders.compared)} compared at once)"
    )
    limit = "" if only_here else f", though {not_for_others(leaders.tasks)}"
    return f"On these tasks {first} is ahead of {rest} at {streak}{at_once}{limit}"


def _answer(system: SystemReport, k: int) -> str:
    if all_errored(system):
        return none_finished([system])
    name = short(system.name)
    rate, streak = system.metrics.get("pass^1"), system.pass_hat(k)
    if streak.value is None:
        return f"{name} has no pass^{k}: {streak.reason}. {once([system])}"
    if k == 1:
        return _one_trial(system, name, streak)
    number = streak.this_suite
    left_out = number.excluded_tasks if isinstance(number, Estimate) else 0
    tail = f" ({left_out:,} of its tasks left out)" if left_out else ""
    bounds, passes = interval_of(number), _passes(system, rate)
    if bounds is None:
        return (
            f"Too few trials to tell if {name} is reliable: {passes}, {k} in a row "
            f"{percent(streak.value)}{tail}."
        )
    if bounds.low >= DEPENDABLE:
        shown = f"{k} in a row at least {_at_least(bounds.low)} of the time"
        return f"{name} is reliable: {passes}; {shown}{tail}."
    if bounds.high >= DEPENDABLE:
        seen = _counted(system)
        span = f"{percent(bounds.low)} to {percent(bounds.high)}"
        open_ = f"{k} in a row could be anything from {span}"
        return f"Too early to tell if {name} is reliable: {seen}, but {open_}{tail}."
    if rate is not None and rate.value == 0:
        return f"{name} is not reliable: {passes}."
    if rate is not None and streak.value == rate.value:
        then = f"and just as often {k} times in a row"
    elif streak.value == 0:
        then = f"but never {k} times in a row"
    else:
        then = f"but {k} times in a row only {percent(streak.value)}"
    return f"{name} is not reliable: {passes}, {then}{tail}."


def _one_trial(system: SystemReport, name: str, streak: Metric) -> str:
    """The answer where pass@1 is all there is: it can refute an agent, and cannot vouch for it."""
    design = system.design
    if design.most_runs == 1:
        passed = int(system.tasks.passed.sum())
        seen = f"its one trial {'passed' if passed else 'failed'}"
        if design.tasks > 1:
            seen = f"{passed:,} of {design.tasks:,} tasks passed their only trial"
    else:
        seen = _passes(system, streak)
    bounds = interval_of(streak.this_suite)
    seen += f" ({percent_range(bounds)})" if bounds else ""
    if is_refuted(streak):
        return f"{name} is not reliable: {seen}."
    if _some_ran_once(system):
        once_only = (
            f"{int((system.tasks.runs == 1).sum()):,} of {design.tasks:,} tasks ran only once"
        )
        return f"Too early to tell if {name} is reliable, as {once_only}: {seen}."
    what = "pass@1 alone" if design.fewest_runs > 1 else "One trial of a task"
    return f"{what} cannot show if {name} is reliable: {seen}."


def _some_ran_once(system: SystemReport) -> bool:
    """Whether some tasks ran once and others often: a gate that draws tasks leaves such trials."""
    return system.design.fewest_runs == 1 < system.design.most_runs


def _passes(system: SystemReport, metric: Metric | None) -> str:
    """How often a trial passes; with unequal trials, a mean over tasks is no share of them."""
    rate = None if metric is None else metric.value
    if rate is None:  # only larger k were asked for
        rate = float(system.tasks.rate.mean())
    if rate == 0:
        credit = system.mean_score.value
        return f"it never passed{f' (mean score {percent(credit)})' if credit else ''}"
    if rate == 1:
        return _counted(system)
    whole = "it passes" if system.design.equal_runs else "a task passes"
    mean = "" if system.design.equal_runs else " on average"
    return f"{whole} {percent(rate)} of the time{mean}"


def _counted(system: SystemReport) -> str:
    passed, trials = int(system.tasks.passed.sum()), int(system.tasks.runs.sum())
    if passed == trials:
        return f"all {plural(trials, 'trial')} passed" if trials > 1 else "its one trial passed"
    return f"{passed:,} of {plural(trials, 'trial')} passed"


def _at_least(share: float) -> str:
    """A lower bound as a whole percentage that still holds.

    >>> _at_least(0.975)
    '97%'
    """
    return f"{math.floor(100 * share + 1e-9)}%"
