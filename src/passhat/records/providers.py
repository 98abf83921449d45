"""Model providers, by the names of models, and coding agents by name.

Of a model: which provider its name means, and names that no provider knows. Of a coding agent: how
it is started without a person, and where its model is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from passhat.dataclass import dataclass
from passhat.messages import close_words, typo_hint
from passhat.records.suite import SCRIPTED, OutputKind, WireFormat

LOCAL = "local"
"""The provider of models that passhat starts itself."""

SMOLLM2 = "smollm2"
"""The local model whose weights `passhat local pull` brings."""

LISTED = ("anthropic", "openai", "google")
"""Providers whose models are meant by their bare names."""

# Names in a price list that are not run as agents.
_NOT_AGENTS = r"embed|whisper|tts|audio|realtime|moderation|image|imagen|dall|veo|^ft:|\*|-$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Where a family of models is served: its address, the variables people set, its price list.

    `places` are the parts of `base_url` in braces, each with the variables it is read from;
    `renamed` has the parameters that the provider calls something else.
    """

    name: str
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    url_variables: tuple[str, ...] = ()
    wire: WireFormat = "openai-chat"
    prices: str | None = None
    family: str = ""
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)


def _hosted(name: str, base_url: str, *key_variables: str, **more: Any) -> Provider:
    """A service on the web; its price list has its own name unless `prices` says otherwise."""
    return Provider(
        name=name, base_url=base_url, key_variables=key_variables, **({"prices": name} | more)
    )


def _local(name: str, port: int, *url_variables: str) -> Provider:
    """A server on the user's own machine, which needs no key."""
    return Provider(name=name, base_url=f"http://localhost:{port}/v1", url_variables=url_variables)


_VERTEX = "https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}"
_VERTEX_TOKENS = ("VERTEX_ACCESS_TOKEN", "GOOGLE_ACCESS_TOKEN")

