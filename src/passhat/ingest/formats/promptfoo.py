"""promptfoo results, JSON, JSON Lines and CSV; repeats carry no number: matched by test."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.readers import Reading, TrialTable, first_line
from passhat.ingest.rows import column_names, csv_lines
from passhat.ingest.transcripts import as_text, asked_and_answered, mappings
from passhat.messages import plural, short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap, as_number
from passhat.records.labels import Label
from passhat.records.transcript import Check, Transcript, as_score
from passhat.records.trial import GRADED_BY_JUDGE

READING = Reading(
    format="promptfoo results",
    versions="JSON of formats 1 to 3, JSON Lines, CSV",
    system="provider (and prompt, if there are several)",
    task="test description or variables",
    run="order of results",
    outcome="success",
    score="score",
    label="manual ratings, beside the verdict that they replaced",
)

_ANSWERS = re.compile(r"\[(.+?)\] (.*)", re.DOTALL)
"""How a column of the CSV is headed: the provider and the prompt."""

_MARKED = re.compile(r"\[(PASS|FAIL|ERROR)\](?: \((-?[\d.]+)\))?\s*(.*)", re.DOTALL)
"""How a cell of answers begins in a CSV that has no columns of their own for status and score."""

_VERSION = re.compile(rb'\s*\{\s*"version"\s*:\s*(\d)')

_BLOCK = 6
"""Columns of one answer in a CSV: answer, status, score, named scores, reason, comment."""

ERROR_REASON = 2
"""promptfoo's `failureReason` of a provider or grader that broke; 1 is a failed assertion."""


_LONGEST_FOUND = 300
"""Letters up to which an answer stands beside what was expected of it."""

_MANUAL = "Manual result (overrides all other grading results)"
"""The reason that promptfoo gives for a verdict that somebody replaced by hand."""


_MODEL_GRADED = re.compile(
    rb'"type"\s*:\s*"(?:not-)?(?:llm-rubric|agent-rubric|g-eval|factuality|select-best|'
    rb'model-graded-[a-z]+|answer-relevance|context-(?:faithfulness|recall|relevance))"'
)
"""An assertion that promptfoo asks a model about."""


class _Provider(msgspec.Struct):
    id: str = ""
    label: str | None = None


class _TokenUsage(msgspec.Struct):
    prompt: float | None = None
    completion: float | None = None


class _Response(msgspec.Struct):
    cached: bool | None = None


class _TestCase(msgspec.Struct):
    description: str | None = None
    vars: dict[str, Any] | None = None
    asserts: msgspec.Raw = msgspec.field(name="assert", default=msgspec.Raw(b""))
    threshold: float | None = None


class _Prompt(msgspec.Struct):
    label: str | None = None
    raw: str = ""
    display: str | None = None  # of formats 1 and 2, in place of the label


class _Result(msgspec.Struct, rename="camel"):
    success: bool
    score: float | None = None
    provider: _Provider | str | None = None
    prompt_id: str = ""
    prompt: _Prompt = msgspec.field(default_factory=_Prompt)
    vars: dict[str, Any] | None = None
    test_case: _TestCase = msgspec.field(default_factory=_TestCase)
    failure_reason: int | None = None
    grading_result: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"))
    error: str | None = None
    latency_ms: float | None = None
    cost: float | None = None
    token_usage: _TokenUsage | None = None
    response: _Response | None = None


class _Results(msgspec.Struct):
    results: list[_Result]


class _File(msgspec.Struct):
    """Format 1 has the results themselves where later ones have an object with them."""

    results: _Results | list[_Result]

    def listed(self) -> list[_Result]:
        return self.results if isinstance(self.results, list) else self.results.results


class _Asserted(msgspec.Struct):
    type: str = ""
    weight: float | None = None


class _Component(msgspec.Struct, rename="camel"):
    """What one assertion said; a set of assertions has what each of them said after it, too."""

    success: bool = msgspec.field(name="pass", default=False)
    score: float | None = None
    assertion: _Asserted | None = None
    comment: str | None = None
    component_results: list[Any] | None = None

    @property
    def weight(self) -> float:
        weight = self.assertion.weight if self.assertion else None
        return 1.0 if weight is None else weight


