import html
import json
import re
from urllib.parse import quote_plus, urlencode

import pytest

from passhat.analysis.comparing.comparison import compare
from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.metrics import headline_number
from passhat.dashboard import server
from passhat.history import Checkout, History
from passhat.history.queries import (
    RunOrder,
    all_transcripts,
    page_of_runs,
    page_of_trials,
    search_tasks,
    sort_runs,
)
from passhat.messages import short_day
from passhat.records import Trials
from passhat.records.transcript import Transcript, Turn
from passhat.reporters.answers.comparison import verdict
from passhat.reporters.formatting import points, span
from passhat.reporters.headline import overview
from passhat.reporters.wording import headline_k


def words(text):
    """What a page says, without its markup."""
    body = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    body = body.replace('<span class="colon">', "")  # it belongs to the word before it
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_the_overview_states_the_number_that_the_report_opens_with(site, store, runs):
    said = words(site.get("/")[2])
    with History.open(store, read_only=True) as history:
        report = measure(history.trials(runs[0]))
    for system in report.systems:
        metric = system.pass_hat(headline_k(system))
        number = f"{points(metric.value, digits=1)} {span(metric.this_suite.interval)}"
        assert f"{metric.name} {number}" in said
    assert "2 suites, 4 runs" in said


MARK = re.compile("[●○×]")


def unlinked(text):
    """Marks of trials that lead nowhere; those of pictures and legends are not of one trial."""
    body = re.sub(r"<(script|style|svg|a)\b.*?</\1>", "", text, flags=re.DOTALL)
    cells = re.findall(r'<(?:td|div|span)[^>]*class="(?:runs|marks)[^"]*"[^>]*>.*?</', body)
    return [cell for cell in cells if MARK.search(cell)]


def test_every_mark_of_a_trial_is_a_link_to_it_on_every_page(site, runs):
    pair = f"/compare?side={runs[1].key}.0&side={runs[2].key}.0"
    addresses = [f"/run/{runs[0].key}", f"/run/{runs[0].key}/live", pair, "/"]
    for address in addresses:
        text = site.get(address)[2]
        assert unlinked(text) == [], address
        marks = re.findall(r'<a class="(?:passed|failed|errored)" href="([^"]+)"', text)
        for link in {html.unescape(link) for link in marks[:3] + marks[-3:]}:
            assert site.get(link)[0] == 200, link
        assert bool(marks) == (address != "/"), address


def test_of_a_long_list_the_marks_of_a_window_are_links_until_they_are_too_many(
    serve_site, tmp_path, monkeypatch
):
    monkeypatch.setattr(server, "MOST_ROWS_SENT", 5)
    monkeypatch.setattr(server, "MOST_MARKS_LINKED", 20)
    path = tmp_path / "h.db"
    with History.open(path) as history:
        run = history.start_run("long", started="2026-11-01T09:00:00.000+00:00")
        history.add_trials(run, simulate(tasks=12, runs=6, rate=0.5, seed=1))
        history.finish_run(run)
    text = serve_site(path).get(f"/run/{run.key}")[2]
    assert text.count('<a class="passed" href=') + text.count('<a class="failed" href=') == 18
    assert text.count('<a class="all-marks" href=') == 9  # further tasks: all trials are one link
    assert unlinked(text) == []


def test_the_list_of_runs_has_the_rate_of_the_report_of_one_agent_and_counts_several(
    tmp_path, serve_site
):
    with History.open(tmp_path / "history.db") as history:
        for rate in (0.7, {"a": 0.9, "b": 0.5}):
            run = history.start_run("support")
            history.add_trials(run, list(simulate(tasks=6, runs=4, rate=rate, seed=2)))
            history.finish_run(run)
    text = serve_site(tmp_path / "history.db").get("/runs")[2]
    assert re.search('<th scope="col" class="n"><a [^>]+>pass@1</a></th>', text)
    several, one = (words(row) for row in text.split("<tr>")[2:])
    value = measure(simulate(tasks=6, runs=4, rate=0.7, seed=2)).pass_at(1).value
    assert f"{points(value, digits=1)}%" in one
    assert "2 agents" in several
    assert "%" not in several


def test_a_glance_is_the_headline_of_a_report():
    for tasks, runs in ((1, 1), (5, 2), (20, 9)):
        trials = simulate(tasks=tasks, runs=runs, seed=runs)
        system = measure(trials).system()
        seen = headline_number(trials.tally())
        assert seen.k == headline_k(system)
        assert seen.number == system.pass_hat(seen.k).this_suite


