import copy
import pickle
from dataclasses import FrozenInstanceError
from threading import Barrier, Thread
from typing import Any

import pytest

from passhat.analysis.reports.measure import measure
from passhat.dataclass import LazyMapping, dataclass, lazy_field, replace
from passhat.records import Trials


class _Counted:
    """Makes 7, and counts how often it had to."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    name: str = "n"
    number: lazy_field[Any] = lazy_field()


def test_an_answer_is_made_at_the_first_look_and_only_then():
    make = _Counted()
    answer = Answer(number=make)
    assert (repr(answer), answer == Answer(number=8)) == ("Answer(name='n')", True)
    assert make.times == 0
    assert [answer.number, answer.number] == [7, 7]
    assert make.times == 1


def test_a_value_is_taken_as_it_is_and_cannot_be_left_out_or_changed():
    answer = Answer(number=3)
    assert answer.number == 3
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'number'"):
        answer.number = 4
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'number'"):
        Answer()


def test_a_replacement_hands_on_what_is_not_made_yet():
    make = _Counted()
    first = Answer(number=make)
    second = replace(first, name="m")
    assert make.times == 0
    assert (first.number, second.number, second.name, make.times) == (7, 7, "m", 1)


def test_two_that_look_at_the_same_time_get_one_answer():
    together, seen = Barrier(8), []
    answer = Answer(number=object)

    def look():
        together.wait()
        seen.append(answer.number)

    threads = [Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1


def test_what_could_not_be_made_is_tried_again_at_the_next_look():
    answers = iter([ZeroDivisionError("no"), 5])

    def make():
        if isinstance(found := next(answers), Exception):
            raise found
        return found

    answer = Answer(number=make)
    with pytest.raises(ZeroDivisionError, match="no"):
        answer.number  # noqa: B018  (the look is what is tested)
    assert answer.number == 5


def test_the_names_of_parts_cost_nothing():
    makers = {name: _Counted() for name in "ab"}
    parts = LazyMapping(makers)
    assert (list(parts), len(parts), "a" in parts, "z" in parts) == (["a", "b"], 2, True, False)
    assert repr(parts) == "<Parts: 'a', 'b'>"
    assert [make.times for make in makers.values()] == [0, 0]
    assert parts["a"] == 7
    assert [make.times for make in makers.values()] == [1, 0]
    with pytest.raises(KeyError, match="z"):
        parts["z"]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_what_is_copied_or_sent_elsewhere_is_made(again):
    parts = LazyMapping({"a": lambda: 1, "b": lambda: 2})
    assert again(parts) == parts == {"a": 1, "b": 2}
    assert type(again(parts)) is dict
    make = _Counted()
    sent = again(Answer(number=make))
    assert make.times == 1
    assert (sent.number, make.times) == (7, 1)


def test_a_report_that_is_sent_elsewhere_brings_its_labels_and_advice():
    passed = [1, 1, 1, 1, 0, 1, 0, 1]
    report = measure(Trials.from_columns(task=[*"aaaabbbb"], passed=passed))
    there = pickle.loads(pickle.dumps(report)).system()
    here = report.system()
    assert there.unsettled == here.unsettled
    assert there.noise == here.noise
    assert list(there.tasks) == list(here.tasks)
