"""Evaluate four answers with MLflow and keep its table.

python mlflow_sample.py ../mlflow
"""

import sys

import mlflow
import pandas as pd
from mlflow.metrics import MetricValue, make_metric


def right(predictions, targets, metrics=None):
    pairs = zip(predictions, targets, strict=True)
    return MetricValue(scores=[float(given == wanted) for given, wanted in pairs])


mlflow.set_tracking_uri("sqlite:///flaky.db")
rows = [("a", "1", "1"), ("a", "1", "1"), ("b", "2", "2"), ("b", "2", "0")]
frame = pd.DataFrame(rows, columns=["inputs", "ground_truth", "outputs"])
metric = make_metric(eval_fn=right, greater_is_better=True, name="right")
with mlflow.start_run() as run:
    mlflow.models.evaluate(
        data=frame,
        predictions="outputs",
        targets="ground_truth",
        evaluators="default",
        extra_metrics=[metric],
    )
    mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="eval_results_table.json", dst_path=sys.argv[1]
    )