def test_a_glance_at_unequal_runs_leaves_no_task_out():
    trials = Trials.from_columns(task=[*"aa", *"bbbb", *"ccccc"], passed=[0] * 2 + [1] * 9)
    seen = headline_number(trials.tally())
    assert seen.k == headline_k(measure(trials).system()) == 2
    assert seen.number.value == pytest.approx(2 / 3)


def test_a_run_page_holds_the_report_of_the_run(site, store, runs):
    with History.open(store, read_only=True) as history:
        report = measure(history.trials(runs[0]))
    status, _, text = site.get(f"/run/{runs[0].key}")
    assert status == 200
    assert overview(report) in words(text)
    assert text.count("<li data-row=") == 24
    for reference in ("baseline", "latest", "main", "2" * 40):
        assert overview(report) in words(site.get(f"/run/{reference}")[2])


def test_a_task_page_lists_its_trials_and_leads_to_what_was_said(site, runs):
    query = urlencode({"system": "careful", "task": "task-01"})
    status, _, text = site.get(f"/run/{runs[0].key}/task?{query}")
    assert status == 200
    heads = re.findall(r'<th scope="col"[^>]*>([a-z ]+)</th>', text)
    assert heads[:3] == ["trial", "outcome", "said"]  # in sight on a telephone too
    links = re.findall(rf'href="(/run/{runs[0].key}/trial[^"#]+)"', text)
    assert len(links) == 6
    assert "3 runs of this task" in words(text)
    said = site.get(html.unescape(links[0]))[2]
    assert "assistant: &lt;b&gt;bye&lt;/b&gt;" in said
    kept = re.search(r'href="(/run/\w+/transcript[^"]+)"', said).group(1)
    _, headers, plain = site.get(html.unescape(kept))
    assert plain == "user: hello\nassistant: <b>bye</b>"
    assert headers["content-type"].startswith("text/plain")
    assert "was not kept" in site.get(html.unescape(links[1]))[2]


def test_two_systems_are_compared_in_the_words_of_the_command(site, store, runs):
    with History.open(store, read_only=True) as history:
        trials = history.trials(runs[0])
    found = compare(trials.where(system="careful"), trials.where(system="hasty"))
    text = site.get(f"/compare?run={runs[0].key}")[2]
    assert verdict(found) in words(text)


def test_more_than_two_are_ranked_and_a_choice_narrows_them(site, runs):
    keys = "&".join(f"run={run.key}" for run in runs)
    ranked = words(site.get(f"/compare?{keys}")[2])
    assert "the ranks that may be true" in ranked
    commit, day = runs[1].checkout.commit[:7], short_day(runs[1].started)
    assert f"careful ({day}, {commit})" in ranked
    narrowed = words(site.get(f"/compare?side={runs[1].key}.0&side={runs[2].key}.0")[2])
    assert re.search(r"pass@1: [\d.]+% → [\d.]+%", narrowed)
    # Each run is judged at its own k, which need not be that of the comparison.
    assert "What is said here is about pass^5, whatever k is chosen above" in narrowed
    assert "Choose at least two" in words(site.get(f"/compare?side={runs[1].key}.0")[2])


def test_one_system_in_two_runs_is_told_by_tag_or_day_and_commit(tmp_path, serve_site):
    path = tmp_path / "two.db"
    with History.open(path) as history:
        for commit, rate in (("a" * 40, 0.95), ("b" * 40, 0.05)):
            run = history.start_run("s", checkout=Checkout(commit=commit))
            history.add_trials(run, simulate(tasks=14, runs=9, rate={"agent": rate}, seed=1))
            history.finish_run(run)
        history.tag(run, "baseline")
        newer, older = history.runs()
    site = serve_site(path)
    for first, second in (
        (older, newer),
        (newer, older),
    ):  # the baseline stays second
        text = words(site.get(f"/compare?run={first.key}&run={second.key}")[2])
        assert f"{short_day(older.started)}, aaaaaaa is better than baseline" in text
    assert "14 tasks got better" in text
    assert "--json" not in text  # every task is on the page


def test_every_trial_of_a_compared_task_leads_to_its_page(site, runs):
    text = site.get(f"/compare?side={runs[1].key}.0&side={runs[2].key}.0")[2]
    links = [html.unescape(one) for one in re.findall(r'href="(/run/\w+/trial[^"]+)"', text)]
    assert len(links) == runs[1].trials // 2 + runs[2].trials // 2
    assert {run.key for run in runs[1:3]} == {link.split("/")[2] for link in links}
    assert all(site.get(link)[0] == 200 for link in links[::11])
    names = re.findall(r'<div class="name"><a href="(/run/\w+/task[^"]+)"', text)
    assert len(names) == 12
    assert site.get(html.unescape(names[0]))[0] == 200


