"""A storm: thousands of calls to a provider that keeps refusing, failing and hanging up."""

import pytest

from passhat.records import Model, ModelSystem, Outcome, Pairing, Prices, Suite, Task, TokenUsage
from passhat.runner import run_trials
from passhat.runner.models.exchange import Reply
from passhat.testing import WireServer

STORM = {"429": 0.20, "500": 0.03, "529": 0.02, "cut": 0.02}


@pytest.mark.slow("a storm")
@pytest.mark.parametrize(
    ("tasks", "runs"),
    [(20, 20), pytest.param(60, 100, marks=pytest.mark.slow("six thousand calls"))],
)
def test_in_a_storm_no_call_is_lost_and_none_is_counted_twice(tasks, runs):
    def answer(asked):
        return Reply(text="ok", usage=TokenUsage(tokens_in=3, tokens_out=2))

    with WireServer(answer, troubles=STORM, keep=False) as server:
        model = Model(name="m", base_url=server.url, prices=Prices(input=1e6, output=1e6))
        system = ModelSystem(name="agent", model=model)
        pairings = tuple(
            Pairing(system=system, task=Task(name=f"task {i}", prompt="?"), runs=runs, label="t")
            for i in range(tasks)
        )
        retries = []
        result = run_trials(
            Suite(name="storm", pairings=pairings, retries=50),
            concurrency=16,
            on_event=lambda event: (
                retries.append(event) if type(event).__name__ == "Retry" else None
            ),
        )
    calls = tasks * runs
    assert {trial.outcome for trial in result.trials} == {Outcome.PASSED}
    assert len({(t.task, t.trial) for t in result.trials}) == len(result.trials) == calls
    assert server.answered == calls
    assert len(retries) == server.troubled.total() > 0.2 * calls
    assert result.given_up.calls == server.troubled["cut"] > 0
    assert result.tokens == 5 * calls
    assert round(result.cost) == 5 * calls
    assert sum(trial.tokens_in for trial in result.trials) == 3 * calls
