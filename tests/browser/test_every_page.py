"""Every page of the dashboard and every page that a command saves, in every look."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from passhat.analysis.planning.simulate import simulate
from passhat.cli import main
from passhat.history import History
from passhat.records import Outcome
from passhat.records.transcript import Transcript, Turn

LOOKS = [(width, scheme) for width in (1280, 400) for scheme in ("light", "dark")]
AGENT = "careful"
SAVED = {
    "report": ["report", "newest", "--transcripts"],
    "one agent": ["report", "newest", "--only", AGENT],
    "several": ["report", "several.csv"],
    "compare": ["compare", "first", "newest", "--only", AGENT],
    "rank": ["rank", "several.csv"],
    "profile": ["profile", "several.csv", "--only", "a"],
    "gate": ["gate", "newest", "--require", "pass^3 >= 0.8"],
    "flaky": ["trend", "support", "--tasks"],
    "trend": ["trend", "support"],
    "plan": ["plan", "--difference", "0.1"],
    "why": ["why", "newest"],
    "diff": ["why", "newest", "task-01", "1", "2", "--only", "hasty"],
    "judge": ["judge", "labelled.csv", "--columns", "label=person,label-chosen=random"],
    "demo": ["demo"],
    "runs": ["history"],
}
HANDLERS = """() => [...document.querySelectorAll("*")].flatMap(e => [...e.attributes])
  .filter(a => a.name === "style" || a.name.startsWith("on")).map(a => a.name)"""
# Names of tasks and of trials, and marks of trials, that lead nowhere, where they are in sight.
DEAD = """() => {
  const named = (text) => /^task-\\d+( #\\d+)?$/.test(text.trim());
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const dead = [];
  while (walk.nextNode()) {
    const inside = walk.currentNode.parentElement;
    const titled = inside.closest("a[href], h1, h2, h3, option, svg, .drawer");
    if (named(walk.currentNode.data) && inside.checkVisibility() && !titled)
      dead.push(walk.currentNode.data);
  }
  for (const mark of document.querySelectorAll("main .marks > *"))
    if (mark.checkVisibility() && !mark.closest("a[href], .legend")) dead.push(mark.textContent);
  const inner = [...document.querySelectorAll("main a[href^='#']:not([href='#'])")];
  const targets = inner.map((link) => decodeURIComponent(link.hash.slice(1)));
  const made = (id) => id.includes("-trial-") || id.startsWith("?");  // a script makes these
  return [...dead, ...targets.filter((id) => !made(id) && !document.getElementById(id))];
}"""
OPEN = """async () => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
  for (let y = 0; y < document.documentElement.scrollHeight; y += 400) {
    scrollTo(0, y);
    await new Promise(requestAnimationFrame);
  }
  await new Promise((done) => setTimeout(done, 100));
}"""
BEYOND = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four runs of a suite with two agents, each with what was said."""
    folder = tmp_path_factory.mktemp("every")
    with History.open(folder / ".passhat" / "history.db") as history:
        for day in range(4):
            run = history.start_run("support", started=f"2026-11-0{day + 1}T09:00:00.000+00:00")
            trials = list(simulate(tasks=10, runs=5, rate={AGENT: 0.8, "hasty": 0.5}, seed=day))
            history.add_trials(run, trials)
            with history.writing():
                for trial in trials:
                    ending = "Done" if trial.outcome is Outcome.PASSED else "I refuse"
                    turns = [
                        Turn(role="user", text="Cancel it"),
                        Turn(role="assistant", text=ending),
                    ]
                    history.add_transcript(run.id, trial, Transcript(messages=turns).to_json())
            history.finish_run(run)
            if day in (0, 3):
                history.tag(run, "newest" if day else "first")
    return folder


@pytest.fixture
def going(folder, saved_pages):
    """A run that goes on: it was begun just now, and is looked at before the others."""
    with History.open(folder / ".passhat" / "history.db") as history:
        run = history.start_run("going on")
        history.add_trials(run, list(simulate(tasks=4, runs=5, rate={AGENT: 0.7}, seed=1))[:15])
        yield run


