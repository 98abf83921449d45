import subprocess
import sys

HEAVY = {"pydantic", "jsonschema", "mcp", "scipy", "rich"}


def test_pydantic_is_loaded_only_when_a_suite_is() -> None:
    program = "import sys, passhat.suite; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(done.stdout.split())


def test_without_pydantic_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['pydantic'] = None; from passhat.suite.load import check_text\n"
        "from pathlib import Path; check_text('a: 1', path=Path('s.yml'), env={})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "loading a suite needs an extra: pip install 'passhat[run]'" in done.stderr
