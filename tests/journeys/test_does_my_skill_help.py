"""Does my skill help? A small coding agent with and without one, from the suite to the answer.

The agent is a program of forty lines that looks for skills as coding agents do, in its project and
in its HOME, and asks a model on loopback, which reads the skill before it works.
"""

import json
import shutil

import pytest
from tests.runner.test_workspaces import HIDDEN, RUN_HIDDEN, WRONG, isolated

import passhat
from passhat.errors import HistoryError
from passhat.records import (
    CommandSystem,
    Pairing,
    Resources,
    Suite,
    Task,
    TokenUsage,
    ToolCall,
    Workspace,
)
from passhat.records.trial import USED
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.runner.preflight import arm_of
from passhat.runner.workspaces import added_file
from passhat.testing import WireServer

SKILL = """\
---
name: adder
description: SKILLMARK how to mend additions
---
Whoever adds two numbers always uses the plus sign.
"""

AGENT = """\
import glob, http.client, json, os, sys

skills = [f for home in (os.environ["HOME"], ".") for f in glob.glob(home + "/.claude/skills/*/*")]
described = "".join(open(file).read().split("---")[1] for file in skills)
messages = [{"role": "system", "content": described}, {"role": "user", "content": sys.stdin.read()}]
server = http.client.HTTPConnection(os.environ["PASSHAT_GATEWAY"].removeprefix("http://"))
while True:
    body = {"model": "gpt-5", "messages": messages, "max_tokens": 100, "tools": []}
    server.request("POST", "/v1/chat/completions", json.dumps(body))
    said = json.load(server.getresponse())["choices"][0]["message"]
    messages.append(said)
    if not said.get("tool_calls"):
        break
    for call in said["tool_calls"]:
        given = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "read":
            result = open(given["path"]).read()
        else:
            result = "written"
            open("calc.py", "w").write(given["text"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
print("done")
"""

SUITE = """\
name: adder
defaults:
  runs: 5
  base_url: "URL"
  api_key: sk-1
  prices: {input: 1, output: 10}
  expect: [{tests: {run: "RUN", files: hidden/, at_least: 2}}]
systems:
  - {name: without, command: [/usr/bin/python3, -IS, agent.py], model: gpt-5}
  - name: with
    command: [/usr/bin/python3, -IS, agent.py]
    model: gpt-5
    add_files: {.claude/skills/adder: skills/adder}
tasks:
  - {name: mend, prompt: "Mend it.", workspace: calc}
  - {name: mend more, prompt: "Mend it.", workspace: calc}
  - {name: mend all, prompt: "Mend it.", workspace: calc}
  - {name: keep, prompt: "Keep it as it should be.", workspace: calc}
"""


USAGE = TokenUsage(tokens_in=10, tokens_out=2)


def model(asked):
    """Reads the skill where it is offered, and then does what is asked only where that is mending.

    Without a skill it is the other way round, so that the skill hurts at one task.
    """
    text = json.dumps(asked.body["messages"])
    read = "always uses the plus sign" in text
    if "SKILLMARK" in text and not read:
        call = CallRequest(id="1", name="read", arguments={"path": ".claude/skills/adder/SKILL.md"})
    elif '"written"' not in text:
        right = read != ("Keep" in text)
        body = WRONG.replace("a - b", "a + b") if right else WRONG
        call = CallRequest(id="2", name="write", arguments={"text": body})
    else:
        return Reply(text="done", usage=USAGE)
    return Reply(calls=(call,), stop_reason="tool_calls", usage=USAGE)