PROVIDERS: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        _hosted(
            "anthropic",
            "https://api.anthropic.com",
            "ANTHROPIC_API_KEY",
            url_variables=("ANTHROPIC_BASE_URL",),
            wire="anthropic",
            family=r"claude",
        ),
        _hosted(
            "openai",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            url_variables=("OPENAI_BASE_URL",),
            family=r"gpt-|chatgpt|o\d",
        ),
        _hosted(
            "google",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            family=r"gemini",
        ),
        _hosted("azure", "", "AZURE_OPENAI_API_KEY", url_variables=("AZURE_OPENAI_ENDPOINT",)),
        _hosted("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        _hosted("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        _hosted(
            "mistral",
            "https://api.mistral.ai/v1",
            "MISTRAL_API_KEY",
            renamed={"seed": "random_seed"},
        ),
        _hosted("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        _hosted("xai", "https://api.x.ai/v1", "XAI_API_KEY", prices="x-ai"),
        _hosted(
            "together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "TOGETHERAI_API_KEY"
        ),
        _hosted(
            "fireworks",
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            "FIREWORKS_AI_API_KEY",
        ),
        _hosted("cohere", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY", "CO_API_KEY"),
        _hosted(
            "hf", "https://router.huggingface.co/v1", "HF_TOKEN", "HUGGINGFACE_API_KEY", prices=None
        ),
        _hosted(
            "bedrock",
            "https://bedrock-runtime.{region}.amazonaws.com",
            "AWS_BEARER_TOKEN_BEDROCK",
            url_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
            places={"region": ("AWS_REGION", "AWS_DEFAULT_REGION")},
            wire="bedrock-converse",
            prices="aws",
        ),
        _hosted(
            "vertex",
            f"{_VERTEX}/endpoints/openapi",
            *_VERTEX_TOKENS,
            url_variables=("VERTEX_BASE_URL",),
            places={
                "project": ("GOOGLE_CLOUD_PROJECT", "VERTEXAI_PROJECT"),
                "location": ("GOOGLE_CLOUD_LOCATION", "VERTEXAI_LOCATION"),
            },
            prices="google",
        ),
        _hosted(
            "vertex-anthropic",
            _VERTEX,
            *_VERTEX_TOKENS,
            url_variables=("ANTHROPIC_VERTEX_BASE_URL",),
            places={
                "project": ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
                "location": ("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION", "VERTEXAI_LOCATION"),
            },
            wire="anthropic-vertex",
            prices="anthropic",
        ),
        _local("lmstudio", 1234, "LMSTUDIO_BASE_URL"),
        _local("litellm", 4000, "LITELLM_BASE_URL", "LITELLM_PROXY_API_BASE"),
        _local("ollama", 11434, "OLLAMA_BASE_URL", "OLLAMA_HOST"),
        _local("vllm", 8000, "VLLM_BASE_URL"),
        _local("llamacpp", 8080, "LLAMACPP_BASE_URL"),
    )
}


def find_provider(
    name: str,
    *,
    base_url: str | None = None,
    wire: WireFormat | None = None,
    variables: Mapping[str, str],
) -> tuple[Provider, str] | None:
    """The provider that a model's name means, and the name by which it knows the model.

    >>> provider, model = find_provider("ollama/qwen3:8b", variables={})
    >>> provider.name, model
    ('ollama', 'qwen3:8b')
    >>> find_provider("gtp-5", variables={}) is None
    True
    """
    prefix, slash, rest = name.partition("/")
    if prefix == "vertex" and rest.startswith("claude"):
        prefix = "vertex-anthropic"  # Vertex AI serves Claude in Anthropic's own wire format
    if slash and prefix in PROVIDERS:
        return PROVIDERS[prefix], rest
    for provider in PROVIDERS.values():
        if provider.family and re.match(provider.family, name):
            return provider, name
    if base_url or "OPENAI_BASE_URL" in variables:
        # The user's own server: it knows its models, whatever they are called.
        return PROVIDERS["anthropic" if wire == "anthropic" else "openai"], name
    return None


def is_local(name: str) -> bool:
    """Whether a model of this name runs on this machine, in a process of ours."""
    return name.startswith(f"{LOCAL}/")


def is_model_name(name: str, *, base_url: str | None, variables: Mapping[str, str]) -> bool:
    """Whether a model can have this name: at a provider, as a script, or on this machine.

    >>> [is_model_name(n, base_url=None, variables={}) for n in ("scripted", "local/smolm", "o3")]
    [True, False, True]
    """
    if name == SCRIPTED:
        return True
    if is_local(name):
        return name == f"{LOCAL}/{SMOLLM2}" or name.endswith(".gguf")
    return find_provider(name, base_url=base_url, variables=variables) is not None


def unknown_model(name: str, *, listed: bool = True) -> str:
    """The message for an unknown model name: what may have been meant, and what there is.

    >>> unknown_model("antropic/claude-opus-5", listed=False)
    'no model is called "antropic/claude-opus-5". Did you mean anthropic/claude-opus-5?'
    """
    near = _near(name, model_names())
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    there = (
        f" There are: claude-*, gpt-*, o3 and the like, gemini-*, {SCRIPTED}, {LOCAL}/{SMOLLM2}, "
        f"{LOCAL}/FILE.gguf, PROVIDER/MODEL with {', '.join(PROVIDERS)}, and any name with a "
        "`base_url:`; `passhat check --models` names those that have a price"
    )
    return f'no model is called "{name}".{guess}{there if listed else ""}'


def unlisted_model(name: str) -> str | None:
    """A note on a name of a known family that no price list has: new, or mistyped.

    >>> unlisted_model("claude-opuss-5")
    'no price list has a model "claude-opuss-5" (did you mean claude-opus-5?): it is asked as it is'
    """
    provider, _, bare = name.rpartition("/")
    family = provider or next((p for p in LISTED if re.match(PROVIDERS[p].family, name)), "")
    known = known_models(family) if family in LISTED else []
    if not known or bare in known or _has_price(bare, family):
        return None
    hint = typo_hint(bare, known, cutoff=0.5)
    return f'no price list has a model "{name}"{hint}: it is asked as it is'


def model_names() -> list[str]:
    """Every model that has a price and can be an agent, as a suite names it.

    >>> names = model_names()
    >>> "gpt-5" in names, "gemma-3" in names, "google/gemma-3" in names
    (True, False, True)
    """
    return sorted(
        _written(provider.name, model)
        for provider in PROVIDERS.values()
        for model in known_models(provider.name)
        if not re.search(_NOT_AGENTS, model)
    )


def known_models(provider: str) -> list[str]:
    """The model names that the price table has for one provider; none if it is not installed.

    >>> "gpt-5" in known_models("openai")
    True
    """
    try:
        from genai_prices import data_snapshot
    except ImportError:
        return []
    for listed in data_snapshot.get_snapshot().providers:
        if listed.id == provider:
            return sorted(model.id for model in listed.models)
    return []


def _written(provider: str, model: str) -> str:
    """The bare name where it means this provider, else with its prefix."""
    known = find_provider(model, variables={}) if provider in LISTED else None
    return model if known and known[0].name == provider else f"{provider}/{model}"


def _has_price(model: str, provider: str) -> bool:
    """Whether the price table has it: a snapshot such as claude-opus-4-5-20251101 is listed too."""
    from genai_prices import data_snapshot

    try:
        data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return False
    return True


def _near(name: str, known: list[str]) -> list[str]:
    prefix, slash, rest = name.partition("/")
    if not slash:
        own = [model for model in known if "/" not in model or model.startswith(LISTED)]
        return close_words(name, [*own, SCRIPTED], most=3, cutoff=0.5)
    if prefix == LOCAL:
        return [f"{LOCAL}/{SMOLLM2}"]
    prefixes = close_words(prefix, [*PROVIDERS, LOCAL], most=1)
    return [f"{prefix}/{rest}" for prefix in prefixes]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingAgent:
    """A coding agent: its program, and what it needs to work alone on a prompt.

    In `arguments` and `env`, `{model}` is the model's name, `{url}` the address of the gateway and
    `{key}` the word that stands for a key there; `{prompt}` is the task. Without `{prompt}` the
    program reads it from standard input, where it may be as long as it likes. `home` has the files
    in its HOME, which is empty otherwise; `skills` is where in a project it looks for skills.
    """

    name: OutputKind
    program: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    install: str
    skills: str

    def argv(self, model: str) -> tuple[str, ...]:
        """The command for one model; the address of the gateway is not known yet."""
        return (self.program, *(word.replace("{model}", model) for word in self.arguments))

    def variables(self, model: str) -> dict[str, str]:
        """The environment for one model, likewise."""
        return {name: text.replace("{model}", model) for name, text in self.env.items()}


_OPENCODE = (
    '{"provider": {"passhat": {"npm": "@ai-sdk/openai-compatible", "name": "passhat", '
    '"options": {"baseURL": "{url}/v1", "apiKey": "{key}"}, "models": {"{model}": {}}}}, '
    '"permission": "allow", "autoupdate": false, "share": "disabled"}'
)

_GEMINI = (
    '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, '
    '"general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}}'
)

CODING_AGENTS: dict[str, CodingAgent] = {
    agent.name: agent
    for agent in (
        CodingAgent(
            name="claude-code",
            program="claude",
            arguments=(
                *("-p", "--output-format", "stream-json", "--verbose"),
                *("--dangerously-skip-permissions", "--model", "{model}"),
            ),
            env={
                "ANTHROPIC_BASE_URL": "{url}",
                "ANTHROPIC_API_KEY": "{key}",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            },
            install="npm install -g @anthropic-ai/claude-code",
            skills=".claude/skills",
        ),
        CodingAgent(
            name="codex",
            program="codex",
            arguments=(
                *("exec", "--json", "--skip-git-repo-check", "--model", "{model}"),
                "--dangerously-bypass-approvals-and-sandbox",
                *("-c", 'model_provider="passhat"', "-c", "check_for_update_on_startup=false"),
                *("-c", 'model_providers.passhat.name="passhat"'),
                *("-c", 'model_providers.passhat.base_url="{url}/v1"'),
                *("-c", 'model_providers.passhat.env_key="OPENAI_API_KEY"'),
                *("-c", 'model_providers.passhat.wire_api="responses"'),
                "-",
            ),
            env={"OPENAI_API_KEY": "{key}"},
            install="npm install -g @openai/codex",
            skills=".agents/skills",
        ),
        CodingAgent(
            name="gemini",
            program="gemini",
            arguments=(
                *("--model", "{model}", "--output-format", "stream-json"),
                *("--approval-mode", "yolo", "--skip-trust"),
            ),
            env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "{key}"},
            home={".gemini/settings.json": _GEMINI},
            install="npm install -g @google/gemini-cli",
            skills=".gemini/skills",
        ),
        CodingAgent(
            name="opencode",
            program="opencode",
            arguments=("run", "--format", "json", "--model", "passhat/{model}"),
            env={"OPENCODE_CONFIG_CONTENT": _OPENCODE, "OPENCODE_DISABLE_AUTOUPDATE": "1"},
            install="npm install -g opencode-ai",
            skills=".opencode/skills",
        ),
        CodingAgent(
            name="aider",
            program="aider",
            arguments=(
                *("--model", "openai/{model}", "--yes-always", "--no-stream", "--no-git"),
                *("--no-check-update", "--no-show-model-warnings", "--analytics-disable"),
                *("--message", "{prompt}"),
            ),
            env={"OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": "{key}"},
            install="pip install aider-chat",
            skills="",
        ),
    )
}
"""The agents that a suite can name with `agent:`."""
