"""What is demanded of an agent, such as `pass^3 >= 0.8`, and the verdict on it in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, TypedDict, cast, get_args, overload

from passhat.analysis.reports.targets import Target, parse_target
from passhat.arguments import (
    CONFIDENCE,
    CountingTerms,
    ErrorPolicy,
    instance,
    parse_levels,
    whole_number,
)
from passhat.dataclass import Displayed, dataclass, formerly, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import closest, halves_away, metric_label, plural, quoted, rounded, short_repr
from passhat.records.suite import Design, EvidenceKind, GateScope, OnUndecided, Severity
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Unavailable

Sign = Literal[">=", ">", "<=", "<"]

DEFAULT_ERROR = 0.05

BEST_BY = 0.1
"""How far below the best a system may be and still be called best, by default."""

_NUMBER = r"\$?\s*(-?(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d+)?)\s*(%?)"
_SIGNS = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}
_EXAMPLE = '"pass^3 >= 0.8"'


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRequirement:
    """A number of the report, on one side of a threshold."""

    target: Target
    sign: Sign
    threshold: float

    @property
    def upward(self) -> bool:
        """Whether more is better."""
        return self.sign in (">=", ">")

    def met_by(self, value: float) -> bool:
        if self.upward:
            return value >= self.threshold if self.sign == ">=" else value > self.threshold
        return value <= self.threshold if self.sign == "<=" else value < self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryTaskRequirement:
    """The pass^k of every single task reaches a bar: `bar`, or the task's own if it is None."""

    k: int
    bar: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWorseRequirement:
    """A metric is no worse than a baseline's by more than `margin`, on the same tasks."""

    baseline: str
    margin: float
    metric: str = "mean_score"

    @property
    def k(self) -> int:
        """How many runs in a row it is about."""
        return 1 if self.metric == "mean_score" else int(self.metric.removeprefix("pass^"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterRequirement(NoWorseRequirement):
    """A metric is better than a baseline's, by more than -`margin` if that is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalentRequirement(NoWorseRequirement):
    """A metric differs from a baseline's by less than `margin`, either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTaskWorseRequirement:
    """No single task got worse than in a baseline."""

    baseline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfRequirement:
    """One of several systems is known to be the best, or within `margin` of the best.

    If the gate names a system, it must be that one.
    """

    margin: float = BEST_BY


Requirement = (
    ThresholdRequirement
    | EveryTaskRequirement
    | NoWorseRequirement
    | NoTaskWorseRequirement
    | BestOfRequirement
)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A demand, how it is decided, and what follows.

    `alpha` is the chance of a wrong PASS (by default 1 - confidence), `beta` that of a wrong FAIL.
    `evidence` None means: a bound on a fixed number of runs, or sequential in a run that stops when
    its gates are settled. With `indifference`, an agent that far beyond the threshold is expected
    to PASS, and one between may get either verdict; without it, one that near stays UNDECIDED.
    `max_runs` are the runs planned; they end early where they would almost surely say the same.
    With `planned_runs`, those above it extend a plan that was looked at before. `at` are levels
    of factors to judge in place of the reference, as "user=terse"; "user=all" is each of them.
    """

    require: str
    demand: Requirement
    name: str | None = None
    system: str | None = None
    tags: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    scope: GateScope = "this suite"
    evidence: EvidenceKind | None = None
    indifference: float | None = None
    alpha: float = DEFAULT_ERROR
    beta: float = DEFAULT_ERROR
    max_runs: int | None = None
    planned_runs: int | None = None
    design: Design | None = None
    on_undecided: OnUndecided = "exit4"
    severity: Severity = "error"

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            _inside(name, getattr(self, name), 0, 0.5)
        if self.evidence == "sequential" and (reason := why_not_sequential(self)):
            raise ArgumentError("evidence", reason, "sequential")
        if isinstance(self.demand, BestOfRequirement) and self.evidence not in (None, "sequential"):
            rule = 'must be "sequential": agents are dropped as trials come in'
            raise ArgumentError("evidence", rule, self.evidence)

    @property
    def label(self) -> str:
        """What it is called: its name, or the demand itself."""
        return self.name or self.require


class GateTerms(TypedDict, total=False):
    """What may be said of several demands at once, besides how sure the verdicts must be."""

    name: str | None
    system: str | None
    tags: str | Sequence[str] | None
    at: str | Sequence[str] | Mapping[str, str] | None
    scope: GateScope | None
    evidence: EvidenceKind | None
    indifference: float | None
    alpha: float | None
    beta: float | None
    max_runs: int | None
    planned_runs: int | None
    design: Design | None
    on_undecided: OnUndecided | None
    severity: Severity | None


class JudgeTerms(GateTerms, CountingTerms, total=False):
    """And how trials are counted."""


def asked_streak(gates: Iterable[Gate]) -> tuple[int | None, float | None]:
    """The k of the longest streak that gates ask about, and the share demanded; None for none.

    >>> asked_streak([parse_gate("pass@1 >= 0.5"), parse_gate("pass^3 >= 0.8")])
    (3, 0.8)
    """
    demands = [gate.demand for gate in gates]
    streaks = [
        (demand.target.k or 1, demand.threshold)
        for demand in demands
        if isinstance(demand, ThresholdRequirement) and str(demand.target).startswith(_STREAKS)
    ]
    return max((streak for streak in streaks if streak[0] > 1), default=(None, None))


_STREAKS = ("pass^", "reliability@")


def parse_gate(text: str | Mapping[str, Any] | Gate) -> Gate:
    """A gate from a sentence, or from a mapping whose `require` is the sentence.

    >>> parse_gate("pass^3 >= 80%").demand
    ThresholdRequirement(target=Target(name='pass^3'), sign='>=', threshold=0.8)
    >>> parse_gate({"require": "every task: pass^3 >= its bar", "alpha": 0.01}).demand
    EveryTaskRequirement(k=3, bar=None)
    >>> parse_gate("pass^3 >= 0.8 at user=terse").at
    ('user=terse',)
    >>> parse_gate("pas^3 >= 0.8")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: no number is called pas^3; did you mean "pass^3"? ...
    """
    if isinstance(text, Gate):
        return text
    if isinstance(text, str):
        return _long_form({"require": text})
    rule = f"must be a sentence such as {_EXAMPLE}, or have one"
    instance("gate", text, Mapping, rule)
    instance("gate", text.get("require"), str, rule)
    return _long_form(dict(text))


def parse_demand(text: str) -> Requirement:
    """What a sentence demands.

    >>> parse_demand("no_worse_than main by 0.02")
    NoWorseRequirement(baseline='main', margin=0.02, metric='mean_score')
    """
    sentence = _tidy(text)
    for pattern, read in _SENTENCES:
        if match := re.fullmatch(pattern, sentence, flags=re.IGNORECASE):
            return read(match)
    raise ArgumentError("gate", f"must read like {_EXAMPLE} ({_what_is_wrong(sentence)})", text)


def unknown_term(owner: str, name: object, terms: Sequence[str]) -> ArgumentError:
    """The error for a name that is none of the terms of `owner`.

    >>> print(unknown_term("gate", "confidense", TERMS))
    gate has no such term (did you mean "confidence"?), got 'confidense'
    """
    near = closest(str(name), terms)
    hint = f'did you mean "{near}"?' if near else f"the terms are {', '.join(terms)}"
    return ArgumentError(owner, f"has no such term ({hint})", name)


def why_not_sequential(gate: Gate) -> str | None:
    """Why a gate cannot be decided run by run; None if it can."""
    if gate.scope != "this suite":
        return 'must be "bound" for similar tasks: more trials of these tasks are not more tasks'
    demand = gate.demand
    if isinstance(demand, NoTaskWorseRequirement):
        return 'must be "bound": a baseline is compared when all trials are there'
    if isinstance(demand, NoWorseRequirement):
        return (
            None
            if demand.metric == "mean_score"
            else f'must be "bound" for a difference of {demand.metric}'
        )
    if isinstance(demand, EveryTaskRequirement | BestOfRequirement):
        return None
    share = demand.threshold if demand.target.quantile is None else 0.5
    if not 0 < share < 1:
        return "needs a threshold strictly between 0 and 1: no number of trials shows certainty"
    return None if _countable(demand) else f'must be "bound" or "point": {demand.target} is no rate'


def _countable(demand: ThresholdRequirement) -> bool:
    """Whether every run says yes or no (or a score) to the demand."""
    target = demand.target
    if target.is_metric:
        return demand.upward
    if target.tool is not None:
        return True
    return target.form.read is not None and not demand.upward


def _number(match: re.Match[str]) -> Requirement:
    target = parse_target(match["target"])
    sign = cast(Sign, _SIGNS.get(match["sign"], match["sign"]))
    threshold = _value(match, share=target.is_share, what=target.name)
    return ThresholdRequirement(target=target, sign=sign, threshold=threshold)


def _every_task(match: re.Match[str]) -> Requirement:
    k = _streak(parse_target(match["target"]))
    if k is None:
        raise ArgumentError("gate", "can ask pass@1 or a pass^k of every task", match["target"])
    own = match["own"] is not None
    return EveryTaskRequirement(k=k, bar=None if own else _value(match, share=True, what="bar"))


def _streak(target: Target) -> int | None:
    """The k of a pass^k; pass@1 is pass^1. None for any other number."""
    kind, k = target.attempts or ("", 0)
    return k if kind == "pass^k" or k == 1 else None


def _better(match: re.Match[str]) -> Requirement:
    terms = _compared(match)
    return BetterRequirement(**(terms | {"margin": -terms["margin"]}))


def _equivalent(match: re.Match[str]) -> Requirement:
    terms = _compared(match)
    if terms["margin"] == 0:
        raise ArgumentError("gate", "needs a margin above 0, as in equivalent_to main by 0.02", 0)
    return EquivalentRequirement(**terms)


def _compared(match: re.Match[str]) -> dict[str, Any]:
    """Baseline, margin and metric of a sentence that compares with a baseline."""
    margin = _value(match, share=True, what="margin") if match["number"] else 0.0
    metric = parse_target(match["metric"] or "mean_score")
    k = _streak(metric)
    if not metric.is_mean_score and k is None:
        rule = "can compare mean_score, pass@1 or a pass^k with a baseline"
        raise ArgumentError("gate", rule, metric.name)
    name = metric.name if k is None else f"pass^{k}"
    return {"baseline": match["baseline"], "margin": margin, "metric": name}


def _best_of(match: re.Match[str]) -> Requirement:
    margin = _value(match, share=True, what="margin") if match["number"] else BEST_BY
    if not 0 < margin < 1:
        raise ArgumentError("gate", "needs a margin between 0 and 1, as in best_of by 0.1", margin)
    return BestOfRequirement(margin=margin)


_IN_METRIC = r"(?:\s+in\s+(?P<metric>\S+))?"
_WITH_NUMBER = _NUMBER.replace("(-?", "(?P<number>-?", 1).replace("(%?)", "(?P<percent>%?)")
_AGAINST = rf"\s+(?P<baseline>\S+?)(?:\s+by\s+{_WITH_NUMBER})?{_IN_METRIC}"
_SENTENCES = (
    (
        rf"every task\s*:\s*(?P<target>.+?)\s*(?:>=|≥|=>)\s*(?:(?P<own>its bar)|{_WITH_NUMBER})",
        _every_task,
    ),
    (rf"no[_ ]worse[_ ]than{_AGAINST}", lambda match: NoWorseRequirement(**_compared(match))),
    (rf"better[_ ]than{_AGAINST}", _better),
    (rf"equivalent[_ ]to{_AGAINST}", _equivalent),
    (rf"best[_ ]of(?:\s+by\s+{_WITH_NUMBER})?", _best_of),
    (
        r"no[_ ]task[_ ]worse[_ ]than\s+(?P<baseline>\S+)",
        lambda match: NoTaskWorseRequirement(baseline=match["baseline"]),
    ),
    (rf"(?P<target>.+)\s*(?P<sign>(?<![<>=])(?:>=|<=|=>|=<|≥|≤|>|<))\s*{_WITH_NUMBER}", _number),
)


def _value(match: re.Match[str], *, share: bool, what: str) -> float:
    value = float(match["number"]) / (100 if match["percent"] else 1)
    if share and not 0 <= value <= 1:
        rule = f"must compare {what} with a share in [0, 1]"
        came = int(value) if value.is_integer() else value
        sign = match.groupdict().get("sign")
        if sign is None:
            raise ArgumentError("gate", rule, came)
        holds = "can never hold" if (">" in sign or sign == "≥") == (value > 1) else "always holds"
        way = f"write {value / 100:g} or {came}%" if 1 < value <= 100 else f"{what} is from 0 to 1"
        raise ArgumentError("gate", rule, came, sentence=f"{what} {sign} {came} {holds}: {way}")
    return value


def _what_is_wrong(sentence: str) -> str:
    if not re.search(r"[<>≥≤]", sentence):
        return "there is no >= or <= in it"
    if "==" in sentence or "!=" in sentence:
        return "a rate that is only known within an interval is never equal to anything"
    return "what follows the sign is not a number"


def _tidy(text: str) -> str:
    return " ".join(text.split())


TERMS = tuple(field.name for field in fields(Gate) if field.name != "demand")
_CHOICES: dict[str, tuple[str, ...]] = {
    "scope": get_args(GateScope),
    "evidence": get_args(EvidenceKind),
    "design": get_args(Design),
    "on_undecided": get_args(OnUndecided),
    "severity": get_args(Severity),
}


def _long_form(terms: dict[str, Any]) -> Gate:
    given = {name: value for name, value in terms.items() if value is not None}
    for name, value in given.items():
        if name not in TERMS:
            raise unknown_term("gate", name, TERMS)
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ArgumentError(
                name, f"must be one of {', '.join(map(repr, _CHOICES[name]))}", value
            )
        if name == "confidence":
            _inside(name, value, 0.5, 1)
        if name == "indifference":
            _inside(name, value, 0, 1)
        if name in ("max_runs", "planned_runs"):
            whole_number(name, value)
    require = _tidy(given.pop("require"))
    require, levels = _named_levels(require, given.pop("at", ()))
    system, sentence = _named_system(require)
    if system is not None:
        given.setdefault("system", system)
    confidence = given.setdefault("confidence", CONFIDENCE)
    # rounded: 1 - 0.95 should read 0.05
    given.setdefault("alpha", round(1 - confidence, 12))
    given.setdefault("beta", round(1 - confidence, 12))
    if "tags" in given:
        given["tags"] = _texts(given["tags"])
    if levels:
        require = f"{require} at {', '.join(levels)}"
    return Gate(require=require, demand=parse_demand(sentence), at=levels, **given)


# Brackets and signs before the levels belong to the demand: `tasks[a at b=c].pass^3 >= 0.8`.
_AT_LEVELS = re.compile(r"(.*\S) at ([^\s=<>≥≤\]]+ ?=[^<>≥≤\]]+)", re.IGNORECASE)


def _named_levels(require: str, given: Any) -> tuple[str, tuple[str, ...]]:
    """The demand without `at user=terse`, and the levels that it or a term of the gate names."""
    match = _AT_LEVELS.fullmatch(require)
    demand, named = (require, given) if match is None else (match[1], match[2])
    levels = [parse_levels("at", text) for text in (named, given) if text]
    if len(levels) == 2 and levels[0] != levels[1]:
        raise ArgumentError("at", f"must agree with the demand, which says {named}", given)
    return demand, tuple("=".join(pair) for pair in levels[0].items()) if levels else ()


def _named_system(require: str) -> tuple[str | None, str]:
    """`gpt-5: pass^3 >= 0.8` demands it of one system, as `report --targets` lists its numbers."""
    system, colon, sentence = require.rpartition(": ")
    if not colon or system.lower() == "every task":
        return None, require
    try:
        parse_target(require.rpartition(" ")[0].rstrip("<>=≥≤ "))
    except ArgumentError:
        return system, sentence
    return None, require  # the colon belongs to the name of a task or a tag


def _inside(name: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not low < value < high:
        raise ArgumentError(name, f"must lie strictly between {low:g} and {high:g}", value)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ArgumentError("tags", "must be words", value)


# What a gate says: PASS, FAIL or UNDECIDED, with the evidence.

Status = Literal["PASS", "FAIL", "UNDECIDED"]

PASSED, FAILED, OPEN = 0, 1, 4
"""The exit codes of verdicts."""

_STATUS_OF_CODE: dict[int, Status] = {PASSED: "PASS", FAILED: "FAIL", OPEN: "UNDECIDED"}
_UNDECIDED_CODES = {"fail": FAILED, "pass": PASSED, "exit4": OPEN}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvidence:
    """What one task adds to a verdict on a fixed number of runs.

    `sequence` writes its runs in order as P, F and E, where they were read one by one; `before` are
    the passes and the runs of a baseline, than which it may be shown to be `worse`.
    """

    task: str
    runs: int
    passed: int
    errored: int
    value: float | None
    note: str = ""
    sequence: str = ""
    before: tuple[int, int] | None = None
    worse: bool = False

    @property
    def change(self) -> str:
        """The task with its passes before and now."""
        assert self.before is not None, "it has a baseline"
        was, of = self.before
        return f"{self.task} (was {was}/{of}, now {self.passed}/{self.runs})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionLine:
    """One line of the decision log: a draw, what came of it, and the evidence after it.

    `outcome` writes the runs of the draw as P, F and E, or their score. `log_pass` and `log_fail`
    are natural logarithms of the evidence; a verdict falls when one reaches its boundary.
    """

    number: int
    task: str
    outcome: str
    log_pass: float
    log_fail: float
    pass_boundary: float
    fail_boundary: float


NoteKind = Literal["missing tasks", "on screen", "log is empty"]
"""That tasks of a baseline were not run, what every screen tells, that no more could be drawn."""


@dataclass(frozen=True, slots=True)
class VerdictNote:
    """What to know of a verdict; `ending` is how its sentence ends where that tells it too."""

    text: str
    kind: NoteKind | None = None
    ending: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one gate says of one system, and everything needed to check it.

    Its sentence is made of `after`, what it took where a run was watched, of `clauses`, the first
    of which says what was found, and of what its `remarks` say.
    `alpha` and `beta` are the chances of a wrong PASS and a wrong FAIL; None if there is no
    such promise. `runs` is what was spent, `fixed_runs` what a fixed design with the same error
    rates costs. `more_runs` is how many further runs would settle an UNDECIDED at the observed
    rate, None if it is settled or no number would do. `errors` says how errored runs counted
    (`error_rule` names the rule where the number of trials was fixed),
    `boundaries` when a gate that was planned would have ended, in words. `seen` is what may be said
    of a run that its gates ended, counts or a bound and no rate; `all_looks` the errors of a bound
    on trials that extend a plan; `unmade` counts trials that were planned and not made.
    """

    gate: Gate
    system: str
    status: Status
    clauses: tuple[str, ...]
    after: str = ""
    estimate: Estimate | Unavailable
    evidence: EvidenceKind
    method: str
    alpha: float | None
    beta: float | None
    runs: int
    fixed_runs: int | None = None
    max_runs: int | None = None
    more_runs: int | None = None
    seed: int | None = None
    errors: str = ""
    error_rule: ErrorPolicy | None = None
    remarks: tuple[VerdictNote, ...] = ()
    tasks: tuple[TaskEvidence, ...] = ()
    steps: tuple[DecisionLine, ...] = ()
    boundaries: tuple[str, ...] = ()
    seen: str = ""
    all_looks: str = ""
    unmade: int = 0
    word = formerly("status")

    def __repr__(self) -> str:
        text = f"{self.demand}, it is {rounded(self.estimate)} in {plural(self.runs, 'trial')}"
        return short_repr(
            f"Verdict {self.status} on {quoted(self.system)}", text, see=".sentence, .tasks"
        )

    def __bool__(self) -> bool:
        """Whether it passed, as the exit code has it: undecided is not, unless the gate says so."""
        return self.exit_code == PASSED

    @property
    def demand(self) -> str:
        """What the gate demands, such as "pass^3 >= 0.8"."""
        return self.gate.require

    @property
    def own_demand(self) -> str:
        """The demand without the system, which it may name."""
        return self.gate.require.removeprefix(f"{self.system}: ")

    @property
    def demanded(self) -> str:
        """The demand, and what the gate is called if it has a name."""
        return (
            self.own_demand if self.gate.name is None else f"{self.gate.name} ({self.own_demand})"
        )

    @property
    def sentence(self) -> str:
        """The verdict in words: `agent: pass^3 >= 0.8: PASS. pass^3 is ...`."""
        return f"{self.system}: {self.demanded}: {self.status}{self._from('. ')}"

    def beside_status(self, *, named: bool = True, start: str = ". ") -> str:
        """The sentence where its status is printed before it; `named` says whose demand it is."""
        agent = f"{self.system}: " if named else ""
        return f"{agent}{self.demanded}{',' * bool(self.after)}{self._from(start)}"

    def _from(self, start: str) -> str:
        """What follows the demand: the clauses, then what remarks and looks add."""
        start = f" after {self.after}: " if self.after else start
        empty = "".join(f" ({note.text})" for note in self.remarks if note.kind == "log is empty")
        whole = f"{start}{'; '.join(self.clauses)}{empty}."
        endings = (note.ending for note in self.remarks)
        return " ".join(filter(None, (whole, *endings, self.all_looks)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know beside it."""
        return tuple(note.text for note in self.remarks)

    @property
    def was_watched(self) -> bool:
        """Whether its gate watched the run, and could end it."""
        return self.evidence == "sequential"

    @property
    def has_ended(self) -> bool:
        """Whether its gate decided when the run stopped: a rate would be of a lucky moment."""
        return self.was_watched and self.status != "UNDECIDED"

    @property
    def only_limits(self) -> bool:
        """Whether the number lies within limits, and nothing estimates where."""
        return isinstance(self.estimate, Estimate) and self.estimate.by_labels == "limits"

    @property
    def rests_on_labels(self) -> bool:
        """Whether labels of people corrected the number."""
        return isinstance(self.estimate, Estimate) and self.estimate.by_labels is not None

    @property
    def runs_saved(self) -> int | None:
        """Against the fixed design with the same error rates."""
        return None if self.fixed_runs is None else self.fixed_runs - self.runs

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 4 undecided; a warning never fails."""
        if self.gate.severity == "warning" or self.status == "PASS":
            return PASSED
        return FAILED if self.status == "FAIL" else _UNDECIDED_CODES[self.gate.on_undecided]


@dataclass(frozen=True, slots=True)
class Verdicts(Displayed, Sequence[Verdict]):
    """All the verdicts of a run, and what they come to; true where they passed."""

    each: tuple[Verdict, ...]
    word = formerly("status")

    def __repr__(self) -> str:
        return short_repr(
            f"Verdicts {self.status}", *self._counts(), see=".sentence, [0], .exit_code"
        )

    def __len__(self) -> int:
        return len(self.each)

    def __bool__(self) -> bool:
        """Whether they passed, as the exit code has it: `assert judge(...)` reads well."""
        return self.exit_code == PASSED

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Verdict, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.each[index]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.each)

    @property
    def exit_code(self) -> int:
        """1 if any gate failed, else 4 if any is undecided (or none judged), else 0."""
        codes = {verdict.exit_code for verdict in self.each} or {OPEN}
        return FAILED if FAILED in codes else OPEN if OPEN in codes else PASSED

    @property
    def status(self) -> Status:
        """The overall verdict: what the exit code says."""
        return _STATUS_OF_CODE[self.exit_code]

    @property
    def sentence(self) -> str:
        """The overall verdict in words."""
        total = len(self.each)
        if total == 1:
            return self.each[0].sentence
        return f"{self.status}: {total:,} gates, {', '.join(self._counts())}."

    def _counts(self) -> list[str]:
        each = [verdict.status for verdict in self.each]
        return [f"{each.count(word):,} {word}" for word in _STATUS_OF_CODE.values() if word in each]


NO_ERRORS = "no trial errored"
"""What verdicts say of errors if there were none."""

# The sentence of a verdict, and numbers that never round across their threshold.

_MOST_DIGITS = 4
SMALLEST_SHARE = 1e-5
"""Below this a share is said to be less than it: no reader counts the zeros."""


AS_JUDGED = "as its judge graded; the judge's errors are not in the error rates: `passhat label`"
"""The note on a verdict that rests on a judge which no labels correct."""


def shown(value: float, threshold: float | None = None, *, share: bool) -> str:
    """A number in words, on the same side of the threshold as it is.

    >>> shown(0.7996, 0.8, share=True), shown(0.91, 0.8, share=True), shown(12.345, share=False)
    ('79.96%', '91%', '12.3')
    >>> shown(8.8e-71, 0.5, share=True), shown(0.0004, share=True)
    ('<0.001%', '0.04%')
    """
    smallest = SMALLEST_SHARE if threshold is None else min(SMALLEST_SHARE, threshold or 1.0)
    if share and 0 < value < smallest:
        return f"<{100 * smallest:g}%"
    if share:
        return f"{_same_side(100 * value, None if threshold is None else 100 * threshold)}%"
    return _same_side(value, threshold)


def percentage(share: float) -> str:
    """A confidence or an error rate: 95%, 2.5%."""
    return f"{100 * share:.4g}%"


def tasks_meet(count: int, total: int, *, met: bool) -> str:
    """How many tasks clear or miss a gate on each: "2 of 20 tasks miss it"."""
    which = f"all {total:,}" if 1 < total == count else f"{count:,} of {total:,}"
    verb = ("clears" if met else "misses") if count == 1 else "clear" if met else "miss"
    return f"{which} {'task' if total == 1 else 'tasks'} {verb} it"


def bound_words(
    gate: Gate, status: str, estimate: Estimate, *, more_runs: int | None = None, rate: bool = True
) -> str:
    """The number and its bound, and what would decide it; without `rate` the bound alone."""
    demand = gate.demand
    assert isinstance(demand, ThresholdRequirement)
    target, threshold = demand.target, demand.threshold
    name = metric_label(str(target))
    trials = f" in {plural(estimate.runs, 'trial')}" if estimate.runs else ""
    limited, bounds = estimate.by_labels == "limits", estimate.interval
    assert bounds is not None, "a bound has an interval"
    value, low, high = (
        shown(number, threshold, share=target.is_share)
        for number in (estimate.value, bounds.low, bounds.high)
    )
    if status == "UNDECIDED":
        may = "may lie" if limited else f"is {value}{trials} and may lie"
        advice = _further(estimate, threshold, more_runs)
        return f"{name}{trials * limited} {may} between {low} and {high}: {advice}"
    at_least = (status == "PASS") == demand.upward
    error = gate.alpha if status == "PASS" else gate.beta
    side = f"at least {low}" if at_least else f"at most {high}"
    seen = f"is {value}{trials}, " if rate and not limited else f"{trials * rate} is ".lstrip()
    return f"{name} {seen}{side} at {percentage(1 - error)} confidence"


def settled(verdict: Verdict, *, draws: int | None = None) -> Verdict:
    """The verdict of a gate that watched a run, in words: settled, at its limit, or still open.

    `draws` is given where a draw takes several runs: then draws are what is limited, and a draw
    that ends at its first failure leaves runs of the limit unused.
    """
    runs, most, seen, after = verdict.runs, verdict.max_runs or 0, verdict.seen, ""
    if verdict.status != "UNDECIDED":
        fixed = verdict.fixed_runs
        after = plural(runs, "trial") + (f" (a fixed design takes {fixed:,})" if fixed else "")
        clauses: tuple[str, ...] = (seen, chance_of_error(verdict))
    elif verdict.more_runs is not None:
        left = f"up to {plural(max(most - runs, 0), 'more trial')} may decide it"
        clauses = (f"{plural(runs, 'trial')} so far", seen, left)
    elif draws is None and runs < most:
        reached = "neither verdict can be reached any more"
        clauses = (f"After {runs:,} of {plural(most, 'trial')} {reached}", seen)
    else:
        clauses = (f"{_limit(runs, most, draws)} did not decide it", seen)
    return replace(verdict, after=after, clauses=clauses)


def chance_of_error(verdict: Verdict) -> str:
    """How often a PASS, or a FAIL, is wrong."""
    error = verdict.alpha if verdict.status == "PASS" else verdict.beta
    assert error is not None, "a gate that watched a run has error rates"
    return f"a {verdict.status} is wrong with a chance of at most {percentage(error)}"


_MOST_STEPS = 8
"""Steps of a list that are named: the first ones and the last."""


_IN_ROUNDS = ", or at the end of a round "
"""Between the first step of a list, which may end a round halfway, and the others."""


def passing_list(steps: Sequence[tuple[int, int]], *, in_rounds: bool = False) -> str:
    """How many failures a PASS may have after how many trials: (most failures, first trial)."""
    (fewest, first), *later = _named_steps(steps)
    allowed = f"at most {plural(fewest, 'failure')}" if fewest else "no failure"
    words = [f"at most {most:,} after {run:,}" for most, run in later]
    return _listed_steps(f"{allowed} after {plural(first, 'trial')}", words, in_rounds)


def failing_list(steps: Sequence[tuple[int, int]], *, in_rounds: bool = False) -> str:
    """How many failures are a FAIL, and by which trial: (failures, last trial)."""
    (fewest, first), *later = _named_steps(steps)
    words = [f"{count:,} by {run:,}" for count, run in later]
    return _listed_steps(f"{plural(fewest, 'failure')} by trial {first:,}", words, in_rounds)


def _listed_steps(first: str, later: Sequence[str], in_rounds: bool) -> str:
    rest = ", ".join(later)
    return (_IN_ROUNDS if in_rounds else ", ").join(filter(None, (first, rest)))


def _named_steps(steps: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    return steps if len(steps) <= _MOST_STEPS else (*steps[: _MOST_STEPS - 1], steps[-1])


def _limit(runs: int, most: int, draws: int | None) -> str:
    if draws is None and runs >= most:
        return f"{plural(runs, 'trial')}, the most allowed,"
    used = f"{plural(runs, 'trial')} of at most {most:,}"
    return (
        used if draws is None else f"{plural(draws, 'set')} of trials, the most allowed ({used}),"
    )


def _further(estimate: Estimate, threshold: float, more_runs: int | None) -> str:
    if more_runs is None and estimate.scope == TASKS_LIKE_THESE:
        return "more tasks would decide it, not more trials of these"
    if more_runs is None and estimate.by_labels:
        return "more labels would decide it, not more trials"
    if more_runs is None and estimate.value == threshold:
        return "at the threshold itself no number of trials decides it"
    if more_runs is None:
        return "how many more trials would decide it cannot be said"
    return f"about {plural(more_runs, 'more trial')} would decide it 4 times in 5 at this rate"


def _same_side(value: float, threshold: float | None) -> str:
    digits = 1 if abs(value) < 1000 else 0
    while digits < _MOST_DIGITS and threshold is not None and value != threshold:
        rounded = round(halves_away(value), digits)
        if (rounded < threshold) == (value < threshold) and rounded != threshold:
            break
        digits += 1
    text = f"{halves_away(value):,.{digits}f}"
    if float(text.replace(",", "")) == 0 != value:
        return f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text else text
