"""Tasks against systems: which task passes with which system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.analysis.reports.report import MatrixCell, TaskMatrix
from passhat.drawing.figure import Figure
from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import SHORTEST_HEADING, Block, Headline, Table
from passhat.reporters.data import shaped

SCHEMA: Literal["passhat.matrix/1"] = "passhat.matrix/1"


class CellObject(TypedDict):
    """How often one system passed one task."""

    system: str
    passed: int
    runs: int


class MatrixTaskObject(TypedDict):
    """One task, and the systems that ran it."""

    task: str
    cells: list[CellObject]


class MatrixObject(TypedDict):
    """Tasks against systems."""

    schema: Literal["passhat.matrix/1"]
    systems: list[str]
    tasks: list[MatrixTaskObject]


def matrix_blocks(matrix: TaskMatrix, options: DisplayOptions) -> list[Block]:
    """A row a task, a column a system, and in each cell how many of its runs passed."""
    size = f"{plural(len(matrix.tasks), 'task')}, {plural(len(matrix.systems), 'system')}"
    rows = tuple(
        (task, *map(_cell, cells)) for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
    )
    return [
        Headline(f"Passed runs of each task with each system: {size}."),
        Table(
            header=("task", *matrix.systems),
            rows=rows,
            cut=tuple((i, SHORTEST_HEADING) for i, _ in enumerate(matrix.systems, 1)),
        ),
    ]


def _cell(cell: MatrixCell | None) -> str:
    return "" if cell is None else f"{cell.passed}/{cell.runs}"


def _data(matrix: TaskMatrix) -> MatrixObject:
    tasks: list[MatrixTaskObject] = [
        {"task": task, "cells": _cell_objects(matrix.systems, cells)}
        for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
    ]
    return {"schema": SCHEMA, "systems": list(matrix.systems), "tasks": tasks}


def _cell_objects(systems: Sequence[str], cells: Sequence[MatrixCell | None]) -> list[CellObject]:
    pairs = zip(systems, cells, strict=True)
    return [shaped(cell, CellObject, system=system) for system, cell in pairs if cell is not None]


def _rows(matrix: TaskMatrix) -> Records:
    """A row a task with the pass rate of each system; a system called `task` gets another name."""
    columns = [f"{name} (system)" if name == "task" else name for name in matrix.systems]
    return [
        {"task": task, **{c: x and x.rate for c, x in zip(columns, cells, strict=True)}}
        for task, cells in zip(matrix.tasks, matrix.cells, strict=True)
    ]


KIND = AnswerKind(
    name="matrix",
    blocks=matrix_blocks,
    data=_data,
    rows=_rows,
    figures=lambda matrix: {"matrix": matrix.figure} if isinstance(matrix.figure, Figure) else {},
    title=lambda matrix: "Tasks and systems",
)
