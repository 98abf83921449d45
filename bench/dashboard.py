"""How soon a page of the dashboard is painted over 100,000 trials.

`python -m bench dashboard` serves two stores on loopback (a hundred runs of a thousand trials, and
one run of 100,000) and opens each page in a real browser: the first visit, and one after it.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.browser import chromium
from passhat.analysis.planning.simulate import simulate
from passhat.dashboard import server as serving
from passhat.dashboard.responses import Access, compile_templates
from passhat.history import Checkout, History
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import keep_answers, keep_explanation

PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
MOST_CPU = 500
"""Milliseconds of the server for any page, the first visit included."""
LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def main() -> None:
    # A clock says nothing of a page while others use the machine.
    quiet = os.getloadavg()[0] < (os.cpu_count() or 1)
    print("| store | page | first paint, ms | again | all of it, ms | again | CPU, ms | again |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name, runs, tasks, trials in (
            ("100 runs x 1,000 trials", 100, 100, 10),
            ("1 run x 100,000 trials", 1, 1_000, 100),
        ):
            path = Path(folder) / f"{runs}.db"
            build(path, runs=runs, tasks=tasks, trials=trials)
            with serve(path) as (origin, cookie), browse(cookie) as page:
                for title, address in pages(path):
                    visits = zip(*(visit(page, origin + address) for _ in range(2)), strict=True)
                    numbers = " | ".join(f"{n:.0f}" if shown else "-" for pair, shown in
                                         zip(visits, (quiet, quiet, True), strict=True)
                                         for n in pair)  # fmt: skip
                    print(f"| {name} | {title} | {numbers} |", flush=True)
    print(
        f"| *limit* | | | | | | {MOST_CPU} | {MOST_CPU} |\n\n"
        "CPU is what the server took for a page, the first visit and one after it; the live page "
        "is that of a run that has ended. A busy machine makes it a third longer, and its clock "
        f"says nothing: the load was {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores."
    )


def build(path: Path, *, runs: int, tasks: int, trials: int) -> None:
    with History.open(path) as history:
        for i in range(runs):
            at = Checkout(commit=f"{i:040x}", branch="main")
            started = f"2026-{1 + i // 28:02d}-{1 + i % 28:02d}T09:00:00.000+00:00"
            run = history.start_run(f"suite-{i % 4}", checkout=at, started=started)
            history.add_trials(run, simulate(tasks=tasks, runs=trials, seed=i))
            ended = history.finish_run(run)
            keep_answers(history, ended)  # as `passhat run` does, and then:
            keep_explanation(ended.key, path)


def pages(path: Path) -> list[tuple[str, str]]:
    with History.open(path, read_only=True) as history:
        newest, *older = history.runs()
        task = history.trials(newest).tasks[0]
    found = [
        ("overview", "/"),
        ("runs", "/runs"),
        ("suite", f"/runs?suite={newest.suite}"),
        ("run", f"/run/{newest.key}"),
        ("task", f"/run/{newest.key}/task?system=agent&task={task}"),
        ("why", f"/run/{newest.key}/why"),
        ("live", f"/run/{newest.key}/live"),
        ("trend", f"/trend?suite={newest.suite}"),
        ("search", "/search?q=task-01"),
    ]
    if older:
        found.append(("compare", f"/compare?run={newest.key}&run={older[3].key}"))
    return found


@contextmanager
def serve(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    compile_templates()  # as `passhat view` does before anybody asks
    access = Access()
    with closing(serving.listen("127.0.0.1", 0)) as listener:
        address = serving.address_of(listener, "127.0.0.1")
        server = serving.make_server(
            ReportCache(path, title="bench"), access=access, address=address
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        cookie = {"name": address.cookie, "value": access.session, "domain": "127.0.0.1",
                  "path": "/"}  # fmt: skip
        yield f"http://127.0.0.1:{address.port}", cookie
        server.should_exit = True
        thread.join()


@contextmanager
def browse(cookie: dict[str, Any]) -> Iterator[Any]:
    with chromium() as browser:
        context = browser.new_context()
        context.add_cookies([cookie])
        yield context.new_page()


def visit(page: Any, address: str) -> tuple[float, float, float]:
    """First paint and load after the address was asked for, and CPU of the server, in ms."""
    begun = time.process_time()
    page.goto(address)
    spent = time.process_time() - begun
    page.wait_for_timeout(200)
    return float(page.evaluate(PAINT)), float(page.evaluate(LOADED)), 1000 * spent


if __name__ == "__main__":
    main()
