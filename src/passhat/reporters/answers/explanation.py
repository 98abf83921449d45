"""Why runs fail: the explanation as blocks, data and rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from passhat.analysis.explaining.causes import Cause, Example
from passhat.analysis.explaining.explain import (
    ERROR,
    EXIT,
    LOGGED,
    MOST_CATEGORIES,
    OTHER,
    STOP,
    Category,
    Explanation,
)
from passhat.analysis.explaining.run_diff import RunDiff
from passhat.analysis.explaining.runs import ExplainedRun
from passhat.analysis.explaining.trajectories import (
    NOTHING,
    ToolMatrix,
    Trajectories,
)
from passhat.dataclass import dataclass
from passhat.messages import listed, plural
from passhat.records.transcript import Transcript, TranscriptKey
from passhat.records.trial import run_number
from passhat.reporters.answer import (
    Answer,
    Bar,
    Block,
    DisplayOptions,
    Facts,
    Headline,
    Hints,
    NextStep,
    Paragraph,
    Records,
    Remark,
    Section,
    StatusLabel,
    Steps,
    Table,
)
from passhat.reporters.answers.diff import RunView, Stretch, difference_text, pair_values
from passhat.reporters.data import JsonShape
from passhat.reporters.formatting import (
    amount,
    interval_of,
    percent,
    points,
    short,
    shorten,
    shorten_apart,
    span,
    value_of,
)
from passhat.reporters.next_steps import advise, only
from passhat.reporters.page_parts import (
    Card,
    CheckCard,
    check_cards,
    ending_text,
    transcript_cards,
)
from passhat.stats.estimate import Estimate


class ExplanationAnswer(Answer[Explanation]):
    """Why runs fail."""

    name = "explanation"
    template = "why.html"

    def title(self) -> str:
        return verdict(self.result)

    def chip(self) -> StatusLabel:
        """Whether anything is named."""
        explanation = self.result
        if explanation.causes:
            count = len(explanation.causes)
            return StatusLabel(f"{plural(count, 'difference')} named", "bad")
        counts = explanation.counts
        if counts.failed + counts.errored == 0:
            return StatusLabel("No trial failed", "good")
        return StatusLabel("No difference named", "open")

    def facts(self) -> Facts:
        """How many runs failed, and how many tasks can tell why."""
        counts = self.result.counts
        have = "have transcripts of passing and failing trials"
        both = have if counts.without_transcript else "both pass and fail"
        facts = [
            (f"{counts.failed + counts.errored:,} of {counts.runs:,}", "trials did not pass"),
            (f"{counts.mixed_tasks:,} of {counts.tasks:,}", f"tasks {both}"),
        ]
        if never := counts.never_passed_tasks:
            facts.append(
                (plural(never, "task"), "without a passing trial: nothing to compare with")
            )
        return facts

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The causes, what went wrong, the paths, the suite, and how to look."""
        explanation = self.result
        blocks: list[Block] = [Headline(verdict(explanation)), *_findings(explanation)]
        blocks += trajectory_blocks(explanation)
        steps = next_commands(explanation, options.results)
        return [*blocks, Steps("Next", tuple(steps))] if steps else blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """What failing trials do that passing ones do not, task by task."""
        explanation = self.result
        counts = explanation.counts
        if not counts.failed:
            return [Headline(verdict(explanation))]
        if counts.without_transcript == counts.read:
            blocks = _without_transcripts(explanation, options)
        elif counts.without_calls + counts.without_transcript == counts.read:
            blocks = _answers_screen(explanation)
        else:
            blocks = _calls_screen(explanation, options)
        if counts.errored:
            blocks.insert(1, Remark(f"And {_errors(explanation)}"))
        return blocks

    def rows(self) -> Records:
        """A row a cause that was named."""
        causes = map(_CAUSE, self.result.causes)
        return [
            {name: value for name, value in cause.items() if name != "example"} for cause in causes
        ]

    def data(self) -> dict[str, Any]:
        return EXPLANATION(self.result)

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """The values of the template."""
        explanation = self.result
        calls = {_keys(cause.example): _where(cause.example) for cause in explanation.causes}
        pairs: dict[tuple[TranscriptKey, TranscriptKey], PairView] = {}
        for number, pair in enumerate(explanation.pairs, 1):
            key = pair.left.key, pair.right.key
            if view := _pair_view(pair, f"pair-{number}", calls.get(key, "")):
                pairs[key] = view
        shown = {left: f"#{pair.anchor}" for (left, _), pair in reversed(pairs.items())}
        alone = [
            _trial_view(run, run.transcript, f"trial-{number}", explanation.first_trial)
            for number, run in enumerate(explanation.examples, 1)
            if run.transcript is not None and run.key not in shown
        ]
        shown |= {view.key: f"#{view.anchor}" for view in alone}
        causes = [
            CauseView(
                sentence=cause.sentence,
                detail=f"p = {cause.p:.2g}.",
                example=pairs.pop(_keys(cause.example), None),
                read=_read(cause.example, explanation),
                failing=cause.example.failing,
                link=shown.get(cause.example.failing),
            )
            for cause in explanation.causes
        ]
        steps = next_commands(explanation, options.results)
        matrix = explanation.trajectories.matrix
        table = _matrix(matrix) if matrix.tools else None  # drawn as a heat map below
        rest = [block for block in trajectory_blocks(explanation) if block != table]
        return {
            "subject": "why trials fail",
            "headline": verdict(explanation),
            "compared": compared_text(explanation),
            "causes": causes,
            "caution": caution(explanation),
            "tools": tool_heat(matrix) if matrix.tools else None,
            "tables": category_tables(explanation),
            "shares": [
                [category.share for category in categories[:MOST_CATEGORIES]]
                for categories in (explanation.categories, explanation.divergences)
                if categories
            ],
            "example_links": example_links(explanation, shown.get),
            "examples": list(pairs.values()),
            "alone": alone,
            "rest": [*rest, Steps("Next", tuple(steps))] if steps else rest,
        }


