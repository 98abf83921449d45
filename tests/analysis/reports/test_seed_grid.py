import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports import dependence
from passhat.analysis.reports.dependence import lay_out_seeds
from passhat.analysis.reports.measure import measure
from passhat.records import Outcome, Trials

runs = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.sampled_from([True, False, None])),
    min_size=1,
    max_size=30,
)


@given(runs)
def test_the_grid_holds_every_run_once_under_its_seed(rows):
    task, seed, passed = zip(*rows, strict=True)
    outcome = [Outcome.ERRORED if one is None else one for one in passed]
    trials = Trials.from_columns(task=task, seed=seed, outcome=outcome)
    grid = lay_out_seeds(trials)
    distinct, most = len(set(seed)), max(task.count(name) for name in task)
    assert (grid is not None) == (2 <= distinct <= most)
    if grid is None:
        return
    starts = [*grid.columns.values(), len(next(iter(grid.cells.values())))]
    for name, cells in grid.cells.items():
        for place, number in enumerate(grid.columns):
            stretch = cells[starts[place] : starts[place + 1]].rstrip()
            expected = [
                {True: "P", False: "F", None: "E"}[p]
                for t, s, p in rows
                if (t, s) == (name, number)
            ]
            assert stretch == "".join(expected)


def test_runs_with_a_seed_of_their_own_are_not_grouped():
    trials = Trials.from_columns(task=["a"] * 3 + ["b"] * 3, seed=range(6), passed=[True] * 6)
    assert lay_out_seeds(trials) is None
    assert lay_out_seeds(trials.take(np.zeros(6, dtype=bool))) is None


def test_the_picture_of_runs_names_shared_seeds():
    trials = Trials.from_columns(
        task=["a", "a", "b", "b"], seed=[11, 12, 11, 12], passed=[True, False, True, True]
    )
    figure = measure(trials).plots.runs()
    assert ">seed<" in figure.body
    assert ">11<" in figure.body
    plain = measure(Trials.from_columns(task=["a", "a"], passed=[True, False])).plots.runs()
    assert ">run<" in plain.body


def test_runs_of_which_some_lack_a_seed_are_not_laid_out():
    columns = {"task": ["a", "a", "a"], "passed": [True] * 3}
    assert lay_out_seeds(Trials.from_columns(**columns, seed=[1, 2, None])) is None
    assert lay_out_seeds(Trials.from_columns(**columns, seed=[1, 2, 1])) is not None


def test_a_grid_of_more_cells_than_anybody_looks_at_is_not_laid_out(monkeypatch):
    trials = Trials.from_columns(
        task=["a", "a", "b", "b", "c", "c"], seed=[1, 2] * 3, passed=[True] * 6
    )
    monkeypatch.setattr(dependence, "MOST_CELLS", 6)
    assert lay_out_seeds(trials) is not None
    monkeypatch.setattr(dependence, "MOST_CELLS", 5)
    assert lay_out_seeds(trials) is None
