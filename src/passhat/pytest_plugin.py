"""A pytest marker that runs a test many times and judges it by a gate.

    @pytest.mark.reliable("pass^3 >= 0.8", runs=60)
    def test_refund(): ...

One test stays one test: it passes when the gate does. Every run gets its own function-scoped
fixtures; a run whose setup fails is an error, which never counts for a pass. With sequential
evidence (the default) the runs end as soon as the verdict is settled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from passhat.errors import ArgumentError, InputError

if TYPE_CHECKING:
    from passhat.analysis.gates.verdict import Verdict, Verdicts
    from passhat.journeys.reliability_check import ReliabilityCheck, TrialRecorder
    from passhat.records import Trial, Trials

SYSTEM = "pytest"

Run = tuple[str, float, dict[str, Any]]
"""How a run ended (passed, failed, errored), the seconds it took, and what the test recorded."""

_SENTENCE, _RUNS = "reliability", "reliability_runs"


_FAULT = pytest.StashKey[str]()
"""Why the demand of a test cannot be judged."""

_TRIAL = pytest.StashKey["TrialRecorder"]()
"""The run of a test that is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    gate: dict[str, Any]
    runs: int


def pytest_addoption(parser: pytest.Parser) -> None:
    """--reliable-runs, --reliable-log and --reliable-store."""
    group = parser.getgroup("passhat", "reliability of stochastic tests")
    group.addoption(
        "--reliable-runs", type=int, metavar="N", help="At most N runs of each reliable test."
    )
    group.addoption(
        "--reliable-log",
        metavar="FILE",
        help="Write every run to a .jsonl, .csv or .parquet file that `passhat report` reads.",
    )
    group.addoption(
        "--reliable-store",
        metavar="FILE",
        help="Keep every run in a history store, for `passhat trend` and `passhat flaky`.",
    )


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> TrialRecorder:
    """The run of a reliable test: `index`, `seed`, and `record(score=..., cost=...)`."""
    from passhat.journeys.reliability_check import TrialRecorder

    item: pytest.Item = request.node
    return item.stash.get(_TRIAL, TrialRecorder(index=0, seed=0))


