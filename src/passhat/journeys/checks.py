"""Before a run: will a suite run here, are its files right, what would it do and cost?"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from passhat import arguments
from passhat.arguments import STORE, STORE_VARIABLE, path, several
from passhat.dataclass import Displayed, dataclass
from passhat.errors import MissingExtra, PasshatError, SuiteError
from passhat.journeys import run_store
from passhat.journeys.gating import at_most, baseline_names
from passhat.journeys.results import open_store
from passhat.journeys.run_request import AnswerSource, RunRequest, RunTerms, choose_source
from passhat.journeys.running import checked_source, load, prepare
from passhat.messages import few, plural, quoted, short_repr
from passhat.records.secrets import bare_address
from passhat.records.suite import SuiteCheck, SuiteProblem, model_of

if TYPE_CHECKING:
    from passhat.analysis.reports.judged import LabelEvidence
    from passhat.journeys.running import RunJob
    from passhat.records import Model, ModelSystem, Pairing, Server, Suite, System, Task, TokenUsage
    from passhat.records.redaction import FoundSecret, Redactor
    from passhat.runner.cheats import Tried

EXTRAS = {
    "run": ("genai_prices", "httpx2", "jsonschema", "mcp"),
    "local": ("xllamacpp",),
    "web": ("starlette", "uvicorn"),
    "frames": ("duckdb", "narwhals", "polars", "pyarrow"),
    "sheets": ("openpyxl",),
    "cloud": ("fsspec",),
    "figures": ("cairosvg",),
    "postgres": ("psycopg",),
    "ray": ("ray",),
    "pytest": ("pytest",),
}

# The newest runs of a suite in which labels are looked for.
_RUNS_WITH_LABELS = 20

Part = Literal["system", "model", "server"]
"""What a live run needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check; if it is a `problem`, `text` says what to do about it.

    A `note` is a problem with something that a run does not need. With `invalid`, the problem is
    the suite itself: `run` would refuse it.
    """

    what: str
    text: str
    problem: bool = False
    note: bool = False
    invalid: bool = False


def diagnose(
    suite: str | Path | None = None, *, ask: bool = False, store: str | Path | None = None
) -> Iterator[Finding]:
    """Will a suite run on this machine? One finding after the other, as each check ends.

    Keys and programs are looked for, servers are started and asked for their tools. With `ask`
    every model is asked one short question, which costs a little; without, nothing is paid for. If
    a run would replay cassettes, what only a live run needs is noted and is not a problem.
    """
    from passhat.suite import find_suite, load_suite

    if suite is not None:
        suite = arguments.path("suite", suite, "the path of a suite file")
    yield _installation()
    try:
        name = suite or find_suite(Path())
        loaded = load_suite(name)
    except PasshatError as error:
        for line in str(error).splitlines():
            yield Finding(what="suite", text=line, problem=True, invalid=True)
        return
    yield Finding(what=str(name), text=_size(loaded))
    source = choose_source(loaded, RunRequest())
    if not source.asks:
        yield Finding(what="cassettes", text="replayed, no key needed")
    for finding, part in _parts(loaded, ask=ask):
        if finding.problem and not _needed(part, loaded, source, ask=ask):
            text = f"only a live run needs it; {finding.text}"
            finding = replace(finding, problem=False, note=True, text=text)
        yield finding
    yield from _workspaces(loaded)
    from passhat.runner.preflight import absent_graders

    yield from (Finding(what="graders", text=text, problem=True) for text in absent_graders(loaded))
    yield from _store(store)
    from passhat.runner.guarding import open_graders

    for text in open_graders(loaded):
        yield Finding(what="graders", text=text, note=True)


def _workspaces(suite: Suite) -> Iterator[Finding]:
    """Whether workspaces can be isolated here, and tasks that need an image: both end trials."""
    from passhat.runner.preflight import lacks_sandbox

    if reason := lacks_sandbox(suite):
        yield Finding(what="sandbox", text=reason, problem=True)
    tasks = [task for task in suite.tasks if task.workspace is not None and task.workspace.image]
    recipes = [task for task in tasks if task.workspace and isinstance(task.workspace.image, Path)]
    if not tasks:
        return
    from passhat.runner.sandbox import image_engine

    named = few(recipe.name for recipe in recipes or tasks)
    needed = f"{plural(len(recipes or tasks), 'task')} ({named}) need an image"
    if recipes:
        text = (
            f"{needed} that is yet to be built from a Dockerfile: give them a `workspace:`, "
            "`{image: NAME}` once it is built, or run them with their own tool and read its results"
        )
        yield Finding(what="images", text=text, problem=True)
    elif image_engine() is None:
        text = f"{needed}, and neither podman nor docker is here (package podman)"
        yield Finding(what="images", text=text, problem=True)


def _store(store: str | Path | None) -> Iterator[Finding]:
    """Whether a store that was named can be reached; one in this folder is made."""
    named = store or os.environ.get(STORE_VARIABLE)
    if not named:
        return
    from passhat.history import History
    from passhat.history.database import NoHistoryYet, shown_address

    shown = shown_address(named)
    what = f"store {shown}"
    try:
        History.open(named, read_only=True).close()
    except NoHistoryYet:
        yield Finding(what=what, text="is made by the first run")
    except PasshatError as error:
        yield Finding(what=what, text=str(error).removeprefix(f"{shown}: "), problem=True)
    else:
        yield Finding(what=what, text="can be reached")


def deciding_files(suite: str | Path | None = None) -> tuple[Path, ...]:
    """The files and folders that decide about a run: suite, graders, snapshots, cassettes."""
    from passhat.runner.guarding import DecidingFiles
    from passhat.suite import find_suite, load_suite

    loaded = load_suite(suite or find_suite(Path()))
    kept = (loaded.directory / name for name in ("cassettes", "snapshots"))
    return (*DecidingFiles.of(loaded).names, *(folder.absolute() for folder in kept))


def _size(suite: Suite) -> str:
    """`4 tasks x 20 trials, 1 agent (local/smollm2)`."""
    names = suite.systems
    counts = {pairing.runs for pairing in suite.pairings}
    every = len(suite.pairings) == len(suite.tasks) * len(names) and len(counts) == 1
    tasks, trials = plural(len(suite.tasks), "task"), plural(suite.trials, "trial")
    design = f"{tasks} x {plural(counts.pop(), 'trial')}" if every else f"{tasks}, {trials}"
    return f"{design}, {plural(len(names), 'agent')} ({few(names)})"


def _parts(suite: Suite, *, ask: bool) -> Iterator[tuple[Finding, Part]]:
    """Check what a live run needs, part by part."""
    from passhat.runner.run import run_coroutine

    for system in {pairing.system.name: pairing.system for pairing in suite.pairings}.values():
        for finding in _system(system, suite.directory):
            yield finding, "system"
    models = {(model.name, model.base_url): model for model in suite.models}  # the judge's too
    for model in models.values():
        yield run_coroutine(_model(model, suite.directory, ask=ask)), "model"
    for server in suite.used_servers:
        yield run_coroutine(_server(server, suite.directory)), "server"


def _needed(part: Part, suite: Suite, source: AnswerSource, *, ask: bool) -> bool:
    """Whether a run, or asking the models, needs it."""
    live = suite.cassette.servers == "live" if part == "server" else ask and part == "model"
    return source.asks or live


def _installation() -> Finding:
    from passhat._version import __version__

    installed = [name for name, modules in EXTRAS.items() if all(map(_importable, modules))]
    return Finding(what="passhat", text=f"{__version__}, extras: {', '.join(installed) or 'none'}")


def _importable(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _lacks_http() -> str | None:
    """Why nothing can be called over HTTP from here."""
    missing = MissingExtra("calling a model or an agent over HTTP", "run")
    return None if _importable("httpx2") else str(missing)


def _system(system: System, directory: Path) -> Iterator[Finding]:
    """Check an agent that is not a model, without running it."""
    from passhat.records import CommandSystem, HttpSystem, PythonSystem

    what = f"agent {system.name}"
    if isinstance(system, CommandSystem):
        from passhat.runner.preflight import lacks_program

        reason = lacks_program(system, directory)
        yield _looked_up(what, reason, f"starts {system.argv[0]}")
    elif isinstance(system, PythonSystem):
        from passhat.runner.preflight import lacks_function

        yield _looked_up(what, lacks_function(system), f"{system.function} can be imported")
    elif isinstance(system, HttpSystem):
        yield _looked_up(what, _lacks_http(), f"posts to {bare_address(system.url)} (not asked)")


def _looked_up(what: str, reason: str | None, fine: str) -> Finding:
    """A finding on a program or function that the suite names; `run` refuses a missing one too."""
    if reason is None:
        return Finding(what=what, text=fine)
    return Finding(what=what, text=reason, problem=True, invalid=True)


async def _model(model: Model, directory: Path, *, ask: bool) -> Finding:
    what = f"model {model.name}"
    try:
        text = _address(model, directory)
        if ask:
            text += f"; {await _ask(model, directory)}"
    except PasshatError as error:
        return Finding(what=what, text=str(error), problem=True)
    return Finding(what=what, text=text)


def _address(model: Model, directory: Path) -> str:
    from passhat.records import SCRIPTED
    from passhat.records.providers import is_local
    from passhat.runner.models.catalog import locate
    from passhat.runner.models.local import why_not_here

    if model.name == SCRIPTED:
        return "follows its script: no key, no network"
    if is_local(model.name):
        if reason := why_not_here(model.name, directory):
            raise SuiteError(reason)
        return "runs on this machine: no key, no network"
    if reason := _lacks_http():
        raise SuiteError(reason)
    at = locate(model)
    key = f"key from {at.key_variable}" if at.key else "no key"
    return f"{at.wire_format.name} at {at.base_url}, {key}"


async def _ask(model: Model, directory: Path) -> str:
    """One short question, and how long the answer took."""
    from passhat.records import ModelParameters
    from passhat.runner.models.exchange import Message, Request
    from passhat.runner.models.factory import ModelFactory

    models = ModelFactory(directory=directory)
    short = replace(model, parameters=ModelParameters(max_tokens=16))
    started = time.perf_counter()
    try:
        asked = Request(
            messages=(Message(role="user", text="Say: ok"),), parameters=short.parameters
        )
        reply = await (await models.model(short)).complete(asked)
    finally:
        await models.close()
    return f"answered {reply.text[:40]!r} in {time.perf_counter() - started:.1f} s"


async def _server(server: Server, directory: Path) -> Finding:
    from passhat.runner.mcp_servers import RunningServer
    from passhat.runner.preflight import lacks_program

    what = f"server {server.name}"
    if reason := lacks_program(server, directory):
        return _looked_up(what, reason, "")
    running = RunningServer(server, directory=directory)
    try:
        await running.start()
    except PasshatError as error:
        return Finding(what=what, text=str(error), problem=True)
    tools = ", ".join(tool.name for tool in running.tools) or "no tools"
    await running.stop()
    return Finding(what=what, text=tools)


# Can tasks be passed without doing them?


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderTryout:
    """What came of trying to pass a suite's tasks: by doing nothing, solving them, and cheating.

    `left_out` are tasks that have no workspace, or that only a model can decide about.
    """

    file: str
    tried: tuple[Tried, ...]
    left_out: tuple[str, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attempt.task for attempt in self.tried))

    @property
    def holes(self) -> Mapping[str, Sequence[Tried]]:
        """The attempts that did not end as they should have, by what was attempted."""
        from passhat.runner.cheats import holes

        return holes(self.tried)

    @property
    def holds(self) -> bool:
        """Whether all is as it should be, but for the hole that no runner can close."""
        from passhat.runner.cheats import FORGES

        return all(
            name == FORGES and attempt.outcome == "passed"
            for name, tried in self.holes.items()
            for attempt in tried
        )

    def answer(self) -> str:
        """In a sentence: can the tasks be passed without doing them?"""
        from passhat.runner.cheats import FORGES, NOTHING, SOLUTION

        if not self.tried:
            return "Nothing was tried: no task has a workspace that tests or commands decide about."
        holes, count = self.holes, plural(len(self.tasks), "task")
        broken = {a.task for a in holes.get(NOTHING, ()) if a.outcome == "errored"}
        unsolved = {attempt.task for attempt in holes.get(SOLUTION, ())} - broken
        others = [attempt for name in holes.keys() - {SOLUTION} for attempt in holes[name]]
        untried = {other.attempt for other in others if other.outcome == "untried"}
        passed = {o.task for o in others if o.outcome != "untried" and o.attempt != FORGES}
        fooled = passed - broken
        sentences = []
        if fooled:
            them = "it" if len(fooled) == 1 else "them"
            sentences.append(f"{len(fooled)} of {count} can be passed without doing {them}")
        if unsolved:
            sentences.append(f"the solution of {few(sorted(unsolved))} does not pass")
        if broken:
            sentences.append(f"{few(sorted(broken))} cannot be graded")
        if untried:
            sentences.append(f"{plural(len(untried), 'way')} to cheat could not be tried")
        if sentences:
            text = "; ".join(sentences)
            return f"{text[0].upper()}{text[1:]}."
        solved = sum(attempt.attempt == SOLUTION for attempt in self.tried)
        alone = "nothing passes" + (", but the solution does" if solved else "")
        hole = ", except for a hole that no runner can close" if holes else ""
        return f"The graders hold on {count}: {alone}{hole}."

    def remedy(self, attempt: str) -> str:
        """What closes the hole that an attempt shows."""
        from passhat.runner.cheats import remedies

        return remedies().get(attempt, "")


def try_graders(suite: str | Path | None = None, *, live: bool = False) -> GraderTryout:
    """Can the tasks of a suite be passed without doing them? No agent runs, and no model is asked.

    In the workspace of each task, doing nothing must fail, the reference `solution:` must pass, and
    cheats that have fooled graders must fail. With `live`, tasks that a judge or a simulated user
    decides about are tried too, which costs.
    """
    from passhat.runner.cheats import can_be_tried, try_tasks
    from passhat.suite import find_suite, load_suite

    name = find_suite(Path()) if suite is None else path("suite", suite, "the path of a suite file")
    loaded = load_suite(name)
    out = [task.name for task in loaded.tasks if not can_be_tried(task, live=live)]
    return GraderTryout(file=str(name), tried=try_tasks(loaded, live=live), left_out=tuple(out))


# Are there secrets in files? What passhat wrote here, or other files.


USUAL = (Path("cassettes"), Path("snapshots"), Path(".passhat"))
"""Where passhat writes, if no path is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretScan:
    """The files and folders that were searched, and the secrets in them; none is shown itself."""

    places: tuple[Path, ...]
    secrets: tuple[FoundSecret, ...]


