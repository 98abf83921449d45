import pytest

from passhat.history import History, RunJournal
from passhat.records import Outcome, Trial
from passhat.records.ledger import Answer, Finished, Ticket
from passhat.runner.journal import MemoryJournal


def ticket(number: int, *, trial: int, stamp: str | None = None) -> Ticket:
    return Ticket(number=number, system="agent", task="refund", trial=trial, stamp=stamp)


def answer(trial: int, step: int) -> Answer:
    return Answer(
        system="agent", task="refund", trial=trial, step=step, request="ab", reply=b'{"n": 1}'
    )


def finished(order: Ticket, outcome: Outcome = Outcome.PASSED, **more: str) -> Finished:
    trial = Trial(system=order.system, task=order.task, trial=order.trial, outcome=outcome)
    return Finished(ticket=order, trial=trial, **more)


ENTRIES = [
    ticket(0, trial=0, stamp='{"bet": 0.5}'),
    ticket(1, trial=1),
    answer(1, 0),
    ticket(2, trial=2),
    answer(0, 0),
    answer(0, 1),
    finished(ticket(2, trial=2), Outcome.FAILED),
    finished(ticket(0, trial=0, stamp='{"bet": 0.5}')),
]


@pytest.fixture
def journal(tmp_path):
    with History.open(tmp_path / "history.db") as history:
        yield RunJournal(history, history.start_run("suite"))


def test_the_store_tells_the_same_story_as_a_journal_in_memory(journal):
    memory = MemoryJournal()
    for entry in ENTRIES:
        memory.write([entry])
        journal.write([entry])
        assert journal.launched() == memory.launched()
        assert journal.finished() == memory.finished()
        assert set(journal.answered()) == set(memory.answered())


def test_a_trial_finished_again_takes_the_place_of_the_first(journal):
    journal.write([ticket(0, trial=0), finished(ticket(0, trial=0), Outcome.ERRORED)])
    journal.write([finished(ticket(0, trial=0), Outcome.PASSED)])
    assert [entry.trial.outcome for entry in journal.finished()] == [Outcome.PASSED]


def test_another_process_sees_what_was_written_and_who_said_it(journal):
    journal.write([ticket(0, trial=0), finished(ticket(0, trial=0), transcript="said")])
    with History.open(journal.history.name, read_only=True) as other:
        run = other.find_run(journal.run.key)
        assert len(RunJournal(other, run).finished()) == 1
        assert other.transcript(run, "agent", "refund", 0) == "said"
