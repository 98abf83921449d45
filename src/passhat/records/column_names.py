"""Which column of a table means what: the names people use, and the user's own choice."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from functools import cache, lru_cache

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, UnknownFile
from passhat.messages import closest, few, short

ALIASES: Mapping[str, tuple[str, ...]] = {
    "system": (
        *("system", "agent", "agent_name", "agent_id", "model", "model_name", "model_id", "llm"),
        "system_name",
    ),
    "task": (
        *("task", "task_id", "task_name", "instance_id", "case", "case_id", "case_name"),
        *("test_case", "test_id", "test_name", "test", "example_id", "sample_id"),
        *("problem", "problem_id", "question_id", "item_id", "scenario", "scenario_id"),
    ),
    "trial": (
        *("trial", "trial_id", "trial_index", "trial_number", "run", "run_id", "run_index"),
        *("run_number", "epoch", "repeat", "repetition", "rep", "attempt", "attempt_id"),
        *("iteration", "trial_num", "run_num"),
    ),
    "passed": (
        *("outcome", "passed", "pass", "success", "successful", "succeeded", "resolved"),
        *("is_resolved", "correct", "is_correct", "solved", "is_success", "is_passed", "pass_fail"),
        *("pass/fail", "verdict", "status", "result"),
    ),
    "score": ("score", "reward", "partial_credit", "mean_score", "value"),
    "error": ("error", "error_kind", "error_type", "error_message", "exception", "errored"),
    "seed": ("seed", "random_seed"),
    "tokens": ("tokens", "total_tokens", "tokens_total", "num_tokens"),
    "tokens_in": ("tokens_in", "input_tokens", "prompt_tokens", "total_input_tokens"),
    "tokens_out": ("tokens_out", "output_tokens", "completion_tokens", "total_output_tokens"),
    "cost": ("cost", "cost_usd", "total_cost", "total_cost_usd", "usd", "agent_cost"),
    "seconds": (
        *("seconds", "duration_s", "duration_seconds", "duration", "latency_s", "elapsed_s"),
        *("elapsed", "wall_time_s", "runtime_s", "time_s", "duration_ms", "latency_ms"),
        "elapsed_ms",
    ),
    "turns": ("turns", "turn_count", "num_turns", "n_turns", "steps", "num_steps"),
    "tool_calls": ("tool_calls", "num_tool_calls", "n_tool_calls", "tool_call_count"),
    "tools": ("tools",),
    "level": ("level",),
    "family": ("family", "task_family"),
    "weight": ("weight", "task_weight"),
    "tags": ("tags", "tag", "service", "category", "domain", "suite"),
    "started": ("started", "started_at", "start_time", "timestamp", "created_at"),
}
"""The names that columns have in practice, the surest first."""

VERDICTS = ("passed", "score")
"""The meanings of columns that say how a run ended."""

TRANSCRIPTS = (
    *("transcript", "messages", "conversation", "trajectory", "traj", "dialogue", "dialog"),
    *("chat_history", "output", "model_output", "response", "completion", "answer"),
)
"""The names of a column that holds transcripts, the surest first."""


_LEFT_OUT = tuple(meaning for meaning in ALIASES if meaning != "task")
"""What a table need not have."""

MOST_KEPT = 200
"""Tables with more columns than this are rare, and their columns are found anew each time."""

_LONGEST_KEPT = 200
"""Names of columns that are longer are rare, and are not remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which column, field or attribute says what, where the usual names do not.

    `task` and `system` may name several columns, joined by commas. `pass_if` is a comparison such
    as `score>=0.8`. `scorer` chooses among several scores in logs that have more than one. `name`
    is what to call the system of files that hold only one. `transcript` is the column with the
    transcripts, read only if these are asked for. An empty name leaves out what a usual name
    would find: `cost=""`.
    """

    task: str | None = None
    trial: str | None = None
    passed: str | None = None
    score: str | None = None
    pass_if: str | None = None
    system: str | None = None
    seed: str | None = None
    error: str | None = None
    tokens: str | None = None
    tokens_in: str | None = None
    tokens_out: str | None = None
    cost: str | None = None
    seconds: str | None = None
    turns: str | None = None
    tool_calls: str | None = None
    tools: str | None = None
    level: str | None = None
    family: str | None = None
    weight: str | None = None
    tags: str | None = None
    started: str | None = None
    scorer: str | None = None
    name: str | None = None
    transcript: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value == "" and field.name in _LEFT_OUT:
                continue
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise ArgumentError(
                    f"ColumnMap.{field.name}", "must be a text that is not empty", value
                )

    def chosen(self) -> dict[str, str]:
        """The columns the user named, by what they mean.

        >>> ColumnMap(task="question", pass_if="score>=0.8").chosen()
        {'task': 'question'}
        """
        return dict(_chosen(self))

    @property
    def family_pattern(self) -> re.Pattern[str] | None:
        r"""The pattern over task names whose first group is the family, where `family` is one.

        A name with a parenthesis is taken for a pattern, any other for a column.

        >>> ColumnMap(family=r"^(\w+)-").family_pattern.match("refund-12")[1]
        'refund'
        >>> ColumnMap(family="service").family_pattern
        """
        if self.family is None or "(" not in self.family:
            return None
        try:
            return re.compile(self.family)
        except re.error as error:
            rule = f"must be a column, or a pattern with one group ({error})"
            raise ArgumentError("family", rule, self.family) from None

    def left_out(self) -> frozenset[str]:
        """What the user does not want, whatever the columns are called."""
        return _left_out(self)


USUAL = ColumnMap()
"""Nothing but the usual names."""


# Needed several times for each of thousands of small files.
@lru_cache(maxsize=64)
def _chosen(mapping: ColumnMap) -> dict[str, str]:
    return {
        name: value
        for name in ALIASES
        if (value := getattr(mapping, name)) and not (name == "family" and mapping.family_pattern)
    }


@cache
def _left_out(mapping: ColumnMap) -> frozenset[str]:
    return frozenset(name for name in _LEFT_OUT if getattr(mapping, name) == "")


def find_columns(names: Iterable[str], mapping: ColumnMap) -> dict[str, str]:
    """Which column holds what: the user's choice, then the first usual name that occurs.

    >>> find_columns(["Agent", "taskId", "ok"], ColumnMap(passed="ok"))
    {'passed': 'ok', 'system': 'Agent', 'task': 'taskId'}
    """
    names = tuple(names)
    found = _find_columns if len(names) <= MOST_KEPT else _find_columns.__wrapped__
    return dict(found(names, mapping))


# A folder holds thousands of tables with the same columns.
@lru_cache(maxsize=64)
def _find_columns(names: tuple[str, ...], mapping: ColumnMap) -> dict[str, str]:
    left_out = mapping.left_out()
    found = mapping.chosen()
    by_usual_name: dict[str, str] = {}
    for name in names:
        by_usual_name.setdefault(usual_name(name), name)
    for meaning, aliases in ALIASES.items():
        if meaning not in found and meaning not in left_out:
            for alias in aliases:
                if alias in by_usual_name and by_usual_name[alias] not in found.values():
                    found[meaning] = by_usual_name[alias]
                    break
    return found


WEAK_VERDICTS = ("status", "result")
"""Columns that may say whether a run completed rather than whether it passed."""


def verdict_columns(names: Iterable[str]) -> list[str]:
    """Every column whose name says that it holds verdicts, the surest first.

    >>> verdict_columns(["status", "task", "Passed"])
    ['Passed', 'status']
    """
    by_usual_name = {usual_name(name): name for name in names}
    return [by_usual_name[alias] for alias in ALIASES["passed"] if alias in by_usual_name]


def is_weak(column: str) -> bool:
    """Whether a column's name leaves open that it holds verdicts."""
    return usual_name(column) in WEAK_VERDICTS


