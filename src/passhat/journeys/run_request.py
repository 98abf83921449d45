"""A request to run a suite: its terms, the part of the suite it is, where its answers come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from passhat import arguments
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import one_of_rule
from passhat.records.suite import model_of, vary
from passhat.runner.schedule import Event

if TYPE_CHECKING:
    from pathlib import Path

    from passhat.records import Model, Pairing, Suite
    from passhat.records.suite import ServerMode
    from passhat.runner.cassettes import CassetteSet, Mode


Executor = Literal["local", "workers", "ray"]
"""Where trials are carried out: in this process, by workers, or on a Ray cluster."""

CASSETTES = (
    *("record", "append", "missing", "all", "drifted"),
    *("replay", "replay-or-live", "none"),
)
"""The ways to use cassettes; `none` calls the models although there are some."""


class RunLimits(TypedDict, total=False):
    """How fast and how far a run goes; None leaves it to the suite."""

    concurrency: int | None
    max_cost: float | None
    max_tokens: int | None
    max_minutes: float | None
    max_calls: int | None
    keep_going: bool


class ResumeTerms(RunLimits, total=False):
    """How a run is resumed."""

    retry_errors: bool
    changed: bool
    executor: Executor
    workers: int


class RunTerms(RunLimits, total=False):
    """What to run and what to demand; None and empty leave it to the suite."""

    only: Sequence[str]
    tasks: Sequence[str]
    tags: Sequence[str]
    runs: int | None
    seed: int | None
    require: Sequence[str]
    until_settled: bool
    coverage_threshold: float | None
    cassette: str | None
    servers: str | None
    allow_drift: bool
    compress: bool
    faults: str | None
    shard: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One request to run a suite; the suite decides what is None or empty.

    `interface` is what the caller needs again on resuming, such as the files it writes.
    """

    suite: str = ""
    only: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    runs: int | None = None
    seed: int | None = None
    require: tuple[str, ...] = ()
    until_settled: bool = False
    coverage_threshold: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None
    concurrency: int | None = None
    keep_going: bool = False
    cassette: str | None = None
    servers: str | None = None
    allow_drift: bool = False
    compress: bool = False
    faults: str | None = None
    shard: str | None = None
    judged_at: tuple[int, ...] = ()
    """After how many trials its gates were judged before it was extended."""
    interface: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> dict[str, Any]:
        """What two starts of the same run have in common, as JSON values."""
        left_out = {*RunLimits.__annotations__, *self.interface}
        return {name: value for name, value in self.to_json().items() if name not in left_out}

    @classmethod
    def of(cls, suite: str, terms: RunTerms, interface: Mapping[str, Any] | None) -> RunRequest:
        """A request from the arguments of `run`; a lone text counts as a list of one."""
        return cls(suite=suite, interface=interface or {}, **checked_terms(terms))

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads again."""
        own = asdict(self)
        values = {**own, **own.pop("interface")}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if name != "interface"
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunRequest:
        """The request of a stored run."""
        known = {field.name for field in fields(cls)} - {"interface"}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        own = {name: value for name, value in values.items() if name in known}
        return cls(**own, interface={n: v for n, v in values.items() if n not in known})

    def changed(self, **given: Any) -> RunRequest:
        """The same request with other values if they are given."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def checked_terms(terms: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run, each by its rule; None leaves it to the suite."""
    return {name: _RULES[name](name, value) for name, value in terms.items() if value is not None}


_RULES: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("only", "tasks", "tags"), arguments.names),
    "require": partial(arguments.names, rule=arguments.DEMANDS),
    "seed": partial(arguments.whole_number, least=0),
    **dict.fromkeys(("runs", "concurrency", "max_tokens", "max_calls"), arguments.whole_number),
    **dict.fromkeys(("max_cost", "max_minutes"), arguments.amount),
    "coverage_threshold": arguments.probability,
    **dict.fromkeys(("until_settled", "keep_going", "allow_drift", "compress"), arguments.flag),
    "cassette": partial(arguments.word, known=CASSETTES),
    "servers": partial(arguments.word, known=("live", "recorded")),
    "faults": partial(arguments.word, known=("both", "only")),
    "shard": lambda _, value: str(value),
}
"""The rule of each argument of a run."""


ROW = re.compile(r"(?P<name>.+) #(?P<number>[0-9]{1,6})")
"""One run of a task, as every report names it."""


