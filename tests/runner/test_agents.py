"""Systems that are not a model: commands, functions, endpoints."""

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.errors import SuiteError
from passhat.records import (
    CommandSystem,
    Expectation,
    HttpSystem,
    Outcome,
    Pairing,
    PythonSystem,
    Secret,
    Suite,
    Task,
)
from passhat.records.suite import Step
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.preflight import lacks_function

HERE = Path(__file__).parent
ALSO_IN_WORKERS = [
    pytest.param(0, id="here"),
    pytest.param(1, id="in a worker", marks=pytest.mark.slow("a process for each way to call")),
]
"""Where calling is the law: that a worker calls as this process does is tested in every run."""


def command(code, *arguments, **options):
    argv = (sys.executable, "-c", code, *arguments)
    return CommandSystem(name="agent", argv=argv, **options)


def function(name, **options):
    return PythonSystem(name="agent", function=f"agent_functions:{name}", search=HERE, **options)


@pytest.fixture
def trial_of(suite_of):
    def trial(system, task=None, **options):
        (only,) = run_trials(suite_of(system, task=task, **options)).trials
        return only

    return trial


def test_a_command_passes_by_its_exit_code(trial_of):
    assert trial_of(command("exit(0)")).outcome is Outcome.PASSED
    failed = trial_of(command("exit(3)"))
    assert (failed.outcome, failed.score, failed.error) == (Outcome.FAILED, 0.0, None)


def test_the_last_json_line_of_a_command_is_its_report(trial_of):
    code = """
print('thinking {"score": 1}')
print('{"score": 0.25, "tokens_in": 12, "tokens_out": 3, "cost": 0.5, "tool_calls": ["get"]}')
print('bye')
"""
    trial = trial_of(command(code))
    assert (trial.outcome, trial.score) == (Outcome.FAILED, 0.25)
    assert (trial.tokens_in, trial.tokens_out, trial.cost) == (12, 3, 0.5)
    assert trial.tools == ("get",)


def test_expectations_read_the_output_of_a_command(trial_of):
    task = Task(name="t", prompt="Paris", expect=(Expectation(matcher="contains", value="PARIS"),))
    shout = command("import sys; print(sys.argv[1].upper())", "{prompt}")
    assert trial_of(shout, task).outcome is Outcome.PASSED


def test_a_prompt_without_a_place_on_the_command_line_comes_on_stdin(trial_of):
    task = Task(name="t", prompt="Paris", expect=(Expectation(matcher="exact", value="sirap"),))
    backwards = command("print(input()[::-1].lower())")
    assert trial_of(backwards, task).outcome is Outcome.PASSED


def test_a_command_runs_in_a_fresh_directory_with_the_task_at_hand(trial_of, tmp_path):
    code = """
import json, os, pathlib
assert list(pathlib.Path().glob("*")) == [], "not fresh"
task = json.loads(pathlib.Path(os.environ["PASSHAT_TASK_FILE"]).read_text())
assert task["prompt"] == os.environ["PASSHAT_PROMPT"] == "Say 4."
assert task["task"] == os.environ["PASSHAT_TASK"] == "task"
assert str(task["seed"]) == os.environ["PASSHAT_SEED"]
assert os.environ["TOKEN"] == "secret"
pathlib.Path("left.txt").write_text(os.getcwd())
print(os.getcwd())
"""
    system = command(code, env={"TOKEN": Secret("${TOKEN}", "secret")})
    trial = trial_of(system)
    assert trial.outcome is Outcome.PASSED, trial.error


def test_files_that_a_command_leaves_can_be_expected_and_are_then_gone(suite_of):
    code = "import os; open('out.txt', 'w').write('42'); print(os.getcwd())"
    task = Task(
        name="t", prompt="?",
        expect=(Expectation(matcher="contains", target="files.out.txt", value="42"),),
    )  # fmt: skip
    journal = MemoryJournal()
    result = run_trials(suite_of(command(code), task=task), journal=journal)
    assert result.trials[0].outcome is Outcome.PASSED, journal.finished()[0].transcript
    assert "passhat-" in journal.finished()[0].transcript
    left = json.loads(journal.finished()[0].transcript)["answer"]
    assert not Path(left).exists()


def test_a_script_beside_the_suite_is_found_from_elsewhere(suite_of, tmp_path):
    (tmp_path / "agent.py").write_text("print('ok')")
    system = CommandSystem(name="agent", argv=(sys.executable, "agent.py"))
    result = run_trials(suite_of(system, directory=tmp_path))
    assert result.trials[0].outcome is Outcome.PASSED


