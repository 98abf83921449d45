"""Cassettes: N distinct runs recorded and replayed, and every way in which that can go wrong."""

import json
import random
import resource
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runner.mutations import BrokenCassettes

from passhat.errors import CassetteError, RunError
from passhat.records import (
    Behaviour,
    CassetteSettings,
    CommandSystem,
    Expectation,
    Fault,
    Judge,
    Model,
    ModelParameters,
    ModelSystem,
    Outcome,
    Pairing,
    PythonSystem,
    ScriptedCall,
    Secret,
    StdioServer,
    Suite,
    Task,
    TokenUsage,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.cassettes import open_cassettes, read_cassette, write_cassette
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.testing import WireServer

SERVER = StdioServer(
    name="clock", argv=(sys.executable, str(Path(__file__).with_name("clock_server.py")))
)
TASK = Task(
    name="noon",
    prompt="Noon in Paris: what time is it in Tokyo?",
    expect=(Expectation(matcher="called", value="convert_time"),),
)
CONVERT = {"source_timezone": "Europe/Paris", "target_timezone": "Asia/Tokyo", "time": "12:00"}


def answer(asked):
    """Every run differs: in tokens, in words, and every third one calls no tool."""
    seed = asked.body["seed"]
    usage = TokenUsage(tokens_in=100 + seed % 50, tokens_out=seed % 17)
    called = any(message["role"] == "tool" for message in asked.body["messages"])
    if called or seed % 3 == 0:
        return Reply(text=f"Seed {seed} says 20:00.", usage=usage)
    call = CallRequest(id=f"call_{seed}", name="convert_time", arguments=CONVERT)
    return Reply(calls=(call,), usage=usage)


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory):
    """Ten runs with an MCP server, recorded against the wire."""
    directory = tmp_path_factory.mktemp("recorded")
    with WireServer(answer) as server:
        suite = suite_for(directory, base_url=server.url)
        journal = MemoryJournal()
        with open_cassettes(suite, "record", environment={}) as cassettes:
            result = run_trials(suite, cassettes=cassettes, journal=journal, environment={})
        asked = len(server.asked)
    return directory, result, journal, asked


@pytest.fixture
def recorded(recorded_once, tmp_path):
    """A copy of the recorded suite that a test may spoil."""
    directory, *rest = recorded_once
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    return suite_for(tmp_path), *rest


def suite_for(directory, *, base_url="http://127.0.0.1:9", runs=10, task=TASK, system=None):
    model = Model(name="test-model", base_url=base_url)
    agent = system or ModelSystem(name="agent", model=model, servers=("clock",))
    pairing = Pairing(system=agent, task=task, runs=runs, label=task.name)
    return Suite(
        name="suite", pairings=(pairing,), servers={"clock": SERVER}, directory=directory,
        cassette=CassetteSettings(directory=Path("cassettes")),
    )  # fmt: skip


def replay(suite, mode="replay", **options):
    journal = MemoryJournal()
    with open_cassettes(suite, mode, environment={}, **options) as cassettes:
        result = run_trials(suite, cassettes=cassettes, journal=journal, environment={})
    return result, journal


def rows(result):
    return [replace(trial, started=None) for trial in result.trials]


def transcripts(journal):
    return [entry.transcript for entry in journal.finished()]


def test_ten_runs_replay_as_the_same_ten_different_runs(recorded):
    suite, result, journal, asked = recorded
    assert asked > 10
    again, second = replay(suite_for(suite.directory))
    assert rows(again) == rows(result)
    assert transcripts(second) == transcripts(journal)
    assert len(set(transcripts(second))) == 10
    assert {Outcome.PASSED, Outcome.FAILED} == {trial.outcome for trial in again.trials}


def test_a_replay_with_real_servers_gives_the_same_rows(recorded):
    suite, result, *_ = recorded
    again, _ = replay(suite_for(suite.directory), servers="live")
    assert rows(again) == rows(result)


def test_the_file_is_the_same_whatever_the_order_of_the_runs(tmp_path, scripted):
    script = [Behaviour(answer=str(n), weight=1 + n) for n in range(4)]
    texts = set()
    for concurrency in (1, 8):
        folder = tmp_path / str(concurrency)
        suite = suite_for(folder, system=scripted(*script), runs=20)
        with open_cassettes(suite, "record", environment={}) as cassettes:
            run_trials(suite, cassettes=cassettes, concurrency=concurrency)
        (file,) = (folder / "cassettes").iterdir()
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.pop("sum", None)
        texts.add(json.dumps(lines))
    assert len(texts) == 1


