"""Verdicts: the answer first, then how sure it is, and on demand every step."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from passhat.analysis.gates.gate import (
    NO_ERRORS,
    DecisionLine,
    EquivalentRequirement,
    EveryTaskRequirement,
    Gate,
    NoTaskWorseRequirement,
    NoteKind,
    NoWorseRequirement,
    TaskEvidence,
    ThresholdRequirement,
    Verdict,
    Verdicts,
    percentage,
    shown,
)
from passhat.arguments import ErrorPolicy
from passhat.messages import capitalised, few, listed, plural
from passhat.records.trial import natural_key
from passhat.reporters.answer import (
    SCREEN_WIDTH,
    SHORTEST_HEADING,
    WORD_TONES,
    Answer,
    Block,
    DisplayOptions,
    Facts,
    Headline,
    Hints,
    Judged,
    NextStep,
    Paragraph,
    Picture,
    Records,
    Remark,
    StatusLabel,
    Table,
)
from passhat.reporters.data import (
    EstimateObject,
    JsonShape,
    LimitsObject,
    UnavailableObject,
    number_object,
)
from passhat.reporters.formatting import (
    LONGEST_NAME,
    end_cells,
    interval_of,
    metric_label,
    percent,
    points,
    short,
    shorten,
    shorten_apart,
    signed_points,
    value_of,
)
from passhat.reporters.next_steps import advise, only
from passhat.stats.estimate import Estimate, Unavailable

if TYPE_CHECKING:
    from passhat.drawing import Figure
    from passhat.reporters.test_cases import TestSuite

_FIRST, _LAST = 10, 20
"""Steps shown at each end of a long decision log; JSON has them all."""


class VerdictsAnswer(Answer[Verdicts]):
    """Whether gates are met."""

    name = "verdicts"
    template = "gate.html"

    def title(self) -> str:
        return f"{self.result.status}: {plural(len(self.result), 'gate')}"

    def chip(self) -> StatusLabel | None:
        return StatusLabel(self.result.status, WORD_TONES[self.result.status])

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Each gate with its verdict; with `explain`, the log and the picture of each."""
        verdicts = self.result
        blocks: list[Block] = [Headline(verdicts.sentence)] if len(verdicts) != 1 else []
        for verdict in verdicts:
            blocks.append(judged(verdict))
            if options.explain:
                blocks += _explanation(verdict)
            elif options.verbose:
                blocks += _boundaries(verdict)
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        verdicts = self.result
        if options.explain:
            return self.blocks(options)
        if len(verdicts) == 1:
            return [gate_screen(verdicts[0], options)]
        hints = Hints(_why(verdicts, options))
        return [*gates_screen(verdicts), *([hints] if hints.steps else [])]

    def rows(self) -> Records:
        return [
            {
                "gate": verdict.gate.require,
                "system": verdict.system,
                "verdict": verdict.status,
                "value": None if verdict.only_limits else value_of(verdict.estimate),
                **end_cells("", interval_of(verdict.estimate)),
                "wrong_pass_at_most": verdict.alpha,
                "wrong_fail_at_most": verdict.beta,
                "runs": verdict.runs,
                "sentence": verdict.sentence,
            }
            for verdict in self.result
        ]

    def data(self) -> dict[str, Any]:
        return VERDICTS(self.result)

    def figures(self) -> Mapping[str, Figure]:
        """The picture of each gate; where several systems have the same gate, by system as well."""
        from passhat.analysis.gates.plots import evidence_figure

        every = list(self.result)
        demands = [verdict.demand for verdict in every]
        names = (
            f"{v.system}: {v.demand}" if demands.count(v.demand) > 1 else v.demand for v in every
        )
        drawn = zip(names, map(evidence_figure, every), strict=True)
        return {name: figure for name, figure in drawn if not isinstance(figure, Unavailable)}

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import gate_suite

        return [gate_suite(self.result)]

    def glance(self) -> Figure | None:
        """As on the page: all gates, or the tasks of one; of one that was watched the way there."""
        watched = len(self.result) == 1 and self.result[0].steps
        return (None if watched else self._overview()) or super().glance()

    def _overview(self) -> Figure | None:
        """All gates in one picture; of a single one on a share its tasks by their passes."""
        from passhat.analysis.gates.plots import gates_figure, tasks_figure

        verdicts = self.result
        alone = len(verdicts) == 1 and _gate_number(verdicts[0]) is not None
        figure = tasks_figure(verdicts[0]) if alone else gates_figure(list(verdicts))
        return None if isinstance(figure, Unavailable) else figure

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """All gates in one picture, and the evidence of each in a fold; one as a number."""
        verdicts = self.result
        number = _gate_number(verdicts[0]) if len(verdicts) == 1 else None
        tasks = verdicts[0].tasks
        marked = 0 < max((len(task.sequence) for task in tasks), default=0) <= MOST_MARKED
        return {
            "number": number,
            "subject": "gates",
            "headline": headline(verdicts),
            "counts": verdicts.sentence if len({each.status for each in verdicts}) > 1 else "",
            "facts": _numbers(verdicts),
            "overview": self._overview(),
            "gates": [judged(verdict) for verdict in verdicts],
            # Of one gate the bounds are in its gauge: a picture adds the way there, or its tasks.
            "evidence": self.figures() if number is None or verdicts[0].steps else {},
            "nearest": _nearest(verdicts[0]) if number else [],
            "every_task": _lowest_first(verdicts[0]) if number else [],
            "tasks_judged": len(tasks),
            "marked": marked,
            "results": options.results,
        }


