"""Harbor jobs: a folder with a `result.json` for the job and one for each trial."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import (
    Named,
    Reading,
    TrialTable,
    choose_score,
    first_line,
    seconds_between,
    sum_of,
)
from passhat.ingest.transcripts import (
    answered_id,
    as_text,
    end_room,
    mappings,
    sibling_decoded,
    sibling_text,
    turns_of,
)
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn

READING = Reading(
    format="Harbor job",
    system="agent/model",
    task="task_name",
    run="order of trials",
    outcome="a reward of 1 passes",
    score="reward, or that of `scorer`",
    started="started_at",
    # Below a trial are the agent's files and the verifier's own tests, below a job its trials.
    covers_subfolders="agent_info",
    companions=("trajectory.json", "config.json"),
)

_STEPS = "steps"
"""The folder of a trial that has a folder for each of its steps."""


class _AgentInfo(msgspec.Struct):
    name: str = "agent"
    model_info: Named | None = None


class _AgentResult(msgspec.Struct):
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | None = None
    metadata: dict[str, Any] | None = None


class _VerifierResult(msgspec.Struct):
    rewards: dict[str, float] | None = None


class _ExceptionInfo(msgspec.Struct):
    exception_type: str = ""
    exception_message: str = ""


class _Span(msgspec.Struct):
    started_at: str | None = None
    finished_at: str | None = None


class _StepResult(msgspec.Struct):
    """One step of a task of several; the trial's own reward is that of the last, or their mean."""

    step_name: str = ""
    agent_result: _AgentResult | None = None
    verifier_result: _VerifierResult | None = None
    exception_info: _ExceptionInfo | None = None
    agent_execution: _Span | None = None


class _Trial(msgspec.Struct):
    task_name: str
    agent_info: _AgentInfo
    verifier_result: _VerifierResult | None = None
    exception_info: _ExceptionInfo | None = None
    agent_result: _AgentResult | None = None
    agent_execution: _Span | None = None
    step_results: list[_StepResult] | None = None
    started_at: str | None = None


class _Step(msgspec.Struct):
    """One step of the Agent Trajectory Interchange Format (ATIF)."""

    source: str = "agent"
    message: Any = None
    reasoning_content: str | None = None
    tool_calls: list[Any] | None = None
    observation: dict[str, Any] | None = None


class _Trajectory(msgspec.Struct):
    steps: list[_Step] = []


def recognises(document: Document) -> bool:
    """Whether it is a trial, or the job that trials belong to."""
    return document.has("task_name", "agent_info", "verifier_result") or _is_job(document)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a file; the job's own file has none, its trials are in the folders below."""
    if _is_job(document):
        note = "it is the summary of a Harbor job; give the job's folder, which holds its trials"
        return TrialTable(columns={}, notes=(note,))
    trial = document.decode(_Trial)
    rewards = (trial.verifier_result.rewards if trial.verifier_result else None) or {}
    name, notes = choose_score(document.name, "reward", _main_first(rewards), mapping.scorer)
    reward = rewards.get(name) if name else None
    graded = mapping.scorer or "reward"
    scores = () if mapping.scorer else _main_first(rewards)
    return TrialTable.of_rows(
        [_row(trial, reward)], notes=notes, entry="trial", graded=graded, scores=scores
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The trajectory and what the verifier printed, from the folders beside a trial's result.

    A trial of several steps has these in a folder for each step.
    """
    if _is_job(document):
        return
    steps = document.decode(_Trial).step_results or ()
    places: list[tuple[str, ...]] = [(_STEPS, step.step_name) for step in steps] or [()]
    turns: list[Turn] = []
    faults: list[str] = []
    for place in places:
        kept, broken = sibling_decoded(document, _Trajectory, *place, "agent", "trajectory.json")
        turns += (turn for step in (kept.steps if kept else ()) for turn in _turns(step))
        faults += [broken] if broken else []
    yield Transcript(
        messages=tuple(turns),
        error="; ".join(faults),
        checks=tuple(_checks(document, steps, places)),
    )


def _checks(
    document: Document, steps: Sequence[_StepResult], places: Sequence[tuple[str, ...]]
) -> Iterator[Check]:
    """What the verifier printed, step by step where there are steps, with the reward of each."""
    most = end_room(document.limits.max_transcript) // len(places)
    for place, step in itertools.zip_longest(places, steps):
        printed = sibling_text(document, *place, "verifier", "test-stdout.txt", most=most)
        given = step.verifier_result.rewards if step and step.verifier_result else None
        rewards = [given[name] for name in _main_first(given)] if given else []
        if printed or rewards:
            target = f"verifier of {step.step_name}" if step else "verifier"
            yield Check(target=target, score=next(iter(rewards), None), message=printed)


def _turns(step: _Step) -> Iterator[Turn]:
    """A step is a message with its calls, and what came back from them."""
    message = {
        "role": step.source,
        "content": step.message,
        "reasoning_content": step.reasoning_content,
        "tool_calls": step.tool_calls,
    }
    yield from turns_of([message])
    for result in mappings((step.observation or {}).get("results")):
        text = as_text(result.get("content"))
        yield Turn(role="tool", text=text, call_id=answered_id(result))


def _is_job(document: Document) -> bool:
    return document.has("n_total_trials", "stats")


def _main_first(rewards: Mapping[str, float]) -> list[str]:
    """The names of the rewards; the one that is called so decides if there are several."""
    return sorted(rewards, key=lambda name: name != "reward")


def _row(trial: _Trial, reward: float | None) -> dict[str, Any]:
    steps = trial.step_results or ()
    agent, result = trial.agent_info, trial.agent_result or _of_steps(steps)
    spans = [trial.agent_execution] if trial.agent_execution else [s.agent_execution for s in steps]
    times = (seconds_between(span.started_at, span.finished_at) for span in spans if span)
    calls = (result.metadata or {}).get("tool_calls")
    failures = (step.exception_info for step in steps)
    failure = trial.exception_info or next(
        (failed for failed in failures if failed is not None), None
    )
    error = f"{failure.exception_type}: {failure.exception_message}" if failure else None
    return {
        "system": f"{agent.name}/{agent.model_info.name}" if agent.model_info else agent.name,
        "task": trial.task_name,
        "outcome": Outcome.ERRORED if reward is None else Outcome(reward >= 1),
        "score": reward,
        "tokens_in": result.n_input_tokens,
        "tokens_out": result.n_output_tokens,
        "cost": result.cost_usd,
        "seconds": sum_of(times),
        "tool_calls": calls if isinstance(calls, (int, float)) else None,
        "started": trial.started_at,
        "error": first_line(error) or ("no verifier result" if reward is None else None),
    }


def _of_steps(steps: Sequence[_StepResult]) -> _AgentResult:
    """What the steps of a trial took together, where the trial itself does not say it."""
    taken = [step.agent_result for step in steps if step.agent_result is not None]
    return _AgentResult(
        n_input_tokens=sum_of(used.n_input_tokens for used in taken),
        n_output_tokens=sum_of(used.n_output_tokens for used in taken),
        cost_usd=sum_of(used.cost_usd for used in taken),
    )
