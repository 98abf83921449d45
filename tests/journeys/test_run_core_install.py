"""What works with the core install alone: no HTTP client, no MCP SDK, no JSON Schema."""

import subprocess
import sys

import pytest

EXTRAS = ("pydantic", "httpx2", "mcp", "genai_prices", "jsonschema", "xllamacpp")


def _passhat(folder, *arguments):
    code = (
        "import sys\n"
        f"for name in {EXTRAS!r}:\n"
        "    sys.modules[name] = None\n"
        "from passhat.cli import main\n"
        f"main({list(arguments)!r})\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120
    )


def test_repeat_loads_nothing_of_an_extra(tmp_path):
    done = _passhat(
        tmp_path, "repeat", "--runs", "3", "--min", "0.1", "--", sys.executable, "-c", "pass"
    )
    assert done.returncode == 0, done.stderr
    assert "3 trials" in done.stderr


@pytest.mark.slow("starts Python without the extras, often")
@pytest.mark.parametrize(
    "system",
    [
        "model: scripted, script: [{answer: hello}]",
        "command: [echo, hello]",
        "python: 'agent:answer'",
    ],
)
def test_a_suite_of_scripts_commands_or_functions_runs_and_is_ready(tmp_path, system):
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return 'hello'\n")
    (tmp_path / "suite.yml").write_text(
        f"systems: [{{name: s, {system}}}]\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: hello}]}]\n"
    )
    ready = _passhat(tmp_path, "check")
    assert (ready.returncode, ready.stderr) == (0, ""), ready.stderr
    assert ready.stdout.endswith("Ready: passhat run\n")
    done = _passhat(tmp_path, "run")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow("starts Python without the extras, often")
@pytest.mark.parametrize(
    "system", ["model: o3, base_url: 'http://127.0.0.1:9'", "http: 'http://127.0.0.1:9/'"]
)
def test_a_suite_that_calls_over_http_says_which_extra_it_needs(tmp_path, system):
    (tmp_path / "suite.yml").write_text(
        f"systems: [{{name: s, {system}}}]\ntasks: [{{name: t, prompt: hi}}]\n"
    )
    for command in ("run", "check"):
        done = _passhat(tmp_path, command)
        assert done.returncode in (1, 2)
        assert "pip install 'passhat[run]'" in done.stdout + done.stderr