def keep(path, suite, trials):
    with History.open(path) as history:
        run = history.start_run(suite)
        history.add_trials(run, trials)
        history.finish_run(run)


def test_systems_without_a_shared_task_are_told_so(site, tmp_path, serve_site):
    path = tmp_path / "apart.db"
    for name in ("a", "b"):
        keep(path, name, Trials.from_columns(task=[name], passed=[True]))
    apart = serve_site(path)
    with History.open(path, read_only=True) as history:
        keys = "&".join(f"run={run.key}" for run in history.runs())
    assert "have no task in common" in words(apart.get(f"/compare?{keys}")[2])


def test_a_trend_leads_from_run_to_run(site, runs):
    text = site.get("/trend?suite=support")[2]
    for run in runs:
        assert f'href="/run/{run.key}"' in text
    assert "hasty: no change of pass^" in words(text)
    assert "No run with trials on nowhere" in words(
        site.get("/trend?suite=support&branch=nowhere")[2]
    )


def test_a_trend_opens_on_the_newest_suite_that_has_something_to_show(serve_site, tmp_path):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("old", started="2026-11-01T09:00:00.000+00:00")
        history.add_trials(run, simulate(tasks=4, runs=3, seed=1))
        history.finish_run(run)
        history.start_run("begun", started="2026-11-02T09:00:00.000+00:00")
    assert "old over history" in words(serve_site(path).get("/trend")[2])


def test_search_finds_tasks_systems_suites_and_commits(site, runs):
    for text, found in (
        ("TASK-03", "task-03"),
        ("caref", "newest in run"),
        ("refun", "1 run"),
        ("2222222", runs[0].key),
        ("baseline", runs[0].key),
        ("xyzzy", "Nothing"),
    ):
        assert found in words(site.get("/search?" + urlencode({"q": text}))[2])


