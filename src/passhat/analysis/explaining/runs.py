"""The runs that can be explained, grouped by system and task, and their calls made comparable."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.records import Outcome, Trials
from passhat.records.transcript import (
    AnsweredCall,
    Check,
    Transcript,
    TranscriptKey,
    Transcripts,
    answered_calls,
)

COSTS = ("tokens", "cost", "seconds", "tool_calls")
"""What a run took, as far as its log says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRun:
    """One run: who tried what, how it ended, and the calls it made.

    `transcript` is None if the log keeps none: such a run counts, but cannot be compared.
    """

    system: str
    task: str
    trial: int
    outcome: Outcome
    error: str = ""
    calls: tuple[NormalizedCall, ...] = ()
    transcript: Transcript | None = None
    costs: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> TranscriptKey:
        return self.system, self.task, self.trial

    @property
    def group(self) -> tuple[str, str]:
        """Runs are compared within one system and task."""
        return self.system, self.task

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> bool:
        return self.outcome is Outcome.FAILED

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools it called, in order."""
        return tuple(call.tool for call in self.calls)

    # A transcript without words is false, and may still say why the run ended.
    @property
    def expected_tool(self) -> str:
        return "" if self.transcript is None else self.transcript.expected_tool

    @property
    def stop_reason(self) -> str:
        return "" if self.transcript is None else self.transcript.stop_reason

    @property
    def exit_code(self) -> int | None:
        return None if self.transcript is None else self.transcript.exit_code

    @property
    def checks(self) -> tuple[Check, ...]:
        return () if self.transcript is None else self.transcript.checks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedRuns:
    """Runs of the tasks that both pass and fail, task after task.

    `stratum` numbers the system and task of each run, in blocks; `failed` is its outcome.
    """

    runs: tuple[ExplainedRun, ...]
    stratum: NDArray[np.int64]
    failed: NDArray[np.bool_]

    @property
    def strata(self) -> int:
        return int(self.stratum[-1]) + 1 if len(self.runs) else 0

    def blocks(self) -> Iterator[slice]:
        """The rows of each stratum."""
        bounds = np.searchsorted(self.stratum, np.arange(self.strata + 1)).tolist()
        yield from (slice(*pair) for pair in pairwise(bounds))


def explained_runs(trials: Trials, transcripts: Transcripts) -> tuple[ExplainedRun, ...]:
    """Every trial as a run, with the calls of its transcript if there is one."""
    features = dict(trials.features)
    sides = [features[name] for name in ("tokens_in", "tokens_out") if name in features]
    if sides and "tokens" not in features:
        features["tokens"] = np.sum(sides, axis=0)
    costs = {name: features[name] for name in COSTS if name in features}
    columns = trials.system.texts(), trials.task.texts(), trials.trial.tolist()
    errors = trials.error.texts() if trials.error is not None else [None] * len(trials)
    outcomes = [Outcome(code) for code in trials.outcome.tolist()]
    runs = []
    for row, (system, task, trial) in enumerate(zip(*columns, strict=True)):
        kept = transcripts.get((system or "", task or "", trial))
        transcript = Transcript.from_json(kept) if kept is not None else None
        runs.append(
            ExplainedRun(
                system=system or "",
                task=task or "",
                trial=trial,
                outcome=outcomes[row],
                error=errors[row] or "",
                calls=normalized_calls(transcript) if transcript else (),
                transcript=transcript,
                costs={name: float(c[row]) for name, c in costs.items() if c[row] == c[row]},
            )
        )
    return tuple(runs)


def runs_by_task(runs: Iterable[ExplainedRun]) -> list[list[ExplainedRun]]:
    """The runs of each system and task, in the order in which these occur."""
    groups: dict[tuple[str, str], list[ExplainedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return list(groups.values())


def compared_runs(runs: Sequence[ExplainedRun]) -> ComparedRuns:
    """The runs with a transcript of tasks that both passed and failed; errored runs are neither."""
    judged = (r for r in runs if r.transcript is not None and r.outcome is not Outcome.ERRORED)
    groups = runs_by_task(judged)
    mixed = [group for group in groups if 0 < sum(r.failed for r in group) < len(group)]
    chosen = tuple(run for group in mixed for run in group)
    return ComparedRuns(
        runs=chosen,
        stratum=np.repeat(np.arange(len(mixed)), [len(group) for group in mixed]).astype(np.int64),
        failed=np.array([run.failed for run in chosen], dtype=bool),
    )


FREE_TEXT = "<text>"
"""Replaces words that a model made up: no two runs phrase them alike."""

LONGEST_VALUE = 60
"""Characters from which a value counts as free text; so do four blanks or more."""

_MOST_BLANKS = 3
_LONGEST_ERROR = 120

# How tools begin what they return in place of a result, where they set no flag: none of the 73
# errors in a published tau-bench log is marked as one.
_ERROR = re.compile(
    r'\s*(error|exception|traceback|failed|\w*error:|http [45]\d\d|\{\s*"error)', re.IGNORECASE
)
_NUMBER = re.compile(r"(\W*)(\d+(?:\.\d+)?)(\W*)")
_EMPTY = frozenset({"", "{}", "[]", '""', "null", "None"})
_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`"), "<s>"),
    (re.compile(r"\b\d+([.,]\d+)*\b"), "<n>"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z_])[\w-]+\b"), "<id>"),
)

Arguments = Mapping[str, str]
"""Each argument as text: JSON, with free text masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizedCall:
    """One call in a form that can be compared between runs.

    `key` is equal for two calls that ask for the same; `error` is the masked text of a call that
    failed, None for one that worked. `empty` says that the tool answered without an error and
    returned nothing. `place` counts the calls of the run from 0, and `said_in` its messages.
    """

    tool: str
    arguments: Arguments
    key: str
    error: str | None
    place: int
    said_in: int
    empty: bool = False

    @property
    def worked(self) -> bool:
        return self.error is None