def apply_request(suite: Suite, request: RunRequest) -> Suite:
    """The pairings, runs, seed, budget, concurrency and faults that were asked for."""
    pairings = chosen_pairings(suite.pairings, request)
    if request.runs is not None:
        runs = request.runs * max(1, len(suite.seeds))
        pairings = tuple(replace(pairing, runs=runs) for pairing in pairings)
    _refuse_missing_runs(pairings)
    limits = {limit.name: getattr(request, limit.name) for limit in fields(suite.budget)}
    given = {name: value for name, value in limits.items() if value is not None}
    chosen = replace(
        suite,
        pairings=pairings,
        seed=suite.seed if request.seed is None else request.seed,
        budget=replace(suite.budget, **given),
        concurrency=request.concurrency or suite.concurrency,
    )
    return vary(chosen, request.faults)


def chosen_pairings(pairings: Sequence[Pairing], request: RunRequest) -> tuple[Pairing, ...]:
    """Those that match one name of each filter that is given."""
    chosen = tuple(pairings)
    filters: list[tuple[str, Sequence[str], Callable[[Pairing], Sequence[str]]]] = [
        ("only", request.only, lambda p: (p.system.name, p.task.name, p.label)),
        ("tasks", request.tasks, lambda p: (p.task.name, p.label)),
        ("tags", request.tags, lambda p: p.task.tags),
    ]
    for argument, patterns, names in filters:
        for pattern in patterns:
            _refuse_unknown(argument, pattern, [name for p in pairings for name in names(p)])
        if patterns:
            chosen = tuple(p for each in chosen if (p := _chosen(each, names(each), patterns)))
    if not chosen:
        raise ArgumentError("only, tasks and tags", "must leave something to run", "nothing")
    return chosen


def _chosen(pairing: Pairing, names: Sequence[str], patterns: Sequence[str]) -> Pairing | None:
    """The part of a pairing that patterns choose: all of it, or single runs like `refund #3`."""
    whole = [p for p in patterns if p in names or not ROW.fullmatch(p)]
    if whole and _matches(names, whole):
        return pairing
    rows = [row for p in patterns if (row := ROW.fullmatch(p)) and _matches(names, [row["name"]])]
    if not rows:
        return None
    return replace(pairing, only=tuple(sorted({int(row["number"]) - 1 for row in rows})))


def _refuse_missing_runs(pairings: Sequence[Pairing]) -> None:
    for pairing in pairings:
        if pairing.only and not 0 <= pairing.only[0] <= pairing.only[-1] < pairing.runs:
            rule = f"must name one of the {pairing.runs} runs of {pairing.label}"
            raise ArgumentError("tasks", rule, f"#{pairing.only[-1] + 1}")


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    # A label such as "refund [gpt-5]" is a name first, and only then a pattern.
    bare = [row["name"] for p in patterns if (row := ROW.fullmatch(p))]
    return any(name == p or fnmatchcase(name, p) for name in names for p in (*patterns, *bare))


def _refuse_unknown(argument: str, pattern: str, names: Sequence[str]) -> None:
    if _matches(names, [pattern]):
        return
    known = list(dict.fromkeys(names))
    rule = one_of_rule(pattern, known) if known else "chooses nothing: no task has a tag"
    raise ArgumentError(argument, rule, pattern)


# Where the answers of a run come from: the models, or cassettes; and why.

