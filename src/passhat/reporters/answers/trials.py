"""What a table of trials holds, in a few lines: who tried how much, and how it ended."""

from __future__ import annotations

from passhat.messages import plural
from passhat.records import Tally, Trials
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Block, Headline, Table, paragraphs


def trials_blocks(trials: Trials, options: DisplayOptions) -> list[Block]:
    """Counts of every system, and what the reader of the file had to say."""
    size = ", ".join(
        (
            plural(len(trials), "trial"),
            plural(len(trials.systems), "system"),
            plural(len(trials.tasks), "task"),
        )
    )
    table = Table(
        header=("system", "tasks", "runs of each", "trials", "passed", "failed", "errored"),
        rows=tuple(_row(trials.tally(name)) for name in trials.systems),
    )
    notes = dict.fromkeys(note for source in trials.sources for note in source.notes)
    return [Headline(f"{size}."), table, *paragraphs("Note", *notes)]


def _row(tally: Tally) -> tuple[str, ...]:
    runs = tally.runs()
    fewest, most = int(runs.min()), int(runs.max())
    ends = (tally.passed, tally.failed, tally.errored)
    return (
        tally.system,
        f"{len(tally.tasks):,}",
        f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}",
        f"{tally.trials:,}",
        *(f"{int(count.sum()):,}" for count in ends),
    )


def _rows(trials: Trials) -> Records:
    tallies = [trials.tally(name) for name in trials.systems]
    return [
        {
            "system": tally.system,
            "task": task,
            "passed": int(tally.passed[i]),
            "failed": int(tally.failed[i]),
            "errored": int(tally.errored[i]),
        }
        for tally in tallies
        for i, task in enumerate(tally.tasks)
    ]


KIND = AnswerKind(
    name="trials",
    blocks=trials_blocks,
    rows=_rows,
    title=lambda trials: plural(len(trials), "trial"),
)
