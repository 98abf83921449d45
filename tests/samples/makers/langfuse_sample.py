"""An answer of version 3 of Langfuse's scores API, written by the models of its SDK.

python langfuse_sample.py ../langfuse_v3/scores.json
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from langfuse.api.scores.types import get_scores_v3response as response
from langfuse.api.scores.types import score_subject_v3 as subjects
from langfuse.api.scores.types import score_v3 as scores

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def score(kind, number, name, value, subject):
    return kind(
        id=f"s{number}",
        project_id="p",
        name=name,
        value=value,
        source="EVAL",
        timestamp=NOW,
        environment="default",
        created_at=NOW,
        updated_at=NOW,
        subject=subject,
    )


first, second = (subjects.ScoreSubjectV3_Trace(id=f"t{number}") for number in (1, 2))
step = subjects.ScoreSubjectV3_Observation(id="o1", trace_id="t3")
whole = subjects.ScoreSubjectV3_Experiment(id="run")
found = [
    score(scores.ScoreV3_Boolean, 0, "correct", True, first),
    score(scores.ScoreV3_Numeric, 1, "length", 0.3, first),
    score(scores.ScoreV3_Boolean, 2, "correct", False, second),
    score(scores.ScoreV3_Boolean, 3, "correct", True, step),
    score(scores.ScoreV3_Numeric, 4, "mean", 0.67, whole),
]
answer = response.GetScoresV3Response(data=found, meta={"limit": 50})
Path(sys.argv[1]).write_text(answer.json())
