"""The front page: every suite, its systems, their newest numbers and how they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from passhat.analysis.reports.metrics import HeadlineNumber, headline_number, mean_pass_hat
from passhat.dataclass import dataclass
from passhat.drawing import Figure, sparkline
from passhat.history import History, Run
from passhat.history.queries import SuiteLine, list_suites, suite_spending
from passhat.journeys.report_cache import ReportCache
from passhat.messages import first_few, plural
from passhat.records import Tally
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.comparing.trends import SystemTrend
    from passhat.analysis.gates.gate import Verdicts
    from passhat.analysis.reports.metrics import RunGroups

SPENDING_DAYS = 30
SUITES_A_PAGE = 20
CHANGES_BACK = 30
"""Runs in which a change is looked for."""

RUNS_BACK = 12
"""Runs in the small trend of a system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLine:
    """One system of a suite: its newest run, its number there, and how it got there.

    `attention` says what got worse since the run before: one sentence each.
    """

    name: str
    run: Run
    tasks: int
    trials: int
    headline: HeadlineNumber
    spark: Figure
    attention: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBlock:
    """One suite with its systems; `gates` are those that its newest run failed or left undecided.

    `spent` is what its runs of the last 30 days cost, in dollars.
    """

    suite: SuiteLine
    systems: tuple[SystemLine, ...]
    newest: Run
    gates: tuple[str, ...] = ()
    spent: float | None = None

    @property
    def needs_attention(self) -> bool:
        """Whether anything got worse, or a gate failed or is undecided."""
        return bool(self.gates or self.attention)

    @property
    def attention(self) -> list[tuple[SystemLine, str]]:
        """What got worse, by system."""
        return [(line, sentence) for line in self.systems for sentence in line.attention]


def suites_on_page(history: History, page: int) -> tuple[list[SuiteLine], int]:
    """The suites of one page, the one that ran last first, and how many there are."""
    suites = list_suites(history)
    first = (page - 1) * SUITES_A_PAGE
    return suites[first : first + SUITES_A_PAGE], len(suites)


def look_at_suite(reports: ReportCache, history: History, suite: SuiteLine) -> SuiteBlock:
    """One suite: the newest number of each of its systems, and how it got there."""
    every = history.runs(suite=suite.name, limit=CHANGES_BACK)
    runs = every[:RUNS_BACK]
    ended = [run for run in reversed(every) if run.trials and run.status == "finished"]
    trends = {one.name: one for one in (reports.trends(history, ended) if len(ended) > 1 else ())}
    seen: dict[str, list[_Seen]] = {}
    for run in runs:
        for tally in reports.tallies(history, run) if run.trials else ():
            groups = partial(_groups, reports, history, run, tally.system)
            seen.setdefault(tally.system, []).append(_Seen(run=run, tally=tally, groups=groups))
    return SuiteBlock(
        suite=suite,
        systems=tuple(_line(name, found, trends.get(name)) for name, found in sorted(seen.items())),
        newest=runs[0],
        gates=tuple(_gates_not_passed(reports.verdicts(history, runs[0]))),
        spent=suite_spending(history, suite.name, since=_days_ago(SPENDING_DAYS)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One system in one run; `groups` reads what moved its trials together, if it is needed."""

    run: Run
    tally: Tally
    groups: Callable[[], Sequence[RunGroups]]

    def headline(self, k: int | None = None) -> HeadlineNumber:
        """Its number, with the interval that the report of the run has."""
        return headline_number(self.tally, k=k, groupings=self.groups())


def _groups(reports: ReportCache, history: History, run: Run, system: str) -> Sequence[RunGroups]:
    return reports.groupings(history, run).get(system, ())


def _gates_not_passed(verdicts: Verdicts | None) -> Iterator[str]:
    """The gates of the newest run that did not pass, those that failed first."""
    if verdicts is None:  # verdicts that did not pass are false, as a condition
        return
    for word in ("FAIL", "UNDECIDED"):
        yield from (one.sentence for one in verdicts if one.word == word)


def _days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def _line(name: str, found: Sequence[_Seen], trend: SystemTrend | None) -> SystemLine:
    """`found` is newest first."""
    newest = found[0]
    now = newest.headline()
    return SystemLine(
        name=name,
        run=newest.run,
        tasks=len(newest.tally.tasks),
        trials=newest.tally.trials,
        headline=now,
        spark=_spark(name, now.k, [one.tally for one in reversed(found)]),
        attention=(*_fall(trend), *_attention(found)),
    )


def _fall(trend: SystemTrend | None) -> Iterator[str]:
    """The newest fall, as long as the newest run still excludes the level before it."""
    change = None if trend is None else trend.newest_change
    if trend is None or change is None or change.direction != "down":
        return
    name = trend.metrics[0]
    now = trend.points[-1].metrics[name].interval
    if now is not None and now.high < change.before:
        yield (
            f"{name} fell from {100 * change.before:.0f} % to {100 * change.after:.0f} % on "
            f"{trend.day(change)}, {trend.points[change.position].label}"
        )


def _attention(found: Sequence[_Seen]) -> Iterator[str]:
    """What the two newest finished runs show; a run in progress is not judged."""
    finished = [one for one in found if one.run.status == "finished"]
    if len(finished) < 2 or found[0].run.status != "finished":
        return
    new, old = finished[:2]
    if (drop := _drop(new, old)) is not None:
        yield drop
    if began := tasks_that_began_to_fail(new.tally, old.tally):
        yield (
            f"{plural(len(began), 'task')} passed every run before and not every run now: "
            f"{', '.join(first_few(began))}"
        )


def _drop(new: _Seen, old: _Seen) -> str | None:
    """A fall on the same tasks that is so large that the two intervals do not overlap."""
    if new.tally.tasks != old.tally.tasks:
        return None
    k = min(headline_number(new.tally).k, headline_number(old.tally).k)
    if (mean_pass_hat(new.tally, k) or 0.0) >= (mean_pass_hat(old.tally, k) or 0.0):
        return None  # the common case, without the cost of two intervals
    now, before = new.headline(k).number, old.headline(k).number
    if isinstance(now, Unavailable) or isinstance(before, Unavailable):
        return None
    if now.interval is None or before.interval is None or now.interval.high >= before.interval.low:
        return None
    return f"pass^{k} dropped from {100 * before.value:.0f} % to {100 * now.value:.0f} %"


def tasks_that_began_to_fail(new: Tally, old: Tally) -> list[str]:
    """Tasks whose every trial passed in the old run, and not in the new one."""
    solid = {task for task, runs, passed in _counts(old) if runs > 1 and passed == runs}
    return [task for task, runs, passed in _counts(new) if task in solid and passed < runs]


def _counts(tally: Tally) -> list[tuple[str, int, int]]:
    runs = (tally.passed + tally.failed + tally.errored).tolist()
    return list(zip(tally.tasks, runs, tally.passed.tolist(), strict=True))


def _spark(name: str, k: int, tallies: Sequence[Tally]) -> Figure:
    known = [mean_pass_hat(tally, k) for tally in tallies]
    values = [value for value in known if value is not None]
    moved = (
        f"from {100 * values[0]:.0f} % to {100 * values[-1]:.0f} % over {len(values)} runs"
        if len(values) > 1
        else "one run so far"
    )
    return sparkline(values, title=f"pass^{k} of {name}", finding=f"pass^{k}: {moved}.")
