"""What every test shares: properties are checked for truth, never for speed."""

from __future__ import annotations

import gc
import hashlib
import http.client
import os
import pickle
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from numpy import asarray

# The same examples every time: what turns red was changed. `make search` looks for new ones.
settings.register_profile("passhat", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=5)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("passhat")
# Hypothesis also draws constants of the modules that are loaded, and a worker loads those of the
# tests it happens to run: the same test would see other examples every time.
providers._get_local_constants = lambda: providers._local_constants

# In the background Ctrl-C is ignored, and under nohup a closed terminal. Programs that tests start
# would inherit that, and never stop; a handler of ours ignores it too, and is not inherited.
for _sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_sign) is signal.SIG_IGN:
        signal.signal(_sign, lambda *_: None)

# What a test and the programs that it starts may see of the environment; what else it needs, a test
# sets itself. The last are read by tests alone: gold files to write, programs and tasks to find.
KEPT = re.compile(
    r"HOME|LOGNAME|PATH|PYENV_\w+|SHELL|TMPDIR|USER|LD_LIBRARY_PATH|XDG_(CACHE_HOME|RUNTIME_DIR)"
    r"|PYTHON(PATH|DONTWRITEBYTECODE)|OPENBLAS_NUM_THREADS"
    r"|COV_?(CORE|ERAGE)_\w+|PYTEST_(?!ADDOPTS|PLUGINS)\w+|PASSHAT_(GOLD|CODING_AGENTS|TAU2_BENCH)"
)
SET = {"LANG": "C.UTF-8", "TZ": "UTC"}


def pytest_configure(config):
    """Import passhat as its users do.

    It brings a plugin, so pytest takes all of it for one, and each worker of a fresh checkout would
    rewrite the assertions of 300 modules: 5 CPU-s.
    """
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("passhat")


def pytest_collection_modifyitems(items):
    """Who makes others wait says why, and takes no more examples than the profile allows.

    Files that simulate or start processes are long and come first: at the end no worker waits for
    one of them.
    """
    turns = {folder: turn for turn, folder in enumerate(LONG)}
    items.sort(key=lambda item: turns.get(_kind(item), len(LONG)))
    for item in items:
        own = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
        if own is not None and own.max_examples > settings.default.max_examples:
            fewer = settings(own, max_examples=settings.default.max_examples)
            item.obj._hypothesis_internal_use_settings = fewer
        for mark in item.iter_markers("slow"):
            if mark.kwargs or [type(reason) for reason in mark.args] != [str]:
                raise pytest.UsageError(f'{item.nodeid}: say why: @pytest.mark.slow("...")')


LONG = ("tools", "calibration", "browser", "journeys", "faults", "cli", "runner")


def _kind(item):
    if item.path.stem.endswith("calibration"):
        return "calibration"
    return _folder(item.nodeid)


def _folder(nodeid):
    return nodeid.partition("/")[2].partition("/")[0]


# Modules and thousands of tests are made, and stay to the end: nothing of them is garbage.
gc.disable()


def pytest_collection_finish():
    """Let no collection walk through them again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def the_same_environment_everywhere():
    """Neither a CI, a wide or coloured terminal, a time zone nor a key changes what a test sees."""
    dropped = {name for name in os.environ if not KEPT.fullmatch(name)}
    with pytest.MonkeyPatch.context() as patch:
        for name in dropped:
            patch.delenv(name)
        for name in ("COLUMNS", "LINES"):  # readline sets them where os.environ does not look
            os.unsetenv(name)
        for name, value in SET.items():
            patch.setenv(name, value)
        time.tzset()
        yield dropped
    time.tzset()


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Each HTTP client reads what this machine trusts, in 20 to 60 ms; here that stays the same."""
    import httpcore2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def stores_outlive_no_power_cut():
    """Each store that a test makes would wait for the disk half a dozen times."""
    from passhat.history import sqlite

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "SYNCHRONOUS", "OFF")
        yield


