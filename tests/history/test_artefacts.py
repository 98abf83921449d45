"""The files that are kept of trials: each content once, whole, and gone with its last run."""

import hashlib
import json

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import HistoryError, ReadError
from passhat.history import History, RunJournal
from passhat.history.artefacts import add_artefacts, list_artefacts, read_artefact
from passhat.history.leases import hold
from passhat.history.work_queue import RunQueue, WorkerSession
from passhat.journeys import Results, export_run, merge_shards, store_results
from passhat.records import Budget, Outcome, Trial
from passhat.records.ledger import Finished, Ticket

PICTURE = bytes(range(256)) * 40
SAME = {"changes.diff": b"--- a\n+++ b\n", "files/chart.png": PICTURE}


def finished(number, files):
    trial = Trial(system="agent", task="chart", trial=number, outcome=Outcome.PASSED)
    ticket = Ticket(number=number, system="agent", task="chart", trial=number)
    return Finished(ticket=ticket, trial=trial, transcript="said", artefacts=files)


def stored(history, *each):
    """A run with trials that left these files."""
    run = history.start_run("suite")
    journal = RunJournal(history, run)
    entries = [finished(number, files) for number, files in enumerate(each)]
    journal.write([entry.ticket for entry in entries])
    journal.write(entries)
    return history.finish_run(run)


def files_of(history, run, number=None):
    key = None if number is None else ("agent", "chart", number)
    return {
        (one.key[2], one.name): read_artefact(history.database, one)
        for one in list_artefacts(history.database, run, key)
    }


def contents(history):
    rows = history.database.execute("SELECT digest, size FROM contents").fetchall()
    return dict(rows)


def test_what_a_trial_left_is_there_byte_for_byte_and_equal_contents_once(address):
    with History.open(address) as history:
        run = stored(history, SAME, {**SAME, "odd\nname": b""}, {})
        assert files_of(history, run, 1) == {
            (1, name): content for name, content in {**SAME, "odd\nname": b""}.items()
        }
        assert files_of(history, run, 2) == {}
        assert len(files_of(history, run)) == 5
        digests = {hashlib.sha256(c).hexdigest(): len(c) for c in (*SAME.values(), b"")}
        assert contents(history) == digests
        assert [
            one.size for one in list_artefacts(history.database, run, ("agent", "chart", 0))
        ] == [len(content) for content in SAME.values()]


def test_a_content_goes_with_the_last_run_that_has_it(address):
    with History.open(address) as history:
        one, other = stored(history, SAME, {"own.log": b"mine"}), stored(history, SAME)
        history.delete(one)
        assert contents(history).keys() == {
            hashlib.sha256(content).hexdigest() for content in SAME.values()
        }
        assert files_of(history, other) == {(0, name): c for name, c in SAME.items()}
        history.delete(other)
        assert contents(history) == {}


def test_a_trial_that_is_run_again_has_the_files_of_its_last_time(address):
    with History.open(address) as history:
        run = history.start_run("suite")
        journal = RunJournal(history, run)
        journal.write([finished(0, SAME)])
        journal.write([finished(0, {"changes.diff": b"better"})])
        assert files_of(history, run) == {(0, "changes.diff"): b"better"}
        history.vacuum()
        assert len(contents(history)) == 1