def test_a_percent_sign_is_searched_for_as_itself(store):
    with History.open(store, read_only=True) as history:
        assert search_tasks(history, "%") == []
        assert search_tasks(history, "task_01") == []
        assert len(search_tasks(history, "task-01")) == 2


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/run/nothing", 404, "no run, tag, branch or commit 'nothing'"),
        ("/run/latest/task", 400, "the address must say which system"),
        ("/run/latest/task?system=x&task=y", 404, "x made no trial of y"),
        ("/run/latest/trial?system=careful&task=task-01&trial=x", 404, "made no trial x"),
        ("/run/latest/trial?system=careful&task=task-01&trial=99", 404, "made no trial 99"),
        ("/elsewhere", 404, "Not Found"),
        ("/runs?page=0", 200, "4 runs"),
        ("/runs?page=" + "9" * 40, 200, "4 runs"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_in_words(site, path, status, message):
    answered, _, text = site.get(path)
    assert answered == status
    assert message in words(text)
    assert "history.db" not in words(text) or status == 200


def test_a_run_without_a_trial_has_a_page(tmp_path, serve_site):
    path = tmp_path / "empty.db"
    with History.open(path) as history:
        run = history.start_run("begun")
    site = serve_site(path)
    assert "No trial has ended yet" in words(site.get(f"/run/{run.key}")[2])
    assert "watch it live" in words(site.get("/")[2])
    assert site.get("/trend")[0] == site.get(f"/compare?run={run.key}")[0] == 200


def test_a_run_page_answers_before_it_describes(site, runs):
    text = site.get(f"/run/{runs[0].key}")[2]
    assert text.index('class="hero') < text.index('class="facts-line"') < text.index("Export CSV")


def test_runs_are_chosen_by_the_status_that_is_shown_of_them(tmp_path, serve_site):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        died = history.start_run("shop", started="2026-01-01T09:00:00.000+00:00")
        ended = history.finish_run(history.start_run("shop"))
    site = serve_site(path)
    every, stopped, running = (site.get(f"/runs{query}")[2] for query in
                               ("", "?status=stopped", "?status=running"))  # fmt: skip
    options = re.findall(r'<option value="(\w+)">', every)
    assert {"finished", "stopped"} <= {*options}
    assert "running" not in options
    assert died.key in stopped
    assert ended.key not in stopped
    assert "No run matches" in running


def test_an_empty_store_has_pages(tmp_path, serve_site):
    path = tmp_path / "empty.db"
    History.open(path).close()
    site = serve_site(path)
    for page in ("/", "/runs", "/trend", "/compare", "/search?q=a"):
        assert site.get(page)[0] == 200
    assert "passhat run" in words(site.get("/")[2])


def test_all_tasks_of_a_long_run_are_reached_page_by_page_in_order(tmp_path, serve_site):
    path = tmp_path / "long.db"
    trials = simulate(tasks=1_100, runs=2, seed=1)
    keep(path, "long", trials)
    site = serve_site(path)
    seen = []
    for page in range(1, 7):
        text = site.get(f"/run/latest?sort=task&order=desc&page={page}")[2]
        seen += re.findall(r'<tr data-row="([^"]+)"', text)
    assert seen == sorted(trials.tasks, reverse=True)
    found = site.get("/run/latest?q=task-000&sort=task")[2]
    assert re.findall(r'<tr data-row="([^"]+)"', found) == [
        name for name in sorted(trials.tasks) if "task-000" in name
    ]


def test_transcripts_and_trials_come_back_as_they_were_kept(store, runs):
    with History.open(store, read_only=True) as history:
        assert list(all_transcripts(history, runs[0]).values()) == [
            "user: hello\nassistant: <b>bye</b>"
        ]
        kept = page_of_trials(history, runs[0], "careful", "task-01", offset=1, limit=3)
        whole = [t for t in history.trials(runs[0]) if (t.system, t.task) == ("careful", "task-01")]
        assert [one.trial for one in kept] == sorted(whole, key=lambda t: t.trial)[1:4]
        assert [one.transcript for one in kept] == [False] * 3


@pytest.fixture
def mixed(tmp_path, serve_site):
    path = tmp_path / "mixed.db"
    with History.open(path) as history:
        for i, (suite, branch) in enumerate(
            (("pay", "main"), ("pay", "fix"), ("ship", "main"), ("pay", "main"))
        ):
            run = history.start_run(
                suite, checkout=Checkout(branch=branch), started=f"2026-11-0{i + 1}"
            )
            history.add_trials(run, simulate(tasks=3, runs=3, seed=i))
            history.finish_run(run, "failed" if i == 1 else "finished")
        history.tag(run, "baseline")
        keys = [run.key for run in history.runs()][::-1]
    return serve_site(path), keys


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", [0, 1, 2, 3]),
        ("suite=pay", [0, 1, 3]),
        ("branch=main", [0, 2, 3]),
        ("suite=pay&branch=main", [0, 3]),
        ("status=failed", [1]),
        ("tagged=1", [3]),
        ("suite=nothing", []),
        ("suite='%20OR%201=1", []),
    ],
)
def test_runs_are_filtered_by_suite_branch_status_and_tag(mixed, query, kept):
    site, keys = mixed
    text = site.get(f"/runs?{query}")[2]
    assert [i for i, key in enumerate(keys) if f'href="/run/{key}"' in text] == kept
    assert ("No run matches" in text) is (not kept)


COLUMNS = ("run", "pass@1", "started", "suite", "branch", "trials", "errored", "status", "tags")


def keys_in(text):
    return re.findall(r'<td><a href="/run/([0-9a-f]{8})">', text)


@pytest.mark.parametrize("column", COLUMNS)
def test_the_head_of_a_column_sorts_runs_and_sorts_them_the_other_way_next_time(mixed, column):
    site, keys = mixed
    start = f"/runs?sort={quote_plus(column)}&order=asc"
    up = site.get(start)[2]
    head = re.search(f'<th[^>]* aria-sort="ascending"><a href="([^"]+)">{column}</a>', up)
    if column == "errored":  # no column where nothing errored
        assert head is None
        return
    assert len(re.findall("<th[^>]* aria-sort", up)) == 1
    down = site.get(html.unescape(head[1]))[2]
    assert f"sort={quote_plus(column)}" in head[1] or column == "started"
    assert 'aria-sort="descending"' in down
    assert sorted(keys_in(up)) == sorted(keys_in(down)) == sorted(keys)
    assert keys_in(up) != keys_in(down) or column in ("trials", "tags")  # the same in all, or one