def _gate_number(verdict: Verdict) -> dict[str, Any] | None:
    """What the gauge of one gate on a share shows: its value, bounds, and what is demanded."""
    demand, estimate = verdict.gate.demand, verdict.estimate
    if not isinstance(demand, ThresholdRequirement) or not demand.target.is_share:
        return None
    bounds = interval_of(estimate)
    if not isinstance(estimate, Estimate) or bounds is None or verdict.only_limits:
        return None
    near, word = (bounds.high, "short") if demand.upward else (bounds.low, "over")
    gap = abs(demand.threshold - near)
    short, lack = None, ""
    if verdict.status == "FAIL" and demand.threshold not in bounds:
        short = sorted([near, demand.threshold])
        lack = f": at least {points(gap, digits=1)} points {word}"
    return {
        "name": metric_label(demand.target.name),
        "shown": percent(estimate.value, digits=1),
        "value": estimate.value,
        "suite": [bounds.low, bounds.high],
        "like": None,
        "demand": demand.threshold,
        "short": short,
        "words": f"{percent(bounds.low, digits=1)} to {percent(bounds.high, digits=1)}, "
        f"{percent(demand.threshold, digits=1)} demanded{lack}",
        "missing": _missing(verdict, demand, estimate.value),
    }


def _missing(verdict: Verdict, demand: ThresholdRequirement, value: float) -> str:
    """How many tasks at least must improve until the number itself is what was demanded."""
    lacks = sorted(
        (1 - task.value for task in verdict.tasks if task.value is not None), reverse=True
    )
    missing = len(verdict.tasks) * (demand.threshold - value)
    # Weights, or tasks that the number leaves out, would make another sum.
    if (
        missing <= 0
        or not demand.upward
        or len(lacks) < len(verdict.tasks)
        or not math.isclose(sum(lacks), len(lacks) * (1 - value), abs_tol=1e-6)
    ):
        return ""
    fewest = bisect.bisect_left([*itertools.accumulate(lacks)], missing - 1e-9) + 1
    which = plural(fewest, "more task") if fewest <= len(lacks) else "more tasks than there are"
    return (
        f"At least {which} must pass every trial for the number itself to be "
        f"{percent(demand.threshold, digits=1)}; a PASS takes more."
    )


def _numbers(verdicts: Verdicts) -> Facts:
    """The numbers of a few gates, those of the verdict first, with bounds and what is demanded."""
    known = [(verdict, _gate_number(verdict)) for verdict in verdicts]
    known.sort(key=lambda pair: pair[0].status != verdicts.status)
    several = len({verdict.system for verdict in verdicts}) > 1
    return [
        (number["shown"], f"{verdict.system}, " * several + f"{number['name']}: {number['words']}")
        for verdict, number in known[:FEW_GATES]
        if number is not None
    ]