def pytest_configure(config: pytest.Config) -> None:
    """The marker; and, where results come together, the ledger."""
    config.addinivalue_line(
        "markers",
        "reliable(require, *, runs=50, **terms): run the test up to `runs` times and pass it when "
        'the gate does, such as "pass^3 >= 0.8"; terms are those of a gate\'s long form.',
    )
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist only sends its reports
        store = config.getoption("--reliable-store")
        log = config.getoption("--reliable-log")
        config.pluginmanager.register(_Results(log, store, config.rootpath))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check every demand before any test spends its runs."""
    for item in items:
        if (fault := _fault(item)) is not None:
            item.stash[_FAULT] = fault


def pytest_report_collectionfinish(items: Sequence[pytest.Item]) -> list[str]:
    """Say what cannot be judged at once, not after hours of other tests."""
    return [item.stash[_FAULT] for item in items if _FAULT in item.stash]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test whose demand cannot be judged is an error; the others run."""
    if _FAULT in item.stash:
        pytest.fail(item.stash[_FAULT], pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a reliable test until its verdict is settled; leave all others alone."""
    demand = None if _FAULT in item.stash else _demand(item)
    if demand is None or not isinstance(item, pytest.Function):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _judged_reports(item, nextitem, demand):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


class _Results:
    """Collects every judged report, wherever it ran; prints and writes them at the end."""

    def __init__(self, path: str | None, store: str | None, root: Path) -> None:
        self.path = path
        self.store = store
        self.root = root
        self.sentences: list[str] = []
        self.trials: list[Trial] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        if report.when == "call" and _SENTENCE in told:
            self.sentences.append(str(told[_SENTENCE]))
            self.trials += _trials(report.nodeid, told[_RUNS])  # type: ignore[arg-type]  # our own

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.sentences:
            terminalreporter.section("reliability")
            for sentence in self.sentences:
                terminalreporter.line(sentence)

    def pytest_sessionfinish(self) -> None:
        if not self.trials:
            return
        from passhat.records import Trials

        # A test that was collected twice ran twice.
        trials = Trials.from_records(self.trials, duplicates="keep")
        if self.path:
            from passhat.ingest import write_trials

            write_trials(trials, Path(self.path))
        if self.store:
            _keep(trials, self.store, self.root)


def _keep(trials: Trials, store: str, root: Path) -> None:
    """The runs of this session as a run of the history, at the commit of the project."""
    from passhat.history import History, read_checkout

    with History.open(store) as history:
        run = history.start_run(SYSTEM, checkout=read_checkout(root))
        history.add_trials(run, trials)
        history.finish_run(run)


def _fault(item: pytest.Item) -> str | None:
    """What is wrong with the demand of a test: told by judging one run that nobody made."""
    try:
        demand = _demand(item)
        if demand is not None:
            _check(item, demand).verdicts()
    except InputError as error:
        return f"{item.nodeid}: {error}"
    return None


def _demand(item: pytest.Item) -> _Demand | None:
    marker = item.get_closest_marker("reliable")
    if marker is None:
        return None
    from passhat.analysis.gates.demands import TERMS, unknown_term
    from passhat.journeys.reliability_check import RUNS

    terms = dict(marker.kwargs)
    own = terms.pop("runs", RUNS)
    given = item.config.getoption("--reliable-runs")
    runs = own if given is None else given
    if len(marker.args) != 1 or not isinstance(marker.args[0], str):
        raise InputError(
            "reliable takes one demand, such as "
            f'@pytest.mark.reliable("pass^3 >= 0.8", runs=60); got {marker.args}'
        )
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise ArgumentError("runs", "must be a whole number, at least 1", runs)
    for name in terms:
        if name not in TERMS:
            raise unknown_term("reliable", name, ("runs", *TERMS))
    return _Demand(gate={"require": marker.args[0], **terms}, runs=runs)


def _judged_reports(
    item: pytest.Function, nextitem: pytest.Item | None, demand: _Demand
) -> Iterator[pytest.TestReport]:
    check = _check(item, demand)
    runs: list[Run] = []
    failures: list[str] = []
    reports: list[pytest.TestReport] = []
    while (run := check.next_run()) is not None:
        if runs:
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
        runs.append((word, seconds, dict(run.recorded)))
        failures += [f"run {run.index + 1}\n{r.longreprtext}" for r in reports if r.failed]
    item.session._setupstate.teardown_exact(nextitem)  # noqa: SLF001
    yield from _told(item, reports, check.verdicts(), runs, failures)


def _sibling(item: pytest.Function) -> pytest.Function:
    """A test beside this one: what comes next, so that only its own fixtures are torn down."""
    return pytest.Function.from_parent(item.parent, name=item.name, callobj=item.obj)


def _ended(reports: Sequence[pytest.TestReport]) -> tuple[str, float]:
    broken = any(report.failed and report.when != "call" for report in reports)
    passed = all(report.passed for report in reports)
    seconds = sum(report.duration for report in reports if report.when == "call")
    return ("errored" if broken else "passed" if passed else "failed"), seconds


def _trials(task: str, runs: Sequence[Run]) -> list[Trial]:
    from passhat.records import Outcome, Trial

    return [
        Trial(
            system=SYSTEM,
            task=task,
            trial=number,
            outcome=Outcome[word.upper()],
            seed=number,
            seconds=seconds,
            error="fixture" if word == "errored" else None,
            **recorded,
        )
        for number, (word, seconds, recorded) in enumerate(runs)
    ]


def _check(item: pytest.Item, demand: _Demand) -> ReliabilityCheck:
    from passhat.journeys.reliability_check import ReliabilityCheck

    return ReliabilityCheck(item.nodeid, demand.gate, runs=demand.runs, system=SYSTEM)


def _told(
    item: pytest.Function,
    reports: Sequence[pytest.TestReport],
    verdicts: Verdicts,
    runs: Sequence[Run],
    failures: Sequence[str],
) -> Iterator[pytest.TestReport]:
    """The reports of the last run, with the verdict in place of its own outcome."""
    sentence = f"{item.nodeid}: {_sentence(item, verdicts[0], len(runs))}"
    for report in reports:
        report.outcome = "passed"
        report.longrepr = None
        if report.when == "call":
            report.user_properties += [(_SENTENCE, sentence), (_RUNS, list(runs))]
            if verdicts.exit_code != 0:
                report.outcome = "failed"
                report.longrepr = "\n\n".join([sentence, *failures[:3]])
        yield report


def _sentence(item: pytest.Function, verdict: Verdict, runs: int) -> str:
    """The verdict; where it is open, what to change: a test has no log that could be longer."""
    from passhat.journeys.reliability_check import verdict_sentence

    given = item.config.getoption("--reliable-runs") is not None
    return verdict_sentence(verdict, runs, "--reliable-runs" if given else "runs= in its marker")
