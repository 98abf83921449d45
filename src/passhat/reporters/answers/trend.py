"""A trend: how reliability moved over the runs of a suite; and the tasks flaky over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from passhat.analysis.comparing.trends import (
    MOST_AWAITED,
    NOTABLE,
    AgentVerdict,
    FlakyTask,
    FlakyTasks,
    GradedChanges,
    LabelChange,
    RateChange,
    RunVerdict,
    SystemTrend,
    TrendPoint,
)
from passhat.dataclass import dataclass, replace
from passhat.messages import capitalised, listed, plural, short_day
from passhat.records.trial import GRADED_BY_JUDGE, natural_key
from passhat.reporters.answer import (
    SCREEN_LINES,
    Answer,
    Bar,
    Block,
    DisplayOptions,
    Facts,
    Headline,
    Hints,
    Paragraph,
    Picture,
    Records,
    Remark,
    Section,
    StatusLabel,
    Table,
    added_remarks,
    movement_label,
    paragraphs,
)
from passhat.reporters.data import JsonShape, to_json
from passhat.reporters.formatting import (
    end_cells,
    metric_label,
    percent,
    points,
    safe_text,
    short,
    signed_points,
    span,
)
from passhat.reporters.next_steps import advise, only
from passhat.stats.trend import ChangePoint, Changes, DivergingTrend

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure


class TrendAnswer(Answer[Sequence[SystemTrend]]):
    """How reliability moved over the runs of a suite, and where it changed."""

    name = "trend"
    template = "trend.html"
    several = True

    def title(self) -> str:
        return f"{self.chip().words}: {headline(self.result)}"

    def chip(self) -> StatusLabel:
        """The newest change in three words."""
        trends = self.result
        trend = _newest_change_first(trends)[0]
        change = trend.change
        if change is None:
            runs = max(len(trend.points) for trend in trends)
            return movement_label("steady", "One run" if runs == 1 else "No change shown")
        movement = "fell" if change.direction == "down" else "rose"
        return movement_label(
            movement, f"{movement.capitalize()} on {short_day(trend.day(change))}"
        )

    def facts(self) -> Facts:
        """The newest run, the size of the newest change, and how many tasks moved far.

        Where nothing changed, the newest numbers of several agents.
        """
        trends = _newest_change_first(self.result)
        trend, several = trends[0], len(trends) > 1
        if (change := trend.change) is None:
            return [_newest_number(each, several=several) for each in trends[:MOST_NUMBERS]]
        name = trend.metrics[0] if trend.graded is None else trend.graded.metric
        size = f"{signed_points(change.interval.low)} to {signed_points(change.interval.high)}"
        called = f"change of {metric_label(name)}, {safe_text(trend.name)}"
        facts = [_newest_number(trend, several=several), (f"{size} points", called)]
        judged = trend.newest_change
        if judged is not None and change.direction == judged.direction:
            far = _moved_far(trend)
            facts.append((f"{far} of {len(trend.moved)}", "tasks moved by 15 points or more"))
        return facts

    def all_blocks(self, options: DisplayOptions) -> list[Block]:
        return super().all_blocks(_without_repeats(self.result, options, headline=options.brief))

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Each system: what changed in words, then the runs one by one, then the picture."""
        trends = self.result
        blocks: list[Block] = []
        for trend in trends:
            blocks += [Section(safe_text(trend.name))] if len(trends) > 1 else []
            blocks += [Headline(sentence) for sentence in sentences(trend)]
            blocks.append(runs_table(trend))
            if any(point.carried for point in trend.points):
                texts = "Not every task was run: the last result of the others is carried forward."
                blocks.append(Paragraph("Starred", f"* {texts}"))
            blocks += paragraphs("Labels", _of_labels(trend))
            if len(trend.points) > 1 and _has_rates(trend):
                blocks.append(Picture(trend.plot()))
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The newest change, and the last runs; of several agents, of the one that changed last."""
        trends = _newest_change_first(self.result)
        trend = trends[0]
        blocks: list[Block] = []
        if trend.graded is None and _diverging(trend):
            first, last = (trend.points[i].metrics[f"pass@{trend.k}"].value for i in (0, -1))
            rose = f"pass@{trend.k} rose meanwhile, {percent(first)} to {percent(last)}"
            blocks.append(Remark(f"{rose}: more able, less reliable."))
        if any(point.carried for point in trend.points[-MOST_RUNS:]):
            blocks.append(Remark("* Not every task was run: the last result of the others counts."))
        if (corrected := _of_labels(trend)) is not None:
            blocks.append(Remark(corrected))
        others = [trend.name for trend in trends[1:]]
        if others:
            blocks.append(Remark(f"Also in these runs: {listed(others, 5, show=short)} (-v)."))
        change = trend.change
        if change is not None and options.results is not None and change.position:
            after, before = (trend.points[change.position - i].key for i in (0, 1))
            agent = f" {only(trend.name)}" if others or options.narrowed else ""
            command = f"passhat compare {after} {before}{agent}{options.store}"
            blocks.append(Hints((advise("What changed", command),)))
        answer = headline(trends, options.verdict)
        earlier, _ = added_remarks(None, options)
        around = [Headline(answer), *blocks, *(replace(remark, apart=False) for remark in earlier)]
        room = SCREEN_LINES - options.line_count(around) - 2  # a blank line, the header
        room = max(room, FEWEST_RUNS + 1)
        most = len(trend.points) if len(trend.points) <= room else room - 1
        return [Headline(answer), *_rows_screen(trend, min(most, MOST_RUNS)), *blocks]

    def rows(self) -> Records:
        return [
            {
                "system": trend.name,
                "run": point.key,
                "started": point.started,
                "tasks": point.tasks,
                "runs": point.runs,
                "number": name,
                "value": estimate.value,
                **end_cells("this_suite", estimate.interval),
            }
            for trend in self.result
            for point in trend.points
            for name, estimate in point.metrics.items()
        ]

    def data(self) -> dict[str, Any]:
        return TREND(self.result)

    def figures(self) -> Mapping[str, Figure]:
        return {trend.name: trend.plot() for trend in self.result if _has_rates(trend)}

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """The values of the template; the system that changed last comes first."""
        ordered = _newest_change_first(self.result)
        verdict = options.verdict
        answer = headline(ordered, verdict)
        if (moved := _moved_agent(ordered, verdict)) is not None:
            label = movement_label(moved.movement, moved.words)
            judged = {"chip": label, "title": f"{safe_text(answer)} · passhat"}
        return {
            "subject": "trend",
            "headline": headline(ordered, verdict, above=verdict is not None),
            **(judged if moved else {}),
            "verdict": verdict,
            "systems": [
                _view(trend, answer, None if verdict is None else verdict.of(trend.name))
                for trend in ordered
            ],
        }


# What the page of a trend shows: the newest change, its picture, and the tasks that moved.

_COUNTED = "Passed trials before the newest change and since; hollow before, filled since"

MOST_NUMBERS = 3
"""Agents whose newest numbers stand beside the answer."""

MOST_MOVED = 10
"""Tasks that moved which are seen without opening a fold."""

_FAR = 0.15
"""A move that is worth counting: 15 points, about what 20 runs before and after can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendView:
    """One system: its sentences, picture, moved tasks, changed labels, and runs with their keys.

    So many of the moved tasks are `seen` without opening a fold. The `chip` says that it fell in
    tasks alone: the picture shows no change of its number. The `note` says what is counted.
    """

    name: str
    title: str
    note: str
    chip: StatusLabel | None
    sentences: tuple[str, ...]
    figure: Figure | None
    moved: tuple[RateChange, ...]
    seen: int
    turns: Table | None
    runs: Table
    keys: tuple[str, ...]


