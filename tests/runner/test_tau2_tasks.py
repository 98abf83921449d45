"""Tasks of tau2-bench: its tools over MCP, its checks on the conversation, what is refused.

A clone of tau2-bench is no part of these tests: a domain in its form takes its place, and the last
test reads a real one where PASSHAT_TAU2_BENCH names a clone.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from passhat.errors import ServerNeverStarted, SuiteError
from passhat.journeys import run
from passhat.suite import load_suite
from passhat.suite.task_sources import is_tau2_domain, tau2_program

MESSAGES = """
from dataclasses import dataclass, field

@dataclass
class ToolCall:
    id: str
    name: str
    arguments: dict

@dataclass
class ToolMessage:
    id: str
    role: str
    content: str = ""
    error: bool = False

@dataclass
class UserMessage:
    role: str
    content: str = None
    tool_calls: list = None

class AssistantMessage(UserMessage):
    pass
"""

TASKS = """
from types import SimpleNamespace

class Task:
    @staticmethod
    def model_validate(row):
        criteria = row.get("evaluation_criteria")
        return SimpleNamespace(evaluation_criteria=criteria and SimpleNamespace(**criteria))
"""

ENVIRONMENT = """
from types import SimpleNamespace
from tau2.data_model.message import ToolMessage

class Environment:
    def __init__(self):
        self.orders = {"7": "open"}

    def get_tools(self):
        shape = {"type": "object", "properties": {"order": {"type": "string"}}}
        about = {"name": "cancel", "description": "Cancel an order.", "parameters": shape}
        return [SimpleNamespace(openai_schema={"function": about})]

    def get_response(self, call):
        order = call.arguments.get("order")
        if order not in self.orders:
            return ToolMessage(call.id, "tool", "Error: no such order", True)
        self.orders[order] = "cancelled"
        return ToolMessage(call.id, "tool", "cancelled", False)

get_environment = Environment
"""

EVALUATORS = {
    "env": """
from types import SimpleNamespace
from tau2.data_model.message import ToolCall

class EnvironmentEvaluator:
    @classmethod
    def calculate_reward(cls, environment_constructor, task, full_trajectory, strict_replay=True):
        assert not strict_replay
        seen, gold = environment_constructor(), environment_constructor()
        for message in full_trajectory:
            for call in getattr(message, "tool_calls", None) or ():
                assert not seen.get_response(call).error, "a call that failed is left out"
        for action in task.evaluation_criteria.actions:
            if action["name"] == "broken":
                raise RuntimeError("the database is gone")
            gold.get_response(ToolCall("", action["name"], action["arguments"]))
        return SimpleNamespace(reward_breakdown={"DB": float(seen.orders == gold.orders)})
""",
    "communicate": """
from types import SimpleNamespace
from tau2.data_model.message import AssistantMessage

class CommunicateEvaluator:
    @classmethod
    def calculate_reward(cls, task, full_trajectory):
        said = " ".join(m.content or "" for m in full_trajectory if type(m) is AssistantMessage)
        return SimpleNamespace(
            reward=float(all(one in said for one in task.evaluation_criteria.communicate_info))
        )
