"""Killing and freezing workers, drivers and PostgreSQL: what is lost, and what is paid twice.

Victims are chosen from the store, among the workers that hold trials, so that every kill hits work
under way. The model counts calls as they arrive. A trigger in the database counts every answer
that was journalled and is then replaced or removed, which is what paying for it again would do.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet import Fleet, Plan, fleet_environment, reading, rows_of
from bench.kill_storm import TOKENS, call_identity
from bench.ray_cluster import python_with_ray
from passhat.history import History
from passhat.runner.models.exchange import Reply
from passhat.testing import ReceivedRequest, WireServer
from passhat.testing.postgres import PostgresServer, postgres_server

STEPS = 3
CALL_DOLLARS = (TOKENS.tokens_in + TOKENS.tokens_out) / 1e6
SUITE = """
name: storm
seed: 11
concurrency: 10
systems:
  - name: paying
    model: m
    base_url: "{url}"
    prices: {{input: 1, output: 1}}
    max_tokens: 64
  - {{name: scripted, model: scripted, script: [{{answer: "done", weight: 3}}, {{answer: "no"}}]}}
defaults: {{expect: [{{contains: done}}]}}
tasks:
  - {{name: coin, prompt: "?", systems: [scripted]}}
"""
WATCH = """
CREATE TABLE watched (what TEXT);
CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN INSERT INTO watched VALUES (TG_OP); RETURN coalesce(NEW, OLD); END$$;
CREATE TRIGGER watch BEFORE UPDATE OR DELETE ON answers FOR EACH ROW
  WHEN (OLD.reply IS NOT NULL) EXECUTE FUNCTION watch()
"""
UNFINISHED = "SELECT 1 FROM runs WHERE status NOT IN ('finished', 'budget')"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStorm:
    """What came of a run whose processes were killed, frozen and cut off again and again.

    `billed` counts calls as the model saw them, `needed` the different ones among them, `reported`
    the calls that the report says were perhaps paid twice, `unsure` those of them that it says were
    perhaps never sent, `answered` those whose answers the store has. `overwritten` counts
    journalled answers that were replaced: paid again. `broken` counts drivers that ended by
    themselves.
    """

    happened: Counter[str]
    ray_kills: int
    broken: int
    trials: int
    kept: int
    counted_twice: int
    billed: int
    needed: int
    answered: int
    reported: int
    unsure: int
    overwritten: int
    max_cost: float | None
    same_report: bool | None
    seconds: float

    @property
    def paid_twice(self) -> int:
        """Calls that were asked again."""
        return self.billed - self.needed

    @property
    def cost(self) -> float:
        """Dollars that the model would send a bill for."""
        return self.billed * CALL_DOLLARS


def storm(postgres: PostgresServer, plan: Plan, *, compare: bool = True) -> WorkerStorm:
    """Lead a run through all of it, spread evenly over its trials, and count.

    With `compare`, the report is held against that of one process which runs in peace.
    """
    begun = time.monotonic()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(WireServer(answer_step, latency=plan.latency))
        store = postgres.new_database()
        (home / "suite.yml").write_text(suite_text(server.url, plan.tasks))
        _watch(store)
        environment = fleet_environment(stack, ray=plan.ray_workers > 0)
        fleet = stack.enter_context(Fleet(home, store, plan, environment))
        happened = _weather(fleet, postgres, plan)
        fleet.close()
        same = _same_report(home, store, server, plan) if compare else None
        return _count(fleet, server, happened, same, time.monotonic() - begun)


def suite_text(url: str, tasks: int) -> str:
    """A suite of conversations of several steps: each has answers to lose."""
    steps = ", ".join(f'{{name: s{n}, prompt: "step {n} of %d"}}' for n in range(STEPS))
    line = f"  - {{name: t%d, steps: [{steps}], systems: [paying]}}\n"
    return SUITE.format(url=url) + "".join(line % ((i,) * (STEPS + 1)) for i in range(tasks))


def answer_step(asked: ReceivedRequest) -> Reply:
    """The same answer to the same question, and sometimes a wrong one."""
    drawn = random.Random(repr(call_identity(asked))).random()
    return Reply(text="done" if drawn < 0.9 else "sorry", usage=TOKENS)


def _weather(fleet: Fleet, postgres: PostgresServer, plan: Plan) -> Counter[str]:
    """Every event at its share of the trials; what the run does not live to see is left out."""
    happened: Counter[str] = Counter()
    events = deque(plan.events)
    gap = plan.trials / (len(events) + 1)
    while events and not _is_over(fleet):
        fleet.thaw()
        if _finished(fleet.store) < (happened.total() + 1) * gap:
            time.sleep(0.1)
        elif _strike(events[0], fleet, postgres):
            happened[events.popleft()] += 1
        else:
            time.sleep(0.1)  # nobody is at work yet
    while not _is_over(fleet):
        fleet.thaw()
        time.sleep(0.2)
    return happened


def _is_over(fleet: Fleet) -> bool:
    """Whether the run has ended; a driver that died by itself is counted and started again."""
    if fleet.driver.poll() is None:
        return False
    if fleet.driver.returncode < 0 or rows_of(fleet.store, UNFINISHED):
        fleet.broken += 1
        fleet.resume()
        return False
    return True


def _strike(event: str, fleet: Fleet, postgres: PostgresServer) -> bool:
    """Make it happen; False if there is nobody to hit."""
    if event == "driver":
        fleet.kill_driver()
    elif event == "restart":
        if not fleet.has_driver():
            return False  # a driver that starts meanwhile finds no store, and rightly ends
        postgres.restart(how="immediate")
    elif (pid := fleet.victim()) is None:
        return False
    elif event == "kill":
        fleet.kill_worker(pid)
    else:
        fleet.freeze(pid)
    return True


def _watch(store: str) -> None:
    with History.open(store) as history:
        for statement in re.split(r";\n(?=CREATE)", WATCH):
            history.database.execute(statement.strip())


def _finished(store: str) -> int:
    return int(rows_of(store, "SELECT count(*) FROM trials")[0][0])


def _same_report(home: Path, store: str, server: WireServer, plan: Plan) -> bool:
    """Whether the report has the bytes of a local run's, but for what clocks measured."""
    asked, server.asked = server.asked, []
    server.latency = 0.0
    local = ("run", "suite.yml", "--runs", str(plan.runs), "--store", "local.db", "-q")
    subprocess.run(
        [sys.executable, "-m", "passhat", *local], cwd=home, stdout=subprocess.DEVNULL, check=False
    )
    server.asked = asked
    return _report(store) == _report(str(home / "local.db"))


