"""The garbage collector during a run: it runs rarely, and is left as it was."""

import gc
from contextlib import ExitStack

import pytest

from passhat.records import Behaviour
from passhat.runner import run_trials
from passhat.runner.run import ALLOCATIONS, less_garbage_collection


@pytest.fixture(autouse=True)
def _as_python_sets_it():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_collections_are_rare_while_a_run_lasts_and_as_before_afterwards(suite_of, scripted):
    seen = set()
    suite = suite_of(scripted(Behaviour(answer="yes")), tasks=2, runs=3)
    run_trials(suite, on_event=lambda event: seen.add(gc.get_threshold()))
    assert seen == {(ALLOCATIONS, 10, 10)}
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_the_last_of_several_runs_puts_the_setting_back(first_to_end):
    runs = [ExitStack(), ExitStack()]
    for run in runs:
        run.enter_context(less_garbage_collection())
    runs.pop(first_to_end).close()
    assert gc.get_threshold()[0] == ALLOCATIONS
    runs.pop().close()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, 10 * ALLOCATIONS])
def test_a_collector_that_is_off_or_rarer_still_is_left_alone(chosen):
    gc.set_threshold(chosen, 10, 10)
    with less_garbage_collection():
        assert gc.get_threshold() == (chosen, 10, 10)
    assert gc.get_threshold() == (chosen, 10, 10)
