"""A pattern cannot hang a run."""

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import GraderError
from passhat.records import Expectation, Observation
from passhat.runner import matchers
from passhat.runner.grading import grade

CATASTROPHES = [
    (r"^(a+)+$", "a" * 40 + "!"),
    (r"(a|aa)+$", "a" * 60 + "!"),
    (r"(.*a){25}$", "a" * 60 + "!"),
    (r"(x+x+)+y", "x" * 60),
    ("a?" * 40 + "a" * 40, "a" * 40),
    (r"a{0,40}" * 8 + "b", "a" * 60),
]


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchers, "TIMEOUT", 0.1)


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHES)
@pytest.mark.usefixtures("short_wait")
def test_a_pattern_that_backtracks_without_end_breaks_the_grader(pattern: str, text: str) -> None:
    with pytest.raises(GraderError, match="backtracks too much"):
        matchers.search_pattern(pattern, text)


@pytest.mark.usefixtures("short_wait")
def test_a_catastrophe_does_not_hold_up_the_trials_beside_it() -> None:
    async def both() -> list[str]:
        done: list[str] = []

        async def slow() -> None:
            expectation = Expectation(matcher="regex", value=CATASTROPHES[0][0])
            with pytest.raises(GraderError, match="backtracks too much"):
                await grade([expectation], Observation(answer=CATASTROPHES[0][1]))
            done.append("slow")

        async def quick() -> None:
            await asyncio.sleep(0)
            await grade([Expectation(matcher="regex", value="x")], Observation(answer="x"))
            done.append("quick")

        await asyncio.gather(slow(), quick())
        return done

    assert asyncio.run(both()) == ["quick", "slow"]


@pytest.mark.usefixtures("short_wait")
def test_patterns_inside_a_json_schema_are_bounded_too() -> None:
    expectation = Expectation(
        matcher="json-schema", value={"type": "string", "pattern": CATASTROPHES[0][0]}
    )
    answer = f'"{CATASTROPHES[0][1]}"'
    with pytest.raises(GraderError, match="backtracks too much"):
        asyncio.run(grade([expectation], Observation(answer=answer)))


def test_the_usual_patterns_are_searched_here() -> None:
    for pattern in (r"(?i)sacramento", r"^[0-9]+$", r"\d+ degrees", r"[*+]{2}", r"\(a\)\+"):
        assert not matchers.may_hang(pattern, "x" * 5_000)


def test_long_texts_and_many_repeats_are_searched_apart() -> None:
    assert matchers.may_hang(r".*a.*b.*c", "x" * 5_000)
    assert matchers.may_hang(r"(\w)\1", "xx")
    assert matchers.search_pattern(r"(\w)\1", "aabc")
    assert not matchers.search_pattern(r"(\w)\1", "abc\0\u2028é")


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([r"(a|b)+c", r"(\w+)-\1", r"^\s*(x)?$", r"é+"]), st.text("abcx-é \n"))
def test_a_search_apart_finds_what_a_search_here_finds(pattern: str, text: str) -> None:
    assert matchers._search_apart(pattern, text) == bool(re.search(pattern, text))
