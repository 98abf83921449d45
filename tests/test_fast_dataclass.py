import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from passhat.dataclass import dataclass, replace
from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Interval

Decorator = Callable[..., Any]


def kinds(decorator: Decorator) -> tuple[Any, ...]:
    """The same six classes, made by a decorator."""

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        """Only by name."""

        first: int
        second: list[int] = field(default_factory=list)
        third: str = "c"

    @decorator(frozen=True, slots=True)
    class Placed:
        first: int
        second: float = 0.5
        hidden: int = field(default=3, repr=False, compare=False)
        derived: int = field(init=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "derived", self.first + 1)

    @decorator(frozen=True, slots=True, kw_only=True, eq=False)
    class ByIdentity:
        only: float

        def __repr__(self) -> str:
            return "mine"

    @decorator(slots=True)
    class Changeable(Mixed):
        """Not frozen, with a base that has no fields."""

        first: int
        second: list[int] = field(default_factory=list)

    @decorator(frozen=True, slots=True)
    class Later(Placed):
        second: float = 0.25
        last: str = "z"

    @decorator(frozen=True, slots=True)
    class Listed(Sequence[int]):
        first: tuple[int, ...] = ()

        def __len__(self) -> int:
            return len(self.first)

        def __getitem__(self, place: Any) -> Any:
            return self.first[place]

    return Named, Placed, ByIdentity, Changeable, Later, Listed


class Mixed:
    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: float
    y: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space(Point):
    z: float = 0.0


NAN = float("nan")
CALLS: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = [
    (0, (), {"first": 1}),
    (0, (), {"first": 1, "second": [2], "third": "d"}),
    (0, (1,), {}),
    (0, (), {}),
    (0, (), {"first": 1, "fourth": 2}),
    (1, (1,), {}),
    (1, (1, 2.0, 4), {}),
    (1, (), {"first": 2, "second": NAN}),
    (1, (1, 2.0, 4, 5), {}),
    (2, (), {"only": NAN}),
    (2, (), {"only": 1.0, "other": 2}),
    (3, (1,), {}),
    (3, (1, [2]), {}),
    (3, (), {"second": [2]}),
    (4, (1,), {}),
    (4, (1, 2.0, 4, "y"), {}),
    (4, (), {"last": "y"}),
    (5, ((1, 2),), {}),
]


def outcome(kind: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        made = kind(*positional, **named)
    except TypeError as error:
        return str(error).replace(kind.__qualname__, "")
    values = {one.name: getattr(made, one.name) for one in dataclasses.fields(made)}
    again = kind(*positional, **named)
    hashed = "cannot" if isinstance(values.get("second"), list) else hash(made) == hash(again)
    # from 3.13 on the standard library compares field by field, where NaN differs from itself
    equal = made == again or (sys.version_info >= (3, 13) and NAN in values.values())
    return repr(made).split(".")[-1], str(values), equal, made == 1, hashed


@pytest.mark.parametrize(("which", "positional", "named"), CALLS)
def test_a_class_behaves_as_the_one_of_the_standard_library(which, positional, named):
    ours, theirs = kinds(dataclass)[which], kinds(dataclasses.dataclass)[which]
    assert outcome(ours, positional, named) == outcome(theirs, positional, named)


@pytest.mark.parametrize("which", range(6))
def test_a_class_is_described_as_the_standard_library_would(which):
    ours, theirs = kinds(dataclass)[which], kinds(dataclasses.dataclass)[which]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__
    assert repr(ours.__dataclass_params__) == repr(theirs.__dataclass_params__)
    assert ours.__hash__ is None if theirs.__hash__ is None else callable(ours.__hash__)
    assert list(map(str, dataclasses.fields(ours))) == list(map(str, dataclasses.fields(theirs)))


def test_an_instance_cannot_be_changed():
    point = Point(x=1.0)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_copies_pickles_and_replacements_are_equal_values():
    point = Point(x=1.0, y=[1])
    assert pickle.loads(pickle.dumps(point)) == point == copy.deepcopy(point)
    third = Space(x=1.0, z=2.0)
    assert pickle.loads(pickle.dumps(third)) == third == copy.deepcopy(third) != Space(x=1.0)
    assert dataclasses.replace(point, x=2.0) == Point(x=2.0, y=[1])
    assert dataclasses.asdict(point) == {"x": 1.0, "y": [1]}


def test_each_instance_has_its_own_default_list():
    assert Point(x=1.0).y is not Point(x=1.0).y


def test_what_is_not_frozen_can_be_changed():
    @dataclass(slots=True)
    class Open:
        x: int

    changed = Open(x=1)
    changed.x = 2
    assert changed == Open(x=2)
    with pytest.raises(AttributeError, match="no attribute 'y'"):
        changed.y = 3  # type: ignore[attr-defined]


def test_a_default_that_instances_would_share_is_refused():
    with pytest.raises(ValueError, match="mutable default for field shared: use default_factory"):

        @dataclass(frozen=True, slots=True)
        class Shares:
            shared: list[int] = []  # noqa: RUF012


def test_what_needs_more_is_made_by_the_standard_library():
    @dataclass
    class Plain:
        x: int

    @dataclass(frozen=True, slots=True)
    class Counting:
        x: int
        made: ClassVar[int] = 0

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        x: int

    assert Plain(x=1).__dict__ == {"x": 1}
    assert [one.name for one in dataclasses.fields(Counting)] == ["x"]
    assert Ordered(1) < Ordered(2)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclass(slots=True)
        class Child(Point):
            z: int = 0


def test_replace_makes_what_the_standard_one_makes():
    one = Estimate(value=0.5, interval=Interval(0.2, 0.7), method="m", confidence=0.9, tasks=3)
    changes = {"interval": None, "value": 0.25}
    assert replace(one, **changes) == dataclasses.replace(one, **changes)
    with pytest.raises(ArgumentError, match="low <= high"):
        replace(Interval(0.2, 0.7), low=0.8)
    with pytest.raises(TypeError, match="heigth"):
        replace(Interval(0.2, 0.7), heigth=0.8)
