"""What a worker may do in the store, and what it may no longer do."""

import pytest

from passhat.errors import LostRun
from passhat.history import History
from passhat.history.leases import hold
from passhat.history.run_board import RunBoard
from passhat.history.worker_session import WorkerSession, reap
from passhat.records import Budget, Outcome, Trial
from passhat.records.ledger import Amount, Answer, CallIntent, Finished, Refused, Ticket


@pytest.fixture
def history(new_database):
    with History.open(new_database()) as store:
        yield store


@pytest.fixture
def board(history):
    run = history.start_run("suite")
    with hold(history, run) as lease:
        board = RunBoard(history, run, lease)
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
        system="agent", task="refund", trial=trial, step=step, request="model:x",
        most=Amount(cost=cost, tokens=10),
    )  # fmt: skip


def answer(trial, step=0, cost=0.5):
    return Answer(
        system="agent", task="refund", trial=trial, step=step, request="model:x", reply=b"{}",
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
    reap(history.database, board.run)
    for attempt in (lambda: late.write([finished(0)]), lambda: late.claim(1), late.renew):
        with pytest.raises(LostRun, match="taken for dead"):
            attempt()
    assert board.finished_from(0, limit=9) == []
    assert board.state().ready == 6


def test_a_dead_worker_leaves_its_answers_and_its_open_calls_are_counted(history, board):
    dead = WorkerSession(history, board.run, hands=4)
    dead.claim(1)
    dead.write([asked(0, 0)])
    dead.write([answer(0, 0)])
    dead.write([asked(0, 1, cost=0.25)])
    expire(history, dead)
    reap(history.database, board.run)
    next_life = WorkerSession(history, board.run, hands=4)
    (claim,) = next_life.claim(1)
    assert {step: kept.reply for step, kept in claim.answers.items()} == {0: b"{}"}
    assert str(board.lost()) == "1 call, at most $0.2500"


def test_calls_are_granted_while_what_they_may_cost_fits_into_the_budget(history, board):
    board.open(Budget(max_cost=2.5))
    session = WorkerSession(history, board.run, hands=4)
    session.claim(6)
    assert list(session.write([asked(0), asked(1), asked(2)])) == [2]
    session.write([answer(0)])  # it cost half of what was held back for it
    assert list(session.write([asked(2), asked(3)])) == [1]
    session.write([Refused(system="agent", task="refund", trial=1, step=0)])
    assert list(session.write([asked(3)])) == []
    session.write([answer(2), answer(3)])
    assert board.state().stopped is None
    assert list(session.write([asked(4, cost=1.5)])) == [0]
    assert board.state().stopped == "budget"
    assert board.limit_reached() == "max_cost"
    assert session.claim(1) == []


def test_rates_are_shared_by_everybody(history, board):
    sessions = [WorkerSession(history, board.run, hands=4) for _ in range(2)]
    waits = [sessions[i % 2].draw("openai requests", 60.0, 1) for i in range(63)]
    # A full bucket holds a minute's worth; after that, one comes free every second.
    assert all(wait == 0 for wait in waits[:60])
    assert waits[61] == pytest.approx(1, abs=0.9)
    assert waits[62] == pytest.approx(2, abs=0.9)