MOST_NEAREST, MOST_TASKS = 8, 2_000
"""Tasks that the page of a gate names first, and that it lists below."""

MOST_MARKED = 12
"""Trials of a task up to which each is a mark; of more, only their counts are shown."""


def _nearest(verdict: Verdict) -> list[TaskEvidence]:
    """The tasks that failed a trial, nearest to none first."""
    missed = [task for task in verdict.tasks if task.passed < task.runs]
    missed.sort(key=lambda task: (-task.passed / task.runs, natural_key(task.task)))
    return missed[:MOST_NEAREST]


def _lowest_first(verdict: Verdict) -> list[TaskEvidence]:
    """Every task that the gate counts, as the page of a report has them."""
    rate = {task.task: task.passed / task.runs if task.runs else 0.0 for task in verdict.tasks}
    order = sorted(verdict.tasks, key=lambda task: (rate[task.task], natural_key(task.task)))
    return order[:MOST_TASKS]


MOST_GATES = 9
"""Gates on the first screen; with fewer than five, a sentence may take two lines."""

FEW_GATES = 4

LONG_DEMAND = 24
"""From here on a demand leaves little room beside it."""

LONGEST_CELL, _LINES_OF_CELL = 44, 3
"""What a gate without a number says beside others, and its lines where their cells are wrapped."""

LOWEST_TASKS = 4
"""Tasks that a failed gate names."""


def gate_screen(
    verdict: Verdict,
    options: DisplayOptions,
    *,
    named: bool = False,
    lowest: bool = True,
    more: bool = True,
) -> Judged:
    """One gate: the word, what was found, and for a FAIL the `lowest` tasks and where to look.

    `named` says which agent was judged, `more` how many more trials would decide an open one.
    """
    trials = plural(verdict.runs, "trial")
    whole = finding(verdict)
    agent = f"{short(verdict.system)}: " if named else ""
    if verdict.has_ended:
        sentence = f"{agent}{_demand(verdict)} {_counts(verdict)}"
    elif whole is None:
        every_task = isinstance(verdict.gate.demand, EveryTaskRequirement)
        sentence = verdict.beside_status(named=named, start=": " if every_task else ". ")
    else:
        it = "" if isinstance(verdict.gate.demand, NoWorseRequirement) else "it is "
        start = f"{agent}{_demand(verdict)}: {it}{whole}"
        error = verdict.gate.alpha if verdict.status == "PASS" else verdict.gate.beta
        sure = f"{start} ({percentage(1 - error)} confidence, {trials})"
        # Where the line would wrap, its confidence is left to -v; a later look has its own line.
        fits = verdict.status != "UNDECIDED" and len(sure) + len(verdict.status) + 2 <= SCREEN_WIDTH
        fits = fits and not verdict.all_looks
        sentence = sure if fits else f"{start} ({trials})"
    return Judged(
        word=verdict.status,
        sentence=sentence,
        details=tuple(_screen_details(verdict, options, lowest, more)),
    )


