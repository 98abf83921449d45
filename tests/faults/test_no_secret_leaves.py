"""No secret leaves a run: every file and every line that comes out of it is searched."""

import base64
import json
import random
import sqlite3
import string
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from backports import zstd
from click.testing import CliRunner

from passhat.cli import main
from passhat.records.redaction import Redactor
from passhat.records.secrets import SHAPES
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.testing import WireServer

CLOCK = Path(__file__).parents[1] / "runner" / "clock_server.py"
_random = random.Random(20261115)


def drawn(alphabet, length):
    return "".join(_random.choices(alphabet, k=length))


ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits

# Put together here, so that no file of this repository looks as if it held a key.
KEYS = {
    "openai": "sk-" + drawn(ALNUM, 48),
    "openai project": "sk-proj-" + drawn(ALNUM, 60),
    "anthropic": "sk-ant-api03-" + drawn(ALNUM, 80),
    "openrouter": "sk-or-v1-" + drawn(HEX, 64),
    "langfuse": "sk-lf-" + drawn(HEX, 32),
    "google": "AIza" + drawn(ALNUM, 35),
    "google oauth": "ya29." + drawn(ALNUM, 60),
    "github": "ghp_" + drawn(ALNUM, 36),
    "github app": "ghs_" + drawn(ALNUM, 36),
    "github fine": "github_pat_" + drawn(ALNUM, 60),
    "gitlab": "glpat-" + drawn(ALNUM, 20),
    "aws id": "AKIA" + drawn(UPPER, 16),
    "aws session": "ASIA" + drawn(UPPER, 16),
    "aws secret": "aws_secret_access_key = " + drawn(ALNUM, 40),
    "azure storage": "AccountKey=" + drawn(ALNUM, 86) + "==",
    "slack bot": "xoxb-" + drawn(string.digits, 12) + "-" + drawn(ALNUM, 24),
    "slack app": "xapp-1-" + drawn(ALNUM, 40),
    "slack hook": "https://hooks.slack.com/services/" + drawn(ALNUM, 40),
    "telegram": drawn(string.digits, 9) + ":AA" + drawn(ALNUM, 33),
    "hugging face": "hf_" + drawn(ALNUM, 34),
    "groq": "gsk_" + drawn(ALNUM, 52),
    "xai": "xai-" + drawn(ALNUM, 80),
    "perplexity": "pplx-" + drawn(ALNUM, 48),
    "replicate": "r8_" + drawn(ALNUM, 37),
    "fireworks": "fw_" + drawn(ALNUM, 24),
    "nvidia": "nvapi-" + drawn(ALNUM, 60),
    "tavily": "tvly-" + drawn(ALNUM, 32),
    "langsmith": "lsv2_pt_" + drawn(HEX, 32),
    "stripe": "sk_live_" + drawn(ALNUM, 24),
    "sendgrid": "SG." + drawn(ALNUM, 22) + "." + drawn(ALNUM, 43),
    "twilio": "SK" + drawn(HEX, 32),
    "npm": "npm_" + drawn(ALNUM, 36),
    "pypi": "pypi-AgE" + drawn(ALNUM, 60),
    "databricks": "dapi" + drawn(HEX, 32),
    "digital ocean": "dop_v1_" + drawn(HEX, 64),
    "vault": "hvs." + drawn(ALNUM, 24),
    "jwt": "eyJ" + drawn(ALNUM, 30) + ".eyJ" + drawn(ALNUM, 30) + "." + drawn(ALNUM, 43),
    "bearer": "Bearer " + drawn(ALNUM, 30),
    "address": "postgresql://app:" + drawn(ALNUM, 20) + "@db.internal/app",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\n" + drawn(ALNUM, 64) + "\n"
    "-----END RSA PRIVATE KEY-----",
}
RANDOM = {
    "CRM_PASSWORD": drawn(ALNUM + "!#%+,:;=?@^~", 14),
    "AGENT_TOKEN": drawn(ALNUM, 24),
    "MODEL_SECRET": drawn(HEX, 32),
    "SIDE_KEY": 'quo"te\\' + drawn(ALNUM, 12),
    "PLAIN_NAME": drawn(ALNUM, 20),
}
"""Five random values; the last is a secret because it is sent in a header."""


def core(key):
    """The part of a key that must never be seen: the words around it may stay."""
    longest = max(key.replace("\n", " ").replace(":", " ").replace("@", " ").split(), key=len)
    return longest[-16:]


SECRETS = {**{name: core(key) for name, key in KEYS.items()}, **RANDOM}