def test_runs_are_sorted_by_what_their_table_shows_and_those_without_it_are_last(tmp_path):
    with History.open(tmp_path / "history.db") as history:
        for day, (branch, rate, tasks) in enumerate(
            (("b", 0.9, 3), (None, {"x": 0.9, "y": 0.1}, 4), ("a", 0.3, 6), ("B2", 0.6, 5)), 1
        ):
            checkout = Checkout(branch=branch)
            run = history.start_run("s", checkout=checkout, started=f"2026-11-0{day}")
            history.add_trials(run, simulate(tasks=tasks, runs=20, rate=rate, seed=day))
            history.finish_run(run)

        def days(by, *, down, **page):
            order = RunOrder(by=by, down=down)
            shown = page_of_runs(history, order=order, **page)
            first, most = page.get("offset", 0), page.get("limit", 50)
            assert shown == sort_runs(history.runs(), order)[first : first + most]
            return [int(run.started[-2:]) for run in shown]

        assert days("started", down=True) == [4, 3, 2, 1]
        assert days("pass@1", down=False) == [3, 4, 1, 2]
        assert days("pass@1", down=True) == [1, 4, 3, 2]
        assert days("branch", down=False) == [3, 1, 4, 2]
        assert days("branch", down=True) == [4, 1, 3, 2]
        assert days("trials", down=True) == [2, 3, 4, 1]
        assert days("trials", down=True, offset=1, limit=2) == [3, 4]
        assert days("suite", down=False) == [4, 3, 2, 1]


def test_a_list_of_runs_stays_sorted_over_its_pages_filters_and_searches(mixed):
    site, keys = mixed
    text = site.get("/runs?sort=suite&order=desc&suite=pay")[2]
    assert 'name="sort" value="suite"' in text
    assert 'name="order" value="desc"' in text
    assert keys_in(site.get("/search?q=main&sort=started&order=asc")[2]) == [
        keys[i] for i in (0, 2, 3)
    ]
    assert keys_in(site.get("/compare?sort=started&order=asc")[2]) == keys
    unsorted = site.get("/runs")[2]
    assert keys_in(unsorted) == keys_in(site.get("/runs?sort=nonsense")[2]) == keys[::-1]
    assert re.search('aria-sort="descending"><a href="[^"]+order=asc">started', unsorted)


@pytest.fixture
def fallen(tmp_path, serve_site):
    """Four runs of ten tasks; in the newest three of them stopped passing, and a gate failed."""
    usual = [8, 8, 6, 7, 8, 8, 5, 8, 8, 7]
    said = Transcript(messages=[Turn(role="user", text="Book <it>")]).to_json()
    path = tmp_path / "fallen.db"
    with History.open(path) as history:
        for day, passes in enumerate((usual, usual, usual, [*usual[:7], 0, 1, 0]), 1):
            options = {"gates": ["pass^1 >= 0.9"]}
            run = history.start_run("s", started=f"2026-11-0{day}T09:00:00+00:00", options=options)
            rows = [
                (f"t{i}", trial < count) for i, count in enumerate(passes) for trial in range(8)
            ]
            tasks, passed = zip(*rows, strict=True)
            trials = Trials.from_columns(
                system=["a <b>"] * 80, task=list(tasks), trial=[*range(8)] * 10, passed=list(passed)
            )
            history.add_trials(run, trials)
            with history.writing():
                for trial in trials:
                    history.add_transcript(run.id, trial, said)
            run = history.finish_run(run)
    return serve_site(path), run


@pytest.mark.parametrize("page", ["/", "/run/{0}", "/run/{0}/live", "/compare?run={0}"])
def test_the_tasks_that_a_verdict_names_lead_to_their_pages(fallen, page):
    site, run = fallen
    text = site.get(page.format(run.key))[2]
    assert "3 tasks fell on 4 Nov (t7, t8, t9)" in re.sub(r"<[^>]+>", "", text)
    for task in ("t7", "t8", "t9"):
        assert f'<a href="/run/{run.key}/task?system=a+%3Cb%3E&amp;task={task}">{task}</a>' in text


def test_a_fall_says_what_was_asked_and_leads_to_a_trial_that_passed(fallen):
    site, run = fallen
    text = site.get("/")[2]
    assert re.findall(r">(t\d)</a><span class=\"quote\">", text) == ["t7", "t8", "t9"]
    assert "“Book &lt;it&gt;" in text
    assert f"/run/{run.key}/diff?trial=0&amp;system=a+%3Cb%3E&amp;task=t7" in text
    assert "Fell on 4 Nov" in words(site.get(f"/run/{run.key}/task?system=a+%3Cb%3E&task=t7")[2])
    assert "Fell on" not in words(site.get(f"/run/{run.key}/task?system=a+%3Cb%3E&task=t1")[2])


