"""What passhat writes as OpenMetrics is read by the reference parser, label by label."""

import json

from passhat import Trials
from passhat.analysis.reports.measure import measure
from passhat.reporters import render

NAMES = [
    "plain",
    'q"uote',
    "back\\slash",
    "new\nline",
    "cr\rx",
    "tab\t",
    "\u2028",
    "{}=,",
    "é",
    "#",
]
PARSE = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families

families = text_string_to_metric_families(sys.stdin.buffer.read().decode())
print(json.dumps([[s.name, s.labels, s.value] for f in families for s in f.samples]))
"""


def test_every_sample_is_read_back_with_its_labels(tool, tmp_path):
    columns = {"task": [*NAMES, *NAMES], "system": ["a"] * (2 * len(NAMES))}
    report = measure(
        Trials.from_columns(columns, passed=[True] * len(NAMES) + [False] * len(NAMES))
    )
    text = render(report, "openmetrics")
    (tmp_path / "parse.py").write_text(PARSE)
    done = tool("bridges").run("python", "parse.py", cwd=tmp_path, given=text)
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)
    runs = {labels["task"]: value for name, labels, value in samples if name == "passhat_task_runs"}
    assert runs == {name.replace("\r", "\\r"): 2 for name in NAMES}
    rates = [value for name, labels, value in samples if labels.get("bound") == "value"]
    assert 0.5 in rates