def gates_screen(verdicts: Verdicts, about: str = "", most: int = MOST_GATES) -> list[Block]:
    """Several gates: how many passed, and a row each. `about` says what was judged."""
    words = [verdict.status for verdict in verdicts]
    counts = [f"{words.count(word)} {done}" for word, done in _DONE.items() if word in words]
    counts[0] = counts[0].replace(" ", f" of {len(words)} gates ", 1)
    if len(counts) == 1:
        counts = [f"all {plural(len(words), 'gate')} {_DONE[words[0]]}"]
    elif "UNDECIDED" not in words:
        counts = [f"{words.count('FAIL')} of {len(words)} gates failed"]
    runs = {verdict.runs for verdict in verdicts}
    several = len({verdict.system for verdict in verdicts}) > 1
    own = any(verdict.was_watched for verdict in verdicts)  # trials of its own, said beside it
    trials = plural(runs.pop(), "trial") if len(runs) == 1 and not own else ""
    about = about or (trials and f"{trials}{' of each agent' if several else ''}")
    shown = list(verdicts)
    if len(shown) > most:  # those that ask for something come first
        shown = sorted(shown, key=lambda gate: _URGENCY.index(gate.status))[: most - 1]
    brief = len(shown) > FEW_GATES and max(len(_demand(gate)) for gate in shown) > LONG_DEMAND
    rows = tuple(
        (
            verdict.status,
            *([verdict.system] if several else []),
            _demand(verdict),
            _cell(verdict, brief=brief, wraps=len(shown) <= FEW_GATES),
        )
        for verdict in shown
    )
    agents = [""] if several else []
    last = 2 + several
    blocks: list[Block] = [
        Judged(
            word=verdicts.status,
            sentence=", ".join(counts) + (f" ({about})" if about else ""),
            details=tuple(notes_of_missing(verdicts)),
        ),
        Table(
            header=("", *agents, "", ""),
            rows=rows,
            left=tuple(range(last + 1)),
            cut=((1, SHORTEST_HEADING), (last, 20)) if several else ((last, 20),),
            wrapped=(last,) if len(shown) <= FEW_GATES else (),
        ),
    ]
    if more := len(verdicts) - len(shown):
        blocks.append(Remark(f"{plural(more, 'more gate')}: -v"))
    levels = {(verdict.gate.alpha, verdict.gate.beta) for verdict in verdicts}
    if len(levels) == 1 and any(finding(v) and not v.all_looks for v in verdicts):
        sure, fail = (percentage(1 - error) for error in levels.pop())
        sides = f"{sure} confidence" if sure == fail else f"{sure} for PASS, {fail} for FAIL"
        blocks.append(Remark(f"One-sided bounds at {sides}; a CI has two sides."))
    notes = (*errored_trials(verdicts), *errors_of_all_looks(verdicts), *screen_notes(verdicts))
    return [*blocks, *map(Remark, (*notes, *_without_error_rates(verdicts)))]


def _without_error_rates(verdicts: Iterable[Verdict]) -> list[str]:
    """Why bounds on trials that ended by their results promise nothing, each sentence once."""
    bare = (v for v in verdicts if v.evidence == "bound" and v.alpha is None and v.beta is None)
    return list(dict.fromkeys(note.ending for v in bare for note in v.remarks if note.ending))


def errored_trials(verdicts: Iterable[Verdict]) -> list[str]:
    """How errored trials were counted, said once; of several agents, how many each had."""
    words: dict[str, str] = {}
    counts: dict[str, int] = {}
    rules: dict[str, ErrorPolicy | None] = {}
    agents = set()
    for verdict in verdicts:
        agents.add(verdict.system)
        count = sum(task.errored for task in verdict.tasks)
        if verdict.errors not in ("", NO_ERRORS) and count >= counts.get(verdict.system, 0):
            words[verdict.system], counts[verdict.system] = _errored(verdict, count), count
            rules[verdict.system] = verdict.error_rule
    if len(agents) == 1 or not words:
        return [f"{capitalised(text)}." for text in words.values()]
    rule, *others = set(rules.values())
    if all(counts.values()) and rule is not None and not others:
        named = ", ".join(f"{short(name)} {count:,}" for name, count in counts.items())
        start = f"Errors: {plural(sum(counts.values()), 'trial')}"
        counted = "counted as failed" if rule == "fail" else "left out"
        whole = f"{start} ({named}), {counted}."
        return [whole if len(whole) <= SCREEN_WIDTH else f"{start}, {counted}."]
    return [f"{short(next(iter(words)))}: {next(iter(words.values()))}."]


def _errored(verdict: Verdict, count: int) -> str:
    """How many trials errored: of a stored run all that its tasks count, more than one gate saw."""
    if not verdict.was_watched or not count:
        return verdict.errors
    trials = plural(sum(task.runs for task in verdict.tasks), "trial")
    return f"{count:,} of {trials} errored and {'counts' if count == 1 else 'count'} as failed"