def test_expectations_may_change_without_drift(recorded):
    suite, *_ = recorded
    stricter = replace(TASK, expect=(Expectation(matcher="contains", value="21:00"),))
    again, _ = replay(suite_for(suite.directory, task=stricter))
    assert {trial.outcome for trial in again.trials} == {Outcome.FAILED}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: _with_task(s, prompt="Noon in Rome?"), r"agent, 'noon': prompt was 'Noon in P"),
        (lambda s: _with_task(s, system_prompt="Be brief."), r"system_prompt was absent, is 'Be b"),
        (lambda s: _with_task(s, max_turns=3), r"max_turns was '10', is '3'"),
        (lambda s: _with_model(s, name="other"), r"model was 'test-model', is 'other'"),
        (
            lambda s: _with_model(s, parameters=ModelParameters(temperature=1.5)),
            r"parameters was absent, is '\{\"temperature\":1.5\}'",
        ),
    ],
)
def test_drift_is_refused_with_what_changed(recorded, change, message):
    suite = change(recorded[0])
    with pytest.raises(CassetteError, match=message):
        replay(suite)
    again, _ = replay(suite, allow_drift=True)
    assert len(again.trials) == 10


def test_a_changed_tool_is_drift_where_servers_are_live(recorded):
    suite, *_ = recorded
    (path,) = (suite.directory / "cassettes").iterdir()
    cassette = read_cassette(path)
    cassette.tools[0]["description"] = "Something else."
    from passhat.runner.cassettes import write_cassette

    write_cassette(cassette, path)
    with pytest.raises(CassetteError, match=r"tool .*: description was 'Something else.', is '"):
        replay(suite_for(suite.directory), servers="live")


def test_more_runs_than_recorded_are_never_made_up(recorded):
    suite, *_ = recorded
    asking = suite_for(suite.directory, runs=12)
    with pytest.raises(
        CassetteError, match=r"12 trials are asked for, 10 are recorded. .*--append"
    ):
        replay(asking)


def test_appending_pays_only_for_what_is_missing(recorded):
    suite, result, *_ = recorded
    with WireServer(answer) as server:
        more = suite_for(suite.directory, runs=12, base_url=server.url)
        longer, _ = replay(more, "append")
        asked = len(server.asked)
    assert rows(longer)[:10] == rows(result)
    assert 2 <= asked <= 4
    again, _ = replay(suite_for(suite.directory, runs=12))
    assert rows(again) == rows(longer)


def test_recording_does_not_overwrite_what_was_paid_for(recorded):
    with pytest.raises(CassetteError, match="exists: add trials with `cassette='append'`"):
        replay(recorded[0], "record")


def test_only_drifted_tasks_are_recorded_again(tmp_path, scripted):
    agent = scripted(Behaviour(answer="a"))
    tasks = [Task(name=name, prompt=name) for name in ("one", "two")]

    def suite(tasks):
        pairings = tuple(Pairing(system=agent, task=t, runs=2, label=t.name) for t in tasks)
        return Suite(name="s", pairings=pairings, directory=tmp_path)

    replay(suite(tasks), "record")
    (path,) = (tmp_path / "cassettes").iterdir()
    before = path.read_text().splitlines()
    replay(suite([tasks[0], replace(tasks[1], prompt="deux")]), "drifted")
    after = path.read_text().splitlines()
    assert [line for line in after if '"one"' in line] == [x for x in before if '"one"' in x]
    assert any("deux" in line for line in after)


def test_what_is_not_recorded_may_be_asked_live(recorded):
    suite, result, *_ = recorded
    with WireServer(answer) as server:
        more = suite_for(suite.directory, runs=11, base_url=server.url)
        longer, _ = replay(more, "replay-or-live")
    assert rows(longer)[:10] == rows(result)
    with pytest.raises(CassetteError, match="11 trials are asked for, 10 are recorded"):
        replay(suite_for(suite.directory, runs=11))


