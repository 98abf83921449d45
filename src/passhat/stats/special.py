"""scipy.special, without the half of numpy that comes along with it.

For users of other array libraries scipy copies every name of numpy, and so loads f2py, testing,
ma, random and a hundred modules more: half the time and 13 of the 23 MB of importing its special
functions. While they are imported here, only what numpy has loaded is copied; any other name is
still found there when it is asked for. Where scipy is built otherwise, this is a plain import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def _copying_what_is_loaded() -> Iterator[None]:
    try:
        # From the outside in: a part that is imported first holds the lock of the parts around
        # it, and another thread that imports scipy the usual way would find them unfinished.
        for package in ("scipy", "scipy._lib", "scipy._lib.array_api_compat"):
            import_module(package)
        copier = import_module("scipy._lib.array_api_compat._internal")
        copy_all: Callable[..., Any] = copier.clone_module
    except (ImportError, AttributeError):
        yield
        return
    copier.clone_module = _copy_loaded  # type: ignore[attr-defined] # it is, as was seen above
    try:
        yield
    finally:
        copier.clone_module = copy_all  # type: ignore[attr-defined] # as above


def _copy_loaded(name: str, names: dict[str, Any]) -> list[str]:
    """Fill the names of a module with those of another, which keeps what it has not loaded yet."""
    module: ModuleType = import_module(name)
    public = set(getattr(module, "__all__", ()))
    loaded = {
        name: value
        for name, value in vars(module).items()
        if name in public or not name.startswith("_")
    }
    names.update(loaded)
    names["__getattr__"] = lambda name: getattr(module, name)
    return list(loaded)


with _copying_what_is_loaded():
    from scipy.special import *  # noqa: F403