def normalized_calls(transcript: Transcript) -> tuple[NormalizedCall, ...]:
    """The calls of a transcript, in the order they were made."""
    return tuple(_normal(call, i) for i, call in enumerate(answered_calls(transcript)))


def masked_text(text: str) -> str:
    """An error text without what differs from run to run: ids, numbers, quoted words.

    >>> masked_text('Error: order "A-17" not found after 30.5 s (request req_8f2a)')
    'Error: order <s> not found after <n> s (request <id>)'
    """
    line = first_line(text)
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line[:_LONGEST_ERROR]


def first_line(text: str) -> str:
    """The first line of an error text; of a very long one its beginning."""
    return text.strip().partition("\n")[0][: 2 * _LONGEST_ERROR]


def common_wording(texts: Sequence[str]) -> str:
    """Texts that differ in ids, numbers or quoted words, as one that people can read.

    >>> common_wording(["3 of 12 tests failed", "1 of 12 tests failed"])
    '1 to 3 of 12 tests failed'
    >>> common_wording(['Error: no order "A-17"', 'Error: no order "B-2"', 'Error: no order "B-2"'])
    'Error: no order "B-2" (and the like)'
    """
    counted = Counter(text[:_LONGEST_ERROR] for text in texts)
    rows = [text.split(" ") for text in counted]
    if len({len(row) for row in rows}) == 1:
        words = [_common_word(column) for column in zip(*rows, strict=True)]
        if None not in words:
            return " ".join(map(str, words))
    return f"{counted.most_common(1)[0][0]} (and the like)"


def _common_word(words: Sequence[str]) -> str | None:
    """A word that is the same everywhere, or the range of numbers; None if it is neither."""
    if len(set(words)) == 1:
        return words[0]
    parts = [match.groups() for word in words if (match := _NUMBER.fullmatch(word))]
    if len(parts) < len(words) or len({(before, after) for before, _, after in parts}) > 1:
        return None
    (before, _, after), numbers = parts[0], [number for _, number, _ in parts]
    return f"{before}{min(numbers, key=float)} to {max(numbers, key=float)}{after}"


def is_free_text(value: str) -> bool:
    """Whether a value is a sentence or longer, rather than a name or a number."""
    return len(value) > LONGEST_VALUE or value.count(" ") > _MOST_BLANKS


def list_lengths(arguments: Arguments) -> Iterator[tuple[str, int]]:
    """The arguments that are lists, and how long each is."""
    for name, value in arguments.items():
        if value.startswith("["):
            try:
                parsed = json.loads(value)
            except ValueError:
                continue
            if isinstance(parsed, list):
                yield name, len(parsed)


def _normal(call: AnsweredCall, place: int) -> NormalizedCall:
    arguments = _arguments(call.arguments)
    return NormalizedCall(
        tool=call.name,
        arguments=arguments,
        key=f"{call.name} {json.dumps(arguments, ensure_ascii=False)}",
        error=_error(call),
        place=place,
        said_in=call.said_in,
        empty=_is_empty(call),
    )


def _error(call: AnsweredCall) -> str | None:
    if call.answer is None:
        return None
    text = call.answer.text
    if call.answer.is_error:
        return masked_text(text) or "error"
    return masked_text(text) if _ERROR.match(text) else None


def _is_empty(call: AnsweredCall) -> bool:
    answer = call.answer
    return answer is not None and not answer.is_error and answer.text.strip() in _EMPTY


# Runs of one task make the same calls again and again.
@lru_cache(maxsize=65_536)
def _arguments(text: str) -> Arguments:
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        given = text
    if not isinstance(given, dict):
        given = {"": given}
    masked = {name: _masked(given[name]) for name in sorted(given)}
    return {
        name: t if isinstance(t, str) else json.dumps(t, sort_keys=True, ensure_ascii=False)
        for name, t in masked.items()
    }


def _masked(value: Any) -> Any:
    """A value with its free text masked, at any depth that JSON allowed."""
    if isinstance(value, str):
        return FREE_TEXT if is_free_text(value) else value
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, dict):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 250.0 and 250 ask for the same
    return value
