"""Writes docs/reference/models.md: the providers, and what each is told by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from passhat.records.providers import PROVIDERS, Provider

PAGE = Path(__file__).with_name("models.md")

HEAD = """\
<!-- Made by docs/reference/generate_models.py. -->
# Models

A suite names a model as `claude-...`, `gpt-...`, `o3`, `gemini-...`, or as `PROVIDER/MODEL`. Keys
and addresses come from the variables below, which the providers' own tools use too; `api_key:`,
`base_url:` and `wire:` of a system go before them. `passhat check --models` names the models with a
known price; others take `prices:`.

| provider | wire format | address | variables |
|---|---|---|---|
"""

TAIL = """
Besides these: `scripted` plays the `script:` of the suite, and `local/smollm2` or `local/FILE.gguf`
run on your own machine ([how](../how-to/run-with-a-local-model.md)). Any other OpenAI-compatible
server takes any name with `base_url:`.

- **Bedrock**: with `AWS_BEARER_TOKEN_BEDROCK` the API key is sent; else requests are signed
  (Signature Version 4) with `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
  `aws configure export-credentials --format env` prints those of a profile or of single sign-on.
  Answers are read whole. `extra: {stream: true}` streams those of other providers, which changes
  nothing that is measured; on Bedrock it has no effect.
- **Vertex AI**: the token is that of `gcloud auth print-access-token`. `vertex/claude-...` is asked
  in Anthropic's wire format, every other model at the OpenAI-compatible endpoint. The location
  `global` works.
- **Azure**: a bare endpoint is completed to `/openai/v1`.
- **Ollama**: `OLLAMA_HOST` may be a host, a host with a port, or an address.

## Pictures, sounds and other options

| | `anthropic` | `openai-chat` | `openai-responses` | `bedrock-converse` |
|---|---|---|---|---|
| pictures of the task and of tools | yes | yes | yes | yes |
| sounds of the task | refused | yes | refused | yes |
| sounds of tools | named in the text | yes | named in the text | named in the text |
| `reasoning:` | a budget of tokens | an effort | an effort | Claude only |
| `prompt_cache:` | marks | the provider decides | the provider decides | marks |

An audio answer (OpenAI chat) is graded by its transcript.
"""


def generated() -> Iterator[tuple[Path, str]]:
    """The page and what it should hold."""
    rows = [_row(provider) for provider in PROVIDERS.values()]
    yield PAGE, HEAD + "\n".join(rows) + "\n" + TAIL


def _row(provider: Provider) -> str:
    places = tuple(name for names in provider.places.values() for name in names)
    variables = (*provider.key_variables, *provider.url_variables, *places)
    listed = ", ".join(f"`{name}`" for name in variables)
    address = f"`{provider.base_url}`" if provider.base_url else "its own for each customer"
    return f"| `{provider.name}` | `{provider.wire}` | {address} | {listed or '-'} |"