@pytest.fixture(scope="module")
def server():
    with WireServer(model) as server:
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory, server):
    """A suite with and without a skill, and a HOME that holds the skill too."""
    folder = tmp_path_factory.mktemp("skill")
    for name, text in (
        ("agent.py", AGENT),
        ("calc/calc.py", WRONG),
        ("hidden/hidden_tests.py", HIDDEN),
        ("skills/adder/SKILL.md", SKILL),
        ("home/.claude/skills/adder/SKILL.md", SKILL),
        ("passhat.yml", SUITE.replace("URL", server.url).replace("RUN", RUN_HIDDEN)),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def answered(project, server):
    """The answer of the whole run, and the requests of each arm."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HOME", str(project / "home"))
    store = project / "history.db"
    answer = passhat.run(
        project / "passhat.yml", store=store, until_settled=True, require="better_than without"
    )
    patch.undo()
    return answer, [json.dumps(asked.body) for asked in server.asked]


@pytest.mark.slow("runs both arms in sandboxes")
@isolated
def test_the_answer_tells_the_lift_its_price_the_use_and_where_it_hurts(answered):
    answer, _ = answered
    (lift,) = answer.lifts
    assert answer.verdicts.status == "PASS"
    assert lift.difference.value == pytest.approx(0.5)
    assert lift.difference.interval.low > 0
    # One more call a trial, of 10 tokens in and 2 out at $1 and $10 a million.
    assert lift.means["cost"] == pytest.approx((3 * 30e-6, 2 * 30e-6))
    assert lift.means["tokens"] == pytest.approx((36, 24))
    assert lift.used == {"adder": lift.passed[0][1]}
    assert [(one.task, one.significant) for one in lift.worse] == [("keep", True)]


@isolated
def test_the_answer_is_twelve_lines(answered):
    answer, _ = answered
    text = str(answer)
    head = text.partition("\nCompare: ")[0]
    told = [line for line in head.splitlines() if line.strip()]
    assert len(told) <= 12, text
    assert "better than without" in told[0]
    for words in ("cost a trial", "+50%", "used adder", "less often on 1 of 4 tasks: keep"):
        assert words in head, text


@isolated
def test_a_skill_reaches_the_model_in_its_own_arm_alone_though_it_is_at_home_too(answered):
    answer, requests = answered
    with_skill = [text for text in requests if "SKILLMARK" in text]
    marked = answer.trials.has_word("tags", f"{USED}adder")
    arms = [trial.system for trial in answer.trials]
    assert [arm == "with" for arm in arms] == marked.tolist()
    assert len(with_skill) == 3 * arms.count("with")
    assert len(requests) - len(with_skill) == 2 * arms.count("without")


CHANGES = {
    "model": ("passhat.yml", "model: gpt-5", "model: gpt-5-mini", "its model was gpt-5 and is"),
    "program": ("agent.py", "print", "print ", "its program has changed"),
    "tasks": ("passhat.yml", "Keep it", "Keep this", "its tasks have changed"),
    "hidden tests": ("hidden/hidden_tests.py", "-3)", "-3) ", "its fixtures have changed"),
    "workspace": ("calc/calc.py", "a - b", "a  - b", "its fixtures have changed"),
    "memory": ("passhat.yml", "systems:", "resources: {memory: 2GB}\nsystems:", "its limits have"),
    "hosts": ("passhat.yml", "systems:", "network: [example.org]\nsystems:", "its limits have"),
    "time": ("passhat.yml", "workspace: calc}", "workspace: calc, timeout: 60}", "its limits have"),
}


@isolated
def test_a_stored_baseline_stands_in_for_an_agent_that_is_not_run(answered, project):
    baseline = answered[0].trials.where(system="without")
    again = passhat.run(
        project / "passhat.yml", store=project / "history.db", only="with", tasks=["mend*", "keep"],
        runs=2, require="better_than without",
    )  # fmt: skip
    (lift,) = again.lifts
    assert again.trials.systems == ("with",)
    assert lift.reused == f"run {answered[0].run}"
    assert lift.passed[1][1] == len(baseline)
    assert f"those of run {answered[0].run}" in str(again)


@isolated
@pytest.mark.parametrize("what", CHANGES)
def test_a_baseline_is_not_used_again_once_anything_of_it_has_changed(
    answered, project, tmp_path, what
):
    shutil.copytree(project, tmp_path / "copy")
    name, old, new, reason = CHANGES[what]
    file = tmp_path / "copy" / name
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(
        HistoryError, match=f"run {answered[0].run} cannot stand in for it: {reason}"
    ):
        passhat.run(
            tmp_path / "copy" / "passhat.yml", store=tmp_path / "copy" / "history.db", only="with",
            require="better_than without",
        )  # fmt: skip


def test_every_file_of_every_task_and_its_image_and_limits_are_what_a_baseline_depends_on(tmp_path):
    """Also files that lie at the same place in several tasks, or whose places are exchanged."""
    for name in ("one/data.csv", "two/data.csv", "Dockerfile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    one, two = tmp_path / "one/data.csv", tmp_path / "two/data.csv"
    system = CommandSystem(name="a", argv=("agent",))

    def arm(*works, **suite):
        tasks = [Task(name=f"t{n}", workspace=Workspace(**work)) for n, work in enumerate(works)]
        pairings = tuple(Pairing(system=system, task=t, runs=1, label=t.name) for t in tasks)
        return arm_of(Suite(name="s", pairings=pairings, directory=tmp_path, **suite), "a")

    files = {"files": (("data.csv", one),)}, {"files": (("data.csv", two),)}
    assert arm(*files) == arm(*files)
    arms = {
        "files": arm(*files),
        "exchanged": arm(*reversed(files)),
        "twice the second": arm(files[1], files[1]),
        "an image": arm({"image": "example.org/x:1"}),
        "another image": arm({"image": "example.org/x:2"}),
        "a Dockerfile": arm({"image": tmp_path / "Dockerfile"}),
        "limits": arm({"limits": Resources(memory=1)}),
        "other limits": arm({"limits": Resources(memory=2)}),
        "limits of all": arm({"limits": Resources(memory=2)}, resources=Resources(disk=1)),
    }
    two.write_text("changed")
    arms["a changed file"] = arm(*files)
    (tmp_path / "Dockerfile").write_text("changed")
    arms["a changed Dockerfile"] = arm({"image": tmp_path / "Dockerfile"})
    told = [json.dumps(one, sort_keys=True) for one in arms.values()]
    assert len(set(told)) == len(told), arms


def test_added_files_with_the_same_last_name_are_told_apart(tmp_path):
    """Else the use of one would count as the use of both."""
    places = {".claude/skills/pdf": tmp_path, "docs/pdf": tmp_path, "AGENTS.md": tmp_path}
    system = CommandSystem(name="a", argv=("a",), add_files=places)
    assert list(system.added_names().values()) == [".claude/skills/pdf", "docs/pdf", "AGENTS.md"]


@pytest.mark.parametrize(
    ("call", "used"),
    [
        (ToolCall(name="Skill", arguments={"skill": "adder"}), True),
        (ToolCall(name="activate_skill", arguments={"name": "sums"}), True),
        (ToolCall(name="Read", arguments={"file_path": "/project/.claude/skills/sums/x.md"}), True),
        (ToolCall(name="Bash", arguments={"command": "cat .claude/skills/sums/SKILL.md"}), True),
        (ToolCall(name="Bash", arguments={"command": "ls .claude/skills/sums-2"}), False),
        (ToolCall(name="Bash", arguments={"command": "echo sums"}), False),
        (ToolCall(name="Skill", arguments="not even an object"), False),
    ],
)
def test_a_skill_is_used_where_a_call_names_its_path_or_asks_for_it(tmp_path, call, used):
    (tmp_path / "SKILL.md").write_text(SKILL)
    assert added_file(".claude/skills/sums", tmp_path).is_called_by(call) is used


def test_the_description_of_a_skill_in_a_request_is_no_use_of_it_but_its_text_is(tmp_path):
    """Every prompt of an agent describes the skills that it could read."""
    (tmp_path / "SKILL.md").write_text(SKILL.replace("two numbers", 'two "números"'))
    added = added_file("skills/adder", tmp_path)
    described = json.dumps({"system": SKILL.partition("\n---\n")[0]}).encode()
    assert not added.is_in(described)
    for escaped in (True, False):
        whole = json.dumps({"x": (tmp_path / "SKILL.md").read_text()}, ensure_ascii=escaped)
        assert added.is_in(whole.encode())