MOST_TASKS = 5
"""Tasks on the first screen, those that fail most often."""

LONGEST_ANSWER = 30
"""Columns of an answer in a table."""


def verdict(explanation: Explanation) -> str:
    """What failing trials do, in one sentence."""
    counts = explanation.counts
    if counts.failed + counts.errored == 0:
        return "No trial failed: there is nothing to explain."
    if not counts.failed:
        return f"No trial failed, but {_errors(explanation)}"
    failed = f"{counts.failed:,} of {plural(counts.runs, 'trial')} failed"
    if counts.without_transcript == counts.read:
        return f"Cannot say why: these results hold no transcripts. {failed}."
    if counts.without_calls + counts.without_transcript == counts.read:
        return _by_answers(explanation)
    if explanation.divergences:
        return _by_first_difference(explanation)
    if not counts.mixed_tasks:
        return f"No task both passed and failed: nothing to compare with. {failed}."
    first = explanation.categories[0] if explanation.categories else None
    if first is not None and first.kind in _SELF_EVIDENT and first.share.value >= _MOST_RUNS:
        failed = plural(counts.failed + counts.errored, "trial")
        reason = f"{category_text(first)}, in {first.count:,} of {failed} that did not pass"
        return (
            f"The trials say it themselves: {reason}. Nothing in their calls goes together with it."
        )
    return "Nothing in the calls goes together with failing: luck, or a cause they do not show."


def _errors(explanation: Explanation) -> str:
    """How many trials errored, and with what most of them did."""
    counts = explanation.counts
    kinds = [category for category in explanation.categories if category.kind == ERROR]
    text = f"{counts.errored:,} of {plural(counts.runs, 'trial')} errored"
    if not kinds:
        return f"{text}."
    most = kinds[0]
    share = f" ({most.count:,} of them)" if most.count < counts.errored else ""
    return f"{text}: {shorten(most.what, LONGEST_ERROR)}{share}".rstrip(".") + "."


LONGEST_ERROR = 120


def _by_first_difference(explanation: Explanation) -> str:
    """The largest class of first differences from passing trials of the same task."""
    classes: dict[str, list[Category]] = {}
    for difference in explanation.divergences:
        key = (
            difference.kind
            if difference.kind in ("extra call", "no difference")
            else f"{difference.kind}: {difference.what}"
        )
        classes.setdefault(key, []).append(difference)
    largest = max(classes.values(), key=lambda those: sum(difference.count for difference in those))
    count, first = sum(difference.count for difference in largest), largest[0]
    total = sum(divergence.count for divergence in explanation.divergences)
    share = f"in {count:,} of {plural(total, 'failing trial')}"
    if first.kind == "extra call":
        return (
            f"The agent picks the wrong tool: {share} it made a call that passing trials of the "
            "task do not make."
        )
    if first.kind == "call missing":
        return f"The agent skips {short(first.what)}: {share} it did not call it where others did."
    if first.kind == OTHER:
        argument = f"another {first.arguments[0]}" if first.arguments else "other arguments"
        return f"The agent calls {short(first.what)} with {argument}: {share}."
    if first.kind == "no difference":
        # Trials that pass differ too, in calls that only look above all: those do not count.
        same = f"{share} no call that matters differs from a passing trial's"
        if explanation.causes:
            return f"{explanation.causes[0].sentence} One call alone does not tell why: {same}."
        return f"The calls do not tell why: {same}."
    return f"Failing trials differ in {first.kind}: {short(first.what)}, {share}."


