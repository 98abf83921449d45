import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.journeys.test_labelling import Folder, Terminal, labels_in

from passhat.analysis.planning.simulate import simulate
from passhat.dashboard import server
from passhat.history import Checkout, History
from passhat.ingest import read_with_transcripts
from passhat.records import Outcome, Source, Trial
from passhat.records.transcript import Transcript, Turn

ROOT = Path(__file__).parents[2]
SYSTEMS = {"careful": 0.9, "hasty": 0.6}
PICTURE = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
FOREIGN = "img,iframe,object,embed,svg script,[onload],[onerror],[onmouseover],[ontoggle]"


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "history.db"
    with History.open(path) as history:
        for i in range(3):
            run = history.start_run(
                "support",
                checkout=Checkout(commit=f"{i}" * 40, branch="main", dirty=True, host="box"),
                started=f"2026-11-0{i + 1}T09:00:00.000+00:00",
            )
            trials = list(simulate(tasks=12, runs=6, rate=SYSTEMS, seed=i))
            history.add_trials(run, trials)
            with history.writing():
                history.add_transcript(run.id, trials[0], "user: hello\nassistant: bye")
            history.finish_run(run)
    return path


@pytest.fixture
def visit(open_page):
    """Opens a page of a site as somebody who is let in."""

    def open_it(site, path, **options):
        cookie = {
            "name": f"passhat-{site.port}", "value": site.access.session, "domain": "127.0.0.1",
            "path": "/", "httpOnly": True, "secure": False, "sameSite": "Strict", "expires": -1,
        }  # fmt: skip
        state = {"cookies": [cookie], "origins": []}
        return open_page(site.origin + path, storage_state=state, **options)

    return open_it


def pages_of(store):
    with History.open(store, read_only=True) as history:
        new, old, *_ = history.runs()
    task = urlencode({"system": "careful", "task": "task-01"})
    return {
        "overview": "/",
        "runs": "/runs",
        "run": f"/run/{new.key}",
        "task": f"/run/{new.key}/task?{task}",
        "trial": f"/run/{new.key}/trial?{task}&trial=0",
        "live": f"/run/{new.key}/live",
        "choose": "/compare",
        "compare": f"/compare?side={new.key}.0&side={old.key}.0",
        "rank": f"/compare?run={new.key}&run={old.key}",
        "trend": "/trend",
        "search": "/search?q=a",
    }


def test_the_start_address_opens_the_site_and_leaves_no_token_behind(serve_site, store, open_page):
    site = serve_site(store)
    page = open_page(site.url)
    page.wait_for_url(site.origin + "/")
    assert page.locator("h1").inner_text() == "1 suite, 3 runs"
    assert page.evaluate("document.cookie") == ""
    page.go_back()
    assert site.access.token not in page.url
    assert site.access.spent


@pytest.mark.slow("a detail of the page, in a real browser")
def test_one_click_opens_the_site_without_javascript(serve_site, store, open_page):
    site = serve_site(store)
    page = open_page(site.url, java_script_enabled=False)
    page.get_by_role("button", name="Open the dashboard").click()
    assert page.locator("h1").inner_text() == "1 suite, 3 runs"
    page.locator("td a").first.click()
    page.wait_for_load_state()
    assert page.locator("[data-row]").count() == 24


