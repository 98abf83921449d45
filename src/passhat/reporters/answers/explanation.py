"""Why runs fail: the explanation as blocks, data and rows."""

from __future__ import annotations

from typing import Literal, TypedDict

from passhat.analysis.explaining.causes import Example
from passhat.analysis.explaining.explain import Category, Explanation, RunCounts, SuiteReview
from passhat.analysis.explaining.trajectories import CostSplit, ObservedBehaviour, Trajectories
from passhat.records.transcript import TranscriptKey
from passhat.reporters.answer_kind import AnswerKind, Records
from passhat.reporters.answers.explanation_blocks import explanation_blocks, verdict
from passhat.reporters.answers.explanation_page import chip, explanation_page, facts
from passhat.reporters.data import NumberObject, ProvenanceObject, plain, shaped
from passhat.stats.estimate import Estimate


def _rows(explanation: Explanation) -> Records:
    """A row a cause that was named."""
    causes = _explanation_object(explanation)["causes"]
    return [{name: value for name, value in one.items() if name != "example"} for one in causes]


class _RunNameObject(TypedDict):
    """One run, by its name in the results."""

    system: str
    task: str
    trial: int


class _ExampleObject(TypedDict):
    """A failing run beside the nearest passing one; `call` is a place among its calls, from 0."""

    failing: _RunNameObject
    passing: _RunNameObject
    call: int | None


class _CauseObject(TypedDict):
    """What goes together with failing; p is adjusted for everything that was tested."""

    sentence: str
    test: Literal["agreement", "features"]
    tool: str
    p: float
    failing: int
    failing_of: int
    passing: int
    passing_of: int
    tasks: int
    detail: str
    example: _ExampleObject


class _CategoryObject(TypedDict):
    """Failed runs that went wrong in the same way."""

    kind: str
    what: str
    arguments: list[str]
    count: int
    share: Estimate
    tasks: list[str]
    example: _RunNameObject
    runs: list[_RunNameObject]


class _ToolPairObject(TypedDict):
    """How often one tool was chosen where another was expected; "" stands for none."""

    expected: str
    chosen: str
    count: int


class _TrajectoriesObject(TypedDict):
    """How alike runs of a task are, what they repeat and mend, and what failing ones cost."""

    tools: NumberObject
    order: NumberObject
    path: NumberObject
    costs: dict[str, NumberObject]
    behaviours: list[ObservedBehaviour]
    cost_of_failing: list[CostSplit]
    expected_tools_given: bool
    tool_matrix: list[_ToolPairObject]


class ExplanationObject(TypedDict):
    """Why runs fail."""

    schema: Literal["passhat.explanation/1"]
    verdict: str
    systems: list[str]
    counts: RunCounts
    causes: list[_CauseObject]
    could_name: bool
    alpha: float
    shuffles: int
    categories: list[_CategoryObject]
    divergences: list[_CategoryObject]
    partings: list[_ExampleObject]
    trajectories: _TrajectoriesObject
    review: SuiteReview
    provenance: ProvenanceObject


def _explanation_object(explanation: Explanation) -> ExplanationObject:
    """Schema "passhat.explanation/1"."""
    return shaped(
        explanation,
        ExplanationObject,
        schema="passhat.explanation/1",
        verdict=verdict(explanation),
        causes=[
            shaped(one, _CauseObject, example=_example(one.example)) for one in explanation.causes
        ],
        categories=[_category(one) for one in explanation.categories],
        divergences=[_category(one) for one in explanation.divergences],
        partings=[_example(one) for one in explanation.partings],
        trajectories=_trajectories(explanation.trajectories),
    )


def _run(key: TranscriptKey) -> _RunNameObject:
    return {"system": key[0], "task": key[1], "trial": key[2]}


def _example(one: Example) -> _ExampleObject:
    return {"failing": _run(one.failing), "passing": _run(one.passing), "call": one.call}


def _category(one: Category) -> _CategoryObject:
    runs = [_run(key) for key in one.runs]
    return shaped(one, _CategoryObject, example=_run(one.example), runs=runs)


def _trajectories(ways: Trajectories) -> _TrajectoriesObject:
    counts = sorted(ways.matrix.counts.items(), key=lambda one: (-one[1], one[0]))
    return shaped(
        ways,
        _TrajectoriesObject,
        cost_of_failing=plain(ways.splits),
        expected_tools_given=ways.matrix.given,
        tool_matrix=[
            {"expected": expected, "chosen": chosen, "count": count}
            for (expected, chosen), count in counts
        ],
    )


KIND = AnswerKind(
    name="explanation",
    blocks=explanation_blocks,
    data=_explanation_object,
    rows=_rows,
    provenance=lambda explanation: explanation.provenance,
    title=verdict,
    page=explanation_page,
    template="why.html",
    chip=chip,
    facts=facts,
)
