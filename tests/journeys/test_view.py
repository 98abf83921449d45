"""`passhat view`, installed, from the printed address to Ctrl-C."""

import http.client
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from passhat.cli import serve

ROWS = "task,passed\n" + "\n".join(f"t{i % 4},{i % 3 > 0}" for i in range(24)) + "\n"


def start_address(process):
    for line in process.stderr:
        if found := re.search(r"http://\S+", line):
            return urlsplit(found[0])
    raise AssertionError(f"no address was printed; exit {process.wait()}")


def ask(address, path, *, cookie="", token=None):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    origin = f"http://{address.netloc}"
    form = {"origin": origin, "content-type": "application/x-www-form-urlencoded"}
    if token:
        connection.request("POST", path, body=urlencode({"token": token}), headers=form)
    else:
        connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    text, given = answer.read().decode(), answer.getheader("set-cookie") or ""
    connection.close()
    return answer.status, text, given.split(";")[0]


def test_a_log_is_looked_at_and_left_as_it_was(shell):
    shell.write("airline.csv", ROWS)
    process = shell.start("view", "airline.csv", "--no-browser")
    try:
        address = start_address(process)
        assert address.hostname == "127.0.0.1"
        assert ask(address, "/")[0] == 401
        token = address.query.removeprefix("token=")
        status, _, cookie = ask(address, "/enter", token=token)
        assert status == 303
        status, text, _ = ask(address, "/", cookie=cookie)
        assert (status, "airline" in text) == (200, True)
        assert ask(address, "/enter", token=token)[0] == 401
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "Traceback" not in told
    assert [path.name for path in shell.directory.iterdir()] == ["airline.csv"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the documented script uses curl")
def next_address(terminal):
    said = b""
    while not (found := re.search(rb"token=[\w-]+\r?\n", said)):
        said += os.read(terminal, 65536)
    start = said.rindex(b"http://", 0, found.end())
    return urlsplit(said[start : found.end()].decode().strip())


@pytest.mark.slow("starts a server for one more address")
def test_enter_prints_a_new_address_for_one_more_browser(shell):
    shell.write("airline.csv", ROWS)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(shell.directory)
        command = [sys.executable, "-m", "passhat", "view", "airline.csv", "--no-browser"]
        os.execv(sys.executable, command)
    first = next_address(terminal)
    os.write(terminal, b"\n")
    second = next_address(terminal)
    assert first.netloc == second.netloc
    assert ask(first, "/enter", token=first.query.removeprefix("token="))[0] == 401
    status, _, cookie = ask(first, "/enter", token=second.query.removeprefix("token="))
    assert status == 303
    os.write(terminal, b"\n")
    third = next_address(terminal)
    assert ask(first, "/enter", token=third.query.removeprefix("token="))[0] == 303
    assert ask(first, "/", cookie=cookie)[0] == 200
    os.write(terminal, b"\x03")  # Ctrl-C
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    os.close(terminal)


@pytest.mark.slow("starts a server once more")
def test_the_documented_script_fetches_a_page(shell):
    page = (Path(__file__).parents[2] / "docs/how-to/look-at-results.md").read_text()
    (script,) = re.findall(r"^```bash\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    shell.write("airline.csv", ROWS)
    process = shell.start("view", "airline.csv", "--no-browser")
    try:
        address = start_address(process).geturl()
        fetched = subprocess.run(
            ["bash", "-c", script],
            cwd=shell.directory,
            env={"PATH": os.environ["PATH"], "ADDRESS": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    finally:
        process.kill()
        process.communicate()
    assert "<title>Runs" in fetched.stdout
    assert "airline" in fetched.stdout


@pytest.mark.slow("the command once more, on another log")
def test_what_a_log_of_another_tool_says_is_read_in_the_browser(shell):
    log = Path(__file__).parents[1] / "samples" / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    process = shell.start("view", str(log), "--no-browser")
    try:
        address = start_address(process)
        token = address.query.removeprefix("token=")
        _, _, cookie = ask(address, "/enter", token=token)
        trial = {"system": "mockllm/model", "task": "flaky_task/t4", "trial": 5}
        status, text, _ = ask(address, "/run/latest/trial?" + urlencode(trial), cookie=cookie)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert status == 200
    assert "<h1>flaky_task/t4 #5 failed</h1>" in text
    assert "say ok 4" in text
    assert '<b>✕ failed</b> includes: <span class="words">wrong</span>' in text


@pytest.mark.slow("starts the command for every mistake")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no history here yet"),
        (("nothing.csv",), "nothing.csv"),
        (("foreign.db",), "no history of passhat"),
        (("torn.db",), "not a passhat history store"),
        (("results.csv", "--host", "0.0.0.0"), "give --expose and a token"),
        (("results.csv", "--host", "0.0.0.0", "--expose"), "give --expose and a token"),
        (("results.csv", "--token", "short"), "--token must have at least 20 characters"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(shell, arguments, message):
    shell.write("results.csv", ROWS)
    make = "import sqlite3; c = sqlite3.connect('foreign.db'); c.execute('CREATE TABLE t (x)')"
    subprocess.run([sys.executable, "-c", make], cwd=shell.directory, check=True)
    shell.write("torn.db", "SQLite format 3\0" + "x" * 2000)
    done = shell("view", *arguments, "--no-browser")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_without_the_extra_it_is_named(shell):
    shell.write("results.csv", ROWS)
    code = (
        "import sys; sys.modules['starlette'] = None; "
        "from passhat.cli import main; main(['view', 'results.csv', '--no-browser'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shell.directory, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "pip install 'passhat[web]'" in done.stderr


def test_the_log_of_a_site_behind_a_proxy_holds_no_token(capsys):
    serve._show_address(
        "h.db", "https://evals.example/passhat", "http://127.0.0.1:80/enter?token=abc", None,
        browser=False,
    )  # fmt: skip
    said = capsys.readouterr().err
    assert "https://evals.example/passhat" in said
    assert "http://127.0.0.1:80\n" in said
    assert "abc" not in said
