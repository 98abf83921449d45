"""A short form of the published coverage of numbers corrected for a judge's errors."""

import pytest
from bench.calibrate.judges import cover, cover_differences, cover_people


@pytest.mark.slow("simulates suites under a judge whose errors go with the task")
def test_corrected_numbers_cover_where_the_verdicts_do_not():
    found = cover(50, 10, 60, 0.9, 0.85, 0.3, 0, 40)
    for name in ("pass@1: by verdict", "pass@1: at random", "pass@1: similar tasks"):
        assert found[name][0] >= 0.85, name
    for name in ("pass^3: whole tasks", "pass^5: whole tasks", "pass^3: limits"):
        assert found[name][0] >= 0.9, name
    assert found["pass^3: verdicts"][0] < 0.85


@pytest.mark.slow("simulates two agents under a judge that favours one of them")
def test_corrected_differences_cover_where_the_judge_favours_one_agent():
    found = cover_differences(50, 10, 60, "lenient with the first", 0.3, 0.0, 30)
    for name in ("these tasks", "similar tasks", "pass^3: labelled tasks"):
        assert found[name][0] >= 0.85, name
    assert found["verdicts, these tasks"][0] < 0.5
    alike = cover_differences(50, 10, 60, "alike", 0.3, 0.0, 30)
    assert alike["said to favour one"][0] <= 0.15


@pytest.mark.slow("simulates people who err")
def test_the_labels_of_people_who_agree_too_little_are_refused_where_they_would_mislead():
    kappa, refused, one, most = cover_people(150, 0.0, 25)
    assert (kappa, refused) == (1.0, 0.0)
    assert min(one, most) >= 0.8
    kappa, refused, one, most = cover_people(150, 0.12, 25)
    assert kappa < 0.7
    assert refused > 0.8
    assert one < 0.5
    assert most > one