def _report(store: str) -> str:
    from dataclasses import replace

    from passhat.analysis.reports.measure import measure
    from passhat.reporters.rendering import render_json

    with reading(store) as history:
        trials = history.trials(history.find_run("latest"))
    timeless = {name: v for name, v in trials.features.items() if name != "seconds"}
    return render_json(measure(replace(trials, features=timeless, started=None, sources=())))


def _count(
    fleet: Fleet,
    server: WireServer,
    happened: Counter[str],
    same: bool | None,
    seconds: float,
) -> WorkerStorm:
    calls = Counter(call_identity(asked) for asked in server.asked)
    with reading(fleet.store) as history:
        run = history.find_run("latest")
        kept = [(trial.system, trial.task, trial.trial) for trial in history.trials(run)]
    answered = (
        "SELECT count(*) FROM answers a JOIN names s ON s.id = a.system "
        "WHERE a.reply IS NOT NULL AND s.text = 'paying'"
    )
    return WorkerStorm(
        happened=happened,
        ray_kills=fleet.ray_kills,
        broken=fleet.broken,
        trials=fleet.plan.trials,
        kept=len(set(kept)),
        counted_twice=len(kept) - len(set(kept)),
        billed=calls.total(),
        needed=len(calls),
        answered=int(rows_of(fleet.store, answered)[0][0]),
        reported=_reported(fleet.home / "report.json", r"perhaps paid twice: ([\d,]+) call"),
        unsure=_reported(fleet.home / "report.json", r"([\d,]+) of them perhaps never sent"),
        overwritten=int(rows_of(fleet.store, "SELECT count(*) FROM watched")[0][0]),
        max_cost=fleet.plan.max_cost,
        same_report=same,
        seconds=seconds,
    )


def _reported(file: Path, pattern: str) -> int:
    """A number in a sentence of the report, as a user reads it."""
    found = re.search(pattern, json.dumps(json.loads(file.read_text())))
    return int(found[1].replace(",", "")) if found else 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--trials", type=int, default=5_000)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--ray", action=argparse.BooleanOptionalAction, default=True)
    chosen = parser.parse_args([] if __name__ != "__main__" else None)
    common: dict[str, Any] = {
        "latency": chosen.latency,
        "ray_workers": 4 if chosen.ray and python_with_ray() else 0,
    }
    runs = chosen.trials // 50
    # A lost call counts with the most that it may cost, some twenty times of what it does.
    enough = 6 * 50 * runs * STEPS * CALL_DOLLARS
    small = max(1, chosen.kills // 10)
    plans = (
        Plan(
            tasks=50, runs=runs, worker_kills=chosen.kills, driver_kills=5, freezes=8, restarts=1,
            max_cost=enough, **common,
        ),
        Plan(
            tasks=50, runs=runs // 5, worker_kills=small, driver_kills=1, freezes=1,
            max_cost=enough / 100, **common,
        ),
    )  # fmt: skip
    print("## Workers, drivers and PostgreSQL killed while they work\n")
    print(
        "| workers killed (of Ray) | drivers | frozen | PostgreSQL | trials | counted twice | "
        "calls billed | asked again | the report says | journalled and paid again | "
        "bill / budget | report as of a local run |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    with postgres_server() as postgres:
        for plan in plans:
            print(_line(storm(postgres, plan, compare=plan is plans[0])), flush=True)


def _line(result: WorkerStorm) -> str:
    happened = result.happened
    budget = "" if result.max_cost is None else f" / ${result.max_cost:.4f}"
    same = {True: "same bytes", False: "DIFFERS", None: "stopped by its budget"}
    cells = (
        f"{happened['kill']} ({result.ray_kills})", happened["driver"], happened["freeze"],
        f"{happened['restart']} crash", f"{result.kept:,} of {result.trials:,}",
        result.counted_twice, f"{result.billed:,}", result.paid_twice,
        f"{result.reported} ({result.unsure} perhaps never sent)", result.overwritten,
        f"${result.cost:.4f}{budget}", same[result.same_report],
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