def test_the_word_of_a_gate_stands_once_in_its_line(fallen):
    site, run = fallen
    ended, overview = (words(site.get(page)[2]) for page in (f"/run/{run.key}/live", "/"))
    assert "FAIL a <b>: pass^1 >= 0.9. pass@1 is " in ended
    assert f"Gate failed Run {run.key} . a <b>: pass^1 >= 0.9. pass@1 is " in overview


def test_the_overview_says_which_fall_it_would_see_where_nothing_fell(tmp_path, serve_site, fallen):
    assert "would likely be seen" not in words(fallen[0].get("/")[2])
    with History.open(tmp_path / "calm.db") as history:
        for day in range(3):
            run = history.start_run("s", started=f"2026-11-0{day + 1}T09:00:00+00:00")
            history.add_trials(run, simulate(tasks=20, runs=8, rate={"a": 0.9, "b": 0.8}, seed=1))
            history.finish_run(run)
    said = words(serve_site(tmp_path / "calm.db").get("/")[2])
    assert len(re.findall(r"A fall of \d0 points in 4 of these 20 tasks would likely", said)) == 1


def rows_of_runs(text):
    """The row of each run in a list of them, by its key."""
    rows = re.findall(r'<tr><td class="pick">.*?</tr>', text, flags=re.DOTALL)
    return {re.search(r'name="run" value="(\w+)"', row)[1]: words(row) for row in rows}


@pytest.mark.parametrize("page", ["/runs", "/runs?suite=s", "/compare", "/search?q={0}"])
def test_a_list_of_runs_has_the_verdict_on_each(fallen, page):
    site, run = fallen
    site.get("/")  # which judges the newest
    row = rows_of_runs(site.get(page.format(run.key))[2])[run.key]
    assert "✕ Gate failed ▼ 3 tasks fell on 4 Nov" in row


def test_a_list_of_runs_judges_a_few_on_each_visit_the_newest_first(fallen):
    site, _ = fallen
    for judged in (2, 4):
        text = site.get("/runs")[2]
        said = [any(of in row for of in ("fell", "No change", "Nothing to compare", "than on"))
                for row in rows_of_runs(text).values()]  # fmt: skip
        assert said == [place < judged for place in range(4)]
        assert ("is judged when it is opened" in text) == (judged < 4)


def test_the_list_of_a_suite_opens_with_where_it_stands(fallen):
    site, _ = fallen
    said = site.get("/runs?suite=s")[2]
    front = site.get("/")[2]
    stands = re.compile(r'<div class="attention">.*?</table>', flags=re.DOTALL)
    assert stands.findall(said) == stands.findall(front) != []
    assert 'class="attention"' not in site.get("/runs?suite=s&status=finished")[2]
    assert 'class="attention"' not in site.get("/runs")[2]


def test_where_the_number_fell_the_overview_opens_with_its_picture(fallen, tmp_path, serve_site):
    with History.open(tmp_path / "worse.db") as history:
        for day in range(4):
            run = history.start_run("s", started=f"2026-11-0{day + 1}T09:00:00+00:00")
            rate = {"agent": 0.3 if day == 3 else 0.95}
            history.add_trials(run, simulate(tasks=12, runs=6, rate=rate, seed=1))
            history.finish_run(run)
    worse = serve_site(tmp_path / "worse.db").get("/")[2]
    assert "agent: pass^5 in the last 4 runs" in words(worse)
    assert "<figure>" not in fallen[0].get("/")[2]  # there some tasks fell, and not the mean
    with History.open(tmp_path / "worse.db") as history:
        for day in range(4):
            run = history.start_run("newer", started=f"2026-12-0{day + 1}T09:00:00+00:00")
            passes = [8, 8, 6, 7, 8, 8, 5, *((8, 8, 7) if day < 3 else (0, 1, 0))]
            rows = [(f"t{i}", n < count) for i, count in enumerate(passes) for n in range(8)]
            tasks, passed = map(list, zip(*rows, strict=True))
            history.add_trials(
                run, Trials.from_columns(system=["b"] * 80, task=tasks, passed=passed)
            )
            history.finish_run(run)
    both = serve_site(tmp_path / "worse.db").get("/")[2]
    assert "2 of 2 suites fell: newer , s b. Against" in words(both)
    assert "3 tasks fell on 4 Dec" in words(both)
    assert "<figure>" not in both  # it would be about the other suite than the sentence beside it


