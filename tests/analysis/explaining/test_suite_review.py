"""What results say of their suite: tasks that tell nothing, twins, luck, graders that disagree."""

import pytest

from passhat.analysis.explaining.explain import review_suite
from passhat.records.transcript import Check


def review(*runs):
    return review_suite(runs, confidence=0.95)


def test_tasks_that_always_or_never_pass_are_named_once_enough_runs_were_made(make_run):
    runs = [
        make_run("PF"[task == "hard"], task=task, trial=i)
        for task in ("easy", "hard")
        for i in "123"
    ]
    runs += [make_run("P", task="new"), make_run("E", task="hard", trial=9)]
    found = review(*runs)
    assert (found.always_pass, found.never_pass) == (("easy",), ("hard",))


def test_a_task_with_an_errored_run_does_not_always_pass(make_run):
    runs = [make_run("P", trial=i) for i in range(4)] + [make_run("E", trial=9)]
    assert review(*runs[:4]).always_pass == ("a",)
    assert review(*runs).always_pass == ()


def test_a_task_that_one_system_passes_and_another_fails_tells_them_apart(make_run):
    runs = [make_run(o, system=o, trial=i) for o in "PF" for i in range(3)]
    assert review(*runs).always_pass == review(*runs).never_pass == ()


def test_the_tasks_that_hold_half_of_the_luck_are_the_least_steady_ones(make_run):
    ways = {"coin": "PPFF", "coin 2": "PFPF", "rare": "PPPPPPPPPF", "sure": "PPPP"}
    runs = [
        make_run(o, task=task, trial=i) for task, way in ways.items() for i, o in enumerate(way)
    ]
    found = review(*runs).lucky
    assert [one.task for one in found] == ["coin", "coin 2"]
    assert found[0].share == pytest.approx((1 / 3) / (1 / 3 + 1 / 3 + 0.1))


def test_tasks_that_ask_nearly_the_same_are_near_duplicates(make_run):
    words = " ".join(f"word{i}" for i in range(40))
    asked = {"one": words, "two": words + " please", "three": "something else entirely now"}
    runs = [make_run("P", task=task, prompt=prompt) for task, prompt in asked.items()]
    (found,) = review(*runs).duplicates
    assert {found.first, found.second} == {"one", "two"}
    assert 0.9 < found.likeness < 1


def test_a_simulated_user_who_says_something_else_each_time_is_no_prompt(make_run):
    words = " ".join(f"word{i}" for i in range(40))
    runs = [
        make_run("P", task=task, trial=i, prompt=f"{words} {i}") for task in "ab" for i in range(2)
    ]
    assert review(*runs).duplicates == ()


def test_graders_that_disagree_are_told_with_kappa(make_run):
    said = [(1, 1)] * 4 + [(0, 0)] * 3 + [(1, 0)] * 2 + [(0, 1)]
    runs = [
        make_run(
            "P", trial=i, checks=[Check(target="judge", score=a), Check(target="tests", score=b)]
        )
        for i, (a, b) in enumerate(said)
    ]
    (found,) = review(*runs).graders
    assert (found.first, found.second) == ("judge", "tests")
    assert found.agreement.value == pytest.approx(0.7)
    assert found.kappa == pytest.approx((0.7 - 0.5) / 0.5)  # 0.6 x 0.5 + 0.4 x 0.5 by chance
    assert (found.only_first, found.only_second, found.example) == (2, 1, ("bot", "a", 7))


def test_graders_that_agree_are_not_told(make_run):
    checks = [Check(target="judge", score=1.0), Check(target="tests", score=1.0)]
    assert review(*(make_run("P", trial=i, checks=checks) for i in range(9))).graders == ()


def test_a_check_that_something_is_absent_is_no_grader_that_disagrees(make_run):
    for matcher, told in (("regex", 1), ("not regex", 0)):
        runs = [
            make_run(
                "P",
                trial=i,
                checks=[
                    Check(target="answer", matcher="icontains", score=i % 2),
                    Check(target="answer", matcher=matcher, score=1),
                ],
            )
            for i in range(8)
        ]
        assert len(review(*runs).graders) == told


def test_checks_of_one_name_pass_together(make_run):
    runs = [
        make_run(
            "P",
            trial=i,
            checks=[
                Check(target="answer", matcher="contains", score=0),
                Check(target="answer", matcher="contains", score=1),
                Check(target="judge", score=0),
            ],
        )
        for i in range(8)
    ]
    assert review(*runs).graders == ()


def test_checks_of_different_things_are_no_graders_that_disagree(make_run):
    for target, told in (("answer", 1), ("calls", 0)):
        runs = [
            make_run(
                "P",
                trial=i,
                checks=[
                    Check(target="answer", matcher="contains", score=i % 2),
                    Check(target=target, matcher="judge", score=1),
                ],
            )
            for i in range(8)
        ]
        assert len(review(*runs).graders) == told
