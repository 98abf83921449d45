"""A real browser: Debian's chromium without its windows, driven by playwright."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

WRAPPERS = [
    "{}", "\">{}", "'>{}", "</style>{}", "</title>{}", "</script>{}", "-->{}", "]]>{}",
    "</desc>{}", "</text>{}", "{{{{{}}}}}",
]  # fmt: skip
ATTACKS = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<body onload=window.hit=1>",
    "<a href=javascript:window.hit=1>x</a>",
    "<details open ontoggle=window.hit=1>",
    "<style>@import 'http://127.0.0.1:9/x'</style>",
    '" onmouseover=window.hit=1 x="',
]
CORPUS = [wrap.format(attack) for wrap in WRAPPERS for attack in ATTACKS]

WRITER = """
import sys
from passhat.history import History
from passhat.records import Outcome, Trial
path, key, count = sys.argv[1:]
with History.open(path) as history:
    run = history.find_run(key)
    for i in range(int(count)):
        outcome = Outcome(1 - i // 2% 2)
        trial = Trial(system="agent", task=f"t{i % 2}", trial=i // 2, outcome=outcome)
        history.add_trials(run, [trial], first_sequence=i)
        if i == int(count) // 2:
            sys.stdin.readline()
    history.finish_run(run)
"""

CONTROLS = "input,select,button.plain,nav,.tools,header.site,form.choose,details:not([open],.group)"
VISIBLE = """selector => [...document.querySelectorAll(selector)]
  .filter(e => e.getClientRects().length).map(e => e.outerHTML.slice(0, 80))"""

OUTSIDE = """() => [...document.querySelectorAll("svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
  }).map(text => text.textContent);
})"""

# Letters of a picture are as high as its scale makes them.
SMALL = """() => [...document.querySelectorAll("body *")].filter(e => e.getClientRects().length
  && [...e.childNodes].some(node => node.nodeType === 3 && node.data.trim())).filter(e => {
    const size = parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM?.().a ?? 1);
    return 0 < size && size < 11.95;
  }).map(e => e.textContent.slice(0, 40))"""

# The popups of the address bar are pages that every window would load: a quarter of all CPU. This
# list takes the place of playwright's, whose names it keeps.
DISABLED = [
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades",
    "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints",
    "PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning",
]  # fmt: skip
FLAGS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
    f"--disable-features={','.join(DISABLED)}",
]  # fmt: skip

AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A printed page: the controls it still shows, its ground, and how far it runs over."""

    controls: list[str]
    ground: str
    beyond: int
    paper: bytes

    def pages(self) -> list[str]:
        """The words of each page."""
        if shutil.which("pdftotext") is None:
            pytest.skip("no pdftotext on this machine (Debian: apt-get install poppler-utils)")
        found = subprocess.run(
            ["pdftotext", "-layout", "-", "-"], input=self.paper, capture_output=True, check=True
        )
        return found.stdout.decode().split("\f")[:-1]


# Not for the session: playwright's loop would run on under the tests of other files.
@pytest.fixture(scope="module")
def browser():
    # The same engine without address bar, extensions and windows takes a third to half of the CPU.
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        pytest.skip("no chromium here (Debian: apt-get install chromium-headless-shell)")
    playwright = pytest.importorskip("playwright.sync_api")
    os.environ.setdefault("NODE_NO_WARNINGS", "1")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Opens an address and afterwards insists: no console error, no request to elsewhere."""
    contexts, complaints, requests = [], [], []

    def open_it(address: str, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []
    assert [u for u in requests if not u.startswith(("file:", "data:", "http://127.0.0.1"))] == []


@pytest.fixture
def axe_violations():
    if not AXE.exists():
        pytest.skip("axe-core is not installed (make test installs it where npm is present)")

    def check(page) -> list[str]:
        # evaluate() is not bound by the page's own policy.
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run(document).then(r => r.violations)")
        return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]

    return check


@pytest.fixture
def words_outside():
    """The words of pictures that reach beyond their picture, where nobody sees them."""
    return lambda page: page.evaluate(OUTSIDE)


@pytest.fixture
def small_words():
    """What is written in letters of less than 12 pixels, in pictures too."""
    return lambda page: page.evaluate(SMALL)


@pytest.fixture
def printed():
    """How a page looks on paper: what is visible, and its pages as a PDF."""

    def look(page) -> Printed:
        page.emulate_media(media="print")
        seen = page.evaluate(VISIBLE, CONTROLS)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        paper = page.pdf(format="A4", print_background=True)
        page.emulate_media(media="screen")
        return Printed(controls=seen, ground=ground, beyond=wide, paper=paper)

    return look


@pytest.fixture(scope="session")
def corpus():
    """Texts that would run, load or break out, wherever text is not treated as text."""
    return CORPUS


@pytest.fixture
def write_trials_elsewhere():
    """Starts a process that writes half of the trials, and ends the run when it is told to."""
    started = []

    def start(path, key, *, count):
        arguments = [sys.executable, "-c", WRITER, str(path), key, str(count)]
        started.append(subprocess.Popen(arguments, stdin=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.stdin.close()
        process.kill()
        process.wait()
