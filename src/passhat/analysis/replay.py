"""Sequential gates on trials that were run already: taken in order, as if they came in now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from passhat.analysis.bars import Bars
from passhat.analysis.every_task import bars_of
from passhat.analysis.gates import EveryTaskDemand, Gate
from passhat.analysis.sequential_gates import every_task_gate, passed
from passhat.analysis.sequential_verdicts import every_task_verdict, stream_verdict
from passhat.analysis.streams import EveryTaskWatch, Stream
from passhat.analysis.verdict import Verdict
from passhat.records import Trial, Trials


def judge_sequentially(
    gate: Gate, trials: Trials, *, bars: Bars, baseline: Trials | None, seed: int
) -> Verdict:
    """A sequential gate on a log of one system, its runs taken task by task in their order.

    Tasks are drawn at random with the seed; each draw takes the next runs of its task. Where a task
    has no more, the gate stays open: stopping there depends on no later result, so the error rates
    hold.
    """
    if isinstance(gate.demand, EveryTaskDemand):
        return _every_task(gate, gate.demand, trials, bars)
    sides = [trials] if baseline is None else [trials, baseline]
    queues = [_in_order(side) for side in sides]
    shared = [task for task in queues[0] if all(task in queue for queue in queues)]
    systems = tuple(side.systems[0] for side in sides)
    stream = Stream(systems, sorted(shared), [gate], seed=seed)
    empty = _draw_all(stream, queues)
    verdict = stream_verdict(stream, stream.watches[0])
    if verdict.word != "UNDECIDED" or empty is None:
        return verdict
    note = f"the log has no more runs of task {empty}"
    sentence = f"{verdict.sentence.removesuffix('.')} ({note})."
    return replace(verdict, sentence=sentence, notes=(*verdict.notes, note))


def _draw_all(stream: Stream, queues: Sequence[dict[str, Iterator[Trial]]]) -> str | None:
    """Draw until the gate is settled; the task that ran out, if one did."""
    while (draw := stream.next_run()) is not None:
        side = draw.run if stream.paired else 0
        trial = next(queues[side][draw.task], None)
        if trial is None:
            return draw.task
        stream.observe(draw.index, trial)
    return None


def _in_order(trials: Trials) -> dict[str, Iterator[Trial]]:
    """The trials of each task by their number."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.task, []).append(trial)
    return {task: iter(sorted(runs, key=lambda trial: trial.trial)) for task, runs in found.items()}


def _every_task(gate: Gate, demand: EveryTaskDemand, trials: Trials, bars: Bars) -> Verdict:
    queues = _in_order(trials)
    wanted = bars_of(demand, bars, sorted(queues))
    design = every_task_gate(gate, tuple(wanted.values()))
    watch = EveryTaskWatch(gate, design, trials.systems[0], tuple(wanted))
    for turn in zip_longest(*(queues[task] for task in wanted)):
        for trial in turn:
            if trial is not None:
                watch.observe(trial, passed(trial))
    return every_task_verdict(watch)
