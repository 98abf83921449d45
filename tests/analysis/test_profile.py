import numpy as np
import pytest

from passhat.analysis.profile import profile
from passhat.analysis.simulate import World, simulate
from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.passk import pass_hat_k

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
    calm = simulate(tasks=30, runs=20, rate=[0.7] * 5, world=World(luck=0.02), seed=1)
    wild = simulate(tasks=30, runs=20, rate=0.7, world=World(luck=1.0), seed=2)
    norm = _norm(profile(wild, calm), "flaky share")
    assert norm.percentile.value == 1.0
    assert norm.high_is_good is False


def test_a_reference_without_another_agent_is_refused():
    alone = simulate(tasks=3, runs=3)
    with pytest.raises(ArgumentError, match="reference must hold another system"):
        profile(alone, alone)
