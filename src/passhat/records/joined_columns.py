"""Optional columns of several tables of trials, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.records.labels import Labels


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
