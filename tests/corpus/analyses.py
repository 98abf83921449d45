"""About fifty analyses whose JSON is kept: real logs, simulated shapes, both error policies."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from passhat.cli import main

SAMPLES = Path(__file__).parent.parent / "samples"
KEPT = Path(__file__).parent / "answers.json.gz"
"""What the analyses gave when the corpus was last made (`make corpus`)."""
LOGS = {
    "inspect": "inspect/flaky_5x5_two_scorers_1error.eval",
    "promptfoo": "promptfoo/out.json",
    "deepeval": "deepeval/test_run_20261115_015519.json",
    "pydantic-evals": "pydantic_evals/report.json",
    "lm-eval": "lm_eval/samples_flaky_demo_2026-11-15T01-57-02.617156.jsonl",
    "openai-evals": "openai_evals/251115_dummy_flaky.jsonl",
    "junit-repeat": "junit/junit_repeat.xml",
    "junit-reruns": "junit/junit_reruns.xml",
}
SHAPES = {  # name: options of `passhat simulate`
    "small": "--tasks 5 --runs 3",
    "ordinary": "--tasks 12 --runs 8",
    "errors": "--tasks 10 --runs 6 --error-rate 0.1",
    "luck": "--tasks 10 --runs 5 --luck 1",
    "skill": "--tasks 10 --runs 5 --luck 0.05",
    "near-one": "--tasks 12 --runs 10 --rate 0.97",
    "all-pass": "--tasks 8 --runs 4 --rate 0.99999",
    "all-fail": "--tasks 8 --runs 4 --rate 0.00001",
    "one-run": "--tasks 15 --runs 1",
    "one-task": "--tasks 1 --runs 20",
    "seeds": "--tasks 8 --runs 12 --seeds 6 --seed-effect 0.5",
    "drift": "--tasks 8 --runs 10 --drift -2",
    "partial": "--tasks 9 --runs 6 --partial",
    "two": "--tasks 10 --runs 6 --rate new=0.8 --rate old=0.7",
    "three": "--tasks 10 --runs 5 --rate a=0.9 --rate b=0.85 --rate c=0.5",
}
UNSTABLE = {
    "provenance",
    "versions",
    "input_hash",
    "sha256",
    "platform",
    "created",
    "paths",
    "path",
}
"""Keys that say where and with what an analysis was made."""


def analyses() -> dict[str, list[str]]:
    """The name of each analysis and its command; {name} is the file of a shape."""
    found: dict[str, list[str]] = {}
    for name, path in LOGS.items():
        found[f"report {name}"] = ["report", str(SAMPLES / path)]
    for name in SHAPES:
        found[f"report {name}"] = ["report", f"{{{name}}}"]
    for name in ("errors", "two", "partial"):
        found[f"report {name} excluding errors"] = [
            *("report", f"{{{name}}}", "--errors", "exclude", "--k", "1,2,5")
        ]
    for name in ("ordinary", "near-one", "seeds", "all-pass"):
        found[f"report {name} at 99 %"] = [
            *("report", f"{{{name}}}", "--confidence", "0.99", "--k", "1,3")
        ]
        found[f"gate {name}"] = ["gate", f"{{{name}}}", "--require", "pass^3 >= 0.5"]
        found[f"gate {name}, tasks like these"] = [
            *("gate", f"{{{name}}}", "--require", "pass_rate >= 0.6"),
            *("--scope", "tasks like these"),
        ]
    found["report with bars"] = ["report", "{ordinary}", "--bar", "0.5", "--k", "1,3"]
    found["compare two"] = ["compare", "{two}"]
    found["compare two at k 4"] = ["compare", "{two}", "--k", "4"]
    found["rank three"] = ["rank", "{three}"]
    found["rank three at k 2"] = ["rank", "{three}", "--k", "2"]
    found["plan from trials"] = ["plan", "{ordinary}", "--half-width", "0.05"]
    found["plan from nothing"] = ["plan", "--tasks", "50", "--half-width", "0.05"]
    found["plan a gate"] = ["plan", "--gate", "pass^3 >= 0.8"]
    found["gate against a baseline"] = [
        *("gate", "{near-one}", "--against", "{ordinary}"),
        *("--require", "no_worse_than baseline by 0.02"),
    ]
    return found


def run_all(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """The JSON of these analyses, without what says where they were made."""
    runner = CliRunner()
    for name, options in SHAPES.items():
        made = runner.invoke(
            main, ["simulate", *options.split(), "-o", str(folder / f"{name}.csv")]
        )
        assert made.exit_code == 0, made.output
    answers = {}
    commands = analyses()
    for name in names:
        words = [
            word.format(**{shape: folder / f"{shape}.csv" for shape in SHAPES})
            for word in commands[name]
        ]
        done = runner.invoke(main, [*words, "--json", "-q"])
        assert done.exit_code in (0, 1, 4), (name, done.output)
        answers[name] = _stable(json.loads(done.stdout), str(folder), str(SAMPLES))
    return answers


def _stable(value: Any, *places: str) -> Any:
    if isinstance(value, dict):
        return {key: _stable(one, *places) for key, one in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return [_stable(one, *places) for one in value]
    if isinstance(value, str):
        for place in places:
            value = value.replace(place + os.sep, "")
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        answers = json.dumps(
            run_all(Path(folder), analyses()), sort_keys=True, separators=(",", ":")
        )
    KEPT.write_bytes(gzip.compress(answers.encode(), mtime=0))