def test_a_command_out_of_time_has_failed_and_leaves_nobody_behind(suite_of, tmp_path):
    pids = tmp_path / "pids"
    code = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(300)
"""
    for seconds in (1.0, 4.0, 16.0):  # on a busy machine it has no child after a second
        journal = MemoryJournal()
        (trial,) = run_trials(suite_of(command(code, timeout=seconds)), journal=journal).trials
        assert (trial.outcome, trial.error) == (Outcome.FAILED, None)
        assert '"stop_reason":"timeout"' in journal.finished()[0].transcript
        if pids.exists():
            break
    for pid in map(int, pids.read_text().split()):
        assert _dead(pid)


def test_a_child_that_holds_the_output_open_does_not_hold_up_the_trial(trial_of):
    code = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print("done")
"""
    started = time.monotonic()
    assert trial_of(command(code, timeout=60.0)).outcome is Outcome.PASSED
    assert time.monotonic() - started < 60


def test_endless_output_is_bounded(trial_of):
    code = """
import sys
for _ in range(300):
    sys.stdout.write("x" * 2**16)
print()
print('{"score": 1}')
"""
    assert trial_of(command(code)).outcome is Outcome.PASSED


def test_a_command_that_does_not_exist_is_an_error_not_a_failure(trial_of):
    trial = trial_of(CommandSystem(name="agent", argv=("no-such-agent",)))
    assert trial.outcome is Outcome.ERRORED
    assert "agent cannot be started: 'no-such-agent'" in trial.error


def test_a_report_that_is_due_and_missing_is_an_error(trial_of):
    trial = trial_of(command("print('hello')", outcome="json"))
    assert trial.outcome is Outcome.ERRORED
    assert "printed no JSON with a score" in trial.error


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "in a worker"])
@pytest.mark.parametrize(
    ("name", "outcome", "score"),
    [
        ("passes", Outcome.PASSED, 1.0),
        ("half", Outcome.FAILED, 0.5),
        ("waits", Outcome.PASSED, 1.0),
        ("refuses", Outcome.FAILED, 0.0),
    ],
)
def test_a_function_says_how_it_did(trial_of, name, outcome, score, workers):
    trial = trial_of(function(name, workers=workers))
    assert (trial.outcome, trial.score) == (outcome, score), trial.error


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "in a worker"])
def test_a_function_gets_what_it_asks_for_by_name(trial_of, workers):
    task = Task(
        name="t", prompt="Weather in", values={"city": "Paris"},
        expect=(Expectation(matcher="exact", value="Weather in Paris 0"),
                Expectation(matcher="called_in_order", value=["look", "get"])),
    )  # fmt: skip
    trial = trial_of(function("answers", workers=workers), task)
    assert trial.outcome is Outcome.PASSED, trial.error
    assert (trial.tokens_in, trial.tokens_out, trial.cost, trial.turns) == (10, 2, 0.25, 3)
    assert trial.tools == ("look", "get")


@pytest.mark.parametrize("workers", ALSO_IN_WORKERS)
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("by_place", "ask"),
        ("by_place_and_name", "ask calm 0 int"),
        ("behind_a_gap", "ask 3 None"),
        ("anything", "ask of 1"),
        ("anything_named", "ask 0 of 7"),
        ("wrapped", "ask"),
        ("with_options", "ask 0"),
        ("bound", "hi ask 7"),
        ("bound_async", "ask slowly"),
        ("polite", "ask politely"),
        ("polite.asked", "ask politely, asked"),
        ("patient", "ask patiently"),
    ],
)
def test_whatever_can_be_called_is_called_as_it_wants(trial_of, name, answer, workers):
    task = Task(name="t", prompt="ask", expect=(Expectation(matcher="exact", value=answer),))
    trial = trial_of(function(name, workers=workers), task)
    assert trial.outcome is Outcome.PASSED, (trial.error, trial.score)


def test_a_function_written_in_c_gets_the_prompt(trial_of):
    task = Task(name="t", prompt="7", expect=(Expectation(matcher="exact", value="7"),))
    system = PythonSystem(name="agent", function="builtins:str")
    assert trial_of(system, task).outcome is Outcome.PASSED


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "in a worker"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("breaks", "raised ValueError: no key"),
        ("leaves", "SystemExit: enough"),
        ("is_cancelled", "raised CancelledError: gone"),
        ("cancels_itself", "raised CancelledError"),
        ("returns_nothing", "returned nothing; return a bool, a score"),
        ("boasts", "gives the score 7"),
    ],
)
def test_a_function_that_breaks_is_an_error(trial_of, name, message, workers):
    trial = trial_of(function(name, workers=workers))
    assert trial.outcome is Outcome.ERRORED
    assert message in trial.error


