"""Names of tests that repeat one test: what pytest's plugins, promptfoo and others add to them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from passhat.messages import plural, short

_REPEAT = re.compile(r"(.*)([\[-])(\d{1,9})-(\d{1,9})\]")
_FLAKEFINDER = re.compile(r"([^\[]+)\[(\d{1,9})(?:-(.*))?\]")
_PROMPTFOO = re.compile(r"test \d+: (.+)")
_MODEL = re.compile(r"(.*\S)\s+\[([^\[\]]+)\]")
_NUMBERED = re.compile(r"(.*\S)\s+#(\d{1,9})")

_COUNTED = re.compile(
    r"(?:.*(?:::|[>/\u203a]))?\s*(?:row|test|test ?case|case|task|question|example|sample|item|"
    r"entry|issue|problem|scenario|instance|prompt|query|exercise|challenge|level|step|line|"
    r"record)",
    re.IGNORECASE,
)
"""Names that say nothing but what is counted: "Question #1" and "Question #2" are two tasks."""

_SURELY_STEPS = 3
"""Three steps 1-3, 2-3, 3-3 are not chosen parameters; 1-2 and 2-2 may be."""

NUMBERED_NOTE = "names that end in #1, #2, ... were read as trials of one task"

Strip = Callable[[Sequence[str], Sequence[bool]], list[str] | None]


def tests_of(names: Sequence[str], ran: Sequence[bool]) -> tuple[list[str], list[str]]:
    """Each name without the mark of its repeat, and a note on what was read as one.

    Repeats that were skipped complete the others, so all names of a file must be given. What
    never `ran`, such as a module that cannot be imported, needs no mark.

    >>> tests_of(["t[0]", "t[1]", "u[0]", "u[1]"], [True, True, True, False])[0]
    ['t', 't', 'u', 'u']
    """
    strips: tuple[tuple[Strip, str], ...] = (
        (_without_steps, "pytest-repeat"),
        (_without_index, "pytest-flakefinder"),
    )
    for strip, plugin in strips:
        stripped = strip(names, ran)
        if stripped is not None:
            return stripped, [f"names were read as repeats by {plugin} (`task='name'` keeps them)"]
    numbered = [_PROMPTFOO.fullmatch(name) for name in names]
    if names and all(numbered):
        return [match[1] for match in numbered if match], ["tests were matched by description"]
    bases = without_numbers(names)
    if bases is not None:
        return bases, [f"{NUMBERED_NOTE} (`task='name'` keeps them)"]
    return list(names), []


def repeated_by_flakefinder(names: Sequence[str], ran: Sequence[bool]) -> bool:
    """Whether the names have the marks of pytest-flakefinder."""
    return _without_index(names, ran) is not None


def numbered_note(column: str) -> str:
    """A note on a table whose rows were read as runs by the numbers in their names."""
    return f"{NUMBERED_NOTE} (`task={short(column)!r}` keeps the names)"


def models_of(names: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The task and the model of names such as `weather [gpt-5]`, if all names end in a model's.

    mcptest and passhat write them so, with the number of the run after it. None if it may be a
    parameter: then no test has more than one, or the tests do not share them.

    >>> models_of(["weather [gpt-5]", "weather [haiku]"])
    (['weather', 'weather'], ['gpt-5', 'haiku'])
    """
    matches = [_MODEL.fullmatch(name) for name in names]
    if not matches or not all(matches):
        return None
    tasks, models = zip(*((match[1], match[2]) for match in matches if match), strict=True)
    pairs = set(zip(tasks, models, strict=True))
    if len(set(models)) < 2 or len(pairs) != len(set(tasks)) * len(set(models)):
        return None
    return list(tasks), list(models)


def skipped_note(count: int) -> list[str]:
    """A note on skipped tests, if there are any."""
    note = plural(count, "skipped test is no trial", "skipped tests are no trials")
    return [note] if count else []


def without_numbers(names: Sequence[str]) -> list[str] | None:
    """`refund #3` is run 3 of `refund`, if that has the runs 1, 2, ... without a gap.

    None if no name is numbered so. "Question #3" is a task: it has no other name.

    >>> without_numbers(["refund #1", "refund #2", "issue #7"])
    ['refund', 'refund', 'issue #7']
    """
    matches = {name: _NUMBERED.fullmatch(name) for name in dict.fromkeys(names)}
    runs: dict[str, set[int]] = defaultdict(set)
    for match in matches.values():
        if match:
            runs[match[1]].add(int(match[2]))
    full = {
        name
        for name, seen in runs.items()
        if 1 < len(seen) == max(seen) and min(seen) == 1 and not _COUNTED.fullmatch(name)
    }
    if not full:
        return None
    bases = {
        name: match[1] if match and match[1] in full else name for name, match in matches.items()
    }
    return [bases[name] for name in names]


def _without_steps(names: Sequence[str], ran: Sequence[bool]) -> list[str] | None:
    """`test[a-3-5]` is step 3 of 5 of `test[a]`, where some test has all five steps.

    Two steps may just be two parameters, unless every test that ran has them.
    """
    if not any(name.endswith("]") for name in names):
        return None
    matches = [_REPEAT.fullmatch(name) for name in names]
    steps: dict[tuple[str, str], set[int]] = defaultdict(set)
    for match in matches:
        if match:
            steps[match[1] + match[2], match[4]].add(int(match[3]))
    # By length and ends: a name may claim a thousand million steps.
    full = [
        int(count)
        for (_, count), seen in steps.items()
        if 1 < int(count) == len(seen) == max(seen) and min(seen) == 1
    ]
    marked = all(match or not runs for match, runs in zip(matches, ran, strict=True))
    if not full or (max(full) < _SURELY_STEPS and not marked):
        return None
    if any(max(seen) > int(count) for (_, count), seen in steps.items()):
        return None
    return [
        name if match is None else match[1] + ("]" if match[2] == "-" else "")
        for name, match in zip(names, matches, strict=True)
    ]


def _without_index(names: Sequence[str], ran: Sequence[bool]) -> list[str] | None:
    """`test[3-a]` is run 3 of `test[a]`, where every test of the file has the same runs.

    A method of unittest is repeated under its own name, as often as the others.
    """
    if not any(name.endswith("]") for name in names):
        return None
    matches = [_FLAKEFINDER.fullmatch(name) for name in names]
    plain = Counter(name for name, match in zip(names, matches, strict=True) if match is None)
    times = len({match[2] for match in matches if match})
    if any(
        m is None and r and plain[n] != times for n, m, r in zip(names, matches, ran, strict=True)
    ):
        return None
    tests = [_unindexed(name, match) for name, match in zip(names, matches, strict=True)]
    runs = {(test, int(m[2])) for test, m in zip(tests, matches, strict=True) if m}
    indices = {index for _, index in runs}
    complete = indices == set(range(len(indices))) and len(indices) > 1
    if not complete or len(runs) != len({test for test, _ in runs}) * len(indices):
        return None
    return tests


def _unindexed(name: str, match: re.Match[str] | None) -> str:
    if match is None:
        return name
    return f"{match[1]}[{match[3]}]" if match[3] is not None else match[1]
