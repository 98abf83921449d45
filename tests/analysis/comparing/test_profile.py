import numpy as np
import pytest

from passhat.analysis.comparing.ranking import profile
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.stats.estimate import Unavailable
from passhat.stats.passk import pass_hat_k
from passhat.stats.proportions import proportion_interval

FIELD = simulate(tasks=30, runs=5, rate=list(np.linspace(0.3, 0.9, 12)), seed=1)


def _norm(found, name):
    return next(norm for norm in found.norms if norm.name == name)


def test_the_field_holds_the_mean_pass_hat_of_every_reference_agent():
    found = profile(simulate(tasks=30, runs=5, seed=2), FIELD)
    field = dict(_norm(found, "pass^3").field)
    assert len(field) == 12
    for name, value in field.items():
        tally = FIELD.tally(name)
        assert value == pytest.approx(np.mean(pass_hat_k(tally.runs(), tally.passed, 3)))


def test_the_percentile_is_the_share_of_the_field_below():
    found = profile(simulate(tasks=30, runs=5, rate=0.65, seed=3), FIELD)
    for norm in found.norms:
        below = np.mean([value < norm.value.value for _, value in norm.field])
        tied = np.mean([value == norm.value.value for _, value in norm.field])
        assert norm.percentile.value == pytest.approx(below + tied / 2)
        assert norm.percentile.value in norm.percentile.interval


def test_a_surer_agent_is_placed_more_surely_but_never_beyond_what_the_field_allows():
    vague = profile(simulate(tasks=6, runs=5, rate=0.65, seed=3), FIELD)
    sure = profile(simulate(tasks=400, runs=5, rate=0.65, seed=3), FIELD)
    widths = [_norm(p, "pass^1").percentile.interval.width for p in (vague, sure)]
    assert widths[0] > widths[1] > 0.2


def test_the_agent_itself_is_left_out_of_the_field_and_that_is_noted():
    found = profile(FIELD.where(system="agent-3"), FIELD)
    assert "agent-3" not in found.agents
    assert found.notes == ("agent-3 is also in the reference and was left out of it",)


def test_a_reference_agent_with_too_few_runs_is_named():
    short = simulate(tasks=10, runs=2, rate={"short": 0.5, "long": 0.5}, seed=1)
    found = profile(simulate(tasks=10, runs=4, seed=2), short)
    assert set(_norm(found, "pass^4").missing) == {"short", "long"}
    assert isinstance(_norm(found, "pass^4").percentile, Unavailable)


def test_a_flaky_agent_has_a_high_flaky_share():
    calm = simulate(tasks=30, runs=20, rate=[0.7] * 5, world=SimulationModel(luck=0.02), seed=1)
    wild = simulate(tasks=30, runs=20, rate=0.7, world=SimulationModel(luck=1.0), seed=2)
    norm = _norm(profile(wild, calm), "flaky share")
    assert norm.percentile.value == 1.0
    assert norm.high_is_good is False


def test_a_reference_without_another_agent_is_refused():
    alone = simulate(tasks=3, runs=3)
    with pytest.raises(ArgumentError, match="reference must hold another agent"):
        profile(alone, alone)


@pytest.mark.parametrize("rate", [0.35, 0.65, 0.999])
def test_the_agents_own_doubt_and_the_smallness_of_the_field_each_get_half_of_the_error(rate):
    perfect = simulate(tasks=30, runs=5, rate={"p": 0.999, "q": 0.999}, seed=9)
    field = Trials.concat([FIELD, perfect])
    agent = simulate(tasks=30, runs=5, rate={"me": rate}, seed=3)
    found, surer = profile(agent, field), profile(agent, field, confidence=0.975)
    for name in ("pass^1", "pass^4", "flaky share"):
        norm, own = _norm(found, name), _norm(surer, name)
        values = np.array([value for _, value in norm.field])
        ends = own.value.interval
        under, up_to = (values < ends.low).sum(), (values <= ends.high).sum()
        low = proportion_interval(under, values.size, confidence=0.975).low
        high = proportion_interval(up_to, values.size, confidence=0.975).high
        assert norm.percentile.interval.low == pytest.approx(low)
        assert norm.percentile.interval.high == pytest.approx(high)


def test_what_is_kept_from_the_first_run_to_k_in_a_row_is_over_tasks_with_k_runs():
    short = Trials.from_columns(system=["agent"] * 2, task=["short"] * 2, passed=[1, 1])
    agent = Trials.concat([simulate(tasks=20, runs=5, rate=0.8, seed=2), short])
    tally = simulate(tasks=20, runs=5, rate=0.8, seed=2).tally()
    once, four = (pass_hat_k(tally.runs(), tally.passed, k).mean() for k in (1, 4))
    norm = _norm(profile(agent, FIELD), "pass^4/pass^1")
    assert norm.value.value == pytest.approx(four / once)
    assert norm.high_is_good is True


@pytest.mark.parametrize(("agents", "notes"), [(9, 1), (10, 0)])
def test_fewer_than_ten_reference_agents_are_noted(agents, notes):
    field = simulate(tasks=5, runs=4, rate=[0.5] * agents, seed=1)
    found = profile(simulate(tasks=5, runs=4, seed=2), field)
    assert len(found.notes) == notes


def test_only_one_system_is_profiled_at_a_time():
    with pytest.raises(ArgumentError, match="trials must hold exactly one agent to profile"):
        profile(simulate(tasks=3, runs=3, rate={"a": 0.5, "b": 0.6}), FIELD)