class _Grading(msgspec.Struct, rename="camel"):
    component_results: list[_Component] | None = None


@dataclass(frozen=True, slots=True)
class _AnswerColumn:
    """A column of answers in a CSV; with `has_status`, the next two are Status and Score."""

    place: int
    name: str
    provider: str
    prompt: str
    has_status: bool


class _SpokenResponse(msgspec.Struct):
    output: Any = None


class _SpokenResult(msgspec.Struct, rename="camel"):
    prompt: _Prompt = msgspec.field(default_factory=_Prompt)
    response: _SpokenResponse | None = None
    grading_result: Any = None
    error: str | None = None


def recognises(document: Document) -> bool:
    """Whether it is an evaluation with its results, or lines of results."""
    if document.kind == "text":
        return bool(_answer_columns(document))
    if document.kind == "lines":
        return document.has("gradingResult", "promptIdx", "success")
    if not document.has("results") or document.has("_resultsLoaded"):
        return False
    named = document.has("evalId") or b'"promptIdx"' in document.data[:200_000]
    return named or _format_number(document) in (1, 2)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a result; a system is a provider (with its prompt if there are several)."""
    if document.kind == "text":
        results = list(_csv_results(document))
    elif document.kind == "lines":
        results = [result for _, result in document.lines(_Result)]
    else:
        results = document.decode(_File).listed()
    number = _format_number(document)
    notes = []
    if cached := sum(bool(result.response and result.response.cached) for result in results):
        notes.append(f"{cached} results came from promptfoo's cache: repeats of one answer")
    if rated := sum(result.error == _MANUAL for result in results):
        notes.append(
            f"{plural(rated, 'verdict was', 'verdicts were')} replaced by hand, and a CSV does not "
            "hold what was replaced: export JSON to have it, and the ratings as labels"
        )
    asked = (part for row in results for part in (row.test_case.asserts, row.grading_result))
    if any(_MODEL_GRADED.search(bytes(part)) for part in asked):
        notes.append(GRADED_BY_JUDGE)
    facts = {"format": f"promptfoo results (format {number})"} if number else {}
    if number in (1, 2):
        facts["system"] = "prompt (this format names no provider)"
    return TrialTable.of_rows(
        _rows(document.name, results), notes=notes, entry="result", read_as=facts
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The prompt and the output of each result, and what each assertion said."""
    if document.kind == "text":
        yield from _csv_transcripts(document)
    elif document.kind == "lines":
        yield from (_transcript(result) for _, result in document.lines(_SpokenResult))
    else:
        nested = not bytes(document.first["results"]).lstrip().startswith(b"[")
        keys = ("results", "results") if nested else ("results",)
        yield from map(_transcript, document.entries(_SpokenResult, *keys))


def _format_number(document: Document) -> int | None:
    """The number of promptfoo's own format, 1 to 3; None for lines and tables, which have none."""
    if document.kind != "json":
        return None
    if document.has("version", "results", "table"):
        return 1
    version = _VERSION.match(bytes(document.first.get("results", b"")))
    return int(version[1]) if version else None


def _answer_columns(document: Document) -> list[_AnswerColumn]:
    """The columns of answers in a CSV: those before Status and Score, or with marked answers."""
    names = column_names(document)
    headed = enumerate(zip(names, names[1:], names[2:], strict=False))
    blocks = [place for place, (_, *rest) in headed if rest == ["Status", "Score"]]
    blocks = [place for place in blocks if _ANSWERS.fullmatch(names[place])]
    return [
        _AnswerColumn(place, names[place], *_headed(names[place]), bool(blocks))
        for place in blocks or _marked(document)
    ]


def _marked(document: Document) -> list[int]:
    """The places of the columns whose first answer begins with a verdict."""
    try:
        _, cells = next(itertools.islice(csv_lines(document), 1, None), (0, []))
    except ReadError:
        return []
    return [place for place, cell in enumerate(cells) if _MARKED.match(cell)]


def _headed(header: str) -> tuple[str, str]:
    """The provider and the prompt of a column: "[provider] prompt", or what a prompt is called."""
    if named := _ANSWERS.fullmatch(header):
        return named[1], named[2]
    try:
        prompt = msgspec.json.decode(header, type=_Prompt)
    except msgspec.DecodeError:
        return "", header
    return "", prompt.display or prompt.raw or header