MOST_RUNS, FEWEST_RUNS = 10, 2
"""Runs on the first screen, the newest."""

_CELL = 0.05
"""What a character of a bar stands for."""


def _moved_agent(trends: Sequence[SystemTrend], verdict: RunVerdict | None) -> AgentVerdict | None:
    """The agent that the verdict on the newest run says has moved, where no trend shows a change.

    A verdict also looks at single tasks, and at the newest run alone.
    """
    if verdict is None or any(trend.change is not None for trend in trends):
        return None
    return next((agent for agent in verdict.agents if agent.movement in ("fell", "rose")), None)


def headline(
    trends: Sequence[SystemTrend], verdict: RunVerdict | None = None, *, above: bool = False
) -> str:
    """The newest change of pass^k in one sentence: levels are the means of the runs shown.

    Where two runs have enough labels, the change as people grade it. Where pass^k shows none and
    the verdict on the newest run says what fell, that comes first. `above` the sentence of that
    verdict, its numbers are left to it.
    """
    trend = _newest_change_first(trends)[0]
    agent = None if verdict is None else verdict.of(trend.name)
    whose = f"{short(trend.name)}: " if len(trends) > 1 else ""
    if (moved := _moved_agent(trends, verdict)) is not None:
        whose = f"{short(moved.system)}: " if len(trends) > 1 else ""
        mean = "" if moved.interval is not None else _mean_unchanged(trends, moved.system)
        return f"{whose}{moved.what_changed if above else moved.answer}.{mean}"
    if above and agent is not None and _is_newest_change(trend, agent):
        return f"{whose}{agent.what_changed}."
    if trend.graded is not None:
        return whose + _graded_sentence(trend, trend.graded)
    if (change := trend.change) is None:
        runs = max(len(trend.points) for trend in trends)
        if runs == 1:
            return "One run so far: a change takes two to be seen."
        whose = f"{short(trend.name)} " if len(trends) > 1 else ""
        now = percent(trend.points[-1].metrics[trend.metrics[0]].value, digits=1)
        stopped = trend.points[-1].stopped_early
        last = "the last stopped early" if stopped else f"{whose}{now} in the last"
        shown = f"No change in {_metric(trend)} shown over {runs} runs"
        return f"{shown}{'' if above else f' ({last})'}. {_would_show(trend)}"
    levels = trend.levels(trend.metrics[0], change)
    return whose + _change_sentence(
        trend, _metric(trend), change, levels, trend.changes[trend.metrics[0]]
    )