""",
}

CANCEL = {"name": "cancel", "arguments": {"order": "7"}}


def task(name, *actions, told=(), basis=("DB", "COMMUNICATE"), **more):
    about = {"reason_for_call": f"You are task {name}.", "task_instructions": "Be brief."}
    criteria = {"actions": actions, "communicate_info": told, "reward_basis": basis} | more
    return {
        "id": name,
        "user_scenario": {"persona": None, "instructions": about},
        "evaluation_criteria": criteria,
    }


@pytest.fixture
def shop(tmp_path):
    package, folder = tmp_path / "src" / "tau2", tmp_path / "data/tau2/domains/shop"
    files = {
        package / "data_model/message.py": MESSAGES,
        package / "data_model/tasks.py": TASKS,
        package / "domains/shop/environment.py": ENVIRONMENT,
        folder / "policy.md": "Cancel what is open.",
    }
    files |= {package / f"evaluator/evaluator_{k}.py": text for k, text in EVALUATORS.items()}
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def suite(folder, tasks, script, *, system=None, **more):
    (folder / "tasks.json").write_text(json.dumps(tasks))
    content = {
        "systems": [system or {"name": "agent", "model": "scripted", "script": script}],
        "users": {"plain": {"say": ["Cancel order 7.", "Thank you."]}},
        "tasks": [{"name": "shop", "from": str(folder), "runs": 1}],
    } | more
    file = folder / "suite.yml"
    file.write_text(json.dumps({key: part for key, part in content.items() if part}))
    return file


def does(name, *calls, answer="Order 7 is cancelled."):
    made = [{"tool": one["name"], "arguments": one["arguments"]} for one in calls]
    return {"task": f"shop {name}", "calls": made, "answer": answer}


def test_its_own_tools_answer_and_its_own_checks_decide(shop):
    tasks = [
        task("done", CANCEL, told=["order 7"]),
        task("idle", CANCEL),
        task("silent", CANCEL, told=["12 euros"]),
        task("astray", CANCEL),
        task("broken", {"name": "broken", "arguments": {}}),
    ]
    missed = {"name": "cancel", "arguments": {"order": "8"}}
    script = [
        does("done", CANCEL, answer="I have cancelled order 7."),
        does("idle"),
        does("silent", CANCEL),
        does("astray", missed, CANCEL),
        does("broken", CANCEL),
    ]
    done = run(suite(shop, tasks, script))
    rows = {trial.task.removeprefix("shop "): trial for trial in done.trials}
    outcomes = {name: row.outcome.name for name, row in rows.items()}
    assert outcomes == {
        "done": "PASSED",
        "idle": "FAILED",
        "silent": "FAILED",
        "astray": "PASSED",
        "broken": "ERRORED",
    }
    assert "the database is gone" in rows["broken"].error


def test_the_user_has_the_scenario_and_the_agent_the_policy_and_the_tools(shop):
    built = load_suite(suite(shop, [task("one", CANCEL)], [does("one")]))
    (found,) = built.tasks
    assert found.scenario.goal == "Why you call: You are task one.\nWhat to do: Be brief."
    assert "Cancel what is open." in found.system_prompt
    assert [one.name for one in built.used_servers] == ["tau2-shop"]
    (shop / "split_tasks.json").write_text(json.dumps({"base": []}))
    with pytest.raises(SuiteError, match="has no tasks"):
        load_suite(suite(shop, [task("one", CANCEL)], [does("one")]))


program = {"name": "mine", "command": ["true"]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"users": None}, "nobody plays the user"),
        ({"system": program}, r"agents with model:.*mine is a program"),
        ({"tasks": [task("a", basis=["DB", "NL_ASSERTION"], nl_assertions=["x"])]}, "add judge"),
        ({"tasks": [task("a") | {"initial_state": {"a": 1}}]}, "state of its own"),
        ({"tasks": [{"id": "a"}]}, "no user_scenario"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(shop, changed, message):
    given = {"tasks": [task("a", CANCEL)]} | changed
    tasks = given.pop("tasks")
    with pytest.raises(SuiteError, match=message):
        load_suite(suite(shop, tasks, [does("a")], **given))


@pytest.mark.parametrize("splits", [["a"], "base", {"base": "a"}, {"base": {"a": 1}}, 7, None])
def test_splits_that_are_no_lists_by_name_are_refused_in_a_sentence(shop, splits):
    path = suite(shop, [task("a", CANCEL)], [does("a")])
    (shop / "split_tasks.json").write_text(json.dumps(splits))
    with pytest.raises(SuiteError, match=r"split_tasks\.json should be an object with lists"):
        load_suite(path)


@pytest.mark.parametrize("place", ["", "domains", "tau2/domains", "my/tau2/domains"])
def test_only_a_folder_where_tau2_bench_keeps_its_domains_is_one(tmp_path, place):
    folder = tmp_path / place / "retail"
    folder.mkdir(parents=True)
    (folder / "tasks.json").write_text("[]")
    assert not is_tau2_domain(folder)
    assert not is_tau2_domain(Path("/"))
    for given in (folder, Path("/")):
        words = tau2_program(tmp_path / "data" / "tau2" / "domains" / "shop", "serve")[:-1]
        done = subprocess.run([*words, str(given)], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == f"{given} is no domain of tau2-bench: .../data/tau2/domains/retail"


def test_a_domain_whose_users_have_tools_is_refused(shop):
    (shop / "policy.md").unlink()
    with pytest.raises(SuiteError, match="users of telecom have tools of their own"):
        load_suite(suite(shop, [task("a", CANCEL)], [does("a")]))


def test_a_package_that_is_not_tau2_bench_is_named(shop):
    for file in shop.parents[3].glob("src/tau2/domains/shop/*.py"):
        file.unlink()
    with pytest.raises(ServerNeverStarted, match="the tau2 of PyPI is another program"):
        run(suite(shop, [task("a", CANCEL)], [does("a")]))


@pytest.mark.slow("reads a clone of tau2-bench, where PASSHAT_TAU2_BENCH names one")
def test_real_tasks_pass_with_the_expected_calls_and_fail_without(tmp_path):
    clone = os.environ.get("PASSHAT_TAU2_BENCH")
    if clone is None:
        pytest.skip("PASSHAT_TAU2_BENCH names no clone of tau2-bench")
    folder = Path(clone) / "data/tau2/domains/retail"
    rows = json.loads((folder / "tasks.json").read_text())[:4]
    script = [
        does(row["id"], *(row["evaluation_criteria"]["actions"] if place % 2 else ()))
        for place, row in enumerate(rows)
    ]
    content = json.loads(suite(tmp_path, [], script).read_text())
    content["tasks"] = [{"name": "shop", "from": str(folder), "limit": len(rows), "runs": 1}]
    yes = '{"score": 1, "reason": "said"}'
    content["judge"] = {"model": "scripted", "script": [{"answer": yes}]}
    (tmp_path / "suite.yml").write_text(json.dumps(content))
    outcomes = [trial.outcome.name for trial in run(tmp_path / "suite.yml").trials]
    assert outcomes == ["FAILED", "PASSED", "FAILED", "PASSED"]
