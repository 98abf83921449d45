"""What is demanded of an agent: a sentence such as `pass^3 >= 0.8`, or the same with its terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, cast, get_args

from passhat.analysis.reports.targets import Target, parse_target
from passhat.arguments import CONFIDENCE, instance
from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.messages import closest

Sign = Literal[">=", ">", "<=", "<"]
EvidenceKind = Literal["bound", "point", "sequential"]
OnUndecided = Literal["fail", "pass", "exit4"]
Severity = Literal["error", "warning"]
GateScope = Literal["this suite", "tasks like these"]
Design = Literal["sprt", "truncated"]

DEFAULT_ERROR = 0.05

BEST_BY = 0.1
"""How far below the best a system may be and still be called best, by default."""

_NUMBER = r"\$?\s*(-?(?:\d+\.?\d*|\.\d+)(?:[eE]-?\d+)?)\s*(%?)"
_SIGNS = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}
_EXAMPLE = '"pass^3 >= 0.8"'


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberDemand:
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
class EveryTaskDemand:
    """The pass^k of every single task reaches a bar: `bar`, or the task's own if it is None."""

    k: int
    bar: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWorseDemand:
    """A metric is no worse than a baseline's by more than `margin`, on the same tasks."""

    baseline: str
    margin: float
    metric: str = "mean_score"


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterDemand(NoWorseDemand):
    """A metric is better than a baseline's, by more than -`margin` if that is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivalentDemand(NoWorseDemand):
    """A metric differs from a baseline's by less than `margin`, either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTaskWorseDemand:
    """No single task got worse than in a baseline."""

    baseline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfDemand:
    """One of several systems is known to be the best, or within `margin` of the best.

    If the gate names a system, it must be that one.
    """

    margin: float = BEST_BY


Demand = NumberDemand | EveryTaskDemand | NoWorseDemand | NoTaskWorseDemand | BestOfDemand


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A demand, how it is decided, and what follows.

    `alpha` is the chance of a wrong PASS (by default 1 - confidence), `beta` that of a wrong FAIL.
    `evidence` None means: a bound on a fixed number of runs, or sequential in a run that stops when
    its gates are settled. With `indifference`, an agent that far beyond the threshold is expected
    to PASS, and one between may get either verdict; without it, one that near stays UNDECIDED.
    """

    require: str
    demand: Demand
    name: str | None = None
    system: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    scope: GateScope = "this suite"
    evidence: EvidenceKind | None = None
    indifference: float | None = None
    alpha: float = DEFAULT_ERROR
    beta: float = DEFAULT_ERROR
    max_runs: int | None = None
    design: Design = "sprt"
    on_undecided: OnUndecided = "exit4"
    severity: Severity = "error"

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            _inside(name, getattr(self, name), 0, 0.5)
        if self.evidence == "sequential" and (reason := why_not_sequential(self)):
            raise ArgumentError("evidence", reason, "sequential")
        if isinstance(self.demand, BestOfDemand) and self.evidence not in (None, "sequential"):
            rule = 'must be "sequential": systems are dropped as runs come in'
            raise ArgumentError("evidence", rule, self.evidence)

    @property
    def label(self) -> str:
        """What it is called: its name, or the demand itself."""
        return self.name or self.require


def parse_gate(text: str | Mapping[str, Any] | Gate) -> Gate:
    """A gate from a sentence, or from a mapping whose `require` is the sentence.

    >>> parse_gate("pass^3 >= 80%").demand
    NumberDemand(target=Target(name='pass^3'), sign='>=', threshold=0.8)
    >>> parse_gate({"require": "every task: pass^3 >= its bar", "alpha": 0.01}).demand
    EveryTaskDemand(k=3, bar=None)
    >>> parse_gate("pas^3 >= 0.8")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: gate must name a number of the report; did you mean "pass^3"? ...
    """
    if isinstance(text, Gate):
        return text
    if isinstance(text, str):
        return _long_form({"require": text})
    rule = f"must be a sentence such as {_EXAMPLE}, or have one"
    instance("gate", text, Mapping, rule)
    instance("gate", text.get("require"), str, rule)
    return _long_form(dict(text))


def parse_demand(text: str) -> Demand:
    """What a sentence demands.

    >>> parse_demand("no_worse_than main by 0.02")
    NoWorseDemand(baseline='main', margin=0.02, metric='mean_score')
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
        return 'must be "bound" for tasks like these: more runs of these tasks are not more tasks'
    demand = gate.demand
    if isinstance(demand, NoTaskWorseDemand):
        return 'must be "bound": a baseline is compared when all runs are there'
    if isinstance(demand, NoWorseDemand):
        return (
            None
            if demand.metric == "mean_score"
            else f'must be "bound" for a difference of {demand.metric}'
        )
    if isinstance(demand, EveryTaskDemand | BestOfDemand):
        return None
    share = demand.threshold if demand.target.quantile is None else 0.5
    if not 0 < share < 1:
        return "needs a threshold strictly between 0 and 1: no number of runs shows certainty"
    return None if _countable(demand) else f'must be "bound" or "point": {demand.target} is no rate'


def _countable(demand: NumberDemand) -> bool:
    """Whether every run says yes or no (or a score) to the demand."""
    target = demand.target
    if target.is_metric:
        return demand.upward
    if target.tool is not None:
        return True
    return target.family.read is not None and not demand.upward