SUITE = """\
name: leaky
defaults: {{runs: 2}}
servers:
  clock: {{command: ["{python}", "{clock}"], env: [AGENT_TOKEN]}}
systems:
  - name: chat
    model: m
    base_url: "{url}"
    wire: openai-chat
    api_key: "${{MODEL_SECRET}}"
    headers: {{X-Extra: "${{PLAIN_NAME}}"}}
    servers: [clock]
  - name: program
    command: ["{python}", "{here}/agent.py"]
    env: [CRM_PASSWORD, SIDE_KEY]
  - name: function
    python: "told:run"
tasks:
  - name: log in
    prompt: 'Log in with ${{CRM_PASSWORD}} and ${{MODEL_SECRET}} and ${{PLAIN_NAME}} please'
    expect: [{{contains: nothing of the kind}}, {{snapshot: said}}]
  - name: in steps
    systems: [chat]
    steps:
      - {{name: one, prompt: "First ${{AGENT_TOKEN}}", expect: [{{exists: true}}]}}
      - {{name: two, prompt: "Then ${{SIDE_KEY}}", expect: [{{contains: never}}]}}
"""
AGENT = """\
import os, pathlib, sys
text = pathlib.Path({path!r}).read_text() + os.environ["CRM_PASSWORD"] + os.environ["SIDE_KEY"]
sys.stderr.write(text)
print(text)
"""
FUNCTION = """\
import os, pathlib
def run(prompt):
    text = pathlib.Path({path!r}).read_text() + " " + prompt
    return {{"answer": text, "messages": [{{"role": "user", "content": text}}],
             "tool_calls": [{{"name": "log_in", "arguments": {{"with": text}}}}]}}
"""


@pytest.fixture(scope="module")
def leaky(tmp_path_factory):
    """A directory in which a run has met every secret at every place, and all that was printed."""
    here = tmp_path_factory.mktemp("leaky")
    everything = "\n".join([*KEYS.values(), *RANDOM.values()])
    (here / "everything.txt").write_text(everything)
    (here / "agent.py").write_text(AGENT.format(path=str(here / "everything.txt")))
    (here / "told.py").write_text(FUNCTION.format(path=str(here / "everything.txt")))

    def answer(asked):
        if asked.body["messages"][-1]["role"] == "tool":
            return Reply(text=everything)
        arguments = {"time": everything, "encoded": base64.b64encode(everything.encode()).decode()}
        return Reply(calls=(CallRequest(id="1", name="convert_time", arguments=arguments),))

    with pytest.MonkeyPatch.context() as patch, WireServer(answer) as server:
        for name, value in RANDOM.items():
            patch.setenv(name, value)
        patch.chdir(here)
        text = SUITE.format(python=sys.executable, clock=CLOCK, url=server.url, here=here)
        (here / "passhat.yml").write_text(text)
        outputs = [f"-o{name}" for name in ("r.json", "r.md", "r.xml")]
        first = call("run", "--record", "--html", "r.html", "--transcripts", *outputs)
        assert first.exit_code == 1, first.output
        (here / "passhat.yml").write_text(text.replace("please", "at once"))
        drift = call("run", "--replay")
        assert drift.exit_code == 2, drift.output
        assert "prompt was" in drift.output
        (here / "passhat.yml").write_text(text)
        again = call("run", "--replay")
        shown = call("cassette", "show", "cassettes/chat.jsonl")
        verified = call("cassette", "verify")
        planned = call("run", "--dry-run")
        assert verified.exit_code == 0, verified.output
        printed = "".join(d.output for d in (first, drift, again, shown, verified, planned))
        scanned = call("scan", "cassettes", "snapshots", ".passhat", "r.html")
    return here, printed, scanned


def call(*arguments):
    return CliRunner().invoke(main, list(arguments))


def texts_in(path):
    """What is in a file, with everything unpacked: written here anew, so that it cannot agree by
    sharing a mistake."""
    data = path.read_bytes()
    if not data.startswith(b"SQLite"):
        return [unpacked(data)]
    found = []
    with closing(sqlite3.connect(path)) as store:
        stored = "SELECT name FROM sqlite_schema WHERE type='table' AND sql NOT LIKE '%VIRTUAL%'"
        for (table,) in store.execute(stored):
            for row in store.execute(f"SELECT * FROM {table}"):
                found += [v for v in row if isinstance(v, str)]
                found += [unpacked(v) for v in row if isinstance(v, bytes)]
    return found


def unpacked(data):
    whole = zstd.decompress(data) if data.startswith(b"\x28\xb5\x2f\xfd") else data
    return whole.decode("utf-8", "replace")


def holding(text, secret):
    return secret in text or json.dumps(secret)[1:-1] in text


def test_no_secret_is_in_any_file_that_a_run_writes(leaky):
    here, _, _ = leaky
    given = {"everything.txt", "agent.py", "told.py", "passhat.yml"}
    files = [p for p in here.rglob("*") if p.is_file() and p.name not in given]
    written = {p.suffix for p in files if "__pycache__" not in p.parts}
    assert written >= {".jsonl", ".db", ".html", ".json", ".md", ".xml", ".txt"}
    leaked = [
        (path.name, name)
        for path in files
        if path.suffix not in (".pyc", ".db-wal", ".db-shm")
        for text in texts_in(path)
        for name, secret in SECRETS.items()
        if holding(text, secret)
    ]
    assert leaked == []


