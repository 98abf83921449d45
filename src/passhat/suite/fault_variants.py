"""A suite with and without its faults: what `--faults` runs."""

from __future__ import annotations

from dataclasses import replace

from passhat.errors import SuiteError
from passhat.records.suite import Pairing, Suite
from passhat.records.system import ModelSystem, Server, System

UNDER_FAULTS = " under faults"


def has_faults(suite: Suite) -> bool:
    """Whether anything in the suite goes wrong on purpose."""
    models = (system.model for system in suite.model_systems)
    return any(one.faults for one in (*suite.servers.values(), *models))


def vary(suite: Suite, faults: str | None) -> Suite:
    """The suite without its faults (None), with them (`only`), or both ways (`both`)."""
    if faults is None:
        return without_faults(suite) if has_faults(suite) else suite
    if not has_faults(suite):
        raise SuiteError(
            f"{suite.path or suite.name}: `faults` is given, but the suite has none; add `faults:` "
            "to a server or a model"
        )
    return suite if faults == "only" else _both(suite)


def variants(suite: Suite) -> dict[str, str]:
    """The systems that were run both ways: the plain name, and the one under faults."""
    pairs = {name: name + UNDER_FAULTS for name in suite.systems}
    return {plain: faulty for plain, faulty in pairs.items() if faulty in suite.systems}


def plain_pairings(suite: Suite) -> tuple[Pairing, ...]:
    """What gates and floors are about: agents as they are, not their copies under faults."""
    shadowed = set(variants(suite).values())
    return tuple(p for p in suite.pairings if p.system.name not in shadowed)


def without_faults(suite: Suite) -> Suite:
    """Everything as it is when nothing goes wrong on purpose."""
    return replace(
        suite,
        servers={name: replace(server, faults=()) for name, server in suite.servers.items()},
        pairings=tuple(_calm(pairing) for pairing in suite.pairings),
    )


def _calm(pairing: Pairing) -> Pairing:
    system = pairing.system
    if not isinstance(system, ModelSystem) or not system.model.faults:
        return pairing
    return replace(pairing, system=replace(system, model=replace(system.model, faults=())))


def _both(suite: Suite) -> Suite:
    plain = without_faults(suite)
    faulty: dict[str, Server] = {
        name + UNDER_FAULTS: server for name, server in suite.servers.items()
    }
    # Side by side, so that an early stop leaves both with the same number of runs.
    pairings = [
        p for a, b in zip(plain.pairings, suite.pairings, strict=True) for p in (a, _faulty(b))
    ]
    return replace(plain, servers={**plain.servers, **faulty}, pairings=tuple(pairings))


def _faulty(pairing: Pairing) -> Pairing:
    """The same pairing under another name, with the servers that misbehave."""
    system, name = pairing.system, pairing.system.name + UNDER_FAULTS
    if isinstance(system, ModelSystem):
        servers = tuple(server + UNDER_FAULTS for server in system.servers)
        named: System = replace(system, name=name, servers=servers)
    else:
        named = replace(system, name=name)
    return replace(pairing, system=named, label=pairing.label + UNDER_FAULTS)
