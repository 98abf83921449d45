"""The first card of a trial: which check failed, what was expected and what was done."""

import json

import pytest

from passhat.ingest import read_with_transcripts
from passhat.records.transcript import Check, Transcript
from passhat.reporters.page_parts import check_cards


def failed_checks(path):
    _, said = read_with_transcripts(path)
    shown = [check_cards(Transcript.from_json(text).checks) for text in said.values()]
    return [[card for card in cards if card.failed] for cards in shown]


@pytest.mark.parametrize("tests_status", [{}, None, [], {"FAIL_TO_PASS": None}, {"X": [1]}])
def test_a_swe_bench_report_of_any_shape_is_read_as_before(tests_status, tmp_path):
    report = {"patch_exists": True, "resolved": True, "tests_status": tests_status}
    (tmp_path / "report.json").write_text(json.dumps({"django__django-1": report}))
    trials, _ = read_with_transcripts(tmp_path / "report.json")
    assert len(trials) == 1


def test_a_swe_bench_instance_names_the_tests_that_failed_and_shows_its_patch(tmp_path):
    folder = tmp_path / "run1" / "gpt" / "django__django-1"
    folder.mkdir(parents=True)
    tests = {
        "FAIL_TO_PASS": {"success": ["test_a"], "failure": ["test_b", "test_c"]},
        "PASS_TO_PASS": {"success": ["test_d"], "failure": []},
    }
    report = {"patch_exists": True, "resolved": False, "tests_status": tests}
    (folder / "report.json").write_text(json.dumps({"django__django-1": report}))
    (folder / "patch.diff").write_text("--- a/x.py\n+++ b/x.py\n")
    ((card,),) = failed_checks(tmp_path)
    assert card.name == "tests that the change must make pass"
    assert (card.text, card.expected) == ("1 of 3 tests passed", "all of them pass")
    assert card.found == "test_b failed\ntest_c failed"
    (text,) = read_with_transcripts(tmp_path)[1].values()
    assert Transcript.from_json(text).diff.startswith("--- a/x.py")


def test_a_patch_that_is_missing_or_does_not_apply_is_the_check_that_failed(tmp_path):
    path = tmp_path / "report.json"
    for report, did in (
        ({"patch_is_None": True, "patch_exists": False}, "no change was submitted"),
        ({"patch_exists": True, "patch_successfully_applied": False}, "it does not apply"),
    ):
        path.write_text(json.dumps({"django__django-1": {**report, "resolved": False}}))
        assert [[card.found for card in cards] for cards in failed_checks(path)] == [[did]]


def test_a_terminal_bench_submission_without_logs_says_which_tests_failed(tmp_path):
    trial = {
        "task_id": "oom",
        "trial_name": "oom.1-of-1",
        "instruction": "Cache it.",
        "is_resolved": False,
        "parser_results": {"test_a": "passed", "test_b": "failed"},
    }
    (tmp_path / "results.json").write_text(
        json.dumps({"results": [trial], "pass_at_k": {}, "n_resolved": 0})
    )
    ((card,),) = failed_checks(tmp_path / "results.json")
    assert (card.name, card.expected, card.found) == (
        "test_b",
        "the test passes",
        "the test failed",
    )


def test_what_a_suite_expects_is_told_from_what_came():
    message = "expected to contain '24', got 'It is warm, got it?'"
    failed, held = (Check(target="answer", score=s, message=message) for s in (0.0, 1.0))
    (card,) = check_cards((failed,))
    assert (card.text, card.expected) == ("", "to contain '24'")
    assert card.found == "'It is warm, got it?'"
    assert check_cards((held,))[0].expected == ""
    plain = Check(target="judge", score=0.0, message="expected more of it")
    assert check_cards((plain,))[0].text == "expected more of it"