def _cell(verdict: Verdict, *, brief: bool = False, wraps: bool = False) -> str:
    """What was found, in a cell; how many more trials it takes only where there is room.

    A sentence is cut where its cell does not continue on further lines, as one that `wraps` does.
    """
    ends = finding(verdict)
    mild = " (a warning only)" * (verdict.gate.severity == "warning" and verdict.status != "PASS")
    if verdict.was_watched:  # nor has one that stayed undecided a rate
        return _counts(verdict) + mild
    if ends is None:
        if verdict.status == "FAIL" and isinstance(verdict.gate.demand, NoTaskWorseRequirement):
            worse = [task for task in verdict.tasks if task.worse]
            if brief:
                return f"worse: {listed((task.task for task in worse), 1, show=short)}{mild}"
            return f"worse: {listed((task.change for task in worse), 2)}{mild}"
        # What limits a verdict is left to -v.
        text = f"after {verdict.after}: " * bool(verdict.after) + verdict.clauses[0]
        return f"{shorten(text, (_LINES_OF_CELL if wraps else 1) * LONGEST_CELL)}{mild}"
    if brief:  # the demand beside it has the unit
        ends = ends.replace(" points", "")
    if verdict.status != "UNDECIDED":
        return f"{ends}{mild}"
    more = ""
    if verdict.more_runs and not brief:
        more = f"; about {plural(verdict.more_runs, 'more trial')}"
    return ends.replace("between ", "").replace(" and ", " to ") + more + mild


_DONE = {"PASS": "passed", "FAIL": "failed", "UNDECIDED": "undecided"}
_URGENCY = ("FAIL", "UNDECIDED", "PASS")


def finding(verdict: Verdict) -> str | None:
    """The number and the bound that a verdict rests on: "39.0%, at most 45.5%".

    None if the verdict says more than its bound, or rests on none.
    """
    demand, estimate = verdict.gate.demand, verdict.estimate
    if isinstance(demand, NoWorseRequirement):
        return _difference(verdict)
    if not isinstance(demand, ThresholdRequirement) or not isinstance(estimate, Estimate):
        return None
    bounds = estimate.interval
    says_more = verdict.unmade or any(note.ending for note in verdict.remarks)
    if bounds is None or verdict.evidence != "bound" or says_more:
        return None
    numbers = (estimate.value, bounds.low, bounds.high)
    share = demand.target.is_share
    texts = [shown(number, demand.threshold, share=share) for number in numbers]
    if share and any("." in text for text in texts):  # as many decimals as beside it
        texts = [
            text.replace("%", ".0%") if re.fullmatch(r"[1-9]\d?%", text) else text for text in texts
        ]
    value, low, high = texts
    value = "" if verdict.only_limits else f"{value}, "
    if verdict.status == "UNDECIDED":
        return f"{value}between {low} and {high}"
    at_least = (verdict.status == "PASS") == demand.upward
    return f"{value}{f'at least {low}' if at_least else f'at most {high}'}"


def errors_of_all_looks(verdicts: Iterable[Verdict]) -> list[str]:
    """What bounds on trials that extend a plan promise, each sentence once."""
    return list(dict.fromkeys(verdict.all_looks for verdict in verdicts if verdict.all_looks))


def _difference(verdict: Verdict) -> str | None:
    """How far from the baseline, and the bound that decides: "-12.0 points, at most -5.5"."""
    estimate, demand = verdict.estimate, verdict.gate.demand
    if not isinstance(estimate, Estimate) or estimate.interval is None:
        return None
    ends = (estimate.value, estimate.interval.low, estimate.interval.high)
    value, low, high = (signed_points(end, digits=1) for end in ends)
    if verdict.status == "UNDECIDED" or isinstance(demand, EquivalentRequirement):
        return f"{value} points, between {low} and {high}"
    return f"{value} points, {f'at least {low}' if verdict.status == 'PASS' else f'at most {high}'}"


def _counts(verdict: Verdict) -> str:
    """How many trials a gate that watched the run has seen, and how many passed.

    A rate would be one that stopped while it was lucky. Where the gate stays undecided to the end
    of its plan, a rate would lie near the threshold whatever the agent is, or it had been decided.
    """
    seen = f"after {plural(verdict.runs, 'trial')}"
    if isinstance(verdict.gate.demand, EveryTaskRequirement) or not verdict.tasks:
        return f"{seen}: {verdict.seen}"
    passed = sum(task.passed for task in verdict.tasks)
    known = sum(task.runs for task in verdict.tasks) == verdict.runs
    return f"{seen}: {passed:,} passed" if known else seen


def was_stopped(verdicts: Iterable[Verdict]) -> bool:
    """Whether gates that watched a run decided when it stopped."""
    return any(verdict.has_ended for verdict in verdicts)


