"""Numbers in, pictures out: SVG for pages, characters for terminals. Knows no task and no file."""

from passhat.drawing.figure import STYLE as STYLE
from passhat.drawing.figure import Figure as Figure
from passhat.drawing.intervals import IntervalRow as IntervalRow
from passhat.drawing.intervals import Point as Point
from passhat.drawing.intervals import front as front
from passhat.drawing.intervals import interval_rows as interval_rows
from passhat.drawing.intervals import scatter as scatter
from passhat.drawing.lines import Column as Column
from passhat.drawing.lines import Guide as Guide
from passhat.drawing.lines import Level as Level
from passhat.drawing.lines import Marker as Marker
from passhat.drawing.lines import NamedShare as NamedShare
from passhat.drawing.lines import Series as Series
from passhat.drawing.lines import column_chart as column_chart
from passhat.drawing.lines import line_chart as line_chart
from passhat.drawing.lines import sparkline as sparkline
from passhat.drawing.lines import stacked_bar as stacked_bar
from passhat.drawing.matrix import CellRow as CellRow
from passhat.drawing.matrix import ColumnGroup as ColumnGroup
from passhat.drawing.matrix import cell_grid as cell_grid
from passhat.drawing.matrix import matrix as matrix
