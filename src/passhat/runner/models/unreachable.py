"""Models that a run would ask and cannot: a key that is not set, weights that are not here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from passhat.errors import PasshatError, SuiteError
from passhat.records import SCRIPTED, Model, ModelSystem, Suite
from passhat.records.providers import LOCAL


def refuse_unreachable(suite: Suite, systems: Collection[str]) -> None:
    """Raise if models of these systems, or of their judges, can only fail; the error names all."""
    models = {(model.name, model.base_url): model for model in _asked(suite, systems)}
    reasons = (why_unreachable(model, suite.directory) for model in models.values())
    if found := list(dict.fromkeys(filter(None, reasons))):
        raise SuiteError("\n".join(found))


def why_unreachable(model: Model, directory: Path) -> str | None:
    """Why a model cannot be asked here, and what to do; None where it can."""
    if model.name == SCRIPTED:
        return None
    if model.name.startswith(f"{LOCAL}/"):
        from passhat.runner.local_model import why_not_here

        return why_not_here(model.name, directory)
    from passhat.runner.models.catalog import locate

    try:
        locate(model)
    except PasshatError as error:
        return str(error)
    return None


def _asked(suite: Suite, systems: Collection[str]) -> Iterator[Model]:
    for pairing in suite.pairings:
        if pairing.system.name not in systems:
            continue
        if isinstance(pairing.system, ModelSystem):
            yield pairing.system.model
        task = pairing.task
        for expectation in (*task.expect, *(e for step in task.steps for e in step.expect)):
            if expectation.matcher == "judge":
                yield expectation.options["model"]
