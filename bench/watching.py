"""`passhat watch`: how many trials one process follows in a second, from file to detector."""

from __future__ import annotations

import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from bench.calibrate.watching import TASKS, stream
from passhat.journeys.watching import Follower, Watch, WatchState, save_state
from passhat.records.columns import ColumnMap

POLL = 5_000
"""Trials that come between two looks: five seconds of 1,000 a second."""

ASKED = 1_000


def main() -> None:
    at, passed, task = stream(np.random.default_rng(1), "both")
    lines = [
        json.dumps({
            "task": TASKS[which], "passed": ok,
            "timestamp": datetime.fromtimestamp(moment, UTC).isoformat(),
        })
        for moment, ok, which in zip(at.tolist(), passed.tolist(), task.tolist(), strict=True)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.jsonl"
        known = WatchState(watch=Watch(), follower=Follower(source=str(file)))
        began = time.process_time()
        with file.open("a") as growing:
            for start in range(0, len(lines), POLL):
                growing.write("\n".join(lines[start : start + POLL]) + "\n")
                growing.flush()
                for trials in known.follower.poll(ColumnMap()):
                    known.watch.observe(trials)
                save_state(known, Path(folder) / "state.json")
        seconds = time.process_time() - began
    rate = len(lines) / seconds
    print("## Watch\n")
    print(f"A JSONL file that grows by {POLL:,} trials between two looks; read, judged by six")
    print("detectors, and the state written each time.\n")
    print("| trials | a second of one processor | of the 1,000 a second asked for |")
    print("|---|---|---|")
    print(f"| {len(lines):,} | {rate:,.0f} | {rate / ASKED:.0f}x |")


if __name__ == "__main__":
    main()