def _by_answers(explanation: Explanation) -> str:
    """Without calls, what failing trials answered."""
    failing = Counter[str]()
    for task in explanation.failing:
        failing.update(dict(task.failing_answers))
    (answer, count), total = failing.most_common(1)[0], sum(failing.values())
    start = "No tool calls were recorded, so only the answers can be compared"
    if not answer:
        return f"{start}: {count:,} of {plural(total, 'failing trial')} gave none."
    who = (
        f"all {total:,} failing trials"
        if count == total
        else (f"{count:,} of {plural(total, 'failing trial')}")
    )
    text = shorten(answer, 60)
    return f'{start}: {who} answered "{text}"' + "." * (not text.endswith((".", "!", "?")))


def _without_transcripts(explanation: Explanation, options: DisplayOptions) -> list[Block]:
    blocks: list[Block] = [Headline(verdict(explanation))]
    never: dict[str, list[str]] = {}
    for task in explanation.failing:
        if task.failed == task.trials:
            never.setdefault(task.task, []).append(task.system)
    by_all = [short(task) for task, own in never.items() if len(own) == len(explanation.systems)]
    if by_all:
        why = "too hard, or the check is wrong"
        blocks.append(Remark(f"Never passed: {listed(by_all, 6)} ({why}).", apart=True))
    by_some = [
        f"{short(task)} by {listed([short(agent) for agent in own], 3)}"
        for task, own in never.items()
        if len(own) < len(explanation.systems)
    ]
    if by_some:
        blocks.append(Remark(f"Never passed: {listed(by_some, 6)}.", apart=not by_all))
    tokens = next(
        (feature for feature in explanation.trajectories.splits if feature.name == "tokens"), None
    )
    if tokens is not None and tokens.failing and tokens.passing:
        took = f"{amount(tokens.failing)} tokens on average, passing ones {amount(tokens.passing)}"
        blocks.append(Remark(f"Failing trials took {took}."))
    text = "For causes, give the tool's own log (.eval, results.json), or use passhat run."
    return [*blocks, Remark(text, apart=True)]


def _answers_screen(explanation: Explanation) -> list[Block]:
    several = len(explanation.systems) > 1
    rows = tuple(
        (
            f"{task.failed}/{task.trials}",
            *([short(task.system)] if several else []),
            short(task.task),
            _quoted(task.failing_answers),
            _quoted(task.passing_answers),
        )
        for task in explanation.failing[:MOST_TASKS]
    )
    agent = ("agent",) if several else ()
    header = ("failed", *agent, "task", "failing answers", "passing answers")
    names, answers = range(1, len(header) - 2), range(len(header) - 2, len(header))
    table = Table(
        header=header,
        rows=rows,
        left=tuple(range(1, len(header))),
        cut=(*((i, 12) for i in names), *((i, 20) for i in answers)),
    )
    return [
        Headline(verdict(explanation)),
        table,
        *_more_tasks(explanation),
        Remark('To see calls, return them too: {"answer": ..., "messages": [...]}.', apart=True),
        *([Remark(some)] if (some := _some_read(explanation)) else []),
    ]


def _some_read(explanation: Explanation) -> str:
    """Of how many trials the transcripts were read, where a log is too big for all."""
    counts = explanation.counts
    if not counts.unread:
        return ""
    return (
        f"Compared: the transcripts of {counts.read:,} of {counts.runs:,} trials, of the tasks "
        "that fail most often. One task whole: passhat why RESULTS --task TASK."
    )


def _quoted(answers: Sequence[tuple[str, int]]) -> str:
    """The commonest answer and how often it came."""
    if not answers:
        return "-"
    text, count = answers[0]
    return f'"{shorten(text, LONGEST_ANSWER)}" {count}' if text else f"none {count}"


def _more_tasks(explanation: Explanation) -> list[Block]:
    more = len(explanation.failing) - MOST_TASKS
    return [Remark(f"{plural(more, 'more task')}: -v")] if more > 0 else []


