"""Families that nobody named are noted where they are clear, and only there."""

from dataclasses import replace

import numpy as np
import pytest

from passhat.analysis.reports.evidence import count_evidence
from passhat.analysis.reports.measure import family_note, measure
from passhat.records import Tally, Trials

DESIGNS = [(5, 4, 3), (10, 5, 5), (30, 3, 4), (12, 2, 2)]


def _counted(names, passed, runs) -> Tally:
    scores = passed.astype(float)
    return Tally(
        system="agent",
        tasks=tuple(names),
        passed=passed,
        failed=runs - passed,
        errored=np.zeros_like(passed),
        score_total=scores,
        score_squares=scores,
    )


def _tally(rng, families, tasks, runs, sd, *, mean=1.0) -> Tally:
    family = np.repeat(np.arange(families), tasks)
    logit = mean + sd * rng.normal(size=families)[family] + rng.normal(size=family.size)
    passed = rng.binomial(runs, 1 / (1 + np.exp(-logit)))
    names = [f"kind {chr(65 + code)}-{place}" for place, code in enumerate(family.tolist())]
    return _counted(names, passed, runs)


def _note(tally) -> str | None:
    return family_note(count_evidence(tally), None, confidence=0.95)


@pytest.mark.parametrize("design", DESIGNS)
def test_fifty_suites_without_families_get_no_note(design):
    rng = np.random.default_rng(7)
    for mean in (1.0, 3.0):
        assert not any(_note(_tally(rng, *design, 0, mean=mean)) for _ in range(25))


def test_most_suites_whose_families_differ_much_get_one():
    rng = np.random.default_rng(8)
    found = sum(bool(_note(_tally(rng, 10, 5, 8, 2.0))) for _ in range(20))
    assert found >= 12


def test_the_note_names_families_and_the_interval_they_would_give():
    passed = np.repeat([8, 0, 7, 1, 8, 2, 8, 5, 0, 8], 4)
    names = [f"{kind}-{n}" for kind in "abcdefghij" for n in range(4)]
    tally = _counted(names, passed, 8)
    (note,) = measure([tally]).system().notes
    assert note == _note(tally)
    assert note.startswith("tasks differ by the start of their names (a, b, c and 7 more)")
    assert "the mean score for similar tasks is [" in note


def _tagged(tag_of) -> Trials:
    rows = [(task, run) for task in range(24) for run in range(5)]
    return Trials.from_columns(
        task=[f"{'abcdefghijklmnopqrstuvwx'[task]}" for task, _ in rows],
        passed=[run < (5, 1, 3)[task % 3] for task, run in rows],
        tags=[tag_of(task) for task, _ in rows],
    )


def test_a_single_tag_of_every_task_is_a_family():
    (note,) = measure(_tagged(lambda task: (("web", "shell", "mail")[task % 3],))).system().notes
    assert "tasks differ by the tag (web, shell, mail)" in note
    assert "for other families like these" in note


def test_several_tags_of_a_task_are_no_family():
    assert not measure(_tagged(lambda task: ("web", f"t{task % 3}"))).system().notes


@pytest.mark.parametrize(("families", "told"), [(4, "from these 4 families"), (12, "these 12")])
def test_families_that_were_named_say_whose_the_numbers_are(families, told):
    tally = _tally(np.random.default_rng(1), families, 5, 5, 1.0)
    named = replace(tally, family=tuple(name.split("-")[0] for name in tally.tasks))
    (note,) = measure([named]).system().notes
    assert told in note
    mean = measure([named]).system().metrics["mean_score"].tasks_like_these
    assert (mean.family_interval is not None) == (families < 8) == ("other families" in note)
