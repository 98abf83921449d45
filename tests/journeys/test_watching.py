"""`passhat watch`: trials that keep coming, from files that grow, folders, spans and stores."""

import json
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import ArgumentError, InputError
from passhat.journeys import store_results
from passhat.journeys.watching import (
    Follower,
    Watch,
    WatchState,
    load_state,
    save_state,
    watch,
)
from passhat.records.columns import ColumnMap
from passhat.stats.sequential.detection import hour_of

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
TASKS = [f"{family}-{i}" for family in ("refund", "search", "mail") for i in range(4)]


def traffic(days, *, per_day=400, rate=0.9, drop=None, cycle=0.0, seed=1):
    """Trials of so many days; `drop` is a day and a rate from then on, of tasks of one family."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.random(int(days * per_day)) * days)
    task = rng.integers(0, len(TASKS), len(at))
    chance = rate + cycle * np.sin(2 * np.pi * at) - cycle * (at.astype(int) % 7 >= 5)
    if drop is not None:
        chance = np.where((at > drop[0]) & (task < 2), drop[1], chance)
    passed = rng.random(len(at)) < chance
    return [
        {
            "task": TASKS[t],
            "passed": bool(ok),
            "timestamp": (MONDAY + timedelta(days=a)).isoformat(),
        }
        for a, t, ok in zip(at.tolist(), task.tolist(), passed.tolist(), strict=True)
    ]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def once(path, **options):
    return list(watch(path, once=True, state=path.with_name("state.json"), **options))


def kinds(events):
    return [event.kind for event in events]


def test_an_alarm_says_trial_time_size_and_tasks_in_one_sentence(tmp_path):
    file = tmp_path / "agent.jsonl"
    file.write_text(lines(traffic(14, drop=(10, 0.2))))
    first, *alarms = once(file)
    assert first.sentence == (
        f"watching agent: {100 * first.reference:.1f}% pass in {first.trials:,} trials (hour by "
        "hour, weekends apart), with 3 families of tasks; at most 0.1 false alarms in 1,000 trials"
    )
    assert 2_800 <= first.trials < 2_810
    alarm = next(event for event in alarms if event.family is not None)
    assert alarm.kind == "alarm"
    assert alarm.family == "refund"
    assert set(alarm.tasks[:2]) == {"refund-0", "refund-1"}
    assert 4000 < alarm.trial < 4300
    assert alarm.since.startswith(("2026-11-11", "2026-11-12"))
    assert 0.3 < alarm.rate < 0.75 < alarm.reference
    assert f"{100 * alarm.rate:.0f}% of {alarm.trials} trials passed since" in alarm.sentence
    assert "\n" not in alarm.sentence


def test_an_alarm_is_told_once_and_its_end_too(tmp_path):
    file = tmp_path / "agent.jsonl"
    rows = traffic(10, drop=(8, 0.1)) + [
        {
            **row,
            "timestamp": (
                datetime.fromisoformat(row["timestamp"]) + timedelta(days=10)
            ).isoformat(),
        }
        for row in traffic(4, seed=2)
    ]
    file.write_text(lines(rows))
    told = [e.kind for e in once(file, days=7.0) if e.family == "refund"]
    assert told == ["alarm", "recovered"]


def test_daily_and_weekly_cycles_raise_no_alarm(tmp_path):
    file = tmp_path / "agent.jsonl"
    file.write_text(lines(traffic(28, per_day=600, rate=0.86, cycle=0.08)))
    assert kinds(once(file)) == ["watching"]


def test_a_burst_of_the_same_minute_counts_once(tmp_path):
    file = tmp_path / "agent.jsonl"
    rows = traffic(9)
    storm = {**rows[-1], "passed": False}
    file.write_text(lines(rows) + lines([storm] * 500))
    assert kinds(once(file)) == ["watching"]


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow("other places to cut a file at"))]
)
def test_starts_and_polls_at_any_bytes_tell_the_same_as_one_look(tmp_path, seed):
    text = lines(traffic(12, drop=(9, 0.2))).encode()
    file, state = tmp_path / "agent.jsonl", tmp_path / "state.json"

    def told(cuts):
        known = WatchState(watch=Watch(), follower=Follower(source=str(file)))
        events = []
        for cut in cuts:
            file.write_bytes(text[:cut])
            for trials in known.follower.poll(ColumnMap()):
                events += known.watch.observe(trials)
            save_state(known, state)
            known = load_state(state, str(file))
        return events, known.watch.agents["agent"].trials

    rng = np.random.default_rng(seed)
    cuts = [*sorted(rng.integers(1, len(text), 12).tolist()), len(text)]
    whole = told([len(text)])
    assert told(cuts) == whole
    assert "alarm" in kinds(whole[0])


def test_a_csv_that_grows_keeps_its_header_and_a_half_written_line_waits(tmp_path):
    file = tmp_path / "agent.csv"
    follower = Follower(source=str(file))
    file.write_text("task,passed\na,yes\nb,n")
    (first,) = follower.poll(ColumnMap())
    assert (first.systems, first.tasks) == (("agent",), ("a",))
    file.write_text("task,passed\na,yes\nb,no\n")
    (second,) = follower.poll(ColumnMap())
    assert second.tasks == ("b",)
    assert not list(follower.poll(ColumnMap()))


def test_a_file_that_was_replaced_is_read_from_its_beginning(tmp_path):
    file = tmp_path / "agent.jsonl"
    follower = Follower(source=str(file))
    for task in "ab":
        file.write_text(lines([{"task": task, "passed": True}] * 3))
        (trials,) = follower.poll(ColumnMap())
        assert (trials.tasks, len(trials)) == ((task,), 3)


def test_repeated_events_count_once_where_trials_have_numbers(tmp_path):
    file = tmp_path / "agent.jsonl"
    rows = [{"task": "a", "trial": i, "passed": True} for i in range(5)]
    follower = Follower(source=str(file))
    file.write_text(lines(rows))
    assert sum(map(len, follower.poll(ColumnMap()))) == 5
    with file.open("a") as more:
        more.write(lines([rows[2], {"task": "a", "trial": 5, "passed": False}, rows[0]]))
    assert sum(map(len, follower.poll(ColumnMap()))) == 1


@pytest.mark.parametrize("seed", range(6))
def test_numbered_trials_count_once_wherever_repeats_and_looks_fall(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows = [{"task": f"t{i % 3}", "trial": i, "passed": bool(i % 2)} for i in range(60)]
    order = np.sort(rng.integers(0, 60, 30)).tolist()
    written = sorted([*range(60), *order] if seed % 2 else [*range(60), *order[:10]])
    late = [*written, *rng.integers(0, 60, 5).tolist()]
    ends = sorted({*rng.integers(1, len(late), 3).tolist(), len(late)})
    file, follower, seen, start = tmp_path / "agent.jsonl", None, [], 0
    for end in ends:
        with file.open("a") as more:
            more.write(lines([rows[i] for i in late[start:end]]))
        start, follower = end, follower or Follower(source=str(file))
        for trials in follower.poll(ColumnMap()):
            seen += trials.trial.tolist()
    assert sorted(seen) == list(range(60))


def test_late_events_and_gaps_are_counted_and_no_alarm(tmp_path):
    file = tmp_path / "agent.jsonl"
    rows = traffic(20)
    rows = [row for row in rows if not "2026-11-12" < row["timestamp"] < "2026-11-13"]
    rng = np.random.default_rng(4)
    order = np.argsort(np.arange(len(rows)) + 30 * rng.random(len(rows)))
    file.write_text(lines([rows[i] for i in order]))
    assert kinds(once(file)) == ["watching"]
    assert load_state(tmp_path / "state.json", str(file)).watch.agents["agent"].trials == len(rows)


def span(trace, number, parent, **attributes):
    return {
        "name": "invoke", "context": {"trace_id": trace, "span_id": f"{trace}-{number}"},
        "parent_id": parent and f"{trace}-{parent}", "start_time": "2026-11-02T10:00:00Z",
        "end_time": "2026-11-02T10:00:01Z", "status": {"status_code": "UNSET"},
        "attributes": attributes,
    }  # fmt: skip


def otlp(one):
    pairs = [{"key": k, "value": {"stringValue": str(v)}} for k, v in one["attributes"].items()]
    made = {
        "traceId": one["context"]["trace_id"], "spanId": one["context"]["span_id"],
        "name": one["name"], "startTimeUnixNano": "1793613600000000000",
        "endTimeUnixNano": "1793613601000000000", "attributes": pairs, "status": {},
    }  # fmt: skip
    return made | ({"parentSpanId": one["parent_id"]} if one["parent_id"] else {})


@pytest.mark.parametrize("form", ["sdk", "otlp"])
def test_the_spans_of_a_trace_are_one_trial_when_its_first_span_has_come(tmp_path, form):
    def written(*spans):
        if form == "sdk":
            return lines(spans)
        return lines([{"resourceSpans": [{"scopeSpans": [{"spans": [otlp(s) for s in spans]}]}]}])

    file = tmp_path / "spans.jsonl"
    follower = Follower(source=str(file))
    named = ColumnMap(task="case", passed="ok")
    child = span("t1", 2, 1, case="refund", ok="yes")
    file.write_text(written(child, span("t2", 1, None, case="mail", ok="no")))
    (first,) = follower.poll(named)
    assert [(t.task, int(t.outcome)) for t in first] == [("mail", 0)]
    with file.open("a") as more:
        more.write(written(span("t1", 1, None, case="refund", ok="yes")))
    (second,) = follower.poll(named)
    assert [(t.task, int(t.outcome)) for t in second] == [("refund", 1)]
    assert not follower.traces


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"task": "b", "passed": True, "trace_id": "7", "parent_id": None}, ""),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}, "1 row is left out"),
        ({"resourceSpans": None}, "1 row is left out"),
        ({"resourceSpans": []}, ""),
        ({"context": 5, "parent_id": None, "attributes": {}}, "1 row is left out"),
        ({"task": "b", "passed": "maybe"}, "1 row is left out"),
    ],
)
@pytest.mark.parametrize("place", ["file", "folder"])
def test_a_line_that_comes_alone_never_stops_a_watch_whatever_it_holds(tmp_path, row, says, place):
    file = tmp_path / "logs" / "agent.jsonl"
    file.parent.mkdir()
    follower = Follower(source=str(file if place == "file" else file.parent))
    good = {"task": "a", "passed": True}
    file.write_text(lines([good] * 2))
    assert sum(map(len, follower.poll(ColumnMap()))) == 2
    for first in ([], [good]):
        with file.open("a") as more:
            more.write(lines([*first, row]))
        counted = sum(map(len, follower.poll(ColumnMap())))
        assert counted == len(first) + ("task" in row and not says)
        assert [note[: len(says)] for note in follower.notes()] == [says] * bool(says)


def test_a_folder_is_one_agent_and_other_files_in_it_do_no_harm(tmp_path):
    folder = tmp_path / "bot"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing")
    rows = traffic(10)
    for part in range(4):
        (folder / f"2026-11-0{part}.jsonl").write_text(
            lines(rows[part * 1000 : part * 1000 + 1000])
        )
    events = list(watch(folder, once=True, state=tmp_path / "state.json"))
    assert kinds(events) == ["watching"]
    assert events[0].system == "bot"


def test_runs_of_a_store_are_followed_each_trial_once(tmp_path):
    store = tmp_path / "history.db"
    follower = Follower(source=str(store))

    def add(passed):
        file = tmp_path / f"{passed}.jsonl"
        file.write_text(lines([{"task": "a", "passed": passed}] * 4))
        store_results(file, store=store)

    add(True)
    assert sum(map(len, follower.poll(ColumnMap()))) == 4
    assert sum(map(len, follower.poll(ColumnMap()))) == 0
    add(False)
    (more,) = follower.poll(ColumnMap())
    assert len(more) == 4


def test_errored_trials_judge_nobody(tmp_path):
    file = tmp_path / "agent.jsonl"
    down = [{**row, "passed": None, "error": "529"} for row in traffic(2, seed=5)]
    file.write_text(lines(traffic(9)) + lines(down))
    assert kinds(once(file)) == ["watching"]


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is nothing at"):
        once(tmp_path / "none.jsonl")
    file = tmp_path / "agent.jsonl"
    file.write_text(lines(traffic(1)))
    with pytest.raises(ArgumentError, match="false_alarms must be between 0 and 1,000"):
        once(file, false_alarms=0.0)
    state = tmp_path / "state.json"
    state.write_text("{}")
    with pytest.raises(InputError, match="is no state of a watch"):
        once(file)
    save_state(WatchState(follower=Follower(source="other")), state)
    with pytest.raises(InputError, match="belongs to a watch of other"):
        once(file)


def test_hours_of_the_week_tell_weekends_from_weekdays():
    at = MONDAY.timestamp()
    assert [hour_of(at + day * 86_400 + 3600, 168) for day in range(7)] == [1] * 5 + [25] * 2
    assert hour_of(None, 168) == hour_of(at, 1) == 0


def test_the_command_prints_posts_and_writes_metrics(tmp_path):
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    file = tmp_path / "agent.jsonl"
    file.write_text(lines(traffic(14, drop=(10, 0.2))))
    state, metrics = tmp_path / "s.json", tmp_path / "m.prom"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/hook"
        words = ["watch", str(file), "--once", "--state", str(state), "--webhook", url]
        done = CliRunner().invoke(main, [*words, "--metrics", str(metrics)])
        again = CliRunner().invoke(main, words)
    finally:
        server.shutdown()
        server.server_close()
    assert done.exit_code == 1, done.output
    assert "ALARM  agent, refund got worse" in done.output
    assert posted[0]["text"] == posted[0]["sentence"]
    assert posted[0]["kind"] == "alarm"
    text = metrics.read_text()
    assert 'passhat_watch_alarm{system="agent",family="refund"} 1' in text
    assert text.endswith("# EOF\n")
    # A job that looks again with nothing new learns that the alarm stands.
    assert again.exit_code == 1, again.output
    assert again.output.startswith("agent: not shown to be as usual again in ")
    file.write_text(lines(traffic(14)))
    calm = ["watch", str(file), "--once", "--state", str(tmp_path / "calm.json")]
    assert CliRunner().invoke(main, calm).exit_code == 0
    later = CliRunner().invoke(main, calm)
    assert (later.exit_code, later.output) == (0, "")  # cron mails what is printed


def test_a_webhook_that_is_not_there_is_a_note_that_hides_its_address(tmp_path):
    file = tmp_path / "agent.jsonl"
    file.write_text(lines(traffic(14, drop=(10, 0.2))))
    hook = "http://127.0.0.1:9/secret-path"
    words = ["watch", str(file), "--once", "--state", str(tmp_path / "s"), "--webhook", hook]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert "the webhook at 127.0.0.1 was not told" in done.output
    assert "secret-path" not in done.output


def test_lines_that_are_no_json_are_left_out_and_told(tmp_path):
    file = tmp_path / "agent.jsonl"
    rows = traffic(8)
    file.write_text(lines(rows[:100]) + '{"task": "refund-0", "pas\n[1]\n' + lines(rows[100:]))
    events = once(file)
    assert sorted(kinds(events)) == ["note", "watching"]
    assert "2 lines are no JSON object and left out" in [event.sentence for event in events]
    known = load_state(tmp_path / "state.json", str(file))
    assert known.watch.agents["agent"].trials == len(rows)


@pytest.mark.slow("follows a log as it grows")
def test_a_named_grader_judges_traces_as_they_come(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watch_graders.py").write_text(
        "def kind(answer, seen):\n    return seen.answer == answer and 'sorry' not in answer\n"
        "def broken(answer):\n    return answer / 2\n"
    )
    rows = traffic(14, rate=0.9, drop=(10, 0.2))
    for row in rows:  # the log itself says that everything went well
        row["output"] = "Done." if row["passed"] else "I am sorry."
        row["passed"] = True
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(rows))
    assert "alarm" not in kinds(once(file))
    (tmp_path / "state.json").unlink()
    (alarm,) = [one for one in once(file, grader="watch_graders:kind") if one.kind == "alarm"][:1]
    assert {"refund-0", "refund-1"} <= set(alarm.tasks)
    (tmp_path / "state.json").unlink()
    words = ["watch", str(file), "--once", "--state", "s.json", "--grader", "watch_graders:broken"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "grader broke on 5,600 traces, which judge nobody: watch_graders:broken" in said
    done = CliRunner().invoke(main, [*words[:-1], "watch_graders:absent"])
    assert done.exit_code == 2, done.output
    assert "watch_graders:absent cannot be loaded" in done.output


def test_a_trial_without_a_transcript_is_an_error_to_a_grader_and_a_store_needs_none(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "watch_graders.py").write_text("def never(answer):\n    return False\n")
    rows = [{"task": "a", "passed": True, "output": text} for text in ("Hi.", "", "Ho.")]
    file = tmp_path / "t.jsonl"
    file.write_text(lines(rows))
    follower = Follower(source=str(file), grader="watch_graders:never")
    (trials,) = follower.poll(ColumnMap())
    assert [one.outcome.name for one in trials] == ["FAILED", "ERRORED", "FAILED"]
    store_results(file, store=tmp_path / "store.db")
    with pytest.raises(InputError, match="were graded when they ran"):
        list(Follower(source=str(tmp_path / "store.db"), grader="x:y").poll(ColumnMap()))


@pytest.mark.slow("a process that is stopped and started again")
def test_a_watch_goes_on_until_it_is_stopped_and_then_where_it_was(shell):
    file = shell.directory / "agent.jsonl"
    rows = traffic(14, drop=(10, 0.2))
    file.write_text(lines(rows[:3000]))
    watching = shell.start("watch", "agent.jsonl", "--every", "0.1", "--json")
    try:
        assert json.loads(watching.stdout.readline())["kind"] == "watching"
        while not list((shell.directory / ".passhat").glob("watch-*.json")):
            assert watching.poll() is None  # what it has learnt is kept after the first look
            time.sleep(0.05)
        with file.open("a") as more:
            more.write(lines(rows[3000:]))
        assert json.loads(watching.stdout.readline())["kind"] == "alarm"
    finally:
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert "Traceback" not in said
    later = shell("watch", "agent.jsonl", "--once")
    assert later.stdout.count("watching agent") == 0, later.stdout


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_row_that_is_no_trial_is_left_out_and_told_and_a_file_of_them_is_refused(tmp_path, form):
    def line(task, verdict):
        row = {"task": task, "passed": verdict}
        return f"{json.dumps(row)}\n" if form == "jsonl" else f"{task},{verdict}\n"

    head = "" if form == "jsonl" else "task,passed\n"
    good = [line(f"t{i % 7}", "true") for i in range(60)]
    rows = [*good[:20], line("x", "maybe"), *good[20:40], line("y", "perhaps"), *good[40:]]
    file = tmp_path / f"t.{form}"
    file.write_text(head + "".join(rows))
    words = ["watch", str(file), "--once", "--state", str(tmp_path / "s"), "--reference", "50"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "2 rows are left out" in told
    assert "'maybe' does not say whether the trial passed" in told
    assert "--pass-if" in told
    assert "pass_if" not in told
    assert "passhat-watch-" not in told
    file.write_text(head + line("x", "maybe") * 500)
    refused = CliRunner().invoke(main, [*words[:4], str(tmp_path / "s2")])
    assert refused.exit_code == 2, refused.output
    assert str(file) in refused.output


def test_what_a_webhook_was_not_told_it_is_told_when_it_is_back(monkeypatch):
    import socket
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    from passhat import forges

    taken = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hook = forges.Webhook(f"http://127.0.0.1:{port}/x")
    for number in range(3):
        hook.post({"sentence": f"alarm {number}"})
    with HTTPServer(("127.0.0.1", port), Hook) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            hook.post()
            assert taken == []  # it waits a while before it tries again
            monkeypatch.setattr(forges, "monotonic", lambda: 1e12)
            hook.post()
            hook.post()
        finally:
            server.shutdown()
            thread.join()
    assert [one["sentence"] for one in taken] == ["alarm 0", "alarm 1", "alarm 2"]
