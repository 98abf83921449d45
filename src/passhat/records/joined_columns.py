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


def seeds(tables: Sequence[Trials]) -> NDArray[np.int64] | None:
    """The seeds, NO_SEED in tables without any; None where no table has them."""
    if all(table.seed is None for table in tables):
        return None
    return np.concatenate(
        [np.full(len(t), NO_SEED, dtype=np.int64) if t.seed is None else t.seed for t in tables]
    )


def weights(tables: Sequence[Trials]) -> Floats | None:
    """The weights, NaN in tables without any; None where no table has them."""
    if all(table.weight is None for table in tables):
        return None
    return np.concatenate(
        [np.full(len(t), np.nan) if t.weight is None else t.weight for t in tables]
    )


def feature(name: str, tables: Sequence[Trials]) -> Floats:
    """One feature, NaN in tables without it."""
    return np.concatenate(
        [table.features.get(name, np.full(len(table), np.nan)) for table in tables]
    )


def labels(name: str, tables: Sequence[Trials]) -> Labels | None:
    """A column of texts, missing in tables without it; None where no table has it."""
    columns: list[Labels | None] = [getattr(table, name) for table in tables]
    if all(column is None for column in columns):
        return None
    return Labels.concat(
        [
            Labels.missing(len(table)) if column is None else column
            for table, column in zip(tables, columns, strict=True)
        ]
    )
