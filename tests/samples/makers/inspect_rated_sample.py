"""An Inspect log in which people edited three scores and added one.

python inspect_rated_sample.py ../rated/inspect.eval
"""

import sys
import tempfile
from datetime import UTC, datetime

import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import ScoreEdit, match

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
outputs = [ModelOutput.from_content("mockllm/model", "yes" if i % 3 else "no") for i in range(12)]
for output in outputs:  # else Inspect counts tokens with a table from the network
    output.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)
task = inspect_ai.Task(
    name="asked",
    dataset=[Sample(id=f"q{i}", input=f"question {i}", target="yes") for i in range(4)],
    scorer=match(),
)
model = get_model("mockllm/model", custom_outputs=outputs)
with tempfile.TemporaryDirectory() as folder:
    written = inspect_ai.eval(
        task, model=model, epochs=3, log_dir=folder, display="none", max_connections=1
    )[0]
    log = read_eval_log(written.location)
ann = ProvenanceData(timestamp=NOW, author="ann", reason="the judge misread")
ben = ProvenanceData(timestamp=NOW, author="ben", reason="fine")
for sample, epoch, value in (("q0", 1, "C"), ("q1", 2, "I"), ("q2", 3, "C")):
    edit = ScoreEdit(value=value, explanation="read it", provenance=ann)
    edit_score(log, sample, "match", edit, epoch=epoch)
edit_score(log, "q3", "human", ScoreEdit(value="C", provenance=ben), epoch=1)
write_eval_log(log, sys.argv[1])
