"""Who may write to a run."""

import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from passhat.errors import HistoryError, LostRun
from passhat.history import History, RunJournal
from passhat.history.leases import LEASE_SECONDS, find_owner, hold, this_process
from passhat.history.runs import now
from passhat.records.ledger import Ticket

TICKET = Ticket(number=0, system="agent", task="refund", trial=0)

HOLDER = """
import sys
from passhat.history import History
from passhat.history.leases import hold

history = History.open(sys.argv[1])
with hold(history, history.find_run("latest")):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def history(address):
    with History.open(address) as store:
        yield store


@pytest.fixture
def holder(history, address):
    """Another process that holds the newest run until it is killed."""
    history.start_run("suite")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def expire(history):
    history.database.execute("UPDATE sessions SET lease = 0")


def test_a_run_that_a_living_process_holds_is_refused_with_who_holds_it(history, holder):
    run = history.find_run("latest")
    told = f"run {run.key} is still running: process {holder.pid} on .* last seen 0 s ago"
    with pytest.raises(HistoryError, match=told), hold(history, run):
        pass


def test_a_run_says_who_has_it_and_that_it_stopped_once_its_process_is_dead(history, holder):
    run = history.find_run("latest")
    assert (run.status, run.owner) == ("running", f"process {holder.pid} on {platform.node()}")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    (run,) = history.runs()
    assert (run.status, run.owner) == ("stopped", None)


def test_a_run_of_which_nobody_is_known_stopped_when_it_is_older_than_a_lease(history):
    fresh = history.start_run("suite")
    old = history.start_run("suite", started=now(seconds_ago=2 * LEASE_SECONDS))
    assert (fresh.status, old.status) == ("running", "stopped")


def test_the_run_of_a_process_that_was_killed_is_taken_over_at_once(history, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    run = history.find_run("latest")
    with hold(history, run) as lease:
        assert find_owner(history, run).id == lease.session


def test_the_run_of_a_process_that_ended_in_good_order_is_free(history, holder):
    holder.communicate("")
    assert find_owner(history, history.find_run("latest")) is None


def test_a_process_that_comes_back_after_its_lease_cannot_write(history, address):
    run = history.start_run("suite")
    with hold(history, run) as late, History.open(address) as other:
        journal = RunJournal(history, run, late)
        journal.write([TICKET])
        expire(other)
        with hold(other, run):
            with pytest.raises(LostRun, match=f"run {run.key} was taken over"):
                journal.write([replace(TICKET, number=1)])
            with pytest.raises(LostRun, match="taken over"):
                journal.asked_again()
        assert [ticket.number for ticket in journal.launched()] == [0]


def test_a_lease_that_ran_out_is_renewed_where_nobody_took_the_run(history, address):
    run = history.start_run("suite")
    with hold(history, run) as lease:
        expire(history)
        RunJournal(history, run, lease).write([TICKET])
        assert find_owner(history, run).left == pytest.approx(LEASE_SECONDS, abs=5)


def test_a_pid_that_was_given_out_again_is_another_process():
    me = this_process()
    assert not me.is_dead()
    assert replace(me, born="1").is_dead()
    assert not replace(me, born="1", place="another machine").is_dead()


def test_a_process_that_ended_and_was_not_waited_for_is_dead():
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    seen = replace(this_process(), pid=child.pid, born=_born_of(child.pid))
    assert not seen.is_dead()
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert seen.is_dead()
    child.communicate()


def _born_of(pid):
    from passhat.history.leases import _born

    return _born(pid)
