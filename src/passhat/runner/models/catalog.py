"""From the name of a model to the place where it answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from passhat.errors import SuiteError
from passhat.records import Model
from passhat.records.providers import LOCAL, Provider, find_provider, unknown_model
from passhat.runner.models.anthropic import ANTHROPIC
from passhat.runner.models.dialect import Dialect
from passhat.runner.models.openai_chat import OPENAI_CHAT
from passhat.runner.models.openai_responses import OPENAI_RESPONSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where one model answers, and in which words."""

    provider: str
    model: str
    dialect: Dialect
    base_url: str
    key: str
    key_variable: str
    prices: str | None


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES)
}


def locate(model: Model, environment: Mapping[str, str] | None = None) -> Address:
    """Where a model of the suite answers: by its own settings, its prefix, or its family.

    >>> at = locate(Model(name="claude-opus-5"), {"ANTHROPIC_API_KEY": "k"})
    >>> at.provider, at.dialect.name, at.base_url
    ('anthropic', 'anthropic', 'https://api.anthropic.com')
    >>> locate(Model(name="ollama/qwen3:8b"), {}).model
    'qwen3:8b'
    """
    variables = os.environ if environment is None else environment
    provider, name = _provider(model, variables)
    base_url = model.base_url or _first(variables, provider.url_variables) or provider.base_url
    if not base_url:
        wanted = " or ".join(provider.url_variables)
        raise SuiteError(f'model "{model.name}" needs an address: set `base_url:` or {wanted}')
    return Address(
        provider=provider.name,
        model=name,
        dialect=DIALECTS[model.wire or provider.wire],
        base_url=base_url,
        key=_key(model, provider, base_url, variables),
        key_variable=model.api_key.reference if model.api_key else _named(provider.key_variables),
        prices=provider.prices,
    )


def provider_of(model: Model, environment: Mapping[str, str] | None = None) -> str:
    """The name under which a model's rate limits and retries are counted."""
    if model.name == "scripted" or model.name.startswith(f"{LOCAL}/"):
        return model.name.partition("/")[0]
    return _provider(model, os.environ if environment is None else environment)[0].name


def _provider(model: Model, variables: Mapping[str, str]) -> tuple[Provider, str]:
    found = find_provider(model.name, base_url=model.base_url, wire=model.wire, variables=variables)
    if found is None:
        raise SuiteError(unknown_model(model.name))
    return found


def _key(model: Model, provider: Provider, base_url: str, variables: Mapping[str, str]) -> str:
    if model.api_key is not None:
        return model.api_key.reveal()
    key = _first(variables, provider.key_variables)
    if not key and provider.key_variables and base_url == provider.base_url:
        raise SuiteError(
            f'model "{model.name}" needs a key: set {_named(provider.key_variables)}, or give '
            "`api_key: ${VARIABLE}`; or replay a cassette, or use `scripted` or local/smollm2"
        )
    return key


def _first(variables: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((variables[name] for name in names if variables.get(name)), "")


def _named(variables: tuple[str, ...]) -> str:
    return " or ".join(variables)