def test_no_secret_is_in_anything_that_is_printed(leaky):
    _, printed, _ = leaky
    assert [name for name, secret in SECRETS.items() if holding(printed, secret)] == []


def test_what_was_said_is_still_there_without_the_secrets(leaky):
    here, _, _ = leaky
    (cassette,) = (here / "cassettes").glob("chat.jsonl")
    assert "Log in with [redacted:CRM_PASSWORD]" in cassette.read_text()
    assert "[redacted:MODEL_SECRET]" in cassette.read_text()


def test_a_scan_of_what_a_run_wrote_finds_nothing(leaky):
    _, _, scanned = leaky
    assert scanned.exit_code == 0, scanned.output


@pytest.mark.parametrize("name", [*KEYS, *RANDOM])
def test_a_scan_finds_a_planted_secret_and_does_not_print_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable, value in RANDOM.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PLAIN_NAME_KEY", RANDOM["PLAIN_NAME"])
    secret = KEYS.get(name) or RANDOM[name]
    text = json.dumps({"text": f"it was {secret} then"})
    (tmp_path / "plain.txt").write_text(f"first line\nit was {secret} then")
    (tmp_path / "packed.jsonl.zst").write_bytes(zstd.compress(text.encode()))
    with closing(sqlite3.connect(tmp_path / "store.db")) as store, store:
        store.execute("CREATE TABLE transcripts (body BLOB)")
        store.execute("INSERT INTO transcripts VALUES (?)", [zstd.compress(text.encode())])
    done = call("scan", "plain.txt", "packed.jsonl.zst", "store.db", "--json")
    found = {entry["path"] for entry in json.loads(done.stdout)}
    assert found == {"plain.txt", "packed.jsonl.zst", "store.db"}
    assert done.exit_code == 1
    assert core(secret) not in done.output


def test_a_scan_of_a_missing_path_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("scan", "nowhere")
    assert done.exit_code == 2
    assert "there is no such file or folder" in done.output


def test_every_shape_is_found_by_one_of_its_needles():
    for key in KEYS.values():
        found = [shape.name for shape in SHAPES if shape.pattern.search(key)]
        assert found
        assert [s for s in SHAPES if s.name in found and s.may_be_in(key)]


def test_a_mark_that_a_model_writes_itself_is_not_exchanged_for_the_secret():
    redactor = Redactor({"hunter2hunter2": "KEY"}, restorable=["hunter2hunter2"])
    kept = redactor.clean_reply('"give me [redacted:KEY]"')
    assert "hunter2" not in redactor.restore(kept)
    told = '"it is hunter2hunter2"'
    assert redactor.restore(redactor.clean_reply(told)) == told


def test_a_secret_that_was_cut_off_is_redacted_too():
    redactor = Redactor({"hunter2hunter2": "KEY"})
    assert redactor.clean("got 'it is hunter2hun...'") == "got 'it is [redacted:KEY]...'"
    assert redactor.clean("hunter...") == "[redacted:KEY]..."
    assert redactor.clean("a hunt...") == "a hunt..."


@pytest.mark.slow("starts the command once more")
def test_what_a_python_agent_prints_is_cleaned_line_by_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in RANDOM.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "talks.py").write_text(
        "import os, sys, logging\n"
        "def run(prompt):\n"
        "    print('the key is', os.environ['AGENT_TOKEN'], end='')\n"
        "    print(' and', os.environ['MODEL_SECRET'])\n"
        "    sys.stderr.write('password=' + 'hunter22' + '\\n')\n"
        "    logging.getLogger('talks').error('log in with %s', os.environ['CRM_PASSWORD'])\n"
        "    print('no line end', flush=True, end='')\n"
        "    return True\n"
    )
    (tmp_path / "passhat.yml").write_text(
        "systems: [{name: a, python: 'talks:run'}]\ntasks: [{name: t, prompt: x}]\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "passhat", "run", "--no-store", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the key is [redacted:AGENT_TOKEN] and [redacted:MODEL_SECRET]" in done.stderr
    assert "password=[redacted]\n" in done.stderr
    assert "log in with [redacted:CRM_PASSWORD]" in done.stderr
    assert "no line end" in done.stderr
    json.loads(done.stdout)


def test_what_a_run_writes_is_for_its_user_alone(leaky):
    here, _, _ = leaky
    for path in (here / ".passhat" / "history.db", here / "r.html", *here.glob("cassettes/*")):
        assert path.stat().st_mode & 0o777 == 0o600, path
