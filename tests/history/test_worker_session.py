"""What a worker may do in the store, and what it may no longer do."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from passhat.errors import LostRun
from passhat.history import History, RunJournal
from passhat.history.leases import hold, recover_dead_workers
from passhat.history.work_queue import RunQueue, WorkerSession
from passhat.records import Budget, Outcome, Trial
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


@pytest.fixture
def history(new_database):
    with History.open(new_database()) as store:
        yield store


@pytest.fixture
def board(history):
    run = history.start_run("suite")
    with hold(history, run) as lease:
        board = RunQueue(history, run, lease)
        board.open(Budget())
        board.publish([ticket(i) for i in range(6)])
        board.run = run
        yield board


def ticket(number):
    return Ticket(number=number, system="agent", task="refund", trial=number)


def finished(number):
    trial = Trial(
        system="agent", task="refund", trial=number, outcome=Outcome.PASSED, tools=("a\0b",),
        family="f", weight=2.0, cost=0.1,
    )  # fmt: skip
    return Finished(ticket=ticket(number), trial=trial, transcript="said")


def asked(trial, step=0, cost=1.0):
    return CallIntent(
        call=CallKey("agent", "refund", trial, step), request="model:x",
        most=Amount(cost=cost, tokens=10),
    )  # fmt: skip


def answer(trial, step=0, cost=0.5):
    return Answer(
        call=CallKey("agent", "refund", trial, step), request="model:x", reply=b"{}",
        spent=Amount(cost=cost, tokens=7),
    )  # fmt: skip


def expire(history, session):
    history.database.execute("UPDATE sessions SET lease = 0 WHERE id = ?", (session.number,))


def test_no_ticket_is_claimed_twice_and_the_lowest_numbers_come_first(history, board):
    first = WorkerSession(history, board.run, hands=4)
    one = [claim.ticket.number for claim in first.claim(4)]
    two = [claim.ticket.number for claim in first.claim(4)]
    assert (one, two) == ([0, 1, 2, 3], [4, 5])
    assert first.claim(4) == []


def test_what_a_worker_finished_comes_back_in_the_order_of_tickets(history, board):
    session = WorkerSession(history, board.run, hands=4)
    session.claim(3)
    session.write([finished(2), finished(0)])
    assert [number for number, _ in board.finished_from(0, limit=9)] == [0, 2]
    kept = board.finished_from(0, limit=1)[0][1]
    assert (kept.tools, kept.weight, kept.cost) == (("a\ufffdb",), 2.0, 0.1)
    assert history.transcript(board.run, "agent", "refund", 2) == "said"
    assert (board.state().ready, board.state().leased) == (3, 1)


def test_a_worker_taken_for_dead_can_neither_write_nor_claim(history, board):
    late = WorkerSession(history, board.run, hands=4)
    late.claim(1)
    expire(history, late)
    recover_dead_workers(history.database, board.run)
    for attempt in (lambda: late.write([finished(0)]), lambda: late.claim(1), late.renew):
        with pytest.raises(LostRun, match="the lease of this worker ran out"):
            attempt()
    assert board.finished_from(0, limit=9) == []
    assert board.state().ready == 6


def test_a_dead_worker_leaves_its_answers_and_its_open_calls_are_counted(history, board):
    dead = WorkerSession(history, board.run, hands=4)
    dead.claim(1)
    dead.write([asked(0, 0)])
    dead.write([answer(0, 0)])
    dead.write([asked(0, 1, cost=0.25)])
    dead.mark_sent(("agent", "refund", 0, 1))
    expire(history, dead)
    recover_dead_workers(history.database, board.run)
    next_life = WorkerSession(history, board.run, hands=4)
    (claim,) = next_life.claim(1)
    assert {step: kept.reply for step, kept in claim.answers.items()} == {0: b"{}"}
    assert str(board.lost()) == "1 call, at most $0.2500"


def test_a_call_that_a_dead_worker_had_not_sent_is_not_counted_and_frees_its_reservation(
    history, board
):
    board.open(Budget(max_cost=2.0))
    dead = WorkerSession(history, board.run, hands=4)
    dead.claim(2)
    dead.write([asked(0), asked(1)])
    dead.mark_sent(("agent", "refund", 1, 0))
    expire(history, dead)
    recover_dead_workers(history.database, board.run)
    assert board.lost() == UnansweredCalls(calls=1, cost=1.0)
    next_life = WorkerSession(history, board.run, hands=4)
    next_life.claim(2)
    assert list(next_life.write([asked(0), asked(1)])) == [1]


def test_of_a_worker_on_another_machine_nobody_knows_what_it_had_sent(history, board):
    dead = WorkerSession(history, board.run, hands=4)
    dead.claim(1)
    dead.write([asked(0)])
    history.database.execute("UPDATE sessions SET place = 'elsewhere' WHERE id = ?", (dead.number,))
    expire(history, dead)
    recover_dead_workers(history.database, board.run)
    assert str(board.lost()) == "1 call, at most $1.0000 (1 of them perhaps never sent)"


def test_a_worker_that_froze_may_send_its_other_calls_later(history, board):
    frozen = WorkerSession(history, board.run, hands=4)
    frozen.claim(2)
    frozen.write([asked(0), asked(1)])
    frozen.mark_sent(("agent", "refund", 0, 0))
    with subprocess.Popen(["sleep", "60"]) as alive:
        born = Path(f"/proc/{alive.pid}/stat").read_text().rpartition(")")[2].split()[19]
        history.database.execute(
            "UPDATE sessions SET pid = ?, born = ? WHERE id = ?", (alive.pid, born, frozen.number)
        )
        expire(history, frozen)
        recover_dead_workers(history.database, board.run)
        alive.kill()
    assert board.lost() == UnansweredCalls(calls=2, cost=2.0, unsure=1)


def test_answers_lost_on_their_way_and_answers_found_are_in_the_account(history, board):
    board.open(Budget(max_cost=2.5))
    session = WorkerSession(history, board.run, hands=4)
    session.claim(2)
    session.write([asked(0)])
    most = Amount(cost=1.0, tokens=10)
    session.write([LostAnswer(call=CallKey("agent", "refund", 0, 0), most=most)])
    session.write([replace(answer(0), recovered=True)])
    journal = RunJournal(history, board.run)
    assert (journal.recovered(), journal.given_up()) == (1, UnansweredCalls(calls=1, cost=1.0))
    # Half a dollar was spent and one perhaps: another dollar fits, two do not.
    assert list(session.write([asked(1)])) == []
    assert list(session.write([asked(1, 1)])) == [0]


def test_an_answer_in_preparation_is_handed_to_the_next_worker(history, board):
    dead = WorkerSession(history, board.run, hands=4)
    dead.claim(1)
    dead.write([asked(0)])
    dead.mark_sent(("agent", "refund", 0, 0))
    dead.write([AcceptedCall(call=CallKey("agent", "refund", 0, 0), remote="resp_1")])
    expire(history, dead)
    next_life = WorkerSession(history, board.run, hands=4)
    (claim,) = next_life.claim(1)
    assert (claim.cut_short, claim.remotes, claim.answers) == (True, {0: "resp_1"}, {})
    assert board.lost().calls == 1
    next_life.write([asked(0)])
    next_life.write([answer(0)])
    next_life.close()
    assert board.lost().calls == 1


def test_an_intent_and_its_withdrawal_in_one_batch_leave_nothing(history, board):
    session = WorkerSession(history, board.run, hands=4)
    session.claim(1)
    refused = Refused(call=CallKey("agent", "refund", 0, 0))
    session.write([asked(0), refused])
    session.write([asked(0), refused, asked(0)])
    session.mark_sent(("agent", "refund", 0, 0))
    session.close()
    assert board.lost().calls == 1


def test_attempts_of_agents_spend_what_their_trials_report(history, board):
    board.open(Budget(max_cost=1.25))
    session = WorkerSession(history, board.run, hands=4)
    session.claim(3)

    def attempt(trial):
        return replace(asked(trial), request="agent:x")

    assert list(session.write([attempt(0)])) == []
    session.write([finished(0)])  # ten cents
    assert list(session.write([attempt(1), attempt(2)])) == [1]
    session.mark_sent(("agent", "refund", 1, 0))
    session.close()
    assert board.lost() == UnansweredCalls(calls=1, cost=1.0)


def test_calls_are_granted_while_what_they_may_cost_fits_into_the_budget(history, board):
    board.open(Budget(max_cost=2.5))
    session = WorkerSession(history, board.run, hands=4)
    session.claim(6)
    assert list(session.write([asked(0), asked(1), asked(2)])) == [2]
    session.write([answer(0)])  # it cost half of what was held back for it
    assert list(session.write([asked(2), asked(3)])) == [1]
    session.write([Refused(call=CallKey("agent", "refund", 1, 0))])
    assert list(session.write([asked(3)])) == []
    session.write([answer(2), answer(3)])
    assert board.state().stopped is None
    assert list(session.write([asked(4, cost=1.5)])) == [0]
    assert board.state().stopped == "budget"
    assert board.limit_reached() == "max_cost"
    assert session.claim(1) == []


def test_rates_are_shared_by_everybody(history, board):
    sessions = [WorkerSession(history, board.run, hands=4) for _ in range(2)]
    waits = [sessions[i % 2].draw("openai requests", 2.0, 1) for i in range(5)]
    # A full bucket holds a minute's worth; after that, one comes free every 30 seconds, some of
    # which may have gone by on a busy machine.
    assert waits[:2] == [0, 0]
    assert waits[3] == pytest.approx(30, abs=29)
    assert waits[4] - waits[3] == pytest.approx(30, abs=29)
