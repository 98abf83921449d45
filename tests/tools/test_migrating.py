"""The pages for people who come from another tool: both sides of a number, by the real package."""

import json
import os
import re
from pathlib import Path

import pytest

import passhat

AGENTREL = """
import json, sys
from agentrel.adapters import from_records
from agentrel.metrics import icc, pass_at_k, pass_hat_k

runs = from_records(json.load(sys.stdin))
found = {f"pass@{k}": pass_at_k(runs, k, n_boot=10, seed=1).value for k in (1, 3)}
found |= {f"pass^{k}": pass_hat_k(runs, k, n_boot=10, seed=1).value for k in (1, 3)}
print(json.dumps(found | {"icc": icc(runs)}))
"""
FLAKY_AGENT = """
from tracelens import SimpleAdapter

calls = {"Paris": 0, "4": 0}


async def answer(data):
    calls[data["answer"]] += 1
    wrong = (2, 5) if data["answer"] == "Paris" else (3,)
    return {"answer": "?" if calls[data["answer"]] in wrong else data["answer"]}


class StarterAdapter(SimpleAdapter):
    def __init__(self):
        super().__init__(answer)
"""
INSPECT = """
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver

FIRST_WRONG = {"never": 9, "rarely": 5, "often": 2}


@solver
def answers():
    async def solve(state, generate):
        return state

    return solve


@scorer(metrics=[accuracy()])
def sometimes():
    async def score(state, target):
        return Score(value="I" if state.epoch >= FIRST_WRONG[state.sample_id] else "C")

    return score


@task
def flaky():
    return Task(
        dataset=[Sample(id=name, input="hi", target="hi") for name in FIRST_WRONG],
        solver=answers(),
        scorer=sometimes(),
        epochs=Epochs(6, ["mean", "pass_at_2", "pass_at_4", "pass_k_2"]),
    )
"""
INSPECT_SAYS = """
import json, sys
from inspect_ai.log import read_eval_log

scores = read_eval_log(sys.argv[1]).results.scores
print(json.dumps({one.reducer: one.metrics["accuracy"].value for one in scores}))
"""
PROMPTFOO = """
prompts: ["Say {{word}}"]
providers: ["file://provider.js"]
tests:
  - {description: hello, vars: {word: hello}, assert: [{type: contains, value: hello}]}
  - {description: bye, vars: {word: bye}, assert: [{type: contains, value: bye}]}
"""
PROVIDER = """
let calls = 0
module.exports = class {
  id() { return 'echo' }
  async callApi(prompt) {
    calls += 1
    if (calls === 7) return { error: 'out of order' }
    return { output: calls % 4 === 0 ? 'no' : prompt }
  }
}
"""


def named_on(page, column=0):
    """What the tables of a page name in code, in one of their columns."""
    text = (Path(__file__).parents[2] / "docs" / "migrate" / page).read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [code for row in rows for code in re.findall("`([^`]+)`", row[column])]