def test_a_fall_says_which_check_the_first_failure_of_each_task_failed(tmp_path, serve_site):
    check = {"target": "answer", "score": 0.0, "message": "expected <4>, got 5"}
    said = json.dumps({"messages": [{"role": "user", "text": "Hi"}], "checks": [check]})
    with History.open(tmp_path / "h.db") as history:
        for day in range(4):
            run = history.start_run("s", started=f"2026-11-0{day + 1}T09:00:00+00:00")
            rows = [(f"t{i}", day < 3 or i > 1) for i in range(10) for _ in range(8)]
            tasks, passed = map(list, zip(*rows, strict=True))
            trials = Trials.from_columns(system=["a"] * 80, task=tasks, passed=passed)
            history.add_trials(run, trials)
            with history.writing():
                for trial in trials:
                    if not trial.outcome:
                        history.add_transcript(run.id, trial, said)
            history.finish_run(run)
        run = history.find_run("latest")
    site = serve_site(tmp_path / "h.db")
    for page in ("/", f"/run/{run.key}", "/runs?suite=s"):
        assert words(site.get(page)[2]).count("answer: expected <4>, got 5") == 2, page


def test_the_overview_gives_no_rate_of_a_run_that_its_gates_ended(tmp_path, serve_site):
    with History.open(tmp_path / "early.db") as history:
        for day in range(3):
            options = {"at_most": 100} if day == 2 else {}
            run = history.start_run("s", started=f"2026-11-0{day + 1}", options=options)
            history.add_trials(run, simulate(tasks=5, runs=4, rate={"a": 0.8}, seed=day))
            run = history.finish_run(run)
    assert run.stopped_early
    said = words(serve_site(tmp_path / "early.db").get("/")[2])
    assert "stopped early: no rate" in said
    assert re.search(r"pass\^4 [\d.]+ \[", said) is None
    assert "over 2 runs" in said  # in its small picture as well


def test_what_a_task_passed_before_its_fall_is_one_number_on_every_page(tmp_path, serve_site):
    usual, path = [8, 8, 6, 7, 8, 8, 5, 8, 8, 7], tmp_path / "long.db"
    with History.open(path) as history:
        for day in range(40):
            passes = [6 if day < 5 else 8 if day < 39 else 0, *usual]
            rows = [(f"t{i}", n < count) for i, count in enumerate(passes) for n in range(8)]
            tasks, passed = map(list, zip(*rows, strict=True))
            run = history.start_run("s", started=f"2026-{10 + day // 28}-{1 + day % 28:02}T09:00")
            history.add_trials(run, Trials.from_columns(
                system=["a"] * len(tasks), task=tasks, trial=[*range(8)] * 11, passed=passed
            ))  # fmt: skip
            history.finish_run(run)
        run = history.find_run("latest")
    site = serve_site(path)
    page = words(site.get(f"/run/{run.key}/task?system=a&task=t0")[2])
    assert "97% passed in the 39 runs before: 302 of 312 trials" in page
    assert "t0 97% 0 of 8" in words(site.get("/")[2])


def test_every_trial_of_a_task_in_other_runs_is_a_link_on_its_page(fallen):
    site, run = fallen
    text = site.get(f"/run/{run.key}/task?system=a+%3Cb%3E&task=t7")[2]
    squares = re.findall(r'<a class="square (\w+)" href="([^"]+)"', text)
    assert [word for word, _ in squares] == ["passed"] * 24
    assert run.key not in {link.split("/")[2] for _, link in squares}
    assert site.get(html.unescape(squares[0][1]))[0] == 200


def test_the_page_of_a_trial_leads_to_the_others_of_its_task(fallen):
    site, run = fallen
    text = site.get(f"/run/{run.key}/trial?system=a+%3Cb%3E&task=t8&trial=3")[2]
    squares = re.findall(r'<a class="square (\w+)"[^>]*&amp;trial=(\d)"([^>]*)>', text)
    assert [word for word, *_ in squares] == ["passed"] + ["failed"] * 7
    assert [number for _, number, more in squares if "aria-current" in more] == ["3"]


def test_a_trend_lists_the_tasks_of_a_fall_that_its_mean_does_not_show(fallen):
    text = fallen[0].get("/trend?suite=s")[2]
    said = words(text)
    assert "a <b> ▼ 3 tasks fell on 4 Nov" in said
    assert "The fall is in 3 tasks Passed trials before the newest change and since" in said
    assert re.findall(r'id="[^"]*" href="[^"]*task=(t\d)"', text)[:3] == ["t7", "t8", "t9"]
    assert "no change in pass^" not in said