def _csv_answers(
    document: Document,
) -> Iterator[tuple[int, dict[str, str], _AnswerColumn, list[str]]]:
    """Each answer with its line, the variables of the test, its column and its cells."""
    columns, names = _answer_columns(document), column_names(document)
    if not columns:
        raise ReadError(
            f'{document.name}: has no columns "[provider] prompt", Status and Score, and none with '
            "answers that begin with [PASS] or [FAIL]"
        )
    end = columns[0].place if columns[0].has_status else len(names)
    given = [place for place in range(end) if place not in {column.place for column in columns}]
    for line, cells in itertools.islice(csv_lines(document), 1, None):
        variables = {names[place]: cells[place] for place in given}
        for column in columns:
            yield line, variables, column, cells[column.place : column.place + _BLOCK]


def _csv_results(document: Document) -> Iterator[_Result]:
    for line, given, column, cells in _csv_answers(document):
        variables = {name: cell for name, cell in given.items() if name != "Description"}
        status, score, text = _verdict(f"{document.name}, line {line}", column, cells)
        if by_hand := _MANUAL in cells[3:]:  # of those, promptfoo calls failures errors
            status = "PASS" if score else "FAIL"
        yield _Result(
            success=status == "PASS",
            score=score,
            provider=column.provider or None,
            prompt_id=column.prompt,
            prompt=_Prompt(raw=column.prompt),
            test_case=_TestCase(description=given.get("Description"), vars=variables),
            failure_reason=ERROR_REASON if status == "ERROR" else 0,
            error=_MANUAL if by_hand else text if status == "ERROR" else None,
        )


def _verdict(
    where: str, column: _AnswerColumn, cells: Sequence[str]
) -> tuple[str, float | None, str | None]:
    """The status of an answer, its score, and its text where that follows a mark."""
    if column.has_status:
        try:
            return cells[1], as_number(cells[2]), None
        except ValueError as error:
            raise ReadError(f"{where}, column Score: {error}") from None
    mark = _MARKED.match(cells[0])
    if mark is None:
        raise ReadError(
            f'{where}, column "{short(column.name)}": must begin with [PASS], [FAIL] or [ERROR]'
        )
    score = mark[2] or ""
    plain = score.count(".") < 2 and score.strip("-.")
    return mark[1], float(score) if plain else None, mark[3]


def _csv_transcripts(document: Document) -> Iterator[Transcript]:
    for _, given, column, (answer, *_) in _csv_answers(document):
        variables = "".join(f"\n{name}: {cell}" for name, cell in given.items() if cell)
        mark = _MARKED.match(answer)
        # The prompt is a template there, without its variables filled in.
        turns = asked_and_answered(column.prompt + variables, mark[3] if mark else answer)
        yield Transcript(messages=turns)


def _transcript(result: _SpokenResult) -> Transcript:
    output = result.response.output if result.response else None
    grading = result.grading_result if isinstance(result.grading_result, dict) else {}
    answer = as_text(output)
    checks = tuple(_check(grade, answer) for grade in mappings(grading.get("componentResults")))
    error = result.error or ""  # of a failed assertion it only says again why it failed
    return Transcript(
        messages=asked_and_answered(result.prompt.raw, output),
        error="" if any(check.message == error for check in checks) else error,
        checks=checks,
    )


def _check(grade: Mapping[str, Any], answer: str) -> Check:
    asserted = grade.get("assertion")
    kind, value = (
        (as_text(asserted.get(name)) for name in ("type", "value"))
        if isinstance(asserted, dict)
        else ("", "")
    )
    score, reason = as_score(grade.get("score")), as_text(grade.get("reason"))
    # A long answer is in the conversation below, and need not be read twice.
    return Check(
        target=kind or "assertion",
        score=score,
        message=reason,
        expected=value,
        found=answer if value and len(answer) <= _LONGEST_FOUND else "",
    )


