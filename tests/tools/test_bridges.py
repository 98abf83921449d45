"""passhat inside other tools: each with the real package, none with a model or a network."""

import json
import os

from passhat import read_trials

OFFLINE = {
    **os.environ,
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "INSPECT_DISPLAY": "plain",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}
INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver

from passhat.bridges.inspect import reliability


@solver
def answers():
    async def solve(state, generate):
        if state.sample_id == "s2" and state.epoch == 6:
            raise RuntimeError("broken")
        return state

    return solve


@scorer(metrics=[accuracy(), reliability(k=2)])
def sometimes():
    async def score(state, target):
        return Score(value="I" if state.epoch == 4 else "C")

    return score


@task
def flaky():
    return Task(
        dataset=[Sample(id=f"s{i}", input="hi", target="hi") for i in range(3)],
        solver=answers(),
        scorer=sometimes(),
        epochs=6,
        fail_on_error=False,
    )
"""
PYDANTIC_EVALS = """
import json

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

from passhat import measure
from passhat.bridges.pydantic_evals import Reliability, trials_of_report

CALLS = {}


def task(word):
    CALLS[word] = CALLS.get(word, -1) + 1
    if word == "boom" and CALLS[word] == 1:
        raise RuntimeError("kaput")
    return "wrong" if CALLS[word] == 2 else word.upper()


dataset = Dataset(
    name="words",
    cases=[Case(name=w, inputs=w, expected_output=w.upper()) for w in ("a", "b", "boom")],
    evaluators=[EqualsExpected()],
    report_evaluators=[Reliability(k=2)],
)
report = dataset.evaluate_sync(task, repeat=6, progress=False, max_concurrency=1)
trials = trials_of_report(report, system="mine")
tally = trials.tally("mine")
(analysis,) = report.analyses
print(json.dumps({
    "counts": [list(tally.tasks), tally.passed.tolist(), tally.failed.tolist()],
    "errored": tally.errored.tolist(),
    "analysis": [analysis.title, analysis.value, analysis.description],
    "value": measure(trials, ks=(2,)).system().pass_hat(2).value,
}))
"""
DEEPEVAL = """
import json

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from passhat.bridges.deepeval import trials_of_results


