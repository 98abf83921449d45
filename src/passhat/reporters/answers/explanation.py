"""Why runs fail: the explanation as blocks, data and rows."""

from __future__ import annotations

from passhat.analysis.explaining.explain import Explanation
from passhat.reporters.answer_kind import AnswerKind, Records
from passhat.reporters.answers.explanation_blocks import explanation_blocks, verdict
from passhat.reporters.answers.explanation_data import explanation_object
from passhat.reporters.answers.explanation_page import chip, explanation_page, facts


def _rows(explanation: Explanation) -> Records:
    """A row a cause that was named."""
    causes = explanation_object(explanation)["causes"]
    return [{name: value for name, value in one.items() if name != "example"} for one in causes]


KIND = AnswerKind(
    name="explanation",
    blocks=explanation_blocks,
    data=explanation_object,
    rows=_rows,
    provenance=lambda explanation: explanation.provenance,
    title=verdict,
    page=explanation_page,
    template="why.html",
    chip=chip,
    facts=facts,
)
