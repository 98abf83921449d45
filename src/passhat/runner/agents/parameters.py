"""Which arguments a user's function gets, by the names of its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from passhat.dataclass import dataclass
from passhat.errors import SuiteError

OFFERED = ("prompt", "task", "trial", "seed", "workdir", "values", "history")
"""What a function may ask for, by the names of its parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The arguments of a call: some by position, some by name."""

    by_place: tuple[str, ...] = ()
    by_name: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> set[str]:
        """Everything that the function takes."""
        return {*self.by_place, *self.by_name.values()}

    def call(self, function: Callable[..., Any], offered: Mapping[str, Any]) -> Callable[[], Any]:
        """The function with its arguments, ready to be called."""
        named = {name: offered[key] for name, key in self.by_name.items()}
        return functools.partial(function, *(offered[key] for key in self.by_place), **named)


def wanted_by(function: Callable[..., Any], *, about: str) -> Wanted:
    """The parameters of a function, and the argument for each.

    Parameters named in OFFERED get the value of that name. A single parameter of another name, or
    `*args` alone, gets the prompt; `**kwargs` alone gets everything by name. What a partial has
    bound stays as it is.

    >>> wanted_by(lambda question, /: True, about="mine").by_place
    ('prompt',)
    >>> sorted(wanted_by(lambda seed, *, prompt: True, about="mine").by_name)
    ['prompt', 'seed']
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Wanted(by_place=("prompt",))  # written in C, without a signature
    bound = function.keywords if isinstance(function, functools.partial) else {}
    parameters = [parameter for parameter in parameters if parameter.name not in bound]
    asked = _asked(parameters, about)
    kinds = {parameter.kind for parameter in parameters}
    if not asked and inspect.Parameter.VAR_POSITIONAL in kinds:
        return Wanted(by_place=("prompt",))
    if not asked and inspect.Parameter.VAR_KEYWORD in kinds:
        return Wanted(by_name={name: name for name in OFFERED})
    return Wanted(
        by_place=tuple(key for p, key in asked if p.kind is p.POSITIONAL_ONLY),
        by_name={p.name: key for p, key in asked if p.kind is not p.POSITIONAL_ONLY},
    )


def _asked(parameters: list[inspect.Parameter], about: str) -> list[tuple[inspect.Parameter, str]]:
    """The parameters that get a value, and which."""
    asked: list[tuple[inspect.Parameter, str]] = []
    skipped = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if skipped and parameter.kind is parameter.POSITIONAL_ONLY:
            continue  # nothing can be passed by position after a gap
        if parameter.name in OFFERED:
            asked.append((parameter, parameter.name))
        elif parameter.default is not parameter.empty:
            skipped = True
        elif asked:
            raise SuiteError(
                f'"{about}" has a parameter "{parameter.name}", for which there is no value; there '
                f"are values for {', '.join(OFFERED)}"
            )
        else:
            asked.append((parameter, "prompt"))
    return asked
