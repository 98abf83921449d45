"""Dataclasses that are quick to make, with fields that are computed on first use and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from functools import cache
from operator import attrgetter
from reprlib import recursive_repr
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload
from warnings import warn

from passhat.messages import quoted, repr_fields, short_repr

__all__ = [
    "Displayed",
    "FrameLibrary",
    "LazyMapping",
    "dataclass",
    "formerly",
    "lazy_field",
    "replace",
    "result_dataclass",
]

Name = TypeVar("Name")
Value = TypeVar("Value")

FrameLibrary = Literal["pandas", "polars", "pyarrow"]

# `dataclasses` writes and compiles up to six methods for every class as it is imported. A command
# imports some two hundred classes, makes instances of half of them and compares hardly any. Here a
# class gets `__init__` when it is first called, and methods that need no compiling for the rest.
# What comes out is a dataclass in every other way: `fields`, `replace`, `asdict`, copies and
# pickles work.
#
# Measured on Python 3.11: with the standard decorator `passhat report` takes 14 to 18% more CPU
# time (three series of 9 to 11 interleaved rounds), `passhat --version` no more. Newer Pythons
# compile the methods of a class in one go: when 3.13 is the oldest version supported, repeat the
# measurement, and use the standard decorator if it costs less than 5%.
if TYPE_CHECKING:
    from dataclasses import dataclass
    from dataclasses import dataclass as result_dataclass
    from pathlib import Path
else:

    def dataclass(cls=None, /, *, slots=False, **options):
        """A dataclass with slots; the standard library makes the others."""

        def decorate(cls):
            if not slots or not options.keys() <= _KNOWN or _is_special(cls, **options):
                return dataclasses.dataclass(slots=slots, **options)(cls)
            return _with_slots(cls, **options)

        return decorate if cls is None else decorate(cls)

    def result_dataclass(**options):
        """The same for results, which show the fields that matter on one line of bounded length."""

        def decorate(cls):
            cls.__repr__ = repr_fields
            return dataclass(**options)(cls)

        return decorate


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


def formerly(name: str) -> property:
    """The old name of the attribute `name`: it works for one more release, with a warning."""

    def read(self: object) -> Any:
        owner = type(self)
        old = next(key for key, value in vars(owner).items() if value is alias)
        warn(f"{owner.__name__}.{old} is {name} now", DeprecationWarning, stacklevel=2)
        return getattr(self, name)

    alias = property(read)
    return alias


class lazy_field(Generic[Value]):  # noqa: N801  # read like `property`
    """A field that is given as a value, or as a function that is called on first use.

    It must be given unless it has a `default`. It takes no part in `repr` and `==`, which would
    compute it, unless it is `shown`. Copies and pickles hold the value.

    >>> @dataclass(frozen=True, slots=True)
    ... class Square:
    ...     side: int
    ...     area: lazy_field[int] = lazy_field()
    >>> Square(3, lambda: 3**2).area, Square(3, 9).area
    (9, 9)
    """

    __slots__ = ("_slot", "default", "shown")

    def __init__(self, *, default: Any = MISSING, shown: bool = False) -> None:
        self.default, self.shown = default, shown

    def __set_name__(self, owner: type, name: str) -> None:
        self._slot = _lazy_slot(name)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        held = getattr(instance, self._slot)
        return held.get() if isinstance(held, _LazyValue) else held

    def __set__(self, instance: object, value: Value | Callable[[], Value]) -> None:
        held = _LazyValue(value) if callable(value) else value
        object.__setattr__(instance, self._slot, held)


class LazyMapping(Mapping[Name, Value]):
    """Values by name, each computed on first use; names and count cost nothing.

    A copy or a pickle is a plain dict of all of them.

    >>> parts = LazyMapping({"easy": lambda: 0.9, "hard": lambda: 0.2})
    >>> list(parts), parts["hard"]
    (['easy', 'hard'], 0.2)
    """

    __slots__ = ("_parts",)

    def __init__(self, makers: Mapping[Name, Callable[[], Value]]) -> None:
        self._parts = {name: _LazyValue(make) for name, make in makers.items()}

    def __getitem__(self, name: Name) -> Value:
        return self._parts[name].get()

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[Name]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return short_repr("Parts", *(quoted(str(name)) for name in self._parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class Displayed:
    """A result that prints as its screen, that a notebook draws, that has a data frame and files.

    The formats are in layers above the results, so a result reaches them through the public names
    of the package, as a user would.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.summary()

    def summary(self, *, verbose: bool = False) -> str:
        """What the terminal shows, at 80 columns and without colour; `verbose` is `-v`."""
        import passhat

        shown = passhat.render(self, "text", results=None, verbose=verbose)
        return str(shown).rstrip("\n")

    def save(self, path: str | Path, **options: Any) -> None:
        """Write this result to a file: its ending says how (.html, .md, .json, .csv, .tex, ...).

        `options` are those of `render`, such as `verbose`.
        """
        import passhat

        passhat.reporters.save(self, path, **options)

    def to_frame(self, library: FrameLibrary | None = None) -> Any:
        """The rows of this result as a data frame: the same rows and columns as its CSV file.

        `library` is "pandas", "polars" or "pyarrow"; without it, the one that your program has
        imported, else the first of these that is installed.
        """
        import passhat

        return passhat.to_frame(self, library)

    def _repr_html_(self) -> str:
        import passhat

        return str(passhat.render(self, "fragment", results=None, verbose=False))

    def _repr_markdown_(self) -> str:
        import passhat

        return str(passhat.render(self, "markdown", results=None, verbose=False))


