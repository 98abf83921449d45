"""Small suites for the tests of the runner."""

from dataclasses import replace

import pytest

from passhat.records import Behaviour, Model, ModelSystem, Pairing, Suite, Task


def _suite(system, *, tasks=1, runs=1, task=None, **options):
    base = task or Task(name="task", prompt="Say 4.")
    names = [base.name] if tasks == 1 else [f"{base.name} {i}" for i in range(tasks)]
    pairings = tuple(
        Pairing(system=system, task=replace(base, name=name), runs=runs, label=name)
        for name in names
    )
    return Suite(name="suite", pairings=pairings, **options)


def _scripted(*behaviours, **options):
    model = Model(name="scripted", script=behaviours or (Behaviour(answer="4"),))
    return ModelSystem(name="agent", model=model, **options)


@pytest.fixture
def suite_of():
    """A suite of one system on one or more tasks."""
    return _suite


@pytest.fixture
def scripted():
    """A system with a scripted model."""
    return _scripted