def transcript_column(names: Iterable[str], mapping: ColumnMap) -> str | None:
    """The column that holds transcripts: the user's choice, then the first usual name.

    >>> transcript_column(["task", "ok", "Response", "messages"], ColumnMap())
    'messages'
    """
    taken = set(find_columns(names := list(names), mapping).values())
    by_usual_name = {usual_name(name): name for name in names if name not in taken}
    usual = (by_usual_name[name] for name in TRANSCRIPTS if name in by_usual_name)
    return mapping.transcript or next(usual, None)


def is_table(names: Iterable[str], mapping: ColumnMap) -> bool:
    """Whether these columns say the task and the outcome of each row."""
    found = find_columns(names, mapping)
    return "task" in found and ("passed" in found or "score" in found or bool(mapping.pass_if))


def has_column(names: Collection[str], column: str) -> bool:
    """Whether there is such a column, or one that a dotted path begins with."""
    return column in names or column.partition(".")[0] in names


def name_parts(names: Collection[str], column: str) -> list[str]:
    """The columns that make up the name of a task or a system: one, or those that commas join.

    >>> name_parts(["suite", "case"], "suite,case")
    ['suite', 'case']
    """
    if has_column(names, column):
        return [column]
    return [part.strip() for part in column.split(",")]


def leave_out(meaning: str) -> str:
    """How to do without a column that cannot be read.

    >>> leave_out("tokens_in")
    "leave it out with `tokens_in=''`"
    """
    return f"leave it out with `{meaning}=''`"


def milliseconds(column: str) -> bool:
    """Whether a column of durations says that it counts milliseconds."""
    return usual_name(column).endswith("_ms")


def missing_column(name: str, meaning: str, column: str, names: Iterable[str]) -> UnknownFile:
    """The error of a chosen column that the file does not have."""
    known = [str(known) for known in names]
    near = closest(column, known)
    hint = f' Did you mean "{short(near)}"?' if near else ""
    return UnknownFile(
        f'{name}: has no column "{short(column)}" for `{meaning}`; it has {few(known)}.{hint}'
    )


def usual_name(name: str) -> str:
    """A column's name in lower case with underscores, as the usual names are written.

    >>> usual_name("taskId"), usual_name("Total Cost"), usual_name("Passed?")
    ('task_id', 'total_cost', 'passed')
    """
    known = _usual_name if len(name) <= _LONGEST_KEPT else _usual_name.__wrapped__
    return known(name)


@lru_cache(maxsize=1024)
def _usual_name(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().rstrip("?"))
    return re.sub(r"[\s\-.]+", "_", words).lower()
