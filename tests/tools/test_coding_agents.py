"""Coding agents by name: the real programs, in the sandbox, against a model API on loopback.

The model plays one script: it mends calc.py, runs the tests, and says that it is done. What it has
been told is in each request, so that it needs no memory and serves many trials at once.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.test_no_secret_leaves import texts_in
from tests.runner.test_workspaces import HIDDEN, MEND, RUN_HIDDEN, WRONG, isolated

from passhat.records import Outcome, TokenUsage
from passhat.records.providers import CODING_AGENTS
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.suite import load_suite
from passhat.testing import WireServer

INSTALLED = Path(__file__).parents[2] / ".venv-tools" / "coding-agents"
PROGRAMS = os.pathsep.join(
    [
        os.environ.get("PASSHAT_CODING_AGENTS", ""),
        f"{INSTALLED}/node_modules/.bin",
        f"{INSTALLED}/bin",
    ]
)

MODELS = {
    "claude-code": "claude-sonnet-4-5",
    "codex": "gpt-5",
    "gemini": "gemini-2.5-pro",
    "opencode": "gpt-5",
    "aider": "gpt-5",
}

SHELLS = {
    "Bash": lambda command: {"command": command, "description": "work"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "run_shell_command": lambda command: {"command": command},
    "bash": lambda command: {"command": command, "description": "work"},
}
"""The tool of each agent that runs a command, and how it is called."""

RESULTS = {
    "anthropic": '"type": "tool_result"',
    "openai-responses": '_call_output"',
    "openai-chat": '"role": "tool"',
    "gemini": '"functionResponse"',
}
"""By what the result of a tool is known, in each API."""

EDIT = """\
calc.py
<<<<<<< SEARCH
    return a - b
=======
    return a + b
>>>>>>> REPLACE
"""
"""What aider wants to read instead of a tool call."""


class Scripted:
    """A model that mends calc.py, or (with `mends` False) only says so; it keeps its own ledger."""

    def __init__(self, mends=True, commands=()):
        self.commands = [MEND if mends else "true", *commands, "python3 -m unittest -q"]
        self.text = f"Done.\n\n{EDIT}" if mends else "Done."
        self.ledger = []

    def __call__(self, asked):
        body = json.dumps(asked.body)
        tools = asked.body.get("tools") or []
        declared = [one for tool in tools for one in tool.get("functionDeclarations") or [tool]]
        names = [one.get("name") or one.get("function", {}).get("name") for one in declared]
        shell = next((name for name in names if name in SHELLS), None)
        done = body.count(RESULTS[asked.form])
        usage = TokenUsage(tokens_in=1000 + 100 * done, tokens_out=50)
        self.ledger.append((asked.model, usage, body))
        if shell is None or done >= len(self.commands):
            return Reply(text=self.text, usage=usage)
        arguments = SHELLS[shell](self.commands[done])
        call = CallRequest(id=f"call_{done}", name=shell, arguments=arguments)
        return Reply(calls=(call,), stop_reason="tool_calls", usage=usage)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "calc").mkdir()
    (folder / "calc" / "calc.py").write_text(WRONG)
    (folder / "hidden").mkdir()
    (folder / "hidden" / "hidden_tests.py").write_text(HIDDEN)
    return folder


SUITE = """\
name: mend
concurrency: 2
systems:
  - {{name: {agent}, agent: {agent}, model: {model}, base_url: "{url}", api_key: "${{KEY}}"{more}}}
tasks:
  - name: {task}
    prompt: "calc.add in calc.py is wrong. Mend it."
    workspace: calc
    keep: ["*.log"]
    runs: {runs}
    timeout: 200
    expect:
      - tests: {{run: "{run}", files: hidden/, at_least: 2}}
