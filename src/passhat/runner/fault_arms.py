"""A suite with and without its faults, so that recovery can be measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from passhat.records import ModelSystem, Pairing, Suite, System

FAULTY = " +faults"
"""What the name of a system with faults ends in."""

Arms = Literal["none", "both", "only"]


def fault_arms(suite: Suite, arms: Arms = "none") -> Suite:
    """The suite without faults, with them, or both side by side.

    The systems of the second arm are called like those of the first, with ` +faults` behind.
    Trials of both are interleaved, and each pair shares its task.

    >>> from passhat.records import Fault, Model, Task
    >>> model = Model(name="scripted", faults=(Fault(kind="latency", probability=0.1),))
    >>> pairing = Pairing(system=ModelSystem(name="a", model=model), task=Task(name="t"),
    ...                   runs=1, label="t")
    >>> fault_arms(Suite(name="s", pairings=(pairing,)), "both").systems
    ('a', 'a +faults')
    """
    plain = {name: replace(server, faults=()) for name, server in suite.servers.items()}
    broken = {f"{name}{FAULTY}": server for name, server in suite.servers.items()}
    pairings: list[Pairing] = []
    if arms != "only":
        pairings += [replace(p, system=_sound(p.system)) for p in suite.pairings]
    if arms != "none":
        pairings += [_broken(p, suite) for p in suite.pairings if _has_faults(p.system, suite)]
    return replace(suite, pairings=tuple(pairings), servers={**plain, **broken})


def _sound(system: System) -> System:
    if not isinstance(system, ModelSystem):
        return system
    return replace(system, model=replace(system.model, faults=()))


def _broken(pairing: Pairing, suite: Suite) -> Pairing:
    system = pairing.system
    assert isinstance(system, ModelSystem), "only models and their servers have faults"
    names = tuple(
        f"{name}{FAULTY}" if suite.servers[name].faults else name for name in system.servers
    )
    twin = replace(system, name=f"{system.name}{FAULTY}", servers=names)
    return replace(pairing, system=twin, label=f"{pairing.label}{FAULTY}")


def _has_faults(system: System, suite: Suite) -> bool:
    return isinstance(system, ModelSystem) and (
        bool(system.model.faults) or any(suite.servers[name].faults for name in system.servers)
    )
