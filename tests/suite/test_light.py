import subprocess
import sys

HEAVY = {"jsonschema", "mcp", "scipy", "rich", "ruamel"}


def test_nothing_heavy_is_loaded_before_a_suite_is() -> None:
    program = "import sys, passhat.suite; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())


def test_without_jsonschema_a_suite_with_a_json_schema_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['jsonschema'] = None; from passhat.suite.load import check_text\n"
        "from pathlib import Path\n"
        "task = '{name: a, model: o3, prompt: hi, expect: [{json-schema: {type: object}}]}'\n"
        "check_text(f'agents: [{task}]', path=Path('s.yml'), env={})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "a JSON Schema in a suite needs an extra: pip install 'passhat[run]'" in done.stderr
