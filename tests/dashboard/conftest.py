import pytest

from passhat.analysis.planning.simulate import simulate
from passhat.history import Checkout, History

SYSTEMS = {"careful": 0.9, "hasty": 0.6}


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Three runs of one suite with two systems, one run of another; a transcript and a tag."""
    path = tmp_path_factory.mktemp("dashboard") / "history.db"
    with History.open(path) as history:
        for i in range(3):
            run = history.start_run(
                "support",
                checkout=Checkout(commit=f"{i}" * 40, branch="main", host="box"),
                started=f"2026-11-0{i + 1}T09:00:00.000+00:00",
            )
            trials = list(simulate(tasks=12, runs=6, rate=SYSTEMS, seed=i))
            history.add_trials(run, trials)
            with history.writing():
                history.add_transcript(run.id, trials[0], "user: hello\nassistant: <b>bye</b>")
            history.finish_run(run)
        history.tag(run, "baseline")
        other = history.start_run("refunds", started="2026-10-01T09:00:00.000+00:00")
        history.add_trials(other, simulate(tasks=5, runs=4, seed=9))
        history.finish_run(other)
    return path


@pytest.fixture
def site(serve_site, store):
    return serve_site(store)


@pytest.fixture
def runs(store):
    with History.open(store, read_only=True) as history:
        return history.runs(suite="support")
