"""A pytest marker that runs a test many times and judges it by a gate.

    @pytest.mark.reliable("pass^3 >= 0.8")
    def test_refund(): ...

One test stays one test: it passes when the gate does. Every run gets its own function-scoped
fixtures; a run whose setup fails is an error, which never counts as a pass. With sequential
evidence (the default) the runs end as soon as the verdict is settled. The tests of a class, and the
cases of a parametrized test, are also summed up together.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import pytest
from _pytest.runner import runtestprotocol

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import Verdict, Verdicts
    from passhat.journeys.reliability_check import ReliabilityCheck, TrialRecorder
    from passhat.records import Trial, Trials

SYSTEM = "pytest"


class JudgedTest(TypedDict):
    """What a report carries from the process that ran a test to the one that prints the summary."""

    sentence: str
    require: str
    sequential: bool
    runs: list[dict[str, Any]]


_FAULT = pytest.StashKey[str]()
"""Why the demand of a test cannot be judged."""

_PLANNED = pytest.StashKey[str]()
"""What a test demands, and how many runs that takes at most."""

_TRIAL = pytest.StashKey["TrialRecorder"]()
"""The run of a test that is under way."""

_BUDGET = pytest.StashKey["_SessionBudget"]()
"""What the reliable tests of this process may still spend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    gate: dict[str, Any]
    runs: int | None


@dataclass(slots=True, kw_only=True)
class _SessionBudget:
    """What all reliable tests together may cost, and how long they may take."""

    max_cost: float | None
    max_minutes: float | None
    cost: float = 0.0
    begun: float = field(default_factory=time.monotonic)

    def spent(self) -> str | None:
        """The option whose limit is reached, if one is."""
        if self.max_cost is not None and self.cost >= self.max_cost:
            return "--reliable-max-cost"
        minutes = (time.monotonic() - self.begun) / 60
        if self.max_minutes is not None and minutes >= self.max_minutes:
            return "--reliable-max-minutes"
        return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of which begin with --reliable."""
    group = parser.getgroup("passhat", "reliability of stochastic tests")
    group.addoption(
        "--reliable-runs", type=int, metavar="N", help="At most N trials of each reliable test."
    )
    group.addoption(
        "--reliable-max-cost",
        type=float,
        metavar="DOLLARS",
        help="Start no further trial when all trials together have recorded this cost.",
    )
    group.addoption(
        "--reliable-max-minutes",
        type=float,
        metavar="M",
        help="Start no further trial of a reliable test after M minutes.",
    )
    group.addoption(
        "--reliable-log",
        metavar="FILE",
        help="Write every trial to a .jsonl, .csv or .parquet file that `passhat report` reads.",
    )
    group.addoption(
        "--reliable-store",
        metavar="FILE",
        help="Keep every trial in a history store, for `passhat trend`.",
    )


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> TrialRecorder:
    """The run of a reliable test: `index`, `seed`, and `record(score=..., cost=...)`."""
    from passhat.journeys.reliability_check import TrialRecorder

    item: pytest.Item = request.node
    return item.stash.get(_TRIAL, TrialRecorder(index=0, seed=0))


def pytest_configure(config: pytest.Config) -> None:
    """The marker, the budget and, in the process that sums up, the results."""
    config.addinivalue_line(
        "markers",
        "reliable(require, *, runs=None, **terms): run the test up to `runs` times (by default as "
        "many as the demand needs, and some more) and pass it when the gate does, such as "
        '"pass^3 >= 0.8"; terms are those of a gate\'s long form.',
    )
    cost = config.getoption("--reliable-max-cost")
    worker = getattr(config, "workerinput", None)  # of pytest-xdist: it only sends its reports
    if cost is not None and worker is not None:
        cost /= worker["workercount"]
    minutes = config.getoption("--reliable-max-minutes")
    config.stash[_BUDGET] = _SessionBudget(max_cost=cost, max_minutes=minutes)
    if worker is None:
        store = config.getoption("--reliable-store")
        log = config.getoption("--reliable-log")
        config.pluginmanager.register(_Results(log, store, config.rootpath))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check every demand before any test spends its runs."""
    for item in items:
        if (fault := _fault(item)) is not None:
            item.stash[_FAULT] = fault


