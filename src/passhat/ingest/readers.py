"""The table of formats: one line a reader, tried in this order, loaded when first needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document, Kind
from passhat.messages import few, short
from passhat.records.columns import ColumnMap
from passhat.records.secrets import beginning
from passhat.records.transcript import Transcript
from passhat.records.trial import GRADED_BY_JUDGE, LEFT_OUT, Ended, Facts

_TABLES: tuple[Kind, ...] = ("text", "lines", "array", "parquet")

KINDS_OF_TABLES = ("csv", "tsv", "json", "jsonl", "ndjson", "parquet")
"""Kinds of files that people name where a tool is to be named: these are known by their content."""

# By name: the module of a reader, the kinds of document that it reads, and words of which one must
# be among the columns or keys. Loading all modules takes longer than reading a small table, and
# trying all readers longer than reading a small file.
_FORMATS: Mapping[str, tuple[str, tuple[Kind, ...], tuple[str, ...]]] = {
    "passhat": ("passhat_json", ("json", "lines"), ("schema",)),
    "inspect": ("inspect_log", ("zip", "json"), ("eval",)),
    "tau-bench": ("tau_bench", ("array",), ("traj",)),
    "tau2-bench": ("tau2_bench", ("json",), ("simulation", "tasks")),
    "promptfoo": (
        "promptfoo",
        ("text", "lines", "json"),
        ("Status", "gradingResult", "results", "[", "{"),  # a CSV's headers have providers, prompts
    ),
    "deepeval": ("deepeval", ("json",), ("testRunData", "testCases")),
    "pydantic-evals": ("pydantic_evals", ("json",), ("cases",)),
    "openai-evals": ("openai_evals", ("lines",), ("spec",)),
    "lm-eval": ("lm_eval", ("lines",), ("resps",)),
    "humaneval": ("humaneval", ("lines", "json"), ("completion",)),
    "terminal-bench": ("terminal_bench", ("json",), ("results", "is_resolved")),
    "harbor": ("harbor", ("json",), ("agent_info", "n_total_trials")),
    "swe-bench": ("swebench", ("json",), ()),
    "mcpmark": ("mcpmark", ("json",), ("runs", "execution_result")),
    "aider": ("aider", ("json",), ("tests_outcomes",)),
    "ctrf": ("ctrf", ("json",), ("results",)),
    "playwright": ("playwright", ("json",), ("suites",)),
    "evalplus": ("evalplus", ("json",), ("eval",)),
    "livecodebench": ("livecodebench", ("array",), ("graded_list",)),
    "hal": ("hal", ("json",), ("raw_eval_results",)),
    "bfcl": ("bfcl", ("lines", "json"), ("correct_count", "result")),
    "appworld": ("appworld", ("json",), ("individual",)),
    "helm": ("helm", ("array",), ("train_trial_index",)),
    "metr": ("metr", ("lines", "json"), ("score_binarized",)),
    "nemo-evaluator": ("nemo_evaluator", ("array", "lines"), ("scoring_details",)),
    "agentdojo": ("agentdojo", ("json",), ("pipeline_name",)),
    "claude-skills": ("claude_skills", ("json",), ("run_summary",)),
    "tracelens": ("tracelens", ("json",), ("batch_id",)),
    "mlflow": ("mlflow_table", ("json",), ("columns",)),
    "langsmith": ("langsmith", _TABLES, ("feedback.",)),
    "braintrust": ("braintrust", ("text", "lines", "array"), ("span_id",)),
    "langfuse": (
        "langfuse",
        ("text", "lines", "array", "json"),
        ("dataType", "data_type", "data\nmeta"),  # an answer of its API has these two keys
    ),
    "phoenix": ("phoenix", ("text", "lines", "array"), ("example_id",)),
    "weave": ("weave", ("lines", "array"), ("op_name",)),
    "ragas": ("ragas", _TABLES, ("contexts",)),
    "inspect-dataframe": ("inspect_dataframe", _TABLES, ("eval_id",)),
    "score-array": ("score_arrays", ("array", "binary"), ()),
    "otel": ("otel", ("lines", "array", "json"), ("resourceSpans", "parent_id")),
    "junit": ("junit", ("xml",), ()),
    "dotnet": ("dotnet", ("xml",), ()),
    # last: for what no other reader recognises
    "table": ("tables", ("text", "lines", "array", "json", "parquet"), ()),
}

COMPANIONS = frozenset(
    {
        *("messages.json", "trajectory.json", "run_metadata.json", ".latest_test_run.json"),
        *("config.json", "run_spec.json", "scenario.json", "scenario_state.json", "stats.json"),
    }
)
"""The names of files that some format keeps beside its results, mostly transcripts."""

HIDDEN_RESULTS = frozenset(
    {".aider.results.json", ".deepeval", ".latest_run_full.json", ".latest_test_run.json"}
)
"""Files and folders that hold results although their names begin with a dot."""

_HEADER = 2**16
"""Bytes of the first line of a table in which words are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A format: the kinds of document it comes in, how to recognise it, and how to read it.

    All but the name and the kinds come from its module in `ingest.formats`. `transcripts` gives
    the transcript of each row that `read` gives, in the same order; None if there is none.
    """

    name: str
    kinds: tuple[Kind, ...]
    reading: Reading
    has_marks: Callable[[Document], bool]
    read: Callable[[Document, ColumnMap], TrialTable]
    transcripts: Callable[[Document, ColumnMap], Iterable[Transcript | None]] | None = None

    def recognises(self, document: Document) -> bool:
        """Whether a document is of this format."""
        return document.kind in self.kinds and self.has_marks(document)


class _Readers(Mapping[str, Reader]):
    """The readers by name, each loaded when it is first used."""

    def __getitem__(self, name: str) -> Reader:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FORMATS)

    def __len__(self) -> int:
        return len(_FORMATS)


READERS: Mapping[str, Reader] = _Readers()


@cache
def _load(name: str) -> Reader:
    file, kinds, _ = _FORMATS[name]
    module = import_module(f"passhat.ingest.formats.{file}")
    return Reader(
        name=name,
        kinds=kinds,
        reading=module.READING,
        has_marks=module.recognises,
        read=module.read,
        transcripts=getattr(module, "transcripts", None),
    )


def readers_of(document: Document) -> Iterator[Reader]:
    """The readers that may recognise a document, in the order in which to try them."""
    for name in formats_of(document):
        yield READERS[name]


def formats_of(document: Document) -> tuple[str, ...]:
    """The names of the formats that a document may have, by its kind and its columns or keys."""
    heading = _heading(document)
    if heading is not None and not _words_of_kind(document.kind).search(heading):
        heading = ""
    return _formats_of_kind(document.kind, heading)


# The files of a folder have few headings between them.
@lru_cache(maxsize=64)
def _formats_of_kind(kind: Kind, heading: str | None) -> tuple[str, ...]:
    return tuple(
        name
        for name, (_, kinds, words) in _FORMATS.items()
        if kind in kinds
        and (not words or heading is None or any(word in heading for word in words))
    )


@cache
def _words_of_kind(kind: Kind) -> re.Pattern[str]:
    """A pattern of all words by which the formats of a kind are recognised."""
    words = {word for _, kinds, words in _FORMATS.values() if kind in kinds for word in words}
    return re.compile("|".join(map(re.escape, sorted(words))) or r"(?!)")


def _heading(document: Document) -> str | None:
    """The names of columns or keys as one text; None if they are not known yet."""
    if document.kind in ("json", "lines", "array"):
        return "\n".join(document.first)
    if document.kind == "text":
        return document.data[:_HEADER].partition(b"\n")[0].decode("utf-8", errors="replace")
    return None


# What a reader gets and returns: one opened document in, a table of trials out.
Number = TypeVar("Number", int, float)

RUN_WORDS = "run|trial|seed|rep|repeat|repetition|epoch|attempt|iter|iteration|try|round"
"""Words before the number in the names of files and folders of runs: a part of a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Which field of a format becomes which part of a trial, in a few words; empty if none does.

    `format` is what users call it, `versions` names the releases of the tool that write it; the
    documentation's table of formats is made from these.
    `companions` are names of files in the same folders that belong to its results and hold none;
    `snapshots` are names of files that repeat the latest of the other results.
    `covers_subfolders`: folders below a file of this format are not searched; a key restricts this
    to files that have the key.
    Files of a `derived` format were made from other results: they are left out of folders, and
    are not pooled with files that hold the same system.
    """

    format: str
    versions: str = ""
    system: str = ""
    task: str = ""
    run: str = ""
    outcome: str = ""
    score: str = ""
    family: str = ""
    factor: str = ""
    started: str = ""
    label: str = ""
    companions: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    covers_subfolders: bool | str = False
    derived: bool = False

    def facts(self, particulars: Mapping[str, str], left_out: Iterable[str] = ()) -> Facts:
        """These words, with what one file says in particular; an empty word leaves a part out.

        >>> Reading(format="JUnit XML", task="test case").facts({"task": "test name"})
        (('format', 'JUnit XML'), ('task', 'test name'))
        """
        words_of = {**_usual_words(self), **particulars, LEFT_OUT: "; ".join(left_out)}
        return tuple((name, words) for name, words in words_of.items() if words)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialTable:
    """The trials of one file, by column; the names are those of a Trial, and `passed`.

    `entry` and `numbers` say what a row is called in the file, for messages: "line 7".
    Without a `trial` column, trials are numbered as they come, over all files read together.
    `judged` means that the reader has already applied the user's `pass_if`; `graded` names the
    score of which 1 passes, in a log that holds no verdicts. `read_as` says how this file was
    read where that differs from other files of its format, `left_out` what was not used.
    `submission` names the folder of one system's runs: systems of the same name in
    different submissions stay apart. `run` names the run that the file is a part of, in formats
    that write a file for each task: two runs of a task may well say the same. `part` says that the
    file is one of many that make up its run, so that a report on the whole run replaces it.
    `scores` are those among which the first was taken because the user chose none: files must
    agree in it. `measured` identifies each row by all that the file says of it, where that
    includes a time or an id that no other run has; None for other rows. `fine` says that these are
    fine enough to tell rows of this file apart. `words` are those of each
    column that the user compares with a word, `ranges` the least and greatest numbers of those that
    are compared with numbers, if no trial passed. `apart` says which column keeps trials of the
    same number apart, `ended` that gates ended them.
    """

    columns: Mapping[str, Sequence[Any]]
    notes: Sequence[str] = ()
    entry: str = "entry"
    numbers: Sequence[int] | None = None
    judged: bool = False
    graded: str | None = None
    read_as: Mapping[str, str] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    submission: str | None = None
    run: str | None = None
    part: bool = False
    scores: Sequence[str] = ()
    measured: Sequence[int | None] = ()
    fine: bool = False
    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    apart: str = ""
    ended: Ended | None = None

    @classmethod
    def of_rows(
        cls, rows: Iterable[Mapping[str, Any]], *, system: str | None = None, **more: Any
    ) -> TrialTable:
        """A table of rows that may each lack some columns; `line` is the line that a row is on.

        `system` is that of all rows, where the rows do not name it.

        >>> TrialTable.of_rows([{"task": "a"}, {"task": "b", "cost": 2}]).columns
        {'task': ['a', 'b'], 'cost': [None, 2]}
        """
        rows = list(rows)
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        if system is not None:
            columns["system"] = [system] * len(rows)
        lines = columns.pop("line", None)
        if lines:
            more |= {"entry": "line", "numbers": lines}
        return cls(columns=columns, **more)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: Sequence[int]) -> TrialTable:
        """Some of the rows, under the numbers that they have."""
        return replace(
            self,
            columns={name: [values[row] for row in rows] for name, values in self.columns.items()},
            numbers=rows if self.numbers is None else [self.numbers[row] for row in rows],
            measured=[self.measured[row] for row in rows] if self.measured else (),
        )

    def where(self, row: int) -> str:
        """Where in the file this row is, for messages: "line 7"."""
        return f"{self.entry} {row if self.numbers is None else self.numbers[row]}"


# Needed for every file.
@lru_cache(maxsize=64)
def _usual_words(reading: Reading) -> dict[str, str]:
    values = {field.name: getattr(reading, field.name) for field in fields(reading)}
    return {
        name: value
        for name, value in values.items()
        if name not in ("versions", "covers_subfolders") and isinstance(value, str)
    }


class Named(msgspec.Struct):
    """An object of which only the name is read: a tool, a model, a function."""

    name: str = ""


def has_keys(*alternatives: str) -> Callable[[Document], bool]:
    """Recognises documents whose first entry has all the keys of one alternative: "id passed"."""
    keys = [names.split() for names in alternatives]
    return lambda document: any(document.has(*names) for names in keys)


_BY_A_MODEL = re.compile(
    r"(?i)(?<![a-z])(llm|judge|rubric|model.?graded|g.?eval|factuality|closedqa)(?![a-z])"
)
"""What a score is called that a model gave, in the libraries of graders there are."""


def choose_score(
    file: str, kind: str, known: Sequence[str], chosen: str | None
) -> tuple[str | None, list[str]]:
    """Which of the scores in a file is read, and a note on the others.

    `scorer` chooses one; without it the first is read.

    >>> choose_score("a.json", "metric", ["exact", "f1"], None)
    ('exact', ['metric "exact" was read; there is also f1 (choose with `scorer`)'])
    """
    if chosen is not None and known and chosen not in known:
        raise ReadError(f'{file}: has no {kind} "{short(chosen)}"; it has {few(known)}')
    name = chosen if chosen in known else next(iter(known), None)
    notes = []
    if chosen is None and len(known) > 1:
        others = few(known[1:])
        notes.append(
            f'{kind} "{short(known[0])}" was read; there is also {others} (choose with `scorer`)'
        )
    if name is not None and _BY_A_MODEL.search(name):
        notes.append(GRADED_BY_JUDGE)
    return name, notes


def seconds_between(start: object, end: object) -> float | None:
    """The seconds from one ISO 8601 time to another, where both are known.

    >>> seconds_between("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z")
    90.0
    """
    if not isinstance(start, str) or not isinstance(end, str):
        return None
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):  # not a time, or only one of them has a zone
        return None


def time_of(seconds: float | None) -> str | None:
    """The ISO 8601 time so many seconds after 1970 began; None if there is no such time.

    >>> time_of(1767225600)
    '2026-01-01T00:00:00+00:00'
    """
    if not seconds or seconds < 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def sum_of(values: Iterable[Number | None]) -> Number | None:
    """The sum of what is known; None if nothing is.

    >>> sum_of([3, None, 4]), sum_of([None])
    (7, None)
    """
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None


def first_line(text: str | None, most: int = 200) -> str | None:
    r"""The first line of an error text: what is kept of it.

    >>> first_line("RuntimeError: boom\n  at line 3")
    'RuntimeError: boom'
    """
    if not text:
        return None
    line = text.strip().partition("\n")[0]
    return (line if len(line) <= most else beginning(line, most)) or None
