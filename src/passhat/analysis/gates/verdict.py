"""What a gate says: PASS, FAIL or UNDECIDED, with the evidence and one plain sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from passhat.analysis.gates.demands import EvidenceKind, Gate
from passhat.dataclass import Displayed, dataclass
from passhat.messages import plural, quoted, rounded, short_repr
from passhat.stats.estimate import Estimate, Unavailable

Word = Literal["PASS", "FAIL", "UNDECIDED"]

PASSED, FAILED, OPEN = 0, 1, 4
"""The exit codes of verdicts."""

_WORDS: dict[int, Word] = {PASSED: "PASS", FAILED: "FAIL", OPEN: "UNDECIDED"}
_UNDECIDED_CODES = {"fail": FAILED, "pass": PASSED, "exit4": OPEN}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvidence:
    """What one task adds to a verdict on a fixed number of runs."""

    task: str
    runs: int
    passed: int
    errored: int
    value: float | None
    note: str = ""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One gate's word on one system, and everything needed to check it.

    `alpha` and `beta` are the chances of a wrong PASS and a wrong FAIL; None if there is no
    such promise. `runs` is what was spent, `fixed_runs` what a fixed design with the same error
    rates costs. `more_runs` is how many further runs would settle an UNDECIDED at the observed
    rate, None if it is settled or no number would do. `errors` says how errored runs counted.
    """

    gate: Gate
    system: str
    word: Word
    sentence: str
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
    notes: tuple[str, ...] = ()
    tasks: tuple[TaskEvidence, ...] = ()
    steps: tuple[DecisionLine, ...] = ()

    def __repr__(self) -> str:
        found = f"{self.demand}, it is {rounded(self.estimate)} in {plural(self.runs, 'run')}"
        return short_repr(
            f"Verdict {self.word} on {quoted(self.system)}", found, see=".sentence, .tasks"
        )

    @property
    def demand(self) -> str:
        """What the gate demands, such as "pass^3 >= 0.8"."""
        return self.gate.require

    @property
    def runs_saved(self) -> int | None:
        """Against the fixed design with the same error rates."""
        return None if self.fixed_runs is None else self.fixed_runs - self.runs

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 4 undecided; a warning never fails."""
        if self.gate.severity == "warning" or self.word == "PASS":
            return PASSED
        return FAILED if self.word == "FAIL" else _UNDECIDED_CODES[self.gate.on_undecided]


@dataclass(frozen=True, slots=True)
class Verdicts(Displayed, Sequence[Verdict]):
    """All the verdicts of a run, and what they come to; true where they passed."""

    each: tuple[Verdict, ...]

    def __repr__(self) -> str:
        return short_repr(
            f"Verdicts {self.word}", *self._counts(), see=".sentence, [0], .exit_code"
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
    def word(self) -> Word:
        """The overall verdict: what the exit code says."""
        return _WORDS[self.exit_code]

    @property
    def sentence(self) -> str:
        """The overall verdict in words."""
        total = len(self.each)
        if total == 1:
            return self.each[0].sentence
        return f"{self.word}: {total:,} gates, {', '.join(self._counts())}."

    def _counts(self) -> list[str]:
        words = [verdict.word for verdict in self.each]
        return [f"{words.count(word):,} {word}" for word in _WORDS.values() if word in words]
