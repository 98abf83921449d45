"""Numbers in, pictures out: SVG for pages, characters for terminals. Knows no task and no file."""

from passhat.drawing.columns import Column, column_chart
from passhat.drawing.figure import STYLE, Figure
from passhat.drawing.grid import CellRow, cell_grid
from passhat.drawing.intervals import IntervalRow, interval_rows
from passhat.drawing.lines import Guide, Level, Marker, Series, line_chart, sparkline
from passhat.drawing.matrix import ColumnGroup, matrix
from passhat.drawing.parts import NamedShare, stacked_bar
from passhat.drawing.scatter import Point, front, scatter

__all__ = [
    "STYLE",
    "CellRow",
    "Column",
    "ColumnGroup",
    "Figure",
    "Guide",
    "IntervalRow",
    "Level",
    "Marker",
    "NamedShare",
    "Point",
    "Series",
    "cell_grid",
    "column_chart",
    "front",
    "interval_rows",
    "line_chart",
    "matrix",
    "scatter",
    "sparkline",
    "stacked_bar",
]