@pytest.fixture(scope="module")
def saved_pages(folder):
    """Every kind of page that `-o` writes, by the name of what wrote it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = (f"t{n % 10},{n // 10},{n % 3 > 0},{n % 4 > 0 and n % 3 > 0}" for n in range(60))
        Path("labelled.csv").write_text("\n".join(["task,trial,passed,person", *rows]))
        rates = [f"--rate={name}={0.9 - 0.15 * n}" for n, name in enumerate("abcd")]
        for words in (
            ["simulate", "--tasks", "12", "--trials", "5", *rates, "-o", "several.csv"],
            *([*words, "-o", f"{name}.html"] for name, words in SAVED.items()),
        ):
            done = CliRunner().invoke(main, words)
            assert done.exit_code in (0, 1, 4), (words, done.output)
    return {name: (folder / f"{name}.html").as_uri() for name in SAVED}


@pytest.fixture
def check(axe_violations, small_words, words_outside):
    """Nobody is kept out, everything is within the window and legible, nothing acts inline."""

    def check_page(page, where):
        assert axe_violations(page) == [], where
        assert page.evaluate(BEYOND) <= 0, where
        assert page.evaluate(HANDLERS) == [], where
        assert small_words(page) == words_outside(page) == [], where

    return check_page


@pytest.mark.slow("every page of both kinds in a browser, scrolled through with its folds open")
@pytest.mark.timeout(1200)
def test_every_name_of_a_task_and_every_mark_of_a_trial_is_a_link(
    folder, saved_pages, going, serve_site, open_page
):
    site = serve_site(folder / ".passhat" / "history.db")
    name, _, value = site.cookie["cookie"].partition("=")
    page = open_page("about:blank", viewport={"width": 1280, "height": 800})
    page.context.add_cookies([{"name": name, "value": value, "url": site.origin}])
    own = {name: site.origin + path for name, path in dashboard_pages(folder, going).items()}
    dead = {}
    for name, address in {
        **saved_pages,
        **{f"dashboard, {name}": at for name, at in own.items()},
    }.items():
        if name in ("demo", "dashboard, transcript"):  # made-up trials; plain text, for programs
            continue
        page.goto(address)
        page.evaluate(OPEN)
        dead[name] = page.evaluate(DEAD)
    assert {name: those[:5] for name, those in dead.items() if those} == {}


COUNTS = {
    "rank": "true rank",
    "several": "pass^5",
    "profile": "above",
    "plan": "similar tasks",
    "why": "trials",
    "runs": "pass@1",
}
"""The column that a page is read for."""
IN_SIGHT = """(words) => {
  const heads = [...document.querySelectorAll(".scroll thead th")].filter((one) => one.innerText.trim() === words);
  return heads.length > 0 && heads.every((head) => {
    const cells = [...head.closest("table").tBodies[0].rows].map((row) => row.cells[head.cellIndex]);
    const edge = head.closest(".scroll").getBoundingClientRect().right;
    return [head, ...cells].every((cell) => cell.getBoundingClientRect().left < edge - 20);
  });
}"""  # noqa: E501


@pytest.mark.slow("needs the saved pages")
def test_the_column_that_counts_is_in_sight_on_a_telephone(saved_pages, open_page):
    page = open_page("about:blank", viewport={"width": 400, "height": 900})
    hidden = []
    for name, column in COUNTS.items():
        page.goto(saved_pages[name])
        if not page.evaluate(IN_SIGHT, column):
            hidden.append(name)
    assert hidden == []


def test_days_that_scroll_on_a_telephone_begin_with_the_newest_beside_the_names(
    tmp_path, open_page
):
    with History.open(tmp_path / "history.db") as history:
        for day in range(20):
            begun = f"2026-11-{day + 1:02}T09:00:00.000+00:00"
            run = history.start_run("support", started=begun)
            history.add_trials(run, list(simulate(tasks=6, runs=4, rate=0.7, seed=day)))
            history.finish_run(run)
    where = ["--store", str(tmp_path / "history.db"), "-o", str(tmp_path / "flaky.html")]
    assert CliRunner().invoke(main, ["trend", "support", "--tasks", *where]).exit_code == 0
    page = open_page((tmp_path / "flaky.html").as_uri(), viewport={"width": 400, "height": 900})
    for cell in (page.locator("th.day").last, page.locator(".strip tbody th.name").first):
        box, room = cell.bounding_box(), page.locator(".scroll").first.bounding_box()
        assert box["x"] >= room["x"] - 1
        assert box["x"] + box["width"] <= room["x"] + room["width"] + 1


@pytest.mark.slow("fifteen saved pages in four looks")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_saved_page_keeps_nobody_out_fits_its_window_and_asks_for_nothing(
    saved_pages, open_page, check, width, scheme
):
    page = open_page("about:blank", viewport={"width": width, "height": 800}, color_scheme=scheme)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for name, address in saved_pages.items():
        asked.clear()
        page.goto(address)
        policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
        assert policy.startswith("default-src 'none'"), name
        assert "unsafe" not in policy, name
        check(page, name)
        marks = page.locator("[data-row] .marks a[href*='-trial-']:visible")
        if marks.count():
            marks.first.click()
            page.locator(".drawer:visible").wait_for()
            check(page, f"{name}, a trial open")
        assert [one for one in asked if not one.startswith("data:")] == [address], name


def dashboard_pages(folder, going):
    with History.open(folder / ".passhat" / "history.db", read_only=True) as history:
        new, old, *_ = history.runs(suite="support")
    task = urlencode({"system": AGENT, "task": "task-01"})
    return {
        "live, running": f"/run/{going.key}/live",
        "a run that goes on": f"/run/{going.key}",
        "overview": "/",
        "runs": "/runs",
        "run": f"/run/{new.key}",
        "task": f"/run/{new.key}/task?{task}",
        "trial": f"/run/{new.key}/trial?{task}&trial=0",
        "transcript": f"/run/{new.key}/transcript?{task}&trial=0",
        "diff": f"/run/{new.key}/diff?{task}&trial=0",
        "why": f"/run/{new.key}/why",
        "label": f"/run/{new.key}/label?by=ann&budget=4",
        "live, ended": f"/run/{new.key}/live",
        "choose": "/compare",
        "compare": f"/compare?side={new.key}.0&side={old.key}.0",
        "rank": f"/compare?run={new.key}&run={old.key}",
        "trend": "/trend?suite=support",
        "search": "/search?q=refuse",
        "nothing found": "/search?q=zeppelin",
    }


@pytest.mark.slow("eighteen pages of the dashboard in four looks, and four states of them")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_of_the_dashboard_keeps_nobody_out_and_fits_its_window(
    folder, going, serve_site, open_page, check, width, scheme
):
    site = serve_site(folder / ".passhat" / "history.db")
    name, _, value = site.cookie["cookie"].partition("=")
    cookie = {"name": name, "value": value, "url": site.origin}
    page = open_page("about:blank", viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.context.add_cookies([cookie])
    for name, path in dashboard_pages(folder, going).items():
        answer = page.goto(site.origin + path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, name
        assert "unsafe" not in policy, name
        if name == "transcript":  # plain text, for programs
            continue
        check(page, name)
        if name == "live, running":
            assert "no verdict yet" in page.locator(".chip").first.inner_text()
        if name == "run":
            page.get_by_text("Tag, note, rename or delete").click()
            check(page, "what can be done with a run")
            page.locator(".system summary").first.click()
            page.locator("[data-row] .marks a:visible").first.click()
            page.locator(".drawer:visible").wait_for()
            check(page, "a trial open")
            page.keyboard.press("Escape")
            page.keyboard.press("?")
            page.get_by_role("dialog", name="Keys").wait_for()
            check(page, "the list of keys")
