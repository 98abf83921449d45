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
from passhat.forges import (
    LARGEST_SUMMARY,
    LONGEST_BODY,
    MARKER,
    MOST_ANNOTATIONS,
    Annotation,
    GitHub,
    GitLab,
    annotation_lines,
    edited_files,
    github_job,
    gitlab_job,
    post_check,
    post_comment,
    post_note,
    write_summary,
)

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


def test_a_job_with_no_or_empty_variables_says_which_one_is_missing(forge, job):
    for bare in ({}, dict.fromkeys(("GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_API_URL"), "")):
        found = github_job({"GITHUB_ACTIONS": "true", **bare})
        assert found.api_url == "https://api.github.com"
        assert (found.repository, found.sha, found.pull_request, found.run_url) == (None,) * 4
        assert not write_summary(found, "text")
    unnamed = replace(job, repository=None)
    assert post_comment(unnamed, "x", key="k").reason == "GITHUB_REPOSITORY is not set"
    for lacking, name in ((unnamed, "REPOSITORY"), (replace(job, sha=None), "SHA")):
        with pytest.raises(ForgeError, match=f"GITHUB_{name} is not set"):
            post_check(lacking, name="n", conclusion="success", title="t", summary="s")
    assert forge.calls == []


@pytest.mark.parametrize(
    "event", ["[]", "{", "[" * 100_000, '{"pull_request": 3}', '{"pull_request": {"head": null}}']
)
def test_an_event_of_another_shape_belongs_to_no_pull_request(tmp_path, event):
    (tmp_path / "event.json").write_text(event)
    path = str(tmp_path / "event.json")
    found = github_job({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": path, "GITHUB_SHA": "abc"})
    assert (found.pull_request, found.sha) == (None, "abc")


def test_a_merge_job_with_no_or_empty_variables_says_which_one_is_missing(forge, merge_job):
    for some in ({}, {"CI_PROJECT_ID": "", "CI_API_V4_URL": " ", "CI_MERGE_REQUEST_IID": "²"}):
        found = gitlab_job({"GITLAB_CI": "true", **some})
        assert (found.project, found.api_url, found.merge_request) == (None, None, None)
    for lacking, name in (("project", "CI_PROJECT_ID"), ("api_url", "CI_API_V4_URL")):
        posted = post_note(replace(merge_job, **{lacking: None}), "x", key="k")
        assert posted.reason == f"{name} is not set"
    assert forge.calls == []


def test_a_token_that_ends_with_a_line_end_is_sent_without_it(forge):
    job = github_job({"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "t\n", "GITHUB_API_URL": forge.url})
    posted = post_comment(replace(job, repository="octo/agent", pull_request=7), "x", key="k")
    assert posted.outcome == "created"


@pytest.mark.parametrize("changed", [{"token": "secret\nvalue"}, {"repository": "octo agent"}])
def test_what_no_request_can_hold_is_an_error_that_does_not_quote_it(job, changed):
    with pytest.raises(ForgeError, match="cannot be sent") as raised:
        post_comment(replace(job, **changed), "x", key="k")
    assert "secret" not in str(raised.value)


def test_a_summary_that_cannot_be_written_is_an_error_with_its_reason(job, tmp_path):
    with pytest.raises(ForgeError, match=r"the step summary cannot be written: .*directory"):
        write_summary(replace(job, summary_path=str(tmp_path)), "text")


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


@pytest.mark.parametrize("user", [None, {"login": "ci[bot]"}])
def test_a_comment_is_edited_only_where_we_wrote_it(forge, job, user):
    """GitHub lets a token that may write comments edit those of others too."""
    forge.user = user
    planted = forge.add(f"{MARK}\nplanted", user={"login": "attacker", "type": "User"})
    assert post_comment(job, "one", key="suite.yml").outcome == "created"
    assert post_comment(job, "two", key="suite.yml").outcome == "updated"
    assert forge.comments[planted]["body"] == f"{MARK}\nplanted"
    assert [one["body"] for one in forge.comments.values()] == [f"{MARK}\nplanted", f"{MARK}\ntwo"]


def test_the_files_that_a_change_edits_are_read_page_by_page_with_their_old_names(
    forge, job, merge_job
):
    forge.files = [{"filename": "a.py"}, {"filename": "b.py", "previous_filename": "old.py"}]
    assert list(edited_files(job)) == ["a.py", "b.py", "old.py"]
    forge.files = [{"new_path": "a.py", "old_path": "a.py"}, "odd"]
    assert list(edited_files(merge_job)) == ["a.py"]
    assert list(edited_files(replace(job, token=None))) == []


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
