"""The main pages in Firefox: Debian's firefox-esr, driven by its own protocol (Marionette)."""

import json
import shutil
import socket
import subprocess
import time

import pytest

from passhat import compare, render_html, simulate
from passhat.analysis.planning.simulate import demonstrate
from passhat.analysis.reports.measure import measure

CHAT = json.dumps({"messages": [{"role": "user", "text": "Cancel my flight"}], "answer": "Done"})
SHOWN = "return [...document.querySelectorAll('.trial')].filter(e => e.checkVisibility()).length"
ESCAPE = """
const pressed = new KeyboardEvent("keydown", { key: "Escape", bubbles: true });
document.activeElement.dispatchEvent(pressed);
"""
ERRORS = """
return Services.console.getMessageArray()
  .filter((one) => one instanceof Ci.nsIScriptError && !(one.flags & Ci.nsIScriptError.warningFlag))
  .filter((one) => /^file:/.test(one.sourceName)).map(String)
"""


class Firefox:
    """A browser that is told what to do by messages of the form `length:[0, id, command, values]`.

    Its driver is part of the browser, so that no other program is needed.
    """

    def __init__(self, port):
        until = time.monotonic() + 120
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
        self.asked = 0
        self._read()  # it introduces itself
        self.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {}})

    def ask(self, command, **values):
        self.asked += 1
        text = json.dumps([0, self.asked, command, values]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, found = self._read()
        assert error is None, error
        return found.get("value") if isinstance(found, dict) else found

    def open(self, address):
        self.ask("WebDriver:Navigate", url=address)

    def run(self, script):
        return self.ask("WebDriver:ExecuteScript", script=script, args=[])

    def press(self, key):
        """A key as a person presses it, which also closes dialogs."""
        pressed = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": pressed}]
        self.ask("WebDriver:PerformActions", actions=actions)

    def errors(self):
        """What went wrong in scripts and styles of pages since it was started."""
        self.ask("Marionette:SetContext", value="chrome")
        found = self.run(ERRORS)
        self.ask("Marionette:SetContext", value="content")
        return found

    def _read(self):
        size = b""
        while (byte := self.socket.recv(1)) != b":":
            assert byte, "the browser has ended"
            size += byte
        text = b""
        while len(text) < int(size):
            text += self.socket.recv(int(size) - len(text))
        return json.loads(text)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    program = shutil.which("firefox-esr")
    if program is None:
        pytest.skip("no Firefox on this machine (Debian: apt-get install firefox-esr)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = tmp_path_factory.mktemp("profile")
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
    options = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
    process = subprocess.Popen(
        [program, *options, "--profile", str(profile)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"HOME": str(profile), "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
    )
    try:
        browser = Firefox(port)
        yield browser
        browser.socket.close()
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow("starts another browser")
@pytest.mark.timeout(600)
def test_the_main_pages_work_in_firefox_as_well(firefox, tmp_path):
    trials = simulate(tasks=14, runs=4, rate={"new": 0.8, "old": 0.5}, seed=2)
    said = {(one.system, one.task, one.trial): CHAT for one in trials}
    one_agent = simulate(tasks=14, runs=4, rate=0.6, seed=1)
    said_by_one = {(one.system, one.task, one.trial): CHAT for one in one_agent}
    several = simulate(tasks=14, runs=4, rate={"a": 0.9, "b": 0.7, "c": 0.4}, seed=3)
    pages = {
        "report": render_html(measure(one_agent), transcripts=said_by_one, trials=one_agent),
        "several": render_html(measure(several)),
        "compare": render_html(compare(trials), transcripts=said, trials=trials),
        "demo": render_html(demonstrate(seed=10)),
    }
    for name, text in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        firefox.open(path.as_uri())
        assert firefox.run("return document.querySelector('h1').textContent"), name
        assert firefox.run("return document.documentElement.classList.contains('js')"), name
        before = firefox.run("return document.querySelector('.hero').innerText")
        firefox.run("""
const slider = document.querySelector("[data-k-slider]");
slider.value = slider.value === slider.max ? 0 : slider.max;
slider.dispatchEvent(new Event("input", { bubbles: true }));
""")
        assert firefox.run("return location.search").startswith("?k="), name
        assert firefox.run("return document.querySelector('.hero').innerText") != before, name
        mark = "document.querySelector('.marks a')"
        if name in ("report", "compare"):
            assert firefox.run(SHOWN) == 0
            firefox.run(f"{mark}.click()")
            assert firefox.run(SHOWN) == 1, name
            address = firefox.run("return location.href")
            firefox.open("about:blank")
            firefox.open(address)  # the address alone opens it
            assert firefox.run(SHOWN) == 1, name
            firefox.run(ESCAPE)
            assert firefox.run(SHOWN) == 0, name
        ground = firefox.run("return getComputedStyle(document.body).backgroundColor")
        firefox.run("document.querySelector('[data-theme-switch]').click()")
        assert firefox.run("return getComputedStyle(document.body).backgroundColor") != ground
    assert firefox.errors() == []


ESCAPE_KEY = "\ue00c"
FOCUSED = "return document.activeElement.type ?? document.activeElement.tagName"
AT_ROW = "return document.activeElement.closest('[data-row]')?.dataset.row ?? null"
SHEET_OPEN = "return document.getElementById('keys').open"


@pytest.mark.slow("starts another browser")
@pytest.mark.timeout(600)
def test_keys_search_walk_and_turn_trials_in_firefox_as_well(firefox, tmp_path):
    trials = simulate(tasks=6, runs=4, rate=0.6, seed=1)
    said = {(one.system, one.task, one.trial): CHAT for one in trials}
    path = tmp_path / "report.html"
    path.write_text(render_html(measure(trials), transcripts=said, trials=trials), encoding="utf-8")
    firefox.open(path.as_uri())
    firefox.press("?")
    assert firefox.run(SHEET_OPEN)
    firefox.press(ESCAPE_KEY)
    assert not firefox.run(SHEET_OPEN)
    firefox.press("/")
    assert firefox.run(FOCUSED) == "search"
    firefox.press(ESCAPE_KEY)
    assert firefox.run(FOCUSED) == "BODY"
    firefox.press("j")
    first = firefox.run(AT_ROW)
    firefox.press("j")
    assert first is not None
    assert firefox.run(AT_ROW) not in (None, first)
    firefox.press("k")
    assert firefox.run(AT_ROW) == first
    firefox.run("document.querySelector('.marks a').click()")
    opened = firefox.run("return location.hash")
    firefox.press("]")
    assert firefox.run("return location.hash") not in ("", opened)
    firefox.press("[")
    assert firefox.run("return location.hash") == opened
    firefox.press(ESCAPE_KEY)
    assert firefox.run(SHOWN) == 0
    assert firefox.errors() == []