def chance_of_a_wrong_verdict(verdicts: Iterable[Verdict]) -> str | None:
    """The promise of gates that stopped a run, once for all of them."""
    rates = [
        rate
        for verdict in verdicts
        for rate in (verdict.alpha, verdict.beta)
        if verdict.has_ended and rate is not None
    ]
    if not rates:
        return None
    chance = f"Wrong at most {percentage(max(rates))} of the time."
    return f"{chance} It is a verdict, not a rate."


def notes_of_stops(verdicts: Iterable[Verdict]) -> list[str]:
    """What gates that stopped a run noted on the way, such as an outage or a drift; each once."""
    notes = (note for verdict in verdicts if verdict.has_ended for note in verdict.notes)
    return list(dict.fromkeys(f"{capitalised(note)}." for note in notes))


def screen_notes(verdicts: Iterable[Verdict]) -> list[str]:
    """What verdicts depend on, each sentence once: a judge, levels, trials that no cell counts."""
    return _notes_of_kind("on screen", verdicts)


def notes_of_missing(verdicts: Iterable[Verdict]) -> list[str]:
    """Which tasks of a baseline were not run, each sentence once."""
    return _notes_of_kind("missing tasks", verdicts)


def _notes_of_kind(kind: NoteKind, verdicts: Iterable[Verdict]) -> list[str]:
    """Notes each once; one that does not hold for every agent begins with those it is about."""
    held: dict[str, dict[str, None]] = {}
    agents = set()
    for verdict in verdicts:
        agents.add(verdict.system)
        for note in verdict.remarks:
            if note.kind == kind:
                held.setdefault(note.text, {})[verdict.system] = None
    return [
        f"{capitalised(text)}." if len(of) == len(agents) else f"{few(of, 2)}: {text}."
        for text, of in held.items()
    ]


def _demand(verdict: Verdict) -> str:
    require = verdict.own_demand
    if isinstance(verdict.gate.demand, NoWorseRequirement):
        require = re.sub(r"^(no_worse_than|better_than|equivalent_to) ", _spaced, require)
        require = re.sub(r" by ([\d.]+)(?= at |$)", _in_points, require)
    return require if verdict.gate.name is None else f"{verdict.gate.name} ({require})"


def _spaced(match: re.Match[str]) -> str:
    return match[0].replace("_", " ")


def _in_points(match: re.Match[str]) -> str:
    return f" by {100 * float(match[1]):g} points"


def _screen_details(
    verdict: Verdict, options: DisplayOptions, lowest: bool, more: bool
) -> Iterator[str | NextStep]:
    results = options.results
    yield from notes_of_missing([verdict])
    if more and verdict.status == "UNDECIDED" and verdict.more_runs and finding(verdict):
        yield f"About {plural(verdict.more_runs, 'more trial')} would decide it 4 times in 5."
    if isinstance(verdict.estimate, Estimate) and verdict.rests_on_labels:
        yield from (f"{capitalised(note)}." for note in verdict.estimate.notes[:2])
    if finding(verdict) and verdict.all_looks:
        yield verdict.all_looks
    if promise := chance_of_a_wrong_verdict([verdict]):
        yield promise
        yield from notes_of_stops([verdict])
    yield from screen_notes([verdict])
    if verdict.errors and verdict.errors != NO_ERRORS:
        yield f"{capitalised(verdict.errors)}."
    if verdict.gate.severity == "warning" and verdict.status != "PASS":
        yield "A warning only: it does not change the exit code."
    low = sorted(
        (task for task in verdict.tasks if task.passed < task.runs),
        key=lambda task: task.passed / task.runs,
    )
    demand = verdict.gate.demand
    if verdict.status != "FAIL" or not low:
        return
    if lowest and isinstance(demand, ThresholdRequirement):
        called = shorten_apart([task.task for task in low[:LOWEST_TASKS]], LONGEST_NAME)
        named = (
            f"{name} {task.passed}/{task.runs}" for name, task in zip(called, low, strict=False)
        )
        yield f"Lowest: {', '.join(named)}."
    if isinstance(demand, ThresholdRequirement | EveryTaskRequirement) and results is not None:
        yield advise("Why", f"passhat why {results}")
    elif (step := _which_tasks(verdict, options)) is not None:
        yield step