class KnownBounds:
    """Bounds of suites by what they are computed from, kept here and in files.

    Other workers read them there, and the next run of the tests, as long as the statistics are the
    same: whoever works on a screen waits for the bounds once.
    """

    def __init__(self, folder):
        self.here, self.folder = {}, folder

    def of(self, compute, cells, *more, **options):
        key = hashlib.blake2b(repr(options).encode(), digest_size=20)
        for part in map(asarray, (cells.n, cells.c, cells.tasks, *more)):
            key.update(f"{part.shape} {part.dtype} ".encode() + part.tobytes())
        name = key.hexdigest()
        if name not in self.here:
            if len(self.here) == 5000:
                self.here.clear()  # a simulation came by
            self.here[name] = self._shared(name, lambda: compute(cells, *more, **options))
        return tuple(end.copy() for end in self.here[name])

    def _shared(self, name, compute):
        path = self.folder / name
        with suppress(FileNotFoundError, EOFError):
            return pickle.loads(path.read_bytes())
        ends = compute()
        mine = path.with_suffix(f".{os.getpid()}")
        mine.write_bytes(pickle.dumps(ends))
        mine.replace(path)  # whole, or not there
        return ends


@pytest.fixture(scope="session")
def bounds_folder():
    """Where the bounds that the statistics of a checkout give are kept."""

    def folder_of(root):
        made_by = hashlib.blake2b(digest_size=8)
        for module in sorted((root / "src/passhat/stats").rglob("*.py")):
            made_by.update(module.read_bytes())
        versions = f"{version('numpy')}-{version('scipy')}"
        return root / ".bounds" / f"{versions}-{made_by.hexdigest()}"

    return folder_of


@pytest.fixture(scope="session")
def known_bounds(bounds_folder):
    """The bounds that these statistics give; those of others are forgotten after a day."""
    folder = bounds_folder(Path(__file__).parents[1])
    folder.mkdir(parents=True, exist_ok=True)
    for former in folder.parent.iterdir():
        if time.time() - former.stat().st_mtime > 86_400 and former != folder:
            shutil.rmtree(former, ignore_errors=True)
    return KnownBounds(folder)


@pytest.fixture(scope="module", autouse=True)
def bounds_are_computed_once(request, known_bounds):
    """Commands, screens and pages show the same few suites: a third of their time is bounds.

    tests/stats computes them every time, and says that the same come out every time.
    """
    from passhat.analysis.gates import rounds
    from passhat.stats import assurance, mean_intervals, paired, suite_mean
    from passhat.stats.suite_bounds import suite_bounds

    bounds = partial(known_bounds.of, suite_bounds)
    with pytest.MonkeyPatch.context() as patch:
        if _folder(request.node.nodeid) not in ("corpus", "stats"):
            for module in (assurance, mean_intervals, paired, rounds, suite_mean):
                patch.setattr(module, "suite_bounds", bounds)
        yield


@pytest.fixture(scope="module")
def few_suites_drawn():
    """A plan that is looked at for its words or its shape draws a sixth of its suites."""
    from passhat.analysis.gates.gate_plan import plan_gate
    from passhat.analysis.planning import plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "WIDTH_SUITES", 16)
        patch.setattr(plan, "POWER_SUITES", 100)
        patch.setitem(plan_gate.__kwdefaults__, "repetitions", 33)
        yield


@dataclass
class Site:
    """A running dashboard, spoken to in plain HTTP."""

    port: int
    access: object
    url: str
    server: object
    thread: threading.Thread

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self):
        return {"cookie": f"passhat-{self.port}={self.access.session}"}

    def ask(self, path, *, method="GET", headers=None, body=None):
        """Status, headers and text of one request, exactly as it is written here."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read().decode()
        finally:
            connection.close()

    def stop(self, *, seconds=None):
        """End the server; whether it did so in time."""
        self.server.should_exit = True
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def get(self, path):
        """A page, as somebody who is let in."""
        return self.ask(path, headers=self.cookie)


@pytest.fixture
def serve_site():
    """Serves the dashboard of a store on a free loopback port, with the real server."""
    from passhat.dashboard import server as serving
    from passhat.dashboard.responses import Access
    from passhat.journeys.overview import ReportCache

    running = []

    def serve(path):
        access, listener = Access(), serving.listen("127.0.0.1", 0)
        address = serving.address_of(listener, "127.0.0.1")
        title = getattr(path, "name", "store")
        server = serving.make_server(ReportCache(path, title=title), access=access, address=address)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = serving.start_url(address, access)
        running.append((Site(address.port, access, url, server, thread), listener))
        while not server.started:
            time.sleep(0.01)
        return running[-1][0]

    yield serve
    for site, listener in running:
        site.stop()
        listener.close()


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server on loopback, shared by the whole session."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    from passhat.testing.postgres import NoPostgres, postgres_server

    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.fixture
def new_database(postgres):
    """A function that gives the address of an empty PostgreSQL database."""
    return postgres.new_database
