"""`dataclass` for frozen values, at a quarter of what the standard library takes to make a class.

`dataclasses` writes and compiles six methods for every class as it is imported. A command imports
some two hundred and makes instances of half of them, and compares hardly any. Here a class gets
`__init__` when it is first called, and methods that need no compiling for the rest. What comes out
is a dataclass in every other way: `fields`, `replace`, `asdict`, copies and pickles work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

from passhat.messages import repr_fields

__all__ = ["dataclass", "replace", "short_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
    from dataclasses import dataclass as short_dataclass
else:

    def dataclass(*, kw_only=False, eq=True, repr=True, **options):  # noqa: A002
        """A frozen dataclass with slots; whatever else is asked for, the standard library makes."""

        def decorate(cls):
            plain = options == {"frozen": True, "slots": True} and cls.__base__ is object
            if not plain or _is_special(cls):
                return dataclasses.dataclass(kw_only=kw_only, eq=eq, repr=repr, **options)(cls)
            return _frozen(cls, kw_only=kw_only, eq=eq, repr_=repr)

        return decorate

    def short_dataclass(**options):
        """The same for results, which show the fields that matter on one line of bounded length."""

        def decorate(cls):
            cls.__repr__ = repr_fields
            return dataclass(**options)(cls)

        return decorate


Value = TypeVar("Value")


def replace(value: Value, /, **changes: Any) -> Value:
    """`dataclasses.replace` at a third of its time, for classes whose every field is an argument.

    >>> from passhat.stats.estimate import Interval
    >>> replace(Interval(0.2, 0.4), high=0.5)
    Interval(low=0.2, high=0.5)
    """
    kind: Any = type(value)
    names, values = _arguments(kind)
    made: Value = kind(**dict(zip(names, values(value), strict=True)) | changes)
    return made


@cache
def _arguments(cls: Any) -> tuple[list[str], Callable[[object], tuple[Any, ...]]]:
    names = [one.name for one in fields(cls)]
    return names, _values(names)


def _is_special(cls: type) -> bool:
    """Whether a class sets attributes itself or has arguments that are no fields."""
    asked = getattr(cls, "__annotations__", {}).values()
    return "__setattr__" in cls.__dict__ or any("InitVar" in str(one) for one in asked)


def _frozen(cls: type, *, kw_only: bool, eq: bool, repr_: bool) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclasses writes the signature there
    own = {name for name in ("__eq__", "__hash__", "__repr__") if name in cls.__dict__}
    make = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=False, slots=True, kw_only=kw_only
    )
    made: Any = make(cls)
    params = made.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = True, repr_, eq, True
    made.__init__ = _first_call(made)
    made.__signature__ = _Signature()
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    made.__getstate__, made.__setstate__ = _state, _set_state
    if repr_ and "__repr__" not in own:
        made.__repr__ = _repr
    if eq and "__eq__" not in own:
        made.__eq__ = _equality(made)
    if eq and "__hash__" not in own:
        made.__hash__ = _hash(made)
    return made


def _first_call(cls: Any) -> Callable[..., None]:
    """An `__init__` that writes the real one, puts it in its own place and calls it."""

    def write_and_call(self: Any, *positional: Any, **named: Any) -> None:
        _with_init(cls).__init__(self, *positional, **named)

    return write_and_call


def _with_init(cls: Any) -> Any:
    """The class, with the `__init__` that its fields ask for."""
    every = fields(cls)
    taken = [one for one in every if one.init]
    named = [_parameter(one) for one in taken if one.kw_only]
    head = ["self", *(_parameter(one) for one in taken if not one.kw_only)]
    head += ["*", *named] if named else []
    lines = [f"_set(self, {one.name!r}, {value})" for one in every if (value := _assigned(one))]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    namespace |= {f"_default_{one.name}": one.default for one in every}
    namespace |= {f"_make_{one.name}": one.default_factory for one in every}
    source = "\n ".join((f"def __init__({', '.join(head)}):", *(lines or ["pass"])))
    exec(source, namespace)  # noqa: S102  # as dataclasses does: only names of fields are put in
    init: Any = namespace["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {**{one.name: one.type for one in taken}, "return": None}
    cls.__init__ = init
    return cls


def _parameter(one: Field[Any]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=_unset"
    return one.name if one.default is MISSING else f"{one.name}=_default_{one.name}"


def _assigned(one: Field[Any]) -> str:
    """What a field is set to; nothing where `__post_init__` does it."""
    if one.default_factory is not MISSING:
        made = f"_make_{one.name}()"
        return f"{made} if {one.name} is _unset else {one.name}" if one.init else made
    if one.init:
        return one.name
    return "" if one.default is MISSING else f"_default_{one.name}"


class _Unset:
    """Stands for a default that is made anew for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


class _Signature:
    """What `inspect.signature` looks for: that of the `__init__` which is not written yet."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        import inspect

        if owner.__init__.__code__ is _PLACEHOLDER:
            _with_init(owner)
        found = inspect.signature(owner.__init__)
        return found.replace(parameters=list(found.parameters.values())[1:])


# All that `_first_call` returns share their code, whatever the class.
_PLACEHOLDER: Any = _first_call(_Signature).__code__


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _equality(cls: Any) -> Callable[[object, object], Any]:
    values = _values([one.name for one in fields(cls) if one.compare])

    def equal(self: object, other: object) -> Any:
        alike = other.__class__ is self.__class__
        return values(self) == values(other) if alike else NotImplemented

    return equal


def _hash(cls: Any) -> Callable[[object], int]:
    values = _values(
        [one.name for one in fields(cls) if (one.compare if one.hash is None else one.hash)]
    )
    return lambda self: hash(values(self))


def _values(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """The values of these fields, always in a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)
