"""Optional columns of several tables of trials, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.records.given_columns import NO_SEED
from passhat.records.labels import Labels

if TYPE_CHECKING:
    from passhat.records.trials import Trials

Floats = NDArray[np.float64]


def joined_seeds(tables: Sequence[Trials]) -> NDArray[np.int64] | None:
    """The seeds of several tables, NO_SEED where a table has none."""
    if all(table.seed is None for table in tables):
        return None
    return np.concatenate(
        [np.full(len(t), NO_SEED, dtype=np.int64) if t.seed is None else t.seed for t in tables]
    )


def joined_weights(tables: Sequence[Trials]) -> Floats | None:
    """The weights of several tables, NaN where a table has none."""
    if all(table.weight is None for table in tables):
        return None
    return np.concatenate(
        [np.full(len(t), np.nan) if t.weight is None else t.weight for t in tables]
    )


def joined_feature(name: str, tables: Sequence[Trials]) -> Floats:
    """A feature of several tables, NaN where a table has none."""
    return np.concatenate(
        [table.features.get(name, np.full(len(table), np.nan)) for table in tables]
    )


def joined_labels(name: str, tables: Sequence[Trials]) -> Labels | None:
    """A column of texts of several tables, missing where a table has none."""
    columns: list[Labels | None] = [getattr(table, name) for table in tables]
    if all(column is None for column in columns):
        return None
    return Labels.concat(
        [
            Labels.missing(len(table)) if column is None else column
            for table, column in zip(tables, columns, strict=True)
        ]
    )