def test_search_marks_the_words_that_were_looked_for(fallen):
    text = fallen[0].get("/search?q=%3Cit%3E+BOOK")[2]
    assert "<mark>Book</mark> <mark>&lt;it&gt;</mark>" in text


def test_the_overview_names_the_suites_that_need_attention_first(tmp_path, serve_site):
    path = tmp_path / "gates.db"
    with History.open(path) as history:
        for suite, gate in (("calm", "pass^1 >= 0.1"), ("open", "pass^1 >= 0.99")):
            run = history.start_run(suite, options={"gates": [gate]})
            history.add_trials(run, simulate(tasks=20, runs=8, rate={"agent": 0.6}, seed=1))
            history.finish_run(run)
    text = words(serve_site(path).get("/")[2])
    assert "Needs attention 1 of 2 suites failed a gate: open" in text
    assert "Gate failed" in text
    assert "agent: pass^1 >= 0.99. " in text
    assert "pass^1 >= 0.1" not in text


def test_a_task_of_a_single_run_has_no_empty_picture(site, runs):
    text = site.get(f"/run/{runs[0].key}/task?system=careful&task=task-01")[2]
    assert '<div class="pane"></div>' not in text


def test_the_pages_of_a_task_and_its_trials_show_what_was_changed_which_tests_failed_and_where(
    tmp_path, serve_site
):
    """Work in a workspace: the same change once, tests against trials, stage and limits."""
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("s")
        passed = [True, True, False]
        trials = list(Trials.from_columns(system=["agent"] * 3, task=["t"] * 3, passed=passed))
        history.add_trials(run, trials)
        with history.writing():
            for trial, good in zip(trials, passed, strict=True):
                diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-<i>\n+<b>\n" if good else ""
                ended = {"name": "m::test_a", "outcome": "passed" if good else "failed"}
                left = {"stage": "grader", "sandbox": "bubblewrap", "limits": "cgroup v1",
                        "diff": diff, "flags": [], "tests": [ended]}  # fmt: skip
                said = json.dumps({"answer": "done", "workspace": left})
                history.add_transcript(run.id, trial, said)
        history.finish_run(run)
    site = serve_site(tmp_path / "history.db")
    address = f"/run/{run.key}/t{{}}?system=agent&amp;task=t"
    text = site.get(f"/run/{run.key}/task?system=agent&task=t")[2]
    assert "2 of 3 trials made this change; 2 passed" in text
    assert "1 of 3 trials changed nothing; 0 passed" in text
    assert '<span class="add">+&lt;b&gt;' in text
    assert re.findall(r'<td class="n (\w+)">[✓✕]', text) == ["passed", "passed", "failed"]
    assert (
        text.count(address.format("rial") + "&amp;trial=2") >= 3
    )  # its row, its change, its tests
    text = site.get(f"/run/{run.key}/trial?system=agent&task=t&trial=0")[2]
    assert "in bubblewrap, with limits by cgroup v1, ended at the stage: grader" in words(text)


def test_the_page_of_a_task_leads_to_it_in_every_run_and_says_which_check_failed(
    tmp_path, serve_site
):
    path = tmp_path / "history.db"
    check = {"target": "answer", "score": 0.0, "message": "expected 4, got 5"}
    said = {"messages": [{"role": "user", "text": "Hi"}], "checks": [check]}
    with History.open(path) as history:
        for i in range(3):
            run = history.start_run("s", started=f"2026-11-0{i + 1}T09:00:00.000+00:00")
            passed = [number < 3 - i for number in range(4)]
            trials = list(Trials.from_columns(system=["agent"] * 4, task=["t"] * 4, passed=passed))
            history.add_trials(run, trials)
            with history.writing():
                history.add_transcript(run.id, trials[-1], json.dumps(said))
            history.finish_run(run)
        runs = history.runs()
    site = serve_site(path)
    text = site.get(f"/run/{runs[0].key}/task?system=agent&task=t")[2]
    cells = re.findall(r'<td class="cell \w+"><a href="/run/(\w+)/task[^"]*">(\d)', text)
    assert cells == [(run.key, str(3 - i)) for i, run in enumerate(reversed(runs))]
    assert "passed in the 2 runs before: 5 of 8 trials" in words(text)
    assert "answer: expected 4, got 5" in words(text)


def test_a_store_that_is_away_is_a_503_on_every_page_that_asks_it(serve_site):
    site = serve_site("postgresql://nobody@127.0.0.1:1/none")
    for path in ("/", "/runs", "/trend"):
        status, _, text = site.ask(path, headers=site.cookie)
        assert (path, status) == (path, 503), text
