import subprocess
import sys

import pytest
import scipy.special

from passhat.stats import special

_copier = pytest.importorskip("scipy._lib.array_api_compat._internal")
copying = pytest.mark.skipif(
    not hasattr(_copier, "clone_module"), reason="this scipy does not copy numpy that way"
)

LEAN = "import passhat.stats.special, numpy, sys\n"
COPY = "import scipy._lib.array_api_compat.numpy as copy, numpy\n"


def run(script):
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert not found.stderr
    return found.stdout.strip()


def test_the_functions_are_those_of_scipy():
    public = [name for name in scipy.special.__all__ if not name.startswith("_")]
    assert [
        name for name in public if getattr(special, name) is not getattr(scipy.special, name)
    ] == []


@copying
@pytest.mark.parametrize("module", ["numpy.f2py", "numpy.testing", "numpy.random", "unittest"])
def test_what_no_special_function_uses_is_not_loaded(module):
    assert run(f"{LEAN}print({module!r} in sys.modules)") == "False"


def test_scipy_finds_every_name_of_numpy_as_after_an_import_of_its_own():
    names = "names = [name for name in dir(numpy) if not name.startswith('_')]\n"
    missing = (
        "print([name for name in names if getattr(copy, name, 0) is not getattr(numpy, name)])"
    )
    usual = run("import scipy.special\n" + COPY + names + missing)
    assert run(LEAN + COPY + names + missing) == usual


@copying
def test_scipy_copies_as_ever_once_the_functions_are_there():
    copier = "from scipy._lib.array_api_compat._internal import clone_module\n"
    assert run(LEAN + copier + "print(clone_module.__name__)") == "clone_module"


def test_a_scipy_that_copies_nothing_is_imported_plainly(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy._lib.array_api_compat._internal", None)
    with special._copying_what_is_loaded():
        from scipy.special import gammaln
    assert gammaln is special.gammaln


def test_what_builds_on_the_whole_of_scipy_works_after_it():
    script = LEAN + "from scipy import stats\nprint(stats.boschloo_exact([[3, 5], [8, 2]]).pvalue)"
    assert float(run(script)) == pytest.approx(0.0838692)


@pytest.mark.parametrize("other", ["scipy.special", "scipy.stats", "passhat.stats.special"])
def test_threads_may_import_it_and_scipy_at_the_same_time(other):
    script = f"""
import importlib, threading
both = threading.Barrier(2)
faults = []
def load(name):
    both.wait()
    try:
        importlib.import_module(name)
    except Exception as error:
        faults.append(repr(error))
threads = [threading.Thread(target=load, args=(n,)) for n in ("passhat.stats.special", {other!r})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(faults)
"""
    assert run(script) == "[]"
