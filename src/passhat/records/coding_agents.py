"""Coding agents by name: how each is started without a person, and where its model is.

One table, for these programs change every month: what stands here is tested with the programs
themselves (`make tools`), at the versions that the Makefile names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from passhat.dataclass import dataclass
from passhat.records.suite import OutputKind


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
            env={
                "GOOGLE_GEMINI_BASE_URL": "{url}",
                "GEMINI_API_KEY": "{key}",
            },
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