WORDS = {
    "record": "live, recorded",
    "append": "live, recorded after the recorded trials",
    "missing": "live where nothing is recorded, and recorded",
    "all": "live, recorded again",
    "drifted": "live where the suite has changed, and recorded",
    "replay": "replay",
    "replay-or-live": "replay, live where nothing is recorded",
}
TAKEN_UP = dict.fromkeys(("record", "all", "drifted"), "append")
"""The mode in which an interrupted recording resumes, so that what it has recorded stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """Where answers come from; `mode` None is live, `why` is the reason for it.

    `servers` says whether a replay calls the MCP servers; None where the suite has none.
    """

    mode: Mode | None
    why: str = ""
    servers: ServerMode | None = None

    @property
    def asks(self) -> bool:
        """Whether a model may be called, and paid for."""
        return self.mode != "replay"

    @property
    def asks_always(self) -> bool:
        """Whether every trial is run, whatever is recorded."""
        return self.mode in (None, "record", "append", "all")

    def __str__(self) -> str:
        words = "live" if self.mode is None else WORDS[self.mode]
        if self.mode == "replay" and self.servers is not None:
            words += f", servers {self.servers}"
        return f"{words} ({self.why})" if self.why else words


def choose_source(suite: Suite, request: RunRequest, *, resumed: bool = False) -> AnswerSource:
    """The source that the request or the suite names; else a replay if there are cassettes."""
    wanted = request.cassette or suite.cassette.mode
    if wanted is None:
        source = _by_circumstances(suite, resumed=resumed)
    elif wanted == "none":
        source = AnswerSource(mode=None)
    else:
        taken_up = TAKEN_UP.get(wanted, wanted) if resumed else wanted
        source = AnswerSource(mode=cast("Mode", taken_up))
    if not suite.used_servers:
        return source
    servers = request.servers or suite.cassette.servers
    return replace(source, servers=cast("ServerMode", servers))


def surely_asked(suite: Suite, source: AnswerSource) -> tuple[str, ...]:
    """The systems whose models must be called: they have no cassette."""
    if source.asks_always or not source.asks:
        return suite.systems if source.asks else ()
    return tuple(name for name in suite.systems if not _path(suite, name))


@contextmanager
def open_source(
    suite: Suite, source: AnswerSource, request: RunRequest, *, sequential: bool = False
) -> Iterator[CassetteSet | None]:
    """The cassettes of a run, open while it lasts.

    Nobody knows in advance how many runs a `sequential` run needs, so they are not counted.
    """
    if source.mode is None:
        yield None
        return
    from passhat.runner.cassettes import open_cassettes

    compressed = request.compress or any(_path(suite, s, ".zst") for s in suite.systems)
    if sequential:
        suite = replace(suite, pairings=tuple(replace(p, runs=1) for p in suite.pairings))
    with open_cassettes(
        suite,
        source.mode,
        servers=cast("ServerMode | None", request.servers),
        allow_drift=request.allow_drift,
        compressed=compressed,
    ) as cassettes:
        yield cassettes


def _by_circumstances(suite: Suite, *, resumed: bool) -> AnswerSource:
    """Replay what is recorded: a key that happens to be set must not cost anything.

    A resumed run stays live if it can: it was started before there was anything to replay.
    """
    if not all(_path(suite, name) for name in suite.systems):
        return AnswerSource(mode=None)
    models = filter(None, (model_of(pairing.system) for pairing in suite.pairings))
    reasons = (_why_not_live(model, suite.directory) for model in models)
    if reason := next(filter(None, reasons), None):
        return AnswerSource(mode="replay", why=reason)
    if resumed:
        return AnswerSource(mode=None)
    return AnswerSource(
        mode="replay", why="there are cassettes; `cassette='none'` calls the models"
    )


def _path(suite: Suite, system: str, ending: str = "") -> Path | None:
    """The cassette of a system, if there is one."""
    where = suite.directory / suite.cassette.directory
    if not where.is_dir():
        return None
    from passhat.runner.cassettes import cassette_path

    paths = [cassette_path(where, system, compressed=c) for c in (False, True)]
    return next((p for p in paths if p.name.endswith(ending) and p.is_file()), None)


def _why_not_live(model: Model, directory: Path) -> str | None:
    """Why a model cannot be called here, in a few words; None if it can."""
    from passhat.records.providers import is_local
    from passhat.runner.models.factory import why_unreachable

    reason = why_unreachable(model, directory)
    if reason is None or is_local(model.name):
        return reason
    return f"no key is set for {model.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOpened:
    """A run is about to begin, and nothing has been paid for yet.

    `size` is what it may run at most, `source` where answers come from, `run` its key in the store.
    `at_most` says that gates may end it sooner. `passed` and `errored` count the trials of an
    earlier start. `faults_off` says that the suite has faults and runs without them, `passed_over`
    that an unfinished run is not continued, `too_few` that its trials can never PASS a gate.
    """

    suite: str
    size: str
    source: str
    run: str | None
    at_most: bool
    passed: int = 0
    errored: int = 0
    faults_off: bool = False
    passed_over: str | None = None
    too_few: str | None = None


RunEvent = RunOpened | Event
OnRunEvent = Callable[[RunEvent], None]