def find_secrets(places: str | Path | Sequence[str | Path] = ()) -> SecretScan:
    """Are there secrets in these files and folders, or else in what passhat wrote here?

    It finds the values of variables with names such as MY_KEY or DB_PASSWORD, the secrets that the
    suite in this folder refers to, and everything that looks like a known kind of key, also in
    compressed files, archives and SQLite stores.
    """
    from passhat.records.redaction import scan_paths, suite_redactor
    from passhat.suite import suite_in

    named = tuple(Path(path("places", place, "paths")) for place in several(places, str))
    searched = named or tuple(place for place in USUAL if place.exists())
    suite = None
    with suppress(PasshatError):  # a suite with an error must not keep secrets from being found
        suite = suite_in(Path())
    secrets = scan_paths(searched, suite_redactor(suite, os.environ))
    return SecretScan(places=searched, secrets=tuple(dict.fromkeys(secrets)))


# What is wrong with suite files, and what is worth knowing before they are run.


def check_suites(
    suites: str | Path | Sequence[str | Path] = (), *, store: str | Path | None = None
) -> tuple[SuiteCheck, ...]:
    """What is wrong with suite files? Without a name, with the suite file in this folder.

    Nothing is run. A function of a suite whose module is not installed here is a fault too. Labels
    in the store (or that of PASSHAT_STORE, or the one beside the suite) show gates beyond reach.
    """
    from passhat.suite import find_suite

    files = several(suites, str) or [find_suite(Path())]
    paths = [Path(path("suites", file, "paths of suite files")) for file in files]
    return tuple(_check(file, store or os.environ.get(STORE_VARIABLE)) for file in paths)