RAISING = """\
import asyncio
import json
import sys

def fail(prompt):
    json.loads("{")  # the line to name, although json raises deeper down

async def fail_later(prompt):
    await asyncio.sleep(0)
    fail(prompt)

def leave(prompt):
    sys.exit("enough")
"""


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "in a worker"])
@pytest.mark.parametrize(("name", "line"), [("fail", 6), ("fail_later", 6), ("leave", 13)])
def test_the_error_of_a_function_names_the_line_of_the_users_code(
    tmp_path, trial_of, name, line, workers
):
    module = f"raising_{name}_{workers}"
    (tmp_path / f"{module}.py").write_text(RAISING)
    system = PythonSystem(
        name="agent", function=f"{module}:{name}", search=tmp_path, workers=workers
    )
    assert trial_of(system).error.endswith(f" ({module}.py, line {line})")


@pytest.mark.parametrize(("name", "workers"), [("hangs", 0), ("hangs", 1), ("hangs_politely", 0)])
def test_a_function_out_of_time_has_failed(trial_of, name, workers):
    trial = trial_of(function(name, workers=workers, timeout=1.0))
    assert (trial.outcome, trial.error) == (Outcome.FAILED, None)


def test_a_worker_that_dies_is_replaced(suite_of):
    result = run_trials(suite_of(function("dies", workers=1), runs=2))
    assert [t.outcome for t in result.trials] == [Outcome.ERRORED] * 2
    assert "the worker of agent_functions:dies died" in result.trials[0].error


def test_workers_work_side_by_side_and_keep_their_chatter_to_themselves(suite_of):
    journal = MemoryJournal()
    result = run_trials(suite_of(function("talks", workers=2), runs=12), journal=journal)
    assert {t.outcome for t in result.trials} == {Outcome.PASSED}
    assert len({entry.transcript for entry in journal.finished()}) == 2


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("agent_functions:nothing_here", "has no nothing_here"),
        ("no_such_module:run", "cannot be imported"),
        ("agent_functions", "module:function"),
        ("agent_functions:__name__", "is not a function but a str"),
        ("agent_functions:wants_too_much", '"database", for which there is no value; there are'),
    ],
)
def test_a_function_that_cannot_be_called_stops_the_run(suite_of, reference, message):
    system = PythonSystem(name="agent", function=reference, search=HERE)
    with pytest.raises(SuiteError, match=message):
        run_trials(suite_of(system))


@pytest.fixture
def endpoint(serving):
    """An HTTP agent on loopback, as simple as they come."""

    def answer(path, body, headers):
        if path == "/slow":
            time.sleep(3)
        special = {
            "/text": (200, "plain words"),
            "/unknown": (200, {"reply": ""}),
            "/broken": (500, {"detail": "out of memory"}),
            "/secret": (200, {"answer": headers["authorization"]}),
        }
        return special.get(path, (200, {"answer": body["prompt"].upper()}))

    with serving(answer) as url:
        yield url


def expecting(text):
    return Task(name="t", prompt="Paris", expect=(Expectation(matcher="exact", value=text),))


def test_an_endpoint_answers_in_json_or_in_words(trial_of, endpoint):
    spoken = {"/": "PARIS", "/text": "plain words", "/secret": "Bearer abc"}
    headers = {"authorization": Secret("Bearer ${TOKEN}", "Bearer abc")}
    for path, answer in spoken.items():
        system = HttpSystem(name="agent", url=endpoint + path, headers=headers)
        assert trial_of(system, expecting(answer)).outcome is Outcome.PASSED


def test_an_endpoint_that_fails_is_an_error(trial_of, endpoint):
    broken = trial_of(HttpSystem(name="agent", url=endpoint + "/broken"))
    assert broken.outcome is Outcome.ERRORED
    assert "agent answers 500" in broken.error
    absent = trial_of(HttpSystem(name="agent", url="http://127.0.0.1:9/"))
    assert absent.outcome is Outcome.ERRORED
    assert "ConnectError" in absent.error


def test_the_error_of_an_endpoint_shows_neither_the_login_nor_the_query_of_its_address(trial_of):
    url = "http://ann:hunter22@127.0.0.1:9/ask?key=hunter33"
    error = trial_of(HttpSystem(name="agent", url=url)).error
    assert error.startswith("agent at http://127.0.0.1:9/ask: ConnectError")
    assert "hunter" not in error