def pytest_report_collectionfinish(items: Sequence[pytest.Item]) -> list[str]:
    """Say at once what cannot be judged, and how many runs the others may take."""
    faults = [item.stash[_FAULT] for item in items if _FAULT in item.stash]
    planned = Counter(item.stash[_PLANNED] for item in items if _PLANNED in item.stash)
    return [*faults, *(f"reliable: {_times(count)}{plan}" for plan, count in planned.items())]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test whose demand cannot be judged is an error; the others run."""
    if _FAULT in item.stash:
        pytest.fail(item.stash[_FAULT], pytrace=False)
    if item.get_closest_marker("reliable") and (limit := item.config.stash[_BUDGET].spent()):
        pytest.skip(f"the budget of {limit} is spent")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Read what a reliable test returns: pytest drops it, and False would pass."""
    if _TRIAL not in item.stash or not isinstance(item, pytest.Function):
        return (yield)
    own = item.obj
    item.obj = _reading_its_answer(own)
    try:
        return (yield)
    finally:
        item.obj = own


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a reliable test until its verdict is settled; leave all others alone."""
    demand = None if _FAULT in item.stash else _demand(item)
    spent = item.config.stash[_BUDGET].spent()
    if demand is None or spent or not isinstance(item, pytest.Function):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _judged_reports(item, nextitem, demand):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class _Results:
    """Collects every judged report, wherever it ran; prints and writes them at the end."""

    def __init__(self, log: str | None, store: str | None, root: Path) -> None:
        self.log = log
        self.store = store
        self.root = root
        self.judged: list[tuple[str, JudgedTest]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        judged: JudgedTest | None = getattr(report, "passhat", None)
        if judged is not None:
            self.judged.append((report.nodeid, judged))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.judged:
            return
        terminalreporter.section("reliability")
        for nodeid, judged in self.judged:
            terminalreporter.line(f"{nodeid}: {judged['sentence']}")
        for line in self._suite_lines():
            terminalreporter.line(line)

    def pytest_sessionfinish(self) -> None:
        if not self.judged or not (self.log or self.store):
            return
        from passhat.records import Source, Trials
        from passhat.records.trial import Ended

        # Workers send tests as they finish: the order in which runs began is the same for all.
        every = sorted(self._trials(), key=lambda t: (t.started or "", t.task, t.trial))
        ended: Ended | None = "by gates" if any(j["sequential"] for _, j in self.judged) else None
        source = Source(name=SYSTEM, format=SYSTEM, sha256="", ended=ended)
        # A test may be collected twice.
        trials = Trials.from_records(every, duplicates="keep", sources=(source,))
        if self.log:
            from passhat.ingest import write_trials

            write_trials(trials, Path(self.log))
        if self.store:
            self._keep(trials, self.store)

    def _trials(self) -> list[Trial]:
        return [t for nodeid, judged in self.judged for t in _trials(nodeid, judged["runs"])]

    def _suite_lines(self) -> Iterator[str]:
        """One line for each class and each parametrized test that has several reliable tests."""
        from passhat.journeys.reliability_check import group_by_suite, suite_sentence

        for name, members in group_by_suite([nodeid for nodeid, _ in self.judged]).items():
            chosen = [(nodeid, judged) for nodeid, judged in self.judged if nodeid in members]
            trials = [t for nodeid, judged in chosen for t in _trials(nodeid, judged["runs"])]
            demands = [judged["require"] for _, judged in chosen]
            yield f"{name}: {suite_sentence(trials, demands)}"

    def _keep(self, trials: Trials, store: str) -> None:
        """Store the trials of this session as one run, at the commit of the project."""
        from passhat.history import History, read_checkout

        transcripts = {
            (SYSTEM, nodeid, number): run["transcript"]
            for nodeid, judged in self.judged
            for number, run in enumerate(judged["runs"])
            if run["transcript"] is not None
        }
        with History.open(store) as history:
            (source,) = trials.sources
            options = {"ended": source.ended} if source.ended else {}
            run = history.start_run(SYSTEM, checkout=read_checkout(self.root), options=options)
            history.add_trials(run, trials)
            history.add_transcripts(run, transcripts)
            history.finish_run(run)


def _fault(item: pytest.Item) -> str | None:
    """What is wrong with the demand of a test: found by judging it before any run."""
    try:
        demand = _demand(item)
        if demand is not None:
            check = _check(item, demand)
            check.verdicts()
            item.stash[_PLANNED] = f"{demand.gate['require']}, at most {check.plan_sentence}"
    except InputError as error:
        return f"{item.nodeid}: {error}"
    return None


def _times(count: int) -> str:
    return "" if count == 1 else f"{count} tests, each "


def _demand(item: pytest.Item) -> _Demand | None:
    marker = item.get_closest_marker("reliable")
    if marker is None:
        return None
    from passhat.analysis.gates.gate import TERMS, unknown_term

    terms = dict(marker.kwargs)
    own = terms.pop("runs", None)
    if "trials" in terms:
        raise ArgumentError("reliable", "calls the number of trials `runs`", terms["trials"])
    given = item.config.getoption("--reliable-runs")
    runs = own if given is None else given
    if len(marker.args) != 1 or not isinstance(marker.args[0], str):
        raise InputError(
            "reliable takes one demand, such as "
            f'@pytest.mark.reliable("pass^3 >= 0.8", runs=60); got {marker.args}'
        )
    if runs is not None and (not isinstance(runs, int) or isinstance(runs, bool) or runs < 1):
        raise ArgumentError("runs", "must be a whole number, at least 1", runs)
    for name in terms:
        if name not in TERMS:
            raise unknown_term("reliable", name, ("runs", *TERMS))
    return _Demand(gate={"require": marker.args[0], **terms}, runs=runs)


def _judged_reports(
    item: pytest.Function, nextitem: pytest.Item | None, demand: _Demand
) -> Iterator[pytest.TestReport]:
    check = _check(item, demand)
    budget = item.config.stash[_BUDGET]
    failures: dict[str, list[int]] = {}
    reports: list[pytest.TestReport] = []
    while (not check.trials or not budget.spent()) and (run := check.next_run()) is not None:
        if check.trials:
            item._initrequest()  # noqa: SLF001  fresh function-scoped fixtures, as for a new test
        item.stash[_TRIAL] = run
        # The module's fixtures stay: whether another run follows is known only after this one.
        reports = runtestprotocol(item, log=False, nextitem=_sibling(item))
        if any(report.skipped for report in reports):
            yield from reports
            item.session._setupstate.teardown_exact(nextitem)  # noqa: SLF001
            return
        word, seconds = _ended(reports)
        error = "fixture" if word == "errored" else None
        check.finish(run, word, seconds=seconds, error=error)
        budget.cost += run.recorded.get("cost") or 0.0
        for report in reports:
            if report.failed:
                failures.setdefault(report.longreprtext, []).append(run.index + 1)
    item.session._setupstate.teardown_exact(nextitem)  # noqa: SLF001
    verdict = check.verdicts()[0]
    judged = JudgedTest(
        sentence=_sentence(item, verdict, len(check.trials)),
        require=demand.gate["require"],
        sequential=verdict.evidence == "sequential",
        runs=check.plain_runs(),
    )
    yield from _with_verdict(reports, check.verdicts(), judged, failures)


def _reading_its_answer(function: Callable[..., Any]) -> Callable[..., Any]:
    """The test, which fails where it returns False, as `assert_reliable` has it, or no bool."""

    def read(answer: object) -> None:
        from passhat.journeys.reliability_check import failure_returned

        try:
            failure = failure_returned(answer)
        except ArgumentError as error:
            failure = str(error)
        if failure is not None:
            pytest.fail(failure, pytrace=False)

    @wraps(function)
    def call(*args: Any, **given: Any) -> None:
        __tracebackhide__ = True
        read(function(*args, **given))

    @wraps(function)
    async def call_async(*args: Any, **given: Any) -> None:
        __tracebackhide__ = True
        read(await function(*args, **given))

    return call_async if inspect.iscoroutinefunction(function) else call


def _sibling(item: pytest.Function) -> pytest.Function:
    """A stand-in for the next test, so that only the fixtures of this one are torn down."""
    return pytest.Function.from_parent(item.parent, name=item.name, callobj=item.obj)


def _ended(reports: Sequence[pytest.TestReport]) -> tuple[str, float]:
    broken = any(report.failed and report.when != "call" for report in reports)
    passed = all(report.passed for report in reports)
    seconds = sum(report.duration for report in reports if report.when == "call")
    return ("errored" if broken else "passed" if passed else "failed"), seconds


def _trials(task: str, runs: Sequence[dict[str, Any]]) -> list[Trial]:
    from passhat.journeys.reliability_check import trial_of_plain

    return [trial_of_plain(run, system=SYSTEM, task=task) for run in runs]


def _check(item: pytest.Item, demand: _Demand) -> ReliabilityCheck:
    from passhat.journeys.reliability_check import ReliabilityCheck

    return ReliabilityCheck(item.nodeid, demand.gate, runs=demand.runs, system=SYSTEM)


def _with_verdict(
    reports: Sequence[pytest.TestReport],
    verdicts: Verdicts,
    judged: JudgedTest,
    failures: Mapping[str, Sequence[int]],
) -> Iterator[pytest.TestReport]:
    """The reports of the last run, with the verdict in place of its own outcome."""
    from passhat.journeys.reliability_check import different_failures

    for report in reports:
        report.outcome = "passed"
        report.longrepr = None
        if report.when == "call":
            report.passhat = judged  # type: ignore[attr-defined]  # reports carry what they are given
            report.duration = sum(run["seconds"] for run in judged["runs"])
            if verdicts.exit_code != 0:
                report.outcome = "failed"
                report.longrepr = "\n\n".join(
                    [judged["sentence"], *different_failures(failures, ":\n")]
                )
        if report.when == "teardown":  # where pytest's JUnit writer looks for properties
            report.user_properties += _properties(verdicts[0], judged)
        yield report


def _properties(verdict: Verdict, judged: JudgedTest) -> list[tuple[str, object]]:
    """What JUnit files say about the test besides its outcome."""
    interval = getattr(verdict.estimate, "interval", None)
    counted = judged["runs"][: verdict.runs]  # more may have been run, to tell an outage
    properties = {
        "reliability": judged["sentence"],
        "verdict": verdict.status,
        "value": getattr(verdict.estimate, "value", None),
        "low": getattr(interval, "low", None),
        "high": getattr(interval, "high", None),
        "runs": len(counted),
        "passed": sum(run["outcome"] == "passed" for run in counted),
    }
    return [(name, value) for name, value in properties.items() if value is not None]


def _sentence(item: pytest.Function, verdict: Verdict, runs: int) -> str:
    """The verdict; if it is undecided, what to change so that it is decided."""
    from passhat.journeys.reliability_check import verdict_sentence

    given = item.config.getoption("--reliable-runs") is not None
    where = "--reliable-runs" if given else "runs= in its marker"
    spent = item.config.stash[_BUDGET].spent()
    return verdict_sentence(verdict, runs, where, spent=spent)