def _without_repeats(
    trends: Sequence[SystemTrend], options: DisplayOptions, *, headline: bool
) -> DisplayOptions:
    """What is said of the newest run without the change that the sentences of the trend have.

    Tasks that fell without the mean are only in the `headline` of a screen.
    """
    verdict = options.verdict
    if verdict is None:
        return options
    first = _newest_change_first(trends)[0]
    moved = _moved_agent(trends, verdict)

    def in_headline(agent: AgentVerdict) -> bool:
        if moved is not None:
            return agent == moved and headline
        if first.change is None:
            return agent.movement == "steady" and agent.graded is None
        return _is_newest_change(first, agent)

    agents = tuple(replace(agent, in_headline=in_headline(agent)) for agent in verdict.agents)
    return replace(options, verdict=replace(verdict, agents=agents))


def _is_newest_change(trend: SystemTrend, agent: AgentVerdict) -> bool:
    """Whether the verdict on an agent is about the newest change of this trend."""
    if (change := trend.change) is None:
        return False
    fell = "fell" if change.direction == "down" else "rose"
    at = trend.points[change.position].key
    return (agent.system, agent.movement, agent.since) == (trend.name, fell, at)


def _mean_unchanged(trends: Sequence[SystemTrend], system: str) -> str:
    trend = next((trend for trend in trends if trend.name == system), trends[0])
    last = trend.points[-1]
    now = percent(last.metrics[trend.metrics[0]].value, digits=1)
    shown = "" if last.stopped_early else f" ({now} in the last)"
    runs = plural(len(trend.points), "run")
    return f" The mean of all tasks, {_metric(trend)}, shows no change over {runs}{shown}."


def _as_people_grade(graded: GradedChanges) -> str:
    return f"{metric_label(graded.metric)} as people grade it"


def _graded_sentence(trend: SystemTrend, graded: GradedChanges) -> str:
    name, change = _as_people_grade(graded), graded.newest
    if change is None:
        last = percent(trend.points[graded.places[-1]].corrected[graded.metric].value, digits=1)
        shown = f"shown over {len(graded.places)} labelled runs"
        return f"No change in {name} {shown} ({last} in the last)."
    levels = trend.graded_levels(graded, change)
    return _change_sentence(trend, name, change, levels, graded.changes)