def _calls_screen(explanation: Explanation, options: DisplayOptions) -> list[Block]:
    several = len(explanation.systems) > 1
    examples = {parting.failing[:2]: parting for parting in reversed(explanation.partings)}
    rows = []
    for task in explanation.failing[:MOST_TASKS]:
        key = (task.system, task.task)
        example = examples.get(key)
        number = "" if example is None else run_number(example.failing[2], explanation.first_trial)
        agent = [short(task.system)] if several else []
        differs = _differences(explanation, key)
        rows.append((f"{task.failed}/{task.trials}", *agent, short(task.task), differs, number))
    header = (
        "failed", *(["agent"] if several else []), "task",
        "failing trials, beside passing ones", "read",
    )  # fmt: skip
    last = len(header) - 1
    blocks: list[Block] = [
        Headline(verdict(explanation)),
        Table(
            header=header,
            rows=tuple(rows),
            left=tuple(range(1, last + 1)),
            cut=((last - 2, 12), (last - 1, 24)),
        ),
        *_more_tasks(explanation),
    ]
    blocks.append(Remark("Linked, not proven causes.", apart=True))
    if some := _some_read(explanation):
        blocks.append(Remark(some))
    if explanation.partings and options.results is not None:
        worst = examples.get((explanation.failing[0].system, explanation.failing[0].task))
        chosen = worst or explanation.partings[0]
        command = _diff_command(chosen, options.results, explanation)
        blocks.append(Hints((advise("See one", command),)))
    return blocks


def _differences(explanation: Explanation, key: tuple[str, str]) -> str:
    """How the failing trials of a task first differ from passing ones, the commonest first."""
    counted = [(sum(run[:2] == key for run in own.runs), own) for own in explanation.divergences]
    texts = [
        f"{_in_words(own)} {count:,}"
        for count, own in sorted(counted, key=lambda pair: -pair[0])
        if count
    ]
    if texts:
        return ", ".join(texts)
    whole = [own for own in explanation.categories if any(run[:2] == key for run in own.runs)]
    return category_text(whole[0]) if whole else ""


def _in_words(category: Category) -> str:
    """A first difference in a few words: "get_weather called", "other city"."""
    what = short(category.what)
    if category.kind == "extra call":
        return f"{what} called"
    if category.kind == "call missing":
        return f"{what} not called"
    if category.kind == OTHER and category.arguments:
        return f"other {category.arguments[0]}"
    if category.kind == "no difference":
        return "no call that matters differs"
    return f"{category.kind}: {what}"


# What the page of an explanation shows: causes, each with two runs side by side, then the rest.

