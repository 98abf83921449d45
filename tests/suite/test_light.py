import subprocess
import sys

HEAVY = {"pydantic", "jsonschema", "mcp", "scipy", "rich"}


def test_pydantic_is_loaded_only_when_a_suite_is() -> None:
    program = "import sys, passhat.suite; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())
