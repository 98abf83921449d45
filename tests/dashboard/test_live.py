import http.client
import json
import subprocess
import sys
import tempfile
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.dashboard import live
from passhat.dashboard.live import Funnel, PageState, PlannedRun, watched_numbers, watching
from passhat.history import History, leases
from passhat.history.queries import StoredProgress, TaskProgress, change_mark, read_progress
from passhat.journeys.stored_runs import StoredGate
from passhat.records import Outcome, Trial

WRITER = """
import sys, time
from passhat.history import History, leases
from passhat.records import Outcome, Trial
sys.stdin.readline()
with History.open(sys.argv[1]) as history:
    run = history.find_run(sys.argv[2])
    for i in range(6):
        trial = Trial(system="agent", task=f"t{i % 2}", trial=i // 2, outcome=Outcome(i % 3))
        history.add_trials(run, [trial], first_sequence=i)
        time.sleep(0.2)
    history.finish_run(run)
"""

DYING = """
import os, sys
from passhat.history import History, leases
from passhat.records import Outcome, Trial
history = History.open(sys.argv[1])
run = history.start_run("s")
trial = Trial(system="agent", task="t", trial=0, outcome=Outcome.PASSED)
history.add_trials(run, [trial], first_sequence=0)
print(run.key, flush=True)
sys.stdin.readline()
os._exit(1)
"""

keys = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 3))


def stored(gates):
    return tuple(StoredGate(require=one) for one in gates)


def progress_of(known):
    cells = {}
    for (system, task, trial), outcome in sorted(known.items()):
        cells.setdefault((system, task), []).append((trial, outcome))
    tasks = [
        TaskProgress(
            system=system,
            task=task,
            passed=sum(outcome == Outcome.PASSED for _, outcome in runs),
            failed=sum(outcome == Outcome.FAILED for _, outcome in runs),
            errored=sum(outcome == Outcome.ERRORED for _, outcome in runs),
            runs=" ".join(f"{trial}:{int(outcome)}" for trial, outcome in runs),
        )
        for (system, task), runs in cells.items()
    ]
    return StoredProgress(status="running", launched=9, tasks=tasks)


@given(st.lists(st.dictionaries(keys, st.sampled_from(Outcome)), min_size=1, max_size=5))
def test_what_a_page_was_told_adds_up_to_the_state(states):
    """However a run grows, or is resumed and its trials replaced."""
    watch, seen, known = PageState(), {}, {}
    for state in states:
        known |= state
        news = watch.news(progress_of(known))
        for system, task, marks, _ in news["tasks"]:
            seen[system, task] = marks
    expected = {}
    for (system, task, _), outcome in sorted(known.items()):
        expected[system, task] = expected.get((system, task), "") + "FPE"[outcome]
    assert seen == expected
    assert sum(sum(counts[1:]) for counts in news["systems"]) == news["done"] == len(known)


@given(st.dictionaries(keys, st.sampled_from(Outcome)))
@settings(max_examples=20)
def test_the_store_counts_what_was_written(known):
    with tempfile.TemporaryDirectory() as folder, History.open(f"{folder}/h.db") as history:
        run = history.start_run("suite")
        history.add_trials(
            run,
            [
                Trial(system=system, task=task, trial=trial, outcome=outcome)
                for (system, task, trial), outcome in known.items()
            ],
        )
        found = read_progress(history, run)
    expected = progress_of(known).tasks
    assert {(t.system, t.task): (t.passed, t.failed, t.errored, set(t.runs.split()))
            for t in found.tasks} == {
        (t.system, t.task): (t.passed, t.failed, t.errored, set(t.runs.split())) for t in expected
    }  # fmt: skip
    assert (found.status, found.launched) == ("running", len(known))


def test_nothing_new_is_told_twice():
    watch = PageState()
    progress = progress_of({("s", "t", 0): Outcome.PASSED})
    assert watch.news(progress)["tasks"] == [["s", "t", "P", [0]]]
    again = watch.news(progress)
    assert (again["tasks"], again["recent"], again["done"]) == ([], [], 1)


def test_very_many_trials_are_marks_and_the_first_of_them_links(monkeypatch):
    monkeypatch.setattr(live, "MOST_MARKS_LINKED", 5)
    known = {("s", task, n): Outcome.PASSED for task in "abc" for n in range(3)}
    known["s", "c", 1] = Outcome.FAILED
    rows = PageState().news(progress_of(known))["tasks"]
    assert rows == [
        ["s", "c", "PFP", [0, 1, 2]],
        ["s", "a", "PPP", []],
        ["s", "b", "PPP", []],
    ]


def test_only_trials_that_end_while_one_looks_are_new():
    watch = PageState()
    old, new = {("s", "t", 1): Outcome.PASSED}, {("s", "t", 0): Outcome.FAILED}
    assert watch.news(progress_of(old))["recent"] == []
    assert watch.news(progress_of(old | new))["recent"] == [["s", "t", 0, "F"]]


