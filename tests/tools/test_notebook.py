"""The worked notebook runs from top to bottom in a real kernel, and its results draw themselves."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "how-to" / "notebook.ipynb"
EXECUTE = """
import json, sys
import nbclient, nbformat

book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
nbclient.NotebookClient(book, timeout=240, kernel_name="python3").execute()
cells = [cell for cell in book.cells if cell.cell_type == "code"]
print(json.dumps([[output.get("data", {}) for output in cell.outputs] for cell in cells]))
"""


@pytest.fixture(scope="module")
def shown(tool, tmp_path_factory):
    """What each cell of code put below itself, by media type."""
    folder = tmp_path_factory.mktemp("notebook")
    done = tool("notebook").run("python", "-c", EXECUTE, str(NOTEBOOK), cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_cell_runs_and_every_result_is_drawn(shown):
    sources = ["".join(c["source"]) for c in _code_cells()]
    assert len(shown) == len(sources)
    for source, outputs in zip(sources, shown, strict=True):
        kinds = {kind for output in outputs for kind in output}
        drawn = {"text/html", "image/svg+xml"} & kinds
        assert drawn or source.splitlines()[-1].startswith("sorted("), source


def test_the_bar_of_a_run_is_redrawn_in_place_and_ends_full(shown):
    (bar,) = [o["text/html"] for outputs in shown for o in outputs if "<progress" in str(o)]
    assert 'max="15" value="15"' in bar


def test_the_notebook_holds_no_output_that_could_go_stale():
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in _code_cells())


def test_the_cells_run_without_a_kernel_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "notebook"}
    for cell in _code_cells():
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert (tmp_path / "decay.svg").exists()


def _code_cells():
    return [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