def _damage(kind, lines):
    if kind == "torn in a line":
        return [*lines[:5], lines[5][: len(lines[5]) // 2]]
    if kind == "torn between lines":
        return lines[:5]
    if kind == "changed":
        return [line.replace("20:00", "21:00") for line in lines]
    if kind == "another system":
        return [lines[0].replace("agent", "other"), *lines[1:]]
    if kind == "disguised":  # as a first line
        return [line.replace("20:00", '21:00","passhat":"1') for line in lines]
    if kind == "line removed":
        return lines[:4] + lines[5:]
    if kind == "lines swapped":
        return [*lines[:4], lines[5], lines[4], *lines[6:]]
    if kind == "another version":
        return [lines[0].replace("cassette/1", "cassette/9"), *lines[1:]]
    if kind == "not a cassette":
        return ['{"log": "something else"}', *lines[1:]]
    return []


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("torn in a line", r"agent.jsonl:6: the file is damaged, this line is not JSON"),
        ("torn between lines", r"the file is damaged, its end is missing"),
        ("changed", r"agent.jsonl:\d+: changed by hand, the checksum does not fit"),
        ("another system", r"agent.jsonl:1: changed by hand, the checksum does not fit"),
        ("disguised", r"agent.jsonl:\d+: changed by hand, the checksum does not fit"),
        ("line removed", r"changed by hand, lines were added, removed or moved"),
        ("lines swapped", r"changed by hand, lines were added, removed or moved"),
        ("another version", r"another version, 'cassette/9'; this passhat reads 'cassette/1'"),
        ("not a cassette", r"is not a passhat cassette"),
        ("empty", r"is not a passhat cassette"),
    ],
)
def test_a_damaged_cassette_is_refused(recorded, kind, message):
    suite, *_ = recorded
    (path,) = (suite.directory / "cassettes").iterdir()
    damaged = _damage(kind, path.read_text().splitlines())
    path.write_text("\n".join(damaged) + "\n" if damaged else "")
    with pytest.raises(CassetteError, match=message):
        replay(suite_for(suite.directory))