def _why(verdicts: Verdicts, options: DisplayOptions) -> tuple[NextStep, ...]:
    results = options.results
    failed = [verdict.system for verdict in verdicts if verdict.status == "FAIL"]
    if results is None or not failed:
        return ()
    worse = [_which_tasks(verdict, options) for verdict in verdicts if verdict.status == "FAIL"]
    if worse[0] is not None and None not in worse:  # what failed is a comparison
        return (worse[0],)
    several = len({verdict.system for verdict in verdicts}) > 1
    which = f" {only(failed[0])}" if several else ""
    return (advise("Why", f"passhat why {results}{which}"),)


def _which_tasks(verdict: Verdict, options: DisplayOptions) -> NextStep | None:
    """How to see the tasks that differ from the baseline; None for a gate that has none."""
    compares = isinstance(verdict.gate.demand, NoWorseRequirement | NoTaskWorseRequirement)
    if not compares or options.results is None or options.against is None:
        return None
    return advise("Which tasks", f"passhat compare {options.results} {options.against}")


def judged(verdict: Verdict) -> Judged:
    """The word, the sentence and how sure it is."""
    return Judged(
        word=verdict.status, sentence=verdict.beside_status(), details=tuple(_details(verdict))
    )


def _details(verdict: Verdict) -> list[str]:
    details = [f"{_errors(verdict)}; {verdict.errors}."]
    if verdict.runs_saved:
        way = "saved against" if verdict.runs_saved > 0 else "more than"
        count = plural(abs(verdict.runs_saved), "trial")
        details.append(f"{count} {way} the fixed design with the same error rates.")
    untold = (note for note in verdict.remarks if not note.ending and note.kind != "log is empty")
    details += [f"{capitalised(note.text)}." for note in untold]
    if verdict.gate.severity == "warning" and verdict.status != "PASS":
        details.append("A warning only: it does not change the exit code.")
    return details


def _errors(verdict: Verdict) -> str:
    if verdict.alpha is None and verdict.beta is None:
        return "No error rate"
    wrong_pass = "not stated" if verdict.alpha is None else f"at most {100 * verdict.alpha:.4g}%"
    wrong_fail = "not stated" if verdict.beta is None else f"at most {100 * verdict.beta:.4g}%"
    return f"Wrong PASS {wrong_pass}, wrong FAIL {wrong_fail}"


def _explanation(verdict: Verdict) -> list[Block]:
    """Everything needed to reach the same verdict by hand."""
    from passhat.analysis.gates.plots import evidence_figure

    blocks: list[Block] = [
        Paragraph("Method", f"{capitalised(verdict.method)}. {_promise(verdict)}".strip())
    ]
    blocks += _boundaries(verdict)
    if verdict.seed is not None:
        blocks.append(Paragraph("Seed", f"{verdict.seed}: it alone decides which task is drawn."))
    if verdict.steps:
        blocks.append(_steps_table(verdict))
    elif verdict.tasks:
        blocks.append(_tasks_table(verdict))
    figure = evidence_figure(verdict)
    return blocks if isinstance(figure, Unavailable) else [*blocks, Picture(figure)]


def _boundaries(verdict: Verdict) -> list[Block]:
    """When a gate that was planned ends the run."""
    words = ". ".join(verdict.boundaries)
    return [Paragraph("Ends", f"{words}.")] if words else []


def _promise(verdict: Verdict) -> str:
    if verdict.evidence == "point":
        return "A bare point: no error rate is promised."
    gate = verdict.gate
    if verdict.alpha is None and verdict.beta is None:
        return "One-sided bounds for a fixed number of trials: here no error rate is promised."
    stated = ((verdict.alpha, gate.alpha), (verdict.beta, gate.beta))
    if verdict.evidence == "bound" and any(own not in (None, plan) for own, plan in stated):
        return "One-sided bounds, stricter than those of the plan: this is not the first look."
    if verdict.evidence == "bound" or (verdict.boundaries and not verdict.steps):
        return ""  # the error rates stand beside the verdict
    return (
        "Evidence multiplies from 1; a verdict falls when its logarithm reaches "
        f"-ln {gate.alpha:g} (PASS) or -ln {gate.beta:g} (FAIL), or the design's own boundary."
    )


