"""From the name of a model to the address where it answers."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from passhat.errors import SuiteError
from passhat.records import SCRIPTED, Model
from passhat.records.providers import Provider, find_provider, is_local, unknown_model
from passhat.records.secrets import bare_address
from passhat.runner.models.anthropic import ANTHROPIC, ANTHROPIC_ON_VERTEX
from passhat.runner.models.bedrock import BEDROCK, AwsCredentials, AwsSigner
from passhat.runner.models.endpoint import ModelAddress
from passhat.runner.models.exchange import WireFormat
from passhat.runner.models.openai import OPENAI_CHAT, OPENAI_RESPONSES

OLLAMA_PORT = 11434
DEFAULT_REGION = "us-east-1"
"""The region that AWS's own tools take for an address that names none."""


WIRE_FORMATS: dict[str, WireFormat] = {
    wire_format.name: wire_format
    for wire_format in (ANTHROPIC, ANTHROPIC_ON_VERTEX, OPENAI_CHAT, OPENAI_RESPONSES, BEDROCK)
}


def locate(model: Model, environment: Mapping[str, str] | None = None) -> ModelAddress:
    """Where a model of the suite answers: by its own settings, its prefix, or its name.

    >>> at = locate(Model(name="claude-opus-5"), {"ANTHROPIC_API_KEY": "k"})
    >>> at.provider, at.wire_format.name, at.base_url
    ('anthropic', 'anthropic', 'https://api.anthropic.com')
    >>> locate(Model(name="ollama/qwen3:8b"), {}).model
    'qwen3:8b'
    """
    variables = os.environ if environment is None else environment
    provider, name = _provider(model, variables)
    base_url = model.base_url or _given_address(model, provider, variables)
    base_url = base_url or _filled_address(model, provider, variables)
    if not base_url:
        wanted = " or ".join(provider.url_variables)
        raise SuiteError(f'model "{model.name}" needs an address: set `base_url:` or {wanted}')
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018  # it is checked when it is read
    except ValueError:
        raise _no_address(model, base_url) from None
    if parts.scheme not in ("http", "https"):
        raise SuiteError(
            f'model "{model.name}": its address must begin with http:// or https://, '
            f"got {bare_address(base_url)!r}"
        )
    sign = _signer(model, provider, base_url, variables)
    return ModelAddress(
        provider=provider.name,
        model=name,
        wire_format=WIRE_FORMATS[model.wire or provider.wire],
        base_url=base_url,
        key="" if sign else _key(model, provider, base_url, variables),
        key_variable=model.api_key.reference if model.api_key else _named(provider.key_variables),
        prices=provider.prices,
        renamed=provider.renamed,
        sign=sign,
    )


def provider_of(model: Model, environment: Mapping[str, str] | None = None) -> str:
    """The name under which a model's rate limits and retries are counted."""
    if model.name == SCRIPTED or is_local(model.name):
        return model.name.partition("/")[0]
    return _provider(model, os.environ if environment is None else environment)[0].name


def _provider(model: Model, variables: Mapping[str, str]) -> tuple[Provider, str]:
    provider = find_provider(
        model.name, base_url=model.base_url, wire=model.wire, variables=variables
    )
    if provider is None:
        raise SuiteError(unknown_model(model.name))
    return provider


def _given_address(model: Model, provider: Provider, variables: Mapping[str, str]) -> str:
    """The address that a variable gives, completed as each provider's users write it."""
    given = _first(variables, provider.url_variables)
    if not given:
        return ""
    try:
        if provider.name == "ollama" and given == variables.get("OLLAMA_HOST"):
            return _ollama_address(given)
        if provider.name == "azure" and urlsplit(given).path in ("", "/"):
            return f"{given.rstrip('/')}/openai/v1"
    except ValueError:
        raise _no_address(model, given) from None
    return given


def _ollama_address(host: str) -> str:
    """The address behind OLLAMA_HOST, which may be a bare host, a port, or 0.0.0.0.

    >>> _ollama_address("0.0.0.0:11434"), _ollama_address("http://gpu:8080")
    ('http://127.0.0.1:11434/v1', 'http://gpu:8080/v1')
    """
    parts = urlsplit(host if "://" in host else f"http://{host}")
    name = "127.0.0.1" if parts.hostname in (None, "", "0.0.0.0") else parts.hostname  # noqa: S104
    port = parts.port or OLLAMA_PORT
    return f"{parts.scheme}://{name}:{port}{parts.path.rstrip('/')}/v1"


def _filled_address(model: Model, provider: Provider, variables: Mapping[str, str]) -> str:
    """The usual address of a provider, with region, project and so on filled in."""
    address = provider.base_url
    for place, names in provider.places.items():
        value = _first(variables, names)
        if not value:
            raise SuiteError(
                f'model "{model.name}" needs its {place}: set {_named(names)}, or give `base_url:`'
            )
        address = address.replace(f"{{{place}}}", value)
    return address.replace("//global-", "//")  # Vertex AI's global location has no prefix


def _no_address(model: Model, given: str) -> SuiteError:
    """The error for a text that is no address; the reason Python gives may quote a password."""
    return SuiteError(
        f'model "{model.name}": {bare_address(given)!r} is not an address such as '
        "https://HOST:PORT/v1"
    )


def _signer(
    model: Model, provider: Provider, base_url: str, variables: Mapping[str, str]
) -> AwsSigner | None:
    """The signer of requests to Bedrock, with AWS credentials and without a Bedrock API key."""
    has_key = model.api_key is not None or bool(_first(variables, provider.key_variables))
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    if provider.name != "bedrock" or has_key or not all(variables.get(name) for name in names):
        return None
    credentials = AwsCredentials(
        access_key=variables[names[0]],
        secret_key=variables[names[1]],
        token=variables.get("AWS_SESSION_TOKEN", ""),
    )
    in_address = re.search(r"bedrock-runtime[\w-]*\.([\w-]+)\.amazonaws", base_url)
    region = in_address[1] if in_address else _first(variables, provider.places["region"])
    return AwsSigner(credentials=credentials, region=region or DEFAULT_REGION)


def _key(model: Model, provider: Provider, base_url: str, variables: Mapping[str, str]) -> str:
    # A key that comes from a file often ends with the end of a line.
    if model.api_key is not None:
        return model.api_key.reveal().strip()
    key = _first(variables, provider.key_variables).strip()
    usual = base_url == provider.base_url or bool(provider.places and model.base_url is None)
    if not key and provider.key_variables and usual:
        known = provider.key_variables
        if provider.name == "bedrock":
            known = (*known, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        raise SuiteError(
            f'model "{model.name}" needs a key: set {_named(known)}, or give '
            "`api_key: ${VARIABLE}`; or replay a cassette, or use `scripted` or local/smollm2"
        )
    return key


def _first(variables: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((variables[name] for name in names if variables.get(name)), "")


def _named(variables: tuple[str, ...]) -> str:
    return " or ".join(variables)
