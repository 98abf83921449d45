import runpy
from pathlib import Path

GENERATOR = Path(__file__).parents[2] / "docs" / "reference" / "generate_targets.py"


def test_the_table_of_targets_is_made_from_their_families():
    found = runpy.run_path(str(GENERATOR))
    written = found["PAGE"].read_text(encoding="utf-8")
    assert written == found["page_text"](), "run python docs/reference/generate_targets.py"
