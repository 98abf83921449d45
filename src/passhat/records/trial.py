"""One attempt by one system at one task, where it came from, and the names of tasks and runs."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal

from passhat.dataclass import dataclass, result_dataclass
from passhat.messages import few, listed, short

Duplicates = Literal["error", "keep", "last"]

FEATURES = ("tokens_in", "tokens_out", "tokens", "cost", "seconds", "turns", "tool_calls")
"""What an attempt took, in numbers; `tokens` is the total of logs that do not tell in from out."""


TrialKey = tuple[str, str, int]
"""Which trial of a run: its system, its task, and its number."""


class Outcome(enum.IntEnum):
    """How an attempt ended. An error (infrastructure, grader) is neither a pass nor a failure."""

    FAILED = 0
    PASSED = 1
    ERRORED = 2


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt: who tried what, how it ended, and what it took.

    A task that is tried under several conditions is several tasks, one for each: `at` says under
    which ("user=terse", "fault=all"), and `base` which task it is without them.
    `stated_confidence` is what the agent said of its own success, from 0 to 1.

    >>> Trial(system="gpt-5", task="refund", trial=0, outcome=Outcome.PASSED).score
    1.0
    """

    system: str
    task: str
    trial: int
    outcome: Outcome
    score: float | None = None
    seed: int | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None
    turns: float | None = None
    tool_calls: float | None = None
    tools: tuple[str, ...] = ()
    level: str | None = None
    tags: tuple[str, ...] = ()
    family: str | None = None
    weight: float | None = None
    base: str | None = None
    at: tuple[str, ...] = ()
    stated_confidence: float | None = None
    error: str | None = None
    started: str | None = None

    def __post_init__(self) -> None:
        if self.score is None and self.outcome is not Outcome.ERRORED:
            object.__setattr__(self, "score", float(self.outcome))

    @property
    def key(self) -> TrialKey:
        """Which trial of its run it is: its system, its task, and its number."""
        return self.system, self.task, self.trial


Facts = tuple[tuple[str, str], ...]
"""Pairs of a part of a trial (task, run, outcome, ...) and what in the file it was read from."""

STEP_PASSED, STEP_FAILED = "step-passed:", "step-failed:"
"""What tags of a run begin with that say how the steps of its task ended."""

USER_FLAGS = tuple(f"user:{rule}" for rule in ("made-up", "leaked", "gave-in", "left", "agent"))
"""Tags of a run that say which rules its simulated user broke."""

USER_MARKS = (*USER_FLAGS, "user:silent", "user:max-turns")
"""The same, with how a conversation may end for which no user is blamed."""


def tags_of_tasks(words: Iterable[str]) -> list[str]:
    """The tags that tasks have, without those that say how the steps or the user of a run did."""
    marks = STEP_PASSED, STEP_FAILED
    return [word for word in words if not word.startswith(marks) and word not in USER_MARKS]


NOT_REVIEWED = "not reviewed"
"""The tag of a task in a wording that no person has read."""

USED = "used:"
"""What tags of a run begin with that name a file of `add_files:` which the agent made use of."""

KEPT, SEVERITIES = "constraint:kept", {"low": 0.25, "medium": 0.5, "high": 1.0}
"""The tag of a trial that kept every constraint set on it, and how grave it is to break one. One
that breaks some is tagged `constraint:` and the gravest of them. The numbers are HAL's."""

LONGEST_PATH = 100
"""Calls of a trial whose order is kept."""


def path_of(calls: Sequence[str]) -> tuple[str, ...]:
    """The tools that were called, call by call; beyond a hundred calls each further one once.

    >>> path_of(["look", "pay", "look"])
    ('look', 'pay', 'look')
    """
    first = tuple(calls[:LONGEST_PATH])
    return (*first, *dict.fromkeys(call for call in calls[LONGEST_PATH:] if call not in first))


def is_made_by_runs(tag: str) -> bool:
    """Whether runs are given a tag by what happens in them: it may be one that no run has yet.

    >>> is_made_by_runs("used:SKILL.md"), is_made_by_runs("hard")
    (True, False)
    """
    return tag.startswith((STEP_PASSED, STEP_FAILED, USED, "constraint:")) or tag in USER_MARKS


def constraint_tag(broken: Iterable[str]) -> str:
    """The tag of a trial under constraints, by how grave those are that it broke.

    >>> constraint_tag([]), constraint_tag(["low", "high"])
    ('constraint:kept', 'constraint:high')
    """
    gravest = max(broken, key=lambda word: SEVERITIES[word], default=None)
    return KEPT if gravest is None else f"constraint:{gravest}"


LEFT_OUT = "left out"
"""The fact that names what a reader saw and did not use."""

Ended = Literal["by gates", "early"]
"""Gates decided when trials ended: after as many as were planned, or earlier."""