def test_an_endpoint_that_answers_under_an_unknown_key_is_an_error_unless_the_suite_reads_it(
    trial_of, endpoint
):
    system = HttpSystem(name="agent", url=endpoint + "/unknown")
    headers = {"authorization": Secret("Bearer ${TOKEN}", "Bearer abc")}
    trial = trial_of(replace(system, headers=headers), expecting("4"))
    assert trial.outcome is Outcome.ERRORED
    assert "agent gives no answer (it returned: reply)" in trial.error
    reading = replace(system, headers=headers, reads={"answer": ("reply",)})
    assert trial_of(reading, expecting("4")).outcome is Outcome.FAILED


def test_an_endpoint_out_of_time_has_failed(trial_of, endpoint):
    trial = trial_of(HttpSystem(name="agent", url=endpoint + "/slow", timeout=0.3))
    assert (trial.outcome, trial.error) == (Outcome.FAILED, None)


def _dead(pid):
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_a_transcript_has_the_calls_and_the_answer_that_an_agents_messages_leave_out(suite_of):
    told = {
        "answer": "24",
        "passed": True,
        "messages": [{"role": "user", "content": "hi"}],
        "tool_calls": [{"function": {"name": "g", "arguments": '{"b": 2}'}}],
    }
    code = f"print({json.dumps(told)!r})"
    journal = MemoryJournal()
    run_trials(suite_of(command(code), task=Task(name="t", prompt="?")), journal=journal)
    assert json.loads(journal.finished()[0].transcript)["messages"] == [
        {"role": "user", "text": "hi"},
        {"role": "assistant", "calls": [{"name": "g", "arguments": {"b": 2}}]},
        {"role": "assistant", "text": "24"},
    ]


REFUNDED = Task(name="t", expect=(Expectation(matcher="contains", value="refunded"),))
CRASH = "import sys; print('refunded'); print('kaboom', file=sys.stderr); exit(7)"


def test_a_program_that_crashes_has_failed_whatever_it_said_before(suite_of):
    journal = MemoryJournal()
    (trial,) = run_trials(suite_of(command(CRASH), task=REFUNDED), journal=journal).trials
    assert (trial.outcome, trial.score) == (Outcome.FAILED, 0.0)
    (check, expected) = json.loads(journal.finished()[0].transcript)["checks"]
    assert (check["target"], check["message"]) == ("exit_code", "exit code 7: kaboom")
    assert expected["score"] == 1


@pytest.mark.parametrize(
    ("options", "target", "outcome"),
    [
        ({"exit_codes": (0, 7)}, None, Outcome.PASSED),
        ({"exit_codes": (0, 8)}, None, Outcome.FAILED),
        ({"outcome": "expect"}, None, Outcome.PASSED),
        ({}, ("exit_code", 7), Outcome.PASSED),
        ({}, ("conversation.exit_code", 7), Outcome.PASSED),
        ({}, ("exit_code", 0), Outcome.FAILED),
        ({}, ("stderr", "kaboom\n"), Outcome.FAILED),
    ],
)
def test_an_exit_code_is_fine_where_the_suite_says_so(trial_of, options, target, outcome):
    expect = REFUNDED.expect
    if target is not None:
        expect += (Expectation(matcher="exact", target=target[0], value=target[1]),)
    trial = trial_of(command(CRASH, **options), Task(name="t", expect=expect))
    assert trial.outcome is outcome


def test_exit_codes_decide_where_nothing_is_expected_too(trial_of):
    assert trial_of(command("exit(7)", exit_codes=(7,))).outcome is Outcome.PASSED
    assert trial_of(command("exit(0)", exit_codes=(7,))).outcome is Outcome.FAILED
    told = command("print('{\"score\": 1}'); exit(7)", exit_codes=(0, 7))
    assert trial_of(told).outcome is Outcome.PASSED


AGENT_CLASSES = """\
import os, random, time

class Callable:
    def __call__(self, prompt):
        return prompt == "2 + 2?"

class Agent:
    def run(self, prompt):
        return prompt == "2 + 2?"
    async def later(self, prompt):
        return prompt == "2 + 2?"
    @staticmethod
    def apart(prompt):
        return prompt == "2 + 2?"
    @classmethod
    def ours(cls, prompt):
        return prompt == "2 + 2?"

def factory():
    return Callable()

def factory_of_runners():
    return Agent()

class Result(dict):
    run = 7

def factory_of_odd_results():
    return Result(passed=True)

class Counter:
    made = 0
    def __bool__(self):
        raise TypeError("ask me for no truth")
    def __init__(self):
        self.asked = []
        Counter.made += 1
    def run(self, prompt, history):
        time.sleep(0.03 * random.random())  # so that workers take turns
        self.asked.append(prompt)
        return {"passed": len(self.asked) == len(history) // 2 + 1, "answer": str(Counter.made)}
    __call__ = run

shared = Counter()
INSTANCE = Agent()

async def late_factory():
    return Agent().later

def parts(prompt):
    yield prompt

class Needy:
    def __init__(self, key):
        self.key = key
    def run(self, prompt):
        return prompt == "2 + 2?"
"""