def _check(file: Path, store: str | Path | None) -> SuiteCheck:
    from passhat.runner.preflight import absent_modules, answers_in_sight
    from passhat.suite import check_suite
    from passhat.suite.load import located_problems
    from passhat.suite.yaml_tree import dotted

    suite, problems = check_suite(file)
    absent = [] if suite is None else [*absent_modules(suite), *answers_in_sight(suite)]
    if faults := [(part.section, part.name, part.key, part.reason) for part in absent]:
        suite, problems = None, tuple(located_problems(file, faults))
    return SuiteCheck(
        file=str(file),
        size=None if suite is None else suite.size,
        faults=tuple(
            SuiteProblem(line=p.line, column=p.column, path=dotted(p.path), message=p.message)
            for p in problems
        ),
        notes=() if suite is None else tuple(_notes(suite, store)),
    )


def _notes(suite: Suite, store: str | Path | None) -> list[str]:
    """What is not wrong but worth knowing before a run."""
    from datetime import UTC, datetime

    from passhat.journeys.running import RUNS_ONCE
    from passhat.records.providers import unlisted_model
    from passhat.runner.guarding import open_graders
    from passhat.runner.preflight import absent_programs

    today = datetime.now(tz=UTC).date()
    ended = [
        f'the quarantine of "{entry.task}" ended on {entry.until}: it is gated again'
        for entry in suite.quarantine
        if not entry.in_force(today)
    ]
    once = [RUNS_ONCE] if suite.runs_once else []
    # Models of a known family with an unknown name: they may be new, or mistyped.
    names = dict.fromkeys(model.name for model in suite.models if model.base_url is None)
    unlisted = filter(None, map(unlisted_model, names))
    programs = map(str, absent_programs(suite))
    return [
        *ended,
        *once,
        *unlisted,
        *programs,
        *open_graders(suite),
        *_gates_out_of_reach(suite, store),
    ]


