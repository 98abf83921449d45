"""Graders: whether an attempt did what was expected, and how much of it."""

from passhat.runner.graders.grading import Grading, grade
from passhat.runner.graders.judging import Ask

__all__ = ["Ask", "Grading", "grade"]
