"""A store that several suites share: a command keeps to the suite of the folder it is typed in."""

import json

import pytest

SUITE = """\
name: search
agents:
  - name: patience
    model: scripted
    prompt: Take your time.
    runs: 4
    expect: [{contains: "4"}]
    script: [{answer: "4"}]
"""
BILLING = SUITE.replace("search", "billing")


@pytest.mark.parametrize("options", [[], ["--changed"]])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (BILLING, "is of the suite search, and suite.yml here is billing"),
        (SUITE.replace("patience", "haste"), "which suite.yml has no longer"),
    ],
)
def test_a_run_is_resumed_with_its_own_suite_or_not_touched(call, suite, other, said, options):
    suite(SUITE)
    assert call("run", "-q").exit_code == 0
    before = call("history", "--json").stdout
    suite(other)
    refused = call("run", "--resume", "latest", "--trials", "6", *options)
    assert refused.exit_code == 2, refused.output
    assert said in " ".join(refused.stderr.split())
    assert call("history", "--json").stdout == before


def test_a_suite_that_has_more_than_before_is_still_resumed_with_changed(call, suite):
    suite(SUITE)
    assert call("run", "-q").exit_code == 0
    suite(SUITE + "# more\n")
    assert call("run", "--resume", "latest", "--trials", "6").exit_code == 2
    assert call("run", "--resume", "latest", "--trials", "6", "--changed").exit_code == 0


@pytest.fixture
def shared(here, call, monkeypatch):
    """Two folders with a store in common: billing ran first, then search; this is billing's."""
    monkeypatch.setenv("PASSHAT_STORE", str(here / "shared.db"))
    keys = {}
    for name, text in (("billing", BILLING), ("search", SUITE)):
        (here / name).mkdir()
        (here / name / "passhat.yml").write_text(text)
        monkeypatch.chdir(here / name)
        assert call("run", "-q").exit_code == 0
        keys[name] = json.loads(call("history", "--json").stdout)["runs"][0]["run"]
    monkeypatch.chdir(here / "billing")
    return keys


@pytest.mark.parametrize(
    "command",
    [
        ("gate", "latest", "--require", "pass@1 >= 0.1"),
        ("report", "latest"),
        ("why", "latest"),
        ("history", "tag", "latest", "good"),
        ("history", "show", "latest"),
        ("run", "--resume", "latest"),
    ],
    ids=lambda words: words[0],
)
def test_latest_is_the_newest_run_of_the_suite_of_this_folder(shared, call, command):
    done = call(*command)
    assert done.exit_code in (0, 4), done.output
    said = " ".join(done.stderr.split())
    assert f"latest is run {shared['billing']} of billing, the suite here" in said
    assert f"the newest of all, {shared['search']}, is of search" in said


def test_latest_is_the_newest_run_of_all_where_no_suite_here_has_one(
    shared, call, here, monkeypatch
):
    tagged = {}
    (here / "empty").mkdir()
    (here / "new").mkdir()
    (here / "new" / "passhat.yml").write_text(SUITE.replace("search", "support"))
    for folder in ("search", "empty", "new"):
        monkeypatch.chdir(here / folder)
        tagged[folder] = call("history", "tag", "latest", folder).stderr
        assert tagged[folder].startswith(shared["search"]), tagged


def test_latest_is_the_run_of_any_suite_file_that_is_here(shared, call, here):
    (here / "billing" / "other.yml").write_text(SUITE.replace("search", "other"))
    assert call("run", "-q", "other.yml").exit_code == 0
    assert shared["billing"] not in call("history", "tag", "latest", "good").stderr


def test_results_of_an_unfinished_run_are_said_to_be_unfinished(call, suite):
    suite(SUITE.replace("runs: 4", "runs: 40"))
    assert call("run", "--max-calls", "7", "-q").exit_code == 3
    for command in (("gate", "latest", "--require", "pass@1 >= 0.1"), ("report", "latest")):
        said = " ".join(call(*command).stderr.split())
        assert "is unfinished (7 of 40 trials): `passhat run --resume" in said
    assert call("run", "--resume", "latest", "--max-calls", "50").exit_code == 0
    assert "unfinished" not in call("report", "latest").output
