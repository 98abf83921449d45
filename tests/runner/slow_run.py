"""A run that takes long, to be interrupted: prints what it was told, exits as the CLI would."""

import sys
import time
from pathlib import Path

from passhat.history import History, RunJournal
from passhat.records import Behaviour, CommandSystem, Model, ModelSystem, Pairing, Suite, Task
from passhat.runner import run_trials
from passhat.runner.schedule import RunFinished, StopRequested, TrialFinished, TrialStarted


def main(folder: Path, mode: str) -> int:
    quick = Model(name="scripted", script=(Behaviour(answer="4", seconds=0.02),))
    code = (
        "import os, subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); "
        f"open({str(folder / 'pids')!r}, 'a').write(f'{{os.getpid()}} {{child.pid}} '); "
        "time.sleep(300)"
    )
    stuck = CommandSystem(name="stuck", argv=(sys.executable, "-c", code), timeout=300)
    systems = [ModelSystem(name="quick", model=quick)] + ([stuck] if mode == "stuck" else [])
    task = Task(name="t", prompt="?")
    pairings = tuple(Pairing(system=s, task=task, runs=200, label="t") for s in systems)
    with History.open(folder / "history.db") as history:
        runs = history.runs()
        run = runs[0] if runs else history.start_run("suite")
        result = run_trials(
            Suite(name="suite", pairings=pairings),
            journal=RunJournal(history, run),
            on_event=Telling(slows_down=mode == "slow"),
            concurrency=4,
        )
    return 128 + result.signal if result.signal else 0


class Telling:
    """Prints each event; a slow run takes its time as soon as there is something to interrupt."""

    def __init__(self, *, slows_down: bool) -> None:
        self.slows_down = slows_down
        self.finished = 0

    def __call__(self, event: object) -> None:
        match event:
            case TrialStarted():
                text = f"started {event.ticket.number}"
            case TrialFinished():
                text = f"finished {event.ticket.number}"
                self.finished += 1
            case StopRequested():
                text = f"stopping {event.signal}"
                self.slows_down = False
            case RunFinished():
                text = f"over {event.ending} {event.done} {event.undone}"
            case _:
                return
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        if self.slows_down and self.finished >= 25:
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
