from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def samples():
    return ROOT / "tests" / "samples"


@pytest.fixture(scope="session")
def shared():
    """Published result files, which may be read beside the checkout but not copied into it."""
    folder = ROOT.parent / "shared" / "samples"
    if not folder.is_dir():
        pytest.skip("published result files are not beside this checkout (../shared/samples)")
    return folder


@pytest.fixture
def counts():
    """Passed, failed and errored trials of one system, by task."""

    def counted(trials, system=None):
        tally = trials.tally(system)
        columns = (tally.passed.tolist(), tally.failed.tolist(), tally.errored.tolist())
        return dict(zip(tally.tasks, zip(*columns, strict=True), strict=True))

    return counted