LONGEST_PAIR = 200_000
"""Characters of two transcripts up to which a page shows them beside each other."""
LONGEST_ALONE = 8_000
"""Characters of a trial that is shown alone; the rest is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """Two runs side by side, opened from a page."""

    anchor: str
    title: str
    task: str
    views: tuple[RunView, ...]
    left: RunView
    right: RunView
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """One trial that no passing one stands beside."""

    key: TranscriptKey
    anchor: str
    title: str
    checks: tuple[CheckCard, ...]
    ending: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """A cause, its evidence, and the runs to read.

    Without an `example` of its own, `read` says which trial to read, at `link` if the page has it.
    """

    sentence: str
    detail: str
    example: PairView | None
    read: str
    failing: TranscriptKey
    link: str | None


def _where(example: Example) -> str:
    return "" if example.call is None else f": look at call {example.call + 1}"


def _keys(example: Example) -> tuple[TranscriptKey, TranscriptKey]:
    return example.failing, example.passing


def _pair_view(pair: RunDiff, anchor: str, where: str) -> PairView | None:
    """None if the two are too long for a page that shows several."""
    sides = (pair.left.transcript, pair.right.transcript)
    if sum(side.size() for side in sides if side is not None) > LONGEST_PAIR:
        return None
    if not where and pair.parting is not None:
        where = f": {difference_text(pair.pairs[pair.parting])}"
    numbers = (run_number(run.trial, pair.first_trial) for run in (pair.left, pair.right))
    return PairView(
        anchor=anchor,
        title=f"Read {short(pair.left.task)} {' beside '.join(numbers)}, which passed{where}",
        task=pair.left.task,
        **pair_values(pair),
    )


def _trial_view(
    run: ExplainedRun, transcript: Transcript, anchor: str, first_trial: int
) -> TrialView:
    text = transcript.cut(LONGEST_ALONE)
    return TrialView(
        key=run.key,
        anchor=anchor,
        title=f"Read {short(run.task)} {run_number(run.trial, first_trial)}",
        checks=check_cards(text.checks),
        ending=ending_text(text),
        cards=transcript_cards(text),
    )


# Why runs fail: what goes together with failing, what went wrong, and which paths runs took.

LONGEST_EXAMPLE = 20
"""Columns of the task in an example: the table has to fit a terminal of 80."""

_SELF_EVIDENT, _MOST_RUNS = (ERROR, EXIT, STOP), 0.5
"""Endings that answer the question by themselves, from this share of the failed runs on."""

MOST_EXAMPLES = 3
"""Commands that are advised."""

FEW_RUNS = (
    "With 5 trials of one task no cause can be named; 20 trials find a strong one 9 times in 10, "
    "and so do 5 trials of each of 5 tasks that share it."
)
"""By simulation: docs/explanation/calibration.md."""


def place(key: TranscriptKey, explanation: Explanation) -> str:
    """A run by its task and number, and its system if there are several."""
    system, task, trial = key
    run = f"task {short(task)} {run_number(trial, explanation.first_trial)}"
    return f"{short(system)}, {run}" if len(explanation.systems) > 1 else run


def category_text(category: Category) -> str:
    """What went wrong in the runs of a category."""
    argument = f" ({category.arguments[0]})" if category.arguments else ""
    if category.what.lower().startswith(f"{category.kind}:"):
        return f"{category.what}{argument}"  # an error that begins with "Error:"
    colon = "" if category.kind == EXIT else ":"
    return f"{category.kind}{colon} {category.what}{argument}"


def _findings(explanation: Explanation) -> list[Block]:
    """What was compared, the causes, and what went wrong."""
    blocks: list[Block] = [Paragraph("Compared", compared_text(explanation))]
    blocks += [
        Paragraph(str(i), _cause_text(cause, explanation))
        for i, cause in enumerate(explanation.causes, 1)
    ]
    if explanation.causes or explanation.counts.mixed_tasks:
        blocks.append(Paragraph("Mind", caution(explanation)))
    return [*blocks, *category_tables(explanation)]


def category_tables(explanation: Explanation) -> list[Table]:
    """What went wrong; if the log says so itself, also how runs differ from passing ones."""
    first, tables = explanation.first_trial, []
    if explanation.categories:
        tables.append(_categories(explanation.categories, "what went wrong", first))
    # If the log itself says of some run what went wrong, its difference is news.
    logged = any(category.kind in LOGGED for category in explanation.categories)
    if logged and explanation.divergences:
        title = "first difference from passing trials"
        tables.append(_categories(explanation.divergences, title, first))
    return tables


def example_links(
    explanation: Explanation, link: Callable[[TranscriptKey], str | None]
) -> list[list[str | None]]:
    """Where the examples of the tables lead."""
    return [
        [link(category.example) for category in categories[:MOST_CATEGORIES]]
        for categories in (explanation.categories, explanation.divergences)
        if categories
    ]


def compared_text(explanation: Explanation) -> str:
    """Which runs were compared, and which could not be."""
    counts = explanation.counts
    texts = []
    if counts.mixed_tasks:
        single = counts.mixed_tasks == 1
        which = f"{counts.mixed_tasks:,} of {plural(counts.tasks, 'task')}"
        who = "The task" if counts.tasks == 1 else which
        head = f"{who} both {'passes and fails: its' if single else 'pass and fail: their'}"
        verb = "was" if counts.failing == 1 else "were"
        texts.append(
            f"{head} {plural(counts.failing, 'failing trial')} {verb} compared with the "
            f"{plural(counts.passing, 'passing one')}{', task by task' * (not single)}."
        )
    if counts.never_passed_tasks:
        verb = "passes" if counts.never_passed_tasks == 1 else "pass"
        texts.append(
            f"{plural(counts.never_passed_tasks, 'task')} never {verb} "
            f"({plural(counts.never_passed_runs, 'trial')}): nothing to compare with."
        )
    if counts.errored:
        texts.append(f"{plural(counts.errored, 'trial')} errored: neither a pass nor a failure.")
    if counts.without_transcript:
        texts.append(f"{plural(counts.without_transcript, 'trial')} left no transcript.")
    if counts.without_calls:
        texts.append(f"{plural(counts.without_calls, 'trial')} left no tool call to compare.")
    if counts.unread:
        texts.append(
            f"Of {counts.runs:,} trials the transcripts of {counts.read:,} were read: of the tasks "
            "that fail most often, up to 32 MiB."
        )
    return " ".join(texts) or f"All {plural(counts.runs, 'trial')} passed."


def _cause_text(cause: Cause, explanation: Explanation) -> str:
    return f"{cause.sentence} p = {cause.p:.2g}. {_read(cause.example, explanation)}"


def _read(example: Example, explanation: Explanation) -> str:
    where = "" if example.call is None else f", call {example.call + 1}"
    return (
        f"Read {place(example.failing, explanation)}{where}, beside "
        f"{run_number(example.passing[2], explanation.first_trial)}, which passed."
    )


def caution(explanation: Explanation) -> str:
    """What a named cause means, or why none is named."""
    chance = percent(explanation.alpha)
    if explanation.causes:
        return (
            "This goes together with failing; it need not be the cause. If failing were pure "
            f"luck, anything would be named with a chance of {chance} at most."
        )
    return FEW_RUNS


def _categories(categories: Sequence[Category], title: str, first_trial: int) -> Table:
    shown = categories[:MOST_CATEGORIES]
    tasks_named = shorten_apart([group.example[1] for group in shown], LONGEST_EXAMPLE)
    rows: list[tuple[str | Bar, ...]] = [
        (
            category_text(group),
            f"{group.count:,}",
            points(group.share.value),
            span(group.share.interval, digits=0),
            f"{len(group.tasks):,}",
            f"{task} {run_number(group.example[2], first_trial)}",
            Bar(value=group.share.value, inner=group.share.interval),
        )
        for group, task in zip(shown, tasks_named, strict=True)
    ]
    if rest := categories[MOST_CATEGORIES:]:
        count = sum(group.count for group in rest)
        tasks = len({task for group in rest for task in group.tasks})
        total = sum(category.count for category in categories)
        rows.append(
            (
                f"{len(rest):,} other kinds",
                f"{count:,}",
                points(count / total),
                "",
                f"{tasks:,}",
                "",
                Bar(value=count / total),
            )
        )
    return Table(
        header=(title, "trials", "%", "", "tasks", "example", ""),
        rows=tuple(rows),
        left=(0, 3, 5),
        spare=(3,),
        wrapped=(0,),
    )


def next_commands(explanation: Explanation, results: str | None) -> list[NextStep]:
    """Commands that put a failing run beside the passing one to read it with."""
    if results is None:
        return []
    examples = [cause.example for cause in explanation.causes] or list(explanation.partings)
    return [
        advise(
            f"See where {place(pair.failing, explanation)} first differs from a trial that passed",
            _diff_command(pair, results, explanation),
        )
        for pair in examples[:MOST_EXAMPLES]
    ]


def _diff_command(example: Example, results: str, explanation: Explanation) -> str:
    system, task, trial = example.failing
    chosen = f" {only(system)}" if len(explanation.systems) > 1 else ""
    numbers = [number - explanation.first_trial + 1 for number in (trial, example.passing[2])]
    # What begins like an option is none after two dashes.
    dashes = "-- " if task.startswith("-") else ""
    words = f"{dashes}{shlex.quote(task)} {numbers[0]} {numbers[1]}"
    return f"passhat why {results}{chosen} {words}"


# The paths that runs took, and what results say of their suite, in blocks.

MOST_TOOLS = 8
"""Rows and columns of a matrix of tools; the tools that are mistaken most often."""

_MOST_NAMES = 6
_COST_WORDS = {"tokens": "tokens", "cost": "cost", "seconds": "seconds", "tool_calls": "tool calls"}

_FEW_TASKS = 1 / 3
"""Share of the tasks that both pass and fail up to which "half of the variation" is news."""

# Landis and Koch (1977), table 2: the largest kappa of each word.
_KAPPA_WORDS = (
    (0.0, "no better than chance"),
    (0.2, "hardly better than chance"),
    (0.4, "fairly better than chance"),
    (0.6, "moderately better than chance"),
    (0.8, "substantially better than chance"),
    (1.0, "almost perfectly"),
)


def trajectory_blocks(explanation: Explanation) -> list[Block]:
    """How alike runs are, what they repeat and mend, which tool for which, cost, and the suite."""
    trajectories = explanation.trajectories
    alike = _likeness(trajectories)
    blocks: list[Block] = [alike] if alike.rows else []
    if trajectories.behaviours:
        blocks.append(_behaviours(trajectories))
    if trajectories.matrix.tools:
        blocks.append(_matrix(trajectories.matrix))
    costs = [Paragraph("Cost", text) for text in _cost_texts(trajectories)]
    if blocks:
        blocks.insert(0, Section("Which paths the trials took"))
    elif costs:
        blocks.append(Section("What the trials took"))
    blocks += costs
    review = list(_review(explanation)) if explanation.counts.tasks > 1 else []
    if review:
        blocks.append(Section("What to look at in the suite"))
    return blocks + [Paragraph(label, text) for label, text in review]


def _likeness(trajectories: Trajectories) -> Table:
    numbers = {
        "which tools they call": trajectories.tools,
        "the order of their calls": trajectories.order,
        "taking the very same path": trajectories.path,
        **{_COST_WORDS[name]: number for name, number in trajectories.costs.items()},
    }
    return Table(
        header=("two trials of a task are alike in", "%", "", ""),
        rows=tuple(
            (
                words,
                points(value_of(number)),
                span(interval_of(number), digits=0),
                Bar(value=value_of(number), inner=interval_of(number)),
            )
            for words, number in numbers.items()
            if isinstance(number, Estimate)
        ),
        left=(0, 2),
    )


def _behaviours(trajectories: Trajectories) -> Table:
    return Table(
        header=("along the way", "trials", "%", "", "passed %", "", ""),
        rows=tuple(
            (
                behaviour.words,
                f"{behaviour.runs:,}",
                points(behaviour.share.value),
                span(behaviour.share.interval, digits=0),
                points(behaviour.pass_rate.value),
                span(behaviour.pass_rate.interval, digits=0),
                Bar(value=behaviour.pass_rate.value, inner=behaviour.pass_rate.interval),
            )
            for behaviour in trajectories.behaviours
        ),
        left=(0, 3, 5),
        spare=(3,),
    )


def _matrix(matrix: ToolMatrix) -> Table:
    """Expected tools down, chosen tools across by number: names would not fit beside each other."""
    tools = (*matrix.tools[:MOST_TOOLS], NOTHING)
    rows = [
        (
            f"{i} {short(expected)}" if expected else "no call",
            *(f"{matrix.counts.get((expected, chosen), 0) or ''}" for chosen in tools),
        )
        for i, expected in enumerate(tools, 1)
    ]
    what = "expected; called" if matrix.given else "passing trial called; failing trial called"
    return Table(header=(what, *map(str, range(1, len(tools))), "none"), rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHeat:
    """Tools expected down, tools called across: how often, and how warm each cell is."""

    title: str
    expected: str
    tools: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, str], ...]], ...]


def tool_heat(matrix: ToolMatrix) -> ToolHeat:
    """The matrix of tools as a page shows it: blue is the same tool, warm another."""
    tools = (*matrix.tools[:MOST_TOOLS], NOTHING)
    mistaken = {pair: n for pair, n in matrix.counts.items() if pair[0] != pair[1]}
    (expected, called), most = max(mistaken.items(), key=lambda item: (item[1], item[0]))
    wanted = f"a call of {expected}" if expected else "no call"
    where = f"{wanted} was expected" if matrix.given else f"a passing trial made {wanted}"
    title = f"Failing trials called {called or 'nothing'} {plural(most, 'time')} where {where}"

    def level(pair: tuple[str, str]) -> str:
        count = matrix.counts.get(pair, 0)
        if not count or pair[0] == pair[1]:
            return "most" if count else ""
        return ("half", "few", "none")[min(2, 3 * count // most)]

    return ToolHeat(
        title=title,
        expected="expected" if matrix.given else "called by the nearest trial that passed",
        tools=tuple(tool or "no call" for tool in tools),
        rows=tuple(
            (
                tool or "no call",
                tuple(
                    (matrix.counts.get((tool, other), 0), level((tool, other))) for other in tools
                ),
            )
            for tool in tools
        ),
    )


def _cost_texts(trajectories: Trajectories) -> Iterator[str]:
    for split in trajectories.splits:
        if split.passing is None or split.failing is None:
            continue
        name, spent = _COST_WORDS[split.name], f"{percent(split.failing_share)} of all"
        failing, passing = amount(split.failing), amount(split.passing)
        if split.name == "cost":
            both = f"A failing trial cost ${failing} on average, a passing one ${passing}"
            yield f"{both}; {spent} the money went into trials that did not pass."
        else:
            both = f"A failing trial took {failing} {name} on average, a passing one {passing}"
            yield f"{both}; {spent} {name} went into trials that did not pass."


def _review(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """What the suite's owner should look at."""
    review, mixed = explanation.review, explanation.counts.mixed_tasks
    systems, first_trial = len(explanation.systems), explanation.first_trial
    for tasks, where, alone in (
        (review.always_pass, "every", "too easy to show where this agent fails"),
        (review.never_pass, "no", "too hard for this agent, or wrong"),
    ):
        if tasks:
            names = listed(tasks, _MOST_NAMES, show=short)
            verb = "passes" if len(tasks) == 1 else "pass"
            why = alone if systems == 1 else f"so no difference between these {systems} agents"
            yield "Suite", f"{plural(len(tasks), 'task')} {verb} in {where} trial, {why}: {names}."
    if review.duplicates:
        pairs = [f"{short(pair.first)} and {short(pair.second)}" for pair in review.duplicates]
        verb = "asks" if len(pairs) == 1 else "ask"
        texts = f"{plural(len(pairs), 'pair')} of tasks {verb} for nearly the same"
        yield "Suite", f"{texts}: {listed(pairs, _MOST_NAMES)}."
    if review.lucky and len(review.lucky) <= _FEW_TASKS * mixed:
        names = listed([short(task.task) for task in review.lucky], _MOST_NAMES)
        held = percent(sum(task.share for task in review.lucky))
        come = f"comes from {plural(len(review.lucky), 'task')}"
        yield "Suite", f"{held} of the variation between trials of one task {come}: {names}."
    for pair in review.graders[:_MOST_NAMES]:
        kappa = "" if pair.kappa is None else f", {_kappa_text(pair.kappa)}"
        texts = f"{short(pair.first)} and {short(pair.second)} agree in "
        texts += f"{percent(pair.agreement.value)} of {plural(pair.agreement.runs or 0, 'trial')}"
        number = run_number(pair.example[2], first_trial)
        read = f"read task {short(pair.example[1])} {number}"
        yield "Graders", f"{texts}{kappa}; {read}."


