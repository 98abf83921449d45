"""Write two tables of an Inspect log: one with its system prompts, one with two verdicts.

python inspect_tables_sample.py ..
"""

import sys
from pathlib import Path

import inspect_ai
from inspect_ai.analysis import SampleColumn, samples_df
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import exact, includes
from inspect_ai.solver import generate, system_message

folder = Path(sys.argv[1])
answers = ["Paris", "Rome", "It is Paris.", "Oslo", "Oslo", "Rome", "Paris", "It is Rome."]
outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in answers]
for output in outputs:  # else Inspect counts tokens with a table from the network
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
task = inspect_ai.Task(
    dataset=[
        Sample(id="france", input="Its capital?", target="Paris"),
        Sample(id="italy", input="Its capital?", target="Rome"),
    ],
    solver=[system_message("You are a helpful assistant. Answer in one word."), generate()],
    scorer=[includes(), exact()],
    epochs=4,
)
log = eval(
    task,
    model=get_model("mockllm/model", custom_outputs=outputs),
    display="none",
    max_connections=1,
)[0]
common = [SampleColumn("task_id", path="id"), SampleColumn("trial", path="epoch")]
prompt = SampleColumn("system", path="messages[0].content", full=True)
verdicts = [
    SampleColumn("passed", path=lambda sample: sample.scores["includes"].value, full=True),
    SampleColumn("correct", path=lambda sample: sample.scores["exact"].value, full=True),
]
kept = [column.name for column in common]
tables = {
    "inspect_dataframe/prompts.csv": [prompt, verdicts[0]],
    "refused/two_verdicts.csv": verdicts,
}
for name, columns in tables.items():
    frame = samples_df(log.location, columns=common + columns)
    frame = frame[kept + [column.name for column in columns]]
    frame.to_csv(folder / name, index=False)
