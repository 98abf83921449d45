"""A name that no model bears is a fault of the suite, told where it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.records.providers import (
    PROVIDERS,
    is_model_name,
    known_models,
    model_names,
    unlisted_model,
)

MATRIX = """\
defaults: {model: gtp-5}
systems: [{name: s, model: antropic/claude-opus-5}]
tasks: [{name: t, prompt: hi, expect: [{judge: {rubric: nice?, model: judg}}]}]
judge: {model: clade-opus-5}
agents:
  - name: a
    models: [scripted, local/smolm2, gpt-5, local/mine.gguf, gemni-3-pro]
    script: [{answer: x}]
    prompt: hi
  - name: b
    prompt: hi
"""


def test_every_unknown_model_is_told_at_once_where_it_stands_with_what_was_meant(problems) -> None:
    told = [line.partition(" There are: ")[0] for line in problems(MATRIX)]
    assert [line.partition(": no model")[0] for line in told] == [
        ":1:12: defaults.model",
        ":2:21: systems[0].model",
        ":3:64: tasks[0].expect[0].judge.model",
        ":4:9: judge.model",
        ":7:24: agents[0].models[1]",
        ":7:62: agents[0].models[4]",
    ]
    meant = ["gpt-5", "anthropic/claude-opus-5", "", "claude-opus-5", "local/smollm2", "gemini-"]
    for line, name in zip(told, meant, strict=True):
        assert name in line.partition("Did you mean ")[2]


def test_what_exists_is_listed_once(problems) -> None:
    first, *others = problems(MATRIX)
    assert all(provider in first for provider in PROVIDERS)
    assert "scripted, local/smollm2, local/FILE.gguf" in first
    assert "claude-*" in first
    assert "`passhat check --models`" in first
    assert len(first) < 600
    assert not any("There are" in line for line in others)


@pytest.mark.parametrize(
    "entry",
    [
        "model: my-own, base_url: 'http://localhost:1'",
        "model: scripted, script: [{answer: x}]",
        "model: local/tiny.gguf",
        "model: ollama/anything:8b",
        "model: openrouter/meta/llama-4",
        "model: gpt-99",
    ],
)
def test_a_name_that_somebody_may_know_is_no_fault(load, entry: str) -> None:
    load(f"agents: [{{name: a, prompt: hi, {entry}}}]")


def test_the_address_of_the_defaults_makes_any_name_good(load) -> None:
    load(
        "defaults: {base_url: 'http://localhost:1', model: mine}\n"
        "agents: [{name: a, prompt: hi}, {name: b, prompt: hi, model: yours}]"
    )


def test_the_variable_of_ones_own_server_makes_any_name_good(load) -> None:
    text = "agents: [{name: a, prompt: hi, model: mine}]"
    load(text, env={"OPENAI_BASE_URL": "http://localhost:1"})


def test_the_judges_address_is_its_own(problems) -> None:
    (line,) = problems(
        "defaults: {base_url: 'http://localhost:1'}\n"
        "judge: {model: mine}\nagents: [{name: a, prompt: hi, model: mine}]"
    )
    assert line.startswith(':2:9: judge.model: no model is called "mine".')


def test_the_model_of_a_rubric_under_not_is_checked_too(problems) -> None:
    rubric = "{not: {judge: {rubric: rude?, model: mine}}}"
    (line,) = problems(f"agents: [{{name: a, prompt: hi, model: o3, expect: [{rubric}]}}]")
    assert 'agents[0].expect[0].not.judge.model: no model is called "mine".' in line


@given(st.sampled_from([m for p in ("anthropic", "openai", "google") for m in known_models(p)]))
def test_models_that_have_a_price_are_known_by_their_providers_prefix(model: str) -> None:
    for provider in ("anthropic", "openai", "google"):
        if model in known_models(provider):
            assert is_model_name(f"{provider}/{model}", base_url=None, variables={})
            assert unlisted_model(f"{provider}/{model}") is None


def test_a_snapshot_of_a_listed_model_is_not_remarked_on() -> None:
    assert unlisted_model("claude-opus-4-5-20251101") is None
    assert unlisted_model("ollama/claude-like") is None
    assert unlisted_model("gpt-5-2025-08-07") is None


@pytest.mark.parametrize("name", ["gpt-55-turbo-nonexist", "gpt-5x", "openai/gpt-5x", "o33"])
def test_a_name_that_only_begins_like_a_listed_model_is_remarked_on(name: str) -> None:
    assert f'no price list has a model "{name}"' in str(unlisted_model(name))


def test_every_model_that_is_listed_can_be_named_so() -> None:
    names = model_names()
    assert {"claude-opus-5", "gpt-5", "gemini-2.5-pro", "google/gemma-3"} <= set(names)
    assert all(is_model_name(name, base_url=None, variables={}) for name in names)
    assert len(names) == len(set(names))