def test_a_run_page_sorts_filters_and_leads_to_a_transcript(serve_site, store, visit):
    page = visit(serve_site(store), pages_of(store)["run"])
    page.locator(".system summary").first.click()
    section = page.locator("section[data-tasks]").first
    names = section.locator("[data-row]:visible .name")
    section.get_by_label("Order").select_option("name")
    ascending = names.all_inner_texts()
    assert len(ascending) == 12
    assert ascending == sorted(ascending)
    section.get_by_role("searchbox").fill("task-01")
    assert names.all_inner_texts() == ["task-01"]
    names.get_by_role("link", name="task-01", exact=True).click()
    page.get_by_role("link", name="#1", exact=True).click()
    assert "assistant: bye" in page.locator(".card").first.inner_text()


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Twelve tasks, tried four times each, with what was said in every trial but the very last."""
    path = tmp_path_factory.mktemp("spoken") / "history.db"
    trials = list(simulate(tasks=12, runs=4, rate={"agent": 0.6}, seed=4))
    with History.open(path) as history:
        run = history.start_run("support")
        history.add_trials(run, trials)
        with history.writing():
            for trial in trials[:-1]:
                words = f"words of {trial.task} trial {trial.trial}"
                turn = Turn(role="user", text=words, images=(PICTURE,))
                kept = Transcript(messages=[turn]).to_json()
                history.add_transcript(run.id, trial, kept)
        history.finish_run(run)
    return path, f"/run/{run.key}", trials[-1]


@pytest.mark.parametrize(
    "paged", [pytest.param(False, marks=pytest.mark.slow("the same without pages")), True]
)
def test_what_was_said_is_fetched_by_task_once_when_a_mark_of_it_is_chosen(
    spoken, serve_site, visit, axe_violations, monkeypatch, paged
):
    store, place, silent = spoken
    if paged:  # a list of tasks that is too long to be sent whole
        monkeypatch.setattr(server, "MOST_ROWS_SENT", 5)
    site = serve_site(store)
    page = visit(site, "/runs")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.origin + place)
    assert len(asked) == 1
    # The first message of a task stands in its row, and nothing else that was said.
    assert not re.search(r"words of \S+ trial [1-9]", page.content())
    if not paged:
        page.get_by_label("Order").select_option("name")
    row = page.locator("[data-row=task-03]")
    row.locator(".marks a").nth(1).click()
    drawer = page.locator(".drawer:visible")
    drawer.wait_for()
    assert page.url.endswith("#task-task-03-trial-2")
    assert drawer.locator("img:visible").evaluate("image => image.naturalWidth") == 1
    assert "words of task-03 trial 1" in drawer.inner_text()
    assert drawer.get_by_text("“words of task-03 trial 0”").count() == 1
    assert axe_violations(page) == []
    page.keyboard.press("]")
    page.locator(".card:visible", has_text="words of task-03 trial 2").wait_for()
    page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    assert row.locator(".marks a").nth(1).evaluate("mark => mark === document.activeElement")
    row.locator(".marks a").nth(0).click()
    page.locator(".card:visible", has_text="words of task-03 trial 0").wait_for()
    assert len(asked) == 2
    page.reload()
    page.locator(".card:visible", has_text="words of task-03 trial 0").wait_for()
    assert len(asked) == 4
    page.keyboard.press("Escape")
    # Where nothing was kept, the mark leads to the page of its trial.
    page.locator(f"[data-row={silent.task}] .marks a").last.click()
    page.wait_for_url("**/trial?**")
    assert "was not kept" in page.locator("main").inner_text()


@pytest.mark.slow("a detail of the page, in a real browser")
def test_without_a_script_or_with_a_lost_answer_a_mark_leads_to_the_page_of_its_trial(
    spoken, serve_site, visit
):
    store, place, _ = spoken
    site = serve_site(store)
    page = visit(site, place, java_script_enabled=False)
    page.locator("[data-row=task-03] .marks a").first.evaluate("mark => mark.click()")
    page.wait_for_url("**/trial?**")
    assert "words of task-03 trial 0" in page.locator(".card").inner_text()
    page = visit(site, place)
    page.evaluate("() => void (fetch = () => Promise.reject(new Error('lost')))")
    page.locator("[data-row=task-03] .marks a").first.evaluate("mark => mark.click()")
    page.wait_for_url("**/trial?**")
    assert "words of task-03 trial 0" in page.locator(".card").inner_text()


@pytest.mark.slow("a detail of the page, in a real browser")
def test_the_theme_is_chosen_kept_and_given_back(serve_site, store, visit):
    page = visit(serve_site(store), "/", color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Light / dark").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.get_by_role("link", name="Runs", exact=True).click()
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate(ground) == light
    page.emulate_media(color_scheme="dark")
    page.reload()
    assert page.evaluate(ground) == dark


def test_runs_are_chosen_and_compared(serve_site, store, visit):
    page = visit(serve_site(store), "/runs")
    for box in page.get_by_role("checkbox").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare the chosen runs").click()
    assert page.locator("svg").count() == 1
    for box in page.get_by_role("checkbox").all()[2:]:
        box.uncheck()
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("heading", name="The tasks that moved, worse first").wait_for()
    rows, first = page.locator("[data-row]"), page.locator("[data-row]").first
    page.get_by_label("Find").fill(first.get_attribute("data-row"))
    assert rows.locator("visible=true").count() < rows.count()
    first.get_by_role("link").first.click()
    assert page.locator("main").get_by_role("heading").first.is_visible()


def test_a_search_is_typed_and_followed(serve_site, store, visit):
    page = visit(serve_site(store), "/")
    page.get_by_role("searchbox", name="Search").fill("task-07")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="task-07").first.click()
    assert page.locator("h1").inner_text().startswith("task-07 passed ")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        pytest.param("dark", 390, marks=pytest.mark.slow("every page a second time")),
    ],
)
def test_no_page_breaks_an_accessibility_rule(
    serve_site, store, visit, axe_violations, scheme, width
):
    site = serve_site(store)
    page = visit(site, "/", color_scheme=scheme, viewport={"width": width, "height": 800})
    for path in pages_of(store).values():
        page.goto(site.origin + path)
        assert axe_violations(page) == [], path


@pytest.fixture(scope="session")
def fallen_store(tmp_path_factory):
    """Five calm runs, and one in which three of ten tasks stopped passing."""
    path = tmp_path_factory.mktemp("fallen") / "history.db"
    with History.open(path) as history:
        for day in range(6):
            run = history.start_run("support", started=f"2026-11-0{day + 1}T09:00:00.000+00:00")
            trials = [
                Trial(
                    system="agent",
                    task=f"task-{task}",
                    trial=trial,
                    outcome=Outcome(int(day < 5 or task < 7)),
                )
                for task in range(10)
                for trial in range(6)
            ]
            history.add_trials(run, trials)
            history.finish_run(run)
    return path


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        pytest.param("dark", 400, marks=pytest.mark.slow("the same way in other colours")),
    ],
)
def test_one_click_leads_from_a_fall_on_the_overview_to_a_failing_trial(
    serve_site, fallen_store, visit, axe_violations, scheme, width
):
    site = serve_site(fallen_store)
    page = visit(site, "/", color_scheme=scheme, viewport={"width": width, "height": 800})
    assert "Against the 5 runs before: " in page.locator(".attention").inner_text()
    assert page.locator(".attention a.square.failed").count() == 18
    assert axe_violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="agent", exact=True).first.click()
    fallen = page.locator("section", has_text="Read these trials first").locator("a.square.failed")
    fallen.first.wait_for()
    assert fallen.count() == 18
    page.get_by_label("task-8, trial 2: failed").first.click()
    assert page.locator("h1").inner_text() == "task-8 #2 failed"


def test_the_trials_of_a_task_that_fell_stand_beside_each_other_on_a_telephone(
    serve_site, fallen_store, visit
):
    page = visit(serve_site(fallen_store), "/", viewport={"width": 400, "height": 900})
    rows = page.locator("table.fallen .squares")
    heights = rows.evaluate_all("those => those.map((one) => one.getBoundingClientRect().height)")
    assert heights
    assert max(heights) <= 26  # one line of squares


def test_no_page_scrolls_sideways_on_a_telephone(serve_site, store, visit):
    site = serve_site(store)
    page = visit(site, "/", viewport={"width": 390, "height": 800})
    for path in pages_of(store).values():
        page.goto(site.origin + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


@pytest.mark.slow("a detail of the page, in a real browser")
def test_no_word_of_any_picture_is_cut_off(serve_site, store, visit, words_outside):
    site = serve_site(store)
    page = visit(site, "/", viewport={"width": 1280, "height": 800})
    for name, path in pages_of(store).items():
        page.goto(site.origin + path)
        assert words_outside(page) == [], name


@pytest.mark.slow("prints many pages to paper and reads them back")
def test_every_page_prints_on_white_paper_without_controls(serve_site, store, visit, printed):
    site = serve_site(store)
    page = visit(site, "/", color_scheme="light")
    page.get_by_role("button", name="Light / dark").click()
    for name, path in pages_of(store).items():
        page.goto(site.origin + path)
        paper = printed(page)
        assert (paper.controls, paper.ground) == ([], "rgb(255, 255, 255)"), name
        assert paper.beyond <= 0, name
        assert paper.paper.startswith(b"%PDF"), name


@pytest.mark.slow("a dozen pages of payloads")
def test_a_log_is_seen_with_its_transcripts_and_no_payload_in_them_runs(
    tmp_path, serve_site, visit, corpus
):
    rows = [{"task": str(n), "trial": 1, "passed": True, "output": t} for n, t in enumerate(corpus)]
    trials, said = read_with_transcripts(json.dumps(rows).encode())
    path = tmp_path / "logs.db"
    with History.open(path) as history:
        run = history.start_run("log")
        history.add_trials(run, trials)
        history.add_transcripts(run, said)
        history.finish_run(run)
    site = serve_site(path)
    page = visit(site, "/runs")
    for number in range(0, len(corpus), 10):
        query = urlencode({"system": "input", "task": str(number)})
        page.goto(f"{site.origin}/run/latest/task?{query}")
        page.get_by_role("link", name="transcript").click()
        # The log counts from 1, and so does the page.
        assert page.locator("h1").inner_text() == f"{number} #1 passed"
        assert corpus[number] in page.locator(".card").first.inner_text()
        harmless(page)


def test_a_live_page_grows_while_another_process_runs_trials(
    tmp_path, serve_site, visit, write_trials_elsewhere
):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("suite")
    page = visit(serve_site(path), f"/run/{run.key}/live")
    assert page.locator("[data-at=done]").inner_text() == "0"
    assert page.locator("[data-at=over]").count() == 0
    assert "no verdict yet" in page.locator(".chip").inner_text()
    writer = write_trials_elsewhere(path, run.key, count=8)
    page.locator("[data-at=tasks] tr").first.wait_for()
    assert page.locator("[data-at=status]").inner_text() == "running"
    writer.stdin.close()
    page.locator("[data-at=over]").wait_for()
    assert writer.wait(60) == 0
    # The page has turned into the result, with one verdict and nothing that waits for one.
    assert "agent" in page.locator("h1").inner_text()
    assert page.locator("h1").count() == page.locator(".chip").count() == 1
    assert page.get_by_text(re.compile("no verdict yet|under way|judged when")).count() == 0
    assert page.locator("[data-at=tasks] tr").count() == 2
    assert page.locator("[data-at=tasks] .runs").first.text_content() == "●○●○"
    # Trials that ended before the page listens are not news; these ended after a row had come.
    later = {"● t1 #3 passed (agent)", "○ t0 #4 failed (agent)", "○ t1 #4 failed (agent)"}
    assert later <= set(page.locator("[data-at=recent] li").all_inner_texts())
    page.get_by_role("link", name="read its report").click()
    assert "8" in page.locator(".facts-line").inner_text()


def harmless(page):
    assert page.evaluate("window.hit") is None, page.url
    assert page.locator(FOREIGN).count() == 0, page.url
    assert page.locator("script").count() == 2, page.url


@pytest.fixture
def hostile_store(tmp_path, corpus):
    """Every payload as suite, system, task, level, tag, tool, error, commit, branch, host, name."""
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for text in corpus:
            run = history.start_run(
                text,
                checkout=Checkout(commit=text, branch=text, host=text, dirty=True),
                sources=[Source(name=text, format=text, sha256=text, notes=(text,))],
                started="2026-11-01T09:00:00.000+00:00",
            )
            history.add_trials(run, [hostile_trial(text, text)])
            history.tag(run, text)
            history.finish_run(run, text)
        run = history.start_run("all", started="2026-12-01T09:00:00.000+00:00")
        trials = [hostile_trial("agent", text) for text in corpus]
        history.add_trials(run, trials)
        with history.writing():
            for trial in trials:
                history.add_transcript(run.id, trial, trial.task)
        history.finish_run(run)
    return path


def hostile_trial(system, text):
    return Trial(system=system, task=text, trial=0, outcome=Outcome(len(text) % 3), seconds=1.0,
                 level=text, tags=(text,), tools=(text,), error=text, started=text)  # fmt: skip


@pytest.mark.slow("a hundred payloads on more than eighty pages")
def test_no_payload_in_any_text_runs_on_any_page(hostile_store, serve_site, visit, corpus):
    site = serve_site(hostile_store)
    with History.open(hostile_store, read_only=True) as history:
        whole, *single = history.runs()
    page = visit(site, "/")
    some = single[:: len(single) // 6]
    marks = "&".join(f"run={run.key}" for run in [whole, *some])
    paths = [f"/?page={n}" for n in range(1, 7)] + [f"/runs?page={n}" for n in range(1, 4)]
    paths += [f"/run/{whole.key}", f"/run/{whole.key}/live", f"/compare?{marks}"]
    paths += ["/trend?" + urlencode({"suite": run.suite, "branch": run.suite}) for run in some]
    paths += [f"/run/{run.key}" for run in some] + [f"/run/{run.key}/live" for run in some]
    for text in corpus[::12]:
        asked = urlencode({"system": "agent", "task": text, "trial": 0})
        paths += [f"/run/{whole.key}/{kind}?{asked}" for kind in ("task", "trial", "transcript")]
        paths += ["/search?" + urlencode({"q": text}), "/runs?" + urlencode({"suite": text})]
        paths += ["/run/latest?" + urlencode(dict.fromkeys(["q", "label", "sort", "page"], text))]
    for path in paths:
        page.goto(site.origin + path)
        if "/transcript" in path:
            assert page.evaluate("window.hit") is None
            assert page.locator("script").count() == 0
        else:
            harmless(page)
    # What is fetched by a page is as harmless as what it came with.
    page.goto(f"{site.origin}/run/{whole.key}")
    for mark in page.locator(".marks a").all()[::12]:
        mark.evaluate("mark => mark.click()")
        page.locator(".drawer:visible").wait_for()
        harmless(page)
        page.keyboard.press("Escape")
    assert len(paths) > 80


def test_no_payload_that_arrives_while_a_page_is_watched_runs(tmp_path, serve_site, visit, corpus):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run(corpus[0])
        page = visit(serve_site(path), f"/run/{run.key}/live")
        page.wait_for_load_state()

        def write():
            history.add_trials(run, [hostile_trial(text, text) for text in corpus])
            history.finish_run(run, corpus[0])

        writer = threading.Thread(target=write)
        writer.start()
        page.locator("[data-at=over]").wait_for()
        writer.join()
        assert page.locator("[data-at=tasks] tr").count() == len(corpus)
        for place in (1, 2):  # the task, and the system
            cells = page.locator(f"[data-at=tasks] td.name:nth-child({place})")
            assert sorted(cells.all_text_contents()) == sorted(corpus)
        harmless(page)


def test_a_question_to_the_server_is_a_word_in_an_address(serve_site, store, visit):
    page = visit(serve_site(store), "/search?" + urlencode({"q": '"><b id=x>'}))
    assert page.locator("#x").count() == 0
    assert re.search("Nothing", page.locator("main").inner_text())


def test_trials_are_labelled_one_after_the_other_with_the_verdict_hidden(
    visit, serve_site, tmp_path, axe_violations
):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("support")
        history.add_trials(run, simulate(tasks=6, runs=5, seed=1))
        history.finish_run(run)
    page = visit(serve_site(path), "/run/latest")
    page.get_by_text("Label trials").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_label("Labels").fill("4")
    page.get_by_role("button", name="Begin").click()
    for number in range(4):
        page.get_by_text(f"{4 - number} of 4 left for ann").wait_for()
        assert page.get_by_text(re.compile("The judge (passed|failed)")).count() == 0
        asked = page.locator("h1").inner_text()
        if number < 2:
            page.keyboard.press("f" if number == 0 else "p")
        else:
            page.get_by_role("button", name="Passed" if number % 2 else "Failed").click()
        page.get_by_text("Kept:").wait_for()
        assert page.get_by_text(re.compile("The judge (passed|failed)")).count() == 1
        assert page.locator("h1").inner_text() == asked
        if number == 1:
            assert axe_violations(page) == []
            page.keyboard.press("u")  # taken back: the same trial is asked for again
            page.get_by_text("3 of 4 left for ann").wait_for()
            assert page.locator("h1").inner_text() == asked
            page.keyboard.press("k")
            page.locator(".queue li:first-child [aria-current]").wait_for()
            page.locator(".queue a", has_text=asked).click()
            page.locator("h1", has_text=asked).wait_for()
            page.keyboard.press("p")
            page.get_by_text("Kept:").wait_for()
        if number % 2:
            page.keyboard.press("j")
        else:
            page.get_by_role("link", name="Next trial").click()
    page.get_by_text("Nothing left to label").wait_for()
    with History.open(path, read_only=True) as history:
        labels = history.labels(history.find_run("latest"))
    assert sorted(one.passed for (one,) in labels.values()) == [False, False, True, True]


def is_right(text):
    """What a person says who reads an answer of the walk-through's agent."""
    return "Within 30 days if you show the receipt." in text


