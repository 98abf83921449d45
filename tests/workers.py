"""Several processes run the tests of one collection: `-p tests.workers --workers 4`.

pytest-xdist has each worker collect all tests anew, which takes 7 CPU-s (twice that in a fresh
checkout), and exchanges five messages for each test. Here workers are forked off when all is
collected; each takes the next file when it comes to the last test of the one before.
"""

import os
import struct
import sys
import traceback
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait

import pytest

TURN = struct.Struct("H")


def pytest_addoption(parser):
    parser.addoption("--workers", type=int, default=0, help="processes that share the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    config = session.config
    if not config.option.workers or config.option.collectonly or session.testsfailed:
        return None
    files = {}
    for item in session.items:
        files.setdefault(item.path, []).append(item)
    files = list(files.values())
    turns, given = os.pipe()
    os.write(given, b"".join(map(TURN.pack, range(len(files)))))
    os.close(given)  # a worker that reads no further turn has ended
    folder = config._tmp_path_factory.getbasetemp()
    heard, pids = [], []
    for number in range(config.option.workers):
        ours, theirs = Pipe(duplex=False)
        pid = os.fork()
        if not pid:
            for end in (*heard, ours):
                end.close()  # held here too, nobody would see that the one who listens is gone
            _work(session, files, turns, theirs, folder / f"worker-{number}")
        theirs.close()
        heard.append(ours)
        pids.append(pid)
    os.close(turns)
    try:
        _report(session, heard)
    finally:
        for ours in heard:
            ours.close()  # whoever has more to say ends
        for pid in pids:
            os.waitpid(pid, 0)
        config.pluginmanager.getplugin("capturemanager").read_global_capture()  # theirs
    return True


def _report(session, heard):
    """Report what workers send, until each of them has said that it is through."""
    hook, config, open_ends = session.config.hook, session.config, set(heard)
    while open_ends:
        for end in wait(list(open_ends)):
            try:
                kind, sent = end.recv()
            except EOFError:
                kind, sent = "broken", "it was killed; pytest -v names what it ran"
            if kind == "through":
                open_ends.remove(end)
                continue
            if kind == "broken":
                raise RuntimeError(f"a worker broke: {sent}")
            report = hook.pytest_report_from_serializable(config=config, data=sent)
            place = {"nodeid": report.nodeid, "location": report.location}
            if report.when == "setup":
                hook.pytest_runtest_logstart(**place)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                hook.pytest_runtest_logfinish(**place)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


class _Reporter:
    """Sends what a terminal would have shown."""

    def __init__(self, config, end):
        self.config, self.end = config, end

    def pytest_runtest_logreport(self, report):
        hook = self.config.hook
        sent = hook.pytest_report_to_serializable(config=self.config, report=report)
        self.end.send(("report", sent))


def _work(session, files, turns, end, folder):
    """Run file after file; this process ends here."""
    plugins = session.config.pluginmanager
    try:
        capture = plugins.getplugin("capturemanager")
        capture.suspend_global_capture()
        # Stays open: modules that were imported may have kept its sys.stderr.
        session.config.shared_capture, capture._global_capturing = capture._global_capturing, None
        capture.start_global_capturing()  # into files of its own
        plugins.unregister(name="terminalreporter")
        plugins.register(_Reporter(session.config, end))
        folder.mkdir(mode=0o700)
        session.config._tmp_path_factory._basetemp = folder
        _run(session, files, turns)
        end.send(("through", None))
    except BrokenPipeError:
        pass  # nobody listens any more
    except BaseException:
        with suppress(BrokenPipeError):
            end.send(("broken", traceback.format_exc()))
    finally:
        session._setupstate.teardown_exact(None)  # servers and browsers that tests share
        _save_coverage()
        os._exit(0)


def _run(session, files, turns):
    def tests():
        while turn := os.read(turns, TURN.size):
            yield from files[TURN.unpack(turn)[0]]

    ahead = tests()
    item = next(ahead, None)
    while item is not None:
        following = next(ahead, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


def _save_coverage():
    """Each process has data of its own, which pytest-cov puts together."""
    coverage = sys.modules.get("coverage")
    if coverage and (running := coverage.Coverage.current()):
        running.stop()
        running.save()
