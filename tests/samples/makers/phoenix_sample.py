"""Run an experiment on a local Phoenix server (`phoenix serve`) and keep its two downloads.

python phoenix_sample.py http://127.0.0.1:6006 ..
"""

import sys
import urllib.request
from collections import Counter
from pathlib import Path

from phoenix.client import Client

url, folder = sys.argv[1], Path(sys.argv[2])
asked: Counter[str] = Counter()


def task(input):  # noqa: A002 # Phoenix goes by the name
    question = input["question"]
    asked[question] += 1
    if question == "c" and asked[question] > 1:
        raise RuntimeError("the agent broke")
    return {"a": "1", "b": "2" if asked[question] % 2 else "0", "c": "0"}[question]


def correct(output, expected) -> bool:
    return output == expected["answer"]


def length(output) -> float:
    return float(len(output or ""))


client = Client(base_url=url)
dataset = client.datasets.create_dataset(
    name="flaky",
    inputs=[{"question": name} for name in "abc"],
    outputs=[{"answer": answer} for answer in "123"],
)
done = client.experiments.run_experiment(
    dataset=dataset, task=task, evaluators=[correct, length], repetitions=2
)
for kind, home in (("json", "phoenix"), ("csv", "phoenix_csv")):
    with urllib.request.urlopen(f"{url}/v1/experiments/{done['experiment_id']}/{kind}") as answer:
        (folder / home / f"experiment.{kind}").write_bytes(answer.read())
