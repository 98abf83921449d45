"""Providers by name: where each is, what it is called with, and what is missing."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

import msgspec
import pytest

from passhat.errors import SuiteError
from passhat.records import Model, ModelParameters, ModelSystem, Pairing, Suite, Task
from passhat.records.redaction import environment_redactor
from passhat.runner import run_trials
from passhat.runner.models.bedrock import AwsCredentials, AwsSigner
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
        (
            "vertex/claude-opus-5",
            {
                "GOOGLE_CLOUD_PROJECT": "p",
                "GOOGLE_CLOUD_LOCATION": "global",
                "VERTEX_ACCESS_TOKEN": "k",
            },
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global",
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
        (
            "bedrock/m",
            {"AWS_REGION": "eu"},
            "set AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        ("vertex/m", {"GOOGLE_CLOUD_PROJECT": "p"}, "location: set GOOGLE_CLOUD_LOCATION"),
        ("xai/grok-4", {}, "needs a key: set XAI_API_KEY"),
    ],
)
def test_what_a_provider_lacks_is_named(name, variables, message):
    with pytest.raises(SuiteError, match=message):
        locate(Model(name=name), variables)


def asked_of(name, environment=None, **parameters):
    with WireServer() as server:
        given = ModelParameters(**parameters)
        model = Model(name=name, base_url=server.url, parameters=given)
        system = ModelSystem(name="agent", model=model)
        task = Task(name="t", prompt="Hi")
        pairing = Pairing(system=system, task=task, runs=1, label="t")
        suite = Suite(name="s", pairings=(pairing,))
        (trial,) = run_trials(suite, environment=environment or {}).trials
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


@pytest.mark.parametrize(("stream", "method"), [(False, "rawPredict"), (True, "streamRawPredict")])
def test_claude_on_vertex_is_asked_in_its_own_wire_format(stream, method):
    extra = {"stream": True} if stream else {}
    asked = asked_of("vertex/claude-opus-5", {"VERTEX_ACCESS_TOKEN": "token-1"}, extra=extra)
    assert asked.path.endswith(f"/publishers/anthropic/models/claude-opus-5:{method}")
    assert asked.body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in asked.body
    assert asked.body.get("stream", False) is stream
    assert asked.headers["authorization"] == "Bearer token-1"


AWS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "a-session-token",
    "AWS_REGION": "eu-west-1",
}


def test_a_request_to_bedrock_is_signed_where_there_is_no_api_key():
    asked = asked_of("bedrock/amazon.nova-pro-v1:0", AWS)
    said = asked.headers["authorization"]
    assert "/eu-west-1/bedrock/aws4_request" in said
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token" in said
    assert asked.headers["x-amz-security-token"] == AWS["AWS_SESSION_TOKEN"]
    when = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    signer = AwsSigner(
        credentials=AwsCredentials(
            access_key=AWS["AWS_ACCESS_KEY_ID"],
            secret_key=AWS["AWS_SECRET_ACCESS_KEY"],
            token=AWS["AWS_SESSION_TOKEN"],
        ),
        region="eu-west-1",
        now=lambda: when,
    )
    url = f"http://{asked.headers['host']}{asked.path}"
    assert signer(url, msgspec.json.encode(asked.body))["authorization"] == said


def test_a_bedrock_api_key_goes_before_a_signature():
    asked = asked_of("bedrock/amazon.nova-pro-v1:0", {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "key-1"})
    assert asked.headers["authorization"] == "Bearer key-1"


@pytest.mark.parametrize(
    ("service", "method", "url", "headers", "signature"),
    [
        # get-vanilla, post-vanilla and get-vanilla-query-order-key-case of AWS's SigV4 test suite.
        (
            "service",
            "GET",
            "https://example.amazonaws.com/",
            {},
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "service",
            "POST",
            "https://example.amazonaws.com/",
            {},
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "service",
            "GET",
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            {},
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        # The example of the IAM User Guide.
        (
            "iam",
            "GET",
            "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
            {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
    ],
)
def test_signatures_are_those_that_aws_publishes(service, method, url, headers, signature):
    signer = AwsSigner(
        credentials=AwsCredentials(
            access_key=AWS["AWS_ACCESS_KEY_ID"], secret_key=AWS["AWS_SECRET_ACCESS_KEY"]
        ),
        region="us-east-1",
        service=service,
        now=lambda: datetime(2015, 8, 30, 12, 36, tzinfo=UTC),
    )
    sent = {"Host": urlsplit(url).netloc, **headers}
    said = signer.sign(method, url, sent, b"")["authorization"]
    assert said.endswith(f"Signature={signature}")


def test_a_key_from_a_file_is_sent_and_masked_without_its_end_of_line():
    variables = {"OPENAI_API_KEY": "abcdefgh-private\n"}
    assert locate(Model(name="gpt-5"), variables).key == "abcdefgh-private"
    cleaned = environment_redactor(variables).clean("refused: abcdefgh-private is unknown")
    assert "private" not in cleaned


@pytest.mark.parametrize("key", ["abc…def", "abc\ndef", "naïve"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    model = Model(name="openai/gpt-5", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(SuiteError, match="check OPENAI_API_KEY") as raised:
        ask(ModelSystem(name="m", model=model), {"OPENAI_API_KEY": key})
    assert key not in str(raised.value)
    assert "the header authorization has characters that cannot be sent" in str(raised.value)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://[bad", r"'http://\[bad' is not an address"),
        ("localhost:8000/v1", "must begin with http:// or https://, got 'localhost:8000/v1'"),
    ],
)
def test_an_address_that_is_none_is_named_before_anything_is_sent(address, message):
    with pytest.raises(SuiteError, match=f'model "m": .*{message}'):
        locate(Model(name="m", wire="openai-chat", base_url=address), {})


@pytest.mark.parametrize(
    "address",
    [
        "ann:hunter22@gateway/v1",
        "htps://ann:hunter22@gateway/v1",
        "http://ann:hunter22@[gateway/v1",
        "http://ann:hunter22@gate\u2100way/v1",
        "http://ann:hunt/hunter22@gateway:port/v1",
        "htps://gateway/v1?key=hunter22",
    ],
)
def test_an_address_with_a_login_is_refused_without_quoting_it(address):
    with pytest.raises(SuiteError, match=r'model "m": .*address.*') as raised:
        locate(Model(name="m", wire="openai-chat", base_url=address), {})
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "variable", "address"),
    [
        ("ollama/qwen", "OLLAMA_HOST", "http://ann:hunter22/x@gpu"),
        ("ollama/qwen", "OLLAMA_HOST", "gpu:port"),
        ("azure/gpt-5", "AZURE_OPENAI_ENDPOINT", "http://[gpu"),
    ],
)
def test_a_variable_that_holds_no_address_is_named_with_the_model(name, variable, address):
    with pytest.raises(SuiteError, match=f'model "{name}": .* is not an address') as raised:
        locate(Model(name=name), {variable: address, "AZURE_OPENAI_API_KEY": "k"})
    assert "hunter22" not in str(raised.value)


def ask(system, variables):
    pairing = Pairing(system=system, task=Task(name="t", prompt="Hi"), runs=1, label="t")
    return run_trials(Suite(name="s", pairings=(pairing,)), environment=variables)
