"""What `passhat init` writes runs at once: no key, a real MCP server, the same every time."""

from collections import Counter
from pathlib import Path

import pytest

from passhat.journeys.new_suite import starter_files
from passhat.records import Outcome
from passhat.suite import load_suite

pytest.importorskip("mcp", reason="the extra `run` is not installed")


@pytest.mark.slow("the journey of a new user runs it through the command")
def test_the_scripted_starter_suite_runs_against_its_real_server(tmp_path: Path) -> None:
    from passhat.runner.run import run_trials

    for name, text in starter_files(scripted=True).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    suite = load_suite(tmp_path / "passhat.yml", env={})
    result = run_trials(suite, handle_signals=False)
    assert [trial.error for trial in result.trials if trial.error] == []
    passed = Counter(trial.task for trial in result.trials if trial.outcome is Outcome.PASSED)
    # Scripted, and seeded by the suite: 9, 8.5 and 7 in ten, as it fell out.
    assert passed == {"weather selection": 18, "time in Tokyo": 18, "umbrella mail": 13}
    selected = [t for t in result.trials if "get_weather" in t.tools and t.task.startswith("wea")]
    assert len(selected) == 18
