"""Columns of repeated texts, held as distinct names and small numbers; columns joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import short_dataclass

Codes = NDArray[np.int32]

NO_CODE = -1


@short_dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A column of repeated texts: distinct `names`, and for each row the index of its name.

    >>> Labels.of(["b", "a", "b", None]).codes.tolist()
    [0, 1, 0, -1]
    """

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Self:
        rows = tuple(values)
        names = tuple(name for name in dict.fromkeys(rows) if name is not None)
        index: dict[str | None, int] = {name: code for code, name in enumerate(names)}
        index[None] = NO_CODE
        return cls(names, np.fromiter(map(index.__getitem__, rows), np.int32, len(rows)))

    @classmethod
    def missing(cls, size: int) -> Self:
        """A column in which every row is missing."""
        return cls((), np.full(size, NO_CODE, dtype=np.int32))

    @classmethod
    def concat(cls, columns: Sequence[Labels]) -> Self:
        """The rows of several columns; only distinct names are compared, never rows.

        >>> Labels.concat([Labels.of(["a", "b"]), Labels.of(["b", None, "c"])]).texts()
        ['a', 'b', 'b', None, 'c']
        """
        index: dict[str, int] = {}
        parts = []
        for column in columns:
            known = [index.setdefault(name, len(index)) for name in column.names]
            renumber = np.array([*known, NO_CODE], dtype=np.int32)  # NO_CODE takes the last
            parts.append(renumber[column.codes])
        return cls(tuple(index), np.concatenate([np.empty(0, dtype=np.int32), *parts]))

    def take(self, rows: NDArray[Any]) -> Labels:
        """The chosen rows, with the names that still occur, in their old order."""
        codes = self.codes[rows]
        used = np.zeros(len(self.names) + 1, dtype=bool)
        used[codes] = True  # NO_CODE falls on the extra last slot
        renumber = np.full(len(self.names) + 1, NO_CODE, dtype=np.int32)
        kept = np.flatnonzero(used[:-1])
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        return Labels(tuple(self.names[i] for i in kept), renumber[codes])

    def texts(self) -> list[str | None]:
        lookup: list[str | None] = [*self.names, None]
        return [lookup[code] for code in self.codes.tolist()]

    def code(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            return NO_CODE


def joined_numbers(
    columns: Sequence[NDArray[Any] | None], sizes: Sequence[int], missing: float
) -> NDArray[Any] | None:
    """A column of numbers, with `missing` in the rows of a table that has none.

    >>> joined_numbers([None, np.array([1.5])], [2, 1], np.nan).tolist()
    [nan, nan, 1.5]
    """
    kinds = [column.dtype for column in columns if column is not None]
    if not kinds:
        return None
    return np.concatenate(
        [
            np.full(size, missing, dtype=kinds[0]) if column is None else column
            for column, size in zip(columns, sizes, strict=True)
        ]
    )


def joined_labels(columns: Sequence[Labels | None], sizes: Sequence[int]) -> Labels | None:
    """A column of texts, missing in the rows of a table that has none."""
    if all(column is None for column in columns):
        return None
    return Labels.concat(
        [
            Labels.missing(size) if column is None else column
            for column, size in zip(columns, sizes, strict=True)
        ]
    )