def _change_sentence(
    trend: SystemTrend,
    name: str,
    change: ChangePoint,
    levels: tuple[float | None, float | None],
    changes: Changes,
) -> str:
    """A change in the one sentence that every screen and page has of it."""
    others = [other.position for other in changes.points]
    point, ends = trend.points[change.position], change.interval
    later = min((at for at in others if at > change.position), default=None)
    after = "since" if later is None else f"until {short_day(trend.points[later].started)}"
    sides = zip(levels, ("before", after), strict=True)
    called = point.key if point.key in point.label else point.label  # a commit beside it is no word
    means = "".join(f"{percent(level)} {side}, " for level, side in sides if level is not None)
    return (
        f"{name} {'fell' if change.direction == 'down' else 'rose'} on "
        f"{short_day(point.started)} (run {safe_text(called)}): {means}"
        f"{signed_points(ends.low)} to {signed_points(ends.high)} points."
    )


def _newest_number(trend: SystemTrend, *, several: bool) -> tuple[str, str]:
    """The number of the newest run, or of the newest that people labelled, and what it is."""
    graded = trend.graded
    last = trend.points[-1 if graded is None else graded.places[-1]]
    now = last.metrics[trend.metrics[0]] if graded is None else last.corrected[graded.metric]
    whose, day = f"{safe_text(trend.name)}, " if several else "", short_day(last.started)
    if last.stopped_early:
        return "-", f"{whose}the newest run, {day}, stopped early: no rate"
    streak = _streak(trend) if graded is None else _as_people_grade(graded)
    run = "run" if graded is None else "labelled run"
    ends = span(now.interval)
    return percent(now.value, digits=1), f"{whose}{streak} in the newest {run}, {day}, {ends}"


def _metric(trend: SystemTrend) -> str:
    return metric_label(f"pass^{trend.k}")


def _rows_screen(trend: SystemTrend, most: int) -> list[Block]:
    """The last runs, oldest first, a bar each, and where it changed.

    Where people labelled some, their number comes first and the judge's own beside it.
    """
    name, people = trend.metrics[0], _corrected_metric(trend)
    changes = trend.changes[name] if trend.graded is None else trend.graded.changes
    marks = {
        change.position: "<- fell here" if change.direction == "down" else "<- rose here"
        for change in changes.points
    }
    first = max(0, len(trend.points) - most)
    rows, cell = [], 2 * _CELL if people else _CELL
    for i, point in enumerate(trend.points[first:], first):
        judged, graded = point.metrics[name], point.corrected.get(people or "")
        drawn = judged if trend.graded is None else graded
        rows.append(
            (
                short_day(point.started),
                safe_text(point.label) + "*" * bool(point.carried),
                *([percent(graded.value, digits=1) if graded else "-"] if people else []),
                "-" if point.stopped_early else percent(judged.value, digits=1),
                "#" * round(drawn.value / cell) if drawn and not point.stopped_early else "",
                marks.get(i, "stopped early" * point.stopped_early),
            )
        )
    heads = [_metric(trend)]
    if people:
        heads = [f"people: {metric_label(people)}", f"judge: {_metric(trend)}"]
    last = 2 + len(heads)
    table = Table(
        header=("date", "run", *heads, "", ""),
        rows=tuple(rows),
        left=(0, 1, last, last + 1),
        cut=((1, 12),),
    )
    earlier = [Remark(f"{plural(first, 'earlier run')}: -v")] if first else []
    return [table, *earlier]


def _corrected_metric(trend: SystemTrend) -> str | None:
    """The number that labels of people give for some of the runs."""
    if trend.graded is not None:
        return trend.graded.metric
    return "pass^1" if any("pass^1" in point.corrected for point in trend.points) else None


_MOST_LABELLED = 2
"""Runs whose corrected number a remark states: the newest."""


def _of_labels(trend: SystemTrend) -> str | None:
    """What labels make of the runs that have any, and what the changes rest on."""
    texts = [
        f"{percent(rate.value, digits=1)} {span(rate.interval)} on {short_day(point.started)} "
        f"({plural(point.labels, 'label')})"
        for point in trend.points
        if (rate := point.corrected.get("pass^1")) is not None
    ]
    if not texts:
        return f"{capitalised(GRADED_BY_JUDGE)}." if trend.judged else None
    some = [f"{len(texts) - _MOST_LABELLED:,} more before", *texts[-_MOST_LABELLED:]]
    named = ", ".join(some if len(texts) > _MOST_LABELLED else texts)
    start = f"pass@1 corrected with labels of people: {named}."
    if trend.graded is None:
        return f"{start} Changes are of the judge's verdicts: those that people see take two runs."
    change = trend.newest_change
    if change is None:
        return f"{start} The judge's verdicts show no change."
    word = "fell" if change.direction == "down" else "rose"
    day = short_day(trend.points[change.position].started)
    return f"{start} By the judge's verdicts {_metric(trend)} {word} on {day}."


