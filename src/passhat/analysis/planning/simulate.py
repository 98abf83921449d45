"""Seeded trials of agents that do not exist, and three surprises that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, in_screen_words, probability, whole_number
from passhat.dataclass import Displayed, dataclass
from passhat.errors import ArgumentError
from passhat.messages import short_repr
from passhat.records import Categorical, Outcome, Source, Trials
from passhat.stats import special
from passhat.stats.arguments import Floats

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.analysis.reports.report import Report


# Partial credit spreads half as far as all-or-nothing scores with the same mean.
_PARTIAL_SPREAD = 0.5

# A chance of exactly 0 or 1 could not drift or move with a seed.
_EDGE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationModel:
    """What the simulated trials obey.

    `luck` is the share of a single run's variance that repeating the run redraws: 0 makes every
    task all or nothing, 1 makes all tasks alike. `shared` is how far the systems find the same
    tasks hard. `seed_effect` (a standard deviation) and `drift` (from the first run to the last)
    act on the log-odds of passing.
    """

    luck: float = 0.6
    shared: float = 0.8
    seeds: int = 0
    seed_effect: float = 0.0
    drift: float = 0.0
    partial: bool = False
    pass_score: float = 0.5
    error_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("luck", "shared", "pass_score", "error_rate"):
            probability(name, getattr(self, name))
        whole_number("seeds", self.seeds, least=0)
        if not (np.isfinite(self.seed_effect) and self.seed_effect >= 0):
            raise ArgumentError(
                "seed_effect", "must be a standard deviation >= 0", self.seed_effect
            )
        if not np.isfinite(self.drift):
            raise ArgumentError("drift", "must be a finite change of log-odds", self.drift)


@in_screen_words
def simulate(
    *,
    tasks: int = 20,
    runs: int = 10,
    rate: float | Sequence[float] | Mapping[str, float] = 0.7,
    world: SimulationModel | None = None,
    seed: int = 0,
) -> Trials:
    """Seeded trials: `tasks` x `runs` for every system in `rate` (its mean chance of passing).

    The same seed gives the same trials.

    >>> trials = simulate(tasks=4, runs=5, rate={"a": 0.9, "b": 0.5}, seed=1)
    >>> len(trials), trials.systems
    (40, ('a', 'b'))
    """
    rules = SimulationModel() if world is None else world
    if not isinstance(rules, SimulationModel):
        raise ArgumentError("world", "must be SimulationModel(...)", world)
    size = whole_number("tasks", tasks), whole_number("runs", runs)
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    difficulty = rng.standard_normal(size[0])
    if isinstance(rate, Mapping):
        named = dict(rate)
    else:
        rates = list(rate) if isinstance(rate, Sequence) else [rate]
        many = len(rates) > 1
        named = {f"agent-{i + 1}" if many else "agent": value for i, value in enumerate(rates)}
    if not named:
        raise ArgumentError("rate", "must name at least one agent", rate)
    systems = {name: probability("rate", value, open_ends=True) for name, value in named.items()}
    seed_numbers = rng.permutation(np.arange(1, rules.seeds + 1))
    effects = rules.seed_effect * rng.standard_normal(max(rules.seeds, 1))
    columns = [
        _one_system(mean, rules, rng, difficulty=difficulty, runs=size[1], effects=effects)
        for mean in systems.values()
    ]
    return _table(tuple(systems), columns, size, seed_numbers, seed=seed)


def _one_system(
    mean: float,
    rules: SimulationModel,
    rng: np.random.Generator,
    *,
    difficulty: Floats,
    runs: int,
    effects: Floats,
) -> dict[str, NDArray[np.generic]]:
    """Flat columns, task by task: outcome, score, and what each attempt took."""
    own = rng.standard_normal(difficulty.size)
    ease = np.sqrt(rules.shared) * difficulty + np.sqrt(1 - rules.shared) * own
    chance = _chances(_task_rates(ease, mean, rules), rules, runs, effects)
    score = _scores(chance, rules, rng)
    passed = score >= (rules.pass_score if rules.partial else 1.0)
    errored = rng.random(chance.shape) < rules.error_rate
    outcome = np.where(errored, Outcome.ERRORED, passed).astype(np.int8)
    return {
        "outcome": outcome.ravel(),
        "score": np.where(errored, np.nan, score).ravel(),
        **_resources(outcome, ease, rng),
    }


def _task_rates(ease: Floats, mean: float, rules: SimulationModel) -> Floats:
    """A beta distribution of task rates with the wanted mean and variance between tasks."""
    between = (1 - rules.luck) * (_PARTIAL_SPREAD if rules.partial else 1.0)
    if between == 0:
        return np.full(ease.size, mean)
    if between == 1:
        return (special.ndtr(ease) < mean).astype(np.float64)
    precision = 1 / between - 1
    rates = special.betaincinv(mean * precision, (1 - mean) * precision, special.ndtr(ease))
    return np.asarray(rates)


def _chances(rates: Floats, rules: SimulationModel, runs: int, effects: Floats) -> Floats:
    """The chance of each run: rows are tasks, columns are runs."""
    position = np.linspace(0.0, 1.0, runs) if runs > 1 else np.zeros(1)
    shift = rules.drift * position
    if rules.seeds:
        shift = shift + effects[np.arange(runs) % rules.seeds]
    if not shift.any():
        return np.repeat(rates[:, None], runs, axis=1)
    inside = np.clip(rates, _EDGE, 1 - _EDGE)
    return np.asarray(special.expit(special.logit(inside)[:, None] + shift))


def _scores(chance: Floats, rules: SimulationModel, rng: np.random.Generator) -> Floats:
    if not rules.partial:
        return (rng.random(chance.shape) < chance).astype(np.float64)
    if rules.luck == 0:
        return chance
    # Beta scores around each chance; this precision makes the luck share what was asked for.
    precision = (1 - _PARTIAL_SPREAD * (1 - rules.luck)) / (_PARTIAL_SPREAD * rules.luck) - 1
    inside = np.clip(chance, _EDGE, 1 - _EDGE)
    return rng.beta(inside * precision, (1 - inside) * precision)


def _resources(
    outcome: NDArray[np.int8], ease: Floats, rng: np.random.Generator
) -> dict[str, NDArray[np.generic]]:
    """Turns grow with difficulty and with failing; the rest follows the turns."""
    hard = np.exp(-0.35 * ease)[:, None]
    turns = 1 + rng.poisson(4 * hard * np.where(outcome == Outcome.PASSED, 1.0, 1.5))
    tokens_in = np.round(turns * 900 * rng.lognormal(0.0, 0.2, turns.shape))
    tokens_out = np.round(turns * 120 * rng.lognormal(0.0, 0.3, turns.shape))
    columns = {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost": np.round(tokens_in * 1e-6 + tokens_out * 5e-6, 6),
        "seconds": np.round(turns * 1.8 * rng.lognormal(0.0, 0.25, turns.shape), 2),
        "turns": turns.astype(np.float64),
        "tool_calls": (turns - 1).astype(np.float64),
    }
    return {name: column.ravel() for name, column in columns.items()}


def _table(
    systems: tuple[str, ...],
    columns: Sequence[Mapping[str, NDArray[np.generic]]],
    size: tuple[int, int],
    seed_numbers: NDArray[np.int64],
    *,
    seed: int,
) -> Trials:
    tasks, runs = size
    digits = len(str(tasks))
    names = tuple(f"task-{i + 1:0{digits}}" for i in range(tasks))
    rows = tasks * runs
    joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    run = np.tile(np.tile(np.arange(runs), tasks), len(systems))
    return Trials(
        system=Categorical(systems, np.repeat(np.arange(len(systems), dtype=np.int32), rows)),
        task=Categorical(
            names, np.tile(np.repeat(np.arange(tasks, dtype=np.int32), runs), len(systems))
        ),
        trial=run.astype(np.int64),
        outcome=joined.pop("outcome").astype(np.int8),
        score=joined.pop("score").astype(np.float64),
        seed=seed_numbers[run % len(seed_numbers)].astype(np.int64) if len(seed_numbers) else None,
        features={name: column.astype(np.float64) for name, column in joined.items()},
        sources=(Source(name=f"simulated, seed {seed}", format="simulate", sha256=""),),
    )


# Two made-up agents and three surprises that a single run, or a mean, would not show.

TASKS, RUNS, K = 24, 20, 5
SEED = 10

# Two points apart, where twenty runs of each task tell four; a good half of the spread is luck.
_RATES = {"agent-a": 0.78, "agent-b": 0.80}


_WORLD = SimulationModel(luck=0.6, shared=0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration(Displayed):
    """The report on both agents, B against A, and the k of the first surprise."""

    report: Report
    comparison: Comparison
    k: int

    def __repr__(self) -> str:
        return short_repr("Demonstration of two made-up agents", see=".report, .comparison")


def demonstrate(*, seed: int = SEED, confidence: float = CONFIDENCE) -> Demonstration:
    """Simulate two agents and measure them as any others.

    >>> demonstration = demonstrate()
    >>> demonstration.comparison.mean_score.answer("this suite")
    'undecided'
    """
    from passhat.analysis.comparing.comparison import compare
    from passhat.analysis.reports.measure import measure

    trials = simulate(tasks=TASKS, runs=RUNS, rate=_RATES, world=_WORLD, seed=seed)
    a, b = (trials.where(system=name) for name in _RATES)
    return Demonstration(
        report=measure(trials, ks=(1, K), confidence=confidence, seed=seed),
        comparison=compare(b, a, ks=(1, K), confidence=confidence, seed=seed),
        k=K,
    )
