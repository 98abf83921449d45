import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forges.forge_server import forge_server

from passhat.errors import ForgeError
from passhat.forges.github import (
    LARGEST_SUMMARY,
    MOST_ANNOTATIONS,
    Annotation,
    GitHub,
    annotation_lines,
    github_job,
    post_check,
    post_comment,
    write_summary,
)
from passhat.forges.gitlab import GitLab, gitlab_job, post_note
from passhat.forges.sticky import LONGEST_BODY, MARKER

MARK = MARKER.format(key="suite.yml")


@pytest.fixture
def forge():
    with forge_server() as running:
        yield running


@pytest.fixture
def job(forge, tmp_path) -> GitHub:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": "abc"}}}))
    found = github_job(
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "octo/agent",
            "GITHUB_API_URL": forge.url,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_TOKEN": "t",
            "GITHUB_SHA": "merge",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": "12",
        }
    )
    assert found is not None
    return found


@pytest.fixture
def merge_job(forge) -> GitLab:
    return GitLab(project="octo/agent", api_url=forge.url, token="t", merge_request=3)


def test_a_job_knows_its_pull_request_and_the_commit_under_review(job):
    assert (job.pull_request, job.sha) == (7, "abc")
    assert job.run_url == "https://github.example/octo/agent/actions/runs/12"
    assert github_job({}) is None
    assert gitlab_job({}) is None


def test_the_first_comment_is_created_and_later_ones_bring_it_up_to_date(forge, job):
    assert post_comment(job, "one", key="suite.yml").outcome == "created"
    assert post_comment(job, "two", key="suite.yml").outcome == "updated"
    assert post_comment(job, "two", key="suite.yml").outcome == "unchanged"
    assert [one["body"] for one in forge.comments.values()] == [f"{MARK}\ntwo"]
    assert forge.calls[0].endswith("repos/octo/agent/issues/7/comments")


def test_the_comments_of_two_suites_stay_apart(forge, job):
    post_comment(job, "one", key="a")
    post_comment(job, "two", key="b")
    assert len(forge.comments) == 2


def test_a_comment_beyond_the_first_page_is_found(forge, job):
    for i in range(250):
        forge.add(f"talk {i}")
    post_comment(job, "one", key="suite.yml")
    assert post_comment(job, "two", key="suite.yml").outcome == "updated"
    assert len(forge.comments) == 251


def test_a_token_that_may_not_write_is_a_reason_and_no_error(forge, job):
    forge.may_write = False
    posted = post_comment(job, "one", key="suite.yml")
    assert posted.outcome == "refused"
    assert "403 Resource not accessible by integration" in posted.reason


def test_without_a_token_or_a_pull_request_nothing_is_sent(forge, job):
    assert "GITHUB_TOKEN" in post_comment(replace(job, token=None), "x", key="k").reason
    assert "no pull request" in post_comment(replace(job, pull_request=None), "x", key="k").reason
    assert forge.calls == []


def test_a_text_that_is_too_long_is_cut_at_a_line_and_says_so(forge, job):
    post_comment(job, "row\n" * 40_000, key="suite.yml")
    (comment,) = forge.comments.values()
    assert len(comment["body"]) <= LONGEST_BODY
    assert comment["body"].startswith(MARK)
    assert "row\n\n*The rest is left out" in comment["body"]


def test_jobs_that_post_at_the_same_time_leave_one_comment(forge, job):
    barrier = Barrier(4)
    forge.before_create = barrier.wait
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(
            pool.map(lambda i: post_comment(job, f"text {i}", key="suite.yml"), range(4))
        )
    assert sorted(one.outcome for one in outcomes) == ["created", "updated", "updated", "updated"]
    (comment,) = forge.comments.values()
    assert comment["body"].startswith(f"{MARK}\ntext ")


def test_a_comment_of_somebody_else_that_bears_our_marker_does_not_stop_ours(forge, job):
    forge.foreign.add(forge.add(f"{MARK}\nplanted"))
    assert post_comment(job, "one", key="suite.yml").outcome == "created"
    assert post_comment(job, "two", key="suite.yml").outcome == "updated"
    assert [one["body"] for one in forge.comments.values()] == [f"{MARK}\nplanted", f"{MARK}\ntwo"]


def test_a_text_that_quotes_the_marker_is_not_ours(forge, job):
    forge.add(f"> {MARK}\nI do not understand this")
    assert post_comment(job, "one", key="suite.yml").outcome == "created"


def test_a_redirect_is_not_followed_so_that_the_token_stays(forge, job):
    with forge_server() as elsewhere:
        forge.redirect_to = elsewhere.url
        with pytest.raises(ForgeError, match="302"):
            post_comment(job, "one", key="suite.yml")
        assert elsewhere.calls == []


def test_a_forge_that_cannot_be_reached_is_named_in_one_sentence(job):
    with pytest.raises(ForgeError, match="refused"):
        post_comment(replace(job, api_url="http://127.0.0.1:9/"), "one", key="k")
    with pytest.raises(ForgeError, match="must begin with https"):
        post_comment(replace(job, api_url="file:///etc/"), "one", key="k")


def test_an_open_verdict_is_a_neutral_check(forge, job):
    post_check(job, name="passhat", conclusion="neutral", title="UNDECIDED", summary="x" * 99_999)
    (check,) = forge.checks
    assert (check["conclusion"], check["head_sha"], check["status"]) == (
        "neutral",
        "abc",
        "completed",
    )
    assert len(check["output"]["summary"]) == 65_535


def test_a_note_on_a_merge_request_is_kept_up_to_date_too(forge, merge_job):
    assert post_note(merge_job, "one", key="suite.yml").outcome == "created"
    assert post_note(merge_job, "two", key="suite.yml").outcome == "updated"
    assert forge.calls[0] == "GET /projects/octo%2Fagent/merge_requests/3/notes"
    assert [one["body"] for one in forge.comments.values()] == [f"{MARK}\ntwo"]


def test_ten_annotations_of_a_level_are_written_and_the_last_counts_the_rest():
    many = [Annotation(level="error", title=f"t{i}", message="m") for i in range(25)]
    lines = list(annotation_lines([*many, Annotation(level="notice", title="n", message="m")]))
    assert len(lines) == MOST_ANNOTATIONS + 1
    assert lines[9] == "::error title=+16 more::+16 more: see the report"


@given(st.text(), st.text())
def test_whatever_a_task_is_called_an_annotation_is_one_command(title, message):
    (line,) = annotation_lines([Annotation(level="warning", title=title, message=message)])
    assert line.startswith("::warning title=")
    assert "\n" not in line
    assert "\r" not in line
    written, _, _ = line.removeprefix("::warning title=").partition("::")
    assert ":" not in written
    assert "," not in written


def test_a_summary_is_appended_until_there_is_no_room(job):
    assert write_summary(job, "# one")
    assert write_summary(job, "two")
    assert Path(job.summary_path).read_text(encoding="utf-8") == "# one\ntwo\n"
    assert not write_summary(job, "x" * LARGEST_SUMMARY)
    assert not write_summary(replace(job, summary_path=None), "one")
