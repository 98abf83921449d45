"""Which run a name means: in full before any beginning, and never one of several by chance."""

import pytest

from passhat.errors import HistoryError
from passhat.history import Checkout, History
from passhat.history.runs import NamedRun, named_baseline, named_run, tagged_run


@pytest.fixture
def history(address):
    with History.open(address) as store:
        yield store


def kept(history, *, commit=None, branch=None, suite="suite", day=1, status="finished"):
    at = Checkout(commit=commit, branch=branch)
    run = history.start_run(suite, checkout=at, started=f"2026-11-{day:02}")
    return history.finish_run(run, status)


def test_a_commit_in_full_wins_over_one_that_only_begins_so(history):
    runs = {
        commit: kept(history, commit=commit, day=day)
        for day, commit in enumerate(["1f2e3d1", "1f2e3d10", "abc6", "abc"], 1)
    }
    for commit, run in runs.items():
        assert history.find_run(commit).id == run.id
    kept(history, commit="feedbeef", day=9)
    tagged = kept(history, commit="feedbe", day=5)
    history.tag(tagged, "feed")
    assert history.find_run("feed").id == tagged.id
    assert history.find_run("feedbe").id == tagged.id


def test_a_beginning_that_fits_several_is_refused_with_their_names(history):
    for day, commit in enumerate(["1f2e3d1", "1f2e3d10"], 1):
        kept(history, commit=commit, day=day)
    with pytest.raises(HistoryError, match="'1f2e' is the beginning of several: 1f2e3d10, 1f2e3d1"):
        history.find_run("1f2e")
    with pytest.raises(
        HistoryError, match=r"the first 4 characters of a key or a commit are enough"
    ):
        history.find_run("1f2")


def test_a_beginning_shared_by_a_key_and_a_commit_is_refused(history):
    run = kept(history, commit="0123456789")
    other = kept(history, commit=run.key + "99")
    with pytest.raises(HistoryError, match=f"{run.key}, {other.checkout.commit}"):
        history.find_run(run.key[:5])
    assert history.find_run(run.key).id == run.id


def test_of_several_runs_of_one_commit_the_newest_is_taken_and_that_is_said(history):
    runs = [kept(history, commit="0123456789", day=day) for day in (1, 3, 2)]
    for name in ("0123456789", "01234"):
        found = named_run(history, name)
        assert found.run.id == runs[1].id
        assert found.note == f"3 runs of commit 0123456789; taken: the newest, {runs[1].key}"
    assert named_run(history, "latest").note is None


def test_a_branch_as_baseline_is_its_newest_run_other_than_the_one_judged(history):
    old = kept(history, branch="main", day=1)
    kept(history, branch="main", day=2, status="interrupted")
    kept(history, branch="main", day=3, suite="another")
    judged = kept(history, branch="main", day=4)
    found = named_baseline(history, "main", judged=judged)
    assert found.run.id == old.id
    assert found.note == f"compared with run {old.key} of 1 Nov 2026 (main)"
    topic = kept(history, branch="topic", day=5)
    assert named_baseline(history, "main", judged=topic).run.id == judged.id


def test_a_run_is_never_held_against_itself(history):
    run = kept(history, branch="main", commit="0123456789")
    history.tag(run, "good")
    for name in ("main", "good", "latest", run.key, "0123456789", "01234"):
        with pytest.raises(HistoryError, match="and a run is not compared with itself"):
            named_baseline(history, name, judged=run)


def test_a_branch_with_runs_of_other_suites_only_has_no_baseline(history):
    kept(history, branch="main", suite="another")
    judged = kept(history, branch="topic", day=2)
    with pytest.raises(HistoryError, match=f"no other run of suite to compare {judged.key} with"):
        named_baseline(history, "main", judged=judged)


def test_a_commit_as_baseline_may_be_another_run_of_it(history):
    first, second = (kept(history, commit="0123456789", day=day) for day in (1, 2))
    assert named_baseline(history, "0123456789", judged=second).run.id == first.id


def test_a_tag_names_one_run_of_each_suite(history):
    first, second = (history.start_run("a"), history.start_run("a"))
    other, judged = (history.start_run("b"), history.start_run("b"))
    for run in (first, other, second):
        history.tag(run, "good")
    assert tagged_run(history, "good", "a").id == second.id, "within a suite it moves"
    assert tagged_run(history, "good", "b").id == other.id
    assert named_baseline(history, "good", judged=judged).run.id == other.id
    assert "2 suites have a run good; taken: the newest, " in named_run(history, "good").note
    history.delete(other)
    assert named_run(history, "good") == NamedRun(run=tagged_run(history, "good", "a"))
