"""What report pages cost: making them, and a real browser that loads, paints and sorts them.

`python -m bench browser` writes pages of simulated trials, opens each in chromium, sorts its table
of tasks, and prints CPU time against the limits: ours for making the page, then that of its main
thread. Other processes slow it down through caches and hyper-threads, so each number of the browser
is the least of several visits.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.reporters.rendering import render_html

VISITS = 5
MOST_MAKING = 3.0
"""CPU seconds from trials to a page."""
MOST_LOAD, MOST_PAINT, MOST_SORT = 1.0, 0.5, 0.2
"""CPU seconds of all of a page, seconds to its first paint, CPU seconds to sort 2,000 rows."""

# The entry may come after the frame: it is waited for.
PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  const [first] = list.getEntriesByName("first-contentful-paint");
  if (first) done(first.startTime);
}).observe({type: "paint", buffered: true}))"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))"
SORT = "[data-tasks] :is([data-order], thead button)"
BY_NAME = """control => control.matches("button") ? control.click()
  : (control.value = "name", control.dispatchEvent(new Event("change")))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One visit: CPU seconds of the load, seconds to the first paint, CPU seconds of a sort."""

    load: float
    paint: float
    sort: float


def main() -> None:
    print("## Report pages in a browser\n")
    print("| page | made, CPU-s | size, MB | load, CPU-s | first paint, s | sort by name, CPU-s |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        pages = written(Path(folder))
        visits: dict[str, list[Visit]] = {name: [] for name in pages}
        for _ in range(VISITS):
            for name, (page, _) in pages.items():
                visits[name].append(visit(browser, page))
        for name, (page, made) in pages.items():
            seen = visits[name]
            numbers = (min(getattr(one, part) for one in seen) for part in Visit.__slots__)
            shown = " | ".join(f"{number:.2f}" for number in numbers)
            print(f"| {name} | {made:.2f} | {page.stat().st_size / 1e6:.2f} | {shown} |")
    print(
        f"| *limit* | {MOST_MAKING:.2f} | | {MOST_LOAD:.2f} | {MOST_PAINT:.2f} | {MOST_SORT:.2f} |"
        "\n\n"
        f"CPU time of the page's main thread in chromium; the least of {VISITS} visits. "
        "First paint is by the clock, from the start of the navigation."
    )


def written(folder: Path) -> dict[str, tuple[Path, float]]:
    """The pages by name, and the CPU seconds that making each took."""
    render_html(measure(simulate(tasks=5, runs=5, rate={"a": 0.5, "b": 0.6})))  # compiles templates
    shapes = {
        "1 system x 2,000 tasks x 5 runs": (2_000, 5, {"agent": 0.8}),
        "100,000 trials: 1 system x 1,000 tasks x 100 runs": (1_000, 100, {"agent": 0.8}),
        "12 agents x 127 tasks x 4 runs": (
            127,
            4,
            {f"agent-{i}": 0.3 + i / 20 for i in range(12)},
        ),
        "12 agents x 1,000 tasks x 20 runs": (
            1_000,
            20,
            {f"agent-{i}": 0.3 + i / 20 for i in range(12)},
        ),
    }
    pages = {}
    for place, (name, (tasks, runs, rate)) in enumerate(shapes.items()):
        trials = simulate(tasks=tasks, runs=runs, rate=rate, seed=place)
        begun = time.process_time()
        page = render_html(measure(trials))
        pages[name] = folder / f"{place}.html", time.process_time() - begun
        pages[name][0].write_text(page, encoding="utf-8")
    return pages


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    names = ("chromium-headless-shell", "chromium", "google-chrome")
    executable = next(filter(None, map(shutil.which, names)), None)
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=flags)
        yield browser
        browser.close()


def visit(browser: Any, path: Path) -> Visit:
    """Open a page in a fresh context and sort its first list of tasks by name."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    start = _cpu(session)
    page.goto(path.as_uri())
    page.evaluate(SETTLED)
    loaded = _cpu(session)
    paint = page.evaluate(PAINTED) / 1000
    page.evaluate(
        "() => document.querySelectorAll('details.fold').forEach((one) => one.open = true)"
    )
    page.evaluate(SETTLED)
    before = _cpu(session)
    page.locator(SORT).first.evaluate(BY_NAME)
    page.evaluate(SETTLED)
    sorted_ = _cpu(session)
    context.close()
    return Visit(load=loaded - start, paint=paint, sort=sorted_ - before)


def _cpu(session: Any) -> float:
    """CPU seconds of the page's main thread so far."""
    found: Mapping[str, Any] = session.send("Performance.getMetrics")
    return next(one["value"] for one in found["metrics"] if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
