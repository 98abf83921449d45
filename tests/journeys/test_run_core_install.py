"""What works with the core install alone: no pydantic, no HTTP client, no MCP SDK."""

import subprocess
import sys

EXTRAS = ("pydantic", "httpx2", "mcp", "genai_prices", "jsonschema", "xllamacpp")


def test_repeat_loads_nothing_of_an_extra(tmp_path):
    code = (
        "import sys\n"
        f"for name in {EXTRAS!r}:\n"
        "    sys.modules[name] = None\n"
        "from passhat.cli import main\n"
        "main(['repeat', '--runs', '3', '--min', '0.1', '--', sys.executable, '-c', 'pass'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "3 trials" in done.stderr


def test_a_suite_says_which_extra_it_needs(tmp_path):
    (tmp_path / "suite.yml").write_text("agents: [{name: a, model: o3, prompt: hi}]\n")
    code = (
        "import sys\nsys.modules['pydantic'] = None\nfrom passhat.cli import main\nmain(['run'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "pip install 'passhat[run]'" in done.stderr