@pytest.mark.parametrize("byte", [b"\xbf", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0"])
def test_bytes_that_are_no_text_are_refused_with_their_line_wherever_they_are(recorded, byte):
    suite, *_ = recorded
    (path,) = (suite.directory / "cassettes").iterdir()
    whole = path.read_bytes()
    for place in range(1, len(whole), len(whole) // 20):
        path.write_bytes(whole[:place] + byte + whole[place + 1 :])
        with pytest.raises(CassetteError, match=r"agent\.jsonl"):
            replay(suite_for(suite.directory))


def test_no_broken_cassette_gives_other_numbers_or_an_error_that_is_not_ours(tmp_path):
    """`make mutations` breaks twenty thousand."""
    cassettes = BrokenCassettes(tmp_path)
    refusals = [cassettes.read_one(random.Random(seed)) for seed in range(100)]
    assert sum(told is not None for told in refusals) > 50
    assert not any("Traceback" in told for told in refusals if told)


def test_a_cassette_that_cannot_be_written_leaves_nothing_behind(recorded):
    suite, *_ = recorded
    (path,) = (suite.directory / "cassettes").iterdir()
    before, cassette = path.read_bytes(), read_cassette(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(RunError, match=r"agent.jsonl: File too large; no cassette was written"):
            write_cassette(cassette, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_missing_cassette_says_how_to_record_one(tmp_path):
    with pytest.raises(CassetteError, match=r"no cassette .*agent.jsonl: record one with"):
        replay(suite_for(tmp_path))


def test_a_compressed_cassette_replays_too(tmp_path, scripted):
    suite = suite_for(tmp_path, system=scripted(Behaviour(answer="ok")), runs=3)
    first, _ = replay(suite, "record", compressed=True)
    assert (tmp_path / "cassettes" / "agent.jsonl.zst").exists()
    again, _ = replay(suite, compressed=True)
    assert rows(again) == rows(first)


KEYS = [
    "sk-ant-api03-" + "a1B2" * 8,
    "ghp_" + "x9Y8" * 9,
    "AKIA" + "ABCD" * 4,
    "Bearer " + "q7" * 12,
]


def test_secrets_never_reach_the_file(tmp_path):
    def leak(asked):
        return Reply(text=f"I was told {' and '.join(KEYS)} and hunter2hunter2.")

    with WireServer(leak) as server:
        secret = Secret("${KEY}", "hunter2hunter2")
        model = Model(name="m", base_url=server.url, api_key=secret)
        suite = suite_for(tmp_path, system=ModelSystem(name="agent", model=model), runs=1)
        replay(suite, "record")
    text = (tmp_path / "cassettes" / "agent.jsonl").read_text()
    assert text.count("[redacted]") == len(KEYS)
    assert text.count("[redacted:KEY]") == 1
    assert not any(key in text for key in [*KEYS, "hunter2hunter2", "authorization"])


@pytest.mark.parametrize(
    "leaked",
    ["aHVudGVyMmh1bnRlcjI=", "-----BEGIN RSA PRIVATE KEY-----", "68756e7465723268756e74657232"],
)
def test_an_encoded_secret_is_redacted_too(tmp_path, leaked):
    with WireServer(lambda asked: Reply(text=leaked)) as server:
        secret = Secret("${KEY}", "hunter2hunter2")
        model = Model(name="m", base_url=server.url, api_key=secret)
        suite = suite_for(tmp_path, system=ModelSystem(name="agent", model=model), runs=1)
        replay(suite, "record")
    (cassette,) = tmp_path.rglob("*.jsonl")
    assert leaked not in cassette.read_text()
    assert "[redacted" in cassette.read_text()


def test_a_secret_that_cannot_be_redacted_stops_the_writing(tmp_path):
    with WireServer(lambda asked: Reply(text="2retnuh2retnuh")) as server:
        secret = Secret("${KEY}", "hunter2hunter2")
        model = Model(name="m", base_url=server.url, api_key=secret)
        suite = suite_for(tmp_path, system=ModelSystem(name="agent", model=model), runs=1)
        with pytest.raises(CassetteError, match="no cassette was written: a known secret"):
            replay(suite, "record")
    assert not list(tmp_path.rglob("*.jsonl*"))


def test_commands_replay_without_being_run(tmp_path):
    counter = tmp_path / "count"
    code = f"open({str(counter)!r}, 'a').write('x'); print('{{\"score\": 1, \"answer\": \"42\"}}')"
    system = CommandSystem(name="agent", argv=(sys.executable, "-c", code))
    task = Task(name="t", prompt="?", expect=(Expectation(matcher="exact", value="42"),))
    first, _ = replay(suite_for(tmp_path, system=system, task=task, runs=3), "record")
    again, _ = replay(suite_for(tmp_path, system=system, task=task, runs=3))
    assert counter.read_text() == "xxx"
    assert rows(again) == rows(first)
    assert {trial.outcome for trial in again.trials} == {Outcome.PASSED}


@pytest.mark.parametrize("kind", ["python", "command"])
def test_answers_of_code_that_has_changed_are_replayed_only_if_asked_to(tmp_path, kind):
    """The agent is not run in a replay: its answers are those of the code that was recorded."""
    code = tmp_path / "an_agent.py"
    code.write_text("def answer(prompt):\n    return '42'\n\n\nprint('42')\n")
    system = CommandSystem(name="agent", argv=(sys.executable, "an_agent.py"))
    if kind == "python":
        system = PythonSystem(name="agent", function="an_agent:answer", search=tmp_path)
    suite = suite_for(tmp_path, system=system, runs=2)
    replay(suite, "record")
    assert len(replay(suite)[0].trials) == 2
    code.write_text(code.read_text().replace("42", "43"))
    with pytest.raises(CassetteError, match=r"agent, 'noon': code was 'an_agent.py \w+', is 'an_a"):
        replay(suite)
    assert len(replay(suite, allow_drift=True)[0].trials) == 2
    (path,) = (tmp_path / "cassettes").iterdir()
    cassette = read_cassette(path)
    for setup in cassette.setups.values():  # as passhat wrote them before it kept the code
        del setup["code"]
    write_cassette(cassette, path)
    assert len(replay(suite)[0].trials) == 2


def test_failures_of_every_kind_replay_as_they_were(tmp_path, scripted):
    slow = CommandSystem(name="slow", argv=(sys.executable, "-c", "input(); 1/0"), timeout=20)
    late = CommandSystem(
        name="late", argv=(sys.executable, "-c", "import time; time.sleep(60)"), timeout=0.3
    )
    gone = CommandSystem(name="gone", argv=("no-such-command",))
    hung = replace(scripted(Behaviour(answer="x", seconds=30)), name="hung", timeout=0.2)
    task = Task(name="t", prompt="?")
    pairings = tuple(
        Pairing(system=s, task=task, runs=1, label=s.name) for s in (slow, late, gone, hung)
    )
    suite = Suite(name="s", pairings=pairings, directory=tmp_path)
    first, _ = replay(suite, "record")
    again, _ = replay(suite)
    assert rows(again) == rows(first)
    assert [t.outcome.name for t in again.trials] == ["FAILED", "FAILED", "ERRORED", "FAILED"]


def test_a_trial_that_broke_on_the_way_replays_up_to_there(tmp_path, scripted):
    call = ScriptedCall(tool="convert_time", arguments=CONVERT)
    behaviour = Behaviour(calls=(call, call), answer="x", tokens_in=30, tokens_out=3)
    agent = replace(scripted(behaviour), servers=("clock",))
    crashing = replace(SERVER, faults=(Fault(kind="server_crash", nth=2),))
    suite = replace(suite_for(tmp_path, system=agent, runs=1), servers={"clock": crashing})
    first, journal = replay(suite, "record")
    again, second = replay(suite)
    (trial,) = again.trials
    assert (trial.outcome, trial.tokens_in, trial.turns) == (Outcome.ERRORED, 20, 2)
    assert trial.error == 'server "clock" crashed, on purpose'
    assert rows(again) == rows(first)
    assert transcripts(second) == transcripts(journal)


def test_a_grader_that_was_broken_and_is_mended_grades_the_replay(tmp_path, scripted):
    broken = replace(TASK, expect=(Expectation(matcher="python", value="no_such:grader"),))
    first, _ = replay(suite_for(tmp_path, system=scripted(), task=broken, runs=1), "record")
    assert first.trials[0].outcome is Outcome.ERRORED
    mended = replace(TASK, expect=(Expectation(matcher="exact", value="4"),))
    again, _ = replay(suite_for(tmp_path, system=scripted(), task=mended, runs=1))
    assert again.trials[0].outcome is Outcome.PASSED


def test_the_judge_replays_while_its_rubric_stands(tmp_path, scripted):
    def judging(asked):
        return Reply(text='{"score": 0.9, "reason": "good"}')

    with WireServer(judging) as server:
        judge = Model(name="judge", base_url=server.url)

        def suite(rubric):
            expect = Expectation(
                matcher="judge", value=rubric, options={"model": judge, "repeats": 2}
            )
            task = Task(name="t", prompt="?", expect=(expect,))
            return replace(
                suite_for(tmp_path, system=scripted(), task=task, runs=2), judge=Judge(model=judge)
            )

        first, _ = replay(suite("Is it 4?"), "record")
        asked = len(server.asked)
        again, _ = replay(suite("Is it 4?"))
        assert (asked, len(server.asked)) == (4, 4)
    assert rows(again) == rows(first)
    with pytest.raises(CassetteError, match="the judge was asked something else"):
        replay(suite("Is it 5?"))


def test_an_interrupted_recording_goes_on_where_it_was(tmp_path, scripted):
    suite = suite_for(tmp_path, system=scripted(Behaviour(answer="ok")), runs=5)
    with open_cassettes(suite, "record", environment={}) as cassettes:
        cassettes.close = lambda: None  # the process dies: nothing is put in order
        with pytest.raises(OSError, match="disk full"):
            run_trials(suite, cassettes=cassettes, journal=_Full(7), concurrency=1)
    partial = tmp_path / "cassettes" / "agent.jsonl.partial"
    partial.write_bytes(partial.read_bytes() + b'{"kind": "mod')
    replay(suite, "record")
    assert not partial.exists()
    again, _ = replay(suite)
    assert len(again.trials) == 5


class _Full(MemoryJournal):
    def __init__(self, entries):
        super().__init__()
        self.left = entries

    def write(self, entries):
        for entry in entries:
            if self.left == 0:
                raise OSError("disk full")
            self.left -= 1
            super().write([entry])


def test_faults_are_recorded_and_replayed(tmp_path, scripted):
    calls = (ScriptedCall(tool="convert_time", arguments=CONVERT),)
    agent = replace(scripted(Behaviour(calls=calls, answer="{result}")), servers=("clock",))
    broken = replace(SERVER, faults=(Fault(kind="tool_error", nth=1, message="down"),))
    suite = replace(suite_for(tmp_path, system=agent, runs=2), servers={"clock": broken})
    first, journal = replay(suite, "record")
    again, second = replay(suite)
    assert transcripts(second) == transcripts(journal)
    assert "fault:tool_error" in again.trials[0].tags
    assert rows(again) == rows(first)


def _with_task(suite, **changed):
    (pairing,) = suite.pairings
    return replace(suite, pairings=(replace(pairing, task=replace(pairing.task, **changed)),))


def _with_model(suite, **changed):
    (pairing,) = suite.pairings
    system = replace(pairing.system, model=replace(pairing.system.model, **changed))
    return replace(suite, pairings=(replace(pairing, system=system),))
