"""Values that are computed on first use and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, Generic, TypeVar

from passhat.messages import quoted, short_repr

Answer = TypeVar("Answer")
Name = TypeVar("Name")


class Later(Generic[Answer]):
    """A value that is computed when it is first looked at.

    >>> square = Later(lambda: 3**2)
    >>> square.look()
    9
    """

    __slots__ = ("_answer", "_lock", "_make")

    def __init__(self, make: Callable[[], Answer]) -> None:
        self._make: Callable[[], Answer] | None = make
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _known, (self.look(),)

    def look(self) -> Answer:
        """The value; threads that look at the same time get the same one."""
        with self._lock:
            if self._make is not None:
                self._answer = self._make()
                self._make = None  # what it was made from is no longer needed
            return self._answer


class Parts(Mapping[Name, Answer]):
    """Values by name, each computed on first use; names and count cost nothing.

    A copy or a pickle is a plain dict of all of them.

    >>> parts = Parts({"easy": Later(lambda: 0.9), "hard": Later(lambda: 0.2)})
    >>> list(parts), parts["hard"]
    (['easy', 'hard'], 0.2)
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[Name, Later[Answer]]) -> None:
        self._parts = dict(parts)

    def __getitem__(self, name: Name) -> Answer:
        return self._parts[name].look()

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[Name]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return short_repr("Parts", *(quoted(str(name)) for name in self._parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _known(answer: Answer) -> Later[Answer]:
    return Later(lambda: answer)