def _rows(name: str, results: Sequence[_Result]) -> Iterator[dict[str, Any]]:
    systems = _systems(results)
    names = _task_names([_identity(result) for result in results])
    for result in results:
        usage = result.token_usage or _TokenUsage()
        success, score, label = _verdict_and_rating(name, result)
        yield {
            "system": systems[_provider(result), _prompt_id(result)],
            "task": names[_identity(result)],
            "outcome": Outcome.ERRORED if _broke(result) else Outcome(success),
            "score": score,
            "human_labels": label and [label],
            "tokens_in": usage.prompt,
            "tokens_out": usage.completion,
            "cost": result.cost,
            "seconds": None if result.latency_ms is None else result.latency_ms / 1000,
            "error": first_line(result.error) if _broke(result) else None,
        }


def _verdict_and_rating(name: str, result: _Result) -> tuple[bool, float | None, Label | None]:
    """Whether a result passed, its score, and what somebody who rated it by hand says.

    A rating takes the place of the verdict in promptfoo; what its assertions said is still there.
    A test without assertions has no other verdict than the rating.
    """
    if b'"human"' not in bytes(result.grading_result):
        return result.success, result.score, None
    grades = decode(name, result.grading_result, _Grading).component_results or []
    rating = next(
        (grade for grade in grades if grade.assertion and grade.assertion.type == "human"), None
    )
    if rating is None or len(grades) == 1:
        return result.success, result.score, None
    own, within = [], 0
    for grade in grades:
        if not within and grade is not rating:
            own.append(grade)
        within = within - 1 if within else len(grade.component_results or ())
    weight = sum(grade.weight for grade in own)
    score = (
        sum((grade.score or 0.0) * grade.weight for grade in own) / weight if weight > 0 else 0.0
    )
    threshold = result.test_case.threshold
    passed = all(grade.success for grade in own) if threshold is None else score >= threshold
    return passed, score, Label(passed=rating.success, note=rating.comment or "")


def _provider(result: _Result) -> str:
    provider = result.provider
    if isinstance(provider, _Provider):
        return provider.label or provider.id
    return provider or "system"


def _systems(results: Iterable[_Result]) -> Mapping[tuple[str, str], str]:
    """The name of each provider and prompt: the prompt by its label, if there are several."""
    prompts = {(_provider(result), _prompt_id(result)): result.prompt for result in results}
    if len({prompt_id for _, prompt_id in prompts}) <= 1:
        return {key: key[0] for key in prompts}
    whole = {key: p.label or p.display or p.raw for key, p in prompts.items()}
    brief = {key: _brief_label(label) for key, label in whole.items()}
    labels = brief if len(set(brief.values())) == len(set(whole.values())) else whole
    return {key: f"{key[0]} [{label}]" for key, label in labels.items()}


def _brief_label(label: str) -> str:
    """What a prompt is called: its file, which promptfoo puts before its text, or its beginning."""
    file = re.match(r"(\S+\.\w+): ", label)
    return file[1] if file else first_line(label, 80) or label


def _prompt_id(result: _Result) -> str:
    return result.prompt_id or result.prompt.display or ""


Identity = tuple[str, str, bytes]


def _identity(result: _Result) -> Identity:
    """What makes a test the same test: its description, variables and assertions."""
    case = result.test_case
    given = case.vars if case.vars is not None else result.vars or {}
    # promptfoo itself adds what was said before, as far as the test is part of a conversation.
    own = {key: value for key, value in given.items() if key != "_conversation"}
    named = ", ".join(f"{key}={value}" for key, value in own.items())
    return case.description or "", named, bytes(case.asserts)


def _task_names(identities: Iterable[Identity]) -> Mapping[Identity, str]:
    """The description if it is enough, with the variables if it is not."""
    distinct = list(dict.fromkeys(identities))
    brief = [description or variables or "test" for description, variables, _ in distinct]
    whole = [
        f"{description} ({variables})" if description else variables or "test"
        for description, variables, _ in distinct
    ]
    numbered = [f"{name} #{index}" for index, name in enumerate(whole, start=1)]
    names = next(names for names in (brief, whole, numbered) if len(set(names)) == len(names))
    return dict(zip(distinct, names, strict=True))


def _broke(result: _Result) -> bool:
    if result.failure_reason is not None:
        return result.failure_reason == ERROR_REASON
    # Before failureReason existed, a broken result had an error and nothing graded.
    return bool(result.error) and bytes(result.grading_result) == b"null"