def _number(match: re.Match[str]) -> Demand:
    target = parse_target(match["target"])
    sign = cast(Sign, _SIGNS.get(match["sign"], match["sign"]))
    threshold = _value(match, share=target.is_share, what=target.name)
    return NumberDemand(target=target, sign=sign, threshold=threshold)


def _every_task(match: re.Match[str]) -> Demand:
    known = parse_target(match["target"]).attempts
    if known is None or known[0] != "pass^k":
        raise ArgumentError("gate", "can ask a pass^k of every task", match["target"])
    own = match["own"] is not None
    return EveryTaskDemand(k=known[1], bar=None if own else _value(match, share=True, what="bar"))


def _better(match: re.Match[str]) -> Demand:
    terms = _compared(match)
    return BetterDemand(**(terms | {"margin": -terms["margin"]}))


def _equivalent(match: re.Match[str]) -> Demand:
    terms = _compared(match)
    if terms["margin"] == 0:
        raise ArgumentError("gate", "needs a margin above 0, as in equivalent_to main by 0.02", 0)
    return EquivalentDemand(**terms)


def _compared(match: re.Match[str]) -> dict[str, Any]:
    """Baseline, margin and metric of a sentence that compares with a baseline."""
    margin = _value(match, share=True, what="margin") if match["number"] else 0.0
    metric = parse_target(match["metric"] or "mean_score")
    if not metric.is_mean_score and (metric.attempts or ("", 0))[0] != "pass^k":
        rule = "can compare mean_score or a pass^k with a baseline"
        raise ArgumentError("gate", rule, metric.name)
    return {"baseline": match["baseline"], "margin": margin, "metric": metric.name}


def _best_of(match: re.Match[str]) -> Demand:
    margin = _value(match, share=True, what="margin") if match["number"] else BEST_BY
    if not 0 < margin < 1:
        raise ArgumentError("gate", "needs a margin between 0 and 1, as in best_of by 0.1", margin)
    return BestOfDemand(margin=margin)


_IN_METRIC = r"(?:\s+in\s+(?P<metric>\S+))?"
_WITH_NUMBER = _NUMBER.replace("(-?", "(?P<number>-?", 1).replace("(%?)", "(?P<percent>%?)")
_AGAINST = rf"\s+(?P<baseline>\S+?)(?:\s+by\s+{_WITH_NUMBER})?{_IN_METRIC}"
_SENTENCES = (
    (
        rf"every task\s*:\s*(?P<target>.+?)\s*(?:>=|≥|=>)\s*(?:(?P<own>its bar)|{_WITH_NUMBER})",
        _every_task,
    ),
    (rf"no[_ ]worse[_ ]than{_AGAINST}", lambda match: NoWorseDemand(**_compared(match))),
    (rf"better[_ ]than{_AGAINST}", _better),
    (rf"equivalent[_ ]to{_AGAINST}", _equivalent),
    (rf"best[_ ]of(?:\s+by\s+{_WITH_NUMBER})?", _best_of),
    (
        r"no[_ ]task[_ ]worse[_ ]than\s+(?P<baseline>\S+)",
        lambda match: NoTaskWorseDemand(baseline=match["baseline"]),
    ),
    (rf"(?P<target>.+)\s*(?P<sign>(?<![<>=])(?:>=|<=|=>|=<|≥|≤|>|<))\s*{_WITH_NUMBER}", _number),
)


def _value(match: re.Match[str], *, share: bool, what: str) -> float:
    value = float(match["number"]) / (100 if match["percent"] else 1)
    if share and not 0 <= value <= 1:
        hint = f" (did you mean {match['number']}%?)" if 1 < value <= 100 else ""
        came = int(value) if value.is_integer() else value
        raise ArgumentError("gate", f"must compare {what} with a share in [0, 1]{hint}", came)
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
_WORDS: dict[str, tuple[str, ...]] = {
    "scope": get_args(GateScope),
    "evidence": get_args(EvidenceKind),
    "design": get_args(Design),
    "on_undecided": get_args(OnUndecided),
    "severity": get_args(Severity),
}


def _long_form(terms: dict[str, Any]) -> Gate:
    given = {name: value for name, value in terms.items() if value is not None}
    for name, value in given.items():
        _check_term(name, value)
    require = _tidy(given.pop("require"))
    system, sentence = _named_system(require)
    if system is not None:
        given.setdefault("system", system)
    confidence = given.setdefault("confidence", CONFIDENCE)
    # rounded: 1 - 0.95 should read 0.05
    given.setdefault("alpha", round(1 - confidence, 12))
    given.setdefault("beta", round(1 - confidence, 12))
    if "tags" in given:
        given["tags"] = _texts(given["tags"])
    return Gate(require=require, demand=parse_demand(sentence), **given)


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


def _check_term(name: str, value: Any) -> None:
    if name not in TERMS:
        raise unknown_term("gate", name, TERMS)
    if name in _WORDS and value not in _WORDS[name]:
        raise ArgumentError(name, f"must be one of {', '.join(map(repr, _WORDS[name]))}", value)
    if name == "confidence":
        _inside(name, value, 0.5, 1)
    if name == "indifference":
        _inside(name, value, 0, 1)
    if name == "max_runs" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ArgumentError(name, "must be a whole number >= 1", value)


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
