"""The special functions of scipy, without the package around them.

`import scipy.special` loads a hundred modules to serve other array libraries, which takes a fifth
of the time of a whole report. The functions are in a few compiled parts of it, and only those are
loaded here. Any other name is looked up in scipy.special when first used, and so are all names
where scipy is built differently.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.special import *  # noqa: F403
else:

    def __getattr__(name):
        if name.startswith("__"):  # an import asks every module whether it is a package
            raise AttributeError(name)
        import scipy.special

        return getattr(scipy.special, name)


_PACKAGE = "scipy.special"
# Each needs those before it; parts that a version of scipy does not have are skipped.
_PARTS = ("_special_ufuncs", "_gufuncs", "_ellip_harm_2", "_ufuncs_cxx", "_ufuncs")


def _functions() -> dict[str, Any]:
    if _PACKAGE in sys.modules:
        return {}
    try:
        # Another thread that imports scipy.special waits for this lock, and finds the parts.
        from importlib._bootstrap import _ModuleLockManager  # type: ignore[attr-defined]

        import scipy

        with _ModuleLockManager(_PACKAGE):
            for part in _PARTS:
                _load(f"{_PACKAGE}.{part}", [f"{folder}/special" for folder in scipy.__path__])
        functions = vars(sys.modules[f"{_PACKAGE}._ufuncs"])
    except (ImportError, AttributeError, KeyError):
        for part in _PARTS:
            sys.modules.pop(f"{_PACKAGE}.{part}", None)
        return {}
    return {**{name: functions[name] for name in functions["__all__"]}, "digamma": functions["psi"]}


def _load(name: str, folders: list[str]) -> None:
    """One part, kept where an import of the package will look for it."""
    spec = PathFinder.find_spec(name, folders)
    if name in sys.modules or spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module


globals().update(_functions())