ENDED_COLUMN = "ended"
"""The column that says so of every trial in a table, which has no other place for it."""

STOPPED_EARLY = "its gates ended it early: it has a verdict, not a rate"
"""The note on trials of which there are as many as their own results asked for."""

ENDED_NOTES: dict[Ended, str] = {
    "early": STOPPED_EARLY,
    "by gates": "its gates decided when it ended; intervals assume a fixed number of trials",
}

GRADED_BY_JUDGE = "graded by a judge; how often it is wrong only people can show: `passhat label`"
"""The note on trials whose verdicts are a model's."""

POOLED = "trials under different conditions were pooled"
POOLED_ROUNDS = "rounds are conditions that were pooled"
"""How the note on a column begins that looks like a condition and that nobody named; the second
where the order of a task's trials follows it, so that rounds differ as its values do."""


SAMPLED = ("seed", "day", "date", "week", "hour")
"""Factors whose levels stand for others like them: the trials of a task at all of them are its
trials, and the spread between levels is part of every interval. Other levels are what matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where trials came from: a name to show, the format that read it, and the bytes' hash.

    `read_as` says how it was read: first the format with its version, then what became the system,
    the task, the run, the outcome and so on, last what was left out. `scores` are those among
    which the first was taken because nobody chose one. `ended` says that gates could end a run.
    """

    name: str
    format: str
    sha256: str
    notes: tuple[str, ...] = ()
    read_as: Facts = ()
    scores: tuple[str, ...] = ()
    ended: Ended | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of its trials: whether gates ended them, and its notes."""
        return self.notes if self.ended is None else (ENDED_NOTES[self.ended], *self.notes)


def read_by_different_scores(sources: Iterable[Source]) -> str | None:
    """What to say of sources of one format that were read by different scores; None if one did.

    A tool may write the scores of each log in another order, and the first of them is read.

    >>> one = Source(name="a.json", format="inspect", sha256="", scores=("main", "side"))
    >>> two = Source(name="b.json", format="inspect", sha256="", scores=("side", "main"))
    >>> read_by_different_scores([one, one]) is None
    True
    >>> read_by_different_scores([one, two])[:65]
    'a.json is read by its first score, "main", and b.json by "side": '
    """
    first: dict[tuple[str, str], Source] = {}
    for source in sources:
        if source.scores:
            first.setdefault((source.format, source.scores[0]), source)
    for left, right in combinations(first.values(), 2):
        shared = [score for score in left.scores if score in right.scores]
        if left.format == right.format and {left.scores[0], right.scores[0]} & {*shared}:
            return (
                f'{left.name} is read by its first score, "{short(left.scores[0])}", and '
                f'{right.name} by "{short(right.scores[0])}": two different measures. Choose one '
                f"for all with `scorer` (both have {few(shared)})"
            )
    return None


def numbers_by_seed(source: Source) -> bool:
    """Whether a table tells the trials of a task apart by a column of seeds alone."""
    facts = dict(source.read_as)
    numbered = facts.get("run", facts.get("trial", "")).startswith("column ")
    return facts.get("seed", "").startswith("column ") and not numbered


def graded_by_judge(sources: Iterable[Source]) -> bool:
    """Whether a model graded some of the trials that came from here."""
    return any(note.endswith(GRADED_BY_JUDGE) for source in sources for note in source.notes)


def first_ended(ends: Iterable[Ended | None]) -> Ended | None:
    """How trials of several sources ended: early if some did."""
    known = {*ends}
    return next((ended for ended in ENDED_NOTES if ended in known), None)


def stated_end(cells: Iterable[object]) -> Ended | None:
    """How trials ended by the column of a table, if it says nothing else.

    >>> stated_end(["by gates", "", "early"]), stated_end(["2026-01-01"])
    ('early', None)
    """
    words = {str(cell) for cell in cells if cell not in (None, "")}
    return next((e for e in ENDED_NOTES if e in words), None) if words <= {*ENDED_NOTES} else None


def noted_end(notes: Iterable[str]) -> Ended | None:
    """How trials ended by their notes, where a file or store of an older version has no word."""
    known = tuple(notes)
    return next((e for e, end in ENDED_NOTES.items() for n in known if n.endswith(end)), None)


def ended_early(sources: Iterable[Source]) -> list[str]:
    """A note on each source whose gates ended it before as many trials had come as were planned.

    A rate of theirs is one that stopped while it was lucky, or unlucky: people read counts.
    """
    early = (source.name for source in sources if source.ended == "early")
    return [f"{name}: {STOPPED_EARLY}" for name in dict.fromkeys(early)]


def how_read(source: Source) -> str:
    """One line on how a source was read; empty if trials did not come from a file.

    >>> facts = ("format", "JUnit XML"), ("task", "test case"), ("left out", "2 skipped tests")
    >>> how_read(Source(name="a.xml", format="junit", sha256="", read_as=facts))
    'read as: JUnit XML, task = test case; left out: 2 skipped tests'
    >>> facts = ("format", "CSV table"), ("task", 'column "task"'), ("cost", 'column "cost"')
    >>> how_read(Source(name="a.csv", format="csv", sha256="", read_as=facts))
    'read as: CSV table, with task and cost from the columns of these names'
    """
    facts = dict(source.read_as)
    if not facts:
        return ""
    left_out = facts.pop(LEFT_OUT, "")
    parts = [facts.pop("format", source.format)]
    named = [name for name, value in facts.items() if value == f'column "{name}"']
    if len(named) == 1:
        named = []
    parts += [f"{_SHOWN.get(n, n)} = {value}" for n, value in facts.items() if n not in named]
    if named:
        parts.append(
            f"with {', '.join(named[:-1])} and {named[-1]} from the columns of these names"
        )
    return f"read as: {', '.join(parts)}" + (f"; left out: {left_out}" if left_out else "")


def how_chosen(source: Source) -> str:
    """What was chosen for the reader of a source: a scorer, columns of other names, rows left out.

    >>> facts = ("format", "CSV table"), ("task", 'column "question"'), ("cost", 'column "cost"')
    >>> how_chosen(Source(name="a.csv", format="csv", sha256="", read_as=facts))
    'Read as CSV table, task = column "question".'
    """
    facts = dict(source.read_as)
    left_out = facts.get(LEFT_OUT, "")
    others = f"there is also {left_out.removeprefix('scorers ').removeprefix('scores ')} ("
    if any(UNUSED_COLUMNS in note or others in note for note in source.notes):
        left_out = ""  # the note names them, and says what they may be
    elif left_out.startswith("columns ") and len(left_out) > LONGEST_LEFT_OUT:
        left_out = "other columns (-v)"
    chosen = [
        f"{_SHOWN.get(name, name)} = {value}"
        for name, value in facts.items()
        if name == "scorer" or (value.startswith('column "') and value not in _own_columns(name))
    ]
    if not chosen and not left_out:
        return ""
    read = ", ".join([facts.get("format", source.format), *chosen])
    return f"Read as {read}{f'; left out: {left_out}' if left_out else ''}."


def _own_columns(name: str) -> tuple[str, ...]:
    """Columns that need no word: those that are called as what they hold."""
    return (f'column "{name}"', f'column "{_OTHER_NAMES.get(name, name)}"')


LONGEST_LEFT_OUT = 32
"""The most letters that names of columns may take where nobody asked for them."""

ALIKE_NAMES = "names differ only in case or spaces"
NEVER_MET = "no trial meets "
OTHER_SCALE = "on its scale?"
COPIED_ROWS = "equal to an earlier one in every column"
"""What a note says of agents or tasks that are probably the same."""


def alike_names(names: Iterable[str], what: str = "agents") -> list[str]:
    """A note on names that differ only in case or spaces, if there are any.

    >>> alike_names(["O3", "o3", "o4"])
    ['agents whose names differ only in case or spaces: O3 / o3; write them alike to pool them']
    """
    spellings: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        spellings.setdefault("".join(name.casefold().split()), []).append(name)
    alike = [" / ".join(map(short, same)) for same in spellings.values() if len(same) > 1]
    note = f"{what} whose {ALIKE_NAMES}: {listed(alike, 1)}; write them alike to pool them"
    return [note] if alike else []


_COUNTED = ("missing", "duplicates", "pass_if")
"""What notes on the trials that count name at their end, in brackets: the argument or option."""


def counting_notes(sources: Iterable[Source]) -> list[str]:
    """The notes on trials that were left out, or counted as what no cell says; each once.

    Every answer tells them, since its numbers depend on them.
    """
    notes = ((s.name, note) for s in sources for note in s.notes if counts_trials(note))
    return [f"in {name}, {note}" for name, note in dict.fromkeys(notes)]


def counts_trials(note: str) -> bool:
    """Whether a note is one of `counting_notes`."""
    return NEVER_MET in note or note.rpartition("(")[2].strip("`-)") in _COUNTED


UNUSED_COLUMNS = "columns not used: "
"""How the note on columns begins that may distinguish what is pooled."""

_SHOWN = {"run": "trial", "system": "agent", "human_labels": "label"}
_OTHER_NAMES = {**_SHOWN, "outcome": "passed"}


_DIGITS = re.compile("([0-9]+)")

NaturalKey = tuple[tuple[str | tuple[int, str], ...], str]

# The number at the end of a name that was turned around, with what stands before it: from this
# side a name of megabytes takes no time.
_LAST_NUMBER = re.compile(r"\n?\d+(?:[-_ #.](?=[^\d\s]))?(?=[^\d\s])")


@lru_cache(maxsize=10_000)  # the tasks of a suite are sorted once for each agent and list
def natural_key(name: str) -> NaturalKey:
    """What to sort names by, so that the numbers in them count as numbers.

    >>> sorted(["10", "3", "task-10", "task-9", "0"], key=natural_key)
    ['0', '3', '10', 'task-9', 'task-10']
    """
    # Text and digits alternate, so like meets like. Digits are compared by length, then as text:
    # a name from data may have more of them than `int` takes.
    parts = tuple(
        part if i % 2 == 0 else (len(part.lstrip("0")), part.lstrip("0"))
        for i, part in enumerate(_DIGITS.split(name))
    )
    return parts, name


def first_number(trials: Iterable[int]) -> int:
    """The number that a log gives its first trial: 0 or 1.

    >>> first_number([0, 1, 2]), first_number([1, 2]), first_number([])
    (0, 1, 0)
    """
    return max(0, min(1, min(trials, default=0)))


def run_number(trial: int, first: int = 0) -> str:
    """The number of a run as people see it: they count from 1, logs from 0 or 1.

    >>> run_number(0), run_number(3, first=1)
    ('#1', '#3')
    """
    return f"#{trial - first + 1}"


def families_by_name(tasks: Iterable[str], pattern: re.Pattern[str]) -> list[str | None]:
    r"""The first group of the pattern in each name (the whole match without one), or None.

    >>> families_by_name(["refund-1", "refund-2", "hello"], re.compile(r"^(\w+)-\d+"))
    ['refund', 'refund', None]
    """
    matches = (pattern.search(task) for task in tasks)
    return [None if match is None else match[1 if pattern.groups else 0] for match in matches]


def conditions_by_name(
    tasks: Iterable[str], pattern: re.Pattern[str]
) -> tuple[list[str], list[tuple[str, ...]]]:
    r"""The task and the conditions that the groups of a pattern find in each name.

    >>> pattern = re.compile(r"(?P<task>.+)#(?P<wording>\w+)")
    >>> conditions_by_name(["refund#typos", "refund"], pattern)
    (['refund', 'refund'], [('wording=typos',), ()])
    """
    matches = [(task, pattern.fullmatch(task)) for task in tasks]
    parts = [{"task": task} if match is None else match.groupdict() for task, match in matches]
    factors = [name for name in pattern.groupindex if name != "task"]
    return [part["task"] or task for part, (task, _) in zip(parts, matches, strict=True)], [
        tuple(f"{name}={part[name]}" for name in factors if part.get(name)) for part in parts
    ]


def levels_of(cells: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """The levels of each factor among conditions such as ("user=terse", "fault=all").

    >>> levels_of([("user=kind",), ("user=terse", "fault=all")])
    {'user': ['kind', 'terse'], 'fault': ['all']}
    """
    levels: dict[str, list[str]] = {}
    for factor, _, level in dict.fromkeys(w.partition("=") for words in cells for w in words):
        levels.setdefault(factor, []).append(level)
    return levels


def wanted_levels(
    cells: Iterable[Sequence[str]], reference: Iterable[Sequence[str]], named: Mapping[str, str]
) -> dict[str, Sequence[str]]:
    """Which levels of each factor to judge: those named, else the reference, else all.

    "all" names each level of a factor, unless one is called so.
    """
    usual = levels_of(reference)
    return {
        factor: usual.get(factor, levels)
        if (level := named.get(factor)) is None
        else levels
        if level == "all" and level not in levels
        else (level,)
        for factor, levels in levels_of(cells).items()
    }


def is_at(
    words: Sequence[str], named: Collection[str], wanted: Mapping[str, Sequence[str]]
) -> bool:
    """Whether conditions are at a wanted level of each of their factors, the named ones among them.

    >>> is_at(("user=kind",), ["user"], {"user": ["kind"], "fault": ["none"]})
    True
    """
    own = dict(word.partition("=")[::2] for word in words)
    return own.keys() >= set(named) and all(own[name] in wanted[name] for name in own)


def families_by_prefix(tasks: Sequence[str]) -> list[str | None]:
    """What the names of tasks seem to say about their families; None if they say nothing.

    >>> families_by_prefix(["refund-1", "refund-2", "repo/a", "alone"])
    ['refund', 'refund', 'repo', None]
    """
    return [_prefix(task) for task in tasks]


def _prefix(name: str) -> str | None:
    """A name up to its last number, the "refund" of "refund-12", or up to a slash or colon."""
    if (number := _LAST_NUMBER.match(name[::-1])) and "\n" not in (
        before := name[: len(name) - number.end()]
    ):
        return before
    line = name.partition("\n")[0]
    return line[: max(line.rfind("/"), line.rfind(":"), 0)] or None
