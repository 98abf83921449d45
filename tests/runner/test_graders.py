"""Laws of the matchers and of the credit they give."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import GraderError
from passhat.records import Expectation, Grade, Observation, TokenUsage, ToolCall
from passhat.runner import grading
from passhat.runner.grading import MISSING, Grading, find, grade
from passhat.runner.matchers import number_in, same

SEEN = Observation(
    answer="It is 24 degrees in Sacramento.",
    tool_calls=(
        ToolCall(name="get_time", arguments={"zone": "PST"}, result="noon"),
        ToolCall(name="get_weather", arguments={"city": "Sacramento", "days": 1}, result="24"),
        ToolCall(name="get_time", arguments={}, error="no zone"),
    ),
    usage=TokenUsage(tokens_in=1200, tokens_out=80, cached_in=1000),
    cost=0.012,
    seconds=1.5,
    turns=3,
    reported={"confidence": 0.9},
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def score(matcher: str, value: Any = None, target: str = "answer", **more: Any) -> float:
    expectation = Expectation(matcher=matcher, value=value, target=target, **more)
    return asyncio.run(grade([expectation], SEEN)).score


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("answer", "It is 24 degrees in Sacramento."),
        ("final_text", "It is 24 degrees in Sacramento."),
        ("tool_calls[1].name", "get_weather"),
        ("tool_calls[-1].error", "no zone"),
        ("tool_calls[1].arguments.city", "Sacramento"),
        ("tool_calls[1].args.days", 1),
        ('tool_calls[1].args["city"]', "Sacramento"),
        ("tool_calls.length", 3),
        ("tool_names", ["get_time", "get_weather", "get_time"]),
        ("tokens.total", 1280),
        ("conversation.tokens.total", 1280),
        ("tokens.in", 1200),
        ("tokens.cached", 1000),
        ("cost", 0.012),
        ("seconds", 1.5),
        ("conversation.duration_ms", 1500.0),
        ("turns", 3),
        ("stop_reason", "done"),
        ("reported.confidence", 0.9),
        ("tool_calls[3].name", MISSING),
        ("tool_calls[0].__class__", MISSING),
        ("tool_calls[0].arguments.zone.deeper", MISSING),
        ("exit_code", MISSING),
        ("files", MISSING),
        ("answer.x", MISSING),
    ],
)
def test_a_target_is_found_by_its_path(target: str, value: object) -> None:
    assert find(SEEN, target) == value


@pytest.mark.parametrize("target", ["", "answer..", "anwser", "answer[x", "[0]"])
def test_a_target_that_is_no_path_is_a_broken_grader(target: str) -> None:
    with pytest.raises(GraderError, match="target"):
        find(SEEN, target)


@pytest.mark.parametrize(
    ("matcher", "value", "target", "holds"),
    [
        ("exact", "get_weather", "tool_calls[1].name", True),
        ("exact", "weather", "tool_calls[1].name", False),
        ("exact", None, "tool_calls[9].error", True),
        ("exact", 1, "tool_calls[1].args.days", True),
        ("exact", True, "tool_calls[1].args.days", False),
        ("iexact", " it is 24 DEGREES in sacramento. ", "answer", True),
        ("contains", "24", "answer", True),
        ("contains", "25", "answer", False),
        ("contains", "get_weather", "tool_names", True),
        ("contains", "weather", "tool_names", False),
        ("contains", "no zone", "tool_calls", True),
        ("contains", "Sacramento", "tool_calls[1].arguments", True),
        ("contains", 128, "tokens.total", True),
        ("contains", "x", "tool_calls[9]", False),
        ("icontains", "SACRAMENTO", "answer", True),
        ("contains-all", ["24", "degrees"], "answer", True),
        ("contains-all", ["24", "rain"], "answer", False),
        ("contains-all", ["get_time", "get_weather"], "tool_names", True),
        ("contains-any", ["rain", "24"], "answer", True),
        ("contains-any", ["rain", "snow"], "answer", False),
        ("regex", r"(?i)\d+ DEGREES", "answer", True),
        ("regex", "^[0-9]+$", "conversation.tokens.total", True),
        ("regex", "^x", "answer", False),
        ("one_of", ["done", "max_turns"], "stop_reason", True),
        ("one_of", ["max_turns"], "stop_reason", False),
        ("exists", True, "tool_calls[2]", True),
        ("exists", False, "tool_calls[3]", True),
        ("exists", True, "exit_code", False),
        ("not_called", ["send_email"], "answer", True),
        ("not_called", ["send_email", "get_time"], "answer", False),
        ("called_in_order", ["get_time", "get_weather"], "answer", True),
        ("called_in_order", ["get_weather", "get_time"], "answer", True),
        ("called_in_order", ["get_weather", "get_time", "get_time"], "answer", False),
    ],
)
def test_each_matcher_holds_exactly_where_it_should(
    matcher: str, value: object, target: str, holds: bool
) -> None:
    assert score(matcher, value, target) == float(holds)
    assert score(matcher, value, target, negate=True) == float(not holds)


@pytest.mark.parametrize(
    ("matcher", "value", "target", "options", "holds"),
    [
        ("number", 24, "answer", {}, True),
        ("number", "24.4", "answer", {"tolerance": 0.5}, True),
        ("number", 25, "answer", {"tolerance": 0.5}, False),
        ("number", 25, "answer", {"tolerance": 0.05, "relative": True}, True),
        ("number", 0.012, "cost", {"tolerance": 0}, True),
        ("number", 1, "stop_reason", {}, False),
        ("range", None, "cost", {"min": None, "max": 0.02}, True),
        ("range", None, "tokens.total", {"min": 2000, "max": None}, False),
        ("range", None, "exit_code", {"min": 0, "max": None}, False),
        ("length", None, "answer", {"exact": 31}, True),
        ("length", None, "tool_calls", {"min": 1, "max": 3}, True),
        ("length", None, "tool_calls", {"max": 2}, False),
        ("length", None, "cost", {"min": 0}, False),
        ("called", "get_weather", "answer", {}, True),
        ("called", "get_time", "answer", {"times": 2}, True),
        ("called", "get_time", "answer", {"times": 1}, False),
        ("called", "get_time", "answer", {"max": 1}, False),
        ("called", "send_email", "answer", {"max": 1}, True),
        ("called", "send_email", "answer", {}, False),
        ("called_with", "get_weather", "answer", {"arguments": {"city": "Sacramento"}}, True),
        ("called_with", "get_weather", "answer", {"arguments": {"city": "Rome"}}, False),
        (
            "called_with",
            "get_weather",
            "answer",
            {"arguments": {"city": "Sacramento"}, "exact": True},
            False,
        ),
        ("called_with", "get_time", "answer", {"arguments": {}, "exact": True}, True),
    ],
)
def test_matchers_with_options_hold_exactly_where_they_should(
    matcher: str, value: object, target: str, options: dict[str, Any], holds: bool
) -> None:
    assert score(matcher, value, target, options=options) == float(holds)


@settings(deadline=None)
@given(JSON)
def test_everything_is_the_same_as_itself(value: object) -> None:
    assert same(value, value)


@settings(deadline=None)
@given(JSON, JSON)
def test_sameness_is_symmetric_and_tells_truth_from_one(left: object, right: object) -> None:
    assert same(left, right) == same(right, left)
    assert not same([left, True], [left, 1])


@settings(deadline=None)
@given(st.floats(-1e9, 1e9))
def test_a_number_is_found_again_in_its_text(number: float) -> None:
    assert number_in(f"about 3 or {number!r} units") == number


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.1, 10)), min_size=1, max_size=6),
    st.floats(0.01, 1),
)
def test_the_score_is_the_weighted_share_and_passes_at_the_pass_score(
    checks: list[tuple[bool, float]], bar: float
) -> None:
    expectations = [
        Expectation(matcher="contains", value="24" if holds else "rain", weight=weight)
        for holds, weight in checks
    ]
    given_grade: Grade = asyncio.run(grade(expectations, SEEN, pass_score=bar))
    share = sum(w for holds, w in checks if holds) / sum(w for _, w in checks)
    assert given_grade.score == pytest.approx(share)
    assert given_grade.passed == (given_grade.score >= bar - 1e-9)
    assert [detail.passed for detail in given_grade.details] == [holds for holds, _ in checks]


def test_without_expectations_the_system_is_taken_at_its_word() -> None:
    assert asyncio.run(grade([], Observation(score=0.4))).score == 0.4
    assert not asyncio.run(grade([], Observation(score=0.4))).passed
    assert asyncio.run(grade([], Observation())).passed


def test_the_reason_names_what_was_expected_and_what_came() -> None:
    expectation = Expectation(matcher="exact", value="send_email", target="tool_calls[0].name")
    (detail,) = asyncio.run(grade([expectation], SEEN)).details
    assert detail.message == "expected exactly 'send_email', got 'get_time'"
    own = Expectation(matcher="contains", value="rain", message="should speak of rain")
    (detail,) = asyncio.run(grade([own], SEEN)).details
    assert detail.message == "should speak of rain"


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ('{"n": 1}', True),
        ('Here:\n```json\n{"n": 1}\n```\nDone.', True),
        ('Sure: {"n": 1}!', True),
        ('{"n": "1"}', False),
        ("[]", False),
        ("no JSON at all", False),
        ("[" * 100_000, False),
    ],
)
def test_a_json_schema_judges_the_json_in_the_answer(answer: str, holds: bool) -> None:
    expectation = Expectation(matcher="json-schema", value=SCHEMA)
    assert asyncio.run(grade([expectation], Observation(answer=answer))).passed == holds


def test_a_json_schema_judges_structured_targets_as_they_are() -> None:
    expected = {"type": "array", "items": {"required": ["name", "arguments"]}, "minItems": 3}
    assert score("json-schema", expected, "tool_calls") == 1.0


def test_a_schema_elsewhere_is_never_fetched() -> None:
    with pytest.raises(GraderError, match="json-schema cannot be applied"):
        score("json-schema", {"$ref": "http://127.0.0.1:9/schema.json"}, "tool_calls")


def test_an_unknown_matcher_is_a_broken_grader() -> None:
    with pytest.raises(GraderError, match="there is no matcher named 'vibes'"):
        score("vibes", 1)


def test_files_are_listed_and_read_but_only_inside_the_directory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    (work / "out" / "report.v2.txt").write_text("done")
    (tmp_path / "secret.txt").write_text("no")
    (work / "link.txt").symlink_to(tmp_path / "secret.txt")
    seen = Observation(files=work)
    assert find(seen, "files") == ["link.txt", "out/report.v2.txt"]
    assert find(seen, "files.out/report.v2.txt") == "done"
    assert find(seen, 'files["out/report.v2.txt"]') == "done"
    assert find(seen, "files.link.txt") is MISSING
    assert find(seen, "files.../secret.txt") is MISSING
    assert find(seen, "files.gone.txt") is MISSING


def test_a_file_that_is_a_link_to_itself_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert find(Observation(files=tmp_path), "files.loop") is MISSING


@pytest.mark.parametrize("answer", ["1e999", 10**400, -(10**400), float("nan")])
def test_no_number_is_near_one_that_has_no_end(answer: object) -> None:
    seen = Observation(reported={"value": answer})
    expected = Expectation(matcher="number", value=5, target="reported.value")
    assert not asyncio.run(grade([expected], seen)).passed


@pytest.mark.parametrize("expected", ["1e999", 10**400, float("inf"), float("nan")])
def test_an_expected_number_that_has_no_end_breaks_the_grader(expected: object) -> None:
    with pytest.raises(GraderError, match="the matcher `number` needs a number, got "):
        asyncio.run(grade([Expectation(matcher="number", value=expected)], Observation(answer="3")))


def test_what_is_not_there_is_no_snapshot(tmp_path: Path) -> None:
    expected = Expectation(matcher="snapshot", value="plan", target="reported.plan")
    grading = Grading(directory=tmp_path)
    (check,) = asyncio.run(grade([expected], Observation(), grading=grading)).details
    assert (check.score, check.message) == (0.0, 'expected snapshot "plan", got nothing')
    assert not (tmp_path / "snapshots").exists()


def test_a_snapshot_is_stored_once_and_expected_ever_after(tmp_path: Path) -> None:
    expectation = Expectation(matcher="snapshot", value="first call", target="tool_calls[0].args")
    here = Grading(directory=tmp_path)
    assert asyncio.run(grade([expectation], SEEN, grading=here)).passed
    (stored,) = (tmp_path / "snapshots").iterdir()
    assert stored.read_text() == '{\n  "zone": "PST"\n}\n'
    other = Observation(tool_calls=(ToolCall(name="get_time", arguments={"zone": "CET"}),))
    assert not asyncio.run(grade([expectation], other, grading=here)).passed
    update = Grading(directory=tmp_path, update_snapshots=True)
    assert asyncio.run(grade([expectation], other, grading=update)).passed
    assert asyncio.run(grade([expectation], other, grading=here)).passed
    assert not asyncio.run(grade([expectation], SEEN, grading=here)).passed


def test_where_snapshots_are_not_written_a_missing_one_breaks_the_grader(tmp_path: Path) -> None:
    expectation = Expectation(matcher="snapshot", value="../escape")
    reading = Grading(directory=tmp_path, write_snapshots=False)
    with pytest.raises(GraderError, match="is not stored: run the suite once"):
        asyncio.run(grade([expectation], SEEN, grading=reading))
    asyncio.run(grade([expectation], SEEN, grading=Grading(directory=tmp_path)))
    (stored,) = (tmp_path / "snapshots").iterdir()
    assert stored.name.startswith("escape-")


def test_a_negated_check_is_named_by_what_it_demands() -> None:
    expected = [
        Expectation(matcher="regex", value="rain", negate=negate) for negate in (False, True)
    ]
    details = asyncio.run(grade(expected, SEEN)).details
    assert [detail.matcher for detail in details] == ["regex", "not regex"]


def test_more_files_than_can_be_listed_are_an_error_and_one_of_them_is_found_by_its_name(
    tmp_path, monkeypatch
):
    """A list that was cut in silence would lack what the agent did write."""
    monkeypatch.setattr(grading, "MAX_FILES", 5)
    for number in range(5):
        (tmp_path / f"f{number}").write_text("done")
    seen = Observation(files=tmp_path)
    listed = Expectation(target="files", matcher="contains", value="f1")
    named = Expectation(target="files.f1", matcher="contains", value="done")
    assert asyncio.run(grade([listed, named], seen)).passed
    (tmp_path / "f5").write_text("")
    with pytest.raises(GraderError, match=r"left more than 5 files, .*: ask for one by its name"):
        asyncio.run(grade([listed], seen))
    assert asyncio.run(grade([named], seen)).passed
