"""A store that several suites share: a command keeps to the suite of the folder it is typed in."""

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
