"""MCP servers that others wrote, over both transports."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from passhat.errors import ServerError
from passhat.records import (
    Behaviour,
    Expectation,
    HttpServer,
    Outcome,
    ScriptedCall,
    Secret,
    StdioServer,
    Task,
)
from passhat.runner import run_trials
from passhat.runner.mcp_servers import ServerPool
from passhat.runner.models.exchange import ToolRequest

NODE_MODULES = Path(__file__).parent.parent / "node_modules" / "@modelcontextprotocol"
TIME = StdioServer(name="time", argv=(sys.executable, "-m", "mcp_server_time"))


def npm_server(name, *arguments, server_name=None):
    entry = NODE_MODULES / name / "dist" / "index.js"
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not entry.exists():
        pytest.skip(f"{name} is not installed: `make test` installs it where npm is present")
    return StdioServer(name=server_name or name, argv=("node", str(entry), *arguments))


def with_tools(servers, use):
    async def main():
        pool = ServerPool(directory=Path.cwd())
        try:
            async with pool.tools(servers) as tools:
                return await use(tools)
        finally:
            await pool.close()

    return asyncio.run(main())


def call(servers, name, /, **arguments):
    async def use(tools):
        return await tools.call(ToolRequest(name=name, arguments=arguments))

    return with_tools(servers, use)


@pytest.mark.slow("a real server that others wrote; the everything server is one of them")
def test_the_time_server_tells_the_time():
    async def use(tools):
        assert {spec.name for spec in tools.specs} == {"get_current_time", "convert_time"}
        (convert,) = (spec for spec in tools.specs if spec.name == "convert_time")
        assert "source_timezone" in convert.parameters["properties"]
        good = await tools.call(
            ToolRequest(
                name="convert_time",
                arguments={
                    "source_timezone": "Europe/Paris",
                    "time": "12:00",
                    "target_timezone": "Asia/Tokyo",
                },
            )
        )
        bad = await tools.call(ToolRequest(name="convert_time", arguments={"time": "noon"}))
        return good, bad

    good, bad = with_tools([TIME], use)
    assert not good.is_error
    assert "Asia/Tokyo" in good.text
    assert (good.server, good.seconds > 0) == ("time", True)
    assert bad.is_error


@pytest.mark.slow("a real server that others wrote; the everything server is one of them")
def test_the_git_server_reads_a_repository(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file.txt").write_text("hello")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "First words"], check=True)
    server = StdioServer(name="git", argv=(sys.executable, "-m", "mcp_server_git"))
    result = call([server], "git_log", repo_path=str(tmp_path))
    assert "First words" in result.text


@pytest.mark.slow("a real server that others wrote; the everything server is one of them")
def test_the_sqlite_server_of_the_first_sdk_keeps_what_it_is_told(suite_of, scripted, tmp_path):
    program = Path(__file__).parents[2] / ".venv-servers" / "bin" / "mcp-server-sqlite"
    if not program.exists():
        pytest.skip("mcp-server-sqlite is not installed: make .venv-servers/.installed")
    server = StdioServer(name="sqlite", argv=(str(program), "--db-path", "{workdir}/shop.db"))
    calls = [
        ("create_table", "CREATE TABLE orders (id INTEGER, city TEXT)"),
        ("write_query", "INSERT INTO orders VALUES (7, 'Sacramento')"),
        ("read_query", "SELECT city FROM orders WHERE id = 7"),
    ]
    script = tuple(ScriptedCall(tool=name, arguments={"query": text}) for name, text in calls)
    agent = scripted(Behaviour(calls=script, answer="{result}"), servers=("sqlite",))
    expect = (
        Expectation(matcher="contains", value="Sacramento"),
        Expectation(matcher="called_in_order", value=[name for name, _ in calls]),
    )
    task = Task(name="t", prompt="Where did order 7 go?", expect=expect)
    result = run_trials(suite_of(agent, task=task, servers={"sqlite": server}, runs=2))
    assert [(t.outcome, t.error) for t in result.trials] == [(Outcome.PASSED, None)] * 2


def test_the_everything_server_echoes_and_adds():
    server = npm_server("server-everything")
    assert call([server], "echo", message="hi").text == "Echo: hi"
    image = call([server], "get-tiny-image")
    assert "[image image/png" in image.text


@pytest.mark.slow("a real server that others wrote; the everything server is one of them")
def test_the_filesystem_server_works_in_the_directory_of_the_trial(suite_of, scripted):
    server = npm_server("server-filesystem", "{workdir}", server_name="files")
    write = ScriptedCall(tool="write_file", arguments={"path": "out.txt", "content": "42"})
    agent = scripted(Behaviour(calls=(write,), answer="{result}"), servers=("files",))
    expect = Expectation(matcher="contains", target="files.out.txt", value="42")
    task = Task(name="t", prompt="?", expect=(expect,))
    server = StdioServer(name="files", argv=server.argv, cwd=Path("{workdir}"))
    result = run_trials(suite_of(agent, task=task, servers={"files": server}, runs=2))
    assert {trial.outcome for trial in result.trials} == {Outcome.PASSED}


@pytest.mark.slow("a real server that others wrote; the everything server is one of them")
def test_the_memory_server_remembers_within_a_trial(tmp_path):
    server = npm_server("server-memory")
    server = StdioServer(
        name="memory", argv=server.argv, env={"MEMORY_FILE_PATH": Secret.plain(str(tmp_path / "m"))}
    )

    async def use(tools):
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        await tools.call(ToolRequest(name="create_entities", arguments={"entities": [entity]}))
        return await tools.call(ToolRequest(name="read_graph"))

    assert "wrote programs" in with_tools([server], use).text


def test_tools_of_the_same_name_are_told_apart_by_their_servers():
    clock = (sys.executable, str(Path(__file__).with_name("clock_server.py")))
    servers = [StdioServer(name=name, argv=clock) for name in ("east", "west")]

    async def use(tools):
        names = [spec.name for spec in tools.specs]
        result = await tools.call(ToolRequest(name="west__convert_time", arguments={"time": "9"}))
        return names, result.server

    assert with_tools(servers, use) == (["east__convert_time", "west__convert_time"], "west")


def test_names_that_become_equal_are_told_apart_by_a_number():
    long = "a" * 70
    names = ("get.time", "get_time", "get time", long, f"{long}b")
    clock = (sys.executable, str(Path(__file__).with_name("clock_server.py")), *names)

    async def use(tools):
        called = [await tools.call(ToolRequest(name=spec.name)) for spec in tools.specs]
        return [spec.name for spec in tools.specs], [result.text for result in called]

    given, reached = with_tools([StdioServer(name="clock", argv=clock)], use)
    assert given == ["get_time", "get_time_2", "get_time_3", "a" * 64, "a" * 62 + "_2"]
    assert reached == list(names)


def test_a_list_of_tools_without_end_is_an_error_that_names_the_server():
    clock = (sys.executable, str(Path(__file__).with_name("clock_server.py")), "endless")
    with pytest.raises(ServerError, match=r'server "clock" did not start: .*more than 100 pages'):
        with_tools([StdioServer(name="clock", argv=clock)], None)


def test_a_server_sees_only_the_variables_it_is_given(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "do-not-tell")
    server = npm_server("server-everything")
    server = StdioServer(name="env", argv=server.argv, env={"SHOWN": Secret("${SHOWN}", "yes")})
    seen = json.loads(call([server], "get-env").text)
    assert seen["SHOWN"] == "yes"
    assert "OPENAI_API_KEY" not in seen
    assert "PATH" in seen


@contextmanager
def listening(transport):
    """A server of the SDK on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    script = Path(__file__).with_name("http_clock_server.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(port), transport],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def http_server():
    """The address of a server that speaks streamable HTTP."""
    with listening("streamable-http") as address:
        yield f"{address}/mcp"


@pytest.fixture(scope="module")
def sse_server():
    """The address of a server that speaks SSE."""
    with listening("sse") as address:
        yield f"{address}/sse"


def test_a_server_over_http_gets_its_headers(http_server):
    headers = {"authorization": Secret("Bearer ${TOKEN}", "Bearer abc")}
    server = HttpServer(name="remote", url=http_server, headers=headers)
    assert call([server], "whoami").text == "Bearer abc"
    assert call([server], "explode").is_error


def test_a_server_over_sse_is_called_with_its_headers(sse_server):
    headers = {"authorization": Secret("Bearer ${TOKEN}", "Bearer abc")}
    server = HttpServer(name="remote", url=sse_server, transport="sse", headers=headers)
    assert call([server], "whoami").text == "Bearer abc"
    assert call([server], "explode").is_error


def test_the_picture_of_a_tool_comes_with_its_result(http_server):
    result = call([HttpServer(name="remote", url=http_server)], "picture")
    assert result.text == "[image image/png]"
    (picture,) = result.attachments
    assert (picture.mime, picture.data) == ("image/png", "aWNvbg==")


def test_a_server_over_http_that_is_not_there_is_an_error():
    server = HttpServer(name="remote", url="http://127.0.0.1:9/mcp", start_timeout=20)
    with pytest.raises(ServerError, match='server "remote" did not start: ConnectError'):
        call([server], "whoami")


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_server_over_http_that_refuses_us_is_named_without_the_key_in_its_address(transport):
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(401)

        def do_GET(self):
            self.send_error(401)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as refusing:
        Thread(target=refusing.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{refusing.server_port}/mcp?key=hunter22"
        server = HttpServer(name="remote", url=url, transport=transport, start_timeout=20)
        with pytest.raises(ServerError, match='server "remote" did not start') as raised:
            call([server], "whoami")
        refusing.shutdown()
    assert "hunter22" not in str(raised.value)


@pytest.mark.slow("waits until a real server is given up")
def test_a_server_over_http_that_hangs_is_given_up_in_time(http_server):
    server = HttpServer(name="remote", url=http_server, call_timeout=0.5)
    with pytest.raises(ServerError, match=r"did not answer the call of sleep within 0\.5 s"):
        call([server], "sleep")