@pytest.mark.slow("a real model judges thirty trials, which a person labels in two ways")
@pytest.mark.timeout(3000)
def test_the_walk_through_of_the_judges_page_ends_in_the_number_of_a_person(
    visit, serve_site, tmp_path
):
    from passhat.runner.models.local import weights_path

    if not weights_path().exists():
        pytest.skip("the weights are not here: `passhat local pull`")
    page_text = (ROOT / "docs" / "how-to" / "trust-your-judge.md").read_text()
    suite = re.search(r"```yaml passhat.yml\n(.*?)```", page_text, flags=re.DOTALL)[1]
    (tmp_path / "passhat.yml").write_text(suite)
    shell = Folder(tmp_path)

    def passhat(*words):
        command = [sys.executable, "-m", "passhat", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    ran = passhat("run", "--live")
    assert "30 trials" in ran.stderr, ran.stderr
    path = tmp_path / ".passhat" / "history.db"
    with History.open(path, read_only=True) as history:
        run = history.find_run("latest")
        trials = [trial for trial in history.trials(run) if trial.outcome is not Outcome.ERRORED]
        keys = [(trial.system, trial.task, trial.trial) for trial in trials]
        right = {key: is_right(history.transcript(run, *key)) for key in keys}
    assert len(trials) > 25, "the judge is held to its schema"

    def label(terminal, count):
        for _ in range(count):
            shown = terminal.wait_for("q stop: ")
            terminal.press("p" if is_right(shown) else "f")
            terminal.wait_for("kept.")

    terminal = Terminal(shell, "latest", "--by", "ann", "--budget", "30")
    label(terminal, 8)
    terminal.process.kill()
    terminal.end()
    assert len(labels_in(shell)) == 8
    terminal = Terminal(shell, "latest", "--by", "ann", "--budget", "30")
    assert f"{len(trials) - 8} trials to label" in terminal.wait_for("---")
    label(terminal, 8)
    terminal.wait_for("q stop: ")
    terminal.press("q")
    terminal.wait_for("passhat report")
    assert terminal.end() == 0

    page = visit(serve_site(path), "/run/latest")
    page.get_by_text("Label trials").click()
    page.get_by_label("Your name").fill("ann")
    page.get_by_label("Labels").fill("30")
    page.get_by_role("button", name="Begin").click()
    for left in range(len(trials) - 16, 0, -1):
        page.get_by_text(f"{left} of 30 left").wait_for()
        shown = page.locator("main").inner_text()
        page.get_by_role("button", name="Passed" if is_right(shown) else "Failed").click()
        page.get_by_role("link", name="Next trial").click()
    page.get_by_text("Nothing left to label").wait_for()

    said = {key: one.passed for key, (one,) in labels_in(shell).items()}
    assert said == right
    told = json.loads(passhat("report", "latest", "--json").stdout)
    corrected = told["systems"][0]["metrics"]["pass@1"]["corrected"]
    by_task = {}
    for (_, task, _), passed in right.items():
        by_task.setdefault(task, []).append(passed)
    truth = sum(sum(own) / len(own) for own in by_task.values()) / len(by_task)
    assert corrected["labels"] == len(trials)
    assert corrected["value"] == pytest.approx(truth, abs=0.02)
    judged = " ".join(passhat("judge", "latest").stdout.split())
    assert f"people read {len(trials)} of" in judged
    page.goto(page.url.partition("/run/")[0] + "/run/latest")
    assert "labels of people" in " ".join(page.locator("main").inner_text().split())


def test_a_run_is_tagged_noted_copied_and_deleted_on_its_page(
    serve_site, tmp_path, visit, axe_violations
):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("support")
        history.add_trials(run, simulate(tasks=3, runs=4, seed=1))
        history.finish_run(run)
    page = visit(serve_site(path), "/run/latest")
    doing = page.get_by_text("Tag, note, rename or delete")
    doing.click()
    assert axe_violations(page) == []
    page.get_by_label("New tag").fill("first <b>")
    page.get_by_role("button", name="Tag", exact=True).click()
    doing.click()
    page.get_by_label("For everybody who looks at this run").fill("the proxy was down")
    page.get_by_role("button", name="Keep note").click()
    said = page.get_by_role("region", name="Notes and changes")
    assert "the proxy was down" in said.inner_text()
    assert "tagged it first <b>" in said.inner_text()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(f"/run/{run.key}")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save page", exact=True).click()
    assert saved.value.suggested_filename == f"run-{run.key}.html"
    doing.click()
    page.get_by_label(re.compile("to delete 12 trials")).fill("first <b>")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/runs?suite=support")
    assert "0 runs" in page.locator("h1").inner_text()


@pytest.mark.slow("a detail of the page, in a real browser")
def test_every_page_has_the_keys(serve_site, store, visit):
    site = serve_site(store)
    page = visit(site, "/")
    focus = "document.activeElement.name ?? document.activeElement.tagName"
    walked = []
    for name, path in pages_of(store).items():
        page.goto(site.origin + path)
        page.keyboard.press("?")
        sheet = page.get_by_role("dialog", name="Keys")
        assert sheet.is_visible(), name
        page.keyboard.press("Escape")
        assert not sheet.is_visible(), name
        page.keyboard.press("/")
        assert page.evaluate(focus) == "q", name
        page.keyboard.press("Escape")
        assert page.evaluate(focus) == "BODY", name
        page.keyboard.press("j")
        walked += [name] if page.evaluate(focus) != "BODY" else []
    # No row of a ranking, or of a trend without a change, leads anywhere.
    assert pages_of(store).keys() - set(walked) <= {"rank", "trend"}


@pytest.mark.slow("a detail of the page, in a real browser")
def test_keys_search_walk_turn_pages_and_can_be_turned_off(
    serve_site, store, visit, axe_violations
):
    site = serve_site(store)
    page = visit(site, "/runs")
    focused = "document.activeElement.getAttribute('href') ?? document.activeElement.name"
    page.keyboard.press("/")
    assert page.evaluate(focused) == "q"
    page.keyboard.type("j/?")  # in a field they are letters
    assert page.get_by_role("searchbox", name="Search").input_value() == "j/?"
    page.keyboard.press("Escape")
    links = page.locator("tbody tr td:nth-child(2) a")
    addresses = [link.get_attribute("href") for link in links.all()]
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        assert page.evaluate(focused) == addresses[place]
    page.keyboard.press("Tab")  # nobody is held there
    assert page.evaluate(focused) != addresses[0]
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    assert sheet.is_visible()
    assert axe_violations(page) == []
    sheet.get_by_label("Use these keys").uncheck()
    page.keyboard.press("Escape")
    assert not sheet.is_visible()
    page.reload()
    page.keyboard.press("?")
    page.keyboard.press("j")
    assert not sheet.is_visible()
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.get_by_role("button", name="Keys").click()  # the button is always there
    sheet.get_by_label("Use these keys").check()
    sheet.get_by_role("button", name="Close").click()
    page.goto(site.origin + pages_of(store)["trial"])
    page.keyboard.press("]")
    page.wait_for_url("**trial=1")
    page.keyboard.press("[")
    page.wait_for_url("**trial=0")
    page.keyboard.press("j")
    assert "card" in page.evaluate("document.activeElement.className")


def test_a_filter_is_shown_at_once_where_it_is_chosen_with_the_mouse(serve_site, store, visit):
    page = visit(serve_site(store), "/runs")
    chosen = page.get_by_label("Tag")
    chosen.press("ArrowDown")  # with the keys a choice is not made yet
    chosen.select_option("1")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**tagged=1**")
    page.get_by_label("Tag").dispatch_event("pointerdown")  # as a mouse opens it
    page.get_by_label("Tag").select_option("")
    page.wait_for_url("**tagged=")


@pytest.mark.slow("a detail of the page, in a real browser")
def test_runs_are_sorted_by_the_head_of_a_column_with_the_keyboard_and_without_a_script(
    serve_site, store, visit
):
    site = serve_site(store)
    page = visit(site, "/runs")
    assert page.locator("th[aria-sort=descending]").inner_text() == "started"
    page.get_by_role("link", name="started").focus()
    page.keyboard.press("Enter")
    page.locator("th[aria-sort=ascending]").wait_for()
    assert page.url.endswith("/runs?sort=started&order=asc")
    up = page.locator("td a code").all_inner_texts()
    page.reload()
    assert page.locator("td a code").all_inner_texts() == up
    plain = visit(site, "/runs", java_script_enabled=False)
    plain.get_by_role("link", name="trials").click()
    plain.locator("th[aria-sort=descending]", has_text="trials").wait_for()
    assert plain.locator("td a code").all_inner_texts() == up[::-1]  # all have as many