def test_a_class_of_the_user_works_or_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "agent_classes.py").write_text(AGENT_CLASSES)
    callables = ("Callable", "Agent.run", "Agent.later", "Agent.apart", "Agent.ours")
    factories = ("factory", "late_factory", "factory_of_runners", "factory_of_odd_results")
    for name in (*callables, *factories):
        workers = int(name == "factory")
        system = PythonSystem(
            name="a", function=f"agent_classes:{name}", search=tmp_path, workers=workers
        )
        assert lacks_function(system) is None, name
        pairing = Pairing(system=system, task=Task(name="t", prompt="2 + 2?"), runs=2, label="t")
        trials = run_trials(Suite(name="s", pairings=(pairing,))).trials
        assert {trial.outcome for trial in trials} == {Outcome.PASSED}, name
    for name, why in (
        ("Agent", "is a class, whose instances cannot be called: name its method .* such as agent"),
        ("parts", r"yields its answer in parts: return it whole"),
        (
            "Needy.run",
            r"Needy\(\) raised TypeError: .*missing 1 required.*or an instance: agent = Needy",
        ),
        (
            "INSTANCE",
            r"is not a function but a Agent.*name agent_classes:INSTANCE\.run, or a fun",
        ),
    ):
        system = PythonSystem(name="a", function=f"agent_classes:{name}", search=tmp_path)
        assert re.search(why, lacks_function(system) or ""), name


@pytest.mark.parametrize(
    "workers", [0, 1, pytest.param(3, marks=pytest.mark.slow("three processes for five trials"))]
)
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(
    "name",
    ["Counter.run", pytest.param("Counter", marks=pytest.mark.slow("a call in place of a method"))],
)
def test_an_instance_of_a_class_lasts_for_one_trial_and_its_conversation(
    tmp_path, name, steps, workers
):
    module = f"counters_{name.replace('.', '_')}_{steps}_{workers}"
    (tmp_path / f"{module}.py").write_text(AGENT_CLASSES)
    system = PythonSystem(name="a", function=f"{module}:{name}", search=tmp_path, workers=workers)
    said = tuple(Step(name=f"s{i}", prompt=f"say {i}") for i in range(steps))
    task = Task(name="t", prompt="" if steps else "2 + 2?", steps=said)
    pairing = Pairing(system=system, task=task, runs=5, label="t")
    trials = run_trials(Suite(name="s", pairings=(pairing,))).trials
    assert [trial.outcome for trial in trials] == [Outcome.PASSED] * 5
    if not workers:
        assert sys.modules[module].Counter.made == 1 + 5  # one of them is `shared`


def test_a_conversation_whose_worker_died_is_an_error_and_never_begins_again_in_silence(tmp_path):
    (tmp_path / "mortal.py").write_text(
        AGENT_CLASSES + "class Mortal(Counter):\n"
        "    def __call__(self, prompt, history, trial):\n"
        "        if trial == 1 and prompt == 'say 1':\n            os._exit(3)\n"
        "        return self.run(prompt, history)\n"
    )
    system = PythonSystem(name="a", function="mortal:Mortal", search=tmp_path, workers=1)
    said = tuple(Step(name=f"s{i}", prompt=f"say {i}") for i in range(3))
    task = Task(name="t", prompt="", steps=said)
    pairing = Pairing(system=system, task=task, runs=2, label="t")
    suite = Suite(name="s", pairings=(pairing,), concurrency=2, retries=0)
    outcomes = {trial.outcome for trial in run_trials(suite).trials}
    assert Outcome.FAILED not in outcomes  # one that lost its memory would have failed
    assert Outcome.ERRORED in outcomes


def test_an_instance_that_is_named_is_shared_by_all_trials(tmp_path):
    (tmp_path / "agent_named.py").write_text(AGENT_CLASSES)
    system = PythonSystem(name="a", function="agent_named:shared.run", search=tmp_path)
    pairing = Pairing(system=system, task=Task(name="t", prompt="2 + 2?"), runs=4, label="t")
    trials = run_trials(Suite(name="s", pairings=(pairing,))).trials
    assert sorted(trial.outcome.name for trial in trials) == ["FAILED"] * 3 + ["PASSED"]