def _newest_change_first(trends: Sequence[SystemTrend]) -> list[SystemTrend]:
    def place(trend: SystemTrend) -> str:
        change = trend.change
        return "" if change is None else trend.points[change.position].started

    return sorted(trends, key=place, reverse=True)


def _view(trend: SystemTrend, headline: str, verdict: AgentVerdict | None) -> TrendView:
    several = len(trend.points) > 1
    in_tasks = verdict is not None and verdict.fell and trend.change is None
    fallen = verdict.tasks or verdict.moved if verdict is not None and in_tasks else ()
    texts = [sentence for sentence in sentences(trend, turns=False) if sentence not in headline]
    if trend.change is None and (trend.turns or in_tasks):  # these say more than "no change"
        texts = []
    labelled = _of_labels(trend)
    return TrendView(
        name=trend.name,
        title=_moved_title(trend) or (_fallen_title(verdict) if fallen else ""),
        note=f"{_COUNTED}." if in_tasks else f"{_COUNTED}. Plain counts, not a test of each task.",
        chip=movement_label("fell", verdict.words) if verdict is not None and in_tasks else None,
        sentences=(*(texts if several else ()), *([labelled] if labelled else ())),
        figure=trend.plot() if several and _has_rates(trend) else None,
        moved=trend.moved or fallen,
        seen=min(_moved_far(trend) or MOST_MOVED, MOST_MOVED),
        turns=_turns_table(trend.turns),
        runs=runs_table(trend),
        keys=tuple(point.key for point in trend.points),
    )


def _moved_title(trend: SystemTrend) -> str:
    """How many tasks moved; by the judge's verdicts, as no task has labels enough of its own."""
    change = trend.newest_change
    if change is None:
        return ""
    by = "" if trend.graded is None else " by the judge's verdicts"
    if far := _moved_far(trend):
        return f"{plural(far, 'task')} moved by 15 points or more{by}"
    word = "fall" if change.direction == "down" else "rise"
    return f"The {word}{by} is spread thin"


def _fallen_title(verdict: AgentVerdict | None) -> str:
    if verdict is None or not verdict.tasks:
        return "No single task stands out: these fell most"
    return f"The fall is in {plural(len(verdict.tasks), 'task')}"


def _moved_far(trend: SystemTrend) -> int:
    return sum(abs(task.moved) >= _FAR for task in trend.moved)


def _turns_table(turns: Sequence[LabelChange]) -> Table | None:
    """Tasks whose label changed, the newest first; those that got worse before others."""
    if not turns:
        return None
    newest = sorted(enumerate(turns), key=lambda pair: (-pair[0], pair[1].turn == "got fixed"))
    rows = tuple((turn.task, turn.turn, turn.before, turn.after, turn.label) for _, turn in newest)
    return Table(header=("task", "turn", "was", "is", "run"), rows=rows, left=(0, 1, 2, 3, 4))


def _streak(trend: SystemTrend) -> str:
    return "one attempt" if trend.k == 1 else f"{trend.k} in a row (pass^{trend.k})"


def sentences(trend: SystemTrend, *, turns: bool = True) -> list[str]:
    """What happened, the most alarming first; without `turns`, not task by task."""
    texts = []
    if trend.graded is not None:
        texts.append(_graded_sentence(trend, trend.graded))
    else:
        if isinstance(trend.divergence, DivergingTrend) and trend.divergence.diverging:
            texts.append(
                f"Warning, {trend.divergence.name}: {safe_text(trend.name)} can do more and is "
                f"less reliable (first run to last: {_moved(trend, 'pass@')}, "
                f"{_moved(trend, 'pass^')})."
            )
        for name, changes in trend.changes.items():
            texts += [
                _change_sentence(
                    trend, metric_label(name), change, trend.levels(name, change), changes
                )
                for change in changes.points
            ]
    if turns:
        texts += [
            f"{safe_text(turn.task)} {turn.turn} at {safe_text(turn.label)} (was {turn.before})."
            for turn in trend.turns
        ]
    return texts or [_no_change(trend)]