def test_a_reader_notices_that_another_connection_wrote(tmp_path):
    path = tmp_path / "history.db"
    with History.open(path) as writer:
        run = writer.start_run("suite")
        with History.open(path, read_only=True) as reader:
            before = change_mark(reader)
            assert change_mark(reader) == before
            trial = Trial(system="s", task="t", trial=0, outcome=Outcome.PASSED)
            writer.add_trials(run, [trial])
            assert change_mark(reader) != before


def events(site, path, *, after_first=lambda: None):
    """Server-sent events until the server ends the stream."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", path, headers=site.cookie)
    answer = connection.getresponse()
    assert answer.getheader("content-type").startswith("text/event-stream")
    lines = []
    for line in answer:
        lines.append(line.decode())
        if sum(text.startswith("data:") for text in lines) == 1 and line.startswith(b"data:"):
            after_first()
    blocks = "".join(lines).strip().split("\n\n")
    connection.close()
    pairs = [block.split("\n") for block in blocks if block.startswith("event:")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
            for name, data in pairs]  # fmt: skip


def test_events_follow_a_run_that_another_process_writes_until_it_ends(tmp_path, serve_site):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("suite")
    site = serve_site(path)
    command = [sys.executable, "-c", WRITER, str(path), run.key]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as writer:
        told = events(site, f"/run/{run.key}/events", after_first=writer.stdin.close)
        assert writer.wait(60) == 0
    assert [name for name, _ in told][-2:] == ["news", "end"]
    assert len(told) >= 3
    last = told[-2][1]
    assert (last["status"], last["done"], last["systems"]) == ("finished", 6, [["agent", 2, 2, 2]])
    assert last["intervals"] == {"agent": "[2, 84]"}  # time-uniform, as on the terminal
    marks = {}
    for _, news in told[:-1]:
        marks |= {task: runs for _, task, runs, _ in news["tasks"]}
    assert marks == {"t0": "FEP", "t1": "PFE"}


def test_a_run_whose_process_dies_while_it_is_watched_has_ended(tmp_path, serve_site, monkeypatch):
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.2)
    path = tmp_path / "h.db"
    command = [sys.executable, "-c", DYING, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        key = process.stdout.readline().strip()
        site = serve_site(path)
        _, _, page = site.ask(f"/run/{key}/live", headers=site.cookie)
        assert '<span data-at="status">running</span>' in page

        def die():
            process.communicate()
            # A run without an owner counts as running for half a minute: let that be over.
            monkeypatch.setattr(leases, "LEASE_SECONDS", 0.0)

        told = events(site, f"/run/{key}/events", after_first=die)
    assert [(name, news.get("status")) for name, news in told] == [
        ("news", "running"), ("news", "stopped"), ("end", None),
    ]  # fmt: skip
    _, _, page = site.ask(f"/run/{key}/live", headers=site.cookie)
    assert "The run has ended (stopped)" in page


def test_a_watched_page_does_not_keep_the_server_from_ending(tmp_path, serve_site):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("suite")
    site = serve_site(path)
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.request("GET", f"/run/{run.key}/events", headers=site.cookie)
    assert connection.getresponse().status == 200
    try:
        assert site.stop(seconds=30)
    finally:
        connection.close()


@given(st.dictionaries(keys, st.sampled_from(Outcome)), st.integers(1, 3))
def test_a_watched_number_counts_the_complete_groups_of_runs_whatever_their_order(known, k):
    (_, *others) = numbers = watched_numbers([f"pass^{k} >= 0.5", f"pass@{k} >= 0.5"])
    funnels = [Funnel(number) for number in (others or numbers)]
    watch = PageState(funnels=funnels)
    for half in (dict(list(known.items())[::2]), known):
        watch.news(progress_of(half))
    groups = {}
    for (system, task, trial), outcome in known.items():
        groups.setdefault((system, task, trial // k), []).append(outcome == Outcome.PASSED)
    full = [(key[0], runs) for key, runs in groups.items() if len(runs) == k]
    for funnel in funnels:
        hit = any if funnel.number.counts == "any" else all
        for system in {name for name, _ in full}:
            mine = [hit(runs) for name, runs in full if name == system]
            assert funnel.now[system] == (len(mine), sum(mine))


def test_every_gate_with_a_line_has_its_picture():
    known = {("s", f"t{i}", n): Outcome(int(n % 4 != 3)) for i in range(20) for n in range(6)}
    gates = ("pass^3 >= 0.4", "pass@3 >= 0.9", "error_rate <= 0.05", "pass^1 >= 0.6")
    watch = PageState(
        expected=PlannedRun(planned=240, gates=stored(gates)),
        funnels=[Funnel(number) for number in watched_numbers(gates)],
    )
    for count in (40, 80, 120):
        news = watch.news(progress_of(dict(list(known.items())[:count])))
    for gate in gates:
        assert f"gate: {gate.replace('>', '&gt;').replace('<', '&lt;')}" in news["funnel"]
    assert "pass^3 is 50% so far" in news["funnel"]


def test_a_mean_score_has_no_line_where_scores_are_partial(tmp_path):
    with History.open(tmp_path / "h.db") as history:
        run = history.start_run("suite", options={"gates": ["mean_score >= 0.8"]})
        trial = Trial(system="s", task="t", trial=0, outcome=Outcome.PASSED, score=0.9)
        assert watching(history, run).funnels[0].number.gates
        history.add_trials(run, [trial])
        assert not watching(history, run).funnels[0].number.gates


def test_a_run_until_settled_says_from_how_many_trials_to_how_many():
    gates = ("pass^1 >= 0.5",)
    watch = PageState(
        expected=PlannedRun(at_most=400, gates=stored(gates), started=0.0),
        funnels=[Funnel(number) for number in watched_numbers(gates)],
    )
    near = {("s", f"t{i}", n): Outcome(int(n < 3)) for i in range(8) for n in range(5)}
    news = watch.news(progress_of(near))
    assert news["total"].startswith("about ")
    low, high = (int(part) for part in news["total"].removeprefix("about ").split(" to "))
    assert 40 < low < high == 400
    far = dict.fromkeys(near, Outcome.PASSED)
    watch = PageState(expected=watch.expected, funnels=[Funnel(watch.funnels[0].number)])
    assert watch.news(progress_of(far))["total"] == "about 40 to 400"
    assert " to " in news["left"]


def watched(tmp_path, options, trials, *, before=()):
    with History.open(tmp_path / "history.db") as history:
        for earlier in before:
            run = history.start_run("suite")
            history.add_trials(run, earlier)
            history.finish_run(run)
            history.tag(run, "main")
        run = history.start_run("suite", options=options)
        history.add_trials(run, trials)
        watch = watching(history, run)
        return watch, watch.news(read_progress(history, run))


def tagged(task, outcomes, *tags):
    return [
        Trial(system="s", task=task, trial=i, outcome=Outcome(one), tags=tags, cost=0.5)
        for i, one in enumerate(outcomes)
    ]


def test_a_gate_on_a_tag_is_drawn_from_the_tasks_that_have_it(tmp_path):
    trials = tagged("a", [1, 0, 0, 0], "hard") + tagged("b", [1, 1, 1, 1], "easy")
    gates = {"gates": ["tags[hard].pass^1 >= 0.5"]}
    watch, news = watched(tmp_path, gates, trials)
    (_, funnel) = watch.funnels
    assert funnel.now == {"s": (4, 1)}
    assert "pass@1 of tasks tagged hard is 25%" in news["funnel"]
    assert news["gates"] == ["gate: drawn below, judged when the run has ended"]


def test_a_gate_with_tags_of_its_own_is_not_drawn_from_all_tasks(tmp_path):
    trials = tagged("a", [1, 0], "hard") + tagged("b", [1, 1], "easy")
    terms = {"require": "pass^1 >= 0.5", "tags": ["hard"]}
    watch, _ = watched(tmp_path, {"gates": ["pass^1 >= 0.5"], "gate_terms": [terms]}, trials)
    everything, hard = watch.funnels
    assert not everything.number.gates
    assert hard.now == {"s": (2, 1)}
    assert [text for text, _ in hard.number.gates] == ["pass^1 >= 0.5"]


def test_what_cannot_be_drawn_is_said_in_words(tmp_path):
    gates = ["cost.mean <= 1", "no_worse_than main by 0.05", "icc <= 0.5"]
    before = [tagged("a", [1, 1, 1, 0])]
    _, news = watched(tmp_path, {"gates": gates}, tagged("a", [1, 0]), before=before)
    cost, compared, other = news["gates"]
    assert "$0.5 a trial on average so far" in cost
    assert "main passed 75% of its trials" in compared
    assert "cannot be watched" in other


def test_the_newest_failing_trials_stand_beside_the_progress_until_the_verdict_does():
    watch, known, ended = PageState(), {}, []
    for i in range(40):
        key = ("s", f"t{i % 4}", i // 4)
        known[key] = (Outcome.PASSED, Outcome.FAILED, Outcome.PASSED, Outcome.ERRORED)[i % 4]
        if known[key] is not Outcome.PASSED:
            ended.append([*key, known[key].name[0]])
        news = watch.news(progress_of(known))
        assert news["failing"] == ended[:-6:-1]
    assert news["so_far"] == "50% of trials passed so far, 10 failed, 10 errored."
    opened_later = PageState().news(progress_of(known))["failing"]
    assert len(opened_later) == 5
    assert all(one in ended and one[2] >= 7 for one in opened_later)
    assert PageState().news(replace(progress_of(known), status="finished"))["failing"] == []
