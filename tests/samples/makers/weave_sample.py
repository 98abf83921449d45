"""Run an evaluation of Weave against a server that keeps what it is sent, and write its calls.

WANDB_MODE=offline WEAVE_PARALLELISM=1 python weave_sample.py ../weave/calls.jsonl
"""

import asyncio
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import weave
from weave.trace.context import weave_client_context
from weave.trace.weave_client import WeaveClient


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:43]


class Keeper:
    """The few methods of a trace server that an evaluation needs."""

    remote_request_bytes_limit = 10**8
    get_call_processor = get_feedback_processor = staticmethod(lambda: None)

    def __init__(self):
        self.calls = {}

    def call_start(self, req):
        start = dict(req["start"])
        self.calls[start["id"]] = start
        return SimpleNamespace(id=start["id"], trace_id=start["trace_id"])

    def call_end(self, req):
        end = dict(req["end"])
        self.calls[end["id"]].update(end)
        return SimpleNamespace()

    def obj_create(self, req):
        return SimpleNamespace(digest=digest(req["obj"]["val"]), object_id=req["obj"]["object_id"])

    def table_create(self, req):
        rows = req["table"]["rows"]
        return SimpleNamespace(digest=digest(rows), row_digests=[digest(row) for row in rows])

    def file_create(self, req):
        return SimpleNamespace(digest=digest(str(req)))

    def feedback_create(self, req):
        return SimpleNamespace(id=digest(str(req)))


keeper = Keeper()
client = WeaveClient("team", "flaky", keeper, ensure_project_exists=False)
weave_client_context.set_weave_client_global(client)
asked: Counter[str] = Counter()


class Agent(weave.Model):
    @weave.op
    def predict(self, question: str) -> str:
        asked[question] += 1
        if question == "c" and asked[question] == 2:
            raise RuntimeError("the agent broke")
        return {"a": "1", "b": "2" if asked[question] % 2 else "0", "c": "0"}[question]


@weave.op
def correct(answer: str, output: str) -> dict:
    return {"correct": output == answer}


@weave.op
def brief(output: str) -> bool:
    return len(output) < 10


rows = [{"id": q, "question": q, "answer": a} for q, a in zip("abc", "123", strict=True)]
evaluation = weave.Evaluation(name="flaky", dataset=rows, scorers=[correct, brief], trials=2)
asyncio.run(evaluation.evaluate(Agent()))
client.flush()
with Path(sys.argv[1]).open("w") as out:
    for call in keeper.calls.values():
        call["attributes"].pop("weave", None)  # the machine that it ran on
        if call["exception"]:
            said = json.loads(call["exception"])
            call["exception"] = json.dumps({key: said[key] for key in ("type", "message")})
        out.write(json.dumps(call, default=str) + "\n")