def test_every_name_of_agentrel_on_its_page_exists_and_none_is_left_out(tool, tmp_path):
    code = "import agentrel, inspect, json; own = [n for n in agentrel.__all__ if n[0] != '_']; "
    code += "takes = [p for n in own for p in inspect.signature(getattr(agentrel, n)).parameters]; "
    code += "print(json.dumps([own, takes]))"
    done = tool("migrating").run("python", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own, parameters = json.loads(done.stdout)
    named = {re.match(r"\w+", code)[0] for code in named_on("from-agentrel.md")}
    assert named - {*own} <= {*parameters}
    functions = {name for name in own if name.islower()}
    assert functions <= named


def test_every_command_and_function_of_tracelens_on_its_page_exists(tool, tmp_path):
    environment = tool("migrating")
    commands = [code for code in named_on("from-tracelens.md") if code.startswith("tracelens ")]
    assert commands
    for command in commands:
        program, *words = command.split()
        done = environment.run(program, *words, "--help", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    code = "from tracelens.statistics.consistency import pass_to_k; print(pass_to_k([1, 1, 0], 2))"
    assert environment.run("python", "-c", code, cwd=tmp_path).stdout == "0.5\n"
    assert "pass_to_k" in named_on("from-tracelens.md")


def test_every_name_and_option_of_inspect_on_its_page_exists(tool, tmp_path):
    environment = tool("bridges")
    named = [code for code in named_on("from-inspect.md") if not code.startswith(".")]
    helped = {}
    for command in ("eval", "score", "view", "eval-retry"):
        done = environment.run("inspect", command, "--help", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        helped[command] = done.stdout
    calls = [re.match(r"\w+", code)[0] for code in named if re.fullmatch(r"\w+(\(.*\))?", code)]
    calls = [name for name in calls if not name.startswith("pass_")]  # reducers, tested below
    code = "import json, sys, inspect_ai, inspect_ai.agent as a, inspect_ai.dataset as d; "
    code += "import inspect_ai.scorer as s, inspect_ai.solver as o; "
    code += "print(json.dumps([n for n in sys.argv[1:] if not any(hasattr(m, n) for m in "
    code += "(inspect_ai, a, d, s, o))]))"
    done = environment.run("python", "-c", code, *calls, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
    options = {word for code in named for word in re.findall(r"--[a-z-]+", code)}
    assert {option for option in options if option not in helped["eval"]} == set()
    commands = {code.split()[1] for code in named if code.startswith("inspect ")}
    assert commands <= helped.keys()


def test_every_option_and_assertion_of_promptfoo_on_its_page_exists(tool, tmp_path):
    environment, programs = tool("promptfoo"), "node_modules/.bin"
    env = {**os.environ, "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
           "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config")}  # fmt: skip
    done = environment.run("promptfoo", "eval", "--help", cwd=tmp_path, env=env, programs=programs)
    named = named_on("from-promptfoo.md")
    options = {word for code in named for word in re.findall(r"--[a-z-]+", code)}
    assert {option for option in options if option not in done.stdout} == set()
    package = environment.folder / "node_modules" / "promptfoo"
    known = (package / "dist" / "src" / "index.d.ts").read_text()
    page = (Path(__file__).parents[2] / "docs/migrate/from-promptfoo.md").read_text()
    table = page.partition("| assertion | expectation |")[2].partition("\n\n")[0]
    rows = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    kinds = [kind for row in rows for kind in re.findall("`([^`]+)`", row)]
    assert len(kinds) > 10
    assert [kind for kind in kinds if "..." not in kind and f'"{kind}"' not in known] == []


def test_agentrel_and_passhat_state_the_same_numbers_from_the_same_records(tool, tmp_path):
    records = [
        {"task_id": f"t{task}", "run_id": run, "score": float((task * 5 + run * 3) % 7 < 4)}
        for task in range(6)
        for run in range(8)
    ]
    done = tool("migrating").run(
        "python", "-c", AGENTREL, cwd=tmp_path, given=json.dumps(records)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = passhat.report(passhat.Trials.from_records(records), ks=(1, 3)).system()
    for name in ("pass@1", "pass@3", "pass^1", "pass^3"):
        assert ours.metrics[name].this_suite.value == pytest.approx(theirs[name])
    assert ours.variance.icc.value == pytest.approx(max(0.0, theirs["icc"]), abs=1e-6)


def test_what_tracelens_wrote_is_read_run_by_run_and_gives_its_pass_rates(tool, tmp_path):
    environment = tool("migrating")
    assert environment.run("tracelens", "init", ".", cwd=tmp_path).returncode == 0
    (tmp_path / "eval" / "adapter.py").write_text(FLAKY_AGENT)
    words = ("run", "--config", "tracelens.yaml", "--max-concurrency", "1")
    done = environment.run("tracelens", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = tmp_path / "eval" / "results"
    theirs = json.loads((results / "results.json").read_text())
    ours = passhat.report(passhat.read_trials(results / "trials.json"), ks=(1, 2, 3)).system()
    assert ours.metrics["pass@1"].this_suite.value == pytest.approx(0.7)
    assert ours.metrics["pass@3"].this_suite.value == pytest.approx(theirs["pass_at_k"]["pass@3"])
    # theirs is the share of windows of consecutive runs, so it depends on the order of runs
    assert theirs["reliability"]["pass^2"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert ours.metrics["pass^2"].this_suite.value == pytest.approx((3 / 10 + 6 / 10) / 2)
    with pytest.raises(passhat.ReadError, match=r"trials\.json"):
        passhat.read_trials(results / "results.json")


def test_the_reducers_of_inspect_are_the_numbers_of_passhat(tool, tmp_path):
    (tmp_path / "flaky.py").write_text(INSPECT)
    environment, env = tool("bridges"), {**os.environ, "INSPECT_DISPLAY": "none"}
    words = ("eval", "flaky.py", "--model", "mockllm/model", "--log-dir", "logs")
    done = environment.run("inspect", *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "logs").glob("*.eval")
    said = environment.run("python", "-c", INSPECT_SAYS, str(log), cwd=tmp_path)
    theirs = json.loads(said.stdout)
    ours = passhat.report(passhat.read_trials(log), ks=(1, 2, 4)).system()
    for reducer, name in {
        "mean": "pass^1",
        "pass_at_2": "pass@2",
        "pass_at_4": "pass@4",
        "pass_k_2": "pass^2",
    }.items():
        assert ours.metrics[name].this_suite.value == pytest.approx(theirs[reducer]), name


def test_a_log_that_inspect_did_not_score_is_refused_with_the_command_that_scores_it(
    tool, tmp_path
):
    (tmp_path / "flaky.py").write_text(INSPECT)
    env = {**os.environ, "INSPECT_DISPLAY": "none"}
    words = ("eval", "flaky.py", "--model", "mockllm/model", "--log-dir", "logs", "--no-score")
    assert tool("bridges").run("inspect", *words, cwd=tmp_path, env=env).returncode == 0
    (log,) = (tmp_path / "logs").glob("*.eval")
    with pytest.raises(passhat.ReadError, match="inspect score"):
        passhat.read_trials(log)


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv"])
def test_promptfoo_and_passhat_count_the_same_passes_failures_and_errors(tool, tmp_path, ending):
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTFOO)
    (tmp_path / "provider.js").write_text(PROVIDER)
    env = {
        **os.environ,
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config"),
    }
    words = ["eval", "--repeat", "5", "--no-cache", "--no-table", "-j", "1", "-o", "stats.json"]
    words += [] if ending == "json" else ["-o", f"stats.{ending}"]
    done = tool("promptfoo").run(
        "promptfoo", *words, cwd=tmp_path, env=env, programs="node_modules/.bin"
    )
    written = tmp_path / f"stats.{ending}"
    assert written.exists(), done.stderr
    theirs = json.loads((tmp_path / "stats.json").read_text())["results"]["stats"]
    found = [one.outcome.name for one in passhat.read_trials(written)]
    counts = {name: found.count(name) for name in ("PASSED", "FAILED", "ERRORED")}
    assert counts == {
        "PASSED": theirs["successes"],
        "FAILED": theirs["failures"],
        "ERRORED": theirs["errors"],
    }
