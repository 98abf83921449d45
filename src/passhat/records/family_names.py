"""The family of a task, read off its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# A name up to its last number, such as the "refund-" of "refund-12", or up to a slash or colon.
_PREFIX = re.compile(r"^(.*?[^\d\s])[-_ #.]?\d+$|^(.+)[/:]")


def families_by_name(tasks: Iterable[str], pattern: re.Pattern[str]) -> list[str | None]:
    r"""The first group of the pattern in each name (the whole match without one), or None.

    >>> families_by_name(["refund-1", "refund-2", "hello"], re.compile(r"^(\w+)-\d+"))
    ['refund', 'refund', None]
    """
    found = (pattern.search(task) for task in tasks)
    return [None if one is None else one[1 if pattern.groups else 0] for one in found]


def families_by_prefix(tasks: Sequence[str]) -> list[str | None]:
    """What the names of tasks seem to say about their families; None where they say nothing.

    >>> families_by_prefix(["refund-1", "refund-2", "repo/a", "alone"])
    ['refund', 'refund', 'repo', None]
    """
    return [
        None if (found := _PREFIX.match(task)) is None else found[1] or found[2] for task in tasks
    ]
