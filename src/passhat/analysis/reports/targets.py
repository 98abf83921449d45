"""A number by its name: parsed from text, found in a report, read from a single run."""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.target_families import FAMILIES, Places, TargetFamily, Value
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import closest
from passhat.records import Trial
from passhat.records.trial import FEATURES
from passhat.stats.estimate import Scope, Unavailable

# What each placeholder of a form may be, and an example of it.
_PLACES = {
    "k": (r"[1-9]\d*", "3"),
    "percent": (r"[1-9]\d?", "95"),
    "feature": ("|".join(FEATURES), "seconds"),
    "task": (".+", "refund"),
    "level": (".+", "hard"),
    "tag": (".+", "booking"),
    "tool": (".+?", "get_weather"),
}
# Other names for a target of another family.
_SYNONYMS = (("reliability@{k}", "pass^{k}"), ("pass rate", "pass^1"))


@dataclass(frozen=True, slots=True)
class Target:
    """A number that can be named: `pass^3`, `icc`, `tags[hard].pass^3`.

    >>> target = parse_target("reliability@3")
    >>> str(target), target.k, target.is_share
    ('pass^3', 3, True)
    """

    name: str
    family: TargetFamily = field(repr=False, compare=False)
    places: Places = field(repr=False, compare=False, default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def is_share(self) -> bool:
        """Whether the number lies between 0 and 1."""
        return self.family.is_share

    @property
    def k(self) -> int | None:
        """How many attempts it is about."""
        return int(self.places["k"]) if "k" in self.places else None

    @property
    def is_metric(self) -> bool:
        """Whether it is a metric of the whole suite: mean_score, pass^k or pass@k."""
        return self.is_mean_score or self.attempts is not None

    @property
    def is_mean_score(self) -> bool:
        return self.name == "mean_score"

    @property
    def attempts(self) -> tuple[str, int] | None:
        """The metric and its k, of the suite's pass^k and pass@k; None of any other number.

        >>> parse_target("pass^3").attempts, parse_target("icc").attempts
        (('pass^k', 3), None)
        """
        if self.family.form not in ("pass^{k}", "pass@{k}"):
            return None
        return self.family.form.format(k="k"), int(self.places["k"])

    @property
    def quantile(self) -> tuple[str, float] | None:
        """The feature and the share, of a quantile such as seconds.p95; None of others."""
        if self.family.form not in ("{feature}.p{percent}", "{feature}.median"):
            return None
        return self.places["feature"], int(self.places.get("percent", "50")) / 100

    @property
    def tool(self) -> str | None:
        """The tool of a selection rate."""
        return self.places.get("tool")

    def value_in(self, system: SystemReport, scope: Scope) -> Value:
        """The number in the report of a system."""
        found = dict(self.family.find(system, scope))
        return found.get(self.name, Unavailable(f"these trials have no {self.name}"))

    def read(self, trial: Trial) -> float | None:
        """The value of one run, or None if the run errored."""
        assert self.family.read is not None, "the caller knows that runs are counted"
        return self.family.read(self.places, trial)


def targets(
    report: Report | SystemReport, *, scope: Scope = "this suite", tasks: bool = True
) -> dict[str, Value]:
    """The numbers of a system by name, in one scope; with `tasks`, those of each task too.

    If a report holds several systems, each name begins with that of its system.

    >>> from passhat.analysis.planning.simulate import simulate
    >>> from passhat.analysis.reports.measure import measure
    >>> found = targets(measure(simulate(tasks=5, runs=4, seed=1)))
    >>> round(found["pass^4"].value, 2), found["decay[1]"]
    (0.8, 80.0)
    """
    if not isinstance(report, Report | SystemReport):
        raise ArgumentError("report", "must be a report; passhat.measure(trials) makes one", report)
    systems = [report] if isinstance(report, SystemReport) else report.systems
    return {
        f"{system.name}: {name}" if len(systems) > 1 else name: value
        for system in systems
        for family in FAMILIES
        if tasks or not family.form.startswith("tasks[")
        for name, value in family.find(system, scope)
    }


def parse_target(text: str) -> Target:
    """The target that people mean by a name.

    >>> [str(parse_target(text)) for text in ("cost per success", "p95(seconds)", "pass rate")]
    ['cost.per_success', 'seconds.p95', 'pass^1']
    """
    wanted = " ".join(text.split())
    for pattern, form in _synonyms():
        if match := pattern.fullmatch(wanted):
            wanted = form.format(**match.groupdict())
    for pattern, family in _patterns():
        if match := pattern.fullmatch(wanted):
            places = match.groupdict()
            return Target(family.form.format(**places), family, places)
    raise ArgumentError("gate", f"must name a number of the report; {_hint(wanted)}", wanted)


@cache
def _synonyms() -> list[tuple[re.Pattern[str], str]]:
    return [(_pattern(words, in_words=True), form) for words, form in _SYNONYMS]


@cache
def _patterns() -> list[tuple[re.Pattern[str], TargetFamily]]:
    """How each family may be written: in words, in any case, or exactly as its form."""
    words = [(_pattern(text, in_words=True), family) for family in FAMILIES for text in family.also]
    return [*words, *((_pattern(family.form), family) for family in FAMILIES)]


def _pattern(form: str, *, in_words: bool = False) -> re.Pattern[str]:
    """A form as a regular expression; in words, a space may be an underscore."""
    pieces = re.split(r"\{(\w+)\}", form)
    pieces[1::2] = [f"(?P<{place}>{_PLACES[place][0]})" for place in pieces[1::2]]
    pieces[::2] = map(re.escape, pieces[::2])
    text = "".join(pieces)
    if not in_words:
        return re.compile(text)
    spaced = text.replace(r"\ ", "[ _]").replace(r"\(", r"\(\s*").replace(r"\)", r"\s*\)")
    return re.compile(spaced, re.IGNORECASE)


def _hint(wanted: str) -> str:
    listing = "`passhat.targets(report)` lists them"
    near = closest(wanted.lower(), _examples(wanted), cutoff=0.5)
    return f'did you mean "{near}"? ({listing})' if near else listing


def _examples(wanted: str) -> list[str]:
    """Numbers that may be meant, with the k that was written."""
    usual = {place: example for place, (_, example) in _PLACES.items()}
    names = [family.form.format(**usual) for family in FAMILIES]
    names += [f"{feature}.mean" for feature in FEATURES] + ["cost per success", "pass_rate"]
    if (k := re.search(r"[1-9]\d*", wanted)) is None:
        return names
    return [re.sub(r"([\^@\[])\d+", rf"\g<1>{k[0]}", name) for name in names]