DAMAGE = {
    "a content is missing": ("DELETE FROM contents WHERE size > 100", "chart.png of trial"),
    "a content was changed": (
        "UPDATE contents SET body = (SELECT body FROM contents WHERE size < 100)",
        "is not what was stored",
    ),
    "a content is no content": ("UPDATE contents SET body = 'x'", "is not what was stored"),
    "a name is missing": ("DELETE FROM artefacts WHERE trial = 1", "is not what was stored"),
    "a name leads elsewhere": (
        "UPDATE artefacts SET digest = (SELECT digest FROM contents WHERE size < 100)",
        "is not what was stored",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_verify_notices_every_file_that_is_not_what_was_kept(tmp_path, damage):
    statement, said = DAMAGE[damage]
    with History.open(tmp_path / "h.db") as history:
        whole, run = stored(history, {"log": b"x"}), stored(history, SAME, SAME)
        assert [error for _, error in history.verify_all()] == [None, None]
        history.database.execute("PRAGMA foreign_keys = 0")
        history.database.execute(f"{statement}")
        found = {one.key: error for one, error in history.verify_all()}
    assert said in str(found[run.key])
    assert whole.key in found


def test_reading_a_damaged_file_is_an_error_and_not_other_bytes(tmp_path):
    with History.open(tmp_path / "h.db") as history:
        run = stored(history, SAME)
        history.database.execute("UPDATE contents SET body = 'x'")
        with pytest.raises(HistoryError, match=r"damaged .*chart\.png"):
            read_artefact(history.database, list_artefacts(history.database, run)[1])


def test_a_worker_keeps_files_and_one_that_lost_its_lease_keeps_none(new_database):
    with History.open(new_database()) as history:
        run = history.start_run("suite")
        with hold(history, run) as lease:
            queue = RunQueue(history, run, lease)
            queue.open(Budget())
            queue.publish([finished(number, {}).ticket for number in range(3)])
            worker = WorkerSession(history, run, hands=2)
            worker.claim(3)
            worker.write([finished(0, SAME), finished(1, SAME)])
            worker.write([finished(1, {"changes.diff": b"again"})])
            assert files_of(history, run) == {
                **{(0, name): content for name, content in SAME.items()},
                (1, "changes.diff"): b"again",
            }
            history.database.execute("UPDATE sessions SET alive = 0 WHERE id = ?", (worker.number,))
            with pytest.raises(Exception, match="lease of this worker ran out"):
                worker.write([finished(2, {"late": b"late"})])
            assert files_of(history, run, 2) == {}
            assert len(contents(history)) == 3


def test_what_a_transaction_is_about_to_need_is_not_deleted_by_another(new_database):
    """A run is deleted while another keeps the same content: the content stays."""
    import threading

    address = new_database()
    with History.open(address) as history, History.open(address) as other:
        old = stored(history, SAME)
        run = other.start_run("suite")
        began = threading.Event()

        def delete():
            began.set()
            history.delete(old)

        with other.writing():
            other.insert_trials(run.id, [(0, finished(0, {}).trial)])
            add_artefacts(
                other.database,
                run.id,
                {("agent", "chart", 0): SAME},
                other.name_ids(["agent", "chart"]),
            )
            deleting = threading.Thread(target=delete)
            deleting.start()
            began.wait()
        deleting.join()
        assert files_of(other, run) == {(0, name): content for name, content in SAME.items()}
        assert [error for _, error in other.verify_all()] == [None]


ODD = {
    **SAME,
    "files/../../escape": b"no",
    "files/key.log": b"key sk-ant-api03-0123456789abcdef0123456789",
}
CLEANED = {**ODD, "files/key.log": b"key [redacted]"}


def test_files_come_back_from_an_exported_dataset_each_content_once(tmp_path):
    store, folder = tmp_path / "h.db", tmp_path / "dataset"
    with History.open(store) as history:
        run = stored(history, ODD, SAME, {"changes.diff": b"other"})
        stored(history, {"of another run": b"x"})
    export_run(run.key, folder, store=store, transcripts=True)
    export_run(run.key, folder, store=store, transcripts=True)  # again, in place of the first
    (file,) = folder.glob("_artefacts/suite=suite/run=*/part-00000.parquet")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(file).to_pylist()
    assert len(rows) == 7
    assert len([row for row in rows if row["content"] is not None]) == 5
    expected = {
        (number, name): content
        for number, files in enumerate((CLEANED, SAME, {"changes.diff": b"other"}))
        for name, content in files.items()
    }
    one_run = folder / "suite=suite" / f"run={run.key}"
    for number, place in enumerate((folder, one_run)):
        again = store_results(str(place), store=tmp_path / f"{number}.db")
        with History.open(tmp_path / f"{number}.db") as history:
            assert files_of(history, again.run) == expected
            assert [error for _, error in history.verify_all()] == [None]
            assert len(contents(history)) == 5


def test_of_runs_that_are_put_together_the_files_of_the_first_are_stored(tmp_path):
    store, folder, said = tmp_path / "h.db", tmp_path / "dataset", []
    with History.open(store) as history:
        for run in [stored(history, SAME), stored(history, {"other": b"x"})]:
            export_run(run.key, folder, store=store, transcripts=True)
    both = Results(paths=(str(folder),), duplicates="keep", on_note=said.append)
    again = store_results(both, store=store)
    with History.open(store) as history:
        assert len(list_artefacts(history.database, again.run)) in (1, 2)
    assert [note for note in said if "Only the artefacts of the first run" in note]


def test_a_damaged_dataset_is_refused_and_nothing_is_stored(tmp_path):
    store, folder = tmp_path / "h.db", tmp_path / "dataset"
    with History.open(store) as history:
        run = stored(history, SAME)
    export_run(run.key, folder, store=store, transcripts=True)
    (file,) = folder.glob("_artefacts/**/part-00000.parquet")
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file)
    wrong = table.set_column(6, "content", [[b"other"] * len(table)])
    pyarrow.parquet.write_table(wrong.cast(table.schema), file)
    with pytest.raises(ReadError, match="is not what was exported"):
        store_results(str(folder), store=tmp_path / "new.db")
    with History.open(tmp_path / "new.db") as history:
        assert (history.runs(), contents(history)) == ([], {})


def test_shards_that_are_put_together_keep_their_files(tmp_path, monkeypatch):
    monkeypatch.setattr("passhat.journeys.run_store._plan", lambda run: ())
    for number in (1, 2):
        with History.open(tmp_path / f"{number}.db") as history:
            run = history.start_run("suite", options={"shard": f"{number}/2"})
            RunJournal(history, run).write([finished(number, {**SAME, "own": b"%d" % number})])
            history.finish_run(run)
    merged = merge_shards([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "all.db")
    with History.open(tmp_path / "all.db") as history:
        found = files_of(history, merged.run)
        assert {key: c for key, c in found.items() if key[1] == "own"} == {
            (1, "own"): b"1", (2, "own"): b"2",
        }  # fmt: skip
        assert len(contents(history)) == 4
        assert [error for _, error in history.verify_all()] == [None]


def test_the_command_lists_files_and_writes_them_inside_the_folder_alone(tmp_path):
    store = tmp_path / "h.db"
    with History.open(store) as history:
        stored(history, ODD, SAME)

    def command(*words):
        return CliRunner().invoke(main, ["history", "artefacts", "latest", *words,
                                         "--store", str(store)])  # fmt: skip

    listed = command().output.splitlines()
    assert listed[0].startswith("6 files of 2 trials, ")
    assert [line.split() for line in listed[2:4]] == [
        ["trial", "bytes", "file"],
        ["agent,", "chart", "#1", "12", "changes.diff"],
    ]
    assert "agent, chart #2" in "".join(listed)
    (row,) = json.loads(command("--trial", "2", "--task", "chart", "--json").output)["files"][1:]
    assert row == {
        "agent": "agent", "task": "chart", "trial": 2, "name": "files/chart.png",
        "sha256": hashlib.sha256(PICTURE).hexdigest(), "size": len(PICTURE),
    }  # fmt: skip
    out = tmp_path / "sub" / "out"
    assert "wrote 6 files" in command("-o", str(out)).output
    assert (out / "agent" / "chart" / "1" / "files" / "chart.png").read_bytes() == PICTURE
    assert (out / "agent" / "chart" / "1" / "files" / "escape").read_bytes() == b"no"
    written = [path for path in tmp_path.rglob("*") if path.name == "escape"]
    assert [path.relative_to(out).parts[0] for path in written] == ["agent"]
    again = command("-o", str(out))
    assert again.exit_code == 2
    assert "new or an empty folder" in again.output
