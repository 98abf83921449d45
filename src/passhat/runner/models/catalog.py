"""From the name of a model to the place where it answers."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from passhat.errors import SuiteError
from passhat.records import Model, WireFormat
from passhat.runner.models.anthropic import ANTHROPIC
from passhat.runner.models.dialect import Dialect
from passhat.runner.models.openai_chat import OPENAI_CHAT
from passhat.runner.models.openai_responses import OPENAI_RESPONSES
from passhat.runner.models.prices import known_models

# Names in a price list that nobody runs as an agent.
_NOT_AGENTS = r"embed|whisper|tts|audio|realtime|moderation|image|imagen|dall|veo|^ft:|\*|-$"

LOCAL = "local"
"""The provider of models that passhat starts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where a family of models lives: its address, the variables people set, its price list."""

    name: str
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    wire: WireFormat = "openai-chat"
    prices: str | None = None
    family: str = ""


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

PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="anthropic",
            base_url="https://api.anthropic.com",
            key_variables=("ANTHROPIC_API_KEY",),
            url_variables=("ANTHROPIC_BASE_URL",),
            wire="anthropic",
            prices="anthropic",
            family=r"claude",
        ),
        Provider(
            name="openai",
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            url_variables=("OPENAI_BASE_URL",),
            prices="openai",
            family=r"gpt-|chatgpt|o\d",
        ),
        Provider(
            name="google",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            prices="google",
            family=r"gemini",
        ),
        Provider(
            name="azure",
            key_variables=("AZURE_OPENAI_API_KEY",),
            url_variables=("AZURE_OPENAI_ENDPOINT",),
            prices="azure",
        ),
        Provider(
            name="openrouter",
            base_url="https://openrouter.ai/api/v1",
            key_variables=("OPENROUTER_API_KEY",),
            prices="openrouter",
        ),
        Provider(
            name="groq",
            base_url="https://api.groq.com/openai/v1",
            key_variables=("GROQ_API_KEY",),
            prices="groq",
        ),
        Provider(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            key_variables=("MISTRAL_API_KEY",),
            prices="mistral",
        ),
        Provider(
            name="deepseek",
            base_url="https://api.deepseek.com/v1",
            key_variables=("DEEPSEEK_API_KEY",),
            prices="deepseek",
        ),
        Provider(
            name="ollama",
            base_url="http://localhost:11434/v1",
            url_variables=("OLLAMA_BASE_URL",),
        ),
        Provider(
            name="vllm", base_url="http://localhost:8000/v1", url_variables=("VLLM_BASE_URL",)
        ),
        Provider(
            name="llamacpp",
            base_url="http://localhost:8080/v1",
            url_variables=("LLAMACPP_BASE_URL",),
        ),
    )
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
    prefix, slash, rest = model.name.partition("/")
    if slash and prefix in PROVIDERS:
        return PROVIDERS[prefix], rest
    for provider in PROVIDERS.values():
        if provider.family and re.match(provider.family, model.name):
            return provider, model.name
    if model.base_url or "OPENAI_BASE_URL" in variables:
        # Somebody's own server: it knows its models, whatever they are called.
        return PROVIDERS["anthropic" if model.wire == "anthropic" else "openai"], model.name
    raise SuiteError(_unknown(model.name))


def _unknown(name: str) -> str:
    every = [m for p in ("anthropic", "openai", "google") for m in known_models(p)]
    known = sorted({model for model in every if not re.search(_NOT_AGENTS, model)})
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f'no model is called "{name}".{guess} There are: scripted, local/smollm2, local/FILE.gguf, '
        f"PROVIDER/MODEL with {', '.join(PROVIDERS)}, any name with a `base_url:`, and "
        f"{', '.join(known)}"
    )


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
