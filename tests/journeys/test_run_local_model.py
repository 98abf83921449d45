"""A real language model, a real MCP server, no key: the whole way, live, recorded and replayed."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-model" / "passhat.yml"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None,
    reason="xllamacpp has no wheel for this platform",
)


@pytest.fixture
def example(shell):
    """The example suite with its gate left off: two tasks, a few runs."""
    from passhat.runner.models.local import weights_path

    if not weights_path().exists():
        pytest.skip("the weights are not here: `passhat local pull` (make test does it)")
    shell.write("passhat.yml", EXAMPLE.read_text().partition("# Runs go on only")[0])
    return shell


def floors(said):
    return re.findall(r"^tool-selection floor .*$", said, flags=re.MULTILINE)


@pytest.mark.slow("a real model answers on this machine")
def test_a_real_model_chooses_tools_and_its_runs_replay_without_it(example, tmp_path_factory):
    tasks = ("--task", "weather selection", "--task", "umbrella in Paris", "--runs", "2")
    live = example("run", "-v", "--record", *tasks)
    assert live.returncode in (0, 1), live.stderr
    lines = floors(live.stdout)
    assert len(lines) == 2
    form = (
        r"tool-selection floor \[(PASS|FAIL)\] [\w ]+: "
        r"selection \d/2 \(\d+%\), pass\^k \d+%, max tokens \d+"
    )
    assert all(re.fullmatch(form, line) for line in lines)
    nowhere = str(tmp_path_factory.mktemp("cache"))
    replayed = example("run", "--replay", "--json", *tasks, XDG_CACHE_HOME=nowhere)
    assert replayed.returncode == live.returncode, replayed.stderr
    assert sorted(floors(replayed.stderr)) == sorted(lines)
    (system,) = json.loads(replayed.stdout)["report"]["systems"]
    assert (system["name"], system["trials"]) == ("local/smollm2", 4)