class _LazyValue(Generic[Value]):
    """A value that is computed when it is first asked for; threads that ask at once get one."""

    __slots__ = ("_lock", "_make", "_value")

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make: Callable[[], Value] | None = make
        self._lock = Lock()

    def get(self) -> Value:
        with self._lock:
            if self._make is not None:
                self._value = self._make()
                self._make = None  # what it was made from is no longer needed
            return self._value

    __call__ = get  # so that `replace` hands it on as it is


_KNOWN = {"frozen", "kw_only", "eq", "repr"}


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Sample:
    """Made by the standard library: what it keeps in a class that it made is copied from here."""

    only: int


@cache
def _arguments(cls: Any) -> tuple[list[str], Callable[[object], tuple[Any, ...]]]:
    every = fields(cls)
    # What is not computed yet is handed on as it is.
    held = [
        _lazy_slot(f.name) if isinstance(getattr(cls, f.name), lazy_field) else f.name
        for f in every
    ]
    return [f.name for f in every], _values(held)


def _is_special(cls: type, *, frozen: bool = False, **_: bool) -> bool:
    """Whether a class sets attributes itself, or has fields or a base of another kind."""
    kinds = " ".join(map(str, cls.__annotations__.values()))
    params = getattr(cls, "__dataclass_params__", None)
    return (
        any(marker in kinds for marker in ("ClassVar", "InitVar", "KW_ONLY"))
        or "__setattr__" in cls.__dict__
        or (params is not None and params.frozen != frozen)
    )


def _with_slots(
    cls: type,
    *,
    frozen: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,  # noqa: A002
) -> Any:
    inherited: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        inherited |= getattr(base, "__dataclass_fields__", {})
    own = {
        name: _field(name, kind, cls.__dict__.get(name, MISSING), kw_only=kw_only)
        for name, kind in cls.__annotations__.items()
    }
    every = inherited | own
    lazy = {name: value for name, value in cls.__dict__.items() if isinstance(value, lazy_field)}
    left_out = {*own, "__dict__", "__weakref__"}
    body = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    methods = _methods(list(every.values()), frozen=frozen, eq=eq, repr_=repr)
    made: Any = type(cls)(
        cls.__name__,
        cls.__bases__,
        methods
        | body
        | lazy
        | {
            "__slots__": tuple(
                _lazy_slot(name) if name in lazy else name for name in own if name not in inherited
            ),
            "__match_args__": tuple(n for n, f in every.items() if f.init and not f.kw_only),
            "__dataclass_fields__": every,
            "__dataclass_params__": _parameters(frozen=frozen, eq=eq, repr_=repr, kw_only=kw_only),
            "__doc__": cls.__doc__ or cls.__name__,
            "__qualname__": cls.__qualname__,
            "__signature__": _Signature(),
        },
    )
    made.__init__ = _first_call(made)
    return made


def _lazy_slot(name: str) -> str:
    """Where the value of a lazy field is held: its own name is that of the descriptor."""
    return f"_{name}"