def _moved(trend: SystemTrend, metric: str) -> str:
    """The first and the last level of a metric: those of a fitted line need not have occurred."""
    name = f"{metric}{trend.k}"
    first, last = (percent(trend.points[i].metrics[name].value) for i in (0, -1))
    return f"{name} {first} to {last}"


def _no_change(trend: SystemTrend) -> str:
    name, count = safe_text(trend.name), len(trend.points)
    if count == 1:
        return f"{name}: one run so far; a change takes two to be seen."
    rate = percent(next(iter(trend.changes.values())).false_alarm)
    shown = f"no change in {_metric(trend)} shown over {count} runs"
    return f"{name}: {shown} (a false alarm has a chance of {rate})."


def _would_show(trend: SystemTrend) -> str:
    """How many runs a change takes to be seen."""
    moved = f"A move of {points(NOTABLE)} points in how often trials pass would"
    if trend.runs_to_show is None:
        most = plural(MOST_AWAITED, "more run")
        return f"{moved} not show in {most} like the newest: run more trials in each."
    return f"{moved} show after {plural(trend.runs_to_show, 'more run')}."


def _has_rates(trend: SystemTrend) -> bool:
    """Whether there is a rate to draw: a run that its gates stopped early has none."""
    return not all(point.stopped_early for point in trend.points)


def runs_table(trend: SystemTrend) -> Table:
    """The runs one by one, the oldest first; what people say before what the judge says."""
    people = _corrected_metric(trend)
    whose = "judge: " if people else ""
    names = [f"{whose}{metric_label(name)}" for name in trend.metrics]
    if people:
        names.insert(0, f"people: {metric_label(people)}")
    return Table(
        header=("run", "date", "tasks", "trials", *(h for name in names for h in (name, _SUITE))),
        rows=tuple(_row(point, people) for point in trend.points),
        left=(0, 1, *(5 + 2 * i for i in range(len(names)))),
        spare=(1,),
    )


_SUITE = "these tasks"


def _row(point: TrendPoint, people: str | None) -> tuple[str, ...]:
    numbers = [*([point.corrected.get(people)] if people else []), *point.metrics.values()]
    cells = [
        cell
        for number in numbers
        for cell in (
            (points(number.value, digits=1), span(number.interval))
            if number and not point.stopped_early
            else ("-", "")
        )
    ]
    tasks = f"{point.tasks}{'*' if point.carried else ''}"
    return safe_text(point.label), short_day(point.started), tasks, f"{point.runs:,}", *cells


MOST_MARKS = 30
"""Runs that are shown for a task: the newest."""


