"""Calls of tools with what came back from each, in the order they were made."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.records.transcript import Call, Transcript, Turn

TOOL_ROLES = frozenset({"tool", "function"})
"""Roles of a turn in which a tool answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCall:
    """One call and its answer; `answer` is None if none came.

    `said_in` is the place among the messages of the turn that made the call, and `answered_in`
    that of the turn that answers it.
    """

    name: str
    arguments: str
    said_in: int
    answer: Turn | None = None
    answered_in: int | None = None


def answered_calls(transcript: Transcript) -> tuple[AnsweredCall, ...]:
    """Every call of a transcript, paired with its answer.

    An answer belongs to the open call of the same id; without one, to the first open call of the
    same tool; without that, to the first open call.

    >>> said = Transcript(messages=(
    ...     Turn(role="assistant", calls=(Call(name="add", id="1"), Call(name="add", id="2"))),
    ...     Turn(role="tool", text="second", call_id="2"),
    ...     Turn(role="tool", text="first", call_id="1"),
    ... ))
    >>> [call.answer.text for call in answered_calls(said)]
    ['first', 'second']
    """
    made: list[tuple[Call, int]] = []
    answers: dict[int, int] = {}
    open_calls: list[int] = []
    for place, turn in enumerate(transcript.messages):
        if turn.role in TOOL_ROLES and not turn.calls:
            if open_calls:
                answered = _answered(turn, open_calls, made)
                answers[answered] = place
                open_calls.remove(answered)
            continue
        open_calls += range(len(made), len(made) + len(turn.calls))
        made += [(call, place) for call in turn.calls]
    return tuple(
        AnsweredCall(
            name=call.name,
            arguments=call.arguments,
            said_in=place,
            answer=transcript.messages[answers[i]] if i in answers else None,
            answered_in=answers.get(i),
        )
        for i, (call, place) in enumerate(made)
    )


def _answered(turn: Turn, open_calls: Sequence[int], made: Sequence[tuple[Call, int]]) -> int:
    """Which of the open calls a turn answers."""
    by_id = (i for i in open_calls if turn.call_id and made[i][0].id == turn.call_id)
    by_name = (i for i in open_calls if turn.name and made[i][0].name == turn.name)
    return next(by_id, next(by_name, open_calls[0]))
