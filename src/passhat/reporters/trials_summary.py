"""What a table of trials holds, in a few lines: who tried how much, and how it ended."""

from __future__ import annotations

from passhat.messages import plural
from passhat.records import Tally, Trials
from passhat.reporters.blocks import Block, Headline, Paragraph, Table, blocks_markdown


def render_trials_markdown(trials: Trials) -> str:
    """Counts of every system, and what the reader of the file had to say.

    >>> two = Trials.from_columns(task=["a", "a"], passed=[True, False])
    >>> print(render_trials_markdown(two).splitlines()[-1])
    | system | 1 | 2 | 2 | 1 | 1 | 0 |
    """
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
    blocks: list[Block] = [Headline(f"{size}."), table, *(Paragraph("Note", n) for n in notes)]
    return blocks_markdown(blocks)


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
