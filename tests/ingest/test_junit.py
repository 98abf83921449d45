"""JUnit XML: repeats in names, reruns, and tests that are skipped or expected to fail."""

import pytest

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials, read_with_transcripts


def test_pytest_repeat_steps_are_trials_of_one_test(samples, counts):
    trials = read_trials(samples / "junit" / "junit_repeat.xml")
    assert counts(trials) == {
        "test_flaky::test_agent[always-1.0]": (5, 0, 0),
        "test_flaky::test_agent[often-0.8]": (3, 2, 0),
        "test_flaky::test_agent[half-0.5]": (2, 3, 0),
        "test_flaky::test_agent[never-0.0]": (0, 5, 0),
        "test_flaky::test_crashes": (0, 5, 0),
        "test_flaky::test_setup_error": (0, 0, 5),
    }
    assert trials.features["tokens"][:5].tolist() == [120, 121, 122, 123, 124]


def test_flakefinder_runs_are_trials_of_one_test(samples, counts):
    trials = read_trials(samples / "junit" / "junit_flakefinder.xml")
    assert counts(trials)["test_flaky::test_agent[never-0.0]"] == (0, 3, 0)
    assert counts(trials)["test_flaky::test_setup_error"] == (0, 0, 3)
    assert "3 skipped tests are no trials" in trials.sources[0].notes


def test_reruns_that_junit_shows_without_a_failure_are_failures(samples, counts):
    trials = read_trials(samples / "junit" / "junit_reruns.xml")
    found = counts(trials)
    assert found["test_flaky::test_agent[never-0.0]"] == (0, 3, 0)
    assert found["test_flaky::test_crashes"] == (0, 3, 0)
    assert found["test_flaky::test_setup_error"] == (0, 0, 3)
    assert found["test_flaky::test_agent[always-1.0]"] == (1, 0, 0)
    assert "6 attempts" in trials.sources[0].notes[0]


def test_parametrised_tests_are_not_taken_for_repeats():
    names = ["test_a[0-x]", "test_a[1-x]", "test_b[2-7]", "test_c"]
    xml = _junit(f'<testcase name="{name}"/>' for name in names)
    assert read_trials(xml).tasks == tuple(names)


@pytest.mark.parametrize(
    ("mark", "test"), [("[{}]", ""), ("[{}-refund]", "[refund]"), ("[{}-7]", "[7]")]
)
def test_flakefinder_runs_are_found_though_some_are_skipped_or_never_start(counts, mark, test):
    cases = [_case(f"{name}{mark.format(run)}") for name in "ab" for run in range(4)]
    cases[1] = _case(f"a{mark.format(1)}", '<skipped type="pytest.skip" message="rate limited"/>')
    cases[6] = _case(f"b{mark.format(2)}", '<error message="failed on setup"/>')
    cases += [_case("module", '<error message="collection failure"/>')]
    cases += [_case("other", '<skipped message="collection skipped"/>')]
    assert counts(read_trials(_junit(cases))) == {
        f"a{test}": (3, 0, 0),
        f"b{test}": (3, 0, 1),
        "module": (0, 0, 1),
    }


def test_steps_of_pytest_repeat_are_found_though_each_test_skipped_one(counts):
    skip = '<skipped type="pytest.skip"/>'
    cases = [
        _case(f"{test}[{step}-3]", skip if step == skipped else "")
        for test, skipped in (("a", 1), ("b", 3))
        for step in (1, 2, 3)
    ]
    assert counts(read_trials(_junit(cases))) == {"a": (2, 0, 0), "b": (2, 0, 0)}


def test_a_run_that_was_left_out_still_keeps_parametrised_tests_apart():
    names = ["a[0-x]", "a[1-x]", "b[0-x]"]
    assert read_trials(_junit(_case(name) for name in names)).tasks == tuple(names)


def test_a_test_that_is_expected_to_fail_is_a_trial_by_what_it_did(counts):
    xfailed = '<skipped type="pytest.xfail" message="flaky"/>'
    strict = '<failure message="[XPASS(strict)] flaky">[XPASS(strict)] flaky</failure>'
    untried = '<skipped type="pytest.xfail" message="[NOTRUN] flaky"/>'
    cases = [_case(f"t[{run}-5]", xfailed if run > 3 else "") for run in range(1, 6)]
    cases += [_case(f"u[{run}-5]", xfailed if run > 3 else strict) for run in range(1, 6)]
    cases += [_case(f"v[{run}-5]", untried) for run in range(1, 6)]
    trials, said = read_with_transcripts(_junit(cases))
    assert counts(trials) == {"t": (3, 2, 0), "u": (3, 2, 0)}
    assert trials.sources[0].notes[:3] == (
        "4 xfailed tests count as failures, though it was expected",
        "3 strict xpasses count as passes, though it was not expected",
        "5 skipped tests are no trials",
    )
    assert [trial.error for trial in trials if trial.task == "t"] == [None] * 3 + [
        "xfail: flaky"
    ] * 2
    assert said["s", "t", 4] == '{"error": "xfail: flaky"}'


def test_a_failure_and_the_teardown_that_broke_after_it_are_one_attempt(counts):
    broke = '<error message="failed on teardown with &quot;down&quot;">down</error>'
    cases = [_case("t[0]", '<failure message="no">no refund</failure>'), _case("t[0]", broke)]
    cases += [_case("t[1]"), _case("u[0]", broke), _case("u[1]")]
    trials, said = read_with_transcripts(_junit(cases))
    assert counts(trials) == {"t": (1, 1, 0), "u": (1, 0, 1)}
    assert said["s", "t", 0] == '{"error": "no refund\\ndown"}'