class FlakyAnswer(Answer[FlakyTasks]):
    """The tasks that passed and failed over the last runs."""

    name = "flaky"
    template = "flaky.html"

    def title(self) -> str:
        return _flaky_words(self.result)

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """One row a task, flaky ones first."""
        flaky = self.result
        head = _flaky_words(flaky)
        if not flaky.tasks:
            return [Headline(head)]
        several = len({task.system for task in flaky.tasks}) > 1
        header = (
            "task",
            *(("agent",) if several else ()),
            "label",
            "passed",
            "rate",
            "interval",
            "",
            "runs",
        )
        rows = tuple(_cells(task, several=several) for task in flaky.tasks)
        return [
            Headline(head),
            Table(
                header=header,
                rows=rows,
                left=tuple(i for i, name in enumerate(header) if name in _LEFT),
            ),
            Paragraph(
                "Runs", "Oldest first: P all passed, F all failed, ~ some of each, . not run."
            ),
        ]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The counts, in the words of every screen: flaky is what passed and failed."""
        flaky = self.result
        over = f"over {plural(flaky.runs, 'run')}"
        if not flaky.tasks:
            return [Headline(f"No task of {flaky.tasks_seen:,} is flaky {over}.")]
        are = "is" if len(flaky.tasks) == 1 else "are"
        of_all = f"{len(flaky.tasks):,} of {plural(flaky.tasks_seen, 'task')} {are} flaky"
        several = len({task.system for task in flaky.tasks}) > 1
        shown = sorted(flaky.tasks, key=lambda task: task.rate)[:MOST_RUNS]
        table = Table(
            header=("passed", *(["agent"] if several else []), "task", "runs, oldest first"),
            rows=tuple(
                (
                    f"{task.passed:,}/{task.trials:,}",
                    *([short(task.system)] if several else []),
                    short(task.task),
                    task.marks[-MOST_MARKS:],
                )
                for task in shown
            ),
            left=(1, 2, 3),
            cut=((1 + several, 12),),
        )
        more = len(flaky.tasks) - len(shown)
        return [
            Headline(f"{of_all} {over}."),
            table,
            *([Remark(f"{plural(more, 'more task')}: -v")] if more else []),
            Remark("P all passed, F all failed, ~ some of each, . not run"),
        ]

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """A row a task and a column a run, coloured by how many trials passed."""
        flaky = self.result
        labels = {(task.system, task.task): task.label for task in flaky.tasks}
        rows = [
            HeatRow(
                system=system,
                task=task,
                label=labels.get((system, task), ""),
                cells=[heat_cell(cell) for cell in counts[-MOST_MARKS:]],
                passed=sum(cell[1] for cell in counts if cell),
                trials=sum(cell[0] for cell in counts if cell),
            )
            for (system, task), counts in flaky.counts.items()
        ]
        rows.sort(key=lambda row: (row.passed / row.trials, natural_key(row.task)))
        failing = [row for row in rows if row.passed < row.trials]
        steady = len(rows) - len(failing)
        days = [short_day(day) for day in flaky.days[-MOST_MARKS:]]
        first = flaky.runs - len(days)
        notes = ["The number is how many trials passed; none where all did."]
        if len(days) < flaky.runs:
            notes.append(f"Rates are over all {flaky.runs:,} runs.")
        if steady:
            notes.append(f"{plural(steady, 'more task')} passed every trial.")
        if len(failing) > MOST_HEAT:
            notes.append(f"These are the {MOST_HEAT} lowest of {len(failing):,} that did not.")
        return {
            "headline": self.title(),
            "rows": failing[:MOST_HEAT],
            "shown_runs": (
                plural(len(days), "run")
                if len(days) == flaky.runs
                else f"The newest {len(days)} of {flaky.runs:,} runs"
            ),
            "notes": " ".join(notes),
            "facts": [
                *(
                    (
                        f"{task.passed:,} of {task.trials:,}",
                        f"trials of {task.task} passed, the fewest",
                    )
                    for task in failing[:1]
                ),
                *([(f"{steady:,}", "tasks passed every trial")] if steady else []),
            ],
            "several": len({row.system for row in rows}) > 1,
            "runs": [_heat_run(flaky, i) for i in range(first, flaky.runs)],
        }

    def rows(self) -> Records:
        return [
            {
                **{name: value for name, value in to_json(task).items() if name != "interval"},
                **end_cells("", task.interval),
            }
            for task in self.result.tasks
        ]

    def data(self) -> Any:
        return FLAKY(self.result)


def _flaky_words(tasks: FlakyTasks) -> str:
    """How many tasks passed and failed, and how they are labelled."""
    over = f"over {plural(tasks.runs, 'run')}"
    if not tasks.tasks:
        return f"No task of {tasks.tasks_seen:,} both passed and failed {over}."
    labels = Counter(task.label for task in tasks.tasks)
    given = [f"{labels[label]:,} {label}" for label in _LABEL_ORDER if labels[label]]
    of_all = f"{len(tasks.tasks):,} of {plural(tasks.tasks_seen, 'task')}"
    return f"{of_all} passed and failed {over}: {', '.join(given)}."


_LABEL_ORDER = ("flaky", "broken", "solid", "undecided")


MOST_HEAT = 300
"""Tasks on the page, the lowest rates first; the CSV file has all that are flaky."""


HEAT = (
    ("all", 1.0, "all passed"),
    ("most", 0.75, "75% or more"),
    ("half", 0.4, "40% or more"),
    ("few", 1e-9, "fewer"),
    ("none", 0.0, "none passed"),
)
"""The colours of a cell: the least share of trials that passed, and its words in the legend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """How many trials of a task passed in one run; `level` is its colour, from none to all."""

    passed: int
    trials: int
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A task over runs."""

    system: str
    task: str
    label: str
    cells: Sequence[HeatCell | None]
    passed: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRun:
    """A run that has a column: what it is called, when it began, and how its trials ended."""

    key: str
    day: str
    trials: int
    passed: int


def _heat_run(tasks: FlakyTasks, place: int) -> HeatRun:
    cells = [cell for cells in tasks.counts.values() if (cell := cells[place]) is not None]
    return HeatRun(
        key=tasks.keys[place],
        day=short_day(tasks.days[place]),
        trials=sum(trials for trials, _ in cells),
        passed=sum(passed for _, passed in cells),
    )


def heat_cell(counts: tuple[int, int] | None) -> HeatCell | None:
    """A cell from the trials and passes of a run.

    >>> [heat_cell(one).level for one in ((6, 6), (6, 5), (6, 3), (6, 1), (6, 0))]
    ['all', 'most', 'half', 'few', 'none']
    """
    if counts is None:
        return None
    trials, passed = counts
    level = next(level for level, least, _ in HEAT if passed >= least * trials)
    return HeatCell(passed=passed, trials=trials, level=level)


_LEFT = ("task", "agent", "label", "interval", "runs")


def _cells(task: FlakyTask, *, several: bool) -> tuple[str | Bar, ...]:
    agent = (safe_text(task.system),) if several else ()
    return (
        safe_text(task.task),
        *agent,
        task.label,
        f"{task.passed:,}/{task.trials:,}",
        percent(task.rate),
        span(task.interval, digits=0),
        Bar(value=task.rate, inner=task.interval),
        task.marks[-MOST_MARKS:],
    )


# The JSON of both.


class RateObject(TypedDict):
    """A rate at one moment, with its interval."""

    value: float
    low: float | None
    high: float | None


def _rates(point: TrendPoint) -> dict[str, RateObject]:
    return {
        name: cast(RateObject, {"value": rate.value, **end_cells("", rate.interval)})
        for name, rate in point.metrics.items()
    }


def _corrected_rates(point: TrendPoint) -> dict[str, RateObject]:
    """As people would have graded the run's own trials, where they labelled enough."""
    return _rates(replace(point, metrics=point.corrected))


