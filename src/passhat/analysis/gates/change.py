"""A change under review: what was demanded, before and after, which tasks moved, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.messages import short_repr

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.gates.verdict import Verdict, Verdicts, Word
    from passhat.analysis.reports.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReview:
    """What the reviewers of a change should know.

    `comparisons` hold each system, by its name, against itself in the baseline; `explanation` is
    there where the transcripts of the runs were kept. An `informational` review never fails the
    change.
    """

    report: Report
    verdicts: Verdicts | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    baseline: str | None = None
    explanation: Explanation | None = None
    informational: bool = False

    def __repr__(self) -> str:
        shown = [self.word or "no gates"] + ([f"against {self.baseline}"] if self.baseline else [])
        return short_repr("ChangeReview", *shown, see=".report, .verdicts, .comparisons")

    @property
    def judged(self) -> tuple[Verdict, ...]:
        """The verdicts of all gates; none if nothing was demanded."""
        return () if self.verdicts is None else self.verdicts.each

    @property
    def word(self) -> Word | None:
        """The overall verdict; None if nothing was demanded."""
        return None if self.verdicts is None else self.verdicts.word

    @property
    def exit_code(self) -> int:
        return 0 if self.informational or self.verdicts is None else self.verdicts.exit_code
