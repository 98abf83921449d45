"""Providers by name: where each is, what it is called with, and what is missing."""

import pytest

from passhat.errors import SuiteError
from passhat.records import Model, ModelSystem, Pairing, Suite, Task
from passhat.runner import run_trials
from passhat.runner.models.catalog import locate
from passhat.testing import WireServer


@pytest.mark.parametrize(
    ("name", "variables", "address"),
    [
        ("xai/grok-4", {"XAI_API_KEY": "k"}, "https://api.x.ai/v1"),
        ("together/llama", {"TOGETHER_API_KEY": "k"}, "https://api.together.xyz/v1"),
        ("fireworks/llama", {"FIREWORKS_API_KEY": "k"}, "https://api.fireworks.ai/inference/v1"),
        ("cohere/command", {"CO_API_KEY": "k"}, "https://api.cohere.ai/compatibility/v1"),
        ("hf/org/model", {"HF_TOKEN": "k"}, "https://router.huggingface.co/v1"),
        ("lmstudio/qwen", {}, "http://localhost:1234/v1"),
        ("litellm/gpt-5", {"LITELLM_BASE_URL": "http://proxy:9/v1"}, "http://proxy:9/v1"),
        ("ollama/qwen3", {}, "http://localhost:11434/v1"),
        ("ollama/qwen3", {"OLLAMA_HOST": "gpu-box"}, "http://gpu-box:11434/v1"),
        ("ollama/qwen3", {"OLLAMA_HOST": "0.0.0.0:8080"}, "http://127.0.0.1:8080/v1"),
        ("ollama/qwen3", {"OLLAMA_HOST": "https://gpu/api"}, "https://gpu:11434/api/v1"),
        (
            "azure/gpt-5",
            {"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"},
            "https://me.openai.azure.com/openai/v1",
        ),
        (
            "azure/gpt-5",
            {"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/openai/deployments/x"},
            "https://me.openai.azure.com/openai/deployments/x",
        ),
        (
            "bedrock/anthropic.claude-opus-5-v1:0",
            {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "k"},
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
        ),
        (
            "vertex/google/gemini-3",
            {
                "GOOGLE_CLOUD_PROJECT": "p",
                "GOOGLE_CLOUD_LOCATION": "us-central1",
                "VERTEX_ACCESS_TOKEN": "k",
            },
            (
                "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1"
                "/endpoints/openapi"
            ),
        ),
    ],
)
def test_a_provider_is_found_by_its_name(name, variables, address):
    at = locate(Model(name=name), variables)
    assert at.base_url == address
    assert at.model == name.partition("/")[2]


@pytest.mark.parametrize(
    ("name", "variables", "message"),
    [
        ("bedrock/m", {"AWS_BEARER_TOKEN_BEDROCK": "k"}, "region: set AWS_REGION or AWS_DEFAULT"),
        ("bedrock/m", {"AWS_REGION": "eu"}, "needs a key: set AWS_BEARER_TOKEN_BEDROCK"),
        ("vertex/m", {"GOOGLE_CLOUD_PROJECT": "p"}, "location: set GOOGLE_CLOUD_LOCATION"),
        ("xai/grok-4", {}, "needs a key: set XAI_API_KEY"),
    ],
)
def test_what_a_provider_lacks_is_named(name, variables, message):
    with pytest.raises(SuiteError, match=message):
        locate(Model(name=name), variables)


def asked_of(name):
    with WireServer() as server:
        system = ModelSystem(name="agent", model=Model(name=name, base_url=server.url))
        task = Task(name="t", prompt="Hi")
        pairing = Pairing(system=system, task=task, runs=1, label="t")
        (trial,) = run_trials(Suite(name="s", pairings=(pairing,)), environment={}).trials
        assert trial.error is None
        return server.asked[0]


def test_mistral_is_told_its_seed_by_the_name_it_knows():
    body = asked_of("mistral/mistral-large").body
    assert "random_seed" in body
    assert "seed" not in body


def test_bedrock_is_asked_at_the_address_of_the_model():
    asked = asked_of("bedrock/anthropic.claude-opus-5-v1:0")
    assert asked.path.endswith("/model/anthropic.claude-opus-5-v1%3A0/converse")
    assert asked.model == "anthropic.claude-opus-5-v1:0"
    assert asked.body["messages"] == [{"role": "user", "content": [{"text": "Hi"}]}]