def _gates_out_of_reach(suite: Suite, named: str | Path | None) -> Iterator[str]:
    """Gates that no number of trials can pass at the judge's error, as the newest labels show."""
    from passhat.journeys.stored_runs import run_labels

    if not suite.gates:
        return
    labels: Mapping[str, LabelEvidence] = {}
    with suppress(PasshatError), open_store(named or suite.directory / STORE) as history:
        runs = history.runs(suite=suite.name, limit=_RUNS_WITH_LABELS)
        labels = next((known for run in runs if (known := run_labels(history, run))), {})
    if not labels:
        return
    from passhat.analysis.gates.gate import parse_gate
    from passhat.analysis.planning.label_plan import out_of_reach

    gates = [parse_gate(gate) for gate in suite.gates]
    for system, own in labels.items():
        whose = f"{system}: " if len(labels) > 1 else ""
        yield from (f"{whose}{sentence}" for sentence in out_of_reach(gates, own))


CHARACTERS_PER_TOKEN = 4
TOKENS_OF_A_SERVER = 400
TOKENS_OF_A_RESULT = 500
TOKENS_OF_AN_ANSWER = 1_000
TOKENS_OF_A_SHORT_ANSWER = 20
"""Rules of thumb, for a suite that has never been run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRange:
    """The range of the cost in dollars, and what it rests on; `high` is null if unknown."""

    low: float
    high: float | None
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan(Displayed):
    """What would be run, with what, and what it may cost."""

    suite: str
    size: str
    mode: str
    tasks: int
    systems: tuple[str, ...]
    trials: int
    trials_by_task: Mapping[str, int]
    sequential: bool
    concurrency: int
    models: tuple[str, ...]
    servers: Mapping[str, str]
    gates: tuple[str, ...]
    budget: Mapping[str, float]
    cost: CostRange
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        high = self.cost.high
        cost = "cost unknown" if high is None else f"${self.cost.low:,.2f} to ${high:,.2f}"
        return short_repr(f"RunPlan of {quoted(self.suite)}", self.size, cost, see=".mode, .cost")


def plan_run(
    suite: Suite | str | Path | None = None,
    *,
    store: str | Path | None = None,
    **terms: Unpack[RunTerms],
) -> RunPlan:
    """What `run` would run with the same arguments, and what it may cost; starts nothing."""
    from passhat.records.redaction import suite_redactor

    arguments.refuse_unknown("plan_run", terms, RunTerms.__annotations__)
    path, loaded = load(suite)
    job = prepare(loaded, RunRequest.of(path, terms, None), store=store)
    suite = job.suite
    redactor = suite_redactor(suite, os.environ)
    source = checked_source(job)
    _refuse_missing_baselines(job)
    rule = job.rule()
    low, high, why = _cost(job) if source.asks else (0.0, 0.0, "answers are recorded")
    if rule is not None and high is not None:
        # The most it may ask for, at the mean price of a trial; the least is one trial.
        low, high = low / suite.trials, high * rule.planned / suite.trials
    limits = ("max_cost", "max_tokens", "max_minutes", "max_calls")
    systems = [pairing.system for pairing in suite.pairings]
    budget = {name: getattr(suite.budget, name) for name in limits}
    return RunPlan(
        suite=suite.name,
        size=suite.size if rule is None else at_most(suite, rule),
        mode=str(source),
        tasks=len(suite.tasks),
        systems=tuple(suite.systems),
        trials=suite.trials if rule is None else rule.planned,
        trials_by_task={pairing.task.name: pairing.planned for pairing in suite.pairings},
        sequential=rule is not None,
        concurrency=suite.concurrency,
        models=tuple(sorted({model.name for model in map(model_of, systems) if model})),
        servers={server.name: _address_of(server, redactor) for server in suite.used_servers},
        gates=tuple(gate.require for gate in job.gates),
        budget={name: value for name, value in budget.items() if value is not None},
        cost=CostRange(low=low, high=high, how=why),
        notes=tuple(job.hints),
    )


def _refuse_missing_baselines(job: RunJob) -> None:
    """Refuse a gate that compares with a run which is not stored, as the run would."""
    names = baseline_names(job.gates, job.suite)
    if not names:
        return
    if job.store is None:
        run_store.refuse_without_store(names[0])
    with open_store(job.store) as history:
        for name in names:
            run_store.find_baseline(history, name, job.resting.get(name), job.suite.name, None)


def _address_of(server: Server, redactor: Redactor) -> str:
    from passhat.records import StdioServer

    if isinstance(server, StdioServer):
        where = redactor.clean(" ".join(server.argv))
    else:
        where = bare_address(server.url)
    return f"{where} ({'shared' if server.shared else 'one a trial'})"


def _cost(job: RunJob) -> tuple[float, float | None, str]:
    """The range of the cost: from earlier runs if there are any, else by rules of thumb."""
    low, high, why = _by_experience(job) or _by_rule_of_thumb(job.suite)
    limit = job.suite.budget.max_cost
    if limit is not None and high is not None and high > limit:
        return min(low, limit), limit, f"{why}; stopped by max_cost"
    return low, high, why


def _by_experience(job: RunJob) -> tuple[float, float, str] | None:
    from passhat.history import History
    from passhat.history.database import NoHistoryYet
    from passhat.journeys.results import store_is_there

    if job.store is None or not store_is_there(job.store):
        return None
    try:
        with History.open(job.store, read_only=True) as history:
            runs = history.runs(suite=job.suite.name, limit=1)
            if not runs or not runs[0].trials:
                return None
            past = history.trials(runs[0])
    except NoHistoryYet:
        return None
    from passhat.analysis.planning.plan import expected_cost
    from passhat.stats.estimate import Estimate

    planned = {(p.system.name, p.task.name): p.runs for p in job.suite.pairings}
    cost = expected_cost(past, planned)
    if not isinstance(cost, Estimate) or cost.interval is None:
        return None
    return cost.interval.low, cost.interval.high, f"from the cost of {cost.runs} earlier trials"


def _by_rule_of_thumb(suite: Suite) -> tuple[float, float | None, str]:
    from passhat.records import ModelSystem

    low = high = 0.0
    for pairing in suite.pairings:
        if not isinstance(pairing.system, ModelSystem):
            counted = model_of(pairing.system) is not None
            why = "nobody knows how often a program asks; a limit of cost holds all the same"
            return 0.0, None, why if counted else "passhat cannot see what this agent spends"
        least, most = _trial_cost(pairing, pairing.system)
        if least is None or most is None:
            return 0.0, None, f"no price is known for {pairing.system.model.name}"
        low += pairing.runs * least
        high += pairing.runs * most
        if (talking := _user_cost(pairing.task)) is None:
            return 0.0, None, "no price is known for the model of its user"
        high += pairing.runs * talking
    return low, high, "from one short turn a trial to every turn at full length"


def _trial_cost(pairing: Pairing, system: ModelSystem) -> tuple[float | None, float | None]:
    """One trial at its shortest and at its longest."""
    from passhat.records import TokenUsage

    task = pairing.task
    text = task.prompt + "".join(step.prompt for step in task.steps) + (system.system_prompt or "")
    first = len(text) // CHARACTERS_PER_TOKEN + TOKENS_OF_A_SERVER * len(system.servers)
    turns = task.max_turns or system.max_turns if system.servers else max(1, len(task.steps))
    turns *= 1 if task.scenario is None else task.scenario.max_turns
    answer = system.model.parameters.max_tokens or TOKENS_OF_AN_ANSWER
    grown = (answer + TOKENS_OF_A_RESULT) * turns * (turns - 1) // 2
    price = _pricing(system.model)
    return (
        price(TokenUsage(tokens_in=first, tokens_out=TOKENS_OF_A_SHORT_ANSWER)),
        price(TokenUsage(tokens_in=first * turns + grown, tokens_out=answer * turns)),
    )


def _user_cost(task: Task) -> float | None:
    """What the user of a task may cost in one trial; None if nobody knows."""
    from passhat.records import TokenUsage

    if task.scenario is None or task.user is None or task.user.model is None:
        return 0.0
    turns, model = task.scenario.max_turns, task.user.model
    tokens = model.parameters.max_tokens or TOKENS_OF_AN_ANSWER
    first = len(task.scenario.goal + task.user.persona) // CHARACTERS_PER_TOKEN
    grown = (tokens + TOKENS_OF_AN_ANSWER) * turns * (turns - 1) // 2
    return _pricing(model)(TokenUsage(tokens_in=first * turns + grown, tokens_out=tokens * turns))


def _pricing(model: Model) -> Callable[[TokenUsage], float | None]:
    from passhat.records import SCRIPTED
    from passhat.records.providers import PROVIDERS, is_local
    from passhat.runner.models.catalog import provider_of
    from passhat.runner.models.exchange import pricing

    free = model.name == SCRIPTED or is_local(model.name)
    if free and model.prices is None:
        return lambda usage: 0.0
    provider = provider_of(model)
    known = PROVIDERS.get(provider)
    return pricing(
        model.name.removeprefix(f"{provider}/"),
        provider=known.prices if known else None,
        prices=model.prices,
    )