def _steps_table(verdict: Verdict) -> Table:
    steps = verdict.steps
    rows = [
        (
            f"{step.number}",
            step.task,
            step.outcome,
            f"{step.log_pass:+.3f}",
            f"{step.pass_boundary:.3f}",
            f"{step.log_fail:+.3f}",
            f"{step.fail_boundary:.3f}",
        )
        for step in steps
    ]
    if len(rows) > _FIRST + _LAST:
        left_out = len(rows) - _FIRST - _LAST
        gap = ("...", f"{left_out:,} more (JSON has all)", "", "", "", "", "")
        rows = [*rows[:_FIRST], gap, *rows[-_LAST:]]
    header = ("step", "task", "trials", "for PASS", "needs", "for FAIL", "needs")
    return Table(header=header, rows=tuple(rows), left=(1, 2), cut=((1, 12),))


def _tasks_table(verdict: Verdict) -> Table:
    demand = verdict.gate.demand
    number = "mean score"
    if isinstance(demand, ThresholdRequirement) and demand.target.attempts is not None:
        number = metric_label(str(demand.target))
    changes = isinstance(demand, NoTaskWorseRequirement)
    rows: Sequence[tuple[str, ...]] = [
        (
            task.task,
            f"{task.runs:,}",
            f"{task.passed:,}",
            f"{task.errored:,}",
            signed_points(task.value, digits=1) if changes else percent(task.value, digits=1),
            task.note.removesuffix(" (Holm)"),  # the method has named it
        )
        for task in verdict.tasks
    ]
    header = ("task", "trials", "passed", "errored", "change" if changes else number, "")
    return Table(header=header, rows=tuple(rows), left=(0, 5), wrapped=(5,))


def headline(verdicts: Verdicts) -> str:
    """Whether the gates are met, in one sentence."""
    if len(verdicts) == 1:
        (verdict,) = verdicts
        return f"{_ONE[verdict.status]}: {verdict.beside_status()}"
    words = [verdict.status for verdict in verdicts]
    count = words.count(verdicts.status)
    if count < len(words):
        be = "is" if count == 1 else "are"
        return f"{count} of {len(words)} gates {be} {_MANY[verdicts.status]}."
    if verdicts.status == "FAIL":
        return "Neither gate is met." if count == 2 else f"None of {count} gates is met."
    return f"{'Both' if count == 2 else f'All {count}'} gates are {_MANY[verdicts.status]}."


_ONE = {
    "PASS": "The gate is met",
    "FAIL": "The gate is not met",
    "UNDECIDED": "The gate is undecided",
}
_MANY = {"PASS": "met", "FAIL": "not met", "UNDECIDED": "undecided"}


def _number(verdict: Verdict) -> EstimateObject | LimitsObject | UnavailableObject:
    shown = number_object(verdict.estimate)
    return cast(LimitsObject, {**shown, "value": None}) if verdict.only_limits else shown


VERDICT = JsonShape(
    "verdict",
    Verdict,
    "One gate's word on one agent: the demand, the evidence, and the log.",
    "require=gate.require terms=gate system verdict=status exit_code sentence estimate evidence "
    "method alpha beta runs fixed_runs runs_saved max_runs more_runs seed errors notes tasks steps",
    estimate=_number,
    parts=[
        JsonShape(
            "__terms",
            Gate,
            "How the demand was to be decided, and what follows.",
            "name system confidence scope evidence indifference alpha beta max_runs design "
            "on_undecided severity tags at",
        ),
        JsonShape(
            "__task_evidence",
            TaskEvidence,
            "What one task adds to a verdict on a fixed number of runs.",
            "task runs passed errored value note",
        ),
        JsonShape(
            "__step",
            DecisionLine,
            "One line of the decision log; the logarithms are natural.",
            "draw=number task outcome log_pass log_fail pass_boundary fail_boundary",
        ),
    ],
)
VERDICTS = JsonShape(
    "verdicts",
    Verdicts,
    "Every gate's verdict, and the one that follows from all.",
    "schema verdict=status exit_code sentence verdicts=each",
    parts=[VERDICT],
)