def _diverging(trend: SystemTrend) -> bool:
    return isinstance(trend.divergence, DivergingTrend) and trend.divergence.diverging


def _systems(trends: Sequence[SystemTrend]) -> list[SystemTrend]:
    return list(trends)


_POINT = JsonShape(
    "point",
    TrendPoint,
    "The rates at one moment; `carried` names tasks whose earlier counts are used.",
    "run=key label started tasks runs carried metrics corrected labels",
    metrics=_rates,
    corrected=_corrected_rates,
)
_CHANGES = JsonShape(
    "changes",
    Changes,
    "The changes of one metric, found with a known chance of a false alarm.",
    "false_alarm horizon method points",
    parts=[
        JsonShape(
            "change",
            ChangePoint,
            "A change of the rate at `position`, and its size with an interval.",
            "position direction before after low=interval.low high=interval.high",
        )
    ],
)
_TURN = JsonShape(
    "turn",
    LabelChange,
    "A task whose label changed, at the first run that showed the new one.",
    "task turn before after run=key",
)
_GRADED = JsonShape(
    "graded_changes",
    GradedChanges,
    "The changes as people grade, over the runs at `places`, which have enough labels.",
    "metric places changes",
    parts=[_CHANGES],
)
_SYSTEM_TREND = JsonShape(
    "system_trend",
    SystemTrend,
    "One agent over its runs, the oldest first.",
    "name k sentences points changes graded judged diverging turns",
    sentences=sentences,
    diverging=_diverging,
    parts=[_POINT, _CHANGES, _GRADED, _TURN],
)
TREND = JsonShape(
    "trend",
    Sequence,
    "How reliability moved over history.",
    "schema systems",
    systems=_systems,
    parts=[_SYSTEM_TREND],
)
FLAKY = JsonShape(
    "flaky",
    FlakyTasks,
    "The tasks that passed and failed over some runs.",
    "schema runs tasks_seen confidence tasks",
)