def test_reruns_are_found_beside_a_broken_teardown(counts):
    late = '<error message="failed on teardown with &quot;down&quot;"/>'
    cases = [_case("t"), _case("t", "<failure/>"), _case("t", late)]
    xml = f'<testsuite name="s" tests="2">{"".join(cases)}</testsuite>'.encode()
    assert counts(read_trials(xml)) == {"t": (0, 2, 0)}


def test_junit_names_can_be_kept_as_they_stand(samples):
    trials = read_trials(
        samples / "junit" / "junit_repeat.xml", mapping=ColumnMap(task="name"), format="junit"
    )
    assert "test_flaky::test_agent[always-1.0-3-5]" in trials.tasks


def test_surefire_reruns_inside_a_testcase_are_attempts(counts):
    xml = _junit(
        [
            '<testcase name="flaky"><flakyFailure message="once"/></testcase>',
            '<testcase name="bad"><failure/><rerunFailure/><rerunFailure/></testcase>',
        ]
    )
    assert counts(read_trials(xml)) == {"flaky": (1, 1, 0), "bad": (0, 3, 0)}


def test_a_report_of_our_own_is_not_taken_for_one_trial_a_task():
    xml = b'<testsuites name="passhat"><testsuite name="a"><testcase name="t"/></testsuite>'
    with pytest.raises(ReadError, match="is a report that passhat wrote, and holds rates"):
        read_trials(xml + b"</testsuites>")


def test_several_junit_files_are_several_trials(tmp_path, counts):
    for run in range(3):
        failure = "<failure/>" if run == 1 else ""
        case = f'<testcase name="a" time="0.{run}">{failure}</testcase>'
        (tmp_path / f"run{run}.xml").write_bytes(_junit([case]))
    trials = read_trials(tmp_path)
    assert counts(trials) == {"a": (2, 1, 0)}
    assert trials.trial.tolist() == [0, 1, 2]


def _junit(cases):
    return f'<testsuite name="s">{"".join(cases)}</testsuite>'.encode()


def _case(name, verdict=""):
    return f'<testcase name="{name}">{verdict}</testcase>'


def test_flakefinder_repeats_methods_of_unittest_under_their_own_name(counts):
    cases = "".join(
        f'<testcase classname="m" name="test_f[{i}]"/><testcase classname="m.C" name="test_m"/>'
        for i in range(4)
    )
    trials = read_trials(f"<testsuite>{cases}</testsuite>".encode())
    assert sorted(counts(trials)) == ["m.C::test_m", "m::test_f"]
    once = f'<testsuite>{cases}<testcase classname="m" name="test_once"/></testsuite>'
    assert len(read_trials(once.encode()).tasks) == 6


def test_a_test_that_skips_itself_and_breaks_while_it_is_cleared_up_is_a_trial(counts):
    trials = read_trials(
        b"""<testsuite name="s"><testcase name="a"><skipped/><failure message="no"/></testcase>
        <testcase name="b"><skipped/><error message="late"/></testcase>
        <testcase name="c"><skipped/></testcase></testsuite>"""
    )
    assert counts(trials) == {"a": (0, 1, 0), "b": (0, 0, 1)}


def test_tests_that_share_a_name_are_said_to_be_read_as_runs():
    case = b'<testcase classname="Rows" name="reads"/>'
    trials = read_trials(b'<testsuite name="s">' + 3 * case + b"</testsuite>")
    assert len(trials) == 3
    assert "tests that share a name were read as trials of one test" in trials.sources[0].notes[0]


@pytest.mark.parametrize(
    "empty", [b"<testsuites/>", b"<testsuite />", b"<testsuites></testsuites>"]
)
def test_a_report_without_tests_is_said_to_hold_no_trial(empty):
    with pytest.raises(ReadError, match="holds no trial"):
        read_trials(empty)


def matrix(*names):
    """A report as mcptest writes it: a test case for each run of each model."""
    cases = "".join(
        f'<testcase name="{name} #{run}">{"" if run % 2 else "<failure/>"}</testcase>'
        for name in names
        for run in (1, 2, 3)
    )
    return f'<testsuite name="mcptest">{cases}</testsuite>'.encode()


def test_a_model_in_the_names_of_numbered_runs_is_the_system():
    report = matrix("weather [gpt-5]", "weather [haiku]", "trains [gpt-5]", "trains [haiku]")
    trials = read_trials(report)
    assert trials.systems == ("gpt-5", "haiku")
    assert trials.tasks == ("weather", "trains")
    assert len(trials) == 12
    assert "[gpt-5] #3" in dict(trials.sources[0].read_as)["system"]
    assert read_trials(report, task="name").systems == ("mcptest",)


@pytest.mark.parametrize(
    "names",
    [
        ("weather [gpt-5]", "trains [gpt-5]"),  # one value may be a parameter
        ("weather [rain]", "trains [late]"),  # no test has both
        ("weather [a]", "weather [b]", "trains"),
    ],
)
def test_brackets_that_need_not_be_models_stay_in_the_names_of_tasks(names):
    assert read_trials(matrix(*names)).tasks == names
