"""Trials start as a rule asks for them, and an error in one ends them all."""

import asyncio

import pytest

from passhat.records import Ticket
from passhat.runner.schedule import Schedule


class PausingRule:
    """Gives out two tickets, then waits for an outage to pass."""

    pause_seconds = 60.0

    def __init__(self):
        self._tickets = [Ticket(number=n, system="agent", task="t", trial=n) for n in range(2)]

    def next(self, count):
        given, self._tickets = self._tickets[:count], self._tickets[count:]
        return given


def run_schedule(rule, work, seconds=10.0):
    async def go():
        schedule = Schedule(rule, work=work, launch=lambda ticket: None, concurrency=3)
        async with asyncio.timeout(seconds):
            await schedule.run()

    asyncio.run(go())


def test_an_error_in_the_moment_another_trial_ends_stops_workers_that_pause():
    """The end of one trial wakes the pausing worker in the very step that cancels it."""

    async def work(ticket):
        await asyncio.sleep(0.05)
        if ticket.number == 1:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run_schedule(PausingRule(), work)


def test_a_pause_that_ends_while_the_rule_is_asked_is_no_error():
    class JustRecovered:
        """Pauses when it is asked for the first time, and has recovered right after that."""

        paused = True

        @property
        def pause_seconds(self):
            return 0.01 if self.paused else 0.0

        def next(self, count):
            if not self.paused:
                return None
            self.paused = False
            return ()

    run_schedule(JustRecovered(), asyncio.sleep)
