"""tau-bench results: a JSON array with a task, a trial and a reward each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Named, Reading, TrialTable, first_line, has_keys
from passhat.ingest.transcripts import as_text, turns_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn, answered_calls
from passhat.records.trial import path_of

READING = Reading(
    format="tau-bench results",
    system="file name",
    task="task_id",
    run="trial",
    outcome="a reward of 1 passes",
    score="reward",
)

recognises = has_keys("task_id reward traj")

SUCCESS = 1 - 1e-6
"""The reward from which tau-bench counts a success."""


class _ToolCall(msgspec.Struct):
    function: Named = msgspec.field(default_factory=Named)


class _Message(msgspec.Struct):
    role: str = ""
    tool_calls: list[_ToolCall] | None = None


class _Info(msgspec.Struct):
    error: str | None = None


class _Run(msgspec.Struct):
    task_id: int | str
    reward: float
    trial: int = 0
    info: _Info | None = None
    traj: list[_Message] | None = None


class _GradedInfo(_Info):
    reward_info: Any = None


class _Spoken(msgspec.Struct):
    traj: list[Any] | None = None
    info: _GradedInfo | None = None
    reward: float = 0.0


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an entry; a run that broke has an error in place of a conversation."""
    runs = document.decode(list[_Run])
    return TrialTable.of_rows(_rows(runs))


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The trajectory of each entry."""
    for run in document.entries(_Spoken):
        error = run.info.error if run.info else None
        turns = turns_of(run.traj)
        checks = _checks(run.info.reward_info if run.info else None, run.reward, turns)
        yield Transcript(messages=turns, error=error or "", checks=checks)


# tau-bench compares what was changed in the end with what its own actions change: calls that only
# look do not count.
_LOOKING = ("get_", "find_", "list_", "search_", "calculate", "think")
_HANDED_OVER = "transfer_to_human_agents"

Change = tuple[str, tuple[tuple[str, str], ...]]
"""A call that changes something: its tool, and its arguments by name."""


def _checks(graded: object, reward: float, turns: tuple[Turn, ...]) -> tuple[Check, ...]:
    """The changes that the task wanted, against those that were made."""
    if not isinstance(graded, dict) or not isinstance(graded.get("actions"), list):
        return ()
    wanted = list(_wanted(graded["actions"]))
    calls = answered_calls(Transcript(messages=turns))
    made = [
        _change(call.name, _arguments(call.arguments))
        for call in calls
        if _changes(call.name) and not _refused(turns, call.answered_in)
    ]
    missing = list((Counter(wanted) - Counter(made)).elements())
    extra = list((Counter(made) - Counter(wanted)).elements())
    if reward >= SUCCESS:
        right = "made the expected changes" if wanted else "changed nothing, as expected"
        return (Check(target="", score=reward, message="" if missing or extra else right),)
    return (
        Check(
            target="",
            score=reward,
            message=_fault(wanted, made, [call.name for call in calls]),
            expected="\n".join(_shown(change, extra) for change in missing) or "no other change",
            found="\n".join(_shown(change, missing) for change in extra) or "no other change",
        ),
    )


def _refused(turns: Sequence[Turn], place: int | None) -> bool:
    """Whether a tool answered with an error, and changed nothing."""
    return place is not None and turns[place].text.startswith("Error")


def _fault(wanted: list[Change], made: list[Change], called: Collection[str]) -> str:
    """In one phrase, how the changes that were made differ from those that were wanted."""
    if not wanted and made:
        return "changed something it should have refused"
    if wanted and not made:
        return (
            "handed over to a human instead" if _HANDED_OVER in called else "never made the change"
        )
    extra, missing = Counter(made) - Counter(wanted), Counter(wanted) - Counter(made)
    if not extra and not missing:
        return "right changes, wrong answer"
    if Counter(name for name, _ in made) == Counter(name for name, _ in wanted):
        return "right change, wrong details"
    if not missing:
        return "made extra changes"
    return "made different changes" if extra else "left part of the job undone"


def _wanted(actions: Sequence[object]) -> Iterator[Change]:
    for action in actions:
        if isinstance(action, dict) and _changes(name := as_text(action.get("name"))):
            yield _change(name, action.get("kwargs"))


def _changes(tool: str) -> bool:
    return bool(tool) and tool != _HANDED_OVER and not tool.startswith(_LOOKING)


def _change(tool: str, arguments: object) -> Change:
    given = arguments if isinstance(arguments, dict) else {}
    return tool, tuple((as_text(name), as_text(value)) for name, value in sorted(given.items()))


def _arguments(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}


def _shown(change: Change, others: Sequence[Change]) -> str:
    """A change as a call; beside one by the same tool, only the arguments that differ."""
    tool, arguments = change
    beside = [dict(given) for name, given in others if name == tool]
    if len(beside) == 1:
        arguments = tuple(
            (name, value) for name, value in arguments if beside[0].get(name) != value
        )
    return f"{tool}({', '.join(f'{name}={value}' for name, value in arguments)})"


def _rows(runs: list[_Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        messages = run.traj or []
        calls = [call.function.name for message in messages for call in message.tool_calls or ()]
        error = first_line(run.info.error if run.info else None)
        yield {
            "task": run.task_id,
            "trial": run.trial,
            "outcome": Outcome.ERRORED if error else Outcome(run.reward >= SUCCESS),
            "score": run.reward,
            "turns": sum(message.role == "assistant" for message in messages),
            "tool_calls": len(calls),
            "tools": path_of(calls),
            "error": error,
        }