class Says(BaseMetric):
    def __init__(self):
        self.threshold, self.async_mode, self.include_reason = 0.5, False, False

    def measure(self, case, *args, **kwargs):
        self.score = 1.0 if case.expected_output in case.actual_output else 0.0
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, case, *args, **kwargs):
        return self.measure(case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return "says"


cases = [
    LLMTestCase(input=asked, actual_output="no" if i == 2 else answer, expected_output=answer)
    for i in range(5)
    for asked, answer in (("2 + 2?", "4"), ("capital of France?", "Paris"))
]
results = evaluate(
    cases,
    [Says()],
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
    cache_config=CacheConfig(write_cache=False),
)
tally = trials_of_results(results, system="bot").tally("bot")
print(json.dumps([list(tally.tasks), tally.passed.tolist(), tally.failed.tolist()]))
"""
OTEL = """
import json
from dataclasses import replace

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import passhat
from passhat.bridges.otel import EVENT, SpanEvents, TrialSpans, export_trials
from passhat.records import Behaviour, Model, ModelSystem, Pairing, Suite, Task

provider, memory, spans = TracerProvider(), InMemorySpanExporter(), TrialSpans()
provider.add_span_processor(SimpleSpanProcessor(memory))
provider.add_span_processor(spans)
world = passhat.World(error_rate=0.2)
simulated = passhat.simulate(tasks=3, runs=4, rate={"bot": 0.6}, world=world, seed=2)
trials = [replace(one, tokens_in=100 + n, tokens_out=n) for n, one in enumerate(simulated)]
export_trials(trials, provider)
names = {event.name for span in memory.get_finished_spans() for event in span.events}
back = spans.trials()

model = Model(name="scripted", script=(Behaviour(answer="4"),))
agent, task = ModelSystem(name="live", model=model), Task(name="sum", prompt="2 + 2?")
suite = Suite(name="s", pairings=(Pairing(system=agent, task=task, runs=3, label="sum"),))
passhat.run(suite, on_event=SpanEvents(provider))


def plain(table):
    return sorted(
        [t.system, t.task, t.outcome.name, t.tokens_in or 0, t.tokens_out or 0] for t in table
    )


print(json.dumps({
    "names": sorted(names),
    "same": plain(trials) == plain(back),
    "live": len(spans.trials().where(system="live")),
}))
"""
PROMPTFOO = """
prompts: ["Say {{word}}"]
providers: ["file://provider.js"]
tests:
  - {description: hello, vars: {word: hello}, assert: [{type: contains, value: hello}]}
  - {description: bye, vars: {word: bye}, assert: [{type: contains, value: bye}]}
extensions: ["file://passhat_report.py:extension_hook"]
"""
PROVIDER = """
let calls = 0
module.exports = class {
  id() { return 'echo' }
  async callApi(prompt) { calls += 1; return { output: calls % 4 === 0 ? 'no' : prompt } }
}
"""


def _last_line(tool, folder, script):
    (folder / "script.py").write_text(script)
    done = tool("bridges").run("python", "script.py", cwd=folder, env=OFFLINE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_eval_of_inspect_has_pass_hat_k_and_ends_with_the_report(tool, tmp_path):
    (tmp_path / "flaky.py").write_text(INSPECT)
    words = ["eval", "flaky.py", "--model", "mockllm/model", "--log-dir", "logs"]
    env = {**OFFLINE, "PASSHAT_REPORT": "1"}
    done = tool("bridges").run("inspect", *words, cwd=tmp_path, env=env)
    text = done.stdout + done.stderr
    assert "pass^2 low" in text
    # Inspect leaves the errored epoch out: 5/6, 5/6 and 4/5. The report counts it as a failure.
    assert "0.644" in text
    assert "Errors: 1 of 18 trials, counted as failed." in text
    (log,) = (tmp_path / "logs").glob("*.eval")
    assert f"passhat report {log} -v" in " ".join(text.replace("\\\n", " ").split())
    assert len(read_trials(log)) == 18


def test_inspect_says_nothing_of_passhat_unless_it_is_asked_to(tool, tmp_path):
    (tmp_path / "flaky.py").write_text(INSPECT)
    words = ["eval", "flaky.py", "--model", "mockllm/model", "--limit", "1"]
    done = tool("bridges").run("inspect", *words, cwd=tmp_path, env=OFFLINE)
    assert done.returncode == 0, done.stderr
    assert "these tasks" not in done.stdout + done.stderr


def test_a_report_of_pydantic_evals_is_trials_and_has_its_own_analysis(tool, tmp_path):
    found = _last_line(tool, tmp_path, PYDANTIC_EVALS)
    assert found["counts"] == [["a", "b", "boom"], [5, 5, 4], [1, 1, 1]]
    assert found["errored"] == [0, 0, 1]
    title, value, description = found["analysis"]
    assert (title, value) == ("pass^2", found["value"])
    assert description.startswith("95% interval 0.")


def test_results_of_deepeval_are_trials_of_their_inputs(tool, tmp_path):
    assert _last_line(tool, tmp_path, DEEPEVAL) == [
        ["2 + 2?", "capital of France?"],
        [4, 4],
        [1, 1],
    ]


def test_trials_go_out_as_evaluation_events_and_come_back_as_they_were(tool, tmp_path):
    found = _last_line(tool, tmp_path, OTEL)
    assert found == {"names": ["gen_ai.evaluation.result"], "same": True, "live": 3}


def test_an_eval_of_promptfoo_ends_with_the_report(tool, tmp_path):
    python = tool("bridges").folder / "bin" / "python"
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTFOO)
    (tmp_path / "provider.js").write_text(PROVIDER)
    hook = "from passhat.bridges.promptfoo import extension_hook  # noqa: F401\n"
    (tmp_path / "passhat_report.py").write_text(hook)
    env = {
        **OFFLINE,
        "PROMPTFOO_PYTHON": str(python),
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "config"),
    }
    words = ["eval", "--repeat", "4", "--no-cache", "--no-table", "-j", "1"]
    promptfoo = tool("promptfoo")
    done = promptfoo.run("promptfoo", *words, cwd=tmp_path, env=env, programs="node_modules/.bin")
    text = done.stdout + done.stderr
    assert "echo is not reliable: it passes 75% of the time" in text
    assert "2 tasks x 4 trials" in text