"""

REAL_KEY = "sk-real-key-8f2d91c07ab34e65"


def suite_for(folder, agent, server, *, runs, more="", task="add"):
    url = server.url.removesuffix("/v1") if agent in ("claude-code", "gemini") else server.url
    path = folder / f"{agent}.yml"
    path.write_text(
        SUITE.format(
            agent=agent, model=MODELS[agent], url=url, runs=runs, run=RUN_HIDDEN, more=more,
            task=task,
        )
    )  # fmt: skip
    return path


def here(agent):
    """The program of an agent; the test is skipped where it is not installed."""
    program = CODING_AGENTS[agent].program
    found = shutil.which(program, path=PROGRAMS)
    if found is None:
        pytest.skip(f"{program} is not installed: make .venv-tools/coding-agents/.installed")
    return str(Path(found).parent)


def tried(folder, agent, monkeypatch, *, runs, mends=True, more=""):
    """The trials, their transcripts, and what the model has in its ledger."""
    monkeypatch.setenv("PATH", f"{here(agent)}{os.pathsep}{os.environ['PATH']}")
    model, journal = Scripted(mends), MemoryJournal()
    with WireServer(model) as server:
        path = suite_for(folder, agent, server, runs=runs, more=more)
        suite = load_suite(path, env={**os.environ, "KEY": REAL_KEY})
        result = run_trials(suite, journal=journal, handle_signals=False, keep_going=True)
        keys = {one.headers.get("authorization") or one.headers.get("x-api-key") or
                one.headers.get("x-goog-api-key") for one in server.asked}  # fmt: skip
    said = [json.loads(done.transcript) for done in journal.finished()]
    assert keys <= {REAL_KEY, f"Bearer {REAL_KEY}"}
    assert REAL_KEY not in json.dumps(said)
    return result, said, model.ledger


SKILL = "---\nname: adder\ndescription: SKILLMARK how to mend additions\n---\nUse +.\n"


@isolated
@pytest.mark.slow("starts a coding agent of some hundred megabytes, a few times")
def test_a_skill_is_in_every_request_of_its_own_arm_and_in_none_of_the_other(
    folder, tmp_path, monkeypatch
):
    """With a HOME that holds a copy of the skill and a hook, which must not leak in."""
    (tmp_path / ".claude" / "skills" / "adder").mkdir(parents=True)
    (tmp_path / ".claude" / "skills" / "adder" / "SKILL.md").write_text(SKILL)
    (tmp_path / "CLAUDE.md").write_text("SKILLMARK")
    hook = {"type": "command", "command": "echo SKILLMARK"}
    settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setenv("HOME", str(tmp_path))
    (folder / "adder").mkdir(exist_ok=True)
    (folder / "adder" / "SKILL.md").write_text(SKILL)
    for more in ("", ", add_files: {.claude/skills/adder: adder}"):
        result, _, ledger = tried(folder, "claude-code", monkeypatch, runs=2, more=more)
        assert [trial.outcome for trial in result.trials] == [Outcome.PASSED] * 2
        working = [body for _, _, body in ledger if '"Bash"' in body]
        assert working
        assert all(("SKILLMARK" in body) == bool(more) for body in working)
        assert more or not any("SKILLMARK" in body for _, _, body in ledger)  # side calls too


@isolated
@pytest.mark.slow("starts a coding agent of some hundred megabytes, a few times")
@pytest.mark.parametrize("agent", CODING_AGENTS)
def test_a_coding_agent_by_name_works_alone_and_its_ledger_is_exact(folder, agent, monkeypatch):
    runs = 10 if agent in ("claude-code", "codex") else 1
    for mends in (True, False):
        result, said, ledger = tried(folder, agent, monkeypatch, runs=runs, mends=mends)
        wanted = Outcome.PASSED if mends else Outcome.FAILED
        assert [trial.outcome for trial in result.trials] == [wanted] * runs, said[0]
        assert sum(trial.tokens_in for trial in result.trials) == sum(
            usage.tokens_in for _, usage, _ in ledger
        )
        assert sum(trial.tokens_out for trial in result.trials) == 50 * len(ledger)
        assert result.calls == len(ledger)
        assert result.cost > 0
        if mends:
            assert all("+    return a + b" in one["workspace"]["diff"] for one in said)


MARK = "mark-5e1f0c77"
"""What may be known: it is in the name of the task, in what the agent writes, and in its log."""

LOOK = (
    f"echo '# {MARK}' >> calc.py; echo {MARK} > work.log; "
    "env; cat /proc/*/environ | tr '\\0' '\\n'; "
    "grep -rslF \"$(printf 'sk-real-%s' {rest})\" "
    "/project /home /tmp /etc /run /var /dev/shm /opt | sed 's/^/HOLDS THE KEY: /'; echo LOOKED"
)
"""Searches the sandbox for the key; the command does not name it in one piece."""


@isolated
@pytest.mark.slow("starts a coding agent of some hundred megabytes, with all that a run writes")
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_the_real_key_is_nowhere_in_a_sandbox_or_in_what_a_run_writes(tmp_path, agent):
    """The control: a key in the workspace is seen there, and a mark in every kind of file."""
    programs = here(agent)
    look = LOOK.replace("{rest}", REAL_KEY.removeprefix("sk-real-"))
    for planted in (False, True):
        folder = tmp_path / ("planted" if planted else "clean")
        (folder / "calc").mkdir(parents=True)
        (folder / "calc" / "calc.py").write_text(WRONG)
        (folder / "hidden").mkdir()
        (folder / "hidden" / "hidden_tests.py").write_text(HIDDEN)
        if planted:
            (folder / "calc" / "leak.txt").write_text(f"The key: {REAL_KEY}.\n")
        model = Scripted(commands=[look])
        env = {**os.environ, "KEY": REAL_KEY, "TMPDIR": str(folder), "PATH": os.pathsep.join(
            [programs, os.environ["PATH"]])}  # fmt: skip
        with WireServer(model) as server:
            path = suite_for(folder, agent, server, runs=1, task=f"add {MARK}")
            words = [sys.executable, "-m", "passhat", "run", path.name, "--record", "--transcripts"]
            words += ["--html", "page.html", "-o", "report.json", "-o", "events.ndjson"]
            done = subprocess.run(words, cwd=folder, env=env, capture_output=True, check=False)
        (folder / "printed.txt").write_bytes(done.stdout + done.stderr)
        assert done.returncode == 0, done.stderr
        # In the sandbox: what the search printed is in later requests.
        bodies = [body for _, _, body in model.ledger]
        assert any("HOME=/home/agent" in body for body in bodies), "it did not look"
        holding = {path for body in bodies for path in re.findall(r"HOLDS THE KEY: (/\w\S+)", body)}
        assert {path.partition("\\n")[0].strip('"') for path in holding} == (
            {"/project/leak.txt"} if planted else set()
        )
        assert not any(REAL_KEY in body for body in bodies)
        # Outside: every file that was not there before.
        places = {
            "store": [folder / ".passhat" / "history.db"],
            "artefacts": [*(folder / ".passhat").rglob("*")],
            "cassette": [*(folder / "cassettes").rglob("*")],
            "page": [folder / "page.html"],
            "report": [folder / "report.json"],
            "log": [folder / "events.ndjson", folder / "printed.txt"],
        }
        for kind, paths in places.items():
            texts = [text for file in paths if file.is_file() for text in texts_in(file)]
            assert any(MARK in text for text in texts), f"the search does not see into the {kind}"
        given = {folder / "calc" / "leak.txt"}
        written = [file for file in folder.rglob("*") if file.is_file() and file not in given]
        assert [f for f in written if any(REAL_KEY in text for text in texts_in(f))] == []
