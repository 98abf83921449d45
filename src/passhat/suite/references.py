"""References to the environment: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from passhat.records import Secret

REFERENCE = re.compile(
    r"\$(?P<escape>\$(?=\{))"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<operator>:-|:\?)(?P<operand>[^{}]*))?\}"
)


class UnsetVariable(LookupError):
    """A variable that the suite refers to is not set; the message is for the user."""


def refers(text: str) -> bool:
    """Whether a text has a reference in it."""
    return any(match["name"] for match in REFERENCE.finditer(text))


def substitute(text: str, env: Mapping[str, str]) -> str:
    """The text with its references replaced. An empty variable counts as unset after `:`.

    >>> substitute("${HOST:-localhost}:${PORT}", {"PORT": "80"})
    'localhost:80'
    >>> substitute("$${PORT} stays", {})
    '${PORT} stays'
    """
    return REFERENCE.sub(lambda match: _value(match, env), text)


def secret(text: str, env: Mapping[str, str]) -> Secret:
    """The text as a secret: a variable that is not set is an error only when it is needed."""
    try:
        return Secret(text, substitute(text, env))
    except UnsetVariable as problem:
        return Secret(text, None, missing=str(problem))


def _value(match: re.Match[str], env: Mapping[str, str]) -> str:
    name, operator, operand = match["name"], match["operator"], match["operand"]
    if name is None:
        return "$"
    value = env.get(name)
    if value or (value is not None and operator is None):
        return value
    if operator == ":-":
        return str(operand)
    if operator == ":?" and operand:
        raise UnsetVariable(f"{name} is not set: {operand}")
    raise UnsetVariable(
        f"{name} is not set: export it, write ${{{name}:-default}}, "
        f"or $${{{name}}} for the text itself"
    )
