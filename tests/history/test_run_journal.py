import threading
from dataclasses import replace

import pytest

from passhat.history import History, RunJournal
from passhat.history.leases import hold
from passhat.records import Outcome, Trial
from passhat.records.ledger import (
    AcceptedCall,
    Amount,
    Answer,
    CallIntent,
    CallKey,
    Finished,
    LostAnswer,
    Refused,
    Ticket,
    UnansweredCalls,
)
from passhat.runner.journal import MemoryJournal


def ticket(number: int, *, trial: int, stamp: str | None = None) -> Ticket:
    return Ticket(number=number, system="agent", task="refund", trial=trial, stamp=stamp)


def answer(trial: int, step: int) -> Answer:
    return Answer(call=CallKey("agent", "refund", trial, step), request="ab", reply=b'{"n": 1}')


def asked(trial: int, step: int, *, cost: float | None) -> CallIntent:
    return CallIntent(
        call=CallKey("agent", "refund", trial, step), request="x", most=Amount(cost=cost)
    )


def refused(trial: int, step: int) -> Refused:
    return Refused(call=CallKey("agent", "refund", trial, step))


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
    asked(1, 1, cost=0.25),
    asked(1, 2, cost=None),
    refused(1, 2),
    asked(1, 2, cost=None),
]


@pytest.fixture
def journal(address):
    with History.open(address) as history:
        yield RunJournal(history, history.start_run("suite"))


def test_the_store_tells_the_same_story_as_a_journal_in_memory(journal):
    memory = MemoryJournal()
    for entry in ENTRIES:
        memory.write([entry])
        journal.write([entry])
        assert journal.launched() == memory.launched()
        assert journal.finished() == memory.finished()
        assert set(journal.answered()) == set(memory.answered())
        assert journal.calls() == memory.calls()


def test_calls_without_an_answer_are_counted_once_however_often_they_are_asked(journal):
    memory = MemoryJournal()
    for ledger in (memory, journal):
        ledger.write(ENTRIES)
        left = UnansweredCalls(calls=2, cost=0.25, unpriced=1)
        assert ledger.asked_again() == left
        assert ledger.asked_again() == left
        ledger.write([asked(1, 1, cost=0.25)])
        assert ledger.asked_again() == UnansweredCalls(calls=3, cost=0.5, unpriced=1)
        ledger.write([asked(1, 1, cost=0.25), answer(1, 1)])
        assert ledger.asked_again().calls == 3


def test_a_call_given_up_in_a_trial_that_finished_is_not_asked_again(journal):
    journal.write([ticket(0, trial=0), asked(0, 0, cost=1.0), finished(ticket(0, trial=0))])
    assert not journal.asked_again()


def test_only_calls_that_were_sent_count_when_their_process_is_gone(address):
    with History.open(address) as history:
        run = history.start_run("suite")
        with hold(history, run) as lease:
            first = RunJournal(history, run, lease)
            first.write([ticket(0, trial=0), *(asked(0, step, cost=0.5) for step in range(4))])
            for step in (0, 1, 2):
                first.mark_sent(("agent", "refund", 0, step))
            first.unmark_sent(("agent", "refund", 0, 1))
            first.write([answer(0, 2)])
            first.close()
        with hold(history, run) as lease:
            assert RunJournal(history, run, lease).asked_again() == UnansweredCalls(
                calls=1, cost=0.5
            )


def test_calls_of_a_process_on_another_machine_were_perhaps_never_sent(address):
    with History.open(address) as history:
        run = history.start_run("suite")
        with hold(history, run) as lease:
            RunJournal(history, run, lease).write([asked(0, 0, cost=0.5)])
        history.database.execute("UPDATE sessions SET place = 'elsewhere'")
        with hold(history, run) as lease:
            found = RunJournal(history, run, lease).asked_again()
    assert found == UnansweredCalls(calls=1, cost=0.5, unsure=1)


def test_marks_are_removed_with_the_last_call_that_is_under_way(tmp_path):
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("suite")
        with hold(history, run) as lease:
            journal = RunJournal(history, run, lease)
            journal.write([asked(0, 0, cost=0.5)])
            journal.mark_sent(("agent", "refund", 0, 0))
            assert list(tmp_path.glob("*-sent-*"))
            journal.write([answer(0, 0)])
            journal.close()
    assert not list(tmp_path.glob("*-sent-*"))


def test_calls_given_up_are_remembered_by_later_starts(journal):
    memory = MemoryJournal()
    lost = LostAnswer(call=CallKey("agent", "refund", 1, 0), most=Amount(cost=0.25))
    for ledger in (memory, journal):
        ledger.write([ticket(0, trial=0), asked(0, 0, cost=1.0), finished(ticket(0, trial=0))])
        ledger.write([asked(1, 0, cost=0.25), lost, replace(answer(1, 0), recovered=True)])
        assert not ledger.asked_again()
        assert ledger.given_up() == UnansweredCalls(calls=2, cost=1.25)
        assert ledger.given_up() == UnansweredCalls(calls=2, cost=1.25)
        assert ledger.recovered() == 1


def test_an_intent_that_is_withdrawn_in_the_same_batch_leaves_nothing(journal):
    journal.write([asked(0, 0, cost=1.0), refused(0, 0)])
    assert not journal.asked_again()


def test_an_answer_in_preparation_is_remembered_until_it_is_there(journal):
    accepted = AcceptedCall(call=CallKey("agent", "refund", 0, 0), remote="resp_1")
    memory = MemoryJournal()
    for ledger in (memory, journal):
        ledger.write([asked(0, 0, cost=1.0)])
        ledger.write([accepted])
        assert ledger.asked_again().calls == 1
        assert ledger.remotes() == {("agent", "refund", 0, 0): "resp_1"}
        assert ledger.asked_again().calls == 1
        ledger.write([asked(0, 0, cost=1.0)])
        ledger.write([answer(0, 0)])
        assert not ledger.remotes()


def test_a_trial_finished_again_takes_the_place_of_the_first(journal):
    journal.write([ticket(0, trial=0), finished(ticket(0, trial=0), Outcome.ERRORED)])
    journal.write([finished(ticket(0, trial=0), Outcome.PASSED)])
    assert [entry.trial.outcome for entry in journal.finished()] == [Outcome.PASSED]


def test_another_process_sees_what_was_written_and_who_said_it(journal, address):
    journal.write([ticket(0, trial=0), finished(ticket(0, trial=0), transcript="said")])
    with History.open(address, read_only=True) as other:
        run = other.find_run(journal.run.key)
        assert len(RunJournal(other, run).finished()) == 1
        assert other.transcript(run, "agent", "refund", 0) == "said"


def test_finished_trials_are_read_whole_while_others_finish_more(address):
    with History.open(address) as history:
        run = history.start_run("suite")

    def write() -> None:
        with History.open(address) as mine:
            journal = RunJournal(mine, run)
            for number in range(120):
                order = ticket(number, trial=number)
                journal.write([order, finished(order)])

    writer = threading.Thread(target=write)
    writer.start()
    with History.open(address, read_only=True) as history:
        seen = 0
        while writer.is_alive() or seen < 120:
            found = RunJournal(history, run).finished()
            assert [(f.ticket.number, f.trial.trial) for f in found] == [
                (number, number) for number in range(len(found))
            ]
            assert len(found) >= seen
            seen = len(found)
    writer.join()