def _field(name: str, kind: object, default: Any, *, kw_only: bool) -> Any:
    if isinstance(default, lazy_field):
        default = field(default=default.default, repr=default.shown, compare=default.shown)
    f: Any = default if isinstance(default, Field) else field(default=default)
    if f.default.__class__.__hash__ is None:  # as the standard library has it: likely a list
        raise ValueError(f"mutable default for field {name}: use default_factory")
    f.name, f.type = name, kind
    f._field_type = _FIELD_MARK  # noqa: SLF001  # what `fields` knows a field by
    f.kw_only = kw_only if f.kw_only is MISSING else f.kw_only
    return f


_FIELD_MARK: Any = getattr(fields(_Sample)[0], "_field_type")  # noqa: B009


def _methods(
    every: list[Field[Any]], *, frozen: bool, eq: bool, repr_: bool
) -> dict[str, Callable[..., Any] | None]:
    """The methods that a class gets unless it has its own."""
    methods: dict[str, Callable[..., Any] | None] = {}
    if repr_:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _equality(every)
        methods["__hash__"] = _hash(every) if frozen else None
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    return methods


@cache
def _parameters(*, frozen: bool, eq: bool, repr_: bool, kw_only: bool) -> Any:
    params: Any = copy(getattr(_Sample, "__dataclass_params__"))  # noqa: B009
    params.init, params.frozen, params.eq, params.repr = True, frozen, eq, repr_
    if hasattr(params, "slots"):  # from Python 3.12 on
        params.kw_only, params.slots = kw_only, True
    return params


def _first_call(cls: Any) -> Callable[..., None]:
    """An `__init__` that writes the real one, puts it in its own place and calls it."""

    def write_and_call(self: Any, *positional: Any, **named: Any) -> None:
        _with_init(cls).__init__(self, *positional, **named)

    return write_and_call


def _with_init(cls: Any) -> Any:
    """The class, with the `__init__` that its fields ask for."""
    every = fields(cls)
    taken = [f for f in every if f.init]
    named = [_parameter(f) for f in taken if f.kw_only]
    head = ["self", *(_parameter(f) for f in taken if not f.kw_only)]
    head += ["*", *named] if named else []
    put = "_set(self, {!r}, {})" if cls.__dataclass_params__.frozen else "self.{} = {}"
    lines = [put.format(f.name, value) for f in every if (value := _assigned(f))]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    namespace: dict[str, Any] = {"_set": object.__setattr__, "_unset": _UNSET}
    namespace |= {f"_default_{f.name}": f.default for f in every}
    namespace |= {f"_make_{f.name}": f.default_factory for f in every}
    source = "\n ".join((f"def __init__({', '.join(head)}):", *(lines or ["pass"])))
    exec(source, namespace)  # noqa: S102  # as dataclasses does: only names of fields are put in
    init: Any = namespace["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    init.__annotations__ = {**{f.name: f.type for f in taken}, "return": None}
    cls.__init__ = init
    return cls


def _parameter(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return f"{f.name}=_unset"
    return f.name if f.default is MISSING else f"{f.name}=_default_{f.name}"


def _assigned(f: Field[Any]) -> str:
    """What a field is set to; nothing if `__post_init__` does it."""
    if f.default_factory is not MISSING:
        made = f"_make_{f.name}()"
        return f"{made} if {f.name} is _unset else {f.name}" if f.init else made
    if f.init:
        return f.name
    return "" if f.default is MISSING else f"_default_{f.name}"


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
        of_init = inspect.signature(owner.__init__)
        return of_init.replace(parameters=list(of_init.parameters.values())[1:])


# All that `_first_call` returns share their code, whatever the class.
_PLACEHOLDER: Any = _first_call(_Signature).__code__


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _equality(every: list[Field[Any]]) -> Callable[[object, object], Any]:
    values = _values([f.name for f in every if f.compare])

    def equal(self: object, other: object) -> Any:
        alike = other.__class__ is self.__class__
        return values(self) == values(other) if alike else NotImplemented

    return equal


def _hash(every: list[Field[Any]]) -> Callable[[object], int]:
    values = _values([f.name for f in every if (f.compare if f.hash is None else f.hash)])
    return lambda self: hash(values(self))


def _values(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """The values of these fields, always in a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)