def _kappa_text(kappa: float) -> str:
    """Agreement beyond chance in words."""
    words = next(words for most, words in _KAPPA_WORDS if kappa <= most + 1e-9)
    return f"{words} (kappa {kappa:.2f})"


# The JSON of an explanation.


class _RunNameObject(TypedDict):
    """One run, by its name in the results."""

    system: str
    task: str
    trial: int


class _ToolPairObject(TypedDict):
    """How often one tool was chosen where another was expected; "" stands for none."""

    expected: str
    chosen: str
    count: int


def _run(key: TranscriptKey) -> _RunNameObject:
    return {"system": key[0], "task": key[1], "trial": key[2]}


def _failing(example: Example) -> _RunNameObject:
    return _run(example.failing)


def _passing(example: Example) -> _RunNameObject:
    return _run(example.passing)


def _example(category: Category) -> _RunNameObject:
    return _run(category.example)


def _runs(category: Category) -> list[_RunNameObject]:
    return [_run(key) for key in category.runs]


def _tool_matrix(trajectories: Trajectories) -> list[_ToolPairObject]:
    counts = sorted(trajectories.matrix.counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        {"expected": expected, "chosen": chosen, "count": count}
        for (expected, chosen), count in counts
    ]


_EXAMPLE = JsonShape(
    "__example",
    Example,
    "A failing trial beside the nearest passing one; `call` is a place among its calls, from 0.",
    "failing passing call",
    failing=_failing,
    passing=_passing,
)
_CAUSE = JsonShape(
    "__cause",
    Cause,
    "What goes together with failing; p is adjusted for everything that was tested.",
    "sentence test tool p failing failing_of passing passing_of tasks example",
    parts=[_EXAMPLE],
)
_CATEGORY = JsonShape(
    "__category",
    Category,
    "Failed trials that went wrong in the same way.",
    "kind what arguments count share tasks example runs expected found",
    example=_example,
    runs=_runs,
)
_TRAJECTORIES = JsonShape(
    "__trajectories",
    Trajectories,
    "How alike trials of a task are, what they repeat and mend, and what failing ones cost.",
    "tools order path costs behaviours cost_of_failing=splits expected_tools_given=matrix.given "
    "tool_matrix",
    tool_matrix=_tool_matrix,
)
EXPLANATION = JsonShape(
    "explanation",
    Explanation,
    "Why trials fail.",
    "schema verdict systems counts causes could_name alpha shuffles categories divergences "
    "partings trajectories review provenance",
    verdict=verdict,
    parts=[_CAUSE, _CATEGORY, _EXAMPLE, _TRAJECTORIES],
)
